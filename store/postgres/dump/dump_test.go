package dump

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/store/postgres"
	"tandem/store/postgres/postgrestest"
	"tandem/store/sqlite"
	"tandem/store/sqlite/datadir"
	sqlitedump "tandem/store/sqlite/dump"
	"tandem/store/sqlite/sqlitetest"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// moved puts a data directory into a new database, and lets a function look at that in the same transaction.
func moved(t *testing.T, address, dir string, look func(tx pgx.Tx) error) Moved {
	t.Helper()
	newest, err := postgres.Newest()
	check(t, err)
	var m Moved
	check(t, postgres.Fill(t.Context(), address, newest, func(tx pgx.Tx) (err error) {
		if m, err = FromSQLite(t.Context(), dir, tx); err != nil {
			return err
		}
		return look(tx)
	}))
	return m
}

// Every table and every column of the one database is one of the other, or something is said here of why it is not. A table that is added
// to both needs nothing. One that is added to one of them is left out by a move, or made of something, in FromSQLite.
func TestFromSQLite_SameTables(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	dir := sqlitetest.Dir(t)
	ours := map[string][]string{}
	check(t, datadir.Snapshot(t.Context(), dir, func(tx *sql.Tx, _ int64) error {
		list, err := sqlitedump.Tables(t.Context(), tx)
		for _, table := range list {
			ours[table.Name] = slices.DeleteFunc(slices.Clone(table.Columns), func(c string) bool { return c == sqlitedump.RowID })
		}
		return err
	}))
	theirs := map[string][]string{}
	moved(t, server.Database(t), dir, func(tx pgx.Tx) error {
		f, err := newFiller(t.Context(), tx)
		if err != nil {
			return err
		}
		for name, columns := range f.tables {
			for _, c := range columns {
				theirs[name] = append(theirs[name], c.name)
			}
		}
		return nil
	})
	otherwise := slices.Concat(leftOut(), own(), []string{sqlitedump.Sequences, "epochs", "journal", "journal_in_order", "memory_text"})
	for _, name := range slices.Concat(slices.Collect(maps.Keys(ours)), slices.Collect(maps.Keys(theirs))) {
		if slices.Contains(otherwise, name) {
			continue
		}
		one, other := slices.Sorted(slices.Values(ours[name])), slices.Sorted(slices.Values(theirs[name]))
		if !slices.Equal(one, other) {
			t.Errorf("table %s has the columns %q in SQLite and %q in PostgreSQL", name, one, other)
		}
	}
}

// Words of memories are found in the same way after a move, also those of several columns, many of them, and in any script; texts keep
// characters that PostgreSQL does not take.
func TestFromSQLite_Words(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	dir, who := sqlitetest.Dir(t), identity.System("ws")
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
	check(t, err)
	records := []store.MemoryRecord{
		{ID: "title", Text: &store.MemoryText{Title: "Quarterly numbers", Content: "nothing"}},
		{ID: "content", Text: &store.MemoryText{Content: "numbers numbers, and it's 数据 of the quarter"}},
		{ID: "extra", Text: &store.MemoryText{Extra: "Ärger über numbers"}},
		{ID: "none", Text: &store.MemoryText{Content: "something else"}},
		{ID: "unsearched"},
	}
	many := make([]string, 60_000)
	for i := range many {
		many[i] = fmt.Sprintf("word%d", i)
	}
	records = append(records, store.MemoryRecord{ID: "many", Text: &store.MemoryText{Content: strings.Join(many, " ")}})
	for i := range records {
		records[i].Sort, records[i].Body = "a", []byte(`{}`)
	}
	_, err = db.Stores().Memories.Change(t.Context(), who, store.MemoryChange{Scope: store.MemoryScope{ID: "m", Kind: "k", User: "u"}, Time: 1, Mark: "mark\x00of\x01it", Result: []byte(`1`), Put: records})
	check(t, err)
	wanted := [][]string{{"numbers"}, {"quarterly"}, {"数"}, {"ärger"}, {"word0"}, {"word59999", "else"}, {"nowhere"}}
	search := func(s store.Stores) (found []string) {
		for _, words := range wanted {
			r, err := s.Memories.Search(t.Context(), who, store.MemorySearch{Scope: "m", Sort: "a", Words: words, Limit: 10})
			check(t, err)
			ids := []string{}
			for _, one := range r.Records {
				ids = append(ids, one.ID)
			}
			slices.Sort(ids)
			found = append(found, fmt.Sprint(words, ids))
		}
		return found
	}
	want := search(db.Stores())
	check(t, db.Close())
	address := server.Database(t)
	if m := moved(t, address, dir, func(pgx.Tx) error { return nil }); m.Tables["memory_records"] != 6 || m.Tables["memory_text"] < 6 {
		t.Errorf("it says %+v", m)
	}
	pg, err := postgres.OpenOwned(t.Context(), postgres.Options{URL: address})
	check(t, err)
	defer func() { check(t, pg.Close()) }()
	if got := search(pg.Stores()); !slices.Equal(got, want) {
		t.Errorf("found are\n%q\nand were\n%q", got, want)
	}
	again, err := pg.Stores().Memories.Change(t.Context(), who, store.MemoryChange{Scope: store.MemoryScope{ID: "m", Kind: "k", User: "u"}, Time: 2, Mark: "mark\x00of\x01it", Result: []byte(`2`)})
	if err != nil || string(again.Result) != "1" {
		t.Errorf("what was marked is done again: %s, %v", again.Result, err)
	}
}

