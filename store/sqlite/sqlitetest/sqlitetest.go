// Package sqlitetest spares tests the making of databases: bringing a new one up to date takes half a second with the race detector,
// and hundreds of tests want one. Only tests import it.
package sqlitetest

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"tandem/store/sqlite"
	"tandem/store/sqlite/datadir"
)

// fresh is the file of a database that is up to date and empty, made once in a process. read-only
var fresh = sync.OnceValues(func() (content []byte, err error) {
	dir, err := os.MkdirTemp("", "tandem-fresh-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if rerr := os.RemoveAll(dir); err == nil {
			err = rerr
		}
	}()
	db, err := sqlite.Open(context.Background(), sqlite.Options{Dir: dir})
	if err != nil {
		return nil, err
	}
	if err := db.Close(); err != nil { // which leaves everything in the one file
		return nil, err
	}
	return os.ReadFile(filepath.Join(dir, datadir.DatabaseFile))
})

// Dir returns a data directory of the test's own with a new database in it, to be opened with [sqlite.Open].
func Dir(t testing.TB) string {
	t.Helper()
	content, err := fresh()
	if err != nil {
		t.Fatalf("make a database: %v", err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, datadir.DatabaseFile), content, 0o600); err != nil {
		t.Fatalf("put a database: %v", err)
	}
	return dir
}

// Open opens a new database that is closed when the test ends.
func Open(t testing.TB) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(context.Background(), sqlite.Options{Dir: Dir(t)})
	if err != nil {
		t.Fatalf("open a database: %v", err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close the database: %v", err)
		}
	})
	return db
}
