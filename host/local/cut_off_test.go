package local_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tandem/engine"
	"tandem/host"
	"tandem/host/local"
	"tandem/identity"
	"tandem/node"
	"tandem/store"
	"tandem/workflow"
)

// partedJournal is a journal that cannot be reached while that is said: reading it, or writing to it.
type partedJournal struct {
	store.Journal
	reads, writes atomic.Bool
}

// Append implements store.Journal.
func (j *partedJournal) Append(ctx context.Context, p identity.Principal, rows ...*store.Append) error {
	if j.writes.Load() {
		return store.ErrUnavailable
	}
	return j.Journal.Append(ctx, p, rows...)
}

// Rows implements store.Journal.
func (j *partedJournal) Rows(ctx context.Context, p identity.Principal, execution string, after uint64) iter.Seq2[store.Row, error] {
	if j.reads.Load() {
		return func(yield func(store.Row, error) bool) { yield(store.Row{}, store.ErrUnavailable) }
	}
	return j.Journal.Rows(ctx, p, execution, after)
}

// parted is an attempt that runs in a process which is cut off from its database at some time.
type parted struct {
	*shop
	journal *partedJournal
	end     chan ran
	// told is what was last told of the run, runs how often it ran.
	told, runs atomic.Int64
}

// partedRun has an attempt of a kind run. Cut cuts its process off, before the run begins or while it goes on.
func partedRun(t *testing.T, kind string, cut func(j *partedJournal, running bool)) *parted {
	p := &parted{journal: &partedJournal{}, end: make(chan ran, 1)}
	behind := func(inner store.Journal) store.Journal { p.journal.Journal = inner; return p.journal }
	p.shop = newShopOf(t, kind, behind, func(context.Context) (node.Outcome, error) {
		p.runs.Add(1)
		cut(p.journal, true)
		return node.Done{"result": json.RawMessage(`{}`)}, nil
	})
	cut(p.journal, false)
	p.told.Store(int64(local.WasBegun))
	go func() {
		next, err := p.first.Run(t.Context(), p.ref, p.at, local.WasNothing, func(w local.Was) { p.told.Store(int64(w)) })
		p.end <- ran{next, err}
	}()
	return p
}

// TestRun_CutOffBefore: a run that cannot begin because its process is cut off from the database ends there after a while, as one that
// has not begun.
func TestRun_CutOffBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := partedRun(t, "WORK", func(j *partedJournal, _ bool) { j.reads.Store(true) })
		if e := <-p.end; !errors.Is(e.err, store.ErrUnavailable) || p.told.Load() != int64(local.WasNothing) || p.runs.Load() != 0 {
			t.Errorf("it comes to %+v, %v, told as %d, and ran %d times", e.next, e.err, p.told.Load(), p.runs.Load())
		}
		p.journal.reads.Store(false)
		if e := <-p.run(t.Context(), p.open(), p.at, local.WasNothing); e.err != nil || e.next.Status != engine.StatusSuccess {
			t.Errorf("another process comes to %+v, %v", e.next, e.err)
		}
	})
}

// TestRun_CutOffAfter: the outcome of a run that may be repeated is waited with for some minutes, then the run is another's and nothing
// is held against it. That of a run that may not be repeated is kept until it is recorded.
func TestRun_CutOffAfter(t *testing.T) {
	t.Parallel()
	cut := func(j *partedJournal, running bool) { j.writes.Store(running) }
	t.Run("Repeatable", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			p := partedRun(t, "WORK", cut)
			if e := <-p.end; !errors.Is(e.err, store.ErrUnavailable) || p.told.Load() != int64(local.WasStopped) {
				t.Errorf("it comes to %+v, %v, told as %d", e.next, e.err, p.told.Load())
			}
		})
	})
	t.Run("Once", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			p := partedRun(t, "ONCE", cut)
			time.Sleep(time.Hour) // of a clock that costs nothing
			if len(p.end) > 0 {
				t.Fatalf("it was given up: %+v", <-p.end)
			}
			p.journal.writes.Store(false)
			if e := <-p.end; e.err != nil || e.next.Status != engine.StatusSuccess || p.runs.Load() != 1 {
				t.Errorf("it comes to %+v, %v, and ran %d times", e.next, e.err, p.runs.Load())
			}
		})
	})
}

// partedBlobs are large values that cannot be written while that is said.
type partedBlobs struct {
	store.Blobs
	writes atomic.Bool
}

// Put implements store.Blobs.
func (b *partedBlobs) Put(ctx context.Context, p identity.Principal, r io.Reader) (store.Blob, error) {
	if b.writes.Load() {
		return store.Blob{}, store.ErrUnavailable
	}
	return b.Blobs.Put(ctx, p, r)
}

// TestRun_CutOffWithALargeValue: an outcome that is kept beside the journal is waited with as long as any other, and holds up nothing
// else of its execution for longer than one try takes.
func TestRun_CutOffWithALargeValue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		blobs := &partedBlobs{}
		s := newShop(t, nil, func(context.Context) (node.Outcome, error) {
			blobs.writes.Store(true)
			return node.Done{"result": json.RawMessage(`"` + strings.Repeat("x", host.MaxInline+1) + `"`)}, nil
		})
		blobs.Blobs, s.stores.Blobs = s.stores.Blobs, blobs
		worker := s.open()
		end := s.run(t.Context(), worker, s.at, local.WasNothing)
		synctest.Wait()
		attended := make(chan error, 1)
		go func() {
			_, err := worker.Attend(s.ref)
			attended <- err
		}()
		select {
		case err := <-attended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute): // of a clock that costs nothing
			t.Error("nothing else of the execution is attended to")
		}
		select {
		case e := <-end:
			if !errors.Is(e.err, store.ErrUnavailable) {
				t.Errorf("it comes to %+v, %v", e.next, e.err)
			}
		case <-time.After(time.Hour):
			t.Error("it is never given to another")
		}
		blobs.writes.Store(false) // who waits may end
	})
}

