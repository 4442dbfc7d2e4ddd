package backup_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"tandem/backup"
	"tandem/credential"
	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/store/postgres"
	"tandem/store/postgres/postgrestest"
	"tandem/store/sqlite"
	"tandem/store/sqlite/datadir"
)

// server is the one that TestMain has started; nil: there is none.
var server *postgrestest.Server

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (code int) {
	if os.Getenv(postgrestest.Without) == "" {
		var err error
		if server, err = postgrestest.Launch(); err != nil {
			fmt.Println(err)
			return 1
		}
		defer func() {
			if err := server.Stop(); err != nil {
				fmt.Println(err)
				code = 1
			}
		}()
	}
	return m.Run()
}

// running is the server of PostgreSQL. Without one the test is left out, if that is allowed.
func running(t *testing.T) *postgrestest.Server {
	t.Helper()
	if server == nil {
		t.Skipf("NOTICE: %s is set: this is NOT TESTED", postgrestest.Without)
	}
	return server
}

// tables lists every row of every table of a database of PostgreSQL, as text.
func tables(t *testing.T, address string) map[string][]string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	check(t, err)
	defer func() { check(t, conn.Close(t.Context())) }()
	rows, err := conn.Query(t.Context(), "SELECT tablename::text FROM pg_tables WHERE schemaname = current_schema() AND tablename <> 'goose_db_version'")
	check(t, err)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	check(t, err)
	all := map[string][]string{}
	for _, name := range names {
		rows, err := conn.Query(t.Context(), fmt.Sprintf("SELECT t::text FROM %s t ORDER BY 1", name))
		check(t, err)
		all[name], err = pgx.CollectRows(rows, pgx.RowTo[string])
		check(t, err)
	}
	return all
}

// vacant says whether a database can still be restored into.
func vacant(t *testing.T, address string) bool {
	t.Helper()
	err := postgres.Vacant(t.Context(), address)
	if err != nil && (fault.CodeOf(err) != fault.Conflict || !strings.Contains(err.Error(), "CREATE DATABASE")) {
		t.Errorf("it is refused with %v", err)
	}
	return err == nil
}

// opened opens a database of PostgreSQL until the test ends.
func opened(t *testing.T, address string) *postgres.Owned {
	t.Helper()
	db, err := postgres.OpenOwned(t.Context(), postgres.Options{URL: address})
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	return db
}

// goesOn starts one more execution, and looks whether everything is there once.
func goesOn(t *testing.T, s store.Stores, who identity.Principal) {
	t.Helper()
	start(t, s, who, 20)
	page, err := s.Executions.List(t.Context(), who, store.ExecutionQuery{Page: store.Page{Number: 1, Size: 100}})
	if err != nil || len(page.Executions) != 21 || page.Executions[0].ID != "e20" {
		t.Errorf("there are %d executions: %v", len(page.Executions), err)
	}
	timers, err := s.Timers.Upcoming(t.Context(), who, store.Timer{}, 100)
	if err != nil || len(timers) != 21 {
		t.Errorf("%d timers, %v", len(timers), err)
	}
	for n := range 21 {
		if rows := journal(t, s, who, fmt.Sprintf("e%d", n)); len(rows) != 1 || rows[0].Seq != 1 || rows[0].Time != int64(n+1) {
			t.Errorf("the journal of e%d: %+v", n, rows)
		}
	}
	entries, err := s.Audit.List(t.Context(), who, store.AuditQuery{Limit: 10})
	if err != nil || len(entries) != 3 {
		t.Errorf("%d entries of the audit log: %v", len(entries), err)
	}
}

// journal are the rows of an execution.
func journal(t *testing.T, s store.Stores, who identity.Principal, execution string) (rows []store.Row) {
	t.Helper()
	for row, err := range s.Journal.Rows(t.Context(), who, execution, 0) {
		check(t, err)
		rows = append(rows, row)
	}
	return rows
}

