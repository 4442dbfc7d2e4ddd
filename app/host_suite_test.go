package app

import (
	"context"
	"testing"

	"tandem/engine"
	"tandem/host"
	"tandem/host/hosttest"
	"tandem/host/local"
	"tandem/store"
	"tandem/store/sqlite"
	"tandem/workflow"
)

// TestHostSuite holds the local host to the suite, on a real data directory that is opened again after each crash.
func TestHostSuite(t *testing.T) {
	t.Parallel()
	hosttest.Run(t, func(t *testing.T) hosttest.Rig {
		dir := t.TempDir()
		open := func() *sqlite.DB {
			db, err := sqlite.Open(context.Background(), sqlite.Options{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			return db
		}
		db := open()
		shut := func() {
			if err := db.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}
		t.Cleanup(func() { shut() })
		return hosttest.Rig{
			Stores: func() store.Stores { return db.Stores() },
			Restart: func() {
				shut()
				db = open()
			},
			Start: func(ctx context.Context, s hosttest.Setup) (hosttest.Host, error) {
				h, err := local.New(ctx, local.Options{
					Journal: s.Stores.Journal, Inbox: s.Stores.Inbox, Timers: s.Stores.Timers, Executions: s.Stores.Executions,
					Blobs: s.Stores.Blobs, Logs: s.Stores.Logs, Revision: s.Find, Child: s.Child, Workers: s.Workers, MaxRunning: s.MaxRunning, MaxTasks: s.MaxTasks, Task: s.Task, Register: s.Register, Rest: s.Rest,
					Recorded: func(ref store.Ref, _ *workflow.Graph, _ host.Row, _ []engine.Command) { s.Recorded(ref) },
					GivenUp:  s.GivenUp,
				})
				if err != nil {
					return nil, err
				}
				return h, nil
			},
			Source:   func(s store.Stores) host.Source { return local.NewSource(s.Journal, s.Blobs) },
			Revision: local.Revision,
		}
	})
}
