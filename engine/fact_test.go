package engine_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tandem/engine"
	"tandem/fault"
)

// What is written by hand is what the encoder writes, and reads back as what it was.
func TestAppendFact(t *testing.T) {
	t.Parallel()
	odd := "n <\"&\\\u2028\x01é"
	for _, fact := range []engine.Fact{
		engine.ExecutionStarted{},
		engine.NodeCompleted{Attempt: engine.Attempt{Activation: "a", Attempt: 1}},
		engine.NodeCompleted{
			Attempt: engine.Attempt{Activation: engine.ActivationID(odd), Generation: 3, Attempt: 2},
			Outputs: []engine.Output{{Key: "result", Ref: "r1.0"}, {Key: odd}},
			Settled: []engine.Verdict{{Edge: 4, Live: true, Ref: "r1.1"}, {Edge: 5}, {Edge: 6, Error: fault.New(fault.ConversionFailed, odd)}},
		},
		engine.NodeCompleted{Attempt: engine.Attempt{Activation: "a", Attempt: 1}, Reply: json.RawMessage(`{"x":1}`)},
		engine.NodeFailed{Attempt: engine.Attempt{Activation: "a", Attempt: 1}, Error: fault.New(fault.NetworkError, "no route")},
	} {
		got, err := engine.AppendFact([]byte("before"), fact)
		if err != nil {
			t.Fatal(err)
		}
		got = got[len("before"):]
		plain, err := json.Marshal(fact)
		if err != nil {
			t.Fatal(err)
		}
		var stored struct {
			Fact json.RawMessage `json:"fact"`
		}
		if err := json.Unmarshal(got, &stored); err != nil || string(stored.Fact) != string(plain) {
			t.Errorf("got  %s\nwant %s (%v)", stored.Fact, plain, err)
		}
		back, err := engine.DecodeFact(got)
		if err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(back)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(plain), string(again)); diff != "" {
			t.Errorf("read back: %s", diff)
		}
	}
	if _, err := engine.AppendFact(nil, nil); err == nil {
		t.Error("no fact was encoded")
	}
	if _, err := engine.DecodeFact([]byte(`{"type":"from_the_future","fact":{}}`)); err == nil {
		t.Error("a fact of an unknown type was read")
	}
}
