package agent

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"tandem/dataflow"
	"tandem/payload"
)

// maxIndexed is how many values of one source are looked at; what is behind them is not found again.
const maxIndexed = 50_000

// input is the source of what the task was started with; the others are calls.
const input = -1

// thing is a value that a placeholder can read.
type thing struct {
	source int
	spot
	top  string // of an input, its name
	text string // the value, if it is a telling text
}

// index finds things by what they are.
type index struct {
	things map[sum][]thing
	texts  []thing
}

func (x *index) addValue(source int, top string, at spot, v value, left *int) {
	if *left--; *left < 0 || v.empty() {
		return
	}
	if x.things == nil {
		x.things = map[sum][]thing{}
	}
	t := thing{source: source, spot: at, top: top}
	if at.path != "" {
		if v.kind == '"' && v.telling() {
			t.text = v.text
			x.texts = append(x.texts, t)
		}
		x.things[v.sum] = append(x.things[v.sum], t)
	}
	v.each(at, func(at spot, inner value) { x.addValue(source, top, at, inner, left) })
}

// addInputs adds what the task was given. Which conversation it belonged to and in which language is not data.
func (x *index) addInputs(initial value) {
	left := maxIndexed
	for _, f := range initial.fields {
		if !slices.Contains([]string{"conversation_id", "session_id", "language"}, f.key) {
			x.addValue(input, f.key, spot{}.key(f.key), f.value, &left)
		}
	}
}

func (x *index) addStep(call int, result value) {
	left := maxIndexed
	x.addValue(call, "", spot{}, result, &left)
}

// addAnswer adds what a person has answered.
func (x *index) addAnswer(v value) {
	left := maxIndexed
	x.addValue(input, "", spot{}, v, &left)
}

// find returns the thing that a value is, or all that it could be.
func (x *index) find(v value, name string) (one *thing, could []thing) {
	could = x.things[v.sum]
	same := slices.DeleteFunc(slices.Clone(could), func(t thing) bool { return t.name != name })
	if len(same) == 0 {
		for _, t := range could {
			if t.name != could[0].name {
				return nil, could
			}
		}
		same = slices.Clone(could)
	}
	if len(same) == 0 {
		return nil, nil
	}
	slices.SortFunc(same, func(a, b thing) int {
		return cmp.Or(cmp.Compare(b.source, a.source), cmp.Compare(a.depth, b.depth), strings.Compare(a.path, b.path))
	})
	return &same[0], could
}

// within returns the longest thing that a text has in it.
func (x *index) within(text string) *thing {
	var best *thing
	for i := range x.texts {
		t := &x.texts[i]
		if strings.Contains(text, t.text) && (best == nil || len(t.text) >= len(best.text)) {
			best = t
		}
	}
	return best
}

// spellings are the placeholders that read a thing, the plainest first.
func (t *thing) spellings() []string {
	if t.source == input {
		return inputSpellings(t.path)
	}
	return []string{"{{" + payload.JoinPath(nodeID(t.source)+".outputs.result", t.path) + "}}"}
}

// inputSpellings: a name that a node's output has as well is asked of what the run was started with.
func inputSpellings(path string) []string {
	return []string{"{{" + path + "}}", "{{" + payload.JoinPath("trigger", path) + "}}"}
}

// arguments are those of a call that become parameters of its node.
type arguments struct {
	*freezer
	call  *PastCall
	node  string
	given index
}

// located is a place in what the model wrote.
type located struct {
	draft *draft
	value value
}

// draft is what the placeholders of a template have read, by how they were written.
type draft struct {
	sources map[string]dataflow.Source
	filled  bool
}

func (a *arguments) readDraft(d Draft) *draft {
	read := &draft{sources: map[string]dataflow.Source{}, filled: d.Filled}
	for _, o := range d.Lineage {
		for _, s := range o.Sources {
			if s.Placeholder != "" {
				read.sources[s.Placeholder] = s
			}
		}
	}
	return read
}

