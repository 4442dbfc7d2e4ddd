package dataflow

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"tandem/payload"
)

// Edit is a value that somebody gave in the place of another when an execution was forked. It is by name: whatever the fork
// can read under that name, of what was there when it began, is the new value.
type Edit struct {
	Name  string
	Value json.RawMessage
	// By is who edited it, Fork the execution that begins with the edit.
	By   string
	Fork string
	// Scope is where it was made. It holds there and in the scopes around it, and not in other iterations beside them.
	Scope string
	// Within, when it is not empty, is the iteration whose variable the name is: outside of it nothing is edited.
	Within string
	// Added says that the input had no such name, so that the output of a node of that name is what was meant.
	Added bool
	// Was is the value that was edited, nil if it is not known. Whatever holds it under the same name, however deep, is a copy of it and
	// is edited, too.
	Was json.RawMessage
	// Same says that nothing else is meant: what has the name and another value stays.
	Same bool
	// Nodes, when there are any, are the nodes whose whole output Was is. Values that are not objects have no names: the input
	// has them under [DataKey].
	Nodes []string
}

// Holds says whether an edit holds in a scope that was open when it was made.
func (e *Edit) Holds(scope string) bool {
	return (scope == "" || scope == e.Scope || strings.HasPrefix(e.Scope, scope+"/")) &&
		(e.Within == "" || scope == e.Within || strings.HasPrefix(scope, e.Within+"/"))
}

// edited is who has edited a value, and in which fork.
type edited struct{ by, fork string }

// EditPayload lays edits over a value that a node has left: over the fields of an object, or over the whole of another value.
// It returns the edits that were of consequence.
func EditPayload(node string, value json.RawMessage, edits []Edit) (json.RawMessage, []Edit, error) {
	var made []Edit
	for i := range edits {
		raw, err := payload.Normalize(value, payload.Limits{})
		if err != nil {
			return nil, nil, err
		}
		if changed, ok := edits[i].payload(node, raw); ok {
			value, made = changed, append(made, edits[i])
		}
	}
	return value, made, nil
}

func (e *Edit) payload(node string, value json.RawMessage) (json.RawMessage, bool) {
	whole := value[0] != '{' && slices.Contains(e.Nodes, node) ||
		e.Added && !e.Same && e.Within == "" && node != "" && node == e.Name && e.Was != nil
	if whole && payload.Same(value, e.Was) {
		return e.Value, true
	}
	return e.reach(value, true)
}

// withField sets a field of an object; a new one comes last.
func withField(object json.RawMessage, name string, value json.RawMessage) json.RawMessage {
	members := payload.Members(object)
	if at := slices.IndexFunc(members, func(m payload.Member) bool { return m.Key == name }); at >= 0 {
		members[at].Value = value
	} else {
		members = append(members, payload.Member{Key: name, Value: value})
	}
	return payload.AppendObject(nil, members)
}

// Retitle makes the layers those of another execution.
func (l *Layers) Retitle(execution string) {
	l.about["execution"] = aboutID(execution)
}

// Variable says in which open scope a name is a variable, as seen from a scope: the innermost that has it.
func (l *Layers) Variable(scope, name string) (within string, value json.RawMessage, ok bool) {
	for s := l.scopes[scope]; s != nil; s = s.parent {
		if value, ok := s.vars[name]; ok {
			return s.path, value, true
		}
	}
	return "", nil, false
}

// EditedVariables returns what edits make of the variables of the scopes that they hold in: an item whose field is edited is
// another item. They are edits themselves, to be made after those.
func (l *Layers) EditedVariables(edits []Edit) []Edit {
	var more []Edit
	for _, s := range l.sortedScopes() {
		for _, name := range sortedNames(s.vars) {
			value, last := s.vars[name], -1
			for i := range edits {
				e := &edits[i]
				if !e.Holds(s.path) || e.Name == name {
					continue
				}
				if e.sameVariable(s, name) {
					value, last = e.Value, i
				} else if changed, ok := e.reach(value, true); ok {
					value, last = changed, i
				}
			}
			own := slices.ContainsFunc(edits, func(e Edit) bool { return e.Name == name && e.Within == s.path })
			if last >= 0 && !own {
				e := edits[last]
				more = append(more, Edit{Name: name, Value: value, Was: s.vars[name], By: e.By, Fork: e.Fork,
					Scope: e.Scope, Within: s.path})
			}
		}
	}
	return more
}

