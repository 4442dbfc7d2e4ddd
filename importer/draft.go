package importer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"tandem/api"
	"tandem/payload"
	"tandem/text"
	"tandem/workflow"
)

// Fidelity says how much of a node there is after an import.
type Fidelity int

// The degrees, the best first.
const (
	Kept         Fidelity = iota // it does what it did
	Approximated                 // it does nearly what it did
	Missing                      // there is no counterpart; a run that reaches it fails
)

// String is the degree as the report writes it.
func (f Fidelity) String() string { return [...]string{"kept", "approximated", "missing"}[f] }

// Draft is a workflow that is being made of a file, with the account of the nodes of the file.
type Draft struct {
	kinds workflow.Kinds
	def   workflow.Definition
	nodes []*Node
	lines []*Line
	// taken are the ids of nodes that are in use.
	taken       map[string]bool
	notes       []text.Text
	credentials []api.ImportedCredential
	profiles    []string
	secrets     []Secret
}

// NewDraft is an empty draft for a program with these kinds.
func NewDraft(kinds workflow.Kinds) *Draft {
	d := &Draft{kinds: kinds, taken: map[string]bool{}}
	d.def.Metadata.Version = "1.0"
	// Names that mean something else in placeholders and expressions cannot be ids.
	for _, name := range []string{
		"trigger", "execution", "workflow", "env", "item", "index", "data", "input", "inputs", "runtime", "initial", "steps", "context",
		"variables", "value", "output", "outputs", "last", "results", "poll", "true", "false", "null", "undefined",
		"and", "or", "not", "in", "field",
	} {
		d.taken[name] = true
	}
	return d
}

// Definition is what has been made so far, for what no method is there for: names, settings, notes.
func (d *Draft) Definition() *workflow.Definition { return &d.def }

// Has says that a kind can be used.
func (d *Draft) Has(kind string) bool {
	_, ok := d.kinds.Kind(kind)
	return ok && slices.Contains(d.kinds.Names(), kind)
}

// Line is what the report says of one node of the file.
type Line struct {
	name, kind string
	typ        string
	fidelity   Fidelity
	notes      []text.Text
	secrets    []string
	nodes      []*Node
}

// Line begins the account of a node of the file.
func (d *Draft) Line(name, typ string) *Line {
	l := &Line{name: name, typ: typ}
	d.lines = append(d.lines, l)
	return l
}

// Note adds what is to be known, without a judgement.
func (l *Line) Note(note text.Text) *Line {
	if !slices.ContainsFunc(l.notes, func(t text.Text) bool { return t.In(text.English) == note.In(text.English) }) {
		l.notes = append(l.notes, note)
	}
	return l
}

// Approximate says what is different from what it was.
func (l *Line) Approximate(note text.Text) *Line {
	l.fidelity = max(l.fidelity, Approximated)
	return l.Note(note)
}

// Miss says that there is no counterpart, and why.
func (l *Line) Miss(note text.Text) *Line {
	l.fidelity = Missing
	return l.Note(note)
}

// Fidelity is the judgement so far.
func (l *Line) Fidelity() Fidelity { return l.fidelity }

// Became says what kind it is now, for what is a part of another node.
func (l *Line) Became(kind string) *Line {
	l.kind = kind
	return l
}

// Note tells something of the whole.
func (d *Draft) Note(note text.Text) {
	if !slices.ContainsFunc(d.notes, func(t text.Text) bool { return t.In(text.English) == note.In(text.English) }) {
		d.notes = append(d.notes, note)
	}
}

// Node is a node that is being made. Its parameters are written when the draft is finished.
type Node struct {
	ID, Kind, Description string
	Config, Input         map[string]any
	Attached              []string
	Position              *workflow.Position
	line                  *Line
}

// Note adds to the account of the node of the file that this one was made of, as something that is different now.
func (n *Node) Note(note text.Text) { n.line.Approximate(note) }

// ID is a name for a node that nothing else has and that placeholders can use, made of a name for people.
func (d *Draft) ID(name string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			b.WriteRune(r)
		case r < unicode.MaxASCII || unicode.IsSpace(r):
			if s := b.String(); s != "" && !strings.HasSuffix(s, "_") {
				b.WriteByte('_')
			}
		}
		if b.Len() >= 60 {
			break
		}
	}
	base := strings.Trim(b.String(), "_")
	if base == "" || base[0] >= '0' && base[0] <= '9' {
		base = strings.TrimSuffix("node_"+base, "_")
	}
	id := base
	for n := 2; d.taken[id]; n++ {
		id = base + "_" + strconv.Itoa(n)
	}
	d.taken[id] = true
	return id
}

// Add adds a node for a line of the report.
func (d *Draft) Add(l *Line, id, kind, description string) *Node {
	n := &Node{ID: id, Kind: kind, Description: cmp.Or(strings.TrimSpace(description), id), Config: map[string]any{},
		Input: map[string]any{}, line: l}
	d.nodes = append(d.nodes, n)
	l.nodes = append(l.nodes, n)
	l.kind = cmp.Or(l.kind, kind)
	return n
}

