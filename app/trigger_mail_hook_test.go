package app

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestMailHook hands mail in as services do that receive it: each starts one execution, with its attachments stored, and nobody else starts
// any.
func TestMailHook(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	const secret = "canary-Hk8Lw2Vt9Rk4Xp7Nd3"
	x.keep(t, "door", "webhook_secret", `{"secret":"`+secret+`"}`)
	x.deploys(t, "post", visitFlow("post", "EMAIL", `{email_provider: webhook, credential_id: door, webhook_path: /in/mime, subject_keywords: [invoice], attachment_types: [txt]}`))
	mail := func(id, subject string) string {
		return strings.Join([]string{"From: Ann <ann@example.com>", "To: box@example.com", "Subject: " + subject, "Message-ID: <" + id + "@example.com>", "Authentication-Results: x; dkim=pass",
			"MIME-Version: 1.0", `Content-Type: multipart/mixed; boundary="b"`, "", "--b", "Content-Type: text/plain; charset=utf-8", "", "Grüße", "--b", "Content-Type: text/plain",
			`Content-Disposition: attachment; filename="../../a.txt"`, "", "seven", "--b--", ""}, "\r\n")
	}
	send := func(kind, body string, change func(*http.Request)) answer {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, strings.TrimSuffix(x.url, "/api/v1")+"/hooks/post/in/mime", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", kind)
		if change != nil {
			change(r)
		}
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer got.Body.Close()
		var text bytes.Buffer
		if _, err := text.ReadFrom(got.Body); err != nil {
			t.Fatal(err)
		}
		return answer{status: got.StatusCode, body: text.Bytes(), header: got.Header}
	}
	basic := func(r *http.Request) { r.SetBasicAuth("mail", secret) }
	form := func(field, text string) (kind, body string) {
		var out bytes.Buffer
		w := multipart.NewWriter(&out)
		for name, value := range map[string]string{"from": "Ann <ann@example.com>", field: text} { // order does not matter: each is a field of its own
			if err := w.WriteField(name, value); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return w.FormDataContentType(), out.String()
	}
	for name, wrong := range map[string]func(*http.Request){ // order does not matter: none starts anything
		"nothing": nil, "password": func(r *http.Request) { r.SetBasicAuth("mail", "wrong") }, "name": func(r *http.Request) { r.SetBasicAuth(secret, "") },
		"parameter": func(r *http.Request) { r.URL.RawQuery = "token=wrong" }, "empty": func(r *http.Request) { r.SetBasicAuth("", "") },
	} {
		if got := send("message/rfc822", mail("0", "Invoice"), wrong); got.status != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	for _, c := range []struct{ kind, body string }{
		{"application/json", `{"From":"ann@example.com","TextBody":"x"}`}, {"application/json", "{"}, {"application/x-www-form-urlencoded", "subject=x"}, {"message/rfc822", ""}, {"multipart/form-data; boundary=b", "--b--"},
	} {
		if got := send(c.kind, c.body, basic); got.status != http.StatusBadRequest {
			t.Errorf("%s %q: %d %s", c.kind, c.body, got.status, got.body)
		}
	}
	same(t, x.executionsOf(t, "post"), 0)

	kind, body := form("email", mail("1", "Invoice 1")) // SendGrid
	says(t, send(kind, body, basic), http.StatusAccepted, "execution_id")
	says(t, send(kind, body, basic), http.StatusAccepted)  // sent again
	kind, body = form("body-mime", mail("2", "Invoice 2")) // Mailgun with attachments
	says(t, send(kind, body, func(r *http.Request) { r.URL.RawQuery = url.Values{"token": {secret}}.Encode() }), http.StatusAccepted)
	says(t, send("application/x-www-form-urlencoded", url.Values{"body-mime": {mail("3", "Invoice 3")}}.Encode(), basic), http.StatusAccepted) // Mailgun
	postmark, err := json.Marshal(map[string]string{"MessageID": "x", "RawEmail": mail("4", "Invoice 4")})
	if err != nil {
		t.Fatal(err)
	}
	says(t, send("application/json; charset=utf-8", string(postmark), basic), http.StatusAccepted)
	says(t, send("message/rfc822", mail("5", "Invoice 5"), func(r *http.Request) { r.Header.Set("X-Webhook-Token", secret) }), http.StatusAccepted)
	if got := send("message/rfc822", mail("6", "Hello"), basic); got.status != http.StatusOK {
		t.Errorf("what does not fit is answered with %d %s", got.status, got.body)
	}
	got := x.payloads(t, "post")
	same(t, len(got), 5)
	hookedByMailgun(t, secret, func(v url.Values) answer { return send("application/x-www-form-urlencoded", v.Encode(), nil) }, mail)
	same(t, x.executionsOf(t, "post"), 7)
	for n, p := range got {
		if p.Get("subject").Str != "Invoice "+string(rune('1'+n)) || p.Get("sender").Str != "ann@example.com" || strings.TrimSpace(p.Get("body_text").Str) != "Grüße" || p.Get("sender_verified").Bool() ||
			p.Get("attachments.0.name").Str != "a.txt" || p.Get("attachments.0.blob").Str == "" || strings.Contains(p.Raw, secret) {
			t.Errorf("delivery %d brings %s", n, p.Raw)
		}
	}
}

// hookedByMailgun hands mail in with the signature of Mailgun in the place of the secret. It is good for one mail and some minutes.
func hookedByMailgun(t *testing.T, secret string, send func(url.Values) answer, mail func(id, subject string) string) {
	t.Helper()
	signed := func(key, token string, at time.Time, id string) url.Values {
		stamp := strconv.FormatInt(at.Unix(), 10)
		mac := hmac.New(sha256.New, []byte(key))
		mac.Write([]byte(stamp + token))
		return url.Values{"recipient": {"box@example.com"}, "timestamp": {stamp}, "token": {token}, "signature": {hex.EncodeToString(mac.Sum(nil))}, "body-mime": {mail(id, "Invoice "+id)}}
	}
	says(t, send(signed(secret, "token-1", time.Now(), "g1")), http.StatusAccepted)
	says(t, send(signed(secret, "token-1", time.Now(), "g1")), http.StatusAccepted) // sent again, with the same token or another
	says(t, send(signed(secret, "token-2", time.Now().Add(-14*time.Minute), "g1")), http.StatusAccepted)
	says(t, send(signed(secret, "token-3", time.Now(), "g2")), http.StatusAccepted)
	changed := signed(secret, "token-9", time.Now(), "g9")
	changed.Set("token", "token-8")
	unsigned := signed(secret, "token-9", time.Now(), "g9")
	unsigned.Del("signature")
	for name, wrong := range map[string]url.Values{ // order does not matter: none starts anything
		"another key": signed("other", "token-9", time.Now(), "g9"), "another token": changed, "no signature": unsigned, "too old": signed(secret, "token-9", time.Now().Add(-16*time.Minute), "g9"),
		"too new": signed(secret, "token-9", time.Now().Add(16*time.Minute), "g9"), "no token": signed(secret, "", time.Now(), "g9"),
	} {
		if got := send(wrong); got.status != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	// A recorded proof is not good for another mail.
	recorded := signed(secret, "token-4", time.Now(), "g1")
	says(t, send(recorded), http.StatusAccepted)
	recorded.Set("body-mime", mail("g9", "Invoice g9"))
	if got := send(recorded); got.status != http.StatusUnauthorized {
		t.Errorf("a recorded proof: %d %s", got.status, got.body)
	}
}
