package workflow

import (
	"encoding/json"
	"strconv"
	"strings"

	"tandem/text"
)

// The fields of the format. What the server owns is passed over in files; what older files carry is read or dropped
// with a warning.
func definitionFields() *fields {
	return &fields{
		what: text.Of("a workflow"), known: []string{"metadata", "nodes", "connections", "triggers", "notes", "tests"},
		ignored: func(folded string) bool { return folded == "source" || folded == "sourceformat" }, // a server tells them
	}
}

func metadataFields() *fields {
	return &fields{
		what: text.Of("metadata"),
		known: []string{
			"id", "name", "icon_url", "description", "tags", "version", "parent_workflow", "settings",
		},
		ignored: func(folded string) bool {
			switch folded {
			case "deploymentstatus", "deploymenterror", "statistics", "revision", "revisionhash":
				return true
			}
			return strings.HasPrefix(folded, "lastexecution") || strings.HasPrefix(folded, "created") ||
				strings.HasPrefix(folded, "updated")
		},
	}
}

func settingsFields() *fields {
	return &fields{what: text.Of("settings"), known: []string{
		"timeout_seconds", "error_workflow", "max_concurrent_activations", "on_unresolved", "language",
	}}
}

func nodeFields(pinned bool) *fields {
	f := &fields{
		what: text.Of("a node"),
		known: []string{
			"id", "name", "description", "type", "subtype", "configurations", "input_params", "output_params",
			"attached_nodes", "position",
		},
		old: []string{"input_ports", "output_ports"},
	}
	if pinned {
		f.known = append(f.known, "pinned")
	}
	return f
}

func connectionFields() *fields {
	return &fields{
		what:  text.Of("a connection"),
		known: []string{"id", "from_node", "to_node", "output_key", "conversion_function"},
		old:   []string{"from_port", "to_port"},
	}
}

func noteFields() *fields {
	return &fields{what: text.Of("a note"), known: []string{"id", "text", "position", "width", "height"}}
}

func positionFields() *fields { return &fields{what: text.Of("a position"), known: []string{"x", "y"}} }

// definition reads the whole. It is nil when there is too much of it.
func (d *decoder) definition(root *value) *Definition {
	def := &Definition{Metadata: Metadata{Version: "1.0"}}
	if root.kind != kindObject {
		p := errorAt(ProblemWrongType, "", "a workflow is an object with metadata, nodes and connections, not %s; begin the file with one of these keys", root.kind.words())
		p.Line, p.Column = int(root.line), int(root.col)
		d.report(p)
		return nil
	}
	var nodes, connections *value
	d.each("", root, definitionFields(), func(field string, at spot, v *value) {
		switch field {
		case "metadata":
			if v.kind != kindNull && d.object(at, v, text.Of("an object")) {
				d.metadata(&def.Metadata, at.String(), v)
			}
		case "nodes":
			nodes = d.list(at, v)
		case "connections":
			connections = d.list(at, v)
		case "triggers":
			d.texts(&def.Triggers, at, v)
		case "notes":
			d.notes(def, at, v)
		case "tests":
			d.tests(def, at, v)
		}
	})
	if nodes != nil {
		if n := len(nodes.items()); n > d.maxNodes {
			p := errorAt(ProblemTooLarge, "nodes",
				"the workflow has %d nodes, %d are allowed; move parts of it to workflows of their own and run them with FLOW.SUB_WORKFLOW",
				n, d.maxNodes)
			p.Line, p.Column = int(nodes.line), int(nodes.col)
			d.kept = []Problem{p}
			return nil
		}
		def.Nodes = make([]Node, len(nodes.items()))
		f := nodeFields(d.pinned)
		for i := range nodes.items() {
			d.node(&def.Nodes[i], nodePath(i), &nodes.items()[i], f)
		}
	}
	if connections != nil {
		if n := len(connections.items()); n > d.maxConnections {
			p := errorAt(ProblemTooLarge, "connections",
				"the workflow has %d connections, %d are allowed; move parts of it to workflows of their own and run them with FLOW.SUB_WORKFLOW",
				n, d.maxConnections)
			p.Line, p.Column = int(connections.line), int(connections.col)
			d.kept = []Problem{p}
			return nil
		}
		def.Connections = make([]Connection, len(connections.items()))
		f := connectionFields()
		d.choices = make(map[string]bool)
		d.findChoices(def)
		for i := range connections.items() {
			d.connection(&def.Connections[i], connectionPath(i), &connections.items()[i], f)
		}
		nameConnections(def.Connections)
	}
	return def
}

