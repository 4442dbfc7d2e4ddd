package engine

import (
	"slices"

	"tandem/fault"
	"tandem/text"
	"tandem/workflow"
)

const (
	// MaxRecoveries is how many runs of an activation may be lost with a process before it fails as interrupted, in journals
	// of hosts that did not know what had begun and what ran beside it.
	MaxRecoveries = 3
	// MaxBlamed is how many times a process may die while an activation runs in it alone; the last time, the activation
	// fails as interrupted.
	MaxBlamed = 3
	// recoverAtOnce is how many times runs that were lost with a process are repeated without a pause, while the host finds
	// out which one to blame; then pauses grow up to recoverPauseMax.
	recoverAtOnce   = 6
	recoverPauseMax = 60_000
)

func (s *State) cancel() error {
	if !s.started {
		s.finalize(StatusCanceled, &ending{Kind: endCancel})
		return nil
	}
	if s.canceled() {
		return fault.Say(fault.Conflict, text.Of("the execution is being cancelled already"))
	}
	s.endExecution(&ending{Kind: endCancel})
	return nil
}

func (s *State) pause() error {
	switch {
	case s.paused:
		return fault.Say(fault.Conflict, text.Of("the execution is paused already"))
	case s.root.ending != nil:
		return fault.Say(fault.Conflict, text.Of("the execution is ending; there is nothing to pause"))
	}
	s.paused = true
	s.tellChildren(ChildPause)
	return nil
}

func (s *State) resume() error {
	if !s.paused {
		return fault.Say(fault.Conflict, text.Of("the execution is not paused"))
	}
	s.paused = false
	s.tellChildren(ChildResume)
	for _, a := range s.sorted(nil) {
		switch {
		case a.phase == phaseHeld:
			s.issue(a)
		case a.wait != nil && a.wait.unsent:
			s.sendNew(a)
		}
	}
	fired := s.deferred
	s.deferred = nil
	for _, id := range fired {
		if t, ok := s.timers[id]; ok && s.ticking(t) {
			s.fire(id, t)
		}
	}
	return nil
}

func (s *State) tellChildren(action ChildAction) {
	for _, id := range sortedKeys(s.children) {
		if a := s.children[id]; !a.canceling && !a.wait.unsent {
			s.emit(TellChild{id, action})
		}
	}
}

// recover issues again what the previous process was doing. A once attempt that had started is not issued again: its
// outcome is unknown.
func (s *State) recover(f ExecutionRecovered) error {
	if len(f.Lost) == 0 {
		s.outstanding(false)
	} else if err := s.checkLost(f.Lost); err != nil {
		return err
	}
	if f.RunsGoOn {
		return nil
	}
	for _, a := range s.sorted(func(a *activation) bool { return a.phase == phaseRunning }) {
		switch {
		case a.phase != phaseRunning: // another fact has ended it
		case len(f.Lost) > 0 && !slices.Contains(f.Lost, a.at()): // it goes on
		case a.started:
			s.outcomeUnknown(a, nil)
		case f.Known:
			s.recoverRun(a, f)
		case a.recoveries >= MaxRecoveries && a.cause.Kind == CauseInquire:
			s.decideUnknown(a, Doubt{Run: s.endInquiry(a)})
		case a.recoveries >= MaxRecoveries:
			s.fail(a, fault.Newf(fault.Interrupted, "the process died in each of %d runs of this node; it is not run again by itself", a.recoveries+1), nil)
		default:
			a.recoveries++
			a.attempt++
			s.dispatch(a)
		}
	}
	return nil
}

// checkLost refuses runs that are not under way: their outcomes are known, or they were reported as lost before.
func (s *State) checkLost(lost []Attempt) error {
	for _, at := range lost {
		if _, err := s.current(at); err != nil {
			return err
		}
	}
	return nil
}

