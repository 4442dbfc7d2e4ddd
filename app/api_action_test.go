package app

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"tandem/api"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/identity"
	"tandem/server"
	"tandem/store"
)

// writeLines puts three lines into the log of an execution.
func (x *site) writeLines(t *testing.T, id string) {
	t.Helper()
	if err := x.stores.Logs.Write(t.Context(), identity.System("default"), id, []store.LogLine{
		{Activation: "start", NodeID: "start", Time: 1, Level: store.LevelDebug, Message: "one", Context: json.RawMessage(`{"a":1}`)},
		{Activation: "start", NodeID: "start", Time: 2, Level: store.LevelInfo, Message: "two"},
		{Activation: "out", NodeID: "out", Time: 3, Level: store.LevelError, Message: "three"},
	}); err != nil {
		t.Fatal(err)
	}
}

// waiting starts an execution that waits for a signal.
func (x *site) waiting(t *testing.T, workflow string) string {
	t.Helper()
	id := x.execute(t, workflow, api.ExecuteRequest{})
	x.reaches(t, id, engine.StatusWaiting)
	return id
}

// callFlow calls an address once.
func callFlow(id, method, url string) string {
	return fmt.Sprintf(`
metadata: {id: %s, name: %s, description: d}
nodes:
  - {id: call, description: d, type: ACTION, subtype: HTTP_REQUEST, configurations: {method: %s, url: %q, max_retries: 0}, input_params: {who: ann}}
  - {id: out, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
connections:
  - {from_node: call, to_node: out}
`, id, id, method, url)
}