func (d *decoder) list(at spot, v *value) *value {
	switch v.kind {
	case kindList:
		return v
	case kindNull:
	default:
		d.wrongType(at, v, text.Of("a list"))
	}
	return nil
}

// notes reads what the author wrote beside the nodes. A note without an id is given one by its place.
func (d *decoder) notes(def *Definition, at spot, v *value) {
	list := d.list(at, v)
	if list == nil {
		return
	}
	def.Notes = make([]Note, len(list.items()))
	taken := make(map[string]bool, len(def.Notes))
	f := noteFields()
	for i := range list.items() {
		n, path := &def.Notes[i], "notes["+strconv.Itoa(i)+"]"
		if !d.object(spot{path: path}, &list.items()[i], text.Of("a note, which is an object,")) {
			continue
		}
		d.each(path, &list.items()[i], f, func(field string, at spot, v *value) {
			switch field {
			case "id":
				d.text(&n.ID, at, v)
			case "text":
				d.text(&n.Text, at, v)
			case "position":
				n.Position = d.position(at, v)
			case "width":
				d.length(&n.Width, at, v)
			case "height":
				d.length(&n.Height, at, v)
			}
		})
		if n.ID != "" && taken[n.ID] {
			d.report(errorAt(ProblemDuplicateID, path+".id", "another note has the id %q; give each note an id of its own, or leave it out", n.ID))
		}
		taken[n.ID] = true
	}
	for i, next := 0, 1; i < len(def.Notes); i++ {
		for n := &def.Notes[i]; n.ID == ""; next++ {
			if id := "note-" + strconv.Itoa(next); !taken[id] {
				n.ID = id
			}
		}
	}
}

// length reads a number that must not be negative.
func (d *decoder) length(to *float64, at spot, v *value) {
	if d.number(to, at, v); *to < 0 {
		d.report(errorAt(ProblemWrongType, at.String(), "a length cannot be negative; write one such as 240, or leave the field out"))
	}
}

// position reads where an editor draws something.
func (d *decoder) position(at spot, v *value) *Position {
	if v.kind == kindNull || !d.object(at, v, text.Of("an object with x and y")) {
		return nil
	}
	p := &Position{}
	d.each(at.String(), v, positionFields(), func(field string, at spot, v *value) {
		if field == "x" {
			d.number(&p.X, at, v)
		} else {
			d.number(&p.Y, at, v)
		}
	})
	return p
}

func (d *decoder) metadata(m *Metadata, path string, v *value) {
	d.each(path, v, metadataFields(), func(field string, at spot, v *value) {
		switch field {
		case "id":
			d.text(&m.ID, at, v)
		case "name":
			d.text(&m.Name, at, v)
		case "icon_url":
			d.text(&m.IconURL, at, v)
		case "description":
			d.text(&m.Description, at, v)
		case "tags":
			d.texts(&m.Tags, at, v)
		case "version":
			if v.kind == kindNumber {
				m.Version = v.text
			} else {
				d.text(&m.Version, at, v)
			}
		case "parent_workflow":
			d.text(&m.ParentWorkflow, at, v)
		case "settings":
			if v.kind != kindNull && d.object(at, v, text.Of("an object")) {
				d.settings(&m.Settings, at.String(), v)
			}
		}
	})
	if m.Version == "" {
		m.Version = "1.0"
	}
}

