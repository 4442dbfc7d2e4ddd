package gateway

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"tandem/fault"
)

// site is a gateway on a port, with an API per token.
type site struct {
	*HTTP
	url  string
	mu   sync.Mutex
	apis map[string]*fake
	web  *http.Client
}

func openSite(t *testing.T, o Options) *site {
	t.Helper()
	s := &site{apis: map[string]*fake{}, web: &http.Client{Transport: &http.Transport{}}}
	s.HTTP = NewHTTP(func(token string) (API, error) { return s.api(token), nil }, o)
	web := httptest.NewServer(s.HTTP)
	s.url = web.URL
	t.Cleanup(func() {
		s.Close()
		web.Close()
		s.web.CloseIdleConnections()
	})
	return s
}

// api is that of a token, which has a workflow of its own.
func (s *site) api(token string) *fake {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.apis[token] == nil {
		s.apis[token] = newFake()
		s.apis[token].deploy("of_"+token, `null`)
	}
	return s.apis[token]
}

type bearer struct {
	token string
	next  http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(r)
}

func (s *site) connect(t *testing.T, token, version string, o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o).Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint: s.url, HTTPClient: &http.Client{Transport: bearer{token, s.web.Transport}}, MaxRetries: -1,
	}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	return session
}

// send sends a message as it is.
func (s *site) send(t *testing.T, token, session, method, body string) (*http.Response, string) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), method, s.url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Accept", "application/json, text/event-stream")
	if token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	if session != "" {
		q.Header.Set(headerSession, session)
	}
	r, err := s.web.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r, string(text)
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

