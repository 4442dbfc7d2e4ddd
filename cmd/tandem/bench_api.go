package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"tandem/benchmark"
)

func newBenchAPI() *cobra.Command {
	var (
		b       benchmark.API
		side    string
		dir     string
		signals int
		asJSON  bool
	)
	cmd := &cobra.Command{
		Use:   "api",
		Short: "Measure how fast the API of this machine answers",
		Long: `Api starts a server and asks it over HTTP, in turns with a bare server: net/http and encoding/json on a
bare journal. For an execution of five nodes that do nothing the bare server decodes the same body and
writes the same rows, each on disk before the next, with commits that are shared. For reads it reads the
same rows and answers with the same bytes. It checks no token and knows no workflows.

Measured are executions that are waited for, reads of an execution and of a list with 100,000
executions, and how fast 2,000 readers of a stream learn of a row. Each side has a process of its own;
processor time and memory (Linux only) are those of the server, without the clients. Rounds are
repeated; medians are told. It is best run on a machine that does nothing else.

The work is done in a scratch directory on the disk of the data directory, which is removed at the end.`,
		Example: "  tandem bench api\n  tandem bench api --quick\n  tandem bench api --json > figures.json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			if side != "" {
				return serveSide(ctx, cmd, side, dir, b.Executions, signals)
			}
			b.Launch = func(ctx context.Context, side, dir string, executions, signals int) (*benchmark.APISide, error) {
				return launchSide(ctx, cmd.ErrOrStderr(), side, dir, executions, signals)
			}
			b.Measuring = func(round int, what string) { fmt.Fprintf(cmd.ErrOrStderr(), "round %d: %s\n", round, what) }
			report, err := benchmark.MeasureAPI(ctx, b)
			if err != nil {
				return problemError{err}
			}
			if asJSON {
				encoder := json.NewEncoder(cmd.OutOrStdout())
				encoder.SetIndent("", "  ")
				err = encoder.Encode(report)
			} else {
				err = printAPI(cmd.OutOrStdout(), report)
			}
			if err != nil {
				return problemError{fmt.Errorf("write the figures: %w", err)}
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&b.Quick, "quick", false, "measure less: rougher figures")
	flags.BoolVar(&asJSON, "json", false, "print the figures as JSON")
	flags.StringVar(&b.Dir, "data", cmp.Or(os.Getenv("TANDEM_DATA"), "data"), "measure on the disk of this data directory (TANDEM_DATA); nothing in it is touched")
	flags.IntVar(&b.Rounds, "rounds", 0, "how often everything is measured (default 5, quick 3)")
	flags.IntVar(&b.Executions, "executions", 0, "how many executions there are to begin with (default 100000)")
	flags.IntSliceVar(&b.Clients, "clients", nil, "how many clients ask at once (default 1,50,500)")
	flags.IntVar(&b.Readers, "readers", 0, "how many readers follow a stream (default 2000)")
	flags.StringVar(&side, "side", "", "serve one side in this process")
	flags.StringVar(&dir, "dir", "", "the directory of the side")
	flags.IntVar(&signals, "signals", 1, "how many signals a stream takes")
	for _, name := range []string{"side", "dir", "signals"} {
		if err := flags.MarkHidden(name); err != nil {
			panic(err) // the flag is defined above
		}
	}
	cmd.SetContext(context.Background())
	return cmd
}

// serveSide serves a side until the one who launched it lets go. It tells where it listens, and then, for every line that comes
// in, what it has used.
func serveSide(ctx context.Context, cmd *cobra.Command, side, dir string, executions, signals int) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	out := json.NewEncoder(cmd.OutOrStdout())
	err := benchmark.ServeAPISide(ctx, side, dir, executions, signals, func(s benchmark.APISide) {
		if out.Encode(s) != nil {
			stop() // nobody is there
			return
		}
		go func() { // it ends with its input
			defer stop()
			for in := bufio.NewScanner(cmd.InOrStdin()); in.Scan(); {
				if out.Encode(benchmark.OwnUsage()) != nil {
					return
				}
			}
		}()
	})
	if err != nil {
		return problemError{err}
	}
	return nil
}

// launchSide starts a side in a process of its own.
func launchSide(ctx context.Context, stderr io.Writer, side, dir string, executions, signals int) (*benchmark.APISide, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	child := exec.CommandContext(ctx, self, "bench", "api", "--side", side, "--dir", dir, "--executions", fmt.Sprint(executions), "--signals", fmt.Sprint(signals))
	child.Stderr = stderr
	in, err := child.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := child.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := child.Start(); err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(out)
	var s benchmark.APISide
	s.Close = func() error {
		if err := in.Close(); err != nil {
			return err
		}
		return child.Wait()
	}
	s.Usage = func() (usage benchmark.APIUsage, err error) {
		if _, err := io.WriteString(in, "\n"); err != nil {
			return usage, err
		}
		return usage, decoder.Decode(&usage)
	}
	if err := decoder.Decode(&s); err != nil {
		return nil, fmt.Errorf("start the side %q: %w", side, cmp.Or(s.Close(), err))
	}
	return &s, nil
}

// printAPI writes the figures as tables and says how to read them.
func printAPI(out io.Writer, r benchmark.APIReport) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s, %s/%s, %d processors; rounds: %d, medians are shown; %d executions to begin with; an execution writes %d rows of %d bytes; load before: %s\n\n",
		r.Go, r.OS, r.Arch, r.CPUs, r.Rounds, r.Executions, r.Rows, r.RowBytes, cmp.Or(r.LoadBefore, "unknown"))
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "requests\tclients\tTandem/s\tbare/s\tratio\tlow-high\tgoal\tp50 ms\tbare\tp99 ms\tbare\tCPU µs\tbare\t")
	for _, f := range r.Requests {
		goal := ""
		if f.Goal > 0 {
			goal = verdict(f.Ratio >= f.Goal, fmt.Sprintf("%.2f", f.Goal))
		}
		fmt.Fprintf(table, "%s\t%d\t%.0f\t%.0f\t%.2f\t%.2f-%.2f\t%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.0f\t%.0f\t\n", f.Name, f.Clients, f.Tandem.PerSecond, f.Bare.PerSecond,
			f.Ratio, f.RatioLow, f.RatioHigh, goal, f.Tandem.P50MS, f.Bare.P50MS, f.Tandem.P99MS, f.Bare.P99MS, f.Tandem.CPUMicros, f.Bare.CPUMicros)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(&text)
	fmt.Fprintln(table, "stream\treaders\tsignals\tp50 ms\tp99 ms\tlast ms\tCPU µs per reader and row\tkB per reader\t")
	for _, s := range r.Streams {
		fmt.Fprintf(table, "%s\t%d\t%d\t%.1f\t%.1f\t%.1f\t%.1f\t%.0f\t\n", s.Side, s.Readers, s.Signals, s.P50MS, s.P99MS, s.LastMS, s.CPUMicros, s.MemoryKB)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(&text, "\nThe ratio is the share of the bare server's speed that is left with Tandem. It can be compared between\nmachines; requests per second cannot. CPU is processor time of the server per request.")
	_, err := io.WriteString(out, text.String())
	return err
}
