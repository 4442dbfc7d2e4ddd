package engine_test

import (
	"slices"

	"tandem/engine"
	"tandem/fault"
	"tandem/workflow"
)

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
		a := m.find(f.Activation)
		a.started, a.inquires = true, f.Inquires
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
		o.phase, o.crashes, o.blamed = "scope", 0, 0
		m.advance(o)
	case engine.ScopeAdvanced:
		o := m.find(f.Activation)
		o.frame.turning = false
		o.phase, o.crashes, o.blamed = "scope", 0, 0
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
			m.wake(a, f.Status != engine.StatusSuccess)
		}
	case engine.ExecutionPaused:
		m.paused = true
	case engine.ExecutionResumed:
		m.resume()
	case engine.NodeNotBegun:
		if a := m.find(f.Activation); a.scope.torn {
			a.started = false
			m.cancelled(a)
		} else {
			a.started = false
		}
	case engine.ExecutionRecovered:
		m.recover(f)
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
			a.byChild = false
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
				m.wake(a, false)
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

func (m *model) recover(f engine.ExecutionRecovered) {
	if f.RunsGoOn {
		return
	}
	for _, a := range m.acts() {
		begun := !f.Known || slices.Contains(f.Begun, a.id)
		switch {
		case a.phase != "running":
		case len(f.Lost) > 0 && !slices.ContainsFunc(f.Lost, func(at engine.Attempt) bool { return at.Activation == a.id }):
		case a.started:
			m.look(a.scope, m.unknown(a))
		case !f.Known && a.crashes >= engine.MaxRecoveries && a.cause == engine.CauseInquire:
			a.cause = engine.CauseRun
			m.look(a.scope, m.undecided(a))
		case !f.Known && a.crashes >= engine.MaxRecoveries:
			m.look(a.scope, m.fail(a, nil))
		case !begun:
			m.dispatch(a)
		default:
			if !f.Tried {
				a.crashes++
			}
			if f.Alone {
				a.blamed++
			}
			if f.Known && a.blamed >= engine.MaxBlamed && a.cause == engine.CauseInquire {
				a.cause = engine.CauseRun
				m.look(a.scope, m.undecided(a))
				continue
			}
			if f.Known && a.blamed >= engine.MaxBlamed {
				m.look(a.scope, m.fail(a, nil))
				continue
			}
			body := a.cause == engine.CauseTurn || a.cause == engine.CauseClose
			if !f.Known || f.Tried || a.crashes < 7 || body || m.paused || a.scope.torn {
				m.dispatch(a)
				continue
			}
			pause := min(1000<<(a.crashes-7), 60_000)
			a.phase, a.retryFrom, a.retryTo = "retrying", m.now+int64(pause)*8/10, m.now+int64(pause)*12/10
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
	a.retries, a.crashes, a.blamed, a.inquires = 0, 0, 0, false
	a.started, a.effected, a.canceling, a.byChild = false, false, false, false
	a.opened = false
	if a.cause != engine.CauseOutput {
		a.cause = engine.CauseRun
	}
}

// revive lets an execution that has ended go on for the sake of one activation; what was canceled with it goes on too.
func (m *model) revive(target *modelAct) {
	if m.final == "" {
		m.unstick(target)
		return
	}
	m.final, m.root.ending = "", ""
	m.limitTime()
	m.reviveScope(m.root, target)
}

// unstick reopens the scope nodes around an activation that stayed behind with a failure.
func (m *model) unstick(a *modelAct) {
	for o := a.scope.owner; o != nil; o = o.scope.owner {
		if o.phase == "failed" {
			o.phase = "scope"
		}
	}
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
			effected, cause := a.effected, a.cause
			m.renew(a)
			switch {
			case cause == engine.CauseError: // it had failed for good; only its connections are to be settled
				a.cause, a.effected = cause, effected
				m.dispatch(a)
			case !effected || cause == engine.CauseOutput || m.plan(a).OnUnknown == workflow.OnUnknownRetry:
				a.effected = effected
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
