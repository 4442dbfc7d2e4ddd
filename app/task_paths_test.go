package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/engine"
)

// citySchema is what tools of a city are called with.
const citySchema = `{"type":"object","required":["city"],"properties":{"city":{"type":"string"},"days":{"type":"integer"}}}`

// cityTools read and write, as their annotations say.
func cityTools() []toolDefinition {
	return []toolDefinition{
		{Name: "read", Description: "Reads about a city.", Schema: json.RawMessage(citySchema), ReadOnly: true},
		{Name: "look", Description: "Looks at a city.", Schema: json.RawMessage(citySchema), ReadOnly: true},
		{Name: "pay", Description: "Pays for a city.", Schema: json.RawMessage(citySchema)},
	}
}

// arguments answers decisions about arguments.
func arguments(text string) any {
	return map[string]any{"arguments": json.RawMessage(text)}
}

// inCity gives every call the same city.
func inCity(d decided) any {
	if d.name == "params" {
		return arguments(`{"city":"Hangzhou"}`)
	}
	return nil
}

// stepsOf tells the steps of a task shortly.
func stepsOf(e api.Execution) []string {
	var list []string
	for _, s := range e.Task.Steps {
		list = append(list, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", s.StepID, s.Tool, s.Status, s.Rung)))
	}
	return list
}

func agrees[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// Steps run by themselves where agent and user allow it, and each is confirmed where one of them, or the task, does not.
func TestTask_AutoAndManual(t *testing.T) {
	t.Parallel()
	off := false
	for _, c := range []struct {
		name        string
		agent, user bool
		task        *bool
		auto        bool
	}{
		{"both", true, true, nil, true}, {"agent alone", true, false, nil, false}, {"user alone", false, true, nil, false}, {"not this task", true, true, &off, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newToolbox(t, nil, cityTools()...)
			x := openTasks(t, newMind(t, []string{"box/read", "box/pay"}, inCity), b, func(a *api.Agent) { a.AutoExecute = c.agent })
			if c.user {
				x.auto()
			}
			e := x.ask(api.TaskRequest{AutoExecute: c.task})
			if !c.auto {
				for _, step := range []string{"step_1", "step_2"} {
					q := x.question(e, "confirm")
					if q.Risk != "low" || string(q.Arguments) != `{"city":"Hangzhou"}` {
						t.Errorf("%s is asked about with risk %q and arguments %s", step, q.Risk, q.Arguments)
					}
					if n := len(b.made()); step == "step_1" && n != 0 || step == "step_2" && n != 1 {
						t.Errorf("before %s is confirmed there were %d calls", step, n)
					}
					e = x.say(e.ExecutionID, `{"confirm":true}`)
				}
			}
			x.ended(e, engine.StatusSuccess)
			agrees(t, "calls", b.made(), []string{`read {"city":"Hangzhou"}`, `pay {"city":"Hangzhou"}`})
			agrees(t, "steps", stepsOf(e), []string{"step_1 box/read SUCCESS", "step_2 box/pay SUCCESS"})
			if e.TriggerInfo.TriggerType != "AGENT" || e.Task.FullAnswer != "All is well." || e.Task.FlowName != "a test" || e.Task.StepCount != 2 || e.Task.PlanID != "plan-1" {
				t.Errorf("the task is told as %+v", e.Task)
			}
			agrees(t, "decisions", x.mind.decisions(), []string{
				"flow_name", "flow_risk", "plan step_1", "params step_1", "tool_risk step_1", "plan step_2", "params step_2", "tool_risk step_2", "plan step_3", "summary", "facts",
			})
		})
	}
}

// A person who does not confirm, in any way of not confirming, cancels the task.
func TestTask_Refused(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{`{"confirm":false}`, `{}`, `null`} {
		t.Run(answer, func(t *testing.T) {
			t.Parallel()
			b := newToolbox(t, nil, cityTools()...)
			x := openTasks(t, newMind(t, []string{"box/read"}, inCity), b)
			e := x.ask(api.TaskRequest{})
			x.question(e, "confirm")
			e = x.say(e.ExecutionID, answer)
			x.ended(e, engine.StatusCanceled)
			agrees(t, "calls", b.made(), nil)
			agrees(t, "steps", stepsOf(e), []string{"step_1 box/read CANCELLED"})
			var told []string
			for _, f := range x.flow(e.ExecutionID) {
				told = append(told, f.name+" "+f.step)
			}
			want := []string{"flow.start ", "step.init step_1", "step.waiting_for_start step_1", "flow.stop ", "flow.resume ", "step.cancel step_1", "flow.cancel "}
			agrees(t, "events", told, want)
		})
	}
}

// In manual mode a call that fails for its parameters asks for them at once; the answer is merged, judged and confirmed anew, and called.
func TestTask_ParametersByAPerson(t *testing.T) {
	t.Parallel()
	b := newToolbox(t, func(c toolCall, _ <-chan struct{}) toolReply {
		if !strings.Contains(string(c.Arguments), "Hangzhou") {
			return toolReply{Failed: true, Text: "no such city"}
		}
		return toolReply{Text: `{"degrees":21}`}
	}, cityTools()...)
	m := newMind(t, []string{"box/read"}, func(d decided) any {
		switch d.name {
		case "params":
			return arguments(`{"city":"Atlantis"}`)
		case "analyze":
			return map[string]any{"is_param_error": true, "reason": "there is no such city"}
		case "missing":
			return map[string]any{"message": "Which city do you mean?", "params": map[string]any{"city": nil}}
		}
		return nil
	})
	x := openTasks(t, m, b)
	e := x.ask(api.TaskRequest{})
	x.question(e, "confirm")
	e = x.say(e.ExecutionID, `{"confirm":true}`)
	q := x.question(e, "param")
	if q.Description != "Which city do you mean?" || !strings.Contains(string(q.Schema), `"city"`) {
		t.Errorf("it is asked %+v", q)
	}
	e = x.say(e.ExecutionID, `{"content":{"city":"Hangzhou"},"description":""}`)
	q = x.question(e, "confirm") // these are other arguments than those that were confirmed
	agrees(t, "arguments", string(q.Arguments), `{"city":"Hangzhou"}`)
	agrees(t, "calls before", b.made(), []string{`read {"city":"Atlantis"}`})
	e = x.say(e.ExecutionID, `{"confirm":true}`)
	x.ended(e, engine.StatusSuccess)
	agrees(t, "calls", b.made(), []string{`read {"city":"Atlantis"}`, `read {"city":"Hangzhou"}`})
	agrees(t, "steps", stepsOf(e), []string{"step_1 box/read SUCCESS"})
	if !strings.Contains(string(e.Task.FilledSlots), "Hangzhou") {
		t.Errorf("what was filled in is told as %s", e.Task.FilledSlots)
	}
	if n := m.wanted("fill", "step_1"); n != 0 {
		t.Errorf("a model was asked %d times to merge what fits by itself", n)
	}
}

// Where steps run by themselves, arguments are derived anew five times before a person is asked.
func TestTask_FiveInnerTries(t *testing.T) {
	t.Parallel()
	b := newToolbox(t, func(toolCall, <-chan struct{}) toolReply { return toolReply{Failed: true, Text: "wrong city"} }, cityTools()...)
	m := newMind(t, []string{"box/read"}, func(d decided) any {
		switch d.name {
		case "params":
			return arguments(fmt.Sprintf(`{"city":"c%d"}`, d.times))
		case "analyze":
			return map[string]any{"is_param_error": true, "reason": "wrong city"}
		case "missing":
			return map[string]any{"message": "Which city?", "params": map[string]any{"city": nil}}
		}
		return nil
	})
	x := openTasks(t, m, b)
	x.auto()
	e := x.ask(api.TaskRequest{})
	x.question(e, "param")
	var want []string
	for i := range 6 {
		want = append(want, fmt.Sprintf(`read {"city":"c%d"}`, i+1))
	}
	agrees(t, "calls", b.made(), want)
	refused(t, x.call(t, taskUser, http.MethodPost, "/executions/"+e.ExecutionID+"/input", `{"node_id":"task","input_data":{}}`), http.StatusUnprocessableEntity, "invalid_input")
	if a := x.act(t, e.ExecutionID, api.ActionRequest{Action: "cancel"}); a.status != http.StatusOK {
		t.Fatalf("answer %d %s", a.status, a.body)
	}
	x.ended(x.rest(e.ExecutionID), engine.StatusCanceled)
}

// What a person gives is checked against the form before the question is used up, and wins over what the model makes of their words.
func TestTask_WhatAPersonGaveWins(t *testing.T) {
	t.Parallel()
	tools := []toolDefinition{{Name: "read", Description: "reads", ReadOnly: true, Schema: json.RawMessage(`{"type":"object","required":["rows"],"properties":{"rows":{"type":"integer"},"order":{"type":"string"}}}`)}}
	b := newToolbox(t, func(c toolCall, _ <-chan struct{}) toolReply {
		if strings.Contains(string(c.Arguments), `"rows":1,`) || string(c.Arguments) == `{"rows":1}` {
			return toolReply{Failed: true, Text: "too few rows"}
		}
		return toolReply{Text: `{"read":true}`}
	}, tools...)
	m := newMind(t, []string{"box/read"}, func(d decided) any {
		switch d.name {
		case "params":
			return arguments(`{"rows":1}`)
		case "analyze":
			return map[string]any{"is_param_error": true, "reason": "too few"}
		case "missing":
			return map[string]any{"message": "How many?", "params": map[string]any{"rows": nil, "order": nil}}
		case "fill":
			return arguments(`{"rows":999,"order":"newest first"}`)
		}
		return nil
	})
	x := openTasks(t, m, b)
	e := x.ask(api.TaskRequest{})
	e = x.say(e.ExecutionID, `{"confirm":true}`)
	q := x.question(e, "param")
	for _, given := range []string{`{"content":{"rows":"many"}}`, `{"content":{"rows":null}}`, `{"content":{"row":5}}`, `null`} {
		refused(t, x.call(t, taskUser, http.MethodPost, "/executions/"+e.ExecutionID+"/input", `{"node_id":"`+q.NodeID+`","input_data":`+given+`}`), http.StatusUnprocessableEntity, "invalid_input")
	}
	if now := x.question(x.rest(e.ExecutionID), "param"); now.InteractionID != q.InteractionID {
		t.Errorf("the question %s was used up; now it is %s", q.InteractionID, now.InteractionID)
	}
	e = x.say(e.ExecutionID, `{"content":{"rows":5},"description":"newest first, please"}`)
	agrees(t, "arguments", string(x.question(e, "confirm").Arguments), `{"rows":5,"order":"newest first"}`)
	e = x.say(e.ExecutionID, `{"confirm":true}`)
	x.ended(e, engine.StatusSuccess)
	if made := b.made(); len(made) != 2 || !strings.Contains(made[1], `"rows":5`) || strings.Contains(made[1], "999") {
		t.Errorf("calls %q", made)
	}
	agrees(t, "slots", string(e.Task.FilledSlots), `{"step_1":{"rows":5}}`)
}

// The third failure that counts fails the task, and what was done stays readable.
func TestTask_ThreeFailures(t *testing.T) {
	t.Parallel()
	b := newToolbox(t, func(c toolCall, _ <-chan struct{}) toolReply {
		if c.Tool == "look" {
			return toolReply{Text: `{"seen":1}`}
		}
		return toolReply{Failed: true, Text: "out of order"}
	}, cityTools()...)
	m := newMind(t, []string{"box/look", "box/read", "box/read", "box/read", "box/read"}, inCity)
	x := openTasks(t, m, b)
	x.auto()
	e := x.ask(api.TaskRequest{})
	x.ended(e, engine.StatusError)
	if e.Task.FailureCount != 3 || e.Error == nil || !strings.Contains(e.Error.ErrorMessage, "out of order") {
		t.Errorf("it has failed %d times with %+v", e.Task.FailureCount, e.Error)
	}
	agrees(t, "steps", stepsOf(e), []string{"step_1 box/look SUCCESS", "step_2 box/read ERROR", "step_3 box/read ERROR", "step_4 box/read ERROR"})
	data, err := x.as(taskUser).Context(t.Context(), e.ExecutionID, "")
	if err != nil {
		t.Fatal(err)
	}
	if got := string(data.RuntimeMetadata["seen"]); got != "1" || !data.StepResults["step_1"].IsSuccess {
		t.Errorf("what the first step left is %s in %+v", got, data.StepResults)
	}
}

// After as many steps as there may be it is FINAL, whatever the plan says.
func TestTask_StepLimit(t *testing.T) {
	t.Parallel()
	b := newToolbox(t, nil, cityTools()...)
	m := newMind(t, slices.Repeat([]string{"box/read"}, 100), inCity)
	x := openTasks(t, m, b)
	x.auto()
	e := x.ask(api.TaskRequest{})
	x.ended(e, engine.StatusSuccess)
	if n := len(b.made()); n != 25 || e.Task.StepCount != 25 || m.wanted("plan", "step_26") != 0 {
		t.Errorf("there were %d calls and %d steps, and a plan for one more %d times", n, e.Task.StepCount, m.wanted("plan", "step_26"))
	}
}

// A model that plans nothing of use, and one that plans tools that there are not, end in FINAL after three tries.
func TestTask_NoPlan(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		plan any
		asks int // how often the model is asked: three tries, each with three answers where they have the wrong shape
	}{
		"words": {"I think we should read.", 9}, "unknown tool": {map[string]any{"tool_id": "box/fly", "description": "up"}, 3},
		"its old spelling": {map[string]any{"tool_id": "FIANL", "description": "done"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newToolbox(t, nil, cityTools()...)
			m := newMind(t, nil, func(d decided) any {
				if d.name == "plan" {
					return c.plan
				}
				return nil
			})
			x := openTasks(t, m, b)
			e := x.ask(api.TaskRequest{})
			x.ended(e, engine.StatusSuccess)
			if got := m.wanted("plan", "step_1"); got != c.asks || len(b.made()) != 0 || e.Task.FullAnswer == "" {
				t.Errorf("it was planned %d times, want %d; calls %q", got, c.asks, b.made())
			}
			if name == "unknown tool" && !strings.Contains(m.asked[len(m.asked)-3].Messages[1].text(), "box/fly") {
				t.Errorf("the last try to plan was not told of the tool that there is not: %s", m.asked[len(m.asked)-3].Messages[1].text())
			}
		})
	}
}

