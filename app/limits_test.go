package app

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"tandem/api"
	"tandem/engine"
	"tandem/identity"
	"tandem/store"
)

// inFiles names the files of the data directory in which a text stands.
func (x *site) inFiles(t *testing.T, text string) (found []string) {
	t.Helper()
	works(t, filepath.WalkDir(x.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if bytes.Contains(raw, []byte(text)) {
			found = append(found, d.Name())
		}
		return err
	}))
	return found
}

// Deleted is everything of an execution: what it was started with and has made, also large values, what people have answered, what its
// children have, and what stays in memory. It is refused while it runs, and who did it is known.
func TestLimits_Delete(t *testing.T) {
	t.Parallel()
	const mark = "canary-7c1d09be"
	x := openSiteAs(t, func(o *Options, url string) { o.PublicURL = url })
	x.save(t, "metadata: {id: below, name: below, description: d}\nnodes:\n  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}\n  - {id: next, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}\nconnections: [{from_node: start, to_node: next}]\n")
	x.save(t, `
metadata: {id: asks, name: asks, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: keep, description: d, type: MEMORY, subtype: WORKING_MEMORY, configurations: {operation: store}, input_params: {key: k, value: "{{secret}}"}}
  - {id: child, description: d, type: FLOW, subtype: SUB_WORKFLOW, configurations: {workflow_id: below, revision: latest}, input_params: {large: "{{large}}", secret: "{{secret}}"}}
  - {id: ask, description: d, type: HUMAN_IN_THE_LOOP, subtype: IN_APP_APPROVAL, configurations: {title: "Pay for {{secret}}?", approvers: [operator]}}
connections: [{from_node: start, to_node: keep}, {from_node: keep, to_node: child}, {from_node: child, to_node: ask}]
`)
	inputs := rawObject(t, map[string]any{"secret": mark, "large": strings.Repeat(mark+" ", 5000)})
	id := x.execute(t, "asks", api.ExecuteRequest{Inputs: inputs})
	x.reaches(t, id, engine.StatusWaitingForHuman)
	if a := x.call(t, "admin", "DELETE", "/executions/"+id, nil); a.status != http.StatusConflict || !strings.Contains(string(a.body), "has not ended") {
		t.Fatalf("while it waits: %d %s", a.status, a.body)
	}
	want[api.ActionResponse](t, x.raw(t, "operator", http.MethodPost, "/executions/"+id+"/input", `{"node_id":"ask","input_data":{"action":"approve","notes":"`+mark+`"}}`), http.StatusOK)
	x.reaches(t, id, engine.StatusSuccess)
	before := x.read(t, id) // which is kept in memory from now on
	below := want[api.Executions](t, x.call(t, "admin", "GET", "/executions?workflow_id=below", nil), http.StatusOK).Executions[0].ExecutionID
	x.read(t, below)
	if !strings.Contains(string(rawObject(t, before)), mark) || len(x.inFiles(t, mark)) < 2 {
		t.Fatalf("the mark is in %v", x.inFiles(t, mark))
	}
	if a := x.call(t, "operator", "DELETE", "/executions/"+id, nil); a.status != http.StatusForbidden {
		t.Errorf("an operator: %d %s", a.status, a.body)
	}
	gone := want[api.ExecutionDeleted](t, x.call(t, "admin", "DELETE", "/executions/"+id+"?reason=asked+for", nil), http.StatusOK)
	if gone.Executions != 2 || gone.JournalRows < 4 {
		t.Errorf("gone %+v", gone)
	}
	for _, path := range []string{"", "/history", "/context", "/logs", "/activations"} {
		if a := x.call(t, "admin", "GET", "/executions/"+id+path, nil); a.status != http.StatusNotFound || strings.Contains(string(a.body), mark) {
			t.Errorf("GET %s: %d %s", path, a.status, a.body)
		}
	}
	if a := x.call(t, "admin", "GET", "/executions/"+below, nil); a.status != http.StatusNotFound {
		t.Errorf("what it had started: %d %s", a.status, a.body)
	}
	if e := x.audited(t, "execution.delete", id); e.User != "admin" || !strings.Contains(string(e.Detail), "asked for") {
		t.Errorf("the entry: %+v %s", e, e.Detail)
	}
	if list := want[api.Executions](t, x.call(t, "admin", "GET", "/executions", nil), http.StatusOK); list.TotalCount != 0 {
		t.Errorf("listed %+v", list)
	}
	// The large values are too young to go by themselves.
	works(t, filepath.WalkDir(filepath.Join(x.dir, "blobs"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		old := time.Now().Add(-time.Hour)
		return os.Chtimes(path, old, old)
	}))
	report := want[api.TidyReport](t, x.call(t, "admin", "POST", "/limits/tidy", nil), http.StatusOK)
	if report.Blobs == 0 || report.Space.FreeBytes != 0 {
		t.Errorf("tidied %+v", report)
	}
	if found := x.inFiles(t, mark); len(found) > 0 {
		t.Errorf("the mark is left in %v", found)
	}
}

