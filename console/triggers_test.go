package console

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"text/tabwriter"

	"tandem/api"
	"tandem/client"
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

// TestSchedules: schedules are found on every page, and triggers that have no next time are left out, whatever their kind is.
func TestSchedules(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if q.Has("kind") || q.Get("state") != "active" {
			t.Errorf("asked for %s", r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		first := `{"workflow_id": "a", "node_id": "hook", "kind": "TEST.HOOK"}, {"workflow_id": "a", "node_id": "daily", "kind": "TEST.CLOCK", "next_runs": [1]}`
		second := `{"workflow_id": "b", "node_id": "hourly", "kind": "TEST.OTHER_CLOCK", "next_runs": [2, 3]}`
		fmt.Fprintf(w, `{"total_count": 501, "triggers": [%s]}`, map[string]string{"1": first, "2": second}[q.Get("page")])
	}))
	t.Cleanup(s.Close)
	c, err := client.New(client.Options{URL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	list, err := Schedules(t.Context(), c, client.TriggerQuery{State: "active"})
	if err != nil {
		t.Fatal(err)
	}
	var nodes []string
	for _, one := range list.Triggers {
		nodes = append(nodes, one.NodeID)
	}
	if got := strings.Join(nodes, " "); got != "daily hourly" || list.TotalCount != 2 {
		t.Errorf("the schedules are %q, counted %d", got, list.TotalCount)
	}
}
