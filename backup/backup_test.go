package backup_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tandem/backup"
	"tandem/credential"
	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/store/sqlite"
	"tandem/store/sqlite/sqlitetest"
)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// instance is a data directory with something of everything that is kept in a way of its own: values in parts, words of memories, a sealed
// credential, the audit log that nobody may change, rows without a number of their own.
type instance struct {
	dir    string
	db     *sqlite.DB
	who    identity.Principal
	values map[string][]byte
	ring   *credential.Keyring
	shop   *sql.DB
}

func newInstance(t *testing.T) *instance {
	t.Helper()
	i := &instance{dir: sqlitetest.Dir(t), who: identity.System("ws"), values: map[string][]byte{}}
	root, err := os.OpenRoot(i.dir)
	check(t, err)
	i.ring, err = credential.CreateKeyFile(root)
	check(t, errors.Join(err, root.Close()))
	raw, err := sql.Open("sqlite", filepath.Join(i.dir, "tandem.db"))
	check(t, err)
	_, err = raw.ExecContext(t.Context(), "INSERT INTO accepted_losses (rowid, time, message) VALUES (7, 1, 'the numbers of rows have gaps')")
	check(t, errors.Join(err, raw.Close()))
	i.db, err = sqlite.Open(t.Context(), sqlite.Options{Dir: i.dir})
	check(t, err)
	t.Cleanup(func() { check(t, i.db.Close()) })
	i.fill(t, i.db.Stores())
	i.writeFiles(t)
	return i
}

// fill puts something of everything into a store.
func (i *instance) fill(t *testing.T, s store.Stores) {
	t.Helper()
	for _, value := range [][]byte{[]byte("small"), parts("a"), parts("b"), bytes.Repeat([]byte("x"), 3<<20)} {
		b, err := s.Blobs.Put(t.Context(), i.who, bytes.NewReader(value))
		check(t, err)
		i.values[b.Hash] = value
	}
	sealed, err := i.ring.Seal([]byte("secret"), credential.Context("ws", "c", "http"))
	check(t, err)
	check(t, s.Credentials.Create(t.Context(), i.who, store.Credential{ID: "c", Name: "c", Type: "http", Sealed: sealed}))
	_, err = s.Memories.Change(t.Context(), i.who, store.MemoryChange{
		Scope: store.MemoryScope{ID: "m", Kind: "k", User: "u"}, Time: 1,
		Put: []store.MemoryRecord{{Sort: "a", ID: "1", Body: json.RawMessage(`{}`), Text: &store.MemoryText{Content: "plain words"}, Vector: []float32{1, 2}, Space: "s"}},
	})
	check(t, err)
	for n := range 3 {
		check(t, s.Audit.Enter(t.Context(), i.who, store.AuditEntry{Time: int64(n), User: "u", Action: "a", Object: "o", Outcome: store.AuditDone}))
	}
	for n := range 20 {
		start(t, s, i.who, n)
	}
}

// writeFiles writes files of a workspace.
func (i *instance) writeFiles(t *testing.T) {
	t.Helper()
	i.write(t, "reports/may.txt", "May")
	i.write(t, "empty.txt", "")
	i.write(t, ".tandem/drafts/half", "half of it")
	check(t, os.MkdirAll(filepath.Join(i.dir, "files", "ws", "no", "files"), 0o700))
	i.shop = newShop(t, filepath.Join(i.dir, "files", "ws", "shop.db"))
}

func (i *instance) write(t *testing.T, name, content string) {
	t.Helper()
	name = filepath.Join(i.dir, "files", "ws", filepath.FromSlash(name))
	check(t, os.MkdirAll(filepath.Dir(name), 0o700))
	check(t, os.WriteFile(name, []byte(content), 0o600))
}

// newShop is a database that a workflow keeps among its files. What was written last is still in its log.
func newShop(t *testing.T, file string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=journal_mode(WAL)")
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	_, err = db.ExecContext(t.Context(), "CREATE TABLE sold (n INTEGER); INSERT INTO sold VALUES (1), (2)")
	check(t, err)
	return db
}

// parts is a value that is kept in parts.
func parts(what string) []byte {
	return fmt.Appendf(nil, `{"one":%q,"two":%q}`, strings.Repeat("s", 40<<10), strings.Repeat(what, 40<<10))
}

