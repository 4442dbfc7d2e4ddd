package workflow

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// bodyNames lists a body's members by id.
func bodyNames(g *Graph, owner string) []string {
	body := 0
	if owner != "" {
		i, _ := g.Node(owner)
		body = g.Nodes[i].Opens
	}
	names := []string{}
	for _, n := range g.Bodies[body].Nodes {
		names = append(names, g.Nodes[n].ID)
	}
	return names
}

func mustCompile(t testing.TB, def *Definition) *Graph {
	t.Helper()
	g, problems := Compile(def, newKinds())
	if g == nil {
		t.Fatalf("no graph: %v", problems)
	}
	checkInvariants(t, g)
	return g
}

// checkInvariants tests what must hold of every graph.
func checkInvariants(t failer, g *Graph) {
	t.Helper()
	members := 0
	for j, body := range g.Bodies {
		if (body.Owner < 0) != (j == 0) {
			t.Fatalf("body %d has owner %d", j, body.Owner)
		}
		if j > 0 && (g.Nodes[body.Owner].Opens != j || len(body.Entry) == 0) {
			t.Fatalf("body %d: owner opens %d, entry %v", j, g.Nodes[body.Owner].Opens, body.Entry)
		}
		for local, n := range body.Nodes {
			members++
			if g.Nodes[n].Body != j || g.Nodes[n].Local != local || g.Nodes[n].Attached {
				t.Fatalf("node %q: body %d local %d, listed in %d at %d", g.Nodes[n].ID, g.Nodes[n].Body, g.Nodes[n].Local, j, local)
			}
		}
		for local, e := range body.Edges {
			edge := g.Edges[e]
			if edge.Local != local || edge.Back || g.Nodes[edge.To].Body != j {
				t.Fatalf("edge %q is not at home in body %d", edge.ID, j)
			}
			if edge.Entry {
				if edge.From != body.Owner || !slices.Contains(body.Entry, e) {
					t.Fatalf("edge %q enters body %d of %d", edge.ID, j, body.Owner)
				}
			} else if g.Nodes[edge.From].Body != j {
				t.Fatalf("edge %q crosses into body %d", edge.ID, j)
			}
		}
		if len(body.Nodes) > 0 && len(body.Last) == 0 {
			t.Fatalf("body %d has no last node", j)
		}
	}
	for i := range g.Nodes {
		node := &g.Nodes[i]
		if node.Attached {
			members++
			if node.Local != -1 || len(node.In)+len(node.Out) > 0 {
				t.Fatalf("attached node %q takes part in the flow", node.ID)
			}
		}
		for _, e := range node.In {
			if g.Edges[e].To != i || g.Edges[e].Back {
				t.Fatalf("node %q lists edge %q as incoming", node.ID, g.Edges[e].ID)
			}
		}
		for _, e := range node.Out {
			if g.Edges[e].From != i {
				t.Fatalf("node %q lists edge %q as outgoing", node.ID, g.Edges[e].ID)
			}
		}
		if !slices.IsSorted(node.In) || !slices.IsSorted(node.Out) {
			t.Fatalf("node %q: edges out of definition order", node.ID)
		}
		if node.Feeds >= 0 && !g.Nodes[node.Feeds].Plan.Join.First {
			t.Fatalf("node %q feeds %q, which is not a first-join", node.ID, g.Nodes[node.Feeds].ID)
		}
	}
	for e, edge := range g.Edges {
		if edge.Back {
			if edge.Local != -1 || edge.To != g.Bodies[g.Nodes[edge.From].Body].Owner {
				t.Fatalf("edge %d %q is not a back edge", e, edge.ID)
			}
		} else if !slices.Contains(g.Nodes[edge.To].In, e) {
			t.Fatalf("edge %q is missing among its target's", edge.ID)
		}
	}
	if members != len(g.Nodes) {
		t.Fatalf("%d of %d nodes have a place", members, len(g.Nodes))
	}
	if len(g.reverseOrder()) != len(g.Nodes) {
		t.Fatal("the graph has a cycle")
	}
}

