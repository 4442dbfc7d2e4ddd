// Package sqlite keeps everything of Tandem in one directory: a SQLite database in WAL mode at full durability, and
// beside it the blobs as files. One process owns the directory.
//
// All writes go through the committer (writer.go), which makes one transaction, and so one fsync, of whatever is waiting: a
// lone writer waits for nobody, five hundred share the cost. Of those who wait one leads, and owns the writing connection
// and the heads of the journals while it does. Reads have a small pool of connections of their own and never wait for a
// writer.
//
// Nothing that was acknowledged vanishes unnoticed (docs/decisions/0010): a mark beside the database says how far it had come
// (package datadir), a start compares the two, every transaction makes sure that no later process has taken the database over,
// and files that are removed or replaced stop the store.
//
// Goroutines: [Open] starts two, the checkpointer (checkpoint.go), which owns a connection to move pages from the log into
// the database, and the watcher, which looks after its files. [DB.Close] ends them and waits for them, and for
// those who write.
//
// It implements the seam of package store and is not a place for decisions about workflows. Only the wiring of an instance
// imports it.
package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"tandem/fault"
	"tandem/store"
	"tandem/store/relational"
	"tandem/store/relational/accounts"
	"tandem/store/relational/auditlog"
	"tandem/store/relational/definitions"
	"tandem/store/relational/inbox"
	"tandem/store/relational/logs"
	"tandem/store/relational/memories"
	"tandem/store/relational/overview"
	"tandem/store/relational/questions"
	"tandem/store/relational/spending"
	"tandem/store/relational/summaries"
	"tandem/store/relational/toolservers"
	"tandem/store/relational/triggers"
	"tandem/store/relational/upkeep"
	"tandem/store/sqlite/blobdir"
	"tandem/store/sqlite/datadir"
	"tandem/store/sqlite/pages"
	"tandem/store/sqlite/sqlconn"
)

// Options say where the data is. The zero value of everything but Dir is a good choice.
type Options struct {
	// Dir is the data directory. It is made if it does not exist.
	Dir string
	// Readers is how many reads go on at the same time; more wait. 4 when zero.
	Readers int
	// MinFree is how many bytes must be free on the disk for new executions to be accepted: the rest is for what runs
	// already. 32 MiB when zero.
	MinFree uint64
	// AcceptLoss opens a database that lacks something that was acknowledged, instead of refusing it, and writes down in it
	// that this was accepted.
	AcceptLoss bool
}

// DB is an open data directory. It is safe for concurrent use.
type DB struct {
	dir      string
	lock     *os.File
	marks    *os.File // the mark beside the database
	blobs    *blobdir.Dir
	writer   *writer
	check    *checkpointer
	watch    *datadir.Watcher
	read     *sqlconn.Readers
	memories *memories.Memories
	upkeep   *upkeep.Upkeep
	// tokens keeps those of requests at hand, headings what starts want to know of workflows.
	kept     generations
	tokens   tokenCache
	headings headingCache

	mu     sync.Mutex
	closed bool
}

