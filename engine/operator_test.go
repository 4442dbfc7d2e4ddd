package engine_test

import (
	"encoding/json"
	"slices"
	"testing"

	"tandem/engine"
	"tandem/fault"
)

func TestOperator_Pause(t *testing.T) {
	t.Parallel()
	s := begin(t, `a -> b
		a -> c
		wait
		delay
		sub
		human
		join {"join":{"timeout_ms":9000}}
		a -> join
		slow -> join
		retry {"max_retries":2}`)
	s.suspend("wait", engine.NodeSuspended{Signal: "go"})
	s.suspend("delay", engine.NodeSuspended{Until: s.now + 5000})
	s.suspend("sub", engine.NodeSuspended{Child: &engine.Child{Workflow: "w"}})
	s.fail("retry", fault.RemoteError)
	s.do(engine.ExecutionPaused{})
	s.status(engine.StatusPaused)
	s.refuse(fault.Conflict, engine.ExecutionPaused{})
	child := engine.ChildID("exec", "sub", 0)
	if !slices.Equal(s.told, []string{"pause " + child}) {
		t.Errorf("children were told %v", s.told)
	}
	// Running attempts end and are recorded; nothing new is dispatched; what comes in acts on resume.
	s.complete("a")
	s.suspend("human", engine.NodeSuspended{Ask: &engine.Question{Purpose: "human_node"}})
	s.do(engine.SignalReceived{Node: "wait", Name: "go"})
	s.fire(engine.TimerWait)
	s.fire(engine.TimerRetry)
	s.fire(engine.TimerJoin)
	s.do(engine.ChildFinished{Child: child, Status: engine.StatusSuccess})
	s.wantRuns("slow")
	if len(s.asks) != 0 {
		t.Errorf("asked during a pause: %v", s.asks)
	}
	s.status(engine.StatusPaused)
	s.replay()
	s.do(engine.ExecutionResumed{})
	s.wantRuns("b", "c", "delay", "join", "retry", "slow", "sub", "wait")
	if len(s.asks) != 1 {
		t.Errorf("the question was not asked on resume")
	}
	s.refuse(fault.Conflict, engine.ExecutionResumed{})
	s.replay()
}

func TestOperator_Cancel(t *testing.T) {
	t.Parallel()
	t.Run("ReachesEverything", func(t *testing.T) {
		t.Parallel()
		s := begin(t, `pure
			pay {"effect":"once"}
			human
			sub
			loop:iteration -> x
			x -> loop
			later
			pure -> after`)
		s.started("pay")
		s.suspend("human", engine.NodeSuspended{Ask: &engine.Question{Purpose: "human_node"}})
		s.suspend("sub", engine.NodeSuspended{Child: &engine.Child{Workflow: "w"}})
		s.suspend("later", engine.NodeSuspended{Until: s.now + 1000})
		s.open("loop", engine.ScopeOpened{Count: 2})
		s.do(engine.CancelRequested{By: "u"})
		s.wantEnded(engine.NodeCanceled, "pure", "human", "loop[0]/x", "loop", "later")
		if len(s.asks)+len(s.timers) != 0 {
			t.Errorf("left: asks %v, timers %v", s.asks, s.timers)
		}
		s.status(engine.StatusRunning) // a once attempt and a child end first
		if !slices.Contains(s.canceled, "pay") {
			t.Error("the once attempt was not told to stop")
		}
		s.refuse(fault.Conflict, engine.CancelRequested{})
		s.refuse(fault.Conflict, engine.ExecutionPaused{})
		s.complete("pay")
		s.do(engine.ChildFinished{Child: engine.ChildID("exec", "sub", 0), Status: engine.StatusCanceled})
		s.status(engine.StatusCanceled)
		s.refuse(fault.Conflict, engine.CancelRequested{})
		s.refuse(fault.Conflict, engine.NodeRetried{Activation: "pure"})
		s.replay()
	})
	t.Run("AlsoFromAPause", func(t *testing.T) {
		t.Parallel()
		s := begin(t, "a -> b")
		s.do(engine.ExecutionPaused{})
		s.complete("a")
		s.do(engine.CancelRequested{})
		s.status(engine.StatusCanceled)
		s.replay()
	})
	t.Run("AlsoWhileItFails", func(t *testing.T) {
		t.Parallel()
		s := begin(t, "a\npay {\"effect\":\"once\"}")
		s.started("pay")
		s.fail("a", fault.InvalidInput)
		s.status(engine.StatusRunning)
		s.do(engine.CancelRequested{})
		s.complete("pay")
		s.status(engine.StatusCanceled)
	})
}

