package engine

import (
	"cmp"
	"encoding/json"
	"slices"

	"tandem/fault"
)

// frame is the body that an activation runs: how many iterations, and those that are open. A closed iteration has left
// the state, so a frame stays small however long its loop.
type frame struct {
	program     string
	config      json.RawMessage
	count       int64 // -1: the turns decide
	concurrency int64
	keepGoing   bool
	turns       bool // the runtime is asked before each iteration
	entry       []Verdict
	state       Ref
	deadline    TimerID

	next      int64 // the iteration that opens next
	succeeded int64
	failed    int64
	stopped   bool // a turn said that no further iteration begins
	turning   bool // a turn is out
	turnOnce  bool // the next iteration needs a turn, see open
	closing   bool // the runtime produces the exit keys
	ending    *ending
	result    json.RawMessage
	values    []Ref

	iterations map[int64]*Scope
}

func (f *frame) sorted() []*Scope {
	list := make([]*Scope, 0, len(f.iterations))
	for _, sc := range f.iterations { // order does not matter: sorted below
		list = append(list, sc)
	}
	slices.SortFunc(list, func(a, b *Scope) int { return cmp.Compare(a.index, b.index) })
	return list
}

// quiet says whether nothing more happens by itself in any iteration of the frame.
func (f *frame) quiet() bool {
	for _, sc := range f.iterations { // order does not matter: all are asked
		if !sc.idle() {
			return false
		}
	}
	return true
}

func (s *State) scopeOpened(f ScopeOpened) error {
	a, err := s.current(f.Attempt)
	if err != nil {
		return err
	}
	switch {
	case a.cause.Kind != CauseRun || a.frame != nil:
		return fault.Newf(fault.Invalid, "%q has opened its scope already", a.id)
	case f.Count < -1:
		return fault.Newf(fault.Invalid, "count: %d iterations cannot be; use -1 when only the turns tell", f.Count)
	case f.Count == -1 && !f.Turns:
		return fault.New(fault.Invalid, "turns: a scope without a count needs a turn before each iteration")
	case f.Program == "" && (a.node < 0 || s.graph.Nodes[a.node].Opens == 0):
		return fault.Newf(fault.Invalid, "%q has no body in the graph; name the program of its scope", a.id)
	}
	if f.Program != "" {
		if _, ok := s.programs[f.Program]; !ok && f.Program != ProgramToolLoop && f.Program != ProgramFilling {
			return fault.Newf(fault.Invalid, "program: %q is not registered with this engine", f.Program)
		}
	}
	if err := s.checkVerdicts(a, f.Entry); err != nil {
		return err
	}
	if f.Program == ProgramFilling {
		if err := s.checkFilling(a, f); err != nil {
			return err
		}
		a.started = false // looking for what is missing has no effect
	}
	if a.scope.torn {
		s.cancelled(a)
		s.after(a.scope)
		return nil
	}
	a.frame = &frame{
		program: f.Program, config: f.Config, count: f.Count, concurrency: max(f.Concurrency, 1),
		keepGoing: f.KeepGoing, turns: f.Turns, entry: f.Entry, state: f.State, iterations: map[int64]*Scope{},
	}
	s.runEnded(a)
	s.move(a, phaseScope)
	if f.Until > 0 {
		a.frame.deadline = s.setTimer(TimerDeadline, a.id, f.Until)
	}
	s.advance(a)
	return nil
}

func (s *State) scopeAdvanced(f ScopeAdvanced) error {
	a, err := s.current(f.Attempt)
	if err != nil {
		return err
	}
	if a.cause.Kind != CauseTurn {
		return fault.Newf(fault.Invalid, "%q was not asked for a turn", a.id)
	}
	if err := s.checkVerdicts(a, f.Entry); err != nil {
		return err
	}
	a.frame.turning = false
	if f.State != "" {
		a.frame.state = f.State
	}
	s.runEnded(a)
	s.move(a, phaseScope)
	if f.Open {
		s.openIteration(a, f.Entry)
	} else {
		a.frame.stopped = true
	}
	s.advance(a)
	return nil
}

// runEnded notes that a run of a scope's node has succeeded: the next run has its own count of crashes.
func (s *State) runEnded(o *activation) {
	o.attempt++
	o.recoveries, o.blamed = 0, 0
}