// newDatabase is an instance whose records are in PostgreSQL.
func newDatabase(t *testing.T, address string) (*instance, *postgres.Owned) {
	t.Helper()
	i := &instance{dir: t.TempDir(), who: identity.System("ws"), values: map[string][]byte{}}
	root, err := os.OpenRoot(i.dir)
	check(t, err)
	i.ring, err = credential.CreateKeyFile(root)
	check(t, errors.Join(err, root.Close()))
	db := opened(t, address)
	i.fill(t, db.Stores())
	i.writeFiles(t)
	return i, db
}

// Everything that is in a database of PostgreSQL is in what is restored of its backup, made while a process owns it.
func TestRestore_PostgreSQL(t *testing.T) {
	t.Parallel()
	server := running(t)
	address := server.Database(t)
	i, _ := newDatabase(t, address)
	file := filepath.Join(t.TempDir(), "b")
	r, err := backup.Make(t.Context(), backup.Options{Dir: i.dir, Database: address, File: file, Program: "test"})
	check(t, err)
	want := tables(t, address)
	if r.Tables["executions"] != 20 || r.Tables["journal"] != 20 || r.Blobs != 4 || r.Store != "postgres" || !slices.Equal(r.Keys, i.ring.Keys()) || len(r.MissingKeys) > 0 {
		t.Errorf("it says %+v", r)
	}
	if _, err := backup.Check(t.Context(), file); err != nil {
		t.Error(err)
	}
	_, err = backup.Restore(t.Context(), backup.RestoreOptions{File: file, Dir: filepath.Join(t.TempDir(), "new")})
	if fault.CodeOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "--database") {
		t.Errorf("into a data directory alone: %v", err)
	}

	copied, dir := server.Database(t), filepath.Join(t.TempDir(), "new")
	done, err := backup.Restore(t.Context(), backup.RestoreOptions{File: file, Dir: dir, Database: copied})
	check(t, err)
	if where, err := postgres.Where(copied); err != nil || done.Database != where || done.Dir != dir {
		t.Errorf("it says %+v, %v", done, err)
	}
	got := tables(t, copied)
	for name := range want {
		if !slices.Contains([]string{"blobs", "blob_pieces", "owners"}, name) && !slices.Equal(got[name], want[name]) {
			t.Errorf("table %s has\n%q\nand had\n%q", name, got[name], want[name])
		}
	}
	if len(got) != len(want) || len(want["memory_text"]) == 0 || len(got["blobs"]) != 4 || len(got["blob_pieces"]) != len(want["blob_pieces"]) {
		t.Errorf("%d tables of %d, %d values of %d", len(got), len(want), len(got["blobs"]), len(want["blobs"]))
	}
	if left := entries(t, dir); !slices.Equal(left, []string{"files", "master.key", "tandem.lock"}) {
		t.Errorf("the directory has %q", left)
	}
	if _, err := backup.Restore(t.Context(), backup.RestoreOptions{File: file, Dir: filepath.Join(t.TempDir(), "new"), Database: copied}); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("a second time: %v", err)
	}
	db := opened(t, copied)
	i.checkStores(t, db.Stores(), dir)
	checkFiles(t, dir)
	goesOn(t, db.Stores(), i.who)
}

// A backup of a database of PostgreSQL without the data directory beside it would lack files and keys.
func TestMake_PostgreSQLNoDirectory(t *testing.T) {
	t.Parallel()
	address := running(t).Database(t)
	i, _ := newDatabase(t, address)
	for _, dir := range []string{filepath.Join(t.TempDir(), "nowhere"), filepath.Join(i.dir, credential.KeyFile)} {
		if err := made(t, backup.Options{Dir: dir, Database: address}); fault.CodeOf(err) != fault.NotFound || !strings.Contains(err.Error(), "--data") {
			t.Errorf("beside %q: %v", dir, err)
		}
	}
	check(t, made(t, backup.Options{Dir: i.dir, Database: address}))
}

