// Package handed tells which fields of a payload a function reads, and which of them it hands on as they were. A large field that is
// neither read nor changed is then neither copied for the function nor written again.
package handed

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"github.com/tidwall/gjson"

	"tandem/expr"
	"tandem/payload"
)

const (
	// Large is how many bytes a field has that is left out where nobody reads it.
	Large = 4 << 10
	// MinShared is how large a value is of which fields are kept beside it. A smaller one is written as it is, which costs less.
	MinShared = 32 << 10
)

// Aliases are the names under which a conversion function finds the whole payload.
func Aliases() []string { return []string{"value", "data", "output"} }

// Function is what is known of a conversion function before it runs.
type Function struct {
	program *expr.Program
	hands   map[string]string
	needs   *payload.Reads
}

// Expression is a function that is an expression.
func Expression(program *expr.Program) Function {
	return Function{program: program, hands: program.Hands()}
}

// Script is a function in Python or JavaScript.
func Script(language, source string) Function { return Function{needs: CodeReads(language, source)} }

// Give is the object that the function is given of these fields: the small ones and those that it reads. What it returns is taken apart by
// result: large fields that are as they were given are beside the rest, and share the memory of what was given.
func (f *Function) Give(fields []payload.Member) (object json.RawMessage,
	result func(value json.RawMessage) (rest json.RawMessage, beside []payload.Part)) {
	reads, handed, size := f.reads(fields), map[string]json.RawMessage{}, 0
	for key, name := range f.hands { // order does not matter: one entry per key
		if i := slices.IndexFunc(fields, func(m payload.Member) bool { return m.Key == name }); i >= 0 && len(fields[i].Value) >= Large {
			handed[key] = fields[i].Value
			size += len(fields[i].Value)
		}
	}
	if size > expr.MaxResult {
		handed = nil // and the function says so
	}
	own := make([]payload.Member, 0, len(fields))
	for _, m := range fields {
		switch {
		case len(m.Value) < Large:
		case handed != nil && slices.ContainsFunc(slices.Collect(maps.Values(handed)),
			func(v json.RawMessage) bool { return &v[0] == &m.Value[0] }):
			m.Value = json.RawMessage("null")
		case reads != nil && !reads(m.Key):
			continue
		}
		own = append(own, m)
	}
	return payload.AppendObject(nil, own), func(value json.RawMessage) (json.RawMessage, []payload.Part) {
		return takeApart(value, fields, handed)
	}
}

// reads says which of the fields the function reads, by their names or by those of the whole payload; nil: all of them, also where it reads
// one that is not there, so that it can be told what is.
func (f *Function) reads(fields []payload.Member) func(name string) bool {
	if f.program == nil {
		if f.needs == nil || slices.ContainsFunc(Aliases(), func(alias string) bool { return f.needs.Has(alias) && !has(fields, alias) }) {
			return nil
		}
		return f.needs.Has
	}
	named := map[string]bool{}
	for _, path := range f.program.Paths() {
		if !has(fields, path[0]) && slices.Contains(Aliases(), path[0]) {
			path = path[1:]
		}
		if len(path) == 0 || !has(fields, path[0]) {
			return nil
		}
		named[path[0]] = true
	}
	return func(name string) bool { return named[name] }
}

func has(fields []payload.Member, name string) bool {
	return slices.ContainsFunc(fields, func(f payload.Member) bool { return f.Key == name })
}

// takeApart takes large fields out of a value that are as one of those that its function was given, whatever their names: they are kept
// beside it. Handed are those of which it is known.
func takeApart(value json.RawMessage, given []payload.Member,
	handed map[string]json.RawMessage) (rest json.RawMessage, parts []payload.Part) {
	if len(handed) == 0 && len(value) < MinShared || len(value) == 0 || value[0] != '{' {
		return value, nil
	}
	fields := payload.Members(value)
	shared, size := make([]bool, len(fields)), 0
	for i := range fields {
		if part, ok := handed[fields[i].Key]; ok {
			fields[i].Value, shared[i] = part, true
		} else if same := slices.IndexFunc(given, func(g payload.Member) bool {
			return len(g.Value) >= Large && bytes.Equal(g.Value, fields[i].Value)
		}); same >= 0 {
			fields[i].Value, shared[i] = given[same].Value, true
		}
		size += len(fields[i].Value)
	}
	at := -1
	rest, parts = payload.Split(fields, func(payload.Member) bool {
		at++
		return shared[at]
	})
	if len(parts) == 0 || size < MinShared || len(rest) > MinShared {
		return payload.AppendObject(nil, fields), nil
	}
	return rest, parts
}

// AsGiven is what a conversion function hands on: a result that is the payload, whatever its numbers look like in the language of the
// function, is the payload as it was written. So is one that has a payload which is not an object under every alias and nothing else: it is
// a copy of what the function was given for it.
func AsGiven(result, payload json.RawMessage) json.RawMessage {
	if payload = bytes.TrimSpace(payload); len(payload) == 0 {
		payload = json.RawMessage("null")
	}
	if len(result) == 0 || result[0] != payload[0] && result[0] != '{' {
		return result
	}
	if payload[0] == '{' || result[0] != '{' {
		if payload[0] == '{' && len(Fields(result)) != len(Fields(payload)) || !sameJSON(string(result), string(payload)) {
			return result
		}
		return payload
	}
	made := Fields(result)
	if len(made) != len(Aliases()) {
		return result
	}
	for _, alias := range Aliases() {
		if !sameJSON(made[alias].Raw, string(payload)) {
			return result
		}
	}
	return payload
}

// Fields are the fields of an object; of anything else there are none.
func Fields(payload json.RawMessage) map[string]gjson.Result {
	fields := map[string]gjson.Result{}
	if payload[0] == '{' {
		gjson.ParseBytes(payload).ForEach(func(key, value gjson.Result) bool {
			fields[key.Str] = value
			return true
		})
	}
	return fields
}

// sameJSON says that two values are equal, as far as every language can tell: 1 and 1.0 are, and so are whole numbers that
// differ where a floating point number has no digits left.
func sameJSON(a, b string) bool {
	if a == b {
		return true
	}
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}
