package local

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"tandem/engine"
	"tandem/fault"
	"tandem/store"
)

// crowd is a gate with one place, which is taken, and a list of who came through after it.
type crowd struct {
	gate *gate
	free chan struct{} // closed: the first one leaves
	done sync.WaitGroup

	mu    sync.Mutex
	order []string
}

func newCrowd() *crowd {
	l := &crowd{gate: newGate(1), free: make(chan struct{})}
	l.done.Add(1)
	l.gate.pass(context.Background(), store.Ref{}, func() {
		<-l.free
		l.done.Done()
	}, nil)
	return l
}

func (l *crowd) enter(ctx context.Context, workspace, execution, name string, dropped func()) {
	l.done.Add(1)
	l.gate.pass(ctx, store.Ref{Workspace: workspace, Execution: execution}, func() {
		defer l.done.Done()
		l.mu.Lock()
		defer l.mu.Unlock()
		l.order = append(l.order, name)
	}, dropped)
}

func (l *crowd) run() []string {
	close(l.free)
	l.done.Wait()
	return l.order
}

func TestGate(t *testing.T) {
	t.Parallel()
	t.Run("TakesTurns", func(t *testing.T) {
		t.Parallel()
		l, ctx := newCrowd(), context.Background()
		for _, name := range []string{"a1", "a2", "a3"} {
			l.enter(ctx, "w1", "a", name, nil)
		}
		l.enter(ctx, "w1", "b", "b1", nil)
		l.enter(ctx, "w2", "c", "c1", nil)
		l.enter(ctx, "w2", "c", "c2", nil)
		if got, want := l.run(), []string{"a1", "c1", "b1", "c2", "a2", "a3"}; !slices.Equal(got, want) {
			t.Errorf("the order was %q, want %q", got, want)
		}
	})
	t.Run("LetsGoOfThoseWhoLeave", func(t *testing.T) {
		t.Parallel()
		l := newCrowd()
		ctx, cancel := context.WithCancel(context.Background())
		left := make(chan struct{})
		l.enter(ctx, "w1", "a", "gone", func() {
			l.done.Done()
			close(left)
		})
		l.enter(context.Background(), "w1", "a", "a1", nil)
		cancel()
		<-left
		if got := l.run(); !slices.Equal(got, []string{"a1"}) {
			t.Errorf("came through: %q", got)
		}
		if !l.gate.waiting.empty() {
			t.Error("the crowd is not empty")
		}
	})
}

func TestAdmission(t *testing.T) {
	t.Parallel()
	ref := func(workspace, execution string) store.Ref {
		return store.Ref{Workspace: workspace, Execution: execution}
	}
	a := newAdmission(2)
	if !a.admit(ref("w", "1")) || !a.admit(ref("w", "2")) || a.admit(ref("w", "3")) {
		t.Fatal("two may run, no more")
	}
	for _, s := range []start{
		{ref("w", "late"), 3, 20}, {ref("w", "early"), 3, 10}, {ref("w", "urgent"), 1, 30}, {ref("v", "other"), 5, 40},
	} {
		a.wait(s)
	}
	if _, ok := a.next(); ok {
		t.Error("somebody was let in although two run")
	}
	a.moved(ref("w", "1"), engine.StatusWaiting)
	if a.admit(ref("w", "new")) {
		t.Error("a new start went before those that wait")
	}
	var order []string
	for {
		r, ok := a.next()
		if !ok {
			break
		}
		order = append(order, r.Execution)
		a.moved(r, engine.StatusSuccess)
	}
	// Workspaces take turns; within one the priority counts, then the age.
	if want := []string{"urgent", "other", "early", "late"}; !slices.Equal(order, want) {
		t.Errorf("the order was %q, want %q", order, want)
	}
}

func TestTimers_AFarDayIsNotDueNow(t *testing.T) {
	t.Parallel()
	timers := newTimers(func(store.Ref, engine.TimerID) { t.Error("a timer has fired") })
	defer timers.close()
	now := time.Now().Add(time.Hour).UnixMilli()        // so that nothing is due by the real clock
	timers.set(store.Ref{}, "far", 253_370_764_800_000) // the year 9999: more nanoseconds away than can be counted
	if due, next := timers.take(now); len(due) > 0 || next != longestNap {
		t.Errorf("%d timers are due, the next in %v", len(due), next)
	}
	timers.set(store.Ref{}, "near", now+50)
	if _, next := timers.take(now); next != 50*time.Millisecond {
		t.Errorf("the next is due in %v", next)
	}
	timers.clear(store.Ref{}, "near")
}

func TestFamilies(t *testing.T) {
	t.Parallel()
	root := store.Ref{Workspace: "w", Execution: "root"}
	f := families{limit: 2, all: map[store.Ref]*family{}}
	for range 2 {
		if err := f.join(root); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.join(root); fault.CodeOf(err) != fault.RecursionLimit {
		t.Errorf("a third one: %v", err)
	}
	f.leave(root)
	f.cancel(root)
	if err := f.join(root); fault.CodeOf(err) != fault.Canceled {
		t.Errorf("below a canceled root: %v", err)
	}
	f.ended(root)
	if err := f.join(root); err != nil {
		t.Errorf("below a root that was retried: %v", err)
	}
	f.leave(root)
	f.leave(root)
	f.leave(root)
	if len(f.all) != 0 {
		t.Errorf("families are left: %v", f.all)
	}
}
