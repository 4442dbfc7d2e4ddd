package app

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/engine"
	"tandem/human"
	"tandem/identity"
	"tandem/integration/webhook"
	"tandem/store"
	"tandem/store/sqlite/sqlitetest"
)

// askOf is a workflow with one node that asks, called ask, and a node after each of the keys that are connected.
func askOf(id, subtype, config string, connected ...string) string {
	text := "metadata: {id: " + id + ", name: " + id + ", description: d}\nnodes:\n  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}\n" +
		"  - {id: ask, description: d, type: HUMAN_IN_THE_LOOP, subtype: " + subtype + ", configurations: " + config + "}\n"
	links := "connections:\n  - {from_node: start, to_node: ask}\n"
	for n, key := range connected {
		text += fmt.Sprintf("  - {id: after%d, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}\n", n)
		links += fmt.Sprintf("  - {from_node: ask, to_node: after%d, output_key: %q}\n", n, key)
	}
	return text + links
}

// askedIn starts a workflow with one question and waits for it.
func (x *site) askedIn(t testing.TB, text string, inputs string) (execution string, question api.Interaction) {
	t.Helper()
	execution = x.execute(t, x.save(t, text).Workflow.ID, api.ExecuteRequest{Inputs: json.RawMessage(inputs)})
	return execution, x.opens(t, execution, 1)[0]
}

// runOut lets the time of a question be up.
func (x *site) runOut(t testing.TB, id string) {
	t.Helper()
	i := x.interaction(t, id)
	i.TimeoutAt = time.Now().Add(-time.Second).UnixMilli()
	i.NextAt = i.TimeoutAt
	if err := x.stores.Interactions.Change(t.Context(), identity.System("default"), store.InteractionChange{Interaction: i}); err != nil {
		t.Fatal(err)
	}
	x.desk.Look()
}

