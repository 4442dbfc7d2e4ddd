package benchmark

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"tandem/cluster"
	"tandem/fault"
)

// API measures the API of this machine: requests to Tandem in turns with requests to a bare server that decodes the same
// bodies, writes the same rows with the same durability and sends the same answers.
type API struct {
	// Dir is a data directory, or where one would be. The measurement makes a directory of its own on the same disk and
	// removes it.
	Dir string
	// Database is the address of a database of PostgreSQL: the measured databases are made on its server and removed. Empty: SQLite.
	Database string
	// Temporal is where the engine is that the executions of Tandem's side run on, which needs Database; nil: in its process.
	Temporal *cluster.Options
	// Requests are what is measured, of [APIKinds]; all when empty.
	Requests []string
	// Launch starts a side on a directory of its own; nil: in this process, so that what is used is used by both sides and the
	// clients.
	Launch func(ctx context.Context, o SideOptions) (*APISide, error)
	// Rounds is how often everything is measured, 5 when zero; Quick measures less work per round.
	Rounds int
	Quick  bool
	// Executions is how many there are to begin with, 100,000 when zero; Clients how many ask at once, 1, 50 and 500 when empty;
	// Readers how many follow a stream, 2,000 when zero.
	Executions int
	Clients    []int
	Readers    int
	// Measuring is told what is measured now. It is waited for. May be nil.
	Measuring func(round int, what string)
}

// APIReport is what was measured.
type APIReport struct {
	Go         string `json:"go"`
	OS         string `json:"os"`
	Arch       string `json:"arch"`
	CPUs       int    `json:"cpus"`
	Rounds     int    `json:"rounds"`
	Executions int    `json:"executions"`
	// Server is the server of the database that was measured; empty: it was SQLite.
	Server string `json:"server,omitempty"`
	// Engine is what executions ran on, unless it was the process of the server.
	Engine string `json:"engine,omitempty"`
	// Rows is how many rows an execution writes, RowBytes how long they are on average. ExecutionBytes is by how much an execution that has
	// ended makes the database larger, with its summary and with indexes.
	Rows           int     `json:"rows"`
	RowBytes       int     `json:"row_bytes"`
	ExecutionBytes float64 `json:"execution_bytes"`
	// LoadBefore is the load average of the last minute when the measurement began, where the system tells it.
	LoadBefore string       `json:"load_before,omitempty"`
	Requests   []APIFigures `json:"requests"`
	Streams    []APIStream  `json:"streams"`
}

// APIFigures are the figures of one kind of request.
type APIFigures struct {
	Name    string `json:"name"`
	Clients int    `json:"clients"`
	// Tandem and Bare are of all rounds together; Ratio is the median of the rounds' ratios of requests per second, with the
	// lowest and the highest.
	Tandem    APIRequests `json:"tandem"`
	Bare      APIRequests `json:"bare"`
	Ratio     float64     `json:"ratio"`
	RatioLow  float64     `json:"ratio_low"`
	RatioHigh float64     `json:"ratio_high"`
	// Goal is the ratio that is wanted, zero for none.
	Goal float64 `json:"goal,omitempty"`
}

// APIRequests are the requests of one side. CPU is processor time of the server per request.
type APIRequests struct {
	PerSecond float64 `json:"per_second"`
	P50MS     float64 `json:"p50_ms"`
	P99MS     float64 `json:"p99_ms"`
	CPUMicros float64 `json:"cpu_microseconds,omitempty"`
}

// APIStream is how fast many readers of one execution learn of a row.
type APIStream struct {
	Side    string `json:"side"`
	Readers int    `json:"readers"`
	Signals int    `json:"signals"`
	// P50MS and P99MS are from the request that leads to the row until a reader has it, of all readers; LastMS until the last has
	// it, the median of the signals.
	P50MS  float64 `json:"p50_ms"`
	P99MS  float64 `json:"p99_ms"`
	LastMS float64 `json:"last_ms"`
	// CPUMicros is processor time of the server per reader and row. MemoryKB is what a reader costs, in resident memory.
	CPUMicros float64 `json:"cpu_microseconds,omitempty"`
	MemoryKB  float64 `json:"memory_kb,omitempty"`
}

// apiGoal is the ratio that every request of the API should reach. A webhook has none: the bare server writes one row and runs nothing.
const apiGoal = 0.5