func TestAPI_Actions(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.save(t, waitFlow)

	t.Run("PauseResumeCancel", func(t *testing.T) {
		t.Parallel()
		id := x.waiting(t, "waits")
		for _, step := range []struct{ action, status string }{{"pause", "PAUSED"}, {"resume", "WAITING"}, {"cancel", "CANCELED"}} {
			r := want[api.ActionResponse](t, x.act(t, id, api.ActionRequest{Action: step.action}), http.StatusOK)
			if !r.Success || r.ExecutionStatus != step.status || r.Message == "" {
				t.Errorf("%s: %+v", step.action, r)
			}
			if e := x.read(t, id); e.Status != step.status {
				t.Errorf("after %s it is %s", step.action, e.Status)
			}
		}
	})

	t.Run("RefusedWithoutAChange", func(t *testing.T) {
		t.Parallel()
		id := x.waiting(t, "waits")
		before := x.seq(t, id)
		for _, c := range []struct {
			body   string
			status int
			path   string
		}{
			{`{"action":"resume"}`, http.StatusConflict, ""},
			{`{"action":"retry_node","node_id":"start"}`, http.StatusConflict, ""},
			{`{"action":"retry_node","node_id":"w"}`, http.StatusConflict, ""},
			{`{"action":"retry_node","node_id":"gone"}`, http.StatusNotFound, ""},
			{`{"action":"retry_node","activation_id":"gone"}`, http.StatusNotFound, ""},
			{`{"action":"skip_node","node_id":"gone"}`, http.StatusNotFound, ""},
			{`{"action":"skip_node","node_id":"start"}`, http.StatusConflict, ""},
			{`{"action":"fork","node_id":"gone"}`, http.StatusNotFound, ""},
			{`{"action":"fork","node_id":"out"}`, http.StatusNotFound, ""},
			{`{"action":"explode"}`, http.StatusUnprocessableEntity, "action"},
			{`{}`, http.StatusUnprocessableEntity, "body"},
			{`{"action":"retry_node"}`, http.StatusUnprocessableEntity, "node_id"},
			{`{"action":"fork"}`, http.StatusUnprocessableEntity, "node_id"},
			{`{"action":"pause","node_id":"w"}`, http.StatusUnprocessableEntity, "node_id"},
			{`{"action":"pause","activation_id":"w"}`, http.StatusUnprocessableEntity, "activation_id"},
			{`{"action":"pause","input":{}}`, http.StatusUnprocessableEntity, "input"},
			{`{"action":"cancel","output":{}}`, http.StatusUnprocessableEntity, "output"},
			{`{"action":"fork","node_id":"start","input":[1]}`, http.StatusUnprocessableEntity, "input"},
			{`{"action":"skip_node","node_id":"w","activation_id":"start"}`, http.StatusUnprocessableEntity, "activation_id"},
			{`{"action":"pause","why":"x"}`, http.StatusUnprocessableEntity, "why"},
		} {
			a := x.call(t, "operator", "POST", "/executions/"+id+"/actions", c.body)
			code := map[int]string{http.StatusConflict: "conflict", http.StatusNotFound: "not_found", http.StatusUnprocessableEntity: "invalid_input"}[c.status]
			if f := refused(t, a, c.status, code); c.path != "" && !slices.Contains(fields(f), c.path) {
				t.Errorf("%s: %s", c.body, a.body)
			}
		}
		for _, user := range []string{"viewer", "approver"} {
			refused(t, x.call(t, user, "POST", "/executions/"+id+"/actions", api.ActionRequest{Action: "cancel"}), http.StatusForbidden, "forbidden")
		}
		refused(t, x.call(t, "operator", "POST", "/executions/no-such/actions", api.ActionRequest{Action: "cancel"}), http.StatusNotFound, "not_found")
		if after := x.seq(t, id); after != before {
			t.Errorf("the journal went from %d to %d", before, after)
		}
		done := x.execute(t, "waits", api.ExecuteRequest{StartFromNode: "out", WaitSeconds: 30})
		before = x.seq(t, done)
		for _, action := range []string{"pause", "resume", "cancel"} {
			refused(t, x.act(t, done, api.ActionRequest{Action: action}), http.StatusConflict, "conflict")
		}
		if after := x.seq(t, done); after != before {
			t.Errorf("the journal of what has ended went from %d to %d", before, after)
		}
	})

	t.Run("RetryNode", func(t *testing.T) {
		t.Parallel()
		var broken atomic.Bool
		broken.Store(true)
		remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if broken.Load() {
				w.WriteHeader(http.StatusBadRequest)
			}
		}))
		defer remote.Close()
		x.save(t, callFlow("retried", "GET", remote.URL))
		r := want[api.ExecuteResponse](t, x.call(t, "operator", "POST", "/workflows/retried/execute", api.ExecuteRequest{WaitSeconds: 30}), http.StatusOK)
		if r.Status != "ERROR" || r.Error == nil || r.Error.ErrorNodeID != "call" {
			t.Fatalf("answer %+v", r)
		}
		e := x.read(t, r.ExecutionID)
		if n := e.NodeExecutions["call"]; n.Status != "failed" || n.Error == nil || n.Error.ErrorCode != r.Error.ErrorCode || len(e.Errors) != 1 || e.Error == nil || e.NodeExecutions["out"].Status != "pending" {
			t.Errorf("execution %+v", e)
		}
		if got := want[api.GetExecution](t, x.call(t, "viewer", "GET", "/executions/"+e.ExecutionID, nil), http.StatusOK).Checkpoint; got.ErrorMessage == nil || got.ExecutorStatus != "ERROR" || got.StepStatus != "ERROR" {
			t.Errorf("checkpoint %+v", got)
		}
		broken.Store(false)
		want[api.ActionResponse](t, x.act(t, e.ExecutionID, api.ActionRequest{Action: "retry_node", NodeID: "call"}), http.StatusOK)
		x.reaches(t, e.ExecutionID, engine.StatusSuccess)
		if n := x.read(t, e.ExecutionID).NodeExecutions["call"]; n.Status != "completed" || n.Generation != 1 || n.Error != nil {
			t.Errorf("call %+v", n)
		}
	})

	t.Run("SkipNode", func(t *testing.T) {
		t.Parallel()
		id := x.waiting(t, "waits")
		want[api.ActionResponse](t, x.act(t, id, api.ActionRequest{Action: "skip_node", NodeID: "w", Output: json.RawMessage(`{"instead":1}`)}), http.StatusOK)
		x.reaches(t, id, engine.StatusSuccess)
		if n := x.read(t, id).NodeExecutions["w"]; n.Status != "completed" {
			t.Errorf("w %+v", n)
		}
		id = x.waiting(t, "waits")
		want[api.ActionResponse](t, x.act(t, id, api.ActionRequest{Action: "skip_node", ActivationID: "w"}), http.StatusOK)
		x.reaches(t, id, engine.StatusSuccess)
		if e := x.read(t, id); e.NodeExecutions["w"].Status != "skipped" || e.NodeExecutions["out"].Status != "skipped" {
			t.Errorf("w %+v, out %+v", e.NodeExecutions["w"], e.NodeExecutions["out"])
		}
	})

	t.Run("ForkWithAnEditedInput", func(t *testing.T) {
		t.Parallel()
		x.save(t, chain("forked"))
		id := x.execute(t, "forked", api.ExecuteRequest{Inputs: json.RawMessage(`{"n":1}`), WaitSeconds: 30})
		before := x.seq(t, id)
		r := want[api.ActionResponse](t, x.act(t, id, api.ActionRequest{Action: "fork", NodeID: "out", Input: json.RawMessage(`{"n":2}`)}), http.StatusOK)
		if r.ExecutionID == "" || r.ExecutionID == id {
			t.Fatalf("answer %+v", r)
		}
		x.reaches(t, r.ExecutionID, engine.StatusSuccess)
		e := x.read(t, r.ExecutionID)
		if e.ForkedFrom != id || e.TriggerInfo.TriggerType != "FORK" || !strings.Contains(string(e.Outputs["out"]), `"n":2`) || !strings.Contains(string(e.NodeExecutions["start"].OutputData["result"]), `"n":1`) {
			t.Errorf("fork %+v", e)
		}
		a := want[api.NodeExecution](t, x.call(t, "viewer", "GET", "/executions/"+r.ExecutionID+"/activations/out", nil), http.StatusOK)
		if !strings.Contains(string(a.InputData), `"n":2`) {
			t.Errorf("input of the fork's node %s", a.InputData)
		}
		start := want[api.NodeExecution](t, x.call(t, "viewer", "GET", "/executions/"+r.ExecutionID+"/activations/start", nil), http.StatusOK) // before the fork
		if start.Status != "completed" || !strings.Contains(string(start.OutputData["result"]), `"n":1`) {
			t.Errorf("start %+v", start)
		}
		second := want[api.ActionResponse](t, x.act(t, r.ExecutionID, api.ActionRequest{Action: "fork", NodeID: "out"}), http.StatusOK) // of a fork
		x.reaches(t, second.ExecutionID, engine.StatusSuccess)
		if e := x.read(t, second.ExecutionID); !strings.Contains(string(e.NodeExecutions["start"].OutputData["result"]), `"n":1`) {
			t.Errorf("fork of a fork %+v", e)
		}
		if after := x.seq(t, id); after != before {
			t.Errorf("the source went from %d to %d", before, after)
		}
	})

	t.Run("ForkBesideAnIterationThatHasEnded", func(t *testing.T) {
		t.Parallel()
		x.save(t, `
metadata: {id: beside, name: beside, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: each, description: d, type: FLOW, subtype: FOR_EACH, configurations: {items_path: list, max_concurrency: 2}}
  - {id: w, description: d, type: FLOW, subtype: WAIT, configurations: {wait_type: signal, signal_name: go, timeout_seconds: 1000}}
  - {id: last, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
connections:
  - {from_node: start, to_node: each}
  - {from_node: each, to_node: w, output_key: iteration}
  - {from_node: w, to_node: last, output_key: completed}
  - {from_node: last, to_node: each}
`)
		id := x.execute(t, "beside", api.ExecuteRequest{Inputs: json.RawMessage(`{"list":["a","b"]}`)})
		x.reaches(t, id, engine.StatusWaiting)
		for _, iteration := range []string{"each[1]/w", "each[0]/w"} { // the later one ends first
			want[api.ActionResponse](t, x.call(t, "operator", "POST", "/executions/"+id+"/input", api.InputRequest{NodeID: "w", ActivationID: iteration}), http.StatusOK)
			x.reaches(t, id, map[string]engine.Status{"each[1]/w": engine.StatusWaiting, "each[0]/w": engine.StatusSuccess}[iteration])
		}
		r := want[api.ActionResponse](t, x.act(t, id, api.ActionRequest{Action: "fork", ActivationID: "each[0]/last"}), http.StatusOK)
		x.reaches(t, r.ExecutionID, engine.StatusSuccess)
		if e := x.read(t, r.ExecutionID); e.NodeExecutions["each"].Status != "completed" {
			t.Errorf("each %+v", e.NodeExecutions["each"])
		}
	})

	t.Run("FullDisk", func(t *testing.T) {
		t.Parallel()
		x := openSite(t, func(o *server.Options) { o.Host = fullHost{o.Host} })
		x.save(t, chain("full"))
		a := x.call(t, "operator", "POST", "/workflows/full/execute", api.ExecuteRequest{})
		if want[api.Fault](t, a, http.StatusServiceUnavailable); a.header.Get("Retry-After") == "" {
			t.Errorf("answer %s, %v", a.body, a.header)
		}
	})
}