func TestOperator_ExecutionTimeout(t *testing.T) {
	t.Parallel()
	s := newSim(t, draw(t, "a -> b\npay {\"effect\":\"once\"}"), nil)
	s.start(engine.ExecutionCreated{TimeoutMS: 60_000})
	s.started("pay")
	s.fire(engine.TimerExecution)
	s.wantEnded(engine.NodeCanceled, "a")
	s.wantRuns("pay")
	s.complete("pay")
	s.status(engine.StatusTimeout)
	s.replay()
	s.do(engine.NodeRetried{Activation: "a"})
	s.status(engine.StatusRunning)
	if len(s.timers) != 1 {
		t.Errorf("the limit does not count again: %v", s.timers)
	}
	s.complete("a")
	s.complete("b")
	s.status(engine.StatusSuccess)
	if len(s.timers) != 0 {
		t.Errorf("timers left: %v", s.timers)
	}
	s.replay()
}

func TestOperator_Failure(t *testing.T) {
	t.Parallel()
	t.Run("OnceAttemptsEndFirstAndNothingNewStarts", func(t *testing.T) {
		t.Parallel()
		s := begin(t, `pay {"effect":"once"}
			bad -> x
			pure
			pay -> receipt
			human`)
		s.started("pay")
		s.suspend("human", engine.NodeSuspended{Ask: &engine.Question{Purpose: "human_node"}})
		s.fail("bad", fault.InvalidInput)
		s.wantEnded(engine.NodeCanceled, "pure", "human")
		if slices.Contains(s.canceled, "pay") {
			t.Error("a once attempt was interrupted")
		}
		s.wantRuns("pay")
		s.refuse(fault.Conflict, engine.NodeRetried{Activation: "bad"})
		s.complete("pay")
		s.status(engine.StatusError)
		s.replay()
		// A retry goes on with all of it: the failed node, what was canceled because of it, and what became ready.
		s.do(engine.NodeRetried{Activation: "bad"})
		s.wantRuns("bad", "human", "pure", "receipt")
		for id, gen := range map[engine.ActivationID]uint32{"bad": 1, "pure": 1, "human": 1, "receipt": 0} {
			if g := s.run(id).Generation; g != gen {
				t.Errorf("%s has generation %d, want %d", id, g, gen)
			}
		}
		for _, id := range []engine.ActivationID{"bad", "human", "pure", "receipt"} {
			s.complete(id)
		}
		s.complete("x")
		s.status(engine.StatusSuccess)
		s.replay()
	})
	t.Run("AnEffectThatWaitedIsNotRepeatedByARetry", func(t *testing.T) {
		t.Parallel()
		s := begin(t, "post {\"effect\":\"once\"}\nbad")
		s.started("post")
		s.suspend("post", engine.NodeSuspended{Signal: "callback"})
		s.fail("bad", fault.InvalidInput)
		s.status(engine.StatusError)
		s.do(engine.NodeRetried{Activation: "bad"})
		s.wantRuns("bad")
		if a, _ := s.state.Activation("post"); a.Status != engine.NodeWaitingInput {
			t.Errorf("post is %s, want a person to decide", a.Status)
		}
		s.replay()
	})
	t.Run("RetryOfACanceledSibling", func(t *testing.T) {
		t.Parallel()
		s := begin(t, "bad\npure")
		s.fail("bad", fault.InvalidInput)
		s.do(engine.NodeRetried{Activation: "pure"})
		s.wantRuns("pure")
		s.complete("pure")
		s.status(engine.StatusError)
		s.do(engine.NodeRetried{Activation: "bad"})
		s.complete("bad")
		s.status(engine.StatusSuccess)
		s.replay()
	})
}

