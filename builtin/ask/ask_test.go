package ask_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tandem/engine"
	"tandem/fault"
	"tandem/human"
	"tandem/node"
	"tandem/node/nodetest"
)

// asksFor runs a kind that must ask, and returns what it asks.
func asksFor(t *testing.T, kind string, call *node.Call) (request gjson.Result, wait node.Wait) {
	t.Helper()
	out, err := kinds().Run(t, "HUMAN_IN_THE_LOOP."+kind, call)
	if err != nil {
		t.Fatal(err)
	}
	wait, ok := out.(node.Wait)
	if !ok || wait.Ask == nil || wait.Ask.Purpose != human.PurposeNode || !wait.Until.IsZero() {
		t.Fatalf("%#v is no question", out)
	}
	return gjson.ParseBytes(wait.Ask.Request), wait
}

// Each kind asks in its medium, with its own defaults and what its channel has to know.
func TestHuman_Asks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind, config, input string
		// says are paths of the request and what is there, as JSON; empty: nothing.
		says map[string]string
	}{
		"Plain": {"IN_APP_APPROVAL", `{"title":"Q"}`, `{"a":1}`, map[string]string{
			"interaction_type": `"approval"`, "channel_type": `"in_app"`, "content": `{"a":1}`, "timeout_seconds": "3600", "options.#": "2", "approvers": "", "settings": "", "priority": "1", "min_approvals": "1",
			"timeout_action": `"continue"`, "unrelated_action": `"route"`, "risk": `"low"`,
		}},
		"OnlyWhatWasChosen": {"IN_APP_APPROVAL", `{"title":"Q"}`, `{"trigger_time":"2030-01-01T00:00:00Z","execution_id":"exec_1","trigger_message":"m","user_id":"ada","condition_result":true,"delay_info":{},"a":1}`, map[string]string{"content": `{"a":1}`}},
		"NothingWasChosen":  {"IN_APP_APPROVAL", `{"title":"Q"}`, `{"trigger_time":"2030-01-01T00:00:00Z","execution_id":"exec_1","user_id":"ada","condition_result":false}`, map[string]string{"content": ""}},
		"NamesOfOthers":     {"IN_APP_APPROVAL", `{"title":"Q"}`, `{"trigger_time":"noon","execution_id":"other","user_id":7,"condition_result":"good"}`, map[string]string{"content": `{"trigger_time":"noon","execution_id":"other","user_id":7,"condition_result":"good"}`}},
		"ChosenByTheAuthor": {"IN_APP_APPROVAL", `{"title":"Q","content":{"user_id":"ada"}}`, `{}`, map[string]string{"content": `{"user_id":"ada"}`}},
		"Everything": {"IN_APP_APPROVAL", `{"title":"Q","description":"D","content":[1],"user_mention":"@ada","timeout_seconds":60,"timeout_action":"default_response","timeout_default_response":{"action":"approve"},
			"approvers":["ada","role:approver",7],"min_approvals":2,"min_rejections":2,"exclude_requester":true,"allow_delegation":true,"escalation":{"after_seconds":30,"to":"bob"},"reminder_seconds":20,"risk":"high",
			"priority":5,"ai_analysis_model":"demo","response_analysis_prompt":"P","unrelated_action":"ignore","channel_type":"webhook","webhook_url":"https://x.example/q","credential_id":"hook"}`, `{}`, map[string]string{
			"description": `"D"`, "content": "[1]", "user_mention": `"@ada"`, "timeout_seconds": "60", "timeout_action": `"default_response"`, "timeout_default_response.action": `"approve"`, "approvers": `["ada","role:approver","7"]`,
			"min_approvals": "2", "min_rejections": "2", "exclude_requester": "true", "allow_delegation": "true", "escalation": `{"after_seconds":30,"to":["bob"]}`, "reminder_seconds": "20", "risk": `"high"`, "priority": "5",
			"ai_analysis_model": `"demo"`, "response_analysis_prompt": `"P"`, "unrelated_action": `"ignore"`, "channel_type": `"webhook"`, "settings": `{"webhook_url":"https://x.example/q"}`, "credential_id": `"hook"`,
		}},
		"FromInput": {"IN_APP_APPROVAL", `{"title":"Q"}`, `{"content":"text","user_mention":"@bob","more":1}`, map[string]string{"content": `"text"`, "user_mention": `"@bob"`}},
		"Minutes":   {"IN_APP_APPROVAL", `{"title":"Q","timeout_minutes":1.5}`, `{}`, map[string]string{"timeout_seconds": "90"}},
		"OlderNames": {"MANUAL_REVIEW", `{"review_title":"T","review_description":"D","review_deadline":7200,"reviewers":["bob"],"review_criteria":["c"]}`, `{}`, map[string]string{
			"title": `"T"`, "description": `"D"`, "timeout_seconds": "7200",
		}},
		"OlderQuestion": {"SLACK_INTERACTION", `{"clarification_question_template":"Which?","response_timeout":600,"channel":"#a","credential_id":"c"}`, `{}`, map[string]string{"description": `"Which?"`, "timeout_seconds": "600"}},
		"OlderMail":     {"GMAIL_INTERACTION", `{"email_subject":"S","email_template":"B","recipient_emails":["a@x.org"],"credential_id":"c"}`, `{}`, map[string]string{"title": `"S"`, "description": `"B"`}},
		"Gmail": {"GMAIL_INTERACTION", `{"title":"Q","recipient_emails":["A@x.org","b@x.org"],"sender_email":"me@x.org","credential_id":"out","imap_credential_id":"in"}`, `{}`, map[string]string{
			"channel_type": `"email"`, "timeout_seconds": "86400", "approvers": `["A@x.org","b@x.org"]`, "settings": `{"recipient_emails":["A@x.org","b@x.org"],"sender_email":"me@x.org"}`, "credential_id": `"out"`, "in_credential_id": `"in"`,
		}},
		"MailToOthers": {"GMAIL_INTERACTION", `{"title":"Q","recipient_emails":["team@x.org"],"approvers":["boss@x.org"],"credential_id":"c"}`, `{}`, map[string]string{"approvers": `["boss@x.org"]`, "settings.recipient_emails": `["team@x.org"]`}},
		"Outlook":      {"OUTLOOK_INTERACTION", `{"title":"Q","recipient_emails":["a@x.org"],"priority_level":"HIGH","credential_id":"c","imap_credential_id":"in"}`, `{}`, map[string]string{"channel_type": `"email"`, "in_credential_id": `"in"`, "settings.priority_level": `"high"`, "timeout_seconds": "86400"}},
		"Slack":        {"SLACK_INTERACTION", `{"title":"Q","channel":"#a","auto_thread":false,"channel_type":"slack","credential_id":"c"}`, `{}`, map[string]string{"channel_type": `"slack"`, "settings": `{"auto_thread":false,"channel":"#a"}`, "approvers": ""}},
		"Discord":      {"DISCORD_INTERACTION", `{"title":"Q","server_id":12345678901234567890,"channel_id":"7","credential_id":"c"}`, `{}`, map[string]string{"channel_type": `"discord"`, "settings": `{"channel_id":"7","server_id":"12345678901234567890"}`}},
		"Telegram": {"TELEGRAM_INTERACTION", `{"title":"Q","chat_id":-100,"target_users":["@Ada","Bob",42,"telegram:@Cy"],"allow_text_responses":false,"allowed_response_patterns":["^ok$"],"inline_keyboard":[["approve"]],"credential_id":"c"}`, `{}`, map[string]string{
			"channel_type": `"telegram"`, "approvers": `["telegram:@ada","telegram:@bob","telegram:42","telegram:@cy"]`, "settings.chat_id": `"-100"`, "settings.allow_text_responses": "false",
			"settings.allowed_response_patterns": `["^ok$"]`, "settings.inline_keyboard": `[["approve"]]`, "settings.target_users": `["@Ada","Bob","42","telegram:@Cy"]`,
		}},
		"Teams":    {"TEAMS_INTERACTION", `{"title":"Q","channel_id":"19:a","webhook_url":"https://x.example/hook","credential_id":"c"}`, `{}`, map[string]string{"channel_type": `"teams"`, "settings": `{"channel_id":"19:a","user":"","webhook_url":"https://x.example/hook"}`}},
		"TeamsBot": {"TEAMS_INTERACTION", `{"title":"Q","user":"29:b","credential_id":"c"}`, `{}`, map[string]string{"settings": `{"channel_id":"","user":"29:b"}`}},
		"Form":     {"FORM_SUBMISSION", `{"title":"Q","form_schema":{"type":"object"},"access":"public"}`, `{}`, map[string]string{"interaction_type": `"input"`, "schema": `{"type":"object"}`, "access": `"public"`, "timeout_seconds": "86400"}},
		"Fields":   {"FORM_SUBMISSION", `{"title":"Q","input_fields":[{"name":"a","options":["x"],"type":"select","validation":{"min":1}}]}`, `{}`, map[string]string{"input_fields.0.type": `"select"`, "input_fields.0.validation.min": "1", "access": `"users"`}},
		"Review": {"MANUAL_REVIEW", `{"title":"Q","reviewers":["bob"],"review_criteria":["c"],"review_type":"code_review","scoring_system":"numeric_scale","score_range":{"max":10},"passing_threshold":7,"require_evidence":false,"consensus_required":true}`, `{}`, map[string]string{
			"interaction_type": `"review"`, "approvers": `["bob"]`, "review": `{"review_type":"code_review","criteria":["c"],"scoring_system":"numeric_scale","min":1,"max":10,"passing_threshold":7,"consensus_required":true}`,
		}},
		"ReviewByDefault": {"MANUAL_REVIEW", `{"title":"Q","reviewers":["bob"],"review_criteria":["c"]}`, `{}`, map[string]string{
			"review": `{"review_type":"quality_assurance","criteria":["c"],"scoring_system":"pass_fail","min":1,"max":5,"passing_threshold":3,"require_evidence":true}`, "timeout_seconds": "86400",
		}},
	} { // order does not matter: each is for itself
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request, wait := asksFor(t, c.kind, nodetest.NewCall(t, c.config, c.input))
			for path, says := range c.says { // order does not matter: all are looked at
				if got := request.Get(path).Raw; got != says {
					t.Errorf("%s is %s, want %s", path, got, says)
				}
			}
			since := nodetest.Start().UnixMilli()
			if memo := gjson.ParseBytes(wait.Memo); memo.Get("waiting_since").Int() != since || memo.Get("timeout_at").Int() != since+1000*request.Get("timeout_seconds").Int() {
				t.Errorf("memo %s", wait.Memo)
			}
		})
	}
}