// indexVariable is the variable of an iteration that counts.
const indexVariable = "index"

// sameVariable says that an edited variable is known by another name, too: an item by the name that the loop gives it.
func (e *Edit) sameVariable(s *scope, name string) bool {
	if e.Within != s.path || e.Name == indexVariable || name == indexVariable || e.Was == nil {
		return false
	}
	held, ok := s.vars[e.Name]
	return ok && payload.Same(held, e.Was) && payload.Same(held, s.vars[name])
}

func sortedNames[T any](table map[string]T) []string { return slices.Sorted(maps.Keys(table)) }

func (l *Layers) sortedScopes() []*scope {
	list := make([]*scope, 0, len(l.scopes))
	for _, path := range sortedNames(l.scopes) {
		list = append(list, l.scopes[path])
	}
	return list
}

// Edit makes edits: every value that can be read from where an edit was made, under its name, becomes the new one. It is for
// layers that nothing was written to since [Layers.Rebase]; what is written later is newer. Keep says which names must not be
// added where there were none: those of nodes, whose outputs are yet to come.
func (l *Layers) Edit(edits []Edit, keep func(name string) bool) error {
	for i := range edits {
		e := &edits[i]
		value, err := payload.Normalize(e.Value, payload.Limits{})
		if err != nil {
			return err
		}
		e.Value = slices.Clone(value)
		if _, err := l.scope(e.Scope); err != nil {
			return err
		}
		l.edit(e)
		if e.Within != "" || e.Same || keep(e.Name) {
			continue
		}
		rd, err := l.reader(Request{View: View{Scope: e.Scope}})
		if err != nil {
			return err
		}
		if h, ok := rd.bare(e.Name); !ok || !payload.Same(h.raw, e.Value) {
			l.setInitial(e, l.edits[len(l.edits)-1])
		}
	}
	return nil
}

func (l *Layers) edit(e *Edit) {
	mark := &edited{e.By, e.Fork}
	l.edits = append(l.edits, mark)
	if e.Within == "" {
		for i, m := range l.initial {
			if changed, ok := e.member(m, true); ok {
				l.initial[i].Value, l.initialEdited = changed, marked(l.initialEdited, m.Key, mark)
			}
		}
		l.editTrigger(e, mark)
	}
	swapped := map[*result]*result{}
	swap := func(r *result) *result {
		if r == nil {
			return nil
		}
		if _, ok := swapped[r]; !ok {
			swapped[r] = e.result(r, mark)
		}
		return swapped[r]
	}
	for s := l.scopes[e.Scope]; s != nil; s = s.parent {
		if !e.Holds(s.path) {
			continue
		}
		if held, ok := s.vars[e.Name]; ok && s.path == e.Within && (!e.Same || payload.Same(held, e.Was)) {
			s.vars[e.Name] = e.Value
			s.edited = marked(s.edited, e.Name, mark)
		}
		for _, table := range []map[string]*attempts{s.steps, s.named} {
			for _, a := range table { // order does not matter: each gets its own
				for _, h := range []*history[*result]{&a.ok, &a.failed} {
					for i := range h.versions {
						h.versions[i].value = swap(h.versions[i].value)
					}
				}
			}
		}
		for _, name := range sortedNames(s.runtime) {
			h := s.runtime[name]
			before := len(h.versions)
			h.versions = slices.DeleteFunc(h.versions, func(v version[datum]) bool {
				_, has := find(swap(v.value.from).fields, v.value.field())
				return !has // the output was replaced by one that has no such field
			})
			l.retained -= before - len(h.versions)
			for i := range h.versions {
				d := &h.versions[i].value
				field := d.field()
				d.from = swap(d.from)
				d.at, _ = findAt(d.from.fields, field)
			}
			if len(h.versions) == 0 {
				delete(s.runtime, name)
			}
		}
	}
}

func (l *Layers) setInitial(e *Edit, mark *edited) {
	if at := slices.IndexFunc(l.initial, func(m payload.Member) bool { return m.Key == e.Name }); at >= 0 {
		l.initial[at].Value = e.Value
	} else {
		l.initial = sortMembers(append(l.initial, payload.Member{Key: e.Name, Value: e.Value}))
	}
	l.initialEdited = marked(l.initialEdited, e.Name, mark)
}

