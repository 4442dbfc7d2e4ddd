package app

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"tandem/api"
	"tandem/engine"
)

// Every node that fails leaves a line, whatever fails it and whatever becomes of the failure.
func TestLogs_EveryFailedNode(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	const head = `
metadata: {id: NAME, name: NAME, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
`
	const fails = `type: ACTION, subtype: RUN_CODE, configurations: {language: javascript, code: "() => { throw new Error('no') }"`
	for name, c := range map[string]struct {
		rest   string
		status engine.Status
		lines  []string
	}{
		"conversion": {`  - {id: out, description: d, type: CALL, subtype: EMPTY}
connections:
  - {from_node: start, to_node: out, conversion_function: "x => { console.log('seen'); throw new Error('no') }"}
`, engine.StatusError, []string{"INFO start: seen", "ERROR out: the node failed: connection \"start-result-out\": line 1: Error: no"}},
		"placeholder": {`  - {id: out, description: d, type: CALL, subtype: EMPTY, input_params: {x: "{{start.outputs.nothing}}"}}
connections:
  - {from_node: start, to_node: out}
`, engine.StatusError, []string{"ERROR out: the node failed: "}},
		"handled": {`  - {id: out, description: d, ` + fails + `, on_error: continue}}
connections:
  - {from_node: start, to_node: out}
`, engine.StatusSuccess, []string{"ERROR out: the node failed: line 1: Error: no"}},
		"iterations": {`  - {id: each, description: d, type: FLOW, subtype: FOR_EACH, configurations: {items_path: list, break_on_error: false}}
  - {id: out, description: d, ` + fails + `}}
connections:
  - {from_node: start, to_node: each}
  - {from_node: each, to_node: out, output_key: iteration}
`, engine.StatusSuccess, []string{"ERROR out: the node failed: line 1: Error: no", "ERROR out: the node failed: line 1: Error: no"}},
		"retried": {`  - {id: out, description: d, type: ACTION, subtype: HTTP_REQUEST, configurations: {method: GET, url: "http://127.0.0.1:1/", max_retries: 1}}
connections:
  - {from_node: start, to_node: out}
`, engine.StatusError, []string{"WARN out: an attempt failed and is made again: ", "ERROR out: the node failed: "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x.save(t, strings.ReplaceAll(head, "NAME", name)+c.rest)
			id := x.execute(t, name, api.ExecuteRequest{Inputs: json.RawMessage(`{"list":[1,2]}`)})
			x.reaches(t, id, c.status)
			got := x.told(t, id)
			if !slices.EqualFunc(got, c.lines, strings.HasPrefix) {
				t.Errorf("the log has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.lines, "\n"))
			}
		})
	}
}
