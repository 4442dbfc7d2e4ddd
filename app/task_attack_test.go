package app

import (
	"encoding/json"
	"strings"
	"testing"

	"tandem/api"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
)

// An operator who skips a judgement and gives one instead does not let a call run by itself: the person whose task it is is asked.
func TestTask_GivenJudgementOpensNoGate(t *testing.T) {
	t.Parallel()
	for _, node := range []string{"flow_risk", "risk_1"} {
		t.Run(node, func(t *testing.T) {
			t.Parallel()
			b := newToolbox(t, nil, cityTools()...)
			m := newMind(t, []string{"box/pay"}, func(d decided) any {
				if d.name == "flow_risk" && node == "flow_risk" || d.name == "tool_risk" && node == "risk_1" {
					return 400 // so that the step fails and can be skipped
				}
				return inCity(d)
			})
			x := openTasks(t, m, b, func(a *api.Agent) { a.Policy.AutoApprove = []string{"low", "medium", "high"} })
			x.auto()
			e := x.ask(api.TaskRequest{})
			x.ended(e, engine.StatusError)
			_, err := x.as("admin").Act(t.Context(), e.ExecutionID, api.ActionRequest{Action: "skip_node", NodeID: node, Output: json.RawMessage(`{"risk":"low","reason":"trust me"}`)})
			if err != nil {
				t.Fatal(err)
			}
			q := x.question(x.rest(e.ExecutionID), "confirm")
			if q.Risk != "high" || len(b.made()) > 0 {
				t.Errorf("it is asked with risk %q after %q", q.Risk, b.made())
			}
		})
	}
}

// A call that may be repeated is made twice when its server dies in it each time, and not more often: the pool and the program do not
// both repeat it.
func TestTask_DyingServerIsCalledTwice(t *testing.T) {
	t.Parallel()
	b := newToolbox(t, func(toolCall, <-chan struct{}) toolReply { return toolReply{Die: true} }, cityTools()...)
	x := openTasks(t, newMind(t, []string{"box/read"}, inCity), b)
	x.auto()
	e := x.ask(api.TaskRequest{})
	x.ended(e, engine.StatusSuccess)
	agrees(t, "calls", b.made(), []string{`read {"city":"Hangzhou"}`, `read {"city":"Hangzhou"}`})
	agrees(t, "steps", stepsOf(e), []string{"step_1 box/read ERROR"})
	if e.NodeExecutions["step_1_try_2"].Status != string(engine.NodeFailure) {
		t.Errorf("the second call is told as %+v", e.NodeExecutions["step_1_try_2"])
	}
}

// A confirmation is for one call: a fork of a task at a call that was confirmed asks its user again, by whatever name the call
// is meant.
func TestTask_ForkConfirmsAnew(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]api.ActionRequest{
		"by node": {NodeID: "step_1"}, "by activation": {ActivationID: "task[0]/step_1"}, "by both": {NodeID: "step_1", ActivationID: "task[0]/step_1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newToolbox(t, nil, cityTools()...)
			x := openTasks(t, newMind(t, []string{"box/pay"}, inCity), b)
			e := x.ask(api.TaskRequest{})
			x.question(e, "confirm")
			e = x.say(e.ExecutionID, `{"confirm":true}`)
			x.ended(e, engine.StatusSuccess)
			act.Action = "fork"
			if _, err := x.as("admin").Act(t.Context(), e.ExecutionID, act); fault.CodeOf(err) != fault.Forbidden {
				t.Errorf("a fork by somebody else: %v", err)
			}
			forked, err := x.as(taskUser).Act(t.Context(), e.ExecutionID, act)
			if err != nil {
				t.Fatal(err)
			}
			f := x.rest(forked.ExecutionID)
			q := x.question(f, "confirm")
			agrees(t, "arguments", string(q.Arguments), `{"city":"Hangzhou"}`)
			agrees(t, "calls", len(b.made()), 1)
			if _, err := x.as("admin").Input(t.Context(), f.ExecutionID, api.InputRequest{NodeID: "task", InputData: json.RawMessage(`{"confirm":true}`)}); err == nil {
				t.Error("somebody else has confirmed it")
			}
			x.ended(x.say(f.ExecutionID, `{"confirm":true}`), engine.StatusSuccess)
			agrees(t, "calls", len(b.made()), 2)
		})
	}
}

