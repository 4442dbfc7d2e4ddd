package story

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tandem/agent"
	"tandem/api"
	"tandem/engine"
	"tandem/fault"
	"tandem/story/storytest"
	"tandem/workflow"
)

// taskDefinition is an agent as it is kept.
const taskDefinition = `{"metadata":{"id":"agent:forecaster","name":"Forecaster","version":"1.0"},"nodes":[
 {"id":"start","name":"start","type":"TEST","subtype":"STEP","configurations":{}},
 {"id":"task","name":"task","type":"CALL","subtype":"TASK","configurations":{"llm_profile":"demo","mcp_servers":["weather"]}}],
"connections":[{"id":"task","from_node":"start","to_node":"task","output_key":"result"}]}`

// newTaskStage returns a task that is about to be named.
func newTaskStage(t testing.TB, config agent.Config) *staged {
	t.Helper()
	st := newStagedOf(t, taskDefinition, `{"workflow_id":"agent:forecaster","language":"en",
		"trigger":{"question":"Will it rain?","metadata":{"city":"Paris"},"conversation_id":"conv","session_id":"s","documents":["a note"]},
		"initial":{"city":"Paris","question":"Will it rain?","conversation_id":"conv","session_id":"s","documents":["a note"]}}`)
	st.Row(storytest.Plain(engine.ExecutionStarted{}))
	st.Row(st.Completes("start", "result", `{"question":"Will it rain?"}`))
	st.leads(config)
	return st
}

// leads begins to lead the task.
func (st *staged) leads(config agent.Config) {
	st.T.Helper()
	raw, err := json.Marshal(config)
	if err != nil {
		st.T.Fatal(err)
	}
	run := st.Run(agent.TaskNode)
	st.Done(agent.TaskNode)
	st.Row(func(put func(json.RawMessage) engine.Ref) engine.Fact {
		return engine.ScopeOpened{Attempt: run.Attempt, Program: agent.Name, Config: raw, State: put(json.RawMessage(`{}`)), Count: 1, Discard: true}
	})
}

func inTask(name string) engine.ActivationID {
	return engine.ActivationID(agent.TaskNode + "[0]/" + name)
}

// replies is a step of the task that ends well.
func (st *staged) replies(name, result string, reply any) storytest.Fact {
	st.T.Helper()
	run := st.Run(inTask(name))
	st.Done(inTask(name))
	var raw json.RawMessage
	if reply != nil {
		var err error
		if raw, err = json.Marshal(reply); err != nil {
			st.T.Fatal(err)
		}
	}
	return func(put func(json.RawMessage) engine.Ref) engine.Fact {
		return engine.NodeCompleted{Attempt: run.Attempt, Reply: raw, Outputs: []engine.Output{{Key: "result", Ref: put(json.RawMessage(result))}}}
	}
}

// says plays rows, each the end of one step.
func (st *staged) says(name, result string, reply any) {
	st.T.Helper()
	st.Row(st.replies(name, result, reply))
}

// named plays the beginning, up to the first plan, with a risk.
func (st *staged) named(risk agent.Risk) {
	st.T.Helper()
	st.says("flow_name", `{"flow_name":"Weather for Paris"}`, nil)
	st.says("flow_risk", `{"risk":"`+string(risk)+`","reason":"reads only"}`, agent.RiskReply{Risk: risk})
}

// chosen plays a decision for a tool, and what leads to its call.
func (st *staged) chosen(decision, tool, number string, risk agent.Risk) {
	st.T.Helper()
	st.says(decision, `{"tool_id":"`+tool+`","description":"why `+tool+`"}`, agent.Choice{Tool: tool, Effect: workflow.Idempotent})
	st.judged(number, `{"city":"Paris"}`, risk)
}

// judged plays the arguments and their judgement.
func (st *staged) judged(number, arguments string, risk agent.Risk) {
	st.T.Helper()
	st.says("params_"+number, arguments, nil)
	st.says("risk_"+number, `{"risk":"`+string(risk)+`","reason":"because"}`, agent.RiskReply{Risk: risk})
}

// question plays a question, answer its answer: what the asking step makes of it.
func (st *staged) question(name, purpose, request string) {
	st.T.Helper()
	st.Row(st.AsksFor(inTask(name), purpose, request))
}

func (st *staged) answer(name, result string, reply any) {
	st.T.Helper()
	st.Row(storytest.Plain(engine.AskAnswered{Ask: st.Asks[len(st.Asks)-1], Outcome: engine.AskDone}))
	st.says(name, result, reply)
}

// finishes plays the end of a task.
func (st *staged) finishes(plan string) {
	st.T.Helper()
	st.says(plan, `{"tool_id":"FINAL","description":"done"}`, agent.Choice{Tool: "FINAL"})
	st.says("summary", `{"answer":"It will rain.","reasoning":"clouds","facts":["rain on Monday"]}`, nil)
	st.Row(st.Completes(agent.TaskNode, "result", `{"answer":"It will rain."}`))
}

// flowTold is the flow vocabulary of a stage: the words with what they are about.
func flowTold(t testing.TB, frames []Frame) []string {
	t.Helper()
	list := []string{}
	for _, f := range frames {
		e := decode[api.Event](t, f.Body)
		text := e.EventType
		if e.Step != nil {
			text += " " + e.Step.StepID + " " + e.Step.StepName + " " + e.Step.StepStatus
		}
		list = append(list, text)
	}
	return list
}

func lines(text string) []string { return strings.Split(strings.TrimSpace(text), "\n") }

