package engine_test

import (
	"slices"
	"strconv"

	"tandem/engine"
	"tandem/workflow"
)

// The life of one activation.

func (m *model) dispatch(a *modelAct) {
	a.started = false
	switch {
	case a.scope.torn:
		a.phase = "parked"
	case m.paused:
		a.phase = "held"
	default:
		a.phase = "running"
	}
}

func (m *model) attemptFailed(a *modelAct, f *engine.NodeFailed) []int {
	final := a.scope.torn || a.cause == engine.CauseTurn || a.cause == engine.CauseClose || a.byChild
	switch {
	case a.cause == engine.CauseInquire && !f.NotDone && f.Error.Retryable && !a.scope.torn && a.inquiries < 4:
		before := a.retries
		a.retries = a.inquiries
		m.backoff(a, f.RetryAfterMS)
		a.retries = before
		a.inquiries++
		return nil
	case a.cause == engine.CauseInquire && !f.NotDone:
		a.cause = engine.CauseRun
		return m.undecided(a)
	case a.cause == engine.CauseInquire:
		a.cause, a.effected = engine.CauseRun, false
		return m.attemptFailed(a, &engine.NodeFailed{Error: f.Error, RetryAfterMS: f.RetryAfterMS})
	case f.Unknown:
		return m.unknown(a)
	case f.Error.Retryable && !final && a.retries < m.maxRetries(a):
		m.backoff(a, f.RetryAfterMS)
		return nil
	}
	return m.fail(a, f)
}

func (m *model) backoff(a *modelAct, wish int64) {
	delay := int64(1000)
	for range a.retries {
		delay = min(2*delay, 300_000)
	}
	a.retries++
	a.phase, a.started = "retrying", false
	a.retryFrom, a.retryTo = m.now+delay*8/10, m.now+delay*12/10
	if wish > 0 {
		a.retryFrom = m.now + min(wish, 3_600_000)
		a.retryTo = a.retryFrom
	}
}

// unknown decides about an attempt that may have had its effect.
func (m *model) unknown(a *modelAct) []int {
	if a.inquires && !a.scope.torn {
		a.inquires, a.effected, a.inquiries, a.cause = false, true, 0, engine.CauseInquire
		m.dispatch(a)
		return nil
	}
	return m.undecided(a)
}

// undecided is what follows when nobody can say what became of an attempt.
func (m *model) undecided(a *modelAct) []int {
	a.effected = true
	how := m.plan(a).OnUnknown
	switch {
	case a.scope.torn, how == workflow.OnUnknownFail, how == workflow.OnUnknownRetry && a.retries >= m.maxRetries(a):
		return m.fail(a, nil)
	case how == workflow.OnUnknownRetry:
		m.backoff(a, 0)
		return nil
	}
	m.suspend(a, &modelWait{ask: string(a.id), unknown: true})
	return nil
}

func (m *model) suspend(a *modelAct, w *modelWait) {
	w.made = m.count()
	w.unsent = m.paused
	a.effected = a.effected || a.started
	a.started = false
	a.wait = w
	a.phase = "waiting"
	if w.ask != "" {
		a.phase = "asking"
	}
	if w.detached && !m.paused {
		m.wake(a, false)
	}
}

// wake lets a waiting attempt go on. What a failed child brings back has crossed a border, so it is final.
func (m *model) wake(a *modelAct, childFailed bool) {
	a.wait, a.crashes, a.blamed = nil, 0, 0
	a.byChild = childFailed
	m.dispatch(a)
}

func (m *model) handles(a *modelAct) bool {
	e := m.plan(a).OnError
	return e == workflow.OnErrorContinue || e == workflow.OnErrorDefault
}

// lost says that an activation leads only into a first-join that has fired, or never will: its failure is nobody's
// concern.
func (m *model) lost(a *modelAct) bool {
	for n := range m.g.nodes {
		decided := a.scope.fired[n] || a.scope.fates[n] != ""
		if m.g.nodes[n].plan.Join.First && decided && m.g.leadsOnlyInto(a.node, n) {
			return true
		}
	}
	return false
}

