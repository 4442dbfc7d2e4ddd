package standby_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"tandem/standby"
	"tandem/store/postgres"
	"tandem/store/postgres/postgrestest"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fromKey is the context's key of the address that a request comes from.
type fromKey struct{}

// streamsOfTest tells one line, and another when it may. It knows one execution.
type streamsOfTest struct {
	goOn, closed chan struct{}
}

// ServeHTTP implements [http.Handler].
func (s *streamsOfTest) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-By", "here")
	if !strings.Contains(r.URL.Path, "/known/") {
		http.Error(w, "unknown", http.StatusNotFound)
		return
	}
	control := http.NewResponseController(w)
	for _, say := range []struct {
		line string
		then <-chan struct{}
	}{{"one\n", s.goOn}, {"two\n", s.closed}} {
		_, _ = io.WriteString(w, say.line)
		_ = control.Flush()
		<-say.then
	}
}

// Close implements [standby.Streams].
func (s *streamsOfTest) Close() error {
	close(s.closed)
	return nil
}

// ask sends a request and returns its status, the header and the body.
func ask(t *testing.T, request *http.Request) (int, http.Header, string) {
	t.Helper()
	dialer := &net.Dialer{}
	if from, ok := request.Context().Value(fromKey{}).(string); ok {
		dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	}
	client := &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableCompression: true, DisableKeepAlives: true}} // so that nothing is asked for that the test does not
	res, err := client.Do(request)
	check(t, err)
	body, err := io.ReadAll(res.Body)
	check(t, err)
	check(t, res.Body.Close())
	return res.StatusCode, res.Header, string(body)
}

