package engine_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tandem/engine"
	"tandem/fault"
	"tandem/workflow"
)

// A history is an execution as it was stored once: its journal, what the engine answered to each event, and the state at
// the end. Histories are kept for ever: an old journal must always replay, and to the same end. A change that breaks one
// needs a new version of the rules (engine.Semantics), not a new file.

var (
	updateHistories = flag.Bool("update", false, "write the histories that do not exist yet")
	forceHistories  = flag.Bool("force", false, "with -update, write existing histories anew")
)

const historyDir = "../testdata/history"

type history struct {
	About string `json:"about"`
	// Workflow is drawn as draw reads it; empty for an execution whose top level is another program.
	Workflow []string        `json:"workflow,omitempty"`
	Steps    []historyStep   `json:"steps"`
	Status   engine.Status   `json:"status"`
	Snapshot json.RawMessage `json:"snapshot"`
}

type historyStep struct {
	Event    engine.Event     `json:"event"`
	Commands []map[string]any `json:"commands,omitempty"`
}

func TestHistory_ReplaysForEver(t *testing.T) {
	t.Parallel()
	stories := stories()
	if *updateHistories {
		for name, story := range stories {
			writeHistory(t, filepath.Join(historyDir, name+".json"), story)
		}
	}
	files, err := filepath.Glob(filepath.Join(historyDir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		delete(stories, name)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			replayHistory(t, file)
		})
	}
	for name := range stories {
		t.Errorf("history %q has not been written; run the test with -update", name)
	}
}

func replayHistory(t *testing.T, file string) {
	t.Helper()
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
	got := tell(t, want.About, want.Workflow, events)
	// Both sides as plain JSON, so that what is compared is what is stored.
	if diff := cmp.Diff(plain(t, want), plain(t, got)); diff != "" {
		t.Errorf("the journal replays differently (-stored +now):\n%s", diff)
	}
}

