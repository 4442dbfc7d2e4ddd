// Package actiontest is what every kind must do that acts in a service: one conformance suite, on a fake of the service that a test brings.
//
// The fake is an [http.Handler] that speaks the real protocol of the service and refuses what the real one refuses. A [Service] runs it,
// writes down what it was sent, and breaks its answers when a test says so. A [Vendor] names a kind, its fake and sample operations;
// [Vendor.Operations] runs a table of them, and [Vendor.Failures] everything that can go wrong with any service. Only tests import it.
package actiontest

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tandem/outbound"
)

// Service is a fake service that writes down what it is sent.
type Service struct {
	// URL is its address, with its prefix.
	URL string
	// Client reaches it.
	Client *outbound.Client

	t      testing.TB
	prefix string
	serve  http.Handler
	server *httptest.Server

	mu    sync.Mutex
	calls []Call
	plans []plan
}

// Call is what was sent. Path is without the prefix of the service, and escaped as it was sent.
type Call struct {
	Method, Path string
	Query        url.Values
	Header       http.Header
	Body         []byte
}

// Name is the method and the path: "POST /repos/acme/shop/issues".
func (c Call) Name() string { return c.Method + " " + c.Path }

// Reply is an answer that takes the place of that of the fake.
type Reply struct {
	Status int
	Header map[string]string
	Body   string
}

type plan struct {
	match string
	do    func(w http.ResponseWriter, r *http.Request, serve http.Handler)
}

// NewService starts a fake below a path such as "/api/v3"; what is called outside of it is a failure of the test.
func NewService(t testing.TB, prefix string, serve http.Handler) *Service {
	t.Helper()
	s := &Service{t: t, prefix: strings.TrimRight(prefix, "/"), serve: serve}
	s.server = httptest.NewServer(http.HandlerFunc(s.handle))
	t.Cleanup(s.server.Close)
	s.URL = s.server.URL + s.prefix
	s.Client = s.client(outbound.Options{})
	return s
}

func (s *Service) client(o outbound.Options) *outbound.Client {
	s.t.Helper()
	allow, err := outbound.ParseAllow("127.0.0.1")
	if err != nil {
		s.t.Fatal(err)
	}
	o.Allow = allow
	client := outbound.New(o)
	s.t.Cleanup(client.Close)
	return client
}

// Hasty is a client that does not wait long for an answer: so long that what answers at all has answered, a token service on a busy
// machine for instance.
func (s *Service) Hasty() *outbound.Client {
	return s.client(outbound.Options{FirstByte: time.Second})
}

// Close ends the service: nothing can connect to it any more.
func (s *Service) Close() { s.server.Close() }

func (s *Service) handle(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Errorf("what is sent to %s cannot be read: %v", r.URL.Path, err)
	}
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), s.prefix)
	if !ok {
		s.t.Errorf("%s is called, which is not below %s", r.URL.Path, s.prefix)
	}
	c := Call{Method: r.Method, Path: path, Query: r.URL.Query(), Header: r.Header.Clone(), Body: body}
	inner := r.Clone(r.Context())
	inner.Body = io.NopCloser(bytes.NewReader(body))
	inner.URL.Path, inner.URL.RawPath = strings.TrimPrefix(r.URL.Path, s.prefix), path
	s.mu.Lock()
	s.calls = append(s.calls, c)
	var next *plan
	if i := slices.IndexFunc(s.plans, func(p plan) bool { return strings.HasPrefix(c.Name(), p.match) }); i >= 0 {
		found := s.plans[i]
		next, s.plans = &found, slices.Delete(s.plans, i, i+1)
	}
	s.mu.Unlock()
	if next != nil {
		next.do(w, inner, s.serve)
		return
	}
	s.serve.ServeHTTP(w, inner)
}

func (s *Service) plan(match string, do func(w http.ResponseWriter, r *http.Request, serve http.Handler)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plans = append(s.plans, plan{match, do})
}

// Answers makes the next call whose name begins with match get this answer.
func (s *Service) Answers(match string, reply Reply) {
	s.plan(match, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "application/json")
		for name, value := range reply.Header { // order does not matter: they are named
			w.Header().Set(name, value)
		}
		w.WriteHeader(reply.Status)
		if _, err := io.WriteString(w, reply.Body); err != nil {
			s.t.Errorf("the answer cannot be sent: %v", err)
		}
	})
}

// Loses makes the service take the next call whose name begins with match, and the connection break before its answer.
func (s *Service) Loses(match string) {
	s.plan(match, func(_ http.ResponseWriter, r *http.Request, serve http.Handler) {
		serve.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	})
}

// Hangs makes the next call whose name begins with match wait until the caller gives up.
func (s *Service) Hangs(match string) {
	s.plan(match, func(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
		<-r.Context().Done()
	})
}

// Calls are those whose name begins with match, in order.
func (s *Service) Calls(match string) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.calls), func(c Call) bool { return !strings.HasPrefix(c.Name(), match) })
}
