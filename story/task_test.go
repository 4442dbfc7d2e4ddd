package story

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tandem/agent"
	"tandem/api"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/identity"
	"tandem/store"
	"tandem/story/storytest"
	"tandem/workflow"
)

// readTask reads the stage as a request would.
func (st *staged) readTask() (*Reading, *api.Execution, *api.Checkpoint) {
	st.T.Helper()
	ctx := st.T.Context()
	r, err := st.lib.ReadExecution(ctx, storytest.User(), storytest.Execution)
	if err != nil {
		st.T.Fatal(err)
	}
	e, err := r.tellExecution(ctx)
	if err != nil {
		st.T.Fatal(err)
	}
	c, err := r.checkpoint(e)
	if err != nil {
		st.T.Fatal(err)
	}
	return r, e, c
}

// taskLine is what is told of the steps in one line.
func taskLine(task *api.Task) string {
	var list []string
	for _, s := range task.Steps {
		text := s.StepID + "=" + s.Tool + ":" + s.Status
		if s.Rung != "" {
			text += "/" + s.Rung
		}
		if s.PlanID != "plan-1" {
			text += "/" + s.PlanID
		}
		list = append(list, text)
	}
	return strings.Join(list, " ")
}

func TestTask_IsToldAtEveryPoint(t *testing.T) {
	t.Parallel()
	st := newTaskStage(t, agent.Config{})
	want := func(when, steps, step string) *api.Execution {
		t.Helper()
		_, e, c := st.readTask()
		if got := taskLine(e.Task); got != steps {
			t.Errorf("%s the steps are %q, want %q", when, got, steps)
		}
		if got := c.StepID + " " + c.StepName + " " + c.StepStatus; got != step {
			t.Errorf("%s it stands at %q, want %q", when, got, step)
		}
		return e
	}
	want("at the beginning", "", "flow_name Name of the task RUNNING")
	st.named(agent.Medium)
	st.question("confirm_flow", "confirm", `{"interaction_type":"approval","risk":"medium"}`)
	want("before it may begin", "", "confirm_flow Weather for Paris WAITING")
	st.answer("confirm_flow", `{"confirm":true}`, agent.ConfirmReply{Confirmed: true})
	want("while it is planned", "", "confirm_flow Weather for Paris SUCCESS")
	st.says("plan_1", `{"tool_id":"weather/now","description":"to know"}`, agent.Choice{Tool: "weather/now", Effect: workflow.Idempotent})
	want("while arguments are derived", "step_1=weather/now:INIT", "step_1 weather/now INIT")
	st.judged("1", `{"city":"Paris"}`, agent.Low)
	st.question("confirm_1", "confirm", `{"interaction_type":"approval","step_id":"step_1","arguments":{"city":"Paris"}}`)
	want("before the call", "step_1=weather/now:WAITING", "step_1 weather/now WAITING")
	_, _, c := st.readTask()
	if c.AppID != "forecaster" || c.ExecutorName != "Weather for Paris" || c.ExecutorStatus != "WAITING" || c.StepType != "weather/now" || string(c.Data["input"]) != `{"city":"Paris"}` || len(c.Data["question"]) == 0 {
		t.Errorf("the checkpoint is %+v", c)
	}
	st.answer("confirm_1", `{"confirm":true}`, agent.ConfirmReply{Confirmed: true})
	want("in the call", "step_1=weather/now:RUNNING", "step_1 weather/now RUNNING")
	st.Row(st.Fails(inTask("step_1"), agent.Failure(fault.New(fault.InvalidInput, "which Paris?"), agent.Parameters, false)))
	want("after a failure", "step_1=weather/now:ERROR", "step_1 weather/now ERROR")
	st.says("missing_1", `{"message":"Which?","params":{"country":null}}`, nil)
	st.question("ask_1", "param", `{"interaction_type":"input","step_id":"step_1","message":"Which?","params":{"country":null}}`)
	e := want("while it lacks something", "step_1=weather/now:PARAM", "step_1 weather/now PARAM")
	if e.Task.Steps[0].Error != "which Paris?" {
		t.Errorf("the step says %+v", e.Task.Steps[0])
	}
	if _, _, c := st.readTask(); c.ErrorMessage == nil || c.ErrorMessage.ErrMsg != "which Paris?" {
		t.Errorf("the checkpoint says %+v", c.ErrorMessage)
	}
	st.answer("ask_1", `{"content":{"country":"FR"},"description":""}`, agent.GivenReply{Given: true})
	st.says("fill_1", `{"city":"Paris","country":"FR"}`, nil)
	st.says("risk_1_2", `{"risk":"low","reason":"still"}`, agent.RiskReply{Risk: agent.Low})
	st.question("confirm_1_2", "confirm", `{"interaction_type":"approval","step_id":"step_1"}`)
	st.answer("confirm_1_2", `{"confirm":true}`, agent.ConfirmReply{Confirmed: true})
	st.says("step_1_try_2", `{"rain":true}`, nil)
	want("after the call", "step_1=weather/now:SUCCESS", "step_1 weather/now SUCCESS")
	st.finishes("plan_2")
	e = want("at the end", "step_1=weather/now:SUCCESS", "summary FINAL SUCCESS")
	got := e.Task
	got.Steps[0].Arguments, got.Steps[0].Result = nil, nil
	if diff := cmp.Diff(&api.Task{
		AgentID: "forecaster", ConversationID: "conv", SessionID: "s", Question: "Will it rain?", Language: "en", Documents: []json.RawMessage{json.RawMessage(`"a note"`)},
		FlowName: "Weather for Paris", FlowRisk: &api.TaskRisk{Risk: "medium", Reason: "reads only"}, PlanID: "plan-1", StepCount: 1, FullAnswer: "It will rain.", Reasoning: "clouds",
		Facts: []string{"rain on Monday"}, FilledSlots: json.RawMessage(`{"step_1":{"country":"FR"}}`),
		Steps: []api.TaskStep{{StepID: "step_1", Tool: "weather/now", Description: "to know", Status: "SUCCESS", PlanID: "plan-1", Risk: &api.TaskRisk{Risk: "low", Reason: "still"}}},
	}, got); diff != "" {
		t.Errorf("the task (-want +got):\n%s", diff)
	}
	for id, name := range map[string]string{"step_1": "weather/now TOOL MCP_TOOL", "step_1_try_2": "weather/now TOOL MCP_TOOL", "plan_1": "Plan the next step CALL TASK", "confirm_1": "May it be called? CALL TASK"} {
		if n := e.NodeExecutions[id]; n.NodeName+" "+n.NodeType+" "+n.NodeSubtype != name {
			t.Errorf("%s is told as %q, %s %s, want %s", id, n.NodeName, n.NodeType, n.NodeSubtype, name)
		}
	}
}

