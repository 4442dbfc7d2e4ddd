package engine_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"pgregory.net/rapid"

	"tandem/engine"
	"tandem/fault"
	"tandem/workflow"
)

// chance plays runtime, people, clock and operator at random.
type chance struct {
	*host
	r         *rapid.T
	oldTimers []engine.TimerID
	oldAsks   []engine.AskID
	// calm leaves out what ends executions from outside and what crashes them.
	calm bool
}

func newChance(r *rapid.T, checked bool) *chance {
	d := &chance{host: newHost(r, drawOutline(r)), r: r}
	if checked {
		d.model = newModel(d.g)
	}
	d.start()
	return d
}

func (d *chance) odds(name string, n int) bool { return rapid.IntRange(0, n-1).Draw(d.r, name) == n-1 }

// pick chooses one of a map's keys.
func pick[K cmp.Ordered, V any](d *chance, name string, m map[K]V) K {
	return rapid.SampledFrom(slices.Sorted(maps.Keys(m))).Draw(d.r, name)
}

// step does one thing that can be done now. It says whether the execution can go on.
func (d *chance) step() bool {
	d.now += int64(rapid.IntRange(0, 300).Draw(d.r, "ms"))
	d.together = d.odds("together", 5)
	if d.finish != nil {
		return d.afterEnd()
	}
	type action struct {
		weight int
		do     func()
	}
	var actions []action
	add := func(weight int, enabled bool, do func()) {
		if enabled {
			actions = append(actions, action{weight, do})
		}
	}
	ending := d.model != nil && d.model.root.ending != ""
	paused := d.state.Status() == engine.StatusPaused
	add(60, len(d.running) > 0, d.outcome)
	add(10, len(d.timers) > 0, d.fireTimer)
	add(12, len(d.asks) > 0, d.answerAsk)
	add(10, len(d.children) > 0, d.finishChild)
	add(3, true, d.signal)
	add(3, true, d.bogus)
	add(20, paused, func() { d.do(engine.ExecutionResumed{}) })
	if !d.calm {
		add(2, !paused && !ending, func() { d.do(engine.ExecutionPaused{}) })
		add(3, true, func() { d.do(engine.ExecutionRecovered{}) })
		add(8, true, d.recover)
		add(1, d.model != nil && d.model.root.ending != "cancel", func() { d.do(engine.CancelRequested{}) })
		add(2, d.model != nil, d.operate)
	}
	total := 0
	for _, a := range actions {
		total += a.weight
	}
	at := rapid.IntRange(0, total-1).Draw(d.r, "action")
	for _, a := range actions {
		if at -= a.weight; at < 0 {
			a.do()
			break
		}
	}
	return true
}

// outcome reports something about a run.
func (d *chance) outcome() {
	c := d.running[pick(d, "run", d.running)]
	plan := &d.graph.Nodes[c.Node].Plan
	scope := d.g.nodes[c.Node].scope
	if plan.Effect == workflow.Once && c.Cause.Kind == engine.CauseRun && !d.started[c.Activation] && !d.odds("not taken", 4) {
		d.do(engine.NodeStarted{Attempt: c.Attempt, Inquires: d.odds("inquires", 2)})
		return
	}
	switch rapid.SampledFrom([]string{"go on", "go on", "go on", "go on", "go on", "go on", "fail", "fail", "wait", "time out"}).Draw(d.r, "outcome") {
	case "go on":
		switch {
		case c.Cause.Kind == engine.CauseTurn:
			d.do(engine.ScopeAdvanced{Attempt: c.Attempt, Open: c.Cause.Index < 5 && !d.odds("break", 4), Entry: d.verdicts(c.Node, true, nil)})
		case c.Cause.Kind == engine.CauseRun && scope != "" && !d.odds("no body", 10):
			d.openScope(c)
		default:
			d.do(d.completion(c))
		}
	case "fail":
		d.failRun(c)
	case "wait":
		if c.Cause.Kind != engine.CauseInquire {
			d.suspend(c)
		}
	case "time out":
		d.do(engine.AttemptTimedOut{Attempt: c.Attempt})
	}
}

