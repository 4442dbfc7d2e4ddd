package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"tandem/engine"
	"tandem/fault"
)

const looped = `start -> loop
	loop:iteration -> a
	a -> b
	b -> loop
	loop:completed -> end`

func TestScope_Loop(t *testing.T) {
	t.Parallel()
	t.Run("OneAfterTheOther", func(t *testing.T) {
		t.Parallel()
		s := begin(t, looped)
		s.complete("start")
		s.open("loop", engine.ScopeOpened{Count: 3})
		for i := range 3 {
			a, b := engine.ActivationID(fmt.Sprintf("loop[%d]/a", i)), engine.ActivationID(fmt.Sprintf("loop[%d]/b", i))
			s.wantRuns(string(a))
			s.complete(a)
			s.complete(b)
		}
		r := s.run("loop")
		if r.Cause.Kind != engine.CauseClose || r.Cause.Closed.Iterations != 3 || r.Cause.Closed.Succeeded != 3 {
			t.Fatalf("close %+v", r.Cause.Closed)
		}
		if want := []string{"loop[0]", "loop[1]", "loop[2]"}; !slices.Equal(s.closed, want) {
			t.Errorf("closed %v", s.closed)
		}
		s.complete("loop", "completed")
		s.complete("end")
		s.status(engine.StatusSuccess)
		s.replay()
	})
	t.Run("WithoutBackEdgesDeadEndsCloseAnIteration", func(t *testing.T) {
		t.Parallel()
		s := begin(t, "loop:iteration -> a\nloop:iteration -> b\nloop:completed -> end")
		s.open("loop", engine.ScopeOpened{Count: 2})
		s.complete("loop[0]/b")
		s.wantRuns("loop[0]/a")
		s.complete("loop[0]/a")
		s.complete("loop[1]/a")
		s.complete("loop[1]/b")
		s.complete("loop", "completed")
		s.complete("end")
		s.status(engine.StatusSuccess)
	})
	t.Run("SeveralAtOnce", func(t *testing.T) {
		t.Parallel()
		s := begin(t, "loop:iteration -> a\na -> loop")
		s.open("loop", engine.ScopeOpened{Count: 5, Concurrency: 2})
		s.wantRuns("loop[0]/a", "loop[1]/a")
		s.complete("loop[1]/a")
		s.wantRuns("loop[0]/a", "loop[2]/a")
		s.complete("loop[0]/a")
		s.complete("loop[2]/a")
		s.complete("loop[3]/a")
		s.complete("loop[4]/a")
		s.complete("loop", "completed")
		s.status(engine.StatusSuccess)
		s.replay()
	})
	t.Run("NoIterationSkipsTheBodyOnce", func(t *testing.T) {
		t.Parallel()
		s := begin(t, `loop:iteration -> a
			a -> loop2
			loop2:iteration -> b
			b -> loop2
			loop2:completed -> loop
			loop:completed -> end`)
		s.open("loop", engine.ScopeOpened{Count: 0})
		s.wantRuns("loop")
		s.complete("loop", "completed")
		s.wantEnded(engine.NodeSkip, "loop[]/a", "loop[]/loop2", "loop[]/loop2[]/b")
		s.wantRuns("end")
	})
	t.Run("ASkippedLoopSkipsItsBody", func(t *testing.T) {
		t.Parallel()
		s := begin(t, looped)
		s.complete("start", "other")
		s.wantEnded(engine.NodeSkip, "loop", "loop[]/a", "loop[]/b", "end")
		s.status(engine.StatusSuccess)
	})
	t.Run("Nested", func(t *testing.T) {
		t.Parallel()
		s := begin(t, `loop:iteration -> loop2
			loop2:iteration -> x
			x -> loop2
			loop2:completed -> y
			y -> loop`)
		s.open("loop", engine.ScopeOpened{Count: 2, Concurrency: 2})
		for i := range 2 {
			inner := engine.ActivationID(fmt.Sprintf("loop[%d]/loop2", i))
			s.open(inner, engine.ScopeOpened{Count: 2})
			s.complete(engine.ActivationID(fmt.Sprintf("loop[%d]/loop2[0]/x", i)))
			s.complete(engine.ActivationID(fmt.Sprintf("loop[%d]/loop2[1]/x", i)))
			s.complete(inner, "completed")
			s.complete(engine.ActivationID(fmt.Sprintf("loop[%d]/y", i)))
		}
		s.complete("loop", "completed")
		s.status(engine.StatusSuccess)
		s.replay()
	})
	t.Run("TurnsDecide", func(t *testing.T) {
		t.Parallel()
		s := begin(t, "loop:iteration ~> a\nloop:iteration -> b\na -> loop\nb -> loop\nloop:completed -> end")
		s.open("loop", engine.ScopeOpened{Count: -1, Turns: true, State: "s0"})
		r := s.run("loop")
		if r.Cause.Kind != engine.CauseTurn || r.Cause.Index != 0 || r.Cause.State != "s0" {
			t.Fatalf("cause %+v", r.Cause)
		}
		s.refuse(fault.Invalid, engine.NodeCompleted{Attempt: r.Attempt})
		s.do(engine.ScopeAdvanced{Attempt: r.Attempt, Open: true, Entry: []engine.Verdict{{Edge: 0, Live: true, Ref: "converted"}}})
		if in := s.run("loop[0]/a").Inputs; in[0].Ref != "converted" {
			t.Errorf("inputs %+v", in)
		}
		s.complete("loop[0]/a")
		s.complete("loop[0]/b")
		// The conversion of the second turn kills its connection.
		s.do(engine.ScopeAdvanced{Attempt: s.run("loop").Attempt, Open: true, Entry: []engine.Verdict{{Edge: 0}}, State: "s1"})
		s.wantRuns("loop[1]/b")
		if owner, index, state, ok := s.state.ScopeState("loop[1]"); !ok || owner != "loop" || index != 1 || state != "s1" {
			t.Errorf("scope state: %q %d %q %v", owner, index, state, ok)
		}
		s.wantEnded(engine.NodeSkip, "loop[1]/a")
		s.complete("loop[1]/b")
		// A delay between iterations is a wait of the turn.
		s.suspend("loop", engine.NodeSuspended{Until: s.now + 1000})
		s.status(engine.StatusWaiting)
		s.fire(engine.TimerWait)
		if c := s.run("loop").Cause; c.Kind != engine.CauseTurn || c.Index != 2 || c.Wake == nil {
			t.Errorf("cause %+v", c)
		}
		s.do(engine.ScopeAdvanced{Attempt: s.run("loop").Attempt})
		if c := s.run("loop").Cause; c.Closed == nil || c.Closed.Iterations != 2 || !c.Closed.Broken || c.State != "s1" {
			t.Errorf("cause %+v", c)
		}
		s.complete("loop", "completed")
		s.complete("end")
		s.status(engine.StatusSuccess)
		s.replay()
	})
	t.Run("EmptyIterationsPassThroughTheRuntime", func(t *testing.T) {
		t.Parallel()
		s := begin(t, `a {"disabled":true,"skip_disabled":true}
			loop:iteration -> a
			a -> loop`)
		commands := s.open("loop", engine.ScopeOpened{Count: 10_000_000})
		if len(commands) > 10 {
			t.Fatalf("%d commands for one event", len(commands))
		}
		for range 3 {
			s.do(engine.ScopeAdvanced{Attempt: s.run("loop").Attempt, Open: true})
		}
		s.do(engine.ScopeAdvanced{Attempt: s.run("loop").Attempt})
		s.complete("loop", "completed")
		s.status(engine.StatusSuccess)
		s.replay()
	})
	t.Run("RefusesWhatCannotBe", func(t *testing.T) {
		t.Parallel()
		s := begin(t, looped)
		s.refuse(fault.Invalid, engine.ScopeOpened{Attempt: s.run("start").Attempt, Count: 1})
		s.complete("start")
		at := s.run("loop").Attempt
		s.refuse(fault.Invalid, engine.ScopeOpened{Attempt: at, Count: -2})
		s.refuse(fault.Invalid, engine.ScopeOpened{Attempt: at, Count: -1})
		s.refuse(fault.Invalid, engine.ScopeOpened{Attempt: at, Program: "nobody", Count: 1})
		s.refuse(fault.Invalid, engine.ScopeAdvanced{Attempt: at, Open: true})
	})
	t.Run("ClosedIterationsLeaveTheState", func(t *testing.T) {
		t.Parallel()
		s := begin(t, looped)
		s.complete("start")
		s.open("loop", engine.ScopeOpened{Count: 1000})
		size := 0
		for i := range 1000 {
			s.complete(engine.ActivationID(fmt.Sprintf("loop[%d]/a", i)))
			s.complete(engine.ActivationID(fmt.Sprintf("loop[%d]/b", i)))
			if i == 10 {
				size = len(s.snapshot())
			}
			if i == 990 && len(s.snapshot()) > size+100 {
				t.Fatalf("the state grew from %d to %d bytes", size, len(s.snapshot()))
			}
		}
	})
}

