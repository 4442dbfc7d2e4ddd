package engine_test

import (
	"encoding/json"
	"slices"
	"testing"

	"tandem/engine"
	"tandem/fault"
	"tandem/workflow"
)

// openLoop starts a graph whose node "agent" is led by the tool loop.
func openLoop(t *testing.T, graph string, c engine.LoopConfig) *sim {
	t.Helper()
	s := newSim(t, draw(t, graph), nil)
	s.start(engine.ExecutionCreated{})
	config, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	s.do(engine.ScopeOpened{Attempt: s.run("agent").Attempt, Program: engine.ProgramToolLoop, Config: config, Count: 1, State: "request"})
	return s
}

// replied completes a step with a result and a reply.
func replied(s *sim, id engine.ActivationID, reply any) {
	s.t.Helper()
	raw, err := json.Marshal(reply)
	if err != nil {
		s.t.Fatal(err)
	}
	s.do(engine.NodeCompleted{Attempt: s.run(id).Attempt, Outputs: []engine.Output{{Key: "result", Ref: engine.Ref("of " + string(id))}}, Reply: raw})
	s.replay()
}

// logOf is what a step is told of what has happened, each entry with its value.
func logOf(t *testing.T, raw json.RawMessage, values []engine.Ref) []string {
	t.Helper()
	var about struct {
		Log []engine.LoopEntry `json:"log"`
	}
	if err := json.Unmarshal(raw, &about); err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range about.Log {
		switch {
		case e.Denied:
			list = append(list, e.Kind+" denied")
		case e.Value < 0:
			list = append(list, e.Kind+" "+string(e.Code))
		default:
			list = append(list, string(values[e.Value]))
		}
	}
	return list
}

func wantLog(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("log:\n got %q\nwant %q", got, want)
	}
}

func TestToolLoop_LeadsATurn(t *testing.T) {
	t.Parallel()
	s := openLoop(t, "agent -> after", engine.LoopConfig{Loads: 2, Stores: 1, Profiles: 1, Rounds: 3, Tries: 3, MaxRetries: 2, TimeoutMS: 5, ToolTimeoutMS: 7})
	s.wantRuns("agent[0]/load_1", "agent[0]/load_2")
	replied(s, "agent[0]/load_2", nil)
	s.fail("agent[0]/load_1", fault.Internal) // the turn goes on when a memory fails
	s.wantRuns("agent[0]/complete_1")
	if step := s.run("agent[0]/complete_1").Step; step.TimeoutMS != 5 || step.MaxRetries != 2 || step.Effect != workflow.Idempotent {
		t.Errorf("completion %+v", step)
	}
	s.fail("agent[0]/complete_1", fault.RateLimited)
	s.fire(engine.TimerRetry)
	replied(s, "agent[0]/complete_1", engine.LoopReply{Calls: []engine.LoopCall{{Effect: workflow.Once}, {Effect: workflow.Idempotent, MaxRetries: 1}, {Effect: workflow.Once, Approve: true}}})
	s.wantRuns("agent[0]/call_1_1", "agent[0]/call_1_2", "agent[0]/approve_1_3")
	if run := s.run("agent[0]/call_1_1"); run.Step.Effect != workflow.Once || run.Input != "of agent[0]/complete_1" || run.Step.TimeoutMS != 7 {
		t.Errorf("call %+v", run)
	}
	replied(s, "agent[0]/approve_1_3", engine.ApproveReply{Approved: true})
	s.wantRuns("agent[0]/call_1_1", "agent[0]/call_1_2", "agent[0]/call_1_3")
	replied(s, "agent[0]/call_1_3", nil)
	s.fail("agent[0]/call_1_1", fault.ToolError) // the model is told
	s.do(engine.ExecutionRecovered{})
	s.wantRuns("agent[0]/call_1_2") // nothing that is recorded runs again
	replied(s, "agent[0]/call_1_2", nil)

	run := s.run("agent[0]/complete_2")
	wantLog(t, logOf(t, run.Step.Config, run.Step.Values), "load internal", "of agent[0]/load_2", "of agent[0]/complete_1",
		"call tool_error", "of agent[0]/call_1_2", "of agent[0]/call_1_3")
	replied(s, "agent[0]/complete_2", engine.LoopReply{})
	s.wantRuns("agent[0]/store_1")
	s.fail("agent[0]/store_1", fault.Internal)
	closing := s.run("agent")
	if closing.Cause.Kind != engine.CauseClose || closing.Cause.State != "request" {
		t.Fatalf("run %+v", closing)
	}
	wantLog(t, logOf(t, closing.Cause.Closed.Result, closing.Cause.Closed.Values), "load internal", "of agent[0]/load_2", "of agent[0]/complete_1",
		"call tool_error", "of agent[0]/call_1_2", "of agent[0]/call_1_3", "of agent[0]/complete_2", "store internal")
	s.complete("agent")
	s.complete("after")
	s.status(engine.StatusSuccess)
	s.replay()
}

