package host

import (
	"encoding/json"
	"testing"

	"tandem/engine"
	"tandem/fault"
	"tandem/payload"
)

// TestTurn_Vouched: a row is written without a look at it if all of its values were looked at before and nothing else in it is JSON
// of others; such a row can be read again.
func TestTurn_Vouched(t *testing.T) {
	t.Parallel()
	done := engine.NodeCompleted{Attempt: engine.Attempt{Activation: "a\xff\x01<", Attempt: 1}, Outputs: []engine.Output{{Key: "k\xfe\x00\"", Ref: "r1.0"}}, Declared: []string{"\xff", "b"}}
	for name, c := range map[string]struct {
		row     Row
		checked int
		want    bool
	}{
		"Nothing":      {want: true},
		"Checked":      {Row{Facts: []engine.Fact{done}, Values: []json.RawMessage{json.RawMessage(`{"a":1}`)}, Told: []Told{{What: ToldNode, Activation: "b\xff", Node: engine.NodeRunning}}}, 1, true},
		"Started":      {Row{Facts: []engine.Fact{engine.ExecutionCreated{Execution: "x\xff"}, engine.ExecutionStarted{}}, Told: []Told{{What: ToldExecution, Status: engine.StatusRunning}}}, 0, true},
		"NotChecked":   {Row{Facts: []engine.Fact{done}, Values: []json.RawMessage{json.RawMessage(`{"a":`)}}, 0, false},
		"OneOfTwo":     {Row{Facts: []engine.Fact{done}, Values: []json.RawMessage{json.RawMessage(`1`), json.RawMessage(`{`)}}, 1, false},
		"OneTakenBack": {Row{Facts: []engine.Fact{done}, Values: []json.RawMessage{json.RawMessage(`{`)}}, 2, false},
		"OtherFact":    {Row{Facts: []engine.Fact{engine.NodeFailed{Error: fault.New(fault.Internal, "x")}}}, 0, false},
		"Detail":       {Row{Facts: []engine.Fact{done}, Told: []Told{{What: ToldDetail, Detail: json.RawMessage(`{"a":"\xff"}`)}}}, 0, false},
		"Large":        {Row{Facts: []engine.Fact{done}, Large: map[int]Blob{0: {}}}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			turn := &Turn{row: c.row}
			for range c.checked {
				turn.Vouch()
			}
			if got := turn.Vouched(); got != c.want {
				t.Fatalf("it is vouched for: %v", got)
			}
			if !c.want {
				return
			}
			body, err := c.row.Encode()
			if err != nil {
				t.Fatal(err)
			}
			if err := payload.Check(body, payload.Limits{}); err != nil {
				t.Errorf("%s: %v", body, err)
			}
			if _, err := DecodeRow(1, 1, body); err != nil {
				t.Errorf("%s: %v", body, err)
			}
		})
	}
}
