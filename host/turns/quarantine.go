package turns

import (
	"context"
	"sync"
	"time"
)

// A run that was in the death of a process may have killed it. Where a carrier hands runs to several processes, each of them comes
// back by itself, to whichever process is free. So one that was in a death is tried there: nothing else begins in that process, and
// what runs gets a moment to end. A death within the trial is held against it; what survives its trial goes on as others do.

// Quarantine lets runs begin in a process.
type Quarantine struct {
	mu sync.Mutex
	// running is how many runs go on, held says that one is tried; freed is closed and made anew when either has changed.
	running int
	held    bool
	freed   chan struct{}
}

// Entrance is a run that has begun here. Tried says that it is in its trial, left that it has ended; the lock of the quarantine is over
// both.
type Entrance struct {
	of          *Quarantine
	tried, left bool
}

// Enter counts a run that begins now. It says no when others have to be waited for.
func (q *Quarantine) Enter(deaths uint32) (*Entrance, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.held || deaths > 0 {
		return nil, false
	}
	q.running++
	return &Entrance{of: q}, true
}

// Await waits until a run may begin that was in so many deaths: what runs has so long to end. When the context ends it begins at once: it
// is told to stop, too.
func (q *Quarantine) Await(ctx context.Context, deaths uint32, window time.Duration) *Entrance {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.held && ctx.Err() == nil {
		q.pause(ctx.Done(), nil)
	}
	e := &Entrance{of: q}
	if deaths > 0 && ctx.Err() == nil {
		q.held, e.tried = true, true
		clock := time.NewTimer(window)
		defer clock.Stop()
		for late := false; q.running > 0 && !late && ctx.Err() == nil; {
			late = q.pause(ctx.Done(), clock.C)
		}
	}
	q.running++
	return e
}

// pause lets go of the lock, which is the caller's, until something has changed or the caller waits no longer. It says whether it is late.
func (q *Quarantine) pause(stop <-chan struct{}, clock <-chan time.Time) (late bool) {
	if q.freed == nil {
		q.freed = make(chan struct{})
	}
	freed := q.freed
	q.mu.Unlock()
	defer q.mu.Lock()
	select {
	case <-freed:
	case <-stop:
	case <-clock:
		return true
	}
	return false
}

// changed tells those who wait. The lock is the caller's.
func (q *Quarantine) changed() {
	if q.freed != nil {
		close(q.freed)
		q.freed = nil
	}
}

// Acquit ends the trial, if there is one. It says whether that was so.
func (e *Entrance) Acquit() bool {
	e.of.mu.Lock()
	defer e.of.mu.Unlock()
	return e.end()
}

func (e *Entrance) end() bool {
	if !e.tried {
		return false
	}
	e.tried, e.of.held = false, false
	e.of.changed()
	return true
}

// Leave says that the run has ended.
func (e *Entrance) Leave() {
	e.of.mu.Lock()
	defer e.of.mu.Unlock()
	if e.left {
		return
	}
	e.end()
	e.left = true
	e.of.running--
	e.of.changed()
}