func TestTask_LadderAndItsFailures(t *testing.T) {
	t.Parallel()
	st := newTaskStage(t, agent.Config{Auto: true})
	st.named(agent.Low)
	broken := func(name string) {
		st.Row(st.Fails(inTask(name), agent.Failure(fault.New(fault.ToolError, "broken"), agent.Other, false)))
	}
	st.chosen("plan_1", "a/x", "1", agent.Low)
	broken("step_1")
	st.chosen("alternative_1", "a/y", "1_2", agent.Low)
	broken("step_1_2")
	_, e, _ := st.readTask()
	if got := taskLine(e.Task); got != "step_1=a/x:ERROR step_1_2=a/y:ERROR/alternative" || e.Task.FailureCount != 2 {
		t.Errorf("on the way the steps are %q with %d failures", got, e.Task.FailureCount)
	}
	st.says("repair_1", `{"tool_id":"","description":"other words"}`, agent.Choice{})
	st.judged("1_3", `{"city":"Rome"}`, agent.Low)
	_, e, _ = st.readTask()
	if got := taskLine(e.Task); got != "step_1=a/x:ERROR step_1_2=a/y:ERROR/alternative step_1_3=a/y:RUNNING/repair" {
		t.Errorf("on the next rung the steps are %q", got)
	}
	broken("step_1_3")
	_, e, c := st.readTask()
	if e.Status != "ERROR" || e.Task.FailureCount != 3 || e.Task.StepCount != 1 || e.Task.FullAnswer != "" || c.ExecutorStatus != "ERROR" || c.StepID != "step_1_3" || c.StepStatus != "ERROR" {
		t.Errorf("at the end: %s, %+v, %+v", e.Status, e.Task, c)
	}
	frames, _ := st.reader(VocabularyFlow, "").drain(t)
	want := `flow.start
step.init step_1 a/x INIT
step.input step_1 a/x RUNNING
step.error step_1 a/x ERROR
step.init step_1_2 a/y INIT
step.input step_1_2 a/y RUNNING
step.error step_1_2 a/y ERROR
step.init step_1_3 a/y INIT
step.input step_1_3 a/y RUNNING
step.error step_1_3 a/y ERROR
flow.failed`
	if diff := cmp.Diff(lines(want), flowTold(t, frames)); diff != "" {
		t.Errorf("frames (-want +got):\n%s", diff)
	}
	execution, _ := st.reader(VocabularyExecution, "").drain(t)
	for _, f := range execution {
		u := decode[api.ExecutionUpdate](t, decode[api.Event](t, f.Body).Data)
		if n := u.NodeExecution; n != nil && agent.PartOf(n.NodeID).Kind == agent.KindCall && !strings.HasPrefix(n.NodeName, "a/") {
			t.Errorf("%s calls %s %q", f.ID(), n.NodeID, n.NodeName)
		}
	}
}

