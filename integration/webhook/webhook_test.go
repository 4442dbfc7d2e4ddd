package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"tandem/credential"
	"tandem/fault"
	"tandem/human"
	"tandem/human/form/formtest"
	"tandem/outbound"
	"tandem/store"

	"github.com/tidwall/gjson"
)

const hookSecret = "a secret of thirty-two characters"

// hookAccount is an account with the secret.
func hookAccount() human.Account {
	return human.Account{Account: store.Account{Workspace: "w", Channel: Name, Credential: "hook"}, Open: openHook}
}

func openHook(_ context.Context, id string, types ...string) (credential.Opened, error) {
	if id != "hook" || len(types) != 1 || types[0] != "webhook_secret" {
		return credential.Opened{}, fault.Newf(fault.NotFound, "there is no credential %q of %q", id, types)
	}
	return credential.Opened{Type: "webhook_secret", Data: json.RawMessage(`{"secret":"` + hookSecret + `"}`)}, nil
}

// guard is a client that may call this machine.
func guard(t testing.TB) *outbound.Client {
	t.Helper()
	allow, err := outbound.ParseAllow("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	c := outbound.New(outbound.Options{Allow: allow})
	t.Cleanup(c.Close)
	return c
}

func hookMessage(t testing.TB, url string) human.Message {
	t.Helper()
	settings, err := json.Marshal(map[string]string{"webhook_url": url})
	if err != nil {
		t.Fatal(err)
	}
	i := store.Interaction{
		Workspace: "w", ID: "i1", WorkflowID: "flow", Execution: "e1", Node: "ask", Type: human.Approval, Purpose: human.PurposeNode, Status: store.InteractionPending, Approvers: []string{"user:ann"},
		Request: json.RawMessage(`{"title":"May it?"}`), Created: 5, ArgumentsHash: "abc",
	}
	return human.Message{
		Account: hookAccount(), ID: "m1", Kind: human.KindWarning, Interaction: i, Request: human.Request{Settings: settings}, Link: "https://t/respond/x",
		Callback: "https://t/channels/webhook/w/hook", Data: map[string]any{"minutes_remaining": 15},
	}
}

func TestWebhook_Send(t *testing.T) {
	t.Parallel()
	var got *http.Request
	var body []byte
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.Header().Set("Location", "/elsewhere")
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(status)
	}))
	defer server.Close()
	channel := New(guard(t))
	if channel.Name() != Name {
		t.Errorf("it is called %q", channel.Name())
	}
	if _, err := channel.Send(t.Context(), hookMessage(t, server.URL+"/hook")); err != nil {
		t.Fatal(err)
	}
	stamp := got.Header.Get("X-Tandem-Timestamp")
	if sent, err := strconv.ParseInt(stamp, 10, 64); err != nil || time.Since(time.Unix(sent, 0)).Abs() > time.Minute {
		t.Errorf("the timestamp is %q", stamp)
	}
	if want := "v1=" + hex.EncodeToString(signature(hookSecret, stamp, body)); got.Header.Get("X-Tandem-Signature") != want || got.Header.Get("Idempotency-Key") != "m1" || got.Method != http.MethodPost {
		t.Errorf("%s with headers %v, want the signature %s", got.Method, got.Header, want)
	}
	var call struct {
		Event       string
		Interaction map[string]any
		Request     map[string]any
		Link        string
		CallbackURL string `json:"callback_url"`
		Data        map[string]any
	}
	if err := json.Unmarshal(body, &call); err != nil {
		t.Fatal(err)
	}
	if call.Event != human.KindWarning || call.Interaction["id"] != "i1" || call.Interaction["arguments_hash"] != "abc" || call.Request["title"] != "May it?" || call.Link == "" ||
		call.CallbackURL == "" || call.Data["minutes_remaining"] != 15.0 || bytes.Contains(body, []byte(hookSecret)) {
		t.Errorf("it was told %s", body)
	}
	for code, retryable := range map[int]bool{302: false, 400: false, 404: false, 410: false, 429: true, 500: true, 503: true} {
		status = code
		_, err := channel.Send(t.Context(), hookMessage(t, server.URL+"/hook"))
		e := fault.From(err)
		if err == nil || e.Retryable != retryable || got.URL.Path != "/hook" {
			t.Errorf("status %d at %s is %v, retryable %v", code, got.URL.Path, err, e.Retryable)
		}
		if code == 429 && e.Details["retry_after_ms"] != int64(7000) {
			t.Errorf("after status 429 it waits %v", e.Details["retry_after_ms"])
		}
	}
	server.Close()
	if _, err := channel.Send(t.Context(), hookMessage(t, server.URL)); !fault.From(err).Retryable {
		t.Errorf("a server that is away is %v", err)
	}
}