// outcomeOf is what the node that asked has ended with: its keys, and the payload, which is the same under each.
func outcomeOf(t testing.TB, e api.Execution) (keys []string, payload gjson.Result) {
	t.Helper()
	n := e.NodeExecutions["ask"]
	for key, value := range n.OutputData { // order does not matter: sorted below
		if string(value) != string(n.OutputData["result"]) {
			t.Errorf("the payload of %q is %s, that of result %s", key, value, n.OutputData["result"])
		}
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys, gjson.ParseBytes(n.OutputData["result"])
}

// What comes of each type of question, by the answer.
func TestPeopleKinds_Answers(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	const fields = `input_fields: [{name: amount, type: number, required: true}, {name: why}]`
	const review = `title: Q, reviewers: [operator], review_criteria: [clear, right]`
	cases := map[string]struct {
		subtype, config string
		by, answer      string
		keys            string
		// says are paths of the payload and what is there.
		says map[string]string
	}{
		"Approve": {"IN_APP_APPROVAL", `{title: Q}`, "operator", `{"action":"approve","notes":"fine"}`, "approve confirmed result", map[string]string{
			"status": "completed", "response_type": "approval", "response_data.action": "approve", "response_data.user_id": "operator", "response_data.notes": "fine", "responder": "operator",
			"ai_classification": "confirmed", "approvals.#": "1", "approvals.0.person": "operator", "content.about": "desk",
		}},
		"Reject":   {"IN_APP_APPROVAL", `{title: Q}`, "operator", `{"action":"reject"}`, "reject rejected result", map[string]string{"ai_classification": "rejected"}},
		"ByName":   {"IN_APP_APPROVAL", `{title: Q, approval_options: ["yes", "deny"]}`, "operator", `{"action":"deny"}`, "deny rejected result", nil},
		"ByMatter": {"IN_APP_APPROVAL", `{title: Q, approval_options: [{value: pay, label: Pay it, outcome: confirmed}, later]}`, "operator", `{"action":"pay"}`, "confirmed pay result", nil},
		"Neither":  {"IN_APP_APPROVAL", `{title: Q, approval_options: [approve, later]}`, "operator", `{"action":"later"}`, "later result", map[string]string{"ai_classification": "", "response_data.action": "later"}},
		"Quorum": {"IN_APP_APPROVAL", `{title: Q, approvers: [approver, "user:editor"], min_approvals: 1, min_rejections: 1}`, "editor", `{"action":"approve"}`, "approve confirmed result", map[string]string{
			"responder": "editor",
		}},
		"Input": {"IN_APP_APPROVAL", `{title: Q, interaction_type: input, ` + fields + `}`, "operator", `{"field_values":{"amount":"12.50","why":"tea"}}`, "confirmed result", map[string]string{
			"response_type": "input", "response_data.field_values.amount": "12.5", "response_data.field_values.why": "tea",
		}},
		"Selection":  {"IN_APP_APPROVAL", `{title: Q, interaction_type: selection, selection_options: [red, {value: green}]}`, "operator", `{"selected_values":["green"]}`, "confirmed green result", map[string]string{"response_data.selected_values.0": "green"}},
		"Selections": {"IN_APP_APPROVAL", `{title: Q, interaction_type: selection, selection_options: [red, green, blue], allow_multiple: true}`, "operator", `{"selected_values":["red","blue"]}`, "blue confirmed red result", nil},
		"PlainReview": {"IN_APP_APPROVAL", `{title: Q, interaction_type: review, review_criteria: [clear]}`, "operator", `{"scores":{"clear":false}}`, "rejected result", map[string]string{
			"scores.clear": "false", "passed": "false",
		}},
		"Form": {"FORM_SUBMISSION", `{title: Q, ` + fields + `}`, "operator", `{"field_values":{"amount":3}}`, "confirmed result", map[string]string{"response_data.field_values.amount": "3"}},
		"Schema": {"FORM_SUBMISSION", `{title: Q, form_schema: {type: object, required: [size], properties: {size: {enum: [S, L]}}}}`, "operator", `{"field_values":{"size":"L"}}`, "confirmed result",
			map[string]string{"response_data.field_values.size": "L"}},
		"Review": {"MANUAL_REVIEW", `{` + review + `, scoring_system: numeric_scale, passing_threshold: 3.5}`, "operator", `{"scores":{"clear":3,"right":5},"evidence":{"clear":"read","right":"ran"}}`, "confirmed result",
			map[string]string{"scores.right": "5", "average": "4", "passed": "true", "reviews.#": "1", "reviews.0.data.evidence.clear": "read"}},
		"ReviewFails": {"MANUAL_REVIEW", `{` + review + `, scoring_system: letter_grade, require_evidence: false}`, "operator", `{"scores":{"clear":"D","right":"C"}}`, "rejected result",
			map[string]string{"average": "2.5", "passed": "false", "ai_classification": "rejected"}},
		"Content": {"IN_APP_APPROVAL", `{title: Q, content: {sum: "{{start.outputs.sum}}"}}`, "operator", `{"action":"approve"}`, "approve confirmed result", map[string]string{"content": `{"sum":5}`}},
		"Older":   {"IN_APP_APPROVAL", `{email_subject: Q, message_template: "{{about}}?", timeout_minutes: 2, custom_analysis_prompt: "be strict"}`, "operator", `{"action":"approve"}`, "approve confirmed result", nil},
	}
	for name, c := range cases { // order does not matter: each has a workflow of its own
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id, q := x.askedIn(t, askOf("answers_"+strings.ToLower(name), c.subtype, c.config), `{"about":"desk","sum":5}`)
			want[api.Interaction](t, x.respond(t, c.by, q.ID, c.answer), http.StatusOK)
			x.reaches(t, id, engine.StatusSuccess)
			e := x.read(t, id)
			keys, payload := outcomeOf(t, e)
			if got := strings.Join(keys, " "); got != c.keys {
				t.Errorf("keys %q, want %q", got, c.keys)
			}
			if payload.Get("interaction_id").Str != q.ID || payload.Get("status").Str != "completed" || payload.Get("response_data.timestamp").Str == "" {
				t.Errorf("payload %s", payload.Raw)
			}
			for path, says := range c.says { // order does not matter: all are looked at
				if got := payload.Get(path).String(); got != says {
					t.Errorf("%s is %s, want %s, in %s", path, got, says, payload.Raw)
				}
			}
			if name == "Older" && (q.TimeoutAt-q.CreatedAt != 120_000 || gjson.GetBytes(q.RequestData, "title").Str != "Q" || gjson.GetBytes(q.RequestData, "description").Str != "desk?" ||
				gjson.GetBytes(q.RequestData, "response_analysis_prompt").Str != "be strict") {
				t.Errorf("asked %s until %d", q.RequestData, q.TimeoutAt-q.CreatedAt)
			}
		})
	}
}

