package dataflow

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"tandem/fault"
	"tandem/payload"
)

// Source is one place a value came from.
type Source struct {
	Layer Layer `json:"layer"`
	// Node is the node whose output the value is of, also when it was read from runtime_metadata: the node that had
	// synced it. Activation and Scope are of the visit, Seq of the journal row. Empty for what is of no node.
	Node       string `json:"node_id,omitempty"`
	Activation string `json:"activation_id,omitempty"`
	Scope      string `json:"scope,omitempty"`
	Seq        uint64 `json:"seq,omitempty"`
	// Name is the name in metadata, of the variable or of the environment variable. Key is the output key and
	// Connection the id of a connection.
	Name       string `json:"name,omitempty"`
	Key        string `json:"output_key,omitempty"`
	Connection string `json:"connection_id,omitempty"`
	Converted  bool   `json:"converted,omitempty"`
	// Path is the path in the node's output, in the payload, or in what Name names.
	Path string `json:"path,omitempty"`
	// Placeholder is the placeholder that read it, as written.
	Placeholder string `json:"placeholder,omitempty"`
	// EditedBy is who has edited the value, and EditedIn the fork that begins with the edit.
	EditedBy string `json:"edited_by,omitempty"`
	EditedIn string `json:"edited_in,omitempty"`
	// PinnedBy is who has given the output that the value is of, in a test.
	PinnedBy string `json:"pinned_by,omitempty"`
}

// Origin is where one part of an input came from: the value at Path with everything below it.
type Origin struct {
	Path string `json:"path"`
	// Sources has one source, or several if a text was put together; a literal has the layer "literal".
	Sources []Source `json:"sources"`
	// Text says that the sources were put into a text, so that what is at Path is more than they.
	Text bool `json:"text,omitempty"`
	// Unresolved are the placeholders in it that nothing answered to.
	Unresolved []string `json:"unresolved,omitempty"`

	depth payload.Path
}

// Lineage is where every value of an input came from. It is computed when somebody asks and stored nowhere.
type Lineage struct {
	// Origins are in the order of the input; none is inside another.
	Origins []Origin `json:"origins"`

	input json.RawMessage
}

func (h hit) source() Source {
	s := Source{Layer: h.layer, Name: h.name, Scope: h.scope, Path: h.path.String()}
	if h.layer == LayerSteps {
		s.Name = ""
	}
	if h.layer == LayerOwn {
		s.Name = ""
	}
	if h.field != "" {
		s.Path = append(payload.Path{payload.KeyStep(h.field)}, h.path...).String()
	}
	if res := h.from; res != nil {
		s.Node, s.Activation, s.Scope, s.Seq = res.node, res.activation, res.scope, res.seq
		if h.field != "" {
			h.edit = res.editOf(payload.Path{payload.KeyStep(h.field)})
		} else {
			h.edit = res.editOf(h.path)
		}
	}
	if h.edit != nil {
		s.EditedBy, s.EditedIn = h.edit.by, h.edit.fork
	}
	return s
}

// InputLineage tells where every value of the input came from that BuildInput makes of the same arguments. Placeholders
// that nothing answers to are told as unresolved even where BuildInput refuses them.
func InputLineage(l *Layers, in Input, r Request) (Lineage, error) {
	if r.OnUnresolved == UnresolvedError || r.OnUnresolved == "" {
		r.OnUnresolved = UnresolvedKeep
	}
	fields, trace, err := in.fields(l, r)
	if err != nil {
		return Lineage{}, err
	}
	rd, err := l.reader(r)
	if err != nil {
		return Lineage{}, err
	}
	members := make([]payload.Member, len(fields))
	for i, f := range fields {
		members[i] = f.Member
	}
	lin := Lineage{input: payload.AppendObject(nil, members)}
	params := Lineage{input: trace.Resolved}
	if in.Params != nil {
		params.Origins = in.Params.origins(&rd)
	}
	for _, f := range fields {
		at := payload.Path{payload.KeyStep(f.Key)}
		switch {
		case f.edit != nil:
			lin.Origins = append(lin.Origins, Origin{Path: at.String(), depth: at, Sources: []Source{{
				Layer: LayerEdit, Name: f.Key, EditedBy: f.edit.By, EditedIn: f.edit.Fork}}})
		case f.nested != nil:
			for _, n := range f.nested {
				lin.addSource(in, n, append(slices.Clone(at), payload.KeyStep(n.Key)))
			}
		case f.payloads != nil:
			lin.addSource(in, f, at)
		default:
			if whole, ok := params.of(at); ok { // the field, or all parameters, came as one value
				lin.Origins = append(lin.Origins, whole)
				continue
			}
			for _, o := range params.Origins {
				if o.depth[0].Key == f.Key {
					lin.Origins = append(lin.Origins, o)
				}
			}
		}
	}
	return lin, nil
}

// addSource tells a field that came by connections.
func (lin *Lineage) addSource(in Input, f field, at payload.Path) {
	for n, i := range f.payloads {
		p := in.Payloads[i]
		place := at
		if len(f.payloads) > 1 {
			place = append(slices.Clone(at), payload.Step{Key: strconv.Itoa(n), Index: n, Bracketed: true})
		}
		s := Source{Layer: LayerConnection, Node: p.Node, Activation: p.Activation, Key: p.Key, Connection: p.Connection,
			Converted: p.Converted, Path: f.source}
		for _, e := range p.Edits {
			if f.source == "" || e.Name == f.Key {
				s.EditedBy, s.EditedIn = e.By, e.Fork
			}
		}
		lin.Origins = append(lin.Origins, Origin{Path: place.String(), depth: place, Sources: []Source{s}})
	}
}

