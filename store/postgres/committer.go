package postgres

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"tandem/store"
	"tandem/store/relational"
	"tandem/store/relational/summaries"
)

// committer is the one that writes. It makes one transaction of whatever waits, so that many share the cost of a commit, and of one
// message to those who listen (news.go). What is done in a transaction is done as by the only writer there is: this process owns the
// database (epoch.go), and all its records are written here; or transactions of all processes that share it (member.go) come one after
// the other. Large values are written beside it: nothing looks at them before it changes them.
//
// It has a goroutine, which [DB.Close] ends when everything that was accepted has been decided.
type committer struct {
	db *DB

	mu     sync.Mutex
	queue  []*work
	closed bool
	// away says why nothing is accepted: the outcome of a commit is being looked for.
	away error
	wake chan struct{}
	// closing is closed when the database is, done when nothing is decided any more.
	closing, done chan struct{}
	// commits and works count transactions and what they held.
	commits, works atomic.Uint64

	// What follows belongs to the goroutine.

	// session and number are what the database is told with a commit: which connection it is by, and how many there were before it.
	session, number int64
	// doubted are those by which a later session may have been begun, and the answer was lost: the next transaction begins with another.
	doubted []backend
	// numbers are those that the next executions get.
	numbers []int64
	heads   summaries.Heads
	tally   summaries.Tally
	same    relational.SameTexts
}

// work is one caller's part of a transaction: a function, or rows for a journal. It may be done twice, when the first transaction could
// not be kept.
type work struct {
	run func(*transaction) error
	// key and rows are what is appended, unless there is a function.
	key  relational.Key
	rows []*store.Append
	// entries are written to the audit log with it, unless it has changed nothing.
	entries []*store.PendingEntry
	entered bool
	err     error
	done    chan struct{}
}

const (
	// maxBatch bounds a transaction, so that one answer does not wait for ten thousand rows.
	maxBatch = 1024
	// commitTimeout is how long a transaction may take. Then its connection is given up, and what became of it is looked for.
	commitTimeout = 2 * time.Minute
)

var errClosed = errors.New("the store is closed") // read-only

func newCommitter(db *DB) *committer {
	c := &committer{db: db, wake: make(chan struct{}, 1), closing: make(chan struct{}), done: make(chan struct{})}
	go c.loop() // it ends with close
	return c
}

// submit has a work done and returns when it is decided. A context that has ended keeps it from being accepted; later it makes no
// difference, since nobody could say any more whether it was written.
func (c *committer) submit(ctx context.Context, w *work) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := c.db.mayWrite(); err != nil {
		return err
	}
	w.done = make(chan struct{})
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return errClosed
	}
	if c.away != nil {
		defer c.mu.Unlock()
		return c.away
	}
	c.queue = append(c.queue, w)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
	<-w.done
	if w.err == nil && w.entered {
		for _, e := range w.entries {
			e.Written()
		}
	}
	return w.err
}

// turnAway refuses those who wait, and all who come until it is called without an error.
func (c *committer) turnAway(err error) {
	c.mu.Lock()
	waiting := c.queue
	c.away = err
	if err != nil {
		c.queue = nil
	}
	c.mu.Unlock()
	if err == nil {
		return
	}
	refuse(waiting, err)
	for _, w := range waiting {
		close(w.done)
	}
}

// close lets what was accepted be decided.
func (c *committer) close() {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		close(c.closing)
	}
	c.mu.Unlock()
	<-c.done
}

func (c *committer) loop() {
	defer close(c.done)
	for {
		c.mu.Lock()
		batch := c.queue
		c.queue = nil
		if len(batch) > maxBatch {
			batch, c.queue = batch[:maxBatch:maxBatch], batch[maxBatch:]
		}
		closed := c.closed
		c.mu.Unlock()
		if len(batch) == 0 {
			if closed {
				return
			}
			select {
			case <-c.wake:
			case <-c.closing:
			}
			continue
		}
		c.commit(batch)
		for _, w := range batch {
			close(w.done)
		}
		if len(batch) > 1 {
			runtime.Gosched() // those who were answered may come back in time for the next transaction
		}
	}
}

