package postgres_test

import (
	"context"
	"errors"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/store/postgres"
)

// admin runs a statement on the server of the tests.
func admin(t *testing.T, address, text string, args ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	check(t, err)
	_, err = conn.Exec(t.Context(), text, args...)
	check(t, errors.Join(err, conn.Close(t.Context())))
}

// owned opens a database for this process alone.
func owned(t *testing.T, address string) *postgres.Owned {
	t.Helper()
	db, err := postgres.OpenOwned(t.Context(), postgres.Options{URL: address})
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	return db
}

// TestOpen_SaysWhatIsWrong: every refusal names the flag, none the password.
func TestOpen_SaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	as := func(user, name string) string {
		u, err := url.Parse(server.URL)
		check(t, err)
		u.User, u.Path = url.UserPassword(user, "hunter2"), "/"+name
		return u.String()
	}
	admin(t, server.URL, `CREATE ROLE weak LOGIN`)
	admin(t, server.URL, `CREATE DATABASE weak`)
	admin(t, server.URL, `CREATE DATABASE ascii ENCODING 'SQL_ASCII' TEMPLATE template0`)
	for name, c := range map[string]struct {
		address string
		code    fault.Code
		want    string
	}{
		"Scheme":      {"mysql://tandem:hunter2@127.0.0.1/x", fault.Invalid, "does not begin with postgres://"},
		"Address":     {"postgres://tandem:hunter2%zz@127.0.0.1/x", fault.Invalid, "is not an address"},
		"Part":        {"postgres://tandem:hunter2@127.0.0.1/x?sslmode=perhaps", fault.Invalid, "cannot be read"},
		"Unreachable": {"postgres://tandem:hunter2@127.0.0.1:1/x", fault.NetworkError, `the database "x" on 127.0.0.1:1 cannot be reached`},
		"NoDatabase":  {as("tandem", "nowhere"), fault.NotFound, `there is no database "nowhere"`},
		"NoRole":      {as("nobody", "postgres"), fault.Unauthorized, `does not let the user "nobody" in`},
		"NoRight":     {as("weak", "weak"), fault.Forbidden, `the user "weak" lacks a right`},
		"Encoding":    {as("tandem", "ascii"), fault.Invalid, "the encoding SQL_ASCII"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := postgres.OpenOwned(t.Context(), postgres.Options{URL: c.address})
			if fault.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "--database") {
				t.Errorf("got %v, want %s and %q", err, c.code, c.want)
			}
			for ; err != nil; err = errors.Unwrap(err) {
				if strings.Contains(err.Error(), "hunter2") {
					t.Errorf("%v tells the password", err)
				}
			}
		})
	}
	for name, err := range map[string]error{
		"is PostgreSQL 14, and Tandem needs 15": postgres.Suits("140011", "UTF8", false),
		"the server is a standby":               postgres.Suits("170002", "UTF8", true),
	} {
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "--database") {
			t.Errorf("got %v, want %q", err, name)
		}
	}
	if err := postgres.Suits("150000", "UTF8", false); err != nil {
		t.Error(err)
	}
}

func TestOwned_OneProcess(t *testing.T) {
	t.Parallel()
	address := empty(t)
	if _, err := postgres.OpenOwned(t.Context(), postgres.Options{URL: address, Existing: true}); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("opened a database without data: %v", err)
	}
	look := func() postgres.Inspection {
		t.Helper()
		i, err := postgres.Inspect(t.Context(), address)
		check(t, err)
		return i
	}
	if i := look(); i.Version != 0 || i.Known == 0 || i.InUse || i.Size == 0 || i.Server == "" {
		t.Errorf("before: %+v", i)
	}
	db := owned(t, address)
	if i := look(); i.Version != i.Known || !i.InUse || i.Credentials != 0 {
		t.Errorf("while it is open: %+v", i)
	}
	_, err := postgres.OpenOwned(t.Context(), postgres.Options{URL: address})
	if f, ok := errors.AsType[*fault.Error](err); !ok || f.Details[store.InUse] == nil {
		t.Errorf("opened a database that is in use: %v", err)
	}
	if db.Err() != nil {
		t.Error("the refused process has taken the database away")
	}
	check(t, db.Close())
	if i := look(); i.InUse {
		t.Error("it is in use after it was closed")
	}
	again, err := postgres.OpenOwned(t.Context(), postgres.Options{URL: address, Existing: true})
	check(t, err)
	check(t, again.Close())
}

