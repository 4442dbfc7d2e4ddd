package temporal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"tandem/engine"
	"tandem/host"
	"tandem/host/hosttest"
	"tandem/host/local"
	"tandem/identity"
	"tandem/store"
	"tandem/store/postgres"
	"tandem/store/postgres/postgrestest"
	"tandem/store/sqlite"
	graph "tandem/workflow"
)

// What is measured: executions that are under way at once, of so many steps each.
const (
	chains = 50
	links  = 10
)

// BenchmarkChain measures what a step costs on each host, and, beside it, in a workflow that was written by hand with Temporal's SDK and
// does as little.
func BenchmarkChain(b *testing.B) {
	b.Run("local-sqlite", func(b *testing.B) {
		measure(b, func() hosttest.Rig {
			db, err := sqlite.Open(b.Context(), sqlite.Options{Dir: b.TempDir()})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() {
				if err := db.Close(); err != nil {
					b.Error(err)
				}
			})
			return localRig(db.Stores)
		})
	})
	pg := postgrestest.Start(b)
	database := func() store.Stores {
		db, err := postgres.Open(b.Context(), pg.Database(b)+"&pool_max_conns=8")
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(db.Close)
		return db.Stores()
	}
	b.Run("local-postgresql", func(b *testing.B) {
		measure(b, func() hosttest.Rig {
			stores := database()
			return localRig(func() store.Stores { return stores })
		})
	})
	b.Run("temporal", func(b *testing.B) {
		measure(b, func() hosttest.Rig {
			s, stores := newSite(b), database()
			s.alone = true // as the one by hand is
			return s.rig(func() store.Stores { return stores })
		})
	})
	b.Run("temporal-cluster", func(b *testing.B) { // a server that owns the database, and a worker beside it
		measure(b, func() hosttest.Rig {
			s := newSite(b)
			s.split, s.others = true, 1
			return s.shared(pg.Database(b))
		})
	})
	b.Run("by-hand", byHand)
}

// measure runs chains on a host.
func measure(b *testing.B, rig func() hosttest.Rig) {
	var used time.Duration
	for range b.N {
		b.StopTimer()
		begun := time.Duration(0)
		c := hosttest.Chain(chains, links, func() {
			begun = processTime(b)
			b.StartTimer()
		})
		c.Play(b, rig(), hosttest.Fate{})
		used += processTime(b) - begun
	}
	perStep(b, used)
}

// perStep tells how long a step took, and the processor time of this process for it: neither the servers' of the database nor that of Temporal.
func perStep(b *testing.B, used time.Duration) {
	steps := float64(b.N * chains * links)
	b.ReportMetric(float64(b.Elapsed().Microseconds())/steps, "µs/step")
	b.ReportMetric(float64(used.Microseconds())/steps, "cpu-µs/step")
}

// processTime is the processor time that this process has used.
func processTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func localRig(stores func() store.Stores) hosttest.Rig {
	return hosttest.Rig{
		Stores: stores, Revision: local.Revision, Source: func(s store.Stores) host.Source { return local.NewSource(s.Journal, s.Blobs) },
		Start: func(ctx context.Context, s hosttest.Setup) (hosttest.Host, error) {
			h, err := local.New(ctx, local.Options{
				Journal: s.Stores.Journal, Inbox: s.Stores.Inbox, Timers: s.Stores.Timers, Executions: s.Stores.Executions, Blobs: s.Stores.Blobs, Logs: s.Stores.Logs,
				Revision: s.Find, Child: s.Child, Workers: s.Workers, MaxRunning: s.MaxRunning, MaxTasks: s.MaxTasks, Task: s.Task,
				Register: s.Register, Rest: s.Rest, RunAhead: true,
				Recorded: func(ref store.Ref, _ *graph.Graph, _ host.Row, _ []engine.Command) { s.Recorded(ref) },
				GivenUp:  s.GivenUp,
			})
			if err != nil {
				return nil, err
			}
			return h, nil
		},
	}
}

// byHand is the same chain as somebody writes it who has nothing but Temporal.
func byHand(b *testing.B) {
	var used time.Duration
	for n := range b.N {
		b.StopTimer()
		queue := newQueue()
		w := worker.New(server, queue, worker.Options{MaxConcurrentActivityExecutionSize: 12})
		w.RegisterWorkflowWithOptions(func(ctx workflow.Context, v map[string]int64) (map[string]int64, error) {
			ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
			for i := range links {
				if err := workflow.ExecuteActivity(ctx, "link", fmt.Sprintf("n%d", i), v).Get(ctx, &v); err != nil {
					return nil, err
				}
			}
			return v, nil
		}, workflow.RegisterOptions{Name: "chain"})
		w.RegisterActivityWithOptions(func(_ context.Context, name string, v map[string]int64) (map[string]int64, error) {
			sum := int64(1)
			for k, x := range v {
				sum += int64(len(k)) * x
			}
			return map[string]int64{name: sum}, nil
		}, activity.RegisterOptions{Name: "link"})
		if err := w.Start(); err != nil {
			b.Fatal(err)
		}
		begun := processTime(b)
		b.StartTimer()
		var runs []client.WorkflowRun
		for i := range chains {
			run, err := server.ExecuteWorkflow(b.Context(), client.StartWorkflowOptions{ID: fmt.Sprintf("%s-%d-%d", queue, n, i), TaskQueue: queue}, "chain", map[string]int64{"start": 5})
			if err != nil {
				b.Fatal(err)
			}
			runs = append(runs, run)
		}
		for _, run := range runs {
			if err := run.Get(b.Context(), nil); err != nil {
				b.Fatal(err)
			}
		}
		b.StopTimer()
		used += processTime(b) - begun
		w.Stop()
		b.StartTimer()
	}
	perStep(b, used)
}

// countingJournal counts what is appended, and what is refused because another process was faster.
type countingJournal struct {
	store.Journal
	rows, refused *atomic.Int64
}

// Append implements [store.Journal].
func (j countingJournal) Append(ctx context.Context, p identity.Principal, rows ...*store.Append) error {
	err := j.Journal.Append(ctx, p, rows...)
	switch {
	case err == nil:
		j.rows.Add(int64(len(rows)))
	case errors.Is(err, store.ErrConflict):
		j.refused.Add(1)
	}
	return err
}

// BenchmarkWide measures one execution of many nodes side by side, with one worker, with two and with four.
func BenchmarkWide(b *testing.B) {
	const width = 200
	pg := postgrestest.Start(b)
	for _, workers := range []int{1, 2, 4} {
		b.Run(fmt.Sprintf("workers-%d", workers), func(b *testing.B) {
			var rows, refused atomic.Int64
			for range b.N {
				b.StopTimer()
				s, address := newSite(b), pg.Database(b)
				s.split, s.others = true, workers
				rig := s.shared(address, slices.Repeat([]string{address}, workers)...)
				reach := rig.Beside
				rig.Beside = func() store.Stores {
					stores := reach()
					stores.Journal = countingJournal{stores.Journal, &rows, &refused}
					return stores
				}
				hosttest.Wide(width, b.StartTimer).Play(b, rig, hosttest.Fate{})
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*width), "µs/node")
			b.ReportMetric(float64(rows.Load())/float64(b.N), "rows/op")
			b.ReportMetric(float64(refused.Load())/float64(b.N), "refused/op")
		})
	}
}
