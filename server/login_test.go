package server

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"tandem/api"
	"tandem/fault"
	"tandem/human"
	"tandem/identity"
	"tandem/login"
	"tandem/route"
	"tandem/store"
)

// cookieOf is the cookie that an answer sets.
func cookieOf(t *testing.T, a answer) *http.Cookie {
	t.Helper()
	c, err := http.ParseSetCookie(a.header.Get("Set-Cookie"))
	if err != nil {
		t.Fatalf("%v in %v", err, a.header)
	}
	return c
}

// with asks with a cookie, as a page of this server does.
func (w *world) with(c *http.Cookie, method, path, body string, change ...func(*http.Request)) answer {
	w.t.Helper()
	return w.ask("", method, route.Prefix+path, strings.NewReader(body), func(r *http.Request) {
		r.AddCookie(c)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		for _, f := range change {
			f(r)
		}
	})
}

func TestSession(t *testing.T) {
	t.Parallel()
	w := setup(t)
	editor := w.tokens[identity.Editor]
	logIn := func() *http.Cookie {
		return cookieOf(t, w.call(editor, "POST", route.Prefix+"/sessions", "").want(t, 201))
	}
	t.Run("Cookie", func(t *testing.T) {
		c := logIn()
		if !c.HttpOnly || c.Secure || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" || c.MaxAge <= 0 || c.Name != "tandem_session" {
			t.Errorf("the cookie is %+v", c)
		}
		me := read[api.User](t, w.with(c, "GET", "/users/me", "").want(t, 200))
		if me.ID != "editor-user" {
			t.Errorf("the session is of %q", me.ID)
		}
		w.with(c, "PUT", "/node-templates/t", `{"kind":"CALL.EMPTY","name":"t"}`).want(t, 200)
		w.with(c, "POST", "/users", `{"id":"u","name":"u","roles":["viewer"]}`).problem(t, 403, fault.Forbidden)
		// A token that is sent counts, whatever the cookie.
		w.ask("tdm_wrong", "GET", route.Prefix+"/users/me", nil, func(r *http.Request) { r.AddCookie(c) }).problem(t, 401, fault.Unauthorized)
	})
	t.Run("OtherSites", func(t *testing.T) {
		c := logIn()
		for name, change := range map[string]func(*http.Request){
			"Site":   func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
			"Same":   func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
			"Origin": func(r *http.Request) { r.Header.Del("Sec-Fetch-Site"); r.Header.Set("Origin", "https://evil.example") },
			"Null":   func(r *http.Request) { r.Header.Del("Sec-Fetch-Site"); r.Header.Set("Origin", "null") },
		} {
			for _, op := range operations(w.server) {
				if op.Method == http.MethodGet {
					continue
				}
				path := strings.NewReplacer("{id}", "x", "{token}", "x", "{session}", "x", "{response_id}", "x", "{sort}", "x", "{record}", "x").Replace(op.Path)
				got := w.ask("", op.Method, path, strings.NewReader(`{}`), func(r *http.Request) {
					r.AddCookie(c)
					change(r)
				})
				if got.status != http.StatusForbidden || !strings.Contains(got.body, "another site") {
					t.Errorf("%s: %s %s: %d %s", name, op.Method, path, got.status, got.body)
				}
			}
			// Nor can it open a WebSocket, which is a GET.
			got := w.with(c, "GET", "/executions/x/stream", "", func(r *http.Request) {
				r.Header.Set("Upgrade", "websocket")
				r.Header.Set("Connection", "Upgrade")
				change(r)
			})
			if got.status != http.StatusForbidden {
				t.Errorf("%s: a WebSocket: %d %s", name, got.status, got.body)
			}
		}
	})
	t.Run("Rotation", func(t *testing.T) {
		first := logIn()
		second := cookieOf(t, w.ask(editor, "POST", route.Prefix+"/sessions", nil, func(r *http.Request) { r.AddCookie(first) }).want(t, 201))
		if second.Value == first.Value {
			t.Error("the secret stays the same")
		}
		w.with(first, "GET", "/users/me", "").problem(t, 401, fault.Unauthorized)
		w.with(second, "GET", "/users/me", "").want(t, 200)
	})
	t.Run("End", func(t *testing.T) {
		a, b, c := logIn(), logIn(), logIn()
		list := read[api.Sessions](t, w.with(a, "GET", "/users/me/sessions", "").want(t, 200)).Sessions
		if n := len(list); n < 3 || list[0].Method != "token" || list[0].TokenID != "tok_aeditor-user" || list[0].Address != "127.0.0.1" {
			t.Fatalf("sessions: %+v", list)
		}
		current := slices.IndexFunc(list, func(s api.Session) bool { return s.Current })
		other := slices.IndexFunc(list, func(s api.Session) bool { return !s.Current })
		if current < 0 || other < 0 {
			t.Fatalf("which one asks is not told: %+v", list)
		}
		w.call(w.tokens[identity.Viewer], "GET", route.Prefix+"/users/editor-user/sessions", "").problem(t, 403, fault.Forbidden)
		w.call(w.other, "GET", route.Prefix+"/users/editor-user/sessions", "").problem(t, 404, fault.NotFound)
		w.with(a, "DELETE", "/users/me/sessions/"+list[other].ID, "").want(t, 204)
		w.with(a, "DELETE", "/users/me/sessions/"+list[other].ID, "").problem(t, 404, fault.NotFound)
		w.with(a, "DELETE", "/users/me/sessions", "").want(t, 204)
		w.with(b, "GET", "/users/me", "").problem(t, 401, fault.Unauthorized)
		w.with(c, "GET", "/users/me", "").problem(t, 401, fault.Unauthorized)
		out := w.with(a, "DELETE", "/sessions/current", "").want(t, 204)
		if gone := cookieOf(t, out); gone.MaxAge >= 0 {
			t.Errorf("the cookie stays: %+v", gone)
		}
		w.with(a, "GET", "/users/me", "").problem(t, 401, fault.Unauthorized)
		w.call(editor, "DELETE", route.Prefix+"/sessions/current", "").problem(t, 409, fault.Conflict)
	})
	t.Run("Expiry", func(t *testing.T) {
		w := setup(t)
		editor := w.tokens[identity.Editor]
		idle := cookieOf(t, w.call(editor, "POST", route.Prefix+"/sessions", "").want(t, 201))
		w.pass(route.SessionIdle + time.Minute)
		w.with(idle, "GET", "/users/me", "").problem(t, 401, fault.Unauthorized)
		used := cookieOf(t, w.call(editor, "POST", route.Prefix+"/sessions", "").want(t, 201))
		for past := time.Duration(0); past < route.SessionLife-route.SessionIdle; past += route.SessionIdle - time.Hour {
			w.with(used, "GET", "/users/me", "").want(t, 200)
			w.pass(route.SessionIdle - time.Hour)
		}
		w.with(used, "GET", "/users/me", "")
		w.pass(route.SessionIdle - time.Hour)
		w.with(used, "GET", "/users/me", "")
		w.pass(route.SessionIdle - time.Hour)
		w.with(used, "GET", "/users/me", "").problem(t, 401, fault.Unauthorized) // however much it was used
	})
}

