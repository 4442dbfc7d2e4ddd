// Package standby is a server while another process owns the database: it forwards requests to that process, and waits to own the database
// itself. Streams of executions it may answer from the database (streams.go), so that they outlive the owner. It runs nothing, sends
// nothing to people and starts nothing. The wiring of a server imports it.
package standby

import (
	"bufio"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"tandem/fault"
	"tandem/payload"
	"tandem/route"
	"tandem/store/postgres"
)

// Options say what a server stands by for.
type Options struct {
	// Database is the address of the database.
	Database string
	Version  string
	// Proxies are the networks of proxies in front of the server. What others say in X-Forwarded-For and the like is not passed on.
	Proxies []netip.Prefix
	// Streams opens what answers streams of executions here. It is asked for with the first of them. Nil: they are forwarded like all else.
	Streams func(context.Context) (Streams, error)
	Log     *slog.Logger
	// Ready is told that requests are answered. May be nil.
	Ready func()
}

// forwarded marks a request that a server has forwarded, so that two of them never hand it to each other.
const forwarded = "X-Tandem-Forwarded"

// Bounds of connections. Those of requests and streams are the owner's.
const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 64 << 10
	// endTimeout is how long requests may take to end when the server is to own the database, or to stop. Streams are broken off: whoever
	// reads them comes back.
	endTimeout = 2 * time.Second
	// believed is how long the address of the owner is not asked for again, also when it could not be found.
	believed = time.Second
	// findTimeout is how long the database may take to say where the owner is. Requests wait for it meanwhile.
	findTimeout = 3 * time.Second
	// dialTimeout is how long the owner may take to take a connection, and as much again to encrypt it.
	dialTimeout = 5 * time.Second
	// keptTimeout is how long a connection to the owner is kept that is not used: less than the owner keeps it.
	keptTimeout = time.Minute
	maxKept     = 128
)

// Turn is the right to own the database, and the streams that go on from the time before. It must be closed, which ends them.
type Turn struct {
	Lock *postgres.Lock
	rest *rest
}

// Close ends what goes on. The lock is not closed.
func (t *Turn) Close() error {
	if t == nil {
		return nil
	}
	return t.rest.end()
}

// Serve answers requests that come in by a listener, which stays open, until this process may own the database. Then it returns the
// lock. It returns an error when the context ends, or the database cannot be waited for.
func Serve(ctx context.Context, listener net.Listener, o Options) (*Turn, error) {
	owners, err := postgres.LookForOwners(ctx, o.Database)
	if err != nil {
		return nil, err
	}
	defer owners.Close()
	standing, moveOn := context.WithCancel(ctx)
	defer moveOn()
	f := &forwarder{o: o, ask: owners.URL, local: &local{open: o.Streams, log: o.Log, standing: standing}}
	transport := newTransport()
	defer transport.CloseIdleConnections()
	web := &http.Server{
		Handler: f, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
	}
	f.proxy = &httputil.ReverseProxy{
		Transport: transport, Rewrite: f.rewrite, FlushInterval: -1, ErrorHandler: f.away, ErrorLog: web.ErrorLog,
	}
	forwarding, breakOff := context.WithCancel(context.WithoutCancel(ctx))
	defer breakOff()
	f.ended = forwarding
	stopped := make(chan error, 1)
	go func() { stopped <- web.Serve(listener) }() // it ends with Shutdown, below
	if o.Ready != nil {
		o.Ready()
	}
	lock, err := postgres.Await(ctx, o.Database)
	moveOn()
	left := f.local.leave(context.WithoutCancel(ctx), web)
	if serr := <-stopped; !errors.Is(serr, http.ErrServerClosed) {
		err = errors.Join(err, serr)
	}
	if !f.finish(endTimeout) {
		o.Log.Info("what was forwarded is broken off")
		breakOff()
		f.finish(0)
	}
	if err != nil {
		err = errors.Join(err, left.end())
		if lock != nil {
			err = errors.Join(err, lock.Close())
		}
		return nil, err
	}
	return &Turn{lock, left}, nil
}

// forwarder hands requests to the owner of the database.
type forwarder struct {
	o Options
	// ask asks the database where the owner is; empty: it has not said.
	ask   func(context.Context) (string, error)
	proxy *httputil.ReverseProxy
	local *local
	// ended ends with what is forwarded, which is counted.
	ended   context.Context
	forward sync.WaitGroup

	mu    sync.Mutex
	owner *url.URL
	until time.Time
}

// newTransport makes the connections to the owner. It is reached without a proxy: requests carry tokens. What is compressed stays so.
func newTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: dialTimeout}
	return &http.Transport{
		DialContext: dialer.DialContext, TLSHandshakeTimeout: dialTimeout, DisableCompression: true,
		MaxIdleConns: maxKept, MaxIdleConnsPerHost: maxKept, IdleConnTimeout: keptTimeout,
	}
}

// way is what becomes of a request that is forwarded.
type way struct {
	owner *url.URL
	// connected says that there was a connection to the owner, so that the request may have been carried out.
	connected atomic.Bool
}

// wayKey is the context's key of the [way].
type wayKey struct{}

