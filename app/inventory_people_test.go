package app

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// TestInventory_People: see inventory_test.go and inventory_media_test.go. What is seen of a question is what people are shown of it, by
// the service that the medium belongs to or on the page of a link, who may answer until when, and what their answers lead to.
func TestInventory_People(t *testing.T) {
	t.Parallel()
	m := newMediaBench(t)
	const (
		ask     = `"title": "T $KEY", "interaction_type": "approval"`
		form    = `"title": "T $KEY", "interaction_type": "input"`
		selects = `"title": "T $KEY", "interaction_type": "selection"`
		review  = `"title": "T $KEY", "review_criteria": ["good"]`
		filled  = `answers operator {"field_values": {"a": "x"}}`
	)
	option := func(inner string) string {
		return `@` + ask + `, "approval_options": [` + inner + `, {"value": "no", "outcome": "rejected"}]`
	}
	chosen := func(inner string) string {
		return `@` + selects + `, "selection_options": [` + inner + `, {"value": "no", "outcome": "rejected"}]`
	}
	field := func(inner string) string {
		return `@` + form + `, "input_fields": [{"name": "a", ` + inner + `}]`
	}
	every := map[string]proof{
		"interaction_type":          {with: ask + `, "input_fields": [{"name": "a"}]`, one: `"approval"`, other: `"input"`},
		"title":                     {with: `"description": "D $KEY"`, one: `"one"`, other: `"two"`},
		"description":               {with: ask, one: `"one"`, other: `"two"`},
		"timeout_seconds":           {with: ask, one: `600`, other: `6000`},
		"timeout_minutes":           {with: ask, one: `10`, other: `100`},
		"timeout_action":            {with: ask, one: `"fail"`, other: `"continue"`, scene: "runs out"},
		"timeout_default_response":  {with: ask + `, "timeout_action": "default_response"`, one: `{"action": "approve"}`, other: `{"action": "reject"}`, scene: "runs out"},
		"approval_options":          {with: ask, one: `["yes", "reject"]`, other: `["yes", "no"]`},
		"approval_options.value":    {one: option(`{"value": "one", "outcome": "confirmed"}`), other: option(`{"value": "two", "outcome": "confirmed"}`)},
		"approval_options.label":    {one: option(`{"value": "one", "outcome": "confirmed", "label": "L"}`), other: option(`{"value": "one", "outcome": "confirmed", "label": "M"}`)},
		"approval_options.outcome":  {one: option(`{"value": "one", "outcome": "confirmed"}`), other: option(`{"value": "one", "outcome": "none"}`), scene: `answers operator {"action": "one"}`},
		"input_fields":              {with: form, one: `[{"name": "a"}]`, other: `[{"name": "b"}]`, scene: filled},
		"input_fields.name":         {one: `@` + form + `, "input_fields": [{"name": "a"}]`, other: `@` + form + `, "input_fields": [{"name": "b"}]`, scene: filled},
		"input_fields.label":        {one: field(`"label": "L"`), other: field(`"label": "M"`), scene: "page"},
		"input_fields.type":         {one: field(`"type": "text"`), other: field(`"type": "number"`), scene: filled},
		"input_fields.required":     {one: field(`"required": false`), other: field(`"required": true`), scene: `answers operator {"field_values": {}}`},
		"input_fields.options":      {one: field(`"type": "select", "options": ["x", "y"]`), other: field(`"type": "select", "options": ["y", "z"]`), scene: filled},
		"input_fields.validation":   {one: field(`"validation": "^x"`), other: field(`"validation": "^y"`), scene: filled},
		"selection_options":         {with: selects, one: `["a", "b"]`, other: `["a", "c"]`},
		"selection_options.value":   {one: chosen(`{"value": "one"}`), other: chosen(`{"value": "two"}`)},
		"selection_options.label":   {one: chosen(`{"value": "one", "label": "L"}`), other: chosen(`{"value": "one", "label": "M"}`)},
		"selection_options.outcome": {one: chosen(`{"value": "one", "outcome": "confirmed"}`), other: chosen(`{"value": "one", "outcome": "none"}`), scene: `answers operator {"selected_values": ["one"]}`},
		"allow_multiple":            {with: selects + `, "selection_options": ["a", "b"]`, one: `false`, other: `true`, scene: `answers operator {"selected_values": ["a", "b"]}`},
		"review_criteria":           {with: `"title": "T $KEY", "interaction_type": "review"`, one: `["a"]`, other: `["b"]`, scene: "page"},
		"approvers":                 {with: ask, one: `["user:admin"]`, other: `["user:operator"]`},
		"min_approvals":             {with: ask + `, "approvers": ["user:admin", "user:editor"]`, one: `1`, other: `2`, scene: `answers admin {"action": "approve"}`},
		"min_rejections":            {with: ask + `, "approvers": ["user:admin", "user:editor"]`, one: `1`, other: `2`, scene: `answers admin {"action": "reject"}`},
		"exclude_requester":         {with: ask + `, "approvers": ["user:admin", "user:operator"]`, one: `false`, other: `true`, scene: `answers operator {"action": "approve"}`},
		"allow_delegation":          {with: ask, one: `false`, other: `true`, scene: "delegates"},
		"advisory":                  {with: ask, one: `false`, other: `true`, scene: "around"},
		"escalation":                {with: ask, one: `{"after_seconds": 60, "to": ["user:admin"]}`, other: `{"after_seconds": 90, "to": ["user:admin"]}`},
		"escalation.after_seconds":  {one: `@` + ask + `, "escalation": {"after_seconds": 60, "to": ["user:admin"]}`, other: `@` + ask + `, "escalation": {"after_seconds": 90, "to": ["user:admin"]}`},
		"escalation.to":             {one: `@` + ask + `, "escalation": {"after_seconds": 1, "to": ["user:admin"]}`, other: `@` + ask + `, "escalation": {"after_seconds": 1, "to": ["user:editor"]}`, scene: "escalates"},
		"reminder_seconds":          {with: ask, one: `60`, other: `90`},
		"risk":                      {with: ask, one: `"low"`, other: `"high"`, scene: "says I approve this."},
		"ai_analysis_model":         {with: ask, one: `"$P"`, other: `"$Q"`, scene: "says All in order, go ahead and pay it."},
		"response_analysis_prompt":  {with: ask + `, "ai_analysis_model": "$P"`, one: `"Be strict."`, other: `"Be kind."`, scene: "says All in order, go ahead and pay it."},
		"unrelated_action":          {with: ask, one: `"ignore"`, other: `"route"`, scene: "says I am out of the office until Monday. In urgent cases write to my colleagues."},
		"channel_type":              {with: ask + `, "webhook_url": "$U/hook", "credential_id": "$HOOK"`, one: `"in_app"`, other: `"webhook"`},
		"webhook_url":               {with: ask + `, "channel_type": "webhook", "credential_id": "$HOOK"`, one: `"$U/a"`, other: `"$U/b"`},
		"priority":                  {with: ask, one: `1`, other: `5`},
		"content":                   {with: ask, one: `{"a": 1}`, other: `{"a": 2}`},
		"user_mention":              {with: ask, one: `"@ann"`, other: `"@bob"`},
	}
	with := func(own map[string]proof) map[string]proof { // what a kind has besides
		all := maps.Clone(every)
		maps.Copy(all, own)
		return all
	}
	elsewhere := func(own map[string]proof) map[string]proof { // a kind that has a medium of its own
		own["channel_type"] = proof{with: ask, other: `"in_app"`, told: "must be"}
		if _, has := own["webhook_url"]; !has {
			own["webhook_url"] = proof{with: ask, other: `"https://example.com"`, told: "does nothing here"}
		}
		return with(own)
	}
	const perhaps = "says Hm, perhaps. What do you think?"
	mail := map[string]proof{
		"recipient_emails":   {with: ask, one: `["ann@example.org"]`, other: `["bob@example.org"]`},
		"sender_email":       {with: ask, one: `"one@tandem.example"`, other: `"two@tandem.example"`},
		"imap_credential_id": {with: ask, other: `"$IMAP"`},
	}
	outlook := maps.Clone(mail)
	outlook["priority_level"] = proof{with: ask, one: `"low"`, other: `"high"`}
	fieldInventory{
		family: "HUMAN_IN_THE_LOOP",
		kinds: map[string]map[string]proof{
			"HUMAN_IN_THE_LOOP.IN_APP_APPROVAL":     every,
			"HUMAN_IN_THE_LOOP.GMAIL_INTERACTION":   elsewhere(mail),
			"HUMAN_IN_THE_LOOP.OUTLOOK_INTERACTION": elsewhere(outlook),
			"HUMAN_IN_THE_LOOP.SLACK_INTERACTION": elsewhere(map[string]proof{
				"channel":     {with: ask, one: `"#ops"`, other: `"#dev"`},
				"auto_thread": {with: ask, one: `true`, other: `false`, scene: perhaps},
			}),
			"HUMAN_IN_THE_LOOP.DISCORD_INTERACTION": elsewhere(map[string]proof{
				"server_id":  {with: ask, one: `"1"`, other: `"2"`},
				"channel_id": {with: ask, one: `"55"`, other: `"56"`},
			}),
			"HUMAN_IN_THE_LOOP.TELEGRAM_INTERACTION": elsewhere(map[string]proof{
				"chat_id":                   {with: ask, one: `42`, other: `43`},
				"target_users":              {with: ask, one: `[42]`, other: `[43]`},
				"inline_keyboard":           {with: ask, one: `[["approve"], ["reject"]]`, other: `[["approve", "reject"]]`},
				"allow_text_responses":      {with: ask + `, "target_users": [42]`, one: `true`, other: `false`, scene: "writes Approved"},
				"allowed_response_patterns": {with: ask + `, "target_users": [42]`, one: `["^App"]`, other: `["^Rej"]`, scene: "writes Approved"},
			}),
			"HUMAN_IN_THE_LOOP.TEAMS_INTERACTION": elsewhere(map[string]proof{
				"channel_id":  {with: ask, one: `"19:one"`, other: `"19:two"`},
				"user":        {with: ask, one: `"29:ann"`, other: `"29:bob"`},
				"webhook_url": {with: ask + `, "credential_id": "$BARE"`, one: `"$U/a"`, other: `"$U/b"`},
			}),
			"HUMAN_IN_THE_LOOP.FORM_SUBMISSION": with(map[string]proof{
				"form_schema": {with: form, one: `{"type": "object", "properties": {"a": {"type": "string"}}}`, other: `{"type": "object", "properties": {"b": {"type": "string"}}}`, scene: "page"},
				"access":      {with: form + `, "input_fields": [{"name": "a"}]`, one: `"users"`, other: `"link"`, scene: "page"},
			}),
			"HUMAN_IN_THE_LOOP.MANUAL_REVIEW": with(map[string]proof{
				"reviewers":          {with: `"title": "T $KEY", "review_criteria": ["good"]`, one: `["user:admin"]`, other: `["user:operator"]`},
				"review_type":        {with: review, one: `"quality_assurance"`, other: `"legal_review"`},
				"scoring_system":     {with: review, one: `"pass_fail"`, other: `"letter_grade"`},
				"score_range":        {with: review + `, "scoring_system": "numeric_scale"`, one: `{"min": 1, "max": 5}`, other: `{"min": 1, "max": 9}`},
				"score_range.min":    {with: review + `, "scoring_system": "numeric_scale"`, one: `1`, other: `2`},
				"score_range.max":    {with: review + `, "scoring_system": "numeric_scale"`, one: `5`, other: `9`},
				"passing_threshold":  {with: review + `, "scoring_system": "numeric_scale"`, one: `3`, other: `4`, scene: `answers operator {"scores": {"good": 3}, "evidence": {"good": "seen"}}`},
				"require_evidence":   {with: review, one: `true`, other: `false`, scene: `answers operator {"scores": {"good": true}}`},
				"consensus_required": {with: review + `, "reviewers": ["user:operator", "user:admin"], "min_approvals": 1`, one: `true`, other: `false`, scene: `answers operator {"scores": {"good": true}, "evidence": {"good": "seen"}}`},
			}),
		},
		bench: m.run,
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
