package google

import (
	"context"
	"errors"
	"testing"

	"github.com/tidwall/gjson"

	"tandem/builtin/action/actiontest"
	"tandem/fault"
	"tandem/node"
)

const eventsPath = "/calendar/v3/calendars/primary/events"

func calendarVendor() actiontest.Vendor {
	quick := actiontest.Sample{Config: `{"action_type":"quick_add","text":"Lunch tomorrow"}`, Call: "POST " + eventsPath + "/quickAdd"}
	get := actiontest.Sample{Config: `{"action_type":"get_event","event_id":"event0005"}`, Call: "GET " + eventsPath + "/event0005"}
	list := actiontest.Sample{Config: `{"action_type":"list_events"}`, Call: "GET " + eventsPath}
	only := func(config string) actiontest.Sample { return actiontest.Sample{Config: config} }
	limit := func(reason string) actiontest.Reply {
		return actiontest.Reply{Status: 403, Header: map[string]string{"Retry-After": "9"}, Body: `{"error":{"code":403,"message":"Slow down","errors":[{"reason":"` + reason + `"}]}}`}
	}
	return actiontest.Vendor{
		Kind: calendarAction, Serve: newCalendarFake, Prefix: "/google", Renews: true, Once: quick, Read: get, Pages: list, Total: eventCount,
		Refusals: []actiontest.Refusal{
			{Name: "UserLimit", Sample: quick, Reply: limit("userRateLimitExceeded"), Code: fault.RateLimited, Retryable: true, AfterSeconds: 9},
			{Name: "Limit", Sample: get, Reply: limit("rateLimitExceeded"), Code: fault.RateLimited, Retryable: true, AfterSeconds: 9},
			{Name: "Quota", Sample: get, Reply: limit("quotaExceeded"), Code: fault.RateLimited, Retryable: true, AfterSeconds: 9},
			{Name: "NoScope", Sample: get, Reply: limit("insufficientPermissions"), Code: fault.CredentialInvalid, Part: "Slow down"},
			{Name: "NoSummary", Sample: only(`{"action_type":"create_event","date":"2026-11-20"}`), Code: fault.InvalidInput, Part: "summary"},
			{Name: "NoStart", Sample: only(`{"action_type":"create_event","summary":"s"}`), Code: fault.InvalidInput, Part: "start or start_datetime or date"},
			{Name: "NoOffset", Sample: only(`{"action_type":"create_event","summary":"s","start":"2026-11-20T12:00"}`), Code: fault.InvalidInput, Part: "set timezone"},
			{Name: "NoZone", Sample: only(`{"action_type":"create_event","summary":"s","start":"2026-11-20T12:00","timezone":"Mars/Base"}`), Code: fault.InvalidInput, Part: "is not a time zone"},
			{Name: "NoTime", Sample: only(`{"action_type":"create_event","summary":"s","start":"tomorrow"}`), Code: fault.InvalidInput, Part: "is not a time"},
			{Name: "NoDay", Sample: only(`{"action_type":"create_event","summary":"s","date":"2026-11-20T12:00:00Z"}`), Code: fault.InvalidInput, Part: "is not a day"},
			{Name: "Mixed", Sample: only(`{"action_type":"create_event","summary":"s","start":"2026-11-20","end":"2026-11-20T12:00:00Z"}`), Code: fault.InvalidInput, Part: "both be days"},
			{Name: "Backwards", Sample: only(`{"action_type":"create_event","summary":"s","start":"2026-11-20T12:00:00Z","end":"2026-11-20T11:00:00Z"}`), Code: fault.InvalidInput, Part: "before it begins"},
			{Name: "RecursNowhere", Sample: only(`{"action_type":"create_event","summary":"s","start":"2026-11-20T12:00:00Z","recurrence":["RRULE:FREQ=DAILY"]}`), Code: fault.InvalidInput, Part: "needs timezone"},
			{Name: "AttendeesOfNothing", Sample: only(`{"action_type":"create_event","summary":"s","date":"2026-11-20","attendees":[1]}`), Code: fault.InvalidInput, Part: "attendees"},
			{Name: "NothingToChange", Sample: only(`{"action_type":"update_event","event_id":"event0005"}`), Code: fault.InvalidInput, Part: "nothing to change"},
			{Name: "OtherEvent", Sample: only(`{"action_type":"get_event","event_id":"none"}`), Code: fault.NotFound},
			{Name: "OtherCalendar", Sample: only(`{"action_type":"list_events","calendar_id":"other@example.com"}`), Code: fault.NotFound},
			{Name: "DeleteOther", Sample: only(`{"action_type":"delete_event","event_id":"none"}`), Code: fault.NotFound},
			{Name: "DayWithoutZone", Sample: only(`{"action_type":"list_events","time_min":"2026-11-20"}`), Code: fault.InvalidInput, Part: "set timezone"},
			{Name: "EmptyRange", Sample: only(`{"action_type":"list_events","time_min":"2026-11-20T12:00:00Z","time_max":"2026-11-20T12:00:00Z"}`), Code: fault.InvalidInput, Part: "not behind"},
			{Name: "OldSync", Sample: only(`{"action_type":"list_events","sync_token":"old"}`), Code: fault.NotFound, Part: "full sync"},
			{Name: "QueryOfWords", Sample: only(`{"action_type":"request","method":"GET","path":"/x","query":"words"}`), Code: fault.InvalidInput, Part: "query"},
		},
	}
}

