package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"tandem/api"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/identity"
	"tandem/route"
	"tandem/store"
	"tandem/story/storytest"
)

const (
	eventsPath = route.Prefix + "/executions/" + storytest.Execution + "/events"
	streamPath = route.Prefix + "/executions/" + storytest.Execution + "/stream"
)

// sent is one server-sent event, or a comment.
type sent struct{ id, event, data, comment string }

// events reads server-sent events until the answer ends.
func events(t testing.TB, body io.Reader) (list []sent) {
	t.Helper()
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 1<<20)
	var e sent
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			e.id = value
		case "event":
			e.event = value
		case "data":
			e.data = value
		case "retry":
			e.comment = "retry " + value
		case ":", "":
			if strings.HasPrefix(lines.Text(), ":") {
				e.comment = value
			} else if e != (sent{}) {
				list = append(list, e)
				e = sent{}
			}
		default:
			t.Errorf("line %q", lines.Text())
		}
	}
	return list
}

func (st *served) get(web *httptest.Server, path string, headers ...string) *http.Response {
	st.T.Helper()
	request, err := http.NewRequestWithContext(st.T.Context(), http.MethodGet, web.URL+path, nil)
	if err != nil {
		st.T.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := web.Client().Do(request)
	if err != nil {
		st.T.Fatal(err)
	}
	st.T.Cleanup(func() {
		if err := response.Body.Close(); err != nil {
			st.T.Error(err)
		}
	})
	return response
}

func TestEvents(t *testing.T) {
	t.Parallel()
	t.Run("TellsAndEnds", func(t *testing.T) {
		t.Parallel()
		st := newServed(t)
		web := st.web()
		response := st.get(web, eventsPath)
		if got := response.Header; got.Get("Content-Type") != "text/event-stream; charset=utf-8" || got.Get("Cache-Control") != "no-store" || got.Get("X-Accel-Buffering") != "no" {
			t.Errorf("headers %v", got)
		}
		storytest.PlayScene(st.Stage) // while it is being read
		all := st.all()
		var want []sent
		want = append(want, sent{comment: "retry 2000"})
		for _, f := range all {
			want = append(want, sent{f.ID(), f.Name, string(f.Body), ""})
		}
		want = append(want, sent{comment: "the execution has ended"})
		got := events(t, response.Body)
		// The stage is revived by row 19: a reader that came to row 18 before that has ended there.
		if n := len(got); n < 2 || got[n-1] != want[len(want)-1] || !slices.Equal(got[:n-1], want[:n-1]) {
			t.Errorf("events (-want +got):\n%s", cmp.Diff(want, got, cmp.AllowUnexported(sent{})))
		}
	})
	t.Run("GoesOnAfterTheLastEvent", func(t *testing.T) {
		t.Parallel()
		st := newServed(t)
		storytest.PlayScene(st.Stage)
		web := st.web()
		for _, words := range []string{"execution", "flow"} {
			got := events(t, st.get(web, eventsPath+"?after=3&vocabulary="+words, "Last-Event-ID", "20.1").Body)
			if len(got) != 3 || got[1].id != "20.2" {
				t.Errorf("%s: %v", words, got)
			}
		}
		if got := st.get(web, eventsPath, "Last-Event-ID", "20.2"); got.StatusCode != http.StatusNoContent {
			t.Errorf("after the end: %s", got.Status)
		}
		if got := events(t, st.get(web, eventsPath+"?after=19").Body); len(got) != 4 || got[1].id != "20.1" {
			t.Errorf("after=19: %v", got)
		}
	})
	t.Run("Refuses", func(t *testing.T) {
		t.Parallel()
		st := newServed(t)
		web := st.web()
		for path, status := range map[string]int{
			eventsPath + "?after=x":                http.StatusUnprocessableEntity,
			eventsPath + "?vocabulary=x":           http.StatusUnprocessableEntity,
			route.Prefix + "/executions/no/events": http.StatusNotFound,
			streamPath + "?after=1.x":              http.StatusUnprocessableEntity,
			route.Prefix + "/executions/no/stream": http.StatusUnprocessableEntity, // no handshake
		} {
			response := st.get(web, path)
			if response.StatusCode != status || response.Header.Get("Content-Type") != route.ProblemType {
				t.Errorf("%s: %s, %s", path, response.Status, response.Header.Get("Content-Type"))
			}
		}
		if got := st.get(web, eventsPath, "Last-Event-ID", "-1"); got.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("a bad Last-Event-ID: %s", got.Status)
		}
	})
	t.Run("ConnectionCanBeUsedAgain", func(t *testing.T) {
		t.Parallel()
		st := newServed(t)
		st.server.open.patience = 50 * time.Millisecond
		storytest.PlayScene(st.Stage)
		web := st.web()
		for range 3 {
			if got := events(t, st.get(web, eventsPath).Body); len(got) < 30 {
				t.Errorf("%d events", len(got))
			}
		}
	})
}