// advance opens the iterations that may begin now, asks for the turn they need, or closes the scope after the last.
func (s *State) advance(o *activation) {
	f := o.frame
	if f == nil || f.ending != nil || f.closing || f.turning || o.scope.torn {
		return
	}
	if s.stuckInside(o) {
		// A retry elsewhere goes on, and a failure here still waits for a retry: the scope node stays with it.
		if f.quiet() {
			s.move(o, phaseFailed)
			s.emit(EndNode{Activation: o.id, Generation: o.gen, Status: NodeFailure})
			s.after(o.scope)
		}
		return
	}
	for !f.stopped && (f.count < 0 || f.next < f.count) {
		if int64(len(f.iterations)) >= f.concurrency {
			return
		}
		if f.turns || f.turnOnce {
			f.turning, f.turnOnce = true, false
			o.cause = Cause{Kind: CauseTurn, Index: f.next, State: f.state, Filled: o.cause.Filled}
			s.dispatch(o)
			return
		}
		s.openIteration(o, f.entry)
		if o.frame != f || f.ending != nil || o.scope.torn {
			return // it failed at once
		}
	}
	if len(f.iterations) == 0 {
		s.closeFrame(o, &Closed{Broken: f.stopped && (f.count < 0 || f.next < f.count)})
	}
}

// openIteration opens the next iteration of a frame.
func (s *State) openIteration(o *activation, entry []Verdict) {
	f := o.frame
	setup := Setup{Graph: s.graph, Config: f.config}
	if o.node >= 0 {
		setup.Body = s.graph.Nodes[o.node].Opens
	}
	program, err := s.newProgram(f.program, setup)
	if err != nil {
		s.endFrame(o, &ending{Kind: endFailure, Error: fault.From(err)})
		return
	}
	sc := &Scope{
		st: s, path: iterationPath(o.id, f.next), owner: o, index: f.next,
		program: program, acts: map[string]*activation{},
	}
	f.iterations[f.next] = sc
	f.next++
	o.opened = true
	s.scopes[sc.path] = sc
	program.Start(sc, Opening{Entry: entry, State: f.state})
	// An iteration in which nothing runs ends at once. The next then takes a turn through the runtime, so that no number
	// of them is decided within one event.
	f.turnOnce = sc.open == 0
	s.after(sc)
}

// closeScope ends a scope in which nothing is open.
func (s *State) closeScope(sc *Scope) {
	for _, name := range sortedKeys(sc.timers) {
		sc.Awake(name)
	}
	o := sc.owner
	switch {
	case o == nil:
		s.closeRoot()
		return
	case len(s.failures) > 0 && sc.stuck():
		s.advance(o)
		return
	}
	o.frame.succeeded++
	o.frame.result, o.frame.values = sc.result, sc.values
	s.removeIteration(sc, false)
	s.advance(o)
}

func (s *State) removeIteration(sc *Scope, failed bool) {
	sc.gone = true
	delete(s.scopes, sc.path)
	delete(sc.owner.frame.iterations, sc.index)
	s.emit(CloseScope{sc.path, failed})
}

// closeFrame lets the runtime produce the exit keys of a scope that has ended.
func (s *State) closeFrame(o *activation, c *Closed) {
	f := o.frame
	if f.program == ProgramFilling {
		s.runFilled(o)
		return
	}
	if f.deadline != "" {
		s.clearTimer(f.deadline)
		f.deadline = ""
	}
	f.closing = true
	c.Iterations, c.Succeeded, c.Failed, c.Result, c.Values = f.next, f.succeeded, f.failed, f.result, f.values
	o.cause = Cause{Kind: CauseClose, Closed: c, State: f.state, Filled: o.cause.Filled}
	s.dispatch(o)
}

func (s *State) closeRoot() {
	if len(s.failures) > 0 {
		// A retry has succeeded, and another failure is still there.
		s.endExecution(&ending{Kind: endFailure, Error: s.failures[0].Error, Node: s.failures[0].Activation})
		return
	}
	s.finalize(StatusSuccess, &ending{})
}

func (s *State) finalize(status Status, end *ending) {
	if s.limit != "" {
		s.clearTimer(s.limit)
		s.limit = ""
	}
	s.final = status
	s.paused = false
	s.emit(Finish{Status: status, Error: end.Error, Node: end.Node, Result: s.root.result})
}

func sortedKeys[V any](m map[string]V) []string {
	if len(m) == 0 {
		return nil
	}
	keys := make([]string, 0, len(m))
	for k := range m { // order does not matter: sorted below
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
