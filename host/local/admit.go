package local

import (
	"cmp"
	"container/heap"
	"slices"
	"sync"

	"tandem/engine"
	"tandem/store"
)

// admission holds starts back while as many executions run as may, or, of tasks, as many tasks. Only RUNNING counts: one
// that waits has left, and when it goes on it does so at once, before any new start. Those that wait for admission are on
// disk as PENDING.
type admission struct {
	limit int // of all; 0: none
	tasks int // of tasks among them; 0: none

	mu sync.Mutex
	// running are those that run, and whether they are tasks; busy counts the tasks.
	running map[store.Ref]bool
	busy    int
	// lines are those that wait, by workspace: workspaces take turns, within one the priority counts, then the age.
	lines   turns[*queue]
	waiting map[store.Ref]bool
	// others and tasksWaiting count them.
	others, tasksWaiting int
}

// queue is what waits in one workspace. Tasks stand apart, so that what is not a task need not wait for one.
type queue struct{ others, tasks startHeap }

// start is an execution that is to begin.
type start struct {
	ref      store.Ref
	task     bool
	priority int
	created  int64
}

func newAdmission(limit, tasks int) *admission {
	return &admission{limit: limit, tasks: tasks, running: map[store.Ref]bool{}, waiting: map[store.Ref]bool{}}
}

// holds says that a start of this sort may have to wait.
func (a *admission) holds(task bool) bool { return a.limit > 0 || task && a.tasks > 0 }

// crowded says that as many tasks run as may.
func (a *admission) crowded() bool { return a.tasks > 0 && a.busy >= a.tasks }

// admit takes a place for an execution that starts now, if there is one and nobody waits for it. A child belongs to work that
// was admitted: it waits only for what its parent has no place in, which is the tasks.
func (a *admission) admit(ref store.Ref, task, child bool) bool {
	if !a.holds(task) {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if task && (a.crowded() || a.tasks > 0 && a.tasksWaiting > 0) {
		return false
	}
	if !child && a.limit > 0 && (len(a.running) >= a.limit || a.others > 0 || a.tasksWaiting > 0 && !a.crowded()) {
		return false
	}
	a.run(ref, task)
	return true
}

func (a *admission) run(ref store.Ref, task bool) {
	a.leave(ref)
	if a.running[ref] = task; task {
		a.busy++
	}
}

func (a *admission) leave(ref store.Ref) {
	if a.running[ref] {
		a.busy--
	}
	delete(a.running, ref)
}

// wait puts an execution into line.
func (a *admission) wait(s start) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting[s.ref] {
		return
	}
	a.waiting[s.ref] = true
	q := a.lines.at(s.ref.Workspace, func() *queue { return &queue{} })
	if s.task {
		a.tasksWaiting++
		heap.Push(&q.tasks, s)
	} else {
		a.others++
		heap.Push(&q.others, s)
	}
}

// moved follows an execution's status.
func (a *admission) moved(ref store.Ref, task bool, status engine.Status) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if status != engine.StatusRunning {
		a.leave(ref)
	} else if a.holds(task) {
		a.run(ref, task)
	}
}

// shortWait is how long an execution may wait for the clock and keep its place: one that gave it away for a moment would be
// back at once, and as many as have such moments would run.
const shortWait = 1000 // milliseconds

// goesOn says that an execution waits after a row, and not for long.
func (h *held) goesOn() bool {
	return h.status == engine.StatusWaiting && slices.ContainsFunc(h.commands, func(c engine.Command) bool {
		sleep, ok := c.(engine.Sleep)
		return ok && sleep.Until <= h.row.Time+shortWait
	})
}

// nextAdmitted returns an execution that may start now and has taken its place, if there is one.
func (a *admission) nextAdmitted() (store.Ref, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.limit > 0 && len(a.running) >= a.limit {
		return store.Ref{}, false
	}
	for range a.lines.order.Len() { // a workspace whose tasks have no room is passed over
		q, _ := a.lines.turn()
		s, ok := q.next(!a.crowded())
		if !ok {
			continue
		}
		if s.task {
			a.tasksWaiting--
		} else {
			a.others--
		}
		if q.others.Len()+q.tasks.Len() == 0 {
			a.lines.remove(s.ref.Workspace)
		}
		delete(a.waiting, s.ref)
		a.run(s.ref, s.task)
		return s.ref, true
	}
	return store.Ref{}, false
}

// next takes the first out of the queue; tasks only where there is room for one.
func (q *queue) next(tasks bool) (start, bool) {
	tasks = tasks && q.tasks.Len() > 0
	switch {
	case tasks && (q.others.Len() == 0 || q.tasks[0].before(q.others[0])):
		return heap.Pop(&q.tasks).(start), true
	case q.others.Len() > 0:
		return heap.Pop(&q.others).(start), true
	}
	return start{}, false
}

// before orders starts: by priority, then by age.
func (s start) before(t start) bool {
	return cmp.Or(cmp.Compare(s.priority, t.priority), cmp.Compare(s.created, t.created), cmp.Compare(s.ref.Execution, t.ref.Execution)) < 0
}

type startHeap []start

func (h startHeap) Len() int           { return len(h) }
func (h startHeap) Less(i, j int) bool { return h[i].before(h[j]) }
func (h startHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *startHeap) Push(x any)        { *h = append(*h, x.(start)) }
func (h *startHeap) Pop() any {
	old := *h
	s := old[len(old)-1]
	*h = old[:len(old)-1]
	return s
}
