package app

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// TestInventory_People: see inventory_test.go. What can be seen of a question is its record: who is asked, what they are shown, until when, and what
// their answers lead to. The six kinds that speak in a medium ask the same way; what they send is seen by the tests of their media.
func TestInventory_People(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t)
	const ask, form, review = `"title": "T"`, `"title": "T", "input_fields": [{"name": "a"}]`, `"title": "T", "reviewers": ["admin"], "review_criteria": ["good"]`
	option := func(name, inner string) string {
		return `@"title": "T", "` + name + `": [` + inner + `, {"value": "no", "outcome": "rejected"}]`
	}
	chosen := func(inner string) string {
		return strings.Replace(option("selection_options", inner), "@", `@"interaction_type": "selection", `, 1)
	}
	field := func(inner string) string {
		return `@"title": "T", "interaction_type": "input", "input_fields": [{"name": "a", ` + inner + `}]`
	}
	every := map[string]proof{
		"interaction_type":          {with: ask + `, "input_fields": [{"name": "a"}]`, one: `"approval"`, other: `"input"`},
		"title":                     {with: `"description": "D"`, one: `"one"`, other: `"two"`},
		"description":               {with: ask, one: `"one"`, other: `"two"`},
		"timeout_seconds":           {with: ask, one: `60`, other: `6000`},
		"timeout_minutes":           {with: ask, one: `1`, other: `100`},
		"timeout_action":            {with: ask, one: `"fail"`, other: `"continue"`},
		"timeout_default_response":  {with: ask + `, "timeout_action": "default_response"`, one: `{"action": "approve"}`, other: `{"action": "reject"}`},
		"approval_options":          {with: ask, one: `["yes", "reject"]`, other: `["yes", "no"]`},
		"approval_options.value":    {one: option("approval_options", `{"value": "one", "outcome": "confirmed"}`), other: option("approval_options", `{"value": "two", "outcome": "confirmed"}`)},
		"approval_options.label":    {one: option("approval_options", `{"value": "one", "outcome": "confirmed", "label": "L"}`), other: option("approval_options", `{"value": "one", "outcome": "confirmed", "label": "M"}`)},
		"approval_options.outcome":  {one: option("approval_options", `{"value": "one", "outcome": "confirmed"}`), other: option("approval_options", `{"value": "one", "outcome": "none"}`)},
		"input_fields":              {with: ask + `, "interaction_type": "input"`, one: `[{"name": "a"}]`, other: `[{"name": "b"}]`},
		"input_fields.name":         {one: `@"title": "T", "interaction_type": "input", "input_fields": [{"name": "a"}]`, other: `@"title": "T", "interaction_type": "input", "input_fields": [{"name": "b"}]`},
		"input_fields.label":        {one: field(`"label": "L"`), other: field(`"label": "M"`)},
		"input_fields.type":         {one: field(`"type": "text"`), other: field(`"type": "number"`)},
		"input_fields.required":     {one: field(`"required": false`), other: field(`"required": true`)},
		"input_fields.options":      {one: field(`"type": "select", "options": ["a", "b"]`), other: field(`"type": "select", "options": ["a", "c"]`)},
		"input_fields.validation":   {one: field(`"type": "number", "validation": {"min": 1}`), other: field(`"type": "number", "validation": {"min": 2}`)},
		"selection_options":         {with: ask + `, "interaction_type": "selection"`, one: `["a", "b"]`, other: `["a", "c"]`},
		"selection_options.value":   {one: chosen(`{"value": "one"}`), other: chosen(`{"value": "two"}`)},
		"selection_options.label":   {one: chosen(`{"value": "one", "label": "L"}`), other: chosen(`{"value": "one", "label": "M"}`)},
		"selection_options.outcome": {one: chosen(`{"value": "one", "outcome": "confirmed"}`), other: chosen(`{"value": "one", "outcome": "none"}`)},
		"allow_multiple":            {with: ask + `, "interaction_type": "selection", "selection_options": ["a", "b"]`, one: `false`, other: `true`},
		"review_criteria":           {with: ask + `, "interaction_type": "review"`, one: `["a"]`, other: `["b"]`},
		"approvers":                 {with: ask, one: `["admin"]`, other: `["operator"]`},
		"min_approvals":             {with: ask + `, "approvers": ["admin", "editor"]`, one: `1`, other: `2`},
		"min_rejections":            {with: ask + `, "approvers": ["admin", "editor"]`, one: `1`, other: `2`},
		"exclude_requester":         {with: ask + `, "approvers": ["admin", "operator"]`, one: `false`, other: `true`},
		"allow_delegation":          {with: ask, one: `false`, other: `true`},
		"advisory":                  {shown: "TestPeopleAround"},
		"escalation":                {with: ask, one: `{"after_seconds": 60, "to": ["admin"]}`, other: `{"after_seconds": 90, "to": ["admin"]}`},
		"escalation.after_seconds":  {one: `@"title": "T", "escalation": {"after_seconds": 60, "to": ["admin"]}`, other: `@"title": "T", "escalation": {"after_seconds": 90, "to": ["admin"]}`},
		"escalation.to":             {one: `@"title": "T", "escalation": {"after_seconds": 60, "to": ["admin"]}`, other: `@"title": "T", "escalation": {"after_seconds": 60, "to": ["editor"]}`},
		"reminder_seconds":          {with: ask, one: `0`, other: `100`},
		"risk":                      {with: ask, one: `"low"`, other: `"high"`},
		"ai_analysis_model":         {shown: "TestChannelMail_Judged"},
		"response_analysis_prompt":  {shown: "TestPeopleKinds_Prose"},
		"unrelated_action":          {shown: "TestPeopleKinds_Prose"},
		"channel_type":              {with: ask + `, "webhook_url": "$U/hook"`, one: `"in_app"`, other: `"webhook"`},
		"webhook_url":               {shown: "TestChannelWebhook_Callback"},
		"priority":                  {with: ask, one: `1`, other: `5`},
		"content":                   {with: ask, one: `{"a": 1}`, other: `{"a": 2}`},
		"user_mention":              {with: ask, one: `"@ann"`, other: `"@bob"`},
	}
	of := func(test string, more map[string]proof) map[string]proof { // a kind that asks as the others do
		all := map[string]proof{}
		for name := range every {
			all[name] = proof{shown: "TestInventory_People"}
		}
		maps.Copy(all, more)
		for name, p := range all {
			if p.one+p.other+p.told+p.shown == "" && !p.label {
				all[name] = proof{shown: test}
			}
		}
		return all
	}
	own := func(names ...string) map[string]proof {
		all := map[string]proof{}
		for _, name := range names {
			all[name] = proof{}
		}
		return all
	}
	fieldInventory{
		family: "HUMAN_IN_THE_LOOP",
		kinds: map[string]map[string]proof{
			"HUMAN_IN_THE_LOOP.IN_APP_APPROVAL":      every,
			"HUMAN_IN_THE_LOOP.GMAIL_INTERACTION":    of("TestChannelMail_Reply", own("recipient_emails", "sender_email", "imap_credential_id")),
			"HUMAN_IN_THE_LOOP.OUTLOOK_INTERACTION":  of("TestChannelMail_Outlook", own("recipient_emails", "sender_email", "priority_level", "imap_credential_id")),
			"HUMAN_IN_THE_LOOP.SLACK_INTERACTION":    of("TestChannelSlack_Thread", own("channel", "auto_thread")),
			"HUMAN_IN_THE_LOOP.DISCORD_INTERACTION":  of("TestChannelDiscord_Click", own("server_id", "channel_id")),
			"HUMAN_IN_THE_LOOP.TELEGRAM_INTERACTION": of("TestChannelTelegram_Click", own("chat_id", "target_users", "inline_keyboard", "allow_text_responses", "allowed_response_patterns")),
			"HUMAN_IN_THE_LOOP.TEAMS_INTERACTION":    of("TestChannelTeams_Card", own("channel_id", "user")),
			"HUMAN_IN_THE_LOOP.FORM_SUBMISSION": of("", map[string]proof{
				"form_schema": {with: ask, one: `{"type": "object", "properties": {"a": {"type": "string"}}}`, other: `{"type": "object", "properties": {"b": {"type": "string"}}}`},
				"access":      {with: form, one: `"users"`, other: `"link"`},
			}),
			"HUMAN_IN_THE_LOOP.MANUAL_REVIEW": of("", map[string]proof{
				"reviewers":          {with: `"title": "T", "review_criteria": ["good"]`, one: `["admin"]`, other: `["editor"]`},
				"review_type":        {with: review, one: `"quality_assurance"`, other: `"legal_review"`},
				"scoring_system":     {with: review, one: `"pass_fail"`, other: `"letter_grade"`},
				"score_range":        {with: review + `, "scoring_system": "numeric_scale"`, one: `{"min": 1, "max": 5}`, other: `{"min": 1, "max": 9}`},
				"score_range.min":    {with: review + `, "scoring_system": "numeric_scale"`, one: `1`, other: `2`},
				"score_range.max":    {with: review + `, "scoring_system": "numeric_scale"`, one: `5`, other: `9`},
				"passing_threshold":  {with: review + `, "scoring_system": "numeric_scale"`, one: `3`, other: `4`},
				"require_evidence":   {with: review, one: `true`, other: `false`},
				"consensus_required": {with: review + `, "min_approvals": 1`, one: `true`, other: `false`},
			}),
		},
		bench: func(t *testing.T, kind, config string, p proof) string { return w.run(t, kind, config, p, benchRun{}) },
	}.check(t)
}

// askedOfPeople is what a question of an execution says in its record, with times told from its beginning.
func (w *workbench) askedOfPeople(t *testing.T, execution string) string {
	t.Helper()
	list := gjson.ParseBytes(bodyOf(t, w.call(t, "admin", "GET", "/interactions?execution_id="+execution, nil)))
	var b strings.Builder
	for _, q := range list.Get("interactions").Array() {
		detail := gjson.ParseBytes(bodyOf(t, w.call(t, "admin", "GET", "/interactions/"+q.Get("id").Str, nil)))
		fmt.Fprintln(&b, "question", q.Get("interaction_type"), q.Get("channel_type"), q.Get("priority"), q.Get("approvers"), q.Get("min_approvals"), q.Get("request_data"), max(0, q.Get("timeout_at").Int()-q.Get("created_at").Int()), detail.Get("may_respond"))
	}
	return b.String()
}

func bodyOf(t *testing.T, a answer) []byte {
	t.Helper()
	if a.status != http.StatusOK {
		t.Fatalf("answer %d %s", a.status, a.body)
	}
	return a.body
}
