package app

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/engine"
	"tandem/host"
	"tandem/identity"
	"tandem/store/sqlite/sqlitetest"
)

// people adds users of two workspaces.
func (s *callbackSite) people() {
	s.t.Helper()
	for _, id := range []string{"default", "other"} {
		if _, err := s.stores.Workspaces.Get(s.t.Context(), identity.System(""), id); err == nil {
			continue
		}
		if err := s.stores.Workspaces.Create(s.t.Context(), identity.System(""), identity.Workspace{ID: id, Name: id, Created: 1}); err != nil {
			s.t.Fatal(err)
		}
	}
	for _, role := range []identity.Role{identity.Admin, identity.Operator, identity.Viewer} {
		s.addUser(s.t, "default", string(role), role)
	}
	s.addUser(s.t, "other", "stranger", identity.Admin)
}

// waitsAs starts an execution that waits, with what is connected behind it, and returns when it does.
func (s *callbackSite) waitsAs(id, config string) string {
	s.t.Helper()
	s.saveText(s.t, `
metadata: {id: `+id+`, name: `+id+`, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: wait, description: d, type: FLOW, subtype: WAIT, configurations: `+config+`}
  - {id: came, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
  - {id: late, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
connections:
  - {from_node: start, to_node: wait}
  - {from_node: wait, to_node: came}
  - {from_node: wait, output_key: timeout, to_node: late}
`)
	execution := s.startText(s.t, id, `{"order": 7}`)
	s.reaches(s.t, execution, engine.StatusWaiting)
	return execution
}

// seenBy is an execution's wait as a user sees it.
func (s *callbackSite) seenBy(user, execution string) api.NodeExecution {
	s.t.Helper()
	return want[api.GetExecution](s.t, s.site.call(s.t, user, "GET", "/executions/"+execution, nil), http.StatusOK).Execution.NodeExecutions["wait"]
}

