package gateway

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func kept(t *testing.T, e *events, session, stream string, after int) ([]string, error) {
	t.Helper()
	var list []string
	for data, err := range e.After(t.Context(), session, stream, after) {
		if err != nil {
			return list, err
		}
		list = append(list, string(data))
	}
	return list, nil
}

func TestEvents(t *testing.T) {
	t.Parallel()
	e := newEvents()
	send := func(session, stream string, data []byte) {
		t.Helper()
		if err := errors.Join(e.Open(t.Context(), session, stream), e.Append(t.Context(), session, stream, data)); err != nil {
			t.Fatal(err)
		}
	}
	want := func(session, stream string, after, count int) {
		t.Helper()
		if list, err := kept(t, e, session, stream, after); err != nil || len(list) != count {
			t.Errorf("%s %q after %d: %d, %v", session, stream, after, len(list), err)
		}
	}
	gone := func(session, stream string, after int) {
		t.Helper()
		if list, err := kept(t, e, session, stream, after); !errors.Is(err, mcp.ErrEventsPurged) || len(list) != 0 {
			t.Errorf("%s %q after %d: %d, %v", session, stream, after, len(list), err)
		}
	}
	send("a", "", []byte("changed"))
	for i := range 3 {
		send("a", "one", []byte(fmt.Sprint(i)))
	}
	want("a", "one", 0, 2)
	want("a", "one", 2, 0)
	gone("b", "one", 0) // a stream belongs to its session
	gone("a", "two", 0)
	// Of a long stream the beginning is forgotten, which somebody who was there is told, and who begins to listen is not.
	for range maxStreamEvents {
		send("a", "", []byte("changed"))
	}
	send("a", "", []byte("changed"))
	gone("a", "", 0)
	want("a", "", 1, maxStreamEvents)
	want("a", "", -1, maxStreamEvents)
	// Of many streams, or of much on them, the oldest are.
	for i := range maxStreams {
		send("b", fmt.Sprint(i), []byte("x"))
	}
	gone("a", "one", 0)
	want("b", "0", -1, 1)
	send("c", "large", bytes.Repeat([]byte("x"), maxStreamBytes-maxStreamEvents*len("changed")-2))
	gone("b", "0", -1)
	want("b", fmt.Sprint(maxStreams-1), -1, 1)
	want("c", "large", -1, 1)
	want("a", "", -1, maxStreamEvents)
	for _, session := range []string{"a", "b", "c"} {
		if err := e.SessionClosed(t.Context(), session); err != nil {
			t.Fatal(err)
		}
	}
	if len(e.streams) != 0 || len(e.opened) != 0 || e.bytes != 0 {
		t.Errorf("%d streams, %d opened, %d bytes are left", len(e.streams), len(e.opened), e.bytes)
	}
	if err := e.Append(t.Context(), "a", "one", []byte("late")); err != nil || e.bytes != 0 {
		t.Errorf("%v, %d bytes", err, e.bytes)
	}
}

// A stream begins with an event that has an id and nothing else, and with when to come back; a client whose connection broke takes it up
// there, and hears what it has missed.
func TestHTTP_Resumed(t *testing.T) {
	t.Parallel()
	s := openSite(t, Options{})
	first, _ := s.send(t, "ann", "", http.MethodPost, strings.Replace(initialize, "2025-06-18", "2025-11-25", 1))
	session := first.Header.Get(headerSession)
	begun := make(chan *fakeRun, 1)
	s.api("ann").started = func(r *fakeRun) { begun <- r }
	ask := func(method, after, body string) *http.Response {
		t.Helper()
		q, err := http.NewRequestWithContext(t.Context(), method, s.url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": "Bearer ann",
			headerSession: session, headerVersion: "2025-03-26", "Last-Event-ID": after} { // what counts is how the session was opened
			if value != "" {
				q.Header.Set(name, value)
			}
		}
		r, err := s.web.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	call := ask(http.MethodPost, "", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"of_ann","arguments":{}}}`)
	id, retry := "", ""
	for lines := bufio.NewScanner(call.Body); lines.Scan() && lines.Text() != ""; {
		key, value, _ := strings.Cut(lines.Text(), ": ")
		switch key {
		case "id":
			id = value
		case "retry":
			retry = value
		case "data":
			if value != "" {
				t.Errorf("the first event has %q", value)
			}
		}
	}
	if id == "" || retry != "1000" {
		t.Fatalf("the first event has id %q and retry %q", id, retry)
	}
	run := <-begun
	if err := call.Body.Close(); err != nil {
		t.Fatal(err)
	}
	run.finish(`"done meanwhile"`)
	again := ask(http.MethodGet, id, "")
	for again.StatusCode == http.StatusConflict { // the server has not noticed yet that the client has gone
		if err := again.Body.Close(); err != nil {
			t.Fatal(err)
		}
		again = ask(http.MethodGet, id, "")
	}
	defer again.Body.Close()
	text, err := io.ReadAll(again.Body)
	if err != nil || !strings.Contains(string(text), "done meanwhile") {
		t.Errorf("%s %v", text, err)
	}
}

// leaving is a client whose connection breaks as soon as something was sent to it.
type leaving struct {
	*httptest.ResponseRecorder
	leave context.CancelFunc
}

// Write implements http.ResponseWriter.
func (l leaving) Write(b []byte) (int, error) {
	defer l.leave()
	return l.ResponseRecorder.Write(b)
}

// A client whose connection breaks while a session is opened takes the answer up with the next one: the session is not lost with the
// connection.
func TestHTTP_OpenedWhileTheConnectionBreaks(t *testing.T) {
	t.Parallel()
	s := openSite(t, Options{})
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	ask := func(ctx context.Context, method, body string) *http.Request {
		r := httptest.NewRequestWithContext(ctx, method, "/mcp", strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer one")
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		return r
	}
	opened := leaving{httptest.NewRecorder(), leave}
	s.ServeHTTP(opened, ask(ctx, http.MethodPost, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`))
	_, position, primed := strings.Cut(opened.Body.String(), "id: ")
	position, _, _ = strings.Cut(position, "\n")
	if !primed || !strings.HasSuffix(position, "_0") {
		t.Fatalf("the stream begins with %q", opened.Body)
	}
	resumed := ask(t.Context(), http.MethodGet, "")
	resumed.Header.Set("Mcp-Session-Id", opened.Header().Get("Mcp-Session-Id"))
	resumed.Header.Set("Last-Event-Id", position)
	answer := httptest.NewRecorder()
	s.ServeHTTP(answer, resumed)
	if answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), `"serverInfo"`) {
		t.Errorf("the stream that was taken up again has %d %q", answer.Code, answer.Body)
	}
}
