package local

import (
	"cmp"
	"container/heap"
	"sync"

	"tandem/engine"
	"tandem/store"
)

// admission holds starts back while as many executions run as may. Only RUNNING counts: one that waits has left, and when
// it goes on it does so at once, before any new start. Those that wait for admission are on disk as PENDING.
type admission struct {
	limit int // 0: none

	mu      sync.Mutex
	running map[store.Ref]bool
	// lines are those that wait, by workspace: workspaces take turns, within one the priority counts, then the age.
	lines   turns[*startHeap]
	waiting map[store.Ref]bool
}

type start struct {
	ref      store.Ref
	priority int
	created  int64
}

func newAdmission(limit int) *admission {
	return &admission{limit: limit, running: map[store.Ref]bool{}, waiting: map[store.Ref]bool{}}
}

// admit takes a place for an execution that starts now, if there is one and nobody waits for it.
func (a *admission) admit(ref store.Ref) bool {
	if a.limit == 0 {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.running) >= a.limit || !a.lines.empty() {
		return false
	}
	a.running[ref] = true
	return true
}

// wait puts an execution into line.
func (a *admission) wait(s start) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.waiting[s.ref] {
		a.waiting[s.ref] = true
		heap.Push(a.lines.at(s.ref.Workspace, func() *startHeap { return &startHeap{} }), s)
	}
}

// moved follows an execution's status.
func (a *admission) moved(ref store.Ref, status engine.Status) {
	if a.limit == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if status == engine.StatusRunning {
		a.running[ref] = true
	} else {
		delete(a.running, ref)
	}
}

// next returns an execution that may start now and has taken its place, if there is one.
func (a *admission) next() (store.Ref, bool) {
	if a.limit == 0 {
		return store.Ref{}, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.running) >= a.limit {
		return store.Ref{}, false
	}
	line, ok := a.lines.turn()
	if !ok {
		return store.Ref{}, false
	}
	s := heap.Pop(line).(start)
	if line.Len() == 0 {
		a.lines.remove(s.ref.Workspace)
	}
	delete(a.waiting, s.ref)
	a.running[s.ref] = true
	return s.ref, true
}

type startHeap []start

func (h startHeap) Len() int { return len(h) }
func (h startHeap) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].priority, h[j].priority), cmp.Compare(h[i].created, h[j].created), cmp.Compare(h[i].ref.Execution, h[j].ref.Execution)) < 0
}
func (h startHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *startHeap) Push(x any)   { *h = append(*h, x.(start)) }
func (h *startHeap) Pop() any {
	old := *h
	s := old[len(old)-1]
	*h = old[:len(old)-1]
	return s
}
