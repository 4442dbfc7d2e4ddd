package formtest

import (
	"encoding/json"

	"tandem/human/form"
)

type fill = map[string][]string

// Cases are the questions of every type and purpose, filled in rightly and wrongly.
func Cases() []Case {
	node := func(q form.Question) form.Question {
		q.Purpose = form.PurposeNode
		return q
	}
	approval := node(form.Question{Type: form.Approval,
		Options: []form.Option{{Value: "approve", Label: "approve", Outcome: form.Confirmed},
			{Value: "reject", Label: "reject", Outcome: form.Rejected}}})
	own := node(form.Question{Type: form.Approval, Options: []form.Option{{Value: "ship", Label: "Ship it", Outcome: form.Confirmed},
		{Value: "later", Outcome: form.Neither}, {Value: "no, never", Outcome: form.Rejected}}})
	one := node(form.Question{Type: form.Selection, Options: []form.Option{{Value: "red", Label: "Red"},
		{Value: "Berlin, DE"}, {Value: "blue"}}})
	some := one
	some.Multiple = true
	rules := func(scoring string, least, most float64, evidence bool) form.Question {
		return node(form.Question{Type: form.Review, Review: &form.Rules{Criteria: []string{"tone", "facts"}, Scoring: scoring, Min: least,
			Max: most, Threshold: 3, Evidence: evidence}})
	}
	scores := func(tone, facts string) fill { return fill{"scores.tone": {tone}, "scores.facts": {facts}} }
	fields := node(form.Question{Type: form.Input, Fields: []form.Field{
		{Name: "n", Label: "How many", Type: "number", Required: true, Validation: json.RawMessage(`{"min":1,"max":10}`)}, {Name: "mail", Type: "email"}, {Name: "day", Type: "date"},
		{Name: "size", Type: "select", Options: []form.Option{{Value: "s", Label: "Small"}, {Value: "l", Label: "Large"}}},
		{Name: "gift", Type: "boolean", Required: true},
	}})
	texts := node(form.Question{Type: form.Input, Fields: []form.Field{{Name: "why", Required: true,
		Validation: json.RawMessage(`{"min_length":2,"max_length":5}`)}, {Name: "code", Validation: json.RawMessage(`"^[A-Z]+$"`)}}})
	file := node(form.Question{Type: form.Input, Fields: []form.Field{{Name: "paper", Type: "file", Required: true}}})
	schema := node(form.Question{Type: form.Input, Schema: json.RawMessage(`{"type":"object","required":["name"],"properties":{"name":{"type":"string","title":"Name","description":"as in the passport"},
		"guests":{"type":"integer","minimum":0,"maximum":4,"default":1},"level":{"enum":[1,2]},"sure":{"type":["boolean","null"]}}}`)})
	choices := node(form.Question{Type: form.Input, Schema: json.RawMessage(`{"type":"object","properties":{"size":{"type":"string","oneOf":[{"const":"a","title":"The first"},{"const":"b"}]},
		"old":{"enum":["x","y"],"enumNames":["Ex","Why"]},"topics":{"type":"array","items":{"enum":["go","sql","css"]},"maxItems":2},"about":{"type":"string","maxLength":500}}}`)})
	nested := node(form.Question{Type: form.Input, Schema: json.RawMessage(`{"type":"object","required":["list"],"properties":{"list":{"type":"array","items":{"type":"object"}}}}`)})
	whole := node(form.Question{Type: form.Input, Schema: json.RawMessage(`{"type":"object","anyOf":[{"required":["a"]},{"required":["b"]}],"properties":{"a":{"type":"string"}}}`)})
	param := form.Question{Purpose: form.PurposeParam, Type: form.Input, Schema: json.RawMessage(`{"type":"object","required":["city","days"],"properties":{"city":{"type":"string","description":"the city"},"days":{"type":"integer","minimum":1},"unit":{"type":"string","enum":["c","f"]}}}`)}
	lacks := param
	lacks.Params = map[string]json.RawMessage{"city": json.RawMessage("null"), "days": json.RawMessage("3")}
	purpose := func(name, kind string) form.Question { return form.Question{Purpose: name, Type: kind} }
	return []Case{
		{Name: "Approval", Question: approval, Fill: fill{"action": {"approve"}, "notes": {"fine"}}, Answer: `{"action":"approve","notes":"fine"}`},
		{Name: "ApprovalByDefault", Question: node(form.Question{Type: form.Approval}), Fill: fill{"action": {"reject"}}, Answer: `{"action":"reject"}`},
		{Name: "ApprovalUndecided", Question: approval, Fill: fill{"notes": {"hm"}}, Wrong: []string{"action"}},
		{Name: "OwnOptions", Question: own, Fill: fill{"action": {"no, never"}}, Answer: `{"action":"no, never"}`},
		{Name: "ToolApproval", Question: purpose(form.PurposeToolApproval, ""), Fill: fill{"approved": {"reject"}, "notes": {"not today"}}, Answer: `{"approved":false,"notes":"not today"}`},
		{Name: "Selection", Question: one, Fill: fill{"selected_values": {"Berlin, DE"}, "notes": {"n"}}, Answer: `{"selected_values":["Berlin, DE"],"notes":"n"}`},
		{Name: "SelectionOfNothing", Question: one, Fill: fill{"notes": {"n"}}, Wrong: []string{"selected_values"}},
		{Name: "Selections", Question: some, Fill: fill{"selected_values": {"red", "blue"}}, Answer: `{"selected_values":["red","blue"]}`},

		{Name: "PassFail", Question: rules("pass_fail", 1, 5, false), Fill: scores("true", "false"), Answer: `{"scores":{"tone":true,"facts":false}}`},
		{Name: "PassFailInPart", Question: rules("pass_fail", 1, 5, true), Fill: fill{"scores.tone": {"true"}, "evidence.facts": {"seen"}},
			Wrong: []string{"evidence.tone", "scores.facts"}},
		{Name: "Evidence", Question: rules("pass_fail", 1, 5, true),
			Fill: fill{"scores.tone": {"true"}, "scores.facts": {"true"}, "evidence.tone": {"kind"},
				"evidence.facts": {"checked"}, "notes": {"n"}},
			Answer: `{"scores":{"tone":true,"facts":true},"evidence":{"tone":"kind","facts":"checked"},"notes":"n"}`},
		{Name: "Checklist", Question: rules("checklist", 1, 5, false), Fill: fill{"scores.tone": {"true"}}, Answer: `{"scores":{"tone":true,"facts":false}}`},
		{Name: "Scale", Question: rules("numeric_scale", 1, 5, false), Fill: scores("4", "5"), Answer: `{"scores":{"tone":4,"facts":5}}`},
		{Name: "ScaleBetween", Question: rules("numeric_scale", 1, 5, false), Fill: scores("4.5", "1"), Answer: `{"scores":{"tone":4.5,"facts":1}}`},
		{Name: "ScaleTooHigh", Question: rules("numeric_scale", 1, 5, false), Fill: scores("6", "0"),
			Wrong: []string{"scores.facts", "scores.tone"}},
		{Name: "WideScale", Question: rules("numeric_scale", 0, 100, false), Fill: scores("77.5", "100"), Answer: `{"scores":{"tone":77.5,"facts":100}}`},
		{Name: "Letters", Question: rules("letter_grade", 1, 5, false), Fill: scores("A", "F"), Answer: `{"scores":{"tone":"A","facts":"F"}}`},
		{Name: "CustomNumbers", Question: rules("custom", 1, 5, false), Fill: scores("4", "2.5"), Answer: `{"scores":{"tone":4,"facts":2.5}}`},
		{Name: "CustomLetters", Question: rules("custom", 1, 5, false), Fill: scores("B", "F"), Answer: `{"scores":{"tone":"B","facts":"F"}}`},
		{Name: "CustomPasses", Question: rules("custom", 1, 5, false), Fill: scores("true", "false"), Answer: `{"scores":{"tone":true,"facts":false}}`},
		{Name: "CustomWide", Question: rules("custom", 0, 100, false), Fill: scores("b", "pass"), Answer: `{"scores":{"tone":"B","facts":true}}`},
		{Name: "CustomWrong", Question: rules("custom", 0, 100, false), Fill: scores("177.5", "100"), Wrong: []string{"scores.tone"}},
		{Name: "CustomNonsense", Question: rules("custom", 0, 100, false), Fill: scores("E", "100"), Wrong: []string{"scores.tone"}},

		{Name: "Fields", Question: fields, Fill: fill{"field_values.n": {"7"}, "field_values.mail": {"a@b.c"},
			"field_values.day": {"2027-03-31"}, "field_values.size": {"l"}, "field_values.gift": {"false"}},
			Answer: `{"field_values":{"n":7,"mail":"a@b.c","day":"2027-03-31","size":"l","gift":false}}`},
		{Name: "FieldsLeftOut", Question: fields, Fill: fill{"field_values.n": {"2.50"}, "field_values.gift": {"true"}}, Answer: `{"field_values":{"n":2.50,"gift":true}}`},
		{Name: "FieldsWrong", Question: fields, Fill: fill{"field_values.n": {"11"}, "field_values.mail": {"nobody"},
			"field_values.day": {"2027-02-30"}}, Wrong: []string{"field_values.day", "field_values.gift",
			"field_values.mail", "field_values.n"}},
		{Name: "NoNumber", Question: fields, Fill: fill{"field_values.n": {"many"}, "field_values.gift": {"true"}},
			Wrong: []string{"field_values.n"}},
		{Name: "Texts", Question: texts, Fill: fill{"field_values.why": {"so"}, "field_values.code": {"EU"}, "notes": {"n"}}, Answer: `{"field_values":{"why":"so","code":"EU"},"notes":"n"}`},
		{Name: "TextsWrong", Question: texts, Fill: fill{"field_values.why": {"x"}, "field_values.code": {"eu"}},
			Wrong: []string{"field_values.code", "field_values.why"}},
		{Name: "File", Question: file, Needs: form.File, Wrong: []string{"field_values.paper"}},
		{Name: "Schema", Question: schema, Fill: fill{"field_values.name": {"Ann"}, "field_values.level": {"2"}, "field_values.sure": {"true"}}, Answer: `{"field_values":{"name":"Ann","guests":1,"level":2,"sure":true}}`},
		{Name: "SchemaWrong", Question: schema, Fill: fill{"field_values.guests": {"9"}},
			Wrong: []string{"field_values.guests", "field_values.name"}},
		{Name: "Choices", Question: choices, Fill: fill{"field_values.size": {"b"}, "field_values.old": {"y"},
			"field_values.topics": {"go", "css"}, "field_values.about": {"me"}},
			Answer: `{"field_values":{"size":"b","old":"y","topics":["go","css"],"about":"me"}}`},
		{Name: "ChoicesTooMany", Question: choices, Fill: fill{"field_values.topics": {"go", "sql", "css"}},
			Wrong: []string{"field_values.topics"}},
		{Name: "Nested", Question: nested, Fill: fill{"field_values.list": {`[{"a":1}]`}}, Answer: `{"field_values":{"list":[{"a":1}]}}`, Needs: form.JSON},
		{Name: "NestedWrong", Question: nested, Fill: fill{"field_values.list": {`[{`}}, Wrong: []string{"field_values.list"}, Needs: form.JSON},
		{Name: "Whole", Question: whole, Fill: fill{"field_values": {`{"a":"x"}`}}, Answer: `{"field_values":{"a":"x"}}`, Needs: form.JSON},

		{Name: "Confirm", Question: purpose(form.PurposeConfirm, form.Approval), Fill: fill{"confirm": {"confirm"}}, Answer: `{"confirm":true}`},
		{Name: "ConfirmNot", Question: purpose(form.PurposeConfirm, form.Approval), Fill: fill{"confirm": {"cancel"}}, Answer: `{"confirm":false}`},
		{Name: "Drift", Question: purpose(form.PurposeDrift, form.Approval), Fill: fill{"accept": {"decline"}}, Answer: `{"accept":false}`},
		{Name: "Activation", Question: purpose(form.PurposeActivation, form.Approval), Fill: fill{"accept": {"accept"}}, Answer: `{"accept":true}`},
		{Name: "Budget", Question: purpose(form.PurposeBudget, form.Input), Fill: fill{"raise_by": {"5000"}}, Answer: `{"raise_by":5000}`},
		{Name: "BudgetDown", Question: purpose(form.PurposeBudget, form.Input), Fill: fill{"raise_by": {"-5"}}, Wrong: []string{"raise_by"}},
		{Name: "NotDone", Question: purpose(form.PurposeOutcomeUnknown, form.Selection), Fill: fill{"outcome": {"not_done"}}, Answer: `{"outcome":"not_done"}`},
		{Name: "Params", Question: param, Fill: fill{"content.city": {"Rome"}, "content.days": {"3"}, "content.unit": {"c"}, "description": {"warm"}}, Answer: `{"content":{"city":"Rome","days":3,"unit":"c"},"description":"warm"}`},
		{Name: "ParamsWrong", Question: param, Fill: fill{"content.city": {"Rome"}, "content.days": {"0"}},
			Wrong: []string{"content.days"}},
		{Name: "ParamsKnown", Question: lacks, Fill: fill{"content.city": {"Rome"}}, Answer: `{"content":{"city":"Rome","days":3}}`},
	}
}
