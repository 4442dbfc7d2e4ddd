package engine_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"tandem/engine"
	"tandem/fault"
	"tandem/workflow"
)

// drawOutline makes up a workflow: bodies of a few nodes, joined at random, nested up to three deep.
func drawOutline(t *rapid.T) *outline {
	g := &outline{}
	var triggers []string
	if rapid.IntRange(0, 3).Draw(t, "has triggers") == 3 {
		for range rapid.IntRange(1, 2).Draw(t, "triggers") {
			id := fmt.Sprintf("trigger%d", len(g.nodes))
			triggers = append(triggers, id)
			g.nodes = append(g.nodes, outlineNode{id: id, owner: -1})
		}
	}
	drawBody(t, g, -1, 0, rapid.SampledFrom([]int{3, 5, 8, 14}).Draw(t, "size"))
	if rapid.IntRange(0, 9).Draw(t, "has limit") == 9 {
		g.timeoutMS = 60_000
	}
	top := g.members(-1)
	switch {
	case rapid.IntRange(0, 9).Draw(t, "starts within") == 9:
		g.startFrom = g.nodes[rapid.SampledFrom(top).Draw(t, "start")].id
	case len(triggers) > 0:
		g.trigger = rapid.SampledFrom(triggers).Draw(t, "trigger")
	}
	return g
}

func drawBody(t *rapid.T, g *outline, owner, depth, size int) {
	for range rapid.IntRange(1, 5).Draw(t, "nodes") {
		if len(g.nodes) >= size {
			break
		}
		n := len(g.nodes)
		node := outlineNode{id: fmt.Sprintf("n%d", n), owner: owner, plan: drawPlan(t)}
		if depth < 3 {
			node.scope = rapid.SampledFrom([]string{"", "", "", "", "loop", "timeout"}).Draw(t, "scope")
		}
		if node.scope != "" {
			node.id = fmt.Sprintf("%s%d", node.scope, n)
			node.plan.Effect, node.plan.Disabled, node.plan.SkipDisabled = "", false, false
		}
		earlier := g.members(owner)
		g.nodes = append(g.nodes, node)
		joined := false
		for range rapid.SampledFrom([]int{0, 1, 1, 1, 2, 2, 3}).Draw(t, "inputs") {
			if len(earlier) == 0 {
				break
			}
			from := rapid.SampledFrom(earlier).Draw(t, "from")
			drawEdge(t, g, from, n)
			joined = true
		}
		if owner >= 0 && (!joined || rapid.IntRange(0, 5).Draw(t, "entry too") == 5) {
			g.edges = append(g.edges, outlineEdge{from: owner, to: n, key: entryKey(g.nodes[owner].scope), entry: true, converts: rapid.IntRange(0, 9).Draw(t, "converts") == 9})
		}
		if owner >= 0 && rapid.IntRange(0, 2).Draw(t, "back") == 2 {
			drawEdge(t, g, n, owner)
			g.edges[len(g.edges)-1].back = true
		}
		if node.scope != "" {
			drawBody(t, g, n, depth+1, size)
			if len(g.members(n)) == 0 {
				g.nodes[n].scope, g.nodes[n].id = "", fmt.Sprintf("n%d", n)
			}
		}
	}
}

func entryKey(scope string) string {
	if scope == "loop" {
		return "iteration"
	}
	return "body"
}

// keysOf are the keys a node may produce.
func (g *outline) keysOf(n int) []string {
	keys := []string{"result", "a", "b"}
	switch g.nodes[n].scope {
	case "loop":
		keys = []string{"completed"}
	case "timeout":
		keys = []string{"result", "timeout"}
	}
	if g.nodes[n].plan.OnError == workflow.OnErrorContinue {
		keys = append(keys, workflow.ErrorKey)
	}
	return keys
}

func drawEdge(t *rapid.T, g *outline, from, to int) {
	keys := g.keysOf(from)
	key := keys[min(len(keys)-1, rapid.SampledFrom([]int{0, 0, 0, 1, 2, 3}).Draw(t, "key"))]
	g.edges = append(g.edges, outlineEdge{from: from, to: to, key: key, converts: rapid.IntRange(0, 9).Draw(t, "converts") == 9})
}

