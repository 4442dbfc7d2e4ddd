package workflow

// orderWork bounds how many connections all questions of one order may follow together.
const orderWork = 5_000_000

// order answers whether one node runs before another. Most answers follow from the dominator tree or from the order in
// which nodes can run; the others cost a search, of which the sum is bounded: then it is no longer sure.
type order struct {
	b *bodies
	// sequence is every node, each after all that lead to it, the members of a body directly after its owner.
	sequence []int
	rank     []int // by node: its place in sequence
	stamp    []int // by node: the search that has seen it
	round    int
	budget   int
	carrier  []int // by node: itself, or the node it is attached to
	depth    []int // by body: how deep it stands
}

func newOrder(b *bodies) *order {
	n := len(b.l.def.Nodes)
	o := &order{
		b: b, rank: make([]int, n), stamp: make([]int, n), carrier: make([]int, n), budget: orderWork,
		depth: make([]int, len(b.owners)+1), sequence: make([]int, 0, n),
	}
	members := make([][]int, len(b.owners)+1) // by body, in an order in which they can run
	waits := make([]int, n)
	for i := range b.l.links {
		if b.class[i] != linkBack {
			waits[b.l.links[i].to]++
		}
	}
	ready := make([]int, 0, n)
	for i := range n {
		o.carrier[i] = i
		if waits[i] == 0 {
			ready = append(ready, i)
		}
	}
	for at := 0; at < len(ready); at++ {
		v := ready[at]
		members[b.of[v]] = append(members[b.of[v]], v)
		if open := b.opens[v]; open > 0 {
			o.depth[open] = o.depth[b.of[v]] + 1
		}
		for _, i := range b.outLinks.Of(int32(v)) {
			if b.class[i] == linkBack {
				continue
			}
			to := b.l.links[i].to
			if waits[to]--; waits[to] == 0 {
				ready = append(ready, to)
			}
		}
	}
	for stack := [][]int{members[0]}; len(stack) > 0; {
		top := len(stack) - 1
		if len(stack[top]) == 0 {
			stack = stack[:top]
			continue
		}
		v := stack[top][0]
		stack[top] = stack[top][1:]
		o.rank[v] = len(o.sequence)
		o.sequence = append(o.sequence, v)
		if open := b.opens[v]; open > 0 {
			stack = append(stack, members[open])
		}
	}
	for i, uses := range b.l.uses {
		for _, attached := range uses {
			o.carrier[attached] = i
		}
	}
	return o
}

// before tells whether the first node has run, or may have run in an earlier iteration, when the second runs.
func (o *order) before(first, second int) (before, sure bool) {
	first, second = o.carrier[first], o.carrier[second]
	x, y := o.level(first, second)
	switch {
	case o.b.of[x] != 0:
		return true, true // an iteration before this one
	case x == y:
		return first != second, true // a scope and its own body, or a node and itself
	default:
		return o.follows(x, y)
	}
}

// ordered tells whether two nodes always run in the same order.
func (o *order) ordered(first, second int) (ordered, sure bool) {
	x, y := o.level(o.carrier[first], o.carrier[second])
	if o.rank[x] > o.rank[y] {
		x, y = y, x
	}
	if x == y {
		return true, true
	}
	return o.follows(x, y)
}

// level finds the nodes that stand for two nodes in the innermost body around both: themselves, or the scope nodes they
// are in.
func (o *order) level(x, y int) (int, int) {
	for o.b.of[x] != o.b.of[y] {
		if o.depth[o.b.of[x]] >= o.depth[o.b.of[y]] {
			x = o.b.owners[o.b.of[x]-1]
		} else {
			y = o.b.owners[o.b.of[y]-1]
		}
	}
	return x, y
}

// follows tells whether x leads to y, both in one body.
func (o *order) follows(x, y int) (follows, sure bool) {
	switch {
	case o.rank[x] > o.rank[y]:
		return false, true
	case o.b.dom.Dominates(nodeVertex(x), nodeVertex(y)):
		return true, true
	default:
		return o.leads(x, y)
	}
}

// leads searches backwards from y for x, through nodes that can run after x only.
func (o *order) leads(x, y int) (leads, sure bool) {
	o.round++
	stack := []int{y}
	for len(stack) > 0 {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, i := range o.b.inLinks.Of(int32(v)) {
			if o.budget--; o.budget < 0 {
				return false, false
			}
			from := o.b.l.links[i].from
			if o.b.class[i] == linkBack || o.rank[from] < o.rank[x] || o.stamp[from] == o.round {
				continue
			}
			if from == x {
				return true, true
			}
			o.stamp[from] = o.round
			stack = append(stack, from)
		}
	}
	return false, true
}
