package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tandem/fault"
	"tandem/llm"
)

// provider is a provider that is a function.
type provider func(ctx context.Context, r llm.Request, sink func(llm.Delta)) (llm.Completion, error)

func (p provider) Complete(ctx context.Context, r llm.Request, sink func(llm.Delta)) (llm.Completion, error) {
	return p(ctx, r, sink)
}

// watcher keeps what an executor tells.
type watcher struct {
	mu     sync.Mutex
	events []llm.Event
	lines  []line
}

type line struct {
	Level, Message string
	Fields         map[string]any
}

func (w *watcher) observe(e llm.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, e)
}

func (w *watcher) log(level, message string, fields map[string]any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, line{level, message, fields})
}

func (w *watcher) types() []llm.EventType {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []llm.EventType
	for _, e := range w.events {
		list = append(list, e.Type)
	}
	return list
}

// setup makes an executor over one provider.
func setup(p provider) (*llm.Executor, *watcher) {
	w := &watcher{}
	return llm.NewExecutor(llm.Options{
		Provide: func(context.Context, llm.Profile) (llm.Provider, error) { return p, nil },
		Observe: w.observe, Log: w.log,
	}), w
}

func ask(text string) llm.Call {
	return llm.Call{
		RequestID: "r1", ExecutionID: "e1", WorkflowID: "w1", NodeID: "n1", NodeType: "AI_AGENT",
		Profile: llm.Profile{ID: "main", Provider: "fake", Model: "m"},
		Request: llm.Request{Messages: []llm.Message{{Role: llm.User, Content: text}}, Stream: true},
	}
}

// pause waits for a time or the end of a context.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func answer(text string) llm.Completion {
	return llm.Completion{
		Message: llm.Message{Role: llm.Assistant, Content: text}, Finish: llm.FinishStop,
		Usage: llm.Usage{InputTokens: 3, OutputTokens: 2},
	}
}

