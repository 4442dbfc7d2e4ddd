package app

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"tandem/builtin"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/identity"
	"tandem/llm"
	"tandem/store"
)

// purse keeps to the budgets of profiles. What is spent is in the store; in memory is only who queues for what others may
// give back.
type purse struct {
	ledger     store.Ledger
	budgets    store.Budgets
	executions store.Executions
	now        func() time.Time

	mu sync.Mutex
	// moved is closed, and replaced, when something was given back.
	moved chan struct{}
}

func newPurse(s store.Stores) *purse {
	return &purse{ledger: s.Ledger, budgets: s.Budgets, executions: s.Executions, now: time.Now, moved: make(chan struct{})}
}

// The spans of time or work that a budget is for.
const (
	perExecution = "execution"
	perWorkflow  = "workflow"
	perDay       = "day"
)

// limits are what a call has to fit into.
func (p *purse) limits(s builtin.Spending) ([]store.Limit, string, error) {
	day := p.now().UTC().Format(time.DateOnly)
	list := make([]store.Limit, 0, len(s.Profile.Budgets))
	for _, b := range s.Profile.Budgets {
		if b.TimeZone != "" {
			zone, err := time.LoadLocation(b.TimeZone)
			if err != nil {
				return nil, "", fault.Newf(fault.InvalidConfig, "profile %q: %q is no time zone", s.Profile.ID, b.TimeZone).With("path", "budgets.time_zone")
			}
			day = p.now().In(zone).Format(time.DateOnly)
		}
		limit := store.Limit{Query: store.LedgerQuery{Profile: s.Profile.ID}, Tokens: b.Tokens, Cost: int64(math.Round(b.Cost * 1e6))}
		key := ""
		switch b.Per {
		case perExecution:
			key, limit.Query.Execution = s.Execution, s.Execution
		case perWorkflow:
			key, limit.Query.Workflow = s.Workflow, s.Workflow
		case perDay:
			key, limit.Query.Day = day, day
		default:
			return nil, "", fault.Newf(fault.InvalidConfig, "profile %q: a budget is per %s, %s or %s, not %q", s.Profile.ID, perExecution, perWorkflow, perDay, b.Per).With("path", "budgets.per")
		}
		limit.Budget = s.Profile.ID + "/" + b.Per + "/" + key
		list = append(list, limit)
	}
	return list, day, nil
}

// Reserve implements builtin.Purse.
func (p *purse) Reserve(ctx context.Context, s builtin.Spending) (string, error) {
	limits, day, err := p.limits(s)
	if err != nil {
		return "", err
	}
	entry := store.LedgerEntry{
		ID: "call_" + rand.Text(), Execution: s.Execution, Workflow: s.Workflow, Profile: s.Profile.ID, Day: day,
		Tokens: s.Most.Total(), Cost: s.Profile.Price.Cost(s.Most),
	}
	principal := identity.System(s.Workspace)
	for {
		p.mu.Lock()
		moved := p.moved
		p.mu.Unlock()
		err := p.ledger.Reserve(ctx, principal, entry, limits...)
		over := (*store.OverError)(nil)
		if !errors.As(err, &over) {
			return entry.ID, err
		}
		if over.OpenCalls == 0 {
			return "", p.exhausted(ctx, principal, s, entry, over)
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return "", fault.Newf(fault.Canceled, "the call was stopped while it waited for the budget %q", over.Budget)
		}
	}
}

