package app

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/engine"
)

// What is done inside a node is read by the node.

// stepOf is a step inside a node, as the execution tells it.
func stepOf(e api.Execution, node, step string) (api.NodeExecution, bool) {
	for _, s := range e.NodeExecutions[node].Steps {
		if s.InnerStep == step {
			return s, true
		}
	}
	return api.NodeExecution{}, false
}

// failsFirst is a site with a model that refuses its first request and answers the others, and an execution of a turn with it.
func failsFirst(t *testing.T, settings string) (x *site, id string, asked *atomic.Int32) {
	t.Helper()
	x, asked = openSite(t), &atomic.Int32{}
	model := newModelService(t, func(chatRequest, <-chan struct{}) chatReply {
		if asked.Add(1) == 1 {
			return chatReply{status: http.StatusUnauthorized}
		}
		return chatReply{text: []string{"at last"}}
	})
	x.saveProfile(t, model.profile("m"))
	x.save(t, agentFlow(`{user_prompt: "{{question}}", profileId: m`+settings+`}`, ``, ``))
	return x, x.execute(t, "talk", api.ExecuteRequest{Inputs: json.RawMessage(`{"question":"why?"}`)}), asked
}

func TestSteps_FailureIsReadByTheNode(t *testing.T) {
	t.Parallel()
	x, id, _ := failsFirst(t, "")
	x.reaches(t, id, engine.StatusError)
	e := x.read(t, id)
	n := e.NodeExecutions["agent"]
	if e.Error == nil || e.Error.ErrorNodeID != "agent" || e.Error.InnerStep != "complete_1" {
		t.Errorf("the execution's error is %+v", e.Error)
	}
	if n.Status != "failed" || n.Error == nil || n.Error.ErrorCode != e.Error.ErrorCode || n.Error.ErrorMessage != e.Error.ErrorMessage {
		t.Errorf("the node's error is %+v, the execution's %+v", n.Error, e.Error)
	}
	if got := slices.Sorted(maps.Keys(e.NodeExecutions)); !slices.Equal(got, []string{"agent", "start"}) || !slices.Equal(e.ExecutionSequence, []string{"start", "agent"}) || e.SequenceOmitted != 0 {
		t.Errorf("records of %v, sequence %v", got, e.ExecutionSequence)
	}
	if len(e.Errors) != 1 || e.Errors[0].ErrorNodeID != "agent" {
		t.Errorf("errors %+v", e.Errors)
	}
	if step, ok := stepOf(e, "agent", "complete_1"); !ok || step.NodeID != "agent" || step.Status != "failed" || step.Error == nil {
		t.Errorf("steps %+v", n.Steps)
	}
	for _, words := range []string{"execution", "flow"} {
		list, _ := x.follow(t, "viewer", "/executions/"+id+"/events?vocabulary="+words, "", func(h heard) bool {
			return h.Name == "execution_failed" || h.Name == "flow.failed"
		})
		told := 0
		for _, h := range list {
			var frame struct {
				Data struct {
					NodeID    string `json:"node_id"`
					InnerStep string `json:"inner_step"`
				} `json:"data"`
				Step struct {
					NodeID    string `json:"node_id"`
					InnerStep string `json:"inner_step"`
				} `json:"step"`
			}
			if err := json.Unmarshal([]byte(h.Data), &frame); err != nil {
				t.Fatal(err)
			}
			for _, node := range []string{frame.Data.NodeID, frame.Step.NodeID} {
				if node != "" && node != "start" && node != "agent" {
					t.Errorf("%s names node %q", h.Name, node)
				}
			}
			if strings.Contains(h.Data, "did not say why") {
				t.Errorf("%s: %s", h.Name, h.Data)
			}
			if (h.Name == "node_failed" || h.Name == "step.error") && frame.Data.InnerStep == "" && frame.Step.InnerStep == "" {
				told++
				if !strings.Contains(h.Data, e.Error.ErrorCode) {
					t.Errorf("the failure of the node is told as %s", h.Data)
				}
			}
		}
		if told != 1 {
			t.Errorf("%s: the failure of the node is told %d times in %d frames", words, told, len(list))
		}
	}
	part := want[api.Activations](t, x.call(t, "viewer", "GET", "/executions/"+id+"/activations?node_id=agent", nil), http.StatusOK)
	if len(part.Activations) != 2 || part.Activations[1].InnerStep != "complete_1" {
		t.Errorf("activations %+v", part.Activations)
	}
}

