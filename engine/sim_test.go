package engine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"tandem/engine"
	"tandem/fault"
	"tandem/workflow"
)

// testKinds are the kinds of the engine's tests. What a node does is told by its configurations; what it produces is
// told by the test.
type testKinds struct{}

// planConfig are the configurations that a test kind understands.
type planConfig struct {
	Effect       workflow.Effect    `json:"effect,omitempty"`
	MaxRetries   int                `json:"max_retries,omitempty"`
	TimeoutMS    int64              `json:"timeout_ms,omitempty"`
	OnError      workflow.OnError   `json:"on_error,omitempty"`
	OnUnknown    workflow.OnUnknown `json:"on_unknown,omitempty"`
	Join         workflow.Join      `json:"join,omitzero"`
	Disabled     bool               `json:"disabled,omitempty"`
	SkipDisabled bool               `json:"skip_disabled,omitempty"`
	Asks         string             `json:"asks,omitempty"`
}

func (testKinds) Kind(name string) (workflow.Kind, bool) {
	k := workflow.Kind{Name: name, Plan: func(n *workflow.Node) (workflow.Plan, []workflow.Problem) {
		var c planConfig
		if err := json.Unmarshal(n.Configurations, &c); err != nil {
			return workflow.Plan{}, []workflow.Problem{{Severity: workflow.SeverityError, Code: "invalid_config", Message: err.Error()}}
		}
		if c.Effect == "" {
			c.Effect = workflow.Pure
		}
		return workflow.Plan{
			Effect: c.Effect, MaxRetries: c.MaxRetries, TimeoutMS: c.TimeoutMS, OnError: c.OnError, OnUnknown: c.OnUnknown,
			Join: c.Join, Disabled: c.Disabled, SkipDisabled: c.SkipDisabled, Asks: c.Asks,
		}, nil
	}}
	switch name {
	case "TEST.STEP", "TRIGGER.TEST":
		return k, true
	case "TEST.LOOP":
		k.Scope = &workflow.ScopeKeys{Entry: "iteration", Exits: []string{"completed"}}
		return k, true
	case "TEST.TIMEOUT":
		k.Scope = &workflow.ScopeKeys{Entry: "body", Exits: []string{"result", "timeout"}, Once: true}
		return k, true
	}
	return workflow.Kind{}, false
}

func (testKinds) Names() []string {
	return []string{"TEST.LOOP", "TEST.STEP", "TEST.TIMEOUT", "TRIGGER.TEST"}
}

func (testKinds) Alias(string, string) (string, bool) { return "", false }

// draw compiles a graph drawn in text. A line "a -> b" is a connection of result, "a:key -> b" of another key, and
// "a:key ~> b" one with a conversion function; "a {json}" gives a node its configurations. A node called loop… is a loop,
// timeout… a deadline, trigger… a trigger, any other a step. Nodes come to be in the order they are first named.
func draw(t testing.TB, text string) *workflow.Graph {
	t.Helper()
	def := &workflow.Definition{Metadata: workflow.Metadata{Name: "drawn"}}
	index := map[string]int{}
	node := func(id string) int {
		i, ok := index[id]
		if !ok {
			i = len(def.Nodes)
			index[id] = i
			typ, subtype := "TEST", "STEP"
			switch {
			case strings.HasPrefix(id, "loop"):
				subtype = "LOOP"
			case strings.HasPrefix(id, "timeout"):
				subtype = "TIMEOUT"
			case strings.HasPrefix(id, "trigger"):
				typ, subtype = "TRIGGER", "TEST"
			}
			def.Nodes = append(def.Nodes, workflow.Node{ID: id, Name: id, Type: typ, Subtype: subtype, Configurations: json.RawMessage("{}")})
		}
		return i
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
		case strings.Contains(line, ">"):
			left, right, _ := strings.Cut(line, ">")
			right = strings.TrimSpace(right)
			converts := strings.HasSuffix(left, "~")
			left = strings.TrimSpace(strings.TrimRight(left, "-~"))
			from, key, ok := strings.Cut(left, ":")
			if !ok {
				key = workflow.DefaultKey
			}
			node(from)
			node(right)
			c := workflow.Connection{ID: fmt.Sprintf("c%d", len(def.Connections)), FromNode: from, ToNode: right, OutputKey: key}
			if converts {
				c.ConversionFunction = "value"
			}
			def.Connections = append(def.Connections, c)
		default:
			id, config, _ := strings.Cut(line, " ")
			i := node(id)
			if config != "" {
				def.Nodes[i].Configurations = json.RawMessage(config)
			}
		}
	}
	g, problems := workflow.Compile(def, testKinds{})
	for _, p := range problems {
		if p.Severity == workflow.SeverityError {
			t.Fatalf("drawn graph: %v", p)
		}
	}
	return g
}

