package app

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"tandem/api"
)

// TestInventory_Calls: see inventory_test.go.
func TestInventory_Calls(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t)
	const text, slots = `{"text": "Ann lives in Bern.", "content": "Ann lives in Bern."}`, `"profile_id": "$P", "schema": {"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}}`
	fieldInventory{
		family: "CALL",
		kinds: map[string]map[string]proof{
			"CALL.EMPTY": {"pass_through": {one: `true`, other: `false`, input: text}},
			"CALL.SUMMARY": {
				"profile_id":   {one: `"$P"`, other: `"$Q"`, input: text},
				"max_chars":    {with: `"profile_id": "$P"`, one: `100`, other: `200`, input: text},
				"history_size": {with: `"profile_id": "$P"`, one: `0`, other: `3`, input: text, scene: "history $P"},
				"language":     {with: `"profile_id": "$P"`, one: `"en"`, other: `"zh"`, input: text},
			},
			"CALL.FACTS": {
				"profile_id": {one: `"$P"`, other: `"$Q"`, input: text},
				"max_facts":  {with: `"profile_id": "$P"`, one: `3`, other: `4`, input: text},
			},
			"CALL.SLOT": {
				"schema":         {with: `"profile_id": "$P"`, one: `{"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}}`, other: `{"type": "object", "required": ["town"], "properties": {"town": {"type": "string"}}}`, input: text},
				"profile_id":     {with: `"schema": {"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}}`, one: `"$P"`, other: `"$Q"`, input: text},
				"override_input": {with: slots, one: `{"properties": {"city": {"type": "string", "description": "one"}}}`, other: `{"properties": {"city": {"type": "string", "description": "two"}}}`, input: text},
				"ask":            {with: slots, one: `true`, other: `false`, input: text},
			},
		},
		bench: func(t *testing.T, kind, config string, p proof) string {
			return w.run(t, kind, config, p, benchRun{provider: "openai"})
		},
	}.check(t)
}

