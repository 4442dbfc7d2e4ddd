package temporal

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
)

// stage is a loop in the test environment of the SDK, with stand-ins for the activities.
func stage(attend, step any) *testsuite.TestWorkflowEnvironment {
	env := new(testsuite.WorkflowTestSuite).NewTestWorkflowEnvironment()
	env.RegisterWorkflowWithOptions(loop, workflow.RegisterOptions{Name: loopName})
	env.RegisterActivityWithOptions(step, activity.RegisterOptions{Name: stepName})
	env.RegisterActivityWithOptions(attend, activity.RegisterOptions{Name: attendName})
	return env
}

// outgrow makes the history too long once an activity has ended.
func outgrow(env *testsuite.TestWorkflowEnvironment) {
	env.SetOnActivityCompletedListener(func(*activity.Info, converter.EncodedValue, error) { env.SetCurrentHistoryLength(maxEvents + 1) })
}

// stands is an execution that has come so far.
func stands(run ...string) going {
	g := going{Execution: execution{"w", "x"}, Seq: 5}
	for _, id := range run {
		g.Run = append(g.Run, work{ID: id, LimitMS: 1000})
	}
	return g
}

// TestLoop_EndsOutgrown lets an execution end when its history is too long already: the loop ends with it.
func TestLoop_EndsOutgrown(t *testing.T) {
	t.Parallel()
	env := stage(over{}.attend, func(context.Context, execution, string) (answer, error) { return answer{Seq: 6, Ended: true}, nil })
	outgrow(env)
	env.ExecuteWorkflow(loopName, stands("n@0.1"))
	if err := env.GetWorkflowError(); !env.IsWorkflowCompleted() || err != nil {
		t.Errorf("the loop does not end: %v", err)
	}
}

// TestLoop_LooksAsNew has a loop look how its execution stands when it goes on as a new run.
func TestLoop_LooksAsNew(t *testing.T) {
	t.Parallel()
	env := stage(over{}.attend, func(context.Context, execution, string) (answer, error) { return answer{Seq: 6}, nil })
	outgrow(env)
	env.ExecuteWorkflow(loopName, stands("n@0.1"))
	var as *workflow.ContinueAsNewError
	if err := env.GetWorkflowError(); !errors.As(err, &as) {
		t.Fatalf("it does not go on as new: %v", err)
	}
	var next going
	if err := converter.GetDefaultDataConverter().FromPayloads(as.Input, &next); err != nil {
		t.Fatal(err)
	}
	if !next.Look || next.Seq != 6 {
		t.Errorf("it goes on with %+v", next)
	}
}

// gone stands in for the activities of an execution that is gone while it runs: it was deleted, or what is recorded of it cannot be read.
// Other runs go on until they are stopped.
type gone struct{ says answer }

func (g gone) attend(context.Context, execution, []string) (answer, error) { return g.says, nil }

func (g gone) step(ctx context.Context, _ execution, id string) (answer, error) {
	if id == "n1@0.1" {
		return g.says, nil
	}
	for {
		select {
		case <-time.After(50 * time.Millisecond):
			activity.RecordHeartbeat(ctx) // which hears that it is stopped
		case <-ctx.Done():
			return answer{}, ctx.Err()
		}
	}
}

// goneCases are the ways of an execution to be gone, by the names of the histories that are kept of them.
var goneCases = map[string]gone{ // read-only
	"gone":   {answer{Ended: true}},
	"closed": {answer{Ended: true, All: true}},
}

// TestLoop_EndsWithoutRow has an execution be gone while it runs: what runs is stopped, what has not begun does not begin, and the loop
// ends.
func TestLoop_EndsWithoutRow(t *testing.T) {
	t.Parallel()
	for name, g := range goneCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := stage(g.attend, g.step)
			canceled := 0
			env.SetOnActivityCanceledListener(func(*activity.Info) { canceled++ })
			env.ExecuteWorkflow(loopName, stands("n0@0.1", "n1@0.1"))
			if err := env.GetWorkflowError(); !env.IsWorkflowCompleted() || err != nil {
				t.Errorf("the loop does not end: %v", err)
			}
			if canceled != 1 {
				t.Errorf("%d runs were stopped, want 1", canceled)
			}
		})
	}
}

// TestLoop_OldAnswerTakesBackNoEnd hears an answer of before the end after that of the end: it looks once more, and ends.
func TestLoop_OldAnswerTakesBackNoEnd(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	env := stage(gone{answer{Ended: true}}.attend, func(_ context.Context, _ execution, id string) (answer, error) {
		if id == "n1@0.1" {
			return answer{Ended: true}, nil
		}
		<-ended
		return answer{Seq: 7}, nil
	})
	env.SetOnActivityCompletedListener(func(info *activity.Info, _ converter.EncodedValue, _ error) {
		if info.ActivityID == "2" {
			close(ended)
		}
	})
	env.ExecuteWorkflow(loopName, stands("n0@0.1", "n1@0.1"))
	if err := env.GetWorkflowError(); !env.IsWorkflowCompleted() || err != nil {
		t.Errorf("the loop does not end: %v", err)
	}
}

// recordGone makes the histories of executions that were gone, if they are missing.
func recordGone(t *testing.T) {
	t.Helper()
	for name, g := range goneCases {
		if recorded(name) {
			continue
		}
		queue := newQueue()
		serve(t, queue, g.attend, g.step)
		if _, err := server.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: queue, TaskQueue: queue}, loopName, stands("n0@0.1", "n1@0.1")); err != nil {
			t.Fatal(err)
		}
		keep(t, name, queue)
	}
}
