package main

import (
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"

	"tandem/console"
)

func newTest() *cobra.Command {
	var r console.Replay
	cmd := &cobra.Command{
		Use:   "test FIXTURE...",
		Short: "Play recorded runs again and report what is different",
		Long: `Test plays fixtures ("tandem export EXECUTION --fixture") without a network, a data directory or
waiting. Models, services, databases, tools and people are answered from the recording; expressions,
conversions and code really run. It reports what a node now asks that it did not ask, nodes that take
place or no longer do, other ends and other outputs.

With --workflow the fixtures are played with another workflow than they were recorded with: does what
I have changed still do the same?

A directory stands for the files in it that end in ` + console.FixtureSuffix + `.

Exit status: 0 when nothing differs, 1 when something does, 2 when a fixture or the workflow cannot be
used or the command is called wrongly.`,
		Example: "  tandem test order.tandem.json\n  tandem test fixtures/ --workflow order.yaml --junit report.xml",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("test needs fixtures, or directories of them")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			return console.PlayFixtures(ctx, terminal(cmd), args, r)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&r.Workflow, "workflow", "", "play with this workflow file instead of the recorded one")
	flags.StringVar(&r.JUnit, "junit", "", "write a report in JUnit's XML to this file")
	flags.BoolVar(&r.JSON, "json", false, "print one JSON object per fixture")
	flags.DurationVar(&r.Limit, "timeout", 2*time.Minute, "how long one replay may take")
	flags.StringVar(&r.Cache, "cache", os.Getenv("TANDEM_CACHE"), "where compiled interpreters are kept; the user's cache directory when empty (TANDEM_CACHE)")
	return cmd
}
