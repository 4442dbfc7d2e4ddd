package sweep_test

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"tandem/engine"
	"tandem/host/sweep"
	"tandem/identity"
	"tandem/store"
)

// counted are executions that count how many of them are read.
type counted struct {
	store.Executions
	read int
}

// Unfinished implements store.Executions.
func (c *counted) Unfinished(ctx context.Context, p identity.Principal, after store.Unfinished) iter.Seq2[store.Unfinished, error] {
	return func(yield func(store.Unfinished, error) bool) {
		for u, err := range c.Executions.Unfinished(ctx, p, after) {
			if c.read++; !yield(u, err) {
				return
			}
		}
	}
}

// crowd is a ward with very many of each sort: most that run, are to begin, have something in their inbox, are due.
func crowd(t *testing.T, n int) (*ward, *counted) {
	w := newWard(t)
	c := &counted{Executions: w.stores.Executions}
	w.Sweeper = sweep.New(sweep.Options{
		Executions: c, Inbox: w.stores.Inbox, Timers: w.stores.Timers, Books: w, Gone: func(context.Context) (bool, error) { gone := w.gone; w.gone = false; return gone, nil },
		Wake: func(r store.Ref) { w.woken = append(w.woken, r.Execution) },
	})
	for i := range n {
		w.begin(fmt.Sprint("running", i), engine.StatusRunning)
		w.begin(fmt.Sprint("pending", i), engine.StatusPending)
		w.begin(fmt.Sprint("due", i), engine.StatusWaiting, due(time.Second))
		told := fmt.Sprint("told", i)
		w.begin(told, engine.StatusWaiting)
		if _, _, err := w.stores.Inbox.Deliver(t.Context(), identity.System("one"), store.InboxItem{Execution: told, Kind: "signal", Body: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(2 * time.Second)
	return w, c
}

// round looks until a round has ended, and returns how often each was woken. No look may read or wake more than a page of each sort.
func (w *ward) round(c *counted, first func(context.Context) error) map[string]int {
	w.t.Helper()
	times, how := map[string]int{}, first
	for {
		woken := w.look(how)
		if len(woken) > 4*1000 {
			w.t.Fatalf("a look wakes %d", len(woken))
		}
		for _, id := range woken {
			times[id]++
		}
		if !w.Goes() {
			return times
		}
		c.read, how = 0, func(ctx context.Context) error {
			err := w.Overdue(ctx)
			if c.read > 2*1000+1 { // and one of those that are to begin ends those that run
				w.t.Fatalf("a look reads %d", c.read)
			}
			return err
		}
	}
}

// TestRound_Pages: a round wakes everything once, in looks of which each reads and wakes no more than a page of each sort. What looks while a
// round is under way belongs to it.
func TestRound_Pages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, c := crowd(t, 2500)
		for _, begins := range []struct {
			name string
			how  func(context.Context) error
		}{
			{"the beginning", w.All},
			{"a process that is gone", func(ctx context.Context) error { w.gone = true; return w.Overdue(ctx) }},
			{"an hour", func(ctx context.Context) error { time.Sleep(time.Hour); return w.Overdue(ctx) }},
		} {
			times := w.round(c, begins.how)
			if len(times) != 4*2500 {
				t.Errorf("%s: %d executions are woken of %d", begins.name, len(times), 4*2500)
			}
			for id, n := range times {
				if n > 1 {
					t.Fatalf("%s: %s is woken %d times", begins.name, id, n)
				}
			}
		}
	})
}

// TestRound_Again: when a process is gone in the middle of a round, those that it has passed are woken again, and the others are not kept
// waiting for that.
func TestRound_Again(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, c := crowd(t, 2500)
		first := w.look(w.All)
		passed := map[string]bool{}
		for _, id := range first {
			passed[id] = true
		}
		w.gone = true
		next := w.look(w.Overdue)
		for _, id := range next {
			if passed[id] && (id[0] == 'r' || id[0] == 'p') {
				t.Fatalf("%s is woken before others were", id)
			}
		}
		times := w.round(c, w.Overdue)
		for _, id := range next {
			times[id]++
		}
		for _, id := range first {
			if times[id] == 0 {
				t.Fatalf("%s is not woken again", id)
			}
		}
	})
}
