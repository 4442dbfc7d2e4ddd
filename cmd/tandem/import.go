package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"tandem/app"
	"tandem/console"
)

func newImport() *cobra.Command {
	var at connectFlags
	var report string
	var dry bool
	cmd := &cobra.Command{
		Use: "import FILE...", Short: "Make workflows of files of n8n, Dify and older systems",
		Long: `Import makes a workflow of each file: exports of n8n, applications of Dify, flows of steps, and older workflow files. Each is kept as a new workflow.

The report says of every node what became of it: kept, approximated (and what is different), or missing: a run that reaches it fails and says why.
Secrets that stood in a file become credentials. A file that cannot be imported is told of; the others are kept. Exit status 1 then.`,
		Example: "  tandem import shop.json\n  tandem import --dry-run --report json flows/*.yml",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("import needs at least one file, or - for standard input")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, files []string) error {
			if report != "text" && report != "json" {
				return console.Usage(fmt.Errorf("--report %q is not known; use text or json", report))
			}
			return at.with(cmd, true, func(ctx context.Context, c *app.Connection) error {
				return console.ImportFiles(ctx, terminal(cmd), c, files, dry, report == "json")
			})
		},
	}
	at.addConnectFlags(cmd)
	cmd.Flags().StringVar(&report, "report", "text", "how the report is written: text or json")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only report what would become of the files; with --report json also the workflows")
	return cmd
}
