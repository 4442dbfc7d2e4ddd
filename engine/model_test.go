package engine_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tandem/engine"
)

// The model is the engine told as plainly as can be: no counters, no indexes, no snapshots. Whatever it wants to know it
// finds by looking at everything. It is told the same facts as the engine and must come to the same end.

// outline is a workflow as it was made up, before it is compiled: every node knows the scope node in whose body it
// stands, because it was put there.
type outline struct {
	nodes     []outlineNode
	edges     []outlineEdge
	trigger   string
	startFrom string
	timeoutMS int64
}

type outlineNode struct {
	id    string
	owner int    // the scope node around it, -1 at the top level
	scope string // "loop" or "timeout" for a scope node
	plan  planConfig
}

type outlineEdge struct {
	from, to              int
	key                   string
	entry, back, converts bool
}

func (g *outline) members(owner int) []int {
	var list []int
	for n := range g.nodes {
		if g.nodes[n].owner == owner {
			list = append(list, n)
		}
	}
	return list
}

// incoming lists the edges a node waits for, outgoing those its end settles.
func (g *outline) incoming(n int) []int {
	return g.where(func(e outlineEdge) bool { return e.to == n && !e.back })
}
func (g *outline) outgoing(n int) []int {
	return g.where(func(e outlineEdge) bool { return e.from == n && !e.back && !e.entry })
}
func (g *outline) where(keep func(outlineEdge) bool) []int {
	var list []int
	for i, e := range g.edges {
		if keep(e) {
			list = append(list, i)
		}
	}
	return list
}

// leadsOnlyInto says that every way on from a node goes through the node join.
func (g *outline) leadsOnlyInto(n, join int) bool {
	ways := 0
	for _, e := range g.edges {
		if e.from != n || e.entry {
			continue
		}
		if e.back || e.to != join && !g.leadsOnlyInto(e.to, join) {
			return false
		}
		ways++
	}
	return ways > 0
}

type (
	model struct {
		g        *outline
		now      int64
		started  bool
		paused   bool
		final    engine.Status
		blamed   engine.ActivationID // the activation that Finish names
		root     *modelScope
		made     int // counts activations and waits
		failures []engine.ActivationID
		early    []engine.SignalReceived
		deferred []timerName
		limit    int64 // when the execution's time is up, zero for never
		ended    map[engine.ActivationID]engine.NodeStatus
		closed   []string
	}

	modelScope struct {
		path   string
		owner  *modelAct // nil at the top level
		index  int64
		acts   map[int]*modelAct
		fates  map[int]engine.NodeStatus // how nodes ended that are done with
		apart  map[int]bool              // cannot be reached from the start
		fired  map[int]bool              // was ready at some time
		edges  map[int]edgeFate
		joins  map[int]int64 // when timed joins go on
		torn   bool
		ending string
	}

	modelAct struct {
		scope     *modelScope
		node      int
		id        engine.ActivationID
		made      int
		gen       uint32
		retries   int
		crashes   int
		blamed    int
		phase     string
		cause     engine.CauseKind
		inputs    []int
		timedOut  bool // its join did not wait for all
		started   bool // its once attempt has begun
		inquires  bool // the service can be asked what became of it
		inquiries int
		effected  bool // a once attempt has begun and nobody has said that it had no effect
		retryFrom int64
		retryTo   int64
		wait      *modelWait
		byChild   bool // a child that failed has woken it
		canceling bool
		opened    bool
		frame     *modelFrame
	}

	modelWait struct {
		made     int
		until    int64
		signal   string
		ask      string
		unknown  bool
		child    bool
		detached bool
		unsent   bool
	}

	modelFrame struct {
		spec    engine.ScopeOpened
		next    int64
		good    int64
		bad     int64
		stopped bool
		turning bool
		empty   bool // nothing ran in the iteration opened last
		closing bool
		late    bool // its deadline has passed
		until   int64
		ending  string
		open    map[int64]*modelScope
	}

	edgeFate  byte
	timerName struct {
		purpose engine.TimerPurpose
		about   engine.ActivationID
	}
)

