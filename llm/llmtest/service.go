package llmtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tandem/fault"
	"tandem/llm"
	"tandem/outbound"
)

// secret is the key of all cases. It must be seen nowhere but in requests.
const secret = "key-that-must-stay-secret-1f6e"

// patience bounds cases that would hang if the provider were wrong. Nothing that is right ever waits for it.
const patience = 30 * time.Second

// service is the server of one case and the provider that calls it.
type service struct {
	t        testing.TB
	h        Harness
	server   *httptest.Server
	provider llm.Provider
	open     atomic.Int64 // connections that the client has not closed

	mu        sync.Mutex
	calls     []Call
	unsayable error
}

// behaviour is what the service does with a call. It runs in the server's goroutine.
type behaviour func(x *exchange)

// exchange is one call that is being answered.
type exchange struct {
	http.ResponseWriter
	*service
	request *http.Request
	call    Call
}

// tweak changes how the provider is made.
type tweak struct {
	// pieceSize, if not zero, is how many bytes one read of an answer gets at most.
	pieceSize int
	keyless   bool
	// answered, if not nil, is called when an answer has begun and before the provider's library has it.
	answered func()
}

func serve(t testing.TB, h Harness, tw tweak, behave behaviour) *service {
	t.Helper()
	s := &service{t: t, h: h}
	s.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client has gone; its own error says so
		}
		call, err := h.Wire.Decode(r, body)
		if err != nil {
			t.Errorf("the service cannot read %s %s: %v\n%.2000s", r.Method, r.URL.Path, err, body)
			http.Error(w, "unreadable", http.StatusTeapot)
			return
		}
		call.Header = r.Header
		s.mu.Lock()
		s.calls = append(s.calls, call)
		s.mu.Unlock()
		behave(&exchange{ResponseWriter: w, service: s, request: r, call: call})
	}))
	client := s.client(t)
	t.Cleanup(func() {
		client.Close()
		s.server.CloseClientConnections() // handlers that wait for the client's end must not wait for ever
		s.server.Close()
	})
	var transport = client.RoundTripper(0)
	if tw.pieceSize > 0 {
		transport = pieces{transport, tw.pieceSize}
	}
	if tw.answered != nil {
		transport = beginning{transport, tw.answered}
	}
	settings := llm.Settings{BaseURL: s.server.URL + h.BasePath, Key: secret, HTTP: &http.Client{Transport: transport}}
	if tw.keyless {
		settings.Key = ""
	}
	provider, err := h.New(settings)
	if err != nil {
		t.Fatalf("make the provider: %v", err)
	}
	s.provider = provider
	return s
}

// client is a guarded client that may reach the server and counts its connections.
func (s *service) client(t testing.TB) *outbound.Client {
	t.Helper()
	allow, err := outbound.ParseAllow("127.0.0.1,::1")
	if err != nil {
		t.Fatal(err)
	}
	dialer := &net.Dialer{}
	return outbound.New(outbound.Options{Allow: allow, DialAddress: func(ctx context.Context, address netip.AddrPort) (net.Conn, error) {
		c, err := dialer.DialContext(ctx, "tcp", address.String())
		if err != nil {
			return nil, err
		}
		s.open.Add(1)
		return &counted{Conn: c, open: &s.open}, nil
	}})
}

// counted is a connection of which the service knows whether the client has closed it.
type counted struct {
	net.Conn
	once sync.Once
	open *atomic.Int64
}

func (c *counted) Close() error {
	c.once.Do(func() { c.open.Add(-1) }) // before reads can notice
	return c.Conn.Close()
}

// pieces lets answers be read only a few bytes at a time, so that every place is once the end of what was read.
type pieces struct {
	next http.RoundTripper
	size int
}

func (p pieces) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := p.next.RoundTrip(r)
	if err == nil {
		response.Body = &piecewise{response.Body, p.size}
	}
	return response, err
}

// beginning tells that an answer has begun.
type beginning struct {
	next http.RoundTripper
	tell func()
}

func (b beginning) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(r)
	b.tell()
	return response, err
}

type piecewise struct {
	io.ReadCloser
	size int
}

func (p *piecewise) Read(b []byte) (int, error) { return p.ReadCloser.Read(b[:min(len(b), p.size)]) }

