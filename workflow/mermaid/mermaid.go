// Package mermaid draws workflows as Mermaid flowcharts.
package mermaid

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"tandem/workflow"
)

// Draw draws a definition as a Mermaid flowchart: nodes with name and kind, bodies as subgraphs, back edges dashed,
// attached nodes on dotted lines, output keys other than result as labels. The graph is that of the definition; without
// one (it may be nil, when the definition has errors) nodes are drawn without bodies. Whatever names contain, it stays
// text.
func Draw(def *workflow.Definition, g *workflow.Graph) string {
	m := &drawing{def: def, g: g}
	m.out.WriteString("flowchart TD\n")
	if g == nil {
		for i := range def.Nodes {
			m.node(i, 1)
		}
		m.connections()
		return m.out.String()
	}
	m.body(0, 1)
	for i := range g.Nodes {
		if g.Nodes[i].Attached {
			m.node(i, 1)
		}
	}
	for i := range g.Edges {
		edge := &g.Edges[i]
		m.edge(edge.From, edge.To, edge.Key, edge.Back)
	}
	for i := range g.Nodes {
		for _, used := range g.Nodes[i].Uses {
			m.line(1, "n%d -.- n%d", i, used)
		}
	}
	return m.out.String()
}

type drawing struct {
	def *workflow.Definition
	g   *workflow.Graph
	out strings.Builder
}

func (m *drawing) line(indent int, format string, args ...any) {
	for range indent {
		m.out.WriteString("  ")
	}
	fmt.Fprintf(&m.out, format, args...)
	m.out.WriteByte('\n')
}

// body draws the members of a body; bodies nest no deeper than compilation allows.
func (m *drawing) body(body, indent int) {
	for _, i := range m.g.Bodies[body].Nodes {
		m.node(i, indent)
		if open := m.g.Nodes[i].Opens; open > 0 {
			m.line(indent, "subgraph b%d[\"body of %s\"]", open, label(m.g.Nodes[i].Name))
			m.body(open, indent+1)
			m.line(indent, "end")
		}
	}
}

func (m *drawing) node(i, indent int) {
	node := &m.def.Nodes[i]
	left, right := "[", "]"
	switch {
	case node.Type == workflow.TypeTrigger:
		left, right = "([", "])"
	case m.g != nil && m.g.Nodes[i].Opens > 0:
		left, right = "{{", "}}"
	case node.Type == workflow.TypeMemory:
		left, right = "[(", ")]"
	}
	title := node.Name
	if title == "" {
		title = node.ID
	}
	m.line(indent, "n%d%s\"%s<br/>%s\"%s", i, left, label(title), label(node.Kind()), right)
}

func (m *drawing) edge(from, to int, key string, back bool) {
	arrow := "-->"
	if back {
		arrow = "-.->"
	}
	if key != "" && key != workflow.DefaultKey {
		arrow += "|\"" + label(key) + "\"|"
	}
	m.line(1, "n%d %s n%d", from, arrow, to)
}

// connections draws the edges of a definition that has no graph, as far as they have ends.
func (m *drawing) connections() {
	byID := make(map[string]int, len(m.def.Nodes))
	for i := len(m.def.Nodes) - 1; i >= 0; i-- {
		byID[m.def.Nodes[i].ID] = i
	}
	for i := range m.def.Connections {
		c := &m.def.Connections[i]
		from, fromOK := byID[c.FromNode]
		to, toOK := byID[c.ToNode]
		if fromOK && toOK {
			m.edge(from, to, c.OutputKey, false)
		}
	}
	for i := range m.def.Nodes {
		for _, id := range m.def.Nodes[i].AttachedNodes {
			if used, ok := byID[id]; ok {
				m.line(1, "n%d -.- n%d", i, used)
			}
		}
	}
}

// label writes text for use in a quoted label: everything that Mermaid or HTML would read becomes an entity, line breaks
// become spaces, and a long text is cut.
func label(text string) string {
	const most = 80
	var out strings.Builder
	n := 0
	for _, r := range text {
		if n++; n > most {
			out.WriteRune('…')
			break
		}
		switch {
		case unicode.IsSpace(r) || unicode.IsControl(r) || !unicode.IsPrint(r):
			out.WriteByte(' ')
		case strings.ContainsRune("\"'`#&<>[](){}|\\;%", r):
			out.WriteString("#" + strconv.Itoa(int(r)) + ";")
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}