// hit calls an address. User is whose token it carries, empty for nobody's.
func (s *callbackSite) hit(user, method, address, body string, headers ...string) answer {
	s.t.Helper()
	if i := strings.Index(address, "/callbacks/"); i > 0 {
		address = s.base + address[i:] // the server may have another port since
	}
	r, err := http.NewRequestWithContext(context.Background(), method, address, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if user != "" {
		r.Header.Set("Authorization", "Bearer "+s.tokens[user])
	}
	for n := 0; n+1 < len(headers); n += 2 {
		r.Header.Set(headers[n], headers[n+1])
	}
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer w.Body.Close()
	raw, err := io.ReadAll(w.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer{w.StatusCode, w.Header, raw}
}

func TestWaitCall(t *testing.T) {
	t.Parallel()
	dir, log := sqlitetest.Dir(t), &lockedBuffer{}
	s := openCallbacksWith(t, dir, slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	s.people()
	var secrets []string // every address that was told; subtests run one after the other
	address := func(s *callbackSite, execution string) string {
		s.t.Helper()
		told := s.seenBy("operator", execution).WaitURL
		if !strings.HasPrefix(told, s.base+"/callbacks/") {
			s.t.Fatalf("the address is told as %q", told)
		}
		secrets = append(secrets, told)
		return told
	}
	status := func(s *callbackSite, a answer, want int, part string) {
		s.t.Helper()
		if a.status != want || !strings.Contains(string(a.body), part) {
			s.t.Errorf("answered %d %s; want %d %q", a.status, a.body, want, part)
		}
	}

	t.Run("Token", func(t *testing.T) {
		s := s.with(t)
		id := s.waitsAs("token", `{wait_type: webhook, webhook_config: {expected_payload: {state: done, parts: [{n: 1}]}}}`)
		at := address(s, id)
		if seen := s.seenBy("viewer", id); seen.WaitURL != "" || gjson.GetBytes(seen.ExecutionDetails, "webhook.method").Str != "POST" || strings.Contains(string(seen.ExecutionDetails), "callbacks") {
			t.Errorf("a viewer sees %q %s", seen.WaitURL, seen.ExecutionDetails)
		}
		for _, scope := range []string{"read", "answer", "edit", "execute"} { // the address lets its holder do what the token does not allow
			token := want[api.NewToken](t, s.site.call(t, "admin", "POST", "/users/operator/tokens", map[string]any{"name": scope, "scopes": []string{"read", scope}}), http.StatusCreated)
			s.site.tokens["scoped"] = token.Secret
			if seen := s.seenBy("scoped", id); (seen.WaitURL != "") != (scope == "execute") {
				t.Errorf("a token for %s is told %q", scope, seen.WaitURL)
			} else if seen.WaitURL != "" {
				secrets = append(secrets, seen.WaitURL)
			}
		}
		list := want[api.Activations](t, s.site.call(t, "operator", "GET", "/executions/"+id+"/activations?node_id=wait", nil), http.StatusOK)
		if len(list.Activations) != 1 || list.Activations[0].WaitURL == "" {
			t.Errorf("activations %+v", list)
		}
		secrets = append(secrets, list.Activations[0].WaitURL)
		for user, told := range map[string]bool{"operator": true, "viewer": false} {
			events, _ := s.follow(t, user, "/executions/"+id+"/events", "", func(h heard) bool { return h.Name == "node_waiting" })
			last := gjson.Parse(events[len(events)-1].Data).Get("data.node_execution")
			if (last.Get("wait_url").Str != "") != told || last.Get("execution_details.webhook.authentication_required").Raw != "true" {
				t.Errorf("a %s is told %s", user, last.Raw)
			}
			if told {
				secrets = append(secrets, last.Get("wait_url").Str)
			}
		}
		const good = `{"state": "done", "parts": [{"n": 1.0, "m": 2}], "more": true}`
		status(s, s.hit("", "POST", at, good), 401, "token")
		status(s, s.hit("viewer", "POST", at, good), 403, "role")
		unknown, other := s.hit("stranger", "POST", s.base+"/callbacks/AAAA", good), s.hit("stranger", "POST", at, good)
		if unknown.status != 404 || other.status != 404 || gjson.GetBytes(unknown.body, "detail").Str != gjson.GetBytes(other.body, "detail").Str {
			t.Errorf("an unknown address is answered %d %s, one of another workspace %d %s", unknown.status, unknown.body, other.status, other.body)
		}
		if wrong := s.hit("operator", "PUT", at, good); wrong.status != 405 || wrong.header.Get("Allow") != "POST" {
			t.Errorf("PUT is answered %d, %v", wrong.status, wrong.header)
		}
		status(s, s.hit("operator", "POST", at, `{"state": "busy", "parts": [{"n": 1}]}`), 422, "expected_payload")
		status(s, s.hit("operator", "POST", at, `{"state": "done"}`), 422, "goes on")
		status(s, s.hit("operator", "POST", at, `{"state`), 422, "JSON")
		s.reaches(t, id, engine.StatusWaiting)
		status(s, s.hit("operator", "POST", secrets[1], good), 200, "received") // which was told another time, and is for the same wait
		out := s.output(id, "came")
		for path, want := range map[string]string{"order": "7", "trigger_data.more": "true", "wait_result.condition_met": "true", "wait_result.attempts_made": "1", "wait_result.timeout_occurred": "false"} {
			if got := gjson.Get(out, path).Raw; got != want {
				t.Errorf("%s is %s in %s", path, got, out)
			}
		}
		if e := s.site.audited(t, "execution.callback", id); e.User != "operator" || e.Means.Kind != identity.ByToken || e.Address != "127.0.0.1" {
			t.Errorf("the call was entered as %+v", e)
		}
		status(s, s.hit("operator", "POST", at, good), 409, "received already")
		status(s, s.hit("stranger", "POST", at, good), 404, "")
		if seen := s.seenBy("operator", id); seen.WaitURL != "" {
			t.Error("the address is told after the wait")
		}
	})
	t.Run("Anybody", func(t *testing.T) {
		s := s.with(t)
		id := s.waitsAs("anybody", `{wait_type: webhook, webhook_config: {method: GET, authentication_required: false, expected_payload: {ok: "yes"}}}`)
		at := address(s, id)
		status(s, s.hit("", "GET", at+"?ok=no", ""), 422, "expected_payload")
		var group sync.WaitGroup
		var taken atomic.Int32
		for range 10 {
			group.Go(func() {
				switch got, _ := s.post(at+"?ok=yes", "", ""); got {
				case 200:
					taken.Add(1)
				case 409:
				default:
					t.Errorf("answered %d", got)
				}
			})
		}
		group.Wait()
		if e := s.site.audited(t, "execution.callback", id); e.User != "" || e.Means.Kind != identity.ByCallback || e.Address != "127.0.0.1" {
			t.Errorf("the call was entered as %+v", e)
		}
		if out := s.output(id, "came"); taken.Load() != 1 || gjson.Get(out, "trigger_data.ok").Str != "yes" {
			t.Errorf("taken %d times: %s", taken.Load(), out)
		}
	})
	t.Run("Signed", func(t *testing.T) {
		s := s.with(t)
		const key = "c4nary-0123456789-secret"
		credential := want[api.Credential](t, s.site.call(t, "admin", "POST", "/credentials", map[string]any{"name": "hook", "type": "webhook_secret", "data": map[string]any{"secret": key}}), http.StatusCreated).ID
		id := s.waitsAs("signed", `{wait_type: webhook, credential_id: `+credential+`}`)
		at := address(s, id)
		sign := func(secret, body string, age time.Duration) []string {
			stamp := strconv.FormatInt(time.Now().Add(-age).Unix(), 10)
			mac := hmac.New(sha256.New, []byte(secret))
			mac.Write([]byte(stamp + "." + body))
			return []string{"X-Tandem-Timestamp", stamp, "X-Tandem-Signature", "v1=" + hex.EncodeToString(mac.Sum(nil))}
		}
		status(s, s.hit("", "POST", at, `{"n": 1}`), 401, "signed")
		status(s, s.hit("operator", "POST", at, `{"n": 1}`), 401, "signed") // a token is not a signature
		status(s, s.hit("", "POST", at, `{"n": 1}`, sign("another secret", `{"n": 1}`, 0)...), 401, "signed")
		status(s, s.hit("", "POST", at, `{"n": 2}`, sign(key, `{"n": 1}`, 0)...), 401, "signed")
		status(s, s.hit("", "POST", at, `{"n": 1}`, sign(key, `{"n": 1}`, time.Hour)...), 401, "5 minutes")
		status(s, s.hit("", "POST", at, `{"n": 1}`, sign(key, `{"n": 1}`, 0)...), 200, "received")
		if out := s.output(id, "came"); gjson.Get(out, "trigger_data.n").Raw != "1" || strings.Contains(out, key) {
			t.Errorf("got %s", out)
		}
	})
	t.Run("Ended", func(t *testing.T) {
		s := s.with(t)
		const open = `{wait_type: webhook, webhook_config: {authentication_required: false}`
		late := s.waitsAs("late", open+`, timeout_seconds: 2}`)
		at := address(s, late)
		e := s.site.read(t, late)
		if began, ends := e.NodeExecutions["wait"].StartTime, gjson.GetBytes(e.NodeExecutions["wait"].ExecutionDetails, "webhook.expires_at").Int(); ends-began > 2000 || ends-began < 1500 {
			t.Errorf("calls are taken until %d ms after it began", ends-began)
		}
		s.ends(t, late, engine.StatusSuccess)
		if n := s.site.read(t, late).NodeExecutions["wait"]; n.EndTime-n.StartTime < 2000 || n.EndTime-n.StartTime > 2900 { // a second later would be too late
			t.Errorf("it waited for %d ms", n.EndTime-n.StartTime)
		}
		if out := s.output(late, "late"); !gjson.Get(out, "wait_result.timeout_occurred").Bool() || gjson.Get(out, "trigger_data").Raw != "null" {
			t.Errorf("got %s", out)
		}
		status(s, s.hit("", "POST", at, `{}`), 410, "any more")
		dropped := s.waitsAs("dropped", open+`}`)
		at = address(s, dropped)
		want[api.ActionResponse](t, s.site.call(t, "operator", "POST", "/executions/"+dropped+"/input", api.InputRequest{NodeID: "wait", InputData: json.RawMessage(`{"cancel": true}`)}), http.StatusOK)
		s.ends(t, dropped, engine.StatusSuccess)
		status(s, s.hit("", "POST", at, `{}`), 410, "any more")
		stopped := s.waitsAs("stopped", open+`}`)
		at = address(s, stopped)
		if _, err := s.host.Act(t.Context(), user, host.Request{Execution: stopped, Action: host.ActionCancel}); err != nil {
			t.Fatal(err)
		}
		s.ends(t, stopped, engine.StatusCanceled)
		status(s, s.hit("", "POST", at, `{}`), 410, "any more")
	})
	t.Run("Retried", func(t *testing.T) {
		s := s.with(t)
		s.saveText(t, strings.ReplaceAll(waitAlone, "ID", "retried"))
		id := s.startText(t, "retried", `{}`)
		s.reaches(t, id, engine.StatusWaiting)
		old := address(s, id)
		s.ends(t, id, engine.StatusError)
		if _, err := s.host.Act(t.Context(), user, host.Request{Execution: id, Action: host.ActionRetry, Node: "wait"}); err != nil {
			t.Fatal(err)
		}
		s.reaches(t, id, engine.StatusWaiting)
		status(s, s.hit("", "POST", old, `"old"`), 410, "any more")
		status(s, s.hit("", "POST", address(s, id), `"new"`), 200, "received")
		if out := s.output(id, "wait"); gjson.Get(out, "trigger_data").Str != "new" {
			t.Errorf("got %s", out)
		}
	})
	t.Run("Loop", func(t *testing.T) { // every iteration has an address of its own, also one that began before others
		s := s.with(t)
		s.saveText(t, waitLoop)
		id := s.startText(t, "loop", `{"items": ["a", "b", "c"]}`)
		s.reaches(t, id, engine.StatusWaiting)
		list := want[api.Activations](t, s.site.call(t, "operator", "GET", "/executions/"+id+"/activations?node_id=wait", nil), http.StatusOK).Activations
		if len(list) != 3 {
			t.Fatalf("activations %+v", list)
		}
		for _, i := range []int{0, 2, 1} {
			if list[i].WaitURL == "" {
				t.Fatalf("iteration %d has no address", i)
			}
			secrets = append(secrets, list[i].WaitURL)
			status(s, s.hit("", "POST", list[i].WaitURL, `{"for": `+strconv.Itoa(i)+`}`), 200, "received")
		}
		out := s.output(id, "each")
		for i := range 3 {
			if got := gjson.Get(out, fmt.Sprintf("results.%d.trigger_data.for", i)).Raw; got != strconv.Itoa(i) {
				t.Errorf("iteration %d was called with %q: %s", i, got, out)
			}
		}
	})
	// What gives access is neither in the log nor in the data directory.
	s.close()
	if len(secrets) < 12 {
		t.Fatalf("only %d addresses; this would look for too little", len(secrets))
	}
	for _, secret := range secrets {
		if token := secret[strings.LastIndexByte(secret, '/')+1:]; len(token) < 40 || strings.Contains(log.String(), token) {
			t.Errorf("the log has %q", token)
		}
	}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		for _, secret := range secrets {
			if bytes.Contains(data, []byte(secret[strings.LastIndexByte(secret, '/')+1:])) {
				t.Errorf("%s holds the address of a wait", path)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// waitAlone fails when nobody calls within two and a half seconds.
const waitAlone = `
metadata: {id: ID, name: ID, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: wait, description: d, type: FLOW, subtype: WAIT, configurations: {wait_type: webhook, timeout_seconds: 2.5, webhook_config: {authentication_required: false}}}
connections:
  - {from_node: start, to_node: wait}
`

const waitLoop = `
metadata: {id: loop, name: loop, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: each, description: d, type: FLOW, subtype: FOR_EACH, configurations: {items_path: items, max_concurrency: 3}}
  - {id: wait, description: d, type: FLOW, subtype: WAIT, configurations: {wait_type: webhook, webhook_config: {authentication_required: false}}}
connections:
  - {from_node: start, to_node: each}
  - {from_node: each, output_key: iteration, to_node: wait}
`

// The address of a wait finds it after a restart, and a call that came just before it is not lost.
func TestWaitCall_Restart(t *testing.T) {
	t.Parallel()
	dir := sqlitetest.Dir(t)
	s := openCallbacks(t, dir)
	s.people()
	const config = `{wait_type: webhook, timeout_seconds: 0, webhook_config: {authentication_required: false}}`
	after, before := s.waitsAs("after", config), s.waitsAs("before", config)
	afterURL, beforeURL := s.seenBy("operator", after).WaitURL, s.seenBy("operator", before).WaitURL
	if got := s.hit("", "POST", beforeURL, `"first"`); got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	s.close()

	tokens := s.tokens
	s = openCallbacks(t, dir)
	s.tokens = tokens
	if out := s.output(before, "came"); gjson.Get(out, "trigger_data").Str != "first" {
		t.Errorf("got %s", out)
	}
	if got := s.hit("", "POST", beforeURL, `"second"`); got.status != 409 {
		t.Errorf("the second is answered %d", got.status)
	}
	if again := s.seenBy("operator", after).WaitURL; again == "" {
		t.Error("the address is not told any more")
	}
	if got := s.hit("", "POST", afterURL, `"after"`); got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if out := s.output(after, "came"); gjson.Get(out, "trigger_data").Str != "after" {
		t.Errorf("got %s", out)
	}
}

// A wait for a source outside goes on after a restart, and a check that was under way is made again.
func TestWaitCheck_Restart(t *testing.T) {
	t.Parallel()
	dir := sqlitetest.Dir(t)
	var calls atomic.Int32
	hangs, asked := make(chan struct{}), make(chan struct{}, 10)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		if calls.Add(1) == 2 {
			select {
			case <-r.Context().Done():
			case <-hangs:
			}
			return
		}
		fmt.Fprintf(w, `{"calls": %d}`, calls.Load())
	}))
	defer service.Close()
	defer close(hangs)
	s := openCallbacks(t, dir)
	id := s.waitsAs("check", `{wait_type: api_response, check_interval_seconds: 0.1, wait_condition: "poll.json.calls >= 3", api_config: {url: "`+service.URL+`"}}`)
	<-asked
	<-asked // the second is under way
	s.close()

	s = openCallbacks(t, dir)
	out := s.output(id, "came")
	if gjson.Get(out, "wait_result.attempts_made").Raw != "2" || gjson.Get(out, "trigger_data.json.calls").Raw != "3" {
		t.Errorf("the check was not made again: %s", out)
	}
}

// Executions that wait for a source outside hold nothing between two checks: no goroutine, and nothing in memory but their timers.
func TestWaitCheck_HoldsNothing(t *testing.T) {
	dir := sqlitetest.Dir(t)
	s := openCallbacks(t, dir)
	s.waitsAs("many", `{wait_type: file, check_interval_seconds: 3600, timeout_seconds: 0, file_config: {file_path: in/a.csv}}`)
	runtime.GC()
	before := runtime.NumGoroutine()
	const count = 200
	ids := make([]string, count)
	for n := range ids {
		ids[n] = s.startText(t, "many", `{"order": 7}`)
	}
	for _, id := range ids {
		s.reaches(t, id, engine.StatusWaiting)
	}
	if after := runtime.NumGoroutine(); after > before+count/4 {
		t.Errorf("%d goroutines were there, and %d with %d waits", before, after, count)
	}
}
