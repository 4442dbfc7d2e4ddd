package engine

import (
	"strconv"

	"tandem/fault"
	"tandem/workflow"
)

// phase is where an activation stands. Up to phaseAsking, and while gated, it is open.
type phase uint8

const (
	phaseHeld     phase = iota + 1 // ready, held back by a pause
	phaseRunning                   // handed to the runtime
	phaseRetrying                  // waits for its backoff
	phaseWaiting                   // waits for a time, a signal or a child
	phaseScope                     // its body runs
	phaseAsking                    // waits for a person
	phaseParked                    // became ready in a scope that is ending
	phaseFailed
	phaseCanceled
	phaseGated // ready, waits for a question that is asked again
)

func (p phase) open() bool { return p <= phaseAsking || p == phaseGated }

// activation is one visit to a node while it is open; failed and canceled ones are kept for as long as they can be
// retried. It belongs to its scope.
type activation struct {
	id    ActivationID
	scope *Scope
	name  string // its name in the scope
	node  int    // its node in the graph; -1 for a program's step
	step  *Step
	ord   uint64

	phase      phase
	gen        uint32
	innerGen   uint32 // the highest generation used below it, so that none is used twice
	attempt    uint32
	retries    uint32 // attempts that followed a failure
	recoveries uint32 // runs that were repeated because a process died
	blamed     uint32 // deaths of a process in which it ran alone
	started    bool   // a once attempt has been recorded as begun
	inquires   bool   // the service can be asked whether it had its effect
	asOf       uint64
	cause      Cause
	inputs     []Input
	only       [1]Input // the room of inputs, which mostly are one
	input      Ref
	timedOut   bool // its join's time was up

	timer     TimerID // the backoff, while retrying
	wait      *wait
	frame     *frame
	opened    bool   // a body of it has run
	spawned   uint32 // children started in this generation
	effected  bool   // a once attempt of this generation has begun and then waited
	canceling bool   // it ends as canceled when its child has
	unknown   bool   // the outcome of its last attempt is not known
	again     bool   // it asks a question again that lies before others
	// causes are why a question that has no answer yet is asked another time.
	causes []AgainCause
	err    *fault.Error
}

func formatOrd(n uint64) string { return strconv.FormatUint(n, 10) }

// policy is what the revision or the program says about running the activation.
type policy struct {
	effect     workflow.Effect
	maxRetries uint32
	timeoutMS  int64
	onError    workflow.OnError
	onUnknown  workflow.OnUnknown
}

func (a *activation) policy() policy {
	if a.node < 0 {
		return policy{a.step.Effect, uint32(max(a.step.MaxRetries, 0)), a.step.TimeoutMS, workflow.OnErrorFail, a.step.OnUnknown}
	}
	n := &a.scope.st.graph.Nodes[a.node]
	p := policy{n.Plan.Effect, uint32(max(n.Plan.MaxRetries, 0)), n.Plan.TimeoutMS, n.Plan.OnError, n.Plan.OnUnknown}
	if n.Opens > 0 {
		p.maxRetries = 0 // scope nodes are never retried
	}
	return p
}

// handlesErrors says that a failure becomes an output of the node itself.
func (a *activation) handlesErrors() bool {
	e := a.policy().onError
	return e == workflow.OnErrorContinue || e == workflow.OnErrorDefault
}

func (a *activation) at() Attempt { return Attempt{a.id, a.gen, a.attempt} }

func (a *activation) view() Activation {
	v := Activation{ID: a.id, Node: a.node, Generation: a.gen, Attempt: a.attempt, Retries: a.retries, Recoveries: a.recoveries,
		Blamed: a.blamed, Started: a.started, AsOf: a.asOf, Error: a.err, Unknown: a.unknown}
	switch a.phase {
	case phaseHeld, phaseParked, phaseGated:
		v.Status = NodePending
	case phaseRunning, phaseWaiting, phaseScope:
		v.Status = NodeRunning
	case phaseRetrying:
		v.Status = NodeRetrying
	case phaseAsking:
		v.Status = NodeWaitingInput
		v.Ask = a.wait.ask
	case phaseFailed:
		v.Status = NodeFailure
	case phaseCanceled:
		v.Status = NodeCanceled
		if a.frame != nil && a.scope.st.failedInside(a) {
			v.Status = NodeFailure
		}
	}
	if a.frame != nil {
		v.Iterations = a.frame.next
	}
	return v
}