// TestInventory_Triggers: see inventory_test.go. A trigger is where an execution starts, so the workflow has one with the configurations in
// front of what it hands its output to.
func TestInventory_Triggers(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t)
	fieldInventory{
		family: "TRIGGER",
		kinds: map[string]map[string]proof{
			"TRIGGER.MANUAL": {
				"description":  {label: true},
				"trigger_name": {one: `"one"`, other: `"two"`},
				"input_schema": {one: `{"required": ["a"]}`, other: `{"required": ["b"]}`, input: `{"a": 1}`},
			},
			"TRIGGER.WEBHOOK": {
				"webhook_path":             {shown: "TestTriggers_Deployment", why: "requests see it, a run by hand does not"},
				"allowed_methods":          {shown: "TestTriggers_WebhookRequests", why: "requests see it, a run by hand does not"},
				"authentication":           {shown: "TestTriggers_WebhookAuthentication", why: "requests see it, a run by hand does not"},
				"response_mode":            {shown: "TestTriggers_WebhookReplies", why: "requests see it, a run by hand does not"},
				"response_format":          {shown: "TestTriggers_WebhookReplies", why: "requests see it, a run by hand does not"},
				"response_timeout_seconds": {shown: "TestTriggers_WebhookReplies", why: "requests see it, a run by hand does not"},
				"delivery_id_headers":      {shown: "TestTriggers_DeliveryIDs", why: "requests see it, a run by hand does not"},
			},
			"TRIGGER.SLACK": {
				"workspace_id":           {shown: "integration/slack.TestTrigger_Filters", why: "events see it, a run by hand does not"},
				"events":                 {shown: "integration/slack.TestTrigger_Filters", why: "events see it, a run by hand does not"},
				"channels":               {shown: "integration/slack.TestTrigger_Filters", why: "events see it, a run by hand does not"},
				"keywords":               {shown: "integration/slack.TestTrigger_Filters", why: "events see it, a run by hand does not"},
				"filter_bot_messages":    {shown: "integration/slack.TestTrigger_Filters", why: "events see it, a run by hand does not"},
				"include_thread_replies": {shown: "integration/slack.TestTrigger_Filters", why: "events see it, a run by hand does not"},
			},
			"TRIGGER.TELEGRAM": {
				"events":              {shown: "integration/telegram.TestTrigger_Filters", why: "updates see it, a run by hand does not"},
				"chats":               {shown: "integration/telegram.TestTrigger_Filters", why: "updates see it, a run by hand does not"},
				"keywords":            {shown: "integration/telegram.TestTrigger_Filters", why: "updates see it, a run by hand does not"},
				"commands":            {shown: "integration/telegram.TestTrigger_Filters", why: "updates see it, a run by hand does not"},
				"filter_bot_messages": {shown: "integration/telegram.TestTrigger_Filters", why: "updates see it, a run by hand does not"},
			},
			"TRIGGER.DISCORD": {
				"events":              {shown: "integration/discord.TestTrigger_Commands", why: "messages see it, a run by hand does not"},
				"channels":            {shown: "integration/discord.TestTrigger_Commands", why: "messages see it, a run by hand does not"},
				"keywords":            {shown: "integration/discord.TestTrigger_Messages", why: "messages see it, a run by hand does not"},
				"commands":            {shown: "integration/discord.TestTrigger_Commands", why: "messages see it, a run by hand does not"},
				"filter_bot_messages": {shown: "integration/discord.TestTrigger_Messages", why: "messages see it, a run by hand does not"},
			},
			"TRIGGER.EMAIL": {
				"email_provider":                  {shown: "integration/mail.TestEmail_Deploy", why: "mail that arrives sees it, a run by hand does not"},
				"webhook_path":                    {shown: "TestMailHook", why: "requests see it, a run by hand does not"},
				"mailbox":                         {shown: "integration/mail.TestEmail_Redeploy", why: "mail that arrives sees it, a run by hand does not"},
				"filter_criteria":                 {shown: "integration/mail.TestEmail_Filters", why: "mail that arrives sees it, a run by hand does not"},
				"filter_criteria.from":            {shown: "integration/mail.TestEmail_Filters", why: "mail that arrives sees it, a run by hand does not"},
				"filter_criteria.to":              {shown: "integration/mail.TestEmail_Filters", why: "mail that arrives sees it, a run by hand does not"},
				"filter_criteria.subject":         {shown: "integration/mail.TestEmail_Filters", why: "mail that arrives sees it, a run by hand does not"},
				"filter_criteria.body":            {shown: "integration/mail.TestEmail_Filters", why: "mail that arrives sees it, a run by hand does not"},
				"filter_criteria.headers":         {shown: "integration/mail.TestEmail_Filters", why: "mail that arrives sees it, a run by hand does not"},
				"filter_criteria.has_attachments": {shown: "integration/mail.TestEmail_Filters", why: "mail that arrives sees it, a run by hand does not"},
				"subject_keywords":                {shown: "integration/mail.TestEmail_Filters", why: "mail that arrives sees it, a run by hand does not"},
				"sender_whitelist":                {shown: "integration/mail.TestEmail_Filters", why: "mail that arrives sees it, a run by hand does not"},
				"verified_senders_only":           {shown: "integration/mail.TestEmail_Filters", why: "mail that arrives sees it, a run by hand does not"},
				"process_attachments":             {shown: "integration/mail.TestEmail_NotMarked", why: "mail that arrives sees it, a run by hand does not"},
				"attachment_types":                {shown: "integration/mail.TestEmail_Starts", why: "mail that arrives sees it, a run by hand does not"},
				"max_attachment_size":             {shown: "integration/mail.TestEmail_Starts", why: "mail that arrives sees it, a run by hand does not"},
				"polling_interval":                {shown: "integration/mail.TestEmail_Intervals", why: "mail that arrives sees it, a run by hand does not"},
				"mark_seen":                       {shown: "integration/mail.TestEmail_NotMarked", why: "mail that arrives sees it, a run by hand does not"},
			},
			"TRIGGER.GITHUB": {
				"repository":        {shown: "TestGitHub_Filters", why: "requests see it, a run by hand does not"},
				"events":            {shown: "TestGitHub_Filters", why: "requests see it, a run by hand does not"},
				"branches":          {shown: "TestGitHub_Filters", why: "requests see it, a run by hand does not"},
				"filter_conditions": {shown: "TestGitHub_Filters", why: "requests see it, a run by hand does not"},
				"include_payload":   {shown: "TestGitHub_Starts", why: "requests see it, a run by hand does not"},
				"webhook_path":      {shown: "TestGitHub_Starts", why: "requests see it, a run by hand does not"},
			},
			"TRIGGER.FORM": {
				"path":                     {shown: "TestVisitors_Pages", why: "visitors see it, a run by hand does not"},
				"title":                    {one: `"one"`, other: `"two"`, with: `"form_schema": {"properties": {"a": {}}}`, input: `{"fields": {}}`},
				"description":              {shown: "TestVisitors_Pages", why: "visitors see it, a run by hand does not"},
				"access":                   {shown: "TestVisitors_Access", why: "visitors see it, a run by hand does not"},
				"roles":                    {shown: "TestVisitors_Access", why: "visitors see it, a run by hand does not"},
				"allowed_origins":          {shown: "TestVisitors_Embedding", why: "visitors see it, a run by hand does not"},
				"visitor_limit":            {shown: "TestVisitors_Limits", why: "visitors see it, a run by hand does not"},
				"visitor_limit_seconds":    {shown: "TestVisitors_Limits", why: "visitors see it, a run by hand does not"},
				"form_schema":              {shown: "TestVisitors_Form", why: "visitors see it, a run by hand does not"},
				"max_file_mb":              {shown: "TestVisitors_FormFiles", why: "visitors see it, a run by hand does not"},
				"response_mode":            {shown: "TestVisitors_FormReplies", why: "visitors see it, a run by hand does not"},
				"response_timeout_seconds": {shown: "TestVisitors_FormReplies", why: "visitors see it, a run by hand does not"},
				"thank_you":                {shown: "TestVisitors_FormReplies", why: "visitors see it, a run by hand does not"},
				"redirect_url":             {shown: "TestVisitors_FormReplies", why: "visitors see it, a run by hand does not"},
			},
			"TRIGGER.CHAT": {
				"path":                  {shown: "TestVisitors_Pages", why: "visitors see it, a run by hand does not"},
				"title":                 {shown: "TestVisitors_Pages", why: "visitors see it, a run by hand does not"},
				"description":           {shown: "TestVisitors_Pages", why: "visitors see it, a run by hand does not"},
				"access":                {shown: "TestVisitors_Access", why: "visitors see it, a run by hand does not"},
				"roles":                 {shown: "TestVisitors_Access", why: "visitors see it, a run by hand does not"},
				"allowed_origins":       {shown: "TestVisitors_Embedding", why: "visitors see it, a run by hand does not"},
				"visitor_limit":         {shown: "TestVisitors_Limits", why: "visitors see it, a run by hand does not"},
				"visitor_limit_seconds": {shown: "TestVisitors_Limits", why: "visitors see it, a run by hand does not"},
				"greeting":              {shown: "TestVisitors_Pages", why: "visitors see it, a run by hand does not"},
				"max_message_length":    {shown: "TestVisitors_Chat", why: "visitors see it, a run by hand does not"},
				"earlier_messages":      {shown: "TestVisitors_Chat", why: "visitors see it, a run by hand does not"},
			},
			"TRIGGER.CRON": {
				"cron_expression": {one: `"0 9 * * *"`, other: `"0 8 * * *"`},
				"timezone":        {one: `"UTC"`, other: `"Europe/Berlin"`},
				"misfire_policy":  {shown: "builtin/start.TestCron_Year", why: "it is about the time in which nothing runs"},
				"max_missed_runs": {shown: "builtin/start.TestCron_Year", why: "it is about the time in which nothing runs"},
				"jitter_seconds":  {shown: "builtin/start.TestCron_Year", why: "it is about when the clock starts it"},
			},
		},
		bench: func(t *testing.T, kind, config string, p proof) string {
			id := fmt.Sprintf("trigger%d", w.runs.Add(1))
			w.save(t, "metadata: {id: "+id+", name: n, description: d}\nnodes:\n  - {id: n, name: n, description: d, "+nodeOf(kind, config)+"}\nconnections: []\n")
			a := w.call(t, "operator", "POST", "/workflows/"+id+"/execute", api.ExecuteRequest{Inputs: json.RawMessage(cmp.Or(p.input, "{}"))})
			if a.status != http.StatusAccepted {
				return w.plain(id, fmt.Sprintf("refused %d %s", a.status, a.body))
			}
			started := want[api.ExecuteResponse](t, a, http.StatusAccepted).ExecutionID
			w.rests(t, id, started, false)
			return w.tell(t, id, started, false)
		},
	}.check(t)
}
