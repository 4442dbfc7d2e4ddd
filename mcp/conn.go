package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tandem/credential"
	"tandem/identity"
	"tandem/store"
	"tandem/text"
	"tandem/workflow"
)

// principal is for whom a connection is, and to what.
type principal struct {
	p      identity.Principal
	server store.MCPServer
}

// conn is one live connection. Many callers use it at once.
//
// Goroutines: those of the session, of the process if there is one, and watch, which cleans up. All have ended when done is closed.
type conn struct {
	pool    *Pool
	key     Key
	server  store.MCPServer
	session *sdk.ClientSession
	link    sdk.Connection
	process *process // nil without one
	chatter *chatter // what the process prints
	release func()   // of the secrets
	// given holds the secrets that the server was given, and only those: what a tool is must not depend on what else is secret at the
	// moment. Models and people read what the server says its tools are.
	given credential.Redactor
	table *exchanges

	ctx    context.Context // ends when the connection is given up
	cancel context.CancelCauseFunc
	broken chan struct{} // the session has ended
	done   chan struct{}

	checking chan struct{} // has room for one: who looks whether the connection lives
	listing  chan struct{} // has room for one: who asks for the tools

	mu        sync.Mutex
	why       error     // the session has ended, if something was wrong
	active    time.Time // when the server was last heard
	calls     uint64
	listeners map[string]*listener // of progress, by token
	tools     *toolList            // nil: not known
	changes   uint64               // how often the server said that its tools have changed
}

// toolList is what a server has. It does not change.
type toolList struct {
	all    []Tool
	byName map[string]Tool
	at     time.Time
	// unseen are names that nobody could read: with breaks of lines, or signs that turn the direction of writing. They would say something
	// else to a person, or to a model, than what is called.
	unseen []string
}

// unseen says that a character is not one that is seen.
func unseen(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}

// Why a connection or a call ends early.
var (
	errSilent = errors.New("the server was silent for too long")
	errLimit  = errors.New("the call took too long")
)

// kept remembers the connection that a transport makes, which the session does not give away.
type kept struct {
	sdk.Transport
	mu     sync.Mutex
	link   sdk.Connection
	closed bool
}

// Connect implements the SDK's Transport.
func (k *kept) Connect(ctx context.Context) (sdk.Connection, error) {
	link, err := k.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	k.link = link
	closed := k.closed
	k.mu.Unlock()
	if closed {
		return nil, errors.Join(errGone, link.Close())
	}
	return link, nil
}

func (k *kept) close() error {
	k.mu.Lock()
	k.closed = true
	link := k.link
	k.mu.Unlock()
	if link == nil {
		return nil
	}
	return link.Close()
}

// dial makes a connection. Its context bounds making it, not its life.
func (p *Pool) dial(ctx context.Context, key Key, who principal) (_ *conn, err error) {
	c := &conn{
		pool: p, key: key, server: who.server, table: &exchanges{}, broken: make(chan struct{}), done: make(chan struct{}),
		checking: make(chan struct{}, 1), listing: make(chan struct{}, 1), listeners: map[string]*listener{}, active: time.Now(),
		release: func() {},
	}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	log := p.options.Log.With("server", key.Server, "workspace", key.Workspace)
	transport, err := c.transport(ctx, who, log)
	if err != nil {
		c.cancel(nil)
		return nil, err
	}
	keep := &kept{Transport: transport}
	// Streams live on the context that they were made with, so it cannot be the one that bounds this.
	unwatch := context.AfterFunc(ctx, func() {
		if err := keep.close(); err != nil {
			log.Debug("give up connecting", "error", err)
		}
		c.cancel(context.Cause(ctx))
	})
	client := sdk.NewClient(&sdk.Implementation{Name: "tandem", Version: p.options.Version}, &sdk.ClientOptions{
		Capabilities:                &sdk.ClientCapabilities{},
		MultiRoundTrip:              &sdk.MultiRoundTripOptions{Disabled: true},
		Logger:                      slog.New(slog.DiscardHandler),
		ToolListChangedHandler:      func(context.Context, *sdk.ToolListChangedRequest) { c.toolsChanged() },
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { c.progressed(r.Params) },
	})
	c.session, err = client.Connect(c.ctx, keep, nil)
	if !unwatch() && err == nil {
		err = errors.Join(context.Cause(ctx), c.session.Close())
	}
	if err != nil {
		c.cancel(nil)
		var byItself bool
		if c.process != nil { // its output may have ended a moment before it did
			byItself = ctx.Err() == nil && await(c.process.exited, inputGrace)
		}
		err = errors.Join(err, keep.close())
		if c.process != nil {
			c.process.stop()
			<-c.process.ended
			err = c.notStarted(ctx, err, byItself)
		}
		c.release()
		return nil, err
	}
	c.link = keep.link
	go c.watch(log)
	return c, nil
}

