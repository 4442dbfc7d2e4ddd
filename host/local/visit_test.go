package local_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tandem/engine"
	"tandem/host"
	"tandem/host/hosttest"
	"tandem/host/local"
	"tandem/host/sweep"
	"tandem/store"
	"tandem/workflow"
)

// porter is a carrier in memory. It outlives the processes, as a cluster does, and has each execution's work done by whichever
// process lives: two do at a time, and take turns.
type porter struct {
	mu    sync.Mutex
	hosts []*local.Host
	turn  int
	loads map[store.Ref]*load
	// changed is closed and made anew when something has happened.
	changed chan struct{}
	closed  bool
	// busy counts the runs, of which there are as many as workers; draining says that the processes were told to stop.
	busy, workers int
	draining      bool
	at            sync.WaitGroup
}

// load is what the porter knows of one execution: ids and times.
type load struct {
	look    bool
	lost    []engine.Attempt
	running map[engine.Attempt]running
	due     int64
}

// running is a run, and the row as of which it was wanted, at first and at last.
type running struct {
	stop       context.CancelFunc
	seq, again uint64
}

func newPorter() *porter { return &porter{loads: map[store.Ref]*load{}, changed: make(chan struct{})} }

// Wake implements local.Carrier.
func (p *porter) Wake(ref store.Ref) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.load(ref); l != nil {
		l.look = true
		p.notify()
	}
}

// load is what is known of an execution, which is carried from now on; nil: none is any more. The lock is the caller's.
func (p *porter) load(ref store.Ref) *load {
	l := p.loads[ref]
	if l == nil && !p.closed {
		l = &load{running: map[engine.Attempt]running{}}
		p.loads[ref] = l
		p.at.Go(func() { p.carry(ref, l) })
	}
	return l
}

// Begin implements local.Carrier.
func (p *porter) Begin(ref store.Ref, n local.Next) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.load(ref); l != nil {
		p.take(ref, l, n)
	}
}

// notify tells everybody who waits. The lock is the caller's.
func (p *porter) notify() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// process waits for one that lives.
func (p *porter) process() *local.Host { return p.pick(func() bool { return true }) }

// worker waits for one that has room for a run.
func (p *porter) worker() *local.Host {
	return p.pick(func() bool {
		if p.busy >= p.workers {
			return false
		}
		p.busy++
		return true
	})
}

func (p *porter) pick(may func() bool) *local.Host {
	for {
		p.mu.Lock()
		closed, changed := p.closed, p.changed
		if len(p.hosts) > 0 && !closed && may() {
			p.turn++
			h := p.hosts[p.turn%len(p.hosts)]
			p.mu.Unlock()
			return h
		}
		p.mu.Unlock()
		if closed {
			return nil
		}
		<-changed
	}
}

// carry has one execution attended to whenever it is woken.
func (p *porter) carry(ref store.Ref, l *load) {
	for {
		p.mu.Lock()
		for !l.look && !p.closed {
			changed, due := p.changed, l.due
			p.mu.Unlock()
			clock := time.NewTimer(100 * time.Hour)
			if due != 0 {
				clock.Reset(time.Until(time.UnixMilli(due)))
			}
			select {
			case <-changed:
				p.mu.Lock()
			case <-clock.C:
				p.mu.Lock()
				l.look, l.due = true, 0
			}
			clock.Stop()
		}
		lost := l.lost
		l.look, l.lost, l.due = false, nil, 0
		closed := p.closed
		p.mu.Unlock()
		if closed {
			return
		}
		h := p.process()
		if h == nil {
			return
		}
		next, err := h.Attend(ref, lost...)
		p.mu.Lock()
		if err != nil {
			l.look, l.lost = true, append(l.lost, lost...)
			p.mu.Unlock()
			time.Sleep(100 * time.Millisecond)
			continue
		}
		p.take(ref, l, next)
		p.mu.Unlock()
	}
}

// take has done what follows. The lock is the caller's.
func (p *porter) take(ref store.Ref, l *load, n local.Next) {
	if n.Due != 0 && (l.due == 0 || n.Due < l.due) {
		l.due = n.Due
		p.notify()
	}
	for _, at := range n.Stop {
		if r, ok := l.running[at]; ok {
			r.stop()
		}
	}
	for at, r := range l.running {
		if n.All && r.seq <= n.Seq && !slices.ContainsFunc(n.Run, func(w local.Work) bool { return w.Attempt == at }) {
			r.stop()
		}
	}
	for _, w := range n.Run {
		if r, runs := l.running[w.Attempt]; runs || p.closed {
			r.again = max(r.again, n.Seq)
			l.running[w.Attempt] = r
			continue
		}
		ctx, stop := context.WithCancel(context.Background())
		l.running[w.Attempt] = running{stop: stop, seq: n.Seq}
		p.at.Go(func() { p.run(ctx, ref, l, w) })
	}
}

