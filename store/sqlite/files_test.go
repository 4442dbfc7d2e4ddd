package sqlite_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"tandem/fault"
	"tandem/store"
	"tandem/store/sqlite"
	"tandem/store/sqlite/datadir"
	"tandem/store/sqlite/sqlitetest"
)

// stops waits until a store has stopped, and says why.
func stops(t *testing.T, db *sqlite.DB) error {
	t.Helper()
	select {
	case <-db.Broken():
	case <-time.After(2 * time.Minute): // a second is promised; other tests run at the same time
		t.Fatal("the store goes on")
	}
	if err := db.Err(); !errors.Is(err, store.ErrBroken) {
		t.Fatalf("why it has stopped: %v", err)
	}
	return db.Err()
}

func TestWatch_FilesRemovedOrReplaced(t *testing.T) {
	t.Parallel()
	away := func(path string) error { return os.Rename(path, path+".away") }
	another := func(path string) error {
		if err := os.Rename(path, path+".away"); err != nil {
			return err
		}
		data, err := os.ReadFile(path + ".away")
		if err != nil {
			return err
		}
		return os.WriteFile(path, data, 0o600)
	}
	for _, c := range []struct {
		name, file, word string
		change           func(string) error
		// kept says that what was acknowledged is there after the end, since the process still had it.
		kept bool
	}{
		{"LogRemoved", "tandem.db-wal", "removed", os.Remove, true},
		{"LogReplaced", "tandem.db-wal", "replaced", another, true},
		{"DatabaseRemoved", "tandem.db", "removed", os.Remove, false},
		{"DatabaseMoved", "tandem.db", "removed", away, false},
		{"DatabaseReplaced", "tandem.db", "replaced", another, false},
		{"LogEmptied", "tandem.db-wal", "cut", func(path string) error { return os.Truncate(path, 0) }, false},
		{"DatabaseEmptied", "tandem.db", "cut", func(path string) error { return os.Truncate(path, 0) }, false},
		{"MarkRemoved", "tandem.mark", "removed", os.Remove, true},
		{"IndexRemoved", "tandem.db-shm", "removed", os.Remove, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, idle := range []bool{false, true} {
				if !idle && c.file != "tandem.db" && c.file != "tandem.db-wal" {
					continue // a commit does not look at these
				}
				dir := sqlitetest.Dir(t)
				db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
				check(t, err)
				j := db.Stores().Journal
				check(t, j.Append(t.Context(), ann(), start("e")))
				check(t, c.change(filepath.Join(dir, c.file)))
				if !idle { // the next commit notices by itself
					if err := j.Append(t.Context(), ann(), step("e", 1)); !errors.Is(err, store.ErrBroken) {
						t.Errorf("acknowledged after the file was gone: %v", err)
					}
				}
				why := stops(t, db)
				if text := fault.From(why).Message; !strings.Contains(text, c.file+" was "+c.word) || strings.Contains(text, dir) {
					t.Errorf("why: %q, want that %s was %s, without its place", text, c.file, c.word)
				}
				if err := j.Append(t.Context(), ann(), step("e", 1)); !errors.Is(err, store.ErrBroken) {
					t.Errorf("acknowledged after the end: %v", err)
				}
				if err := db.Close(); err != nil {
					t.Logf("close: %v", err) // of a database without its files
				}
				if lacks, err := missing(t, dir, map[string]uint64{"e": 1}); c.kept && (err != nil || len(lacks) > 0) {
					t.Errorf("what the process still had is not there: %v, %v", lacks, err)
				} else if len(lacks) > 0 {
					t.Errorf("begun anew in silence: %v", lacks)
				}
			}
		})
	}
}

