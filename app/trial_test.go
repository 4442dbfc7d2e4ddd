package app

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/fault"
	"tandem/identity"
)

// trialFlow fetches something, decides by it, asks before it writes, and goes through a list.
const trialFlow = `metadata: {id: trial, name: Trial}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: fetch, description: d, type: ACTION, subtype: HTTP_REQUEST, configurations: {url: "http://127.0.0.1:1/never"}}
  - {id: big, description: d, type: FLOW, subtype: IF, configurations: {condition_expression: "input.total > 10"}}
  - {id: sum, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}, input_params: {who: "{{start.name}}", total: "{{fetch.outputs.total}}", twice: "{{fetch.total}}"}}
  - {id: after, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
  - {id: ask, description: d, type: HUMAN_IN_THE_LOOP, subtype: IN_APP_APPROVAL, configurations: {title: "Write?", approvers: [approver]}}
  - {id: write, description: d, type: ACTION, subtype: FILE_OPERATION, configurations: {operation: append, path: out.txt, content: "x"}}
  - {id: each, description: d, type: FLOW, subtype: FOR_EACH, configurations: {items_path: list}}
  - {id: inside, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}, input_params: {value: "{{item}}"}}
  - {id: broken, description: d, type: FLOW, subtype: IF, configurations: {condition_expression: "(("}}
connections:
  - {from_node: start, to_node: fetch}
  - {from_node: fetch, to_node: big}
  - {from_node: big, to_node: sum, output_key: "true"}
  - {from_node: sum, to_node: after}
  - {from_node: after, to_node: ask}
  - {from_node: ask, to_node: write, output_key: approve}
  - {from_node: start, to_node: each}
  - {from_node: each, to_node: inside, output_key: iteration}
  - {from_node: inside, to_node: each}
  - {from_node: each, to_node: broken, output_key: completed}
`

type pins = map[string]map[string]json.RawMessage

func pinned(result string) map[string]json.RawMessage {
	return map[string]json.RawMessage{"result": json.RawMessage(result)}
}

// trial makes a test and returns the execution once it has ended or asks somebody.
func (x *site) trial(t testing.TB, r api.TestRequest) api.Execution {
	t.Helper()
	if len(r.Definition) == 0 && r.WorkflowID == "" {
		r.Definition, _ = json.Marshal(trialFlow)
	}
	r.WaitSeconds = 20
	got := x.call(t, "editor", "POST", "/workflows/test", r)
	if got.status != http.StatusOK && got.status != http.StatusAccepted {
		t.Fatalf("status %d: %s", got.status, got.body)
	}
	return x.read(t, gjson.GetBytes(got.body, "execution_id").String())
}

func completed(e api.Execution) []string {
	var list []string
	for id, n := range e.NodeExecutions {
		if n.Status == "completed" {
			list = append(list, id)
		}
	}
	slices.Sort(list)
	return list
}

