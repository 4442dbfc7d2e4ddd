package sqlite_test

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"

	"tandem/engine"
	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/store/sqlite"
)

func ann() identity.Principal { return identity.Principal{Workspace: "ws", User: "ann"} }

func start(id string) *store.Append {
	return &store.Append{Execution: id, Time: 1, Body: []byte("1"), Create: &store.Execution{ID: id, Status: engine.StatusRunning}}
}

func step(id string, after uint64) *store.Append {
	return &store.Append{Execution: id, After: after, Time: 1, Body: []byte("n")}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func count(t *testing.T, db *sqlite.DB, id string) int {
	t.Helper()
	n := 0
	for _, err := range db.Stores().Journal.Rows(t.Context(), ann(), id, 0) {
		check(t, err)
		n++
	}
	return n
}

// together has all functions wait for the committer at the same time, so that they share one transaction.
func together(t *testing.T, db *sqlite.DB, calls ...func() error) []error {
	t.Helper()
	release := make(chan struct{})
	held := db.Hold(t.Context(), release)
	errs := make([]error, len(calls))
	var wg sync.WaitGroup
	for i, call := range calls {
		wg.Go(func() { errs[i] = call() })
		for db.Queued() <= i {
			runtime.Gosched()
		}
	}
	close(release)
	wg.Wait()
	check(t, <-held)
	return errs
}

func TestWriter_GroupsWhatWaits(t *testing.T) {
	t.Parallel()
	db := open(t)
	j := db.Stores().Journal
	const n = 100
	var calls []func() error
	for i := range n {
		calls = append(calls, func() error { return j.Append(t.Context(), ann(), start(fmt.Sprint("e", i))) })
	}
	transactions, held := db.Commits()
	for _, err := range together(t, db, calls...) {
		check(t, err)
	}
	after, all := db.Commits()
	if after-transactions != 2 || all-held != n+1 {
		t.Errorf("%d calls took %d transactions, want 2: one of the call that held the committer, one of all others", all-held, after-transactions)
	}
	// Alone, each has its own at once: there is nothing to wait for.
	transactions, _ = db.Commits()
	for i := range 3 {
		check(t, j.Append(t.Context(), ann(), step("e0", uint64(i+1))))
	}
	if after, _ := db.Commits(); after-transactions != 3 {
		t.Errorf("3 calls in turn took %d transactions", after-transactions)
	}
}

// What a process that is gone had reserved counts as used; nobody knows what it has really used.
func TestLedger_OpenEntriesOfADeadProcessAreSpent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
	check(t, err)
	check(t, db.Stores().Ledger.Open(t.Context(), ann(), store.LedgerEntry{ID: "c", Profile: "m", Tokens: 40}))
	check(t, db.Close())
	db, err = sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	if sum, err := db.Stores().Ledger.Sum(t.Context(), ann(), store.LedgerQuery{Profile: "m"}); err != nil || sum.OpenCalls != 0 || sum.Tokens != 40 {
		t.Errorf("sum %+v, %v", sum, err)
	}
}

// Rows of transactions that few share and of those that many share lie in different tables; a journal is one all the same.
func TestWriter_AJournalInTwoOrdersIsOne(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
	check(t, err)
	const n, rows = 5, 40
	append := func(e int, a *store.Append) func() error {
		a.Body = fmt.Appendf(nil, "%d of e%d", a.After+1, e)
		return func() error { return db.Stores().Journal.Append(t.Context(), ann(), a) }
	}
	for e := range n {
		check(t, append(e, start(fmt.Sprint("e", e)))())
	}
	for after := uint64(1); after < rows; after++ {
		if after == rows/2 { // what is remembered of the heads is found again in both
			check(t, db.Close())
			db, err = sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
			check(t, err)
		}
		if after == 5 || after == 32 || after == 33 {
			readsWhole(t, db, n, int(after), after <= 32)
		}
		var calls []func() error
		for e := range n {
			calls = slices.Insert(calls, 0, append(e, step(fmt.Sprint("e", e), after)))
		}
		if after/3%2 == 0 {
			for _, err := range together(t, db, calls...) {
				check(t, err)
			}
			continue
		}
		for _, call := range calls {
			check(t, call())
		}
	}
	t.Cleanup(func() { check(t, db.Close()) })
	for e := range n {
		seq := uint64(17)
		for row, err := range db.Stores().Journal.Rows(t.Context(), ann(), fmt.Sprint("e", e), seq) {
			check(t, err)
			if seq++; row.Seq != seq || string(row.Body) != fmt.Sprintf("%d of e%d", seq, e) {
				t.Fatalf("row %d of e%d is %d: %q", seq, e, row.Seq, row.Body)
			}
		}
		if seq != rows {
			t.Errorf("e%d ends at row %d, want %d", e, seq, rows)
		}
		if err := append(e, step(fmt.Sprint("e", e), rows-1))(); fault.CodeOf(err) != fault.Conflict {
			t.Errorf("a second row %d of e%d: %v", rows, e, err)
		}
	}
	for _, table := range []string{"journal", "journal_in_order"} {
		if got, err := db.Rows(t.Context(), table); err != nil || got == 0 {
			t.Errorf("%s has %d rows, %v: the test proves nothing", table, got, err)
		}
	}
}

