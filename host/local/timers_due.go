package local

import (
	"context"
	"fmt"
	"sync"

	"tandem/engine"
	"tandem/identity"
	"tandem/store"
)

// maxFiring is how many executions timers load at once, so that a great many due timers do not fill the memory.
const maxFiring = 256

// upcoming reads timers for [timers].
func (h *Host) upcoming(after store.Timer, limit int) ([]store.Timer, error) {
	if h.resting.Load() {
		return nil, nil // nothing is timed any more
	}
	list, err := h.opts.Timers.Upcoming(h.ctx, identity.System(""), after, limit)
	if err != nil && h.ctx.Err() == nil {
		h.opts.Log.Error("timers cannot be read; this is tried again", "pause", fillPause, "error", err)
	}
	return list, err
}

// remind posts the reminders that are in the store. They are due whatever the clock says, and come before all else that an execution does,
// so that the next row can remove them.
func (h *Host) remind(ctx context.Context, p identity.Principal) error {
	for after := (store.Timer{}); ; {
		list, err := h.opts.Timers.Upcoming(ctx, p, after, timerPage)
		if err != nil {
			return fmt.Errorf("read timers: %w", err)
		}
		for _, t := range list {
			if t.Until > reminderTime {
				return nil
			}
			if reminds(engine.TimerID(t.ID)) {
				h.post(store.Ref{Workspace: t.Workspace, Execution: t.Execution}, timerDue{id: engine.TimerID(t.ID)})
			}
		}
		if len(list) < timerPage {
			return nil
		}
		after = list[len(list)-1]
	}
}

// setTimer sets a timer that is in the store, or posts it if it is a reminder.
func (h *Host) setTimer(t store.Timer) {
	ref, id := store.Ref{Workspace: t.Workspace, Execution: t.Execution}, engine.TimerID(t.ID)
	if reminds(id) {
		h.post(ref, timerDue{id: id})
		return
	}
	h.timers.setTimer(ref, id, t.Until)
}

// due is called by the timers. It waits while many that came before are not dealt with.
func (h *Host) due(ref store.Ref, id engine.TimerID) {
	if !h.resting.Load() { // else it is due in the next process, too
		h.postCounted(ref, func(c counted) message { return timerDue{id, c} })
	}
}

// counted is part of a message whose number is limited. Dealt is called when it was handled, or refused; nil: it is not counted.
type counted struct{ dealt func() }

func (c counted) done() {
	if c.dealt != nil {
		c.dealt()
	}
}

// postCounted posts a message when there are not too many on their way.
func (h *Host) postCounted(ref store.Ref, m func(counted) message) {
	select {
	case h.firing <- struct{}{}:
	case <-h.ctx.Done():
		return
	}
	c := counted{sync.OnceFunc(func() { <-h.firing })}
	if !h.post(ref, m(c)) {
		c.done()
	}
}

// dealtWith says that messages were dealt with.
func dealtWith(list []message) {
	for _, m := range list {
		if c, ok := m.(interface{ done() }); ok {
			c.done()
		}
	}
}

// askUnasked lets those ask again that wait for a person who was never asked. Who else waits is not kept from going on meanwhile.
func (h *Host) askUnasked() {
	var unasked []store.Ref
	err := h.patiently(h.ctx, func() (err error) {
		unasked, err = h.opts.Unasked(h.ctx)
		return err
	})
	if err != nil {
		if h.ctx.Err() == nil {
			h.opts.Log.Error("what nobody was asked cannot be read; the next start tries again", "error", err)
		}
		return
	}
	for _, ref := range unasked {
		h.postCounted(ref, func(c counted) message { return unheard{c} })
	}
}
