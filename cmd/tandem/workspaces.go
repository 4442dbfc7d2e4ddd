package main

import (
	"context"
	"fmt"

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
	at.addConnectFlags(cmd)
	cmd.AddCommand(newWorkspacesList(&at), newWorkspacesAdd(&at), newWorkspacesRename(&at), newWorkspacesDelete(&at))
	return cmd
}

func newWorkspacesList(at *connectFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List workspaces: all of them for the admins of the first one, for others their own", Args: cobra.NoArgs,
	}
	return shows(at, cmd, func(ctx context.Context, c *app.Connection, _ []string) (api.Workspaces, error) {
		return c.Workspaces(ctx)
	}, console.PrintWorkspaces)
}

func newWorkspacesAdd(at *connectFlags) *cobra.Command {
	var r api.WorkspaceRequest
	cmd := &cobra.Command{
		Use: "add ID", Short: "Make a workspace with an admin, and show a token of theirs, once",
		Example: "  tandem workspaces add sales --name \"Sales\" --admin ann --email ann@example.com",
		Args:    one("id"),
	}
	cmd.Flags().StringVar(&r.Name, "name", "", "its name; by default the id")
	cmd.Flags().StringVar(&r.Admin.ID, "admin", "", "the id of its first user, who is an admin; by default admin")
	cmd.Flags().StringVar(&r.Admin.Name, "admin-name", "", "their name; by default the id")
	cmd.Flags().StringVar(&r.Admin.Email, "email", "", "their mail address")
	return keeps(at, cmd, func(ctx context.Context, c *app.Connection, args []string) (api.NewWorkspace, error) {
		r.ID = args[0]
		return c.CreateWorkspace(ctx, r)
	}, console.PrintNewWorkspace)
}

func newWorkspacesRename(at *connectFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "rename ID NAME", Short: "Give a workspace another name; its id stays", Example: "  tandem workspaces rename sales \"Sales and marketing\"",
		Args: cobra.ExactArgs(2),
	}
	return says(at, cmd, true, func(ctx context.Context, c *app.Connection, args []string) (string, error) {
		w, err := c.RenameWorkspace(ctx, args[0], args[1])
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("workspace %s is called %s", w.ID, table.OneLine(w.Name)), nil
	})
}

func newWorkspacesDelete(at *connectFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete ID", Short: "Delete a workspace that holds nothing any more",
		Long: `Delete a workspace that has no workflows, agents, executions, credentials, tool servers or memories any more. Its users,
tokens and settings go with it. Its audit log stays, and its id is never given again.`,
		Args: one("id"),
	}
	return says(at, cmd, true, func(ctx context.Context, c *app.Connection, args []string) (string, error) {
		if err := c.DeleteWorkspace(ctx, args[0]); err != nil {
			return "", err
		}
		return fmt.Sprintf("workspace %s is deleted", args[0]), nil
	})
}
