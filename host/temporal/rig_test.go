package temporal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"

	"tandem/cluster"
	"tandem/engine"
	"tandem/host"
	"tandem/host/hosttest"
	"tandem/host/local"
	"tandem/store"
	"tandem/workflow"
)

// queues numbers the task queues: each installation has its own.
var queues atomic.Int64

func newQueue() string { return fmt.Sprintf("tandem-%d-%d", os.Getpid(), queues.Add(1)) }

// site is an installation: processes that work on the same executions. The first is the bench's, the others are started again when they
// have died.
type site struct {
	t       testing.TB
	address string
	queue   string
	alone   bool   // there are no others
	split   bool   // the first process is the server, and two workers are beside it; else there is one beside it, and both do everything
	build   string // of processes that are started
	workers int    // of each process; 0: as the case has it
	others  int    // how many processes are beside the first; 0: one, or two if they are split
	// news are those of the database; nil: the processes tell them.
	news store.News
	// there is closed when Temporal can be reached; nil: it can. Who is refused until then is told to refused: whether it is the first
	// process.
	there   <-chan struct{}
	refused chan<- bool
	// recorded is told of each row, and whether the first process has recorded it. May be nil.
	recorded func(first bool, row host.Row)

	// gone counts the processes beside the first that have died.
	gone atomic.Int64

	mu     sync.Mutex
	setup  hosttest.Setup // of the first process
	beside []*member      // nil: it was stopped, or was not started yet
	ending sync.WaitGroup
	over   context.Context // when it ends, nobody comes back
	end    context.CancelFunc
	told   bulletin
}

// newSite is an installation that uses the server of the tests. Nothing of it outlives the test.
func newSite(t testing.TB) *site {
	s := &site{t: t, address: address, queue: newQueue()}
	s.over, s.end = context.WithCancel(context.Background())
	t.Cleanup(func() { // behind the case's, which kills all processes if it has begun
		s.stop()
		s.ending.Wait()
	})
	return s
}

// finish lets nobody come back. It is for before the processes are killed at the end of a test.
func (s *site) finish() {
	s.end()
	s.mu.Lock() // who is coming is there or gives up
	defer s.mu.Unlock()
}

// member is a process of an installation, with connections of its own.
type member struct {
	*Host
	line   *line
	client client.Client
	rows   *cluster.Rows // of the server of an installation
	died   <-chan struct{}
	once   sync.Once
	left   chan struct{} // closed when it was stopped
}

