package gateway

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"tandem/api"
	"tandem/human"
)

// The groups and names of answers, as POST /interactions/{id}/respond takes them.
const (
	groupFields   = "field_values"
	groupScores   = "scores"
	groupEvidence = "evidence"
	groupContent  = "content"
	nameAction    = "action"
	nameChosen    = "selected_values"
	nameNotes     = "notes"
)

// manyVersion is the first version of the protocol whose forms let somebody choose several things.
const manyVersion = "2025-11-25"

// form is what an answer to a question consists of: fields, each a value of a simple type, and where it stands in the answer.
type form struct {
	purpose string
	fields  []field
	// whole is the schema of the answer where fields cannot say it.
	whole json.RawMessage
}

// field is one value of an answer.
type field struct {
	group, name string
	// schema is what forms of the protocol may say: type, title, description, format, bounds, enum.
	schema   map[string]any
	required bool
	// list says that the answer has a list where the form has one value; extra that the form leaves it out.
	list, extra bool
}

// key is the name of the field in a flat form.
func (f *field) key() string {
	if f.group == groupEvidence { // a criterion has a score by the same name
		return f.group + ": " + f.name
	}
	return f.name
}

// formOf makes the form of a question. Known are values that are there already.
func formOf(q *api.UserInputRequest, known map[string]any) *form {
	f := &form{purpose: q.Purpose}
	one := func(name, kind, title string) {
		f.fields = []field{{name: name, schema: map[string]any{"type": kind, "title": title}, required: true}}
	}
	r, err := requestOf(q)
	switch {
	case err != nil: // of a newer kind than this program
	case q.Purpose == human.PurposeConfirm:
		one("confirm", "boolean", "Go on?")
	case q.Purpose == human.PurposeToolApproval:
		one("approved", "boolean", "Allow it?")
	case q.Purpose == human.PurposeDrift, q.Purpose == human.PurposeActivation:
		one("accept", "boolean", "Accept it?")
	case q.Purpose == human.PurposeBudget:
		one("raise_by", "number", "Raise it by")
	case q.Purpose == human.PurposeOutcomeUnknown:
		one("outcome", "string", "Was it done?")
		f.fields[0].schema["enum"] = []any{"done", "not_done", "stop"}
		f.fields = append(f.fields, field{name: "result", schema: map[string]any{"description": "What it has made, if it was done."}, extra: true})
	case q.Purpose == human.PurposeParam:
		if f.fields = schemaFields(groupContent, q.Schema, known); f.fields == nil {
			f.whole = raw(map[string]any{"type": "object", "properties": map[string]any{groupContent: orObject(q.Schema), "description": map[string]any{"type": "string"}}})
		}
	default:
		f.node(q, &r)
	}
	if f.fields == nil && f.whole == nil {
		f.whole = json.RawMessage(`{"type":"object"}`)
	}
	return f
}

// node makes the fields of a question that a node asks.
func (f *form) node(q *api.UserInputRequest, r *human.Request) {
	switch r.Type {
	case human.Approval, "":
		options := r.Options
		if len(options) == 0 {
			options = []human.Option{{Value: "approve"}, {Value: "reject"}}
		}
		f.fields = []field{{name: nameAction, schema: choice(options), required: true}}
	case human.Selection:
		one := field{name: nameChosen, schema: choice(r.Options), required: true, list: !r.AllowMultiple}
		if r.AllowMultiple {
			one.schema = choices(r.Options)
		}
		f.fields = []field{one}
	case human.Review:
		if r.Review == nil {
			return
		}
		for _, name := range r.Review.Criteria {
			f.fields = append(f.fields, field{group: groupScores, name: name, schema: score(r.Review), required: true})
			if r.Review.Evidence {
				f.fields = append(f.fields, field{group: groupEvidence, name: name, schema: map[string]any{"type": "string", "title": name + ": what it rests on"}, required: true})
			}
		}
	case human.Input:
		if len(r.Fields) == 0 {
			if f.fields = schemaFields(groupFields, q.Schema, nil); f.fields == nil {
				f.whole = raw(map[string]any{"type": "object", "properties": map[string]any{groupFields: orObject(q.Schema), nameNotes: map[string]any{"type": "string"}}})
				return
			}
		}
		for i := range r.Fields {
			f.fields = append(f.fields, inputField(&r.Fields[i]))
		}
	}
	if len(f.fields) > 0 {
		f.fields = append(f.fields, field{name: nameNotes, schema: map[string]any{"type": "string", "title": "Note"}})
	}
}

