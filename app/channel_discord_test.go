package app

import (
	"crypto/ed25519"
	"encoding/hex"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tandem/api"
)

const discordToken, discordMessages = "canary-bot-token", "POST /api/v9/channels/55/messages"

// discordSite is an instance with a bot in a server of Discord: Ann (42) is asked in the channel 55, Bob (43) is not.
type discordSite struct {
	channelSite
	*wire
	credential string
	key        ed25519.PrivateKey

	guard  sync.Mutex
	nonces map[string]int
	last   int
	// written are the messages of people, by their ids.
	written []map[string]any
}

func openDiscord(t *testing.T) *discordSite {
	t.Helper()
	return discordOn(t, openChannels(t))
}

// discordOn adds the bot to an instance. Its server is 1, and it has the channels 55 and 56.
func discordOn(t *testing.T, x channelSite) *discordSite {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &discordSite{channelSite: x, key: private, nonces: map[string]int{}, last: 1000}
	s.wire = newWire(t, s.answers)
	s.credential = s.keep(t, "discord_bot", map[string]any{"token": discordToken, "public_key": hex.EncodeToString(public), "base_url": s.URL + "/api/v9"})
	return s
}

func (s *discordSite) answers(w http.ResponseWriter, c wireCall) {
	s.guard.Lock()
	defer s.guard.Unlock()
	switch {
	case c.header.Get("Authorization") != "Bot "+discordToken:
		s.says(w, http.StatusUnauthorized, map[string]any{"code": 0, "message": "401: Unauthorized"})
	case c.name == "GET /api/v9/channels/55", c.name == "GET /api/v9/channels/56":
		s.says(w, http.StatusOK, map[string]any{"id": c.name[len(c.name)-2:], "guild_id": "1"})
	case c.name == "GET /api/v9/oauth2/applications/@me":
		s.says(w, http.StatusOK, map[string]any{"id": "8", "name": "app"})
	case c.name == "GET /api/v9/applications/8/commands":
		s.says(w, http.StatusOK, []any{})
	case c.name == "POST /api/v9/applications/8/commands":
		s.says(w, http.StatusCreated, map[string]any{"id": "6", "name": c.body.Get("name").Str})
	case c.name == "GET /api/v9/channels/56/messages":
		s.says(w, http.StatusOK, []any{})
	case c.name == discordMessages, c.name == "POST /api/v9/channels/56/messages":
		id, known := s.nonces[c.body.Get("nonce").Str]
		if !known {
			s.last++
			id = s.last
			s.nonces[c.body.Get("nonce").Str] = id
		}
		s.says(w, http.StatusOK, map[string]any{"id": strconv.Itoa(id), "channel_id": "55"})
	case strings.HasPrefix(c.name, "PATCH /api/v9/channels/55/messages/"):
		s.says(w, http.StatusOK, map[string]any{"id": "1001", "channel_id": "55"})
	case c.name == "GET /api/v9/channels/55/messages":
		after, err := strconv.Atoi(c.query.Get("after"))
		if err != nil {
			s.t.Errorf("after %q", c.query.Get("after"))
		}
		list := []map[string]any{}
		for _, m := range slices.Backward(s.written) {
			if id, _ := strconv.Atoi(m["id"].(string)); id > after {
				list = append(list, m)
			}
		}
		s.says(w, http.StatusOK, list)
	default:
		s.t.Errorf("Discord has no %s", c.name)
		s.says(w, http.StatusNotFound, map[string]any{"code": 0, "message": "no"})
	}
}

// writes puts a reply of a person to a message into the channel.
func (s *discordSite) writes(from, to, text string) {
	s.guard.Lock()
	defer s.guard.Unlock()
	s.last++
	s.written = append(s.written, map[string]any{
		"id": strconv.Itoa(s.last), "channel_id": "55", "type": 19, "content": text, "author": map[string]any{"id": from, "username": "p" + from},
		"message_reference": map[string]any{"message_id": to, "channel_id": "55"}, "referenced_message": map[string]any{"id": to, "author": map[string]any{"id": "7", "bot": true}},
	})
}