func TestSteps_RetryAndSkipByNode(t *testing.T) {
	t.Parallel()
	last := func(e api.Execution) api.Act { return e.Acts[len(e.Acts)-1] }
	t.Run("Retry", func(t *testing.T) {
		t.Parallel()
		x, id, asked := failsFirst(t, "")
		x.reaches(t, id, engine.StatusError)
		want[api.ActionResponse](t, x.act(t, id, api.ActionRequest{Action: "retry_node", NodeID: "agent", Reason: "the key is mended"}), http.StatusOK)
		x.reaches(t, id, engine.StatusSuccess)
		e, r := x.result(t, id)
		if a := last(e); r.Response != "at last" || asked.Load() != 2 || a.Action != "retry_node" || a.NodeID != "agent" || a.Reason != "the key is mended" {
			t.Errorf("%q after %d requests: %+v", r.Response, asked.Load(), a)
		}
	})
	t.Run("SkipWithOutput", func(t *testing.T) {
		t.Parallel()
		x, id, _ := failsFirst(t, "")
		x.reaches(t, id, engine.StatusError)
		want[api.ActionResponse](t, x.act(t, id, api.ActionRequest{Action: "skip_node", NodeID: "agent", Output: json.RawMessage(`{"response":"by hand"}`), Reason: "it can wait"}), http.StatusOK)
		x.reaches(t, id, engine.StatusSuccess)
		e, r := x.result(t, id)
		if a := last(e); r.Response != "by hand" || e.NodeExecutions["agent"].Status != "completed" || e.Error != nil || a.Reason != "it can wait" {
			t.Errorf("%q, %+v, %+v", r.Response, e.NodeExecutions["agent"], a)
		}
	})
	t.Run("Skip", func(t *testing.T) {
		t.Parallel()
		x, id, _ := failsFirst(t, "")
		x.reaches(t, id, engine.StatusError)
		want[api.ActionResponse](t, x.act(t, id, api.ActionRequest{Action: "skip_node", NodeID: "agent"}), http.StatusOK)
		x.reaches(t, id, engine.StatusSuccess)
		if n := x.read(t, id).NodeExecutions["agent"]; n.Status != "skipped" {
			t.Errorf("%+v", n)
		}
	})
	t.Run("SkipWhileAPersonIsAsked", func(t *testing.T) {
		t.Parallel()
		x, id, tools, _ := asking(t)
		if n := x.read(t, id).NodeExecutions["agent"]; n.Status != "waiting_input" {
			t.Errorf("the node is %s while its step asks", n.Status)
		}
		want[api.ActionResponse](t, x.act(t, id, api.ActionRequest{Action: "skip_node", NodeID: "agent"}), http.StatusOK)
		x.reaches(t, id, engine.StatusSuccess)
		if e := x.read(t, id); len(e.Questions) != 0 || e.NodeExecutions["agent"].Status != "skipped" || len(x.pending(t, id)) != 0 || len(tools.list()) != 0 {
			t.Errorf("questions %+v, agent %+v", e.Questions, e.NodeExecutions["agent"])
		}
	})
}

