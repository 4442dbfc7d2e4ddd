package caldav

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-ical"
	"github.com/emersion/go-webdav"
	"github.com/emersion/go-webdav/caldav"

	"tandem/builtin/action/actiontest"
	"tandem/fault"
	"tandem/workflow"
)

// fake is a CalDAV server with the calendar of a person, behind a login.
type fake struct {
	t       testing.TB
	mu      sync.Mutex
	objects []caldav.CalendarObject
	edited  int
}

const workPath = "/ann/calendars/team/"

// event is an entry with further lines.
func event(uid string, lines ...string) string {
	return "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//Test//EN\r\n" + vevent(uid, lines...) + "END:VCALENDAR\r\n"
}

func vevent(uid string, lines ...string) string {
	return "BEGIN:VEVENT\r\nUID:" + uid + "\r\nDTSTAMP:20261101T000000Z\r\n" + strings.Join(lines, "\r\n") + "\r\nEND:VEVENT\r\n"
}

func newFake(t testing.TB) http.Handler {
	f := &fake{t: t}
	weekly := vevent("weekly", "SUMMARY:Stand-up", "DTSTART;TZID=Europe/Berlin:20261019T090000", "DTEND;TZID=Europe/Berlin:20261019T093000", "RRULE:FREQ=WEEKLY", "EXDATE;TZID=Europe/Berlin:20261102T090000,20261109T090000")
	moved := vevent("weekly", "SUMMARY:Stand-up\\, later", "RECURRENCE-ID;TZID=Europe/Berlin:20261116T090000", "DTSTART;TZID=Europe/Berlin:20261116T110000", "DTEND;TZID=Europe/Berlin:20261116T113000")
	for name, text := range map[string]string{
		"lunch.ics":    event("lunch", "SUMMARY:Lunch", "DTSTART:20261120T110000Z", "DTEND:20261120T120000Z", "LOCATION:Café", "DESCRIPTION:With Ann\\nand Bob", "ATTENDEE:mailto:ann@example.com", "STATUS:CONFIRMED"),
		"holiday.ics":  event("holiday", "SUMMARY:Holiday", "DTSTART;VALUE=DATE:20261124", "DTEND;VALUE=DATE:20261127", "TRANSP:TRANSPARENT"),
		"odd zone.ics": event("odd", "SUMMARY:Odd", "DTSTART;TZID=W. Europe Standard Time:20261121T080000", "DURATION:PT45M"),
		"weekly.ics":   "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//Test//EN\r\n" + weekly + moved + "END:VCALENDAR\r\n",
	} { // order does not matter: a server has none
		calendar, err := ical.NewDecoder(strings.NewReader(text)).Decode()
		if err != nil {
			t.Fatal(name, err)
		}
		f.objects = append(f.objects, caldav.CalendarObject{Path: workPath + name, ETag: "first", Data: calendar})
	}
	server := &caldav.Handler{Backend: f}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, secret, ok := r.BasicAuth(); !ok || name != "ann" || secret != actiontest.Token {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if want := r.Header.Get("If-Match"); r.Method == http.MethodDelete && want != "" {
			if o, err := f.GetCalendarObject(r.Context(), r.URL.Path, nil); err == nil && want != `"`+o.ETag+`"` {
				w.WriteHeader(http.StatusPreconditionFailed)
				return
			}
		}
		server.ServeHTTP(w, r)
	})
}

func (f *fake) CurrentUserPrincipal(context.Context) (string, error) { return "/ann/", nil }
func (f *fake) CalendarHomeSetPath(context.Context) (string, error)  { return "/ann/calendars/", nil }
func (f *fake) CreateCalendar(context.Context, *caldav.Calendar) error {
	return errors.New("nobody makes calendars here")
}

func (f *fake) ListCalendars(context.Context) ([]caldav.Calendar, error) {
	return []caldav.Calendar{{Path: workPath, Name: "Work"}}, nil
}

func (f *fake) GetCalendar(_ context.Context, path string) (*caldav.Calendar, error) {
	if path != workPath {
		return nil, webdav.NewHTTPError(404, errors.New("no such calendar"))
	}
	return &caldav.Calendar{Path: workPath, Name: "Work"}, nil
}

func (f *fake) find(path string) int {
	return slices.IndexFunc(f.objects, func(o caldav.CalendarObject) bool { return o.Path == path })
}

