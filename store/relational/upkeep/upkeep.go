// Package upkeep removes what is old enough to go: executions and deliveries with all that belongs to them (removal.go), and large values
// that nothing names (blobs.go). It also keeps the limits of workspaces.
//
// It knows the tables, and not how a transaction comes about, how journals are kept, or what of the removed is left in files. Stores import
// it.
package upkeep

import (
	"context"
	"database/sql/driver"
	"time"

	"tandem/identity"
	"tandem/store"
	"tandem/store/relational"
	"tandem/store/relational/blobnames"
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

// Blobs are the large values of workspaces.
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

// Files is what the database keeps its tables in.
type Files interface {
	// EachColumn hands over all texts and bytes of all tables, in pages, except for those of the table of doubts.
	EachColumn(ctx context.Context, each func(columns ...driver.Value)) error
	// Compact overwrites what removed rows have left behind, and gives room back until no more than a part of the files is free. Then it
	// calls done, and after that sees to what the log holds.
	Compact(ctx context.Context, free float64, done func() error) error
	Space(ctx context.Context) (store.Space, error)
}

// Journal is a table that has rows of journals, with the columns workspace_id and body.
type Journal struct {
	Table string
	// Some is the condition of some rows of an execution, the first ones, and Args are its arguments: the number of the execution, and how
	// many at most.
	Some string
	Args func(n, limit int64) []driver.Value
}

// Options is what upkeep works with besides the database.
type Options struct {
	Blobs    Blobs
	Files    Files
	Journals []Journal
	// Epoch is that of this process, and Born when it was taken, in Unix milliseconds.
	Epoch, Born int64
	// FirstSince is the number of the first execution of a workspace that was started at a time or later; one behind the last if there is
	// none.
	FirstSince func(ctx context.Context, workspace string, at int64) (int64, error)
	// Write runs a function in the next transaction and returns when that is on disk. The function may run twice.
	Write func(ctx context.Context, f func(Transaction) error) error
	// RemoveMemories removes the memories of an execution, and Gone says that this is on disk.
	RemoveMemories func(tx relational.Transaction, workspace, execution string, marks bool) ([]int64, error)
	Gone           func(numbers ...int64)
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
func queryOne[T any](ctx context.Context, x *Upkeep, text string, scan func(relational.Scanner) (T, error),
	args ...any) (one T, err error) {
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
	first, err := x.o.FirstSince(ctx, workspace, since)
	if err != nil {
		return 0, err
	}
	return queryOne(ctx, x.Upkeep, `SELECT (SELECT count(*) FROM executions INDEXED BY executions_listing WHERE workspace_id = ?1 AND n >= ?2 AND parent = '' AND created >= ?3 AND created < ?4) +
		(SELECT coalesce(sum(count), 0) FROM removed_starts WHERE workspace_id = ?1 AND day >= ?5 AND epoch <> ?6)`,
		scanInt,
		workspace, first, since, x.o.Born, time.UnixMilli(since).UTC().Format(time.DateOnly), x.o.Epoch)
}

// Compact implements [store.Upkeep].
func (x *Upkeep) Compact(ctx context.Context, p identity.Principal, free float64) error {
	if err := store.RequireSystem(p); err != nil {
		return err
	}
	since := time.Now().UnixMilli()
	return x.o.Files.Compact(ctx, free, func() error {
		// What is removed meanwhile is due again.
		due, err := x.Unclean(ctx, p)
		if err != nil || !due {
			return err
		}
		return x.write(ctx, func(w writing) error {
			_, err := w.Exec(`DELETE FROM upkeep_due WHERE what = ? AND since < ?`, dueCompact, since)
			return err
		})
	})
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

// Space implements [store.Upkeep].
func (x *Upkeep) Space(ctx context.Context, p identity.Principal) (s store.Space, err error) {
	if err := store.RequireSystem(p); err != nil {
		return s, err
	}
	return x.o.Files.Space(ctx)
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
	lengths := map[string]string{"snapshots": "length(body)", "logs": "length(message) + length(context)"}
	for _, t := range x.o.Journals {
		lengths[t.Table] = "length(body)"
	}
	for table, length := range lengths { // order does not matter: it is a sum
		n, err := queryOne(ctx, x, `SELECT coalesce(sum(`+length+`), 0) FROM `+table+` WHERE workspace_id = ?`, scanInt, workspace)
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
