package google

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tandem/builtin/action"
	"tandem/builtin/calendar"
	"tandem/builtin/httpcall"
	"tandem/builtin/rest"
	"tandem/fault"
	"tandem/node"
	"tandem/outbound"
	"tandem/payload"
	"tandem/workflow"
)

type calendarConfig struct {
	action.Fields
	action.Paging
	CalendarID    string          `json:"calendar_id" doc:"The id of the calendar, often a mail address; primary is that of the account itself." zh:"日历：日历的编号，通常为邮箱地址；primary 为账号自己的日历。"`
	Summary       string          `json:"summary" with:"action_type=create_event|update_event" doc:"What the event is called." zh:"标题：活动的名称。"`
	Start         string          `json:"start" with:"action_type=create_event|update_event" doc:"When it begins: a time such as 2026-11-20T12:00:00+01:00, or a day such as 2026-11-20 for whole days." zh:"开始：时间（如 2026-11-20T12:00:00+01:00），或全天活动的日期（如 2026-11-20）。"`
	StartDatetime string          `json:"start_datetime" with:"action_type=create_event|update_event" doc:"When it begins, as start." zh:"开始时间：同 start。"`
	Date          string          `json:"date" with:"action_type=create_event|update_event" doc:"The day of an event that takes the whole day." zh:"日期：全天活动的日期。"`
	End           string          `json:"end" with:"action_type=create_event|update_event" doc:"When it ends; of whole days the day after the last. Without it an event takes an hour or a day, and one that is moved stays as long as it is." zh:"结束：结束时间；全天活动为最后一天的次日。省略时为一小时或一天；移动活动时时长不变。"`
	Timezone      string          `json:"timezone" with:"action_type=create_event|update_event|list_events|search_events" doc:"The time zone of times that have no offset, such as Europe/Berlin; an event that recurs needs it." zh:"时区：不带时差的时间所在时区，如 Europe/Berlin；重复活动必填。"`
	Description   string          `json:"description" with:"action_type=create_event|update_event" doc:"What the event is about." zh:"说明：活动的内容。"`
	Location      string          `json:"location" with:"action_type=create_event|update_event" doc:"Where it takes place." zh:"地点：活动的地点。"`
	Attendees     json.RawMessage `json:"attendees" takes:"text|list" with:"action_type=create_event|update_event|add_attendees" doc:"The mail addresses of the people who are invited: a list, or a text with commas. Those of update_event take the place of all others." zh:"参与者：受邀人的邮箱地址，列表或以逗号分隔的文本；update_event 中会替换全部参与者。"`
	Recurrence    json.RawMessage `json:"recurrence" takes:"text|list" with:"action_type=create_event|update_event" doc:"How it recurs, in the words of iCalendar: RRULE:FREQ=WEEKLY;COUNT=5." zh:"重复规则：iCalendar 格式，如 RRULE:FREQ=WEEKLY;COUNT=5。"`
	SendUpdates   string          `json:"send_updates" enum:"all|externalOnly|none" with:"action_type=create_event|update_event|delete_event|add_attendees" doc:"Who gets mail about the change: all, those outside of the organisation, or none." zh:"发送通知：变更时通知全部、仅外部或不通知。"`
	EventID       string          `json:"event_id" with:"action_type=update_event|delete_event|add_attendees|get_event" doc:"The id of the event." zh:"活动：活动的编号。"`
	Text          string          `json:"text" with:"action_type=quick_add" doc:"The event in words, such as: Lunch with Ann tomorrow at noon." zh:"文本：以文字描述的活动，例如“Lunch with Ann tomorrow at noon”。"`
	TimeMin       string          `json:"time_min" with:"action_type=list_events|search_events" doc:"Only events that end after this time." zh:"时间下限：仅在此之后结束的活动。"`
	TimeMax       string          `json:"time_max" with:"action_type=list_events|search_events" doc:"Only events that begin before this time." zh:"时间上限：仅在此之前开始的活动。"`
	Q             string          `json:"q" with:"action_type=list_events" doc:"Words that the events must have." zh:"关键词：活动须包含的文字。"`
	MaxResults    int             `json:"max_results" range:"1..2500" with:"action_type=list_events|search_events|list_calendars" doc:"How many entries are asked for at once; limit is how many are read in all." zh:"每页数量：每次请求的条目数；总数由 limit 决定。"`
	SingleEvents  bool            `json:"single_events" with:"action_type=list_events|search_events" doc:"Whether each occurrence of an event that recurs is an event of its own." zh:"展开重复：重复活动的每次出现是否单独列出。"`
	OrderBy       string          `json:"order_by" enum:"startTime|updated" with:"action_type=list_events|search_events" doc:"The order of the events. By startTime only single events are ordered." zh:"排序：活动的顺序；startTime 仅用于展开的活动。"`
	SyncToken     string          `json:"sync_token" with:"action_type=list_events" doc:"Only what has changed since an earlier run, by its next_sync_token; words, times and the order do not count then." zh:"同步标记：仅列出自某次运行以来的变更（其 next_sync_token）；此时关键词、时间与排序无效。"`
	Method        string          `json:"method" with:"action_type=request" doc:"The method of the call." zh:"方法：请求方法。"`
	Path          string          `json:"path" with:"action_type=request" doc:"The path below the address of the API." zh:"路径：API 地址下的路径。"`
	Query         json.RawMessage `json:"query" with:"action_type=search_events|request" doc:"The words that are looked for; of request an object with the parameters of the call." zh:"查询：要查找的文字；request 时为包含请求参数的对象。"`
	Body          json.RawMessage `json:"body" with:"action_type=request" doc:"What is sent, as JSON." zh:"正文：发送的 JSON。"`
}

