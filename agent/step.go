package agent

import (
	"strings"

	"tandem/engine"
	"tandem/fault"
	"tandem/workflow"
)

// place is a step of the plan, with all that is tried in its stead when it fails: step_3, step_3_2, …
type place struct {
	Number int `json:"number,omitempty"`
	// Tried counts the steps of this place, Tries the present planning's.
	Tried int `json:"tried,omitempty"`
	Tries int `json:"tries,omitempty"`
	// Rung is how many of the ways out have been taken.
	Rung int `json:"rung,omitempty"`
	// Decisions counts them by what their names begin with, so that no name is used twice.
	Decisions map[string]int `json:"decisions,omitempty"`
}

// step is the step that the task is at.
type step struct {
	ID        string             `json:"id,omitempty"`
	Tool      string             `json:"tool,omitempty"`
	Rung      Rung               `json:"rung,omitempty"`
	Choice    engine.Ref         `json:"choice,omitempty"`
	Effect    workflow.Effect    `json:"effect,omitempty"`
	OnUnknown workflow.OnUnknown `json:"on_unknown,omitempty"`
	// Arguments are the present ones and Version their number: it grows whenever they are made anew, whatever they are
	// then. Agreed is the version a person has confirmed, Confirmation how.
	Arguments    engine.Ref `json:"arguments,omitempty"`
	Version      int        `json:"version,omitempty"`
	Agreed       int        `json:"agreed,omitempty"`
	Confirmation engine.Ref `json:"confirmation,omitempty"`
	Risk         Risk       `json:"risk,omitempty"`
	Unassessed   bool       `json:"unassessed,omitempty"`
	Judged       engine.Ref `json:"judged,omitempty"`
	// Gate is what a person has decided about the tool.
	Gate Gate `json:"gate,omitempty"`
	// Calls counts them, Derived how often arguments were derived again, Asked how often a person was asked for them.
	// Repeated says that the call that a lost connection is worth has been made.
	Calls    int  `json:"calls,omitempty"`
	Derived  int  `json:"derived,omitempty"`
	Asked    int  `json:"asked,omitempty"`
	Repeated bool `json:"repeated,omitempty"`
	// Failure is the last, Counted says that it is on the task's counter.
	Failure failure    `json:"failure,omitzero"`
	Counted bool       `json:"counted,omitempty"`
	Missing engine.Ref `json:"missing,omitempty"`
	Given   engine.Ref `json:"given,omitempty"`
}

type failure struct {
	Class   Class      `json:"class,omitempty"`
	Code    fault.Code `json:"code,omitempty"`
	Message string     `json:"message,omitempty"`
}

// agreed says that a person has confirmed the call with exactly the present arguments.
func (s *step) agreed() bool { return s.Version > 0 && s.Agreed == s.Version }

// ConfirmedBy implements engine.Confirming.
func (t *task) ConfirmedBy(name string) (string, bool) {
	if s := &t.Step; s.Calls > 0 && name == s.callName(s.Calls) && s.agreed() {
		return "confirmation of " + s.ID, true
	}
	return "", false
}

// callName is the name of the step's nth call.
func (s *step) callName(n int) string { return engine.TryName(s.ID, n) }

// decide runs a decision about the present place.
func (t *task) decide(sc *engine.Scope, kind string) {
	if t.Place.Decisions == nil {
		t.Place.Decisions = map[string]int{}
	}
	prefix := namePrefix(kind)
	t.Place.Decisions[prefix]++
	n := t.Place.Decisions[prefix]
	t.runStep(sc, kind, numbered(prefix, t.Place.Number, n), n)
}

// planNext plans the next step, unless there were enough.
func (t *task) planNext(sc *engine.Scope) {
	if t.Steps >= t.config.Limits.Steps {
		t.finally(sc, FinalLimit)
		return
	}
	t.Place, t.Step = place{Number: t.Steps + 1}, step{}
	t.plan(sc)
}

func (t *task) plan(sc *engine.Scope) {
	t.Place.Tries++
	t.decide(sc, KindPlan)
}