// run has an attempt run, again and again unless it may run once only.
func (p *porter) run(ctx context.Context, ref store.Ref, l *load, w local.Work) {
	var next local.Next
	err, was := error(nil), local.WasNothing
	for {
		var told atomic.Int64
		told.Store(int64(local.WasBegun))
		h := p.worker()
		if h == nil {
			break
		}
		next, err = h.Run(ctx, ref, w.Attempt, was, func(is local.Was) { told.Store(int64(is)) })
		p.mu.Lock()
		p.busy--
		p.notify()
		if was = local.Was(told.Load()); err != nil && p.draining && was != local.WasNothing {
			was = local.WasStopped
		}
		p.mu.Unlock()
		if err == nil || w.Once {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	r := l.running[w.Attempt]
	r.stop()
	delete(l.running, w.Attempt)
	if r.again != 0 && r.again >= next.Seq { // it has waited meanwhile, and runs again
		next.Run = append(next.Run, w)
	}
	if err != nil {
		l.look, l.lost = true, append(l.lost, w.Attempt)
		p.notify()
	}
	p.take(ref, l, next)
}

// pair is two processes on the same data.
type pair struct {
	*local.Host
	other  *local.Host
	porter *porter
}

// Drain implements hosttest.Host.
func (h pair) Drain(ctx context.Context) bool {
	p := h.porter
	for {
		p.mu.Lock()
		p.hosts, p.draining = nil, true
		busy, changed := p.busy, p.changed
		p.mu.Unlock()
		if busy == 0 {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// Close implements hosttest.Host.
func (h pair) Close() {
	h.porter.mu.Lock()
	h.porter.hosts = nil
	h.porter.mu.Unlock()
	h.Host.Close()
	h.other.Close()
}

// carriedRig is a pair of processes on a simulated disk, and what carries their executions.
func carriedRig(t *testing.T, disk *hosttest.Disk) hosttest.Rig {
	rig, p := rigOn(disk), newPorter()
	rig.Patience, rig.Shared = 10*time.Minute, true
	t.Cleanup(func() {
		p.mu.Lock()
		p.closed = true
		p.notify()
		p.mu.Unlock()
		p.at.Wait()
	})
	rig.Start = func(ctx context.Context, s hosttest.Setup) (hosttest.Host, error) {
		open := func() (*local.Host, error) {
			return local.New(ctx, local.Options{
				Journal: s.Stores.Journal, Inbox: s.Stores.Inbox, Timers: s.Stores.Timers, Executions: s.Stores.Executions, Blobs: s.Stores.Blobs, Logs: s.Stores.Logs,
				Revision: s.Find, Child: s.Child, Workers: s.Workers, Rest: s.Rest, Carrier: p,
				Recorded: func(ref store.Ref, _ *workflow.Graph, _ host.Row, _ []engine.Command) { s.Recorded(ref) },
				GivenUp:  s.GivenUp,
			})
		}
		one, err := open()
		if err != nil {
			return nil, err
		}
		two, err := open()
		if err != nil {
			return nil, err
		}
		if !s.Rest {
			p.mu.Lock()
			p.hosts, p.workers, p.draining = []*local.Host{one, two}, s.Workers, false
			p.notify()
			p.mu.Unlock()
			sweeper := sweep.New(sweep.Options{Executions: s.Stores.Executions, Inbox: s.Stores.Inbox, Timers: s.Stores.Timers, Books: one, Wake: p.Wake})
			if err := sweeper.All(ctx); err != nil {
				return nil, err
			}
		}
		return pair{one, two, p}, nil
	}
	return rig
}

// TestCarried_Suite holds two processes with a carrier to the suite.
func TestCarried_Suite(t *testing.T) {
	t.Parallel()
	for _, c := range hosttest.Cases() {
		if c.MaxRunning+c.MaxTasks > 0 || c.Name == "Blame/PoisonAmongOthers" {
			continue // how many may run is known to each process only; both processes die together, so that runs of both are blamed
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { c.Play(t, carriedRig(t, hosttest.NewDisk()), hosttest.Fate{}) })
		})
	}
}

// TestCarried_CrashAtEveryWrite kills both processes of each case at some of their writes, before the write is on disk and after it is.
func TestCarried_CrashAtEveryWrite(t *testing.T) {
	t.Parallel()
	for _, c := range hosttest.Cases() {
		if !c.Crashes || c.MaxRunning+c.MaxTasks > 0 {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			play := func(fate hosttest.Fate) (report hosttest.Report) {
				synctest.Test(t, func(t *testing.T) { report = c.Play(t, carriedRig(t, hosttest.NewDisk()), fate) })
				return report
			}
			calm := play(hosttest.Fate{})
			for _, n := range some(calm.Writes, 4) {
				for _, how := range []hosttest.How{hosttest.Before, hosttest.After} {
					blow := hosttest.Blow{Write: n, How: how}
					compare(t, calm, play(hosttest.Fate{Blows: []hosttest.Blow{blow}}), blow.String())
					if t.Failed() {
						t.Fatalf("they were killed %s", blow)
					}
				}
			}
		})
	}
}
