package main

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"tandem/api"
	"tandem/app"
	"tandem/console"
	"tandem/console/table"
)

func newWorkspaces() *cobra.Command {
	var at connectFlags
	cmd := &cobra.Command{
		Use: "workspaces", Aliases: []string{"workspace"}, Short: "Keep the workspaces of the installation: list, add, rename, delete",
		Long: `A workspace is a tenant: its users, workflows, executions, files and secrets are its own, and no other workspace sees
them. An installation begins with one, called default. The admins of that one make others.`,
		RunE: func(cmd *cobra.Command, args []string) error { return subcommand(cmd, args) },
	}
	at.add(cmd)
	cmd.AddCommand(newWorkspacesList(&at), newWorkspacesAdd(&at), newWorkspacesRename(&at), newWorkspacesDelete(&at))
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

func newWorkspacesRename(at *connectFlags) *cobra.Command {
	return &cobra.Command{
		Use: "rename ID NAME", Short: "Give a workspace another name; its id stays", Example: "  tandem workspaces rename sales \"Sales and marketing\"",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return at.with(cmd, true, func(ctx context.Context, c *app.Connection) error {
				w, err := c.RenameWorkspace(ctx, args[0], args[1])
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "workspace %s is called %s\n", w.ID, table.OneLine(w.Name))
				return err
			})
		},
	}
}

func newWorkspacesDelete(at *connectFlags) *cobra.Command {
	return &cobra.Command{
		Use: "delete ID", Short: "Delete a workspace that holds nothing any more",
		Long: `Delete a workspace that has no workflows, agents, executions, credentials, tool servers or memories any more. Its users,
tokens and settings go with it. Its audit log stays, and its id is never given again.`,
		Args: one("id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return at.with(cmd, true, func(ctx context.Context, c *app.Connection) error {
				if err := c.DeleteWorkspace(ctx, args[0]); err != nil {
					return err
				}
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "workspace %s is deleted\n", args[0])
				return err
			})
		},
	}
}
