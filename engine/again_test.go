package engine_test

import (
	"encoding/json"
	"slices"
	"testing"

	"tandem/engine"
	"tandem/fault"
)

// paying is a payment behind a question, with a step between them and one beside them.
const paying = `start -> ask
	ask {"asks":"confirmed"}
	ask:confirmed -> prepare
	ask:rejected -> notify
	prepare -> pay
	pay {"effect":"once"}
	pay -> receipt
	start -> beside
	beside -> end`

// answer lets a question that runs ask, and answers it with output keys.
func (s *sim) answer(id engine.ActivationID, keys ...string) {
	s.t.Helper()
	s.suspend(id, engine.NodeSuspended{Ask: &engine.Question{Purpose: "human_node"}})
	a, _ := s.state.Activation(id)
	s.do(engine.AskAnswered{Ask: a.Ask, Outcome: engine.AskDone})
	s.complete(id, keys...)
}

// forkAt forks a source at an activation that is open in it.
func forkAt(t *testing.T, src *sim, fact engine.ExecutionForked) *sim {
	t.Helper()
	s := newSim(t, src.graph, nil)
	fact.Semantics, fact.Execution, fact.Source, fact.State = engine.Semantics, "fork", "exec", json.RawMessage(src.snapshot())
	s.do(fact)
	return s
}

func TestAgain_Questions(t *testing.T) {
	t.Parallel()
	s := begin(t, paying+`
		loop:iteration -> inner
		inner {"asks":"confirmed"}
		inner:confirmed -> deep
		deep -> loop
		loop:completed -> after
		pay -> loop
		timeout:body -> limited
		limited {"asks":"confirmed"}
		limited -> timeout
		timeout:result -> final
		timeout:timeout -> late
		after -> timeout
		off {"asks":"confirmed","disabled":true,"skip_disabled":true}
		off -> behind`)
	for id, want := range map[engine.ActivationID]struct{ asked, closed string }{
		"ask":           {},
		"beside":        {},
		"prepare":       {asked: "ask"},
		"notify":        {asked: "ask"},
		"pay":           {asked: "ask"},
		"loop[3]/inner": {asked: "ask"},
		"loop[3]/deep":  {asked: "ask loop[3]/inner"},
		"after":         {asked: "ask"}, // no iteration may take place
		"final":         {asked: "ask", closed: "limited"},
		"late":          {asked: "ask"},
		"behind":        {closed: "off"},
	} {
		asked, closed := s.state.Questions(id)
		var list string
		for i, q := range asked {
			if i > 0 {
				list += " "
			}
			list += string(q)
		}
		if list != want.asked || !slices.Equal(closed, slices.DeleteFunc([]string{want.closed}, func(c string) bool { return c == "" })) {
			t.Errorf("before %s: asked %q, closed %q; want %q and %q", id, list, closed, want.asked, want.closed)
		}
	}
}

func TestAgain_Start(t *testing.T) {
	t.Parallel()
	begun := func(t *testing.T) *sim {
		s := newSim(t, draw(t, paying), nil)
		s.start(engine.ExecutionCreated{StartFrom: "pay", Again: []engine.ActivationID{"ask"}})
		s.wantRuns("ask")
		s.replay()
		return s
	}
	t.Run("ConfirmedItRuns", func(t *testing.T) {
		t.Parallel()
		s := begun(t)
		s.answer("ask", "result", "confirmed")
		s.wantRuns("pay")
		s.complete("pay")
		s.complete("receipt")
		s.status(engine.StatusSuccess)
		s.replay()
	})
	t.Run("RejectedItDoesNot", func(t *testing.T) {
		t.Parallel()
		s := begun(t)
		s.answer("ask", "result", "rejected")
		s.wantRuns()
		s.wantEnded(engine.NodeSkip, "pay", "receipt")
		s.status(engine.StatusSuccess)
		s.replay()
	})
	t.Run("FailedItStopsAndARetryAsks", func(t *testing.T) {
		t.Parallel()
		s := begun(t)
		s.fail("ask", fault.HILTimeout)
		s.status(engine.StatusError)
		s.replay()
		s.do(engine.NodeRetried{Activation: "ask"})
		s.wantRuns("ask")
		s.answer("ask", "confirmed")
		s.wantRuns("pay")
		s.replay()
	})
	t.Run("ANodeThatIsNoQuestionIsRefused", func(t *testing.T) {
		t.Parallel()
		s := newSim(t, draw(t, paying), nil)
		_, err := s.try(engine.ExecutionCreated{Semantics: 1, Execution: "exec", Revision: s.graph.Hash, StartFrom: "pay", Again: []engine.ActivationID{"prepare"}})
		if fault.CodeOf(err) != fault.Invalid {
			t.Fatalf("error %v", err)
		}
		s.start(engine.ExecutionCreated{StartFrom: "pay"})
	})
}

