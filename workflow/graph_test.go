package workflow

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// nested is a random workflow of nested scopes together with the body that every node was put into.
type nested struct {
	def   *Definition
	owner map[string]string // node: the scope node whose body it is in
	count int
}

func drawNested(t *rapid.T) *nested {
	n := &nested{def: &Definition{Metadata: Metadata{Name: "random"}}, owner: make(map[string]string)}
	n.region(t, "", 3)
	n.def.Nodes = rapid.Permutation(n.def.Nodes).Draw(t, "nodes")
	n.def.Connections = rapid.Permutation(n.def.Connections).Draw(t, "connections")
	return n
}

func (n *nested) link(from, key, to string) {
	n.def.Connections = append(n.def.Connections, Connection{
		ID: fmt.Sprintf("c%d", len(n.def.Connections)), FromNode: from, ToNode: to, OutputKey: key,
	})
}

// exit is the key by which the flow goes on after a node.
func (n *nested) exit(id string) string {
	for i := range n.def.Nodes {
		if n.def.Nodes[i].ID == id && n.def.Nodes[i].Subtype == "LOOP" {
			return "completed"
		}
	}
	return DefaultKey
}

// region makes an acyclic graph of one to five nodes in the body of owner; some of them are scopes with bodies of their
// own.
func (n *nested) region(t *rapid.T, owner string, depth int) {
	var members []string
	for range rapid.IntRange(1, 5).Draw(t, "size") {
		id := fmt.Sprintf("n%d", n.count)
		n.count++
		node := Node{ID: id, Name: id, Type: "CALL", Subtype: "EMPTY", Description: "d"}
		switch kind := rapid.IntRange(0, 5).Draw(t, "kind"); {
		case kind == 0 && depth > 0:
			node.Type, node.Subtype = "FLOW", "LOOP"
		case kind == 1:
			node.Type, node.Subtype, node.Configurations = "FLOW", "MERGE", []byte(`{"first":true}`)
		}
		n.def.Nodes = append(n.def.Nodes, node)
		n.owner[id] = owner
		for i, earlier := range members {
			if rapid.IntRange(0, 2).Draw(t, "edge") == 0 {
				n.link(earlier, n.exit(members[i]), id)
			}
		}
		entered := slices.ContainsFunc(n.def.Connections, func(c Connection) bool { return c.ToNode == id })
		if owner != "" && (!entered || rapid.IntRange(0, 5).Draw(t, "enter") == 0) {
			n.link(owner, "iteration", id)
		}
		members = append(members, id)
		if node.Subtype == "LOOP" {
			n.region(t, id, depth-1)
		}
	}
	if owner != "" {
		for _, id := range members {
			if rapid.IntRange(0, 3).Draw(t, "back") == 0 {
				n.link(id, n.exit(id), owner)
			}
		}
	}
}

func TestCompileFindsRegions(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := drawNested(t)
		g, problems := Compile(n.def, newKinds())
		if g == nil {
			t.Fatal(problems)
		}
		checkInvariants(t, g)
		for i := range g.Nodes {
			got := ""
			if owner := g.Bodies[g.Nodes[i].Body].Owner; owner >= 0 {
				got = g.Nodes[owner].ID
			}
			if want := n.owner[g.Nodes[i].ID]; got != want {
				t.Fatalf("%s is in the body of %q, not of %q", g.Nodes[i].ID, got, want)
			}
			if want := naiveFeeds(g, i); g.Nodes[i].Feeds != want {
				t.Fatalf("%s feeds %d, want %d", g.Nodes[i].ID, g.Nodes[i].Feeds, want)
			}
		}
	})
}

// naiveFeeds tries every join: what the node leads to without it must hold no end.
func naiveFeeds(g *Graph, v int) int {
	without := func(join int) (seen map[int]bool, only bool) {
		seen, only = map[int]bool{v: true}, true
		stack := []int{v}
		for len(stack) > 0 {
			at := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			ways := 0
			for _, e := range g.Nodes[at].Out {
				edge := g.Edges[e]
				if edge.Entry {
					continue
				}
				ways++
				only = only && !edge.Back
				if !edge.Back && edge.To != join && !seen[edge.To] {
					seen[edge.To] = true
					stack = append(stack, edge.To)
				}
			}
			only = only && ways > 0
		}
		return seen, only
	}
	var joins []int
	for j := range g.Nodes {
		if j != v && g.Nodes[j].Plan.Join.First && g.Nodes[j].Body == g.Nodes[v].Body {
			if _, only := without(j); only {
				joins = append(joins, j)
			}
		}
	}
	for _, j := range joins {
		seen, _ := without(j)
		if !slices.ContainsFunc(joins, func(other int) bool { return other != j && seen[other] }) {
			return j
		}
	}
	return -1
}

