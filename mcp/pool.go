package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os/exec"
	"slices"
	"sync"
	"time"

	"tandem/fault"
	"tandem/identity"
	"tandem/shortage"
	"tandem/store"
	"tandem/text"
)

// Pool keeps one connection for each server and user of a workspace. It is safe for concurrent use.
type Pool struct {
	options Options
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	wg      sync.WaitGroup // connections that are made or closed

	mu     sync.Mutex
	closed bool
	slots  map[Key]*slot         // what callers find
	live   map[*slot]struct{}    // all that is not closed yet, also what callers no longer find
	gates  map[Key]chan struct{} // who may renew the tokens of a credential
	// challenges are what servers have wanted since they were authorized; they have no user.
	challenges map[Key]challenge
}

// slot is a connection, or one to be. The pool's mutex guards it, except for what ready says is settled.
type slot struct {
	key     Key
	version string // of the server's row and of the credentials in it
	ready   chan struct{}
	conn    *conn // nil when err is set
	err     error

	stop    context.CancelFunc // of making it
	users   int                // who use it or wait for it
	retired bool               // no longer found; closed when the last user has gone
	closing bool
	timer   *time.Timer // closes it when nobody has used it for long
}

// DefaultConnect is how long a server may take to start and answer for the first time.
const DefaultConnect = 20 * time.Second

// StartLimit is how long a server may take until it can be used: as long as most, or its timeout_seconds where that is longer than what
// servers have that do not say.
func StartLimit(timeoutSeconds int, most time.Duration) time.Duration {
	if timeoutSeconds > store.DefaultMCPTimeout {
		return max(most, time.Duration(timeoutSeconds)*time.Second)
	}
	return most
}

