package gateway

import (
	"context"
	"crypto/sha256"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"tandem/fault"
)

// Bounds of what callers may hold. Sessions that are not used end by themselves.
const (
	maxCallers     = 256
	maxSessions    = 32
	sessionTimeout = 30 * time.Minute
	// maxBody is how large a message may be, as elsewhere in the API.
	maxBody = 10 << 20
)

const (
	headerSession = "Mcp-Session-Id"
	headerVersion = "Mcp-Protocol-Version"
)

// HTTP serves the protocol's HTTP transport at one address, to many callers. Who may ask at all was found out before: it tells callers
// apart by the token that their requests carry. A caller has sessions of their own, which are of no use with another token. It must be
// closed.
type HTTP struct {
	o    Options
	dial func(token string) (API, error)

	// mu guards what follows.
	mu      sync.Mutex
	callers map[[sha256.Size]byte]*caller
	closed  bool
	// requests are those that are being served.
	requests sync.WaitGroup
	// events are of all sessions.
	events *events
}

// NewHTTP makes one. Dial makes a client of the API with a caller's token.
func NewHTTP(dial func(token string) (API, error), o Options) *HTTP {
	o.complete()
	return &HTTP{o: o, dial: dial, callers: map[[sha256.Size]byte]*caller{}, events: newEvents()}
}

// caller is the holder of one token.
type caller struct {
	*Server
	// stateful serves versions of the protocol with sessions, stateless those without.
	stateful, stateless http.Handler

	// The fields below are guarded by HTTP.mu. Serving is how many requests are being served, used when the last one began.
	serving int
	used    time.Time
	// active are the sessions by id.
	active map[string]*activity
}

type activity struct {
	serving int
	used    time.Time
}

// ServeHTTP implements http.Handler.
func (h *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "Bearer") || token == "" {
		http.Error(w, "the request carries no token; send it as: Authorization: Bearer TOKEN", http.StatusUnauthorized)
		return
	}
	session := r.Header.Get(headerSession)
	c, done, err := h.enter(token, session)
	if err != nil {
		w.Header().Set("Retry-After", "5")
		http.Error(w, fault.From(err).Message, http.StatusServiceUnavailable)
		return
	}
	defer done()
	if !c.listed() { // before there is a session: what is there from the beginning is not a change
		if err := c.list(r.Context()); err != nil {
			c.o.Log.DebugContext(r.Context(), "the tools of a caller cannot be listed", "error", err)
			http.Error(w, messageOf(err), http.StatusBadGateway)
			return
		}
	}
	if r.Header.Get(headerVersion) >= newest {
		c.stateless.ServeHTTP(w, r)
		return
	}
	if session == "" && r.Method == http.MethodPost && !h.room(c) {
		w.Header().Set("Retry-After", "5")
		http.Error(w, "too many sessions are busy; end one", http.StatusTooManyRequests)
		return
	}
	if version := c.speaks(session); version == manyVersion && r.Header.Get(headerVersion) != version {
		r = r.Clone(r.Context()) // a session speaks what was agreed when it was opened, whatever a request says
		r.Header.Set(headerVersion, version)
	}
	if session == "" && r.Method == http.MethodPost {
		// The SDK ends a session whose first request ends before it was handled. A connection that breaks in the meantime must not do that:
		// the client has been told where to take the stream up again, and would find no session there. What opens a session is answered at
		// once.
		r = r.WithContext(context.WithoutCancel(r.Context()))
	}
	c.stateful.ServeHTTP(primed{w}, r)
}

// speaks is the version that a session was opened with; empty when there is no such session.
func (c *caller) speaks(session string) string {
	for s := range c.sessions() {
		if p := s.InitializeParams(); session != "" && s.ID() == session && p != nil {
			return p.ProtocolVersion
		}
	}
	return ""
}

