package limits

import (
	"context"
	"time"

	"tandem/api"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/identity"
	"tandem/store"
)

// Start is what somebody is about to start.
type Start struct {
	// Triggered says that a trigger starts it, and not a request. Windows do not apply to it, and a quota delays it.
	Triggered bool
	// Tasks is how many tasks of agents a user may start within [TaskWindow], if it is the start of a task; zero: it is not.
	// Less than zero: any number.
	Tasks int
}

// Enter takes a place for a start, or refuses it: the error says what is used up, what to do about it and, where that is known, when there
// will be room. The caller says with leave whether it has started something.
func (s *Service) Enter(ctx context.Context, p identity.Principal, start Start) (leave func(started bool), err error) {
	settings := s.Settings(p.Workspace)
	if err := s.checkQuotas(ctx, p, settings); err != nil {
		return nil, err
	}
	var left []func(bool)
	leave = func(started bool) {
		for _, f := range left {
			f(started)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.of(p.Workspace).open--
	}
	s.mu.Lock()
	s.of(p.Workspace).open++
	s.mu.Unlock()
	if start.Triggered {
		return leave, nil
	}
	for _, one := range []struct {
		window *Window
		who    Starter
		bound  Bound
		what   string
	}{
		{s.tasks, Starter{p.Workspace, p.User}, Bound{start.Tasks, TaskWindow}, "tasks"},
		{s.starts, Starter{p.Workspace, p.User}, boundOf(settings.StartsPerUser), "executions"},
		{s.starts, Starter{p.Workspace, ""}, boundOf(settings.Starts), "executions"},
	} {
		f, err := one.window.enter(ctx, one.who, one.bound, one.what)
		if err != nil {
			leave(false)
			return nil, err
		}
		left = append(left, f)
	}
	return leave, nil
}

func boundOf(w api.StartWindow) Bound {
	return Bound{int(w.Count), time.Duration(w.Seconds) * time.Second}
}

// checkQuotas refuses a start for which a quota has no room.
func (s *Service) checkQuotas(ctx context.Context, p identity.Principal, settings api.LimitSettings) error {
	now := s.o.Now()
	day, nextDay, month, nextMonth := periods(now)
	for _, q := range []struct {
		limit       int64
		since, next time.Time
		name        string
	}{
		{settings.ExecutionsPerDay, day, nextDay, "executions_per_day"},
		{settings.ExecutionsPerMonth, month, nextMonth, "executions_per_month"},
	} {
		if q.limit <= 0 {
			continue
		}
		used, err := s.startedSince(ctx, p, q.since)
		if err != nil {
			return err
		}
		if used >= q.limit {
			return errQuota(fault.QuotaExhausted, q.next.Sub(now), "this workspace has started %d executions since %s, and its limit %s is %d; wait until %s, or let an admin raise the limit",
				used, q.since.Format(time.DateOnly), q.name, q.limit, q.next.Format(time.DateOnly))
		}
	}
	if settings.StorageBytes <= 0 {
		return nil
	}
	usage, _, err := s.measured(ctx, p)
	if err != nil {
		return err
	}
	if used := usage.Journals + usage.Blobs; used >= settings.StorageBytes {
		return errQuota(fault.StorageExhausted, 0, "this workspace stores %d bytes, and its limit storage_bytes is %d; remove executions, keep them for less time (retention), or let an admin raise the limit", used, settings.StorageBytes)
	}
	return nil
}

// periods are the beginnings of the day and the month of a time, and of the next ones.
func periods(now time.Time) (day, nextDay, month, nextMonth time.Time) {
	now = now.UTC()
	day = time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	month = time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	return day, day.AddDate(0, 0, 1), month, month.AddDate(0, 1, 0)
}

// Recorded counts an execution that has begun: it is called with every row that is on disk. Executions that other executions
// start do not count.
func (s *Service) Recorded(workspace string, row host.Row) {
	if row.Seq != 1 || len(row.Facts) == 0 {
		return
	}
	switch f := row.Facts[0].(type) {
	case engine.ExecutionCreated:
		if f.Depth > 0 {
			return
		}
	case engine.ExecutionForked:
	default:
		return
	}
	day := time.UnixMilli(row.Time).UTC().Format(time.DateOnly)
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.of(workspace)
	w.started[day]++
	if len(w.started) > maxDays {
		oldest := day
		for d := range w.started { // order does not matter: the smallest is looked for
			oldest = min(oldest, d)
		}
		delete(w.started, oldest)
	}
}

// maxDays is for how many days it is known what was started.
const maxDays = 70

// startedSince counts what was started since the beginning of a day, and is about to be.
func (s *Service) startedSince(ctx context.Context, p identity.Principal, since time.Time) (int64, error) {
	key := since.Format(time.DateOnly)
	s.mu.Lock()
	before, known := s.of(p.Workspace).before[key]
	s.mu.Unlock()
	if !known {
		if since.Before(s.born) {
			var err error
			if before, err = s.o.Stores.Limits.StartsSince(ctx, p, since.UnixMilli()); err != nil {
				return 0, err
			}
		}
		s.mu.Lock()
		w := s.of(p.Workspace)
		if len(w.before) > maxDays {
			clear(w.before)
		}
		w.before[key] = before
		s.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.of(p.Workspace)
	n := before + w.open
	for day, count := range w.started { // order does not matter: they are added
		if day >= key {
			n += count
		}
	}
	return n, nil
}

// How often measuring is repeated: it should take a small part of the time.
const (
	measureAgain = time.Minute
	measureShare = 100
)

// measured returns what a workspace stores, as measured a short time ago.
func (s *Service) measured(ctx context.Context, p identity.Principal) (store.Usage, time.Time, error) {
	s.mu.Lock()
	w := s.of(p.Workspace)
	s.mu.Unlock()
	w.measuring.Lock()
	defer w.measuring.Unlock()
	now := s.o.Now()
	if !w.measured.IsZero() && now.Sub(w.measured) < max(measureAgain, measureShare*w.cost) {
		return w.usage, w.measured, nil
	}
	usage, err := s.o.Stores.Upkeep.Usage(ctx, identity.System(p.Workspace))
	if err != nil {
		return usage, now, err
	}
	w.usage, w.measured, w.cost = usage, now, s.o.Now().Sub(now)
	return usage, now, nil
}

// Forget makes the next call measure again what a workspace stores.
func (s *Service) Forget(workspace string) {
	s.mu.Lock()
	w := s.of(workspace)
	s.mu.Unlock()
	w.measuring.Lock()
	defer w.measuring.Unlock()
	w.measured = time.Time{}
}

// Usage says what the principal's workspace uses. The bytes were measured at the time that it says, at most a minute ago unless measuring
// takes long.
func (s *Service) Usage(ctx context.Context, p identity.Principal) (out api.LimitUsage, err error) {
	day, _, month, _ := periods(s.o.Now())
	if out.ExecutionsToday, err = s.startedSince(ctx, p, day); err != nil {
		return out, err
	}
	if out.ExecutionsThisMonth, err = s.startedSince(ctx, p, month); err != nil {
		return out, err
	}
	for _, one := range []struct {
		status engine.Status
		into   *int64
	}{{engine.StatusRunning, &out.Running}, {engine.StatusPending, &out.Waiting}, {"", &out.Executions}} {
		q := store.ExecutionQuery{Page: store.Page{Size: 1}}
		if one.status != "" {
			q.Statuses = []engine.Status{one.status}
		}
		page, err := s.o.Stores.Executions.List(ctx, p, q)
		if err != nil {
			return out, err
		}
		*one.into = int64(page.Total)
	}
	usage, at, err := s.measured(ctx, p)
	out.JournalBytes, out.BlobBytes, out.MeasuredTime = usage.Journals, usage.Blobs, at.UnixMilli()
	out.StorageBytes = usage.Journals + usage.Blobs
	return out, err
}
