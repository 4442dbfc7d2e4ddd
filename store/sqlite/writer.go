package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"tandem/fault"
	"tandem/shortage"
	"tandem/store"
	"tandem/store/relational"
	"tandem/store/relational/auditlog"
	"tandem/store/relational/summaries"
	"tandem/store/sqlite/datadir"
)

// writer is the committer. It has no goroutine of its own: of the callers that wait, one leads. The leader takes the whole
// queue, makes one transaction of it, answers the others, and hands the lead to the first that has come meanwhile. So a
// lone caller pays for no handing over, and many share their transactions.
type writer struct {
	path  string
	check *checkpointer

	brokenCh chan struct{}
	broken   atomic.Pointer[error] // set once, by a leader

	mu    sync.Mutex
	queue []*work
	// leading says that somebody leads: the writing connection and what is named below are the leader's.
	leading bool
	stopped bool
	// idle is closed when the writer is stopped and nobody leads any more.
	idle chan struct{}

	// finishLog is set by the checkpointer: the log has grown long and only a pause of the committer lets it start anew.
	finishLog atomic.Bool
	// emptyLog is set to have the log cut after it was folded, so that nothing of what it held is left in its file.
	emptyLog atomic.Bool
	// logCut says that it was, since somebody has set it to false.
	logCut atomic.Bool
	// commits and works count transactions and what they held.
	commits, works atomic.Uint64

	// epoch is the one that this process has taken, and files are those of the database.
	epoch int64
	files *datadir.Watch
	// acknowledged is the last commit that somebody was told of, foldedTo the last that the database file has by itself.
	acknowledged atomic.Pointer[datadir.Mark]
	foldedTo     atomic.Int64

	// What follows belongs to the leader.

	c *conn
	// mark is how far the database has come, and marks the file beside it. next becomes the mark with the transaction that goes
	// on, if that has written anything.
	mark, next datadir.Mark
	marks      *os.File
	markText   []byte // of the file, to be used again
	// counted is the last commit that the database itself counts.
	counted int64
	wrote   bool
	// removedRows and removedExecutions are what the transaction takes away.
	removedRows, removedExecutions int64
	heads                          summaries.Heads
	// version is that of the database after the last transaction, if it is known: another one says that somebody else has written.
	version      uint32
	versionKnown bool
	// order is how the rows of this transaction are kept that do not begin an execution.
	order *inserts
	// args are those of the statement that inserts rows, to be used again.
	args  []driver.Value
	same  relational.SameTexts
	tally summaries.Tally
	// kept is told of transactions that may have changed what is kept at hand.
	kept *generations
	// logged estimates what has gone to the log since the checkpointer was last told.
	logged int
	// entered is what the last entry of the audit log had.
	entered auditlog.Last
	// unchanged is set by a part of a transaction that has changed nothing, so that nothing is entered in the audit log.
	unchanged bool

	minFree   uint64
	freeSpace func() (uint64, error)
	freeUntil time.Time // the answer below holds so long
	refused   error     // why no new execution is accepted; nil: they are
	// beforeCommit is for tests: an error from it counts as one of the disk.
	beforeCommit func() error
}

// work is one caller's part of a transaction. Its function runs on the committer and may run twice, when the first
// transaction could not be kept for another's sake. It either refuses before it has written anything or writes
// everything.
type work struct {
	run  func(*writer) error
	err  error
	turn chan turn // gets one value
}

// turn is what a caller that waits is told.
type turn bool

const (
	decided turn = false // its work is done, or refused
	lead    turn = true  // it is the leader now
)

// maxBatch bounds a transaction, so that one answer does not wait for ten thousand rows.
const maxBatch = 2048

// Between these estimates of bytes and commits the log is folded into the database.
const (
	checkpointBytes   = 4 << 20
	checkpointCommits = 1000
)

