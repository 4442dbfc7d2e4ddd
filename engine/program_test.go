package engine_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"tandem/engine"
	"tandem/fault"
	"tandem/workflow"
)

// planner is a program that writes its plan as it goes: it asks for a decision, runs the calls that the reply names, all
// at once, asks again with what came back, and ends when a reply names none. Failed calls are its own to deal with. It
// stands for a model's tool loop and for an agent that plans.
type planner struct {
	Round   int  `json:"round"`
	Open    int  `json:"open"`
	Failed  int  `json:"failed"`
	Limit   int  `json:"limit"`
	Waiting bool `json:"waiting,omitempty"`
}

// reply is what the planner has to know of a decision.
type reply struct {
	Calls  []string `json:"calls"`
	Answer string   `json:"answer,omitempty"`
}

func plannerFactory() engine.Factory {
	return engine.Factory{
		New: func(s engine.Setup) (engine.Program, error) {
			p := &planner{Limit: 10}
			if len(s.Config) > 0 {
				if err := json.Unmarshal(s.Config, p); err != nil {
					return nil, fmt.Errorf("planner: %w", err)
				}
			}
			return p, nil
		},
		Restore: func(_ engine.Setup, data json.RawMessage) (engine.Program, error) {
			p := &planner{}
			return p, json.Unmarshal(data, p)
		},
	}
}

func (p *planner) Start(sc *engine.Scope, o engine.Opening) { p.decide(sc, o.Input) }

func (p *planner) decide(sc *engine.Scope, input engine.Ref) {
	if p.Round++; p.Round > p.Limit {
		sc.Fail(fault.Newf(fault.LoopLimit, "no answer after %d rounds", p.Limit))
		return
	}
	sc.Run(engine.Step{Name: fmt.Sprintf("decide_%d", p.Round), Kind: "TEST.MODEL", Effect: workflow.Idempotent, MaxRetries: 2, Input: input})
}

func (p *planner) Ended(sc *engine.Scope, name string, end engine.End) {
	if p.Open > 0 { // a call
		if end.Status != engine.NodeDone {
			p.Failed++
		}
		if p.Open--; p.Open == 0 {
			sc.Sleep("breath", sc.Now()+100)
			p.Waiting = true
			sc.Run(engine.Step{Name: "note", Kind: "TEST.NOTE"})
		}
		return
	}
	if name == "note" {
		return
	}
	var r reply
	if err := json.Unmarshal(end.Reply, &r); err != nil {
		sc.Fail(fault.Newf(fault.OutputInvalid, "reply of %q: %v", name, err))
		return
	}
	if len(r.Calls) == 0 {
		answer, _ := json.Marshal(r.Answer)
		sc.Finish(answer)
		return
	}
	p.Open = len(r.Calls)
	for i, call := range r.Calls {
		sc.Run(engine.Step{Name: fmt.Sprintf("call_%d_%d", p.Round, i+1), Kind: call, Effect: workflow.Once, Input: engine.Ref("args of " + call)})
	}
}

func (p *planner) Handles(string, *fault.Error) bool { return p.Open > 0 }

func (p *planner) Fired(sc *engine.Scope, _ string) {
	p.Waiting = false
	p.decide(sc, "what came back")
}

func (p *planner) Snapshot() (json.RawMessage, error) { return json.Marshal(p) }

