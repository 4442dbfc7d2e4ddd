package sqlite_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tandem/engine"
	"tandem/host"
	"tandem/identity"
	"tandem/store"
	"tandem/store/sqlite"
)

// bare is the least that a durable journal with group commit can be, on the same driver with the same durability: one
// table, one goroutine, no workspaces, no check of what came before, nothing beside the rows. It is the yardstick.
type bare struct {
	db    *sql.DB
	conn  *sql.Conn
	in    *sql.Stmt
	mu    sync.Mutex
	queue []*bareRow
	wake  chan struct{}
	quit  chan struct{}
	done  chan struct{}
}

type bareRow struct {
	execution string
	seq       uint64
	time      int64
	body      []byte
	done      chan error
}

func newBare(b *testing.B) *bare {
	b.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(b.TempDir(), "bare.db")+
		"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(10000)&_txlock=immediate")
	if err != nil {
		b.Fatal(err)
	}
	j := &bare{db: db, wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
	if j.conn, err = db.Conn(b.Context()); err != nil {
		b.Fatal(err)
	}
	if _, err := j.conn.ExecContext(b.Context(), `CREATE TABLE journal (execution TEXT, seq INTEGER, time INTEGER, body BLOB, PRIMARY KEY (execution, seq)) WITHOUT ROWID`); err != nil {
		b.Fatal(err)
	}
	if j.in, err = j.conn.PrepareContext(b.Context(), `INSERT INTO journal VALUES (?, ?, ?, ?)`); err != nil {
		b.Fatal(err)
	}
	go j.loop()
	b.Cleanup(func() {
		close(j.quit)
		<-j.done
		if err := j.in.Close(); err != nil {
			b.Error(err)
		}
		if err := j.conn.Close(); err != nil {
			b.Error(err)
		}
		if err := db.Close(); err != nil {
			b.Error(err)
		}
	})
	return j
}

func (j *bare) append(execution string, seq uint64, body []byte) error {
	r := &bareRow{execution: execution, seq: seq, time: 1, body: body, done: make(chan error, 1)}
	j.mu.Lock()
	j.queue = append(j.queue, r)
	j.mu.Unlock()
	select {
	case j.wake <- struct{}{}:
	default:
	}
	return <-r.done
}

func (j *bare) loop() {
	defer close(j.done)
	for {
		j.mu.Lock()
		batch := j.queue
		j.queue = nil
		j.mu.Unlock()
		if len(batch) == 0 {
			select {
			case <-j.quit:
				return
			case <-j.wake:
			}
			continue
		}
		err := j.commit(batch)
		for _, r := range batch {
			r.done <- err
		}
	}
}

