package local

import (
	"encoding/json"
	"fmt"
	"slices"

	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/node"
	"tandem/store"
)

// dealing is a row under way: what has come in for an execution becomes facts of one turn, and what goes with the row is gathered.
type dealing struct {
	*owner
	turn     *host.Turn
	commands []engine.Command
	// inbox are the items that the row takes, logs the lines that nodes wrote, settled what was spent.
	inbox   []int64
	logs    []store.LogLine
	settled []node.Settlement
	// answers are requests that are answered when the row is on disk, afters outcomes that have something to do then.
	answers []request
	afters  []outcome
	// late are outcomes that counted no longer.
	late []outcome
}

// deal makes one row of what has come in, appends it, and acts on it.
func (o *owner) deal(list []message) (err error) {
	// Somebody is told what became of a request, so it must not rest on rows that are not on disk.
	if len(o.held) > 0 && slices.ContainsFunc(list, func(m message) bool { _, asks := m.(request); return asks }) {
		if err := o.flush(o.host.ctx); err != nil {
			refuse(list, err)
			return err
		}
	}
	d := dealing{owner: o, turn: o.fold.Begin(o.now())}
	defer func() {
		for _, r := range d.answers {
			r.answer(o.status, err)
		}
		if err == nil || o.next == nil { // else all of it is done again, on a journal in which they may count
			for _, m := range d.late {
				o.settleLate(m.result.Settle)
				o.flushLate(m.said)
			}
		}
		if err != nil {
			refuse(list, err) // those that were not come to
		} else {
			dealtWith(list)
		}
	}()
	d.turn.Expect(len(list))
	for _, m := range list {
		if err := d.message(m); err != nil {
			return err
		}
	}
	if len(d.turn.Row().Facts) == 0 {
		return nil
	}
	return d.write()
}

// write appends the row and acts on it. One that nobody is told of may be held back, to be written with those that follow.
func (d *dealing) write() error {
	o, r := d.owner, row{turn: d.turn, commands: d.commands, inbox: d.inbox, logs: d.logs, settled: d.settled}
	for _, a := range d.answers {
		r.entries = append(r.entries, a.entries...)
	}
	if len(d.answers) == 0 && len(d.afters) == 0 && len(d.settled) == 0 && o.goesAhead(r) {
		if err := o.hold(o.host.ctx, r); err != nil {
			return err
		}
		o.carryOut(d.commands)
		return nil
	}
	commands, err := o.commit(o.host.ctx, r)
	if err != nil {
		return err
	}
	if o.starting {
		o.left = todo{commands, d.afters}
		return nil
	}
	o.goOn(todo{commands, d.afters})
	return nil
}

// message makes facts of one message.
func (d *dealing) message(m message) (err error) {
	switch m := m.(type) {
	case wanted: // the line waits for what was recovered, if anything
		if d.recovered == nil {
			d.recovered = map[engine.Attempt]bool{}
		}
	case timerDue:
		err = d.timerDue(m)
	case overtime:
		if a, ok := d.attempts[m.attempt.Activation]; ok && a.run == m.run {
			_, err = d.addFact(engine.AttemptTimedOut{Attempt: m.attempt})
		}
	case outcome:
		err = d.outcome(m)
	case *outcome: // of a brief run
		err = d.outcome(*m)
	case delivered:
		err = d.readInbox()
	case unheard:
		_, err = d.addFact(engine.ExecutionRecovered{Known: true, RunsGoOn: true})
	case withheld:
		err = d.withheld(m)
	case admitted:
		err = d.admitted()
	case lostRun:
		err = d.lost(m)
	case begins:
		err = d.begins(m)
	case request:
		err = d.request(m)
	}
	return err
}

// addFact applies a fact. What comes too late (an outcome, an action, a timer that was removed) is refused; a defect is an error.
func (d *dealing) addFact(fact engine.Fact) (refused *fault.Error, err error) {
	more, err := d.turn.Add(fact)
	if err != nil {
		switch fault.CodeOf(err) {
		case fault.Conflict, fault.NotFound, fault.Invalid:
			d.host.opts.Log.Debug("fact refused", "execution", d.ref.Execution, "fact", fmt.Sprintf("%T", fact), "error", err)
			return fault.From(err), nil
		}
		return nil, err
	}
	if d.commands == nil {
		d.commands = more // they are the caller's
	} else {
		d.commands = append(d.commands, more...)
	}
	return nil, nil
}

