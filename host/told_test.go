package host

import (
	"encoding/json"
	"fmt"
	"testing"

	"tandem/engine"
	"tandem/fault"
	"tandem/workflow"
)

// What is written by hand is what the encoder would have written.
func TestTold_WrittenByHand(t *testing.T) {
	t.Parallel()
	for _, told := range []Told{
		{What: ToldRan, Activation: "each[3]/n0", Time: 1 << 40},
		{What: ToldRan, Activation: "名<b>", Time: -5},
		{What: ToldRan, Activation: "n0"},
		{What: ToldRan, Time: 7},
		{What: ToldRan, Activation: "n0", Time: 7, Attempt: 2},
		{What: ToldRan, Activation: "n0", Time: 7, Detail: json.RawMessage(`{}`)},
		{What: ToldNode, Activation: "n0", Node: engine.NodeRunning, Attempt: 3, Generation: 1},
		{What: ToldNode, Activation: "n0", Node: engine.NodeWaitingInput, Ask: "n0#1", Purpose: "say \"yes\"", Ref: "r3.0"},
		{What: ToldWithdrawn, Ask: "n0#1"},
		{What: ToldExecution, Status: engine.StatusRunning},
		{What: ToldExecution, Status: engine.StatusError, Error: fault.New(fault.Internal, "no")},
	} {
		want, err := json.Marshal(told)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := told.append(nil); err != nil || string(got) != string(want) {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
}

// A row that tells of many nodes is shown beside what else is done. Who looks sees it all the same.
func TestShow_WideRow(t *testing.T) {
	t.Parallel()
	fold := NewFold(&workflow.Graph{Bodies: []workflow.Body{{}}}, nil, nil, Loader{})
	turn := fold.Begin(1000)
	for n := range 100 * wideRow {
		turn.row.Told = append(turn.row.Told, Told{What: ToldNode, Activation: engine.ActivationID(fmt.Sprint("n", n)), Node: engine.NodeRunning})
	}
	turn.row.Told = append(turn.row.Told, Told{What: ToldExecution, Status: engine.StatusRunning})
	turn.Show()
	if view := fold.View(); view.Status != engine.StatusRunning || view.Updated != 1000 {
		t.Errorf("the view is %s at %d", view.Status, view.Updated)
	}
	turn.Show()
	if fold.Begin(2000); fold.view.Status != engine.StatusRunning {
		t.Error("the next row begins before the last one is shown")
	}
}
