package host_test

import (
	"testing"

	"tandem/engine"
	"tandem/host"
	"tandem/workflow"
)

func TestView_DurationMS(t *testing.T) {
	t.Parallel()
	status := func(s engine.Status) []host.Told { return []host.Told{{What: host.ToldExecution, Status: s}} }
	view := host.NewView(&workflow.Graph{})
	for n, row := range []host.Row{
		{Time: 1000, Facts: []engine.Fact{engine.ExecutionCreated{Execution: "x"}, engine.ExecutionStarted{}}, Told: status(engine.StatusRunning)},
		{Time: 1100, Told: status(engine.StatusWaitingForHuman)},
		{Time: 5100, Told: status(engine.StatusRunning)},
		{Time: 5200, Told: status(engine.StatusError)},
		{Time: 90_000, Told: status(engine.StatusRunning)}, // somebody has retried a node
		{Time: 90_030, Told: status(engine.StatusSuccess)},
	} {
		row.Seq = uint64(n + 1)
		view.Apply(&row)
	}
	if got := view.DurationMS(200_000); got != 230 {
		t.Errorf("it ran for %d ms, want 230: neither people nor the time between two ends count", got)
	}
}
