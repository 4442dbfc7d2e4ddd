package story

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tandem/agent"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/story/storytest"
	"tandem/workflow"
)

// wild plays tasks at random. It knows what the program says of itself, in what it asks of the runtime, and that is compared with
// what readers make of the journal.
type wild struct {
	*staged
	rt *rapid.T
	// about is what the program said last, name the step that it said it of.
	about agent.About
	name  string
	asked engine.AskID
	// failed is the step with which the execution failed, if it can be tried again.
	failed engine.ActivationID
}

func (w *wild) pick(label string, list ...string) string {
	return rapid.SampledFrom(list).Draw(w.rt, label)
}

// present is the step that is to be done; none when the task waits or has ended.
func (w *wild) present() (engine.RunNode, bool) {
	for _, run := range w.Pending {
		if run.Step != nil {
			return run, true
		}
	}
	return engine.RunNode{}, false
}

// act does one thing.
func (w *wild) act() {
	w.T.Helper()
	status := w.Fold.State().Status()
	if status == engine.StatusError {
		w.Row(storytest.Plain(engine.NodeRetried{Activation: w.failed})) // refused when it is the task that has failed
		return
	}
	if status.Final() {
		return
	}
	if status == engine.StatusPaused {
		w.Row(storytest.Plain(engine.ExecutionResumed{}))
		return
	}
	if w.asked != "" {
		w.Row(storytest.Plain(engine.AskAnswered{Ask: w.asked, Outcome: engine.AskDone}))
		w.asked = ""
		return
	}
	run, ok := w.present()
	if !ok {
		if task, waits := w.whole(); waits {
			w.Row(w.Completes(task.Activation, "result", `{"answer":"done"}`))
		}
		return
	}
	switch w.pick("operator", "", "", "", "", "", "", "", "", "", "pause", "skip", "crash", "unreachable", "cancel") {
	case "pause":
		w.Row(storytest.Plain(engine.ExecutionPaused{}))
	case "crash":
		w.Row(storytest.Plain(engine.ExecutionRecovered{}))
		return
	case "unreachable":
		w.failed = run.Activation
		w.Row(w.Fails(run.Activation, fault.New(fault.Internal, "nobody answers").Final()))
		return
	case "cancel":
		if rapid.IntRange(0, 9).Draw(w.rt, "really") == 0 {
			w.Row(storytest.Plain(engine.CancelRequested{}))
			return
		}
	case "skip":
		if run.Step.Kind != agent.KindCall {
			w.Done(run.Activation)
			w.Row(storytest.Plain(engine.NodeSkipped{Activation: run.Activation}))
			return
		}
	}
	w.step(run)
}

func (w *wild) whole() (engine.RunNode, bool) {
	for _, run := range w.Pending {
		if run.Activation == agent.TaskNode {
			return run, true
		}
	}
	return engine.RunNode{}, false
}