func start(t *testing.T, s store.Stores, who identity.Principal, n int) {
	t.Helper()
	check(t, s.Journal.Append(t.Context(), who, &store.Append{
		Execution: fmt.Sprintf("e%d", n), Time: int64(n + 1), Body: []byte(`[]`),
		Create:    &store.Execution{ID: fmt.Sprintf("e%d", n), WorkflowID: "w", Status: "RUNNING", Created: int64(n + 1)},
		SetTimers: []store.Timer{{ID: "t", Until: 5}},
	}))
}

// rows lists every row of every table, with its number, as text.
func rows(t *testing.T, dir string) map[string][]string {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "tandem.db")+"?mode=ro")
	check(t, err)
	defer func() { check(t, db.Close()) }()
	names, err := db.QueryContext(t.Context(), `SELECT name, wr FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'shadow') AND name NOT IN ('sqlite_schema', 'goose_db_version')`)
	check(t, err)
	all := map[string][]string{}
	tables := map[string]string{}
	for names.Next() {
		var name string
		var without int
		check(t, names.Scan(&name, &without))
		tables[name] = "rowid, *"
		if without != 0 {
			tables[name] = "*"
		}
	}
	check(t, errors.Join(names.Err(), names.Close()))
	for name, columns := range tables {
		list, err := db.QueryContext(t.Context(), fmt.Sprintf("SELECT %s FROM %q ORDER BY 1, 2", columns, name))
		check(t, err)
		heads, err := list.Columns()
		check(t, err)
		row, into := make([]any, len(heads)), make([]any, len(heads))
		for i := range row {
			into[i] = &row[i]
		}
		for list.Next() {
			check(t, list.Scan(into...))
			all[name] = append(all[name], fmt.Sprintf("%T %[1]v", row))
		}
		check(t, errors.Join(list.Err(), list.Close()))
	}
	return all
}

// saved is a backup of an instance.
func saved(t *testing.T, dir string) backup.Result {
	t.Helper()
	r, err := backup.Make(t.Context(), backup.Options{Dir: dir, File: filepath.Join(t.TempDir(), "b"), Program: "test"})
	check(t, err)
	return r
}

// Everything that is in a data directory is in what is restored of its backup, made while a process has the directory open.
func TestRestore(t *testing.T) {
	t.Parallel()
	i := newInstance(t)
	r := saved(t, i.dir)
	want := rows(t, i.dir)
	if r.Tables["executions"] != 20 || r.Tables["journal"]+r.Tables["journal_in_order"] != 20 || len(r.MissingKeys) != 0 || !slices.Equal(r.Keys, i.ring.Keys()) {
		t.Errorf("it says %+v", r)
	}
	dir := filepath.Join(t.TempDir(), "new")
	_, err := backup.Restore(t.Context(), backup.RestoreOptions{File: r.File, Dir: dir})
	check(t, err)
	got := rows(t, dir)
	for name := range want {
		if !slices.Equal(got[name], want[name]) {
			t.Errorf("table %s has\n%q\nand had\n%q", name, got[name], want[name])
		}
	}
	if len(got) != len(want) || len(want["memory_text_data"]) == 0 || len(want["timers"]) != 20 {
		t.Errorf("%d tables of %d", len(got), len(want))
	}
	if _, err := os.Stat(filepath.Join(dir, "restoring")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it leaves the directory in which it works: %v", err)
	}
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
	check(t, err)
	defer func() { check(t, db.Close()) }()
	problems, err := db.Check(t.Context())
	if err != nil || !slices.Equal(problems, []string{"ok"}) {
		t.Errorf("the database: %q, %v", problems, err)
	}
	i.checkStores(t, db.Stores(), dir)
	checkFiles(t, dir)
}

// checkStores looks at what was put into a store, with the key that is in a directory.
func (i *instance) checkStores(t *testing.T, s store.Stores, dir string) {
	t.Helper()
	for hash, value := range i.values {
		f, _, err := s.Blobs.Get(t.Context(), i.who, hash)
		check(t, err)
		b, err := io.ReadAll(f)
		if err := errors.Join(err, f.Close()); err != nil || !bytes.Equal(b, value) {
			t.Errorf("a value of %d bytes is one of %d: %v", len(value), len(b), err)
		}
	}
	found, err := s.Memories.Search(t.Context(), i.who, store.MemorySearch{Scope: "m", Sort: "a", Words: []string{"plain"}, Limit: 1})
	if err != nil || len(found.Records) != 1 {
		t.Errorf("a memory is found by its words: %+v, %v", found, err)
	}
	c, err := s.Credentials.Get(t.Context(), i.who, "c")
	check(t, err)
	root, err := os.OpenRoot(dir)
	check(t, err)
	ring, err := credential.OpenKeyFile(root)
	check(t, errors.Join(err, root.Close()))
	if secret, err := ring.Open(c.Sealed, credential.Context("ws", "c", "http")); err != nil || string(secret) != "secret" {
		t.Errorf("the credential: %v", err)
	}
}

