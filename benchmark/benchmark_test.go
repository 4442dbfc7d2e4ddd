package benchmark

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tandem/app"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/sandbox"
)

func TestMain(m *testing.M) {
	if sandbox.IsChild() {
		sandbox.Child()
	}
	os.Exit(m.Run())
}

func TestMeasure_ReportsEveryWorkload(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var told []string
	r, err := Measure(t.Context(), Engine{
		Dir: filepath.Join(dir, "not", "there"), Rounds: 2, Quick: true, Nodes: 8, FanOut: 12, Concurrency: []int{1, 3},
		Measuring: func(_ int, what string) { told = append(told, what) },
	})
	if err != nil {
		t.Fatal(err)
	}
	round := []string{"chain of 8, 1 at once", "chain of 8, 3 at once", "fan-out to 12 and back"}
	if want := slices.Concat(round, round); !slices.Equal(told, want) {
		t.Errorf("told of %q, want %q", told, want)
	}
	if r.Rounds != 2 || r.RowBytes < 50 || len(r.Chains) != 2 || r.Chains[1].Concurrency != 3 || len(r.FanOut.ToChain) != 2 {
		t.Errorf("report %+v", r)
	}
	for _, f := range []Figures{r.Chains[0].Figures, r.Chains[1].Figures, r.FanOut.Figures} {
		if f.TandemPerSecond <= 0 || f.BarePerSecond <= 0 || f.TandemMicros <= 0 || f.BareMicros <= 0 {
			t.Errorf("figures %+v", f)
		}
		if f.Ratio < f.RatioLow || f.Ratio > f.RatioHigh {
			t.Errorf("ratio %v is not between %v and %v", f.Ratio, f.RatioLow, f.RatioHigh)
		}
	}
	if r.Chains[0].Goal != 0 || r.FanOut.Goal != 0 {
		t.Errorf("a goal for a shape that has none: %+v", r)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("left behind %v, %v", left, err)
	}
}

func TestMeasure_LeavesNothingWhenItIsStopped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err := Measure(ctx, Engine{Dir: dir, Quick: true, Nodes: 8, FanOut: 8, Measuring: func(int, string) { cancel(why) }})
	if !errors.Is(err, why) {
		t.Errorf("error %v, want that of the context", err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("left behind %v, %v", left, err)
	}
}

func TestMeasure_RefusesNonsense(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string]Engine{
		"Rounds":      {Dir: t.TempDir(), Rounds: -1},
		"Concurrency": {Dir: t.TempDir(), Concurrency: []int{1, 0}},
		"Dir":         {Dir: file},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := Measure(t.Context(), b); fault.CodeOf(err) != fault.Invalid {
				t.Errorf("error %v, want code %q", err, fault.Invalid)
			}
		})
	}
}

// The yardstick writes as many rows as there are nodes.
func TestBareJournal_HasEveryNode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, err := openBare(dir)
	if err != nil {
		t.Fatal(err)
	}
	m := &measurement{bare: j, body: []byte("body")}
	if err := errors.Join(m.bareChain(1, 5), m.bareFanOut(2, 7)); err != nil {
		t.Fatal(err)
	}
	if err := j.stop(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, "bare.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var rows int
	if err := db.QueryRow("SELECT count(*) FROM journal WHERE body = x'626f6479'").Scan(&rows); err != nil || rows != 5+9 {
		t.Errorf("%d rows, %v", rows, err)
	}
}

