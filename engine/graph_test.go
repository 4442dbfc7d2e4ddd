package engine_test

import (
	"testing"

	"tandem/engine"
	"tandem/fault"
)

func TestGraph_Start(t *testing.T) {
	t.Parallel()
	t.Run("EveryNodeWithoutInputs", func(t *testing.T) {
		t.Parallel()
		s := begin(t, "a -> c\nb -> c")
		s.wantRuns("a", "b")
		s.complete("a")
		s.wantRuns("b")
		s.complete("b")
		s.complete("c")
		s.status(engine.StatusSuccess)
		s.replay()
	})
	t.Run("OnlyTheTriggerThatFired", func(t *testing.T) {
		t.Parallel()
		s := newSim(t, draw(t, "trigger1 -> join\ntrigger2 -> x\nx -> join\njoin -> end"), nil)
		s.start(engine.ExecutionCreated{Trigger: "trigger1"})
		s.complete("trigger1")
		s.wantRuns("join")
		s.complete("join")
		s.complete("end")
		s.status(engine.StatusSuccess)
		if _, ok := s.ended["x"]; ok {
			t.Error("a node that cannot be reached from the start has a record")
		}
	})
	t.Run("FromANodeWhateverItsInputs", func(t *testing.T) {
		t.Parallel()
		s := newSim(t, draw(t, "trigger1 -> a\na -> b\nb -> c\na -> c"), nil)
		s.start(engine.ExecutionCreated{StartFrom: "b"})
		s.wantRuns("b")
		s.complete("b")
		s.complete("c")
		s.status(engine.StatusSuccess)
	})
	t.Run("RefusesWhatCannotBe", func(t *testing.T) {
		t.Parallel()
		g := draw(t, "trigger1 -> loop\nloop:iteration -> body\nbody -> loop")
		for name, c := range map[string]struct {
			created engine.ExecutionCreated
			code    fault.Code
		}{
			"inside a scope":   {engine.ExecutionCreated{StartFrom: "body"}, fault.Invalid},
			"unknown node":     {engine.ExecutionCreated{StartFrom: "nowhere"}, fault.NotFound},
			"not a trigger":    {engine.ExecutionCreated{Trigger: "loop"}, fault.NotFound},
			"no trigger named": {engine.ExecutionCreated{}, fault.Invalid},
			"both":             {engine.ExecutionCreated{Trigger: "trigger1", StartFrom: "loop"}, fault.Invalid},
		} {
			c.created.Semantics, c.created.Execution, c.created.Revision = engine.Semantics, "exec", g.Hash
			if _, err := engine.New(g, nil).Apply(engine.Event{Seq: 1, Fact: c.created}); fault.CodeOf(err) != c.code {
				t.Errorf("%s: error %v, want code %s", name, err, c.code)
			}
		}
	})
}

func TestGraph_Ports(t *testing.T) {
	t.Parallel()
	t.Run("SkipsTheBranchNotTaken", func(t *testing.T) {
		t.Parallel()
		s := begin(t, "if:true -> a\nif:false -> b\na -> join\nb -> b2\nb2 -> join\njoin -> end")
		s.complete("if", "true")
		s.wantRuns("a")
		s.wantEnded(engine.NodeSkip, "b", "b2")
		s.complete("a")
		if in := s.run("join").Inputs; len(in) != 1 || in[0].Ref != "a.result" {
			t.Errorf("join gets %+v, want only what a produced", in)
		}
		s.complete("join")
		s.complete("end")
		s.status(engine.StatusSuccess)
		s.replay()
	})
	t.Run("InputsComeInDefinitionOrder", func(t *testing.T) {
		t.Parallel()
		s := begin(t, "a -> j\nb -> j\nc -> j")
		s.complete("c")
		s.complete("a")
		s.complete("b")
		in := s.run("j").Inputs
		if len(in) != 3 || in[0].Ref != "a.result" || in[1].Ref != "b.result" || in[2].Ref != "c.result" {
			t.Errorf("inputs %+v", in)
		}
	})
	t.Run("AllDeadSkips", func(t *testing.T) {
		t.Parallel()
		s := begin(t, "a:x -> b\na:y -> b\nb -> c")
		s.complete("a", "z")
		s.wantEnded(engine.NodeSkip, "b", "c")
		s.status(engine.StatusSuccess)
	})
	t.Run("AConversionCanKillItsConnection", func(t *testing.T) {
		t.Parallel()
		s := begin(t, "a:result ~> b\na -> c")
		s.do(engine.NodeCompleted{Attempt: s.run("a").Attempt, Outputs: []engine.Output{{Key: "result", Ref: "r"}}, Settled: []engine.Verdict{{Edge: 0}}})
		s.wantRuns("c")
		s.wantEnded(engine.NodeSkip, "b")
	})
	t.Run("AFailedConversionFailsItsTarget", func(t *testing.T) {
		t.Parallel()
		s := begin(t, "a:result ~> b\nb -> c\na -> d")
		s.do(engine.NodeCompleted{Attempt: s.run("a").Attempt, Outputs: []engine.Output{{Key: "result", Ref: "r"}},
			Settled: []engine.Verdict{{Edge: 0, Error: fault.New(fault.ConversionFailed, "line 3: no such key")}}})
		s.wantEnded(engine.NodeFailure, "b")
		s.status(engine.StatusError)
		if s.finish.Node != "b" || s.finish.Error.Code != fault.ConversionFailed {
			t.Errorf("finish %+v", s.finish)
		}
		s.replay()
		s.do(engine.NodeRetried{Activation: "b"})
		if in := s.run("b").Inputs; len(in) != 1 || !in[0].Convert {
			t.Errorf("a retry must convert again, got inputs %+v", in)
		}
		s.replay()
	})
	t.Run("RefusesAVerdictOnAnotherNodesConnection", func(t *testing.T) {
		t.Parallel()
		s := begin(t, "a -> b\nb -> c")
		s.refuse(fault.Invalid, engine.NodeCompleted{Attempt: s.run("a").Attempt, Settled: []engine.Verdict{{Edge: 1, Live: true}}})
		s.refuse(fault.Invalid, engine.NodeCompleted{Attempt: s.run("a").Attempt, Settled: []engine.Verdict{{Edge: 99, Live: true}}})
	})
	t.Run("ADisabledQuestionIsSkipped", func(t *testing.T) {
		t.Parallel()
		s := begin(t, `ask {"disabled":true,"skip_disabled":true}
			a -> ask
			ask -> pay
			a -> off
			off {"disabled":true}`)
		s.complete("a")
		s.wantEnded(engine.NodeSkip, "ask", "pay")
		s.wantRuns("off") // any other disabled node hands its input on, which the runtime does
	})
}

