package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"tandem/benchmark"
)

func newBenchScale() *cobra.Command {
	var (
		s      benchmark.Scale
		data   string
		phase  string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "scale",
		Short: "Measure what many waiting executions and a long loop cost",
		Long: `Scale lets many executions begin to wait, starts a process on them, wakes some one by one and then
all, lets as many ask a person and starts a process on those whose time runs out, runs a long loop,
and starts a process that has nothing to do. Each phase has a process of its own; memory is what
that process has resident (Linux only).

The work is done in a scratch directory on the disk of the data directory, which is removed at the end.`,
		Example: "  tandem bench scale\n  tandem bench scale --parked 10000 --iterations 100000",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			if phase != "" {
				report, err := benchmark.MeasureScale(ctx, s, phase)
				if err != nil {
					return problemError{err}
				}
				return json.NewEncoder(cmd.OutOrStdout()).Encode(report)
			}
			if err := os.MkdirAll(data, 0o700); err != nil {
				return problemError{err}
			}
			dir, err := os.MkdirTemp(data, "bench-")
			if err != nil {
				return problemError{err}
			}
			defer func() {
				if rerr := os.RemoveAll(dir); err == nil && rerr != nil {
					err = problemError{rerr}
				}
			}()
			var reports []benchmark.ScaleReport
			for _, phase := range benchmark.ScalePhases() {
				fmt.Fprintf(cmd.ErrOrStderr(), "phase: %s\n", phase)
				where := dir
				switch phase {
				case "loop", "idle":
					where = filepath.Join(dir, phase) // nothing of the others is in it
				case "ask", "due":
					where = filepath.Join(dir, "people")
				}
				report, err := runPhase(ctx, cmd.ErrOrStderr(), where, phase, s)
				if err != nil {
					return problemError{err}
				}
				reports = append(reports, report)
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(reports)
			}
			return printScale(cmd.OutOrStdout(), reports)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&s.Parked, "parked", 100_000, "how many executions wait")
	flags.IntVar(&s.Iterations, "iterations", 1_000_000, "how long the loop is")
	flags.StringVar(&data, "data", cmp.Or(os.Getenv("TANDEM_DATA"), "data"), "measure on the disk of this data directory (TANDEM_DATA); nothing in it is touched")
	flags.BoolVar(&asJSON, "json", false, "print the figures as JSON")
	flags.StringVar(&phase, "phase", "", "measure one phase in this process")
	flags.StringVar(&s.Dir, "dir", "", "the directory of the phases")
	for _, name := range []string{"phase", "dir"} {
		if err := flags.MarkHidden(name); err != nil {
			panic(err) // the flag is defined above
		}
	}
	cmd.SetContext(context.Background())
	return cmd
}

// runPhase measures a phase in a process of its own.
func runPhase(ctx context.Context, stderr io.Writer, dir, phase string, s benchmark.Scale) (report benchmark.ScaleReport, err error) {
	self, err := os.Executable()
	if err != nil {
		return report, err
	}
	cmd := exec.CommandContext(ctx, self, "bench", "scale", "--phase", phase, "--dir", dir,
		"--parked", fmt.Sprint(s.Parked), "--iterations", fmt.Sprint(s.Iterations))
	cmd.Stderr = stderr
	out, err := cmd.Output()
	if err != nil {
		return report, fmt.Errorf("phase %q: %w", phase, err)
	}
	return report, json.Unmarshal(out, &report)
}

func printScale(out io.Writer, reports []benchmark.ScaleReport) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "phase\tcount\tper second\tready after s\tready MB\tpeak MB\twake p50 ms\twake p99 ms\tlongest stall ms\tlate p50 ms\tlate max ms\t")
	for _, r := range reports {
		fmt.Fprintf(table, "%s\t%d\t%.0f\t%.3f\t%.0f\t%.0f\t%.2f\t%.2f\t%.0f\t%.0f\t%.0f\t\n", r.Phase, r.Count, r.PerSecond, r.ReadySecond, r.ReadyMB, r.PeakMB, r.WakeP50MS, r.WakeP99MS, r.StallMS, r.LateP50MS, r.LateMaxMS)
	}
	return table.Flush()
}