// enter finds the caller with a token and counts a request of theirs.
func (h *HTTP) enter(token, session string) (*caller, func(), error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, nil, fault.New(fault.NetworkError, "the server is stopping; connect again in a moment")
	}
	key := sha256.Sum256([]byte(token))
	c := h.callers[key]
	if c == nil {
		if len(h.callers) >= maxCallers && !h.forget() {
			return nil, nil, fault.New(fault.RateLimited, "too many callers are connected; try again in a moment")
		}
		a, err := h.dial(token)
		if err != nil {
			return nil, nil, err
		}
		c = newCaller(a, h.o, h.events)
		h.callers[key] = c
	}
	now := time.Now()
	c.serving++
	c.used = now
	s := c.active[session]
	if session != "" && s == nil && c.has(session) {
		s = &activity{}
		c.active[session] = s
	}
	if s != nil {
		s.serving++
		s.used = now
	}
	h.requests.Add(1)
	return c, func() {
		h.mu.Lock()
		c.serving--
		if s != nil {
			s.serving--
			s.used = time.Now()
		}
		h.mu.Unlock()
		h.requests.Done()
	}, nil
}

func newCaller(a API, o Options, kept *events) *caller {
	c := &caller{Server: New(a, o), active: map[string]*activity{}}
	get := func(*http.Request) *mcp.Server { return c.mcp }
	// Names under which the server may be asked, and pages of other sites, are looked at before a request comes here.
	c.stateful = mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{SessionTimeout: sessionTimeout, EventStore: kept,
		MaxRequestBodyBytes: maxBody, DisableLocalhostProtection: true})
	c.stateless = mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true,
		MaxRequestBodyBytes: maxBody, DisableLocalhostProtection: true})
	return c
}

// has says that a session is open.
func (c *caller) has(id string) bool {
	for s := range c.sessions() {
		if s.ID() == id {
			return true
		}
	}
	return false
}

// forget ends the caller that was not heard of for the longest time, if there is one without sessions and requests. mu is held.
func (h *HTTP) forget() bool {
	var oldest *caller
	var at [sha256.Size]byte
	for key, c := range h.callers { // order does not matter: the oldest is wanted
		if c.serving == 0 && (oldest == nil || c.used.Before(oldest.used)) && len(slices.Collect(c.sessions())) == 0 {
			oldest, at = c, key
		}
	}
	if oldest == nil {
		return false
	}
	delete(h.callers, at)
	h.requests.Go(oldest.Close)
	return true
}

// room makes sure that a caller may have another session: of too many the one ends that was not used for the longest time.
func (h *HTTP) room(c *caller) bool {
	open := slices.Collect(c.sessions())
	h.mu.Lock()
	for id := range c.active { // order does not matter: each by itself
		if !slices.ContainsFunc(open, func(s *mcp.ServerSession) bool { return s.ID() == id }) {
			delete(c.active, id)
		}
	}
	if len(open) < maxSessions {
		h.mu.Unlock()
		return true
	}
	var oldest *mcp.ServerSession
	var used time.Time
	for _, s := range open {
		a := c.active[s.ID()]
		if a == nil { // nobody has used it since it was opened
			a = &activity{used: time.Now()}
			c.active[s.ID()] = a
		}
		if a.serving == 0 && (oldest == nil || a.used.Before(used)) {
			oldest, used = s, a.used
		}
	}
	h.mu.Unlock()
	if oldest == nil {
		return false
	}
	c.leave(oldest)
	return true
}

// Close ends all sessions and returns when every request has ended; new ones are refused.
func (h *HTTP) Close() {
	h.mu.Lock()
	h.closed = true
	callers := make([]*caller, 0, len(h.callers))
	for _, c := range h.callers { // order does not matter: all are closed
		callers = append(callers, c)
	}
	h.mu.Unlock()
	served := make(chan struct{})
	go func() { // it ends with the requests, which end with their sessions
		h.requests.Wait()
		close(served)
	}()
	every := time.NewTicker(20 * time.Millisecond)
	defer every.Stop()
	for { // a session that was just being opened is seen the next time
		for _, c := range callers {
			c.Close()
		}
		select {
		case <-served:
			for _, c := range callers {
				c.Close()
			}
			return
		case <-every.C:
		}
	}
}