func TestExecutor_Do(t *testing.T) {
	t.Parallel()
	t.Run("StreamsAndTellsAll", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			x, w := setup(func(_ context.Context, _ llm.Request, sink func(llm.Delta)) (llm.Completion, error) {
				sink(llm.Delta{Reasoning: "hm"})
				sink(llm.Delta{Text: "Hello"})
				sink(llm.Delta{ToolCall: &llm.ToolCallDelta{Index: 0, ID: "c1", Name: "look", Arguments: "{}"}})
				c := answer("Hello")
				c.Message.ToolCalls = []llm.ToolCall{{ID: "c1", Name: "look", Arguments: "{}"}}
				c.Finish = llm.FinishToolCalls
				return c, nil
			})
			call := ask("hi")
			call.Request.Tools = []llm.Tool{{Name: "look"}}
			call.Profile.Params.MaxTokens = 7
			call.Snapshot = llm.Snapshot{Conversation: json.RawMessage(`[]`), VariableValues: json.RawMessage(`{"a":1}`)}
			var got []llm.Delta
			call.Sink = func(d llm.Delta) { got = append(got, d) }
			c, err := x.Do(t.Context(), call)
			if err != nil || c.Message.Content != "Hello" || len(got) != 3 {
				t.Fatalf("got %+v, %v, with %d deltas", c, err, len(got))
			}
			synctest.Wait()
			events, err := json.MarshalIndent(w.events, "", " ")
			if err != nil {
				t.Fatal(err)
			}
			var flat any
			if err := json.Unmarshal(events, &flat); err != nil {
				t.Fatal(err)
			}
			var want any
			if err := json.Unmarshal([]byte(`[
				{"type": "LLM_EXECUTION_REQUEST", "request_id": "r1", "workflow_id": "w1", "execution_id": "e1", "node_id": "n1", "node_type": "AI_AGENT",
				 "request_data": {"messages": [{"role": "user", "content": "hi"}], "tools": [{"name": "look"}], "profile_id": "main", "parameters": {"max_tokens": 7}, "stream": true},
				 "context_snapshot": {"conversation": [], "variable_values": {"a": 1}}},
				{"type": "LLM_EXECUTION_CHUNK", "request_id": "r1", "index": 0, "reasoning": "hm"},
				{"type": "LLM_EXECUTION_CHUNK", "request_id": "r1", "index": 1, "text": "Hello"},
				{"type": "LLM_EXECUTION_CHUNK", "request_id": "r1", "index": 2, "tool_call": {"index": 0, "id": "c1", "name": "look", "arguments": "{}"}},
				{"type": "LLM_EXECUTION_COMPLETED", "request_id": "r1",
				 "result": {"content": "Hello", "usage": {"input_tokens": 3, "output_tokens": 2}, "finish_reason": "tool_calls", "tool_calls": [{"id": "c1", "name": "look", "arguments": "{}"}]},
				 "updated_context": [{"role": "assistant", "content": "Hello", "tool_calls": [{"id": "c1", "name": "look", "arguments": "{}"}]}]}
			]`), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, flat); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	})
	t.Run("StreamsAtTheProviderAlone", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			var asked llm.Request
			x, w := setup(func(_ context.Context, r llm.Request, sink func(llm.Delta)) (llm.Completion, error) {
				asked = r
				sink(llm.Delta{Text: "a"})
				return answer("a"), nil
			})
			call := ask("hi")
			call.Request.Stream = false
			call.Sink = func(d llm.Delta) { t.Errorf("the sink of a call that is not streamed got %+v", d) }
			if _, err := x.Do(t.Context(), call); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if !asked.Stream {
				t.Error("the provider was not asked to stream, so nobody knows whether the model has begun")
			}
			if diff := cmp.Diff([]llm.EventType{llm.EventRequest, llm.EventCompleted}, w.types()); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	})
	t.Run("TakesWhatTheRequestLeavesOpenFromTheProfile", func(t *testing.T) {
		t.Parallel()
		var asked llm.Request
		x, _ := setup(func(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Completion, error) {
			asked = r
			return answer("a"), nil
		})
		zero, half, k := 0.0, 0.5, int64(4)
		call := ask("hi")
		call.Request.Temperature = &zero // an explicit zero is said
		call.Request.Stop = []string{}   // as is an empty list
		call.Profile.Params = llm.Params{
			Temperature: &half, TopP: &half, TopK: &k, MaxTokens: 9, FrequencyPenalty: &half, PresencePenalty: &half,
			Stop: []string{"x"}, ReasoningEffort: "low", ThinkingBudget: 5, Safety: json.RawMessage(`{"a":"b"}`),
		}
		if _, err := x.Do(t.Context(), call); err != nil {
			t.Fatal(err)
		}
		want := call.Profile.Params
		want.Temperature, want.Stop = &zero, []string{}
		if diff := cmp.Diff(want, asked.Params); diff != "" {
			t.Errorf("parameters (-want +got):\n%s", diff)
		}
		if asked.Model != "m" {
			t.Errorf("model %q, want that of the profile", asked.Model)
		}
		call.Request.Model, call.Request.Params = "other", llm.Params{Temperature: &zero, TopP: &zero, TopK: new(int64), MaxTokens: 1, FrequencyPenalty: &zero,
			PresencePenalty: &zero, Stop: []string{"y"}, ReasoningEffort: "high", ThinkingBudget: 6, Safety: json.RawMessage(`{}`)}
		if _, err := x.Do(t.Context(), call); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(call.Request.Params, asked.Params); diff != "" || asked.Model != "other" {
			t.Errorf("model %q; parameters that the request gives all of (-want +got):\n%s", asked.Model, diff)
		}
	})
	t.Run("KeepsTheProvidersErrors", func(t *testing.T) {
		t.Parallel()
		limited := &llm.Unavailable{Err: fault.New(fault.RateLimited, "slow down"), RetryAfter: time.Minute}
		for _, given := range []error{limited, fault.New(fault.ContextTooLong, "long"), fmt.Errorf("wrapped: %w", fault.New(fault.ModelRefused, "no"))} {
			x, _ := setup(func(context.Context, llm.Request, func(llm.Delta)) (llm.Completion, error) { return answer("x"), given })
			if c, err := x.Do(t.Context(), ask("hi")); err != given || c.Message.Content != "" {
				t.Errorf("got %+v, %v; want the error %v as it is", c, err, given)
			}
		}
		x, _ := setup(func(context.Context, llm.Request, func(llm.Delta)) (llm.Completion, error) {
			return llm.Completion{}, errors.New("tcp secret")
		})
		_, err := x.Do(t.Context(), ask("hi"))
		if e := fault.From(err); e.Code != fault.Internal || strings.Contains(e.Message, "secret") || !strings.Contains(e.Detail, "secret") {
			t.Errorf("an error without a code became %+v; want internal, with the detail for operators alone", e)
		}
	})
	t.Run("SurvivesWhatPanics", func(t *testing.T) {
		t.Parallel()
		boom := func(context.Context, llm.Request, func(llm.Delta)) (llm.Completion, error) { panic("boom") }
		gone := func(context.Context, llm.Request, func(llm.Delta)) (llm.Completion, error) {
			runtime.Goexit()
			return llm.Completion{}, nil
		}
		for name, p := range map[string]provider{"boom": boom, "without an answer": gone, "no provider": nil} {
			x := llm.NewExecutor(llm.Options{Provide: func(context.Context, llm.Profile) (llm.Provider, error) {
				if p == nil {
					return nil, nil
				}
				return p, nil
			}})
			_, err := x.Do(t.Context(), ask("hi"))
			e := fault.From(err)
			if e.Code != fault.Internal || e.Retryable || !strings.Contains(e.Message+e.Detail, name) {
				t.Errorf("%s: got %+v", name, e)
			}
			if strings.Contains(e.Message, "boom") {
				t.Errorf("the user reads what the panic says: %q", e.Message)
			}
		}
		x := llm.NewExecutor(llm.Options{Provide: func(context.Context, llm.Profile) (llm.Provider, error) { panic("boom") }})
		if _, err := x.Do(t.Context(), ask("hi")); fault.CodeOf(err) != fault.Internal {
			t.Errorf("Provide panicked: %v", err)
		}
		refused := fault.New(fault.CredentialMissing, "no key")
		x = llm.NewExecutor(llm.Options{Provide: func(context.Context, llm.Profile) (llm.Provider, error) { return nil, refused }})
		if _, err := x.Do(t.Context(), ask("hi")); err != refused {
			t.Errorf("Provide refused: %v", err)
		}
	})
	t.Run("StopsWhenItsSinkPanics", func(t *testing.T) {
		t.Parallel()
		var cause error
		x, _ := setup(func(ctx context.Context, _ llm.Request, sink func(llm.Delta)) (llm.Completion, error) {
			sink(llm.Delta{Text: "a"})
			<-ctx.Done()
			cause = context.Cause(ctx)
			sink(llm.Delta{Text: "b"})
			return answer("ab"), nil
		})
		call, told := ask("hi"), 0
		call.Sink = func(llm.Delta) { told++; panic("boom") }
		_, err := x.Do(t.Context(), call)
		if e := fault.From(err); e.Code != fault.Internal || !strings.Contains(e.Message, "sink") || told != 1 || fault.CodeOf(cause) != fault.Internal {
			t.Errorf("got %+v, the sink was told %d times, the provider's context ended with %v", e, told, cause)
		}
	})
}

