package google

import (
	"maps"
	"testing"

	"tandem/builtin/action/actiontest"
	"tandem/fault"
	"tandem/workflow"
)

func calendarToolVendor() actiontest.Vendor {
	return actiontest.Vendor{Kind: calendarTool, Serve: newCalendarFake, Prefix: "/google", Renews: true}
}

func TestCalendarTool(t *testing.T) {
	t.Parallel()
	type op = actiontest.Operation
	const insert, list = "POST " + eventsPath, "GET " + eventsPath
	calendarToolVendor().Uses(t, []actiontest.ToolUse{
		{Name: "Events", Tool: "google_calendar_events", Config: `{"timezone":"Europe/Berlin","max_results":2}`, Args: `{"time_min":"2026-11-03","time_max":"2026-11-04T00:00"}`, Operation: op{Call: list,
			Query:  map[string]string{"timeMin": "2026-11-03T00:00:00+01:00", "timeMax": "2026-11-04T00:00:00+01:00", "maxResults": "2", "singleEvents": "true", "orderBy": "startTime"},
			Result: `{"truncated":true,"events":[{"event_id":"event0012","summary":"Meeting 12","start":"2026-11-02T22:00:00+01:00","end":"2026-11-03T01:00:00+01:00","all_day":false,"attendees":["ann@example.com"],"status":"confirmed","event_url":"https://calendar.example.com/12","meeting_link":"https://meet.example.com/x"},{"event_id":"event0013"}]}`}},
		{Name: "FromNow", Tool: "google_calendar_events", Config: `{"max_results":1}`, Operation: op{Call: list}},
		{Name: "Search", Tool: "google_calendar_search", Args: `{"query":"Meeting 249"}`, Operation: op{Call: list, Query: map[string]string{"q": "Meeting 249", "timeMin": ""}, Result: `{"truncated":false,"events":[{"event_id":"event0249"}]}`}},
		{Name: "Day", Tool: "google_calendar_date_query", Config: `{"timezone":"America/New_York"}`, Args: `{"date":"2026-11-01"}`, Operation: op{Call: list, Query: map[string]string{"timeMin": "2026-11-01T00:00:00-04:00", "timeMax": "2026-11-02T00:00:00-05:00"}}},
		{Name: "Availability", Tool: "google_calendar_availability", Config: `{"timezone":"Europe/Berlin"}`, Args: `{"attendees":["ann@example.com","nobody@example.com"],"time_min":"2026-11-20","time_max":"2026-11-21"}`, Operation: op{
			Call: "POST /calendar/v3/freeBusy", Body: `{"timeMin":"2026-11-20T00:00:00+01:00","timeMax":"2026-11-21T00:00:00+01:00","timeZone":"Europe/Berlin","items":[{"id":"ann@example.com"},{"id":"nobody@example.com"}]}`,
			Result: `{"busy":{"ann@example.com":[{"start":"2026-11-20T09:00:00Z","end":"2026-11-20T10:00:00Z"}]},"unknown":["nobody@example.com"]}`}},
		{Name: "OwnAvailability", Tool: "google_calendar_availability", Args: `{"time_min":"2026-11-20","time_max":"2026-11-21"}`, Operation: op{Call: "POST /calendar/v3/freeBusy", Body: `{"items":[{"id":"primary"}]}`}},
		{Name: "Create", Tool: "google_calendar_create_event", Config: `{"timezone":"Europe/Berlin"}`, Args: `{"summary":"s","start":"2026-11-20T12:00","description":"d","location":"l","attendees":["ann@example.com"]}`, Operation: op{Call: insert,
			Body: `{"summary":"s","description":"d","location":"l","attendees":[{"email":"ann@example.com"}],"start":{"dateTime":"2026-11-20T12:00:00+01:00","timeZone":"Europe/Berlin"},"end":{"dateTime":"2026-11-20T13:00:00+01:00"}}`, Result: `{"event":{"summary":"s","start":"2026-11-20T12:00:00+01:00"}}`}},
		{Name: "CreateDays", Tool: "google_calendar_create_event", Args: `{"summary":"s","start":"2026-11-20","end":"2026-11-22"}`, Operation: op{Call: insert, Body: `{"start":{"date":"2026-11-20"},"end":{"date":"2026-11-22"}}`, Result: `{"event":{"all_day":true,"start":"2026-11-20","end":"2026-11-22"}}`}},
		{Name: "Update", Tool: "google_calendar_update_event", Args: `{"event_id":"event0005","start":"2026-12-01T10:00","summary":"x"}`, Operation: op{Call: "PATCH " + eventsPath + "/event0005", Body: `{"summary":"x","start":{"dateTime":"2026-12-01T10:00:00Z"},"end":{"dateTime":"2026-12-01T13:00:00Z"}}`}},
		{Name: "Delete", Tool: "google_calendar_delete_event", Args: `{"event_id":"event0005"}`, Operation: op{Call: "DELETE " + eventsPath + "/event0005", Result: `{"deleted":true,"event_id":"event0005"}`}},
		{Name: "QuickAdd", Tool: "google_calendar_quick_add", Args: `{"text":"Lunch tomorrow"}`, Operation: op{Call: "POST " + eventsPath + "/quickAdd", Query: map[string]string{"text": "Lunch tomorrow"}, Result: `{"event":{"event_id":"quick1"}}`}},
	})
}