// Rows with which executions begin need no index, however many share the transaction: new executions come behind all others. What follows
// in company does.
func TestWriter_BeginningsAreKeptByExecution(t *testing.T) {
	t.Parallel()
	db := open(t)
	const n, rows = 20, 3
	var begin, goOn []func() error
	for e := range n {
		id := fmt.Sprint("e", e)
		begin = append(begin, func() error {
			return db.Stores().Journal.Append(t.Context(), ann(), start(id), step(id, 1), step(id, 2))
		})
		goOn = append(goOn, func() error { return db.Stores().Journal.Append(t.Context(), ann(), step(id, rows)) })
	}
	for _, stage := range []struct {
		calls                  []func() error
		byExecution, byArrival int
	}{{begin, n * rows, 0}, {goOn, n * rows, n}} {
		for _, err := range together(t, db, stage.calls...) {
			check(t, err)
		}
		for table, want := range map[string]int{"journal": stage.byExecution, "journal_in_order": stage.byArrival} {
			if got, err := db.Rows(t.Context(), table); err != nil || int(got) != want {
				t.Errorf("%s has %d rows, %v, want %d", table, got, err, want)
			}
		}
	}
	readsWhole(t, db, n, rows+1, true)
}

// readsWhole checks that executions are read with all of their rows in order, if these are few.
func readsWhole(t *testing.T, db *sqlite.DB, executions, rows int, few bool) {
	t.Helper()
	for e := range executions {
		id := fmt.Sprint("e", e)
		want, err := db.Stores().Executions.Get(t.Context(), ann(), id)
		check(t, err)
		got, list, whole, err := db.Stores().Executions.GetWithRows(t.Context(), ann(), id)
		if err != nil || got != want || whole != few || !few && list != nil {
			t.Fatalf("with %d rows it is read as %+v and %d rows, whole: %v, %v; want %+v", rows, got, len(list), whole, err, want)
		}
		if !few {
			continue
		}
		var read []store.Row
		for row, err := range db.Stores().Journal.Rows(t.Context(), ann(), id, 0) {
			check(t, err)
			read = append(read, row)
		}
		if len(list) != rows || !reflect.DeepEqual(list, read) {
			t.Fatalf("with %d rows it is read with %+v, want %+v", rows, list, read)
		}
	}
}