func TestScope_Failure(t *testing.T) {
	t.Parallel()
	t.Run("KeepGoingClosesOnlyTheIteration", func(t *testing.T) {
		t.Parallel()
		s := begin(t, `b {"effect":"once"}
			loop:iteration -> a
			loop:iteration -> b
			a -> c
			c -> loop
			b -> loop
			loop:completed -> end`)
		s.open("loop", engine.ScopeOpened{Count: 2, KeepGoing: true})
		s.started("loop[0]/b")
		s.fail("loop[0]/a", fault.InvalidInput)
		s.wantRuns("loop[0]/b") // a once attempt ends first
		s.complete("loop[0]/b")
		s.wantRuns("loop[1]/a", "loop[1]/b")
		s.complete("loop[1]/a")
		s.complete("loop[1]/c")
		s.complete("loop[1]/b")
		if c := s.run("loop").Cause.Closed; c.Succeeded != 1 || c.Failed != 1 {
			t.Errorf("closed %+v", c)
		}
		s.complete("loop", "completed")
		s.complete("end")
		s.status(engine.StatusSuccess)
		s.replay()
	})
	t.Run("OtherwiseItEndsTheExecutionAndTheScopeIsFrozen", func(t *testing.T) {
		t.Parallel()
		s := begin(t, looped)
		s.complete("start")
		s.open("loop", engine.ScopeOpened{Count: 3, Concurrency: 2})
		s.complete("loop[0]/a")
		s.fail("loop[0]/b", fault.InvalidInput)
		s.status(engine.StatusError)
		s.wantEnded(engine.NodeCanceled, "loop[1]/a")
		s.wantEnded(engine.NodeFailure, "loop[0]/b", "loop")
		if a, _ := s.state.Activation("loop"); a.Status != engine.NodeFailure {
			t.Errorf("the loop is %s, want failed", a.Status)
		}
		s.refuse(fault.Conflict, engine.NodeRetried{Activation: "loop"})
		s.refuse(fault.Conflict, engine.NodeRetried{Activation: "loop[0]/a"})
		s.refuse(fault.NotFound, engine.NodeRetried{Activation: "loop[7]/a"})
		s.do(engine.NodeRetried{Activation: "loop[0]/b"})
		s.status(engine.StatusRunning)
		s.wantRuns("loop[0]/b", "loop[1]/a")
		if r := s.run("loop[1]/a"); r.Generation != 1 {
			t.Errorf("generation %d", r.Generation)
		}
		s.complete("loop[0]/b")
		s.complete("loop[1]/a")
		s.complete("loop[1]/b")
		s.complete("loop[2]/a")
		s.complete("loop[2]/b")
		s.complete("loop", "completed")
		s.complete("end")
		s.status(engine.StatusSuccess)
		s.replay()
	})
	t.Run("TheScopeNodeMayHandleIt", func(t *testing.T) {
		t.Parallel()
		s := begin(t, looped+`
			loop {"on_error":"continue","max_retries":3}
			loop:error -> mend`)
		s.complete("start")
		s.open("loop", engine.ScopeOpened{Count: 3, Concurrency: 2})
		s.fail("loop[1]/a", fault.RemoteError)
		s.wantEnded(engine.NodeCanceled, "loop[0]/a")
		r := s.run("loop")
		if r.Cause.Kind != engine.CauseError || r.Cause.Error.Retryable {
			t.Fatalf("cause %+v", r.Cause)
		}
		s.complete("loop", "error")
		s.wantRuns("mend")
		s.replay()
	})
	t.Run("ATurnThatFailsFailsTheScope", func(t *testing.T) {
		t.Parallel()
		s := begin(t, looped+"\nloop {\"max_retries\":3}")
		s.complete("start")
		s.open("loop", engine.ScopeOpened{Count: -1, Turns: true, Concurrency: 2})
		s.do(engine.ScopeAdvanced{Attempt: s.run("loop").Attempt, Open: true})
		s.fail("loop", fault.Timeout) // retryable, but scope nodes are never retried
		s.wantEnded(engine.NodeCanceled, "loop[0]/a")
		s.status(engine.StatusError)
		s.replay()
	})
	t.Run("TwoFailuresAreRetriedOneByOne", func(t *testing.T) {
		t.Parallel()
		s := begin(t, `a {"effect":"once"}
			loop:iteration -> a
			a -> loop`)
		s.open("loop", engine.ScopeOpened{Count: 3, Concurrency: 2})
		s.started("loop[0]/a")
		s.started("loop[1]/a")
		s.fail("loop[0]/a", fault.InvalidInput)
		s.fail("loop[1]/a", fault.InvalidInput)
		s.status(engine.StatusError)
		s.do(engine.NodeRetried{Activation: "loop[0]/a"})
		s.wantRuns("loop[0]/a")
		s.complete("loop[0]/a")
		s.status(engine.StatusError) // the other failure is still there
		if s.finish.Node != "loop[1]/a" {
			t.Errorf("finish %+v", s.finish)
		}
		s.replay()
		s.do(engine.NodeRetried{Activation: "loop[1]/a"})
		s.complete("loop[1]/a")
		s.complete("loop[2]/a")
		s.complete("loop", "completed")
		s.status(engine.StatusSuccess)
		s.replay()
	})
}

