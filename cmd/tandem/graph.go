package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"tandem/console"
)

func newGraph() *cobra.Command {
	return &cobra.Command{
		Use:   "graph FILE",
		Short: "Draw a workflow as a Mermaid diagram",
		Long: `Graph writes a Mermaid flowchart of a workflow to standard output. Paste it into Markdown, where
many hosts draw it, or into any Mermaid editor. "-" reads the workflow from standard input.

What is wrong with the workflow is written to standard error.

Exit status: 0 when it was drawn, 1 when it cannot be drawn, 2 when the command is called wrongly.`,
		Example: "  tandem graph order.yaml > order.mmd",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("graph draws one workflow file, or - for standard input; %d were named", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return console.DrawFile(terminal(cmd), args[0])
		},
	}
}