// checkFiles looks at the files of the workspace.
func checkFiles(t *testing.T, dir string) {
	t.Helper()
	var names []string
	check(t, fs.WalkDir(os.DirFS(filepath.Join(dir, "files", "ws")), ".", func(name string, _ fs.DirEntry, err error) error {
		names = append(names, name)
		return err
	}))
	if want := []string{".", ".tandem", "empty.txt", "no", "no/files", "reports", "reports/may.txt", "shop.db"}; !slices.Equal(names, want) {
		t.Errorf("the files are %q", names)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "files", "ws", "reports", "may.txt")); err != nil || string(b) != "May" {
		t.Errorf("a file says %q: %v", b, err)
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, "files", "ws", "shop.db"))
	check(t, err)
	var sold int
	err = db.QueryRowContext(t.Context(), "SELECT count(*) FROM sold").Scan(&sold)
	if err := errors.Join(err, db.Close()); err != nil || sold != 2 {
		t.Errorf("the database among the files has %d rows: %v", sold, err)
	}
}

// entries lists what is in a directory; nothing when there is none.
func entries(t *testing.T, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// What cannot be restored is refused before anything is written.
func TestRestore_Refused(t *testing.T) {
	t.Parallel()
	i := newInstance(t)
	r := saved(t, i.dir)
	whole, err := os.ReadFile(r.File)
	check(t, err)
	other := func(name string, content []byte) string {
		file := filepath.Join(t.TempDir(), name)
		check(t, os.WriteFile(file, content, 0o600))
		return file
	}
	flipped := slices.Clone(whole)
	flipped[bytes.Index(flipped, []byte("tables/"))+600] ^= 1
	full := t.TempDir()
	check(t, os.WriteFile(filepath.Join(full, "precious"), nil, 0o600))
	wrong := other("wrong.key", []byte(strings.Repeat("0123456789abcdef", 4)))
	for name, o := range map[string]backup.RestoreOptions{
		"cut off":            {File: other("cut", whole[:len(whole)/2])},
		"without its end":    {File: other("end", whole[:len(whole)-4096])},
		"damaged":            {File: other("flipped", flipped)},
		"empty":              {File: other("empty", nil)},
		"something else":     {File: wrong},
		"no file":            {File: filepath.Join(t.TempDir(), "none")},
		"a directory in use": {File: r.File, Dir: full},
		"the same directory": {File: r.File, Dir: i.dir},
		"without its key":    {File: other("alone", whole)},
		"with another key":   {File: r.File, Key: wrong},
		"a key that is none": {File: r.File, Key: r.File},
		"another master key": {File: r.File, MasterKey: strings.Repeat("0123456789abcdef", 4)},
	} {
		if o.Dir == "" {
			o.Dir = filepath.Join(t.TempDir(), "new")
		}
		before := entries(t, o.Dir)
		_, err := backup.Restore(t.Context(), o)
		if err == nil {
			t.Errorf("%s: it is restored", name)
		}
		after := slices.DeleteFunc(entries(t, o.Dir), func(n string) bool { return n == "tandem.lock" && len(before) > 0 })
		before = slices.DeleteFunc(before, func(n string) bool { return n == "tandem.lock" })
		if !slices.Equal(before, after) {
			t.Errorf("%s: the directory has %q and had %q", name, after, before)
		}
	}
	alone := other("alone", whole)
	dir := filepath.Join(t.TempDir(), "new")
	done, err := backup.Restore(t.Context(), backup.RestoreOptions{File: alone, Dir: dir, WithoutKey: true})
	if err != nil || !slices.Equal(done.MissingKeys, i.ring.Keys()) {
		t.Errorf("without keys: %+v, %v", done, err)
	}
}

// A restore that died at any point leaves a directory that no store begins anew in, and that can be restored into again.
func TestRestore_Dies(t *testing.T) {
	t.Parallel()
	i := newInstance(t)
	r := saved(t, i.dir)
	want := rows(t, i.dir)
	points := backup.Points(t, backup.RestoreOptions{File: r.File, Dir: filepath.Join(t.TempDir(), "new")})
	if len(points) < 3 {
		t.Fatalf("points at which it may die: %q", points)
	}
	for _, point := range points {
		dir := filepath.Join(t.TempDir(), "new")
		backup.DieAt(t, backup.RestoreOptions{File: r.File, Dir: dir}, point)
		if point != "tandem.db is in place" {
			if db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir}); err == nil {
				t.Errorf("after %q the directory is opened: %v", point, db.Close())
			}
			_, err := backup.Restore(t.Context(), backup.RestoreOptions{File: r.File, Dir: dir})
			if err != nil {
				t.Errorf("after %q it is not restored again: %v", point, err)
			}
		}
		if got := rows(t, dir); !slices.Equal(got["executions"], want["executions"]) {
			t.Errorf("after %q: %d executions", point, len(got["executions"]))
		}
	}
}