// notStarted says why a process could not be spoken with: how it ended, if it did so by itself, and what it printed last.
func (c *conn) notStarted(ctx context.Context, err error, byItself bool) error {
	e := &Error{Kind: Closed, Server: c.key.Server, Message: text.Of("the server could not be reached"), cause: err}
	own, known := errors.AsType[*Error](err)
	switch {
	case byItself:
		e.Exit = "exit status 0"
		if failed, ok := errors.AsType[*exec.ExitError](c.process.waited); ok {
			e.Exit = failed.String()
		}
		e.Kind, e.Message = NotStarted, text.Of("its process ended before it had answered, with %s", e.Exit)
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		e.Kind, e.Message = Timeout, notReady(StartLimit(c.server.TimeoutSeconds, c.pool.options.Connect))
	case known:
		e.Kind, e.Message, e.Status, e.Challenge = own.Kind, own.Message, own.Status, own.Challenge
	}
	for _, line := range c.chatter.lastLines() {
		if line = c.pool.redact(c.key.Workspace, line); line != "" {
			e.Stderr = append(e.Stderr, line)
		}
	}
	const most = 3 // that stand in the message; the details have all
	if n := len(e.Stderr); n > 0 {
		e.Message = text.Of("%s; it printed last: %s", e.Message, strings.Join(e.Stderr[max(0, n-most):], " / "))
	} else if byItself || e.Kind == Timeout {
		e.Message = text.Of("%s; it printed nothing", e.Message)
	}
	return e
}

// transport prepares the way to the server; for a process it starts it.
func (c *conn) transport(ctx context.Context, who principal, log *slog.Logger) (sdk.Transport, error) {
	s := who.server
	if s.Transport != store.MCPStdio {
		w, release, err := newWire(ctx, c.pool, who, c.table)
		if err != nil {
			return nil, err
		}
		c.release = release
		c.given.Hold(w.secrets...)
		if s.Transport == store.MCPSSE {
			return &sdk.SSEClientTransport{Endpoint: s.URL, HTTPClient: w.client(), MaxEventSize: maxMessage}, nil
		}
		return &sdk.StreamableClientTransport{Endpoint: s.URL, HTTPClient: w.client(), MaxEventSize: maxMessage}, nil
	}
	values, release, err := c.pool.resolve(ctx, who, s.Env)
	if err != nil {
		return nil, err
	}
	env := inherited()
	for name, value := range values {
		env = append(env, name+"="+value)
	}
	say := &chatter{say: func(line string, left int) {
		if left > 0 {
			log.Warn("tool server: "+line, "left_out", left)
			return
		}
		log.Info("tool server says", "line", c.pool.redact(c.key.Workspace, line))
	}}
	c.chatter = say
	c.process, err = launch(s.Command, s.Args, s.Dir, env, say)
	if err != nil {
		release()
		return nil, err
	}
	c.release = release
	c.given.Hold(secretsOf(values, s.Env)...)
	return &stdio{process: c.process, table: c.table, note: say.line}, nil
}

