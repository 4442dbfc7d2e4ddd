package human

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"tandem/fault"
	"tandem/human/form"
	"tandem/store"
)

// What somebody touches is read against the question as it is, and handed in as its answer; what it cannot be is told in the language of
// the question.
func TestHandle_Fill(t *testing.T) {
	t.Parallel()
	question := Reaction{Interaction: store.Interaction{ID: "i1", Purpose: PurposeNode, Type: Approval}, Request: Request{Type: Approval, Language: "zh", Options: []Option{{Value: "ship"}, {Value: "wait"}}}}
	forbidden := Reaction{Err: fault.New(fault.Forbidden, "no"), Text: "您不能回复这个问题。"}
	ended := question
	ended.Err, ended.Ended = fault.New(fault.Conflict, "it has ended"), true
	for name, c := range map[string]struct {
		shown  Reaction
		chosen string
		answer string // empty: nothing is handed in
		told   string
	}{
		"Chosen":    {question, "ship", `{"action":"ship"}`, "ok"},
		"Gone":      {question, "burn", "", `回复有误：action："burn" 不在可选项之中：ship, wait。`},
		"Forbidden": {forbidden, "ship", "", forbidden.Text},
		"Unknown":   {Reaction{Err: fault.New(fault.NotFound, "no")}, "ship", "", ""},
		// It may have ended by this very click, which a service brings again: the desk knows.
		"Ended": {ended, "ship", `{"action":"ship"}`, "ok"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			h := Handle(func(_ context.Context, r Reply) (Reaction, error) {
				if r.Look {
					if r.Dedup != "" {
						t.Error("a look is taken for the reply itself")
					}
					return c.shown, nil
				}
				got = string(r.Answer.Given)
				return Reaction{Accepted: true, Text: "ok"}, nil
			})
			reaction, f, err := h.Fill(t.Context(), Reply{Interaction: "i1", Dedup: "d"}, Choose(c.chosen))
			if err != nil || got != c.answer || reaction.Text != c.told || (f == nil) != (name == "Forbidden" || name == "Unknown") {
				t.Errorf("handed in %q, told %q, form %v, %v", got, reaction.Text, f, err)
			}
		})
	}
	if _, wrong := Choose("a")(form.New(form.Question{Purpose: PurposeBudget}, "en")); len(wrong) != 1 || !strings.Contains(wrong.In("en"), "not an option of this question any more") {
		t.Errorf("a click on a question that has no choices any more: %v", wrong)
	}
}

// The form of a question has what its record knows besides the request: what a step lacks.
func TestFormOf(t *testing.T) {
	t.Parallel()
	i := store.Interaction{Purpose: PurposeParam, Type: Input, Request: json.RawMessage(`{"params":{"city":null,"days":3}}`)}
	r := Request{Language: "zh", Schema: json.RawMessage(`{"type":"object","required":["city","days"],"properties":{"days":{"type":"integer"},"city":{"type":"string"}}}`)}
	f := FormOf(i, r)
	if len(f.Entries) != 3 || !f.Entries[0].Known || string(f.Entries[0].Default) != "3" || f.Entries[0].Required || !f.Entries[1].Required || f.Entries[2].Label != "说明（可选）" {
		t.Errorf("%+v", f.Entries)
	}
	i.Request = json.RawMessage(`{"params":[1]}`)
	if f := FormOf(i, r); len(f.Entries) != 3 || f.Entries[0].Known {
		t.Errorf("%+v", f.Entries)
	}
}