// What comes of a question that nobody answers in time, by what is said about it and by what is connected.
func TestPeopleKinds_Timeout(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	cases := map[string]struct {
		config    string
		connected []string
		keys      string // empty: it fails
		class     string
		data      string
	}{
		"FailsByDefault":   {config: `{title: Q}`, connected: []string{"confirmed"}},
		"ContinuesWhere":   {config: `{title: Q}`, connected: []string{"timeout"}, keys: "result timeout", class: "timeout", data: `{}`},
		"Continue":         {config: `{title: Q, timeout_action: continue}`, keys: "result timeout", class: "timeout", data: `{}`},
		"FailsAllTheSame":  {config: `{title: Q, timeout_action: fail}`, connected: []string{"timeout"}},
		"DefaultResponse":  {config: `{title: Q, timeout_action: default_response, timeout_default_response: {action: reject, notes: nobody}}`, connected: []string{"timeout"}, keys: "reject rejected result", class: "rejected", data: `{"action":"reject","notes":"nobody"}`},
		"DefaultSelection": {config: `{title: Q, interaction_type: selection, selection_options: [a, b], timeout_action: default_response, timeout_default_response: {selected_values: [b]}}`, keys: "b confirmed result", class: "confirmed", data: `{"selected_values":["b"]}`},
	}
	for name, c := range cases { // order does not matter: each has a workflow of its own
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id, q := x.askedIn(t, askOf("timeout_"+strings.ToLower(name), "IN_APP_APPROVAL", c.config, c.connected...), `{}`)
			x.runOut(t, q.ID)
			if c.keys == "" {
				x.reaches(t, id, engine.StatusError)
				n := x.read(t, id).NodeExecutions["ask"]
				if n.Error == nil || n.Error.ErrorCode != "hil_timeout" || gjson.GetBytes(n.ExecutionDetails, "status").Str != "timeout" || gjson.GetBytes(n.ExecutionDetails, "waiting_since").Int() == 0 {
					t.Errorf("%+v, %s", n.Error, n.ExecutionDetails)
				}
				return
			}
			x.reaches(t, id, engine.StatusSuccess)
			e := x.read(t, id)
			keys, payload := outcomeOf(t, e)
			if got := strings.Join(keys, " "); got != c.keys || payload.Get("status").Str != "timeout" || payload.Get("ai_classification").Str != c.class || payload.Get("response_data").Raw != c.data {
				t.Errorf("keys %q, payload %s", got, payload.Raw)
			}
			if after, ok := e.NodeExecutions["after0"]; ok && (after.Status == "completed") != slices.Contains(keys, c.connected[0]) {
				t.Errorf("what is connected to %q is %s", c.connected[0], after.Status)
			}
			if details := e.NodeExecutions["ask"].ExecutionDetails; gjson.GetBytes(details, "user_response").Exists() != (c.class != "timeout") {
				t.Errorf("details %s", details)
			}
		})
	}
}

