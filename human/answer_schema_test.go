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

// What a schema refuses is told in Chinese, whatever the rule, without a word of the validator.
func TestCheck_SchemaInChinese(t *testing.T) {
	t.Parallel()
	r := Request{Type: Input, Schema: json.RawMessage(`{"type":"object","properties":{"n":{"exclusiveMinimum":0},"list":{"type":"array","uniqueItems":true},"when":{"type":["integer","null"]}},"dependentRequired":{"n":["list"]}}`)}
	for answer, want := range map[string]string{
		`{"n":0,"list":[]}`: "n：数值过小，必须大于 0。",
		`{"list":[1,1]}`:    "list：第 1 项与第 2 项重复。",
		`{"when":"later"}`:  "when：类型不符：应为空值（null）或整数。",
		`{"n":1}`:           "field_values：填写了“n”时，还需要 “list”。",
	} {
		err := r.Check(PurposeNode, json.RawMessage(`{"field_values":`+answer+`}`))
		if err == nil || InLanguage("zh", fault.From(err)) != want || InLanguage("en", fault.From(err)) != fault.From(err).Message {
			t.Errorf("%s: %v", answer, err)
			continue
		}
		// Programs are told the Chinese words, too; what they lose of the problems on their way is in the fields.
		fields := fault.From(err).Details["fields"].([]api.FaultField)
		if told := ProblemsOf(fault.New(fault.InvalidInput, "").With("fields", fields)); told.In("zh") != want || fields[0].MessageZH == "" {
			t.Errorf("%s: %+v", answer, fields)
		}
	}
}