// complete asks for a completion. With Stream it checks that what the sink was given adds up to what is returned. A
// scenario that the protocol cannot express skips the test.
func (s *service) complete(ctx context.Context, r llm.Request) (llm.Completion, []llm.Delta, error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var told []llm.Delta
	var returned atomic.Bool
	c, err := s.provider.Complete(ctx, r, func(d llm.Delta) {
		if returned.Load() {
			s.t.Error("the sink was told something after Complete had returned")
			return
		}
		told = append(told, d)
	})
	returned.Store(true)
	s.mu.Lock()
	unsayable := s.unsayable
	s.mu.Unlock()
	if unsayable != nil {
		s.t.Skipf("not for this protocol: %v", unsayable)
	}
	if err != nil {
		s.checkError(err)
		if c.Message.Content != "" || len(c.Message.ToolCalls) > 0 {
			s.t.Errorf("an error came with an answer %+v", c)
		}
		return c, told, err
	}
	if r.Stream {
		checkSum(s.t, told, c.Message)
	} else if len(told) > 0 {
		s.t.Errorf("the sink was told %d pieces of an answer that is not a stream", len(told))
	}
	if c.Message.Role != llm.Assistant {
		s.t.Errorf("the answer's role is %q, want %q", c.Message.Role, llm.Assistant)
	}
	return c, told, nil
}

// must is complete for what has to go well.
func (s *service) must(r llm.Request) (llm.Completion, []llm.Delta) {
	s.t.Helper()
	c, told, err := s.complete(s.t.Context(), r)
	if err != nil {
		s.t.Fatalf("complete: %v; detail: %s", err, fault.From(err).Detail)
	}
	return c, told
}

// fails is complete for what has to end with a fault of this code.
func (s *service) fails(r llm.Request, want fault.Code) error {
	s.t.Helper()
	c, _, err := s.complete(s.t.Context(), r)
	if err == nil {
		s.t.Fatalf("complete went well with %+v, want %s", c, want)
	}
	if got := fault.CodeOf(err); got != want {
		s.t.Fatalf("complete: %v (detail %q), want the code %s", err, fault.From(err).Detail, want)
	}
	if got := fault.From(err).Retryable; got != want.Retryable() {
		s.t.Errorf("%v: retryable is %v, want %v", err, got, want.Retryable())
	}
	return err
}

// checkError holds every error to what all must be: a fault that a person can read, without the secret, anywhere.
func (s *service) checkError(err error) {
	s.t.Helper()
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		s.t.Errorf("the error %v (%T) is not a fault", err, err)
		return
	}
	if f.Message == "" {
		s.t.Errorf("the fault %q says nothing to its reader", f.Code)
	}
	kept, merr := f.MarshalJSON()
	if merr != nil {
		s.t.Errorf("the fault cannot be kept: %v", merr)
	}
	texts := []string{string(kept)}
	for e := err; e != nil; e = errors.Unwrap(e) {
		texts = append(texts, fmt.Sprintf("%v %+v %#v", e, e, e))
	}
	for _, text := range texts {
		if strings.Contains(text, secret) {
			s.t.Errorf("the secret is in the error: %s", text)
		}
	}
}

// count is how often the service was called.
func (s *service) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls)
}

// only returns the one call that was made.
func (s *service) only() Call {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.calls) != 1 {
		s.t.Fatalf("the service was called %d times, want once: retries are the engine's business", len(s.calls))
	}
	return s.calls[0]
}

// say answers with a scenario.
func say(sc Scenario) behaviour {
	return func(x *exchange) {
		if reply, ok := x.encode(sc); ok {
			x.begin(reply)
			x.send(reply.Frames...)
			x.send(reply.End...)
		}
	}
}

// encode writes a scenario in the protocol; false means that the call was answered otherwise.
func (x *exchange) encode(sc Scenario) (Reply, bool) {
	reply, err := x.h.Wire.Encode(x.call, sc)
	switch {
	case errors.Is(err, ErrUnsayable):
		x.mu.Lock()
		x.unsayable = err
		x.mu.Unlock()
	case err != nil:
		x.t.Errorf("encode the scenario: %v", err)
	default:
		return reply, true
	}
	http.Error(x, "unsayable", http.StatusTeapot)
	return Reply{}, false
}

// begin sends the headers.
func (x *exchange) begin(reply Reply) {
	for name, values := range reply.Header {
		x.Header()[http.CanonicalHeaderKey(name)] = values
	}
	status := reply.Status
	if status == 0 {
		status = http.StatusOK
	}
	x.WriteHeader(status)
	x.flush()
}

// send sends frames, each for itself. It says whether somebody still listens.
func (x *exchange) send(frames ...[]byte) bool {
	for _, f := range frames {
		if _, err := x.Write(f); err != nil {
			return false // the provider has hung up; its own error says why
		}
		x.flush()
	}
	return true
}

func (x *exchange) flush() {
	if err := http.NewResponseController(x.ResponseWriter).Flush(); err != nil && x.request.Context().Err() == nil {
		x.t.Errorf("flush: %v", err)
	}
}

// abort closes the connection in the middle of the answer.
func (x *exchange) abort() { panic(http.ErrAbortHandler) }
