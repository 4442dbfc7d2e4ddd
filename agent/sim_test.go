package agent_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"tandem/agent"
	"tandem/engine"
	"tandem/fault"
	"tandem/workflow"
)

// sim is a host and a runtime for tests. It leads every journal twice, once through a snapshot and a restore after each
// event, and checks on the way what must hold of every task.
type sim struct {
	t        rapid.TB
	config   agent.Config
	programs engine.Programs
	live     *engine.State
	restored *engine.State
	journal  []engine.Event
	now      int64

	running map[engine.ActivationID]engine.RunNode
	asks    []engine.AskID
	timers  []engine.TimerID
	ended   map[engine.ActivationID]engine.NodeStatus
	finish  *engine.Finish

	names  map[string]bool // every name of a step, since none may come twice
	guard  guard
	refs   int
	runs   int
	called []string // the calls, as "name tool"
}

// guard is what the test itself knows of consent: which arguments were judged how, and what a person agreed to.
type guard struct {
	arguments engine.Ref
	risk      map[engine.Ref]agent.Risk
	tool      string
	agreed    engine.Ref
}

func newSim(t rapid.TB, config agent.Config) *sim {
	t.Helper()
	programs := engine.Programs{agent.Name: agent.Program()}
	s := &sim{
		t: t, config: config, programs: programs, live: engine.New(nil, programs), restored: engine.New(nil, programs), now: 1_000_000,
		running: map[engine.ActivationID]engine.RunNode{}, ended: map[engine.ActivationID]engine.NodeStatus{}, names: map[string]bool{},
		guard: guard{risk: map[engine.Ref]agent.Risk{}},
	}
	raw, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	s.do(engine.ExecutionCreated{Semantics: engine.Semantics, Execution: "task", Program: agent.Name, Config: raw, Input: "question"})
	s.do(engine.ExecutionStarted{})
	return s
}

// do applies a fact to both states and compares what they answer.
func (s *sim) do(fact engine.Fact) {
	s.t.Helper()
	e := engine.Event{Seq: uint64(len(s.journal) + 1), Time: s.now, Fact: fact}
	commands, err := s.live.Apply(e)
	if err != nil {
		s.t.Fatalf("apply %T %+v: %v", fact, fact, err)
	}
	again, err := s.restored.Apply(e)
	if err != nil {
		s.t.Fatalf("apply %T after a restore: %v", fact, err)
	}
	if a, b := dump(s.t, commands), dump(s.t, again); a != b {
		s.t.Fatalf("after %T a restored state wants something else:\n%s\n%s", fact, a, b)
	}
	s.journal = append(s.journal, e)
	s.restore()
	switch f := fact.(type) {
	case engine.NodeCompleted:
		delete(s.running, f.Activation)
		s.ended[f.Activation] = engine.NodeDone
	case engine.NodeFailed:
		delete(s.running, f.Activation)
	case engine.NodeSuspended:
		delete(s.running, f.Activation)
	case engine.ExecutionRecovered:
		clear(s.running)
	case engine.NodeRetried, engine.NodeSkipped:
		s.finish = nil
	}
	for _, c := range commands {
		s.carryOut(c)
	}
	if len(s.running) > 1 {
		s.t.Fatalf("several steps run at once: %v", s.running)
	}
}

func (s *sim) restore() {
	s.t.Helper()
	want, err := s.live.Snapshot()
	if err != nil {
		s.t.Fatal(err)
	}
	got, err := s.restored.Snapshot()
	if err != nil {
		s.t.Fatal(err)
	}
	if string(got) != string(want) {
		s.t.Fatalf("snapshots differ:\n%s\n%s", got, want)
	}
	if s.restored, err = engine.Restore(nil, s.programs, got); err != nil {
		s.t.Fatal(err)
	}
}

func (s *sim) carryOut(c engine.Command) {
	s.t.Helper()
	switch c := c.(type) {
	case engine.RunNode:
		s.running[c.Activation] = c
		if c.Attempt.Attempt == 1 && c.Generation == 0 && c.Cause.Wake == nil {
			s.begins(c)
		}
		if c.Step.Kind == agent.KindCall {
			s.calls(c)
		}
	case engine.CancelNode:
		delete(s.running, c.Activation)
	case engine.EndNode:
		s.ended[c.Activation] = c.Status
		delete(s.running, c.Activation)
	case engine.Ask:
		s.asks = append(s.asks, c.Ask)
	case engine.Withdraw:
		s.asks = slices.DeleteFunc(s.asks, func(id engine.AskID) bool { return id == c.Ask })
	case engine.Sleep:
		s.timers = append(s.timers, c.Timer)
	case engine.Finish:
		s.finish = &c
	}
}