// A backup is refused where there is nothing, where a newer program has written, and where something is in its place already.
func TestMake_Refused(t *testing.T) {
	t.Parallel()
	i := newInstance(t)
	file := filepath.Join(t.TempDir(), "b")
	if _, err := backup.Make(t.Context(), backup.Options{Dir: t.TempDir(), File: file}); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("of nothing: %v", err)
	}
	if names := entries(t, filepath.Dir(file)); len(names) > 0 {
		t.Errorf("it leaves %q", names)
	}
	check(t, os.WriteFile(file+backup.KeySuffix, nil, 0o600))
	if _, err := backup.Make(t.Context(), backup.Options{Dir: i.dir, File: file}); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("over a file: %v", err)
	}
	newer := sqlitetest.Dir(t)
	db, err := sql.Open("sqlite", filepath.Join(newer, "tandem.db"))
	check(t, err)
	_, err = db.ExecContext(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (999999, 1)")
	check(t, errors.Join(err, db.Close()))
	_, err = backup.Make(t.Context(), backup.Options{Dir: newer, File: file + "2"})
	if fault.CodeOf(err) != fault.Conflict || !strings.Contains(err.Error(), "it was written by a newer one; run that") {
		t.Errorf("of a newer database: %v", err)
	}
}

// A backup writes to nothing that is there, whatever it is called, and takes no name that somebody else has taken meanwhile.
func TestMake_Names(t *testing.T) {
	t.Parallel()
	i := newInstance(t)
	dir := t.TempDir()
	file, precious := filepath.Join(dir, "b"), filepath.Join(t.TempDir(), "precious")
	check(t, os.WriteFile(precious, []byte("precious"), 0o600))
	check(t, os.Symlink(precious, file+".part"))
	_, err := backup.MakeMeanwhile(t, backup.Options{Dir: i.dir, File: file}, func() { check(t, os.WriteFile(file, []byte("another's"), 0o600)) })
	if fault.CodeOf(err) != fault.Conflict {
		t.Errorf("over a file that came meanwhile: %v", err)
	}
	for name, want := range map[string]string{precious: "precious", file: "another's"} {
		if b, err := os.ReadFile(name); err != nil || string(b) != want {
			t.Errorf("%s says %.40q: %v", name, b, err)
		}
	}
	if names := entries(t, dir); !slices.Equal(names, []string{"b", "b.part"}) {
		t.Errorf("a backup that failed leaves something, such as keys: %q", names)
	}
	check(t, os.Remove(file))
	_, err = backup.Make(t.Context(), backup.Options{Dir: i.dir, File: file})
	check(t, err)
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the backup: %v, %v", info, err)
	}
	if names := entries(t, dir); !slices.Equal(names, []string{"b", "b.key", "b.part"}) {
		t.Errorf("there are %q", names)
	}
}

// A value that is damaged on disk does not keep the rest from being saved, and is named.
func TestMake_DamagedValue(t *testing.T) {
	t.Parallel()
	i := newInstance(t)
	var hash string
	for h, value := range i.values {
		if string(value) == "small" {
			hash = h
		}
	}
	check(t, os.WriteFile(filepath.Join(i.dir, "blobs", "ws", hash[:2], hash[2:4], hash), []byte("other"), 0o600))
	r := saved(t, i.dir)
	if !slices.Equal(r.Damaged, []string{"ws/" + hash}) {
		t.Errorf("damaged: %q", r.Damaged)
	}
	if _, err := backup.Restore(t.Context(), backup.RestoreOptions{File: r.File, Dir: filepath.Join(t.TempDir(), "new")}); err != nil {
		t.Errorf("it is not restored: %v", err)
	}
}