func TestTask_ReplanAndRefusal(t *testing.T) {
	t.Parallel()
	st := newTaskStage(t, agent.Config{Auto: true})
	st.named(agent.Low)
	st.chosen("plan_1", "a/x", "1", agent.Low)
	st.Row(st.Fails(inTask("step_1"), agent.Failure(fault.New(fault.Timeout, "slow"), agent.TimedOut, false)))
	st.says("alternative_1", `{"tool_id":""}`, agent.Choice{None: true})
	st.says("repair_1", `{"tool_id":""}`, agent.Choice{None: true})
	st.says("replan_1", `{"description":"otherwise","steps":["b/z"]}`, agent.Choice{})
	st.chosen("plan_1_2", "b/z", "1_2", agent.High)
	st.question("confirm_1", "confirm", `{"interaction_type":"approval","step_id":"step_1_2","risk":"high"}`)

	r, e, _ := st.readTask()
	if got := taskLine(e.Task); got != "step_1=a/x:ERROR step_1_2=b/z:WAITING/replan/plan-2" || e.Task.PlanID != "plan-2" || e.Task.FailureCount != 0 {
		t.Errorf("the steps are %q, plan %q, %d failures", got, e.Task.PlanID, e.Task.FailureCount)
	}
	// The question is found under the step, the task and no name at all.
	for _, node := range []string{"step_1_2", "task", "confirm_1"} {
		b := &api.InputRequest{NodeID: node}
		if err := r.checkTarget(b); err != nil {
			t.Errorf("%q: %v", node, err)
			continue
		}
		if q, err := r.asked(b); err != nil || q == nil || q.Activation != inTask("confirm_1") {
			t.Errorf("%q finds %+v, %v", node, q, err)
		}
	}
	if q, err := r.asked(&api.InputRequest{NodeID: "step_1"}); q != nil || err != nil {
		t.Errorf("a step that asks nothing finds %+v, %v", q, err)
	}
	if err := r.checkTarget(&api.InputRequest{NodeID: "step_9"}); fault.From(err).Code != fault.NotFound {
		t.Errorf("a step that is none: %v", err)
	}
	target, ok, err := r.stepTarget(t.Context(), "step_1_2")
	if err != nil || !ok || target != inTask("confirm_1") {
		t.Errorf("an action on the step is about %q %v %v", target, ok, err)
	}
	st.answer("confirm_1", `{"confirm":false}`, agent.ConfirmReply{})
	_, e, c := st.readTask()
	if got := taskLine(e.Task); e.Status != "CANCELED" || got != "step_1=a/x:ERROR step_1_2=b/z:CANCELLED/replan/plan-2" || c.StepStatus != "CANCELLED" || c.ExecutorStatus != "CANCELLED" {
		t.Errorf("refused: %s %q %+v", e.Status, got, c)
	}
}

func TestTask_LargeAnswerIsToldWhole(t *testing.T) {
	t.Parallel()
	st := newTaskStage(t, agent.Config{Auto: true})
	st.named(agent.Low)
	st.chosen("plan_1", "a/x", "1", agent.Low)
	long := strings.Repeat("rain ", host.MaxInline/4)
	st.says("step_1", `{"message":"`+long+`"}`, nil)
	st.says("plan_2", `{"tool_id":"FINAL"}`, agent.Choice{Tool: "FINAL"})
	st.says("summary", `{"answer":"`+long+`"}`, nil)
	st.Row(st.Completes(agent.TaskNode, "result", `{}`))
	_, e, _ := st.readTask()
	if e.Task.FullAnswer != long {
		t.Errorf("the answer has %d bytes, want %d", len(e.Task.FullAnswer), len(long))
	}
	if got := string(e.Task.Steps[0].Result); !strings.HasPrefix(got, `{"$blob":`) {
		t.Errorf("a large result is told as %.80s", got)
	}
	frames, _ := st.reader(VocabularyFlow, "").drain(t)
	text := decode[struct{ Text string }](t, decode[api.Event](t, frames[len(frames)-2].Body).Data)
	if text.Text != long {
		t.Errorf("%s has %d bytes of text", frames[len(frames)-2].Name, len(text.Text))
	}
}

