package engine

import (
	"slices"

	"tandem/fault"
)

// wait is what an activation waits for.
type wait struct {
	ord    uint64
	timer  TimerID
	signal string
	ask    AskID
	// question is what was asked; unknown says that the engine asks it, about an unknown outcome.
	question *Question
	unknown  bool
	why      Doubt
	child    *Child
	childID  string
	memo     Ref
	unsent   bool // asked or started during a pause: sent on resume
	asks     bool // the child waits for a person
}

func (s *State) nodeSuspended(f NodeSuspended) error {
	a, err := s.current(f.Attempt)
	if err != nil {
		return err
	}
	if f.Until == 0 && f.Signal == "" && f.Ask == nil && f.Child == nil {
		return fault.Newf(fault.Invalid, "%q waits for nothing; name until, signal, ask or child", a.id)
	}
	if a.cause.Kind == CauseInquire {
		return fault.Newf(fault.Invalid, "%q was asked what became of a run; it cannot wait", a.id)
	}
	if a.scope.torn {
		a.effected = a.effected || a.started
		s.cancelled(a)
		s.after(a.scope)
		return nil
	}
	if f.Child != nil && s.created.Depth >= MaxDepth {
		s.fail(a, fault.Newf(fault.RecursionLimit, "the workflow would start a child %d executions deep; the limit is %d", s.created.Depth+1, MaxDepth), nil)
		return nil
	}
	w := &wait{signal: f.Signal, question: f.Ask, child: f.Child, memo: f.Memo}
	if f.Until > 0 {
		w.timer = s.setTimer(TimerWait, a.id, f.Until)
	}
	s.suspend(a, w)
	if a.wait == w { // a detached child has woken it already
		s.useEarlySignal(a)
	}
	return nil
}

// MaxDepth is how many executions may stand above a child.
const MaxDepth = 10

// suspend lets an activation wait.
func (s *State) suspend(a *activation, w *wait) {
	w.ord = s.nextOrd()
	a.wait = w
	a.effected = a.effected || a.started
	a.started = false
	if w.question != nil {
		w.ask = s.keyed[w.question.Key]
		if w.ask == "" {
			w.ask = AskID(string(a.id) + "#ask." + formatOrd(w.ord))
		}
		s.move(a, phaseAsking)
	} else {
		s.move(a, phaseWaiting)
	}
	if w.child != nil {
		w.childID = s.childID(a)
		a.spawned++
	}
	s.register(a)
	w.unsent = s.paused
	if !w.unsent {
		s.sendNew(a)
	}
}

// sendNew sends a wait for the first time. An activation does not wait for a detached child: it goes on at once.
func (s *State) sendNew(a *activation) {
	s.send(a)
	if w := a.wait; w.child != nil && w.child.Detached {
		s.wake(a, Wake{By: WakeChild, Child: w.childID})
	}
}

// childID is the id of the next child an activation starts: ChildID for the first of a generation, NthChildID for a
// later one.
func (s *State) childID(a *activation) string {
	return NthChildID(s.created.Execution, a.id, a.gen, int(a.spawned))
}

// register enters a wait into the indexes.
func (s *State) register(a *activation) {
	w := a.wait
	if w.ask != "" {
		q := s.asks[w.ask]
		if q == nil {
			q = &ask{question: *w.question}
			s.asks[w.ask] = q
			if q.question.Key != "" {
				s.keyed[q.question.Key] = w.ask
			}
		}
		q.waiters = append(q.waiters, a)
	}
	if w.child != nil && !w.child.Detached {
		s.children[w.childID] = a
	}
	if w.signal != "" {
		key := signalKey{a.nodeID(), w.signal}
		s.waiters[key] = append(s.waiters[key], a)
	}
}

// send asks the question or starts the child of a wait.
func (s *State) send(a *activation) {
	w := a.wait
	w.unsent = false
	if w.question != nil {
		s.emit(Ask{Ask: w.ask, Activation: a.id, Generation: a.gen, Purpose: w.question.Purpose, Ref: w.question.Ref, Why: w.why})
	}
	if w.child != nil {
		s.emit(StartChild{Child: w.childID, Activation: a.id, Spec: *w.child, Depth: s.created.Depth + 1})
	}
}

// nodeID is the id that signals and people call the node by.
func (a *activation) nodeID() string {
	for o := a; o != nil; o = o.scope.owner {
		if o.node >= 0 {
			return o.scope.st.graph.Nodes[o.node].ID // a step waits on behalf of its node
		}
	}
	return a.name
}

