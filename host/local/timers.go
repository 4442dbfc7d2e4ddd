package local

import (
	"container/heap"
	"slices"
	"sync"
	"time"

	"tandem/engine"
	"tandem/store"
)

// timers is one heap and one goroutine that waits for the first timer of it. The store has all timers. The heap has those that
// come first; the others are read from the store, a page at a time, when it runs low, so that it does not grow with what waits.
type timers struct {
	// fire is called with each timer that is due, one after the other.
	fire func(store.Ref, engine.TimerID)
	// upcoming reads the timers of the store that follow one. Nil: the heap has all timers that were set.
	upcoming func(after store.Timer, limit int) ([]store.Timer, error)

	mu    sync.Mutex
	heap  timerHeap
	index map[timerKey]*timerEntry
	// stored is how many timers of the heap are also in the store. The others do not count when the heap is shortened or filled.
	stored int
	// last is where the heap ends: it has the timers up to this one. Whole says that it has those behind it, too.
	last  store.Timer
	whole bool
	// changes are what was set, and cleared, while a page is read; nil: none is.
	changes map[timerKey]change
	wake    chan struct{}
	stop    chan struct{}
	closed  sync.WaitGroup
}

type timerKey struct {
	ref store.Ref
	id  engine.TimerID
}

type timerEntry struct {
	timerKey
	until int64
	// unstored says that the store does not have it, or for another time.
	unstored bool
	place    int
}

// change is what has become of a timer.
type change struct {
	set   bool
	until int64
}

const (
	// timerPage is how many timers are read at once: when there are fewer than fewTimers that the store has. With more than manyTimers,
	// which were set, only the first of them are kept.
	timerPage  = 1000
	fewTimers  = timerPage / 2
	manyTimers = 4 * timerPage
	// longestNap is how long the clock is not looked at. It may be set, and the machine may sleep, which waiting does not see.
	longestNap = 10 * time.Second
	// fillPause is how long the store is left alone after a page could not be read.
	fillPause = time.Second
)

// newTimers makes timers. They read nothing and fire nothing before start.
func newTimers(fire func(store.Ref, engine.TimerID), upcoming func(after store.Timer, limit int) ([]store.Timer, error)) *timers {
	return &timers{fire: fire, upcoming: upcoming, whole: upcoming == nil, index: map[timerKey]*timerEntry{}, wake: make(chan struct{}, 1),
		stop: make(chan struct{})}
}

// start lets them run until close.
func (t *timers) start() { t.closed.Go(t.run) }

// setTimer sets a timer that the store has.
func (t *timers) setTimer(ref store.Ref, id engine.TimerID, until int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := &timerEntry{timerKey: timerKey{ref, id}, until: until}
	if t.changes != nil {
		t.changes[e.timerKey] = change{set: true, until: until}
	}
	t.put(e)
	t.shorten()
}

// setUnstored sets a timer that the store does not have, or not for this time.
func (t *timers) setUnstored(ref store.Ref, id engine.TimerID, until int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.put(&timerEntry{timerKey: timerKey{ref, id}, until: until, unstored: true})
}

func (t *timers) clear(ref store.Ref, id engine.TimerID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := timerKey{ref, id}
	if t.changes != nil {
		t.changes[key] = change{}
	}
	t.remove(key)
}

