package workflow

import "slices"

// findQuestions sets every node's Questions and Children: the binding questions and the sub-workflows that lie on every way
// to it. They are among the dominators of the node in the flow as it runs: a body that runs exactly once leads on to what its owner's first exit
// key leads to, any other body may run no time at all and leads nowhere.
func (g *Graph) findQuestions(scopes []*ScopeKeys) {
	if !slices.ContainsFunc(g.Nodes, func(n GraphNode) bool { return n.Plan.Asks != "" || n.Plan.Child != nil }) {
		return
	}
	vertex := func(node int) int32 { return int32(node) + 1 }
	done := make([]int32, len(g.Nodes)) // of a body that runs once: where its ends meet
	vertices := len(g.Nodes) + 1
	var flow arcs
	for i := range g.Nodes {
		node := &g.Nodes[i]
		if node.Opens > 0 && scopes[i] != nil && scopes[i].Once {
			done[i] = int32(vertices)
			vertices++
			for _, last := range g.Bodies[node.Opens].Last {
				flow.addArc(vertex(last), done[i])
			}
			if len(g.Bodies[node.Opens].Last) == 0 {
				flow.addArc(vertex(i), done[i])
			}
		}
		if len(node.In) == 0 && node.Body == 0 && !node.Attached {
			flow.addArc(0, vertex(i))
		}
	}
	for i := range g.Edges {
		edge := &g.Edges[i]
		switch {
		case edge.Back:
		case !edge.Entry && done[edge.From] > 0 && edge.Key == scopes[edge.From].Exits[0]:
			flow.addArc(done[edge.From], vertex(edge.To))
		default:
			flow.addArc(vertex(edge.From), vertex(edge.To))
		}
	}
	out, in := flow.forward(vertices), flow.backward(vertices)
	tree := dominate(&out, &in, vertices)
	for i := range g.Nodes {
		number := tree.number[vertex(i)]
		if number < 0 {
			continue
		}
		node := &g.Nodes[i]
		for up := tree.parent[number]; up > 0; up = tree.parent[up] {
			q := int(tree.vertex[up]) - 1
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

// Through returns the binding questions and the sub-workflows that lie on every way through the whole graph.
func (g *Graph) Through() (questions, children []int) {
	for n, last := range g.Bodies[0].Last {
		node := &g.Nodes[last]
		asked, run := slices.Clone(node.Questions), slices.Clone(node.Children)
		if node.Plan.Asks != "" {
			asked = append(asked, last)
		}
		if node.Plan.Child != nil {
			run = append(run, last)
		}
		if n == 0 {
			questions, children = asked, run
			continue
		}
		questions = slices.DeleteFunc(questions, func(q int) bool { return !slices.Contains(asked, q) })
		children = slices.DeleteFunc(children, func(c int) bool { return !slices.Contains(run, c) })
	}
	return questions, children
}

// LeftOpen says that a question stands in a body behind which the flow goes on by it: skipping it there lets what it guards run.
func (g *Graph) LeftOpen(question int) bool {
	body := g.Nodes[question].Body
	return slices.ContainsFunc(g.Nodes, func(n GraphNode) bool {
		return slices.Contains(n.Questions, question) && !g.Within(int(g.byID[n.ID]), body)
	})
}
