// Package sweep wakes executions again that may have been forgotten.
//
// Whoever records something for an execution that another process carries on wakes that execution. The wake-up is lost if the process
// dies in between. So the one that looks after all of them looks into the store from time to time: something has been due for a while and
// nobody has taken it, or a process is gone that may have owed a wake-up.
//
// It knows nothing of how executions are carried: hosts with a carrier use it.
package sweep

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"tandem/engine"
	"tandem/identity"
	"tandem/store"
)

// Books are those of the host that has the limits.
type Books interface {
	// Reckon counts an execution that has not ended, and says that it is to go on: it does not wait for its turn.
	Reckon(store.Unfinished) bool
	// Readmit lets begin what there is room for.
	Readmit()
}

// Options are what a sweep looks at and whom it tells.
type Options struct {
	Executions store.Executions
	Inbox      store.Inbox
	Timers     store.Timers
	Books      Books
	// Wake has an execution attended to, behind everything that is fresh.
	Wake func(store.Ref)
	// Gone says whether a process that works on the executions has gone since the last call. Nil: none ever is.
	Gone func(context.Context) (bool, error)
	// Page is how many executions one look reads and wakes of each sort: of those that run, that are to begin, for their inbox, and for
	// their timers. The next look goes on behind them. 1,000 when zero.
	Page int
}

// Sweeper looks for what may have been forgotten. One goroutine uses it at a time.
//
// No look wakes more than a page of each sort, or reads more, but for inboxes: which executions have something there is read whole. A
// round, in which everything is woken, goes on with the next looks: however much there is, it comes as fast as it is taken, and not at
// once.
type Sweeper struct {
	o Options
	// all is when a round has ended last, usual when it was last looked for what seems to have been forgotten.
	all, usual time.Time
	// running and pending are passes through what runs and what is to begin.
	running, pending pass
	// waiting are the executions that had something in their inbox at the last look and were not woken by it, the longest waiting first.
	waiting []store.Ref
	// inboxes says that a round has yet to wake those, inboxesAgain that another one has then.
	inboxes, inboxesAgain bool
	// after is where the next look at timers begins. In a round everything is woken that is due before the time dueBy; dueAgain says that
	// another one follows.
	after    store.Timer
	dueBy    time.Time
	dueAgain bool
}

// pass is a way through executions of one status, page by page and again and again.
type pass struct {
	// at is behind which execution the next page begins.
	at store.Unfinished
	// wake says that all of them are woken in this pass, and again that they are in the next one, too: that was wanted when this pass was
	// past the first of them.
	wake, again bool
}

// begin has everything woken, from here on and around.
func (p *pass) begin() { p.wake, p.again = true, p.at.Place > 0 }

// end goes on at the beginning.
func (p *pass) end() { *p = pass{wake: p.again} }

const (
	// grace is how long something may be due before it counts as forgotten: a worker may be about to take it.
	grace = 30 * time.Second
	// usualPage is how many executions one look reads and wakes of each sort.
	usualPage = 1000
	// allEvery is how often everything that runs is woken although nothing says that it was forgotten.
	allEvery = time.Hour
)

// New makes one.
func New(o Options) *Sweeper {
	o.Page = cmp.Or(o.Page, usualPage)
	return &Sweeper{o: o}
}

// All begins a round: it wakes everything there may be something to do for, which is what runs, what has something in its inbox and what is
// due. It is for the beginning, and for when anything may have been missed. What runs or is to begin is counted before all else.
func (s *Sweeper) All(ctx context.Context) error {
	s.begin()
	for u, err := range s.o.Executions.Unfinished(ctx, identity.System(""), store.Unfinished{}) {
		if err != nil {
			return fmt.Errorf("count what has not ended: %w", err)
		}
		s.o.Books.Reckon(u)
	}
	return s.look(ctx)
}

// begin begins a round. One that is under way is not broken off.
func (s *Sweeper) begin() {
	s.running.begin()
	s.pending.begin()
	if s.inboxesAgain = s.inboxes; !s.inboxes {
		s.waiting, s.inboxes = nil, true
	}
	if s.dueAgain = !s.dueBy.IsZero(); !s.dueAgain {
		s.after, s.dueBy = store.Timer{}, time.Now()
	}
}

// Goes says that a round is under way, which the next look goes on with.
func (s *Sweeper) Goes() bool {
	return s.running.wake || s.pending.wake || s.inboxes || !s.dueBy.IsZero()
}