func (d *chance) completion(c engine.RunNode) engine.NodeCompleted {
	f := engine.NodeCompleted{Attempt: c.Attempt}
	f.Outputs = d.outputs(c.Node)
	f.Settled = d.verdicts(c.Node, false, f.Outputs)
	return f
}

func (d *chance) outputs(n int) []engine.Output {
	var outputs []engine.Output
	for i, key := range d.g.keysOf(n) {
		if rapid.IntRange(0, 3).Draw(d.r, "key") > min(i, 2) {
			outputs = append(outputs, engine.Output{Key: key, Ref: engine.Ref(fmt.Sprintf("%s@%d", key, len(d.journal)))})
		}
	}
	return outputs
}

// verdicts are those of a node's converting connections.
func (d *chance) verdicts(n int, entry bool, outputs []engine.Output) []engine.Verdict {
	var list []engine.Verdict
	for i, e := range d.g.edges {
		produced := entry || slices.ContainsFunc(outputs, func(o engine.Output) bool { return o.Key == e.key })
		if e.from != n || !e.converts || e.entry != entry || !produced {
			continue
		}
		v := engine.Verdict{Edge: i}
		switch rapid.IntRange(0, 3).Draw(d.r, "verdict") {
		case 0, 1:
			v.Live, v.Ref = true, "converted"
		case 2:
			v.Error = fault.New(fault.ConversionFailed, "line 1")
		}
		list = append(list, v)
	}
	return list
}

func (d *chance) openScope(c engine.RunNode) {
	f := engine.ScopeOpened{
		Attempt: c.Attempt, Count: int64(rapid.IntRange(-1, 3).Draw(d.r, "count")),
		Concurrency: int64(rapid.IntRange(0, 3).Draw(d.r, "concurrency")),
		KeepGoing:   d.odds("keep going", 3), Turns: d.odds("turns", 3), Entry: d.verdicts(c.Node, true, nil),
	}
	f.Turns = f.Turns || f.Count < 0
	if d.odds("deadline", 3) {
		f.Until = d.now + 10_000
	}
	if d.finish == nil {
		d.do(f)
	}
}

func (d *chance) failRun(c engine.RunNode) {
	f := engine.NodeFailed{Attempt: c.Attempt, Error: fault.New(rapid.SampledFrom([]fault.Code{fault.RemoteRejected, fault.NetworkError}).Draw(d.r, "code"), "it went wrong")}
	f.Unknown = d.started[c.Activation] && d.odds("unknown", 2)
	f.NotDone = c.Cause.Kind == engine.CauseInquire && d.odds("not done", 2)
	if d.odds("service's wish", 4) {
		f.RetryAfterMS = 7_200_000
	}
	if onError := d.g.nodes[c.Node].plan.OnError; onError != "" && !f.Unknown && c.Cause.Kind != engine.CauseError && c.Cause.Kind != engine.CauseInquire && d.odds("handled", 2) {
		key := workflow.ErrorKey
		if onError == workflow.OnErrorDefault {
			key = workflow.DefaultKey
		}
		f.Handled = true
		f.Outputs = []engine.Output{{Key: key, Ref: "handled"}}
		f.Settled = d.verdicts(c.Node, false, f.Outputs)
	}
	if d.finish == nil {
		d.do(f)
	}
}

func (d *chance) suspend(c engine.RunNode) {
	f := engine.NodeSuspended{Attempt: c.Attempt, Memo: "memo"}
	if d.odds("until", 2) {
		f.Until = d.now + 2_000
	}
	if d.odds("signal", 3) {
		f.Signal = rapid.SampledFrom([]string{"go", "stop"}).Draw(d.r, "signal name")
	}
	switch rapid.IntRange(0, 5).Draw(d.r, "wait for") {
	case 0:
		f.Ask = &engine.Question{Purpose: "approval"}
	case 1:
		f.Ask = &engine.Question{Purpose: sharedPurpose, Key: sharedKey}
	case 2:
		f.Child = &engine.Child{Workflow: "other"}
	case 3:
		f.Child = &engine.Child{Workflow: "other", Detached: true}
	}
	if f.Until == 0 && f.Signal == "" && f.Ask == nil && f.Child == nil {
		f.Until = d.now + 2_000
	}
	if d.finish == nil {
		d.do(f)
	}
}

