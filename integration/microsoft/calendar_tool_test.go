package microsoft

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tandem/builtin/action/actiontest"
	"tandem/fault"
	"tandem/workflow"
)

// calendarFake is Microsoft Graph for calendars. It refuses what the real one refuses.
type calendarFake struct {
	t      testing.TB
	mu     sync.Mutex
	events []map[string]any
}

const graphTime = "2006-01-02T15:04:05.0000000"

func newCalendarFake(t testing.TB) http.Handler {
	f := &calendarFake{t: t}
	begin := time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)
	for n := range 60 {
		at := begin.Add(time.Duration(n) * time.Hour)
		f.events = append(f.events, map[string]any{
			"id": fmt.Sprintf("AAMk%04d", n), "subject": fmt.Sprintf("Meeting %d", n), "bodyPreview": "about", "isAllDay": false, "webLink": "https://outlook.example.com/x", "responseStatus": map[string]any{"response": "notResponded", "time": "0001-01-01T00:00:00Z"},
			"start": map[string]any{"dateTime": at.Format(graphTime), "timeZone": "UTC"}, "end": map[string]any{"dateTime": at.Add(3 * time.Hour).Format(graphTime), "timeZone": "UTC"},
			"location": map[string]any{"displayName": "Room"}, "attendees": []any{map[string]any{"type": "required", "emailAddress": map[string]any{"address": "ann@example.com"}}}, "onlineMeeting": map[string]any{"joinUrl": "https://teams.example.com/x"},
		})
	}
	m := http.NewServeMux()
	for pattern, serve := range map[string]http.HandlerFunc{
		"GET /v1.0/me/calendarView": f.view, "GET /v1.0/me/calendars/team/calendarView": f.view, "POST /v1.0/me/events": f.create, "POST /v1.0/me/calendars/team/events": f.create,
		"GET /v1.0/me/events/{id}": f.get, "PATCH /v1.0/me/events/{id}": f.patch, "DELETE /v1.0/me/events/{id}": f.remove, "POST /v1.0/me/events/{id}/{answer}": f.answer, "POST /v1.0/me/calendar/getSchedule": f.schedule,
		"GET /v1.0/me": func(w http.ResponseWriter, _ *http.Request) {
			actiontest.Write(t, w, 200, map[string]any{"mail": "me@example.com", "userPrincipalName": "me@tenant.example.com"})
		},
	} {
		m.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			f.mu.Lock()
			defer f.mu.Unlock()
			switch {
			case !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer "+actiontest.Token):
				f.refuse(w, 401, "InvalidAuthenticationToken")
			case !strings.Contains(r.Header.Get("Prefer"), `outlook.timezone="UTC"`):
				f.refuse(w, 400, "ErrorInvalidRequest")
			default:
				serve(w, r)
			}
		})
	}
	return m
}

func (f *calendarFake) refuse(w http.ResponseWriter, status int, code string) {
	actiontest.Write(f.t, w, status, map[string]any{"error": map[string]any{"code": code, "message": "The request was refused: " + code}})
}

func (f *calendarFake) view(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	from, err1 := time.Parse(time.RFC3339, q.Get("startDateTime"))
	to, err2 := time.Parse(time.RFC3339, q.Get("endDateTime"))
	if err1 != nil || err2 != nil {
		f.refuse(w, 400, "ErrorInvalidParameter")
		return
	}
	found := []map[string]any{}
	for _, e := range f.events {
		begins, _ := time.Parse(graphTime, e["start"].(map[string]any)["dateTime"].(string))
		ends, _ := time.Parse(graphTime, e["end"].(map[string]any)["dateTime"].(string))
		if ends.After(from) && begins.Before(to) {
			found = append(found, e)
		}
	}
	skip := actiontest.Number(r, "$skip", 0)
	page, more := actiontest.Part(found, skip, min(actiontest.Number(r, "$top", 10), 10))
	answer := map[string]any{"@odata.context": "x", "value": page}
	if more {
		next := maps.Clone(q)
		next.Set("$skip", fmt.Sprint(skip+len(page)))
		answer["@odata.nextLink"] = "https://elsewhere.example.com" + r.URL.Path + "?" + url.Values(next).Encode()
	}
	actiontest.Write(f.t, w, 200, answer)
}

