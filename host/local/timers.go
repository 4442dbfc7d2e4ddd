package local

import (
	"container/heap"
	"sync"
	"time"

	"tandem/engine"
	"tandem/store"
)

// timers is one heap for all timers of the process and one goroutine that waits for the first. The store has them too;
// this is what makes them exact.
type timers struct {
	fire func(store.Ref, engine.TimerID)

	mu     sync.Mutex
	heap   timerHeap
	index  map[timerKey]*timerEntry
	wake   chan struct{}
	stop   chan struct{}
	closed sync.WaitGroup
}

type timerKey struct {
	ref store.Ref
	id  engine.TimerID
}

type timerEntry struct {
	timerKey
	until int64
	place int
}

func newTimers(fire func(store.Ref, engine.TimerID)) *timers {
	t := &timers{fire: fire, index: map[timerKey]*timerEntry{}, wake: make(chan struct{}, 1), stop: make(chan struct{})}
	t.closed.Add(1)
	go t.run()
	return t
}

func (t *timers) setTimer(ref store.Ref, id engine.TimerID, until int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := timerKey{ref, id}
	if e := t.index[key]; e != nil {
		e.until = until
		heap.Fix(&t.heap, e.place)
	} else {
		e = &timerEntry{timerKey: key, until: until}
		t.index[key] = e
		heap.Push(&t.heap, e)
	}
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

func (t *timers) clear(ref store.Ref, id engine.TimerID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.index[timerKey{ref, id}]; e != nil {
		heap.Remove(&t.heap, e.place)
		delete(t.index, e.timerKey)
	}
}

func (t *timers) close() {
	close(t.stop)
	t.closed.Wait()
}

func (t *timers) run() {
	defer t.closed.Done()
	clock := time.NewTimer(time.Hour)
	defer clock.Stop()
	for {
		due, next := t.takeDue(time.Now().UnixMilli())
		for _, e := range due {
			t.fire(e.ref, e.id)
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

// takeDue removes what is due and says how long to wait for the next.
func (t *timers) takeDue(now int64) (due []*timerEntry, next time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.heap) > 0 && t.heap[0].until <= now {
		e := heap.Pop(&t.heap).(*timerEntry)
		delete(t.index, e.timerKey)
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

// longestNap is how long the clock is not looked at. It may be set, and the machine may sleep, which waiting does not see.
const longestNap = 10 * time.Second

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
