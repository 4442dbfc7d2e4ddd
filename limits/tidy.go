package limits

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"tandem/api"
	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

// How long things are kept, and how often what is old is removed.
const (
	// TidyEvery is how often a server looks for what has been kept long enough.
	TidyEvery = time.Hour
	// keptKeys is how long the idempotency key of a start is known, keptMarks how long a repeated change of a memory is recognised,
	// keptExpired how long invitations and tokens are listed that have expired.
	keptKeys    = 30 * 24 * time.Hour
	keptMarks   = 30 * 24 * time.Hour
	keptExpired = 90 * 24 * time.Hour
	// youngDelivery is how long a delivery is kept whatever the settings say: its sender may repeat it.
	youngDelivery = 24 * time.Hour
	// youngBlob is how long a large value is kept that nothing refers to: a record that does may be about to be written.
	youngBlob = 5 * time.Minute
	// spareSpace is which part of the database file may be free: it is used again. Giving it back all the time would only move pages
	// around.
	spareSpace = 0.1
	// compactEvery is how often the whole database is read to give back what retention has made free; what is removed on request does not
	// wait for it.
	compactEvery = 24 * time.Hour
	// removedAtOnce is how many executions are handled before others have their turn.
	removedAtOnce = 100
)

// Tidy removes what has been kept long enough and frees the space. A session that was not used for idle has ended. One pass runs at a time.
// What was removed is reported even when the pass ends with an error.
func (s *Service) Tidy(ctx context.Context, now time.Time, idle time.Duration, spare float64) (out api.TidyReport, err error) {
	s.tidying.Lock()
	defer s.tidying.Unlock()
	defer func() { s.reportTidied(&out) }()
	if err := s.expire(ctx, now, idle, &out); err != nil {
		return out, err
	}
	all, err := s.o.Stores.Workspaces.List(ctx, identity.System(""))
	if err != nil {
		return out, err
	}
	ids := map[string]bool{}
	for _, w := range all {
		ids[w.ID] = true
		if err := s.clear(ctx, now, w, &out); err != nil {
			return out, err
		}
	}
	s.mu.Lock()
	for id := range s.workspaces { // order does not matter: they are sorted
		ids[id] = true
	}
	s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		if err := s.retain(ctx, now, identity.System(id), &out); err != nil {
			return out, err
		}
	}
	for more := true; more; {
		if more, err = s.o.Stores.Upkeep.Finish(ctx, identity.System("")); err != nil {
			return out, err
		}
	}
	due, err := s.o.Stores.Upkeep.Unclean(ctx, identity.System(""))
	if err != nil {
		return out, err
	}
	removed := out.Executions+out.Deliveries+out.Audit+out.Others > 0
	if due || spare < spareSpace || removed && now.Sub(s.compacted) >= compactEvery {
		if err := s.o.Stores.Upkeep.Compact(ctx, identity.System(""), spare); err != nil {
			return out, err
		}
		s.compacted = now
	}
	space, err := s.o.Stores.Upkeep.Space(ctx, identity.System(""))
	out.Space = TellSpace(space)
	return out, err
}

// TellSpace is the space that an installation takes, in the shape of the API.
func TellSpace(s store.Space) api.Space {
	return api.Space{DatabaseBytes: s.Database, FreeBytes: s.Free, LogBytes: s.Log, BlobBytes: s.Blobs,
		CopyBytes: s.Copies, Shrinks: s.Shrinks}
}

// reportTidied counts what was removed.
func (s *Service) reportTidied(out *api.TidyReport) {
	if s.o.Removed == nil {
		return
	}
	// The order does not matter: each is counted by itself.
	for what, n := range map[string]int64{"executions": out.Executions, "deliveries": out.Deliveries, "audit": out.Audit, "blobs": out.Blobs, "others": out.Others} {
		if n > 0 {
			s.o.Removed(what, n)
		}
	}
}