func TestWriter_OneRefusalSpoilsNothing(t *testing.T) {
	t.Parallel()
	db := open(t)
	j := db.Stores().Journal
	check(t, j.Append(t.Context(), ann(), start("e")))
	halfway := errors.New("changed its mind")
	errs := together(t, db,
		func() error { return j.Append(t.Context(), ann(), step("e", 1)) },
		func() error { return j.Append(t.Context(), ann(), step("e", 1)) }, // too late: the one before is in the same transaction
		func() error { return j.Append(t.Context(), ann(), step("e", 2)) },
		func() error { return j.Append(t.Context(), ann(), step("unknown", 1)) },
		// These have written before they are refused, so the transaction is run again with care.
		func() error {
			return db.Exec(t.Context(), halfway, "INSERT INTO workspaces (workspace_id, name, created) VALUES ('half', 'x', 1)")
		},
		func() error {
			return db.Exec(t.Context(), nil, "INSERT INTO workspaces (workspace_id, name, created) VALUES ('twice', 'x', 1)", "INSERT INTO workspaces (workspace_id, name, created) VALUES ('twice', 'x', 1)")
		},
		func() error { return j.Append(t.Context(), ann(), start("new")) },
		func() error { return j.Append(t.Context(), ann(), step("new", 1)) },
	)
	for i, want := range []error{nil, store.ErrConflict, nil, store.ErrNotFound, halfway, fault.New(fault.Invalid, ""), nil, nil} {
		if !errors.Is(errs[i], want) {
			t.Errorf("call %d: %v, want %v", i, errs[i], want)
		}
	}
	if got := []int{count(t, db, "e"), count(t, db, "new")}; got[0] != 3 || got[1] != 2 {
		t.Errorf("rows: %v, want 3 and 2", got)
	}
	all, err := db.Stores().Workspaces.List(t.Context(), identity.System(""))
	check(t, err)
	if len(all) != 0 {
		t.Errorf("what was refused halfway has left %v", all)
	}
	check(t, db.Err())
	check(t, j.Append(t.Context(), ann(), step("e", 3)))
}

func TestWriter_UndoesAnAppendThatFailsHalfway(t *testing.T) {
	t.Parallel()
	db := open(t)
	j := db.Stores().Journal
	check(t, db.Exec(t.Context(), nil, "CREATE TRIGGER refuse BEFORE INSERT ON timers WHEN NEW.id = 'bad' BEGIN SELECT RAISE(ABORT, 'no'); END"))
	bad := func(a *store.Append) *store.Append {
		a.SetTimers = []store.Timer{{ID: "good"}, {ID: "bad"}}
		return a
	}
	check(t, j.Append(t.Context(), ann(), start("old")))
	errs := together(t, db,
		func() error { return j.Append(t.Context(), ann(), bad(start("new"))) },
		func() error { return j.Append(t.Context(), ann(), bad(step("old", 1))) },
		func() error { return j.Append(t.Context(), ann(), start("other")) },
	)
	for i, want := range []error{fault.New(fault.Invalid, ""), fault.New(fault.Invalid, ""), nil} {
		if !errors.Is(errs[i], want) {
			t.Errorf("append %d: %v, want %v", i, errs[i], want)
		}
	}
	// Neither the rows, nor the timers, nor the committer's idea of where the journals end has changed.
	for id, want := range map[string]int{"new": 0, "old": 1, "other": 1} {
		if got := count(t, db, id); got != want {
			t.Errorf("%q has %d rows, want %d", id, got, want)
		}
	}
	timers, err := db.Stores().Timers.Upcoming(t.Context(), ann(), store.Timer{}, 10)
	check(t, err)
	if len(timers) != 0 {
		t.Errorf("timers: %v", timers)
	}
	check(t, j.Append(t.Context(), ann(), start("new")))
	check(t, j.Append(t.Context(), ann(), step("old", 1)))
	check(t, db.Err())
}

func TestWriter_DiskErrorStopsTheStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := openDir(t, dir)
	s := db.Stores()
	check(t, s.Journal.Append(t.Context(), ann(), start("e")))
	check(t, db.BeforeCommit(t.Context(), func() error { return syscall.EIO }))
	broken := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, store.ErrBroken) || fault.CodeOf(err) != fault.Internal {
			t.Errorf("%s: %v, want an error of a broken store", what, err)
		}
	}
	err := s.Journal.Append(t.Context(), ann(), step("e", 1))
	broken("the append that met the error", err)
	if !errors.Is(err, syscall.EIO) {
		t.Errorf("the cause is lost: %v", err)
	}
	<-db.Broken()
	broken("state", db.Err())
	broken("a later append", s.Journal.Append(t.Context(), ann(), step("e", 1)))
	_, err = s.Executions.Get(t.Context(), ann(), "e")
	broken("a read", err)
	_, err = s.Executions.List(t.Context(), ann(), store.ExecutionQuery{})
	broken("a listing", err)
	_, err = s.Blobs.Put(t.Context(), ann(), nil)
	broken("a blob", err)
	for _, err := range s.Journal.Rows(t.Context(), ann(), "e", 0) {
		broken("rows", err)
	}
	check(t, db.Close())
	// A restart finds what was on disk before.
	db = openDir(t, dir)
	if n := count(t, db, "e"); n != 1 {
		t.Errorf("%d rows after the restart, want 1", n)
	}
	check(t, db.Stores().Journal.Append(t.Context(), ann(), step("e", 1)))
}

