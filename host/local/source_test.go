package local_test

import (
	"context"
	"iter"
	"sync/atomic"
	"testing"

	"tandem/identity"
	"tandem/node"
	"tandem/store"
)

// countingJournal counts how often it is read.
type countingJournal struct {
	store.Journal
	reads *atomic.Int64
}

func (c countingJournal) Rows(ctx context.Context, p identity.Principal, execution string, after uint64) iter.Seq2[store.Row, error] {
	c.reads.Add(1)
	return c.Journal.Rows(ctx, p, execution, after)
}

func (c countingJournal) LastSnapshot(ctx context.Context, p identity.Principal, execution string) (store.Snapshot, bool, error) {
	c.reads.Add(1)
	return c.Journal.LastSnapshot(ctx, p, execution)
}

// An execution with few rows is brought back with one read of the store, which has its summary and its rows.
func TestReadJournal_OneRead(t *testing.T) {
	t.Parallel()
	var reads atomic.Int64
	s := newShop(t, func(j store.Journal) store.Journal { return countingJournal{j, &reads} },
		func(context.Context) (node.Outcome, error) { return nil, nil })
	reads.Store(0)
	if at := s.wanted(s.open()); at != s.at {
		t.Errorf("to be run is %v, want %v", at, s.at)
	}
	if n := reads.Load(); n != 0 {
		t.Errorf("the journal was read %d times besides", n)
	}
}