// begins checks what must hold of every step.
func (s *sim) begins(c engine.RunNode) {
	s.t.Helper()
	s.runs++
	if s.names[c.Step.Name] {
		s.t.Fatalf("the name %q is used twice", c.Step.Name)
	}
	s.names[c.Step.Name] = true
	about := s.about(c)
	if about.PlanID == "" || about.Language != s.config.Language {
		s.t.Fatalf("%s: about %+v", c.Step.Name, about)
	}
	values := []agent.Value{about.Choice, about.Arguments, about.Judged, about.Confirmation, about.Missing, about.Given, about.FlowName, about.FlowRisk, about.Outline}
	steps := map[string]bool{}
	for _, e := range about.Log {
		if steps[e.Step] {
			s.t.Fatalf("%s: the log has %q twice: %+v", c.Step.Name, e.Step, about.Log)
		}
		steps[e.Step] = true
		values = append(values, e.Choice, e.Arguments, e.Result)
	}
	for _, v := range values {
		if v < 0 || int(v) > len(c.Step.Values) {
			s.t.Fatalf("%s: value %d of %d", c.Step.Name, v, len(c.Step.Values))
		}
	}
}

// calls checks that a call is made with the arguments that were last derived, and with the consent that exactly these need.
func (s *sim) calls(c engine.RunNode) {
	s.t.Helper()
	about := s.about(c)
	s.called = append(s.called, c.Step.Name+" "+about.Tool)
	args := c.Step.Values[about.Arguments-1]
	if args != s.guard.arguments || c.Input != args {
		s.t.Fatalf("%s is called with %q and gets %q, derived was %q", c.Step.Name, args, c.Input, s.guard.arguments)
	}
	risk, judged := s.guard.risk[args]
	needs := !s.config.Auto || !judged || risk != agent.Low && !slices.Contains(s.config.AutoApprove, risk)
	agreed := s.guard.agreed == args && s.guard.tool == about.Tool
	if needs && !agreed {
		s.t.Fatalf("%s is called with %q of risk %q and nobody agreed to that; agreed: %q", c.Step.Name, args, risk, s.guard.agreed)
	}
	if about.Confirmed != agreed {
		s.t.Fatalf("%s: the runtime is told confirmed %v, a person said %v", c.Step.Name, about.Confirmed, agreed)
	}
}

// learns keeps what the end of a step means for consent.
func (s *sim) learns(c engine.RunNode, ref engine.Ref, reply json.RawMessage) {
	s.t.Helper()
	read := func(v any) {
		if len(reply) > 0 && json.Unmarshal(reply, v) != nil {
			s.t.Logf("the reply %s of %s says nothing", reply, c.Step.Name)
		}
	}
	switch c.Step.Kind {
	case agent.KindParams, agent.KindFill:
		s.guard.arguments = ref
	case agent.KindToolRisk:
		var r agent.RiskReply
		read(&r)
		if r.Risk == agent.Low || r.Risk == agent.Medium || r.Risk == agent.High {
			s.guard.risk[s.guard.arguments] = r.Risk
		}
	case agent.KindConfirm:
		var r agent.ConfirmReply
		read(&r)
		if s.guard.agreed = ""; r.Confirmed {
			s.guard.agreed, s.guard.tool = s.guard.arguments, s.about(c).Tool
		}
	}
}

func (s *sim) about(c engine.RunNode) (about agent.About) {
	s.t.Helper()
	if err := json.Unmarshal(c.Step.Config, &about); err != nil {
		s.t.Fatal(err)
	}
	return about
}

// run is the step that runs, which must be the only one and have this name.
func (s *sim) run(name string) engine.RunNode {
	s.t.Helper()
	c, ok := s.running[engine.ActivationID(name)]
	if !ok {
		s.t.Fatalf("%q does not run; running %v, status %s, %+v", name, s.runningNames(), s.live.Status(), s.finish)
	}
	return c
}

