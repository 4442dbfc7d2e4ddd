package app

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"tandem/identity"
	"tandem/route"
)

// What is kept for a while only.
const (
	// tidyEvery is how often a server looks for what has had its time.
	tidyEvery = time.Hour
	// keptKeys is how long the idempotency key of a start is known, keptMarks how long a repeated change of a memory is
	// recognised.
	keptKeys  = 30 * 24 * time.Hour
	keptMarks = 30 * 24 * time.Hour
)

// tidy removes what has had its time: idempotency keys, sessions, memories that have expired, marks of their changes, and, when it is kept for so
// many days only, what is older in the audit log.
func (i *Instance) tidy(ctx context.Context, now time.Time, auditDays int) (removed int, err error) {
	removed, err = i.stores.Keys.Expire(ctx, identity.System(""), now.Add(-keptKeys).UnixMilli())
	if err != nil {
		return removed, err
	}
	ended, err := i.stores.Sessions.Expire(ctx, identity.System(""), now.UnixMilli(), now.Add(-route.SessionIdle).UnixMilli())
	removed += ended
	if err != nil {
		return removed, err
	}
	all, err := i.stores.Workspaces.List(ctx, identity.System(""))
	if err != nil {
		return removed, err
	}
	for _, w := range all {
		for { // each time a bounded number
			n, err := i.stores.Memories.Purge(ctx, identity.System(w.ID), now.UnixMilli(), now.Add(-keptMarks).UnixMilli())
			removed += n
			if err != nil {
				return removed, err
			}
			if n == 0 {
				break
			}
		}
		for auditDays > 0 {
			n, err := i.stores.Audit.Retain(ctx, identity.System(w.ID), now.AddDate(0, 0, -auditDays).UnixMilli(), 0, now.UnixMilli())
			removed += n
			if err != nil {
				return removed, err
			}
			if n == 0 {
				break
			}
		}
	}
	return removed, nil
}

// tidyUp tidies from time to time until the context ends. It owns its goroutine's work; what fails is tried again next time.
func (i *Instance) tidyUp(ctx context.Context, auditDays int, log *slog.Logger) {
	tick := time.NewTicker(tidyEvery)
	defer tick.Stop()
	for {
		removed, err := i.tidy(ctx, time.Now(), auditDays)
		if err != nil && !errors.Is(err, context.Canceled) {
			log.Warn("what has had its time could not be removed", "error", err)
		} else if removed > 0 {
			log.Info("removed what has had its time", "records", removed)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
