package local

import (
	"context"
	"slices"
	"sync"
	"time"

	"tandem/engine"
	"tandem/host/register"
	"tandem/store"
)

// A run that had begun when a process died may have killed it. So those runs come back before anything else runs, as a trial:
// half as many at a time as can be to blame. A death in a trial halves them, until one has run alone, which the engine counts. A
// trial lasts until its runs have ended, at most a second, doubled with each death that the runs were in; then they go on as
// others do. What survives even the longest trial, again and again, is repeated after pauses that grow, and keeps nobody waiting.

const (
	firstTrial = time.Second
	lastTrial  = 30 * time.Second
	// arrival is how long trials wait for the executions whose runs are to be tried.
	arrival = 10 * time.Second
	// carefully is how long a process does nothing without noting it, after one that died of something that was not noted.
	carefully = time.Minute
)

// trials are the runs that are to be tried.
type trials struct {
	host *Host
	// atOnce is how many are tried at a time.
	atOnce int

	mu sync.Mutex
	// expected are executions whose runs are to be tried; while there are trials, open is set and the gate is closed.
	expected map[store.Ref]bool
	open     bool
	queue    []*trial
	wake     chan struct{}
}

// trial is one run that is to be tried.
type trial struct {
	// first says that it died in a trial: it is more likely to be to blame than one that has survived its own.
	first  bool
	window time.Duration
	run    func(*trial)
	drop   func()

	mu    sync.Mutex
	over  bool
	noted register.Entry
}

// beginTrial notes in the register that the run begins.
func (t *trial) beginTrial(r *register.Register, ref store.Ref, a engine.Attempt) register.Entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.noted = r.Begin(ref, a, !t.over)
	return t.noted
}

// end says that others run beside it from now on.
func (t *trial) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	t.noted.Tried()
}

func newTrials(h *Host) *trials {
	return &trials{host: h, expected: map[store.Ref]bool{}, wake: make(chan struct{}, 1)}
}

// beginTrials keeps everything else waiting until the runs of some executions were tried.
func (t *trials) beginTrials(suspects []store.Ref) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(suspects) == 0 || t.host.resting.Load() {
		return
	}
	for _, ref := range suspects {
		t.expected[ref] = true
	}
	if t.open {
		return
	}
	t.open, t.atOnce = true, t.host.register.AtOnce()
	t.host.gate.Close()
	t.host.running.Go(t.hold)
}

// pass tries a run in its turn, or returns false when there are no trials. When its context ends first, or the process stops, drop is
// called.
func (t *trials) pass(ctx context.Context, one *trial) bool {
	t.mu.Lock()
	if !t.open || t.host.resting.Load() {
		t.mu.Unlock()
		return false
	}
	t.queue = append(t.queue, one)
	t.mu.Unlock()
	context.AfterFunc(ctx, func() {
		t.mu.Lock()
		i := slices.Index(t.queue, one)
		if i >= 0 {
			t.queue = slices.Delete(t.queue, i, i+1)
		}
		t.mu.Unlock()
		if i >= 0 {
			one.drop()
		}
	})
	return true
}

// arrived says that what an execution has to be tried waits for its trial.
func (t *trials) arrived(ref store.Ref) {
	t.mu.Lock()
	delete(t.expected, ref)
	t.mu.Unlock()
	select {
	case t.wake <- struct{}{}:
	default: // it is awake, or will be
	}
}

// hold holds the trials, then lets everything go on.
func (t *trials) hold() {
	t.await()
	for batch := t.takeTrials(); len(batch) > 0; batch = t.takeTrials() {
		t.try(batch)
	}
	t.host.gate.Reopen()
}

// await waits for the executions whose runs are to be tried.
func (t *trials) await() {
	late := time.NewTimer(arrival)
	defer late.Stop()
	for {
		t.mu.Lock()
		open := len(t.expected) > 0
		t.mu.Unlock()
		if !open {
			return
		}
		select {
		case <-t.wake:
		case <-late.C:
			return
		case <-t.host.ctx.Done():
			return
		}
	}
}

// takeTrials takes the next that are tried together. With the last of them the trials are over.
func (t *trials) takeTrials() []*trial {
	t.mu.Lock()
	defer t.mu.Unlock()
	slices.SortStableFunc(t.queue, func(a, b *trial) int {
		switch {
		case a.first == b.first:
			return 0
		case a.first:
			return -1
		}
		return 1
	})
	n := min(t.atOnce, len(t.queue))
	batch := slices.Clone(t.queue[:n])
	t.queue = slices.Delete(t.queue, 0, n)
	t.open = len(batch) > 0
	return batch
}

// shutDown drops those that wait.
func (t *trials) shutDown() {
	t.mu.Lock()
	queue := t.queue
	t.queue = nil
	t.mu.Unlock()
	for _, one := range queue {
		one.drop()
	}
}

// try runs some until they have ended, or for as long as they may keep others waiting.
func (t *trials) try(batch []*trial) {
	var running sync.WaitGroup
	window := time.Duration(0)
	for _, one := range batch {
		window = max(window, one.window)
		running.Add(1)
		t.host.gate.Try(func() {
			defer running.Done()
			one.run(one)
		})
	}
	ended := make(chan struct{})
	go func() { // it ends with the runs
		running.Wait()
		close(ended)
	}()
	clock := time.NewTimer(window)
	defer clock.Stop()
	select {
	case <-ended:
	case <-clock.C:
	case <-t.host.ctx.Done():
	}
	for _, one := range batch {
		one.end()
	}
}

// windowOf is how long a run may keep others waiting that was in so many deaths.
func windowOf(deaths uint32) time.Duration {
	if deaths > 5 {
		return lastTrial
	}
	return firstTrial << (max(deaths, 1) - 1)
}
