package lists

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"tandem/builtin/values"
	"tandem/node"
)

// SortKey is one criterion by which lists are ordered. An empty path is the item itself.
type SortKey struct {
	call       *node.Call
	name       string
	path       values.Path
	descending bool
	nullsFirst bool
}

// Sortable is what an item is ordered by.
type Sortable struct {
	Item  json.RawMessage
	Index int
	keys  []any
}

// Sorted orders items by several criteria. Equal items keep their order, in descending order too. Items without a value
// come last, or first where a criterion says so; between types the order is booleans, numbers, texts, then lists and
// objects by their compact JSON.
func Sorted(items []json.RawMessage, keys []SortKey, caseSensitive bool) []Sortable {
	list := make([]Sortable, len(items))
	for i, item := range items {
		list[i] = Sortable{Item: item, Index: i, keys: make([]any, len(keys))}
		for j, key := range keys {
			value, ok := item, true
			if len(key.path) > 0 {
				value, ok = key.path.At(item)
				look(key.call, "configurations", key.name, key.path, item, ok)
			}
			if ok {
				list[i].keys[j] = sortValue(values.Decode(value), caseSensitive)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Sortable) int {
		for j, key := range keys {
			x, y := a.keys[j], b.keys[j]
			switch {
			case x == nil && y == nil:
				continue
			case x == nil || y == nil:
				if (x == nil) == key.nullsFirst {
					return -1
				}
				return 1
			}
			if c := compareAny(x, y); c != 0 {
				if key.descending {
					return -c
				}
				return c
			}
		}
		return 0
	})
	return list
}

// compactJSON is a list or an object as it is ordered.
type compactJSON string

func sortValue(v any, caseSensitive bool) any {
	switch x := v.(type) {
	case string:
		if !caseSensitive {
			return strings.ToLower(x)
		}
	case json.Number:
		if n, ok := values.NumberOf(x); ok {
			return n
		}
	case []any, map[string]any:
		return compactJSON(values.Canonical(v))
	}
	return v
}

func compareAny(x, y any) int {
	if c := sortRank(x) - sortRank(y); c != 0 {
		return c
	}
	switch x := x.(type) {
	case bool:
		return values.RankBool(x) - values.RankBool(y.(bool))
	case values.Number:
		return x.Compare(y.(values.Number))
	case string:
		return cmp.Compare(x, y.(string))
	case compactJSON:
		return cmp.Compare(x, y.(compactJSON))
	}
	return 0
}

func sortRank(v any) int {
	switch v.(type) {
	case bool:
		return 0
	case values.Number:
		return 1
	case string:
		return 2
	}
	return 3
}

// NewSortKey makes a key from a path into an item; "." is the item itself.
func NewSortKey(call *node.Call, name, order, nulls string) (SortKey, error) {
	key := SortKey{call: call, name: name, descending: order == "desc", nullsFirst: nulls == "first"}
	if name == "." {
		return key, nil
	}
	var err error
	key.path, err = values.ParsePath(name)
	return key, err
}

// Reader reads something of an item.
type Reader func(item json.RawMessage, index int, fields []string) (any, error)

var PlainPath = regexp.MustCompile(`^[\p{L}_$][\p{L}\d_$-]*(\.[\p{L}\d_$-]+|\[\d+\]|\["[^"]*"\])*$`)

// NewReader makes a reader of a path into the item, where a missing step is null, or of an expression.
func NewReader(call *node.Call, source string) (Reader, error) {
	if !PlainPath.MatchString(source) {
		return func(item json.RawMessage, index int, fields []string) (any, error) {
			return call.Eval(source, ItemNames(item, index, fields))
		}, nil
	}
	p, err := values.ParsePath(source)
	if err != nil {
		return nil, err
	}
	return func(item json.RawMessage, index int, _ []string) (any, error) {
		v, ok := p.At(item)
		switch {
		case ok:
		case p[0] == "item" && len(p) == 1:
			v, ok = item, true
		case p[0] == "item":
			v, ok = p[1:].Walk(item)
		case source == "index":
			return index, nil
		}
		look(call, "configurations", source, p, item, ok)
		if !ok {
			return nil, nil
		}
		return values.Decode(v), nil
	}, nil
}

// ItemNames is what an expression about one item can read besides what it always can: the item, its position, and its
// fields by name.
func ItemNames(item json.RawMessage, index int, fields []string) map[string]any {
	names := make(map[string]any, len(fields)+2)
	for _, name := range fields {
		names[name] = nil
	}
	v := values.Decode(item)
	if o, ok := v.(map[string]any); ok {
		for key, value := range o {
			names[key] = value
		}
	}
	names["item"] = v
	if _, own := names["index"]; !own {
		names["index"] = index
	}
	return names
}

// AllFields are the names of the fields that any item has, sorted.
func AllFields(items []json.RawMessage) []string {
	seen := map[string]bool{}
	for _, item := range items {
		if values.IsObject(item) {
			for _, m := range values.Members(item) {
				seen[m.Key] = true
			}
		}
	}
	names := make([]string, 0, len(seen))
	for name := range seen {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Inputs are the input of kinds that work on a list.
func Inputs() []node.Value {
	return []node.Value{node.Meaning("*", "A list: at items_path, under a usual name such as data or items, or the only one there is.", "列表：位于 items_path、常用名称（如 data、items）之下，或唯一的列表。")}
}
