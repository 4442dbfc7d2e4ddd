package caldav

import (
	"slices"
	"strings"
	"time"

	"github.com/emersion/go-ical"
	"github.com/teambition/rrule-go"

	"tandem/builtin/calendar"
)

// occurrence is one time that an event takes place.
type occurrence struct {
	event    ical.Event
	from, to calendar.Moment
}

// maxSteps is how many occurrences of an event are gone through: a rule may say every second since 1970.
const maxSteps = 100_000

// moment reads a time of an event. One in a zone that nobody knows, or in none, is taken as one of the zone that the node has.
func moment(p *ical.Prop, zone *time.Location) (calendar.Moment, bool) {
	if p == nil {
		return calendar.Moment{}, false
	}
	if len(p.Value) == len("20060102") {
		day, err := time.Parse("20060102", p.Value)
		return calendar.Moment{AllDay: true, Time: day}, err == nil
	}
	if at, err := p.DateTime(zone); err == nil {
		return calendar.Moment{Time: at}, true
	}
	at, err := time.ParseInLocation("20060102T150405", p.Value, zone)
	return calendar.Moment{Time: at}, err == nil
}

// span is when an event begins and ends, or would if it took place once.
func span(e ical.Event, zone *time.Location) (from, to calendar.Moment, ok bool) {
	if from, ok = moment(e.Props.Get(ical.PropDateTimeStart), zone); !ok {
		return from, to, false
	}
	if to, ok = moment(e.Props.Get(ical.PropDateTimeEnd), zone); ok {
		return from, to, true
	}
	if p := e.Props.Get(ical.PropDuration); p != nil {
		if d, err := p.Duration(); err == nil {
			return from, from.After(d), true
		}
	}
	if from.AllDay {
		return from, from.After(24 * time.Hour), true
	}
	return from, from, true
}

// instant is when a moment is, for what has to be compared.
func instant(m calendar.Moment, zone *time.Location) time.Time { return m.Instant(zone) }

// overlaps says whether an event is in a range of time.
func (o occurrence) overlaps(from, to time.Time, zone *time.Location) bool {
	begins, ends := instant(o.from, zone), instant(o.to, zone)
	return begins.Before(to) && (ends.After(from) || begins.Equal(ends) && !begins.Before(from))
}

// expand are the occurrences of an entry in a range of time; more says that there may be others.
func expand(e entry, from, to time.Time, zone *time.Location) (list []occurrence, more bool) {
	changed := map[string]bool{} // by their UID and when they would have been
	var series []ical.Event
	for _, event := range e.calendar.Events() {
		at, is := moment(event.Props.Get(ical.PropRecurrenceID), zone)
		if !is {
			series = append(series, event)
			continue
		}
		changed[uid(event)+"\x00"+instant(at, zone).UTC().String()] = true
		if begins, ends, ok := span(event, zone); ok {
			list = append(list, occurrence{event, begins, ends})
		}
	}
	for _, event := range series {
		begins, ends, ok := span(event, zone)
		if !ok {
			continue
		}
		times, cut := recurrences(event, begins, to, zone)
		more = more || cut
		for _, at := range times {
			o := occurrence{event, calendar.Moment{AllDay: begins.AllDay, Time: at},
				calendar.Moment{AllDay: begins.AllDay, Time: at.Add(ends.Time.Sub(begins.Time))}}
			if !changed[uid(event)+"\x00"+instant(o.from, zone).UTC().String()] {
				list = append(list, o)
			}
		}
	}
	list = slices.DeleteFunc(list, func(o occurrence) bool { return !o.overlaps(from, to, zone) })
	return list, more
}

func uid(e ical.Event) string {
	if p := e.Props.Get(ical.PropUID); p != nil {
		return p.Value
	}
	return ""
}

