package google

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tandem/builtin/action/actiontest"
)

// calendarFake is the Calendar API, version 3, with the calendar primary. It refuses what the real one refuses.
type calendarFake struct {
	t      testing.TB
	mu     sync.Mutex
	events []map[string]any
	edited int
}

const (
	eventCount = 250
	// eventPage is how many events a page has at most, whatever is asked for.
	eventPage = 100
)

func newCalendarFake(t testing.TB) http.Handler {
	f := &calendarFake{t: t}
	begin := time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)
	for n := range eventCount {
		at := begin.Add(time.Duration(n) * time.Hour)
		f.events = append(f.events, map[string]any{
			"kind": "calendar#event", "id": fmt.Sprintf("event%04d", n), "etag": `"1"`, "status": "confirmed", "summary": fmt.Sprintf("Meeting %d", n), "htmlLink": fmt.Sprintf("https://calendar.example.com/%d", n),
			"start": map[string]any{"dateTime": at.Format(time.RFC3339)}, "end": map[string]any{"dateTime": at.Add(3 * time.Hour).Format(time.RFC3339)},
			"attendees": []any{map[string]any{"email": "ann@example.com", "responseStatus": "accepted"}}, "hangoutLink": "https://meet.example.com/x",
		})
	}
	m := http.NewServeMux()
	const events = "/calendar/v3/calendars/primary/events"
	for pattern, serve := range map[string]http.HandlerFunc{
		"POST " + events: f.insert, "POST " + events + "/quickAdd": f.quickAdd, "GET " + events: f.list, "GET " + events + "/{id}": f.get, "PATCH " + events + "/{id}": f.patch,
		"DELETE " + events + "/{id}": f.remove, "POST /calendar/v3/freeBusy": f.freeBusy, "GET /calendar/v3/users/me/calendarList": f.calendars,
		"PUT /calendar/v3/thing": func(w http.ResponseWriter, r *http.Request) { actiontest.Write(t, w, 200, actiontest.Read(t, r)) },
	} {
		m.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			f.mu.Lock()
			defer f.mu.Unlock()
			if !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer "+actiontest.Token) {
				refuse(t, w, 401, "authError", "Invalid Credentials")
				return
			}
			serve(w, r)
		})
	}
	m.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { refuse(t, w, 404, "notFound", "Not Found") })
	return m
}

// refuse refuses as services of Google do.
func refuse(t testing.TB, w http.ResponseWriter, status int, reason, message string) {
	actiontest.Write(t, w, status, map[string]any{"error": map[string]any{
		"code": status, "message": message, "errors": []any{map[string]any{"domain": "global", "reason": reason, "message": message}},
	}})
}

