package host

import (
	"encoding/json"
	"testing"

	"tandem/engine"
	"tandem/fault"
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