func TestWebhook_Send_Refuses(t *testing.T) {
	t.Parallel()
	channel := New(outbound.New(outbound.Options{}))
	for url, code := range map[string]fault.Code{
		"": fault.InvalidConfig, "http://127.0.0.1:1/x": fault.BlockedAddress, "ftp://example.com": fault.BlockedAddress, "://": fault.InvalidConfig,
	} {
		if _, err := channel.Send(t.Context(), hookMessage(t, url)); fault.CodeOf(err) != code || fault.From(err).Retryable {
			t.Errorf("%q is %v, want %s", url, err, code)
		}
	}
	unsigned := hookMessage(t, "https://example.com")
	unsigned.Credential = ""
	if _, err := channel.Send(t.Context(), unsigned); err == nil || fault.From(err).Retryable {
		t.Errorf("without a credential it is %v", err)
	}
}

// signature is the documented one, made by hand.
func signature(secret, stamp string, body []byte) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%s.%s", stamp, body)
	return mac.Sum(nil)
}

// callback makes a signed call.
func callback(body string, at time.Time, secret string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/channels/webhook/w/hook", strings.NewReader(body))
	stamp := strconv.FormatInt(at.Unix(), 10)
	r.Header.Set(outbound.HeaderTimestamp, stamp)
	r.Header.Set(outbound.HeaderSignature, "v1="+hex.EncodeToString(signature(secret, stamp, []byte(body))))
	return r
}