// holderOf is the server's process that has the lock of the owner; zero: nobody has.
func holderOf(t *testing.T, conn *pgx.Conn) (pid int) {
	t.Helper()
	check(t, conn.QueryRow(t.Context(), `SELECT coalesce(max(pid), 0) FROM pg_locks WHERE locktype = 'advisory' AND granted AND classid = $1 AND objid = $2
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`, postgres.OwnerLock>>32, postgres.OwnerLock&0xffffffff).Scan(&pid))
	return pid
}

// TestOwned_LockOfItsOwn: a connection with the lock that is lost without the server's knowledge has the lock still. It is not taken for another owner.
func TestOwned_LockOfItsOwn(t *testing.T) {
	t.Parallel()
	address, w := throughWire(t)
	db := owned(t, address)
	direct, err := url.Parse(address)
	check(t, err)
	direct.RawQuery = url.Values{"host": {filepath.Dir(w.target)}}.Encode()
	conn, err := pgx.Connect(t.Context(), direct.String())
	check(t, err)
	defer conn.Close(context.WithoutCancel(t.Context()))
	first := holderOf(t, conn)
	w.vanish()
	for second := first; second == 0 || second == first; second = holderOf(t, conn) { // it ends when there is another connection with the lock
		if db.Err() != nil {
			t.Fatal(db.Err())
		}
		pause()
	}
	w.silent.Store(false)
	if db.Err() != nil {
		t.Error(db.Err())
	}
}

// TestOwned_LostLock ends the connection that has the lock: it is made anew, unless somebody else was waiting for the lock.
func TestOwned_LostLock(t *testing.T) {
	t.Parallel()
	address := database(t)
	db := owned(t, address)
	conn, err := pgx.Connect(t.Context(), address)
	check(t, err)
	defer conn.Close(context.WithoutCancel(t.Context()))
	holder := func() int { return holderOf(t, conn) }
	first := holder()
	admin(t, address, `SELECT pg_terminate_backend($1)`, first)
	second := holder()
	for second == 0 || second == first { // it ends when the lock is back
		pause()
		second = holder()
	}
	if db.Err() != nil {
		t.Fatal(db.Err())
	}
	other, err := pgx.Connect(t.Context(), address)
	check(t, err)
	defer other.Close(context.WithoutCancel(t.Context()))
	waiting := make(chan error, 1)
	go func() { // it ends when it has the lock
		_, err := other.Exec(t.Context(), `SELECT pg_advisory_lock($1)`, postgres.OwnerLock)
		waiting <- err
	}()
	for waits := false; !waits; pause() {
		check(t, conn.QueryRow(t.Context(), `SELECT EXISTS (SELECT 1 FROM pg_locks WHERE pid = $1 AND NOT granted)`, other.PgConn().PID()).Scan(&waits))
	}
	admin(t, address, `SELECT pg_terminate_backend($1)`, second)
	check(t, <-waiting)
	admin(t, address, `INSERT INTO epochs (epoch) SELECT max(epoch) + 1 FROM epochs`)
	<-db.Broken()
	if !errors.Is(db.Err(), store.ErrSuperseded) {
		t.Errorf("the lock is another's: %v", db.Err())
	}
	if err := db.Stores().Journal.Append(t.Context(), ann(), &store.Append{Execution: "e1", Create: &store.Execution{ID: "e1"}}); !errors.Is(err, store.ErrSuperseded) {
		t.Errorf("written without owning the database: %v", err)
	}
}

// TestAwait waits for the lock of another: while it waits it holds back nothing in the server, and neither the loss of its connection nor that of the
// server ends it. What does not pass by itself does.
func TestAwait(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	owner, err := pgx.Connect(t.Context(), c.url)
	check(t, err)
	_, err = owner.Exec(t.Context(), `SELECT pg_advisory_lock($1)`, postgres.OwnerLock)
	check(t, err)
	got := make(chan error, 1)
	go func() { // it ends when it has the lock
		lock, err := postgres.Await(t.Context(), c.url)
		if err == nil {
			err = lock.Close()
		}
		got <- err
	}()
	waits := func(not uint32) (pid uint32) {
		t.Helper()
		asked := map[time.Time]bool{}
		for ; len(asked) < 5; pause() { // the first may be that the statement is prepared
			var state string
			var since time.Time
			var holdsBack bool
			err := owner.QueryRow(t.Context(), `SELECT pid, state, query_start, coalesce(wait_event, '') = 'advisory' FROM pg_stat_activity
				WHERE application_name LIKE 'tandem owner%' AND query LIKE '%advisory%' AND pid <> $1`, int64(not)).Scan(&pid, &state, &since, &holdsBack)
			if holdsBack {
				t.Fatal("it waits inside a statement")
			}
			if errors.Is(err, pgx.ErrNoRows) {
				continue
			}
			check(t, err)
			if state == "idle" {
				asked[since] = true
			}
		}
		return pid
	}
	first := waits(0)
	_, err = owner.Exec(t.Context(), `SELECT pg_terminate_backend($1)`, int64(first))
	check(t, err)
	waits(first)
	c.stop(t, "fast")
	c.start(t)
	check(t, <-got)
	u, err := url.Parse(c.url)
	check(t, err)
	u.Path = "/nowhere"
	if _, err := postgres.Await(t.Context(), u.String()); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("waited for a database that is not there: %v", err)
	}
}

