package app

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tandem/api"
	"tandem/engine"
)

// No more of an execution runs at once than its workflow says, and others are not kept waiting by it.
func TestSettings_MaxConcurrentActivations(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan string, 100), make(chan struct{})
	remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived <- strings.TrimPrefix(r.URL.Path, "/")
		<-release
		w.Header().Set("Content-Type", "application/json")
		if _, err := w.Write([]byte(`{}`)); err != nil {
			t.Log(err)
		}
	}))
	defer remote.Close()
	x := openSite(t)
	flow := func(id, settings string) string {
		text := "metadata: {id: " + id + ", name: " + id + ", description: d" + settings + "}\nnodes:\n  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}\n"
		edges := "connections:\n"
		for i := range 4 {
			text += fmt.Sprintf("  - {id: c%d, description: d, type: ACTION, subtype: HTTP_REQUEST, configurations: {method: GET, url: %q}}\n", i, remote.URL+"/"+id)
			edges += fmt.Sprintf("  - {from_node: start, to_node: c%d}\n", i)
		}
		return text + edges
	}
	x.save(t, flow("few", ", settings: {max_concurrent_activations: 2}"))
	x.save(t, flow("many", ""))
	var ids []string
	start := func(id string, want int) {
		ids = append(ids, x.execute(t, id, api.ExecuteRequest{}))
		for n := 0; n < want; {
			switch got := <-arrived; got {
			case id:
				n++
			default:
				t.Errorf("a call of %q came while %q was waited for", got, id)
			}
		}
	}
	start("few", 2)
	start("many", 4) // all of these began after the others of the first could have
	close(release)
	for _, id := range ids {
		x.reaches(t, id, engine.StatusSuccess)
	}
	if len(arrived) != 2 {
		t.Errorf("%d calls came after the first ones; 2 of the first execution were to", len(arrived))
	}
}

// A workflow that fails starts its error workflow, and says so.
func TestSettings_ErrorWorkflow(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.save(t, `
metadata: {id: mend, name: mend, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: note, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}, input_params: {what: "{{error.error_message}} in {{error.error_node_id}} of {{failed_execution.execution_id}}"}}
connections:
  - {from_node: start, to_node: note}
`)
	const breaks = `
metadata: {id: %[1]s, name: %[1]s, description: d, settings: {error_workflow: %[2]s}}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: n, description: d, type: FLOW, subtype: SORT, configurations: {sort_field: "{{execution.id}}["}}
connections:
  - {from_node: start, to_node: n}
`
	x.save(t, fmt.Sprintf(breaks, "breaks", "mend"))
	e, r := ran(t, x, "breaks", `{"data": [1]}`)
	if e.Status != "ERROR" {
		t.Fatalf("status %s", e.Status)
	}
	id := engine.ChildID(r.ExecutionID, "#error_workflow", 0)
	x.reaches(t, id, engine.StatusSuccess)
	mend := x.read(t, id)
	if mend.WorkflowID != "mend" || mend.TriggerInfo.TriggerType != "ERROR" || !strings.Contains(string(mend.Outputs["note"]), "in n of "+r.ExecutionID) {
		t.Errorf("it was started as %+v", mend)
	}
}
