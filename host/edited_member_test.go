package host

import (
	"encoding/json"
	"testing"

	"tandem/dataflow"
)

// TestEditedMember: what an edit does not name keeps its place and its digits.
func TestEditedMember(t *testing.T) {
	t.Parallel()
	edits := []dataflow.Edit{{Name: "n", Value: json.RawMessage(`2`)}}
	got, err := editedMember(json.RawMessage(`{"z":12345678901234567890,"data":{"n":1,"b":1.10},"a":"<"}`), "data", edits)
	if want := `{"z":12345678901234567890,"data":{"n":2,"b":1.10},"a":"<"}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
	for _, value := range []string{`{"data":1}`, `{"other":{"n":1}}`, `[1]`} {
		if got, err := editedMember(json.RawMessage(value), "data", edits); err != nil || string(got) != value {
			t.Errorf("%s became %s, %v", value, got, err)
		}
	}
}
