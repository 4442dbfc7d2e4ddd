package workflow

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Compile makes the graph of a definition. With any error among the problems there is no graph. It reports what stands
// in the way of execution only; [Validate] reports the rest as well, and an error of it that is only about saving is a
// warning here.
func Compile(def *Definition, kinds Kinds) (*Graph, []Problem) {
	l := linkUp(def, kinds)
	b, shape := checkShape(l)
	for _, p := range shape {
		l.report(p)
	}
	problems := l.ordered()
	for i := range problems {
		if problems[i].Saving {
			problems[i].Severity = SeverityWarning
		}
	}
	if HasErrors(problems) {
		return nil, problems
	}
	return assemble(b), problems
}

// assemble builds the graph of bodies that have no error.
func assemble(b *bodies) *Graph {
	l := b.l
	g := &Graph{
		Hash:      Hash(l.def),
		TimeoutMS: int64(math.Round(l.def.Metadata.Settings.TimeoutSeconds * 1000)),
		Nodes:     make([]GraphNode, len(l.def.Nodes)),
		Edges:     make([]Edge, len(l.links)),
		Bodies:    make([]Body, len(b.owners)+1),
		byID:      l.byID,
		bySegment: make(map[string]int, len(l.def.Nodes)),
	}
	g.Bodies[0].Owner = -1
	for j, owner := range b.owners {
		g.Bodies[j+1].Owner = owner
	}
	for i := range l.def.Nodes {
		node := &l.def.Nodes[i]
		g.Nodes[i] = GraphNode{
			ID: node.ID, Name: node.Name, Kind: node.Kind(), Segment: segment(node.ID),
			Body: b.of[i], Local: -1, Opens: b.opens[i], Feeds: -1,
			Attached: l.attached[i], Uses: l.uses[i], Pinned: len(node.Pinned) > 0, Plan: l.plans[i],
		}
		if g.Nodes[i].Name == "" {
			g.Nodes[i].Name = node.ID
		}
		g.bySegment[g.Nodes[i].Segment] = i
		if !l.attached[i] {
			body := &g.Bodies[b.of[i]]
			g.Nodes[i].Local = len(body.Nodes)
			body.Nodes = append(body.Nodes, i)
		}
	}
	for i, k := range l.links {
		conn := &l.def.Connections[k.connection]
		edge := Edge{
			ID: conn.ID, From: k.from, To: k.to, Key: k.key, Converts: strings.TrimSpace(conn.ConversionFunction) != "",
			Entry: k.entry, Back: b.class[i] == linkBack, Local: -1,
		}
		g.Nodes[k.from].Out = append(g.Nodes[k.from].Out, i)
		if !edge.Back {
			g.Nodes[k.to].In = append(g.Nodes[k.to].In, i)
			body := &g.Bodies[b.of[k.to]]
			edge.Local = len(body.Edges)
			body.Edges = append(body.Edges, i)
			if k.entry {
				body.Entry = append(body.Entry, i)
			}
		}
		g.Edges[i] = edge
	}
	for j := range g.Bodies {
		g.Bodies[j].Last = g.lastOf(j)
	}
	g.Triggers = triggersOf(l)
	g.findFeeds()
	g.findQuestions(l.scopes)
	return g
}

// lastOf lists the members of a body none of whose edges leads to another member.
func (g *Graph) lastOf(body int) []int {
	var last []int
	for _, n := range g.Bodies[body].Nodes {
		goesOn := false
		for _, e := range g.Nodes[n].Out {
			edge := &g.Edges[e]
			goesOn = goesOn || !edge.Back && g.Nodes[edge.To].Body == body
		}
		if !goesOn {
			last = append(last, n)
		}
	}
	return last
}

