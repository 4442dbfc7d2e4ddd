// Package sqlite keeps everything of Tandem in one directory: a SQLite database in WAL mode at full durability, and
// beside it the blobs as files. One process owns the directory.
//
// All writes go through the committer (writer.go), which makes one transaction, and so one fsync, of whatever is waiting: a
// lone writer waits for nobody, five hundred share the cost. Of those who wait one leads, and owns the writing connection
// and the heads of the journals while it does. Reads have a small pool of connections of their own and never wait for a
// writer.
//
// Nothing that was acknowledged vanishes unnoticed (docs/decisions/0010): a mark beside the database says how far it had come
// (mark.go), a start compares the two (loss.go), every transaction makes sure that no later process has taken the database over,
// and files that are removed or replaced stop the store (files.go).
//
// Goroutines: [Open] starts two, the checkpointer (checkpoint.go), which owns a connection to move pages from the log into
// the database, and the watcher (files.go), which looks after its files. [DB.Close] ends them and waits for them, and for
// those who write.
//
// It implements the seam of package store and is no place for decisions about workflows. Only the wiring of an instance
// imports it.
package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	driver "modernc.org/sqlite"

	"tandem/fault"
	"tandem/store"
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

// DatabaseFile is the name of the database in a data directory: what is there when the directory is one.
const DatabaseFile = "tandem.db"

// InUse is the name of the fact that marks the refusal of a directory which another process has open.
const InUse = "in_use"

// Names in the data directory.
const (
	databaseFile = DatabaseFile
	lockFile     = "tandem.lock"
	blobDir      = "blobs"
)

// DB is an open data directory. It is safe for concurrent use.
type DB struct {
	dir    string
	lock   *os.File
	marks  *os.File // the mark beside the database
	root   *os.Root // for the blobs
	writer *writer
	check  *checkpointer
	watch  *watcher
	read   *readers
	// vectors keeps those of memories at hand, tokens those of requests, headings what starts want to know of workflows.
	vectors  vectorCache
	kept     generations
	tokens   tokenCache
	headings headingCache

	mu     sync.Mutex
	synced map[string]bool // directories of blobs whose way from the root is durable
	parts  knownParts      // of blobs
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
	db := &DB{dir: dir, synced: map[string]bool{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, db.release())
		}
	}()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, unusable(dir, err)
	}
	if db.lock, err = lockDir(dir); err != nil {
		return nil, err
	}
	path := realPath(dir)
	loss, err := findLoss(ctx, dir, path, o.AcceptLoss)
	if err != nil {
		return nil, err
	}
	m, err := migrate(ctx, dir, path, loss)
	if err != nil {
		return nil, unusable(dir, err)
	}
	if _, err := os.Stat(path + logSuffix); errors.Is(err, os.ErrNotExist) {
		m.folded = m.commits // the end of the migration has folded the log
	}
	if err := db.openBeside(); err != nil {
		return nil, unusable(dir, err)
	}
	if err := db.startWriter(ctx, path, cmp.Or(o.MinFree, defaultMinFree), m); err != nil {
		return nil, unusable(dir, err)
	}
	readers := o.Readers
	if readers <= 0 {
		readers = 4
	}
	db.read = newReaders(path, readers)
	db.check.start()
	db.watch = startWatcher(db.look, db.writer.fail)
	return db, nil
}

// defaultMinFree is how much of the disk stays free when nothing else is said.
const defaultMinFree = 32 << 20

// findLoss says what the database lacks that was acknowledged before; empty: nothing. A loss that is not accepted is an error, as is a
// database that has gone.
func findLoss(ctx context.Context, dir, path string, accept bool) (loss string, err error) {
	there, err := hasDatabase(dir)
	if err != nil {
		return "", err
	}
	if err := makePrivate(dir, path); err != nil {
		return "", unusable(dir, err)
	}
	if !there {
		return "", nil
	}
	f, _, loss, err := examine(ctx, dir, path)
	switch {
	case err != nil:
		return "", unusable(dir, err)
	case f.version == 0:
		return loss, databaseGone(dir, "has nothing in it", false)
	case loss != "" && !accept:
		return "", lossRefused(dir, loss)
	}
	return loss, nil
}

