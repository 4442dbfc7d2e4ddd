package engine_test

import (
	"testing"

	"tandem/engine"
	"tandem/fault"
)

func TestActivation_Retry(t *testing.T) {
	t.Parallel()
	t.Run("BacksOffWithDurableTimers", func(t *testing.T) {
		t.Parallel()
		s := begin(t, `a {"max_retries":3}
			a -> b`)
		for i, want := range []int64{1000, 2000, 4000} {
			at := s.now
			s.fail("a", fault.RemoteError)
			s.status(engine.StatusWaiting)
			if a, _ := s.state.Activation("a"); a.Status != engine.NodeRetrying || a.Retries != uint32(i+1) {
				t.Fatalf("activation %+v", a)
			}
			for _, c := range s.timers {
				if d := c.Until - at; d < want*8/10 || d > want*12/10 {
					t.Errorf("backoff %d ms, want about %d", d, want)
				}
			}
			s.fire(engine.TimerRetry)
			if r := s.run("a"); r.Attempt.Attempt != uint32(i+2) || r.LastTry != (i == 2) {
				t.Errorf("run %+v", r)
			}
		}
		s.fail("a", fault.RemoteError)
		s.status(engine.StatusError)
		s.replay()
	})
	t.Run("HonoursWhatTheServiceAsksForUpToAnHour", func(t *testing.T) {
		t.Parallel()
		for asked, want := range map[int64]int64{90_000: 90_000, 86_400_000: 3_600_000} {
			s := begin(t, `a {"max_retries":1}`)
			s.do(engine.NodeFailed{Attempt: s.run("a").Attempt, Error: fault.New(fault.RateLimited, "slow down"), RetryAfterMS: asked})
			for _, c := range s.timers {
				if got := c.Until - s.now; got != want {
					t.Errorf("waits %d ms, want %d", got, want)
				}
			}
		}
	})
	t.Run("OnlyWhatIsRetryable", func(t *testing.T) {
		t.Parallel()
		s := begin(t, `a {"max_retries":3}`)
		s.fail("a", fault.InvalidInput)
		s.status(engine.StatusError)
		if s.finish.Error.Code != fault.InvalidInput || s.finish.Node != "a" {
			t.Errorf("finish %+v", s.finish)
		}
	})
	t.Run("RefusesStaleOutcomes", func(t *testing.T) {
		t.Parallel()
		s := begin(t, `a {"max_retries":3}
			a -> b`)
		first := s.run("a").Attempt
		s.fail("a", fault.RemoteError)
		s.refuse(fault.Conflict, engine.NodeCompleted{Attempt: first})
		s.fire(engine.TimerRetry)
		s.refuse(fault.Conflict, engine.NodeCompleted{Attempt: first})
		s.complete("a")
		s.refuse(fault.Conflict, engine.NodeCompleted{Attempt: first})
		s.refuse(fault.Conflict, engine.NodeFailed{Attempt: engine.Attempt{Activation: "nobody", Attempt: 1}, Error: fault.New(fault.Internal, "x")})
		s.refuse(fault.Invalid, engine.NodeFailed{Attempt: s.run("b").Attempt})
	})
}

