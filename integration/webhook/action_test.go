package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tandem/credential"
	"tandem/fault"
	"tandem/node"
	"tandem/node/nodetest"
	"tandem/outbound"
)

// receiver takes webhooks as Standard Webhooks says: what is not signed with its key, or is too old, it refuses.
type receiver struct {
	t   *testing.T
	url string
	key []byte

	mu      sync.Mutex
	taken   []delivered
	answers []func(w http.ResponseWriter)
}

type delivered struct {
	method, id, event, own, contentType, body string
}

func newReceiver(t *testing.T, key string) *receiver {
	t.Helper()
	r := &receiver{t: t, key: []byte(key)}
	r.url = nodetest.Serve(t, r.serve).URL + "/in"
	return r
}

func (r *receiver) serve(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		r.t.Error(err)
	}
	id, stamp := req.Header.Get("webhook-id"), req.Header.Get("webhook-timestamp")
	mac := hmac.New(sha256.New, r.key)
	_, _ = io.WriteString(mac, id+"."+stamp+"."+string(body))
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	old := time.Since(time.Unix(seconds, 0)).Abs() > 5*time.Minute
	if err != nil || old || id == "" || req.Header.Get("webhook-signature") != "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)) {
		http.Error(w, "not signed", http.StatusUnauthorized)
		return
	}
	r.mu.Lock()
	r.taken = append(r.taken, delivered{req.Method, id, req.Header.Get("webhook-event"), req.Header.Get("X-Own"), req.Header.Get("Content-Type"), string(body)})
	var answer func(http.ResponseWriter)
	if len(r.answers) > 0 {
		answer, r.answers = r.answers[0], r.answers[1:]
	}
	r.mu.Unlock()
	if answer != nil {
		answer(w)
		return
	}
	_, _ = io.WriteString(w, `{"received":true}`)
}

func (r *receiver) next(answer func(w http.ResponseWriter)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers = append(r.answers, answer)
}

// status answers with a status and headers.
func status(code int, header ...string) func(w http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		http.Error(w, "because", code)
	}
}

// delivers runs a node whose credential has the secret.
func (r *receiver) delivers(secret, config, input string, change ...func(*node.Call)) (gjson.Result, error) {
	call := nodetest.NewCall(r.t, strings.ReplaceAll(config, "$URL", r.url), input)
	call.Credential = func(_ context.Context, id string, types ...string) (credential.Opened, error) {
		if id != "hook" || len(types) != 1 || types[0] != credentialType {
			r.t.Errorf("credential %q of %q is opened", id, types)
		}
		data, err := json.Marshal(map[string]string{"secret": secret})
		return credential.Opened{ID: id, Type: credentialType, Data: data}, err
	}
	for _, edit := range change {
		edit(call)
	}
	out, err := send(nodetest.Client(r.t, "127.0.0.1")).Run(context.Background(), call)
	if err != nil {
		return gjson.Result{}, err
	}
	return gjson.ParseBytes(out.(node.Done)["result"]), nil
}