// openBeside opens what is kept beside the database: the mark, and the large values.
func (db *DB) openBeside() (err error) {
	dir := filepath.Join(db.dir, blobDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := private(dir, 0o700); err != nil {
		return err
	}
	if db.marks, err = openMark(db.dir); err != nil {
		return err
	}
	if err := syncPath(db.dir); err != nil { // the names made above
		return err
	}
	if db.root, err = os.OpenRoot(dir); err != nil {
		return err
	}
	return (blobs{db}).sweep()
}

// startWriter starts the committer, and what folds the log of the database. A process that had the directory open before writes nothing more.
func (db *DB) startWriter(ctx context.Context, path string, minFree uint64, m mark) (err error) {
	if db.check, err = newCheckpointer(path); err != nil {
		return err
	}
	if db.writer, err = newWriter(path, db.check, minFree, func() (uint64, error) { return freeSpace(db.dir) }); err != nil {
		return err
	}
	if err := db.writer.keepMark(m, db.marks); err != nil {
		return err
	}
	db.writer.kept = &db.kept
	db.check.finish, db.check.acknowledged, db.check.folded = db.writer.finishCheckpoint, db.writer.lastAcknowledged, db.writer.keepFolded
	return db.writer.inTransaction(ctx, (*writer).forfeit)
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
		db.watch.stop()
	}
	if db.check != nil {
		errs = append(errs, db.check.stop())
	}
	if db.read != nil {
		errs = append(errs, db.read.close())
	}
	if db.writer != nil {
		errs = append(errs, db.writer.stop())
	}
	if db.marks != nil {
		errs = append(errs, db.marks.Close())
	}
	if db.root != nil {
		errs = append(errs, db.root.Close())
	}
	if db.lock != nil {
		errs = append(errs, unlockDir(db.lock))
	}
	return errors.Join(errs...)
}