// A failure that is handed on has the input of the node with it, also when a step inside has failed.
func TestSteps_ErrorPayloadHasTheInput(t *testing.T) {
	t.Parallel()
	x, id, _ := failsFirst(t, ", on_error: continue")
	x.reaches(t, id, engine.StatusSuccess)
	e := x.read(t, id)
	var payload struct {
		Code  string         `json:"error_code"`
		Input map[string]any `json:"input"`
	}
	if err := json.Unmarshal(e.NodeExecutions["agent"].OutputData["error"], &payload); err != nil {
		t.Fatalf("%v: %+v", err, e.NodeExecutions["agent"])
	}
	if payload.Input["question"] != "why?" || payload.Code == "" || len(e.Errors) != 1 {
		t.Errorf("%+v, errors %+v", payload, e.Errors)
	}
}

func TestSteps_NodesOfOtherTriggersHaveNoRecords(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.save(t, `
metadata: {id: two, name: two, description: two triggers}
nodes:
  - {id: a, name: a, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: b, name: b, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: mine, name: mine, description: d, type: CALL, subtype: EMPTY}
  - {id: other, name: other, description: d, type: CALL, subtype: EMPTY}
  - {id: join, name: join, description: d, type: FLOW, subtype: MERGE}
connections:
  - {from_node: a, to_node: mine}
  - {from_node: b, to_node: other}
  - {from_node: mine, to_node: join}
  - {from_node: other, to_node: join}
`)
	id := x.execute(t, "two", api.ExecuteRequest{TriggerNode: "a", WaitSeconds: 30})
	if got := slices.Sorted(maps.Keys(x.read(t, id).NodeExecutions)); !slices.Equal(got, []string{"a", "join", "mine"}) {
		t.Errorf("records of %v", got)
	}
}

func TestSteps_ReasonsAreKept(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.save(t, `
metadata: {id: slow, name: slow, description: waits}
nodes:
  - {id: wait, name: wait, description: d, type: FLOW, subtype: WAIT, configurations: {wait_type: signal, signal_name: go}}
`)
	id := x.execute(t, "slow", api.ExecuteRequest{})
	x.reaches(t, id, engine.StatusWaiting)
	for _, action := range []string{"pause", "resume", "cancel"} {
		want[api.ActionResponse](t, x.act(t, id, api.ActionRequest{Action: action, Reason: action + " because"}), http.StatusOK)
	}
	for i, a := range x.read(t, id).Acts {
		if a.Reason != a.Action+" because" || a.By != "operator" {
			t.Errorf("act %d is %+v", i, a)
		}
	}
	pauses := want[api.Pauses](t, x.call(t, "operator", "GET", "/executions/"+id+"/pauses", nil), http.StatusOK).Pauses
	if len(pauses) != 1 || !strings.Contains(string(pauses[0].PauseContext), "pause because") || !strings.Contains(string(pauses[0].ResumeData), "resume because") {
		t.Errorf("pauses %+v", pauses)
	}
}

// An input that lacks something is told as such, with everything that it lacks.
func TestSteps_MissingInput(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	if a := x.call(t, "editor", "PUT", "/node-templates/order", `{"kind":"CALL.EMPTY","name":"order","override_input":{"type":"object","required":["to","amount"]}}`); a.status >= 300 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	x.save(t, `
metadata: {id: lacks, name: lacks, description: d}
nodes:
  - {id: send, name: send, description: d, type: CALL, subtype: EMPTY, configurations: {template_id: order}, input_params: {note: x}}
`)
	id := x.execute(t, "lacks", api.ExecuteRequest{})
	x.reaches(t, id, engine.StatusError)
	n := x.read(t, id).NodeExecutions["send"]
	if n.Error == nil || n.Error.ErrorCode != "parameter_missing" || !strings.Contains(string(n.Error.ErrorDetails), `"missing_fields":["amount","to"]`) {
		t.Errorf("the error is %+v: %s", n.Error, n.Error.ErrorDetails)
	}
	list, _ := x.follow(t, "viewer", "/executions/"+id+"/events?vocabulary=flow", "", func(h heard) bool { return h.Name == "flow.failed" })
	if !slices.ContainsFunc(list, func(h heard) bool {
		return h.Name == "step.error" && strings.Contains(h.Data, `"missing_fields":["amount","to"]`)
	}) {
		t.Errorf("frames %+v", list)
	}
}