// TestWatch_LogWrittenOver has somebody take the end of the log away, or put an older one in its place, in the same file. The next commit
// would make the log as long as it was, so it has to look before it writes; without one the watcher notices.
func TestWatch_LogWrittenOver(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(log string, earlier []byte) error{
		"LastByte": func(log string, _ []byte) error { return cutBy(log, 1) },
		"LastPage": func(log string, _ []byte) error { return cutBy(log, 5000) },
		"Older": func(log string, earlier []byte) error {
			return os.WriteFile(log, earlier, 0o600) // which keeps the file
		},
		"Zeros": func(log string, _ []byte) error {
			f, err := os.OpenFile(log, os.O_RDWR, 0)
			check(t, err)
			info, err := f.Stat()
			check(t, err)
			_, err = f.WriteAt(make([]byte, 4120), info.Size()-4120) // its last page
			return errors.Join(err, f.Close())
		},
	} {
		for _, idle := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/idle=%t", name, idle), func(t *testing.T) {
				t.Parallel()
				dir := sqlitetest.Dir(t)
				db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
				check(t, err)
				j, log := db.Stores().Journal, filepath.Join(dir, "tandem.db-wal")
				check(t, j.Append(t.Context(), ann(), start("e")))
				earlier, err := os.ReadFile(log)
				check(t, err)
				const rows = 20
				for seq := uint64(1); seq < rows; seq++ {
					check(t, j.Append(t.Context(), ann(), step("e", seq)))
				}
				check(t, change(log, earlier))
				if !idle {
					if err := j.Append(t.Context(), ann(), step("e", rows)); !errors.Is(err, store.ErrBroken) {
						t.Errorf("acknowledged on top of a log that lacks its end: %v", err)
					}
				}
				if text := fault.From(stops(t, db)).Message; !strings.Contains(text, "tandem.db-wal was cut") {
					t.Errorf("why: %q", text)
				}
				if err := db.Close(); err != nil {
					t.Logf("close: %v", err)
				}
				if lacks, err := missing(t, dir, map[string]uint64{"e": rows}); err == nil && len(lacks) > 0 {
					t.Errorf("begun anew in silence: %v", lacks)
				}
			})
		}
	}
}

func cutBy(path string, bytes int64) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return os.Truncate(path, info.Size()-bytes)
}

// TestEpochs_TwoProcesses has two processes write to a directory whose lock does not hold.
func TestEpochs_TwoProcesses(t *testing.T) {
	t.Parallel()
	dir := sqlitetest.Dir(t)
	older := openDir(t, dir)
	check(t, older.Stores().Journal.Append(t.Context(), ann(), start("mine")))
	var wg sync.WaitGroup
	var acknowledged uint64
	var end error
	wg.Go(func() {
		for seq := uint64(1); ; seq++ {
			if end = older.Stores().Journal.Append(t.Context(), ann(), step("mine", seq)); end != nil {
				return
			}
			acknowledged = seq + 1
		}
	})
	theirs := map[string]uint64{}
	check(t, os.Remove(filepath.Join(dir, "tandem.lock")))
	killed(t, dir, 200, theirs)
	wg.Wait()
	if !errors.Is(end, store.ErrSuperseded) {
		t.Errorf("the earlier process ended with %v", end)
	}
	if !errors.Is(stops(t, older), store.ErrSuperseded) {
		t.Errorf("the earlier process stopped with %v", older.Err())
	}
	check(t, older.Close())
	theirs["mine"] = acknowledged
	if lacks, err := missing(t, dir, theirs); err != nil || len(lacks) > 0 {
		t.Errorf("after both: %v, %v", lacks, err)
	}
	db := openDir(t, dir)
	for id := range theirs {
		want := uint64(0)
		for row, err := range db.Stores().Journal.Rows(t.Context(), ann(), id, 0) {
			check(t, err)
			if want++; row.Seq != want {
				t.Fatalf("%s: row %d where %d should be", id, row.Seq, want)
			}
		}
	}
}

// TestEpochs_IdleProcessStops is about a process that writes nothing: it notices as well.
func TestEpochs_IdleProcessStops(t *testing.T) {
	t.Parallel()
	dir := sqlitetest.Dir(t)
	older := openDir(t, dir)
	newer := openUnlocked(t, dir)
	if err := stops(t, older); !errors.Is(err, store.ErrSuperseded) || !strings.Contains(fault.From(err).Message, "another process has taken over") {
		t.Errorf("why: %v", err)
	}
	check(t, newer.Stores().Journal.Append(t.Context(), ann(), start("e")))
}

