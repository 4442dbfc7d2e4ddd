// Package values reads and makes the JSON that kinds hand on: the fields of objects in their order, paths, the list that a kind works on,
// comparing values, and a value as text.
//
// The families of kinds import it. It knows nothing of any kind.
package values

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"tandem/fault"
	"tandem/payload"
)

// Data stays the JSON it came as wherever it is only handed on, so that numbers keep their digits and objects the order
// of their fields. It is decoded (numbers as json.Number) where it is compared or computed with.

// Decode reads a JSON value. What arrives in a call is JSON already, so anything else is a defect.
func Decode(raw json.RawMessage) any {
	v, err := payload.Decode(raw)
	if err != nil {
		panic(fmt.Sprintf("data of a call is not JSON: %v", err))
	}
	return v
}

// Encode writes a value made here.
func Encode(v any) json.RawMessage {
	raw, err := payload.Encode(v)
	if err != nil {
		panic(fmt.Sprintf("a kind made a value that JSON cannot hold: %v", err))
	}
	return raw
}

// Finite is encode for what an expression computed, which may be no JSON.
func Finite(v any) (json.RawMessage, error) {
	raw, err := payload.Encode(v)
	if err != nil {
		return nil, fault.New(fault.OutputInvalid, "the expression gives a value that JSON cannot hold").WithCause(err)
	}
	return raw, nil
}

// Member is one field of an object.
type Member = payload.Member

// Field makes a field of an object.
func Field(key string, v any) Member { return Member{Key: key, Value: Encode(v)} }

// fewMembers are found by looking through them; more have an index.
const fewMembers = 8

// Members are the fields of an object in order; of equal keys the last one counts, at the place of the first.
func Members(raw json.RawMessage) []Member { return payload.Members(raw) }

// Object writes fields as an object.
func Object(list []Member) json.RawMessage {
	size := 2
	for _, m := range list {
		size += len(m.Key) + len(m.Value) + 4
	}
	return payload.AppendObject(make([]byte, 0, size), list)
}

// Array writes values as a list, [] when there are none.
func Array(items []json.RawMessage) json.RawMessage {
	size := 2
	for _, item := range items {
		size += len(item) + 1
	}
	return payload.AppendList(make([]byte, 0, size), items)
}

// HandOn is the input as received plus the fields named, which replace those of the same name.
func HandOn(input json.RawMessage, fields ...Member) json.RawMessage {
	return Object(Overlay(Members(input), fields...))
}

// Overlay lays fields over others: an equal key is replaced where it stands, a new one comes last.
func Overlay(list []Member, fields ...Member) []Member {
	list = slices.Clone(list)
	if len(fields) > fewMembers { // looking through the list for each of many would take for ever
		places := make(map[string]int, len(list)+len(fields))
		for i := len(list) - 1; i >= 0; i-- {
			places[list[i].Key] = i
		}
		for _, f := range fields {
			if i, ok := places[f.Key]; ok {
				list[i].Value = f.Value
				continue
			}
			places[f.Key] = len(list)
			list = append(list, f)
		}
		return list
	}
	for _, f := range fields {
		if i := slices.IndexFunc(list, func(m Member) bool { return m.Key == f.Key }); i >= 0 {
			list[i].Value = f.Value
		} else {
			list = append(list, f)
		}
	}
	return list
}

// IsObject says that a value is an object. Like IsList and IsNull it looks at the first byte only.
func IsObject(raw json.RawMessage) bool { return Leading(raw) == '{' }

// IsList says that a value is a list.
func IsList(raw json.RawMessage) bool { return Leading(raw) == '[' }

// IsNull says that a value is null or not there.
func IsNull(raw json.RawMessage) bool { return len(raw) == 0 || Leading(raw) == 'n' }

// Leading is the first byte of a value behind white space; 0 when there is none.
func Leading(raw json.RawMessage) byte {
	if raw = bytes.TrimLeft(raw, " \t\r\n"); len(raw) == 0 {
		return 0
	}
	return raw[0]
}

// Elements are the values of a list.
func Elements(raw json.RawMessage) []json.RawMessage { return payload.Items(raw) }

// Path is where a value stands inside another.
type Path []string

// ParsePath reads a.b.0.c, a[0] and a["odd key"].
func ParsePath(text string) (Path, error) {
	steps, err := payload.ParsePath(strings.TrimSpace(text))
	if err != nil {
		return nil, fault.Newf(fault.InvalidConfig, `the path %q cannot be read; write it like a.b, a[0].b or a["odd key"]`, text)
	}
	p := make(Path, len(steps))
	for i, s := range steps {
		p[i] = s.Key
	}
	return p, nil
}

