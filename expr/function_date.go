package expr

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// dateLayouts, read-only, are tried in order. Without an offset a date is in UTC.
var dateLayouts = [...]string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00",
	"2006-01-02 15:04:05.999999999", "2006-01-02T15:04", "2006-01-02"}

const longestDate = 64 // bytes of text

// fixedOffset keeps the instant and the offset of a date and drops its time zone, whose rules are the machine's.
func fixedOffset(t time.Time) time.Time {
	t = t.Round(0) // no monotonic reading either
	_, offset := t.Zone()
	if offset == 0 {
		return t.UTC()
	}
	return t.In(time.FixedZone("", offset))
}

func fnNow(r *run, _ *call, _ []any) (any, error) { return r.env.Now().UTC().Round(0), nil }

func fnDate(r *run, c *call, args []any) (any, error) {
	if args[0] == nil {
		return nil, nil
	}
	return r.date(c, args[0])
}

func (r *run) date(c *call, v any) (any, error) {
	switch x := v.(type) {
	case time.Time:
		return x, nil
	case string:
		if err := r.step(10); err != nil {
			return nil, err
		}
		if s := strings.TrimSpace(clipBytes(x)); len(s) <= longestDate {
			for _, layout := range dateLayouts {
				// In UTC, or an offset that happens to be the machine's would bring in the machine's time zone.
				if t, err := time.ParseInLocation(layout, s, time.UTC); err == nil {
					return r.inRange(fixedOffset(t))
				}
			}
		}
		return nil, r.fail("%s cannot read %q as a date; write it as 2006-01-02T15:04:05Z", c.f.name, clip(x))
	}
	if !isNumber(v) {
		return nil, r.fail("%s cannot make a date of %s", c.f.name, typeName(v))
	}
	f, err := r.float(v)
	if err != nil {
		return nil, err
	}
	if math.IsNaN(f) || math.Abs(f) > 1<<40 {
		return nil, r.fail("%s needs Unix seconds between the years 0 and 9999; divide milliseconds by 1000", c.f.name)
	}
	whole := math.Floor(f)
	return r.inRange(time.Unix(int64(whole), int64(math.Round((f-whole)*1e6))*1e3).UTC())
}

// clipBytes keeps enough of a text to see that it is too long.
func clipBytes(s string) string { return s[:min(len(s), 2*longestDate)] }

// inRange refuses years that RFC 3339 cannot write.
func (r *run) inRange(t time.Time) (any, error) {
	if y := t.Year(); y < 0 || y > 9999 {
		return nil, r.fail("the date is outside the years 0 to 9999")
	}
	return t, nil
}

