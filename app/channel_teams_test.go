package app

import (
	"crypto/rand"
	"crypto/rsa"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/tidwall/gjson"

	"tandem/api"
)

const (
	teamsApp, teamsSecret, teamsTenant = "app-1", "canary-app-secret", "tenant-1"
	teamsTalk                          = "POST /v3/conversations/a:talk/activities"
)

// teamsSite is an instance with a bot of Teams and the service behind it: Ann is asked in a chat with her, Bob writes to the bot as well.
type teamsSite struct {
	channelSite
	*wire
	credential string
	key        *rsa.PrivateKey
}

func openTeams(t *testing.T) *teamsSite {
	t.Helper()
	return teamsOn(t, openChannels(t))
}

// teamsOn adds the bot to an instance.
func teamsOn(t *testing.T, x channelSite) *teamsSite {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	s := &teamsSite{channelSite: x, key: key}
	s.wire = newWire(t, s.answers)
	s.credential = s.keep(t, "teams_bot", map[string]any{"app_id": teamsApp, "app_secret": teamsSecret, "tenant_id": teamsTenant, "base_url": s.URL})
	return s
}

func (s *teamsSite) answers(w http.ResponseWriter, c wireCall) {
	method, path, _ := strings.Cut(c.name, " ")
	switch {
	case path == "/"+teamsTenant+"/oauth2/v2.0/token":
		if c.body.Get("client_id").Str != teamsApp || c.body.Get("client_secret").Str != teamsSecret {
			s.says(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client"})
			return
		}
		s.says(w, http.StatusOK, map[string]any{"token_type": "Bearer", "expires_in": 3600, "access_token": "access"})
	case path == "/v1/.well-known/openidconfiguration":
		s.says(w, http.StatusOK, map[string]any{"issuer": "https://issuer.example", "jwks_uri": s.URL + "/v1/.well-known/keys"})
	case path == "/v1/.well-known/keys":
		s.says(w, http.StatusOK, map[string]any{"keys": []any{jose.JSONWebKey{Key: &s.key.PublicKey, KeyID: "k1", Algorithm: "RS256", Use: "sig"}}})
	case strings.HasPrefix(path, "/hook/"):
		s.says(w, http.StatusOK, 1)
	case c.header.Get("Authorization") != "Bearer access":
		s.says(w, http.StatusUnauthorized, map[string]any{"message": "denied"})
	case c.name == "POST /v3/conversations" && c.body.Get("members.0.id").Str == "29:bob":
		s.says(w, http.StatusCreated, map[string]any{"id": "a:talk-with-bob"})
	case c.name == "POST /v3/conversations":
		s.says(w, http.StatusCreated, map[string]any{"id": "a:talk", "activityId": "200"})
	case method == "GET" && strings.Contains(path, "/members/29:"):
		name := path[strings.LastIndex(path, ":")+1:]
		s.says(w, http.StatusOK, map[string]any{"id": "29:" + name, "aadObjectId": "aad-" + name, "email": name + "@example.org"})
	case strings.HasPrefix(path, "/v3/conversations/a:talk"):
		s.says(w, http.StatusCreated, map[string]any{"id": "200"})
	default:
		s.t.Errorf("the bot service has no %s", c.name)
		s.says(w, http.StatusNotFound, map[string]any{})
	}
}

func (s *teamsSite) ask(t *testing.T, more string) (execution string, q api.Interaction, card gjson.Result) {
	t.Helper()
	config := `{title: "Grant access?", description: "To the archive.", user: "29:ann", credential_id: ` + s.credential + `, ` + more + `}`
	execution, q = s.askedIn(t, askOf("teams", "TEAMS_INTERACTION", config), `{"who":"carol"}`)
	s.gets(t, "POST /v3/conversations", hasText("29:ann"))
	card = s.gets(t, teamsTalk, hasText("Grant access?", "To the archive.", "carol")).Get("attachments.0.content")
	s.sent(t, q.ID, "request", 1)
	return execution, q, card
}

// teamsButton is what a button of a card sends.
func teamsButton(t *testing.T, card gjson.Result, title string) map[string]any {
	t.Helper()
	data, ok := card.Get(`actions.#(title=="` + title + `").data`).Value().(map[string]any)
	if !ok {
		t.Fatalf("there is no button %q in %s", title, card.Raw)
	}
	return data
}

func teamsLink(card gjson.Result) string {
	return card.Get(`actions.#(type=="Action.OpenUrl").url`).Str
}

// bring brings what somebody did in the chat, with a token that is signed by a key.
func (s *teamsSite) bring(t *testing.T, key *rsa.PrivateKey, id, who string, does map[string]any) answer {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: key, KeyID: "k1"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	token, err := jwt.Signed(signer).Claims(map[string]any{
		"iss": "https://issuer.example", "aud": teamsApp, "nbf": now.Add(-time.Minute).Unix(), "exp": now.Add(time.Hour).Unix(), "serviceurl": s.URL,
	}).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	activity := map[string]any{
		"type": "message", "id": id, "channelId": "msteams", "serviceUrl": s.URL, "locale": "en-US", "from": map[string]any{"id": "29:" + who, "name": who, "aadObjectId": "aad-" + who},
		"conversation": map[string]any{"id": "a:talk", "tenantId": teamsTenant, "conversationType": "personal"}, "replyToId": "200", "channelData": map[string]any{"tenant": map[string]any{"id": teamsTenant}},
	}
	for name, value := range does {
		activity[name] = value
	}
	return s.post(t, s.callback("teams", s.credential), string(wireJSON(t, activity)), "Content-Type", "application/json", "Authorization", "Bearer "+token)
}

func TestChannelTeams_Card(t *testing.T) {
	t.Parallel()
	s := openTeams(t)
	execution, q, card := s.ask(t, `approvers: [ann@example.org]`)
	yes := map[string]any{"value": teamsButton(t, card, "Approve")}
	foreign, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	refused(t, s.bring(t, foreign, "1", "ann", yes), http.StatusUnauthorized, "unauthorized")
	want[any](t, s.bring(t, s.key, "2", "bob", yes), http.StatusOK)
	s.gets(t, teamsTalk+"/2", hasText("You may not answer this question."))
	s.waits(t, execution, q.ID)
	invoke := map[string]any{"type": "invoke", "name": "adaptiveCard/action", "value": map[string]any{"action": map[string]any{"type": "Action.Execute", "data": yes["value"]}}}
	for range 2 { // the second is the vendor's retry
		if got := want[map[string]any](t, s.bring(t, s.key, "3", "ann", invoke), http.StatusOK); got["value"] != "Thank you, your answer was taken." {
			t.Errorf("told %v", got)
		}
	}
	if payload := s.goesOn(t, execution, q.ID, "approve confirmed result"); payload.Get("responder").Str != "teams:aad-ann" {
		t.Errorf("payload %s", payload.Raw)
	}
	notice := s.gets(t, "PUT /v3/conversations/a:talk/activities/200", hasText("Answered by"))
	if notice.Get("attachments.0.content.actions").Exists() {
		t.Errorf("the buttons stay: %s", notice.Raw)
	}
	want[any](t, s.bring(t, s.key, "4", "ann", map[string]any{"value": teamsButton(t, card, "Reject")}), http.StatusOK)
	s.gets(t, teamsTalk+"/4", hasText("The question has ended"))
	s.once(t, q.ID)
}

func TestChannelTeams_Reply(t *testing.T) {
	t.Parallel()
	s := openTeams(t)
	execution, q, _ := s.ask(t, `approvers: ["teams:29:ann"]`)
	says := func(id, who, text string) {
		t.Helper()
		want[any](t, s.bring(t, s.key, id, who, map[string]any{"text": text}), http.StatusOK)
	}
	says("1", "bob", "<p>Approved</p>")
	s.gets(t, teamsTalk+"/1", hasText("You may not answer this question."))
	s.replied(t, q.ID, 1, "Approved")
	says("2", "ann", "<blockquote>approve?</blockquote><p>Who is Carol?</p>")
	s.replied(t, q.ID, 2, "Who is Carol?")
	back := s.gets(t, teamsTalk, hasText("We could not tell what your reply means", "Who is Carol?"))
	if teamsLink(back.Get("attachments.0.content")) == "" || s.count(teamsTalk+"/2") != 0 {
		t.Errorf("asked back %s, and told %d times besides", back.Raw, s.count(teamsTalk+"/2"))
	}
	s.waits(t, execution, q.ID)
	for range 2 { // the second is the vendor's retry
		says("3", "ann", "<at>Tandem</at> Yes, approved")
	}
	if payload := s.goesOn(t, execution, q.ID, "approve confirmed result"); payload.Get("user_response").Str != "Yes, approved" {
		t.Errorf("payload %s", payload.Raw)
	}
	s.gets(t, "PUT /v3/conversations/a:talk/activities/200", hasText("Answered by"))
	if d := s.once(t, q.ID); len(d.Responses) != 3 {
		t.Errorf("replies %+v", d.Responses)
	}
}

func TestChannelTeams_Risk(t *testing.T) {
	t.Parallel()
	s := openTeams(t)
	execution, q, card := s.ask(t, `approvers: ["teams:29:ann"], risk: high`)
	want[any](t, s.bring(t, s.key, "1", "ann", map[string]any{"text": "I approve this."}), http.StatusOK)
	s.replied(t, q.ID, 1, "I approve this.")
	s.gets(t, teamsTalk, hasText("not taken from a written reply"))
	s.byLink(t, execution, q.ID, teamsLink(card), "Grant access?")
	s.gets(t, "PUT /v3/conversations/a:talk/activities/200", hasText("Answered by"))
}

// A bare webhook only tells that there is a question: readers of the channel must not answer in the name of the person who is asked.
func TestChannelTeams_BareWebhook(t *testing.T) {
	t.Parallel()
	s := openTeams(t)
	bare := want[api.Credential](t, s.call(t, "admin", "POST", "/credentials", map[string]any{"name": "bare", "type": "teams_bot", "data": map[string]any{"webhook_url": s.URL + "/hook/1"}}), http.StatusCreated).ID
	execution, q := s.askedIn(t, askOf("teams", "TEAMS_INTERACTION", `{title: "Grant access?", approvers: ["user:approver"], credential_id: `+bare+`}`), `{}`)
	card := s.gets(t, "POST /hook/1", hasText("Grant access?")).Get("attachments.0.content")
	if card.Get(`actions.#(type=="Action.Submit")`).Exists() {
		t.Errorf("nobody hears the buttons of %s", card.Raw)
	}
	s.sent(t, q.ID, "request", 1)
	if teamsLink(card) != "" || !hasText("Answer it in the inbox of Tandem.")(card) {
		t.Errorf("the card of everybody is %s", card.Raw)
	}
	want[api.Interaction](t, s.respond(t, "approver", q.ID, `{"action":"approve"}`), http.StatusOK)
	s.goesOn(t, execution, q.ID, "approve confirmed result")
	notice := s.gets(t, "POST /hook/1", hasText("Answered by"))
	if teamsLink(notice.Get("attachments.0.content")) != "" {
		t.Errorf("the notice has a link: %s", notice.Raw)
	}
}

func TestChannelTeams_Down(t *testing.T) {
	t.Parallel()
	s := openTeams(t)
	s.instead("POST /v3/conversations", http.StatusServiceUnavailable, `{"message":"down"}`)
	s.instead("POST /v3/conversations", http.StatusTooManyRequests, `{"message":"slow down"}`, "Retry-After", "300") // after the time of the question
	execution, q := s.askedIn(t, askOf("teams", "TEAMS_INTERACTION", `{title: Q, user: "29:ann", credential_id: `+s.credential+`, approvers: [operator], timeout_seconds: 60}`), `{}`)
	s.fails(t, execution, q.ID, 2)
}
