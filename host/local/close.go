package local

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/store"
)

// An execution whose record cannot be read can never go on. So it is ended: a last row says why, its status is ERROR, its questions are
// withdrawn, its children and its parent are told, and its error workflow is started. This is only for wrong data: when the disk or the
// store has failed, nothing is written, and the next process tries again.

// closed ends the execution because its record is wrong. It returns false if that failed; now says that it had not been ended before.
func (o *owner) closed(why error) (closed, now bool) {
	err := o.host.patiently(o.host.ctx, func() (err error) {
		now, err = o.close(why)
		return err
	})
	if err == nil {
		return true, now
	}
	if !errors.Is(err, context.Canceled) && !errors.Is(err, errClosed) {
		o.host.opts.Log.Error("an execution that cannot be read could not be ended", "execution", o.ref.Execution, "error", err)
	}
	return false, false
}

func (o *owner) close(why error) (now bool, err error) {
	ctx, p := o.host.ctx, o.principal()
	summary, err := o.host.opts.Executions.Get(ctx, p, o.ref.Execution)
	if err != nil || summary.Status.Final() { // it was closed before
		return false, err
	}
	last := store.Row{}
	for stored, err := range o.host.opts.Journal.Rows(ctx, p, o.ref.Execution, 0) {
		if err != nil {
			return false, err
		}
		last = store.Row{Seq: stored.Seq, Time: stored.Time}
	}
	view, start, err := o.host.journal(p, o.ref.Execution, o.revision).View(ctx)
	if err != nil {
		return false, err
	}
	// The reason names the row or the value, so everybody may read it; it has nothing of the content.
	reason := fault.Newf(fault.Unreadable, "what is recorded of the execution cannot be read, so it was ended: %s; start a new one", fault.From(why).Message)
	row := host.Row{Seq: last.Seq + 1, Time: max(time.Now().UnixMilli(), last.Time), Closed: true, Told: toldOfEnd(view, reason)}
	body, err := row.Encode()
	if err != nil {
		return false, err
	}
	view.Apply(&row)
	a := &store.Append{
		Execution: o.ref.Execution, After: last.Seq, Time: row.Time, Body: body,
		Change: &store.Change{Status: engine.StatusError, Started: cmp.Or(view.Started, summary.Started), Ended: row.Time,
			DurationMS: view.DurationMS(row.Time), Credits: view.Credits, Error: reason.Message, ErrorCode: string(reason.Code)},
	}
	if o.errorWorkflowOf(completeStart(start, summary)) != "" {
		a.SetTimers = append(a.SetTimers, o.timer(string(errorTimer), reminderTime))
	}
	if err := o.closeAround(a, summary, view, reason); err != nil {
		return false, err
	}
	if err := o.untilRoom(ctx, false, func() error { return o.host.opts.Journal.Append(ctx, p, a) }); err != nil {
		return false, fmt.Errorf("append to execution %q: %w", o.ref.Execution, err)
	}
	o.closedBy = row.Seq
	o.host.families.Ended(o.ref)
	o.host.families.Leave(store.Ref{Workspace: o.ref.Workspace, Execution: start.Root})
	if o.host.opts.Recorded != nil {
		o.host.opts.Recorded(o.ref, o.revision.Graph, row, []engine.Command{engine.Finish{Status: engine.StatusError, Error: reason}})
	}
	for _, item := range a.Deliver {
		o.host.post(store.Ref{Workspace: o.ref.Workspace, Execution: item.Execution}, delivered{})
	}
	return true, nil
}

// toldOfEnd tells readers what a last row means: nothing runs and nobody is asked any more.
func toldOfEnd(view *host.View, reason *fault.Error) []host.Told {
	var told []host.Told
	for _, id := range slices.Sorted(maps.Keys(view.Open)) {
		told = append(told, host.Told{What: host.ToldNode, Activation: id, Generation: view.Open[id].Generation, Node: engine.NodeCanceled})
	}
	for _, ask := range slices.Sorted(maps.Keys(view.Questions)) {
		told = append(told, host.Told{What: host.ToldWithdrawn, Ask: ask})
	}
	return append(told, host.Told{What: host.ToldExecution, Status: engine.StatusError, Error: reason})
}

// closeAround adds to the last row what follows from the end: the inbox, questions, a pause, the parent and the children.
func (o *owner) closeAround(a *store.Append, summary store.Execution, view *host.View, reason *fault.Error) error {
	ctx, p := o.host.ctx, o.principal()
	items, err := o.host.opts.Inbox.Pending(ctx, p, o.ref.Execution)
	if err != nil {
		return err
	}
	for _, item := range items {
		a.TakeInbox = append(a.TakeInbox, item.ID)
	}
	if o.host.opts.Asked != nil {
		for _, ask := range slices.Sorted(maps.Keys(view.Questions)) {
			a.Withdraw = o.withdraw(a.Withdraw, ask)
		}
		if summary.Status == engine.StatusPaused {
			a.Resume = &store.PauseEnd{Status: store.PauseCanceled, Reason: store.ResumedByEnd, Time: a.Time}
		}
	}
	deliver := func(to string, action host.Action, r host.Request) error {
		body, err := json.Marshal(r)
		if err != nil {
			return err
		}
		a.Deliver = append(a.Deliver, store.InboxItem{
			Execution: to, Kind: string(action), Dedup: fmt.Sprintf("ended:%s:%d", o.ref.Execution, a.After+1), Time: a.Time, Body: body,
		})
		return nil
	}
	if summary.Parent != "" {
		if err := deliver(summary.Parent, host.ActionChild,
			host.Request{Child: o.ref.Execution, Status: engine.StatusError, Error: reason}); err != nil {
			return err
		}
	}
	for number := 1; ; number++ {
		page, err := o.host.opts.Executions.List(ctx, p,
			store.ExecutionQuery{Parent: o.ref.Execution, Page: store.Page{Number: number, Size: store.MaxPageSize}})
		if err != nil {
			return err
		}
		for _, child := range page.Executions {
			if child.Status.Final() {
				continue
			}
			if err := deliver(child.ID, host.ActionCancel, host.Request{By: "parent"}); err != nil {
				return err
			}
		}
		if number*store.MaxPageSize >= page.Total {
			return nil
		}
	}
}
