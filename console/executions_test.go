package console

import (
	"strings"
	"testing"

	"tandem/api"
)

// Without a server nothing works on what a listing calls RUNNING, and the listing says so; with one, or when nothing is, there is nothing
// to say.
func TestNoteResting(t *testing.T) {
	t.Parallel()
	list := func(status string) api.Executions {
		return api.Executions{Executions: []api.ExecutionSummary{{ExecutionID: "a", Status: "SUCCESS"}, {ExecutionID: "b", Status: status}}}
	}
	for _, c := range []struct {
		local  bool
		status string
		says   bool
	}{{true, "RUNNING", true}, {false, "RUNNING", false}, {true, "WAITING_FOR_HUMAN", false}} {
		var b strings.Builder
		if err := NoteResting(&b, c.local, list(c.status)); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(b.String(), "tandem run --resume"); got != c.says {
			t.Errorf("local %v, %s: %q", c.local, c.status, b.String())
		}
	}
}
