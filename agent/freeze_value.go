package agent

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/payload"
)

// sum stands for a value: equal values have equal sums, whatever the order of their fields and the spelling of their numbers.
type sum [sha256.Size]byte

// value is a JSON value taken apart. Kind is '{', '[', '"', '0' for a number, 't' for a boolean, 'n' for null.
type value struct {
	kind   byte
	raw    json.RawMessage
	text   string // of a string
	fields []field
	items  []value
	sum    sum
}

// field is a field of an object, in the order it was written.
type field struct {
	key   string
	value value
}

// parse takes a value apart; nothing is null.
func parse(raw json.RawMessage) (value, error) {
	if len(raw) == 0 {
		raw = json.RawMessage("null")
	}
	if !json.Valid(raw) {
		return value{}, errors.New("it is not valid JSON")
	}
	return read(gjson.ParseBytes(raw)), nil
}

func read(r gjson.Result) value {
	v := value{kind: 'n', raw: json.RawMessage(r.Raw)}
	h := sha256.New()
	write := func(parts ...[]byte) {
		for _, p := range parts {
			_, _ = h.Write(p) // it never fails
		}
	}
	switch {
	case r.IsObject():
		v.kind = '{'
		r.ForEach(func(key, inner gjson.Result) bool {
			v.fields = append(v.fields, field{key.Str, read(inner)})
			return true
		})
		for _, f := range slices.SortedStableFunc(slices.Values(v.fields), func(a, b field) int { return strings.Compare(a.key, b.key) }) {
			key := sha256.Sum256([]byte(f.key))
			write(key[:], f.value.sum[:])
		}
	case r.IsArray():
		v.kind = '['
		r.ForEach(func(_, inner gjson.Result) bool {
			v.items = append(v.items, read(inner))
			write(v.items[len(v.items)-1].sum[:])
			return true
		})
	case r.Type == gjson.String:
		v.kind, v.text = '"', r.Str
		write([]byte(r.Str))
	case r.Type == gjson.Number:
		v.kind = '0'
		write([]byte(plainNumber(r)))
	case r.IsBool():
		v.kind = 't'
		write(v.raw)
	}
	v.sum = sha256.Sum256(h.Sum([]byte{v.kind}))
	return v
}

// plainNumber spells a number in one way, unless that would lose digits.
func plainNumber(r gjson.Result) string {
	if math.Abs(r.Num) >= 1<<53 || math.IsInf(r.Num, 0) {
		return r.Raw
	}
	return strconv.FormatFloat(r.Num, 'g', -1, 64)
}

// field returns a field of an object.
func (v *value) field(key string) (value, bool) {
	for _, f := range v.fields {
		if f.key == key {
			return f.value, true
		}
	}
	return value{}, false
}

func (v *value) container() bool { return v.kind == '{' || v.kind == '[' }

// empty values need no trace: they say nothing.
func (v *value) empty() bool {
	switch v.kind {
	case '{':
		return len(v.fields) == 0
	case '[':
		return len(v.items) == 0
	case '"':
		return v.text == ""
	}
	return v.kind == 'n'
}

// telling says that a value is hardly equal to another by chance.
func (v *value) telling() bool {
	switch v.kind {
	case '"':
		return len([]rune(strings.TrimSpace(v.text))) >= 3
	case '0':
		n := gjson.ParseBytes(v.raw).Num
		return n != math.Trunc(n) || math.Abs(n) >= 100
	case '{':
		return slices.ContainsFunc(v.fields, func(f field) bool { return f.value.telling() })
	case '[':
		return slices.ContainsFunc(v.items, func(i value) bool { return i.telling() })
	}
	return false
}

// schemaType is what JSON Schema calls it.
func (v *value) schemaType() string {
	switch v.kind {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case '0':
		return "number"
	case 't':
		return "boolean"
	}
	return ""
}

// each visits the values that are directly in a container, with the way to them.
func (v *value) each(at spot, visit func(spot, value)) {
	for _, f := range v.fields {
		visit(at.key(f.key), f.value)
	}
	for i, item := range v.items {
		visit(at.item(i), item)
	}
}

// spot is a place in a value: its path as placeholders write it, and the name of the innermost field.
type spot struct {
	path, name string
	depth      int
}

func (s spot) key(key string) spot {
	return spot{payload.JoinKey(s.path, key), key, s.depth + 1}
}

func (s spot) item(i int) spot {
	return spot{payload.JoinIndex(s.path, i), s.name, s.depth + 1}
}

// escape writes a text so that nothing in it is read as a placeholder: an odd number of backslashes before an opening bracket says
// so, and each pair of them stands for one.
func escape(text string) string {
	if !strings.Contains(text, "{{") && !strings.Contains(text, "${") {
		return text
	}
	var out strings.Builder
	slashes := 0
	for i := 0; i < len(text); {
		c := text[i]
		if (c == '{' || c == '$') && i+1 < len(text) && text[i+1] == '{' {
			out.WriteString(strings.Repeat(`\`, slashes+1))
			end := i + 1
			for end < len(text) && text[end] == '{' {
				end++
			}
			out.WriteString(text[i:end])
			i, slashes = end, 0
			continue
		}
		if slashes++; c != '\\' {
			slashes = 0
		}
		out.WriteByte(c)
		i++
	}
	return out.String()
}

func textValue(text string) value { return read(gjson.ParseBytes(payload.Quote(text))) }

func objectOf(fields []field) json.RawMessage {
	members := make([]payload.Member, len(fields))
	for i, f := range fields {
		members[i] = payload.Member{Key: f.key, Value: f.value.raw}
	}
	return payload.AppendObject(nil, members)
}

func listOf(items []value) json.RawMessage {
	list := make([]json.RawMessage, len(items))
	for i, item := range items {
		list[i] = item.raw
	}
	return payload.AppendList(nil, list)
}