func inputField(x *human.Field) field {
	f := field{group: groupFields, name: x.Name, required: x.Required, schema: map[string]any{"type": "string", "title": cmp.Or(x.Label, x.Name)}}
	switch x.Type {
	case "number", "boolean":
		f.schema["type"] = x.Type
	case "email", "date":
		f.schema["format"] = x.Type
	case "select":
		maps.Copy(f.schema, choice(x.Options))
		f.schema["title"] = cmp.Or(x.Label, x.Name)
	case "file":
		f.schema = map[string]any{"type": "object", "description": "A file: {base64, name, content_type?}"}
	}
	return f
}

func score(v *human.ReviewRules) map[string]any {
	switch v.Scoring {
	case "numeric_scale":
		return map[string]any{"type": "number", "minimum": v.Min, "maximum": v.Max}
	case "letter_grade":
		return map[string]any{"type": "string", "enum": []any{"A", "B", "C", "D", "F"}}
	case "custom":
		return map[string]any{"description": fmt.Sprintf("%g to %g, a letter from A to F, or true or false", v.Min, v.Max)}
	}
	return map[string]any{"type": "boolean", "description": "Does it pass?"}
}

func values(options []human.Option) []any {
	list := make([]any, len(options))
	for i, o := range options {
		list[i] = o.Value
	}
	return list
}

func orObject(schema json.RawMessage) any {
	if len(schema) == 0 {
		return map[string]any{"type": "object"}
	}
	return schema
}

