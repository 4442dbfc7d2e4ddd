package mcp

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

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
