package dataflow

import (
	"bytes"
	"encoding/json"
	"testing"
)

// editedLayers are layers of a new journal with a node that has left an object, one that has left a text, and an open iteration.
func editedLayers(t *testing.T, edits ...Edit) *Layers {
	t.Helper()
	l, err := New(Start{ExecutionID: "x", WorkflowID: "w", Initial: json.RawMessage(`{"amount":9,"to":"a"}`), Trigger: json.RawMessage(`{"amount":9}`)})
	if err != nil {
		t.Fatal(err)
	}
	sync := func(seq uint64, scope, node, output string, names ...string) {
		if _, err := l.Sync(Step{Seq: seq, Scope: scope, NodeID: node, NodeName: node, Output: map[string]json.RawMessage{"result": json.RawMessage(output)}, OutputParams: names}); err != nil {
			t.Fatal(err)
		}
	}
	sync(1, "", "quote", `{"amount":9,"total":10}`)
	sync(2, "", "plan", `"pay 9"`)
	sync(3, "", "hidden", `{"amount":9,"secret":9}`, "amount")
	for i, path := range []string{"each[0]", "each[1]"} {
		if err := l.OpenScope(path, uint64(4+i), map[string]json.RawMessage{"item": json.RawMessage(`{"amount":9}`), "index": json.RawMessage("0")}); err != nil {
			t.Fatal(err)
		}
		sync(uint64(4+i), path, "in", `{"amount":9}`)
	}
	l.Rebase()
	l.Retitle("y")
	for i := range edits {
		edits[i].By, edits[i].Fork = "ann", "y"
	}
	edits = append(edits, l.EditedVariables(edits)...)
	if err := l.Edit(edits, func(name string) bool { return name == "coming" }); err != nil {
		t.Fatal(err)
	}
	// What was edited is kept as it is.
	snapshot, err := l.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	again, err := RestoreLayers(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	if other, err := again.Snapshot(); err != nil || !bytes.Equal(snapshot, other) {
		t.Fatalf("the snapshot of what a snapshot gives is another one (%v)", err)
	}
	return again
}

func TestEdit(t *testing.T) {
	t.Parallel()
	amount := Edit{Name: "amount", Value: json.RawMessage("1")}
	inside := Edit{Name: "amount", Value: json.RawMessage("1"), Scope: "each[0]"}
	for name, c := range map[string]struct {
		edit  Edit
		scope string
		want  map[string]string // by path; "" is nothing
		by    map[string]bool   // whether it was edited
	}{
		"by name": {amount, "", map[string]string{
			"amount": "1", "trigger.amount": "1", "quote.amount": "1", "quote.outputs.amount": "1", "quote.outputs.result.amount": "1", "quote_amount": "1", "hidden.amount": "1",
			"to": `"a"`, "quote.total": "10", "quote": `{"amount":1,"total":10}`, "execution.id": `"y"`,
		}, map[string]bool{"amount": true, "trigger.amount": true, "quote.amount": true, "quote.outputs.result.amount": true, "quote.total": false, "to": false}},
		"other iterations keep theirs": {inside, "each[1]", map[string]string{"in.amount": "9", "item.amount": "9", "quote.amount": "1"}, nil},
		"the iteration itself": {inside, "each[0]", map[string]string{"in.amount": "1", "item.amount": "1", "trigger.amount": "1", "amount": "1"},
			map[string]bool{"in.amount": true, "item.amount": true}},
		"a variable": {Edit{Name: "item", Value: json.RawMessage(`{"amount":2}`), Scope: "each[0]", Within: "each[0]"}, "each[0]",
			map[string]string{"item.amount": "2", "amount": "9", "trigger.amount": "9"}, map[string]bool{"item.amount": true}},
		"a variable elsewhere":      {Edit{Name: "item", Value: json.RawMessage(`{"amount":2}`), Scope: "each[0]", Within: "each[0]"}, "each[1]", map[string]string{"item.amount": "9"}, nil},
		"not synced":                {Edit{Name: "secret", Value: json.RawMessage("1")}, "", map[string]string{"secret": "1", "hidden.secret": "1"}, nil},
		"new":                       {Edit{Name: "new", Value: json.RawMessage("1"), Added: true}, "", map[string]string{"new": "1"}, map[string]bool{"new": true}},
		"of a node yet to come":     {Edit{Name: "coming", Value: json.RawMessage("1"), Added: true}, "", map[string]string{"coming": ""}, nil},
		"a node by its name":        {Edit{Name: "quote", Value: json.RawMessage(`{"amount":1}`), Added: true}, "", map[string]string{"quote.amount": "1", "quote.total": "", "quote_total": "", "quote": `{"amount":1}`}, nil},
		"a field named like a node": {Edit{Name: "quote", Value: json.RawMessage(`{"amount":1}`)}, "", map[string]string{"quote.amount": "1", "quote.total": "10"}, nil},
		"the trigger":               {Edit{Name: "trigger", Value: json.RawMessage(`{"amount":1}`), Added: true}, "", map[string]string{"trigger.amount": "1", "amount": "9"}, nil},
		"a whole output": {Edit{Name: DataKey, Value: json.RawMessage(`"pay 1"`), Was: json.RawMessage(`"pay 9"`), Nodes: []string{"plan"}}, "",
			map[string]string{"plan": `"pay 1"`, "plan.output": `"pay 1"`}, map[string]bool{"plan": true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := editedLayers(t, c.edit)
			for path, want := range c.want {
				got, source, ok, err := l.Lookup(View{Scope: c.scope, AsOf: 9}, path)
				if err != nil || ok != (want != "") || string(got) != want {
					t.Errorf("%s is %s (%v, %v), want %s", path, got, ok, err, want)
				}
				if edited, told := c.by[path]; told && (source.EditedBy == "ann" && source.EditedIn == "y") != edited {
					t.Errorf("%s comes from %+v", path, source)
				}
			}
		})
	}
}

// What is written after the edits is newer.
func TestEdit_NewerOutputsWin(t *testing.T) {
	t.Parallel()
	l := editedLayers(t, Edit{Name: "amount", Value: json.RawMessage("1")})
	if _, err := l.Sync(Step{Seq: 2, NodeID: "quote", NodeName: "quote", Output: map[string]json.RawMessage{"result": json.RawMessage(`{"amount":5}`)}}); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"amount": "5", "quote.amount": "5", "quote_amount": "5", "trigger.amount": "1", "hidden.amount": "1"} {
		if got, source, _, err := l.Lookup(View{AsOf: 9}, path); err != nil || string(got) != want || (source.EditedBy == "ann") != (want == "1") {
			t.Errorf("%s is %s from %+v (%v)", path, got, source, err)
		}
	}
}

func TestRestoreLayers_RefusesMarksOfNothing(t *testing.T) {
	t.Parallel()
	l := editedLayers(t)
	raw, err := l.Snapshot()
	if err != nil || !bytes.HasPrefix(raw, []byte(snapshotHeader)) {
		t.Fatalf("layers without edits are written as %.20q (%v)", raw, err)
	}
}