func TestActivation_OnError(t *testing.T) {
	t.Parallel()
	t.Run("ContinueMakesTheErrorAnOutput", func(t *testing.T) {
		t.Parallel()
		s := begin(t, `a {"on_error":"continue"}
			a -> ok
			a:error -> mend`)
		s.do(engine.NodeFailed{Attempt: s.run("a").Attempt, Error: fault.New(fault.NotFound, "gone"), Handled: true, Outputs: []engine.Output{{Key: "error", Ref: "e"}}})
		s.wantRuns("mend")
		s.wantEnded(engine.NodeFailure, "a")
		s.wantEnded(engine.NodeSkip, "ok")
		s.complete("mend")
		s.status(engine.StatusSuccess)
		s.refuse(fault.Conflict, engine.NodeRetried{Activation: "a"})
		s.replay()
	})
	t.Run("AsksForTheVerdictsItWasNotGiven", func(t *testing.T) {
		t.Parallel()
		s := begin(t, `a {"on_error":"continue","max_retries":1,"timeout_ms":2500}
			a -> ok
			a:error ~> mend`)
		s.do(engine.AttemptTimedOut{Attempt: s.run("a").Attempt})
		s.fire(engine.TimerRetry)
		s.do(engine.AttemptTimedOut{Attempt: s.run("a").Attempt})
		r := s.run("a")
		if r.Cause.Kind != engine.CauseError || r.Cause.Error.Code != fault.Timeout {
			t.Fatalf("run %+v", r.Cause)
		}
		s.do(engine.NodeCompleted{Attempt: r.Attempt, Outputs: []engine.Output{{Key: "error"}}, Settled: []engine.Verdict{{Edge: 1, Live: true, Ref: "converted"}}})
		if in := s.run("mend").Inputs; in[0].Ref != "converted" {
			t.Errorf("inputs %+v", in)
		}
		s.replay()
	})
}

func TestActivation_Timeout(t *testing.T) {
	t.Parallel()
	t.Run("CancelsAndRetries", func(t *testing.T) {
		t.Parallel()
		s := begin(t, `a {"timeout_ms":420000,"max_retries":1}`)
		late := s.run("a").Attempt
		s.do(engine.AttemptTimedOut{Attempt: late})
		if len(s.canceled) != 1 {
			t.Fatal("the attempt was not told to stop")
		}
		s.refuse(fault.Conflict, engine.NodeCompleted{Attempt: late})
		s.fire(engine.TimerRetry)
		s.complete("a")
		s.status(engine.StatusSuccess)
	})
	t.Run("LetsAOnceAttemptSayHowItEnded", func(t *testing.T) {
		t.Parallel()
		s := begin(t, `a {"effect":"once","timeout_ms":1000}`)
		s.started("a")
		s.do(engine.AttemptTimedOut{Attempt: s.run("a").Attempt})
		s.status(engine.StatusRunning)
		s.complete("a")
		s.status(engine.StatusSuccess)
	})
}

