package local_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tandem/fault"
	"tandem/host/hosttest"
	"tandem/identity"
	"tandem/store"
)

// faulty are reads of the host's own that do not work, by chance. Those of callers, who are told, do.
type faulty struct {
	mu     sync.Mutex
	chance *rand.Rand
	failed int
	// away is how long none of them works from the first one on, as when the database is away; zero: some do not work by chance.
	away  time.Duration
	began time.Time
}

var errFaulty = errors.New("too many open files") // read-only

func (f *faulty) read(p identity.Principal) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.away > 0 && p.IsSystem() {
		if f.began.IsZero() {
			f.began = time.Now()
		}
		if time.Since(f.began) > f.away {
			return nil
		}
		f.failed++
		return fault.New(fault.NotReady, "the database is away").WithCause(store.ErrUnavailable)
	}
	if !p.IsSystem() || f.chance.IntN(3) > 0 {
		return nil
	}
	f.failed++
	return errFaulty
}

func (f *faulty) stores(s store.Stores) store.Stores {
	s.Executions, s.Inbox = faultyExecutions{s.Executions, f}, faultyInbox{s.Inbox, f}
	s.Journal, s.Blobs = faultyJournal{s.Journal, f}, faultyBlobs{s.Blobs, f}
	return s
}

type faultyExecutions struct {
	store.Executions
	*faulty
}

func (f faultyExecutions) Get(ctx context.Context, p identity.Principal, id string) (store.Execution, error) {
	if err := f.read(p); err != nil {
		return store.Execution{}, err
	}
	return f.Executions.Get(ctx, p, id)
}

func (f faultyExecutions) GetWithRows(ctx context.Context, p identity.Principal, id string) (store.Execution, []store.Row, bool, error) {
	if err := f.read(p); err != nil {
		return store.Execution{}, nil, false, err
	}
	return f.Executions.GetWithRows(ctx, p, id)
}

type faultyInbox struct {
	store.Inbox
	*faulty
}

func (f faultyInbox) Pending(ctx context.Context, p identity.Principal, execution string) ([]store.InboxItem, error) {
	if err := f.read(p); err != nil {
		return nil, err
	}
	return f.Inbox.Pending(ctx, p, execution)
}

type faultyJournal struct {
	store.Journal
	*faulty
}

// Rows may stop in the middle.
func (f faultyJournal) Rows(ctx context.Context, p identity.Principal, execution string, after uint64) iter.Seq2[store.Row, error] {
	return func(yield func(store.Row, error) bool) {
		for row, err := range f.Journal.Rows(ctx, p, execution, after) {
			if row.Seq%3 == 0 && err == nil {
				err = f.read(p)
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

func (f faultyJournal) LastSnapshot(ctx context.Context, p identity.Principal, execution string) (store.Snapshot, bool, error) {
	if err := f.read(p); err != nil {
		return store.Snapshot{}, false, err
	}
	return f.Journal.LastSnapshot(ctx, p, execution)
}

type faultyBlobs struct {
	store.Blobs
	*faulty
}

func (f faultyBlobs) Get(ctx context.Context, p identity.Principal, hash string) (io.ReadCloser, store.Blob, error) {
	if err := f.read(p); err != nil {
		return nil, store.Blob{}, err
	}
	return f.Blobs.Get(ctx, p, hash)
}

// TestSimulation_ReadsThatDoNotWork lets every third read fail for the moment: everything ends as it does otherwise.
func TestSimulation_ReadsThatDoNotWork(t *testing.T) {
	t.Parallel()
	playFaulty(t, 0)
}

// TestSimulation_DatabaseAway lets the database be away for longer than other reads are tried: nothing is given up, and everything ends
// as it does otherwise.
func TestSimulation_DatabaseAway(t *testing.T) {
	t.Parallel()
	playFaulty(t, 4*time.Minute)
}

func playFaulty(t *testing.T, away time.Duration) {
	t.Helper()
	for _, c := range hosttest.Cases() {
		if !c.Crashes || away > 0 && c.Name == "Flow/IdempotentStart" { // which starts meanwhile, and is refused
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			calm := calmly(t, c)
			fate := hosttest.Fate{Blows: []hosttest.Blow{{Write: 1 + calm.Writes/2, How: hosttest.After}}}
			f := &faulty{chance: rand.New(rand.NewPCG(uint64(calm.Writes), 7)), away: away}
			var got hosttest.Report
			synctest.Test(t, func(t *testing.T) {
				rig := rigOn(hosttest.NewDisk())
				rig.Start = func(ctx context.Context, s hosttest.Setup) (hosttest.Host, error) {
					s.Stores = f.stores(s.Stores)
					return startHost(ctx, s)
				}
				got = c.Play(t, rig, fate)
			})
			compare(t, calm, got, "reads that do not work")
			t.Logf("%d reads did not work", f.failed)
		})
	}
}