// stopWaiting removes an activation from the indexes and withdraws what it waits for. A child that has been started is
// told to cancel.
func (s *State) stopWaiting(a *activation) {
	w := a.wait
	if w == nil {
		return
	}
	s.childAsks(w, false)
	a.wait = nil
	if w.timer != "" {
		s.clearTimer(w.timer)
	}
	if w.signal != "" {
		key := signalKey{a.nodeID(), w.signal}
		s.waiters[key] = slices.DeleteFunc(s.waiters[key], func(o *activation) bool { return o == a })
		if len(s.waiters[key]) == 0 {
			delete(s.waiters, key)
		}
	}
	if q := s.asks[w.ask]; w.ask != "" && q != nil {
		q.waiters = slices.DeleteFunc(q.waiters, func(o *activation) bool { return o == a })
		if len(q.waiters) == 0 {
			s.dropAsk(w.ask)
			if !w.unsent {
				s.emit(Withdraw{w.ask})
			}
		}
	}
	if w.child != nil && s.children[w.childID] == a {
		delete(s.children, w.childID)
		if !w.unsent {
			s.emit(TellChild{w.childID, ChildCancel})
		}
	}
}

// dropAsk forgets a question. The next one under its key is another.
func (s *State) dropAsk(id AskID) {
	delete(s.keyed, s.asks[id].question.Key)
	delete(s.asks, id)
}

// wake ends a wait and lets the attempt go on.
func (s *State) wake(a *activation, w Wake) {
	a.cause.Wake = &w
	a.cause.Memo = a.wait.memo
	a.recoveries, a.blamed = 0, 0
	s.stopWaiting(a)
	s.dispatch(a)
}

func (s *State) timerFired(f TimerFired) error {
	t, ok := s.timers[f.Timer]
	if !ok || !s.ticking(t) || slices.Contains(s.deferred, f.Timer) {
		return fault.Newf(fault.Conflict, "timer %q is not set; it has fired or was removed", f.Timer)
	}
	if s.paused && t.purpose != TimerRetry && t.purpose != TimerWait {
		s.deferred = append(s.deferred, f.Timer)
		return nil
	}
	s.fire(f.Timer, t)
	return nil
}

// ticking says whether a timer counts; those of an ending scope are only kept for a retry.
func (s *State) ticking(t timer) bool {
	switch t.purpose {
	case TimerJoin, TimerDeadline:
		path, _ := t.activation.Split()
		sc := s.scopes[path]
		return sc != nil && !sc.torn
	}
	return true
}

func (s *State) fire(id TimerID, t timer) {
	delete(s.timers, id)
	switch t.purpose {
	case TimerRetry:
		a := s.find(t.activation)
		a.timer = ""
		s.issue(a)
	case TimerWait:
		a := s.find(t.activation)
		a.wait.timer = ""
		s.wake(a, Wake{By: WakeTimer})
	case TimerJoin:
		path, name := t.activation.Split()
		sc := s.scopes[path]
		delete(sc.timers, name)
		sc.program.Fired(sc, name)
		s.after(sc)
	case TimerDeadline:
		a := s.find(t.activation)
		a.frame.deadline = ""
		s.endFrame(a, &ending{Kind: endDeadline})
	case TimerExecution:
		s.limit = ""
		s.endExecution(&ending{Kind: endTimeout, Error: fault.New(fault.Timeout, "the execution took longer than its timeout_seconds").Final()})
	}
}

func (s *State) askAnswered(f AskAnswered) error {
	q := s.asks[f.Ask]
	if q == nil {
		return fault.Newf(fault.Conflict, "question %q is not open; it was answered or withdrawn", f.Ask)
	}
	if q.waiters[0].wait.unknown {
		return s.unknownDecided(q.waiters[0], f)
	}
	s.dropAsk(f.Ask)
	for _, a := range q.waiters {
		a.wait.ask = ""
		s.wake(a, Wake{By: WakeAnswer, Ref: f.Ref, Outcome: f.Outcome, Person: f.By})
	}
	return nil
}

