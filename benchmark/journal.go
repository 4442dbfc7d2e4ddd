// Package benchmark measures what Tandem costs on this machine: the engine beside a bare journal, the API beside a bare server, and many
// waiting executions. It opens instances of its own in scratch directories and never touches the data of a user. The command "tandem bench"
// imports it, and nobody else.
package benchmark

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"tandem/app"
	"tandem/fault"
)

// Engine is a measurement of the engine on this machine: Tandem against a bare journal with the same driver, the same bytes per row and
// the same durability, in turns.
type Engine struct {
	// Dir is a data directory, or where one would be. The measurement makes a directory of its own on the same disk and
	// removes it.
	Dir string
	// Database is the address of a database of PostgreSQL: the measured databases are made on its server and removed. Empty: SQLite.
	Database string
	// Rounds is how often everything is measured; the medians are reported. 7 when zero, 3 when quick.
	Rounds int
	// Quick measures less work per round.
	Quick bool
	// Nodes is the length of the chain, 100 when zero; FanOut the width of the fan-out, 1,000 when zero; Concurrency how
	// many chains run at once, 1, 50 and 500 when empty.
	Nodes       int
	FanOut      int
	Concurrency []int
	// Measuring is told what is measured now. It is waited for. May be nil.
	Measuring func(round int, what string)
}

// Report is what was measured.
type Report struct {
	Go       string  `json:"go"`
	OS       string  `json:"os"`
	Arch     string  `json:"arch"`
	CPUs     int     `json:"cpus"`
	Rounds   int     `json:"rounds"`
	RowBytes int     `json:"row_bytes"`
	Chains   []Chain `json:"chains"`
	FanOut   FanOut  `json:"fan_out"`
	// Server is the server of the database that was measured; empty: it was SQLite.
	Server string `json:"server,omitempty"`
}

// onServer says on which server was measured. The goals are for SQLite.
func (r *Report) onServer(server string) {
	r.Server, r.FanOut.Goal = server, 0
	for i := range r.Chains {
		r.Chains[i].Goal = 0
	}
}

// Figures are the medians of one workload. A node is counted when it is on disk.
type Figures struct {
	TandemPerSecond float64 `json:"tandem_nodes_per_second"`
	BarePerSecond   float64 `json:"bare_nodes_per_second"`
	// Ratio is Tandem's share of the bare journal's speed: the median of the rounds' ratios, with the lowest and the
	// highest of them.
	Ratio     float64 `json:"ratio"`
	RatioLow  float64 `json:"ratio_low"`
	RatioHigh float64 `json:"ratio_high"`
	// AheadPerSecond and AheadRatio are Tandem's when pure nodes may run ahead of their rows, which is how it runs unless it
	// is told otherwise.
	AheadPerSecond float64 `json:"run_ahead_nodes_per_second"`
	AheadRatio     float64 `json:"run_ahead_ratio"`
	// TandemMicros and BareMicros are wall time per node, TandemCPU processor time, where the system tells it.
	TandemMicros float64 `json:"tandem_microseconds_per_node"`
	BareMicros   float64 `json:"bare_microseconds_per_node"`
	TandemCPU    float64 `json:"tandem_cpu_microseconds_per_node,omitempty"`
	BareCPU      float64 `json:"bare_cpu_microseconds_per_node,omitempty"`
}

// Chain is so many executions of a chain at once.
type Chain struct {
	Nodes       int `json:"nodes"`
	Concurrency int `json:"concurrency"`
	Figures
	// Goal is the ratio that is wanted, zero for none.
	Goal float64 `json:"goal,omitempty"`
}

// FanOut is one execution of a fan-out and the join after it.
type FanOut struct {
	Width int `json:"width"`
	Figures
	// ToChain is the time per node as a multiple of that in the chains, in their order.
	ToChain []float64 `json:"cost_to_chain"`
	// Goal is the multiple that must not be exceeded, zero for none.
	Goal float64 `json:"goal,omitempty"`
	// BareGoal is the ratio to the bare journal that is wanted, zero for none.
	BareGoal float64 `json:"goal_to_bare,omitempty"`
}