func (d *chance) fireTimer() {
	id := pick(d, "timer", d.timers)
	d.now = max(d.now, d.timers[id].Until)
	d.oldTimers = append(d.oldTimers, id)
	d.do(engine.TimerFired{Timer: id})
}

func (d *chance) answerAsk() {
	id := pick(d, "question", d.asks)
	f := engine.AskAnswered{Ask: id, Outcome: engine.AskDone, Ref: "answer"}
	if d.asks[id].Purpose == engine.PurposeOutcomeUnknown {
		f.Choice = rapid.SampledFrom([]string{engine.ChoiceDone, engine.ChoiceNotDone, engine.ChoiceStop}).Draw(d.r, "choice")
	}
	if d.odds("nobody answers", 6) {
		f.Outcome = rapid.SampledFrom([]engine.AskOutcome{engine.AskTimeout, engine.AskCanceled}).Draw(d.r, "end of question")
	}
	d.oldAsks = append(d.oldAsks, id)
	if d.finish == nil {
		d.do(f)
	}
}

func (d *chance) finishChild() {
	f := engine.ChildFinished{Child: pick(d, "child", d.children), Status: engine.StatusSuccess, Ref: "child"}
	if d.odds("child fails", 3) {
		f.Status, f.Error = engine.StatusError, fault.New(fault.NetworkError, "the child failed")
	}
	d.endChild(f)
}

// endChild reports the end of a child, which is refused when it was told to cancel and nobody waits for it any more.
func (h *host) endChild(f engine.ChildFinished) {
	if !h.awaited(f.Child) {
		h.refuse(f)
		delete(h.children, f.Child)
		delete(h.leaving, f.Child)
		return
	}
	h.do(f)
}

func (d *chance) signal() {
	node := rapid.SampledFrom(d.g.nodes).Draw(d.r, "node")
	f := engine.SignalReceived{Node: node.id, Name: rapid.SampledFrom([]string{"go", "stop"}).Draw(d.r, "name"), Ref: "signal"}
	if acts := d.state.Activations(); len(acts) > 0 && d.odds("to one activation", 3) {
		a := rapid.SampledFrom(acts).Draw(d.r, "activation")
		f.Node, f.Activation = d.g.nodes[a.Node].id, a.ID
	}
	if d.finish == nil {
		d.do(f)
	}
}

// operate retries or skips an activation while the execution runs.
func (d *chance) operate() {
	m := d.model
	for _, a := range m.acts() {
		if m.root.ending != "" || a.frame != nil || !d.odds("this", 3) {
			continue
		}
		at := engine.NodeRetried{Activation: a.id}
		retryable := a.phase == "failed" || a.wait != nil && a.wait.unknown
		switch {
		case a.scope.torn || a.canceling || !retryable && d.odds("retry anyway", 2):
			d.refuse(at)
		case d.odds("skip", 2) && !(a.phase == "running" && a.started):
			d.skip(a)
		case retryable:
			d.do(at)
		}
		return
	}
}

func (d *chance) skip(a *modelAct) {
	f := engine.NodeSkipped{Activation: a.id, HasOutput: d.odds("output", 2)}
	if f.HasOutput {
		f.Output = "given"
	}
	if d.finish == nil {
		d.do(f)
	}
}

// afterEnd lets an operator take an execution that has ended up again, now and then.
func (d *chance) afterEnd() bool {
	var ids []*modelAct
	if d.model != nil {
		for _, a := range d.model.acts() {
			switch {
			case a.frame != nil || !a.revivable():
				d.refuse(engine.NodeRetried{Activation: a.id})
				d.refuse(engine.NodeSkipped{Activation: a.id})
			case a.phase == "failed" || a.phase == "canceled":
				ids = append(ids, a)
			}
		}
	}
	d.refuse(engine.ExecutionPaused{})
	d.refuse(engine.ExecutionRecovered{})
	d.bogus()
	if len(ids) == 0 || d.odds("leave it", 6) {
		return false
	}
	a := rapid.SampledFrom(ids).Draw(d.r, "revived")
	if d.final() == engine.StatusCanceled || d.final() == engine.StatusSuccess {
		d.refuse(engine.NodeRetried{Activation: a.id})
		d.refuse(engine.NodeSkipped{Activation: a.id})
		return false
	}
	if d.odds("skip", 3) {
		d.skip(a)
	} else {
		d.do(engine.NodeRetried{Activation: a.id})
	}
	return true
}