// What follows an output key decides what becomes of a question that is not answered.
func TestHuman_GoesByConnections(t *testing.T) {
	t.Parallel()
	for connected, c := range map[string]struct{ timeout, unrelated string }{
		"confirmed": {human.TimeoutFail, "ignore"}, "timeout": {human.TimeoutContinue, "ignore"}, "unrelated": {human.TimeoutFail, "route"},
	} { // order does not matter: each is for itself
		call := nodetest.NewCall(t, `{"title":"Q"}`, `{}`)
		call.Connected = func(key string) bool { return key == connected }
		if r, _ := asksFor(t, "IN_APP_APPROVAL", call); r.Get("timeout_action").Str != c.timeout || r.Get("unrelated_action").Str != c.unrelated {
			t.Errorf("%s: %s", connected, r.Raw)
		}
	}
}

// What is wrong with a question is known before anybody is asked.
func TestHuman_Refuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind, config string
		code         fault.Code
		path         string
	}{
		"NoTitle":        {"IN_APP_APPROVAL", `{}`, fault.InvalidConfig, "configurations.title"},
		"Reserved":       {"IN_APP_APPROVAL", `{"title":"Q","approval_options":["ok","unrelated"]}`, fault.InvalidConfig, "configurations.approval_options[1]"},
		"ReservedObject": {"IN_APP_APPROVAL", `{"title":"Q","interaction_type":"selection","selection_options":[{"value":"result"}]}`, fault.InvalidConfig, "configurations.selection_options[0]"},
		"OddOption":      {"IN_APP_APPROVAL", `{"title":"Q","approval_options":[1]}`, fault.InvalidConfig, "configurations.approval_options"},
		"Webhook":        {"IN_APP_APPROVAL", `{"title":"Q","channel_type":"webhook"}`, fault.InvalidConfig, "configurations.webhook_url"},
		"Pattern":        {"TELEGRAM_INTERACTION", `{"title":"Q","chat_id":1,"allowed_response_patterns":["a","("]}`, fault.InvalidConfig, "configurations.allowed_response_patterns[1]"},
		"NoServer":       {"DISCORD_INTERACTION", `{"title":"Q","channel_id":"1"}`, fault.InvalidConfig, "configurations.server_id"},
		"NoRecipient":    {"GMAIL_INTERACTION", `{"title":"Q","recipient_emails":[]}`, fault.InvalidConfig, "configurations.recipient_emails"},
		"EmptyForm":      {"FORM_SUBMISSION", `{"title":"Q"}`, fault.InvalidConfig, "configurations.input_fields"},
		"SchemaOfAList":  {"FORM_SUBMISSION", `{"title":"Q","form_schema":{"type":["array","null"]}}`, fault.InvalidConfig, "configurations.form_schema"},
		"Escalation":     {"IN_APP_APPROVAL", `{"title":"Q","escalation":{"to":"bob"}}`, fault.InvalidConfig, "configurations.escalation.after_seconds"},
		"Default":        {"IN_APP_APPROVAL", `{"title":"Q","timeout_action":"default_response","timeout_default_response":{"action":"no such"}}`, fault.InvalidConfig, "configurations.timeout_default_response"},
		"OnlyHerself":    {"IN_APP_APPROVAL", `{"title":"Q","exclude_requester":true}`, fault.NoApprover, "configurations.approvers"},
		"TooShort":       {"IN_APP_APPROVAL", `{"title":"Q","timeout_seconds":59}`, fault.InvalidConfig, "configurations.timeout_seconds"},
		"TooLong":        {"IN_APP_APPROVAL", `{"title":"Q","timeout_minutes":10081}`, fault.InvalidConfig, "configurations.timeout_minutes"},
	} { // order does not matter: each is for itself
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := kinds().Run(t, "HUMAN_IN_THE_LOOP."+c.kind, nodetest.NewCall(t, c.config, `{}`))
			if f := fault.From(err); err == nil || f.Code != c.code || f.Details["path"] != c.path {
				t.Errorf("%v, %v", out, err)
			}
		})
	}
}

