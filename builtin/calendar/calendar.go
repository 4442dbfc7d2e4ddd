// Package calendar is what the calendars of all vendors share: when an event begins and ends, with time zones and whole days, and an event
// as a model reads it.
//
// The packages of vendors import it. It knows nothing of any vendor.
package calendar

import (
	"encoding/json"
	"strings"
	"time"
	_ "time/tzdata" // time zones are known on every machine

	"tandem/fault"
	"tandem/text"
)

// Day is how a day is written.
const Day = "2006-01-02"

// Moment is when something begins or ends: a time, or a whole day.
type Moment struct {
	AllDay bool
	// Time is the time; of a whole day its midnight in UTC.
	Time time.Time
}

// Zone reads the name of a time zone; nil for an empty one.
func Zone(field, name string) (*time.Location, error) {
	if name == "" {
		return nil, nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return nil, fault.Newf(fault.InvalidInput, "%s: %q is not a time zone; write one like Europe/Berlin or UTC", field, name).With("path", field)
	}
	return zone, nil
}

// Parse reads a time or a day. A time without an offset is one of the zone, and cannot be read without one.
func Parse(field, written string, zone *time.Location) (Moment, error) {
	given := strings.Replace(strings.TrimSpace(written), " ", "T", 1)
	if day, err := time.Parse(Day, given); err == nil {
		return Moment{AllDay: true, Time: day}, nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z07:00"} {
		if at, err := time.Parse(layout, given); err == nil {
			return Moment{Time: at}, nil
		}
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04"} {
		if _, err := time.Parse(layout, given); err != nil {
			continue
		}
		if zone == nil {
			return Moment{}, fault.Newf(fault.InvalidInput, "%s: %q has no offset; set timezone, or write it like 2026-11-20T12:00:00+01:00", field, written).
				With("path", field)
		}
		at, err := time.ParseInLocation(layout, given, zone)
		return Moment{Time: at}, err
	}
	return Moment{}, fault.Newf(fault.InvalidInput, "%s: %q is not a time; write it like 2026-11-20T12:00:00+01:00, or 2026-11-20 for a whole day", field, written).
		With("path", field)
}

// Instant is the moment as a time: a day begins at midnight in the zone.
func (m Moment) Instant(zone *time.Location) time.Time {
	if !m.AllDay {
		return m.Time
	}
	return time.Date(m.Time.Year(), m.Time.Month(), m.Time.Day(), 0, 0, 0, 0, zone)
}

// After is the moment later by a while.
func (m Moment) After(d time.Duration) Moment { return Moment{m.AllDay, m.Time.Add(d)} }

// String writes the moment: a day, or a time with its offset.
func (m Moment) String() string {
	if m.AllDay {
		return m.Time.Format(Day)
	}
	return m.Time.Format(time.RFC3339)
}

// Length is how long an event is unless somebody says so: one hour, or one day.
func (m Moment) Length() time.Duration {
	if m.AllDay {
		return 24 * time.Hour
	}
	return time.Hour
}

// Span is when an event begins and ends. The end of one of whole days is the day after its last; the same day as its first means one day.
func Span(field, start, end string, zone *time.Location) (from, to Moment, err error) {
	if from, err = Parse(field, start, zone); err != nil {
		return from, to, err
	}
	if end == "" {
		return from, from.After(from.Length()), nil
	}
	if to, err = Parse("end", end, zone); err != nil {
		return from, to, err
	}
	if from.AllDay != to.AllDay {
		return from, to, fault.Newf(fault.InvalidInput, "%s and end must both be times, or both be days: %q and %q", field, start, end).With("path", "end")
	}
	if from.AllDay && from.Time.Equal(to.Time) {
		to = from.After(from.Length())
	}
	if to.Time.Before(from.Time) {
		return from, to, fault.Newf(fault.InvalidInput, "the event would end before it begins: %s is before %s", to, from).With("path", "end")
	}
	return from, to, nil
}

// Bound reads an end of a range of time, nil for an empty one. A day is its midnight in the zone, which must be known then.
func Bound(field, written string, zone *time.Location) (*time.Time, error) {
	if written == "" {
		return nil, nil
	}
	m, err := Parse(field, written, zone)
	if err != nil {
		return nil, err
	}
	if m.AllDay && zone == nil {
		return nil, fault.Newf(fault.InvalidInput, "%s: %q is a day, which begins at another time in each zone; set timezone", field, written).With("path", field)
	}
	at := m.Instant(zone)
	return &at, nil
}

