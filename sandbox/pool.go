package sandbox

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tandem/fault"
)

// Options of a pool. The zero value works: nothing is cached on disk then.
type Options struct {
	// Dir is where compiled interpreters are kept from one start to the next. It must belong to the operator alone:
	// what lies there is executed. Empty means that every child compiles for itself, which takes seconds.
	Dir string
	// PerTenant bounds the children of one tenant for each language. Zero is the number of processors.
	PerTenant int
	// Total bounds the children of all tenants. Zero is four times the number of processors, at least eight.
	Total int
	// Idle is how long a child without calls is kept. Zero is five minutes.
	Idle time.Duration
}

// Pool runs calls in children. A child has one tenant and one language for its whole life, and one call at a time.
// Nothing is started, unpacked or compiled before the first call or [Pool.Prepare]. Methods may be used by several goroutines.
type Pool struct {
	options Options

	mu     sync.Mutex
	lanes  map[laneKey]*lane
	queue  []*waiter // who waits for a child, oldest first
	total  int       // children of all lanes, with those that are starting
	closed bool
	reaper *time.Timer

	// first is held for a language by the child that starts first, so that others find its cache filled.
	first map[Language]*firstStart
	// version is the name of this version in the cache.
	version func() (string, error)
	// work counts the goroutines that start children.
	work sync.WaitGroup
	// stop ends starts when the pool closes.
	stop   context.Context
	cancel context.CancelFunc
}

// firstStart lets one start after the other until one has succeeded, and from then on all at once.
type firstStart struct {
	mu   sync.Mutex
	done atomic.Bool
}

func (f *firstStart) start(start func() (*child, error)) (*child, error) {
	if !f.done.Load() {
		f.mu.Lock()
		defer f.mu.Unlock()
	}
	ch, err := start()
	if err == nil {
		f.done.Store(true)
	}
	return ch, err
}

type laneKey struct {
	tenant   string
	language Language
}

// lane is the children of one tenant for one language. Guarded by Pool.mu.
type lane struct {
	idle     []*child // the one used last is at the end
	busy     map[*child]struct{}
	starting int
}

func (l *lane) count() int { return len(l.idle) + len(l.busy) + l.starting }

type waiter struct {
	key   laneKey
	grant chan grant // holds one
}

type grant struct {
	child *child
	err   error
}

// New makes a pool. It starts nothing.
func New(options Options) *Pool {
	if IsChild() {
		panic("sandbox: this process was started to run code, not to be the program once more; " + mustAsk)
	}
	if options.PerTenant <= 0 {
		options.PerTenant = runtime.NumCPU()
	}
	if options.Total <= 0 {
		options.Total = max(8, 4*runtime.NumCPU())
	}
	if options.Idle <= 0 {
		options.Idle = 5 * time.Minute
	}
	stop, cancel := context.WithCancel(context.Background())
	return &Pool{
		options: options, lanes: make(map[laneKey]*lane), stop: stop, cancel: cancel,
		first: map[Language]*firstStart{Python: {}, JavaScript: {}, Jinja: {}}, version: sync.OnceValues(cacheName),
	}
}

