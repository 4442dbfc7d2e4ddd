package main

import (
	"context"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"tandem/api"
	"tandem/app"
	"tandem/client"
	"tandem/console"
	"tandem/store"
)

func newInbox() *cobra.Command {
	var at connectFlags
	var show listing
	var q client.InteractionQuery
	var all bool
	cmd := &cobra.Command{
		Use:   "inbox",
		Short: "See the questions that wait for you, and answer them",
		Long: `Inbox lists what executions ask you and wait for, the most urgent first. On a terminal it then lets you
pick a question and asks for the answer; elsewhere "tandem inbox answer", "tandem approve" and "tandem reject" give it. Of an id
as many characters are enough as make it unique.

With --server (or TANDEM_SERVER) it asks a server; without one it works on the data directory: through the server that has it open,
or by itself. An execution that was answered while no server runs goes on with "tandem run --resume" or with the next server.`,
		Example: "  tandem inbox\n  tandem inbox --all --status pending,timeout\n  tandem inbox show 3f2a\n  tandem inbox answer 3f2a --set amount=120 --set currency=EUR --note 'as agreed'",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return subcommand(cmd, args)
			}
			if err := show.check(); err != nil {
				return err
			}
			q.Mine, q.Family = !all && q.ExecutionID == "", true
			switch {
			case len(q.Statuses) == 0:
				q.Statuses = []string{string(store.InteractionPending)}
			case slices.Contains(q.Statuses, "all"):
				q.Statuses = nil
			}
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				return console.BrowseInbox(ctx, terminal(cmd), c, &show.Listing, q)
			})
		},
	}
	at.addConnectFlags(cmd)
	show.addListingFlags(cmd, true)
	cmd.Flags().BoolVar(&all, "all", false, "everybody's questions, not only yours")
	cmd.Flags().StringVar(&q.ExecutionID, "execution", "", "only those of this execution and of those it started, whoever is asked")
	cmd.Flags().StringSliceVar(&q.Statuses, "status", nil, "only those with one of these statuses, separated by commas: pending (the default), completed, timeout, cancelled, error, or all")
	cmd.Flags().StringVar(&q.Purpose, "purpose", "", "only those of this purpose, such as human_node or tool_approval")
	pageFlags(cmd, &q.Page, &q.PageSize)
	cmd.AddCommand(
		newInboxShow(&at), newInboxAnswer(&at), newInboxDelegate(&at), newInboxCancel(&at), newInboxRemind(&at), newInboxLink(&at),
		newInboxOverride(&at), newInboxOverrule(&at), newInboxWatch(&at),
	)
	return cmd
}

func newInboxShow(at *connectFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "show QUESTION", Short: "Show a question with its replies and messages", Args: one("question"),
	}
	return shows(at, cmd, func(ctx context.Context, c *app.Connection, args []string) (api.InteractionDetail, error) {
		return console.FindInteraction(ctx, c, args[0])
	}, func(w *tabwriter.Writer, d api.InteractionDetail) { console.PrintInteraction(w, &d, time.Now()) })
}
