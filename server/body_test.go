package server

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"

	"tandem/fault"
	"tandem/human"
	"tandem/identity"
	"tandem/respond"
	"tandem/route"
	"tandem/store"
)

// manyKeys is an object with so many names.
func manyKeys(n int) string {
	var b strings.Builder
	b.WriteByte('{')
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"k` + strconv.Itoa(i) + `":0`)
	}
	b.WriteByte('}')
	return b.String()
}

// filled fills the parameters of a path.
func filled(path, id string) string {
	for strings.Contains(path, "{") {
		before, rest, _ := strings.Cut(path, "{")
		_, after, _ := strings.Cut(rest, "}")
		path = before + id + after
	}
	return path
}

// Every door that takes a body refuses one with too many names, and says how many it takes.
func TestBody_Keys(t *testing.T) {
	t.Parallel()
	g := &fakeGateway{}
	w := setup(t, func(o *Options) { o.Gateway = func(http.Handler) (Gateway, error) { return g, nil } })
	many, definition := manyKeys(route.MaxKeys+1), manyKeys(route.MaxDefinitionKeys+1)
	doors := 0
	for _, op := range operations(w.server) {
		if op.RequestBody == nil {
			continue
		}
		doors++
		body, limit := many, route.MaxKeys
		if strings.HasSuffix(op.Path, "/workflows") || strings.HasSuffix(op.Path, "/workflows/validate") || op.OperationID == "update-workflow" || op.OperationID == "replace-workflow" || op.OperationID == "put-workflow" {
			body, limit = definition, route.MaxDefinitionKeys
		}
		p := w.admin(op.Method, filled(op.Path, "x"), body).problem(t, http.StatusRequestEntityTooLarge, fault.TooLarge)
		if !strings.Contains(p.Detail, strconv.Itoa(limit)) {
			t.Errorf("%s %s does not name the limit: %s", op.Method, op.Path, p.Detail)
		}
	}
	if doors < 20 {
		t.Errorf("only %d operations take a body; this test sees too little", doors)
	}
	address, err := CallbackURL("", w.ring, Callback{Workspace: "a", Execution: "exec_gone", Activation: "n", Expires: time.Now().Add(time.Hour).UnixMilli()})
	if err != nil {
		t.Fatal(err)
	}
	w.ask("", "POST", address, strings.NewReader(many), func(r *http.Request) { r.Header.Set("Content-Type", "application/json") }).problem(t, http.StatusRequestEntityTooLarge, fault.TooLarge)
	var form strings.Builder
	for i := range route.MaxKeys {
		form.WriteString("k" + strconv.Itoa(i) + "=&")
	}
	w.ask("", "POST", address, strings.NewReader(form.String()), asBrowser("application/x-www-form-urlencoded")).problem(t, http.StatusUnprocessableEntity, fault.InvalidInput)
	asked := w.asks("operator-user", human.PurposeNode, human.Request{Type: human.Input, Title: "t", Fields: []human.Field{{Name: "n", Label: "N"}}})
	w.ask("", "POST", w.link(asked, "user:operator-user"), strings.NewReader(form.String()), asBrowser("application/x-www-form-urlencoded")).want(t, http.StatusUnprocessableEntity)
	// As many as it takes, it takes.
	w.admin("POST", route.Prefix+"/users", `{"name":"x","roles":["viewer"]}`).want(t, 201)
	p := w.admin("POST", route.Prefix+"/users", `{"name":"x","roles":["viewer"],"surprise":`+manyKeys(route.MaxKeys-4)+`}`).problem(t, http.StatusUnprocessableEntity, fault.InvalidInput)
	if !strings.Contains(p.Detail, "surprise") {
		t.Errorf("it was refused for something else: %s", p.Detail)
	}
}

// fill takes all the room there is and returns what gives it back.
func fill(t *testing.T, room *semaphore.Weighted, size int64) func() {
	t.Helper()
	if err := room.Acquire(t.Context(), size); err != nil { // a request that was just answered may still be leaving
		t.Fatal(err)
	}
	return func() { room.Release(size) }
}

// A body that there is no room for is put off, at every door; small ones are not, and nobody takes room from the others.
func TestBody_InFlight(t *testing.T) {
	t.Parallel()
	g := &fakeGateway{}
	w := setup(t, func(o *Options) { o.Gateway = func(http.Handler) (Gateway, error) { return g, nil } })
	w.server.Bodies.Patience = time.Millisecond
	if err := w.stores.Credentials.Create(t.Context(), identity.System("a"), store.Credential{ID: "cred", Name: "bot", Type: "slack_bot", Sealed: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	large := `{"name":"x","roles":["viewer"]}` + strings.Repeat(" ", 1<<20)
	address, err := CallbackURL("", w.ring, Callback{Workspace: "a", Execution: "exec_gone", Activation: "n", Expires: time.Now().Add(time.Hour).UnixMilli()})
	if err != nil {
		t.Fatal(err)
	}
	asked := w.asks("operator-user", human.PurposeNode, human.Request{Type: human.Input, Title: "t", Fields: []human.Field{{Name: "paper", Label: "Paper", Type: "file"}}})
	link := w.link(asked, "user:operator-user")
	token := w.tokens[identity.Admin]
	put := func(got answer) {
		t.Helper()
		if got.want(t, http.StatusServiceUnavailable); got.header.Get("Retry-After") == "" {
			t.Errorf("no Retry-After: %s", got.body)
		}
	}
	unsized := func(text string) io.Reader { return struct{ io.Reader }{strings.NewReader(text)} }

	give := fill(t, w.server.Bodies.Users, route.InFlightBytes)
	put(w.admin("POST", route.Prefix+"/users", large))
	put(w.ask(token, "POST", route.Prefix+"/users", unsized(large), nil))
	put(w.call(token, "POST", "/mcp", large))
	w.admin("POST", route.Prefix+"/users", `{"name":"small","roles":["viewer"]}`).want(t, 201)
	w.ask("", "POST", address, strings.NewReader(large), nil).want(t, http.StatusGone) // strangers have room of their own
	give()
	w.admin("POST", route.Prefix+"/users", large).want(t, 201)

	give = fill(t, w.server.Bodies.Strangers, route.InFlightStrangers)
	put(w.ask("", "POST", address, strings.NewReader(large), nil))
	put(w.sendFiles(link, nil, "q0", "x", io.LimitReader(endless{}, 1<<20)))
	put(w.ask("", "POST", "/channels/knock/a/cred", strings.NewReader(large[:1<<20-1]), func(r *http.Request) { r.Header.Set("X-Word", "sesame") }))
	w.admin("POST", route.Prefix+"/users", large).want(t, 201)
	give()
	w.sendFiles(link, nil, "q0", "x", io.LimitReader(endless{}, respond.MaxBody+10<<20)).want(t, http.StatusRequestEntityTooLarge)
	w.sendFiles(link, nil, "q0", "x", io.LimitReader(endless{}, 1<<20)).want(t, 200)

	// Nothing of it is kept after the answers.
	fill(t, w.server.Bodies.Users, route.InFlightBytes)
	fill(t, w.server.Bodies.Strangers, route.InFlightStrangers)
}

// Who waits for an execution keeps no room, and its request goes on.
func TestBodyDone(t *testing.T) {
	t.Parallel()
	w := setup(t)
	s := w.server
	// Registered late, which only a test may do.
	s.Public("POST /wait", func(out http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Error(err)
		}
		if s.Bodies.Users.TryAcquire(route.InFlightBytes) {
			t.Error("a large body takes no room")
		}
		if _, err := s.await(r.Context(), identity.System("a"), "exec_none", time.Minute, nil); fault.CodeOf(err) == "" {
			t.Error("there is such an execution")
		}
		if !s.Bodies.Users.TryAcquire(route.InFlightBytes) {
			t.Error("who waits holds room")
		}
	})
	w.call("", "POST", "/wait", strings.Repeat("x", 1<<20)).want(t, 200)
}

// logLines is a log that can be read.
type logLines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// A client that leaves is nothing that an operator has to look at, and counts apart.
func TestClientLeaves(t *testing.T) {
	t.Parallel()
	log := &logLines{}
	w := setup(t, func(o *Options) {
		o.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	s := w.server
	entered := make(chan struct{})
	// Registered late, which only a test may do: something that takes as long as the client stays.
	s.Public("GET /slow", func(out http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
		s.Refuse(out, r, s.Problem(r.Context(), identity.Principal{}, fmt.Errorf("read the store: %w", r.Context().Err())))
	})
	served := make(chan struct{}, 10)
	web := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		defer func() { served <- struct{}{} }()
		s.Handler().ServeHTTP(out, r)
	}))
	defer web.Close()
	dial := func(text string) net.Conn {
		t.Helper()
		conn, err := net.Dial("tcp", web.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	conn := dial("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
	<-entered
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	<-served
	// In the middle of a body.
	if err := dial("POST /api/v1/users HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + w.tokens[identity.Admin] + "\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{\"name\":").Close(); err != nil {
		t.Fatal(err)
	}
	<-served
	if text := log.String(); strings.Contains(text, "level=ERROR") || strings.Contains(text, "level=WARN") || !strings.Contains(text, "level=DEBUG") {
		t.Errorf("the log says:\n%s", text)
	}
	numbers := w.admin("GET", "/metrics", "").want(t, 200).body
	for _, want := range []string{
		`tandem_http_clients_left_total{method="GET",route="/slow"} 1`, `tandem_http_clients_left_total{method="POST",route="/api/v1/users"} 1`,
		`tandem_http_request_duration_seconds_count{code="499",method="GET",route="/slow"} 1`, `tandem_http_request_duration_seconds_count{code="499",method="POST",route="/api/v1/users"} 1`,
	} {
		if !strings.Contains(numbers, want) {
			t.Errorf("no %s", want)
		}
	}
	// A failure of the server's own is told although the client has left.
	again := make(chan struct{})
	s.Public("GET /broken", func(out http.ResponseWriter, r *http.Request) {
		close(again)
		<-r.Context().Done()
		if p := s.Problem(r.Context(), identity.Principal{}, store.ErrBroken); p.Status != http.StatusServiceUnavailable || !strings.Contains(log.String(), "level=ERROR") {
			t.Errorf("%+v", p.Fault)
		}
	})
	conn = dial("GET /broken HTTP/1.1\r\nHost: x\r\n\r\n")
	<-again
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	<-served
}
