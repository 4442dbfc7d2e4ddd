package start

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tandem/fault"
)

func TestCron_Next(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		expression, zone, after string
		want                    []string
	}{
		"Daily":       {"0 9 * * *", "UTC", "2026-01-01T09:00:00Z", []string{"2026-01-02T09:00:00Z", "2026-01-03T09:00:00Z"}},
		"Seconds":     {"*/20 30 8 * * *", "UTC", "2026-01-01T08:30:10Z", []string{"2026-01-01T08:30:20Z", "2026-01-01T08:30:40Z", "2026-01-02T08:30:00Z"}},
		"Names":       {"0 0 * FEB mon-fri/2", "UTC", "2026-01-01T00:00:00Z", []string{"2026-02-02T00:00:00Z", "2026-02-04T00:00:00Z", "2026-02-06T00:00:00Z", "2026-02-09T00:00:00Z"}},
		"Sunday":      {"0 0 * * 7", "UTC", "2026-01-01T00:00:00Z", []string{"2026-01-04T00:00:00Z"}},
		"EitherDay":   {"0 0 13 * fri", "UTC", "2026-01-01T00:00:00Z", []string{"2026-01-02T00:00:00Z", "2026-01-09T00:00:00Z", "2026-01-13T00:00:00Z"}},
		"QuestionDay": {"0 0 1 * ?", "UTC", "2026-01-01T00:00:00Z", []string{"2026-02-01T00:00:00Z"}},
		"LeapDay":     {"0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", []string{"2028-02-29T00:00:00Z"}},
		"Yearly":      {"@yearly", "UTC", "2026-01-01T00:00:00Z", []string{"2027-01-01T00:00:00Z"}},
		"Hourly":      {"@Hourly", "UTC", "2026-01-01T00:59:59.5Z", []string{"2026-01-01T01:00:00Z"}},
		"Step":        {"5/30 * * * *", "UTC", "2026-01-01T00:00:00Z", []string{"2026-01-01T00:05:00Z", "2026-01-01T00:35:00Z", "2026-01-01T01:05:00Z"}},
		// Berlin skips 02:00 to 03:00 on 29 March and shows it twice on 25 October.
		"Skipped":         {"30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}},
		"SkippedOnce":     {"*/20 2 * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"}},
		"Doubled":         {"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", []string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
		"DoubledWithin":   {"30 2 * * *", "Europe/Berlin", "2026-10-25T01:10:00Z", []string{"2026-10-26T01:30:00Z"}},
		"DoubledHourly":   {"0 * * * *", "Europe/Berlin", "2026-10-24T23:30:00Z", []string{"2026-10-25T00:00:00Z", "2026-10-25T02:00:00Z"}},
		"SkippedNewYork":  {"0 2 * * *", "America/New_York", "2026-03-07T12:00:00Z", []string{"2026-03-08T07:00:00Z", "2026-03-09T06:00:00Z"}},
		"SkippedMidnight": {"0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00Z", []string{"2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"}},
		"HalfHour":        {"45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00:00Z", []string{"2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"}},
	} {
		times, err := parseCron(c.expression)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		at := timeOf(t, c.after)
		for _, want := range c.want {
			next, ok := times.next(at, placeOf(t, c.zone))
			if !ok || next.UTC().Format(time.RFC3339) != want {
				t.Errorf("%s: after %s comes %s (%v), want %s", name, at.UTC(), next.UTC(), ok, want)
				break
			}
			at = next
		}
	}
	never, err := parseCron("0 0 31 2 *")
	if _, ok := never.next(time.Now(), time.UTC); ok || err != nil {
		t.Errorf("the 31st of February comes: %v", err)
	}
}

