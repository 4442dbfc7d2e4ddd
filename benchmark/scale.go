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
	"sync/atomic"
	"time"

	"tandem/app"
	"tandem/cluster"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/store"
	"tandem/store/postgres"
	"tandem/workflow"
)

// Scale measures what a large number costs: executions that wait, and iterations of a loop. Each phase is measured in a
// process of its own, so that memory is that of the phase.
type Scale struct {
	// Dir is a data directory of the measurement's own, which the phases share.
	Dir string
	// Database is the address of a database of PostgreSQL. Of a phase it is the one that is measured; all phases together are measured in
	// databases that are made on its server and removed. Empty: SQLite is measured.
	Database string
	// Temporal is where the engine is that executions run on, which needs Database; nil: in the process of the phase. The phases that begin
	// to wait and are woken are measured there, in a process that starts executions and runs them.
	Temporal *cluster.Options
	// Parked is how many executions wait, Iterations how long the loop is.
	Parked     int
	Iterations int
	// Beside is how many executions wait in a second data directory and are woken in turns with the others, by a process of their own: how
	// fast a number is woken beside a smaller one can be told so even where the machine is faster at one time than at another. 0: there is
	// no second one. It is for SQLite.
	Beside int
	// Turn is how many executions are woken before Next is called again, which returns when the next may be. 0: all at once.
	Turn int
	Next func() error
	// Phases are those to be measured, all when empty. A phase that starts on what another one leaves is measured with it.
	Phases []string
}

// ScalePhases are the phases in their order: many executions begin to wait; a process starts on them and wakes first some
// one by one, then all; many executions ask a person; a process starts on them and looks after those whose time runs out; a
// long loop; a process that has nothing to do.
func ScalePhases() []string { return []string{"park", "wake", "ask", "due", "loop", "idle"} }

// ScalePhasesOnTemporal are those of the phases that are measured on Temporal.
func ScalePhasesOnTemporal() []string { return []string{"park", "wake"} }

// phases are those to be measured, in their order.
func (s Scale) phases() ([]string, error) {
	all := ScalePhases()
	if s.Temporal != nil {
		all = ScalePhasesOnTemporal()
	}
	if len(s.Phases) == 0 {
		return all, nil
	}
	wanted := map[string]bool{}
	for _, name := range s.Phases {
		if !slices.Contains(ScalePhases(), name) {
			return nil, fault.Newf(fault.Invalid, "%q is not a phase; there are %s", name, strings.Join(ScalePhases(), ", "))
		}
		if !slices.Contains(all, name) {
			return nil, fault.Newf(fault.Invalid, "the phase %q is not measured on Temporal; name only %s, or leave out --engine temporal", name, strings.Join(all, ", "))
		}
		wanted[name] = true
	}
	wanted["park"], wanted["ask"] = wanted["park"] || wanted["wake"], wanted["ask"] || wanted["due"]
	return slices.DeleteFunc(ScalePhases(), func(name string) bool { return !wanted[name] }), nil
}

// ScaleReport is what a phase has measured. What it does not measure is zero. Memory is what the process has resident, in
// megabytes.
type ScaleReport struct {
	Phase string `json:"phase"`
	// Server is the server of the database that was measured; empty: it was SQLite.
	Server string `json:"server,omitempty"`
	// Engine is what executions ran on, unless it was the process of the phase.
	Engine      string  `json:"engine,omitempty"`
	Count       int     `json:"count"`
	Seconds     float64 `json:"seconds"`
	PerSecond   float64 `json:"per_second"`
	ReadySecond float64 `json:"ready_seconds,omitempty"`
	// CPUMicros is the processor time for each of them, where the system tells it: unlike the rest, it says something on a machine that
	// does other work, too.
	CPUMicros float64 `json:"cpu_microseconds,omitempty"`
	// DiskBytes is by how much each of them makes the database larger, of those that begin to wait.
	DiskBytes float64 `json:"disk_bytes,omitempty"`
	// ReadyMB is the memory when the process was ready, PeakMB the most there was.
	ReadyMB float64 `json:"ready_mb"`
	PeakMB  float64 `json:"peak_mb"`
	// WakeP50MS and WakeP99MS are from a signal to the end of the execution that it wakes, one at a time.
	WakeP50MS float64 `json:"wake_p50_ms,omitempty"`
	WakeP99MS float64 `json:"wake_p99_ms,omitempty"`
	// StallMS is the longest time without the end of any execution while all are woken.
	StallMS float64 `json:"longest_stall_ms,omitempty"`
	// LateP50MS and LateMaxMS are how long after its time a question ran out.
	LateP50MS float64 `json:"late_p50_ms,omitempty"`
	LateMaxMS float64 `json:"late_max_ms,omitempty"`
}

