package app

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tandem/api"
)

const hookSecret = "canary-hook-7f3a9c51e0d2"

// hookSite is an instance whose questions go to a program.
type hookSite struct {
	channelSite
	*wire
	credential string
}

func openHooks(t *testing.T) *hookSite {
	t.Helper()
	s := &hookSite{channelSite: openChannels(t)}
	s.wire = newWire(t, func(w http.ResponseWriter, c wireCall) {
		stamp := c.header.Get("X-Tandem-Timestamp")
		if c.header.Get("X-Tandem-Signature") != hookSign(hookSecret, stamp, c.body.Raw) || c.header.Get("Idempotency-Key") == "" {
			t.Errorf("a call is not signed: %v", c.header)
		}
	})
	s.credential = s.keep(t, "webhook_secret", map[string]any{"secret": hookSecret})
	return s
}

func hookSign(secret, stamp, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%s.%s", stamp, body)
	return "v1=" + hex.EncodeToString(mac.Sum(nil))
}

// ask starts a workflow that asks, with more of its configuration.
func (s *hookSite) ask(t *testing.T, more string) (execution string, q api.Interaction, asked gjson.Result) {
	t.Helper()
	execution, q = s.askedIn(t, askOf("hook", "IN_APP_APPROVAL", `{title: "Pay the invoice?", description: "120 € to Ada", channel_type: webhook, webhook_url: "`+s.URL+`/in", credential_id: `+s.credential+`, `+more+`}`), `{"sum":120}`)
	return execution, q, s.gets(t, "POST /in", hasText(`"event":"request"`))
}

// bring calls back with a body, signed with a secret.
func (s *hookSite) bring(t *testing.T, secret string, body map[string]any) answer {
	t.Helper()
	raw, stamp := string(wireJSON(t, body)), strconv.FormatInt(time.Now().Unix(), 10)
	return s.post(t, s.callback("webhook", s.credential), raw, "Content-Type", "application/json", "X-Tandem-Timestamp", stamp, "X-Tandem-Signature", hookSign(secret, stamp, raw))
}

func TestChannelWebhook_Callback(t *testing.T) {
	t.Parallel()
	s := openHooks(t)
	execution, q, asked := s.ask(t, `approvers: [operator, ann@example.org]`)
	if asked.Get("interaction.id").Str != q.ID || asked.Get("request.title").Str != "Pay the invoice?" || asked.Get("request.content.sum").Int() != 120 || asked.Get("callback_url").Str != s.callback("webhook", s.credential) {
		t.Fatalf("asked %s", asked.Raw)
	}
	yes := map[string]any{"interaction_id": q.ID, "responder": "Ann@example.org", "response_data": map[string]any{"action": "approve", "notes": "fine"}, "id": "r1"}
	refused(t, s.bring(t, "another secret", yes), http.StatusUnauthorized, "unauthorized")
	refused(t, s.bring(t, hookSecret, map[string]any{"interaction_id": q.ID, "responder": "eve@example.org", "response_data": map[string]any{"action": "approve"}}), http.StatusForbidden, "forbidden")
	refused(t, s.bring(t, hookSecret, map[string]any{"interaction_id": q.ID, "responder": "ann@example.org", "response_data": map[string]any{"action": "burn"}}), http.StatusUnprocessableEntity, "invalid_input")
	lost := refused(t, s.bring(t, hookSecret, map[string]any{"interaction_id": q.ID, "responder": "ann@example.org", "response_data": map[string]any{"action": "approve", "comment": "c"}}), http.StatusUnprocessableEntity, "invalid_input")
	if len(lost.Errors) != 1 || lost.Errors[0].Path != "response_data.comment" {
		t.Errorf("a key that nobody reads: %+v", lost)
	}
	s.waits(t, execution, q.ID)
	for try := range 2 { // the second is the caller's retry
		if got := want[map[string]any](t, s.bring(t, hookSecret, yes), http.StatusOK); got["accepted"] != true || got["ended"] != true || got["status"] != "completed" {
			t.Fatalf("try %d: %v", try, got)
		}
	}
	payload := s.goesOn(t, execution, q.ID, "approve confirmed result")
	if payload.Get("responder").Str != "mail:ann@example.org" || payload.Get("response_data.notes").Str != "fine" {
		t.Errorf("payload %s", payload.Raw)
	}
	notice := s.gets(t, "POST /in", hasText(`"event":"completed"`))
	if notice.Get("interaction.response_data.action").Str != "approve" || notice.Get("link").Exists() || notice.Get("data.status").Str != "completed" {
		t.Errorf("told %s", notice.Raw)
	}
	refused(t, s.bring(t, hookSecret, map[string]any{"interaction_id": q.ID, "responder": "ann@example.org", "response_data": map[string]any{"action": "reject"}, "id": "r2"}), http.StatusConflict, "conflict")
	s.once(t, q.ID)
}