// fail ends an activation that has failed for good. It returns the nodes of its scope to look at.
func (m *model) fail(a *modelAct, f *engine.NodeFailed) []int {
	sc := a.scope
	if fr := a.frame; fr != nil {
		if fr.ending == "" && len(fr.open) > 0 {
			fr.turning = false
			a.phase = "scope"
			m.endFrame(a, "failure")
			return nil
		}
		a.frame = nil
	}
	if !sc.torn && m.handles(a) && a.cause != engine.CauseError {
		if f != nil && f.Handled {
			return m.end(a, engine.NodeFailure, f.Outputs, f.Settled)
		}
		a.cause, a.byChild = engine.CauseError, false
		m.dispatch(a)
		return nil
	}
	m.ended[a.id] = engine.NodeFailure
	if !sc.torn && m.lost(a) {
		return m.end(a, engine.NodeFailure, nil, nil)
	}
	a.phase = "failed"
	if !sc.torn {
		m.escalate(sc, a.id)
	} else if m.root.ending != "" {
		m.failures = append(m.failures, a.id)
	}
	return nil
}

// escalate takes a failure to the nearest scope that handles it.
func (m *model) escalate(sc *modelScope, id engine.ActivationID) {
	for ; sc.owner != nil; sc = sc.owner.scope {
		o := sc.owner
		if o.frame.spec.KeepGoing {
			sc.ending = "failure"
			m.tear(sc)
			return
		}
		if m.handles(o) || m.lost(o) {
			m.endFrame(o, "failure")
			return
		}
	}
	m.failures = append(m.failures, id)
	m.endExecution("failure", id)
}

// How scopes and executions end.

func (m *model) endExecution(kind string, id engine.ActivationID) {
	if m.root.ending != "" && kind != "cancel" {
		return
	}
	m.root.ending, m.blamed = kind, id
	m.paused, m.deferred, m.limit = false, nil, 0
	m.tear(m.root)
}

func (m *model) endFrame(o *modelAct, kind string) {
	f := o.frame
	if f.ending != "" || o.scope.torn {
		return
	}
	m.drop(o)
	o.phase = "scope"
	m.unstick(o)
	f.ending, f.until, f.turning, f.closing = kind, 0, false, false
	for _, sc := range f.sorted() {
		m.tear(sc)
	}
}

// tear stops everything inside a scope. Once attempts that have begun go on, children are waited for.
func (m *model) tear(sc *modelScope) {
	sc.torn = true
	for _, a := range sc.sorted() {
		switch {
		case a.frame != nil:
			if a.open() {
				m.drop(a)
				a.frame.turning = false
				a.phase = "scope"
			}
			for _, inner := range a.frame.sorted() {
				m.tear(inner)
			}
		case !a.open():
		case a.phase == "held":
			a.phase = "parked"
		case a.phase == "running" && a.started:
		case a.wait != nil && a.wait.child && !a.wait.unsent:
			m.keepChild(a)
		default:
			m.drop(a)
			m.cancelled(a)
		}
	}
}

// keepChild lets an activation wait for nothing but the end of its child, which is told to stop.
func (m *model) keepChild(a *modelAct) {
	a.canceling = true
	a.phase = "waiting"
	a.wait = &modelWait{made: a.wait.made, child: true}
}

func (m *model) drop(a *modelAct) { a.wait = nil }

func (m *model) cancelled(a *modelAct) {
	a.phase = "canceled"
	m.ended[a.id] = m.actStatus(a)
}

// cancelOne cancels the loser of a join.
func (m *model) cancelOne(a *modelAct) []int {
	switch {
	case !a.open() || a.canceling || a.scope.torn || a.phase == "running" && a.started:
	case a.frame != nil:
		m.endFrame(a, "cancel")
	case a.wait != nil && a.wait.child && !a.wait.unsent:
		m.keepChild(a)
	default:
		return m.end(a, engine.NodeCanceled, nil, nil)
	}
	return nil
}

// settle ends what has nothing open any more, until everything that could end has.
func (m *model) settle() {
	for m.started && m.final == "" && m.settleOne() {
	}
}