func TestCalendarAction_Operations(t *testing.T) {
	t.Parallel()
	create := func(more string) string { return `{"action_type":"create_event","summary":"s",` + more + `}` }
	const insert = "POST " + eventsPath
	calendarVendor().Operations(t, []actiontest.Operation{
		{
			Name: "Create", Config: create(`"start":"2026-11-20T12:00:00+01:00","end":"2026-11-20T13:30:00+01:00","description":"d","location":"l","attendees":["ann@example.com","bob@example.com"],"send_updates":"all"`), Call: insert,
			Query:  map[string]string{"sendUpdates": "all"},
			Body:   `{"summary":"s","description":"d","location":"l","start":{"dateTime":"2026-11-20T12:00:00+01:00"},"end":{"dateTime":"2026-11-20T13:30:00+01:00"},"attendees":[{"email":"ann@example.com"},{"email":"bob@example.com"}]}`,
			Result: `{"success":true,"action":"create_event","event_url":"https://calendar.example.com/new","resource_url":"https://calendar.example.com/new","event":{"summary":"s"},"google_calendar_response":{"summary":"s"}}`,
		},
		{Name: "OlderName", Config: `{"action_type":"google_calendar_create_event","summary":"s","date":"2026-11-20"}`, Call: insert, Result: `{"action":"create_event"}`},
		{Name: "AnHour", Config: create(`"start_datetime":"2026-11-20 12:00","timezone":"Europe/Berlin"`), Call: insert, Query: map[string]string{"sendUpdates": "none"}, Body: `{"start":{"dateTime":"2026-11-20T12:00:00+01:00","timeZone":"Europe/Berlin"},"end":{"dateTime":"2026-11-20T13:00:00+01:00","timeZone":"Europe/Berlin"}}`},
		{Name: "WhenClocksChange", Config: create(`"start":"2026-03-29T01:30","timezone":"Europe/Berlin"`), Call: insert, Body: `{"start":{"dateTime":"2026-03-29T01:30:00+01:00"},"end":{"dateTime":"2026-03-29T03:30:00+02:00"}}`},
		{Name: "ADay", Config: create(`"date":"2026-02-28"`), Call: insert, Body: `{"start":{"date":"2026-02-28"},"end":{"date":"2026-03-01"}}`},
		{Name: "TheSameDay", Config: create(`"start":"2026-11-20","end":"2026-11-20"`), Call: insert, Body: `{"start":{"date":"2026-11-20"},"end":{"date":"2026-11-21"}}`},
		{Name: "Days", Config: create(`"start":"2026-11-20","end":"2026-11-25","timezone":"Asia/Shanghai"`), Call: insert, Body: `{"start":{"date":"2026-11-20"},"end":{"date":"2026-11-25"}}`},
		{
			Name: "Recurs", Config: create(`"start":"2026-11-20T12:00","timezone":"Europe/Berlin","recurrence":"RRULE:FREQ=WEEKLY;COUNT=5\nEXDATE:20261127T110000Z"`), Call: insert,
			Body: `{"recurrence":["RRULE:FREQ=WEEKLY;COUNT=5","EXDATE:20261127T110000Z"],"start":{"timeZone":"Europe/Berlin"}}`,
		},
		{Name: "InputFills", Config: `{"action_type":"create_event","calendar_id":"primary"}`, Input: `{"data":{"summary":"n","date":"2026-11-20","calendar_id":"other","attendees":"ann@example.com, bob@example.com"}}`, Call: insert, Body: `{"summary":"n","attendees":[{"email":"ann@example.com"},{"email":"bob@example.com"}]}`},
		{Name: "Update", Config: `{"action_type":"update_event","event_id":"event0005","summary":"x","location":"y"}`, Call: "PATCH " + eventsPath + "/event0005", Body: `{"summary":"x","location":"y"}`, Result: `{"event_id":"event0005","meeting_link":"https://meet.example.com/x"}`},
		{Name: "MoveKeepsTheLength", Config: `{"action_type":"update_event","event_id":"event0005","start":"2026-12-01T10:00:00Z"}`, Call: "PATCH " + eventsPath + "/event0005", Body: `{"start":{"dateTime":"2026-12-01T10:00:00Z","date":null},"end":{"dateTime":"2026-12-01T13:00:00Z","date":null}}`},
		{Name: "MoveToADay", Config: `{"action_type":"update_event","event_id":"event0005","date":"2026-12-01"}`, Call: "PATCH " + eventsPath + "/event0005", Body: `{"start":{"date":"2026-12-01","dateTime":null},"end":{"date":"2026-12-02","dateTime":null}}`, Result: `{"event":{"start":{"date":"2026-12-01"}}}`},
		{Name: "MoveTheEnd", Config: `{"action_type":"update_event","event_id":"event0000","end":"2026-11-02T15:00:00Z"}`, Call: "PATCH " + eventsPath + "/event0000", Body: `{"end":{"dateTime":"2026-11-02T15:00:00Z"}}`},
		{Name: "Delete", Config: `{"action_type":"delete_event","event_id":"event0005"}`, Call: "DELETE " + eventsPath + "/event0005", Result: `{"resource_id":"event0005","event_id":"event0005","event":null}`},
		{
			Name: "AddAttendees", Config: `{"action_type":"add_attendees","event_id":"event0005","attendees":["Ann@example.com","bob@example.com"]}`, Call: "PATCH " + eventsPath + "/event0005",
			Header: map[string]string{"If-Match": `"1"`}, Body: `{"attendees":[{"email":"ann@example.com","responseStatus":"accepted"},{"email":"bob@example.com"}]}`,
		},
		{Name: "QuickAdd", Config: `{"action_type":"quick_add","text":"Lunch tomorrow"}`, Call: "POST " + eventsPath + "/quickAdd", Query: map[string]string{"text": "Lunch tomorrow"}, Result: `{"event_id":"quick1","resource_id":"quick1"}`},
		{
			Name: "List", Config: `{"action_type":"list_events","time_min":"2026-11-03","time_max":"2026-11-04T00:00","timezone":"Europe/Berlin","q":"Meeting 20","max_results":7}`, Call: "GET " + eventsPath,
			Query: map[string]string{"timeMin": "2026-11-03T00:00:00+01:00", "timeMax": "2026-11-04T00:00:00+01:00", "q": "Meeting 20", "singleEvents": "true", "orderBy": "startTime", "maxResults": "7"},
		},
		{Name: "ListUpdated", Config: `{"action_type":"list_events","single_events":false,"order_by":"updated","limit":1}`, Call: "GET " + eventsPath, Query: map[string]string{"singleEvents": "false", "orderBy": "updated", "maxResults": "1"}, Result: `{"events":[{"id":"event0000"}],"truncated":true,"next_cursor":"1","next_sync_token":""}`},
		{Name: "ListUnordered", Config: `{"action_type":"list_events","single_events":false,"q":"Meeting 249"}`, Call: "GET " + eventsPath, Query: map[string]string{"orderBy": ""}, Result: `{"items":[{"id":"event0249"}],"next_sync_token":"sync1"}`},
		{Name: "ListChanges", Config: `{"action_type":"list_events","sync_token":"sync1","q":"x","limit":1000,"cursor":"200"}`, Call: "GET " + eventsPath, Query: map[string]string{"syncToken": "sync1", "q": "", "orderBy": ""}},
		{Name: "Search", Config: `{"action_type":"search_events","query":"Meeting 249"}`, Call: "GET " + eventsPath, Query: map[string]string{"q": "Meeting 249"}, Result: `{"events":[{"id":"event0249"}],"event":null,"google_calendar_response":null}`},
		{Name: "Get", Config: `{"action_type":"get_event","event_id":"event0005"}`, Call: "GET " + eventsPath + "/event0005", Result: `{"event":{"summary":"Meeting 5"},"event_url":"https://calendar.example.com/5"}`},
		{Name: "Calendars", Config: `{"action_type":"list_calendars"}`, Call: "GET /calendar/v3/users/me/calendarList", Result: `{"calendars":[{"id":"primary"}],"items":[{"id":"primary"}],"events":[]}`},
		{Name: "Request", Config: `{"action_type":"request","method":"PUT","path":"/calendar/v3/thing","query":{"a":1},"body":{"id":"x"}}`, Call: "PUT /calendar/v3/thing", Query: map[string]string{"a": "1"}, Body: `{"id":"x"}`, Result: `{"resource_id":"x","event":null}`},
	})
}

