package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"tandem/api"
	"tandem/engine"
)

// What a loop hands to the workflows that its body runs, and these to others, can be read by every node that needs it, and is written once.
func TestSizes_ChildrenAreGivenWhatIsThere(t *testing.T) {
	t.Parallel()
	dir := ""
	x := openSiteAs(t, func(o *Options, _ string) { dir = o.Dir })
	x.save(t, `
metadata: {id: last, name: last, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: end, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
connections:
  - {from_node: start, to_node: end, conversion_function: "{more: more, length: len(doc.text), item: item}"}
`)
	x.save(t, `
metadata: {id: child, name: child, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: check, description: d, type: FLOW, subtype: IF, configurations: {condition_expression: "doc.id == 'ann' && trigger.doc.id == doc.id"}}
  - {id: last, description: d, type: FLOW, subtype: SUB_WORKFLOW, configurations: {workflow_id: last, revision: latest}, input_params: {more: "{{doc.id}} {{trigger.doc.id}} {{start.doc.id}}"}}
  - {id: end, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
connections:
  - {from_node: start, to_node: check}
  - {from_node: check, to_node: last, output_key: "true"}
  - {from_node: last, to_node: end, conversion_function: "outputs.end"}
`)
	x.save(t, guardFlow("parent", "", []string{guardStart, "each FLOW.FOR_EACH {items_path: orders}", "body FLOW.SUB_WORKFLOW {workflow_id: child, revision: latest}"},
		[]string{"start each", "each body iteration", "body each"}))
	text := strings.Repeat("x", 100_000)
	doc := `{"id":"ann","text":"` + text + `"}`
	files := func(count int) (blobs int, execution string) {
		t.Helper()
		before := len(blobFiles(t, dir))
		e, r := ran(t, x, "parent", `{"doc":`+doc+`,"orders":[`+strings.TrimSuffix(strings.Repeat("1,", count), ",")+`]}`)
		if e.Status != "SUCCESS" {
			t.Fatalf("status %s, %+v", e.Status, e.Error)
		}
		return len(blobFiles(t, dir)) - before, r.ExecutionID
	}
	few, id := files(2)
	if many, _ := files(6); many > few+3 { // what the longer list itself needs
		t.Errorf("%d files were written for 2 children and %d for 6", few, many)
	}
	one := want[api.NodeExecution](t, x.call(t, "viewer", "GET", "/executions/"+id+"/activations/"+url.PathEscape("each[1]/body"), nil), http.StatusOK)
	kid := engine.NthChildID(id, "each[1]/body", 0, 0)
	if got := string(one.OutputData["result"]); got != fmt.Sprintf(`{"execution_id":%q,"status":"SUCCESS","outputs":{"end":{"item":1,"length":100000,"more":"ann ann ann"}}}`, kid) {
		t.Errorf("the child came to %.400s", got)
	}
	if got := string(one.InputData); !strings.HasPrefix(got, `{"doc":`+doc+`,`) {
		t.Errorf("the input of the node is shown as %.200s", got)
	}
	e := want[api.GetExecution](t, x.call(t, "viewer", "GET", "/executions/"+kid, nil), http.StatusOK).Execution
	var began struct {
		Size int
	}
	if err := json.Unmarshal(e.TriggerInfo.TriggerData, &began); err != nil || began.Size < len(doc) {
		t.Errorf("the child began with %.200s, %v", e.TriggerInfo.TriggerData, err)
	}
	start := want[api.NodeExecution](t, x.call(t, "viewer", "GET", "/executions/"+kid+"/activations/start", nil), http.StatusOK)
	if got := string(start.InputData); !strings.HasPrefix(got, `{"doc":`+doc+`,`) {
		t.Errorf("the input of its trigger is shown as %.200s", got)
	}
	if got := string(start.OutputData["result"]); !strings.HasPrefix(got, `{"doc":{"$blob":"`) || !strings.Contains(got, `"execution_id":"`+kid+`"`) {
		t.Errorf("its trigger has put out %.300s", got)
	}
	context := x.call(t, "viewer", "GET", "/executions/"+kid+"/context", nil)
	if !strings.Contains(string(context.body), text) {
		t.Errorf("the data of the child lacks the large field: %.300s", context.body)
	}
}

// What joins branches reads the lists that it is told of; a large field beside these is found by placeholders, and is that of the branch which brings it last.
func TestSizes_JoinsReadWhatTheyAreTold(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	flow := func(id, other string) string {
		return `
metadata: {id: ` + id + `, name: ` + id + `, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: each, description: d, type: FLOW, subtype: FOR_EACH, configurations: {items_path: orders}}
  - {id: a, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
  - {id: b, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}, input_params: ` + other + `}
  - {id: merge, description: d, type: FLOW, subtype: MERGE, configurations: {items_path: few, merge_strategy: by_key, merge_key: "{{doc.id}}{{inputs.a.doc.id}}"}}
connections:
  - {from_node: start, to_node: each}
  - {from_node: each, to_node: a, output_key: iteration}
  - {from_node: each, to_node: b, output_key: iteration}
  - {from_node: a, to_node: merge}
  - {from_node: b, to_node: merge}
  - {from_node: merge, to_node: each}
`
	}
	text := strings.Repeat("x", 100_000)
	doc := `{"id":"k","text":"` + text + `"}`
	for id, c := range map[string]struct{ other, key string }{
		"same":  {"{}", "kk"},
		"other": {`{doc: {id: z}}`, "zk"},
	} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			x.save(t, flow(id, c.other))
			e, r := ran(t, x, id, `{"doc":`+doc+`,"orders":[1,2],"few":[{"kk":1,"zk":1,"n":1},{"kk":1,"zk":2,"n":2}]}`)
			if e.Status != "SUCCESS" {
				t.Fatalf("status %s, %+v", e.Status, e.Error)
			}
			one := want[api.NodeExecution](t, x.call(t, "viewer", "GET", "/executions/"+r.ExecutionID+"/activations/"+url.PathEscape("each[1]/merge"), nil), http.StatusOK)
			merged := map[string]string{"kk": `{"merged_data":[{"kk":1,"zk":2,"n":2}],`, "zk": `{"merged_data":[{"kk":1,"zk":1,"n":1},{"kk":1,"zk":2,"n":2}],`}[c.key]
			if got := string(one.OutputData["result"]); !strings.HasPrefix(got, merged) {
				t.Errorf("merged by %s it is %.300s", c.key, got)
			}
			if got := string(one.InputData); !strings.Contains(got, `"inputs":{"a":{"doc":`+doc+`,`) {
				t.Errorf("the input is shown as %.300s", strings.ReplaceAll(got, text, "…"))
			}
		})
	}
}

// blobFiles are the files of large values.
func blobFiles(t testing.TB, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "blobs", "*", "*", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}
