package workflow

import "tandem/workflow/dominance"

// maxNesting is how deep scopes may stand inside one another.
const maxNesting = 64

// bodies says which body every node belongs to, and what each link is to them.
//
// A scope node is taken as three vertices: itself, its entry, from which the links of its entry key start, and its exit,
// from which all its others do. A scope's body is what its entry dominates: what can be reached through the entry key
// only. A root vertex leads to the nodes at which an execution can start.
type bodies struct {
	l *linked
	// owners are the scope nodes in definition order; owners[j] opens body j+1.
	owners []int
	opens  []int // by node; 0 for a node that is not a scope
	of     []int // by node: its body
	// unrooted are nodes that no start leads to: they lie on or behind a cycle.
	unrooted []bool
	class    []linkClass // by link
	dom      *dominance.Tree
	out      dominance.Adjacency // of vertices
	outLinks dominance.Adjacency // of nodes: their links, in definition order
	inLinks  dominance.Adjacency
}

type linkClass uint8

const (
	linkInside   linkClass = iota // both ends in one body, or an entry link into the body it opens
	linkBack                      // from a body to the scope node that owns it
	linkCrossing                  // anything else
)

func findBodies(l *linked) *bodies {
	n := len(l.def.Nodes)
	b := &bodies{l: l, opens: make([]int, n), of: make([]int, n), class: make([]linkClass, len(l.links))}
	for i, s := range l.scopes {
		if s != nil && !l.attached[i] {
			b.owners = append(b.owners, i)
			b.opens[i] = len(b.owners)
		}
	}
	b.indexLinks()
	var all dominance.Arcs
	for _, root := range b.roots() {
		all.Add(0, nodeVertex(root))
	}
	for _, owner := range b.owners {
		all.Add(nodeVertex(owner), b.entryVertex(owner))
		all.Add(nodeVertex(owner), b.entryVertex(owner)+1)
	}
	for i := range l.links {
		all.Add(b.sourceVertex(i), nodeVertex(l.links[i].to))
	}
	vertices := 1 + n + 2*len(b.owners)
	b.out = all.Forward(vertices)
	in := all.Backward(vertices)
	b.dom = dominance.Of(&b.out, &in, vertices)
	b.assign()
	b.classify()
	return b
}

func nodeVertex(i int) int32 { return int32(i) + 1 }

// entryVertex is the vertex of a scope node's entry; the exit's is the next one.
func (b *bodies) entryVertex(owner int) int32 {
	return int32(1 + len(b.l.def.Nodes) + 2*(b.opens[owner]-1))
}

func (b *bodies) exitVertex(owner int) int32 { return b.entryVertex(owner) + 1 }

// sourceVertex is the vertex from which a link starts.
func (b *bodies) sourceVertex(i int) int32 {
	from := b.l.links[i].from
	switch {
	case b.opens[from] == 0:
		return nodeVertex(from)
	case b.l.links[i].entry:
		return b.entryVertex(from)
	default:
		return b.exitVertex(from)
	}
}

// sourceBody is the body in which a link starts: for an entry link the one it opens.
func (b *bodies) sourceBody(i int) int {
	from := b.l.links[i].from
	if b.l.links[i].entry {
		return b.opens[from]
	}
	return b.of[from]
}

func (b *bodies) indexLinks() {
	var out, in dominance.Arcs
	for i := range b.l.links {
		out.Add(int32(b.l.links[i].from), int32(i))
		in.Add(int32(b.l.links[i].to), int32(i))
	}
	b.outLinks = out.Forward(len(b.l.def.Nodes))
	b.inLinks = in.Forward(len(b.l.def.Nodes))
}

// roots are the nodes at which an execution can start: those without incoming links, and scope nodes whose only
// incoming links come from their own body. Whatever is left then lies on or behind a cycle; it gets roots too, so that
// the rest of the analysis sees every node.
func (b *bodies) roots() []int {
	n := len(b.l.def.Nodes)
	reached := make([]bool, n)
	var roots []int
	var stack []int
	reach := func(root int) {
		roots = append(roots, root)
		stack = append(stack, root)
		reached[root] = true
		for len(stack) > 0 {
			v := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			for _, i := range b.outLinks.Of(int32(v)) {
				if to := b.l.links[i].to; !reached[to] {
					reached[to] = true
					stack = append(stack, to)
				}
			}
		}
	}
	for i := range n {
		if b.l.attached[i] {
			reached[i] = true
		} else if len(b.inLinks.Of(int32(i))) == 0 {
			reach(i)
		}
	}
	// In a valid graph a search covers no more than a body, so nesting bounds what all of them cost.
	search := &entrySearch{b: b, stamp: make([]int32, n), budget: maxNesting * (n + len(b.l.links))}
	for _, owner := range b.owners {
		if !reached[owner] && search.feedsItself(owner) {
			reach(owner)
		}
	}
	b.unrooted = make([]bool, n)
	for i := range n {
		b.unrooted[i] = !reached[i]
	}
	for _, owner := range b.owners {
		if !reached[owner] {
			reach(owner)
		}
	}
	for i := range n {
		if !reached[i] {
			reach(i)
		}
	}
	return roots
}

