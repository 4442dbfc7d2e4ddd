package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"tandem/fault"
	"tandem/store"
	"tandem/store/postgres"
)

// files are the migrations of this program, and one more, which is what a newer program would bring.
func files(t *testing.T, more string) (all fstest.MapFS, last int64) {
	t.Helper()
	list, err := os.ReadDir("migrations")
	check(t, err)
	all = fstest.MapFS{}
	for _, f := range list {
		text, err := os.ReadFile("migrations/" + f.Name())
		check(t, err)
		all[f.Name()] = &fstest.MapFile{Data: text}
	}
	last, err = postgres.Known()
	check(t, err)
	last++
	all[fmt.Sprintf("%05d_newer.sql", last)] = &fstest.MapFile{Data: []byte("-- +goose Up\n" + more)}
	return all, last
}

// moveOn brings a database to the version behind that of this program.
func moveOn(t *testing.T, address string) {
	t.Helper()
	all, last := files(t, "SELECT 1;")
	check(t, postgres.MigrateBy(t.Context(), address, all, last))
}

// wantOther fails unless an error says that the database has the version behind that of this program.
func wantOther(t *testing.T, err error) {
	t.Helper()
	known, unknown := postgres.Known()
	check(t, unknown)
	if want := fmt.Sprintf("the database has version %d and this program is for version %d", known+1, known); !errors.Is(err, store.ErrSuperseded) ||
		!errors.Is(err, store.ErrBroken) || fault.CodeOf(err) != fault.Conflict || !strings.Contains(fault.From(err).Message, want) {
		t.Errorf("%v, want %q", err, want)
	}
}

// count is what a statement counts.
func count(t *testing.T, address, text string, args ...any) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	check(t, err)
	err = conn.QueryRow(t.Context(), text, args...).Scan(&n)
	check(t, errors.Join(err, conn.Close(t.Context())))
	return n
}

// TestVersion_MovesOn: a process that has opened a database before a newer one brought it up to date writes nothing more, and says why.
func TestVersion_MovesOn(t *testing.T) {
	t.Parallel()
	journal := func(t *testing.T, db *postgres.DB) {
		wantOther(t, db.Stores().Journal.Append(t.Context(), ann(), follow("e1", 1)))
	}
	value := func(t *testing.T, db *postgres.DB) {
		_, err := db.Stores().Blobs.Put(t.Context(), ann(), strings.NewReader(strings.Repeat("x", 10_000)))
		wantOther(t, err)
	}
	pulse := func(t *testing.T, db *postgres.DB) {
		feeling, cancel := context.WithCancel(t.Context())
		var felt sync.WaitGroup
		felt.Go(func() { db.Feel(feeling, time.Millisecond, time.Minute) })
		<-db.Broken()
		cancel()
		felt.Wait()
	}
	for name, does := range map[string]func(*testing.T, *postgres.DB){"Journal": journal, "Value": value, "Pulse": pulse} {
		for _, who := range []string{"Member", "Owner"} {
			t.Run(name+who, func(t *testing.T) {
				t.Parallel()
				address := database(t)
				owner := share(t, address)
				db := owner.DB
				if who == "Member" {
					db = join(t, address).DB
				}
				check(t, db.Stores().Journal.Append(t.Context(), ann(), begin("e1")))
				moveOn(t, address)
				admin(t, address, `UPDATE member_signs SET seen = 'epoch'`)
				does(t, db)
				<-db.Broken()
				wantOther(t, db.Err())
				wantOther(t, db.Stores().Journal.Append(t.Context(), ann(), follow("e1", 1)))
				wantRows(t, db, "e1", 1)
				if n := count(t, address, `SELECT count(*) FROM blobs`); n != 0 {
					t.Errorf("%d values are written", n)
				}
				if n := count(t, address, `SELECT count(*) FROM member_signs WHERE seen <> 'epoch'`); n != 0 {
					t.Error("the member says that it is alive")
				}
				if _, err := postgres.Join(t.Context(), address); !errors.Is(err, store.ErrSuperseded) {
					t.Errorf("join: %v", err)
				}
			})
		}
	}
}

// TestVersion_Session: a process whose connection was lost does not go on with a database of another version.
func TestVersion_Session(t *testing.T) {
	t.Parallel()
	address, w := throughWire(t)
	direct := strings.Replace(address, "&pool_max_conns=1", "", 1)
	share(t, direct)
	m := join(t, address)
	s := m.Stores()
	check(t, s.Journal.Append(t.Context(), ann(), begin("e1")))
	check(t, s.Journal.Append(t.Context(), ann(), follow("e1", 1))) // its statements are prepared from here on
	moveOn(t, direct)
	w.cut.Store(beforeRequest)
	wantOther(t, s.Journal.Append(t.Context(), ann(), follow("e1", 2)))
	if n := count(t, direct, `SELECT count(*) FROM members WHERE session <> 0`); n != 0 {
		t.Error("the member has begun a session")
	}
}

