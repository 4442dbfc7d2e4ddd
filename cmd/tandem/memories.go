package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"tandem/api"
	"tandem/app"
	"tandem/client"
	"tandem/console"
	"tandem/console/table"
)

func newMemories() *cobra.Command {
	var at connectFlags
	cmd := &cobra.Command{
		Use:     "memories",
		Aliases: []string{"memory"},
		Short:   "See what memory nodes remember, and make them forget",
		Long: `A memory belongs to one user: to a memory node, to a session, or to an execution. Everybody sees their own;
an admin sees all.`,
		RunE: func(cmd *cobra.Command, args []string) error { return subcommand(cmd, args) },
	}
	at.addConnectFlags(cmd)
	cmd.AddCommand(newMemoriesList(&at), newMemoriesShow(&at), newMemoriesForget(&at))
	return cmd
}

func newMemoriesList(at *connectFlags) *cobra.Command {
	var q client.MemoryQuery
	cmd := &cobra.Command{
		Use: "list", Short: "List memories, the last changed first", Args: cobra.NoArgs,
	}
	cmd.Flags().StringVar(&q.User, "user", "", "only those of this user")
	cmd.Flags().StringVar(&q.Kind, "kind", "", "only those of this kind, such as KEY_VALUE_STORE")
	cmd.Flags().StringVar(&q.Workflow, "workflow", "", "only those of this workflow")
	cmd.Flags().StringVar(&q.Node, "node", "", "only those of this node")
	cmd.Flags().StringVar(&q.Session, "session", "", "only those of this session")
	pageFlags(cmd, &q.Page, &q.PageSize)
	return showsWide(at, cmd, func(ctx context.Context, c *app.Connection, _ []string) (api.Memories, error) {
		return c.Memories(ctx, q)
	}, console.PrintMemories)
}

func newMemoriesShow(at *connectFlags) *cobra.Command {
	var sort string
	var page, size int
	cmd := &cobra.Command{
		Use: "show MEMORY", Short: "Show what a memory keeps, in the order in which it came", Args: one("memory"),
	}
	cmd.Flags().StringVar(&sort, "sort", "", "only records of this sort")
	pageFlags(cmd, &page, &size)
	return shows(at, cmd, func(ctx context.Context, c *app.Connection, args []string) (api.MemoryRecords, error) {
		return c.MemoryRecords(ctx, args[0], sort, page, size)
	}, console.PrintMemoryRecords)
}

func newMemoriesForget(at *connectFlags) *cobra.Command {
	var record string
	cmd := &cobra.Command{
		Use: "forget MEMORY", Short: "Forget all that a memory keeps, or one record of it",
		Example: "  tandem memories forget MEMORY\n  tandem memories forget MEMORY --record entry/colour",
		Args:    one("memory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			sort, id, ok := strings.Cut(record, "/")
			if record != "" && (!ok || sort == "" || id == "") {
				return console.Usage(fmt.Errorf("--record %q names no record; write it as SORT/ID, as \"tandem memories show\" does", record))
			}
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				what := args[0]
				var err error
				if record == "" {
					err = c.ForgetMemory(ctx, args[0])
				} else {
					what += " " + record
					err = c.DeleteMemoryRecord(ctx, args[0], sort, id)
				}
				if err != nil {
					return err
				}
				if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: forgotten\n", table.OneLine(what)); err != nil {
					return fmt.Errorf("write the answer: %w", err)
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&record, "record", "", "only this record, as SORT/ID")
	return cmd
}
