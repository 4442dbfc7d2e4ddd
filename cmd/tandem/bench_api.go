package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"tandem/benchmark"
	"tandem/console"
)

func newBenchAPI() *cobra.Command {
	var (
		b        benchmark.API
		side     string
		dir      string
		signals  int
		asJSON   bool
		database databaseFlag
		engine   engineFlags
	)
	cmd := &cobra.Command{
		Use:   "api",
		Short: "Measure how fast the API of this machine answers",
		Long: `Api starts a server and asks it over HTTP, in turns with a bare server: net/http and encoding/json on a
bare journal. For an execution of five nodes that do nothing the bare server decodes the same body and
writes the same rows and the summary of the execution, each row on disk before the next, with commits that
are shared. For reads it reads the same rows and answers with the same bytes. It checks no token and knows
no workflows.

Measured are executions that are waited for, webhooks that are answered with the result of such an
execution (the bare server writes one row for each), reads of an execution and of a list with 100,000
executions, and how fast 2,000 readers of a stream learn of a row. Each side has a process of its own;
processor time and memory (Linux only) are those of the server, without the clients. Rounds are
repeated; medians are told. It is best run on a machine that does nothing else.

The work is done in a scratch directory on the disk of the data directory, which is removed at the end.

With --database it is done on the server of that database, in databases that are made for it and
removed at the end; the user must be allowed to make some. The bare server
is on one of them as well.

With --engine temporal the executions of Tandem's side run on a Temporal cluster, by a worker in the
process of the server, on a task queue of their own whose name begins with --task-queue; what
Temporal keeps of them is left there, so use one for tests.`,
		Example: "  tandem bench api\n  tandem bench api --quick\n  tandem bench api --json > figures.json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			temporal, err := engine.engineOptions(database.address())
			if err != nil {
				return err
			}
			if side != "" {
				o := benchmark.SideOptions{Side: side, Dir: dir, Database: database.address(), Temporal: temporal, Executions: b.Executions,
					Signals: signals}
				if err := benchmark.ServeLaunchedSide(ctx, cmd.InOrStdin(), cmd.OutOrStdout(), o); err != nil {
					return console.Problem(err)
				}
				return nil
			}
			b.Database, b.Temporal = database.address(), temporal
			b.Launch = func(ctx context.Context, o benchmark.SideOptions) (*benchmark.APISide, error) {
				return benchmark.LaunchSide(ctx, cmd.ErrOrStderr(), o)
			}
			b.Measuring = func(round int, what string) { fmt.Fprintf(cmd.ErrOrStderr(), "round %d: %s\n", round, what) }
			report, err := benchmark.MeasureAPI(ctx, b)
			if err != nil {
				return console.Problem(err)
			}
			return printFigures(cmd, asJSON, report)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&b.Quick, "quick", false, "measure less: rougher figures")
	flags.BoolVar(&asJSON, "json", false, "print the figures as JSON")
	addData(flags, &b.Dir, "measure on the disk of this data directory (TANDEM_DATA); nothing in it is touched")
	database.addDatabaseFlag(flags, "")
	engine.addEngineFlags(flags)
	flags.StringSliceVar(&b.Requests, "requests", nil, "measure these alone: "+strings.Join(benchmark.APIKinds(), ", "))
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
