package server

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"tandem/api"
	"tandem/fault"
	"tandem/identity"
	"tandem/route"
)

// comeIn sends the form of the login page.
func (w *world) comeIn(values url.Values, change ...func(*http.Request)) answer {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.http.URL+"/login", strings.NewReader(values.Encode()))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for _, c := range change {
		c(r)
	}
	res, err := http.DefaultTransport.RoundTrip(r) // redirects are looked at
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	var body strings.Builder
	if _, err := io.Copy(&body, res.Body); err != nil {
		w.t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, body.String()}
}

// TestLoginLink logs a browser in once: the code of a link is good for nothing else, and for no second time.
func TestLoginLink(t *testing.T) {
	t.Parallel()
	w := setup(t)
	make := func(body string) answer {
		return w.admin(http.MethodPost, route.Prefix+"/users/me/tokens", body)
	}
	link := func() string {
		t.Helper()
		made := read[api.NewToken](t, make(`{"name":"link","scopes":["login"]}`).want(t, 201))
		if left := made.Token.ExpiresTime - time.Now().UnixMilli(); left <= 0 || left > time.Hour.Milliseconds() {
			t.Fatalf("it is good for %d ms", left)
		}
		return made.Secret
	}
	t.Run("Once", func(t *testing.T) {
		code := link()
		w.call(code, http.MethodGet, route.Prefix+"/users/me", "").problem(t, 403, fault.Forbidden)
		w.call(code, http.MethodPost, route.Prefix+"/sessions", "").problem(t, 403, fault.Forbidden)
		w.comeIn(url.Values{"token": {code}}).want(t, 403) // it is not a token
		in := w.comeIn(url.Values{"code": {code}, "next": {"/workflows"}}).want(t, 303)
		if in.header.Get("Location") != "/workflows" && in.header.Get("Location") != "/" {
			t.Errorf("it leads to %q", in.header.Get("Location"))
		}
		me := read[api.User](t, w.with(cookieOf(t, in), "GET", "/users/me", "").want(t, 200))
		if me.ID != "admin-user" {
			t.Errorf("the session is of %q", me.ID)
		}
		sessions := read[api.Sessions](t, w.with(cookieOf(t, in), "GET", "/users/me/sessions", "").want(t, 200))
		if len(sessions.Sessions) != 1 || sessions.Sessions[0].Method != "link" {
			t.Errorf("sessions %+v", sessions)
		}
		again := w.comeIn(url.Values{"code": {code}}).want(t, 410)
		if !strings.Contains(again.body, "tandem admin link") || again.header.Get("Set-Cookie") != "" || strings.Contains(again.body, code) {
			t.Errorf("the second time it says %s", again.body)
		}
		chinese := w.comeIn(url.Values{"code": {code}}, func(r *http.Request) { r.Header.Set("Accept-Language", "zh") }).want(t, 410)
		if !strings.Contains(chinese.body, "tandem admin link") || strings.Contains(chinese.body, "not good any more") {
			t.Errorf("in Chinese it says %s", chinese.body)
		}
		second := w.comeIn(url.Values{"code": {code}}, func(r *http.Request) { r.Header.Set("Accept-Language", "de, zh;q=0.8, en;q=0.1") }).want(t, 410)
		if second.header.Get("Content-Language") != "zh" {
			t.Errorf("to a browser that asks for German, else Chinese, it says %s", second.body)
		}
	})
	t.Run("AtOnce", func(t *testing.T) {
		code := link()
		var wait sync.WaitGroup
		statuses := [8]int{}
		for i := range statuses {
			wait.Go(func() { statuses[i] = w.comeIn(url.Values{"code": {code}}).status })
		}
		wait.Wait()
		in := 0
		for _, s := range statuses {
			switch s {
			case 303:
				in++
			case 410:
			default:
				t.Errorf("status %d", s)
			}
		}
		if in != 1 {
			t.Errorf("%d were let in", in)
		}
	})
	t.Run("TooLate", func(t *testing.T) {
		w := setup(t)
		code := read[api.NewToken](t, w.admin(http.MethodPost, route.Prefix+"/users/me/tokens", `{"name":"link","scopes":["login"]}`).want(t, 201)).Secret
		w.pass(time.Hour + time.Second)
		w.comeIn(url.Values{"code": {code}}).want(t, 410)
	})
	t.Run("Refused", func(t *testing.T) {
		make(`{"name":"x","scopes":["login","read"]}`).problem(t, 422, fault.InvalidInput)
		make(`{"name":"x","scopes":["login"],"expires_in":3601}`).problem(t, 422, fault.InvalidInput)
		w.comeIn(url.Values{"code": {w.tokens[identity.Admin]}}).want(t, 410) // a token is not a code
		w.comeIn(url.Values{"code": {link()}}, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }).want(t, 403)
	})
}
