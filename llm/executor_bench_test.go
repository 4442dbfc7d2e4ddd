package llm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"tandem/llm"
)

// BenchmarkExecutor_Stream measures what the executor adds to every piece of a stream, beside the same provider without
// it, in one run: one stream of each by turns, medians over all. A bare provider does nothing but call the sink, so that
// the addition shows as it is; a decoding one reads a frame of JSON for every piece, like real ones do.
func BenchmarkExecutor_Stream(b *testing.B) {
	frame := []byte(`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"word "},"finish_reason":null}]}`)
	bare := func(n int) provider {
		return func(_ context.Context, _ llm.Request, sink func(llm.Delta)) (llm.Completion, error) {
			for range n {
				sink(llm.Delta{Text: "word "})
			}
			return answer("done"), nil
		}
	}
	decoding := func(n int) provider {
		return func(_ context.Context, _ llm.Request, sink func(llm.Delta)) (llm.Completion, error) {
			for range n {
				var chunk struct {
					Choices []struct {
						Delta struct {
							Content string `json:"content"`
						} `json:"delta"`
					} `json:"choices"`
				}
				if err := json.Unmarshal(frame, &chunk); err != nil {
					return llm.Completion{}, err
				}
				sink(llm.Delta{Text: chunk.Choices[0].Delta.Content})
			}
			return answer("done"), nil
		}
	}
	for _, kind := range []struct {
		name string
		make func(int) provider
	}{{"bare", bare}, {"decoding", decoding}} {
		for _, n := range []int{1_000, 10_000, 100_000} {
			for _, observed := range []bool{false, true} {
				b.Run(fmt.Sprintf("%s/deltas=%d/observed=%v", kind.name, n, observed), func(b *testing.B) {
					p := kind.make(n)
					o := llm.Options{Provide: func(context.Context, llm.Profile) (llm.Provider, error) { return p, nil }}
					if observed {
						o.Observe = func(llm.Event) {}
					}
					x := llm.NewExecutor(o)
					told := 0
					call := ask("hi")
					call.Sink = func(llm.Delta) { told++ }
					var direct, through []float64
					for b.Loop() {
						start := time.Now()
						if _, err := p.Complete(b.Context(), call.Request, call.Sink); err != nil {
							b.Fatal(err)
						}
						middle := time.Now()
						if _, err := x.Do(b.Context(), call); err != nil {
							b.Fatal(err)
						}
						direct = append(direct, float64(middle.Sub(start))/float64(n))
						through = append(through, float64(time.Since(middle))/float64(n))
					}
					if told != 2*n*len(direct) {
						b.Fatalf("the sink was told %d times, want %d", told, 2*n*len(direct))
					}
					slices.Sort(direct)
					slices.Sort(through)
					d, e := direct[len(direct)/2], through[len(through)/2]
					b.ReportMetric(d, "direct-ns/delta")
					b.ReportMetric(e, "executor-ns/delta")
					b.ReportMetric(e-d, "added-ns/delta")
					b.ReportMetric(e/d, "ratio")
					b.ReportMetric(0, "ns/op")
				})
			}
		}
	}
}
