package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"tandem/benchmark"
	"tandem/console"
)

func newBench() *cobra.Command {
	var (
		b      benchmark.Engine
		asJSON bool
		// database is measured instead of SQLite.
		database databaseFlag
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

The work is done in a scratch directory on the disk of the data directory, which is removed at the end.

With --database it is done on the server of that database, in databases that are made for it and
removed at the end; the user must be allowed to make some. The bare journal is there as well.`,
		Example: "  tandem bench\n  tandem bench --quick\n  tandem bench --rounds 15 --json > figures.json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			b.Measuring = func(round int, what string) {
				fmt.Fprintf(cmd.ErrOrStderr(), "round %d: %s\n", round, what)
			}
			b.Database = database.address()
			report, err := benchmark.Measure(ctx, b)
			if err != nil {
				return console.Problem(err)
			}
			return printFigures(cmd, asJSON, report)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&b.Quick, "quick", false, "measure less: some seconds, rougher figures")
	flags.BoolVar(&asJSON, "json", false, "print the figures as JSON")
	addData(flags, &b.Dir, "measure on the disk of this data directory (TANDEM_DATA); nothing in it is touched")
	database.addDatabaseFlag(flags, "")
	flags.IntVar(&b.Rounds, "rounds", 0, "how often everything is measured (default 7, quick 3)")
	flags.IntVar(&b.Nodes, "nodes", 0, "the length of the chain (default 100)")
	flags.IntVar(&b.FanOut, "fan-out", 0, "the width of the fan-out (default 1000)")
	flags.IntSliceVar(&b.Concurrency, "concurrency", nil, "how many chains run at once (default 1,50,500)")
	cmd.SetContext(context.Background())
	cmd.AddCommand(newBenchScale(), newBenchAPI())
	return cmd
}

// printFigures prints what was measured, as JSON or as tables.
func printFigures(cmd *cobra.Command, asJSON bool, report interface{ Print(io.Writer) error }) error {
	var err error
	if asJSON {
		encoder := json.NewEncoder(cmd.OutOrStdout())
		encoder.SetIndent("", "  ")
		err = encoder.Encode(report)
	} else {
		err = report.Print(cmd.OutOrStdout())
	}
	if err != nil {
		return console.Problem(fmt.Errorf("write the figures: %w", err))
	}
	return nil
}
