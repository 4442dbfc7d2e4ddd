package agent_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"tandem/agent"
	"tandem/engine"
	"tandem/fault"
	"tandem/workflow"
)

// path is a way through the machine: what happens, and what is left.
type path struct {
	config agent.Config
	script string
	status engine.Status // SUCCESS unless it is set
	final  agent.Final   // planned unless status is set
	log    []string
	fails  int
	plans  int // 1 unless it is set
}

func (p path) walk(t *testing.T) *sim {
	t.Helper()
	s := newSim(t, p.config)
	s.play(p.script)
	status, final := p.status, p.final
	if status == "" {
		status = engine.StatusSuccess
		if final == "" {
			final = agent.FinalPlanned
		}
	}
	end := s.end(status)
	if end.Final != final || end.Failures != p.fails || len(end.PlanIDs) != max(p.plans, 1) {
		t.Errorf("end %+v", end)
	}
	if end.Canceled != (status == engine.StatusCanceled) || end.Failed != (status == engine.StatusError) {
		t.Errorf("end %+v of a task that ended with %s", end, status)
	}
	if got := lines(end.Log); !slices.Equal(got, p.log) {
		t.Errorf("log:\n got %q\nwant %q", got, p.log)
	}
	return s
}

func walkAll(t *testing.T, paths map[string]path) {
	t.Helper()
	for name, p := range paths {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p.walk(t)
		})
	}
}

// opened is a task of low risk, ended one that has nothing left to do at place n.
const opened = "flow_name\nflow_risk low\n"

func ended(n int) string { return fmt.Sprintf("plan_%d FINAL\nsummary\n", n) }

// runs are the lines of a step that goes well by itself.
func runs(n int) string {
	return fmt.Sprintf("plan_%d tool:search\nparams_%d\nrisk_%d low\nstep_%d\n", n, n, n, n)
}

// called are the lines that lead to the first call of place n, in auto mode.
func called(n int, tool string) string {
	return fmt.Sprintf("plan_%d %s\nparams_%d\nrisk_%d low\n", n, tool, n, n)
}

func auto() agent.Config { return agent.Config{Auto: true, Language: "zh"} }

