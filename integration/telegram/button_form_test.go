package telegram

import (
	"encoding/json"
	"slices"
	"testing"

	"tandem/human"
	"tandem/human/form"
	"tandem/human/form/formtest"
	"tandem/store"
)

// What a button answers is the same as everywhere else. A form is for the page.
func TestButtons_Conform(t *testing.T) {
	t.Parallel()
	b := &bot{token: botToken}
	for _, c := range formtest.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			i := store.Interaction{Workspace: "w", ID: questionA, Purpose: c.Question.Purpose, Type: c.Question.Type, Request: c.Request(t)}
			var r human.Request
			if err := json.Unmarshal(i.Request, &r); err != nil {
				t.Fatal(err)
			}
			options := choices(i, r)
			decision, _ := c.Form().Decision()
			if can := decision != nil && decision.Kind != form.Some; can != (len(options) > 0) {
				t.Fatalf("it has %d buttons", len(options))
			}
			if len(options) == 0 || !c.Touches() {
				return
			}
			n := slices.IndexFunc(options, func(o form.Choice) bool { return o.Value == c.Fill[decision.Path()][0] })
			s, ok := readStamp(b.stamp(i, options, n))
			answer, fits := b.opens(s, i, r)
			if !ok || !fits || string(answer.Given) != c.Answer {
				t.Errorf("the answer is %s, want %s", answer.Given, c.Answer)
			}
		})
	}
}
