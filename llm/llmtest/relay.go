package llmtest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"tandem/llm"
)

// Relay measures what a delta costs on its way from the service to the sink, in streams of 1,000 and of 10,000 deltas,
// beside what it costs to read the same bytes from the same server line by line and do nothing with them. Both are done
// in turns, so a busy machine changes both. A cost per delta that grows with the stream is a defect.
func Relay(b *testing.B, h Harness) {
	for _, n := range []int{1_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			sc := text(numbered(n)...)
			s := serve(b, h, tweak{}, inOneGo(sc))
			r := h.plain(true)
			told := 0
			sink := func(llm.Delta) { told++ }
			if _, err := s.provider.Complete(b.Context(), r, sink); err != nil || told != n {
				b.Fatalf("complete: told %d of %d, %v", told, n, err)
			}
			raw := rawReader(b, h, r, sc)
			var relayed, read time.Duration
			for b.Loop() {
				start := time.Now()
				if _, err := s.provider.Complete(b.Context(), r, sink); err != nil {
					b.Fatal(err)
				}
				middle := time.Now()
				raw()
				relayed += middle.Sub(start)
				read += time.Since(middle)
			}
			per := float64(b.N) * float64(n)
			b.ReportMetric(float64(relayed.Nanoseconds())/per, "ns/delta")
			b.ReportMetric(float64(read.Nanoseconds())/per, "ns/delta-raw")
			b.ReportMetric(float64(relayed)/float64(read), "x-raw")
			b.ReportMetric(0, "ns/op") // both turns together: it says nothing
		})
	}
}

// rawReader returns a function that fetches the bytes of a stream and reads their lines. What a provider sends is caught
// once and sent again, so that the server does the same work.
func rawReader(b *testing.B, h Harness, r llm.Request, sc Scenario) func() {
	b.Helper()
	caught := &catcher{}
	s := serve(b, h, tweak{}, inOneGo(sc))
	client := s.client(b)
	b.Cleanup(client.Close)
	caught.next = client.RoundTripper(0)
	provider, err := h.New(llm.Settings{BaseURL: s.server.URL + h.BasePath, Key: secret, HTTP: &http.Client{Transport: caught}})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := provider.Complete(b.Context(), r, func(llm.Delta) {}); err != nil {
		b.Fatal(err)
	}
	want := len(sc.Deltas)
	return func() {
		request := caught.request.Clone(context.Background())
		request.Body = io.NopCloser(bytes.NewReader(caught.body))
		response, err := caught.next.RoundTrip(request)
		if err != nil {
			b.Fatal(err)
		}
		lines := 0
		reader := bufio.NewReader(response.Body)
		for {
			line, err := reader.ReadSlice('\n')
			if len(line) > 1 {
				lines++
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
		}
		if err := response.Body.Close(); err != nil {
			b.Fatal(err)
		}
		if lines < want {
			b.Fatalf("read %d lines of %d", lines, want)
		}
	}
}

// catcher keeps the last request that went through it.
type catcher struct {
	next    http.RoundTripper
	request *http.Request
	body    []byte
}

func (c *catcher) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	c.request, c.body = r.Clone(context.WithoutCancel(r.Context())), body
	r.Body = io.NopCloser(bytes.NewReader(body))
	return c.next.RoundTrip(r)
}