func TestTask_GoesItsWay(t *testing.T) {
	t.Parallel()
	walkAll(t, map[string]path{
		"arguments lack something": {
			script: opened + "plan_1 tool:a\nparams_1 lacks:city\nmissing_1\nask_1 given\nfill_1 lacks:day\nmissing_1_2\nask_1_2 given\nfill_1_2\nrisk_1 low\nconfirm_1 yes\nstep_1\nplan_2 FINAL\nsummary\n",
			log:    []string{"step_1 a completed"},
		},
		"arguments lack something by themselves": {
			config: auto(),
			script: opened + "plan_1 tool:a\nparams_1 lacks:city\nparams_1_2\nrisk_1 low\nstep_1\nplan_2 FINAL\nsummary\n",
			log:    []string{"step_1 a completed"},
		},
		"AutoRunsWhatIsLow": {config: auto(), script: opened + runs(1) + runs(2) + ended(3), log: []string{"step_1 search completed", "step_2 search completed"}},
		"FinalBeforeAnyWork": {
			config: agent.Config{}, script: opened + "plan_1 FIANL\nsummary",
		},
		"ManualConfirmsEveryStep": {
			script: opened + `
				plan_1 tool:search
				params_1
				risk_1 low
				confirm_1 yes
				step_1
				plan_2 once:send
				params_2
				risk_2 high
				confirm_2 yes
				step_2` + "\n" + ended(3),
			log: []string{"step_1 search completed", "step_2 send completed"},
		},
		"AutoConfirmsMediumAndHigh": {
			config: auto(), script: opened + `
				plan_1 once:send
				params_1
				risk_1 medium
				confirm_1 yes
				step_1
				plan_2 once:send
				params_2
				risk_2 high
				confirm_2 yes
				step_2` + "\n" + ended(3),
			log: []string{"step_1 send completed", "step_2 send completed"},
		},
		"ThePolicyApprovesALevel": {
			config: agent.Config{Auto: true, AutoApprove: []agent.Risk{agent.Medium}}, script: `
				flow_name
				flow_risk medium
				plan_1 once:send
				params_1
				risk_1 medium
				step_1
				plan_2 once:send
				params_2
				risk_2 high
				confirm_2 yes
				step_2` + "\n" + ended(3),
			log: []string{"step_1 send completed", "step_2 send completed"},
		},
		"ThePolicyDoesNotReplaceManualMode": {
			config: agent.Config{AutoApprove: []agent.Risk{agent.Low, agent.Medium, agent.High}}, script: `
				flow_name
				flow_risk high
				plan_1 once:send
				params_1
				risk_1 low
				confirm_1 yes
				step_1` + "\n" + ended(2),
			log: []string{"step_1 send completed"},
		},
		"ARiskyTaskAsksOnce": {
			config: auto(), script: "flow_name\nflow_risk high\nconfirm_flow yes\n" + runs(1) + ended(2),
			log: []string{"step_1 search completed"},
		},
		"ARefusedTaskIsCanceled": {config: auto(), script: "flow_name\nflow_risk medium\nconfirm_flow no", status: engine.StatusCanceled},
		"AnEmptyAnswerCancels":   {config: auto(), script: "flow_name\nflow_risk medium\nconfirm_flow", status: engine.StatusCanceled},
		"AWithdrawnQuestionCancels": {
			script: opened + "plan_1 tool:search\nparams_1\nrisk_1 low\nconfirm_1 !canceled", status: engine.StatusCanceled, log: []string{"step_1 search canceled"},
		},
		"ARefusedStepCancels": {
			script: opened + "plan_1 tool:search\nparams_1\nrisk_1 low\nconfirm_1 yes\nstep_1\nplan_2 once:send\nparams_2\nrisk_2 high\nconfirm_2 no",
			status: engine.StatusCanceled, log: []string{"step_1 search completed", "step_2 send canceled"},
		},
		"PlanningThatFailsThreeTimesIsFinal": {
			config: auto(), script: opened + "plan_1 !remote_rejected\nplan_1_2 !output_invalid\nplan_1_3 {}\nsummary", final: agent.FinalUnplanned,
		},
		"AToolThatIsNotThereThreeTimesIsFinal": {
			config: auto(), script: opened + runs(1) + "plan_2 unknown:x\nplan_2_2 unknown:y\nplan_2_3 unknown:x\nsummary",
			final: agent.FinalUnplanned, log: []string{"step_1 search completed"},
		},
		"ThreeTriesAreForEachStep": {
			config: auto(), script: opened + "plan_1 unknown:x\nplan_1_2 !output_invalid\nplan_1_3 tool:search\nparams_1\nrisk_1 low\nstep_1\n" +
				"plan_2 unknown:x\nplan_2_2 unknown:x\nplan_2_3 FINAL\nsummary",
			log: []string{"step_1 search completed"},
		},
	})
}

func TestTask_EndsAfter25Steps(t *testing.T) {
	t.Parallel()
	script, log := opened, []string(nil)
	for n := range 25 {
		script += runs(n + 1)
		log = append(log, fmt.Sprintf("step_%d search completed", n+1))
	}
	s := path{config: auto(), script: script + "summary", final: agent.FinalLimit, log: log}.walk(t)
	if len(s.called) != 25 {
		t.Errorf("%d calls", len(s.called))
	}
}

func TestDecision_DoesNotEndWell(t *testing.T) {
	t.Parallel()
	all := []agent.Risk{agent.Low, agent.Medium, agent.High}
	walkAll(t, map[string]path{
		"ATaskWithoutAName": {config: auto(), script: "flow_name !remote_rejected\nflow_risk low\n" + ended(1)},
		"ARiskNobodyKnowsIsAskedAbout": {
			config: agent.Config{Auto: true, AutoApprove: all}, script: "flow_name\nflow_risk !output_invalid\nconfirm_flow yes\nplan_1 tool:a\nparams_1\nrisk_1 {\"risk\":\"none\"}\nconfirm_1 yes\nstep_1\n" + ended(2),
			log: []string{"step_1 a completed"},
		},
		"AnAnalysisOfNoUse": {
			config: auto(), script: opened + called(1, "tool:a") + "step_1 !tool_error\nanalyze_1 !output_invalid\nalternative_1 tool:b\nparams_1_2\nrisk_1_2 low\nstep_1_2\n" + ended(2),
			log: []string{"step_1 a failed other", "step_1_2 b completed alternative"}, fails: 1,
		},
		"SkippedRiskOfTheTask":  {config: agent.Config{Auto: true, AutoApprove: all}, script: "flow_name -\nflow_risk -\nconfirm_flow yes\n" + ended(1)},
		"SkippedConfirmation":   {config: auto(), script: "flow_name\nflow_risk high\nconfirm_flow -", status: engine.StatusCanceled},
		"SkippedPlanning":       {config: auto(), script: opened + runs(1) + "plan_2 -\nsummary", final: agent.FinalLeftOut, log: []string{"step_1 search completed"}},
		"SkippedArguments":      {config: auto(), script: opened + "plan_1 tool:a\nparams_1 -\n" + ended(2), log: []string{"step_1 a skipped"}},
		"SkippedConfirmOfAStep": {script: opened + "plan_1 tool:a\nparams_1\nrisk_1 low\nconfirm_1 -\n" + ended(2), log: []string{"step_1 a skipped"}},
		"SkippedCall":           {config: auto(), script: opened + called(1, "tool:a") + "step_1 -\n" + ended(2), log: []string{"step_1 a skipped"}},
		"SkippedRung":           {config: auto(), script: opened + called(1, "tool:a") + "step_1 !timeout\nalternative_1 -\n" + ended(2), log: []string{"step_1 a skipped"}},
		"SkippedSummary":        {config: auto(), script: opened + "plan_1 FINAL\nsummary -"},
	})
}

