package sqlite_test

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"tandem/fault"
	"tandem/store/sqlite"
	"tandem/store/sqlite/datadir"
	"tandem/store/sqlite/sqlitetest"
)

// loadVariable makes of this test binary a process that writes to the directory it names until it is killed.
const loadVariable = "TANDEM_TEST_LOAD"

// load starts executions and appends to them, many at once, and says each row after it was acknowledged. It never ends by
// itself.
func load(dir string) error {
	ctx := context.Background()
	db, err := sqlite.Open(ctx, sqlite.Options{Dir: dir})
	if err != nil {
		return err
	}
	var mu sync.Mutex
	said := bufio.NewWriter(os.Stdout)
	say := func(id string, seq uint64) error {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(said, "%s %d\n", id, seq)
		return said.Flush()
	}
	body := make([]byte, 4000) // so that the log is folded now and then
	ends := make(chan error)
	for i := range 6 {
		go func() {
			for n := 0; ; n++ {
				id := fmt.Sprintf("e%d-%d-%d", os.Getpid(), i, n)
				a := start(id)
				for seq := uint64(1); seq <= 4; seq++ {
					err := db.Stores().Journal.Append(ctx, ann(), a)
					if err == nil {
						err = say(id, seq)
					}
					if err != nil {
						ends <- err
						return
					}
					a = step(id, seq)
					a.Body = body
				}
			}
		}()
	}
	return <-ends
}

// killed runs such a process on a directory until it has been acknowledged so many rows, kills it, and adds what it was
// acknowledged: the last row of each execution.
func killed(t *testing.T, dir string, rows int, acknowledged map[string]uint64) {
	t.Helper()
	// Without a umask, so that what is private is so by itself.
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `umask 0; exec "$0" -test.run='^$'`, os.Args[0])
	cmd.Env = append(os.Environ(), loadVariable+"="+dir)
	var trouble strings.Builder
	cmd.Stderr = &trouble
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	lines := bufio.NewScanner(out)
	note := func() {
		var id string
		var seq uint64
		if _, err := fmt.Sscan(lines.Text(), &id, &seq); err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		acknowledged[id] = seq
	}
	for n := 0; n < rows; n++ {
		if !lines.Scan() {
			t.Fatalf("the process ended by itself: %s", trouble.String())
		}
		note()
	}
	check(t, cmd.Process.Kill())
	for lines.Scan() { // what it said before it died
		note()
	}
	if err := cmd.Wait(); err == nil || trouble.Len() > 0 {
		t.Fatalf("the process was not killed: %v, %s", err, trouble.String())
	}
}

// missing says what of the acknowledged rows a directory lacks, or why it cannot be opened.
func missing(t *testing.T, dir string, acknowledged map[string]uint64) (lacks []string, refused error) {
	t.Helper()
	_, unmarked := os.Stat(filepath.Join(dir, "tandem.mark")) // then it knows what the database has counted, which may be less
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
	if err != nil {
		return nil, err
	}
	has, err := db.Lengths(t.Context())
	check(t, err)
	rows := uint64(0)
	for _, n := range has {
		rows += n
	}
	if r, e, err := db.Counts(t.Context()); err != nil || unmarked == nil && (r != int64(rows) || e != int64(len(has))) {
		t.Errorf("it has counted %d rows and %d executions (%v), and has %d and %d", r, e, err, rows, len(has))
	}
	for id, seq := range acknowledged {
		if n := has[id]; n < seq {
			lacks = append(lacks, fmt.Sprintf("%s has %d rows of %d", id, n, seq))
		}
	}
	check(t, db.Close())
	return lacks, nil
}

// copyDir copies a data directory as it is.
func copyDir(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	check(t, os.CopyFS(to, os.DirFS(from)))
	return to
}

func wantLost(t *testing.T, what string, err error, words ...string) {
	t.Helper()
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Details[datadir.Lost] == nil {
		t.Errorf("%s: %v, want a refusal because of a loss", what, err)
		return
	}
	for _, w := range words {
		if !strings.Contains(f.Message, w) {
			t.Errorf("%s: %q, want a word about %q", what, f.Message, w)
		}
	}
}

