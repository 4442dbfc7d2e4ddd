package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"tandem/api"
	"tandem/console"
	"tandem/templates"
	"tandem/text"
)

func newNew() *cobra.Command {
	var show listing
	var language string
	cmd := &cobra.Command{
		Use:   "new [TEMPLATE [FILE]]",
		Short: "Begin a workflow with a template, or list the templates",
		Long: `New writes a workflow to begin with into a file, and says what has to be made before it runs: credentials, model profiles, tool servers.
The file is called like the template, and must not exist yet; "-" writes to standard output. Without a template it lists them.`,
		Example: "  tandem new\n  tandem new issue_triage\n  tandem new issue_triage triage.yaml",
		Args:    cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := text.CheckLanguage(language); err != nil {
				return fmt.Errorf("--lang %w", err)
			}
			switch len(args) {
			case 0:
				list, err := templates.List()
				if err != nil {
					return failed(cmd, err)
				}
				return failed(cmd, show.Show(cmd.OutOrStdout(), api.WorkflowTemplates{Templates: list},
					func(w *tabwriter.Writer) { console.ListTemplates(w, list, language) }))
			case 1:
				args = append(args, "")
			}
			return failed(cmd, console.NewWorkflow(terminal(cmd), args[0], args[1]))
		},
	}
	show.addListingFlags(cmd, false)
	cmd.Flags().StringVar(&language, "lang", console.UserLanguage(), "the language of descriptions, en or zh")
	return cmd
}