// What the program does not handle stays where it is: the step alone is tried again.
func TestDecision_CanBeTriedAgain(t *testing.T) {
	t.Parallel()
	lead := opened + "plan_1 once:a\nparams_1\nrisk_1 low\nconfirm_1 yes\nstep_1 !invalid_input\nmissing_1\nask_1 given\nfill_1\nrisk_1_2 low\nconfirm_1_2 yes\nstep_1_try_2 !timeout\nalternative_1 none\nrepair_1 none\nreplan_1\nplan_1_2 FINAL\nsummary\n"
	for _, c := range []struct {
		name string
		code fault.Code
	}{
		{"flow_name", fault.BudgetExhausted}, {"flow_risk", fault.NetworkError}, {"plan_1", fault.BudgetExhausted}, {"plan_1", fault.Canceled},
		{"params_1", fault.RemoteError}, {"risk_1", fault.CredentialInvalid}, {"confirm_1", fault.HILTimeout}, {"step_1", fault.OutcomeUnknown},
		{"missing_1", fault.RateLimited}, {"ask_1", fault.NoApprover}, {"fill_1", fault.Interrupted}, {"alternative_1", fault.NetworkError},
		{"repair_1", fault.Internal}, {"replan_1", fault.NetworkError}, {"summary", fault.ModelRefused},
	} {
		t.Run(c.name+"_"+string(c.code), func(t *testing.T) {
			t.Parallel()
			s := newSim(t, agent.Config{})
			before, after, found := strings.Cut(lead, "\n"+c.name+" ")
			if !found {
				if before, after, found = strings.Cut("\n"+lead, "\n"+c.name+"\n"); !found {
					t.Fatalf("no %s in the script", c.name)
				}
				after = "\n" + after
			}
			s.play(before)
			s.fail(c.name, fault.New(c.code, "not now").Final())
			if got := s.live.Status(); got != engine.StatusError || s.finish.Error.Code != c.code || s.finish.Node != engine.ActivationID(c.name) {
				t.Fatalf("status %s, finish %+v", got, s.finish)
			}
			s.do(engine.NodeRetried{Activation: engine.ActivationID(c.name)})
			s.play(c.name + " " + after)
			if end := s.end(engine.StatusSuccess); len(end.Log) != 1 || end.Steps != 1 {
				t.Errorf("end %+v", end)
			}
		})
	}
}

