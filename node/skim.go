package node

import (
	"encoding/json"
	"reflect"
	"slices"

	"github.com/tidwall/gjson"

	"tandem/dataflow"
	"tandem/node/handed"
	"tandem/payload"
)

// Every iteration of a loop is given all fields beside the list, and most nodes read none of them. Putting a large field into the input
// of each iteration would copy, check and read it each time. So a node that says which fields of its input it reads gets large ones
// beside its input; placeholders and expressions find them there.

// Reads declares that a kind reads only those fields of its input that a Go type has.
func Reads[I any](k Kind) Kind {
	k.skims = payload.ReadsOf(reflect.TypeFor[I]())
	return k
}

// Skims says whether a node reads only some fields of its input, so that large fields of an iteration cost it nothing.
func (r *Revision) Skims(node int) bool { return node >= 0 && r.nodes[node].skims != nil }

// skimsNode is which fields a node reads by itself; nil: all of them, or it is not known.
func (n *readyNode) skimsNode(config json.RawMessage) *payload.Reads {
	k := &n.kind
	if k.Run == nil && k.Scope == nil || k.Scope != nil && k.Needs == nil || k.Steps != nil || k.Prepare != nil || k.After != nil ||
		k.Wants != nil || n.fills != nil || n.pinned != nil || len(n.apart) > 0 || n.override.input != nil {
		return nil
	}
	if k.Hands != nil && k.Hands(config) {
		return &payload.Reads{}
	}
	if k.Needs != nil {
		if needs := k.Needs(config); needs != nil {
			return needs
		}
	}
	return k.skims
}

// entry is what an iteration gives the node that it begins with: all of it, or, for a node that skims its input, without large fields,
// which are beside it then.
func (x *run) entry() json.RawMessage {
	fields, s := x.job.Data.Entry, x.node.skims
	inputs := x.job.Run.Inputs // none of a trigger
	alone := len(inputs) <= 1 && (len(inputs) == 0 || !inputs[0].Convert) && len(x.job.Edits) == 0 && len(x.job.EditsOf) == 0
	if !alone || !x.skimsInput() {
		return payload.AppendObject(nil, fields)
	}
	var small []payload.Member
	size := 0
	for _, f := range fields {
		size += len(f.Key) + len(f.Value) + 8
		if len(f.Value) < handed.Large || s.Has(f.Key) {
			small = append(small, f)
			continue
		}
		x.beside = append(x.beside, dataflow.Apart{Path: []string{f.Key}, Value: f.Value})
	}
	if size > dataflow.MaxOutput {
		x.beside = nil
		return payload.AppendObject(nil, fields)
	}
	x.brought = fields
	return payload.AppendObject(nil, small)
}

// skimsInput says whether the run may get its input without large fields that the node does not read.
func (x *run) skimsInput() bool {
	return x.node.skims != nil && !x.all && x.job.Stand == nil && (!x.plan().Disabled || x.node.hands) && x.owner == x.job.Run.Node &&
		x.job.Run.Step == nil
}

// joined is what one of several connections brings: all of it, or, for a node that reads some of it only, without large fields that no
// other brings with another value. Placeholders find these as well, and what the node hands to its body or to a child has them.
func (x *run) joined(from string, fields []payload.Member) json.RawMessage {
	if !x.skimsInput() || x.node.hands {
		return payload.AppendObject(nil, fields)
	}
	small := make([]payload.Member, 0, len(fields))
	for _, f := range fields {
		if !slices.ContainsFunc(x.brought, func(m payload.Member) bool { return m.Key == f.Key }) {
			x.brought = append(x.brought, f)
		}
		if len(f.Value) < handed.Large || x.node.skims.Has(f.Key) || !x.agreed(f) {
			small = append(small, f)
			continue
		}
		if !x.isBeside(f.Key) {
			x.beside = append(x.beside, dataflow.Apart{Path: []string{f.Key}, Value: f.Value})
		}
		if x.keyed(len(x.job.Run.Inputs)) {
			x.left = append(x.left, dataflow.Apart{Path: []string{dataflow.InputsKey, from, f.Key}, Value: f.Value})
		}
	}
	return payload.AppendObject(nil, small)
}

// isBeside says whether a field of the input is kept beside it.
func (x *run) isBeside(key string) bool {
	return slices.ContainsFunc(x.beside, func(a dataflow.Apart) bool { return a.Path[0] == key })
}

