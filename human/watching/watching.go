// Package watching hands what happens in workspaces to those who watch them. It knows nothing of what that is.
//
// Package human imports it; nothing else does.
package watching

import (
	"context"
	"sync"
)

// Buffer is how many events a reader may be behind, and Queue how many records wait to be read for those who watch.
const (
	Buffer = 256
	Queue  = 10_000
)

// Watchers hands events out to those who watch a workspace. Nobody waits for a slow reader: it misses events, and is told.
type Watchers[E any] struct {
	mu     sync.Mutex
	byName map[string]map[*watcher[E]]bool // by workspace
	queue  []Recorded
	wake   chan struct{}
	closed bool
}

// Recorded names a record that is to be read and told of.
type Recorded struct{ Workspace, ID string }

type watcher[E any] struct {
	events chan E
	missed bool // guarded by the mu of Watchers
}

// New makes watchers of nothing yet.
func New[E any]() *Watchers[E] {
	return &Watchers[E]{byName: map[string]map[*watcher[E]]bool{}, wake: make(chan struct{}, 1)}
}

// Watch follows a workspace. The events end with stop, or with Close. Missed says whether some were missed since
// it was last asked; a reader asks before it believes that it has seen everything.
func (w *Watchers[E]) Watch(workspace string) (events <-chan E, missed func() bool, stop func()) {
	me := &watcher[E]{events: make(chan E, Buffer)}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		close(me.events)
	} else {
		if w.byName[workspace] == nil {
			w.byName[workspace] = map[*watcher[E]]bool{}
		}
		w.byName[workspace][me] = true
	}
	missed = func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		was := me.missed
		me.missed = false
		return was
	}
	stop = func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !w.byName[workspace][me] {
			return
		}
		delete(w.byName[workspace], me)
		if len(w.byName[workspace]) == 0 {
			delete(w.byName, workspace)
		}
		close(me.events)
	}
	return me.events, missed, stop
}

// Publish hands an event to those who watch a workspace.
func (w *Watchers[E]) Publish(workspace string, e E) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for one := range w.byName[workspace] {
		select {
		case one.events <- e:
		default:
			one.missed = true
		}
	}
}

// Record notes records that those who watch are to be told of, if there are any. The caller does not wait: [Watchers.Run] reads them.
func (w *Watchers[E]) Record(workspace string, ids ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.byName[workspace]) == 0 {
		return
	}
	if len(w.queue)+len(ids) > Queue {
		w.miss(workspace)
		return
	}
	for _, id := range ids {
		w.queue = append(w.queue, Recorded{workspace, id})
	}
	select {
	case w.wake <- struct{}{}:
	default: // it is awake, or will be
	}
}

// Run reads what was recorded until the context ends. Tell reads a record and tells of it; when it cannot, those who watch its workspace
// miss it, and are told.
func (w *Watchers[E]) Run(ctx context.Context, tell func(context.Context, Recorded) error) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		}
		w.mu.Lock()
		queue := w.queue
		w.queue = nil
		w.mu.Unlock()
		for _, one := range queue {
			if tell(ctx, one) != nil {
				w.mu.Lock()
				w.miss(one.Workspace)
				w.mu.Unlock()
			}
		}
	}
}

// miss tells everybody who watches a workspace that something was missed. The caller holds mu.
func (w *Watchers[E]) miss(workspace string) {
	for one := range w.byName[workspace] {
		one.missed = true
		select {
		case one.events <- *new(E):
		default: // it has something to read, and asks then
		}
	}
}

// Close ends all events.
func (w *Watchers[E]) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for _, all := range w.byName {
		for one := range all {
			close(one.events)
		}
	}
	w.byName = map[string]map[*watcher[E]]bool{}
}
