package engine

import (
	"slices"

	"tandem/fault"
)

// endKind is why a scope or the execution ends early.
type endKind string

const (
	endFailure  endKind = "failure"  // an activation failed, and this is the nearest scope that handles it
	endCancel   endKind = "cancel"   // a person, or a join that has its winner
	endDeadline endKind = "deadline" // the scope's time is up
	endTimeout  endKind = "timeout"  // the execution's time is up
)

// ending is how a scope, a frame or the execution ends. From the moment it begins nothing new starts inside; what runs is
// cancelled, once attempts end first, questions and timers are withdrawn; then the ending is completed.
type ending struct {
	Kind       endKind        `json:"kind"`
	Error      *fault.Error   `json:"error,omitempty"`
	Node       ActivationID   `json:"node,omitempty"`
	Unfinished []ActivationID `json:"unfinished,omitempty"`
}

// unfinishedLimit bounds the list of what a deadline has cut off.
const unfinishedLimit = 1000

// fail ends an activation that has failed for good. Reported is the failure event, which may carry the verdicts of a
// node that handles its errors.
func (s *State) fail(a *activation, err *fault.Error, reported *NodeFailed) {
	sc := a.scope
	if f := a.frame; f != nil && f.ending == nil && len(f.iterations) > 0 {
		f.turning, f.closing = false, false // it was a turn that failed
		s.move(a, phaseScope)
		s.endFrame(a, &ending{Kind: endFailure, Error: err, Node: a.id})
		return
	}
	s.dropFrame(a)
	if !sc.torn && a.handlesErrors() && a.cause.Kind != CauseError {
		if reported != nil && reported.Handled {
			s.emit(EndNode{a.id, a.gen, NodeFailure, err})
			s.leave(a, End{Status: NodeFailure, Outputs: reported.Outputs, Settled: reported.Settled, Error: err})
			return
		}
		a.cause = Cause{Kind: CauseError, Error: err, Filled: a.cause.Filled}
		a.attempt++
		s.dispatch(a)
		return
	}
	s.emit(EndNode{a.id, a.gen, NodeFailure, err})
	if !sc.torn && sc.program.Handles(a.name, err) {
		s.leave(a, End{Status: NodeFailure, Error: err})
		return
	}
	a.err = err
	s.move(a, phaseFailed)
	if !sc.torn {
		s.escalate(sc, a.id, err)
	} else if s.root.ending != nil {
		s.failures = append(s.failures, failure{a.id, err})
	}
	s.after(sc)
}

// dropFrame forgets the frame of an activation that no longer runs a body.
func (s *State) dropFrame(a *activation) {
	if a.frame == nil {
		return
	}
	if a.frame.deadline != "" {
		s.clearTimer(a.frame.deadline)
	}
	a.frame = nil
}

// escalate passes a failure outwards to the nearest scope that handles it, and ends that one.
func (s *State) escalate(sc *Scope, node ActivationID, err *fault.Error) {
	for ; sc.owner != nil; sc = sc.owner.scope {
		o := sc.owner
		err = err.Final() // it comes from another execution
		if o.frame.keepGoing {
			sc.ending = &ending{Kind: endFailure, Error: err, Node: node}
			s.tear(sc, false)
			s.after(sc)
			return
		}
		if o.handlesErrors() || o.scope.program.Handles(o.name, err) {
			s.endFrame(o, &ending{Kind: endFailure, Error: err, Node: node})
			return
		}
	}
	s.failures = append(s.failures, failure{node, err})
	s.endExecution(&ending{Kind: endFailure, Error: err, Node: node})
}

// endExecution ends everything. An execution that is ending for a failure can still be cancelled.
func (s *State) endExecution(e *ending) {
	if s.root.ending != nil && e.Kind != endCancel {
		return
	}
	s.root.ending = e
	s.paused, s.deferred = false, nil
	if s.limit != "" {
		s.clearTimer(s.limit)
		s.limit = ""
	}
	s.tear(s.root, s.canceled())
	s.after(s.root)
}

// canceled says whether the execution is being cancelled: then even once attempts that have started are told to stop.
func (s *State) canceled() bool { return s.root.ending != nil && s.root.ending.Kind == endCancel }

