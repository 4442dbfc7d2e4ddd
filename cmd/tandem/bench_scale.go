package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"tandem/benchmark"
	"tandem/console"
)

func newBenchScale() *cobra.Command {
	var (
		s        benchmark.Scale
		data     string
		phase    string
		asJSON   bool
		database databaseFlag
		engine   engineFlags
	)
	cmd := &cobra.Command{
		Use:   "scale",
		Short: "Measure what many waiting executions and a long loop cost",
		Long: `Scale lets many executions begin to wait, starts a process on them, wakes some one by one and then
all, lets as many ask a person and starts a process on those whose time runs out, runs a long loop,
and starts a process that has nothing to do. Each phase has a process of its own; memory is what
that process has resident (Linux only).

With --beside a second, smaller number waits in a data directory of its own and is woken by a process
of its own in turns with the others: how fast many are woken beside few is then told whatever else
the machine does meanwhile.

The work is done in a scratch directory on the disk of the data directory, which is removed at the end.

With --database it is done on the server of that database, in databases that are made for it and
removed at the end; the user must be allowed to make some.

With --engine temporal executions begin to wait and are woken on a Temporal cluster, by a process that
starts them and works, on a task queue of their own whose name begins with --task-queue; the other
phases are not measured. What Temporal keeps of them is left there, so use one for tests.`,
		Example: "  tandem bench scale\n  tandem bench scale --parked 10000 --iterations 100000\n  tandem bench scale --parked 1000000 --beside 100000 --phases park,wake",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			s.Database = database.address()
			var err error
			if s.Temporal, err = engine.engineOptions(s.Database); err != nil {
				return err
			}
			if phase != "" {
				if s.Turn > 0 {
					s.InTurns(cmd.InOrStdin(), cmd.OutOrStdout())
				}
				report, err := benchmark.MeasureScale(ctx, s, phase)
				if err != nil {
					return console.Problem(err)
				}
				return json.NewEncoder(cmd.OutOrStdout()).Encode(report)
			}
			reports, err := benchmark.MeasureScaleAll(ctx, cmd.ErrOrStderr(), data, s,
				func(phase string) { fmt.Fprintf(cmd.ErrOrStderr(), "phase: %s\n", phase) })
			if err != nil {
				return console.Problem(err)
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(reports)
			}
			return benchmark.PrintScale(cmd.OutOrStdout(), reports)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&s.Parked, "parked", 100_000, "how many executions wait")
	flags.IntVar(&s.Beside, "beside", 0, "let so many wait in a second data directory, wake them in turns with the others, and tell the ratio of the speeds; 0: there is no second one")
	flags.IntVar(&s.Iterations, "iterations", 1_000_000, "how long the loop is")
	flags.StringSliceVar(&s.Phases, "phases", nil, "measure only these: "+strings.Join(benchmark.ScalePhases(), ", "))
	addData(flags, &data, "measure on the disk of this data directory (TANDEM_DATA); nothing in it is touched")
	database.addDatabaseFlag(flags, "")
	engine.addEngineFlags(flags)
	flags.BoolVar(&asJSON, "json", false, "print the figures as JSON")
	flags.StringVar(&phase, "phase", "", "measure one phase in this process")
	flags.StringVar(&s.Dir, "dir", "", "the directory of the phases")
	flags.IntVar(&s.Turn, "turn", 0, "how many are woken in a turn, which a line of the input begins")
	for _, name := range []string{"phase", "dir", "turn"} {
		if err := flags.MarkHidden(name); err != nil {
			panic(err) // the flag is defined above
		}
	}
	cmd.SetContext(context.Background())
	return cmd
}
