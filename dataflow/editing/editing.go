// Package editing finds out what else changes when the input of a node is edited: where the edited values came from, and where copies of
// them stand. It refuses edits that would leave the old value for later nodes to read.
//
// Forks of executions are made with it; package host imports it and nothing else does.
package editing

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"tandem/dataflow"
	"tandem/fault"
	"tandem/payload"
	"tandem/text"
)

// maxFollowing bounds how many edits follow from those that were made.
const maxFollowing = 200

// Input is the input of a fork while it is compared with the one that its activation had.
type Input struct {
	// Layers are the data of the execution, and View is what the activation sees of them.
	Layers *dataflow.Layers
	View   dataflow.View
	// Given is what the fork is given, Own what the activation had, and Origins where that came from.
	Given, Own map[string]json.RawMessage
	Origins    []dataflow.Origin
	// Kept are the values that were given as they were.
	Kept []json.RawMessage
	// Brought is what a connection brought before its conversion.
	Brought func(connection string) (json.RawMessage, error)
}

// Find returns the value that a name of the input stands for now: in the input itself, in the data, inside the input, or at a path
// such as calc.result.amount. Had says that the input has the name, at that it is a path; within is the iteration whose variable holds it.
func (x *Input) Find(name string) (original json.RawMessage, had bool, at payload.Path, within string) {
	if original, had = x.Own[name]; had {
		within, _, _ = x.Layers.Variable(x.View.Scope, name)
		return original, true, nil, within
	}
	within, _, _ = x.Layers.Variable(x.View.Scope, name)
	if raw, _, ok, err := x.Layers.Lookup(x.View, PathOf(name)); err == nil && ok {
		return raw, false, nil, within
	}
	if path, err := payload.ParsePath(name); err == nil && len(path) > 1 {
		if raw, ok := path.In(mustObject(x.Own)); ok {
			within, _, _ = x.Layers.Variable(x.View.Scope, path[0].Key)
			return raw, false, path, within
		}
		if raw, source, ok, err := x.Layers.Lookup(x.View, name); err == nil && ok {
			if source.Layer == dataflow.LayerScope {
				within = source.Scope
			}
			return raw, false, path, within
		}
	}
	for _, field := range slices.Sorted(maps.Keys(x.Own)) {
		raw, ok := payload.Field(x.Own[field], name)
		if !ok || !isObject(x.Own[field]) {
			continue
		}
		within, _, _ = x.Layers.Variable(x.View.Scope, field)
		return raw, false, nil, within
	}
	return nil, false, nil, within
}

func mustObject(fields map[string]json.RawMessage) json.RawMessage {
	members := make([]payload.Member, 0, len(fields))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		members = append(members, payload.Member{Key: name, Value: fields[name]})
	}
	return payload.AppendObject(nil, members)
}

// Following are the edits that follow from one: whatever the value came from is edited with it, and so are the copies of the values
// inside it. It refuses to edit what was computed, since nothing but the input has it.
func (x *Input) Following(e dataflow.Edit, at payload.Path) ([]dataflow.Edit, error) {
	var list []dataflow.Edit
	add := func(name, within string, was, now json.RawMessage) {
		list = append(list, dataflow.Edit{Name: name, Value: now, Was: was, Same: true, By: e.By, Fork: e.Fork,
			Scope: e.Scope, Within: within})
	}
	if len(at) > 0 {
		if last := at[len(at)-1]; last.Bracketed && last.Index >= 0 {
			return nil, Refuse(e.Name, text.Of("it is an item of a list; give the whole list instead"))
		}
		add(at[len(at)-1].Key, e.Within, e.Was, e.Value)
	}
	if e.Was != nil {
		inside(e.Was, e.Value, func(name string, was, now json.RawMessage) { add(name, e.Within, was, now) })
	}
	whole := map[string]bool{} // connections whose value was found as a whole
	for _, o := range x.Origins {
		path, err := payload.ParsePath(o.Path)
		if err != nil || len(path) == 0 || path[0].Key != e.Name || len(at) > 0 || e.Was == nil {
			continue
		}
		was, had := path[1:].In(e.Was)
		now, has := path[1:].In(e.Value)
		if !had || !has || payload.Same(was, now) {
			continue
		}
		if o.Text {
			if err := x.text(e.Name, o); err != nil {
				return nil, err
			}
			continue
		}
		for _, s := range o.Sources {
			if err := x.followSource(e, s, was, now, whole, add); err != nil {
				return nil, err
			}
		}
	}
	list = single(list)
	if len(list) > maxFollowing {
		return nil, Refuse(e.Name, text.Of("%d values in it are edited, which are more than %d; edit fewer", len(list), maxFollowing))
	}
	return list, nil
}