// A file that is answered through the execution is kept as one that is answered through the question: the record has a reference.
func TestSteps_FilesThroughInput(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	id, _ := x.askedIn(t, askOf("paper", "FORM_SUBMISSION", `{title: Paper, input_fields: [{name: paper, type: file, required: true}]}`), `{}`)
	inline := `{"field_values":{"paper":{"name":"a.txt","base64":"aGVsbG8="}}}`
	want[api.ActionResponse](t, x.call(t, "operator", "POST", "/executions/"+id+"/input", api.InputRequest{NodeID: "ask", InputData: json.RawMessage(inline)}), http.StatusOK)
	x.reaches(t, id, engine.StatusSuccess)
	out := string(x.read(t, id).NodeExecutions["ask"].OutputData["result"])
	if !strings.Contains(out, `"blob":`) || strings.Contains(out, "aGVsbG8=") {
		t.Errorf("the answer is kept as %s", out)
	}
}

// What the records of nodes and executions have besides: which way the flow went, what a tool was given and gave, by which id somebody
// outside knows the request, and the text that is for the user.
func TestSteps_Records(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	model := newModelService(t, func(chatRequest, <-chan struct{}) chatReply { return chatReply{text: []string{"Hello, ", "you."}} })
	x.saveProfile(t, model.profile("m"))
	x.save(t, `
metadata: {id: told, name: told, description: d}
nodes:
  - {id: start, name: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: which, name: which, description: d, type: FLOW, subtype: IF, configurations: {condition_expression: "n > 1"}}
  - {id: tool, name: tool, description: d, type: TOOL, subtype: CODE_TOOL, configurations: {description: d, parameters: {type: object}, language: javascript, code: "function main(a) { return {twice: a.n * 2} }", tool_name: double, function_args: {n: 4}}}
  - {id: say, name: say, description: d, type: AI_AGENT, subtype: LLM, configurations: {user_prompt: hello, profileId: m, to_user: true}}
connections:
  - {from_node: start, to_node: which}
  - {from_node: which, to_node: tool, output_key: "true"}
  - {from_node: tool, to_node: say}
`)
	id := want[api.ExecuteResponse](t, x.call(t, "operator", "POST", "/workflows/told/execute", `{"inputs":{"n":2},"wait_seconds":60}`, "Idempotency-Key", "order-7"), http.StatusOK).ExecutionID
	e := x.read(t, id)
	if e.Status != "SUCCESS" || e.TriggerInfo.ExternalRequestID != "order-7" || e.FullAnswer != "Hello, you." {
		t.Errorf("status %s, request %q, answer %q: %+v", e.Status, e.TriggerInfo.ExternalRequestID, e.FullAnswer, e.Error)
	}
	for node, fields := range map[string][]string{
		"which": {`"branch_taken":"true"`, `"condition_result":true`},
		"tool":  {`"tool_name":"double"`, `"tool_parameters":{"n":4}`, `"tool_result":{"result":{"twice":8}`},
	} {
		for _, field := range fields {
			if got := string(e.NodeExecutions[node].ExecutionDetails); !strings.Contains(got, field) {
				t.Errorf("the details of %s are %s, want %s", node, got, field)
			}
		}
	}
}

