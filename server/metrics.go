package server

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/tidwall/gjson"

	"tandem/engine"
	"tandem/host"
	"tandem/identity"
	"tandem/node"
	"tandem/route"
	"tandem/store"
	"tandem/story"
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

// NewMetrics makes numbers that are all zero.
func NewMetrics() *Metrics {
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
		Name: "tandem_removed_total", Help: "What was removed because it had its time, or on request: executions, deliveries, audit (entries), blobs (large values), others.",
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
		case t.What == host.ToldNode && slices.Contains([]engine.NodeStatus{engine.NodeFailure, engine.NodeSkip, engine.NodeCanceled, engine.NodeRetrying}, t.Node):
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
		return story.TaskStepKind(id)
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

// Served counts a request. One whose client has left counts apart, and unless it was answered well, as status 499. What no route is for is one route, and unknown methods are one: both come from outside.
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

// metrics registers /metrics. It needs a token like everything else: scrapers send one.
func (s *Server) metrics() {
	s.o.Metrics.Register(&stored{s: s, bytes: prometheus.NewDesc("tandem_storage_bytes", "What the data directory takes up: database (of which free holds nothing), log, blobs, copies.", []string{"part"}, nil)})
	s.o.Metrics.Register(&backlog{s: s, executions: unfinished()})
	h := promhttp.HandlerFor(s.o.Metrics.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
	op := huma.Operation{
		OperationID: "metrics", Method: http.MethodGet, Path: "/metrics", Tags: []string{"operations"},
		Summary: "Numbers for Prometheus", Description: "The text format of Prometheus. A scraper sends a token like everybody else; that of a viewer is enough. With a token of the first workspace the numbers are those of the installation, with any other those of its own workspace: tandem_executions.",
		Responses: map[string]*huma.Response{"200": {Description: "The numbers", Content: map[string]*huma.MediaType{"text/plain": {Schema: &huma.Schema{Type: huma.TypeString}}}}},
	}
	s.Plain(op, route.Readers(), func(w http.ResponseWriter, r *http.Request, p identity.Principal) error {
		if s.o.Workspace == "" || p.Workspace == s.o.Workspace {
			h.ServeHTTP(w, r)
			return nil
		}
		own := prometheus.NewRegistry() // a tenant is told of nothing but what is its own
		own.MustRegister(&backlog{s: s, executions: unfinished(), workspace: p.Workspace})
		promhttp.HandlerFor(own, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}).ServeHTTP(w, r)
		return nil
	})
}

// unfinished describes the numbers of a backlog.
func unfinished() *prometheus.Desc {
	return prometheus.NewDesc("tandem_executions", "Unfinished executions by status, as the store has them.", []string{"status"}, nil)
}

// backlog counts unfinished executions when it is asked: those of one workspace, or, without one, all.
type backlog struct {
	s          *Server
	executions *prometheus.Desc
	workspace  string
}

// Describe implements prometheus.Collector.
func (u *backlog) Describe(c chan<- *prometheus.Desc) { c <- u.executions }

// Collect implements prometheus.Collector. The statuses are counted by an index, so it costs little however many there are.
func (u *backlog) Collect(c chan<- prometheus.Metric) {
	ctx, stop := context.WithTimeout(context.Background(), readyTimeout)
	defer stop()
	counts := map[engine.Status]int{}
	workspaces, err := u.s.o.Stores.Workspaces.List(ctx, identity.System(u.workspace))
	for _, status := range openStatuses() {
		counts[status] = 0
		for _, w := range workspaces {
			if err != nil {
				break
			}
			var page store.ExecutionPage
			page, err = u.s.o.Stores.Executions.List(ctx, identity.System(w.ID), store.ExecutionQuery{Statuses: []engine.Status{status}, Page: store.Page{Size: 1}})
			counts[status] += page.Total
		}
	}
	if err != nil {
		c <- prometheus.NewInvalidMetric(u.executions, err)
		return
	}
	for status, n := range counts { // order does not matter: what is sent is sorted
		c <- prometheus.MustNewConstMetric(u.executions, prometheus.GaugeValue, float64(n), string(status))
	}
}

// stored says what the data directory takes up, when it is asked.
type stored struct {
	s     *Server
	bytes *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (u *stored) Describe(c chan<- *prometheus.Desc) { c <- u.bytes }

// Collect implements prometheus.Collector.
func (u *stored) Collect(c chan<- prometheus.Metric) {
	if u.s.o.Stores.Upkeep == nil {
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), readyTimeout)
	defer stop()
	space, err := u.s.o.Stores.Upkeep.Space(ctx, identity.System(""))
	if err != nil {
		c <- prometheus.NewInvalidMetric(u.bytes, err)
		return
	}
	for part, n := range map[string]int64{"database": space.Database, "free": space.Free, "log": space.Log, "blobs": space.Blobs, "copies": space.Copies} { // order does not matter: what is sent is sorted
		c <- prometheus.MustNewConstMetric(u.bytes, prometheus.GaugeValue, float64(n), part)
	}
}