func (f *fake) GetCalendarObject(_ context.Context, path string, _ *caldav.CalendarCompRequest) (*caldav.CalendarObject, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := f.find(path)
	if i < 0 {
		return nil, webdav.NewHTTPError(404, errors.New("no such entry"))
	}
	found := f.objects[i]
	return &found, nil
}

func (f *fake) ListCalendarObjects(context.Context, string, *caldav.CalendarCompRequest) ([]caldav.CalendarObject, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.objects), nil
}

func (f *fake) QueryCalendarObjects(_ context.Context, path string, query *caldav.CalendarQuery) ([]caldav.CalendarObject, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if path != workPath {
		return nil, webdav.NewHTTPError(404, errors.New("no such calendar"))
	}
	var known, others []caldav.CalendarObject // the library cannot read all zones and lists of dates that real servers can
	for _, o := range f.objects {
		if name := strings.TrimPrefix(o.Path, workPath); name == "odd zone.ics" || name == "weekly.ics" {
			others = append(others, o)
		} else {
			known = append(known, o)
		}
	}
	found, err := caldav.Filter(query, known)
	return append(found, others...), err
}

func (f *fake) PutCalendarObject(_ context.Context, path string, calendar *ical.Calendar, opts *caldav.PutCalendarObjectOptions) (*caldav.CalendarObject, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, _, err := caldav.ValidateCalendarObject(calendar); err != nil {
		return nil, webdav.NewHTTPError(400, err)
	}
	i := f.find(path)
	if opts.IfNoneMatch.IsWildcard() && i >= 0 {
		return nil, webdav.NewHTTPError(412, errors.New("it is there"))
	}
	if opts.IfMatch.IsSet() {
		etag, err := opts.IfMatch.ETag()
		if err != nil || i < 0 || f.objects[i].ETag != etag {
			return nil, webdav.NewHTTPError(412, errors.New("it is another"))
		}
	}
	f.edited++
	stored := caldav.CalendarObject{Path: path, ETag: fmt.Sprint("edited", f.edited), Data: calendar}
	if i >= 0 {
		f.objects[i] = stored
	} else {
		f.objects = append(f.objects, stored)
	}
	return &stored, nil
}

func (f *fake) DeleteCalendarObject(_ context.Context, path string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := f.find(path)
	if i < 0 {
		return webdav.NewHTTPError(404, errors.New("no such entry"))
	}
	f.objects = slices.Delete(f.objects, i, i+1)
	return nil
}

func vendor() actiontest.Vendor {
	return actiontest.Vendor{Kind: calendarTool, Serve: newFake, Credential: map[string]string{"username": "ann", "password": actiontest.Token}}
}

const work = `{"calendar_url":"/ann/calendars/team","timezone":"Europe/Berlin"}`

