package local_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/host/local"
	"tandem/identity"
	"tandem/node"
	"tandem/store"
	"tandem/workflow"
)

// blockedTimers are timers of which those of one execution cannot be read for a while, so that it cannot begin.
type blockedTimers struct {
	store.Timers
	execution string
	blocked   *atomic.Bool
	// tried counts the reads in vain.
	tried *atomic.Int64
	err   error
}

// Of implements store.Timers.
func (d blockedTimers) Of(ctx context.Context, p identity.Principal, execution string) ([]store.Timer, error) {
	if execution == d.execution && d.blocked.Load() {
		d.tried.Add(1)
		return nil, d.err
	}
	return d.Timers.Of(ctx, p, execution)
}

// line is a process with one place for executions, of which "first" has it and "second" cannot begin.
type line struct {
	t      *testing.T
	host   *local.Host
	timers blockedTimers
	runs   chan string
}

// newLine starts some executions, the first of which runs. Second fails with an error for as long as it is blocked.
func newLine(t *testing.T, err error, ids ...string) *line {
	t.Helper()
	s := newShop(t, nil, func(context.Context) (node.Outcome, error) { return node.Done{"result": json.RawMessage(`{}`)}, nil })
	l := &line{t: t, timers: blockedTimers{s.stores.Timers, "second", &atomic.Bool{}, &atomic.Int64{}, err}, runs: make(chan string, 10)}
	l.timers.blocked.Store(true)
	l.host = l.open(s, local.Options{Timers: l.timers, MaxRunning: 1})
	for _, id := range append([]string{"first"}, ids...) {
		(&shop{t: t, first: l.host, revision: s.revision, ref: store.Ref{Workspace: "one", Execution: id}}).start()
	}
	l.begins("first")
	return l
}

// open starts a process on the stores of a shop, with timers and limits as they are given.
func (l *line) open(s *shop, o local.Options) *local.Host {
	l.t.Helper()
	o.Journal, o.Inbox, o.Executions, o.Blobs, o.Logs = s.stores.Journal, s.stores.Inbox, s.stores.Executions, s.stores.Blobs, s.stores.Logs
	o.Workers, o.Carrier, o.Recorded = 10, stillCarrier{}, l.note
	o.Revision = func(context.Context, identity.Principal, string, string) (*node.Revision, error) {
		return s.revision, nil
	}
	h, err := local.New(l.t.Context(), o)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(h.Close)
	return h
}

// note tells which execution runs.
func (l *line) note(ref store.Ref, _ *workflow.Graph, row host.Row, _ []engine.Command) {
	for _, told := range row.Told {
		if told.What == host.ToldExecution && told.Status == engine.StatusRunning {
			l.runs <- ref.Execution
		}
	}
}

// begins expects which execution is the next that runs.
func (l *line) begins(want string) {
	l.t.Helper()
	select {
	case got := <-l.runs:
		if got != want {
			l.t.Errorf("%q runs, want %q", got, want)
		}
	case <-time.After(time.Hour): // of a clock that costs nothing
		l.t.Errorf("%q does not begin", want)
	}
}

// cancel ends an execution, so that its place is free.
func (l *line) cancel(id string) {
	l.t.Helper()
	by, stop := identity.Principal{Workspace: "one", User: "u"}, host.Request{Execution: id, Action: host.ActionCancel}
	if _, err := l.host.Act(l.t.Context(), by, stop); err != nil {
		l.t.Fatal(err)
	}
}

// TestAdmission_StandsInLineAgain: an execution that had its turn and could not begin is in line again. It begins when its cause is gone and there is
// room, without anybody asking for it.
func TestAdmission_StandsInLineAgain(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"Unavailable": store.ErrUnavailable,                                // the database is away for longer than is waited for it
		"Passing":     store.ErrBroken,                                     // it is tried again for a while
		"Decided":     fault.New(fault.Unsupported, "it cannot begin yet"), // another try gives the same for now
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := newLine(t, err, "second", "third")
				l.cancel("first")
				l.begins("third") // the place of the second is another's
				l.timers.blocked.Store(false)
				l.cancel("third")
				l.begins("second")
			})
		})
	}
}

// TestAdmission_TriesWithPauses: an execution that cannot begin is not tried without end, and begins when it can.
func TestAdmission_TriesWithPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, fault.New(fault.Unsupported, "it cannot begin yet"), "second")
		l.cancel("first")
		const minutes = 10
		<-time.After(minutes * time.Minute)
		if n := l.timers.tried.Load(); n < minutes || n > 10*minutes {
			t.Errorf("it was tried %d times in %d minutes", n, minutes)
		}
		l.timers.blocked.Store(false)
		l.begins("second")
	})
}

// TestReckon_BeginsWithoutLimits: what a worker has recorded and left to begin is begun by the process that looks after all, which has no
// limits here.
func TestReckon_BeginsWithoutLimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, nil, func(context.Context) (node.Outcome, error) { return node.Done{"result": json.RawMessage(`{}`)}, nil })
		l := &line{t: t, runs: make(chan string, 10)}
		(&shop{t: t, first: l.open(s, local.Options{Timers: s.stores.Timers, AdmittedElsewhere: true}), revision: s.revision, ref: store.Ref{Workspace: "one", Execution: "left"}}).start()
		l.host = l.open(s, local.Options{Timers: s.stores.Timers})
		counted := false
		for u, err := range s.stores.Executions.Unfinished(t.Context(), identity.System(""), store.Unfinished{}) {
			if err != nil {
				t.Fatal(err)
			}
			if u.Execution != "left" {
				continue
			}
			if counted = true; u.Status != engine.StatusPending || l.host.Reckon(u) {
				t.Errorf("%s is %s, and is to go on before it has begun", u.Execution, u.Status)
			}
		}
		if !counted {
			t.Error("it is not listed among those that have not ended")
		}
		l.host.Readmit()
		l.begins("left")
	})
}