// Behind a proxy that is believed, the cookie of an encrypted connection is for encrypted connections alone.
func TestSession_Encrypted(t *testing.T) {
	t.Parallel()
	w := setup(t, func(o *Options) { o.Proxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} })
	c := cookieOf(t, w.ask(w.tokens[identity.Editor], "POST", route.Prefix+"/sessions", nil, func(r *http.Request) { r.Header.Set("X-Forwarded-Proto", "https") }).want(t, 201))
	if !c.Secure || c.Name != "__Host-tandem_session" || c.Path != "/" || c.Domain != "" {
		t.Errorf("the cookie is %+v", c)
	}
	w.with(c, "GET", "/users/me", "", func(r *http.Request) { r.Header.Set("X-Forwarded-Proto", "https") }).want(t, 200)
	// Who else says so is not believed.
	plain := setup(t)
	c = cookieOf(t, plain.ask(plain.tokens[identity.Editor], "POST", route.Prefix+"/sessions", nil, func(r *http.Request) { r.Header.Set("X-Forwarded-Proto", "https") }).want(t, 201))
	if c.Secure {
		t.Errorf("a header of anybody's is believed: %+v", c)
	}
}

// Who is disabled is out at once: tokens, sessions and links.
func TestDisabledUserIsOut(t *testing.T) {
	t.Parallel()
	w := setup(t)
	approver := w.tokens[identity.Approver]
	c := cookieOf(t, w.call(approver, "POST", route.Prefix+"/sessions", "").want(t, 201))
	asked := w.asks("viewer-user", human.PurposeNode, approval("approver-user"))
	link := w.link(asked, "user:approver-user")
	w.admin("PUT", route.Prefix+"/users/approver-user", `{"name":"a","roles":["approver"],"disabled":true}`).want(t, 200)
	w.call(approver, "GET", route.Prefix+"/users/me", "").problem(t, 401, fault.Unauthorized)
	w.with(c, "GET", "/users/me", "").problem(t, 401, fault.Unauthorized)
	if got := w.submit(link, url.Values{"answer": {"approve"}}); got.status < 400 {
		t.Errorf("the link of a disabled user answers: %d", got.status)
	}
	if i := w.interaction(asked); i.Status != store.InteractionPending {
		t.Errorf("the question has ended: %+v", i)
	}
	w.admin("PUT", route.Prefix+"/users/approver-user", `{"name":"a","roles":["approver"]}`).want(t, 200)
	w.with(c, "GET", "/users/me", "").problem(t, 401, fault.Unauthorized) // the session has ended for good
}

