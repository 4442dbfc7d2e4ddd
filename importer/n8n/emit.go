package n8n

import (
	"cmp"
	"slices"
	"strings"

	"tandem/importer"
	"tandem/text"
)

// handler is how nodes of a type are imported.
type handler struct {
	// per says that it runs once for each item; pass, that it hands on what arrives; many, that a list comes out.
	per, pass, many bool
	// root says that nothing arrives: it begins an execution.
	root bool
	// outputs is how many outputs it has besides that of errors, 1 if it is 0.
	outputs int
	// path is where the data is in the output, rename what fields are called there.
	path   []string
	rename map[string]string
	// shape says it for a node, where it depends on its parameters.
	shape func(n *node) (path []string, rename map[string]string)
	// make writes the node.
	make func(m *making)
}

// making is a node that is being written.
type making struct {
	reading
	line    *importer.Line
	kind    string
	cfg, in map[string]any
	up      shape
	// payload says that the data itself has to arrive, and empty that nothing may.
	payload, empty bool
	// outs are the keys of the outputs, "result" if there are none.
	outs []string
	// entry and exits, if the node was written already, are where it begins and leaves.
	entry string
	exits map[int]exit
	// told is the node that says where items go, which stands before this one.
	told string
	// attached are nodes that it uses.
	attached []string
	// why says that there is no counterpart.
	why text.Text
}

// missing says that there is no counterpart.
func (m *making) missing(why text.Text) {
	m.line.Miss(why)
	m.why = why
}

// loopID is the id of the loop that a node runs in.
func (f *flow) loopID(n *node) string { return n.id + "_each" }

// upstream is what arrives at a node, back edges aside.
func (f *flow) upstream(n *node) shape {
	links := f.forward(n)
	switch len(links) {
	case 0:
		return shape{unknown: true}
	case 1:
		return f.shapeOf(links[0].node, links[0].index)
	}
	many := false
	for _, l := range links {
		many = many || f.shapeOf(l.node, l.index).many
	}
	if many {
		return shape{head: n.id + "_input.outputs", path: []string{"items"}, flow: []string{"items"}, many: true}
	}
	return shape{head: n.id + "_input.outputs"}
}

// forward are the connections that arrive at a node and do not come from what follows it.
func (f *flow) forward(n *node) []link {
	return slices.DeleteFunc(n.arriving(), func(l link) bool { return f.back[edge{l.node, n}] })
}

// edge is a connection, whatever its outputs.
type edge struct{ from, to *node }

// shapeOf is what an output of a node has.
func (f *flow) shapeOf(n *node, output int) shape {
	if s, ok := n.shapes[output]; ok {
		return s
	}
	if n.busy {
		return shape{unknown: true}
	}
	n.busy = true
	s := f.findShape(n, output)
	n.busy = false
	n.shapes[output] = s
	return s
}

func (f *flow) findShape(n *node, output int) shape {
	h := f.handlerOf(n)
	if h.outputs == 0 {
		h.outputs = 1
	}
	if output >= h.outputs { // of errors
		return shape{head: n.id + ".outputs"}
	}
	up := shape{unknown: true}
	if !h.root {
		up = f.upstream(n)
	}
	own := shape{head: n.id + ".outputs", path: h.path, flow: h.path, rename: h.rename}
	if h.shape != nil {
		own.path, own.rename = h.shape(n)
		own.flow = own.path
	}
	switch {
	case n.off() && !h.root:
		return up
	case short(n.typ) == "splitInBatches":
		return f.batchShape(n, output)
	case h.pass && up.many && h.outputs > 1: // a list is told apart
		key := outKey(h, n, output)
		return shape{head: n.id + ".outputs", path: []string{key}, many: true}
	case h.pass:
		return up
	case h.many:
		own.many = true
		return own
	case h.per && up.many && !n.doc.At("executeOnce").Bool():
		return shape{head: f.loopID(n) + ".outputs", path: []string{"results"}, flow: []string{"results"}, many: true}
	}
	return own
}

// outKey is the key by which an output of a node leaves that tells items apart.
func outKey(h handler, n *node, output int) string {
	if short(n.typ) == "if" || short(n.typ) == "filter" {
		return [...]string{"passed", "filtered"}[min(output, 1)]
	}
	return branchKey(output)
}