func drawPlan(t *rapid.T) planConfig {
	odds := func(name string, n int) bool { return rapid.IntRange(0, n-1).Draw(t, name) == n-1 }
	p := planConfig{MaxRetries: rapid.IntRange(0, 2).Draw(t, "max retries")}
	p.Effect = rapid.SampledFrom([]workflow.Effect{"", workflow.Idempotent, workflow.Once}).Draw(t, "effect")
	p.OnError = rapid.SampledFrom([]workflow.OnError{"", "", "", workflow.OnErrorContinue, workflow.OnErrorDefault}).Draw(t, "on error")
	p.OnUnknown = rapid.SampledFrom([]workflow.OnUnknown{"", "", workflow.OnUnknownRetry, workflow.OnUnknownFail}).Draw(t, "on unknown")
	if odds("first", 4) {
		p.Join = workflow.Join{First: true, CancelLosers: odds("cancel losers", 2)}
	} else if odds("timed", 8) {
		p.Join.TimeoutMS = 5000
	}
	p.Disabled = odds("disabled", 15)
	p.SkipDisabled = p.Disabled && odds("skip disabled", 2)
	return p
}

// definition writes the outline as its author would have.
func (g *outline) definition() *workflow.Definition {
	def := &workflow.Definition{Metadata: workflow.Metadata{Name: "drawn", Settings: workflow.Settings{TimeoutSeconds: float64(g.timeoutMS) / 1000}}}
	for _, n := range g.nodes {
		node := workflow.Node{ID: n.id, Name: n.id, Type: "TEST", Subtype: "STEP"}
		switch {
		case n.scope != "":
			node.Subtype = strings.ToUpper(n.scope)
		case strings.HasPrefix(n.id, "trigger"):
			node.Type, node.Subtype = "TRIGGER", "TEST"
		}
		node.Configurations, _ = json.Marshal(n.plan)
		def.Nodes = append(def.Nodes, node)
	}
	for i, e := range g.edges {
		c := workflow.Connection{ID: fmt.Sprintf("c%d", i), FromNode: g.nodes[e.from].id, ToNode: g.nodes[e.to].id, OutputKey: e.key}
		if e.converts {
			c.ConversionFunction = "value"
		}
		def.Connections = append(def.Connections, c)
	}
	return def
}

// String shows the outline in the form that draw reads.
func (g *outline) String() string {
	var b strings.Builder
	for _, n := range g.nodes {
		plan, _ := json.Marshal(n.plan)
		fmt.Fprintf(&b, "%s %s\n", n.id, plan)
	}
	for _, e := range g.edges {
		arrow := "->"
		if e.converts {
			arrow = "~>"
		}
		fmt.Fprintf(&b, "%s:%s %s %s\n", g.nodes[e.from].id, e.key, arrow, g.nodes[e.to].id)
	}
	fmt.Fprintf(&b, "trigger %q start_from %q timeout %d ms", g.trigger, g.startFrom, g.timeoutMS)
	return b.String()
}

func (g *outline) compile(t rapid.TB) *workflow.Graph {
	compiled, problems := workflow.Compile(g.definition(), testKinds{})
	for _, p := range problems {
		if p.Severity == workflow.SeverityError {
			t.Fatalf("made-up workflow does not compile: %v\n%s", p, g)
		}
	}
	return compiled
}

