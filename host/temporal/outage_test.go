package temporal

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tandem/engine"
	"tandem/host"
	"tandem/host/hosttest"
	"tandem/identity"
	"tandem/store"
	"tandem/store/postgres/postgrestest"
)

// loadSize is how many executions are under way when something befalls them, and how many come after it.
const loadSize = 6

// patient is how long a test waits for what must come.
const patient = 10 * time.Minute

// await returns when it is told what a test waits for.
func await(t *testing.T, what string, told <-chan struct{}) {
	t.Helper()
	select {
	case <-told:
	case <-time.After(patient):
		t.Fatalf("waited for %s", what)
	}
}

// script runs one of the scripts that start and stop servers.
func script(t *testing.T, name string, arguments ...string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../../scripts", name))
	if err != nil {
		t.Fatal(err)
	}
	run := exec.Command(path, arguments...)
	run.Stderr = os.Stderr
	out, err := run.Output()
	if err != nil {
		t.Fatalf("%s %v: %v", name, arguments, err)
	}
	return strings.TrimSpace(string(out))
}

// TestOutage_TemporalIsKilled kills the Temporal server in the midst of things and starts it again on its state.
func TestOutage_TemporalIsKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := newSite(t)
	s.address = script(t, "temporal.sh", "start", dir)
	t.Cleanup(func() {
		script(t, "temporal.sh", "stop", dir)
		if log, err := os.ReadFile(filepath.Join(dir, "server.log")); t.Failed() {
			t.Logf("the Temporal server has said: %s %v", log, err)
		}
	})
	_, port, err := net.SplitHostPort(s.address)
	if err != nil {
		t.Fatal(err)
	}
	hosttest.Load(loadSize, func(_, end func()) {
		script(t, "temporal.sh", "kill", dir)
		end() // what runs has an outcome, which nobody can be told of
		script(t, "temporal.sh", "start", dir, port)
	}).Play(t, s.rig(hosttest.NewDisk().Stores), hosttest.Fate{})
}

// TestOutage_PartitionFromTemporal cuts one process off from Temporal for so long that its runs are given up and come back in the other
// one. Then both have an outcome.
func TestOutage_PartitionFromTemporal(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	hosttest.Load(loadSize, func(again, _ func()) {
		second := s.second()
		second.line.cut()
		again()
		second.line.mend()
	}).Play(t, s.rig(hosttest.NewDisk().Stores), hosttest.Fate{})
}

// TestOutage_PostgreSQLIsKilled ends PostgreSQL at once, without a word to anybody, and starts it again. A server owns the database, and two
// workers write beside it.
func TestOutage_PostgreSQLIsKilled(t *testing.T) {
	t.Parallel()
	pg := postgrestest.Start(t)
	address := pg.Database(t)
	s := newSite(t)
	s.split = true
	hosttest.Load(loadSize, func(_, end func()) { pg.Restart(t, end) }).Play(t, s.shared(address), hosttest.Fate{})
}

// TestOutage_PartitionFromPostgreSQL cuts a server and its workers off from their database while runs end.
func TestOutage_PartitionFromPostgreSQL(t *testing.T) {
	t.Parallel()
	pg := postgrestest.Start(t)
	p := newProxy(t, pg.Database(t))
	s := newSite(t)
	s.split = true
	hosttest.Load(loadSize, func(_, end func()) {
		p.line.cut()
		defer p.line.mend()
		end()
		await(t, "something to wait for the database", p.waits)
	}).Play(t, s.shared(p.address), hosttest.Fate{})
}

