package engine

import (
	"cmp"
	"encoding/json"
	"fmt"

	"tandem/fault"
	"tandem/workflow"
)

// graphProgram follows one body of a compiled workflow: the top level, or an iteration of a scope node. Readiness is
// counted, so a step costs what its edges cost, whatever the size of the graph.
type graphProgram struct {
	graph *workflow.Graph
	body  *workflow.Body
	nodes []nodeState // by the node's place in the body
	edges []edgeState // by the edge's place in the body

	// queue holds the nodes to look at again; busy says that this is being done.
	queue []int
	busy  bool
}

// nodeState is the state of a node, and what it still waits for.
type nodeState struct {
	unsettled int32 // incoming edges that are neither live nor dead
	arrived   int32 // incoming edges that are live, or failed to convert
	fate      fate
}

// fate is the state of a node in its body. It is one letter in a snapshot.
type fate byte

const (
	fateNone      fate = '.' // waits for its incoming edges
	fateApart     fate = '-' // cannot be reached from where the execution began: not part of it
	fateActive    fate = 'a' // its activation is open, failed or canceled
	fateCompleted fate = 'c'
	fateSkipped   fate = 's'
	fateFailed    fate = 'f' // failed, and that was handled
	fateCanceled  fate = 'x' // canceled because a join had its winner
)

type edgeState struct {
	verdict verdict
	ref     Ref          // of a live edge, until its target takes it
	err     *fault.Error // of an edge whose conversion has failed
}

// verdict says whether an edge is live. It is one letter in a snapshot.
type verdict byte

const (
	edgeOpen   verdict = '.'
	edgeLive   verdict = 'l'
	edgeDead   verdict = 'd'
	edgeFailed verdict = 'f'
)

func newGraphProgram(setup Setup) *graphProgram {
	body := &setup.Graph.Bodies[setup.Body]
	p := &graphProgram{graph: setup.Graph, body: body, nodes: make([]nodeState, len(body.Nodes)), edges: make([]edgeState, len(body.Edges))}
	for i, n := range body.Nodes {
		p.nodes[i] = nodeState{unsettled: int32(len(setup.Graph.Nodes[n].In)), fate: fateNone}
	}
	for i := range p.edges {
		p.edges[i].verdict = edgeOpen
	}
	return p
}

// checkStart says whether an execution can begin where it is asked to.
func checkStart(g *workflow.Graph, trigger, from string) error {
	switch {
	case trigger != "" && from != "":
		return fault.New(fault.Invalid, "trigger, start_from: an execution begins at one of them; leave the other out")
	case from != "":
		i, ok := g.Node(from)
		switch {
		case !ok:
			return fault.Newf(fault.NotFound, "start_from: the workflow has no node %q", from)
		case g.Nodes[i].Attached:
			return fault.Newf(fault.Invalid, "start_from: %q is attached to another node and takes no part in the flow", from)
		case g.Nodes[i].Body != 0:
			return fault.Newf(fault.Invalid, "start_from: %q stands inside %q; start at that node, or fork an execution inside it", from, g.Nodes[g.Bodies[g.Nodes[i].Body].Owner].ID)
		}
	case trigger != "":
		for _, t := range g.Triggers {
			if g.Nodes[t].ID == trigger {
				return nil
			}
		}
		return fault.Newf(fault.NotFound, "trigger: %q is not an enabled trigger of the workflow", trigger)
	case len(g.Triggers) > 0:
		return fault.Newf(fault.Invalid, "trigger: the workflow has triggers; name the one that fired (%q) or start_from", g.Nodes[g.Triggers[0]].ID)
	}
	return nil
}

func (p *graphProgram) Start(sc *Scope, o Opening) {
	if p.body.Owner >= 0 {
		p.startBody(sc, o)
		return
	}
	var starts []int
	switch {
	case o.StartFrom != "":
		i, _ := p.graph.Node(o.StartFrom)
		starts = []int{i}
	case o.Trigger != "":
		i, _ := p.graph.Node(o.Trigger)
		starts = []int{i}
	default:
		for _, n := range p.body.Nodes {
			if node := &p.graph.Nodes[n]; len(node.In) == 0 && !node.Attached {
				starts = append(starts, n)
			}
		}
	}
	p.reach(starts)
	p.busy = true
	for _, n := range starts {
		p.ready(sc, n)
	}
	p.busy = false
	p.work(sc)
}