// triggersOf are the enabled TRIGGER nodes that the definition names, or all of them when it names none, by index.
func triggersOf(l *linked) []int {
	named := make([]bool, len(l.def.Nodes))
	for _, id := range l.def.Triggers {
		named[l.byID[id]] = true
	}
	var triggers []int
	for i := range l.def.Nodes {
		if l.def.Nodes[i].Type == TypeTrigger && !l.plans[i].Disabled && len(l.def.Nodes[i].Pinned) == 0 &&
			(named[i] || len(l.def.Triggers) == 0) {
			triggers = append(triggers, i)
		}
	}
	return triggers
}

// findFeeds sets every node's Feeds, from the ends of the graph backwards. The joins that feed one another form trees;
// where the ways out of a node lead to different joins, the nearest join behind all of them counts, and skip (an
// ancestor some way up, as in a skew-binary list) finds it in logarithmic time however long the chain of joins is.
func (g *Graph) findFeeds() {
	n := len(g.Nodes)
	depth := make([]int32, n)
	skip := make([]int32, n)
	place := func(join int) {
		parent := g.Nodes[join].Feeds
		skip[join] = int32(join)
		if parent < 0 {
			return
		}
		depth[join] = depth[parent] + 1
		skip[join] = int32(parent)
		if p := skip[parent]; depth[parent]-depth[p] == depth[p]-depth[skip[p]] {
			skip[join] = skip[p]
		}
	}
	common := func(x, y int) int {
		if depth[x] < depth[y] {
			x, y = y, x
		}
		for depth[x] > depth[y] {
			if s := int(skip[x]); depth[s] >= depth[y] {
				x = s
			} else {
				x = g.Nodes[x].Feeds
			}
		}
		for x != y {
			switch {
			case depth[x] == 0:
				return -1
			case skip[x] != skip[y]:
				x, y = int(skip[x]), int(skip[y])
			default:
				x, y = g.Nodes[x].Feeds, g.Nodes[y].Feeds
			}
		}
		return x
	}
	for _, v := range g.reverseOrder() {
		node := &g.Nodes[v]
		feeds, ways := -1, 0
		for _, e := range node.Out {
			edge := &g.Edges[e]
			if edge.Entry {
				continue
			}
			target := -1
			if !edge.Back {
				if target = edge.To; !g.Nodes[target].Plan.Join.First {
					target = g.Nodes[target].Feeds
				}
			}
			if ways++; ways > 1 && feeds >= 0 && target >= 0 {
				target = common(feeds, target)
			}
			if feeds = target; feeds < 0 {
				break
			}
		}
		node.Feeds = feeds
		if node.Plan.Join.First {
			place(v)
		}
	}
}

// reverseOrder lists the nodes so that each comes after all that its edges, back edges left out, lead to.
func (g *Graph) reverseOrder() []int {
	waits := make([]int, len(g.Nodes))
	order := make([]int, 0, len(g.Nodes))
	for i := range g.Nodes {
		for _, e := range g.Nodes[i].Out {
			if !g.Edges[e].Back {
				waits[i]++
			}
		}
		if waits[i] == 0 {
			order = append(order, i)
		}
	}
	for at := 0; at < len(order); at++ {
		for _, e := range g.Nodes[order[at]].In {
			from := g.Edges[e].From
			if waits[from]--; waits[from] == 0 {
				order = append(order, from)
			}
		}
	}
	return order
}

// segment escapes an id for use in an activation's path, whose own signs are the slash and the brackets.
func segment(id string) string {
	special := func(r rune) bool {
		return strings.ContainsRune("/[]%", r) || unicode.IsControl(r) || r == utf8.RuneError
	}
	if strings.IndexFunc(id, special) < 0 {
		return id
	}
	const hex = "0123456789ABCDEF"
	var out strings.Builder
	for i := 0; i < len(id); {
		r, size := utf8.DecodeRuneInString(id[i:])
		if special(r) {
			for _, c := range []byte(id[i : i+size]) {
				out.WriteByte('%')
				out.WriteByte(hex[c>>4])
				out.WriteByte(hex[c&15])
			}
		} else {
			out.WriteString(id[i : i+size])
		}
		i += size
	}
	return out.String()
}
