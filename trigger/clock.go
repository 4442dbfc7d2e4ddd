package trigger

import (
	"cmp"
	"context"
	"hash/fnv"
	"strings"
	"time"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

const (
	// longestNap is how long the time is not looked at, unless the options say otherwise.
	longestNap  = 10 * time.Second
	clockBatch  = 512
	clockAtOnce = 64
	// onTime is how late a scheduled time may come and still count as kept.
	onTime = 30 * time.Second
	// clockPause is how long a trigger that cannot be dealt with is left alone.
	clockPause = time.Minute
)

// clock starts what schedules say. It remembers nothing: the store says when each trigger has to be looked at, and one index finds the
// first of them.
type clock struct {
	s    *Service
	wake chan struct{}
}

func newClock(s *Service) *clock { return &clock{s, make(chan struct{}, 1)} }

// nap is how long to wait for something at a time; zero: there is nothing.
func (s *Service) nap(at, next int64) time.Duration {
	if next == 0 || next-at > s.o.LongestNap.Milliseconds() {
		return s.o.LongestNap
	}
	return time.Duration(max(next-at, 0)) * time.Millisecond
}

func (c *clock) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		timer.Reset(c.pass(ctx))
		select {
		case <-ctx.Done():
		case <-c.wake:
		case <-timer.C:
		}
	}
}

// pass deals with everything that is due and says how long to wait for the next.
func (c *clock) pass(ctx context.Context) time.Duration {
	for ctx.Err() == nil {
		at := now()
		due, next, err := c.s.o.Triggers.Due(ctx, identity.System(""), at.UnixMilli(), clockBatch)
		if err != nil {
			if ctx.Err() == nil {
				c.s.o.Log.Error("schedules cannot be read; trying again", "error", err)
			}
			return time.Second
		}
		if len(due) == 0 {
			return c.s.nap(at.UnixMilli(), next)
		}
		if !eachOf(due, clockAtOnce, func(t store.Trigger) bool { return c.one(ctx, t, at) }) {
			return time.Second
		}
	}
	return c.s.o.LongestNap
}

// one deals with a trigger and says whether it is out of the way for now.
func (c *clock) one(ctx context.Context, t store.Trigger, at time.Time) bool {
	err := c.fire(ctx, t, at)
	if err == nil || ctx.Err() != nil {
		return true
	}
	c.s.o.Log.Error("a schedule cannot be kept; trying again", "workspace", t.Workspace, "workflow", t.WorkflowID,
		"node", t.Node, "error", err)
	if !permanent(err) {
		return false
	}
	t.NextDue, t.Updated = at.Add(clockPause).UnixMilli(), at.UnixMilli()
	return c.s.o.Triggers.Move(ctx, identity.System(t.Workspace), t) == nil
}

// fire starts what a schedule has due at a time, and moves the trigger to the next. The key of each start is its scheduled time, so that
// what is fired again because the move was lost starts nothing.
func (c *clock) fire(ctx context.Context, t store.Trigger, at time.Time) (err error) {
	scheduler, ok := c.s.sources[t.Kind].(Scheduler)
	if !ok {
		return fault.Newf(fault.Unsupported, "this installation has no schedules of the kind %s", t.Kind)
	}
	defer recovered(t.Kind, &err)
	schedule, err := scheduler.Schedule(c.s.trigger(t))
	if err != nil {
		return err
	}
	after, err := cursorTime(t.Cursor)
	if err != nil {
		return err
	}
	run, last := c.due(&t, schedule, after, at)
	for _, tick := range run {
		event, err := schedule.Event(tick)
		if err != nil {
			return err
		}
		event.Key = tick.UTC().Format(time.RFC3339Nano)
		if _, err := c.s.deliver(ctx, t, event, nil, "", nil); err != nil {
			return err
		}
	}
	t.Cursor, t.NextDue, t.Updated = cursorAt(last), 0, at.UnixMilli()
	if next, ok := schedule.Next(last); ok {
		t.NextDue = next.Add(jitter(&t, schedule, next)).UnixMilli()
	}
	return c.s.o.Triggers.Move(ctx, identity.System(t.Workspace), t)
}