func TestFlow_TaskInAutoMode(t *testing.T) {
	t.Parallel()
	st := newTaskStage(t, agent.Config{Auto: true})
	st.named(agent.Low)
	st.says("plan_1", `{"tool_id":"weather/now","description":"look","inactive_servers":["mail"]}`, agent.Choice{Tool: "weather/now", Effect: workflow.Idempotent})
	st.judged("1", `{"city":"Paris"}`, agent.Low)
	st.says("step_1", `{"rain":true,"message":"rain"}`, nil)
	st.chosen("plan_2", "weather/later", "2", agent.Low)
	st.says("step_2", `{"message":"more rain"}`, nil)
	st.finishes("plan_3")
	frames, ended := st.reader(VocabularyFlow, "").drain(t)
	want := `flow.start
step.init step_1 weather/now INIT
step.input step_1 weather/now RUNNING
step.output step_1 weather/now SUCCESS
step.init step_2 weather/later INIT
step.input step_2 weather/later RUNNING
step.output step_2 weather/later SUCCESS
text.add summary FINAL SUCCESS
flow.success`
	if diff := cmp.Diff(lines(want), flowTold(t, frames)); diff != "" || !ended {
		t.Fatalf("ended %v, frames (-want +got):\n%s", ended, diff)
	}
	for i, want := range []string{
		`{"risk":"low","reason":"reads only"}`, `{"inactive_servers":["mail"]}`, `{"city":"Paris"}`, `{"rain":true,"message":"rain"}`, `{}`, `{"city":"Paris"}`, `{"message":"more rain"}`,
		`{"text":"It will rain.","activation_id":"task[0]/summary","attempt":1,"offset":0,"snapshot":true}`, `{}`,
	} {
		e := decode[api.Event](t, frames[i].Body)
		if string(e.Data) != want {
			t.Errorf("data of %s: %s, want %s", e.EventType, e.Data, want)
		}
		if e.Executor == nil || e.Executor.ExecutorName != "Weather for Paris" {
			t.Errorf("executor of %s: %+v", e.EventType, e.Executor)
		}
	}
}

func TestFlow_TaskWithPeople(t *testing.T) {
	t.Parallel()
	st := newTaskStage(t, agent.Config{})
	st.named(agent.High)
	st.question("confirm_flow", "confirm", `{"interaction_type":"approval","risk":"high","reason":"it deletes"}`)
	st.answer("confirm_flow", `{"confirm":true}`, agent.ConfirmReply{Confirmed: true})
	st.chosen("plan_1", "disk/wipe", "1", agent.Medium)
	st.question("confirm_1", "confirm", `{"interaction_type":"approval","step_id":"step_1","tool":"disk/wipe","risk":"medium","reason":"because","arguments":{"city":"Paris"}}`)
	st.answer("confirm_1", `{"confirm":true}`, agent.ConfirmReply{Confirmed: true})
	st.Row(st.Fails(inTask("step_1"), agent.Failure(fault.New(fault.ToolError, "no city"), agent.Unclear, false)))
	st.says("analyze_1", `{"is_param_error":true,"reason":"city"}`, agent.AnalyzeReply{IsParamError: true})
	st.says("missing_1", `{"message":"Which city?","params":{"city":null},"schema":{"type":"object"}}`, nil)
	st.question("ask_1", "param", `{"interaction_type":"input","step_id":"step_1","message":"Which city?","params":{"city":null},"schema":{"type":"object"}}`)
	st.answer("ask_1", `{"content":{"city":"Rome"},"description":"not Paris"}`, agent.GivenReply{Given: true})
	st.says("fill_1", `{"city":"Rome"}`, nil)
	st.says("risk_1_2", `{"risk":"low","reason":"Rome"}`, agent.RiskReply{Risk: agent.Low})
	st.question("confirm_1_2", "confirm", `{"interaction_type":"approval","step_id":"step_1","tool":"disk/wipe","risk":"low","reason":"Rome","arguments":{"city":"Rome"}}`)
	st.answer("confirm_1_2", `{}`, agent.ConfirmReply{})
	frames, ended := st.reader(VocabularyFlow, "").drain(t)
	want := `flow.start
step.waiting_for_start confirm_flow Weather for Paris WAITING
flow.stop
flow.resume
step.init step_1 disk/wipe INIT
step.waiting_for_start step_1 disk/wipe WAITING
flow.stop
flow.resume
step.input step_1 disk/wipe RUNNING
step.error step_1 disk/wipe ERROR
step.waiting_for_param step_1 disk/wipe PARAM
flow.stop
flow.resume
step.waiting_for_start step_1 disk/wipe WAITING
flow.stop
flow.resume
step.cancel step_1 disk/wipe CANCELLED
flow.cancel`
	if diff := cmp.Diff(lines(want), flowTold(t, frames)); diff != "" || !ended {
		t.Fatalf("ended %v, frames (-want +got):\n%s", ended, diff)
	}
	param := decode[api.Event](t, frames[10].Body)
	for _, part := range []string{`"message":"Which city?"`, `"params":{"city":null}`, `"schema":{"type":"object"}`, `"interaction_id":"`} {
		if !strings.Contains(string(param.Data), part) {
			t.Errorf("the request for parameters lacks %s: %s", part, param.Data)
		}
	}
	if start := decode[api.Event](t, frames[5].Body); !strings.Contains(string(start.Data), `"risk":"medium","reason":"because"`) || !strings.Contains(string(start.Data), `"arguments":{"city":"Paris"}`) {
		t.Errorf("the confirmation says %s", start.Data)
	}
}