// host carries commands out by writing them in its books. It is suspicious: a command that makes no sense fails the
// test.
type host struct {
	t       rapid.TB
	g       *outline
	graph   *workflow.Graph
	state   *engine.State
	model   *model // nil when only the books are of interest
	journal []engine.Event
	seq     uint64
	// together puts the next fact under the number of the one before, as if both had been appended at once.
	together bool
	now      int64
	// snapshots are the states after each event of the journal.
	snapshots []string

	running  map[engine.ActivationID]engine.RunNode
	started  map[engine.ActivationID]bool // of what runs: recorded as begun
	stopped  map[engine.ActivationID]bool // of what has started: told to stop since the execution was cancelled
	timers   map[engine.TimerID]engine.Sleep
	asks     map[engine.AskID]engine.Ask
	children map[string]engine.ActivationID
	leaving  map[string]bool // children told to cancel
	ended    map[engine.ActivationID]engine.NodeStatus
	closed   []string
	finish   *engine.Finish

	past       []engine.Attempt               // every attempt ever dispatched
	dispatched map[engine.Attempt]bool        // without those that have waited since
	begun      map[engine.ActivationID]uint32 // once activations that had their effect, with the generation
	waited     map[engine.ActivationID]bool
	asOf       map[engine.Attempt]uint64 // by activation and generation
	done       map[engine.Attempt]bool   // what had completed before a fork, by activation and generation
}

func newHost(t rapid.TB, g *outline) *host {
	compiled := g.compile(t)
	return &host{
		t: t, g: g, graph: compiled, state: engine.New(compiled, nil), now: 1_000_000,
		running: map[engine.ActivationID]engine.RunNode{}, started: map[engine.ActivationID]bool{}, stopped: map[engine.ActivationID]bool{},
		timers: map[engine.TimerID]engine.Sleep{}, asks: map[engine.AskID]engine.Ask{},
		children: map[string]engine.ActivationID{}, leaving: map[string]bool{},
		ended: map[engine.ActivationID]engine.NodeStatus{}, dispatched: map[engine.Attempt]bool{},
		begun: map[engine.ActivationID]uint32{}, waited: map[engine.ActivationID]bool{}, asOf: map[engine.Attempt]uint64{},
	}
}

func (h *host) start() {
	h.do(engine.ExecutionCreated{
		Semantics: engine.Semantics, Execution: "exec", Revision: h.graph.Hash, Trigger: h.g.trigger, StartFrom: h.g.startFrom,
	})
	h.do(engine.ExecutionStarted{})
}

// do applies a fact that must be accepted, carries out what follows, and holds the outcome against the model.
func (h *host) do(fact engine.Fact) {
	h.t.Helper()
	var timer timerName
	var about string
	switch f := fact.(type) {
	case engine.TimerFired:
		s := h.timers[f.Timer]
		timer = timerName{s.Purpose, s.Activation}
	case engine.AskAnswered:
		about = askName(h.asks[f.Ask])
	case engine.ChildFinished:
		about = string(h.children[f.Child])
	}
	if !h.together {
		h.seq++
	}
	h.together = false
	e := engine.Event{Seq: h.seq, Time: h.now, Fact: fact}
	commands, err := h.apply(e)
	if err != nil {
		h.failf("apply %T %+v: %v", fact, fact, err)
	}
	h.journal = append(h.journal, e)
	h.snapshots = append(h.snapshots, h.snapshot())
	h.note(fact)
	for _, c := range slices.Clone(commands) {
		h.carryOut(c, fact)
	}
	if h.model != nil {
		h.model.apply(h.now, fact, timer, about)
		h.compare()
	}
}

// apply tells of a panic what is needed to see it again.
func (h *host) apply(e engine.Event) ([]engine.Command, error) {
	defer func() {
		if p := recover(); p != nil {
			h.failf("apply %T %+v: panic: %v\n%s", e.Fact, e.Fact, p, debug.Stack())
		}
	}()
	return h.state.Apply(e)
}

// refuse applies a fact that must be refused as a conflict and must change nothing.
func (h *host) refuse(fact engine.Fact) {
	h.t.Helper()
	before := h.snapshot()
	_, err := h.apply(engine.Event{Seq: h.seq + 1, Time: h.now, Fact: fact})
	if code := fault.CodeOf(err); err == nil || code != fault.Conflict {
		h.failf("%T %+v: error %v, want a conflict", fact, fact, err)
	}
	if after := h.snapshot(); after != before {
		h.failf("a refused %T %+v changed the state\nfrom %s\nto   %s", fact, fact, before, after)
	}
}