// unknownDecided carries out what a person says about an unknown outcome.
func (s *State) unknownDecided(a *activation, f AskAnswered) error {
	choice := f.Choice
	if f.Outcome != AskDone {
		choice = ChoiceStop
	}
	switch choice {
	case ChoiceDone, ChoiceNotDone, ChoiceStop:
	default:
		return fault.Newf(fault.Invalid, "choice: %q decides nothing; say %s, %s or %s", choice, ChoiceDone, ChoiceNotDone, ChoiceStop)
	}
	if err := s.checkAgain(f.Again); err != nil {
		return err
	}
	s.dropAsk(f.Ask)
	a.wait.ask = ""
	s.stopWaiting(a)
	a.attempt++
	switch choice {
	case ChoiceDone:
		a.unknown = false
		s.askAgain(f.Again, AgainCause{Action: AgainOutput, Activation: a.id, By: f.By, Output: f.Ref})
		a.cause = Cause{Kind: CauseOutput, Ref: f.Ref}
		s.issue(a)
	case ChoiceNotDone:
		a.unknown, a.effected = false, false
		s.issue(a)
	case ChoiceStop:
		s.fail(a, fault.New(fault.OutcomeUnknown, "a person stopped the node: its outcome is not known"), nil)
	}
	return nil
}

func (s *State) signalReceived(f SignalReceived) error {
	if f.Name == "" || f.Node == "" {
		return fault.New(fault.Invalid, "a signal needs the node it is for and a name")
	}
	if _, ok := s.graph.Node(f.Node); !ok && s.created.Program == "" {
		return fault.Newf(fault.NotFound, "node: the workflow has no node %q", f.Node)
	}
	for _, a := range s.waiters[signalKey{f.Node, f.Name}] {
		if f.Activation == "" || f.Activation == a.id {
			s.wake(a, Wake{By: WakeSignal, Ref: f.Ref})
			return nil
		}
	}
	s.early = append(s.early, f)
	return nil
}

// useEarlySignal wakes an activation whose signal has come before it waited.
func (s *State) useEarlySignal(a *activation) {
	if a.wait.signal == "" {
		return
	}
	node := a.nodeID()
	for i, f := range s.early {
		if f.Node == node && f.Name == a.wait.signal && (f.Activation == "" || f.Activation == a.id) {
			s.early = slices.Delete(s.early, i, i+1)
			s.wake(a, Wake{By: WakeSignal, Ref: f.Ref})
			return
		}
	}
}

func (s *State) childWaiting(f ChildWaiting) {
	if a := s.children[f.Child]; a != nil && !a.canceling {
		s.childAsks(a.wait, f.Human)
	}
}

// childAsks notes whether the child of a wait waits for a person.
func (s *State) childAsks(w *wait, asks bool) {
	switch {
	case w.asks == asks:
	case asks:
		s.asksBelow++
	default:
		s.asksBelow--
	}
	w.asks = asks
}

// AsksBelow returns the activations that wait for a child that waits for a person, by the id of the child.
func (s *State) AsksBelow() map[string]ActivationID {
	if s.asksBelow == 0 {
		return nil
	}
	below := make(map[string]ActivationID, s.asksBelow)
	for id, a := range s.children { // order does not matter: one entry per child
		if a.wait.asks {
			below[id] = a.id
		}
	}
	return below
}

// StarterOf is the activation that waits for a child.
func (s *State) StarterOf(child string) (ActivationID, bool) {
	a := s.children[child]
	if a == nil {
		return "", false
	}
	return a.id, true
}

func (s *State) childFinished(f ChildFinished) error {
	a := s.children[f.Child]
	if a == nil {
		return fault.Newf(fault.Conflict, "nobody waits for child %q", f.Child)
	}
	if !f.Status.Final() {
		return fault.Newf(fault.Invalid, "status: %q is not how a child ends", f.Status)
	}
	delete(s.children, f.Child)
	if a.canceling {
		s.childCanceled(a)
		return nil
	}
	err := f.Error
	if err != nil {
		err = err.Final()
	}
	s.wake(a, Wake{By: WakeChild, Ref: f.Ref, Child: f.Child, Status: f.Status, Error: err})
	return nil
}

// childCanceled ends an activation that waited only for its child to be cancelled.
func (s *State) childCanceled(a *activation) {
	delete(s.children, a.wait.childID)
	s.stopWaiting(a)
	if a.scope.torn {
		s.cancelled(a)
		s.after(a.scope)
		return
	}
	s.emit(EndNode{Activation: a.id, Generation: a.gen, Status: NodeCanceled})
	s.leave(a, End{Status: NodeCanceled})
}
