package llm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tandem/fault"
	"tandem/llm"
)

// chatter is a provider that says n words.
func chatter(n int) provider {
	return func(_ context.Context, _ llm.Request, sink func(llm.Delta)) (llm.Completion, error) {
		for range n {
			sink(llm.Delta{Text: "a "})
		}
		return answer(strings.Repeat("a ", n)), nil
	}
}

func TestExecutor_Observe(t *testing.T) {
	t.Parallel()
	t.Run("NobodyWaitsForASlowOne", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			const chunks, calls = 5000, 2
			release := make(chan struct{})
			w := &watcher{}
			x := llm.NewExecutor(llm.Options{
				Provide: func(context.Context, llm.Profile) (llm.Provider, error) { return chatter(chunks), nil },
				Observe: func(e llm.Event) { <-release; w.observe(e) },
				Log:     w.log,
			})
			told := 0
			for range calls {
				call := ask("hi")
				call.Sink = func(llm.Delta) { told++ }
				start := time.Now()
				if _, err := x.Do(t.Context(), call); err != nil || time.Since(start) != 0 {
					t.Fatalf("the call took %s and ended with %v", time.Since(start), err)
				}
			}
			if told != calls*chunks {
				t.Errorf("the sink was told %d of %d pieces", told, calls*chunks)
			}
			close(release)
			synctest.Wait()
			ends, last, kept := 0, int64(-1), 0
			for _, e := range w.events {
				switch e.Type {
				case llm.EventCompleted:
					ends++
				case llm.EventRequest:
					last = -1
				case llm.EventChunk:
					kept++
					if e.Index <= last {
						t.Fatalf("chunk %d after %d", e.Index, last)
					}
					last = e.Index
				}
			}
			if ends != calls {
				t.Errorf("%d of %d ends arrived: chunks have pushed them out", ends, calls)
			}
			if dropped := x.Dropped(); dropped == 0 || int(dropped)+kept != calls*chunks {
				t.Errorf("%d dropped and %d kept of %d", dropped, kept, calls*chunks)
			}
			var lost any
			for _, l := range w.lines {
				if l.Message == "model call completed" {
					lost = l.Fields["chunks_dropped"]
				}
			}
			if n, ok := lost.(int64); !ok || n == 0 {
				t.Errorf("the log says that %v chunks were dropped", lost)
			}
		})
	})
	t.Run("IsBounded", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			var mu sync.Mutex
			seen := 0
			x := llm.NewExecutor(llm.Options{
				Provide: func(context.Context, llm.Profile) (llm.Provider, error) { return chatter(0), nil },
				Observe: func(llm.Event) {
					<-release
					mu.Lock()
					seen++
					mu.Unlock()
				},
			})
			const calls = 5000
			for range calls {
				if _, err := x.Do(t.Context(), ask("hi")); err != nil {
					t.Fatal(err)
				}
			}
			close(release)
			synctest.Wait()
			if seen > 5000 || seen+int(x.Dropped()) != 2*calls {
				t.Errorf("%d events waited, %d were dropped, of %d", seen, x.Dropped(), 2*calls)
			}
		})
	})
	t.Run("MayPanic", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			w := &watcher{}
			x := llm.NewExecutor(llm.Options{
				Provide: func(context.Context, llm.Profile) (llm.Provider, error) { return chatter(3), nil },
				Observe: func(e llm.Event) {
					w.observe(e)
					panic("canary in a prompt")
				},
				Log: w.log,
			})
			for range 2 {
				if _, err := x.Do(t.Context(), ask("hi")); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			}
			if len(w.events) != 10 || x.Dropped() != 10 {
				t.Errorf("%d events were tried and %d counted as dropped, want 10 each", len(w.events), x.Dropped())
			}
			warned := false
			for _, l := range w.lines {
				warned = warned || l.Level == "WARN" && l.Fields["panic"] == "string"
			}
			if text := fmt.Sprint(w.lines); !warned || strings.Contains(text, "canary") {
				t.Errorf("the log should tell of the panic and not what it says: %s", text)
			}
		})
	})
	t.Run("GetsItsOwnCopies", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			x, w := setup(func(_ context.Context, _ llm.Request, sink func(llm.Delta)) (llm.Completion, error) {
				piece := &llm.ToolCallDelta{}
				for i := range 3 {
					piece.Arguments = fmt.Sprint(i)
					sink(llm.Delta{ToolCall: piece})
				}
				return answer(""), nil
			})
			if _, err := x.Do(t.Context(), ask("hi")); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			for i, e := range w.events[1:4] {
				if e.ToolCall.Arguments != fmt.Sprint(i) {
					t.Errorf("chunk %d has %q", i, e.ToolCall.Arguments)
				}
			}
		})
	})
	t.Run("SeesNoOperatorDetail", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			x, w := setup(func(context.Context, llm.Request, func(llm.Delta)) (llm.Completion, error) {
				return llm.Completion{}, fault.New(fault.RemoteError, "status 500").WithDetail("canary").With("status", 500)
			})
			if _, err := x.Do(t.Context(), ask("hi")); err == nil {
				t.Fatal("no error")
			}
			synctest.Wait()
			raw, err := json.Marshal(w.events[len(w.events)-1])
			if err != nil {
				t.Fatal(err)
			}
			want := `{"type":"LLM_EXECUTION_FAILED","request_id":"r1","error":{"error_code":"remote_error","error_message":"status 500","error_details":{"status":500},"is_retryable":true}}`
			if string(raw) != want {
				t.Errorf("got  %s\nwant %s", raw, want)
			}
		})
	})
}

