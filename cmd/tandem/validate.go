package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"tandem/app"
	"tandem/payload"
	"tandem/workflow"
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
			var reports []app.Report
			for _, file := range files {
				reports = append(reports, app.ValidateFile(file, cmd.InOrStdin()))
			}
			out := bufio.NewWriter(cmd.OutOrStdout())
			if asJSON {
				if err := printJSON(out, reports); err != nil {
					return problemError{err}
				}
			} else {
				printReports(cmd, out, reports)
			}
			// A bufio.Writer keeps the first error for Flush, so nothing before it needs a check.
			if err := out.Flush(); err != nil {
				return problemError{fmt.Errorf("write the report: %w", err)}
			}
			for _, r := range reports {
				if workflow.HasErrors(r.Problems) {
					return errReported
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print an array with one object per file: file, valid, problems")
	return cmd
}

func printJSON(w io.Writer, reports []app.Report) error {
	out, err := payload.EncodeIndented(reports)
	if err != nil {
		return err
	}
	_, err = w.Write(out)
	return err
}

// printReports writes one line per problem and a summary, as compilers do, so that editors can jump to the places.
func printReports(cmd *cobra.Command, w io.Writer, reports []app.Report) {
	failures, warnings := 0, 0
	for _, r := range reports {
		e, n := r.Count()
		failures, warnings = failures+e, warnings+n
		printProblems(cmd, w, r)
	}
	switch {
	case failures+warnings == 0:
		fmt.Fprintf(w, "%s valid\n", count(len(reports), "workflow is", "workflows are"))
	default:
		fmt.Fprintf(w, "%s, %s in %s\n", count(failures, "error", "errors"), count(warnings, "warning", "warnings"), count(len(reports), "file", "files"))
	}
}

func printProblems(cmd *cobra.Command, w io.Writer, r app.Report) {
	for _, p := range r.Problems {
		place := r.File
		if p.Line > 0 {
			place = fmt.Sprintf("%s:%d:%d", r.File, p.Line, p.Column)
		}
		fmt.Fprintf(w, "%s: %s: %s [%s]\n", place, p.Severity, inCommands(cmd, p.Message), p.Code)
	}
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
