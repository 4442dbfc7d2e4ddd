package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"
)

// contender is one engine on a directory of its own, in a process of its own.
type contender interface {
	// chain runs one execution of a chain to its end, fanOut one of a fan-out and the join after it.
	chain(ctx context.Context, run string) error
	fanOut(ctx context.Context, run string) error
	// park starts one execution that waits for a message, for a day at most. It may return before it waits.
	park(ctx context.Context, run string) error
	// parked counts the executions that wait, from what is on disk.
	parked(ctx context.Context) (int, error)
	// recorded counts the nodes that are on disk as done, of all executions.
	recorded(ctx context.Context) (int, error)
	// synchronous reads the setting of the connection that writes: 2 is FULL.
	synchronous(ctx context.Context) (int, error)
	close() error
}

// shape says how large the workloads are.
type shape struct {
	nodes, width int
	// database is the address of an empty database of PostgreSQL to work on; empty: a file of SQLite in the directory.
	database string
}

// step is one measurement of one contender.
type step struct {
	Contender string `json:"contender"`
	Workload  string `json:"workload"`
	// Runs is how many executions go at once, Repeat how many times one after another.
	Runs   int `json:"runs"`
	Repeat int `json:"repeat"`
	Nodes  int `json:"nodes"`
	Width  int `json:"width"`
	// Database is the address of a server of PostgreSQL, on which a database is made; empty: SQLite.
	Database string `json:"database,omitempty"`
}

// The workloads.
const (
	workChain  = "chain"
	workFanOut = "fan_out"
	workPark   = "park"
)

// result is what a step tells its parent, on one line of standard output.
type result struct {
	Seconds     float64 `json:"seconds"`
	Synchronous int     `json:"synchronous"`
	// Memory is how much the resident memory of the process grew, in bytes, for the workload that parks.
	Memory int64 `json:"memory,omitempty"`
}

// full is synchronous=FULL.
const full = 2

// perform does a step in this process.
func perform(ctx context.Context, s step, dir string) (r result, err error) {
	open, ok := openers()[s.Contender]
	if !ok {
		return result{}, fmt.Errorf("unknown contender %q", s.Contender)
	}
	size := shape{nodes: s.Nodes, width: s.Width}
	if s.Database != "" {
		address, remove, err := makeDatabase(ctx, s.Database)
		if err != nil {
			return result{}, err
		}
		defer func() { err = errors.Join(err, remove()) }()
		size.database = address
	}
	c, err := open(ctx, dir, size)
	if err != nil {
		return result{}, fmt.Errorf("open %s: %w", s.Contender, err)
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if r.Synchronous, err = c.synchronous(ctx); err != nil {
		return result{}, fmt.Errorf("read synchronous: %w", err)
	}
	// What is done once per process is not part of the figures.
	if err := c.chain(ctx, "warm"); err != nil {
		return result{}, fmt.Errorf("warm up: %w", err)
	}
	var one func(context.Context, string) error
	switch s.Workload {
	case workChain:
		one = c.chain
	case workFanOut:
		one = c.fanOut
	case workPark:
		one = c.park
	default:
		return result{}, fmt.Errorf("unknown workload %q", s.Workload)
	}
	before, err := resident()
	if err != nil {
		return result{}, err
	}
	start := time.Now()
	err = together(s.Runs, func(i int) error {
		for k := range s.Repeat {
			if err := one(ctx, fmt.Sprintf("run_%d_%d", i, k)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return result{}, err
	}
	if s.Workload == workPark {
		if err := awaitParked(ctx, c, s.Runs*s.Repeat); err != nil {
			return result{}, err
		}
	}
	r.Seconds = time.Since(start).Seconds()
	if err := checkRecorded(ctx, c, s); err != nil {
		return result{}, err
	}
	if s.Workload == workPark {
		after, err := resident()
		if err != nil {
			return result{}, err
		}
		r.Memory = after - before
	}
	return r, nil
}

// checkRecorded sees to it that what was measured is on disk: every node of every execution, that of the warm-up too.
func checkRecorded(ctx context.Context, c contender, s step) error {
	want := s.Nodes
	switch s.Workload {
	case workChain:
		want += s.Runs * s.Repeat * s.Nodes
	case workFanOut:
		want += s.Runs * s.Repeat * (s.Width + 2)
	case workPark:
		return nil // they are counted as parked
	}
	got, err := c.recorded(ctx)
	if err != nil {
		return fmt.Errorf("count what is recorded: %w", err)
	}
	if got != want {
		return fmt.Errorf("%d nodes are on disk, not %d", got, want)
	}
	return nil
}

// awaitParked looks every 50 ms whether all wait.
func awaitParked(ctx context.Context, c contender, want int) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		n, err := c.parked(ctx)
		if err != nil {
			return fmt.Errorf("count what is parked: %w", err)
		}
		if n >= want {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d are parked: %w", n, want, context.Cause(ctx))
		}
	}
}

// together runs a function so many times at once and returns the first error, when all have ended.
func together(n int, each func(int) error) error {
	var group sync.WaitGroup
	var once sync.Once
	var first error
	for i := range n {
		group.Go(func() {
			if err := each(i); err != nil {
				once.Do(func() { first = err })
			}
		})
	}
	group.Wait()
	return first
}

// resident is the memory of this process that is in use, after garbage was given back.
func resident() (int64, error) {
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("read the resident memory (Linux only): %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return kb << 10, err
		}
	}
	return 0, errors.New("the system does not tell the resident memory")
}

// openDB opens a database the way each Go contender is to have it: write-ahead log, every commit synced.
func openDB(dir, name string, more ...string) (*sql.DB, error) {
	pragmas := append([]string{"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)"}, more...)
	return sql.Open("sqlite", "file:"+filepath.Join(dir, name)+"?_txlock=immediate&_pragma="+strings.Join(pragmas, "&_pragma="))
}

// openReader opens a connection that only looks at what is on disk, so that looking takes nothing from a contender's own
// connections.
func openReader(dir, name string) (*sql.DB, error) {
	db, err := openDB(dir, name, "query_only(1)")
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
}

// number reads one number.
func number(ctx context.Context, db *sql.DB, query string, args ...any) (n int, err error) {
	return n, db.QueryRowContext(ctx, query, args...).Scan(&n)
}
