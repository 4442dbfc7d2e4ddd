package ask_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tandem/builtin/ask/asktest"
	"tandem/engine"
	"tandem/fault"
	"tandem/human"
	"tandem/node"
	"tandem/node/nodetest"
)

// Each kind asks in its medium, with its own defaults and what its channel has to know.
func TestHuman_Asks(t *testing.T) {
	t.Parallel()
	asktest.Run(t, kinds(), map[string]asktest.Case{
		"Plain": {Kind: "IN_APP_APPROVAL", Config: `{"title":"Q"}`, Input: `{"a":1}`, Says: map[string]string{
			"interaction_type": `"approval"`, "channel_type": `"in_app"`, "content": `{"a":1}`, "timeout_seconds": "3600", "options.#": "2", "approvers": "", "settings": "", "priority": "1", "min_approvals": "1",
			"timeout_action": `"continue"`, "unrelated_action": `"route"`, "risk": `"low"`,
		}},
		"OnlyWhatWasChosen": {Kind: "IN_APP_APPROVAL", Config: `{"title":"Q"}`, Input: `{"trigger_time":"2030-01-01T00:00:00Z","execution_id":"exec_1","trigger_message":"m","user_id":"ada","condition_result":true,"delay_info":{},"a":1}`, Says: map[string]string{"content": `{"a":1}`}},
		"NothingWasChosen":  {Kind: "IN_APP_APPROVAL", Config: `{"title":"Q"}`, Input: `{"trigger_time":"2030-01-01T00:00:00Z","execution_id":"exec_1","user_id":"ada","condition_result":false}`, Says: map[string]string{"content": ""}},
		"NamesOfOthers":     {Kind: "IN_APP_APPROVAL", Config: `{"title":"Q"}`, Input: `{"trigger_time":"noon","execution_id":"other","user_id":7,"condition_result":"good"}`, Says: map[string]string{"content": `{"trigger_time":"noon","execution_id":"other","user_id":7,"condition_result":"good"}`}},
		"ChosenByTheAuthor": {Kind: "IN_APP_APPROVAL", Config: `{"title":"Q","content":{"user_id":"ada"}}`, Input: `{}`, Says: map[string]string{"content": `{"user_id":"ada"}`}},
		"Everything": {Kind: "IN_APP_APPROVAL", Config: `{"title":"Q","description":"D","content":[1],"user_mention":"@ada","timeout_seconds":60,"timeout_action":"default_response","timeout_default_response":{"action":"approve"},
			"approvers":["ada","role:approver",7],"min_approvals":2,"min_rejections":2,"exclude_requester":true,"allow_delegation":true,"escalation":{"after_seconds":30,"to":"bob"},"reminder_seconds":20,"risk":"high",
			"priority":5,"ai_analysis_model":"demo","response_analysis_prompt":"P","unrelated_action":"ignore","channel_type":"webhook","webhook_url":"https://x.example/q","credential_id":"hook"}`, Input: `{}`, Says: map[string]string{
			"description": `"D"`, "content": "[1]", "user_mention": `"@ada"`, "timeout_seconds": "60", "timeout_action": `"default_response"`, "timeout_default_response.action": `"approve"`, "approvers": `["ada","role:approver","7"]`,
			"min_approvals": "2", "min_rejections": "2", "exclude_requester": "true", "allow_delegation": "true", "escalation": `{"after_seconds":30,"to":["bob"]}`, "reminder_seconds": "20", "risk": `"high"`, "priority": "5",
			"ai_analysis_model": `"demo"`, "response_analysis_prompt": `"P"`, "unrelated_action": `"ignore"`, "channel_type": `"webhook"`, "settings": `{"webhook_url":"https://x.example/q"}`, "credential_id": `"hook"`,
		}},
		"Visitor":   {Kind: "IN_APP_APPROVAL", Config: `{"title":"Q","approvers":["Visitor"]}`, Input: `{"a":1}`, Says: map[string]string{"content": ""}},
		"Shown":     {Kind: "IN_APP_APPROVAL", Config: `{"title":"Q","approvers":["visitor"],"content":{"b":2}}`, Input: `{"a":1}`, Says: map[string]string{"content": `{"b":2}`}},
		"Escalated": {Kind: "IN_APP_APPROVAL", Config: `{"title":"Q","escalation":{"after_seconds":30,"to":"visitor"}}`, Input: `{"a":1}`, Says: map[string]string{"content": ""}},
		"FromInput": {Kind: "IN_APP_APPROVAL", Config: `{"title":"Q"}`, Input: `{"content":"text","user_mention":"@bob","more":1}`, Says: map[string]string{"content": `"text"`, "user_mention": `"@bob"`}},
		"Minutes":   {Kind: "IN_APP_APPROVAL", Config: `{"title":"Q","timeout_minutes":1.5}`, Input: `{}`, Says: map[string]string{"timeout_seconds": "90"}},
		"OlderNames": {Kind: "MANUAL_REVIEW", Config: `{"review_title":"T","review_description":"D","review_deadline":7200,"reviewers":["bob"],"review_criteria":["c"]}`, Input: `{}`, Says: map[string]string{
			"title": `"T"`, "description": `"D"`, "timeout_seconds": "7200",
		}},
		"Form":   {Kind: "FORM_SUBMISSION", Config: `{"title":"Q","form_schema":{"type":"object"},"access":"public"}`, Input: `{}`, Says: map[string]string{"interaction_type": `"input"`, "schema": `{"type":"object"}`, "access": `"public"`, "timeout_seconds": "86400"}},
		"Fields": {Kind: "FORM_SUBMISSION", Config: `{"title":"Q","input_fields":[{"name":"a","options":["x"],"type":"select"},{"name":"n","type":"number","validation":{"min":1}}]}`, Input: `{}`, Says: map[string]string{"input_fields.0.type": `"select"`, "input_fields.1.validation.min": "1", "access": `"users"`}},
		"Review": {Kind: "MANUAL_REVIEW", Config: `{"title":"Q","reviewers":["bob"],"review_criteria":["c"],"review_type":"code_review","scoring_system":"numeric_scale","score_range":{"max":10},"passing_threshold":7,"require_evidence":false,"consensus_required":true}`, Input: `{}`, Says: map[string]string{
			"interaction_type": `"review"`, "approvers": `["bob"]`, "review": `{"review_type":"code_review","criteria":["c"],"scoring_system":"numeric_scale","min":1,"max":10,"passing_threshold":7,"consensus_required":true}`,
		}},
		"ReviewByDefault": {Kind: "MANUAL_REVIEW", Config: `{"title":"Q","reviewers":["bob"],"review_criteria":["c"]}`, Input: `{}`, Says: map[string]string{
			"review": `{"review_type":"quality_assurance","criteria":["c"],"scoring_system":"pass_fail","min":1,"max":5,"passing_threshold":3,"require_evidence":true}`, "timeout_seconds": "86400",
		}},
	})
}

// What follows an output key decides what becomes of a question that is not answered.
func TestHuman_GoesByConnections(t *testing.T) {
	t.Parallel()
	for connected, c := range map[string]struct{ timeout, unrelated string }{
		"confirmed": {human.TimeoutFail, "ignore"}, "timeout": {human.TimeoutContinue, "ignore"}, "unrelated": {human.TimeoutFail, "route"},
	} { // order does not matter: each is for itself
		call := nodetest.NewCall(t, `{"title":"Q"}`, `{}`)
		call.Connected = func(key string) bool { return key == connected }
		if r, _ := asktest.Asks(t, kinds(), "IN_APP_APPROVAL", call); r.Get("timeout_action").Str != c.timeout || r.Get("unrelated_action").Str != c.unrelated {
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
			asktest.Refuses(t, kinds(), c.kind, c.config, c.code, c.path)
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