// The scopes of a token narrow what its user may do, and never add to it.
func TestScopes(t *testing.T) {
	t.Parallel()
	w := setup(t)
	token := func(as, scopes, more string) string {
		return read[api.NewToken](t, w.call(as, "POST", route.Prefix+"/users/me/tokens", `{"name":"t","scopes":[`+scopes+`]`+more+`}`).want(t, 201)).Secret
	}
	admin := w.tokens[identity.Admin]
	// Every operation, with a token of an admin that has one scope: the scope that it is documented with, or admin, is let through.
	for _, scope := range identity.Scopes() {
		secret := token(admin, `"`+string(scope)+`"`, "")
		for _, op := range operations(w.server) {
			if op.OperationID == "follow-interactions" || op.OperationID == "follow-mcp" {
				continue // they never end
			}
			path := strings.NewReplacer("{id}", "x", "{token}", "x", "{session}", "x", "{response_id}", "x", "{sort}", "x", "{record}", "x").Replace(op.Path)
			got := w.call(secret, op.Method, path, `{}`)
			needs, _ := op.Extensions["x-scope"].(string)
			may := scope == identity.ScopeAdmin || needs == string(scope)
			if needs == "" || may == strings.Contains(got.body, "this needs a token with the scope") {
				t.Errorf("%s %s needs %q, and with %q it says %d %s", op.Method, op.Path, needs, scope, got.status, got.body)
			}
		}
	}
	executes := token(admin, `"execute","read"`, "")
	w.call(executes, "GET", route.Prefix+"/users", "").want(t, 200)
	w.call(executes, "POST", route.Prefix+"/users", `{"name":"x","roles":["admin"]}`).problem(t, 403, fault.Forbidden)
	w.call(executes, "POST", route.Prefix+"/users/me/tokens", `{"name":"more"}`).problem(t, 403, fault.Forbidden)
	// A viewer does not become more by a scope.
	viewer := token(w.tokens[identity.Viewer], `"admin"`, "")
	w.call(viewer, "POST", route.Prefix+"/users", `{"name":"x","roles":["admin"]}`).problem(t, 403, fault.Forbidden)
	w.admin("POST", route.Prefix+"/users/me/tokens", `{"name":"t","scopes":["fly"]}`).problem(t, 422, fault.InvalidInput)
	// A session has the scopes of its token.
	c := cookieOf(t, w.call(executes, "POST", route.Prefix+"/sessions", "").want(t, 201))
	w.with(c, "POST", "/users", `{"name":"x","roles":["admin"]}`).problem(t, 403, fault.Forbidden)
	// When a token was last used is told.
	list := read[api.Tokens](t, w.admin("GET", route.Prefix+"/users/me/tokens", "").want(t, 200)).Tokens
	used := slices.IndexFunc(list, func(t api.Token) bool { return slices.Equal(t.Scopes, []string{"execute", "read"}) })
	if used < 0 || list[used].LastUsedTime == 0 {
		t.Errorf("tokens: %+v", list)
	}
	late := token(admin, `"read"`, `,"expires_in":60`)
	w.call(late, "GET", route.Prefix+"/users/me", "").want(t, 200)
	w.pass(time.Minute)
	w.call(late, "GET", route.Prefix+"/users/me", "").problem(t, 401, fault.Unauthorized)
}