// An answer that has nothing to do with the question is routed where something is connected for it, and else the question waits on. Prose
// that names its question by a signed call counts.
func TestPeopleKinds_Prose(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	const config = `{title: "Pay the invoice?", channel_type: webhook, webhook_url: "http://127.0.0.1:1/", credential_id: hook, approvers: [operator]%s}`
	says := func(t *testing.T, q api.Interaction, text string) human.Reaction {
		t.Helper()
		r, err := x.desk.Receive(t.Context(), human.Reply{
			Account: store.Account{Workspace: "default", Channel: webhook.Name, Credential: "hook"}, Interaction: q.ID, User: "operator", Verified: true, Text: text, Dedup: q.ID + text,
		})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	const away = "I am out of the office until Monday. In urgent cases write to my colleagues."
	for name, c := range map[string]struct {
		more      string
		connected []string
		routed    bool
	}{
		"Connected":    {"", []string{"unrelated"}, true},
		"OlderName":    {"", []string{"filtered"}, true},
		"NotConnected": {"", []string{"confirmed"}, false},
		"Said":         {", unrelated_action: route", nil, true},
		"SaidNot":      {", unrelated_action: ignore", []string{"unrelated"}, false},
	} { // order does not matter: each has a workflow of its own
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id, q := x.askedIn(t, askOf("prose_"+strings.ToLower(name), "IN_APP_APPROVAL", fmt.Sprintf(config, c.more), c.connected...), `{}`)
			if r := says(t, q, away); r.Accepted || r.Ended != c.routed {
				t.Fatalf("accepted %v, ended %v, %q, %v", r.Accepted, r.Ended, r.Text, r.Err)
			}
			wants := []string{"result", "unrelated"}
			if !c.routed {
				if r := says(t, q, "Approved"); !r.Accepted || !r.Ended {
					t.Fatalf("accepted %v, ended %v, %q, %v", r.Accepted, r.Ended, r.Text, r.Err)
				}
				wants = []string{"approve", "confirmed", "result"}
			}
			x.reaches(t, id, engine.StatusSuccess)
			e := x.read(t, id)
			keys, payload := outcomeOf(t, e)
			if !slices.Equal(keys, wants) || payload.Get("ai_classification").Str != keys[len(keys)-1] && c.routed || payload.Get("user_response").Str != map[bool]string{true: away, false: "Approved"}[c.routed] {
				t.Errorf("keys %q, payload %s", keys, payload.Raw)
			}
			if said := gjson.GetBytes(e.NodeExecutions["ask"].ExecutionDetails, "user_response").Str; said != payload.Get("user_response").Str {
				t.Errorf("details say %q", said)
			}
		})
	}
}

// Which question a node waits for is seen with the node, and what came of it stays there.
func TestPeopleKinds_Details(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	before := time.Now().UnixMilli()
	id, q := x.askedIn(t, askOf("details", "IN_APP_APPROVAL", `{title: T, description: "Pay {{sum}}?", timeout_seconds: 600}`), `{"sum":5}`)
	e := x.read(t, id)
	n := e.NodeExecutions["ask"]
	details := gjson.ParseBytes(n.ExecutionDetails)
	if e.Status != "WAITING_FOR_HUMAN" || n.Status != "waiting_input" || details.Get("status").Str != "waiting_for_human" || details.Get("interaction_id").Str != q.ID || details.Get("timeout_at").Int() != q.TimeoutAt ||
		details.Get("user_prompt").Str != "Pay 5?" || details.Get("interaction_type").Str != "approval" || details.Get("channel_type").Str != "in_app" || details.Get("waiting_since").Int() < before || details.Get("user_response").Exists() {
		t.Errorf("%s %s %s", e.Status, n.Status, details.Raw)
	}
	want[api.Interaction](t, x.respond(t, "operator", q.ID, `{"action":"reject","notes":"too much"}`), http.StatusOK)
	x.reaches(t, id, engine.StatusSuccess)
	after := gjson.ParseBytes(x.read(t, id).NodeExecutions["ask"].ExecutionDetails)
	if after.Get("status").Str != "completed" || after.Get("user_response.notes").Str != "too much" || after.Get("user_prompt").Str != "Pay 5?" || after.Get("channel_type").Str != "in_app" ||
		after.Get("waiting_since").Int() != details.Get("waiting_since").Int() || after.Get("timeout_at").Int() < q.TimeoutAt-5000 {
		t.Errorf("after the answer: %s", after.Raw)
	}
}

// A question that is taken back fails its node with the reason. Nothing goes on by that: on_error is about failures, and not an answer.
func TestPeopleKinds_TakenBack(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	id, q := x.askedIn(t, askOf("taken_back", "IN_APP_APPROVAL", `{title: Q, on_error: continue}`, "error"), `{}`)
	want[api.Interaction](t, x.call(t, "operator", "POST", "/interactions/"+q.ID+"/cancel", `{"reason":"not needed"}`), http.StatusOK)
	x.reaches(t, id, engine.StatusError)
	e := x.read(t, id)
	if failed := e.Errors; len(failed) != 1 || failed[0].ErrorCode != "canceled" || !strings.Contains(failed[0].ErrorMessage, `"operator" has taken the question back before it was answered: not needed`) {
		t.Errorf("%+v", failed)
	}
	if after := e.NodeExecutions["after0"]; after.Status == "completed" {
		t.Errorf("%+v", after)
	}
	if n := e.NodeExecutions["ask"]; n.Status != "failed" || n.OutputData["confirmed"] != nil || n.OutputData["result"] != nil || gjson.GetBytes(n.ExecutionDetails, "status").Str != "cancelled" {
		t.Errorf("%s with %v, %s", n.Status, slices.Collect(maps.Keys(n.OutputData)), n.ExecutionDetails)
	}
}