// moment reads a time of an event, which is a day or a time with an offset or a zone.
func (f *calendarFake) moment(v any) (at time.Time, day, ok bool) {
	fields, _ := v.(map[string]any)
	date, hasDate := fields["date"].(string)
	text, hasTime := fields["dateTime"].(string)
	if hasDate == hasTime {
		return at, false, false
	}
	if hasDate {
		at, err := time.Parse("2006-01-02", date)
		return at, true, err == nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if zone, ok := fields["timeZone"].(string); ok && err == nil {
		_, err = time.LoadLocation(zone)
	}
	return at, false, err == nil
}

// valid looks at when an event takes place.
func (f *calendarFake) valid(w http.ResponseWriter, event map[string]any) bool {
	from, day, begins := f.moment(event["start"])
	to, dayToo, ends := f.moment(event["end"])
	zone, _ := event["start"].(map[string]any)["timeZone"].(string)
	switch {
	case !begins:
		refuse(f.t, w, 400, "required", "Missing start time.")
	case !ends:
		refuse(f.t, w, 400, "required", "Missing end time.")
	case day != dayToo:
		refuse(f.t, w, 400, "invalid", "Start and end times must either both be date or both be dateTime.")
	case !to.After(from):
		refuse(f.t, w, 400, "timeRangeEmpty", "The specified time range is empty.")
	case event["recurrence"] != nil && !day && zone == "":
		refuse(f.t, w, 400, "required", "Missing time zone definition for start time.")
	default:
		return true
	}
	return false
}

func (f *calendarFake) find(id string) int {
	return slices.IndexFunc(f.events, func(e map[string]any) bool { return e["id"] == id })
}

func (f *calendarFake) insert(w http.ResponseWriter, r *http.Request) {
	event := actiontest.Read(f.t, r)
	id, _ := event["id"].(string)
	if !regexp.MustCompile(`^[a-v0-9]{5,1000}$`).MatchString(id) {
		refuse(f.t, w, 400, "invalid", "Invalid resource id value.")
		return
	}
	if f.find(id) >= 0 {
		refuse(f.t, w, 409, "duplicate", "The requested identifier already exists.")
		return
	}
	if !f.valid(w, event) {
		return
	}
	event["kind"], event["etag"], event["status"], event["htmlLink"] = "calendar#event", `"1"`, "confirmed", "https://calendar.example.com/new"
	f.events = append(f.events, event)
	actiontest.Write(f.t, w, 200, event)
}

func (f *calendarFake) quickAdd(w http.ResponseWriter, r *http.Request) {
	text := r.URL.Query().Get("text")
	if text == "" {
		refuse(f.t, w, 400, "required", "Required parameter: text")
		return
	}
	event := map[string]any{"kind": "calendar#event", "id": "quick1", "summary": text, "htmlLink": "https://calendar.example.com/quick1"}
	f.events = append(f.events, event)
	actiontest.Write(f.t, w, 200, event)
}

// known is the event that a request names.
func (f *calendarFake) known(w http.ResponseWriter, r *http.Request) int {
	i := f.find(r.PathValue("id"))
	if i < 0 {
		refuse(f.t, w, 404, "notFound", "Not Found")
		return -1
	}
	if want := r.Header.Get("If-Match"); want != "" && want != f.events[i]["etag"] {
		refuse(f.t, w, 412, "conditionNotMet", "Precondition Failed")
		return -1
	}
	return i
}

func (f *calendarFake) get(w http.ResponseWriter, r *http.Request) {
	if i := f.known(w, r); i >= 0 {
		actiontest.Write(f.t, w, 200, f.events[i])
	}
}

// patch merges, as JSON merge patches do.
func (f *calendarFake) patch(w http.ResponseWriter, r *http.Request) {
	i := f.known(w, r)
	if i < 0 {
		return
	}
	event := merged(f.events[i], actiontest.Read(f.t, r))
	if !f.valid(w, event) {
		return
	}
	f.edited++
	event["etag"] = strconv.Quote(fmt.Sprint("edited", f.edited))
	f.events[i] = event
	actiontest.Write(f.t, w, 200, event)
}

func merged(old, change map[string]any) map[string]any {
	out := maps.Clone(old)
	for name, value := range change { // order does not matter: each is a field of its own
		inner, isObject := value.(map[string]any)
		before, was := old[name].(map[string]any)
		switch {
		case value == nil:
			delete(out, name)
		case isObject && was:
			out[name] = merged(before, inner)
		default:
			out[name] = value
		}
	}
	return out
}

func (f *calendarFake) remove(w http.ResponseWriter, r *http.Request) {
	i := f.find(r.PathValue("id"))
	switch {
	case i < 0:
		refuse(f.t, w, 404, "notFound", "Not Found")
	case f.events[i]["status"] == "cancelled":
		refuse(f.t, w, 410, "deleted", "Resource has been deleted")
	default:
		f.events[i]["status"] = "cancelled"
		w.WriteHeader(http.StatusNoContent)
	}
}

func (f *calendarFake) list(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("orderBy") == "startTime" && q.Get("singleEvents") != "true" {
		refuse(f.t, w, 400, "invalid", "The requested ordering is not available for the particular query.")
		return
	}
	if q.Get("syncToken") != "" && (q.Has("orderBy") || q.Has("q") || q.Has("timeMin") || q.Has("timeMax")) {
		refuse(f.t, w, 400, "invalid", "Sync token cannot be used with other query restrictions.")
		return
	}
	if q.Get("syncToken") == "old" {
		refuse(f.t, w, 410, "fullSyncRequired", "Sync token is no longer valid, a full sync is required.")
		return
	}
	bound := func(name string, zero time.Time) time.Time {
		if !q.Has(name) {
			return zero
		}
		at, err := time.Parse(time.RFC3339, q.Get(name))
		if err != nil {
			refuse(f.t, w, 400, "badRequest", "Bad Request")
		}
		return at
	}
	from, to := bound("timeMin", time.Time{}), bound("timeMax", time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC))
	found := []map[string]any{}
	for _, e := range f.events {
		begins, _, _ := f.moment(e["start"])
		ends, _, _ := f.moment(e["end"])
		if words := q.Get("q"); ends.After(from) && begins.Before(to) && strings.Contains(fmt.Sprint(e["summary"]), words) {
			found = append(found, e)
		}
	}
	at := actiontest.Number(r, "pageToken", 0)
	page, more := actiontest.Part(found, at, min(actiontest.Number(r, "maxResults", 250), eventPage))
	answer := map[string]any{"kind": "calendar#events", "timeZone": "Europe/Berlin", "items": page}
	if more {
		answer["nextPageToken"] = strconv.Itoa(at + len(page))
	} else {
		answer["nextSyncToken"] = "sync1"
	}
	actiontest.Write(f.t, w, 200, answer)
}

func (f *calendarFake) calendars(w http.ResponseWriter, _ *http.Request) {
	actiontest.Write(f.t, w, 200, map[string]any{"kind": "calendar#calendarList", "items": []any{map[string]any{"id": "primary", "summary": "Ann"}}})
}

func (f *calendarFake) freeBusy(w http.ResponseWriter, r *http.Request) {
	body := actiontest.Read(f.t, r)
	calendars := map[string]any{}
	items, _ := body["items"].([]any)
	for _, item := range items {
		id, _ := item.(map[string]any)["id"].(string)
		calendars[id] = map[string]any{"busy": []any{map[string]any{"start": "2026-11-20T09:00:00Z", "end": "2026-11-20T10:00:00Z"}}}
		if strings.HasPrefix(id, "nobody") {
			calendars[id] = map[string]any{"errors": []any{map[string]any{"domain": "global", "reason": "notFound"}}, "busy": []any{}}
		}
	}
	actiontest.Write(f.t, w, 200, map[string]any{"kind": "calendar#freeBusy", "calendars": calendars})
}