func TestInvitation(t *testing.T) {
	t.Parallel()
	w := setup(t)
	invite := func(body string) api.NewInvitation {
		return read[api.NewInvitation](t, w.admin("POST", route.Prefix+"/invitations", body).want(t, 201))
	}
	for field, body := range map[string]string{
		"email": `{"email":"nobody","roles":["viewer"]}`, "roles": `{"email":"a@b.c","roles":[]}`, "roles[0]": `{"email":"a@b.c","roles":["king"]}`, "expires_in": `{"email":"a@b.c","roles":["viewer"],"expires_in":99999999}`,
	} {
		if p := w.admin("POST", route.Prefix+"/invitations", body).problem(t, 422, fault.InvalidInput); len(p.Errors) != 1 || p.Errors[0].Path != field {
			t.Errorf("%s: %+v", field, p)
		}
	}
	w.call(w.tokens[identity.Editor], "POST", route.Prefix+"/invitations", `{"email":"a@b.c","roles":["viewer"]}`).problem(t, 403, fault.Forbidden)

	// What somebody has invited to who is not an admin any more is not good any more.
	w.admin("POST", route.Prefix+"/users", `{"id":"boss","name":"Boss","roles":["admin"]}`).want(t, 201)
	boss := read[api.NewToken](t, w.admin("POST", route.Prefix+"/users/boss/tokens", `{"name":"x"}`).want(t, 201)).Secret
	left := read[api.NewInvitation](t, w.call(boss, "POST", route.Prefix+"/invitations", `{"email":"mole@example.com","roles":["admin"]}`).want(t, 201))
	door := left.URL[strings.Index(left.URL, login.JoinPath):]
	w.call("", "GET", door, "").want(t, 200)
	for _, change := range []string{`{"name":"Boss","roles":["viewer"]}`, `{"name":"Boss","roles":["admin"],"disabled":true}`} {
		w.admin("PUT", route.Prefix+"/users/boss", change).want(t, 200)
		w.call("", "GET", door, "").want(t, 404)
		w.call("", "POST", door, "").want(t, 404)
	}
	w.admin("DELETE", route.Prefix+"/users/boss", "").want(t, 204)
	w.call("", "POST", door, "").want(t, 404)
	w.admin("DELETE", route.Prefix+"/invitations/"+left.Invitation.ID, "").want(t, 204)
	made := invite(`{"email":"Bo.Li@example.com","roles":["operator"]}`)
	// Looking at it uses nothing up.
	for range 2 {
		if page := w.call("", "GET", made.URL, "").want(t, 200); !strings.Contains(page.body, "admin-user") || page.header.Get("Cache-Control") != "no-store" {
			t.Errorf("the page says %s", page.body)
		}
	}
	join := func(made api.NewInvitation, origin string) answer {
		return w.ask("", "POST", made.URL, nil, func(r *http.Request) { r.Header.Set("Origin", origin) })
	}
	join(made, "https://evil.example").want(t, 403) // it would log a browser in as somebody else
	got := join(made, w.http.URL).want(t, 200)
	at := strings.Index(got.body, "tdm_")
	if at < 0 {
		t.Fatalf("no token is shown: %s", got.body)
	}
	secret := got.body[at : at+strings.Index(got.body[at:], "<")]
	me := read[api.User](t, w.call(secret, "GET", route.Prefix+"/users/me", "").want(t, 200))
	if me.ID != "bo-li" || me.Email != "Bo.Li@example.com" || !slices.Equal(me.Roles, []string{"operator"}) {
		t.Errorf("who came of it: %+v", me)
	}
	w.with(cookieOf(t, got), "GET", "/users/me", "").want(t, 200)
	join(made, w.http.URL).want(t, 404) // it is used up
	list := read[api.Invitations](t, w.admin("GET", route.Prefix+"/invitations", "").want(t, 200)).Invitations
	if len(list) != 1 || list[0].InvitedBy != "admin-user" || list[0].UserID != "bo-li" || list[0].AcceptedTime == 0 {
		t.Errorf("invitations: %+v", list)
	}
	late := invite(`{"email":"late@example.com","roles":["viewer"],"expires_in":60}`)
	w.pass(time.Minute)
	join(late, w.http.URL).want(t, 404)
	taken := invite(`{"email":"x@example.com","roles":["viewer"]}`)
	w.call(w.other, "DELETE", route.Prefix+"/invitations/"+taken.Invitation.ID, "").problem(t, 404, fault.NotFound)
	w.admin("DELETE", route.Prefix+"/invitations/"+taken.Invitation.ID, "").want(t, 204)
	join(taken, w.http.URL).want(t, 404)
}