func TestScope_Deadline(t *testing.T) {
	t.Parallel()
	const guarded = `timeout:body -> a
		timeout:body -> pay
		pay {"effect":"once"}
		a -> b
		timeout:result -> ok
		timeout:timeout -> late`
	t.Run("InTime", func(t *testing.T) {
		t.Parallel()
		s := begin(t, guarded)
		s.open("timeout", engine.ScopeOpened{Count: 1, Until: s.now + 5000})
		s.complete("timeout[0]/a")
		s.complete("timeout[0]/pay")
		s.complete("timeout[0]/b")
		if len(s.timers) != 0 {
			t.Error("the deadline was not removed")
		}
		s.complete("timeout", "result")
		s.wantRuns("ok")
		s.wantEnded(engine.NodeSkip, "late")
	})
	t.Run("TooLate", func(t *testing.T) {
		t.Parallel()
		s := begin(t, guarded)
		s.open("timeout", engine.ScopeOpened{Count: 1, Until: s.now + 5000})
		s.started("timeout[0]/pay")
		s.fire(engine.TimerDeadline)
		s.wantEnded(engine.NodeCanceled, "timeout[0]/a")
		s.wantRuns("timeout[0]/pay") // it first ends
		s.complete("timeout[0]/pay")
		c := s.run("timeout").Cause.Closed
		if !c.Deadline || !slices.Equal(c.Unfinished, []engine.ActivationID{"timeout[0]/a", "timeout[0]/pay"}) {
			t.Errorf("closed %+v", c)
		}
		s.complete("timeout", "timeout")
		s.wantRuns("late")
		s.replay()
	})
	t.Run("WithdrawsQuestionsAndCancelsChildren", func(t *testing.T) {
		t.Parallel()
		s := begin(t, guarded)
		s.open("timeout", engine.ScopeOpened{Count: 1, Until: s.now + 5000})
		s.suspend("timeout[0]/a", engine.NodeSuspended{Ask: &engine.Question{Purpose: "human_node"}})
		s.suspend("timeout[0]/pay", engine.NodeSuspended{Child: &engine.Child{Workflow: "w"}})
		s.fire(engine.TimerDeadline)
		if len(s.asks) != 0 || len(s.told) != 1 {
			t.Fatalf("asks %v, told %v", s.asks, s.told)
		}
		s.wantRuns()
		s.replay()
		s.do(engine.ChildFinished{Child: engine.ChildID("exec", "timeout[0]/pay", 0), Status: engine.StatusCanceled})
		s.wantRuns("timeout")
		s.replay()
	})
	t.Run("TheNearestDeadlineWins", func(t *testing.T) {
		t.Parallel()
		s := begin(t, `timeout:body -> timeout2
			timeout2:body -> a
			timeout2:timeout -> late2
			timeout:timeout -> late`)
		s.open("timeout", engine.ScopeOpened{Count: 1, Until: s.now + 9000})
		outer := s.now + 9000
		s.open("timeout[0]/timeout2", engine.ScopeOpened{Count: 1, Until: s.now + 5000})
		for id, c := range s.timers {
			if c.Until < outer {
				s.now = c.Until
				s.do(engine.TimerFired{Timer: id})
			}
		}
		s.complete("timeout[0]/timeout2", "timeout")
		s.wantRuns("timeout[0]/late2")
		s.fire(engine.TimerDeadline)
		s.complete("timeout", "timeout")
		s.wantRuns("late")
		s.replay()
	})
}