// build writes the value at a place of the arguments. At are the same places in what the model wrote.
func (a *arguments) build(v value, here spot, at []located) json.RawMessage {
	for _, l := range at {
		if text, ok := a.rewrite(l, v, here); ok {
			return payload.Quote(text)
		}
	}
	if v.container() && !v.empty() {
		if here.path != "" && !slices.ContainsFunc(at, func(l located) bool { return l.value.refers() }) && !a.answered(v) {
			if text, ok := a.trace(v, here); ok {
				return payload.Quote(text)
			}
		}
		return a.inside(v, here, at)
	}
	if !a.answered(v) {
		if text, ok := a.trace(v, here); ok {
			return payload.Quote(text)
		}
	}
	if !v.empty() {
		a.untraced = append(a.untraced, Untraced{Step: a.node, Path: here.path, Value: v.raw, Reason: a.reason(v, here, at)})
	}
	if v.kind == '"' {
		return payload.Quote(escape(v.text))
	}
	return v.raw
}

func (a *arguments) inside(v value, here spot, at []located) json.RawMessage {
	var fields []field
	var items []value
	i := 0
	v.each(here, func(there spot, inner value) {
		var deeper []located
		for _, l := range at {
			switch {
			case v.kind == '{' && l.value.kind == '{':
				if t, ok := l.value.field(v.fields[i].key); ok {
					deeper = append(deeper, located{l.draft, t})
				}
			case v.kind == '[' && l.value.kind == '[' && i < len(l.value.items):
				deeper = append(deeper, located{l.draft, l.value.items[i]})
			}
		}
		raw := value{raw: a.build(inner, there, deeper)}
		if v.kind == '{' {
			fields = append(fields, field{v.fields[i].key, raw})
		} else {
			items = append(items, raw)
		}
		i++
	})
	if v.kind == '{' {
		return objectOf(fields)
	}
	return listOf(items)
}

// refers says that there is a placeholder somewhere in it.
func (v *value) refers() bool {
	if v.kind == '"' {
		refs, err := dataflow.TextReferences(v.text)
		return err == nil && slices.ContainsFunc(refs, func(r dataflow.Reference) bool { return !r.Unterminated })
	}
	return slices.ContainsFunc(v.fields, func(f field) bool { return f.value.refers() }) ||
		slices.ContainsFunc(v.items, func(i value) bool { return i.refers() })
}

// rewrite writes a text of the model's for the workflow, where the same things have other names. It is only good if it is the
// value that the tool was given.
func (a *arguments) rewrite(l located, v value, here spot) (string, bool) {
	if l.value.kind != '"' {
		return "", false
	}
	refs, err := dataflow.TextReferences(l.value.text)
	if err != nil {
		return "", false
	}
	var out strings.Builder
	end, found := 0, false
	var inputs []string
	for _, r := range refs {
		if r.Unterminated {
			continue
		}
		source, ok := l.draft.sources[r.Raw]
		if !ok {
			return "", false
		}
		spelled, name, ok := a.spell(source)
		if !ok {
			return "", false
		}
		if name != "" {
			inputs = append(inputs, name)
		}
		out.WriteString(l.value.text[end:r.Offset])
		out.WriteString(spelled)
		end, found = r.Offset+len(r.Raw), true
	}
	out.WriteString(l.value.text[end:])
	if !found || !a.holds(out.String(), v.sum) {
		return "", false
	}
	for _, name := range inputs {
		a.uses(name, a.node+"."+here.path)
	}
	return out.String(), true
}

