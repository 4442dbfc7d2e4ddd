// Package dominance finds out what every way through a graph goes through: the dominator tree of its vertices. It knows nothing of
// workflows.
//
// Package workflow imports it; nothing else does.
package dominance

import "iter"

// Adjacency is a list of lists of vertices in two slices: those of v are list[start[v]:start[v+1]].
type Adjacency struct {
	start, list []int32
}

// Of lists the vertices of one.
func (a *Adjacency) Of(v int32) []int32 { return a.list[a.start[v]:a.start[v+1]] }

// Vertices is how many there are.
func (a *Adjacency) Vertices() int { return len(a.start) - 1 }

// Arcs collects pairs of vertices and turns them into adjacencies.
type Arcs struct {
	from, to []int32
}

// Add adds one arc.
func (a *Arcs) Add(from, to int32) {
	a.from = append(a.from, from)
	a.to = append(a.to, to)
}

// Forward lists the targets of each vertex in the order they were added.
func (a *Arcs) Forward(vertices int) Adjacency { return group(a.from, a.to, vertices) }

// Backward lists the sources of each vertex.
func (a *Arcs) Backward(vertices int) Adjacency { return group(a.to, a.from, vertices) }

func group(by, what []int32, vertices int) Adjacency {
	start := make([]int32, vertices+1)
	for _, v := range by {
		start[v+1]++
	}
	for v := range vertices {
		start[v+1] += start[v]
	}
	next := append([]int32(nil), start[:vertices]...)
	list := make([]int32, len(what))
	for i, v := range by {
		list[next[v]] = what[i]
		next[v]++
	}
	return Adjacency{start, list}
}

// Tree is the dominator tree of the vertices reachable from vertex 0. Vertices have numbers in the order of a
// depth-first walk, so that a dominator's number is smaller than those of what it dominates.
type Tree struct {
	number []int32 // by vertex; -1 for a vertex that vertex 0 does not reach
	vertex []int32 // by number
	parent []int32 // immediate dominator, by number; that of 0 is 0
	// enter and size make the tree's intervals: a dominates b exactly when enter[a] <= enter[b] < enter[a]+size[a].
	enter, size []int32
}

// Of computes the tree by the simple method of Lengauer and Tarjan, which stays near-linear also where thousands
// of nodes of a long chain lead into one (a shared error handler), and does not recurse.
func Of(out, in *Adjacency, vertices int) *Tree {
	d := &Tree{number: make([]int32, vertices)}
	for v := range d.number {
		d.number[v] = -1
	}
	walked := d.walk(out)
	n := len(d.vertex)
	var (
		semi     = make([]int32, n)
		label    = make([]int32, n)
		ancestor = make([]int32, n)
		bucket   = make([]int32, n) // head of the list of vertices with this semidominator
		chained  = make([]int32, n) // next in that list
		path     []int32
	)
	d.parent = make([]int32, n)
	for i := range int32(n) {
		semi[i], label[i], ancestor[i], bucket[i], chained[i] = i, i, -1, -1, -1
	}
	evaluate := func(v int32) int32 {
		if ancestor[v] < 0 {
			return v
		}
		path = path[:0]
		for u := v; ancestor[ancestor[u]] >= 0; u = ancestor[u] {
			path = append(path, u)
		}
		for i := len(path) - 1; i >= 0; i-- {
			u := path[i]
			a := ancestor[u]
			if semi[label[a]] < semi[label[u]] {
				label[u] = label[a]
			}
			ancestor[u] = ancestor[a]
		}
		return label[v]
	}
	for w := int32(n) - 1; w > 0; w-- {
		for _, source := range in.Of(d.vertex[w]) {
			v := d.number[source]
			if v < 0 {
				continue
			}
			semi[w] = min(semi[w], semi[evaluate(v)])
		}
		chained[w] = bucket[semi[w]]
		bucket[semi[w]] = w
		p := walked[w]
		ancestor[w] = p
		for v := bucket[p]; v >= 0; v = chained[v] {
			if u := evaluate(v); semi[u] < semi[v] {
				d.parent[v] = u
			} else {
				d.parent[v] = p
			}
		}
		bucket[p] = -1
	}
	for w := int32(1); w < int32(n); w++ {
		if d.parent[w] != semi[w] {
			d.parent[w] = d.parent[d.parent[w]]
		}
	}
	d.intervals()
	return d
}

// walk numbers the vertices depth first and returns each one's parent in the walk, by number.
func (d *Tree) walk(out *Adjacency) []int32 {
	type step struct{ vertex, next int32 }
	walked := []int32{0}
	d.number[0] = 0
	d.vertex = append(d.vertex, 0)
	stack := []step{{0, out.start[0]}}
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		if top.next == out.start[top.vertex+1] {
			stack = stack[:len(stack)-1]
			continue
		}
		v := out.list[top.next]
		top.next++
		if d.number[v] >= 0 {
			continue
		}
		d.number[v] = int32(len(d.vertex))
		d.vertex = append(d.vertex, v)
		walked = append(walked, d.number[top.vertex])
		stack = append(stack, step{v, out.start[v]})
	}
	return walked
}

func (d *Tree) intervals() {
	n := len(d.vertex)
	d.enter = make([]int32, n)
	d.size = make([]int32, n)
	for i := n - 1; i >= 0; i-- {
		d.size[i]++
		if i > 0 {
			d.size[d.parent[i]] += d.size[i]
		}
	}
	next := make([]int32, n)
	next[0] = 1
	for i := 1; i < n; i++ {
		p := d.parent[i]
		d.enter[i] = next[p]
		next[p] += d.size[i]
		next[i] = d.enter[i] + 1
	}
}

// Dominates tells whether every way from vertex 0 to vertex b goes through vertex a.
func (d *Tree) Dominates(a, b int32) bool {
	x, y := d.number[a], d.number[b]
	return x >= 0 && y >= 0 && d.enter[x] <= d.enter[y] && d.enter[y] < d.enter[x]+d.size[x]
}

// Above lists the vertices that dominate v, the nearest first, without v itself and vertex 0. There are none for a vertex that vertex 0
// does not reach.
func (d *Tree) Above(v int32) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		number := d.number[v]
		if number < 0 {
			return
		}
		for up := d.parent[number]; up > 0; up = d.parent[up] {
			if !yield(d.vertex[up]) {
				return
			}
		}
	}
}

// Down lists every vertex that vertex 0 reaches, without vertex 0, each with the vertex right above it in the tree and after it.
func (d *Tree) Down() iter.Seq2[int32, int32] {
	return func(yield func(vertex, above int32) bool) {
		for i := 1; i < len(d.vertex); i++ {
			if !yield(d.vertex[i], d.vertex[d.parent[i]]) {
				return
			}
		}
	}
}
