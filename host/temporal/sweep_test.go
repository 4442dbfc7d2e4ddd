package temporal

import (
	"context"
	"sync/atomic"
	"testing"

	"tandem/host"
	"tandem/host/hosttest"
	"tandem/host/local"
	"tandem/host/sweep"
	"tandem/store"
)

// TestSweep_WakesByPages: executions whose wake-ups were lost all go on after a sweep, though one look of it wakes fewer than there are.
func TestSweep_WakesByPages(t *testing.T) {
	t.Parallel()
	const executions, page = 7, 2
	s := newSite(t)
	s.alone = true
	var lost atomic.Int64
	recorded := make(chan struct{}, executions)
	s.recorded = func(_ bool, row host.Row) {
		if row.Seq == 1 {
			recorded <- struct{}{}
		}
	}
	rig := s.rig(hosttest.NewDisk().Stores)
	var first *member
	rig.Start = func(ctx context.Context, setup hosttest.Setup) (hosttest.Host, error) {
		started, err := s.start(ctx, setup)
		if err != nil {
			return nil, err
		}
		first = started.(all).member
		first.waking.send = func(context.Context, store.Ref, *local.Next) error { lost.Add(1); return nil }
		first.sweeping.Lock()
		defer first.sweeping.Unlock()
		first.sweeper = sweep.New(sweep.Options{
			Executions: setup.Stores.Executions, Inbox: setup.Stores.Inbox, Timers: setup.Stores.Timers, Books: first.Host.Host, Wake: first.late.Wake, Page: page,
		})
		return started, nil
	}
	hosttest.Chain(executions, 2, func() {
		go func() { // it ends with the sweep
			for range executions {
				<-recorded
			}
			if err := first.Sweep(context.WithoutCancel(t.Context())); err != nil {
				t.Errorf("sweep: %v", err)
			}
		}()
	}).Play(t, rig, hosttest.Fate{})
	if lost.Load() < executions {
		t.Errorf("%d wake-ups were lost", lost.Load())
	}
}
