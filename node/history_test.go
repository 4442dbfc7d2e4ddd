package node_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tandem/dataflow"
	"tandem/node"
)

func TestHistory(t *testing.T) {
	t.Parallel()
	c := dataflow.Context{StepResults: map[string]dataflow.StepResult{
		"c": {StepID: "c", ToolID: "K.C", IsSuccess: true, Ordinal: 9, Output: json.RawMessage(`3`)},
		"a": {StepID: "a", ToolID: "K.A", IsSuccess: true, Ordinal: 1, Output: json.RawMessage(`1`)},
		"b": {StepID: "b", ToolID: "K.B", Ordinal: 5, ErrorMessage: "no"},
	}}
	want := []node.Past{
		{Step: 2, NodeID: "b", NodeType: "K.B", Status: "failed", Output: json.RawMessage(`null`), Error: "no"},
		{Step: 3, NodeID: "c", NodeType: "K.C", Status: "completed", Output: json.RawMessage(`3`)},
	}
	if diff := cmp.Diff(want, node.History(c, 2)); diff != "" {
		t.Error(diff)
	}
	if got := node.History(c, 0); len(got) != 0 {
		t.Errorf("none was asked for: %v", got)
	}
	if got := node.History(c, 100); len(got) != 3 || got[0].NodeID != "a" {
		t.Errorf("all: %v", got)
	}
}
