package local

import (
	"context"
	"errors"
	"slices"
	"time"

	"tandem/engine"
	"tandem/host/turns"
	"tandem/identity"
	"tandem/store"
)

// admitVisiting lets an execution begin that has its place: this process has the limits, and another one may carry the execution.
func (h *Host) admitVisiting(ref store.Ref) {
	if !h.hold() {
		return
	}
	go func() { // it ends with the host
		defer h.running.Done()
		if err := h.beginVisiting(ref); err != nil && !h.standAgain(ref, err) {
			return
		}
		h.opts.Carrier.Wake(ref)
	}()
}

// beginVisiting records that an execution begins.
func (h *Host) beginVisiting(ref store.Ref) error {
	select {
	case h.firing <- struct{}{}: // should a great many begin, not all of them are in memory
	case <-h.ctx.Done():
		return context.Cause(h.ctx)
	}
	defer func() { <-h.firing }()
	return h.patiently(h.ctx, func() error {
		_, err := h.Attend(ref)
		return err
	})
}

// standAgain puts an execution into line again that could not begin; its place is another's at once. Where that was decided there is a pause
// before it, since its turn comes at once when nobody else waits. It says false when the host is closed.
func (h *Host) standAgain(ref store.Ref, why error) bool {
	if h.ctx.Err() != nil {
		return false
	}
	if !errors.Is(why, store.ErrNotFound) {
		h.opts.Log.Warn("an execution has its turn and could not begin", "execution", ref.Execution, "error", why)
	}
	h.admission.Moved(ref, turns.Claim{}, engine.StatusPending)
	h.admitNext()
	if !h.mayPass(h.ctx, why) { // else it was tried for long
		select {
		case <-time.After(lastReadPause):
		case <-h.ctx.Done():
			return false
		}
	}
	if err := h.patiently(h.ctx, func() error { return h.Heard(h.ctx, ref, engine.StatusPending) }); err != nil {
		h.opts.Log.Warn("it waits for the next sweep", "execution", ref.Execution, "error", err)
	}
	return true
}

// Heard says that an execution has another status, which any process may have recorded. It is for the process that has the limits.
func (h *Host) Heard(ctx context.Context, ref store.Ref, status engine.Status) error {
	var start turns.Start
	if !status.Final() { // it may have another one by now
		e, err := h.opts.Executions.Get(ctx, identity.System(ref.Workspace), ref.Execution)
		if errors.Is(err, store.ErrNotFound) {
			e.Status, err = engine.StatusCanceled, nil // it was deleted
		}
		if err != nil {
			return err
		}
		claim := turns.ClaimOf(e.User, h.isTask(e.WorkflowID))
		start, status = turns.Start{Ref: ref, Claim: claim, Priority: e.Priority, Created: e.Created}, e.Status
	}
	switch status {
	case engine.StatusPending:
		h.admission.Wait(start)
	case engine.StatusWaiting:
		if soon, err := h.goesOnSoon(ctx, ref); soon || err != nil {
			return err
		}
		fallthrough
	default:
		h.admission.Moved(ref, start.Claim, status)
	}
	h.admitNext()
	return nil
}

// goesOnSoon says of an execution that waits that it goes on by itself in a moment: it keeps its place meanwhile.
func (h *Host) goesOnSoon(ctx context.Context, ref store.Ref) (bool, error) {
	timers, err := h.opts.Timers.Of(ctx, identity.System(ref.Workspace), ref.Execution)
	soon := time.Now().UnixMilli() + shortWait
	return slices.ContainsFunc(timers, func(t store.Timer) bool {
		_, child := reminded(engine.TimerID(t.ID))
		return !child && t.ID != string(errorTimer) && t.Until <= soon
	}), err
}

// HeardNothing looks at what may have changed while nothing was heard: what has a place may have ended.
func (h *Host) HeardNothing(ctx context.Context) error {
	for _, ref := range h.admission.Running() {
		if err := h.Heard(ctx, ref, engine.StatusRunning); err != nil {
			return err
		}
	}
	return nil
}

// Reckon counts an execution that has not ended, and says that it is to go on. One that has yet to begin is put into line instead, where
// its turn comes at once if there are no limits: a process that leaves them to this one does not let it begin, however often it is woken.
func (h *Host) Reckon(u store.Unfinished) bool {
	c := turns.ClaimOf(u.User, h.isTask(u.WorkflowID))
	if u.Status == engine.StatusRunning {
		h.admission.Moved(u.Ref, c, u.Status)
		return true
	}
	h.admission.Wait(turns.Start{Ref: u.Ref, Claim: c, Priority: u.Priority, Created: u.Created})
	return false
}
