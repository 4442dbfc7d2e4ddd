package temporal

import (
	"context"
	"sync"
	"time"

	"tandem/host/local"
	"tandem/store"
)

// waking is the wake-ups that are to be sent. One that waits stands for all that come meanwhile, since it holds nothing.
type waking struct {
	send func(context.Context, store.Ref, *local.Next) error

	mu      sync.Mutex
	waiting map[store.Ref]*local.Next // nil: what follows is not known
	line    []store.Ref
	more    chan struct{}
	// sent are closed when nothing waits any more.
	sent    []chan struct{}
	senders sync.WaitGroup
}

// How many wake-ups are sent at once, those that are fresh and those of a sweep, and how long one waits that could not be sent.
const (
	wakers     = 8
	lateWakers = 2
	wakePause  = 500 * time.Millisecond
)

// begin lets so many be sent at once.
func (w *waking) begin(ctx context.Context, senders int, send func(context.Context, store.Ref, *local.Next) error) {
	w.send, w.waiting, w.more = send, map[store.Ref]*local.Next{}, make(chan struct{}, senders)
	for range senders {
		w.senders.Go(func() { w.work(ctx) })
	}
}

// end returns when nothing is sent any more. What waits is found by the next sweep.
func (w *waking) end(stop context.CancelFunc) {
	stop()
	w.senders.Wait()
}

// Wake implements [local.Carrier].
func (w *waking) Wake(ref store.Ref) { w.put(ref, nil) }

// Begin implements [local.Carrier].
func (w *waking) Begin(ref store.Ref, n local.Next) { w.put(ref, &n) }

// put adds a wake-up. One that comes behind another makes what was known uncertain.
func (w *waking) put(ref store.Ref, first *local.Next) {
	w.mu.Lock()
	if _, waits := w.waiting[ref]; !waits {
		w.line = append(w.line, ref)
	} else {
		first = nil
	}
	w.waiting[ref] = first
	w.mu.Unlock()
	select {
	case w.more <- struct{}{}:
	default: // all of them are at work
	}
}

func (w *waking) takeNext() (store.Ref, *local.Next, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.line) == 0 {
		return store.Ref{}, nil, false
	}
	ref := w.line[0]
	w.line = w.line[1:]
	first := w.waiting[ref]
	delete(w.waiting, ref)
	if len(w.line) == 0 {
		for _, each := range w.sent {
			close(each)
		}
		w.sent = nil
	}
	return ref, first, true
}

// emptied is closed when nothing waits to be sent.
func (w *waking) emptied() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := make(chan struct{})
	if len(w.line) == 0 {
		close(c)
	} else {
		w.sent = append(w.sent, c)
	}
	return c
}

func (w *waking) work(ctx context.Context) {
	for {
		ref, first, ok := w.takeNext()
		if !ok {
			select {
			case <-w.more:
				continue
			case <-ctx.Done():
				return
			}
		}
		for w.send(ctx, ref, first) != nil {
			select {
			case <-time.After(wakePause):
			case <-ctx.Done():
				return
			}
		}
	}
}
