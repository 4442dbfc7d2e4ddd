package turns

import (
	"cmp"
	"container/heap"
	"maps"
	"slices"
	"sync"

	"tandem/engine"
	"tandem/identity"
	"tandem/store"
)

// Admission holds starts back while as many executions run as may: of all, of tasks, of a workspace, of a user. Only RUNNING counts: one
// that waits has left, and when it goes on it does so at once, before any new start. Those that wait for admission are on
// disk as PENDING.
type Admission struct {
	// elsewhere says that another process admits.
	elsewhere bool

	limit int // of all; 0: none
	tasks int // of tasks among them; 0: none
	// caps are those of a workspace and of each of its users; nil: there are none.
	caps func(workspace string) (running, perUser int64)

	mu sync.Mutex
	// running are those that run; busy counts the tasks, and share those of a workspace and of its users.
	running map[store.Ref]Claim
	busy    int
	share   map[claimant]int64
	// lines are those that wait, by workspace: workspaces take turns, within one the priority counts, then the age.
	lines   turns[*queue]
	waiting map[store.Ref]bool
	// others and tasksWaiting count them.
	others, tasksWaiting int
}

// Claim is what an execution takes room of: whose it is, and whether it is a task.
type Claim struct {
	User string
	Task bool
}

// ClaimOf is the claim of an execution that a user has started. What Tandem starts by itself is counted for no user.
func ClaimOf(user string, task bool) Claim {
	if user == identity.System("").User {
		user = ""
	}
	return Claim{user, task}
}

// claimant is a user of a workspace; without a user, the whole workspace.
type claimant struct{ workspace, user string }

// queue is what waits in one workspace, by user. Tasks stand apart, so that what is not a task need not wait for one.
type queue struct {
	workspace string
	users     map[string]*userQueue
}

type userQueue struct{ others, tasks startHeap }

// Start is an execution that is to begin.
type Start struct {
	Ref store.Ref
	Claim
	Priority int
	Created  int64
}

// NewAdmission has limits of all, of tasks, and caps of workspaces and users; 0 and nil: none.
func NewAdmission(limit, tasks int, caps func(workspace string) (running, perUser int64)) *Admission {
	return &Admission{limit: limit, tasks: tasks, caps: caps, running: map[store.Ref]Claim{}, share: map[claimant]int64{},
		waiting: map[store.Ref]bool{}}
}

// AdmittedElsewhere holds everything back that may have to wait: another process has the limits, and finds in the store what waits.
func AdmittedElsewhere() *Admission {
	a := NewAdmission(0, 0, nil)
	a.elsewhere = true
	return a
}

// Holds says that a start of this sort may have to wait.
func (a *Admission) Holds(task bool) bool {
	return a.elsewhere || a.limit > 0 || a.caps != nil || task && a.tasks > 0
}

// crowded says that as many tasks run as may.
func (a *Admission) crowded() bool { return a.tasks > 0 && a.busy >= a.tasks }

// full says which limit is reached: that of the workspace or, if a user is given, that of the user. Executions without a user count for
// the workspace alone.
func (a *Admission) full(workspace string) (all bool, of func(user string) bool) {
	if a.caps == nil {
		return false, func(string) bool { return false }
	}
	running, perUser := a.caps(workspace)
	return running > 0 && a.share[claimant{workspace, ""}] >= running, func(user string) bool {
		return perUser > 0 && user != "" && a.share[claimant{workspace, user}] >= perUser
	}
}