// The shapes that goals are stated for.
const (
	benchNodes  = 100
	benchFanned = 1000
)

// benchGoal is the wanted ratio of a chain.
func benchGoal(nodes, concurrency int) float64 {
	switch {
	case nodes != benchNodes:
		return 0
	case concurrency == 1:
		return 0.65
	case concurrency == 50, concurrency == 500:
		return 0.6
	}
	return 0
}

// Measure runs the measurement. It takes about a minute, some seconds when quick.
func Measure(ctx context.Context, b Engine) (report Report, err error) {
	if err := b.complete(); err != nil {
		return Report{}, err
	}
	dir, bases, remove, err := workplace(ctx, b.Dir, b.Database)
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	var on [3]string
	for n := range on {
		if on[n], err = bases.addDatabase(ctx); err != nil {
			return Report{}, err
		}
	}
	i, err := app.Open(ctx, app.Options{Dir: filepath.Join(dir, "tandem"), Database: on[0], NoRunAhead: true})
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, i.Close()) }()
	ahead, err := app.Open(ctx, app.Options{Dir: filepath.Join(dir, "ahead"), Database: on[1]})
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, ahead.Close()) }()
	bare, err := openBareOn(ctx, dir, on[2])
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, bare.stop()) }()
	m := &measurement{Engine: b, tandem: benchInstance{i}, ahead: benchInstance{ahead}, bare: bare}
	if report, err = m.run(ctx); err == nil && b.Database != "" {
		report.onServer(bases.server)
	}
	return report, err
}

// complete fills in what was left open and refuses nonsense.
func (b *Engine) complete() error {
	if b.Rounds == 0 {
		b.Rounds = 7
		if b.Quick {
			b.Rounds = 3
		}
	}
	if b.Nodes == 0 {
		b.Nodes = benchNodes
	}
	if b.FanOut == 0 {
		b.FanOut = benchFanned
	}
	if len(b.Concurrency) == 0 {
		b.Concurrency = []int{1, 50, 500}
	}
	for _, n := range append([]int{b.Rounds, b.Nodes, b.FanOut}, b.Concurrency...) {
		if n < 1 {
			return fault.Newf(fault.Invalid, "%d: rounds, nodes, width and concurrency are at least 1", n)
		}
	}
	return nil
}

// workplace makes a scratch directory near the data and the databases of a measurement, which remove takes away again.
func workplace(ctx context.Context, data, database string) (dir string, made *bases, remove func() error, err error) {
	if dir, err = scratch(data); err != nil {
		return "", nil, nil, err
	}
	removeDir := func() error {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("remove the scratch directory: %w", err)
		}
		return nil
	}
	if made, err = newBases(ctx, database); err != nil {
		return "", nil, nil, errors.Join(err, removeDir())
	}
	return dir, made, func() error { return errors.Join(made.remove(context.WithoutCancel(ctx)), removeDir()) }, nil
}

// scratch makes a directory on the disk of a data directory, which need not exist.
func scratch(data string) (string, error) {
	at, err := filepath.Abs(data)
	if err != nil {
		return "", fmt.Errorf("find data directory %q: %w", data, err)
	}
	for {
		switch info, err := os.Stat(at); {
		case err == nil && info.IsDir():
			dir, err := os.MkdirTemp(at, "tandem-bench-")
			if err != nil {
				return "", fmt.Errorf("make a scratch directory: %w; choose another place with --data", err)
			}
			return dir, nil
		case err == nil:
			return "", fault.Newf(fault.Invalid, "%q is not a directory; choose another place with --data", at)
		case !errors.Is(err, os.ErrNotExist) || at == filepath.Dir(at):
			return "", fmt.Errorf("find data directory %q: %w", data, err)
		}
		at = filepath.Dir(at)
	}
}