func TestLoss_LogCutOrDamaged(t *testing.T) {
	t.Parallel()
	dir, acknowledged := sqlitetest.Dir(t), map[string]uint64{}
	killed(t, dir, 300, acknowledged)
	log := func(dir string) string { return filepath.Join(dir, "tandem.db-wal") }
	whole, err := os.ReadFile(log(dir))
	check(t, err)
	if lacks, err := missing(t, copyDir(t, dir), acknowledged); err != nil || len(lacks) > 0 {
		t.Fatalf("as it was left: %v, %v", lacks, err)
	}
	database, refusals := must(os.ReadFile(filepath.Join(dir, "tandem.db"))), 0
	try := func(what string, change func(log string) error) {
		t.Helper()
		torn := copyDir(t, dir)
		check(t, change(log(torn)))
		lacks, err := missing(t, torn, acknowledged)
		switch {
		case err != nil:
			refusals++
			wantLost(t, what, err, "commit", "recover --accept-loss")
			if !bytes.Equal(must(os.ReadFile(filepath.Join(torn, "tandem.db"))), database) {
				t.Errorf("%s: the refusal has changed the database", what)
			}
		case len(lacks) > 0:
			t.Errorf("%s: opened in silence, and %d executions lack rows: %v", what, len(lacks), lacks[:1])
		}
	}
	const cuts = 24
	for i := range cuts {
		at := int64(len(whole)) * int64(i) / cuts
		try(fmt.Sprintf("cut at %d of %d", at, len(whole)), func(log string) error { return os.Truncate(log, at) })
	}
	if refusals != cuts {
		t.Errorf("%d of %d cuts were refused", refusals, cuts)
	}
	for range 6 {
		at := 100 + rand.IntN(len(whole)*3/4)
		try(fmt.Sprintf("byte %d changed", at), func(log string) error {
			damaged := []byte(string(whole))
			damaged[at] ^= 0x55
			return os.WriteFile(log, damaged, 0o600)
		})
	}
	try("removed", os.Remove)
	try("emptied", func(log string) error { return os.WriteFile(log, nil, 0o600) })
	if refusals != cuts+8 {
		t.Errorf("%d of %d were refused", refusals, cuts+8)
	}
}

func must(data []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return data
}

func TestLoss_KillIsNone(t *testing.T) {
	t.Parallel()
	dir, acknowledged := sqlitetest.Dir(t), map[string]uint64{}
	for round := range 7 {
		rows := 1 + rand.IntN(400)
		killed(t, dir, rows, acknowledged)
		if lacks, err := missing(t, dir, acknowledged); err != nil || len(lacks) > 0 {
			t.Fatalf("round %d, killed after %d rows: %v, %v", round, rows, lacks, err)
		}
	}
	// Nor is it one to look at what was left, which folds the log and removes it.
	killed(t, dir, 100, acknowledged)
	onFile(t, dir, "SELECT count(*) FROM executions")
	if _, err := os.Stat(filepath.Join(dir, "tandem.db-wal")); err == nil {
		t.Error("the log is still there: this says nothing")
	}
	if lacks, err := missing(t, dir, acknowledged); err != nil || len(lacks) > 0 {
		t.Fatalf("after somebody else has folded the log: %v, %v", lacks, err)
	}
}

// onFile runs a statement on the database of a directory as another program would.
func onFile(t *testing.T, dir, statement string) {
	t.Helper()
	onDB(t, dir, func(db *sql.DB) {
		_, err := db.ExecContext(t.Context(), statement)
		check(t, err)
	})
}

// onDB uses the database of a directory as another program would.
func onDB(t *testing.T, dir string, use func(*sql.DB)) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, "tandem.db"))
	check(t, err)
	use(db)
	check(t, db.Close())
}