func TestTask_TellsTheRuntime(t *testing.T) {
	t.Parallel()
	s := newSim(t, agent.Config{Language: "zh", Timeouts: agent.Timeouts{DecisionMS: 5, CallMS: 7}, Retries: 2})
	value := func(c engine.RunNode, v agent.Value) string {
		if v == 0 {
			return ""
		}
		ref, _, _ := strings.Cut(strings.TrimPrefix(string(c.Step.Values[v-1]), "of "), " ")
		return ref
	}
	if c := s.run("flow_name"); c.Step.Kind != agent.KindFlowName || c.Input != "question" || c.Step.TimeoutMS != 5 || c.Step.MaxRetries != 2 || c.Step.Effect != workflow.Idempotent {
		t.Errorf("flow name %+v", c.Step)
	}
	s.play("flow_name\nflow_risk high")
	if a := s.about(s.run("confirm_flow")); a.Risk != agent.High || a.Unassessed || value(s.run("confirm_flow"), a.FlowRisk) != "flow_risk" {
		t.Errorf("confirmation of the task %+v", a)
	}
	s.play("confirm_flow yes\nplan_1 unknown:x")
	if a := s.about(s.run("plan_1_2")); a.Try != 2 || a.Number != 1 || a.Code != fault.NotFound || !strings.Contains(a.Message, `"x"`) {
		t.Errorf("second try to plan %+v", a)
	}
	s.play("plan_1_2 once:send\nparams_1\nrisk_1 high")
	c := s.run("confirm_1")
	if a := s.about(c); a.Step != "step_1" || a.Tool != "send" || value(c, a.Choice) != "plan_1_2" || value(c, a.Arguments) != "params_1" || value(c, a.Judged) != "risk_1" || a.Confirmed || c.Input != c.Step.Values[a.Arguments-1] {
		t.Errorf("confirmation %+v", a)
	}
	s.play("confirm_1 yes")
	c = s.run("step_1")
	if a := s.about(c); !a.Confirmed || value(c, a.Confirmation) != "confirm_1" || c.Step.Effect != workflow.Once || c.Step.TimeoutMS != 7 || c.Step.MaxRetries != 0 || c.Step.Kind != agent.KindCall {
		t.Errorf("call %+v %+v", c.Step, a)
	}
	s.play("step_1 !tool_error\nanalyze_1 param_error\nmissing_1")
	c = s.run("ask_1")
	if a := s.about(c); a.Class != agent.Parameters || a.Code != fault.ToolError || value(c, a.Missing) != "missing_1" || len(a.Log) != 1 || a.Log[0].Status != agent.Failed {
		t.Errorf("question %+v", a)
	}
	s.play("ask_1 given")
	c = s.run("fill_1")
	if a := s.about(c); value(c, a.Given) != "ask_1" || value(c, a.Arguments) != "params_1" {
		t.Errorf("filling %+v", a)
	}
	s.play("fill_1\nrisk_1_2 low")
	if a := s.about(s.run("confirm_1_2")); a.Confirmed || a.Confirmation != 0 || value(s.run("confirm_1_2"), a.Arguments) != "fill_1" {
		t.Errorf("a confirmation of other arguments holds: %+v", a)
	}
	s.play("confirm_1_2 yes\nstep_1_try_2 !timeout\nalternative_1 none\nrepair_1 none\nreplan_1")
	c = s.run("plan_1_3")
	if a := s.about(c); a.PlanID != "plan-2" || value(c, a.Outline) != "replan_1" || a.Step != "step_1" || len(a.Log) != 1 || a.Log[0].PlanID != "plan-1" || a.Log[0].Activation != "step_1_try_2" {
		t.Errorf("planning anew %+v", a)
	}
	s.play("plan_1_3 {\"tool\":\"find\"}\nparams_1_2")
	if a := s.about(s.run("risk_1_3")); a.Step != "step_1_2" || a.Rung != agent.Replanned || a.Class != "" || a.Missing != 0 || a.Given != 0 || a.Confirmed {
		t.Errorf("a step begins with what belongs to another: %+v", a)
	}
	s.play("risk_1_3 low\nconfirm_1_3 yes")
	if c = s.run("step_1_2"); c.Step.Effect != workflow.Once {
		t.Errorf("a tool that says nothing of its effect may be repeated: %+v", c.Step)
	}
	s.play("step_1_2\nplan_2 FINAL")
	c = s.run("summary")
	if a := s.about(c); a.Final != agent.FinalPlanned || len(a.Log) != 2 || value(c, a.Log[1].Result) != "step_1_2" || value(c, a.Log[1].Arguments) != "params_1_2" || value(c, a.Log[1].Choice) != "plan_1_3" {
		t.Errorf("summary %+v", a)
	}
	s.play("summary")
	if end := s.end(engine.StatusSuccess); end.Steps != 1 || end.Answer == 0 || end.FlowName == 0 || end.FlowRisk == 0 || !slices.Equal(end.PlanIDs, []string{"plan-1", "plan-2"}) {
		t.Errorf("end %+v", end)
	}
}