// TestRun_CutOffAtItsTimeLimit: a run whose time is up while its process is cut off has taken too long, and is made again; it was not
// canceled.
func TestRun_CutOffAtItsTimeLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		work, stopped := onceHeld()
		journal := &partedJournal{}
		s := newShop(t, func(inner store.Journal) store.Journal { journal.Journal = inner; return journal }, work)
		end := s.run(t.Context(), s.first, s.at, local.WasNothing)
		synctest.Wait()
		journal.writes.Store(true)
		<-stopped // its time is up, and that could not be recorded
		journal.writes.Store(false)
		e := <-end
		if e.err != nil || e.next.Ended {
			t.Fatalf("it comes to %+v, %v", e.next, e.err)
		}
		time.Sleep(time.Minute) // of a clock that costs nothing; the next attempt is due
		next := s.wanted(s.first)
		if e := <-s.run(t.Context(), s.first, next, local.WasNothing); next.Attempt != s.at.Attempt+1 || e.err != nil || e.next.Status != engine.StatusSuccess {
			t.Errorf("the next attempt %v comes to %+v, %v", next, e.next, e.err)
		}
	})
}

// partedLists are the executions of a store that cannot be reached while that is said.
type partedLists struct {
	store.Executions
	away *atomic.Bool
}

// Get implements store.Executions.
func (l partedLists) Get(ctx context.Context, p identity.Principal, id string) (store.Execution, error) {
	if l.away.Load() {
		return store.Execution{}, store.ErrUnavailable
	}
	return l.Executions.Get(ctx, p, id)
}

// partedLogs are logs to which nothing can be written while that is said.
type partedLogs struct {
	store.Logs
	away *atomic.Bool
}

// Write implements store.Logs.
func (l partedLogs) Write(ctx context.Context, p identity.Principal, execution string, lines []store.LogLine) error {
	if l.away.Load() {
		return store.ErrUnavailable
	}
	return l.Logs.Write(ctx, p, execution, lines)
}

// TestRun_CutOffAndGivenUp: what a run has said whose outcome was given up is stored when the database is back.
func TestRun_CutOffAndGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		journal := &partedJournal{}
		s := newShop(t, func(inner store.Journal) store.Journal { journal.Journal = inner; return journal }, func(ctx context.Context) (node.Outcome, error) {
			ctx.Value(calling{}).(*node.Call).Log(node.Notice, "at work", nil)
			journal.writes.Store(true)
			return node.Done{"result": json.RawMessage(`{}`)}, nil
		})
		logs := s.stores.Logs
		s.stores.Executions, s.stores.Logs = partedLists{s.stores.Executions, &journal.writes}, partedLogs{logs, &journal.writes}
		if e := <-s.run(t.Context(), s.open(), s.at, local.WasNothing); !errors.Is(e.err, store.ErrUnavailable) {
			t.Fatalf("it comes to %+v, %v", e.next, e.err)
		}
		time.Sleep(time.Hour) // of a clock that costs nothing
		journal.writes.Store(false)
		time.Sleep(time.Minute)
		page, err := logs.Lines(t.Context(), identity.System("one"), store.LogQuery{Execution: "x"})
		if err != nil || len(page.Lines) != 1 || page.Lines[0].Message != "at work" {
			t.Errorf("stored are %+v, %v", page.Lines, err)
		}
	})
}

// deafTimers are timers of which those of one execution cannot be read, for good.
type deafTimers struct {
	store.Timers
	execution string
}

// Of implements store.Timers.
func (d deafTimers) Of(ctx context.Context, p identity.Principal, execution string) ([]store.Timer, error) {
	if execution == d.execution {
		return nil, store.ErrBroken
	}
	return d.Timers.Of(ctx, p, execution)
}

// TestAdmission_PlaceOfOneThatCannotBegin: an execution that has its turn and cannot begin gives its place to the next.
func TestAdmission_PlaceOfOneThatCannotBegin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, nil, func(context.Context) (node.Outcome, error) { return node.Done{"result": json.RawMessage(`{}`)}, nil })
		runs := make(chan string, 10)
		h, err := local.New(t.Context(), local.Options{
			Journal: s.stores.Journal, Inbox: s.stores.Inbox, Timers: deafTimers{s.stores.Timers, "second"},
			Executions: s.stores.Executions, Blobs: s.stores.Blobs, Logs: s.stores.Logs,
			Revision: func(context.Context, identity.Principal, string, string) (*node.Revision, error) {
				return s.revision, nil
			},
			Workers: 10, MaxRunning: 1, Carrier: stillCarrier{},
			Recorded: func(ref store.Ref, _ *workflow.Graph, row host.Row, _ []engine.Command) {
				for _, told := range row.Told {
					if told.What == host.ToldExecution && told.Status == engine.StatusRunning {
						runs <- ref.Execution
					}
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(h.Close)
		for _, id := range []string{"first", "second", "third"} {
			(&shop{t: t, first: h, revision: s.revision, ref: store.Ref{Workspace: "one", Execution: id}}).start()
		}
		if got := <-runs; got != "first" {
			t.Fatalf("%q runs", got)
		}
		by, stop := identity.Principal{Workspace: "one", User: "u"}, host.Request{Execution: "first", Action: host.ActionCancel}
		if _, err := h.Act(t.Context(), by, stop); err != nil {
			t.Fatal(err)
		}
		if got := <-runs; got != "third" {
			t.Errorf("then %q runs", got)
		}
	})
}
