package sweep_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"tandem/engine"
	"tandem/host/hosttest"
	"tandem/host/sweep"
	"tandem/identity"
	"tandem/store"
)

// ward is a store with executions, and a sweeper over it that notes whom it wakes.
type ward struct {
	t      *testing.T
	stores store.Stores
	woken  []string
	gone   bool
	// held are executions that wait for their turn.
	held map[string]bool
	*sweep.Sweeper
}

func newWard(t *testing.T) *ward {
	w := &ward{t: t, stores: hosttest.NewDisk().Stores(), held: map[string]bool{}}
	w.Sweeper = sweep.New(sweep.Options{
		Executions: w.stores.Executions, Inbox: w.stores.Inbox, Timers: w.stores.Timers, Books: w,
		Wake: func(r store.Ref) { w.woken = append(w.woken, r.Execution) },
		Gone: func(context.Context) (bool, error) { gone := w.gone; w.gone = false; return gone, nil },
	})
	return w
}

// Reckon implements sweep.Books.
func (w *ward) Reckon(u store.Unfinished) bool { return !w.held[u.Execution] }

// Readmit implements sweep.Books.
func (w *ward) Readmit() {}

// begin records the first row of an execution.
func (w *ward) begin(id string, status engine.Status, timers ...store.Timer) {
	w.t.Helper()
	now := time.Now().UnixMilli()
	a := &store.Append{
		Execution: id, Time: now, Body: []byte("{}"), SetTimers: timers,
		Create: &store.Execution{ID: id, WorkflowID: "f", Status: status, Priority: 3, Created: now, Updated: now},
	}
	if err := w.stores.Journal.Append(w.t.Context(), identity.System("one"), a); err != nil {
		w.t.Fatal(err)
	}
}

// look returns whom a look wakes, in order.
func (w *ward) look(how func(context.Context) error) []string {
	w.t.Helper()
	w.woken = nil
	if err := how(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	slices.Sort(w.woken)
	return w.woken
}

func (w *ward) want(what string, how func(context.Context) error, want ...string) {
	w.t.Helper()
	if got := w.look(how); !slices.Equal(got, want) {
		w.t.Errorf("%s: woken are %v, want %v", what, got, want)
	}
}

func due(in time.Duration) store.Timer {
	return store.Timer{ID: "t#1", Until: time.Now().Add(in).UnixMilli()}
}

// TestOverdue_Healthy: of executions that run or wait, and for which nothing is overdue, none is woken.
func TestOverdue_Healthy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWard(t)
		for i := range 2000 {
			status := engine.StatusRunning
			if i%2 == 0 {
				status = engine.StatusWaiting
			}
			w.begin(fmt.Sprint("x", i), status, due(time.Hour))
		}
		if n := len(w.look(w.All)); n != 1000 {
			t.Errorf("the first look wakes %d, want those that run", n)
		}
		for range 10 {
			w.want("a look", w.Overdue)
			time.Sleep(30 * time.Second)
		}
	})
}

// TestOverdue_Forgotten: what is due and not taken is woken again, and only that.
func TestOverdue_Forgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWard(t)
		w.want("the beginning", w.All)
		w.begin("healthy", engine.StatusRunning)
		w.begin("late", engine.StatusWaiting, due(time.Second))
		w.begin("child", engine.StatusRunning, store.Timer{ID: "child:y", Until: 0}) // it is yet to be started
		w.begin("told", engine.StatusWaiting)
		w.begin("begins", engine.StatusPending)
		w.begin("held", engine.StatusPending)
		w.held["held"] = true
		item := store.InboxItem{Execution: "told", Kind: "signal", Body: []byte("{}")}
		if _, _, err := w.stores.Inbox.Deliver(t.Context(), identity.System("one"), item); err != nil {
			t.Fatal(err)
		}
		w.want("at once", w.Overdue, "child")
		time.Sleep(32 * time.Second)
		w.want("later", w.Overdue, "begins", "child", "late", "told")
		w.gone = true
		w.want("when a process is gone", w.Overdue, "begins", "child", "child", "healthy", "late", "told")
		w.want("after that", w.Overdue, "begins", "child", "late")
		time.Sleep(time.Hour)
		if got := w.look(w.Overdue); !slices.Contains(got, "healthy") {
			t.Errorf("after an hour woken are %v", got)
		}
	})
}

