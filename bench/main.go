// Command bench runs the same work on Tandem and on other engines, each with every step synced to disk, in turns on one
// machine, and prints how many times as fast Tandem is. README.md says how it is run and read.
//
// It is a module of its own, so that nothing it needs is a part of the product. Nobody imports it.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// openers are the contenders in Go, by name. LangGraph JS is a program of its own, in the directory langgraph.
func openers() map[string]func(context.Context, string, shape) (contender, error) {
	return map[string]func(context.Context, string, shape) (contender, error){
		"tandem": openTandem, "dbos": openDBOS, "go-workflows": openGoWorkflows,
	}
}

const (
	ours      = "tandem"
	langGraph = "langgraph"
	allPeers  = "dbos,go-workflows,langgraph"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

type options struct {
	step    string
	peers   string
	rounds  int
	parked  int
	quick   bool
	scratch string
	script  string
	asJSON  bool
	limit   time.Duration
	// database is the address of a server of PostgreSQL to compare on, instead of SQLite.
	database string
}

func run() error {
	var o options
	flag.StringVar(&o.step, "step", "", "do one step, given as JSON, in this process; the program calls itself with it")
	flag.StringVar(&o.peers, "peers", allPeers, "whom to compare with")
	flag.IntVar(&o.rounds, "rounds", 5, "how often everything is measured; medians are printed")
	flag.IntVar(&o.parked, "parked", 10_000, "how many runs are parked")
	flag.BoolVar(&o.quick, "quick", false, "one round, 500 parked runs")
	flag.StringVar(&o.scratch, "scratch", ".", "a directory on the disk to be measured; a directory in it is made and removed")
	flag.StringVar(&o.script, "langgraph", filepath.Join("langgraph", "bench.mjs"), "the program that runs LangGraph JS")
	flag.BoolVar(&o.asJSON, "json", false, "print the figures as JSON")
	flag.StringVar(&o.database, "database", "", "compare on this server of PostgreSQL, postgres://USER:PASSWORD@HOST:PORT/NAME, where databases are made and removed, instead of SQLite; tandem and dbos alone")
	flag.DurationVar(&o.limit, "limit", 10*time.Minute, "how long a single step may take")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unknown argument %q", flag.Arg(0))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if o.step != "" {
		return child(ctx, o)
	}
	if o.quick {
		o.rounds, o.parked = 1, 500
	}
	return compare(ctx, o)
}

