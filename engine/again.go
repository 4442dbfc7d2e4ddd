package engine

import (
	"slices"

	"tandem/fault"
	"tandem/workflow"
)

// A question cannot be bypassed. When an operator goes on after one (a fork, a retry, a given output, a start in the
// middle), its earlier answer was for something else: the event names the question, it is asked again, and everything
// after it waits for the new answer. An activation that the new answer does not lead to is skipped.

// again is a question that is asked again: its activation and, once there is an answer, which of its connections the
// answer leads to.
type again struct {
	Question ActivationID `json:"question"`
	Answered bool         `json:"answered,omitempty"`
	// Live are the connections of an answered question that its answer has made live, Confirmed that it agrees.
	Live      []int `json:"live,omitempty"`
	Confirmed bool  `json:"confirmed,omitempty"`
	// Causes are why it is asked again, for those who are asked.
	Causes []AgainCause `json:"causes,omitempty"`
}

// AgainCause is what somebody did after a question, so that it is asked again.
type AgainCause struct {
	Action AgainAction `json:"action"`
	// Activation is where they went on.
	Activation ActivationID `json:"activation"`
	By         string       `json:"by,omitempty"`
	// TokenMadeBy is who made the token that By used, if it was somebody else.
	TokenMadeBy string `json:"token_made_by,omitempty"`
	// Output is what they gave as the output of the activation.
	Output Ref `json:"output,omitempty"`
}

// AgainAction names what was done.
type AgainAction string

// What makes a question be asked again.
const (
	AgainStart  AgainAction = "start"  // the execution begins after it
	AgainFork   AgainAction = "fork"   // a fork begins after it, or edits what was shown with it
	AgainRetry  AgainAction = "retry"  // a node after it is tried again
	AgainOutput AgainAction = "output" // a person gives the output of a node
)

// maxCauses is how many causes are kept of why a question is asked again.
const maxCauses = 20

// AskedAgain returns why a question is asked again, the oldest cause first; none for one that is asked for the first time.
func (s *State) AskedAgain(question ActivationID) []AgainCause {
	if a := s.find(question); a != nil && !a.again {
		return a.causes
	}
	if known := s.findAgain(question); known != nil {
		return known.Causes
	}
	return nil
}

// Questions returns the binding questions that lie on every way to an activation, the first first, and those of them that
// cannot be asked again: they stand in a body that has closed, are switched off, or a program asked them before one of its
// steps. For an execution that has not begun, the id is the name of a node at the top level.
func (s *State) Questions(id ActivationID) (asked []ActivationID, closed []string) {
	path, name := id.Split()
	if sc := s.scopes[path]; sc != nil {
		if p, ok := sc.program.(Confirming); ok {
			if question, ok := p.ConfirmedBy(name); ok {
				closed = append(closed, question)
			}
		}
	}
	node, path, ok := s.nodeOf(id)
	if !ok {
		return nil, closed
	}
	for _, q := range s.graph.Nodes[node].Questions {
		if where, ok := s.questionAt(path, node, q); ok && !s.graph.Nodes[q].Plan.Disabled && s.knowsInputs(where, q) {
			asked = append(asked, where)
		} else {
			closed = append(closed, s.graph.Nodes[q].ID)
		}
	}
	return asked, closed
}

// ChildrenBefore returns the nodes that run another workflow and lie on every way to an activation.
func (s *State) ChildrenBefore(id ActivationID) []int {
	node, _, ok := s.nodeOf(id)
	if !ok {
		return nil
	}
	return s.graph.Nodes[node].Children
}

// NodeOf is the node of the graph that an activation is, or works for as a step.
func (s *State) NodeOf(id ActivationID) (node int, ok bool) {
	node, _, ok = s.nodeOf(id)
	return node, ok
}

// nodeOf is the node of the graph that an activation is, or works for as a step, and the path of that node's scope.
func (s *State) nodeOf(id ActivationID) (node int, path string, ok bool) {
	path, name := id.Split()
	for {
		if node, ok = s.graph.Segment(name); ok && s.inBody(path, node) {
			return node, path, true
		}
		owner, up := ownerOf(path)
		if !up {
			return -1, "", false
		}
		path, name = owner.Split()
	}
}