func TestExecutor_Limits(t *testing.T) {
	t.Parallel()
	// hang is a provider that says nothing and obeys.
	hang := func(ctx context.Context, _ llm.Request, _ func(llm.Delta)) (llm.Completion, error) {
		<-ctx.Done()
		return llm.Completion{}, fault.New(fault.NetworkError, "connection closed").WithCause(ctx.Err())
	}
	// drip is a provider that says something every second, for ever.
	drip := func(first llm.Delta) provider {
		return func(ctx context.Context, _ llm.Request, sink func(llm.Delta)) (llm.Completion, error) {
			for d := first; ; {
				sink(d)
				if err := pause(ctx, time.Second); err != nil {
					return llm.Completion{}, err
				}
			}
		}
	}
	cases := []struct {
		name              string
		provider          provider
		firstToken, total time.Duration
		plain             bool
		budget            string
		limit             time.Duration
	}{
		{name: "FirstToken", provider: hang, budget: "first token", limit: 30 * time.Second},
		{name: "FirstTokenSet", provider: hang, firstToken: 5 * time.Second, budget: "first token", limit: 5 * time.Second},
		{name: "FirstTokenWithoutStreaming", provider: hang, plain: true, budget: "first token", limit: 30 * time.Second},
		{name: "NothingIsNoToken", provider: drip(llm.Delta{}), budget: "first token", limit: 30 * time.Second},
		{name: "Total", provider: drip(llm.Delta{Text: "a"}), budget: "total", limit: 300 * time.Second},
		{name: "TotalSet", provider: drip(llm.Delta{Text: "a"}), total: 40 * time.Second, budget: "total", limit: 40 * time.Second},
		{name: "TotalWithoutStreaming", provider: drip(llm.Delta{Text: "a"}), plain: true, budget: "total", limit: 300 * time.Second},
		{name: "ReasoningIsAToken", provider: drip(llm.Delta{Reasoning: "hm"}), budget: "total", limit: 300 * time.Second},
		{name: "ToolCallIsAToken", provider: drip(llm.Delta{ToolCall: &llm.ToolCallDelta{Name: "f"}}), budget: "total", limit: 300 * time.Second},
		{name: "TotalBelowFirstToken", provider: hang, total: 10 * time.Second, budget: "total", limit: 10 * time.Second},
		{name: "TotalAsFirstToken", provider: hang, total: 30 * time.Second, budget: "total", limit: 30 * time.Second},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var cause error
				x, w := setup(func(ctx context.Context, r llm.Request, sink func(llm.Delta)) (llm.Completion, error) {
					done, err := c.provider(ctx, r, sink)
					cause = context.Cause(ctx)
					return done, err
				})
				call := ask("hi")
				call.FirstToken, call.Total, call.Request.Stream = c.firstToken, c.total, !c.plain
				start := time.Now()
				_, err := x.Do(t.Context(), call)
				if took := time.Since(start); took != c.limit {
					t.Errorf("took %s, want %s", took, c.limit)
				}
				e := fault.From(err)
				if e.Code != fault.Timeout || !e.Retryable || !strings.Contains(e.Message, fmt.Sprintf("%q of %s", c.budget, c.limit)) {
					t.Errorf("got %v", e)
				}
				want := map[string]any{"budget": c.budget, "limit_ms": c.limit.Milliseconds()}
				if diff := cmp.Diff(want, e.Details); diff != "" {
					t.Errorf("details (-want +got):\n%s", diff)
				}
				if fault.CodeOf(cause) != fault.Timeout {
					t.Errorf("the provider's context ended with %v, want the same timeout", cause)
				}
				synctest.Wait()
				if types := w.types(); types[len(types)-1] != llm.EventFailed {
					t.Errorf("the last event is %s", types[len(types)-1])
				}
			})
		})
	}
	t.Run("HoldWhileTheProviderIsFound", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			x := llm.NewExecutor(llm.Options{Provide: func(ctx context.Context, _ llm.Profile) (llm.Provider, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}})
			start := time.Now()
			_, err := x.Do(t.Context(), ask("hi"))
			if took := time.Since(start); took != 30*time.Second || fault.CodeOf(err) != fault.Timeout {
				t.Errorf("ended after %s with %v", took, err)
			}
		})
	})
	t.Run("LeaveNoTimerBehind", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			var held context.Context
			x, _ := setup(func(ctx context.Context, _ llm.Request, sink func(llm.Delta)) (llm.Completion, error) {
				held = ctx
				if err := pause(ctx, 29*time.Second); err != nil {
					return llm.Completion{}, err
				}
				sink(llm.Delta{Text: "a"})
				return answer("a"), pause(ctx, 270*time.Second)
			})
			if _, err := x.Do(t.Context(), ask("hi")); err != nil {
				t.Fatal(err)
			}
			if held.Err() == nil {
				t.Error("the provider's context outlives its call")
			}
		})
	})
}