// watch waits for the end of the session and cleans up.
func (c *conn) watch(log *slog.Logger) {
	err := c.session.Wait()
	if err != nil {
		log.Debug("tool server: the connection has ended", "error", err)
	}
	c.mu.Lock()
	c.why = err
	c.mu.Unlock()
	close(c.broken)
	c.cancel(errGone)
	if err := c.link.Close(); err != nil {
		log.Debug("tool server: close", "error", err)
	}
	if c.process != nil {
		<-c.process.ended
	}
	c.release()
	close(c.done)
}

// close ends the connection and everything on it, and waits for that.
func (c *conn) close() {
	c.cancel(errGone)
	_ = c.link.Close()    // watch tells
	_ = c.session.Close() // as above
	<-c.done
}

func (c *conn) isBroken() bool {
	select {
	case <-c.broken:
		return true
	default:
		return c.ctx.Err() != nil
	}
}

// heard notes that the server lives.
func (c *conn) heard() {
	c.mu.Lock()
	c.active = time.Now()
	c.mu.Unlock()
}

func (c *conn) silentFor() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.active)
}

// pingTimeout is how long a server may take to say that it lives.
const pingTimeout = 5 * time.Second

// check looks whether a connection that was silent still lives. One caller looks for all.
func (c *conn) check(ctx context.Context) error {
	if c.silentFor() < c.pool.options.CheckAfter {
		return nil
	}
	select {
	case c.checking <- struct{}{}:
		defer func() { <-c.checking }()
	case <-ctx.Done():
		return c.explain(ctx, &exchange{}, ctx.Err())
	}
	if c.silentFor() < c.pool.options.CheckAfter {
		return nil
	}
	x, err := c.request(ctx, min(pingTimeout, time.Duration(c.server.TimeoutSeconds)*time.Second),
		func(ctx context.Context) error { return c.session.Ping(ctx, nil) })
	x.mu.Lock()
	answered := x.answered // also a refusal shows that somebody is there: new servers do not know ping
	x.mu.Unlock()
	if err != nil && !answered {
		if ctx.Err() != nil {
			return err
		}
		return &Error{Kind: Closed, Server: c.key.Server, Message: text.Of("the server no longer answers"), cause: err}
	}
	c.heard()
	return nil
}

// request makes a request that takes no longer than it may. Its errors are *Error.
func (c *conn) request(ctx context.Context, limit time.Duration, send func(context.Context) error) (*exchange, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.ctx, func() { cancel(errGone) })()
	timer := time.AfterFunc(limit, func() { cancel(errSilent) })
	defer timer.Stop()
	x := &exchange{}
	defer c.table.remove(x)
	if err := send(context.WithValue(ctx, exchangeKey{}, x)); err != nil {
		return x, c.explain(ctx, x, err)
	}
	c.heard()
	return x, nil
}

