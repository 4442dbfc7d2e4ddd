package main

import (
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tandem/app"
	"tandem/store/sqlite/datadir"
	"tandem/workflow"
)

// previous makes the database of a directory one of an earlier version, as the program of then would have left it.
func previous(t *testing.T, dir string, version int64) {
	t.Helper()
	path := filepath.Join(dir, datadir.DatabaseFile)
	if err := os.Rename(path, path+"-new"); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "tandem.mark")); err != nil {
		t.Fatal(err)
	}
	err := datadir.Fill(t.Context(), path, version, func(tx *sql.Tx) error { return copyShared(t, tx, path+"-new") })
	if err = errors.Join(err, os.Remove(path+"-new")); err != nil {
		t.Fatal(err)
	}
}

// copyShared fills the tables of a database with the columns that they have in common with another.
func copyShared(t *testing.T, tx *sql.Tx, from string) error {
	t.Helper()
	source, err := sql.Open("sqlite", from)
	if err != nil {
		return err
	}
	rows, err := tx.QueryContext(t.Context(), `SELECT t.name, group_concat('"' || c.name || '"', ', ') FROM pragma_table_list t, pragma_table_xinfo(t.name) c
		WHERE t.schema = 'main' AND t.type IN ('table', 'shadow') AND t.name NOT LIKE 'sqlite%' AND t.name <> 'goose_db_version' AND c.hidden = 0 GROUP BY 1`)
	if err != nil {
		return err
	}
	tables := map[string]string{}
	for rows.Next() {
		var name, columns string
		if err := rows.Scan(&name, &columns); err != nil {
			return err
		}
		tables[name] = columns
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	for name, columns := range tables {
		if _, err := tx.ExecContext(t.Context(), "DELETE FROM "+name); err != nil {
			return err
		}
		if err := copyRows(t, tx, source, name, columns); err != nil {
			return fmt.Errorf("copy table %s: %w", name, err)
		}
	}
	return source.Close()
}

func copyRows(t *testing.T, tx *sql.Tx, from *sql.DB, table, columns string) error {
	t.Helper()
	rows, err := from.QueryContext(t.Context(), "SELECT "+columns+" FROM "+table)
	if err != nil {
		return err
	}
	count := strings.Count(columns, `", "`) + 1
	row, into := make([]any, count), make([]any, count)
	for i := range row {
		into[i] = &row[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		for i, v := range row {
			if b, ok := v.([]byte); ok && b == nil {
				row[i] = []byte{} // nil would be NULL
			}
		}
		if _, err := tx.ExecContext(t.Context(), "INSERT INTO "+table+" ("+columns+") VALUES (?"+strings.Repeat(", ?", count-1)+")", row...); err != nil {
			return err
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}

// spoil makes every revision one whose kinds are known and that cannot be compiled: a node is connected with one that is not there.
func spoil(t *testing.T, dir string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, datadir.DatabaseFile))
	if err != nil {
		t.Fatal(err)
	}
	var text []byte
	err = db.QueryRowContext(t.Context(), "SELECT r.definition FROM revisions r JOIN executions e ON e.workflow_id = r.workflow_id AND e.revision = r.number WHERE e.final = 0").Scan(&text)
	if err != nil {
		t.Fatal(err)
	}
	source, problems := workflow.Parse(text, workflow.Options{Kinds: app.Kinds(), Pinned: true})
	if source == nil {
		t.Fatal(problems)
	}
	d := source.Definition
	d.Connections[0].ToNode = "nowhere"
	hash := workflow.Hash(d)
	_, err = db.ExecContext(t.Context(), "UPDATE revisions SET definition = ?1, hash = ?2", workflow.Encode(d), hash)
	if err == nil {
		_, err = db.ExecContext(t.Context(), "UPDATE executions SET revision_hash = ?", hash)
	}
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// An execution waits for a person in a database of the previous version. The report says before the upgrade what becomes of it, and changes
// nothing; the upgrade keeps a copy, and the execution goes on.
func TestUpgradeReport_Parked(t *testing.T) {
	t.Parallel()
	const token = "a-configured-token"
	dir := filepath.Join(t.TempDir(), "data")
	first := exec.CommandContext(t.Context(), "tandem", "serve", "--addr", "127.0.0.1:0", "--data", dir, "--workflows", filepath.Join("..", "..", "examples"))
	first, said := serving(t, first, "TANDEM_TOKEN="+token)
	server := printed(t, said, `http://127\.0\.0\.1:[0-9]+`)
	var e struct {
		ID string `json:"execution_id"`
	}
	if status := asked(t, http.MethodPost, server+"/api/v1/workflows/human_approval/execute", token, `{"inputs":{"item":"desk","amount":900}}`, &e); status >= 300 {
		t.Fatalf("start: status %d", status)
	}
	stop(t, first, syscall.SIGTERM)
	previous(t, dir, 25)

	before, err := os.ReadFile(filepath.Join(dir, datadir.DatabaseFile))
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "tandem", "upgrade-report", "--data", dir).CombinedOutput()
	for _, want := range []string{"version 25; the next start copies it and brings it to version", "00026_shared_fields", "1 have not ended", "revision 1, rules 1: 1 executions", e.ID, "they go on with revision 1, which is the newest"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	if err != nil || t.Failed() {
		t.Errorf("the report: %v\n%s", err, out)
	}
	after, err := os.ReadFile(filepath.Join(dir, datadir.DatabaseFile))
	if err != nil || string(after) != string(before) {
		t.Errorf("the report has changed the database: %v", err)
	}

	refused := filepath.Join(t.TempDir(), "data")
	if err := os.CopyFS(refused, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	spoil(t, refused)
	cmd := exec.CommandContext(t.Context(), "tandem", "upgrade-report", "--data", refused)
	out, err = cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "this program cannot run what they are pinned to") {
		t.Errorf("of a revision that is refused it says %v\n%s", err, out)
	}

	second, said := serve(t, dir, "TANDEM_TOKEN="+token)
	if _, err := os.Stat(filepath.Join(dir, "tandem.db.version-25")); err != nil {
		t.Errorf("no copy is kept: %v", err)
	}
	answered(t, printed(t, said, `http://127\.0\.0\.1:[0-9]+`), token, e.ID)
	stop(t, second, syscall.SIGTERM)
}