func decided(s *sim, id engine.ActivationID, r reply) {
	s.t.Helper()
	b, err := json.Marshal(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.do(engine.NodeCompleted{Attempt: s.run(id).Attempt, Reply: b})
}

func TestProgram_GrowsItsOwnPlan(t *testing.T) {
	t.Parallel()
	t.Run("AsTheTopLevel", func(t *testing.T) {
		t.Parallel()
		s := newSim(t, &workflow.Graph{Bodies: []workflow.Body{{Owner: -1}}}, engine.Programs{"planner": plannerFactory()})
		s.start(engine.ExecutionCreated{Program: "planner", Input: "goal"})
		if r := s.run("decide_1"); r.Step == nil || r.Step.Kind != "TEST.MODEL" || r.Input != "goal" {
			t.Fatalf("run %+v", r)
		}
		// The engine's rules hold for steps as for nodes: retries, waits, unknown outcomes, recovery.
		s.fail("decide_1", fault.RateLimited)
		s.fire(engine.TimerRetry)
		decided(s, "decide_1", reply{Calls: []string{"search", "mail", "pay"}})
		s.wantRuns("call_1_1", "call_1_2", "call_1_3")
		s.started("call_1_3")
		s.suspend("call_1_2", engine.NodeSuspended{Ask: &engine.Question{Purpose: "tool_approval", Ref: "args of mail"}})
		s.do(engine.ExecutionRecovered{})
		s.wantRuns("call_1_1")
		s.replay()
		if len(s.asks) != 2 {
			t.Fatalf("asks %v: the approval, and what became of the payment", s.asks)
		}
		for id, q := range s.asks {
			if q.Purpose == engine.PurposeOutcomeUnknown {
				s.do(engine.AskAnswered{Ask: id, Outcome: engine.AskDone, Choice: engine.ChoiceDone, Ref: "receipt"})
			} else {
				s.do(engine.AskAnswered{Ask: id, Outcome: engine.AskDone, Ref: "approved"})
			}
		}
		s.fail("call_1_1", fault.ToolError) // goes back to the planner, not outwards
		s.complete("call_1_2")
		s.complete("call_1_3")
		s.wantRuns("note")
		s.fire(engine.TimerJoin)
		s.wantRuns("decide_2", "note")
		s.complete("note")
		s.replay()
		decided(s, "decide_2", reply{Answer: "done"})
		s.status(engine.StatusSuccess)
		if string(s.finish.Result) != `"done"` {
			t.Errorf("result %s", s.finish.Result)
		}
		s.replay()
	})
	t.Run("InsideANodeOfAGraph", func(t *testing.T) {
		t.Parallel()
		s := newSim(t, draw(t, "a -> agent\nagent -> b"), engine.Programs{"planner": plannerFactory()})
		s.start(engine.ExecutionCreated{})
		s.complete("a")
		s.open("agent", engine.ScopeOpened{Program: "planner", Count: 1, Config: json.RawMessage(`{"limit": 3}`)})
		s.wantRuns("agent[0]/decide_1")
		decided(s, "agent[0]/decide_1", reply{Calls: []string{"x"}})
		// A step of a program may itself run a program.
		s.open("agent[0]/call_1_1", engine.ScopeOpened{Program: "planner", Count: 1})
		decided(s, "agent[0]/call_1_1[0]/decide_1", reply{Answer: "inner"})
		if c := s.run("agent[0]/call_1_1").Cause.Closed; string(c.Result) != `"inner"` {
			t.Errorf("closed %+v", c)
		}
		s.complete("agent[0]/call_1_1")
		s.complete("agent[0]/note")
		s.fire(engine.TimerJoin)
		decided(s, "agent[0]/decide_2", reply{Answer: "outer"})
		if c := s.run("agent").Cause.Closed; string(c.Result) != `"outer"` {
			t.Errorf("closed %+v", c)
		}
		s.complete("agent")
		s.complete("b")
		s.status(engine.StatusSuccess)
		s.replay()
	})
	t.Run("ItsFailureGoesOutwards", func(t *testing.T) {
		t.Parallel()
		s := newSim(t, draw(t, `agent {"on_error":"continue"}
			agent:error -> mend`), engine.Programs{"planner": plannerFactory()})
		s.start(engine.ExecutionCreated{})
		s.open("agent", engine.ScopeOpened{Program: "planner", Count: 1, Config: json.RawMessage(`{"limit": 1}`)})
		decided(s, "agent[0]/decide_1", reply{Calls: []string{"x"}})
		s.complete("agent[0]/call_1_1")
		s.complete("agent[0]/note")
		s.fire(engine.TimerJoin)
		if c := s.run("agent").Cause; c.Kind != engine.CauseError || c.Error.Code != fault.LoopLimit {
			t.Fatalf("cause %+v", c)
		}
		s.complete("agent", "error")
		s.wantRuns("mend")
		s.replay()
	})
	t.Run("ABadPlanIsAFailureNotAPanic", func(t *testing.T) {
		t.Parallel()
		s := newSim(t, &workflow.Graph{Bodies: []workflow.Body{{Owner: -1}}}, engine.Programs{"planner": plannerFactory()})
		s.start(engine.ExecutionCreated{Program: "planner"})
		s.do(engine.NodeCompleted{Attempt: s.run("decide_1").Attempt, Reply: json.RawMessage(`[]`)})
		s.status(engine.StatusError)
		if s.finish.Error.Code != fault.OutputInvalid {
			t.Errorf("error %v", s.finish.Error)
		}
	})
	t.Run("AnUnknownProgramIsRefused", func(t *testing.T) {
		t.Parallel()
		s := newSim(t, &workflow.Graph{Bodies: []workflow.Body{{Owner: -1}}}, nil)
		if _, err := s.try(engine.ExecutionCreated{Semantics: 1, Execution: "e", Program: "nobody"}); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("error %v", err)
		}
	})
}