// TestEpochs_SameExecution has two processes go on with one execution, each of which believes to know how far it has come, while
// their rows go to different tables.
func TestEpochs_SameExecution(t *testing.T) {
	t.Parallel()
	dir := sqlitetest.Dir(t)
	older := openDir(t, dir)
	check(t, older.Stores().Journal.Append(t.Context(), ann(), start("e")))
	newer := openUnlocked(t, dir)
	release := make(chan struct{})
	held := newer.Hold(t.Context(), release)
	var wg sync.WaitGroup
	for _, a := range []*store.Append{step("e", 1), start("a"), start("b"), start("c")} { // so many that what goes on is kept by arrival
		wg.Go(func() { check(t, newer.Stores().Journal.Append(t.Context(), ann(), a)) })
	}
	for newer.Queued() < 4 {
		runtime.Gosched()
	}
	close(release)
	check(t, <-held)
	wg.Wait()
	if n, err := newer.Rows(t.Context(), "journal_in_order"); err != nil || n != 1 {
		t.Fatalf("%d rows are kept by arrival, %v: this says nothing", n, err)
	}
	if err := older.Stores().Journal.Append(t.Context(), ann(), step("e", 1)); !errors.Is(err, store.ErrBroken) {
		t.Errorf("the earlier process has added row 2 as well: %v", err)
	}
	if n := count(t, newer, "e"); n != 2 {
		t.Errorf("the execution has %d rows, want 2", n)
	}
	i, err := datadir.Inspect(t.Context(), dir)
	if check(t, err); len(i.Problems) > 0 {
		t.Errorf("problems: %q", i.Problems)
	}
}

// TestJournal_HeadsAreKept says that nothing of our own makes the committer forget: not commits, nor readers, nor the log being folded.
func TestJournal_HeadsAreKept(t *testing.T) {
	t.Parallel()
	dir := sqlitetest.Dir(t)
	db := openDir(t, dir)
	j := db.Stores().Journal
	check(t, j.Append(t.Context(), ann(), start("e")))
	check(t, j.Append(t.Context(), ann(), step("e", 1)))
	check(t, db.Checkpoint(t.Context()))
	count(t, db, "e")
	check(t, j.Append(t.Context(), ann(), step("e", 2)))
	if n, err := db.Remembered(t.Context()); err != nil || n != 1 {
		t.Errorf("%d heads are remembered, %v, want 1", n, err)
	}
	onFile(t, dir, "UPDATE executions SET error = 'x'")
	if n, err := db.Remembered(t.Context()); err != nil || n != 0 {
		t.Errorf("%d heads are remembered after another program has written, %v", n, err)
	}
}

// TestJournal_OneRowInBothTables has another program put a row into a table, behind the back of the committer.
func TestJournal_OneRowInBothTables(t *testing.T) {
	t.Parallel()
	dir := sqlitetest.Dir(t)
	db := openDir(t, dir)
	j := db.Stores().Journal
	for _, table := range []string{"journal", "journal_in_order"} {
		id := "in " + table
		check(t, j.Append(t.Context(), ann(), start(id)))
		onFile(t, dir, fmt.Sprintf(`INSERT INTO %s (place, workspace_id, time, body) SELECT n << 32 | 2, 'ws', 1, x'00' FROM executions WHERE id = '%s'`, table, id))
		if err := j.Append(t.Context(), ann(), step(id, 1)); fault.CodeOf(err) != fault.Conflict {
			t.Errorf("a second row 2 of an execution that has one in %s: %v, want a conflict", table, err)
		}
		if count(t, db, id) != 2 {
			t.Errorf("%s: %d rows", id, count(t, db, id))
		}
		check(t, j.Append(t.Context(), ann(), step(id, 2))) // it knows better now
	}
	check(t, db.Err())

	// Should another program do it nevertheless, an inspection tells.
	onFile(t, dir, "INSERT INTO journal_in_order SELECT * FROM journal LIMIT 1")
	i, err := datadir.Inspect(t.Context(), dir)
	if check(t, err); len(i.Problems) != 1 || !strings.Contains(i.Problems[0], "1 rows of journals are there twice") {
		t.Errorf("problems: %q", i.Problems)
	}
}

