package main

import (
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"tandem/store/postgres/postgrestest"
	"tandem/store/sqlite/datadir"
)

const secretToken = "a-configured-token"

// pausing is a workflow that waits for a moment, and then is done.
const pausing = `
metadata: {id: pausing, name: pausing, description: d}
nodes:
  - {id: w, description: d, type: FLOW, subtype: WAIT, configurations: {wait_type: timer, for_seconds: 8}}
`

// begun starts a server with two executions: one asks a person, the other waits for its time.
func begun(t *testing.T, dir string, env ...string) (server *exec.Cmd, url string, ids []string) {
	t.Helper()
	flows := t.TempDir()
	example, err := os.ReadFile(filepath.Join("..", "..", "examples", "human_approval.yaml"))
	if err := errors.Join(err, os.WriteFile(filepath.Join(flows, "human_approval.yaml"), example, 0o600), os.WriteFile(filepath.Join(flows, "pausing.yaml"), []byte(pausing), 0o600)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "tandem", "serve", "--addr", "127.0.0.1:0", "--data", dir, "--workflows", flows)
	server, said := serving(t, cmd, append(env, "TANDEM_TOKEN="+secretToken)...)
	url = printed(t, said, `http://127\.0\.0\.1:[0-9]+`)
	for workflow, body := range map[string]string{"human_approval": `{"inputs":{"item":"desk","amount":900}}`, "pausing": `{}`} {
		var e struct {
			ID string `json:"execution_id"`
		}
		if status := asked(t, http.MethodPost, url+"/api/v1/workflows/"+workflow+"/execute", secretToken, body, &e); status >= 300 {
			t.Fatalf("start %s: status %d", workflow, status)
		}
		if workflow == "pausing" {
			ids = append(ids, e.ID)
		} else {
			ids = slices.Insert(ids, 0, e.ID)
		}
	}
	return server, url, ids
}

// finished answers the question of the first execution, and waits for the other.
func finished(t *testing.T, url string, ids []string) {
	t.Helper()
	answered(t, url, secretToken, ids[0])
	watch := exec.CommandContext(t.Context(), "tandem", "executions", "watch", ids[1], "--server", url)
	watch.Env = append(watch.Environ(), "TANDEM_TOKEN="+secretToken)
	if out, err := watch.CombinedOutput(); err != nil || !strings.Contains(string(out), "SUCCESS") {
		t.Errorf("the execution that waits for its time: %v\n%s", err, out)
	}
}

// runCommand runs a command and returns what it says. The password of the database is never in it.
func runCommand(t *testing.T, status int, address string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "tandem", args...)
	cmd.Env = append(cmd.Environ(), "TANDEM_DATABASE="+address)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != status || strings.Contains(string(out), "opensesame") {
		t.Fatalf("%q: %v\n%s", args, err, out)
	}
	return string(out)
}

// withPassword is an address with a password that nobody asks for.
func withPassword(address string) string {
	return strings.Replace(address, "tandem@", "tandem:opensesame@", 1)
}

