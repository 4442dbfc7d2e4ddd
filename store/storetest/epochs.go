package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"tandem/fault"
	"tandem/store"
)

// Reopen gives a test a database of its own. Each call of what it returns opens that database as another process would,
// although those who have it open still do. Whatever is opened is closed with t.Cleanup, where its end may have errors.
type Reopen func(t *testing.T) func() store.Stores

// RunEpochs holds a driver to what happens when a second process opens a database: the later one owns it, the earlier one
// writes nothing more, and a journal has one row of each number.
func RunEpochs(t *testing.T, reopen Reopen) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, open func() store.Stores)
	}{
		{"Epochs/TheLaterProcessOwns", testTakeover},
		{"Epochs/OneRowOfANumber", testTakeoverInTheMidst},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, reopen(t))
		})
	}
}

func wantSuperseded(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, store.ErrSuperseded) || !errors.Is(err, store.ErrBroken) {
		t.Errorf("%s: %v, want that another process has taken over", what, err)
	}
	if isConflict(err) {
		t.Errorf("%s: %v looks like a conflict, after which one reads and tries again", what, err)
	}
}

func testTakeover(t *testing.T, open func() store.Stores) {
	p := tenant(t)
	older := open()
	started(t, older, p, "e", func(a *store.Append) { a.SetTimers = []store.Timer{{ID: "t", Until: 5}} })
	mustAppend(t, older, p, next("e", 1))
	newer := open()
	// A refusal for another reason would be an answer too, and it might be a wrong one.
	wantSuperseded(t, "stale append by the earlier process", older.Journal.Append(t.Context(), p, next("e", 1)))
	wantSuperseded(t, "append by the earlier process", older.Journal.Append(t.Context(), p, next("e", 2)))
	wantSuperseded(t, "start by the earlier process", older.Journal.Append(t.Context(), p, first("other")))
	_, _, err := older.Inbox.Deliver(t.Context(), p, store.InboxItem{Execution: "e", Kind: "k", Time: 1})
	wantSuperseded(t, "delivery by the earlier process", err)
	wantSuperseded(t, "clearing of timers by the earlier process", older.Timers.Clear(t.Context(), p, "e", "t"))

	mustAppend(t, newer, p, next("e", 2))
	equal(t, "rows", []string{"1@1000:row 1", "2@1001:row 2", "3@1002:row 3"}, rows(t, newer, p, "e", 0))
	if err := newer.Journal.Append(t.Context(), p, next("other", 1)); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("what the earlier process started too late is there: %v", err)
	}
	pending := must[[]store.InboxItem](t)(newer.Inbox.Pending(t.Context(), p, "e"))
	if len(pending) > 0 {
		t.Errorf("what was delivered too late is there: %v", pending)
	}
	left := must[[]store.Timer](t)(newer.Timers.Upcoming(t.Context(), p, store.Timer{}, 10))
	if len(left) != 1 {
		t.Errorf("timers: %v, want the one that was cleared too late", left)
	}
}

func testTakeoverInTheMidst(t *testing.T, open func() store.Stores) {
	p := tenant(t)
	older := open()
	const executions, opened = 4, 8 // some alone and some together, so that every table is written to
	for i := range executions {
		started(t, older, p, fmt.Sprint("e", i))
	}
	acknowledged := make([]uint64, executions) // the last row of each that the earlier process was sure of
	ends := make([]error, executions)
	begun, taken := make(chan struct{}, executions*opened), make(chan struct{})
	var wg sync.WaitGroup
	for i := range executions {
		wg.Go(func() {
			for seq := uint64(1); ; seq++ {
				last := false
				select {
				case <-taken:
					last = true
				default:
				}
				if ends[i] = older.Journal.Append(t.Context(), p, next(fmt.Sprint("e", i), seq)); ends[i] != nil || last {
					return
				}
				acknowledged[i] = seq + 1
				if seq <= opened {
					begun <- struct{}{}
				}
			}
		})
	}
	for range executions * opened {
		<-begun
	}
	newer := open()
	close(taken)
	wg.Wait()
	for i := range executions {
		id := fmt.Sprint("e", i)
		wantSuperseded(t, "the end of the earlier process", ends[i])
		head := uint64(len(rows(t, newer, p, id, 0)))
		if head < acknowledged[i] {
			t.Errorf("%s has %d rows, and %d were acknowledged", id, head, acknowledged[i])
		}
		if err := newer.Journal.Append(t.Context(), p, next(id, head-1)); !isConflict(err) {
			t.Errorf("a second row %d of %s: %v, want a conflict", head, id, err)
		}
		mustAppend(t, newer, p, next(id, head))
		for n, row := range rows(t, newer, p, id, 0) {
			if want := fmt.Sprintf("%d@%d:row %d", n+1, 1000+n, n+1); row != want {
				t.Fatalf("row %d of %s is %q, want %q", n+1, id, row, want)
			}
		}
	}
}
