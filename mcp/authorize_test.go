package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tandem/credential/oauth"
	"tandem/fault"
	"tandem/store"
)

const callback = "https://tandem.example/mcp/authorized"

// issuer is an authorization server. It writes down everything that it is sent.
type issuer struct {
	url     string
	methods []string // how it takes clients; nil: it does not say
	closed  bool     // it registers nobody
	cimd    bool     // it reads documents of clients
	expires int64    // when secrets end, in seconds
	moved   string   // where its token endpoint leads
	refuse  string   // the error of its token endpoint

	mu         sync.Mutex
	heard      []string         // methods, paths, headers and bodies
	registered []map[string]any // what clients said of themselves
	tokens     map[string]string
}

func newIssuer(t *testing.T, change func(*issuer)) *issuer {
	a := &issuer{tokens: map[string]string{}}
	change(a)
	a.url = listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		a.heard = append(a.heard, fmt.Sprint(r.Method, " ", r.URL, " ", r.Header, " ", string(body)))
		say := func(status int, v any) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(v) // the client may have gone
		}
		switch r.URL.Path {
		case "/.well-known/oauth-authorization-server":
			meta := map[string]any{"issuer": a.url, "authorization_endpoint": a.url + "/authorize", "token_endpoint": a.url + "/token", "response_types_supported": []string{"code"},
				"code_challenge_methods_supported": []string{"S256"}, "client_id_metadata_document_supported": a.cimd}
			if !a.closed {
				meta["registration_endpoint"] = a.url + "/register"
			}
			if a.methods != nil {
				meta["token_endpoint_auth_methods_supported"] = a.methods
			}
			say(200, meta)
		case "/register":
			var m map[string]any
			if err := json.Unmarshal(body, &m); err != nil {
				t.Error(err)
			}
			a.registered = append(a.registered, m)
			m["client_id"] = fmt.Sprint("client-", len(a.registered))
			if m["token_endpoint_auth_method"] != "none" {
				m["client_secret"], m["client_secret_expires_at"] = fmt.Sprint("registered-secret-", len(a.registered)), a.expires
			}
			say(201, m)
		case "/token":
			form, err := url.ParseQuery(string(body))
			if err != nil {
				t.Error(err)
			}
			switch {
			case a.moved != "":
				http.Redirect(w, r, a.moved, http.StatusTemporaryRedirect)
			case a.refuse != "":
				say(401, map[string]any{"error": a.refuse})
			default:
				scope := form.Get("code") // a code is what was asked for
				token := fmt.Sprint("token-", len(a.tokens), "-", scope)
				a.tokens[token] = scope
				say(200, map[string]any{"access_token": token, "token_type": "Bearer", "scope": scope, "expires_in": 3600})
			}
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	return a
}

func (a *issuer) all() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Join(a.heard, "\n")
}

func (a *issuer) scopes(token string) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Fields(a.tokens[token])
}

// toolHost is a tool server that wants tokens of an issuer: one with the scope "basic" for anything, and with "write" for calls of tools.
type toolHost struct {
	url      string
	resource string // what it says that it is; empty: what it is
	mu       sync.Mutex
	by       *issuer
	before   string // an issuer that it names before the other
	// bare counts requests without a token, tokens are those that came.
	bare   int
	tokens []string
}

