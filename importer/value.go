package importer

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"tandem/payload"
)

// Value is a part of a document of another system. It may be nothing at all: every question has an answer then, an empty one, so that
// readers need not look at each step whether somebody has left something out.
type Value struct{ v any }

// ValueOf wraps what package payload has decoded.
func ValueOf(v any) Value { return Value{v} }

// Any is the value itself.
func (v Value) Any() any { return v.v }

// Exists says that there is something, and not null.
func (v Value) Exists() bool { return v.v != nil }

// At follows names of objects, and numbers of lists.
func (v Value) At(path ...string) Value {
	for _, step := range path {
		switch in := v.v.(type) {
		case map[string]any:
			v = Value{in[step]}
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(in) {
				return Value{}
			}
			v = Value{in[i]}
		default:
			return Value{}
		}
	}
	return v
}

// First is the first of these fields that exists.
func (v Value) First(names ...string) Value {
	for _, name := range names {
		if found := v.At(name); found.Exists() {
			return found
		}
	}
	return Value{}
}

// Text is a text, or a number or a flag as it is written; of anything else it is empty.
func (v Value) Text() string {
	switch x := v.v.(type) {
	case string:
		return x
	case json.Number:
		return x.String()
	case bool:
		return strconv.FormatBool(x)
	}
	return ""
}

// Written is the value as text: a text itself, anything else as JSON.
func (v Value) Written() string {
	switch v.v.(type) {
	case nil:
		return ""
	case string, json.Number, bool:
		return v.Text()
	}
	raw, err := payload.Encode(v.v)
	if err != nil {
		return ""
	}
	return string(raw)
}

// Bool says that it is true, or the word.
func (v Value) Bool() bool {
	yes, ok := v.v.(bool)
	return ok && yes || strings.EqualFold(v.Text(), "true")
}

// Int is a whole number, or the other one.
func (v Value) Int(otherwise int) int {
	n, err := strconv.ParseFloat(strings.TrimSpace(v.Text()), 64)
	if err != nil || n != n || n > 1<<31 || n < -(1<<31) {
		return otherwise
	}
	return int(n)
}

// Number is the value as a number, and whether it is one.
func (v Value) Number() (json.Number, bool) {
	n, ok := v.v.(json.Number)
	return n, ok
}

// List are the elements of a list; an object or anything else has none.
func (v Value) List() []Value {
	list, ok := v.v.([]any)
	if !ok {
		return nil
	}
	out := make([]Value, len(list))
	for i := range list {
		out[i] = Value{list[i]}
	}
	return out
}

// Names are the names of an object, sorted.
func (v Value) Names() []string {
	object, ok := v.v.(map[string]any)
	if !ok {
		return nil
	}
	return slices.Sorted(maps.Keys(object))
}

// IsObject says that it is an object.
func (v Value) IsObject() bool {
	_, ok := v.v.(map[string]any)
	return ok
}

// IsList says that it is a list.
func (v Value) IsList() bool {
	_, ok := v.v.([]any)
	return ok
}

// IsText says that it is a text.
func (v Value) IsText() bool {
	_, ok := v.v.(string)
	return ok
}

// Texts are the texts of a list, or the one text that it is.
func (v Value) Texts() []string {
	if v.IsText() {
		return []string{v.Text()}
	}
	var out []string
	for _, one := range v.List() {
		if s := one.Text(); s != "" {
			out = append(out, s)
		}
	}
	return out
}