// expire removes what has expired, whatever the settings say.
func (s *Service) expire(ctx context.Context, now time.Time, idle time.Duration, out *api.TidyReport) error {
	system := identity.System("")
	for _, one := range []func() (int, error){
		func() (int, error) { return s.o.Stores.Keys.Expire(ctx, system, now.Add(-keptKeys).UnixMilli()) },
		func() (int, error) {
			return s.o.Stores.Sessions.Expire(ctx, system, now.UnixMilli(), now.Add(-idle).UnixMilli())
		},
		func() (int, error) { return s.o.Stores.Upkeep.Expire(ctx, system, now.Add(-keptExpired)) },
	} {
		n, err := one()
		out.Others += int64(n)
		if err != nil {
			return err
		}
	}
	return nil
}

// retain removes what a workspace does not keep any longer.
func (s *Service) retain(ctx context.Context, now time.Time, p identity.Principal, out *api.TidyReport) error {
	keep := s.Settings(p.Workspace).Retention
	if keep.Audit == (api.Retained{}) {
		keep.Audit.Days = int64(s.o.AuditDays)
	}
	if err := s.enterRetained(ctx, p, keep.Executions); err != nil { // what a process had removed that was gone before it could enter it
		return err
	}
	if err := s.retainExecutions(ctx, now, p, keep.Executions, out); err != nil {
		return err
	}
	for _, one := range []struct {
		into *int64
		kept api.Retained
		some func(before int64) (int, error) // a bounded number
	}{
		{&out.Others, api.Retained{Days: 1}, func(int64) (int, error) {
			return s.o.Stores.Memories.Purge(ctx, p, now.UnixMilli(), now.Add(-keptMarks).UnixMilli())
		}},
		{&out.Deliveries, keep.Deliveries, func(before int64) (int, error) {
			return s.o.Stores.Upkeep.RetainDeliveries(ctx, p, before, keep.Deliveries.Count, now.Add(-youngDelivery).UnixMilli())
		}},
		{&out.Audit, keep.Audit, func(before int64) (int, error) {
			return s.o.Stores.Audit.Retain(ctx, p, before, int(keep.Audit.Count), now.UnixMilli())
		}},
	} {
		for n := 1; n > 0 && one.kept != (api.Retained{}); {
			var err error
			n, err = one.some(before(now, one.kept.Days))
			*one.into += int64(n)
			if err != nil {
				return err
			}
		}
	}
	orphans := time.Time{}
	if keep.BlobDays > 0 {
		orphans = now.AddDate(0, 0, -int(keep.BlobDays))
	}
	n, size, err := s.o.Stores.Upkeep.SweepBlobs(ctx, p, orphans, now.Add(-youngBlob))
	out.Blobs, out.BlobBytes = out.Blobs+int64(n), out.BlobBytes+size
	return err
}

// clear removes what a deleted workspace has left outside of the database. The rest of it went with its deletion.
func (s *Service) clear(ctx context.Context, now time.Time, w identity.Workspace, out *api.TidyReport) error {
	if w.Deleted == 0 {
		return nil
	}
	if s.o.Deleted != nil {
		if err := s.o.Deleted(w.ID); err != nil {
			return err
		}
	}
	n, size, err := s.o.Stores.Upkeep.SweepBlobs(ctx, identity.System(w.ID), now.Add(-youngBlob), now.Add(-youngBlob))
	out.Blobs, out.BlobBytes = out.Blobs+int64(n), out.BlobBytes+size
	return err
}

// before is the time so many days ago, in Unix milliseconds; zero days: none.
func before(now time.Time, days int64) int64 {
	if days <= 0 {
		return 0
	}
	return now.AddDate(0, 0, -int(days)).UnixMilli()
}

// reasonRetention is the reason that deliveries have when their executions were removed by retention.
const reasonRetention = "execution_removed: the execution was not kept any longer"