func (d *decoder) settings(s *Settings, path string, v *value) {
	d.each(path, v, settingsFields(), func(field string, at spot, v *value) {
		switch field {
		case "timeout_seconds":
			d.number(&s.TimeoutSeconds, at, v)
		case "error_workflow":
			d.text(&s.ErrorWorkflow, at, v)
		case "max_concurrent_activations":
			d.integer(&s.MaxConcurrentActivations, at, v)
			if v.kind == kindNumber && v.text == "0" {
				d.report(errorAt(ProblemSettings, at.String(), "max_concurrent_activations must be from 1 to %d, or absent for the default, not 0", maxConcurrentActivations))
			}
		case "on_unresolved":
			if v.kind == kindNull { // a client's empty field, or an author who forgot the quotes
				d.report(warningAt(ProblemAlias, at.String(),
					"null without quotes is not a value, so the default holds; write \"null\" in quotes to have unresolved placeholders become null"))
			}
			d.text(&s.OnUnresolved, at, v)
			s.OnUnresolved = strings.ToLower(s.OnUnresolved)
		case "language":
			d.text(&s.Language, at, v)
			s.Language = strings.ToLower(s.Language)
		}
	})
}

func (d *decoder) number(to *float64, at spot, v *value) {
	switch v.kind {
	case kindNumber:
		n, err := strconv.ParseFloat(v.text, 64)
		if err != nil {
			d.report(errorAt(ProblemWrongType, at.String(), "the number %s is out of range; write a smaller one", shortened(v.text)))
		}
		*to = n
	case kindNull:
	default:
		d.wrongType(at, v, text.Of("a number"))
	}
}

func (d *decoder) integer(to *int, at spot, v *value) {
	switch v.kind {
	case kindNumber:
		n, err := strconv.ParseInt(v.text, 10, 32)
		if err != nil {
			d.report(errorAt(ProblemWrongType, at.String(), "a whole number of reasonable size was expected, not %s; write one such as 10", shortened(v.text)))
		}
		*to = int(n)
	case kindNull:
	default:
		d.wrongType(at, v, text.Of("a whole number"))
	}
}

func (d *decoder) node(n *Node, path string, v *value, f *fields) {
	empty := json.RawMessage("{}")
	n.Configurations, n.InputParams, n.OutputParams = empty, empty, empty
	if !d.object(spot{path: path}, v, text.Of("a node, which is an object,")) {
		return
	}
	d.each(path, v, f, func(field string, at spot, v *value) {
		switch field {
		case "id":
			d.text(&n.ID, at, v)
		case "name":
			d.text(&n.Name, at, v)
		case "description":
			d.text(&n.Description, at, v)
		case "type":
			d.text(&n.Type, at, v)
		case "subtype":
			d.text(&n.Subtype, at, v)
		case "configurations":
			d.parameters(&n.Configurations, at, v)
		case "input_params":
			d.parameters(&n.InputParams, at, v)
		case "output_params":
			d.parameters(&n.OutputParams, at, v)
		case "attached_nodes":
			d.texts(&n.AttachedNodes, at, v)
		case "position":
			n.Position = d.position(at, v)
		case "pinned":
			if d.parameters(&n.Pinned, at, v); len(n.Pinned) == 0 {
				n.Pinned = empty // it may not run
			}
		default:
			d.report(warningAt(ProblemOldField, at.String(),
				"%s is no longer used and was dropped; remove it, output keys follow from the kind of node", field))
		}
	})
	if n.Name == "" {
		n.Name = n.ID
	}
	n.Type, n.Subtype = strings.ToUpper(strings.TrimSpace(n.Type)), strings.ToUpper(strings.TrimSpace(n.Subtype))
	d.rename(n)
}

// parameters reads one of a node's raw objects, in canonical text.
func (d *decoder) parameters(to *json.RawMessage, at spot, v *value) {
	if v.kind != kindObject {
		d.report(errorAt(ProblemWrongType, at.String(), "an object was expected, not %s; write {} or leave the field out", v.kind.words()))
		return
	}
	if len(v.items()) > 0 {
		*to = v.raw()
	}
}

// findChoices notes the nodes of which a connection may name a branch in from_node.
func (d *decoder) findChoices(def *Definition) {
	if d.kinds == nil {
		return
	}
	choice, _ := d.kinds.Alias("CHOICE", "")
	for i := range def.Nodes {
		if n := &def.Nodes[i]; n.Kind() == choice {
			d.choices[n.ID] = true
		}
	}
}

