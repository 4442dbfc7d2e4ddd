package gateway

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/human/form"
	"tandem/human/form/formtest"
	"tandem/payload"
)

// What a client fills in by the form of the protocol is the same answer as everywhere else, and the form admits whatever is right.
func TestDrawing_Conforms(t *testing.T) {
	t.Parallel()
	formtest.Run(t, medium(true), func(t *testing.T, c formtest.Case) formtest.Filled {
		d := drawQuestion(asRequest(t, &c), c.Question.Params, newest)
		if !d.flat {
			return formtest.Filled{}
		}
		schema := d.flatSchema()
		content := map[string]any{}
		for _, n := range d.entries {
			e := &d.Entries[n]
			property := gjson.GetBytes(schema, "properties."+gjson.Escape(d.key(n)))
			if !property.Exists() {
				t.Fatalf("%s is not drawn: %s", e.Path(), schema)
			}
			if value := property.Get("default"); value.Exists() {
				content[d.key(n)] = value.Value()
			}
			if filled, ok := c.Fill[e.Path()]; ok {
				content[d.key(n)] = enter(t, e, property, filled)
			}
		}
		checker, err := payload.CompileSchema(schema)
		if err != nil {
			t.Fatal(err)
		}
		var decoded any = content
		if problems := checker.Problems("", decoded); len(problems) > 0 && c.Answer != "" {
			t.Errorf("a client would not let %v pass: %v", content, problems)
		}
		answer, wrong := d.answer(content)
		_, err = c.Question.Read(answer, true)
		problems, _ := err.(form.Problems)
		return formtest.Filled{Drawn: true, Answer: answer, Wrong: append(wrong, problems...)}
	})
}

func asRequest(t *testing.T, c *formtest.Case) *api.UserInputRequest {
	t.Helper()
	request := gjson.ParseBytes(c.Request(t))
	part := func(name string) json.RawMessage {
		if !request.Get(name).Exists() {
			return nil
		}
		return json.RawMessage(request.Get(name).Raw)
	}
	return &api.UserInputRequest{
		InteractionID: "q", Purpose: c.Question.Purpose, InteractionType: c.Question.Type, AllowMultiple: c.Question.Multiple,
		Options: part("options"), InputFields: part("input_fields"), Review: part("review"), Schema: part("schema"),
	}
}

// enter is what a client sends of a property that somebody has filled in: of the type that it has, and only what is offered.
func enter(t *testing.T, e *form.Entry, property gjson.Result, filled []string) any {
	t.Helper()
	switch property.Get("type").Str {
	case "boolean":
		n := slices.IndexFunc(e.Choices, func(c form.Choice) bool { return c.Value == filled[0] })
		return string(e.Choices[n].Raw) == "true"
	case "number", "integer":
		var value any
		if json.Unmarshal([]byte(filled[0]), &value) != nil {
			return filled[0]
		}
		return value
	case "array":
		list := make([]any, len(filled))
		for n, one := range filled {
			list[n] = one
		}
		return list
	}
	return filled[0]
}

// An earlier version of the protocol cannot choose several things; all else it does as well.
func TestDrawing_Earlier(t *testing.T) {
	t.Parallel()
	for _, c := range formtest.Cases() {
		d := drawQuestion(asRequest(t, &c), c.Question.Params, "2025-06-18")
		several := slices.ContainsFunc(d.Entries, func(e form.Entry) bool { return e.Kind == form.Some && e.Required })
		if left := c.LeftBy(medium(false)); d.flat == (left || several) {
			t.Errorf("%s: flat is %v", c.Name, d.flat)
		}
	}
}

// The words of a question show values as people read them.
func TestQuestion_Readable(t *testing.T) {
	t.Parallel()
	q := question{Title: "T", Arguments: formtest.Value(), Content: formtest.Value(), Changes: formtest.Value()}
	formtest.Readable(t, q.text())
}
