package app

import (
	"strings"
	"testing"

	"tandem/engine"
	"tandem/store"
	"tandem/store/sqlite/sqlitetest"
)

// TestInstance_Memory runs memory nodes through the whole engine: what one execution stores the next one finds, and a child
// begins with a copy of its parent's scratch space.
func TestInstance_Memory(t *testing.T) {
	t.Parallel()
	dir := sqlitetest.Dir(t)
	i := openInstance(t, dir)
	closed := false
	defer func() {
		if !closed {
			i.Close()
		}
	}()
	i.saveText(t, `
metadata: {id: child, name: child, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: seen, description: d, type: MEMORY, subtype: WORKING_MEMORY, input_params: {operation: get, key: note}}
  - {id: own, description: d, type: MEMORY, subtype: WORKING_MEMORY, configurations: {operation: store}, input_params: {key: copy, value: "{{seen.outputs.operation_result}}"}}
connections:
  - {from_node: start, to_node: seen}
  - {from_node: seen, to_node: own}
`)
	i.saveText(t, `
metadata: {id: visits, name: visits, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: count, description: d, type: MEMORY, subtype: KEY_VALUE_STORE, configurations: {operation: increment}, input_params: {key: visits}}
  - {id: talk, description: d, type: MEMORY, subtype: CONVERSATION_BUFFER, configurations: {operation: add, session_id: "chat-{{start.outputs.chat}}"}, input_params: {message: "{{start.outputs.said}}"}}
  - {id: note, description: d, type: MEMORY, subtype: WORKING_MEMORY, configurations: {operation: store}, input_params: {key: note, value: parents}}
  - {id: sub, description: d, type: FLOW, subtype: SUB_WORKFLOW, configurations: {workflow_id: child, revision: latest, output_nodes: [seen]}}
  - {id: after, description: d, type: MEMORY, subtype: WORKING_MEMORY, configurations: {operation: get}, input_params: {key: note}}
connections:
  - {from_node: start, to_node: count}
  - {from_node: count, to_node: talk}
  - {from_node: talk, to_node: note}
  - {from_node: note, to_node: sub}
  - {from_node: sub, to_node: after}
`)
	run := func(input string) map[string]string {
		t.Helper()
		execution := i.startText(t, "visits", input)
		i.ends(t, execution, engine.StatusSuccess)
		outputs, err := i.Outputs(t.Context(), user, execution)
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]string{}
		for id, raw := range outputs {
			all[id] = string(raw)
		}
		return all
	}
	want := func(out map[string]string, id string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(out[id], part) {
				t.Errorf("%s gave %s, want %s", id, out[id], part)
			}
		}
	}
	out := run(`{"chat": 1, "said": "hello"}`)
	want(out, "after", `"operation_result":"parents"`)
	out = run(`{"chat": 1, "said": "again"}`)
	want(out, "after", `"operation_result":"parents"`, `"current_state":{"note":"parents"}`) // and nothing of the child's
	page, err := i.stores.Memories.Scopes(t.Context(), user, store.MemoryScopeQuery{Page: store.Page{Size: 50}})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, s := range page.Scopes {
		records, err := i.stores.Memories.Records(t.Context(), user, store.MemoryQuery{Scope: s.ID})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records.Records {
			found[s.Kind] += string(r.Body) + "\n"
		}
	}
	want(found, "KEY_VALUE_STORE", `{"value":2}`)
	want(found, "CONVERSATION_BUFFER", `"content":"hello"`, `"content":"again"`)
	if n := strings.Count(found["WORKING_MEMORY"], `"key":"copy","value":"parents"`); n != 2 {
		t.Errorf("%d children have found what their parent had left, want 2: %s", n, found["WORKING_MEMORY"])
	}
	// It is all on disk.
	closed = true
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	i = openInstance(t, dir)
	closed = false
	run(`{"chat": 2, "said": "third"}`)
	records, err := i.stores.Memories.Records(t.Context(), user, store.MemoryQuery{Scope: page.Scopes[len(page.Scopes)-1].ID})
	if err != nil || len(records.Records) == 0 {
		t.Errorf("nothing is left of %+v: %v", page.Scopes[len(page.Scopes)-1], err)
	}
}