// valid looks at when an event takes place.
func (f *calendarFake) valid(w http.ResponseWriter, e map[string]any) bool {
	read := func(name string) (time.Time, bool) {
		v, _ := e[name].(map[string]any)
		text, _ := v["dateTime"].(string)
		at, err := time.Parse("2006-01-02T15:04:05", strings.TrimSuffix(text, ".0000000"))
		e[name] = map[string]any{"dateTime": at.Format(graphTime), "timeZone": v["timeZone"]}
		return at, err == nil && v["timeZone"] == "UTC"
	}
	from, ok := read("start")
	to, too := read("end")
	midnight := func(at time.Time) bool { return at.Equal(at.Truncate(24 * time.Hour)) }
	if !ok || !too || !to.After(from) || e["isAllDay"] == true && !(midnight(from) && midnight(to)) {
		f.refuse(w, 400, "ErrorPropertyValidationFailure")
		return false
	}
	return true
}

// create makes an event, once for each transactionId.
func (f *calendarFake) create(w http.ResponseWriter, r *http.Request) {
	e := actiontest.Read(f.t, r)
	if i := slices.IndexFunc(f.events, func(o map[string]any) bool {
		return o["transactionId"] != nil && o["transactionId"] == e["transactionId"]
	}); i >= 0 {
		actiontest.Write(f.t, w, 201, f.events[i])
		return
	}
	if !f.valid(w, e) {
		return
	}
	e["id"] = fmt.Sprintf("AAMknew%d", len(f.events))
	f.events = append(f.events, e)
	actiontest.Write(f.t, w, 201, e)
}

func (f *calendarFake) find(w http.ResponseWriter, r *http.Request) int {
	i := slices.IndexFunc(f.events, func(e map[string]any) bool { return e["id"] == r.PathValue("id") })
	if i < 0 {
		f.refuse(w, 404, "ErrorItemNotFound")
	}
	return i
}

func (f *calendarFake) get(w http.ResponseWriter, r *http.Request) {
	if i := f.find(w, r); i >= 0 {
		actiontest.Write(f.t, w, 200, f.events[i])
	}
}

func (f *calendarFake) patch(w http.ResponseWriter, r *http.Request) {
	i := f.find(w, r)
	if i < 0 {
		return
	}
	e := maps.Clone(f.events[i])
	maps.Copy(e, actiontest.Read(f.t, r))
	if f.valid(w, e) {
		f.events[i] = e
		actiontest.Write(f.t, w, 200, e)
	}
}

func (f *calendarFake) remove(w http.ResponseWriter, r *http.Request) {
	if i := f.find(w, r); i >= 0 {
		f.events = slices.Delete(f.events, i, i+1)
		w.WriteHeader(http.StatusNoContent)
	}
}

func (f *calendarFake) answer(w http.ResponseWriter, r *http.Request) {
	i := f.find(w, r)
	if i < 0 {
		return
	}
	says := map[string]string{"accept": "accepted", "tentativelyAccept": "tentativelyAccepted", "decline": "declined"}[r.PathValue("answer")]
	if says == "" || actiontest.Read(f.t, r)["sendResponse"] != true {
		f.refuse(w, 400, "ErrorInvalidRequest")
		return
	}
	f.events[i]["responseStatus"] = map[string]any{"response": says, "time": "2126-11-20T09:00:00Z"} // whenever the test runs, it was after the node began
	w.WriteHeader(http.StatusAccepted)
}