func TestCalendarTool_Failures(t *testing.T) {
	t.Parallel()
	calendarToolVendor().ToolFailures(t,
		actiontest.ToolUse{Tool: "google_calendar_search", Args: `{"query":"x"}`, Operation: actiontest.Operation{Call: "GET " + eventsPath}},
		actiontest.ToolUse{Tool: "google_calendar_quick_add", Args: `{"text":"Lunch"}`, Operation: actiontest.Operation{Call: "POST " + eventsPath + "/quickAdd"}},
		[]actiontest.ToolRefusal{
			{Name: "OtherCalendar", Tool: "google_calendar_search", Args: `{"query":"x","calendar_id":"other@example.com"}`, Code: fault.ToolError, Part: "404"},
			{Name: "OtherDefault", Config: `{"default_calendar_id":"other@example.com"}`, Tool: "google_calendar_search", Args: `{"query":"x"}`, Code: fault.ToolError, Part: "404"},
			{Name: "NoDate", Tool: "google_calendar_date_query", Args: `{"date":"today"}`, Code: fault.ToolError, Part: "is not a day"},
			{Name: "NoSummary", Tool: "google_calendar_create_event", Args: `{"start":"2026-11-20"}`, Code: fault.ToolError, Part: "summary"},
			{Name: "NoChange", Tool: "google_calendar_update_event", Args: `{"event_id":"event0005"}`, Code: fault.ToolError, Part: "what to change"},
			{Name: "NoEvent", Tool: "google_calendar_delete_event", Args: `{"event_id":"none"}`, Code: fault.ToolError},
			{Name: "NoQuery", Tool: "google_calendar_search", Args: `{}`, Code: fault.ToolError, Part: "query"},
			{Name: "NoTool", Tool: "google_calendar_serch", Args: `{}`, Code: fault.ToolError, Part: `did you mean "google_calendar_search"`},
			{Name: "NoZone", Config: `{"timezone":"Mars/Base"}`, Tool: "google_calendar_search", Args: `{"query":"x"}`, Code: fault.InvalidConfig, Part: "is not a time zone"},
		})
}

// TestCalendarTool_Again: a model makes an event once, although the answer was lost, and two different ones in a turn.
func TestCalendarTool_Again(t *testing.T) {
	t.Parallel()
	b := calendarToolVendor().New(t)
	call := b.ToolCall(``, "google_calendar_create_event", `{"summary":"only once","start":"2026-11-20"}`)
	b.Loses("POST " + eventsPath)
	if _, err := b.UseCall(call); err == nil || !fault.From(err).Retryable {
		t.Fatalf("the answer was lost: %v", err)
	}
	call.Attempt = 2
	if _, err := b.UseCall(call); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Use(``, "google_calendar_create_event", `{"summary":"only once, too","start":"2026-11-20"}`); err != nil {
		t.Fatal(err)
	}
	if all, err := b.Use(``, "google_calendar_search", `{"query":"only once"}`); err != nil || all.Get("events.#").Int() != 2 {
		t.Errorf("%s: %v", all.Raw, err)
	}
}

func TestCalendarTool_Effects(t *testing.T) {
	t.Parallel()
	v := calendarToolVendor()
	want := map[string]workflow.Effect{"google_calendar_quick_add": workflow.Once}
	for _, name := range []string{"events", "search", "date_query", "availability", "create_event", "update_event", "delete_event"} {
		want["google_calendar_"+name] = workflow.Idempotent
	}
	if got := v.Tools(t); !maps.Equal(got, want) {
		t.Errorf("the tools are %v", got)
	}
	for config, want := range map[string]workflow.Effect{`{}`: workflow.Once, `{"tool_name":"google_calendar_events"}`: workflow.Idempotent, `{"available_tools":["google_calendar_quick_add"]}`: workflow.Once} {
		if got := v.Planned(t, config); got != want {
			t.Errorf("%s is %s", config, got)
		}
	}
}
