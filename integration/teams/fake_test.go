package teams

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"tandem/credential"
	"tandem/fault"
	"tandem/human"
	"tandem/store"
)

const (
	appID     = "app-1"
	appSecret = "canary-app-secret"
	tenantID  = "tenant-1"
	issuer    = "https://api.botframework.example"
	questionA = "0f3c2a10-7b1d-8e4f-9a2b-112233445566"
)

// call is one call that the service got.
type call struct {
	method, path string
	body         map[string]any
}

// service is a fake of the bot service: signing in, keys, conversations, and bare webhooks under /hook/.
type service struct {
	*httptest.Server
	key, foreign *rsa.PrivateKey

	mu      sync.Mutex
	calls   []call
	keyID   string
	token   string
	members map[string]map[string]any
	// refuse answers a call in another way, by its method and the end of its path; its entries are used up.
	refuse map[string][]http.HandlerFunc
}

// keys are made once: it takes a while.
var keys = sync.OnceValues(func() ([2]*rsa.PrivateKey, error) {
	var list [2]*rsa.PrivateKey
	for i := range list {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			return list, err
		}
		list[i] = key
	}
	return list, nil
})

func newService(t *testing.T) *service {
	t.Helper()
	pair, err := keys()
	if err != nil {
		t.Fatal(err)
	}
	s := &service{key: pair[0], foreign: pair[1], keyID: "k1", token: "access-1", refuse: map[string][]http.HandlerFunc{}, members: map[string]map[string]any{
		"29:ann": {"id": "29:ann", "name": "Ann", "aadObjectId": "aad-ann", "email": "ann@example.com", "userPrincipalName": "ann@corp.example", "tenantId": tenantID},
	}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func answerJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func (s *service) serve(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	c := call{method: r.Method, path: r.URL.Path}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		if json.Unmarshal(raw, &c.body) != nil {
			answerJSON(w, http.StatusBadRequest, "no JSON")
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, c)
	for key, list := range s.refuse {
		method, end, _ := strings.Cut(key, " ")
		if method == r.Method && strings.HasSuffix(r.URL.Path, end) && len(list) > 0 {
			s.refuse[key] = list[1:]
			list[0](w, r)
			return
		}
	}
	switch {
	case r.URL.Path == "/"+tenantID+"/oauth2/v2.0/token", r.URL.Path == "/"+anyTenant+"/oauth2/v2.0/token":
		form := string(raw)
		if !strings.Contains(form, "client_secret="+appSecret) || !strings.Contains(form, "grant_type=client_credentials") || !strings.Contains(form, "client_id="+appID) {
			answerJSON(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client", "error_description": "bad secret " + appSecret})
			return
		}
		answerJSON(w, http.StatusOK, map[string]any{"token_type": "Bearer", "expires_in": 3600, "access_token": s.token})
	case r.URL.Path == "/v1/.well-known/openidconfiguration":
		answerJSON(w, http.StatusOK, map[string]any{"issuer": issuer, "jwks_uri": s.URL + "/v1/.well-known/keys", "id_token_signing_alg_values_supported": []string{"RS256"}})
	case r.URL.Path == "/v1/.well-known/keys":
		public, err := json.Marshal(jose.JSONWebKey{Key: &s.key.PublicKey, KeyID: s.keyID, Algorithm: "RS256", Use: "sig"})
		var key map[string]any
		if err != nil || json.Unmarshal(public, &key) != nil {
			panic(http.ErrAbortHandler)
		}
		key["endorsements"] = []string{"msteams", "webchat"}
		other := map[string]any{}
		for k, v := range key {
			other[k] = v
		}
		other["kid"], other["endorsements"] = "webchat-only", []string{"webchat"}
		answerJSON(w, http.StatusOK, map[string]any{"keys": []any{map[string]any{"kty": "of a kind to come", "kid": "x"}, other, key}})
	case strings.HasPrefix(r.URL.Path, "/hook/"):
		_, _ = w.Write([]byte("1"))
	case r.Header.Get("Authorization") != "Bearer "+s.token:
		answerJSON(w, http.StatusUnauthorized, map[string]any{"message": "Authorization has been denied for this request."})
	case r.Method == http.MethodPost && r.URL.Path == "/v3/conversations":
		if c.body["activity"] != nil {
			answerJSON(w, http.StatusCreated, map[string]any{"id": "19:chan@thread.tacv2;messageid=100", "activityId": "100"})
			return
		}
		answerJSON(w, http.StatusCreated, map[string]any{"id": "a:conv-1"})
	case r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/members/"):
		member, ok := s.members[r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]]
		if !ok {
			answerJSON(w, http.StatusNotFound, map[string]any{"error": map[string]any{"code": "MemberNotFoundInConversation"}})
			return
		}
		answerJSON(w, http.StatusOK, member)
	case r.Method == http.MethodPost || r.Method == http.MethodPut:
		answerJSON(w, http.StatusCreated, map[string]any{"id": "200"})
	default:
		answerJSON(w, http.StatusNotFound, nil)
	}
}

// of returns the calls of a method whose path ends in something.
func (s *service) of(method, end string) []call {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []call
	for _, c := range s.calls {
		if c.method == method && strings.HasSuffix(c.path, end) {
			list = append(list, c)
		}
	}
	return list
}

func refusing(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// claims are those of a genuine token.
func (s *service) claims() map[string]any {
	now := time.Now()
	return map[string]any{"iss": issuer, "aud": appID, "exp": now.Add(time.Hour).Unix(), "nbf": now.Add(-time.Minute).Unix(), "serviceurl": s.URL + "/"}
}

// sign signs claims.
func sign(t *testing.T, algorithm jose.SignatureAlgorithm, key any, id string, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: jose.JSONWebKey{Key: key, KeyID: id}}, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// office is what stands behind the channel: one question and who replied.
type office struct {
	mu       sync.Mutex
	question human.Request
	record   store.Interaction
	threads  []string
	replies  []human.Reply
	err      error
	forbid   bool // nobody may answer
}

func newOffice(r human.Request) *office {
	return &office{question: r, record: store.Interaction{
		Workspace: "w", ID: questionA, Type: r.Type, Purpose: human.PurposeNode, Status: store.InteractionPending, ArgumentsHash: "hash-1", Credential: "bot",
	}}
}

func (o *office) account(data map[string]string) human.Account {
	return human.Account{
		Account: store.Account{Workspace: "w", Channel: Name, Credential: "bot"},
		Open: func(_ context.Context, id string, types ...string) (credential.Opened, error) {
			if id != "bot" || len(types) != 1 || types[0] != "teams_bot" {
				return credential.Opened{}, fault.Newf(fault.CredentialMissing, "no credential %q", id)
			}
			raw, err := json.Marshal(data)
			return credential.Opened{Type: "teams_bot", Data: raw}, err
		},
	}
}

func (o *office) bot(s *service) human.Account {
	return o.account(map[string]string{"app_id": appID, "app_secret": appSecret, "tenant_id": tenantID, "base_url": s.URL})
}

func (o *office) handle(_ context.Context, r human.Reply) (human.Reaction, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	known := r.Interaction == o.record.ID || r.Interaction == "" && slices.ContainsFunc(o.threads, func(one string) bool { return slices.Contains(r.Threads, one) })
	switch {
	case !known:
		return human.Reaction{Err: fault.New(fault.NotFound, "no such question")}, nil
	case r.Look && o.forbid:
		return human.Reaction{Text: "Not you", Err: fault.New(fault.Forbidden, "not you"), Interaction: store.Interaction{ID: o.record.ID}}, nil
	case r.Look:
		return human.Reaction{Interaction: o.record, Request: o.question}, nil
	case o.err != nil:
		return human.Reaction{}, o.err
	}
	o.replies = append(o.replies, r)
	return human.Reaction{Accepted: true, Text: "Thank you"}, nil
}

// send sends a message about the question.
func (o *office) send(t *testing.T, c *Channel, a human.Account, m human.Message) (human.Receipt, error) {
	t.Helper()
	m.Account, m.Interaction, m.Request = a, o.record, o.question
	r, err := c.Send(t.Context(), m)
	o.threads = append(o.threads, r.Threads...)
	return r, err
}

// submit is the activity of a button.
func (s *service) submit(value map[string]any) map[string]any {
	return map[string]any{
		"type": "message", "id": "1700", "channelId": "msteams", "serviceUrl": s.URL + "/", "locale": "en-US",
		"from":         map[string]any{"id": "29:ann", "name": "Ann", "aadObjectId": "aad-ann"},
		"conversation": map[string]any{"id": "a:conv-1", "tenantId": tenantID, "conversationType": "personal"},
		"replyToId":    "200", "value": value, "channelData": map[string]any{"tenant": map[string]any{"id": tenantID}},
	}
}

// write is the activity of a text.
func (s *service) write(text string) map[string]any {
	a := s.submit(nil)
	delete(a, "value")
	a["text"] = text
	return a
}

// bring brings an activity with a token, a genuine one if it is empty.
func (s *service) bring(t *testing.T, c *Channel, a human.Account, handle human.Handle, activity map[string]any, token string) (*httptest.ResponseRecorder, error) {
	t.Helper()
	raw, err := json.Marshal(activity)
	if err != nil {
		t.Fatal(err)
	}
	if token == "" {
		token = sign(t, jose.RS256, s.key, "k1", s.claims())
	}
	r := httptest.NewRequest(http.MethodPost, "/channels/teams/w/bot", strings.NewReader(string(raw)))
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	return w, c.Receive(w, r, a, handle)
}
