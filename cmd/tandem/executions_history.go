package main

import (
	"context"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"tandem/api"
	"tandem/app"
	"tandem/client"
	"tandem/console"
)

func newExecutionsHistory(at *connectFlags) *cobra.Command {
	var q client.HistoryQuery
	cmd := &cobra.Command{
		Use: "history EXECUTION", Short: "Tell what happened, in order, and who decided it",
		Long: `History tells each step with its status, input and output, its retries and what it cost; each question
with who was asked, what they were shown, who answered, when and by which means; and whatever operators
did, with their reasons. A fork begins with what it shares with its source, and executions that a node
has started are told below it.`,
		Example: "  tandem executions history exec_abc\n  tandem executions history exec_abc --json",
		Args:    one("execution"),
	}
	cmd.Flags().StringVar(&q.After, "after", "", "go on behind the part before, as its last line says")
	cmd.Flags().IntVar(&q.Limit, "limit", 0, "how many records; 100 if it is not said")
	return shows(at, cmd, func(ctx context.Context, c *app.Connection, args []string) (api.History, error) {
		return c.History(ctx, args[0], q)
	}, func(w *tabwriter.Writer, h api.History) { console.PrintHistory(w, "", &h) })
}
