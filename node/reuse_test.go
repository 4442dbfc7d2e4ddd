package node

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"tandem/dataflow"
	"tandem/engine"
	"tandem/fault"
	"tandem/node/rundata"
	"tandem/payload"
)

// briefKind hands on what the call says of its execution, and fails when it is told to. What a run left in its call, the next
// would find.
func briefKind(t *testing.T) Kind {
	return Kind{About: About{Name: "TEST.BRIEF"}, Brief: true, Run: func(_ context.Context, c *Call) (Outcome, error) {
		if c.Kept != nil || c.Wake != nil || c.Memo != nil || len(c.Contributions) != 1 {
			t.Errorf("%s begins with what another run has left: %+v", c.ExecutionID, c)
		}
		c.Kept = c.ExecutionID
		c.Declare([]string{c.ExecutionID})
		c.Warn("here", "warning of "+c.ExecutionID)
		city, err := c.Context()
		if err != nil {
			return nil, err
		}
		if string(c.Trigger) == `"fail"` {
			return nil, fault.New(fault.InvalidInput, "told to fail: "+c.ExecutionID)
		}
		out, err := payload.Encode([]any{c.ExecutionID, c.Attempt, c.Input, c.Connected("result"), city.InitialMetadata})
		return Done{"result": out}, err
	}}
}

func reuseJob(t *testing.T, n int, trigger string) Job {
	layers, err := dataflow.New(dataflow.Start{ExecutionID: fmt.Sprint("exec", n), WorkflowID: "flow", Initial: json.RawMessage(fmt.Sprintf(`{"city":%d}`, n))})
	if err != nil {
		t.Fatal(err)
	}
	return Job{
		Run: engine.RunNode{
			Attempt: engine.Attempt{Activation: "node", Attempt: uint32(n)}, Node: 1, Cause: engine.Cause{Kind: engine.CauseRun}, Inputs: []engine.Input{{Edge: 0, Ref: "in"}}, AsOf: 1, LastTry: true,
		},
		Data:      rundata.Data{Layers: layers, Lock: &sync.RWMutex{}, View: dataflow.View{AsOf: 1}},
		Execution: Execution{ID: fmt.Sprint("exec", n), WorkflowID: "flow"}, Trigger: json.RawMessage(trigger),
		Value: func(engine.Ref) (json.RawMessage, error) { return json.RawMessage(fmt.Sprintf(`{"n":%d}`, n)), nil },
	}
}

// TestReuse_OwnData: runs of many executions at the same time, which are used again, have nothing of each other; also when their
// facts are made only after others have run, and after runs that have failed.
func TestReuse_OwnData(t *testing.T) {
	t.Parallel()
	r := newRig(t, briefKind(t), `{}`, `{}`)
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			results := make([]Result, 20)
			for i := range results {
				trigger := `"go on"`
				if i%5 == 4 {
					trigger = `"fail"`
				}
				results[i] = r.revision.Run(context.Background(), reuseJob(t, worker*100+i, trigger))
			}
			for i, result := range results {
				n := worker*100 + i
				if len(result.Warnings) != 1 || result.Warnings[0].Message != fmt.Sprint("warning of exec", n) {
					t.Errorf("run %d has the warnings %v", n, result.Warnings)
				}
				var put string
				fact := result.Fact(func(v json.RawMessage, _ ...payload.Part) engine.Ref { put = string(v); return "ref" })
				switch fact := fact.(type) {
				case engine.NodeCompleted:
					want := fmt.Sprintf(`["exec%d",%d,{"n":%d},false,{"city":%d}]`, n, n, n, n)
					if put != want || fact.Attempt.Attempt != uint32(n) || fmt.Sprint(fact.Declared) != fmt.Sprintf("[exec%d]", n) || i%5 == 4 {
						t.Errorf("run %d ends with %s, attempt %d, declared %v; wanted %s", n, put, fact.Attempt.Attempt, fact.Declared, want)
					}
				case engine.NodeFailed:
					if i%5 != 4 || fact.Attempt.Attempt != uint32(n) || fact.Error.Message != fmt.Sprint("told to fail: exec", n) {
						t.Errorf("run %d fails with %v, attempt %d", n, fact.Error, fact.Attempt.Attempt)
					}
				default:
					t.Errorf("run %d ends with %T", n, fact)
				}
			}
		})
	}
	all.Wait()
}
