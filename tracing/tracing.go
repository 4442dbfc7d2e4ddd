// Package tracing makes OpenTelemetry spans of what an instance does: one for each request, and a trace for each execution. It knows rows,
// and nothing of how they come about; package app imports it.
package tracing

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/store"
	"tandem/workflow"
)

// Bounds of what the tracer holds: executions whose root span is open, and activations of each that have begun.
const (
	maxTraced      = 10_000
	maxTracedNodes = 1_000
)

// Tracer makes spans: one per request, and one trace per execution with a span per activation. Trace and root span of an
// execution have ids that follow from its own, so that every process that works on it adds to the same trace. A nil tracer
// does nothing.
type Tracer struct {
	provider *sdktrace.TracerProvider
	requests trace.Tracer
	ids      *spanIDs
	log      *slog.Logger

	mu   sync.Mutex
	open map[store.Ref]*tracedExecution
}

// tracedExecution is what is known of an execution that has not ended.
type tracedExecution struct {
	began time.Time
	nodes map[engine.ActivationID]time.Time
}

// New makes a tracer that sends to an OTLP endpoint; none when the endpoint is empty.
func New(ctx context.Context, endpoint, version string, log *slog.Logger) (*Tracer, error) {
	if endpoint == "" {
		return nil, nil
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fault.Newf(fault.Invalid, "the endpoint for traces, %q, is not an address such as http://localhost:4318", endpoint)
	}
	if strings.Trim(u.Path, "/") == "" { // as the protocol says: traces go below the endpoint of all signals
		u.Path = "/v1/traces"
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(u.String()))
	if err != nil {
		return nil, fmt.Errorf("send traces to %q: %w", endpoint, err)
	}
	ids := &spanIDs{}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter), sdktrace.WithIDGenerator(ids),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", "tandem"),
			attribute.String("service.version", version))),
	)
	return &Tracer{provider: provider, requests: provider.Tracer("tandem"), ids: ids, log: log, open: map[store.Ref]*tracedExecution{}}, nil
}

// Close sends what is left.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		t.log.Warn("the last traces were not sent", "error", err) // no reason to end badly: the journal has it all
	}
	return nil
}

// Wrap makes a span of every request, as part of the caller's trace if it names one.
func (t *Tracer) Wrap(next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	incoming := propagation.TraceContext{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, span := t.requests.Start(incoming.Extract(r.Context(), propagation.HeaderCarrier(r.Header)), r.Method,
			trace.WithSpanKind(trace.SpanKindServer))
		defer span.End()
		status := &statusWriter{ResponseWriter: w}
		r = r.WithContext(ctx)
		next.ServeHTTP(status, r)
		if _, route, ok := strings.Cut(r.Pattern, " "); ok {
			span.SetName(r.Method + " " + route)
			span.SetAttributes(attribute.String("http.route", route))
		}
		span.SetAttributes(attribute.String("http.request.method", r.Method), attribute.Int("http.response.status_code", status.code()))
		if status.code() >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, http.StatusText(status.code()))
		}
	})
}

// statusWriter remembers the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) code() int {
	if w.status == 0 {
		return http.StatusOK
	}
	return w.status
}

// Recorded tells a row as spans: those of the activations that ended with it, and that of the execution at its end. A span
// of an activation that began before this process knows its beginning only as far as the row says.
func (t *Tracer) Recorded(ref store.Ref, graph *workflow.Graph, row host.Row) {
	if t == nil {
		return
	}
	at := time.UnixMilli(row.Time)
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.open[ref]
	if e == nil {
		if len(t.open) >= maxTraced {
			clear(t.open) // their ends are still told, without their beginnings
		}
		e = &tracedExecution{began: at, nodes: map[engine.ActivationID]time.Time{}}
		t.open[ref] = e
	}
	spans := rowSpans(e, at, row)
	for _, s := range spans {
		t.span(ref, graph, s)
	}
	for _, told := range row.Told {
		if told.What == host.ToldExecution && told.Status.Final() {
			t.root(ref, e.began, at, told)
			delete(t.open, ref)
		}
	}
}

// endedNode is an activation that a row ended.
type endedNode struct {
	id         engine.ActivationID
	status     engine.NodeStatus
	began, end time.Time
	err        *fault.Error
}