// recoverRun repeats a run. Only a death of the process in which it ran alone counts against it. A run that was not
// alone is repeated after growing pauses, and one that had not begun is repeated at once.
func (s *State) recoverRun(a *activation, f ExecutionRecovered) {
	begun := slices.Contains(f.Begun, a.id)
	if begun && !f.Tried {
		a.recoveries++
	}
	if begun && f.Alone {
		a.blamed++
	}
	if a.blamed >= MaxBlamed && a.cause.Kind == CauseInquire {
		s.decideUnknown(a, Doubt{Run: s.endInquiry(a)})
		return
	}
	if a.blamed >= MaxBlamed {
		s.fail(a, fault.Newf(fault.Interrupted, "the process died in %d runs of this node while nothing else ran; it is not run again by itself", a.blamed), nil)
		return
	}
	a.attempt++
	inBody := a.cause.Kind == CauseTurn || a.cause.Kind == CauseClose
	if !begun || f.Tried || a.recoveries <= recoverAtOnce || inBody || s.paused || a.scope.torn {
		s.dispatch(a)
		return
	}
	s.runLater(a, s.backoff(a, a.recoveries-recoverAtOnce, recoverPauseMax))
}

// Outstanding returns the commands that are in force. A host that has just loaded the state carries them out unless it
// knows that it has done so. It changes nothing.
func (s *State) Outstanding() []Command {
	if s.root == nil || s.final != "" {
		return nil
	}
	kept := s.out
	s.out = nil
	s.outstanding(true)
	list := s.out
	s.out = kept
	return list
}

