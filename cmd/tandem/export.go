package main

import (
	"context"

	"github.com/spf13/cobra"

	"tandem/app"
	"tandem/console"
)

func newExportExecution() *cobra.Command {
	var (
		at       connectFlags
		asFile   bool
		out      string
		maxInput int
	)
	cmd := &cobra.Command{
		Use:   "export EXECUTION",
		Short: "Write down an execution, or make a fixture of it",
		Long: `Export writes an execution as one JSON document: the execution with its workflow, its activations
with their inputs and outputs, and its events.

With --fixture it writes a recorded run instead: everything that models, services, databases, tools,
timers and people said to the execution. "tandem test" plays it again without any of them. Make it
from the data directory; no server may have that open.

A fixture holds the data of the run. Secrets of credentials are not in it, but look at the inputs
before you share one.`,
		Example: "  tandem export exec_abc > record.json\n  tandem export exec_abc --fixture --out order.tandem.json",
		Args:    one("execution"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				if asFile {
					return console.ExportFixture(ctx, terminal(cmd), c, args[0], out)
				}
				return console.ExportExecution(ctx, terminal(cmd), c, args[0], out, maxInput)
			})
		},
	}
	at.addConnectFlags(cmd)
	cmd.Flags().BoolVar(&asFile, "fixture", false, "write a recorded run for \"tandem test\"")
	cmd.Flags().StringVar(&out, "out", "", "the file to write; standard output when empty")
	cmd.Flags().IntVar(&maxInput, "inputs", 1000, "without --fixture: of how many activations the input is worked out")
	return cmd
}