func (f *calendarFake) schedule(w http.ResponseWriter, r *http.Request) {
	body := actiontest.Read(f.t, r)
	list, _ := body["schedules"].([]any)
	value := []any{}
	for _, id := range list {
		if strings.HasPrefix(fmt.Sprint(id), "nobody") {
			value = append(value, map[string]any{"scheduleId": id, "error": map[string]any{"responseCode": "ErrorMailRecipientNotFound"}})
			continue
		}
		item := func(status, from, to string) any {
			return map[string]any{"status": status, "start": map[string]any{"dateTime": from, "timeZone": "UTC"}, "end": map[string]any{"dateTime": to, "timeZone": "UTC"}}
		}
		value = append(value, map[string]any{"scheduleId": id, "availabilityView": "02", "scheduleItems": []any{
			item("busy", "2026-11-20T09:00:00.0000000", "2026-11-20T10:00:00.0000000"), item("free", "2026-11-20T11:00:00.0000000", "2026-11-20T12:00:00.0000000"),
		}})
	}
	actiontest.Write(f.t, w, 200, map[string]any{"value": value})
}

func calendarToolVendor() actiontest.Vendor {
	return actiontest.Vendor{Kind: calendarTool, Serve: newCalendarFake, Prefix: "/graph", Renews: true}
}

func responding() actiontest.ToolUse {
	return actiontest.ToolUse{Tool: "outlook_calendar_respond", Args: `{"event_id":"AAMk0005","response":"accept","comment":"Gladly"}`, Operation: actiontest.Operation{Call: "POST /v1.0/me/events/AAMk0005/accept"}}
}