// ServeHTTP implements [http.Handler]. That the process lives it says itself.
func (f *forwarder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/healthz" {
		w.Header().Set("Content-Type", "application/json")
		answer(w, http.StatusOK, map[string]any{"status": "standby", "version": f.o.Version})
		return
	}
	if r.Header.Get(forwarded) != "" {
		f.refuse(w, "this server does not own the database, and neither does the one that asks it; look at --peer-url of both")
		return
	}
	if f.local.serve(w, r) {
		return
	}
	f.forward.Add(1)
	defer f.forward.Done()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(f.ended, cancel)()
	r = r.WithContext(ctx)
	owner, err := f.find(r.Context())
	if err != nil {
		f.o.Log.Warn("the owner of the database cannot be found", "error", err)
	}
	if owner == nil {
		f.refuse(w, "nobody owns the database at the moment; try again")
		return
	}
	to := &way{owner: owner}
	trace := &httptrace.ClientTrace{
		// It is called again when a connection that was kept is found to be closed: then nothing was sent by it, or what may be repeated.
		GetConn: func(string) { to.connected.Store(false) },
		GotConn: func(httptrace.GotConnInfo) { to.connected.Store(true) },
	}
	f.proxy.ServeHTTP(&breakable{w, ctx}, r.WithContext(httptrace.WithClientTrace(context.WithValue(r.Context(), wayKey{}, to), trace)))
}

// breakable closes a connection that is taken over when a context ends: who copies from it would wait for a client that says nothing.
type breakable struct {
	http.ResponseWriter
	ctx context.Context
}

// Hijack implements [http.Hijacker].
func (b *breakable) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rest, err := http.NewResponseController(b.ResponseWriter).Hijack()
	if err == nil {
		context.AfterFunc(b.ctx, func() { _ = conn.Close() }) // it may be closed already
	}
	return conn, rest, err
}

// Unwrap lets an [http.ResponseController] reach the connection.
func (b *breakable) Unwrap() http.ResponseWriter { return b.ResponseWriter }

// finish waits until nothing is forwarded any more, for a time (zero: for as long as it takes), and says whether that is so.
func (f *forwarder) finish(wait time.Duration) bool {
	done := make(chan struct{})
	go func() { // it ends with the last request: those that take long are broken off
		f.forward.Wait()
		close(done)
	}()
	var over <-chan time.Time
	if wait > 0 {
		over = time.After(wait)
	}
	select {
	case <-done:
		return true
	case <-over:
		return false
	}
}

// find is where the owner is; nil: it is not known. Who comes while it is asked for waits, and gets the same answer; what went wrong is
// told to one of them.
func (f *forwarder) find(ctx context.Context) (*url.URL, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Now().Before(f.until) {
		return f.owner, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), findTimeout) // the answer is for others, too
	defer cancel()
	text, err := f.ask(ctx)
	f.owner, f.until = nil, time.Now().Add(believed)
	if err != nil {
		return nil, err
	}
	if text != "" {
		if f.owner, err = url.Parse(text); err != nil {
			return nil, errors.New("where the owner is reached is not a URL; look at its --peer-url") // the text may have a password in it
		}
	}
	return f.owner, nil
}

// forget lets the owner be asked for again.
func (f *forwarder) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.until = time.Time{}
}

// rewrite makes a request of the owner of one that came here: with the name that it was asked under, and where it came from.
func (f *forwarder) rewrite(p *httputil.ProxyRequest) {
	to, ok := p.In.Context().Value(wayKey{}).(*way)
	if !ok {
		return // which cannot be: nothing is forwarded without
	}
	p.SetURL(to.owner)
	p.Out.Host = p.In.Host
	if from, err := netip.ParseAddrPort(p.In.RemoteAddr); err == nil {
		if route.Among(f.o.Proxies, from.Addr()) {
			for _, name := range []string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "Forwarded"} {
				if values, ok := p.In.Header[name]; ok {
					p.Out.Header[name] = values
				}
			}
		}
		p.Out.Header.Add("X-Forwarded-For", from.Addr().Unmap().String())
	}
	p.Out.Header.Set(forwarded, "1")
}

// away answers for an owner that does not. The request is not tried again: once there was a connection, nobody knows what has become of it.
func (f *forwarder) away(w http.ResponseWriter, r *http.Request, err error) {
	f.forget()
	if r.Context().Err() == nil {
		f.o.Log.Warn("the owner of the database does not answer", "error", err)
	}
	if to, ok := r.Context().Value(wayKey{}).(*way); ok && !to.connected.Load() {
		f.refuse(w, "the server that owns the database does not answer; try again")
		return
	}
	status := http.StatusBadGateway
	if t, ok := errors.AsType[net.Error](err); ok && t.Timeout() {
		status = http.StatusGatewayTimeout
	}
	problem(w, status, fault.OutcomeUnknown, "the server that owns the database has not answered, and it is not known whether it was done; look before you repeat it, or use an Idempotency-Key")
}

// refuse answers that it cannot be done now, and that nothing was done.
func (f *forwarder) refuse(w http.ResponseWriter, why string) {
	w.Header().Set("Retry-After", "1")
	problem(w, http.StatusServiceUnavailable, fault.NotReady, why)
}

func problem(w http.ResponseWriter, status int, code fault.Code, why string) {
	w.Header().Set("Content-Type", route.ProblemType)
	answer(w, status, map[string]any{"title": http.StatusText(status), "status": status, "code": code, "detail": why})
}

func answer(w http.ResponseWriter, status int, body map[string]any) {
	text, err := payload.Marshal(body)
	if err != nil {
		text = nil // texts and numbers are always JSON
	}
	w.WriteHeader(status)
	_, _ = w.Write(text) // who asked has gone
}