func (j *bare) commit(batch []*bareRow) error {
	ctx := context.Background()
	tx, err := j.conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	in := tx.StmtContext(ctx, j.in)
	for _, r := range batch {
		if _, err := in.ExecContext(ctx, r.execution, int64(r.seq), r.time, r.body); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// BenchmarkAppend has so many executions append rows of 200 bytes at once, in turns with the bare journal, and reports
// the medians of both and their ratio (above 1: faster than the bare one).
func BenchmarkAppend(b *testing.B) {
	for _, appenders := range []int{1, 50, 500} {
		b.Run(fmt.Sprint(appenders), func(b *testing.B) {
			p := identity.Principal{Workspace: "bench", User: "ann"}
			db, yardstick := open(b), newBare(b)
			s := db.Stores()
			body := make([]byte, 200)
			for i := range body {
				body[i] = byte(i * 7)
			}
			steps := max(100, 400/appenders)
			run := 0
			ours := func(id string) error {
				a := &store.Append{Execution: id, Body: body, Create: &store.Execution{ID: id, Status: engine.StatusRunning}}
				if err := s.Journal.Append(b.Context(), p, a); err != nil {
					return err
				}
				for seq := range uint64(steps - 1) {
					if err := s.Journal.Append(b.Context(), p, &store.Append{Execution: id, After: seq + 1, Body: body}); err != nil {
						return err
					}
				}
				return nil
			}
			theirs := func(id string) error {
				for seq := range uint64(steps) {
					if err := yardstick.append(id, seq+1, body); err != nil {
						return err
					}
				}
				return nil
			}
			round := func(one func(id string) error) float64 {
				run++
				start := time.Now()
				var wg sync.WaitGroup
				for i := range appenders {
					id := fmt.Sprintf("execution_%08d_%04d", run, i)
					wg.Go(func() {
						if err := one(id); err != nil {
							b.Error(err)
						}
					})
				}
				wg.Wait()
				return float64(appenders*steps) / time.Since(start).Seconds()
			}
			var rates [2][]float64
			for b.Loop() {
				rates[0] = append(rates[0], round(ours))
				rates[1] = append(rates[1], round(theirs))
			}
			median := func(r []float64) float64 { slices.Sort(r); return r[len(r)/2] }
			b.ReportMetric(median(rates[0]), "rows/s")
			b.ReportMetric(median(rates[1]), "bare-rows/s")
			b.ReportMetric(median(rates[0])/median(rates[1]), "ratio")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkStart begins 50 executions at once, each with seven rows, in a database that has 10,000, and says how much is written for
// one: with ids that sort by the time they were made, and with random ones.
func BenchmarkStart(b *testing.B) {
	for name, id := range map[string]func() string{
		"ByTime": func() string { return host.NewExecutionID(time.Now()) },
		"Random": func() string { return "exec_" + strings.ToLower(rand.Text()) },
	} {
		b.Run(name, func(b *testing.B) {
			db := open(b)
			body := make([]byte, 300)
			p := identity.Principal{Workspace: "bench", User: "ann"}
			begin := func() {
				var wg sync.WaitGroup
				for range 50 {
					wg.Go(func() {
						id := id()
						rows := []*store.Append{{Execution: id, Body: body, Create: &store.Execution{ID: id, WorkflowID: "w", Status: engine.StatusRunning}}}
						for seq := range uint64(6) {
							rows = append(rows, &store.Append{Execution: id, After: seq + 1, Body: body})
						}
						rows[6].Change = &store.Change{Status: engine.StatusSuccess}
						if err := db.Stores().Journal.Append(b.Context(), p, rows...); err != nil {
							b.Error(err)
						}
					})
				}
				wg.Wait()
			}
			for range 200 {
				begin()
			}
			before := written(b)
			for b.Loop() {
				begin()
			}
			b.ReportMetric(float64(written(b)-before)/float64(b.N*50), "bytes-written/start")
		})
	}
}

// written is how many bytes this process has written, to whatever.
func written(b *testing.B) (n int64) {
	b.Helper()
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		b.Skip("the system does not tell how much is written: ", err)
	}
	if _, err := fmt.Sscanf(string(text), "rchar: %d\nwchar: %d", &n, &n); err != nil {
		b.Fatal(err)
	}
	return n
}

// BenchmarkRecover reads what a start of the process must know of 100,000 parked executions: which they are, and their
// timers.
func BenchmarkRecover(b *testing.B) {
	db := open(b)
	const n = 100_000
	if err := db.Exec(b.Context(), nil, fmt.Sprintf(`WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < %d)
		INSERT INTO executions SELECT i, 'ws', 'execution_' || i, 'w', 'n', '1.0', 1, 'h', 'WAITING', 0, 1 + i %% 5, '', '', 'MANUAL', 'ann', 1, 0, 0, 0, '', 1, 1 FROM c`, n),
		`INSERT INTO timers SELECT n, 't', 'ws', id, n % 1000 FROM executions`); err != nil {
		b.Fatal(err)
	}
	s := db.Stores()
	for b.Loop() {
		found := 0
		for _, err := range s.Executions.Unfinished(b.Context(), identity.System(""), store.Unfinished{}) {
			if err != nil {
				b.Fatal(err)
			}
			found++
		}
		timers := 0
		for after := (store.Timer{}); ; {
			page, err := s.Timers.Upcoming(b.Context(), identity.System(""), after, 1000)
			if err != nil {
				b.Fatal(err)
			}
			if len(page) == 0 {
				break
			}
			timers += len(page)
			after = page[len(page)-1]
		}
		if found != n || timers != n {
			b.Fatalf("found %d executions and %d timers", found, timers)
		}
	}
}

// BenchmarkOpen opens an empty directory.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	for i := 0; b.Loop(); i++ {
		db, err := sqlite.Open(b.Context(), sqlite.Options{Dir: filepath.Join(dir, fmt.Sprint(i))})
		if err != nil {
			b.Fatal(err)
		}
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