// step ends a step in one of the ways that it can.
func (w *wild) step(run engine.RunNode) {
	w.T.Helper()
	name := run.Step.Name
	question := run.Step.Kind == agent.KindConfirm || run.Step.Kind == agent.KindConfirmFlow || run.Step.Kind == agent.KindAskParams
	if question && run.Cause.Wake == nil {
		purpose := "confirm"
		if run.Step.Kind == agent.KindAskParams {
			purpose = "param"
		}
		before := len(w.Asks)
		w.Row(w.AsksFor(run.Activation, purpose, `{"title":"?"}`))
		if len(w.Asks) > before {
			w.asked = w.Asks[len(w.Asks)-1]
		}
		return
	}
	useless := func() bool { return w.pick("useless", "", "", "", "", "", "yes") != "" }
	if !question && run.Step.Kind != agent.KindCall && run.Step.Kind != agent.KindSummary && useless() {
		w.Row(w.Fails(run.Activation, fault.New(fault.OutputInvalid, "not JSON").Final()))
		return
	}
	choice := func() {
		tool := w.pick("tool", "a/x", "a/y", "b/z", "", "FINAL", "nope")
		c := agent.Choice{Tool: tool, Effect: workflow.Idempotent, UnknownTool: tool == "nope", None: tool == ""}
		if tool == "" && w.pick("none", "", "none") == "" {
			c.None = false
		}
		w.says(name, `{"tool_id":"`+tool+`"}`, c)
	}
	switch run.Step.Kind {
	case agent.KindFlowRisk, agent.KindToolRisk:
		risk := agent.Risk(w.pick("risk", "low", "low", "medium", "high"))
		w.says(name, `{"risk":"`+string(risk)+`"}`, agent.RiskReply{Risk: risk})
	case agent.KindConfirm, agent.KindConfirmFlow:
		yes := w.pick("confirm", "y", "y", "y", "y", "y", "n") == "y"
		w.says(name, `{"confirm":`+strconv.FormatBool(yes)+`}`, agent.ConfirmReply{Confirmed: yes})
	case agent.KindAskParams:
		yes := w.pick("given", "y", "y", "y", "y", "n") == "y"
		w.says(name, `{"content":{"k":"`+name+`"}}`, agent.GivenReply{Given: yes})
	case agent.KindAnalyze:
		yes := rapid.Bool().Draw(w.rt, "is_param_error")
		w.says(name, `{"is_param_error":`+strconv.FormatBool(yes)+`}`, agent.AnalyzeReply{IsParamError: yes})
	case agent.KindPlan, agent.KindAlternative, agent.KindRepair, agent.KindReplan:
		choice()
	case agent.KindCall:
		class := w.pick("class", "", "", string(agent.Connection), string(agent.Parameters), string(agent.Unclear), string(agent.Permission), string(agent.TimedOut), string(agent.Other))
		if class == "" {
			w.says(name, `{"message":"`+name+`"}`, nil)
			return
		}
		w.Row(w.Fails(run.Activation, agent.Failure(fault.New(fault.ToolError, "it broke"), agent.Class(class), rapid.Bool().Draw(w.rt, "may repeat")).Final()))
	default:
		w.says(name, `{"k":"`+name+`"}`, nil)
	}
}

// learn reads what the program has said since.
func (w *wild) learn() {
	w.T.Helper()
	if run, ok := w.present(); ok {
		w.about, w.name = agent.About{}, run.Step.Name
		if err := json.Unmarshal(run.Step.Config, &w.about); err != nil {
			w.T.Fatal(err)
		}
	}
}