func TestEvents_KeepsTheConnectionAlive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := newServed(t)
		ctx, leave := context.WithCancel(route.As(t.Context(), storytest.User()))
		w := httptest.NewRecorder()
		left := make(chan struct{})
		go func() {
			defer close(left)
			st.server.Handler().ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, eventsPath, nil))
		}()
		time.Sleep(2*streamKeepAlive + time.Second) // of the test's own time
		leave()
		<-left
		got := events(t, w.Body)
		if diff := cmp.Diff([]sent{{comment: "retry 2000"}, {comment: "alive"}, {comment: "alive"}}, got, cmp.AllowUnexported(sent{})); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

func (st *served) dial(web *httptest.Server, path string) *websocket.Conn {
	st.T.Helper()
	conn, response, err := websocket.Dial(st.T.Context(), web.URL+path, &websocket.DialOptions{Subprotocols: []string{"tandem", "bearer.x"}})
	if err != nil {
		st.T.Fatal(err)
	}
	if response.Header.Get("Sec-WebSocket-Protocol") != "tandem" {
		st.T.Errorf("protocol %q", response.Header.Get("Sec-WebSocket-Protocol"))
	}
	conn.SetReadLimit(4 << 20)
	st.T.Cleanup(func() {
		if err := conn.CloseNow(); err != nil && !errors.Is(err, net.ErrClosed) {
			st.T.Log(err)
		}
	})
	return conn
}

// messages reads until the connection is closed.
func messages(t testing.TB, conn *websocket.Conn) (list []string, status websocket.StatusCode) {
	t.Helper()
	for {
		_, body, err := conn.Read(t.Context())
		if err != nil {
			return list, websocket.CloseStatus(err)
		}
		list = append(list, string(body))
	}
}

// superseded is a source of which nothing can be read any more once another program has taken over its database.
type superseded struct {
	*storytest.Stage
	gone atomic.Bool
}

// Rows implements [host.Source].
func (s *superseded) Rows(ctx context.Context, p identity.Principal, execution string, after uint64) iter.Seq2[host.Row, error] {
	if !s.gone.Load() {
		return s.Stage.Rows(ctx, p, execution, after)
	}
	return func(yield func(host.Row, error) bool) {
		yield(host.Row{}, fault.New(fault.Conflict, "the database has another version").WithCause(store.ErrBroken))
	}
}