// due are the scheduled times after one that are to be started, in order, and the last that is dealt with by that.
func (c *clock) due(t *store.Trigger, s Schedule, after, at time.Time) (run []time.Time, last time.Time) {
	come := func(tick time.Time) bool { return !tick.Add(jitter(t, s, tick)).After(at) }
	first, ok := s.Next(after)
	if !ok || !come(first) {
		return nil, after
	}
	most := max(s.MaxMissed, 1)
	if at.Sub(first) <= onTime+s.Jitter { // nothing was missed
		for tick, ok := first, true; ok && come(tick); tick, ok = s.Next(tick) {
			run = append(run, tick)
		}
		return run, run[len(run)-1]
	}
	newest := newestOf(s, after, at, come, max(most, 1))
	last = newest[len(newest)-1]
	switch s.Missed {
	case MissedSkip: // of those that have just come, the newest is on time; the others came while nothing was running
		if at.Sub(last) <= onTime+s.Jitter {
			run = newest[len(newest)-1:]
		}
	case MissedRunAll:
		run = newest[max(0, len(newest)-most):]
	default:
		run = newest[len(newest)-1:]
	}
	c.s.o.Log.Info("scheduled times were missed", "workspace", t.Workspace, "workflow", t.WorkflowID, "node", t.Node, "since", first.UTC(),
		"policy", string(s.Missed), "started", len(run))
	return run, last
}

// newestOf are at least the newest so many times between two that have come, in order; all of them if there are fewer. It looks back
// further and further from the end, so that a schedule of every second costs no more after a year than after an hour.
func newestOf(s Schedule, after, at time.Time, come func(time.Time) bool, most int) (list []time.Time) {
	for window := time.Hour; ; window *= 8 {
		from := at.Add(-window)
		whole := !from.After(after)
		if whole {
			from = after
		}
		list = list[:0]
		for tick, ok := s.Next(from); ok && come(tick); tick, ok = s.Next(tick) {
			list = append(list, tick)
		}
		if whole || len(list) > most {
			return list
		}
	}
}

// jitter is how long the start of a scheduled time is put off: the same for the same time, and spread evenly over triggers.
func jitter(t *store.Trigger, s Schedule, tick time.Time) time.Duration {
	if s.Jitter <= 0 {
		return 0
	}
	h := fnv.New64a()
	// It never fails.
	_, _ = h.Write([]byte(strings.Join([]string{t.Workspace, t.WorkflowID, t.Node, tick.UTC().Format(time.RFC3339Nano)}, "\x00")))
	// As exact as the store keeps times.
	return time.Duration(h.Sum64()%uint64(s.Jitter.Milliseconds()+1)) * time.Millisecond
}

// cursorAt is a time as the cursor of a schedule: the last that is dealt with.
func cursorAt(at time.Time) []byte { return []byte(at.UTC().Format(time.RFC3339Nano)) }

func cursorTime(cursor []byte) (time.Time, error) {
	at, err := time.Parse(time.RFC3339Nano, string(cursor))
	if err != nil {
		return at, fault.Newf(fault.Internal, "how far a schedule has come cannot be read: %w", err)
	}
	return at, nil
}

// NextRuns are the next scheduled times of a trigger, with what they are put off by; none for one that has no schedule.
func (s *Service) NextRuns(t store.Trigger, count int) (runs []time.Time, err error) {
	scheduler, ok := s.sources[t.Kind].(Scheduler)
	if !ok || count <= 0 {
		return nil, nil
	}
	defer recovered(t.Kind, &err)
	schedule, err := scheduler.Schedule(s.trigger(t))
	if err != nil {
		return nil, err
	}
	tick := now()
	for range count {
		if tick, ok = schedule.Next(tick); !ok {
			break
		}
		runs = append(runs, tick.Add(jitter(&t, schedule, tick)))
	}
	return runs, nil
}

// RouteOf is where a trigger takes requests, with the address in front of its path; false: it takes none. That of a trigger which shares an
// account is the address of the account, which is the same for all of them.
func (s *Service) RouteOf(ctx context.Context, t store.Trigger) (r Route, ok bool, err error) {
	if source, is := s.sources[t.Kind].(Presenter); is {
		r, err := s.pageRoute(t, source)
		return r, err == nil, err
	}
	defer recovered(t.Kind, &err)
	r, source, ok, err := s.routeOf(t)
	if !ok || err != nil {
		return r, false, err
	}
	if source == nil && s.o.Callback != nil {
		account, known, err := s.AccountOf(ctx, t)
		if err != nil {
			return r, false, err
		}
		if address := s.o.Callback(account); known && address != "" {
			r.Path = address
			return r, true, nil
		}
	}
	address := cmp.Or(s.Address(t.Workspace, t.WorkflowID), HooksPath+Slug(t.Workspace, t.WorkflowID))
	r.Path = address + "/" + strings.Trim(r.Path, "/")
	return r, true, nil
}