func TestTask_CancelsTheCallThatWouldHaveBeen(t *testing.T) {
	t.Parallel()
	s := path{
		script: opened + "plan_1 tool:a\nparams_1\nrisk_1 low\nconfirm_1 yes\nstep_1 !invalid_input\nmissing_1\nask_1 given\nfill_1\nrisk_1_2 low\nconfirm_1_2 no",
		status: engine.StatusCanceled, log: []string{"step_1 a canceled"},
	}.walk(t)
	if s.ended["step_1_try_2"] != engine.NodeCanceled || s.ended["step_1"] != engine.NodeFailure || s.finish.Error.Code != fault.Canceled {
		t.Errorf("ended %v, finish %+v", s.ended, s.finish)
	}
}

func TestTask_LeftOutIsRecorded(t *testing.T) {
	t.Parallel()
	s := path{config: auto(), script: opened + "plan_1 tool:a\nparams_1\nrisk_1 -\n" + ended(2), log: []string{"step_1 a skipped"}}.walk(t)
	if s.ended["step_1"] != engine.NodeSkip {
		t.Errorf("ended %v", s.ended)
	}
}

// The engine's own question about an attempt that a crash has cut off.
func TestCall_WhoseOutcomeNobodyKnows(t *testing.T) {
	t.Parallel()
	begin := func(t *testing.T) *sim {
		s := newSim(t, auto())
		s.play(opened + called(1, "once:pay"))
		s.do(engine.NodeStarted{Attempt: s.run("step_1").Attempt})
		s.do(engine.ExecutionRecovered{})
		if len(s.asks) != 1 || len(s.running) != 0 {
			t.Fatalf("asks %v, running %v", s.asks, s.running)
		}
		return s
	}
	t.Run("ItWasDone", func(t *testing.T) {
		t.Parallel()
		s := begin(t)
		s.do(engine.AskAnswered{Ask: s.asks[0], Outcome: engine.AskDone, Choice: engine.ChoiceDone, Ref: "receipt"})
		s.do(engine.NodeCompleted{Attempt: s.run("step_1").Attempt, Outputs: []engine.Output{{Key: workflow.DefaultKey, Ref: "receipt"}}})
		s.play(ended(2))
		if end := s.end(engine.StatusSuccess); !slices.Equal(lines(end.Log), []string{"step_1 pay completed"}) {
			t.Errorf("end %+v", end)
		}
	})
	t.Run("SomebodyStopsIt", func(t *testing.T) {
		t.Parallel()
		s := begin(t)
		s.do(engine.AskAnswered{Ask: s.asks[0], Outcome: engine.AskDone, Choice: engine.ChoiceStop})
		// No other tool is tried: that might pay twice.
		if s.live.Status() != engine.StatusError || s.finish.Error.Code != fault.OutcomeUnknown {
			t.Errorf("status %s, finish %+v", s.live.Status(), s.finish)
		}
	})
}

func TestQuestion_WaitsThroughACrashAndAPause(t *testing.T) {
	t.Parallel()
	s := newSim(t, agent.Config{})
	s.play(opened + "plan_1 tool:a\nparams_1\nrisk_1 low")
	s.do(engine.NodeSuspended{Attempt: s.run("confirm_1").Attempt, Ask: &engine.Question{Purpose: "confirm", Ref: "form"}})
	if s.live.Status() != engine.StatusWaitingForHuman {
		t.Fatalf("status %s", s.live.Status())
	}
	s.do(engine.ExecutionRecovered{})
	s.do(engine.ExecutionPaused{})
	s.do(engine.AskAnswered{Ask: s.asks[0], Outcome: engine.AskDone, Ref: "yes"})
	if len(s.running) != 0 {
		t.Fatalf("%v runs during a pause", s.running)
	}
	s.do(engine.ExecutionResumed{})
	s.play("confirm_1 yes\nstep_1\n" + ended(2))
	s.end(engine.StatusSuccess)
}

func TestProgram_RefusesNonsense(t *testing.T) {
	t.Parallel()
	for _, config := range []string{`[]`, `{"limits":{"steps":-1}}`, `{"limits":{"failures":1001}}`, `{"auto_approve":["some"]}`, `{"timeouts":{"call_ms":-1}}`, `{"retries":-1}`} {
		if _, err := agent.Program().New(engine.Setup{Config: json.RawMessage(config)}); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%s: error %v", config, err)
		}
	}
	if _, err := agent.Program().Restore(engine.Setup{}, json.RawMessage(`[]`)); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("error %v", err)
	}
}

