package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"tandem/api"
	"tandem/app"
	"tandem/console"
	"tandem/console/table"
	"tandem/node"
	"tandem/text"
)

func newNodes() *cobra.Command {
	var at connectFlags
	var show listing
	var language string
	cmd := &cobra.Command{
		Use:   "nodes [KIND]",
		Short: "List the kinds of nodes that can be run, or explain one",
		Long: `Nodes lists the kinds of nodes that can be run, by family. With a kind it shows what the kind is
configured with, what goes in and comes out, what must be there, what repeating it means, and a
node to copy with its input and output.

Without --server it tells what this program can run.`,
		Example: "  tandem nodes\n  tandem nodes FLOW.FOR_EACH\n  tandem nodes --lang zh",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := text.CheckLanguage(language); err != nil {
				return fmt.Errorf("--lang %w", err)
			}
			if len(args) == 0 {
				list, err := at.kinds(cmd)
				if err != nil {
					return err
				}
				return failed(cmd, show.Show(cmd.OutOrStdout(), list,
					func(w *tabwriter.Writer) { console.PrintKinds(w, list.NodeKinds, language) }))
			}
			k, err := at.kind(cmd, strings.ToUpper(args[0]))
			if err != nil {
				return err
			}
			if show.JSON {
				return failed(cmd, table.JSON(cmd.OutOrStdout(), k))
			}
			return failed(cmd, console.PrintKind(cmd.OutOrStdout(), k, language))
		},
	}
	at.addConnectFlags(cmd)
	show.addListingFlags(cmd, false)
	cmd.Flags().StringVar(&language, "lang", console.UserLanguage(), "the language of titles and descriptions, en or zh")
	return cmd
}

// kinds lists the kinds of a server or of this program, which needs no data directory for it.
func (f *connectFlags) kinds(cmd *cobra.Command) (list api.NodeKinds, err error) {
	if f.server == "" {
		return api.NodeKinds{NodeKinds: app.NodeKinds(), CommonFields: node.CommonSchema()}, nil
	}
	err = f.with(cmd, false, func(ctx context.Context, c *app.Connection) (err error) {
		list, err = c.NodeKinds(ctx)
		return err
	})
	return list, err
}

func (f *connectFlags) kind(cmd *cobra.Command, name string) (k api.NodeKind, err error) {
	if f.server == "" {
		k, err = app.NodeKind(name)
		return k, failed(cmd, err)
	}
	err = f.with(cmd, false, func(ctx context.Context, c *app.Connection) (err error) {
		k, err = c.NodeKind(ctx, name)
		return err
	})
	return k, err
}
