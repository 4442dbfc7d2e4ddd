package form_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"tandem/human/form"
	"tandem/human/form/formtest"
)

// An answer with a key that the question has no place for is refused with its name, whatever the question: what stands there would be lost.
func TestQuestion_UnknownKeys(t *testing.T) {
	t.Parallel()
	for _, c := range formtest.Cases() {
		if c.Question.Purpose == form.PurposeParam && len(c.Question.Schema) == 0 {
			continue // there is no form to hold it against
		}
		answer := map[string]json.RawMessage{}
		if json.Unmarshal([]byte(c.Answer), &answer) != nil {
			continue // the answer is one value
		}
		if _, err := c.Question.Read(json.RawMessage(c.Answer), true); err != nil {
			continue // it is wrong already
		}
		answer["qwzx"] = json.RawMessage(`1`)
		raw, err := json.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Question.Read(raw, true)
		problems, _ := errors.AsType[form.Problems](err)
		if !slices.ContainsFunc(problems, func(p form.Problem) bool { return p.Name() == "qwzx" }) {
			t.Errorf("%s: %s is taken: %v", c.Name, raw, err)
		}
	}
}

// Who is told that a key means nothing is told which do, and which of them was probably meant.
func TestQuestion_UnknownKeysNearest(t *testing.T) {
	t.Parallel()
	approval := form.Question{Purpose: form.PurposeNode, Type: form.Approval}
	input := form.Question{Purpose: form.PurposeNode, Type: form.Input, Fields: []form.Field{{Name: "amount", Type: "number"}}}
	schema := form.Question{Purpose: form.PurposeNode, Type: form.Input, Schema: json.RawMessage(`{"type":"object","properties":{"size":{"type":"string"}}}`)}
	chosen := form.Question{Purpose: form.PurposeNode, Type: form.Selection, Options: []form.Option{{Value: "a"}}}
	review := form.Question{Purpose: form.PurposeNode, Type: form.Review, Review: &form.Rules{Criteria: []string{"c"}}}
	for _, c := range []struct {
		q      form.Question
		answer string
		path   string // empty: it is taken
		says   string
	}{
		{approval, `{"action":"approve","notes":"fine"}`, "", ""},
		{approval, `{"action":"approve","user_id":"eve","timestamp":"never"}`, "", ""}, // they are known, whatever it says
		{approval, `{"action":"approve","field_values":null}`, "", ""},
		{approval, `{"action":"approve","note":"y"}`, "response_data.note", `did you mean "notes"?`},
		{approval, `{"action":"approve","reason":"y"}`, "response_data.reason", `did you mean "notes"?`},
		{approval, `{"action":"approve","foo":1}`, "response_data.foo", "there are action, notes"},
		{approval, `{"acton":"approve"}`, "response_data.acton", `did you mean "action"?`},
		{approval, `{"action":"approve","scores":{"a":1}}`, "response_data.scores", ""},
		{approval, `{"action":"approve","selected_values":["x"]}`, "response_data.selected_values", ""},
		{approval, `{"action":"approve","field_values":{"a":1}}`, "response_data.field_values", ""},
		{input, `{"field_values":{"amount":1},"notes":"n"}`, "", ""},
		{input, `{"field_values":{"amount":1},"extra":2}`, "response_data.extra", "there are field_values, notes"},
		{input, `{"amount":1}`, "response_data.amount", `did you mean "field_values.amount"?`},
		{schema, `{"size":"L"}`, "response_data.size", `did you mean "field_values.size"?`},
		{chosen, `{"selected_values":["a"],"action":"approve"}`, "response_data.action", "there are selected_values, notes"},
		{review, `{"scores":{"c":true},"evidence":{"c":"seen"},"notes":"n"}`, "", ""},
		{review, `{"scores":{"c":true},"evidense":{"c":"seen"}}`, "response_data.evidense", `did you mean "evidence"?`},
		{form.Question{Purpose: form.PurposeToolApproval}, `{"approved":true,"notes":"n"}`, "", ""},
		{form.Question{Purpose: form.PurposeToolApproval}, `{"approved":true,"arguments":{}}`, "input_data.arguments", ""},
		{form.Question{Purpose: form.PurposeBudget}, `{"raise_by":1,"rise_by":2}`, "input_data.rise_by", `did you mean "raise_by"?`},
		{form.Question{Purpose: form.PurposeOutcomeUnknown}, `{"outcome":"done","results":1}`, "input_data.results", `did you mean "result"?`},
		{form.Question{Purpose: form.PurposeActivation}, `{"accept":true,"x":1}`, "input_data.x", "there are accept"},
	} {
		_, err := c.q.Read(json.RawMessage(c.answer), true)
		problems, _ := errors.AsType[form.Problems](err)
		switch {
		case c.path == "" && err != nil:
			t.Errorf("%s: %v", c.answer, err)
		case c.path != "" && (len(problems) == 0 || problems[0].Path != c.path || !strings.Contains(problems[0].Text.In("en"), c.says)):
			t.Errorf("%s: %v; want %s, %q", c.answer, err, c.path, c.says)
		}
	}
}
