package app

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"tandem/engine"
	"tandem/host"
	"tandem/host/hosttest"
	"tandem/host/local"
	"tandem/store"
	"tandem/store/postgres"
	"tandem/store/postgres/postgrestest"
	"tandem/store/sqlite"
	"tandem/store/sqlite/sqlitetest"
	"tandem/workflow"
)

// TestHostSuite holds the local host to the suite, on a real data directory that is opened again after each crash, and on a database of PostgreSQL. Both
// record the same of each case, if its log is determined. With PostgreSQL there are crashes at some writes of every fourth case, if it stands them; of all
// of them with TANDEM_LONG=1. The simulation of package local strikes each case at many.
func TestHostSuite(t *testing.T) {
	t.Parallel()
	var same reports
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		same.run(t, func(t *testing.T) hosttest.Rig {
			dir := sqlitetest.Dir(t)
			return suiteRig(t, func(ctx context.Context) (Store, error) { return sqlite.Open(ctx, sqlite.Options{Dir: dir}) })
		})
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		testHostSuitePostgreSQL(t, &same)
	})
}

// reports are what cases have done on one database, until they are compared with what they do on the other.
type reports struct {
	mu  sync.Mutex
	all map[string]hosttest.Report
}

// run holds a host to the suite, and compares what it has recorded with what it records on the other database.
func (r *reports) run(t *testing.T, open func(t *testing.T) hosttest.Rig) {
	for _, c := range hosttest.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			report := c.Play(t, open(t), hosttest.Fate{})
			if hosttest.Undetermined(c) != "" {
				return
			}
			for _, p := range report.Problems {
				t.Error(p)
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			other, compared := r.all[c.Name]
			if !compared { // the other one does it
				if r.all == nil {
					r.all = map[string]hosttest.Report{}
				}
				r.all[c.Name] = report
				return
			}
			if diff := cmp.Diff(other.Logs, report.Logs); diff != "" {
				t.Errorf("on the other database (-) and on this one (+): %s", diff)
			}
			if diff := cmp.Diff(other.Ends, report.Ends); diff != "" {
				t.Errorf("on the other database (-) and on this one (+): %s", diff)
			}
		})
	}
}

// testHostSuitePostgreSQL is the suite on a database of PostgreSQL, and with crashes.
func testHostSuitePostgreSQL(t *testing.T, same *reports) {
	spare := newSpareDatabases(t)
	rig := func(t *testing.T) hosttest.Rig {
		address := spare.take(t)
		return suiteRig(t, func(ctx context.Context) (Store, error) {
			return postgres.OpenOwned(ctx, postgres.Options{URL: address + "&pool_max_conns=4"})
		})
	}
	t.Run("Cases", func(t *testing.T) { same.run(t, rig) })
	t.Run("Crashes", func(t *testing.T) {
		for i, c := range hosttest.Cases() {
			if !c.Crashes || i%4 != 0 && !long() {
				continue
			}
			t.Run(c.Name, func(t *testing.T) {
				t.Parallel()
				c.Play(t, rig(t), hosttest.Fate{Blows: []hosttest.Blow{{Write: 2, How: hosttest.Before}, {Write: 3, How: hosttest.After}}})
			})
		}
	})
}

// spareDatabases are databases of PostgreSQL that are up to date and empty. One that a case has used is emptied for the next: to make one is more work than
// most cases are.
type spareDatabases struct {
	t      *testing.T
	server *postgrestest.Server
	// ready is what the others are copies of, and empty empties a copy.
	ready, empty string
	mu           sync.Mutex
	free         []string
}

func newSpareDatabases(t *testing.T) *spareDatabases {
	t.Helper()
	s := &spareDatabases{t: t, server: postgrestest.Start(t)}
	s.ready = s.server.Database(t)
	db, err := postgres.OpenOwned(t.Context(), postgres.Options{URL: s.ready})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), s.ready)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := conn.Query(t.Context(), `SELECT quote_ident(relname) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(tables) == 0 {
		t.Fatal(tables, err)
	}
	s.empty = "SET session_replication_role = replica" // nothing follows from what is removed
	for _, table := range tables {
		var filled bool
		if err := conn.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM "+table+")").Scan(&filled); err != nil {
			t.Fatal(err)
		}
		if !filled { // what a new one has stays: which migrations it has, for example
			s.empty += "; DELETE FROM " + table
		}
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// take hands out a database until a test has ended.
func (s *spareDatabases) take(t *testing.T) string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var address string
	if n := len(s.free); n > 0 {
		address, s.free = s.free[n-1], s.free[:n-1]
	} else {
		address = s.server.Copy(s.t, s.ready)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		conn, err := pgx.Connect(ctx, address)
		if err != nil {
			t.Error(err)
			return
		}
		_, err = conn.Exec(ctx, s.empty)
		if err = errors.Join(err, conn.Close(ctx)); err != nil {
			t.Error(err)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.free = append(s.free, address)
	})
	return address
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
