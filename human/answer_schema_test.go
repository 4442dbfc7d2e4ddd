package human

import (
	"encoding/json"
	"slices"
	"testing"

	"tandem/api"
	"tandem/fault"
)

// What a schema refuses is told beside the field it is about, in words for somebody who has never seen the schema.
func TestCheck_SchemaInWords(t *testing.T) {
	t.Parallel()
	r := Request{Type: Input, Schema: json.RawMessage(`{"type":"object","required":["size","topics","n"],"properties":{"size":{"type":"string"},"n":{"type":"integer","maximum":3},
		"topics":{"type":"array","minItems":2},"name":{"type":"string","minLength":3}}}`)}
	for name, c := range map[string]struct {
		answer string
		want   []string
	}{
		"Missing": {`{}`, []string{"response_data.field_values.n it is required", "response_data.field_values.size it is required", "response_data.field_values.topics it is required"}},
		"Wrong": {`{"size":"M","n":9,"topics":["a"],"name":"x"}`, []string{
			"response_data.field_values.n it is more than 3", "response_data.field_values.name it has less than 3 characters", "response_data.field_values.topics choose at least 2"}},
		"OtherType": {`{"size":"M","n":"many","topics":["a","b"]}`, []string{"response_data.field_values.n a whole number was expected"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := r.Check(PurposeNode, json.RawMessage(`{"field_values":`+c.answer+`}`))
			list, ok := fault.From(err).Details["fields"].([]api.FaultField)
			if !ok {
				t.Fatalf("%v", err)
			}
			var got []string
			for _, f := range list {
				got = append(got, f.Path+" "+f.Message)
			}
			if slices.Sort(got); !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