const (
	live   edgeFate = 'l'
	dead   edgeFate = 'd'
	broken edgeFate = 'f' // its conversion raised
)

func newModel(g *outline) *model {
	return &model{g: g, ended: map[engine.ActivationID]engine.NodeStatus{}}
}

func (a *modelAct) open() bool {
	switch a.phase {
	case "held", "running", "retrying", "waiting", "scope", "asking":
		return true
	}
	return false
}

func (m *model) plan(a *modelAct) *planConfig { return &m.g.nodes[a.node].plan }

func (m *model) maxRetries(a *modelAct) int {
	if m.g.nodes[a.node].scope != "" {
		return 0
	}
	return m.plan(a).MaxRetries
}

func (m *model) newScope(path string, owner *modelAct, index int64) *modelScope {
	return &modelScope{
		path: path, owner: owner, index: index, acts: map[int]*modelAct{}, fates: map[int]engine.NodeStatus{},
		apart: map[int]bool{}, fired: map[int]bool{}, edges: map[int]edgeFate{}, joins: map[int]int64{},
	}
}

// scopes lists every scope in the state, outer ones first.
func (m *model) scopes() []*modelScope {
	var list []*modelScope
	var visit func(sc *modelScope)
	visit = func(sc *modelScope) {
		list = append(list, sc)
		for _, a := range sc.sorted() {
			if a.frame != nil {
				for _, inner := range a.frame.sorted() {
					visit(inner)
				}
			}
		}
	}
	if m.root != nil {
		visit(m.root)
	}
	return list
}

func (sc *modelScope) sorted() []*modelAct {
	return slices.SortedFunc(maps.Values(sc.acts), func(a, b *modelAct) int { return cmp.Compare(a.made, b.made) })
}

func (f *modelFrame) sorted() []*modelScope {
	return slices.SortedFunc(maps.Values(f.open), func(a, b *modelScope) int { return cmp.Compare(a.index, b.index) })
}

// quiet says that nothing in a scope is open: no activation, and no join that will go on when its time is up.
func (sc *modelScope) quiet() bool {
	return (sc.torn || len(sc.joins) == 0) && !slices.ContainsFunc(sc.sorted(), (*modelAct).open)
}

func (f *modelFrame) quiet() bool {
	return !slices.ContainsFunc(f.sorted(), func(sc *modelScope) bool { return !sc.quiet() })
}

// acts lists every activation that is open, failed or canceled, in the order they came to be.
func (m *model) acts() []*modelAct {
	var list []*modelAct
	for _, sc := range m.scopes() {
		list = append(list, sc.sorted()...)
	}
	slices.SortFunc(list, func(a, b *modelAct) int { return cmp.Compare(a.made, b.made) })
	return list
}

func (m *model) find(id engine.ActivationID) *modelAct {
	for _, a := range m.acts() {
		if a.id == id {
			return a
		}
	}
	return nil
}

func (m *model) count() int {
	m.made++
	return m.made
}

// status is the execution's, by the order of precedence.
func (m *model) status() engine.Status {
	if m.final != "" {
		return m.final
	}
	if !m.started {
		return engine.StatusPending
	}
	if m.paused {
		return engine.StatusPaused
	}
	status := engine.StatusWaiting
	for _, a := range m.acts() {
		switch a.phase {
		case "held", "running":
			return engine.StatusRunning
		case "asking":
			status = engine.StatusWaitingForHuman
		}
	}
	return status
}

// nodeStatus is what a node of an open scope shows.
func (m *model) nodeStatus(sc *modelScope, n int) (engine.NodeStatus, bool) {
	if a := sc.acts[n]; a != nil {
		return m.actStatus(a), true
	}
	if fate, ok := sc.fates[n]; ok {
		return fate, true
	}
	return engine.NodePending, !sc.apart[n]
}

func (m *model) actStatus(a *modelAct) engine.NodeStatus {
	switch a.phase {
	case "held", "parked":
		return engine.NodePending
	case "running", "waiting", "scope":
		return engine.NodeRunning
	case "retrying":
		return engine.NodeRetrying
	case "asking":
		return engine.NodeWaitingInput
	case "failed":
		return engine.NodeFailure
	}
	if a.frame != nil && m.failedIn(string(a.id)+"[") { // stopped by what failed inside it
		return engine.NodeFailure
	}
	return engine.NodeCanceled
}