// put takes a timer into the heap, unless it is behind the end of it.
func (t *timers) put(e *timerEntry) {
	t.remove(e.timerKey)
	if !e.unstored && !t.whole && e.stored().Compare(t.last) > 0 {
		return
	}
	t.index[e.timerKey] = e
	heap.Push(&t.heap, e)
	t.count(e, 1)
	if e.place == 0 {
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
}

func (t *timers) remove(key timerKey) {
	if e := t.index[key]; e != nil {
		heap.Remove(&t.heap, e.place)
		delete(t.index, key)
		t.count(e, -1)
	}
}

// count notes that a timer has come into the heap, or has gone.
func (t *timers) count(e *timerEntry, by int) {
	if !e.unstored {
		t.stored += by
	}
}

// shorten drops all but the first stored timers from the heap when there are many, but not while a page is read.
func (t *timers) shorten() {
	if t.upcoming == nil || t.changes != nil || t.stored <= manyTimers {
		return
	}
	slices.SortFunc(t.heap, func(a, b *timerEntry) int { return a.stored().Compare(b.stored()) })
	kept := t.heap[:0]
	t.stored = 0
	for _, e := range t.heap {
		switch {
		case e.unstored:
		case t.stored < manyTimers/2:
			t.last, t.whole = e.stored(), false
		default:
			delete(t.index, e.timerKey)
			continue
		}
		t.count(e, 1)
		e.place = len(kept)
		kept = append(kept, e)
	}
	clear(t.heap[len(kept):])
	t.heap = slices.Clone(kept) // in order, so that it is a heap
}

// fill reads what follows in the store when few timers are left.
func (t *timers) fill() error {
	t.mu.Lock()
	if t.whole || t.stored >= fewTimers {
		t.mu.Unlock()
		return nil
	}
	t.changes = map[timerKey]change{}
	after := t.last
	t.mu.Unlock()

	page, err := t.upcoming(after, timerPage)

	t.mu.Lock()
	defer t.mu.Unlock()
	changes := t.changes
	t.changes = nil
	if err != nil {
		return err
	}
	if t.whole = len(page) < timerPage; !t.whole {
		t.last = page[len(page)-1]
	}
	for _, timer := range page {
		e := &timerEntry{timerKey: timerKey{store.Ref{Workspace: timer.Workspace, Execution: timer.Execution}, engine.TimerID(timer.ID)},
			until: timer.Until}
		if _, changed := changes[e.timerKey]; !changed && !reminds(e.id) && t.index[e.timerKey] == nil {
			t.put(e)
		}
	}
	for key, c := range changes { // order does not matter: each is put in its place
		if c.set {
			t.put(&timerEntry{timerKey: key, until: c.until})
		}
	}
	t.shorten()
	return nil
}

func (t *timers) close() {
	close(t.stop)
	t.closed.Wait()
}

func (t *timers) run() {
	clock := time.NewTimer(time.Hour)
	defer clock.Stop()
	for {
		err := t.fill()
		due, next := t.takeDue(time.Now().UnixMilli())
		for _, e := range due {
			t.fire(e.ref, e.id)
		}
		if err != nil {
			next = min(next, fillPause)
		} else if t.low() {
			continue
		}
		clock.Reset(next)
		select {
		case <-t.stop:
			return
		case <-t.wake:
		case <-clock.C:
		}
	}
}

// low says that a page is to be read.
func (t *timers) low() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.whole && t.stored < fewTimers
}

// takeDue removes what is due and says how long to wait for the next.
func (t *timers) takeDue(now int64) (due []*timerEntry, next time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.heap) > 0 && t.heap[0].until <= now {
		e := heap.Pop(&t.heap).(*timerEntry)
		delete(t.index, e.timerKey)
		t.count(e, -1)
		due = append(due, e)
	}
	if len(t.heap) == 0 {
		return due, time.Hour
	}
	if left := t.heap[0].until - now; left < longestNap.Milliseconds() {
		return due, time.Duration(left) * time.Millisecond
	}
	return due, longestNap
}

// stored is the timer as the store has it.
func (e *timerEntry) stored() store.Timer {
	return store.Timer{Workspace: e.ref.Workspace, Execution: e.ref.Execution, ID: string(e.id), Until: e.until}
}

type timerHeap []*timerEntry

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].until < h[j].until }
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

func (h *timerHeap) Push(x any) {
	e := x.(*timerEntry)
	e.place = len(*h)
	*h = append(*h, e)
}

func (h *timerHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return e
}
