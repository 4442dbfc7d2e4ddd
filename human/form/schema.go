package form

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"

	"github.com/tidwall/gjson"
)

// The words of a JSON Schema that say more of an object than its properties do, and of a value than its type does.
func objectWords() []string {
	return []string{"$ref", "oneOf", "anyOf", "allOf", "if", "patternProperties", "dependentSchemas"}
}

func valueWords() []string {
	return []string{"$ref", "oneOf", "anyOf", "allOf", "properties", "items"}
}

// FormatFile is the format of a property whose value is a file: an object with blob, name, content_type and size.
const FormatFile = "file"

// has says that a schema has one of some words.
func has(schema gjson.Result, words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return schema.Get(gjson.Escape(word)).Exists() })
}

// schema adds an entry for each property of an object, in the order in which they are written. An object that its properties do not tell is
// written as JSON. Change may change an entry before it is added.
func (f *Form) schema(schema json.RawMessage, group string, change func(*Entry)) {
	s := gjson.ParseBytes(schema)
	if !json.Valid(schema) || !s.Get("properties").IsObject() || len(s.Get("properties").Map()) == 0 || has(s, objectWords()) {
		e := Entry{Name: group, Kind: JSON, Label: f.say(wordAnswer), Limits: f.say(wordObject), Required: true}
		if s.IsObject() && json.Valid(schema) {
			e.Schema = schema
		}
		f.addEntry(e)
		return
	}
	s.Get("properties").ForEach(func(name, property gjson.Result) bool {
		e := f.property(property)
		e.Group, e.Name, e.Label = group, name.Str, cmp.Or(property.Get("title").String(), name.Str)
		e.Required = slices.ContainsFunc(s.Get("required").Array(), func(r gjson.Result) bool { return r.Str == name.Str })
		if change != nil {
			change(&e)
		}
		f.addEntry(e)
		return true
	})
}

// property is the entry of a property. What is not a plain value and no choice of such is written as JSON.
func (f *Form) property(p gjson.Result) Entry {
	e := Entry{Kind: Line, About: p.Get("description").String(), Schema: json.RawMessage(p.Raw)}
	if raw := p.Get("default"); raw.Exists() && raw.Type != gjson.Null {
		e.Default = json.RawMessage(raw.Raw)
	}
	kind := typeOf(p.Get("type"))
	if p.Get("format").Str == FormatFile {
		e.Kind, e.Default = File, nil
		f.limit(&e)
		return e
	}
	if e.Choices = constants(p); e.Choices != nil {
		e.Kind = One
		return e
	}
	if kind == "array" {
		if e.Choices = constants(p.Get("items")); e.Choices != nil {
			e.Kind, e.MinItems, e.MaxItems = Some, whole(p.Get("minItems")), whole(p.Get("maxItems"))
			f.limit(&e)
			return e
		}
	}
	if has(p, valueWords()) {
		kind = ""
	}
	switch kind {
	case "string":
		switch p.Get("format").String() {
		case "email":
			e.Kind = Email
		case "date":
			e.Kind = Date
		default:
			if e.MinLength, e.MaxLength = whole(p.Get("minLength")), whole(p.Get("maxLength")); e.MaxLength != nil && *e.MaxLength > 200 {
				e.Kind = Area
			}
		}
	case "number", "integer":
		e.Kind, e.Whole, e.Min, e.Max = Number, kind == "integer", float(p.Get("minimum")), float(p.Get("maximum"))
	case "boolean":
		e.Kind, e.Choices = YesNo, f.yesNo(wordYes, wordNo)
	default:
		e.Kind, e.anything = JSON, kind == ""
	}
	f.limit(&e)
	return e
}

// typeOf is the one type of a value, null aside; empty: it has none or several.
func typeOf(t gjson.Result) string {
	var types []string
	for _, one := range t.Array() {
		if one.Str != "null" && one.Str != "" {
			types = append(types, one.Str)
		}
	}
	if len(types) != 1 {
		return ""
	}
	return types[0]
}

// constants are the plain values that a schema lets choose from: enum, with names or without, or constants that may have titles. Nil: it is
// no choice of plain values.
func constants(p gjson.Result) []Choice {
	list, names := p.Get("enum").Array(), p.Get("enumNames").Array()
	var choices []Choice
	if p.Get("enum").IsArray() {
		for n, value := range list {
			label := value.String()
			if len(names) == len(list) && names[n].Type == gjson.String {
				label = names[n].Str
			}
			choices = append(choices, constant(value, label))
		}
	} else {
		for _, word := range []string{"oneOf", "anyOf"} {
			if !p.Get(word).IsArray() || choices != nil {
				continue
			}
			for _, one := range p.Get(word).Array() {
				if !one.Get("const").Exists() {
					return nil
				}
				choices = append(choices, constant(one.Get("const"), cmp.Or(one.Get("title").String(), one.Get("const").String())))
			}
		}
	}
	if slices.ContainsFunc(choices, func(c Choice) bool { return c.Raw == nil }) {
		return nil
	}
	return choices
}

// constant is a choice of a plain value; one without Raw is not a constant.
func constant(value gjson.Result, label string) Choice {
	c := Choice{Value: value.String(), Label: label, Outcome: Neither}
	if !value.IsObject() && !value.IsArray() {
		c.Raw = json.RawMessage(bytes.TrimSpace([]byte(value.Raw)))
	}
	return c
}

func whole(v gjson.Result) *int {
	if v.Type != gjson.Number {
		return nil
	}
	n := int(v.Int())
	return &n
}

func float(v gjson.Result) *float64 {
	if v.Type != gjson.Number {
		return nil
	}
	n := v.Num
	return &n
}