// shelf has several journals.
type shelf struct {
	host.Source
	rows map[string][]host.Row
}

func (s shelf) Rows(ctx context.Context, p identity.Principal, execution string, after uint64) iter.Seq2[host.Row, error] {
	if _, ours := s.rows[execution]; !ours {
		return s.Source.Rows(ctx, p, execution, after)
	}
	return func(yield func(host.Row, error) bool) {
		for _, row := range s.rows[execution] {
			if row.Seq > after && !yield(row, nil) {
				return
			}
		}
	}
}

func TestTask_ForkGoesOn(t *testing.T) {
	t.Parallel()
	st := newTaskStage(t, agent.Config{Auto: true})
	st.named(agent.Low)
	st.chosen("plan_1", "a/x", "1", agent.Low)
	st.says("step_1", `{}`, nil)
	st.chosen("plan_2", "a/y", "2", agent.Low)
	st.says("step_2", `{}`, nil)
	st.finishes("plan_3")

	fold, turn, commands, err := st.Journal().Fork(t.Context(), host.ForkRequest{Source: storytest.Execution, ID: "fork", Node: "step_2"}, 5000)
	if err != nil {
		t.Fatal(err)
	}
	turn.Tell(commands)
	kept := shelf{Source: st, rows: map[string][]host.Row{"fork": {*turn.Row()}}}
	journal := st.Journal()
	journal.Execution, journal.Source = "fork", kept
	about := &subject{journal: journal, name: "Flow"}
	teller, err := about.teller(t.Context(), VocabularyFlow, 0)
	if err != nil {
		t.Fatal(err)
	}
	frames, err := teller.tellRow(t.Context(), turn.Row())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(lines("flow.start\nstep.init step_2 a/y INIT\nstep.input step_2 a/y RUNNING"), flowTold(t, frames)); diff != "" {
		t.Errorf("the fork is told as (-want +got):\n%s", diff)
	}
	if e := decode[api.Event](t, frames[0].Body); string(e.Data) != `{"risk":"low","reason":"reads only"}` || e.Executor.ExecutorName != "Weather for Paris" {
		t.Errorf("it starts with %s of %+v", e.Data, e.Executor)
	}
	told := trailOf(fold.View(), agent.TaskNode, func(a *host.ActivationView) json.RawMessage {
		value, err := fold.Value(resultRefOf(a))
		if err != nil {
			t.Fatal(err)
		}
		return value
	})
	if len(told.steps) != 2 || told.steps[1].tool != "a/y" || told.steps[1].statusOf("", engine.StatusRunning) != "RUNNING" {
		t.Errorf("the steps of the fork are %+v", told.steps)
	}
}