func TestExecutor_Log(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fail := false
		x, w := setup(func(ctx context.Context, _ llm.Request, sink func(llm.Delta)) (llm.Completion, error) {
			if err := pause(ctx, 2*time.Second); err != nil {
				return llm.Completion{}, err
			}
			sink(llm.Delta{Text: "canary answer"})
			if err := pause(ctx, time.Second); err != nil {
				return llm.Completion{}, err
			}
			if fail {
				return llm.Completion{}, fault.New(fault.RemoteRejected, "bad request: canary").WithDetail("canary")
			}
			return answer("canary answer"), nil
		})
		call := ask("canary 你好")
		call.Request.Messages = append(call.Request.Messages, llm.Message{Role: llm.System, Content: "canary"})
		call.Request.Tools = []llm.Tool{{Name: "b", Description: "canary"}, {Name: "a"}}
		if _, err := x.Do(t.Context(), call); err != nil {
			t.Fatal(err)
		}
		fail = true
		if _, err := x.Do(t.Context(), call); err == nil {
			t.Fatal("no error")
		}
		base := func(ms int64, more map[string]any) map[string]any {
			m := map[string]any{"request_id": "r1", "execution_id": "e1", "node_id": "n1", "profile": "main", "model": "m", "prompt_length": 15, "tools": []string{"b", "a"}, "duration_ms": ms}
			for k, v := range more {
				m[k] = v
			}
			return m
		}
		want := []line{
			{"DEBUG", "model call begins", base(0, nil)},
			{"DEBUG", "model call streams", base(2000, nil)},
			{"DEBUG", "model call completed", base(3000, map[string]any{
				"finish_reason": llm.FinishStop, "input_tokens": int64(3), "output_tokens": int64(2), "first_token_ms": int64(2000), "chunks": int64(1), "chunks_dropped": int64(0),
			})},
			{"DEBUG", "model call begins", base(0, nil)},
			{"DEBUG", "model call streams", base(2000, nil)},
			{"DEBUG", "model call failed", base(3000, map[string]any{"error_code": fault.RemoteRejected})},
		}
		if diff := cmp.Diff(want, w.lines); diff != "" {
			t.Errorf("log (-want +got):\n%s", diff)
		}
		if text := fmt.Sprint(w.lines); strings.Contains(text, "canary") {
			t.Errorf("the log has what was said: %s", text)
		}
	})
}

func TestExecutor_Concurrently(t *testing.T) {
	t.Parallel()
	x, w := setup(chatter(50))
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			call := ask("hi")
			call.RequestID = fmt.Sprint(i)
			told := 0
			call.Sink = func(llm.Delta) { told++ }
			if _, err := x.Do(t.Context(), call); err != nil || told != 50 {
				t.Errorf("call %d: %d pieces, %v", i, told, err)
			}
		})
	}
	group.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.lines) != 60 {
		t.Errorf("%d log lines, want 3 per call", len(w.lines))
	}
}