func TestCalendarAction_Failures(t *testing.T) {
	t.Parallel()
	calendarVendor().Failures(t)
}

// TestCalendarAction_Again: an event is made once, although the answer to the first attempt was lost; what is so already is a success.
func TestCalendarAction_Again(t *testing.T) {
	t.Parallel()
	b := calendarVendor().New(t)
	count := func() int64 {
		all, err := b.Run(`{"action_type":"search_events","query":"only once"}`, ``)
		if err != nil {
			t.Fatal(err)
		}
		return all.Get("events.#").Int()
	}
	call := b.Call(`{"action_type":"create_event","summary":"only once","date":"2026-11-20"}`, ``)
	b.Loses("POST " + eventsPath)
	_, err := b.Kind.Run(context.Background(), call)
	if failed, ok := errors.AsType[*node.Failure](err); !ok || failed.Unknown || !fault.From(err).Retryable {
		t.Fatalf("the answer was lost: %v", err)
	}
	call.Attempt = 2
	out, err := b.Kind.Run(context.Background(), call)
	if err != nil || gjson.GetBytes(out.(node.Done)["result"], "event.summary").Str != "only once" || count() != 1 {
		t.Errorf("the second attempt: %v, %v; there are %d", out, err, count())
	}
	other := b.Call(`{"action_type":"create_event","summary":"only once","date":"2026-11-20"}`, ``)
	other.ActivationID = "another"
	if _, err := b.Kind.Run(context.Background(), other); err != nil || count() != 2 {
		t.Errorf("another node: %v; there are %d", err, count())
	}
	for _, config := range []string{`{"action_type":"delete_event","event_id":"event0007"}`, `{"action_type":"add_attendees","event_id":"event0005","attendees":"carl@example.com"}`} {
		call := b.Call(config, ``)
		for call.Attempt = 1; call.Attempt <= 2; call.Attempt++ {
			if _, err := b.Kind.Run(context.Background(), call); err != nil {
				t.Errorf("%s, attempt %d: %v", config, call.Attempt, err)
			}
		}
	}
	if n := len(b.Calls("PATCH " + eventsPath + "/event0005")); n != 1 {
		t.Errorf("who is invited already is invited %d times", n)
	}
}

// TestCalendarAction_Meanwhile: who changes an event while somebody is added to it is not overwritten.
func TestCalendarAction_Meanwhile(t *testing.T) {
	t.Parallel()
	b := calendarVendor().New(t)
	b.Answers("GET "+eventsPath+"/event0005", actiontest.Reply{Status: 200, Body: `{"id":"event0005","etag":"\"before\"","attendees":[]}`})
	if _, err := b.Run(`{"action_type":"add_attendees","event_id":"event0005","attendees":"x@example.com"}`, ``); fault.CodeOf(err) != fault.Conflict {
		t.Error(err)
	}
}

// TestCalendarAction_MailServer: the base_url of an account may be that of its mail server, which is not called.
func TestCalendarAction_MailServer(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"imap", "imaps", "smtp", "smtps"} {
		v := calendarVendor()
		v.Credential = map[string]string{"base_url": scheme + "://mail.example.com"}
		b := v.New(t)
		api, err := openCalendar(context.Background(), b.Client, b.Call(`{}`, ``), "primary")
		if err != nil || api.api.Base.String() != calendarBase+calendarPath {
			t.Errorf("%s: %v, %v", scheme, api.api.Base, err)
		}
	}
}
