package form_test

import (
	"encoding/json"
	"testing"

	"tandem/human/form"
)

// Whatever an author writes and somebody types, there is a form, and the answer is JSON that is taken or refused with the place of what is
// wrong.
func FuzzForm(f *testing.F) {
	for _, schema := range []string{
		`{"type":"object","required":["a"],"properties":{"a":{"type":"string"},"b":{"enum":[1,"x",null,{"y":1}]},"":{"type":"integer","default":"x"}}}`,
		`{"properties":{"a.b":{"type":["string","null"]},"c":{"type":"array","items":{"enum":[]}},"d":{"oneOf":[{"const":1},{"const":"1","title":"t"}]}}}`, `true`, `[]`, `{`, ``,
	} {
		f.Add(schema, "pass", "param")
		f.Add(schema, `{"a":1}`, "human_node")
	}
	f.Fuzz(func(t *testing.T, schema, typed, purpose string) {
		q := form.Question{Purpose: purpose, Type: form.Input, Schema: json.RawMessage(schema), Params: map[string]json.RawMessage{"a": json.RawMessage("null"), "b": json.RawMessage("1")}}
		made := form.New(q, "zh")
		if len(made.Entries) == 0 {
			t.Fatal("there is nothing to fill in")
		}
		values := form.Values{}
		for n := range made.Entries {
			e := &made.Entries[n]
			value, wrong := e.Read(typed)
			if value != nil && (wrong != nil || !json.Valid(value)) {
				t.Fatalf("%s: %q is read as %s (%v)", e, typed, value, wrong)
			}
			values[n] = value
		}
		answer := made.Answer(values)
		if !json.Valid(answer) {
			t.Fatalf("the answer is %s", answer)
		}
		if _, err := q.Read(answer, true); err != nil {
			if _, ok := err.(form.Problems); !ok {
				t.Fatalf("%s is refused without saying where: %v", answer, err)
			}
		}
	})
}