// A delivery whose execution is gone says so: it is not a failure of the server to ask for it, to send it again or to replay it.
func TestLimits_DeliveryOfWhatIsGone(t *testing.T) {
	t.Parallel()
	x := openSiteAs(t, func(o *Options, url string) { o.PublicURL = url })
	for _, mode := range []string{"async", "sync"} {
		x.save(t, "metadata: {id: "+mode+", name: n, description: d}\nnodes:\n  - {id: hook, description: d, type: TRIGGER, subtype: WEBHOOK, configurations: {webhook_path: /in, response_mode: "+mode+"}}\n  - {id: next, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}\nconnections: [{from_node: hook, to_node: next}]\n")
		want[api.Workflow](t, x.call(t, "admin", "POST", "/workflows/"+mode+"/deploy", nil), http.StatusOK)
		root := &site{Instance: x.Instance, url: strings.TrimSuffix(x.url, "/api/v1"), tokens: x.tokens}
		send := func() answer {
			return root.call(t, "admin", "POST", "/hooks/"+mode+"/in", json.RawMessage(`{"a":1}`), "Idempotency-Key", "one")
		}
		if a := send(); a.status >= 300 {
			t.Fatalf("%s: %d %s", mode, a.status, a.body)
		}
		list := want[api.Deliveries](t, x.call(t, "admin", "GET", "/deliveries?workflow_id="+mode, nil), http.StatusOK)
		d := list.Deliveries[0]
		x.reaches(t, d.ExecutionID, engine.StatusSuccess)
		want[api.ExecutionDeleted](t, x.call(t, "admin", "DELETE", "/executions/"+d.ExecutionID, nil), http.StatusOK)
		if a := send(); a.status >= 500 {
			t.Errorf("%s: sent again: %d %s", mode, a.status, a.body)
		}
		told := want[api.Delivery](t, x.call(t, "admin", "GET", "/deliveries/"+d.ID, nil), http.StatusOK)
		if !strings.HasPrefix(told.Reason, "execution_removed") || strings.Contains(string(rawObject(t, told)), `"a"`) {
			t.Errorf("%s: the delivery says %+v", mode, told)
		}
		if a := x.call(t, "admin", "POST", "/deliveries/"+d.ID+"/replay", nil); a.status != http.StatusConflict {
			t.Errorf("%s: replayed: %d %s", mode, a.status, a.body)
		}
	}
}

