package local_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"tandem/engine"
	"tandem/host"
	"tandem/host/hosttest"
	"tandem/host/local"
	"tandem/store"
	"tandem/workflow"
)

// rigOn is a local host on a simulated disk.
func rigOn(disk *hosttest.Disk) hosttest.Rig {
	return hosttest.Rig{
		Stores:   disk.Stores,
		Start:    startHost,
		Source:   func(s store.Stores) host.Source { return local.NewSource(s.Journal, s.Blobs) },
		Revision: local.Revision,
		Patience: 100 * time.Hour, // of a clock that costs nothing
	}
}

func startHost(ctx context.Context, s hosttest.Setup) (hosttest.Host, error) {
	h, err := local.New(ctx, local.Options{
		Journal: s.Stores.Journal, Inbox: s.Stores.Inbox, Timers: s.Stores.Timers, Executions: s.Stores.Executions, Blobs: s.Stores.Blobs, Logs: s.Stores.Logs,
		Revision: s.Find, Child: s.Child, Workers: s.Workers, MaxRunning: s.MaxRunning,
		Recorded: func(ref store.Ref, _ *workflow.Graph, _ host.Row, _ []engine.Command) { s.Recorded(ref) },
		GivenUp:  s.GivenUp,
	})
	if err != nil {
		return nil, err
	}
	return h, nil
}

// TestSimulation_Suite runs the suite on the simulated disk, without crashes but those of the cases themselves.
func TestSimulation_Suite(t *testing.T) {
	t.Parallel()
	for _, c := range hosttest.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { c.Play(t, rigOn(hosttest.NewDisk()), hosttest.Fate{}) })
		})
	}
}
