package calendar

import (
	"strings"
	"testing"
	"time"

	"tandem/fault"
)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	z, err := Zone("timezone", name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func TestZone(t *testing.T) {
	t.Parallel()
	for name, good := range map[string]bool{"Europe/Berlin": true, "UTC": true, "": true, "Local": false, "Mars/Base": false} {
		z, err := Zone("timezone", name)
		if (err == nil) != good || (z != nil) != (good && name != "") {
			t.Errorf("%q: %v, %v", name, z, err)
		}
		if err != nil && (fault.CodeOf(err) != fault.InvalidInput || fault.From(err).Details["path"] != "timezone") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// Times are read with an offset, or as times of the zone; in the night in which clocks change, too. Days are days in every zone.
func TestParse(t *testing.T) {
	t.Parallel()
	berlin := zone(t, "Europe/Berlin")
	for _, c := range []struct {
		written string
		zone    *time.Location
		want    string
	}{
		{"2026-11-20T12:00:00+01:00", nil, "2026-11-20T12:00:00+01:00"},
		{"2026-11-20T12:00Z", nil, "2026-11-20T12:00:00Z"},
		{"2026-11-20T12:00:00", berlin, "2026-11-20T12:00:00+01:00"},
		{" 2026-07-20 12:00 ", berlin, "2026-07-20T12:00:00+02:00"},
		{"2026-11-20T12:00:00Z", berlin, "2026-11-20T12:00:00Z"},
		{"2026-11-20", nil, "2026-11-20"},
		{"2026-11-20", berlin, "2026-11-20"},
		{"2026-03-29T03:30:00", berlin, "2026-03-29T03:30:00+02:00"},
	} {
		m, err := Parse("start", c.written, c.zone)
		if err != nil || m.String() != c.want || m.AllDay != (len(c.want) == len(Day)) {
			t.Errorf("%q: %s, %v; want %s", c.written, m, err, c.want)
		}
	}
	for written, part := range map[string]string{"2026-11-20T12:00:00": "set timezone", "tomorrow": "is not a time", "": "is not a time", "2026-02-30": "is not a time", "2026-11-20T25:00:00Z": "is not a time"} {
		if _, err := Parse("start", written, nil); fault.CodeOf(err) != fault.InvalidInput || !strings.Contains(err.Error(), part) || fault.From(err).Details["path"] != "start" {
			t.Errorf("%q: %v; want %q", written, err, part)
		}
	}
}

// Without an end an event takes an hour, or a day. Both ends are times, or both are days, and the second is not before the first.
func TestSpan(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ start, end, from, to string }{
		{"2026-11-20T12:00:00Z", "", "2026-11-20T12:00:00Z", "2026-11-20T13:00:00Z"},
		{"2026-11-20", "", "2026-11-20", "2026-11-21"},
		{"2026-11-20", "2026-11-20", "2026-11-20", "2026-11-21"},
		{"2026-11-20", "2026-11-23", "2026-11-20", "2026-11-23"},
		{"2026-11-20T12:00:00+01:00", "2026-11-20T11:00:00Z", "2026-11-20T12:00:00+01:00", "2026-11-20T11:00:00Z"},
		{"2026-12-31", "", "2026-12-31", "2027-01-01"},
	} {
		from, to, err := Span("start", c.start, c.end, nil)
		if err != nil || from.String() != c.from || to.String() != c.to {
			t.Errorf("%s to %s: %s, %s, %v", c.start, c.end, from, to, err)
		}
	}
	for _, c := range []struct{ start, end, path, part string }{
		{"2026-11-20", "2026-11-20T12:00:00Z", "end", "both be days"},
		{"2026-11-20T12:00:00Z", "2026-11-20T11:00:00Z", "end", "before it begins"},
		{"2026-11-20", "2026-11-19", "end", "before it begins"},
		{"soon", "", "start", "is not a time"},
		{"2026-11-20", "later", "end", "is not a time"},
	} {
		if _, _, err := Span("start", c.start, c.end, nil); fault.CodeOf(err) != fault.InvalidInput || !strings.Contains(err.Error(), c.part) || fault.From(err).Details["path"] != c.path {
			t.Errorf("%s to %s: %v; want %q at %q", c.start, c.end, err, c.part, c.path)
		}
	}
}

// A day is a range from its midnight in the zone, also on days of 23 and 25 hours.
func TestRange(t *testing.T) {
	t.Parallel()
	berlin := zone(t, "Europe/Berlin")
	for day, hours := range map[string]float64{"2026-03-29 2026-03-30": 23, "2026-10-25 2026-10-26": 25, "2026-11-20 2026-11-21": 24} {
		first, second, _ := strings.Cut(day, " ")
		from, to, err := Range(first, second, berlin)
		if err != nil || to.Sub(*from).Hours() != hours {
			t.Errorf("%s: %v to %v, %v; want %g hours", day, from, to, err, hours)
		}
	}
	if from, to, err := Range("", "", nil); from != nil || to != nil || err != nil {
		t.Errorf("nothing: %v, %v, %v", from, to, err)
	}
	for _, c := range []struct{ min, max, path, part string }{
		{"2026-11-20", "", "time_min", "set timezone"},
		{"", "x", "time_max", "is not a time"},
		{"2026-11-20T12:00:00Z", "2026-11-20T12:00:00Z", "time_max", "is not behind"},
	} {
		if _, _, err := Range(c.min, c.max, nil); fault.CodeOf(err) != fault.InvalidInput || !strings.Contains(err.Error(), c.part) || fault.From(err).Details["path"] != c.path {
			t.Errorf("%q to %q: %v", c.min, c.max, err)
		}
	}
}

// A list has as many events as a tool may return, with short descriptions, and says that there are more.
func TestList(t *testing.T) {
	t.Parallel()
	told := List([]Event{{ID: "a", Description: strings.Repeat("é", 2000)}}, false)
	list := told["events"].([]Event)
	if len(list) != 1 || list[0].Attendees == nil || len([]rune(list[0].Description)) > maxDescription+1 || told["truncated"] != false {
		t.Errorf("told %+v", told)
	}
	many := make([]Event, 200)
	for i := range many {
		many[i].Description = strings.Repeat("x", maxDescription)
	}
	told = List(many, false)
	if list := told["events"].([]Event); len(list) == 0 || len(list) == len(many) || told["truncated"] != true {
		t.Errorf("%d events, truncated %v", len(list), told["truncated"])
	}
	if told := List(nil, true); len(told["events"].([]Event)) != 0 || told["truncated"] != true {
		t.Errorf("told %+v", told)
	}
}
