package engine_test

import (
	"encoding/json"
	"slices"
	"testing"

	"tandem/engine"
	"tandem/fault"
	"tandem/workflow"
)

// look opens the filling of a node that is looked through for the first time.
func look(s *sim, id engine.ActivationID, count int64) {
	s.t.Helper()
	s.do(engine.ScopeOpened{Attempt: s.run(id).Attempt, Program: engine.ProgramFilling, Count: count, Discard: true, State: "slots"})
	s.replay()
}

// found completes a step of a filling.
func found(s *sim, id engine.ActivationID) {
	s.t.Helper()
	s.do(engine.NodeCompleted{Attempt: s.run(id).Attempt, Outputs: []engine.Output{{Key: "result", Ref: engine.Ref("of " + string(id))}}})
	s.replay()
}

// filledWith checks that a node runs as from its start, with what was found.
func filledWith(s *sim, id engine.ActivationID, ref engine.Ref) engine.RunNode {
	s.t.Helper()
	run := s.run(id)
	if run.Cause.Kind != engine.CauseRun || run.Cause.Filled == nil || run.Cause.Filled.Ref != ref || run.Cause.Closed != nil {
		s.t.Fatalf("run of %q: %+v, filled %+v; want %q", id, run.Cause, run.Cause.Filled, ref)
	}
	return run
}

func TestFilling_RunsTheNodeWithWhatWasFound(t *testing.T) {
	t.Parallel()
	s := begin(t, "send {\"max_retries\": 1}\nsend -> after")
	asOf := s.run("send").AsOf
	look(s, "send", 1)
	s.wantRuns("send[0]/filling")
	step := s.run("send[0]/filling")
	if step.Input != "slots" || step.Step.Kind != engine.StepFill || step.Step.Effect != workflow.Idempotent {
		t.Errorf("step %+v", step)
	}
	s.fail("send[0]/filling", fault.RateLimited) // a look that may pass is repeated
	s.fire(engine.TimerRetry)
	found(s, "send[0]/filling")
	run := filledWith(s, "send", "of send[0]/filling")
	if run.AsOf != asOf {
		t.Errorf("it reads as of %d and became ready as of %d", run.AsOf, asOf)
	}
	s.fail("send", fault.RateLimited) // a retry has it, too
	s.fire(engine.TimerRetry)
	filledWith(s, "send", "of send[0]/filling")
	s.do(engine.NodeSuspended{Attempt: s.run("send").Attempt, Signal: "go"})
	s.do(engine.SignalReceived{Node: "send", Name: "go"})
	filledWith(s, "send", "of send[0]/filling")
	s.refuse(fault.Invalid, engine.ScopeOpened{Attempt: s.run("send").Attempt, Program: engine.ProgramFilling, Count: 1})
	s.complete("send")
	s.complete("after")
	s.status(engine.StatusSuccess)
	s.replay()
}

func TestFilling_AsksAPersonAndIsNotRepeated(t *testing.T) {
	t.Parallel()
	s := begin(t, "send -> after")
	look(s, "send", 1)
	s.suspend("send[0]/filling", engine.NodeSuspended{Ask: &engine.Question{Purpose: "param"}, Memo: "so far"})
	s.status(engine.StatusWaitingForHuman)
	s.do(engine.ExecutionRecovered{})
	s.wantRuns() // a question that is asked needs no run
	for id := range s.asks {
		s.do(engine.AskAnswered{Ask: id, Outcome: engine.AskDone, Ref: "answer"})
	}
	if c := s.run("send[0]/filling").Cause; c.Memo != "so far" || c.Wake == nil || c.Wake.Ref != "answer" {
		t.Fatalf("cause %+v", c)
	}
	found(s, "send[0]/filling")
	s.do(engine.ExecutionRecovered{})
	filledWith(s, "send", "of send[0]/filling") // the filling is recorded: a crash does not look again
	s.wantRuns("send")
	s.complete("send")
	s.complete("after")
	s.status(engine.StatusSuccess)
}

func TestFilling_AsksWhenTheLookFails(t *testing.T) {
	t.Parallel()
	s := begin(t, "send -> after")
	look(s, "send", 1)
	s.fail("send[0]/filling", fault.ModelRefused)
	s.wantRuns("send[0]/asking")
	step := s.run("send[0]/asking")
	var why engine.AskConfig
	if err := json.Unmarshal(step.Step.Config, &why); err != nil || why.Code != fault.ModelRefused || step.Input != "slots" {
		t.Errorf("step %+v, %+v, %v", step, why, err)
	}
	found(s, "send[0]/asking")
	filledWith(s, "send", "of send[0]/asking")

	s = begin(t, "send -> after") // what can only be asked and cannot fails the node, and can be tried again by itself
	look(s, "send", 1)
	s.fail("send[0]/filling", fault.ModelRefused)
	s.fail("send[0]/asking", fault.Internal)
	s.status(engine.StatusError)
	s.do(engine.NodeRetried{Activation: "send[0]/asking"})
	found(s, "send[0]/asking")
	filledWith(s, "send", "of send[0]/asking")
}