// What cannot be asked fails before anybody is.
func TestPeopleKinds_NobodyIsAsked(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	for name, c := range map[string]struct{ config, inputs, code, says string }{
		"NoTitle":          {`{title: "{{start.outputs.title}}"}`, `{"title":""}`, "invalid_config", "says nothing"},
		"ReservedOption":   {`{title: Q, approval_options: "{{start.outputs.options}}"}`, `{"options":["ok","timeout"]}`, "invalid_config", `approval_options[1]: "timeout" is a reserved output key`},
		"OlderReserved":    {`{title: Q, interaction_type: selection, selection_options: "{{start.outputs.options}}"}`, `{"options":[{"value":"approved"}]}`, "invalid_config", "reserved"},
		"NoOptions":        {`{title: Q, interaction_type: selection, selection_options: "{{start.outputs.options}}"}`, `{"options":[]}`, "invalid_config", "nothing to select from"},
		"UnknownRole":      {`{title: Q, approvers: ["{{start.outputs.who}}"]}`, `{"who":"role:king"}`, "invalid_config", `"king" is not a role`},
		"TooFew":           {`{title: Q, approvers: "{{start.outputs.who}}", min_approvals: 3}`, `{"who":["user:editor","approver@x.org"]}`, "invalid_config", "min_approvals"},
		"OnlyTheStarter":   {`{title: Q, approvers: ["{{start.outputs.who}}"], exclude_requester: true}`, `{"who":"user:operator"}`, "no_approver", "nobody who may answer"},
		"OtherDefault":     {`{title: Q, approval_options: "{{start.outputs.options}}", timeout_action: default_response, timeout_default_response: {action: later}}`, `{"options":["now"]}`, "invalid_config", "timeout_default_response"},
		"WebhookNowhere":   {`{title: Q, channel_type: webhook, webhook_url: "{{start.outputs.url}}", credential_id: hook}`, `{"url":""}`, "invalid_config", "webhook_url"},
		"NobodyToEscalate": {`{title: Q, escalation: {after_seconds: 60, to: "{{start.outputs.to}}"}}`, `{"to":[]}`, "invalid_config", "escalation.to"},
	} { // order does not matter: each has a workflow of its own
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id := x.execute(t, x.save(t, askOf("nobody_"+strings.ToLower(name), "IN_APP_APPROVAL", c.config)).Workflow.ID, api.ExecuteRequest{Inputs: json.RawMessage(c.inputs)})
			x.reaches(t, id, engine.StatusError)
			n := x.read(t, id).NodeExecutions["ask"]
			if n.Error == nil || n.Error.ErrorCode != c.code || !strings.Contains(n.Error.ErrorMessage, c.says) {
				t.Errorf("error %+v", n.Error)
			}
			if list := want[api.Interactions](t, x.call(t, "viewer", "GET", "/interactions?execution_id="+id, nil), http.StatusOK).Interactions; len(list) != 0 {
				t.Errorf("asked %+v", list)
			}
		})
	}
}

// What nobody has started asks nobody by default.
func TestPeopleKinds_NoStarter(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	saved := x.save(t, askOf("no_starter", "IN_APP_APPROVAL", `{title: Q}`))
	r, err := x.Request(t.Context(), identity.System("default"), saved.Workflow.ID, "latest")
	if err != nil {
		t.Fatal(err)
	}
	r.ID = "exec_of_nobody"
	started, err := x.host.Start(t.Context(), identity.System("default"), r)
	if err != nil {
		t.Fatal(err)
	}
	id := started.Execution
	x.reaches(t, id, engine.StatusError)
	if n := x.read(t, id).NodeExecutions["ask"]; n.Error == nil || n.Error.ErrorCode != "no_approver" {
		t.Errorf("error %+v", n.Error)
	}
}

