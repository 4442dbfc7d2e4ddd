package local

import (
	"context"
	"fmt"
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
	// limit is that of every execution.
	limit int
	done  sync.WaitGroup

	mu    sync.Mutex
	order []string
}

func newCrowd() *crowd {
	l := &crowd{gate: newGate(1), free: make(chan struct{})}
	l.done.Add(1)
	l.gate.pass(context.Background(), store.Ref{}, 0, func() {
		<-l.free
		l.done.Done()
	}, nil)
	return l
}

func (l *crowd) enter(ctx context.Context, workspace, execution, name string, dropped func()) {
	l.done.Add(1)
	l.gate.pass(ctx, store.Ref{Workspace: workspace, Execution: execution}, l.limit, func() {
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
	t.Run("HoldsBackWhatIsBeyondTheLimit", func(t *testing.T) {
		t.Parallel()
		l := &crowd{gate: newGate(10), limit: 2}
		var begun, release [3]chan struct{}
		pass := func(ctx context.Context, execution string, n int, dropped func()) {
			begun[n], release[n] = make(chan struct{}), make(chan struct{})
			l.gate.pass(ctx, store.Ref{Workspace: "w", Execution: execution}, l.limit, func() { close(begun[n]); <-release[n] }, dropped)
		}
		for n := range 2 {
			pass(context.Background(), "a", n, nil)
			<-begun[n]
		}
		ctx, cancel := context.WithCancel(context.Background())
		left := make(chan struct{})
		pass(ctx, "a", 2, func() { close(left) })
		cancel()
		<-left // it was held back
		pass(context.Background(), "a", 2, nil)
		third := begun[2]
		other := make(chan struct{})
		l.gate.pass(context.Background(), store.Ref{Workspace: "w", Execution: "b"}, l.limit, func() { close(other) }, nil)
		<-other // another execution is not kept waiting
		select {
		case <-third:
			t.Error("three run at once, and two may")
		default:
		}
		close(release[0])
		<-third
		close(release[1])
		close(release[2])
		held := make(chan struct{})
		hold := make(chan struct{})
		for range 2 {
			l.gate.pass(context.Background(), store.Ref{Workspace: "w", Execution: "c"}, l.limit, func() { <-hold }, nil)
		}
		l.gate.pass(context.Background(), store.Ref{Workspace: "w", Execution: "c"}, l.limit, func() { t.Error("the gate is shut") }, func() { close(held) })
		l.gate.shutDown()
		<-held
		close(hold)
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
	admit := func(a *admission, execution string) bool {
		return a.admit(ref("w", execution), claim{task: false}, false)
	}
	admitTask := func(a *admission, execution string) bool {
		return a.admit(ref("w", execution), claim{task: true}, false)
	}
	// drain lets everybody in who may come, one after the other, each ending before the next.
	drain := func(a *admission) (order []string) {
		for {
			r, ok := a.nextAdmitted()
			if !ok {
				return order
			}
			order = append(order, r.Execution)
			a.moved(r, a.running[r], engine.StatusSuccess)
		}
	}
	t.Run("OneLimit", func(t *testing.T) {
		t.Parallel()
		a := newAdmission(2, 0, nil)
		if !admit(a, "1") || !admit(a, "2") || admit(a, "3") {
			t.Fatal("two may run, no more")
		}
		for _, s := range []start{
			{ref("w", "late"), claim{}, 3, 20}, {ref("w", "early"), claim{}, 3, 10}, {ref("w", "urgent"), claim{}, 1, 30}, {ref("v", "other"), claim{}, 5, 40},
		} {
			a.wait(s)
		}
		if _, ok := a.nextAdmitted(); ok {
			t.Error("somebody was let in although two run")
		}
		a.moved(ref("w", "1"), claim{task: false}, engine.StatusWaiting)
		if admit(a, "new") {
			t.Error("a new start went before those that wait")
		}
		// Workspaces take turns; within one the priority counts, then the age.
		if order, want := drain(a), []string{"urgent", "other", "early", "late"}; !slices.Equal(order, want) {
			t.Errorf("the order was %q, want %q", order, want)
		}
	})
	t.Run("TasksHaveOneOfTheirOwn", func(t *testing.T) {
		t.Parallel()
		a := newAdmission(0, 2, nil)
		if !admitTask(a, "1") || !admitTask(a, "2") || admitTask(a, "3") {
			t.Fatal("two tasks may run, no more")
		}
		if a.admit(ref("w", "child"), claim{task: true}, true) {
			t.Error("a child that is a task came in, although two run")
		}
		a.wait(start{ref("w", "3"), claim{task: true}, 3, 10})
		for i := range 10 {
			if !admit(a, fmt.Sprint("plain", i)) {
				t.Error("what is not a task waits for tasks")
			}
		}
		if _, ok := a.nextAdmitted(); ok {
			t.Error("a task was let in although two run")
		}
		a.moved(ref("w", "1"), claim{task: true}, engine.StatusWaitingForHuman)
		if admitTask(a, "new") {
			t.Error("a new task went before the one that waits")
		}
		a.moved(ref("w", "1"), claim{task: true}, engine.StatusRunning) // it was answered, and goes on at once
		if _, ok := a.nextAdmitted(); ok {
			t.Error("a new task was let in although the answered one has the place")
		}
		a.moved(ref("w", "2"), claim{task: true}, engine.StatusSuccess)
		if r, ok := a.nextAdmitted(); !ok || r.Execution != "3" {
			t.Errorf("next is %v, %v", r, ok)
		}
		a.moved(ref("w", "3"), claim{task: true}, engine.StatusRunning) // as its row says
		a.moved(ref("w", "3"), claim{task: true}, engine.StatusError)
		a.moved(ref("w", "1"), claim{task: false}, engine.StatusError) // by one who could not read what it is
		if a.busy != 0 || len(a.running) != 0 {
			t.Errorf("%d tasks and %v are left", a.busy, a.running)
		}
	})
	t.Run("OfAWorkspaceAndItsUsers", func(t *testing.T) {
		t.Parallel()
		running, perUser := int64(3), int64(2)
		a := newAdmission(0, 0, func(workspace string) (int64, int64) {
			if workspace != "w" {
				return 0, 0
			}
			return running, perUser
		})
		begin := func(id, user string) bool { return a.admit(ref("w", id), claim{user: user}, false) }
		if !begin("a1", "ann") || !begin("a2", "ann") || begin("a3", "ann") {
			t.Error("two of one user run, no more")
		}
		a.wait(start{ref("w", "a3"), claim{user: "ann"}, 1, 1})
		if begin("b0", "bob") { // there is room for one more of the workspace, and others wait for it
			t.Error("a new start went before one that waits")
		}
		a.wait(start{ref("w", "b0"), claim{user: "bob"}, 3, 2})
		if r, ok := a.nextAdmitted(); !ok || r.Execution != "b0" { // ann has no room, whatever her priority
			t.Errorf("next is %v, %v", r, ok)
		}
		a.wait(start{ref("w", "b1"), claim{user: "bob"}, 3, 3})
		a.wait(start{ref("w", "t"), claim{}, 3, 4})
		if r, ok := a.nextAdmitted(); ok {
			t.Errorf("%v was let in although three run", r)
		}
		for i := range 10 {
			if !a.admit(ref("v", fmt.Sprint(i)), claim{user: "ann"}, false) {
				t.Error("another workspace waits")
			}
		}
		if !a.admit(ref("w", "child"), claim{user: "ann"}, true) {
			t.Error("a child waits for room that its parent has")
		}
		a.moved(ref("w", "child"), claim{user: "ann"}, engine.StatusSuccess)
		a.moved(ref("w", "a1"), claim{user: "ann"}, engine.StatusWaitingForHuman) // only what runs counts
		if r, ok := a.nextAdmitted(); !ok || r.Execution != "a3" {
			t.Errorf("next is %v, %v", r, ok)
		}
		a.moved(ref("w", "a1"), claim{user: "ann"}, engine.StatusRunning) // answered, and goes on before any new start
		a.moved(ref("w", "a2"), claim{user: "ann"}, engine.StatusSuccess)
		if r, ok := a.nextAdmitted(); ok {
			t.Errorf("%v was let in although three run", r)
		}
		running = 0 // the admin has taken the limit away
		if order := drain(a); !slices.Equal(order, []string{"b1", "t"}) {
			t.Errorf("the order was %q", order)
		}
	})
	t.Run("Both", func(t *testing.T) {
		t.Parallel()
		a := newAdmission(3, 1, nil)
		if !admitTask(a, "t1") || !admit(a, "p1") {
			t.Fatal("there is room")
		}
		a.wait(start{ref("w", "t2"), claim{task: true}, 1, 10})
		a.wait(start{ref("v", "t3"), claim{task: true}, 1, 10})
		if !admit(a, "p2") {
			t.Error("what is not a task waits for tasks")
		}
		a.wait(start{ref("w", "p3"), claim{task: false}, 5, 20})
		a.wait(start{ref("u", "p4"), claim{task: false}, 5, 20})
		a.moved(ref("w", "p1"), claim{task: false}, engine.StatusSuccess)
		if r, ok := a.nextAdmitted(); !ok || r.Execution != "p3" {
			t.Errorf("next is %v, %v", r, ok)
		}
		if !a.admit(ref("w", "child"), claim{task: false}, true) {
			t.Error("a child waits although its parent was let in")
		}
		a.moved(ref("w", "child"), claim{task: false}, engine.StatusSuccess)
		a.moved(ref("w", "t1"), claim{task: true}, engine.StatusSuccess)
		if order := drain(a); len(order) != 3 || !a.lines.empty() || a.others != 0 || a.tasksWaiting != 0 {
			t.Errorf("they came as %q, and %d and %d are left", order, a.others, a.tasksWaiting)
		}
	})
}

func TestTimers_AFarDayIsNotDueNow(t *testing.T) {
	t.Parallel()
	timers := newTimers(func(store.Ref, engine.TimerID) { t.Error("a timer has fired") }, nil)
	timers.start()
	defer timers.close()
	now := time.Now().Add(time.Hour).UnixMilli()             // so that nothing is due by the real clock
	timers.setTimer(store.Ref{}, "far", 253_370_764_800_000) // the year 9999: more nanoseconds away than can be counted
	if due, next := timers.takeDue(now); len(due) > 0 || next != longestNap {
		t.Errorf("%d timers are due, the next in %v", len(due), next)
	}
	timers.setTimer(store.Ref{}, "near", now+50)
	if _, next := timers.takeDue(now); next != 50*time.Millisecond {
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