func TestCalendarTool(t *testing.T) {
	t.Parallel()
	type op = actiontest.Operation
	vendor().Uses(t, []actiontest.ToolUse{
		{Name: "Events", Config: work, Tool: "calendar_events", Args: `{"time_min":"2026-11-20","time_max":"2026-11-25"}`, Operation: op{Call: "REPORT " + workPath, Header: map[string]string{"Depth": "1"}, Text: `<C:time-range start="20261119T230000Z" end="20261124T230000Z"/>`,
			Result: `{"truncated":false,"events":[
				{"event_id":"lunch.ics","summary":"Lunch","start":"2026-11-20T12:00:00+01:00","end":"2026-11-20T13:00:00+01:00","all_day":false,"location":"Café","description":"With Ann\nand Bob","attendees":["ann@example.com"],"status":"confirmed","etag":"\"first\""},
				{"event_id":"odd zone.ics","start":"2026-11-21T08:00:00+01:00","end":"2026-11-21T08:45:00+01:00"},
				{"event_id":"weekly.ics","start":"2026-11-23T09:00:00+01:00"},
				{"event_id":"holiday.ics","start":"2026-11-24","end":"2026-11-27","all_day":true}]}`}},
		{Name: "FreeBusy", Config: work, Tool: "calendar_free_busy", Args: `{"time_min":"2026-11-20T12:30","time_max":"2026-11-25"}`, Operation: op{Call: "REPORT " + workPath,
			Result: `{"truncated":false,"busy":[{"start":"2026-11-20T12:30:00+01:00","end":"2026-11-20T13:00:00+01:00"},{"start":"2026-11-21T08:00:00+01:00","end":"2026-11-21T08:45:00+01:00"},{"start":"2026-11-23T09:00:00+01:00","end":"2026-11-23T09:30:00+01:00"}]}`}},
		{Name: "Create", Config: work, Tool: "calendar_create_event", Args: `{"summary":"Grüße, alle","start":"2026-11-20T15:00","location":"l","description":"a\nb"}`, Operation: op{Call: "PUT " + workPath + "tandem-", Header: map[string]string{"If-None-Match": "*", "Content-Type": "text/calendar; charset=utf-8"},
			Text: "DTSTART:20261120T140000Z", Result: `{"event":{"summary":"Grüße, alle","start":"2026-11-20T15:00:00+01:00","end":"2026-11-20T16:00:00+01:00","description":"a\nb","etag":"\"edited1\""}}`}},
		{Name: "CreateDay", Config: work, Tool: "calendar_create_event", Args: `{"summary":"s","start":"2026-11-20"}`, Operation: op{Call: "PUT " + workPath + "tandem-", Text: "DTEND;VALUE=DATE:20261121", Result: `{"event":{"all_day":true,"start":"2026-11-20","end":"2026-11-21"}}`}},
		{Name: "Update", Config: work, Tool: "calendar_update_event", Args: `{"event_id":"lunch.ics","start":"2026-11-20T13:00","summary":"Late lunch","etag":"\"first\""}`, Operation: op{Call: "PUT " + workPath + "lunch.ics", Header: map[string]string{"If-Match": `"first"`}, Text: "ATTENDEE:mailto:ann@example.com",
			Result: `{"event":{"summary":"Late lunch","start":"2026-11-20T13:00:00+01:00","end":"2026-11-20T14:00:00+01:00","location":"Café","etag":"\"edited1\""}}`}},
		{Name: "UpdateDays", Config: work, Tool: "calendar_update_event", Args: `{"event_id":"holiday.ics","start":"2026-12-01"}`, Operation: op{Call: "PUT " + workPath + "holiday.ics", Text: "DTEND;VALUE=DATE:20261204"}},
		{Name: "UpdateSeries", Config: work, Tool: "calendar_update_event", Args: `{"event_id":"weekly.ics","start":"2026-10-19T10:00"}`, Operation: op{Call: "PUT " + workPath + "weekly.ics", Text: "DTSTART;TZID=Europe/Berlin:20261019T100000", Result: `{"event":{"end":"2026-10-19T10:30:00+02:00"}}`}},
		{Name: "EscapedName", Config: work, Tool: "calendar_update_event", Args: `{"event_id":"odd zone.ics","end":"2026-11-21T09:00"}`, Operation: op{Call: "PUT " + workPath + "odd%20zone.ics", Text: "DTEND:20261121T080000Z"}},
		{Name: "Delete", Config: work, Tool: "calendar_delete_event", Args: `{"event_id":"lunch.ics"}`, Operation: op{Call: "DELETE " + workPath + "lunch.ics", Header: map[string]string{"If-Match": `"first"`}, Result: `{"deleted":true}`}},
	})
}

// TestCalendarTool_Recurs: an event that recurs takes place by the clock of its zone, except when it does not, and once at another time.
func TestCalendarTool_Recurs(t *testing.T) {
	t.Parallel()
	b := vendor().New(t)
	out, err := b.Use(work, "calendar_events", `{"time_min":"2026-10-19","time_max":"2026-11-20"}`)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range out.Get("events").Array() {
		got = append(got, e.Get("start").Str+" "+e.Get("summary").Str)
	}
	want := []string{"2026-10-19T09:00:00+02:00 Stand-up", "2026-10-26T09:00:00+01:00 Stand-up", "2026-11-16T11:00:00+01:00 Stand-up, later"}
	if !slices.Equal(got, want) {
		t.Errorf("it takes place at %q", got)
	}
}

