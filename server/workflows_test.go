package server

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tandem/api"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/route"
	"tandem/validation"
	"tandem/workflow"
)

func TestMadeID(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Send the Mail!": "send-the-mail", "  a -- b  ": "a-b", "v1.2": "v1-2", "ÄÖ x": "x", strings.Repeat("ab ", 100): strings.TrimSuffix(strings.Repeat("ab-", 20), "-"),
	} {
		if got := route.MadeID(name, "workflow"); got != want || checkWorkflowID(got) != nil {
			t.Errorf("%q becomes %q, want %q", name, got, want)
		}
	}
	if one, other := route.MadeID("邮件", "workflow"), route.MadeID("邮件", "workflow"); one == other || checkWorkflowID(one) != nil {
		t.Errorf("ids %q and %q", one, other)
	}
	for _, id := range []string{"", ".", "..", "a/b", "a b", "a?b", "-a", strings.Repeat("a", 129), "a\n"} {
		if fault.CodeOf(checkWorkflowID(id)) != fault.InvalidInput {
			t.Errorf("%q is taken for an id", id)
		}
	}
}

func TestExpected(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"": 0, "*": 0, "3": 3, `"3"`: 3, `W/"3"`: 3} {
		if got, err := expectedRevision(text); err != nil || got != want {
			t.Errorf("%q is %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"0", "-1", "x", `"1", "2"`} {
		if _, err := expectedRevision(text); fault.CodeOf(err) != fault.InvalidInput {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestTellProblems(t *testing.T) {
	t.Parallel()
	def := &workflow.Definition{Nodes: []workflow.Node{{ID: "a"}, {ID: "b"}}}
	got := validation.Tell("en", []workflow.Problem{
		{Severity: workflow.SeverityError, Code: "c", Path: "nodes[1].name", Message: "m", Line: 4, Column: 2}, {Severity: workflow.SeverityWarning, Path: "nodes[7]"}, {Path: "metadata"},
	}, def)
	want := []api.Problem{{Code: "c", Severity: "error", Message: "m", Path: "nodes[1].name", Node: "b", Line: 4, Column: 2}, {Severity: "warning", Path: "nodes[7]"}, {Path: "metadata"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if list := validation.Tell("en", nil, nil); list == nil {
		t.Error("no problems are null, not an empty list")
	}
}

func TestRequestHash(t *testing.T) {
	t.Parallel()
	base := api.ExecuteRequest{Inputs: []byte(`{"a":1}`)}
	hash := func(id string, change func(*api.ExecuteRequest)) string {
		r := base
		change(&r)
		h, err := requestHash(id, r)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	first := hash("w", func(*api.ExecuteRequest) {})
	if first != hash("w", func(r *api.ExecuteRequest) { r.WaitSeconds = 9 }) {
		t.Error("waiting longer is another request")
	}
	for name, other := range map[string]string{
		"Workflow": hash("v", func(*api.ExecuteRequest) {}), "Inputs": hash("w", func(r *api.ExecuteRequest) { r.Inputs = []byte(`{"a":2}`) }),
		"Revision": hash("w", func(r *api.ExecuteRequest) { r.Revision = 2 }), "Start": hash("w", func(r *api.ExecuteRequest) { r.StartFromNode = "n" }),
	} {
		if other == first {
			t.Errorf("%s: another request has the same hash", name)
		}
	}
}

func TestReadStatuses(t *testing.T) {
	t.Parallel()
	got, err := readStatuses(route.Listed([]string{"running, CANCELLED", "Waiting_For_Human", ""}))
	if diff := cmp.Diff([]engine.Status{engine.StatusRunning, engine.StatusCanceled, engine.StatusWaitingForHuman}, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if _, err := readStatuses([]string{"UNKNOWN"}); fault.CodeOf(err) != fault.InvalidInput {
		t.Errorf("UNKNOWN: %v", err)
	}
}

func TestStatusTold(t *testing.T) {
	t.Parallel()
	row := &host.Row{Told: []host.Told{{What: host.ToldNode, Status: engine.StatusSuccess}}}
	if status, told := statusTold(row); told {
		t.Errorf("a row that changes nothing tells %s", status)
	}
	row.Told = append(row.Told, host.Told{What: host.ToldExecution, Status: engine.StatusRunning}, host.Told{What: host.ToldExecution, Status: engine.StatusTimeout})
	if status, told := statusTold(row); !told || status != engine.StatusTimeout {
		t.Errorf("it tells %q, %v", status, told)
	}
	if _, told := statusTold(nil); told {
		t.Error("output tells a status")
	}
}