func timeOf(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func placeOf(t testing.TB, name string) *time.Location {
	t.Helper()
	place, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return place
}

func TestCron_Refuses(t *testing.T) {
	t.Parallel()
	for text, part := range map[string]string{
		"":               "5 fields",
		"* * * *":        "5 fields",
		"* * * * * * *":  "5 fields",
		"60 * * * *":     "minute",
		"* 24 * * *":     "hour",
		"* * 0 * *":      "day of the month",
		"* * * 13 *":     "month",
		"* * * * 8":      "day of the week",
		"5-1 * * * *":    "minute",
		"*/0 * * * *":    "minute",
		"*/ * * * *":     "minute",
		", * * * *":      "minute",
		"? * * * *":      "minute",
		"x * * * *":      "minute",
		"+1 * * * *":     "minute",
		"@every 5m":      "@daily",
		"@reboot":        "@daily",
		"* * * janfeb *": "month",
		"* * * anf *":    "month",
	} {
		if _, err := parseCron(text); fault.CodeOf(err) != fault.InvalidConfig || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: %v, want a refusal that names %q", text, err, part)
		}
	}
}

// TestCron_Brute holds the next time against looking at every minute: the first instant at which the clocks show a time that fits, or at
// which they pass over one.
func TestCron_Brute(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		zone := rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "America/New_York", "America/Sao_Paulo", "Australia/Lord_Howe", "Asia/Kathmandu"}).Draw(r, "zone")
		expression := rapid.SampledFrom([]string{"30 2 * * *", "*/15 * * * *", "0 0 * * *", "45 1 * * 0", "5 3 29 3 *", "10,50 1-3 * * *"}).Draw(r, "expression")
		place := placeOf(t, zone)
		times, err := parseCron(expression)
		if err != nil {
			t.Fatal(err)
		}
		after := time.Unix(rapid.Int64Range(timeOf(t, "2018-01-01T00:00:00Z").Unix(), timeOf(t, "2027-01-01T00:00:00Z").Unix()).Draw(r, "after")/60*60, 0)
		got, ok := times.next(after, place)
		if !ok || !got.After(after) {
			r.Fatalf("after %s comes %s, %v", after, got, ok)
		}
		if got.Sub(after) > 30*time.Hour { // too far to look at every minute
			return
		}
		if want := bruteNext(times, after, place); !want.Equal(got) {
			r.Fatalf("%s in %s after %s: %s, want %s", expression, zone, after.UTC(), got.UTC(), want.UTC())
		}
	})
}

func bruteNext(times cronTimes, after time.Time, place *time.Location) time.Time {
	fits := func(wall time.Time) bool {
		return times.month&(1<<int(wall.Month())) != 0 && times.onDay(wall) && times.hour&(1<<wall.Hour()) != 0 && times.minute&(1<<wall.Minute()) != 0
	}
	wallOf := func(at time.Time) time.Time {
		l := at.In(place)
		return time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), 0, 0, time.UTC)
	}
	for at := after.Add(time.Minute); ; at = at.Add(time.Minute) {
		// Everything that the clocks have not shown before and show now, or pass over.
		latest := wallOf(at.Add(-3 * time.Hour))
		for before := at.Add(-3 * time.Hour); before.Before(at); before = before.Add(time.Minute) {
			if w := wallOf(before); w.After(latest) {
				latest = w
			}
		}
		for wall := latest.Add(time.Minute); !wall.After(wallOf(at)); wall = wall.Add(time.Minute) {
			if fits(wall) {
				return at
			}
		}
	}
}

// A day has to fit both fields of days if one of them begins with a star, as the documentation says.
func TestCron_DaysOfMonthAndWeek(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		"0 0 */2 * mon": "Mon 7 Mon 21 Mon 11", "0 0 1 * mon": "Tue 1 Mon 7 Mon 14", "0 0 * * mon": "Mon 7 Mon 14 Mon 21", "0 0 13 * *": "Sun 13 Wed 13 Fri 13",
		"0 0 13 * */2": "Sun 13 Thu 13 Thu 13",
	} { // order does not matter: each is for itself
		times, err := parseCron(expression)
		if err != nil {
			t.Fatal(err)
		}
		at, got := time.Date(2030, 9, 30, 12, 0, 0, 0, time.UTC), ""
		for range 3 {
			at, _ = times.next(at, time.UTC)
			got += at.Format(" Mon 2")
		}
		if got[1:] != want {
			t.Errorf("%s: %s, want %s", expression, got[1:], want)
		}
	}
}
