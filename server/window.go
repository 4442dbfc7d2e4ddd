package server

import (
	"context"
	"slices"
	"sync"
	"time"

	"tandem/agent"
	"tandem/fault"
	"tandem/identity"
	"tandem/route"
	"tandem/store"
)

// How many tasks a user may start within which time, unless the server is told otherwise.
const (
	defaultTaskStarts = 5
	taskWindow        = 15 * time.Second
)

// triggerAgent is what has started a task that somebody has given to an agent. Those of parents and forks have others.
const triggerAgent = "AGENT"

// starter is who starts tasks.
type starter struct{ workspace, user string }

// window counts the starts of each user in the time that has just passed. Only users with such a start are kept.
type window struct {
	limit  int // 0: any number
	within time.Duration
	now    func() time.Time
	// past returns the starts of a workspace that the process before has seen, since a time. born is when this one began.
	past func(ctx context.Context, workspace string, since, before time.Time) (map[starter][]time.Time, error)
	born time.Time

	mu    sync.Mutex
	users map[starter]*starts
	// filled are the workspaces whose past is known; nil once there is no past any more that counts.
	filled map[string]bool
	swept  time.Time
}

// starts are those of one user: times is when those that count were on disk, the oldest first; open is how many are on their
// way there.
type starts struct {
	times []time.Time
	open  int
}

func newWindow(limit int, within time.Duration, now func() time.Time) *window {
	born := now()
	return &window{limit: limit, within: within, now: now, born: born, swept: born, users: map[starter]*starts{}, filled: map[string]bool{}}
}

// enter takes a place for a start, or refuses it with when there will be one. The caller says with leave whether it has
// started something: one that has not gives its place back.
func (w *window) enter(ctx context.Context, who starter) (leave func(started bool), err error) {
	if w.limit <= 0 {
		return func(bool) {}, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.remember(ctx, who.workspace); err != nil {
		return nil, err
	}
	now := w.now()
	w.sweep(now)
	u := w.users[who]
	if u == nil {
		u = &starts{}
	}
	u.forget(now.Add(-w.within))
	if over := len(u.times) + u.open - w.limit; over >= 0 {
		wait := time.Second // those on their way will be there, or not
		if over < len(u.times) {
			wait = u.times[over].Add(w.within).Sub(now)
		}
		return nil, fault.Newf(fault.RateLimited, "user %q has started %d tasks within %d seconds, which is as many as may be; start the next in %d seconds",
			who.user, w.limit, int(w.within.Seconds()), route.Seconds(wait)).With("retry_after", route.Seconds(wait))
	}
	u.open++
	w.users[who] = u
	return func(started bool) {
		w.mu.Lock()
		defer w.mu.Unlock()
		u.open--
		if started {
			// Now, and not when it came: it is on disk since some moment between the two, and counts from then on.
			u.times = append(u.times, w.now())
		}
		if u.open == 0 && len(u.times) == 0 {
			delete(w.users, who)
		}
	}, nil
}

// forget drops what was at or before a time.
func (u *starts) forget(before time.Time) {
	u.times = slices.DeleteFunc(u.times, func(t time.Time) bool { return !t.After(before) })
}

// sweep drops the users whose starts no longer count, once in a while.
func (w *window) sweep(now time.Time) {
	if now.Sub(w.swept) < w.within {
		return
	}
	w.swept = now
	for who, u := range w.users { // order does not matter: each is looked at by itself
		if u.forget(now.Add(-w.within)); u.open == 0 && len(u.times) == 0 {
			delete(w.users, who)
		}
	}
}

// remember reads what users have started shortly before this process began, so that starting again forgives nothing. It does so once for a
// workspace, while others wait, and only until the past no longer counts.
func (w *window) remember(ctx context.Context, workspace string) error {
	if w.filled == nil || w.filled[workspace] {
		return nil
	}
	if w.now().Sub(w.born) >= w.within {
		w.filled = nil
		return nil
	}
	found, err := w.past(ctx, workspace, w.born.Add(-w.within), w.born)
	if err != nil {
		return err
	}
	for who, times := range found { // order does not matter: each has its own entry
		slices.SortFunc(times, time.Time.Compare)
		w.users[who] = &starts{times: times}
	}
	w.filled[workspace] = true
	return nil
}

// pastStarts finds the tasks that people have started in a workspace since a time and before another. Those of triggers,
// of parents and forks are not among them.
func (s *Server) pastStarts(ctx context.Context, workspace string, since, before time.Time) (map[starter][]time.Time, error) {
	found := map[starter][]time.Time{}
	const size = 100
	for number := 1; ; number++ {
		page, err := s.o.Stores.Executions.List(ctx, identity.System(workspace), store.ExecutionQuery{Page: store.Page{Number: number, Size: size}})
		if err != nil {
			return nil, err
		}
		for i := range page.Executions {
			e := &page.Executions[i]
			if e.Created < since.UnixMilli() { // the newest come first
				return found, nil
			}
			if _, task := agent.IDOf(e.WorkflowID); task && e.TriggerType == triggerAgent && e.Parent == "" && e.Created < before.UnixMilli() {
				who := starter{workspace, e.User}
				found[who] = append(found[who], time.UnixMilli(e.Created))
			}
		}
		if number*size >= page.Total {
			return found, nil
		}
	}
}
