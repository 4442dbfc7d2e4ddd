package n8n

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tandem/importer"
	"tandem/text"
)

// triggerHandlers are the nodes that begin an execution.
func triggerHandlers() map[string]handler {
	start := func(make func(m *making)) handler { return handler{root: true, make: make} }
	hook := handler{root: true, rename: map[string]string{"body": "body", "headers": "headers", "query": "query_params",
		"params": "path_params"}, make: webhook}
	called := handler{root: true, path: []string{"body"}, make: calledBack}
	out := map[string]handler{
		"manualTrigger":            start(manual),
		"start":                    start(manual),
		"executeWorkflowTrigger":   start(manual),
		"errorTrigger":             {root: true, rename: map[string]string{"execution": "failed_execution", "error": "error"}, make: failed},
		"manualChatTrigger":        {root: true, rename: chatFields(), make: chat},
		"chatTrigger":              {root: true, rename: chatFields(), make: chat},
		"webhook":                  hook,
		"scheduleTrigger":          {root: true, rename: map[string]string{"timestamp": "scheduled_time"}, make: schedule},
		"cron":                     start(schedule),
		"interval":                 start(schedule),
		"formTrigger":              {root: true, path: []string{"fields"}, make: form},
		"emailReadImapTrigger":     {root: true, rename: mailFields(), make: mailTrigger},
		"gmailTrigger":             {root: true, rename: mailFields(), make: mailTrigger},
		"microsoftOutlookTrigger":  {root: true, rename: mailFields(), make: mailTrigger},
		"telegramTrigger":          {root: true, path: []string{"telegram_payload"}, make: telegramTrigger},
		"slackTrigger":             {root: true, path: []string{"slack_payload"}, make: slackTrigger},
		"githubTrigger":            {root: true, rename: map[string]string{"body": "github_payload"}, make: githubTrigger},
		"discordTrigger":           {root: true, make: noTrigger},
		"googleSheetsTrigger":      start(noTrigger),
		"googleDriveTrigger":       start(noTrigger),
		"googleCalendarTrigger":    start(noTrigger),
		"airtableTrigger":          start(noTrigger),
		"notionTrigger":            start(noTrigger),
		"rssFeedReadTrigger":       start(noTrigger),
		"localFileTrigger":         start(noTrigger),
		"kafkaTrigger":             start(noTrigger),
		"rabbitmqTrigger":          start(noTrigger),
		"mqttTrigger":              start(noTrigger),
		"postgresTrigger":          start(noTrigger),
		"redisTrigger":             start(noTrigger),
		"sseTrigger":               start(noTrigger),
		"n8nTrigger":               start(noTrigger),
		"workflowTrigger":          start(noTrigger),
		"evaluationTrigger":        start(noTrigger),
		"mcpTrigger":               start(noTrigger),
		"ExecuteWorkflowTriggerV2": start(manual),
	}
	// Services that call an address which somebody has told them.
	for _, name := range []string{
		"stripeTrigger", "typeformTrigger", "calendlyTrigger", "calTrigger", "shopifyTrigger", "hubspotTrigger",
		"jotFormTrigger", "wooCommerceTrigger",
		"whatsAppTrigger", "facebookTrigger", "facebookLeadAdsTrigger", "gitlabTrigger", "bitbucketTrigger", "jiraTrigger", "trelloTrigger",
		"asanaTrigger", "clickUpTrigger",
		"pipedriveTrigger", "zendeskTrigger", "mailchimpTrigger", "payPalTrigger", "surveyMonkeyTrigger", "wufooTrigger", "linearTrigger",
		"mondayTrigger", "todoistTrigger",
		"twilioTrigger", "zoomTrigger", "figmaTrigger", "netlifyTrigger", "helpScoutTrigger", "intercomTrigger", "activeCampaignTrigger",
		"convertKitTrigger", "mailerLiteTrigger",
		"mauticTrigger", "webflowTrigger", "boxTrigger", "ciscoWebexTrigger", "eventbriteTrigger", "gumroadTrigger", "keapTrigger",
		"koBoToolboxTrigger", "lemlistTrigger",
		"onfleetTrigger", "pushcutTrigger", "strapiTrigger", "stravaTrigger", "taigaTrigger", "theHiveTrigger", "theHiveProjectTrigger",
		"togglTrigger", "venafiTlsProtectCloudTrigger",
		"vonageTrigger", "workableTrigger", "getResponseTrigger", "formIoTrigger", "formstackTrigger", "emeliaTrigger", "customerIoTrigger",
		"copperTrigger", "chargebeeTrigger",
		"brevoTrigger", "sendInBlueTrigger", "baserowTrigger", "autopilotTrigger", "affinityTrigger", "acuitySchedulingTrigger",
		"awsSnsTrigger", "wiseTrigger", "microsoftTeamsTrigger",
	} {
		out[name] = called
	}
	delete(out, "ExecuteWorkflowTriggerV2")
	return out
}

