package local

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"tandem/engine"
	"tandem/host"
	"tandem/store"
	"tandem/workflow"
)

// Running ahead: a row that leads only to brief pure runs need not be on disk before they run, since nothing outside can observe it. It is
// held, they run at once, and their rows follow it, until something visible has to be done; then all rows are appended together. What is
// lost in a crash runs again, with the same result.

// held is a row that is ready to be appended.
type held struct {
	append *store.Append
	// entries are what the audit log says about the row.
	entries  []*store.PendingEntry
	row      host.Row
	commands []engine.Command
	status   engine.Status
	// moved says that the row changes the execution's status, ended that the execution had ended before it.
	moved, ended bool
}

// shortWait is how long an execution may wait for a timer and keep its place among those that run.
const shortWait = 1000 // milliseconds

// goesOn says that an execution waits after a row, and not for long.
func (h *held) goesOn() bool {
	return h.status == engine.StatusWaiting && slices.ContainsFunc(h.commands, func(c engine.Command) bool {
		sleep, ok := c.(engine.Sleep)
		return ok && sleep.Until <= h.row.Time+shortWait
	})
}

// What is held at most, since it is in memory only.
const (
	maxHeldRows  = 64
	maxHeldBytes = 1 << 20
	maxHeldFacts = 8
)

// usuallyHeld is how many rows there is room for when the first is held.
const usuallyHeld = 8

// goesAhead says that nothing outside can tell whether a row is on disk before its commands are carried out.
func (o *owner) goesAhead(r row) bool {
	if !o.host.opts.RunAhead || o.rests() || o.host.careful() || len(r.inbox) > 0 || len(o.held) >= maxHeldRows ||
		o.heldBytes >= maxHeldBytes || len(r.turn.Row().Facts) > maxHeldFacts {
		return false
	}
	runs := false
	for _, c := range r.commands {
		switch c := c.(type) {
		case engine.RunNode:
			if c.Node < 0 || !o.revision.Brief(c.Node) || o.revision.Graph.Nodes[c.Node].Plan.Effect != workflow.Pure {
				return false
			}
			runs = true
		case engine.EndNode, engine.CloseScope: // books that are kept in memory
		default:
			return false
		}
	}
	return runs
}

// hold keeps a row to be appended with the next one that has to be.
func (o *owner) hold(ctx context.Context, r row) error {
	h, err := o.prepare(ctx, r)
	if err != nil {
		return err
	}
	if o.held == nil {
		o.held = make([]held, 0, usuallyHeld)
	}
	o.held = append(o.held, h)
	for _, value := range h.row.Values { // the large ones too, which are not in the body
		o.heldBytes += len(value)
	}
	return nil
}

// start commits the first row of an execution, in one append with the rows of brief pure runs that can run ahead of it. It returns the
// status as of the first row, and an error that came after it. With refused nothing is on disk.
func (o *owner) start(ctx context.Context, r row) (status engine.Status, broken, refused error) {
	o.starting = true
	defer func() { o.starting = false }()
	if ctx.Err() != nil || !o.goesAhead(r) {
		o.left.commands, refused = o.commit(ctx, r)
		return o.status, nil, refused
	}
	if refused = o.hold(ctx, r); refused != nil {
		return o.status, nil, refused
	}
	status = o.status
	o.carryOut(r.commands)
	for len(o.held) > 0 && broken == nil {
		list := o.takeOutcomes() // others may be for an execution of this name that is there already
		if len(list) == 0 {
			refused = o.flush(ctx)
			break
		}
		if broken = o.deal(list); passes(broken) {
			o.held, o.heldBytes = nil, 0 // who starts it is told, as long as nothing of it is on disk
		}
		if len(o.held) == 0 {
			broken, refused = nil, broken // of the append, or of what had to be written before it
		}
		o.putBack(list)
	}
	if broken != nil {
		refused = o.flush(ctx)
	}
	if refused != nil {
		o.stopAll()
	}
	return status, broken, refused
}

// over says that an execution has ended and leaves nothing to be done for others.
func (o *owner) over() bool {
	if fails(o.left.commands) && o.errorWorkflow() != "" {
		return false // its error workflow is to be started
	}
	return o.status.Final() && o.parent == "" && len(o.attempts) == 0 && len(o.left.afters) == 0 &&
		!slices.ContainsFunc(o.left.commands, func(c engine.Command) bool {
			switch c.(type) {
			case engine.EndNode, engine.CloseScope, engine.Finish:
				return false
			}
			return true
		})
}

// followed lets subscribers begin before the first rows are published. An execution that has ended with them is returned to its starter
// instead.
func (o *owner) followed(list []held) {
	if o.follow == nil {
		return
	}
	if list[len(list)-1].status.Final() && !slices.ContainsFunc(list, func(h held) bool { return !h.row.Plain() }) {
		o.whole = true
		return
	}
	o.follow()
}

// loader reads rows that are held from where they are; they are not on disk.
func (o *owner) loader(l host.Loader) host.Loader {
	stored := l.Row
	l.Row = func(execution string, seq uint64) (host.Row, error) {
		if n := len(o.held); n > 0 && execution == o.ref.Execution && seq >= o.held[0].row.Seq {
			if i := int(seq - o.held[0].row.Seq); i < n {
				return o.held[i].row, nil
			}
		}
		return stored(execution, seq)
	}
	return l
}

// flush appends the rows that are held, and those given, which begin or follow them.
func (o *owner) flush(ctx context.Context, more ...held) error {
	list := append(o.held, more...)
	o.held, o.heldBytes = nil, 0
	if len(list) == 0 {
		return nil
	}
	rows := make([]*store.Append, len(list))
	var entries []*store.PendingEntry
	for i := range list {
		rows[i], entries = list[i].append, append(entries, list[i].entries...)
	}
	ctx = store.WithEntries(ctx, entries)
	start := rows[0].Create != nil
	if list[0].ended && o.host.opts.Reopening != nil {
		defer o.host.opts.Reopening(o.ref)()
	}
	if err := o.untilRoom(ctx, start, func() error { return o.host.opts.Journal.Append(ctx, o.principal(), rows...) }); err != nil {
		if o.next != nil && !start && errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrBroken) {
			return errOvertaken
		}
		return fmt.Errorf("append to execution %q: %w", o.ref.Execution, err)
	}
	if start {
		o.followed(list)
	}
	for i := range list {
		h := &list[i]
		if h.moved {
			if h.status.Final() {
				o.host.families.Ended(o.ref)
				_, start := o.fold.Execution()
				o.host.families.Leave(store.Ref{Workspace: o.ref.Workspace, Execution: start.Root})
			}
			if !h.goesOn() {
				o.host.admission.Moved(o.ref, o.claim, h.status)
			}
			if h.status != engine.StatusRunning {
				o.host.admitNext()
			}
		}
		for _, item := range h.append.Deliver {
			if item.Kind == string(host.ActionChildWaits) { // what else is delivered is told when its command is carried out
				o.host.post(store.Ref{Workspace: o.ref.Workspace, Execution: item.Execution}, delivered{})
			}
		}
		if o.host.opts.Recorded != nil {
			o.host.opts.Recorded(o.ref, o.revision.Graph, h.row, h.commands)
		}
	}
	return nil
}
