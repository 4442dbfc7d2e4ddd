package hosttest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"sync"
	"time"

	"tandem/identity"
	"tandem/store"
)

// Blow is what befalls a process at one of its writes.
type Blow struct {
	// Write is the number of the write, from 1; 0: none, the process lives.
	Write int
	How   How
	// Writes is how many writes find the disk full, with Full.
	Writes int
}

// How a process is struck.
type How string

// The ways.
const (
	Before How = "before" // it dies before the write is on disk
	After  How = "after"  // the write is on disk, and nobody was told
	Full   How = "full"   // there is no room for a while
	Broken How = "broken" // the disk answers nothing any more
)

func (b Blow) String() string { return fmt.Sprintf("%s write %d", b.How, b.Write) }

// errDead is what a dead process would be told, if it could hear.
var errDead = errors.New("the process is dead") // read-only

// Fuse stands between one process and its stores. When it blows, the process is dead: nothing of it reaches the disk any
// more, and nothing on the disk reaches it.
type Fuse struct {
	stores store.Stores
	blow   Blow
	// appended is told of every row that is on disk.
	appended func(workspace string, a *store.Append)
	blown    chan struct{}
	// cleared is told that timers were removed apart from a row; it may be nil.
	cleared func()
	// struck is told that the process is about to die of its blow; it may be nil.
	struck func()

	mu     sync.Mutex
	writes int
	dead   error
	chance *rand.Rand // how long writes take; nil: no time
}

func newFuse(stores store.Stores, blow Blow, latency uint64, appended func(string, *store.Append)) *Fuse {
	f := &Fuse{stores: stores, blow: blow, appended: appended, blown: make(chan struct{})}
	if latency != 0 {
		f.chance = rand.New(rand.NewPCG(latency, 1))
	}
	return f
}

// Stores are the stores behind the fuse.
func (f *Fuse) Stores() store.Stores {
	return store.Stores{
		Journal: fusedJournal{f}, Inbox: fusedInbox{f}, Timers: fusedTimers{f}, Executions: fusedExecutions{f}, Logs: fusedLogs{f},
		Blobs: fusedBlobs{f},
	}
}

// Kill ends the process at once.
func (f *Fuse) Kill() { f.die(errDead) }

func (f *Fuse) die(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dead == nil {
		f.dead = err
		close(f.blown)
	}
}

// Writes is how many writes there were.
func (f *Fuse) Writes() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writes
}

// write lets one write through, or not.
func (f *Fuse) write(do func() error) error {
	f.linger()
	f.mu.Lock()
	if f.dead != nil {
		f.mu.Unlock()
		return f.dead
	}
	f.writes++
	n := f.writes
	f.mu.Unlock()
	switch {
	case f.blow.How == Full && f.blow.Write > 0 && n >= f.blow.Write && n < f.blow.Write+f.blow.Writes:
		return fmt.Errorf("write %d: %w", n, []error{store.ErrFull, store.ErrUnavailable}[n%2])
	case n != f.blow.Write:
		return do()
	case f.blow.How == Before:
		return f.strike(errDead)
	case f.blow.How == Broken:
		return f.strike(store.ErrBroken)
	}
	if err := do(); err != nil {
		return err // it was refused, so there is nothing that nobody was told of
	}
	return f.strike(errDead)
}

// strike ends the process by its blow.
func (f *Fuse) strike(err error) error {
	if f.struck != nil {
		f.struck()
	}
	f.die(err)
	return err
}

// mayRead says whether the process may still read. Reading takes no time: hosts read under locks, which a clock of its own
// does not see.
func (f *Fuse) mayRead() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dead
}

// linger is how long the disk takes for a write.
func (f *Fuse) linger() {
	if f.chance == nil {
		return
	}
	f.mu.Lock()
	pause := time.Duration(f.chance.IntN(3)) * time.Microsecond
	f.mu.Unlock()
	time.Sleep(pause)
}

type fusedJournal struct{ *Fuse }

// Append implements [store.Journal].
func (f fusedJournal) Append(ctx context.Context, p identity.Principal, rows ...*store.Append) error {
	return f.write(func() error {
		err := f.stores.Journal.Append(ctx, p, rows...)
		for _, a := range rows {
			if err == nil {
				f.appended(p.Workspace, a)
			}
		}
		return err
	})
}

// Rows implements [store.Journal].
func (f fusedJournal) Rows(ctx context.Context, p identity.Principal, execution string, after uint64) iter.Seq2[store.Row, error] {
	return func(yield func(store.Row, error) bool) {
		if err := f.mayRead(); err != nil {
			yield(store.Row{}, err)
			return
		}
		f.stores.Journal.Rows(ctx, p, execution, after)(yield)
	}
}

// LastSnapshot implements [store.Journal].
func (f fusedJournal) LastSnapshot(ctx context.Context, p identity.Principal, execution string) (store.Snapshot, bool, error) {
	if err := f.mayRead(); err != nil {
		return store.Snapshot{}, false, err
	}
	return f.stores.Journal.LastSnapshot(ctx, p, execution)
}

