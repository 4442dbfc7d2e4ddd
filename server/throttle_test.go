package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tandem/fault"
	"tandem/human"
	"tandem/identity"
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
	get := func(address, token string) answer { return w.ask(token, "GET", prefix+"/users/me", nil, from(address)) }
	known, late := w.tokens[identity.Viewer], w.tokens[identity.Editor]
	get(office, known).want(t, 200)

	// One script with one wrong token is refused, and locks out nobody.
	for range wrongSecrets {
		get(office, "tdm_old").problem(t, 401, fault.Unauthorized)
	}
	limited := get(office, "tdm_old")
	limited.problem(t, 429, fault.RateLimited)
	if after, err := strconv.Atoi(limited.header.Get("Retry-After")); err != nil || after < 1 || after > 60 {
		t.Errorf("Retry-After: %q", limited.header.Get("Retry-After"))
	}
	get(office, late).want(t, 200)

	// Many wrong tokens are guesses: what was never right here is not looked up any more, right or not.
	w.pass(wrongWindow)
	fresh := w.join("a", "fresh", identity.Viewer)
	for n := range wrongSecrets {
		get(office, "tdm_guess"+strconv.Itoa(n)).problem(t, 401, fault.Unauthorized)
	}
	get(office, "tdm_guess_more").problem(t, 429, fault.RateLimited)
	get(office, fresh).problem(t, 429, fault.RateLimited)
	get(office, known).want(t, 200)
	get(office, late).want(t, 200)
	get(elsewhere, "tdm_guess").problem(t, 401, fault.Unauthorized)
	get(office, "").problem(t, 401, fault.Unauthorized) // no token is no guess
	w.ask(known, "GET", prefix+"/nowhere", nil, from(office)).problem(t, 404, fault.NotFound)
	w.ask("tdm_guess_x", "GET", prefix+"/nowhere", nil, from(office)).problem(t, 429, fault.RateLimited)
	w.ask("tdm_guess_y", "GET", "/metrics", nil, from(office)).problem(t, 429, fault.RateLimited)
	w.ask("tdm_guess_z", "POST", "/mcp", strings.NewReader("{}"), from(office)).problem(t, 429, fault.RateLimited)

	// It ends.
	w.pass(wrongWindow)
	get(office, fresh).want(t, 200)
	get(office, "tdm_guess_more").problem(t, 401, fault.Unauthorized)

	// A token that was right and is taken away is a wrong one.
	if err := w.stores.Users.Update(t.Context(), identity.System("a"), identity.User{Workspace: "a", ID: "fresh", Name: "fresh", Roles: []identity.Role{identity.Viewer}, Disabled: true}); err != nil {
		t.Fatal(err)
	}
	for range wrongSecrets - 1 {
		get(office, fresh).want(t, 401)
	}
	get(office, fresh).want(t, 429)
}

// The header of somebody who is no proxy changes nothing.
func TestThrottle_Forged(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for n := range wrongSecrets {
		w.ask("tdm_"+strconv.Itoa(n), "GET", prefix+"/users/me", nil, from(fmt.Sprintf("192.0.2.%d", n))).want(t, 401)
	}
	w.ask("tdm_more", "GET", prefix+"/users/me", nil, from("198.51.100.1")).want(t, 429)
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
	for n := range wrongSecrets {
		ask("192.0.2.1", "GET", respondPath+"guess"+strconv.Itoa(n), "", "").want(t, 404)
		ask("192.0.2.2", "POST", callbackPath+"guess"+strconv.Itoa(n), "", "{}").want(t, 404)
		ask("192.0.2.3", "POST", "/channels/knock/a/cred", "guess"+strconv.Itoa(n), asked.ID).want(t, 401)
		ask("192.0.2.4", "POST", "/channels/knock/a/guess"+strconv.Itoa(n), "sesame", asked.ID).want(t, 404)
	}
	for _, c := range []struct{ address, method, path, word string }{
		{"192.0.2.1", "GET", respondPath + "guess", ""}, {"192.0.2.1", "GET", link, ""},
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

// Guesses that come at the same moment are not more than others, and what is remembered is bounded.
func TestThrottle_Bounds(t *testing.T) {
	t.Parallel()
	now := time.Now()
	th := newThrottle(func() time.Time { return now })
	ctx := t.Context()
	look := func(address string, secret string, right bool) error {
		leave, err := th.enter(ctx, address, identity.HashSecret(secret))
		if err == nil {
			leave(right, true)
		}
		return err
	}
	var all sync.WaitGroup
	var let, refused atomic.Int32
	for n := range 10 * wrongSecrets {
		all.Go(func() {
			if look("a", strconv.Itoa(n), false) == nil {
				let.Add(1)
			}
		})
		// A whole office that comes at once, each for the first time, is no guesser.
		all.Go(func() {
			if look("b", "right"+strconv.Itoa(n), true) != nil {
				refused.Add(1)
			}
		})
	}
	all.Wait()
	if n := let.Load(); n < wrongSecrets || n >= wrongSecrets+lookedUpAtOnce {
		t.Errorf("%d guesses at once were looked up", n)
	}
	if n := refused.Load(); n != 0 {
		t.Errorf("%d of those with right tokens were refused", n)
	}
	// Who leaves while waiting for a turn waits no longer.
	var leaves []func(bool, bool)
	for n := range lookedUpAtOnce {
		leave, err := th.enter(ctx, "w", identity.HashSecret("w"+strconv.Itoa(n)))
		if err != nil {
			t.Fatal(err)
		}
		leaves = append(leaves, leave)
	}
	gone, stop := context.WithCancel(ctx)
	stop()
	if _, err := th.enter(gone, "w", identity.HashSecret("late")); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting ends with %v", err)
	}
	for _, leave := range leaves {
		leave(false, true)
	}
	for n := range 2 * wrongAddresses {
		leave, err := th.enter(ctx, "x"+strconv.Itoa(n), identity.HashSecret(strconv.Itoa(n)))
		if err != nil {
			t.Fatal(err)
		}
		leave(n%2 == 0, true)
	}
	if len(th.addresses.known) != wrongAddresses || len(th.good.known) > goodSecrets {
		t.Errorf("%d addresses and %d secrets are remembered", len(th.addresses.known), len(th.good.known))
	}
	// A store that cannot be asked says nothing about a secret.
	for range 3 * wrongSecrets {
		leave, err := th.enter(ctx, "c", identity.HashSecret("unknown"))
		if err != nil {
			t.Fatal(err)
		}
		leave(false, false)
	}
	a := th.attempts("d")
	for n := range 100 * wrongSecrets {
		a.fail(identity.HashSecret(strconv.Itoa(n)), now)
	}
	if len(a.wrong) > 2*wrongSecrets {
		t.Errorf("%d failures of one address are remembered", len(a.wrong))
	}
}

func TestParseProxies(t *testing.T) {
	t.Parallel()
	got, err := ParseProxies(" 127.0.0.1, 10.1.2.3/8 ,::1,,::ffff:192.0.2.1")
	if fmt.Sprint(got) != "[127.0.0.1/32 10.0.0.0/8 ::1/128 192.0.2.1/32]" || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"proxy.example", "10.0.0.0/40", "127.0.0.1:80"} {
		if _, err := ParseProxies(text); err == nil || !strings.Contains(err.Error(), "10.0.0.0/8") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
