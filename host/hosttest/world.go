package hosttest

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"tandem/engine"
	"tandem/host"
	"tandem/node"
	"tandem/store"
)

// call names one generation of an activation: what must not be done twice.
type call struct {
	workspace  string
	execution  string
	activation engine.ActivationID
	generation uint32
}

// world is what is outside of all processes and outlives them: the services that nodes call, and what they remember. It
// also knows what the journals say, so that it sees when something is done again that is recorded as done.
type world struct {
	changed func() // wakes who waits for something to happen

	mu       sync.Mutex
	runs     map[call]int
	effects  map[call]int
	answers  map[call]json.RawMessage // what a service answered
	failures map[call]int
	kills    map[call]int
	recorded map[call]bool
	once     map[call]bool
	stopped  map[call]bool            // a run saw that it is to stop
	began    map[string]int           // runs that are, or were, held, by node
	latches  map[string]chan struct{} // closed for nodes that are held no longer
	order    []call                   // runs as they began
	problems []string
	repeats  bool // effects may be repeated that were cut off, except those that must not be
	deaths   int  // of processes that were beside the one of the bench
}

func newWorld(changed func()) *world {
	return &world{
		changed: changed, runs: map[call]int{}, effects: map[call]int{}, answers: map[call]json.RawMessage{},
		failures: map[call]int{}, kills: map[call]int{}, recorded: map[call]bool{}, once: map[call]bool{}, stopped: map[call]bool{},
		began: map[string]int{}, latches: map[string]chan struct{}{},
	}
}

func (w *world) problem(format string, args ...any) {
	w.problems = append(w.problems, fmt.Sprintf(format, args...))
}

// appended learns from a row that is on disk what is done.
func (w *world) appended(workspace string, a *store.Append) {
	row, err := host.DecodeRow(a.After+1, a.Time, a.Body)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.problem("execution %q: %v", a.Execution, err)
		return
	}
	for _, f := range row.Facts {
		if done, ok := f.(engine.NodeCompleted); ok {
			c := call{workspace, a.Execution, done.Activation, done.Generation}
			if w.recorded[c] {
				w.problem("%v is recorded as completed twice", c)
			}
			w.recorded[c] = true
		}
	}
}

// truth is what an effect has answered, in whichever generation it happened; nil: it has not happened.
func (w *world) truth(workspace, execution string, a engine.ActivationID) json.RawMessage {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c, answer := range w.answers { // order does not matter: it happened once at most
		if c.workspace == workspace && c.execution == execution && c.activation == a {
			return answer
		}
	}
	return nil
}

// count reads one of the world's counters.
func (w *world) count(of map[call]int, c call) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return of[c]
}

// release lets the runs of a node go on that are held, now and later.
func (w *world) release(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	latch := w.latch(name)
	select {
	case <-latch:
	default:
		close(latch)
	}
}

// latch is what runs of a node are held by. The lock is the caller's.
func (w *world) latch(name string) chan struct{} {
	if w.latches[name] == nil {
		w.latches[name] = make(chan struct{})
	}
	return w.latches[name]
}

// process is one life of a host: what its nodes do happens only while it lives.
type process struct {
	world *world
	fuse  *Fuse
	// beside says that it is not the bench's, which counts its deaths.
	beside bool
}

// do does something in the world, unless the process is dead.
func (p *process) do(f func(w *world)) bool {
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	select {
	case <-p.fuse.blown:
		return false
	default:
	}
	f(p.world)
	return true
}

// begin notes that a run has begun.
func (p *process) begin(c *node.Call) call {
	id := callOf(c)
	p.do(func(w *world) {
		w.runs[id]++
		w.order = append(w.order, id)
		if w.recorded[id] {
			w.problem("%v runs again although it is recorded as completed", id)
		}
	})
	return id
}

// effect does what a service would do.
func (p *process) effect(id call, once bool, answer json.RawMessage) bool {
	return p.do(func(w *world) {
		w.effects[id]++
		w.answers[id] = answer
		if once {
			w.once[id] = true
		}
		if w.recorded[id] && (once || !w.repeats) {
			w.problem("%v has its effect again although it is recorded as completed", id)
		}
	})
}

// hold waits until a node is released.
func (p *process) hold(ctx context.Context, id call, name string) error {
	var latch chan struct{}
	p.do(func(w *world) {
		w.began[name]++
		latch = w.latch(name)
	})
	p.world.changed()
	select {
	case <-latch: // of a dead process it is nil
		return nil
	default:
	}
	select {
	case <-latch:
		return nil
	case <-ctx.Done():
		p.do(func(w *world) { w.stopped[id] = true })
		p.world.changed()
		return context.Cause(ctx)
	}
}

// callOf tells what a run is about. Every workspace has one user, who is called like it.
func callOf(c *node.Call) call { return call{c.UserID, c.ExecutionID, c.ActivationID, c.Generation} }

// at is the first generation of an activation.
func (b *bench) at(id string, a engine.ActivationID) call { return call{b.who.Workspace, id, a, 0} }