// issuer is a provider of identities that speaks OpenID Connect: discovery, keys, the code flow with PKCE, signed tokens.
type issuer struct {
	*httptest.Server
	t   *testing.T
	key *rsa.PrivateKey

	mu     sync.Mutex
	codes  map[string]url.Values
	claims map[string]any
	// info is what it tells when it is asked about who has logged in; nil: it has no such address.
	info map[string]any
	// spoil changes what is signed, or how.
	spoil func(claims map[string]any, key *rsa.PrivateKey) *rsa.PrivateKey
	// asked are the requests for tokens that were refused.
	refused []string
}

const clientSecret = "canary-client-secret"

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{t: t, key: key, codes: map[string]url.Values{}}
	mux := http.NewServeMux()
	reply := func(w http.ResponseWriter, status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		if err := json.NewEncoder(w).Encode(v); err != nil {
			t.Error(err)
		}
	}
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		found := map[string]any{"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token", "jwks_uri": i.URL + "/keys",
			"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"}, "id_token_signing_alg_values_supported": []string{"RS256"}, "code_challenge_methods_supported": []string{"S256"}}
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.info != nil {
			found["userinfo_endpoint"] = i.URL + "/userinfo"
		}
		reply(w, 200, found)
	})
	mux.HandleFunc("GET /userinfo", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer a" {
			t.Errorf("asked with %q", r.Header.Get("Authorization"))
		}
		i.mu.Lock()
		defer i.mu.Unlock()
		reply(w, 200, i.info)
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, 200, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &i.key.PublicKey, KeyID: "k", Algorithm: "RS256", Use: "sig"}}})
	})
	mux.HandleFunc("GET /authorize", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if q.Get("client_id") != "tandem" || q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" || q.Get("state") == "" || q.Get("nonce") == "" || !strings.Contains(q.Get("scope"), "openid") {
			t.Errorf("what is asked of the provider lacks something: %v", q)
		}
		code := identity.NewSecret()
		i.mu.Lock()
		i.codes[code] = q
		i.mu.Unlock()
		back, err := url.Parse(q.Get("redirect_uri"))
		if err != nil {
			t.Error(err)
			return
		}
		back.RawQuery = url.Values{"code": {code}, "state": {q.Get("state")}}.Encode()
		http.Redirect(w, r, back.String(), http.StatusFound)
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		user, pass, _ := r.BasicAuth()
		if user == "" {
			user, pass = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
		}
		i.mu.Lock()
		defer i.mu.Unlock()
		q, known := i.codes[r.PostFormValue("code")]
		delete(i.codes, r.PostFormValue("code"))
		sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		if !known || user != "tandem" || pass != clientSecret || base64.RawURLEncoding.EncodeToString(sum[:]) != q.Get("code_challenge") || r.PostFormValue("redirect_uri") != q.Get("redirect_uri") {
			i.refused = append(i.refused, r.PostForm.Encode())
			reply(w, 400, map[string]string{"error": "invalid_grant"})
			return
		}
		claims := map[string]any{"iss": i.URL, "aud": "tandem", "iat": time.Now().Unix(), "exp": time.Now().Add(time.Minute).Unix(), "nonce": q.Get("nonce")}
		for name, value := range i.claims {
			claims[name] = value
		}
		key := i.key
		if i.spoil != nil {
			key = i.spoil(claims, key)
		}
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: key, KeyID: "k"}}, nil)
		if err != nil {
			t.Error(err)
			return
		}
		token, err := jwt.Signed(signer).Claims(claims).Serialize()
		if err != nil {
			t.Error(err)
			return
		}
		reply(w, 200, map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": token})
	})
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Server.Close)
	return i
}