func TestActivation_UnknownOutcome(t *testing.T) {
	t.Parallel()
	unknown := func(t *testing.T, config string) *sim {
		s := begin(t, "pay "+config+"\npay -> thank\npay -> ship")
		s.started("pay")
		s.do(engine.NodeFailed{Attempt: s.run("pay").Attempt, Error: fault.New(fault.NetworkError, "cut off"), Unknown: true})
		return s
	}
	ask := func(s *sim) engine.AskID {
		for id, a := range s.asks {
			if a.Purpose != engine.PurposeOutcomeUnknown {
				s.t.Errorf("purpose %q", a.Purpose)
			}
			return id
		}
		s.t.Fatal("nobody was asked")
		return ""
	}
	t.Run("AsksByDefault", func(t *testing.T) {
		t.Parallel()
		s := unknown(t, `{"effect":"once","max_retries":3}`)
		s.status(engine.StatusWaitingForHuman)
		s.wantRuns()
		id := ask(s)
		s.refuse(fault.Invalid, engine.AskAnswered{Ask: id, Outcome: engine.AskDone, Choice: "perhaps"})
		s.refuse(fault.Conflict, engine.AskAnswered{Ask: "other", Outcome: engine.AskDone, Choice: engine.ChoiceDone})
		s.do(engine.AskAnswered{Ask: id, Outcome: engine.AskDone, Choice: engine.ChoiceDone, Ref: "receipt"})
		if r := s.run("pay"); r.Cause.Kind != engine.CauseOutput || r.Cause.Ref != "receipt" {
			t.Fatalf("done must only settle the connections, got %+v", r.Cause)
		}
		s.complete("pay")
		s.wantRuns("ship", "thank")
		s.refuse(fault.Conflict, engine.AskAnswered{Ask: id, Outcome: engine.AskDone, Choice: engine.ChoiceStop})
		s.replay()
	})
	t.Run("NotDoneRunsAgain", func(t *testing.T) {
		t.Parallel()
		s := unknown(t, `{"effect":"once"}`)
		s.do(engine.AskAnswered{Ask: ask(s), Outcome: engine.AskDone, Choice: engine.ChoiceNotDone})
		if r := s.run("pay"); r.Cause.Kind != engine.CauseRun || r.Attempt.Attempt != 2 {
			t.Errorf("run %+v", r)
		}
	})
	t.Run("StopFails", func(t *testing.T) {
		t.Parallel()
		s := unknown(t, `{"effect":"once"}`)
		s.do(engine.AskAnswered{Ask: ask(s), Outcome: engine.AskDone, Choice: engine.ChoiceStop})
		s.status(engine.StatusError)
		if s.finish.Error.Code != fault.OutcomeUnknown {
			t.Errorf("error %v", s.finish.Error)
		}
	})
	t.Run("RetryTriesAgainWhileThereAreRetries", func(t *testing.T) {
		t.Parallel()
		s := unknown(t, `{"effect":"once","on_unknown":"retry","max_retries":1}`)
		s.fire(engine.TimerRetry)
		s.started("pay")
		s.do(engine.NodeFailed{Attempt: s.run("pay").Attempt, Error: fault.New(fault.NetworkError, "cut off"), Unknown: true})
		s.status(engine.StatusError)
	})
	t.Run("FailFails", func(t *testing.T) {
		t.Parallel()
		s := unknown(t, `{"effect":"once","on_unknown":"fail"}`)
		s.status(engine.StatusError)
	})
	t.Run("AnOperatorMayRetryInstead", func(t *testing.T) {
		t.Parallel()
		s := unknown(t, `{"effect":"once"}`)
		s.do(engine.NodeRetried{Activation: "pay"})
		if r := s.run("pay"); r.Generation != 1 || r.Attempt.Attempt != 1 {
			t.Errorf("run %+v", r)
		}
		if len(s.asks) != 0 {
			t.Error("the question was not withdrawn")
		}
	})
}

