package node

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"tandem/dataflow"
	"tandem/engine"
	"tandem/fault"
	"tandem/node/rundata"
	"tandem/payload"
)

// A function that stands in for a kind is given its call and answers for it; everything around it is as always.
func TestRun_Stand(t *testing.T) {
	t.Parallel()
	at := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	play := func(t *testing.T, config string, stand Stand) engine.Fact {
		t.Helper()
		kind := step(func(context.Context, *Call) (Outcome, error) {
			t.Error("the kind was touched")
			return Done{}, nil
		})
		kind.Prepare = func(_ context.Context, c *Call) (json.RawMessage, error) {
			t.Error("the kind was asked to prepare")
			return c.Input, nil
		}
		r := newRig(t, kind, config, `{"city":"{{city}}"}`, connect("result", "{twice: n * 2}"))
		result := r.revision.Run(t.Context(), Job{
			Run: engine.RunNode{
				Attempt: engine.Attempt{Activation: "node", Attempt: 1}, Node: 1, Cause: engine.Cause{Kind: engine.CauseRun}, Inputs: []engine.Input{{Edge: 0, Ref: "in"}}, AsOf: 1,
			},
			Data:  rundata.Data{Layers: r.layers, Lock: &sync.RWMutex{}, View: dataflow.View{AsOf: 1}},
			Value: func(ref engine.Ref) (json.RawMessage, error) { return r.values[ref], nil },
			Stand: stand, Clock: func() time.Time { return at },
		})
		return result.Fact(func(json.RawMessage, ...payload.Part) engine.Ref { return "kept" })
	}
	t.Run("AnswersForTheKind", func(t *testing.T) {
		t.Parallel()
		fact := play(t, `{"text":"to {{city}}"}`, func(_ context.Context, c *Call, s *Step) (Outcome, error) {
			if string(c.Input) != `{"n":5,"name":"own","city":"Hangzhou"}` || string(c.Config) != `{"text":"to Hangzhou"}` || !c.Clock().Equal(at) || s != nil {
				t.Errorf("the call has the input %s, the configurations %s, the time %s and the step %v", c.Input, c.Config, c.Clock(), s)
			}
			return Done{"result": json.RawMessage(`{"n":4}`)}, nil
		})
		done, ok := fact.(engine.NodeCompleted)
		if !ok || len(done.Outputs) != 1 || len(done.Settled) != 1 || !done.Settled[0].Live {
			t.Errorf("fact %+v; the connection must be converted", fact)
		}
	})
	t.Run("KnowsNotWhatHappened", func(t *testing.T) {
		t.Parallel()
		for effect, unknown := range map[string]bool{"once": true, "idempotent": false} {
			fact := play(t, `{"effect":"`+effect+`"}`, func(context.Context, *Call, *Step) (Outcome, error) {
				return nil, &Failure{Err: fault.New(fault.Canceled, "cut off"), Unknown: true, RetryAfter: time.Second}
			})
			failed, ok := fact.(engine.NodeFailed)
			if !ok || failed.Unknown != unknown || failed.Error.Code != fault.Canceled || !unknown && failed.RetryAfterMS != 1000 {
				t.Errorf("%s: fact %+v", effect, fact)
			}
		}
	})
}
