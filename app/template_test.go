package app

import (
	"encoding/json"
	"testing"

	"tandem/engine"
	"tandem/store"
	"tandem/store/sqlite/sqlitetest"
)

const templateFlow = `
metadata: {id: naps, name: naps, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: nap, description: d, type: FLOW, subtype: DELAY, configurations: {duration_seconds: 0.3}}
  - {id: say, description: d, type: CALL, subtype: EMPTY, configurations: {template_id: t}, input_params: {said: hello}}
connections:
  - {from_node: start, to_node: nap}
  - {from_node: nap, to_node: say}
`

// TestTemplate_StaysAsItWasAtTheStart lets an execution wait, so that it comes back from its journal, with its templates
// as they were when it began.
func TestTemplate_StaysAsItWasAtTheStart(t *testing.T) {
	t.Parallel()
	dir := sqlitetest.Dir(t)
	i := openInstance(t, dir)
	keep := func(known string) {
		t.Helper()
		if err := i.stores.Templates.Put(t.Context(), user, store.Template{ID: "t", Kind: "CALL.EMPTY", Name: "T", KnownParams: json.RawMessage(known)}); err != nil {
			t.Fatal(err)
		}
	}
	keep(`{"pass_through":true}`)
	i.saveText(t, templateFlow)
	execution := i.startText(t, "naps", `{}`)
	keep(`{"pass_through":false}`)
	i.ends(t, execution, engine.StatusSuccess)
	before, err := i.Outputs(t.Context(), user, execution)
	if err != nil {
		t.Fatal(err)
	}
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	i = openInstance(t, dir)
	defer func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	}()
	after, err := i.Outputs(t.Context(), user, execution)
	if err != nil {
		t.Fatal(err)
	}
	if string(before["say"]) != string(after["say"]) {
		t.Errorf("the output is %s, and %s after the next start", before["say"], after["say"])
	}
	var said struct{ Said string }
	if err := json.Unmarshal(after["say"], &said); err != nil || said.Said != "hello" {
		t.Errorf("the output is %s, %v; the template passes it through", after["say"], err)
	}
}
