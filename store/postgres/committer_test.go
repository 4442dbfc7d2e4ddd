package postgres_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"tandem/engine"
	"tandem/fault"
	"tandem/store"
	"tandem/store/postgres"
)

// begin is the first row of an execution, follow one that comes after another.
func begin(id string) *store.Append {
	return &store.Append{Execution: id, Time: 1, Body: []byte("row 1"), Create: &store.Execution{ID: id, Status: engine.StatusRunning}}
}

func follow(id string, after uint64) *store.Append {
	return &store.Append{Execution: id, After: after, Time: 1, Body: fmt.Appendf(nil, "row %d", after+1)}
}

// wantRows fails unless an execution has so many rows, each as it was written.
func wantRows(t *testing.T, db *postgres.DB, id string, want uint64) {
	t.Helper()
	n := uint64(0)
	for row, err := range db.Stores().Journal.Rows(t.Context(), ann(), id, 0) {
		check(t, err)
		if n++; row.Seq != n || string(row.Body) != fmt.Sprintf("row %d", n) {
			t.Fatalf("row %d of %s is row %d: %q", n, id, row.Seq, row.Body)
		}
	}
	if n != want {
		t.Errorf("%s has %d rows, want %d", id, n, want)
	}
}

// together runs calls while the committer stands, so that they share the next transaction.
func together(t *testing.T, db *postgres.DB, calls ...func() error) []error {
	t.Helper()
	release, errs := make(chan struct{}), make([]error, len(calls))
	held := db.Hold(t.Context(), release)
	var wg sync.WaitGroup
	for i, call := range calls {
		wg.Go(func() { errs[i] = call() })
	}
	for db.Queued() < len(calls) {
		runtime.Gosched()
	}
	close(release)
	wg.Wait()
	check(t, <-held)
	return errs
}

func TestCommitter_OneTransactionOneMessage(t *testing.T) {
	t.Parallel()
	url := database(t)
	db := open(t, url)
	heard := listen(t, url)
	j := db.Stores().Journal
	if first := <-heard; first != nil {
		t.Fatalf("the first call has %v", first)
	}
	const n = 50
	var starts, steps []func() error
	var want []store.Fresh
	for i := range n {
		id := fmt.Sprintf("e%02d", i)
		starts = append(starts, func() error { return j.Append(t.Context(), ann(), begin(id)) })
		steps = append(steps, func() error { return j.Append(t.Context(), ann(), follow(id, 1), follow(id, 2)) })
		want = append(want, store.Fresh{Ref: store.Ref{Workspace: "ws", Execution: id}, Seq: 3})
	}
	check(t, errors.Join(together(t, db, starts...)...))
	if got := <-heard; len(got) != n {
		t.Errorf("%d executions have begun, want %d", len(got), n)
	}
	transactions, calls := db.Commits()
	check(t, errors.Join(together(t, db, steps...)...))
	got := <-heard
	slices.SortFunc(got, func(a, b store.Fresh) int { return strings.Compare(a.Execution, b.Execution) })
	if !slices.Equal(got, want) {
		t.Errorf("heard of %v, want %v", got, want)
	}
	if now, all := db.Commits(); now != transactions+1 || all != calls+n {
		t.Errorf("%d transactions held %d calls, want 1 and %d", now-transactions, all-calls, n)
	}
	for i := range n {
		wantRows(t, db, fmt.Sprintf("e%02d", i), 3)
	}
}

// TestCommitter_OneSpoilsNothing: a part that the server refuses, and one that refuses after it has written, are undone alone.
func TestCommitter_OneSpoilsNothing(t *testing.T) {
	t.Parallel()
	db := open(t, database(t))
	s := db.Stores()
	check(t, s.Journal.Append(t.Context(), ann(), begin("e1")))
	huge := begin("huge")
	huge.Execution = ""
	for range 500 { // more than an index takes
		huge.Execution += rand.Text()
	}
	huge.Create.ID = huge.Execution
	errs := together(t, db,
		func() error { return s.Journal.Append(t.Context(), ann(), follow("e1", 1)) },
		func() error { return s.Journal.Append(t.Context(), ann(), huge) },
		func() error {
			_, _, err := s.Inbox.Deliver(t.Context(), ann(), store.InboxItem{Execution: "e1", Kind: "k", Body: []byte("b")})
			return err
		},
		func() error { return s.Journal.Append(t.Context(), ann(), begin("e2")) },
		func() error { return s.Journal.Append(t.Context(), ann(), begin("e1")) },
	)
	for i, refused := range []bool{false, true, false, false, true} {
		if (errs[i] != nil) != refused {
			t.Errorf("part %d: %v", i, errs[i])
		}
	}
	wantRows(t, db, "e1", 2)
	wantRows(t, db, "e2", 1)
	if items, err := s.Inbox.Pending(t.Context(), ann(), "e1"); err != nil || len(items) != 1 {
		t.Errorf("the inbox has %v, %v", items, err)
	}
	if page, err := s.Executions.List(t.Context(), ann(), store.ExecutionQuery{}); err != nil || page.Total != 2 {
		t.Errorf("%d executions are counted, %v", page.Total, err)
	}
}