// TestTrial runs parts of a definition that nobody has saved, with outputs that are given for the rest.
func TestTrial(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	upstream := pins{"start": pinned(`{"name":"Ada"}`), "fetch": pinned(`{"total":20}`), "big": {"true": json.RawMessage(`{"total":20}`)}}
	t.Run("OneNode", func(t *testing.T) {
		t.Parallel()
		e := x.trial(t, api.TestRequest{Node: "sum", Pinned: upstream})
		if e.Status != "SUCCESS" || strings.Join(completed(e), " ") != "big fetch start sum" {
			t.Fatalf("%s: %v ran, %+v", e.Status, completed(e), e.Error)
		}
		if got := string(e.NodeExecutions["sum"].OutputData["result"]); gjson.Get(got, "who").String() != "Ada" || gjson.Get(got, "total").Int() != 20 || gjson.Get(got, "twice").Int() != 20 {
			t.Errorf("its input was %s", got)
		}
		if e.TriggerInfo.TriggerType != "TEST" || e.Test == nil || e.Test.Node != "sum" || e.Test.By != "editor" || strings.Join(e.Test.Pinned, " ") != "big fetch start" {
			t.Errorf("it is told as %+v, %+v", e.TriggerInfo, e.Test)
		}
		if e.NodeExecutions["sum"].Pinned || !e.NodeExecutions["fetch"].Pinned {
			t.Error("it is not told which nodes are pinned")
		}
		one := want[api.NodeExecution](t, x.call(t, "viewer", "GET", "/executions/"+e.ExecutionID+"/activations/sum", nil), http.StatusOK)
		if by := gjson.GetBytes(one.Lineage, `#(path="total").sources.0.pinned_by`).String(); by != "editor" {
			t.Errorf("the lineage says nothing of who pinned it: %s", one.Lineage)
		}
		list := want[api.Executions](t, x.call(t, "viewer", "GET", "/executions?workflow_id=trial", nil), http.StatusOK)
		if i := slices.IndexFunc(list.Executions, func(s api.ExecutionSummary) bool { return s.ExecutionID == e.ExecutionID }); i < 0 || list.Executions[i].TriggerType != "TEST" {
			t.Errorf("it is listed as %+v", list)
		}
		whole := x.call(t, "viewer", "GET", "/executions/"+e.ExecutionID+"?include=workflow", nil)
		if nodes := gjson.GetBytes(whole.body, "workflow_definition.nodes.#.id").Raw; nodes != `["start","fetch","big","sum"]` {
			t.Errorf("its definition has the nodes %s", nodes)
		}
	})
	t.Run("RemovedWithItsPins", func(t *testing.T) {
		t.Parallel()
		e := x.trial(t, api.TestRequest{Node: "inside", Pinned: pins{"each": {"iteration": json.RawMessage(`{"item":"secret"}`)}}})
		kept, err := x.stores.Executions.Get(t.Context(), identity.System("default"), e.ExecutionID)
		if err != nil {
			t.Fatal(err)
		}
		draft, err := x.stores.Workflows.RevisionByHash(t.Context(), identity.System("default"), "trial", kept.RevisionHash)
		if err != nil || !strings.Contains(string(draft.Definition), "secret") {
			t.Fatalf("%s, %v", draft.Definition, err)
		}
		if got := x.call(t, "admin", "DELETE", "/executions/"+e.ExecutionID, nil); got.status != http.StatusNoContent && got.status != http.StatusOK {
			t.Fatalf("%d %s", got.status, got.body)
		}
		if _, err := x.stores.Workflows.RevisionByHash(t.Context(), identity.System("default"), "trial", kept.RevisionHash); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("the draft is still there: %v", err)
		}
	})
	t.Run("FromHere", func(t *testing.T) {
		t.Parallel()
		e := x.trial(t, api.TestRequest{From: "sum", Pinned: pins{"big": {"true": json.RawMessage(`{}`)}, "fetch": pinned(`{"total":1}`), "start": pinned(`{"name":"Bo"}`), "ask": {"approve": json.RawMessage(`{}`)}, "write": pinned(`{"done":true}`)}})
		if e.Status != "SUCCESS" || strings.Join(completed(e), " ") != "after ask big fetch start sum write" {
			t.Fatalf("%s: %v ran, %+v", e.Status, completed(e), e.Error)
		}
	})
	t.Run("WithInputs", func(t *testing.T) {
		t.Parallel()
		e := x.trial(t, api.TestRequest{Node: "inside", Inputs: json.RawMessage(`{"item":7}`)})
		if e.Status != "SUCCESS" || strings.Join(completed(e), " ") != "inside" || gjson.GetBytes(e.NodeExecutions["inside"].OutputData["result"], "value").Int() != 7 {
			t.Fatalf("%s: %v ran: %s", e.Status, completed(e), e.NodeExecutions["inside"].OutputData["result"])
		}
	})
	t.Run("InsideALoop", func(t *testing.T) {
		t.Parallel()
		e := x.trial(t, api.TestRequest{Node: "inside", Pinned: pins{"each": {"iteration": json.RawMessage(`{"item":"third","index":2}`)}}})
		if e.Status != "SUCCESS" || gjson.GetBytes(e.NodeExecutions["inside"].OutputData["result"], "value").String() != "third" {
			t.Fatalf("%s: %s %+v", e.Status, e.NodeExecutions["inside"].OutputData["result"], e.Error)
		}
	})
	t.Run("PinnedInsideALoopThatRuns", func(t *testing.T) {
		t.Parallel()
		flow := `metadata: {id: looping, name: Looping}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: each, description: d, type: FLOW, subtype: FOR_EACH, configurations: {items_path: list}}
  - {id: fetch, description: d, type: ACTION, subtype: HTTP_REQUEST, configurations: {url: "http://127.0.0.1:1/never"}}
  - {id: inner, description: d, type: FLOW, subtype: FOR_EACH, configurations: {items_path: list}}
  - {id: deep, description: d, type: CALL, subtype: EMPTY}
  - {id: use, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}, input_params: {got: "{{fetch.outputs.n}}", of: "{{item}}"}}
  - {id: end, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
connections:
  - {from_node: start, to_node: each}
  - {from_node: each, to_node: fetch, output_key: iteration}
  - {from_node: fetch, to_node: inner}
  - {from_node: inner, to_node: deep, output_key: iteration}
  - {from_node: deep, to_node: inner}
  - {from_node: inner, to_node: use, output_key: completed}
  - {from_node: use, to_node: each}
  - {from_node: each, to_node: end, output_key: completed}
`
		def, _ := json.Marshal(flow)
		e := x.trial(t, api.TestRequest{Definition: def, Inputs: json.RawMessage(`{"list":["a","b"]}`), Pinned: pins{"fetch": pinned(`{"n":7}`), "inner": {"completed": json.RawMessage(`{"results":[]}`)}}})
		if e.Status != "SUCCESS" || e.NodeExecutions["use"].ActivationCount != 2 || e.NodeExecutions["fetch"].ActivationCount != 2 || !e.NodeExecutions["fetch"].Pinned {
			t.Fatalf("%s: %v ran, %+v", e.Status, completed(e), e.Error)
		}
		if got := string(e.NodeExecutions["end"].OutputData["result"]); gjson.Get(got, "results.#").Int() != 2 || gjson.Get(got, "results.1.got").Int() != 7 || gjson.Get(got, "results.1.of").String() != "b" {
			t.Errorf("the loop has put out %s", got)
		}
	})
	t.Run("TheWhole", func(t *testing.T) {
		t.Parallel()
		flow := strings.Replace(trialFlow, `"(("`, `"true"`, 1)
		def, _ := json.Marshal(flow)
		e := x.trial(t, api.TestRequest{Definition: def, Inputs: json.RawMessage(`{"name":"Cy","list":[1,2]}`), Pinned: pins{"fetch": pinned(`{"total":3}`), "each": {"completed": json.RawMessage(`{}`)}}})
		if e.Status != "SUCCESS" || e.NodeExecutions["big"].Status != "completed" || e.NodeExecutions["sum"].Status != "skipped" || e.NodeExecutions["broken"].Status != "completed" {
			t.Fatalf("%s: %v ran, %+v", e.Status, completed(e), e.Error)
		}
	})
	t.Run("Refused", func(t *testing.T) {
		t.Parallel()
		def, _ := json.Marshal(trialFlow)
		for name, c := range map[string]struct {
			r      api.TestRequest
			status int
			says   string
		}{
			"AnswerIsPinned":   {api.TestRequest{Node: "write", Pinned: pins{"ask": {"approve": json.RawMessage(`{}`)}}}, 409, `lies behind \"ask\"`},
			"QuestionLeftOut":  {api.TestRequest{Node: "write"}, 409, `lies behind \"ask\"`},
			"WholeWithAnswer":  {api.TestRequest{Pinned: pins{"ask": {"approve": json.RawMessage(`{}`)}, "each": {"result": json.RawMessage(`{}`)}}}, 409, `lies behind \"ask\"`},
			"NothingArrives":   {api.TestRequest{Node: "sum", Pinned: pins{"fetch": pinned(`{}`)}}, 422, `nothing that is pinned arrives at \"sum\"`},
			"OtherKey":         {api.TestRequest{Node: "sum", Pinned: pins{"big": {"false": json.RawMessage(`{}`)}}}, 422, "nothing that is pinned arrives"},
			"NoSuchNode":       {api.TestRequest{Node: "nowhere"}, 422, `no node \"nowhere\"`},
			"NoSuchPin":        {api.TestRequest{Node: "sum", Pinned: pins{"nowhere": pinned("1")}}, 422, `"path":"pinned.nowhere"`},
			"EmptyPin":         {api.TestRequest{Node: "sum", Pinned: pins{"big": {}}}, 422, "at least one output"},
			"Both":             {api.TestRequest{Node: "sum", From: "sum"}, 422, "leave one out"},
			"PinnedItself":     {api.TestRequest{Node: "sum", Pinned: pins{"sum": pinned("1")}}, 422, "does not run"},
			"WrongNode":        {api.TestRequest{Node: "broken", Inputs: json.RawMessage(`{}`)}, 422, "nodes[9].configurations.condition_expression"},
			"WrongInputs":      {api.TestRequest{Node: "sum", Inputs: json.RawMessage(`[]`)}, 422, "inputs"},
			"AnotherWorkflow":  {api.TestRequest{WorkflowID: "other", Node: "sum", Definition: def}, 422, "workflow_id"},
			"NoSuchWorkflow":   {api.TestRequest{WorkflowID: "missing"}, 404, "missing"},
			"PinnedDefinition": {api.TestRequest{Definition: json.RawMessage(`{"nodes":[{"id":"a","type":"CALL","subtype":"EMPTY","pinned":{"result":1}}]}`)}, 422, "pinned"},
		} {
			if len(c.r.Definition) == 0 && c.r.WorkflowID == "" {
				c.r.Definition = def
			}
			got := x.call(t, "editor", "POST", "/workflows/test", c.r)
			if got.status != c.status || !strings.Contains(string(got.body), c.says) {
				t.Errorf("%s: %d %s", name, got.status, got.body)
			}
			if c.status == 409 && gjson.GetBytes(got.body, "code").String() != string(fault.ApprovalRequired) {
				t.Errorf("%s: %s", name, got.body)
			}
		}
		if got := x.call(t, "operator", "POST", "/workflows/test", api.TestRequest{Definition: def, Node: "after"}); got.status != http.StatusForbidden {
			t.Errorf("an operator makes tests: %d", got.status)
		}
		if got := x.call(t, "editor", "POST", "/workflows/validate", strings.Replace(trialFlow, "id: start,", "id: start, pinned: {result: 1},", 1)); !strings.Contains(string(got.body), "nodes[0].pinned") {
			t.Errorf("a definition with a pin can be saved: %s", got.body)
		}
	})
}