// A question that is switched off is not taken for an approval.
func TestPeopleKinds_SwitchedOff(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	id := x.execute(t, x.save(t, askOf("off", "IN_APP_APPROVAL", `{title: Q, enabled: false}`, "confirmed", "result")).Workflow.ID, api.ExecuteRequest{})
	x.reaches(t, id, engine.StatusSuccess)
	e := x.read(t, id)
	for _, node := range []string{"ask", "after0", "after1"} {
		if n := e.NodeExecutions[node]; n.Status != "skipped" || len(n.OutputData) != 0 {
			t.Errorf("%s is %s with %v", node, n.Status, n.OutputData)
		}
	}
}

// What validation can know about a question is said when the workflow is saved, and nothing that only a run can know.
func TestPeopleKinds_Saved(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		subtype, config string
		want            []string
	}{
		"Schema":             {"FORM_SUBMISSION", `{"title":"Q","form_schema":{"type":"object","properties":{"a":{"type":"numbr"}}}}`, []string{"invalid_config configurations.form_schema"}},
		"SchemaOfAText":      {"FORM_SUBMISSION", `{"title":"Q","form_schema":{"type":"string"}}`, []string{"invalid_config configurations.form_schema"}},
		"SchemaLater":        {"FORM_SUBMISSION", `{"title":"Q","form_schema":{"type":"{{kind}}"}}`, nil},
		"Pattern":            {"FORM_SUBMISSION", `{"title":"Q","input_fields":[{"name":"a"},{"name":"b","validation":"("}]}`, []string{"invalid_config configurations.input_fields[1].validation"}},
		"TwoFields":          {"FORM_SUBMISSION", `{"title":"Q","input_fields":[{"name":"a"},{"name":"a"}]}`, []string{"invalid_config configurations.input_fields[1].name"}},
		"SelectNothing":      {"FORM_SUBMISSION", `{"title":"Q","input_fields":[{"name":"a","type":"select"}]}`, []string{"invalid_config configurations.input_fields[0].options"}},
		"NothingToFillIn":    {"IN_APP_APPROVAL", `{"title":"Q","interaction_type":"input"}`, []string{"invalid_config configurations.input_fields"}},
		"NothingToJudge":     {"IN_APP_APPROVAL", `{"title":"Q","interaction_type":"review"}`, []string{"invalid_config configurations.review_criteria"}},
		"Range":              {"MANUAL_REVIEW", `{"title":"Q","reviewers":["a"],"review_criteria":["c"],"score_range":{"min":6}}`, []string{"invalid_config configurations.score_range"}},
		"Default":            {"IN_APP_APPROVAL", `{"title":"Q","timeout_action":"default_response","timeout_default_response":{"action":"maybe"}}`, []string{"invalid_config configurations.timeout_default_response"}},
		"DefaultFits":        {"IN_APP_APPROVAL", `{"title":"Q","timeout_action":"default_response","timeout_default_response":{"action":"reject"}}`, nil},
		"DefaultOfAForm":     {"FORM_SUBMISSION", `{"title":"Q","input_fields":[{"name":"n","type":"number","required":true}],"timeout_action":"default_response","timeout_default_response":{"field_values":{}}}`, []string{"invalid_config configurations.timeout_default_response"}},
		"DefaultOfAReview":   {"MANUAL_REVIEW", `{"title":"Q","reviewers":["a"],"review_criteria":["c"],"timeout_action":"default_response","timeout_default_response":{"scores":{"c":false}}}`, nil},
		"DefaultLater":       {"IN_APP_APPROVAL", `{"title":"Q","approval_options":"{{list}}","timeout_action":"default_response","timeout_default_response":{"action":"maybe"}}`, nil},
		"TooManyApprovals":   {"IN_APP_APPROVAL", `{"title":"Q","approvers":["ada","bob@x.org","ada"],"min_approvals":3}`, []string{"invalid_config configurations.min_approvals"}},
		"EnoughWithRole":     {"IN_APP_APPROVAL", `{"title":"Q","approvers":["ada","approver"],"min_approvals":3}`, nil},
		"EnoughEscalated":    {"IN_APP_APPROVAL", `{"title":"Q","approvers":["ada"],"min_approvals":2,"escalation":{"after_seconds":60,"to":"bob"}}`, nil},
		"StarterIsOne":       {"IN_APP_APPROVAL", `{"title":"Q","min_approvals":2}`, []string{"invalid_config configurations.min_approvals"}},
		"ApproversLater":     {"IN_APP_APPROVAL", `{"title":"Q","approvers":["{{a}}"],"min_approvals":2}`, nil},
		"Role":               {"IN_APP_APPROVAL", `{"title":"Q","approvers":["role:boss"]}`, []string{"invalid_config configurations.approvers"}},
		"Reviewer":           {"MANUAL_REVIEW", `{"title":"Q","reviewers":["a@"],"review_criteria":["c"]}`, []string{"invalid_config configurations.reviewers"}},
		"Recipient":          {"GMAIL_INTERACTION", `{"title":"Q","recipient_emails":["a@@b"],"credential_id":"c"}`, []string{"invalid_config configurations.recipient_emails"}},
		"NobodyLeft":         {"IN_APP_APPROVAL", `{"title":"Q","exclude_requester":true}`, []string{"no_approver configurations.approvers"}},
		"EscalationTo":       {"IN_APP_APPROVAL", `{"title":"Q","escalation":{"after_seconds":60,"to":["role:boss"]}}`, []string{"invalid_config configurations.escalation.to"}},
		"EscalationNobody":   {"IN_APP_APPROVAL", `{"title":"Q","escalation":{"after_seconds":60}}`, []string{"invalid_config configurations.escalation.to"}},
		"EscalationOdd":      {"IN_APP_APPROVAL", `{"title":"Q","escalation":{"after_seconds":60,"to":{"user":"a"}}}`, []string{"invalid_config configurations.escalation.to"}},
		"EscalationTooLate":  {"IN_APP_APPROVAL", `{"title":"Q","timeout_seconds":60,"escalation":{"after_seconds":60,"to":"bob"}}`, []string{"invalid_config configurations.escalation"}},
		"OptionIsNoText":     {"IN_APP_APPROVAL", `{"title":"Q","approval_options":["a",{"value":"b","outcome":"maybe"}]}`, []string{"invalid_config configurations.approval_options[1].outcome"}},
		"NumberedOptions":    {"IN_APP_APPROVAL", `{"title":"Q","interaction_type":"selection","selection_options":[1,2]}`, []string{"invalid_config configurations.selection_options"}},
		"Telegram":           {"TELEGRAM_INTERACTION", `{"title":"Q","chat_id":-5,"target_users":["Ada",7],"allowed_response_patterns":["^ok$","("],"min_approvals":2,"credential_id":"c"}`, []string{"invalid_config configurations.allowed_response_patterns[1]"}},
		"Discord":            {"DISCORD_INTERACTION", `{"title":"Q","channel_id":"1","credential_id":"c"}`, []string{"invalid_config configurations.server_id"}},
		"Teams":              {"TEAMS_INTERACTION", `{"title":"Q","webhook_url":"https://x.example/hook","credential_id":"c"}`, nil},
		"ChannelCredential":  {"MANUAL_REVIEW", `{"title":"Q","reviewers":["a@x.org"],"review_criteria":["c"],"channel_type":"email"}`, []string{"credential_missing configurations.credential_id"}},
		"WebhookWithoutURL":  {"FORM_SUBMISSION", `{"title":"Q","input_fields":[{"name":"a"}],"channel_type":"webhook","credential_id":"c"}`, []string{"invalid_config configurations.webhook_url"}},
		"TemplateMayBringIt": {"FORM_SUBMISSION", `{"template_id":"t","min_approvals":7}`, nil},
	} { // order does not matter: each is for itself
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, problems := planOf(t, "HUMAN_IN_THE_LOOP."+c.subtype, c.config)
			var got []string
			for _, p := range problems {
				got = append(got, p.Code+" "+p.Path)
				if p.Message == "" || strings.Contains(p.Message, "draft") || strings.Contains(p.Message, "starter") {
					t.Errorf("message %q", p.Message)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("problems %q, want %q: %+v", got, c.want, problems)
			}
		})
	}
}