// TestLoss_TornFold has the log vanish after a process died while it was folded into the database: the page of the mark is
// new, another one is old.
func TestLoss_TornFold(t *testing.T) {
	t.Parallel()
	dir, acknowledged := sqlitetest.Dir(t), map[string]uint64{}
	killed(t, dir, 200, acknowledged)
	before := must(os.ReadFile(filepath.Join(dir, "tandem.db")))
	folded := copyDir(t, dir)
	onFile(t, folded, "SELECT count(*) FROM executions")
	after := must(os.ReadFile(filepath.Join(folded, "tandem.db")))
	if lacks, err := missing(t, copyDir(t, folded), acknowledged); err != nil || len(lacks) > 0 {
		t.Fatalf("all of it folded: %v, %v", lacks, err)
	}
	for _, share := range []int{2, 3} { // so many parts of the pages were written
		torn := append([]byte(nil), after...)
		end := len(after) / 4096 * (share - 1) / share * 4096
		old := make([]byte, len(after)-end)
		if end < len(before) {
			copy(old, before[end:])
		}
		copy(torn[end:], old)
		check(t, os.WriteFile(filepath.Join(folded, "tandem.db"), torn, 0o600))
		_, err := missing(t, copyDir(t, folded), acknowledged)
		if err == nil {
			t.Errorf("a part of the log was folded, and the rest is gone: opened in silence")
		}
	}
}

func TestLoss_OlderOrOtherCopy(t *testing.T) {
	t.Parallel()
	dir := sqlitetest.Dir(t)
	grow := func(dir, id string) {
		t.Helper()
		db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
		check(t, err)
		check(t, db.Stores().Journal.Append(t.Context(), ann(), start(id)))
		check(t, db.Close())
	}
	grow(dir, "one")
	earlier := copyDir(t, dir)
	grow(dir, "two")
	put := func(from string) string {
		t.Helper()
		to := copyDir(t, dir)
		check(t, os.WriteFile(filepath.Join(to, "tandem.db"), must(os.ReadFile(filepath.Join(from, "tandem.db"))), 0o600))
		return to
	}
	restored := put(earlier)
	_, err := missing(t, restored, nil)
	wantLost(t, "an older copy", err, "older copy", "recover --accept-loss")
	wantLost(t, "looking at an older copy", datadir.Sound(t.Context(), restored), "older copy")
	for _, id := range []string{"three", "four", "five"} {
		grow(earlier, id)
	}
	_, err = missing(t, put(earlier), nil)
	wantLost(t, "a copy that has gone further elsewhere", err, "acknowledged")
	_, err = missing(t, put(sqlitetest.Dir(t)), nil)
	wantLost(t, "a new database", err, "acknowledged")

	// It can be accepted, which is remembered, and then it is as good as any.
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: restored, AcceptLoss: true})
	check(t, err)
	if count(t, db, "one") != 1 || count(t, db, "two") != 0 {
		t.Error("the copy was not what is used")
	}
	check(t, db.Close())
	grow(restored, "again")
	i, err := datadir.Inspect(t.Context(), restored)
	check(t, err)
	if len(i.Accepted) != 1 || !strings.Contains(i.Accepted[0], "older copy") || i.Lost != "" || len(i.Problems) > 0 {
		t.Errorf("after it was accepted: %+v", i)
	}
	// Without a mark nobody claims that there was more.
	bare := put(earlier)
	check(t, os.Remove(filepath.Join(bare, "tandem.mark")))
	if lacks, err := missing(t, bare, map[string]uint64{"five": 1}); err != nil || len(lacks) > 0 {
		t.Errorf("a copy without a mark: %v, %v", lacks, err)
	}
	for _, text := range []string{"nonsense", "", strings.Repeat("\x00", 1024)} {
		damaged := put(dir)
		check(t, os.WriteFile(filepath.Join(damaged, "tandem.mark"), []byte(text), 0o600))
		_, err = missing(t, damaged, nil)
		wantLost(t, "a damaged mark", err, "tandem.mark is damaged")
	}
}