// TestActivation_Inquires: a service that can be asked what became of an attempt is asked before a person is.
func TestActivation_Inquires(t *testing.T) {
	t.Parallel()
	cutOff := fault.New(fault.NetworkError, "cut off")
	unknown := func(t *testing.T, config string) *sim {
		s := begin(t, "pay "+config+"\npay -> thank")
		s.do(engine.NodeStarted{Attempt: s.run("pay").Attempt, Inquires: true})
		s.do(engine.NodeFailed{Attempt: s.run("pay").Attempt, Error: cutOff, Unknown: true})
		if r := s.run("pay"); r.Cause.Kind != engine.CauseInquire || len(s.asks) != 0 {
			t.Fatalf("run %+v, questions %v", r.Cause, s.asks)
		}
		return s
	}
	t.Run("WhatHappenedIsTheResult", func(t *testing.T) {
		t.Parallel()
		s := unknown(t, `{"effect":"once"}`)
		s.complete("pay")
		s.wantRuns("thank")
		s.replay()
	})
	t.Run("WhatDidNotHappenIsDoneAgain", func(t *testing.T) {
		t.Parallel()
		s := unknown(t, `{"effect":"once","max_retries":1}`)
		s.do(engine.NodeFailed{Attempt: s.run("pay").Attempt, Error: cutOff, NotDone: true})
		s.fire(engine.TimerRetry)
		if r := s.run("pay"); r.Cause.Kind != engine.CauseRun || r.Generation != 0 {
			t.Fatalf("run %+v", r)
		}
		s.replay()
		// As often as any other failure: then it has failed, and it is known that it did not happen.
		s.do(engine.NodeStarted{Attempt: s.run("pay").Attempt, Inquires: true})
		s.do(engine.NodeFailed{Attempt: s.run("pay").Attempt, Error: cutOff, Unknown: true})
		s.do(engine.NodeFailed{Attempt: s.run("pay").Attempt, Error: cutOff, NotDone: true})
		s.status(engine.StatusError)
		if s.finish.Error.Code != fault.NetworkError {
			t.Errorf("error %v", s.finish.Error)
		}
	})
	t.Run("APersonIsAskedWhenTheServiceCannotTell", func(t *testing.T) {
		t.Parallel()
		s := unknown(t, `{"effect":"once"}`)
		s.do(engine.NodeFailed{Attempt: s.run("pay").Attempt, Error: fault.New(fault.Unsupported, "it cannot be asked")})
		s.status(engine.StatusWaitingForHuman)
		for id, ask := range s.asks {
			if ask.Why.Run != cutOff || ask.Why.Inquiry == nil || ask.Why.Inquiry.Message != "it cannot be asked" {
				t.Errorf("it is asked because of %+v", ask.Why)
			}
			s.do(engine.AskAnswered{Ask: id, Outcome: engine.AskDone, Choice: engine.ChoiceNotDone})
		}
		if r := s.run("pay"); r.Cause.Kind != engine.CauseRun {
			t.Errorf("run %+v", r.Cause)
		}
		s.replay()
	})
	t.Run("WhatIsKnownIsToldAfterAPause", func(t *testing.T) {
		t.Parallel()
		s := unknown(t, `{"effect":"once"}`)
		s.do(engine.ExecutionPaused{})
		s.do(engine.NodeFailed{Attempt: s.run("pay").Attempt, Error: fault.New(fault.Unsupported, "it cannot be asked")})
		if len(s.asks) != 0 {
			t.Errorf("questions %v in a pause", s.asks)
		}
		var err error
		if s.state, err = engine.Restore(s.graph, s.programs, []byte(s.snapshot())); err != nil {
			t.Fatal(err)
		}
		s.do(engine.ExecutionResumed{})
		for _, ask := range s.asks {
			if ask.Why.Run == nil || ask.Why.Run.Message != "cut off" || ask.Why.Inquiry == nil {
				t.Errorf("it is asked because of %+v", ask.Why)
			}
		}
		if len(s.asks) != 1 {
			t.Errorf("questions %v", s.asks)
		}
	})
	t.Run("AServiceThatIsAwayIsAskedSomeTimes", func(t *testing.T) {
		t.Parallel()
		s := unknown(t, `{"effect":"once"}`)
		for range 4 {
			s.do(engine.NodeFailed{Attempt: s.run("pay").Attempt, Error: cutOff})
			s.fire(engine.TimerRetry)
		}
		s.do(engine.NodeFailed{Attempt: s.run("pay").Attempt, Error: cutOff})
		s.status(engine.StatusWaitingForHuman)
		s.replay()
	})
	t.Run("AfterACrash", func(t *testing.T) {
		t.Parallel()
		s := begin(t, "pay {\"effect\":\"once\"}\npay -> thank")
		s.do(engine.NodeStarted{Attempt: s.run("pay").Attempt, Inquires: true})
		s.do(engine.ExecutionRecovered{Known: true, Begun: []engine.ActivationID{"pay"}})
		// The process dies while the service is asked, too: it is asked again.
		s.do(engine.ExecutionRecovered{Known: true, Begun: []engine.ActivationID{"pay"}})
		if r := s.run("pay"); r.Cause.Kind != engine.CauseInquire || len(s.asks) != 0 {
			t.Fatalf("run %+v, questions %v", r.Cause, s.asks)
		}
		s.refuse(fault.Invalid, engine.NodeSuspended{Attempt: s.run("pay").Attempt, Signal: "x"})
		s.complete("pay")
		s.wantRuns("thank")
		s.replay()
	})
}

