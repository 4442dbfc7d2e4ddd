package dataflow

import (
	"encoding/json"

	"tandem/fault"
	"tandem/payload"
)

// Layer is where a value was found.
type Layer string

// The layers, and what else can be read.
const (
	LayerInitial    Layer = "initial_metadata"
	LayerRuntime    Layer = "runtime_metadata"
	LayerSteps      Layer = "step_results"
	LayerConnection Layer = "connection"
	LayerLiteral    Layer = "literal"
	LayerScope      Layer = "scope"     // item, index, the iteration variable
	LayerOwn        Layer = "input"     // the node's own input, for text fields
	LayerTrigger    Layer = "trigger"   // trigger.*
	LayerExecution  Layer = "execution" // execution.id, workflow.id
	LayerEnv        Layer = "env"       // env.*
	LayerEdit       Layer = "edit"      // an edit of the input that a fork begins with
)

// hit is a value that was found, and where. It is a plain value: finding allocates nothing.
type hit struct {
	raw   []byte
	layer Layer
	// name is the name in the layer: of metadata, a variable, or the key under which a result's payload was found.
	name string
	// from is the result that the value is of, nil if it is of none; scope is where a variable is from.
	from  *result
	scope string
	// field is set for runtime_metadata: the field of from's output. path follows it, or is the whole path otherwise.
	field string
	path  payload.Path
	// edit is who has edited it, for what is of no result.
	edit *edited
}

// reader reads layers for one request.
type reader struct {
	l      *Layers
	sc     *scope
	asOf   uint64
	own    json.RawMessage // checked on first use, since most requests have none or read none
	ownOK  bool
	ownErr error
	apart  []Apart
	handed bool
}

func (l *Layers) reader(r Request) (reader, error) {
	sc, err := l.scope(r.View.Scope)
	if err != nil {
		return reader{}, err
	}
	return reader{l: l, sc: sc, asOf: r.View.AsOf, own: r.Own, apart: r.Apart, handed: r.Handed}, nil
}

// find dispatches a placeholder by its syntax.
//
// With output or outputs it reads step_results; only a name no node has can then be an item or a field of the node's
// own input that happens to have a field called output. The others try, in this order: the node's own input, variables
// of the scopes from the inside out, env (both close the matter: nothing else may stand in for them); then
//
//	a.b:  trigger.*, execution.id, workflow.id; runtime a_b; the output of node a; an object a in runtime, in initial
//	name: runtime; initial; the output of the node of that name; the newest output with such a field; trigger
//
// and at last what the loops around the node do not hand on.
func (r *reader) find(p *placeholder) (hit, bool) {
	if p.problem != "" {
		return hit{}, false
	}
	h, ok := r.look(p)
	if !ok && len(r.apart) > 0 && !(p.outputs && r.hasStep(p.head)) {
		return r.standsApart(p.path)
	}
	if ok && len(r.apart) > 0 && string(h.raw) == "null" && r.leftNull(p.path) {
		return r.standsApart(p.path)
	}
	return h, ok
}

func (r *reader) look(p *placeholder) (hit, bool) {
	if p.outputs {
		if h, ok := r.step(p.head, p.rest); ok {
			return h, true
		}
		if r.hasStep(p.head) {
			return hit{}, false
		}
		if h, ok := r.ownField(p.path); ok {
			return h, true
		}
		if h, found, ok := r.variable(p.path); ok {
			return h, found
		}
		return r.about(p.head, p.path[1:])
	}
	if h, ok := r.ownField(p.path); ok {
		return h, true
	}
	if h, found, ok := r.variable(p.path); ok {
		return h, found
	}
	if len(p.path) == 1 {
		return r.bare(p.head)
	}
	return r.dotted(p)
}

func (r *reader) dotted(p *placeholder) (hit, bool) {
	if h, ok := r.about(p.head, p.rest); ok {
		return h, true
	}
	if p.joined != "" {
		if h, ok := r.runtime(p.joined, p.path[2:]); ok {
			return h, true
		}
		if res, _ := r.results(p.head); res != nil && res.node != p.head {
			if h, ok := r.runtime(res.node+"_"+p.path[1].Key, p.path[2:]); ok {
				return h, true
			}
		}
	}
	if h, ok := r.step(p.head, p.rest); ok {
		return h, true
	}
	if h, ok := r.runtime(p.head, p.rest); ok {
		return h, true
	}
	return r.initial(p.head, p.rest)
}