func TestGraph_FirstJoin(t *testing.T) {
	t.Parallel()
	const race = `join {"join":{"first":true}}
		start -> a
		start -> b
		a -> join
		b -> b2
		b2 -> join
		join -> end`
	t.Run("FiresOnceWithTheFirst", func(t *testing.T) {
		t.Parallel()
		s := begin(t, race)
		s.complete("start")
		s.complete("a")
		if in := s.run("join").Inputs; len(in) != 1 || in[0].Ref != "a.result" {
			t.Errorf("inputs %+v", in)
		}
		s.complete("join")
		s.complete("end")
		s.complete("b")
		s.complete("b2")
		s.status(engine.StatusSuccess)
		s.replay()
	})
	t.Run("ALosersFailureIsNotFatal", func(t *testing.T) {
		t.Parallel()
		s := begin(t, race)
		s.complete("start")
		s.complete("a")
		s.fail("b", fault.RemoteRejected)
		s.wantEnded(engine.NodeFailure, "b")
		s.wantEnded(engine.NodeSkip, "b2")
		s.complete("join")
		s.complete("end")
		s.status(engine.StatusSuccess)
	})
	t.Run("AFailureBeforeItFiresIsFatal", func(t *testing.T) {
		t.Parallel()
		s := begin(t, race)
		s.complete("start")
		s.fail("b", fault.RemoteRejected)
		s.status(engine.StatusError)
	})
	t.Run("CancelsLosersWhenAsked", func(t *testing.T) {
		t.Parallel()
		s := begin(t, `join {"join":{"first":true,"cancel_losers":true}}
			start -> a
			start -> b
			start -> once
			once {"effect":"once"}
			once -> join
			a -> join
			b -> b2
			b2 -> join
			b3 -> join
			start -> b3
			b3 -> other`)
		s.complete("start")
		s.started("once")
		s.complete("a")
		s.wantEnded(engine.NodeCanceled, "b")
		s.wantEnded(engine.NodeSkip, "b2")
		s.wantRuns("b3", "join", "once") // b3 leads elsewhere too, and once has begun
		s.complete("join")
		s.complete("b3")
		s.complete("other")
		s.complete("once")
		s.status(engine.StatusSuccess)
		s.replay()
	})
	t.Run("AllDeadSkips", func(t *testing.T) {
		t.Parallel()
		s := begin(t, race)
		s.complete("start", "nothing")
		s.status(engine.StatusSuccess)
		s.wantEnded(engine.NodeSkip, "join", "end")
	})
	t.Run("ATimedJoinGoesOnWithWhatIsThere", func(t *testing.T) {
		t.Parallel()
		s := begin(t, `join {"join":{"timeout_ms":5000}}
			a -> join
			b -> join`)
		s.complete("a")
		s.wantRuns("b")
		s.fire(engine.TimerJoin)
		r := s.run("join")
		if !r.TimedOut || len(r.Inputs) != 1 {
			t.Errorf("run %+v", r)
		}
		s.complete("b")
		s.complete("join")
		s.status(engine.StatusSuccess)
		s.replay()
	})
	t.Run("ATimedJoinThatIsCompleteNeedsNoTimer", func(t *testing.T) {
		t.Parallel()
		s := begin(t, `join {"join":{"timeout_ms":5000}}
			a -> join
			b -> join`)
		s.complete("a")
		s.complete("b")
		if len(s.timers) != 0 {
			t.Errorf("timers left: %v", s.timers)
		}
		s.complete("join")
		s.status(engine.StatusSuccess)
	})
}