// journals lists the rows of all journals of a database, as text.
func journals(t *testing.T, address string) (rows []string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	found, err := conn.Query(t.Context(), "SELECT execution || ' ' || seq || ' ' || time || ' ' || encode(body, 'hex') FROM journal ORDER BY execution, seq")
	if err == nil {
		rows, err = pgx.CollectRows(found, pgx.RowTo[string])
	}
	if err = errors.Join(err, conn.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	return rows
}

// The records of a server are moved to PostgreSQL while a question is open and a time is waited for. The journals are the same afterwards,
// the question is answered and both executions end there; the old database is not gone on with.
func TestMigrate(t *testing.T) {
	t.Parallel()
	address := withPassword(postgrestest.Start(t).Database(t))
	dir := filepath.Join(t.TempDir(), "data")
	server, _, ids := begun(t, dir)
	if said := runCommand(t, 1, address, "migrate", "--data", dir); !strings.Contains(said, "is in use by process") {
		t.Errorf("while a server runs it says %s", said)
	}
	if said := runCommand(t, 1, "", "migrate", "--data", dir); !strings.Contains(said, "--database") {
		t.Errorf("without a database it says %s", said)
	}
	stop(t, server, syscall.SIGTERM)
	var before []string
	err := datadir.Snapshot(t.Context(), dir, func(tx *sql.Tx, _ int64) error {
		rows, err := tx.QueryContext(t.Context(), `SELECT place >> 32, place & 4294967295, time, body FROM journal UNION ALL SELECT place >> 32, place & 4294967295, time, body FROM journal_in_order ORDER BY 1, 2`)
		if err != nil {
			return err
		}
		for rows.Next() {
			var n, seq, at int64
			var body []byte
			if err := rows.Scan(&n, &seq, &at, &body); err != nil {
				return err
			}
			before = append(before, fmt.Sprintf("%d %d %d %x", n, seq, at, body))
		}
		return errors.Join(rows.Err(), rows.Close())
	})
	if err != nil || len(before) < 4 {
		t.Fatalf("%d rows: %v", len(before), err)
	}
	said := runCommand(t, 0, address, "migrate", "--data", dir)
	for _, want := range []string{"2 executions", "tandem.db.moved", "go on with", "tandem serve --data " + dir} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
	if after := journals(t, address); !slices.Equal(after, before) {
		t.Errorf("the journals are\n%q\nand were\n%q", after, before)
	}
	if said := runCommand(t, 1, "", "serve", "--addr", "127.0.0.1:0", "--data", dir); !strings.Contains(said, "were moved to a database of PostgreSQL") || !strings.Contains(said, "--database") {
		t.Errorf("a server on the old database: %s", said)
	}
	second, url := serve(t, dir, "TANDEM_TOKEN="+secretToken, "TANDEM_DATABASE="+address)
	finished(t, printed(t, url, `http://127\.0\.0\.1:[0-9]+`), ids)
	stop(t, second, syscall.SIGTERM)
	if after := journals(t, address); len(after) <= len(before) || !slices.Equal(after[:1], before[:1]) {
		t.Errorf("%d rows after %d", len(after), len(before))
	}
}

// A backup of PostgreSQL is made while a server runs on it. A server on what is restored has everything and goes on; the report before an
// upgrade tells the same of both.
func TestBackup_PostgreSQL(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	address, copied := withPassword(server.Database(t)), withPassword(server.Database(t))
	dir, file, other := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "b"), filepath.Join(t.TempDir(), "new")
	first, _, ids := begun(t, dir, "TANDEM_DATABASE="+address)
	if said := runCommand(t, 0, address, "backup", file, "--data", dir); !strings.Contains(said, "of postgres") || !strings.Contains(said, "2 executions") {
		t.Errorf("it says %s", said)
	}
	if said := runCommand(t, 0, address, "upgrade-report", "--data", dir); !strings.Contains(said, "nothing is changed") || !strings.Contains(said, "1 questions are open") || !strings.Contains(said, "which is the newest") {
		t.Errorf("the report says %s", said)
	}
	stop(t, first, syscall.SIGTERM)
	if said := runCommand(t, 0, "", "restore", "--check", file); !strings.Contains(said, "2 executions") {
		t.Errorf("it says %s", said)
	}
	if said := runCommand(t, 1, address, "restore", file, "--data", other); !strings.Contains(said, "is not empty") || !strings.Contains(said, "CREATE DATABASE") {
		t.Errorf("into a database that is in use it says %s", said)
	}
	if said := runCommand(t, 0, copied, "restore", file, "--data", other); !strings.Contains(said, "into the database") {
		t.Errorf("it says %s", said)
	}
	runCommand(t, 0, copied, "upgrade-report", "--data", other)
	second, url := serve(t, other, "TANDEM_TOKEN="+secretToken, "TANDEM_DATABASE="+copied)
	finished(t, printed(t, url, `http://127\.0\.0\.1:[0-9]+`), ids)
	stop(t, second, syscall.SIGTERM)
}