// explain says what an error of a request means.
func (c *conn) explain(ctx context.Context, x *exchange, err error) *Error {
	cause := context.Cause(ctx)
	c.mu.Lock()
	if cause == errGone && c.why != nil {
		err = c.why // no matter who noticed the end first, the reason is the same
	}
	c.mu.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	e := &Error{Server: c.key.Server, Sent: x.sent, Status: x.status, cause: err}
	own, known := errors.AsType[*Error](err)
	stopped := ctx.Err() != nil && errors.Is(err, ctx.Err()) // what came after that is not what the caller was told
	refusal, refused := errors.AsType[*jsonrpc.Error](err)
	switch {
	case known:
		e.Kind, e.Message, e.Challenge, e.ends = own.Kind, own.Message, own.Challenge, own.ends && !x.answered
	case x.tooLarge && !stopped:
		e.Kind, e.Message = TooLarge, text.Of("the answer is larger than %d bytes; ask for less", maxMessage)
	case x.answered && refused && !stopped:
		e.Kind, e.Code, e.Message = Protocol, refusal.Code, text.Of("the server refused: %s", refusal.Message)
	case x.answered && !stopped:
		e.Kind, e.Message = Protocol, text.Of("the server's answer makes no sense")
	case cause == errSilent:
		e.Kind, e.Message = Timeout, text.Of("the server did not answer in time; raise its timeout_seconds if it needs longer")
	case cause == errLimit:
		e.Kind, e.Message = Timeout, text.Of("the call took longer than it may in all")
	case cause == errGone:
		e.Kind, e.Message = Closed, text.Of("the connection was closed")
	case ctx.Err() != nil:
		e.Kind, e.Message, e.cause = Stopped, text.Of("the call was stopped"), cause
	case errors.Is(err, sdk.ErrSessionMissing), x.status == http.StatusBadRequest && c.session.ID() != "": // servers say it in both ways
		e.Kind, e.Message = Closed, text.Of("the server has forgotten the session")
	case x.status >= 400:
		e.Kind, e.Message = Protocol, text.Of("the server answered with status %d", x.status)
	default:
		e.Kind, e.Message = Closed, text.Of("the connection ended before the answer")
		if !x.sent {
			e.Message = text.Of("there is no connection to the server")
		}
	}
	return e
}

// call calls a tool and returns the result as the server sent it.
func (c *conn) call(ctx context.Context, t Tool, call Call) (json.RawMessage, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l := &listener{tell: call.Progress, silence: call.Silence}
	if l.silence <= 0 {
		l.silence = time.Duration(c.server.TimeoutSeconds) * time.Second
	}
	limit := call.Limit
	if limit <= 0 {
		limit = max(minLimit, 10*l.silence)
	}
	l.mu.Lock()
	l.timer = time.AfterFunc(l.silence, func() { cancel(errSilent) })
	l.mu.Unlock()
	c.mu.Lock()
	c.calls++
	token := strconv.FormatUint(c.calls, 10)
	c.listeners[token] = l
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.listeners, token)
		c.mu.Unlock()
		l.endListening()
	}()
	args := call.Arguments
	if len(args) == 0 {
		args = json.RawMessage(`{}`)
	}
	params := &sdk.CallToolParams{Name: t.Name, Arguments: args}
	params.SetProgressToken(token)
	timer := time.AfterFunc(limit, func() { cancel(errLimit) })
	defer timer.Stop()
	var result *sdk.CallToolResult
	x, err := c.request(ctx, limit+time.Minute, func(ctx context.Context) (err error) {
		result, err = c.session.CallTool(ctx, params)
		return err
	})
	x.mu.Lock()
	raw := x.result
	x.mu.Unlock()
	// Whatever the SDK makes of it; but what comes after the call was given up, such as the answer to that, is not a result.
	if raw != nil && (err == nil || ctx.Err() == nil && c.ctx.Err() == nil) {
		return raw, nil
	}
	if err != nil {
		e := err.(*Error)
		e.Tool, e.Once = t.Name, Effect(t) == workflow.Once
		if e.Kind == Timeout && context.Cause(ctx) == errSilent && call.Silence > 0 { // the server's own limit was not what ended it
			e.Message = text.Of("the server did not answer within %v", call.Silence)
			if call.SilenceFrom != "" {
				e.Message = text.Of("%s; raise %s if it needs longer", e.Message, call.SilenceFrom)
			}
		}
		return nil, e
	}
	// An answer that came another way, such as a stream that was taken up again.
	return json.Marshal(result)
}

// Bounds of lists of tools.
const (
	maxTools     = 5000
	maxListPages = 1000
)

// toolsChanged forgets the tools.
func (c *conn) toolsChanged() {
	c.mu.Lock()
	c.tools = nil
	c.changes++
	c.mu.Unlock()
	if c.pool.options.ToolsChanged != nil {
		c.pool.options.ToolsChanged(c.key)
	}
}