// sim is a host for tests: it keeps the journal, carries commands out by noting them down, and checks on the way what
// must hold of every execution.
type sim struct {
	t        testing.TB
	graph    *workflow.Graph
	programs engine.Programs
	state    *engine.State
	journal  []engine.Event
	seq      uint64
	now      int64

	running  map[engine.ActivationID]engine.RunNode
	timers   map[engine.TimerID]engine.Sleep
	asks     map[engine.AskID]engine.Ask
	children map[string]engine.StartChild
	ended    map[engine.ActivationID]engine.NodeStatus
	canceled []engine.ActivationID // CancelNode commands
	told     []string              // TellChild commands
	closed   []string              // CloseScope commands
	errors   map[engine.ActivationID]*fault.Error
	finish   *engine.Finish
}

func newSim(t testing.TB, g *workflow.Graph, programs engine.Programs) *sim {
	return &sim{
		t: t, graph: g, programs: programs, state: engine.New(g, programs), now: 1_000_000,
		running: map[engine.ActivationID]engine.RunNode{}, timers: map[engine.TimerID]engine.Sleep{},
		asks: map[engine.AskID]engine.Ask{}, children: map[string]engine.StartChild{},
		ended: map[engine.ActivationID]engine.NodeStatus{}, errors: map[engine.ActivationID]*fault.Error{},
	}
}

// begin starts an execution of a drawn graph.
func begin(t testing.TB, text string) *sim {
	t.Helper()
	s := newSim(t, draw(t, text), nil)
	s.start(engine.ExecutionCreated{})
	return s
}

func (s *sim) start(created engine.ExecutionCreated) {
	s.t.Helper()
	created.Semantics, created.Execution, created.Revision = engine.Semantics, "exec", s.graph.Hash
	s.do(created)
	s.do(engine.ExecutionStarted{})
}

// do applies a fact that must be accepted.
func (s *sim) do(fact engine.Fact) []engine.Command {
	s.t.Helper()
	commands, err := s.try(fact)
	if err != nil {
		s.t.Fatalf("apply %T %+v: %v", fact, fact, err)
	}
	return commands
}

// refuse applies a fact that must be refused with a code, and checks that nothing has changed.
func (s *sim) refuse(code fault.Code, fact engine.Fact) {
	s.t.Helper()
	before := s.snapshot()
	_, err := s.try(fact)
	if got := fault.CodeOf(err); got != code {
		s.t.Fatalf("apply %T %+v: got error %v, want code %s", fact, fact, err, code)
	}
	if after := s.snapshot(); after != before {
		s.t.Fatalf("a refused %T changed the state\nfrom %s\nto   %s", fact, before, after)
	}
}

func (s *sim) try(fact engine.Fact) ([]engine.Command, error) {
	s.t.Helper()
	e := engine.Event{Seq: s.seq + 1, Time: s.now, Fact: fact}
	commands, err := s.state.Apply(e)
	if err != nil {
		var f *fault.Error
		if !errors.As(err, &f) || f.Message == "" {
			s.t.Fatalf("apply %T: error %v has no code or message", fact, err)
		}
		return nil, err
	}
	s.seq++
	s.journal = append(s.journal, e)
	if s.finish != nil && s.state.Status().Final() {
		s.t.Fatalf("apply %T was accepted after the end", fact)
	}
	s.forget(fact)
	recovered := false
	switch fact.(type) {
	case engine.ExecutionRecovered, engine.ExecutionForked:
		recovered = true
	}
	commands = slices.Clone(commands)
	for _, c := range commands {
		s.carryOut(c, recovered)
	}
	return commands, nil
}