// The codes of failures that the runtime has not classed: what the engine itself finds, and what it forgot.
func TestFailure_IsClassedByItsCode(t *testing.T) {
	t.Parallel()
	for code, want := range map[fault.Code]agent.Class{
		fault.NetworkError: agent.Connection, fault.RemoteError: agent.Connection, fault.Timeout: agent.TimedOut,
		fault.Forbidden: agent.Permission, fault.CredentialMissing: agent.Permission, fault.CredentialInvalid: agent.Permission, fault.Unauthorized: agent.Permission,
		fault.DisabledByOperator: agent.Permission, fault.BlockedAddress: agent.Permission,
		fault.InvalidInput: agent.Parameters, fault.ParameterMissing: agent.Parameters,
		fault.ToolError: agent.Unclear, fault.RemoteRejected: agent.Unclear,
		fault.Internal: agent.Other, fault.Interrupted: agent.Other, fault.RateLimited: agent.Other, fault.CodeError: agent.Other,
	} {
		s := newSim(t, auto())
		s.play(opened + called(1, "once:a"))
		s.fail("step_1", fault.New(code, strings.Repeat("错", 1000)))
		var a agent.About
		for _, c := range s.running {
			a = s.about(c)
		}
		if a.Class != want || a.Code != code || len(a.Message) > 2010 || len(a.Log) != 1 || len(a.Log[0].Message) > 510 || strings.ContainsRune(a.Message, '\ufffd') {
			t.Errorf("%s: class %s, want %s; message of %d, log %+v", code, a.Class, want, len(a.Message), len(a.Log))
		}
	}
}

func TestTask_Forks(t *testing.T) {
	t.Parallel()
	s := newSim(t, auto())
	s.play(opened + called(1, "once:pay") + "step_1\nplan_2 tool:a\nparams_2")
	state, err := s.live.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	fork := engine.New(nil, s.programs)
	commands, err := fork.Apply(engine.Event{Seq: 1, Time: 1, Fact: engine.ExecutionForked{Semantics: engine.Semantics, Execution: "fork", Source: "task", Activation: "risk_2", State: state}})
	if err != nil || len(commands) != 1 {
		t.Fatalf("commands %+v, %v: what has been paid is not paid again", commands, err)
	}
	run, ok := commands[0].(engine.RunNode)
	if !ok || run.Activation != "risk_2" {
		t.Fatalf("command %+v", commands[0])
	}
	if a := s.about(run); len(a.Log) != 1 || a.Log[0].Status != agent.Succeeded {
		t.Errorf("about %+v", a)
	}
}

// BenchmarkTask is a task of 25 steps by itself, and how large its state then is.
func BenchmarkTask(b *testing.B) {
	s, script := newSim(b, auto()), opened
	for n := range 25 {
		script += runs(n + 1)
	}
	s.play(script)
	events := s.journal
	b.ReportAllocs()
	size := 0
	for b.Loop() {
		state := engine.New(nil, engine.Programs{agent.Name: agent.Program()})
		for _, e := range events {
			if _, err := state.Apply(e); err != nil {
				b.Fatal(err)
			}
		}
		snapshot, err := state.Snapshot()
		if err != nil {
			b.Fatal(err)
		}
		size = len(snapshot)
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(events)), "µs/event")
	b.ReportMetric(float64(size), "bytes")
}