// What comes of a question is handed on under its keys, with the same payload, and noted.
func TestHuman_HandsOn(t *testing.T) {
	t.Parallel()
	memo := json.RawMessage(`{"waiting_since":5,"timeout_at":9}`)
	for name, c := range map[string]struct {
		config  string
		outcome engine.AskOutcome
		result  string
		keys    string
		code    fault.Code
		detail  string
	}{
		"Confirmed":     {`{"title":"Q"}`, engine.AskDone, `{"status":"completed","response_data":{"action":"approve"},"ai_classification":"confirmed","options":["approve"]}`, "approve confirmed result", "", `{"action":"approve"}`},
		"Said":          {`{"title":"Q"}`, engine.AskDone, `{"status":"completed","response_data":{"action":"approve"},"ai_classification":"confirmed","options":["approve"],"user_response":"ok"}`, "approve confirmed result", "", `"ok"`},
		"Option":        {`{"title":"Q"}`, engine.AskDone, `{"status":"completed","response_data":{},"options":["later"]}`, "later result", "", `{}`},
		"Unrelated":     {`{"title":"Q"}`, engine.AskDone, `{"status":"completed","response_data":null,"ai_classification":"unrelated"}`, "result unrelated", "", `{}`},
		"Continues":     {`{"title":"Q","timeout_action":"continue"}`, engine.AskTimeout, `{"status":"timeout","ai_classification":"timeout"}`, "result timeout", "", ""},
		"ByDefault":     {`{"title":"Q","timeout_action":"default_response","timeout_default_response":{"action":"reject"}}`, engine.AskTimeout, `{"status":"timeout","response_data":{"action":"reject"},"ai_classification":"rejected","options":["reject"]}`, "reject rejected result", "", `{"action":"reject"}`},
		"Fails":         {`{"title":"Q","timeout_action":"fail"}`, engine.AskTimeout, `{"status":"timeout"}`, "", fault.HILTimeout, ""},
		"TakenBack":     {`{"title":"Q"}`, engine.AskCanceled, `{"status":"cancelled","responder":"bob","response_data":{"notes":"no need"}}`, "", fault.Canceled, ""},
		"Withdrawn":     {`{"title":"Q"}`, engine.AskCanceled, "", "", fault.Canceled, ""},
		"NothingIsRead": {`{"title":"Q"}`, engine.AskDone, `7`, "", fault.Internal, ""},
	} { // order does not matter: each is for itself
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call := nodetest.NewCall(t, c.config, `{"a":1}`)
			call.Wake, call.Memo = &node.Wake{By: engine.WakeAnswer, Outcome: c.outcome, Payload: json.RawMessage(c.result)}, memo
			noted := map[string]any{}
			call.Detail = func(fields map[string]any) { noted = fields }
			out, err := kinds().Run(t, "HUMAN_IN_THE_LOOP.IN_APP_APPROVAL", call)
			if c.code != "" {
				if fault.CodeOf(err) != c.code {
					t.Errorf("%v, %v", out, err)
				}
				if name == "TakenBack" && !strings.Contains(err.Error(), `"bob" has taken the question back before it was answered: no need`) {
					t.Error(err)
				}
			} else {
				outputs, ok := out.(node.Done)
				if err != nil || !ok {
					t.Fatalf("%v, %v", out, err)
				}
				var keys []string
				for key, payload := range outputs { // order does not matter: sorted below
					keys = append(keys, key)
					p := gjson.ParseBytes(payload)
					if string(payload) != string(outputs["result"]) || p.Get("content").Raw != `{"a":1}` || !p.Get("response_data").IsObject() || !p.Get("approvals").IsArray() {
						t.Errorf("%s: %s", key, payload)
					}
				}
				if slices.Sort(keys); strings.Join(keys, " ") != c.keys {
					t.Errorf("keys %q, want %q", keys, c.keys)
				}
			}
			if c.code == fault.Internal {
				return
			}
			raw, err := json.Marshal(noted)
			if err != nil {
				t.Fatal(err)
			}
			d := gjson.ParseBytes(raw)
			if d.Get("waiting_since").Int() != 5 || d.Get("timeout_at").Int() != 9 || d.Get("user_prompt").Str != "Q" || d.Get("status").Str == "" || d.Get("user_response").Raw != c.detail {
				t.Errorf("noted %s", raw)
			}
		})
	}
}