// Defaults sets what holds when the configuration does not say otherwise.
func (c *calendarConfig) Defaults() {
	c.ActionType, c.Limit, c.CalendarID, c.MaxResults, c.SingleEvents, c.OrderBy, c.SendUpdates = "create_event", action.DefaultLimit,
		"primary", 250, true, "startTime", "none"
}

type calendarResult struct {
	action.Result
	Event         json.RawMessage   `json:"event" doc:"The event; null for lists." zh:"活动：单个活动；列表为 null。"`
	Events        []json.RawMessage `json:"events" doc:"The events of a list." zh:"活动列表：列表中的活动。"`
	Calendars     []json.RawMessage `json:"calendars" doc:"The calendars of a list." zh:"日历列表：列表中的日历。"`
	EventID       string            `json:"event_id" doc:"The id of the event." zh:"活动编号：活动的编号。"`
	EventURL      string            `json:"event_url" doc:"Where people see the event." zh:"活动地址：供人查看的地址。"`
	MeetingLink   string            `json:"meeting_link" doc:"Where the event is met on line." zh:"会议链接：线上会议的地址。"`
	NextSyncToken string            `json:"next_sync_token" doc:"What sync_token of a later run is, when the whole list was read." zh:"下一同步标记：读完全部列表后，供之后运行的 sync_token 使用。"`
	Response      json.RawMessage   `json:"google_calendar_response" doc:"The answer of Google; null for lists." zh:"Google 日历响应：原始响应；列表为 null。"`
}

