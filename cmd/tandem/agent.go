package main

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"tandem/api"
	"tandem/app"
	"tandem/client"
	"tandem/console"
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
	at.addConnectFlags(cmd)
	cmd.AddCommand(newAgentRun(&at), newAgentList(&at), newAgentShow(&at), newAgentSet(&at), newAgentRemove(&at), newAgentTasks(&at))
	return cmd
}

func newAgentList(at *connectFlags) *cobra.Command {
	var q client.AgentQuery
	cmd := &cobra.Command{
		Use: "list", Short: "List agents", Args: cobra.NoArgs,
	}
	pageFlags(cmd, &q.Page, &q.PageSize)
	return showsWide(at, cmd, func(ctx context.Context, c *app.Connection, _ []string) (api.Agents, error) {
		return c.Agents(ctx, q)
	}, console.PrintAgents)
}

func newAgentShow(at *connectFlags) *cobra.Command {
	cmd := &cobra.Command{Use: "show AGENT", Aliases: []string{"get"}, Short: "Show an agent as JSON, which set takes", Args: one("agent")}
	return prints(at, cmd, func(ctx context.Context, c *app.Connection, args []string) (any, error) {
		return c.Agent(ctx, args[0])
	})
}

func newAgentSet(at *connectFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "set FILE", Short: "Make or replace the agent in a file",
		Long: `Set keeps the agent in a file, YAML or JSON; "-" reads from standard input. The id is that in the file or,
without one, the file's name. What is there under the id becomes an older revision; tasks that were started stay with theirs.`,
		Example: "  tandem agent set clerk.yaml\n  echo '{id: clerk, llm_profile: main, mcp_servers: [files]}' | tandem agent set -",
		Args:    one("file"),
	}
	return keeps(at, cmd, func(ctx context.Context, c *app.Connection, args []string) (api.Agent, error) {
		return c.SetAgent(ctx, args[0], cmd.InOrStdin())
	}, func(w *tabwriter.Writer, a api.Agent) {
		fmt.Fprintf(w, "%s: kept, revision %d; try it with: tandem chat %s\n", a.ID, a.Revision, a.ID)
	})
}

func newAgentRemove(at *connectFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "remove AGENT", Aliases: []string{"delete"}, Short: "Delete an agent", Args: one("agent"),
	}
	return says(at, cmd, false, func(ctx context.Context, c *app.Connection, args []string) (string, error) {
		if err := c.DeleteAgent(ctx, args[0]); err != nil {
			return "", err
		}
		return fmt.Sprintf("%s: deleted", args[0]), nil
	})
}

func newAgentTasks(at *connectFlags) *cobra.Command {
	var q client.TaskQuery
	cmd := &cobra.Command{
		Use: "tasks AGENT", Short: "List the tasks of an agent, the newest first",
		Long: `Tasks are executions: "tandem executions get" shows one, with what it has done and said.`,
		Args: one("agent"),
	}
	cmd.Flags().StringSliceVar(&q.Statuses, "status", nil, "only those with one of these statuses, separated by commas")
	cmd.Flags().StringVar(&q.ConversationID, "conversation", "", "only those of this conversation")
	pageFlags(cmd, &q.Page, &q.PageSize)
	return showsWide(at, cmd, func(ctx context.Context, c *app.Connection, args []string) (api.Executions, error) {
		return c.Tasks(ctx, args[0], q)
	}, console.PrintExecutions)
}
