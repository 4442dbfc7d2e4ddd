// Package n8n reads workflows that n8n has exported. n8n runs a node once for each item that arrives; here a node runs once, so what
// arrives is followed through the file: where one item arrives the node stays as it is, where many may it is put into the body of a
// FLOW.FOR_EACH, or the list is handled as a whole. What an expression reads ($json, $('Name')) is named by the node that has made it.
package n8n

import (
	"cmp"
	"slices"
	"strings"

	"tandem/importer"
	"tandem/text"
	"tandem/workflow"
)

// System reads the files of n8n.
type System struct{}

// Name is what the report calls it.
func (System) Name() string { return "n8n" }

// Reads says whether a document is an export of n8n: nodes with types of packages, and connections by names.
func (System) Reads(document importer.Value) bool {
	for _, one := range workflowsOf(document) {
		if !one.At("connections").IsObject() && one.At("connections").Exists() {
			return false
		}
		nodes := one.At("nodes").List()
		if len(nodes) == 0 {
			return one.At("nodes").IsList() && one.At("connections").IsObject() && !one.At("metadata").Exists()
		}
		for _, n := range nodes {
			if typ := n.At("type").Text(); strings.Contains(typ, ".") && strings.Contains(strings.ToLower(typ), "n8n") {
				return true
			}
		}
	}
	return false
}

// workflowsOf are the workflows in a file: one, or a list of them.
func workflowsOf(document importer.Value) []importer.Value {
	if document.IsList() {
		return document.List()
	}
	if inner := document.At("workflow"); inner.At("nodes").IsList() { // as templates are published
		return []importer.Value{inner}
	}
	if inner := document.At("data"); inner.At("nodes").IsList() {
		return []importer.Value{inner}
	}
	return []importer.Value{document}
}

// Import makes a draft of each workflow in the file.
func (System) Import(document importer.Value, kinds workflow.Kinds) []*importer.Draft {
	var drafts []*importer.Draft
	for _, one := range workflowsOf(document) {
		f := &flow{doc: one, Draft: importer.NewDraft(kinds), byName: map[string]*node{}, back: map[edge]bool{}, known: handlers()}
		f.readNodes()
		order := f.inOrder()
		f.attach()
		for _, n := range order {
			f.emit(n)
		}
		f.wire()
		f.unused()
		drafts = append(drafts, f.Draft)
	}
	return drafts
}

// flow is one workflow while it is imported.
type flow struct {
	*importer.Draft
	doc    importer.Value
	nodes  []*node
	byName map[string]*node
	// back are the connections that lead back to what comes before.
	back map[edge]bool
	// known are the types that are known, without services.
	known map[string]handler
}

// node is a node of the file.
type node struct {
	name, typ string
	version   float64
	params    importer.Value
	doc       importer.Value
	line      *importer.Line
	// id is that of the node that is made of it, second that of another one if it both stands in the flow and serves others.
	id, second string
	// in are the connections that arrive, by the number of the input; out those that leave, by the number of the output.
	in, out [][]link
	// parts are the nodes that serve it (its model, memory, tools), by the type of the connection; serves those that it serves.
	parts  map[string][]*node
	serves []*node
	// shapes are what its outputs have, once it was asked for.
	shapes map[int]shape
	busy   bool
	// entry is where what arrives begins, also a second place; conversion is what connections make of the data on its way there.
	entry, also string
	conversion  func(s shape) string
	// exits are where its outputs leave.
	exits map[int]exit
	// handsOn says that what arrives has to pass through the node itself.
	handsOn bool
	// handler is how it is imported, once that was asked for.
	handler *handler
	// used says that a node that it serves has read it; written, that a node was made of it; lost, that none could be; alone, that it
	// serves nobody.
	used, written, lost, alone bool
}

// link is a connection: to or from the output or input of another node.
type link struct {
	node  *node
	index int
}

// exit is where an output leaves.
type exit struct{ id, key string }

// short is the type without its package.
func short(typ string) string { return typ[strings.LastIndexByte(typ, '.')+1:] }

