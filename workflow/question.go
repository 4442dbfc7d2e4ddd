package workflow

import (
	"slices"

	"tandem/workflow/dominance"
)

// findQuestions sets every node's Questions and Children: the binding questions and the sub-workflows that lie on every way
// to it from where the workflow can begin. They are among the dominators of the node in the flow as it runs: a body that runs exactly once
// leads on to what its owner's first exit key leads to, any other body may run no time at all and leads nowhere.
func (g *Graph) findQuestions(scopes []*ScopeKeys) {
	if !slices.ContainsFunc(g.Nodes, func(n GraphNode) bool { return n.Plan.Asks != "" || n.Plan.Child != nil }) {
		return
	}
	vertex := func(node int) int32 { return int32(node) + 1 }
	done := make([]int32, len(g.Nodes)) // of a body that runs once: where its ends meet
	vertices := len(g.Nodes) + 1
	var flow dominance.Arcs
	for i := range g.Nodes {
		node := &g.Nodes[i]
		if node.Opens > 0 && scopes[i] != nil && scopes[i].Once {
			done[i] = int32(vertices)
			vertices++
			for _, last := range g.Bodies[node.Opens].Last {
				flow.Add(vertex(last), done[i])
			}
			if len(g.Bodies[node.Opens].Last) == 0 {
				flow.Add(vertex(i), done[i])
			}
		}
	}
	for _, i := range g.entries() {
		flow.Add(0, vertex(i))
	}
	for i := range g.Edges {
		edge := &g.Edges[i]
		switch {
		case edge.Back:
		case !edge.Entry && done[edge.From] > 0 && edge.Key == scopes[edge.From].Exits[0]:
			flow.Add(done[edge.From], vertex(edge.To))
		default:
			flow.Add(vertex(edge.From), vertex(edge.To))
		}
	}
	out, in := flow.Forward(vertices), flow.Backward(vertices)
	g.flow = &out
	tree := dominance.Of(&out, &in, vertices)
	for i := range g.Nodes {
		node := &g.Nodes[i]
		for above := range tree.Above(vertex(i)) {
			q := int(above) - 1
			switch {
			case q >= len(g.Nodes):
			case g.Nodes[q].Plan.Asks != "":
				node.Questions = append(node.Questions, q)
			case g.Nodes[q].Plan.Child != nil:
				node.Children = append(node.Children, q)
			}
		}
		slices.Reverse(node.Questions)
		slices.Reverse(node.Children)
	}
}

// entries are the nodes that the workflow begins with: the triggers that can start it. Without one that can they are those that could if
// they were switched on, and without any trigger the nodes that nothing leads to.
func (g *Graph) entries() []int {
	if len(g.Triggers) > 0 {
		return g.Triggers
	}
	var triggers []int
	for i := range g.Nodes {
		if TypeOf(g.Nodes[i].Kind) == TypeTrigger {
			triggers = append(triggers, i)
		}
	}
	if len(triggers) > 0 {
		return triggers
	}
	return g.sources()
}

// sources are the nodes of the top level that nothing leads to.
func (g *Graph) sources() []int {
	var list []int
	for i := range g.Nodes {
		if n := &g.Nodes[i]; len(n.In) == 0 && n.Body == 0 && !n.Attached {
			list = append(list, i)
		}
	}
	return list
}

// walk tells which vertices of the flow can be reached from some nodes without going through a node that stops it. A node that stops
// is reached itself.
func (g *Graph) walk(from []int, stops func(node int) bool) []bool {
	reached := make([]bool, g.flow.Vertices())
	var stack []int32
	push := func(v int32) {
		if !reached[v] {
			reached[v] = true
			stack = append(stack, v)
		}
	}
	for _, n := range from {
		push(int32(n) + 1)
	}
	for len(stack) > 0 {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if n := int(v) - 1; n < len(g.Nodes) && stops(n) {
			continue
		}
		for _, to := range g.flow.Of(v) {
			push(to)
		}
	}
	return reached
}

