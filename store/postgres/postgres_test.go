package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"tandem/engine"
	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/store/postgres"
	"tandem/store/postgres/postgrestest"
	"tandem/store/storetest"
)

// server is the one that TestMain has started, ready the address of a database on it that is up to date, which is copied.
var (
	server *postgrestest.Server
	ready  string
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (code int) {
	if os.Getenv(postgrestest.Without) != "" {
		fmt.Printf("NOTICE: %s is set: the PostgreSQL driver is NOT TESTED in this run.\n", postgrestest.Without)
		return 0
	}
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
	if ready, err = makeReady(); err != nil {
		fmt.Println(err)
		return 1
	}
	return m.Run()
}

// makeReady makes a database that is up to date: to bring each test's own there would be most of what tests do.
func makeReady() (string, error) {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, server.URL)
	if err != nil {
		return "", err
	}
	_, err = conn.Exec(ctx, `CREATE DATABASE ready`)
	if err = errors.Join(err, conn.Close(ctx)); err != nil {
		return "", err
	}
	address := strings.Replace(server.URL, "/postgres?", "/ready?", 1)
	db, err := postgres.Open(ctx, address)
	if err != nil {
		return "", err
	}
	db.Close()
	return address, nil
}

// database makes a database of the test's own that is up to date, and returns its address.
func database(t testing.TB) string {
	t.Helper()
	return server.Copy(t, ready)
}

// empty makes a database of the test's own with nothing in it.
func empty(t testing.TB) string {
	t.Helper()
	return server.Database(t)
}

func open(t *testing.T, url string) *postgres.DB {
	t.Helper()
	db, err := postgres.Open(t.Context(), url)
	check(t, err)
	t.Cleanup(db.Close)
	return db
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestStore(t *testing.T) {
	t.Parallel()
	db := open(t, database(t))
	storetest.Run(t, func(*testing.T) store.Stores { return db.Stores() })
}

func TestEpochs(t *testing.T) {
	t.Parallel()
	storetest.RunEpochs(t, func(t *testing.T) func() store.Stores {
		url := database(t)
		return func() store.Stores { return open(t, url).Stores() }
	})
}

func TestOpen_ProcessesStartTogether(t *testing.T) {
	t.Parallel()
	url := empty(t)
	errs := make([]error, 4)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			db, err := postgres.Open(t.Context(), url)
			if err == nil {
				db.Close()
			}
			errs[i] = err
		})
	}
	wg.Wait()
	check(t, errors.Join(errs...))
}

func TestOpen_RefusesANewerDatabase(t *testing.T) {
	t.Parallel()
	url := database(t)
	open(t, url)
	conn, err := pgx.Connect(t.Context(), url)
	check(t, err)
	_, err = conn.Exec(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, true)")
	check(t, err)
	check(t, conn.Close(t.Context()))
	if _, err := postgres.Open(t.Context(), url); fault.CodeOf(err) != fault.Conflict || !strings.Contains(err.Error(), "99999") {
		t.Errorf("open: %v, want a refusal that names version 99999", err)
	}
}

func TestOpen_SaysThatNobodyAnswers(t *testing.T) {
	t.Parallel()
	if _, err := postgres.Open(t.Context(), "postgres://tandem@/postgres?host="+t.TempDir()); err == nil {
		t.Error("opened a database that is not there")
	}
	if _, err := postgres.Open(t.Context(), "postgres://%zz"); err == nil {
		t.Error("opened an address that is none")
	}
}

// TestAppend_Company looks with SQL at what comes with a row and is read by no interface here.
func TestAppend_Company(t *testing.T) {
	t.Parallel()
	url := database(t)
	j := open(t, url).Stores().Journal
	p := identity.Principal{Workspace: "ws", User: "ann"}
	start := func(id, hash string) error {
		return j.Append(t.Context(), p, &store.Append{Execution: id, Time: 5, Create: &store.Execution{ID: id, Status: engine.StatusRunning, Priority: 2},
			Key: &store.IdempotencyKey{Key: "k", RequestHash: hash}})
	}
	check(t, start("e1", "h"))
	var used *store.KeyUsedError
	if err := start("e2", "h"); !errors.As(err, &used) || !used.Same || used.Execution != "e1" {
		t.Errorf("repeated start: %v", err)
	}
	if err := start("e1", "other"); !errors.As(err, &used) || used.Same {
		t.Errorf("another start under the same key: %v", err)
	}
	lines := make([]store.LogLine, store.MaxLogLines+5)
	for i := range lines {
		lines[i] = store.LogLine{Activation: "a", Message: fmt.Sprint(i), Level: store.LevelWarn}
	}
	check(t, j.Append(t.Context(), p, &store.Append{Execution: "e1", After: 1, Time: 6, Logs: lines,
		Change:       &store.Change{Status: engine.StatusSuccess, Ended: 6, DurationMS: 1, Credits: 0.5},
		OpenLedger:   []store.LedgerEntry{{ID: "c", Execution: "e1", Tokens: 10}, {ID: "d", Execution: "e1", Tokens: 10}},
		SettleLedger: []store.Settlement{{ID: "c", Tokens: 7}}}))
	conn, err := pgx.Connect(t.Context(), url)
	check(t, err)
	defer conn.Close(context.WithoutCancel(t.Context()))
	for text, want := range map[string]string{
		`SELECT string_agg(concat_ws(' ', id, status, final, ended, credits, updated), ';') FROM executions`: "e1 SUCCESS 1 6 0.5 6",
		`SELECT concat_ws(' ', count(*), max(message::int), min(level)) FROM logs`:                           "1000 999 4",
		`SELECT concat_ws(' ', kept, dropped) FROM log_counts`:                                               "1000 5",
		`SELECT string_agg(concat_ws(' ', id, tokens, open), ';' ORDER BY id) FROM ledger`:                   "c 7 0;d 10 1",
		`SELECT string_agg(DISTINCT workspace_id, ';') FROM (SELECT workspace_id FROM logs UNION SELECT workspace_id FROM ledger
			UNION SELECT workspace_id FROM journal UNION SELECT workspace_id FROM log_counts UNION SELECT workspace_id FROM idempotency_keys) x`: "ws",
	} {
		var got string
		check(t, conn.QueryRow(t.Context(), text).Scan(&got))
		if got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// TestRead_NotText: what is not a text in UTF-8 is refused, and does not count as a failure of the database.
func TestRead_NotText(t *testing.T) {
	t.Parallel()
	s := open(t, database(t)).Stores()
	_, get := s.Executions.Get(t.Context(), ann(), "\xff")
	_, list := s.Executions.List(t.Context(), ann(), store.ExecutionQuery{WorkflowID: "\xff"})
	for _, err := range []error{get, list} {
		if fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%v, code %q", err, fault.CodeOf(err))
		}
	}
}