// fullHost is a host whose disk has no room for starts.
type fullHost struct{ host.Host }

func (fullHost) Start(context.Context, identity.Principal, host.StartRequest) (host.Started, error) {
	return host.Started{}, fmt.Errorf("append: %w", store.ErrFull)
}

func TestAPI_Input(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.save(t, waitFlow)
	send := func(t *testing.T, user, id string, r api.InputRequest) answer {
		t.Helper()
		return x.call(t, user, "POST", "/executions/"+id+"/input", r)
	}

	t.Run("Signals", func(t *testing.T) {
		t.Parallel()
		for name, data := range map[string]string{"Named": `{"signal":"go","payload":{"v":1}}`, "PayloadAlone": `{"v":1}`} {
			id := x.waiting(t, "waits")
			want[api.ActionResponse](t, send(t, "operator", id, api.InputRequest{NodeID: "w", ExecutionID: id, InputData: json.RawMessage(data)}), http.StatusOK)
			x.reaches(t, id, engine.StatusSuccess)
			if out := string(x.read(t, id).Outputs["out"]); !strings.Contains(out, `"trigger_data":{"v":1}`) {
				t.Errorf("%s: outputs %s", name, out)
			}
		}
	})

	t.Run("AnEarlySignalIsKept", func(t *testing.T) {
		t.Parallel()
		x.save(t, `
metadata: {id: early, name: early, description: d}
nodes:
  - {id: first, description: d, type: FLOW, subtype: WAIT, configurations: {wait_type: signal, signal_name: one, timeout_seconds: 1000}}
  - {id: second, description: d, type: FLOW, subtype: WAIT, configurations: {wait_type: event, signal_name: two, timeout_seconds: 1000}}
connections:
  - {from_node: first, to_node: second, output_key: completed}
`)
		id := x.waiting(t, "early")
		want[api.ActionResponse](t, send(t, "operator", id, api.InputRequest{NodeID: "second", InputData: json.RawMessage(`{"v":2}`)}), http.StatusOK)
		want[api.ActionResponse](t, send(t, "operator", id, api.InputRequest{NodeID: "first"}), http.StatusOK)
		x.reaches(t, id, engine.StatusSuccess)
		if out := string(x.read(t, id).Outputs["second"]); !strings.Contains(out, `"trigger_data":{"v":2}`) {
			t.Errorf("outputs %s", out)
		}
		refused(t, send(t, "operator", x.waiting(t, "early"), api.InputRequest{NodeID: "first", InteractionID: "x"}), http.StatusConflict, "conflict")
	})

	t.Run("EndsADelay", func(t *testing.T) {
		t.Parallel()
		x.save(t, "metadata: {id: slow, name: slow, description: d}\nnodes: [{id: nap, description: d, type: FLOW, subtype: DELAY, configurations: {duration_seconds: 1000}}]\n")
		id := x.waiting(t, "slow")
		if f := refused(t, send(t, "operator", id, api.InputRequest{NodeID: "nap", InputData: json.RawMessage(`{"v":1}`)}), http.StatusUnprocessableEntity, "invalid_input"); !slices.Equal(fields(f), []string{"input_data"}) {
			t.Errorf("problem %+v", f)
		}
		want[api.ActionResponse](t, send(t, "operator", id, api.InputRequest{NodeID: "nap", InputData: json.RawMessage(`{"cancel":true}`)}), http.StatusOK)
		x.reaches(t, id, engine.StatusSuccess)
	})

	t.Run("RefusedWithoutAChange", func(t *testing.T) {
		t.Parallel()
		id := x.waiting(t, "waits")
		before := x.seq(t, id)
		for _, c := range []struct {
			body   string
			status int
			path   string
		}{
			{`{"node_id":"out","input_data":{}}`, http.StatusConflict, ""},
			{`{"node_id":"w","interaction_id":"w#ask.1","input_data":{}}`, http.StatusConflict, ""},
			{`{"node_id":"gone","input_data":{}}`, http.StatusNotFound, ""},
			{`{"input_data":{}}`, http.StatusUnprocessableEntity, "node_id"},
			{`{"node_id":"","input_data":{}}`, http.StatusUnprocessableEntity, "node_id"},
			{`{"node_id":"w","execution_id":"exec_other"}`, http.StatusUnprocessableEntity, "execution_id"},
			{`{"node_id":"w","activation_id":"out"}`, http.StatusUnprocessableEntity, "activation_id"},
			{`{"node_id":"w","input_data":{"signal":7}}`, http.StatusUnprocessableEntity, "input_data.signal"},
		} {
			a := x.call(t, "operator", "POST", "/executions/"+id+"/input", c.body)
			code := map[int]string{http.StatusConflict: "conflict", http.StatusNotFound: "not_found", http.StatusUnprocessableEntity: "invalid_input"}[c.status]
			if f := refused(t, a, c.status, code); c.path != "" && !slices.Contains(fields(f), c.path) {
				t.Errorf("%s: %s", c.body, a.body)
			}
		}
		for _, user := range []string{"viewer", "approver"} {
			refused(t, send(t, user, id, api.InputRequest{NodeID: "w", InputData: json.RawMessage(`{}`)}), http.StatusForbidden, "forbidden")
		}
		if after := x.seq(t, id); after != before {
			t.Errorf("the journal went from %d to %d", before, after)
		}
		done := x.execute(t, "waits", api.ExecuteRequest{StartFromNode: "out", WaitSeconds: 30})
		refused(t, send(t, "operator", done, api.InputRequest{NodeID: "w"}), http.StatusConflict, "conflict")
	})

	t.Run("DecidesAnUnknownOutcome", func(t *testing.T) {
		t.Parallel()
		var calls atomic.Int32
		remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if calls.Add(1); calls.Load()%2 == 1 {
				w.WriteHeader(http.StatusGatewayTimeout) // nobody knows what became of it
			}
		}))
		defer remote.Close()
		x.save(t, callFlow("unknown", "POST", remote.URL))
		ask := func(t *testing.T) (string, api.UserInputRequest) {
			t.Helper()
			id := x.execute(t, "unknown", api.ExecuteRequest{})
			x.reaches(t, id, engine.StatusWaitingForHuman)
			got := want[api.GetExecution](t, x.call(t, "viewer", "GET", "/executions/"+id, nil), http.StatusOK)
			e := got.Execution
			if len(e.Questions) != 1 || e.NodeExecutions["call"].Status != "waiting_input" {
				t.Fatalf("execution %+v", e)
			}
			q := e.Questions[0]
			if q.Purpose != engine.PurposeOutcomeUnknown || q.NodeID != "call" || !strings.Contains(string(q.Arguments), `"who":"ann"`) || q.Title == "" {
				t.Errorf("question %+v", q)
			}
			if c := got.Checkpoint; c.ExecutorStatus != "WAITING" || c.StepStatus != "WAITING" || c.Data["question"] == nil {
				t.Errorf("checkpoint %+v", c)
			}
			return id, q
		}
		id, q := ask(t)
		before := x.seq(t, id)
		for body, path := range map[string]string{`{"outcome":"maybe"}`: "input_data.outcome", `[1]`: "input_data", `{}`: "input_data.outcome", `{"outcome":"stop","result":1}`: "input_data.result"} {
			f := refused(t, send(t, "operator", id, api.InputRequest{NodeID: "call", InputData: json.RawMessage(body)}), http.StatusUnprocessableEntity, "invalid_input")
			if !slices.Equal(fields(f), []string{path}) {
				t.Errorf("%s: %+v", body, f)
			}
		}
		refused(t, send(t, "approver", id, api.InputRequest{NodeID: "call", InputData: json.RawMessage(`{"outcome":"stop"}`)}), http.StatusForbidden, "forbidden")
		refused(t, send(t, "operator", id, api.InputRequest{NodeID: "call", InteractionID: "another", InputData: json.RawMessage(`{"outcome":"stop"}`)}), http.StatusConflict, "conflict")
		if after := x.seq(t, id); after != before {
			t.Errorf("the journal went from %d to %d", before, after)
		}
		want[api.ActionResponse](t, send(t, "operator", id, api.InputRequest{NodeID: "call", InteractionID: q.InteractionID, InputData: json.RawMessage(`{"outcome":"done","result":{"sent":true}}`)}), http.StatusOK)
		x.reaches(t, id, engine.StatusSuccess)
		if out := string(x.read(t, id).Outputs["out"]); !strings.Contains(out, `"sent":true`) {
			t.Errorf("outputs %s", out)
		}
		refused(t, send(t, "operator", id, api.InputRequest{NodeID: "call", InputData: json.RawMessage(`{"outcome":"done"}`)}), http.StatusConflict, "conflict")
		if calls.Load()%2 == 0 {
			t.Errorf("%d calls after an answer of done", calls.Load())
		}
		calls.Store(0)
		id, _ = ask(t)
		want[api.ActionResponse](t, send(t, "editor", id, api.InputRequest{NodeID: "call", InputData: json.RawMessage(`{"outcome":"not_done"}`)}), http.StatusOK)
		x.reaches(t, id, engine.StatusSuccess)
		if calls.Load() != 2 {
			t.Errorf("%d calls after an answer of not_done", calls.Load())
		}
		id, _ = ask(t)
		want[api.ActionResponse](t, send(t, "admin", id, api.InputRequest{NodeID: "call", InputData: json.RawMessage(`{"outcome":"stop"}`)}), http.StatusOK)
		x.reaches(t, id, engine.StatusError)
		if e := x.read(t, id); e.Error == nil || e.Error.ErrorCode != string(fault.OutcomeUnknown) {
			t.Errorf("error %+v", e.Error)
		}
	})

	t.Run("NamesSeveralQuestions", func(t *testing.T) {
		t.Parallel()
		remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
		defer remote.Close()
		x.save(t, fmt.Sprintf(`
metadata: {id: several, name: several, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: each, description: d, type: FLOW, subtype: FOR_EACH, configurations: {items_path: list, max_concurrency: 2}}
  - {id: call, description: d, type: ACTION, subtype: HTTP_REQUEST, configurations: {method: POST, url: %q, max_retries: 0}}
connections:
  - {from_node: start, to_node: each}
  - {from_node: each, to_node: call, output_key: iteration}
  - {from_node: call, to_node: each}
`, remote.URL))
		id := x.execute(t, "several", api.ExecuteRequest{Inputs: json.RawMessage(`{"list":[1,2]}`)})
		x.reaches(t, id, engine.StatusWaitingForHuman)
		questions := x.read(t, id).Questions
		if len(questions) != 2 {
			t.Fatalf("questions %+v", questions)
		}
		stop := json.RawMessage(`{"outcome":"done","result":{}}`)
		f := refused(t, send(t, "operator", id, api.InputRequest{NodeID: "call", InputData: stop}), http.StatusConflict, "conflict")
		for _, q := range questions {
			if !strings.Contains(f.Detail, q.InteractionID) {
				t.Errorf("%q is not named in %q", q.InteractionID, f.Detail)
			}
		}
		want[api.ActionResponse](t, send(t, "operator", id, api.InputRequest{NodeID: "call", InteractionID: questions[1].InteractionID, InputData: stop}), http.StatusOK)
		want[api.ActionResponse](t, send(t, "operator", id, api.InputRequest{NodeID: "call", ActivationID: questions[0].ActivationID, InputData: stop}), http.StatusOK)
		x.reaches(t, id, engine.StatusSuccess)
	})
}