// reach marks the nodes that cannot be reached from the start: they take no part, and their edges are dead without a
// record.
func (p *graphProgram) reach(starts []int) {
	for i := range p.nodes {
		p.nodes[i].fate = fateApart
	}
	var stack []int
	visit := func(n int) {
		if st := p.node(n); st.fate == fateApart {
			st.fate = fateNone
			stack = append(stack, n)
		}
	}
	for _, n := range starts {
		visit(n)
	}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, e := range p.graph.Nodes[n].Out {
			if edge := &p.graph.Edges[e]; !edge.Back && !edge.Entry {
				visit(edge.To)
			}
		}
	}
	for i, e := range p.body.Edges {
		edge := &p.graph.Edges[e]
		if p.node(edge.From).fate == fateApart {
			p.edges[i].verdict = edgeDead
			p.node(edge.To).unsettled--
		}
	}
	for _, n := range starts {
		p.node(n).unsettled = 0 // a start runs whatever its inputs
	}
}

func (p *graphProgram) startBody(sc *Scope, o Opening) {
	p.busy = true
	for _, e := range p.body.Entry {
		p.settle(sc, e, Verdict{Edge: e, Live: true})
	}
	// Verdicts that differ are rare, and were laid over the live ones above before any node was looked at.
	for _, v := range o.Entry {
		p.resettle(v)
	}
	p.busy = false
	p.work(sc)
}

// resettle replaces the verdict of an entry edge before its target has been looked at.
func (p *graphProgram) resettle(v Verdict) {
	edge := &p.graph.Edges[v.Edge]
	if !edge.Entry {
		return
	}
	st := &p.edges[edge.Local]
	target := p.node(edge.To)
	if st.verdict == edgeLive || st.verdict == edgeFailed {
		target.arrived--
	}
	*st = edgeStateOf(v)
	if st.verdict != edgeDead {
		target.arrived++
	}
}

func edgeStateOf(v Verdict) edgeState {
	switch {
	case v.Error != nil:
		return edgeState{verdict: edgeFailed, err: v.Error}
	case v.Live:
		return edgeState{verdict: edgeLive, ref: v.Ref}
	}
	return edgeState{verdict: edgeDead}
}

func (p *graphProgram) node(n int) *nodeState { return &p.nodes[p.graph.Nodes[n].Local] }

// settle gives an edge its verdict and queues its target.
func (p *graphProgram) settle(sc *Scope, e int, v Verdict) {
	edge := &p.graph.Edges[e]
	st := &p.edges[edge.Local]
	if st.verdict != edgeOpen {
		return
	}
	*st = edgeStateOf(v)
	target := p.node(edge.To)
	target.unsettled--
	if st.verdict != edgeDead {
		target.arrived++
	}
	if target.fate == fateNone {
		p.queue = append(p.queue, edge.To)
	} else {
		st.ref, st.err = "", nil // it came too late
	}
}

// work looks at the nodes in the queue until it is empty.
func (p *graphProgram) work(sc *Scope) {
	if p.busy {
		return
	}
	p.busy = true
	for i := 0; i < len(p.queue); i++ {
		n := p.queue[i]
		st := p.node(n)
		if st.fate != fateNone {
			continue
		}
		node := &p.graph.Nodes[n]
		join := &node.Plan.Join
		switch {
		case st.arrived > 0 && (st.unsettled <= 0 || join.First):
			p.ready(sc, n)
		case st.unsettled <= 0:
			p.skip(sc, n)
		case st.arrived > 0 && join.TimeoutMS > 0 && sc.timers[node.Segment] == "":
			sc.Sleep(node.Segment, sc.Now()+join.TimeoutMS)
		}
	}
	p.queue = p.queue[:0]
	p.busy = false
}

