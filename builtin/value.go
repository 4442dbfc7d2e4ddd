package builtin

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

// decode reads a JSON value. What arrives in a call is JSON already, so anything else is a defect.
func decode(raw json.RawMessage) any {
	v, err := payload.Decode(raw)
	if err != nil {
		panic(fmt.Sprintf("data of a call is no JSON: %v", err))
	}
	return v
}

// encode writes a value made here.
func encode(v any) json.RawMessage {
	raw, err := payload.Encode(v)
	if err != nil {
		panic(fmt.Sprintf("a kind made a value that JSON cannot hold: %v", err))
	}
	return raw
}

// finite is encode for what an expression computed, which may be no JSON.
func finite(v any) (json.RawMessage, error) {
	raw, err := payload.Encode(v)
	if err != nil {
		return nil, fault.New(fault.OutputInvalid, "the expression gives a value that JSON cannot hold").WithCause(err)
	}
	return raw, nil
}

// member is one field of an object.
type member struct {
	key   string
	value json.RawMessage
}

func field(key string, v any) member { return member{key, encode(v)} }

// fewMembers are found by looking through them; more have an index.
const fewMembers = 8

// members are the fields of an object in order; of equal keys the last one counts, at the place of the first.
func members(raw json.RawMessage) []member {
	found := payload.Members(raw)
	list := make([]member, len(found))
	for i, m := range found {
		list[i] = member{m.Key, m.Value}
	}
	return list
}

// object writes fields as an object.
func object(list []member) json.RawMessage {
	size := 2
	for _, m := range list {
		size += len(m.key) + len(m.value) + 4
	}
	b := append(make([]byte, 0, size), '{')
	for i, m := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(payload.AppendText(b, m.key), ':')
		b = append(b, m.value...)
	}
	return append(b, '}')
}

// array writes values as a list, [] when there are none.
func array(items []json.RawMessage) json.RawMessage {
	size := 2
	for _, item := range items {
		size += len(item) + 1
	}
	return payload.AppendList(make([]byte, 0, size), items)
}

// handOn is the input as received plus the fields named, which replace those of the same name.
func handOn(input json.RawMessage, fields ...member) json.RawMessage {
	return object(overlay(members(input), fields...))
}

// overlay lays fields over others: an equal key is replaced where it stands, a new one comes last.
func overlay(list []member, fields ...member) []member {
	list = slices.Clone(list)
	if len(fields) > fewMembers { // looking through the list for each of many would take for ever
		places := make(map[string]int, len(list)+len(fields))
		for i := len(list) - 1; i >= 0; i-- {
			places[list[i].key] = i
		}
		for _, f := range fields {
			if i, ok := places[f.key]; ok {
				list[i].value = f.value
				continue
			}
			places[f.key] = len(list)
			list = append(list, f)
		}
		return list
	}
	for _, f := range fields {
		if i := slices.IndexFunc(list, func(m member) bool { return m.key == f.key }); i >= 0 {
			list[i].value = f.value
		} else {
			list = append(list, f)
		}
	}
	return list
}

func isObject(raw json.RawMessage) bool { return leading(raw) == '{' }
func isList(raw json.RawMessage) bool   { return leading(raw) == '[' }
func isNull(raw json.RawMessage) bool   { return len(raw) == 0 || leading(raw) == 'n' }

func leading(raw json.RawMessage) byte {
	if raw = bytes.TrimLeft(raw, " \t\r\n"); len(raw) == 0 {
		return 0
	}
	return raw[0]
}

// elements are the values of a list.
func elements(raw json.RawMessage) []json.RawMessage {
	return payload.Items(raw)
}

// path is where a value stands inside another.
type path []string

// parsePath reads a.b.0.c, a[0] and a["odd key"].
func parsePath(text string) (path, error) {
	steps, err := payload.ParsePath(strings.TrimSpace(text))
	if err != nil {
		return nil, fault.Newf(fault.InvalidConfig, `the path %q cannot be read; write it like a.b, a[0].b or a["odd key"]`, text)
	}
	p := make(path, len(steps))
	for i, s := range steps {
		p[i] = s.Key
	}
	return p, nil
}

// at follows a path; false when a step is missing. A leading "data" may be written or left out.
func (p path) at(raw json.RawMessage) (json.RawMessage, bool) {
	v, _, ok := p.found(raw)
	return v, ok
}

// found is at, and tells the path as it really is.
func (p path) found(raw json.RawMessage) (json.RawMessage, path, bool) {
	if v, ok := p.walk(raw); ok {
		return v, p, true
	}
	other := append(path{"data"}, p...)
	if p[0] == "data" && len(p) > 1 {
		other = p[1:]
	}
	v, ok := other.walk(raw)
	return v, other, ok
}

func (p path) walk(raw json.RawMessage) (json.RawMessage, bool) {
	steps := make(payload.Path, len(p))
	for i, key := range p {
		steps[i] = payload.KeyStep(key)
	}
	return steps.In(raw)
}

// listed is what the list input of a kind is.
type listed struct {
	items []json.RawMessage
	// value is what was found; single says that it is no list but one value.
	value  json.RawMessage
	single bool
}

// listNames are the names under which kinds hand lists on, in the order in which they are looked for. read-only
var listNames = []string{"data", "items", "filtered_data", "sorted_data", "merged_data", "transformed_data", "results", "rows"}

// listInput finds the list that a kind works on: at a path if one is configured, else under a usual name, else the only
// list there is, else "data" or "items" whatever they are. Null is the empty list, another value a list of one.
func listInput(input json.RawMessage, itemsPath string) (listed, error) {
	list, _, err := listPlace(input, itemsPath)
	return list, err
}

// listPlace is listInput, and tells where in the input the list was found; nil for nowhere.
func listPlace(input json.RawMessage, itemsPath string) (listed, path, error) {
	if itemsPath != "" {
		p, err := parsePath(itemsPath)
		if err != nil {
			return listed{}, nil, err
		}
		value, at, ok := p.found(input)
		if !ok {
			value = json.RawMessage("null")
		}
		return listOf(value), at, nil
	}
	all := members(input)
	byName := func(name string) (json.RawMessage, bool) {
		i := slices.IndexFunc(all, func(m member) bool { return m.key == name })
		if i < 0 {
			return nil, false
		}
		return all[i].value, true
	}
	for _, name := range listNames {
		if value, ok := byName(name); ok && isList(value) {
			return listOf(value), path{name}, nil
		}
	}
	var lists []member
	var names []string
	for _, m := range all {
		names = append(names, m.key)
		if isList(m.value) {
			lists = append(lists, m)
		}
	}
	if len(lists) == 1 {
		return listOf(lists[0].value), path{lists[0].key}, nil
	}
	for _, name := range []string{"data", "items"} {
		if value, ok := byName(name); ok {
			return listOf(value), path{name}, nil
		}
	}
	what := "the input has no field"
	if len(names) > 0 {
		what = "the input has " + strings.Join(names, ", ")
	}
	return listed{}, nil, fault.Newf(fault.InvalidInput, "there is no list to work on: %s; set items_path, or hand the list on as %q", what, "data").With("keys", names)
}

func listOf(value json.RawMessage) listed {
	switch {
	case isNull(value):
		return listed{items: []json.RawMessage{}, value: value}
	case isList(value):
		return listed{items: elements(value), value: value}
	}
	return listed{items: []json.RawMessage{value}, value: value, single: true}
}
