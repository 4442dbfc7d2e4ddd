package app

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"tandem/api"
	"tandem/host"
)

// TestExamples_Added adds every example that comes with the binary, as the empty first page does, and runs those that are run by hand with
// their inputs.
func TestExamples_Added(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	list := want[api.Examples](t, x.call(t, "viewer", "GET", "/examples", nil), http.StatusOK).Examples
	var first []string
	for _, e := range list {
		if e.First {
			first = append(first, e.Name)
		}
	}
	if !slices.Equal(first, []string{"human_approval", "ai_agent_tools", "parcels"}) {
		t.Errorf("first are %v", first)
	}
	for _, e := range list {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			if e.Title.En == "" || e.Title.Zh == "" || e.Description.En == "" || e.Description.Zh == "" || e.WorkflowID != "" || e.Needs == nil {
				t.Errorf("it is told as %+v", e)
			}
			if got := x.call(t, "operator", "POST", "/examples/"+e.Name, nil); got.status != http.StatusForbidden {
				t.Errorf("an operator adds it: %d", got.status)
			}
			added := want[api.ExampleAdded](t, x.call(t, "editor", "POST", "/examples/"+e.Name, nil), http.StatusCreated)
			if entry := x.audited(t, "workflow.create", e.Name); entry.User != "editor" {
				t.Errorf("the audit log says %+v", entry)
			}
			again := want[api.ExampleAdded](t, x.call(t, "editor", "POST", "/examples/"+e.Name, nil), http.StatusOK)
			if added.Workflow.ID != e.Name || again.Workflow.ID != e.Name || again.Workflow.Revision != 1 {
				t.Errorf("added as %+v, then %+v", added.Workflow, again.Workflow)
			}
			if w := want[api.Workflow](t, x.call(t, "viewer", "GET", "/workflows/"+e.Name+"?include=source", nil), http.StatusOK); w.Source == "" {
				t.Error("its text was not kept")
			}
			if slices.Contains(e.Needs, "deploy") {
				want[api.WorkflowMetadata](t, x.call(t, "editor", "POST", "/workflows/"+e.Name+"/deploy", nil), http.StatusOK)
				return
			}
			if wordless := slices.Contains([]string{"parcels", "ai_agent_tools"}, e.Name); wordless != (e.InputsZH == nil) || string(added.InputsZH) != string(e.InputsZH) {
				t.Errorf("in Chinese it is run with %s", e.InputsZH)
			}
			for _, inputs := range []json.RawMessage{e.Inputs, e.InputsZH} {
				if inputs == nil {
					continue
				}
				id := want[api.ExecuteResponse](t, x.call(t, "editor", "POST", "/workflows/"+e.Name+"/execute", api.ExecuteRequest{Inputs: inputs}), http.StatusAccepted).ExecutionID
				status, asks := x.rested(t, id), slices.Contains(e.Needs, "person")
				if asks && status != "WAITING_FOR_HUMAN" || !asks && status != "SUCCESS" {
					t.Errorf("with %s it is %s: %+v", inputs, status, x.read(t, id).Error)
				}
				open := want[api.Interactions](t, x.call(t, "editor", "GET", "/interactions?mine=true&execution_id="+id, nil), http.StatusOK)
				if asks && len(open.Interactions) == 0 {
					t.Error("who has started it is not asked")
				}
			}
		})
	}
	refused(t, x.call(t, "editor", "POST", "/examples/none", nil), http.StatusNotFound, "not_found")
}

// rested waits until an execution has ended or asks somebody.
func (x *site) rested(t testing.TB, id string) string {
	t.Helper()
	sub := x.hub.Subscribe(host.Ref{Workspace: "default", Execution: id})
	defer sub.Close()
	for {
		if s := x.read(t, id).Status; slices.Contains([]string{"SUCCESS", "ERROR", "TIMEOUT", "CANCELED", "WAITING_FOR_HUMAN"}, s) {
			return s
		}
		if list, more, behind := sub.Next(); len(list) == 0 && !behind {
			select {
			case <-more:
			case <-t.Context().Done():
				t.Fatal("it does not come to rest")
			}
		}
	}
}
