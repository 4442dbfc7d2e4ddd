package flow_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tandem/api"
	"tandem/builtin/flow"
	"tandem/credential"
	"tandem/database"
	"tandem/dataflow"
	"tandem/engine"
	"tandem/fault"
	"tandem/files"
	"tandem/node"
	"tandem/node/nodetest"
)

// waitRig runs waits for sources outside, from check to check, with a clock of its own.
type waitRig struct {
	t       *testing.T
	kind    node.Kind
	files   string
	pools   *database.Pools
	service string
	// status and body are what the service answers, calls how often it was asked.
	status atomic.Int64
	body   atomic.Value
	calls  atomic.Int64
	seen   chan *http.Request
}

func newWaitRig(t *testing.T) *waitRig {
	t.Helper()
	r := &waitRig{t: t, files: t.TempDir(), seen: make(chan *http.Request, 100)}
	r.status.Store(200)
	r.body.Store(`{}`)
	r.service = nodetest.Serve(t, func(w http.ResponseWriter, req *http.Request) {
		r.calls.Add(1)
		select {
		case r.seen <- req.Clone(context.WithoutCancel(req.Context())):
		default:
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(int(r.status.Load()))
		_, _ = io.WriteString(w, r.body.Load().(string))
	}).URL
	r.pools = database.New(database.Options{Files: r.files})
	t.Cleanup(r.pools.Close)
	for _, k := range flow.Kinds(flow.Deps{HTTP: nodetest.Client(t, "127.0.0.1"), Files: files.New(r.files), Databases: r.pools, Listens: true}) {
		if k.About.Name == "FLOW.WAIT" {
			r.kind = k
		}
	}
	return r
}

// waitRun is one wait of a rig.
type waitRun struct {
	*waitRig
	call   *node.Call
	now    time.Time
	detail map[string]any
	logged []string
	wait   node.Wait
}

func (r *waitRig) begin(config, input string) *waitRun {
	r.t.Helper()
	x := &waitRun{waitRig: r, call: nodetest.NewCall(r.t, strings.ReplaceAll(config, "$URL", r.service), input), now: nodetest.Start(), detail: map[string]any{}}
	x.call.Workspace = "default"
	x.call.Clock = func() time.Time { return x.now }
	x.call.Detail = func(fields map[string]any) {
		for name, value := range fields {
			x.detail[name] = value
		}
	}
	x.call.Log = func(_ node.Level, message string, _ map[string]any) { x.logged = append(x.logged, message) }
	x.call.Credential = func(_ context.Context, id string, types ...string) (credential.Opened, error) {
		for _, known := range []credential.Opened{
			{ID: "cred_http", Type: "http_auth", Data: json.RawMessage(`{"scheme": "bearer", "token": "` + nodetest.Canary + `"}`)},
			{ID: "cred_sql", Type: "sql", Data: json.RawMessage(`{"driver": "sqlite", "dsn": "shop.db"}`)},
			{ID: "cred_hook", Type: "webhook_secret", Data: json.RawMessage(`{"secret": "` + nodetest.Canary + `"}`)},
		} {
			if known.ID == id && slices.Contains(types, known.Type) {
				return known, nil
			}
		}
		return credential.Opened{}, fault.Newf(fault.CredentialMissing, "there is no credential %q of %v", id, types)
	}
	x.call.Bind = func(text string) (dataflow.Bound, error) {
		template, err := dataflow.CompileText(text)
		if err != nil {
			return dataflow.Bound{}, err
		}
		layers, err := dataflow.New(dataflow.Start{})
		if err != nil {
			return dataflow.Bound{}, err
		}
		return template.Bind(layers, dataflow.Request{Own: x.call.Input})
	}
	return x
}

// run makes the next run of the wait.
func (x *waitRun) run() (node.Outcome, error) {
	out, err := x.kind.Run(x.t.Context(), x.call)
	if w, ok := out.(node.Wait); ok {
		x.wait = w
	}
	return out, err
}

// waits makes a run that must wait on.
func (x *waitRun) waits() *waitRun {
	x.t.Helper()
	out, err := x.run()
	if _, ok := out.(node.Wait); !ok || err != nil {
		x.t.Fatalf("it does not wait: %s, %v", out, err)
	}
	return x
}

// due lets the timer fire.
func (x *waitRun) due() *waitRun {
	x.now, x.call.Memo, x.call.Wake = x.wait.Until, x.wait.Memo, &node.Wake{By: engine.WakeTimer}
	return x
}

// done makes a run that must end along a key.
func (x *waitRun) done(key, want string) {
	x.t.Helper()
	out, err := x.run()
	if err != nil {
		x.t.Fatal(err)
	}
	ended, ok := out.(node.Done)
	if !ok {
		x.t.Fatalf("it waits on: %+v", out)
	}
	nodetest.CheckDone(x.t, ended, map[string]string{key: want})
	if strings.Contains(fmt.Sprint(x.detail, x.logged, string(x.wait.Memo), ended), nodetest.Canary) {
		x.t.Error("the secret is told")
	}
}

func (x *waitRun) fails(code fault.Code, part string) {
	x.t.Helper()
	_, err := x.run()
	nodetest.WantError(x.t, err, code, part)
}

func TestWait_APIResponse(t *testing.T) {
	t.Parallel()
	t.Run("ExpectedResponse", func(t *testing.T) {
		t.Parallel()
		r := newWaitRig(t)
		r.body.Store(`{"state": "busy", "parts": [1]}`)
		x := r.begin(`{"wait_type": "api_response", "credential_id": "cred_http", "check_interval_seconds": 10, "api_config": {"url": "$URL/jobs", "headers": {"X-Own": "o"}, "expected_response": {"state": "done", "parts": [1, {"n": 2.0}]}}}`, `{"a": 1}`).waits()
		if x.wait.Signal != "cancel" || !x.wait.Until.Equal(nodetest.Start().Add(10*time.Second)) {
			t.Errorf("waits %+v", x.wait)
		}
		if got := <-r.seen; got.URL.Path != "/jobs" || got.Method != http.MethodGet || got.Header.Get("Authorization") != "Bearer "+nodetest.Canary || got.Header.Get("X-Own") != "o" {
			t.Errorf("asked %s %s %v", got.Method, got.URL, got.Header)
		}
		r.body.Store(`{"state": "done", "parts": [1, {"n": 2, "m": 3}], "more": true}`)
		x.due().done("completed", `{"a": 1, "trigger_data": {"status_code": 200, "json": {"state": "done"}}, "wait_result": {"condition_met": true, "attempts_made": 2, "timeout_occurred": false, "was_cancelled": false}}`)
		if r.calls.Load() != 2 {
			t.Errorf("asked %d times", r.calls.Load())
		}
	})
	t.Run("Condition", func(t *testing.T) {
		t.Parallel()
		r := newWaitRig(t)
		x := r.begin(`{"wait_type": "api_response", "api_config": {"url": "$URL"}, "wait_condition": "poll.status_code == 404"}`, `{}`).waits()
		r.status.Store(404)
		x.due().done("completed", `{"trigger_data": {"status_code": 404, "success": false}}`)
	})
	t.Run("Text", func(t *testing.T) {
		t.Parallel()
		r := newWaitRig(t)
		r.body.Store("not yet")
		x := r.begin(`{"wait_type": "api_response", "api_config": {"url": "$URL", "method": "POST", "expected_response": "all done"}}`, `{}`).waits()
		r.body.Store("it is all done.")
		x.due().done("completed", `{"trigger_data": {"body": "it is all done."}}`)
		if got := <-r.seen; got.Method != http.MethodPost {
			t.Errorf("asked with %s", got.Method)
		}
	})
	t.Run("FailingCheck", func(t *testing.T) {
		t.Parallel()
		r := newWaitRig(t)
		x := r.begin(`{"wait_type": "api_response", "api_config": {"url": "http://gone.example/x"}, "timeout_seconds": 12}`, `{}`).waits()
		if told, err := json.Marshal(x.detail["check_error"]); err != nil || !strings.Contains(string(told), "gone.example") || !strings.Contains(string(told), `"error_code":"network_error"`) {
			t.Errorf("the reason is told as %s, %v", told, err)
		}
		x.due().waits().due().waits()
		if len(x.logged) != 1 || !strings.Contains(x.logged[0], "gone.example") {
			t.Errorf("the log has %q; the same reason is one line", x.logged)
		}
		x.call.Connected = func(key string) bool { return key != "timeout" }
		x.due().fails(fault.Timeout, "gone.example")
		// A status of failure is an answer, and not what was waited for.
		r.status.Store(503)
		x = r.begin(`{"wait_type": "api_response", "api_config": {"url": "$URL"}, "max_attempts": 2}`, `{}`).waits()
		x.due().done("timeout", `{"wait_result": {"condition_met": false, "attempts_made": 2, "timeout_occurred": true}}`)
		x.call.Connected = func(key string) bool { return key != "timeout" }
		x.fails(fault.Timeout, "max_attempts")
	})
	t.Run("Misconfigured", func(t *testing.T) {
		t.Parallel()
		r := newWaitRig(t)
		r.begin(`{"wait_type": "api_response"}`, `{}`).fails(fault.InvalidConfig, "api_config")
		r.begin(`{"wait_type": "api_response", "api_config": {}}`, `{}`).fails(fault.InvalidConfig, "url")
		r.begin(`{"wait_type": "api_response", "api_config": {"url": "http://10.0.0.1/"}}`, `{}`).fails(fault.BlockedAddress, "10.0.0.1")
		r.begin(`{"wait_type": "api_response", "credential_id": "other", "api_config": {"url": "$URL"}}`, `{}`).fails(fault.CredentialMissing, "other")
	})
}

// Checks grow apart, and the last one is at the deadline; each is one run, and between them there is nothing but what the wait has written
// down.
func TestWait_Backoff(t *testing.T) {
	t.Parallel()
	r := newWaitRig(t)
	r.status.Store(500)
	x := r.begin(`{"wait_type": "api_response", "api_config": {"url": "$URL"}, "check_interval_seconds": 1, "exponential_backoff": true, "backoff_multiplier": 3, "timeout_seconds": 20}`, `{}`).waits()
	var at []float64
	for range 3 {
		at = append(at, x.wait.Until.Sub(nodetest.Start()).Seconds())
		x.due().waits()
	}
	if at = append(at, x.wait.Until.Sub(nodetest.Start()).Seconds()); fmt.Sprint(at) != "[1 4 13 20]" {
		t.Errorf("checks at %v", at)
	}
	if len(x.wait.Memo) > 300 {
		t.Errorf("the wait remembers %d bytes", len(x.wait.Memo))
	}
	again := *x.call
	for range 2 { // a crash in the middle of a check repeats it, with the same count
		out, err := r.kind.Run(t.Context(), &again)
		if w, ok := out.(node.Wait); err != nil || !ok || !strings.Contains(string(w.Memo), `"attempts":4`) {
			t.Errorf("%v %v", out, err)
		}
	}
	x.due().done("timeout", `{"wait_result": {"attempts_made": 5, "timeout_occurred": true}}`)
	x.call.Wake = signal(`{"cancel": true}`)
	x.done("cancelled", `{"wait_result": {"attempts_made": 4, "was_cancelled": true}}`)
}

func TestWait_File(t *testing.T) {
	t.Parallel()
	r := newWaitRig(t)
	write := func(name, content string) {
		t.Helper()
		path := filepath.Join(r.files, "default", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	there := r.begin(`{"wait_type": "file", "file_config": {"file_path": "in/a.csv"}}`, `{"a": 1}`).waits()
	has := r.begin(`{"wait_type": "file", "file_config": {"file_path": "in/a.csv", "expected_content": "END"}}`, `{}`).waits()
	holds := r.begin(`{"wait_type": "file", "file_config": {"file_path": "in/b.json", "expected_content": {"state": "done"}}}`, `{}`).waits()
	gone := r.begin(`{"wait_type": "file", "file_config": {"file_path": "in/a.csv"}, "wait_condition": "poll.exists && poll.size > 8"}`, `{}`).waits()
	folder := r.begin(`{"wait_type": "file", "file_config": {"file_path": "in"}}`, `{}`).waits()
	write("in/a.csv", "a;b")
	write("in/b.json", ` {"state": "busy"}`)
	there.due().done("completed", `{"a": 1, "trigger_data": {"path": "in/a.csv", "exists": true, "type": "file", "size": 3, "content": "a;b"}, "wait_result": {"attempts_made": 2, "condition_met": true}}`)
	has.due().waits()
	holds.due().waits()
	gone.due().waits()
	folder.due().waits() // a directory is not the file
	write("in/a.csv", "a;b;c\nEND")
	write("in/b.json", ` {"state": "done", "n": 1}`)
	has.due().done("completed", `{"trigger_data": {"content": "a;b;c\nEND"}, "wait_result": {"attempts_made": 3}}`)
	holds.due().done("completed", `{}`)
	gone.due().done("completed", `{"trigger_data": {"size": 9}}`)

	big := r.begin(`{"wait_type": "file", "file_config": {"file_path": "big", "expected_content": "x"}}`, `{}`)
	write("big", strings.Repeat("y", 10<<20+1))
	if big.waits(); !strings.Contains(fmt.Sprint(big.detail["check_error"]), "bytes") {
		t.Errorf("told %v", big.detail)
	}
	r.begin(`{"wait_type": "file", "file_config": {"file_path": "big"}}`, `{}`).done("completed", `{"trigger_data": {"content": null}}`)
	r.begin(`{"wait_type": "file", "file_config": {"file_path": "../../etc/passwd"}}`, `{}`).fails(fault.ForbiddenPath, "..")
	r.begin(`{"wait_type": "file", "file_config": {"file_path": "ab:c"}}`, `{}`).fails(fault.InvalidConfig, "ab:c")
	r.begin(`{"wait_type": "file"}`, `{}`).fails(fault.InvalidConfig, "file_config")
	_, err := kinds().Run(t, "FLOW.WAIT", nodetest.NewCall(t, `{"wait_type": "file", "file_config": {"file_path": "a"}}`, ""))
	nodetest.WantError(t, err, fault.Unsupported, "files directory")
}

func TestWait_DatabaseChange(t *testing.T) {
	t.Parallel()
	r := newWaitRig(t)
	target := database.Target{Workspace: "default", Credential: "cred_sql", Data: json.RawMessage(`{"driver": "sqlite", "dsn": "shop.db"}`)}
	do := func(statement string) {
		t.Helper()
		if _, err := r.pools.Do(t.Context(), target, database.Operation{Kind: "execute", Statements: []database.Text{{Words: []string{statement}}}}); err != nil {
			t.Fatal(err)
		}
	}
	const query = `"credential_id": "cred_sql", "database_config": {"query": "select id, state from orders where id <= {{upto}} order by id"}`
	do("create table items (id integer)")
	x := r.begin(`{"wait_type": "database_change", `+query+`}`, `{"upto": 2}`).waits() // the table is not there yet
	if told := fmt.Sprint(x.detail["check_error"]); !strings.Contains(told, "orders") {
		t.Errorf("told %q", told)
	}
	do("create table orders (id integer primary key, state text)")
	do("insert into orders values (1, 'new')")
	if x.due().waits(); x.detail["check_error"] != nil {
		t.Errorf("told %v", x.detail)
	}
	x.due().waits()
	do("insert into orders values (9, 'new')") // which the query does not see
	x.due().waits()
	do("update orders set state = 'paid' where id = 1")
	x.due().done("completed", `{"upto": 2, "trigger_data": {"rows": [{"id": 1, "state": "paid"}], "row_count": 1, "truncated": false}, "wait_result": {"attempts_made": 5, "condition_met": true}}`)

	r.begin(`{"wait_type": "database_change", `+query+`, "wait_condition": "poll.rows[0].state == 'paid'"}`, `{"upto": 1}`).done("completed", `{"wait_result": {"attempts_made": 1}}`)
	r.begin(`{"wait_type": "database_change", "credential_id": "cred_sql", "database_config": {"query": "delete from orders"}}`, `{}`).fails(fault.InvalidConfig, "does not write")
	r.begin(`{"wait_type": "database_change", "database_config": {"query": "select 1"}}`, `{}`).fails(fault.CredentialMissing, "sql")
	r.begin(`{"wait_type": "database_change"}`, `{}`).fails(fault.InvalidConfig, "database_config")
	_, err := kinds().Run(t, "FLOW.WAIT", nodetest.NewCall(t, `{"wait_type": "database_change", "database_config": {"query": "select 1"}}`, ""))
	nodetest.WantError(t, err, fault.Unsupported, "databases")
}

func TestWait_Webhook(t *testing.T) {
	t.Parallel()
	r := newWaitRig(t)
	x := r.begin(`{"wait_type": "webhook", "timeout_seconds": 60, "webhook_config": {"method": "put", "expected_payload": {"ok": true}, "authentication_required": false}}`, `{"a": 1}`).waits()
	if x.wait.Signal != "cancel" || !x.wait.Until.Equal(nodetest.Start().Add(time.Minute)) {
		t.Errorf("waits %+v", x.wait)
	}
	told, _ := json.Marshal(x.detail[api.WaitDetail])
	for _, d := range nodetest.Differences("detail", nodetest.Value(t, fmt.Sprintf(`{"method": "PUT", "expected_payload": {"ok": true}, "authentication_required": false, "expires_at": %d}`, nodetest.Start().Add(time.Minute-500*time.Millisecond).UnixMilli())), nodetest.Value(t, string(told))) {
		t.Error(d)
	}
	x.call.Generation = 2
	for _, other := range []string{`{"webhook": {"generation": 1, "body": {}}}`, `{"cancel": false}`} {
		x.call.Wake = signal(other)
		x.waits()
	}
	x.call.Wake = signal(`{"webhook": {"generation": 2, "body": {"cancel": true}}}`)
	x.done("completed", `{"a": 1, "trigger_data": {"cancel": true}, "wait_result": {"condition_met": true, "attempts_made": 1}}`)
	x.call.Wake = signal(`{"cancel": true}`)
	x.done("cancelled", `{"wait_result": {"was_cancelled": true}}`)
	x.call.Wake = &node.Wake{By: engine.WakeTimer}
	x.done("timeout", `{"trigger_data": null, "wait_result": {"timeout_occurred": true}}`)
	x.call.Connected = func(key string) bool { return key != "timeout" }
	x.fails(fault.Timeout, "timeout_seconds")

	signed := r.begin(`{"wait_type": "webhook", "timeout_seconds": 0, "credential_id": "cred_hook"}`, `{}`).waits()
	if call := signed.detail[api.WaitDetail].(api.WaitedCall); call.SignedWith != "cred_hook" || call.Method != "POST" || !call.AuthenticationRequired || call.ExpiresAt != 0 || !signed.wait.Until.IsZero() {
		t.Errorf("told %+v, waits %+v", call, signed.wait)
	}
	r.begin(`{"wait_type": "webhook", "credential_id": "other"}`, `{}`).fails(fault.CredentialMissing, "other")
	_, err := kinds().Run(t, "FLOW.WAIT", nodetest.NewCall(t, `{"wait_type": "webhook"}`, ""))
	nodetest.WantError(t, err, fault.Unsupported, "tandem serve")
}