func TestFlow_TaskThatStopsBeforeItsRiskIsKnown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		play func(st *staged)
		want string
	}{
		"Paused": {func(st *staged) {
			st.Row(storytest.Plain(engine.ExecutionPaused{}))
			st.Row(storytest.Plain(engine.ExecutionResumed{}))
			st.named(agent.Low)
		}, "flow.start\nflow.stop\nflow.resume"},
		"Canceled": {func(st *staged) { st.Row(storytest.Plain(engine.CancelRequested{})) }, "flow.start\nflow.cancel"},
		"Unreachable": {func(st *staged) {
			st.says("flow_name", `{"flow_name":"Rain"}`, nil)
			st.Row(st.Fails(inTask("flow_risk"), fault.New(fault.Unauthorized, "no key").Final()))
		}, "flow.start\nstep.error flow_risk Rain ERROR\nflow.failed"},
		"Refused": {func(st *staged) {
			st.named(agent.High)
			st.question("confirm_flow", "confirm", `{}`)
			st.answer("confirm_flow", `{}`, agent.ConfirmReply{})
		}, "flow.start\nstep.waiting_for_start confirm_flow Weather for Paris WAITING\nflow.stop\nflow.resume\nstep.cancel confirm_flow Weather for Paris CANCELLED\nflow.cancel"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := newTaskStage(t, agent.Config{})
			c.play(st)
			frames, _ := st.reader(VocabularyFlow, "").drain(t)
			if diff := cmp.Diff(lines(c.want), flowTold(t, frames)); diff != "" {
				t.Errorf("frames (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFlow_TaskThatCannotBegin(t *testing.T) {
	t.Parallel()
	st := newStagedOf(t, taskDefinition, `{"workflow_id":"agent:forecaster"}`)
	st.Row(storytest.Plain(engine.ExecutionStarted{}))
	st.Row(st.Completes("start", "result", `{}`))
	st.Row(st.AsksFor(agent.TaskNode, "activation", `{"title":"Activate weather?"}`))
	st.Row(storytest.Plain(engine.AskAnswered{Ask: st.Asks[0], Outcome: engine.AskDone}))
	st.Row(st.Fails(agent.TaskNode, fault.New(fault.InvalidInput, "question: is missing").Final()))
	frames, ended := st.reader(VocabularyFlow, "").drain(t)
	want := "flow.start\nstep.waiting_for_start task Flow WAITING\nflow.stop\nflow.resume\nstep.error task Flow ERROR\nflow.failed"
	if diff := cmp.Diff(lines(want), flowTold(t, frames)); diff != "" || !ended {
		t.Errorf("frames (-want +got):\n%s", diff)
	}
}

func TestFlow_TaskWritesItsAnswer(t *testing.T) {
	t.Parallel()
	st := newTaskStage(t, agent.Config{Auto: true})
	st.named(agent.Low)
	st.says("plan_1", `{"tool_id":"FINAL"}`, agent.Choice{Tool: "FINAL"})
	r := st.reader(VocabularyFlow, "")
	r.drain(t)
	piece := func(name, text string) {
		st.Hub.Emit(host.Ref{Workspace: "w", Execution: storytest.Execution}, host.Chunk{Attempt: engine.Attempt{Activation: inTask(name), Attempt: 1}, Text: text})
	}
	piece("summary", "It ")
	piece("plan_1", "thoughts")
	frames, _ := r.drain(t)
	if got := flowTold(t, frames); !slices.Equal(got, []string{"text.add summary FINAL RUNNING"}) {
		t.Errorf("while it is written, %q is told", got)
	}
}

// family has two executions, one of which the other has started.
type family struct {
	store.Executions
	parent, child *staged
	id            string
}

func (f family) Get(ctx context.Context, p identity.Principal, id string) (store.Execution, error) {
	if id != f.id {
		return storytest.Executions{St: f.parent.Stage}.Get(ctx, p, id)
	}
	e, err := storytest.Executions{St: f.child.Stage}.Get(ctx, p, storytest.Execution)
	e.ID, e.Parent = id, storytest.Execution
	return e, err
}

func (f family) GetWithRows(ctx context.Context, p identity.Principal, id string) (store.Execution, []store.Row, bool, error) {
	found, err := f.Get(ctx, p, id)
	return found, nil, false, err
}

func TestTask_IsShownByTheNodeThatGaveIt(t *testing.T) {
	t.Parallel()
	const definition = `{"nodes":[{"id":"ask","name":"Ask","type":"AI_AGENT","subtype":"MCP_AGENT","configurations":{}},
 {"id":"end","name":"End","type":"TEST","subtype":"STEP","configurations":{}}],"connections":[{"id":"c","from_node":"ask","to_node":"end","output_key":"result"}]}`
	parent := newStagedOf(t, definition, `{"workflow_id":"wf"}`)
	parent.Row(storytest.Plain(engine.ExecutionStarted{}))
	// Before the child has begun there is nothing to show.
	if _, e, _ := parent.readTask(); e.NodeExecutions["ask"].AttachedExecutions != nil || e.Task != nil {
		t.Errorf("an execution without a task shows %+v, %+v", e.NodeExecutions["ask"].AttachedExecutions, e.Task)
	}
	child := newTaskStage(t, agent.Config{Auto: true})
	child.named(agent.Low)
	child.chosen("plan_1", "a/x", "1", agent.Low)
	child.says("step_1", `{"message":"sun"}`, nil)
	child.says("plan_2", `{"tool_id":"a/y"}`, agent.Choice{Tool: "a/y"})
	id := engine.ChildID(storytest.Execution, "ask", 0)
	lib := parent.lib
	lib.Executions = family{parent: parent, child: child, id: id}
	lib.Source = shelf{Source: parent, rows: map[string][]host.Row{id: child.Written}}
	lib.Revisions = storytest.Revisions{parent.Stage, child.Stage}
	_, e, _ := parent.readTask()
	steps := e.NodeExecutions["ask"].AttachedExecutions[id]
	var got []string
	for _, n := range steps {
		got = append(got, n.NodeID+" "+n.NodeName+" "+n.NodeType+"."+n.NodeSubtype+" "+n.Status+" "+string(n.OutputData["result"]))
	}
	if diff := cmp.Diff([]string{`step_1 a/x TOOL.MCP_TOOL completed {"message":"sun"}`, "step_2 a/y TOOL.MCP_TOOL running "}, got); diff != "" {
		t.Errorf("the steps of the task (-want +got):\n%s", diff)
	}
}