// tell replays a journal and writes down what happens.
func tell(t *testing.T, about string, drawn []string, events []engine.Event) history {
	t.Helper()
	h := history{About: about, Workflow: drawn}
	state := engine.New(historyGraph(t, drawn, events[0]), historyPrograms())
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

// historyGraph draws the workflow. Its hash is the one the journal names: how revisions are hashed is not the concern of
// these tests.
func historyGraph(t *testing.T, drawn []string, first engine.Event) *workflow.Graph {
	t.Helper()
	if len(drawn) == 0 {
		return nil
	}
	g := *draw(t, strings.Join(drawn, "\n"))
	switch f := first.Fact.(type) {
	case engine.ExecutionCreated:
		g.Hash = f.Revision
	case engine.ExecutionForked:
		var state struct {
			Created struct {
				Revision string `json:"revision"`
			} `json:"created"`
		}
		if err := json.Unmarshal(f.State, &state); err != nil {
			t.Fatal(err)
		}
		g.Hash = state.Created.Revision
	}
	return &g
}

func plain(t *testing.T, v any) any {
	t.Helper()
	data, err := json.Marshal(v)
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

// dropTexts leaves out what errors say in words: codes are kept for ever, sentences may get better.
func dropTexts(v any) {
	switch v := v.(type) {
	case map[string]any:
		if _, ok := v["error_code"]; ok {
			delete(v, "error_message")
			delete(v, "error_details")
		}
		for _, inner := range v {
			dropTexts(inner)
		}
	case []any:
		for _, inner := range v {
			dropTexts(inner)
		}
	}
}

// commandFields writes a command as what a host does with it. The names are these tests' own.
func commandFields(t *testing.T, c engine.Command) map[string]any {
	t.Helper()
	attempt := func(a engine.Attempt) string {
		return fmt.Sprintf("%s generation %d attempt %d", a.Activation, a.Generation, a.Attempt)
	}
	m := map[string]any{}
	put := func(name string, v any) {
		if text := asJSON(v); text != `""` && text != "0" && text != "false" && text != "null" && text != "{}" {
			m[name] = v
		}
	}
	switch c := c.(type) {
	case engine.RunNode:
		put("run", attempt(c.Attempt))
		put("scope", c.Scope)
		put("step", c.Step)
		put("cause", c.Cause)
		put("inputs", c.Inputs)
		put("input", c.Input)
		put("as_of", c.AsOf)
		put("last_try", c.LastTry)
		put("timed_out", c.TimedOut)
	case engine.CancelNode:
		put("cancel", attempt(c.Attempt))
	case engine.EndNode:
		put("end", fmt.Sprintf("%s generation %d", c.Activation, c.Generation))
		put("status", c.Status)
		put("error", c.Error)
	case engine.Ask:
		put("ask", c.Ask)
		put("activation", c.Activation)
		put("purpose", c.Purpose)
		put("ref", c.Ref)
	case engine.Withdraw:
		put("withdraw", c.Ask)
	case engine.Sleep:
		put("sleep", c.Timer)
		put("until", c.Until)
		put("purpose", c.Purpose)
		put("activation", c.Activation)
	case engine.CancelTimer:
		put("cancel_timer", c.Timer)
	case engine.StartChild:
		put("start_child", c.Child)
		put("activation", c.Activation)
		put("spec", c.Spec)
		put("depth", c.Depth)
	case engine.TellChild:
		put("tell_child", c.Child)
		put("action", c.Action)
	case engine.CloseScope:
		put("close", c.Scope)
		put("failed", c.Failed)
	case engine.Finish:
		put("finish", c.Status)
		put("error", c.Error)
		put("node", c.Node)
		put("result", c.Result)
	default:
		t.Fatalf("command %T is not known to histories; add it", c)
	}
	return m
}

func writeHistory(t *testing.T, file string, s story) {
	t.Helper()
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) && !*forceHistories {
		return
	}
	drawn := s.lines()
	var sm *sim
	if len(drawn) > 0 {
		sm = newSim(t, draw(t, s.workflow), historyPrograms())
	} else {
		sm = newSim(t, &workflow.Graph{Bodies: []workflow.Body{{Owner: -1}}}, historyPrograms())
	}
	told := s.run(sm)
	told.replay()
	var data bytes.Buffer
	enc := json.NewEncoder(&data)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(tell(t, s.about, drawn, told.journal)); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(historyDir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// relay is a program whose plan grows: each reply names the steps that run next.
type relay struct {
	Ran int `json:"ran"`
}

func historyPrograms() engine.Programs {
	return engine.Programs{"relay": {
		New: func(engine.Setup) (engine.Program, error) { return &relay{}, nil },
		Restore: func(_ engine.Setup, data json.RawMessage) (engine.Program, error) {
			p := &relay{}
			return p, json.Unmarshal(data, p)
		},
	}}
}

func (p *relay) Start(sc *engine.Scope, o engine.Opening) {
	sc.Run(engine.Step{Name: "first", Kind: "TEST.STEP", Effect: workflow.Idempotent, MaxRetries: 1, Input: o.Input})
}

func (p *relay) Ended(sc *engine.Scope, _ string, end engine.End) {
	p.Ran++
	var next []string
	if err := json.Unmarshal(end.Reply, &next); err == nil {
		for _, name := range next {
			sc.Run(engine.Step{Name: name, Kind: "TEST.STEP", Effect: workflow.Once})
		}
	}
	sc.Finish(json.RawMessage(fmt.Sprintf(`{"ran":%d}`, p.Ran)))
}

func (p *relay) Handles(string, *fault.Error) bool  { return false }
func (p *relay) Fired(*engine.Scope, string)        {}
func (p *relay) Snapshot() (json.RawMessage, error) { return json.Marshal(p) }

// story is how a history comes to be: a workflow and what happens to it. The run returns the execution to be stored.
type story struct {
	about    string
	workflow string
	run      func(s *sim) *sim
}

func (s story) lines() []string {
	var list []string
	for line := range strings.Lines(s.workflow) {
		if line = strings.TrimSpace(line); line != "" {
			list = append(list, line)
		}
	}
	return list
}

func stories() map[string]story {
	begun := func(tell func(s *sim)) func(*sim) *sim {
		return func(s *sim) *sim {
			s.start(engine.ExecutionCreated{Input: "in"})
			tell(s)
			return s
		}
	}
	all := map[string]story{
		"chain": {"three nodes, one after the other", `a -> b
			b -> c`, begun(func(s *sim) {
			s.complete("a")
			s.complete("b")
			s.complete("c")
			s.status(engine.StatusSuccess)
		})},
		"branch_skip_join": {"two triggers, a branch not taken, conversions, a join that does not hang", `trigger1 -> if
			trigger2 -> join
			if:true -> yes
			if:false -> no
			no -> never
			yes ~> join
			yes ~> other
			never -> join
			join -> end`, func(s *sim) *sim {
			s.start(engine.ExecutionCreated{Trigger: "trigger1", Input: "in"})
			s.complete("trigger1")
			s.complete("if", "true")
			s.do(engine.NodeCompleted{Attempt: s.run("yes").Attempt, Outputs: []engine.Output{{Key: "result", Ref: "yes"}},
				Settled: []engine.Verdict{{Edge: 5, Live: true, Ref: "converted"}, {Edge: 6}}})
			s.complete("join")
			s.complete("end")
			s.status(engine.StatusSuccess)
			return s
		}},
		"merge_first": {"a race: the winner goes on, a loser is canceled, a once loser ends first, a timed join goes on without it",
			`first {"join":{"first":true,"cancel_losers":true}}
			pay {"effect":"once"}
			late {"join":{"timeout_ms":5000}}
			start -> fast
			start -> slow
			slow -> slower
			start -> pay
			fast -> first
			slower -> first
			pay -> first
			first -> late
			start:later -> more
			more -> late
			start:later -> patient
			patient -> late`, begun(func(s *sim) {
				s.complete("start", "result", "later")
				s.started("pay")
				s.complete("fast")
				s.complete("first")
				s.complete("more")
				s.fail("pay", fault.RemoteRejected)
				s.fire(engine.TimerJoin)
				s.complete("late")
				s.complete("patient")
				s.status(engine.StatusSuccess)
			})},
		"retry_backoff": {"retries with backoff, a wish of the service, a timeout, an error that is handled", `a {"max_retries":3,"on_error":"continue","timeout_ms":1000}
			a:error -> repair
			a -> next`, begun(func(s *sim) {
			s.fail("a", fault.NetworkError)
			s.fire(engine.TimerRetry)
			s.do(engine.NodeFailed{Attempt: s.run("a").Attempt, Error: fault.New(fault.RateLimited, "slow down"), RetryAfterMS: 30_000})
			s.fire(engine.TimerRetry)
			s.do(engine.AttemptTimedOut{Attempt: s.run("a").Attempt})
			s.fire(engine.TimerRetry)
			s.do(engine.NodeFailed{Attempt: s.run("a").Attempt, Error: fault.New(fault.RemoteError, "still down"), Handled: true,
				Outputs: []engine.Output{{Key: "error", Ref: "error"}}})
			s.complete("repair")
			s.status(engine.StatusSuccess)
		})},
		"loop_keeps_going": {"four iterations, two at once; one fails and the loop keeps going", `loop:iteration -> a
			a -> b
			b -> loop
			loop:completed -> end`, begun(func(s *sim) {
			s.open("loop", engine.ScopeOpened{Count: 4, Concurrency: 2, KeepGoing: true})
			s.complete("loop[1]/a")
			s.fail("loop[0]/a", fault.InvalidInput)
			s.complete("loop[1]/b")
			s.complete("loop[3]/a")
			s.complete("loop[2]/a")
			s.complete("loop[2]/b")
			s.complete("loop[3]/b")
			s.complete("loop", "completed")
			s.complete("end")
			s.status(engine.StatusSuccess)
		})},
		"nested_loops": {"a loop that asks for its turns and is broken off, around one that once has no iteration", `loop_outer:iteration -> loop_inner
			loop_inner:iteration -> work
			work -> loop_inner
			loop_inner:completed -> loop_outer
			loop_outer:completed -> end`, begun(func(s *sim) {
			s.open("loop_outer", engine.ScopeOpened{Count: -1, Turns: true, State: "kept"})
			turn := func() { s.do(engine.ScopeAdvanced{Attempt: s.run("loop_outer").Attempt, Open: true}) }
			turn()
			s.open("loop_outer[0]/loop_inner", engine.ScopeOpened{Count: 2})
			s.complete("loop_outer[0]/loop_inner[0]/work")
			s.complete("loop_outer[0]/loop_inner[1]/work")
			s.complete("loop_outer[0]/loop_inner", "completed")
			turn()
			s.open("loop_outer[1]/loop_inner", engine.ScopeOpened{Count: 0})
			s.complete("loop_outer[1]/loop_inner", "completed")
			s.do(engine.ScopeAdvanced{Attempt: s.run("loop_outer").Attempt, State: "kept after two"})
			s.complete("loop_outer", "completed")
			s.complete("end")
			s.status(engine.StatusSuccess)
		})},
		"timeout_scope": {"a deadline: what runs is canceled, a question withdrawn, a once attempt ends first", `timeout:body -> pay
			pay {"effect":"once"}
			timeout:body -> ask
			timeout:body -> slow
			slow -> slower
			timeout:result -> good
			timeout:timeout -> late`, begun(func(s *sim) {
			s.open("timeout", engine.ScopeOpened{Count: 1, Until: 1_060_000})
			s.started("timeout[0]/pay")
			s.suspend("timeout[0]/ask", engine.NodeSuspended{Ask: &engine.Question{Purpose: "approval", Ref: "question"}})
			s.fire(engine.TimerDeadline)
			s.complete("timeout[0]/pay")
			s.complete("timeout", "timeout")
			s.complete("late")
			s.status(engine.StatusSuccess)
		})},
		"people_and_signals": {"a question is answered, an early signal is kept, a timer runs out, one question for two", `ask -> wait
			wait -> delay
			delay -> x
			delay -> y`, begun(func(s *sim) {
			s.do(engine.SignalReceived{Node: "wait", Name: "go", Ref: "early"})
			s.suspend("ask", engine.NodeSuspended{Ask: &engine.Question{Purpose: "approval", Ref: "question"}, Until: 1_600_000, Memo: "memo"})
			s.do(engine.AskAnswered{Ask: onlyAsk(s), Outcome: engine.AskDone, Ref: "answer"})
			s.complete("ask")
			s.suspend("wait", engine.NodeSuspended{Signal: "go", Memo: "memo"})
			s.complete("wait")
			s.suspend("delay", engine.NodeSuspended{Until: 1_005_000})
			s.fire(engine.TimerWait)
			s.complete("delay")
			for _, id := range []engine.ActivationID{"x", "y"} {
				s.suspend(id, engine.NodeSuspended{Ask: &engine.Question{Purpose: "budget", Key: "day"}})
			}
			s.do(engine.AskAnswered{Ask: onlyAsk(s), Outcome: engine.AskDone, Ref: "raised"})
			s.complete("x")
			s.complete("y")
			s.status(engine.StatusSuccess)
		})},
		"child": {"a child that fails, one that is not waited for, one that succeeds", `sub {"on_error":"default_output","max_retries":2}
			sub -> fire
			fire -> last`, begun(func(s *sim) {
			s.suspend("sub", engine.NodeSuspended{Child: &engine.Child{Workflow: "other", Revision: "r1", Input: "in"}})
			s.do(engine.ChildFinished{Child: engine.ChildID("exec", "sub", 0), Status: engine.StatusError, Error: fault.New(fault.NetworkError, "down")})
			s.fail("sub", fault.NetworkError)
			s.complete("sub")
			s.suspend("fire", engine.NodeSuspended{Child: &engine.Child{Workflow: "other", Detached: true}})
			s.complete("fire")
			s.suspend("last", engine.NodeSuspended{Child: &engine.Child{Workflow: "other"}})
			s.do(engine.ChildFinished{Child: engine.ChildID("exec", "last", 0), Status: engine.StatusSuccess, Ref: "result"})
			s.complete("last")
			s.status(engine.StatusSuccess)
		})},
		"unknown_after_recovery": {"the process dies: pure work runs again, what was sent is asked about, once by person, once by rule", `pay {"effect":"once"}
			post {"effect":"once","on_unknown":"retry","max_retries":1}
			pay -> end
			post -> end
			look -> end`, begun(func(s *sim) {
			s.started("pay")
			s.started("post")
			s.do(engine.ExecutionRecovered{})
			s.complete("look")
			s.fire(engine.TimerRetry)
			s.started("post")
			s.complete("post")
			s.do(engine.AskAnswered{Ask: onlyAsk(s), Outcome: engine.AskDone, Choice: engine.ChoiceNotDone})
			s.started("pay")
			s.do(engine.ExecutionRecovered{})
			s.do(engine.AskAnswered{Ask: onlyAsk(s), Outcome: engine.AskDone, Choice: engine.ChoiceDone, Ref: "receipt"})
			s.complete("pay")
			s.complete("end")
			s.status(engine.StatusSuccess)
		})},
		"pause_resume": {"a pause: what runs ends, timers and signals act on resume, the child pauses too", `a -> b
			wait -> c
			timeout:body -> slow
			sub`, begun(func(s *sim) {
			s.suspend("wait", engine.NodeSuspended{Signal: "go"})
			s.suspend("sub", engine.NodeSuspended{Child: &engine.Child{Workflow: "other"}})
			s.open("timeout", engine.ScopeOpened{Count: 1, Until: 1_002_000})
			s.do(engine.ExecutionPaused{By: "ann"})
			s.complete("a")
			s.do(engine.SignalReceived{Node: "wait", Name: "go", Ref: "signal"})
			s.fire(engine.TimerDeadline)
			s.status(engine.StatusPaused)
			s.do(engine.ExecutionResumed{By: "ann"})
			s.complete("b")
			s.complete("wait")
			s.complete("c")
			s.complete("timeout", "timeout")
			s.do(engine.ChildFinished{Child: engine.ChildID("exec", "sub", 0), Status: engine.StatusSuccess})
			s.complete("sub")
			s.status(engine.StatusSuccess)
		})},
		"cancel": {"a cancel reaches everything: runs, waits, a loop, a child, a once attempt", `a -> b
			loop:iteration -> x
			pay {"effect":"once"}
			wait
			sub`, begun(func(s *sim) {
			s.open("loop", engine.ScopeOpened{Count: 2, Concurrency: 2})
			s.started("pay")
			s.suspend("wait", engine.NodeSuspended{Until: 2_000_000, Signal: "go"})
			s.suspend("sub", engine.NodeSuspended{Child: &engine.Child{Workflow: "other"}})
			s.do(engine.CancelRequested{By: "ann", Reason: "wrong customer"})
			s.complete("pay")
			s.do(engine.ChildFinished{Child: engine.ChildID("exec", "sub", 0), Status: engine.StatusCanceled})
			s.status(engine.StatusCanceled)
		})},
		"error_retry_node": {"a failure in a loop ends the execution; a retry goes on from there, a second failure is skipped", `loop:iteration -> a
			a -> b
			b -> loop
			loop:completed -> end
			beside`, begun(func(s *sim) {
			s.open("loop", engine.ScopeOpened{Count: 2, Concurrency: 2})
			s.complete("loop[0]/a")
			s.fail("loop[0]/b", fault.RemoteRejected)
			s.status(engine.StatusError)
			s.do(engine.NodeRetried{Activation: "loop[0]/b", By: "ann"})
			s.complete("loop[0]/b")
			s.complete("beside")
			s.complete("loop[1]/a")
			s.fail("loop[1]/b", fault.RemoteRejected)
			s.do(engine.NodeSkipped{Activation: "loop[1]/b", HasOutput: true, Output: "given", By: "ann"})
			s.complete("loop[1]/b")
			s.complete("loop", "completed")
			s.complete("end")
			s.status(engine.StatusSuccess)
		})},
		"execution_timeout": {"the execution's time is up while a person is asked", `ask -> end
			loop:iteration -> a`, func(s *sim) *sim {
			s.start(engine.ExecutionCreated{Input: "in", TimeoutMS: 60_000})
			s.suspend("ask", engine.NodeSuspended{Ask: &engine.Question{Purpose: "approval"}})
			s.open("loop", engine.ScopeOpened{Count: 1})
			s.fire(engine.TimerExecution)
			s.status(engine.StatusTimeout)
			return s
		}},
		"fork": {"a fork from the second node, with edited input, while a payment was under way and a child ran", `a -> b
			b -> c
			pay {"effect":"once"}
			pay -> c
			sub -> c
			ask`, func(s *sim) *sim {
			s.start(engine.ExecutionCreated{Input: "in"})
			s.started("pay")
			s.suspend("sub", engine.NodeSuspended{Child: &engine.Child{Workflow: "other"}})
			s.suspend("ask", engine.NodeSuspended{Ask: &engine.Question{Purpose: "approval"}})
			s.complete("a")
			f := newSim(s.t, s.graph, s.programs)
			f.do(engine.ExecutionForked{
				Semantics: engine.Semantics, Execution: "fork", Source: "exec", Activation: "b", Input: "edited", State: json.RawMessage(s.snapshot()),
			})
			for _, id := range sortedIDs(f.asks) {
				f.do(engine.AskAnswered{Ask: id, Outcome: engine.AskDone, Choice: engine.ChoiceDone, Ref: "answer"})
			}
			f.complete("ask")
			f.complete("pay")
			f.complete("b")
			f.do(engine.ChildFinished{Child: engine.ChildID("fork", "sub", 0), Status: engine.StatusSuccess})
			f.complete("sub")
			f.complete("c")
			f.status(engine.StatusSuccess)
			return f
		}},
		"growing_program": {"a program whose plan grows with each reply; a step's outcome is unknown on the way", "", func(s *sim) *sim {
			s.start(engine.ExecutionCreated{Program: "relay", Input: "goal"})
			s.do(engine.NodeCompleted{Attempt: s.run("first").Attempt, Reply: json.RawMessage(`["search","send"]`)})
			s.started("send")
			s.do(engine.ExecutionRecovered{})
			s.do(engine.NodeCompleted{Attempt: s.run("search").Attempt, Reply: json.RawMessage(`["last"]`)})
			s.do(engine.AskAnswered{Ask: onlyAsk(s), Outcome: engine.AskDone, Choice: engine.ChoiceDone, Ref: "sent"})
			s.complete("send")
			s.complete("last")
			s.status(engine.StatusSuccess)
			return s
		}},
	}
	maps.Copy(all, programStories())
	return all
}

func sortedIDs(asks map[engine.AskID]engine.Ask) []engine.AskID {
	var ids []engine.AskID
	for id := range asks {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// onlyAsk returns the one question that is open.
func onlyAsk(s *sim) engine.AskID {
	s.t.Helper()
	ids := sortedIDs(s.asks)
	if len(ids) != 1 {
		s.t.Fatalf("questions %v, want one", ids)
	}
	return ids[0]
}