// knowsInputs says whether the state still has the inputs of a question. Snapshots of older versions do not have them.
func (s *State) knowsInputs(id ActivationID, question int) bool {
	path, _ := id.Split()
	sc := s.scopes[path]
	if sc == nil {
		return true // nothing has run there
	}
	p, ok := sc.program.(*graphProgram)
	return ok && !slices.ContainsFunc(s.graph.Nodes[question].In, func(e int) bool {
		edge := &s.graph.Edges[e]
		return p.edges[edge.Local].verdict == edgeLive && p.edges[edge.Local].ref == "" && !edge.Entry
	})
}

// Asked returns the binding questions of the scopes in the state that have been answered or are being asked. People who
// answered them have not seen data that is given from now on.
func (s *State) Asked() []ActivationID {
	var list []ActivationID
	for _, path := range sortedKeys(s.scopes) {
		p, ok := s.scopes[path].program.(*graphProgram)
		if !ok {
			continue
		}
		for i, n := range p.body.Nodes {
			node := &s.graph.Nodes[n]
			if node.Plan.Asks == "" || node.Plan.Disabled {
				continue
			}
			id := joinID(path, node.Segment)
			fate := p.nodes[i].fate
			known, open := s.findAgain(id), s.find(id)
			if fate == fateCompleted || fate == fateFailed || known != nil && known.Answered || open != nil && open.phase == phaseAsking {
				list = append(list, id)
			}
		}
	}
	return list
}

// inBody says whether a node of the graph is in the body that the scope with this path runs.
func (s *State) inBody(path string, node int) bool {
	if path == "" {
		return s.graph.Nodes[node].Body == 0 && s.created.Program == ""
	}
	owner, _ := ownerOf(path)
	_, name := owner.Split()
	opens, ok := s.graph.Segment(name)
	return ok && s.graph.Nodes[opens].Opens > 0 && s.graph.Nodes[opens].Opens == s.graph.Nodes[node].Body
}

// questionAt finds the activation of a question as seen from a node in a scope: it stands in the same scope or in one
// around it.
func (s *State) questionAt(path string, node, question int) (ActivationID, bool) {
	body := s.graph.Nodes[question].Body
	if !s.graph.Within(node, body) {
		return "", false
	}
	for b := s.graph.Nodes[node].Body; b != body; b = s.graph.Nodes[s.graph.Bodies[b].Owner].Body {
		owner, ok := ownerOf(path)
		if !ok {
			return "", false
		}
		path, _ = owner.Split()
	}
	return joinID(path, s.graph.Nodes[question].Segment), true
}

func (s *State) findAgain(question ActivationID) *again {
	for i := range s.again {
		if s.again[i].Question == question {
			return &s.again[i]
		}
	}
	return nil
}

// checkAgain refuses what does not name a question of a scope in the state.
func (s *State) checkAgain(questions []ActivationID) error {
	for _, id := range questions {
		path, name := id.Split()
		node, ok := s.graph.Segment(name)
		if !ok || s.scopes[path] == nil || !s.inBody(path, node) || s.graph.Nodes[node].Plan.Asks == "" {
			return fault.Newf(fault.Invalid, "again: %q is not a binding question that is open or was asked", id)
		}
	}
	return nil
}

// askAgain discards the answers to questions. An open question begins again, if an output that was given changes what it shows.
func (s *State) askAgain(questions []ActivationID, cause AgainCause) {
	for _, id := range questions {
		a := s.find(id)
		var causes *[]AgainCause
		if a != nil && !a.again { // it has no answer yet
			causes = &a.causes
		} else {
			known := s.findAgain(id)
			if known == nil {
				s.again = append(s.again, again{Question: id})
				known = &s.again[len(s.again)-1]
			} else if known.Answered {
				*known = again{Question: id}
			}
			causes = &known.Causes
		}
		if len(*causes) < maxCauses {
			*causes = append(*causes, cause)
		}
		if cause.Action == AgainOutput && a != nil && a.phase == phaseAsking {
			s.stop(a)
			s.regenerate(a)
			s.dispatch(a)
		}
	}
}