// followSource adds the edits of where a part of an edited value was read. Whole are the connections whose value was found as a whole.
func (x *Input) followSource(e dataflow.Edit, s dataflow.Source, was, now json.RawMessage, whole map[string]bool,
	add func(name, within string, was, now json.RawMessage)) error {
	switch s.Layer {
	case dataflow.LayerConnection:
		if !s.Converted || whole[s.Connection] {
			return nil
		}
		source, err := x.Brought(s.Connection)
		if err != nil {
			return err
		}
		names := namesOf(source, e.Was)
		if len(names) > 0 {
			whole[s.Connection], was, now = true, e.Was, e.Value
		} else if names = namesOf(source, was); len(names) == 0 {
			return x.computed(e.Name, s, source)
		}
		for _, name := range names {
			add(name, "", was, now)
		}
	case dataflow.LayerInitial, dataflow.LayerRuntime, dataflow.LayerSteps, dataflow.LayerTrigger, dataflow.LayerScope:
		name, within := lastName(s), ""
		if s.Layer == dataflow.LayerScope {
			within = s.Scope
		}
		if name == "" {
			return Refuse(e.Name, text.Of("it was read with %s, an item of a list; edit the whole list instead", s.Placeholder))
		}
		add(name, within, was, now)
	}
	return nil
}

// text refuses to edit a text that was put together, unless what it was put together of is given as well.
func (x *Input) text(name string, o dataflow.Origin) error {
	var missing []string
	for _, s := range o.Sources {
		place := strings.Trim(s.Placeholder, "{} ")
		if _, given := x.Given[lastName(s)]; !given && x.Given[place] == nil {
			missing = append(missing, place)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return Refuse(name, text.Of("it is a text made of %s, which others read as well; edit %s instead, or give both", strings.Join(missing, ", "), strings.Join(missing, ", ")))
}

// computed refuses to edit a value that a conversion has computed.
func (x *Input) computed(name string, s dataflow.Source, source json.RawMessage) error {
	var paths []string
	if isObject(source) {
		for _, m := range payload.Members(source) {
			if paths = append(paths, payload.JoinKey(payload.JoinKey("", s.Node), m.Key)); len(paths) == 5 {
				break
			}
		}
	}
	if len(paths) == 0 {
		paths = []string{s.Node}
	}
	return Refuse(name, text.Of("the connection %q has computed it from the output of %q, which others read as well; edit what it was computed from instead: %s", s.Connection, s.Node, strings.Join(paths, ", ")))
}

// lastName is the name of the place that a value was read from; empty for an item of a list.
func lastName(s dataflow.Source) string {
	if path, err := payload.ParsePath(s.Path); err == nil && len(path) > 0 {
		last := path[len(path)-1]
		if last.Bracketed && last.Index >= 0 {
			return ""
		}
		return last.Key
	}
	if s.Name != "" {
		return s.Name
	}
	return s.Node
}

// namesOf are the names under which a value stands in another one.
func namesOf(in, value json.RawMessage) []string {
	var names []string
	var visit func(raw json.RawMessage)
	visit = func(raw json.RawMessage) {
		switch raw[0] {
		case '{':
			for _, m := range payload.Members(raw) {
				if payload.Same(m.Value, value) && !slices.Contains(names, m.Key) {
					names = append(names, m.Key)
				}
				visit(m.Value)
			}
		case '[':
			for _, item := range payload.Items(raw) {
				visit(item)
			}
		}
	}
	visit(in)
	return names
}

// inside calls f for every field inside an object, at any depth, that another value was given for.
func inside(was, now json.RawMessage, f func(name string, was, now json.RawMessage)) {
	if !isObject(was) || !isObject(now) {
		return
	}
	for _, m := range payload.Members(now) {
		if old, ok := payload.Field(was, m.Key); ok && !payload.Same(old, m.Value) {
			f(m.Key, old, m.Value)
			inside(old, m.Value, f)
		}
	}
}

// single leaves out what cannot be told apart by name and value: edits of the same name that contradict each other.
func single(list []dataflow.Edit) []dataflow.Edit {
	var kept []dataflow.Edit
	for i, e := range list {
		again := slices.ContainsFunc(list[:i], func(o dataflow.Edit) bool {
			return o.Name == e.Name && o.Within == e.Within && payload.Same(o.Was, e.Was) && payload.Same(o.Value, e.Value)
		})
		other := slices.ContainsFunc(list, func(o dataflow.Edit) bool {
			return o.Name == e.Name && o.Within == e.Within && !payload.Same(o.Value, e.Value) &&
				(payload.Same(o.Was, e.Was) || payload.Same(o.Was, e.Value) || payload.Same(o.Value, e.Was))
		})
		if !again && !other {
			kept = append(kept, e)
		}
	}
	return kept
}

// CheckCopies refuses edits that would leave a copy of an edited value behind, under another name or in a text, for later nodes to read.
// What nodes of an exempt kind say may stay as it is.
func (x *Input) CheckCopies(edits []dataflow.Edit, exempt func(kind string) bool) error {
	copies := x.Layers.Copies(edits, x.Kept, exempt)
	if len(copies) == 0 {
		return nil
	}
	c := copies[0]
	return Refuse(c.Name, text.Of("the value that is edited also stands in %s, where later nodes can read it; give %q as well, with its new value or as it is, or fork at %q", c.Path, c.Path, c.Node))
}

// PathOf writes a name as a path of one step.
func PathOf(name string) string {
	return "[" + string(payload.Quote(name)) + "]"
}

// Refuse says why a value of the input cannot be edited, and what to do instead.
func Refuse(name string, why text.Text) error {
	return fault.Say(fault.Conflict, text.Of("input.%s: %s", name, why)).With("path", "input."+name)
}

func isObject(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }
