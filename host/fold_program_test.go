package host_test

import (
	"encoding/json"
	"testing"

	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/workflow"
)

// wholeKinds has a node that is the whole of its workflow.
type wholeKinds struct{ kinds }

func (w wholeKinds) Kind(name string) (workflow.Kind, bool) {
	k, ok := w.kinds.Kind(name)
	plan := k.Plan
	k.Plan = func(n *workflow.Node) (workflow.Plan, []workflow.Problem) {
		p, problems := plan(n)
		p.Whole = name == "TEST.WHOLE"
		return p, problems
	}
	return k, ok
}

// planner thinks, then lets a tool fail, then lets another work.
type planner struct{}

func (planner) Start(sc *engine.Scope, _ engine.Opening) {
	sc.Run(engine.Step{Name: "think", Effect: workflow.Idempotent})
}

func (planner) Ended(sc *engine.Scope, name string, _ engine.End) {
	switch name {
	case "think":
		sc.Run(engine.Step{Name: "step_1", Effect: workflow.Idempotent, Tool: "weather/now"})
	case "step_1":
		sc.Run(engine.Step{Name: "step_2", Effect: workflow.Idempotent, Tool: "weather/later"})
	}
}

func (planner) Handles(string, *fault.Error) bool  { return true }
func (planner) Fired(*engine.Scope, string)        {}
func (planner) Snapshot() (json.RawMessage, error) { return json.RawMessage(`{}`), nil }

// lead begins an execution that a program leads.
func lead(t *testing.T, program engine.Program) *book {
	t.Helper()
	def := &workflow.Definition{
		Nodes:       []workflow.Node{{ID: "start", Type: "TEST", Subtype: "STEP"}, {ID: "task", Type: "TEST", Subtype: "WHOLE"}},
		Connections: []workflow.Connection{{ID: "c1", FromNode: "start", ToNode: "task", OutputKey: "result"}},
	}
	graph, problems := workflow.Compile(def, wholeKinds{})
	if graph == nil {
		t.Fatalf("compile: %v", problems)
	}
	b := &book{t: t, graph: graph, runs: map[engine.ActivationID]engine.RunNode{}}
	programs := engine.Programs{"planner": {
		New:     func(engine.Setup) (engine.Program, error) { return program, nil },
		Restore: func(engine.Setup, json.RawMessage) (engine.Program, error) { return program, nil },
	}}
	load := host.Loader{Row: func(_ string, seq uint64) (host.Row, error) { return b.rows[seq-1], nil }}
	b.fold = host.NewFold(graph, revision{}, programs, load)
	b.do(func(put func(json.RawMessage) engine.Ref) engine.Fact {
		return engine.ExecutionCreated{Semantics: engine.Semantics, Execution: "exec", Revision: graph.Hash, Input: put(json.RawMessage(`{"workflow_id":"w"}`))}
	})
	b.do(func(func(json.RawMessage) engine.Ref) engine.Fact { return engine.ExecutionStarted{} })
	b.complete("start", "result", `{}`)
	b.do(func(func(json.RawMessage) engine.Ref) engine.Fact {
		return engine.ScopeOpened{Attempt: b.runs["task"].Attempt, Program: "planner", Count: 1, Discard: true}
	})
	return b
}

func TestFold_KeepsWhatToolsOfAProgramLeave(t *testing.T) {
	t.Parallel()
	b := lead(t, planner{})
	b.complete("task[0]/think", "result", `{"secret":"thought"}`)
	b.do(func(func(json.RawMessage) engine.Ref) engine.Fact {
		return engine.NodeFailed{Attempt: b.runs["task[0]/step_1"].Attempt, Error: fault.New(fault.ToolError, "it rains")}
	})
	b.complete("task[0]/step_2", "result", `{"degrees":21}`)

	context, err := b.fold.Context("")
	if err != nil {
		t.Fatal(err)
	}
	if _, there := context.StepResults["think"]; there || context.RuntimeMetadata["secret"] != nil {
		t.Errorf("what a decision leaves has become data: %v", context)
	}
	failed := context.StepResults["step_1"]
	if failed.IsSuccess || failed.ToolID != "weather/now" || failed.ErrorMessage != "it rains" {
		t.Errorf("the failed call is kept as %+v", failed)
	}
	done := context.StepResults["step_2"]
	if !done.IsSuccess || done.StepName != "weather/later" || string(done.Output) != `{"degrees":21}` || string(context.RuntimeMetadata["degrees"]) != "21" {
		t.Errorf("the call is kept as %+v with %s", done, context.RuntimeMetadata)
	}
	for id, want := range map[engine.ActivationID]string{"task": "task", "task[0]/step_2": "step_2", "start": "start"} {
		if got := host.NodeOf(b.graph, id); got != want {
			t.Errorf("%q is called %q, want %q", id, got, want)
		}
	}
	if b.fold.View().Nodes["step_2"] == nil {
		t.Errorf("the step is not listed by its own name: %v", b.fold.View().Nodes)
	}
}

// retrier calls a tool until it works, each time in a step of its own.
type retrier struct{ planner }

func (retrier) Start(sc *engine.Scope, _ engine.Opening) {
	sc.Run(engine.Step{Name: engine.TryName("step_1", 1), Effect: workflow.Idempotent, Tool: "weather/now"})
}

func (retrier) Ended(sc *engine.Scope, _ string, end engine.End) {
	if end.Status == engine.NodeFailure {
		sc.Run(engine.Step{Name: engine.TryName("step_1", 2), Effect: workflow.Idempotent, Tool: "weather/now"})
	}
}

// Whoever refers to a step means what it has brought in the end, whichever try that was.
func TestFold_KeepsALaterTryAsTheStep(t *testing.T) {
	t.Parallel()
	b := lead(t, retrier{})
	b.do(func(func(json.RawMessage) engine.Ref) engine.Fact {
		return engine.NodeFailed{Attempt: b.runs["task[0]/step_1"].Attempt, Error: fault.New(fault.ToolError, "it rains")}
	})
	b.complete("task[0]/step_1_try_2", "result", `{"degrees":21}`)
	context, err := b.fold.Context("")
	if err != nil {
		t.Fatal(err)
	}
	if done := context.StepResults["step_1"]; !done.IsSuccess || string(done.Output) != `{"degrees":21}` || string(context.RuntimeMetadata["step_1_degrees"]) != "21" {
		t.Errorf("the step is kept as %+v with %s", done, context.RuntimeMetadata)
	}
	if n := b.fold.View().Nodes; n["step_1_try_2"] == nil || n["step_1"].Status != engine.NodeFailure {
		t.Errorf("the tries are not told apart: %v", n)
	}
}
