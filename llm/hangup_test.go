package llm_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"tandem/llm"
)

// noted is a connection that says when it is closed.
type noted struct {
	net.Conn
	once   sync.Once
	closed *atomic.Int64
}

func (n *noted) Close() error {
	n.once.Do(func() { n.closed.Add(1) })
	return n.Conn.Close()
}

// TestHangUp closes answers right after their context has ended, when the transport has hardly begun to hang up.
func TestHangUp(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.WriteString(w, "a beginning"); err != nil {
			t.Errorf("write: %v", err)
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Errorf("flush: %v", err)
		}
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	var closed atomic.Int64
	client := llm.HangUp(&http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		return &noted{Conn: c, closed: &closed}, err
	}}})
	for i := range int64(200) {
		ctx, cancel := context.WithCancel(t.Context())
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := response.Body.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
		if got := closed.Load(); got != i+1 {
			t.Fatalf("%d of %d connections are closed after their answers are", got, i+1)
		}
	}
}

// TestHangUp_KeepsConnections: an answer that is closed in time costs no connection.
func TestHangUp_KeepsConnections(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, err := io.WriteString(w, "all of it"); err != nil {
			t.Errorf("write: %v", err)
		}
	}))
	t.Cleanup(server.Close)
	var closed atomic.Int64
	plain := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		return &noted{Conn: c, closed: &closed}, err
	}}}
	client := llm.HangUp(plain)
	for range 10 {
		response, err := client.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(response.Body); err != nil || string(body) != "all of it" {
			t.Fatalf("read %q, %v", body, err)
		}
		if err := response.Body.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got := closed.Load(); got != 0 {
		t.Errorf("%d connections were closed", got)
	}
	plain.CloseIdleConnections()
}