func TestOperator_Skip(t *testing.T) {
	t.Parallel()
	t.Run("WithoutAnOutputItIsSkipped", func(t *testing.T) {
		t.Parallel()
		s := begin(t, "a -> b\na -> c\nc -> d\nb -> d")
		s.complete("a")
		s.do(engine.NodeSkipped{Activation: "b"})
		s.wantEnded(engine.NodeSkip, "b")
		if !slices.Contains(s.canceled, "b") {
			t.Error("the running attempt was not told to stop")
		}
		s.complete("c")
		s.complete("d")
		s.status(engine.StatusSuccess)
		s.replay()
	})
	t.Run("WithAnOutputItCountsAsCompleted", func(t *testing.T) {
		t.Parallel()
		s := begin(t, "bad -> next")
		s.fail("bad", fault.InvalidInput)
		s.status(engine.StatusError)
		s.do(engine.NodeSkipped{Activation: "bad", HasOutput: true, Output: "mine"})
		if c := s.run("bad").Cause; c.Kind != engine.CauseOutput || c.Ref != "mine" {
			t.Fatalf("cause %+v", c)
		}
		s.complete("bad")
		s.complete("next")
		s.status(engine.StatusSuccess)
		s.replay()
	})
	t.Run("AfterAnErrorTheRestGoesOn", func(t *testing.T) {
		t.Parallel()
		s := begin(t, "bad -> next\nother")
		s.fail("bad", fault.InvalidInput)
		s.do(engine.NodeSkipped{Activation: "bad"})
		s.wantEnded(engine.NodeSkip, "bad", "next")
		s.wantRuns("other")
		s.complete("other")
		s.status(engine.StatusSuccess)
	})
	t.Run("RefusesWhatIsUnderWay", func(t *testing.T) {
		t.Parallel()
		s := begin(t, "pay {\"effect\":\"once\"}\npay -> b\nloop:iteration -> x\nx -> loop")
		s.started("pay")
		s.refuse(fault.Conflict, engine.NodeSkipped{Activation: "pay"})
		s.refuse(fault.Conflict, engine.NodeSkipped{Activation: "b"})
		s.refuse(fault.NotFound, engine.NodeSkipped{Activation: "nobody"})
		s.open("loop", engine.ScopeOpened{Count: 1})
		s.refuse(fault.Conflict, engine.NodeSkipped{Activation: "loop"})
		s.refuse(fault.Conflict, engine.NodeRetried{Activation: "loop[0]/x"})
	})
}