// Run calls one function and waits for what it returns. The error is a *fault.Error: code_error for what the code
// raised (with type, message, line and traceback in its details), code_limit, output_invalid, or what is wrong with the
// call itself. Stdout and Stderr have what the code has printed, however it ended.
func (p *Pool) Run(ctx context.Context, c Call) (Result, error) {
	q, invalid := c.request()
	if invalid != nil {
		return Result{}, invalid
	}
	limit := c.TimeLimit
	if limit == 0 {
		limit = DefaultTimeLimit
	}
	if c.Waiting != nil && c.Language == Python && !p.Prepared() {
		c.Waiting()
	}
	// Code has no effect outside its child, so a call whose child was lost for no fault of its own is made once more.
	for attempt := 1; ; attempt++ {
		ch, err := p.acquire(ctx, laneKey{c.Tenant, c.Language})
		if err != nil {
			return Result{}, err
		}
		if c.Begun != nil {
			c.Begun()
		}
		r, err := ch.exchange(ctx, q, limit, c.Printed)
		p.release(ch, err == nil)
		if err == nil {
			return r.result(&c, q)
		}
		printed := Result{Stdout: said(string(r.stdout)), Stderr: said(string(r.stderr))}
		switch {
		case errors.Is(err, errTimeLimit):
			return printed, timeLimitError(limit)
		case ctx.Err() != nil:
			return printed, canceled(ctx)
		case p.stop.Err() != nil:
			return printed, errClosed()
		case attempt == 2:
			return printed, fault.New(fault.CodeLimit, "the process that ran the code was lost, twice; the code may need more memory than the machine has").WithCause(err)
		}
	}
}

// prepareTenant owns the child that only fills the cache. No workspace has this name.
const prepareTenant = "/prepare"

// Prepared says whether a first call of Python need not wait for the interpreter to be compiled. Without a directory, or without
// Python, there is nothing to wait for that could be prepared.
func (p *Pool) Prepared() bool {
	if p.options.Dir == "" || !pythonAvailable() {
		return true
	}
	name, err := p.version()
	return err == nil && filled(filepath.Join(p.options.Dir, name))
}

// Prepare compiles the interpreter of Python, if that was not done yet, so that later calls find it in the cache.
func (p *Pool) Prepare(ctx context.Context) error {
	if p.Prepared() {
		return nil
	}
	ch, err := p.acquire(ctx, laneKey{prepareTenant, Python})
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.lanes[ch.key].busy, ch)
	p.total--
	ch.kill()
	p.fill()
	return nil
}

// Close ends every child, and with it every call that is running, and waits until they are gone.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	p.cancel()
	if p.reaper != nil {
		p.reaper.Stop()
	}
	var children []*child
	for _, l := range p.lanes {
		// The order does not matter: all are ended.
		children = append(children, l.idle...)
		for ch := range l.busy {
			children = append(children, ch)
		}
		l.idle = nil
	}
	for _, w := range p.queue {
		w.grant <- grant{err: errClosed()}
	}
	p.queue = nil
	p.mu.Unlock()
	for _, ch := range children {
		ch.kill()
	}
	for _, ch := range children {
		<-ch.gone
	}
	p.work.Wait()
}

func errClosed() *fault.Error {
	return fault.New(fault.Interrupted, "the sandbox is closed; the process is shutting down")
}

func canceled(ctx context.Context) *fault.Error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fault.New(fault.Timeout, "the code did not end in the time of the node").WithCause(context.Cause(ctx))
	}
	return fault.New(fault.Canceled, "the call of the code was canceled").WithCause(context.Cause(ctx))
}

// acquire returns a child of the lane, which then belongs to the caller until release.
func (p *Pool) acquire(ctx context.Context, key laneKey) (*child, error) {
	if ctx.Err() != nil {
		return nil, canceled(ctx)
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errClosed()
	}
	l := p.lanes[key]
	if l == nil {
		l = &lane{busy: make(map[*child]struct{})}
		p.lanes[key] = l
	}
	for n := len(l.idle); n > 0; n = len(l.idle) {
		ch := l.idle[n-1]
		l.idle = l.idle[:n-1]
		if ch.lost() {
			p.total--
			continue
		}
		l.busy[ch] = struct{}{}
		p.mu.Unlock()
		return ch, nil
	}
	w := &waiter{key: key, grant: make(chan grant, 1)}
	p.queue = append(p.queue, w)
	p.fill()
	p.mu.Unlock()

	select {
	case g := <-w.grant:
		return g.child, g.err
	case <-ctx.Done():
	}
	p.mu.Lock()
	if i := slices.Index(p.queue, w); i >= 0 {
		p.queue = slices.Delete(p.queue, i, i+1)
		p.mu.Unlock()
		return nil, canceled(ctx)
	}
	p.mu.Unlock()
	// It was granted at the same moment.
	if g := <-w.grant; g.err == nil {
		p.release(g.child, true)
	}
	return nil, canceled(ctx)
}

