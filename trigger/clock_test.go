package trigger

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"tandem/store"
)

// What is started of the times that a schedule had while nothing was running.
func TestClock_Due(t *testing.T) {
	t.Parallel()
	c := newClock(&Service{o: Options{Log: slog.New(slog.DiscardHandler)}})
	begin := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	every := func(d time.Duration, missed Missed) Schedule {
		return Schedule{Missed: missed, MaxMissed: 3, Next: func(after time.Time) (time.Time, bool) { return after.Truncate(d).Add(d), true }}
	}
	for name, x := range map[string]struct {
		schedule Schedule
		down     time.Duration
		want     string // seconds after the beginning
	}{
		"SkipOften":       {every(5*time.Second, MissedSkip), 42 * time.Second, "[40]"},
		"SkipSeldom":      {every(time.Hour, MissedSkip), 3*time.Hour + time.Minute, "[]"},
		"SkipJustNow":     {every(time.Hour, MissedSkip), 3*time.Hour + 20*time.Second, "[10800]"},
		"OnceOften":       {every(5*time.Second, MissedRunOnce), 42 * time.Second, "[40]"},
		"AllOften":        {every(5*time.Second, MissedRunAll), 42 * time.Second, "[30 35 40]"},
		"NothingMissed":   {every(5*time.Second, MissedSkip), 12 * time.Second, "[5 10]"},
		"NothingHasCome":  {every(time.Hour, MissedSkip), time.Minute, "[]"},
		"AllOfTheFewNone": {every(time.Hour, MissedRunAll), 2*time.Hour + time.Minute, "[3600 7200]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run, last := c.due(&store.Trigger{}, x.schedule, begin, begin.Add(x.down))
			seconds := []int{}
			for _, tick := range run {
				seconds = append(seconds, int(tick.Sub(begin)/time.Second))
			}
			if got := fmt.Sprint(seconds); got != x.want {
				t.Errorf("started %s, want %s", got, x.want)
			}
			if next, _ := x.schedule.Next(last); !next.After(begin.Add(x.down)) {
				t.Errorf("the last that is dealt with is %v: there is one more", last)
			}
		})
	}
}