// A server that closes its connection within a call is started again; a call that may be repeated is made once more, one that may not is
// for a person to say what became of it.
func TestTask_ConnectionCloses(t *testing.T) {
	t.Parallel()
	for tool, repeated := range map[string]bool{"read": true, "pay": false} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			first := make(chan struct{}, 1)
			first <- struct{}{}
			b := newToolbox(t, func(toolCall, <-chan struct{}) toolReply {
				select {
				case <-first:
					return toolReply{Die: true}
				default:
					return toolReply{Text: `{"done":true}`}
				}
			}, cityTools()...)
			x := openTasks(t, newMind(t, []string{"box/" + tool}, inCity), b)
			x.auto()
			e := x.ask(api.TaskRequest{})
			if !repeated {
				q := x.question(e, "outcome_unknown")
				shown, err := x.as(taskUser).Interaction(t.Context(), q.InteractionID)
				if title := gjson.GetBytes(shown.RequestData, "title").Str; err != nil || title != "Was box/pay done?" {
					t.Errorf("it is asked %q (%v)", title, err)
				}
				agrees(t, "calls", len(b.made()), 1)
				e = x.say(e.ExecutionID, `{"outcome":"done","result":{"receipt":7}}`)
			}
			x.ended(e, engine.StatusSuccess)
			want := 1
			if repeated {
				want = 2
			}
			agrees(t, "calls", len(b.made()), want)
			agrees(t, "steps", stepsOf(e), []string{"step_1 box/" + tool + " SUCCESS"})
		})
	}
}

