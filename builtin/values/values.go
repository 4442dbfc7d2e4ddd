// Package values reads and makes the JSON that kinds hand on: the fields of objects in their order, paths, the list that a kind works on, comparing
// values, and a value as text.
//
// The families of kinds import it. It knows nothing of any kind.
package values

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/fault"
	"tandem/node"
)

// Data stays the JSON it came as wherever it is only handed on, so that numbers keep their digits and objects the order
// of their fields. It is decoded (numbers as json.Number) where it is compared or computed with.

// Decode reads a JSON value. What arrives in a call is JSON already, so anything else is a defect.
func Decode(raw json.RawMessage) any {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		panic(fmt.Sprintf("data of a call is no JSON: %v", err))
	}
	return v
}

// Encode writes a value made here.
func Encode(v any) json.RawMessage {
	raw, err := node.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("a kind made a value that JSON cannot hold: %v", err))
	}
	return raw
}

// Finite is encode for what an expression computed, which may be no JSON.
func Finite(v any) (json.RawMessage, error) {
	raw, err := node.Marshal(v)
	if err != nil {
		return nil, fault.New(fault.OutputInvalid, "the expression gives a value that JSON cannot hold").WithCause(err)
	}
	return raw, nil
}

// Member is one field of an object.
type Member struct {
	Key   string
	Value json.RawMessage
}

func Field(key string, v any) Member { return Member{key, Encode(v)} }

// fewMembers are found by looking through them; more have an index.
const fewMembers = 8

// Members are the fields of an object in order; of equal keys the last one counts, at the place of the first.
func Members(raw json.RawMessage) []Member {
	list := make([]Member, 0, fewMembers)
	var index map[string]int // of a longer list
	gjson.ParseBytes(raw).ForEach(func(key, value gjson.Result) bool {
		i, again := 0, false
		if index == nil {
			i = slices.IndexFunc(list, func(m Member) bool { return m.Key == key.Str })
			again = i >= 0
		} else {
			i, again = index[key.Str]
		}
		if again {
			list[i].Value = json.RawMessage(value.Raw)
			return true
		}
		list = append(list, Member{key.Str, json.RawMessage(value.Raw)})
		switch {
		case index != nil:
			index[key.Str] = len(list) - 1
		case len(list) == fewMembers:
			index = make(map[string]int, 2*fewMembers)
			for i := range list {
				index[list[i].Key] = i
			}
		}
		return true
	})
	return list
}

// Object writes fields as an object.
func Object(list []Member) json.RawMessage {
	size := 2
	for _, m := range list {
		size += len(m.Key) + len(m.Value) + 4
	}
	var b bytes.Buffer
	b.Grow(size)
	b.WriteByte('{')
	for i, m := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(Encode(m.Key))
		b.WriteByte(':')
		b.Write(m.Value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// Array writes values as a list, [] when there are none.
func Array(items []json.RawMessage) json.RawMessage {
	size := 2
	for _, item := range items {
		size += len(item) + 1
	}
	b := make([]byte, 0, size)
	b = append(b, '[')
	for i, item := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, item...)
	}
	return append(b, ']')
}

// HandOn is the input as received plus the fields named, which replace those of the same name.
func HandOn(input json.RawMessage, fields ...Member) json.RawMessage {
	return Object(Overlay(Members(input), fields...))
}

// Overlay lays fields over others: an equal key is replaced where it stands, a new one comes last.
func Overlay(list []Member, fields ...Member) []Member {
	list = slices.Clone(list)
	if len(fields) > fewMembers { // looking through the list for each of many would take for ever
		places := make(map[string]int, len(list)+len(fields))
		for i := len(list) - 1; i >= 0; i-- {
			places[list[i].Key] = i
		}
		for _, f := range fields {
			if i, ok := places[f.Key]; ok {
				list[i].Value = f.Value
				continue
			}
			places[f.Key] = len(list)
			list = append(list, f)
		}
		return list
	}
	for _, f := range fields {
		if i := slices.IndexFunc(list, func(m Member) bool { return m.Key == f.Key }); i >= 0 {
			list[i].Value = f.Value
		} else {
			list = append(list, f)
		}
	}
	return list
}

func IsObject(raw json.RawMessage) bool { return Leading(raw) == '{' }
func IsList(raw json.RawMessage) bool   { return Leading(raw) == '[' }
func IsNull(raw json.RawMessage) bool   { return len(raw) == 0 || Leading(raw) == 'n' }

func Leading(raw json.RawMessage) byte {
	if raw = bytes.TrimLeft(raw, " \t\r\n"); len(raw) == 0 {
		return 0
	}
	return raw[0]
}

// Elements are the values of a list.
func Elements(raw json.RawMessage) []json.RawMessage {
	list := []json.RawMessage{}
	gjson.ParseBytes(raw).ForEach(func(_, value gjson.Result) bool {
		list = append(list, json.RawMessage(value.Raw))
		return true
	})
	return list
}

// Path is where a value stands inside another.
type Path []string

