package google

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tandem/builtin/calendar"
	"tandem/builtin/rest"
	"tandem/fault"
	"tandem/node"
	"tandem/outbound"
)

const (
	calendarBase = "https://www.googleapis.com"
	calendarPath = "/calendar/v3"
)

// service is a service of Google that answers in JSON. The base_url of an account may be that of its mail server.
func service(name, base, below string) *rest.Service {
	return &rest.Service{
		Name: name, Base: base, Below: below, Credentials: []string{credentialType}, Secret: rest.Bearer,
		Elsewhere: []string{"imap", "imaps", "smtp", "smtps"},
		Said:      func(body gjson.Result) string { return body.Get("error.message").Str },
		Refine: func(r *rest.Refusal) {
			if r.Status == http.StatusForbidden && limited(r.Body) { // who asks too often is refused like who may not
				r.Limit(name, outbound.RetryAfter(r.Header, time.Now()))
			}
		},
	}
}

// limited says whether a refusal is one of a client that asks too often.
func limited(body gjson.Result) bool {
	return slices.ContainsFunc(body.Get("error.errors.#.reason").Array(), func(reason gjson.Result) bool {
		return strings.HasSuffix(reason.Str, "LimitExceeded") || reason.Str == "quotaExceeded"
	})
}

// calendarAPI are the calendars of an account.
type calendarAPI struct {
	ctx context.Context
	api *rest.API
	// id is the calendar.
	id string
}

func openCalendar(ctx context.Context, client *outbound.Client, call *node.Call, id string) (*calendarAPI, error) {
	api, err := service("Google Calendar", calendarBase, calendarPath).Open(ctx, client, call)
	return &calendarAPI{ctx: ctx, api: api, id: id}, err
}

// events is where the events are, and an event where one of them is.
func (c *calendarAPI) events() string         { return rest.Path("calendars", c.id, "events") }
func (c *calendarAPI) event(id string) string { return rest.Path("calendars", c.id, "events", id) }

// insert puts an event with an id of our own into the calendar. One that is there already is the one that an earlier attempt has put there.
func (c *calendarAPI) insert(event rest.Fields, notify string) (rest.Answer, error) {
	answer, err := c.api.Do(c.ctx, rest.Call{Method: "POST", Path: c.events(), Query: told(notify), Body: event, Repeatable: true,
		Fields: []string{"id"}})
	if rest.Status(err) == http.StatusConflict {
		return c.get(event["id"].(string))
	}
	return answer, err
}

// told says who is told of a change.
func told(who string) url.Values {
	if who == "" {
		return nil
	}
	return url.Values{"sendUpdates": {who}}
}

func (c *calendarAPI) get(id string) (rest.Answer, error) {
	return c.api.Do(c.ctx, rest.Call{Method: "GET", Path: c.event(id), Fields: []string{"id"}})
}

// patch changes an event. With an etag only if nobody has changed it since.
func (c *calendarAPI) patch(id string, change rest.Fields, etag, notify string) (rest.Answer, error) {
	call := rest.Call{Method: "PATCH", Path: c.event(id), Query: told(notify), Body: change, Repeatable: true, Fields: []string{"id"}}
	if etag != "" {
		call.Header = http.Header{"If-Match": {etag}}
	}
	return c.api.Do(c.ctx, call)
}

// remove deletes an event. One that is gone when it is tried again was deleted before.
func (c *calendarAPI) remove(id, notify string, attempt uint32) (rest.Answer, error) {
	answer, err := c.api.Do(c.ctx, rest.Call{Method: "DELETE", Path: c.event(id), Query: told(notify), Wants: rest.Value})
	if status := rest.Status(err); attempt > 1 && (status == http.StatusGone || status == http.StatusNotFound) {
		err = nil
	}
	return answer, err
}

func (c *calendarAPI) quickAdd(text string) (rest.Answer, error) {
	return c.api.Do(c.ctx, rest.Call{Method: "POST", Path: c.events() + "/quickAdd",
		Query: url.Values{"text": {text}}, Fields: []string{"id"}})
}

// page reads one page of a list, and finds the token of the next one.
func (c *calendarAPI) page(where string, query url.Values, token string) (items []json.RawMessage, next string,
	answer rest.Answer, err error) {
	if token != "" {
		query.Set("pageToken", token)
	}
	answer, err = c.api.Do(c.ctx, rest.Call{Method: "GET", Path: where, Query: query, Fields: []string{"kind"}})
	return rest.Items(answer.Get("items")), answer.Get("nextPageToken").Str, answer, err
}