// Who worked on a database is not in its backup, and nobody works on what is restored before a server shares it. Numbers of members are not given out again.
func TestRestore_PostgreSQLShared(t *testing.T) {
	t.Parallel()
	server := running(t)
	address, copied := server.Database(t), server.Database(t)
	owner, err := postgres.OpenOwned(t.Context(), postgres.Options{URL: address, Shared: true})
	check(t, err)
	t.Cleanup(func() { check(t, owner.Close()) })
	member, err := postgres.Join(t.Context(), address)
	check(t, err)
	t.Cleanup(func() { check(t, member.Close()) })
	file := filepath.Join(t.TempDir(), "b")
	_, err = backup.Make(t.Context(), backup.Options{Dir: t.TempDir(), Database: address, File: file, Program: "test"})
	check(t, err)
	_, err = backup.Restore(t.Context(), backup.RestoreOptions{File: file, Dir: filepath.Join(t.TempDir(), "new"), Database: copied})
	check(t, err)
	if got := tables(t, copied); len(got["members"]) != 0 || len(got["epochs"]) != 1 {
		t.Errorf("members are %q, epochs %q", got["members"], got["epochs"])
	}
	if m, err := postgres.Join(t.Context(), copied); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("somebody works on it: %v, %v", m, err)
	}
	opener, err := postgres.OpenOwned(t.Context(), postgres.Options{URL: copied, Shared: true})
	check(t, err)
	t.Cleanup(func() { check(t, opener.Close()) })
	next, err := postgres.Join(t.Context(), copied)
	check(t, err)
	t.Cleanup(func() { check(t, next.Close()) })
	if got := tables(t, copied)["members"]; len(got) != 1 || !strings.HasPrefix(got[0], "(2,") {
		t.Errorf("members are %q", got)
	}
}

// What happens while a backup is made is in it whole or not at all: the rows and the values are those of one moment.
func TestMake_PostgreSQLOneMoment(t *testing.T) {
	t.Parallel()
	server := running(t)
	address := server.Database(t)
	i, db := newDatabase(t, address)
	s, stop, stopped := db.Stores(), make(chan struct{}), make(chan int)
	go func() {
		n := 20
		for ; ; n++ {
			select {
			case <-stop:
				stopped <- n
				return
			default:
				value, err := s.Blobs.Put(t.Context(), i.who, strings.NewReader(fmt.Sprintf("value of e%d", n)))
				if err != nil {
					t.Error(err)
				}
				err = s.Journal.Append(t.Context(), i.who, &store.Append{
					Execution: fmt.Sprintf("e%d", n), Time: int64(n + 1), Body: fmt.Appendf(nil, `[%q]`, value.Hash),
					Create:    &store.Execution{ID: fmt.Sprintf("e%d", n), WorkflowID: "w", Status: "RUNNING", Created: int64(n + 1)},
					SetTimers: []store.Timer{{ID: "t", Until: 5}},
				})
				if err != nil {
					t.Error(err)
				}
			}
		}
	}()
	file, copied, dir := filepath.Join(t.TempDir(), "b"), server.Database(t), filepath.Join(t.TempDir(), "new")
	r, err := backup.Make(t.Context(), backup.Options{Dir: i.dir, Database: address, File: file, Program: "test"})
	close(stop)
	last := <-stopped
	check(t, err)
	n := r.Tables["executions"]
	if r.Tables["journal"] != n || r.Tables["timers"] != n || n > int64(last) || r.Blobs < n-20 {
		t.Errorf("of %d executions: %v, %d values", last, r.Tables, r.Blobs)
	}
	_, err = backup.Restore(t.Context(), backup.RestoreOptions{File: file, Dir: dir, Database: copied})
	check(t, err)
	restored := opened(t, copied).Stores()
	for at := int64(20); at < n; at++ {
		rows := journal(t, restored, i.who, fmt.Sprintf("e%d", at))
		if len(rows) != 1 {
			t.Fatalf("the journal of e%d: %+v", at, rows)
		}
		if _, err := restored.Blobs.Stat(t.Context(), i.who, strings.Trim(string(rows[0].Body), `[]"`)); err != nil {
			t.Errorf("the value of e%d: %v", at, err)
		}
	}
}

