package main

import (
	"context"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"tandem/api"
	"tandem/app"
	"tandem/console"
)

func newWorkspaces() *cobra.Command {
	var at connectFlags
	cmd := &cobra.Command{
		Use: "workspaces", Aliases: []string{"workspace"}, Short: "Keep the workspaces of the installation: list, add",
		Long: `A workspace is a tenant: its users, workflows, executions, files and secrets are its own, and no other workspace sees
them. An installation begins with one, called default. The admins of that one make others.`,
		RunE: func(cmd *cobra.Command, args []string) error { return subcommand(cmd, args) },
	}
	at.add(cmd)
	cmd.AddCommand(newWorkspacesList(&at), newWorkspacesAdd(&at))
	return cmd
}

func newWorkspacesList(at *connectFlags) *cobra.Command {
	var show listing
	cmd := &cobra.Command{
		Use: "list", Short: "List workspaces: all of them for the admins of the first one, for others their own", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				list, err := c.Workspaces(ctx)
				if err != nil {
					return err
				}
				return show.Show(cmd.OutOrStdout(), list, func(w *tabwriter.Writer) { console.PrintWorkspaces(w, list) })
			})
		},
	}
	show.add(cmd, false)
	return cmd
}

func newWorkspacesAdd(at *connectFlags) *cobra.Command {
	var show listing
	var r api.WorkspaceRequest
	cmd := &cobra.Command{
		Use: "add ID", Short: "Make a workspace with an admin, and show a token of theirs, once",
		Example: "  tandem workspaces add sales --name \"Sales\" --admin ann --email ann@example.com",
		Args:    one("id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.ID = args[0]
			return at.with(cmd, true, func(ctx context.Context, c *app.Connection) error {
				made, err := c.CreateWorkspace(ctx, r)
				if err != nil {
					return err
				}
				return show.Show(cmd.OutOrStdout(), made, func(w *tabwriter.Writer) { console.PrintNewWorkspace(w, made) })
			})
		},
	}
	show.add(cmd, false)
	cmd.Flags().StringVar(&r.Name, "name", "", "its name; by default the id")
	cmd.Flags().StringVar(&r.Admin.ID, "admin", "", "the id of its first user, who is an admin; by default admin")
	cmd.Flags().StringVar(&r.Admin.Name, "admin-name", "", "their name; by default the id")
	cmd.Flags().StringVar(&r.Admin.Email, "email", "", "their mail address")
	return cmd
}
