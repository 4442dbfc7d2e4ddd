package dataflow

import (
	"encoding/json"
	"slices"
)

// Apart is a value that is read as part of an input and is not written into it: the list that a loop goes through. Every
// iteration reads it by its name; handing it to each of them would cost the length of the list squared.
type Apart struct {
	// Path is where it belongs: the names of fields, from the top of the input on.
	Path  []string
	Value json.RawMessage
}

// Without takes the value at a path of fields out of an object and returns both. It is not ok when nothing is there, or when
// the path leads through something other than objects.
func Without(input json.RawMessage, path []string) (rest, value json.RawMessage, ok bool) {
	object, err := normalize(input)
	if err != nil || len(path) == 0 {
		return nil, nil, false
	}
	return without(object, path)
}

func without(object json.RawMessage, path []string) (rest, value json.RawMessage, ok bool) {
	if object[0] != '{' {
		return nil, nil, false
	}
	members := membersOf(object)
	at := slices.IndexFunc(members, func(m member) bool { return m.key == path[0] })
	if at < 0 {
		return nil, nil, false
	}
	if len(path) == 1 {
		value = members[at].value
		return appendObject(nil, slices.Delete(members, at, at+1)), value, true
	}
	inner, value, ok := without(members[at].value, path[1:])
	if !ok {
		return nil, nil, false
	}
	members[at].value = inner
	return appendObject(nil, members), value, true
}

// Touches says that who reads a path of fields reads the value or some of it.
func (a *Apart) Touches(path []string) bool {
	n := min(len(path), len(a.Path))
	return slices.Equal(path[:n], a.Path[:n])
}

// Into returns an input with the value in its place, unless something else is there.
func (a *Apart) Into(input json.RawMessage) json.RawMessage {
	object, err := normalize(input)
	if err != nil {
		return input
	}
	return into(object, a.Path, a.Value)
}

func into(object json.RawMessage, path []string, value json.RawMessage) json.RawMessage {
	if len(path) == 0 || object[0] != '{' {
		return object
	}
	members := membersOf(object)
	at := slices.IndexFunc(members, func(m member) bool { return m.key == path[0] })
	if at >= 0 {
		members[at].value = into(members[at].value, path[1:], value)
		return appendObject(nil, members)
	}
	for i := len(path) - 1; i > 0; i-- {
		value = appendObject(nil, []member{{path[i], value}})
	}
	return appendObject(nil, append(members, member{path[0], value}))
}

// namesOf are the steps of a path, as names.
func namesOf(path []segment) []string {
	names := make([]string, len(path))
	for i, s := range path {
		names[i] = s.key
	}
	return names
}

// besideOwn reads a path from the node's own input with what stands apart from it in its place.
func (r *reader) besideOwn(path []segment) (hit, bool) {
	names := namesOf(path)
	for i := range r.apart {
		if !r.apart[i].Touches(names) {
			continue
		}
		if raw, ok := walk(r.apart[i].Into(r.own), path); ok {
			return hit{raw: raw, layer: LayerOwn, name: path[0].key, path: path}, true
		}
	}
	return hit{}, false
}

// standsApart reads a path from what the loops around the node do not hand on: the last place to look.
func (r *reader) standsApart(path []segment) (hit, bool) {
	names := namesOf(path)
	for i := range r.apart {
		if !r.apart[i].Touches(names) {
			continue
		}
		if raw, ok := walk(r.apart[i].Into(json.RawMessage("{}")), path); ok {
			return hit{raw: raw, layer: LayerScope, name: path[0].key, path: path[1:]}, true
		}
	}
	return hit{}, false
}
