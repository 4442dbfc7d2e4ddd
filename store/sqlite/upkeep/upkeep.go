// Package upkeep removes from the SQLite store what has had its time: executions and deliveries with all that belongs to them (removal.go), large values that
// nothing names (blobs.go), and what they leave behind in the files (pages.go). It also keeps the limits of workspaces.
//
// It knows the tables, and not how a transaction comes about. The SQLite store imports it.
package upkeep

import (
	"context"
	"time"

	"tandem/identity"
	"tandem/store"
	"tandem/store/relational"
	"tandem/store/sqlite/blobnames"
)

// Transaction is one of the store that may remove executions.
type Transaction interface {
	relational.Transaction
	// Forget says that an execution is not what it was, Removed how many rows of journals and executions go.
	Forget(workspace, execution string)
	Removed(rows, executions int64)
	// Unchanged says that the transaction has changed nothing, so that nothing is entered in the audit log.
	Unchanged()
}

// Blobs are the large values of workspaces; package blobdir keeps them.
type Blobs interface {
	// Each calls back for each value of a workspace, with what it takes up and when it was last put.
	Each(ctx context.Context, workspace string, each func(name string, size int64, put time.Time) error) error
	// Names finds everything in a value that looks like the name of another, Named those of a set.
	Names(ctx context.Context, workspace, name string, into blobnames.Names) error
	Named(ctx context.Context, workspace, name string, among blobnames.Names, found func(name string)) error
	Stat(p identity.Principal, name string) (store.Blob, error)
	// Remove removes values that were not put since a time.
	Remove(workspace string, names []string, young time.Time) (removed int, bytes int64, err error)
}

// Options is what upkeep works with besides the database.
type Options struct {
	// Blobs are the large values, and Measure says what the data directory takes up, except for what is free.
	Blobs   Blobs
	Measure func() (store.Space, error)
	// Epoch is that of this process, and Born when it was taken, in Unix milliseconds.
	Epoch, Born int64
	// Write runs a function in the next transaction and returns when that is on disk. The function may run twice.
	Write func(ctx context.Context, f func(Transaction) error) error
	// RemoveMemories removes the memories of an execution, and Gone says that this is on disk.
	RemoveMemories func(tx relational.Transaction, workspace, execution string, marks bool) ([]int64, error)
	Gone           func(numbers ...int64)
	// CutLog folds the log into the database and cuts its file, and says whether it could: readers may stand in the way.
	CutLog func() bool
	// Err says why the store has stopped; nil: it has not.
	Err func() error
}

// Upkeep implements [store.Upkeep] and, by [Upkeep.Limits], [store.Limits].
type Upkeep struct {
	db relational.Database
	o  Options
}

// New looks after a database.
func New(db relational.Database, o Options) *Upkeep { return &Upkeep{db, o} }

// writing is a transaction as the rows that are removed in it see it.
type writing struct {
	Transaction
	x *Upkeep
}

func (x *Upkeep) write(ctx context.Context, f func(writing) error) error {
	return x.o.Write(ctx, func(tx Transaction) error { return f(writing{tx, x}) })
}

// queryOne reads the row of a statement that always has one.
func queryOne[T any](ctx context.Context, x *Upkeep, text string, scan func(relational.Scanner) (T, error), args ...any) (one T, err error) {
	all, err := relational.Query(ctx, x.db, text, scan, args...)
	if err != nil || len(all) == 0 {
		return one, err
	}
	return all[0], nil
}

func scanInt(s relational.Scanner) (n int64, err error) { return n, s.Scan(&n) }

// Limits are those of workspaces.
func (x *Upkeep) Limits() store.Limits { return limits{x} }

type limits struct{ *Upkeep }

// Get implements [store.Limits].
func (x limits) Get(ctx context.Context, p identity.Principal) ([]byte, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return nil, err
	}
	found, err := relational.Query(ctx, x.db, `SELECT body FROM workspace_limits WHERE workspace_id = ?`, func(s relational.Scanner) (b []byte, err error) { return b, s.Scan(&b) }, workspace)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0], nil
}

// Put implements [store.Limits].
func (x limits) Put(ctx context.Context, p identity.Principal, body []byte, now int64) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	return x.write(ctx, func(w writing) error {
		_, err := w.Exec(`INSERT INTO workspace_limits (workspace_id, body, updated_by, updated) VALUES (?1, ?2, ?3, ?4)
			ON CONFLICT (workspace_id) DO UPDATE SET body = ?2, updated_by = ?3, updated = ?4`, workspace, body, p.User, now)
		return err
	})
}

