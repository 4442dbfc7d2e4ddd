package dataflow

import (
	"encoding/json"
	"strconv"

	"tandem/fault"
	"tandem/payload"
)

// Payload is what one live connection brings, after its conversion.
type Payload struct {
	// Node is the source node's id, Activation its visit, Key the output key, Connection the connection's id.
	Node       string
	Activation string
	Key        string
	Connection string
	// Converted says that a conversion made the value, so that paths in it are not paths in the source's output.
	Converted bool
	Value     json.RawMessage
	// Edits are those that were made of the value.
	Edits []Edit
}

// Input is what an activation's input is built from.
type Input struct {
	// Payloads are those of the live incoming connections, in the order of the definition.
	Payloads []Payload
	// Keyed adds "inputs", the payloads by source node, for nodes that merge.
	Keyed bool
	// Params are the node's input_params; nil means none.
	Params *Template
	// Edits are laid over everything: what somebody gave the activation that a fork begins with.
	Edits []Edit
}

// DataKey is where payloads go that are not objects.
const DataKey = "data"

// InputsKey is where payloads go by source node if that is asked for.
const InputsKey = "inputs"

// field is one top-level field of an input that is being built.
type field struct {
	payload.Member
	// payloads are the indexes of the payloads it came from; nil for a field of the parameters.
	payloads []int
	// gathered fields are made of whole payloads, which wait in values; several become a list.
	gathered bool
	values   []json.RawMessage
	// source is the path of the field in its payload, "" for the whole payload.
	source string
	// nested fields are those of "inputs".
	nested []field
	// edit is what it was edited by.
	edit *Edit
}

// BuildInput merges the payloads and lays the resolved parameters over them.
//
// An object is merged field by field into what is there, the later one winning; fields keep the place where they stood
// first. Payloads that are not objects are gathered under "data": one is the value itself, several are a list of them in
// order, also if one of them is a list. Where a field "data" of an object meets values gathered there the later one wins
// as well, and the trace has a warning. Parameters win over the payloads, field by field, and are not merged further down;
// edits win over everything.
//
// "inputs" has one field per source node; a source with several payloads has a list of them.
func BuildInput(l *Layers, in Input, r Request) (json.RawMessage, ResolveTrace, error) {
	if len(in.Payloads) == 1 && !in.Keyed && len(in.Edits) == 0 && (in.Params == nil || string(in.Params.raw) == "{}") {
		if value, err := payload.Normalize(in.Payloads[0].Value, payload.Limits{}); err == nil &&
			value[0] == '{' && len(value) <= MaxOutput {
			return value, ResolveTrace{StepID: r.StepID}, nil // handed on unchanged
		}
	}
	fields, trace, err := in.fields(l, r)
	if err != nil {
		return nil, trace, err
	}
	members := make([]payload.Member, len(fields))
	size := 2
	for i, f := range fields {
		members[i] = f.Member
		size += len(f.Key) + len(f.Value) + 8
	}
	out := payload.AppendObject(make([]byte, 0, size), members)
	if len(out) > MaxOutput {
		return nil, trace, fault.Newf(fault.TooLarge, "the input has %d bytes; at most %d are taken: hand large values on by reference", len(out), MaxOutput)
	}
	return out, trace, nil
}