// askName is what the model calls a question: shared ones go by their key, others by who asks.
func askName(a engine.Ask) string {
	if a.Purpose == sharedPurpose {
		return "key:" + sharedKey
	}
	return string(a.Activation)
}

// The one shared question of these tests.
const sharedPurpose, sharedKey = "budget", "day"

// note brings the books up to date with a fact the host itself reported.
func (h *host) note(fact engine.Fact) {
	stop := func(at engine.Attempt) {
		delete(h.running, at.Activation)
		delete(h.started, at.Activation)
		delete(h.stopped, at.Activation)
	}
	switch f := fact.(type) {
	case engine.NodeStarted:
		h.started[f.Activation] = true
		h.begun[f.Activation] = f.Generation
		delete(h.waited, f.Activation)
	case engine.NodeCompleted:
		h.ended[f.Activation] = engine.NodeDone
		if h.running[f.Activation].Cause.Kind == engine.CauseError {
			h.ended[f.Activation] = engine.NodeFailure
		}
		stop(f.Attempt)
	case engine.NodeFailed:
		if inquired := h.running[f.Activation].Cause.Kind == engine.CauseInquire; !f.Unknown && !inquired || f.NotDone {
			delete(h.begun, f.Activation) // a known outcome: it was not done
		}
		stop(f.Attempt)
	case engine.NodeSuspended:
		delete(h.dispatched, f.Attempt)
		h.waited[f.Activation] = true
		stop(f.Attempt)
	case engine.ScopeOpened:
		stop(f.Attempt)
	case engine.ScopeAdvanced:
		stop(f.Attempt)
	case engine.TimerFired:
		delete(h.timers, f.Timer)
	case engine.AskAnswered:
		if a := h.asks[f.Ask]; f.Choice == engine.ChoiceNotDone && f.Outcome == engine.AskDone && a.Purpose == engine.PurposeOutcomeUnknown {
			delete(h.begun, a.Activation)
		}
		delete(h.asks, f.Ask)
	case engine.ChildFinished:
		delete(h.children, f.Child)
		delete(h.leaving, f.Child)
	case engine.NodeNotBegun:
		if a, ok := h.state.Activation(f.Activation); !ok || a.Status != engine.NodeRunning {
			delete(h.running, f.Activation) // what it is part of was ending
		}
		delete(h.started, f.Activation)
		delete(h.stopped, f.Activation)
		delete(h.begun, f.Activation)
	case engine.ExecutionRecovered:
		if len(f.Lost) == 0 {
			clear(h.running)
			clear(h.started)
			clear(h.stopped)
		}
		for _, at := range f.Lost {
			delete(h.running, at.Activation)
			delete(h.started, at.Activation)
			delete(h.stopped, at.Activation)
		}
	case engine.NodeRetried:
		h.revived(f.Activation)
	case engine.NodeSkipped:
		h.revived(f.Activation)
	}
}

// revived notes that an operator has decided about an activation, and all in it.
func (h *host) revived(id engine.ActivationID) {
	h.finish = nil
	maps.DeleteFunc(h.begun, func(other engine.ActivationID, _ uint32) bool {
		return other == id || strings.HasPrefix(string(other), string(id)+"[")
	})
}

func (h *host) carryOut(c engine.Command, fact engine.Fact) {
	h.t.Helper()
	if h.finish != nil {
		h.failf("%T %+v after Finish", c, c)
	}
	switch c := c.(type) {
	case engine.RunNode:
		h.dispatch(c, fact)
	case engine.CancelNode:
		if _, recovered := fact.(engine.ExecutionRecovered); h.running[c.Activation].Attempt != c.Attempt && !recovered {
			h.failf("cancel of %+v, which does not run", c.Attempt)
		}
		if _, slow := fact.(engine.AttemptTimedOut); !h.started[c.Activation] {
			delete(h.running, c.Activation)
		} else if !slow {
			h.stopped[c.Activation] = true
		}
	case engine.EndNode:
		h.ended[c.Activation] = c.Status
	case engine.Sleep:
		h.timers[c.Timer] = c
	case engine.CancelTimer:
		delete(h.timers, c.Timer)
	case engine.Ask:
		h.asks[c.Ask] = c
	case engine.Withdraw:
		if _, ok := h.asks[c.Ask]; !ok {
			h.failf("withdraw of %q, which is not open", c.Ask)
		}
		delete(h.asks, c.Ask)
	case engine.StartChild:
		if !c.Spec.Detached {
			h.children[c.Child] = c.Activation
		}
	case engine.TellChild:
		if c.Action == engine.ChildCancel {
			h.leaving[c.Child] = true
		}
	case engine.CloseScope:
		how := " closed"
		if c.Failed {
			how = " failed"
		}
		h.closed = append(h.closed, c.Scope+how)
	case engine.Finish:
		if c.Error != nil && c.Error.Retryable && strings.Contains(string(c.Node), "/") {
			h.failf("the error of %q crossed the border of its scope and still says that it is retryable", c.Node)
		}
		h.finish = &c
	}
}

// dispatch notes a run, and that it is one that may be: never two at once, never the same attempt twice, never again
// what had its effect and was not said to be undone.
func (h *host) dispatch(c engine.RunNode, fact engine.Fact) {
	if r, ok := h.running[c.Activation]; ok {
		h.failf("%+v runs while %+v does", c.Attempt, r.Attempt)
	}
	if h.dispatched[c.Attempt] {
		h.failf("%+v is dispatched a second time", c.Attempt)
	}
	if h.done[engine.Attempt{Activation: c.Activation, Generation: c.Generation}] {
		h.failf("%+v had completed before the fork", c.Attempt)
	}
	h.dispatched[c.Attempt] = true
	h.past = append(h.past, c.Attempt)
	life := engine.Attempt{Activation: c.Activation, Generation: c.Generation}
	if as, ok := h.asOf[life]; ok && as != c.AsOf {
		h.failf("%+v reads data as of %d, earlier as of %d", c.Attempt, c.AsOf, as)
	}
	h.asOf[life] = c.AsOf
	if _, begun := h.begun[c.Activation]; begun && c.Cause.Kind == engine.CauseRun && !h.waited[c.Activation] &&
		c.Node >= 0 && h.graph.Nodes[c.Node].Plan.OnUnknown != workflow.OnUnknownRetry {
		h.failf("%+v is dispatched again after %T although an earlier attempt had begun and nobody decided about it", c.Attempt, fact)
	}
	h.running[c.Activation] = c
}

func (h *host) snapshot() string {
	h.t.Helper()
	b, err := h.state.Snapshot()
	if err != nil {
		h.failf("snapshot: %v", err)
	}
	return string(b)
}

// failf fails the test with all that is needed to do it again by hand.
func (h *host) failf(format string, args ...any) {
	h.t.Helper()
	var b strings.Builder
	for _, e := range h.journal {
		stored, _ := json.Marshal(e)
		fmt.Fprintf(&b, "%s\n", stored)
	}
	h.t.Fatalf("%s\ngraph:\n%s\njournal:\n%s", fmt.Sprintf(format, args...), h.g, b.String())
}