// exhausted enters who waits for a budget. Of all who do, one asks a person.
func (p *purse) exhausted(ctx context.Context, principal identity.Principal, s builtin.Spending, entry store.LedgerEntry, over *store.OverError) error {
	if err := p.sweep(ctx, principal, over.Budget); err != nil {
		return err
	}
	kept, err := p.budgets.Wait(ctx, principal, store.BudgetWait{
		Budget: over.Budget, Execution: s.Execution, Activation: s.Activation, Node: s.Node, Since: p.now().UnixMilli(),
	})
	if err != nil {
		return err
	}
	request, err := json.Marshal(map[string]any{
		"interaction_type": "input", "title": fmt.Sprintf("Raise the budget %s?", over.Budget),
		"description": fmt.Sprintf("A call of the model %q needs up to %d tokens; %d of %d are spent.", s.Profile.ID, entry.Tokens, over.LedgerSum.Tokens, over.Limit.Tokens),
		"budget":      over.Budget, "limit": map[string]any{"tokens": over.Limit.Tokens, "cost": float64(over.Limit.Cost) / 1e6},
		"spent":  map[string]any{"tokens": over.LedgerSum.Tokens, "cost": float64(over.LedgerSum.Cost) / 1e6},
		"needed": map[string]any{"tokens": entry.Tokens, "cost": float64(entry.Cost) / 1e6},
		"schema": json.RawMessage(`{"type":"object","required":["raise_by"],"properties":{"raise_by":{"type":"number","exclusiveMinimum":0,"description":"tokens; for a budget of money, units of the currency"}}}`),
	})
	if err != nil {
		return fault.Newf(fault.Internal, "the question about the budget %q: %w", over.Budget, err)
	}
	return &builtin.Exhausted{Budget: over.Budget, Request: request, Asks: kept.Asks}
}

// sweep takes out who waited in executions that have ended, so that somebody who is there asks.
func (p *purse) sweep(ctx context.Context, principal identity.Principal, budget string) error {
	waiting, err := p.budgets.Waiting(ctx, principal, budget)
	if err != nil {
		return err
	}
	for _, w := range waiting {
		e, err := p.executions.Get(ctx, principal, w.Execution)
		if err == nil && !e.Status.Final() {
			continue
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if err := p.budgets.Leave(ctx, principal, w.Execution, w.Activation); err != nil {
			return err
		}
	}
	return nil
}

// Return implements builtin.Purse.
func (p *purse) Return(ctx context.Context, workspace, id string, used llm.Usage, price llm.Price) error {
	err := p.ledger.Settle(ctx, identity.System(workspace), store.Settlement{ID: id, Tokens: used.Total(), Cost: price.Cost(used)})
	p.wake()
	return err
}

// wake lets those who queue look again.
func (p *purse) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.moved)
	p.moved = make(chan struct{})
}

// settled says that a row gives something back.
func settled(row host.Row) bool {
	for _, t := range row.Told {
		if t.What == host.ToldUsage {
			return true
		}
	}
	return false
}

// RaiseBudget adds to a budget and wakes everybody who waits for it. Tokens are whole; for a budget of money by is in units of
// the currency. The id makes saying it twice harmless. Answers says that it answers the question, so that whoever asked is told
// by the answer.
func (i *Instance) RaiseBudget(ctx context.Context, p identity.Principal, id, budget string, by float64, answers bool) error {
	if !(by > 0) || by > 1e15 {
		return fault.New(fault.InvalidInput, "raise_by: a budget is raised by a positive number").With("path", "raise_by")
	}
	waited, err := i.stores.Budgets.Raise(ctx, p, id, store.Raise{Budget: budget, Tokens: int64(by), Cost: int64(math.Round(by * 1e6))}, time.Now().UnixMilli())
	if err != nil {
		return err
	}
	i.purse.wake()
	var errs []error
	for _, w := range waited {
		if answers && w.Asks {
			continue
		}
		_, err := i.host.Act(ctx, identity.System(p.Workspace), host.Request{
			Execution: w.Execution, Action: host.ActionSignal, Node: w.Node, Activation: engine.ActivationID(w.Activation), Signal: builtin.BudgetSignal(budget),
			Dedup: "budget:" + id + ":" + w.Activation, Value: json.RawMessage(`{"raised":true}`),
		})
		if code := fault.CodeOf(err); err != nil && code != fault.Conflict && code != fault.NotFound { // it has ended, or goes on already
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