// TestCompileRandomEdges adds arbitrary connections to a sound workflow: the result is refused for a reason of its
// shape, or it is a graph whose bodies are what only the entry key leads to.
func TestCompileRandomEdges(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := drawNested(t)
		ids := make([]string, len(n.def.Nodes))
		for i := range n.def.Nodes {
			ids[i] = n.def.Nodes[i].ID
		}
		for range rapid.IntRange(1, 3).Draw(t, "added") {
			from := rapid.SampledFrom(ids).Draw(t, "from")
			key := n.exit(from)
			if key == "completed" && rapid.Bool().Draw(t, "entry") {
				key = "iteration"
			}
			n.link(from, key, rapid.SampledFrom(ids).Draw(t, "to"))
		}
		g, problems := Compile(n.def, newKinds())
		if g == nil {
			for _, p := range problems {
				if p.Code != ProblemCycle && p.Code != ProblemCrossing {
					t.Fatalf("unexpected %v", p)
				}
			}
			if !HasErrors(problems) {
				t.Fatal("refused without a reason")
			}
			return
		}
		checkInvariants(t, g)
		for j := 1; j < len(g.Bodies); j++ {
			outside := reachedWithoutEntry(g, g.Bodies[j].Owner)
			for i := range g.Nodes {
				inside := false
				for body := g.Nodes[i].Body; body != 0; body = g.Nodes[g.Bodies[body].Owner].Body {
					inside = inside || body == j
				}
				if inside == outside[i] {
					t.Fatalf("%s: in the body of %s %v, reached without its entry %v", g.Nodes[i].ID,
						g.Nodes[g.Bodies[j].Owner].ID, inside, outside[i])
				}
			}
		}
	})
}

// reachedWithoutEntry follows all edges but the entry edges of one scope node from where executions start.
func reachedWithoutEntry(g *Graph, owner int) []bool {
	reached := make([]bool, len(g.Nodes))
	var stack []int
	for i := range g.Nodes {
		if len(g.Nodes[i].In) == 0 {
			reached[i] = true
			stack = append(stack, i)
		}
	}
	for len(stack) > 0 {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, e := range g.Nodes[v].Out {
			if edge := g.Edges[e]; !reached[edge.To] && !(edge.Entry && v == owner) {
				reached[edge.To] = true
				stack = append(stack, edge.To)
			}
		}
	}
	return reached
}

// TestCompileLarge compiles shapes that break methods whose time grows with the square of the graph.
func TestCompileLarge(t *testing.T) {
	t.Parallel()
	const n = 10_000
	build := func(kind func(i int) string, links func(link func(from int, key string, to int))) *Definition {
		def := &Definition{}
		for i := range n {
			typ, subtype := "CALL", kind(i)
			if subtype != "EMPTY" {
				typ = "FLOW"
			}
			node := Node{ID: itoa(i), Name: itoa(i), Type: typ, Subtype: subtype, Description: "d", OutputParams: []byte(`{"same":1}`)}
			if subtype == "MERGE" {
				node.Configurations = []byte(`{"first":true}`)
			}
			if i > 0 {
				node.InputParams = []byte(`{"a":"{{0.outputs.x}} {{` + itoa(i/2) + `.outputs.x}}"}`)
			}
			def.Nodes = append(def.Nodes, node)
		}
		links(func(from int, key string, to int) {
			def.Connections = append(def.Connections, Connection{
				ID: itoa(len(def.Connections)), FromNode: itoa(from), OutputKey: key, ToNode: itoa(to),
			})
		})
		return def
	}
	plain := func(int) string { return "EMPTY" }
	loop := func(int) string { return "LOOP" }
	shapes := map[string]struct {
		def   *Definition
		sound bool
	}{
		"ChainIntoOne": {build(plain, func(link func(int, string, int)) {
			for i := range n - 2 {
				link(i, "result", i+1)
				link(i, "result", n-1)
			}
		}), true},
		"Ladder": {build(plain, func(link func(int, string, int)) {
			for i := range n - 2 {
				link(i, "result", i+2)
				link(i, "result", i+1)
			}
		}), true},
		"LoopsInARow": {build(func(i int) string { return []string{"LOOP", "EMPTY"}[i%2] }, func(link func(int, string, int)) {
			for i := 0; i < n-2; i += 2 {
				link(i, "iteration", i+1)
				link(i+1, "result", i)
				link(i, "completed", i+2)
			}
			link(n-2, "iteration", n-1)
		}), true},
		"JoinsInARow": {build(func(int) string { return "MERGE" }, func(link func(int, string, int)) {
			for i := range n - 2 {
				link(i, "result", i+1)
				link(i, "result", n-1)
			}
		}), true},
		"LoopsInLoops": {build(loop, func(link func(int, string, int)) {
			for i := range n - 1 {
				link(i, "iteration", i+1)
			}
		}), false},
		"Cycle": {build(plain, func(link func(int, string, int)) {
			for i := range n {
				link(i, "result", (i+1)%n)
			}
		}), false},
		"CycleOfLoops": {build(loop, func(link func(int, string, int)) {
			for i := range n {
				link(i, "iteration", (i+1)%n)
				link(i, "completed", (i+7)%n)
			}
		}), false},
		"AllCrossing": {build(func(i int) string { return []string{"LOOP", "EMPTY"}[i%2] }, func(link func(int, string, int)) {
			for i := 0; i < n-2; i += 2 {
				link(i, "iteration", i+1)
				link(i+1, "result", i+2)
				link(i, "completed", i+2)
			}
			link(n-2, "iteration", n-1)
		}), false},
	}
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			problems := Validate(shape.def, testRules())
			if HasErrors(problems) == shape.sound {
				t.Fatalf("sound: %v, but %v", shape.sound, problems[:min(3, len(problems))])
			}
			if g, _ := Compile(shape.def, newKinds()); (g != nil) != shape.sound {
				t.Fatalf("sound: %v, but graph %v", shape.sound, g != nil)
			}
		})
	}
}