func TestWebSocket(t *testing.T) {
	t.Parallel()
	t.Run("TellsTheSameAsEvents", func(t *testing.T) {
		t.Parallel()
		st := newServed(t)
		storytest.PlayScene(st.Stage)
		web := st.web()
		for _, words := range []string{"execution", "flow"} {
			got, status := messages(t, st.dial(web, streamPath+"?after=3.2&vocabulary="+words))
			hello := decode[api.Subscription](t, []byte(got[0]))
			if hello.SubscriptionID == "" || hello.ExecutionID != storytest.Execution || hello.Status != "finished" || hello.Seq != 2 {
				t.Errorf("first message %s", got[0])
			}
			var want []string
			for _, e := range events(t, st.get(web, eventsPath+"?after=3.2&vocabulary="+words).Body) {
				if e.id != "" {
					want = append(want, e.data)
				}
			}
			if diff := cmp.Diff(want, got[1:]); diff != "" || status != websocket.StatusNormalClosure {
				t.Errorf("%s: status %d, messages (-events +websocket):\n%s", words, status, diff)
			}
		}
	})
	t.Run("EndsWithTheServer", func(t *testing.T) {
		t.Parallel()
		st := newServed(t)
		st.Row(storytest.Plain(engine.ExecutionStarted{}))
		web := st.web()
		conn := st.dial(web, streamPath+"?after=1")
		for range 3 { // the subscription and two frames
			if _, _, err := conn.Read(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		response := st.get(web, eventsPath)
		ended := make(chan []sent)
		go func() { ended <- events(t, response.Body) }()
		closed := make(chan struct{})
		go func() { st.server.Close(); close(closed) }()
		if _, status := messages(t, conn); status != websocket.StatusGoingAway {
			t.Errorf("status %d", status)
		}
		<-closed
		if got := <-ended; len(got) != 4 || got[3].comment != "the server is stopping; connect again" {
			t.Errorf("events %v", got)
		}
		if got := st.get(web, eventsPath); got.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("a new one: %s", got.Status)
		}
	})
	t.Run("EndsWhenTheDatabaseIsNotOursAnyMore", func(t *testing.T) {
		t.Parallel()
		st := newServed(t)
		st.Row(storytest.Plain(engine.ExecutionStarted{}))
		source := &superseded{Stage: st.Stage}
		st.server.stories.Source = source
		web := st.web()
		conn, response := st.dial(web, streamPath+"?after=1"), st.get(web, eventsPath)
		for range 3 { // the subscription and two frames
			if _, _, err := conn.Read(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		source.gone.Store(true)
		st.Hub.Missed()
		if got, status := messages(t, conn); len(got) > 0 || status != websocket.StatusGoingAway {
			t.Errorf("status %d after %q", status, got)
		}
		if got := events(t, response.Body); got[len(got)-1].comment != "the server is stopping; connect again" {
			t.Errorf("events %v", got)
		}
	})
	t.Run("RefusesOtherSites", func(t *testing.T) {
		t.Parallel()
		st := newServed(t)
		web := st.web()
		conn, response, err := websocket.Dial(t.Context(), web.URL+streamPath, &websocket.DialOptions{HTTPHeader: http.Header{"Origin": {"https://elsewhere.example"}}})
		if err == nil {
			t.Fatal("accepted", conn.CloseNow())
		}
		if response.StatusCode != http.StatusForbidden {
			t.Errorf("%s", response.Status)
		}
	})
	t.Run("AReaderMayLeaveAndTalk", func(t *testing.T) {
		t.Parallel()
		st := newServed(t)
		st.Row(storytest.Plain(engine.ExecutionStarted{}))
		left := make(chan struct{})
		web := st.web(func(web *httptest.Server) {
			inside := web.Config.Handler
			web.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(left)
				inside.ServeHTTP(w, r)
			})
		})
		conn := st.dial(web, streamPath)
		if err := conn.Write(t.Context(), websocket.MessageText, []byte("hello")); err != nil {
			t.Fatal(err)
		}
		if _, _, err := conn.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(websocket.StatusNormalClosure, ""); err != nil {
			t.Logf("close: %v", err)
		}
		<-left
	})
}

func TestAuthorization(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		header http.Header
		want   string
	}{
		{http.Header{"Authorization": {"Bearer a"}, "Upgrade": {"websocket"}, "Sec-Websocket-Protocol": {"bearer.b"}}, "Bearer a"},
		{http.Header{"Upgrade": {"WebSocket"}, "Sec-Websocket-Protocol": {"tandem, bearer.b"}}, "Bearer b"},
		{http.Header{"Upgrade": {"websocket"}, "Sec-Websocket-Protocol": {"tandem", "bearer.c"}}, "Bearer c"},
		{http.Header{"Upgrade": {"websocket"}, "Sec-Websocket-Protocol": {"tandem"}}, ""},
		{http.Header{"Sec-Websocket-Protocol": {"bearer.b"}}, ""}, // not the handshake of a WebSocket
	} {
		if got := route.Authorization(&http.Request{Header: c.header}); got != c.want {
			t.Errorf("%v: %q, want %q", c.header, got, c.want)
		}
	}
}

