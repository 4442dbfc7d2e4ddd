package engine_test

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"tandem/engine"
)

// drain keeps everything going until the execution has ended, and fails if that takes for ever.
func (h *host) drain() {
	h.t.Helper()
	for range 3000 {
		if h.finish != nil {
			return
		}
		h.drainOne()
	}
	h.failf("the execution does not end; status %s, running %v", h.state.Status(), h.running)
}

func (h *host) drainOne() {
	h.t.Helper()
	if h.state.Status() == engine.StatusPaused {
		h.do(engine.ExecutionResumed{})
		return
	}
	if runs := slices.Sorted(maps.Keys(h.running)); len(runs) > 0 {
		c := h.running[runs[0]]
		switch {
		case c.Cause.Kind == engine.CauseTurn:
			h.do(engine.ScopeAdvanced{Attempt: c.Attempt, Open: c.Cause.Index < 2})
		case c.Cause.Kind == engine.CauseRun && h.g.nodes[c.Node].scope != "":
			h.do(engine.ScopeOpened{Attempt: c.Attempt, Count: 1})
		default:
			f := engine.NodeCompleted{Attempt: c.Attempt}
			for _, key := range h.g.keysOf(c.Node) {
				f.Outputs = append(f.Outputs, engine.Output{Key: key})
			}
			h.do(f)
		}
		return
	}
	if asks := slices.Sorted(maps.Keys(h.asks)); len(asks) > 0 {
		h.do(engine.AskAnswered{Ask: asks[0], Outcome: engine.AskDone, Choice: engine.ChoiceDone})
		return
	}
	if children := slices.Sorted(maps.Keys(h.children)); len(children) > 0 {
		h.endChild(engine.ChildFinished{Child: children[0], Status: engine.StatusSuccess})
		return
	}
	ids := slices.SortedFunc(maps.Keys(h.timers), func(a, b engine.TimerID) int {
		return cmp.Or(cmp.Compare(h.timers[a].Until, h.timers[b].Until), cmp.Compare(a, b))
	})
	if len(ids) > 0 {
		h.now = max(h.now, h.timers[ids[0]].Until)
		h.do(engine.TimerFired{Timer: ids[0]})
		return
	}
	waits := h.state.Activations()
	if slices.ContainsFunc(waits, func(a engine.Activation) bool { return a.Status == engine.NodeRunning }) {
		for _, n := range h.g.nodes { // what waits for a signal alone gets one
			for _, name := range []string{"go", "stop"} {
				h.do(engine.SignalReceived{Node: n.id, Name: name})
				if len(h.running) > 0 || h.finish != nil {
					return
				}
			}
		}
	}
	h.failf("nothing is left to do and the execution has not ended; status %s, activations %+v", h.state.Status(), waits)
}

// awaited says whether anybody waits for the end of a child.
func (h *host) awaited(child string) bool {
	if !h.leaving[child] {
		return true
	}
	for _, c := range h.state.Outstanding() {
		if c, ok := c.(engine.TellChild); ok && c.Child == child {
			return true
		}
	}
	return false
}

// closedBooks checks that nothing is open after the end.
func (h *host) closedBooks() {
	h.t.Helper()
	if len(h.running) > 0 || len(h.timers) > 0 || len(h.asks) > 0 {
		h.failf("after the end: running %v, timers %v, questions %v", h.running, h.timers, h.asks)
	}
	if out := h.state.Outstanding(); len(out) > 0 {
		h.failf("after the end: outstanding %v", out)
	}
	for child := range h.children {
		if !h.leaving[child] {
			h.failf("child %q was not told of the end", child)
		}
	}
}

// TestEngine_DoesWhatTheModelDoes drives executions with everything that can happen to them. After each event engine and
// model agree, whatever was refused has changed nothing, and every execution ends with its books closed.
func TestEngine_DoesWhatTheModelDoes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		d := newChance(r, true)
		for range rapid.IntRange(0, 60).Draw(r, "steps") {
			if !d.step() {
				break
			}
		}
		d.drain()
		d.closedBooks()
	})
}

// TestEngine_ReplayGivesTheSameBytes replays journals from their stored form: whole, and from a snapshot at every point.
// Right after each restore, what is outstanding is exactly what the host had open.
func TestEngine_ReplayGivesTheSameBytes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		d := newChance(r, true)
		d.restored()
		for range rapid.IntRange(0, 40).Draw(r, "steps") {
			if !d.step() {
				break
			}
			d.restored()
		}
		d.replay()
	})
}