// commit decides a batch. A panic in it is a defect that leaves nobody knowing what state: everybody is told, and nothing is written
// any more.
func (c *committer) commit(batch []*work) {
	defer func() {
		if p := recover(); p != nil {
			err := broken(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
			c.db.stop(err)
			refuse(batch, err)
		}
	}()
	c.decide(batch)
}

func refuse(batch []*work, err error) {
	for _, w := range batch {
		w.err = err
	}
}

// decide makes one transaction of a batch, or one of each part when they spoil each other, and leaves its answer in each.
func (c *committer) decide(batch []*work) {
	err, begun := c.db.Err(), time.Now()
	for n := 0; err == nil && n < maxRepeats; n++ {
		if err = c.transact(batch); err == nil {
			return
		}
		if codeOf(err) == lockTimeout && c.db.shared { // it is another's turn
			if time.Since(begun) > commitTimeout {
				err = unavailable(err)
				break
			}
			err = c.db.endTurn()
			n--
			continue
		}
		if lost := (*doubtful)(nil); errors.As(err, &lost) {
			committed, unresolved := c.resolve(lost)
			if committed {
				c.count(len(batch))
				return
			}
			if err = unresolved; err == nil && n == maxRepeats-1 {
				err = unavailable(lost.err)
			}
			continue // unless it is not known, nothing was written, and there is a connection again
		}
		if spoils(err) && len(batch) > 1 {
			for i := range batch {
				c.decide(batch[i : i+1])
			}
			return
		}
		if forAnothersSake(err) && n < maxRepeats-1 {
			<-time.After(time.Duration(n+1) * 5 * time.Millisecond)
			err = nil
		}
	}
	for _, w := range batch {
		w.err = c.db.inWords(w, err)
	}
}

// spoiled says that a transaction cannot be kept because one part of it refused after something of it had been sent.
type spoiled struct{ err error }

func (e *spoiled) Error() string { return e.err.Error() }

// transact runs a batch. An error means that nothing of it is known to be kept.
func (c *committer) transact(batch []*work) (err error) {
	if len(c.doubted) > 0 {
		if err := c.settleDoubt(); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), commitTimeout)
	defer cancel()
	conn, err := c.db.pool.Acquire(ctx)
	if err != nil {
		return unavailable(err)
	}
	defer conn.Release() // one that is in the midst of a transaction is closed by this
	t := &transaction{db: c.db, c: c, ctx: ctx, conn: conn.Conn()}
	t.addStatement(beginFenced)
	if c.db.member != 0 {
		t.addStatement(`SELECT begin_member_commit($1, $2, $3, $4, $5)`, epochLock, c.db.version, c.db.member, c.session, c.number)
	} else {
		t.addStatement(`SELECT begin_commit($1, $2, $3, $4, $5)`, epochLock, c.db.version, c.db.epoch, c.session, c.number)
	}
	if c.db.shared { // what is known may have been changed by another process
		c.heads.Empty()
		c.tally.Doubt()
	}
	c.heads.Begin()
	c.tally.Begin()
	defer func() { err = c.abandon(t, err) }()
	if err := c.runAll(t, batch); err != nil {
		return err
	}
	if t.queued == 0 {
		if _, err := t.flush(); err != nil { // what refuses must know that it owns the database
			return err
		}
		c.heads.Rewind(0)
		_, err := conn.Exec(ctx, `ROLLBACK`)
		return err
	}
	if err := c.tally.Settle(t); err != nil {
		return err
	}
	t.gather()
	c.announce(t, batch)
	t.addStatement(`COMMIT`)
	t.ending = true
	tag, err := t.flush()
	if err == nil && tag.String() != "COMMIT" {
		err = fmt.Errorf("the transaction ended with %s", tag)
	}
	if err == nil {
		c.heads.Commit()
		c.count(len(batch))
	}
	return err
}

// abandon ends a transaction that is not kept. When its connection is lost, nobody knows what became of it.
func (c *committer) abandon(t *transaction, err error) error {
	if err == nil {
		return nil
	}
	c.heads.Rewind(0)
	if !lostConnection(err) {
		if _, end := t.conn.Exec(t.ctx, `ROLLBACK`); end == nil {
			return err
		}
	}
	return &doubtful{err, backendOf(t.conn), t.ending && !pgconn.SafeToRetry(err)}
}

// count notes that a transaction is on disk.
func (c *committer) count(works int) {
	c.number++
	c.db.room.Store(nil)
	c.commits.Add(1)
	c.works.Add(uint64(works))
}

// runAll runs the parts of a transaction: first those that look before they write, then the appends, which know beforehand what they
// have to look at.
func (c *committer) runAll(t *transaction, batch []*work) error {
	var appends []*work
	for _, w := range batch {
		w.err, w.entered = nil, false
		if w.run == nil {
			appends = append(appends, w)
			continue
		}
		if err := c.part(t, w, w.run); err != nil {
			return err
		}
		t.gather() // the next may remove an execution with its rows
	}
	if len(appends) == 0 {
		return nil
	}
	found, err := c.lookUp(t, appends)
	if err != nil {
		return err
	}
	for _, w := range appends {
		if err := c.part(t, w, func(t *transaction) error { return c.append(t, w, found) }); err != nil {
			return err
		}
	}
	return nil
}

// part runs one part. One that refuses is undone if nothing of it has been sent, and spoils the transaction otherwise.
func (c *committer) part(t *transaction, w *work, run func(*transaction) error) error {
	before, heads, moves := t.mark(), c.heads.Mark(), c.tally.Mark()
	t.unchanged = false
	err := run(t)
	if err == nil && len(w.entries) > 0 && !t.unchanged {
		w.entered = true
		err = enter(t, w.entries)
	}
	if err == nil {
		return nil
	}
	if server := (*serverError)(nil); errors.As(err, &server) {
		return err
	}
	if !t.undo(before) {
		return &spoiled{err}
	}
	c.heads.Rewind(heads)
	c.tally.Rewind(moves)
	w.err = err
	return nil
}
