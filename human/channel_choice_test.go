package human

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tandem/store"
)

func TestChoices(t *testing.T) {
	t.Parallel()
	two := []Option{{Value: "ship", Label: "Ship it", Outcome: Neither}, {Value: "NO"}}
	for name, c := range map[string]struct {
		purpose string
		request Request
		want    []Option
		answer  string // that of the first
	}{
		"Default":  {PurposeNode, Request{Type: Approval}, []Option{{Value: "approve", Label: "Approve", Outcome: Confirmed}, {Value: "reject", Label: "Reject", Outcome: Rejected}}, `{"action":"approve"}`},
		"Chinese":  {PurposeToolApproval, Request{Language: "zh"}, []Option{{Value: "approve", Label: "批准", Outcome: Confirmed}, {Value: "reject", Label: "拒绝", Outcome: Rejected}}, `{"action":"approve"}`},
		"Own":      {PurposeNode, Request{Type: Approval, Options: two}, []Option{{Value: "ship", Label: "Ship it", Outcome: Neither}, {Value: "NO", Label: "No", Outcome: Rejected}}, `{"action":"ship"}`},
		"Select":   {PurposeNode, Request{Type: Selection, Options: two}, []Option{{Value: "ship", Label: "Ship it", Outcome: Neither}, {Value: "NO", Label: "No", Outcome: Rejected}}, `{"selected_values":["ship"]}`},
		"Several":  {PurposeNode, Request{Type: Selection, Options: two, AllowMultiple: true}, nil, ""},
		"Input":    {PurposeNode, Request{Type: Input, Options: two}, nil, ""},
		"Review":   {PurposeNode, Request{Type: Review}, nil, ""},
		"Confirm":  {PurposeConfirm, Request{}, []Option{{Value: "confirm", Label: "Confirm", Outcome: Confirmed}, {Value: "cancel", Label: "Cancel", Outcome: Rejected}}, `{"confirm":true}`},
		"Drift":    {PurposeDrift, Request{}, []Option{{Value: "accept", Label: "Accept", Outcome: Confirmed}, {Value: "decline", Label: "Decline", Outcome: Rejected}}, `{"accept":true}`},
		"Unknown":  {PurposeOutcomeUnknown, Request{}, []Option{{Value: "done", Label: "It was done", Outcome: Confirmed}, {Value: "not_done", Label: "It was not done", Outcome: Neither}, {Value: "stop", Label: "Stop", Outcome: Rejected}}, `{"outcome":"done"}`},
		"Budget":   {PurposeBudget, Request{Type: Input}, nil, ""},
		"Activate": {PurposeActivation, Request{Language: "zh"}, []Option{{Value: "accept", Label: "接受", Outcome: Confirmed}, {Value: "decline", Label: "不接受", Outcome: Rejected}}, `{"accept":true}`},
	} {
		i := store.Interaction{Purpose: c.purpose}
		got := Choices(i, c.request)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
			continue
		}
		if len(got) == 0 {
			continue
		}
		a := Chosen(c.request.Type, c.purpose, got[0].Value)
		raw := a.Given
		if raw == nil {
			raw = asJSON(t, a)
		}
		if string(raw) != c.answer {
			t.Errorf("%s: the answer is %s, want %s", name, raw, c.answer)
		}
	}
	if two[1].Label != "" {
		t.Error("the options of the request were changed")
	}
	// What was not offered says no rather than yes.
	if a := Chosen("", PurposeConfirm, "confirm", "cancel"); string(a.Given) != `{"confirm":false}` {
		t.Errorf("%s", a.Given)
	}
}

func TestForm(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		schema string
		want   []Field
	}{
		"Flat": {
			`{"type":"object","required":["b"],"properties":{"z":{"type":"string","title":"Z"},"b":{"type":"number","description":"how much"},"c":{"type":"integer"},"a":{"type":"boolean"},"e":{"type":"string","enum":["x","y"]},"m":{"type":"string","format":"email"},"d":{"type":"string","format":"date"}}}`,
			[]Field{
				{Name: "z", Label: "Z", Type: "text"}, {Name: "b", Label: "b (how much)", Type: "number", Required: true}, {Name: "c", Type: "number"}, {Name: "a", Type: "boolean"},
				{Name: "e", Type: "select", Options: []Option{{Value: "x"}, {Value: "y"}}}, {Name: "m", Type: "email"}, {Name: "d", Type: "date"},
			},
		},
		"Nested":   {`{"type":"object","properties":{"a":{"type":"object"}}}`, nil},
		"List":     {`{"type":"object","properties":{"a":{"type":"array"}}}`, nil},
		"Numbers":  {`{"type":"object","properties":{"a":{"type":"integer","enum":[1,2]}}}`, nil},
		"Either":   {`{"type":"object","properties":{"a":{"type":["string","null"]}}}`, nil},
		"True":     {`{"type":"object","properties":{"a":true}}`, nil},
		"Empty":    {`{"type":"object","properties":{}}`, nil},
		"None":     {`{"type":"object"}`, nil},
		"NoObject": {`{"type":"string"}`, nil},
		"Broken":   {`{"type":"object","properties":{"a":`, nil},
	} {
		got, ok := Form(store.Interaction{}, Request{Type: Input, Schema: json.RawMessage(c.schema)})
		if diff := cmp.Diff(c.want, got); ok != (c.want != nil) || ok && diff != "" {
			t.Errorf("%s: %v %s", name, ok, diff)
		}
	}
	fields := []Field{{Name: "a"}}
	if got, ok := Form(store.Interaction{Type: Input}, Request{Fields: fields}); !ok || !cmp.Equal(got, fields) {
		t.Errorf("%v %v", got, ok)
	}
	if _, ok := Form(store.Interaction{}, Request{Type: Approval, Fields: fields}); ok {
		t.Error("an approval is no form")
	}
	values := map[string]json.RawMessage{"a": json.RawMessage("1")}
	if a := Filled(PurposeNode, values); string(asJSON(t, a)) != `{"field_values":{"a":1}}` {
		t.Errorf("%s", asJSON(t, a))
	}
	if a := Filled(PurposeBudget, values); string(a.Given) != `{"a":1}` {
		t.Errorf("%s", a.Given)
	}
}
