package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tandem/identity"
	"tandem/store"
)

// listen serves a handler until the test ends.
func listen(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

func streamable(t *testing.T, o *sdk.StreamableHTTPOptions) http.Handler {
	s := newServer()
	t.Cleanup(func() { // sessions that began with a question about the version are nobody's
		for session := range s.Sessions() {
			if err := session.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, o)
}

func TestHTTP_Transports(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		transport string
		handler   http.Handler
	}{
		"Streamable": {store.MCPHTTP, streamable(t, nil)},
		"JSON":       {store.MCPHTTP, streamable(t, &sdk.StreamableHTTPOptions{JSONResponse: true})},
		"Stateless":  {store.MCPHTTP, streamable(t, &sdk.StreamableHTTPOptions{Stateless: true})},
		"SSE":        {store.MCPSSE, sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return newServer() }, nil)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			var wrong atomic.Int64
			w.put(t, store.MCPServer{ID: "s", Transport: c.transport, Enabled: true,
				Headers: map[string]store.MCPValue{"X-Key": {Credential: "c", Field: "token", Prefix: "k "}},
				URL: listen(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					if r.Header.Get("X-Key") != "k s3cret-value" {
						wrong.Add(1)
					}
					c.handler.ServeHTTP(rw, r)
				}))})
			w.activate(t, "s")
			var wg sync.WaitGroup
			for i := range 50 {
				wg.Go(func() {
					if out, err := w.call(t, "s", "echo", fmt.Sprintf(`{"text":"%d"}`, i)); err != nil || out.Text != fmt.Sprint(i) {
						t.Errorf("got %+v, %v", out, err)
					}
				})
			}
			wg.Wait()
			if out := w.must(t, "s", "huge", `{"n":2000000}`); len(out.Text) != 2000000 {
				t.Errorf("got %d bytes", len(out.Text))
			}
			kindOf(t, errOf(w.call(t, "s", "fail", `{}`)), ToolFailed)
			if wrong.Load() != 0 {
				t.Errorf("%d requests without the header", wrong.Load())
			}
		})
	}
}

// rawHTTP answers as the older protocol does, with what call returns for a tool.
func rawHTTP(call func(rw http.ResponseWriter, r *http.Request, id string)) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if r.Method != http.MethodPost || err != nil || json.Unmarshal(body, &m) != nil {
			rw.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		say := func(text string) {
			rw.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(rw, text) // the client may have gone
		}
		switch m.Method {
		case "initialize":
			say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}}`, m.ID))
		case "tools/list":
			say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[%s,{"name":"once"}]}}`, m.ID, oddTool))
		case "tools/call":
			call(rw, r, string(m.ID))
		case "notifications/initialized":
			rw.WriteHeader(http.StatusAccepted)
		default:
			say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, m.ID))
		}
	})
}

