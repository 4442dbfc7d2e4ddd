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
		Use:   "test FILE...",
		Short: "Run the tests in workflows' files, and play recorded runs again",
		Long: `Test runs the tests that stand in a workflow's file under "tests", and plays fixtures. Both need no
server, no data directory and no network. "tandem workflows test ID" runs the tests of a workflow
that is kept.

A test in a file runs one node (node), all from a node on (from), or the whole workflow, with inputs
and with outputs that are given for other nodes (pinned), and says what must come of it (expect).
Nothing with effects runs: a test that comes to a node that reaches outside, asks people or runs another
workflow, and is not pinned, fails with not_pinned. What is expected must be there, with this value;
an object may have further fields, a list has as many items.

Fixtures ("tandem export EXECUTION --fixture") are recorded runs. Models, services, databases, tools
and people are answered from the recording; expressions, conversions and code really run. It reports
what a node now asks that it did not ask, nodes that take place or no longer do, other ends and other
outputs. With --workflow the fixtures are played with another workflow than they were recorded with:
does what I have changed still do the same?

A directory stands for the workflows with tests in it, and the files that end in ` + console.FixtureSuffix + `.

Exit status: 0 when nothing differs, 1 when something does, 2 when a file cannot be used or the
command is called wrongly.`,
		Example: "  tandem test order.yaml\n  tandem test order.tandem.json\n  tandem test workflows/ fixtures/ --junit report.xml\n  tandem test fixtures/ --workflow order.yaml",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("test needs workflows with tests, fixtures, or directories of them")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			return console.Test(ctx, terminal(cmd), args, r)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&r.Workflow, "workflow", "", "play fixtures with this workflow file instead of the recorded one")
	flags.StringVar(&r.JUnit, "junit", "", "write a report in JUnit's XML to this file")
	flags.BoolVar(&r.JSON, "json", false, "print one JSON object per test and fixture")
	flags.DurationVar(&r.Limit, "timeout", 2*time.Minute, "how long one test or replay may take; a test at most 60s")
	flags.StringVar(&r.Cache, "cache", os.Getenv("TANDEM_CACHE"), "where compiled interpreters are kept; the user's cache directory when empty (TANDEM_CACHE)")
	return cmd
}