// issue hands a ready activation to the runtime; questions before it that are asked again come first.
func (s *State) issue(a *activation) {
	if len(s.again) == 0 || a.scope.torn || a.cause.Wake != nil || a.frame != nil {
		s.dispatch(a)
		return
	}
	node, path := a.place()
	for _, q := range s.questionsBefore(node) {
		id, ok := s.questionAt(path, node, q)
		known := s.findAgain(id)
		switch {
		case !ok || known == nil:
		case !known.Answered:
			s.move(a, phaseGated)
			s.beginAgain(id, q, a)
			return
		case !s.leads(known, q, node):
			s.passOver(a)
			return
		}
	}
	s.dispatch(a)
}

func (s *State) questionsBefore(node int) []int {
	if node < 0 {
		return nil
	}
	return s.graph.Nodes[node].Questions
}

// place is the node of the graph that an activation is, or works for as a step, and the path of that node's scope.
func (a *activation) place() (node int, path string) {
	for a.node < 0 {
		if a.scope.owner == nil {
			return -1, ""
		}
		a = a.scope.owner
	}
	return a.node, a.scope.path
}

// beginAgain asks a question again, unless it is being asked. Questions before it come first.
func (s *State) beginAgain(id ActivationID, node int, wanted *activation) {
	path, name := id.Split()
	sc := s.scopes[path]
	if sc.acts[name] != nil {
		return
	}
	q := &activation{node: node, name: name, again: true}
	if p, ok := sc.program.(*graphProgram); ok {
		for _, e := range s.graph.Nodes[node].In {
			if es := &p.edges[s.graph.Edges[e].Local]; es.verdict == edgeLive {
				q.inputs = append(q.inputs, Input{Edge: e, Ref: es.ref})
			}
		}
	}
	s.enter(sc, q)
	q.gen = max(q.gen, wanted.gen) + 1
	s.issue(q)
}

// leads says whether the new answer to a question leads to a node: by its own key, or, if it is a confirmation, by the
// key that every answer has.
func (s *State) leads(known *again, question, node int) bool {
	body := s.graph.Nodes[question].Body
	for s.graph.Nodes[node].Body != body {
		node = s.graph.Bodies[s.graph.Nodes[node].Body].Owner
	}
	return slices.ContainsFunc(known.Live, func(e int) bool {
		return (known.Confirmed || s.graph.Edges[e].Key != workflow.DefaultKey) && s.graph.LeadsTo(e, node)
	})
}

// passOver skips an activation that the answer to a question before it does not lead to.
func (s *State) passOver(a *activation) {
	s.emit(EndNode{Activation: a.id, Generation: a.gen, Status: NodeSkip})
	s.leave(a, End{Status: NodeSkip})
}

// askedAgain takes the new answer to a question: its connections have their verdicts from the first time, and only what
// they bring is new.
func (s *State) askedAgain(q *activation, end End) {
	known := s.findAgain(q.id)
	known.Answered = end.Status == NodeDone || end.Status == NodeFailure || end.Status == NodeSkip
	known.Live, known.Confirmed = nil, false
	if !known.Answered { // canceled: it is asked again when an activation needs it
		s.after(q.scope)
		return
	}
	asks := s.graph.Nodes[q.node].Plan.Asks
	known.Confirmed = slices.ContainsFunc(end.Outputs, func(o Output) bool { return o.Key == asks })
	brought := map[int]Ref{}
	for _, v := range verdictsOf(s.graph, q.node, end) {
		if v.Live && v.Error == nil && !s.graph.Edges[v.Edge].Back { // the end of an iteration leads to no node in it
			known.Live = append(known.Live, v.Edge)
			brought[v.Edge] = v.Ref
		}
	}
	if p, ok := q.scope.program.(*graphProgram); ok {
		for e, ref := range brought { // order does not matter: each is its own
			if es := &p.edges[s.graph.Edges[e].Local]; es.verdict == edgeLive && es.ref != "" {
				es.ref = ref
			}
		}
	}
	for _, a := range s.sorted(func(a *activation) bool { return a.phase == phaseGated }) {
		if a.phase == phaseGated { // it has not been passed over together with another
			s.renew(a, q.node, brought)
			s.issue(a)
		}
	}
	s.after(q.scope)
}