func (s *sim) runningNames() (names []string) {
	for id := range s.running {
		names = append(names, string(id))
	}
	return names
}

// reply completes a step. Its result is named after it, and arguments also by a number.
func (s *sim) reply(name, raw string) {
	s.t.Helper()
	c := s.run(name)
	s.refs++
	ref := engine.Ref(fmt.Sprintf("of %s %d", name, s.refs))
	var reply json.RawMessage
	if raw != "" {
		reply = json.RawMessage(raw)
	}
	s.learns(c, ref, reply)
	if c.Step.Effect == workflow.Once {
		s.do(engine.NodeStarted{Attempt: c.Attempt})
	}
	s.do(engine.NodeCompleted{Attempt: c.Attempt, Outputs: []engine.Output{{Key: workflow.DefaultKey, Ref: ref}}, Reply: reply})
}

func (s *sim) fail(name string, err *fault.Error) {
	s.t.Helper()
	s.do(engine.NodeFailed{Attempt: s.run(name).Attempt, Error: err})
}

// play follows a script, a line a step. After the name of the one step that must run comes how it ends: nothing, a word
// of words, JSON, "!code" or "!code/class" for a failure ("!code/class/final" for one that may not be repeated), "-" when
// an operator skips it.
func (s *sim) play(script string) {
	s.t.Helper()
	for line := range strings.Lines(script) {
		name, how, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch how = strings.TrimSpace(how); {
		case name == "":
		case how == "-":
			s.run(name)
			s.do(engine.NodeSkipped{Activation: engine.ActivationID(name)})
		case strings.HasPrefix(how, "!"):
			parts := strings.Split(how[1:], "/")
			err := fault.New(fault.Code(parts[0]), "it went wrong").Final()
			if len(parts) > 1 {
				err = agent.Failure(err, agent.Class(parts[1]), len(parts) < 3)
			}
			s.fail(name, err)
		default:
			s.reply(name, words(how))
		}
	}
}

// words are short for replies.
func words(how string) string {
	tool := func(effect, name string) string { return fmt.Sprintf(`{"tool":%q,"effect":%q}`, name, effect) }
	switch kind, name, _ := strings.Cut(how, ":"); {
	case how == "low" || how == "medium" || how == "high":
		return `{"risk":"` + how + `","reason":"so it is"}`
	case kind == "lacks":
		return fmt.Sprintf(`{"missing":[%q]}`, name)
	case how == "yes":
		return `{"confirmed":true}`
	case how == "no":
		return `{"confirmed":false}`
	case how == "given":
		return `{"given":true}`
	case how == "nothing":
		return `{"given":false}`
	case how == "param_error":
		return `{"is_param_error":true}`
	case how == "no_param_error":
		return `{"is_param_error":false}`
	case how == "none":
		return `{"none":true}`
	case how == "FINAL" || how == "FIANL":
		return `{"tool":"` + how + `"}`
	case kind == "tool":
		return tool("idempotent", name)
	case kind == "once":
		return tool("once", name)
	case kind == "unknown":
		return fmt.Sprintf(`{"tool":%q,"unknown_tool":true}`, name)
	}
	return how
}

// end is the result of the task.
func (s *sim) end(status engine.Status) agent.End {
	s.t.Helper()
	if got := s.live.Status(); got != status || s.finish == nil || s.finish.Status != status {
		s.t.Fatalf("status %s, want %s; running %v; finish %+v", got, status, s.runningNames(), s.finish)
	}
	var end agent.End
	if len(s.finish.Result) > 0 {
		if err := json.Unmarshal(s.finish.Result, &end); err != nil {
			s.t.Fatal(err)
		}
	}
	return end
}

// lines are a log in short.
func lines(log []agent.Entry) []string {
	var list []string
	for _, e := range log {
		line := e.Step + " " + e.Tool + " " + string(e.Status)
		if e.Rung != "" {
			line += " " + string(e.Rung)
		}
		if e.Class != "" {
			line += " " + string(e.Class)
		}
		list = append(list, line)
	}
	return list
}

// dump writes commands so that they can be compared.
func dump(t rapid.TB, commands []engine.Command) string {
	t.Helper()
	var b strings.Builder
	for _, c := range commands {
		raw, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%T %s\n", c, raw)
	}
	return b.String()
}
