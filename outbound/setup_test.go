package outbound

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"testing"

	"tandem/fault"
)

// world is an internet of loopback servers under public addresses: names resolve to addresses, addresses lead to servers.
type world struct {
	t *testing.T

	mu      sync.Mutex
	names   map[string]func() []string
	servers map[string]string // address to listener
	dialled []string
}

func newWorld(t *testing.T) *world {
	return &world{t: t, names: map[string]func() []string{}, servers: map[string]string{}}
}

// LookupNetIP answers for the names of the world.
func (w *world) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	w.mu.Lock()
	answer := w.names[host]
	w.mu.Unlock()
	if answer == nil {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	var list []netip.Addr
	for _, text := range answer() {
		list = append(list, netip.MustParseAddr(text))
	}
	return list, nil
}

func (w *world) dial(ctx context.Context, address netip.AddrPort) (net.Conn, error) {
	w.mu.Lock()
	w.dialled = append(w.dialled, address.Addr().String())
	to, ok := w.servers[address.Addr().String()]
	w.mu.Unlock()
	if !ok {
		return nil, errors.New("nobody lives at " + address.String())
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", to)
}

func (w *world) dials() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.dialled)
}

// serve puts a server behind a name.
func (w *world) serve(name, address string, handler http.HandlerFunc) {
	w.t.Helper()
	server := httptest.NewServer(handler)
	w.t.Cleanup(server.Close)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names[name] = func() []string { return []string{address} }
	w.servers[address] = server.Listener.Addr().String()
}

func (w *world) client(o Options) *Client {
	o.Resolver, o.DialAddress = w, w.dial
	c := New(o)
	w.t.Cleanup(c.Close)
	return c
}

func parse(t testing.TB, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func get(t testing.TB, text string) Request {
	t.Helper()
	return Request{Method: http.MethodGet, URL: parse(t, text), Redirects: 5}
}

// answer makes a call and reads its body.
func answer(t *testing.T, c *Client, r Request) (*Response, string) {
	t.Helper()
	response, err := c.Do(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	body, err := response.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

// failure makes a call that must fail, at once or while its body is read.
func failure(t *testing.T, c *Client, r Request) *Error {
	t.Helper()
	response, err := c.Do(t.Context(), r)
	if err == nil {
		_, err = response.ReadAll()
	}
	e, ok := errors.AsType[*Error](err)
	if !ok {
		t.Fatalf("got %v, want an *Error", err)
	}
	return e
}

func wantFailure(t *testing.T, e *Error, code fault.Code, fate Fate) {
	t.Helper()
	if e.Fault.Code != code || e.Fate != fate {
		t.Errorf("got %v (%s), want %s (%s)", e, e.Fate, code, fate)
	}
}

func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_, _ = io.WriteString(w, r.Method+" "+r.Host+r.URL.RequestURI()+" "+string(body)) // the client may be gone
}