// measurement is one run of Measure.
type measurement struct {
	Engine
	tandem benchInstance
	ahead  benchInstance // as tandem, running ahead
	bare   bareRows
	body   []byte // of a row of the bare journal
	place  int64  // numbers its runs
}

// workload is one shape of work, for both sides.
type workload struct {
	name string
	// runs are how many executions go at once, slices how many times in a round, nodes how many each has.
	runs, slices, nodes int
	tandem              func(context.Context, benchInstance) error
	bare                func(run int64) error
	samples             [sides][]sample
}

type sample struct{ perSecond, cpu float64 }

const (
	chainID  = "bench_chain"
	fanOutID = "bench_fan_out"
)

func (m *measurement) run(ctx context.Context) (Report, error) {
	for _, def := range [][]byte{benchChain(chainID, m.Nodes), benchFanOut(fanOutID, m.FanOut)} {
		if err := errors.Join(m.tandem.save(ctx, def), m.ahead.save(ctx, def)); err != nil {
			return Report{}, err
		}
	}
	size, err := m.tandem.rowBytes(ctx, chainID)
	if err != nil {
		return Report{}, err
	}
	// The name of the workspace is a column of ours and not of the bare journal's: its bytes go into the body.
	m.body = bytes.Repeat([]byte("0123456789abcdef"), size/16+2)[:size+len(app.Local().Workspace)]

	loads := m.workloads()
	for round := range m.Rounds {
		for _, w := range loads {
			if m.Measuring != nil {
				m.Measuring(round+1, w.name)
			}
			if err := m.measure(ctx, w); err != nil {
				return Report{}, fmt.Errorf("measure %s: %w", w.name, err)
			}
		}
	}
	return m.report(loads, size), nil
}

// workloads are the chains, in the order of Concurrency, and the fan-out.
func (m *measurement) workloads() []*workload {
	var loads []*workload
	for _, n := range m.Concurrency {
		// Enough for a good part of a second, whatever the concurrency.
		slices := min(40, max(1, 300/n))
		if m.Quick {
			slices = min(4, max(1, 50/n))
		}
		loads = append(loads, &workload{
			name: fmt.Sprintf("chain of %d, %d at once", m.Nodes, n), runs: n, slices: slices, nodes: m.Nodes,
			tandem: func(ctx context.Context, i benchInstance) error { return i.execute(ctx, chainID, nil) },
			bare:   func(run int64) error { return m.bareChain(run, m.Nodes) },
		})
	}
	slices := 10
	if m.Quick {
		slices = 2
	}
	return append(loads, &workload{
		name: fmt.Sprintf("fan-out to %d and back", m.FanOut), runs: 1, slices: slices, nodes: m.FanOut + 2,
		tandem: func(ctx context.Context, i benchInstance) error { return i.execute(ctx, fanOutID, nil) },
		bare:   func(run int64) error { return m.bareFanOut(run, m.FanOut) },
	})
}

// The sides of a sample.
const (
	sideTandem = iota
	sideBare
	sideAhead
	sides
)

// measure takes one sample of each side. A sample is made of short slices in turns, so that whatever else the machine does
// slows down both.
func (m *measurement) measure(ctx context.Context, w *workload) error {
	var took, used [sides]time.Duration
	for slice := range w.slices {
		for turn := range sides {
			side := (slice + turn) % sides
			t, u, err := m.slice(ctx, w, side)
			if err != nil {
				return err
			}
			took[side], used[side] = took[side]+t, used[side]+u
		}
	}
	nodes := float64(w.slices * w.runs * w.nodes)
	for side := range took {
		w.samples[side] = append(w.samples[side], sample{
			perSecond: nodes / took[side].Seconds(), cpu: float64(used[side].Nanoseconds()) / 1e3 / nodes})
	}
	return nil
}

