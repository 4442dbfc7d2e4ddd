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

// Every iteration of a loop is given all fields beside the list, and most nodes read none of them. To put a large field into the input of each
// iteration costs its size as often as there are iterations: it is copied, checked and read. So a node that says which fields of its input it
// reads is given large ones beside its input; placeholders and expressions find them there.

// Reads says of a kind that it reads those fields of its input that a Go type has, and no others.
func Reads[I any](k Kind) Kind {
	k.skims = payload.ReadsOf(reflect.TypeFor[I]())
	return k
}

// Skims says that a node does not read all fields of its input, so that large ones of an iteration cost it nothing.
func (r *Revision) Skims(node int) bool { return node >= 0 && r.nodes[node].skims != nil }

// skimsNode is which fields a node reads by itself; nil: all of them, or it is not known.
func (n *readyNode) skimsNode(config json.RawMessage) *payload.Reads {
	k := &n.kind
	if k.Run == nil && k.Scope == nil || k.Scope != nil && k.Needs == nil || k.Steps != nil || k.Prepare != nil || k.After != nil || k.Wants != nil || n.fills != nil || n.pinned != nil || len(n.apart) > 0 || n.override.input != nil {
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

// entry is what an iteration gives the node that it begins with: all of it, or, for a node that skims its input, without large fields, which are
// beside it then.
func (x *run) entry() json.RawMessage {
	fields, s := x.job.Data.Entry, x.node.skims
	alone := len(x.job.Run.Inputs) == 1 && !x.job.Run.Inputs[0].Convert && len(x.job.Edits) == 0 && len(x.job.EditsOf) == 0
	if s == nil || !alone || x.all || x.job.Stand != nil || x.plan().Disabled && !x.node.hands || x.owner != x.job.Run.Node || x.job.Run.Step != nil {
		return payload.AppendObject(nil, fields)
	}
	var small []payload.Member
	x.beside = nil
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
	return payload.AppendObject(nil, small)
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
	for _, f := range x.job.Data.Entry {
		if i := slices.IndexFunc(own, func(m payload.Member) bool { return m.Key == f.Key }); i >= 0 {
			all = append(all, own[i])
			own = slices.Delete(slices.Clone(own), i, i+1)
		} else if slices.ContainsFunc(x.beside, func(a dataflow.Apart) bool { return a.Path[0] == f.Key }) {
			all = append(all, f)
		}
	}
	return append(all, own...)
}

// iteration is what a scope hands to one of its iterations, with what is beside its input.
func (x *run) iteration(scope *Scope, state json.RawMessage, index int64) (Iteration, error) {
	it, err := scope.Iteration(&x.call, state, index)
	if err == nil && len(x.beside) > 0 {
		it.Fields = x.fieldsOf(it.Fields)
	}
	return it, err
}

// wholeOf is an object that has the fields of the input, with what is beside the input.
func (x *run) wholeOf(object json.RawMessage) json.RawMessage {
	return payload.AppendObject(nil, x.fieldsOf(payload.Members(object)))
}

// handsOn says that the output lacks fields of the input that are beside it.
func (x *run) handsOn() bool { return x.lacks }

// shares says that what is beside the input may be kept beside the output: nothing has to look at it.
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
