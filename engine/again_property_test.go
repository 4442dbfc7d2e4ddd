package engine_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tandem/engine"
	"tandem/fault"
)

// Whatever the graph and wherever an operator goes on: nothing behind a question that is asked again runs before its answer,
// nothing that the answer does not lead to runs at all, and the execution ends.
func TestAgain_AlwaysAskedAndNeverStuck(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		s := newSim(t, draw(t, drawQuestions(r)), nil)
		s.start(engine.ExecutionCreated{})
		runAtRandom(r, s, nil, rapid.IntRange(0, 12).Draw(r, "steps before"))
		var chosen []engine.ActivationID
		for _, a := range s.state.Activations() {
			if a.Status == engine.NodeFailure || a.Status == engine.NodeRunning || a.Status == engine.NodeWaitingInput {
				chosen = append(chosen, a.ID)
			}
		}
		if len(chosen) == 0 || s.state.Status() == engine.StatusSuccess {
			return
		}
		id := rapid.SampledFrom(chosen).Draw(r, "chosen")
		before, closed := s.state.Questions(id)
		if len(closed) > 0 {
			return
		}
		if rapid.Bool().Draw(r, "edited") {
			before = append(before, s.state.Asked()...)
			slices.Sort(before)
			before = slices.DeleteFunc(slices.Compact(before), func(q engine.ActivationID) bool { return q == id })
		}
		a, _ := s.state.Activation(id)
		switch failed := a.Status == engine.NodeFailure; {
		case failed && rapid.Bool().Draw(r, "retry"):
			s.do(engine.NodeRetried{Activation: id, Again: before})
		case failed:
			s.do(engine.NodeSkipped{Activation: id, HasOutput: true, Output: "given", Again: before})
		case s.state.Status() == engine.StatusError:
			return
		default:
			fork := newSim(t, s.graph, nil)
			fork.do(engine.ExecutionForked{Semantics: engine.Semantics, Execution: "fork", Activation: id, State: json.RawMessage(s.snapshot()), Again: before})
			s = fork
		}
		asked := map[engine.ActivationID]bool{}
		for _, q := range before {
			asked[q] = false
		}
		runAtRandom(r, s, asked, 200)
		if !s.state.Status().Final() {
			t.Fatalf("the execution is stuck in %s with %v", s.state.Status(), s.state.Activations())
		}
		s.replay()
	})
}

// drawQuestions draws a graph without cycles in which some nodes ask.
func drawQuestions(r *rapid.T) string {
	var text strings.Builder
	n := rapid.IntRange(2, 8).Draw(r, "nodes")
	for i := range n {
		if rapid.IntRange(0, 2).Draw(r, "asks") == 0 {
			fmt.Fprintf(&text, "n%d {\"asks\":\"confirmed\"}\n", i)
		} else {
			fmt.Fprintf(&text, "n%d\n", i)
		}
	}
	for to := 1; to < n; to++ {
		for _, from := range rapid.SliceOfNDistinct(rapid.IntRange(0, to-1), 0, min(to, 2), rapid.ID[int]).Draw(r, "from") {
			key := rapid.SampledFrom([]string{"result", "confirmed", "rejected"}).Draw(r, "key")
			fmt.Fprintf(&text, "n%d:%s -> n%d\n", from, key, to)
		}
	}
	return text.String()
}

// runAtRandom ends runs in any order and in any way. Asked are the questions that have to be answered before what lies behind
// them runs, and whether they have been.
func runAtRandom(r *rapid.T, s *sim, asked map[engine.ActivationID]bool, steps int) {
	for range steps {
		runs := s.runs()
		for _, id := range runs {
			questions, _ := s.state.Questions(engine.ActivationID(id))
			for _, q := range questions {
				if done, again := asked[q]; again && !done {
					s.t.Fatalf("%q runs before %q was asked again", id, q)
				}
			}
		}
		if len(runs) == 0 {
			return
		}
		id := engine.ActivationID(rapid.SampledFrom(runs).Draw(r, "run"))
		if _, again := asked[id]; again {
			asked[id] = true
		}
		switch rapid.IntRange(0, 9).Draw(r, "how") {
		case 0:
			s.fail(id, fault.InvalidInput)
		case 1, 2:
			s.complete(id, "result", "rejected")
		default:
			s.complete(id, "result", "confirmed")
		}
	}
}
