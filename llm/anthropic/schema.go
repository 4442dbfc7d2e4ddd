package anthropic

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"tandem/payload"
)

// inputSchema is the schema of a tool's parameters as the service takes it: everything may stand below the root, but the
// root must say that it is an object and may neither refer elsewhere nor be one of several. What was cut is named; who
// calls the tool checks it in any case.
func inputSchema(raw json.RawMessage) (schema json.RawMessage, cut []string, err error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return json.RawMessage(`{"type":"object","properties":{}}`), nil, nil
	}
	var root map[string]json.RawMessage
	if err := json.Unmarshal(raw, &root); err != nil {
		return nil, nil, err
	}
	if root == nil {
		return nil, nil, errors.New("it is null")
	}
	changed := false
	for range 8 { // a chain of references; a longer one goes nowhere
		target, ok := local(root)
		if !ok {
			break
		}
		delete(root, "$ref")
		for name, value := range target {
			if _, has := root[name]; !has {
				root[name] = value
			}
		}
		changed = true
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf", "$ref"} {
		if _, has := root[keyword]; has {
			delete(root, keyword)
			cut = append(cut, keyword)
			changed = true
		}
	}
	if kind, has := root["type"]; !has || string(kind) != `"object"` {
		if has && !strings.Contains(string(kind), `"object"`) {
			return nil, nil, errors.New("its type is not object")
		}
		root["type"] = json.RawMessage(`"object"`)
		changed = true
	}
	if !changed {
		return raw, nil, nil
	}
	schema, err = json.Marshal(root)
	return schema, cut, err
}

// local is what the root's reference points to, if it is a definition of its own.
func local(root map[string]json.RawMessage) (map[string]json.RawMessage, bool) {
	var ref string
	if json.Unmarshal(root["$ref"], &ref) != nil {
		return nil, false
	}
	place, name, ok := definition(ref)
	if !ok {
		return nil, false
	}
	var all map[string]map[string]json.RawMessage
	if json.Unmarshal(root[place], &all) != nil {
		return nil, false
	}
	target, ok := all[name]
	return target, ok
}

// definition reads a reference to a definition of the schema's own.
func definition(ref string) (place, name string, ok bool) {
	parts := strings.Split(ref, "/")
	if len(parts) != 3 || parts[0] != "#" || parts[1] != "$defs" && parts[1] != "definitions" {
		return "", "", false
	}
	return parts[1], strings.NewReplacer("~1", "/", "~0", "~").Replace(parts[2]), true
}

// outputSchema is a schema to which the service can hold an answer. It closes objects and drops limits that the service
// does not know; the caller checks the answer against the whole schema. It is false if that would forbid what the schema
// allows, or if the schema is recursive: then the model reads the schema instead.
func outputSchema(raw json.RawMessage) (map[string]any, bool) {
	var root map[string]any
	if payload.Read(raw, &root) != nil || root["type"] != "object" || recursive(root) {
		return nil, false
	}
	closed, ok := closing(root)
	return closed, ok
}

// stringFormats are those that the service knows.
func stringFormats() []string {
	return []string{"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}
}

func closing(from map[string]any) (map[string]any, bool) {
	to := map[string]any{}
	for _, name := range []string{"type", "description", "title", "enum", "const", "required"} {
		if value, has := from[name]; has {
			to[name] = value
		}
	}
	for _, name := range []string{"$defs", "definitions"} {
		if !each(from, to, name) {
			return nil, false
		}
	}
	if ref, has := from["$ref"]; has {
		text, isText := ref.(string)
		if _, _, ok := definition(text); !isText || !ok {
			return nil, false
		}
		return map[string]any{"$ref": ref}, true
	}
	if !list(from, to, "anyOf", "anyOf") || !list(from, to, "oneOf", "anyOf") || !list(from, to, "allOf", "allOf") {
		return nil, false
	}
	if format, ok := from["format"].(string); ok && slices.Contains(stringFormats(), format) {
		to["format"] = format
	}
	if typed(from, "array") && !closeItems(from, to) {
		return nil, false
	}
	if (typed(from, "object") || from["properties"] != nil) && !closeProperties(from, to) {
		return nil, false
	}
	for _, name := range []string{"type", "enum", "const", "anyOf", "allOf", "properties"} {
		if _, has := to[name]; has {
			return to, true
		}
	}
	return nil, false // anything at all: the service has no way to say so
}

// closeItems closes the schema of a list's elements, and keeps the bounds that the service knows.
func closeItems(from, to map[string]any) bool {
	items, ok := from["items"].(map[string]any)
	if !ok {
		return false
	}
	if to["items"], ok = closing(items); !ok {
		return false
	}
	if n, ok := from["minItems"].(json.Number); ok && (n == "0" || n == "1") {
		to["minItems"] = n
	}
	return true
}

// closeProperties closes the schemas of an object's fields, and the object to other fields.
func closeProperties(from, to map[string]any) bool {
	properties, _ := from["properties"].(map[string]any)
	more, has := from["additionalProperties"]
	open := has && more != false || len(properties) == 0 && !has || from["patternProperties"] != nil
	if open || !each(from, to, "properties") {
		return false
	}
	to["additionalProperties"] = false
	return true
}

// each closes the schemas of a keyword that has them by name, list those of one that has several.
func each(from, to map[string]any, name string) bool {
	value, has := from[name]
	if !has {
		return true
	}
	all, ok := value.(map[string]any)
	if !ok {
		return false
	}
	closed := make(map[string]any, len(all))
	to[name] = closed
	for key, one := range all {
		schema, ok := one.(map[string]any)
		if !ok {
			return false
		}
		if closed[key], ok = closing(schema); !ok {
			return false
		}
	}
	return true
}

func list(from, to map[string]any, name, becomes string) bool {
	value, has := from[name]
	if !has {
		return true
	}
	all, ok := value.([]any)
	if _, taken := to[becomes]; taken || !ok {
		return false
	}
	closed := make([]any, len(all))
	for i, one := range all {
		schema, ok := one.(map[string]any)
		if !ok {
			return false
		}
		if closed[i], ok = closing(schema); !ok {
			return false
		}
	}
	to[becomes] = closed
	return true
}

func typed(schema map[string]any, want string) bool {
	switch kind := schema["type"].(type) {
	case string:
		return kind == want
	case []any:
		return slices.Contains(kind, any(want))
	}
	return false
}

// recursive says that a definition leads back to itself, or to the root.
func recursive(root map[string]any) bool {
	const begun, ended = 1, 2
	state := map[string]int{}
	var walk func(v any) bool
	walk = func(v any) bool {
		switch v := v.(type) {
		case []any:
			return slices.ContainsFunc(v, walk)
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				place, name, ok := definition(ref)
				if !ok {
					return true
				}
				all, _ := root[place].(map[string]any)
				switch state[ref] {
				case begun:
					return true
				case 0:
					state[ref] = begun
					if walk(all[name]) {
						return true
					}
					state[ref] = ended
				}
			}
			for _, name := range slices.Sorted(maps.Keys(v)) {
				if name != "$defs" && name != "definitions" && walk(v[name]) {
					return true
				}
			}
		}
		return false
	}
	return walk(root)
}