func newToolHost(t *testing.T, by *issuer) *toolHost {
	h := &toolHost{by: by}
	inner := streamable(t, nil)
	mux := http.NewServeMux()
	mux.HandleFunc("/somewhere/metadata", func(w http.ResponseWriter, _ *http.Request) { // known by the challenge alone
		h.mu.Lock()
		defer h.mu.Unlock()
		resource := h.url + "/mcp"
		if h.resource != "" {
			resource = h.resource
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"resource": resource, "authorization_servers": slices.DeleteFunc([]string{h.before, h.by.url}, func(s string) bool { return s == "" }), "scopes_supported": []string{"everything"}}) // the client may have gone
	})
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		by := h.by
		token, has := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if has {
			h.tokens = append(h.tokens, token)
		} else {
			h.bare++
		}
		h.mu.Unlock()
		has2 := by.scopes(token)
		want, status, problem := "basic", http.StatusUnauthorized, ""
		if r.Header.Get("Mcp-Method") == "tools/call" || strings.Contains(peek(t, r), `"tools/call"`) {
			want = "basic write"
		}
		if len(has2) > 0 {
			status, problem = http.StatusForbidden, `, error="insufficient_scope"`
		}
		for _, scope := range strings.Fields(want) {
			if !slices.Contains(has2, scope) {
				w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer scope="%s", resource_metadata="%s/somewhere/metadata"%s`, want, h.url, problem))
				w.WriteHeader(status)
				return
			}
		}
		inner.ServeHTTP(w, r)
	})
	h.url = listen(t, mux)
	return h
}

// peek reads a body and leaves it as it was.
func peek(t *testing.T, r *http.Request) string {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	return string(body)
}

// authorizing is a pool with a tool server that people authorize.
type authorizing struct {
	*world
	t      *testing.T
	kept   *grants
	server store.MCPServer
}

func setupAuthorizing(t *testing.T, h *toolHost, known Grant) *authorizing {
	t.Helper()
	x := &authorizing{t: t, kept: &grants{grant: known}}
	x.world = setup(t, func(o *Options) { o.Grants = x.kept })
	x.server = store.MCPServer{ID: "s", Transport: store.MCPHTTP, URL: h.url + "/mcp", Credential: "oauth", Enabled: true}
	x.put(t, x.server)
	return x
}

func (x *authorizing) begin(change ...func(*Wish)) (Authorization, url.Values, error) {
	w := Wish{Server: x.server, Redirect: callback, Known: x.kept.grant}
	for _, f := range change {
		f(&w)
	}
	a, err := x.BeginAuthorization(x.t.Context(), ann(), w)
	if err != nil {
		return a, nil, err
	}
	u, err := url.Parse(a.URL)
	if err != nil {
		x.t.Fatal(err)
	}
	return a, u.Query(), nil
}

// agree is a person who agrees to everything; the code is what was asked for.
func (x *authorizing) agree(change ...func(*Wish)) (Authorization, url.Values) {
	x.t.Helper()
	a, q, err := x.begin(change...)
	if err != nil {
		x.t.Fatalf("%v (cause %v)", err, errors.Unwrap(err))
	}
	g, err := a.Finish(x.t.Context(), x.options.HTTP, q.Get("scope"), a.State, "")
	if err != nil {
		x.t.Fatalf("%v (cause %v)", err, errors.Unwrap(err))
	}
	x.kept.mu.Lock()
	x.kept.grant = g
	x.kept.mu.Unlock()
	x.ForgetChallenge("w", "s")
	x.Stop("w", "s", "")
	return a, q
}

// What a server wanted when it refused a call is what is asked for, together with what was granted before; where its metadata is, is known
// by that alone.
func TestAuthorize_StepUp(t *testing.T) {
	t.Parallel()
	as := newIssuer(t, func(*issuer) {})
	h := newToolHost(t, as)
	x := setupAuthorizing(t, h, Grant{})
	if _, q := x.agree(); q.Get("scope") != "basic" {
		t.Fatalf("asked for %q", q.Get("scope"))
	}
	x.activate(t, "s")
	err := errOf(x.call(t, "s", "mutate", `{}`))
	if e := kindOf(t, err, Unauthorized); e.Status != 403 || !strings.Contains(e.Message.String(), `"basic write"`) || !strings.Contains(e.Message.String(), "tandem mcp servers authorize s") {
		t.Fatalf("got %+v", e)
	}
	x.kept.grant.Scopes = []string{"basic", "granted-before"}
	if _, q := x.agree(); q.Get("scope") != "basic granted-before write" {
		t.Errorf("asked for %q", q.Get("scope"))
	}
	x.must(t, "s", "mutate", `{}`)
	if len(as.registered) != 1 {
		t.Errorf("registered %d times", len(as.registered))
	}
	// A token that is no longer good, with nothing to renew it: the server's word is kept, also when the pool is new.
	as.mu.Lock()
	clear(as.tokens)
	as.mu.Unlock()
	e := kindOf(t, errOf(x.call(t, "s", "pid", `{}`)), Unauthorized)
	if e.Status != 401 || len(e.Challenge) != 1 || !strings.Contains(e.Challenge[0], "/somewhere/metadata") {
		t.Errorf("got %+v", e)
	}
	if c := x.wanted(principal{ann(), x.server}); c.metadata != h.url+"/somewhere/metadata" {
		t.Errorf("remembered %+v", c)
	}
	again := setupAuthorizing(t, h, Grant{Issuer: as.url, ClientID: "client-1", TokenURL: as.url + "/token", AccessToken: "old", Expires: 1})
	if a, q := again.agree(); !strings.HasPrefix(a.URL, as.url+"/authorize?") || q.Get("scope") != "basic" || q.Get("client_id") != "client-1" {
		t.Errorf("sent to %s", a.URL)
	}
}

// A client belongs to its issuer: another one neither sees its id nor its secret.
func TestAuthorize_Moved(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		known  func(first *issuer) Grant
		second func(*issuer)
		want   string // of the refusal; empty: it registers anew
	}{
		"Registered": {known: func(*issuer) Grant { return Grant{} }, second: func(*issuer) {}},
		"Entered": {known: func(a *issuer) Grant {
			return Grant{Issuer: a.url, ClientID: "entered-id", ClientSecret: "entered-secret"}
		}, second: func(*issuer) {}},
		"EnteredFirst": {known: func(*issuer) Grant { return Grant{ClientID: "entered-id", ClientSecret: "entered-secret"} }, second: func(*issuer) {}},
		"BeforeIssuers": {known: func(a *issuer) Grant {
			return Grant{ClientID: "entered-id", ClientSecret: "entered-secret", TokenURL: a.url + "/token"}
		}, second: func(*issuer) {}},
		"NoRegistration": {known: func(a *issuer) Grant {
			return Grant{Issuer: a.url, ClientID: "entered-id", ClientSecret: "entered-secret"}
		}, second: func(a *issuer) { a.closed = true }, want: "enter its client_id, client_secret and issuer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := newIssuer(t, func(a *issuer) { a.methods = []string{"client_secret_post"} })
			second := newIssuer(t, func(a *issuer) {
				a.methods = []string{"client_secret_post"}
				c.second(a)
			})
			h := newToolHost(t, first)
			x := setupAuthorizing(t, h, c.known(first))
			if c.known(first).TokenURL == "" {
				x.agree()
			}
			if secret := x.kept.grant.ClientSecret; c.known(first).TokenURL == "" && (!strings.Contains(first.all(), "client_secret="+secret) || x.kept.grant.Issuer != first.url) {
				t.Fatalf("the first issuer heard %s", first.all())
			}
			h.mu.Lock()
			h.by = second
			h.mu.Unlock()
			if c.want != "" {
				if _, _, err := x.begin(); fault.CodeOf(err) != fault.CredentialInvalid || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v", err)
				}
			} else if a, q := x.agree(); !strings.HasPrefix(a.URL, second.url) || q.Get("client_id") != "client-1" || x.kept.grant.Issuer != second.url || len(second.registered) != 1 {
				t.Errorf("sent to %s, kept %+v", a.URL, x.kept.grant)
			}
			heard := second.all()
			for _, own := range []string{"entered-id", "entered-secret", "token-0"} {
				if strings.Contains(heard, own) {
					t.Errorf("the second issuer heard %q:\n%s", own, heard)
				}
			}
		})
	}
}

// Where a tool server names several authorization servers, the one is asked that knows the client.
func TestAuthorize_Several(t *testing.T) {
	t.Parallel()
	first, second := newIssuer(t, func(*issuer) {}), newIssuer(t, func(*issuer) {})
	h := newToolHost(t, second)
	h.before = first.url
	x := setupAuthorizing(t, h, Grant{Issuer: second.url + "/", ClientID: "entered-id", ClientSecret: "entered-secret"})
	if a, q := x.agree(); !strings.HasPrefix(a.URL, second.url) || q.Get("client_id") != "entered-id" || first.all() != "" {
		t.Errorf("sent to %s; the first heard %s", a.URL, first.all())
	}
}

// A token endpoint that leads elsewhere is not followed: what is sent there is secret.
func TestAuthorize_TokenEndpointLeadsElsewhere(t *testing.T) {
	t.Parallel()
	other := newIssuer(t, func(*issuer) {})
	as := newIssuer(t, func(a *issuer) { a.moved = other.url + "/token" })
	x := setupAuthorizing(t, newToolHost(t, as), Grant{ClientID: "entered-id", ClientSecret: "entered-secret", Auth: oauth.AuthForm})
	a, q, err := x.begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Finish(t.Context(), x.options.HTTP, q.Get("scope"), a.State, ""); err == nil || other.all() != "" {
		t.Errorf("got %v; the other heard %s", err, other.all())
	}
}

// How a client is registered, and how it shows who it is, is what the authorization server takes.
func TestAuthorize_ClientAuth(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		methods []string
		known   Grant
		asked   string // the method that a registration asked for
		sent    string // "basic", "form" or "none"
		problem string
	}{
		"RegisterBasic":   {methods: []string{"none", "client_secret_basic"}, asked: "client_secret_basic", sent: oauth.AuthBasic},
		"RegisterForm":    {methods: []string{"private_key_jwt", "client_secret_post"}, asked: "client_secret_post", sent: oauth.AuthForm},
		"RegisterNone":    {methods: []string{"none"}, asked: "none", sent: oauth.AuthNone},
		"RegisterUnsaid":  {asked: "client_secret_basic", sent: oauth.AuthBasic},
		"RegisterNothing": {methods: []string{"private_key_jwt"}, problem: "private_key_jwt"},
		"EnteredBasic":    {methods: []string{"client_secret_basic"}, known: Grant{ClientID: "i", ClientSecret: "s", Auth: oauth.AuthForm}, sent: oauth.AuthBasic},
		"EnteredForm":     {methods: []string{"client_secret_basic", "client_secret_post"}, known: Grant{ClientID: "i", ClientSecret: "s", Auth: oauth.AuthForm}, sent: oauth.AuthForm},
		"EnteredUnsaid":   {known: Grant{ClientID: "i", ClientSecret: "s"}, sent: oauth.AuthBasic},
		"EnteredAsSaid":   {known: Grant{ClientID: "i", ClientSecret: "s", Auth: oauth.AuthForm}, sent: oauth.AuthForm},
		"EnteredNone":     {methods: []string{"none"}, known: Grant{ClientID: "i", ClientSecret: "s"}, sent: oauth.AuthNone},
		"EnteredPublic":   {methods: []string{"client_secret_basic"}, known: Grant{ClientID: "i"}, sent: oauth.AuthNone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			as := newIssuer(t, func(a *issuer) { a.methods = c.methods })
			x := setupAuthorizing(t, newToolHost(t, as), c.known)
			if c.problem != "" {
				if _, _, err := x.begin(); fault.CodeOf(err) != fault.Unsupported || !strings.Contains(err.Error(), c.problem) {
					t.Errorf("got %v", err)
				}
				return
			}
			x.agree()
			if c.asked != "" && (len(as.registered) != 1 || as.registered[0]["token_endpoint_auth_method"] != c.asked || as.registered[0]["application_type"] != "web") {
				t.Errorf("registered %v", as.registered)
			}
			last := as.heard[len(as.heard)-1]
			sent := oauth.AuthNone
			if strings.Contains(last, "Authorization:[Basic ") {
				sent = oauth.AuthBasic
			} else if strings.Contains(last, "client_secret=") {
				sent = oauth.AuthForm
			}
			if !strings.HasPrefix(last, "POST /token") || sent != c.sent {
				t.Errorf("sent by %s: %s", sent, last)
			}
		})
	}
}

// A program whose people come back to their own machine is a native one; one that has a document is known by it; a client that is no longer
// known is registered anew.
func TestAuthorize_Clients(t *testing.T) {
	t.Parallel()
	t.Run("Native", func(t *testing.T) {
		t.Parallel()
		as := newIssuer(t, func(*issuer) {})
		x := setupAuthorizing(t, newToolHost(t, as), Grant{})
		x.agree(func(w *Wish) { w.Redirect = "http://127.0.0.1:8080/mcp/authorized" })
		if as.registered[0]["application_type"] != "native" {
			t.Errorf("registered %v", as.registered)
		}
	})
	t.Run("Document", func(t *testing.T) {
		t.Parallel()
		const address = "https://tandem.example/client-metadata.json"
		as := newIssuer(t, func(a *issuer) { a.cimd = true })
		x := setupAuthorizing(t, newToolHost(t, as), Grant{})
		if _, q := x.agree(func(w *Wish) { w.Document = address }); q.Get("client_id") != address || len(as.registered) != 0 {
			t.Errorf("asked as %q, registered %v", q.Get("client_id"), as.registered)
		}
		document, err := ClientDocument(address, callback)
		var told struct {
			ID        string   `json:"client_id"`
			Name      string   `json:"client_name"`
			Redirects []string `json:"redirect_uris"`
			Grants    []string `json:"grant_types"`
			Auth      string   `json:"token_endpoint_auth_method"`
		}
		if err == nil {
			err = json.Unmarshal(document, &told)
		}
		if err != nil || told.ID != address || told.Name == "" || !slices.Equal(told.Redirects, []string{callback}) || told.Auth != "none" || !slices.Contains(told.Grants, "refresh_token") {
			t.Errorf("%s %v", document, err)
		}
		// Who has none, and who is not read by it, registers.
		x.kept.grant = Grant{}
		if _, q := x.agree(); q.Get("client_id") != "client-1" {
			t.Errorf("asked as %q", q.Get("client_id"))
		}
	})
	t.Run("Expired", func(t *testing.T) {
		t.Parallel()
		as := newIssuer(t, func(a *issuer) { a.expires = time.Now().Add(-time.Hour).Unix() })
		x := setupAuthorizing(t, newToolHost(t, as), Grant{})
		x.agree()
		if _, q := x.agree(); q.Get("client_id") != "client-2" {
			t.Errorf("asked as %q", q.Get("client_id"))
		}
	})
	t.Run("OtherAddress", func(t *testing.T) {
		t.Parallel()
		as := newIssuer(t, func(*issuer) {})
		x := setupAuthorizing(t, newToolHost(t, as), Grant{})
		x.agree()
		if _, q := x.agree(func(w *Wish) { w.Redirect = "https://elsewhere.example/mcp/authorized" }); q.Get("client_id") != "client-2" {
			t.Errorf("asked as %q", q.Get("client_id"))
		}
	})
	t.Run("Forgotten", func(t *testing.T) {
		t.Parallel()
		as := newIssuer(t, func(*issuer) {})
		x := setupAuthorizing(t, newToolHost(t, as), Grant{})
		x.agree()
		x.kept.grant.RefreshToken, x.kept.grant.Expires = "r", 1
		as.mu.Lock()
		as.refuse = "invalid_client"
		as.mu.Unlock()
		_, err := x.Tools(t.Context(), ann(), "s")
		kindOf(t, err, Unauthorized)
		as.mu.Lock()
		as.refuse = ""
		as.mu.Unlock()
		if _, q := x.agree(); q.Get("client_id") != "client-2" {
			t.Errorf("asked as %q", q.Get("client_id"))
		}
	})
}

// What is known without asking the server is said so: nothing was sent.
func TestAuthorize_NothingSent(t *testing.T) {
	t.Parallel()
	as := newIssuer(t, func(*issuer) {})
	h := newToolHost(t, as)
	for name, c := range map[string]struct {
		grant Grant
		want  string
	}{
		"NoToken":       {Grant{ClientID: "i"}, "has no token yet"},
		"Expired":       {Grant{ClientID: "i", AccessToken: "a", Expires: 1}, "has expired"},
		"OtherResource": {Grant{ClientID: "i", AccessToken: "a", Resource: "https://other.example/mcp"}, "https://other.example/mcp"},
		"OtherPath":     {Grant{ClientID: "i", AccessToken: "a", Resource: h.url + "/mc"}, "is for"},
	} {
		x := setupAuthorizing(t, h, c.grant)
		_, err := x.Tools(t.Context(), ann(), "s")
		if e := kindOf(t, err, Unauthorized); !strings.Contains(e.Message.String(), "nothing was sent") || !strings.Contains(e.Message.String(), c.want) || !strings.Contains(e.Message.String(), "tandem mcp servers authorize s") {
			t.Errorf("%s: %s", name, e.Message)
		}
	}
	if h.bare != 0 || len(h.tokens) != 0 {
		t.Errorf("%d requests, tokens %q", h.bare, h.tokens)
	}
	x := setupAuthorizing(t, h, Grant{ClientID: "i", AccessToken: "a", Resource: h.url})
	_, err := x.Tools(t.Context(), ann(), "s")
	if e := kindOf(t, err, Unauthorized); strings.Contains(e.Message.String(), "nothing was sent") || !strings.Contains(e.Message.String(), "does not take the token") || len(h.tokens) == 0 {
		t.Errorf("refused: %s", e.Message)
	}
}

// Nobody is sent to a place that the tool server has not named: metadata that is about something else, or not there, is told.
func TestAuthorize_Metadata(t *testing.T) {
	t.Parallel()
	as := newIssuer(t, func(*issuer) {})
	h := newToolHost(t, as)
	x := setupAuthorizing(t, h, Grant{})
	for resource, good := range map[string]bool{"https://evil.example/mcp": false, h.url + "/other": false, h.url + "/": true, h.url: true} {
		h.mu.Lock()
		h.resource = resource
		h.mu.Unlock()
		a, _, err := x.begin()
		if good && (err != nil || a.Grant.Resource != resource) || !good && (fault.CodeOf(err) != fault.RemoteError || !strings.Contains(err.Error(), resource)) {
			t.Errorf("%s: %+v, %v", resource, a.Grant, err)
		}
	}
	// A server that says nothing of itself is its own authorization server: it may call itself by another path, and not by another origin.
	said := ""
	early := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/.well-known/oauth-authorization-server" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"issuer":%q,"authorization_endpoint":"http://%s/log/in","token_endpoint":"http://%s/t","registration_endpoint":"%s/register","code_challenge_methods_supported":["S256"]}`,
			said, r.Host, r.Host, as.url) // the client may have gone
	}))
	x.server.URL = early + "/mcp"
	said = early + "/oauth"
	if a, _, err := x.begin(); err != nil || !strings.HasPrefix(a.URL, early+"/log/in?") || a.Grant.Issuer != said {
		t.Errorf("%+v, %v", a, err)
	}
	said = "https://other.example/oauth"
	if a, _, err := x.begin(); fault.CodeOf(err) != fault.RemoteError {
		t.Errorf("%+v, %v", a, err)
	}
	gone := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="http://`+r.Host+`/gone"`)
		status := http.StatusUnauthorized
		if r.URL.Path != "/mcp" {
			status = http.StatusNotFound
		}
		w.WriteHeader(status)
	}))
	x.server.URL = gone + "/mcp"
	if _, _, err := x.begin(); fault.CodeOf(err) != fault.RemoteError || !strings.Contains(err.Error(), "/gone") {
		t.Errorf("got %v", err)
	}
}