// A backup of a data directory with SQLite is restored into PostgreSQL.
func TestRestore_SQLiteIntoPostgreSQL(t *testing.T) {
	t.Parallel()
	server := running(t)
	i := newInstance(t)
	r := saved(t, i.dir)
	copied, dir := server.Database(t), filepath.Join(t.TempDir(), "new")
	_, err := backup.Restore(t.Context(), backup.RestoreOptions{File: r.File, Dir: dir, Database: copied})
	check(t, err)
	if left := entries(t, dir); !slices.Equal(left, []string{"files", "master.key", "tandem.lock"}) {
		t.Errorf("the directory has %q", left)
	}
	db := opened(t, copied)
	i.checkStores(t, db.Stores(), dir)
	checkFiles(t, dir)
	goesOn(t, db.Stores(), i.who)
}

// A restore into PostgreSQL that died on the way leaves a database without anything, and can be made again.
func TestRestore_PostgreSQLDies(t *testing.T) {
	t.Parallel()
	server := running(t)
	address := server.Database(t)
	i, _ := newDatabase(t, address)
	file := filepath.Join(t.TempDir(), "b")
	_, err := backup.Make(t.Context(), backup.Options{Dir: i.dir, Database: address, File: file, Program: "test"})
	check(t, err)
	points := backup.Points(t, backup.RestoreOptions{File: file, Dir: filepath.Join(t.TempDir(), "new"), Database: server.Database(t)})
	if len(points) != 3 {
		t.Fatalf("points at which it may die: %q", points)
	}
	for _, point := range points {
		o := backup.RestoreOptions{File: file, Dir: filepath.Join(t.TempDir(), "new"), Database: server.Database(t)}
		backup.DieAt(t, o, point)
		refused(t, o.Dir, o.Database, "tandem restore")
		if !vacant(t, o.Database) {
			t.Errorf("after %q the database has something in it", point)
		}
		if _, err := backup.Restore(t.Context(), o); err != nil {
			t.Errorf("after %q it is not restored again: %v", point, err)
			continue
		}
		checkFiles(t, o.Dir)
	}
}

// The records of a data directory are moved to PostgreSQL. Its files and keys stay where they are, and nobody goes on with what was moved.
func TestMove(t *testing.T) {
	t.Parallel()
	server := running(t)
	i := newInstance(t)
	check(t, i.db.Close())
	address := server.Database(t)
	r, err := backup.Move(t.Context(), backup.MoveOptions{Dir: i.dir, Database: address})
	check(t, err)
	if where, err := postgres.Where(address); err != nil || r.Database != where || r.Tables["executions"] != 20 || r.Tables["journal"] != 20 || r.Tables["timers"] != 20 || len(r.Damaged) > 0 {
		t.Errorf("it says %+v, %v", r, err)
	}
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: i.dir})
	if err == nil {
		t.Errorf("the directory is opened: %v", db.Close())
	} else if !strings.Contains(err.Error(), "--database") || !strings.Contains(err.Error(), datadir.MovedFile) {
		t.Errorf("it is refused with %v", err)
	}
	for name, err := range map[string]error{
		"a second move": second(t, i.dir, server.Database(t)),
		"a backup":      made(t, backup.Options{Dir: i.dir}),
	} {
		if err == nil || !strings.Contains(err.Error(), "were moved") {
			t.Errorf("%s: %v", name, err)
		}
	}
	owned := opened(t, address)
	i.checkStores(t, owned.Stores(), i.dir)
	goesOn(t, owned.Stores(), i.who)
	// What values were kept in is not needed any more.
	removed, _, err := owned.Stores().Upkeep.SweepBlobs(t.Context(), i.who, time.Time{}, time.Now().Add(time.Hour))
	if err != nil || r.Values != 7 || removed != 3 {
		t.Errorf("%d of %d values are removed: %v", removed, r.Values, err)
	}
	i.checkStores(t, owned.Stores(), i.dir)
}