// revivable says that no scope around an activation was ending by itself.
func (a *modelAct) revivable() bool {
	for sc := a.scope; sc.owner != nil; sc = sc.owner.scope {
		if sc.ending != "" || sc.owner.frame.ending != "" {
			return false
		}
	}
	return true
}

func (d *chance) final() engine.Status { return d.state.Status() }

// bogus reports what cannot be: it must be refused and change nothing.
func (d *chance) bogus() {
	facts := []engine.Fact{
		engine.ExecutionStarted{}, engine.ExecutionCreated{Semantics: engine.Semantics, Execution: "exec", Revision: d.graph.Hash},
		engine.TimerFired{Timer: "nothing#wait.1"}, engine.AskAnswered{Ask: "nothing#ask.1"}, engine.ChildFinished{Child: "nobody", Status: engine.StatusSuccess},
	}
	for _, at := range d.past[max(0, len(d.past)-12):] {
		if d.running[at.Activation].Attempt != at {
			facts = append(facts, engine.NodeCompleted{Attempt: at}, engine.NodeStarted{Attempt: at},
				engine.NodeFailed{Attempt: at, Error: fault.New(fault.NetworkError, "late")}, engine.AttemptTimedOut{Attempt: at})
		}
	}
	for _, id := range d.oldTimers {
		if _, armed := d.timers[id]; !armed {
			facts = append(facts, engine.TimerFired{Timer: id})
		}
	}
	for _, id := range d.oldAsks {
		if _, open := d.asks[id]; !open {
			facts = append(facts, engine.AskAnswered{Ask: id, Outcome: engine.AskDone, Choice: engine.ChoiceDone})
		}
	}
	for id := range d.started {
		if r, ok := d.running[id]; ok {
			facts = append(facts, engine.NodeStarted{Attempt: r.Attempt}, engine.NodeRetried{Activation: id}, engine.NodeSkipped{Activation: id})
		}
	}
	if d.state.Status() != engine.StatusPaused {
		facts = append(facts, engine.ExecutionResumed{})
	} else {
		facts = append(facts, engine.ExecutionPaused{})
	}
	slices.SortStableFunc(facts, func(a, b engine.Fact) int { return cmp.Compare(fmt.Sprintf("%T%+v", a, a), fmt.Sprintf("%T%+v", b, b)) })
	d.refuse(rapid.SampledFrom(facts).Draw(d.r, "bogus"))
}

// recover lets a process die in some of the runs, or stop in order, and another take over.
func (d *chance) recover() {
	f := engine.ExecutionRecovered{Known: true, Alone: rapid.Bool().Draw(d.r, "alone"), Tried: rapid.IntRange(0, 3).Draw(d.r, "tried") == 0}
	for _, id := range slices.Sorted(maps.Keys(d.running)) {
		if d.finish != nil {
			return // it was the last
		}
		if d.started[id] && d.odds("its turn had not come", 4) {
			d.do(engine.NodeNotBegun{Attempt: d.running[id].Attempt})
			continue
		}
		if rapid.IntRange(0, 3).Draw(d.r, "begun") > 0 {
			f.Begun = append(f.Begun, id)
		}
	}
	if d.finish != nil {
		return
	}
	if d.odds("only some are lost", 3) { // with one of several processes
		for _, id := range slices.Sorted(maps.Keys(d.running)) {
			if a, ok := d.state.Activation(id); ok && a.Status == engine.NodeRunning && rapid.Bool().Draw(d.r, "lost") {
				f.Lost = append(f.Lost, d.running[id].Attempt)
			}
		}
	}
	d.do(f)
}
