package host

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"tandem/dataflow"
	"tandem/engine"
	"tandem/payload"
	"tandem/text"
)

// maxFollowing bounds how many edits follow from those that were made.
const maxFollowing = 200

// editing is the input of a fork while it is compared with the one that its activation had.
type editing struct {
	fold  *Fold
	run   engine.RunNode
	scope string
	// given is what the fork is given, own what the activation had, and origins where that came from.
	given, own map[string]json.RawMessage
	origins    []dataflow.Origin
	// kept are the values that were given as they were.
	kept []json.RawMessage
}

// find returns the value that a name of the input stands for now: in the input itself, in the data, inside the input, or at a path
// such as calc.result.amount. Had says that the input has the name, at that it is a path; within is the iteration whose variable holds it.
func (x *editing) find(name string) (original json.RawMessage, had bool, at payload.Path, within string) {
	if original, had = x.own[name]; had {
		within, _, _ = x.fold.layers.Variable(x.scope, name)
		return original, true, nil, within
	}
	view := dataflow.View{Scope: x.scope, AsOf: x.run.AsOf}
	within, _, _ = x.fold.layers.Variable(x.scope, name)
	if raw, _, ok, err := x.fold.layers.Lookup(view, pathOf(name)); err == nil && ok {
		return raw, false, nil, within
	}
	if path, err := payload.ParsePath(name); err == nil && len(path) > 1 {
		if raw, ok := path.In(mustObject(x.own)); ok {
			within, _, _ = x.fold.layers.Variable(x.scope, path[0].Key)
			return raw, false, path, within
		}
		if raw, source, ok, err := x.fold.layers.Lookup(view, name); err == nil && ok {
			if source.Layer == dataflow.LayerScope {
				within = source.Scope
			}
			return raw, false, path, within
		}
	}
	for _, field := range slices.Sorted(maps.Keys(x.own)) {
		raw, ok := payload.Field(x.own[field], name)
		if !ok || !isObject(x.own[field]) {
			continue
		}
		within, _, _ = x.fold.layers.Variable(x.scope, field)
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

// following are the edits that follow from one: whatever the value came from is edited with it, and so are the copies of the values
// inside it. It refuses to edit what was computed, since nothing but the input has it.
func (x *editing) following(e dataflow.Edit, at payload.Path) ([]dataflow.Edit, error) {
	var list []dataflow.Edit
	add := func(name, within string, was, now json.RawMessage) {
		list = append(list, dataflow.Edit{Name: name, Value: now, Was: was, Same: true, By: e.By, Fork: e.Fork, Scope: e.Scope, Within: within})
	}
	if len(at) > 0 {
		if last := at[len(at)-1]; last.Bracketed && last.Index >= 0 {
			return nil, refusedInput(e.Name, text.Of("it is an item of a list; give the whole list instead"))
		}
		add(at[len(at)-1].Key, e.Within, e.Was, e.Value)
	}
	if e.Was != nil {
		inside(e.Was, e.Value, func(name string, was, now json.RawMessage) { add(name, e.Within, was, now) })
	}
	whole := map[string]bool{} // connections whose value was found as a whole
	for _, o := range x.origins {
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
		return nil, refusedInput(e.Name, text.Of("%d values in it are edited, which are more than %d; edit fewer", len(list), maxFollowing))
	}
	return list, nil
}

// followSource adds the edits of where a part of an edited value was read. Whole are the connections whose value was found as a whole.
func (x *editing) followSource(e dataflow.Edit, s dataflow.Source, was, now json.RawMessage, whole map[string]bool, add func(name, within string, was, now json.RawMessage)) error {
	switch s.Layer {
	case dataflow.LayerConnection:
		if !s.Converted || whole[s.Connection] {
			return nil
		}
		source, err := x.source(s.Connection)
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
			return refusedInput(e.Name, text.Of("it was read with %s, an item of a list; edit the whole list instead", s.Placeholder))
		}
		add(name, within, was, now)
	}
	return nil
}

// text refuses to edit a text that was put together, unless what it was put together of is given as well.
func (x *editing) text(name string, o dataflow.Origin) error {
	var missing []string
	for _, s := range o.Sources {
		place := strings.Trim(s.Placeholder, "{} ")
		if _, given := x.given[lastName(s)]; !given && x.given[place] == nil {
			missing = append(missing, place)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return refusedInput(name, text.Of("it is a text made of %s, which others read as well; edit %s instead, or give both", strings.Join(missing, ", "), strings.Join(missing, ", ")))
}

// computed refuses to edit a value that a conversion has computed.
func (x *editing) computed(name string, s dataflow.Source, source json.RawMessage) error {
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
	return refusedInput(name, text.Of("the connection %q has computed it from the output of %q, which others read as well; edit what it was computed from instead: %s", s.Connection, s.Node, strings.Join(paths, ", ")))
}

// source is what a connection brought before its conversion.
func (x *editing) source(connection string) (json.RawMessage, error) {
	edge := slices.IndexFunc(x.run.Inputs, func(in engine.Input) bool { return x.fold.graph.Edges[in.Edge].ID == connection })
	if edge < 0 {
		return json.RawMessage("null"), nil
	}
	in := x.run.Inputs[edge]
	from := &x.fold.graph.Edges[in.Edge]
	if in.Ref == "" && from.Entry {
		return x.fold.payload(x.run, in)
	}
	raw, _, ok, err := x.fold.layers.Lookup(dataflow.View{Scope: x.scope, AsOf: x.run.AsOf}, pathOf(x.fold.graph.Nodes[from.From].ID)+".outputs")
	if err != nil || !ok {
		return json.RawMessage("null"), err
	}
	return raw, nil
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
			return o.Name == e.Name && o.Within == e.Within && !payload.Same(o.Value, e.Value) && (payload.Same(o.Was, e.Was) || payload.Same(o.Was, e.Value) || payload.Same(o.Value, e.Was))
		})
		if !again && !other {
			kept = append(kept, e)
		}
	}
	return kept
}

// checkCopies refuses edits that would leave a copy of an edited value behind, under another name or in a text, for later nodes to read.
func (x *editing) checkCopies(edits []forkEdit) error {
	copies := x.fold.layers.Copies(plain(edits), x.kept, func(kind string) bool {
		return strings.HasPrefix(kind, "HUMAN_IN_THE_LOOP.") || strings.HasPrefix(kind, "TRIGGER.")
	})
	if len(copies) == 0 {
		return nil
	}
	c := copies[0]
	return refusedInput(c.Name, text.Of("the value that is edited also stands in %s, where later nodes can read it; give %q as well, with its new value or as it is, or fork at %q", c.Path, c.Path, c.Node))
}