// compare holds what the engine says, and what the host was told to do, against the model.
func (h *host) compare() {
	h.t.Helper()
	m := h.model
	if got, want := h.state.Status(), m.status(); got != want {
		h.failf("status %s, want %s", got, want)
	}
	wantRuns, wantAsks, wantChildren := map[engine.ActivationID]engine.CauseKind{}, map[string]bool{}, map[engine.ActivationID]bool{}
	acts := m.acts()
	for _, a := range acts {
		got, ok := h.state.Activation(a.id)
		if want := m.actStatus(a); !ok || got.Status != want {
			h.failf("activation %q is %q, want %q", a.id, got.Status, want)
		}
		if got.Retries != uint32(a.retries) && a.open() {
			h.failf("activation %q has %d retries, want %d", a.id, got.Retries, a.retries)
		}
		if a.phase == "running" {
			wantRuns[a.id] = a.cause
			h.compareRun(a)
		}
		if w := a.wait; w != nil && !w.unsent {
			if w.ask != "" {
				wantAsks[w.ask] = true
			}
			if w.child {
				wantChildren[a.id] = true
			}
		}
	}
	if all := h.state.Activations(); len(all) != len(acts) {
		h.failf("%d activations in the state, want %d: %+v", len(all), len(acts), all)
	}
	for _, sc := range m.scopes() {
		owner := -1
		if sc.owner != nil {
			owner = sc.owner.node
		}
		for _, n := range m.g.members(owner) {
			want, wantOK := m.nodeStatus(sc, n)
			if got, ok := h.state.NodeStatus(m.idOf(sc, n)); ok != wantOK || ok && got != want {
				h.failf("node %q is %q (%v), want %q (%v)", m.idOf(sc, n), got, ok, want, wantOK)
			}
		}
	}
	gotRuns := map[engine.ActivationID]engine.CauseKind{}
	for id, r := range h.running {
		gotRuns[id] = r.Cause.Kind
	}
	same(h, "running", gotRuns, wantRuns)
	h.compareTimers()
	gotAsks, gotChildren := map[string]bool{}, map[engine.ActivationID]bool{}
	for _, a := range h.asks {
		gotAsks[askName(a)] = true
	}
	same(h, "open questions", gotAsks, wantAsks)
	for child, id := range h.children {
		if a := m.find(id); !h.leaving[child] || a != nil && a.canceling && a.wait != nil {
			gotChildren[id] = true
		}
	}
	same(h, "awaited children", gotChildren, wantChildren)
	same(h, "ended nodes", h.ended, m.ended)
	if got, want := slices.Sorted(slices.Values(h.closed)), slices.Sorted(slices.Values(m.closed)); !slices.Equal(got, want) {
		h.failf("closed scopes %v, want %v", got, want)
	}
	if (h.finish != nil) != (m.final != "") || h.finish != nil && (h.finish.Status != m.final || h.finish.Node != m.blamed) {
		h.failf("finish %+v, want %q because of %q", h.finish, m.final, m.blamed)
	}
}

func same[K comparable, V comparable](h *host, what string, got, want map[K]V) {
	h.t.Helper()
	if !maps.Equal(got, want) {
		h.failf("%s: %v\nwant %v", what, got, want)
	}
}

// compareRun looks at what a run is told.
func (h *host) compareRun(a *modelAct) {
	h.t.Helper()
	c := h.running[a.id]
	var got []int
	for _, in := range c.Inputs {
		got = append(got, in.Edge)
	}
	if !slices.Equal(got, a.inputs) || c.TimedOut != a.timedOut {
		h.failf("%q gets connections %v (timed out: %v), want %v (%v)", a.id, got, c.TimedOut, a.inputs, a.timedOut)
	}
	if last := a.retries >= h.model.maxRetries(a); c.LastTry != last {
		h.failf("%q: last try %v, want %v", a.id, c.LastTry, last)
	}
	if f := a.frame; a.cause == engine.CauseClose {
		more := f.spec.Count < 0 || f.next < f.spec.Count
		want := engine.Closed{Iterations: f.next, Succeeded: f.good, Failed: f.bad, Broken: f.stopped && more && !f.late, Deadline: f.late}
		if got := *c.Cause.Closed; got.Iterations != want.Iterations || got.Succeeded != want.Succeeded || got.Failed != want.Failed ||
			got.Broken != want.Broken || got.Deadline != want.Deadline {
			h.failf("%q closes with %+v, want %+v", a.id, got, want)
		}
	}
}

func (h *host) compareTimers() {
	h.t.Helper()
	want := h.model.timers()
	if len(h.timers) != len(want) {
		h.failf("timers %v, want %v", h.timers, want)
	}
	for _, s := range h.timers {
		if w, ok := want[timerName{s.Purpose, s.Activation}]; !ok || s.Until < w[0] || s.Until > w[1] {
			h.failf("timer %+v; want %v", s, want)
		}
	}
}
