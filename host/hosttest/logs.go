package hosttest

import (
	"fmt"

	"tandem/engine"
	"tandem/host"
	"tandem/store"
)

// logs are what the journal has of each activation, without times, and what of it comes before something that it follows from.
func (b *bench) logs(e store.Execution) (of map[engine.ActivationID][]string, problems []string) {
	of = map[engine.ActivationID][]string{}
	begun, done := map[engine.ActivationID]int{}, map[engine.ActivationID]int{}
	place := 0
	add := func(a engine.ActivationID, format string, args ...any) {
		place++
		of[a] = append(of[a], fmt.Sprintf(format, args...))
	}
	for row, err := range b.journal(e.ID).Rows(b.ctx, 0) {
		if err != nil {
			return of, nil // who damages a journal looks at it himself
		}
		for _, f := range row.Facts {
			switch f := f.(type) {
			case engine.NodeCompleted:
				keys := make([]string, 0, len(f.Outputs))
				for _, o := range f.Outputs {
					keys = append(keys, o.Key)
				}
				add(f.Activation, "completed %d.%d %v", f.Generation, f.Attempt.Attempt, keys)
				done[f.Activation] = place
			case engine.NodeFailed:
				add(f.Activation, "failed %d.%d %s", f.Generation, f.Attempt.Attempt, f.Error.Code)
			case engine.NodeSuspended:
				add(f.Activation, "suspended %d.%d", f.Generation, f.Attempt.Attempt)
			}
		}
		for _, t := range row.Told {
			if t.What != host.ToldNode {
				continue
			}
			add(t.Activation, "%s %d.%d", t.Node, t.Generation, t.Attempt)
			if begun[t.Activation] == 0 && t.Node == engine.NodeRunning {
				begun[t.Activation] = place
			}
		}
	}
	graph := b.graphs[e.WorkflowID]
	for _, edge := range graph.Edges {
		from, to := engine.ActivationID(graph.Nodes[edge.From].Segment), engine.ActivationID(graph.Nodes[edge.To].Segment)
		if done[from] > 0 && begun[to] > 0 && done[from] > begun[to] && !edge.Entry && !edge.Back {
			problems = append(problems, fmt.Sprintf("execution %q: %q has begun before %q, which it follows from, was done", e.ID, to, from))
		}
	}
	return of, problems
}