func TestOperator_Recover(t *testing.T) {
	t.Parallel()
	t.Run("IssuesAgainWhatWasInHand", func(t *testing.T) {
		t.Parallel()
		s := begin(t, `pure
			pay {"effect":"once"}
			ready {"effect":"once"}
			human
			sub
			delay
			retry {"max_retries":1}
			timeout:body -> x`)
		s.started("pay")
		s.suspend("human", engine.NodeSuspended{Ask: &engine.Question{Purpose: "human_node"}})
		s.suspend("sub", engine.NodeSuspended{Child: &engine.Child{Workflow: "w"}})
		s.suspend("delay", engine.NodeSuspended{Until: s.now + 1000})
		s.fail("retry", fault.RemoteError)
		s.open("timeout", engine.ScopeOpened{Count: 1, Until: s.now + 5000})
		timers, asks, children := len(s.timers), len(s.asks), len(s.children)
		clear(s.timers)
		clear(s.asks)
		clear(s.children)
		s.do(engine.ExecutionRecovered{})
		s.wantRuns("pure", "ready", "timeout[0]/x")
		if len(s.timers) != timers || len(s.asks) != asks+1 || len(s.children) != children {
			t.Errorf("timers %v, asks %v, children %v", s.timers, s.asks, s.children)
		}
		if a, _ := s.state.Activation("pay"); a.Status != engine.NodeWaitingInput {
			t.Errorf("pay is %s: its outcome is unknown and a person decides", a.Status)
		}
		s.replay()
	})
	t.Run("AfterThreeItIsInterrupted", func(t *testing.T) {
		t.Parallel()
		s := begin(t, "killer -> b")
		for range engine.MaxRecoveries {
			s.do(engine.ExecutionRecovered{})
			s.wantRuns("killer")
		}
		s.do(engine.ExecutionRecovered{})
		s.status(engine.StatusError)
		if s.finish.Error.Code != fault.Interrupted {
			t.Errorf("error %v", s.finish.Error)
		}
		s.replay()
	})
	t.Run("OnlyDeathsInWhichItRanAloneAreHeldAgainstIt", func(t *testing.T) {
		t.Parallel()
		s := begin(t, "killer -> b\nother")
		beside := engine.ExecutionRecovered{Known: true, Begun: []engine.ActivationID{"killer", "other"}}
		for n := range 16 { // nothing points at it: it goes on, after pauses that grow
			before := s.now
			s.do(beside)
			if n < 6 {
				s.wantRuns("killer", "other")
				continue
			}
			s.wantRuns()
			want, pause := int64(min(1000<<(n-6), 60_000)), int64(0)
			for _, timer := range s.timers {
				if timer.Activation == "killer" {
					pause = timer.Until - before
				}
			}
			if pause < want*8/10 || pause > want*12/10 {
				t.Errorf("the pause after %d deaths is %d ms, want about %d", n+1, pause, want)
			}
			s.fire(engine.TimerRetry)
			s.fire(engine.TimerRetry)
		}
		for range 5 { // an orderly stop, or a death before it began
			s.do(engine.ExecutionRecovered{Known: true})
			s.wantRuns("killer", "other")
		}
		for range 5 { // it is tried again at once
			s.do(engine.ExecutionRecovered{Known: true, Begun: []engine.ActivationID{"killer", "other"}, Tried: true})
			s.wantRuns("killer", "other")
		}
		s.complete("other")
		alone := engine.ExecutionRecovered{Known: true, Begun: []engine.ActivationID{"killer"}, Alone: true}
		for range engine.MaxBlamed - 1 {
			s.do(alone)
			s.fire(engine.TimerRetry)
		}
		s.do(alone)
		s.status(engine.StatusError)
		if s.finish.Error.Code != fault.Interrupted {
			t.Errorf("error %v", s.finish.Error)
		}
		s.replay()
	})
	t.Run("WhatItWaitsForIsIssuedAgainWhileItsRunsGoOn", func(t *testing.T) {
		t.Parallel()
		s := begin(t, "pay {\"effect\":\"once\"}\nhuman")
		s.started("pay")
		s.suspend("human", engine.NodeSuspended{Ask: &engine.Question{Purpose: "human_node"}})
		clear(s.asks)
		running := len(s.running)
		commands := s.do(engine.ExecutionRecovered{Known: true, RunsGoOn: true})
		if len(commands) != 1 || len(s.asks) != 1 {
			t.Errorf("commands %+v", commands)
		}
		if a, _ := s.state.Activation("pay"); a.Status != engine.NodeRunning || a.Attempt != 1 || running == 0 {
			t.Errorf("pay is %+v", a)
		}
	})
	t.Run("OnlyTheRunsThatWereLost", func(t *testing.T) {
		t.Parallel()
		s := begin(t, "a\nb\npay {\"effect\":\"once\"}\nsend {\"effect\":\"once\"}\nhuman")
		s.started("pay")
		s.started("send")
		s.suspend("human", engine.NodeSuspended{Ask: &engine.Question{Purpose: "human_node"}})
		lost := []engine.Attempt{s.run("a").Attempt, s.run("pay").Attempt}
		commands := s.do(engine.ExecutionRecovered{Known: true, Lost: lost})
		if len(commands) != 2 {
			t.Errorf("commands %+v", commands)
		}
		for id, want := range map[engine.ActivationID]uint32{"a": 2, "b": 1, "send": 1} {
			if a, _ := s.state.Activation(id); a.Status != engine.NodeRunning || a.Attempt != want {
				t.Errorf("%q is %+v", id, a)
			}
		}
		if a, _ := s.state.Activation("pay"); !a.Unknown {
			t.Errorf("pay is %+v", a)
		}
		s.refuse(fault.Conflict, engine.ExecutionRecovered{Known: true, Lost: lost})
		s.replay()
	})
	t.Run("AnAttemptWhoseTurnHadNotCome", func(t *testing.T) {
		t.Parallel()
		s := begin(t, "pay {\"effect\":\"once\"}")
		at := s.run("pay").Attempt
		s.refuse(fault.Conflict, engine.NodeNotBegun{Attempt: at})
		s.started("pay")
		s.do(engine.NodeNotBegun{Attempt: at})
		s.do(engine.ExecutionRecovered{Known: true})
		s.wantRuns("pay")
		if len(s.asks) > 0 {
			t.Errorf("it asks %v", s.asks)
		}
		s.replay()
	})
	t.Run("DuringAPauseNothingIsIssued", func(t *testing.T) {
		t.Parallel()
		s := begin(t, "a -> b")
		s.do(engine.ExecutionPaused{})
		s.do(engine.ExecutionRecovered{})
		s.wantRuns()
		s.do(engine.ExecutionResumed{})
		if r := s.run("a"); r.Attempt.Attempt != 2 {
			t.Errorf("run %+v", r)
		}
		s.replay()
	})
	t.Run("WhileItEnds", func(t *testing.T) {
		t.Parallel()
		s := begin(t, "bad\npay {\"effect\":\"once\"}")
		s.started("pay")
		s.fail("bad", fault.InvalidInput)
		s.do(engine.ExecutionRecovered{})
		s.status(engine.StatusError)
		s.wantEnded(engine.NodeFailure, "pay")
		s.replay()
		s.do(engine.NodeRetried{Activation: "pay"})
		s.wantRuns("pay")
	})
}

