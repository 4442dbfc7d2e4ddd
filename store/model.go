package store

import (
	"context"
	"encoding/json"

	"tandem/identity"
)

// Profile is a model as a workspace knows it: how it is reached, what it costs. What is in it is not for the store.
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
	// Wake, when it is set, is what each who waited is told; an item without an execution is not. It is delivered together
	// with the raise, so that a crash loses neither. It may call nothing of the store.
	Wake func(BudgetWait) InboxItem
}

// BudgetWait is an activation that waits for a budget to be raised.
type BudgetWait struct {
	Budget     string
	Execution  string
	Activation string
	Node       string
	Since      int64
	// Asks says that it is the one that asks a person; the others wait for the same answer.
	Asks bool
}

// Budgets keeps what people have added to budgets, and who waits for that.
type Budgets interface {
	// Raise adds to a budget and returns who waited for it, who no longer do. The same id twice adds once, and returns
	// nobody the second time.
	Raise(ctx context.Context, p identity.Principal, id string, r Raise, at int64) ([]BudgetWait, error)
	// Raised returns what was added to a budget.
	Raised(ctx context.Context, p identity.Principal, budget string) (Raise, error)
	// Wait enters who waits, and returns it as it is kept: only one of those who wait for a budget asks. An execution or
	// activation that has ended is taken out with Leave.
	Wait(ctx context.Context, p identity.Principal, w BudgetWait) (BudgetWait, error)
	Leave(ctx context.Context, p identity.Principal, execution, activation string) error
	// Waiting lists who waits, by budget and time. An empty budget means all.
	Waiting(ctx context.Context, p identity.Principal, budget string) ([]BudgetWait, error)
}