// StartsSince implements [store.Limits].
func (x limits) StartsSince(ctx context.Context, p identity.Principal, since int64) (int64, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return 0, err
	}
	first, err := x.firstMade(ctx, workspace, since)
	if err != nil {
		return 0, err
	}
	return queryOne(ctx, x.Upkeep, `SELECT (SELECT count(*) FROM executions INDEXED BY executions_listing WHERE workspace_id = ?1 AND n >= ?2 AND parent = '' AND created >= ?3 AND created < ?4) +
		(SELECT coalesce(sum(count), 0) FROM removed_starts WHERE workspace_id = ?1 AND day >= ?5 AND epoch <> ?6)`,
		scanInt,
		workspace, first, since, x.o.Born, time.UnixMilli(since).UTC().Format(time.DateOnly), x.o.Epoch)
}

// cutTries and cutPause are how long the log is waited for to be cut: readers may stand in the way for a moment.
const (
	cutTries = 50
	cutPause = 100 * time.Millisecond
)

// Compact implements [store.Upkeep].
func (x *Upkeep) Compact(ctx context.Context, p identity.Principal, free float64) error {
	if err := store.RequireSystem(p); err != nil {
		return err
	}
	since := time.Now().UnixMilli()
	shrinks, err := x.shrinks(ctx)
	if err != nil {
		return err
	}
	if shrinks {
		if err := x.blankPages(ctx); err != nil {
			return err
		}
		if err := x.giveBack(ctx, free); err != nil {
			return err
		}
	}
	// What is removed meanwhile is due again. The log is cut after this.
	if due, err := x.Unclean(ctx, p); err != nil {
		return err
	} else if due {
		if err := x.write(ctx, func(w writing) error {
			_, err := w.Exec(`DELETE FROM upkeep_due WHERE what = ? AND since < ?`, dueCompact, since)
			return err
		}); err != nil {
			return err
		}
	}
	for range cutTries {
		if x.o.CutLog() {
			return x.o.Err()
		}
		timer := time.NewTimer(cutPause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
	return x.o.Err() // readers stand in the way; the next time is soon enough
}

// dueCompact is what is due after a removal with its traces.
const dueCompact = "compact"

// Unclean implements [store.Upkeep].
func (x *Upkeep) Unclean(ctx context.Context, p identity.Principal) (bool, error) {
	if err := store.RequireSystem(p); err != nil {
		return false, err
	}
	found, err := relational.Query(ctx, x.db, `SELECT 1 FROM upkeep_due WHERE what = ?`, scanInt, dueCompact)
	return len(found) > 0, err
}

func (x *Upkeep) shrinks(ctx context.Context) (bool, error) {
	mode, err := queryOne(ctx, x, `SELECT auto_vacuum FROM pragma_auto_vacuum`, scanInt)
	return mode != 0, err
}

// Space implements [store.Upkeep].
func (x *Upkeep) Space(ctx context.Context, p identity.Principal) (s store.Space, err error) {
	if err := store.RequireSystem(p); err != nil {
		return s, err
	}
	if s, err = x.o.Measure(); err != nil {
		return s, err
	}
	free, err := queryOne(ctx, x, `SELECT freelist_count * page_size FROM pragma_freelist_count, pragma_page_size`, scanInt)
	if err != nil {
		return s, err
	}
	s.Free = free
	s.Shrinks, err = x.shrinks(ctx)
	return s, err
}

// Usage implements [store.Upkeep].
func (x *Upkeep) Usage(ctx context.Context, p identity.Principal) (u store.Usage, err error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return u, err
	}
	if u.Executions, err = queryOne(ctx, x, `SELECT coalesce(sum(count), 0) FROM execution_counts WHERE workspace_id = ?`, scanInt, workspace); err != nil {
		return u, err
	}
	for _, t := range []struct{ table, length string }{{"journal", "length(body)"}, {"journal_in_order", "length(body)"}, {"snapshots", "length(body)"}, {"logs", "length(message) + length(context)"}} {
		n, err := queryOne(ctx, x, `SELECT coalesce(sum(`+t.length+`), 0) FROM `+t.table+` WHERE workspace_id = ?`, scanInt, workspace)
		if err != nil {
			return u, err
		}
		u.Journals += n
	}
	err = x.o.Blobs.Each(ctx, workspace, func(_ string, size int64, _ time.Time) error {
		u.Blobs += size
		return nil
	})
	return u, err
}