// browser goes from the login page to the provider and back, and returns where it ends.
func (w *world) browser(between ...func(*http.Client)) (status int, body string, jar http.CookieJar) {
	w.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	c := &http.Client{Jar: jar}
	for _, f := range between {
		f(c)
	}
	r, err := http.NewRequestWithContext(w.t.Context(), "GET", w.http.URL+login.ProviderPath, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	res, err := c.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return res.StatusCode, string(text), jar
}

// loginWorld is a server with a provider. The server has to know its own address before it is made, so the listener comes first.
func loginWorld(t *testing.T, change ...func(*login.Provider)) (*world, *issuer) {
	t.Helper()
	i := newIssuer(t)
	outer := httptest.NewUnstartedServer(nil)
	outer.Start()
	t.Cleanup(outer.Close)
	p := login.Provider{Issuer: i.URL, ClientID: "tandem", ClientSecret: clientSecret}
	for _, f := range change {
		f(&p)
	}
	w := setup(t, func(o *Options) { o.PublicURL, o.Login, o.Workspace = outer.URL, p, "a" })
	outer.Config.Handler = w.server.Handler()
	w.http.Close()
	w.http = outer
	return w, i
}

func TestOIDC(t *testing.T) {
	t.Parallel()
	w, i := loginWorld(t)
	who := func(jar http.CookieJar) answer {
		u, err := url.Parse(w.http.URL)
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(jar.Cookies(u), func(c *http.Cookie) bool { return c.Name == "tandem_session" })
		if at < 0 {
			return answer{status: 401}
		}
		return w.with(jar.Cookies(u)[at], "GET", "/users/me", "")
	}
	as := func(claims map[string]any) {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.claims, i.spoil = claims, nil
	}
	refused := func(why string) {
		t.Helper()
		status, body, jar := w.browser()
		if status < 400 || !strings.Contains(body, why) || who(jar).status != 401 {
			t.Errorf("%d %s; want a refusal with %q", status, body, why)
		}
		e := w.log()[0]
		if e.Action != "login.refuse" || !strings.Contains(string(e.Detail), "oidc") {
			t.Errorf("the refusal left %+v", e)
		}
	}
	as(map[string]any{"sub": "s1", "email": "Ann@Example.com", "email_verified": true, "name": "Ann"})
	refused("invited")
	w.admin("POST", route.Prefix+"/invitations", `{"email":"ann@example.com","roles":["editor"]}`).want(t, 201)
	as(map[string]any{"sub": "s1", "email": "ann@example.com", "email_verified": false})
	refused("vouch")
	as(map[string]any{"sub": "s1", "email": "ann@example.com"})
	refused("vouch")
	as(map[string]any{"sub": "s1", "email": "Ann@Example.com", "email_verified": true, "name": "Ann"})
	_, _, jar := w.browser()
	me := read[api.User](t, who(jar).want(t, 200))
	if me.ID != "ann" || me.Name != "Ann" || !slices.Equal(me.Roles, []string{"editor"}) {
		t.Errorf("who came: %+v", me)
	}
	if e := w.log()[0]; e.Action != "login.succeed" || e.User != "ann" || !strings.Contains(string(e.Detail), "oidc") {
		t.Errorf("the login left %+v", e)
	}
	// From then on the subject counts, whatever the address.
	as(map[string]any{"sub": "s1", "email": "new@example.com"})
	_, _, jar = w.browser()
	if again := read[api.User](t, who(jar).want(t, 200)); again.ID != "ann" {
		t.Errorf("the second time: %+v", again)
	}
	as(map[string]any{"sub": "s2", "email": "ann@example.com", "email_verified": true})
	refused("invited") // the invitation is used up, and another subject is somebody else
	w.admin("PUT", route.Prefix+"/users/ann", `{"name":"Ann","roles":["editor"],"disabled":true}`).want(t, 200)
	as(map[string]any{"sub": "s1"})
	refused("disabled")
	w.admin("PUT", route.Prefix+"/users/ann", `{"name":"Ann","roles":["editor"]}`).want(t, 200)

	// What is not signed by the provider, for this installation, for this login, is not believed.
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(map[string]any, *rsa.PrivateKey) *rsa.PrivateKey{
		"Nonce":    func(c map[string]any, k *rsa.PrivateKey) *rsa.PrivateKey { c["nonce"] = "another"; return k },
		"Audience": func(c map[string]any, k *rsa.PrivateKey) *rsa.PrivateKey { c["aud"] = "another"; return k },
		"Issuer":   func(c map[string]any, k *rsa.PrivateKey) *rsa.PrivateKey { c["iss"] = "https://evil.example"; return k },
		"Expired": func(c map[string]any, k *rsa.PrivateKey) *rsa.PrivateKey {
			c["exp"] = time.Now().Add(-time.Hour).Unix()
			return k
		},
		"Key": func(_ map[string]any, _ *rsa.PrivateKey) *rsa.PrivateKey { return other },
	} {
		i.mu.Lock()
		i.spoil = spoil
		i.mu.Unlock()
		if status, body, jar := w.browser(); status < 400 || who(jar).status != 401 {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	as(map[string]any{"sub": "s1"})
	// A return to a browser that did not leave, or with the state of another, is refused before the code is used.
	back := w.call("", "GET", login.ReturnPath+"?code=x&state=y", "").want(t, 409)
	if !strings.Contains(back.body, "begin again") {
		t.Errorf("a return from nowhere: %s", back.body)
	}
	status, body, _ := w.browser(func(c *http.Client) {
		c.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
			if strings.HasPrefix(r.URL.Path, login.ReturnPath) {
				q := r.URL.Query()
				q.Set("state", "another")
				r.URL.RawQuery = q.Encode()
			}
			return nil
		}
	})
	if status != 409 || !strings.Contains(body, "begin again") {
		t.Errorf("another state: %d %s", status, body)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.refused) > 0 {
		t.Errorf("the provider refused %v", i.refused)
	}
	for _, e := range w.log() {
		if strings.Contains(string(e.Detail), "canary") {
			t.Errorf("the log holds the secret of the client: %s", e.Detail)
		}
	}
}

func TestOIDC_RolesByGroup(t *testing.T) {
	t.Parallel()
	w, i := loginWorld(t, func(p *login.Provider) {
		p.RoleClaim, p.Roles = "groups", map[string]identity.Role{"ops": identity.Operator, "bosses": identity.Admin}
	})
	w.admin("POST", route.Prefix+"/invitations", `{"email":"ann@example.com","roles":["viewer"]}`).want(t, 201)
	rolesWith := func(groups ...any) []string {
		t.Helper()
		i.mu.Lock()
		i.claims = map[string]any{"sub": "s1", "email": "ann@example.com", "email_verified": "true", "groups": groups}
		i.mu.Unlock()
		w.browser()
		u, err := w.stores.Users.Get(t.Context(), identity.System("a"), "ann")
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, r := range u.Roles {
			names = append(names, string(r))
		}
		return names
	}
	if got := rolesWith("ops", "others"); !slices.Equal(got, []string{"operator"}) {
		t.Errorf("roles %v", got)
	}
	if got := rolesWith("bosses", "ops"); !slices.Equal(got, []string{"admin", "operator"}) {
		t.Errorf("roles %v", got)
	}
	if status, body, _ := w.browser(func(*http.Client) {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.claims = map[string]any{"sub": "s1", "groups": []string{"others"}}
	}); status != 403 || !strings.Contains(body, "groups") {
		t.Errorf("without a group that counts: %d %s", status, body)
	}
}

func TestOIDC_Settings(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]login.Provider{
		"--oidc-issuer":     {Issuer: "login.example.com", ClientID: "c"},
		"not encrypted":     {Issuer: "http://login.example.com", ClientID: "c"},
		"--oidc-client-id":  {Issuer: "https://login.example.com"},
		"--oidc-role-claim": {Issuer: "https://login.example.com", ClientID: "c", Roles: map[string]identity.Role{"a": identity.Admin}},
		"--oidc-roles":      {Issuer: "https://login.example.com", ClientID: "c", RoleClaim: "groups"},
	} {
		err := login.Register(login.Options{Router: route.New(route.Options{Version: "test", Now: time.Now}), Provider: p})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v; want %q", p, err, want)
		}
	}
	if _, err := login.ParseRoles("ops=operator, admins=king"); err == nil {
		t.Error("a role that there is not is taken")
	}
}