// Open opens a data directory, brings its database up to date and starts the committer. It refuses a directory that
// another process has open, a database that a newer version has written, and one that is missing or lacks something that was
// acknowledged. A process that had the directory open without a lock writes nothing more from then on.
func Open(ctx context.Context, o Options) (_ *DB, err error) {
	if o.Dir == "" {
		return nil, fault.New(fault.Invalid, "no data directory given")
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("open data directory %q: %w", o.Dir, err)
	}
	db := &DB{dir: dir}
	db.memories = memories.New(tables{db}, words{})
	defer func() {
		if err != nil {
			err = errors.Join(err, db.release())
		}
	}()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, datadir.Unusable(dir, err)
	}
	if db.lock, err = datadir.Lock(dir); err != nil {
		return nil, err
	}
	path := datadir.RealPath(dir)
	loss, err := datadir.FindLoss(ctx, dir, path, o.AcceptLoss)
	if err != nil {
		return nil, err
	}
	m, err := datadir.Migrate(ctx, dir, path, loss)
	if err != nil {
		return nil, datadir.Unusable(dir, err)
	}
	if _, err := os.Stat(path + datadir.LogSuffix); errors.Is(err, os.ErrNotExist) {
		m.Folded = m.Commits // the end of the migration has folded the log
	}
	if err := db.openBeside(m); err != nil {
		return nil, datadir.Unusable(dir, err)
	}
	if err := db.startWriter(ctx, path, cmp.Or(o.MinFree, defaultMinFree), m); err != nil {
		return nil, datadir.Unusable(dir, err)
	}
	readers := o.Readers
	if readers <= 0 {
		readers = 4
	}
	db.read = sqlconn.NewReaders(path, readers)
	db.check.start()
	db.upkeep = upkeep.New(tables{db}, upkeep.Options{
		Blobs: db.blobs,
		Files: pages.New(tables{db}, pages.Options{Measure: func() (store.Space, error) { return datadir.Measure(dir) },
			CutLog: db.writer.cutLogNow, Err: db.Err}),
		Journals: []upkeep.Journal{removedFrom("journal"), removedFrom("journal_in_order")},
		Epoch:    m.Epoch, Born: m.Time, FirstSince: summaries.New(tables{db}).FirstSince, Write: tables{db}.remove,
		RemoveMemories: db.memories.RemoveOf, Gone: db.memories.Gone,
	})
	db.watch = datadir.StartWatcher(db.look, db.writer.fail)
	return db, nil
}

// removedFrom is a table of rows, for removing some.
func removedFrom(table string) upkeep.Journal {
	return upkeep.Journal{
		Table: table, Some: `place IN (SELECT place FROM ` + table + ` WHERE place >= ? AND place < ? ORDER BY place LIMIT ?)`,
		Args: func(n, limit int64) []driver.Value { return []driver.Value{n << 32, (n + 1) << 32, limit} },
	}
}

// defaultMinFree is how much of the disk stays free when nothing else is said.
const defaultMinFree = 32 << 20