// agreed says whether all connections that bring a field bring the same value.
func (x *run) agreed(field payload.Member) bool {
	for _, in := range x.job.Run.Inputs {
		if in.Convert || in.Ref == "" {
			return false
		}
		if fields := x.job.Joined[in.Ref]; fields != nil {
			i := slices.IndexFunc(fields, func(m payload.Member) bool { return m.Key == field.Key })
			if i >= 0 && (len(fields[i].Value) != len(field.Value) || &fields[i].Value[0] != &field.Value[0]) {
				return false
			}
			continue
		}
		value, err := x.job.Value(in.Ref)
		if err != nil {
			return false
		}
		_, has := payload.Field(value, field.Key)
		if !gjson.ParseBytes(value).IsObject() { // which is "data" of the input
			has = field.Key == dataflow.DataKey
		}
		if has {
			return false
		}
	}
	return true
}

// whole is the node's input with what is beside it, in the order in which it was given.
func (x *run) whole() json.RawMessage {
	if len(x.beside) == 0 {
		return x.call.Input
	}
	return x.wholeOf(x.call.Input)
}

// fieldsOf are fields of an object that has those of the input, with what is beside the input in its place.
func (x *run) fieldsOf(own []payload.Member) []payload.Member {
	var all []payload.Member
	for _, f := range x.brought {
		if i := slices.IndexFunc(own, func(m payload.Member) bool { return m.Key == f.Key }); i >= 0 {
			all = append(all, own[i])
			own = slices.Delete(slices.Clone(own), i, i+1)
		} else if x.isBeside(f.Key) {
			all = append(all, f)
		}
	}
	return append(all, own...)
}

// iteration is what a scope hands to one of its iterations, with what is beside its input.
func (x *run) iteration(scope *Scope, state json.RawMessage, index int64) (Iteration, error) {
	it, err := scope.Iteration(&x.call, state, index)
	switch {
	case err != nil || len(x.beside) == 0:
	case len(x.left) > 0:
		it.Fields = payload.Members(x.wholeOf(payload.AppendObject(nil, it.Fields)))
	default:
		it.Fields = x.fieldsOf(it.Fields)
	}
	return it, err
}

// wholeOf is an object that has the fields of the input, with what is beside the input.
func (x *run) wholeOf(object json.RawMessage) json.RawMessage {
	object = payload.AppendObject(nil, x.fieldsOf(payload.Members(object)))
	for i := range x.left {
		object = x.left[i].Into(object)
	}
	return object
}

// handsOn says whether the output lacks fields of the input that are beside it.
func (x *run) handsOn() bool { return x.lacks }

// shares says whether what is beside the input may be kept beside the output: nothing has to read it.
func (x *run) shares() bool {
	return !x.guarded() && x.node.override.output == nil && x.node.kind.Publishes == "" && !gjson.GetBytes(x.call.Config, "to_user").Bool()
}

// wholeOutputs puts what is beside the input into the output.
func (x *run) wholeOutputs(outputs Done) Done {
	whole := make(Done, len(outputs))
	for key, output := range outputs { // order does not matter: one entry per key
		whole[key] = x.wholeOf(output)
	}
	x.lacks = false
	return whole
}

// shared takes the fields that were beside the input out of what is written for the output.
func (x *run) shared(outputs Done) (Done, []payload.Part) {
	if len(outputs) != 1 {
		return x.wholeOutputs(outputs), nil
	}
	for key, output := range outputs { // order does not matter: there is one
		fields := x.fieldsOf(payload.Members(output))
		size := 0
		for _, f := range fields {
			size += len(f.Key) + len(f.Value) + 8
		}
		rest, parts := payload.Split(fields, func(m payload.Member) bool {
			return slices.ContainsFunc(x.beside, func(a dataflow.Apart) bool { return a.Path[0] == m.Key && &a.Value[0] == &m.Value[0] })
		})
		if size < handed.MinShared || len(rest) > handed.MinShared {
			break
		}
		return Done{key: rest}, parts
	}
	return x.wholeOutputs(outputs), nil
}

// childInput is what a child is started with, and fields of it that are kept beside it.
func (x *run) childInput(c *Child) (json.RawMessage, []payload.Part) {
	switch {
	case c == nil:
		return nil, nil
	case !c.HandsOn || len(x.beside) == 0:
		return c.Input, nil
	case !x.shares() || len(x.left) > 0:
		return x.wholeOf(c.Input), nil
	}
	const only = ""
	input, beside := x.shared(Done{only: c.Input})
	return input[only], beside
}

// aside removes what the node's input_params have replaced from what is beside the input, and returns all that is kept apart.
func (x *run) aside(outer []dataflow.Apart) []dataflow.Apart {
	if len(x.beside) == 0 {
		return outer
	}
	list := make([]dataflow.Apart, 0, len(x.beside)+len(x.left)+len(outer))
	for _, a := range slices.Concat(x.left, x.beside) {
		if _, replaced := payload.Field(x.call.Input, a.Path[0]); !replaced || len(a.Path) > 1 {
			list = append(list, a)
		}
	}
	return append(list, outer...)
}
