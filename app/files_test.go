package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tandem/engine"
	"tandem/store/sqlite/sqlitetest"
)

// TestInstance_Files runs the example through the whole engine, twice, and looks at the files it leaves.
func TestInstance_Files(t *testing.T) {
	t.Parallel()
	dir := sqlitetest.Dir(t)
	i, err := Open(t.Context(), Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, i)
	text, err := os.ReadFile(filepath.Join("..", "examples", "daily_report.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	i.saveText(t, strings.Replace(string(text), "  name: daily_report", "  id: daily_report\n  name: daily_report", 1))
	for range 2 {
		execution := i.startText(t, "daily_report", `{"day": "2030-01-31", "sales": [{"part": "bolt", "n": 3}]}`)
		i.ends(t, execution, engine.StatusSuccess)
		outputs, err := i.Outputs(t.Context(), user, execution)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(outputs["overview"]); !strings.Contains(got, `"path":"reports/2030-01-31.csv"`) {
			t.Errorf("got %s", got)
		}
	}
	workspace := filepath.Join(dir, "files", user.Workspace)
	if got, err := os.ReadFile(filepath.Join(workspace, "reports", "2030-01-31.csv")); err != nil || !strings.Contains(string(got), "bolt") {
		t.Errorf("the report is %q, %v", got, err)
	}
	if got, err := os.ReadFile(filepath.Join(workspace, "reports", "log.txt")); err != nil || strings.Count(string(got), "\n") != 2 {
		t.Errorf("the log is %q, %v", got, err)
	}
	if _, err := os.Stat(filepath.Join(workspace, "reports.zip")); err != nil {
		t.Error(err)
	}
	// Another way out of the workspace, by data.
	i.saveText(t, `
metadata: {id: escape, name: escape, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: read, description: d, type: ACTION, subtype: FILE_OPERATION, configurations: {operation: read, path: "{{start.outputs.path}}"}}
connections:
  - {from_node: start, to_node: read}
`)
	e := i.ends(t, i.startText(t, "escape", `{"path": "../../tandem.db"}`), engine.StatusError)
	if !strings.Contains(e.Error, "forbidden_path") && !strings.Contains(e.Error, "inside the workspace") {
		t.Errorf("got %v", e.Error)
	}
}
