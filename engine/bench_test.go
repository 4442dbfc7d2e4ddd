package engine_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"tandem/engine"
	"tandem/workflow"
)

// chainGraph is a chain of n nodes.
func chainGraph(b *testing.B, n int) *workflow.Graph {
	b.Helper()
	def := &workflow.Definition{Metadata: workflow.Metadata{Name: "chain"}}
	for i := range n {
		id := fmt.Sprintf("n%d", i)
		def.Nodes = append(def.Nodes, workflow.Node{ID: id, Name: id, Type: "TEST", Subtype: "STEP", Configurations: json.RawMessage("{}")})
		if i > 0 {
			def.Connections = append(def.Connections, workflow.Connection{ID: fmt.Sprintf("c%d", i), FromNode: fmt.Sprintf("n%d", i-1), ToNode: id, OutputKey: "result"})
		}
	}
	return compile(b, def)
}

func compile(b *testing.B, def *workflow.Definition) *workflow.Graph {
	b.Helper()
	g, problems := workflow.Compile(def, testKinds{})
	if g == nil {
		b.Fatalf("compile: %v", problems)
	}
	return g
}

// driver applies facts without the checks of a sim, which would be what is measured.
type driver struct {
	b     *testing.B
	state *engine.State
	seq   uint64
}

func newDriver(b *testing.B, g *workflow.Graph) *driver {
	b.Helper()
	d := &driver{b: b, state: engine.New(g, nil)}
	d.apply(engine.ExecutionCreated{Semantics: engine.Semantics, Execution: "exec", Revision: g.Hash})
	return d
}

func (d *driver) apply(f engine.Fact) []engine.Command {
	d.seq++
	commands, err := d.state.Apply(engine.Event{Seq: d.seq, Time: 1, Fact: f})
	if err != nil {
		d.b.Fatal(err)
	}
	return commands
}

// runChains runs as many executions of a chain as make 100,000 steps, so that all sizes are measured alike, and returns
// how many events it applied.
func runChains(b *testing.B, g *workflow.Graph, n int) (applied uint64) {
	outputs := []engine.Output{{Key: "result", Ref: "e1.result"}}
	for range 100_000 / n {
		d := newDriver(b, g)
		commands := d.apply(engine.ExecutionStarted{})
		for d.state.Status() == engine.StatusRunning {
			commands = d.apply(engine.NodeCompleted{Attempt: commands[0].(engine.RunNode).Attempt, Outputs: outputs})
		}
		applied += d.seq
	}
	return applied
}

// BenchmarkApply_Chain shows that a step costs the same in a short and in a very long workflow.
func BenchmarkApply_Chain(b *testing.B) {
	for _, n := range []int{10, 1_000, 100_000} {
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			g := chainGraph(b, n)
			applied := uint64(0)
			b.ReportAllocs()
			for b.Loop() {
				applied += runChains(b, g, n)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(applied), "ns/apply")
		})
	}
}

// BenchmarkApply_ChainRatio runs the three chains in turns and reports how much dearer the dearest step is than the
// cheapest.
func BenchmarkApply_ChainRatio(b *testing.B) {
	sizes := []int{10, 1_000, 100_000}
	graphs := make([]*workflow.Graph, len(sizes))
	for i, n := range sizes {
		graphs[i] = chainGraph(b, n)
	}
	spent := make([]time.Duration, len(sizes))
	applied := make([]uint64, len(sizes))
	for b.Loop() {
		for i, n := range sizes {
			start := time.Now()
			applied[i] += runChains(b, graphs[i], n)
			spent[i] += time.Since(start)
		}
	}
	cost := make([]float64, len(sizes))
	for i := range sizes {
		cost[i] = float64(spent[i].Nanoseconds()) / float64(applied[i])
	}
	b.ReportMetric(slices.Max(cost)/slices.Min(cost), "dearest/cheapest")
}

