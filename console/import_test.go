package console

import (
	"bytes"
	"strings"
	"testing"

	"tandem/api"
)

// What an imported file calls its nodes cannot command the terminal that shows the report.
func TestImported_HostileNames(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	node := api.ImportedNode{Name: "a\x1b[2Jb\nc", Type: "t\x1b]0;x\a", Fidelity: "missing", Notes: []string{"n\x1b[31m"}}
	if err := printImported(&Terminal{Out: &out}, api.ImportedFile{Name: "f", Workflows: []api.ImportedWorkflow{{Nodes: []api.ImportedNode{node}}}}); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(out.String(), "\x1b\a") || !strings.Contains(out.String(), "missing") || strings.Count(out.String(), "\n") != 3 {
		t.Errorf("it shows %q", out.String())
	}
}

// A workflow that was not kept says why.
func TestImported_NotKept(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := printImported(&Terminal{Out: &out}, api.ImportedFile{Name: "f", System: "n8n", Workflows: []api.ImportedWorkflow{{Valid: true, Error: "let an admin\nimport it"}}}); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.HasPrefix(got, "f (n8n): not kept: let an admin import it; of 0 nodes") {
		t.Errorf("it shows %q", got)
	}
}