// forget removes from the host's books what a fact has ended.
func (s *sim) forget(fact engine.Fact) {
	switch f := fact.(type) {
	case engine.NodeCompleted:
		delete(s.running, f.Activation)
		s.ended[f.Activation] = engine.NodeDone
	case engine.NodeFailed:
		delete(s.running, f.Activation)
	case engine.NodeSuspended:
		delete(s.running, f.Activation)
	case engine.ScopeOpened:
		delete(s.running, f.Activation)
	case engine.ScopeAdvanced:
		delete(s.running, f.Activation)
	case engine.TimerFired:
		delete(s.timers, f.Timer)
	case engine.AskAnswered:
		delete(s.asks, f.Ask)
	case engine.ChildFinished:
		delete(s.children, f.Child)
	case engine.ExecutionRecovered:
		if len(f.Lost) == 0 {
			clear(s.running)
		}
		for _, at := range f.Lost {
			delete(s.running, at.Activation)
		}
	case engine.NodeRetried, engine.NodeSkipped:
		s.finish = nil
	}
}

func (s *sim) carryOut(c engine.Command, recovered bool) {
	s.t.Helper()
	if s.finish != nil {
		s.t.Fatalf("command %T %+v after Finish", c, c)
	}
	switch c := c.(type) {
	case engine.RunNode:
		if _, ok := s.running[c.Activation]; ok && !recovered {
			s.t.Fatalf("%q runs twice at once", c.Activation)
		}
		s.running[c.Activation] = c
	case engine.CancelNode:
		if r, ok := s.running[c.Activation]; !ok || r.Attempt != c.Attempt {
			s.t.Fatalf("cancel of %+v, which does not run", c.Attempt)
		}
		s.canceled = append(s.canceled, c.Activation)
		a, ok := s.state.Activation(c.Activation)
		if !ok || a.Status != engine.NodeRunning || a.Attempt != c.Attempt.Attempt || a.Generation != c.Generation {
			delete(s.running, c.Activation)
		}
	case engine.EndNode:
		s.ended[c.Activation] = c.Status
		if c.Error != nil {
			s.errors[c.Activation] = c.Error
		}
	case engine.Sleep:
		s.timers[c.Timer] = c
	case engine.CancelTimer:
		delete(s.timers, c.Timer)
	case engine.Ask:
		s.asks[c.Ask] = c
	case engine.Withdraw:
		if _, ok := s.asks[c.Ask]; !ok {
			s.t.Fatalf("withdraw of %q, which was not asked", c.Ask)
		}
		delete(s.asks, c.Ask)
	case engine.StartChild:
		s.children[c.Child] = c
	case engine.TellChild:
		s.told = append(s.told, string(c.Action)+" "+c.Child)
	case engine.CloseScope:
		s.closed = append(s.closed, c.Scope)
	case engine.Finish:
		s.finish = &c
	}
}

// run returns the open run of an activation.
func (s *sim) run(id engine.ActivationID) engine.RunNode {
	s.t.Helper()
	r, ok := s.running[id]
	if !ok {
		s.t.Fatalf("%q does not run; running: %v", id, s.runs())
	}
	return r
}

// runs lists what runs, sorted.
func (s *sim) runs() []string {
	var ids []string
	for id := range s.running {
		ids = append(ids, string(id))
	}
	slices.Sort(ids)
	return ids
}

// complete ends an activation with the keys it produces, "result" when none is named.
func (s *sim) complete(id engine.ActivationID, keys ...string) []engine.Command {
	s.t.Helper()
	if keys == nil {
		keys = []string{"result"}
	}
	f := engine.NodeCompleted{Attempt: s.run(id).Attempt}
	for _, k := range keys {
		f.Outputs = append(f.Outputs, engine.Output{Key: k, Ref: engine.Ref(string(id) + "." + k)})
	}
	return s.do(f)
}