// readNodes takes the file apart.
func (f *flow) readNodes() {
	def := f.Definition()
	def.Metadata.Name, def.Metadata.Description = strings.TrimSpace(f.doc.At("name").Text()),
		strings.TrimSpace(f.doc.At("description").Text())
	for _, tag := range f.doc.At("tags").List() {
		if name := cmp.Or(tag.At("name").Text(), tag.Text()); name != "" && !slices.Contains(def.Metadata.Tags, name) {
			def.Metadata.Tags = append(def.Metadata.Tags, name)
		}
	}
	// A field that is not there is nothing in n8n, and no error.
	def.Metadata.Settings.OnUnresolved = "null"
	if seconds := f.doc.At("settings", "executionTimeout").Int(0); seconds > 0 {
		def.Metadata.Settings.TimeoutSeconds = float64(seconds)
	}
	if name := f.doc.At("settings", "errorWorkflow").Text(); name != "" {
		f.Note(text.Of("the error workflow %q is not set: import that workflow, too, and name it in settings.error_workflow", name))
	}
	byID := map[string]*node{}
	for _, doc := range f.doc.At("nodes").List() {
		n := &node{
			name: doc.At("name").Text(), typ: doc.At("type").Text(), params: doc.At("parameters"), doc: doc,
			parts: map[string][]*node{}, shapes: map[int]shape{}, exits: map[int]exit{},
		}
		n.name = cmp.Or(n.name, doc.At("id").Text(), n.typ)
		n.version = number(doc.At("typeVersion"), 1)
		n.line = f.Line(n.name, n.typ)
		if short(n.typ) == "stickyNote" {
			f.Stick(n.params.At("content").Text(), position(doc), number(n.params.At("width"), 240), number(n.params.At("height"), 160))
			continue
		}
		n.id = f.ID(n.name)
		f.nodes = append(f.nodes, n)
		if f.byName[n.name] == nil {
			f.byName[n.name] = n
		}
		if id := doc.At("id").Text(); id != "" && byID[id] == nil {
			byID[id] = n
		}
	}
	f.connect(byID)
	if len(f.nodes) == 0 {
		l := f.Line("", "")
		l.Note(text.Of("the file has no node that does anything"))
		f.Add(l, f.ID("start"), "TRIGGER.MANUAL", "The file has no node that does anything.")
	}
}

// connect reads the connections. Their ends are named; files that were edited by hand also have ids.
func (f *flow) connect(byID map[string]*node) {
	find := func(name string) *node {
		if n := f.byName[name]; n != nil {
			return n
		}
		return byID[name]
	}
	for _, from := range f.doc.At("connections").Names() {
		source := find(from)
		for _, kind := range f.doc.At("connections", from).Names() {
			for output, targets := range f.doc.At("connections", from, kind).List() {
				for _, t := range targets.List() {
					target := find(t.At("node").Text())
					if source == nil || target == nil {
						f.Note(text.Of("a connection from %q to %q was left out: the file has no such node", from, t.At("node").Text()))
						if source != nil && kind == "main" {
							source.line.Approximate(text.Of("a connection from it leads to a node that the file does not have"))
						}
						continue
					}
					if kind != "main" {
						target.parts[kind] = append(target.parts[kind], source)
						source.serves = append(source.serves, target)
						continue
					}
					index := min(max(t.At("index").Int(0), 0), 50)
					source.out = put(source.out, output, link{target, index})
					target.in = put(target.in, index, link{source, output})
				}
			}
		}
	}
}

// put adds a link at a place of a list that grows.
func put(list [][]link, at int, l link) [][]link {
	for len(list) <= at {
		list = append(list, nil)
	}
	list[at] = append(list[at], l)
	return list
}

// inOrder are the nodes in the order in which they run, so that what a node reads is known before it. Connections that lead back are noted.
func (f *flow) inOrder() []*node {
	var order []*node
	state := map[*node]int{} // 1: what follows it is being looked at, 2: done
	var visit func(n *node)
	visit = func(n *node) {
		state[n] = 1
		for _, links := range n.out {
			for _, l := range links {
				switch state[l.node] {
				case 0:
					visit(l.node)
				case 1:
					f.back[edge{n, l.node}] = true
				}
			}
		}
		state[n] = 2
		order = append(order, n)
	}
	for _, first := range []bool{true, false} {
		for _, n := range f.nodes {
			if state[n] == 0 && (!first || len(n.arriving()) == 0) {
				visit(n)
			}
		}
	}
	slices.Reverse(order)
	return order
}

// arriving are all connections that arrive at a node.
func (n *node) arriving() []link {
	var all []link
	for _, links := range n.in {
		all = append(all, links...)
	}
	return all
}

// off says that the node is switched off.
func (n *node) off() bool { return n.doc.At("disabled").Bool() }

// text is a parameter as it is written.
func (n *node) text(name string) string { return n.params.At(name).Text() }

// position is where the node is drawn.
func position(doc importer.Value) *workflow.Position {
	if !doc.At("position").IsList() {
		return nil
	}
	return &workflow.Position{X: number(doc.At("position", "0"), 0), Y: number(doc.At("position", "1"), 0)}
}

// number is a value as a number of reasonable size.
func number(v importer.Value, otherwise float64) float64 {
	n, ok := v.Number()
	if !ok {
		return otherwise
	}
	x, err := n.Float64()
	if err != nil || x != x || x > 1e9 || x < -1e9 {
		return otherwise
	}
	return x
}

// locator is the value of a parameter that may be written as a chosen element of a list ("__rl").
func locator(v importer.Value) importer.Value {
	if v.IsObject() && (v.At("__rl").Exists() || v.At("mode").Exists()) && v.At("value").Exists() {
		return v.At("value")
	}
	if v.IsObject() && v.At("__rl").Exists() {
		return importer.Value{}
	}
	return v
}
