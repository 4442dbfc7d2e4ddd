package local

import (
	"slices"
	"sync"

	"tandem/engine"
	"tandem/host"
	"tandem/store"
)

// Executions come back in line, as many at a time as nodes can run. Those come first whose runs had begun when the process
// before died: they are tried while nothing else runs (see trial.go).

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
	if len(h.line.waiting) == 0 || h.resting.Load() {
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

// back is called when nothing that was recovered runs any more, maybe more than once.
func (o *owner) back() { o.host.isBack(o.ref) }

// recover takes up what the process before had in hand: what runs according to the journal runs nowhere.
func (o *owner) recover() error {
	var lost []engine.Attempt
	for _, c := range o.fold.State().Outstanding() {
		if run, ok := c.(engine.RunNode); ok {
			lost = append(lost, run.Attempt)
		}
	}
	if len(lost) == 0 {
		o.host.register.Settled(o.ref)
		return nil
	}
	fact := engine.ExecutionRecovered{Known: true}
	var tried []engine.ActivationID
	fact.Begun, tried, fact.Alone = o.host.register.Blame(o.ref, lost)
	fact.Tried = len(tried) > 0 && len(tried) == len(fact.Begun)
	if len(fact.Begun) > 0 {
		o.host.opts.Log.Info("the process before ended in runs of an execution", "execution", o.ref.Execution, "activations", fact.Begun, "alone", fact.Alone)
	}
	turn := o.fold.Begin(o.now())
	commands, err := turn.Add(fact)
	if err != nil {
		return host.Unreadable(err, "execution %q cannot be taken up: %w", o.ref.Execution)
	}
	if commands, err = o.commit(o.host.ctx, row{turn: turn, commands: commands}); err != nil {
		return err
	}
	o.host.register.Settled(o.ref)
	o.suspects = map[engine.ActivationID]bool{}
	for _, id := range fact.Begun {
		o.suspects[id] = slices.Contains(tried, id) || fact.Alone
	}
	o.carryOut(commands)
	o.suspects = nil
	o.recovered = map[engine.Attempt]bool{}
	for _, a := range o.attempts { // order does not matter: each is noted
		o.recovered[a.id] = true
	}
	return nil
}
