package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"tandem/api"
	"tandem/app"
	"tandem/console"
)

func newFreeze() *cobra.Command {
	var (
		at          connectFlags
		show        listing
		want        api.FreezeRequest
		out, format string
	)
	cmd := &cobra.Command{
		Use:   "freeze EXECUTION",
		Short: "Make a workflow of a task that an agent has done",
		Long: `Freeze makes a workflow of a task that has ended well: the tool calls that led to its answer, in order,
reading from each other and from the inputs what they read in the task. It runs on other inputs, and
without a model.

Values of which nobody knows where they came from stand in the workflow as they were; they are listed,
to be looked at before the workflow is used.

With --dry-run nothing is kept and the definition is printed.`,
		Example: "  tandem freeze exec_abc --id monthly-forecast\n  tandem freeze exec_abc --dry-run > forecast.yaml",
		Args:    one("execution"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains([]string{"yaml", "json"}, format) {
				return fmt.Errorf("--format %q is not known; use yaml or json", format)
			}
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				frozen, file, err := c.FreezeTask(ctx, args[0], want, format == "json")
				if err != nil {
					return err
				}
				if out != "" {
					if err := console.WriteOut(cmd.OutOrStdout(), out, file); err != nil {
						return err
					}
				}
				return console.PrintFrozen(terminal(cmd), &show.Listing, want, frozen, out, file)
			})
		},
	}
	at.addConnectFlags(cmd)
	show.addListingFlags(cmd, false)
	cmd.Flags().StringVar(&want.ID, "id", "", "the workflow's id; made from its name when empty")
	cmd.Flags().StringVar(&want.Name, "name", "", "the workflow's name; the task's when empty")
	cmd.Flags().BoolVar(&want.DryRun, "dry-run", false, "keep nothing and print the definition")
	cmd.Flags().StringVar(&out, "out", "", "write the definition to this file, too")
	cmd.Flags().StringVar(&format, "format", "yaml", "of the definition: yaml or json")
	return cmd
}
