package app

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tandem/api"
)

const (
	slackToken   = "xoxb-canary-token"
	slackSigning = "canary-signing-secret"
)

// slackSite is an instance with an app in a workspace of Slack: Ann (U1) is asked, Bob (U2) is not.
type slackSite struct {
	channelSite
	*wire
	credential string
	posted     atomic.Int64
}

func openSlack(t *testing.T) *slackSite {
	t.Helper()
	return slackOn(t, openChannels(t))
}

// slackOn adds the app to an instance.
func slackOn(t *testing.T, x channelSite) *slackSite {
	t.Helper()
	s := &slackSite{channelSite: x}
	people := map[string]string{"U1": "ann@example.org", "U2": "bob@example.org"}
	s.wire = newWire(t, func(w http.ResponseWriter, c wireCall) {
		method := strings.TrimPrefix(c.name, "POST /api/")
		out := map[string]any{"ok": true}
		switch {
		case strings.HasPrefix(method, "POST /hook/"):
		case c.header.Get("Authorization") != "Bearer "+slackToken && c.body.Get("token").Str != slackToken:
			out = map[string]any{"ok": false, "error": "invalid_auth"}
		case method == "chat.postMessage":
			channel := c.body.Get("channel").Str
			if channel == "#ops" {
				channel = "C0PS"
			}
			out["channel"], out["ts"] = channel, fmt.Sprintf("1700000000.%06d", s.posted.Add(1))
		case method == "chat.update":
			out["channel"], out["ts"] = c.body.Get("channel").Str, c.body.Get("ts").Str
		case method == "chat.postEphemeral":
			out["message_ts"] = "1.9"
		case method == "conversations.open":
			out["channel"] = map[string]any{"id": "D" + c.body.Get("users").Str}
		case method == "users.info":
			id := c.body.Get("user").Str
			out["user"] = map[string]any{"id": id, "team_id": "T1", "name": "n", "profile": map[string]any{"email": people[id]}}
		case method == "auth.test":
			out["team_id"], out["team"], out["user_id"] = "T1", "Acme", "UBOT"
		case method == "conversations.info":
			out["channel"] = map[string]any{"id": c.body.Get("channel").Str, "name": "ops"}
		case method == "views.open":
			out["view"] = map[string]any{"id": "V1"}
		default:
			t.Errorf("Slack has no method %q", method)
		}
		s.says(w, http.StatusOK, out)
	})
	s.credential = s.keep(t, "slack_bot", map[string]any{"token": slackToken, "signing_secret": slackSigning, "base_url": s.URL + "/api"})
	return s
}

func (s *slackSite) ask(t *testing.T, to, more string) (execution string, q api.Interaction, asked gjson.Result) {
	t.Helper()
	config := `{title: "Refund order 77?", description: "It came back.", channel: "` + to + `", credential_id: ` + s.credential + `, ` + more + `}`
	execution, q = s.askedIn(t, askOf("slack", "SLACK_INTERACTION", config), `{"order":77}`)
	asked = s.gets(t, "POST /api/chat.postMessage", hasText("Refund order 77?", "It came back.", "\\\"order\\\": 77", "actions"))
	s.sent(t, q.ID, "request", 1)
	return execution, q, asked
}

// button is what a button of a message brings back.
func slackButton(t *testing.T, message gjson.Result, label string) (action, value string) {
	t.Helper()
	for _, b := range message.Get(`blocks.#(type=="actions")#.elements|@flatten`).Array() {
		if b.Get("text.text").Str == label {
			return b.Get("action_id").Str, b.Get("value").Str
		}
	}
	t.Fatalf("there is no button %q in %s", label, message.Raw)
	return "", ""
}