// search is what is looked for in a calendar.
type search struct {
	query, orderBy string
	from, to       *time.Time
	single         bool
	page           int
}

func (s search) values() url.Values {
	query := url.Values{"maxResults": {strconv.Itoa(s.page)}, "singleEvents": {strconv.FormatBool(s.single)}}
	if s.orderBy == "updated" || s.orderBy != "" && s.single { // only single events have an order by their start
		query.Set("orderBy", s.orderBy)
	}
	if s.query != "" {
		query.Set("q", s.query)
	}
	if s.from != nil {
		query.Set("timeMin", s.from.Format(time.RFC3339))
	}
	if s.to != nil {
		query.Set("timeMax", s.to.Format(time.RFC3339))
	}
	return query
}

// written is a moment as the service writes it. Change says that it takes the place of another, which may have been of the other form.
func written(m calendar.Moment, zone *time.Location, change bool) rest.Fields {
	f := rest.Fields{}
	if m.AllDay {
		f["date"] = m.String()
		if change {
			f["dateTime"], f["timeZone"] = nil, nil
		}
		return f
	}
	f["dateTime"] = m.String()
	if zone != nil {
		f["timeZone"] = zone.String()
	}
	if change {
		f["date"] = nil
	}
	return f
}

// read is a moment of an event.
func read(raw gjson.Result) (calendar.Moment, bool) {
	if day, err := time.Parse(calendar.Day, raw.Get("date").Str); err == nil {
		return calendar.Moment{AllDay: true, Time: day}, true
	}
	at, err := time.Parse(time.RFC3339, raw.Get("dateTime").Str)
	return calendar.Moment{Time: at}, err == nil
}

// planned is what is said of when an event takes place.
type planned struct {
	// field is the name of the one that start comes from.
	field, start, end string
	zone              *time.Location
	repeats           bool
}

// put writes when an event takes place into what is sent.
func (p planned) put(event rest.Fields) error {
	from, to, err := calendar.Span(p.field, p.start, p.end, p.zone)
	if err != nil {
		return err
	}
	if p.repeats && !from.AllDay && p.zone == nil {
		return fault.New(fault.InvalidInput, "an event that recurs needs timezone: its time is that of a place, in summer as in winter").With("path", "timezone")
	}
	event["start"], event["end"] = written(from, p.zone, false), written(to, p.zone, false)
	return nil
}

// move writes a new time of an event that there is into what changes it. Without a new end the event stays as long as it is.
func (p planned) move(c *calendarAPI, id string, change rest.Fields) error {
	if p.start == "" && p.end == "" {
		return nil
	}
	if p.start == "" {
		to, err := calendar.Parse("end", p.end, p.zone)
		change["end"] = written(to, p.zone, true)
		return err
	}
	from, to, err := calendar.Span(p.field, p.start, p.end, p.zone)
	if err != nil {
		return err
	}
	if p.end == "" {
		answer, err := c.get(id)
		if err != nil {
			return err
		}
		was, begun := read(answer.Get("start"))
		until, ended := read(answer.Get("end"))
		if begun && ended && was.AllDay == from.AllDay {
			to = from.After(until.Time.Sub(was.Time))
		}
	}
	change["start"], change["end"] = written(from, p.zone, true), written(to, p.zone, true)
	return nil
}

// people are attendees as the service writes them.
func people(addresses []string) []any {
	list := []any{}
	for _, one := range addresses {
		list = append(list, rest.Fields{"email": one})
	}
	return list
}

// invited are the attendees of an event and further ones, each once.
func invited(event gjson.Result, more []string) (all []any, added bool) {
	known := map[string]bool{}
	for _, one := range event.Get("attendees").Array() {
		all = append(all, json.RawMessage(one.Raw))
		known[strings.ToLower(one.Get("email").Str)] = true
	}
	for _, one := range more {
		if !known[strings.ToLower(one)] {
			known[strings.ToLower(one)], added = true, true
			all = append(all, rest.Fields{"email": one})
		}
	}
	return all, added
}

// meetingLink is where an event is met on line.
func meetingLink(event gjson.Result) string {
	if link := event.Get("hangoutLink").Str; link != "" {
		return link
	}
	return event.Get(`conferenceData.entryPoints.#(entryPointType=="video").uri`).Str
}