func (m *model) settleOne() bool {
	for _, sc := range slices.Backward(m.scopes()) {
		for _, a := range sc.sorted() {
			if f := a.frame; f != nil && f.ending != "" && f.quiet() && !sc.torn && a.open() {
				m.frameEnded(a)
				return true
			}
			if f := a.frame; f != nil && sc.torn && a.open() && f.quiet() {
				m.cancelled(a)
				return true
			}
			if f := a.frame; f != nil && !sc.torn && f.ending == "" && a.phase == "scope" && f.quiet() && m.stuck(f) {
				a.phase = "failed" // it stays behind with a failure that only a person can deal with
				m.ended[a.id] = engine.NodeFailure
				return true
			}
		}
		if !sc.quiet() {
			continue
		}
		o := sc.owner
		switch {
		case o == nil:
			m.finish()
			return true
		case !sc.torn && m.failedIn(sc.path+"/"), o.scope.torn, o.frame.ending != "":
		case sc.torn:
			m.discard(sc)
			o.frame.bad++
			m.remove(sc, true)
			m.advance(o)
			return true
		default:
			o.frame.good++
			m.remove(sc, false)
			m.advance(o)
			return true
		}
	}
	return false
}

// stuck says that an iteration holds a failure that only a person can deal with.
func (m *model) stuck(f *modelFrame) bool {
	return slices.ContainsFunc(f.sorted(), func(sc *modelScope) bool { return !sc.torn && m.failedIn(sc.path+"/") })
}

func (m *model) finish() {
	switch {
	case m.root.ending == "cancel":
		m.final = engine.StatusCanceled
	case m.root.ending == "timeout":
		m.final = engine.StatusTimeout
	case m.root.ending != "":
		m.final = engine.StatusError
	case len(m.failures) > 0:
		m.final, m.blamed = engine.StatusError, m.failures[0]
	default:
		m.final, m.blamed = engine.StatusSuccess, ""
	}
	m.paused, m.limit = false, 0
}

func (m *model) remove(sc *modelScope, failed bool) {
	delete(sc.owner.frame.open, sc.index)
	m.close(sc, failed)
}

func (m *model) close(sc *modelScope, failed bool) {
	how := " closed"
	if failed {
		how = " failed"
	}
	m.closed = append(m.closed, sc.path+how)
}

// discard lets what is left in a scope go.
func (m *model) discard(sc *modelScope) {
	for _, a := range sc.sorted() {
		if a.phase == "parked" {
			m.ended[a.id] = engine.NodeCanceled
		}
		m.forget(a.id)
		if a.frame != nil {
			for _, inner := range a.frame.sorted() {
				m.discard(inner)
				m.close(inner, true)
			}
		}
	}
}

func (m *model) forget(id engine.ActivationID) {
	m.failures = slices.DeleteFunc(m.failures, func(f engine.ActivationID) bool { return f == id })
}

func (m *model) frameEnded(o *modelAct) {
	f := o.frame
	for _, sc := range f.sorted() {
		m.discard(sc)
		m.remove(sc, true)
	}
	kind := f.ending
	f.ending = ""
	switch kind {
	case "deadline":
		f.late = true
		m.closeFrame(o)
	case "failure":
		o.frame = nil
		m.look(o.scope, m.fail(o, nil))
	default:
		o.frame = nil
		m.look(o.scope, m.end(o, engine.NodeCanceled, nil, nil))
	}
}

// advance opens what may begin in a scope node's body, or closes it after the last iteration.
func (m *model) advance(o *modelAct) {
	f := o.frame
	for f.ending == "" && !f.closing && !f.turning && !o.scope.torn && !m.stuck(f) {
		more := !f.stopped && (f.spec.Count < 0 || f.next < f.spec.Count)
		switch {
		case more && int64(len(f.open)) >= max(f.spec.Concurrency, 1):
			return
		case more && (f.spec.Turns || f.empty):
			f.turning = true
			o.cause = engine.CauseTurn
			m.dispatch(o)
		case more:
			m.openIteration(o, f.spec.Entry)
		case len(f.open) > 0:
			return
		default:
			m.closeFrame(o)
		}
	}
}

func (m *model) openIteration(o *modelAct, entry []engine.Verdict) {
	f := o.frame
	sc := m.newScope(string(o.id)+"["+itoa(f.next)+"]", o, f.next)
	f.open[f.next] = sc
	f.next++
	o.opened = true
	m.startBody(sc, entry)
	f.empty = sc.quiet()
}

func (m *model) closeFrame(o *modelAct) {
	o.frame.closing, o.frame.until = true, 0
	o.cause = engine.CauseClose
	m.dispatch(o)
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