// A reader that takes nothing harms nobody, and is given up.
func TestStream_StuckReader(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{"Events": eventsPath, "WebSocket": streamPath} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := newServed(t)
			st.Row(storytest.Plain(engine.ExecutionStarted{}))
			st.Row(st.Completes("start", "result", `{}`))
			st.Row(st.Opens("each", 1<<40))
			impatient := st.serve() // for the reader that is stuck; the other one may be slow
			impatient.open.patience = 200 * time.Millisecond
			defer impatient.Close()
			givenUp := make(chan struct{})
			web := st.web(func(web *httptest.Server) {
				web.Config.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
					if tcp, ok := conn.(*net.TCPConn); !ok || tcp.SetWriteBuffer(16<<10) != nil {
						t.Error("the connection's buffer cannot be set")
					}
					return ctx
				}
				inside := web.Config.Handler
				web.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Header.Get("X-Stuck") != "" {
						defer close(givenUp)
						impatient.Handler().ServeHTTP(w, r.WithContext(route.As(r.Context(), storytest.User())))
						return
					}
					inside.ServeHTTP(w, r)
				})
			})
			conn, err := net.Dial("tcp", strings.TrimPrefix(web.URL, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			if tcp, ok := conn.(*net.TCPConn); !ok || tcp.SetReadBuffer(16<<10) != nil {
				t.Fatal("the connection's buffer cannot be set")
			}
			defer func() {
				if err := conn.Close(); err != nil {
					t.Error(err)
				}
			}()
			upgrade := ""
			if path == streamPath {
				upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
			}
			if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nX-Stuck: yes\r\n%s\r\n", path, strings.TrimPrefix(web.URL, "http://"), upgrade); err != nil {
				t.Fatal(err)
			}
			good := st.dial(web, streamPath)
			counted := make(chan int)
			go func() {
				<-givenUp // it is slower than the patience with the other
				list, _ := messages(t, good)
				// It was late itself, and is told so of lines, which no row has.
				list = slices.DeleteFunc(list, func(m string) bool { return strings.Contains(m, `"node_logs_update"`) })
				counted <- len(list)
			}()
			payload := `"` + strings.Repeat("y", 30_000) + `"`
			for range 100 { // more than the buffers on the way take
				st.Row(st.Completes(st.Pending[len(st.Pending)-1].Activation, "result", payload))
			}
			<-givenUp
			st.Row(storytest.Plain(engine.CancelRequested{}))
			all := st.all()
			if n := <-counted; n != len(all)+1 {
				t.Errorf("the other reader got %d messages of %d", n, len(all)+1)
			}
		})
	}
}

// A thousand readers of one execution get every event.
func TestStream_ThousandReaders(t *testing.T) {
	t.Parallel()
	const readers = 1000
	st := newServed(t)
	web := st.web()
	begun := make(chan struct{}, readers)
	got := make(chan []string, readers)
	for range readers {
		go func() {
			conn, _, err := websocket.Dial(t.Context(), web.URL+streamPath, nil)
			if err != nil {
				t.Error(err)
				begun <- struct{}{}
				got <- nil
				return
			}
			if _, _, err := conn.Read(t.Context()); err != nil { // the subscription
				t.Error(err)
			}
			begun <- struct{}{}
			list, status := messages(t, conn)
			if status != websocket.StatusNormalClosure {
				t.Errorf("status %d", status)
			}
			got <- list
		}()
	}
	for range readers {
		<-begun
	}
	began := time.Now()
	st.Row(storytest.Plain(engine.ExecutionStarted{}))
	st.Row(st.Completes("start", "result", `{}`))
	st.Row(st.Opens("each", 5))
	for i := range 5 {
		st.Row(st.Completes(engine.ActivationID(fmt.Sprintf("each[%d]/work", i)), "result", `{"a":1}`))
	}
	st.Row(st.Fails("safe", fault.New(fault.Invalid, "enough")))
	st.Row(st.Completes("safe", "error", `{}`))
	st.Row(storytest.Plain(engine.CancelRequested{}))
	all := st.all()
	want := make([]string, len(all))
	for i, f := range all {
		want[i] = string(f.Body)
	}
	for range readers {
		if list := <-got; !cmp.Equal(want, list) {
			t.Fatalf("a reader got %d of %d:\n%s", len(list), len(want), cmp.Diff(want, list))
		}
	}
	t.Logf("%d events to %d readers in %v", len(all), readers, time.Since(began))
}