// schemaFields are the properties of a schema, by name; none when it cannot be told by fields.
func schemaFields(group string, schema json.RawMessage, known map[string]any) []field {
	var s struct {
		Properties map[string]map[string]any `json:"properties"`
		Required   []string                  `json:"required"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return nil
	}
	var list []field
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		f := field{group: group, name: name, schema: simple(p), required: slices.Contains(s.Required, name)}
		for _, value := range []any{p["default"], known[name]} {
			if fits(f.schema["type"], value) {
				f.schema = maps.Clone(f.schema)
				f.schema["default"] = value
			}
		}
		if known[name] != nil {
			f.required = false
		}
		list = append(list, f)
	}
	return list
}

// simple is a property as a form of the protocol can say it, or as it is when no form can.
func simple(p map[string]any) map[string]any {
	schema := chosenFrom(p)
	if schema == nil {
		schema = someFrom(p)
	}
	if schema == nil {
		if schema = map[string]any{"type": simpleType(p["type"])}; schema["type"] == nil || p[keyEnum] != nil || madeOf(p) {
			return p
		}
		for _, keep := range []string{"minimum", "maximum", "minLength", "maxLength"} {
			if v, ok := p[keep]; ok && v != nil {
				schema[keep] = v
			}
		}
		switch p["format"] {
		case "email", "uri", "date", "date-time":
			schema["format"] = p["format"]
		}
	}
	for _, keep := range []string{"title", "description"} {
		if v, ok := p[keep].(string); ok {
			schema[keep] = v
		}
	}
	return schema
}

// fits says that a value is of a type that forms have.
func fits(kind, value any) bool {
	switch v := value.(type) {
	case string:
		return kind == "string"
	case bool:
		return kind == "boolean"
	case float64:
		return kind == "number" || kind == "integer" && v == math.Trunc(v)
	case []any:
		return kind == "array" && texts(v)
	}
	return false
}

// madeOf says that a property is made of others, which no form shows.
func madeOf(p map[string]any) bool {
	for _, key := range []string{"$ref", "anyOf", "oneOf", "allOf", "properties", "items"} {
		if _, ok := p[key]; ok {
			return true
		}
	}
	return false
}

// simpleType is the one simple type of a property, null aside; nil when it has none.
func simpleType(t any) any {
	if list, ok := t.([]any); ok {
		list = slices.DeleteFunc(slices.Clone(list), func(v any) bool { return v == "null" })
		if len(list) != 1 {
			return nil
		}
		t = list[0]
	}
	switch t {
	case "string", "number", "integer", "boolean":
		return t
	}
	return nil
}

func texts(list any) bool {
	values, ok := list.([]any)
	for _, v := range values {
		if _, text := v.(string); !text {
			return false
		}
	}
	return ok
}

// flat says that a form of the protocol can show the question. What is not required and cannot be shown is left out.
func (f *form) flat(version string) bool {
	if f.whole != nil {
		return false
	}
	seen, some := map[string]bool{}, false
	for i := range f.fields {
		x := &f.fields[i]
		if x.extra {
			continue
		}
		if !shows(x.schema, version) {
			if x.required {
				return false
			}
			x.extra = true
			continue
		}
		if seen[x.key()] {
			return false
		}
		seen[x.key()], some = true, true
	}
	return some
}

// shows says that a form of a version of the protocol can have a field.
func shows(schema map[string]any, version string) bool {
	switch schema["type"] {
	case "array":
		return version >= manyVersion && someFrom(schema) != nil
	case "string", "number", "integer", "boolean":
		return !madeOf(schema) && schema[keyEnum] == nil || chosenFrom(schema) != nil
	}
	return false
}

// flatSchema is the form as a version of the protocol has it.
func (f *form) flatSchema(version string) json.RawMessage {
	properties, required := map[string]any{}, []string{}
	for i := range f.fields {
		if x := &f.fields[i]; !x.extra {
			properties[x.key()] = spoken(x.schema, version)
			if x.required {
				required = append(required, x.key())
			}
		}
	}
	return raw(map[string]any{"type": "object", "properties": properties, "required": required})
}

// answerSchema is the schema of the whole answer.
func (f *form) answerSchema() json.RawMessage {
	if f.whole != nil {
		return f.whole
	}
	properties, required := map[string]any{}, []string{}
	groups := map[string]map[string]any{}
	needs := map[string][]string{}
	for i := range f.fields {
		x := &f.fields[i]
		schema := any(x.schema)
		if x.list {
			schema = map[string]any{"type": "array", "minItems": 1, "maxItems": 1, "items": x.schema}
		}
		if x.group == "" {
			properties[x.name] = schema
			if x.required {
				required = append(required, x.name)
			}
			continue
		}
		if groups[x.group] == nil {
			groups[x.group] = map[string]any{}
		}
		groups[x.group][x.name] = schema
		if x.required {
			needs[x.group] = append(needs[x.group], x.name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		group := map[string]any{"type": "object", "properties": groups[name]}
		if len(needs[name]) > 0 {
			group["required"] = needs[name]
			required = append(required, name)
		}
		properties[name] = group
	}
	return raw(map[string]any{"type": "object", "properties": properties, "required": required})
}

// answer makes the answer of what a form was filled in with. Whether it is right is for the API to say.
func (f *form) answer(content map[string]any) json.RawMessage {
	answer := map[string]any{}
	for i := range f.fields {
		x := &f.fields[i]
		value, given := content[x.key()]
		if !given || x.extra {
			continue
		}
		if x.list {
			value = []any{value}
		}
		if x.group == "" {
			answer[x.name] = value
			continue
		}
		group, _ := answer[x.group].(map[string]any)
		if group == nil {
			group = map[string]any{}
			answer[x.group] = group
		}
		group[x.name] = value
	}
	return raw(answer)
}

// refusal is the answer when somebody does not fill in the form: of what runs only with a yes it is a no. Who only closes the form has refused nothing but
// a confirmation, which is one of what was just asked for. Nil: none.
func (f *form) refusal(action string) json.RawMessage {
	switch {
	case f.purpose == human.PurposeConfirm:
		return json.RawMessage(`{"confirm":false}`)
	case f.purpose == human.PurposeToolApproval && action == "decline":
		return json.RawMessage(`{"approved":false}`)
	}
	return nil
}