// units of duration texts, read-only, longer names before those that start like them.
var units = [...]struct {
	name string
	size time.Duration
}{
	{"ms", time.Millisecond}, {"us", time.Microsecond}, {"µs", time.Microsecond}, {"ns", time.Nanosecond},
	{"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second},
}

func fnDuration(r *run, c *call, args []any) (any, error) {
	switch x := args[0].(type) {
	case nil:
		return nil, nil
	case time.Duration:
		return x, nil
	case string:
		if err := r.step(10); err != nil {
			return nil, err
		}
		if d, ok := parseDuration(strings.TrimSpace(clipBytes(x))); ok && len(x) <= longestDate {
			return d, nil
		}
		return nil, r.fail("%s cannot read %q; write it as 1h30m, 7d or PT1H30M", c.f.name, clip(x))
	}
	if !isNumber(args[0]) {
		return nil, r.fail("%s cannot make a duration of %s", c.f.name, typeName(args[0]))
	}
	f, err := r.float(args[0])
	if err != nil {
		return nil, err
	}
	return r.span(f * float64(time.Second))
}

// span makes a duration of nanoseconds.
func (r *run) span(ns float64) (any, error) {
	if math.IsNaN(ns) || math.Abs(ns) >= 1<<63 {
		return nil, r.fail("the duration is longer than 292 years")
	}
	return time.Duration(math.Round(ns)), nil
}

// parseDuration reads 1h30m, -2.5d, P7D and PT1H30M. Months and years have no fixed length and are refused.
func parseDuration(s string) (time.Duration, bool) {
	s, negative := strings.CutPrefix(s, "-")
	if iso, ok := strings.CutPrefix(s, "P"); ok {
		days, clock, hasClock := strings.Cut(iso, "T")
		if strings.ContainsAny(days, "HMS") || hasClock && (clock == "" || strings.ContainsAny(clock, "DW")) {
			return 0, false
		}
		s = strings.ToLower(days + clock)
	}
	var total float64
	for s != "" {
		n := numberSize(s)
		if n == 0 {
			return 0, false
		}
		f, err := strconv.ParseFloat(s[:n], 64)
		if err != nil {
			return 0, false
		}
		s = s[n:]
		known := false
		for _, u := range units {
			if strings.HasPrefix(s, u.name) {
				total += f * float64(u.size)
				s, known = s[len(u.name):], true
				break
			}
		}
		if !known {
			return 0, false
		}
	}
	if negative {
		total = -total
	}
	if math.Abs(total) >= 1<<63 {
		return 0, false
	}
	return time.Duration(math.Round(total)), true
}

// dateArithmetic answers the operators on dates and durations; known is false if the operands are others.
func (r *run) dateArithmetic(op string, x, y any) (v any, known bool, err error) {
	switch a := x.(type) {
	case time.Time:
		switch b := y.(type) {
		case time.Time:
			if op == "-" {
				v, err = r.exactSpan(a.Sub(b), a, b)
				return v, true, err
			}
		case time.Duration:
			switch op {
			case "+":
				v, err = r.inRange(a.Add(b))
				return v, true, err
			case "-":
				v, err = r.inRange(a.Add(-b))
				return v, true, err
			}
		}
	case time.Duration:
		switch b := y.(type) {
		case time.Time:
			if op == "+" {
				v, err = r.inRange(b.Add(a))
				return v, true, err
			}
		case time.Duration:
			switch op {
			case "+", "-":
				v, err = r.wholeArithmetic(op, int64(a), int64(b))
				if ns, ok := v.(int64); ok {
					v = time.Duration(ns)
				}
				return v, true, err
			case "/":
				v, err = r.floatArithmetic("/", float64(a), float64(b))
				return v, true, err
			}
		}
		if isNumber(y) && (op == "*" || op == "/") {
			v, err = r.scaled(op, a, y)
			return v, true, err
		}
	}
	if b, ok := y.(time.Duration); ok && op == "*" && isNumber(x) {
		v, err = r.scaled(op, b, x)
		return v, true, err
	}
	return nil, false, nil
}

// exactSpan refuses a difference that time had to cut.
func (r *run) exactSpan(d time.Duration, a, b time.Time) (any, error) {
	if !b.Add(d).Equal(a) {
		return nil, r.fail("the dates are more than 292 years apart")
	}
	return d, nil
}

func (r *run) scaled(op string, d time.Duration, by any) (any, error) {
	v, err := r.floatArithmetic(op, float64(d), by)
	if err != nil {
		return nil, err
	}
	return r.span(v.(float64))
}

// instant is a date as a key that is equal for equal instants.
func instant(v any) (any, bool) {
	t, ok := v.(time.Time)
	if !ok {
		return nil, false
	}
	return t.UTC(), true
}

// bigDigits writes a whole float in full.
func bigDigits(f float64) string {
	n, _ := big.NewFloat(f).Int(nil)
	return n.String()
}

func fnFormatDate(r *run, c *call, args []any) (any, error) {
	layout, ok, err := r.textArg(c, args[1])
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, r.fail("%s needs a layout such as '%%Y-%%m-%%d'", c.f.name)
	}
	if args[0] == nil {
		return nil, nil
	}
	d, err := r.date(c, args[0])
	if err != nil {
		return nil, err
	}
	t := d.(time.Time)
	if err := r.step(1 + len(layout)); err != nil {
		return nil, err
	}
	parts, err := ReadDateLayout(layout)
	if err != nil {
		return nil, r.fail("%s %s", c.f.name, err.Error())
	}
	var out strings.Builder
	for _, part := range parts.parts {
		piece := part.write(t)
		if err := r.alloc(2 * len(piece)); err != nil {
			return nil, err
		}
		out.WriteString(piece)
	}
	return out.String(), nil
}