// A failure goes up the rungs: another tool, the step repaired, the rest planned anew; references to what was done before stay good.
func TestTask_Rungs(t *testing.T) {
	t.Parallel()
	b := newToolbox(t, func(c toolCall, _ <-chan struct{}) toolReply {
		switch {
		case c.Tool == "look" && !strings.Contains(string(c.Arguments), "days"):
			return toolReply{Text: `{"found":{"city":"Suzhou"}}`}
		case c.Tool == "pay" && strings.Contains(string(c.Arguments), "Suzhou"):
			return toolReply{Text: "paid"}
		}
		return toolReply{Failed: true, Text: "no"}
	}, cityTools()...)
	m := newMind(t, []string{"box/look", "box/read"}, func(d decided) any {
		switch d.name + " " + d.step {
		case "params step_1":
			return arguments(`{"city":"Hangzhou"}`)
		case "params step_2", "params step_2_2", "params step_2_3":
			return arguments(`{"city":"Hangzhou","days":1}`)
		case "params step_2_4":
			return arguments(`{"city":"{{step_1.outputs.found.city}}"}`)
		case "alternative step_2":
			return map[string]any{"tool_id": "box/look", "description": "look instead"}
		case "repair step_2_2":
			return map[string]any{"tool_id": "box/read", "description": "read once more"}
		case "replan step_2_3":
			return map[string]any{"description": "pay", "steps": []any{map[string]any{"tool_id": "box/pay", "description": "pay for what was found"}}}
		case "plan step_2_3": // after which it is planned anew
			return map[string]any{"tool_id": "box/pay", "description": "pay for what was found"}
		}
		return nil
	})
	x := openTasks(t, m, b, func(a *api.Agent) { a.Limits.Failures = 10 })
	x.auto()
	e := x.ask(api.TaskRequest{})
	x.ended(e, engine.StatusSuccess)
	agrees(t, "steps", stepsOf(e), []string{
		"step_1 box/look SUCCESS", "step_2 box/read ERROR", "step_2_2 box/look ERROR alternative", "step_2_3 box/read ERROR repair", "step_2_4 box/pay SUCCESS replan",
	})
	if e.Task.PlanID != "plan-2" {
		t.Errorf("the plan is %q", e.Task.PlanID)
	}
	agrees(t, "last call", b.made()[len(b.made())-1], `pay {"city":"Suzhou"}`)
}

// What bounds a task is the agent's to say.
func TestTask_LimitsAreTheAgents(t *testing.T) {
	t.Parallel()
	b := newToolbox(t, nil, cityTools()...)
	m := newMind(t, nil, func(d decided) any {
		if d.name == "plan" {
			return "I think we should read."
		}
		return nil
	})
	x := openTasks(t, m, b, func(a *api.Agent) {
		a.Limits = api.AgentLimits{PlanTries: 2, JSONTries: 2, HistoryRounds: 1}
	})
	for _, question := range []string{"the first", "the second", "the third"} {
		x.ended(x.ask(api.TaskRequest{Question: question, ConversationID: "talk"}), engine.StatusSuccess)
	}
	agrees(t, "plans of three tasks", m.wanted("plan", "step_1"), 3*2*2)
	last := m.asked[len(m.asked)-1-1].Messages[1].text() // the summary, before the facts
	if !strings.Contains(last, "the second") || strings.Contains(last, "the first") {
		t.Errorf("the third task was told %s", last)
	}
}