func newWriter(path string, check *checkpointer, minFree uint64, free func() (uint64, error)) (*writer, error) {
	// The log is checkpointed by the checkpointer, never by a commit; after a long one its file is cut. What is removed is overwritten, and
	// what would replace an entry of the audit log is refused like what removes one.
	c, err := openConn(path, "synchronous(FULL)", "wal_autocheckpoint(0)", fmt.Sprintf("journal_size_limit(%d)", datadir.LogLimit), "cache_size(-8192)", "secure_delete(ON)", "recursive_triggers(ON)")
	if err != nil {
		return nil, err
	}
	w := &writer{
		path: path, check: check, c: c,
		idle: make(chan struct{}), brokenCh: make(chan struct{}),
		minFree: minFree, freeSpace: free,
	}
	// A database that cannot be written to says so now.
	for _, text := range []string{"BEGIN IMMEDIATE", "COMMIT"} {
		if _, err := c.exec(text); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return w, nil
}

// stop lets everything that was accepted be written, then closes the connection.
func (w *writer) stop() error {
	w.mu.Lock()
	if !w.stopped {
		w.stopped = true
		if !w.leading {
			close(w.idle)
		}
	}
	w.mu.Unlock()
	<-w.idle
	return errors.Join(w.countAll(), w.c.Close(), w.closeMark())
}

// commitNext runs a function in the next transaction and returns when that is on disk. A context that has ended keeps it from
// being accepted; later it makes no difference, since nobody could say any more whether it was written.
func (w *writer) commitNext(ctx context.Context, run func(*writer) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := w.broken.Load(); err != nil {
		return *err
	}
	k := &work{run: run}
	w.mu.Lock()
	if w.stopped {
		w.mu.Unlock()
		return errClosed
	}
	w.queue = append(w.queue, k)
	if w.leading {
		k.turn = make(chan turn, 1)
		w.mu.Unlock()
		if <-k.turn == decided {
			return k.err
		}
	} else {
		w.leading = true
		w.mu.Unlock()
	}
	w.lead(k)
	return k.err
}

// lead commits what is waiting, which begins with the leader's own work, and hands the lead on.
func (w *writer) lead(own *work) {
	w.mu.Lock()
	batch := w.queue
	w.queue = nil
	if len(batch) > maxBatch {
		batch, w.queue = batch[:maxBatch:maxBatch], batch[maxBatch:]
	}
	w.mu.Unlock()
	w.commit(batch)
	for _, k := range batch {
		if k != own {
			k.turn <- decided
		}
	}
	if len(batch) > 1 {
		gosched() // those who were answered may come back in time for the next transaction
	}
	w.maintain()
	w.handOn()
}

// maintain does what only the leader can, between two transactions.
func (w *writer) maintain() {
	if w.emptyLog.CompareAndSwap(true, false) && w.broken.Load() == nil {
		w.cutLog()
	}
	if w.finishLog.CompareAndSwap(true, false) && w.broken.Load() == nil {
		// Without room the log grows instead: what is in it is safe there.
		switch _, all, err := checkpoint(w.c.Conn); {
		case err != nil && !datadir.IsFull(err):
			w.fail(fmt.Errorf("checkpoint: %w", err))
		case err == nil && all:
			w.foldedTo.Store(w.mark.Commits)
		}
	}
}

// handOn makes the first in the queue the leader.
func (w *writer) handOn() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) > 0 {
		w.queue[0].turn <- lead
		return
	}
	w.leading = false
	if w.stopped {
		close(w.idle)
	}
}