// manual is started by a person or another workflow.
func manual(m *making) {
	m.kind = "TRIGGER.MANUAL"
	properties := map[string]any{}
	for _, field := range m.n.params.At("workflowInputs", "values").List() {
		typ := map[string]string{"number": "number", "boolean": "boolean", "array": "array", "object": "object", "string": "string",
			"": "string"}[field.At("type").Text()]
		one := map[string]any{}
		if typ != "" {
			one["type"] = typ
		}
		if name := field.At("name").Text(); name != "" {
			properties[name] = one
		}
	}
	if len(properties) > 0 {
		m.cfg["input_schema"] = map[string]any{"type": "object", "properties": properties}
	}
}

// failed is started when another execution has failed.
func failed(m *making) {
	m.kind = "TRIGGER.MANUAL"
	m.line.Approximate(text.Of("name this workflow in settings.error_workflow of those whose failures it is for"))
}

func chatFields() map[string]string {
	return map[string]string{"chatInput": "message", "sessionId": "conversation_id", "action": "trigger_message"}
}

// chat is started by a message.
func chat(m *making) {
	m.kind = "TRIGGER.CHAT"
	if words := m.n.text("initialMessages"); words != "" {
		m.cfg["greeting"] = words
	}
	if !m.n.params.At("public").Bool() {
		m.cfg["access"] = "users"
	}
}

// path of an address, in which n8n writes names with a colon. read-only
func hookPath(path string) string {
	parts := strings.Split(strings.Trim(strings.TrimPrefix(path, "="), "/"), "/")
	for i, part := range parts {
		if name, ok := strings.CutPrefix(part, ":"); ok {
			parts[i] = "{" + name + "}"
		}
	}
	var b strings.Builder
	for _, r := range "/" + strings.Join(parts, "/") {
		if r < 128 && (r == '/' || r == '-' || r == '_' || r == '.' || r == '~' || r == '{' || r == '}' || r >= '0' && r <= '9' ||
			r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			b.WriteRune(r)
		} else {
			b.WriteByte('-')
		}
	}
	return b.String()
}

// webhook is started by a request.
func webhook(m *making) {
	p := m.n.params
	m.kind = "TRIGGER.WEBHOOK"
	path := cmp.Or(p.At("path").Text(), m.n.doc.At("webhookId").Text(), "webhook")
	if strings.Contains(path, "{{") {
		path = "webhook"
		m.line.Approximate(text.Of("its path was computed, and is now fixed"))
	}
	m.cfg["webhook_path"] = hookPath(path)
	methods := p.At("httpMethod").Texts()
	methods = slices.DeleteFunc(slices.Clone(methods), func(s string) bool {
		return !slices.Contains([]string{"GET", "POST", "PUT", "PATCH", "DELETE"}, s)
	})
	if len(methods) == 0 {
		methods = []string{"GET"}
	}
	m.cfg["allowed_methods"] = methods
	switch p.At("responseMode").Text() {
	case "responseNode":
		m.cfg["response_mode"] = "node"
	case "lastNode":
		m.cfg["response_mode"] = "sync"
	}
	switch kind := p.At("authentication").Text(); kind {
	case "", "none":
	case "headerAuth":
		m.cfg["authentication"] = "header_token"
		m.auth("webhook_secret")
	default:
		m.cfg["authentication"] = "header_token"
		m.auth("webhook_secret")
		m.line.Approximate(text.Of("callers show a secret in a header, and not by %s", kind))
	}
}

// calledBack is started by a service that calls an address.
func calledBack(m *making) {
	m.kind = "TRIGGER.WEBHOOK"
	m.cfg["webhook_path"] = hookPath(strings.TrimSuffix(short(m.n.typ), "Trigger"))
	m.line.Approximate(text.Of("tell the service the address of the webhook yourself; its signature is not checked"))
}

// noTrigger has no counterpart: it is started by hand.
func noTrigger(m *making) {
	m.missing(text.Of("nothing starts executions by %s; a person or a program starts it and hands the data over", short(m.n.typ)))
}

