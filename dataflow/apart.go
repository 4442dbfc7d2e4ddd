package dataflow

import (
	"encoding/json"
	"slices"

	"tandem/payload"
)

// Apart is a value that is read as part of an input and is not written into it: the list that a loop goes through. Every
// iteration reads it by its name; handing it to each of them would cost the length of the list squared.
type Apart struct {
	// Path is where it belongs, from the top of the input on: the names of fields, and positions in lists.
	Path  []string
	Value json.RawMessage
	// positions are the steps of the path that are positions in lists.
	positions []bool
}

// InList says that its path leads through a list.
func (a *Apart) InList() bool { return slices.Contains(a.positions, true) }

// Name is the last name of its path.
func (a *Apart) Name() string {
	for i := len(a.Path) - 1; i > 0; i-- {
		if a.positions == nil || !a.positions[i] {
			return a.Path[i]
		}
	}
	return a.Path[0]
}

// Without takes the value at a path out of an object and returns both. In a list null is left in its place. It is not ok when
// nothing is there.
func Without(input json.RawMessage, path []string) (rest json.RawMessage, a Apart, ok bool) {
	object, err := payload.Normalize(input, payload.Limits{})
	if err != nil || len(path) == 0 || object[0] != '{' {
		return nil, Apart{}, false
	}
	a = Apart{Path: path, positions: make([]bool, len(path))}
	rest, a.Value, ok = without(object, path, a.positions)
	return rest, a, ok
}

func without(value json.RawMessage, path []string, positions []bool) (rest, taken json.RawMessage, ok bool) {
	switch value[0] {
	case '[':
		items := itemsOf(value)
		at := payload.Index(path[0])
		if at < 0 || at >= len(items) {
			return nil, nil, false
		}
		positions[0] = true
		inner, taken := json.RawMessage("null"), items[at]
		if len(path) > 1 {
			if inner, taken, ok = without(items[at], path[1:], positions[1:]); !ok {
				return nil, nil, false
			}
		}
		items[at] = inner
		return payload.AppendList(nil, items), taken, true
	case '{':
		members := payload.Members(value)
		at := slices.IndexFunc(members, func(m payload.Member) bool { return m.Key == path[0] })
		if at < 0 {
			return nil, nil, false
		}
		if len(path) == 1 {
			taken = members[at].Value
			return payload.AppendObject(nil, slices.Delete(members, at, at+1)), taken, true
		}
		inner, taken, ok := without(members[at].Value, path[1:], positions[1:])
		if !ok {
			return nil, nil, false
		}
		members[at].Value = inner
		return payload.AppendObject(nil, members), taken, true
	}
	return nil, nil, false
}

func itemsOf(list json.RawMessage) []json.RawMessage {
	var items []json.RawMessage
	payload.EachItem(list, func(value []byte) bool {
		items = append(items, value)
		return true
	})
	return items
}

// Touches says that who reads a path of fields reads the value or some of it.
func (a *Apart) Touches(path []string) bool {
	n := min(len(path), len(a.Path))
	return slices.Equal(path[:n], a.Path[:n])
}

// Into returns an input with the value in its place, unless something else is there.
func (a *Apart) Into(input json.RawMessage) json.RawMessage {
	object, err := payload.Normalize(input, payload.Limits{})
	if err != nil || object[0] != '{' {
		return input
	}
	return a.into(object, 0)
}

// into puts it into what stands behind the first so many steps of its path.
func (a *Apart) into(value json.RawMessage, step int) json.RawMessage {
	if step == len(a.Path) {
		if a.positions != nil && a.positions[step-1] && value[0] == 'n' {
			return a.Value
		}
		return value
	}
	switch value[0] {
	case '[':
		items := itemsOf(value)
		if at := payload.Index(a.Path[step]); at >= 0 && at < len(items) {
			items[at] = a.into(items[at], step+1)
			return payload.AppendList(nil, items)
		}
	case '{':
		members := payload.Members(value)
		if at := slices.IndexFunc(members, func(m payload.Member) bool { return m.Key == a.Path[step] }); at >= 0 {
			members[at].Value = a.into(members[at].Value, step+1)
			return payload.AppendObject(nil, members)
		}
		return payload.AppendObject(nil, append(members, payload.Member{Key: a.Path[step], Value: a.alone(step + 1)}))
	}
	return value
}

// alone is the value with what is around it behind the first so many steps of its path.
func (a *Apart) alone(step int) json.RawMessage {
	value := a.Value
	for i := len(a.Path) - 1; i >= step; i-- {
		if a.positions != nil && a.positions[i] {
			items := make([]json.RawMessage, payload.Index(a.Path[i])+1)
			for n := range items {
				items[n] = json.RawMessage("null")
			}
			items[len(items)-1] = value
			value = payload.AppendList(nil, items)
		} else {
			value = payload.AppendObject(nil, []payload.Member{{Key: a.Path[i], Value: value}})
		}
	}
	return value
}

// namesOf are the steps of a path, as names.
func namesOf(path payload.Path) []string {
	names := make([]string, len(path))
	for i, s := range path {
		names[i] = s.Key
	}
	return names
}

// besideOwn reads a path from the node's own input with what stands apart from it in its place.
func (r *reader) besideOwn(path payload.Path) (hit, bool) {
	names := namesOf(path)
	for i := range r.apart {
		if !r.apart[i].Touches(names) {
			continue
		}
		if raw, ok := path.In(r.apart[i].Into(r.own)); ok {
			return hit{raw: raw, layer: LayerOwn, name: path[0].Key, path: path}, true
		}
	}
	return hit{}, false
}

// leftNull says that what a path leads to was taken out of a list, which has null in its place.
func (r *reader) leftNull(path payload.Path) bool {
	names := namesOf(path)
	return slices.ContainsFunc(r.apart, func(a Apart) bool {
		return a.positions != nil && a.positions[len(a.positions)-1] && slices.Equal(a.Path, names)
	})
}

// standsApart reads a path from what the loops around the node do not hand on: the last place to look.
func (r *reader) standsApart(path payload.Path) (hit, bool) {
	names := namesOf(path)
	for i := range r.apart {
		if !r.apart[i].Touches(names) {
			continue
		}
		if raw, ok := path.In(r.apart[i].Into(json.RawMessage("{}"))); ok {
			return hit{raw: raw, layer: LayerScope, name: path[0].Key, path: path[1:]}, true
		}
	}
	return hit{}, false
}