// rename brings an older spelling of a kind to today's.
func (d *decoder) rename(n *Node) {
	if d.kinds == nil {
		return
	}
	if _, known := d.kinds.Kind(n.Kind()); known {
		return
	}
	if kind, ok := d.kinds.Alias(n.Type, n.Subtype); ok {
		if n.Type == "END" && n.Subtype == "" {
			n.Configurations = handingOn(n.Configurations)
		}
		n.Type, n.Subtype, _ = strings.Cut(kind, ".")
	}
}

// handingOn lets the last step of older files hand its input on, which is what such files mean by it.
func handingOn(config json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	if len(config) > 0 && json.Unmarshal(config, &fields) != nil {
		return config // it is reported as what it is
	}
	for _, name := range []string{"pass_through", "passThrough"} {
		if _, said := fields[name]; said {
			return config
		}
	}
	if len(fields) == 0 {
		return json.RawMessage(`{"pass_through":true}`)
	}
	return append([]byte(`{"pass_through":true,`), config[1:]...)
}

func (d *decoder) connection(c *Connection, path string, v *value, f *fields) {
	if !d.object(spot{path: path}, v, text.Of("a connection, which is an object,")) {
		return
	}
	port := ""
	d.each(path, v, f, func(field string, at spot, v *value) {
		switch field {
		case "id":
			d.text(&c.ID, at, v)
		case "from_node":
			d.text(&c.FromNode, at, v)
		case "to_node":
			d.text(&c.ToNode, at, v)
		case "output_key":
			if v.kind == kindBool { // YAML reads the keys of FLOW.IF as booleans
				c.OutputKey = v.text
				return
			}
			d.text(&c.OutputKey, at, v)
		case "conversion_function":
			d.text(&c.ConversionFunction, at, v)
		case "from_port":
			if v.kind == kindBool {
				port = v.text
			} else {
				d.text(&port, at, v)
			}
			d.report(warningAt(ProblemOldField, at.String(), "from_port was read as output_key; write output_key instead"))
		default:
			d.report(warningAt(ProblemOldField, at.String(), "%s is no longer used and was dropped; remove it, a node has one input", field))
		}
	})
	if c.OutputKey == "" {
		c.OutputKey = port
	}
	d.branch(c, path)
	if c.OutputKey == "" {
		c.OutputKey = DefaultKey
	}
}

// branch reads "step.branch" in from_node as the output key branch of the node step, for the kind that an older step
// type stands for.
func (d *decoder) branch(c *Connection, path string) {
	for i := strings.IndexByte(c.FromNode, '.'); i >= 0 && i < len(c.FromNode); {
		if d.choices[c.FromNode[:i]] {
			step, key := c.FromNode[:i], c.FromNode[i+1:]
			if c.OutputKey != "" && c.OutputKey != key {
				d.report(errorAt(ProblemAlias, path+".output_key",
					"from_node names the branch %q and output_key the key %q; keep one of them", key, c.OutputKey))
			}
			c.FromNode, c.OutputKey = step, key
			return
		}
		next := strings.IndexByte(c.FromNode[i+1:], '.')
		if next < 0 {
			return
		}
		i += 1 + next
	}
}

// nameConnections gives connections without an id one that follows from their ends, so that it is the same whenever
// the file is read.
func nameConnections(connections []Connection) {
	taken := make(map[string]struct{}, len(connections))
	for i := range connections {
		if id := connections[i].ID; id != "" {
			taken[id] = struct{}{}
		}
	}
	again := make(map[string]int)
	for i := range connections {
		c := &connections[i]
		if c.ID != "" {
			continue
		}
		base := c.FromNode + "-" + c.OutputKey + "-" + c.ToNode
		id := base
		for _, used := taken[id]; used; _, used = taken[id] {
			again[base] = max(again[base], 1) + 1
			id = base + "-" + strconv.Itoa(again[base])
		}
		taken[id] = struct{}{}
		c.ID = id
	}
}