func second(t *testing.T, dir, address string) error {
	t.Helper()
	_, err := backup.Move(t.Context(), backup.MoveOptions{Dir: dir, Database: address})
	return err
}

func made(t *testing.T, o backup.Options) error {
	t.Helper()
	o.File = filepath.Join(t.TempDir(), "b")
	_, err := backup.Make(t.Context(), o)
	return err
}

// A database of an older version is brought up to date on the way: of a move in its place, of a backup in the copy that is restored.
func TestMove_Older(t *testing.T) {
	t.Parallel()
	server := running(t)
	dir, who := t.TempDir(), identity.System("ws")
	check(t, datadir.Fill(t.Context(), filepath.Join(dir, datadir.DatabaseFile), 25, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), `INSERT INTO executions (n, workspace_id, id, workflow_id, workflow_name, workflow_version, revision, revision_hash, status, final, priority,
			parent, forked_from, trigger_type, user_id, started, ended, duration_ms, credits, error, created, updated)
			VALUES (7, 'ws', 'old', 'w', '', '', 1, 'h', 'RUNNING', 0, 3, '', '', 'API', 'ann', 1, 0, 0, 0, '', 1, 1);
			INSERT INTO journal_in_order (place, workspace_id, time, body) VALUES (7 << 32 | 1, 'ws', 5, x'5b5d')`)
		return err
	}))
	r := saved(t, dir)
	restored, moved := server.Database(t), server.Database(t)
	_, err := backup.Restore(t.Context(), backup.RestoreOptions{File: r.File, Dir: filepath.Join(t.TempDir(), "new"), Database: restored})
	check(t, err)
	check(t, second(t, dir, moved))
	if _, err := os.Stat(filepath.Join(dir, datadir.DatabaseFile+".version-25")); r.Version != 25 || err != nil {
		t.Errorf("the backup has version %d; no copy is kept: %v", r.Version, err)
	}
	for _, address := range []string{restored, moved} {
		s := opened(t, address).Stores()
		if rows := journal(t, s, who, "old"); len(rows) != 1 || rows[0].Time != 5 || string(rows[0].Body) != "[]" {
			t.Errorf("the journal is %+v", rows)
		}
		start(t, s, who, 1)
	}
}