// emit writes what becomes of a node.
func (f *flow) emit(n *node) {
	h := f.handlerOf(n)
	if h.outputs == 0 {
		h.outputs = 1
	}
	if n.alone || len(n.serves) > 0 && len(n.arriving()) == 0 && !h.root {
		return // a part of others, see attach
	}
	up := shape{unknown: true}
	if !h.root {
		up = f.upstream(n)
	}
	if n.doc.At("executeOnce").Bool() && up.many {
		up.path, up.many = append(slices.Clone(up.path), "0"), false
	}
	looped := h.per && up.many && !n.off()
	m := &making{reading: reading{f: f, n: n, json: up, inLoop: looped}, line: n.line, cfg: map[string]any{}, in: map[string]any{}, up: up}
	if looped {
		m.json = shape{head: "item"}
	}
	h.make(m)
	if m.entry == "" {
		f.write(n, h, m, looped)
	}
	n.exits = m.exits
	f.arrive(n, m, up)
}

// write adds the nodes that a node becomes.
func (f *flow) write(n *node, h handler, m *making, looped bool) {
	description := n.name
	if notes := strings.TrimSpace(n.doc.At("notes").Text()); notes != "" && !strings.HasPrefix(notes, "This ") {
		description += ": " + notes
	}
	if !m.why.IsZero() {
		f.writeMissing(n, h, m)
		return
	}
	kind := m.kind
	if n.off() && !h.root && (h.outputs > 1 || kind == "FLOW.MERGE" || kind == "FLOW.FOR_EACH") {
		kind, m.cfg, m.in = "CALL.EMPTY", map[string]any{"pass_through": true}, map[string]any{}
	}
	main := f.Add(n.line, n.id, kind, description)
	main.Config, main.Input, main.Position, main.Attached = m.cfg, m.in, position(n.doc), m.attached
	if n.off() {
		main.Config["enabled"] = false
		n.line.Note(text.Of("it was switched off, and is"))
	}
	m.handling(main, h, looped)
	m.entry = n.id
	if m.values != "" {
		v := f.Add(n.line, m.values, "ACTION.RUN_CODE", "Computes what "+n.name+" is given.")
		v.Config, v.Input = map[string]any{"language": "javascript", "code": m.program()}, m.programInput()
		m.entry = m.values
	}
	if m.told != "" {
		f.Connect(m.told, "", n.id, "{}")
		m.entry = m.told
	}
	m.exits = map[int]exit{}
	if looped {
		m.loop(main)
		return
	}
	if m.values != "" {
		f.Connect(m.values, "", n.id, "{}")
	}
	for i := range h.outputs {
		key := ""
		if i < len(m.outs) {
			key = m.outs[i]
		}
		if kind == "CALL.EMPTY" {
			key = ""
		}
		m.exits[i] = exit{n.id, key}
	}
	m.exits[h.outputs] = exit{n.id, "error"}
}

// loop puts the node into the body of a loop over what arrives.
func (m *making) loop(main *importer.Node) {
	f, n := m.f, m.n
	id := f.loopID(n)
	loop := f.Add(n.line, id, "FLOW.FOR_EACH", "Runs "+n.name+" for each item.")
	loop.Config, loop.Input = map[string]any{"items_path": "items"}, map[string]any{"items": m.up.whole()}
	if p := position(n.doc); p != nil {
		p.X -= 150
		loop.Position = p
	}
	if main.Config["on_error"] == "continue" {
		delete(main.Config, "on_error")
		loop.Config["break_on_error"] = false
		n.line.Approximate(text.Of("an item that fails is left out, and not handed to the output for errors"))
	}
	conversion := "{}"
	if m.payload {
		conversion = "item"
	}
	f.Connect(id, "iteration", n.id, conversion)
	if m.values != "" {
		f.Connect(id, "iteration", m.values, "{}")
		f.Connect(m.values, "", n.id, "{}")
	}
	h := f.handlerOf(n)
	own := shape{flow: h.path, rename: h.rename}
	if h.shape != nil {
		own.flow, own.rename = h.shape(n)
	}
	f.Connect(n.id, m.firstKey(), id, own.conversion())
	m.entry, m.empty = id, true
	m.exits[0] = exit{id, "completed"}
}

// firstKey is the key of the first output.
func (m *making) firstKey() string {
	if len(m.outs) > 0 {
		return m.outs[0]
	}
	return ""
}

