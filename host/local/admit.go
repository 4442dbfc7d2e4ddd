package local

import (
	"cmp"
	"container/heap"
	"slices"
	"sync"

	"tandem/engine"
	"tandem/identity"
	"tandem/store"
)

// admission holds starts back while as many executions run as may: of all, of tasks, of a workspace, of a user. Only RUNNING counts: one
// that waits has left, and when it goes on it does so at once, before any new start. Those that wait for admission are on
// disk as PENDING.
type admission struct {
	limit int // of all; 0: none
	tasks int // of tasks among them; 0: none
	// caps are those of a workspace and of each of its users; nil: there are none.
	caps func(workspace string) (running, perUser int64)

	mu sync.Mutex
	// running are those that run; busy counts the tasks, and share those of a workspace and of its users.
	running map[store.Ref]claim
	busy    int
	share   map[claimant]int64
	// lines are those that wait, by workspace: workspaces take turns, within one the priority counts, then the age.
	lines   turns[*queue]
	waiting map[store.Ref]bool
	// others and tasksWaiting count them.
	others, tasksWaiting int
}

// claim is what an execution takes room of: whose it is, and whether it is a task.
type claim struct {
	user string
	task bool
}

// claimOf is the claim of an execution that a user has started. What Tandem starts by itself is counted for no user.
func claimOf(user string, task bool) claim {
	if user == identity.System("").User {
		user = ""
	}
	return claim{user, task}
}

// claimant is a user of a workspace; without a user, the whole workspace.
type claimant struct{ workspace, user string }

// queue is what waits in one workspace, by user. Tasks stand apart, so that what is not a task need not wait for one.
type queue struct {
	workspace string
	users     map[string]*userQueue
}

type userQueue struct{ others, tasks startHeap }

// start is an execution that is to begin.
type start struct {
	ref store.Ref
	claim
	priority int
	created  int64
}

func newAdmission(limit, tasks int, caps func(workspace string) (running, perUser int64)) *admission {
	return &admission{limit: limit, tasks: tasks, caps: caps, running: map[store.Ref]claim{}, share: map[claimant]int64{}, waiting: map[store.Ref]bool{}}
}

// holds says that a start of this sort may have to wait.
func (a *admission) holds(task bool) bool { return a.limit > 0 || a.caps != nil || task && a.tasks > 0 }

// crowded says that as many tasks run as may.
func (a *admission) crowded() bool { return a.tasks > 0 && a.busy >= a.tasks }

// full says which limit is reached: that of the workspace or, if a user is given, that of the user. Executions without a user count for the workspace alone.
func (a *admission) full(workspace string) (all bool, of func(user string) bool) {
	if a.caps == nil {
		return false, func(string) bool { return false }
	}
	running, perUser := a.caps(workspace)
	return running > 0 && a.share[claimant{workspace, ""}] >= running, func(user string) bool {
		return perUser > 0 && user != "" && a.share[claimant{workspace, user}] >= perUser
	}
}

// admit takes a place for an execution that starts now, if there is one and nobody waits for it. A child belongs to work that
// was admitted: it waits only for what its parent has no place in, which is the tasks.
func (a *admission) admit(ref store.Ref, c claim, child bool) bool {
	if !a.holds(c.task) {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if c.task && (a.crowded() || a.tasks > 0 && a.tasksWaiting > 0) {
		return false
	}
	if !child {
		if a.limit > 0 && (len(a.running) >= a.limit || a.others > 0 || a.tasksWaiting > 0 && !a.crowded()) {
			return false
		}
		all, of := a.full(ref.Workspace)
		if all || of(c.user) || a.before(ref.Workspace, c) {
			return false
		}
	}
	a.run(ref, c)
	return true
}

// before says that others of the workspace or of the user wait for the same room.
func (a *admission) before(workspace string, c claim) bool {
	if a.caps == nil {
		return false
	}
	q, waits := a.lines.get(workspace)
	if !waits {
		return false
	}
	running, _ := a.caps(workspace)
	u := q.users[c.user]
	return running > 0 && (a.others > 0 || !a.crowded()) || u != nil && (u.others.Len() > 0 || c.task && u.tasks.Len() > 0)
}

func (a *admission) run(ref store.Ref, c claim) {
	a.leave(ref)
	if a.running[ref] = c; c.task {
		a.busy++
	}
	a.count(ref.Workspace, c.user, 1)
}

// count adds to what a workspace and a user of it have.
func (a *admission) count(workspace, user string, n int64) {
	for _, who := range [2]claimant{{workspace, ""}, {workspace, user}} {
		if a.share[who] += n; a.share[who] == 0 {
			delete(a.share, who)
		}
		if user == "" {
			return
		}
	}
}

func (a *admission) leave(ref store.Ref) {
	c, runs := a.running[ref]
	if !runs {
		return
	}
	if c.task {
		a.busy--
	}
	a.count(ref.Workspace, c.user, -1)
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
	q := a.lines.at(s.ref.Workspace, func() *queue { return &queue{workspace: s.ref.Workspace, users: map[string]*userQueue{}} })
	u := q.users[s.user]
	if u == nil {
		u = &userQueue{}
		q.users[s.user] = u
	}
	if s.task {
		a.tasksWaiting++
		heap.Push(&u.tasks, s)
	} else {
		a.others++
		heap.Push(&u.others, s)
	}
}

// moved follows an execution's status.
func (a *admission) moved(ref store.Ref, c claim, status engine.Status) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if status != engine.StatusRunning {
		a.leave(ref)
	} else if a.holds(c.task) {
		a.run(ref, c)
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
		if s.task {
			a.tasksWaiting--
		} else {
			a.others--
		}
		if len(q.users) == 0 {
			a.lines.remove(s.ref.Workspace)
		}
		delete(a.waiting, s.ref)
		a.run(s.ref, s.claim)
		return s.ref, true
	}
	return store.Ref{}, false
}

// next takes the first out of the queue of those whose users have room; tasks only where there is room for one.
func (q *queue) next(tasks bool, full func(user string) bool) (start, bool) {
	var first *userQueue
	var best start
	for user, u := range q.users { // order does not matter: the first of all is looked for, and no two are equal
		if full(user) {
			continue
		}
		if s, ok := u.first(tasks); ok && (first == nil || s.before(best)) {
			first, best = u, s
		}
	}
	if first == nil {
		return start{}, false
	}
	if best.task {
		heap.Pop(&first.tasks)
	} else {
		heap.Pop(&first.others)
	}
	if first.others.Len()+first.tasks.Len() == 0 {
		delete(q.users, best.user)
	}
	return best, true
}

// first is the one whose turn it is; tasks only where there is room for one.
func (u *userQueue) first(tasks bool) (start, bool) {
	tasks = tasks && u.tasks.Len() > 0
	switch {
	case tasks && (u.others.Len() == 0 || u.tasks[0].before(u.others[0])):
		return u.tasks[0], true
	case u.others.Len() > 0:
		return u.others[0], true
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
