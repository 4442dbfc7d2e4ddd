package workflow

import (
	"encoding/json"
	"strings"

	"tandem/payload"
	"tandem/text"
)

// value is a JSON value with its place in the file. Both formats are read into it, so everything after that (known
// fields, positions, canonical text) is written once.
type value struct {
	kind      valueKind
	line, col int32
	// text is a string's content, a number's digits as written, or true or false.
	text string
	// inside is set for lists and objects. Aliases of one YAML anchor share it; it is never changed after it was read.
	inside *members
}

type members struct {
	items []value
	names []name // of an object's items, in the order they were written
	// weight is about the length of the text that the value stands for, aliases written out.
	weight int64
	// depth counts the containers inside one another below this one. Only YAML needs it, since aliases hide depth.
	depth int32
}

type name struct {
	text      string
	line, col int32
}

type valueKind uint8

const (
	kindNull valueKind = iota
	kindBool
	kindNumber
	kindString
	kindList
	kindObject
)

func (k valueKind) String() string { return k.words().String() }

// words say what sort of value it is.
func (k valueKind) words() text.Text {
	return [...]text.Text{
		kindNull: text.As("null"), kindBool: text.Of("a boolean"), kindNumber: text.Of("a number"), kindString: text.Of("a string"), kindList: text.Of("a list"), kindObject: text.Of("an object"),
	}[k]
}

func (v *value) items() []value {
	if v.inside == nil {
		return nil
	}
	return v.inside.items
}

// weight is about the length of the value's text.
func (v *value) weight() int64 {
	switch {
	case v.inside != nil:
		return v.inside.weight
	case v.kind == kindNull:
		return 4
	default:
		return int64(len(v.text)) + 2
	}
}

// member returns the item of an object with this name.
func (v *value) member(want string) *value {
	if v.kind != kindObject {
		return nil
	}
	for i := range v.inside.names {
		if v.inside.names[i].text == want {
			return &v.inside.items[i]
		}
	}
	return nil
}

// appendJSON writes the value's canonical text: compact, keys in their order, numbers as written.
func (v *value) appendJSON(out []byte) []byte {
	switch v.kind {
	case kindNull:
		return append(out, "null"...)
	case kindBool, kindNumber:
		return append(out, v.text...)
	case kindString:
		return payload.AppendText(out, v.text)
	case kindList:
		out = append(out, '[')
		for i := range v.inside.items {
			if i > 0 {
				out = append(out, ',')
			}
			out = v.inside.items[i].appendJSON(out)
		}
		return append(out, ']')
	default:
		out = append(out, '{')
		for i := range v.inside.items {
			if i > 0 {
				out = append(out, ',')
			}
			out = payload.AppendText(out, v.inside.names[i].text)
			out = append(out, ':')
			out = v.inside.items[i].appendJSON(out)
		}
		return append(out, '}')
	}
}

func (v *value) raw() json.RawMessage { return v.appendJSON(make([]byte, 0, v.weight())) }

// lookups remembers members that were found, since many problems lie in the same few objects, which may be large.
type lookups map[lookup]*value

type lookup struct {
	in  *members
	key string
}

// spelled is value.spelled, searched for once.
func (l lookups) spelled(v *value, want string) *value {
	if v.kind != kindObject {
		return nil
	}
	at := lookup{v.inside, want}
	found, known := l[at]
	if !known {
		found = v.spelled(want)
		l[at] = found
	}
	return found
}

// walk follows a path ("nodes[2].configurations["odd key"]") from a value and returns the last value on it that exists.
func (v *value) walk(path string, found lookups) *value {
	steps, _ := payload.ParsePath(path) // of one that cannot be read, as far as it goes
	for _, s := range steps {
		next := found.spelled(v, s.Key)
		if v.kind == kindList && s.Index >= 0 && s.Index < len(v.inside.items) {
			next = &v.inside.items[s.Index]
		}
		if next == nil {
			return v
		}
		v = next
	}
	return v
}

// spelled is member, with other accepted spellings of a field's name as second choice.
func (v *value) spelled(want string) *value {
	if found := v.member(want); found != nil || v.kind != kindObject {
		return found
	}
	folded := fold(want)
	for i := range v.inside.names {
		if got := fold(v.inside.names[i].text); got == folded || got == "fromport" && folded == "outputkey" {
			return &v.inside.items[i]
		}
	}
	return nil
}

// fold makes the spellings of a field's name equal: output_key, outputKey.
func fold(field string) string {
	plain := true
	for i := range len(field) {
		if c := field[i]; c == '_' || c >= 'A' && c <= 'Z' {
			plain = false
			break
		}
	}
	if plain {
		return field
	}
	return strings.ToLower(strings.ReplaceAll(field, "_", ""))
}