// bring calls back as Slack does.
func (s *slackSite) bring(t *testing.T, secret, contentType, body string, headers ...string) answer {
	t.Helper()
	stamp := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "v0:%s:%s", stamp, body)
	return s.post(t, s.callback("slack", s.credential), body, append(headers, "Content-Type", contentType,
		"X-Slack-Request-Timestamp", stamp, "X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))...)
}

func (s *slackSite) form(t *testing.T, secret string, payload map[string]any) answer {
	t.Helper()
	return s.bring(t, secret, "application/x-www-form-urlencoded", url.Values{"payload": {string(wireJSON(t, payload))}}.Encode())
}

// click is what Slack posts when somebody presses a button of the first message.
func (s *slackSite) click(user, action, value, at string) map[string]any {
	return map[string]any{
		"type": "block_actions", "trigger_id": "trig." + at, "response_url": s.URL + "/hook/" + at, "team": map[string]any{"id": "T1"},
		"user": map[string]any{"id": user}, "channel": map[string]any{"id": "C0PS"}, "message": map[string]any{"ts": "1700000000.000001"},
		"actions": []any{map[string]any{"type": "button", "action_id": action, "value": value, "action_ts": at}},
	}
}

// writes is the event of a reply in the thread of the first message.
func (s *slackSite) writes(t *testing.T, user, id, text string) answer {
	t.Helper()
	return s.bring(t, slackSigning, "application/json", string(wireJSON(t, map[string]any{
		"type": "event_callback", "team_id": "T1", "event_id": id, "authorizations": []any{map[string]any{"team_id": "T1", "user_id": "UBOT", "is_bot": true}},
		"event": map[string]any{"type": "message", "channel": "C0PS", "user": user, "text": text, "ts": "1700000009.1", "thread_ts": "1700000000.000001", "parent_user_id": "UBOT"},
	})))
}

func TestChannelSlack_Click(t *testing.T) {
	t.Parallel()
	s := openSlack(t)
	execution, q, asked := s.ask(t, "#ops", `approvers: [ann@example.org]`)
	if strings.Contains(asked.Raw, "/respond/") {
		t.Errorf("everybody in the channel reads a link that answers for somebody: %s", asked.Raw)
	}
	action, value := slackButton(t, asked, "Approve")
	refused(t, s.form(t, "another secret", s.click("U1", action, value, "1.0")), http.StatusUnauthorized, "unauthorized")
	want[any](t, s.form(t, slackSigning, s.click("U2", action, value, "2.0")), http.StatusOK)
	s.gets(t, "POST /hook/2.0", hasText("You may not answer this question."))
	s.waits(t, execution, q.ID)
	for range 2 { // the second is Slack's retry
		want[any](t, s.form(t, slackSigning, s.click("U1", action, value, "3.0")), http.StatusOK)
	}
	s.gets(t, "POST /hook/3.0", hasText("your answer was taken"))
	payload := s.goesOn(t, execution, q.ID, "approve confirmed result")
	if payload.Get("responder").Str != "slack:U1" || payload.Get("response_data.action").Str != "approve" {
		t.Errorf("payload %s", payload.Raw)
	}
	notice := s.gets(t, "POST /api/chat.update", hasText("Refund order 77?", "Answered by"))
	if notice.Get("ts").Str != "1700000000.000001" || notice.Get(`blocks.#(type=="actions")`).Exists() || strings.Contains(notice.Raw, "action_id") {
		t.Errorf("the buttons stay: %s", notice.Raw)
	}
	want[any](t, s.form(t, slackSigning, s.click("U1", action, value, "4.0")), http.StatusOK)
	s.gets(t, "POST /hook/4.0", hasText("The question has ended"))
	s.once(t, q.ID)
}

func TestChannelSlack_Thread(t *testing.T) {
	t.Parallel()
	s := openSlack(t)
	execution, q, _ := s.ask(t, "#ops", `approvers: ["slack:U1"]`)
	want[any](t, s.writes(t, "U2", "Ev1", "I approve this"), http.StatusOK)
	s.replied(t, q.ID, 1, "I approve this")
	s.gets(t, "POST /api/chat.postEphemeral", hasText("You may not answer this question."))
	want[any](t, s.writes(t, "U1", "Ev2", "Hm, perhaps. What do you think?"), http.StatusOK)
	s.replied(t, q.ID, 2, "Hm, perhaps. What do you think?")
	back := s.gets(t, "POST /api/chat.postMessage", hasText("We could not tell what your reply means"))
	if back.Get("thread_ts").Str != "1700000000.000001" || strings.Contains(back.Raw, "/respond/") {
		t.Errorf("asked back %s", back.Raw)
	}
	s.waits(t, execution, q.ID)
	for range 2 { // the second is Slack's retry
		want[any](t, s.writes(t, "U1", "Ev3", "No, I don't approve this."), http.StatusOK)
	}
	payload := s.goesOn(t, execution, q.ID, "reject rejected result")
	if payload.Get("user_response").Str != "No, I don't approve this." || payload.Get("ai_classification").Str != "rejected" {
		t.Errorf("payload %s", payload.Raw)
	}
	s.gets(t, "POST /api/chat.update", hasText("Answered by"))
	if d := s.once(t, q.ID); len(d.Responses) != 3 {
		t.Errorf("replies %+v", d.Responses)
	}
}

// In a conversation with one person there is a link, and what is risky is not decided by prose.
func TestChannelSlack_LinkAndRisk(t *testing.T) {
	t.Parallel()
	s := openSlack(t)
	execution, q, asked := s.ask(t, "@U1", `approvers: ["slack:U1"], risk: high`)
	if asked.Get("channel").Str != "DU1" || !asked.Get(`blocks.#(type=="actions")#.elements|@flatten|#(confirm)`).Exists() {
		t.Errorf("asked %s", asked.Raw)
	}
	want[any](t, s.bring(t, slackSigning, "application/json", string(wireJSON(t, map[string]any{
		"type": "event_callback", "team_id": "T1", "event_id": "Ev1",
		"event": map[string]any{"type": "message", "channel": "DU1", "user": "U1", "text": "I approve this.", "ts": "1700000009.1", "thread_ts": "1700000000.000001"},
	}))), http.StatusOK)
	if one := s.replied(t, q.ID, 1, "I approve this."); one.Relevance != "uncertain" || one.Reasoning != "an approval of high risk is not taken from prose" {
		t.Errorf("%+v", one)
	}
	back := s.gets(t, "POST /api/chat.postMessage", hasText("not taken from a written reply"))
	links := back.Get(`blocks.#(type=="actions")#.elements|@flatten|#.url`).Array()
	if len(links) != 1 {
		t.Fatalf("asked back %s", back.Raw)
	}
	if payload := s.byLink(t, execution, q.ID, links[0].Str, "Refund order 77?"); payload.Get("responder").Str != "slack:U1" {
		t.Errorf("payload %s", payload.Raw)
	}
	s.gets(t, "POST /api/chat.update", hasText("Answered by"))
}

// A form is a modal: who may not answer does not see it, what is wrong is said at its field, and what is right counts.
func TestChannelSlack_Modal(t *testing.T) {
	t.Parallel()
	s := openSlack(t)
	config := `interaction_type: input, input_fields: [{name: amount, type: number, required: true}, {name: why, validation: "^[a-z]+$"}], approvers: ["slack:U1"]`
	execution, q, asked := s.ask(t, "#ops", config)
	action, value := "", ""
	for _, b := range asked.Get(`blocks.#(type=="actions")#.elements|@flatten`).Array() {
		action, value = b.Get("action_id").Str, b.Get("value").Str
	}
	want[any](t, s.form(t, slackSigning, s.click("U2", action, value, "1.0")), http.StatusOK)
	s.gets(t, "POST /hook/1.0", hasText("You may not answer this question."))
	if n := s.count("POST /api/views.open"); n != 0 {
		t.Errorf("%d forms were shown", n)
	}
	want[any](t, s.form(t, slackSigning, s.click("U1", action, value, "2.0")), http.StatusOK)
	view := s.gets(t, "POST /api/views.open", nil).Get("view")
	submit := func(amount, why string) answer {
		values := map[string]any{}
		for _, b := range view.Get(`blocks.#(type=="input")#`).Array() {
			text := why
			if b.Get("element.type").Str == "number_input" {
				text = amount
			}
			values[b.Get("block_id").Str] = map[string]any{b.Get("element.action_id").Str: map[string]any{"type": b.Get("element.type").Str, "value": text}}
		}
		return s.form(t, slackSigning, map[string]any{
			"type": "view_submission", "trigger_id": "t" + why, "team": map[string]any{"id": "T1"}, "user": map[string]any{"id": "U1"},
			"view": map[string]any{"id": "V1", "hash": why, "callback_id": view.Get("callback_id").Str, "private_metadata": view.Get("private_metadata").Str, "state": map[string]any{"values": values}},
		})
	}
	wrong := want[struct {
		Action string            `json:"response_action"`
		Errors map[string]string `json:"errors"`
	}](t, submit("12", "NO"), http.StatusOK)
	if wrong.Action != "errors" || len(wrong.Errors) != 1 {
		t.Errorf("%+v", wrong)
	}
	s.waits(t, execution, q.ID)
	done := want[map[string]json.RawMessage](t, submit("12.5", "tea"), http.StatusOK)
	if string(done["response_action"]) != `"update"` {
		t.Errorf("%s", done)
	}
	if payload := s.goesOn(t, execution, q.ID, "confirmed result"); payload.Get("response_data.field_values.amount").Num != 12.5 || payload.Get("response_data.field_values.why").Str != "tea" {
		t.Errorf("payload %s", payload.Raw)
	}
	if notice := s.gets(t, "POST /api/chat.update", hasText("Answered by")); strings.Contains(notice.Raw, "action_id") {
		t.Errorf("the button stays: %s", notice.Raw)
	}
}

func TestChannelSlack_Down(t *testing.T) {
	t.Parallel()
	s := openSlack(t)
	s.instead("POST /api/chat.postMessage", http.StatusBadGateway, "down")
	s.instead("POST /api/chat.postMessage", http.StatusTooManyRequests, "later", "Retry-After", "300") // after the time of the question
	execution, q := s.askedIn(t, askOf("slack", "SLACK_INTERACTION", `{title: Q, channel: "#ops", credential_id: `+s.credential+`, approvers: [operator], timeout_seconds: 60}`), `{}`)
	s.fails(t, execution, q.ID, 2)
}