func TestWriter_FullDiskLosesNothing(t *testing.T) {
	t.Parallel()
	db := open(t)
	j := db.Stores().Journal
	check(t, j.Append(t.Context(), ann(), start("e")))
	// SQLite itself refuses to grow.
	check(t, db.Exec(t.Context(), nil, "PRAGMA max_page_count = 1"))
	large := step("e", 1)
	large.Body = make([]byte, 1<<20)
	for range 2 {
		err := j.Append(t.Context(), ann(), large)
		if e, ok := errors.AsType[*fault.Error](err); !ok || !e.Retryable || !errors.Is(err, store.ErrFull) {
			t.Fatalf("append without room: %v, want a retryable error of a full disk", err)
		}
	}
	check(t, db.Err())
	if n := count(t, db, "e"); n != 1 {
		t.Errorf("%d rows without room, want 1", n)
	}
	check(t, db.Exec(t.Context(), nil, "PRAGMA max_page_count = 4294967294"))
	check(t, j.Append(t.Context(), ann(), large))
	if n := count(t, db, "e"); n != 2 {
		t.Errorf("%d rows with room again, want 2", n)
	}
}

func TestWriter_NearlyFullDiskTakesNoStarts(t *testing.T) {
	t.Parallel()
	db := open(t)
	j := db.Stores().Journal
	check(t, j.Append(t.Context(), ann(), start("e")))
	check(t, db.FreeSpace(t.Context(), 1<<20))
	if err := j.Append(t.Context(), ann(), start("e2")); !errors.Is(err, store.ErrFull) {
		t.Errorf("start: %v, want an error of a full disk", err)
	}
	check(t, j.Append(t.Context(), ann(), step("e", 1)))
	check(t, db.FreeSpace(t.Context(), 1<<40))
	check(t, j.Append(t.Context(), ann(), start("e2")))
}

func TestWriter_HeadsAreBoundedAndFoundAgain(t *testing.T) {
	t.Parallel()
	db := open(t)
	j := db.Stores().Journal
	const n = 2*sqlite.MaxHeads + 500
	var wg sync.WaitGroup
	for g := range 50 {
		wg.Go(func() {
			for i := g; i < n; i += 50 {
				if err := j.Append(t.Context(), ann(), start(fmt.Sprint("e", i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if known, err := db.Remembered(t.Context()); err != nil || known > 2*sqlite.MaxHeads+2048 {
		t.Errorf("the committer remembers %d heads of %d executions (%v)", known, n, err)
	}
	for _, id := range []string{"e0", fmt.Sprint("e", n/2), fmt.Sprint("e", n-1)} {
		check(t, j.Append(t.Context(), ann(), step(id, 1)))
	}
	check(t, db.ForgetHeads(t.Context()))
	if err := j.Append(t.Context(), ann(), step("e0", 1)); !errors.Is(err, store.ErrConflict) {
		t.Errorf("append after the heads were forgotten: %v, want a conflict", err)
	}
	check(t, j.Append(t.Context(), ann(), step("e0", 2)))
	if err := j.Append(t.Context(), ann(), start("e7")); !errors.Is(err, store.ErrConflict) {
		t.Errorf("second start: %v, want a conflict", err)
	}
}

// TestWriter_APanicStopsTheStore: who called may catch the panic, so the others must not wait for a leader that is gone.
func TestWriter_APanicStopsTheStore(t *testing.T) {
	t.Parallel()
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: t.TempDir()})
	check(t, err)
	journal := db.Stores().Journal
	check(t, db.BeforeCommit(t.Context(), func() error { panic("a defect") }))
	for i := range 3 {
		if err := journal.Append(t.Context(), ann(), start(fmt.Sprint("x", i))); !errors.Is(err, store.ErrBroken) {
			t.Errorf("write %d ends with %v, want a store that has stopped", i, err)
		}
	}
	<-db.Broken()
	check(t, db.Close())
}