// retainExecutions removes executions that have been kept long enough. Those that something still needs stay until a later pass.
func (s *Service) retainExecutions(ctx context.Context, now time.Time, p identity.Principal, keep api.Retained, out *api.TidyReport) error {
	if keep == (api.Retained{}) {
		return nil
	}
	for again := true; again; {
		again = false // one that shares its past with another can be removed after that one
		for after := int64(0); ; {
			ids, next, err := s.o.Stores.Upkeep.Removable(ctx, p,
				store.RetentionQuery{Before: before(now, keep.Days), Keep: keep.Count, After: after, Limit: removedAtOnce})
			if err != nil {
				return err
			}
			removed := int64(0)
			kept := false
			for _, id := range ids {
				r, err := s.remove(ctx, p, store.Removal{Execution: id, Retained: true, Reason: reasonRetention})
				removed += r.Executions
				out.Executions += r.Executions
				switch {
				case errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound):
					kept = true
				case err != nil:
					return err
				}
			}
			again = again || kept && removed > 0
			if err := s.enterRetained(ctx, p, keep); err != nil {
				return err
			}
			if after = next; after == 0 {
				break
			}
		}
	}
	return nil
}

// remove removes an execution and reports it to those that cache it.
func (s *Service) remove(ctx context.Context, p identity.Principal, r store.Removal) (store.Removed, error) {
	removed, err := s.o.Stores.Upkeep.Remove(ctx, p, r)
	if s.o.Gone != nil && len(removed.IDs) > 0 {
		s.o.Gone(p.Workspace, removed.IDs)
	}
	return removed, err
}

// enterRetained writes what retention has removed of executions into the audit log. What was removed and not entered yet is in the store,
// so that the next pass enters it if this process ends before.
func (s *Service) enterRetained(ctx context.Context, p identity.Principal, keep api.Retained) error {
	_, err := s.o.Stores.Upkeep.EnterRetained(ctx, p, func(removed int64) store.AuditEntry {
		return store.AuditEntry{Time: s.o.Now().UnixMilli(), User: p.User, Action: "execution.retain", Object: "execution",
			Detail: store.AuditDetail(map[string]any{"removed": removed, "days": keep.Days, "count": keep.Count})}
	})
	return err
}

// Nudge lets the next pass of [Service.Keep] begin at once.
func (s *Service) Nudge() {
	select {
	case s.wake <- struct{}{}:
	default: // a pass is due already
	}
}

// Keep tidies from time to time until the context ends. What fails is tried again the next time.
func (s *Service) Keep(ctx context.Context, idle time.Duration) {
	tick := time.NewTicker(TidyEvery)
	defer tick.Stop()
	for {
		out, err := s.Tidy(ctx, s.o.Now(), idle, spareSpace)
		removed := out.Executions + out.Deliveries + out.Audit + out.Blobs + out.Others
		switch {
		case err != nil && ctx.Err() == nil:
			s.o.Log.Warn("what has been kept long enough could not be removed", "error", err)
		case removed > 0:
			s.o.Log.Info("removed what has been kept long enough", "executions", out.Executions, "deliveries", out.Deliveries, "audit", out.Audit,
				"blobs", out.Blobs, "others", out.Others)
		}
		select {
		case <-tick.C:
		case <-s.wake:
		case <-ctx.Done():
			return
		}
	}
}

// Delete removes an execution on request, with everything that is kept of it. What it leaves in the free parts of files goes with the next
// pass, which begins at once; large values that were put lately go some minutes later.
func (s *Service) Delete(ctx context.Context, p identity.Principal, id, reason string) (store.Removed, error) {
	removed, err := s.remove(ctx, p, store.Removal{Execution: id, Traces: true, Reason: reason})
	if err != nil {
		return removed, err
	}
	for more := true; more && err == nil; {
		more, err = s.o.Stores.Upkeep.Finish(store.WithoutEntries(ctx), identity.System(""))
	}
	if s.o.Removed != nil {
		s.o.Removed("executions", removed.Executions)
	}
	s.Nudge()
	time.AfterFunc(youngBlob+time.Minute, s.Nudge)
	return removed, err
}

// errQuota is an error of a quota: trying again helps once there is room.
func errQuota(code fault.Code, wait time.Duration, format string, args ...any) *fault.Error {
	err := fault.Newf(code, format, args...)
	err.Retryable = true
	if wait > 0 {
		err = err.With("retry_after", seconds(wait))
	}
	return err
}

// seconds is a time in whole seconds, rounded up.
func seconds(d time.Duration) int { return max(1, int((d+time.Second-1)/time.Second)) }
