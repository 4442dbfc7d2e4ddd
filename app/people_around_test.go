package app

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/engine"
	"tandem/host"
	"tandem/human/lineage"
)

// paidFlow pays behind a question. Config is what the question has besides.
func paidFlow(id, url, config string) string {
	return `
metadata: {id: ` + id + `, name: ` + id + `, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
` + asks("ask", `, approvers: ["user:approver"]`+config) + `
  - {id: pay, description: d, type: ACTION, subtype: HTTP_REQUEST, configurations: {method: POST, url: "` + url + `/pay", max_retries: 0, body: {amount: "{{amount}}"}}}
  - {id: out, description: d, type: CALL, subtype: EMPTY}
connections:
  - {from_node: start, to_node: ask}
  - {from_node: ask, to_node: pay, output_key: confirmed}
  - {from_node: pay, to_node: out}
`
}

// Going on behind a question asks it again first.
func TestPeopleAround(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	inputs := json.RawMessage(`{"amount":7}`)
	// approved runs the workflow until it has paid, or failed to.
	approved := func(t *testing.T, id string, status engine.Status) string {
		t.Helper()
		e := x.execute(t, id, api.ExecuteRequest{Inputs: inputs})
		want[api.InteractionDetail](t, x.respond(t, "approver", x.opens(t, e, 1)[0].ID, `{"action":"approve"}`), http.StatusOK)
		x.reaches(t, e, status)
		return e
	}
	// asked expects the question and nothing done before its answer.
	asked := func(t *testing.T, execution, action string, paid *counted, before int) {
		t.Helper()
		q := x.opens(t, execution, 1)[0]
		if q.NodeID != "ask" || len(paid.list()) != before {
			t.Fatalf("asked %q, and the service was called %q before an answer", q.NodeID, paid.list())
		}
		want[api.InteractionDetail](t, x.respond(t, "approver", q.ID, `{"action":"`+action+`"}`), http.StatusOK)
	}
	pays := func(t *testing.T, paid *counted, n int) {
		t.Helper()
		if got := paid.list(); len(got) != n {
			t.Errorf("the service was called %q; want %d calls", got, n)
		}
	}
	// says expects that the open question says why it is asked again, in its record and in words.
	says := func(t *testing.T, execution, again string) {
		t.Helper()
		q := x.interaction(t, x.opens(t, execution, 1)[0].ID)
		if got := gjson.GetBytes(q.Request, "again").Raw; got != again {
			t.Errorf("asked again because of %s; want %s", got, again)
		}
		var told []api.AskedAgain
		if err := json.Unmarshal([]byte(again), &told); err != nil || len(lineage.AgainLines("zh", told)) != len(told) || len(lineage.AgainLines("en", told)) != len(told) {
			t.Errorf("in words: %q (%v)", lineage.AgainLines("en", told), err)
		}
	}
	t.Run("GivenWhileItIsOpen", func(t *testing.T) {
		t.Parallel()
		x.save(t, askFlow("around-open", asks("ask", `, approvers: ["user:approver"]`), `  - {id: beside, description: d, type: FLOW, subtype: WAIT, configurations: {wait_type: signal, signal_name: go, timeout_seconds: 0}}
`))
		e := x.execute(t, "around-open", api.ExecuteRequest{Inputs: inputs})
		first := x.opens(t, e, 1)[0]
		want[api.ActionResponse](t, x.act(t, e, api.ActionRequest{Action: "skip_node", NodeID: "beside", Output: json.RawMessage(`{"amount":1000000}`)}), http.StatusOK)
		x.completes(t, e, "beside")
		says(t, e, `[{"action":"output","node_id":"beside","by":"operator","output":{"amount":1000000}}]`)
		if x.opens(t, e, 1)[0].ID == first.ID {
			t.Error("the question is the one that does not show the output")
		}
		refused(t, x.respond(t, "approver", first.ID, `{"action":"approve"}`), http.StatusConflict, "conflict")
	})
	t.Run("Start", func(t *testing.T) {
		t.Parallel()
		paid := newCounted(t)
		x.save(t, paidFlow("around-start", paid.URL, ``))
		e := x.execute(t, "around-start", api.ExecuteRequest{Inputs: inputs, StartFromNode: "pay"})
		asked(t, e, "approve", paid, 0)
		x.reaches(t, e, engine.StatusSuccess)
		pays(t, paid, 1)
		e = x.execute(t, "around-start", api.ExecuteRequest{Inputs: inputs, StartFromNode: "pay"})
		asked(t, e, "reject", paid, 1)
		x.reaches(t, e, engine.StatusSuccess)
		pays(t, paid, 1)
		if got := x.read(t, e).NodeExecutions; got["pay"].Status != "skipped" || got["ask"].Status != "completed" {
			t.Errorf("pay is %s, ask %s", got["pay"].Status, got["ask"].Status)
		}
	})
	t.Run("Fork", func(t *testing.T) {
		t.Parallel()
		paid := newCounted(t)
		x.save(t, paidFlow("around-fork", paid.URL, ``))
		e := approved(t, "around-fork", engine.StatusSuccess)
		for _, input := range []string{``, `{"amount":9}`} {
			before := len(paid.list())
			f := want[api.ActionResponse](t, x.act(t, e, api.ActionRequest{Action: "fork", NodeID: "pay", Input: json.RawMessage(input)}), http.StatusOK).ExecutionID
			asked(t, f, "approve", paid, before)
			x.reaches(t, f, engine.StatusSuccess)
			pays(t, paid, before+1)
		}
	})
	t.Run("ForkBeside", func(t *testing.T) {
		t.Parallel()
		paid := newCounted(t)
		x.save(t, `
metadata: {id: around-beside, name: around-beside, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
`+asks("ask", `, approvers: ["user:approver"]`)+`
  - {id: hold, description: d, type: FLOW, subtype: WAIT, configurations: {wait_type: signal, signal_name: go, timeout_seconds: 0}}
  - {id: pay, description: d, type: ACTION, subtype: HTTP_REQUEST, configurations: {method: POST, url: "`+paid.URL+`/pay", body: {amount: "{{amount}}"}}}
  - {id: pace, description: d, type: FLOW, subtype: WAIT, configurations: {wait_type: signal, signal_name: go, timeout_seconds: 0}}
  - {id: log, description: d, type: CALL, subtype: EMPTY}
connections:
  - {from_node: start, to_node: ask}
  - {from_node: ask, to_node: hold, output_key: confirmed}
  - {from_node: hold, to_node: pay, output_key: completed}
  - {from_node: start, to_node: pace}
  - {from_node: pace, to_node: log, output_key: completed}
`)
		e := x.execute(t, "around-beside", api.ExecuteRequest{Inputs: inputs})
		want[api.InteractionDetail](t, x.respond(t, "approver", x.opens(t, e, 1)[0].ID, `{"action":"approve"}`), http.StatusOK)
		x.reaches(t, e, engine.StatusWaiting)
		want[api.ActionResponse](t, x.call(t, "operator", "POST", "/executions/"+e+"/input", api.InputRequest{NodeID: "pace", InputData: json.RawMessage(`{}`)}), http.StatusOK)
		x.completes(t, e, "log")
		f := want[api.ActionResponse](t, x.act(t, e, api.ActionRequest{Action: "fork", NodeID: "log", Input: json.RawMessage(`{"amount":9}`)}), http.StatusOK).ExecutionID
		want[api.ActionResponse](t, x.call(t, "operator", "POST", "/executions/"+f+"/input", api.InputRequest{NodeID: "hold", InputData: json.RawMessage(`{}`)}), http.StatusOK)
		asked(t, f, "reject", paid, 0)
		x.reaches(t, f, engine.StatusSuccess)
		pays(t, paid, 0)
	})
	t.Run("RetryAndGivenOutput", func(t *testing.T) {
		t.Parallel()
		paid := newCounted(t)
		list := paid.Config.Handler
		paid.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if list.ServeHTTP(discarded{http.Header{}}, r); len(paid.list()) == 1 {
				w.WriteHeader(http.StatusBadRequest)
			}
		})
		x.save(t, paidFlow("around-retry", paid.URL, ``))
		e := approved(t, "around-retry", engine.StatusError)
		want[api.ActionResponse](t, x.act(t, e, api.ActionRequest{Action: "retry_node", NodeID: "pay"}), http.StatusOK)
		says(t, e, `[{"action":"retry","node_id":"pay","by":"operator"}]`)
		asked(t, e, "approve", paid, 1)
		x.reaches(t, e, engine.StatusSuccess)
		pays(t, paid, 2)

		other := newCounted(t)
		other.Config.Handler = http.NotFoundHandler()
		x.save(t, paidFlow("around-output", other.URL, ``))
		e = approved(t, "around-output", engine.StatusError)
		want[api.ActionResponse](t, x.act(t, e, api.ActionRequest{Action: "skip_node", NodeID: "pay", Output: json.RawMessage(`{"paid":true}`)}), http.StatusOK)
		says(t, e, `[{"action":"output","node_id":"pay","by":"operator","output":{"paid":true}}]`)
		asked(t, e, "reject", other, 0)
		x.reaches(t, e, engine.StatusSuccess)
		if got := x.read(t, e).NodeExecutions["out"].Status; got != "skipped" {
			t.Errorf("what follows the given output is %s", got)
		}
	})
	t.Run("GivenAsWhatCameOfIt", func(t *testing.T) {
		t.Parallel()
		paid := newCounted(t)
		paid.Config.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		x.save(t, paidFlow("around-unknown", paid.URL, ``))
		e := x.execute(t, "around-unknown", api.ExecuteRequest{Inputs: inputs})
		want[api.InteractionDetail](t, x.respond(t, "approver", x.opens(t, e, 1)[0].ID, `{"action":"approve"}`), http.StatusOK)
		x.completes(t, e, "ask")
		want[api.InteractionDetail](t, x.respond(t, "operator", x.opens(t, e, 1)[0].ID, `{"outcome":"done","result":{"amount":7777}}`), http.StatusOK)
		says(t, e, `[{"action":"output","node_id":"pay","by":"operator","output":{"amount":7777}}]`)
		asked(t, e, "reject", paid, 0)
		x.reaches(t, e, engine.StatusSuccess)
		if got := x.read(t, e).NodeExecutions["out"].Status; got != "skipped" {
			t.Errorf("what follows the result that was given is %s", got)
		}
	})
	t.Run("OwnData", func(t *testing.T) {
		t.Parallel()
		x.save(t, `
metadata: {id: around-signal, name: around-signal, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: wait, description: d, type: FLOW, subtype: WAIT, configurations: {wait_type: signal, signal_name: go, timeout_seconds: 0}}
`+asks("ask", `, approvers: ["user:operator", "user:approver"], exclude_requester: true`)+`
connections:
  - {from_node: start, to_node: wait}
  - {from_node: wait, to_node: ask, output_key: completed}
`)
		e := want[api.ExecuteResponse](t, x.call(t, "admin", "POST", "/workflows/around-signal/execute", api.ExecuteRequest{}), http.StatusAccepted).ExecutionID
		x.reaches(t, e, engine.StatusWaiting)
		want[api.ActionResponse](t, x.call(t, "operator", "POST", "/executions/"+e+"/input", api.InputRequest{NodeID: "wait", InputData: json.RawMessage(`{"amount":5000}`)}), http.StatusOK)
		q := x.opens(t, e, 1)[0]
		refused(t, x.respond(t, "operator", q.ID, `{"action":"approve"}`), http.StatusForbidden, "forbidden")
		want[api.InteractionDetail](t, x.respond(t, "approver", q.ID, `{"action":"approve"}`), http.StatusOK)
	})
	t.Run("AnswerInItsPlace", func(t *testing.T) {
		t.Parallel()
		paid := newCounted(t)
		x.save(t, paidFlow("around-answer", paid.URL, ``))
		e := x.execute(t, "around-answer", api.ExecuteRequest{Inputs: inputs})
		x.opens(t, e, 1)
		refused(t, x.act(t, e, api.ActionRequest{Action: "skip_node", NodeID: "ask", Output: json.RawMessage(`{"confirmed":{}}`)}), http.StatusConflict, "approval_required")
		asked(t, e, "approve", paid, 0)
		x.reaches(t, e, engine.StatusSuccess)
	})
	t.Run("Advisory", func(t *testing.T) {
		t.Parallel()
		paid := newCounted(t)
		x.save(t, paidFlow("around-advisory", paid.URL, `, advisory: true`))
		e := x.execute(t, "around-advisory", api.ExecuteRequest{Inputs: inputs, StartFromNode: "pay"})
		x.reaches(t, e, engine.StatusSuccess)
		pays(t, paid, 1)
	})
	t.Run("WhereItCannotBeAsked", func(t *testing.T) {
		t.Parallel()
		paid := newCounted(t)
		x.save(t, paidFlow("around-off", paid.URL, `, enabled: false`))
		refused(t, x.call(t, "operator", "POST", "/workflows/around-off/execute", api.ExecuteRequest{Inputs: inputs, StartFromNode: "pay"}), http.StatusConflict, "approval_required")
		x.save(t, `
metadata: {id: around-body, name: around-body, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: limit, description: d, type: FLOW, subtype: TIMEOUT, configurations: {timeout_seconds: 600}}
`+asks("ask", `, approvers: ["user:approver"]`)+`
  - {id: pay, description: d, type: ACTION, subtype: HTTP_REQUEST, configurations: {method: POST, url: "`+paid.URL+`/pay"}}
connections:
  - {from_node: start, to_node: limit}
  - {from_node: limit, to_node: ask, output_key: body}
  - {from_node: ask, to_node: limit}
  - {from_node: limit, to_node: pay}
`)
		refused(t, x.call(t, "operator", "POST", "/workflows/around-body/execute", api.ExecuteRequest{StartFromNode: "pay"}), http.StatusConflict, "approval_required")
		e := x.execute(t, "around-body", api.ExecuteRequest{})
		x.opens(t, e, 1)
		refused(t, x.act(t, e, api.ActionRequest{Action: "skip_node", ActivationID: "limit[0]/ask"}), http.StatusConflict, "approval_required")
		want[api.InteractionDetail](t, x.respond(t, "approver", x.opens(t, e, 1)[0].ID, `{"action":"approve"}`), http.StatusOK)
		x.reaches(t, e, engine.StatusSuccess)
		refused(t, x.act(t, e, api.ActionRequest{Action: "fork", NodeID: "pay"}), http.StatusConflict, "approval_required")
		pays(t, paid, 1)
	})
	t.Run("AskedByAnotherWorkflow", func(t *testing.T) {
		t.Parallel()
		paid := newCounted(t)
		x.save(t, askFlow("around-child", asks("ask", `, approvers: ["user:approver"]`)))
		x.save(t, `
metadata: {id: around-parent, name: around-parent, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: agree, description: d, type: FLOW, subtype: SUB_WORKFLOW, configurations: {workflow_id: around-child, revision: latest}}
  - {id: pay, description: d, type: ACTION, subtype: HTTP_REQUEST, configurations: {method: POST, url: "`+paid.URL+`/pay"}}
connections:
  - {from_node: start, to_node: agree}
  - {from_node: agree, to_node: pay}
`)
		refused(t, x.call(t, "operator", "POST", "/workflows/around-parent/execute", api.ExecuteRequest{StartFromNode: "pay"}), http.StatusConflict, "approval_required")
		e := x.execute(t, "around-parent", api.ExecuteRequest{})
		inner := x.opens(t, e, 1)[0]
		refused(t, x.act(t, e, api.ActionRequest{Action: "skip_node", NodeID: "agree", Output: json.RawMessage(`{"approved":true}`)}), http.StatusConflict, "approval_required")
		refused(t, x.act(t, inner.ExecutionID, api.ActionRequest{Action: "skip_node", NodeID: "ask"}), http.StatusConflict, "approval_required")
		pays(t, paid, 0)
		want[api.InteractionDetail](t, x.respond(t, "approver", inner.ID, `{"action":"approve"}`), http.StatusOK)
		x.reaches(t, e, engine.StatusSuccess)
		refused(t, x.act(t, e, api.ActionRequest{Action: "fork", NodeID: "pay"}), http.StatusConflict, "approval_required")
		pays(t, paid, 1)
	})
}

// discarded takes an answer that nobody wants.
type discarded struct{ header http.Header }

func (d discarded) Header() http.Header         { return d.header }
func (d discarded) Write(p []byte) (int, error) { return len(p), nil }
func (d discarded) WriteHeader(int)             {}

// completes waits until a node of an execution has completed.
func (x *site) completes(t testing.TB, id, node string) {
	t.Helper()
	sub := x.hub.Subscribe(host.Ref{Workspace: "default", Execution: id})
	defer sub.Close()
	limit := time.After(patient)
	for x.read(t, id).NodeExecutions[node].Status != string(engine.NodeDone) {
		list, more, behind := sub.Next()
		if len(list) > 0 || behind {
			continue
		}
		select {
		case <-more:
		case <-limit:
			t.Fatalf("%q does not complete", node)
		}
	}
}