func TestAgain_Fork(t *testing.T) {
	t.Parallel()
	source := func(t *testing.T) *sim {
		src := begin(t, paying)
		src.complete("start")
		src.answer("ask", "result", "confirmed")
		src.complete("prepare")
		return src
	}
	t.Run("BehindAQuestion", func(t *testing.T) {
		t.Parallel()
		s := forkAt(t, source(t), engine.ExecutionForked{Activation: "pay", Again: []engine.ActivationID{"ask"}})
		s.wantRuns("ask", "beside")
		if run := s.run("ask"); len(run.Inputs) != 1 || run.Inputs[0].Ref != "start.result" {
			t.Errorf("the question is asked with %+v; want what it was asked about before", run.Inputs)
		}
		s.complete("beside")
		s.complete("end")
		s.status(engine.StatusRunning)
		s.answer("ask", "result", "confirmed")
		s.wantRuns("pay")
		s.replay()
	})
	t.Run("TheAnswerNextToItIsNew", func(t *testing.T) {
		t.Parallel()
		src := begin(t, paying)
		src.complete("start")
		src.answer("ask", "result", "confirmed")
		s := forkAt(t, src, engine.ExecutionForked{Activation: "prepare", Again: []engine.ActivationID{"ask"}})
		s.suspend("ask", engine.NodeSuspended{Ask: &engine.Question{}})
		a, _ := s.state.Activation("ask")
		s.do(engine.AskAnswered{Ask: a.Ask, Outcome: engine.AskDone})
		s.do(engine.NodeCompleted{Attempt: s.run("ask").Attempt, Outputs: []engine.Output{{Key: "confirmed", Ref: "new"}}})
		if run := s.run("prepare"); len(run.Inputs) != 1 || run.Inputs[0].Ref != "new" {
			t.Errorf("inputs %+v; want what the new answer brought", run.Inputs)
		}
	})
	t.Run("WhatBecomesReadyLaterWaitsToo", func(t *testing.T) {
		t.Parallel()
		src := begin(t, paying)
		src.complete("start")
		src.answer("ask", "result", "confirmed")
		s := forkAt(t, src, engine.ExecutionForked{Activation: "beside", Again: []engine.ActivationID{"ask"}, Edits: true})
		s.wantRuns("ask", "beside")
		s.answer("ask", "rejected")
		s.wantEnded(engine.NodeSkip, "prepare", "pay", "receipt")
		s.wantRuns("beside")
		s.replay()
	})
	t.Run("AQuestionThatIsOpenBeginsAnewWithEditedData", func(t *testing.T) {
		t.Parallel()
		src := begin(t, paying)
		src.complete("start")
		src.suspend("ask", engine.NodeSuspended{Ask: &engine.Question{Purpose: "human_node"}})
		s := forkAt(t, src, engine.ExecutionForked{Activation: "beside", Edits: true})
		s.wantRuns("ask", "beside")
		if len(s.asks) != 0 {
			t.Errorf("asked %v with what was shown before the edit", s.asks)
		}
		s.answer("ask", "confirmed")
		s.complete("prepare")
		s.wantRuns("beside", "pay")
		s.replay()
	})
	t.Run("WhatWasBegunInTheSourceWaitsToo", func(t *testing.T) {
		t.Parallel()
		src := begin(t, `ask {"asks":"confirmed"}
			ask:confirmed -> a
			ask:confirmed -> b
			b {"effect":"once"}
			ask:confirmed -> sub
			ask:confirmed -> bad
			bad {"max_retries":3}`)
		src.answer("ask", "confirmed")
		src.started("b")
		src.suspend("sub", engine.NodeSuspended{Child: &engine.Child{Workflow: "w"}})
		src.fail("bad", fault.RemoteError)
		s := forkAt(t, src, engine.ExecutionForked{Activation: "a", Edits: true, Again: []engine.ActivationID{"ask"}})
		s.wantRuns("ask")
		if len(s.children) != 0 {
			t.Errorf("children %v were started before the answer", s.children)
		}
		for _, q := range s.asks { // whether b was done: that is not an answer to the other question
			s.do(engine.AskAnswered{Ask: q.Ask, Outcome: engine.AskDone, Choice: engine.ChoiceNotDone})
		}
		s.fire(engine.TimerRetry)
		s.wantRuns("ask")
		s.answer("ask", "confirmed")
		s.wantRuns("a", "b", "bad", "sub")
		s.replay()
	})
	t.Run("OnePutsTwoQuestionsInOrder", func(t *testing.T) {
		t.Parallel()
		src := begin(t, `first {"asks":"confirmed"}
			first:confirmed -> second
			second {"asks":"confirmed"}
			second -> pay`)
		src.answer("first", "confirmed")
		src.answer("second", "result", "confirmed")
		s := forkAt(t, src, engine.ExecutionForked{Activation: "pay", Again: []engine.ActivationID{"first", "second"}})
		s.wantRuns("first")
		s.answer("first", "confirmed")
		s.wantRuns("second")
		s.answer("second", "result") // every answer has it: only a confirmation goes on by it
		s.wantRuns()
		s.wantEnded(engine.NodeSkip, "pay")
		s.status(engine.StatusSuccess)
		s.replay()
	})
	t.Run("InsideALoopBehindIt", func(t *testing.T) {
		t.Parallel()
		src := begin(t, `ask {"asks":"confirmed"}
			ask:confirmed -> loop
			loop:iteration -> pay
			pay -> loop`)
		src.answer("ask", "confirmed")
		src.open("loop", engine.ScopeOpened{Count: 2})
		src.complete("loop[0]/pay")
		s := forkAt(t, src, engine.ExecutionForked{Activation: "loop[1]/pay", Again: []engine.ActivationID{"ask"}})
		s.wantRuns("ask")
		s.answer("ask", "confirmed")
		s.wantRuns("loop[1]/pay")
		s.replay()
	})
}