// New makes a pool. It starts nothing.
func New(o Options) (*Pool, error) {
	if o.Servers == nil {
		return nil, errors.New("a pool needs the servers")
	}
	o.Connect, o.CheckAfter, o.ListAge = cmp.Or(o.Connect, DefaultConnect), cmp.Or(o.CheckAfter, 30*time.Second),
		cmp.Or(o.ListAge, time.Minute)
	o.Version = cmp.Or(o.Version, "dev")
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	p := &Pool{options: o, slots: map[Key]*slot{}, live: map[*slot]struct{}{}, gates: map[Key]chan struct{}{},
		challenges: map[Key]challenge{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p, nil
}

// Close ends all connections and processes, and waits for them. Calls under way end with an error of kind Closed.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	p.cancel()
	for s := range p.live {
		p.shut(s)
	}
	p.mu.Unlock()
	p.wg.Wait()
}

// Stop ends a user's connection to a server, with the calls on it. The next call makes another one: after a credential was
// changed, say. An empty user means all users.
func (p *Pool) Stop(workspace, server, user string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.live {
		if s.key.Workspace == workspace && s.key.Server == server && (user == "" || s.key.User == user) {
			p.shut(s)
		}
	}
}

// shut takes a slot away and ends what it holds, no matter who uses it. The mutex is held.
func (p *Pool) shut(s *slot) {
	p.retire(s)
	s.stop()
	select {
	case <-s.ready:
		if s.conn != nil {
			s.conn.cancel(errGone)
			p.end(s)
		}
	default: // its maker sees that it is retired
		s.closing = true
	}
}

// retire takes a slot out of what is found. It is closed when its last user has gone. The mutex is held.
func (p *Pool) retire(s *slot) {
	if p.slots[s.key] == s {
		delete(p.slots, s.key)
	}
	s.retired = true
	if s.timer != nil {
		s.timer.Stop()
	}
	if s.users == 0 {
		s.stop()
		select {
		case <-s.ready:
			p.end(s)
		default:
			s.closing = true
		}
	}
}

// end closes a connection in the background, once. The mutex is held, and the slot is ready.
func (p *Pool) end(s *slot) {
	if s.conn == nil || s.closing {
		return
	}
	s.closing = true
	p.wg.Go(func() { p.bury(s) })
}

// bury closes the connection of a slot, and forgets the slot.
func (p *Pool) bury(s *slot) {
	s.conn.close()
	p.mu.Lock()
	delete(p.live, s)
	p.mu.Unlock()
}

// acquire returns a connection, made if there is none. The caller releases it.
func (p *Pool) acquire(ctx context.Context, key Key, who principal) (*slot, error) {
	stopped := func() error {
		return &Error{Kind: Stopped, Server: key.Server, Message: text.Of("the call was stopped while the server was being reached"), cause: context.Cause(ctx)}
	}
	version, err := p.version(ctx, key, who)
	if err != nil {
		if ctx.Err() != nil {
			err = stopped()
		}
		return nil, err
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, &Error{Kind: Closed, Server: key.Server, Message: text.Of("no more calls are taken: the program ends")}
	}
	s := p.slots[key]
	if s != nil && (s.version != version || s.broken()) {
		p.retire(s)
		s = nil
	}
	if s == nil {
		s = &slot{key: key, version: version, ready: make(chan struct{})}
		var making context.Context
		making, s.stop = context.WithTimeout(p.ctx, StartLimit(who.server.TimeoutSeconds, p.options.Connect))
		p.slots[key], p.live[s] = s, struct{}{}
		p.wg.Go(func() { p.make(making, s, who) })
	}
	s.users++
	if s.timer != nil {
		s.timer.Stop()
	}
	p.mu.Unlock()
	select {
	case <-s.ready:
	case <-ctx.Done():
		p.free(s)
		return nil, stopped()
	}
	if s.err != nil {
		p.free(s)
		return nil, s.err
	}
	return s, nil
}

// version is what a connection is made with: the row of a server, and how the credentials stand that its variables and headers have. One
// that was changed or deleted in another process is noticed by this, too. A token of OAuth is not part of it: it is read for each request.
func (p *Pool) version(ctx context.Context, key Key, who principal) (string, error) {
	row, err := json.Marshal(who.server)
	if err != nil || p.options.Secrets == nil {
		return string(row), err
	}
	names := map[string]bool{}
	for _, values := range []map[string]store.MCPValue{who.server.Env, who.server.Headers} {
		for _, v := range values { // order does not matter: each is asked for once
			if v.Credential != "" {
				names[v.Credential] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		is, err := p.options.Secrets.Version(ctx, who.p, name)
		if err != nil {
			if fault.CodeOf(err) == fault.CredentialMissing {
				p.mu.Lock()
				if s := p.slots[key]; s != nil {
					p.retire(s)
				}
				p.mu.Unlock()
			}
			return "", unreachable(ctx, key, 0, err)
		}
		row = append(append(row, '\n'), is...)
	}
	return string(row), nil
}

// broken says that the connection was made and has ended.
func (s *slot) broken() bool {
	select {
	case <-s.ready:
		return s.conn == nil || s.conn.isBroken()
	default:
		return false
	}
}

// make makes the connection of a slot.
func (p *Pool) make(ctx context.Context, s *slot, who principal) {
	c, err := p.dial(ctx, s.key, who)
	if err != nil {
		s.err = unreachable(ctx, s.key, StartLimit(who.server.TimeoutSeconds, p.options.Connect), err)
	}
	p.mu.Lock()
	s.conn = c
	close(s.ready)
	s.stop()
	unwanted := s.closing || p.closed
	if err != nil {
		delete(p.live, s)
		if p.slots[s.key] == s {
			delete(p.slots, s.key)
		}
	} else if unwanted {
		s.closing = true
	}
	p.mu.Unlock()
	if err == nil && unwanted {
		p.bury(s)
	}
}

// notReady says that a server has taken too long to answer for the first time.
func notReady(limit time.Duration) text.Text {
	return text.Of("the server did not answer within %v of its start; if it needs longer, set its timeout_seconds to more than %d, which its start may then take too", limit, store.DefaultMCPTimeout)
}

// unreachable says why there is no connection.
func unreachable(ctx context.Context, key Key, limit time.Duration, err error) error {
	e := &Error{Kind: Closed, Server: key.Server, Message: text.Of("the server could not be reached"), cause: err}
	own, known := errors.AsType[*Error](err)
	told, said := errors.AsType[*fault.Error](err)
	switch {
	case known:
		e.Kind, e.Message, e.Status, e.Challenge, e.Exit, e.Stderr = own.Kind, own.Message, own.Status, own.Challenge, own.Exit, own.Stderr
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		e.Kind, e.Message = Timeout, notReady(limit)
	case shortage.Is(err):
		e.Message = text.Of("the server could not be started or reached: the machine has run out of open files, processes or memory for now")
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		e.Kind, e.Message = NotStarted, text.Of("the command of the server cannot be started here; check command and dir: %s", err)
	case said:
		e.Message = text.OfError(told)
	}
	return e
}

// free gives a connection back.
func (p *Pool) free(s *slot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.users--
	if s.users > 0 {
		return
	}
	select {
	case <-s.ready:
	default: // nobody waits for it any more
		p.retire(s)
		return
	}
	if s.conn == nil {
		return
	}
	if s.retired {
		p.end(s)
		return
	}
	idle := time.Duration(s.conn.server.IdleSeconds) * time.Second
	if s.timer != nil {
		s.timer.Reset(idle)
		return
	}
	s.timer = time.AfterFunc(idle, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		// A timer that fires while somebody takes the connection finds a user.
		if s.users == 0 && !s.retired {
			p.retire(s)
		}
	})
}

// drop makes sure that nobody else gets a connection that has failed.
func (p *Pool) drop(s *slot) {
	p.mu.Lock()
	p.retire(s)
	p.mu.Unlock()
}

// server reads the row of a server that may be used.
func (p *Pool) server(ctx context.Context, who identity.Principal, id string) (principal, Key, error) {
	s, err := p.options.Servers.Get(ctx, who, id)
	if errors.Is(err, store.ErrNotFound) {
		return principal{}, Key{}, &Error{Kind: UnknownServer, Server: id,
			Message: text.Of("it is not registered in this workspace%s", p.near(ctx, who, id)), cause: err}
	}
	if err != nil {
		return principal{}, Key{}, err
	}
	if !s.Enabled {
		return principal{}, Key{}, &Error{Kind: UnknownServer, Server: id, Message: text.Of("the server is switched off; an administrator can switch it on")}
	}
	return principal{who, s}, Key{who.Workspace, id, who.User}, nil
}

// near offers the id that was perhaps meant. It only makes a message better, so what goes wrong here does not matter.
func (p *Pool) near(ctx context.Context, who identity.Principal, id string) text.Text {
	list, err := p.options.Servers.List(ctx, who)
	if err != nil {
		return text.Text{}
	}
	ids := make([]string, len(list))
	for i, s := range list {
		ids[i] = s.ID
	}
	if n := fault.Nearest(id, ids); n != "" {
		return text.Of("; did you mean %q?", n)
	}
	return text.Of("; an administrator registers it with PUT /api/v1/mcp/servers/{id}")
}

// Tools lists what a server has now, for a user who need not have activated it.
func (p *Pool) Tools(ctx context.Context, who identity.Principal, server string) ([]Tool, error) {
	to, key, err := p.server(ctx, who, server)
	if err != nil {
		return nil, err
	}
	var l *toolList
	err = p.use(ctx, key, to, true, func(c *conn) error {
		l, err = c.list(ctx, true)
		return err
	})
	if err != nil {
		return nil, err
	}
	return l.all, nil
}

// Call calls a tool. A tool that says it failed is an [Output] and an *Error of kind ToolFailed; other errors are *Error too, or *Drifted.
// A connection that was closed is made anew once, when the tool surely has not run or may run again.
func (p *Pool) Call(ctx context.Context, who identity.Principal, call Call) (Output, error) {
	to, key, err := p.server(ctx, who, call.Server)
	if err != nil {
		return Output{}, err
	}
	a, err := p.activation(ctx, who, call.Server)
	if err != nil {
		return Output{}, err
	}
	if args := bytes.TrimSpace(call.Arguments); len(args) > 0 && (args[0] != '{' || !json.Valid(args)) {
		return Output{}, &Error{Kind: BadArguments, Server: call.Server, Tool: call.Tool, Message: text.Of("the arguments are not a JSON object")}
	}
	if told := call.Progress; told != nil {
		call.Progress = func(pr Progress) {
			pr.Message = p.redact(key.Workspace, pr.Message)
			told(pr)
		}
	}
	own, everybodys, err := p.policies(ctx, who, call.Server, call.Tool)
	if err != nil {
		return Output{}, err
	}
	var raw json.RawMessage
	err = p.use(ctx, key, to, !call.NoRepeat, func(c *conn) error {
		l, err := c.list(ctx, false)
		if err != nil {
			return err
		}
		tool, ok := l.byName[call.Tool]
		pin, pinned := a.Tools[call.Tool]
		switch {
		case !ok && !pinned:
			return &Error{Kind: UnknownTool, Server: call.Server, Tool: call.Tool, Message: text.Of("the server has no such tool")}
		case !ok || pin.Hash != tool.Hash:
			return p.drifted(call, a, l)
		}
		verdict := Decide(tool, call.Arguments, own, everybodys)
		if verdict.Decision == Refused {
			return NotAllowedBy(call.Server, call.Tool, verdict)
		}
		if call.Check != nil {
			if err := call.Check(tool, verdict); err != nil {
				return err
			}
		}
		if raw, err = c.call(ctx, tool, call); err == nil && p.options.Clean != nil {
			raw = p.options.Clean(key.Workspace, raw) // here, while the connection holds the secrets that it was given
		}
		return p.clean(key.Workspace, err)
	})
	if err != nil {
		return Output{}, err
	}
	out, err := Read(raw)
	if e, ok := errors.AsType[*Error](err); ok {
		e.Server, e.Tool = call.Server, call.Tool
		return Output{}, e
	}
	if out.IsError {
		return out, &Error{Kind: ToolFailed, Server: call.Server, Tool: call.Tool, Message: text.As(out.Message), Sent: true}
	}
	return out, err
}

// drifted says how the tool that is called differs.
func (p *Pool) drifted(call Call, a store.MCPActivation, l *toolList) error {
	d := &Drifted{Server: call.Server, Tool: call.Tool}
	for _, c := range Drift(a.Tools, l.all) {
		if c.Tool == call.Tool {
			d.Changes = append(d.Changes, c)
		}
	}
	return d
}

// use does something with a connection that lives, and once more with another one when the first was closed and that does no harm. What may
// have reached the server is done once more only where it may be repeated.
func (p *Pool) use(ctx context.Context, key Key, to principal, repeat bool, do func(*conn) error) error {
	sent := false
	for again := false; ; again = true {
		s, err := p.acquire(ctx, key, to)
		if err == nil {
			if err = s.conn.check(ctx); err == nil {
				err = do(s.conn)
			}
		}
		e, ok := errors.AsType[*Error](err)
		if ok && sent {
			e.Sent = true
		}
		closed := ok && e.Kind == Closed && s != nil
		if closed {
			p.drop(s)
		}
		if s != nil {
			p.free(s)
		}
		if !closed || again || ctx.Err() != nil || e.Sent && (e.Once || !repeat) || p.ctx.Err() != nil {
			return err
		}
		sent = e.Sent
	}
}