// Range reads both ends of a range of time, of which the second must be behind the first.
func Range(min, max string, zone *time.Location) (from, to *time.Time, err error) {
	if from, err = Bound("time_min", min, zone); err != nil {
		return nil, nil, err
	}
	if to, err = Bound("time_max", max, zone); err != nil {
		return nil, nil, err
	}
	if from != nil && to != nil && !to.After(*from) {
		return nil, nil, fault.Newf(fault.InvalidInput, "time_max %q is not behind time_min %q", max, min).With("path", "time_max")
	}
	return from, to, nil
}

// Event is an event as a model reads it. Start and End are times with an offset, or days; the End of days is the day after the last.
type Event struct {
	ID          string   `json:"event_id"`
	Summary     string   `json:"summary"`
	Start       string   `json:"start"`
	End         string   `json:"end"`
	AllDay      bool     `json:"all_day"`
	Location    string   `json:"location"`
	Description string   `json:"description"`
	Attendees   []string `json:"attendees"`
	Status      string   `json:"status"`
	URL         string   `json:"event_url"`
	MeetingLink string   `json:"meeting_link"`
	// ETag is what the event has until somebody changes it, where the calendar says so.
	ETag string `json:"etag,omitempty"`
}

const (
	// maxDescription is how much of a description a model reads in a list.
	maxDescription = 1000
	// room is how many bytes a list of events has, less than what a tool may return.
	room = 60 << 10
)

// List are events as a tool returns them: as many as fit, and whether there are more.
func List(events []Event, more bool) map[string]any {
	list, used := []Event{}, 0
	for _, e := range events {
		e.Description = text.Clip(e.Description, maxDescription)
		if e.Attendees == nil {
			e.Attendees = []string{}
		}
		written, err := json.Marshal(e)
		if used += len(written) + 1; err != nil || used > room {
			more = true
			break
		}
		list = append(list, e)
	}
	return map[string]any{"events": list, "truncated": more}
}

// Busy is a time in which somebody is not free.
type Busy struct {
	Start string `json:"start"`
	End   string `json:"end"`
}

// Zoned is the zone in which a model reads and writes times, as a part of the configuration of its tools.
type Zoned struct {
	Timezone   string `json:"timezone" doc:"The time zone of times that have no offset, and in which days begin." zh:"时区：不带时差的时间以及每天起点所在的时区。"`
	MaxResults int    `json:"max_results" range:"1..250" doc:"How many events the model is told of at once." zh:"最大数量：一次告知模型的活动数。"`
}

// ConfiguredZone is the zone that a configuration names as timezone; UTC if it names none.
func ConfiguredZone(name string) (*time.Location, error) {
	zone, err := Zone("timezone", name)
	switch {
	case err != nil:
		return nil, fault.New(fault.InvalidConfig, fault.From(err).Message).With("path", "configurations.timezone")
	case zone == nil:
		return time.UTC, nil
	}
	return zone, nil
}

// usualWindow is how far ahead events are looked for when the model does not say so.
const usualWindow = 30 * 24 * time.Hour

// Window is the time in which a model looks for events.
type Window struct {
	TimeMin string `json:"time_min" doc:"The beginning of the time that is looked at, such as 2026-11-20T12:00:00+01:00 or 2026-11-20; without it now."`
	TimeMax string `json:"time_max" doc:"The end of it; without it 30 days later."`
}

// Bounds are the beginning and the end, for calendars that want both.
func (w Window) Bounds(now time.Time, zone *time.Location) (from, to time.Time, err error) {
	least, most, err := Range(w.TimeMin, w.TimeMax, zone)
	if err != nil {
		return from, to, err
	}
	if from = now; least != nil {
		from = *least
	}
	if to = from.Add(usualWindow); most != nil {
		to = *most
	}
	return from, to, nil
}

// Draft is what a model says of an event first, whatever calendar it is in.
type Draft struct {
	Start   string `json:"start" doc:"When it begins: a time such as 2026-11-20T12:00:00+01:00, or a day such as 2026-11-20 for whole days."`
	End     string `json:"end" doc:"When it ends; of whole days the day after the last. Without it a new event takes an hour or a day, and one that is moved stays as long as it is."`
	Summary string `json:"summary" doc:"What it is called."`
}