// editTrigger edits what {{trigger.…}} reads: a field of it, or all of it.
func (l *Layers) editTrigger(e *Edit, mark *edited) {
	for _, m := range payload.Members(l.trigger) {
		if changed, ok := e.member(m, true); ok {
			l.trigger = withField(l.trigger, m.Key, changed)
			l.triggerEdited = marked(l.triggerEdited, m.Key, mark)
		}
	}
	if e.Name != "trigger" || e.Same || e.Value[0] != '{' {
		return
	}
	for _, m := range payload.Members(e.Value) {
		if was, ok := payload.Field(l.trigger, m.Key); !ok || !payload.Same(was, m.Value) {
			l.trigger = withField(l.trigger, m.Key, m.Value)
			l.triggerEdited = marked(l.triggerEdited, m.Key, mark)
		}
	}
}

// result is what an edit makes of a node's result: the same if it has nothing of that name.
func (e *Edit) result(r *result, mark *edited) *result {
	keys, marks := slices.Clone(r.wholeKeys()), r.edited
	for i := range keys {
		changed, ok := e.payload(r.node, keys[i].Value)
		if !ok {
			continue
		}
		name := e.Name
		if keys[i].Value[0] != '{' {
			name = wholeOutput
		}
		keys[i].Value, marks = changed, marked(marks, name, mark)
	}
	if e.Within == "" && !e.Same && (r.node == e.Name || r.name == e.Name) {
		keys, marks = e.named(r, keys, marks, mark)
	}
	if len(marks) == len(r.edited) && sameMarks(marks, r.edited) {
		return r
	}
	changed := resultOf(keys)
	changed.node, changed.name, changed.tool, changed.scope, changed.activation = r.node, r.name, r.tool, r.scope, r.activation
	changed.seq, changed.success, changed.message, changed.edited = r.seq, r.success, r.message, marks
	return changed
}

// wholeOutput marks that the whole output of a node was edited.
const wholeOutput = ""

// named edits the output of a node that has the name of the edit: its fields, as they are read after the node's id; all of it
// when the input had nothing of that name, so that the output was what was read.
func (e *Edit) named(r *result, keys []payload.Member, marks map[string]*edited, mark *edited) ([]payload.Member, map[string]*edited) {
	at := slices.IndexFunc(keys, func(m payload.Member) bool { return m.Key == DefaultKey })
	if at < 0 && len(keys) == 1 {
		at = 0
	}
	if e.Added {
		if at < 0 {
			return []payload.Member{{Key: DefaultKey, Value: e.Value}}, marked(marks, wholeOutput, mark)
		}
		keys[at].Value = e.Value
		return keys, marked(marks, wholeOutput, mark)
	}
	if at < 0 || e.Value[0] != '{' || keys[at].Value[0] != '{' {
		return keys, marks
	}
	for _, m := range payload.Members(e.Value) {
		keys[at].Value = withField(keys[at].Value, m.Key, m.Value)
		marks = marked(marks, m.Key, mark)
	}
	return keys, marks
}

// marked returns marks with one more; those it is given stay as they are, since results share them.
func marked(marks map[string]*edited, name string, mark *edited) map[string]*edited {
	more := make(map[string]*edited, len(marks)+1)
	for n, m := range marks { // order does not matter: one entry per name
		more[n] = m
	}
	more[name] = mark
	return more
}

func sameMarks(a, b map[string]*edited) bool {
	for name, mark := range a { // order does not matter: each is compared
		if b[name] != mark {
			return false
		}
	}
	return true
}

// editOf is the edit that a value of a result was made by, if it was.
func (r *result) editOf(path payload.Path) *edited {
	if mark := r.edited[wholeOutput]; mark != nil {
		return mark
	}
	for i := range path { // a field may be anywhere in the output
		if mark := r.edited[path[i].Key]; mark != nil {
			return mark
		}
	}
	if len(path) > 0 {
		return nil
	}
	for _, name := range sortedNames(r.edited) { // all of the output, of which something was
		return r.edited[name]
	}
	return nil
}
