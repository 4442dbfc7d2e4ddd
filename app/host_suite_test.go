package app

import (
	"context"
	"testing"

	"tandem/engine"
	"tandem/host"
	"tandem/host/hosttest"
	"tandem/host/local"
	"tandem/store"
	"tandem/store/postgres"
	"tandem/store/postgres/postgrestest"
	"tandem/store/sqlite"
	"tandem/workflow"
)

// TestHostSuite holds the local host to the suite, on a real data directory that is opened again after each crash.
func TestHostSuite(t *testing.T) {
	t.Parallel()
	hosttest.Run(t, func(t *testing.T) hosttest.Rig {
		dir := t.TempDir()
		return suiteRig(t, func(ctx context.Context) (Store, error) { return sqlite.Open(ctx, sqlite.Options{Dir: dir}) })
	})
}

// TestHostSuite_PostgreSQL is the same on a database of PostgreSQL, and with crashes at some writes of every case that stands them.
func TestHostSuite_PostgreSQL(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	ready := server.Database(t)
	db, err := postgres.OpenOwned(t.Context(), postgres.Options{URL: ready})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	rig := func(t *testing.T) hosttest.Rig {
		address := server.Copy(t, ready)
		return suiteRig(t, func(ctx context.Context) (Store, error) {
			return postgres.OpenOwned(ctx, postgres.Options{URL: address + "&pool_max_conns=4"})
		})
	}
	t.Run("Cases", func(t *testing.T) { hosttest.Run(t, rig) })
	t.Run("Crashes", func(t *testing.T) {
		for _, c := range hosttest.Cases() {
			if !c.Crashes {
				continue
			}
			t.Run(c.Name, func(t *testing.T) {
				t.Parallel()
				c.Play(t, rig(t), hosttest.Fate{Blows: []hosttest.Blow{{Write: 2, How: hosttest.Before}, {Write: 3, How: hosttest.After}}})
			})
		}
	})
}

// suiteRig is the local host on a database that is opened again after each crash.
func suiteRig(t *testing.T, reopen func(context.Context) (Store, error)) hosttest.Rig {
	open := func() Store {
		db, err := reopen(context.Background())
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
}