// recurrences are the times at which an event begins, until a time. Days are counted in UTC, where none is longer than others.
func recurrences(e ical.Event, begins calendar.Moment, until time.Time, zone *time.Location) (times []time.Time, cut bool) {
	rule, err := e.Props.RecurrenceRule()
	dates := listed(e, ical.PropRecurrenceDates, zone)
	if err != nil || rule == nil && len(dates) == 0 {
		return []time.Time{begins.Time}, err != nil // a rule that cannot be read: the first is all that is known
	}
	set := rrule.Set{}
	if rule != nil {
		rule.Dtstart = begins.Time
		made, err := rrule.NewRRule(*rule)
		if err != nil {
			return []time.Time{begins.Time}, true
		}
		set.RRule(made)
	} else {
		set.RDate(begins.Time)
	}
	for _, at := range dates {
		set.RDate(at)
	}
	for _, at := range listed(e, ical.PropExceptionDates, zone) {
		set.ExDate(at)
	}
	next := set.Iterator()
	for range maxSteps {
		at, ok := next()
		if !ok || !instant(calendar.Moment{AllDay: begins.AllDay, Time: at}, zone).Before(until) {
			return times, false
		}
		times = append(times, at)
	}
	return times, true
}

// listed are the times of a property that may be there several times, each with several values.
func listed(e ical.Event, name string, zone *time.Location) (times []time.Time) {
	for _, p := range e.Props.Values(name) {
		for value := range strings.SplitSeq(p.Value, ",") {
			one := p
			if one.Value = strings.TrimSpace(value); strings.Contains(value, "/") { // a period: it begins then
				one.Value, _, _ = strings.Cut(value, "/")
			}
			if m, ok := moment(&one, zone); ok {
				times = append(times, m.Time)
			}
		}
	}
	return times
}

// words are a text of an event.
func words(e ical.Event, name string) string {
	p := e.Props.Get(name)
	if p == nil {
		return ""
	}
	text, err := p.Text()
	if err != nil {
		return p.Value
	}
	return text
}

// told is an occurrence as a model reads it, with its times in the zone.
func (o occurrence) told(name, etag string, zone *time.Location) calendar.Event {
	from, to := o.from, o.to
	if !from.AllDay {
		from.Time, to.Time = from.Time.In(zone), to.Time.In(zone)
	}
	out := calendar.Event{
		ID: name, Summary: words(o.event, ical.PropSummary), Start: from.String(), End: to.String(), AllDay: from.AllDay,
		Location:    words(o.event, ical.PropLocation),
		Description: words(o.event, ical.PropDescription), Status: strings.ToLower(words(o.event, ical.PropStatus)),
		URL: words(o.event, ical.PropURL), Attendees: []string{}, ETag: etag,
	}
	for _, p := range o.event.Props.Values(ical.PropAttendee) {
		out.Attendees = append(out.Attendees, strings.TrimPrefix(strings.TrimPrefix(p.Value, "mailto:"), "MAILTO:"))
	}
	return out
}

// busy says whether an event takes the time of the person who has it.
func busy(e ical.Event) bool {
	return !strings.EqualFold(words(e, ical.PropTransparency), "TRANSPARENT") && !strings.EqualFold(words(e, ical.PropStatus), "CANCELLED")
}

// joined are times that lie apart, in order.
func joined(list []occurrence, from, to time.Time, zone *time.Location) []calendar.Busy {
	type period struct{ from, to time.Time }
	var periods []period
	for _, o := range list {
		p := period{instant(o.from, zone), instant(o.to, zone)}
		if p.from.Before(from) {
			p.from = from
		}
		if p.to.After(to) {
			p.to = to
		}
		if p.to.After(p.from) {
			periods = append(periods, p)
		}
	}
	slices.SortFunc(periods, func(x, y period) int { return x.from.Compare(y.from) })
	var apart []period
	for _, p := range periods {
		if n := len(apart); n > 0 && !p.from.After(apart[n-1].to) {
			if p.to.After(apart[n-1].to) {
				apart[n-1].to = p.to
			}
			continue
		}
		apart = append(apart, p)
	}
	out := []calendar.Busy{}
	for _, p := range apart {
		out = append(out, calendar.Busy{Start: p.from.In(zone).Format(time.RFC3339), End: p.to.In(zone).Format(time.RFC3339)})
	}
	return out
}

// write sets a time of an event: a day, or a time in UTC, which every server knows.
func write(e ical.Event, name string, m calendar.Moment) {
	p := ical.NewProp(name)
	if m.AllDay {
		p.SetDate(m.Time)
	} else {
		p.SetDateTime(m.Time.UTC())
	}
	e.Props.Set(p)
}
