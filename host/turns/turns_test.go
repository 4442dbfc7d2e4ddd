package turns

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"tandem/engine"
	"tandem/store"
)

// crowd is a gate with one place, which is taken, and a list of who came through after it.
type crowd struct {
	gate *Gate
	free chan struct{} // closed: the first one leaves
	// limit is that of every execution.
	limit int
	done  sync.WaitGroup

	mu    sync.Mutex
	order []string
}

func newCrowd() *crowd {
	l := &crowd{gate: NewGate(1), free: make(chan struct{})}
	l.done.Add(1)
	l.gate.Pass(context.Background(), store.Ref{}, 0, func() {
		<-l.free
		l.done.Done()
	}, nil)
	return l
}

func (l *crowd) enter(ctx context.Context, workspace, execution, name string, dropped func()) {
	l.done.Add(1)
	l.gate.Pass(ctx, store.Ref{Workspace: workspace, Execution: execution}, l.limit, func() {
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
		l := &crowd{gate: NewGate(10), limit: 2}
		var begun, release [3]chan struct{}
		pass := func(ctx context.Context, execution string, n int, dropped func()) {
			begun[n], release[n] = make(chan struct{}), make(chan struct{})
			l.gate.Pass(ctx, store.Ref{Workspace: "w", Execution: execution}, l.limit, func() { close(begun[n]); <-release[n] }, dropped)
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
		l.gate.Pass(context.Background(), store.Ref{Workspace: "w", Execution: "b"}, l.limit, func() { close(other) }, nil)
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
			l.gate.Pass(context.Background(), store.Ref{Workspace: "w", Execution: "c"}, l.limit, func() { <-hold }, nil)
		}
		l.gate.Pass(context.Background(), store.Ref{Workspace: "w", Execution: "c"}, l.limit, func() { t.Error("the gate is shut") }, func() { close(held) })
		l.gate.ShutDown()
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
	admit := func(a *Admission, execution string) bool {
		return a.Admit(ref("w", execution), Claim{Task: false}, false)
	}
	admitTask := func(a *Admission, execution string) bool {
		return a.Admit(ref("w", execution), Claim{Task: true}, false)
	}
	// drain lets everybody in who may come, one after the other, each ending before the next.
	drain := func(a *Admission) (order []string) {
		for {
			r, ok := a.Next()
			if !ok {
				return order
			}
			order = append(order, r.Execution)
			a.Moved(r, a.running[r], engine.StatusSuccess)
		}
	}
	t.Run("OneLimit", func(t *testing.T) {
		t.Parallel()
		a := NewAdmission(2, 0, nil)
		if !admit(a, "1") || !admit(a, "2") || admit(a, "3") {
			t.Fatal("two may run, no more")
		}
		for _, s := range []Start{
			{ref("w", "late"), Claim{}, 3, 20}, {ref("w", "early"), Claim{}, 3, 10}, {ref("w", "urgent"), Claim{}, 1, 30}, {ref("v", "other"), Claim{}, 5, 40},
		} {
			a.Wait(s)
		}
		if _, ok := a.Next(); ok {
			t.Error("somebody was let in although two run")
		}
		a.Moved(ref("w", "1"), Claim{Task: false}, engine.StatusWaiting)
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
		a := NewAdmission(0, 2, nil)
		if !admitTask(a, "1") || !admitTask(a, "2") || admitTask(a, "3") {
			t.Fatal("two tasks may run, no more")
		}
		if a.Admit(ref("w", "child"), Claim{Task: true}, true) {
			t.Error("a child that is a task came in, although two run")
		}
		a.Wait(Start{ref("w", "3"), Claim{Task: true}, 3, 10})
		for i := range 10 {
			if !admit(a, fmt.Sprint("plain", i)) {
				t.Error("what is not a task waits for tasks")
			}
		}
		if _, ok := a.Next(); ok {
			t.Error("a task was let in although two run")
		}
		a.Moved(ref("w", "1"), Claim{Task: true}, engine.StatusWaitingForHuman)
		if admitTask(a, "new") {
			t.Error("a new task went before the one that waits")
		}
		a.Moved(ref("w", "1"), Claim{Task: true}, engine.StatusRunning) // it was answered, and goes on at once
		if _, ok := a.Next(); ok {
			t.Error("a new task was let in although the answered one has the place")
		}
		a.Moved(ref("w", "2"), Claim{Task: true}, engine.StatusSuccess)
		if r, ok := a.Next(); !ok || r.Execution != "3" {
			t.Errorf("next is %v, %v", r, ok)
		}
		a.Moved(ref("w", "3"), Claim{Task: true}, engine.StatusRunning) // as its row says
		a.Moved(ref("w", "3"), Claim{Task: true}, engine.StatusError)
		a.Moved(ref("w", "1"), Claim{Task: false}, engine.StatusError) // by one who could not read what it is
		if a.busy != 0 || len(a.running) != 0 {
			t.Errorf("%d tasks and %v are left", a.busy, a.running)
		}
	})
	t.Run("OfAWorkspaceAndItsUsers", func(t *testing.T) {
		t.Parallel()
		running, perUser := int64(3), int64(2)
		a := NewAdmission(0, 0, func(workspace string) (int64, int64) {
			if workspace != "w" {
				return 0, 0
			}
			return running, perUser
		})
		begin := func(id, user string) bool { return a.Admit(ref("w", id), Claim{User: user}, false) }
		if !begin("a1", "ann") || !begin("a2", "ann") || begin("a3", "ann") {
			t.Error("two of one user run, no more")
		}
		a.Wait(Start{ref("w", "a3"), Claim{User: "ann"}, 1, 1})
		if begin("b0", "bob") { // there is room for one more of the workspace, and others wait for it
			t.Error("a new start went before one that waits")
		}
		a.Wait(Start{ref("w", "b0"), Claim{User: "bob"}, 3, 2})
		if r, ok := a.Next(); !ok || r.Execution != "b0" { // ann has no room, whatever her priority
			t.Errorf("next is %v, %v", r, ok)
		}
		a.Wait(Start{ref("w", "b1"), Claim{User: "bob"}, 3, 3})
		a.Wait(Start{ref("w", "t"), Claim{}, 3, 4})
		if r, ok := a.Next(); ok {
			t.Errorf("%v was let in although three run", r)
		}
		for i := range 10 {
			if !a.Admit(ref("v", fmt.Sprint(i)), Claim{User: "ann"}, false) {
				t.Error("another workspace waits")
			}
		}
		if !a.Admit(ref("w", "child"), Claim{User: "ann"}, true) {
			t.Error("a child waits for room that its parent has")
		}
		a.Moved(ref("w", "child"), Claim{User: "ann"}, engine.StatusSuccess)
		a.Moved(ref("w", "a1"), Claim{User: "ann"}, engine.StatusWaitingForHuman) // only what runs counts
		if r, ok := a.Next(); !ok || r.Execution != "a3" {
			t.Errorf("next is %v, %v", r, ok)
		}
		a.Moved(ref("w", "a1"), Claim{User: "ann"}, engine.StatusRunning) // answered, and goes on before any new start
		a.Moved(ref("w", "a2"), Claim{User: "ann"}, engine.StatusSuccess)
		if r, ok := a.Next(); ok {
			t.Errorf("%v was let in although three run", r)
		}
		running = 0 // the admin has taken the limit away
		if order := drain(a); !slices.Equal(order, []string{"b1", "t"}) {
			t.Errorf("the order was %q", order)
		}
	})
	t.Run("Both", func(t *testing.T) {
		t.Parallel()
		a := NewAdmission(3, 1, nil)
		if !admitTask(a, "t1") || !admit(a, "p1") {
			t.Fatal("there is room")
		}
		a.Wait(Start{ref("w", "t2"), Claim{Task: true}, 1, 10})
		a.Wait(Start{ref("v", "t3"), Claim{Task: true}, 1, 10})
		if !admit(a, "p2") {
			t.Error("what is not a task waits for tasks")
		}
		a.Wait(Start{ref("w", "p3"), Claim{Task: false}, 5, 20})
		a.Wait(Start{ref("u", "p4"), Claim{Task: false}, 5, 20})
		a.Moved(ref("w", "p1"), Claim{Task: false}, engine.StatusSuccess)
		if r, ok := a.Next(); !ok || r.Execution != "p3" {
			t.Errorf("next is %v, %v", r, ok)
		}
		if !a.Admit(ref("w", "child"), Claim{Task: false}, true) {
			t.Error("a child waits although its parent was let in")
		}
		a.Moved(ref("w", "child"), Claim{Task: false}, engine.StatusSuccess)
		a.Moved(ref("w", "t1"), Claim{Task: true}, engine.StatusSuccess)
		if order := drain(a); len(order) != 3 || !a.lines.empty() || a.others != 0 || a.tasksWaiting != 0 {
			t.Errorf("they came as %q, and %d and %d are left", order, a.others, a.tasksWaiting)
		}
	})
}

// Where another process admits, only children begin that never wait; what is recorded as waiting is left to that process.
func TestAdmission_Elsewhere(t *testing.T) {
	t.Parallel()
	a := AdmittedElsewhere()
	ref := store.Ref{Workspace: "w", Execution: "e"}
	for _, c := range []struct{ task, child, admitted bool }{{false, false, false}, {false, true, true}, {true, true, false}, {true, false, false}} {
		if got := a.Admit(ref, Claim{Task: c.task}, c.child); got != c.admitted {
			t.Errorf("%+v: %v", c, got)
		}
	}
	a.Moved(ref, Claim{}, engine.StatusRunning)
	a.Wait(Start{Ref: ref})
	if _, next := a.Next(); next || a.Placed(ref, Claim{}) || len(a.Running()) != 0 {
		t.Error("it has admitted something")
	}
}

// What has its place is not put into line again: who hears late that it waits must not let it begin twice.
func TestAdmission_WaitsOnce(t *testing.T) {
	t.Parallel()
	a := NewAdmission(1, 0, nil)
	one, two := Start{Ref: store.Ref{Execution: "1"}}, Start{Ref: store.Ref{Execution: "2"}}
	a.Wait(one)
	a.Wait(two)
	if ref, ok := a.Next(); !ok || ref != one.Ref {
		t.Fatalf("first is %v, %v", ref, ok)
	}
	a.Wait(one)
	a.Moved(one.Ref, Claim{}, engine.StatusSuccess)
	if ref, ok := a.Next(); !ok || ref != two.Ref {
		t.Errorf("then %v, %v", ref, ok)
	}
	a.Moved(two.Ref, Claim{}, engine.StatusSuccess)
	if ref, ok := a.Next(); ok {
		t.Errorf("%v begins again", ref)
	}
}