// TestCommitter_ExecutionOfAnother: when somebody makes the same execution behind the committer's back, nothing of the refused transaction is kept.
func TestCommitter_ExecutionOfAnother(t *testing.T) {
	t.Parallel()
	address := database(t)
	db := open(t, address)
	s := db.Stores()
	check(t, s.Journal.Append(t.Context(), ann(), begin("e1")))
	admin(t, address, `CREATE FUNCTION first() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE other executions; BEGIN
		IF NEW.id = 'e2' AND pg_trigger_depth() = 1 THEN other := NEW; other.n := NEW.n + 1000000; INSERT INTO executions SELECT other.*; END IF;
		RETURN NEW; END $$`)
	admin(t, address, `CREATE TRIGGER first BEFORE INSERT ON executions FOR EACH ROW EXECUTE FUNCTION first()`)
	if err := s.Journal.Append(t.Context(), ann(), begin("e2")); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("append: %v, want a conflict", err)
	}
	conn, err := pgx.Connect(t.Context(), address)
	check(t, err)
	defer conn.Close(context.WithoutCancel(t.Context()))
	var rows, commits int
	check(t, conn.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM journal), (SELECT max(commits) FROM epochs)`).Scan(&rows, &commits))
	if rows != 1 || commits != 1 {
		t.Errorf("there are %d rows after %d commits, want one of each", rows, commits)
	}
	check(t, s.Journal.Append(t.Context(), ann(), follow("e1", 1)))
	wantRows(t, db, "e1", 2)
}

// listen hears what a connection of its own is told, until the test ends.
func listen(t *testing.T, url string) <-chan []store.Fresh {
	t.Helper()
	news, err := postgres.NewsOf(url, nil, nil)
	check(t, err)
	heard, ended := make(chan []store.Fresh, 100), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ended <- news.Listen(ctx, func(list []store.Fresh) { heard <- list }) }() // it ends with the test
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("listening ended with %v", err)
		}
	})
	return heard
}

func TestNews_LostConnection(t *testing.T) {
	t.Parallel()
	url := database(t)
	db := open(t, url)
	heard := listen(t, url)
	<-heard
	j := db.Stores().Journal
	check(t, j.Append(t.Context(), ann(), begin("e1")))
	if got := <-heard; len(got) != 1 || got[0].Execution != "e1" || got[0].Seq != 1 {
		t.Errorf("heard %v", got)
	}
	conn, err := pgx.Connect(t.Context(), url)
	check(t, err)
	defer conn.Close(context.WithoutCancel(t.Context()))
	var ended int
	check(t, conn.QueryRow(t.Context(), `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()`).Scan(&ended))
	if ended != 1 {
		t.Fatalf("%d connections were ended", ended)
	}
	check(t, j.Append(t.Context(), ann(), follow("e1", 1))) // perhaps nobody hears of it
	for got := range heard {
		if got == nil { // read again: whatever was missed is there
			break
		}
	}
	wantRows(t, db, "e1", 2)
	check(t, j.Append(t.Context(), ann(), follow("e1", 2)))
	for got := range heard {
		if len(got) == 1 && got[0].Seq == 3 {
			break
		}
	}
}

// TestNews_TooMany: what does not fit into one message, or cannot be told in it, is said to be anything.
func TestNews_TooMany(t *testing.T) {
	t.Parallel()
	url := database(t)
	db := open(t, url)
	heard := listen(t, url)
	<-heard
	j := db.Stores().Journal
	var calls []func() error
	for i := range 200 {
		id := fmt.Sprintf("execution-%03d-%s", i, strings.Repeat("x", 40))
		calls = append(calls, func() error { return j.Append(t.Context(), ann(), begin(id)) })
	}
	check(t, errors.Join(together(t, db, calls...)...))
	if got := <-heard; got != nil {
		t.Errorf("heard of %d", len(got))
	}
	check(t, j.Append(t.Context(), ann(), begin("a\x1fb")))
	if got := <-heard; got != nil {
		t.Errorf("heard of %v", got)
	}
	check(t, j.Append(t.Context(), ann(), begin("a\x00\x01b")))
	if got := <-heard; len(got) != 1 || got[0].Execution != "a\x00\x01b" {
		t.Errorf("heard of %v", got)
	}
}