// Texts that are not UTF-8, which SQLite keeps, do not stand in the way of a move: what is not becomes the replacement character.
func TestFromSQLite_InvalidText(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	dir, who := sqlitetest.Dir(t), identity.System("ws")
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
	check(t, err)
	check(t, db.Stores().Audit.Enter(t.Context(), who, store.AuditEntry{Time: 1, Workspace: "ws", User: "u", Action: "user.create", Object: "user", ObjectID: "x", Agent: "caf\xc3"}))
	check(t, db.Close())
	address := server.Database(t)
	moved(t, address, dir, func(pgx.Tx) error { return nil })
	pg, err := postgres.OpenOwned(t.Context(), postgres.Options{URL: address})
	check(t, err)
	defer func() { check(t, pg.Close()) }()
	entries, err := pg.Stores().Audit.List(t.Context(), who, store.AuditQuery{Limit: 10})
	if err != nil || len(entries) != 1 || entries[0].Agent != "caf\uFFFD" {
		t.Errorf("the audit log has %+v: %v", entries, err)
	}
}

// A row that is refused is said to be of the table that has it, and not of the one that follows.
func TestFromSQLite_NamesTable(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	dir := sqlitetest.Dir(t)
	db, err := sql.Open("sqlite", "file:"+datadir.RealPath(dir))
	check(t, err)
	_, err = db.ExecContext(t.Context(), "INSERT INTO upkeep_due (what, since) VALUES ('compact', 1)")
	check(t, errors.Join(err, db.Close()))
	newest, err := postgres.Newest()
	check(t, err)
	err = postgres.Fill(t.Context(), server.Database(t), newest, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), "ALTER TABLE upkeep_due ADD CHECK (since > 1)"); err != nil {
			return err
		}
		_, err := FromSQLite(t.Context(), dir, tx)
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "copy table upkeep_due: ") {
		t.Errorf("it says %v", err)
	}
}

// A process that is over may have left an epoch that rows name. Those that follow are later.
func TestFromSQLite_Epochs(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	dir := sqlitetest.Dir(t)
	for range 3 {
		db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
		check(t, err)
		check(t, db.Close())
	}
	address := server.Database(t)
	var last, want int64
	check(t, datadir.Snapshot(t.Context(), dir, func(tx *sql.Tx, _ int64) error {
		return tx.QueryRowContext(t.Context(), "SELECT max(epoch) FROM epochs").Scan(&want)
	}))
	moved(t, address, dir, func(tx pgx.Tx) error { return tx.QueryRow(t.Context(), "SELECT max(epoch) FROM epochs").Scan(&last) })
	if last != want || want < 3 {
		t.Errorf("the last epoch is %d and was %d", last, want)
	}
}

// A database whose rows are not all there is not one that was filled: nothing of it stays.
func TestFill_CountsDiffer(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	address := server.Database(t)
	newest, err := postgres.Newest()
	check(t, err)
	err = postgres.Fill(t.Context(), address, newest, func(tx pgx.Tx) error {
		f, err := newFiller(t.Context(), tx)
		if err != nil {
			return err
		}
		err = errors.Join(f.begin("upkeep_due", []string{"what", "since"}), f.row([]any{"compact", int64(1)}), f.flush())
		if err == nil {
			_, err = tx.Exec(t.Context(), "DELETE FROM upkeep_due")
		}
		if err == nil {
			err = f.verify()
		}
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "upkeep_due has 0 rows, and 1 were written") {
		t.Errorf("it is filled: %v", err)
	}
	check(t, postgres.Vacant(t.Context(), address))
}

// A process that has the database keeps others from filling it, and one that fills it keeps others from opening it.
func TestFill_Alone(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	address := server.Database(t)
	newest, err := postgres.Newest()
	check(t, err)
	check(t, postgres.Fill(t.Context(), address, newest, func(tx pgx.Tx) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := postgres.OpenOwned(ctx, postgres.Options{URL: address}); fault.CodeOf(err) != fault.Conflict {
			t.Errorf("it is opened: %v", err)
		}
		if err := postgres.Fill(ctx, address, newest, func(pgx.Tx) error { return nil }); fault.CodeOf(err) != fault.Conflict {
			t.Errorf("it is filled by two: %v", err)
		}
		_, err := tx.Exec(t.Context(), "INSERT INTO epochs (epoch) VALUES (1)")
		return err
	}))
	if err := postgres.Fill(t.Context(), address, newest, func(pgx.Tx) error { return nil }); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("it is filled twice: %v", err)
	}
}

// A backup of PostgreSQL of a version that a newer program has written is refused, as is the database itself.
func TestSnapshot_Refused(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	address := server.Database(t)
	none := func(*sql.Tx, int64) error { return nil }
	if err := postgres.Snapshot(t.Context(), address, none); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("a database without data: %v", err)
	}
	db, err := postgres.OpenOwned(t.Context(), postgres.Options{URL: address})
	check(t, err)
	check(t, db.Close())
	check(t, postgres.Snapshot(t.Context(), address, none))
	conn, err := pgx.Connect(t.Context(), address)
	check(t, err)
	_, err = conn.Exec(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, true)")
	check(t, errors.Join(err, conn.Close(t.Context())))
	if err := postgres.Snapshot(t.Context(), address, none); fault.CodeOf(err) != fault.Conflict || !strings.Contains(err.Error(), "written by a newer one") {
		t.Errorf("a newer database: %v", err)
	}
	if _, err := postgres.OpenOwned(t.Context(), postgres.Options{URL: address}); fault.CodeOf(err) != fault.Conflict || !strings.Contains(err.Error(), "written by a newer one") {
		t.Errorf("a newer database is opened: %v", err)
	}
}