func TestActivation_Waits(t *testing.T) {
	t.Parallel()
	t.Run("Timer", func(t *testing.T) {
		t.Parallel()
		s := begin(t, "delay -> b")
		s.suspend("delay", engine.NodeSuspended{Until: s.now + 5000, Memo: "m"})
		s.status(engine.StatusWaiting)
		s.wantRuns()
		s.fire(engine.TimerWait)
		r := s.run("delay")
		if r.Cause.Wake == nil || r.Cause.Wake.By != engine.WakeTimer || r.Cause.Memo != "m" || r.Attempt.Attempt != 1 {
			t.Errorf("run %+v", r)
		}
		s.refuse(fault.Conflict, engine.TimerFired{Timer: "delay#wait.2"})
		s.complete("delay")
		s.complete("b")
		s.status(engine.StatusSuccess)
		s.replay()
	})
	t.Run("SignalOrTimeWhicheverIsFirst", func(t *testing.T) {
		t.Parallel()
		s := begin(t, "wait -> b")
		s.suspend("wait", engine.NodeSuspended{Until: s.now + 5000, Signal: "go"})
		s.do(engine.SignalReceived{Node: "wait", Name: "other", Ref: "x"})
		s.wantRuns()
		s.do(engine.SignalReceived{Node: "wait", Name: "go", Ref: "payload"})
		if w := s.run("wait").Cause.Wake; w.By != engine.WakeSignal || w.Ref != "payload" {
			t.Errorf("wake %+v", w)
		}
		if len(s.timers) != 0 {
			t.Error("the timer was not removed")
		}
		s.replay()
	})
	t.Run("AnEarlySignalIsKept", func(t *testing.T) {
		t.Parallel()
		s := begin(t, "a -> wait\nwait -> b")
		s.do(engine.SignalReceived{Node: "wait", Name: "go", Ref: "first"})
		s.do(engine.SignalReceived{Node: "wait", Name: "go", Ref: "second"})
		s.complete("a")
		s.suspend("wait", engine.NodeSuspended{Signal: "go"})
		if w := s.run("wait").Cause.Wake; w.Ref != "first" {
			t.Errorf("wake %+v", w)
		}
		s.suspend("wait", engine.NodeSuspended{Signal: "go"})
		if w := s.run("wait").Cause.Wake; w.Ref != "second" {
			t.Errorf("wake %+v", w)
		}
		s.replay()
	})
	t.Run("ASignalFindsTheOldestWaitOrTheOneItNames", func(t *testing.T) {
		t.Parallel()
		s := begin(t, "loop:iteration -> wait\nwait -> loop")
		s.open("loop", engine.ScopeOpened{Count: 3, Concurrency: 3})
		for _, id := range []engine.ActivationID{"loop[2]/wait", "loop[0]/wait", "loop[1]/wait"} {
			s.suspend(id, engine.NodeSuspended{Signal: "go"})
		}
		s.replay()
		s.do(engine.SignalReceived{Node: "wait", Activation: "loop[1]/wait", Name: "go"})
		s.wantRuns("loop[1]/wait")
		s.do(engine.SignalReceived{Node: "wait", Name: "go"})
		s.wantRuns("loop[1]/wait", "loop[2]/wait")
		s.refuse(fault.NotFound, engine.SignalReceived{Node: "nobody", Name: "go"})
		s.refuse(fault.Invalid, engine.SignalReceived{Node: "wait"})
	})
	t.Run("Question", func(t *testing.T) {
		t.Parallel()
		s := begin(t, "a -> human\nhuman -> b\na -> delay")
		s.complete("a")
		s.suspend("delay", engine.NodeSuspended{Until: s.now + 1000})
		s.suspend("human", engine.NodeSuspended{Ask: &engine.Question{Purpose: "human_node", Ref: "q"}, Until: s.now + 3_600_000})
		s.status(engine.StatusWaitingForHuman)
		if a, _ := s.state.Activation("human"); a.Status != engine.NodeWaitingInput || a.Ask == "" {
			t.Errorf("activation %+v", a)
		}
		for id := range s.asks {
			s.do(engine.AskAnswered{Ask: id, Outcome: engine.AskDone, Ref: "yes"})
		}
		s.status(engine.StatusRunning)
		if w := s.run("human").Cause.Wake; w.By != engine.WakeAnswer || w.Ref != "yes" || w.Outcome != engine.AskDone {
			t.Errorf("wake %+v", w)
		}
		s.complete("human")
		s.complete("b")
		s.status(engine.StatusWaiting)
		s.replay()
	})
	t.Run("OneQuestionForMany", func(t *testing.T) {
		t.Parallel()
		s := begin(t, "a\nb\nc")
		for _, id := range []engine.ActivationID{"b", "a", "c"} {
			s.suspend(id, engine.NodeSuspended{Ask: &engine.Question{Purpose: "budget", Key: "day"}})
		}
		if len(s.asks) != 1 {
			t.Fatalf("asked %v", s.asks)
		}
		s.replay()
		s.do(engine.NodeSkipped{Activation: "c"})
		if len(s.asks) != 1 {
			t.Fatal("withdrawn though others wait")
		}
		var id engine.AskID
		for id = range s.asks {
			s.do(engine.AskAnswered{Ask: id, Outcome: engine.AskDone, Ref: "raised"})
		}
		s.wantRuns("a", "b")
		s.refuse(fault.Conflict, engine.AskAnswered{Ask: id, Outcome: engine.AskDone})
		s.suspend("a", engine.NodeSuspended{Ask: &engine.Question{Purpose: "budget", Key: "day"}})
		if _, again := s.asks[id]; again || len(s.asks) != 1 {
			t.Errorf("the next question under a key is another one; asked %v", s.asks)
		}
		s.replay()
	})
	t.Run("Child", func(t *testing.T) {
		t.Parallel()
		s := begin(t, "sub {\"max_retries\":3}\nsub -> b")
		s.suspend("sub", engine.NodeSuspended{Child: &engine.Child{Workflow: "w"}})
		id := engine.ChildID("exec", "sub", 0)
		c, ok := s.children[id]
		if !ok || c.Depth != 1 || c.Spec.Workflow != "w" {
			t.Fatalf("children %+v", s.children)
		}
		s.status(engine.StatusWaiting)
		s.refuse(fault.Invalid, engine.ChildFinished{Child: id, Status: engine.StatusRunning})
		s.do(engine.ChildFinished{Child: id, Status: engine.StatusError, Error: fault.New(fault.RemoteError, "down")})
		w := s.run("sub").Cause.Wake
		if w.By != engine.WakeChild || w.Status != engine.StatusError || w.Error.Retryable {
			t.Errorf("wake %+v", w)
		}
		s.refuse(fault.Conflict, engine.ChildFinished{Child: id, Status: engine.StatusSuccess})
		s.fail("sub", fault.RemoteError)
		s.status(engine.StatusError) // what crosses a child's border is not retried
		s.replay()
		s.do(engine.NodeRetried{Activation: "sub"})
		s.suspend("sub", engine.NodeSuspended{Child: &engine.Child{Workflow: "w"}})
		if _, ok := s.children[engine.ChildID("exec", "sub", 1)]; !ok {
			t.Errorf("the next generation must start a child of its own, got %v", s.children)
		}
	})
	t.Run("DetachedChildHoldsNobody", func(t *testing.T) {
		t.Parallel()
		s := begin(t, "sub")
		s.suspend("sub", engine.NodeSuspended{Child: &engine.Child{Workflow: "w", Detached: true}})
		if w := s.run("sub").Cause.Wake; w.Child != engine.ChildID("exec", "sub", 0) {
			t.Errorf("wake %+v", w)
		}
		s.complete("sub")
		s.status(engine.StatusSuccess)
	})
	t.Run("TooDeep", func(t *testing.T) {
		t.Parallel()
		s := newSim(t, draw(t, "sub"), nil)
		s.start(engine.ExecutionCreated{Depth: engine.MaxDepth})
		s.suspend("sub", engine.NodeSuspended{Child: &engine.Child{Workflow: "w"}})
		s.status(engine.StatusError)
		if s.finish.Error.Code != fault.RecursionLimit {
			t.Errorf("error %v", s.finish.Error)
		}
	})
	t.Run("WaitingForNothingIsRefused", func(t *testing.T) {
		t.Parallel()
		s := begin(t, "a")
		s.refuse(fault.Invalid, engine.NodeSuspended{Attempt: s.run("a").Attempt})
	})
}