// TestOverdue_Bounded: one look wakes no more than so many, and the next ones go on where it has ended.
func TestOverdue_Bounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWard(t)
		w.want("the beginning", w.All)
		for i := range 2500 {
			w.begin(fmt.Sprint("x", i), engine.StatusWaiting, due(time.Second))
		}
		time.Sleep(time.Minute)
		all := map[string]bool{}
		for range 3 {
			got := w.look(w.Overdue)
			if len(got) > 1000 {
				t.Errorf("a look wakes %d", len(got))
			}
			for _, id := range got {
				all[id] = true
			}
		}
		if len(all) != 2500 {
			t.Errorf("three looks wake %d of 2500", len(all))
		}
	})
}

// TestOverdue_InboxInTurn: of executions that leave what is in their inbox there, all are woken in turn, however many come before them.
func TestOverdue_InboxInTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWard(t)
		w.want("the beginning", w.All)
		for i := range 2500 {
			id := fmt.Sprint("x", i)
			w.begin(id, engine.StatusWaiting)
			if _, _, err := w.stores.Inbox.Deliver(t.Context(), identity.System("one"), store.InboxItem{Execution: id, Kind: "signal", Body: []byte("{}")}); err != nil {
				t.Fatal(err)
			}
		}
		w.want("a look at what is fresh", w.Overdue)
		all := map[string]bool{}
		for range 3 {
			got := w.look(w.Overdue)
			if len(got) != 1000 {
				t.Errorf("a look wakes %d", len(got))
			}
			for _, id := range got {
				all[id] = true
			}
		}
		if len(all) != 2500 {
			t.Errorf("three looks wake %d of 2500", len(all))
		}
	})
}

// TestRound_LeavesAlone: while a long round goes on, what has been woken in it has the time of a usual look to be taken, and what came a moment ago is
// not forgotten.
func TestRound_LeavesAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWard(t)
		for i := range 20_000 {
			w.begin(fmt.Sprint("x", i), engine.StatusRunning)
		}
		w.begin("late", engine.StatusWaiting, due(time.Second))
		w.begin("begins", engine.StatusPending)
		w.begin("told", engine.StatusWaiting)
		time.Sleep(time.Minute)
		woken := map[string]int{}
		count := func(ids []string) {
			for _, id := range ids {
				woken[id]++
			}
		}
		count(w.look(w.All))
		for seq := uint64(1); w.Goes(); seq++ {
			item := store.InboxItem{Execution: "told", Kind: "signal", Body: []byte("{}")} // it is taken at once, each time
			n, _, err := w.stores.Inbox.Deliver(t.Context(), identity.System("one"), item)
			if err != nil {
				t.Fatal(err)
			}
			count(w.look(w.Overdue))
			took := &store.Append{Execution: "told", After: seq, Time: time.Now().UnixMilli(), Body: []byte("{}"), TakeInbox: []int64{n}}
			if err := w.stores.Journal.Append(t.Context(), identity.System("one"), took); err != nil {
				t.Fatal(err)
			}
			time.Sleep(50 * time.Millisecond)
		}
		if woken["late"] > 2 || woken["begins"] > 2 || woken["told"] > 1 || woken["x19999"] != 1 {
			t.Errorf("woken are late %d times, begins %d, told %d, the last that runs %d", woken["late"], woken["begins"], woken["told"], woken["x19999"])
		}
	})
}

// TestRound_GoesOn: a round that is begun again and again comes to the end of what is in inboxes and due all the same.
func TestRound_GoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWard(t)
		w.want("the beginning", w.All)
		for i := range 3500 {
			id := fmt.Sprint("x", i)
			w.begin(id, engine.StatusWaiting, due(time.Second))
			item := store.InboxItem{Execution: id, Kind: "signal", Body: []byte("{}")}
			if _, _, err := w.stores.Inbox.Deliver(t.Context(), identity.System("one"), item); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Second)
		woken := map[string]int{}
		for range 4 {
			w.gone = true
			for _, id := range w.look(w.Overdue) {
				woken[id]++
			}
		}
		for i := range 3500 {
			if id := fmt.Sprint("x", i); woken[id] < 2 {
				t.Fatalf("%s is woken %d times, for its inbox and its timer", id, woken[id])
			}
		}
	})
}