// timers lists what is armed: when each fires, from and to, since backoffs jitter.
func (m *model) timers() map[timerName][2]int64 {
	armed := map[timerName][2]int64{}
	if m.final != "" {
		return armed
	}
	put := func(p engine.TimerPurpose, about engine.ActivationID, from, to int64) {
		if name := (timerName{p, about}); !slices.Contains(m.deferred, name) {
			armed[name] = [2]int64{from, to}
		}
	}
	if m.limit > 0 {
		put(engine.TimerExecution, "", m.limit, m.limit)
	}
	for _, sc := range m.scopes() {
		for n, at := range sc.joins {
			if !sc.torn {
				put(engine.TimerJoin, m.idOf(sc, n), at, at)
			}
		}
		for _, a := range sc.acts {
			switch {
			case a.phase == "retrying":
				put(engine.TimerRetry, a.id, a.retryFrom, a.retryTo)
			case a.wait != nil && a.wait.until > 0:
				put(engine.TimerWait, a.id, a.wait.until, a.wait.until)
			}
			if a.frame != nil && a.frame.until > 0 && !sc.torn {
				put(engine.TimerDeadline, a.id, a.frame.until, a.frame.until)
			}
		}
	}
	return armed
}

// failedIn says that a failure that nothing has handled lies below a path.
func (m *model) failedIn(path string) bool {
	return slices.ContainsFunc(m.failures, func(id engine.ActivationID) bool { return strings.HasPrefix(string(id), path) })
}

func (m *model) idOf(sc *modelScope, n int) engine.ActivationID {
	if sc.path == "" {
		return engine.ActivationID(m.g.nodes[n].id)
	}
	return engine.ActivationID(sc.path + "/" + m.g.nodes[n].id)
}

// The flow inside one scope.

func (m *model) startRoot() {
	sc := m.root
	var starts []int
	for _, n := range m.g.members(-1) {
		id := m.g.nodes[n].id
		if named := m.g.trigger + m.g.startFrom; named == id || named == "" && len(m.g.incoming(n)) == 0 {
			starts = append(starts, n)
		}
	}
	reached := map[int]bool{}
	var reach func(n int)
	reach = func(n int) {
		reached[n] = true
		for _, e := range m.g.outgoing(n) {
			reach(m.g.edges[e].to)
		}
	}
	for _, n := range starts {
		reach(n)
	}
	for _, n := range m.g.members(-1) {
		if !reached[n] {
			sc.apart[n] = true
			for _, e := range m.g.outgoing(n) {
				sc.edges[e] = dead
			}
		}
	}
	var queue []int
	for _, n := range starts {
		queue = append(queue, m.ready(sc, n)...)
	}
	m.look(sc, queue)
}

func (m *model) startBody(sc *modelScope, verdicts []engine.Verdict) {
	var queue []int
	for _, e := range m.g.where(func(e outlineEdge) bool { return e.from == sc.owner.node && e.entry }) {
		sc.edges[e] = live
		for _, v := range verdicts {
			if v.Edge == e {
				sc.edges[e] = fateOf(v)
			}
		}
		queue = append(queue, m.g.edges[e].to)
	}
	m.look(sc, queue)
}

func fateOf(v engine.Verdict) edgeFate {
	switch {
	case v.Error != nil:
		return broken
	case v.Live:
		return live
	}
	return dead
}

// look decides about nodes whose connections have moved, and about those behind them.
func (m *model) look(sc *modelScope, queue []int) {
	for ; len(queue) > 0; queue = queue[1:] {
		n := queue[0]
		if sc.acts[n] != nil || sc.fates[n] != "" || sc.apart[n] {
			continue
		}
		settled, arrived := true, false
		for _, e := range m.g.incoming(n) {
			fate, ok := sc.edges[e]
			settled = settled && ok
			arrived = arrived || fate == live || fate == broken
		}
		join := m.g.nodes[n].plan.Join
		switch {
		case arrived && (settled || join.First):
			queue = append(queue, m.ready(sc, n)...)
		case settled:
			queue = append(queue, m.skip(sc, n)...)
		case arrived && join.TimeoutMS > 0 && sc.joins[n] == 0:
			sc.joins[n] = m.now + join.TimeoutMS
		}
	}
}