func TestState_Apply(t *testing.T) {
	t.Parallel()
	t.Run("RefusesAnUnknownSemanticsVersion", func(t *testing.T) {
		t.Parallel()
		g := draw(t, "a")
		_, err := engine.New(g, nil).Apply(engine.Event{Seq: 1, Fact: engine.ExecutionCreated{Semantics: engine.Semantics + 1, Execution: "e", Revision: g.Hash}})
		if fault.CodeOf(err) != fault.Unsupported {
			t.Errorf("error %v", err)
		}
	})
	t.Run("RefusesAnotherRevision", func(t *testing.T) {
		t.Parallel()
		_, err := engine.New(draw(t, "a"), nil).Apply(engine.Event{Seq: 1, Fact: engine.ExecutionCreated{Semantics: 1, Execution: "e", Revision: "other"}})
		if fault.CodeOf(err) != fault.Invalid {
			t.Errorf("error %v", err)
		}
	})
	t.Run("RefusesADisorderedJournal", func(t *testing.T) {
		t.Parallel()
		s := begin(t, "a -> b")
		if _, err := s.state.Apply(engine.Event{Seq: 1, Fact: engine.ExecutionPaused{}}); fault.CodeOf(err) != fault.Conflict {
			t.Errorf("error %v", err)
		}
		s.refuse(fault.Conflict, engine.ExecutionCreated{Semantics: 1, Execution: "e", Revision: s.graph.Hash})
		s.refuse(fault.Conflict, engine.ExecutionStarted{})
		s.refuse(fault.Invalid, nil)
		if _, err := engine.New(s.graph, nil).Apply(engine.Event{Seq: 1, Fact: engine.ExecutionStarted{}}); fault.CodeOf(err) != fault.Conflict {
			t.Errorf("error %v", err)
		}
	})
	t.Run("StatusBeforeTheStart", func(t *testing.T) {
		t.Parallel()
		s := newSim(t, draw(t, "a"), nil)
		s.status(engine.StatusNew)
		s.do(engine.ExecutionCreated{Semantics: 1, Execution: "exec", Revision: s.graph.Hash})
		s.status(engine.StatusPending)
		s.refuse(fault.Conflict, engine.ExecutionPaused{})
		s.do(engine.CancelRequested{})
		s.status(engine.StatusCanceled)
	})
	t.Run("ReadsTheDataOfWhatMadeItReady", func(t *testing.T) {
		t.Parallel()
		s := begin(t, `a -> b
			b {"max_retries":1}`)
		s.complete("a")
		ready := s.seq
		s.do(engine.SignalReceived{Node: "a", Name: "x"})
		s.fail("b", fault.RemoteError)
		s.fire(engine.TimerRetry)
		if r := s.run("b"); r.AsOf != ready {
			t.Errorf("as of %d, want %d", r.AsOf, ready)
		}
	})
	t.Run("OddNodeIDsAreAddressable", func(t *testing.T) {
		t.Parallel()
		s := begin(t, "a/b[1]%x -> c")
		id := engine.ActivationID("a%2Fb%5B1%5D%25x")
		s.wantRuns(string(id))
		s.complete(id)
		if st, ok := s.state.NodeStatus(id); !ok || st != engine.NodeDone {
			t.Errorf("status %q %v", st, ok)
		}
	})
}
