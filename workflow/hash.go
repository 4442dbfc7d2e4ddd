package workflow

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"strconv"

	"tandem/payload"
)

// Encode writes a definition in its canonical form: compact JSON, fields in a fixed order, the keys of parameter objects
// in the order they were written, numbers digit for digit. [Parse] reads it back as the same definition.
func Encode(def *Definition) []byte {
	e := encoder{make([]byte, 0, 256*(len(def.Nodes)+1)+128*len(def.Connections))}
	e.out = append(e.out, '{')
	m := &def.Metadata
	e.open("metadata")
	e.optional("id", m.ID)
	e.text("name", m.Name)
	e.optional("icon_url", m.IconURL)
	e.text("description", m.Description)
	e.texts("tags", m.Tags)
	e.text("version", m.Version)
	e.optional("parent_workflow", m.ParentWorkflow)
	e.open("settings")
	if m.Settings.TimeoutSeconds != 0 {
		e.number("timeout_seconds", m.Settings.TimeoutSeconds)
	}
	e.optional("error_workflow", m.Settings.ErrorWorkflow)
	if m.Settings.MaxConcurrentActivations != 0 {
		e.number("max_concurrent_activations", float64(m.Settings.MaxConcurrentActivations))
	}
	e.optional("on_unresolved", m.Settings.OnUnresolved)
	e.optional("language", m.Settings.Language)
	e.close('}')
	e.close('}')
	e.key("nodes")
	e.out = append(e.out, '[')
	for i := range def.Nodes {
		e.node(&def.Nodes[i])
	}
	e.close(']')
	e.key("connections")
	e.out = append(e.out, '[')
	for i := range def.Connections {
		c := &def.Connections[i]
		e.out = append(e.out, '{')
		e.text("id", c.ID)
		e.text("from_node", c.FromNode)
		e.text("to_node", c.ToNode)
		e.text("output_key", c.OutputKey)
		e.optional("conversion_function", c.ConversionFunction)
		e.close('}')
	}
	e.close(']')
	e.texts("triggers", def.Triggers)
	if len(def.Notes) > 0 {
		e.key("notes")
		e.out = append(e.out, '[')
		for i := range def.Notes {
			e.note(&def.Notes[i])
		}
		e.close(']')
	}
	if len(def.Tests) > 0 {
		e.key("tests")
		e.out = append(e.out, '[')
		for i := range def.Tests {
			e.test(&def.Tests[i])
		}
		e.close(']')
	}
	e.close('}')
	return e.out[:len(e.out)-1]
}

// Hash identifies a revision: the same content has the same hash, whatever file format it was written in. The id of the
// workflow, which the server owns, is not part of it.
func Hash(def *Definition) string {
	c := *def
	c.Metadata.ID = ""
	sum := sha256.Sum256(Encode(&c))
	return hex.EncodeToString(sum[:])
}

// encoder writes fields, each with a comma after it; close takes the last one away.
type encoder struct{ out []byte }

func (e *encoder) key(key string) {
	e.out = payload.AppendText(e.out, key)
	e.out = append(e.out, ':')
}

func (e *encoder) open(key string) {
	e.key(key)
	e.out = append(e.out, '{')
}

func (e *encoder) close(bracket byte) {
	if last := len(e.out) - 1; e.out[last] == ',' {
		e.out = e.out[:last]
	}
	e.out = append(e.out, bracket, ',')
}

func (e *encoder) text(key, s string) {
	e.key(key)
	e.out = append(payload.AppendText(e.out, s), ',')
}

func (e *encoder) optional(key, s string) {
	if s != "" {
		e.text(key, s)
	}
}

func (e *encoder) texts(key string, list []string) {
	e.key(key)
	e.out = append(e.out, '[')
	for _, s := range list {
		e.out = append(payload.AppendText(e.out, s), ',')
	}
	e.close(']')
}

func (e *encoder) number(key string, n float64) {
	e.key(key)
	if math.IsNaN(n) || math.IsInf(n, 0) {
		n = 0 // validation refuses it; here it must only not break the text
	}
	e.out = strconv.AppendFloat(e.out, n, 'f', -1, 64)
	e.out = append(e.out, ',')
}

func (e *encoder) node(n *Node) {
	e.out = append(e.out, '{')
	e.text("id", n.ID)
	e.text("name", n.Name)
	e.text("description", n.Description)
	e.text("type", n.Type)
	e.text("subtype", n.Subtype)
	e.raw("configurations", n.Configurations)
	e.raw("input_params", n.InputParams)
	e.raw("output_params", n.OutputParams)
	if len(n.AttachedNodes) > 0 {
		e.texts("attached_nodes", n.AttachedNodes)
	}
	e.position(n.Position)
	if len(n.Pinned) > 0 {
		e.raw("pinned", n.Pinned)
	}
	e.close('}')
}

func (e *encoder) note(n *Note) {
	e.out = append(e.out, '{')
	e.text("id", n.ID)
	e.text("text", n.Text)
	e.position(n.Position)
	if n.Width != 0 {
		e.number("width", n.Width)
	}
	if n.Height != 0 {
		e.number("height", n.Height)
	}
	e.close('}')
}

func (e *encoder) position(p *Position) {
	if p == nil {
		return
	}
	e.open("position")
	e.number("x", p.X)
	e.number("y", p.Y)
	e.close('}')
}

// raw writes an object in canonical text. What is not an object, which linking refuses, is written as a string.
func (e *encoder) raw(key string, raw json.RawMessage) {
	e.key(key)
	switch v, ok := readObject(raw); {
	case len(raw) == 0:
		e.out = append(e.out, "{}"...)
	case ok:
		e.out = v.appendJSON(e.out)
	default:
		e.out = payload.AppendText(e.out, string(raw))
	}
	e.out = append(e.out, ',')
}

// readObject reads a node's raw object.
func readObject(raw json.RawMessage) (value, bool) {
	v, repeated, fault := readJSON(string(raw), rawLimits(raw))
	return v, fault == nil && len(repeated) == 0 && v.kind == kindObject
}

// isObject is readObject for those who do not want the object: it makes no tree.
func isObject(raw json.RawMessage) bool {
	r := newJSONReader(string(raw), rawLimits(raw))
	r.skim = true
	var v value
	fault := r.document(&v)
	return fault == nil && len(r.repeated) == 0 && v.kind == kindObject
}

func rawLimits(raw json.RawMessage) limits { return limits{depth: 1000, values: len(raw) + 1} }