// Connect connects a key of a node with another node. A conversion may be empty.
func (d *Draft) Connect(from, key, to, conversion string) {
	for _, c := range d.def.Connections {
		if c.FromNode == from && c.OutputKey == cmp.Or(key, workflow.DefaultKey) && c.ToNode == to {
			return
		}
	}
	d.def.Connections = append(d.def.Connections, workflow.Connection{
		ID: "c" + strconv.Itoa(len(d.def.Connections)+1), FromNode: from, OutputKey: cmp.Or(key, workflow.DefaultKey), ToNode: to,
		ConversionFunction: conversion,
	})
}

// Stick adds a note for people.
func (d *Draft) Stick(words string, at *workflow.Position, width, height float64) {
	d.def.Notes = append(d.def.Notes, workflow.Note{
		ID: "note-" + strconv.Itoa(len(d.def.Notes)+1), Text: words, Position: at, Width: max(width, 0), Height: max(height, 0),
	})
}

// Credential says that the workflow names a credential that is to be made, and returns its name.
func (d *Draft) Credential(name, typ string, note text.Text) string {
	name = strings.TrimSpace(name)
	for _, c := range d.credentials {
		if c.Name == name {
			return name
		}
	}
	d.credentials = append(d.credentials, api.ImportedCredential{Name: name, Type: typ, Note: note.In(text.English)})
	return name
}

// Secret moves a secret to a credential that is made together with the workflow, and returns its name.
func (d *Draft) Secret(l *Line, name, typ string, data map[string]any) string {
	raw, err := payload.Encode(data)
	if err != nil {
		return "{{$placeholder}}" // a map of texts can be written
	}
	for _, s := range d.secrets {
		if s.Type == typ && payload.Same(s.Data, raw) {
			l.secrets = append(l.secrets, s.Name)
			return s.Name
		}
	}
	name = strings.Trim(text.Clip(name, 80), "_ ")
	base := name
	for n := 2; slices.ContainsFunc(d.secrets, func(s Secret) bool { return s.Name == name }); n++ {
		name = base + "_" + strconv.Itoa(n)
	}
	d.secrets = append(d.secrets, Secret{Name: name, Type: typ, Data: raw})
	d.credentials = append(d.credentials, api.ImportedCredential{Name: name, Type: typ, Created: true})
	l.secrets = append(l.secrets, name)
	return name
}

// Profile says that the workflow names a model profile that is to be made, and returns its name.
func (d *Draft) Profile(name string) string {
	if !slices.Contains(d.profiles, name) {
		d.profiles = append(d.profiles, name)
	}
	return name
}

// Placeholder makes a node of something without a counterpart: a run that reaches it fails and says why.
func (d *Draft) Placeholder(l *Line, id, name, why string) *Node {
	n := d.Add(l, id, "ACTION.RUN_CODE", "")
	n.fail(name, why)
	return n
}

// fail makes the node one that fails.
func (n *Node) fail(name, why string) {
	n.Kind, n.Input, n.Attached = "ACTION.RUN_CODE", map[string]any{}, nil
	n.Description = text.Clip("Placeholder for "+name+": "+why, 400)
	n.Config = map[string]any{"language": "javascript",
		"code": "function main() { throw new Error(" + string(payload.Quote(n.Description)) + ") }"}
}

// settle writes the parameters of the nodes.
func (d *Draft) settle() {
	d.def.Nodes = d.def.Nodes[:0]
	for _, n := range d.nodes {
		typ, subtype, _ := strings.Cut(n.Kind, ".")
		d.def.Nodes = append(d.def.Nodes, workflow.Node{
			ID: n.ID, Name: n.ID, Description: text.Clip(n.Description, 1000), Type: typ, Subtype: subtype,
			Configurations: object(n.Config), InputParams: object(n.Input), OutputParams: json.RawMessage("{}"),
			AttachedNodes: n.Attached, Position: n.Position,
		})
	}
	if d.def.Connections == nil {
		d.def.Connections = []workflow.Connection{}
	}
}

// object writes parameters.
func object(fields map[string]any) json.RawMessage {
	raw, err := payload.Encode(fields)
	if err != nil || len(fields) == 0 {
		return json.RawMessage("{}")
	}
	return raw
}

// report is the account of the nodes of the file.
func (d *Draft) report(language string) api.ImportedWorkflow {
	out := api.ImportedWorkflow{Name: d.def.Metadata.Name, Nodes: []api.ImportedNode{}, Credentials: d.credentials, Profiles: d.profiles}
	for _, note := range d.notes {
		out.Notes = append(out.Notes, note.In(language))
	}
	for _, l := range d.lines {
		one := api.ImportedNode{Name: l.name, Type: l.typ, Fidelity: l.fidelity.String(), Kind: l.kind, Secrets: l.secrets}
		for _, n := range l.nodes {
			one.NodeIDs = append(one.NodeIDs, n.ID)
		}
		for _, note := range l.notes {
			one.Notes = append(one.Notes, note.In(language))
		}
		switch l.fidelity {
		case Kept:
			out.Kept++
		case Approximated:
			out.Approximated++
		case Missing:
			out.Missing++
		}
		out.Nodes = append(out.Nodes, one)
	}
	return out
}

