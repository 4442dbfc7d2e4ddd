package budget

import (
	"context"
	"errors"
	"sync"
	"time"

	"tandem/fault"
	"tandem/identity"
	"tandem/node"
	"tandem/shortage"
	"tandem/store"
)

// late is what calls have used whose outcomes came too late, and could not be settled yet.
type late struct {
	closing context.Context
	stop    context.CancelFunc

	mu    sync.Mutex
	calls []lateCall
	// trying says that somebody tries to settle them.
	trying bool
}

type lateCall struct {
	store.Ref
	used store.Settlement
}

func newLate() late {
	ctx, stop := context.WithCancel(context.Background())
	return late{closing: ctx, stop: stop}
}

// Late settles what a run has used whose outcome came too late: nothing else would, and who queues behind it would wait for
// ever. What cannot be settled now, since the database is away, is settled once it can; until then it stays reserved, and if the process
// ends before, what was reserved counts as used.
func (u *Purse) Late(ref store.Ref, list []node.Settlement) {
	calls := make([]lateCall, len(list))
	for i, s := range list {
		calls[i] = lateCall{ref, store.Settlement{ID: s.ID, Tokens: s.Tokens, Cost: s.Cost}}
	}
	l := &u.late
	l.mu.Lock()
	if l.trying { // the database was away a moment ago
		l.calls = append(l.calls, calls...)
		l.mu.Unlock()
		return
	}
	l.mu.Unlock()
	left := u.settle(calls)
	u.Wake()
	if len(left) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calls = append(l.calls, left...); !l.trying {
		l.trying = true
		u.waking.Go(u.settleLate) // it ends with Close
	}
}

// settle settles calls and returns those that could not be: from the first on for which the database is not there.
func (u *Purse) settle(calls []lateCall) []lateCall {
	for i, c := range calls {
		err := u.ledger.Settle(u.late.closing, identity.System(c.Workspace), c.used)
		_, decided := errors.AsType[*fault.Error](err)
		switch {
		case err == nil:
		case errors.Is(err, store.ErrConflict): // a try before was written, or who looks after those that are gone has counted it
		case store.Waits(err), shortage.Is(err), !decided:
			u.log.Warn("what a late call has used is not counted yet, and is tried again", "execution", c.Execution, "calls", len(calls)-i, "error", err)
			return calls[i:]
		default:
			u.log.Warn("what a late call had reserved stays open", "execution", c.Execution, "call", c.used.ID, "error", err)
		}
	}
	return nil
}

// settleLate tries again and again, until everything is settled.
func (u *Purse) settleLate() {
	l := &u.late
	for {
		select {
		case <-time.After(u.Again):
		case <-l.closing.Done():
			l.mu.Lock()
			defer l.mu.Unlock()
			u.log.Warn("what late calls had reserved counts as used: the database did not come back before the end", "calls", len(l.calls))
			return
		}
		l.mu.Lock()
		calls := l.calls
		l.calls = nil
		l.mu.Unlock()
		left := u.settle(calls)
		l.mu.Lock()
		l.calls = append(left, l.calls...)
		l.trying = len(l.calls) > 0
		more := l.trying
		l.mu.Unlock()
		if len(left) < len(calls) {
			u.Wake()
		}
		if !more {
			return
		}
	}
}