// join starts a process.
func (s *site) join(ctx context.Context, setup hosttest.Setup, part Part, first bool) (*member, error) {
	m := &member{line: &line{died: setup.Died, there: s.there, refused: func() { s.refuse(first) }}, died: setup.Died, left: make(chan struct{})}
	ctx, cancel := context.WithTimeout(ctx, patient) // it does not wait for Temporal when it is dead
	defer cancel()
	go func() {
		select {
		case <-setup.Died:
			cancel()
		case <-s.over.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	var err error
	if m.client, err = dial(s.address, m.line); err != nil {
		return nil, err
	}
	m.Host, err = New(ctx, Options{
		Client: m.client, TaskQueue: s.queue, Release: s.build, Part: part, Gone: s.departures(),
		Local: local.Options{
			Journal: setup.Stores.Journal, Inbox: setup.Stores.Inbox, Timers: setup.Stores.Timers, Executions: setup.Stores.Executions, Blobs: setup.Stores.Blobs, Logs: setup.Stores.Logs,
			Revision: setup.Find, Child: setup.Child, Workers: cmp.Or(s.workers, setup.Workers), MaxRunning: setup.MaxRunning, MaxTasks: setup.MaxTasks, Task: setup.Task, Rest: setup.Rest,
			Recorded: func(ref store.Ref, _ *workflow.Graph, row host.Row, _ []engine.Command) {
				s.told.post(ref, row.Seq)
				if s.recorded != nil {
					s.recorded(first, row)
				}
				setup.Recorded(ref)
			},
			GivenUp: setup.GivenUp,
		},
	})
	if err != nil {
		m.client.Close()
		return nil, err
	}
	if part == Server && !setup.Rest {
		m.follow(s.listen(), setup.Stores)
	}
	return m, nil
}

// departures says, each time it is called, whether a process beside the first has died since the call before, as the database does that
// they share.
func (s *site) departures() func(context.Context) (bool, error) {
	before := s.gone.Load()
	return func(context.Context) (bool, error) {
		now := s.gone.Load()
		gone := now != before
		before = now
		return gone, nil
	}
}

// listen is who tells what is recorded.
func (s *site) listen() store.News {
	if s.news != nil {
		return s.news
	}
	return &s.told
}

// follow has the host hear what the other processes record, as the wiring of an instance does it.
func (m *member) follow(news store.News, stores store.Stores) {
	m.rows = cluster.FollowRows(cluster.RowsOptions{
		News: news, Source: local.NewSource(stores.Journal, stores.Blobs), Missed: m.HeardNothing, Log: slog.New(slog.DiscardHandler),
		Row: func(ctx context.Context, ref store.Ref, row host.Row) error {
			if status, changed := cluster.Status(row); changed {
				return m.Heard(ctx, ref, status)
			}
			return nil
		},
	})
}

// refuse tells that a process was refused by Temporal, if somebody waits for that.
func (s *site) refuse(first bool) {
	select {
	case s.refused <- first:
	default:
	}
}

// dial connects to a server by a line, when it is needed.
func dial(address string, l *line, more ...grpc.DialOption) (client.Client, error) {
	connection := cluster.Connection()
	connection.DialOptions = append(more, grpc.WithContextDialer(l.dial))
	return client.NewLazyClient(client.Options{HostPort: address, Logger: slog.New(slog.DiscardHandler), ConnectionOptions: connection})
}

// leave stops the process; a dead one cannot say so.
func (m *member) leave() {
	m.once.Do(func() {
		defer close(m.left)
		if m.rows != nil {
			m.rows.Close()
		}
		if m.dead() {
			m.client.Close()
			m.Host.Close()
			return
		}
		m.Host.Close()
		m.client.Close()
	})
}

func (m *member) dead() bool {
	select {
	case <-m.died:
		return true
	default:
		return false
	}
}

// start starts the first process, and those of the others that do not live.
func (s *site) start(ctx context.Context, setup hosttest.Setup) (hosttest.Host, error) {
	part, others := Everything, 1
	if s.split {
		part, others = Server, 2
	}
	others = cmp.Or(s.others, others)
	first, err := s.join(ctx, setup, part, true)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setup = setup
	if s.beside == nil {
		s.beside = make([]*member, others)
		s.t.Cleanup(s.finish)
	}
	if setup.Rest || s.alone {
		return all{first, s}, nil
	}
	for i, m := range s.beside {
		if m != nil {
			continue
		}
		if err := s.begin(ctx, setup, i); err != nil {
			first.leave()
			return nil, err
		}
	}
	return all{first, s}, nil
}

// begin starts a process beside the first. The lock is the caller's.
func (s *site) begin(ctx context.Context, setup hosttest.Setup, place int) error {
	part := Everything
	if s.split {
		part = Worker
	}
	m, err := s.join(ctx, setup.Beside(), part, false)
	if err != nil {
		return err
	}
	s.beside[place] = m
	s.ending.Go(func() {
		select {
		case <-m.died:
			s.gone.Add(1)
		case <-m.left:
		}
		m.leave()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.beside[place] != m || s.over.Err() != nil {
			return
		}
		s.beside[place] = nil
		if err := s.begin(context.WithoutCancel(ctx), setup, place); err != nil && s.over.Err() == nil {
			s.t.Errorf("a process does not come back: %v", err)
		}
	})
	return nil
}

// second is a process beside the first.
func (s *site) second() *member {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.beside[0]
}

// stop stops the processes beside the first, if there are any.
func (s *site) stop() {
	s.mu.Lock()
	was := slices.Clone(s.beside)
	clear(s.beside)
	s.mu.Unlock()
	for _, m := range was {
		if m != nil {
			m.leave()
		}
	}
}

// all are the processes of an installation. Requests go to the first.
type all struct {
	*member
	site *site
}

// Drain implements hosttest.Host.
func (a all) Drain(ctx context.Context) bool {
	a.site.mu.Lock()
	processes := append(slices.Clone(a.site.beside), a.member)
	a.site.mu.Unlock()
	done := make(chan bool, len(processes))
	for _, m := range processes {
		go func() { done <- m == nil || m.Drain(ctx) }()
	}
	drained := true
	for range processes {
		drained = <-done && drained
	}
	return drained
}

// Close implements hosttest.Host. The others outlive a first process that has died.
func (a all) Close() {
	if !a.dead() {
		a.site.stop()
	}
	a.leave()
}

// bulletin tells what the processes of an installation record, in the order of each execution, as the database that they share does.
type bulletin struct {
	mu        sync.Mutex
	last      map[store.Ref]uint64
	listeners []func([]store.Fresh)
}

// Listen implements [store.News].
func (b *bulletin) Listen(ctx context.Context, told func([]store.Fresh)) error {
	b.mu.Lock()
	b.listeners = append(b.listeners, func(fresh []store.Fresh) {
		if ctx.Err() == nil {
			told(fresh)
		}
	})
	b.mu.Unlock()
	told(nil)
	<-ctx.Done()
	return context.Cause(ctx)
}

// post tells of a row, and of those before it that nobody has told of.
func (b *bulletin) post(ref store.Ref, seq uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last == nil {
		b.last = map[store.Ref]uint64{}
	}
	for b.last[ref] < seq {
		b.last[ref]++
		for _, told := range b.listeners {
			told([]store.Fresh{{Ref: ref, Seq: b.last[ref]}})
		}
	}
}

// rig has an installation on some stores.
func (s *site) rig(stores func() store.Stores) hosttest.Rig {
	return hosttest.Rig{
		Stores: stores, Shared: true, Patience: patient, Start: s.start, Revision: local.Revision,
		Source: func(st store.Stores) host.Source { return local.NewSource(st.Journal, st.Blobs) },
	}
}

// line is the connections of one process to a server. A dead process sends nothing any more, and while the line is cut nothing gets
// through, as when packets are lost.
type line struct {
	died <-chan struct{}
	// there is closed when the server is there; nil: it is. Refused is told of those who come before.
	there   <-chan struct{}
	refused func()

	mu    sync.Mutex
	whole chan struct{} // closed when it is not cut any more; nil: it is not
}

var errCut = errors.New("the process is dead") // read-only

func (l *line) dial(ctx context.Context, address string) (net.Conn, error) {
	if err := l.pass(ctx.Done()); err != nil {
		return nil, err
	}
	if l.there != nil {
		select {
		case <-l.there:
		default:
			l.refused()
			return nil, syscall.ECONNREFUSED
		}
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	return wire{conn, l}, err
}

// pass waits until the line is whole, and refuses the dead.
func (l *line) pass(stop <-chan struct{}) error {
	l.mu.Lock()
	whole := l.whole
	l.mu.Unlock()
	if whole != nil {
		select {
		case <-whole:
		case <-l.died:
		case <-stop:
			return context.Canceled
		}
	}
	select {
	case <-l.died:
		return errCut
	default:
		return nil
	}
}

func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.whole = make(chan struct{})
}

func (l *line) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.whole)
	l.whole = nil
}

// wire is a connection of a line.
type wire struct {
	net.Conn
	line *line
}

// Write implements net.Conn.
func (w wire) Write(p []byte) (int, error) {
	if err := w.line.pass(nil); err != nil {
		return 0, err
	}
	return w.Conn.Write(p)
}

// Read implements net.Conn.
func (w wire) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if refused := w.line.pass(nil); refused != nil {
		return 0, refused
	}
	return n, err
}