func (r *reader) bare(name string) (hit, bool) {
	if h, ok := r.runtime(name, nil); ok {
		return h, true
	}
	if h, ok := r.initial(name, nil); ok {
		return h, true
	}
	if h, ok := r.step(name, nil); ok {
		return h, true
	}
	for s := r.sc; s != nil; s = s.parent {
		var best *version[*result]
		for _, a := range s.steps { // the order does not matter: ordinals differ
			if v, ok := a.ok.at(r.asOf); ok && (best == nil || v.ordinal > best.ordinal) {
				if _, has := find(v.value.fields, name); has {
					best = v
				}
			}
		}
		if best != nil {
			raw, _ := find(best.value.fields, name)
			return hit{raw: raw, layer: LayerSteps, name: best.value.node, from: best.value, path: payload.Path{payload.KeyStep(name)}},
				true
		}
	}
	return r.about(name, nil)
}

func (r *reader) ownField(path payload.Path) (hit, bool) {
	if r.own == nil {
		return hit{}, false
	}
	if !r.ownOK {
		value, err := payload.Normalize(r.own, payload.Limits{})
		if err != nil {
			r.own, r.ownErr = nil, fault.Newf(fault.InvalidInput, "the node's input cannot be read: %w", err)
			return hit{}, false
		}
		r.own, r.ownOK = value, true
	}
	if r.own[0] != '{' {
		return hit{}, false
	}
	if r.handed && len(r.apart) > 0 {
		if h, ok := r.besideOwn(path); ok {
			return h, true
		}
	}
	raw, ok := path.In(r.own)
	return hit{raw: raw, layer: LayerOwn, name: path[0].Key, path: path}, ok
}

// variable reads a scope's variable or env. closed says that the head is one, so that no other place is asked.
func (r *reader) variable(path payload.Path) (h hit, found, closed bool) {
	head := path[0].Key
	for s := r.sc; s != nil; s = s.parent {
		if value, ok := s.vars[head]; ok {
			raw, ok := path[1:].In(value)
			return hit{raw: raw, layer: LayerScope, name: head, scope: s.path, path: path[1:], edit: s.edited[head]}, ok, true
		}
	}
	if head == "env" && len(path) > 1 {
		raw, ok := r.l.env[path[1].Key]
		if ok && len(path) > 2 {
			ok = false
		}
		return hit{raw: raw, layer: LayerEnv, name: path[1].Key}, ok, true
	}
	return hit{}, false, false
}

func (r *reader) about(head string, rest payload.Path) (hit, bool) {
	if head == "trigger" {
		return r.trigger(rest)
	}
	if value, ok := r.l.about[head]; ok {
		raw, ok := rest.In(value)
		return hit{raw: raw, layer: LayerExecution, name: head, path: rest}, ok
	}
	return hit{}, false
}

// trigger reads what the execution was started with, and where that has no such field the result of the trigger: what it says of the start
// itself, such as trigger_time. What was brought comes first: its own result is where a trigger says what it vouches for, and an input that
// is called user_id can be read nowhere else.
func (r *reader) trigger(rest payload.Path) (hit, bool) {
	h := hit{layer: LayerTrigger, name: "trigger", path: rest}
	if len(rest) == 0 {
		h.raw = r.l.triggerWhole(r.asOf)
		return h, true
	}
	if given, ok := payload.Field(r.l.trigger, rest[0].Key); ok {
		h.edit = r.l.triggerEdited[rest[0].Key]
		h.raw, ok = rest[1:].In(given)
		return h, ok
	}
	started := r.l.started(r.asOf)
	if started == nil {
		return h, false
	}
	added, ok := find(started.fields, rest[0].Key)
	if !ok {
		return h, false
	}
	h.edit = started.edited[rest[0].Key]
	h.raw, ok = rest[1:].In(added)
	return h, ok
}

// started is the result of the trigger that has run, nil if none had.
func (l *Layers) started(asOf uint64) *result {
	if a := l.root.steps[l.fired]; a != nil && l.fired != "" {
		if v, ok := a.ok.at(asOf); ok {
			return v.value
		}
	}
	return nil
}

// triggerWhole is all that {{trigger.…}} reads, as one object.
func (l *Layers) triggerWhole(asOf uint64) json.RawMessage {
	started := l.started(asOf)
	if started == nil || len(started.fields) == 0 {
		return l.trigger
	}
	members := payload.Members(l.trigger)
	given := make(map[string]bool, len(members))
	for _, m := range members {
		given[m.Key] = true
	}
	for _, m := range started.fields {
		if !given[m.Key] {
			members = append(members, m)
		}
	}
	return payload.AppendObject(nil, members)
}

