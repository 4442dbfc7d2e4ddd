package host

import (
	"encoding/json"

	"tandem/engine"
	"tandem/payload"
)

// Entry is the payload of an entry key: its fields, which share their memory with those of other iterations, or, if they are nil, one value.
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

// entersIteration says that a connection brings what an iteration is given, which has no reference.
func (f *Fold) entersIteration(in engine.Input) bool {
	return in.Ref == "" && in.Edge >= 0 && f.graph.Edges[in.Edge].Entry
}

// noFields stands for a payload whose fields are known. read-only
var noFields = json.RawMessage("{}")