const (
	scaleFlow   = "scale_wait"
	scaleLoop   = "scale_loop"
	scaleAtOnce = 200
)

// singles is how many executions are woken one by one. On Temporal each takes many times as long.
func (s Scale) singles() int {
	if s.Temporal != nil {
		return 20
	}
	return 500
}

// MeasureScale runs one phase.
func MeasureScale(ctx context.Context, s Scale, phase string) (ScaleReport, error) {
	if s.Parked < s.singles() || s.Iterations < 1 {
		return ScaleReport{}, fault.Newf(fault.Invalid, "at least %d executions and one iteration are needed", s.singles())
	}
	r := &scaleRun{Scale: s, report: ScaleReport{Phase: phase}, ended: make(chan string, 1024), waits: make(chan string, 1024)}
	var run func(context.Context) error
	switch phase {
	case "park":
		run = r.park
	case "wake":
		run = r.wake
	case "ask":
		run = r.ask
	case "due":
		run = r.due
	case "loop":
		run = r.loop
	case "idle":
		run = func(context.Context) error { return nil }
	default:
		return r.report, fault.Newf(fault.Invalid, "%q is not a phase", phase)
	}
	var err error
	if s.Database != "" {
		seen, err := postgres.Inspect(ctx, s.Database)
		if err != nil {
			return r.report, err
		}
		r.report.Server = onServer(seen)
	}
	start := time.Now()
	if err := r.open(ctx); err != nil {
		return r.report, err
	}
	r.report.ReadySecond = time.Since(start).Seconds()
	r.report.ReadyMB = resident("VmRSS")
	before, err := onDisk(ctx, r.data(), s.Database)
	if err != nil {
		return r.report, errors.Join(err, r.close())
	}
	began := processTime()
	err = run(ctx)
	if r.spent == 0 {
		r.spent = processTime() - began
	}
	if r.report.Seconds > 0 && r.report.Count > 0 { // none is left to be woken together where all were woken one by one
		r.report.PerSecond = float64(r.report.Count) / r.report.Seconds
		r.report.CPUMicros = float64(r.spent.Microseconds()) / float64(r.report.Count)
	}
	r.report.PeakMB = resident("VmHWM")
	if err := errors.Join(err, r.close()); err != nil || phase != "park" {
		return r.report, err
	}
	after, err := onDisk(ctx, r.data(), s.Database)
	r.report.DiskBytes = float64(after-before) / float64(r.report.Count)
	return r.report, err
}

// data is the data directory.
func (s Scale) data() string { return filepath.Join(s.Dir, "data") }

// scaleRun is a phase under way.
type scaleRun struct {
	Scale
	*app.Instance
	// close closes the instance and what belongs to it.
	close  func() error
	report ScaleReport
	// spent is the processor time of what the report counts, set by a phase that does other things, too.
	spent time.Duration
	// ended and waits are the executions that have ended or begun to wait, for their readers.
	ended, waits chan string
	reading      atomic.Bool
}

// open opens the instance, with a worker beside it in this process where executions run on Temporal.
func (r *scaleRun) open(ctx context.Context) (err error) {
	o := app.Options{Dir: r.data(), Database: r.Database, Recorded: r.recorded}
	if r.Temporal == nil {
		if r.Instance, err = app.Open(ctx, o); err == nil {
			r.close = r.Instance.Close
		}
		return err
	}
	r.report.Engine = "Temporal"
	var closing []func() error
	r.close = func() (err error) {
		for _, end := range slices.Backward(closing) {
			err = errors.Join(err, end())
		}
		return err
	}
	part := func(works bool, o app.Options) (*app.Instance, error) {
		var err error
		if o.Cluster, err = cluster.Connect(*r.Temporal, works); err != nil {
			return nil, err
		}
		closing = append(closing, func() error { o.Cluster.Close(); return nil })
		i, err := app.Open(ctx, o)
		if err == nil {
			closing = append(closing, i.Close)
		}
		return i, err
	}
	worker := o
	o.Recorded, worker.Dir = nil, filepath.Join(r.Dir, "worker")
	if r.Instance, err = part(false, o); err != nil {
		return errors.Join(err, r.close())
	}
	if err = copyKey(o.Dir, worker.Dir); err == nil {
		_, err = part(true, worker)
	}
	if err != nil {
		return errors.Join(err, r.close())
	}
	return nil
}