// ready makes a node active: its inputs are what has arrived.
func (p *graphProgram) ready(sc *Scope, n int) {
	node := &p.graph.Nodes[n]
	st := p.node(n)
	sc.Awake(node.Segment)
	if node.Plan.Disabled && node.Plan.SkipDisabled {
		p.skip(sc, n)
		return
	}
	st.fate = fateActive
	a := &activation{node: n, name: node.Segment, timedOut: st.unsettled > 0 && !node.Plan.Join.First}
	var failed *fault.Error
	for _, e := range node.In {
		es := &p.edges[p.graph.Edges[e].Local]
		switch {
		case es.verdict == edgeLive && (!node.Plan.Join.First || len(a.inputs) == 0):
			if a.inputs == nil {
				if a.inputs = a.only[:0]; int(st.arrived) > len(a.only) {
					a.inputs = make([]Input, 0, st.arrived)
				}
			}
			a.inputs = append(a.inputs, Input{Edge: e, Ref: es.ref})
		case es.verdict == edgeFailed:
			a.inputs = append(a.inputs, Input{Edge: e, Convert: true})
			failed = cmp.Or(failed, es.err)
		}
		if es.err = nil; node.Plan.Asks == "" { // a question may have to be asked again, about the same
			es.ref = ""
		}
	}
	if failed == nil {
		sc.st.beginActivation(sc, a)
	} else {
		sc.st.beginFailed(sc, a, failed)
	}
	if node.Plan.Join.First && node.Plan.Join.CancelLosers {
		p.cancelLosers(sc, n)
	}
}

// cancelLosers ends the work that leads only into a join that has its winner.
func (p *graphProgram) cancelLosers(sc *Scope, join int) {
	for _, n := range p.body.Nodes {
		node := &p.graph.Nodes[n]
		if !p.leadsInto(n, join) {
			continue
		}
		switch p.node(n).fate {
		case fateNone:
			p.skip(sc, n)
		case fateActive:
			sc.Cancel(node.Segment)
		}
	}
}

func (p *graphProgram) skip(sc *Scope, n int) {
	node := &p.graph.Nodes[n]
	sc.Awake(node.Segment)
	p.node(n).fate = fateSkipped
	sc.Skip(node.Segment)
	p.skipBody(sc, n, sc.path)
	p.settleOut(sc, node, nil, nil)
}

// skipBody records the nodes of a body that never runs, those of nested bodies included.
func (p *graphProgram) skipBody(sc *Scope, owner int, path string) {
	type visit struct {
		node int
		path string
	}
	stack := []visit{{owner, path}}
	for len(stack) > 0 {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		node := &p.graph.Nodes[v.node]
		if node.Opens == 0 {
			continue
		}
		inner := skippedPath(joinID(v.path, node.Segment))
		for _, n := range p.graph.Bodies[node.Opens].Nodes {
			sc.st.emit(EndNode{Activation: joinID(inner, p.graph.Nodes[n].Segment), Generation: sc.generation(), Status: NodeSkip})
			stack = append(stack, visit{n, inner})
		}
	}
}

// Ended settles the outgoing connections of a node.
func (p *graphProgram) Ended(sc *Scope, _ string, end End) {
	n := end.Node
	node := &p.graph.Nodes[n]
	st := p.node(n)
	switch end.Status {
	case NodeDone:
		st.fate = fateCompleted
	case NodeSkip:
		st.fate = fateSkipped
	case NodeCanceled:
		st.fate = fateCanceled
	default:
		st.fate = fateFailed
	}
	if node.Opens > 0 && !end.Opened {
		p.skipBody(sc, n, sc.path)
	}
	p.settleOut(sc, node, end.Outputs, end.Settled)
	p.work(sc)
}

// settleOut gives every outgoing connection of a node that has ended its verdict: what the event says of it, else live
// if its key was produced.
func (p *graphProgram) settleOut(sc *Scope, node *workflow.GraphNode, outputs []Output, settled []Verdict) {
	for _, v := range settled {
		if edge := &p.graph.Edges[v.Edge]; !edge.Back && !edge.Entry {
			p.settle(sc, v.Edge, v)
		}
	}
	for _, e := range node.Out {
		edge := &p.graph.Edges[e]
		if edge.Back || edge.Entry {
			continue
		}
		v := Verdict{Edge: e}
		for i := range outputs {
			if outputs[i].Key == edge.Key {
				v.Live, v.Ref = true, outputs[i].Ref
				break
			}
		}
		p.settle(sc, e, v)
	}
}

// Handles says whether a failure is recorded and not fatal, because the node leads only into a join that has its winner.
func (p *graphProgram) Handles(name string, _ *fault.Error) bool {
	n, ok := p.find(name)
	if !ok {
		return false
	}
	for f := p.graph.Nodes[n].Feeds; f >= 0; f = p.graph.Nodes[f].Feeds {
		if fate := p.node(f).fate; fate != fateNone && fate != fateApart {
			return true
		}
	}
	return false
}

// leadsInto says whether all paths of a node lead into a first-join and nowhere else, directly or through other first-joins.
func (p *graphProgram) leadsInto(n, join int) bool {
	for f := p.graph.Nodes[n].Feeds; f >= 0; f = p.graph.Nodes[f].Feeds {
		if f == join {
			return true
		}
	}
	return false
}

