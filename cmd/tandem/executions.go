package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"tandem/api"
	"tandem/app"
	"tandem/client"
	"tandem/console"
)

func newExecutions() *cobra.Command {
	var at connectFlags
	cmd := &cobra.Command{
		Use:     "executions",
		Aliases: []string{"execution", "exec"},
		Short:   "Look at executions and act on them",
		Long: `Executions are runs of workflows. With --server (or TANDEM_SERVER) these commands ask a server;
without one they work on the data directory, through the server that has it open or by themselves. What is
changed while no server runs is on disk, and goes on with "tandem run --resume" or with the next server.`,
		RunE: func(cmd *cobra.Command, args []string) error { return subcommand(cmd, args) },
	}
	at.addConnectFlags(cmd)
	cmd.AddCommand(
		newExecutionsList(&at), newExecutionsGet(&at), newExecutionsValue(&at), newExecutionsHistory(&at), newExecutionsWatch(&at),
		newExecutionsLogs(&at), newExecutionsContext(&at),
		newAction(&at, "pause", "Let nothing new begin"), newAction(&at, "resume", "Let a paused execution go on"), newAction(&at, "cancel", "End an execution"),
		newRetry(&at), newSkip(&at), newFork(&at), newDeleteExecution(&at), newInput(&at),
	)
	return cmd
}

// subcommand answers a command that only has subcommands.
func subcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	return fmt.Errorf("%s has no command %q; it has %s", cmd.Name(), args[0], strings.Join(names, ", "))
}

func newExecutionsList(at *connectFlags) *cobra.Command {
	var q client.ExecutionQuery
	var show listing
	cmd := &cobra.Command{
		Use: "list", Short: "List executions, the newest first",
		Example: "  tandem executions list --status RUNNING,WAITING_FOR_HUMAN\n  tandem executions list --workflow order --output wide",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := show.check(); err != nil {
				return err
			}
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				list, err := c.Executions(ctx, q)
				if err != nil {
					return err
				}
				if err := show.Show(cmd.OutOrStdout(), list,
					func(w *tabwriter.Writer) { console.PrintExecutions(w, list, show.Output == "wide") }); err != nil || show.JSON {
					return err
				}
				return console.NoteResting(cmd.ErrOrStderr(), c.Local(), list)
			})
		},
	}
	show.addListingFlags(cmd, true)
	cmd.Flags().StringVar(&q.WorkflowID, "workflow", "", "only those of this workflow")
	cmd.Flags().StringSliceVar(&q.Statuses, "status", nil, "only those with one of these statuses, separated by commas")
	pageFlags(cmd, &q.Page, &q.PageSize)
	return cmd
}

func pageFlags(cmd *cobra.Command, page, size *int) {
	cmd.Flags().IntVar(page, "page", 0, "which part of the list, from 1")
	cmd.Flags().IntVar(size, "page-size", 0, "how many a part has")
}

func newExecutionsGet(at *connectFlags) *cobra.Command {
	var show listing
	var activation string
	var withWorkflow bool
	cmd := &cobra.Command{
		Use: "get EXECUTION", Short: "Show an execution and its nodes",
		Example: "  tandem executions get exec_abc\n  tandem executions get exec_abc --activation 'each[2]/fetch'",
		Args:    one("execution"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				return console.GetExecution(ctx, terminal(cmd), c, &show.Listing, args[0], activation, withWorkflow)
			})
		},
	}
	show.addListingFlags(cmd, false)
	cmd.Flags().StringVar(&activation, "activation", "", "show this activation with its input, as JSON")
	cmd.Flags().BoolVar(&withWorkflow, "include-workflow", false, "with --json: add the definition that it is pinned to")
	return cmd
}

func newExecutionsValue(at *connectFlags) *cobra.Command {
	return &cobra.Command{
		Use: "value EXECUTION HASH", Short: "Write a large value of an execution: what stands elsewhere as {\"$blob\": HASH}",
		Example: "  tandem executions value exec_abc 9f86d081… > value.json",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("%s needs an execution and a hash; %d were named", cmd.CommandPath()[len("tandem "):], len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				return console.Value(ctx, cmd.OutOrStdout(), c, args[0], args[1])
			})
		},
	}
}

func newExecutionsWatch(at *connectFlags) *cobra.Command {
	var after, vocabulary string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "watch EXECUTION", Short: "Follow an execution until it ends",
		Long: `Watch draws an execution from its beginning until it ends, as "run" does. A connection that breaks
is made again, and nothing is shown twice or left out.

Exit status: 0 when the execution succeeded, 1 when it did not, 130 when the watching was interrupted;
the execution does not mind.`,
		Args: one("execution"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if vocabulary != client.VocabularyExecution && vocabulary != client.VocabularyFlow {
				return fmt.Errorf("--vocabulary %q is not known; use %s or %s", vocabulary, client.VocabularyExecution, client.VocabularyFlow)
			}
			if vocabulary == client.VocabularyFlow && !asJSON {
				return errors.New("--vocabulary flow can only be shown with --json")
			}
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				return console.Watch(ctx, terminal(cmd), c, args[0], after, vocabulary, asJSON)
			})
		},
	}
	cmd.Flags().StringVar(&after, "after", "", "begin after this event, such as 17 or 17.2")
	cmd.Flags().StringVar(&vocabulary, "vocabulary", client.VocabularyExecution, "with --json: the words events are told in, execution or flow")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the events, one JSON object per line, then the result")
	return cmd
}

func newExecutionsLogs(at *connectFlags) *cobra.Command {
	var q client.LogQuery
	var show listing
	cmd := &cobra.Command{
		Use: "logs EXECUTION", Short: "Show the lines that nodes wrote",
		Args: one("execution"),
		RunE: func(cmd *cobra.Command, args []string) error {
			q.Level = strings.ToUpper(q.Level)
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				return console.Logs(ctx, terminal(cmd), c, &show.Listing, args[0], q)
			})
		},
	}
	show.addListingFlags(cmd, false)
	cmd.Flags().StringVar(&q.Level, "level", "", "only this level and above: DEBUG, INFO, WARN or ERROR")
	cmd.Flags().StringVar(&q.NodeID, "node", "", "only lines of this node")
	cmd.Flags().StringVar(&q.ActivationID, "activation", "", "only lines of this activation")
	cmd.Flags().Int64Var(&q.After, "after", 0, "begin after this line")
	cmd.Flags().IntVar(&q.Limit, "limit", 0, "show at most so many lines")
	return cmd
}

func newExecutionsContext(at *connectFlags) *cobra.Command {
	var scope string
	cmd := &cobra.Command{
		Use: "context EXECUTION", Short: "Show the data that nodes of an execution can read",
		Args: one("execution"),
	}
	cmd.Flags().StringVar(&scope, "scope", "", "as nodes of this scope see it, such as 'each[2]'")
	return shows(at, cmd, func(ctx context.Context, c *app.Connection, args []string) (api.Context, error) {
		return c.Context(ctx, args[0], scope)
	}, console.PrintContext)
}
