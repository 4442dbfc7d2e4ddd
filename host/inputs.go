package host

import (
	"encoding/json"

	"tandem/engine"
	"tandem/payload"
)

// Inputs are the values that a run refers to, by reference. Most runs have one, for which there is room without a map.
type Inputs struct {
	ref   engine.Ref
	value json.RawMessage
	more  map[engine.Ref]json.RawMessage
}

// Get returns the value of a reference, and whether there is one.
func (v *Inputs) Get(ref engine.Ref) (json.RawMessage, bool) {
	if ref != "" && ref == v.ref {
		return v.value, true
	}
	value, ok := v.more[ref]
	return value, ok
}

// Value is the value of a reference; nil if there is none.
func (v *Inputs) Value(ref engine.Ref) json.RawMessage {
	value, _ := v.Get(ref)
	return value
}

// Len is how many values there are.
func (v *Inputs) Len() int {
	if v.ref == "" {
		return 0
	}
	return 1 + len(v.more)
}

// Size is how large they are.
func (v *Inputs) Size() int {
	size := len(v.value)
	for _, value := range v.more { // order does not matter: a sum
		size += len(value)
	}
	return size
}

// set puts a value in the place of the one that its reference had, if it had one. The reference is not empty.
func (v *Inputs) set(ref engine.Ref, value json.RawMessage) {
	if v.ref == "" || v.ref == ref {
		v.ref, v.value = ref, value
		return
	}
	if v.more == nil {
		v.more = map[engine.Ref]json.RawMessage{}
	}
	v.more[ref] = value
}

// Entry is the payload of an entry key: its fields, which share memory with those of other iterations, or, if they are nil, one value.
type Entry struct {
	Fields []payload.Member
	Value  json.RawMessage
}

// Whole is the payload as one value.
func (e *Entry) Whole() json.RawMessage {
	if e.Fields == nil {
		return e.Value
	}
	return payload.AppendObject(nil, e.Fields)
}

// entersIteration says whether a connection brings the input of an iteration, which has no reference.
func (f *Fold) entersIteration(in engine.Input) bool {
	return in.Ref == "" && in.Edge >= 0 && f.graph.Edges[in.Edge].Entry
}

// noFields stands for a payload whose fields are known. read-only
var noFields = json.RawMessage("{}")
