package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/node"
	"tandem/payload"
	"tandem/shortage"
	"tandem/store"
)

// row is a row to be committed, with what goes with it.
type row struct {
	turn     *host.Turn
	commands []engine.Command
	inbox    []int64
	logs     []store.LogLine
	settled  []node.Settlement
	create   *store.Execution
	key      *store.IdempotencyKey
	arrival  *store.Arrival
	below    *store.Below
	// entries are what the audit log says about it.
	entries []*store.PendingEntry
}

// commit appends a row with everything that goes with it, after those that are held.
func (o *owner) commit(ctx context.Context, r row) ([]engine.Command, error) {
	h, err := o.prepare(ctx, r)
	if err != nil {
		return nil, err
	}
	return h.commands, o.flush(ctx, h)
}

// prepare makes a row ready to be appended, with everything that must be on disk together with it.
func (o *owner) prepare(ctx context.Context, r row) (held, error) {
	turn, commands, create := r.turn, r.commands, r.create
	if err := o.recordBegun(turn, commands); err != nil {
		return held{}, err
	}
	o.noteSent(turn.Row(), commands)
	turn.Complete(commands)
	row := turn.Row()
	turn.Show()
	body, err := o.encode(ctx, turn)
	if err != nil {
		return held{}, err
	}
	a := &store.Append{
		Execution: o.ref.Execution, After: row.Seq - 1, Time: row.Time, Body: body, TakeInbox: r.inbox,
		Logs: slices.Concat(r.logs, o.traces(row), o.failures(row)), Create: create, Key: r.key, Arrival: r.arrival,
		Below: r.below, CancelTree: o.next != nil &&
			slices.ContainsFunc(row.Facts, func(f engine.Fact) bool { _, ok := f.(engine.CancelRequested); return ok }),
	}
	for _, s := range r.settled {
		a.SettleLedger = append(a.SettleLedger, store.Settlement{ID: s.ID, Tokens: s.Tokens, Cost: s.Cost})
	}
	if err := o.setTimers(a, row, commands); err != nil {
		return held{}, err
	}
	if err := o.people(a, row, commands); err != nil {
		return held{}, host.Unreadable(err, "%w")
	}
	o.clearTimers(a, row)
	status := o.fold.State().Status()
	if status != o.status && create == nil {
		a.Change = o.changed(status, row.Time)
	}
	if fails(commands) && o.errorWorkflow() != "" {
		a.SetTimers = append(a.SetTimers, o.timer(string(errorTimer), reminderTime))
	}
	awaits := o.fold.State().AwaitsPeople()
	if o.parent != "" {
		if err := o.deliverToParent(a, row, commands, status, awaits); err != nil {
			return held{}, host.Unreadable(err, "%w")
		}
	}
	if create != nil {
		create.Status = status
	}
	o.tailRows, o.tailBytes = o.tailRows+1, o.tailBytes+len(body)+row.Spilled()
	if o.snapshotDue(commands) {
		snap, err := o.fold.Snapshot()
		if err != nil {
			return held{}, host.Unreadable(err, "snapshot of execution %q: %w", o.ref.Execution)
		}
		a.Snapshot = &store.Snapshot{Seq: row.Seq, Body: snap}
		o.tailRows, o.tailBytes, o.snapshot = 0, 0, len(snap)
	}
	o.stale = slices.DeleteFunc(o.stale, func(id string) bool { // one that is set again is waited for
		return slices.ContainsFunc(a.SetTimers, func(t store.Timer) bool { return t.ID == id })
	})
	h := held{append: a, entries: r.entries, row: *row, commands: commands, status: status, moved: status != o.status,
		ended: o.status.Final()}
	o.status, o.awaits, o.startedChildren = status, awaits, nil
	return h, nil
}