// ParsePath reads a.b.0.c, a[0] and a["odd key"].
func ParsePath(text string) (Path, error) {
	var p Path
	rest := strings.TrimSpace(text)
	wrong := func() error {
		return fault.Newf(fault.InvalidConfig, `the path %q cannot be read; write it like a.b, a[0].b or a["odd key"]`, text)
	}
	for first := true; rest != ""; first = false {
		if rest[0] == '[' {
			inside, after, err := bracketed(rest)
			if err != nil {
				return nil, wrong()
			}
			p, rest = append(p, inside), after
			continue
		}
		if !first {
			if rest[0] != '.' {
				return nil, wrong()
			}
			rest = rest[1:]
		}
		end := strings.IndexAny(rest, ".[")
		if end < 0 {
			end = len(rest)
		}
		if end == 0 {
			return nil, wrong()
		}
		p, rest = append(p, rest[:end]), rest[end:]
	}
	if len(p) == 0 {
		return nil, wrong()
	}
	return p, nil
}

// bracketed reads [0], ["key"] or ['key'] at the beginning of a text.
func bracketed(text string) (inside, rest string, err error) {
	if len(text) > 1 && (text[1] == '"' || text[1] == '\'') {
		quote := text[1]
		for i := 2; i < len(text); i++ {
			switch {
			case text[i] == '\\':
				i++
			case text[i] == quote && i+1 < len(text) && text[i+1] == ']':
				return strings.ReplaceAll(text[2:i], `\`+string(quote), string(quote)), text[i+2:], nil
			}
		}
		return "", "", strconv.ErrSyntax
	}
	end := strings.IndexByte(text, ']')
	if end < 2 {
		return "", "", strconv.ErrSyntax
	}
	if _, err := strconv.ParseUint(text[1:end], 10, 31); err != nil {
		return "", "", err
	}
	return text[1:end], text[end+1:], nil
}

// At follows a path; false when a step is missing. A leading "data" may be written or left out.
func (p Path) At(raw json.RawMessage) (json.RawMessage, bool) {
	v, _, ok := p.found(raw)
	return v, ok
}

// found is at, and tells the path as it really is.
func (p Path) found(raw json.RawMessage) (json.RawMessage, Path, bool) {
	if v, ok := p.Walk(raw); ok {
		return v, p, true
	}
	other := append(Path{"data"}, p...)
	if p[0] == "data" && len(p) > 1 {
		other = p[1:]
	}
	v, ok := other.Walk(raw)
	return v, other, ok
}

func (p Path) Walk(raw json.RawMessage) (json.RawMessage, bool) {
	for _, step := range p {
		var found json.RawMessage
		switch {
		case IsObject(raw):
			gjson.ParseBytes(raw).ForEach(func(key, value gjson.Result) bool {
				if key.Str == step {
					found = json.RawMessage(value.Raw)
				}
				return true
			})
		case IsList(raw):
			if i, err := strconv.Atoi(step); err == nil && i >= 0 {
				if list := Elements(raw); i < len(list) {
					found = list[i]
				}
			}
		}
		if found == nil {
			return nil, false
		}
		raw = found
	}
	return raw, true
}

// List is what the list input of a kind is.
type List struct {
	Items []json.RawMessage
	// Value is what was found; single says that it is no list but one value.
	Value  json.RawMessage
	Single bool
}

// listNames are the names under which kinds hand lists on, in the order in which they are looked for. read-only
var listNames = []string{"data", "items", "filtered_data", "sorted_data", "merged_data", "transformed_data", "results", "rows"}

// ListInput finds the list that a kind works on: at a path if one is configured, else under a usual name, else the only
// list there is, else "data" or "items" whatever they are. Null is the empty list, another value a list of one.
func ListInput(input json.RawMessage, itemsPath string) (List, error) {
	list, _, err := ListPlace(input, itemsPath)
	return list, err
}

// ListPlace is listInput, and tells where in the input the list was found; nil for nowhere.
func ListPlace(input json.RawMessage, itemsPath string) (List, Path, error) {
	if itemsPath != "" {
		p, err := ParsePath(itemsPath)
		if err != nil {
			return List{}, nil, err
		}
		value, at, ok := p.found(input)
		if !ok {
			value = json.RawMessage("null")
		}
		return ListOf(value), at, nil
	}
	all := Members(input)
	byName := func(name string) (json.RawMessage, bool) {
		i := slices.IndexFunc(all, func(m Member) bool { return m.Key == name })
		if i < 0 {
			return nil, false
		}
		return all[i].Value, true
	}
	for _, name := range listNames {
		if value, ok := byName(name); ok && IsList(value) {
			return ListOf(value), Path{name}, nil
		}
	}
	var lists []Member
	var names []string
	for _, m := range all {
		names = append(names, m.Key)
		if IsList(m.Value) {
			lists = append(lists, m)
		}
	}
	if len(lists) == 1 {
		return ListOf(lists[0].Value), Path{lists[0].Key}, nil
	}
	for _, name := range []string{"data", "items"} {
		if value, ok := byName(name); ok {
			return ListOf(value), Path{name}, nil
		}
	}
	what := "the input has no field"
	if len(names) > 0 {
		what = "the input has " + strings.Join(names, ", ")
	}
	return List{}, nil, fault.Newf(fault.InvalidInput, "there is no list to work on: %s; set items_path, or hand the list on as %q", what, "data").With("keys", names)
}

func ListOf(value json.RawMessage) List {
	switch {
	case IsNull(value):
		return List{Items: []json.RawMessage{}, Value: value}
	case IsList(value):
		return List{Items: Elements(value), Value: value}
	}
	return List{Items: []json.RawMessage{value}, Value: value, Single: true}
}
