package workflow

import (
	"fmt"
	"slices"
	"strings"

	"tandem/workflow/dominance"
)

// cycles reports one problem for each knot of nodes that lead back to themselves otherwise than by the back edges of a
// scope. Links that cross a body's border are left out, they have a problem of their own.
func (b *bodies) cycles() []Problem {
	var follow dominance.Arcs
	for i, k := range b.l.links {
		own := k.from == k.to
		back := b.class[i] == linkBack || !own && b.inBodyOf(k.to, i)
		crossing := b.class[i] == linkCrossing && !own && !b.unrooted[k.to]
		if !back && !crossing {
			follow.Add(int32(k.from), int32(i))
		}
	}
	out := follow.Forward(len(b.l.def.Nodes))
	knots := b.knots(&out)
	var problems []Problem
	for n, knot := range knots {
		if slices.ContainsFunc(knot, func(v int) bool { return !b.l.known[v] }) {
			continue // an unknown kind may be a misspelt loop
		}
		if len(problems) == maxCycles {
			problems = append(problems, errorAt(ProblemCycle, "connections",
				"%d more cycles; correct those listed first", len(knots)-n))
			break
		}
		path := b.cyclePath(&out, knot)
		closing := b.l.links[path[len(path)-1]]
		problems = append(problems, errorAt(ProblemCycle, connectionPath(closing.connection),
			"the nodes %s wait for one another and could never start; to repeat them put a FLOW.LOOP, FLOW.FOR_EACH or FLOW.WHILE before them, connect its key \"iteration\" to the first and the last back to it; otherwise remove a connection",
			b.namePath(path)))
	}
	return problems
}

// knots finds the strongly connected components that hold a cycle (Tarjan, without recursion), each sorted, in
// definition order.
func (b *bodies) knots(out *dominance.Adjacency) [][]int {
	n := len(b.l.def.Nodes)
	index := make([]int32, n) // 0: not seen
	low := make([]int32, n)
	onStack := make([]bool, n)
	type step struct{ node, next int32 }
	var (
		walk  []step
		stack []int32
		count int32
		knots [][]int
	)
	enter := func(v int32) {
		count++
		index[v], low[v] = count, count
		stack = append(stack, v)
		onStack[v] = true
		walk = append(walk, step{v, 0})
	}
	for root := range int32(n) {
		if index[root] != 0 {
			continue
		}
		enter(root)
		for len(walk) > 0 {
			top := &walk[len(walk)-1]
			if v, on := top.node, out.Of(top.node); int(top.next) < len(on) {
				to := int32(b.l.links[on[top.next]].to)
				top.next++
				if index[to] == 0 {
					enter(to)
				} else if onStack[to] {
					low[v] = min(low[v], index[to])
				}
				continue
			}
			v := top.node
			walk = walk[:len(walk)-1]
			if len(walk) > 0 {
				p := walk[len(walk)-1].node
				low[p] = min(low[p], low[v])
			}
			if low[v] != index[v] {
				continue
			}
			at := len(stack) - 1
			for stack[at] != v {
				at--
			}
			if len(stack)-at > 1 || b.leadsToItself(out, v) {
				knot := make([]int, 0, len(stack)-at)
				for _, member := range stack[at:] {
					knot = append(knot, int(member))
				}
				slices.Sort(knot)
				knots = append(knots, knot)
			}
			for _, member := range stack[at:] {
				onStack[member] = false
			}
			stack = stack[:at]
		}
	}
	slices.SortFunc(knots, func(x, y []int) int { return x[0] - y[0] })
	return knots
}

func (b *bodies) leadsToItself(out *dominance.Adjacency, v int32) bool {
	for _, i := range out.Of(v) {
		if b.l.links[i].to == int(v) {
			return true
		}
	}
	return false
}

// cyclePath is a shortest cycle through a knot's first node, as links.
func (b *bodies) cyclePath(out *dominance.Adjacency, knot []int) []int {
	first := knot[0]
	by := make(map[int]int, len(knot)) // node: the link it was first reached by
	queue := []int{first}
	for at := 0; at < len(queue); at++ {
		for _, i := range out.Of(int32(queue[at])) {
			to := b.l.links[i].to
			if to == first {
				path := []int{int(i)}
				for v := queue[at]; v != first; v = b.l.links[by[v]].from {
					path = append(path, by[v])
				}
				slices.Reverse(path)
				return path
			}
			if _, ok := by[to]; !ok {
				if _, member := slices.BinarySearch(knot, to); member {
					by[to] = int(i)
					queue = append(queue, to)
				}
			}
		}
	}
	return []int{int(out.Of(int32(first))[0])}
}

// namePath writes a path of links as node ids, the middle of a long one left out.
func (b *bodies) namePath(path []int) string {
	const most = 12
	names := make([]string, 0, len(path)+1)
	for _, i := range path {
		names = append(names, fmt.Sprintf("%q", b.l.def.Nodes[b.l.links[i].from].ID))
	}
	names = append(names, names[0])
	if len(names) > most {
		left := len(names) - most
		names = slices.Concat(names[:most/2], []string{fmt.Sprintf("(%d more)", left)}, names[len(names)-most/2:])
	}
	return strings.Join(names, " → ")
}
