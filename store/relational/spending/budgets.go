package spending

import (
	"context"
	"database/sql/driver"
	"errors"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/store/relational"
)

// Budgets implements [store.Budgets].
type Budgets struct {
	db      relational.Database
	deliver Deliver
}

// Deliver puts a message into the inbox of an execution, in a transaction.
type Deliver func(w relational.Transaction, to relational.Key, item *store.InboxItem) (id int64, duplicate bool, err error)

// NewBudgets are those of a database. Executions that wait for one are told by a message.
func NewBudgets(db relational.Database, deliver Deliver) Budgets { return Budgets{db, deliver} }

const waitColumns = `budget, execution_id, activation, node, since, asks`

func scanWait(s relational.Scanner) (w store.BudgetWait, err error) {
	err = s.Scan(&w.Budget, &w.Execution, &w.Activation, &w.Node, &w.Since, &w.Asks)
	return w, err
}

// waits reads waits on the writing connection, within its transaction.
func waits(w relational.Transaction, workspace, budget string) ([]store.BudgetWait, error) {
	var list []store.BudgetWait
	err := w.Rows(6, func(row []driver.Value) {
		list = append(list, store.BudgetWait{
			Budget: row[0].(string), Execution: row[1].(string), Activation: row[2].(string), Node: row[3].(string),
			Since: row[4].(int64), Asks: row[5].(int64) != 0,
		})
	}, `SELECT `+waitColumns+` FROM budget_waits WHERE workspace_id = ? AND budget = ? ORDER BY since, execution_id, activation`, workspace, budget)
	return list, err
}

// Raise implements [store.Budgets].
func (x Budgets) Raise(ctx context.Context, p identity.Principal, id string, r store.Raise,
	at int64) (waited []store.BudgetWait, err error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return nil, err
	}
	if id == "" || r.Budget == "" || r.Tokens < 0 || r.Cost < 0 {
		return nil, fault.New(fault.Invalid, "a raise needs an id, a budget and an amount")
	}
	err = x.db.Write(ctx, func(w relational.Transaction) error {
		waited = nil
		known, err := w.Row(make([]driver.Value, 1), `SELECT 1 FROM budget_raises WHERE workspace_id = ? AND id = ?`, workspace, id)
		if err != nil || known {
			return err
		}
		if waited, err = waits(w, workspace, r.Budget); err != nil {
			return err
		}
		if _, err := w.Exec(`INSERT INTO budget_raises (workspace_id, id, budget, tokens, cost, created) VALUES (?, ?, ?, ?, ?, ?)`,
			workspace, id, r.Budget, r.Tokens, r.Cost, at); err != nil {
			return err
		}
		if _, err := w.Exec(`DELETE FROM budget_waits WHERE workspace_id = ? AND budget = ?`, workspace, r.Budget); err != nil {
			return err
		}
		for _, wait := range waited {
			item := store.InboxItem{}
			if r.Wake != nil {
				item = r.Wake(wait)
			}
			if item.Execution == "" {
				continue
			}
			if _, _, err := x.deliver(w, relational.Key{Workspace: workspace, ID: wait.Execution}, &item); err != nil &&
				!errors.Is(err, store.ErrNotFound) {
				return err
			}
		}
		return nil
	})
	return waited, err
}

// Raised implements [store.Budgets].
func (x Budgets) Raised(ctx context.Context, p identity.Principal, budget string) (store.Raise, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return store.Raise{}, err
	}
	list, err := relational.Query(ctx, x.db, `SELECT coalesce(sum(tokens), 0), coalesce(sum(cost), 0) FROM budget_raises WHERE workspace_id = ? AND budget = ?`,
		func(s relational.Scanner) (r store.Raise, err error) { return r, s.Scan(&r.Tokens, &r.Cost) }, workspace, budget)
	if err != nil {
		return store.Raise{}, err
	}
	list[0].Budget = budget
	return list[0], nil
}

// Wait implements [store.Budgets].
func (x Budgets) Wait(ctx context.Context, p identity.Principal, b store.BudgetWait) (kept store.BudgetWait, err error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return b, err
	}
	if b.Budget == "" || b.Execution == "" || b.Activation == "" {
		return b, fault.New(fault.Invalid, "who waits for a budget names it, an execution and an activation")
	}
	err = x.db.Write(ctx, func(w relational.Transaction) error {
		list, err := waits(w, workspace, b.Budget)
		if err != nil {
			return err
		}
		kept = b
		kept.Asks = true
		for _, other := range list {
			if other.Execution == b.Execution && other.Activation == b.Activation {
				kept = other
				return nil
			}
			kept.Asks = kept.Asks && !other.Asks
		}
		_, err = w.Exec(`INSERT INTO budget_waits (workspace_id, `+waitColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?)`,
			workspace, kept.Budget, kept.Execution, kept.Activation, kept.Node, kept.Since, relational.Flag(kept.Asks))
		return err
	})
	return kept, err
}

// Leave implements [store.Budgets].
func (x Budgets) Leave(ctx context.Context, p identity.Principal, execution, activation string) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	return x.db.Write(ctx, func(w relational.Transaction) error {
		_, err := w.Exec(`DELETE FROM budget_waits WHERE workspace_id = ? AND execution_id = ? AND activation = ?`, workspace, execution, activation)
		return err
	})
}

// Waiting implements [store.Budgets].
func (x Budgets) Waiting(ctx context.Context, p identity.Principal, budget string) ([]store.BudgetWait, error) {
	return relational.QueryIn(ctx, x.db, p, `SELECT `+waitColumns+` FROM budget_waits WHERE workspace_id = ?1 AND (?2 = '' OR budget = ?2)
		ORDER BY budget, since, execution_id, activation`, scanWait, budget)
}
