package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"tandem/fault"
	"tandem/store"
)

// writer is the committer: one goroutine that owns the writing connection. Callers queue their work under mu and wait;
// the committer takes the whole queue, makes one transaction of it, and answers.
type writer struct {
	path  string
	check *checkpointer
	wake  chan struct{} // has room for one: there is work, or it is time to stop
	done  chan struct{} // closed when the goroutine has ended

	brokenCh chan struct{}
	broken   atomic.Pointer[error] // set once, by the committer

	mu      sync.Mutex
	queue   []*work
	started bool
	stopped bool

	// finishLog is set by the checkpointer: the log has grown long and only a pause of the committer lets it start anew.
	finishLog atomic.Bool
	// commits and works count transactions and what they held.
	commits, works atomic.Uint64

	// What follows belongs to the goroutine.

	c     *conn
	heads heads
	// spare is the previous queue, to be filled again.
	spare []*work
	// logged estimates what has gone to the log since the checkpointer was last told.
	logged int

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
	done chan struct{} // gets one value when it is decided
}

// maxBatch bounds a transaction, so that one answer does not wait for ten thousand rows.
const maxBatch = 2048

// Between these estimates of bytes and commits the log is folded into the database.
const (
	checkpointBytes   = 4 << 20
	checkpointCommits = 1000
)

func newWriter(path string, check *checkpointer, minFree uint64, free func() (uint64, error)) (*writer, error) {
	// The log is checkpointed by the checkpointer, never by a commit; after a long one its file is cut.
	c, err := openConn(path, "synchronous(FULL)", "wal_autocheckpoint(0)", "journal_size_limit(67108864)", "cache_size(-8192)")
	if err != nil {
		return nil, err
	}
	w := &writer{
		path: path, check: check, c: c,
		wake: make(chan struct{}, 1), done: make(chan struct{}), brokenCh: make(chan struct{}),
		minFree: minFree, freeSpace: free,
	}
	// A database that cannot be written to says so now.
	for _, text := range []string{"BEGIN IMMEDIATE", "COMMIT"} {
		if _, err := c.exec(text); err != nil {
			return nil, errors.Join(err, c.close())
		}
	}
	return w, nil
}

func (w *writer) start() {
	w.started = true
	go w.loop()
}

// stop lets the committer finish what was accepted, waits for it and closes its connection.
func (w *writer) stop() error {
	w.mu.Lock()
	w.stopped = true
	w.mu.Unlock()
	if w.started {
		w.signal()
		<-w.done
	}
	return w.c.close()
}

func (w *writer) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// do runs a function in the next transaction and returns when that is on disk. A context that has ended keeps it from
// being accepted; later it makes no difference, since nobody could say any more whether it was written.
func (w *writer) do(ctx context.Context, run func(*writer) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := w.broken.Load(); err != nil {
		return *err
	}
	k := &work{run: run, done: make(chan struct{}, 1)}
	w.mu.Lock()
	if w.stopped {
		w.mu.Unlock()
		return errClosed
	}
	w.queue = append(w.queue, k)
	first := len(w.queue) == 1
	w.mu.Unlock()
	if first {
		w.signal()
	}
	<-k.done
	return k.err
}

func (w *writer) loop() {
	defer close(w.done)
	for {
		w.mu.Lock()
		batch := w.queue
		w.queue, w.spare = w.spare[:0], nil
		stopped := w.stopped
		w.mu.Unlock()
		switch {
		case len(batch) > 0:
			for rest := batch; len(rest) > 0; {
				n := min(len(rest), maxBatch)
				w.commit(rest[:n])
				for _, k := range rest[:n] {
					k.done <- struct{}{}
				}
				rest = rest[n:]
			}
			clear(batch)
			w.spare = batch
			gosched()
		case stopped:
			return
		default:
			w.spare = batch
			<-w.wake
		}
		if w.finishLog.CompareAndSwap(true, false) && w.broken.Load() == nil {
			// Without room the log grows instead: what is in it is safe there.
			if _, err := checkpoint(w.c); err != nil && !isFull(err) {
				w.fail(fmt.Errorf("checkpoint: %w", err))
			}
		}
	}
}

// commit makes one transaction of a batch and leaves its answer in each part.
func (w *writer) commit(batch []*work) {
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
	if isFull(err) {
		err = full(w.path, err)
	} else {
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
	w.heads.begin()
	if err := w.runAll(batch, care); err != nil {
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
	w.heads.commit()
	return nil
}

func (w *writer) runAll(batch []*work, care bool) error {
	for _, k := range batch {
		if care {
			if _, err := w.c.exec("SAVEPOINT part"); err != nil {
				return err
			}
		}
		writes, mark := w.c.writes, w.heads.mark()
		k.err = k.run(w)
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
				w.heads.rewind(mark)
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
	w.heads.rewind(0)
	if _, undo := w.c.exec("ROLLBACK"); undo != nil && !isFull(err) && !errors.As(err, new(*spoiled)) {
		return errors.Join(err, undo)
	}
	return err
}

// fail stops the store for good: after a failed write or fsync nobody knows what the disk has.
func (w *writer) fail(cause error) error {
	var err error = fault.New(fault.Internal, "the store has stopped after a disk error; check the disk, then restart to recover from what is on it").
		WithCause(fmt.Errorf("%w: %w", store.ErrBroken, cause))
	if w.broken.CompareAndSwap(nil, &err) {
		close(w.brokenCh)
	}
	return *w.broken.Load()
}

// full is the error of a write for which there was no room.
func full(path string, cause error) error {
	e := fault.Newf(fault.Internal, "there is no room left on the disk of %q; make room and try again", path).
		WithCause(fmt.Errorf("%w: %w", store.ErrFull, cause))
	e.Retryable = true
	return e
}

// roomForStart refuses new executions when the disk is nearly full. It looks at most once a second.
func (w *writer) roomForStart() error {
	if now := time.Now(); now.After(w.freeUntil) {
		w.freeUntil = now.Add(time.Second)
		w.refused = nil
		free, err := w.freeSpace()
		if err == nil && free < w.minFree {
			w.refused = full(w.path, fmt.Errorf("%d bytes are free, and the last %d are kept for executions that run already", free, w.minFree))
		}
		// Not knowing is no reason to refuse: a full disk also shows when it is written to.
	}
	return w.refused
}

// finishCheckpoint is called by the checkpointer.
func (w *writer) finishCheckpoint() {
	w.finishLog.Store(true)
	w.signal()
}
