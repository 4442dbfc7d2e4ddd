package app

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/jackc/pgx/v5"

	"tandem/cluster"
	"tandem/store/postgres"
	"tandem/store/postgres/postgrestest"
)

// waitingLog tells each time that a worker says why it waits.
type waitingLog struct {
	slog.Handler
	told chan struct{}
}

// Handle implements [slog.Handler].
func (l waitingLog) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "nothing runs here yet" {
		l.told <- struct{}{}
	}
	return nil
}

// Enabled implements [slog.Handler].
func (waitingLog) Enabled(context.Context, slog.Level) bool { return true }

// TestWork_AnotherVersion: a worker whose database has another version waits for its upgrade, and says why.
func TestWork_AnotherVersion(t *testing.T) {
	t.Parallel()
	address := postgrestest.Start(t).Database(t)
	owner, err := postgres.OpenOwned(t.Context(), postgres.Options{URL: address, Shared: true})
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if _, err := conn.Exec(t.Context(), `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, true)`); err != nil {
		t.Fatal(err)
	}
	engine, err := cluster.Connect(cluster.Options{}, true)
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	told := make(chan struct{}, 10)
	w := &workplace{version: "test", log: slog.New(waitingLog{slog.DiscardHandler, told}), ready: func(context.Context) error { return nil }}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		i, err := openWorker(ctx, w, Options{Dir: t.TempDir(), Database: address, Cluster: engine, MasterKey: strings.Repeat("A", 43) + "="})
		if i != nil {
			t.Error("it works on a database of another version")
		}
		ended <- err
	}()
	select {
	case <-told:
	case err := <-ended:
		t.Fatalf("it does not wait: %v", err)
	}
	answer := httptest.NewRecorder()
	w.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	if answer.Code != http.StatusServiceUnavailable || !strings.Contains(answer.Body.String(), "the database has version 99999 and this program is for version") {
		t.Errorf("/readyz says %d: %s", answer.Code, answer.Body)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// reasonLog tells why streams are not answered any more.
type reasonLog struct {
	slog.Handler
	told chan string
}

// Handle implements [slog.Handler].
func (l reasonLog) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "streams are forwarded to the server that owns the database" {
		r.Attrs(func(a slog.Attr) bool {
			l.told <- a.Value.String()
			return true
		})
	}
	return nil
}

// Enabled implements [slog.Handler].
func (reasonLog) Enabled(context.Context, slog.Level) bool { return true }

// TestStreams_AnotherVersion: a server that stands by ends the streams that it answers when the database gets another version, and lets no more in. Nobody is
// told that the execution has ended, it says why, and it does not begin anew.
func TestStreams_AnotherVersion(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // what does not come fails
	defer cancel()
	address, dir := postgrestest.Start(t).Database(t), t.TempDir()
	owner := startServer(t, ServeOptions{Dir: dir, Database: address})
	owner.want(201, "POST", "/api/v1/workflows", strings.Replace(napFlow, "SECONDS", "3600", 1))
	id := owner.want(202, "POST", "/api/v1/workflows/nap/execute", `{}`)["execution_id"].(string)
	listener, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	told := make(chan string, 10)
	o := ServeOptions{Dir: dir, Database: address, PublicURL: owner.URL, Version: "test", Log: slog.New(reasonLog{slog.DiscardHandler, told})}
	options := Options{Dir: dir, Database: address, Version: "test", Log: o.Log}
	streams, err := openStreams(t.Context(), o, options, listener)
	if err != nil {
		t.Fatal(err)
	}
	defer streams.Close()
	web := httptest.NewServer(streams)
	defer web.Close()
	path := "/api/v1/executions/" + id
	read := func() *http.Response {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, web.URL+path+"/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+owner.token)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	open := read()
	defer open.Body.Close()
	if open.StatusCode != http.StatusOK {
		t.Fatalf("a stream is answered with %s", open.Status)
	}
	socket, _, err := websocket.Dial(ctx, web.URL+path+"/stream", &websocket.DialOptions{
		HTTPHeader: http.Header{"Authorization": {"Bearer " + owner.token}}, Subprotocols: []string{"tandem"}})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.CloseNow()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if _, err := conn.Exec(t.Context(), `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, true)`); err != nil {
		t.Fatal(err)
	}
	heard, err := io.ReadAll(open.Body) // it ends
	if err != nil {
		t.Errorf("the stream is broken off: %v", err)
	}
	if text := string(heard); !strings.Contains(text, "event: execution_started") || strings.Contains(text, "event: execution_completed") {
		t.Errorf("the stream says %s", text)
	}
	for err = nil; err == nil; {
		var message []byte
		if _, message, err = socket.Read(ctx); strings.Contains(string(message), "execution_completed") {
			t.Errorf("the WebSocket says %s", message)
		}
	}
	if status := websocket.CloseStatus(err); status != websocket.StatusGoingAway {
		t.Errorf("the WebSocket ends with %d: %v", status, err)
	}
	const why = "the database has version 99999 and this program is for version"
	select {
	case reason := <-told:
		if !strings.Contains(reason, why) {
			t.Errorf("it says %q", reason)
		}
	case <-ctx.Done():
		t.Error("it does not say why")
	}
	after := read()
	defer after.Body.Close()
	if body, err := io.ReadAll(after.Body); err != nil || after.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("another stream is answered with %s, %v: %s", after.Status, err, body)
	}
	if again, err := openStreams(t.Context(), o, options, listener); err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("streams are opened anew: %v", err)
		if again != nil {
			_ = again.Close()
		}
	}
}