// At follows a path; false when a step is missing. A leading "data" may be written or left out.
func (p Path) At(raw json.RawMessage) (json.RawMessage, bool) {
	v, _, ok := p.found(raw)
	return v, ok
}

// found is at, and tells the path as it really is.
func (p Path) found(raw json.RawMessage) (json.RawMessage, Path, bool) {
	if v, ok := p.Walk(raw); ok {
		return v, p, true
	}
	other := append(Path{"data"}, p...)
	if p[0] == "data" && len(p) > 1 {
		other = p[1:]
	}
	v, ok := other.Walk(raw)
	return v, other, ok
}

// Roots are the fields of an object at which [Path.At] may find what the path leads to.
func (p Path) Roots() []string {
	if p[0] == "data" && len(p) > 1 {
		return []string{p[0], p[1]}
	}
	return []string{p[0], "data"}
}

// Walk follows a path exactly as it is written; false when a step is missing.
func (p Path) Walk(raw json.RawMessage) (json.RawMessage, bool) {
	steps := make(payload.Path, len(p))
	for i, key := range p {
		steps[i] = payload.KeyStep(key)
	}
	return steps.In(raw)
}

// Missing is the first step of a path that is not there, and the names that there are in its place.
func (p Path) Missing(raw json.RawMessage) (step int, names []string) {
	for i := range p {
		if _, ok := p[:i+1].Walk(raw); ok {
			continue
		}
		if i > 0 {
			raw, _ = p[:i].Walk(raw)
		}
		for _, m := range Members(raw) {
			names = append(names, m.Key)
		}
		return i, names
	}
	return len(p), nil
}

// List is what the list input of a kind is.
type List struct {
	Items []json.RawMessage
	// Value is what was found; single says that it is not a list but one value.
	Value  json.RawMessage
	Single bool
	// Absent says that there is nothing at the path that was configured, not even null.
	Absent bool
}

// listNames are the names under which kinds hand lists on, in the order in which they are looked for. read-only
var listNames = []string{"data", "items", "filtered_data", "sorted_data", "merged_data", "transformed_data", "results", "rows"}

// ListInput finds the list that a kind works on: at a path if one is configured, else under a usual name, else the only
// list there is, else "data" or "items" whatever they are. Null is the empty list, another value a list of one.
func ListInput(input json.RawMessage, itemsPath string) (List, error) {
	list, _, err := ListPlace(input, itemsPath)
	return list, err
}

// ListPlace is listInput, and tells where in the input the list was found; nil for nowhere.
func ListPlace(input json.RawMessage, itemsPath string) (List, Path, error) {
	if itemsPath != "" {
		p, err := ParsePath(itemsPath)
		if err != nil {
			return List{}, nil, err
		}
		value, at, ok := p.found(input)
		if !ok {
			value = json.RawMessage("null")
		}
		list := ListOf(value)
		list.Absent = !ok
		return list, at, nil
	}
	all := Members(input)
	byName := func(name string) (json.RawMessage, bool) {
		i := slices.IndexFunc(all, func(m Member) bool { return m.Key == name })
		if i < 0 {
			return nil, false
		}
		return all[i].Value, true
	}
	for _, name := range listNames {
		if value, ok := byName(name); ok && IsList(value) {
			return ListOf(value), Path{name}, nil
		}
	}
	var lists []Member
	var names []string
	for _, m := range all {
		names = append(names, m.Key)
		if IsList(m.Value) {
			lists = append(lists, m)
		}
	}
	if len(lists) == 1 {
		return ListOf(lists[0].Value), Path{lists[0].Key}, nil
	}
	for _, name := range []string{"data", "items"} {
		if value, ok := byName(name); ok {
			return ListOf(value), Path{name}, nil
		}
	}
	what := "the input has no field"
	if len(names) > 0 {
		what = "the input has " + strings.Join(names, ", ")
	}
	return List{}, nil, fault.Newf(fault.InvalidInput, "there is no list to work on: %s; set items_path, or hand the list on as %q", what, "data").With("keys", names)
}

// ListOf is a value as a list: a list as it is, nothing for null, and a list of one for anything else.
func ListOf(value json.RawMessage) List {
	switch {
	case IsNull(value):
		return List{Items: []json.RawMessage{}, Value: value}
	case IsList(value):
		return List{Items: Elements(value), Value: value}
	}
	return List{Items: []json.RawMessage{value}, Value: value, Single: true}
}