// Stores returns the seams that the database implements: all of them.
func (db *DB) Stores() store.Stores {
	return store.Stores{
		Journal:      journal{db},
		Inbox:        inbox{db},
		Timers:       timers{db},
		Executions:   executions{db},
		Logs:         logs{db},
		Ledger:       ledger{db},
		Keys:         keys{db},
		Workflows:    workflows{db},
		Templates:    templates{db},
		Blobs:        blobs{db},
		Workspaces:   workspaces{db},
		Users:        users{db},
		Tokens:       tokens{db},
		Credentials:  credentials{db},
		Memories:     memories{db},
		Profiles:     profiles{db},
		Budgets:      budgets{db},
		Interactions: interactions{db},
		MCPServers:   mcpServers{db},
		Triggers:     triggers{db},
	}
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

// look looks after the database when nobody writes. Its files come first: to look at them nobody needs to be waited for.
func (db *DB) look() error {
	if err := db.writer.files.all(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), watchEvery)
	defer cancel()
	epoch, err := queryOne(ctx, db, errors.New("the database has lost its mark"), "SELECT epoch FROM commit_mark", func(s scanner) (n int64, err error) { return n, s.Scan(&n) })
	switch e, ok := errors.AsType[*driver.Error](err); {
	case err == nil && epoch != db.writer.epoch:
		return superseded(epoch, db.writer.epoch)
	case ok && (e.Code()&0xff == codeCorrupt || e.Code()&0xff == codeNotADB || e.Code()&0xff == codeIOError):
		return err
	}
	return nil // a reader that was too slow is no harm: the next look is soon, and a commit looks for itself
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

// syncPath makes the names in a directory durable.
func syncPath(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(syncDir(d), d.Close())
}

// scanner is a row.
type scanner interface{ Scan(...any) error }

// query reads all rows of a statement. The text must be one of a bounded number: it stays prepared.
func query[T any](ctx context.Context, db *DB, text string, scan func(scanner) (T, error), args ...any) (all []T, err error) {
	if err := db.usable(); err != nil {
		return nil, err
	}
	err = db.read.use(ctx, func(c *conn) error {
		all, err = readAll(ctx, c, text, scan, args)
		return err
	})
	return all, err
}

// readAll is query on a connection.
func readAll[T any](ctx context.Context, c *conn, text string, scan func(scanner) (T, error), args []any) (all []T, err error) {
	return readInto(ctx, c, text, scan, args, nil)
}

// readInto is readAll into a list that may have room already.
func readInto[T any](ctx context.Context, c *conn, text string, scan func(scanner) (T, error), args []any, all []T) ([]T, error) {
	err := c.each(ctx, text, args, func(s scanner) (bool, error) {
		one, err := scan(s)
		if err != nil {
			return false, readError(ctx, err)
		}
		all = append(all, one)
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// queryOne reads one row; without any it returns the given error.
func queryOne[T any](ctx context.Context, db *DB, missing error, text string, scan func(scanner) (T, error), args ...any) (T, error) {
	all, err := query(ctx, db, text, scan, args...)
	if err == nil && len(all) == 0 {
		err = missing
	}
	if err != nil {
		var none T
		return none, err
	}
	return all[0], nil
}

func readError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("read the database: %w", err)
}

// notFound names what was looked for.
func notFound(what, id string) error {
	return fault.Newf(fault.NotFound, "there is no %s %q in this workspace", what, id)
}

// dsn is the address of the database with settings for each connection. Transactions of writers are immediate: they wait
// for the lock at their beginning, where waiting is possible.
func dsn(path, lock string, pragmas ...string) string {
	q := url.Values{"_txlock": {lock}, "_pragma": append([]string{"busy_timeout(10000)"}, pragmas...)}
	return "file:" + (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath() + "?" + q.Encode()
}

// unusable says in plain words why a data directory cannot be used, where the reason is a usual one.
func unusable(dir string, err error) error {
	if e, ok := errors.AsType[*fault.Error](err); ok {
		return e
	}
	remedy := ""
	switch sqlite, ok := errors.AsType[*driver.Error](err); {
	case errors.Is(err, os.ErrPermission), isReadOnly(err), ok && (sqlite.Code()&0xff == codeReadOnly || sqlite.Code()&0xff == codeCantOpen || sqlite.Code()&0xff == codePerm):
		remedy = fmt.Sprintf("; user id %d must be able to write there, or choose another directory", os.Geteuid())
	case isFull(err):
		remedy = "; the disk is full: make room or choose another directory"
		err = errors.Join(store.ErrFull, err)
	case ok && (sqlite.Code()&0xff == codeCorrupt || sqlite.Code()&0xff == codeNotADB):
		remedy = "; the database is damaged: restore it from a copy"
	}
	return fmt.Errorf("open data directory %q: %w%s", dir, err, remedy)
}

// Primary result codes of SQLite.
const (
	codePerm       = 3
	codeReadOnly   = 8
	codeIOError    = 10
	codeCorrupt    = 11
	codeFull       = 13
	codeCantOpen   = 14
	codeTooBig     = 18
	codeConstraint = 19
	codeMismatch   = 20
	codeNotADB     = 26
)

// isFull says that there was no room for a write, which then did not happen.
func isFull(err error) bool {
	if e, ok := errors.AsType[*driver.Error](err); ok && e.Code()&0xff == codeFull {
		return true
	}
	return noSpace(err)
}

// gosched lets the callers that a commit has just woken come back with their next write, so that they share the next
// transaction instead of watching the first of them have one alone. It costs nothing when nobody is there.
func gosched() { runtime.Gosched() }
