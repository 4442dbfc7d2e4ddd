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

// A step of a program is told from the node that happens to be called like it.
func TestNodeOf_TellsStepsFromNodes(t *testing.T) {
	t.Parallel()
	def := &workflow.Definition{Metadata: workflow.Metadata{Name: "w"}}
	for _, id := range []string{"send", "filling", "loop", "inside"} {
		kind := "STEP"
		if id == "loop" {
			kind = "LOOP"
		}
		def.Nodes = append(def.Nodes, workflow.Node{ID: id, Name: id, Type: "TEST", Subtype: kind})
	}
	for _, c := range [][3]string{{"send", "result", "filling"}, {"loop", "iteration", "inside"}, {"inside", "result", "loop"}} {
		def.Connections = append(def.Connections, workflow.Connection{ID: c[0] + c[2], FromNode: c[0], OutputKey: c[1], ToNode: c[2]})
	}
	graph, problems := workflow.Compile(def, stepKinds{})
	if workflow.HasErrors(problems) {
		t.Fatal(problems)
	}
	for id, want := range map[engine.ActivationID]struct {
		node, owner   string
		step, filling bool
	}{
		"send":                      {"send", "send", false, false},
		"filling":                   {"filling", "filling", false, false},
		"send[0]/filling":           {"send.filling", "send", true, true},
		"send[0]/asking":            {"send.asking", "send", true, true},
		"send[0]/complete_1":        {"send.complete_1", "send", true, false},
		"loop[3]/inside":            {"inside", "inside", false, false},
		"loop[]/inside":             {"inside", "inside", false, false},
		"loop[3]/inside[0]/filling": {"inside.filling", "inside", true, true},
		"loop[3]/inside[0]/inside":  {"inside.inside", "inside", true, false},
	} {
		i, step, ok := host.Owner(graph, id)
		if got := host.NodeOf(graph, id); got != want.node || !ok || graph.Nodes[i].ID != want.owner || step != want.step || host.Filling(graph, id) != want.filling {
			t.Errorf("%s is %q, of %q (%v), a step %v, a filling %v; want %+v", id, got, graph.Nodes[i].ID, ok, step, host.Filling(graph, id), want)
		}
	}
}

// stepKinds are kinds that run a body or do not.
type stepKinds struct{}

func (stepKinds) Kind(name string) (workflow.Kind, bool) {
	k := workflow.Kind{Name: name, Plan: func(*workflow.Node) (workflow.Plan, []workflow.Problem) { return workflow.Plan{}, nil }}
	if name == "TEST.LOOP" {
		k.Scope = &workflow.ScopeKeys{Entry: "iteration", Exits: []string{"completed"}}
	}
	return k, true
}

func (stepKinds) Names() []string { return []string{"TEST.LOOP", "TEST.STEP"} }

func (stepKinds) Alias(string, string) (string, bool) { return "", false }