// asker runs one step, and gives the execution up when the reply is no.
type asker struct{ Ran int }

func (p *asker) Start(sc *engine.Scope, _ engine.Opening) {
	sc.Run(engine.Step{Name: "ask", Kind: "TEST.ASK", Effect: workflow.Once})
}

func (p *asker) Ended(sc *engine.Scope, _ string, end engine.End) {
	if p.Ran++; string(end.Reply) == `"no"` {
		sc.Finish(json.RawMessage(`"refused"`))
		sc.Abandon(fault.New(fault.NetworkError, "nobody wants it"), "act")
		sc.Run(engine.Step{Name: "next", Kind: "TEST.ASK"}) // comes too late
	}
}

func (p *asker) Handles(string, *fault.Error) bool  { return true }
func (p *asker) Fired(*engine.Scope, string)        {}
func (p *asker) Snapshot() (json.RawMessage, error) { return json.Marshal(p) }

func TestScope_Abandon(t *testing.T) {
	t.Parallel()
	programs := engine.Programs{"asker": {
		New: func(engine.Setup) (engine.Program, error) { return &asker{}, nil },
		Restore: func(_ engine.Setup, data json.RawMessage) (engine.Program, error) {
			p := &asker{}
			return p, json.Unmarshal(data, p)
		},
	}}
	no := func(s *sim, id engine.ActivationID) {
		s.t.Helper()
		s.do(engine.NodeCompleted{Attempt: s.run(id).Attempt, Reply: json.RawMessage(`"no"`)})
	}
	t.Run("AtTheTopLevel", func(t *testing.T) {
		t.Parallel()
		s := newSim(t, &workflow.Graph{Bodies: []workflow.Body{{Owner: -1}}}, programs)
		s.start(engine.ExecutionCreated{Program: "asker"})
		no(s, "ask")
		s.status(engine.StatusCanceled)
		s.wantEnded(engine.NodeCanceled, "act")
		s.wantRuns()
		if e := s.finish.Error; e == nil || e.Code != fault.NetworkError || e.Retryable || string(s.finish.Result) != `"refused"` {
			t.Errorf("finish %+v", s.finish)
		}
		s.refuse(fault.Conflict, engine.NodeRetried{Activation: "next"})
		s.replay()
	})
	t.Run("EndsAllOfTheExecution", func(t *testing.T) {
		t.Parallel()
		s := newSim(t, draw(t, `agent {"on_error":"continue"}
			pay {"effect":"once"}
			agent -> after
			other -> after`), programs)
		s.start(engine.ExecutionCreated{})
		s.open("agent", engine.ScopeOpened{Program: "asker", Count: 1})
		s.started("pay")
		s.suspend("other", engine.NodeSuspended{Ask: &engine.Question{Purpose: "approval"}})
		no(s, "agent[0]/ask")
		s.wantEnded(engine.NodeCanceled, "agent[0]/act", "other")
		if len(s.asks) != 0 {
			t.Errorf("asks %v", s.asks)
		}
		s.wantRuns("pay") // what must not be repeated ends first
		s.replay()
		s.complete("pay")
		s.status(engine.StatusCanceled)
		s.replay()
	})
	t.Run("DuringAPause", func(t *testing.T) {
		t.Parallel()
		s := newSim(t, &workflow.Graph{Bodies: []workflow.Body{{Owner: -1}}}, programs)
		s.start(engine.ExecutionCreated{Program: "asker"})
		s.do(engine.ExecutionPaused{})
		no(s, "ask")
		s.status(engine.StatusCanceled)
		s.replay()
	})
	t.Run("NotInWhatIsEnding", func(t *testing.T) {
		t.Parallel()
		s := newSim(t, draw(t, `loop {"on_error":"continue"}
			loop:iteration -> agent
			loop:iteration -> bad
			loop:error -> mend`), programs)
		s.start(engine.ExecutionCreated{})
		s.open("loop", engine.ScopeOpened{Count: 1})
		s.open("loop[0]/agent", engine.ScopeOpened{Program: "asker", Count: 1})
		s.started("loop[0]/agent[0]/ask")
		s.fail("loop[0]/bad", fault.ToolError)
		no(s, "loop[0]/agent[0]/ask")
		s.complete("loop", "error")
		s.complete("mend")
		s.status(engine.StatusSuccess)
		s.replay()
	})
}