// slice runs the work of one side once. The garbage of the other side is collected before.
func (m *measurement) slice(ctx context.Context, w *workload, side int) (took, used time.Duration, err error) {
	first := m.place
	m.place += int64(w.runs)
	runtime.GC()
	cpu, start := processTime(), time.Now()
	err = together(w.runs, func(i int) error {
		switch side {
		case sideTandem:
			return w.tandem(ctx, m.tandem)
		case sideAhead:
			return w.tandem(ctx, m.ahead)
		}
		return w.bare(first + int64(i))
	})
	took, used = time.Since(start), processTime()-cpu
	if err == nil {
		err = context.Cause(ctx)
	}
	return took, used, err
}

// bareChain writes what a chain must write at least: one row per node, each on disk before the next.
func (m *measurement) bareChain(run int64, nodes int) error {
	for n := range nodes {
		if err := m.bare.append(run<<32|int64(n+1), time.Now().UnixMilli(), m.body); err != nil {
			return err
		}
	}
	return nil
}

// bareFanOut writes one row, then so many that wait for it only, then one that waits for all.
func (m *measurement) bareFanOut(run int64, width int) error {
	if err := m.bare.append(run<<32|1, time.Now().UnixMilli(), m.body); err != nil {
		return err
	}
	err := together(width, func(n int) error {
		return m.bare.append(run<<32|int64(n+2), time.Now().UnixMilli(), m.body)
	})
	if err != nil {
		return err
	}
	return m.bare.append(run<<32|int64(width+2), time.Now().UnixMilli(), m.body)
}

// together runs a function so many times at once and returns the first error, when all have ended.
func together(n int, each func(int) error) error {
	var group sync.WaitGroup
	var once sync.Once
	var first error
	for i := range n {
		group.Go(func() {
			if err := each(i); err != nil {
				once.Do(func() { first = err })
			}
		})
	}
	group.Wait()
	return first
}

func (m *measurement) report(loads []*workload, size int) Report {
	r := Report{Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.GOMAXPROCS(0), Rounds: m.Rounds,
		RowBytes: size}
	for i, n := range m.Concurrency {
		r.Chains = append(r.Chains, Chain{Nodes: m.Nodes, Concurrency: n, Figures: loads[i].figures(), Goal: benchGoal(m.Nodes, n)})
	}
	r.FanOut = FanOut{Width: m.FanOut, Figures: loads[len(loads)-1].figures()}
	if m.FanOut == benchFanned && m.Nodes == benchNodes {
		r.FanOut.Goal, r.FanOut.BareGoal = 2, 0.5
	}
	for _, c := range r.Chains {
		r.FanOut.ToChain = append(r.FanOut.ToChain, r.FanOut.TandemMicros/c.TandemMicros)
	}
	return r
}

func (w *workload) figures() Figures {
	var ratios, ahead []float64
	for i, s := range w.samples[sideTandem] {
		ratios = append(ratios, s.perSecond/w.samples[sideBare][i].perSecond)
		ahead = append(ahead, w.samples[sideAhead][i].perSecond/w.samples[sideBare][i].perSecond)
	}
	speed := func(s sample) float64 { return s.perSecond }
	used := func(s sample) float64 { return s.cpu }
	f := Figures{
		TandemPerSecond: medianOf(w.samples[sideTandem], speed), BarePerSecond: medianOf(w.samples[sideBare], speed),
		AheadPerSecond: medianOf(w.samples[sideAhead], speed), AheadRatio: median(ahead),
		Ratio: median(ratios), RatioLow: slices.Min(ratios), RatioHigh: slices.Max(ratios),
		TandemCPU: medianOf(w.samples[sideTandem], used), BareCPU: medianOf(w.samples[sideBare], used),
	}
	f.TandemMicros, f.BareMicros = 1e6/f.TandemPerSecond, 1e6/f.BarePerSecond
	return f
}

func medianOf(samples []sample, of func(sample) float64) float64 {
	var list []float64
	for _, s := range samples {
		list = append(list, of(s))
	}
	return median(list)
}

// median is the middle, or the mean of the two in the middle.
func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
