package dataflow_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"tandem/dataflow"
)

// parkedLayers is an execution of many nodes with outputs of 1 KB in five fields. It returns the bytes of all outputs.
func parkedLayers(tb testing.TB, nodes int) (*dataflow.Layers, int) {
	tb.Helper()
	l := newLayers(tb, dataflow.Start{ExecutionID: "x1", WorkflowID: "w1", Initial: json.RawMessage(`{"project_id":"proj_001"}`)})
	size := 0
	for i := range nodes {
		out := fmt.Sprintf(`{"id":%d,"ok":true,"rows":[1.5,2.25,{"at":"2026-01-01"}],"note":"row %d","text":"`, i, i)
		out += strings.Repeat("x", 1022-len(out)) + `"}`
		size += len(out)
		sync(tb, l, dataflow.Step{Seq: uint64(i + 1), Activation: fmt.Sprintf("act_%d", i), NodeID: fmt.Sprintf("node_%d", i),
			NodeName: fmt.Sprintf("Node %d", i), ToolID: "http", Output: payload(out)})
	}
	return l, size
}

func BenchmarkSnapshot(b *testing.B) {
	l, size := parkedLayers(b, 1000)
	l.Forget()
	data := snapshot(b, l)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.Snapshot(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(data))/float64(size), "x_data")
}

func BenchmarkRestoreLayers(b *testing.B) {
	l, size := parkedLayers(b, 1000)
	l.Forget()
	data := snapshot(b, l)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := dataflow.RestoreLayers(data); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReplayLayers applies the same execution row by row, which is what a snapshot saves; reading and decoding the
// rows of the journal would come on top.
func BenchmarkReplayLayers(b *testing.B) {
	var size int
	b.ReportAllocs()
	for b.Loop() {
		_, size = parkedLayers(b, 1000)
	}
	b.SetBytes(int64(size))
}
