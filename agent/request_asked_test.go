package agent

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReadAsked: what a task is about is read from how its data begins, else from what was sent; and that is what its data begins with.
func TestReadAsked(t *testing.T) {
	t.Parallel()
	const sent = `{"question":"q","conversation_id":"c","session_id":"s","language":"zh","documents":["d"],"metadata":{"question":"other","n":1}}`
	initial, err := Initial(json.RawMessage(sent))
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"conversation_id":"c","documents":["d"],"language":"zh","n":1,"question":"q","session_id":"s"}`; string(initial) != want {
		t.Errorf("the data begins with %s, want %s", initial, want)
	}
	all := Asked{Question: "q", ConversationID: "c", SessionID: "s", Language: "zh", Documents: []json.RawMessage{json.RawMessage(`"d"`)}}
	for name, c := range map[string]struct {
		trigger, initial string
		want             Asked
	}{
		"Both":       {sent, string(initial), all},
		"Sent":       {sent, "", all},
		"Begins":     {"", string(initial), all},
		"Changed":    {sent, `{"question":"r"}`, Asked{"r", "c", "s", "zh", all.Documents}},
		"Unreadable": {sent, `{"question":7}`, all},
		"None":       {"", "", Asked{}},
	} {
		if diff := cmp.Diff(c.want, ReadAsked(json.RawMessage(c.trigger), json.RawMessage(c.initial))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
