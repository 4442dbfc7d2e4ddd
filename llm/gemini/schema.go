package gemini

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"tandem/payload"
)

// maxSchemas bounds what a schema may grow to when its references are replaced: a few definitions that refer to each
// other twice are enough for millions.
const maxSchemas = 5000

// simplify turns a JSON Schema into one with only what the service knows. Limits that it does not know are dropped; the
// caller checks answers and arguments against the whole schema. References are replaced by what they refer to; where that
// would have no end, only the kind of value is left and a warning says so.
func simplify(raw json.RawMessage) (map[string]any, []string, error) {
	var root map[string]any
	if err := payload.Read(raw, &root); err != nil {
		return nil, nil, err
	}
	if root == nil {
		return nil, nil, errors.New("it is null")
	}
	s := &simplifier{root: root}
	simple := s.schema(root, nil)
	if kind, has := simple["type"]; has && kind != "object" {
		if kinds, ok := kind.([]any); !ok || !slices.Contains(kinds, any("object")) {
			return nil, nil, errors.New("its type is not object")
		}
	}
	return simple, s.warnings, nil
}

type simplifier struct {
	root     map[string]any
	made     int
	warnings []string
}

func (s *simplifier) warn(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(s.warnings, text) {
		s.warnings = append(s.warnings, text)
	}
}

// schema simplifies one schema; within are the references that led to it.
func (s *simplifier) schema(from any, within []string) map[string]any {
	fields, ok := from.(map[string]any)
	if !ok { // true, false: the service has no way to say so
		return map[string]any{}
	}
	if s.made++; s.made > maxSchemas {
		s.warn("the schema has too many parts; some were left out")
		return outline(fields)
	}
	if ref, ok := fields["$ref"].(string); ok {
		target, found := s.find(ref)
		beside := maps.Clone(fields)
		delete(beside, "$ref")
		switch {
		case !found:
			s.warn("the reference %q leads nowhere", ref)
		case slices.Contains(within, ref):
			s.warn("the recursive reference %q was cut; the service does not take recursion", ref)
			return outline(merged(target, beside))
		default:
			return s.schema(merged(target, beside), append(slices.Clone(within), ref))
		}
	}
	to := map[string]any{}
	for _, name := range []string{"type", "title", "description", "minItems", "maxItems", "minimum", "maximum",
		"required", "propertyOrdering"} {
		if value, has := fields[name]; has {
			to[name] = value
		}
	}
	s.values(fields, to)
	if format, ok := fields["format"].(string); ok && slices.Contains(formats(), format) {
		to["format"] = format
	}
	if properties, ok := fields["properties"].(map[string]any); ok {
		inner := make(map[string]any, len(properties))
		for _, name := range slices.Sorted(maps.Keys(properties)) { // in order, for the warnings
			inner[name] = s.schema(properties[name], within)
		}
		to["properties"] = inner
	}
	switch more := fields["additionalProperties"].(type) {
	case bool:
		to["additionalProperties"] = more
	case map[string]any:
		to["additionalProperties"] = s.schema(more, within)
	}
	if items, has := fields["items"]; has {
		to["items"] = s.schema(items, within)
	}
	for _, name := range []string{"anyOf", "oneOf", "prefixItems"} {
		if list, ok := fields[name].([]any); ok {
			to[name] = s.list(list, within)
		}
	}
	if list, ok := fields["allOf"].([]any); ok {
		for _, one := range list {
			to = merged(to, s.schema(one, within))
		}
	}
	return to
}

func (s *simplifier) list(from []any, within []string) []any {
	to := make([]any, len(from))
	for i, one := range from {
		to[i] = s.schema(one, within)
	}
	return to
}

// values are the values that a schema allows. The service takes texts and numbers.
func (s *simplifier) values(from, to map[string]any) {
	list, ok := from["enum"].([]any)
	if value, has := from["const"]; has && !ok {
		list, ok = []any{value}, true
	}
	if !ok {
		return
	}
	for _, v := range list {
		switch v.(type) {
		case string, json.Number:
		default:
			return
		}
	}
	to["enum"] = list
}

// formats are those that the service knows.
func formats() []string {
	return []string{"date-time", "date", "time", "float", "double", "int32", "int64"}
}

// find is what a reference within the schema points to.
func (s *simplifier) find(ref string) (map[string]any, bool) {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil, false
	}
	if plain, err := url.PathUnescape(pointer); err == nil {
		pointer = plain
	}
	var at any = s.root
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if pointer == "" {
			break
		}
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		switch v := at.(type) {
		case map[string]any:
			at = v[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(v) {
				return nil, false
			}
			at = v[i]
		default:
			return nil, false
		}
	}
	target, ok := at.(map[string]any)
	return target, ok
}

// merged is a schema that has all of both. What only one can say is the second's.
func merged(one, two map[string]any) map[string]any {
	to := make(map[string]any, len(one)+len(two))
	maps.Copy(to, one)
	for name, value := range two {
		switch name {
		case "properties":
			a, _ := to[name].(map[string]any)
			b, _ := value.(map[string]any)
			value = merged(a, b)
		case "required":
			a, _ := to[name].([]any)
			b, _ := value.([]any)
			value = slices.Concat(a, b)
		}
		to[name] = value
	}
	return to
}

// outline is what is left of a schema that is cut: the kind of value and what it is for.
func outline(fields map[string]any) map[string]any {
	to := map[string]any{}
	for _, name := range []string{"type", "title", "description"} {
		if value, has := fields[name]; has {
			to[name] = value
		}
	}
	return to
}
