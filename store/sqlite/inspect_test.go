package sqlite_test

import (
	"os"
	"path/filepath"
	"testing"

	"tandem/store/sqlite"
	"tandem/store/sqlite/datadir"
)

func TestInspect(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	inspect := func() datadir.Inspection {
		t.Helper()
		i, err := datadir.Inspect(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	if i := inspect(); i.Version != 0 || i.Known < 1 || i.InUse || i.Free == 0 {
		t.Errorf("an empty directory: %+v", i)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("looking has left %v, %v", entries, err)
	}
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if i := inspect(); i.Version != i.Known || !i.InUse || len(i.Problems) > 0 {
		t.Errorf("an open directory: %+v", i)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if i := inspect(); i.Version != i.Known || i.InUse || len(i.Problems) > 0 {
		t.Errorf("a closed directory: %+v", i)
	}
	if err := os.WriteFile(filepath.Join(dir, datadir.DatabaseFile), []byte("no database at all, but some text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := datadir.Inspect(t.Context(), dir); err == nil {
		t.Error("what is not a database was taken for one")
	}
}
