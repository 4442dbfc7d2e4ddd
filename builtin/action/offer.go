package action

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/builtin/values"
	"tandem/llm"
	"tandem/node"
)

// Offered describes operations as tools for a model: the fields that each reads, and those that it needs. Said is what each does, by its
// name; an operation of which nothing is said is not offered, nor are the fields that are left out.
func Offered[C interface{ Operation() string }, O any](operations []Operation[C, O], said map[string]string, without ...string) []llm.Tool {
	s := newSet(operations)
	fields := gjson.GetBytes(node.ConfigurationSchema[C]().JSON(), "properties")
	hidden := append([]string{actionType, "data"}, without...)
	var list []llm.Tool
	for _, o := range operations {
		if said[o.Name] == "" {
			continue
		}
		var properties []values.Member
		required := []string{}
		for _, name := range s.fields {
			readers := s.readBy[name]
			if slices.Contains(hidden, name) || readers != nil && !slices.Contains(readers, o.Name) {
				continue
			}
			properties = append(properties, values.Member{Key: name, Value: argument(fields.Get(escaped(name)))})
		}
		for _, need := range o.Needs {
			if !strings.Contains(need, "|") {
				required = append(required, need)
			}
		}
		list = append(list, llm.Tool{Name: o.Name, Description: said[o.Name], Parameters: values.Object([]values.Member{
			{Key: "type", Value: json.RawMessage(`"object"`)}, {Key: "properties", Value: values.Object(properties)}, {Key: "required", Value: values.Encode(required)},
		})})
	}
	return list
}

// argument is the schema of a field as a model reads it.
func argument(field gjson.Result) json.RawMessage {
	var out []values.Member
	types := []string{}
	for _, takes := range field.Get("x-takes").Array() {
		if kind, ok := map[string]string{"text": "string", "list": "array", "object": "object", "integer": "integer", "number": "number",
			"flag": "boolean"}[takes.Str]; ok {
			types = append(types, kind)
		}
	}
	if len(types) == 1 {
		out = append(out, values.Member{Key: "type", Value: values.Encode(types[0])})
	}
	for _, name := range []string{"type", "enum", "description"} {
		if v := field.Get(name); v.Exists() && !(name == "type" && len(out) > 0) {
			out = append(out, values.Member{Key: name, Value: json.RawMessage(v.Raw)})
		}
	}
	return values.Object(out)
}

// Own are the names of the fields of a configuration, without those of all kinds of node.
func Own[C any]() []string { return fieldsOf(reflect.TypeFor[C](), map[string][]string{}) }
