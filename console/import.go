package console

import (
	"context"
	"fmt"
	"strings"

	"tandem/api"
	"tandem/app"
	"tandem/console/table"
	"tandem/validation"
)

// ImportFiles makes workflows of files of other systems, and tells what became of them.
func ImportFiles(ctx context.Context, tty *Terminal, c *app.Connection, files []string, dry, asJSON bool) error {
	all, wrong := api.ImportReport{Files: []api.ImportedFile{}}, false
	for _, file := range files {
		content, problem := validation.ReadFile(file, tty.In)
		if problem != nil {
			return Problem(fmt.Errorf("%s: %s", file, problem.Message))
		}
		got, err := c.Import(ctx, api.ImportRequest{Files: []api.ImportFile{{Name: file, Content: string(content)}}, DryRun: dry})
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for _, f := range got.Files {
			wrong = wrong || f.Error != ""
			for _, w := range f.Workflows {
				wrong = wrong || !w.Valid || w.Error != ""
			}
			if !asJSON {
				if err := printImported(tty, f); err != nil {
					return fmt.Errorf("write the report: %w", err)
				}
			}
		}
		all.Files = append(all.Files, got.Files...)
	}
	if asJSON {
		if err := table.JSON(tty.Out, all); err != nil {
			return err
		}
	}
	if wrong {
		return ErrReported
	}
	return nil
}

// printImported tells what became of a file: a line for the whole, one for each node that is not what it was, and what is to be done.
func printImported(tty *Terminal, f api.ImportedFile) error {
	var b strings.Builder
	if f.Error != "" {
		fmt.Fprintf(&b, "%s: not imported: %s\n", f.Name, table.OneLine(f.Error))
	}
	for _, w := range f.Workflows {
		what := "not kept"
		if w.WorkflowID != "" {
			what = fmt.Sprintf("workflow %s, revision %d", w.WorkflowID, w.Revision)
		}
		if w.Error != "" {
			what += ": " + table.OneLine(w.Error)
		}
		fmt.Fprintf(&b, "%s (%s): %s; of %s %d kept, %d approximated, %d missing\n", f.Name, f.System, what, table.Count(len(w.Nodes), "node", "nodes"), w.Kept, w.Approximated, w.Missing)
		for _, n := range w.Nodes {
			if n.Fidelity == "kept" && len(n.Secrets) == 0 {
				continue
			}
			fmt.Fprintf(&b, "  %-12s %s (%s)\n", n.Fidelity, table.OneLine(n.Name), table.OneLine(n.Type))
			for _, note := range n.Notes {
				fmt.Fprintf(&b, "    %s\n", table.OneLine(note))
			}
			for _, secret := range n.Secrets {
				fmt.Fprintf(&b, "    a secret was moved to the credential %q\n", secret)
			}
		}
		for _, note := range w.Notes {
			fmt.Fprintf(&b, "  %s\n", table.OneLine(note))
		}
		for _, one := range w.Credentials {
			if !one.Created && !one.Known {
				fmt.Fprintf(&b, "  to be made: the credential %q of the type %s\n", one.Name, one.Type)
			}
		}
		for _, name := range w.Profiles {
			fmt.Fprintf(&b, "  it needs the model profile %q\n", name)
		}
		for _, p := range w.Problems {
			if p.Severity == "error" {
				fmt.Fprintf(&b, "  error: %s: %s\n", table.OneLine(p.Path), table.OneLine(p.Message))
			}
		}
	}
	_, err := fmt.Fprint(tty.Out, b.String())
	return err
}
