package flow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tandem/engine"
	"tandem/fault"
	"tandem/node"
	"tandem/node/nodetest"
)

// body is what a test runs for each iteration.
type body func(index int64, it node.Iteration) (json.RawMessage, error)

// loop is a loop after it has ended.
type loop struct {
	opening    node.Opening
	iterations []node.Iteration
	waits      []node.Wait
	done       node.Done
}

// drive runs a loop the way the engine does, one iteration after the other.
func drive(t testing.TB, name string, call *node.Call, run body) (loop, error) {
	t.Helper()
	scope, ctx := kinds().Kind(t, name).Scope, context.Background()
	var l loop
	var err error
	if l.opening, err = scope.Open(ctx, call); err != nil {
		return l, err
	}
	if l.opening.Done != nil {
		l.done = l.opening.Done
		return l, nil
	}
	state := l.opening.State
	var results []json.RawMessage
	closing := node.Closing{}
	fetch := func() ([]json.RawMessage, error) { return results, nil }
	for index := int64(0); l.opening.Count < 0 || index < l.opening.Count; index++ {
		if l.opening.Turns {
			turn := node.Turn{Index: index, State: state, Results: fetch}
			if len(results) > 0 {
				turn.Last = func() json.RawMessage { return results[len(results)-1] }
			}
			call.Wake = nil
			advance, err := scope.Turn(ctx, call, turn)
			if err == nil && advance.Wait != nil {
				l.waits = append(l.waits, *advance.Wait)
				call.Wake = &node.Wake{By: engine.WakeTimer}
				advance, err = scope.Turn(ctx, call, turn) // the state of a turn that was put off does not count
			}
			if err != nil {
				return l, err
			}
			if state = advance.State; !advance.Open {
				closing.Broken = true
				break
			}
		}
		it, err := scope.Iteration(call, state, index)
		if err != nil {
			return l, err
		}
		l.iterations = append(l.iterations, it)
		result, err := run(index, it)
		switch {
		case err != nil && !l.opening.KeepGoing:
			return l, err
		case err != nil:
			closing.Failed++
			closing.Errors = append(closing.Errors, node.IterationError{Index: index, Error: json.RawMessage(`{"error_code": "x"}`)})
			result = nil
		default:
			closing.Succeeded++
		}
		closing.Iterations++
		results = append(results, result)
	}
	closing.State, closing.Results = state, fetch
	l.done, err = scope.Close(ctx, call, closing)
	return l, err
}

func echo(index int64, _ node.Iteration) (json.RawMessage, error) {
	return json.RawMessage(fmt.Sprintf(`{"i": %d}`, index)), nil
}

