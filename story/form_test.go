package story

import (
	"encoding/json"
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