// results reads what activations have left.
func (st *staged) results(t testing.TB) func(*host.ActivationView) json.RawMessage {
	return func(a *host.ActivationView) json.RawMessage {
		value, err := st.Fold.Value(resultRefOf(a))
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// check compares what is told of the task with what the program says of itself.
func (w *wild) check() {
	w.T.Helper()
	if _, ok := w.present(); !ok {
		return
	}
	got := trailOf(w.Fold.View(), agent.TaskNode, w.results(w.T))
	type step struct{ ID, Tool, Plan, Rung, Status string }
	var told, want []step
	for _, s := range got.steps {
		if s.id == w.about.Step && !slices.ContainsFunc(w.about.Log, func(e agent.Entry) bool { return e.Step == s.id }) {
			continue // it is under way
		}
		status := string(agent.Failed)
		switch {
		case s.left:
			status = string(agent.LeftOut)
		case s.call != nil && s.call.Status == engine.NodeDone:
			status = string(agent.Succeeded)
		}
		told = append(told, step{s.id, s.tool, agent.PlanID(s.plan), string(s.rung), status})
	}
	for _, e := range w.about.Log {
		want = append(want, step{e.Step, e.Tool, e.PlanID, string(e.Rung), string(e.Status)})
	}
	if diff := cmp.Diff(want, told); diff != "" {
		w.T.Fatalf("at %s the program's log differs from what is told (-want +got):\n%s\n%s", w.name, diff, strings.Join(w.Fold.View().Sequence, " "))
	}
	if got.failures != w.about.Failures || got.planID() != w.about.PlanID {
		w.T.Fatalf("at %s %d failures and %q are told, want %d and %q\n%s", w.name, got.failures, got.planID(), w.about.Failures, w.about.PlanID, strings.Join(w.Fold.View().Sequence, " "))
	}
	if s := got.of[w.name]; w.about.Step != "" && agent.PartOf(w.name).Kind != agent.KindPlan && (s == nil || s.id != w.about.Step || s.tool != w.about.Tool) {
		w.T.Fatalf("%s is told to be of %+v, want %s with %s", w.name, s, w.about.Step, w.about.Tool)
	}
}

func TestTrail_SaysWhatTheProgramSays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		config := agent.Config{
			Auto: rapid.Bool().Draw(rt, "auto"), Limits: agent.Limits{Steps: 3, PlanTries: 2, InnerCalls: 2, Failures: rapid.IntRange(2, 6).Draw(rt, "failures")},
		}
		w := &wild{staged: newTaskStage(t, config), rt: rt}
		snapshot := rapid.IntRange(0, 60).Draw(rt, "snapshot")
		for i := range 120 {
			if i == snapshot {
				w.TakeSnapshot()
			}
			w.act()
			w.learn()
			w.check()
		}
		w.sameAtAnyTime()
	})
}

// sameAtAnyTime reads the task in the flow vocabulary from the beginning, and some rows again by those who come later, with a
// snapshot and without.
func (w *wild) sameAtAnyTime() {
	w.T.Helper()
	all, _ := w.reader(VocabularyFlow, "").drain(w.T)
	found, err := w.lib.OpenExecution(w.T.Context(), storytest.User(), storytest.Execution)
	if err != nil {
		w.T.Fatal(err)
	}
	about := &subject{journal: found.Journal, name: found.Summary.WorkflowName}
	for range 6 {
		row := rapid.IntRange(1, len(w.Written)).Draw(w.rt, "row")
		later, err := about.teller(w.T.Context(), VocabularyFlow, uint64(row-1))
		if err != nil {
			w.T.Fatal(err)
		}
		frames, err := later.tellRow(w.T.Context(), &w.Written[row-1])
		if err != nil {
			w.T.Fatal(err)
		}
		want := slices.DeleteFunc(slices.Clone(all), func(f Frame) bool { return f.Seq != uint64(row) })
		if diff := cmp.Diff(told(want), told(frames)); diff != "" {
			w.T.Fatalf("row %d is told in another way later (-want +got):\n%s", row, diff)
		}
	}
	w.wellTold(all)
}

// wellTold checks what holds of every story.
func (w *wild) wellTold(frames []Frame) {
	w.T.Helper()
	list := flowTold(w.T, frames)
	if len(list) > 0 && list[0] != flowStart || strings.Count(strings.Join(list, "\n"), flowStart+"\n") > 1 {
		w.T.Fatalf("the flow does not start once: %q", list)
	}
	begun := map[string]bool{}
	for _, f := range list {
		word, rest, _ := strings.Cut(f, " ")
		id, _, _ := strings.Cut(rest, " ")
		if word == stepInit {
			begun[id] = true
		}
		if strings.HasPrefix(id, "step_") && (!begun[id] || strings.Contains(f, "  ")) {
			w.T.Fatalf("%q comes before the step begins, or names no tool: %q", f, list)
		}
	}
	if status := w.Fold.State().Status(); status.Final() {
		last := map[engine.Status]string{engine.StatusSuccess: flowSuccess, engine.StatusCanceled: flowCancel, engine.StatusError: flowFailed}[status]
		if list[len(list)-1] != last {
			w.T.Fatalf("the execution ended with %s and the story with %q", status, list[len(list)-1])
		}
	}
}