func (r *reader) runtime(name string, path payload.Path) (hit, bool) {
	for s := r.sc; s != nil; s = s.parent {
		h := s.runtime[name]
		if h == nil {
			continue
		}
		v, ok := h.at(r.asOf)
		if !ok {
			continue
		}
		raw, ok := path.In(v.value.value())
		return hit{raw: raw, layer: LayerRuntime, name: name, from: v.value.from, field: v.value.field(), path: path}, ok
	}
	return hit{}, false
}

func (r *reader) initial(name string, path payload.Path) (hit, bool) {
	value, ok := find(r.l.initial, name)
	if !ok {
		return hit{}, false
	}
	raw, ok := path.In(value)
	return hit{raw: raw, layer: LayerInitial, name: name, path: path, edit: r.l.initialEdited[name]}, ok
}

// results returns the success and the failure of a node that are visible, either may be nil. An id is preferred to a
// name, the inner scope to the outer.
func (r *reader) results(head string) (ok, failed *result) {
	for _, named := range [...]bool{false, true} {
		for s := r.sc; s != nil; s = s.parent {
			table := s.steps
			if named {
				table = s.named
			}
			a := table[head]
			if a == nil {
				continue
			}
			if v, has := a.ok.at(r.asOf); has && ok == nil {
				ok = v.value
			}
			if v, has := a.failed.at(r.asOf); has && failed == nil {
				failed = v.value
			}
			if ok != nil {
				return ok, failed
			}
		}
		if failed != nil {
			return ok, failed
		}
	}
	return nil, nil
}

func (r *reader) hasStep(head string) bool {
	ok, failed := r.results(head)
	return ok != nil || failed != nil
}

// step reads a node's output. The success comes first, so that a failure never hides it; the payload of a handled
// failure can be read where the success has no such field.
func (r *reader) step(head string, path payload.Path) (hit, bool) {
	ok, failed := r.results(head)
	if ok != nil {
		if h, found := ok.readField(path); found {
			return h, true
		}
	}
	if failed != nil && len(failed.keys) > 0 {
		return failed.readField(path)
	}
	return hit{}, false
}

// readField follows a path into an output. A first step that is not a field of the output may be an output key.
func (res *result) readField(path payload.Path) (hit, bool) {
	if len(path) == 0 {
		return hit{raw: res.whole(), layer: LayerSteps, name: res.node, from: res}, true
	}
	if res.fields != nil {
		if value, ok := find(res.fields, path[0].Key); ok {
			raw, ok := path[1:].In(value)
			if !ok && path[0].Key == DefaultKey {
				raw, ok = ownResult(value, path[1:])
			}
			return hit{raw: raw, layer: LayerSteps, name: res.node, from: res, path: path}, ok
		}
	} else if raw, ok := path.In(res.output); ok {
		return hit{raw: raw, layer: LayerSteps, name: res.node, from: res, path: path}, true
	} else if value, ok := path[:1].In(res.output); ok && path[0].Key == DefaultKey {
		raw, ok := ownResult(value, path[1:])
		return hit{raw: raw, layer: LayerSteps, name: res.node, from: res, path: path}, ok
	}
	payload, ok := find(res.keys, path[0].Key)
	if !ok && path[0].Key == "main" { // an accepted spelling of the default key
		payload, ok = find(res.keys, DefaultKey)
	}
	if !ok {
		return hit{}, false
	}
	if len(res.beside) > 0 {
		payload = res.whole() // it is the only one
	}
	raw, ok := path[1:].In(payload)
	return hit{raw: raw, layer: LayerSteps, name: res.node, from: res, path: path}, ok
}

// ownResult follows a path into the result of a result. What a tool returns stands under "result" of its node; where the tool has a
// field of that name itself, who writes its output as the tool describes it means that one.
func ownResult(value json.RawMessage, path payload.Path) ([]byte, bool) {
	if len(value) == 0 || value[0] != '{' {
		return nil, false
	}
	own, ok := payload.Field(value, DefaultKey)
	if !ok {
		return nil, false
	}
	return path.In(own)
}

// Lookup reads one path, as a placeholder without brackets: "city", "fetch.outputs.items[0].id". It finds nothing
// without an error; an error means that the path or the scope is wrong.
func (l *Layers) Lookup(v View, path string) (json.RawMessage, Source, bool, error) {
	rd, err := l.reader(Request{View: v})
	if err != nil {
		return nil, Source{}, false, err
	}
	segs, end, problem := payload.ScanPath(path, 0)
	if problem == "" && end != len(path) {
		problem = "is not one path of names"
	}
	if problem != "" {
		return nil, Source{}, false, fault.Newf(fault.Invalid, "the path %q %s", path, problem)
	}
	h, ok := rd.find(newPlaceholder(path, "", 0, segs))
	if !ok {
		return nil, Source{}, false, nil
	}
	return h.raw, h.source(), true, nil
}