// Older spellings of fields are taken where agents, tasks and templates are described.
func TestSteps_OlderSpellings(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	if a := x.call(t, "editor", "PUT", "/node-templates/order", `{"callId":"CALL.EMPTY","name":"order","knownParams":{"pass_through":true},"overrideInput":{"type":"object"}}`); a.status >= 300 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	made := want[api.NodeTemplate](t, x.call(t, "viewer", "GET", "/node-templates/order", nil), http.StatusOK)
	if made.Kind != "CALL.EMPTY" || string(made.KnownParams) != `{"pass_through":true}` {
		t.Errorf("the template is %+v", made)
	}
	x.saveProfile(t, newModelService(t, func(chatRequest, <-chan struct{}) chatReply { return chatReply{text: []string{"x"}} }).profile("m"))
	if a := x.call(t, "admin", "PUT", "/agents/helper", `{"name":"helper","llmProfile":"m","autoExecute":true}`); a.status >= 300 || !strings.Contains(string(a.body), `"auto_execute":true`) {
		t.Errorf("%d %s", a.status, a.body)
	}
	for _, spelling := range []string{"profileId", "profile_id"} {
		if a := x.call(t, "admin", "PUT", "/agents/helper", `{"name":"helper","`+spelling+`":"m","autoExecute":true}`); a.status >= 300 || !strings.Contains(string(a.body), `"llm_profile":"m"`) {
			t.Errorf("%s: %d %s", spelling, a.status, a.body)
		}
	}
	if a := x.call(t, "operator", "POST", "/agents/helper/tasks", `{"userInput":"go","autoExecute":false}`); a.status >= 300 {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := x.call(t, "admin", "PUT", "/agents/helper", `{"name":"helper","llm_profile":"m","autoExecute":true,"auto_execute":false}`); a.status != http.StatusUnprocessableEntity {
		t.Errorf("both names: %d %s", a.status, a.body)
	}
	// Workflows in the older spelling read what a model has answered.
	x.save(t, `
metadata: {id: older, name: older}
nodes:
  - {id: start, description: starts, type: TRIGGER, subtype: MANUAL}
  - {id: llm, description: answers, type: AI_AGENT, subtype: LLM, configurations: {profileId: m, prompt: hello}}
  - {id: then, description: reads, type: CALL, subtype: EMPTY, configurations: {pass_through: true}, input_params: {why: "{{llm.output.finishReason}}", calls: "{{llm.output.toolCalls}}", results: "{{llm.output.toolResults}}"}}
connections:
  - {from_node: start, to_node: llm}
  - {from_node: llm, to_node: then}
`)
	id := x.execute(t, "older", api.ExecuteRequest{})
	x.reaches(t, id, engine.StatusSuccess)
	if read := x.read(t, id).Outputs["then"]; gjson.GetBytes(read, "why").Str != "stop" || gjson.GetBytes(read, "calls").Raw != "[]" || gjson.GetBytes(read, "results").Raw != "[]" {
		t.Errorf("read %s", read)
	}
}

// An execution tells what it was started with, and itself in figures.
func TestSteps_MetadataAndMetrics(t *testing.T) {
	t.Parallel()
	x, asked := openSite(t), &atomic.Int32{}
	model := newModelService(t, func(chatRequest, <-chan struct{}) chatReply {
		if asked.Add(1) == 1 {
			return chatReply{status: http.StatusServiceUnavailable}
		}
		return chatReply{text: []string{"at last"}}
	})
	x.saveProfile(t, model.profile("m"))
	x.save(t, agentFlow(`{user_prompt: "{{question}}", profileId: m, max_retries: 1, credit_cost: 2}`, ``, ``))
	id := x.execute(t, "talk", api.ExecuteRequest{Inputs: json.RawMessage(`{"question":"why?"}`)})
	x.reaches(t, id, engine.StatusSuccess)
	e := x.read(t, id)
	if string(e.Metadata) != `{"question":"why?"}` {
		t.Errorf("metadata %s", e.Metadata)
	}
	m := e.Metrics
	if e.TokensUsed == nil || m.TotalTokens != e.TokensUsed.TotalTokens || m.Cost != e.CreditsConsumed || m.Cost < 2 || m.DurationMS != e.DurationMS || m.WaitedMS != 0 {
		t.Errorf("%+v of an execution with %+v, %v credits, %d ms", m, e.TokensUsed, e.CreditsConsumed, e.DurationMS)
	}
	if !maps.Equal(m.Nodes, map[string]int{"completed": 2}) || m.Activations != 2 || m.Retries != 1 {
		t.Errorf("%+v", m)
	}
}
