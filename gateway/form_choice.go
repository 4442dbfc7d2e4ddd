package gateway

import (
	"cmp"
	"maps"

	"tandem/human"
)

// The ways in which schemas write choices. Forms of the protocol know enum, and from manyVersion on constants with titles: oneOf for one of
// them, anyOf within items for several. enumNames is the earlier way to name them, and stays where an author has written it.
const (
	keyEnum  = "enum"
	keyNames = "enumNames"
	keyOneOf = "oneOf"
	keyAnyOf = "anyOf"
)

// choice is one of several texts, with what they are called for people.
func choice(options []human.Option) map[string]any {
	constants, labelled := make([]any, len(options)), false
	for i, o := range options {
		constants[i] = titled(o.Value, o.Label)
		labelled = labelled || o.Label != ""
	}
	if labelled {
		return map[string]any{"type": "string", keyOneOf: constants}
	}
	return map[string]any{"type": "string", keyEnum: values(options)}
}

// choices are several of several texts.
func choices(options []human.Option) map[string]any {
	return map[string]any{"type": "array", "minItems": 1, "items": itemsOf(choice(options))}
}

// itemsOf is a choice of one thing as what a choice of several is made of.
func itemsOf(one map[string]any) map[string]any {
	if list, ok := one[keyOneOf]; ok {
		return map[string]any{keyAnyOf: list}
	}
	if names, ok := one[keyNames].([]any); ok { // several things have no earlier way
		list, _ := one[keyEnum].([]any)
		constants := make([]any, len(list))
		for i, value := range list {
			text, _ := value.(string)
			name, _ := names[i].(string)
			constants[i] = titled(text, name)
		}
		return map[string]any{keyAnyOf: constants}
	}
	return map[string]any{"type": "string", keyEnum: one[keyEnum]}
}

func titled(value, title string) map[string]any {
	return map[string]any{"const": value, "title": cmp.Or(title, value)}
}

// chosenFrom is what a property of a schema lets people choose from, as a choice of texts: by enum, with names or without, or by constants that
// may have titles. Nil: it is not a choice of texts.
func chosenFrom(p map[string]any) map[string]any {
	if t := p["type"]; t != nil && simpleType(t) != "string" {
		return nil
	}
	if list, ok := p[keyEnum].([]any); ok {
		if len(list) == 0 || !texts(list) {
			return nil
		}
		one := map[string]any{"type": "string", keyEnum: list}
		if names, ok := p[keyNames].([]any); ok && len(names) == len(list) && texts(names) {
			one[keyNames] = names
		}
		return one
	}
	list, ok := p[keyOneOf].([]any)
	if !ok {
		list, ok = p[keyAnyOf].([]any)
	}
	if !ok || len(list) == 0 {
		return nil
	}
	options := make([]human.Option, len(list))
	for i, one := range list {
		constant, _ := one.(map[string]any)
		value, text := constant["const"].(string)
		if !text {
			return nil
		}
		title, _ := constant["title"].(string)
		options[i] = human.Option{Value: value, Label: title}
	}
	return choice(options)
}

// someFrom is the same of a property that is a list.
func someFrom(p map[string]any) map[string]any {
	items, ok := p["items"].(map[string]any)
	if !ok || p["type"] != "array" {
		return nil
	}
	one := chosenFrom(items)
	if one == nil {
		return nil
	}
	many := map[string]any{"type": "array", "items": itemsOf(one)}
	for _, keep := range []string{"minItems", "maxItems"} {
		if v, ok := p[keep].(float64); ok {
			many[keep] = v
		}
	}
	return many
}

// spoken is a field's schema in the words of a version of the protocol.
func spoken(schema map[string]any, version string) map[string]any {
	list, ok := schema[keyOneOf].([]any)
	if !ok || version >= manyVersion {
		return schema
	}
	earlier := maps.Clone(schema)
	delete(earlier, keyOneOf)
	all, names := make([]any, len(list)), make([]any, len(list))
	for i, one := range list {
		constant, _ := one.(map[string]any)
		all[i], names[i] = constant["const"], constant["title"]
	}
	earlier[keyEnum], earlier[keyNames] = all, names
	return earlier
}