// An attempt that must not be repeated begins when the node itself runs: what comes before can be.
func TestFilling_IsNoEffect(t *testing.T) {
	t.Parallel()
	for _, count := range []int64{0, 1} {
		s := begin(t, "send {\"effect\": \"once\"}\nsend -> after")
		s.do(engine.ExecutionRecovered{})
		look(s, "send", count)
		if count == 1 {
			s.do(engine.ExecutionRecovered{})
			found(s, "send[0]/filling")
			filledWith(s, "send", "of send[0]/filling")
		} else {
			filledWith(s, "send", "")
		}
		s.do(engine.ExecutionRecovered{}) // not begun: it is run again
		s.started("send")
		s.do(engine.ExecutionRecovered{}) // begun: only a person knows
		s.status(engine.StatusWaitingForHuman)
		for id, ask := range s.asks {
			if ask.Purpose != engine.PurposeOutcomeUnknown {
				t.Fatalf("question %+v", ask)
			}
			s.do(engine.AskAnswered{Ask: id, Outcome: engine.AskDone, Choice: engine.ChoiceNotDone})
		}
		if run := s.run("send"); run.Cause.Filled == nil {
			t.Errorf("what was found is gone: %+v", run.Cause)
		}
		s.complete("send")
		s.complete("after")
		s.status(engine.StatusSuccess)
		s.replay()
	}
}

func TestFilling_StaysWithARetriedNode(t *testing.T) {
	t.Parallel()
	s := begin(t, "send -> after")
	look(s, "send", 1)
	found(s, "send[0]/filling")
	s.fail("send", fault.RemoteRejected)
	s.status(engine.StatusError)
	s.do(engine.NodeRetried{Activation: "send"})
	filledWith(s, "send", "of send[0]/filling") // nobody is asked again
	s.replay()
}

// A node that a program leads is filled first; the close of its turn has what was found.
func TestFilling_ComesBeforeAProgram(t *testing.T) {
	t.Parallel()
	s := begin(t, "agent -> after")
	look(s, "agent", 1)
	found(s, "agent[0]/filling")
	filledWith(s, "agent", "of agent[0]/filling")
	config, err := json.Marshal(engine.LoopConfig{Profiles: 1, Tries: 1})
	if err != nil {
		t.Fatal(err)
	}
	s.do(engine.ScopeOpened{Attempt: s.run("agent").Attempt, Program: engine.ProgramToolLoop, Config: config, Count: 1, State: "request"})
	replied(s, "agent[0]/complete_1", engine.LoopReply{})
	if c := s.run("agent").Cause; c.Kind != engine.CauseClose || c.Filled == nil || c.Filled.Ref != "of agent[0]/filling" || c.State != "request" {
		t.Fatalf("cause %+v", c)
	}
	s.complete("agent")
	s.complete("after")
	s.status(engine.StatusSuccess)
	s.replay()
}

func TestFilling_PausesAndEndsLikeAnything(t *testing.T) {
	t.Parallel()
	s := begin(t, "send -> after\nother {\"on_error\": \"fail\"}")
	look(s, "send", 1)
	s.do(engine.ExecutionPaused{})
	found(s, "send[0]/filling")
	s.wantRuns("other")
	s.do(engine.ExecutionResumed{})
	filledWith(s, "send", "of send[0]/filling")

	s = begin(t, "send -> after\nother")
	look(s, "send", 1)
	s.suspend("send[0]/filling", engine.NodeSuspended{Ask: &engine.Question{Purpose: "param"}})
	s.fail("other", fault.Internal)
	s.status(engine.StatusError)
	if len(s.asks) > 0 {
		t.Errorf("questions of an execution that has failed: %v", s.asks)
	}
	s.do(engine.NodeRetried{Activation: "other"})
	if runs := s.runs(); !slices.Contains(runs, "send[0]/filling") {
		t.Errorf("runs %v; what was canceled with the failure goes on", runs)
	}
	s.do(engine.CancelRequested{})
	s.status(engine.StatusCanceled)
	s.replay()
}

func TestFilling_RefusesWhatItIsNotFor(t *testing.T) {
	t.Parallel()
	s := begin(t, "loop:iteration -> in\nin -> loop\nsend {}")
	s.refuse(fault.Invalid, engine.ScopeOpened{Attempt: s.run("loop").Attempt, Program: engine.ProgramFilling, Count: 1})
	s.refuse(fault.Invalid, engine.ScopeOpened{Attempt: s.run("send").Attempt, Program: engine.ProgramFilling, Count: 2})
	look(s, "send", 1)
	s.refuse(fault.Invalid, engine.ScopeOpened{Attempt: s.run("send[0]/filling").Attempt, Program: engine.ProgramFilling, Count: 1})
	s.do(engine.NodeSkipped{Activation: "send[0]/filling"}) // an operator who leaves it out lets the node see for itself
	filledWith(s, "send", "")
}
