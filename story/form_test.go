package story

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"tandem/api"
	"tandem/human"
	"tandem/human/form/formtest"
	"tandem/store"
)

// What a client is told of values that somebody gave by hand reads as it does in every other medium.
func TestTellForm_Readable(t *testing.T) {
	t.Parallel()
	request, err := json.Marshal(human.Request{
		Title: "May it?", Again: []api.AskedAgain{{Action: "output", NodeID: "pay", By: "ann", Output: formtest.Value()}},
		Fork: &api.Fork{ExecutionID: "x", NodeID: "ask", By: "ann", Edits: []api.ForkEdit{{Name: "amount", Original: json.RawMessage(`1`), Edited: formtest.Value()}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	told := TellForm(store.Interaction{ID: "i", Purpose: human.PurposeNode, Type: "approval", Request: request}, "en")
	if told == nil || told.Title != "May it?" || len(told.Entries) == 0 {
		t.Fatalf("told %+v", told)
	}
	formtest.Readable(t, strings.Join(told.Lines, "\n"))
}

// Which of the lines tell edited values is said by their numbers, whatever language they are in and whatever a value is called.
func TestTellForm_EditLines(t *testing.T) {
	t.Parallel()
	one := json.RawMessage(`1`)
	request, err := json.Marshal(human.Request{
		Title: "May it?", Again: []api.AskedAgain{{Action: "output", NodeID: "pay", By: "ann"}},
		Fork: &api.Fork{ExecutionID: "x", NodeID: "ask", By: "ann", Reason: "amount: now 3",
			Edits:   []api.ForkEdit{{Name: "new", Edited: one}, {Name: "hidden"}, {Name: "amount", Original: one, Edited: json.RawMessage(`2`)}},
			Earlier: []api.Fork{{ExecutionID: "y", NodeID: "ask", By: "bob", Edits: []api.ForkEdit{{Name: "amount", Original: one, Edited: one}}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, language := range []string{"en", "zh"} {
		told := TellForm(store.Interaction{ID: "i", Purpose: human.PurposeNode, Type: "approval", Request: request}, language)
		var edited []string
		for _, n := range told.EditLines {
			edited = append(edited, told.Lines[n][:strings.IndexAny(told.Lines[n], ":\uff1a")])
		}
		if want := []string{"amount", "new", "amount"}; !slices.Equal(edited, want) {
			t.Errorf("%s: lines %d of %q are about %q, want %q", language, told.EditLines, told.Lines, edited, want)
		}
	}
}
