package human

import (
	"context"
	"sync"

	"tandem/identity"
	"tandem/store"
)

// Event says that a question was asked, has changed or has ended, after that was written. One without an interaction says that some were missed.
type Event struct {
	Interaction store.Interaction
}

const (
	watchBuffer = 256    // events that a reader may be behind
	watchQueue  = 10_000 // questions that are to be read for those who watch
)

// watchers hands events out to those who watch a workspace. Nobody waits for a slow reader: it misses events, and is told.
type watchers struct {
	mu     sync.Mutex
	byName map[string]map[*watcher]bool // by workspace
	queue  []recorded
	wake   chan struct{}
	closed bool
}

// recorded names a question that is to be read and told of.
type recorded struct{ workspace, id string }

type watcher struct {
	events chan Event
	missed bool // guarded by the mu of watchers
}

func newWatchers() *watchers {
	return &watchers{byName: map[string]map[*watcher]bool{}, wake: make(chan struct{}, 1)}
}

// Watch follows the questions of a workspace. The events end with stop, or with the desk. Missed says whether some were missed since
// it was last asked; a reader asks before it believes that it has seen everything.
func (b *backroom) Watch(workspace string) (events <-chan Event, missed func() bool, stop func()) {
	w := b.watchers
	me := &watcher{events: make(chan Event, watchBuffer)}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		close(me.events)
	} else {
		if w.byName[workspace] == nil {
			w.byName[workspace] = map[*watcher]bool{}
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

// tellWatchers hands an event to those who watch its workspace.
func (b *backroom) tellWatchers(e Event) {
	b.watchers.publish(e.Interaction.Workspace, e)
	if e.Interaction.Status != store.InteractionPending {
		nudge(b.ears.wake) // perhaps nobody has to listen any more
	}
}

func (w *watchers) publish(workspace string, e Event) {
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

// Recorded says that questions were opened or withdrawn by an append. Those who watch are told of them; the caller does not wait.
func (b *backroom) Recorded(workspace string, ids ...string) {
	b.Look()
	w := b.watchers
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.byName[workspace]) == 0 {
		return
	}
	if len(w.queue)+len(ids) > watchQueue {
		w.miss(workspace)
		return
	}
	for _, id := range ids {
		w.queue = append(w.queue, recorded{workspace, id})
	}
	nudge(w.wake)
}

// run reads the questions that were recorded and tells of them.
func (w *watchers) run(ctx context.Context, b *backroom) {
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
			i, err := b.o.Interactions.Get(ctx, identity.System(one.workspace), one.id)
			if err != nil {
				if ctx.Err() == nil {
					b.o.Log.Error("a question cannot be read; those who watch miss it", "workspace", one.workspace, "interaction", one.id, "error", err)
				}
				w.mu.Lock()
				w.miss(one.workspace)
				w.mu.Unlock()
				continue
			}
			b.tellWatchers(Event{Interaction: i})
		}
	}
}

// miss tells everybody who watches a workspace that something was missed. Whoever calls it holds mu.
func (w *watchers) miss(workspace string) {
	for one := range w.byName[workspace] {
		one.missed = true
		select {
		case one.events <- Event{}:
		default: // it has something to read, and asks then
		}
	}
}

// close ends all events.
func (w *watchers) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for _, all := range w.byName {
		for one := range all {
			close(one.events)
		}
	}
	w.byName = map[string]map[*watcher]bool{}
}