// entrySearch asks of scope nodes whether all their incoming links come out of their own entry key.
type entrySearch struct {
	b      *bodies
	stamp  []int32 // by node: the search that has seen it
	round  int32
	stack  []int
	budget int // links still to be followed in all searches together
}

func (s *entrySearch) feedsItself(owner int) bool {
	s.round++
	s.stack = append(s.stack[:0], owner)
	s.stamp[owner] = s.round
	for len(s.stack) > 0 {
		v := s.stack[len(s.stack)-1]
		s.stack = s.stack[:len(s.stack)-1]
		for _, i := range s.b.outLinks.Of(int32(v)) {
			if s.budget--; s.budget < 0 {
				return false
			}
			if v == owner && !s.b.l.links[i].entry {
				continue
			}
			if to := s.b.l.links[i].to; s.stamp[to] != s.round {
				s.stamp[to] = s.round
				s.stack = append(s.stack, to)
			}
		}
	}
	for _, i := range s.b.inLinks.Of(int32(owner)) {
		if from := s.b.l.links[i].from; from == owner || s.stamp[from] != s.round {
			return false
		}
	}
	return true
}

// assign gives every node the body of the nearest entry above it in the dominator tree.
func (b *bodies) assign() {
	n := int32(len(b.l.def.Nodes))
	body := make([]int, b.out.Vertices())
	for v, above := range b.dom.Down() {
		body[v] = body[above]
		switch {
		case v <= n:
			b.of[v-1] = body[v]
		case (v-n-1)%2 == 0:
			body[v] = int(v-n-1)/2 + 1
		}
	}
}

func (b *bodies) classify() {
	for i := range b.l.links {
		source, to := b.sourceBody(i), b.l.links[i].to
		switch {
		case source == b.of[to]:
			b.class[i] = linkInside
		case source != 0 && b.owners[source-1] == to && !b.l.links[i].entry:
			b.class[i] = linkBack
		default:
			b.class[i] = linkCrossing
		}
	}
}

// inBodyOf tells whether a link starts inside the body of a scope node, at any depth.
func (b *bodies) inBodyOf(owner, i int) bool {
	return b.opens[owner] != 0 && b.dom.Dominates(b.entryVertex(owner), b.sourceVertex(i))
}

// outer is the body in which a body's owner stands.
func (b *bodies) outer(body int) int { return b.of[b.owners[body-1]] }

// checkNesting reports the first body that stands too deep.
func (b *bodies) checkNesting() []Problem {
	depth := make([]int, len(b.owners)+1)
	var chain []int
	for body := 1; body <= len(b.owners); body++ {
		chain = chain[:0]
		at := body
		for at != 0 && depth[at] == 0 {
			chain = append(chain, at)
			at = b.outer(at)
		}
		for i := len(chain) - 1; i >= 0; i-- {
			depth[chain[i]] = depth[at] + 1
			at = chain[i]
		}
	}
	for body := 1; body <= len(b.owners); body++ {
		if owner := b.owners[body-1]; depth[body] > maxNesting {
			return []Problem{errorAt(ProblemNesting, nodePath(owner),
				"%q stands %d scopes deep, %d are allowed; move the inner scopes to a workflow of their own and run it with FLOW.SUB_WORKFLOW",
				b.l.def.Nodes[owner].ID, depth[body], maxNesting)}
		}
	}
	return nil
}

// checkEmpty reports scope nodes that have nothing to repeat.
func (b *bodies) checkEmpty() []Problem {
	var problems []Problem
	for _, owner := range b.owners {
		filled := b.l.severed[owner]
		for _, i := range b.outLinks.Of(int32(owner)) {
			filled = filled || b.l.links[i].entry
		}
		if !filled {
			problems = append(problems, errorAt(ProblemEmptyBody, nodePath(owner),
				"%q (%s) has nothing to run: no connection leaves it by the key %q; connect the first node of its body there",
				b.l.def.Nodes[owner].ID, b.l.def.Nodes[owner].Kind(), b.l.scopes[owner].Entry))
		}
	}
	return problems
}