// TestOutage_OneProcessIsPartedFromPostgreSQL cuts one process off from the database while the other goes on. What it has run has an
// outcome then that it can record only later, on other connections.
func TestOutage_OneProcessIsPartedFromPostgreSQL(t *testing.T) {
	t.Parallel()
	pg := postgrestest.Start(t)
	address := pg.Database(t)
	behind, gate := postgrestest.NewGate(t, address)
	s := newSite(t)
	s.workers = loadSize // neither can run all
	wentOn, writes := make(chan struct{}, 1), make(chan struct{})
	s.recorded = func(first bool, row host.Row) {
		if !first || !slices.ContainsFunc(row.Facts, func(f engine.Fact) bool { _, done := f.(engine.NodeCompleted); return done }) {
			return
		}
		select {
		case wentOn <- struct{}{}:
		default:
		}
	}
	rig := s.shared(address, behind)
	reach := rig.Beside
	rig.Beside = func() store.Stores {
		stores := reach()
		stores.Journal = writingJournal{stores.Journal, writes}
		return stores
	}
	hosttest.Load(loadSize, func(_, end func()) {
		gate.Close()
		select {
		case <-wentOn: // it was before
		default:
		}
		end()
		await(t, "the process that reaches the database to go on", wentOn)
		await(t, "the other to have something to record", writes)
		gate.Forsake()
		gate.Open()
	}).Play(t, rig, hosttest.Fate{})
}

// writingJournal tells that a row is being written, for as long as it is.
type writingJournal struct {
	store.Journal
	writes chan<- struct{}
}

// Append implements [store.Journal].
func (j writingJournal) Append(ctx context.Context, p identity.Principal, rows ...*store.Append) error {
	written := make(chan struct{})
	defer close(written)
	go tellUntil(written, j.writes)
	return j.Journal.Append(ctx, p, rows...)
}

// TestOutage_TemporalIsNotThereYet starts a server and a worker before Temporal: what is begun is recorded and runs when Temporal has come.
func TestOutage_TemporalIsNotThereYet(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	there, refused, recorded := make(chan struct{}), make(chan bool), make(chan struct{}, 1)
	s.split, s.alone, s.build, s.there, s.refused = true, true, "1", there, refused
	s.recorded = func(bool, host.Row) {
		select {
		case recorded <- struct{}{}:
		default:
		}
	}
	var work sync.WaitGroup
	hosttest.Chain(2, 2, func() { // the server is ready
		work.Go(func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if err := s.begin(context.WithoutCancel(t.Context()), s.setup, 0); err != nil {
				t.Errorf("the worker has not waited: %v", err)
			}
		})
		work.Go(func() {
			<-recorded
			for <-refused { // until it is the worker
			}
			close(there)
		})
	}).Play(t, s.rig(hosttest.NewDisk().Stores), hosttest.Fate{})
	work.Wait()
}

// proxy stands between a process and its database. Its line can be cut.
type proxy struct {
	line    *line
	address string
	// waits tells that something the process has sent does not get through, for as long as that is so.
	waits chan struct{}
}

func newProxy(t *testing.T, behind string) *proxy {
	t.Helper()
	at, err := url.Parse(behind)
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(at.Query().Get("host"), ".s.PGSQL.5432")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{line: &line{died: make(chan struct{})}, waits: make(chan struct{})}
	p.address = fmt.Sprintf("postgres://tandem@%s%s?sslmode=disable", listener.Addr(), at.Path)
	var serving sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		cancel()
		_ = listener.Close() // it is the end of it either way
		serving.Wait()
	})
	serving.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { p.serve(ctx, near, socket) })
		}
	})
	return p
}

// serve carries a connection until either side ends it.
func (p *proxy) serve(ctx context.Context, near net.Conn, socket string) {
	far, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		_ = near.Close()
		return
	}
	end := context.AfterFunc(ctx, func() {
		_ = near.Close()
		_ = far.Close()
	})
	defer end()
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(sending{wire{far, p.line}, p.waits}, near) // an end is an end
		_ = far.Close()
	})
	both.Go(func() {
		_, _ = io.Copy(near, wire{far, p.line})
		_ = near.Close()
	})
	both.Wait()
}

// sending is a connection that tells, while something is written to it, that it waits.
type sending struct {
	net.Conn
	waits chan<- struct{}
}

// Write implements net.Conn.
func (c sending) Write(p []byte) (int, error) {
	written := make(chan struct{})
	defer close(written)
	go tellUntil(written, c.waits)
	return c.Conn.Write(p)
}

// tellUntil tells whoever asks, until something is over.
func tellUntil(over <-chan struct{}, told chan<- struct{}) {
	select {
	case told <- struct{}{}:
	case <-over:
	}
}