// rowSpans finds out which activations a row ended, and notes which it began.
func rowSpans(e *tracedExecution, at time.Time, row host.Row) []endedNode {
	ran := map[engine.ActivationID]time.Time{}
	failed := map[engine.ActivationID]bool{}
	for _, told := range row.Told {
		switch {
		case told.What == host.ToldRan:
			ran[told.Activation] = time.UnixMilli(told.Time)
		case told.What == host.ToldNode && told.Node == engine.NodeFailure:
			failed[told.Activation] = true
		}
	}
	var ended []endedNode
	end := func(id engine.ActivationID, status engine.NodeStatus, err *fault.Error) {
		began, ok := e.nodes[id]
		if exact, known := ran[id]; known && !ok {
			began, ok = exact, true
		}
		if !ok {
			began = at
		}
		delete(e.nodes, id)
		ended = append(ended, endedNode{id, status, began, at, err})
	}
	for _, f := range row.Facts {
		if done, ok := f.(engine.NodeCompleted); ok && !failed[done.Activation] {
			end(done.Activation, engine.NodeDone, nil)
		}
	}
	for _, told := range row.Told {
		if told.What != host.ToldNode {
			continue
		}
		switch told.Node {
		case engine.NodeFailure, engine.NodeCanceled, engine.NodeSkip:
			end(told.Activation, told.Node, told.Error)
		case engine.NodeRunning:
			if _, known := e.nodes[told.Activation]; !known && len(e.nodes) < maxTracedNodes {
				e.nodes[told.Activation] = at
			}
		}
	}
	return ended
}

// span tells of an activation. Values never go into traces: they may be anybody's data.
func (t *Tracer) span(ref store.Ref, graph *workflow.Graph, n endedNode) {
	id := host.NodeOf(graph, n.id)
	kind, name := "", id
	if i, ok := graph.Node(id); ok {
		kind, name = graph.Nodes[i].Kind, graph.Nodes[i].Name
	}
	if name == "" {
		name = id
	}
	ctx := trace.ContextWithSpanContext(context.Background(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: TraceID(ref), SpanID: RootID(ref), TraceFlags: trace.FlagsSampled, Remote: true,
	}))
	_, span := t.requests.Start(ctx, name, trace.WithTimestamp(n.began), trace.WithAttributes(
		attribute.String("tandem.execution.id", ref.Execution), attribute.String("tandem.activation.id", string(n.id)),
		attribute.String("tandem.node.id", id), attribute.String("tandem.node.kind", kind),
		attribute.String("tandem.node.status", string(n.status)),
	))
	failure(span, n.err)
	span.End(trace.WithTimestamp(n.end))
}

// root tells of an execution that has ended.
func (t *Tracer) root(ref store.Ref, began, end time.Time, told host.Told) {
	ctx := context.WithValue(context.Background(), rootKey{}, ref)
	_, span := t.requests.Start(ctx, "execution", trace.WithNewRoot(), trace.WithTimestamp(began), trace.WithAttributes(
		attribute.String("tandem.workspace", ref.Workspace), attribute.String("tandem.execution.id", ref.Execution),
		attribute.String("tandem.execution.status", string(told.Status)),
	))
	failure(span, told.Error)
	span.End(trace.WithTimestamp(end))
}

func failure(span trace.Span, err *fault.Error) {
	if err != nil {
		span.SetStatus(codes.Error, err.Message)
		span.SetAttributes(attribute.String("error.type", string(err.Code)))
	}
}

// rootKey marks a context that the root span of an execution is begun with.
type rootKey struct{}

// spanIDs makes ids: those that follow from an execution for its root, random ones for the rest.
type spanIDs struct{}

// NewIDs implements sdktrace.IDGenerator.
func (g *spanIDs) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if ref, ok := ctx.Value(rootKey{}).(store.Ref); ok {
		return TraceID(ref), RootID(ref)
	}
	var id trace.TraceID
	rand.Read(id[:])
	return id, g.NewSpanID(ctx, id)
}

// NewSpanID implements sdktrace.IDGenerator.
func (g *spanIDs) NewSpanID(context.Context, trace.TraceID) trace.SpanID {
	var id trace.SpanID
	rand.Read(id[:])
	return id
}

// TraceID is the id of the trace of an execution. It follows from the id of the execution, so that every process adds to the same trace.
func TraceID(ref store.Ref) trace.TraceID {
	sum := sha256.Sum256([]byte("trace " + ref.Workspace + "/" + ref.Execution))
	return trace.TraceID(sum[:16])
}

// RootID is the id of the span that all others of an execution are in.
func RootID(ref store.Ref) trace.SpanID {
	sum := sha256.Sum256([]byte("span " + ref.Workspace + "/" + ref.Execution))
	return trace.SpanID(sum[:8])
}