func TestExecutor_LateAnswer(t *testing.T) {
	t.Parallel()
	t.Run("IsDropped", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			returned := make(chan struct{})
			x, w := setup(func(_ context.Context, _ llm.Request, sink func(llm.Delta)) (llm.Completion, error) {
				defer close(returned)
				<-time.After(time.Minute) // and never looks at its context
				sink(llm.Delta{Text: "late"})
				return answer("late"), nil
			})
			call := ask("hi")
			call.Sink = func(d llm.Delta) { t.Errorf("the sink got %+v after the call", d) }
			start := time.Now()
			c, err := x.Do(t.Context(), call)
			if fault.CodeOf(err) != fault.Timeout || c.Message.Content != "" {
				t.Errorf("got %+v, %v", c, err)
			}
			// One second more for the connection to be closed, then the provider is left alone.
			if took := time.Since(start); took != 31*time.Second {
				t.Errorf("took %s", took)
			}
			<-returned
			synctest.Wait()
			if diff := cmp.Diff([]llm.EventType{llm.EventRequest, llm.EventFailed}, w.types()); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			var said []string
			for _, l := range w.lines {
				said = append(said, l.Level+" "+l.Message)
			}
			want := []string{"DEBUG model call begins", "WARN a provider did not stop when its call ended", "DEBUG model call failed", "DEBUG a late answer is dropped"}
			if diff := cmp.Diff(want, said); diff != "" {
				t.Errorf("log (-want +got):\n%s", diff)
			}
		})
	})
	t.Run("AtTheVeryMomentHasOneEnd", func(t *testing.T) {
		t.Parallel()
		for range 200 {
			synctest.Test(t, func(t *testing.T) {
				x, w := setup(func(_ context.Context, _ llm.Request, sink func(llm.Delta)) (llm.Completion, error) {
					<-time.After(30 * time.Second)
					sink(llm.Delta{Text: "a"})
					return answer("a"), nil
				})
				c, err := x.Do(t.Context(), ask("hi"))
				synctest.Wait()
				types := w.types()
				last := types[len(types)-1]
				switch {
				case err == nil && (last != llm.EventCompleted || c.Message.Content != "a"),
					err != nil && (last != llm.EventFailed || fault.CodeOf(err) != fault.Timeout),
					slices.Contains(types, llm.EventCompleted) && slices.Contains(types, llm.EventFailed):
					t.Errorf("got %+v, %v with events %v", c, err, types)
				}
			})
		}
	})
	t.Run("WaitsForASinkUnderWay", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			x, _ := setup(func(_ context.Context, _ llm.Request, sink func(llm.Delta)) (llm.Completion, error) {
				sink(llm.Delta{Text: "a"})
				sink(llm.Delta{Text: "b"})
				return answer("ab"), nil
			})
			call := ask("hi")
			call.Total = 10 * time.Second
			inside, calls := false, 0
			call.Sink = func(llm.Delta) {
				calls++
				inside = true
				<-time.After(20 * time.Second)
				inside = false
			}
			_, err := x.Do(t.Context(), call)
			if inside || calls != 1 || fault.CodeOf(err) != fault.Timeout {
				t.Errorf("returned %v with the sink under way: %v, after %d calls", err, inside, calls)
			}
		})
	})
}

