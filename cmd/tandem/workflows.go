package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"tandem/api"
	"tandem/app"
	"tandem/client"
	"tandem/console"
)

func newWorkflows() *cobra.Command {
	var at connectFlags
	cmd := &cobra.Command{
		Use:     "workflows",
		Aliases: []string{"workflow"},
		Short:   "Keep workflows and their revisions",
		Long: `Workflows are kept with all their revisions, in the data directory or at a server (--server).
Executions stay on the revision they were started with.`,
		RunE: func(cmd *cobra.Command, args []string) error { return subcommand(cmd, args) },
	}
	at.addConnectFlags(cmd)
	cmd.AddCommand(newApply(&at), newWorkflowsList(&at), newWorkflowsGet(&at), newExport(&at), newStart(&at), newWorkflowsTest(&at),
		newDeploy(&at, "deploy", "Make a workflow's triggers work", (*client.Client).Deploy),
		newDeploy(&at, "undeploy", "Take a workflow's triggers out of service", (*client.Client).Undeploy), newDelete(&at))
	return cmd
}

func newApply(at *connectFlags) *cobra.Command {
	var show listing
	cmd := &cobra.Command{
		Use: "apply FILE...", Short: "Keep the workflows in files, as new ones or as new revisions",
		Long: `Apply keeps the definition in each file. The id is metadata.id or, without one, the file's name. Content that
is already the newest revision makes no new one, unless its text has other comments. "-" reads from standard input.

A file with errors is not kept; the others are. Exit status 1 then.`,
		Example: "  tandem workflows apply order.yaml\n  tandem workflows apply --server http://127.0.0.1:8080 flows/*.yaml",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("workflows apply needs at least one workflow file, or - for standard input")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, files []string) error {
			return at.with(cmd, true, func(ctx context.Context, c *app.Connection) error {
				return console.ApplyFiles(ctx, terminal(cmd), c, &show.Listing, files)
			})
		},
	}
	show.addListingFlags(cmd, false)
	return cmd
}

func newWorkflowsList(at *connectFlags) *cobra.Command {
	var q client.WorkflowQuery
	cmd := &cobra.Command{
		Use: "list", Short: "List workflows, the last saved first", Args: cobra.NoArgs,
	}
	cmd.Flags().StringVarP(&q.Text, "query", "q", "", "only those with this in their id, name or description")
	cmd.Flags().StringSliceVar(&q.Tags, "tag", nil, "only those with all of these tags")
	cmd.Flags().StringVar(&q.DeploymentStatus, "deployment", "", "only those with this deployment status: draft, pending, deployed, failed or undeployed")
	pageFlags(cmd, &q.Page, &q.PageSize)
	return showsWide(at, cmd, func(ctx context.Context, c *app.Connection, _ []string) (api.Workflows, error) {
		return c.Workflows(ctx, q)
	}, console.PrintWorkflows)
}

func newWorkflowsGet(at *connectFlags) *cobra.Command {
	var revision int64
	cmd := &cobra.Command{
		Use: "get WORKFLOW", Short: "Show a workflow", Args: one("workflow"),
	}
	cmd.Flags().Int64Var(&revision, "revision", 0, "this revision instead of the newest")
	return shows(at, cmd, func(ctx context.Context, c *app.Connection, args []string) (api.Workflow, error) {
		return c.Workflow(ctx, args[0], revision)
	}, console.PrintWorkflow)
}

func newExport(at *connectFlags) *cobra.Command {
	var revision int64
	var format string
	cmd := &cobra.Command{
		Use: "export WORKFLOW", Short: "Write a workflow's definition as a file", Args: one("workflow"),
		Example: "  tandem workflows export order > order.yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains([]string{"yaml", "json", "source"}, format) {
				return fmt.Errorf("--format %q is not known; use yaml, json or source", format)
			}
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				var data []byte
				var err error
				if format == "source" {
					data, err = c.Source(ctx, args[0], revision)
				} else {
					data, err = c.Export(ctx, args[0], revision, format == "json")
				}
				if err != nil {
					return err
				}
				if _, err := cmd.OutOrStdout().Write(data); err != nil {
					return fmt.Errorf("write the definition: %w", err)
				}
				return nil
			})
		},
	}
	cmd.Flags().Int64Var(&revision, "revision", 0, "this revision instead of the newest")
	cmd.Flags().StringVar(&format, "format", "yaml", "yaml or json, or source: the text as its author wrote it, with its comments")
	return cmd
}