// child does one step and tells its result.
func child(ctx context.Context, o options) error {
	var s step
	if err := json.Unmarshal([]byte(o.step), &s); err != nil {
		return fmt.Errorf("read the step: %w", err)
	}
	r, err := perform(ctx, s, o.scratch)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// workload is one line of the table.
type workload struct {
	Name string `json:"name"`
	// Nodes is how many nodes all executions of a step have together, zero for those that park.
	Nodes   int      `json:"nodes,omitempty"`
	Figures []figure `json:"figures"`
	step    step     // without the contender
	once    bool     // it is measured in the last round only
	all     map[string][]result
}

// figure is what was measured of one contender.
type figure struct {
	Contender string  `json:"contender"`
	Seconds   float64 `json:"seconds"`
	// PerSecond is nodes per second, or runs parked per second.
	PerSecond float64 `json:"per_second"`
	// Ratio is how many times as fast Tandem is, Low and High the extremes of the rounds.
	Ratio float64 `json:"tandem_ratio,omitempty"`
	Low   float64 `json:"tandem_ratio_low,omitempty"`
	High  float64 `json:"tandem_ratio_high,omitempty"`
	// BytesPerRun is resident memory per parked run.
	BytesPerRun float64 `json:"bytes_per_run,omitempty"`
}

// The sizes of the workloads.
const (
	chainNodes = 100
	fanWidth   = 1000
)

func workloads(o options) []*workload {
	size := step{Nodes: chainNodes, Width: fanWidth}
	chain := func(runs, repeat int) *workload {
		s := size
		s.Workload, s.Runs, s.Repeat = workChain, runs, repeat
		return &workload{Name: fmt.Sprintf("chain of %d, %d at once", chainNodes, runs), Nodes: runs * repeat * chainNodes, step: s}
	}
	fan, park := size, size
	fan.Workload, fan.Runs, fan.Repeat = workFanOut, 1, 1
	park.Workload, park.Runs, park.Repeat = workPark, min(50, o.parked), max(1, o.parked/50)
	list := []*workload{
		chain(1, 5), chain(50, 1),
		{Name: fmt.Sprintf("fan-out to %d and back", fanWidth), Nodes: fanWidth + 2, step: fan},
		{Name: fmt.Sprintf("%d runs parked", park.Runs*park.Repeat), step: park, once: true},
	}
	for _, w := range list {
		w.all = map[string][]result{}
	}
	return list
}

// compare measures all contenders in turns and prints the table.
func compare(ctx context.Context, o options) (err error) {
	names, peers := []string{ours}, o.peers
	if o.database != "" && peers == allPeers {
		peers = strings.Join(onPostgres[1:], ",")
	}
	for _, peer := range strings.Split(peers, ",") {
		if o.database != "" && !slices.Contains(onPostgres, peer) {
			return fmt.Errorf("-peers: %q cannot be compared on PostgreSQL, only %s", peer, strings.Join(onPostgres[1:], ", "))
		}
		if _, ok := openers()[peer]; (!ok && peer != langGraph) || slices.Contains(names, peer) {
			return fmt.Errorf("-peers: %q is none of dbos, go-workflows, langgraph, or named twice", peer)
		}
		names = append(names, peer)
	}
	scratch, err := os.MkdirTemp(o.scratch, "tandem-bench-")
	if err != nil {
		return fmt.Errorf("make a scratch directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	list := workloads(o)
	for round := range o.rounds {
		for _, w := range list {
			if w.once && round != o.rounds-1 {
				continue
			}
			for i := range names {
				name := names[(i+round)%len(names)] // so that nobody always comes after the same one
				fmt.Fprintf(os.Stderr, "round %d of %d: %s: %s\n", round+1, o.rounds, w.Name, name)
				r, err := o.spawn(ctx, w.step, name, scratch)
				if err != nil {
					return fmt.Errorf("%s: %s: %w", name, w.Name, err)
				}
				if r.Synchronous != full {
					return fmt.Errorf("%s runs with synchronous=%d, not FULL (on PostgreSQL: fsync and synchronous_commit are not both on); it cannot be compared", name, r.Synchronous)
				}
				w.all[name] = append(w.all[name], r)
			}
		}
	}
	for _, w := range list {
		for _, name := range names {
			w.Figures = append(w.Figures, w.figure(name))
		}
	}
	if o.asJSON {
		encoder := json.NewEncoder(os.Stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(list)
	}
	return printTable(os.Stdout, list, names, o.rounds)
}

// spawn does a step in a process and a directory of its own.
func (o options) spawn(ctx context.Context, s step, name, scratch string) (r result, err error) {
	dir, err := os.MkdirTemp(scratch, name+"-")
	if err != nil {
		return result{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s.Contender, s.Database = name, o.database
	text, err := json.Marshal(s)
	if err != nil {
		return result{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return result{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, "-step", string(text), "-scratch", dir)
	if name == langGraph {
		cmd = exec.CommandContext(ctx, "node", "--expose-gc", o.script, string(text), dir)
	}
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return result{}, fmt.Errorf("%w: %s", errors.Join(err, context.Cause(ctx)), strings.TrimSpace(problems.String()))
	}
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		return result{}, fmt.Errorf("read its result %q: %w", out.String(), err)
	}
	return r, nil
}

func (w *workload) figure(name string) figure {
	work := float64(w.Nodes)
	if work == 0 {
		work = float64(w.step.Runs * w.step.Repeat)
	}
	var seconds, ratios []float64
	for i, r := range w.all[name] {
		seconds = append(seconds, r.Seconds)
		ratios = append(ratios, r.Seconds/w.all[ours][i].Seconds)
	}
	f := figure{Contender: name, Seconds: median(seconds)}
	f.PerSecond = work / f.Seconds
	if name != ours {
		f.Ratio, f.Low, f.High = median(ratios), slices.Min(ratios), slices.Max(ratios)
	}
	if w.step.Workload == workPark {
		f.BytesPerRun = float64(w.all[name][0].Memory) / work
	}
	return f
}

// median is the middle, or the mean of the two in the middle.
func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// printTable writes a table with a column per contender.
func printTable(out io.Writer, list []*workload, names []string, rounds int) error {
	fmt.Fprintf(out, "rounds: %d, medians are shown; synchronous=FULL everywhere\n\n", rounds)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "\t%s\t\n", strings.Join(names, "\t"))
	line := func(name string, w *workload, cell func(figure) string) {
		fmt.Fprint(t, name)
		for _, f := range w.Figures {
			fmt.Fprintf(t, "\t%s", cell(f))
		}
		fmt.Fprint(t, "\t\n")
	}
	for _, w := range list {
		what := "nodes/s"
		if w.Nodes == 0 {
			what = "runs/s"
		}
		line(w.Name+", "+what, w, func(f figure) string { return fmt.Sprintf("%.0f", f.PerSecond) })
		line("Tandem / peer", w, func(f figure) string {
			if f.Contender == ours {
				return "1"
			}
			return fmt.Sprintf("%.1f (%.1f-%.1f)", f.Ratio, f.Low, f.High)
		})
		if w.Nodes == 0 {
			line("resident memory per parked run, bytes", w, func(f figure) string { return fmt.Sprintf("%.0f", f.BytesPerRun) })
		}
	}
	return t.Flush()
}
