package benchmark

import (
	"testing"

	"tandem/app"
)

// BenchmarkFanOut is an execution of one node, 1,000 side by side after it and one after them all, to its end on disk.
func BenchmarkFanOut(b *testing.B) {
	benchmarkWorkflow(b, fanOutID, benchFanOut(fanOutID, benchFanned))
}

// BenchmarkChain is an execution of 100 nodes one after the other, each on disk before the next begins.
func BenchmarkChain(b *testing.B) { benchmarkWorkflow(b, chainID, benchChain(chainID, 100)) }

func benchmarkWorkflow(b *testing.B, id string, definition []byte) {
	i, err := app.Open(b.Context(), app.Options{Dir: b.TempDir(), NoRunAhead: true})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := i.Close(); err != nil {
			b.Error(err)
		}
	}()
	if err := (benchInstance{i}).save(b.Context(), definition); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := (benchInstance{i}).execute(b.Context(), id, nil); err != nil {
			b.Fatal(err)
		}
	}
}