func TestLoop(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, kind, config, input string
		body                      body
		payloads                  []string
		want                      string
		code                      fault.Code
	}{
		{name: "RangeIsInclusive", kind: "FLOW.LOOP", config: `{"start_value": 1, "end_value": 3}`, input: `{"x": 7}`, body: echo,
			payloads: []string{`{"x": 7, "item": 1, "index": 0}`, `{"item": 2, "index": 1}`, `{"item": 3, "index": 2}`},
			want:     `{"results": [{"i": 0}, {"i": 1}, {"i": 2}], "iteration_results": [{"i": 0}, {"i": 1}, {"i": 2}], "final_result": {"x": 7, "counter": 3}, "successful_iterations": 3, "failed_iterations": 0, "errors": [], "limit_reached": false, "broken": false}`},
		{name: "RangeOfAListKeepsIt", kind: "FLOW.LOOP", config: `{"end_value": 1}`, input: `{"data": [7]}`, body: echo, want: `{"final_result": {"data": [7], "counter": 1}}`},
		{name: "RangeByDefault", kind: "FLOW.LOOP", body: echo, want: `{"successful_iterations": 11, "final_result": {"counter": 10}}`},
		{name: "RangeDown", kind: "FLOW.LOOP", config: `{"start_value": 3, "end_value": 1, "step": -1, "iteration_variable": "n"}`, body: echo, payloads: []string{`{"n": 3}`, `{"n": 2}`, `{"n": 1}`}, want: `{}`},
		{name: "NoVariable", kind: "FLOW.LOOP", config: `{"end_value": 0, "iteration_variable": ""}`, body: echo, payloads: []string{`{"item": 0, "index": 0}`}, want: `{"successful_iterations": 1}`},
		{name: "RangeOfFractions", kind: "FLOW.LOOP", config: `{"end_value": 0.3, "step": 0.1}`, body: echo, payloads: []string{`{"item": 0}`, `{"item": 0.1}`, `{"item": 0.2}`, `{"item": 0.3}`}, want: `{}`},
		{name: "RangeTheWrongWay", kind: "FLOW.LOOP", config: `{"start_value": 3, "end_value": 1}`, want: `{"results": [], "successful_iterations": 0, "final_result": {"counter": null}}`},
		{name: "RangeStepZero", kind: "FLOW.LOOP", config: `{"step": 0}`, code: fault.InvalidConfig},
		{name: "RangeTooLong", kind: "FLOW.LOOP", config: `{"end_value": 1e300}`, code: fault.LoopLimit},
		{name: "RangeToTheLimit", kind: "FLOW.LOOP", config: `{"end_value": 100, "max_iterations": 2, "on_limit": "complete"}`, body: echo, want: `{"successful_iterations": 2, "limit_reached": true, "broken": false}`},
		{name: "RangeAtTheLimit", kind: "FLOW.LOOP", config: `{"end_value": 1, "max_iterations": 2}`, body: echo, want: `{"successful_iterations": 2, "limit_reached": false}`},
		{name: "ForEach", kind: "FLOW.LOOP", config: `{"loop_type": "for_each", "iteration_variable": "order"}`, input: `{"items": ["a", null]}`, body: echo,
			payloads: []string{`{"item": "a", "order": "a", "index": 0}`, `{"item": null, "order": null, "index": 1}`}, want: `{"final_result": {"processed_count": 2}}`},
		{name: "ForEachAtAPath", kind: "FLOW.LOOP", config: `{"loop_type": "for_each", "items_path": "a.b"}`, input: `{"a": {"b": [5]}}`, body: echo, payloads: []string{`{"item": 5}`}, want: `{}`},
		{name: "ForEachOfNull", kind: "FLOW.LOOP", config: `{"loop_type": "for_each"}`, input: `{"data": null}`, want: `{"results": [], "final_result": {"processed_count": 0}}`},
		{name: "ForEachTooMany", kind: "FLOW.LOOP", config: `{"loop_type": "for_each", "max_iterations": 1}`, input: `{"data": [1, 2]}`, code: fault.LoopLimit},
		{name: "ForEachNoList", kind: "FLOW.LOOP", config: `{"loop_type": "for_each"}`, input: `{"x": 1}`, code: fault.InvalidInput},
		{name: "BreakCondition", kind: "FLOW.LOOP", config: `{"break_condition": "item >= 2 && last.i == index"}`, body: echo, want: `{"successful_iterations": 3, "broken": true, "final_result": {"counter": 2}}`},
		{name: "BreakConditionFails", kind: "FLOW.LOOP", config: `{"break_condition": "item > 'a'"}`, body: echo, code: fault.ExpressionError},
		{name: "ResultsNotCollected", kind: "FLOW.LOOP", config: `{"collect_results": false}`, body: echo, want: `{"results": [], "successful_iterations": 11}`},
		{name: "FailureEndsIt", kind: "FLOW.LOOP", body: failAt(1), code: fault.CodeError},
		{name: "FailureIsKept", kind: "FLOW.LOOP", config: `{"end_value": 2, "break_on_error": false}`, body: failAt(1),
			want: `{"results": [{"i": 0}, null, {"i": 2}], "successful_iterations": 2, "failed_iterations": 1, "errors": [{"index": 1, "error": {"error_code": "x"}}]}`},

		{name: "WhileCarriesData", kind: "FLOW.LOOP", config: `{"loop_type": "while", "loop_condition": "data.n < 3"}`, input: `{"n": 1, "keep": true}`, body: increment,
			payloads: []string{`{"n": 1, "keep": true, "item": 1, "index": 0}`, `{"n": 2, "keep": true, "item": 2, "index": 1}`}, want: `{"final_result": {"n": 3, "keep": true}, "successful_iterations": 2, "limit_reached": false, "broken": false}`},
		{name: "WhileWithItsOwnData", kind: "FLOW.LOOP", config: `{"loop_type": "while", "loop_condition": "data.n < 3"}`, input: `{"data": {"n": 2}, "x": 1}`, body: increment,
			payloads: []string{`{"data": {"n": 2}, "x": 1}`}, want: `{"final_result": {"n": 3}}`},
		{name: "WhileByName", kind: "FLOW.LOOP", config: `{"loop_type": "while", "loop_condition": "n < 3"}`, input: `{"n": 1}`, body: increment, want: `{"successful_iterations": 2}`},
		{name: "WhileByItem", kind: "FLOW.LOOP", config: `{"loop_type": "while", "loop_condition": "item <= 2"}`, body: echo, want: `{"successful_iterations": 2}`},
		{name: "WhileLimit", kind: "FLOW.LOOP", config: `{"loop_type": "while", "loop_condition": "true", "max_iterations": 3}`, body: echo, want: `{"successful_iterations": 3, "limit_reached": true, "broken": false}`},
		{name: "WhileLimitFails", kind: "FLOW.LOOP", config: `{"loop_type": "while", "loop_condition": "true", "max_iterations": 3, "on_limit": "fail"}`, body: echo, code: fault.LoopLimit},
		{name: "WhileEndsAtTheLimit", kind: "FLOW.LOOP", config: `{"loop_type": "while", "loop_condition": "index < 3", "max_iterations": 3, "on_limit": "fail"}`, body: echo, want: `{"successful_iterations": 3, "limit_reached": false}`},
		{name: "WhileNoCondition", kind: "FLOW.LOOP", config: `{"loop_type": "while"}`, code: fault.InvalidConfig},
		{name: "WhileBreaks", kind: "FLOW.LOOP", config: `{"loop_type": "while", "loop_condition": "true", "break_condition": "data.n == 3"}`, input: `{"n": 1}`, body: increment, want: `{"successful_iterations": 2, "broken": true}`},

		{name: "WhileFalseAtFirst", kind: "FLOW.WHILE", config: `{"condition_expression": "false"}`, body: echo, want: `{"results": [], "successful_iterations": 0, "broken": false}`},
		{name: "WhileAfter", kind: "FLOW.WHILE", config: `{"loop_condition": "false", "check": "after"}`, body: echo, want: `{"successful_iterations": 1}`},
		{name: "WhileLastAndResults", kind: "FLOW.WHILE", config: `{"condition_expression": "last == null || results.length < 3"}`, body: echo, want: `{"successful_iterations": 3}`},
		{name: "WhileCarriesLikeLoop", kind: "FLOW.WHILE", config: `{"condition_expression": "n < 3"}`, input: `{"n": 1}`, body: increment, want: `{"final_result": {"n": 3}}`},
		{name: "WhileListData", kind: "FLOW.WHILE", config: `{"condition_expression": "index < 1"}`, input: `{"data": [1]}`, body: echo, want: `{"final_result": {"i": 0}}`},
		{name: "WhileErrorFails", kind: "FLOW.WHILE", config: `{"condition_expression": "nobody"}`, body: echo, code: fault.ExpressionError},

		{name: "EachInBatches", kind: "FLOW.FOR_EACH", config: `{"batch_size": 2, "iteration_variable": "pair"}`, input: `{"data": [1, 2, 3]}`, body: echo,
			payloads: []string{`{"item": [1, 2], "pair": [1, 2], "index": 0}`, `{"item": [3], "pair": [3], "index": 1}`}, want: `{"successful_iterations": 2}`},
		{name: "EachObjectIsOne", kind: "FLOW.FOR_EACH", input: `{"data": {"a": 1}}`, body: echo, payloads: []string{`{"item": {"a": 1}}`}, want: `{}`},
		{name: "EachNullCounts", kind: "FLOW.FOR_EACH", input: `{"data": [null]}`, body: echo, payloads: []string{`{"item": null}`}, want: `{"successful_iterations": 1}`},
		{name: "EachOfNothing", kind: "FLOW.FOR_EACH", input: `{"data": []}`, want: `{"results": [], "errors": [], "limit_reached": false, "broken": false}`},
		{name: "EachTooMany", kind: "FLOW.FOR_EACH", config: `{"max_iterations": 1}`, input: `{"data": [1, 2]}`, code: fault.LoopLimit},
		{name: "EachBreaks", kind: "FLOW.FOR_EACH", config: `{"break_condition": "item == 2"}`, input: `{"data": [1, 2, 3]}`, body: echo, want: `{"successful_iterations": 2, "broken": true}`},

		{name: "SplitItems", kind: "FLOW.SPLIT", config: `{"batch_size": 2}`, input: `{"data": [1, 2, 3]}`, body: echo, payloads: []string{`{"item": [1, 2]}`, `{"item": [3]}`},
			want: `{"results": [{"i": 0}, {"i": 1}], "successful_iterations": 2, "failed_iterations": 0, "errors": []}`},
	}
	for _, c := range cases {
		t.Run(c.kind+c.name, func(t *testing.T) {
			t.Parallel()
			l, err := drive(t, c.kind, nodetest.NewCall(t, c.config, c.input), c.body)
			if c.code != "" {
				nodetest.WantError(t, err, c.code, "")
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			key := "completed"
			if c.kind == "FLOW.SPLIT" {
				key = "result"
			}
			nodetest.CheckDone(t, l.done, map[string]string{key: c.want})
			if c.payloads != nil && len(c.payloads) != len(l.iterations) {
				t.Fatalf("%d iterations, want %d", len(l.iterations), len(c.payloads))
			}
			for i, want := range c.payloads {
				for _, d := range nodetest.Differences(fmt.Sprintf("iteration %d", i), nodetest.Value(t, want), nodetest.Value(t, string(l.iterations[i].Whole()))) {
					t.Error(d)
				}
				if got := string(l.iterations[i].Vars["index"]); got != fmt.Sprint(i) {
					t.Errorf("index of iteration %d is %q", i, got)
				}
			}
		})
	}
}