func TestWebhook_Receive(t *testing.T) {
	t.Parallel()
	channel := New(nil)
	body := `{"interaction_id":"i1","response_data":{"action":"approve","notes":"fine"},"responder":"Ann@Example.com","id":"7","arguments_hash":"abc"}`
	var got human.Reply
	handle := func(_ context.Context, r human.Reply) (human.Reaction, error) {
		got = r
		return human.Reaction{Accepted: true, Ended: true, Text: "Thank you.", Interaction: store.Interaction{Status: store.InteractionCompleted}}, nil
	}
	w := httptest.NewRecorder()
	if err := channel.Receive(w, callback(body, time.Now(), hookSecret), hookAccount(), handle); err != nil {
		t.Fatal(err)
	}
	if got.Interaction != "i1" || got.Mail != "ann@example.com" || got.User != "" || !got.Verified || got.Dedup != hookAccount().Credential+":7" || got.ArgumentsHash != "abc" || got.Account != hookAccount().Account ||
		got.Answer == nil || got.Answer.Action != "approve" || got.Answer.Notes != "fine" || len(got.Answer.Given) == 0 {
		t.Errorf("the reply is %+v", got)
	}
	var reaction reactionBody
	if err := json.Unmarshal(w.Body.Bytes(), &reaction); err != nil || !reaction.Accepted || !reaction.Ended || reaction.InteractionID != "i1" || reaction.Message != "Thank you." {
		t.Errorf("the caller is told %s, %v", w.Body, err)
	}

	prose := callback(`{"interaction_id":"i1","text":"go ahead","responder":"bob"}`, time.Now(), hookSecret)
	if err := channel.Receive(httptest.NewRecorder(), prose, hookAccount(), handle); err != nil || got.Answer != nil || got.Text != "go ahead" || got.User != "bob" || got.Mail != "" || got.Dedup == "" {
		t.Errorf("prose is %+v, %v", got, err)
	}
	named := callback(`{"interaction_id":"i1","text":"go ahead","responder":"admin"}`, time.Now(), hookSecret) // a user whose name is also that of a role
	if err := channel.Receive(httptest.NewRecorder(), named, hookAccount(), handle); err != nil || got.User != "admin" {
		t.Errorf("the user admin is %+v, %v", got, err)
	}
	other := callback(`{"interaction_id":"i1","response_data":{"raise_by":3},"responder":"user:bob"}`, time.Now(), hookSecret)
	if err := channel.Receive(httptest.NewRecorder(), other, hookAccount(), handle); err != nil || string(got.Answer.Given) != `{"raise_by":3}` {
		t.Errorf("an answer of another form is %+v, %v", got, err)
	}
	late := func(context.Context, human.Reply) (human.Reaction, error) {
		return human.Reaction{Err: fault.New(fault.Conflict, "too late")}, nil
	}
	if err := channel.Receive(httptest.NewRecorder(), callback(body, time.Now(), hookSecret), hookAccount(), late); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("a reply that does not count is %v", err)
	}
	broken := func(context.Context, human.Reply) (human.Reaction, error) {
		return human.Reaction{}, errors.New("the disk is away")
	}
	if err := channel.Receive(httptest.NewRecorder(), callback(body, time.Now(), hookSecret), hookAccount(), broken); err == nil {
		t.Error("a reply that was not recorded is taken")
	}
}

func TestWebhook_Receive_Refuses(t *testing.T) {
	t.Parallel()
	channel := New(nil)
	body := `{"interaction_id":"i1","response_data":{"action":"approve"},"responder":"ann","id":"7"}`
	never := func(context.Context, human.Reply) (human.Reaction, error) {
		t.Error("it was believed")
		return human.Reaction{}, nil
	}
	with := func(change func(r *http.Request)) *http.Request {
		r := callback(body, time.Now(), hookSecret)
		change(r)
		return r
	}
	for name, one := range map[string]struct {
		request *http.Request
		code    fault.Code
	}{
		"OtherSecret":   {callback(body, time.Now(), "another secret"), fault.Unauthorized},
		"EmptySecret":   {callback(body, time.Now(), ""), fault.Unauthorized},
		"Old":           {callback(body, time.Now().Add(-6*time.Minute), hookSecret), fault.Unauthorized},
		"FromTheFuture": {callback(body, time.Now().Add(6*time.Minute), hookSecret), fault.Unauthorized},
		"NoSignature":   {with(func(r *http.Request) { r.Header.Del(outbound.HeaderSignature) }), fault.Unauthorized},
		"NoHex":         {with(func(r *http.Request) { r.Header.Set(outbound.HeaderSignature, "v1=xyz") }), fault.Unauthorized},
		"HalfASignature": {with(func(r *http.Request) {
			r.Header.Set(outbound.HeaderSignature, r.Header.Get(outbound.HeaderSignature)[:20])
		}), fault.Unauthorized},
		"NoTimestamp": {with(func(r *http.Request) { r.Header.Del(outbound.HeaderTimestamp) }), fault.Unauthorized},
		"OtherTimestamp": {with(func(r *http.Request) {
			r.Header.Set(outbound.HeaderTimestamp, strconv.FormatInt(time.Now().Unix()-60, 10))
		}), fault.Unauthorized},
		"OtherBody": {with(func(r *http.Request) {
			r.Body = io.NopCloser(strings.NewReader(strings.Replace(body, "ann", "bob", 1)))
		}), fault.Unauthorized},
		"Get":          {with(func(r *http.Request) { r.Method = http.MethodGet }), fault.Invalid},
		"NoQuestion":   {callback(`{"response_data":{},"responder":"ann"}`, time.Now(), hookSecret), fault.Invalid},
		"NoResponder":  {callback(`{"interaction_id":"i1","text":"x"}`, time.Now(), hookSecret), fault.Invalid},
		"ARole":        {callback(`{"interaction_id":"i1","text":"x","responder":"role:admin"}`, time.Now(), hookSecret), fault.Invalid},
		"Anyone":       {callback(`{"interaction_id":"i1","text":"x","responder":"anyone"}`, time.Now(), hookSecret), fault.Invalid},
		"OtherAddress": {callback(`{"interaction_id":"i1","text":"x","responder":"slack:U1"}`, time.Now(), hookSecret), fault.Invalid},
		"NoAnswer":     {callback(`{"interaction_id":"i1","responder":"ann","text":" "}`, time.Now(), hookSecret), fault.Invalid},
		"NoJSON":       {callback(`yes`, time.Now(), hookSecret), fault.Invalid},
	} {
		t.Run(name, func(t *testing.T) { // not in parallel: the signatures are of now
			w := httptest.NewRecorder()
			if err := channel.Receive(w, one.request, hookAccount(), never); fault.CodeOf(err) != one.code || w.Body.Len() > 0 {
				t.Errorf("got %v and %q, want %s", err, w.Body, one.code)
			}
		})
	}
	unknown := hookAccount()
	unknown.Credential = "gone"
	if err := channel.Receive(httptest.NewRecorder(), callback(body, time.Now(), hookSecret), unknown, never); fault.CodeOf(err) != fault.Unauthorized {
		t.Errorf("an unknown account is %v: it tells that there is none", err)
	}
	large := callback(strings.Repeat("x", maxBody+1), time.Now(), hookSecret)
	if err := channel.Receive(httptest.NewRecorder(), large, hookAccount(), never); fault.CodeOf(err) != fault.TooLarge {
		t.Errorf("a large body is %v", err)
	}
}

