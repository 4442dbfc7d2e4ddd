package store

import (
	"context"
	"encoding/json"

	"tandem/identity"
)

// Profile describes a model in a workspace: how it is reached, what it costs. The store does not interpret it.
type Profile struct {
	Workspace string
	ID        string
	Body      json.RawMessage
	Created   int64
	Updated   int64
}

// Profiles keeps the profiles of models.
type Profiles interface {
	// Put makes one or replaces what is there, except for when it was made.
	Put(ctx context.Context, p identity.Principal, profile Profile) error
	Get(ctx context.Context, p identity.Principal, id string) (Profile, error)
	// List returns all, in order of id.
	List(ctx context.Context, p identity.Principal) ([]Profile, error)
	Delete(ctx context.Context, p identity.Principal, id string) error
}

// Limit is what calls may use together.
type Limit struct {
	// Budget names what is limited. Raises of it count on top.
	Budget string
	// Query says which calls count.
	Query LedgerQuery
	// Tokens and Cost are the limits, zero for none.
	Tokens, Cost int64
}

// Raise is what people have added to a budget.
type Raise struct {
	Budget string
	Tokens int64
	Cost   int64
	// Wake, when it is set, makes the inbox item for each activation that waited; one without an execution is not
	// delivered. Items are delivered together with the raise, so that a crash loses neither. It must not call the store.
	Wake func(BudgetWait) InboxItem
}

// BudgetWait is an activation that waits for a budget to be raised.
type BudgetWait struct {
	Budget     string
	Execution  string
	Activation string
	Node       string
	Since      int64
	// Asks says that this activation asks a person; the others wait for the same answer.
	Asks bool
}

// Budgets keeps what people have added to budgets, and which activations wait for that.
type Budgets interface {
	// Raise adds to a budget and returns the activations that waited for it, which wait no longer. The same id twice
	// adds once, and returns none the second time.
	Raise(ctx context.Context, p identity.Principal, id string, r Raise, at int64) ([]BudgetWait, error)
	// Raised returns what was added to a budget.
	Raised(ctx context.Context, p identity.Principal, budget string) (Raise, error)
	// Wait stores that an activation waits, and returns it as stored: only one of those that wait for a budget asks. An
	// execution or activation that has ended is removed with Leave.
	Wait(ctx context.Context, p identity.Principal, w BudgetWait) (BudgetWait, error)
	Leave(ctx context.Context, p identity.Principal, execution, activation string) error
	// Waiting lists the activations that wait, by budget and time. An empty budget means all.
	Waiting(ctx context.Context, p identity.Principal, budget string) ([]BudgetWait, error)
}