// BenchmarkApply_Loop runs a loop of ten million iterations and reports what stays in memory.
func BenchmarkApply_Loop(b *testing.B) {
	const iterations = 10_000_000
	def := &workflow.Definition{
		Metadata: workflow.Metadata{Name: "loop"},
		Nodes: []workflow.Node{
			{ID: "loop", Name: "loop", Type: "TEST", Subtype: "LOOP", Configurations: json.RawMessage("{}")},
			{ID: "body", Name: "body", Type: "TEST", Subtype: "STEP", Configurations: json.RawMessage("{}")},
		},
		Connections: []workflow.Connection{
			{ID: "c1", FromNode: "loop", ToNode: "body", OutputKey: "iteration"},
			{ID: "c2", FromNode: "body", ToNode: "loop", OutputKey: "result"},
		},
	}
	g := compile(b, def)
	outputs := []engine.Output{{Key: "result", Ref: "e1.result"}}
	b.ReportAllocs()
	var peak uint64
	var size int
	for b.Loop() {
		d := newDriver(b, g)
		commands := d.apply(engine.ExecutionStarted{})
		commands = d.apply(engine.ScopeOpened{Attempt: commands[0].(engine.RunNode).Attempt, Count: iterations})
		for i := range iterations {
			if i%1_000_000 == 500_000 {
				var m runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&m)
				peak = max(peak, m.HeapAlloc)
				snap, err := d.state.Snapshot()
				if err != nil {
					b.Fatal(err)
				}
				size = max(size, len(snap))
			}
			commands = d.apply(engine.NodeCompleted{Attempt: lastRun(b, commands).Attempt, Outputs: outputs})
		}
		run := lastRun(b, commands)
		if run.Cause.Closed == nil || run.Cause.Closed.Succeeded != iterations {
			b.Fatalf("the loop did not close after its last iteration: %+v", run)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/iterations, "ns/iteration")
	b.ReportMetric(float64(peak), "peak-heap-bytes")
	b.ReportMetric(float64(size), "snapshot-bytes")
}

func lastRun(b *testing.B, commands []engine.Command) engine.RunNode {
	for i := len(commands) - 1; i >= 0; i-- {
		if r, ok := commands[i].(engine.RunNode); ok {
			return r
		}
	}
	b.Fatal("nothing runs")
	return engine.RunNode{}
}

// BenchmarkApply_FanOut spreads to n nodes and joins them again.
func BenchmarkApply_FanOut(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000} {
		b.Run(fmt.Sprintf("width=%d", n), func(b *testing.B) {
			def := &workflow.Definition{Metadata: workflow.Metadata{Name: "fan"}}
			node := func(id string) {
				def.Nodes = append(def.Nodes, workflow.Node{ID: id, Name: id, Type: "TEST", Subtype: "STEP", Configurations: json.RawMessage("{}")})
			}
			node("start")
			for i := range n {
				id := fmt.Sprintf("w%d", i)
				node(id)
				def.Connections = append(def.Connections,
					workflow.Connection{ID: "o" + id, FromNode: "start", ToNode: id, OutputKey: "result"},
					workflow.Connection{ID: "i" + id, FromNode: id, ToNode: "end", OutputKey: "result"})
			}
			node("end")
			g := compile(b, def)
			outputs := []engine.Output{{Key: "result", Ref: "e1.result"}}
			applied := 0
			for b.Loop() {
				for range 10_000 / n {
					d := newDriver(b, g)
					d.apply(engine.ExecutionStarted{})
					commands := d.apply(engine.NodeCompleted{Attempt: engine.Attempt{Activation: "start", Attempt: 1}, Outputs: outputs})
					runs := make([]engine.Attempt, len(commands))
					for i, c := range commands {
						runs[i] = c.(engine.RunNode).Attempt
					}
					for _, at := range runs {
						commands = d.apply(engine.NodeCompleted{Attempt: at, Outputs: outputs})
						applied++
					}
					if in := commands[0].(engine.RunNode).Inputs; len(in) != n {
						b.Fatalf("the join got %d inputs", len(in))
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(applied), "ns/branch")
		})
	}
}
