package app

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"tandem/api"
	"tandem/engine"
	"tandem/workflow"
)

// TestInventory_Settings shows of every setting of a workflow what it changes; see inventory_test.go.
func TestInventory_Settings(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t)
	const (
		fine  = "type: CALL, subtype: EMPTY, configurations: {pass_through: true}"
		names = `type: CALL, subtype: EMPTY, configurations: {pass_through: true}, input_params: {x: "a {{nothing}}"}`
		naps  = "type: FLOW, subtype: DELAY, configurations: {duration_seconds: 1}"
		fails = `type: FLOW, subtype: SORT, configurations: {sort_field: "{{execution.id}}["}`
		asks  = "type: HUMAN_IN_THE_LOOP, subtype: IN_APP_APPROVAL, configurations: {title: t}"
		calls = "type: ACTION, subtype: HTTP_REQUEST, configurations: {url: $U/meet, response_type: text}"
	)
	for _, id := range []string{"mends", "tells"} {
		w.save(t, "metadata: {id: "+id+", name: n, description: d}\nnodes:\n  - {id: "+id+", name: n, description: d, "+fine+"}\nconnections: []\n")
	}
	proofs := map[string]struct{ node, one, other string }{
		"timeout_seconds":            {node: naps, one: "0.05", other: "60"},
		"on_unresolved":              {node: names, one: "keep", other: "error"},
		"error_workflow":             {node: fails, one: "mends", other: "tells"},
		"max_concurrent_activations": {node: calls, one: "1", other: "2"},
		"language":                   {node: asks, one: "en", other: "zh"},
	}
	for field := range reflect.TypeFor[workflow.Settings]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		p, ok := proofs[name]
		if !ok {
			t.Errorf("nothing shows what the setting %s does; add an entry", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ends := func(value string) string { // two nodes at the same time
				key := fmt.Sprintf("run%dx", w.runs.Add(1))
				w.mu.Lock()
				w.met[key] = make(chan struct{})
				w.mu.Unlock()
				node := strings.ReplaceAll(p.node, "$U", w.service.URL+"/"+key)
				w.save(t, fmt.Sprintf(`{metadata: {id: %s, name: n, description: d, settings: {%s: %s}}, nodes: [{id: start, name: start, description: d, type: TRIGGER, subtype: MANUAL}, {id: n, name: n, description: d, %s}, {id: m, name: m, description: d, %s}],
					connections: [{from_node: start, to_node: n}, {from_node: start, to_node: m}]}`, key, name, value, node, node))
				id := w.execute(t, key, api.ExecuteRequest{Inputs: json.RawMessage(`{"data": [1]}`)})
				w.rests(t, key, id, false)
				if name == "error_workflow" {
					child := engine.ChildID(id, "#error_workflow", 0)
					w.reaches(t, child, engine.StatusSuccess)
					return w.read(t, child).WorkflowID
				}
				return w.tell(t, key, id, false)
			}
			one, again, other := ends(p.one), ends(p.one), ends(p.other)
			if one != again {
				t.Fatalf("two runs of the same differ, so that the setting would not be noticed:\n%s\n%s", one, again)
			}
			if one == other {
				t.Errorf("with %s and with %s it ends with %s", p.one, p.other, one)
			}
		})
	}
}