// spell returns the placeholder that reads in the workflow what a source was in the task, and the input that it needs.
func (a *arguments) spell(s dataflow.Source) (text, name string, ok bool) {
	path := s.Path
	switch {
	case s.Layer == dataflow.LayerExecution:
		return a.first([]string{"{{" + payload.JoinPath(s.Name, path) + "}}"})
	case s.Layer == dataflow.LayerInitial:
		return a.input(s.Name, payload.JoinPath(payload.JoinKey("", s.Name), path))
	case s.Layer == dataflow.LayerTrigger || s.Node == StartNode:
		for _, group := range []string{"metadata", "params"} { // they are one as inputs
			rest, ok := strings.CutPrefix(path, group+".")
			if !ok {
				continue
			}
			if text, name, ok := a.input(firstName(rest), rest); ok {
				return text, name, true
			}
		}
		if path == "execution_id" {
			return a.first([]string{"{{execution.id}}"})
		}
		return a.input(firstName(path), path)
	}
	call, ok := a.nodes[s.Node]
	if !ok {
		return "", "", false
	}
	output := nodeID(call) + ".outputs.result"
	spellings := []string{"{{" + payload.JoinPath(output, path) + "}}"}
	for _, key := range []string{"result", "main"} { // the name of the output, which is read where there is no such field
		if rest, ok := strings.CutPrefix(path, key); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			spellings = append(spellings, "{{"+payload.JoinPath(output, strings.TrimPrefix(rest, "."))+"}}")
		}
	}
	return a.first(spellings)
}

// firstName is the first name of a path, as far as it is a plain one.
func firstName(path string) string {
	if i := strings.IndexAny(path, ".["); i >= 0 {
		return path[:i]
	}
	return path
}

func (a *arguments) input(name, path string) (text, input string, ok bool) {
	want, known := a.lookup(payload.JoinPath("trigger", path))
	for _, s := range inputSpellings(path) {
		if known && name != "" && a.holds(s, want.sum) {
			return s, name, true
		}
	}
	return "", "", false
}

// lookup reads the data as it is before the node.
func (a *arguments) lookup(path string) (value, bool) {
	raw, _, ok, err := a.layers.Lookup(dataflow.View{AsOf: a.seq}, path)
	if err != nil || !ok { // a path that cannot be written reads nothing either
		return value{}, false
	}
	v, err := parse(raw)
	return v, err == nil
}

// first returns the first placeholder that reads anything.
func (a *arguments) first(spellings []string) (text, name string, ok bool) {
	for _, s := range spellings {
		if _, known := a.lookup(s[2 : len(s)-2]); known {
			return s, "", true
		}
	}
	return "", "", false
}

// trace finds out what a value that the model wrote out is.
func (a *arguments) trace(v value, here spot) (string, bool) {
	if !v.telling() {
		return "", false
	}
	one, _ := a.index.find(v, here.name)
	if one == nil {
		return "", false
	}
	for _, s := range one.spellings() {
		if a.holds(s, v.sum) {
			if one.source == input {
				a.uses(one.top, a.node+"."+here.path)
			}
			return s, true
		}
	}
	return "", false
}

// answered says that a person gave the value.
func (a *arguments) answered(v value) bool {
	return !v.empty() && v.kind != 't' && len(a.given.things[v.sum]) > 0
}

// reason says why a value stays as it was.
func (a *arguments) reason(v value, here spot, at []located) string {
	_, could := a.index.find(v, here.name)
	switch {
	case a.answered(v) || v.telling() && len(could) == 0 && len(a.answers.things[v.sum]) > 0:
		return "came from a person's answer"
	case v.kind == 't':
		return "made by the model"
	case len(could) > 0 && !v.telling():
		return "too short to tell whether it is " + could[len(could)-1].spellings()[0]
	case len(could) > 1:
		return "may be " + could[0].spellings()[0] + " or " + could[len(could)-1].spellings()[0]
	}
	if v.kind == '"' {
		if slices.ContainsFunc(a.answers.texts, func(t thing) bool {
			return v.telling() && strings.Contains(t.text, strings.TrimSpace(v.text))
		}) {
			return "stands in a person's answer"
		}
		if strings.Contains(a.past.Question, strings.TrimSpace(v.text)) {
			return "stands in the question"
		}
		if t := a.index.within(v.text); t != nil {
			return "made by the model; " + t.spellings()[0] + " is in it"
		}
	} else if v.kind == '0' && slices.Contains(strings.FieldsFunc(a.past.Question,
		func(r rune) bool { return !strings.ContainsRune("0123456789.-", r) }), string(v.raw)) {
		return "stands in the question"
	}
	if len(at) > 0 && at[0].draft.filled {
		return "made by the model when parameters were missing"
	}
	return "made by the model"
}