func TestCalendarTool_Failures(t *testing.T) {
	t.Parallel()
	vendor().ToolFailures(t,
		actiontest.ToolUse{Config: work, Tool: "calendar_events", Operation: actiontest.Operation{Call: "REPORT " + workPath}}, actiontest.ToolUse{},
		[]actiontest.ToolRefusal{
			{Name: "OtherCalendar", Config: `{"calendar_url":"/ann/calendars/none/"}`, Tool: "calendar_events", Code: fault.ToolError},
			{Name: "OtherServer", Config: `{"calendar_url":"https://evil.example.com/cal/"}`, Tool: "calendar_events", Code: fault.InvalidConfig, Part: "is for nobody else"},
			{Name: "NoEvent", Config: work, Tool: "calendar_delete_event", Args: `{"event_id":"none.ics"}`, Code: fault.ToolError},
			{Name: "Outside", Config: work, Tool: "calendar_delete_event", Args: `{"event_id":"../private/x.ics"}`, Code: fault.ToolError, Part: "event_id"},
			{Name: "Stale", Config: work, Tool: "calendar_update_event", Args: `{"event_id":"lunch.ics","summary":"x","etag":"\"before\""}`, Code: fault.ToolError, Part: "changed meanwhile"},
			{Name: "StaleDelete", Config: work, Tool: "calendar_delete_event", Args: `{"event_id":"lunch.ics","etag":"\"before\""}`, Code: fault.ToolError, Part: "changed meanwhile"},
			{Name: "NoChange", Config: work, Tool: "calendar_update_event", Args: `{"event_id":"lunch.ics"}`, Code: fault.ToolError, Part: "what to change"},
			{Name: "NoSummary", Config: work, Tool: "calendar_create_event", Args: `{"start":"2026-11-20"}`, Code: fault.ToolError, Part: "summary"},
			{Name: "ReadOnly", Config: `{"calendar_url":"/ann/calendars/team","read_only":true}`, Tool: "calendar_delete_event", Args: `{"event_id":"lunch.ics"}`, Code: fault.ToolError, Part: "there is no tool"},
			{Name: "NoZone", Config: `{"timezone":"Mars/Base"}`, Tool: "calendar_events", Code: fault.InvalidConfig, Part: "is not a time zone"},
		})
	for _, change := range []map[string]string{{"password": ""}, {"username": ""}, {"base_url": "ftp://host/x"}} {
		v := vendor()
		v.Credential = maps.Clone(v.Credential)
		maps.Copy(v.Credential, change)
		if _, err := v.New(t).Use(work, "calendar_events", ``); fault.CodeOf(err) != fault.CredentialInvalid {
			t.Errorf("with %v: %v", change, err)
		}
	}
}

// TestCalendarTool_Meanwhile: what somebody changes while it is being changed is not overwritten.
func TestCalendarTool_Meanwhile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ tool, args string }{{"calendar_update_event", `{"event_id":"lunch.ics","summary":"x"}`}, {"calendar_delete_event", `{"event_id":"lunch.ics"}`}} {
		b := vendor().New(t)
		b.Answers("GET "+workPath+"lunch.ics", actiontest.Reply{Status: 200, Header: map[string]string{"Content-Type": "text/calendar", "Etag": `"before"`}, Body: event("lunch", "SUMMARY:Lunch", "DTSTART:20261120T110000Z")})
		if _, err := b.Use(work, c.tool, c.args); fault.CodeOf(err) != fault.ToolError || !strings.Contains(err.Error(), "412") {
			t.Errorf("%s: %v", c.tool, err)
		}
	}
}

// TestCalendarTool_Again: a model makes an event once, although the answer was lost; what is so already is a success.
func TestCalendarTool_Again(t *testing.T) {
	t.Parallel()
	b := vendor().New(t)
	again := func(tool, args, lost string) {
		t.Helper()
		call := b.ToolCall(work, tool, args)
		b.Loses(lost)
		if _, err := b.UseCall(call); err == nil || !fault.From(err).Retryable {
			t.Fatalf("the answer was lost: %v", err)
		}
		call.Attempt = 2
		if _, err := b.UseCall(call); err != nil {
			t.Fatalf("%s: %v", tool, err)
		}
	}
	again("calendar_create_event", `{"summary":"only once","start":"2026-12-24"}`, "PUT "+workPath)
	again("calendar_update_event", `{"event_id":"lunch.ics","summary":"x","etag":"\"first\""}`, "PUT "+workPath)
	again("calendar_delete_event", `{"event_id":"lunch.ics"}`, "DELETE "+workPath)
	if all, err := b.Use(work, "calendar_events", `{"time_min":"2026-12-24","time_max":"2026-12-25"}`); err != nil || all.Get("events.#").Int() != 1 {
		t.Errorf("%s: %v", all.Raw, err)
	}
}

func TestCalendarTool_Effects(t *testing.T) {
	t.Parallel()
	want := map[string]workflow.Effect{}
	for _, name := range []string{"events", "free_busy", "create_event", "update_event", "delete_event"} {
		want["calendar_"+name] = workflow.Idempotent
	}
	if got := vendor().Tools(t); !maps.Equal(got, want) {
		t.Errorf("the tools are %v", got)
	}
}
