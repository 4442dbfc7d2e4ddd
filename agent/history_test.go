package agent_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tandem/agent"
	"tandem/engine"
	"tandem/fault"
)

// A history is a task as it was stored once: its journal, what the engine answered to each event, and the state at the end.
// Histories are kept for ever: an old journal must always replay, and to the same end. A change of what a task does
// keeps the old way for the journals that have gone it.

// updateHistories is read-only.
var updateHistories = flag.Bool("update", false, "write the histories that do not exist yet")

const historyDir = "../testdata/history/agent"

type history struct {
	About    string          `json:"about"`
	Steps    []historyStep   `json:"steps"`
	Status   engine.Status   `json:"status"`
	Snapshot json.RawMessage `json:"snapshot"`
}

type historyStep struct {
	Event    engine.Event     `json:"event"`
	Commands []map[string]any `json:"commands,omitempty"`
}

// stories are what the histories were written from.
func stories(t *testing.T) map[string]func() (string, *sim) {
	return map[string]func() (string, *sim){
		"ladder": func() (string, *sim) {
			s := newSim(t, agent.Config{Auto: true, Language: "zh", AutoApprove: []agent.Risk{agent.Medium}})
			s.play(`
				flow_name !remote_rejected
				flow_risk high
				confirm_flow yes
				plan_1 unknown:x
				plan_1_2 tool:a
				params_1
				risk_1 medium
				step_1 !network_error/connection
				step_1_try_2 !tool_error
				analyze_1 param_error
				params_1_2
				risk_1_2 high
				confirm_1 yes
				step_1_try_3 !timeout
				alternative_1 tool:b
				params_1_3
				risk_1_3 low
				step_1_2 !internal/other
				repair_1 {}
				params_1_4
				risk_1_4 !output_invalid
				confirm_1_2 yes
				step_1_3 !forbidden
				replan_1
				plan_1_3 once:c
				params_1_5
				risk_1_5 low`)
			s.do(engine.NodeStarted{Attempt: s.run("step_1_4").Attempt})
			s.do(engine.ExecutionRecovered{})
			s.do(engine.AskAnswered{Ask: s.asks[0], Outcome: engine.AskDone, Choice: engine.ChoiceNotDone})
			s.play("step_1_4\nplan_2 tool:d\nparams_2 -\nplan_3 FINAL")
			s.fail("summary", fault.New(fault.ModelRefused, "no"))
			s.do(engine.NodeRetried{Activation: "summary"})
			s.play("summary")
			s.end(engine.StatusSuccess)
			return "a task that takes every way out of a failure", s
		},
		"people": func() (string, *sim) {
			s := newSim(t, agent.Config{Limits: agent.Limits{Steps: 3, PlanTries: 2, InnerCalls: 1, Failures: 2}, Timeouts: agent.Timeouts{DecisionMS: 1000, CallMS: 2000}, Retries: 1})
			s.play("flow_name\nflow_risk low\nplan_1 once:send\nparams_1\nrisk_1 high")
			s.do(engine.NodeSuspended{Attempt: s.run("confirm_1").Attempt, Ask: &engine.Question{Purpose: "confirm", Ref: "form"}})
			s.do(engine.ExecutionPaused{By: "operator"})
			s.do(engine.AskAnswered{Ask: s.asks[0], Outcome: engine.AskDone, Ref: "yes"})
			s.do(engine.ExecutionResumed{By: "operator"})
			s.play("confirm_1 yes\nstep_1 !invalid_input\nmissing_1\nask_1 given\nfill_1\nrisk_1_2 low\nconfirm_1_2 no")
			s.end(engine.StatusCanceled)
			return "a task that people confirm, complete and refuse", s
		},
		"failures": func() (string, *sim) {
			s := newSim(t, agent.Config{Auto: true, Limits: agent.Limits{Failures: 2}})
			s.play("flow_name\nflow_risk low\nplan_1 tool:a\nparams_1\nrisk_1 low\nstep_1 !forbidden\nalternative_1 none\nrepair_1 none\nreplan_1 none\n" +
				"plan_2 tool:a\nparams_2\nrisk_2 low\nstep_2 !tool_error\nanalyze_2 no_param_error")
			s.end(engine.StatusError)
			return "a task that has failed too often", s
		},
	}
}

func TestHistory_ReplaysForEver(t *testing.T) {
	t.Parallel()
	for name, tellIt := range stories(t) {
		file := filepath.Join(historyDir, name+".json")
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) && *updateHistories {
			about, s := tellIt()
			writeHistory(t, file, tell(t, about, s.journal))
		} else if err != nil {
			t.Errorf("history %q: %v; run the test with -update to write it", name, err)
		}
	}
	files, err := filepath.Glob(filepath.Join(historyDir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var want history
			if err := json.Unmarshal(data, &want); err != nil {
				t.Fatal(err)
			}
			var events []engine.Event
			for _, step := range want.Steps {
				events = append(events, step.Event)
			}
			if diff := cmp.Diff(plain(t, want), plain(t, tell(t, want.About, events))); diff != "" {
				t.Errorf("the journal replays differently (-stored +now):\n%s", diff)
			}
		})
	}
}

// tell replays a journal and writes down what happens.
func tell(t *testing.T, about string, events []engine.Event) history {
	t.Helper()
	h := history{About: about}
	state := engine.New(nil, engine.Programs{agent.Name: agent.Program()})
	for _, e := range events {
		commands, err := state.Apply(e)
		if err != nil {
			t.Fatalf("event %d: %v", e.Seq, err)
		}
		step := historyStep{Event: e}
		for _, c := range commands {
			step.Commands = append(step.Commands, commandFields(t, c))
		}
		h.Steps = append(h.Steps, step)
	}
	snapshot, err := state.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	h.Status, h.Snapshot = state.Status(), snapshot
	return h
}

// commandFields writes a command as what a host does with it. The names are these tests' own.
func commandFields(t *testing.T, c engine.Command) map[string]any {
	t.Helper()
	switch c := c.(type) {
	case engine.RunNode:
		return map[string]any{"run": c.Activation, "generation": c.Generation, "attempt": c.Attempt.Attempt, "step": c.Step, "cause": c.Cause, "input": c.Input, "last_try": c.LastTry}
	case engine.CancelNode:
		return map[string]any{"cancel": c.Activation, "generation": c.Generation, "attempt": c.Attempt.Attempt}
	case engine.EndNode:
		return map[string]any{"end": c.Activation, "generation": c.Generation, "status": c.Status, "error": c.Error}
	case engine.Ask:
		return map[string]any{"ask": c.Ask, "activation": c.Activation, "purpose": c.Purpose, "ref": c.Ref}
	case engine.Finish:
		return map[string]any{"finish": c.Status, "node": c.Node, "error": c.Error, "result": c.Result}
	}
	t.Fatalf("command %T is not known to histories; add it", c)
	return nil
}

// plain is what is compared: what is stored, except for what errors say in words. Sentences may get better.
func plain(t *testing.T, h history) any {
	t.Helper()
	data, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	dropTexts(out)
	return out
}

func dropTexts(v any) {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "message")
		delete(v, "error_message")
		delete(v, "error_details")
		for _, inner := range v {
			dropTexts(inner)
		}
	case []any:
		for _, inner := range v {
			dropTexts(inner)
		}
	}
}

func writeHistory(t *testing.T, file string, h history) {
	t.Helper()
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(h); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