// calendarAction acts on events and calendars.
func calendarAction(client *outbound.Client) node.Kind {
	steps := action.Steps[calendarConfig, *scheduling, calendarResult]{
		Begin: func(ctx context.Context, call *node.Call, cfg calendarConfig) (*scheduling, error) {
			zone, err := calendar.Zone("timezone", cfg.Timezone)
			if err != nil {
				return nil, err
			}
			api, err := openCalendar(ctx, client, call, cfg.CalendarID)
			return &scheduling{calendarAPI: api, call: call, cfg: cfg, zone: zone}, err
		},
		End: func(out *calendarResult, cfg calendarConfig) { out.done(cfg.ActionType) },
	}
	operations := []action.Operation[calendarConfig, calendarResult]{
		{Name: "create_event", Effect: workflow.Idempotent, Needs: []string{"summary", "start|start_datetime|date"},
			Do: steps.Does((*scheduling).create)},
		{Name: "update_event", Effect: workflow.Idempotent, Needs: []string{"event_id"}, Do: steps.Does((*scheduling).update)},
		{Name: "delete_event", Effect: workflow.Idempotent, Needs: []string{"event_id"}, Do: steps.Does((*scheduling).delete)},
		{Name: "add_attendees", Effect: workflow.Idempotent, Needs: []string{"event_id", "attendees"},
			Do: steps.Does((*scheduling).addAttendees)},
		{Name: "quick_add", Effect: workflow.Once, Needs: []string{"text"},
			Do: steps.Does(func(a *scheduling) (calendarResult, error) { return single(a.quickAdd(a.cfg.Text)) })},
		{Name: "list_events", Also: []string{"google_calendar_events"}, Effect: workflow.Idempotent, Lists: true,
			Do: steps.Does((*scheduling).list)},
		{Name: "search_events", Also: []string{"google_calendar_search"}, Effect: workflow.Idempotent, Lists: true, Needs: []string{"query"}, Do: steps.Does((*scheduling).search)},
		{Name: "get_event", Effect: workflow.Idempotent, Needs: []string{"event_id"},
			Do: steps.Does(func(a *scheduling) (calendarResult, error) { return single(a.get(a.cfg.EventID)) })},
		{Name: "list_calendars", Effect: workflow.Idempotent, Lists: true, Do: steps.Does((*scheduling).calendars)},
		{
			Name: "request", EffectOf: func(c calendarConfig) workflow.Effect { return httpcall.EffectOf(c.Method) }, Needs: []string{"method", "path"},
			Do: steps.Does((*scheduling).request),
		},
	}
	for i := range operations {
		operations[i].Also = append(operations[i].Also, "google_calendar_"+operations[i].Name)
	}
	return action.Define(node.About{
		Name: "EXTERNAL_ACTION.GOOGLE_CALENDAR", Title: node.Says("Google Calendar", "Google 日历"),
		Description: node.Says("Works on Google Calendar: makes, changes, finds and deletes events, and invites people.", "操作 Google 日历：创建、更改、查找与删除活动，并邀请参与者。"),
		Effect:      workflow.Once,
		Needs:       node.Needs{Credential: []string{credentialType}},
		Keys:        []node.Key{{Name: "result", Meaning: node.Says("What Google Calendar has answered.", "Google 日历的响应。")}},
		Examples: []node.Example{{
			Shows:   node.Says("Puts a day off into the calendar of the team.", "在团队日历中添加休假。"),
			Config:  `{"credential_id": "google_acme", "action_type": "create_event", "calendar_id": "team@example.com", "summary": "{{name}} is away", "date": "2026-12-24"}`,
			Input:   `{"name": "Ann"}`,
			Replies: []string{`{"id": "e1", "htmlLink": "https://calendar.example.com/e1", "summary": "Ann is away"}`},
			Output:  `{"result": {"success": true, "action": "create_event", "resource_id": "e1", "resource_url": "https://calendar.example.com/e1", "items": [], "next_cursor": "", "truncated": false, "rate_limit_info": null, "error_message": "", "event": {"id": "e1", "htmlLink": "https://calendar.example.com/e1", "summary": "Ann is away"}, "events": [], "calendars": [], "event_id": "e1", "event_url": "https://calendar.example.com/e1", "meeting_link": "", "next_sync_token": "", "google_calendar_response": {"id": "e1", "htmlLink": "https://calendar.example.com/e1", "summary": "Ann is away"}}}`,
		}},
	}, operations)
}

// scheduling is one run of an operation.
type scheduling struct {
	*calendarAPI
	call *node.Call
	cfg  calendarConfig
	zone *time.Location
}

