// Package metrics counts what an instance does, for Prometheus: requests, executions, what became of activations, tokens and what
// they cost. It also says what the store keeps, when it is asked. It knows rows, and nothing of how they come about; package server
// has the route on which the numbers are read.
package metrics

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/tidwall/gjson"

	"tandem/agent"
	"tandem/engine"
	"tandem/host"
	"tandem/node"
	"tandem/route"
	"tandem/workflow"
)

// Metrics are the numbers of one instance. They have a registry of their own, so several instances in a process do not
// mix. Workspaces, workflows and users are not labels: there may be any number of them.
type Metrics struct {
	registry    *prometheus.Registry
	requests    *prometheus.HistogramVec
	started     prometheus.Counter
	ended       *prometheus.CounterVec
	activations *prometheus.CounterVec
	tokens      *prometheus.CounterVec
	cost        *prometheus.CounterVec
	rows        prometheus.Counter
	streams     *prometheus.GaugeVec
	left        *prometheus.CounterVec
	removed     *prometheus.CounterVec
}

// New makes numbers that are all zero.
func New() *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tandem_http_request_duration_seconds", Help: "Requests by route, method and status. A stream counts when it ends.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 60},
		}, []string{"route", "method", "code"}),
		started: prometheus.NewCounter(prometheus.CounterOpts{Name: "tandem_executions_started_total", Help: "Executions that have begun to run."}),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tandem_executions_ended_total", Help: "Executions by the status they ended with. One that was revived ends again.",
		}, []string{"status"}),
		activations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tandem_activations_total", Help: "What became of activations, by kind of node: completed, failed, skipped, canceled; retrying counts attempts.",
		}, []string{"kind", "outcome"}),
		tokens: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tandem_tokens_total", Help: "Tokens that models have taken and given, by kind of node: input (of which cached were read from a cache), output.",
		}, []string{"kind", "type"}),
		cost: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tandem_cost_total", Help: "What models have cost by the prices of their profiles, in whatever currency those are in, by kind of node.",
		}, []string{"kind"}),
		rows:    prometheus.NewCounter(prometheus.CounterOpts{Name: "tandem_journal_rows_total", Help: "Rows appended to journals."}),
		streams: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "tandem_stream_readers", Help: "Open event streams by operation."}, []string{"stream"}),
	}
	m.left = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tandem_http_clients_left_total", Help: "Requests and streams that their clients have broken off, by route and method. A stream is usually ended that way.",
	}, []string{"route", "method"})
	m.removed = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tandem_removed_total", Help: "What was removed because it was kept long enough, or on request: executions, deliveries, audit (entries), blobs (large values), others.",
	}, []string{"what"})
	m.registry.MustRegister(m.removed, m.left, m.requests, m.started, m.ended, m.activations, m.tokens, m.cost, m.rows, m.streams,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Register adds numbers that others keep, such as those of a store.
func (m *Metrics) Register(c ...prometheus.Collector) { m.registry.MustRegister(c...) }

// Removed counts what was removed.
func (m *Metrics) Removed(what string, n int64) { m.removed.WithLabelValues(what).Add(float64(n)) }

// Recorded counts a row that is on disk. Graph is that of the execution's revision.
func (m *Metrics) Recorded(row host.Row, graph *workflow.Graph) {
	m.rows.Inc()
	handled := func(id engine.ActivationID) bool { // the failure of a node that goes on with another output
		return slices.ContainsFunc(row.Told, func(t host.Told) bool {
			return t.What == host.ToldNode && t.Node == engine.NodeFailure && t.Activation == id
		})
	}
	for _, f := range row.Facts {
		switch f := f.(type) {
		case engine.ExecutionStarted, engine.ExecutionForked:
			m.started.Inc()
		case engine.NodeCompleted:
			if !handled(f.Activation) {
				m.activations.WithLabelValues(kindOf(graph, &row, f.Activation), "completed").Inc()
			}
		}
	}
	for _, t := range row.Told {
		switch {
		case t.What == host.ToldExecution && t.Status.Final():
			m.ended.WithLabelValues(string(t.Status)).Inc()
		case t.What == host.ToldNode && slices.Contains([]engine.NodeStatus{engine.NodeFailure, engine.NodeSkip, engine.NodeCanceled,
			engine.NodeRetrying}, t.Node):
			m.activations.WithLabelValues(kindOf(graph, &row, t.Activation), strings.ToLower(string(t.Node))).Inc()
		case t.What == host.ToldUsage:
			m.used(graph, &row, &t)
		}
	}
}

// used counts what a run has used of paid services. It counts for the node that the work was done for.
func (m *Metrics) used(graph *workflow.Graph, row *host.Row, t *host.Told) {
	var u host.Usage
	if json.Unmarshal(t.Detail, &u) != nil {
		return // nothing that this version understands
	}
	kind := kindOf(graph, row, t.Activation)
	if i, _, ok := host.Owner(graph, t.Activation); ok {
		kind = graph.Nodes[i].Kind
	}
	for name, n := range map[string]int64{"input": u.InputTokens, "output": u.OutputTokens, "cached": u.CachedTokens} { // order does not matter: a counter each
		m.tokens.WithLabelValues(kind, name).Add(float64(max(n, 0)))
	}
	m.cost.WithLabelValues(kind).Add(max(u.Credits, 0))
}

// kindOf is the kind of node that an activation counts as. A step that the program of a node has made counts as the kind of the
// attached node whose tool it calls, or as a part of its node's kind, such as AI_AGENT.LLM/complete.
func kindOf(graph *workflow.Graph, row *host.Row, id engine.ActivationID) string {
	if i, ok := graph.Node(host.NodeOf(graph, id)); ok {
		return graph.Nodes[i].Kind
	}
	if host.Filling(graph, id) {
		return node.SlotKind
	}
	i, _, ok := host.Owner(graph, id)
	if ok && graph.Nodes[i].Plan.Whole {
		_, step := id.Split()
		return agent.StepKind(step)
	}
	for t := range row.Told {
		if d := &row.Told[t]; d.What == host.ToldDetail && d.Activation == id {
			if n, ok := graph.Node(gjson.GetBytes(d.Detail, "attached_node").String()); ok {
				return graph.Nodes[n].Kind
			}
		}
	}
	_, name := id.Split()
	name = strings.TrimRight(name, "0123456789_")
	if !ok {
		return name // a step of a program that is the whole execution
	}
	return graph.Nodes[i].Kind + "/" + name
}

// Served counts a request. One whose client has left counts apart, and unless it was answered well, as status 499. What no route
// is for is one route, and unknown methods are one: both come from outside.
func (m *Metrics) Served(method, pattern string, status int, left bool, took time.Duration) {
	_, address, ok := strings.Cut(pattern, " ")
	if !ok {
		address = "none"
	}
	if !slices.Contains([]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}, method) {
		method = "other"
	}
	if left {
		m.left.WithLabelValues(address, method).Inc()
		if status == 0 || status >= http.StatusBadRequest {
			status = route.StatusClientLeft
		}
	}
	m.requests.WithLabelValues(address, method, strconv.Itoa(status)).Observe(took.Seconds())
}

// Reading counts a reader of a stream until the function it returns is called.
func (m *Metrics) Reading(stream string) func() {
	g := m.streams.WithLabelValues(stream)
	g.Inc()
	return g.Dec
}

// Handler answers with all numbers in the text format of Prometheus.
func (m *Metrics) Handler() http.Handler { return handlerOf(m.registry) }

// HandlerOf answers with the numbers of the collectors alone, such as those of one workspace.
func HandlerOf(c ...prometheus.Collector) http.Handler {
	own := prometheus.NewRegistry()
	own.MustRegister(c...)
	return handlerOf(own)
}

func handlerOf(r *prometheus.Registry) http.Handler {
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}
