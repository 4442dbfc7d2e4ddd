package human

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"tandem/store"
)

// Choices are what answers a question with one touch: its options, or those that its purpose has. All have a label and an
// outcome. None: the question wants a form, see [Form].
func Choices(i store.Interaction, r Request) []Option {
	var options []Option
	switch i.Purpose {
	case PurposeConfirm:
		options = []Option{{Value: "confirm"}, {Value: "cancel"}}
	case PurposeDrift, PurposeActivation:
		options = []Option{{Value: "accept"}, {Value: "decline"}}
	case PurposeOutcomeUnknown:
		options = []Option{{Value: "done"}, {Value: "not_done"}, {Value: "stop"}}
	case PurposeBudget, PurposeParam:
		return nil
	default:
		switch {
		case kindOf(i, r) == Approval && len(r.Options) == 0:
			options = []Option{{Value: "approve"}, {Value: "reject"}}
		case kindOf(i, r) == Approval, kindOf(i, r) == Selection && !r.AllowMultiple:
			options = slices.Clone(r.Options)
		}
	}
	for n := range options {
		caption(&options[n], r.Language)
	}
	return options
}

// Chosen is the answer that choices make in a question of a type and purpose.
func Chosen(kind, purpose string, values ...string) *Answer {
	only := ""
	if len(values) == 1 {
		only = values[0]
	}
	given := func(name string, value any) *Answer {
		raw, _ := json.Marshal(map[string]any{name: value}) // texts and booleans can always be written
		return &Answer{Given: raw}
	}
	switch purpose {
	case PurposeConfirm:
		return given("confirm", only == "confirm")
	case PurposeDrift, PurposeActivation:
		return given("accept", only == "accept")
	case PurposeOutcomeUnknown:
		return given("outcome", only)
	}
	if kind == Selection {
		return &Answer{Chosen: values}
	}
	return &Answer{Action: only}
}

// Form is the fields of a question that asks for several things by name: its own, or those of a schema that is flat enough.
// It is false for any other question.
func Form(i store.Interaction, r Request) ([]Field, bool) {
	if len(r.Fields) > 0 {
		return r.Fields, kindOf(i, r) == Input
	}
	if len(r.Schema) == 0 || kindOf(i, r) != Input {
		return nil, false
	}
	return flatSchema(r.Schema)
}

// Filled is the answer that the fields of a form make in a question of a purpose.
func Filled(purpose string, values map[string]json.RawMessage) *Answer {
	switch purpose {
	case "", PurposeNode, PurposeToolApproval:
		return &Answer{Fields: values}
	}
	raw, _ := json.Marshal(values) // they are JSON already
	return &Answer{Given: raw}
}

// flatSchema reads a schema of an object whose properties are texts, numbers and booleans, in the order they are written.
func flatSchema(raw json.RawMessage) ([]Field, bool) {
	var schema struct {
		Type       string          `json:"type"`
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
	}
	if json.Unmarshal(raw, &schema) != nil || schema.Type != "object" {
		return nil, false
	}
	var fields []Field
	d := json.NewDecoder(bytes.NewReader(schema.Properties))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, false
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, false
		}
		var p struct {
			Type   string   `json:"type"`
			Title  string   `json:"title"`
			Format string   `json:"format"`
			Enum   []string `json:"enum"`
			About  string   `json:"description"`
		}
		if d.Decode(&p) != nil {
			return nil, false
		}
		f := Field{Name: name.(string), Label: p.Title, Required: slices.Contains(schema.Required, name.(string))}
		if f.Label == "" && p.About != "" {
			f.Label = f.Name + " (" + p.About + ")"
		}
		switch {
		case p.Type == "string" && len(p.Enum) > 0:
			f.Type = "select"
			for _, v := range p.Enum {
				f.Options = append(f.Options, Option{Value: v})
			}
		case p.Type == "string" && (p.Format == "email" || p.Format == "date"):
			f.Type = p.Format
		case p.Type == "string":
			f.Type = "text"
		case (p.Type == "number" || p.Type == "integer") && p.Enum == nil:
			f.Type = "number"
		case p.Type == "boolean":
			f.Type = "boolean"
		default:
			return nil, false
		}
		fields = append(fields, f)
	}
	return fields, len(fields) > 0
}

func kindOf(i store.Interaction, r Request) string {
	for _, k := range []string{r.Type, i.Type} {
		if k != "" {
			return k
		}
	}
	return Approval
}

// caption fills in the label and the outcome of an option by its name.
func caption(o *Option, language string) {
	word := strings.ToLower(o.Value)
	if o.Label == "" {
		o.Label = o.Value
		if known, ok := captions()[word]; ok {
			o.Label = known[0]
			if language == "zh" {
				o.Label = known[1]
			}
		}
	}
	if o.Outcome == "" {
		switch word {
		case "approve", "approved", "yes", "confirm", "accept", "done":
			o.Outcome = Confirmed
		case "reject", "rejected", "no", "deny", "decline", "cancel", "stop":
			o.Outcome = Rejected
		default:
			o.Outcome = Neither
		}
	}
}

func captions() map[string][2]string {
	return map[string][2]string{
		"approve": {"Approve", "批准"}, "reject": {"Reject", "拒绝"}, "yes": {"Yes", "是"}, "no": {"No", "否"},
		"confirm": {"Confirm", "确认"}, "cancel": {"Cancel", "取消"}, "deny": {"Deny", "拒绝"}, "accept": {"Accept", "接受"},
		"decline": {"Decline", "不接受"}, "done": {"It was done", "已完成"}, "not_done": {"It was not done", "未完成"}, "stop": {"Stop", "停止"},
	}
}