// restored makes a second state from a snapshot and holds its outstanding work against the books.
func (h *host) restored() {
	h.t.Helper()
	state, err := engine.Restore(h.graph, nil, []byte(h.snapshot()))
	if err != nil {
		h.failf("restore: %v", err)
	}
	running, timers, asks := map[engine.ActivationID]string{}, map[engine.TimerID]engine.Sleep{}, map[engine.AskID]bool{}
	children, leaving, stopped := map[string]bool{}, map[string]bool{}, map[engine.ActivationID]bool{}
	for _, c := range state.Outstanding() {
		switch c := c.(type) {
		case engine.CancelNode:
			stopped[c.Activation] = true
		case engine.RunNode:
			running[c.Activation] = asJSON(c)
		case engine.Sleep:
			timers[c.Timer] = c
		case engine.Ask:
			asks[c.Ask] = true
		case engine.StartChild:
			children[c.Child] = true
		case engine.TellChild:
			leaving[c.Child] = true
		default:
			h.failf("outstanding after a restore: %T %+v", c, c)
		}
	}
	wantRunning, wantAsks, wantChildren, wantLeaving := map[engine.ActivationID]string{}, map[engine.AskID]bool{}, map[string]bool{}, map[string]bool{}
	for id, c := range h.running {
		wantRunning[id] = asJSON(c)
	}
	for id := range h.asks {
		wantAsks[id] = true
	}
	for child := range h.children {
		if !h.leaving[child] {
			wantChildren[child] = true
		} else if h.awaited(child) {
			wantLeaving[child] = true
		}
	}
	same(h, "outstanding runs", running, wantRunning)
	same(h, "outstanding cancels of runs", stopped, h.stopped)
	same(h, "outstanding timers", timers, h.timers)
	same(h, "outstanding questions", asks, wantAsks)
	same(h, "outstanding children", children, wantChildren)
	same(h, "outstanding cancels of children", leaving, wantLeaving)
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// replay applies the stored journal to a new state, and to one restored from the snapshot after each event.
func (h *host) replay() {
	h.t.Helper()
	stored := make([]engine.Event, len(h.journal))
	for i, e := range h.journal {
		if err := json.Unmarshal([]byte(asJSON(e)), &stored[i]); err != nil {
			h.failf("read event %d: %v", i, err)
		}
	}
	run := func(state *engine.State, from int) {
		h.t.Helper()
		for i := from; i < len(stored); i++ {
			if _, err := state.Apply(stored[i]); err != nil {
				h.failf("replay of event %d after %d: %v", i+1, from, err)
			}
			if from > 0 && i < len(stored)-1 {
				continue // the bytes in between are those of the whole replay
			}
			if got, err := state.Snapshot(); err != nil || string(got) != h.snapshots[i] {
				h.failf("replay after %d differs at event %d: %v\n%s\nlive\n%s", from, i+1, err, got, h.snapshots[i])
			}
		}
	}
	run(engine.New(h.graph, nil), 0)
	for i := range stored {
		state, err := engine.Restore(h.graph, nil, []byte(h.snapshots[i]))
		if err != nil {
			h.failf("restore after event %d: %v", i+1, err)
		}
		run(state, i+1)
	}
}

// TestEngine_GoesOnAfterADeath kills the process at any point, then lets everything go well: the execution ends, and
// nothing that had completed runs again.
func TestEngine_GoesOnAfterADeath(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		d := newChance(r, false)
		d.calm = true
		for range rapid.IntRange(0, 40).Draw(r, "steps") {
			if !d.step() {
				break
			}
		}
		if d.finish == nil {
			d.do(engine.ExecutionRecovered{})
		}
		d.drain()
		d.closedBooks()
	})
}

// TestEngine_ForksFromWhereverAnActivationBecameReady forks executions from every such point, and lets the fork end.
func TestEngine_ForksFromWhereverAnActivationBecameReady(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		d := newChance(r, false)
		d.calm = true
		type point struct {
			activation engine.ActivationID
			state      string
			completed  map[engine.Attempt]bool
			begun      map[engine.ActivationID]uint32
			waited     map[engine.ActivationID]bool
		}
		var points []point
		seen := map[engine.Attempt]bool{}
		completed := map[engine.Attempt]bool{}
		for range rapid.IntRange(0, 40).Draw(r, "steps") {
			for id, c := range d.running {
				life := engine.Attempt{Activation: id, Generation: c.Generation}
				if !seen[life] && c.Cause.Kind == engine.CauseRun {
					seen[life] = true
					if c.AsOf != d.seq {
						d.failf("%q became ready with event %d and says %d", id, d.seq, c.AsOf)
					}
					points = append(points, point{id, d.snapshot(), maps.Clone(completed), maps.Clone(d.begun), maps.Clone(d.waited)})
				}
			}
			before := len(d.journal)
			if !d.step() {
				break
			}
			for _, e := range d.journal[before:] {
				if f, ok := e.Fact.(engine.NodeCompleted); ok {
					completed[engine.Attempt{Activation: f.Activation, Generation: f.Generation}] = true
				}
			}
		}
		for _, p := range points {
			f := newHost(r, d.g)
			f.now = d.now
			f.done, f.begun, f.waited = p.completed, p.begun, p.waited
			delete(f.begun, p.activation)
			f.do(engine.ExecutionForked{
				Semantics: engine.Semantics, Execution: "fork", Source: "exec", Activation: p.activation, Input: "edited", State: json.RawMessage(p.state),
			})
			// It runs with its new input, unless a scope whose failure was already decided took the fork with it.
			if c, ok := f.running[p.activation]; c.Input != "edited" && (ok || f.ended[p.activation] != engine.NodeCanceled) {
				f.failf("the fork runs %q with input %q", p.activation, c.Input)
			}
			f.restored()
			f.drain()
			f.closedBooks()
		}
	})
}
