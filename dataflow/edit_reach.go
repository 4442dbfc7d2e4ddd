package dataflow

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"tandem/payload"
)

// reach lays an edit over a value and everything inside it. At the top a field of the edit's name is meant whatever it holds;
// further down, and inside JSON that is kept as text, the fields of that name are meant which hold what was edited: they are copies of it.
func (e *Edit) reach(value json.RawMessage, top bool) (json.RawMessage, bool) {
	switch {
	case value[0] == '{':
		members, made := payload.Members(value), false
		for i := range members {
			if changed, ok := e.member(members[i], top); ok {
				members[i].Value, made = changed, true
			}
		}
		if made {
			return payload.AppendObject(nil, members), true
		}
	case e.Was == nil:
	case value[0] == '[':
		items, made := payload.Items(value), false
		for i := range items {
			if changed, ok := e.reach(items[i], false); ok {
				items[i], made = changed, true
			}
		}
		if made {
			return payload.AppendList(nil, items), true
		}
	case value[0] == '"':
		if inner, ok := jsonInText(value); ok {
			if changed, ok := e.reach(inner, false); ok {
				return payload.Quote(string(changed)), true
			}
		}
	}
	return nil, false
}

// member lays an edit over one field of an object.
func (e *Edit) member(m payload.Member, top bool) (json.RawMessage, bool) {
	if m.Key == e.Name && (top && !e.Same || e.Was != nil && payload.Same(m.Value, e.Was)) {
		return e.Value, true
	}
	if e.Was == nil {
		return nil, false
	}
	return e.reach(m.Value, false)
}

// jsonInText reads the object or list that a text holds.
func jsonInText(text json.RawMessage) (json.RawMessage, bool) {
	if len(text) < 4 || !strings.ContainsAny(string(text[1:2]), "{[ \\\t") {
		return nil, false
	}
	inner := strings.TrimSpace(payload.Unquote(text[1 : len(text)-1]))
	if inner == "" || inner[0] != '{' && inner[0] != '[' {
		return nil, false
	}
	value, err := payload.Normalize([]byte(inner), payload.Limits{})
	return value, err == nil
}

// Copy is a place in the output of a node that holds an edited value under another name, or a text that tells it.
type Copy struct {
	// Name is the name that was edited, Node the node and Path the path of the place, which begins with the node.
	Name, Node, Path string
}

// Copies finds what would still have the value from before the edits: places that hold it under another name, and texts in which it
// stands. Kept are values that are meant to stay. Values of a few signs do not show that one was made of the other, and what
// the execution was started with was made of nothing; what a node of an exempt kind has left does not count.
func (l *Layers) Copies(edits []Edit, kept []json.RawMessage, exempt func(kind string) bool) []Copy {
	var found []Copy
	given := append([]json.RawMessage{payload.AppendObject(nil, l.initial), l.trigger}, kept...)
	for i := range edits {
		e := &edits[i]
		text := payload.Text(e.Was)
		if e.Was == nil || e.Was[0] == '{' || e.Was[0] == '[' || utf8.RuneCountInString(text) < leastEvidence || text == "true" ||
			text == "false" || text == "null" {
			continue
		}
		search := copySearch{edit: e, edits: edits, text: text}
		for _, value := range given {
			eachLeaf(value, "", "", func(_, key string, leaf json.RawMessage) { search.known = append(search.known, known{key, leaf}) })
		}
		for _, value := range kept {
			search.known = append(search.known, known{"", value})
		}
		for s := l.scopes[e.Scope]; s != nil; s = s.parent {
			if !e.Holds(s.path) {
				continue
			}
			for _, node := range sortedNames(s.steps) {
				v, ok := s.steps[node].ok.at(l.seq)
				if !ok || exempt(v.value.tool) {
					continue
				}
				for _, m := range v.value.wholeKeys() {
					at := payload.JoinKey("", node)
					if m.Key != DefaultKey && len(v.value.keys) > 1 {
						at = payload.JoinKey(at, m.Key)
					}
					eachLeaf(m.Value, at, m.Key, func(path, key string, leaf json.RawMessage) {
						if search.stays(key, leaf) {
							found = append(found, Copy{Name: e.Name, Node: node, Path: path})
						}
					})
				}
			}
		}
	}
	return found
}

// leastEvidence is how many signs a value has at least that is looked for under other names.
const leastEvidence = 3

type known struct {
	key  string
	leaf json.RawMessage
}

type copySearch struct {
	edit  *Edit
	edits []Edit
	text  string
	known []known
}

// stays says that a leaf still holds or tells the value from before the edit, though no edit is of it.
func (c *copySearch) stays(key string, leaf json.RawMessage) bool {
	same := payload.Same(leaf, c.edit.Was)
	if !same && !(leaf[0] == '"' && len(c.text) > leastEvidence && tells(payload.Text(leaf), c.text)) {
		return false
	}
	if slices.ContainsFunc(c.edits, func(e Edit) bool {
		return e.Was != nil && payload.Same(leaf, e.Was) && (e.Name == key || strings.HasSuffix(e.Name, "."+key))
	}) {
		return false
	}
	return !slices.ContainsFunc(c.known, func(k known) bool { return (k.key == key || k.key == "" || !same) && payload.Same(k.leaf, leaf) })
}

// tells says that a text has another one in it, as a word or words of their own.
func tells(text, part string) bool {
	inWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	for at := 0; ; {
		i := strings.Index(text[at:], part)
		if i < 0 {
			return false
		}
		before, _ := utf8.DecodeLastRuneInString(text[:at+i])
		after, _ := utf8.DecodeRuneInString(text[at+i+len(part):])
		if !inWord(before) && !inWord(after) {
			return true
		}
		at += i + 1
	}
}

// eachLeaf visits the leaves of a value, those of JSON that is kept as text included, with the path and the last name of it.
func eachLeaf(value json.RawMessage, at, key string, f func(path, key string, leaf json.RawMessage)) {
	switch value[0] {
	case '{':
		for _, m := range payload.Members(value) {
			eachLeaf(m.Value, payload.JoinKey(at, m.Key), m.Key, f)
		}
	case '[':
		for i, item := range payload.Items(value) {
			eachLeaf(item, payload.JoinIndex(at, i), key, f)
		}
	case '"':
		if inner, ok := jsonInText(value); ok {
			eachLeaf(inner, at, key, f)
			return
		}
		fallthrough
	default:
		f(at, key, value)
	}
}