// endedInStep goes on with the step that the task is at.
func (t *task) endedInStep(sc *engine.Scope, end engine.End, ref engine.Ref) {
	if end.Status != engine.NodeDone && end.Status != engine.NodeFailure {
		t.leaveOut(sc)
		return
	}
	done := end.Status == engine.NodeDone
	switch t.Doing {
	case KindPlan:
		t.planned(sc, end, ref)
	case KindParams, KindFill:
		if !done {
			t.Step.Failure = failureOf(Parameters, end.Error)
			t.noteStep(t.failed())
			t.mendArguments(sc)
			return
		}
		var reply ArgumentsReply
		if !t.readReply(sc, end, &reply) {
			return
		}
		t.Step.Version++
		t.Step.Arguments, t.Step.Judged, t.Step.Risk, t.Step.Unassessed, t.Step.Gate = ref, "", "", false, ""
		if len(reply.Missing) > 0 { // they are kept: only what is missing has to be found
			t.Step.Failure = failureOf(Parameters, fault.Newf(fault.ParameterMissing, "the tool %q needs what nobody has told: %s",
				t.Step.Tool, strings.Join(reply.Missing, ", ")))
			t.noteStep(t.failed())
			t.mendArguments(sc)
			return
		}
		t.decide(sc, KindToolRisk)
	case KindToolRisk:
		reply, assessed, ok := t.judgement(sc, end)
		if !ok {
			return
		}
		t.Step.Risk, t.Step.Unassessed, t.Step.Judged, t.Step.Gate = reply.Risk, !assessed, ref, reply.Gate
		if reply.Gate == GateShut {
			t.Step.Failure, t.Step.Counted = failureOf(Permission,
				fault.Newf(fault.Forbidden, "the tool %q is not allowed: %s", t.Step.Tool, reply.Reason)), false
			t.noteStep(t.failed())
			t.climb(sc)
			return
		}
		t.confirmOrCall(sc)
	case KindConfirm:
		if !t.confirmed(sc, end) {
			t.cancel(sc, notConfirmed)
			return
		}
		t.Step.Agreed, t.Step.Confirmation = t.Step.Version, ref
		t.confirmOrCall(sc)
	case KindCall:
		if done {
			t.noteStep(record{Entry: Entry{Status: Succeeded}, ResultRef: ref})
			t.planNext(sc)
			return
		}
		t.callFailed(sc, end.Error)
	default:
		t.endedOnLadder(sc, end, ref)
	}
}

// planned takes a plan. FINAL comes before any work.
func (t *task) planned(sc *engine.Scope, end engine.End, ref engine.Ref) {
	var choice Choice
	if end.Status == engine.NodeDone && !t.readReply(sc, end, &choice) {
		return
	}
	switch {
	case end.Status == engine.NodeFailure:
		t.Step.Failure = failureOf("", end.Error)
	case choice.final():
		t.finally(sc, FinalPlanned)
		return
	case choice.UnknownTool:
		t.Step.Failure = failureOf("", fault.Newf(fault.NotFound, "there is no tool %q", choice.Tool))
	case choice.Tool == "":
		t.Step.Failure = failureOf("", fault.New(fault.OutputInvalid, "the plan names no tool"))
	default:
		rung := Planned
		if t.Place.Rung > 0 {
			rung = Replanned
		}
		t.choose(sc, choice, rung, ref)
		return
	}
	if t.Place.Tries >= t.config.Limits.PlanTries {
		t.finally(sc, FinalUnplanned)
		return
	}
	t.plan(sc)
}

// choose begins a step of the present place with a tool: it gets an id of its own, and nothing of the last one's
// arguments, judgement or confirmation.
func (t *task) choose(sc *engine.Scope, c Choice, rung Rung, ref engine.Ref) {
	if t.Place.Tried == 0 {
		t.Steps++
	}
	t.Place.Tried++
	t.Step = step{ID: StepID(t.Place.Number, t.Place.Tried), Tool: c.Tool, Rung: rung, Choice: ref,
		Effect: c.Effect, OnUnknown: c.OnUnknown}
	if c.Effect != workflow.Pure && c.Effect != workflow.Idempotent {
		t.Step.Effect = workflow.Once
	}
	t.decide(sc, KindParams)
}

// confirmOrCall calls the tool, if nothing more is needed for exactly these arguments.
func (t *task) confirmOrCall(sc *engine.Scope) {
	if !t.Step.agreed() && (!t.config.Auto || t.gated()) {
		t.decide(sc, KindConfirm)
		return
	}
	t.Step.Calls++
	t.runStep(sc, KindCall, t.Step.callName(t.Step.Calls), t.Step.Calls)
}

// leaveOut goes on without the step: an operator has skipped a part of it.
func (t *task) leaveOut(sc *engine.Scope) {
	switch t.Doing {
	case KindPlan:
		t.finally(sc, FinalLeftOut)
		return
	case KindCall:
	default:
		if t.Step.Calls == 0 {
			sc.Skip(t.Step.ID)
		}
	}
	t.noteStep(record{Entry: Entry{Status: LeftOut}})
	t.planNext(sc)
}

// noteStep writes the present step into the log, over what it said of the same step.
func (t *task) noteStep(r record) {
	s := &t.Step
	r.Step, r.Tool, r.PlanID, r.Rung, r.Risk = s.ID, s.Tool, PlanID(t.Plans), s.Rung, s.Risk
	r.ChoiceRef, r.ArgumentsRef, r.GivenRef = s.Choice, s.Arguments, s.Given
	if s.Calls > 0 {
		r.Activation = s.callName(s.Calls)
	}
	if n := len(t.Log); n > 0 && t.Log[n-1].Step == r.Step {
		t.Log[n-1] = r
		return
	}
	t.Log = append(t.Log, r)
}
