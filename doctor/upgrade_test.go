package doctor_test

import (
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"tandem/doctor"
	"tandem/fault"
	"tandem/revisions"
	"tandem/store"
	"tandem/store/postgres"
	"tandem/store/postgres/postgrestest"
	"tandem/store/sqlite/datadir"
)

// oldDatabase is a data directory of an earlier version with executions that have not ended.
func oldDatabase(t *testing.T, version int64, rows ...string) string {
	t.Helper()
	dir := t.TempDir()
	err := datadir.Fill(t.Context(), filepath.Join(dir, datadir.DatabaseFile), version, func(tx *sql.Tx) error {
		for _, text := range rows {
			if _, err := tx.ExecContext(t.Context(), text); err != nil {
				return fmt.Errorf("%s: %w", text, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func oldExecution(n int, workflow string, revision int, hash, status string) string {
	final := 0
	if status == "SUCCESS" {
		final = 1
	}
	return fmt.Sprintf(`INSERT INTO executions (n, workspace_id, id, workflow_id, workflow_name, workflow_version, revision, revision_hash, status, final, priority, parent, forked_from,
		trigger_type, user_id, started, ended, duration_ms, credits, error, created, updated) VALUES (%d, 'ws', 'e%[1]d', '%s', 'named %[2]s', '', %d, '%s', '%s', %d, 3, '', '', 'API', 'ann', 1, 0, 0, 0, '', 1, 1)`,
		n, workflow, revision, hash, status, final)
}

func oldRow(table string, n int, fact, body string) string {
	return fmt.Sprintf(`INSERT INTO %s (place, workspace_id, time, body) VALUES (%d, 'ws', 1, CAST('{"facts":[{"type":"%s","fact":%s}],"values":[]}' AS BLOB))`, table, n<<32|1, fact, body)
}

func oldRevision(workflow string, number int, hash, kind string) string {
	typ, subtype, _ := strings.Cut(kind, ".")
	return fmt.Sprintf(`INSERT INTO revisions (workspace_id, workflow_id, number, hash, definition, created_by, created)
		VALUES ('ws', '%s', %d, '%s', CAST('{"nodes":[{"id":"a","type":"%s","subtype":"%s"}]}' AS BLOB), '', 1)`, workflow, number, hash, typ, subtype)
}

func oldWorkflow(id string, revision int) string {
	return fmt.Sprintf(`INSERT INTO workflows (workspace_id, id, name, description, icon_url, tags, version, parent, search, revision, revision_hash, deployment_status, deployment_error, created_by, updated_by,
		created, updated, deleted, last_status, last_execution, total_runs, ended_runs, total_duration_ms, total_credits, last_success)
		VALUES ('ws', '%s', '', '', '', '', '', '', '', %d, '', '', '', '', '', 1, 1, 0, '', 0, 0, 0, 0, 0, 0)`, id, revision)
}

// onlyIf is a program that has one kind of node.
func onlyIf(r store.Revision, _ revisions.TemplateSet, _ string) error {
	if strings.Contains(string(r.Definition), `"subtype"`) && !strings.Contains(string(r.Definition), `"IF"`) {
		return fault.Newf(fault.Unsupported, "revision %d is refused", r.Number)
	}
	return nil
}

// Before an upgrade it is said of every execution that has not ended what it follows, and what keeps it from going on. The database is as
// before.
func TestReportUpgrade(t *testing.T) {
	t.Parallel()
	const created = "execution_created"
	dir := oldDatabase(t, 25,
		oldWorkflow("good", 3), oldRevision("good", 1, "h1", "FLOW.IF"), oldRevision("good", 3, "h3", "FLOW.IF"),
		oldWorkflow("gone", 1), oldRevision("gone", 1, "g1", "ACTION.DROPPED"),
		oldExecution(1, "good", 3, "h3", "RUNNING"), oldRow("journal", 1, created, `{"semantics":1,"execution":"e1"}`),
		oldExecution(2, "good", 3, "h3", "WAITING_FOR_HUMAN"), oldRow("journal_in_order", 2, created, `{"semantics":1,"execution":"e2"}`),
		oldExecution(3, "good", 1, "h1", "PAUSED"), oldRow("journal", 3, created, `{"semantics":1,"execution":"e3"}`),
		oldExecution(4, "good", 3, "h3", "RUNNING"), oldRow("journal", 4, created, `{"semantics":99,"execution":"e4"}`),
		oldExecution(5, "gone", 1, "g1", "RUNNING"), oldRow("journal", 5, created, `{"semantics":1,"execution":"e5"}`),
		oldExecution(6, "good", 2, "h2", "RUNNING"), oldRow("journal", 6, created, `{"semantics":1,"execution":"e6"}`),
		oldExecution(7, "good", 3, "h3", "SUCCESS"),
		oldExecution(8, "drafted", 0, "d1", "RUNNING"), oldRow("journal", 8, "execution_forked", `{"semantics":1,"execution":"e8","source":"e7","activation":"a","state":{}}`),
		`INSERT INTO drafts (workspace_id, execution_id, workflow_id, hash, definition, created_by, token_made_by, created) VALUES ('ws', 'e8', 'drafted', 'd1', CAST('{"nodes":[]}' AS BLOB), '', '', 1)`,
	)
	before, err := os.ReadFile(filepath.Join(dir, datadir.DatabaseFile))
	if err != nil {
		t.Fatal(err)
	}
	u, err := doctor.ReportUpgrade(t.Context(), dir, "", onlyIf)
	if err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(filepath.Join(dir, datadir.DatabaseFile))
	if err != nil || string(after) != string(before) {
		t.Errorf("the database has changed: %v", err)
	}
	if u.OK || u.Version != 25 || u.Known < 26 || u.Changes[0] != "00026_shared_fields" || u.Executions != 7 || u.Rules != 1 {
		t.Errorf("it says %+v", u)
	}
	var got []string
	for _, g := range u.Groups {
		count, err := json.Marshal(g.Executions)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %d of %d, rules %d, %s: %s; %s", g.Workflow, g.Revision, g.Newest, g.Rules, count, strings.Join(g.Stays, ", "), strings.Join(g.Problems, ", ")))
	}
	want := []string{
		`drafted 0 of 0, rules 1, {"RUNNING":1}: they go on by rules 1 of the engine, as new ones do, they go on with the definition they were started with; `,
		`gone 1 of 1, rules 1, {"RUNNING":1}: they go on by rules 1 of the engine, as new ones do; ` +
			`this program cannot run what they are pinned to: revision 1 is refused`,
		`good 1 of 3, rules 1, {"PAUSED":1}: they go on by rules 1 of the engine, as new ones do, they go on with revision 1; the newest is 3; `,
		`good 2 of 3, rules 1, {"RUNNING":1}: they go on by rules 1 of the engine, as new ones do; the revision that they are pinned to is not there`,
		`good 3 of 3, rules 1, {"RUNNING":1,"WAITING_FOR_HUMAN":1}: they go on by rules 1 of the engine, as new ones do, they go on with revision 3, which is the newest; `,
		`good 3 of 3, rules 99, {"RUNNING":1}: they go on with revision 3, which is the newest; they follow rules 99 of the engine and this program knows rules up to 1; use the newer program`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("groups:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Executions of a revision that names node templates are pinned to both: the revision is found, and the templates have to be there as well.
func TestReportUpgrade_Templates(t *testing.T) {
	t.Parallel()
	const templates = `{"t":{"id":"t","kind":"FLOW.IF"}}`
	set := fmt.Sprintf("%x", sha256.Sum256([]byte(templates)))
	row := func(n int) string {
		return oldRow("journal", n, "execution_created", fmt.Sprintf(`{"semantics":1,"execution":"e%d"}`, n))
	}
	dir := oldDatabase(t, 25,
		oldWorkflow("w", 1), oldRevision("w", 1, "h1", "FLOW.IF"),
		oldExecution(1, "w", 1, "h1+"+set, "RUNNING"), row(1),
		oldExecution(2, "w", 1, "h1+"+strings.Repeat("0", 64), "RUNNING"), row(2),
		oldExecution(3, "w", 1, "h1+set", "RUNNING"), row(3),
		oldExecution(4, "draft", 0, "d1+"+set, "RUNNING"), row(4),
		`INSERT INTO drafts (workspace_id, execution_id, workflow_id, hash, definition, created_by, token_made_by, created) VALUES ('ws', 'e4', 'draft', 'd1', CAST('{"nodes":[]}' AS BLOB), '', '', 1)`,
	)
	file := filepath.Join(dir, datadir.BlobDir, "ws", set[:2], set[2:4], set)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(templates), 0o600)); err != nil {
		t.Fatal(err)
	}
	prepared := map[string]int{}
	u, err := doctor.ReportUpgrade(t.Context(), dir, "", func(_ store.Revision, set revisions.TemplateSet, pinned string) error {
		prepared[pinned] = len(set)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range u.Groups {
		good := g.One == "e1" || g.One == "e4"
		if good && len(g.Problems) > 0 || !good && (len(g.Problems) != 1 || !strings.Contains(g.Problems[0], "node templates that they were started with cannot be read")) {
			t.Errorf("of %s it says %q", g.Hash, g.Problems)
		}
	}
	if len(u.Groups) != 4 || u.OK || len(prepared) != 2 || prepared["h1+"+set] != 1 || prepared["d1+"+set] != 1 {
		t.Errorf("it says %+v of %v", u, prepared)
	}
}

// Databases that this program cannot read are refused with what to do.
func TestReportUpgrade_Refused(t *testing.T) {
	t.Parallel()
	if _, err := doctor.ReportUpgrade(t.Context(), t.TempDir(), "", nil); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("of nothing: %v", err)
	}
	if _, err := doctor.ReportUpgrade(t.Context(), oldDatabase(t, 2), "", nil); fault.CodeOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "copy the data directory") {
		t.Errorf("of a very old one: %v", err)
	}
	newer := oldDatabase(t, 26, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (999999, 1)")
	if _, err := doctor.ReportUpgrade(t.Context(), newer, "", nil); fault.CodeOf(err) != fault.Conflict || !strings.Contains(err.Error(), "it was written by a newer one; run that") {
		t.Errorf("of a newer one: %v", err)
	}
}

// The same is said of a database of PostgreSQL, with templates that are rows of it, in one piece or in many. It stays as it is, and may be
// owned meanwhile.
func TestReportUpgrade_PostgreSQL(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	address := server.Database(t)
	if _, err := doctor.ReportUpgrade(t.Context(), "", address, nil); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("of nothing: %v", err)
	}
	const templates = `{"t":{"id":"t","kind":"FLOW.IF"}}`
	set := fmt.Sprintf("%x", sha256.Sum256([]byte(templates)))
	row := func(n, rules int) string {
		return fmt.Sprintf(`INSERT INTO journal (execution, seq, workspace_id, time, body) VALUES (%d, 1, 'ws', 1, CAST('{"facts":[{"type":"execution_created","fact":{"semantics":%d,"execution":"e%[1]d"}}],"values":[]}' AS bytea))`, n, rules)
	}
	newest, err := postgres.Newest()
	if err != nil {
		t.Fatal(err)
	}
	err = postgres.Fill(t.Context(), address, newest-1, func(tx pgx.Tx) error {
		for _, text := range []string{
			"INSERT INTO epochs (epoch) VALUES (1)",
			oldWorkflow("w", 2), oldRevision("w", 1, "h1", "FLOW.IF"), oldRevision("w", 2, "h2", "ACTION.DROPPED"),
			oldExecution(1, "w", 1, "h1", "RUNNING"), row(1, 1),
			oldExecution(2, "w", 2, "h2", "PAUSED"), row(2, 1),
			oldExecution(3, "w", 1, "h1+"+set, "RUNNING"), row(3, 1),
			oldExecution(4, "draft", 0, "d1+"+strings.Repeat("0", 64), "RUNNING"), row(4, 1),
			oldExecution(5, "w", 1, "h1", "RUNNING"), row(5, 99),
			oldExecution(6, "w", 1, "h1", "SUCCESS"),
			`INSERT INTO drafts (workspace_id, execution_id, workflow_id, hash, definition, created_by, token_made_by, created) VALUES ('ws', 'e4', 'draft', 'd1', CAST('{"nodes":[]}' AS BLOB), '', '', 1)`,
			fmt.Sprintf(`INSERT INTO blobs (workspace_id, hash, size, put, pieces) VALUES ('ws', '%s', %d, 1, 7)`, set, len(templates)),
			`INSERT INTO blob_pieces (pieces, part, body) VALUES (7, 2, '` + templates[5:] + `'), (7, 1, '` + templates[:5] + `')`,
		} {
			if _, err := tx.Exec(t.Context(), strings.ReplaceAll(text, "AS BLOB", "AS bytea")); err != nil {
				return fmt.Errorf("%s: %w", text, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	u, err := doctor.ReportUpgrade(t.Context(), "", address, onlyIf)
	if err != nil || u.OK || u.Copied || u.Version != newest-1 || u.Known != newest || len(u.Changes) != 1 || u.Executions != 5 || len(u.Groups) != 5 {
		t.Errorf("it says %+v, %v", u, err)
	}
	for _, g := range u.Groups {
		want := map[string]string{"e2": "revision 2 is refused", "e4": "templates that they were started with cannot be read", "e5": "they follow rules 99"}[g.One]
		if got := strings.Join(g.Problems, ", "); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("of %s it says %q", g.One, got)
		}
	}
	again, err := doctor.ReportUpgrade(t.Context(), "", address, onlyIf)
	if err != nil || again.Version != newest-1 {
		t.Errorf("the second time it says version %d, %v", again.Version, err)
	}
}