// TestLoss_OtherRowOfTheSameNumber puts a copy in the place of a database that has gone on with the same execution by another row.
func TestLoss_OtherRowOfTheSameNumber(t *testing.T) {
	t.Parallel()
	dir := sqlitetest.Dir(t)
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
	check(t, err)
	check(t, db.Stores().Journal.Append(t.Context(), ann(), start("e")))
	elsewhere := copyDir(t, dir)
	check(t, os.Remove(filepath.Join(elsewhere, "tandem.mark")))
	check(t, db.Stores().Journal.Append(t.Context(), ann(), step("e", 1)))
	claimed := copyDir(t, dir) // as a process leaves it that is killed now
	check(t, db.Close())
	for _, c := range []struct {
		name string
		body string
		lost bool
	}{{"Another", "another", true}, {"Same", string(step("e", 1).Body), false}} {
		other := copyDir(t, elsewhere)
		db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: other})
		check(t, err)
		a := step("e", 1)
		a.Body = []byte(c.body)
		check(t, db.Stores().Journal.Append(t.Context(), ann(), a))
		check(t, db.Close())
		check(t, copyFile(claimed, other, "tandem.mark"))
		if err := datadir.Sound(t.Context(), other); c.lost {
			wantLost(t, c.name, err, "gone another way")
		} else if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestLoss_NobodyWasTold is about the last commit of a process that died before anybody was told of it: it may be there, which is
// counted, and it may be missing, which is not a loss.
func TestLoss_NobodyWasTold(t *testing.T) {
	t.Parallel()
	dir := sqlitetest.Dir(t)
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
	check(t, err)
	check(t, db.Stores().Journal.Append(t.Context(), ann(), start("e")))
	before := copyDir(t, dir)
	check(t, db.Stores().Journal.Append(t.Context(), ann(), step("e", 1), step("e", 2)))
	after := copyDir(t, dir)
	check(t, db.Close())
	check(t, copyFile(after, before, "tandem.mark"))
	wantLost(t, "acknowledged and missing", datadir.Sound(t.Context(), before), "2 rows of journals are missing")
	check(t, sqlite.Unacknowledge(before))
	if lacks, err := missing(t, before, map[string]uint64{"e": 1}); err != nil || len(lacks) > 0 {
		t.Errorf("nobody was told of it, and it is missing: %v, %v", lacks, err)
	}
	check(t, sqlite.Unacknowledge(after))
	if lacks, err := missing(t, after, map[string]uint64{"e": 3}); err != nil || len(lacks) > 0 {
		t.Errorf("nobody was told of it, and it is there: %v, %v", lacks, err)
	}
}

// TestLoss_ClosedKnowsByItself copies a database that was closed without the file beside it.
func TestLoss_ClosedKnowsByItself(t *testing.T) {
	t.Parallel()
	dir := sqlitetest.Dir(t)
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
	check(t, err)
	check(t, db.Stores().Journal.Append(t.Context(), ann(), start("e")))
	check(t, db.Stores().Journal.Append(t.Context(), ann(), step("e", 1)))
	check(t, db.Close())
	check(t, os.Remove(filepath.Join(dir, "tandem.mark")))
	db, err = sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
	check(t, err)
	if rows, executions, err := db.Counts(t.Context()); err != nil || rows != 2 || executions != 1 {
		t.Errorf("it has counted %d rows and %d executions (%v), want 2 and 1", rows, executions, err)
	}
	check(t, db.Close())
}

// TestLoss_EarlierMark is about a file of the version before, when every commit was counted in the database.
func TestLoss_EarlierMark(t *testing.T) {
	t.Parallel()
	dir := sqlitetest.Dir(t)
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
	check(t, err)
	check(t, db.Stores().Journal.Append(t.Context(), ann(), start("e")))
	check(t, db.Close())
	var epoch, commits int64
	var id string
	onDB(t, dir, func(db *sql.DB) {
		check(t, db.QueryRow("SELECT epoch, id, commits FROM commit_mark JOIN epochs USING (epoch)").Scan(&epoch, &id, &commits))
	})
	for _, more := range []int64{0, 1} {
		line := fmt.Sprintf("tandem mark 1: epoch %d %s commit %d rows 1 executions 1 time 1 folded 0", epoch, id, commits+more)
		check(t, os.WriteFile(filepath.Join(dir, "tandem.mark"), fmt.Appendf(nil, "%s check %x\n", line, crc32.ChecksumIEEE([]byte(line))), 0o600))
		switch err := datadir.Sound(t.Context(), dir); more {
		case 0:
			check(t, err)
		default:
			wantLost(t, "one commit more", err, "lacks commits")
		}
	}
}