// Admit takes a place for an execution that starts now, if there is one and nobody waits for it. A child belongs to work that
// was admitted: it waits only for what its parent has no place in, which is the tasks.
func (a *Admission) Admit(ref store.Ref, c Claim, child bool) bool {
	if !a.Holds(c.Task) {
		return true
	}
	if a.elsewhere {
		return child && !c.Task
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if c.Task && (a.crowded() || a.tasks > 0 && a.tasksWaiting > 0) {
		return false
	}
	if !child {
		if a.limit > 0 && (len(a.running) >= a.limit || a.others > 0 || a.tasksWaiting > 0 && !a.crowded()) {
			return false
		}
		all, of := a.full(ref.Workspace)
		if all || of(c.User) || a.before(ref.Workspace, c) {
			return false
		}
	}
	a.run(ref, c)
	return true
}

// before says that others of the workspace or of the user wait for the same room.
func (a *Admission) before(workspace string, c Claim) bool {
	if a.caps == nil {
		return false
	}
	q, waits := a.lines.get(workspace)
	if !waits {
		return false
	}
	running, _ := a.caps(workspace)
	u := q.users[c.User]
	return running > 0 && (a.others > 0 || !a.crowded()) || u != nil && (u.others.Len() > 0 || c.Task && u.tasks.Len() > 0)
}

func (a *Admission) run(ref store.Ref, c Claim) {
	a.leave(ref)
	if a.running[ref] = c; c.Task {
		a.busy++
	}
	a.count(ref.Workspace, c.User, 1)
}

// count adds to what a workspace and a user of it have.
func (a *Admission) count(workspace, user string, n int64) {
	for _, who := range [2]claimant{{workspace, ""}, {workspace, user}} {
		if a.share[who] += n; a.share[who] == 0 {
			delete(a.share, who)
		}
		if user == "" {
			return
		}
	}
}

func (a *Admission) leave(ref store.Ref) {
	c, runs := a.running[ref]
	if !runs {
		return
	}
	if c.Task {
		a.busy--
	}
	a.count(ref.Workspace, c.User, -1)
	delete(a.running, ref)
}

// Wait puts an execution into line, unless it is there or has its place.
func (a *Admission) Wait(s Start) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, placed := a.running[s.Ref]; placed || a.elsewhere || a.waiting[s.Ref] {
		return
	}
	a.waiting[s.Ref] = true
	q := a.lines.at(s.Ref.Workspace, func() *queue { return &queue{workspace: s.Ref.Workspace, users: map[string]*userQueue{}} })
	u := q.users[s.User]
	if u == nil {
		u = &userQueue{}
		q.users[s.User] = u
	}
	if s.Task {
		a.tasksWaiting++
		heap.Push(&u.tasks, s)
	} else {
		a.others++
		heap.Push(&u.others, s)
	}
}

// Placed says that an execution that waits to begin has its place, or needs none.
func (a *Admission) Placed(ref store.Ref, c Claim) bool {
	if !a.Holds(c.Task) {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	_, has := a.running[ref]
	return has
}

// Running are the executions that have a place.
func (a *Admission) Running() []store.Ref {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Keys(a.running))
}

// Moved follows an execution's status.
func (a *Admission) Moved(ref store.Ref, c Claim, status engine.Status) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.elsewhere {
		return
	}
	if status != engine.StatusRunning {
		a.leave(ref)
	} else if a.Holds(c.Task) {
		a.run(ref, c)
	}
}

// Next returns an execution that may start now and has taken its place, if there is one.
func (a *Admission) Next() (store.Ref, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.limit > 0 && len(a.running) >= a.limit {
		return store.Ref{}, false
	}
	for range a.lines.order.Len() { // a workspace that has no room, or whose tasks have none, is passed over
		q, _ := a.lines.turn()
		all, of := a.full(q.workspace)
		if all {
			continue
		}
		s, ok := q.next(!a.crowded(), of)
		if !ok {
			continue
		}
		if s.Task {
			a.tasksWaiting--
		} else {
			a.others--
		}
		if len(q.users) == 0 {
			a.lines.remove(s.Ref.Workspace)
		}
		delete(a.waiting, s.Ref)
		a.run(s.Ref, s.Claim)
		return s.Ref, true
	}
	return store.Ref{}, false
}

// next takes the first out of the queue of those whose users have room; tasks only where there is room for one.
func (q *queue) next(tasks bool, full func(user string) bool) (Start, bool) {
	var first *userQueue
	var best Start
	for user, u := range q.users { // order does not matter: the first of all is looked for, and no two are equal
		if full(user) {
			continue
		}
		if s, ok := u.first(tasks); ok && (first == nil || s.before(best)) {
			first, best = u, s
		}
	}
	if first == nil {
		return Start{}, false
	}
	if best.Task {
		heap.Pop(&first.tasks)
	} else {
		heap.Pop(&first.others)
	}
	if first.others.Len()+first.tasks.Len() == 0 {
		delete(q.users, best.User)
	}
	return best, true
}

// first is the one whose turn it is; tasks only where there is room for one.
func (u *userQueue) first(tasks bool) (Start, bool) {
	tasks = tasks && u.tasks.Len() > 0
	switch {
	case tasks && (u.others.Len() == 0 || u.tasks[0].before(u.others[0])):
		return u.tasks[0], true
	case u.others.Len() > 0:
		return u.others[0], true
	}
	return Start{}, false
}

// before orders starts: by priority, then by age.
func (s Start) before(t Start) bool {
	return cmp.Or(cmp.Compare(s.Priority, t.Priority), cmp.Compare(s.Created, t.Created), cmp.Compare(s.Ref.Execution, t.Ref.Execution)) < 0
}

type startHeap []Start

func (h startHeap) Len() int           { return len(h) }
func (h startHeap) Less(i, j int) bool { return h[i].before(h[j]) }
func (h startHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *startHeap) Push(x any)        { *h = append(*h, x.(Start)) }
func (h *startHeap) Pop() any {
	old := *h
	s := old[len(old)-1]
	*h = old[:len(old)-1]
	return s
}