type fusedInbox struct{ *Fuse }

// Deliver implements [store.Inbox].
func (f fusedInbox) Deliver(ctx context.Context, p identity.Principal, item store.InboxItem) (id int64, duplicate bool, err error) {
	err = f.write(func() (err error) {
		id, duplicate, err = f.stores.Inbox.Deliver(ctx, p, item)
		return err
	})
	return id, duplicate, err
}

// Pending implements [store.Inbox].
func (f fusedInbox) Pending(ctx context.Context, p identity.Principal, execution string) ([]store.InboxItem, error) {
	if err := f.mayRead(); err != nil {
		return nil, err
	}
	return f.stores.Inbox.Pending(ctx, p, execution)
}

// PendingExecutions implements [store.Inbox].
func (f fusedInbox) PendingExecutions(ctx context.Context, p identity.Principal) ([]store.Ref, error) {
	if err := f.mayRead(); err != nil {
		return nil, err
	}
	return f.stores.Inbox.PendingExecutions(ctx, p)
}

type fusedTimers struct{ *Fuse }

// Upcoming implements [store.Timers].
func (f fusedTimers) Upcoming(ctx context.Context, p identity.Principal, after store.Timer, limit int) ([]store.Timer, error) {
	if err := f.mayRead(); err != nil {
		return nil, err
	}
	return f.stores.Timers.Upcoming(ctx, p, after, limit)
}

// Of implements [store.Timers].
func (f fusedTimers) Of(ctx context.Context, p identity.Principal, execution string) ([]store.Timer, error) {
	if err := f.mayRead(); err != nil {
		return nil, err
	}
	return f.stores.Timers.Of(ctx, p, execution)
}

// Clear implements [store.Timers].
func (f fusedTimers) Clear(ctx context.Context, p identity.Principal, execution string, ids ...string) error {
	err := f.write(func() error { return f.stores.Timers.Clear(ctx, p, execution, ids...) })
	if err == nil && f.cleared != nil {
		f.cleared()
	}
	return err
}

type fusedExecutions struct{ *Fuse }

// Get implements [store.Executions].
func (f fusedExecutions) Get(ctx context.Context, p identity.Principal, id string) (store.Execution, error) {
	if err := f.mayRead(); err != nil {
		return store.Execution{}, err
	}
	return f.stores.Executions.Get(ctx, p, id)
}

// GetWithRows implements [store.Executions].
func (f fusedExecutions) GetWithRows(ctx context.Context, p identity.Principal, id string) (store.Execution, []store.Row, bool, error) {
	if err := f.mayRead(); err != nil {
		return store.Execution{}, nil, false, err
	}
	return f.stores.Executions.GetWithRows(ctx, p, id)
}

// List implements [store.Executions].
func (f fusedExecutions) List(ctx context.Context, p identity.Principal, q store.ExecutionQuery) (store.ExecutionPage, error) {
	if err := f.mayRead(); err != nil {
		return store.ExecutionPage{}, err
	}
	return f.stores.Executions.List(ctx, p, q)
}

// Unfinished implements [store.Executions].
func (f fusedExecutions) Unfinished(ctx context.Context, p identity.Principal, after store.Unfinished) iter.Seq2[store.Unfinished, error] {
	return func(yield func(store.Unfinished, error) bool) {
		if err := f.mayRead(); err != nil {
			yield(store.Unfinished{}, err)
			return
		}
		f.stores.Executions.Unfinished(ctx, p, after)(yield)
	}
}

type fusedLogs struct{ *Fuse }

// Write implements [store.Logs].
func (f fusedLogs) Write(ctx context.Context, p identity.Principal, execution string, lines []store.LogLine) error {
	return f.write(func() error { return f.stores.Logs.Write(ctx, p, execution, lines) })
}

// Lines implements [store.Logs].
func (f fusedLogs) Lines(ctx context.Context, p identity.Principal, q store.LogQuery) (store.LogPage, error) {
	if err := f.mayRead(); err != nil {
		return store.LogPage{}, err
	}
	return f.stores.Logs.Lines(ctx, p, q)
}

type fusedBlobs struct{ *Fuse }

// Put implements [store.Blobs].
func (f fusedBlobs) Put(ctx context.Context, p identity.Principal, r io.Reader) (blob store.Blob, err error) {
	err = f.write(func() (err error) {
		blob, err = f.stores.Blobs.Put(ctx, p, r)
		return err
	})
	return blob, err
}

// Get implements [store.Blobs].
func (f fusedBlobs) Get(ctx context.Context, p identity.Principal, hash string) (io.ReadCloser, store.Blob, error) {
	if err := f.mayRead(); err != nil {
		return nil, store.Blob{}, err
	}
	return f.stores.Blobs.Get(ctx, p, hash)
}

// Stat implements [store.Blobs].
func (f fusedBlobs) Stat(ctx context.Context, p identity.Principal, hash string) (store.Blob, error) {
	if err := f.mayRead(); err != nil {
		return store.Blob{}, err
	}
	return f.stores.Blobs.Stat(ctx, p, hash)
}
