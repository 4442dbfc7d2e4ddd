package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"tandem/identity"
	"tandem/store"
)

// grants keeps tokens in memory.
type grants struct {
	mu    sync.Mutex
	grant Grant
	saves int
}

func (g *grants) Load(context.Context, identity.Principal, string) (Grant, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.grant.ClientID == "" {
		return Grant{}, errors.New("there are none")
	}
	return g.grant, nil
}

func (g *grants) Save(_ context.Context, _ identity.Principal, _ string, grant Grant) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.grant = grant
	g.saves++
	return nil
}

// guardedServer is a tool server with an authorization server beside it, as the protocol wants them.
type guardedServer struct {
	url      string
	mu       sync.Mutex
	token    string // the one that is good
	refresh  string
	issued   int
	verifier string // what the challenge was made of is checked at the end
	problem  string
}

func newGuarded(t *testing.T) *guardedServer {
	g := &guardedServer{}
	inner := streamable(t, nil)
	mux := http.NewServeMux()
	say := func(rw http.ResponseWriter, v any) {
		rw.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(rw).Encode(v) // the client may have gone
	}
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", func(rw http.ResponseWriter, _ *http.Request) {
		say(rw, map[string]any{"resource": g.url + "/mcp", "authorization_servers": []string{g.url}, "scopes_supported": []string{"tools"}})
	})
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(rw http.ResponseWriter, _ *http.Request) {
		say(rw, map[string]any{"issuer": g.url, "authorization_endpoint": g.url + "/authorize", "token_endpoint": g.url + "/token",
			"registration_endpoint": g.url + "/register", "response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"},
			"scopes_supported": []string{"tools", "offline_access"}})
	})
	mux.HandleFunc("POST /register", func(rw http.ResponseWriter, r *http.Request) {
		var m map[string]any
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			g.fail(err.Error())
		}
		m["client_id"] = "client-1"
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(rw).Encode(m) // as above
	})
	mux.HandleFunc("POST /token", func(rw http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		defer g.mu.Unlock()
		if r.FormValue("resource") != g.url+"/mcp" || r.FormValue("client_id") != "client-1" {
			g.problem = "token request for " + r.Form.Encode()
		}
		good := r.FormValue("grant_type") == "authorization_code" && r.FormValue("code") == "code-1" && r.FormValue("code_verifier") != "" ||
			r.FormValue("grant_type") == "refresh_token" && r.FormValue("refresh_token") == g.refresh
		if !good {
			rw.WriteHeader(http.StatusBadRequest)
			say(rw, map[string]any{"error": "invalid_grant"})
			return
		}
		g.issued++
		g.token, g.refresh, g.verifier = fmt.Sprint("access-", g.issued), fmt.Sprint("refresh-", g.issued), r.FormValue("code_verifier")
		say(rw, map[string]any{"access_token": g.token, "refresh_token": g.refresh, "token_type": "Bearer", "expires_in": 3600})
	})
	mux.HandleFunc("/mcp", func(rw http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		good := g.token != "" && r.Header.Get("Authorization") == "Bearer "+g.token
		g.mu.Unlock()
		if !good {
			rw.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+g.url+`/.well-known/oauth-protected-resource/mcp"`)
			rw.WriteHeader(http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(rw, r)
	})
	g.url = listen(t, mux)
	return g
}

func (g *guardedServer) fail(text string) {
	g.mu.Lock()
	g.problem = text
	g.mu.Unlock()
}

func TestOAuth(t *testing.T) {
	t.Parallel()
	g, kept := newGuarded(t), &grants{}
	w := setup(t, func(o *Options) { o.Grants = kept })
	server := store.MCPServer{ID: "s", Transport: store.MCPHTTP, URL: g.url + "/mcp", Credential: "oauth", Enabled: true}
	w.put(t, server)
	_, err := w.Tools(t.Context(), ann(), "s")
	kindOf(t, err, Unauthorized)
	kept.grant = Grant{ClientID: "client-1", AccessToken: "wrong"}
	_, err = w.Tools(t.Context(), ann(), "s")
	kindOf(t, err, Unauthorized)

	a, err := w.BeginAuthorization(t.Context(), ann(), Wish{Server: server, Redirect: callback})
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(a.URL)
	if q := u.Query(); err != nil || u.Path != "/authorize" || q.Get("client_id") != "client-1" || q.Get("resource") != g.url+"/mcp" || q.Get("scope") != "tools offline_access" ||
		q.Get("code_challenge_method") != "S256" || q.Get("state") != a.State || strings.Contains(a.URL, a.Verifier) {
		t.Errorf("got %s, %v", a.URL, err)
	}
	if _, err := a.Finish(t.Context(), w.options.HTTP, "code-1", "another", ""); err == nil {
		t.Error("an answer with another state was taken")
	}
	if _, err := a.Finish(t.Context(), w.options.HTTP, "code-1", a.State, "https://evil.example"); err == nil {
		t.Error("an answer of another server was taken")
	}
	if kept.grant, err = a.Finish(t.Context(), w.options.HTTP, "code-1", a.State, ""); err != nil || g.verifier != a.Verifier {
		t.Fatalf("got %v", err)
	}
	w.activate(t, "s")
	// The server no longer takes the token: many callers, one renewal, and nobody notices.
	g.mu.Lock()
	g.token = "revoked"
	g.mu.Unlock()
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := w.call(t, "s", "mutate", `{}`); err != nil {
				t.Errorf("call: %v (cause %v)", err, errors.Unwrap(err))
			}
		})
	}
	wg.Wait()
	if kept.saves != 1 || kept.grant.AccessToken != "access-2" || kept.grant.RefreshToken != "refresh-2" {
		t.Errorf("saved %d times, %+v", kept.saves, kept.grant)
	}
	// One that ends soon is renewed before it is used.
	kept.mu.Lock()
	kept.grant.Expires = time.Now().Add(time.Second).UnixMilli()
	kept.mu.Unlock()
	w.must(t, "s", "pid", `{}`)
	if kept.grant.AccessToken != "access-3" {
		t.Errorf("got %+v", kept.grant)
	}
	// When nothing helps, somebody has to authorize it.
	g.mu.Lock()
	g.token, g.refresh = "revoked", "revoked"
	g.mu.Unlock()
	kindOf(t, errOf(w.call(t, "s", "pid", `{}`)), Unauthorized)
	if g.problem != "" {
		t.Error(g.problem)
	}
}