// release takes a child back. One that is not healthy is replaced at once, in the background.
func (p *Pool) release(ch *child, healthy bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.lanes[ch.key]
	delete(l.busy, ch)
	if p.closed || !healthy {
		ch.kill()
		p.total--
		if !p.closed {
			p.fill()
			if l.count() < p.options.PerTenant && p.total < p.options.Total {
				p.start(ch.key, l)
			}
		}
		return
	}
	p.offer(ch, l)
}

// offer gives a child to a caller that waits for one of its lane, else it is idle. The caller holds mu.
func (p *Pool) offer(ch *child, l *lane) {
	for i, w := range p.queue {
		if w.key == ch.key {
			p.queue = slices.Delete(p.queue, i, i+1)
			l.busy[ch] = struct{}{}
			w.grant <- grant{child: ch}
			return
		}
	}
	ch.idleSince = time.Now()
	l.idle = append(l.idle, ch)
	if p.reaper == nil {
		p.reaper = time.AfterFunc(p.options.Idle, p.reap)
	}
	p.fill()
}

// fill starts children for those who wait, oldest first, as far as the limits allow. The caller holds mu.
func (p *Pool) fill() {
	waiting := make(map[laneKey]int)
	for _, w := range p.queue {
		waiting[w.key]++
		l := p.lanes[w.key]
		if waiting[w.key] <= l.starting || l.count() >= p.options.PerTenant {
			continue
		}
		if p.total >= p.options.Total && !p.evict() {
			return
		}
		p.start(w.key, l)
	}
}

// evict ends the child that has been idle longest, whosever it is. The caller holds mu.
func (p *Pool) evict() bool {
	var from *lane
	for _, l := range p.lanes {
		// The order does not matter: the smallest time is looked for.
		if len(l.idle) > 0 && (from == nil || l.idle[0].idleSince.Before(from.idle[0].idleSince)) {
			from = l
		}
	}
	if from == nil {
		return false
	}
	from.idle[0].kill()
	from.idle = slices.Delete(from.idle, 0, 1)
	p.total--
	return true
}

// start begins a child for a lane, in the background. The caller holds mu.
func (p *Pool) start(key laneKey, l *lane) {
	l.starting++
	p.total++
	p.work.Go(func() {
		ch, err := p.first[key.language].start(func() (*child, error) { return startChild(p.stop, key, p.options.Dir) })
		p.mu.Lock()
		defer p.mu.Unlock()
		l.starting--
		switch {
		case err == nil && !p.closed:
			p.offer(ch, l)
		case err == nil:
			ch.kill()
			p.total--
		default:
			p.total--
			// A caller that waits for this lane would only meet the same error.
			p.queue = slices.DeleteFunc(p.queue, func(w *waiter) bool {
				if w.key != key {
					return false
				}
				w.grant <- grant{err: err}
				return true
			})
			p.fill()
		}
	})
}

// reap ends children that have been idle too long, and lanes that are empty, and comes again while there are any.
func (p *Pool) reap() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	now := time.Now()
	left := false
	for key, l := range p.lanes {
		// The order does not matter: each lane is looked at by itself.
		l.idle = slices.DeleteFunc(l.idle, func(ch *child) bool {
			if !ch.lost() && now.Sub(ch.idleSince) < p.options.Idle {
				return false
			}
			ch.kill()
			p.total--
			return true
		})
		left = left || len(l.idle) > 0
		if l.count() == 0 && !slices.ContainsFunc(p.queue, func(w *waiter) bool { return w.key == key }) {
			delete(p.lanes, key)
		}
	}
	p.reaper = nil
	if left {
		p.reaper = time.AfterFunc(p.options.Idle/2+1, p.reap)
	}
}
