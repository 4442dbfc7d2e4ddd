package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"tandem/client"
	"tandem/fault"
	"tandem/route"
	"tandem/server"
	"tandem/store"
)

// Connect says where the API is: at a server, or over a data directory in this process.
type Connect struct {
	// Server is the address of a server and Token one of its tokens. Without a server Dir is opened.
	Server string
	Token  string
	Dir    string
	// Make makes the database if it is not there. Commands that only read leave it unset.
	Make bool
	// Drives lets the executions go on, in this process, that are started here or taken up. Others rest in any case: what a command
	// changes of them is recorded.
	Drives bool
	// Grace is how long what runs in this process may take to end when the connection is closed; zero: 30 s, less: no time. Draining is
	// called when this takes a while. May be nil.
	Grace    time.Duration
	Draining func(grace time.Duration)
	// Options are how the directory is opened, besides Dir.
	Options Options
	// Version is this program's.
	Version string
}

// Connection is a way to the API. It works in the same way for a server and for a data directory.
type Connection struct {
	*client.Client
	// instance is the one in this process; nil with a server.
	instance *Instance
	// drain gives what runs here its grace, once.
	drain func()
	pipe  *pipe
	// beside carries requests to the server that has the data directory open; nil unless it is reached that way.
	beside *http.Transport
}

// NewConnection makes a connection. It must be closed.
func NewConnection(ctx context.Context, o Connect) (*Connection, error) {
	if o.Server != "" {
		c, err := client.New(client.Options{URL: o.Server, Token: o.Token})
		if err != nil {
			return nil, err
		}
		return &Connection{Client: c}, nil
	}
	options := o.Options
	options.Dir, options.Idle, options.Rest, options.Version, options.Existing = o.Dir, true, !o.Drives, o.Version, !o.Make
	i, err := Open(ctx, options)
	if isInUse(err) {
		if c, ok, berr := connectBeside(ctx, o.Dir); ok || berr != nil {
			return c, berr
		}
		return nil, howToReach(err)
	}
	if err != nil {
		return nil, err
	}
	c, err := i.connect(o.Version, options.Log)
	if err != nil {
		return nil, errors.Join(err, i.Close())
	}
	if o.Drives {
		c.drain = sync.OnceFunc(func() { i.drainFor(ctx, o) })
	}
	return c, nil
}

// drainNotice is how long a drain may take before Draining is called.
const drainNotice = 200 * time.Millisecond

// drainFor gives what runs the grace of a command. An interrupt ends it, unless it is what began it: then a second one ends the process.
func (i *Instance) drainFor(ctx context.Context, o Connect) {
	if ctx.Err() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	grace := max(0, cmp.Or(o.Grace, DefaultGrace))
	if o.Draining != nil && grace > 0 {
		defer time.AfterFunc(drainNotice, func() { o.Draining(grace) }).Stop()
	}
	i.drain(ctx, grace)
}

// Drain gives what runs in this process its grace, as Close does. Call it to print something between the drain and Close.
func (c *Connection) Drain() {
	if c.instance != nil {
		c.drain()
	}
}

// isInUse says that a directory was refused because another process has it open.
func isInUse(err error) bool {
	f, ok := errors.AsType[*fault.Error](err)
	return ok && f.Details[store.InUse] != nil
}

// howToReach adds to the refusal of a directory that another process has open how to reach that process, if it is a server.
func howToReach(err error) error {
	f, _ := errors.AsType[*fault.Error](err)
	c := *f
	c.Message += "; if that is a server, name it with --server http://HOST:PORT (TANDEM_SERVER), where the command takes that"
	return &c
}

// Local says whether the API is in this process: nothing goes on when the command ends.
func (c *Connection) Local() bool { return c.instance != nil }

// TakeUp goes on with an execution that was parked. A server does that by itself.
func (c *Connection) TakeUp(ctx context.Context, execution string) error {
	if c.instance == nil {
		return nil
	}
	return c.instance.host.TakeUp(ctx, Local(), execution)
}

// givenUp returns a channel that gets the reason when this process cannot go on with an execution. With a server it gets nothing.
func (c *Connection) givenUp(execution string) (gone <-chan error, stop func()) {
	if c.instance == nil {
		return nil, func() {}
	}
	return c.instance.await(store.Ref{Workspace: Local().Workspace, Execution: execution})
}

// Close ends the connection. What runs in this process gets its grace; the rest is parked.
func (c *Connection) Close() error {
	if c.beside != nil {
		c.beside.CloseIdleConnections()
	}
	if c.instance == nil {
		return nil
	}
	c.Drain()
	return errors.Join(c.pipe.close(), c.instance.Close())
}

// connect serves the API to a client in this process, without a port.
func (i *Instance) connect(version string, log *slog.Logger) (*Connection, error) {
	ring, err := i.Keyring()
	if err != nil {
		return nil, err
	}
	listener := &memoryListener{accept: make(chan net.Conn), done: make(chan struct{})}
	s, err := i.server(ServeOptions{Version: version, Log: log}, listener, nil, ring)
	if err != nil {
		return nil, err
	}
	p := newPipe(listener, s)
	c, err := client.New(client.Options{URL: "http://tandem.internal", HTTP: &http.Client{Transport: p.transport}})
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return &Connection{Client: c, instance: i, pipe: p, drain: func() {}}, nil
}

// pipe carries requests to a handler in this process as if over a network: an HTTP server that accepts connections made in
// memory. So streams, deadlines and early ends behave as they do elsewhere, and no port is opened. All requests through
// the pipe are those of the local user.
type pipe struct {
	api       *server.Server
	web       *http.Server
	transport *http.Transport
	served    chan error
}

func newPipe(listener *memoryListener, api *server.Server) *pipe {
	p := &pipe{api: api, served: make(chan error, 1)}
	p.transport = &http.Transport{DialContext: listener.dial, MaxIdleConnsPerHost: 8, DisableCompression: true}
	p.web = &http.Server{
		Handler: api.Handler(), ReadHeaderTimeout: headerTimeout,
		BaseContext: func(net.Listener) context.Context { return route.As(context.Background(), Local()) },
		ErrorLog:    slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	go func() { p.served <- p.web.Serve(listener) }() // it ends with close
	return p
}

func (p *pipe) close() error {
	err := p.web.Close() // first, so that streams nobody reads any more end as well
	p.api.Close()
	p.transport.CloseIdleConnections()
	if serr := <-p.served; !errors.Is(serr, http.ErrServerClosed) {
		err = errors.Join(err, serr)
	}
	if err != nil {
		return fmt.Errorf("close the connection to this process: %w", err)
	}
	return nil
}

// memoryListener accepts connections of this process.
type memoryListener struct {
	accept chan net.Conn
	done   chan struct{}
	once   sync.Once
}

func (l *memoryListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case l.accept <- there:
		return here, nil
	case <-l.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Accept implements net.Listener.
func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accept:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *memoryListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// Addr implements net.Listener.
func (l *memoryListener) Addr() net.Addr { return memoryAddr{} }

type memoryAddr struct{}

// Network and String implement net.Addr.
func (memoryAddr) Network() string { return "memory" }
func (memoryAddr) String() string  { return "this process" }