// TestLoss_Counts says how many executions and rows are gone.
func TestLoss_Counts(t *testing.T) {
	t.Parallel()
	dir := sqlitetest.Dir(t)
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
	check(t, err)
	check(t, db.Stores().Journal.Append(t.Context(), ann(), start("open")))
	half := copyDir(t, dir)
	for i := range 3 {
		check(t, db.Stores().Journal.Append(t.Context(), ann(), start(fmt.Sprint("gone", i))))
	}
	check(t, db.Stores().Journal.Append(t.Context(), ann(), step("open", 1)))
	check(t, os.WriteFile(filepath.Join(half, "tandem.mark"), must(os.ReadFile(filepath.Join(dir, "tandem.mark"))), 0o600))
	check(t, db.Close())
	err = datadir.Sound(t.Context(), half)
	wantLost(t, "a log that ends early", err, "lacks commits", "4 rows of journals", "3 executions are missing altogether", "may have gone further: open")
	i, ierr := datadir.Inspect(t.Context(), half)
	check(t, ierr)
	if i.Lost == "" || i.Remedy == "" || strings.Contains(i.Lost, i.Remedy) {
		t.Errorf("inspection: lost %q, remedy %q", i.Lost, i.Remedy)
	}
}

func TestMissingDatabase(t *testing.T) {
	t.Parallel()
	used := sqlitetest.Dir(t)
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: used})
	check(t, err)
	_, err = db.Stores().Blobs.Put(t.Context(), ann(), strings.NewReader("large"))
	check(t, err)
	check(t, db.Stores().Journal.Append(t.Context(), ann(), start("e")))
	log := must(os.ReadFile(filepath.Join(used, "tandem.db-wal")))
	check(t, db.Close())
	remains := map[string]func(dir string) error{
		"tandem.db-wal": func(dir string) error { return os.WriteFile(filepath.Join(dir, "tandem.db-wal"), log, 0o600) },
		"tandem.mark":   func(dir string) error { return copyFile(used, dir, "tandem.mark") },
		"master.key":    func(dir string) error { return os.WriteFile(filepath.Join(dir, "master.key"), []byte("key\n"), 0o600) },
		"blobs": func(dir string) error {
			return os.CopyFS(filepath.Join(dir, "blobs"), os.DirFS(filepath.Join(used, "blobs")))
		},
		"tandem.db.version-8": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "tandem.db.version-8"), []byte("copy"), 0o600)
		},
	}
	gone := map[string]func(dir string) error{
		"is missing":        func(string) error { return nil },
		"is empty":          func(dir string) error { return os.WriteFile(filepath.Join(dir, "tandem.db"), nil, 0o600) },
		"has nothing in it": func(dir string) error { onFile(t, dir, "VACUUM"); onFile(t, dir, "CREATE TABLE other (a)"); return nil },
	}
	for name, put := range remains {
		for how, lose := range gone {
			if name == "tandem.db-wal" && how == "has nothing in it" {
				continue // then it is that database's log
			}
			dir := t.TempDir()
			check(t, lose(dir))
			check(t, put(dir))
			_, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
			wantLost(t, name+" beside a database that "+how, err, how, name, "restore the database from a copy", "move these away")
			_, err = sqlite.Open(t.Context(), sqlite.Options{Dir: dir, AcceptLoss: true})
			wantLost(t, "accepting it", err, how)
			i, err := datadir.Inspect(t.Context(), dir)
			if err != nil || !strings.Contains(i.Lost, how) || i.Remedy == "" {
				t.Errorf("inspection of %s beside a database that %s: %+v, %v", name, how, i, err)
			}
		}
	}
	for how, lose := range gone { // a directory that was never used begins
		dir := t.TempDir()
		check(t, lose(dir))
		check(t, os.MkdirAll(filepath.Join(dir, "blobs"), 0o700))
		db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
		if err != nil {
			t.Errorf("a new directory whose database %s: %v", how, err)
			continue
		}
		check(t, db.Close())
	}
}

func copyFile(from, to, name string) error {
	data, err := os.ReadFile(filepath.Join(from, name))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, name), data, 0o600)
}