// recordBegun records once attempts as begun in the row that dispatches them, since nothing comes between the two.
func (o *owner) recordBegun(turn *host.Turn, commands []engine.Command) error {
	for _, c := range commands {
		run, ok := c.(engine.RunNode)
		if !ok || o.rests() || o.next != nil || !o.notesBegun(run) {
			continue
		}
		if a, open := o.fold.State().Activation(run.Activation); open && a.Attempt == run.Attempt.Attempt &&
			a.Generation == run.Generation {
			owner, _, _ := host.Owner(o.revision.Graph, run.Activation)
			if _, err := turn.Add(engine.NodeStarted{Attempt: run.Attempt, Inquires: o.revision.Inquires(run, owner)}); err != nil &&
				fault.CodeOf(err) != fault.Conflict {
				return err
			}
		}
	}
	return nil
}

// encode makes the body of a row, after its large values are kept beside the journal. Nothing is written that cannot be read again.
func (o *owner) encode(ctx context.Context, turn *host.Turn) ([]byte, error) {
	row := turn.Row()
	if err := row.SpillBeside(o.keepShared(ctx)); err != nil {
		return nil, err
	}
	if err := row.Spill(o.keepLarge(ctx)); err != nil {
		return nil, err
	}
	body, err := row.Encode()
	if err == nil && !turn.Vouched() {
		err = payload.Check(body, payload.Limits{MaxDepth: maxRowDepth, MaxNumber: len(body)})
	}
	if err != nil {
		return nil, host.Unreadable(err, "row %d of execution %q cannot be kept: %w", row.Seq, o.ref.Execution)
	}
	return body, nil
}

// timer is a timer of this execution.
func (o *owner) timer(id string, until int64) store.Timer {
	return store.Timer{Workspace: o.ref.Workspace, Execution: o.ref.Execution, ID: id, Until: until}
}

// setTimers adds the timers that commands want or want no longer, reminders of children that are to be started, and what children are told.
func (o *owner) setTimers(a *store.Append, row *host.Row, commands []engine.Command) error {
	for _, c := range commands {
		switch c := c.(type) {
		case engine.Sleep:
			a.SetTimers = append(a.SetTimers, o.timer(string(c.Timer), c.Until))
		case engine.CancelTimer:
			a.ClearTimers = append(a.ClearTimers, string(c.Timer))
			a.SetTimers = slices.DeleteFunc(a.SetTimers, func(t store.Timer) bool { return t.ID == string(c.Timer) })
		case engine.TellChild:
			body, err := json.Marshal(host.Request{By: "parent"})
			if err != nil {
				return err
			}
			a.Deliver = append(a.Deliver, store.InboxItem{
				Execution: c.Child, Kind: string(childAction(c.Action)), Dedup: fmt.Sprintf("parent:%d:%s", row.Seq, c.Action), Time: row.Time,
				Body: body,
			})
		case engine.StartChild:
			a.SetTimers = append(a.SetTimers, o.timer(string(reminder(c.Child)), reminderTime))
		}
	}
	return nil
}

// clearTimers adds the timers that are over with the facts of a row, and the reminders of children that were started.
func (o *owner) clearTimers(a *store.Append, row *host.Row) {
	for _, f := range row.Facts {
		switch f := f.(type) {
		case engine.TimerFired:
			a.ClearTimers = append(a.ClearTimers, string(f.Timer))
		case engine.ChildFinished:
			a.ClearTimers = append(a.ClearTimers, string(reminder(f.Child)))
		}
	}
	for _, child := range o.startedChildren {
		a.ClearTimers = append(a.ClearTimers, string(reminder(child)))
	}
}

// changed is what lists of executions show from now on.
func (o *owner) changed(status engine.Status, now int64) *store.Change {
	view := o.fold.View()
	change := &store.Change{Status: status, Started: view.Started, Credits: view.Credits}
	if status.Final() {
		change.Ended, change.DurationMS = now, view.DurationMS(now)
		if view.Error != nil {
			change.Error, change.ErrorCode = view.Error.Message, string(view.Error.Code)
			if view.ErrorNode != "" {
				change.ErrorNode = host.NodeOf(o.revision.Graph, view.ErrorNode)
			}
		}
	}
	return change
}