func TestCompile(t *testing.T) {
	t.Parallel()
	t.Run("Diamond", func(t *testing.T) {
		t.Parallel()
		g := mustCompile(t, graphOf("start: TRIGGER.MANUAL", "start --> a", "start --> b", "a --> end", "b -main-> end"))
		if diff := cmp.Diff([]string{"start", "a", "b", "end"}, bodyNames(g, "")); diff != "" {
			t.Error(diff)
		}
		if got := g.Edges[3].Key; got != "result" {
			t.Errorf("key %q, want main read as result", got)
		}
		if diff := cmp.Diff([]int{0}, g.Triggers); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("NestedLoops", func(t *testing.T) {
		t.Parallel()
		g := mustCompile(t, graphOf(
			"x: CALL.EMPTY", "inner: FLOW.FOR_EACH", "outer: FLOW.LOOP",
			"start --> outer", "outer -iteration-> inner", "inner -iteration-> x", "x --> inner", "inner -completed-> y",
			"y --> outer", "outer -completed-> done",
		))
		for owner, want := range map[string][]string{
			"": {"outer", "start", "done"}, "outer": {"inner", "y"}, "inner": {"x"},
		} {
			if diff := cmp.Diff(want, bodyNames(g, owner)); diff != "" {
				t.Errorf("body of %q: %s", owner, diff)
			}
		}
		inner, _ := g.Node("inner")
		if len(g.Nodes[inner].In) != 1 {
			t.Errorf("inner has %d incoming edges, want its back edge left out", len(g.Nodes[inner].In))
		}
		y, _ := g.Node("y")
		if diff := cmp.Diff([]int{y}, g.Bodies[g.Nodes[mustNode(t, g, "outer")].Opens].Last); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("LoopWithoutPredecessor", func(t *testing.T) {
		t.Parallel()
		g := mustCompile(t, graphOf(
			"inner: FLOW.LOOP", "loop: FLOW.LOOP", "loop -iteration-> a", "a --> inner", "inner -iteration-> b", "b --> inner",
			"inner -completed-> loop", "loop -completed-> done",
		))
		if diff := cmp.Diff([]string{"inner", "a"}, bodyNames(g, "loop")); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"loop", "done"}, bodyNames(g, "")); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("BodyWithoutBackEdge", func(t *testing.T) {
		t.Parallel()
		g := mustCompile(t, graphOf("t: FLOW.TIMEOUT", "t -body-> a", "a --> b", "a --> c", "t -timeout-> late", "t --> ok"))
		if diff := cmp.Diff([]string{"a", "b", "c"}, bodyNames(g, "t")); diff != "" {
			t.Error(diff)
		}
		if got := len(g.Bodies[1].Last); got != 2 {
			t.Errorf("%d last nodes, want 2", got)
		}
	})
	t.Run("UnscopedNodeOfScopeKind", func(t *testing.T) {
		t.Parallel()
		g := mustCompile(t, graphOf(`s: FLOW.SPLIT {"split_mode":"predicate"}`, "s -left-> a", "s -right-> b", "a --> m", "b --> m"))
		if len(g.Bodies) != 1 {
			t.Errorf("%d bodies, want the top level only", len(g.Bodies))
		}
	})
	t.Run("AttachedNodesTakeNoPart", func(t *testing.T) {
		t.Parallel()
		def := graphOf("ai: AI_AGENT.LLM", "tool: TOOL.MCP_TOOL", "mem: MEMORY.KEY_VALUE_STORE", "ai --> end")
		def.Nodes[0].AttachedNodes = []string{"mem", "tool"}
		g := mustCompile(t, def)
		if diff := cmp.Diff([]int{2, 1}, g.Nodes[0].Uses); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"ai", "end"}, bodyNames(g, "")); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("Triggers", func(t *testing.T) {
		t.Parallel()
		def := graphOf("a: TRIGGER.MANUAL", `off: TRIGGER.CRON {"enabled":false}`, "c: TRIGGER.CRON", "a --> x", "off --> x", "c --> x")
		if diff := cmp.Diff([]int{0, 2}, mustCompile(t, def).Triggers); diff != "" {
			t.Error(diff)
		}
		def.Triggers = []string{"c", "c"}
		if diff := cmp.Diff([]int{2}, mustCompile(t, def).Triggers); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("Segments", func(t *testing.T) {
		t.Parallel()
		for id, want := range map[string]string{
			"plain": "plain", "a/b[0]%": "a%2Fb%5B0%5D%25", "tab\t": "tab%09", "中文": "中文", "nel\u0085": "nel%C2%85", "bad\xff": "bad%FF",
		} {
			if got := segment(id); got != want {
				t.Errorf("segment(%q) = %q, want %q", id, got, want)
			}
		}
	})
	t.Run("Timeout", func(t *testing.T) {
		t.Parallel()
		def := graphOf("a --> b")
		def.Metadata.Settings.TimeoutSeconds = 1.5
		if got := mustCompile(t, def).TimeoutMS; got != 1500 {
			t.Errorf("TimeoutMS = %d, want 1500", got)
		}
	})
}

func mustNode(t testing.TB, g *Graph, id string) int {
	t.Helper()
	i, ok := g.Node(id)
	if !ok {
		t.Fatalf("no node %q", id)
	}
	return i
}

func TestCompileFeeds(t *testing.T) {
	t.Parallel()
	first := `: FLOW.MERGE {"first":true}`
	tests := []struct {
		name  string
		lines []string
		want  map[string]string // node: the join it feeds, "" for none
	}{
		{"Direct", []string{"j" + first, "s --> a", "s --> b", "a --> j", "b --> c", "c --> j", "j --> end"},
			map[string]string{"s": "j", "a": "j", "b": "j", "c": "j", "j": "", "end": ""}},
		{"SideWay", []string{"j" + first, "a --> j", "a --> log", "b --> j"},
			map[string]string{"a": "", "log": "", "b": "j"}},
		{"NearestOfSeveral", []string{"j" + first, "k" + first, "a --> j", "j --> k", "b --> k"},
			map[string]string{"a": "j", "j": "k", "b": "k"}},
		{"BehindBoth", []string{"j" + first, "k" + first, "l" + first, "v --> j", "v --> k", "j --> l", "k --> l", "w --> v"},
			map[string]string{"v": "l", "w": "l", "j": "l", "k": "l", "l": ""}},
		{"TwoJoins", []string{"j" + first, "k" + first, "v --> j", "v --> k"},
			map[string]string{"v": "", "j": "", "k": ""}},
		{"WaitingJoinIsNone", []string{"j: FLOW.MERGE", "a --> j"}, map[string]string{"a": ""}},
		{"ScopeByItsExits", []string{"j" + first, "loop: FLOW.LOOP", "loop -iteration-> x", "x --> loop", "loop -completed-> j"},
			map[string]string{"loop": "j", "x": ""}},
		{"InsideBody", []string{"j" + first, "loop: FLOW.LOOP", "loop -iteration-> x", "loop -iteration-> y", "x --> j", "y --> j", "j --> loop"},
			map[string]string{"x": "j", "y": "j", "j": "", "loop": ""}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := mustCompile(t, graphOf(tt.lines...))
			for id, want := range tt.want {
				got := ""
				if f := g.Nodes[mustNode(t, g, id)].Feeds; f >= 0 {
					got = g.Nodes[f].ID
				}
				if got != want {
					t.Errorf("%s feeds %q, want %q", id, got, want)
				}
			}
		})
	}
}

func TestCompileShapeProblems(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		lines []string
		want  []string // code and path
		says  string
	}{
		{"Cycle", []string{"s --> a", "a --> b", "b --> c", "c --> a"}, []string{"cycle connections[3]"}, `"a" → "b" → "c" → "a"`},
		{"CycleWithoutStart", []string{"a --> b", "b --> a"}, []string{"cycle connections[1]"}, `"a" → "b" → "a"`},
		{"SelfCycle", []string{"s --> a", "a --> a"}, []string{"cycle connections[1]"}, `"a" → "a"`},
		{"TwoCycles", []string{"s --> a", "a --> b", "b --> a", "s --> c", "c --> c"},
			[]string{"cycle connections[2]", "cycle connections[4]"}, ""},
		{"LoopOntoItself", []string{"loop: FLOW.LOOP", "s --> loop", "loop -iteration-> loop"}, []string{"cycle connections[1]"}, ""},
		{"ExitComesBack", []string{"loop: FLOW.LOOP", "s --> loop", "loop -iteration-> x", "x --> loop", "loop -completed-> y", "y --> loop"},
			[]string{"cycle connections[4]"}, `"loop" → "y" → "loop"`},
		{"ExitComesBackWithoutStart", []string{"x: CALL.EMPTY", "loop: FLOW.LOOP", "loop -iteration-> x", "x --> loop", "loop -completed-> y", "y --> loop"},
			[]string{"cycle connections[3]"}, ""},
		{"LeavesBody", []string{"loop: FLOW.LOOP", "s --> loop", "loop -iteration-> x", "loop -completed-> done", "x --> done"},
			[]string{"edge_crosses_scope connections[3]"}, `leaves the body of "loop"`},
		{"InBodyAndAfter", []string{"loop: FLOW.LOOP", "s --> loop", "loop -iteration-> x", "loop -completed-> x"},
			[]string{"edge_crosses_scope connections[1]"}, "not both"},
		{"EntersBody", []string{"loop: FLOW.LOOP", "s --> loop", "s --> x", "loop -iteration-> x", "x --> y", "y --> loop", "loop -completed-> done"},
			[]string{"edge_crosses_scope connections[1]"}, `connect "s" to "loop" instead`},
		{"EntersNestedBody", []string{"o: FLOW.LOOP", "i: FLOW.LOOP", "s --> o", "s --> x", "o -iteration-> i", "i -iteration-> x", "x --> i",
			"i -completed-> z", "z --> o", "o -completed-> done"}, []string{"edge_crosses_scope connections[1]"}, `from "s" to "x"`},
		{"BackToOuterLoop", []string{"o: FLOW.LOOP", "i: FLOW.LOOP", "s --> o", "o -iteration-> i", "i -iteration-> x", "x --> o",
			"o -completed-> done"}, []string{"edge_crosses_scope connections[3]"}, `leaves the body of "i"`},
		{"LeavesTwoBodies", []string{"o: FLOW.LOOP", "i: FLOW.LOOP", "s --> o", "o -iteration-> i", "i -iteration-> x", "i -completed-> o",
			"o -completed-> done", "x --> done"}, []string{"edge_crosses_scope connections[5]"}, `leaves the body of "o"`},
		{"BackBeforeLoop", []string{"loop: FLOW.LOOP", "s --> a", "a --> loop", "loop -iteration-> x", "x --> a"},
			[]string{"edge_crosses_scope connections[3]"}, ""},
		{"SharedByTwoBodies", []string{"p: FLOW.LOOP", "q: FLOW.LOOP", "p -iteration-> x", "q -iteration-> x"},
			[]string{"edge_crosses_scope connections[0]", "edge_crosses_scope connections[1]"}, ""},
		{"CrossingAndCycle", []string{"loop: FLOW.LOOP", "s --> loop", "loop -iteration-> x", "x --> done", "loop -completed-> done",
			"s --> a", "a --> b", "b --> a"}, []string{"edge_crosses_scope connections[2]", "cycle connections[6]"}, ""},
		{"EmptyBody", []string{"loop: FLOW.LOOP", "s --> loop", "loop -completed-> done"}, []string{"empty_body nodes[0]"}, `"iteration"`},
		{"UnknownKindMayBeALoop", []string{"l: FLOW.LOPP", "s --> l", "l -iteration-> x", "x --> l"}, []string{"unknown_kind nodes[0].subtype"}, `"LOOP"`},
		{"InnerCycleInBody", []string{"loop: FLOW.LOOP", "s --> loop", "loop -iteration-> x", "x --> y", "y --> x", "y --> loop"},
			[]string{"cycle connections[3]"}, `"x" → "y" → "x"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g, problems := Compile(graphOf(tt.lines...), newKinds())
			if g != nil {
				t.Error("a graph in spite of errors")
			}
			got := codesAndPaths(problems)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Fatalf("%s\n%v", diff, problems)
			}
			if !strings.Contains(problems[0].Message, tt.says) {
				t.Errorf("message %q does not say %q", problems[0].Message, tt.says)
			}
		})
	}
}

func codesAndPaths(problems []Problem) []string {
	got := []string{}
	for _, p := range problems {
		got = append(got, p.Code+" "+p.Path)
	}
	return got
}

func TestCompileNesting(t *testing.T) {
	t.Parallel()
	nest := func(depth int) *Definition {
		var lines []string
		for i := range depth {
			lines = append(lines, "l"+itoa(i)+": FLOW.LOOP")
		}
		for i := range depth - 1 {
			lines = append(lines, "l"+itoa(i)+" -iteration-> l"+itoa(i+1))
		}
		return graphOf(append(lines, "l"+itoa(depth-1)+" -iteration-> x")...)
	}
	mustCompile(t, nest(maxNesting))
	_, problems := Compile(nest(maxNesting+1), newKinds())
	if diff := cmp.Diff([]string{"nesting_too_deep nodes[64]"}, codesAndPaths(problems)); diff != "" {
		t.Error(diff)
	}
}

// failer is what tests and property tests have in common.
type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}