func (in Input) fields(l *Layers, r Request) ([]field, ResolveTrace, error) {
	var b, sources inputBuilder
	for i, p := range in.Payloads {
		value, err := payload.Normalize(p.Value, payload.Limits{})
		if err != nil {
			return nil, ResolveTrace{StepID: r.StepID}, fault.Newf(fault.InvalidInput, "the payload from node %q, key %q, cannot be read: %w", p.Node, p.Key, err)
		}
		if in.Keyed {
			sources.gather(p.Node, value, i)
		}
		if value[0] != '{' {
			if held, taken := b.get(DataKey); taken && !held.gathered {
				b.warn(p, in.Payloads[held.payloads[0]])
			}
			b.gather(DataKey, value, i)
			continue
		}
		for _, m := range payload.Members(value) {
			if held, taken := b.get(m.Key); taken && held.gathered {
				b.warn(p, in.Payloads[held.payloads[0]])
			}
			b.set(field{Member: m, payloads: []int{i}, source: payload.JoinKey("", m.Key)})
		}
	}
	if in.Keyed {
		nested := sources.done()
		members := make([]payload.Member, len(nested))
		for i, f := range nested {
			members[i] = f.Member
		}
		b.set(field{Member: payload.Member{Key: InputsKey, Value: payload.AppendObject(nil, members)}, payloads: []int{}, nested: nested})
	}
	trace := ResolveTrace{StepID: r.StepID}
	if in.Params != nil {
		params, resolved, err := in.Params.Resolve(l, r)
		trace = resolved
		if err != nil {
			return nil, trace, err
		}
		switch params[0] {
		case '{':
			for _, m := range payload.Members(params) {
				if held, taken := b.get(m.Key); taken && held.payloads != nil && blank(m.Value) && !blank(held.Value) {
					b.warnings = append(b.warnings, Warning{Path: "input_params." + m.Key,
						Message: "the empty value of input_params hides the field " + strconv.Quote(m.Key) +
							" that a connection brings; remove it from input_params, or give it a value"})
				}
				b.set(field{Member: m})
			}
		case 'n':
		default:
			return nil, trace, fault.New(fault.InvalidConfig, "input_params must be an object").With("path", "input_params")
		}
	}
	for i := range in.Edits {
		e := &in.Edits[i]
		value, err := payload.Normalize(e.Value, payload.Limits{})
		if err != nil {
			return nil, trace, fault.Newf(fault.InvalidInput, "the edited value of %q cannot be read: %w", e.Name, err)
		}
		b.set(field{Member: payload.Member{Key: e.Name, Value: value}, edit: e})
	}
	trace.Warnings = append(b.warnings, trace.Warnings...)
	return b.done(), trace, nil
}

// blank says that a value is an empty text, list or object, or null.
func blank(value json.RawMessage) bool {
	switch string(value) {
	case `""`, "[]", "{}", "null", "":
		return true
	}
	return false
}

// inputBuilder keeps fields in the order in which they first came.
type inputBuilder struct {
	fields   []field
	at       map[string]int
	warnings []Warning
}

func (b *inputBuilder) get(key string) (*field, bool) {
	i, ok := b.at[key]
	if !ok {
		return nil, false
	}
	return &b.fields[i], true
}

func (b *inputBuilder) set(f field) {
	if held, ok := b.get(f.Key); ok {
		*held = f
		return
	}
	if b.at == nil {
		b.at = map[string]int{}
	}
	b.at[f.Key] = len(b.fields)
	b.fields = append(b.fields, f)
}

// gather puts a whole payload under a key, besides those gathered there before.
func (b *inputBuilder) gather(key string, value json.RawMessage, from int) {
	held, ok := b.get(key)
	if !ok || !held.gathered {
		b.set(field{Member: payload.Member{Key: key}, gathered: true})
		held, _ = b.get(key)
	}
	held.values = append(held.values, value)
	held.payloads = append(held.payloads, from)
}

// done makes the values of gathered fields: one is itself, several are a list.
func (b *inputBuilder) done() []field {
	for i := range b.fields {
		f := &b.fields[i]
		if !f.gathered {
			continue
		}
		if len(f.values) == 1 {
			f.Value = f.values[0]
			continue
		}
		f.Value = payload.AppendList(nil, f.values)
	}
	return b.fields
}

func (b *inputBuilder) warn(winner, loser Payload) {
	b.warnings = append(b.warnings, Warning{Path: DataKey, Message: "the payload of connection " + strconv.Quote(winner.Connection) +
		" from node " + strconv.Quote(winner.Node) + " replaces \"data\" of node " + strconv.Quote(loser.Node) +
		"; give one of them a conversion that names its field"})
}
