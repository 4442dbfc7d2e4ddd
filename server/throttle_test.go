package server

import (
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"tandem/fault"
	"tandem/human"
	"tandem/identity"
	"tandem/respond"
	"tandem/route"
	"tandem/store"
)

// from says that a request came through the proxy from an address.
func from(address string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("X-Forwarded-For", address) }
}

func behindProxy(o *Options) { o.Proxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} }

// Who guesses is stopped; who shares the address with them and has been here before is not; nor is anybody elsewhere.
func TestThrottle(t *testing.T) {
	t.Parallel()
	w := setup(t, behindProxy)
	const office, elsewhere = "192.0.2.1", "192.0.2.2"
	get := func(address, token string) answer {
		return w.ask(token, "GET", route.Prefix+"/users/me", nil, from(address))
	}
	known, late := w.tokens[identity.Viewer], w.tokens[identity.Editor]
	get(office, known).want(t, 200)

	// One script with one wrong token is refused, and locks out nobody.
	for range route.WrongSecrets {
		get(office, "tdm_old").problem(t, 401, fault.Unauthorized)
	}
	limited := get(office, "tdm_old")
	limited.problem(t, 429, fault.RateLimited)
	if after, err := strconv.Atoi(limited.header.Get("Retry-After")); err != nil || after < 1 || after > 60 {
		t.Errorf("Retry-After: %q", limited.header.Get("Retry-After"))
	}
	get(office, late).want(t, 200)

	// Many wrong tokens are guesses: what was never right here is not looked up any more, right or not.
	w.pass(route.WrongWindow)
	fresh := w.join("a", "fresh", identity.Viewer)
	for n := range route.WrongSecrets {
		get(office, "tdm_guess"+strconv.Itoa(n)).problem(t, 401, fault.Unauthorized)
	}
	get(office, "tdm_guess_more").problem(t, 429, fault.RateLimited)
	get(office, fresh).problem(t, 429, fault.RateLimited)
	get(office, known).want(t, 200)
	get(office, late).want(t, 200)
	get(elsewhere, "tdm_guess").problem(t, 401, fault.Unauthorized)
	get(office, "").problem(t, 401, fault.Unauthorized) // no token is not a guess
	w.ask(known, "GET", route.Prefix+"/nowhere", nil, from(office)).problem(t, 404, fault.NotFound)
	w.ask("tdm_guess_x", "GET", route.Prefix+"/nowhere", nil, from(office)).problem(t, 429, fault.RateLimited)
	w.ask("tdm_guess_y", "GET", "/metrics", nil, from(office)).problem(t, 429, fault.RateLimited)
	w.ask("tdm_guess_z", "POST", "/mcp", strings.NewReader("{}"), from(office)).problem(t, 429, fault.RateLimited)

	// It ends.
	w.pass(route.WrongWindow)
	get(office, fresh).want(t, 200)
	get(office, "tdm_guess_more").problem(t, 401, fault.Unauthorized)

	// A token that was right and is taken away is a wrong one.
	if err := w.stores.Users.Update(t.Context(), identity.System("a"), identity.User{Workspace: "a", ID: "fresh", Name: "fresh", Roles: []identity.Role{identity.Viewer}, Disabled: true}); err != nil {
		t.Fatal(err)
	}
	for range route.WrongSecrets - 1 {
		get(office, fresh).want(t, 401)
	}
	get(office, fresh).want(t, 429)
}

// The header of somebody who is not a proxy changes nothing.
func TestThrottle_Forged(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for n := range route.WrongSecrets {
		w.ask("tdm_"+strconv.Itoa(n), "GET", route.Prefix+"/users/me", nil, from(fmt.Sprintf("192.0.2.%d", n))).want(t, 401)
	}
	w.ask("tdm_more", "GET", route.Prefix+"/users/me", nil, from("198.51.100.1")).want(t, 429)
}

// Links of questions, addresses of call backs and signatures of channels are guessed no faster than tokens.
func TestThrottle_OtherDoors(t *testing.T) {
	t.Parallel()
	w := setup(t, behindProxy)
	if err := w.stores.Credentials.Create(t.Context(), identity.System("a"), store.Credential{ID: "cred", Name: "bot", Type: "slack_bot", Sealed: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	request := approval("knock:U1")
	request.Channel, request.Credential = "knock", "cred"
	asked := w.asks("viewer-user", human.PurposeNode, request)
	link := w.link(w.asks("operator-user", human.PurposeNode, approval("viewer-user")), "user:viewer-user")
	back, err := CallbackURL("", w.ring, Callback{Workspace: "a", Execution: "exec_gone", Activation: "n", Expires: time.Now().Add(time.Hour).UnixMilli()})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(address, method, path, word, body string) answer {
		return w.ask("", method, path, strings.NewReader(body), func(r *http.Request) {
			from(address)(r)
			r.Header.Set("X-Word", word)
		})
	}
	for n := range route.WrongSecrets {
		ask("192.0.2.1", "GET", respond.Path+"guess"+strconv.Itoa(n), "", "").want(t, 404)
		ask("192.0.2.2", "POST", callbackPath+"guess"+strconv.Itoa(n), "", "{}").want(t, 404)
		ask("192.0.2.3", "POST", "/channels/knock/a/cred", "guess"+strconv.Itoa(n), asked.ID).want(t, 401)
		ask("192.0.2.4", "POST", "/channels/knock/a/guess"+strconv.Itoa(n), "sesame", asked.ID).want(t, 404)
	}
	for _, c := range []struct{ address, method, path, word string }{
		{"192.0.2.1", "GET", respond.Path + "guess", ""}, {"192.0.2.1", "GET", link, ""},
		{"192.0.2.2", "POST", callbackPath + "guess", ""}, {"192.0.2.2", "POST", back, ""},
		{"192.0.2.3", "POST", "/channels/knock/a/cred", "guess"}, {"192.0.2.4", "POST", "/channels/knock/a/guess", "sesame"},
	} {
		if got := ask(c.address, c.method, c.path, c.word, "{}").want(t, 429); got.header.Get("Retry-After") == "" {
			t.Errorf("%s %s: no Retry-After", c.method, c.path)
		}
	}
	// A genuine call is always taken: services call for many from few addresses.
	ask("192.0.2.3", "POST", "/channels/knock/a/cred", "sesame", asked.ID).want(t, 200)
	ask("192.0.2.9", "GET", link, "", "").want(t, 200)
	ask("192.0.2.1", "GET", link, "", "").want(t, 200) // it is known now
}
