package turns

import (
	"runtime"
	"slices"
	"sync"
)

const (
	// maxBatch is how much brief work is worth to be handed to a goroutine.
	maxBatch = 32
	// maxWaiting is how many batches wait for a goroutine at most.
	maxWaiting = 16
)

// Batches does brief work of an owner in batches. While the owner collects more, the other processors do what was collected. It does not
// keep them all busy for one owner: as many goroutines as there are other processors do one batch after the other.
type Batches[W, O any] struct {
	do   func(*W) O
	room *Room[W]
	// collected is the work that is not in a batch yet, made are the batches in their order.
	collected []W
	made      []*batch[W, O]

	mu sync.Mutex
	// waiting are batches that are not begun, workers the goroutines that do them.
	waiting []*batch[W, O]
	workers int
	going   sync.WaitGroup
}

// batch is work that is done one piece after another.
type batch[W, O any] struct {
	work     []W
	outcomes []O
}

// Room is where work is while it waits, to be used again and again by many owners. The zero Room is ready.
type Room[W any] struct{ pool sync.Pool }

func (r *Room[W]) take() []W {
	if room, ok := r.pool.Get().(*[]W); ok {
		return *room
	}
	return make([]W, 0, maxBatch)
}

func (r *Room[W]) giveBack(room []W) {
	clear(room)
	room = room[:0]
	r.pool.Put(&room)
}

// NewBatches returns the batches of an owner, who alone may call them. Do does one piece of work.
func NewBatches[W, O any](do func(*W) O, room *Room[W]) *Batches[W, O] {
	return &Batches[W, O]{do: do, room: room}
}

// Add takes a piece of work, to be done at the latest with [Batches.Finish].
func (b *Batches[W, O]) Add(work W) {
	if len(b.collected) == maxBatch {
		b.begin()
	}
	b.collected = append(b.collected, work)
}

// begin hands what was collected to a goroutine.
func (b *Batches[W, O]) begin() {
	next := &batch[W, O]{work: b.collected}
	b.collected, b.made = b.room.take(), append(b.made, next)
	b.mu.Lock()
	b.waiting = append(b.waiting, next)
	many := len(b.waiting) > maxWaiting
	if b.workers < max(1, runtime.GOMAXPROCS(0)-1) {
		b.workers++
		b.going.Go(b.work)
	}
	b.mu.Unlock()
	if many {
		b.doNext()
	}
}

// work does batches until none waits.
func (b *Batches[W, O]) work() {
	for {
		b.mu.Lock()
		next := b.next()
		if next == nil {
			b.workers--
			b.mu.Unlock()
			return
		}
		b.mu.Unlock()
		b.doBatch(next)
	}
}

// doNext does the batch that has waited longest, and says whether there was one.
func (b *Batches[W, O]) doNext() bool {
	b.mu.Lock()
	next := b.next()
	b.mu.Unlock()
	if next != nil {
		b.doBatch(next)
	}
	return next != nil
}

// next takes the batch that has waited longest; nil: none waits. The caller holds mu.
func (b *Batches[W, O]) next() *batch[W, O] {
	if len(b.waiting) == 0 {
		return nil
	}
	next := b.waiting[0]
	b.waiting = slices.Delete(b.waiting, 0, 1)
	return next
}

func (b *Batches[W, O]) doBatch(next *batch[W, O]) {
	next.outcomes = make([]O, len(next.work))
	for i := range next.work {
		next.outcomes[i] = b.do(&next.work[i])
	}
	b.room.giveBack(next.work)
	next.work = nil
}

// Finish does what is left, and hands the outcomes of all that was added since the last call to told, in the order of the work.
func (b *Batches[W, O]) Finish(told func([]O)) {
	if len(b.collected) == 0 {
		return
	}
	last := make([]O, len(b.collected))
	for i := range b.collected {
		last[i] = b.do(&b.collected[i])
	}
	clear(b.collected)
	b.collected = b.collected[:0]
	for b.doNext() {
	}
	b.going.Wait()
	for _, made := range b.made {
		told(made.outcomes)
	}
	b.made = nil
	told(last)
}
