package console

import (
	"bytes"
	"strings"
	"testing"
	"text/tabwriter"

	"tandem/api"
)

// TestPrintTriggers tells where a trigger takes requests, and why one that listens fails.
func TestPrintTriggers(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	PrintTriggers(w, api.Triggers{TotalCount: 4, Triggers: []api.Trigger{
		{WorkflowID: "a", NodeID: "hub", Kind: "TRIGGER.GITHUB", Revision: 1, State: "active", Address: "https://t.example/hooks/a/github", Methods: []string{"POST"}},
		{WorkflowID: "a", NodeID: "in", Kind: "TRIGGER.EMAIL", Revision: 1, State: "active", Listening: &api.Listening{State: "listening", Since: 1}},
		{WorkflowID: "b", NodeID: "in", Kind: "TRIGGER.EMAIL", Revision: 1, State: "active", Listening: &api.Listening{State: "failing", Error: "the login is refused", Failures: 2, RetryAt: 1794853200000}},
		{WorkflowID: "c", NodeID: "in", Kind: "TRIGGER.EMAIL", Revision: 1, State: "failed", Reason: "no such mailbox"},
	}})
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	for i, want := range map[int]string{1: "POST https://t.example/hooks/a/github", 2: " listening ", 3: "failing: the login is refused; tried again 2026-11-16", 4: "failed: no such mailbox"} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("line %d is %q, want %q in it", i, lines[i], want)
		}
	}
}