func TestCalendarTool(t *testing.T) {
	t.Parallel()
	type op = actiontest.Operation
	respond := responding()
	respond.Name, respond.Body, respond.Result = "Accept", `{"comment":"Gladly","sendResponse":true}`, `{"event_id":"AAMk0005","response":"accepted"}`
	calendarToolVendor().Uses(t, []actiontest.ToolUse{
		{Name: "Events", Tool: "outlook_calendar_events", Config: `{"timezone":"Europe/Berlin","calendar_id":"team","max_results":2}`, Args: `{"time_min":"2026-11-03","time_max":"2026-11-04"}`, Operation: op{Call: "GET /v1.0/me/calendars/team/calendarView",
			Query:  map[string]string{"startDateTime": "2026-11-02T23:00:00Z", "endDateTime": "2026-11-03T23:00:00Z", "$top": "2"},
			Result: `{"truncated":true,"events":[{"event_id":"AAMk0012","summary":"Meeting 12","start":"2026-11-02T22:00:00+01:00","end":"2026-11-03T01:00:00+01:00","all_day":false,"location":"Room","description":"about","attendees":["ann@example.com"],"status":"notResponded","event_url":"https://outlook.example.com/x","meeting_link":"https://teams.example.com/x"},{"event_id":"AAMk0013"}]}`}},
		{Name: "Availability", Tool: "outlook_calendar_availability", Config: `{"timezone":"Europe/Berlin"}`, Args: `{"attendees":["ann@example.com","nobody@example.com"],"time_min":"2026-11-20","time_max":"2026-11-21"}`, Operation: op{
			Call: "POST /v1.0/me/calendar/getSchedule", Body: `{"schedules":["ann@example.com","nobody@example.com"],"startTime":{"dateTime":"2026-11-19T23:00:00","timeZone":"UTC"},"endTime":{"dateTime":"2026-11-20T23:00:00","timeZone":"UTC"}}`,
			Result: `{"busy":{"ann@example.com":[{"start":"2026-11-20T10:00:00+01:00","end":"2026-11-20T11:00:00+01:00"}]},"unknown":["nobody@example.com"]}`}},
		{Name: "OwnAvailability", Tool: "outlook_calendar_availability", Args: `{"time_min":"2026-11-20","time_max":"2026-11-21"}`, Operation: op{Call: "POST /v1.0/me/calendar/getSchedule", Body: `{"schedules":["me@example.com"]}`}},
		{Name: "Create", Tool: "outlook_calendar_create_event", Config: `{"timezone":"Europe/Berlin"}`, Args: `{"summary":"s","start":"2026-11-20T12:00","description":"d","location":"l","attendees":["ann@example.com"]}`, Operation: op{Call: "POST /v1.0/me/events",
			Body:   `{"subject":"s","body":{"contentType":"text","content":"d"},"location":{"displayName":"l"},"isAllDay":false,"start":{"dateTime":"2026-11-20T11:00:00","timeZone":"UTC"},"end":{"dateTime":"2026-11-20T12:00:00","timeZone":"UTC"},"attendees":[{"type":"required","emailAddress":{"address":"ann@example.com"}}]}`,
			Result: `{"event":{"event_id":"AAMknew60","start":"2026-11-20T12:00:00+01:00"}}`}},
		{Name: "CreateDays", Tool: "outlook_calendar_create_event", Config: `{"timezone":"Asia/Shanghai","calendar_id":"team"}`, Args: `{"summary":"s","start":"2026-11-20"}`, Operation: op{Call: "POST /v1.0/me/calendars/team/events",
			Body: `{"isAllDay":true,"start":{"dateTime":"2026-11-20T00:00:00"},"end":{"dateTime":"2026-11-21T00:00:00"}}`, Result: `{"event":{"all_day":true,"start":"2026-11-20","end":"2026-11-21"}}`}},
		{Name: "Move", Tool: "outlook_calendar_update_event", Args: `{"event_id":"AAMk0005","start":"2026-12-01T10:00","summary":"x"}`, Operation: op{Call: "PATCH /v1.0/me/events/AAMk0005", Body: `{"subject":"x","isAllDay":false,"start":{"dateTime":"2026-12-01T10:00:00"},"end":{"dateTime":"2026-12-01T13:00:00"}}`}},
		{Name: "MoveToADay", Tool: "outlook_calendar_update_event", Args: `{"event_id":"AAMk0005","start":"2026-12-01"}`, Operation: op{Call: "PATCH /v1.0/me/events/AAMk0005", Body: `{"isAllDay":true,"start":{"dateTime":"2026-12-01T00:00:00"},"end":{"dateTime":"2026-12-02T00:00:00"}}`}},
		{Name: "MoveTheEnd", Tool: "outlook_calendar_update_event", Args: `{"event_id":"AAMk0000","end":"2026-11-02T15:00:00Z"}`, Operation: op{Call: "PATCH /v1.0/me/events/AAMk0000", Body: `{"start":{"dateTime":"2026-11-02T09:00:00"},"end":{"dateTime":"2026-11-02T15:00:00"}}`}},
		{Name: "Delete", Tool: "outlook_calendar_delete_event", Args: `{"event_id":"AAMk0005"}`, Operation: op{Call: "DELETE /v1.0/me/events/AAMk0005", Result: `{"deleted":true}`}},
		respond,
		{Name: "Tentative", Tool: "outlook_calendar_respond", Args: `{"event_id":"AAMk0005","response":"tentative"}`, Operation: op{Call: "POST /v1.0/me/events/AAMk0005/tentativelyAccept", Result: `{"response":"tentativelyAccepted"}`}},
		{Name: "Decline", Tool: "outlook_calendar_respond", Args: `{"event_id":"AAMk0005","response":"decline"}`, Operation: op{Call: "POST /v1.0/me/events/AAMk0005/decline"}},
	})
}

// TestCalendarTool_Pages: events are read over several pages.
func TestCalendarTool_Pages(t *testing.T) {
	t.Parallel()
	b := calendarToolVendor().New(t)
	out, err := b.Use(`{"max_results":25}`, "outlook_calendar_events", `{"time_min":"2026-11-02","time_max":"2026-11-20"}`)
	if err != nil || out.Get("events.#").Int() != 25 || out.Get("events.24.event_id").Str != "AAMk0024" || !out.Get("truncated").Bool() || len(b.Calls("GET /v1.0/me/calendarView")) != 3 {
		t.Errorf("%d events on %d pages: %v", out.Get("events.#").Int(), len(b.Calls("GET /v1.0/me/calendarView")), err)
	}
}

