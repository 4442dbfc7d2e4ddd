package app

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/engine"
)

// What is logged about the steps inside a node is found with the node, and every step is told with its type and what it was given.
func TestInnerSteps_AreToldWithTheirNode(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	broken := newModelService(t, func(chatRequest, <-chan struct{}) chatReply { return chatReply{status: http.StatusUnauthorized} })
	x.saveProfile(t, broken.profile("main"))
	x.save(t, agentFlow(`{profile_id: main, prompt: "hi {{city}}", max_retries: 0}`, "", ""))
	id := x.execute(t, "talk", api.ExecuteRequest{Inputs: json.RawMessage(`{"city":"Bern"}`)})
	x.reaches(t, id, engine.StatusError)

	logs := want[api.Logs](t, x.call(t, "viewer", "GET", "/executions/"+id+"/logs?node_id=agent&level=ERROR", nil), http.StatusOK)
	steps := map[string]bool{}
	for _, line := range logs.Lines {
		if line.NodeID != "agent" {
			t.Errorf("a line of %q", line.NodeID)
		}
		steps[line.InnerStep] = true
	}
	if !steps["complete_1"] {
		t.Errorf("the lines of the node are %+v", logs.Lines)
	}

	history := want[api.History](t, x.call(t, "viewer", "GET", "/executions/"+id+"/history", nil), http.StatusOK)
	told := false
	for _, r := range history.History {
		if s := r.Step; s != nil && s.InnerStep == "complete_1" {
			told = true
			if s.NodeID != "agent" || s.StepType != "AI_AGENT.LLM" || gjson.GetBytes(s.InputData, "messages.0.content").Str != "hi Bern" {
				t.Errorf("the step is %+v with %s", s, s.InputData)
			}
		}
	}
	if !told {
		t.Errorf("the history is %+v", history.History)
	}

	told = false
	events, _ := x.follow(t, "viewer", "/executions/"+id+"/events?vocabulary=flow", "", func(h heard) bool { return strings.HasPrefix(h.Name, "flow.failed") })
	for _, h := range events {
		if s := gjson.Get(h.Data, "step"); s.Get("inner_step").Str == "complete_1" {
			told = true
			if s.Get("step_type").Str != "AI_AGENT.LLM" || s.Get("node_id").Str != "agent" {
				t.Errorf("%s tells %s", h.Name, s.Raw)
			}
		}
	}
	if !told {
		t.Errorf("the events are %+v", events)
	}
}

// The text of a node that is for the user reaches who follows the execution, whole, also where it does not come in pieces.
func TestToUser_WithoutPieces(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	release := make(chan struct{})
	model := newModelService(t, func(chatRequest, <-chan struct{}) chatReply {
		<-release
		return chatReply{text: []string{"Hello ", "you"}}
	})
	x.saveProfile(t, model.profile("main"))
	x.save(t, agentFlow(`{profile_id: main, prompt: hi, to_user: true}`, "", `  - {id: plain, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true, to_user: true}, input_params: {response: and more}}`)+
		"  - {from_node: agent, to_node: plain}\n")
	id := x.execute(t, "talk", api.ExecuteRequest{})
	begun := false
	events, _ := x.follow(t, "viewer", "/executions/"+id+"/events?vocabulary=flow", "", func(h heard) bool {
		if !begun {
			begun = true
			close(release)
		}
		return h.Name == "flow.success"
	})
	said := map[string]string{}
	for _, h := range events {
		if h.Name == "text.add" {
			said[gjson.Get(h.Data, "step.node_id").Str] += gjson.Get(h.Data, "data.text").Str
		}
	}
	if said["agent"] != "Hello you" || said["plain"] != "and more" {
		t.Errorf("what is for the user: %q", said)
	}
}

// A conversion that fails after it has printed tells the node that it fails what it said.
func TestConversion_TellsTheTargetWhatItPrinted(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.save(t, `
metadata: {id: prints, name: prints, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: out, description: d, type: CALL, subtype: EMPTY}
connections:
  - {from_node: start, to_node: out, conversion_function: "(x) => { console.log('looking at', x.n); throw new Error('no') }"}
`)
	id := x.execute(t, "prints", api.ExecuteRequest{Inputs: json.RawMessage(`{"n":7}`)})
	x.reaches(t, id, engine.StatusError)
	e := x.read(t, id).NodeExecutions["out"].Error
	if e == nil || e.ErrorCode != "conversion_failed" || !strings.Contains(string(rawObject(t, e.ErrorDetails)), "looking at 7") {
		t.Errorf("the error is %+v", e)
	}
	logs := want[api.Logs](t, x.call(t, "viewer", "GET", "/executions/"+id+"/logs?node_id=out", nil), http.StatusOK)
	if !strings.Contains(string(rawObject(t, logs.Lines)), "looking at 7") {
		t.Errorf("the lines of the node are %+v", logs.Lines)
	}
}

// The history of an execution tells which others were forked from it, and by whom.
func TestHistory_TellsForks(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.save(t, "metadata: {id: source, name: source, description: d}\nnodes:\n  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}\n  - {id: out, description: d, type: CALL, subtype: EMPTY}\nconnections:\n  - {from_node: start, to_node: out}\n")
	id := x.execute(t, "source", api.ExecuteRequest{})
	x.reaches(t, id, engine.StatusSuccess)
	forked := want[api.ActionResponse](t, x.act(t, id, api.ActionRequest{Action: "fork", NodeID: "out", Reason: "again"}), http.StatusOK).ExecutionID
	x.reaches(t, forked, engine.StatusSuccess)
	history := want[api.History](t, x.call(t, "viewer", "GET", "/executions/"+id+"/history", nil), http.StatusOK)
	if len(history.Forks) != 1 || history.Forks[0].ExecutionID != forked || history.Forks[0].By != "operator" || history.Forks[0].At == 0 {
		t.Errorf("the forks are %+v", history.Forks)
	}
	if own := want[api.History](t, x.call(t, "viewer", "GET", "/executions/"+forked+"/history", nil), http.StatusOK); len(own.Forks) != 0 || own.Fork == nil {
		t.Errorf("the fork tells %+v, %+v", own.Forks, own.Fork)
	}
}
