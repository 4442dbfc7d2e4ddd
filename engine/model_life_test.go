package engine_test

import (
	"slices"
	"strconv"

	"tandem/engine"
	"tandem/fault"
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
	how := m.plan(a).OnUnknown
	switch {
	case a.scope.torn, how == workflow.OnUnknownFail, how == workflow.OnUnknownRetry && a.retries >= m.maxRetries(a):
		return m.fail(a, nil)
	case how == workflow.OnUnknownRetry:
		m.backoff(a, 0)
		return nil
	}
	a.effected = true
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
		m.wake(a, true)
	}
}

func (m *model) wake(a *modelAct, byChild bool) {
	a.wait = nil
	a.byChild = byChild
	m.dispatch(a)
}

func (m *model) handles(a *modelAct) bool {
	e := m.plan(a).OnError
	return e == workflow.OnErrorContinue || e == workflow.OnErrorDefault
}

// lost says that an activation leads only into a first-join that has fired: its failure is nobody's concern.
func (m *model) lost(a *modelAct) bool {
	for n := range m.g.nodes {
		if m.g.nodes[n].plan.Join.First && a.scope.fired[n] && m.g.leadsOnlyInto(a.node, n) {
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
		a.cause = engine.CauseError
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
		case !a.open():
		case a.frame != nil:
			m.drop(a)
			a.frame.turning = false
			a.phase = "scope"
			for _, inner := range a.frame.sorted() {
				m.tear(inner)
			}
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
	m.ended[a.id] = engine.NodeCanceled
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
			if f := a.frame; f != nil && !sc.torn && f.ending == "" && a.phase == "scope" && f.quiet() && f.stuck() {
				a.phase = "failed" // it stays behind with a failure that only a person can deal with
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
		case sc.stuck() && !sc.torn, o.scope.torn, o.frame.ending != "":
		case sc.torn:
			m.discard(sc)
			o.frame.bad++
			m.remove(sc, true)
			m.advance(o)
			return true
		default:
			sc.joins = nil
			o.frame.good++
			m.remove(sc, false)
			m.advance(o)
			return true
		}
	}
	return false
}

func (f *modelFrame) stuck() bool {
	return slices.ContainsFunc(f.sorted(), func(sc *modelScope) bool { return !sc.torn && sc.stuck() })
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
	for f.ending == "" && !f.closing && !f.turning && !o.scope.torn && !f.stuck() {
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

// What facts do. Facts that must be refused are never told to the model.

// apply takes one fact in. Timers and questions go by different names here and there, so those come along.
func (m *model) apply(now int64, fact engine.Fact, timer timerName, ask string) {
	m.now = now
	switch f := fact.(type) {
	case engine.ExecutionCreated:
		m.root = m.newScope("", nil, 0)
	case engine.ExecutionStarted:
		m.started = true
		m.limitTime()
		m.startRoot()
	case engine.NodeStarted:
		m.find(f.Activation).started = true
	case engine.NodeCompleted:
		a := m.find(f.Activation)
		fate := engine.NodeDone
		if a.cause == engine.CauseError {
			fate = engine.NodeFailure
		}
		m.look(a.scope, m.end(a, fate, f.Outputs, f.Settled))
	case engine.NodeFailed:
		a := m.find(f.Activation)
		m.look(a.scope, m.attemptFailed(a, &f))
	case engine.AttemptTimedOut:
		if a := m.find(f.Activation); !a.started {
			m.look(a.scope, m.attemptFailed(a, &engine.NodeFailed{Error: fault.New(fault.Timeout, "")}))
		}
	case engine.NodeSuspended:
		m.nodeSuspended(f)
	case engine.ScopeOpened:
		o := m.find(f.Activation)
		o.frame = &modelFrame{spec: f, until: f.Until, open: map[int64]*modelScope{}}
		o.phase = "scope"
		m.advance(o)
	case engine.ScopeAdvanced:
		o := m.find(f.Activation)
		o.frame.turning = false
		o.phase = "scope"
		if f.Open {
			m.openIteration(o, f.Entry)
		} else {
			o.frame.stopped = true
		}
		m.advance(o)
	case engine.TimerFired:
		if m.paused && (timer.purpose == engine.TimerJoin || timer.purpose == engine.TimerDeadline || timer.purpose == engine.TimerExecution) {
			m.deferred = append(m.deferred, timer)
		} else {
			m.fire(timer)
		}
	case engine.AskAnswered:
		m.answer(f, ask)
	case engine.SignalReceived:
		m.signal(f)
	case engine.ChildFinished:
		a := m.find(engine.ActivationID(ask))
		switch {
		case a.canceling && !a.scope.torn:
			m.look(a.scope, m.end(a, engine.NodeCanceled, nil, nil))
		case a.scope.torn:
			a.wait = nil
			m.cancelled(a)
		default:
			m.wake(a, true)
		}
	case engine.ExecutionPaused:
		m.paused = true
	case engine.ExecutionResumed:
		m.resume()
	case engine.ExecutionRecovered:
		m.recover()
	case engine.CancelRequested:
		m.cancel()
	case engine.NodeRetried:
		a := m.find(f.Activation)
		m.renew(a)
		a.wait, a.phase = nil, "held"
		m.revive(a)
		m.dispatch(a)
	case engine.NodeSkipped:
		a := m.find(f.Activation)
		m.renew(a)
		a.wait, a.phase = nil, "held"
		if f.HasOutput {
			a.cause = engine.CauseOutput
		}
		m.revive(a)
		if f.HasOutput {
			m.dispatch(a)
		} else {
			m.look(a.scope, m.end(a, engine.NodeSkip, nil, nil))
		}
	}
	m.settle()
}

func (m *model) limitTime() {
	if m.g.timeoutMS > 0 {
		m.limit = m.now + m.g.timeoutMS
	}
}

func (m *model) nodeSuspended(f engine.NodeSuspended) {
	a := m.find(f.Activation)
	if a.scope.torn {
		a.effected = a.effected || a.started
		m.cancelled(a)
		return
	}
	w := &modelWait{until: f.Until, signal: f.Signal}
	if f.Ask != nil {
		w.ask = string(a.id)
		if f.Ask.Key != "" {
			w.ask = "key:" + f.Ask.Key
		}
	}
	if f.Child != nil {
		w.child, w.detached = !f.Child.Detached, f.Child.Detached
	}
	m.suspend(a, w)
	if a.wait != w || w.signal == "" {
		return
	}
	for i, s := range m.early {
		if m.meant(a, s) {
			m.early = slices.Delete(m.early, i, i+1)
			m.wake(a, false)
			return
		}
	}
}

// meant says that a waiting activation waits for this signal.
func (m *model) meant(a *modelAct, s engine.SignalReceived) bool {
	return a.wait != nil && a.wait.signal == s.Name && m.g.nodes[a.node].id == s.Node && (s.Activation == "" || s.Activation == a.id)
}

func (m *model) signal(s engine.SignalReceived) {
	var first *modelAct
	for _, a := range m.acts() {
		if m.meant(a, s) && (first == nil || a.wait.made < first.wait.made) {
			first = a
		}
	}
	if first == nil {
		m.early = append(m.early, s)
		return
	}
	m.wake(first, false)
}

func (m *model) answer(f engine.AskAnswered, ask string) {
	var waiting []*modelAct
	for _, a := range m.acts() {
		if a.wait != nil && a.wait.ask == ask {
			waiting = append(waiting, a)
		}
	}
	for _, a := range waiting {
		unknown := a.wait.unknown
		if !unknown {
			m.wake(a, false)
			continue
		}
		a.wait = nil
		switch {
		case f.Outcome != engine.AskDone || f.Choice == engine.ChoiceStop:
			m.look(a.scope, m.fail(a, nil))
		case f.Choice == engine.ChoiceDone:
			a.effected = false
			a.cause = engine.CauseOutput
			m.dispatch(a)
		default:
			a.effected = false
			m.dispatch(a)
		}
	}
}

func (m *model) fire(t timerName) {
	switch t.purpose {
	case engine.TimerRetry:
		m.dispatch(m.find(t.about))
	case engine.TimerWait:
		m.wake(m.find(t.about), false)
	case engine.TimerDeadline:
		m.endFrame(m.find(t.about), "deadline")
	case engine.TimerExecution:
		m.endExecution("timeout", "")
	case engine.TimerJoin:
		for _, sc := range m.scopes() {
			for n := range sc.joins {
				if m.idOf(sc, n) == t.about {
					m.look(sc, m.ready(sc, n))
				}
			}
		}
	}
}

func (m *model) resume() {
	m.paused = false
	for _, a := range m.acts() {
		switch {
		case a.phase == "held":
			m.dispatch(a)
		case a.wait != nil && a.wait.unsent:
			a.wait.unsent = false
			if a.wait.detached {
				m.wake(a, true)
			}
		}
	}
	fired := m.deferred
	m.deferred = nil
	for _, t := range fired {
		if _, armed := m.timers()[t]; armed {
			m.fire(t)
		}
	}
}

func (m *model) recover() {
	for _, a := range m.acts() {
		switch {
		case a.phase != "running":
		case a.started:
			m.look(a.scope, m.unknown(a))
		case a.crashes >= engine.MaxRecoveries:
			m.look(a.scope, m.fail(a, nil))
		default:
			a.crashes++
		}
	}
}

func (m *model) cancel() {
	if !m.started {
		m.final = engine.StatusCanceled
		return
	}
	m.endExecution("cancel", "")
}

// renew makes the next generation of an activation.
func (m *model) renew(a *modelAct) {
	m.forget(a.id)
	a.gen++
	a.retries, a.crashes = 0, 0
	a.started, a.effected, a.canceling, a.byChild = false, false, false, false
	// a.opened = a.opened && a.frame != nil
	if a.cause != engine.CauseOutput {
		a.cause = engine.CauseRun
	}
}

// revive lets an execution that has ended go on for the sake of one activation; what was canceled with it goes on too.
func (m *model) revive(target *modelAct) {
	if m.final == "" {
		for o := target.scope.owner; o != nil; o = o.scope.owner {
			if o.phase == "failed" {
				o.phase = "scope"
			}
		}
		return
	}
	m.final, m.root.ending = "", ""
	m.limitTime()
	m.reviveScope(m.root, target)
}

func (m *model) reviveScope(sc *modelScope, target *modelAct) {
	sc.torn = false
	for _, a := range sc.sorted() {
		switch {
		case a == target:
		case a.frame != nil:
			m.reviveFrame(a, target)
		case a.phase == "parked":
			m.dispatch(a)
		case a.phase == "canceled":
			effected := a.effected
			m.renew(a)
			switch {
			case !effected || m.plan(a).OnUnknown == workflow.OnUnknownRetry:
				m.dispatch(a)
			case m.plan(a).OnUnknown == workflow.OnUnknownFail && !m.handles(a) && !m.lost(a):
				a.phase = "failed" // and stays so, until a person decides about it too
				m.ended[a.id] = engine.NodeFailure
				m.failures = append(m.failures, a.id)
			default:
				m.look(sc, m.unknown(a))
			}
		}
	}
}

func (m *model) reviveFrame(o *modelAct, target *modelAct) {
	f := o.frame
	o.phase = "scope"
	if f.ending != "" {
		return // it was ending by itself already, and settle sees to that
	}
	for _, sc := range f.sorted() {
		if sc.ending == "" {
			m.reviveScope(sc, target)
		}
	}
	if f.closing {
		m.dispatch(o)
	} else {
		m.advance(o)
	}
}