func (r *scaleRun) recorded(ref store.Ref, _ *workflow.Graph, row host.Row) {
	if !r.reading.Load() {
		return
	}
	for _, t := range row.Told {
		if t.What != host.ToldExecution {
			continue
		}
		switch {
		case t.Status.Final():
			r.ended <- ref.Execution
		case t.Status == engine.StatusWaiting, t.Status == engine.StatusWaitingForHuman:
			r.waits <- ref.Execution
		}
	}
}

func (r *scaleRun) keepWorkflow(ctx context.Context, text string) error {
	return benchInstance{r.Instance}.save(ctx, []byte(text))
}

func (r *scaleRun) park(ctx context.Context) error {
	if err := r.keepWorkflow(ctx, `
metadata: {id: `+scaleFlow+`, name: waits, description: measured by tandem bench}
nodes:
  - {id: start, description: begins, type: TRIGGER, subtype: MANUAL}
  - {id: wait, description: waits, type: FLOW, subtype: WAIT, configurations: {wait_type: signal, signal_name: go, timeout_seconds: 86400}}
  - {id: end, description: ends, type: CALL, subtype: EMPTY}
connections:
  - {from_node: start, to_node: wait}
  - {from_node: wait, to_node: end}
`); err != nil {
		return err
	}
	r.reading.Store(true)
	begin := time.Now()
	if err := r.beginAll(ctx, scaleFlow, r.Parked); err != nil {
		return err
	}
	r.report.Count, r.report.Seconds = r.Parked, time.Since(begin).Seconds()
	return nil
}

// beginAll starts executions of a workflow and waits until all of them wait.
func (r *scaleRun) beginAll(ctx context.Context, flow string, count int) error {
	failed := make(chan error, 1)
	go func() {
		failed <- inTurn(count, func(n int) error {
			request, err := r.Request(ctx, app.Local(), flow, "latest")
			if err != nil {
				return err
			}
			request.ID, request.Initial = scaleName(flow, n), json.RawMessage(`{"customer":"c`+strconv.Itoa(n)+`"}`)
			request.TriggerData = request.Initial
			_, err = r.Host().Start(ctx, app.Local(), request)
			return err
		})
	}()
	for range count {
		select {
		case <-r.waits:
		case err := <-failed:
			if err != nil {
				return err
			}
			failed = nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// inTurn does something for each number below count, many at once. Each takes the next number when it is done with one, so that what is
// begun late was asked for late, however many there are.
func inTurn(count int, do func(n int) error) error {
	var next atomic.Int64
	return together(scaleAtOnce, func(int) error {
		for n := int(next.Add(1)) - 1; n < count; n = int(next.Add(1)) - 1 {
			if err := do(n); err != nil {
				return err
			}
		}
		return nil
	})
}

func scaleName(flow string, n int) string { return fmt.Sprintf("exec_%s_%07d", flow, n) }

func (r *scaleRun) loop(ctx context.Context) error {
	if err := r.keepWorkflow(ctx, `
metadata: {id: `+scaleLoop+`, name: loops, description: measured by tandem bench}
nodes:
  - {id: start, description: begins, type: TRIGGER, subtype: MANUAL}
  - {id: each, description: repeats, type: FLOW, subtype: LOOP, configurations: {loop_type: for_range, end_value: `+strconv.Itoa(r.Iterations-1)+`, max_iterations: `+strconv.Itoa(r.Iterations)+`, collect_results: false}}
  - {id: step, description: does nothing, type: CALL, subtype: EMPTY}
connections:
  - {from_node: start, to_node: each}
  - {from_node: each, to_node: step, output_key: iteration}
  - {from_node: step, to_node: each}
`); err != nil {
		return err
	}
	r.reading.Store(true)
	begin := time.Now()
	if _, err := r.Start(ctx, app.Local(), scaleLoop, json.RawMessage(`{}`)); err != nil {
		return err
	}
	if err := r.next(ctx); err != nil {
		return err
	}
	r.report.Count, r.report.Seconds = r.Iterations, time.Since(begin).Seconds()
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// resident is the memory of this process as Linux tells it, in megabytes: VmRSS now, VmHWM at most. Elsewhere it is zero.
func resident(name string) float64 {
	if runtime.GOOS != "linux" {
		return 0
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0 // it is not told here
	}
	for line := range bytes.Lines(status) {
		rest, ok := bytes.CutPrefix(line, []byte(name+":"))
		if !ok {
			continue
		}
		kb, err := strconv.ParseFloat(string(bytes.TrimSuffix(bytes.TrimSpace(rest), []byte(" kB"))), 64)
		if err != nil {
			return 0
		}
		return kb / 1024
	}
	return 0
}
