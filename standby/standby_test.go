package standby_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
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

// ask sends a request and returns its status, the header and the body.
func ask(t *testing.T, request *http.Request) (int, http.Header, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableCompression: true, DisableKeepAlives: true}} // so that nothing is asked for that the test does not
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
	type result struct {
		lock *postgres.Lock
		err  error
	}
	ready, ended := make(chan struct{}), make(chan result, 1)
	go func() { // it ends when the database is free
		lock, err := standby.Serve(t.Context(), relay.Listen(false), standby.Options{Database: address, Version: "test", Log: slog.New(slog.DiscardHandler), Ready: func() { close(ready) }})
		ended <- result{lock, err}
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
		if r.URL.Path == "/dies" {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, strings.Join([]string{r.Method, r.URL.String(), r.Host, r.Header.Get("Authorization"), r.Header.Get("Accept-Encoding") + ";", strings.Join(r.Header["X-Forwarded-For"], ", "), string(body)}, " "))
	}))
	check(t, db.Announce(t.Context(), owner.URL))
	status := http.StatusServiceUnavailable
	var body string
	for status == http.StatusServiceUnavailable { // until the announcement is read
		r := request("POST", "/api/v1/x?y=1", "body")
		r.Header.Set("Authorization", "Bearer t")
		r.Header.Set("X-Forwarded-For", "10.1.1.1")
		r.Host = "tandem.example.com"
		status, _, body = ask(t, r)
	}
	if want := "POST /api/v1/x?y=1 tandem.example.com Bearer t ; 10.1.1.1, 127.0.0.1 body"; status != http.StatusTeapot || body != want {
		t.Errorf("forwarded: %d %q, want %q", status, body, want)
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
	again, err := postgres.OpenOwned(t.Context(), postgres.Options{URL: address, Lock: got.lock})
	check(t, err)
	check(t, again.Close())
	check(t, web.Shutdown(context.WithoutCancel(t.Context())))
	<-served
	if _, err := listener.Accept(); err == nil {
		t.Error("the listener is still open")
	}
}