func TestExecutor_Context(t *testing.T) {
	t.Parallel()
	obedient := func(ctx context.Context, _ llm.Request, sink func(llm.Delta)) (llm.Completion, error) {
		sink(llm.Delta{Text: "a"})
		<-ctx.Done()
		return llm.Completion{}, fault.New(fault.NetworkError, "connection closed")
	}
	deaf := func(_ context.Context, _ llm.Request, sink func(llm.Delta)) (llm.Completion, error) {
		<-time.After(time.Minute)
		sink(llm.Delta{Text: "late"})
		return answer("late"), nil
	}
	own := fault.New(fault.Interrupted, "the host shuts down")
	for name, p := range map[string]provider{"Obedient": obedient, "Deaf": deaf} {
		for _, c := range []struct {
			name  string
			cause error
			code  fault.Code
		}{{"Canceled", nil, fault.Canceled}, {"WithAReason", own, fault.Interrupted}, {"Deadline", context.DeadlineExceeded, fault.Timeout}} {
			t.Run(name+c.name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					x, w := setup(p)
					ctx, cancel := context.WithCancelCause(t.Context())
					time.AfterFunc(3*time.Second, func() { cancel(c.cause) })
					start := time.Now()
					_, err := x.Do(ctx, ask("hi"))
					if took := time.Since(start); took > 4*time.Second || fault.CodeOf(err) != c.code {
						t.Errorf("ended after %s with %v, want %s", took, err, c.code)
					}
					<-time.After(2 * time.Minute)
					synctest.Wait()
					if types := w.types(); types[len(types)-1] != llm.EventFailed {
						t.Errorf("events %v", types)
					}
				})
			})
		}
	}
	t.Run("WinsOverHowItLooksToTheProvider", func(t *testing.T) {
		t.Parallel()
		for range 300 { // the provider's error and the end of the context reach the call in either order
			ctx, cancel := context.WithCancel(t.Context())
			x, _ := setup(func(context.Context, llm.Request, func(llm.Delta)) (llm.Completion, error) {
				cancel()
				return llm.Completion{}, fault.New(fault.NetworkError, "connection closed")
			})
			if _, err := x.Do(ctx, ask("hi")); fault.CodeOf(err) != fault.Canceled {
				t.Fatalf("got %v", err)
			}
		}
	})
	t.Run("EndedBefore", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		x, _ := setup(func(context.Context, llm.Request, func(llm.Delta)) (llm.Completion, error) {
			t.Error("the provider was asked")
			return llm.Completion{}, nil
		})
		if _, err := x.Do(ctx, ask("hi")); fault.CodeOf(err) != fault.Canceled {
			t.Errorf("got %v", err)
		}
	})
}