// apiHookPath is where the webhook is called.
const apiHookPath = "/hooks/" + apiHook + "/in"

// The kinds of requests.
const (
	apiExecutes = "execute"
	apiWebhooks = "webhook"
	apiGets     = "get"
	apiLists    = "list"
	apiStreams  = "stream"
)

// APIKinds are the kinds of requests that can be measured.
func APIKinds() []string { return []string{apiExecutes, apiWebhooks, apiGets, apiLists, apiStreams} }

// wants says that a kind of requests is measured.
func (b *API) wants(kind string) bool {
	return len(b.Requests) == 0 || slices.Contains(b.Requests, kind)
}

// MeasureAPI runs the measurement. It takes some minutes.
func MeasureAPI(ctx context.Context, b API) (report APIReport, err error) {
	if err := b.complete(); err != nil {
		return APIReport{}, err
	}
	dir, bases, remove, err := workplace(ctx, b.Dir, b.Database)
	if err != nil {
		return APIReport{}, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	m := &apiMeasurement{API: b, signals: 20, bases: bases}
	if b.Quick {
		m.signals = 5
	}
	m.report = APIReport{
		Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.GOMAXPROCS(0), Rounds: b.Rounds,
		Executions: b.Executions, Server: bases.server, LoadBefore: loadAverage(),
	}
	if b.Temporal != nil {
		m.report.Engine = "Temporal"
	}
	defer func() {
		for _, s := range m.sides {
			err = errors.Join(err, s.clients.close(), s.Close())
		}
	}()
	if err := m.launch(ctx, dir); err != nil {
		return APIReport{}, err
	}
	return m.report, m.run(ctx)
}

func (b *API) complete() error {
	if b.Rounds == 0 {
		b.Rounds = 5
		if b.Quick {
			b.Rounds = 3
		}
	}
	if b.Executions == 0 {
		b.Executions = 100_000
	}
	if len(b.Clients) == 0 {
		b.Clients = []int{1, 50, 500}
	}
	if b.Readers == 0 {
		b.Readers = 2000
	}
	for _, n := range append([]int{b.Rounds, b.Executions, b.Readers}, b.Clients...) {
		if n < 1 {
			return fault.Newf(fault.Invalid, "%d: rounds, executions, clients and readers are at least 1", n)
		}
	}
	for _, kind := range b.Requests {
		if !slices.Contains(APIKinds(), kind) {
			return fault.Newf(fault.Invalid, "%q is not a kind of requests; there are %s", kind, strings.Join(APIKinds(), ", "))
		}
	}
	if b.Launch == nil {
		b.Launch = launchHere
	}
	return nil
}

// launchHere starts a side in this process.
func launchHere(ctx context.Context, o SideOptions) (*APISide, error) {
	ctx, stop := context.WithCancel(ctx)
	ready := make(chan APISide, 1)
	ended := make(chan error, 1)
	go func() { ended <- ServeAPISide(ctx, o, func(s APISide) { ready <- s }) }() // it ends with Close
	select {
	case s := <-ready:
		s.Usage = func() (APIUsage, error) { return OwnUsage(), nil }
		s.Close = func() error { stop(); return <-ended }
		return &s, nil
	case err := <-ended:
		stop()
		return nil, fmt.Errorf("start the side %q: %w", o.Side, err)
	}
}

// apiMeasurement is one run of MeasureAPI.
type apiMeasurement struct {
	API
	signals int
	bases   *bases
	sides   []*apiRunning
	report  APIReport
}

type apiRunning struct {
	*APISide
	name    string
	clients benchClients
}

// launch starts Tandem's side, takes samples of what it writes and answers, and starts the bare side with these.
func (m *apiMeasurement) launch(ctx context.Context, dir string) error {
	m.reportProgress(0, "making "+strconv.Itoa(m.Executions)+" executions")
	tandem, err := m.start(ctx, APISideTandem, filepath.Join(dir, APISideTandem), nil)
	if err != nil {
		return err
	}
	if (tandem.Database == "") != (m.Database == "") {
		return fmt.Errorf("the side works on %q: %w", tandem.Database, errUnlike)
	}
	sample := apiSample{Rows: tandem.Rows, Executions: m.Executions}
	m.report.Rows, m.report.ExecutionBytes = len(tandem.Rows), tandem.ExecutionBytes
	for _, row := range tandem.Rows {
		m.report.RowBytes += len(row) / len(tandem.Rows)
	}
	if err := tandem.clients.need(ctx, 1); err != nil {
		return err
	}
	c := tandem.clients.list[0]
	for _, s := range []struct {
		into    *[]byte
		request []byte
	}{
		{&sample.Execute, c.request("POST", "/workflows/"+apiFlow+"/execute", apiRequest)},
		{&sample.Hook, c.plainRequest("POST", apiHookPath, apiInputs)},
		{&sample.Get, c.request("GET", "/executions/"+apiExecution(0), "")},
		{&sample.Summary, c.request("GET", "/executions?page_size=1", "")},
	} {
		answer, err := c.doRequest(s.request)
		if err != nil {
			return err
		}
		*s.into = slices.Clone(answer)
	}
	var page struct {
		Executions []json.RawMessage `json:"executions"`
	}
	if err := json.Unmarshal(sample.Summary, &page); err != nil || len(page.Executions) != 1 {
		return fmt.Errorf("the list of executions is %s: %w", sample.Summary, errors.Join(err, errUnlike))
	}
	sample.Summary = page.Executions[0]
	if sample.Frames, err = m.sampleFrames(ctx, tandem); err != nil {
		return err
	}
	_, err = m.start(ctx, APISideBare, filepath.Join(dir, APISideBare), &sample)
	return err
}

func (m *apiMeasurement) start(ctx context.Context, name, dir string, sample *apiSample) (*apiRunning, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if sample != nil {
		if err := writeSample(dir, *sample); err != nil {
			return nil, err
		}
	}
	database, err := m.bases.addDatabase(ctx)
	if err != nil {
		return nil, err
	}
	o := SideOptions{Side: name, Dir: dir, Database: database, Executions: m.Executions, Signals: m.signals}
	if name == APISideTandem {
		o.Temporal = m.Temporal
	}
	side, err := m.Launch(ctx, o)
	if err != nil {
		return nil, err
	}
	s := &apiRunning{APISide: side, name: name}
	s.clients.side = side
	m.sides = append(m.sides, s)
	return s, nil
}

func (m *apiMeasurement) reportProgress(round int, what string) {
	if m.Measuring != nil {
		m.Measuring(round, what)
	}
}

// apiLoad is one kind of request, for both sides.
type apiLoad struct {
	name    string
	clients int
	// requests are how many a slice has, slices how many times in a round.
	requests, slices int
	// request makes the n-th of all requests of the load; both sides are sent the same ones.
	request func(c *benchClient, n int) []byte
	goal    float64
	// sent is how many were sent to each side, first how many are sent before it is measured, in every round.
	sent, first int
	took        [2][]time.Duration // per round
	each        [2][]time.Duration
	used        [2]time.Duration
}

func (m *apiMeasurement) loads() []*apiLoad {
	var loads []*apiLoad
	add := func(name string, clients, requests int, goal float64, request func(c *benchClient, n int) []byte) {
		if kind, _, _ := strings.Cut(name, ","); !m.wants(kind) {
			return
		}
		slices := 4
		if m.Quick {
			requests, slices = max(clients, requests/8), 2
		}
		if m.Temporal != nil && (name == apiExecutes || name == apiWebhooks) { // where each takes hundreds of times as long
			requests = max(clients, requests/8)
		}
		if m.Database != "" { // the goals are for SQLite
			goal = 0
		}
		loads = append(loads, &apiLoad{name: name, clients: clients, requests: requests, slices: slices, request: request, goal: goal})
	}
	for _, n := range m.Clients {
		add(apiExecutes, n, min(200+40*n, 3000), apiGoal, func(c *benchClient, _ int) []byte {
			return c.request("POST", "/workflows/"+apiFlow+"/execute", apiRequest)
		})
	}
	for _, n := range m.Clients {
		add(apiWebhooks, n, min(200+40*n, 3000), 0, func(c *benchClient, _ int) []byte { return c.plainRequest("POST", apiHookPath, apiInputs) })
	}
	many := slices.Max(m.Clients)
	middle := m.Clients[len(m.Clients)/2]
	each := slices.Compact([]int{1, middle, many})
	for _, n := range each {
		add(apiGets+", 100 of them", n, min(500+100*n, 4000), apiGoal, func(c *benchClient, n int) []byte {
			return c.request("GET", "/executions/"+apiExecution(n%min(100, m.Executions)), "")
		})
	}
	for _, l := range loads {
		if l.name == apiGets+", 100 of them" {
			l.first = 100
		}
	}
	for _, n := range each { // another one each time, as long as there are some, so that none was read before
		add(apiGets+", any of them", n, min(400+40*n, 2000), apiGoal, func(c *benchClient, n int) []byte {
			return c.request("GET", "/executions/"+apiExecution(n*7919%m.Executions), "")
		})
	}
	for _, n := range each {
		add(apiLists+", 20 of them", n, min(200+20*n, 1000), apiGoal, func(c *benchClient, _ int) []byte {
			return c.request("GET", "/executions?page_size=20", "")
		})
	}
	return loads
}

func (m *apiMeasurement) run(ctx context.Context) error {
	loads := m.loads()
	for round := range m.Rounds {
		for _, l := range loads {
			m.reportProgress(round+1, l.name+", clients: "+strconv.Itoa(l.clients))
			if err := m.measure(ctx, l); err != nil {
				return fmt.Errorf("measure %q: %w", l.name, err)
			}
		}
	}
	for _, l := range loads {
		m.report.Requests = append(m.report.Requests, l.figures())
	}
	if !m.wants(apiStreams) {
		return nil
	}
	for n := range m.sides { // the bare one first; each has its readers for itself
		side := m.sides[len(m.sides)-1-n]
		m.reportProgress(m.Rounds, "stream, readers: "+strconv.Itoa(m.Readers)+", "+side.name)
		figures, err := m.stream(ctx, side)
		if err != nil {
			return fmt.Errorf("measure the stream of %s: %w", side.name, err)
		}
		m.report.Streams = append(m.report.Streams, figures)
	}
	slices.Reverse(m.report.Streams)
	return nil
}

// measure lets both sides work in turns.
func (m *apiMeasurement) measure(ctx context.Context, l *apiLoad) error {
	var took [2]time.Duration
	for _, side := range m.sides {
		if _, _, err := side.clients.load(ctx, 1, l.first, l.request); err != nil {
			return fmt.Errorf("%s: %w", side.name, err)
		}
	}
	for slice := range l.slices {
		for turn := range m.sides {
			n := (slice + turn) % len(m.sides)
			side := m.sides[n]
			before, err := side.Usage()
			if err != nil {
				return err
			}
			t, each, err := side.clients.load(ctx, l.clients, l.requests,
				func(c *benchClient, n int) []byte { return l.request(c, l.sent+n) })
			if err != nil {
				return fmt.Errorf("%s: %w", side.name, err)
			}
			after, err := side.Usage()
			if err != nil {
				return err
			}
			took[n] += t
			l.used[n] += after.CPU - before.CPU
			l.each[n] = append(l.each[n], each...)
		}
		l.sent += l.requests
	}
	for n := range took {
		l.took[n] = append(l.took[n], took[n])
	}
	return nil
}

func (l *apiLoad) figures() APIFigures {
	f := APIFigures{Name: l.name, Clients: l.clients, Goal: l.goal}
	perRound := float64(l.requests * l.slices)
	of := func(n int) APIRequests {
		var speeds []float64
		for _, t := range l.took[n] {
			speeds = append(speeds, perRound/t.Seconds())
		}
		return APIRequests{
			PerSecond: median(speeds), P50MS: milliseconds(quantile(l.each[n], .5)), P99MS: milliseconds(quantile(l.each[n], .99)),
			CPUMicros: float64(l.used[n].Microseconds()) / float64(len(l.each[n])),
		}
	}
	f.Tandem, f.Bare = of(0), of(1)
	var ratios []float64
	for n, t := range l.took[0] {
		ratios = append(ratios, l.took[1][n].Seconds()/t.Seconds())
	}
	f.Ratio, f.RatioLow, f.RatioHigh = median(ratios), slices.Min(ratios), slices.Max(ratios)
	return f
}

// loadAverage is the load of the last minute as Linux tells it, elsewhere nothing.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	first, _, _ := bytes.Cut(text, []byte(" "))
	return string(first)
}