// commit makes one transaction of a batch and leaves its answer in each part. A panic in it is a defect that leaves the
// transaction in nobody knows what state: the store stops, and everybody is told, since who called may catch it.
func (w *writer) commit(batch []*work) {
	defer func() {
		if p := recover(); p != nil {
			err := w.fail(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
			for _, k := range batch {
				k.err = err
			}
		}
	}()
	if err := w.broken.Load(); err != nil {
		for _, k := range batch {
			k.err = *err
		}
		return
	}
	err := w.transact(batch, false)
	if again := (*spoiled)(nil); errors.As(err, &again) {
		// Somebody's part failed halfway. With a savepoint around each, only that one is undone.
		err = w.transact(batch, true)
	}
	short := shortage.Is(err) // the log could not be looked at, so nothing was written
	if err == nil && w.wrote {
		err = w.attest()
	}
	if err == nil {
		w.commits.Add(1)
		w.works.Add(uint64(len(batch)))
		w.logged += checkpointBytes/checkpointCommits + len(batch)*256
		if w.logged >= checkpointBytes {
			w.logged = 0
			w.check.signal()
		}
		return
	}
	switch {
	case datadir.IsFull(err):
		err = datadir.Full(w.path, err)
	case short:
		err = shortage.Or(err, fault.New(fault.Internal, "nothing was written"))
	default:
		err = w.fail(err)
	}
	for _, k := range batch {
		k.err = err
	}
}

// spoiled says that a transaction cannot be kept because one part of it stopped after it had written.
type spoiled struct{ err error }

func (e *spoiled) Error() string {
	return "a part of the transaction stopped halfway: " + e.err.Error()
}

// transact runs a batch. An error means that nothing of it was kept. With care each part has a savepoint, so that a part
// that fails is undone alone.
func (w *writer) transact(batch []*work, care bool) error {
	if _, err := w.c.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if err := w.files.Begin(); err != nil {
		return w.rollback(err)
	}
	defer w.files.End()
	if err := w.alone(); err != nil {
		return w.rollback(err)
	}
	w.heads.Begin()
	w.tally.Begin()
	w.order = orderFor(len(batch))
	w.wrote, w.removedRows, w.removedExecutions = false, 0, 0
	if err := w.runAll(batch, care); err != nil {
		return w.rollback(err)
	}
	if err := w.settle(); err != nil {
		return w.rollback(err)
	}
	if err := w.number(); err != nil {
		return w.rollback(err)
	}
	if w.beforeCommit != nil {
		if err := w.beforeCommit(); err != nil {
			return w.rollback(err)
		}
	}
	if _, err := w.c.exec("COMMIT"); err != nil {
		return w.rollback(err)
	}
	w.heads.Commit()
	if w.next.Commits > w.mark.Commits && w.next.Witness == (datadir.Witness{}) {
		w.counted = w.next.Commits
	}
	w.mark = w.next
	w.kept.noteChange(w.c.changed)
	w.c.changed = 0
	version, err := w.c.Version()
	w.version, w.versionKnown = version, err == nil
	return err
}

func (w *writer) runAll(batch []*work, care bool) error {
	for _, k := range batch {
		if care {
			if _, err := w.c.exec("SAVEPOINT part"); err != nil {
				return err
			}
		}
		writes, mark, moves := w.c.writes, w.heads.Mark(), w.tally.Mark()
		removedRows, removedExecutions := w.removedRows, w.removedExecutions
		k.err = k.run(w)
		w.wrote = w.wrote || w.c.writes != writes
		if k.err != nil {
			db, isDB := errors.AsType[*dbError](k.err)
			if isDB && !db.harmless() {
				return k.err
			}
			if !care && (isDB || w.c.writes != writes) {
				return &spoiled{k.err}
			}
			if isDB {
				k.err = fault.New(fault.Invalid, "the database does not take this record; it may be too large").WithCause(db)
			}
			if care {
				w.heads.Rewind(mark)
				w.tally.Rewind(moves)
				w.removedRows, w.removedExecutions = removedRows, removedExecutions
				if _, err := w.c.exec("ROLLBACK TO part"); err != nil {
					return err
				}
			}
		}
		if care {
			if _, err := w.c.exec("RELEASE part"); err != nil {
				return err
			}
		}
	}
	return nil
}

// rollback undoes a transaction. SQLite may have done so by itself.
func (w *writer) rollback(err error) error {
	w.heads.Rewind(0)
	if _, undo := w.c.exec("ROLLBACK"); undo != nil && !datadir.IsFull(err) && !errors.As(err, new(*spoiled)) {
		return errors.Join(err, undo)
	}
	return err
}

// fail stops the store for good: after a failed write or fsync nobody knows what the disk has, and what goes to files without
// a name, or into a database that another process has taken over, is lost.
func (w *writer) fail(cause error) error {
	err, known := errors.AsType[*fault.Error](cause)
	if !known || !errors.Is(cause, store.ErrBroken) {
		err = fault.New(fault.Internal, "the store has stopped after a disk error; check the disk, then restart to recover from what is on it").
			WithCause(fmt.Errorf("%w: %w", store.ErrBroken, cause))
	}
	if final := error(err); w.broken.CompareAndSwap(nil, &final) {
		close(w.brokenCh)
	}
	return *w.broken.Load()
}

// roomForStart refuses new executions when the disk is nearly full. It looks at most once a second.
func (w *writer) roomForStart() error {
	if now := time.Now(); now.After(w.freeUntil) {
		w.freeUntil = now.Add(time.Second)
		w.refused = w.room()
	}
	return w.refused
}

// room says that the disk is nearly full.
func (w *writer) room() error {
	free, err := w.freeSpace()
	if err == nil && free < w.minFree {
		return datadir.Full(w.path, fmt.Errorf("%d bytes are free, and the last %d are kept for executions that run already", free, w.minFree))
	}
	return nil // what is not known is not refused: a full disk also shows when it is written to
}

// finishCheckpoint is called by the checkpointer. Who leads does it; if nobody does, the checkpointer leads for it.
func (w *writer) finishCheckpoint() {
	w.finishLog.Store(true)
	w.mu.Lock()
	if w.leading || w.stopped {
		w.mu.Unlock()
		return
	}
	w.leading = true
	w.mu.Unlock()
	w.maintain()
	w.handOn()
}
