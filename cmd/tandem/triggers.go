package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"tandem/api"
	"tandem/app"
	"tandem/client"
	"tandem/console"
	"tandem/console/table"
)

func newTriggers() *cobra.Command {
	var at connectFlags
	cmd := &cobra.Command{
		Use:     "triggers",
		Aliases: []string{"trigger"},
		Short:   "See what starts deployed workflows, and what has come to it",
		Long: `A workflow that is deployed starts by itself: when a request comes to its address, at the times of its schedule, or
when something arrives that it listens for, such as mail. Each of these is a delivery, which is kept with what became
of it.`,
		RunE: func(cmd *cobra.Command, args []string) error { return subcommand(cmd, args) },
	}
	at.addConnectFlags(cmd)
	cmd.AddCommand(newTriggersList(&at), newTriggersNext(&at), newTriggersHistory(&at), newTriggersReplay(&at))
	return cmd
}

func newTriggersList(at *connectFlags) *cobra.Command {
	var q client.TriggerQuery
	cmd := &cobra.Command{
		Use: "list [WORKFLOW]", Short: "List triggers with their addresses, states and next times",
		Long: `The state of a trigger that listens, to a mailbox for example, is "starting", "listening" or "failing" with the
reason and the time of the next try. The address is where senders send to: put that of a GitHub trigger into the
webhook settings of the repository.`,
		Args: cobra.MaximumNArgs(1),
	}
	cmd.Flags().StringVar(&q.Kind, "kind", "", "only those of this kind, such as TRIGGER.CRON")
	cmd.Flags().StringVar(&q.State, "state", "", "only those in this state: pending, active or failed")
	cmd.Flags().IntVar(&q.Page, "page", 0, "which page")
	return shows(at, cmd, func(ctx context.Context, c *app.Connection, args []string) (api.Triggers, error) {
		q.WorkflowID = optional(args)
		return c.Client.Triggers(ctx, q)
	}, console.PrintTriggers)
}

func newTriggersNext(at *connectFlags) *cobra.Command {
	q := client.TriggerQuery{State: "active"}
	cmd := &cobra.Command{
		Use: "next [WORKFLOW]", Short: "Show when schedules start something next", Args: cobra.MaximumNArgs(1),
	}
	cmd.Flags().IntVar(&q.NextRuns, "count", 5, "how many times to show of each")
	return shows(at, cmd, func(ctx context.Context, c *app.Connection, args []string) (api.Triggers, error) {
		q.WorkflowID = optional(args)
		return console.Schedules(ctx, c.Client, q)
	}, console.PrintNextRuns)
}

func newTriggersHistory(at *connectFlags) *cobra.Command {
	var q client.DeliveryQuery
	cmd := &cobra.Command{
		Use: "history [WORKFLOW]", Short: "List what has come to triggers and what became of it, the newest first", Args: cobra.MaximumNArgs(1),
	}
	cmd.Flags().StringVar(&q.NodeID, "node", "", "only those of this trigger")
	cmd.Flags().StringSliceVar(&q.Decisions, "decision", nil, "only those that became accepted, started, ignored, refused or failed")
	cmd.Flags().StringVar(&q.Key, "key", "", "only those with this id of the sender")
	cmd.Flags().IntVar(&q.Page, "page", 0, "which page")
	cmd.Flags().IntVar(&q.PageSize, "page-size", 0, "how many to a page")
	return shows(at, cmd, func(ctx context.Context, c *app.Connection, args []string) (api.Deliveries, error) {
		q.WorkflowID = optional(args)
		return c.Client.Deliveries(ctx, q)
	}, console.PrintDeliveries)
}

func newTriggersReplay(at *connectFlags) *cobra.Command {
	var key string
	cmd := &cobra.Command{
		Use: "replay DELIVERY", Short: "Start an execution once more for a stored delivery",
		Long: `Replay starts an execution with what a delivery has brought, at the trigger as it is deployed now. "tandem triggers
history" has the ids.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("triggers replay needs a delivery, such as: tandem triggers replay dlv_4711")
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&key, "request-id", "", "replaying twice with the same id starts once")
	return shows(at, cmd, func(ctx context.Context, c *app.Connection, args []string) (api.Delivery, error) {
		return c.Client.Replay(ctx, args[0], key)
	}, func(w *tabwriter.Writer, d api.Delivery) {
		fmt.Fprintf(w, "%s: %s, execution %s\n", table.OneLine(d.ID), d.Decision, table.OneLine(d.ExecutionID))
	})
}

// optional is the one argument that a command may have; empty: it has none.
func optional(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}