// What is over a limit is refused with when to come again, waits for its turn, or is kept: triggers lose nothing.
func TestLimits_OfAWorkspace(t *testing.T) {
	t.Parallel()
	x := openSiteAs(t, func(o *Options, url string) { o.PublicURL = url })
	x.save(t, waitFlow)
	x.save(t, "metadata: {id: plain, name: n, description: d}\nnodes:\n  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}\n  - {id: hook, description: d, type: TRIGGER, subtype: WEBHOOK, configurations: {webhook_path: /in}}\n  - {id: next, description: d, type: CALL, subtype: EMPTY}\nconnections: [{from_node: start, to_node: next}, {from_node: hook, to_node: next}]\n")
	want[api.Workflow](t, x.call(t, "admin", "POST", "/workflows/plain/deploy", nil), http.StatusOK)
	set := func(body string) api.Limits {
		t.Helper()
		return want[api.Limits](t, x.raw(t, "admin", "PUT", "/limits", body), http.StatusOK)
	}
	start := func(user string) answer {
		t.Helper()
		return x.raw(t, user, "POST", "/workflows/plain/execute", `{"wait_seconds":20}`)
	}
	refused := func(what string, a answer, status int, code string, least, most int) {
		t.Helper()
		seconds, _ := strconv.Atoi(a.header.Get("Retry-After"))
		if a.status != status || !strings.Contains(string(a.body), code) || seconds < least || seconds > most {
			t.Errorf("%s: %d, Retry-After %q, %s", what, a.status, a.header.Get("Retry-After"), a.body)
		}
	}
	for body, field := range map[string]string{`{"starts":{"seconds":5}}`: "starts.count", `{"executions_per_day":5,"executions_per_month":4}`: "executions_per_day", `{"running":-1}`: "running", `{"runing":1}`: "runing", `{"retention":{"executions":{"days":-1}}}`: "retention.executions.days"} {
		if a := x.raw(t, "admin", "PUT", "/limits", body); a.status != http.StatusUnprocessableEntity || !strings.Contains(string(a.body), field) {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
	if a := x.raw(t, "operator", "PUT", "/limits", `{}`); a.status != http.StatusForbidden {
		t.Errorf("an operator sets limits: %d", a.status)
	}

	// Windows, of a user and of the workspace.
	set(`{"starts_per_user":{"count":2,"seconds":100},"starts":{"count":3,"seconds":200}}`)
	for _, user := range []string{"operator", "operator", "editor"} {
		want[api.ExecuteResponse](t, start(user), http.StatusOK)
	}
	refused("the third of a user", start("operator"), http.StatusTooManyRequests, "rate_limited", 50, 100)
	refused("the fourth of the workspace", start("admin"), http.StatusTooManyRequests, "rate_limited", 150, 200)

	// A quota of the day: requests are refused, deliveries kept and started once there is room.
	set(`{"executions_per_day":4}`)
	want[api.ExecuteResponse](t, start("operator"), http.StatusOK)
	refused("over the quota", start("operator"), http.StatusTooManyRequests, "quota_exhausted", 1, 24*3600)
	root := &site{Instance: x.Instance, url: strings.TrimSuffix(x.url, "/api/v1"), tokens: x.tokens}
	if a := root.call(t, "admin", "POST", "/hooks/plain/in", json.RawMessage(`{"n":1}`)); a.status != http.StatusAccepted {
		t.Errorf("a delivery: %d %s", a.status, a.body)
	}
	deliveries := func() api.Delivery {
		t.Helper()
		return want[api.Deliveries](t, x.call(t, "admin", "GET", "/deliveries", nil), http.StatusOK).Deliveries[0]
	}
	if d := deliveries(); d.Decision != string(store.DeliveryAccepted) || !strings.HasPrefix(d.Reason, "quota_exhausted") {
		t.Errorf("the delivery is %+v", d)
	}
	if l := want[api.Limits](t, x.call(t, "viewer", "GET", "/limits", nil), http.StatusOK); l.Usage.ExecutionsToday != 4 || l.Settings.ExecutionsPerDay != 4 || l.Space != nil {
		t.Errorf("told %+v", l)
	}
	set(`{}`)
	for deliveries().Decision != string(store.DeliveryStarted) {
		if t.Context().Err() != nil {
			t.Fatal("the delivery is not started")
		}
	}
	// Who starts for a stored delivery once more starts.
	set(`{"starts_per_user":{"count":1,"seconds":100}}`)
	replay := "/deliveries/" + deliveries().ID + "/replay"
	want[api.Delivery](t, x.call(t, "admin", "POST", replay, nil), http.StatusAccepted)
	refused("the second replay of a user", x.call(t, "admin", "POST", replay, nil), http.StatusTooManyRequests, "rate_limited", 50, 100)
	set(`{}`)

	// Storage.
	x.limits.Forget("default")
	if l := set(`{"storage_bytes":10}`); l.Usage.StorageBytes < 100 {
		t.Errorf("measured %+v", l.Usage)
	}
	refused("without storage", start("operator"), http.StatusInsufficientStorage, "storage_exhausted", 0, 0)

	// What runs at once: more wait for their turn, and go on when the limit is raised.
	set(`{}`)
	slow := x.blocked(t)
	set(`{"running":1}`)
	second := x.execute(t, "plain", api.ExecuteRequest{})
	if e := x.read(t, second); e.Status != string(engine.StatusPending) {
		t.Errorf("the second is %s", e.Status)
	}
	if l := want[api.Limits](t, x.call(t, "viewer", "GET", "/limits", nil), http.StatusOK); l.Usage.Running != 1 || l.Usage.Waiting != 1 {
		t.Errorf("told %+v", l.Usage)
	}
	set(`{"running":2}`)
	x.reaches(t, second, engine.StatusSuccess)
	slow()
	if e := x.audited(t, "limits.update", "default"); e.User != "admin" || !strings.Contains(string(e.Detail), `"running":2`) {
		t.Errorf("the entry: %+v %s", e, e.Detail)
	}
}

// blocked starts an execution that runs until the returned function is called.
func (x *site) blocked(t *testing.T) (release func()) {
	t.Helper()
	open, came := make(chan struct{}), make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		came <- struct{}{}
		<-open
		_, _ = io.WriteString(w, `{}`)
	}))
	t.Cleanup(server.Close)
	x.save(t, "metadata: {id: slow, name: n, description: d}\nnodes:\n  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}\n  - {id: call, description: d, type: ACTION, subtype: HTTP_REQUEST, configurations: {url: \""+server.URL+"\"}}\nconnections: [{from_node: start, to_node: call}]\n")
	id := x.execute(t, "slow", api.ExecuteRequest{})
	<-came
	return func() {
		close(open)
		x.reaches(t, id, engine.StatusSuccess)
	}
}