// schedule is started by the clock.
func schedule(m *making) {
	m.kind = "TRIGGER.CRON"
	if zone := m.f.doc.At("settings", "timezone").Text(); zone != "" && zone != "DEFAULT" {
		m.cfg["timezone"] = zone
	}
	var list []string
	for _, one := range m.n.params.At("rule", "interval").List() {
		list = append(list, interval(one, m.line))
	}
	for _, one := range m.n.params.At("triggerTimes", "item").List() {
		list = append(list, times(one))
	}
	if short(m.n.typ) == "interval" {
		list = append(list, every(max(m.n.params.At("interval").Int(1), 1), cmp.Or(m.n.text("unit"), "seconds"), m.line))
	}
	if len(list) == 0 {
		list = []string{"0 0 * * *"}
		if m.n.params.At("rule").Exists() || len(m.n.params.Names()) > 0 {
			m.line.Approximate(text.Of("it has no time; it is started every day at midnight"))
		}
	}
	m.cfg["cron_expression"] = list[0]
	if len(list) > 1 {
		m.line.Approximate(text.Of("it has several times, of which the first is kept: %s", strings.Join(list, "; ")))
	}
}

// interval is a rule of a schedule as a cron expression.
func interval(v importer.Value, line *importer.Line) string {
	minute, hour := v.At("triggerAtMinute").Int(0), v.At("triggerAtHour").Int(0)
	switch field := cmp.Or(v.At("field").Text(), "days"); field {
	case "cronExpression":
		return strings.TrimPrefix(v.At("expression").Text(), "=")
	case "seconds", "minutes":
		return every(max(v.First("secondsInterval", "minutesInterval").Int(map[string]int{"seconds": 30, "minutes": 5}[field]), 1), field,
			line)
	case "hours":
		return fmt.Sprintf("%d %s * * *", minute, stepped(v.At("hoursInterval").Int(1)))
	case "weeks":
		var days []string
		for _, d := range v.At("triggerAtDay").List() {
			days = append(days, d.Text())
		}
		if v.At("weeksInterval").Int(1) > 1 {
			line.Approximate(text.Of("it is started every week"))
		}
		return fmt.Sprintf("%d %d * * %s", minute, hour, cmp.Or(strings.Join(days, ","), "0"))
	case "months":
		return fmt.Sprintf("%d %d %d %s *", minute, hour, max(v.At("triggerAtDayOfMonth").Int(1), 1),
			stepped(v.At("monthsInterval").Int(1)))
	}
	if v.At("daysInterval").Int(1) > 1 {
		return fmt.Sprintf("%d %d */%d * *", minute, hour, v.At("daysInterval").Int(1))
	}
	return fmt.Sprintf("%d %d * * *", minute, hour)
}

// stepped is every n-th in a cron expression.
func stepped(n int) string {
	if n <= 1 {
		return "*"
	}
	return "*/" + strconv.Itoa(n)
}

// every is a time that comes again after so many of a unit.
func every(n int, unit string, line *importer.Line) string {
	switch unit {
	case "seconds":
		if n >= 60 {
			return every(n/60, "minutes", line)
		}
		return stepped(n) + " * * * * *"
	case "minutes":
		if n >= 60 {
			return every(n/60, "hours", line)
		}
		return stepped(n) + " * * * *"
	}
	if n >= 24 {
		line.Approximate(text.Of("it is started every day"))
		return "0 0 * * *"
	}
	return "0 " + stepped(n) + " * * *"
}

// times is a time of older files.
func times(v importer.Value) string {
	minute, hour := v.At("minute").Int(0), v.At("hour").Int(14)
	switch v.At("mode").Text() {
	case "everyMinute":
		return "* * * * *"
	case "everyHour":
		return fmt.Sprintf("%d * * * *", minute)
	case "everyWeek":
		return fmt.Sprintf("%d %d * * %s", minute, hour, cmp.Or(v.At("weekday").Text(), "1"))
	case "everyMonth":
		return fmt.Sprintf("%d %d %d * *", minute, hour, max(v.At("dayOfMonth").Int(1), 1))
	case "everyX":
		if v.At("unit").Text() == "minutes" {
			return stepped(v.At("value").Int(2)) + " * * * *"
		}
		return "0 " + stepped(v.At("value").Int(2)) + " * * *"
	case "custom":
		return strings.TrimPrefix(v.At("cronExpression").Text(), "=")
	}
	return fmt.Sprintf("%d %d * * *", minute, hour)
}