func (s *State) outstanding(runs bool) {
	for _, a := range s.sorted(nil) {
		switch {
		case a.phase == phaseRunning && runs:
			s.emit(s.runNode(a))
			if a.scope.torn && s.canceled() { // its end is awaited, and it was told to cancel
				s.emit(CancelNode{a.at()})
			}
		case a.wait == nil || a.wait.unsent:
		case a.canceling:
			s.emit(TellChild{a.wait.childID, ChildCancel})
		default:
			s.send(a)
		}
	}
	ids := make([]TimerID, 0, len(s.timers))
	for id, t := range s.timers { // order does not matter: sorted below
		if s.ticking(t) && !slices.Contains(s.deferred, id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		t := s.timers[id]
		s.emit(Sleep{Timer: id, Until: t.until, Purpose: t.purpose, Activation: t.activation})
	}
}

// revivable returns the activation that an operator wants to go on from, or an error if that is not possible.
func (s *State) revivable(id ActivationID, verb text.Text) (*activation, error) {
	switch {
	case s.final == StatusCanceled || s.final == StatusSuccess:
		return nil, fault.Say(fault.Conflict, text.Of("the execution has ended with %s; fork it or start another", s.final))
	case s.final == "" && s.root.ending != nil:
		return nil, fault.Say(fault.Conflict, text.Of("the execution is still ending; wait until it has"))
	}
	a := s.find(id)
	if a == nil {
		if status, ok := s.NodeStatus(id); ok {
			return nil, fault.Say(fault.Conflict, text.Of("activation: %q is %s; only what failed, was canceled or is unknown can be %s; use fork", id, status, verb))
		}
		return nil, fault.Say(fault.NotFound, text.Of("activation: the execution has no activation %q, or its iteration has closed; use fork", id))
	}
	for sc := a.scope; sc.owner != nil; sc = sc.owner.scope {
		if sc.ending != nil || sc.owner.frame.ending != nil {
			return nil, fault.Say(fault.Conflict, text.Of("activation: %q stands in a scope whose end is decided (%s); use fork", id, sc.path))
		}
	}
	return a, nil
}

func (s *State) retryNode(f NodeRetried) error {
	a, err := s.revivable(f.Activation, text.Of("retried"))
	if err != nil {
		return err
	}
	if a.frame != nil {
		return fault.Say(fault.Conflict, text.Of("activation: %q runs a body; name the activation inside it that failed", a.id))
	}
	unknown := a.phase == phaseAsking && a.wait.unknown
	if a.phase != phaseFailed && a.phase != phaseCanceled && !unknown {
		return fault.Say(fault.Conflict, text.Of("activation: %q is %s; only what failed, was canceled or is unknown can be retried", a.id, a.view().Status))
	}
	if err := s.checkAgain(f.Again); err != nil {
		return err
	}
	s.askAgain(f.Again, AgainCause{Action: AgainRetry, Activation: f.Activation, By: f.By, TokenMadeBy: f.TokenMadeBy})
	s.stopWaiting(a)
	s.regenerate(a)
	s.revive(a)
	s.issue(a)
	return nil
}

func (s *State) skipNode(f NodeSkipped) error {
	a, err := s.revivable(f.Activation, text.Of("skipped"))
	if err != nil {
		return err
	}
	if !s.started {
		return fault.Say(fault.Conflict, text.Of("the execution has not started"))
	}
	if busy := s.busyInside(a); busy != nil {
		return fault.Say(fault.Conflict, text.Of("activation: %q is doing something that must not be repeated; wait for its outcome", busy.id))
	}
	if a.frame != nil && (a.frame.program == "" || a.node < 0 || s.graph.Nodes[a.node].Plan.Whole) {
		return fault.Say(fault.Conflict, text.Of("activation: %q runs a body; name the activation inside it", a.id))
	}
	if err := s.checkAgain(f.Again); err != nil {
		return err
	}
	s.askAgain(f.Again, AgainCause{Action: AgainOutput, Activation: f.Activation, By: f.By, TokenMadeBy: f.TokenMadeBy, Output: f.Output})
	if a.phase.open() {
		s.stop(a)
	}
	s.abandonFrame(a)
	s.regenerate(a)
	if f.HasOutput {
		a.cause = Cause{Kind: CauseOutput, Ref: f.Output}
	}
	s.revive(a)
	if f.HasOutput {
		s.issue(a)
		return nil
	}
	s.emit(EndNode{Activation: a.id, Generation: a.gen, Status: NodeSkip})
	s.leave(a, End{Status: NodeSkip})
	return nil
}

// busyInside returns the activation, or the step of its program, that does something that must not be repeated; nil if there is none.
func (s *State) busyInside(a *activation) *activation {
	if a.phase == phaseRunning && a.started {
		return a
	}
	if a.frame == nil {
		return nil
	}
	for _, sc := range a.frame.sorted() {
		for _, inner := range sc.sorted() {
			if busy := s.busyInside(inner); busy != nil {
				return busy
			}
		}
	}
	return nil
}

// abandonFrame cancels everything that the program of an activation does, because it is no longer needed. The caller makes sure
// that nothing of it must not be repeated.
func (s *State) abandonFrame(a *activation) {
	if a.frame == nil {
		return
	}
	s.leaveChildren(a)
	for _, sc := range a.frame.sorted() {
		s.tear(sc, false)
		s.discard(sc)
		s.removeIteration(sc, true)
	}
	s.dropFrame(a)
}

// leaveChildren cancels what waits for children below an activation: the children are told to end, and their end is not awaited.
func (s *State) leaveChildren(a *activation) {
	for _, sc := range a.frame.sorted() {
		for _, inner := range sc.sorted() {
			switch {
			case inner.frame != nil:
				s.leaveChildren(inner)
			case inner.phase.open() && inner.wait != nil && inner.wait.child != nil:
				s.stop(inner)
				s.cancelled(inner)
			}
		}
	}
}

// regenerate starts a new generation of an activation, which has done nothing yet.
func (s *State) regenerate(a *activation) {
	s.forgetFailure(a.id)
	s.move(a, phaseParked)
	a.gen = max(a.gen, a.innerGen) + 1
	a.innerGen = a.gen
	for o := a.scope.owner; o != nil; o = o.scope.owner {
		o.innerGen = max(o.innerGen, a.gen)
	}
	a.attempt, a.retries, a.recoveries, a.blamed, a.spawned = 1, 0, 0, 0, 0
	a.started, a.inquires, a.unknown, a.canceling, a.effected, a.opened = false, false, false, false, false, false
	a.err = nil
	if a.cause.Kind != CauseOutput {
		a.cause = Cause{Kind: CauseRun, Filled: a.cause.Filled} // what was found for it, or answered by a person, is still valid
	}
}

// revive lets an execution that ended with an error go on: what was canceled because of it is ready again. The caller
// handles the activation that this is done for.
func (s *State) revive(target *activation) {
	s.move(target, phaseHeld) // open, so that nothing around it ends meanwhile
	if s.final == "" {
		s.unstick(target)
		return
	}
	s.final = ""
	s.root.ending = nil
	s.limitTime()
	s.reviveScope(s.root, target)
	for _, a := range s.effected {
		s.reviveEffected(a, unknownOutcome(nil))
	}
	s.effected = nil
}

// reviveCanceled makes an activation ready again that was canceled because of another. If only its connections were left
// to settle, it settles them. If it may have had its effect, a decision is needed, which waits until all is revived.
func (s *State) reviveCanceled(a *activation) {
	cause, effected := a.cause, a.effected
	s.regenerate(a)
	switch {
	case cause.Kind == CauseError || cause.Kind == CauseOutput:
		a.cause = cause
		s.issue(a)
	case effected && s.staysUnknown(a):
		s.failUnknown(a, unknownOutcome(nil))
	case effected:
		s.move(a, phaseHeld)
		s.effected = append(s.effected, a)
	default:
		s.issue(a)
	}
}

// staysUnknown says whether an unknown outcome fails the activation and nothing inside its scope handles that.
func (s *State) staysUnknown(a *activation) bool {
	return a.policy().onUnknown == workflow.OnUnknownFail && !a.handlesErrors() && !a.scope.program.Handles(a.name, unknownOutcome(nil))
}

// failUnknown leaves an activation failed until a person deals with it. The failure does not go outwards, so that it
// does not undo the revival or the fork it is part of.
func (s *State) failUnknown(a *activation, err *fault.Error) {
	s.emit(EndNode{a.id, a.gen, NodeFailure, err})
	a.err, a.unknown = err, true
	s.move(a, phaseFailed)
	s.failures = append(s.failures, failure{a.id, err})
	s.after(a.scope)
}

// reviveEffected decides about an activation that may have had its effect before an ending or a fork reached it. It runs
// again only if it is known not to have had it; else the activation fails with err.
func (s *State) reviveEffected(a *activation, err *fault.Error) {
	switch p := a.policy(); {
	case a.scope.torn:
		s.fail(a, err, nil)
	case p.onUnknown == workflow.OnUnknownRetry:
		s.issue(a)
	case s.staysUnknown(a):
		s.failUnknown(a, err)
	case p.onUnknown == workflow.OnUnknownFail:
		s.fail(a, err, nil)
	default:
		a.effected = true
		s.outcomeUnknown(a, nil)
	}
}

// unstick reopens the scope nodes that stayed behind with a failure.
func (s *State) unstick(target *activation) {
	for o := target.scope.owner; o != nil; o = o.scope.owner {
		if o.phase == phaseFailed {
			s.move(o, phaseScope)
		}
	}
}

func (s *State) reviveScope(sc *Scope, target *activation) {
	sc.torn = false
	for _, name := range sortedKeys(sc.timers) {
		s.resumeTimer(sc.timers[name])
	}
	for _, a := range sc.sorted() {
		switch {
		case a == target:
		case a.frame != nil && !a.phase.open():
			s.reviveFrame(a, target)
		case a.phase == phaseParked:
			s.issue(a)
		case a.phase == phaseCanceled:
			s.reviveCanceled(a)
		}
	}
}

func (s *State) reviveFrame(o *activation, target *activation) {
	f := o.frame
	s.move(o, phaseScope)
	if f.ending != nil {
		s.endQuietFrame(o) // it was ending on its own when the execution ended: that goes on
		return
	}
	if f.deadline != "" {
		s.resumeTimer(f.deadline)
	}
	for _, sc := range f.sorted() {
		if sc.ending == nil {
			s.reviveScope(sc, target)
		}
		if target.scope != sc {
			s.after(sc)
		}
	}
	if f.closing {
		s.dispatch(o)
	} else {
		s.advance(o)
	}
}

func (s *State) resumeTimer(id TimerID) {
	t := s.timers[id]
	s.emit(Sleep{Timer: id, Until: t.until, Purpose: t.purpose, Activation: t.activation})
}

// fork begins a journal with the state of another execution.
func (s *State) fork(f ExecutionForked) error {
	if err := s.checkFirst(f.Execution, f.Semantics); err != nil {
		return err
	}
	src, err := Restore(s.graph, s.programs, f.State)
	if err != nil {
		return err
	}
	chosen := src.find(f.Activation)
	switch {
	case src.final != "" || !src.started || (src.root.ending != nil):
		return fault.Newf(fault.Conflict, "state: the source was %s at that point; fork from a point where it ran", src.Status())
	case chosen == nil || chosen.scope.torn:
		return fault.Newf(fault.NotFound, "activation: %q is not open in the state to fork from", f.Activation)
	case chosen.frame != nil:
		return fault.Newf(fault.Conflict, "activation: %q runs a body at that point; fork from an activation inside it, or from the point where it became ready", f.Activation)
	}
	if err := src.checkAgain(f.Again); err != nil {
		return err
	}
	seq, now := s.seq, s.now
	*s = *src
	for _, sc := range s.scopes { // order does not matter: each gets the same
		sc.st = s
	}
	s.seq, s.now = seq, now
	s.created.Execution = f.Execution
	if s.limit != "" {
		delete(s.timers, s.limit)
		s.limit = ""
	}
	s.limitTime()
	s.paused, s.deferred = false, nil
	for _, a := range s.children { // order does not matter: each child is started again, and has asked no questions yet
		s.childAsks(a.wait, false)
	}
	if chosen.phase != phaseRunning && chosen.phase != phaseHeld {
		s.stop(chosen)
		s.regenerate(chosen)
		s.move(chosen, phaseHeld)
	}
	s.askAgain(f.Again, AgainCause{Action: AgainFork, Activation: f.Activation, By: f.By, TokenMadeBy: f.TokenMadeBy})
	s.beginBehind(chosen)
	if f.Edits {
		s.askAnew(chosen)
	} else if f.Input != "" {
		chosen.input = f.Input
	}
	source := ""
	if f.NamesSource {
		source = f.Source
	}
	s.reissue(chosen, source)
	return nil
}

// reissue issues the open work of a fork again, under the new execution's ids. The effect of a once attempt that was
// under way in the source is not repeated without a decision.
func (s *State) reissue(chosen *activation, source string) {
	s.out = s.out[:0]
	open := s.sorted(func(a *activation) bool { return a.phase.open() })
	for _, a := range open {
		a.asOf = s.seq
		if w := a.wait; w != nil && w.child != nil && !a.canceling {
			delete(s.children, w.childID)
			a.spawned = 0
			w.childID = s.childID(a)
			a.spawned++
			if !w.child.Detached {
				s.children[w.childID] = a
			}
		}
	}
	for _, a := range open {
		if a.canceling {
			s.childCanceled(a) // the child belongs to the source
		}
	}
	s.outstanding(false)
	var begun []*activation
	for _, a := range open {
		switch {
		case a.phase == phaseRunning && a.started && a != chosen:
			s.move(a, phaseHeld)
			begun = append(begun, a)
		case a.phase == phaseRunning, a.phase == phaseHeld, a.phase == phaseGated:
			s.reissueRun(a)
		case a.wait != nil && a.wait.unsent:
			s.sendNew(a)
		}
	}
	for _, a := range begun {
		err := unknownOutcome(nil)
		if source != "" {
			err = fault.Newf(fault.OutcomeUnknown, "the attempt was under way in execution %q when this one was forked from it, and is not repeated without a decision; look there for what became of it, then retry or skip the node", source).With("source_execution_id", source)
		}
		s.reviveEffected(a, err)
	}
}