func (s *sim) fail(id engine.ActivationID, code fault.Code) []engine.Command {
	s.t.Helper()
	return s.do(engine.NodeFailed{Attempt: s.run(id).Attempt, Error: fault.New(code, "it went wrong")})
}

func (s *sim) started(id engine.ActivationID) {
	s.t.Helper()
	s.do(engine.NodeStarted{Attempt: s.run(id).Attempt})
}

func (s *sim) open(id engine.ActivationID, f engine.ScopeOpened) []engine.Command {
	s.t.Helper()
	f.Attempt = s.run(id).Attempt
	return s.do(f)
}

func (s *sim) suspend(id engine.ActivationID, f engine.NodeSuspended) []engine.Command {
	s.t.Helper()
	f.Attempt = s.run(id).Attempt
	return s.do(f)
}

// fire fires the only timer of a purpose.
func (s *sim) fire(purpose engine.TimerPurpose) {
	s.t.Helper()
	for id, c := range s.timers {
		if c.Purpose == purpose {
			s.now = max(s.now, c.Until)
			s.do(engine.TimerFired{Timer: id})
			return
		}
	}
	s.t.Fatalf("no timer of purpose %s; timers: %v", purpose, s.timers)
}

func (s *sim) snapshot() string {
	s.t.Helper()
	b, err := s.state.Snapshot()
	if err != nil {
		s.t.Fatalf("snapshot: %v", err)
	}
	return string(b)
}

func (s *sim) status(want engine.Status) {
	s.t.Helper()
	if got := s.state.Status(); got != want {
		s.t.Fatalf("status %s, want %s; running %v", got, want, s.runs())
	}
	if want.Final() && (s.finish == nil || s.finish.Status != want) {
		s.t.Fatalf("finish %+v, want status %s", s.finish, want)
	}
}

func (s *sim) wantRuns(ids ...string) {
	s.t.Helper()
	slices.Sort(ids)
	if got := s.runs(); !slices.Equal(got, ids) {
		s.t.Fatalf("running %v, want %v", got, ids)
	}
}

func (s *sim) wantEnded(status engine.NodeStatus, ids ...engine.ActivationID) {
	s.t.Helper()
	for _, id := range ids {
		if got := s.ended[id]; got != status {
			s.t.Fatalf("%q ended as %q, want %q; all: %v", id, got, status, s.ended)
		}
	}
}

// replay checks that the journal, stored and read again, gives the same bytes, whole or from a snapshot at any point.
func (s *sim) replay() {
	s.t.Helper()
	want := s.snapshot()
	full := engine.New(s.graph, s.programs)
	for i, e := range s.journal {
		stored, err := json.Marshal(e)
		if err != nil {
			s.t.Fatalf("encode event %d: %v", i, err)
		}
		var read engine.Event
		if err := json.Unmarshal(stored, &read); err != nil {
			s.t.Fatalf("decode event %d: %v", i, err)
		}
		if _, err := full.Apply(read); err != nil {
			s.t.Fatalf("replay event %d: %v", i, err)
		}
		snap, err := full.Snapshot()
		if err != nil {
			s.t.Fatalf("snapshot after event %d: %v", i, err)
		}
		full, err = engine.Restore(s.graph, s.programs, snap)
		if err != nil {
			s.t.Fatalf("restore after event %d: %v", i, err)
		}
		again, err := full.Snapshot()
		if err != nil || string(again) != string(snap) {
			s.t.Fatalf("snapshot after event %d does not survive a restore: %v\n%s\n%s", i, err, snap, again)
		}
	}
	if got, _ := full.Snapshot(); string(got) != want {
		s.t.Fatalf("replay through snapshots differs\n%s\n%s", got, want)
	}
	plain := engine.New(s.graph, s.programs)
	for i, e := range s.journal {
		if _, err := plain.Apply(e); err != nil {
			s.t.Fatalf("replay event %d: %v", i, err)
		}
	}
	if got, _ := plain.Snapshot(); string(got) != want {
		s.t.Fatalf("replay differs\n%s\n%s", got, want)
	}
}
