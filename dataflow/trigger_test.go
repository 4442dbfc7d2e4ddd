package dataflow

import (
	"encoding/json"
	"strings"
	"testing"
)

// What a trigger says of the start is read like what it was given; an input of the same name stays readable.
func TestTrigger(t *testing.T) {
	t.Parallel()
	started := func(t *testing.T, kind string) *Layers {
		t.Helper()
		l, err := New(Start{ExecutionID: "x", WorkflowID: "w", Initial: json.RawMessage(`{"user_id":"boss","n":1}`), Trigger: json.RawMessage(`{"user_id":"boss","n":1,"left":[2]}`)})
		if err != nil {
			t.Fatal(err)
		}
		output := map[string]json.RawMessage{"result": json.RawMessage(`{"n":1,"trigger_time":"2030-01-01T00:00:00Z","trigger_message":"Go","user_id":"ada","deep":{"a":[7]}}`)}
		if _, err := l.Sync(Step{Seq: 3, NodeID: "start", NodeName: "Start", ToolID: kind, Output: output}); err != nil {
			t.Fatal(err)
		}
		return l
	}
	for name, c := range map[string]struct {
		kind string
		asOf uint64
		want map[string]string
	}{
		"the trigger has run": {"TRIGGER.MANUAL", 3, map[string]string{
			"trigger.trigger_time": `"2030-01-01T00:00:00Z"`, "trigger.trigger_message": `"Go"`, "trigger.user_id": `"boss"`, "trigger.n": "1", "trigger.left.0": "2", "trigger.deep.a[0]": "7", "trigger.nope": "", "start.user_id": `"ada"`,
			"trigger": `{"user_id":"boss","n":1,"left":[2],"deep":{"a":[7]},"trigger_message":"Go","trigger_time":"2030-01-01T00:00:00Z"}`,
		}},
		"it has not":          {"TRIGGER.MANUAL", 2, map[string]string{"trigger.trigger_time": "", "trigger.user_id": `"boss"`, "trigger": `{"user_id":"boss","n":1,"left":[2]}`}},
		"it is not a trigger": {"FLOW.DELAY", 3, map[string]string{"trigger.trigger_time": "", "trigger.user_id": `"boss"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := started(t, c.kind)
			snapshot, err := l.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			again, err := RestoreLayers(snapshot)
			if err != nil {
				t.Fatal(err)
			}
			for path, want := range c.want {
				for _, layers := range []*Layers{l, again} {
					raw, source, _, err := layers.Lookup(View{AsOf: c.asOf}, path)
					if err != nil || string(raw) != want || want != "" && strings.HasPrefix(path, "trigger") && source.Layer != LayerTrigger {
						t.Errorf("%s is %s of %v (%v), not %s", path, raw, source, err, want)
					}
				}
			}
		})
	}
	l := started(t, "TRIGGER.MANUAL")
	if err := l.Edit([]Edit{{Name: "user_id", Value: json.RawMessage(`"bob"`), By: "ann", Fork: "y"}, {Name: "trigger_message", Value: json.RawMessage(`"Gone"`), By: "ann", Fork: "y"}}, func(string) bool { return false }); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"trigger.user_id": `"bob"`, "trigger.trigger_message": `"Gone"`} {
		if raw, _, _, err := l.Lookup(View{AsOf: 9}, path); err != nil || string(raw) != want {
			t.Errorf("after an edit %s is %s (%v), not %s", path, raw, err, want)
		}
	}
}