func failAt(n int64) body {
	return func(index int64, it node.Iteration) (json.RawMessage, error) {
		if index == n {
			return nil, fault.New(fault.CodeError, "no")
		}
		return echo(index, it)
	}
}

// increment gives n+1, as a body that counts.
func increment(_ int64, it node.Iteration) (json.RawMessage, error) {
	var in struct {
		N    int             `json:"n"`
		Data struct{ N int } `json:"data"`
	}
	if err := json.Unmarshal(it.Whole(), &in); err != nil {
		return nil, err
	}
	return json.RawMessage(fmt.Sprintf(`{"n": %d}`, max(in.N, in.Data.N)+1)), nil
}

func TestLoop_Openings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind, config string
		want         node.Opening
	}{
		"LoopRunsOneAtATime": {"FLOW.LOOP", `{"loop_type": "for_each"}`, node.Opening{Count: 3, Concurrency: 1}},
		"EachAsManyAsAsked":  {"FLOW.FOR_EACH", `{"max_concurrency": 7, "break_on_error": false}`, node.Opening{Count: 3, Concurrency: 7, KeepGoing: true}},
		"EachWithABreak":     {"FLOW.FOR_EACH", `{"break_condition": "false"}`, node.Opening{Count: 3, Concurrency: 1, Turns: true}},
		"SplitInParallel":    {"FLOW.SPLIT", `{}`, node.Opening{Count: 3, Concurrency: 10}},
		"While":              {"FLOW.WHILE", `{"condition_expression": "true"}`, node.Opening{Count: -1, Concurrency: 1, Turns: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := kinds().Kind(t, c.kind).Scope.Open(context.Background(), nodetest.NewCall(t, c.config, `{"data": [1, 2, 3]}`))
			got.State = nil
			if err != nil || got.Done != nil || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", c.want) {
				t.Errorf("got %+v, %v; want %+v", got, err, c.want)
			}
		})
	}
}

