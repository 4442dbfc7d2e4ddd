package sqlite_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tandem/identity"
	"tandem/store/sqlite"
	"tandem/store/sqlite/datadir"
	"tandem/store/sqlite/sqlitetest"
)

// marksIn counts a mark in the files of a database.
func marksIn(t *testing.T, dir, mark string) (n int) {
	t.Helper()
	for _, name := range []string{datadir.DatabaseFile, datadir.DatabaseFile + datadir.LogSuffix} {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		check(t, err)
		n += bytes.Count(raw, []byte(mark))
	}
	return n
}

// TestPages_MovedRows removes rows that SQLite has moved from page to page: copies of them stand in parts of pages that are not in use, and
// go. So does what stood in pages that are free and stay in the file. What is in use stays as it is.
func TestPages_MovedRows(t *testing.T) {
	t.Parallel()
	const mark = "CANARY9a1"
	dir := sqlitetest.Dir(t)
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
	check(t, err)
	dice := rand.New(rand.NewPCG(3, 4))
	for batch := range 60 {
		var statements []string
		for i := range 50 {
			word, size := "plain", 1+dice.IntN(20)
			if dice.IntN(3) == 0 {
				word = mark
			}
			if i == 0 {
				size = 1000 // in pages of its own
			}
			statements = append(statements, fmt.Sprintf("INSERT OR REPLACE INTO idempotency_keys VALUES ('ws', 'u', '%08d', '%s', 'e', %d)", dice.IntN(1e8), strings.Repeat(word+"-", size), batch))
		}
		check(t, db.Exec(t.Context(), nil, statements...))
	}
	check(t, db.Exec(t.Context(), nil, "DELETE FROM idempotency_keys WHERE request_hash LIKE '"+mark+"%'"))
	left, err := db.Rows(t.Context(), "idempotency_keys")
	check(t, err)
	if marksIn(t, dir, mark) == 0 {
		t.Error("nothing of the removed rows is left, so that nothing can be told")
	}
	check(t, db.Stores().Upkeep.Compact(t.Context(), identity.System(""), 1)) // free pages stay
	if n := marksIn(t, dir, mark); n > 0 {
		t.Errorf("the mark is there %d times", n)
	}
	before, err := db.Stores().Upkeep.Space(t.Context(), identity.System(""))
	if err != nil || before.Free == 0 || !before.Shrinks {
		t.Errorf("%+v, %v", before, err)
	}
	check(t, db.Stores().Upkeep.Compact(t.Context(), identity.System(""), 0))
	after, err := db.Stores().Upkeep.Space(t.Context(), identity.System(""))
	if err != nil || after.Free != 0 || after.Database >= before.Database || after.Log != 0 {
		t.Errorf("%+v became %+v, %v", before, after, err)
	}
	if n, err := db.Rows(t.Context(), "idempotency_keys WHERE request_hash LIKE 'plain-%'"); err != nil || n != left {
		t.Errorf("%d of %d rows are left, %v", n, left, err)
	}
	if problems, err := db.Check(t.Context()); err != nil || len(problems) != 1 || problems[0] != "ok" {
		t.Errorf("%q, %v", problems, err)
	}
	check(t, db.Exec(t.Context(), nil, "DELETE FROM idempotency_keys"))
	check(t, db.Close())
	sound(t, dir)
}

// TestPages_OlderDatabase can give back room after it was brought up to date, and has kept what was in it.
func TestPages_OlderDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	check(t, sqlite.MigrateTo(t.Context(), dir, 18))
	onFile(t, dir, "INSERT INTO workspaces (workspace_id, name, created) VALUES ('ws', 'ws', 1)")
	db := openDir(t, dir)
	space, err := db.Stores().Upkeep.Space(t.Context(), identity.System(""))
	if err != nil || !space.Shrinks || space.Copies == 0 {
		t.Errorf("%+v, %v", space, err)
	}
	if n, err := db.Rows(t.Context(), "workspaces"); err != nil || n != 1 {
		t.Errorf("%d workspaces, %v", n, err)
	}
}