// Fired lets a join go on with what has arrived.
func (p *graphProgram) Fired(sc *Scope, timer string) {
	n, ok := p.find(timer)
	if !ok || p.node(n).fate != fateNone {
		return
	}
	p.ready(sc, n)
	p.work(sc)
}

// find returns the node of this body with a name, which is its escaped id.
func (p *graphProgram) find(name string) (int, bool) {
	if n, ok := p.graph.Node(name); ok && p.graph.Nodes[n].Segment == name && p.holds(n) {
		return n, true
	}
	for _, n := range p.body.Nodes { // an id that had to be escaped
		if p.graph.Nodes[n].Segment == name {
			return n, true
		}
	}
	return 0, false
}

func (p *graphProgram) holds(n int) bool {
	local := p.graph.Nodes[n].Local
	return local >= 0 && local < len(p.body.Nodes) && p.body.Nodes[local] == n
}

func (p *graphProgram) statusOf(name string) (NodeStatus, bool) {
	n, ok := p.find(name)
	if !ok {
		return "", false
	}
	switch p.node(n).fate {
	case fateCompleted:
		return NodeDone, true
	case fateSkipped:
		return NodeSkip, true
	case fateFailed:
		return NodeFailure, true
	case fateCanceled:
		return NodeCanceled, true
	case fateApart:
		return "", false
	}
	return NodePending, true
}

// graphJSON is the graph program's snapshot: a letter for each node and each edge, and the references that wait.
type graphJSON struct {
	Nodes string     `json:"nodes"`
	Edges string     `json:"edges"`
	Held  []heldJSON `json:"held,omitempty"`
}

type heldJSON struct {
	Edge  int          `json:"edge"`
	Ref   Ref          `json:"ref,omitempty"`
	Error *fault.Error `json:"error,omitempty"`
}

// Snapshot implements Program.
func (p *graphProgram) Snapshot() (json.RawMessage, error) {
	nodes, edges := make([]byte, len(p.nodes)), make([]byte, len(p.edges))
	for i := range p.nodes {
		nodes[i] = byte(p.nodes[i].fate)
	}
	snap := graphJSON{}
	for i := range p.edges {
		e := &p.edges[i]
		edges[i] = byte(e.verdict)
		if e.ref != "" || e.err != nil {
			snap.Held = append(snap.Held, heldJSON{p.body.Edges[i], e.ref, e.err})
		}
	}
	snap.Nodes, snap.Edges = string(nodes), string(edges)
	return json.Marshal(snap)
}

func restoreGraphProgram(setup Setup, data json.RawMessage) (*graphProgram, error) {
	var snap graphJSON
	if err := json.Unmarshal(data, &snap); err != nil {
		return nil, fmt.Errorf("restore graph program: %w", err)
	}
	if setup.Body < 0 || setup.Body >= len(setup.Graph.Bodies) {
		return nil, fmt.Errorf("restore graph program: the graph has no body %d", setup.Body)
	}
	p := newGraphProgram(setup)
	if len(snap.Nodes) != len(p.nodes) || len(snap.Edges) != len(p.edges) {
		return nil, fmt.Errorf("restore graph program: the snapshot has %d nodes and %d edges, the body %d and %d", len(snap.Nodes), len(snap.Edges), len(p.nodes), len(p.edges))
	}
	for i := range p.nodes {
		p.nodes[i].fate = fate(snap.Nodes[i])
	}
	for i := range p.edges {
		v := verdict(snap.Edges[i])
		p.edges[i].verdict = v
		target := p.node(p.graph.Edges[p.body.Edges[i]].To)
		if v != edgeOpen {
			target.unsettled--
		}
		if v == edgeLive || v == edgeFailed {
			target.arrived++
		}
	}
	for _, h := range snap.Held {
		if h.Edge < 0 || h.Edge >= len(p.graph.Edges) {
			return nil, fmt.Errorf("restore graph program: the graph has no edge %d", h.Edge)
		}
		local := p.graph.Edges[h.Edge].Local
		if local < 0 || local >= len(p.edges) || p.body.Edges[local] != h.Edge {
			return nil, fmt.Errorf("restore graph program: edge %d is not of this body", h.Edge)
		}
		p.edges[local].ref, p.edges[local].err = h.Ref, h.Error
	}
	return p, nil
}
