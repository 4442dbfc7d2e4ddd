package app

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"tandem/api"
	"tandem/engine"
	"tandem/host"
)

// A step of a task is what people name: its question, what is done with it and where the task stands go by the step's id.
func TestTask_IsAddressedByItsSteps(t *testing.T) {
	t.Parallel()
	b := newToolbox(t, nil, cityTools()...)
	x := openTasks(t, newMind(t, []string{"box/read", "box/pay", "box/look"}, inCity), b)
	e := x.ask(api.TaskRequest{Metadata: json.RawMessage(`{"city":"Hangzhou"}`), ConversationID: "talk"})
	x.question(e, "confirm")
	c := x.checkpoint(t, e.ExecutionID)
	listed := want[api.Executions](t, x.call(t, taskUser, http.MethodGet, "/agents/helper/tasks", nil), http.StatusOK)
	if len(listed.Executions) != 1 || listed.Executions[0].TaskName != "a test" || listed.Executions[0].ConversationID == "" {
		t.Errorf("the listing of tasks: %+v", listed)
	}
	if c.AppID != "helper" || c.ExecutorName != "a test" || c.StepID != "step_1" || c.StepName != "box/read" || c.StepStatus != "WAITING" || string(c.Data["input"]) != `{"city":"Hangzhou"}` {
		t.Errorf("the checkpoint is %+v", c)
	}
	input := func(body string) answer {
		return x.call(t, taskUser, "POST", "/executions/"+e.ExecutionID+"/input", json.RawMessage(body))
	}
	if a := input(`{"node_id":"step_2","input_data":{"confirm":true}}`); a.status != http.StatusNotFound {
		t.Errorf("a step that is not planned answers %d: %s", a.status, a.body)
	}
	if a := input(`{"node_id":"step_1","input_data":{"confirm":true}}`); a.status != http.StatusOK {
		t.Fatalf("the step's question cannot be answered: %d %s", a.status, a.body)
	}
	e = x.rest(e.ExecutionID)
	x.question(e, "confirm")
	if a := input(`{"node_id":"step_1","input_data":{"confirm":true}}`); a.status != http.StatusConflict {
		t.Errorf("a step that asks nothing answers %d: %s", a.status, a.body)
	}
	// The second step is left out, whatever is being decided about it.
	if _, err := x.as(taskUser).Act(t.Context(), e.ExecutionID, api.ActionRequest{Action: "skip_node", NodeID: "step_2"}); err != nil {
		t.Fatal(err)
	}
	e = x.rest(e.ExecutionID)
	if a := input(`{"input_data":{"confirm":true}}`); a.status != http.StatusOK {
		t.Fatalf("the only question cannot be answered without a name: %d %s", a.status, a.body)
	}
	e = x.rest(e.ExecutionID)
	x.ended(e, engine.StatusSuccess)
	agrees(t, "steps", stepsOf(e), []string{"step_1 box/read SUCCESS", "step_2 box/pay SKIPPED", "step_3 box/look SUCCESS"})
	agrees(t, "calls", b.made(), []string{`read {"city":"Hangzhou"}`, `look {"city":"Hangzhou"}`})
	var told []string
	for _, f := range x.flow(e.ExecutionID) {
		told = append(told, strings.TrimSpace(f.name+" "+f.step))
	}
	agrees(t, "flow", told, []string{
		"flow.start", "step.init step_1", "step.waiting_for_start step_1", "flow.stop", "flow.resume", "step.input step_1", "step.output step_1",
		"step.init step_2", "step.waiting_for_start step_2", "flow.stop", "flow.resume", "step.skip step_2",
		"step.init step_3", "step.waiting_for_start step_3", "flow.stop", "flow.resume", "step.input step_3", "step.output step_3", "text.add summary", "flow.success",
	})
	context, err := x.as(taskUser).Context(t.Context(), e.ExecutionID, "")
	if err != nil {
		t.Fatal(err)
	}
	if context.PlanID != "plan-1" || context.StepResults["step_1"].ToolID != "box/read" || string(context.InitialMetadata["city"]) != `"Hangzhou"` {
		t.Errorf("the context is %+v", context)
	}
	list, err := x.as(taskUser).Activation(t.Context(), e.ExecutionID, "task[0]/step_3")
	if err != nil || list.NodeName != "box/look" || list.NodeType != "TOOL" || string(list.InputData) != `{"city":"Hangzhou"}` {
		t.Errorf("the call is told as %+v, %v", list, err)
	}
}

// The node that has given a task to an agent shows what the agent does, and passes its questions on.
func TestTask_IsShownByItsParent(t *testing.T) {
	t.Parallel()
	b := newToolbox(t, nil, cityTools()...)
	x := openTasks(t, newMind(t, []string{"box/read", "box/pay"}, inCity), b)
	x.save(t, `{"metadata":{"id":"parent","name":"Parent"},"nodes":[
 {"id":"start","type":"TRIGGER","subtype":"MANUAL"},
 {"id":"ask","name":"Ask","type":"AI_AGENT","subtype":"MCP_AGENT","configurations":{"agent_id":"helper","question":"do it"}}],
"connections":[{"id":"c","from_node":"start","to_node":"ask"}]}`)
	id := x.execute(t, "parent", api.ExecuteRequest{})
	child := engine.ChildID(id, "ask", 0)
	x.opens(t, child, 1)
	e := x.read(t, id)
	shown := func() (list []string) {
		for _, n := range e.NodeExecutions["ask"].AttachedExecutions[child] {
			list = append(list, n.NodeID+" "+n.NodeName+" "+n.Status)
		}
		return list
	}
	agrees(t, "steps below", shown(), []string{"step_1 box/read waiting_input"})
	if len(e.Questions) != 1 || e.Questions[0].ExecutionID != child || e.Questions[0].Purpose != "confirm" {
		t.Fatalf("the parent asks %+v", e.Questions)
	}
	for range 2 {
		i := x.opens(t, child, 1)[0]
		if a := x.call(t, taskUser, "POST", "/executions/"+id+"/input", api.InputRequest{NodeID: "ask", InteractionID: i.ID, InputData: json.RawMessage(`{"confirm":true}`)}); a.status != http.StatusOK {
			t.Fatalf("the parent does not pass the answer on: %d %s", a.status, a.body)
		}
	}
	x.reaches(t, id, engine.StatusSuccess)
	e = x.read(t, id)
	agrees(t, "steps in the end", shown(), []string{"step_1 box/read completed", "step_2 box/pay completed"})
	// What the task does may change after the parent has ended, so the parent is told anew each time.
	known := x.hub.Known(host.Ref{Workspace: "default", Execution: id})
	if known == nil {
		t.Fatal("nothing is kept of the parent")
	}
	if answer, kept := known.Answer(host.Reader{}); kept {
		t.Errorf("an answer is kept that tells what another execution does: %s", answer)
	}
}