// The examples ask, and each goes every way it has.
func TestPeopleKinds_Examples(t *testing.T) {
	t.Parallel()
	runs := map[string][]exampleRun{
		"human_approval": {
			{inputs: `{"item":"desk","amount":90}`, says: []string{"desk is ordered"}},
			{inputs: `{"item":"desk","amount":900}`, answers: []string{`{"action":"buy"}`}, says: []string{"desk is ordered"}},
			{inputs: `{"item":"desk","amount":900}`, answers: []string{`{"action":"refuse","notes":"no room"}`}, says: []string{"desk is not ordered: no room"}},
			{inputs: `{"item":"desk","amount":900}`, answers: []string{`{"action":"refuse"}`}, says: []string{"desk is not ordered: no reason was given"}},
		},
		"human_form": {{inputs: `{"guest":"Ada"}`, answers: []string{`{"field_values":{"nights":"3","arrival":"2030-05-01","room":"double"}}`}, says: []string{"Ada stays 3 nights from 2030-05-01 in a double room"}}},
		"human_review": {
			{inputs: `{"text":"We are open on Sunday.","editor":"local","lawyer":"local"}`, answers: []string{`{"scores":{"It is true":5,"It is clear":4},"evidence":{"It is true":"asked Bo","It is clear":"read it"}}`}, says: []string{"Published: We are open on Sunday."}},
			{inputs: `{"text":"We are open on Sunday.","editor":"local","lawyer":"local"}`, answers: []string{`{"scores":{"It is true":1,"It is clear":4},"evidence":{"It is true":"we are closed","It is clear":"read it"}}`}, says: []string{"Back to the author", "2.5"}},
		},
		"human_each": {{inputs: `{"refunds":[{"customer":"Ada","euros":5},{"customer":"Bo","euros":70},{"customer":"Cy","euros":80}]}`, answers: []string{`{"action":"approve"}`, `{"action":"reject"}`}, says: []string{`"customer":"Ada"`, `"refund":"paid"`, `"refund":"refused"`}}},
	}
	files, err := filepath.Glob(filepath.Join("..", "examples", "human_*"))
	if err != nil || len(files) != len(runs) {
		t.Errorf("%d examples, %d are run (%v)", len(files), len(runs), err)
	}
	for name, list := range runs { // order does not matter: each has a directory of its own
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := sqlitetest.Dir(t)
			for _, one := range list {
				one.check(t, dir, filepath.Join("..", "examples", name+".yaml"))
			}
		})
	}
}