// TestTrial_Questions asks people in a test as in any execution, and counts it nowhere.
func TestTrial_Questions(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	flow := strings.Replace(trialFlow, `"(("`, `"true"`, 1)
	want[api.Saved](t, x.call(t, "editor", "POST", "/workflows", flow), http.StatusCreated)
	for name, r := range map[string]api.TestRequest{
		"AtTheQuestion": {WorkflowID: "trial", From: "ask", Inputs: json.RawMessage(`{}`)},
		"BehindIt":      {WorkflowID: "trial", From: "write", Inputs: json.RawMessage(`{}`)}, // it is asked before
		"Pinned":        {WorkflowID: "trial", From: "ask", Pinned: pins{"after": pinned(`{}`)}},
	} {
		r.WaitSeconds = 0
		got := want[api.ExecuteResponse](t, x.call(t, "editor", "POST", "/workflows/test", r), http.StatusAccepted)
		x.waitsAt(t, got.ExecutionID, "ask")
		e := x.read(t, got.ExecutionID)
		if len(e.Questions) != 1 || e.NodeExecutions["write"].Status == "completed" {
			t.Errorf("%s: %+v", name, e.Questions)
		}
		fork := x.forks(t, "editor", got.ExecutionID, api.ActionRequest{NodeID: "ask"})
		if f := x.read(t, fork); f.TriggerInfo.TriggerType != "TEST" || f.Test == nil {
			t.Errorf("%s: a fork of a test is told as %+v", name, f.TriggerInfo)
		}
	}
	w := want[api.Workflow](t, x.call(t, "viewer", "GET", "/workflows/trial", nil), http.StatusOK)
	if w.Metadata.Statistics != (api.Statistics{}) || w.Metadata.LastExecutionStatus != "" {
		t.Errorf("tests count: %+v", w.Metadata)
	}
}