func TestCalendarTool_Failures(t *testing.T) {
	t.Parallel()
	calendarToolVendor().ToolFailures(t,
		actiontest.ToolUse{Tool: "outlook_calendar_events", Operation: actiontest.Operation{Call: "GET /v1.0/me/calendarView"}}, responding(),
		[]actiontest.ToolRefusal{
			{Name: "NoEvent", Tool: "outlook_calendar_delete_event", Args: `{"event_id":"none"}`, Code: fault.ToolError},
			{Name: "NoAnswer", Tool: "outlook_calendar_respond", Args: `{"event_id":"AAMk0005","response":"perhaps"}`, Code: fault.ToolError, Part: "response"},
			{Name: "NoSummary", Tool: "outlook_calendar_create_event", Args: `{"start":"2026-11-20"}`, Code: fault.ToolError, Part: "summary"},
			{Name: "NoTime", Tool: "outlook_calendar_create_event", Args: `{"summary":"s","start":"soon"}`, Code: fault.ToolError, Part: "is not a time"},
			{Name: "NoChange", Tool: "outlook_calendar_update_event", Args: `{"event_id":"AAMk0005"}`, Code: fault.ToolError, Part: "what to change"},
			{Name: "Mixed", Tool: "outlook_calendar_update_event", Args: `{"event_id":"AAMk0005","end":"2026-11-20"}`, Code: fault.ToolError, Part: "both be days"},
			{Name: "NoZone", Config: `{"timezone":"Mars/Base"}`, Tool: "outlook_calendar_events", Code: fault.InvalidConfig, Part: "is not a time zone"},
		})
}

// TestCalendarTool_Settles: an answer to an invitation that has arrived is found.
func TestCalendarTool_Settles(t *testing.T) {
	t.Parallel()
	calendarToolVendor().ToolSettles(t, responding(), "event_id", "response")
}

// TestCalendarTool_Again: a model makes an event once, although the answer was lost; what is gone already is a success.
func TestCalendarTool_Again(t *testing.T) {
	t.Parallel()
	b := calendarToolVendor().New(t)
	call := b.ToolCall(``, "outlook_calendar_create_event", `{"summary":"only once","start":"2026-12-24"}`)
	b.Loses("POST /v1.0/me/events")
	if _, err := b.UseCall(call); err == nil || !fault.From(err).Retryable {
		t.Fatalf("the answer was lost: %v", err)
	}
	call.Attempt = 2
	if _, err := b.UseCall(call); err != nil {
		t.Fatal(err)
	}
	if all, err := b.Use(``, "outlook_calendar_events", `{"time_min":"2026-12-24","time_max":"2026-12-25"}`); err != nil || all.Get("events.#").Int() != 1 {
		t.Errorf("%s: %v", all.Raw, err)
	}
	gone := b.ToolCall(``, "outlook_calendar_delete_event", `{"event_id":"AAMk0005"}`)
	for gone.Attempt = 1; gone.Attempt <= 2; gone.Attempt++ {
		if _, err := b.UseCall(gone); err != nil {
			t.Errorf("attempt %d: %v", gone.Attempt, err)
		}
	}
}

func TestCalendarTool_Effects(t *testing.T) {
	t.Parallel()
	want := map[string]workflow.Effect{"outlook_calendar_respond": workflow.Once}
	for _, name := range []string{"events", "availability", "create_event", "update_event", "delete_event"} {
		want["outlook_calendar_"+name] = workflow.Idempotent
	}
	if got := calendarToolVendor().Tools(t); !maps.Equal(got, want) {
		t.Errorf("the tools are %v", got)
	}
}