func TestTask_InsideANode(t *testing.T) {
	t.Parallel()
	graph, problems := workflow.Compile(&workflow.Definition{
		Metadata: workflow.Metadata{Name: "one"}, Nodes: []workflow.Node{{ID: "task", Name: "task", Type: "TEST", Subtype: "TASK", Configurations: json.RawMessage("{}")}},
	}, taskKinds{})
	if graph == nil {
		t.Fatal(problems)
	}
	open := func(t *testing.T) (func(engine.Fact) []engine.Command, *engine.State) {
		state, seq := engine.New(graph, engine.Programs{agent.Name: agent.Program()}), uint64(0)
		do := func(f engine.Fact) []engine.Command {
			t.Helper()
			seq++
			commands, err := state.Apply(engine.Event{Seq: seq, Time: 1, Fact: f})
			if err != nil {
				t.Fatal(err)
			}
			return slices.Clone(commands)
		}
		do(engine.ExecutionCreated{Semantics: engine.Semantics, Execution: "e", Revision: graph.Hash})
		do(engine.ExecutionStarted{})
		at := func(name string) engine.Attempt {
			return engine.Attempt{Activation: engine.ActivationID(name), Attempt: 1}
		}
		do(engine.ScopeOpened{Attempt: at("task"), Program: agent.Name, Config: json.RawMessage(`{"auto":true}`), Count: 1, State: "state"})
		do(engine.NodeCompleted{Attempt: at("task[0]/flow_name")})
		return do, state
	}
	at := func(name string) engine.Attempt {
		return engine.Attempt{Activation: engine.ActivationID("task[0]/" + name), Attempt: 1}
	}
	t.Run("ItsResultClosesTheNode", func(t *testing.T) {
		t.Parallel()
		do, _ := open(t)
		do(engine.NodeCompleted{Attempt: at("flow_risk"), Reply: json.RawMessage(words("low"))})
		do(engine.NodeCompleted{Attempt: at("plan_1"), Reply: json.RawMessage(words("FINAL"))})
		commands := do(engine.NodeCompleted{Attempt: at("summary"), Outputs: []engine.Output{{Key: workflow.DefaultKey, Ref: "answer"}}})
		i := slices.IndexFunc(commands, func(c engine.Command) bool { _, ok := c.(engine.RunNode); return ok })
		if i < 0 {
			t.Fatalf("commands %+v", commands)
		}
		closed := commands[i].(engine.RunNode).Cause
		var end agent.End
		if err := json.Unmarshal(closed.Closed.Result, &end); err != nil || closed.State != "state" || end.Answer != 1 || !slices.Equal(closed.Closed.Values, []engine.Ref{"answer"}) {
			t.Errorf("closed with %s %v, %v", closed.Closed.Result, closed.Closed.Values, err)
		}
	})
	t.Run("ARefusalCancelsTheExecution", func(t *testing.T) {
		t.Parallel()
		do, state := open(t)
		do(engine.NodeCompleted{Attempt: at("flow_risk"), Reply: json.RawMessage(words("high"))})
		do(engine.NodeCompleted{Attempt: at("confirm_flow"), Reply: json.RawMessage(words("no"))})
		if state.Status() != engine.StatusCanceled {
			t.Errorf("status %s", state.Status())
		}
	})
}

// taskKinds knows the one kind of node that a task runs in.
type taskKinds struct{}

func (taskKinds) Kind(name string) (workflow.Kind, bool) {
	return workflow.Kind{Name: name, Plan: func(*workflow.Node) (workflow.Plan, []workflow.Problem) {
		return workflow.Plan{Effect: workflow.Pure}, nil
	}}, name == "TEST.TASK"
}
func (taskKinds) Names() []string                     { return []string{"TEST.TASK"} }
func (taskKinds) Alias(string, string) (string, bool) { return "", false }

func TestReply_ThatCannotBeReadFailsTheTask(t *testing.T) {
	t.Parallel()
	for _, script := range []string{
		"flow_name\nflow_risk []", "flow_name\nflow_risk high\nconfirm_flow []", opened + "plan_1 []", opened + "plan_1 tool:a\nparams_1\nrisk_1 []",
		opened + "plan_1 tool:a\nparams_1\nrisk_1 low\nconfirm_1 []",
		opened + "plan_1 tool:a\nparams_1\nrisk_1 low\nconfirm_1 yes\nstep_1 !tool_error\nanalyze_1 []",
		opened + "plan_1 tool:a\nparams_1\nrisk_1 low\nconfirm_1 yes\nstep_1 !invalid_input\nmissing_1\nask_1 []",
		opened + "plan_1 tool:a\nparams_1\nrisk_1 low\nconfirm_1 yes\nstep_1 !timeout\nalternative_1 []",
	} {
		s := newSim(t, agent.Config{})
		s.play(script)
		if end := s.end(engine.StatusError); !end.Failed || end.Canceled || s.finish.Error.Code != fault.Internal {
			t.Errorf("%q: end %+v, %v", script, end, s.finish.Error)
		}
	}
}

func TestValue_In(t *testing.T) {
	t.Parallel()
	values := []json.RawMessage{json.RawMessage(`1`), json.RawMessage(`2`)}
	for v, want := range map[agent.Value]string{1: "1", 2: "2", 0: "", 3: "", -1: ""} {
		if got, ok := v.In(values); string(got) != want || ok != (want != "") {
			t.Errorf("value %d: %s, %v", v, got, ok)
		}
	}
}