// TestOIDC_UserInfo: what the provider tells besides the id_token counts only where that says nothing, and only of the one who has logged
// in.
func TestOIDC_UserInfo(t *testing.T) {
	t.Parallel()
	w, i := loginWorld(t)
	w.admin("POST", route.Prefix+"/invitations", `{"email":"ann@example.com","roles":["editor"]}`).want(t, 201)
	come := func(claims, info map[string]any) (int, string) {
		i.mu.Lock()
		i.claims, i.info = claims, info
		i.mu.Unlock()
		status, body, _ := w.browser()
		return status, body
	}
	vouched := map[string]any{"sub": "s1", "email": "ann@example.com", "email_verified": true}
	other := map[string]any{"sub": "s2", "email": "ann@example.com", "email_verified": true}
	if status, body := come(map[string]any{"sub": "s1"}, other); status < 400 || !strings.Contains(body, "somebody else") {
		t.Errorf("of somebody else: %d %s", status, body)
	}
	if status, body := come(map[string]any{"sub": "s1", "email": "eve@example.com"}, vouched); status < 400 || !strings.Contains(body, "vouch") {
		t.Errorf("verified, but another address: %d %s", status, body)
	}
	if status, body := come(map[string]any{"sub": "s1", "email": "ann@example.com", "email_verified": false}, vouched); status < 400 || !strings.Contains(body, "vouch") {
		t.Errorf("not verified, says the id_token: %d %s", status, body)
	}
	if status, body := come(map[string]any{"sub": "s1"}, vouched); status != 200 {
		t.Errorf("%d %s", status, body)
	}
}