// nodeAt is the node that a path of a problem is about, and whether the path is about one.
func (d *Draft) nodeAt(path string) (*Node, bool) {
	i, ok := numbered(path, "nodes[")
	if !ok || i >= len(d.nodes) {
		return nil, false
	}
	return d.nodes[i], true
}

// numbered is the number in a path such as nodes[3].configurations.
func numbered(path, prefix string) (int, bool) {
	rest, ok := strings.CutPrefix(path, prefix)
	if !ok {
		return 0, false
	}
	digits, _, ok := strings.Cut(rest, "]")
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil && n >= 0
}

// mend takes out what does not validate, and returns the problems of what is left.
func (d *Draft) mend(check func([]byte) []workflow.Problem) []workflow.Problem {
	for round := 0; ; round++ {
		d.settle()
		problems := check(workflow.Encode(&d.def))
		if !workflow.HasErrors(problems) || round == 12 || !d.mended(problems) {
			return problems
		}
	}
}

// mended takes out what problems are about; false: nothing could be done.
func (d *Draft) mended(problems []workflow.Problem) (changed bool) {
	for _, p := range problems {
		if n, ok := d.nodeAt(p.Path); ok && p.Code == "unknown_configuration" && n.drop(p.Path) {
			changed = true
			n.line.Approximate(text.Of("the configuration %q was dropped: the kind does not have it", p.Path[strings.LastIndex(p.Path, "configurations.")+len("configurations."):]))
		}
	}
	if changed {
		return true
	}
	done := map[*Node]bool{}
	for _, p := range problems {
		n, ok := d.nodeAt(p.Path)
		if p.Severity == workflow.SeverityWarning || !ok || done[n] {
			continue
		}
		done[n], changed = true, true
		d.giveUp(n, p)
	}
	if changed {
		return true
	}
	var cut []int
	for _, p := range problems {
		i, ok := numbered(p.Path, "connections[")
		if p.Severity == workflow.SeverityWarning || !ok || i >= len(d.def.Connections) || slices.Contains(cut, i) {
			continue
		}
		c := d.def.Connections[i]
		d.Note(text.Of("the connection from %q to %q was left out: %s", c.FromNode, c.ToNode, p.Message))
		for _, n := range d.nodes {
			if n.ID == c.FromNode && n.line != nil {
				n.line.Approximate(text.Of("the connection to %q was left out", c.ToNode))
			}
		}
		cut = append(cut, i)
	}
	slices.Sort(cut)
	for _, i := range slices.Backward(cut) {
		d.def.Connections = slices.Delete(d.def.Connections, i, i+1)
	}
	return len(cut) > 0
}

// giveUp puts something that validates into the place of a node that does not.
func (d *Draft) giveUp(n *Node, p workflow.Problem) {
	why := text.Of("what was made of it is not valid here: %s", p.Message)
	n.line.Miss(why)
	switch typ, _, _ := strings.Cut(n.Kind, "."); typ {
	case "TRIGGER":
		if n.Kind != "TRIGGER.MANUAL" {
			n.Kind = "TRIGGER.MANUAL"
		}
		n.Config, n.Input = map[string]any{}, map[string]any{}
		return
	case "TOOL", "MEMORY":
		if d.detach(n) {
			return
		}
	}
	n.fail(n.line.name, fmt.Sprintf("%s (%s)", p.Message, p.Path))
	n.line.kind = n.Kind
	for i := range d.def.Connections {
		if c := &d.def.Connections[i]; c.FromNode == n.ID {
			c.OutputKey = workflow.DefaultKey
		}
	}
	d.def.Connections = slices.DeleteFunc(d.def.Connections,
		func(c workflow.Connection) bool { return c.ToNode == n.ID && c.FromNode == n.ID })
}

// drop removes the configuration that a path names; false: there is none.
func (n *Node) drop(path string) bool {
	_, rest, ok := strings.Cut(path, ".configurations.")
	steps, err := payload.ParsePath(rest)
	if !ok || err != nil {
		return false
	}
	in := any(n.Config)
	for i, step := range steps {
		switch v := in.(type) {
		case map[string]any:
			if i == len(steps)-1 {
				_, ok := v[step.Key]
				delete(v, step.Key)
				return ok
			}
			in = v[step.Key]
		case []any:
			at := payload.Index(step.Key)
			if at < 0 || at >= len(v) {
				return false
			}
			in = v[at]
		default:
			return false
		}
	}
	return false
}

// detach removes a node that is only attached to others; false: it is not.
func (d *Draft) detach(n *Node) (attached bool) {
	for _, other := range d.nodes {
		if slices.Contains(other.Attached, n.ID) {
			attached = true
			other.Attached = slices.DeleteFunc(other.Attached, func(id string) bool { return id == n.ID })
			other.line.Approximate(text.Of("%q is not attached to it any more", n.line.name))
		}
	}
	if attached {
		d.nodes = slices.DeleteFunc(d.nodes, func(other *Node) bool { return other == n })
		n.line.nodes = slices.DeleteFunc(n.line.nodes, func(other *Node) bool { return other == n })
	}
	return attached
}
