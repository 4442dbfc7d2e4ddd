package console

import (
	"bufio"
	"fmt"
	"io"

	"tandem/app"
	"tandem/console/table"
	"tandem/payload"
	"tandem/workflow"
)

// ValidateFiles says everything that is wrong with workflow files.
func ValidateFiles(tty *Terminal, files []string, asJSON bool) error {
	var reports []app.Report
	for _, file := range files {
		reports = append(reports, app.ValidateFile(file, tty.In))
	}
	out := bufio.NewWriter(tty.Out)
	if asJSON {
		if err := printReportsJSON(out, reports); err != nil {
			return Problem(err)
		}
	} else {
		printReports(tty, out, reports)
	}
	// A bufio.Writer keeps the first error for Flush, so nothing before it needs a check.
	if err := out.Flush(); err != nil {
		return Problem(fmt.Errorf("write the report: %w", err))
	}
	for _, r := range reports {
		if workflow.HasErrors(r.Problems) {
			return ErrReported
		}
	}
	return nil
}

// DrawFile draws a workflow file as a Mermaid diagram. What is wrong with it goes to the output for errors.
func DrawFile(tty *Terminal, file string) error {
	drawing, report := app.DrawFile(file, tty.In)
	PrintProblems(tty, report)
	if drawing == "" {
		return ErrReported
	}
	if _, err := fmt.Fprint(tty.Out, drawing); err != nil {
		return Problem(fmt.Errorf("write the drawing: %w", err))
	}
	return nil
}

// PrintProblems says what is wrong with a file, on the output for errors.
func PrintProblems(tty *Terminal, r app.Report) { printProblems(tty, tty.Err, r) }

func printReportsJSON(w io.Writer, reports []app.Report) error {
	out, err := payload.EncodeIndented(reports)
	if err != nil {
		return err
	}
	_, err = w.Write(out)
	return err
}

// printReports writes one line per problem and a summary, as compilers do, so that editors can jump to the places.
func printReports(tty *Terminal, w io.Writer, reports []app.Report) {
	failures, warnings := 0, 0
	for _, r := range reports {
		e, n := r.Count()
		failures, warnings = failures+e, warnings+n
		printProblems(tty, w, r)
	}
	switch {
	case failures+warnings == 0:
		fmt.Fprintf(w, "%s valid\n", table.Count(len(reports), "workflow is", "workflows are"))
	default:
		fmt.Fprintf(w, "%s, %s in %s\n", table.Count(failures, "error", "errors"), table.Count(warnings, "warning", "warnings"),
			table.Count(len(reports), "file", "files"))
	}
}

func printProblems(tty *Terminal, w io.Writer, r app.Report) {
	for _, p := range r.Problems {
		place := r.File
		if p.Line > 0 {
			place = fmt.Sprintf("%s:%d:%d", r.File, p.Line, p.Column)
		}
		fmt.Fprintf(w, "%s: %s: %s [%s]\n", place, p.Severity, tty.Words(p.Says().In(UserLanguage())), p.Code)
	}
}
