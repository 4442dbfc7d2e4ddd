package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"tandem/store"
	"tandem/store/sqlite"
	"tandem/store/sqlite/sqlitetest"
	"tandem/store/storetest"
)

// open opens a data directory of the test's own.
func open(t testing.TB) *sqlite.DB {
	t.Helper()
	return openDir(t, sqlitetest.Dir(t))
}

func openDir(t testing.TB, dir string) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return db
}

func TestStores(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) store.Stores { return open(t).Stores() })
}

func TestEpochs(t *testing.T) {
	t.Parallel()
	storetest.RunEpochs(t, func(t *testing.T) func() store.Stores {
		dir := sqlitetest.Dir(t)
		return func() store.Stores { return openUnlocked(t, dir).Stores() }
	})
}

// openUnlocked opens a directory that another has open, as if the lock did not hold.
func openUnlocked(t testing.TB, dir string) *sqlite.DB {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, "tandem.lock")); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return openDir(t, dir)
}