// openBeside opens what is kept beside the database: the mark, and the large values.
func (db *DB) openBeside(m datadir.Mark) (err error) {
	dir := filepath.Join(db.dir, datadir.BlobDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := datadir.Private(dir, 0o700); err != nil {
		return err
	}
	if db.marks, err = datadir.OpenMark(db.dir, m); err != nil {
		return err
	}
	if err := datadir.SyncPath(db.dir); err != nil { // the names made above
		return err
	}
	db.blobs, err = blobdir.Open(dir, datadir.SyncDir)
	return err
}

// startWriter starts the committer, and what folds the log of the database. A process that had the directory open before writes nothing
// more.
func (db *DB) startWriter(ctx context.Context, path string, minFree uint64, m datadir.Mark) (err error) {
	if db.check, err = newCheckpointer(path); err != nil {
		return err
	}
	if db.writer, err = newWriter(path, db.check, minFree, func() (uint64, error) { return datadir.FreeSpace(db.dir) }); err != nil {
		return err
	}
	if err := db.writer.keepMark(m, db.marks); err != nil {
		return err
	}
	db.writer.kept = &db.kept
	db.check.finish, db.check.acknowledged, db.check.folded = db.writer.finishCheckpoint, db.writer.lastAcknowledged, db.writer.keepFolded
	return tables{db}.Write(ctx, spending.Forfeit)
}

// Close waits for everything that was accepted to be on disk, ends the goroutines and lets go of the directory. Calls
// after it are refused.
func (db *DB) Close() error {
	db.mu.Lock()
	if db.closed {
		db.mu.Unlock()
		return nil
	}
	db.closed = true
	db.mu.Unlock()
	return db.release()
}

// release closes whatever has been opened, in the order that lets the last connection fold the log into the database.
func (db *DB) release() error {
	var errs []error
	if db.watch != nil {
		db.watch.Stop()
	}
	if db.check != nil {
		errs = append(errs, db.check.stop())
	}
	if db.read != nil {
		errs = append(errs, db.read.Close())
	}
	if db.writer != nil {
		errs = append(errs, db.writer.stop())
	}
	if db.marks != nil {
		errs = append(errs, db.marks.Close())
	}
	if db.blobs != nil {
		errs = append(errs, db.blobs.Close())
	}
	if db.lock != nil {
		errs = append(errs, datadir.Unlock(db.lock))
	}
	return errors.Join(errs...)
}

// Stores returns the seams that the database implements: all of them.
func (db *DB) Stores() store.Stores {
	t := tables{db}
	s := store.Stores{
		Journal:      journal{db},
		Executions:   executions{summaries.New(t), db},
		Blobs:        blobs{db},
		Memories:     db.memories,
		Interactions: questions.New(t, inbox.Deliver),
		Limits:       db.upkeep.Limits(),
		Upkeep:       db.upkeep,
	}
	for _, add := range []func(*store.Stores, relational.Database){
		accounts.AddTo, auditlog.AddTo, definitions.AddTo, inbox.AddTo, logs.AddTo, overview.AddTo, toolservers.AddTo, triggers.AddTo,
	} {
		add(&s, t)
	}
	spending.AddTo(&s, t, inbox.Deliver)
	s.Tokens = tokens{accounts.NewTokens(t), db}
	s.Workflows = workflows{definitions.NewWorkflows(t, forgetWorkflow), db}
	return s
}

// forgetWorkflow removes what belongs to a workflow that is deleted.
func forgetWorkflow(w relational.Transaction, workspace, workflow string) error {
	w.(transaction).w.tally.Gone(relational.Key{Workspace: workspace, ID: workflow})
	return triggers.Forget(w, workspace, workflow)
}

// Broken is closed when the disk has failed and the store has stopped. [DB.Err] then says why.
func (db *DB) Broken() <-chan struct{} { return db.writer.brokenCh }

// Err returns nil as long as the store works. After a disk error it returns an error that has [store.ErrBroken] in its
// chain, which is also what every call returns.
func (db *DB) Err() error {
	if err := db.writer.broken.Load(); err != nil {
		return *err
	}
	return nil
}

// Room says that there is too little room to begin executions; nil: there is enough, or nobody knows.
func (db *DB) Room() error { return db.writer.room() }

// look looks after the database when nobody writes. Its files come first: to look at them nobody needs to be waited for.
func (db *DB) look() error {
	if err := db.writer.files.All(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), datadir.WatchEvery)
	defer cancel()
	epoch, err := queryOne(ctx, db, errors.New("the database has lost its mark"), "SELECT epoch FROM commit_mark", func(s scanner) (n int64, err error) { return n, s.Scan(&n) })
	if err == nil && epoch != db.writer.epoch {
		return superseded(epoch, db.writer.epoch)
	}
	switch sqlconn.Code(err) {
	case sqlconn.CodeCorrupt, sqlconn.CodeNotADB, sqlconn.CodeIOError:
		return err
	}
	return nil // a reader that was too slow does no harm: the next look is soon, and a commit looks for itself
}

// Check reads the whole database and says what is wrong with it, if anything. It can take long, and once begun goes on to its end.
func (db *DB) Check(ctx context.Context) ([]string, error) {
	return query(ctx, db, "PRAGMA integrity_check", func(s scanner) (problem string, err error) {
		return problem, s.Scan(&problem)
	})
}

// usable refuses reads of a database that has stopped or was closed.
func (db *DB) usable() error {
	if err := db.Err(); err != nil {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		return errClosed
	}
	return nil
}

var errClosed = errors.New("the store is closed")

// scanner is a row.
type scanner = relational.Scanner

// query is [relational.Query] of this database.
func query[T any](ctx context.Context, db *DB, text string, scan func(scanner) (T, error), args ...any) ([]T, error) {
	return relational.Query(ctx, tables{db}, text, scan, args...)
}

// queryOne is [relational.QueryOne] of this database.
func queryOne[T any](ctx context.Context, db *DB, missing error, text string, scan func(scanner) (T, error), args ...any) (T, error) {
	return relational.QueryOne(ctx, tables{db}, missing, text, scan, args...)
}

// gosched lets the callers that a commit has just woken come back with their next write, so that they share the next
// transaction instead of watching the first of them have one alone. It costs nothing when nobody is there.
func gosched() { runtime.Gosched() }
