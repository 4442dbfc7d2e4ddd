package budget

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tandem/builtin/models"
	"tandem/identity"
	"tandem/llm"
	"tandem/node"
	"tandem/store"
	"tandem/store/sqlite/sqlitetest"
)

// parted is a ledger of a database that is away for what is settled, until it is back.
type parted struct {
	store.Ledger
	back atomic.Bool
	// doubt has a settlement written of which nobody hears.
	doubt bool
	// tried is told of each settlement that was tried.
	tried chan struct{}
}

// Settle implements store.Ledger.
func (l *parted) Settle(ctx context.Context, p identity.Principal, s store.Settlement) error {
	err := error(store.ErrUnavailable)
	if l.back.Load() {
		err = l.Ledger.Settle(ctx, p, s)
	} else if l.doubt {
		if err := l.Ledger.Settle(ctx, p, s); err != nil {
			return err
		}
	}
	l.tried <- struct{}{}
	return err
}

// lateBench is a purse on a database that is away, and two calls that have reserved 60 tokens each.
func lateBench(t *testing.T, l *parted, log *slog.Logger) (p *Purse, calls []node.Settlement) {
	stores := sqlitetest.Open(t).Stores()
	l.Ledger, l.tried = stores.Ledger, make(chan struct{})
	stores.Ledger = l
	p = New(Options{Stores: stores, Log: log})
	p.Again = time.Millisecond
	for range 2 {
		id, err := p.Reserve(t.Context(), models.Spending{Workspace: "ws", Execution: "e1", Workflow: "w", Profile: llm.Profile{ID: "main"},
			Most: llm.Usage{InputTokens: 60}})
		if err != nil {
			t.Fatal(err)
		}
		calls = append(calls, node.Settlement{ID: id, Tokens: 5, Cost: 7})
	}
	return p, calls
}

func spent(t *testing.T, l *parted) store.LedgerSum {
	t.Helper()
	sum, err := l.Sum(t.Context(), identity.System("ws"), store.LedgerQuery{Execution: "e1"})
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// TestLate_DatabaseAway: what was used by calls that ended too late is counted when the database is back, and neither lost nor left reserved.
func TestLate_DatabaseAway(t *testing.T) {
	t.Parallel()
	for _, doubt := range []bool{false, true} {
		l := &parted{doubt: doubt}
		p, calls := lateBench(t, l, slog.New(slog.DiscardHandler))
		ref := store.Ref{Workspace: "ws", Execution: "e1"}
		told := make(chan struct{})
		go func() { // it ends when the first try was seen
			p.Late(ref, calls[:1])
			p.Late(ref, calls[1:]) // which waits behind the first
			close(told)
		}()
		<-l.tried
		<-told
		<-l.tried // it is tried again while the database is away
		if sum := spent(t, l); !doubt && (sum.OpenCalls != 2 || sum.Tokens != 0) {
			t.Errorf("while the database is away: %+v", sum)
		}
		l.back.Store(true)
		go func() { // it ends with the channel
			for range l.tried {
			}
		}()
		p.waking.Wait() // until everything is settled
		p.Close()
		close(l.tried)
		if sum := spent(t, l); sum != (store.LedgerSum{Tokens: 10, Cost: 14}) {
			t.Errorf("in doubt %v: counted are %+v", doubt, sum)
		}
	}
}

// TestLate_Closed: a purse that is closed while the database is away says that something is not settled. It stays reserved, which the next
// start counts as used.
func TestLate_Closed(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	l := &parted{}
	p, calls := lateBench(t, l, slog.New(slog.NewTextHandler(&log, nil)))
	p.Again = time.Hour
	told := make(chan struct{})
	go func() { // it ends when it was tried
		p.Late(store.Ref{Workspace: "ws", Execution: "e1"}, calls)
		close(told)
	}()
	<-l.tried
	<-told
	p.Close()
	if sum := spent(t, l); sum.OpenCalls != 2 || !strings.Contains(log.String(), "counts as used") || !strings.Contains(log.String(), "calls=2") {
		t.Errorf("left are %+v, and the log says %s", sum, log.String())
	}
}