// TestServe forwards to the owner of a database, answers for one that is away, and takes the database when it is free.
func TestServe(t *testing.T) {
	t.Parallel()
	address := postgrestest.Start(t).Database(t)
	db, err := postgres.OpenOwned(t.Context(), postgres.Options{URL: address})
	check(t, err)
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	check(t, err)
	relay := standby.NewRelay(listener)
	streams := &streamsOfTest{goOn: make(chan struct{}), closed: make(chan struct{})}
	type result struct {
		turn *standby.Turn
		err  error
	}
	ready, ended := make(chan struct{}), make(chan result, 1)
	go func() { // it ends when the database is free
		turn, err := standby.Serve(t.Context(), relay.Listen(false), standby.Options{Database: address, Version: "test", Log: slog.New(slog.DiscardHandler), Ready: func() { close(ready) },
			Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}, Streams: func(context.Context) (standby.Streams, error) { return streams, nil }})
		ended <- result{turn, err}
	}()
	<-ready
	at := "http://" + listener.Addr().String()
	request := func(method, path, body string) *http.Request {
		r, err := http.NewRequestWithContext(t.Context(), method, at+path, strings.NewReader(body))
		check(t, err)
		return r
	}
	if status, _, body := ask(t, request("GET", "/healthz", "")); status != http.StatusOK || !strings.Contains(body, "standby") {
		t.Errorf("/healthz: %d %s", status, body)
	}
	if status, header, body := ask(t, request("GET", "/readyz", "")); status != http.StatusServiceUnavailable || header.Get("Retry-After") == "" || !strings.Contains(body, "not_ready") {
		t.Errorf("while the owner is not known: %d %v %s", status, header, body)
	}
	owner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/dies":
			panic(http.ErrAbortHandler)
		case "/upgraded":
			w.Header().Set("Connection", "Upgrade")
			w.Header().Set("Upgrade", "x")
			w.WriteHeader(http.StatusSwitchingProtocols)
			conn, _, err := http.NewResponseController(w).Hijack()
			check(t, err)
			t.Cleanup(func() { _ = conn.Close() })
			return
		}
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, strings.Join([]string{r.Method, r.URL.String(), r.Host, r.Header.Get("Authorization"), r.Header.Get("Accept-Encoding") + ";", strings.Join(r.Header["X-Forwarded-For"], ", "), r.Header.Get("X-Forwarded-Proto") + r.Header.Get("X-Forwarded-Host") + r.Header.Get("Forwarded") + ";", string(body)}, " "))
	}))
	check(t, db.Announce(t.Context(), owner.URL))
	status := http.StatusServiceUnavailable
	var body string
	for status == http.StatusServiceUnavailable { // until the announcement is read
		r := request("POST", "/api/v1/x?y=1", "body")
		r.Header.Set("Authorization", "Bearer t")
		r.Host = "tandem.example.com"
		status, _, body = ask(t, r)
	}
	if want := "POST /api/v1/x?y=1 tandem.example.com Bearer t ; 127.0.0.1 ; body"; status != http.StatusTeapot || body != want {
		t.Errorf("forwarded: %d %q, want %q", status, body, want)
	}
	for from, want := range map[string]string{"127.0.0.1": "127.0.0.1 ;", "127.0.0.2": "10.1.1.1, 127.0.0.2 https" + "a" + "b;"} { // the second is a proxy
		r := request("GET", "/api/v1/x", "")
		for name, value := range map[string]string{"X-Forwarded-For": "10.1.1.1", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "a", "Forwarded": "b"} {
			r.Header.Set(name, value)
		}
		if _, _, body := ask(t, r.WithContext(context.WithValue(r.Context(), fromKey{}, from))); !strings.Contains(body, want) {
			t.Errorf("from %s: %q, want %q", from, body, want)
		}
	}
	if status, _, body := ask(t, request("GET", "/api/v1/executions/unknown/events", "")); status != http.StatusTeapot || !strings.HasPrefix(body, "GET /api/v1/executions/unknown/events ") {
		t.Errorf("a stream that is refused here: %d %q", status, body)
	}
	// A connection that is not for requests any more, and says nothing, does not keep the server from taking over.
	quiet, err := net.Dial("tcp", listener.Addr().String())
	check(t, err)
	_, err = io.WriteString(quiet, "GET /upgraded HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
	check(t, err)
	upgraded := bufio.NewReader(quiet)
	if line, err := upgraded.ReadString('\n'); err != nil || !strings.Contains(line, "101") {
		t.Fatalf("%q, %v", line, err)
	}
	// A stream that is answered here goes on when the database is taken over.
	following, err := http.DefaultClient.Do(request("GET", "/api/v1/executions/known/events", ""))
	check(t, err)
	stream := bufio.NewReader(following.Body)
	if line, err := stream.ReadString('\n'); err != nil || line != "one\n" || following.Header.Get("X-By") != "here" {
		t.Errorf("%q, %v, %v", line, following.Header, err)
	}
	loop := request("GET", "/api/v1/x", "")
	loop.Header.Set("X-Tandem-Forwarded", "1")
	if status, _, body := ask(t, loop); status != http.StatusServiceUnavailable || !strings.Contains(body, "--peer-url") {
		t.Errorf("handed on twice: %d %s", status, body)
	}
	if status, header, body := ask(t, request("POST", "/dies", "body")); status != http.StatusBadGateway || header.Get("Retry-After") != "" || !strings.Contains(body, "outcome_unknown") || !strings.Contains(body, "Idempotency-Key") {
		t.Errorf("an owner that has the request, and is gone: %d %v %s", status, header, body)
	}
	owner.Close()
	if status, header, body := ask(t, request("GET", "/api/v1/x", "")); status != http.StatusServiceUnavailable || header.Get("Retry-After") == "" || !strings.Contains(body, "does not answer") {
		t.Errorf("an owner that is away: %d %v %s", status, header, body)
	}
	check(t, db.Close())
	got := <-ended
	check(t, got.err)
	_, err = io.Copy(io.Discard, upgraded) // until it is broken off
	check(t, err)
	check(t, quiet.Close())
	close(streams.goOn)
	if line, err := stream.ReadString('\n'); err != nil || line != "two\n" {
		t.Errorf("after the owner: %q, %v", line, err)
	}
	check(t, got.turn.Close())
	<-streams.closed
	if rest, err := io.ReadAll(stream); err != nil || len(rest) > 0 {
		t.Errorf("the stream ends with %q, %v", rest, err)
	}
	check(t, following.Body.Close())
	// Who comes meanwhile waits for the next server.
	answered := make(chan string, 1)
	go func() { // it ends with the answer
		_, _, body := ask(t, request("GET", "/", ""))
		answered <- body
	}()
	next := relay.Listen(true)
	web := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "next") })} //nolint:gosec // of a test
	served := make(chan error, 1)
	go func() { served <- web.Serve(next) }() // it ends with Shutdown
	if body := <-answered; body != "next" {
		t.Errorf("the next server: %q", body)
	}
	again, err := postgres.OpenOwned(t.Context(), postgres.Options{URL: address, Lock: got.turn.Lock})
	check(t, err)
	check(t, again.Close())
	check(t, web.Shutdown(context.WithoutCancel(t.Context())))
	<-served
	if _, err := listener.Accept(); err == nil {
		t.Error("the listener is still open")
	}
}