// TestVersion_Reader: who reads a database that another owns does not read on when it gets another version.
func TestVersion_Reader(t *testing.T) {
	t.Parallel()
	address := database(t)
	check(t, open(t, address).Stores().Journal.Append(t.Context(), ann(), begin("e1")))
	for name, does := range map[string]func(*postgres.DB){
		"Read": func(db *postgres.DB) {
			_, err := db.Stores().Executions.Get(t.Context(), ann(), "e1")
			wantOther(t, err)
		},
		"Pulse": func(db *postgres.DB) {
			feeling, cancel := context.WithCancel(t.Context())
			var felt sync.WaitGroup
			felt.Go(func() { db.Feel(feeling, time.Millisecond, time.Minute) })
			<-db.Broken()
			cancel()
			felt.Wait()
		},
	} {
		t.Run(name, func(t *testing.T) {
			reading, err := postgres.OpenReader(t.Context(), address)
			check(t, err)
			t.Cleanup(reading.Close)
			wantRows(t, reading, "e1", 1)
			admin(t, address, `INSERT INTO goose_db_version (version_id, is_applied) SELECT max(version_id) + 1, true FROM goose_db_version`)
			does(reading)
			<-reading.Broken()
			wantOther(t, reading.Err())
			admin(t, address, `DELETE FROM goose_db_version WHERE version_id = (SELECT max(version_id) FROM goose_db_version)`)
		})
	}
}

// TestVersion_Alone: nobody writes while a database is brought up to date. Transactions that are under way are waited for, later ones wait and are refused.
func TestVersion_Alone(t *testing.T) {
	t.Parallel()
	address := database(t)
	share(t, address)
	m, held := join(t, address), join(t, address)
	check(t, m.Stores().Journal.Append(t.Context(), ann(), begin("e1")))
	const gate = 4711
	admin(t, address, `CREATE TABLE marks (mark text)`)
	conn, err := pgx.Connect(t.Context(), address)
	check(t, err)
	t.Cleanup(func() { check(t, conn.Close(context.Background())) })
	_, err = conn.Exec(t.Context(), `SELECT pg_advisory_lock($1)`, gate)
	check(t, err)
	waits := func(lock int64) {
		for n := 0; n == 0; {
			check(t, conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
				AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND classid = $1 AND objid = $2`, lock>>32, lock&0xffffffff).Scan(&n))
		}
	}
	release := make(chan struct{})
	under := held.HoldTurn(t.Context(), release, `INSERT INTO marks VALUES ('before')`)
	all, last := files(t, fmt.Sprintf("SELECT pg_advisory_xact_lock(%d);\nINSERT INTO marks SELECT 'seen ' || count(*) FROM marks;", gate))
	brought := make(chan error, 1)
	go func() { brought <- postgres.MigrateBy(t.Context(), address, all, last) }()
	waits(postgres.EpochLock)
	close(release)
	check(t, <-under) // what had begun is committed before anything is changed
	waits(gate)
	appended, put := make(chan error, 1), make(chan error, 1)
	go func() { appended <- m.Stores().Journal.Append(t.Context(), ann(), follow("e1", 1)) }()
	waits(postgres.EpochLock)
	go func() {
		_, err := held.Stores().Blobs.Put(t.Context(), ann(), strings.NewReader(strings.Repeat("x", 10_000)))
		put <- err
	}()
	_, err = conn.Exec(t.Context(), `SELECT pg_advisory_unlock($1)`, gate)
	check(t, err)
	check(t, <-brought)
	wantOther(t, <-appended)
	wantOther(t, <-put)
	wantRows(t, m.DB, "e1", 1)
	if n := count(t, address, `SELECT count(*) FROM marks WHERE mark IN ('before', 'seen 1')`); n != 2 {
		t.Errorf("there are %d of the marks", n)
	}
}

// TestVersion_OlderPrograms: programs that do not look at the version are refused, by what they begin their transactions with, once this one has brought the
// database up to date.
func TestVersion_OlderPrograms(t *testing.T) {
	t.Parallel()
	address := empty(t)
	const before = 11
	check(t, postgres.MigrateBy(t.Context(), address, os.DirFS("migrations"), before))
	conn, err := pgx.Connect(t.Context(), address)
	check(t, err)
	t.Cleanup(func() { check(t, conn.Close(context.Background())) })
	_, err = conn.Exec(t.Context(), `INSERT INTO epochs (epoch, shared) VALUES (1, true)`)
	check(t, err)
	_, err = conn.Exec(t.Context(), `INSERT INTO members DEFAULT VALUES`)
	check(t, err)
	older := []string{
		`SELECT begin_commit(1, 1, 0, 0)`,                       // an owner's commit
		`SELECT begin_member_commit(1, 1, 0, 0)`,                // a member's
		`SELECT shared FROM epochs ORDER BY epoch DESC LIMIT 1`, // what a member begins to write values with
		`SELECT max(epoch) FROM epochs HAVING max(epoch) = 1`,   // and an owner: its epoch is the last
	}
	for _, text := range older {
		if tag, err := conn.Exec(t.Context(), text); err != nil || tag.RowsAffected() != 1 {
			t.Errorf("before: %s: %v, %v", text, tag, err)
		}
	}
	check(t, postgres.MigrateBy(t.Context(), address, os.DirFS("migrations"), before+1))
	for n, want := range []string{"TD001", "TD001", "42703", ""} {
		tag, err := conn.Exec(t.Context(), older[n])
		refused, _ := errors.AsType[*pgconn.PgError](err)
		if want == "" && (err != nil || tag.RowsAffected() != 0) || want != "" && (refused == nil || refused.Code != want) {
			t.Errorf("after: %s: %v, %v", older[n], tag, err)
		}
	}
	share(t, address)
	m := join(t, address)
	check(t, m.Stores().Journal.Append(t.Context(), ann(), begin("e1")))
}
