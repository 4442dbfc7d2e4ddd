package main

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"tandem/app"
	"tandem/client"
	"tandem/console"
	"tandem/console/table"
)

func newAgent() *cobra.Command {
	var at connectFlags
	cmd := &cobra.Command{
		Use:     "agent",
		Aliases: []string{"agents"},
		Short:   "Give goals to agents, which plan by themselves, and keep agents",
		Long: `An agent is given a goal and tools. It plans one step after the other, asks before it does something risky, asks
for what it lacks, tries another way when a step fails, and tells in the end what it has found out.

An agent names the profile of the model that plans and the tool servers whose tools it may use:
  {id: clerk, llm_profile: main, mcp_servers: [files], description: Looks after our files.}
"tandem profiles" keeps profiles, "tandem mcp servers" tool servers.

Every step is on disk before the next begins, as with any execution: "tandem executions" shows tasks and acts on them,
too.`,
		RunE: func(cmd *cobra.Command, args []string) error { return subcommand(cmd, args) },
	}
	at.add(cmd)
	cmd.AddCommand(newAgentRun(&at), newAgentList(&at), newAgentShow(&at), newAgentSet(&at), newAgentRemove(&at), newAgentTasks(&at))
	return cmd
}

func newAgentList(at *connectFlags) *cobra.Command {
	var show listing
	var q client.AgentQuery
	cmd := &cobra.Command{
		Use: "list", Short: "List agents", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := show.check(); err != nil {
				return err
			}
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				list, err := c.Agents(ctx, q)
				if err != nil {
					return err
				}
				return show.Show(cmd.OutOrStdout(), list, func(w *tabwriter.Writer) { console.PrintAgents(w, list, show.Output == "wide") })
			})
		},
	}
	show.add(cmd, true)
	pageFlags(cmd, &q.Page, &q.PageSize)
	return cmd
}

func newAgentShow(at *connectFlags) *cobra.Command {
	return &cobra.Command{
		Use: "show AGENT", Aliases: []string{"get"}, Short: "Show an agent as JSON, which set takes", Args: one("agent"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				a, err := c.Agent(ctx, args[0])
				if err != nil {
					return err
				}
				return table.JSON(cmd.OutOrStdout(), a)
			})
		},
	}
}

func newAgentSet(at *connectFlags) *cobra.Command {
	var show listing
	cmd := &cobra.Command{
		Use: "set FILE", Short: "Make or replace the agent in a file",
		Long: `Set keeps the agent in a file, YAML or JSON; "-" reads from standard input. The id is that in the file or,
without one, the file's name. What is there under the id becomes an older revision; tasks that were started stay with theirs.`,
		Example: "  tandem agent set clerk.yaml\n  echo '{id: clerk, llm_profile: main, mcp_servers: [files]}' | tandem agent set -",
		Args:    one("file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return at.with(cmd, true, func(ctx context.Context, c *app.Connection) error {
				a, err := c.SetAgent(ctx, args[0], cmd.InOrStdin())
				if err != nil {
					return err
				}
				return show.Show(cmd.OutOrStdout(), a, func(w *tabwriter.Writer) {
					fmt.Fprintf(w, "%s: kept, revision %d; try it with: tandem chat %s\n", a.ID, a.Revision, a.ID)
				})
			})
		},
	}
	show.add(cmd, false)
	return cmd
}

func newAgentRemove(at *connectFlags) *cobra.Command {
	return &cobra.Command{
		Use: "remove AGENT", Aliases: []string{"delete"}, Short: "Delete an agent", Args: one("agent"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				if err := c.DeleteAgent(ctx, args[0]); err != nil {
					return err
				}
				return console.Say(cmd.OutOrStdout(), "%s: deleted\n", args[0])
			})
		},
	}
}

func newAgentTasks(at *connectFlags) *cobra.Command {
	var show listing
	var q client.TaskQuery
	cmd := &cobra.Command{
		Use: "tasks AGENT", Short: "List the tasks of an agent, the newest first",
		Long: `Tasks are executions: "tandem executions get" shows one, with what it has done and said.`,
		Args: one("agent"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := show.check(); err != nil {
				return err
			}
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				list, err := c.Tasks(ctx, args[0], q)
				if err != nil {
					return err
				}
				return show.Show(cmd.OutOrStdout(), list, func(w *tabwriter.Writer) { console.PrintExecutions(w, list, show.Output == "wide") })
			})
		},
	}
	show.add(cmd, true)
	cmd.Flags().StringSliceVar(&q.Statuses, "status", nil, "only those with one of these statuses, separated by commas")
	cmd.Flags().StringVar(&q.ConversationID, "conversation", "", "only those of this conversation")
	pageFlags(cmd, &q.Page, &q.PageSize)
	return cmd
}