func TestAgain_Operator(t *testing.T) {
	t.Parallel()
	failed := func(t *testing.T) *sim {
		s := begin(t, paying)
		s.complete("start")
		s.complete("beside")
		s.complete("end")
		s.answer("ask", "result", "confirmed")
		s.complete("prepare")
		s.fail("pay", fault.RemoteRejected)
		s.status(engine.StatusError)
		return s
	}
	t.Run("Retry", func(t *testing.T) {
		t.Parallel()
		s := failed(t)
		s.do(engine.NodeRetried{Activation: "pay", Again: []engine.ActivationID{"ask"}})
		s.wantRuns("ask")
		s.replay()
		s.do(engine.ExecutionPaused{})
		s.do(engine.ExecutionResumed{})
		s.do(engine.ExecutionRecovered{})
		s.wantRuns("ask")
		s.answer("ask", "confirmed")
		s.wantRuns("pay")
		s.replay()
	})
	t.Run("GivenOutput", func(t *testing.T) {
		t.Parallel()
		s := failed(t)
		s.do(engine.NodeSkipped{Activation: "pay", HasOutput: true, Output: "given", Again: []engine.ActivationID{"ask"}})
		s.wantRuns("ask")
		s.answer("ask", "confirmed")
		if run := s.run("pay"); run.Cause.Kind != engine.CauseOutput || run.Cause.Ref != "given" {
			t.Errorf("run %+v", run)
		}
		s.replay()
	})
	t.Run("GivenAsWhatCameOfIt", func(t *testing.T) {
		t.Parallel()
		s := begin(t, paying)
		s.complete("start")
		s.answer("ask", "result", "confirmed")
		s.complete("prepare")
		s.started("pay")
		s.do(engine.ExecutionRecovered{})
		a, _ := s.state.Activation("pay")
		s.do(engine.AskAnswered{Ask: a.Ask, Outcome: engine.AskDone, Choice: engine.ChoiceDone, Ref: "given", By: "op", Again: s.state.Asked()})
		s.wantRuns("ask", "beside")
		s.answer("ask", "confirmed")
		if run := s.run("pay"); run.Cause.Kind != engine.CauseOutput || run.Cause.Ref != "given" {
			t.Errorf("run %+v", run)
		}
		s.replay()
	})
	t.Run("GivenWhileItIsAsked", func(t *testing.T) {
		t.Parallel()
		s := begin(t, paying)
		s.complete("start")
		s.suspend("ask", engine.NodeSuspended{Ask: &engine.Question{Purpose: "human_node"}})
		s.do(engine.NodeSkipped{Activation: "beside", HasOutput: true, Output: "given", By: "op", Again: s.state.Asked()})
		s.wantRuns("ask", "beside")
		if len(s.asks) != 0 {
			t.Errorf("the question that shows what was before is still open: %v", s.asks)
		}
		want := []engine.AgainCause{{Action: engine.AgainOutput, Activation: "beside", By: "op", Output: "given"}}
		if got := s.state.AskedAgain("ask"); !slices.Equal(got, want) {
			t.Errorf("asked again because of %+v, want %+v", got, want)
		}
		s.answer("ask", "confirmed")
		s.wantRuns("beside", "prepare")
		s.replay()
	})
	t.Run("InALoopThatItEndsByItself", func(t *testing.T) {
		t.Parallel()
		s := begin(t, `loop:iteration -> ask
			ask {"asks":"confirmed"}
			ask:confirmed -> pay
			ask:rejected -> loop
			ask:result -> loop
			pay -> loop`)
		s.open("loop", engine.ScopeOpened{Count: 1})
		s.answer("loop[0]/ask", "result", "confirmed")
		s.fail("loop[0]/pay", fault.RemoteRejected)
		s.do(engine.NodeRetried{Activation: "loop[0]/pay", Again: []engine.ActivationID{"loop[0]/ask"}})
		s.wantRuns("loop[0]/ask")
		s.answer("loop[0]/ask", "result", "confirmed")
		s.wantRuns("loop[0]/pay")
		s.replay()
	})
	t.Run("ASecondTimeItIsAskedASecondTime", func(t *testing.T) {
		t.Parallel()
		s := failed(t)
		for range 2 {
			s.do(engine.NodeRetried{Activation: "pay", Again: []engine.ActivationID{"ask"}})
			s.wantRuns("ask")
			s.answer("ask", "confirmed")
			s.fail("pay", fault.RemoteRejected)
		}
		s.replay()
	})
	t.Run("NobodyIsAskedForWhatIsSkipped", func(t *testing.T) {
		t.Parallel()
		s := failed(t)
		s.do(engine.NodeRetried{Activation: "pay", Again: []engine.ActivationID{"ask"}})
		s.suspend("ask", engine.NodeSuspended{Ask: &engine.Question{Purpose: "human_node"}})
		s.do(engine.NodeSkipped{Activation: "pay"})
		if len(s.asks) != 0 {
			t.Errorf("still asked: %v", s.asks)
		}
		s.status(engine.StatusSuccess)
		s.replay()
	})
	t.Run("CanceledMeanwhileNothingRuns", func(t *testing.T) {
		t.Parallel()
		s := failed(t)
		s.do(engine.NodeRetried{Activation: "pay", Again: []engine.ActivationID{"ask"}})
		s.do(engine.CancelRequested{})
		s.status(engine.StatusCanceled)
		s.replay()
	})
	t.Run("AnswersAreNamed", func(t *testing.T) {
		t.Parallel()
		s := failed(t)
		if got := s.state.Asked(); !slices.Equal(got, []engine.ActivationID{"ask"}) {
			t.Errorf("answered %v", got)
		}
	})
}
