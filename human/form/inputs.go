package form

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/tidwall/gjson"

	"tandem/text"
)

// Inputs is the form of what a workflow is started with: a field for each property of a JSON Schema of an object, and nothing besides.
func Inputs(schema json.RawMessage, language string) *Form {
	f := New(inputs(schema), language)
	f.Entries = slices.DeleteFunc(f.Entries, func(e Entry) bool { return e.Group == "" && e.Name == NameNotes })
	return f
}

func inputs(schema json.RawMessage) Question {
	return Question{Purpose: PurposeNode, Type: Input, Schema: schema}
}

// ReadInputs reads what was filled into such a form. What is wrong is an error of type [Problems]. Mail addresses and days are held to what
// they are called, which a JSON Schema does not do.
func ReadInputs(schema, answer json.RawMessage) (map[string]json.RawMessage, error) {
	q := inputs(schema)
	got, err := q.Read(answer, true)
	found, wrong := errors.AsType[Problems](err)
	if err != nil && !wrong {
		return nil, err
	}
	for _, e := range Inputs(schema, text.English).Entries {
		at := "response_data." + e.Path()
		value := gjson.GetBytes(answer, gjson.Escape(e.Group)+"."+gjson.Escape(e.Name))
		if e.Kind != Email && e.Kind != Date || !value.Exists() ||
			slices.ContainsFunc(found, func(p Problem) bool { return p.Path == at }) {
			continue
		}
		field := Field{Name: e.Name, Type: string(e.Kind)}
		field.readFilled(at, json.RawMessage(value.Raw), &found)
	}
	return got.Fields, found.err()
}