// done says of a result what was done.
func (r *calendarResult) done(what string) {
	r.Done(strings.TrimPrefix(what, "google_calendar_"))
	for _, list := range []*[]json.RawMessage{&r.Events, &r.Calendars} {
		if *list == nil {
			*list = []json.RawMessage{}
		}
	}
	for _, value := range []*json.RawMessage{&r.Event, &r.Response} {
		if *value == nil {
			*value = json.RawMessage("null")
		}
	}
}

// single is the result of an answer that is an event.
func single(answer rest.Answer, err error) (calendarResult, error) {
	if err != nil {
		return calendarResult{}, err
	}
	out := calendarResult{Event: answer.Raw(), Response: answer.Raw(), EventID: answer.Get("id").Str, EventURL: answer.Get("htmlLink").Str,
		MeetingLink: meetingLink(answer.Get("@this"))}
	out.ResourceID, out.ResourceURL, out.RateLimit = out.EventID, out.EventURL, answer.Limits()
	return out, nil
}

// texts is a list of texts, or a text with something between them.
func texts(field string, raw json.RawMessage, between string) (list []string, err error) {
	given := gjson.ParseBytes(raw)
	switch {
	case payload.IsNull(raw):
		return nil, nil
	case given.Type == gjson.String:
		for one := range strings.SplitSeq(given.Str, between) {
			if one = strings.TrimSpace(one); one != "" {
				list = append(list, one)
			}
		}
		return list, nil
	case given.IsArray():
		for _, one := range given.Array() {
			text := one.Str
			if one.IsObject() { // as the service itself writes attendees
				text = one.Get("email").Str
			}
			if text == "" {
				return nil, fault.Newf(fault.InvalidInput, "%s: %s is not a text", field, one.Raw).With("path", field)
			}
			list = append(list, text)
		}
		return list, nil
	}
	return nil, fault.Newf(fault.InvalidInput, "%s must be a list, or a text", field).With("path", field)
}

// plan is when the event takes place, as the configuration says.
func (a *scheduling) plan() (planned, error) {
	p := planned{field: "start", start: a.cfg.Start, end: a.cfg.End, zone: a.zone}
	if p.start == "" {
		p.field, p.start = "start_datetime", a.cfg.StartDatetime
	}
	if p.start == "" && a.cfg.Date != "" {
		p.field, p.start = "date", a.cfg.Date
		if day, err := calendar.Parse("date", a.cfg.Date, a.zone); err != nil || !day.AllDay {
			return p, fault.Newf(fault.InvalidInput, "date: %q is not a day; write it like 2026-11-20, and a time into start", a.cfg.Date).With("path", "date")
		}
	}
	return p, nil
}

// fields are what the configuration says of an event besides its time.
func (a *scheduling) fields() (rest.Fields, []string, error) {
	attendees, err := texts("attendees", a.cfg.Attendees, ",")
	if err != nil {
		return nil, nil, err
	}
	recurrence, err := texts("recurrence", a.cfg.Recurrence, "\n")
	f := rest.Fields{}.Text("summary", a.cfg.Summary).Text("description", a.cfg.Description).Text("location",
		a.cfg.Location).Texts("recurrence", recurrence)
	if len(attendees) > 0 {
		f["attendees"] = people(attendees)
	}
	return f, attendees, err
}

// create makes an event whose id is made of the run, so that it is there once however often it is sent.
func (a *scheduling) create() (calendarResult, error) {
	event, _, err := a.fields()
	if err != nil {
		return calendarResult{}, err
	}
	plan, err := a.plan()
	if err != nil {
		return calendarResult{}, err
	}
	_, plan.repeats = event["recurrence"]
	if err := plan.put(event); err != nil {
		return calendarResult{}, err
	}
	event["id"] = action.Marker(a.call, "google_calendar")
	return single(a.insert(event, a.cfg.SendUpdates))
}

