package flow

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"

	"tandem/builtin/values"
	"tandem/expr"
	"tandem/node"
)

// loopKept is what a loop keeps for its next turn or iteration in [node.Call.Kept]: what it finds out about its input, which may be large,
// once.
type loopKept struct {
	mu sync.Mutex
	// items is the list it runs over, nil before it was looked for.
	items []json.RawMessage
	// members are the fields of input.
	input   json.RawMessage
	members []values.Member
	// data is what a loop with a condition begins with.
	begins *loopData
}

func keptBy(call *node.Call) *loopKept {
	k, ok := call.Kept.(*loopKept)
	if !ok {
		k = &loopKept{}
		call.Kept = k
	}
	return k
}

// membersOf are the fields of an input, which are found once. The list is shared.
func (k *loopKept) membersOf(input json.RawMessage) []values.Member {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(input) == 0 || len(k.input) != len(input) || &k.input[0] != &input[0] {
		k.input, k.members = input, values.Members(input)
	}
	return k.members
}

// loopData is what a loop with a condition begins with: the data, whether it is the input's own "data" or all of the input, and its fields
// if it is an object.
type loopData struct {
	data    json.RawMessage
	own     bool
	members []values.Member
}

func (k *loopKept) beginning(call *node.Call) *loopData {
	all := k.membersOf(call.Input)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.begins == nil {
		k.begins = &loopData{data: call.Input, members: all}
		if i := slices.IndexFunc(all, func(m values.Member) bool { return m.Key == "data" }); i >= 0 {
			k.begins = &loopData{data: all[i].Value, own: true, members: values.Members(all[i].Value)}
		}
	}
	return k.begins
}

// merge lays what an iteration has made over the data. The state has only what differs from what the loop began with: what stays as it was
// is not written again.
func (s *loopState) merge(begins *loopData, last json.RawMessage) {
	switch {
	case !values.IsObject(last):
	case len(s.Data) > 0 && values.IsObject(s.Data):
		s.Data = values.Object(values.Overlay(values.Members(s.Data), values.Members(last)...))
	case len(s.Data) > 0 || !values.IsObject(begins.data):
		s.Data = last
	default:
		first := make(map[string]json.RawMessage, len(begins.members))
		for _, m := range begins.members {
			first[m.Key] = m.Value
		}
		changed := slices.DeleteFunc(values.Overlay(values.Members(s.Over), values.Members(last)...), func(m values.Member) bool {
			value, ok := first[m.Key]
			return ok && bytes.Equal(value, m.Value)
		})
		if s.Over = nil; len(changed) > 0 {
			s.Over = values.Object(changed)
		}
	}
}

// fields are the fields of the data as it is now; none if it is not an object.
func (s *loopState) fields(begins *loopData) []values.Member {
	switch {
	case len(s.Data) > 0:
		return values.Members(s.Data)
	case len(s.Over) > 0:
		return values.Overlay(begins.members, values.Members(s.Over)...)
	}
	return begins.members
}

// whole is the data as it is now.
func (s *loopState) whole(begins *loopData) json.RawMessage {
	switch {
	case len(s.Data) > 0:
		return s.Data
	case len(s.Over) > 0:
		return values.Object(s.fields(begins))
	}
	return begins.data
}

// names adds to names what an expression reads of the data: all of it as "data", and where all of the input is the data, its fields by
// name. What the expression does not read is not decoded.
func (s *loopState) names(begins *loopData, program *expr.Program, names map[string]any) {
	read, every := map[string]bool{}, false
	roots := program.Roots()
	for _, path := range program.Paths() {
		if path[0] != "data" {
			continue
		}
		if every = every || len(path) < 2; len(path) > 1 {
			read[path[1]] = true
		}
	}
	if every || len(s.Data) > 0 && !values.IsObject(s.Data) || len(s.Data) == 0 && !values.IsObject(begins.data) {
		names["data"] = values.Decode(s.whole(begins))
	}
	_, decoded := names["data"]
	data := map[string]any{}
	for _, m := range s.fields(begins) {
		bare := !begins.own && m.Key != "last" && m.Key != "results" && slices.Contains(roots, m.Key)
		var value any
		if read[m.Key] && !decoded || bare {
			value = values.Decode(m.Value)
		}
		if data[m.Key] = value; bare {
			names[m.Key] = value
		}
	}
	if !decoded {
		names["data"] = data
	}
}