// What is measured on our side is what is said: one completion per node, and all of them watched but the first few.
func TestBenchInstance_RunsEveryNode(t *testing.T) {
	t.Parallel()
	i, err := app.Open(t.Context(), app.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	b := benchInstance{i}
	for _, c := range []struct {
		id         string
		definition []byte
		nodes      int
	}{{"chain", benchChain("chain", 20), 20}, {"fan", benchFanOut("fan", 20), 22}} {
		if err := b.save(t.Context(), c.definition); err != nil {
			t.Fatal(err)
		}
		if err := b.execute(t.Context(), c.id, nil); err != nil {
			t.Fatal(err)
		}
		execution, err := i.Start(t.Context(), app.Local(), c.id, json.RawMessage(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		if e, err := i.Wait(t.Context(), app.Local(), execution); err != nil || e.Status != engine.StatusSuccess {
			t.Fatalf("execution %+v, %v", e, err)
		}
		done := map[engine.ActivationID]bool{}
		for stored, err := range i.Stores().Journal.Rows(t.Context(), app.Local(), execution, 0) {
			if err != nil {
				t.Fatal(err)
			}
			row, err := host.DecodeRow(stored.Seq, stored.Time, stored.Body)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range row.Facts {
				if f, ok := f.(engine.NodeCompleted); ok {
					done[f.Activation] = true
				}
			}
		}
		if len(done) != c.nodes {
			t.Errorf("%s: %d nodes on disk, want %d", c.id, len(done), c.nodes)
		}
	}
}

func TestMedian(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		list []float64
		want float64
	}{{[]float64{3}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 2, 8}, 3}} {
		if got := median(c.list); got != c.want {
			t.Errorf("median of %v is %v, want %v", c.list, got, c.want)
		}
	}
}

func TestMeasureAPI_ReportsEveryRequest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r, err := MeasureAPI(t.Context(), API{Dir: dir, Rounds: 1, Quick: true, Executions: 30, Clients: []int{1, 2}, Readers: 3})
	if err != nil {
		t.Fatal(err)
	}
	if r.Rows < apiNodes || r.RowBytes < 50 || r.Executions != 30 || len(r.Requests) != 2+2+3*2 || len(r.Streams) != 2 {
		t.Errorf("report %+v", r)
	}
	for _, f := range r.Requests {
		goal := apiGoal
		if f.Name == "webhook" {
			goal = 0
		}
		if f.Tandem.PerSecond <= 0 || f.Bare.PerSecond <= 0 || f.Tandem.P99MS < f.Tandem.P50MS || f.Ratio < f.RatioLow || f.Ratio > f.RatioHigh || f.Goal != goal {
			t.Errorf("figures %+v", f)
		}
	}
	for n, side := range []string{APISideTandem, APISideBare} {
		if s := r.Streams[n]; s.Side != side || s.Readers != 3 || s.P50MS <= 0 || s.LastMS < s.P50MS {
			t.Errorf("stream %+v", s)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("left behind %v, %v", left, err)
	}
	if _, err := MeasureAPI(t.Context(), API{Dir: dir, Clients: []int{0}}); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("no clients: %v", err)
	}
}

func TestScale_Phases(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ wanted, measured []string }{
		{nil, ScalePhases()},
		{[]string{"wake"}, []string{"park", "wake"}},
		{[]string{"idle", "due"}, []string{"ask", "due", "idle"}},
		{[]string{"park"}, []string{"park"}},
	} {
		if got, err := (Scale{Phases: c.wanted}).phases(); err != nil || !slices.Equal(got, c.measured) {
			t.Errorf("%q: %q, %v", c.wanted, got, err)
		}
	}
	if _, err := (Scale{Phases: []string{"sleep"}}).phases(); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("an unknown phase: %v", err)
	}
}

// TestScale_Turns wakes executions some at a time, each time when it may.
func TestScale_Turns(t *testing.T) {
	t.Parallel()
	s := Scale{Dir: t.TempDir(), Parked: 530, Iterations: 1, Turn: 8}
	if _, err := MeasureScale(t.Context(), s, "park"); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	s.InTurns(strings.NewReader("\n\n\n\n"), &said)
	r, err := MeasureScale(t.Context(), s, "wake")
	if err != nil || r.Count != 30 || r.PerSecond <= 0 || r.StallMS <= 0 || said.String() != strings.Repeat(itsTurn+"\n", 4) {
		t.Errorf("%v: %+v, and it said %q", err, r, said.String())
	}
	if _, err := MeasureScale(t.Context(), s, "wake"); err == nil {
		t.Error("executions that have ended are woken")
	}
	run := &scaleRun{Scale: s, ended: make(chan string, 1), waits: make(chan string, 1)}
	if err := run.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := run.wakeAll(t.Context(), []int{528, 529}, &pace{}); fault.CodeOf(err) == "" {
		t.Errorf("what cannot be woken is waited for: %v", err)
	}
	if err := run.close(); err != nil {
		t.Error(err)
	}
}

func TestScale_Beside(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		s    Scale
		want string
	}{
		{Scale{Parked: 1000, Beside: 1001}, "--beside is 1001; it must be more than 500 and at most --parked, 1000"},
		{Scale{Parked: 1000, Beside: 500}, "--beside is 500"},
		{Scale{Parked: 1000, Beside: 600, Phases: []string{"loop"}}, "name the phase wake"},
		{Scale{Parked: 1000, Beside: 600, Database: "postgres://host/name"}, "leave out --database"},
	} {
		if _, err := MeasureScaleAll(t.Context(), io.Discard, t.TempDir(), c.s, nil); fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.s, err)
		}
	}
}

// Servers end connections on which nothing comes for long, and the other side's turn may take long: nobody connects before there is something to send.
func TestLoad_ConnectsOnlyToSend(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	side := &APISide{URL: "http://" + listener.Addr().String()}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	clients := &benchClients{side: side}
	nothing := func(c *benchClient, _ int) []byte { return c.request("GET", "/executions", "") }
	if _, _, err := clients.load(t.Context(), 1, 0, nothing); err != nil {
		t.Errorf("no requests: %v", err)
	}
	if _, _, err := clients.load(t.Context(), 1, 1, nothing); err == nil {
		t.Error("a request was sent to nobody")
	}
}
