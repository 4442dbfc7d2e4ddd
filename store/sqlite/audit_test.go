package sqlite_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"tandem/identity"
	"tandem/store"
	"tandem/store/sqlite"
	"tandem/store/sqlite/datadir"
	"tandem/store/sqlite/sqlitetest"
)

// TestAudit_IsAppendOnly writes to the database through the store and beside it: the database itself refuses to change or remove an entry,
// and the connection of the store to replace one.
func TestAudit_IsAppendOnly(t *testing.T) {
	t.Parallel()
	dir := sqlitetest.Dir(t)
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
	check(t, err)
	p := identity.Principal{Workspace: "ws", User: "ann"}
	for _, action := range []string{"first", "second"} {
		check(t, db.Stores().Audit.Enter(t.Context(), p, store.AuditEntry{Time: 5, Action: action}))
	}
	// What goes through the store cannot replace an entry either.
	for _, text := range []string{
		`REPLACE INTO audit SELECT 1, workspace_id, time, 'eve', means, address, agent, action, object, object_id, outcome, detail FROM audit WHERE seq = 2`,
		`INSERT OR REPLACE INTO audit SELECT 1, workspace_id, time, 'eve', means, address, agent, action, object, object_id, outcome, detail FROM audit WHERE seq = 2`,
	} {
		if err := db.Exec(t.Context(), nil, text); err == nil {
			t.Errorf("%s: it was taken", text)
		}
	}
	check(t, db.Close())
	raw, err := sql.Open("sqlite", filepath.Join(dir, datadir.DatabaseFile))
	check(t, err)
	defer raw.Close()
	for _, text := range []string{
		`UPDATE audit SET user_id = 'eve' WHERE seq = 1`,
		`DELETE FROM audit WHERE seq = 1`,
		`DELETE FROM audit`,
		`INSERT INTO audit SELECT 1, workspace_id, time, 'eve', means, address, agent, action, object, object_id, outcome, detail FROM audit WHERE seq = 2 ON CONFLICT DO UPDATE SET user_id = 'eve'`,
	} {
		if _, err := raw.ExecContext(t.Context(), text); err == nil || !strings.Contains(err.Error(), "audit log") {
			t.Errorf("%s: %v; want that the log refuses it", text, err)
		}
	}
	var n int
	check(t, raw.QueryRowContext(t.Context(), `SELECT count(*) FROM audit WHERE user_id = ''`).Scan(&n))
	if n != 2 {
		t.Errorf("%d of 2 entries are as they were", n)
	}
}