// What cannot be moved is refused, and both databases stay as they are.
func TestMove_Refused(t *testing.T) {
	t.Parallel()
	server := running(t)
	i := newInstance(t)
	empty, used := server.Database(t), server.Database(t)
	opened(t, used)
	others := server.Database(t)
	conn, err := pgx.Connect(t.Context(), others)
	check(t, err)
	_, err = conn.Exec(t.Context(), "CREATE TABLE users (name text)")
	check(t, errors.Join(err, conn.Close(t.Context())))
	refuses := func(name, dir, address, says string) {
		t.Helper()
		if err := second(t, dir, address); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	refuses("while it is in use", i.dir, empty, "is in use by")
	check(t, i.db.Close())
	before := rows(t, i.dir)
	refuses("into a database that is in use", i.dir, used, "is not empty")
	refuses("into a database of somebody else", i.dir, others, "is not empty")
	refuses("into a server that is not there", i.dir, "postgres://ann:opensesame@127.0.0.1:1/none", "cannot be reached")
	refuses("of a directory that is not there", filepath.Join(t.TempDir(), "none"), empty, "there is no data")
	newer := filepath.Join(t.TempDir(), "newer")
	check(t, os.CopyFS(newer, os.DirFS(i.dir)))
	db, err := sql.Open("sqlite", filepath.Join(newer, datadir.DatabaseFile))
	check(t, err)
	_, err = db.ExecContext(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, 1)")
	check(t, errors.Join(err, db.Close()))
	refuses("of a newer version", newer, empty, "it was written by a newer one")
	if !vacant(t, empty) || vacant(t, used) || vacant(t, others) {
		t.Error("another database than before is empty")
	}
	if after := rows(t, i.dir); len(after) != len(before) || !slices.Equal(after["executions"], before["executions"]) || !slices.Equal(after["epochs"], before["epochs"]) {
		t.Error("the source is changed")
	}
	check(t, second(t, i.dir, empty))
}

// refused looks whether a server begins anew with a directory and a database, after something that did not come to its end.
func refused(t *testing.T, dir, address, says string) {
	t.Helper()
	db, err := postgres.OpenOwned(t.Context(), postgres.Options{URL: address, Before: func(_ context.Context, begun bool) error {
		if begun {
			return nil
		}
		return datadir.BesideNew(dir)
	}})
	if err == nil {
		t.Errorf("a server begins anew: %v", db.Close())
	} else if !strings.Contains(err.Error(), says) {
		t.Errorf("a server is refused with %v", err)
	}
}

// A move that dies on the way leaves one database that can be gone on with, and not two.
func TestMove_Dies(t *testing.T) {
	t.Parallel()
	server := running(t)
	i := newInstance(t)
	check(t, i.db.Close())
	address := server.Database(t)
	o := backup.MoveOptions{Dir: i.dir, Database: address}
	backup.DieMoving(t, o, "all written")
	if !vacant(t, address) {
		t.Error("the new database has something in it")
	}
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: i.dir})
	check(t, err)
	check(t, db.Close())
	backup.DieMoving(t, o, "put aside")
	if db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: i.dir}); err == nil {
		t.Errorf("the directory is opened: %v", db.Close())
	}
	refused(t, i.dir, address, "rename the file to tandem.db")
	if !vacant(t, address) {
		t.Error("the new database has something in it")
	}
	check(t, os.Rename(filepath.Join(i.dir, datadir.MovedFile), filepath.Join(i.dir, datadir.DatabaseFile)))
	_, err = backup.Move(t.Context(), o)
	check(t, err)
	i.checkStores(t, opened(t, address).Stores(), i.dir)
}

// Who goes back from a move renames one file, also when the server before it had died: what was in its log is in that file.
func TestMove_GoBack(t *testing.T) {
	t.Parallel()
	server := running(t)
	i := newInstance(t) // it is open: its log is not folded
	dir := filepath.Join(t.TempDir(), "killed")
	check(t, os.CopyFS(dir, os.DirFS(i.dir)))
	if info, err := os.Stat(filepath.Join(dir, datadir.DatabaseFile+datadir.LogSuffix)); err != nil || info.Size() == 0 {
		t.Fatalf("there is no log: %v", err)
	}
	check(t, second(t, dir, server.Database(t)))
	if left := entries(t, dir); slices.ContainsFunc(left, func(name string) bool { return strings.HasSuffix(name, datadir.LogSuffix) }) {
		t.Errorf("the directory has %q", left)
	}
	check(t, os.Rename(filepath.Join(dir, datadir.MovedFile), filepath.Join(dir, datadir.DatabaseFile)))
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
	check(t, err)
	defer func() { check(t, db.Close()) }()
	check(t, os.Chmod(filepath.Join(dir, credential.KeyFile), 0o600)) // the copy is open to others
	i.checkStores(t, db.Stores(), dir)
}

// A move that is refused by the new database at its end leaves the old one as it was.
func TestMove_GivenUp(t *testing.T) {
	t.Parallel()
	server := running(t)
	i := newInstance(t)
	check(t, i.db.Close())
	address := server.Database(t)
	if err := backup.GiveUpMoving(t, backup.MoveOptions{Dir: i.dir, Database: address}); err == nil {
		t.Error("it came to its end")
	}
	if !vacant(t, address) {
		t.Error("the new database has something in it")
	}
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: i.dir})
	check(t, err)
	defer func() { check(t, db.Close()) }()
	i.checkStores(t, db.Stores(), i.dir)
}