// ready begins a node with what has arrived. It returns the nodes to look at next.
func (m *model) ready(sc *modelScope, n int) []int {
	delete(sc.joins, n)
	sc.fired[n] = true
	plan := m.g.nodes[n].plan
	if plan.Disabled && plan.SkipDisabled {
		return m.skip(sc, n)
	}
	a := &modelAct{scope: sc, node: n, id: m.idOf(sc, n), made: m.count(), cause: engine.CauseRun}
	sc.acts[n] = a
	raised := false
	for _, e := range m.g.incoming(n) {
		switch sc.edges[e] {
		default:
			a.timedOut = a.timedOut || sc.edges[e] == 0 && !plan.Join.First && !m.isStart(sc, n)
		case live:
			if !plan.Join.First || len(a.inputs) == 0 {
				a.inputs = append(a.inputs, e)
			}
		case broken:
			raised = true
			a.inputs = append(a.inputs, e)
		}
	}
	var next []int
	if raised {
		a.phase = "held"
		next = m.fail(a, nil)
	} else {
		m.dispatch(a)
	}
	if plan.Join.First && plan.Join.CancelLosers {
		for _, loser := range m.g.members(m.g.nodes[n].owner) {
			if !m.g.leadsOnlyInto(loser, n) || sc.apart[loser] {
				continue
			}
			if a := sc.acts[loser]; a != nil {
				next = append(next, m.cancelOne(a)...)
			} else if sc.fates[loser] == "" {
				next = append(next, m.skip(sc, loser)...)
			}
		}
	}
	return next
}

// isStart says that the execution begins at a node, whatever its inputs.
func (m *model) isStart(sc *modelScope, n int) bool {
	return sc.owner == nil && m.g.nodes[n].id == m.g.startFrom
}

func (m *model) skip(sc *modelScope, n int) []int {
	delete(sc.joins, n)
	sc.fates[n] = engine.NodeSkip
	m.ended[m.idOf(sc, n)] = engine.NodeSkip
	m.skipBody(m.idOf(sc, n), n)
	return m.settleOut(sc, n, nil, nil)
}

// skipBody records the nodes of a body that never ran.
func (m *model) skipBody(owner engine.ActivationID, n int) {
	for _, inner := range m.g.members(n) {
		id := engine.ActivationID(fmt.Sprintf("%s[]/%s", owner, m.g.nodes[inner].id))
		m.ended[id] = engine.NodeSkip
		m.skipBody(id, inner)
	}
}

// settleOut gives each outgoing connection its fate: what was said of it, else live if its key was produced.
func (m *model) settleOut(sc *modelScope, n int, outputs []engine.Output, said []engine.Verdict) []int {
	var next []int
	settle := func(e int, fate edgeFate) {
		if _, ok := sc.edges[e]; !ok {
			sc.edges[e] = fate
			next = append(next, m.g.edges[e].to)
		}
	}
	out := m.g.outgoing(n)
	for _, v := range said {
		if slices.Contains(out, v.Edge) {
			settle(v.Edge, fateOf(v))
		}
	}
	for _, e := range out {
		fate := dead
		if slices.ContainsFunc(outputs, func(o engine.Output) bool { return o.Key == m.g.edges[e].key }) {
			fate = live
		}
		settle(e, fate)
	}
	return next
}

// end takes an activation that is done with out of its scope.
func (m *model) end(a *modelAct, fate engine.NodeStatus, outputs []engine.Output, said []engine.Verdict) []int {
	sc := a.scope
	delete(sc.acts, a.node)
	sc.fates[a.node] = fate
	m.ended[a.id] = fate
	if !a.opened {
		m.skipBody(a.id, a.node)
	}
	return m.settleOut(sc, a.node, outputs, said)
}