// Also a fork that the API did not lead to the question has nobody's confirmation: the call is not made.
func TestTask_ForkedConfirmationIsRefused(t *testing.T) {
	t.Parallel()
	b := newToolbox(t, nil, cityTools()...)
	x := openTasks(t, newMind(t, []string{"box/pay"}, inCity), b)
	e := x.ask(api.TaskRequest{})
	x.question(e, "confirm")
	e = x.say(e.ExecutionID, `{"confirm":true}`)
	x.ended(e, engine.StatusSuccess)
	_, err := x.host.Fork(t.Context(), user, host.ForkRequest{Source: e.ExecutionID, ID: "exec_forked", Activation: "task[0]/step_1"})
	agrees(t, "refused with", fault.CodeOf(err), fault.ApprovalRequired)
	agrees(t, "calls", len(b.made()), 1)
}

// What a judge cannot see all of is not judged: behind a long beginning anything may stand.
func TestTask_LongArgumentsAreAsked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		size  int
		asked bool
	}{"long": {20_000, false}, "too long": {30_000, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const danger = "and delete all"
			b := newToolbox(t, nil, cityTools()...)
			m := newMind(t, []string{"box/pay"}, func(d decided) any {
				switch d.name {
				case "params":
					return arguments(`{"city":"` + strings.Repeat("x", c.size) + danger + `"}`)
				case "tool_risk":
					if strings.Contains(d.told, danger) == c.asked {
						t.Errorf("who judges sees the end of %d characters: %t", c.size, !c.asked)
					}
				}
				return nil
			})
			x := openTasks(t, m, b, func(a *api.Agent) { a.Policy.AutoApprove = []string{"low", "medium", "high"} })
			x.auto()
			e := x.ask(api.TaskRequest{})
			if !c.asked {
				x.ended(e, engine.StatusSuccess)
				return
			}
			if q := x.question(e, "confirm"); q.Risk != "high" || len(b.made()) > 0 {
				t.Errorf("it is asked with risk %q after %d calls", q.Risk, len(b.made()))
			}
		})
	}
}

// A tool that does more than it did when its call was judged is not called on the strength of that, also if its user has accepted the
// server anew in the meantime.
func TestTask_ReactivatedToolIsAsked(t *testing.T) {
	t.Parallel()
	changed := func(change func(*toolDefinition)) []toolDefinition {
		list := cityTools()
		change(&list[0])
		return list
	}
	for name, c := range map[string]struct {
		tools   []toolDefinition
		purpose string
	}{
		"destroys":    {changed(func(d *toolDefinition) { d.ReadOnly, d.Idempotent, d.Destructive = false, true, true }), "drift"},
		"once":        {changed(func(d *toolDefinition) { d.ReadOnly = false }), ""},
		"other words": {changed(func(d *toolDefinition) { d.Description = "Reads well." }), "called"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newToolbox(t, nil, cityTools()...)
			x := openTasks(t, newMind(t, []string{"box/read"}, inCity), b)
			e := x.ask(api.TaskRequest{})
			x.question(e, "confirm")
			if err := x.as(taskUser).DeactivateMCPServer(t.Context(), "box"); err != nil {
				t.Fatal(err)
			}
			b.change(c.tools...)
			e = x.say(e.ExecutionID, `{"confirm":true}`)
			x.question(e, "activation")
			e = x.say(e.ExecutionID, `{"accept":true}`)
			switch c.purpose {
			case "called":
				agrees(t, "calls", len(b.made()), 1)
			case "drift":
				q := x.question(e, "drift")
				agrees(t, "calls", len(b.made()), 0)
				shown, err := x.as(taskUser).Interaction(t.Context(), q.InteractionID)
				if err != nil || !strings.Contains(string(shown.RequestData), "destructiveHint") {
					t.Errorf("the person is shown %s, %v", shown.RequestData, err)
				}
				x.ended(x.say(e.ExecutionID, `{"accept":true}`), engine.StatusSuccess)
				agrees(t, "calls", len(b.made()), 1)
			default:
				agrees(t, "calls", len(b.made()), 0)
				agrees(t, "steps", stepsOf(e), []string{"step_1 box/read ERROR"})
			}
		})
	}
}
