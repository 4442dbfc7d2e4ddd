package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"tandem/api"
	"tandem/app"
	"tandem/console"
	"tandem/console/table"
)

func newBudgets() *cobra.Command {
	var at connectFlags
	cmd := &cobra.Command{
		Use:     "budgets",
		Aliases: []string{"budget"},
		Short:   "See what models may spend, and raise it",
		Long: `Profiles may limit tokens and money per execution, per workflow and per day. When a limit is reached, executions
wait and one of them asks a person; raising the budget lets all of them go on.`,
		RunE: func(cmd *cobra.Command, args []string) error { return subcommand(cmd, args) },
	}
	at.addConnectFlags(cmd)
	cmd.AddCommand(newBudgetsList(&at), newBudgetsRaise(&at))
	return cmd
}

func newBudgetsList(at *connectFlags) *cobra.Command {
	var q api.BudgetQuery
	cmd := &cobra.Command{
		Use: "list", Short: "List budgets, what is spent of them and who waits", Args: cobra.NoArgs,
	}
	cmd.Flags().StringVar(&q.ProfileID, "profile", "", "only those of this profile")
	cmd.Flags().StringVar(&q.Per, "per", "", "only those per execution, workflow or day")
	cmd.Flags().BoolVar(&q.Waiting, "waiting", false, "only those that somebody waits for")
	cmd.Flags().IntVar(&q.Limit, "limit", 0, "how many executions and workflows to list per profile")
	return showsWide(at, cmd, func(ctx context.Context, c *app.Connection, _ []string) (api.Budgets, error) {
		return c.Client.Budgets(ctx, q)
	}, console.PrintBudgets)
}

func newBudgetsRaise(at *connectFlags) *cobra.Command {
	var request string
	var by float64
	cmd := &cobra.Command{
		Use: "raise BUDGET AMOUNT", Short: "Add to a budget and let everybody who waits for it go on",
		Long: `Raise adds tokens or, to a budget of money, units of the currency. "tandem budgets list" has the names. The
profile stays as it is: the next day, execution or workflow has its limit again.

Without a server nobody works on what is woken; "tandem run --resume" or the next server does.`,
		Example: "  tandem budgets raise main/day/2026-11-15 50000\n  tandem budgets raise main/workflow_cost/orders 2.50 --request-id 4711",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return errors.New("budgets raise needs a budget and an amount, such as: tandem budgets raise main/day/2026-11-15 50000")
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&request, "request-id", "", "raising twice with the same id raises once")
	cmd.PreRunE = func(_ *cobra.Command, args []string) (err error) {
		if by, err = strconv.ParseFloat(args[1], 64); err != nil || !(by > 0) {
			return console.Usage(fmt.Errorf("%q is not an amount; write a positive number", args[1]))
		}
		return nil
	}
	return shows(at, cmd, func(ctx context.Context, c *app.Connection, args []string) (api.Budget, error) {
		return c.Client.RaiseBudget(ctx, api.RaiseRequest{Budget: args[0], RaiseBy: by, RequestID: request})
	}, func(w *tabwriter.Writer, b api.Budget) {
		fmt.Fprintf(w, "%s: %s raised in all, %s remaining\n", table.OneLine(b.Budget), table.Amount(b.Raised), table.Amount(b.Remaining))
	})
}
