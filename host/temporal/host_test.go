package temporal

import (
	"context"
	"slices"
	"testing"

	"tandem/host/hosttest"
	"tandem/host/local"
	"tandem/identity"
	"tandem/store"
)

// TestNew_LooksWhoIsThereFirst: a server looks which processes there are before it sweeps for the first time. So one that goes later is
// missed, and what one that went earlier has owed is found.
func TestNew_LooksWhoIsThereFirst(t *testing.T) {
	t.Parallel()
	var done []string
	stores := hosttest.NewDisk().Stores()
	h, err := New(t.Context(), Options{
		Client: server, TaskQueue: newQueue(), Part: Server,
		Gone: func(context.Context) (bool, error) { done = append(done, "looked"); return false, nil },
		Local: local.Options{
			Journal: stores.Journal, Timers: stores.Timers, Executions: stores.Executions, Blobs: stores.Blobs, Logs: stores.Logs,
			Inbox: readInbox{stores.Inbox, func() { done = append(done, "swept") }},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	h.Close()
	if n := len(done); n < 2 || !slices.Equal(done[n-2:], []string{"looked", "swept"}) {
		t.Errorf("done was %q", done)
	}
}

// TestSite_EndsWithTheTest: when a test is left in the midst of a case, its processes are killed, and none of them comes back behind its
// end, when nobody may be told of it any more.
func TestSite_EndsWithTheTest(t *testing.T) {
	t.Parallel()
	var s *site
	t.Run("Left", func(t *testing.T) {
		s = newSite(t)
		hosttest.Chain(1, 1, t.SkipNow).Play(t, s.rig(hosttest.NewDisk().Stores), hosttest.Fate{})
	})
	if s.second() != nil {
		t.Error("a process has come back")
	}
}

// readInbox tells when it is looked what waits.
type readInbox struct {
	store.Inbox
	read func()
}

// PendingExecutions implements [store.Inbox].
func (i readInbox) PendingExecutions(ctx context.Context, p identity.Principal) ([]store.Ref, error) {
	i.read()
	return i.Inbox.PendingExecutions(ctx, p)
}
