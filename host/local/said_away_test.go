package local

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tandem/engine"
	"tandem/identity"
	"tandem/node"
	"tandem/store"
	"tandem/workflow"
)

// partedLogs are logs of a database that may be away.
type partedLogs struct {
	store.Logs
	mu    sync.Mutex // a clock that was set before writes behind what a test does now
	err   error
	lines []string
}

// Write implements store.Logs.
func (l *partedLogs) Write(_ context.Context, _ identity.Principal, _ string, lines []store.LogLine) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	for _, line := range lines {
		l.lines = append(l.lines, line.Message)
	}
	return nil
}

// become has the database answer otherwise, and forgets what it has.
func (l *partedLogs) become(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err, l.lines = err, nil
}

// TestSaid_DatabaseAway: lines that a run writes while the database is away are in its log when the database is back, and readers are told
// then. Those that the database refuses are not tried again.
func TestSaid_DatabaseAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		logs := &partedLogs{err: store.ErrUnavailable}
		var told atomic.Int64
		h := &Host{ctx: t.Context(), opts: Options{Log: slog.New(slog.DiscardHandler), Logs: logs,
			Logged: func(_ store.Ref, _ engine.Attempt, n int) { told.Add(int64(n)) }}}
		o := h.newOwner(store.Ref{Workspace: "w", Execution: "x"}, nil)
		o.revision = &node.Revision{Graph: &workflow.Graph{}}
		s := &said{owner: o, attempt: engine.Attempt{Activation: "n", Attempt: 1}}
		var want []string
		say := func(n int) {
			for range n {
				want = append(want, fmt.Sprint("line ", len(want)))
				s.Log(node.Warn, want[len(want)-1], nil)
			}
		}
		say(130)
		time.Sleep(time.Hour)
		say(130)
		synctest.Wait()
		if n := told.Load(); n != 0 {
			t.Errorf("readers are told of %d lines that are not there", n)
		}
		logs.become(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		if !slices.Equal(logs.lines, want) || told.Load() != int64(len(want)) {
			t.Errorf("%d of %d lines are in the log, and readers were told of %d", len(logs.lines), len(want), told.Load())
		}

		logs.become(store.ErrNotFound)
		s.Log(node.Warn, "of an execution that was deleted", nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		logs.become(nil)
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(logs.lines) > 0 {
			t.Errorf("what was refused is written later: %v", logs.lines)
		}
	})
}