// endFrame ends the scope that an activation runs, all its iterations with it.
func (s *State) endFrame(o *activation, e *ending) {
	f := o.frame
	if f.ending != nil || o.scope.torn {
		return
	}
	f.ending = e
	if o.phase == phaseFailed { // it had stayed behind with a failure inside, and now goes on
		s.move(o, phaseScope)
		s.unstick(o)
	}
	if f.deadline != "" {
		s.clearTimer(f.deadline)
		f.deadline = ""
	}
	if f.turning || f.closing {
		s.stop(o)
		f.turning, f.closing = false, false
		s.move(o, phaseScope)
		o.attempt++
	}
	if e.Kind == endDeadline {
		e.Unfinished = s.unfinished(o)
	}
	for _, sc := range f.sorted() {
		s.tear(sc, false)
	}
	s.endQuietFrame(o)
}

// endQuietFrame completes an ending frame if nothing in it is open. With iterations it does so when the event has been
// applied, since a program may be running in one of them.
func (s *State) endQuietFrame(o *activation) {
	if len(o.frame.iterations) == 0 {
		s.frameEnded(o)
		return
	}
	for _, sc := range o.frame.sorted() {
		s.after(sc)
	}
}

// unfinished lists what is open below an activation.
func (s *State) unfinished(o *activation) []ActivationID {
	acts := s.sorted(func(a *activation) bool {
		if !a.phase.open() {
			return false
		}
		for sc := a.scope; sc.owner != nil; sc = sc.owner.scope {
			if sc.owner == o {
				return true
			}
		}
		return false
	})
	ids := make([]ActivationID, 0, min(len(acts), unfinishedLimit))
	for _, a := range acts[:min(len(acts), unfinishedLimit)] {
		ids = append(ids, a.id)
	}
	return ids
}

// tear stops everything inside a scope. Once attempts that have started are left to end, or told to stop when stopOnce
// is set; children are told to cancel and waited for.
func (s *State) tear(sc *Scope, stopOnce bool) {
	sc.torn = true
	for _, name := range sortedKeys(sc.timers) {
		s.suspendTimer(sc.timers[name])
	}
	for _, a := range sc.sorted() {
		switch {
		case a.frame != nil && a.phase == phaseFailed: // it stayed behind with a failure inside
			s.tearInside(a, stopOnce)
		case !a.phase.open():
		case a.frame != nil:
			s.tearFrame(a, stopOnce)
		case a.phase == phaseHeld || a.phase == phaseGated:
			s.move(a, phaseParked)
		case a.phase == phaseRunning && a.started:
			if stopOnce {
				s.emit(CancelNode{a.at()})
			}
		case a.wait != nil && a.wait.child != nil && !a.wait.unsent:
			if !a.canceling {
				a.canceling = true
				s.keepOnlyChild(a)
			}
		default:
			s.stop(a)
			s.cancelled(a)
		}
	}
}

func (s *State) tearFrame(o *activation, stopOnce bool) {
	f := o.frame
	if o.phase != phaseScope {
		s.stop(o)
		f.turnOnce = f.turnOnce || (f.turning && !f.turns) // the turn is still owed
		f.turning = false
		s.move(o, phaseScope)
		o.attempt++
	}
	s.tearInside(o, stopOnce)
	if f.quiet() {
		s.cancelled(o)
	}
}

func (s *State) tearInside(o *activation, stopOnce bool) {
	if o.frame.deadline != "" {
		s.suspendTimer(o.frame.deadline)
	}
	for _, sc := range o.frame.sorted() {
		s.tear(sc, stopOnce)
	}
}

// suspendTimer withdraws the command of a timer but keeps the timer, so that a retry can set it again.
func (s *State) suspendTimer(id TimerID) { s.emit(CancelTimer{id}) }

// keepOnlyChild withdraws what an activation waits for besides its child, and tells the child to cancel.
func (s *State) keepOnlyChild(a *activation) {
	w := a.wait
	child, id, memo, ord := w.child, w.childID, w.memo, w.ord
	delete(s.children, id) // so that stopWaiting leaves it
	s.stopWaiting(a)
	a.wait = &wait{ord: ord, child: child, childID: id, memo: memo}
	s.children[id] = a
	s.move(a, phaseWaiting)
	s.emit(TellChild{id, ChildCancel})
}

// stop cancels whatever an activation does: its run, its backoff, its wait.
func (s *State) stop(a *activation) {
	switch a.phase {
	case phaseRunning:
		s.emit(CancelNode{a.at()})
	case phaseRetrying:
		s.clearTimer(a.timer)
		a.timer = ""
	}
	s.stopWaiting(a)
}