// move changes an activation's phase and the counters that follow from it.
func (s *State) move(a *activation, p phase) {
	s.count(a, -1)
	a.phase = p
	s.count(a, 1)
}

func (s *State) count(a *activation, d int) {
	if a.phase == 0 || !a.phase.open() {
		return
	}
	a.scope.open += d
	switch a.phase {
	case phaseHeld, phaseRunning:
		s.active += d
	case phaseAsking:
		s.asking += d
	}
}

// beginActivation makes an activation ready.
func (s *State) beginActivation(sc *Scope, a *activation) {
	s.enter(sc, a)
	s.issue(a)
}

// beginFailed makes an activation that fails before it runs: a conversion on one of its connections has failed.
func (s *State) beginFailed(sc *Scope, a *activation, err *fault.Error) {
	s.enter(sc, a)
	s.move(a, phaseHeld)
	s.fail(a, err.Final(), nil)
}

func (s *State) enter(sc *Scope, a *activation) {
	a.scope = sc
	a.id = joinID(sc.path, a.name)
	a.ord = s.nextOrd()
	a.attempt = 1
	a.gen = sc.generation()
	a.asOf = s.seq
	a.cause.Kind = CauseRun
	sc.acts[a.name] = a
}

// dispatch hands a ready activation to the runtime, unless a pause or an ending holds it back.
func (s *State) dispatch(a *activation) {
	a.started = false
	switch {
	case a.scope.torn:
		s.move(a, phaseParked)
	case s.paused:
		s.move(a, phaseHeld)
	default:
		s.move(a, phaseRunning)
		s.emit(s.runNode(a))
	}
}

func (s *State) runNode(a *activation) RunNode {
	return RunNode{
		Attempt: a.at(), Scope: a.scope.path, Node: a.node, Step: a.step, Cause: a.cause,
		Inputs: a.inputs, Input: a.input, AsOf: a.asOf, TimedOut: a.timedOut,
		LastTry: a.retries >= a.policy().maxRetries,
	}
}

// current returns the activation that an outcome is about, if the outcome is that of its current run.
func (s *State) current(at Attempt) (*activation, error) {
	a := s.find(at.Activation)
	if a == nil || a.phase != phaseRunning || a.gen != at.Generation || a.attempt != at.Attempt {
		return nil, fault.Newf(fault.Conflict, "attempt %d of %q (generation %d) is not running; it has ended, was given up or never began", at.Attempt, at.Activation, at.Generation)
	}
	return a, nil
}

// leave takes an ended activation out of the state and tells its program.
func (s *State) leave(a *activation, end End) {
	sc := a.scope
	s.move(a, phaseCanceled)
	delete(sc.acts, a.name)
	end.Node, end.Opened = a.node, a.opened
	if a.again {
		s.askedAgain(a, end)
		return
	}
	sc.program.Ended(sc, a.name, end)
	s.after(sc)
}

func (s *State) nodeCompleted(f NodeCompleted) error {
	a, err := s.current(f.Attempt)
	if err != nil {
		return err
	}
	if a.cause.Kind == CauseTurn {
		return fault.Newf(fault.Invalid, "%q was asked for a turn; the answer is scope_advanced", a.id)
	}
	if err := s.checkVerdicts(a, f.Settled); err != nil {
		return err
	}
	end := End{Status: NodeDone, Outputs: f.Outputs, Settled: f.Settled, Reply: f.Reply}
	if a.cause.Kind == CauseError {
		// Only the connections were settled; the node has failed.
		end.Status, end.Error = NodeFailure, a.cause.Error
		s.emit(EndNode{a.id, a.gen, NodeFailure, end.Error})
	}
	s.leave(a, end)
	return nil
}

