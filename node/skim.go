package node

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"tandem/dataflow"
	"tandem/payload"
)

// Every iteration of a loop is given all fields beside the list, and most nodes read none of them. To put a large field into the input of each
// iteration costs its size as often as there are iterations: it is copied, checked and read. So a node that says which fields of its input it
// reads is given large ones beside its input; placeholders and expressions find them there.

// largeField is how many bytes a field has that is given beside the input.
const largeField = 4 << 10

// skims is which fields of its input a kind reads by itself.
type skims struct {
	names []string
}

// skimsOf are the fields of a Go type that an input is read into; nil if it may be all.
func skimsOf(t reflect.Type) *skims {
	if t.Kind() != reflect.Struct {
		return nil
	}
	s := &skims{}
	if !s.collect(t) {
		return nil
	}
	return s
}

// Reads says of a kind that it reads those fields of its input that a Go type has, and no others.
func Reads[I any](k Kind) Kind {
	k.skims = skimsOf(reflect.TypeFor[I]())
	return k
}

// collect adds the names of a struct, and says whether these are all that it reads.
func (s *skims) collect(t reflect.Type) bool {
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return false
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case f.Anonymous && name == "":
			inner := f.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			if inner.Kind() != reflect.Struct || !s.collect(inner) {
				return false
			}
		case !f.IsExported():
		case name == "":
			s.names = append(s.names, f.Name)
		default:
			s.names = append(s.names, name)
		}
	}
	return true
}

// reads says that a field is one of those, in any letter case, as JSON is read.
func (s *skims) reads(name string) bool {
	return slices.ContainsFunc(s.names, func(known string) bool { return strings.EqualFold(known, name) })
}

// Skims says that a node does not read all fields of its input, so that large ones of an iteration cost it nothing.
func (r *Revision) Skims(node int) bool { return node >= 0 && r.nodes[node].skims != nil }

// skimsNode is which fields a node reads by itself; nil: all of them, or it is not known.
func (n *readyNode) skimsNode(config json.RawMessage) *skims {
	k := &n.kind
	if k.Run == nil || k.Scope != nil || k.Steps != nil || k.Prepare != nil || k.After != nil || k.Wants != nil || n.fills != nil || n.pinned != nil || len(n.apart) > 0 || n.override.input != nil {
		return nil
	}
	if k.Ignores != nil && k.Ignores(config) {
		return &skims{}
	}
	return k.skims
}

// entry is what an iteration gives the node that it begins with: all of it, or, for a node that skims its input, without large fields, which are
// beside it then.
func (x *run) entry() json.RawMessage {
	fields, s := x.job.Data.Entry, x.node.skims
	alone := len(x.job.Run.Inputs) == 1 && !x.job.Run.Inputs[0].Convert && len(x.job.Edits) == 0 && len(x.job.EditsOf[entryRef]) == 0
	if s == nil || !alone || x.all || x.job.Stand != nil || x.plan().Disabled || x.owner != x.job.Run.Node || x.job.Run.Step != nil {
		return payload.AppendObject(nil, fields)
	}
	var small []payload.Member
	x.beside = nil
	size := 0
	for _, f := range fields {
		size += len(f.Key) + len(f.Value) + 8
		if len(f.Value) < largeField || s.reads(f.Key) {
			small = append(small, f)
			continue
		}
		x.beside = append(x.beside, dataflow.Apart{Path: []string{f.Key}, Value: f.Value})
	}
	if size > dataflow.MaxOutput {
		x.beside = nil
		return payload.AppendObject(nil, fields)
	}
	return payload.AppendObject(nil, small)
}

// whole is the node's input with what is beside it, in the order in which it was given.
func (x *run) whole() json.RawMessage {
	if len(x.beside) == 0 {
		return x.call.Input
	}
	own := payload.Members(x.call.Input)
	var all []payload.Member
	for _, f := range x.job.Data.Entry {
		if i := slices.IndexFunc(own, func(m payload.Member) bool { return m.Key == f.Key }); i >= 0 {
			f = own[i]
			own = slices.Delete(own, i, i+1)
		}
		all = append(all, f)
	}
	return payload.AppendObject(nil, append(all, own...))
}

// aside takes what the node's input_params have replaced out of what is beside the input, and returns all that stands apart from it.
func (x *run) aside(outer []dataflow.Apart) []dataflow.Apart {
	if len(x.beside) == 0 {
		return outer
	}
	list := make([]dataflow.Apart, 0, len(x.beside)+len(outer))
	for _, a := range x.beside {
		if _, replaced := payload.Field(x.call.Input, a.Path[0]); !replaced {
			list = append(list, a)
		}
	}
	return append(list, outer...)
}