// A wait that began before there were memos is ended all the same.
func TestHuman_WithoutAMemo(t *testing.T) {
	t.Parallel()
	call := nodetest.NewCall(t, `{"title":"Q"}`, `{}`)
	call.Clock = func() time.Time { return nodetest.Start() }
	call.Wake = &node.Wake{By: engine.WakeAnswer, Outcome: engine.AskDone, Payload: json.RawMessage(`{"status":"completed","response_data":{},"ai_classification":"rejected"}`)}
	if out := kinds().Done(t, "HUMAN_IN_THE_LOOP.IN_APP_APPROVAL", call); out["rejected"] == nil {
		t.Errorf("%v", out)
	}
}

// Names in Telegram are the same however they are written, wherever an approver is named.
func TestHuman_TelegramNames(t *testing.T) {
	t.Parallel()
	_, wait := asksFor(t, "TELEGRAM_INTERACTION", nodetest.NewCall(t, `{"title":"Q","chat_id":1,"target_users":["Ada"],"approvers":["telegram:@Boss","Telegram:@boss","slack:UBoss"],"credential_id":"c"}`, `{}`))
	telegram := human.Media{"telegram": {Normal: strings.ToLower}} // as its channel says
	opened, err := telegram.Open(human.Question{User: "ada", Node: "n", Ask: "a", Activation: "n", Purpose: human.PurposeNode, Request: wait.Ask.Request, Time: 1})
	if err != nil || !slices.Equal(opened.Approvers, []string{"telegram:@boss", "slack:UBoss"}) {
		t.Errorf("%q, %v", opened.Approvers, err)
	}
}