func TestOperator_Fork(t *testing.T) {
	t.Parallel()
	// source returns an execution and its state as of the point where "b" became ready.
	source := func(t *testing.T) (*sim, string) {
		s := begin(t, `a -> b
			pay {"effect":"once"}
			sub
			human
			done -> b
			b -> c
			pay -> c`)
		s.started("pay")
		s.suspend("human", engine.NodeSuspended{Ask: &engine.Question{Purpose: "human_node"}})
		s.suspend("sub", engine.NodeSuspended{Child: &engine.Child{Workflow: "w"}})
		s.complete("done")
		s.complete("a")
		return s, s.snapshot()
	}
	t.Run("GoesOnFromThereUnderItsOwnName", func(t *testing.T) {
		t.Parallel()
		src, state := source(t)
		src.complete("b")
		s := newSim(t, src.graph, nil)
		s.do(engine.ExecutionForked{Semantics: 1, Execution: "fork", Source: "exec", Activation: "b", Input: "edited", State: json.RawMessage(state)})
		s.wantRuns("b")
		r := s.run("b")
		if r.Input != "edited" || r.AsOf != 1 {
			t.Errorf("run %+v", r)
		}
		if _, ok := s.children[engine.ChildID("fork", "sub", 0)]; !ok || len(s.children) != 1 {
			t.Errorf("children %v", s.children)
		}
		if len(s.asks) != 2 {
			t.Errorf("asks %v: the open question again, and what became of the payment", s.asks)
		}
		if s.state.Execution() != "fork" {
			t.Errorf("execution %q", s.state.Execution())
		}
		s.complete("b")
		s.replay()
	})
	t.Run("RefusesWhatCannotBe", func(t *testing.T) {
		t.Parallel()
		src, state := source(t)
		fork := func(f engine.ExecutionForked) error {
			_, err := engine.New(src.graph, nil).Apply(engine.Event{Seq: 1, Fact: f})
			return err
		}
		for name, c := range map[string]struct {
			fork engine.ExecutionForked
			code fault.Code
		}{
			"unknown activation": {engine.ExecutionForked{Semantics: 1, Execution: "f", Activation: "nobody", State: json.RawMessage(state)}, fault.NotFound},
			"finished":           {engine.ExecutionForked{Semantics: 1, Execution: "f", Activation: "a", State: json.RawMessage(state)}, fault.NotFound},
			"no name":            {engine.ExecutionForked{Semantics: 1, Activation: "b", State: json.RawMessage(state)}, fault.Invalid},
			"broken state":       {engine.ExecutionForked{Semantics: 1, Execution: "f", Activation: "b", State: json.RawMessage(`{"root":`)}, fault.Invalid},
			"semantics":          {engine.ExecutionForked{Semantics: 9, Execution: "f", Activation: "b", State: json.RawMessage(state)}, fault.Unsupported},
		} {
			if err := fork(c.fork); fault.CodeOf(err) != c.code {
				t.Errorf("%s: error %v, want code %s", name, err, c.code)
			}
		}
		src.do(engine.CancelRequested{})
		if err := fork(engine.ExecutionForked{Semantics: 1, Execution: "f", Activation: "b", State: json.RawMessage(src.snapshot())}); fault.CodeOf(err) != fault.Conflict {
			t.Errorf("ended source: error %v", err)
		}
	})
	t.Run("FromInsideAnIteration", func(t *testing.T) {
		t.Parallel()
		src := begin(t, looped)
		src.complete("start")
		src.open("loop", engine.ScopeOpened{Count: 5})
		for _, id := range []engine.ActivationID{"loop[0]/a", "loop[0]/b", "loop[1]/a", "loop[1]/b"} {
			src.complete(id)
		}
		state := src.snapshot()
		s := newSim(t, src.graph, nil)
		s.do(engine.ExecutionForked{Semantics: 1, Execution: "fork", Source: "exec", Activation: "loop[2]/a", State: json.RawMessage(state)})
		for _, id := range []engine.ActivationID{"loop[2]/a", "loop[2]/b", "loop[3]/a", "loop[3]/b", "loop[4]/a", "loop[4]/b"} {
			s.complete(id)
		}
		if c := s.run("loop").Cause.Closed; c.Succeeded != 5 {
			t.Errorf("closed %+v", c)
		}
		s.replay()
	})
}