// What has ended is removed by age and by count, and what is not set is kept; the installation goes on meanwhile.
func TestLimits_Retention(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.save(t, "metadata: {id: plain, name: n, description: d}\nnodes:\n  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}\n  - {id: next, description: d, type: CALL, subtype: EMPTY}\nconnections: [{from_node: start, to_node: next}]\n")
	var ids []string
	for range 5 {
		id := x.execute(t, "plain", api.ExecuteRequest{})
		x.reaches(t, id, engine.StatusSuccess)
		ids = append(ids, id)
		x.read(t, id)
	}
	total := func() int {
		t.Helper()
		return want[api.Executions](t, x.call(t, "viewer", "GET", "/executions", nil), http.StatusOK).TotalCount
	}
	far := time.Now().AddDate(1, 0, 0)
	if out, err := x.limits.Tidy(t.Context(), far, time.Hour, 1); err != nil || out.Executions != 0 || total() != 5 {
		t.Errorf("without a limit %+v were removed, %v", out, err)
	}
	want[api.Limits](t, x.raw(t, "admin", "PUT", "/limits", `{"retention":{"executions":{"count":3}}}`), http.StatusOK)
	if out, err := x.limits.Tidy(t.Context(), time.Now(), time.Hour, 1); err != nil || out.Executions != 2 || total() != 3 {
		t.Errorf("by count %+v, %v; %d are left", out, err, total())
	}
	if a := x.call(t, "viewer", "GET", "/executions/"+ids[0], nil); a.status != http.StatusNotFound {
		t.Errorf("the oldest: %d", a.status)
	}
	want[api.Limits](t, x.raw(t, "admin", "PUT", "/limits", `{"retention":{"executions":{"days":30}}}`), http.StatusOK)
	if out, err := x.limits.Tidy(t.Context(), time.Now().AddDate(0, 0, 29), time.Hour, 1); err != nil || out.Executions != 0 {
		t.Errorf("too early %+v, %v", out, err)
	}
	if out, err := x.limits.Tidy(t.Context(), time.Now().AddDate(0, 0, 31), time.Hour, 1); err != nil || out.Executions != 3 || total() != 0 {
		t.Errorf("by age %+v, %v; %d are left", out, err, total())
	}
	if e := x.audited(t, "execution.retain", ""); e.User != identity.System("").User {
		t.Errorf("the entry: %+v", e)
	}
	// After a restart the limits are the same.
	works(t, x.limits.Load(t.Context()))
	if got := x.limits.Settings("default").Retention.Executions.Days; got != 30 {
		t.Errorf("after a restart it is %d days", got)
	}
}