// timerDue deals with a timer of the engine, of the error workflow, or of a child that is to be started again.
func (d *dealing) timerDue(m timerDue) error {
	if m.id == errorTimer {
		d.startErrorWorkflow()
		return nil
	}
	if child, ok := reminded(m.id); ok {
		return d.startAgain(child)
	}
	refused, err := d.addFact(engine.TimerFired{Timer: m.id})
	if refused != nil {
		d.stale = append(d.stale, string(m.id))
	}
	return err
}

// outcome deals with how a run has ended. What it brings along is kept only if the engine takes it.
func (d *dealing) outcome(m outcome) error {
	d.forgetAttempt(m.attempt)
	kept := len(d.turn.Row().Values)
	values, put := d.putting(d.turn)
	fact := m.result.Fact(put)
	if failed, wrong := values.failure(m.attempt, fact); wrong {
		d.turn.Row().Cut(kept)
		fact = failed
	}
	refused, err := d.addFact(fact)
	if err != nil {
		return err
	}
	if refused != nil {
		d.turn.Row().Cut(kept) // nobody refers to them
		d.late = append(d.late, m)
		return nil
	}
	d.logs, d.settled = d.noteSaid(d.turn, m.said, m.result.Warnings, d.logs), append(d.settled, m.result.Settle...)
	if d.host.debug {
		d.logs = append(d.resolved(m), d.logs...)
	}
	if m.result.After != nil {
		d.afters = append(d.afters, m)
	}
	return nil
}

// forgetAttempt stops waiting for an attempt, whose run has ended or was not let begin.
func (d *dealing) forgetAttempt(attempt engine.Attempt) {
	if a, ok := d.attempts[attempt.Activation]; ok && a.id == attempt {
		a.cancel()
		delete(d.attempts, attempt.Activation)
	}
	delete(d.recovered, attempt)
}

// withheld deals with a run that was not let begin although its row says so.
func (d *dealing) withheld(m withheld) error {
	d.forgetAttempt(m.attempt)
	if a, ok := d.fold.State().Activation(m.attempt.Activation); ok && a.Started {
		_, err := d.addFact(engine.NodeNotBegun{Attempt: m.attempt})
		return err
	}
	return nil
}

// admitted begins an execution whose turn it is, and reads what came for it while it waited.
func (d *dealing) admitted() error {
	refused, err := d.addFact(engine.ExecutionStarted{})
	if err != nil {
		return err
	}
	if refused != nil {
		d.host.admission.Moved(d.ref, d.claim, d.status) // it was canceled while it waited
		d.host.admitNext()
		return nil
	}
	return d.readInbox()
}

// request deals with what somebody waits for. One that is refused is answered at once, any other when its row is on disk.
func (d *dealing) request(m request) error {
	if m.Action == host.ActionLook {
		err := d.readInbox()
		d.answers = append(d.answers, m)
		return err
	}
	kept := len(d.turn.Row().Values)
	refused, err := d.addRequested(m.Request)
	if refused != nil {
		d.turn.Row().Cut(kept)
		m.answer(d.status, refused)
		return err
	}
	d.answers = append(d.answers, m)
	return err
}

// addRequested applies what somebody wants of the execution.
func (d *dealing) addRequested(r host.Request) (refused *fault.Error, err error) {
	fact, err := d.requested(d.turn, r)
	if err != nil {
		return fault.From(err), nil
	}
	return d.addFact(fact)
}

// readInbox makes facts of what others have left for the execution: requests, signals, what its children and its parent tell it.
func (d *dealing) readInbox() error {
	o := d.owner
	var items []store.InboxItem
	err := o.host.patiently(o.host.ctx, func() (err error) {
		items, err = o.host.opts.Inbox.Pending(o.host.ctx, o.principal(), o.ref.Execution)
		return err
	})
	if err != nil {
		return err
	}
	for _, item := range items {
		if slices.Contains(d.inbox, item.ID) {
			continue // two messages told of it
		}
		if host.Action(item.Kind) == host.ActionSignal && o.fold.State().Status() == engine.StatusPending {
			continue // it is early, and stays where it is until the execution begins
		}
		var body host.Request
		var refused *fault.Error
		if err := json.Unmarshal(item.Body, &body); err != nil {
			refused = fault.Newf(fault.Invalid, "inbox item %d cannot be read: %w", item.ID, err)
		} else {
			body.Action = host.Action(item.Kind)
			if refused, err = d.addRequested(body); err != nil {
				return err
			}
		}
		if refused != nil {
			if _, err := d.addFact(engine.RequestRefused{Request: item.Kind, Error: refused}); err != nil {
				return err
			}
		}
		d.inbox = append(d.inbox, item.ID)
	}
	return nil
}