func (a *scheduling) update() (calendarResult, error) {
	change, _, err := a.fields()
	if err != nil {
		return calendarResult{}, err
	}
	plan, err := a.plan()
	if err != nil {
		return calendarResult{}, err
	}
	if err := plan.move(a.calendarAPI, a.cfg.EventID, change); err != nil {
		return calendarResult{}, err
	}
	if len(change) == 0 {
		return calendarResult{}, fault.New(fault.InvalidInput, "update_event has nothing to change; set summary, start, end, description, location, attendees or recurrence").With("path", "summary")
	}
	return single(a.patch(a.cfg.EventID, change, "", a.cfg.SendUpdates))
}

func (a *scheduling) delete() (calendarResult, error) {
	answer, err := a.remove(a.cfg.EventID, a.cfg.SendUpdates, a.call.Attempt)
	out := calendarResult{EventID: a.cfg.EventID, Response: answer.Raw()}
	out.ResourceID = a.cfg.EventID
	return out, err
}

// addAttendees invites people who are not invited yet. Who changes the event meanwhile is not overwritten.
func (a *scheduling) addAttendees() (calendarResult, error) {
	_, more, err := a.fields()
	if err != nil {
		return calendarResult{}, err
	}
	answer, err := a.get(a.cfg.EventID)
	if err != nil {
		return calendarResult{}, err
	}
	all, added := invited(answer.Get("@this"), more)
	if !added {
		return single(answer, nil)
	}
	return single(a.patch(a.cfg.EventID, rest.Fields{"attendees": all}, answer.Get("etag").Str, a.cfg.SendUpdates))
}

func (a *scheduling) list() (calendarResult, error) { return a.found(a.cfg.Q) }

func (a *scheduling) search() (calendarResult, error) {
	words, err := rest.Text("query", a.cfg.Query)
	if err != nil {
		return calendarResult{}, err
	}
	return a.found(words)
}

func (a *scheduling) found(words string) (out calendarResult, err error) {
	s := search{query: words, orderBy: a.cfg.OrderBy, single: a.cfg.SingleEvents, page: min(a.cfg.MaxResults, a.cfg.Limit)}
	if s.from, s.to, err = calendar.Range(a.cfg.TimeMin, a.cfg.TimeMax, a.zone); err != nil {
		return out, err
	}
	query := s.values()
	if a.cfg.SyncToken != "" {
		query = url.Values{"maxResults": query["maxResults"], "singleEvents": query["singleEvents"], "syncToken": {a.cfg.SyncToken}}
	}
	out, err = a.whole(a.events(), query)
	out.Events = out.Items
	return out, err
}

func (a *scheduling) calendars() (calendarResult, error) {
	out, err := a.whole("/users/me/calendarList", search{page: min(a.cfg.MaxResults, a.cfg.Limit, 250)}.values())
	out.Calendars = out.Items
	return out, err
}

// whole reads a list.
func (a *scheduling) whole(where string, query url.Values) (out calendarResult, err error) {
	out.Items, out.NextCursor, err = rest.Pages(a.cfg.Limit, a.cfg.Cursor, func(token string) ([]json.RawMessage, string, error) {
		items, next, answer, err := a.page(where, query, token)
		out.RateLimit, out.NextSyncToken = answer.Limits(), answer.Get("nextSyncToken").Str
		return items, next, err
	})
	if out.NextCursor != "" {
		out.NextSyncToken = ""
	}
	return out, err
}

func (a *scheduling) request() (calendarResult, error) {
	var query node.Object
	if !payload.IsNull(a.cfg.Query) {
		if !gjson.ParseBytes(a.cfg.Query).IsObject() {
			return calendarResult{}, fault.New(fault.InvalidInput, "query must be an object with the parameters of the call").With("path", "query")
		}
		query = node.Object(a.cfg.Query)
	}
	answer, err := a.api.Request(a.ctx, rest.Raw{Method: a.cfg.Method, Path: a.cfg.Path, Query: query, Body: a.cfg.Body})
	out := calendarResult{Response: answer.Raw()}
	out.ResourceID, out.ResourceURL, out.RateLimit = answer.Get("id").Str, answer.Get("htmlLink").Str, answer.Limits()
	return out, err
}