// A database among the files that cannot be copied as of one moment is not taken for whole: it is named, and its log is in the backup. What only begins
// as a database does is a file as others are.
func TestMake_DatabaseAsFound(t *testing.T) {
	t.Parallel()
	i := newInstance(t)
	name := filepath.Join(i.dir, "files", "ws", "torn.db")
	db, err := sql.Open("sqlite", "file:"+name+"?_pragma=journal_mode(WAL)")
	check(t, err)
	defer func() { check(t, db.Close()) }()
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(t.Context(), "PRAGMA page_size = 4096; CREATE TABLE a (n INTEGER); CREATE TABLE b (n INTEGER); INSERT INTO a VALUES (1); PRAGMA wal_checkpoint(TRUNCATE); INSERT INTO b VALUES (1)")
	check(t, err)
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	check(t, err)
	_, err = f.WriteAt(bytes.Repeat([]byte{0xff}, 4096), 4096) // the page of the first table
	check(t, errors.Join(err, f.Close()))
	i.write(t, "text.db", "SQLite format 3\x00 is how such files begin")
	i.write(t, "text.db-wal", "a file of its own")
	r := saved(t, i.dir)
	if want := []string{"ws/torn.db"}; !slices.Equal(r.AsFound, want) {
		t.Errorf("it names %q", r.AsFound)
	}
	dir := filepath.Join(t.TempDir(), "new")
	r, err = backup.Restore(t.Context(), backup.RestoreOptions{File: r.File, Dir: dir})
	check(t, err)
	if len(r.AsFound) != 1 {
		t.Errorf("the restore names %q", r.AsFound)
	}
	for _, name := range []string{"torn.db", "torn.db-wal", "text.db", "text.db-wal"} {
		was, err := os.ReadFile(filepath.Join(i.dir, "files", "ws", name))
		check(t, err)
		is, err := os.ReadFile(filepath.Join(dir, "files", "ws", name))
		if err != nil || !bytes.Equal(was, is) {
			t.Errorf("%s has %d bytes and had %d: %v", name, len(is), len(was), err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "files", "ws", "shop.db-wal")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the log of a database that was copied whole is there: %v", err)
	}
}

// While executions are started and values put, a backup is of one moment: every execution that it has is whole, with the value that its row names, and
// all are there that were acknowledged before it began.
func TestMake_WhileWriting(t *testing.T) {
	t.Parallel()
	i := newInstance(t)
	s, stop, ended := i.db.Stores(), make(chan struct{}), make(chan error, 1)
	acknowledged := make(chan int, 1)
	go func() { // it ends with stop
		for n := 100; ; n++ {
			value := bytes.Repeat(fmt.Appendf(nil, "%d,", n), 1000)
			b, err := s.Blobs.Put(t.Context(), i.who, bytes.NewReader(value))
			if err == nil {
				id := fmt.Sprintf("e%d", n)
				err = s.Journal.Append(t.Context(), i.who, &store.Append{
					Execution: id, Time: time.Now().UnixMilli(), Body: fmt.Appendf(nil, "[%q]", b.Hash), Create: &store.Execution{ID: id, WorkflowID: "w", Status: "RUNNING", Created: 1},
				})
			}
			if err != nil {
				ended <- err
				return
			}
			select {
			case <-acknowledged:
			default:
			}
			acknowledged <- n
			select {
			case <-stop:
				ended <- nil
				return
			default:
			}
		}
	}()
	for range 3 {
		last := <-acknowledged
		r := saved(t, i.dir)
		dir := filepath.Join(t.TempDir(), "new")
		_, err := backup.Restore(t.Context(), backup.RestoreOptions{File: r.File, Dir: dir})
		check(t, err)
		db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
		check(t, err)
		from := db.Stores()
		n := 100
		for ; ; n++ {
			read := 0
			for row, err := range from.Journal.Rows(t.Context(), i.who, fmt.Sprintf("e%d", n), 0) {
				check(t, err)
				var names []string
				check(t, json.Unmarshal(row.Body, &names))
				if _, err := from.Blobs.Stat(t.Context(), i.who, names[0]); err != nil {
					t.Errorf("execution %d lacks its value: %v", n, err)
				}
				read++
			}
			if read == 0 {
				break
			}
		}
		if n <= last {
			t.Errorf("it ends before execution %d, and %d was acknowledged before", n, last)
		}
		check(t, db.Close())
	}
	close(stop)
	check(t, <-ended)
}
