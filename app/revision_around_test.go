package app

import (
	"net/http"
	"strings"
	"testing"

	"tandem/api"
	"tandem/engine"
)

// Nobody gets around a question by running an older revision of the workflow, be it by starting it or by forking what ran it.
func TestRevisionAround_IsRefused(t *testing.T) {
	t.Parallel()
	x, _ := openForPeople(t)
	empty := func(id string) string {
		return "  - {id: " + id + ", description: d, type: CALL, subtype: EMPTY}\n"
	}
	question := func(more string) string {
		return `  - {id: ask, description: d, type: HUMAN_IN_THE_LOOP, subtype: IN_APP_APPROVAL, configurations: {title: "Pay?", approvers: [approver]` + more + "}}\n"
	}
	through := "  - {from_node: start, to_node: ask}\n  - {from_node: ask, to_node: pay, output_key: approve}\n"
	revisions := []struct{ nodes, connections string }{
		{empty("pay"), "  - {from_node: start, to_node: pay}\n"},                                       // 1: nobody is asked
		{question("") + empty("pay"), through},                                                         // 2
		{question("") + empty("pay") + empty("log"), through + "  - {from_node: pay, to_node: log}\n"}, // 3: as 2, with something more
		{question("") + empty("pay"), through + "  - {from_node: start, to_node: pay}\n"},              // 4: there is a way around
		{question(", min_approvals: 1, exclude_requester: true") + empty("pay"), through},              // 5: asked otherwise
		{question(", advisory: true") + empty("pay"), through},                                         // 6: it binds nobody
	}
	put := func(n int) {
		t.Helper()
		text := flowOf("around", revisions[n-1].nodes, revisions[n-1].connections)
		if n == 1 {
			x.save(t, text)
			return
		}
		if saved := want[api.Saved](t, x.call(t, "editor", "PUT", "/workflows/around", text), http.StatusOK); saved.Workflow.Revision != int64(n) {
			t.Fatalf("it is revision %d, want %d", saved.Workflow.Revision, n)
		}
	}
	start := func(revision string) answer {
		t.Helper()
		return x.call(t, "operator", "POST", "/workflows/around/execute", `{"revision":`+revision+`}`)
	}
	put(1)
	unasked := x.execute(t, "around", api.ExecuteRequest{})
	x.reaches(t, unasked, engine.StatusSuccess)
	x.forks(t, "operator", unasked, api.ActionRequest{NodeID: "pay"})
	put(2)
	if f := refused(t, start("1"), http.StatusConflict, "approval_required"); !strings.Contains(f.Detail, `"ask"`) || !strings.Contains(f.Detail, "start revision 2") {
		t.Errorf("refused with %q", f.Detail)
	}
	refused(t, x.call(t, "operator", "POST", "/workflows/around/execute", `{"revision":1,"start_from_node":"pay"}`), http.StatusConflict, "approval_required")
	refused(t, x.call(t, "operator", "POST", "/executions/"+unasked+"/actions", api.ActionRequest{Action: "fork", NodeID: "pay"}), http.StatusConflict, "approval_required")
	put(3)
	asked := want[api.ExecuteResponse](t, start("2"), http.StatusAccepted).ExecutionID // it asks just as well
	x.opens(t, asked, 1)
	x.forks(t, "operator", asked, api.ActionRequest{NodeID: "ask"})
	put(4)
	want[api.ExecuteResponse](t, start("3"), http.StatusAccepted) // it asks more
	put(5)
	if f := refused(t, start("4"), http.StatusConflict, "approval_required"); !strings.Contains(f.Detail, `leads to "pay" without "ask"`) {
		t.Errorf("refused with %q", f.Detail)
	}
	if f := refused(t, start("3"), http.StatusConflict, "approval_required"); !strings.Contains(f.Detail, "otherwise") {
		t.Errorf("refused with %q", f.Detail)
	}
	put(6)
	want[api.ExecuteResponse](t, start("1"), http.StatusAccepted)
}

// The revision that is deployed may be started by its number, although a newer one asks: it is what triggers start until the newer one is
// deployed. Then it is an older one like any other; and what ran it is not forked around the newer question in either case.
func TestRevisionAround_Deployed(t *testing.T) {
	t.Parallel()
	x, _ := openForPeople(t)
	pay := "  - {id: pay, description: d, type: CALL, subtype: EMPTY}\n"
	ask := "  - {id: ask, description: d, type: HUMAN_IN_THE_LOOP, subtype: IN_APP_APPROVAL, configurations: {title: \"Pay?\", approvers: [approver]}}\n"
	x.deploys(t, "around", flowOf("around", pay, "  - {from_node: start, to_node: pay}\n"))
	x.saves(t, "around", flowOf("around", ask+pay, "  - {from_node: start, to_node: ask}\n  - {from_node: ask, to_node: pay, output_key: approve}\n"))
	start := func() answer { return x.call(t, "operator", "POST", "/workflows/around/execute", `{"revision":1}`) }
	id := want[api.ExecuteResponse](t, start(), http.StatusAccepted).ExecutionID
	x.reaches(t, id, engine.StatusSuccess)
	refused(t, x.call(t, "operator", "POST", "/executions/"+id+"/actions", api.ActionRequest{Action: "fork", NodeID: "pay"}), http.StatusConflict, "approval_required")
	want[api.WorkflowMetadata](t, x.call(t, "editor", "POST", "/workflows/around/deploy", nil), http.StatusOK)
	refused(t, start(), http.StatusConflict, "approval_required")
}