// checkVerdicts refuses verdicts about connections that do not leave the node.
func (s *State) checkVerdicts(a *activation, verdicts []Verdict) error {
	for _, v := range verdicts {
		if v.Edge < 0 || v.Edge >= len(s.graph.Edges) || a.node < 0 || s.graph.Edges[v.Edge].From != a.node {
			return fault.Newf(fault.Invalid, "connection %d does not leave %q", v.Edge, a.id)
		}
	}
	return nil
}

func (s *State) nodeStarted(f NodeStarted) error {
	a, err := s.current(f.Attempt)
	if err != nil {
		return err
	}
	if a.started {
		return fault.Newf(fault.Conflict, "attempt %d of %q has started already", a.attempt, a.id)
	}
	a.started, a.inquires = true, f.Inquires
	return nil
}

func (s *State) nodeNotBegun(f NodeNotBegun) error {
	a, err := s.current(f.Attempt)
	if err != nil {
		return err
	}
	if !a.started {
		return fault.Newf(fault.Conflict, "attempt %d of %q is not recorded as begun", a.attempt, a.id)
	}
	a.started = false
	if a.scope.torn { // its end was all that the scope waited for
		s.cancelled(a)
		s.after(a.scope)
	}
	return nil
}

func (s *State) nodeFailed(f NodeFailed) error {
	a, err := s.current(f.Attempt)
	if err != nil {
		return err
	}
	if f.Error == nil {
		return fault.Newf(fault.Invalid, "error: the failure of %q names no error", a.id)
	}
	if err := s.checkVerdicts(a, f.Settled); err != nil {
		return err
	}
	s.attemptFailed(a, f)
	return nil
}

// attemptFailed decides what follows a failed attempt: a person, another try, or the end of the activation.
func (s *State) attemptFailed(a *activation, f NodeFailed) {
	switch {
	case a.cause.Kind == CauseInquire:
		s.inquired(a, f)
	case f.Unknown:
		s.outcomeUnknown(a, f.Error)
	case s.mayRetry(a, f.Error):
		s.retryLater(a, f.RetryAfterMS)
	default:
		s.fail(a, f.Error, &f)
	}
}

func (s *State) mayRetry(a *activation, err *fault.Error) bool {
	if !err.Retryable || a.scope.torn || a.retries >= a.policy().maxRetries || a.cause.Kind == CauseTurn || a.cause.Kind == CauseClose {
		return false
	}
	// The failure of a child comes from another execution: it is final.
	w := a.cause.Wake
	return w == nil || w.By != WakeChild || w.Status == "" || w.Status == StatusSuccess
}

// The backoff: 1 s, doubled each time, at most 5 min, a fifth more or less; a time that the service asks for replaces it, up to 1 h.
const (
	backoffBase       = 1_000
	backoffMax        = 300_000
	maxServiceBackoff = 3_600_000
)

func (s *State) retryLater(a *activation, serviceMS int64) {
	a.retries++
	a.attempt++
	delay := s.backoff(a, a.retries, backoffMax)
	if serviceMS > 0 {
		delay = min(serviceMS, maxServiceBackoff)
	}
	s.runLater(a, delay)
}

// backoff is the pause before the n-th repetition.
func (s *State) backoff(a *activation, n uint32, most int64) int64 {
	delay := most
	if n < 10 {
		delay = min(int64(backoffBase)<<(n-1), most)
	}
	return delay + delay*s.jitter(a)/5000
}

func (s *State) runLater(a *activation, delay int64) {
	s.move(a, phaseRetrying)
	a.timer = s.setTimer(TimerRetry, a.id, s.now+delay)
}