// deliverToParent adds what the parent of the execution is told: that it has ended, or that it waits for people or does so no longer.
func (o *owner) deliverToParent(a *store.Append, row *host.Row, commands []engine.Command, status engine.Status, awaits bool) error {
	for _, c := range commands {
		if end, ok := c.(engine.Finish); ok {
			item, err := o.tellParent(end, row)
			if err != nil {
				return err
			}
			a.Deliver = append(a.Deliver, item)
		}
	}
	if status.Final() || awaits == o.awaits {
		return nil
	}
	item, err := o.tellParentWaits(awaits, row, a.Ask)
	if err != nil {
		return err
	}
	a.Deliver = append(a.Deliver, item)
	return nil
}

// maxRowDepth is how deep the body of a row may nest: a value stands in a few levels of it.
const maxRowDepth = maxWrapped + 100

// untilRoom does a write. A start that finds the disk full, the database away or no file to be opened, is refused; what comes of work that
// is under way is kept and tried again until there is room. With a carrier it waits only a while for a database that is away
// ([Host.waitsFor]): meanwhile nothing else of the execution can be recorded.
func (o *owner) untilRoom(ctx context.Context, start bool, write func() error) error {
	began := time.Now()
	for {
		err := write()
		if !passes(err) || start || errors.Is(err, store.ErrUnavailable) && !o.host.waitsFor(err, began) {
			return err
		}
		o.host.opts.Log.Error("nothing can be written now; an outcome waits", "execution", o.ref.Execution, "error", err)
		select {
		case <-time.After(fullDiskPause):
		case <-ctx.Done():
			return err
		}
	}
}

// passes says that a write or a read failed for something that passes: there is no room, no database or no file to be opened now.
func passes(err error) bool { return store.Waits(err) || shortage.Is(err) }

// fullDiskPause is how long an owner waits before it looks for room again.
const fullDiskPause = 500 * time.Millisecond

// reminder is the durable timer that stands for a child that is yet to be started. It is not set in this process, which starts the child
// right after the append; the next process starts it before anything else ([Host.setTimer]). Timers of the engine have a "#".
func reminder(child string) engine.TimerID { return engine.TimerID("child:" + child) }

// reminderTime is the time of reminders: they come first in the store, so that the next process finds them without looking at the others.
const reminderTime = 0

// reminds says that a timer is the reminder of a child or of an error workflow.
func reminds(id engine.TimerID) bool {
	_, child := reminded(id)
	return child || id == errorTimer
}

func reminded(id engine.TimerID) (child string, ok bool) {
	child, ok = strings.CutPrefix(string(id), "child:")
	return child, ok && !strings.Contains(child, "#")
}

// startAgain starts a child that the process before may not have started, from the row that asked for it: the state may have dropped it.
func (o *owner) startAgain(child string) error {
	start, ok, err := o.findStart(child)
	if err != nil || !ok {
		return err
	}
	if !o.startChild(start) {
		return nil
	}
	// What it was told before it was there, it is told now.
	var tell []engine.ChildAction
	if !start.Spec.Detached && o.fold.State().Status() == engine.StatusPaused {
		tell = append(tell, engine.ChildPause)
	}
	for _, c := range o.fold.State().Outstanding() {
		if t, ok := c.(engine.TellChild); ok && t.Child == child {
			tell = append(tell, t.Action)
		}
	}
	for _, action := range tell {
		err := o.tellExecution(child, childAction(action), "again:"+string(action), host.Request{By: "parent"})
		if errors.Is(err, store.ErrUnavailable) {
			return err // the reminder stays
		}
	}
	return nil
}

// findStart looks for the row that started a child. It reads the journal from its beginning, since the state does not have it.
func (o *owner) findStart(child string) (engine.StartChild, bool, error) {
	journal := o.host.journal(o.principal(), o.ref.Execution, o.revision)
	fold := host.NewFold(o.revision.Graph, revision{o.revision}, o.host.opts.Programs, journal.Loader(o.host.ctx))
	for row, err := range journal.Rows(o.host.ctx, 0) {
		if err != nil {
			return engine.StartChild{}, false, err
		}
		commands, err := fold.Apply(row)
		if err != nil {
			return engine.StartChild{}, false, err
		}
		for _, c := range commands {
			if start, ok := c.(engine.StartChild); ok && start.Child == child {
				return start, true, nil
			}
		}
	}
	return engine.StartChild{}, false, nil
}
