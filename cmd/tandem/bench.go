package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"tandem/benchmark"
)

func newBench() *cobra.Command {
	var (
		b      benchmark.Engine
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure how fast this machine runs workflows durably",
		Long: `Bench runs chains and a fan-out of nodes that do nothing, with every step on disk before the next and
somebody watching, in turns with a bare journal: one row per node and no engine, on the same driver,
with the same bytes per row and the same durability (a write-ahead log, synced at every commit).

The ratio of the two says what the engine costs, whatever the disk. Everything is measured in
several rounds; medians are told, and the lowest and highest ratio. It is best run on a machine that
does nothing else.

The work is done in a scratch directory on the disk of the data directory, which is removed at the end.`,
		Example: "  tandem bench\n  tandem bench --quick\n  tandem bench --rounds 15 --json > figures.json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			b.Measuring = func(round int, what string) {
				fmt.Fprintf(cmd.ErrOrStderr(), "round %d: %s\n", round, what)
			}
			report, err := benchmark.Measure(ctx, b)
			if err != nil {
				return problemError{err}
			}
			if asJSON {
				encoder := json.NewEncoder(cmd.OutOrStdout())
				encoder.SetIndent("", "  ")
				err = encoder.Encode(report)
			} else {
				err = printBench(cmd.OutOrStdout(), report)
			}
			if err != nil {
				return problemError{fmt.Errorf("write the figures: %w", err)}
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&b.Quick, "quick", false, "measure less: some seconds, rougher figures")
	flags.BoolVar(&asJSON, "json", false, "print the figures as JSON")
	flags.StringVar(&b.Dir, "data", cmp.Or(os.Getenv("TANDEM_DATA"), "data"), "measure on the disk of this data directory (TANDEM_DATA); nothing in it is touched")
	flags.IntVar(&b.Rounds, "rounds", 0, "how often everything is measured (default 7, quick 3)")
	flags.IntVar(&b.Nodes, "nodes", 0, "the length of the chain (default 100)")
	flags.IntVar(&b.FanOut, "fan-out", 0, "the width of the fan-out (default 1000)")
	flags.IntSliceVar(&b.Concurrency, "concurrency", nil, "how many chains run at once (default 1,50,500)")
	cmd.SetContext(context.Background())
	cmd.AddCommand(newBenchScale(), newBenchAPI())
	return cmd
}

// printBench writes the figures as a table and says how to read them.
func printBench(out io.Writer, r benchmark.Report) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s, %s/%s, %d processors; rounds: %d, medians are shown; %d bytes per row\n\n", r.Go, r.OS, r.Arch, r.CPUs, r.Rounds, r.RowBytes)
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "durable nodes per second\tTandem\tbare journal\tratio\tlow-high\tgoal\tµs/node\tbare\tCPU µs\tbare\trunning ahead\tratio\t")
	line := func(name string, f benchmark.Figures, goal string) {
		fmt.Fprintf(table, "%s\t%.0f\t%.0f\t%.2f\t%.2f-%.2f\t%s\t%.1f\t%.1f\t%.1f\t%.1f\t%.0f\t%.2f\t\n",
			name, f.TandemPerSecond, f.BarePerSecond, f.Ratio, f.RatioLow, f.RatioHigh, goal, f.TandemMicros, f.BareMicros, f.TandemCPU, f.BareCPU, f.AheadPerSecond, f.AheadRatio)
	}
	for _, c := range r.Chains {
		goal := ""
		if c.Goal > 0 {
			goal = verdict(c.Ratio >= c.Goal, fmt.Sprintf("%.2f", c.Goal))
		}
		line(fmt.Sprintf("chain of %d, %d at once", c.Nodes, c.Concurrency), c.Figures, goal)
	}
	line(fmt.Sprintf("fan-out to %d and back", r.FanOut.Width), r.FanOut.Figures, "")
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(&text)
	for i, c := range r.Chains {
		goal := ""
		if i == 0 && r.FanOut.Goal > 0 {
			goal = fmt.Sprintf(" (%s)", verdict(r.FanOut.ToChain[i] <= r.FanOut.Goal, fmt.Sprintf("goal: at most %.0f", r.FanOut.Goal)))
		}
		fmt.Fprintf(&text, "a node of the fan-out takes %.2f times as long as one of the chain, %d at once%s\n", r.FanOut.ToChain[i], c.Concurrency, goal)
	}
	fmt.Fprintln(&text, "\nThe ratio is the share of the bare journal's speed that is left with the engine. It can be compared\nbetween machines; nodes per second cannot. The goals are for rows that are on disk before the next\nnode runs; running ahead, as Tandem does unless told otherwise, pure nodes do not wait for that, and\ntheir rows are written together before anything that can be seen follows.")
	_, err := io.WriteString(out, text.String())
	return err
}

// verdict marks a goal that was missed.
func verdict(met bool, goal string) string {
	if met {
		return goal
	}
	return goal + " missed"
}