// jitter returns a number from -1000 to 1000 that follows from the attempt, so that a replay waits just as long.
func (s *State) jitter(a *activation) int64 {
	h := uint64(14695981039346656037)
	mix := func(text string) {
		for i := 0; i < len(text); i++ {
			h = (h ^ uint64(text[i])) * 1099511628211
		}
	}
	mix(s.created.Execution)
	mix(string(a.id))
	h = (h ^ uint64(a.gen)<<32 ^ uint64(a.attempt)) * 1099511628211
	h ^= h >> 29
	return int64(h%2001) - 1000
}

func (s *State) attemptTimedOut(f AttemptTimedOut) error {
	a, err := s.current(f.Attempt)
	if err != nil {
		return err
	}
	s.emit(CancelNode{a.at()})
	if a.started {
		return nil // it first says how it ended
	}
	limit := a.policy().timeoutMS
	s.attemptFailed(a, NodeFailed{Error: fault.Newf(fault.Timeout, "the attempt took longer than its %s; raise timeout or make the work smaller", formatMS(limit)).With("timeout_ms", limit)})
	return nil
}

func formatMS(ms int64) string {
	if ms%1000 == 0 {
		return strconv.FormatInt(ms/1000, 10) + " s"
	}
	return strconv.FormatInt(ms, 10) + " ms"
}

func unknownOutcome(cause *fault.Error) *fault.Error {
	err := fault.New(fault.OutcomeUnknown, "the attempt began and nobody knows how it ended; check the service, then retry or skip the node")
	if cause != nil {
		err = err.With("last_error", cause.Message)
	}
	return err
}

// outcomeUnknown decides what follows an attempt that may or may not have had its effect. A service that can be asked is asked first.
func (s *State) outcomeUnknown(a *activation, cause *fault.Error) {
	if a.inquires && !a.scope.torn {
		a.inquires = false
		a.unknown, a.effected = true, true
		a.cause.Kind, a.cause.Error = CauseInquire, cause
		a.attempt++
		s.dispatch(a)
		return
	}
	s.decideUnknown(a, Doubt{Run: cause})
}

// maxInquiries is how often a service is asked about an attempt before a person is asked.
const maxInquiries = 5

// inquired handles the answer of the service, unless it is that the effect has happened.
func (s *State) inquired(a *activation, f NodeFailed) {
	if !f.NotDone && f.Error.Retryable && a.cause.Inquiries+1 < maxInquiries && !a.scope.torn {
		a.cause.Inquiries++
		a.attempt++
		delay := s.backoff(a, a.cause.Inquiries, backoffMax)
		if f.RetryAfterMS > 0 {
			delay = min(f.RetryAfterMS, maxServiceBackoff)
		}
		s.runLater(a, delay)
		return
	}
	before := s.endInquiry(a)
	if !f.NotDone {
		s.decideUnknown(a, Doubt{Run: before, Inquiry: f.Error})
		return
	}
	a.unknown, a.effected = false, false
	err := f.Error
	if before != nil {
		err = err.With("last_error", before.Message)
	}
	s.attemptFailed(a, NodeFailed{Error: err, RetryAfterMS: f.RetryAfterMS})
}

// endInquiry makes the activation ready to do its work again, and returns how the run in question ended.
func (s *State) endInquiry(a *activation) *fault.Error {
	before := a.cause.Error
	a.cause.Kind, a.cause.Error, a.cause.Inquiries = CauseRun, nil, 0
	return before
}

// decideUnknown does what the node says about an unknown outcome.
func (s *State) decideUnknown(a *activation, why Doubt) {
	err := unknownOutcome(why.Run)
	a.unknown, a.effected = true, true
	p := a.policy()
	switch {
	case a.scope.torn:
		s.fail(a, err, nil)
	case p.onUnknown == workflow.OnUnknownRetry && a.retries < p.maxRetries:
		a.unknown, a.effected = false, false
		s.retryLater(a, 0)
	case p.onUnknown == workflow.OnUnknownRetry || p.onUnknown == workflow.OnUnknownFail:
		s.fail(a, err, nil)
	default:
		s.suspend(a, &wait{question: &Question{Purpose: PurposeOutcomeUnknown, Ref: a.input}, unknown: true, why: why})
	}
}