func newStart(at *connectFlags) *cobra.Command {
	var in inputFlags
	var show listing
	var key string
	var watching bool
	var revision int64
	cmd := &cobra.Command{
		Use: "start WORKFLOW", Short: "Start an execution of a workflow that is kept",
		Long: `Start begins an execution and prints its id; with --watch it follows it to its end. Without a server
the execution is in this process, so it is always followed.`,
		Args: one("workflow"),
		RunE: func(cmd *cobra.Command, args []string) error {
			inputs, err := in.readInputs()
			if err != nil {
				return err
			}
			return at.driving(cmd, false, func(ctx context.Context, c *app.Connection) error {
				return console.StartWorkflow(ctx, terminal(cmd), c, &show.Listing, console.Start{
					Workflow: args[0], Request: api.ExecuteRequest{Inputs: inputs, Revision: revision}, Key: key, Watch: watching,
					Dir: at.dir, Again: at.database.again(),
				})
			})
		},
	}
	at.addAllow(cmd)
	at.addGrace(cmd)
	at.addDebug(cmd)
	in.addInputFlags(cmd)
	show.addListingFlags(cmd, false)
	cmd.Flags().StringVar(&key, "idempotency-key", "", "starting twice with the same key starts one execution")
	cmd.Flags().BoolVar(&watching, "watch", false, "follow it to its end")
	cmd.Flags().Int64Var(&revision, "revision", 0, "this revision instead of the newest")
	return cmd
}

func newWorkflowsTest(at *connectFlags) *cobra.Command {
	var asJSON bool
	var revision int64
	cmd := &cobra.Command{
		Use: "test WORKFLOW", Short: "Run the tests of a workflow that is kept",
		Long: `Test runs the tests that stand in the definition, one after the other. Nothing with effects runs. "tandem test FILE"
runs those of a file.

Exit status: 0 when nothing differs, 1 when something does, 2 when a test cannot be run.`,
		Args: one("workflow"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return at.driving(cmd, false, func(ctx context.Context, c *app.Connection) error {
				return console.TestKept(ctx, c, terminal(cmd), args[0], revision, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per test")
	cmd.Flags().Int64Var(&revision, "revision", 0, "this revision instead of the newest")
	return cmd
}

func newDeploy(at *connectFlags, name, short string,
	do func(*client.Client, context.Context, string) (api.WorkflowMetadata, error)) *cobra.Command {
	var show listing
	cmd := &cobra.Command{
		Use: name + " WORKFLOW", Short: short, Args: one("workflow"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				m, err := do(c.Client, ctx, args[0])
				if err != nil {
					return err
				}
				for _, p := range m.Warnings {
					fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s: %s [%s]\n", p.Path, p.Severity, p.Message, p.Code)
				}
				return show.Show(cmd.OutOrStdout(), m, func(w *tabwriter.Writer) {
					fmt.Fprintf(w, "%s: %s, revision %d\n", m.ID, m.DeploymentStatus, m.Revision)
				})
			})
		},
	}
	show.addListingFlags(cmd, false)
	return cmd
}

func newDelete(at *connectFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete WORKFLOW", Short: "Delete a workflow that has no unfinished executions", Args: one("workflow"),
	}
	return says(at, cmd, false, func(ctx context.Context, c *app.Connection, args []string) (string, error) {
		if err := c.DeleteWorkflow(ctx, args[0]); err != nil {
			return "", err
		}
		return fmt.Sprintf("%s: deleted", args[0]), nil
	})
}