// TestOpen_SettingsOfOthers: what the role or the database have set weakens neither the fence between processes nor a commit.
func TestOpen_SettingsOfOthers(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			address := empty(t) // the settings are there before the tables are
			config, err := pgx.ParseConfig(address)
			check(t, err)
			admin(t, address, `ALTER DATABASE `+config.Database+` SET default_transaction_isolation = '`+level+`'`)
			admin(t, address, `ALTER DATABASE `+config.Database+` SET synchronous_commit = off`)
			db := open(t, address)
			check(t, db.Stores().Journal.Append(t.Context(), ann(), begin("e1")))
			if got, err := db.Setting(t.Context(), "synchronous_commit"); err != nil || got != "on" {
				t.Errorf("synchronous_commit is %q, %v", got, err)
			}
			// Somebody takes an epoch while transactions of this process wait for it.
			taker, err := pgx.Connect(t.Context(), address)
			check(t, err)
			defer taker.Close(context.WithoutCancel(t.Context()))
			tx, err := taker.Begin(t.Context())
			check(t, err)
			_, err = tx.Exec(t.Context(), `SELECT pg_advisory_xact_lock($1)`, postgres.EpochLock)
			check(t, err)
			results := make(chan error, 2)
			go func() { results <- db.Stores().Journal.Append(t.Context(), ann(), begin("e2")) }() // both end with the taker's transaction
			go func() {
				_, err := db.Stores().Blobs.Put(t.Context(), ann(), strings.NewReader("x"))
				results <- err
			}()
			for waiting := 0; waiting < 2; pause() {
				check(t, tx.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
					AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`).Scan(&waiting))
			}
			_, err = tx.Exec(t.Context(), `INSERT INTO epochs (epoch) SELECT max(epoch) + 1 FROM epochs`)
			check(t, err)
			check(t, tx.Commit(t.Context()))
			for range 2 {
				if err := <-results; !errors.Is(err, store.ErrSuperseded) {
					t.Errorf("written in an epoch that is over: %v", err)
				}
			}
		})
	}
	t.Run("StrongerStays", func(t *testing.T) {
		t.Parallel()
		address := database(t)
		config, err := pgx.ParseConfig(address)
		check(t, err)
		admin(t, address, `ALTER DATABASE `+config.Database+` SET synchronous_commit = remote_apply`)
		if got, err := open(t, address).Setting(t.Context(), "synchronous_commit"); err != nil || got != "remote_apply" {
			t.Errorf("synchronous_commit is %q, %v", got, err)
		}
	})
}

// TestOpen_StuckTransaction: a transaction that an earlier process has left open, as when its machine is gone without a word, does not keep others from
// taking over the database.
func TestOpen_StuckTransaction(t *testing.T) {
	t.Parallel()
	address := database(t)
	db := open(t, address)
	if got, err := db.Setting(t.Context(), "idle_in_transaction_session_timeout"); err != nil || got != "3min" {
		t.Errorf("a transaction may be idle for %q, %v", got, err)
	}
	stuck, err := pgx.Connect(t.Context(), address)
	check(t, err)
	tx, err := stuck.Begin(t.Context())
	check(t, err)
	_, err = tx.Exec(t.Context(), `SELECT pg_advisory_xact_lock_shared($1)`, postgres.EpochLock)
	check(t, err)
	check(t, open(t, address).Stores().Journal.Append(t.Context(), ann(), begin("e1")))
	if err := tx.Commit(t.Context()); err == nil {
		t.Error("the transaction that was left open is committed")
	}
	check(t, stuck.Close(t.Context()))
}

func ann() identity.Principal { return identity.Principal{Workspace: "ws", User: "ann"} }
