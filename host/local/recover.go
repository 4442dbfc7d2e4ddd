package local

import (
	"slices"
	"sync"
	"time"

	"tandem/engine"
	"tandem/host"
	"tandem/store"
)

// A process that died may have been killed by one of the nodes it ran. Nobody knows by which: a run is not recorded when it
// begins. So what is recovered is counted, and fails after three times. To keep that from those that were only there,
// executions come back in line, as many at a time as nodes can run, and one that has been in two crashes comes back
// alone.

// line is the executions that are to come back.
type line struct {
	mu      sync.Mutex
	free    int
	waiting []store.Ref
	active  map[store.Ref]bool
}

// comeBack puts an execution into the line.
func (h *Host) comeBack(ref store.Ref) {
	h.line.mu.Lock()
	if h.line.free == 0 {
		h.line.waiting = append(h.line.waiting, ref)
		h.line.mu.Unlock()
		return
	}
	h.line.free--
	h.line.active[ref] = true
	h.line.mu.Unlock()
	h.post(ref, wanted{})
}

// isBack says that what was recovered of an execution has ended, or that it runs nothing: the next may come back.
func (h *Host) isBack(ref store.Ref) {
	h.line.mu.Lock()
	if !h.line.active[ref] {
		h.line.mu.Unlock()
		return
	}
	delete(h.line.active, ref)
	if len(h.line.waiting) == 0 {
		h.line.free++
		h.line.mu.Unlock()
		return
	}
	next := h.line.waiting[0]
	h.line.waiting = h.line.waiting[1:]
	h.line.active[next] = true
	h.line.mu.Unlock()
	h.post(next, wanted{})
}

const (
	// suspicious is in how many crashes a run has been when it comes back alone.
	suspicious = 2
	// alone is how long it may keep others waiting.
	alone = 30 * time.Second
)

// suspect says that one of the runs to recover has been in several crashes.
func (o *owner) suspect() bool {
	return slices.ContainsFunc(o.fold.State().Activations(), func(a engine.Activation) bool {
		return a.Status == engine.NodeRunning && a.Recoveries >= suspicious
	})
}

// beAlone waits until no other suspect runs.
func (o *owner) beAlone() {
	limit := time.NewTimer(alone)
	defer limit.Stop()
	select {
	case o.host.suspects <- struct{}{}:
		o.alone = true
	case <-limit.C:
	case <-o.host.ctx.Done():
	}
}

// back is called when nothing that was recovered runs any more, even if it was called before: the line may have come to
// the execution after something else has brought it back.
func (o *owner) back() {
	if o.alone {
		o.alone = false
		<-o.host.suspects
	}
	o.host.isBack(o.ref)
}

// recover takes up what the process before had in hand: what runs according to the journal runs nowhere.
func (o *owner) recover() error {
	lost := slices.ContainsFunc(o.fold.State().Outstanding(), func(c engine.Command) bool {
		_, ok := c.(engine.RunNode)
		return ok
	})
	if !lost {
		return nil
	}
	if o.suspect() {
		o.beAlone()
	}
	turn := o.fold.Begin(o.now())
	commands, err := turn.Add(engine.ExecutionRecovered{})
	if err != nil {
		return host.Unreadable(err, "execution %q cannot be taken up: %w", o.ref.Execution)
	}
	if commands, err = o.commit(o.host.ctx, row{turn: turn, commands: commands}); err != nil {
		return err
	}
	o.carryOut(commands)
	o.recovered = map[engine.Attempt]bool{}
	for _, a := range o.attempts { // order does not matter: each is noted
		o.recovered[a.id] = true
	}
	return nil
}