func TestSend_Deliveries(t *testing.T) {
	t.Parallel()
	nodetest.Conform(t, nodetest.Of(send(nil)))
	encoded := "whsec_" + base64.StdEncoding.EncodeToString([]byte("key"))
	for name, c := range map[string]struct {
		secret, config, input string
		want                  delivered
	}{
		"Input":   {"key", `{"credential_id":"hook","url":"$URL","event":"order.created"}`, `{"n":1.50}`, delivered{"POST", "", "order.created", "", "application/json", `{"n":1.50}`}},
		"Payload": {"key", `{"credential_id":"hook","url":"$URL","event":"e","method":"PUT","payload":[1,"你"],"headers":{"X-Own":"o","webhook-id":"mine","webhook-signature":"mine"}}`, `{"n":1}`, delivered{"PUT", "", "e", "o", "application/json", `[1,"你"]`}},
		"Encoded": {encoded, `{"credential_id":"hook","url":"$URL","event":"e","payload":"text"}`, ``, delivered{"POST", "", "e", "", "application/json", `"text"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReceiver(t, "key")
			result, err := r.delivers(c.secret, c.config, c.input)
			if err != nil {
				t.Fatal(err)
			}
			c.want.id = result.Get("delivery_id").Str
			if len(r.taken) != 1 || r.taken[0] != c.want || c.want.id == "" || c.want.id == "mine" {
				t.Errorf("taken %+v, want %+v", r.taken, c.want)
			}
			if result.Get("status_code").Int() != 200 || result.Get("response_body").Str != `{"received":true}` {
				t.Errorf("it gives %s", result.Raw)
			}
		})
	}
}

// TestSend_SameID: every attempt has the same webhook-id, so that a receiver takes the event once; other activations have others.
func TestSend_SameID(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, "key")
	config := `{"credential_id":"hook","url":"$URL","event":"e"}`
	r.next(func(http.ResponseWriter) { panic(http.ErrAbortHandler) }) // it was taken, and the answer is lost; the client calls again by itself
	if _, err := r.delivers("key", config, `{}`); err != nil && !fault.From(err).Retryable {
		t.Fatalf("a lost answer is not worth another try: %v", err)
	}
	r.next(status(500))
	_, err := r.delivers("key", config, `{}`, func(c *node.Call) { c.Attempt = 2 })
	if fault.CodeOf(err) != fault.RemoteError || !fault.From(err).Retryable {
		t.Fatalf("a failure of the receiver: %v", err)
	}
	if _, err := r.delivers("key", config, `{}`, func(c *node.Call) { c.Attempt = 3 }); err != nil {
		t.Fatal(err)
	}
	for _, d := range r.taken {
		if d.id != r.taken[0].id {
			t.Errorf("another attempt has another id: %+v", r.taken)
		}
	}
	if len(r.taken) < 3 {
		t.Errorf("only %d attempts arrived", len(r.taken))
	}
	other, err := r.delivers("key", config, `{}`, func(c *node.Call) { c.ActivationID = "other" })
	if err != nil || other.Get("delivery_id").Str == r.taken[0].id {
		t.Errorf("another activation: %s, %v", other.Raw, err)
	}
}

func TestSend_Refusals(t *testing.T) {
	t.Parallel()
	config := `{"credential_id":"hook","url":"$URL","event":"e"}`
	for name, c := range map[string]struct {
		secret, config string
		answer         func(http.ResponseWriter)
		code           fault.Code
		retryable      bool
		after          time.Duration
	}{
		"WrongKey":   {secret: "other", config: config, code: fault.CredentialInvalid},
		"NoSecret":   {secret: "", config: config, code: fault.CredentialInvalid},
		"NoBase64":   {secret: "whsec_!", config: config, code: fault.CredentialInvalid},
		"NoAddress":  {secret: "key", config: `{"credential_id":"hook","url":"ftp://127.0.0.1/x","event":"e"}`, code: fault.BlockedAddress},
		"BadHeader":  {secret: "key", config: `{"credential_id":"hook","url":"$URL","event":"e","headers":{"X-A":"a\nb"}}`, code: fault.InvalidConfig},
		"BadEvent":   {secret: "key", config: `{"credential_id":"hook","url":"$URL","event":"a\nb"}`, code: fault.InvalidInput},
		"Gone":       {secret: "key", config: config, answer: status(410), code: fault.NotFound},
		"Validation": {secret: "key", config: config, answer: status(422), code: fault.RemoteRejected},
		"Redirect":   {secret: "key", config: config, answer: status(302, "Location", "/elsewhere"), code: fault.RemoteRejected},
		"RateLimit":  {secret: "key", config: config, answer: status(429, "Retry-After", "7"), code: fault.RateLimited, retryable: true, after: 7 * time.Second},
		"Gateway":    {secret: "key", config: config, answer: status(502), code: fault.RemoteError, retryable: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReceiver(t, "key")
			if c.answer != nil {
				r.next(c.answer)
			}
			_, err := r.delivers(c.secret, c.config, `{}`)
			f := fault.From(err)
			if err == nil || f.Code != c.code || f.Retryable != c.retryable {
				t.Fatalf("%v, retryable %v", err, f.Retryable)
			}
			if later, _ := err.(*node.Failure); c.after > 0 && (later == nil || later.RetryAfter != c.after) {
				t.Errorf("it is to be sent again after %+v", later)
			}
			if len(r.taken) > 1 {
				t.Errorf("it was sent %d times", len(r.taken))
			}
		})
	}
}

// TestSend_LongAnswer: an answer is handed on up to 64 KiB, and what is not text does not break the result.
func TestSend_LongAnswer(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, "key")
	r.next(func(w http.ResponseWriter) { _, _ = w.Write([]byte("\xff" + strings.Repeat("x", 100_000))) })
	result, err := r.delivers("key", `{"credential_id":"hook","url":"$URL","event":"e"}`, `{}`)
	if body := result.Get("response_body").Str; err != nil || len(body) > 64<<10+2 || !strings.HasPrefix(body, "\uFFFDxx") {
		t.Errorf("%d bytes, %v", len(result.Get("response_body").Str), err)
	}
}

// TestSend_Timeout: a receiver that does not answer ends the attempt, which may be repeated.
func TestSend_Timeout(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, "key")
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	r.next(func(http.ResponseWriter) { <-over })
	allow, err := outbound.ParseAllow("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	hasty := outbound.New(outbound.Options{Allow: allow, FirstByte: time.Second})
	t.Cleanup(hasty.Close)
	call := nodetest.NewCall(t, `{"credential_id":"hook","url":"`+r.url+`","event":"e"}`, `{}`)
	call.Credential = func(context.Context, string, ...string) (credential.Opened, error) {
		return credential.Opened{ID: "hook", Type: credentialType, Data: json.RawMessage(`{"secret":"key"}`)}, nil
	}
	if _, err := send(hasty).Run(t.Context(), call); fault.CodeOf(err) != fault.Timeout || !fault.From(err).Retryable {
		t.Errorf("no answer: %v", err)
	}
}