func TestToolLoop_AsksBeforeACall(t *testing.T) {
	t.Parallel()
	s := openLoop(t, "agent -> after", engine.LoopConfig{Profiles: 1, Rounds: 3, Tries: 3, OneByOne: true})
	replied(s, "agent[0]/complete_1", engine.LoopReply{Calls: []engine.LoopCall{{Approve: true}, {Approve: true}, {}}})
	s.wantRuns("agent[0]/approve_1_1") // one by one
	replied(s, "agent[0]/approve_1_1", engine.ApproveReply{})
	s.wantRuns("agent[0]/approve_1_2")
	s.suspend("agent[0]/approve_1_2", engine.NodeSuspended{Ask: &engine.Question{Purpose: "tool_approval"}})
	s.status(engine.StatusWaitingForHuman)
	for id := range s.asks {
		s.do(engine.AskAnswered{Ask: id, Outcome: engine.AskDone})
	}
	replied(s, "agent[0]/approve_1_2", engine.ApproveReply{Approved: true})
	s.wantRuns("agent[0]/call_1_2")
	replied(s, "agent[0]/call_1_2", nil)
	s.wantRuns("agent[0]/call_1_3")
	replied(s, "agent[0]/call_1_3", nil)
	run := s.run("agent[0]/complete_2")
	wantLog(t, logOf(t, run.Step.Config, run.Step.Values), "of agent[0]/complete_1", "call denied", "of agent[0]/call_1_2", "of agent[0]/call_1_3")
}

func TestToolLoop_StopsAtItsLimits(t *testing.T) {
	t.Parallel()
	end := func(s *sim) (e engine.LoopEnd) {
		s.t.Helper()
		if err := json.Unmarshal(s.run("agent").Cause.Closed.Result, &e); err != nil {
			s.t.Fatal(err)
		}
		return e
	}
	t.Run("Rounds", func(t *testing.T) {
		t.Parallel()
		s := openLoop(t, "agent -> after", engine.LoopConfig{Profiles: 1, Rounds: 1, Tries: 3})
		calls := engine.LoopReply{Calls: []engine.LoopCall{{}}}
		replied(s, "agent[0]/complete_1", calls)
		replied(s, "agent[0]/call_1_1", nil)
		replied(s, "agent[0]/complete_2", calls)
		if e := end(s); !e.Limit || e.Unfit {
			t.Errorf("end %+v", e)
		}
	})
	t.Run("AnswersOfTheWrongShape", func(t *testing.T) {
		t.Parallel()
		s := openLoop(t, "agent -> after", engine.LoopConfig{Profiles: 1, Rounds: 1, Tries: 3, Stores: 1})
		for _, id := range []engine.ActivationID{"agent[0]/complete_1", "agent[0]/complete_2", "agent[0]/complete_3"} {
			replied(s, id, engine.LoopReply{Unfit: true})
		}
		if e := end(s); e.Limit || !e.Unfit || len(e.Log) != 3 {
			t.Errorf("end %+v", e)
		}
	})
}

func TestToolLoop_FallsBack(t *testing.T) {
	t.Parallel()
	t.Run("ToTheNextModel", func(t *testing.T) {
		t.Parallel()
		s := openLoop(t, "agent -> after", engine.LoopConfig{Profiles: 2, Rounds: 1, Tries: 3})
		s.fail("agent[0]/complete_1", fault.CredentialInvalid)
		run := s.run("agent[0]/complete_2")
		var about engine.LoopStep
		if err := json.Unmarshal(run.Step.Config, &about); err != nil || about.Profile != 1 {
			t.Fatalf("step %s, %v", run.Step.Config, err)
		}
		replied(s, "agent[0]/complete_2", engine.LoopReply{Calls: []engine.LoopCall{{}}})
		replied(s, "agent[0]/call_2_1", nil)
		if err := json.Unmarshal(s.run("agent[0]/complete_3").Step.Config, &about); err != nil || about.Profile != 1 {
			t.Errorf("the turn goes back to a model that has failed: %+v, %v", about, err)
		}
		// Without another model the failure is the node's, and the step that failed can be tried again.
		s.fail("agent[0]/complete_3", fault.CredentialInvalid)
		s.status(engine.StatusError)
		s.do(engine.NodeRetried{Activation: "agent[0]/complete_3"})
		s.wantRuns("agent[0]/complete_3")
		replied(s, "agent[0]/complete_3", engine.LoopReply{})
		s.complete("agent")
		s.complete("after")
		s.status(engine.StatusSuccess)
	})
	t.Run("NotAfterARefusal", func(t *testing.T) {
		t.Parallel()
		s := openLoop(t, "agent -> after", engine.LoopConfig{Profiles: 2, Rounds: 1, Tries: 3})
		s.fail("agent[0]/complete_1", fault.ModelRefused)
		s.status(engine.StatusError)
	})
}

func TestToolLoop_RefusesANonsensicalConfiguration(t *testing.T) {
	t.Parallel()
	s := newSim(t, draw(t, "agent -> after"), nil)
	s.start(engine.ExecutionCreated{})
	s.do(engine.ScopeOpened{Attempt: s.run("agent").Attempt, Program: engine.ProgramToolLoop, Config: json.RawMessage(`{"profiles":0}`), Count: 1})
	s.status(engine.StatusError)
}
