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

// TestInventory_Triggers: see inventory_test.go. A trigger is where an execution starts, so the workflow has one with the configurations in front of
// what it hands its output to.
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
