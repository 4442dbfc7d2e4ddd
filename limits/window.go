package limits

import (
	"context"
	"slices"
	"sync"
	"time"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

// How many tasks a user may start within which time, unless the server is configured otherwise.
const (
	DefaultTaskStarts = 5
	TaskWindow        = 15 * time.Second
)

// TriggerAgent is the trigger type of a task that a user has given to an agent. Tasks of parents and forks have others.
const TriggerAgent = "AGENT"

// maxWindow is the longest that a window can be.
const maxWindow = time.Hour

// Starter is who starts something: a user, or, without one, all users of a workspace together.
type Starter struct{ Workspace, User string }

// Bound is how many starts fit into a time that slides.
type Bound struct {
	Count  int // less than one: any number
	Within time.Duration
}

// Window counts the starts of each user in the time that has just passed. Only users with such a start are kept.
type Window struct {
	now func() time.Time
	// past returns the starts of a workspace that the process before has seen, since a time. born is when this one began.
	past func(ctx context.Context, workspace string, since, before time.Time) (map[Starter][]time.Time, error)
	born time.Time

	mu    sync.Mutex
	users map[Starter]*starts
	// filled are the workspaces whose past is known, and how far back; nil once there is no past any more that counts.
	filled map[string]time.Duration
	swept  time.Time
}

// starts are those of one user: times is when those that count were on disk, the oldest first; open is how many are on their
// way there. Within is the longest that was asked for.
type starts struct {
	times  []time.Time
	open   int
	within time.Duration
}

// NewWindow makes a window of a process that begins now.
func NewWindow(now func() time.Time) *Window {
	born := now()
	return &Window{now: now, born: born, swept: born, users: map[Starter]*starts{}, filled: map[string]time.Duration{}}
}

// enter takes a place for a start, or refuses it with when there will be one. The caller says with leave whether it has
// started something: one that has not gives its place back.
func (w *Window) enter(ctx context.Context, who Starter, b Bound, what string) (leave func(started bool), err error) {
	if b.Count <= 0 {
		return func(bool) {}, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.remember(ctx, who.Workspace, b.Within); err != nil {
		return nil, err
	}
	now := w.now()
	w.sweep(now)
	u := w.users[who]
	if u == nil {
		u = &starts{}
	}
	u.within = max(u.within, b.Within)
	u.forget(now.Add(-u.within))
	first, _ := slices.BinarySearchFunc(u.times, now.Add(-b.Within), func(t, since time.Time) int { // those at or before it do not count
		if t.After(since) {
			return 1
		}
		return -1
	})
	counted := u.times[first:]
	if over := len(counted) + u.open - b.Count; over >= 0 {
		wait := time.Second // those on their way will be there, or not
		if over < len(counted) {
			wait = counted[over].Add(b.Within).Sub(now)
		}
		return nil, refusal(who, b, what, wait)
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

func refusal(who Starter, b Bound, what string, wait time.Duration) error {
	if who.User == "" {
		return fault.Newf(fault.RateLimited, "%d %s were started in this workspace within %d seconds, which is as many as may be; start the next in %d seconds",
			b.Count, what, int(b.Within.Seconds()), seconds(wait)).With("retry_after", seconds(wait))
	}
	return fault.Newf(fault.RateLimited, "user %q has started %d %s within %d seconds, which is as many as may be; start the next in %d seconds",
		who.User, b.Count, what, int(b.Within.Seconds()), seconds(wait)).With("retry_after", seconds(wait))
}

// forget drops what was at or before a time.
func (u *starts) forget(before time.Time) {
	u.times = slices.DeleteFunc(u.times, func(t time.Time) bool { return !t.After(before) })
}

// sweep drops the users whose starts no longer count, once in a while.
func (w *Window) sweep(now time.Time) {
	if now.Sub(w.swept) < TaskWindow {
		return
	}
	w.swept = now
	for who, u := range w.users { // order does not matter: each is looked at by itself
		if u.forget(now.Add(-u.within)); u.open == 0 && len(u.times) == 0 {
			delete(w.users, who)
		}
	}
}

// remember reads what users have started shortly before this process began, so that starting again forgives nothing. It does so once for a
// workspace and a length of time, while others wait, and only until the past no longer counts.
func (w *Window) remember(ctx context.Context, workspace string, within time.Duration) error {
	if w.filled == nil || w.filled[workspace] >= within || w.now().Sub(w.born) >= within {
		return nil
	}
	if w.now().Sub(w.born) >= maxWindow {
		w.filled = nil
		return nil
	}
	found, err := w.past(ctx, workspace, w.born.Add(-within), w.born)
	if err != nil {
		return err
	}
	for who, times := range found { // order does not matter: each has its own entry
		u := w.users[who]
		if u == nil {
			u = &starts{}
			w.users[who] = u
		}
		// What is known of the past is a part of what was read now.
		u.times = append(slices.DeleteFunc(u.times, func(t time.Time) bool { return t.Before(w.born) }), times...)
		slices.SortFunc(u.times, time.Time.Compare)
		u.within = max(u.within, within)
	}
	w.filled[workspace] = within
	return nil
}

// pastOf finds what was started in a workspace since a time and before another, of those that count: under who started it, and under the
// workspace itself.
func (s *Service) pastOf(counts func(*store.Execution) bool) func(context.Context, string, time.Time,
	time.Time) (map[Starter][]time.Time, error) {
	return func(ctx context.Context, workspace string, since, before time.Time) (map[Starter][]time.Time, error) {
		found := map[Starter][]time.Time{}
		const size = 100
		for number := 1; ; number++ {
			page, err := s.o.Stores.Executions.List(ctx, identity.System(workspace),
				store.ExecutionQuery{Page: store.Page{Number: number, Size: size}})
			if err != nil {
				return nil, err
			}
			for i := range page.Executions {
				e := &page.Executions[i]
				if e.Created < since.UnixMilli() { // the newest come first
					return found, nil
				}
				if counts(e) && e.Created < before.UnixMilli() {
					for _, who := range []Starter{{workspace, e.User}, {workspace, ""}} {
						found[who] = append(found[who], time.UnixMilli(e.Created))
					}
				}
			}
			if number*size >= page.Total {
				return found, nil
			}
		}
	}
}

// isTaskStart says that an execution is a task that somebody has given to an agent, isRequest that somebody has started it by a request.
// Those of triggers have no user; those of parents and forks do not count.
func isTaskStart(e *store.Execution) bool { return isRequest(e) && e.TriggerType == TriggerAgent }

func isRequest(e *store.Execution) bool {
	return e.User != "" && e.User != identity.System("").User && e.Parent == "" && e.ForkedFrom == ""
}