func TestModes(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "open to all")
	check(t, os.Mkdir(dir, 0o777))
	check(t, os.Chmod(dir, 0o777))
	names := []string{"tandem.db", "tandem.db-wal", "tandem.db-shm", "tandem.mark", "tandem.lock"}
	modes := func(when string) {
		t.Helper()
		for _, name := range names {
			info, err := os.Stat(filepath.Join(dir, name))
			check(t, err)
			if info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %s has the mode %04o", when, name, info.Mode().Perm())
			}
		}
		info, err := os.Stat(filepath.Join(dir, "blobs"))
		check(t, err)
		if info.Mode().Perm() != 0o700 {
			t.Errorf("%s: blobs has the mode %04o", when, info.Mode().Perm())
		}
	}
	acknowledged := map[string]uint64{}
	killed(t, dir, 20, acknowledged) // leaves all of them
	modes("new")
	for _, name := range names {
		check(t, os.Chmod(filepath.Join(dir, name), 0o644))
	}
	check(t, os.Chmod(filepath.Join(dir, "blobs"), 0o755))
	db := openDir(t, dir)
	_, err := db.Stores().Blobs.Put(t.Context(), ann(), strings.NewReader("content"))
	check(t, err)
	modes("after they were open to all")
	check(t, filepath.WalkDir(filepath.Join(dir, "blobs"), func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has the mode %04o", path, info.Mode().Perm())
		}
		return err
	}))
}

// TestMigrate_KeepsACopy brings an older database up to date.
func TestMigrate_KeepsACopy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	check(t, sqlite.MigrateTo(t.Context(), dir, 8))
	onFile(t, dir, "INSERT INTO workspaces (workspace_id, name, created) VALUES ('ws', 'Old', 1)")
	onFile(t, dir, "INSERT INTO journal (place, workspace_id, time, body) VALUES (1 << 32 | 1, 'ws', 1, x'00')")
	db := openDir(t, dir)
	all, err := filepath.Glob(filepath.Join(dir, "tandem.db.*"))
	check(t, err)
	copied := filepath.Join(dir, "tandem.db.version-8")
	if len(all) != 1 || all[0] != copied {
		t.Fatalf("copies: %q, want %q", all, copied)
	}
	if info, err := os.Stat(copied); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the copy: %v, %v", info, err)
	}
	check(t, db.Close())
	i, err := datadir.Inspect(t.Context(), dir)
	check(t, err)
	if i.Version != i.Known || len(i.Problems) > 0 || i.Lost != "" {
		t.Errorf("after it was brought up to date: %+v", i)
	}

	// The copy is what it was, and an upgrade of it is refused as a step back until that is accepted.
	check(t, os.Rename(copied, filepath.Join(dir, "tandem.db")))
	_, err = sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
	wantLost(t, "the copy from before", err, "version 8", "recover --accept-loss")
	db, err = sqlite.Open(t.Context(), sqlite.Options{Dir: dir, AcceptLoss: true})
	check(t, err)
	if n, err := db.Rows(t.Context(), "journal"); err != nil || n != 1 {
		t.Errorf("rows of the copy: %d, %v", n, err)
	}
	check(t, db.Close())

	fresh := t.TempDir()
	openDir(t, fresh)
	if all, err := filepath.Glob(filepath.Join(fresh, "tandem.db.*")); err != nil || len(all) > 0 {
		t.Errorf("a new database was copied: %q, %v", all, err)
	}
}

// TestOpen_LinkedDatabase has the database on another disk, where SQLite keeps its log too.
func TestOpen_LinkedDatabase(t *testing.T) {
	t.Parallel()
	dir, elsewhere := sqlitetest.Dir(t), t.TempDir()
	check(t, os.Rename(filepath.Join(dir, "tandem.db"), filepath.Join(elsewhere, "real.db")))
	check(t, os.Symlink(filepath.Join(elsewhere, "real.db"), filepath.Join(dir, "tandem.db")))
	db := openDir(t, dir)
	check(t, db.Stores().Journal.Append(t.Context(), ann(), start("e")))
	check(t, os.Remove(filepath.Join(elsewhere, "real.db-wal")))
	if err := db.Stores().Journal.Append(t.Context(), ann(), step("e", 1)); !errors.Is(err, store.ErrBroken) {
		t.Errorf("acknowledged without a log: %v", err)
	}
}
