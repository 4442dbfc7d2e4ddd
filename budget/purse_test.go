package budget

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"tandem/builtin/models"
	"tandem/identity"
	"tandem/llm"
	"tandem/store"
	"tandem/store/sqlite/sqlitetest"
)

// refusing tells when somebody finds no room.
type refusing struct {
	store.Ledger
	refused chan struct{}
}

func (r refusing) Reserve(ctx context.Context, p identity.Principal, e store.LedgerEntry, limits ...store.Limit) error {
	err := r.Ledger.Reserve(ctx, p, e, limits...)
	if err != nil {
		select {
		case r.refused <- struct{}{}:
		default:
		}
	}
	return err
}

// TestReserve_OtherProcess: who queues for a budget goes on when another process gives something back, of which nobody tells this one.
func TestReserve_OtherProcess(t *testing.T) {
	t.Parallel()
	stores := sqlitetest.Open(t).Stores()
	ledger := stores.Ledger
	refused := make(chan struct{}, 1)
	stores.Ledger = refusing{ledger, refused}
	p := New(Options{Stores: stores, Log: slog.New(slog.DiscardHandler)})
	defer p.Close()
	p.Again = time.Millisecond
	call := models.Spending{Workspace: "ws", Execution: "e1", Workflow: "w", Activation: "a", Node: "n",
		Profile: llm.Profile{ID: "main", Budgets: []llm.Budget{{Per: PerDay, Tokens: 100}}}, Most: llm.Usage{InputTokens: 60}}
	first, err := p.Reserve(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	second := make(chan error, 1)
	go func() { // it ends with the room that it gets
		_, err := p.Reserve(t.Context(), call)
		second <- err
	}()
	<-refused
	if err := ledger.Settle(t.Context(), identity.System("ws"), store.Settlement{ID: first, Tokens: 5}); err != nil {
		t.Fatal(err)
	}
	if err := <-second; err != nil {
		t.Errorf("the second call: %v", err)
	}
}
