package console

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"text/tabwriter"

	"tandem/api"
	"tandem/console/table"
	"tandem/templates"
)

// ListTemplates writes the templates, one a line.
func ListTemplates(w *tabwriter.Writer, list []api.WorkflowTemplate, language string) {
	table.Row(w, "NAME", "TITLE", "WHAT IT DOES")
	for _, t := range list {
		table.Row(w, t.Name, t.Title.In(language), t.Description.In(language))
	}
}

// NewWorkflow writes a template to a file that does not exist yet, or to standard output for "-", and says what has to be made before it
// runs.
func NewWorkflow(tty *Terminal, name, file string) error {
	t, text, err := templates.Read(name)
	if err != nil {
		return err
	}
	if file == "-" {
		if _, err := tty.Out.Write(text); err != nil {
			return fmt.Errorf("write the template: %w", err)
		}
		return nil
	}
	if file == "" {
		file = name + ".yaml"
	}
	if err := writeNew(file, text); err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s is written. Its first lines say what to change.\n", file)
	for _, n := range t.Needs {
		switch n.Sort {
		case "credential":
			fmt.Fprintf(&b, "It needs the credential %q: tandem credentials set %s --type %s\n", n.Name, n.Name, n.Type)
		case "profile":
			fmt.Fprintf(&b, "It needs the model profile %q: tandem profiles set FILE\n", n.Name)
		default:
			fmt.Fprintf(&b, "It needs the tool server %q: tandem mcp servers set FILE\n", n.Name)
		}
	}
	fmt.Fprintf(&b, "Then: tandem workflows apply %s\n", file)
	if _, err := fmt.Fprint(tty.Out, b.String()); err != nil {
		return fmt.Errorf("write what is needed: %w", err)
	}
	return nil
}

// writeNew writes a file that must not exist.
func writeNew(file string, text []byte) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return Problem(fmt.Errorf("%s exists already; name another file, or - for standard output", file))
	}
	if err != nil {
		return Problem(fmt.Errorf("write the template: %w", err))
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return Problem(fmt.Errorf("write the template: %w", err))
	}
	return nil
}