// renew gives an activation that waited for a question the inputs of the new answer instead of those of the old one.
func (s *State) renew(a *activation, question int, brought map[int]Ref) {
	from := func(in Input) bool { return s.graph.Edges[in.Edge].From == question }
	if a.node < 0 || !slices.ContainsFunc(a.inputs, from) {
		return
	}
	var inputs []Input
	for _, e := range s.graph.Nodes[a.node].In {
		if ref, ok := brought[e]; ok {
			inputs = append(inputs, Input{Edge: e, Ref: ref})
			continue
		}
		if i := slices.IndexFunc(a.inputs, func(in Input) bool { return in.Edge == e && !from(in) }); i >= 0 {
			inputs = append(inputs, a.inputs[i])
		}
	}
	a.inputs = inputs
}

// verdictsOf are the verdicts of all outgoing connections of a node that has ended.
func verdictsOf(g *workflow.Graph, node int, end End) []Verdict {
	var list []Verdict
	for _, e := range g.Nodes[node].Out {
		if i := slices.IndexFunc(end.Settled, func(v Verdict) bool { return v.Edge == e }); i >= 0 {
			list = append(list, end.Settled[i])
			continue
		}
		v := Verdict{Edge: e}
		if i := slices.IndexFunc(end.Outputs, func(o Output) bool { return o.Key == g.Edges[e].Key }); i >= 0 {
			v.Live, v.Ref = true, end.Outputs[i].Ref
		}
		list = append(list, v)
	}
	return list
}

// dropUnwanted withdraws questions that are asked again although nothing waits for them any more.
func (s *State) dropUnwanted() {
	if len(s.again) == 0 || s.final != "" {
		return
	}
	asking := s.sorted(func(a *activation) bool { return a.again && a.phase.open() && !a.scope.torn })
	for i := len(asking) - 1; i >= 0; i-- { // the last first: a question may be needed only by a later one
		if q := asking[i]; !s.wanted(q) {
			s.cancelOne(q)
		}
	}
}

// wanted says whether an activation waits for the answer to a question.
func (s *State) wanted(q *activation) bool {
	waits := s.sorted(func(a *activation) bool {
		if a.phase != phaseGated {
			return false
		}
		node, path := a.place()
		return slices.ContainsFunc(s.questionsBefore(node), func(n int) bool {
			id, ok := s.questionAt(path, node, n)
			return ok && id == q.id
		})
	})
	return len(waits) > 0
}

// reissueRun issues a run that was under way in the source of a fork.
func (s *State) reissueRun(a *activation) {
	if a.phase == phaseGated {
		s.move(a, phaseHeld)
	}
	s.issue(a)
}

// askAnew starts the nodes that ask people again: what they show was made from data that has been edited since.
func (s *State) askAnew(chosen *activation) {
	for _, a := range s.sorted(func(a *activation) bool {
		return a.phase == phaseAsking && a.node >= 0 && !a.wait.unknown && a != chosen
	}) {
		s.stop(a)
		s.regenerate(a)
		s.move(a, phaseHeld)
	}
}

// beginBehind starts again, in a fork, what waits after a question that is asked again: its wait belongs to the source, and it must
// not go on before the new answer.
func (s *State) beginBehind(chosen *activation) {
	for _, a := range s.sorted(func(a *activation) bool { return a.wait != nil && a.phase.open() && a.frame == nil && a != chosen }) {
		node, path := a.place()
		behind := slices.ContainsFunc(s.questionsBefore(node), func(q int) bool {
			id, ok := s.questionAt(path, node, q)
			known := s.findAgain(id)
			return ok && known != nil && !known.Answered
		})
		if !behind || a.canceling || a.wait.unknown {
			continue
		}
		s.stop(a)
		s.regenerate(a)
		s.move(a, phaseHeld)
	}
}
