package benchmark

import (
	"encoding/json"
	"testing"

	"tandem/app"
)

// startBench is an instance with the workflow of the measurement of the API, which has run a few times.
func startBench(t testing.TB) func() {
	t.Helper()
	i, err := app.Open(t.Context(), app.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := (benchInstance{i}).save(t.Context(), apiDefinition(apiFlow, "  - {id: start, description: begins, type: TRIGGER, subtype: MANUAL}\n")); err != nil {
		t.Fatal(err)
	}
	ctx, p, inputs := t.Context(), app.Local(), json.RawMessage(apiInputs)
	start := func() {
		if _, err := i.Start(ctx, p, apiFlow, inputs); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		start()
	}
	return start
}

// BenchmarkStart is an execution of a trigger and five nodes that do nothing, from its start to its end on disk, without the network.
func BenchmarkStart(b *testing.B) {
	start := startBench(b)
	b.ReportAllocs()
	for b.Loop() {
		start()
	}
}

// maxStartAllocs is how many allocations such an execution takes at most. Who needs fewer lowers it.
const maxStartAllocs = 470

// It is not parallel: what is counted is what the whole process does.
func TestStart_Allocations(t *testing.T) {
	if n := testing.AllocsPerRun(200, startBench(t)); n > maxStartAllocs {
		t.Errorf("an execution takes %v allocations, at most %d are planned", n, maxStartAllocs)
	}
}