func TestHTTP_HostileServers(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T, call func(rw http.ResponseWriter, r *http.Request, id string)) *world {
		w := setup(t)
		w.put(t, store.MCPServer{ID: "s", Transport: store.MCPHTTP, Enabled: true, URL: listen(t, rawHTTP(call))})
		w.activate(t, "s")
		return w
	}
	t.Run("KeepsNumbers", func(t *testing.T) {
		t.Parallel()
		for _, events := range []bool{false, true} {
			w := start(t, func(rw http.ResponseWriter, _ *http.Request, id string) {
				answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[],"structuredContent":{"n":12345678901234567890}}}`, id)
				if events {
					rw.Header().Set("Content-Type", "text/event-stream")
					answer = ": hello\r\nevent: message\r\ndata: " + answer + "\r\n\r\n"
				} else {
					rw.Header().Set("Content-Type", "application/json; charset=utf-8")
				}
				_, _ = io.WriteString(rw, answer) // the client may have gone
			})
			if out := w.must(t, "s", "odd", `{}`); string(out.Structured) != `{"n":12345678901234567890}` {
				t.Errorf("got %s", out.Structured)
			}
		}
	})
	t.Run("ClosesInTheCall", func(t *testing.T) {
		t.Parallel()
		for tool, want := range map[string]int64{"odd": 2, "once": 1} {
			var calls atomic.Int64
			w := start(t, func(rw http.ResponseWriter, _ *http.Request, _ string) {
				calls.Add(1)
				panic(http.ErrAbortHandler)
			})
			e := kindOf(t, errOf(w.call(t, "s", tool, `{}`)), Closed)
			if !e.Sent || e.Unknown() != (tool == "once") || calls.Load() != want {
				t.Errorf("%s: got %+v after %d calls", tool, e, calls.Load())
			}
		}
	})
	t.Run("EndsTheStream", func(t *testing.T) {
		t.Parallel()
		w := start(t, func(rw http.ResponseWriter, _ *http.Request, _ string) {
			rw.Header().Set("Content-Type", "text/event-stream")
			rw.WriteHeader(http.StatusOK)
		})
		if e := kindOf(t, errOf(w.call(t, "s", "once", `{}`)), Closed); !e.Unknown() {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("LeadsElsewhere", func(t *testing.T) {
		t.Parallel()
		var reached atomic.Int64
		other := listen(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
		w := start(t, func(rw http.ResponseWriter, r *http.Request, _ string) {
			http.Redirect(rw, r, other, http.StatusTemporaryRedirect)
		})
		kindOf(t, errOf(w.call(t, "s", "odd", `{}`)), Protocol)
		if reached.Load() != 0 {
			t.Error("another host was reached")
		}
	})
	t.Run("AnswersWithoutEnd", func(t *testing.T) {
		t.Parallel()
		w := start(t, func(rw http.ResponseWriter, _ *http.Request, id string) {
			rw.Header().Set("Content-Type", "application/json")
			for chunk := strings.Repeat(" ", 1<<20); ; {
				if _, err := io.WriteString(rw, chunk); err != nil {
					return
				}
			}
		})
		kindOf(t, errOf(w.call(t, "s", "once", `{}`)), TooLarge)
	})
	t.Run("Statuses", func(t *testing.T) {
		t.Parallel()
		for status, want := range map[int]struct {
			kind Kind
			sent bool
		}{401: {Unauthorized, false}, 403: {Unauthorized, false}, 429: {Protocol, false}, 500: {Protocol, true}, 503: {Protocol, false}, 504: {Protocol, true}} {
			w := start(t, func(rw http.ResponseWriter, _ *http.Request, _ string) { rw.WriteHeader(status) })
			if e := kindOf(t, errOf(w.call(t, "s", "once", `{}`)), want.kind); e.Sent != want.sent || e.Status != status || e.Unknown() != (status == 504) {
				t.Errorf("%d: got %+v", status, e)
			}
		}
	})
	t.Run("Silent", func(t *testing.T) {
		t.Parallel()
		gone := make(chan struct{})
		w := start(t, func(_ http.ResponseWriter, r *http.Request, _ string) {
			<-r.Context().Done()
			close(gone)
		})
		_, err := w.Call(t.Context(), ann(), Call{Server: "s", Tool: "once", Silence: 100 * time.Millisecond})
		if e := kindOf(t, err, Timeout); !e.Unknown() {
			t.Errorf("got %+v", e)
		}
		<-gone
	})
	t.Run("SessionsAreEnded", func(t *testing.T) {
		t.Parallel()
		inner := rawHTTP(func(rw http.ResponseWriter, _ *http.Request, id string) {
			rw.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(rw, `{"jsonrpc":"2.0","id":%s,"result":{}}`, id) // the client may have gone
		})
		ended := make(chan string, 1)
		w := setup(t)
		w.put(t, store.MCPServer{ID: "s", Transport: store.MCPHTTP, Enabled: true, URL: listen(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodDelete {
				ended <- r.Header.Get("Mcp-Session-Id")
				return
			}
			rw.Header().Set("Mcp-Session-Id", "session-1")
			inner.ServeHTTP(rw, r)
		}))})
		w.activate(t, "s")
		w.must(t, "s", "odd", `{}`)
		w.Close()
		if id := <-ended; id != "session-1" {
			t.Errorf("ended %q", id)
		}
	})
	t.Run("Unreachable", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		w.put(t, store.MCPServer{ID: "s", Transport: store.MCPHTTP, Enabled: true, URL: "http://127.0.0.1:1/"})
		_, err := w.Tools(t.Context(), ann(), "s")
		if e := kindOf(t, err, Closed); e.Sent {
			t.Errorf("got %+v", e)
		}
	})
}

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

	a, err := BeginAuthorization(t.Context(), w.options.HTTP, server, "https://tandem.example/callback", Grant{}, nil)
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