// known returns the tools if they were asked for lately.
func (c *conn) known() (*toolList, uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tools != nil && time.Since(c.tools.at) < c.pool.options.ListAge {
		return c.tools, c.changes
	}
	return nil, c.changes
}

// list returns the tools. One caller asks for all.
func (c *conn) list(ctx context.Context, fresh bool) (*toolList, error) {
	if l, _ := c.known(); l != nil && !fresh {
		return l, nil
	}
	began := time.Now()
	select {
	case c.listing <- struct{}{}:
		defer func() { <-c.listing }()
	case <-ctx.Done():
		return nil, c.explain(ctx, &exchange{}, ctx.Err())
	}
	var l *toolList
	for range 3 { // a server whose tools change all the time is believed in the end
		known, changes := c.known()
		if known != nil && (!fresh || known.at.After(began)) {
			return known, nil
		}
		var err error
		if l, err = c.fetch(ctx); err != nil {
			return nil, err
		}
		c.mu.Lock()
		same := changes == c.changes
		if same {
			c.tools = l
		}
		c.mu.Unlock()
		if same {
			break
		}
	}
	return l, nil
}

// fetch asks for all tools, page by page.
func (c *conn) fetch(ctx context.Context) (*toolList, error) {
	l := &toolList{byName: map[string]Tool{}, at: time.Now()}
	limit := time.Duration(c.server.TimeoutSeconds) * time.Second
	seen := map[string]bool{}
	for cursor := ""; ; {
		var result *sdk.ListToolsResult
		x, err := c.request(ctx, limit, func(ctx context.Context) (err error) {
			result, err = c.session.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
			return err
		})
		if err != nil {
			return nil, err
		}
		x.mu.Lock()
		raw := x.result
		x.mu.Unlock()
		if raw == nil {
			if raw, err = json.Marshal(result); err != nil {
				return nil, &Error{Kind: Protocol, Server: c.key.Server, Message: text.Of("its list of tools makes no sense"), cause: err}
			}
		}
		if err := l.addTool(c.key.Server, c.given.JSON(valid(raw)), result.Tools); err != nil {
			return nil, &Error{Kind: Protocol, Server: c.key.Server, Message: text.Of("its list of tools makes no sense: %s", err), cause: err}
		}
		cursor = result.NextCursor
		if cursor == "" {
			if len(l.unseen) > 0 {
				c.pool.options.Log.Warn("tool server: tools were left out whose names have characters that are not seen", "server", c.key.Server, "workspace", c.key.Workspace, "tools", l.unseen)
			}
			return l, nil
		}
		if seen[cursor] || len(seen) >= maxListPages || len(l.all) > maxTools {
			return nil, &Error{Kind: Protocol, Server: c.key.Server, Message: text.Of("its list of tools does not end, or has more than %d", maxTools)}
		}
		seen[cursor] = true
	}
}

// addTool takes the tools of a page. Valid are those that the SDK has let pass.
func (l *toolList) addTool(server string, raw json.RawMessage, valid []*sdk.Tool) error {
	var page struct {
		Tools []json.RawMessage `json:"tools"`
	}
	if err := json.Unmarshal(raw, &page); err != nil {
		return err
	}
	names := map[string]bool{}
	for _, t := range valid {
		names[t.Name] = true
	}
	for _, one := range page.Tools {
		if string(one) == "null" {
			continue
		}
		t, err := ReadTool(server, one)
		if err != nil {
			return err
		}
		if !names[t.Name] {
			continue
		}
		if strings.ContainsFunc(t.Name, unseen) {
			l.unseen = append(l.unseen, t.Name)
			continue
		}
		if _, twice := l.byName[t.Name]; twice {
			return fmt.Errorf("tool %q is there twice", t.Name)
		}
		l.all, l.byName[t.Name] = append(l.all, t), t
	}
	return nil
}