func TestWebhook_Timestamp(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	for off, good := range map[time.Duration]bool{0: true, 300 * time.Second: true, -300 * time.Second: true, 301 * time.Second: false, -301 * time.Second: false, 1 << 62: false} {
		if _, err := genuine(callback("{}", now.Add(off), hookSecret), hookAccount(), []byte("{}"), now); (err == nil) != good {
			t.Errorf("%v off: %v", off, err)
		}
	}
}

// Questions go to the address that their settings name, which only a program reads.
func TestTraits(t *testing.T) {
	t.Parallel()
	traits := New(nil).Traits()
	if !traits.TakesURL || !traits.NeedsURL || !traits.SpeaksForOthers || len(traits.Credentials) != 1 || traits.Credentials[0] != "webhook_secret" {
		t.Errorf("the channel is %+v", traits)
	}
	for settings, want := range map[string]human.Place{
		`{"webhook_url":"https://a.example"}`: {Named: true, Private: true}, `{}`: {Private: true}, `[]`: {Private: true}, ``: {Private: true},
	} {
		if got := traits.Place(json.RawMessage(settings)); got != want {
			t.Errorf("%s is %+v, want %+v", settings, got, want)
		}
	}
}

// What a program gets is JSON that people can read in its log, too.
func TestWebhook_Readable(t *testing.T) {
	t.Parallel()
	bodies := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		bodies <- string(body)
	}))
	t.Cleanup(server.Close)
	m := hookMessage(t, server.URL+"/hook")
	m.Interaction.Request = json.RawMessage(`{"title":"May it?","content":` + string(formtest.Value()) + `}`)
	if _, err := New(guard(t)).Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	formtest.Readable(t, <-bodies)
	m.For = "user:ann"
	if _, err := New(guard(t)).Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if body := <-bodies; gjson.Get(body, "for").Str != "user:ann" {
		t.Errorf("it does not say whom it is for: %s", body)
	}
}
