package agent

import (
	"tandem/engine"
	"tandem/fault"
	"tandem/text"
	"tandem/workflow"
)

// failureOf keeps what the task has to know of an error.
func failureOf(class Class, err *fault.Error) failure {
	return failure{class, err.Code, text.ClipBytes(err.Message, maxMessage)}
}

// failed is the entry of the present step's failure.
func (t *task) failed() record {
	f := t.Step.Failure
	return record{Entry: Entry{Status: Failed, Class: f.Class, Code: f.Code, Message: text.ClipBytes(f.Message, maxLogged)}}
}

// callFailed decides what follows a failed call, by its class.
func (t *task) callFailed(sc *engine.Scope, err *fault.Error) {
	s := &t.Step
	class, mayRepeat := classOf(err)
	s.Failure, s.Counted = failureOf(class, err), false
	t.noteStep(t.failed())
	switch class {
	case Connection:
		if mayRepeat && s.Effect != workflow.Once && !s.Repeated {
			s.Repeated = true
			t.confirmOrCall(sc) // with the same arguments, so under the same confirmation
			return
		}
		t.climb(sc)
	case Parameters:
		t.mendArguments(sc)
	case Unclear:
		t.decide(sc, KindAnalyze)
	case Permission, TimedOut:
		t.climb(sc)
	default:
		t.count(sc)
	}
}

// mendArguments derives other arguments, or asks a person for them.
func (t *task) mendArguments(sc *engine.Scope) {
	s, limit := &t.Step, t.config.Limits.InnerCalls
	switch {
	case t.config.Auto && s.Derived < limit:
		s.Derived++
		t.decide(sc, KindParams)
	case s.Asked < limit:
		s.Asked++
		s.Missing, s.Given = "", ""
		t.decide(sc, KindMissing)
	default: // whatever people say, it stays wrong
		t.count(sc)
	}
}

// count puts the step's failure on the task's counter and goes on, unless it was one too many.
func (t *task) count(sc *engine.Scope) {
	t.Step.Counted = true
	t.Failures++
	if t.Failures >= t.config.Limits.Failures {
		t.failTask(sc)
		return
	}
	t.climb(sc)
}

func (t *task) failTask(sc *engine.Scope) {
	f := t.Step.Failure
	t.fail(sc, fault.Newf(f.Code, "the task has failed %d times, the last time in %s: %s", t.Failures, t.Step.ID, f.Message).
		With("step", t.Step.ID).With("failures", t.Failures))
}

// climb takes the next way out of the step's failure, each once in its place. After the last the step has failed.
func (t *task) climb(sc *engine.Scope) {
	t.Place.Rung++
	switch t.Place.Rung {
	case 1:
		t.decide(sc, KindAlternative)
	case 2:
		t.decide(sc, KindRepair)
	case 3:
		t.decide(sc, KindReplan)
	default:
		if !t.Step.Counted {
			t.Failures++
		}
		if t.Failures >= t.config.Limits.Failures {
			t.failTask(sc)
			return
		}
		t.planNext(sc)
	}
}

// endedOnLadder goes on after a decision about a failure. One whose answer cannot be used counts as a no.
func (t *task) endedOnLadder(sc *engine.Scope, end engine.End, ref engine.Ref) {
	s, done := &t.Step, end.Status == engine.NodeDone
	switch t.Doing {
	case KindAnalyze:
		var reply AnalyzeReply
		if done && !t.readReply(sc, end, &reply) {
			return
		}
		s.Failure.Class = Other
		if reply.IsParamError {
			s.Failure.Class = Parameters
		}
		t.noteStep(t.failed())
		if reply.IsParamError {
			t.mendArguments(sc)
		} else {
			t.count(sc)
		}
	case KindMissing:
		s.Missing = ref
		t.decide(sc, KindAskParams)
	case KindAskParams:
		var reply GivenReply
		if done && !t.readReply(sc, end, &reply) {
			return
		}
		if !reply.Given {
			t.cancel(sc, notGiven)
			return
		}
		s.Given = ref
		t.decide(sc, KindFill)
	case KindAlternative, KindRepair, KindReplan:
		var choice Choice
		if done && !t.readReply(sc, end, &choice) {
			return
		}
		if !done || choice.None || choice.UnknownTool {
			t.climb(sc)
			return
		}
		t.rechoose(sc, choice, ref)
	}
}

// rechoose goes on with what a rung has found.
func (t *task) rechoose(sc *engine.Scope, choice Choice, ref engine.Ref) {
	switch {
	case t.Doing == KindReplan:
		t.Plans++
		t.Outline, t.Place.Tries = ref, 0
		t.plan(sc)
	case choice.final(): // neither another tool nor a repair
		t.climb(sc)
	case t.Doing == KindAlternative && (choice.Tool == "" || choice.Tool == t.Step.Tool): // none
		// It is the first rung, so this is the only tool that was tried here.
		t.climb(sc)
	case t.Doing == KindAlternative:
		t.choose(sc, choice, Alternative, ref)
	case choice.Tool == "":
		choice.Tool, choice.Effect, choice.OnUnknown = t.Step.Tool, t.Step.Effect, t.Step.OnUnknown
		t.choose(sc, choice, Repaired, ref)
	default:
		t.choose(sc, choice, Repaired, ref)
	}
}
