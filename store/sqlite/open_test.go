package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tandem/fault"
	"tandem/store"
	"tandem/store/sqlite"
	"tandem/store/sqlite/sqlitetest"
)

// TestMain looks, after all tests, for goroutines that outlived the databases they belonged to.
func TestMain(m *testing.M) {
	if dir := os.Getenv(loadVariable); dir != "" {
		fmt.Fprintln(os.Stderr, load(dir))
		os.Exit(1)
	}
	code := m.Run()
	deadline := time.After(time.Minute)
	for left := goroutines(); left != ""; left = goroutines() {
		select {
		case <-deadline:
			fmt.Fprintf(os.Stderr, "goroutines are left after the tests:\n%s\n", left)
			os.Exit(1)
		default:
			runtime.Gosched() // database/sql ends its own a moment after Close
		}
	}
	os.Exit(code)
}

func goroutines() string {
	var all bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&all, 2); err != nil {
		return err.Error()
	}
	var left []string
	for _, g := range strings.Split(all.String(), "\n\n") {
		if strings.Contains(g, "store/sqlite.(") || strings.Contains(g, "database/sql.") {
			left = append(left, g)
		}
	}
	return strings.Join(left, "\n\n")
}

func TestOpen_MakesADirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "odd name ?#%41&x=1 数据")
	openDir(t, dir)
	if _, err := os.Stat(filepath.Join(dir, "tandem.db")); err != nil {
		t.Error(err)
	}
}

func TestOpen_FindsWhatWasThere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := openDir(t, dir)
	check(t, db.Stores().Journal.Append(t.Context(), ann(), start("e")))
	check(t, db.Close())
	check(t, db.Close()) // closing again is harmless
	if err := db.Stores().Journal.Append(t.Context(), ann(), step("e", 1)); err == nil {
		t.Error("a closed store took a row")
	}
	if _, err := db.Stores().Executions.Get(t.Context(), ann(), "e"); err == nil {
		t.Error("a closed store was read")
	}
	if _, err := os.Stat(filepath.Join(dir, "tandem.db-wal")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the log was not folded into the database: %v", err)
	}
	db = openDir(t, dir)
	check(t, db.Stores().Journal.Append(t.Context(), ann(), step("e", 1)))
	problems, err := db.Check(t.Context())
	check(t, err)
	if len(problems) != 1 || problems[0] != "ok" {
		t.Errorf("integrity: %q", problems)
	}
}

func TestClose_WaitsForWhatWasAccepted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := openDir(t, dir)
	release := make(chan struct{})
	held := db.Hold(t.Context(), release)
	const n = 20
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = db.Stores().Journal.Append(t.Context(), ann(), start(fmt.Sprint("e", i))) })
	}
	for db.Queued() < n {
		runtime.Gosched()
	}
	closed := make(chan error, 1)
	go func() { closed <- db.Close() }()
	close(release)
	check(t, <-held)
	check(t, <-closed)
	wg.Wait()
	db = openDir(t, dir)
	for i, err := range errs {
		check(t, err)
		if count(t, db, fmt.Sprint("e", i)) != 1 {
			t.Errorf("row of e%d is lost", i)
		}
	}
}

func TestOpen_RefusesASecondOwner(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := openDir(t, dir)
	_, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
	if fault.CodeOf(err) != fault.Conflict || !strings.Contains(err.Error(), fmt.Sprintf("process %d", os.Getpid())) || !strings.Contains(err.Error(), dir) {
		t.Errorf("second open: %v, want a conflict that names process %d and the directory", err, os.Getpid())
	}
	check(t, db.Stores().Journal.Append(t.Context(), ann(), start("e")))
	check(t, db.Close())
	openDir(t, dir)
}

