package host_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tandem/engine"
	"tandem/fault"
	"tandem/host"
)

func TestRow(t *testing.T) {
	t.Parallel()
	large := json.RawMessage(`"` + strings.Repeat("x", host.MaxInline) + `"`)
	row := host.Row{
		Seq: 7, Time: 1234,
		Facts:  []engine.Fact{engine.NodeCompleted{Attempt: engine.Attempt{Activation: "a", Attempt: 1}, Outputs: []engine.Output{{Key: "result", Ref: "r7.0"}}}},
		Values: []json.RawMessage{json.RawMessage(`{"x":1}`), large, nil},
		Told: []host.Told{
			{What: host.ToldNode, Activation: "b\"[2]/c", Generation: 1, Attempt: 2, Node: engine.NodeRunning},
			{What: host.ToldNode, Activation: "b", Node: engine.NodeRunning},
			{What: host.ToldNode, Activation: "d", Node: engine.NodeFailure, Error: fault.New(fault.Timeout, "late")},
			{What: host.ToldExecution, Status: engine.StatusRunning},
		},
	}
	kept := map[string]json.RawMessage{}
	keep := func(v json.RawMessage) (host.Blob, error) {
		kept["hash"] = v
		return host.Blob{Hash: "hash", Size: int64(len(v))}, nil
	}
	if err := row.Spill(keep); err != nil {
		t.Fatal(err)
	}
	body, err := row.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if len(body) > host.MaxInline || string(kept["hash"]) != string(large) {
		t.Errorf("the row has %d bytes and %d were kept beside it", len(body), len(kept["hash"]))
	}
	got, err := host.DecodeRow(7, 1234, body)
	if err != nil {
		t.Fatal(err)
	}
	want := row
	want.Stored = len(body)
	want.Values = []json.RawMessage{row.Values[0], json.RawMessage("null"), json.RawMessage("null")}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b *fault.Error) bool { return a == b || a != nil && b != nil && a.Error() == b.Error() })); diff != "" {
		t.Errorf("read back: %s", diff)
	}

	row.Large = nil
	refusal := errors.New("no room")
	if err := row.Spill(func(json.RawMessage) (host.Blob, error) { return host.Blob{}, refusal }); !errors.Is(err, refusal) {
		t.Errorf("the error was %v", err)
	}
}
