package app

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"tandem/store"
	"tandem/store/sqlite/sqlitetest"
	"tandem/tracing"
)

// collectorOf takes spans as a collector does.
func collectorOf(t *testing.T) (url string, spans func() []*tracepb.Span) {
	t.Helper()
	var mu sync.Mutex
	var all []*tracepb.Span
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var request collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &request)
		}
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL.Path, err)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for _, rs := range request.ResourceSpans {
			for _, ss := range rs.ScopeSpans {
				all = append(all, ss.Spans...)
			}
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(server.Close)
	return server.URL, func() []*tracepb.Span {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

func TestTrace(t *testing.T) {
	t.Parallel()
	url, spans := collectorOf(t)
	s := startServer(t, ServeOptions{Dir: sqlitetest.Dir(t), Traces: url})
	s.want(201, "POST", "/api/v1/workflows", strings.Replace(napFlow, "SECONDS", "0.05", 1))
	e := s.want(200, "POST", "/api/v1/workflows/nap/execute", `{"wait_seconds":30,"inputs":{"secret":"canary-value"}}`)
	if e["status"] != "SUCCESS" {
		t.Fatalf("execution %v", e)
	}
	s.stopAndWait() // which sends what is left

	ref := store.Ref{Workspace: "default", Execution: e["execution_id"].(string)}
	id, root := tracing.TraceID(ref), tracing.RootID(ref)
	var names []string
	var request, execution bool
	for _, span := range spans() {
		if span.EndTimeUnixNano < span.StartTimeUnixNano {
			t.Errorf("span %q ends before it begins", span.Name)
		}
		if strings.Contains(span.String(), "canary-value") {
			t.Errorf("a value is in span %v", span)
		}
		switch {
		case span.Name == "POST /api/v1/workflows/{id}/execute":
			request = span.Kind == tracepb.Span_SPAN_KIND_SERVER
		case string(span.TraceId) != string(id[:]):
		case string(span.SpanId) == string(root[:]):
			execution = len(span.ParentSpanId) == 0 && span.Name == "execution"
		case string(span.ParentSpanId) != string(root[:]):
			t.Errorf("span %q has another parent", span.Name)
		default:
			names = append(names, span.Name)
			if span.Name == "nap" && span.EndTimeUnixNano-span.StartTimeUnixNano < 40_000_000 {
				t.Errorf("the nap took %d ns", span.EndTimeUnixNano-span.StartTimeUnixNano)
			}
		}
	}
	slices.Sort(names)
	if !request || !execution || !slices.Equal(names, []string{"end", "nap", "start"}) {
		t.Errorf("request %v, execution %v, nodes %v in %d spans", request, execution, names, len(spans()))
	}
}