func (s *discordSite) ask(t *testing.T, more string) (execution string, q api.Interaction, asked gjson.Result) {
	t.Helper()
	config := `{title: "Ban the user?", description: "Three warnings.", server_id: "1", channel_id: "55", approvers: ["discord:42"], credential_id: ` + s.credential + more + `}`
	execution, q = s.askedIn(t, askOf("discord", "DISCORD_INTERACTION", config), `{"name":"mallory"}`)
	asked = s.gets(t, discordMessages, hasText("Ban the user?", "Three warnings.", "mallory"))
	s.sent(t, q.ID, "request", 1)
	if strings.Contains(asked.Raw, "/respond/") {
		t.Errorf("everybody in the channel reads a link that answers for somebody: %s", asked.Raw)
	}
	return execution, q, asked
}

func discordButton(t *testing.T, message gjson.Result, label string) string {
	t.Helper()
	for _, b := range message.Get("components.#.components|@flatten").Array() {
		if b.Get("label").Str == label {
			return b.Get("custom_id").Str
		}
	}
	t.Fatalf("there is no button %q in %s", label, message.Raw)
	return ""
}

// bring brings what somebody did, signed by a key, and returns what only they see.
func (s *discordSite) bring(t *testing.T, key ed25519.PrivateKey, id, user string, kind int, data map[string]any) answer {
	t.Helper()
	body := string(wireJSON(t, map[string]any{
		"id": id, "application_id": "8", "type": kind, "token": "it", "channel_id": "55", "message": map[string]any{"id": "1001"},
		"member": map[string]any{"user": map[string]any{"id": user, "username": "p" + user}}, "data": data,
	}))
	stamp := strconv.FormatInt(time.Now().Unix(), 10)
	return s.post(t, s.callback("discord", s.credential), body, "Content-Type", "application/json",
		"X-Signature-Timestamp", stamp, "X-Signature-Ed25519", hex.EncodeToString(ed25519.Sign(key, []byte(stamp+body))))
}

// presses is bring for a button, and checks what only the person sees.
func (s *discordSite) presses(t *testing.T, id, user, button, told string) {
	t.Helper()
	got := s.bring(t, s.key, id, user, 3, map[string]any{"custom_id": button, "component_type": 2})
	body := gjson.ParseBytes(got.body)
	if got.status != http.StatusOK || body.Get("type").Int() != 4 || body.Get("data.flags").Int() != 64 || !strings.Contains(body.Get("data.content").Str, told) {
		t.Fatalf("%d %s; want %q for one person", got.status, got.body, told)
	}
}

func TestChannelDiscord_Click(t *testing.T) {
	t.Parallel()
	s := openDiscord(t)
	execution, q, asked := s.ask(t, `, risk: high`)
	yes := discordButton(t, asked, "Approve")
	_, other, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	refused(t, s.bring(t, other, "70", "42", 3, map[string]any{"custom_id": yes}), http.StatusUnauthorized, "unauthorized")
	if got := want[map[string]any](t, s.bring(t, s.key, "71", "42", 1, nil), http.StatusOK); got["type"] != 1.0 {
		t.Errorf("a ping is answered with %v", got)
	}
	s.presses(t, "72", "43", yes, "You may not answer this question.")
	s.waits(t, execution, q.ID)
	s.presses(t, "73", "42", yes, "your answer was taken")
	if payload := s.goesOn(t, execution, q.ID, "approve confirmed result"); payload.Get("responder").Str != "discord:42" {
		t.Errorf("payload %s", payload.Raw)
	}
	notice := s.gets(t, "PATCH /api/v9/channels/55/messages/1001", hasText("Answered by"))
	if !notice.Get("components").IsArray() || len(notice.Get("components").Array()) != 0 {
		t.Errorf("the buttons stay: %s", notice.Raw)
	}
	s.presses(t, "73", "42", yes, "your answer was taken") // the vendor's retry
	s.presses(t, "74", "42", discordButton(t, asked, "Reject"), "question has ended")
	s.once(t, q.ID)
}