// Two reviewers of the example have to agree.
func TestPeopleKinds_TwoReviewers(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	text, err := os.ReadFile(filepath.Join("..", "examples", "human_review.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	workflow := x.save(t, string(text)).Workflow.ID
	scores := func(n int) string {
		return fmt.Sprintf(`{"scores":{"It is true":%d,"It is clear":4},"evidence":{"It is true":"a","It is clear":"b"}}`, n)
	}
	for name, c := range map[string]struct {
		second       int
		after        string
		average      string
		disagreement string
	}{
		"Agree":    {3, "publish", "4", ""},
		"Disagree": {1, "return", "3.5", "true"},
	} { // order does not matter: each has an execution of its own
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id := x.execute(t, workflow, api.ExecuteRequest{Inputs: json.RawMessage(`{"text":"Hello","editor":"user:editor","lawyer":"user:approver"}`)})
			q := x.opens(t, id, 1)[0]
			refused(t, x.respond(t, "operator", q.ID, scores(5)), http.StatusForbidden, "forbidden")
			if f := refused(t, x.respond(t, "editor", q.ID, `{"scores":{"It is true":5,"It is clear":9}}`), http.StatusUnprocessableEntity, "invalid_input"); len(f.Errors) != 3 {
				t.Errorf("told %+v", f.Errors)
			}
			if after := want[api.Interaction](t, x.respond(t, "editor", q.ID, scores(5)), http.StatusOK); after.Status != "pending" {
				t.Fatalf("%s after one", after.Status)
			}
			want[api.Interaction](t, x.respond(t, "approver", q.ID, scores(c.second)), http.StatusOK)
			x.reaches(t, id, engine.StatusSuccess)
			e := x.read(t, id)
			payload := gjson.ParseBytes(e.NodeExecutions["judge"].OutputData["result"])
			if e.NodeExecutions[c.after].Status != "completed" || payload.Get("average").String() != c.average || payload.Get("disagreement").String() != c.disagreement || payload.Get("reviews.#").Int() != 2 ||
				payload.Get("passed").Bool() != (c.after == "publish") {
				t.Errorf("%s: %s", e.NodeExecutions[c.after].Status, payload.Raw)
			}
		})
	}
}