func TestLoop_NeedsABody(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]string{"FLOW.LOOP": `{}`, "FLOW.FOR_EACH": `{}`, "FLOW.WHILE": `{"condition_expression": "true"}`, "FLOW.SPLIT": `{}`, "FLOW.TIMEOUT": `{}`} {
		call := nodetest.NewCall(t, config, `{"data": [1]}`)
		call.Connected = func(string) bool { return false }
		_, err := kinds().Kind(t, name).Scope.Open(context.Background(), call)
		nodetest.WantError(t, err, fault.InvalidConfig, "nothing is connected")
	}
}

func TestWhile_PausesBetweenIterations(t *testing.T) {
	t.Parallel()
	call := nodetest.NewCall(t, `{"condition_expression": "index < 3", "delay_seconds": 2.5}`, `{}`)
	now := nodetest.Start().Add(time.Hour)
	call.Clock = func() time.Time { return now }
	l, err := drive(t, "FLOW.WHILE", call, func(index int64, it node.Iteration) (json.RawMessage, error) {
		now = now.Add(time.Minute)
		return echo(index, it)
	})
	if err != nil {
		t.Fatal(err)
	}
	var until []time.Duration
	for _, w := range l.waits {
		until = append(until, w.Until.Sub(nodetest.Start()))
	}
	want := []time.Duration{time.Hour + time.Minute + 2500*time.Millisecond, time.Hour + 2*time.Minute + 2500*time.Millisecond}
	if !slices.Equal(until, want) || len(l.iterations) != 3 {
		t.Errorf("%d iterations, waits until %v; want %v", len(l.iterations), until, want)
	}
}

