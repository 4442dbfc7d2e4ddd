package start

import (
	"math/bits"
	"strconv"
	"strings"
	"time"

	"tandem/fault"
)

// cronTimes are the local times that a cron expression stands for: a bit for each value of each field.
type cronTimes struct {
	second, minute, hour, day, month, weekday uint64
	// anyDay and anyWeekday say that the field is *: a day has to fit both fields if one of them is, and one of them if neither is.
	anyDay, anyWeekday bool
}

// cronField is one field of an expression.
type cronField struct {
	name   string
	lo, hi int
	names  string // of the values from lo on, three letters each
}

func cronFields() [6]cronField {
	return [6]cronField{
		{"second", 0, 59, ""}, {"minute", 0, 59, ""}, {"hour", 0, 23, ""}, {"day of the month", 1, 31, ""},
		{"month", 1, 12, "janfebmaraprmayjunjulaugsepoctnovdec"}, {"day of the week", 0, 7, "sunmontuewedthufrisat"},
	}
}

// cronNames are the expressions that have a name.
func cronNames() map[string]string {
	return map[string]string{
		"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0", "@daily": "0 0 * * *",
		"@midnight": "0 0 * * *", "@hourly": "0 * * * *",
	}
}

// parseCron reads an expression of five fields, of six with seconds first, or a name.
func parseCron(text string) (cronTimes, error) {
	var c cronTimes
	plain := strings.ToLower(strings.TrimSpace(text))
	if strings.HasPrefix(plain, "@") {
		meaning, known := cronNames()[plain]
		if !known {
			return c, fault.Newf(fault.InvalidConfig, "%q is not one of @yearly, @monthly, @weekly, @daily and @hourly", text)
		}
		plain = meaning
	}
	parts := strings.Fields(plain)
	switch len(parts) {
	case 5:
		parts = append([]string{"0"}, parts...)
	case 6:
	default:
		return c, fault.Newf(fault.InvalidConfig, "a cron expression has 5 fields (minute, hour, day of the month, month, day of the week), or 6 with seconds first; %q has %d", text, len(parts))
	}
	into := [6]*uint64{&c.second, &c.minute, &c.hour, &c.day, &c.month, &c.weekday}
	for i, field := range cronFields() {
		set, err := field.parse(parts[i])
		if err != nil {
			return c, err
		}
		*into[i] = set
	}
	if c.weekday&(1<<7) != 0 { // Sunday may be written as 7
		c.weekday |= 1
	}
	c.anyDay, c.anyWeekday = parts[3][0] == '*' || parts[3] == "?", parts[5][0] == '*' || parts[5] == "?"
	return c, nil
}

// parse reads a field: values, ranges and steps, separated by commas.
func (f cronField) parse(text string) (set uint64, err error) {
	wrong := func(part string) error {
		return fault.Newf(fault.InvalidConfig, "%q cannot be the %s of a cron expression; write numbers from %d to %d, ranges (1-5), steps (*/15) or lists (1,3)", part, f.name, f.lo, f.hi)
	}
	for part := range strings.SplitSeq(text, ",") {
		span, stepText, stepped := strings.Cut(part, "/")
		step := 1
		if stepped {
			if step, err = strconv.Atoi(stepText); err != nil || step < 1 || step > f.hi-f.lo+1 {
				return 0, wrong(part)
			}
		}
		lo, hi := f.lo, f.hi
		if f.hi == 7 {
			hi = 6 // a week has seven days
		}
		switch first, last, ranged := strings.Cut(span, "-"); {
		case span == "*", span == "?" && !stepped && (f.hi == 31 || f.hi == 7):
		case ranged:
			var ok1, ok2 bool
			lo, ok1 = f.value(first)
			hi, ok2 = f.value(last)
			if !ok1 || !ok2 || lo > hi {
				return 0, wrong(part)
			}
		default:
			value, ok := f.value(span)
			if !ok {
				return 0, wrong(part)
			}
			if lo = value; !stepped {
				hi = value
			}
		}
		for v := lo; v <= hi; v += step {
			set |= 1 << v
		}
	}
	return set, nil
}