func TestOperator_RefusedRequest(t *testing.T) {
	t.Parallel()
	s := begin(t, "a")
	s.complete("a")
	s.status(engine.StatusSuccess)
	before, seq := s.finish, s.seq
	s.finish = nil // the fact may follow the end
	if commands := s.do(engine.RequestRefused{Request: "pause", Error: fault.New(fault.Conflict, "it has ended")}); len(commands) != 0 {
		t.Errorf("commands %v", commands)
	}
	s.finish = before
	s.status(engine.StatusSuccess)
	if s.state.Seq() != seq+1 {
		t.Errorf("the state is at %d", s.state.Seq())
	}
	s.replay()
}

func TestState_Outstanding(t *testing.T) {
	t.Parallel()
	s := begin(t, "a\ndelay\nhuman")
	s.suspend("delay", engine.NodeSuspended{Until: s.now + 1})
	s.suspend("human", engine.NodeSuspended{Ask: &engine.Question{Purpose: "human_node"}})
	before := s.snapshot()
	var runs, sleeps, asks int
	for _, c := range s.state.Outstanding() {
		switch c.(type) {
		case engine.RunNode:
			runs++
		case engine.Sleep:
			sleeps++
		case engine.Ask:
			asks++
		default:
			t.Errorf("unexpected %T", c)
		}
	}
	if runs != 1 || sleeps != 1 || asks != 1 {
		t.Errorf("runs %d, sleeps %d, asks %d", runs, sleeps, asks)
	}
	if s.snapshot() != before {
		t.Error("asking changed the state")
	}
}