// cancelled ends an activation of an ending scope as canceled; one whose body holds the failure is shown as failed. It is
// kept for a retry.
func (s *State) cancelled(a *activation) {
	s.move(a, phaseCanceled)
	s.emit(EndNode{Activation: a.id, Generation: a.gen, Status: a.view().Status})
}

// cancelOne cancels a single activation because its program asks for it.
func (s *State) cancelOne(a *activation) {
	switch {
	case !a.phase.open() || a.canceling || a.scope.torn:
	case a.phase == phaseRunning && a.started:
	case a.frame != nil:
		s.endFrame(a, &ending{Kind: endCancel})
	case a.wait != nil && a.wait.child != nil && !a.wait.unsent:
		a.canceling = true
		s.keepOnlyChild(a)
	default:
		s.stop(a)
		s.emit(EndNode{Activation: a.id, Generation: a.gen, Status: NodeCanceled})
		s.leave(a, End{Status: NodeCanceled})
	}
}

// drained completes an ending scope in which nothing is open any more.
func (s *State) drained(sc *Scope) {
	o := sc.owner
	switch {
	case o == nil:
		status := StatusError
		switch sc.ending.Kind {
		case endCancel:
			status = StatusCanceled
		case endTimeout:
			status = StatusTimeout
		}
		s.finalize(status, sc.ending)
	case o.scope.torn:
		if o.phase.open() && o.frame.quiet() {
			s.cancelled(o)
			s.after(o.scope)
		}
	case o.frame.ending != nil:
		if o.frame.quiet() {
			s.frameEnded(o)
		}
	default:
		s.discard(sc)
		o.frame.failed++
		s.removeIteration(sc, true)
		s.advance(o)
	}
}

// frameEnded completes a frame whose iterations have all stopped.
func (s *State) frameEnded(o *activation) {
	f := o.frame
	for _, sc := range f.sorted() {
		s.discard(sc)
		s.removeIteration(sc, true)
	}
	e := f.ending
	switch e.Kind {
	case endDeadline:
		f.ending = nil
		s.closeFrame(o, &Closed{Deadline: true, Unfinished: e.Unfinished})
	case endFailure:
		o.frame = nil
		s.fail(o, e.Error.Final(), nil)
	default:
		o.frame = nil
		s.emit(EndNode{Activation: o.id, Generation: o.gen, Status: NodeCanceled})
		s.leave(o, End{Status: NodeCanceled})
	}
}

// discard removes what is left in a scope from the state: failed and canceled activations, frozen scopes.
func (s *State) discard(sc *Scope) {
	for _, name := range sortedKeys(sc.timers) {
		delete(s.timers, sc.timers[name])
	}
	sc.timers = nil
	for _, a := range sc.sorted() {
		switch a.phase {
		case phaseParked:
			s.emit(EndNode{Activation: a.id, Generation: a.gen, Status: NodeCanceled})
		case phaseFailed:
			s.forgetFailure(a.id)
		}
		if a.frame == nil {
			continue
		}
		if a.frame.deadline != "" {
			delete(s.timers, a.frame.deadline)
		}
		for _, inner := range a.frame.sorted() {
			s.discard(inner)
			inner.gone = true
			delete(s.scopes, inner.path)
			s.emit(CloseScope{inner.path, true})
		}
	}
}

// forgetFailure removes a failure that has been handled or is tried again.
func (s *State) forgetFailure(id ActivationID) {
	s.failures = slices.DeleteFunc(s.failures, func(f failure) bool { return f.Activation == id })
}

// stuck says whether a scope in which nothing is open holds a failure that a person has not dealt with.
func (sc *Scope) stuck() bool {
	for _, a := range sc.acts { // order does not matter: all are asked
		if a.phase == phaseFailed {
			return true
		}
	}
	return false
}

// stuckInside says whether there is a failure below an activation that only a person can deal with, so that no further
// iteration begins. A failure in an iteration that is ending does not count.
func (s *State) stuckInside(o *activation) bool {
	for _, f := range s.failures {
		a := s.find(f.Activation)
		if a == nil {
			continue
		}
		for sc := a.scope; sc.owner != nil; sc = sc.owner.scope {
			if sc.owner == o {
				if !sc.torn {
					return true
				}
				break
			}
		}
	}
	return false
}

// failedInside says whether there is a failure below an activation that nothing handled.
func (s *State) failedInside(o *activation) bool {
	prefix := string(o.id) + "["
	for _, f := range s.failures {
		if len(f.Activation) > len(prefix) && string(f.Activation[:len(prefix)]) == prefix {
			return true
		}
	}
	return false
}