func TestOpen_RefusesANewerDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	check(t, openDir(t, dir).Close())
	file := filepath.Join(dir, "tandem.db")
	raw, err := sql.Open("sqlite", file)
	check(t, err)
	_, err = raw.ExecContext(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, 1)")
	check(t, err)
	check(t, raw.Close())
	before, err := os.ReadFile(file)
	check(t, err)
	_, err = sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
	if fault.CodeOf(err) != fault.Conflict || !strings.Contains(err.Error(), "99999") || !strings.Contains(err.Error(), "written by a newer one; run that, or restore a copy from before the upgrade") {
		t.Errorf("open: %v, want a refusal that names version 99999", err)
	}
	after, err := os.ReadFile(file)
	check(t, err)
	if !bytes.Equal(before, after) {
		t.Error("the newer database was changed")
	}
}

func TestOpen_SaysWhatIsWrongWithTheDirectory(t *testing.T) {
	t.Parallel()
	refused := func(what, dir string, words ...string) {
		t.Helper()
		_, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
		if err == nil {
			t.Errorf("%s: opened", what)
			return
		}
		for _, word := range words {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%s: %v, want a word about %q", what, err, word)
			}
		}
	}
	refused("no directory", "")
	file := filepath.Join(t.TempDir(), "file")
	check(t, os.WriteFile(file, nil, 0o600))
	refused("a file in the way", file, file)
	damaged := t.TempDir()
	check(t, os.WriteFile(filepath.Join(damaged, "tandem.db"), bytes.Repeat([]byte("no database "), 1000), 0o600))
	refused("a damaged database", damaged, damaged, "damaged")

	// A read-only directory. Root may write everywhere, so it becomes nobody for this thread.
	if os.Geteuid() == 0 {
		readOnlyAsNobody(t, refused)
		return
	}
	locked := t.TempDir()
	check(t, os.Chmod(locked, 0o500))
	refused("a read-only directory", locked, locked, "write")
}

func TestOpen_ManyTimes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		db, err := sqlite.Open(ctx, sqlite.Options{Dir: dir, Readers: 1})
		check(t, err)
		cancel() // the context is for opening only
		if i == 0 {
			check(t, db.Stores().Journal.Append(t.Context(), ann(), start("e")))
		}
		check(t, db.Stores().Journal.Append(t.Context(), ann(), step("e", uint64(i+1))))
		check(t, db.Close())
	}
}

func TestBlobs_LeaveNothingBehind(t *testing.T) {
	t.Parallel()
	dir := sqlitetest.Dir(t)
	passing := filepath.Join(dir, "blobs", "ws", "tmp")
	check(t, os.MkdirAll(passing, 0o700))
	check(t, os.WriteFile(filepath.Join(passing, "cut off"), []byte("half"), 0o600))
	s := openDir(t, dir).Stores()
	blob, err := s.Blobs.Put(t.Context(), ann(), strings.NewReader("content"))
	check(t, err)
	if _, err := s.Blobs.Put(t.Context(), ann(), brokenReader{}); err == nil {
		t.Error("a broken source made a blob")
	}
	var files []string
	check(t, filepath.WalkDir(filepath.Join(dir, "blobs"), func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return err
	}))
	want := filepath.Join(dir, "blobs", "ws", blob.Hash[:2], blob.Hash[2:4], blob.Hash)
	if len(files) != 1 || files[0] != want {
		t.Errorf("files: %q, want %q only", files, want)
	}
	bad := ann()
	bad.Workspace = "../ws"
	if _, _, err := s.Blobs.Get(t.Context(), bad, blob.Hash); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("a workspace that leads elsewhere: %v", err)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, syscall.EPIPE }

func TestCheckpoint_KeepsTheLogShort(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := openDir(t, dir)
	j := db.Stores().Journal
	check(t, j.Append(t.Context(), ann(), start("e")))
	a := store.Append{Execution: "e", Time: 1, Body: make([]byte, 64<<10)}
	for i := range uint64(1500) { // almost 100 MB
		a.After = i + 1
		check(t, j.Append(t.Context(), ann(), &a))
	}
	info, err := os.Stat(filepath.Join(dir, "tandem.db-wal"))
	check(t, err)
	if info.Size() > 48<<20 {
		t.Errorf("the log has %d MiB after 94 MiB of rows", info.Size()>>20)
	}
	check(t, db.Err())
}