// Overdue wakes what seems to have been forgotten, and goes on with a round that is under way. It begins one if a process is gone, and
// once in a long time.
func (s *Sweeper) Overdue(ctx context.Context) error {
	gone := false
	if s.o.Gone != nil {
		var err error
		if gone, err = s.o.Gone(ctx); err != nil {
			return fmt.Errorf("look whether processes are gone: %w", err)
		}
	}
	if gone || !s.Goes() && time.Since(s.all) >= allEvery {
		s.begin()
	}
	return s.look(ctx)
}

// look looks at one page of each sort. The looks of a round follow each other quickly. So what has come to its end in it is left alone
// until it is time for the usual look: work that is only a moment old would seem to have been forgotten.
func (s *Sweeper) look(ctx context.Context) error {
	goes := s.Goes()
	usual := !goes || time.Since(s.usual) >= grace
	if usual {
		s.usual = time.Now()
	}
	if usual || s.running.wake {
		if err := s.unfinished(ctx, engine.StatusRunning, &s.running); err != nil {
			return err
		}
	}
	if usual || s.pending.wake {
		if err := s.unfinished(ctx, engine.StatusPending, &s.pending); err != nil {
			return err
		}
	}
	s.o.Books.Readmit()
	if usual || s.inboxes {
		if err := s.inbox(ctx); err != nil {
			return err
		}
	}
	if usual || !s.dueBy.IsZero() {
		if err := s.due(ctx); err != nil {
			return err
		}
	}
	if goes && !s.Goes() {
		s.all = time.Now()
	}
	return nil
}

// unfinished counts a page of what runs or is to begin, and wakes it if that is wanted. What is to begin, and needs no turn, is woken when it
// has not begun for a while.
func (s *Sweeper) unfinished(ctx context.Context, status engine.Status, p *pass) error {
	late, n := time.Now().Add(-grace).UnixMilli(), 0
	if p.at.Place == 0 {
		p.at.Status = status
	}
	for u, err := range s.o.Executions.Unfinished(ctx, identity.System(""), p.at) {
		if err != nil {
			return fmt.Errorf("read unfinished executions: %w", err)
		}
		if u.Status != status {
			break
		}
		if s.o.Books.Reckon(u) && (p.wake || status == engine.StatusPending && u.Created <= late) {
			s.o.Wake(u.Ref)
		}
		p.at = u
		if n++; n == s.o.Page {
			return nil
		}
	}
	p.end()
	return nil
}

// inbox wakes what has had something in its inbox for two looks, and in a round what has something there now.
func (s *Sweeper) inbox(ctx context.Context) error {
	if s.inboxes && len(s.waiting) > 0 {
		s.wakeFirst(s.waiting)
		return nil
	}
	pending, err := s.o.Inbox.PendingExecutions(ctx, identity.System(""))
	if err != nil {
		return fmt.Errorf("read the inbox: %w", err)
	}
	if s.inboxes {
		s.wakeFirst(pending)
		return nil
	}
	found := make(map[store.Ref]bool, len(pending))
	for _, ref := range pending {
		found[ref] = true
	}
	before := slices.DeleteFunc(s.waiting, func(ref store.Ref) bool { return !found[ref] })
	for _, ref := range before {
		delete(found, ref)
	}
	s.wakeFirst(before) // they have the time of a look to take it, and then stand behind the others
	for _, ref := range pending {
		if found[ref] {
			s.waiting = append(s.waiting, ref)
		}
	}
	return nil
}

// wakeFirst wakes so many of a list. The others wait.
func (s *Sweeper) wakeFirst(list []store.Ref) {
	n := min(len(list), s.o.Page)
	for _, ref := range list[:n] {
		s.o.Wake(ref)
	}
	s.waiting = slices.Clone(list[n:])
	if s.inboxes && len(s.waiting) == 0 {
		s.inboxes, s.inboxesAgain = s.inboxesAgain, false
	}
}

// due wakes a page of what was due a while ago, or in a round when that began.
func (s *Sweeper) due(ctx context.Context) error {
	list, err := s.o.Timers.Upcoming(ctx, identity.System(""), s.after, s.o.Page)
	if err != nil {
		return fmt.Errorf("read timers: %w", err)
	}
	before := time.Now().Add(-grace)
	if !s.dueBy.IsZero() {
		before = s.dueBy
	}
	for i, t := range list {
		if t.Until > before.UnixMilli() {
			list = list[:i]
			break
		}
		s.o.Wake(store.Ref{Workspace: t.Workspace, Execution: t.Execution})
		s.after = t
	}
	if len(list) == s.o.Page {
		return nil
	}
	s.after, s.dueBy = store.Timer{}, time.Time{}
	if s.dueAgain {
		s.dueAgain, s.dueBy = false, time.Now()
	}
	return nil
}