func TestChannelWebhook_Prose(t *testing.T) {
	t.Parallel()
	s := openHooks(t)
	execution, q, _ := s.ask(t, `approvers: [ann@example.org]`)
	says := func(text string) map[string]any {
		t.Helper()
		return want[map[string]any](t, s.bring(t, hookSecret, map[string]any{"interaction_id": q.ID, "responder": "ann@example.org", "text": text}), http.StatusOK)
	}
	if got := says("Maybe, who knows."); got["accepted"] != false || got["ended"] != false {
		t.Errorf("%v", got)
	}
	back := s.gets(t, "POST /in", hasText(`"event":"ask_back"`))
	if !hasText("Maybe, who knows.")(back.Get("lines")) || back.Get("link").Exists() {
		t.Errorf("asked back %s", back.Raw)
	}
	s.waits(t, execution, q.ID)
	if got := says("I approve this."); got["accepted"] != true || got["ended"] != true {
		t.Errorf("%v", got)
	}
	if payload := s.goesOn(t, execution, q.ID, "approve confirmed result"); payload.Get("user_response").Str != "I approve this." || payload.Get("ai_classification").Str != "confirmed" {
		t.Errorf("payload %s", payload.Raw)
	}
}

// A link that answers in the name of one person does not go to a program; one of a form that is open to all who have it does.
func TestChannelWebhook_Link(t *testing.T) {
	t.Parallel()
	s := openHooks(t)
	execution, q, asked := s.ask(t, `approvers: [ann@example.org], risk: high`)
	if got := want[map[string]any](t, s.bring(t, hookSecret, map[string]any{"interaction_id": q.ID, "responder": "ann@example.org", "text": "I approve this."}), http.StatusOK); got["accepted"] != false {
		t.Errorf("prose decides: %v", got)
	}
	s.waits(t, execution, q.ID)
	if asked.Get("link").Exists() {
		t.Errorf("asked with the link of somebody: %s", asked.Raw)
	}
	want[map[string]any](t, s.bring(t, hookSecret, map[string]any{"interaction_id": q.ID, "responder": "ann@example.org", "response_data": map[string]any{"action": "approve"}}), http.StatusOK)
	payload := s.goesOn(t, execution, q.ID, "approve confirmed result")
	if payload.Get("responder").Str != "mail:ann@example.org" || payload.Get("approvals.0.means.kind").Str != "webhook" || payload.Get("approvals.0.means.credential_id").Str != s.credential {
		t.Errorf("payload %s", payload.Raw)
	}
	s.askedIn(t, askOf("hook2", "FORM_SUBMISSION", `{title: Open, channel_type: webhook, webhook_url: "`+s.URL+`/in", credential_id: `+s.credential+`, access: link, input_fields: [{name: sum}]}`), `{}`)
	if open := s.gets(t, "POST /in", hasText(`"title":"Open"`)); open.Get("link").Str == "" {
		t.Errorf("an open form without a link: %s", open.Raw)
	}
}

func TestChannelWebhook_Down(t *testing.T) {
	t.Parallel()
	s := openHooks(t)
	s.instead("POST /in", http.StatusServiceUnavailable, "down")
	s.instead("POST /in", http.StatusTooManyRequests, "later", "Retry-After", "300") // after the time of the question
	execution, q := s.askedIn(t, askOf("hook", "IN_APP_APPROVAL", `{title: Q, channel_type: webhook, webhook_url: "`+s.URL+`/in", credential_id: `+s.credential+`, approvers: [operator], timeout_seconds: 60}`), `{}`)
	s.fails(t, execution, q.ID, 2)
}