// Guard returns questions that together guard a node although none of them lies on every way to it: whichever way leads there, one of them
// is asked on it. The questions that lie on every way do not count here. For a node that nothing which starts the workflow leads to it
// returns the questions that guard what comes after it. Asks says which nodes ask a binding question, themselves or in another workflow.
func (g *Graph) Guard(node int, asks func(node int) bool) []int {
	if g.flow == nil || g.Nodes[node].Attached {
		return nil
	}
	never := func(int) bool { return false }
	begin := g.walk(g.entries(), never)
	if begin[node+1] {
		always := slices.Concat(g.Nodes[node].Questions, g.Nodes[node].Children)
		stops := func(n int) bool { return n != node && !slices.Contains(always, n) && asks(n) }
		return g.between(g.walk(g.entries(), stops), node, stops)
	}
	stops := func(n int) bool { return n != node && asks(n) }
	if found := g.between(g.walk(g.sources(), stops), node, stops); len(found) > 0 {
		return found
	}
	free := g.walk(g.entries(), asks)
	behind := g.walk([]int{node}, asks)
	for n := range g.Nodes {
		if behind[n+1] && begin[n+1] && !free[n+1] {
			return g.between(free, n, asks)
		}
	}
	return nil
}

// between are the nodes that were reached, stop, and lead to one that was not reached.
func (g *Graph) between(reached []bool, node int, stops func(node int) bool) []int {
	if reached[node+1] {
		return nil
	}
	var list []int
	for n := range g.Nodes {
		if reached[n+1] && stops(n) && g.walk([]int{n}, func(int) bool { return false })[node+1] {
			list = append(list, n)
		}
	}
	return list
}

// Avoidable says that there is a way through the whole graph on which nobody is asked. Asks is as for [Graph.Guard].
func (g *Graph) Avoidable(asks func(node int) bool) bool {
	if g.flow == nil {
		return true
	}
	free := g.walk(g.entries(), asks)
	return slices.ContainsFunc(g.Bodies[0].Last, func(last int) bool { return free[last+1] && !asks(last) })
}

// Within says that a node stands in a body, or in one that is nested in it.
func (g *Graph) Within(node, body int) bool {
	for b := g.Nodes[node].Body; ; b = g.Nodes[g.Bodies[b].Owner].Body {
		if b == body {
			return true
		}
		if g.Bodies[b].Owner < 0 {
			return false
		}
	}
}

// LeadsTo says that an edge leads to a node of the body it stands in, directly or through other nodes of that body.
func (g *Graph) LeadsTo(edge, node int) bool {
	seen := map[int]bool{}
	stack := []int{edge}
	for len(stack) > 0 {
		e := &g.Edges[stack[len(stack)-1]]
		stack = stack[:len(stack)-1]
		switch {
		case e.Back || e.Entry || seen[e.To]:
			continue
		case e.To == node:
			return true
		}
		seen[e.To] = true
		stack = append(stack, g.Nodes[e.To].Out...)
	}
	return false
}

// Around returns a binding question of another graph of the workflow that running this one gets around: it is not asked here, or a
// node can be reached here without it, which is then named, too. A sub-workflow that asks people counts as a question; asks tells.
// Both are empty if there is none.
func (g *Graph) Around(other *Graph, asks func(ChildWorkflow) (bool, error)) (question, node string, err error) {
	binding := map[string]bool{} // the questions of the other graph, by id
	for i := range other.Nodes {
		n := &other.Nodes[i]
		if n.Plan.Disabled {
			continue
		}
		if n.Plan.Child != nil && n.Plan.Asks == "" {
			if binding[n.ID], err = asks(*n.Plan.Child); err != nil {
				return "", "", err
			}
		} else {
			binding[n.ID] = n.Plan.Asks != ""
		}
		if !binding[n.ID] {
			continue
		}
		at, ok := g.Node(n.ID)
		if !ok || g.Nodes[at].Plan.Disabled || g.Nodes[at].Plan.Asks != n.Plan.Asks || !sameChild(g.Nodes[at].Plan.Child, n.Plan.Child) {
			return n.ID, "", nil
		}
	}
	before := func(g *Graph, n int) (ids []string) {
		for _, q := range slices.Concat(g.Nodes[n].Questions, g.Nodes[n].Children) {
			ids = append(ids, g.Nodes[q].ID)
		}
		return ids
	}
	for i := range g.Nodes {
		at, ok := other.Node(g.Nodes[i].ID)
		if !ok {
			continue
		}
		here := before(g, i)
		for _, q := range before(other, at) {
			if binding[q] && !slices.Contains(here, q) {
				return q, g.Nodes[i].ID, nil
			}
		}
	}
	return "", "", nil
}

func sameChild(a, b *ChildWorkflow) bool { return a == b || a != nil && b != nil && *a == *b }

// LeftOpen says that a question stands in a body behind which the flow goes on by it: skipping it there lets what it guards run.
func (g *Graph) LeftOpen(question int) bool {
	body := g.Nodes[question].Body
	return slices.ContainsFunc(g.Nodes, func(n GraphNode) bool {
		return slices.Contains(n.Questions, question) && !g.Within(int(g.byID[n.ID]), body)
	})
}