// form is started by a form.
func form(m *making) {
	p := m.n.params
	m.kind = "TRIGGER.FORM"
	if s := p.At("formTitle").Text(); s != "" {
		m.cfg["title"] = strings.TrimPrefix(s, "=")
	}
	if s := p.At("formDescription").Text(); s != "" {
		m.cfg["description"] = strings.TrimPrefix(s, "=")
	}
	properties, required := map[string]any{}, []string{}
	for _, field := range p.At("formFields", "values").List() {
		name := cmp.Or(field.First("fieldName", "fieldLabel").Text(), "field_"+strconv.Itoa(len(properties)+1))
		one := map[string]any{"type": "string", "title": cmp.Or(field.At("fieldLabel").Text(), name)}
		switch field.At("fieldType").Text() {
		case "number":
			one["type"] = "number"
		case "date":
			one["format"] = "date"
		case "email":
			one["format"] = "email"
		case "file":
			one["format"] = "file"
		case "dropdown", "radio", "checkbox":
			var options []string
			for _, o := range field.At("fieldOptions", "values").List() {
				if s := o.At("option").Text(); s != "" && !slices.Contains(options, s) {
					options = append(options, s)
				}
			}
			if len(options) > 0 && field.At("multiselect").Bool() || len(options) > 0 && field.At("fieldType").Text() == "checkbox" {
				one = map[string]any{"type": "array", "title": one["title"], "items": map[string]any{"type": "string", "enum": options}}
			} else if len(options) > 0 {
				one["enum"] = options
			}
		case "html", "hiddenField":
			continue
		}
		properties[name] = one
		if field.At("requiredField").Bool() {
			required = append(required, name)
		}
	}
	if len(properties) == 0 {
		properties["text"] = map[string]any{"type": "string"}
		m.line.Approximate(text.Of("the form has no field that can be shown here, and was given one"))
	}
	m.cfg["form_schema"] = map[string]any{"type": "object", "properties": properties, "required": required}
	if mode := p.At("responseMode").Text(); mode == "responseNode" {
		m.cfg["response_mode"] = "node"
	} else if mode == "lastNode" {
		m.cfg["response_mode"] = "sync"
	}
}

func mailFields() map[string]string {
	return map[string]string{
		"subject": "subject", "from": "sender", "to": "recipient", "text": "body_text", "textPlain": "body_text",
		"html": "body_html", "textHtml": "body_html",
		"date": "received_date", "id": "email_id", "threadId": "thread_id", "attachments": "attachments",
		"snippet": "body_text", "headers": "email_headers",
	}
}

// mailTrigger is started by a mail.
func mailTrigger(m *making) {
	m.kind = "TRIGGER.EMAIL"
	provider, typ := "imap", "imap"
	switch short(m.n.typ) {
	case "gmailTrigger":
		provider, typ = "gmail_api", "google_oauth"
	case "microsoftOutlookTrigger":
		provider, typ = "outlook_api", "microsoft_oauth"
	}
	m.cfg["email_provider"] = provider
	m.auth(typ)
	m.line.Approximate(text.Of("which mails it is for is set anew; fields of a mail have other names here"))
}

// telegramTrigger is started by a message in Telegram.
func telegramTrigger(m *making) {
	m.kind = "TRIGGER.TELEGRAM"
	var events []string
	for _, e := range m.n.params.At("updates").Texts() {
		if e == "message" || e == "channel_post" || e == "callback_query" {
			events = append(events, e)
		} else {
			m.line.Approximate(text.Of("updates of the sort %q start nothing", e))
		}
	}
	if len(events) > 0 {
		m.cfg["events"] = events
	}
	m.auth("telegram_bot")
}

// slackTrigger is started by an event in Slack.
func slackTrigger(m *making) {
	m.kind = "TRIGGER.SLACK"
	events := []string{}
	for _, e := range m.n.params.At("trigger").Texts() {
		if name := map[string]string{"message": "message", "app_mention": "app_mention", "reaction_added": "reaction_added",
			"channel_created": "channel_created", "team_join": "team_join", "file_share": "file_shared"}[e]; name != "" {
			events = append(events, name)
		}
	}
	if len(events) == 0 {
		events = []string{"message"}
	}
	m.cfg["workspace_id"], m.cfg["events"] = "T00000000", events
	if channel := locator(m.n.params.At("channelId")).Text(); channel != "" && !strings.Contains(channel, "{{") {
		m.cfg["channels"] = []string{channel}
	}
	m.auth("slack_bot")
	m.line.Approximate(text.Of("set workspace_id to that of your Slack workspace"))
}

// githubTrigger is started by an event of a repository.
func githubTrigger(m *making) {
	m.kind = "TRIGGER.GITHUB"
	known := []string{"push", "pull_request", "issues", "issue_comment", "pull_request_review", "release", "workflow_run",
		"repository", "star", "watch", "fork"}
	events := slices.DeleteFunc(slices.Clone(m.n.params.At("events").Texts()), func(e string) bool { return !slices.Contains(known, e) })
	if len(events) == 0 {
		events = []string{"push", "pull_request"}
		m.line.Approximate(text.Of("it is started by pushes and pull requests"))
	}
	m.cfg["repository"] = cmp.Or(locator(m.n.params.At("owner")).Text(),
		"owner") + "/" + cmp.Or(locator(m.n.params.At("repository")).Text(), "repository")
	m.cfg["events"] = events
	m.auth("github_token")
}