func (f cronField) value(text string) (int, bool) {
	if at := strings.Index(f.names, text); len(text) == 3 && at >= 0 && at%3 == 0 {
		return f.lo + at/3, true
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= f.lo && n <= f.hi && len(text) <= 2 && text[0] >= '0' && text[0] <= '9'
}

// onDay says whether a day is one of the times'.
func (c *cronTimes) onDay(day time.Time) bool {
	inMonth, inWeek := c.day&(1<<day.Day()) != 0, c.weekday&(1<<int(day.Weekday())) != 0
	if c.anyDay || c.anyWeekday {
		return inMonth && inWeek
	}
	return inMonth || inWeek
}

// maxCronDays is how far the next time may be away: the 29th of February of a weekday comes again within 40 years.
const maxCronDays = 366 * 41

// next is the first instant after another at which the clocks of a place show one of the times; false: there is none. A time that the
// clocks skip is the instant at which they go on; of a time that they show twice it is the first.
func (c *cronTimes) next(after time.Time, place *time.Location) (time.Time, bool) {
	local := after.In(place)
	// Wall times are counted in UTC, which has each of them once.
	wall := time.Date(local.Year(), local.Month(), local.Day(), local.Hour(), local.Minute(), local.Second(), 0, time.UTC).Add(time.Second)
	day := time.Date(wall.Year(), wall.Month(), wall.Day(), 0, 0, 0, 0, time.UTC)
	from := int(wall.Sub(day) / time.Second)
	for range maxCronDays {
		if c.month&(1<<int(day.Month())) != 0 && c.onDay(day) {
			for second, ok := c.inDay(from); ok; second, ok = c.inDay(second + 1) {
				if at := instantOf(day, second, place); at.After(after) {
					return at, true
				}
			}
		}
		day, from = day.AddDate(0, 0, 1), 0
	}
	return time.Time{}, false
}

// inDay is the first second of a day that fits, from one on.
func (c *cronTimes) inDay(from int) (int, bool) {
	hour, minute, second := from/3600, from/60%60, from%60
	for h, ok := lowest(c.hour, hour); ok; h, ok = lowest(c.hour, h+1) {
		if h > hour {
			minute, second = 0, 0
		}
		for m, ok := lowest(c.minute, minute); ok; m, ok = lowest(c.minute, m+1) {
			if h > hour || m > minute {
				second = 0
			}
			if s, ok := lowest(c.second, second); ok {
				return h*3600 + m*60 + s, true
			}
		}
		minute = 0
	}
	return 0, false
}

// lowest is the lowest value of a set that is not below another.
func lowest(set uint64, from int) (int, bool) {
	if from > 63 {
		return 0, false
	}
	rest := set >> from << from
	return bits.TrailingZeros64(rest), rest != 0
}

// instantOf is when the clocks of a place show a second of a day for the first time, or, if they skip it, when they go on.
func instantOf(day time.Time, second int, place *time.Location) time.Time {
	hour, minute, rest := second/3600, second/60%60, second%60
	at := time.Date(day.Year(), day.Month(), day.Day(), hour, minute, rest, 0, place)
	if at.Hour() == hour && at.Minute() == minute && at.Second() == rest {
		// A time that is shown twice: the first has the greater offset, which was in force before the clocks went back.
		if start, _ := at.ZoneBounds(); !start.IsZero() {
			_, now := at.Zone()
			_, before := start.Add(-time.Second).Zone()
			if earlier := at.Add(time.Duration(now-before) * time.Second); before > now && earlier.Before(start) {
				return earlier
			}
		}
		return at
	}
	// time.Date has taken the offset of one side of the gap; the clocks go on at its end.
	start, end := at.ZoneBounds()
	if !start.IsZero() && at.Sub(start) < 24*time.Hour && !skips(at, hour, minute, rest) {
		return start
	}
	return end
}

// skips says that a time lies before the wall time that was asked for.
func skips(at time.Time, hour, minute, second int) bool {
	return at.Hour()*3600+at.Minute()*60+at.Second() < hour*3600+minute*60+second
}