func TestLoop_ResultsTooLarge(t *testing.T) {
	t.Parallel()
	large := json.RawMessage(`"` + strings.Repeat("x", 22<<20) + `"`)
	run := func(int64, node.Iteration) (json.RawMessage, error) { return large, nil }
	_, err := drive(t, "FLOW.FOR_EACH", nodetest.NewCall(t, `{}`, `{"data": [1, 2, 3]}`), run)
	nodetest.WantError(t, err, fault.TooLarge, "collect_results")
	if _, err := drive(t, "FLOW.FOR_EACH", nodetest.NewCall(t, `{"collect_results": false}`, `{"data": [1, 2, 3]}`), run); err != nil {
		t.Error(err)
	}
}

func TestLoop_KeepsTheListItFound(t *testing.T) {
	t.Parallel()
	scope := kinds().Kind(t, "FLOW.FOR_EACH").Scope
	call := nodetest.NewCall(t, `{}`, `{"data": [1, 2]}`)
	if _, err := scope.Open(context.Background(), call); err != nil || call.Kept == nil {
		t.Fatalf("nothing was kept: %v", err)
	}
	again := nodetest.NewCall(t, `{}`, `{"data": [1, 2]}`)
	for _, c := range []*node.Call{call, again} { // with what was kept and without
		it, err := scope.Iteration(c, nil, 1)
		if err != nil || string(it.Vars["item"]) != "2" {
			t.Errorf("got %s, %v", it.Vars["item"], err)
		}
	}
}

func TestLoop_PropagatesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk")
	call := nodetest.NewCall(t, `{"condition_expression": "results.length < 1"}`, `{}`)
	_, err := kinds().Kind(t, "FLOW.WHILE").Scope.Turn(context.Background(), call, node.Turn{Results: func() ([]json.RawMessage, error) { return nil, broken }})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}