// handling says what becomes of errors.
func (m *making) handling(main *importer.Node, h handler, looped bool) {
	doc := m.n.doc
	if h.root || m.n.off() {
		return
	}
	if doc.At("retryOnFail").Bool() {
		main.Config["max_retries"] = min(max(doc.At("maxTries").Int(3)-1, 0), 10)
	}
	switch mode := doc.At("onError").Text(); {
	case mode == "continueErrorOutput":
		main.Config["on_error"] = "continue"
	case mode == "continueRegularOutput" || doc.At("continueOnFail").Bool():
		main.Config["on_error"] = "continue"
		if !looped && len(m.n.out) > 0 {
			for _, l := range m.n.out[0] {
				m.n.out = put(m.n.out, max(h.outputs, 1), l)
				l.node.in = put(l.node.in, l.index, link{m.n, max(h.outputs, 1)})
			}
		}
		m.line.Approximate(text.Of("after a failure what follows is given the error in the place of the data"))
	}
}

// writeMissing adds a node that fails.
func (f *flow) writeMissing(n *node, h handler, m *making) {
	m.exits = map[int]exit{}
	m.entry = n.id
	switch {
	case h.root:
		main := f.Add(n.line, n.id, "TRIGGER.MANUAL", n.name)
		main.Position = position(n.doc)
		if n.off() {
			main.Config["enabled"] = false
		}
	case n.off():
		main := f.Add(n.line, n.id, "CALL.EMPTY", n.name+" (switched off)")
		main.Config["pass_through"], main.Config["enabled"], main.Position = true, false, position(n.doc)
	default:
		main := f.Placeholder(n.line, n.id, n.name+" ("+n.typ+")", m.why.In(text.English))
		main.Position = position(n.doc)
	}
	for i := range h.outputs + 1 {
		m.exits[i] = exit{n.id, ""}
	}
}

// arrive makes what stands before a node whom several connections reach, and notes where it begins.
func (f *flow) arrive(n *node, m *making, up shape) {
	n.entry, n.conversion = m.entry, func(s shape) string { return "" }
	switch {
	case short(n.typ) == "merge" && m.why.IsZero() && !n.off():
		n.conversion = shape.conversion
		return
	case m.payload && m.entry == n.id:
		n.conversion = shape.conversion
	case m.empty:
		n.conversion = func(shape) string { return "{}" }
	}
	if m.payload && m.values != "" && m.entry == m.values { // the data passes the node of values by
		n.also = n.id
		n.conversion = func(shape) string { return "{}" }
	}
	if m.n.handsOn && m.values != "" && m.entry == m.values {
		n.also = n.id
	}
	links := f.forward(n)
	if len(links) < 2 {
		return
	}
	join := f.Add(n.line, n.id+"_input", "CALL.EMPTY", "What arrives at "+n.name+".")
	join.Config["pass_through"] = true
	convert := n.conversion
	before := n.also
	f.Connect(join.ID, "", n.entry, convert(up))
	if before != "" {
		f.Connect(join.ID, "", before, up.conversion())
	}
	n.also, n.entry = "", join.ID
	n.conversion = func(s shape) string {
		if !up.many {
			return s.conversion()
		}
		inner := cmp.Or(s.conversion(), "value")
		if !s.many {
			inner = "[" + inner + "]"
		}
		return `{"items": ` + inner + "}"
	}
}

// wire connects what was written.
func (f *flow) wire() {
	for _, n := range f.nodes {
		for output, links := range n.out {
			e, ok := n.exits[output]
			if !ok {
				e, ok = n.exits[0]
			}
			for _, l := range links {
				if l.node.entry == "" || !ok {
					continue
				}
				f.wireOne(n, e, output, l.node)
			}
		}
	}
}

// wireOne connects an output with a node.
func (f *flow) wireOne(n *node, e exit, output int, to *node) {
	s := f.shapeOf(n, output)
	if f.back[edge{n, to}] && short(to.typ) == "splitInBatches" {
		if len(n.out) > 1 || len(n.out[0]) > 1 { // what an iteration makes is what its last nodes make
			last := f.Add(n.line, f.ID(n.id+"_back"), "CALL.EMPTY", "Hands back what "+n.name+" has.")
			last.Config["pass_through"] = true
			f.Connect(e.id, e.key, last.ID, s.conversion())
			f.Connect(last.ID, "", to.entry, "")
			return
		}
		f.Connect(e.id, e.key, to.entry, s.conversion())
		return
	}
	conversion := ""
	if !s.unknown {
		conversion = to.conversion(s)
	}
	f.Connect(e.id, e.key, to.entry, conversion)
	if to.also != "" {
		f.Connect(e.id, e.key, to.also, s.conversion())
	}
}