// Lineage tells where every value came from that Resolve makes of the same arguments. Placeholders that nothing
// answers to are told as unresolved even where Resolve refuses them.
func (t *Template) Lineage(l *Layers, r Request) (Lineage, error) {
	if r.OnUnresolved == UnresolvedError || r.OnUnresolved == "" {
		r.OnUnresolved = UnresolvedKeep
	}
	value, _, err := t.Resolve(l, r)
	if err != nil {
		return Lineage{}, err
	}
	rd, err := l.reader(r)
	if err != nil {
		return Lineage{}, err
	}
	return Lineage{Origins: t.origins(&rd), input: value}, nil
}

// origins walks the template as written. Placeholders come up in the order in which they were compiled.
func (t *Template) origins(rd *reader) []Origin {
	var placeholders []*placeholder
	for _, part := range t.parts {
		if part.p != nil {
			placeholders = append(placeholders, part.p)
		}
	}
	var origins []Origin
	var visit func(raw []byte, at payload.Path)
	visit = func(raw []byte, at payload.Path) {
		empty := len(raw) == 2
		switch {
		case raw[0] == '{' && !empty:
			for _, m := range payload.Members(raw) {
				visit(m.Value, append(slices.Clip(at), payload.KeyStep(m.Key)))
			}
			return
		case raw[0] == '[' && !empty:
			n := 0
			payload.EachItem(raw, func(value []byte) bool {
				visit(value, append(slices.Clip(at), payload.Step{Key: strconv.Itoa(n), Index: n, Bracketed: true}))
				n++
				return true
			})
			return
		}
		o := Origin{Path: at.String(), depth: at}
		for len(placeholders) > 0 && raw[0] == '"' && placeholders[0].at == o.Path {
			p := placeholders[0]
			placeholders = placeholders[1:]
			o.Text = o.Text || len(p.raw) != len(payload.Unquote(raw[1:len(raw)-1]))
			h, ok := rd.find(p)
			if !ok {
				o.Unresolved = append(o.Unresolved, p.raw)
				continue
			}
			s := h.source()
			s.Placeholder = p.raw
			o.Sources = append(o.Sources, s)
		}
		if o.Sources == nil {
			o.Sources = []Source{{Layer: LayerLiteral}}
		}
		origins = append(origins, o)
	}
	visit(t.raw, nil)
	return origins
}

// Of tells where the value at a path of the input came from. If the path goes into a value that came as a whole, the
// sources' paths go on with it. It reports false for a path that is not in the input.
func (lin Lineage) Of(path string) (Origin, bool, error) {
	segs, end, problem := payload.ScanPath(path, 0)
	if problem == "" && end != len(path) {
		problem = "is not one path of names"
	}
	if problem != "" {
		return Origin{}, false, fault.Newf(fault.Invalid, "the path %q %s", path, problem)
	}
	o, ok := lin.of(segs)
	return o, ok, nil
}

func (lin Lineage) of(path payload.Path) (Origin, bool) {
	if _, ok := path.In(lin.input); !ok {
		return Origin{}, false
	}
	for _, o := range lin.Origins {
		if len(o.depth) > len(path) || !samePath(o.depth, path[:len(o.depth)]) {
			continue
		}
		rest := path[len(o.depth):]
		if len(rest) == 0 {
			return o, true
		}
		deeper := Origin{Path: path.String(), depth: path, Text: o.Text, Unresolved: o.Unresolved}
		for _, s := range o.Sources {
			if below := rest.String(); s.Path == "" || strings.HasPrefix(below, "[") {
				s.Path += below
			} else {
				s.Path += "." + below
			}
			deeper.Sources = append(deeper.Sources, s)
		}
		return deeper, true
	}
	return Origin{}, false
}

func samePath(a, b payload.Path) bool {
	return slices.EqualFunc(a, b, func(x, y payload.Step) bool { return x.Key == y.Key })
}

// Leaves tells the origin of every leaf of the input (strings, numbers, booleans, null, empty lists and objects), in
// order, at most limit of them.
func (lin Lineage) Leaves(limit int) []Origin {
	var leaves []Origin
	var visit func(raw []byte, at payload.Path)
	visit = func(raw []byte, at payload.Path) {
		if len(leaves) >= limit {
			return
		}
		switch {
		case raw[0] == '{' && len(raw) > 2:
			for _, m := range payload.Members(raw) {
				visit(m.Value, append(slices.Clip(at), payload.KeyStep(m.Key)))
			}
		case raw[0] == '[' && len(raw) > 2:
			n := 0
			payload.EachItem(raw, func(item []byte) bool {
				visit(item, append(slices.Clip(at), payload.Step{Key: strconv.Itoa(n), Index: n, Bracketed: true}))
				n++
				return len(leaves) < limit
			})
		default:
			if o, ok := lin.of(at); ok {
				leaves = append(leaves, o)
			}
		}
	}
	visit(lin.input, nil)
	return leaves
}