// Replies are looked for every few seconds.
func TestChannelDiscord_Reply(t *testing.T) {
	t.Parallel()
	s := openDiscord(t)
	execution, q, _ := s.ask(t, "")
	s.writes("43", "1001", "I approve this.")
	s.writes("42", "1001", "<@7> what did they do?")
	s.until(t, q.ID, "two replies", func(d api.InteractionDetail) bool { return len(d.Responses) == 2 })
	s.gets(t, discordMessages, hasText("You may not answer this question."))
	s.replied(t, q.ID, 2, "what did they do?")
	back := s.gets(t, discordMessages, hasText("We could not tell what your reply means", "what did they do?"))
	if back.Get("message_reference.message_id").Str != "1001" || strings.Contains(back.Raw, "/respond/") {
		t.Errorf("asked back %s", back.Raw)
	}
	s.waits(t, execution, q.ID)
	s.writes("42", "1001", "No, rejected.")
	if payload := s.goesOn(t, execution, q.ID, "reject rejected result"); payload.Get("user_response").Str != "No, rejected." {
		t.Errorf("payload %s", payload.Raw)
	}
	s.gets(t, discordMessages, hasText("your answer was taken"))
	s.gets(t, "PATCH /api/v9/channels/55/messages/1001", hasText("Answered by"))
	if d := s.once(t, q.ID); len(d.Responses) != 3 {
		t.Errorf("replies %+v", d.Responses)
	}
}

// A form is a modal, and prose does not decide what is risky.
func TestChannelDiscord_ModalAndRisk(t *testing.T) {
	t.Parallel()
	s := openDiscord(t)
	execution, q, asked := s.ask(t, `, risk: high, interaction_type: input, input_fields: [{name: days, type: number, required: true}]`)
	s.writes("42", "1001", "7")
	s.replied(t, q.ID, 1, "7")
	s.gets(t, discordMessages, hasText("not taken from a written reply"))
	s.waits(t, execution, q.ID)
	open := ""
	for _, b := range asked.Get("components.#.components|@flatten").Array() {
		open = b.Get("custom_id").Str
	}
	s.presses(t, "80", "43", open, "You may not answer this question.")
	form := gjson.ParseBytes(s.bring(t, s.key, "81", "42", 3, map[string]any{"custom_id": open, "component_type": 2}).body)
	field := form.Get("data.components.0.components.0.custom_id").Str
	if form.Get("type").Int() != 9 || field == "" {
		t.Fatalf("the form is %s", form.Raw)
	}
	submit := func(id, days string) gjson.Result {
		return gjson.ParseBytes(s.bring(t, s.key, id, "42", 5, map[string]any{"custom_id": form.Get("data.custom_id").Str, "components": []any{
			map[string]any{"type": 1, "components": []any{map[string]any{"type": 4, "custom_id": field, "value": days}}},
		}}).body)
	}
	if got := submit("82", "many"); !strings.Contains(got.Get("data.content").Str, "days") {
		t.Errorf("what is wrong is told as %s", got.Raw)
	}
	s.waits(t, execution, q.ID)
	if got := submit("83", "7"); !strings.Contains(got.Get("data.content").Str, "your answer was taken") {
		t.Errorf("told %s", got.Raw)
	}
	if payload := s.goesOn(t, execution, q.ID, "confirmed result"); payload.Get("response_data.field_values.days").Num != 7 {
		t.Errorf("payload %s", payload.Raw)
	}
	s.gets(t, "PATCH /api/v9/channels/55/messages/1001", hasText("Answered by"))
}

func TestChannelDiscord_Down(t *testing.T) {
	t.Parallel()
	s := openDiscord(t)
	s.instead(discordMessages, http.StatusBadGateway, "down")
	s.instead(discordMessages, http.StatusTooManyRequests, `{"message":"slow down","retry_after":300.0,"global":false}`)
	execution, q := s.askedIn(t, askOf("discord", "DISCORD_INTERACTION", `{title: Q, server_id: "1", channel_id: "55", credential_id: `+s.credential+`, approvers: [operator], timeout_seconds: 60}`), `{}`)
	s.fails(t, execution, q.ID, 2)
}