func TestHTTP_Callers(t *testing.T) {
	t.Parallel()
	s := openSite(t, Options{})
	for _, version := range []string{"2025-06-18", newest} {
		for _, token := range []string{"ann", "bob"} {
			c := s.connect(t, token, version, nil)
			list, err := c.ListTools(t.Context(), nil)
			if err != nil || len(list.Tools) != 3 || list.Tools[2].Name != "of_"+token {
				t.Errorf("%s %s: %v %v", version, token, list, err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	// A session is of no use with another token, and neither is one that nobody has opened.
	r, _ := s.send(t, "ann", "", http.MethodPost, initialize)
	id := r.Header.Get(headerSession)
	if r.StatusCode != 200 || id == "" {
		t.Fatalf("initialize: %s", r.Status)
	}
	const list = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	for token, want := range map[string]int{"ann": 200, "bob": 404, "": 401} {
		if r, text := s.send(t, token, id, http.MethodPost, list); r.StatusCode != want {
			t.Errorf("with the session of ann, %q: %s %s", token, r.Status, text)
		}
	}
	if r, _ := s.send(t, "bob", id, http.MethodDelete, ""); r.StatusCode != 404 {
		t.Errorf("bob ends ann's session: %s", r.Status)
	}
	if r, _ := s.send(t, "ann", id, http.MethodDelete, ""); r.StatusCode != 204 {
		t.Errorf("ann ends her session: %s", r.Status)
	}
	if r, _ := s.send(t, "ann", id, http.MethodPost, list); r.StatusCode != 404 {
		t.Errorf("an ended session: %s", r.Status)
	}
}

// Of more sessions than a caller may have, the one ends that was not used for the longest time.
func TestHTTP_SessionsAreBounded(t *testing.T) {
	t.Parallel()
	s := openSite(t, Options{})
	const ping = `{"jsonrpc":"2.0","id":9,"method":"ping"}`
	var ids []string
	for range maxSessions {
		r, _ := s.send(t, "ann", "", http.MethodPost, initialize)
		ids = append(ids, r.Header.Get(headerSession))
	}
	for _, id := range ids[1:] {
		s.send(t, "ann", id, http.MethodPost, ping)
	}
	s.send(t, "ann", ids[0], http.MethodPost, ping) // the second one is now the oldest
	for range 3 {
		if r, text := s.send(t, "ann", "", http.MethodPost, initialize); r.StatusCode != 200 {
			t.Fatalf("%s %s", r.Status, text)
		}
	}
	for n, id := range ids {
		want := 200
		if n >= 1 && n <= 3 {
			want = 404
		}
		if r, _ := s.send(t, "ann", id, http.MethodPost, ping); r.StatusCode != want {
			t.Errorf("session %d: %s, want %d", n, r.Status, want)
		}
	}
}

func TestHTTP_CallersAreBounded(t *testing.T) {
	t.Parallel()
	s := openSite(t, Options{})
	r, _ := s.send(t, "keeps", "", http.MethodPost, initialize)
	id := r.Header.Get(headerSession)
	for n := range maxCallers + 10 {
		c, done, err := s.enter("caller"+string(rune('a'+n%26))+strings.Repeat("x", n/26), "")
		if err != nil || c == nil {
			t.Fatal(err)
		}
		done()
	}
	s.HTTP.mu.Lock()
	count := len(s.callers)
	s.HTTP.mu.Unlock()
	if count > maxCallers {
		t.Errorf("%d callers", count)
	}
	if r, _ := s.send(t, "keeps", id, http.MethodPost, `{"jsonrpc":"2.0","id":9,"method":"ping"}`); r.StatusCode != 200 {
		t.Errorf("one with a session was forgotten: %s", r.Status)
	}
}

// Closing ends what waits and what is streamed, in both ways that the protocol knows; see also the check for goroutines at the end.
func TestHTTP_Close(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2025-06-18", newest} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			s := openSite(t, Options{})
			began := make(chan *fakeRun, 10)
			s.api("ann").started = func(r *fakeRun) { began <- r }
			c := s.connect(t, "ann", version, &mcp.ClientOptions{ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {}})
			ended := make(chan string, 3)
			for range 3 {
				go func() {
					r, err := c.CallTool(context.WithoutCancel(t.Context()), &mcp.CallToolParams{Name: "of_ann"})
					if err != nil {
						ended <- err.Error()
						return
					}
					ended <- textOf(r)
				}()
			}
			for range 3 {
				<-began
			}
			s.Close()
			for range 3 {
				<-ended
			}
			if r, _ := s.send(t, "ann", "", http.MethodPost, initialize); r.StatusCode != http.StatusServiceUnavailable {
				t.Errorf("after the end: %s", r.Status)
			}
			if err := c.Close(); err != nil {
				t.Logf("the session was gone before: %v", err)
			}
		})
	}
}

// A question reaches the user of a client with a session while the call waits, and that of one without as the call's result; changes of the
// tools reach both.
func TestHTTP_AsksAndTells(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2025-06-18", newest} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			s := openSite(t, Options{Look: 10 * time.Millisecond})
			f := s.api("ann")
			f.started = func(r *fakeRun) { r.ask(confirmation("q1")) }
			f.answered = func(r *fakeRun, id string, answer json.RawMessage) error {
				r.settle(id)
				r.finish(string(answer))
				return nil
			}
			changed, told := make(chan struct{}, 10), make(chan string, 100)
			c := s.connect(t, "ann", version, &mcp.ClientOptions{
				ElicitationHandler:          accepts(map[string]any{"confirm": true}),
				ToolListChangedHandler:      func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
				ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { told <- r.Params.Message },
			})
			p := &peer{ClientSession: c}
			if r, o := p.call(t, "of_ann", `{}`); r.IsError || string(o.Outputs["end"]) != `{"confirm":true}` || len(f.starts) != 1 {
				t.Errorf("%+v %s", o, textOf(r))
			}
			if text := <-told; !strings.Contains(text, "exec_1") {
				t.Errorf("progress %q", text)
			}
			f.deploy("another", `null`)
			<-changed
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestHTTP_Refused(t *testing.T) {
	t.Parallel()
	s := openSite(t, Options{})
	s.api("bad").refusal = fault.New(fault.Unauthorized, "the token is not known")
	if r, text := s.send(t, "bad", "", http.MethodPost, initialize); r.StatusCode != http.StatusBadGateway || !strings.Contains(text, "not known") {
		t.Errorf("%s %s", r.Status, text)
	}
}
