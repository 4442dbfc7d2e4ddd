package local_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"testing/synctest"

	"tandem/engine"
	"tandem/host"
	"tandem/host/local"
	"tandem/identity"
	"tandem/node"
	"tandem/store"
)

// TestRun_EmittedEnds: of a run whose execution another process has ended it is told that nothing more comes of it, though no row here says so. What it
// has handed out can be let go then.
func TestRun_EmittedEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		spoke := make(chan struct{})
		s := newShop(t, nil, func(ctx context.Context) (node.Outcome, error) {
			ctx.Value(calling{}).(*node.Call).Emit("words")
			close(spoke)
			<-ctx.Done()
			return node.Done{"result": json.RawMessage(`{}`)}, nil // too late
		})
		var told []any
		h, err := local.New(t.Context(), local.Options{
			Journal: s.stores.Journal, Inbox: s.stores.Inbox, Timers: s.stores.Timers, Executions: s.stores.Executions, Blobs: s.stores.Blobs, Logs: s.stores.Logs,
			Revision: func(context.Context, identity.Principal, string, string) (*node.Revision, error) {
				return s.revision, nil
			},
			Workers: 10, Carrier: stillCarrier{},
			Emitted: func(ref store.Ref, at engine.Attempt, chunk any) {
				if ref != s.ref || at != s.at {
					t.Errorf("told is of %v of %v", at, ref)
				}
				told = append(told, chunk)
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		ended := s.run(ctx, h, s.at, local.WasNothing)
		<-spoke
		if _, err := s.first.Act(t.Context(), identity.Principal{Workspace: "one", User: "u"}, host.Request{Execution: s.ref.Execution, Action: host.ActionCancel}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.first.Attend(s.ref); err != nil { // it takes what is in the inbox
			t.Fatal(err)
		}
		stop() // the carrier says so
		if e := <-ended; e.err != nil || e.next.Status != engine.StatusCanceled {
			t.Errorf("it comes to %+v, %v", e.next, e.err)
		}
		if !slices.Equal(told, []any{"words", nil}) {
			t.Errorf("told was %q", told)
		}
	})
}
