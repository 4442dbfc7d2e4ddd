package main

import (
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"tandem/console"
)

func newValidate() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "validate FILE...",
		Short: "Say everything that is wrong with workflow files",
		Long: `Validate reads workflow files, YAML or JSON, and lists every problem at once, each with its
place in the file, what to do about it, and a stable code in brackets.

Python and JavaScript in a workflow are read too, where they would run; the first time
that takes some seconds, since an interpreter has to be compiled.

Errors must be mended before a workflow can be saved; warnings need not.
"-" reads the workflow from standard input.

Exit status: 0 without errors (warnings are allowed), 1 with errors or when a file
cannot be read, 2 when the command is called wrongly.`,
		Example: "  tandem validate order.yaml\n  tandem validate --json examples/*.yaml\n  cat order.json | tandem validate -",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("validate needs at least one workflow file, or - for standard input")
			}
			if i := slices.Index(args, "-"); i >= 0 && slices.Contains(args[i+1:], "-") {
				return errors.New("standard input can be read only once; name - once")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, files []string) error {
			return console.ValidateFiles(terminal(cmd), files, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print an array with one object per file: file, valid, problems")
	return cmd
}
