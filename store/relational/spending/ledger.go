// Package spending has the tables of what models cost: the ledger of calls, budgets that were raised, and who waits for one.
package spending

import (
	"context"
	"database/sql/driver"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/store/relational"
)

// Ledger implements [store.Ledger].
type Ledger struct{ db relational.Database }

// NewLedger is that of a database.
func NewLedger(db relational.Database) Ledger { return Ledger{db} }

// Open implements [store.Ledger].
func (l Ledger) Open(ctx context.Context, p identity.Principal, e store.LedgerEntry) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	return l.db.Write(ctx, func(w relational.Transaction) error { return Enter(w, workspace, e) })
}

// Enter opens an entry; one that is there stays as it is.
func Enter(w relational.Transaction, workspace string, e store.LedgerEntry) error {
	_, err := w.Exec(`INSERT INTO ledger (workspace_id, id, execution_id, workflow_id, profile, day, tokens, cost, open) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1) ON CONFLICT DO NOTHING`,
		workspace, e.ID, e.Execution, e.Workflow, e.Profile, e.Day, e.Tokens, e.Cost)
	return err
}

// Settle implements [store.Ledger].
func (l Ledger) Settle(ctx context.Context, p identity.Principal, s store.Settlement) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	return l.db.Write(ctx, func(w relational.Transaction) error {
		found, err := w.Row(make([]driver.Value, 1), `SELECT 1 FROM ledger WHERE workspace_id = ? AND id = ?`, workspace, s.ID)
		if err != nil {
			return err
		}
		if !found {
			return store.NotFound("ledger entry", s.ID)
		}
		open, err := w.Row(make([]driver.Value, 1), `SELECT 1 FROM ledger WHERE workspace_id = ? AND id = ? AND open <> 0`, workspace, s.ID)
		if err != nil {
			return err
		}
		if !open {
			return fault.Newf(fault.Conflict, "ledger entry %q has been settled before", s.ID)
		}
		_, err = Close(w, workspace, s)
		return err
	})
}

// Close closes an entry with what was used in the end, and says how many were open.
func Close(w relational.Transaction, workspace string, s store.Settlement) (int64, error) {
	return w.Change(`UPDATE ledger SET tokens = ?, cost = ?, open = 0 WHERE workspace_id = ? AND id = ? AND open <> 0`, s.Tokens, s.Cost, workspace, s.ID)
}

// Sum implements [store.Ledger].
func (l Ledger) Sum(ctx context.Context, p identity.Principal, q store.LedgerQuery) (store.LedgerSum, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return store.LedgerSum{}, err
	}
	text, args := sumOf(workspace, q)
	plain := make([]any, len(args))
	for i, a := range args {
		plain[i] = a
	}
	return relational.QueryOne(ctx, l.db, nil, text, func(s relational.Scanner) (sum store.LedgerSum, err error) {
		return sum, s.Scan(&sum.Tokens, &sum.Cost, &sum.OpenTokens, &sum.OpenCost, &sum.OpenCalls)
	}, plain...)
}

// Spenders implements [store.Ledger].
func (l Ledger) Spenders(ctx context.Context, p identity.Principal, q store.SpenderQuery) ([]store.Spender, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return nil, err
	}
	column := "execution_id"
	if q.Workflows {
		column = "workflow_id"
	}
	return relational.Query(ctx, l.db, `SELECT `+column+`, `+sums+` FROM ledger WHERE workspace_id = ? AND profile = ? AND `+column+` <> ''
		GROUP BY `+column+` ORDER BY max(day) DESC, sum(tokens) DESC, `+column+` LIMIT ?`, func(s relational.Scanner) (x store.Spender, err error) {
		return x, s.Scan(&x.ID, &x.Tokens, &x.Cost, &x.OpenTokens, &x.OpenCost, &x.OpenCalls)
	}, workspace, q.Profile, q.Limit)
}

// sums are the columns of a sum: what was used, what is open.
const sums = `coalesce(sum(iif(open <> 0, 0, tokens)), 0), coalesce(sum(iif(open <> 0, 0, cost)), 0), coalesce(sum(iif(open <> 0, tokens, 0)), 0),
	coalesce(sum(iif(open <> 0, cost, 0)), 0), coalesce(sum(open), 0)`

// sumOf is the statement of a sum. Its text varies with what is asked for, so that each finds its index.
func sumOf(workspace string, q store.LedgerQuery) (string, []driver.Value) {
	text := `SELECT ` + sums + ` FROM ledger WHERE workspace_id = ?`
	args := []driver.Value{workspace}
	for _, by := range []struct{ column, value string }{{"execution_id", q.Execution}, {"workflow_id", q.Workflow},
		{"profile", q.Profile}, {"day", q.Day}} {
		if by.value != "" {
			text += " AND " + by.column + " = ?"
			args = append(args, by.value)
		}
	}
	return text, args
}

// Reserve implements [store.Ledger]. Nothing comes between looking and taking: transactions are as if one came after the other.
func (l Ledger) Reserve(ctx context.Context, p identity.Principal, e store.LedgerEntry, limits ...store.Limit) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	return l.db.Write(ctx, func(w relational.Transaction) error {
		for _, limit := range limits {
			if err := fits(w, workspace, e, limit); err != nil {
				return err
			}
		}
		return Enter(w, workspace, e)
	})
}

// fits refuses an entry for which a limit has no room.
func fits(w relational.Transaction, workspace string, e store.LedgerEntry, limit store.Limit) error {
	text, args := sumOf(workspace, limit.Query)
	var row [5]driver.Value
	if _, err := w.Row(row[:], text, args...); err != nil {
		return err
	}
	sum := store.LedgerSum{
		Tokens: row[0].(int64), Cost: row[1].(int64), OpenTokens: row[2].(int64), OpenCost: row[3].(int64), OpenCalls: int(row[4].(int64)),
	}
	var raised [2]driver.Value
	if _, err := w.Row(raised[:], `SELECT coalesce(sum(tokens), 0), coalesce(sum(cost), 0) FROM budget_raises WHERE workspace_id = ? AND budget = ?`, workspace, limit.Budget); err != nil {
		return err
	}
	if limit.Tokens > 0 {
		limit.Tokens += raised[0].(int64)
	}
	if limit.Cost > 0 {
		limit.Cost += raised[1].(int64)
	}
	if limit.Tokens > 0 && sum.Tokens+sum.OpenTokens+e.Tokens > limit.Tokens || limit.Cost > 0 &&
		sum.Cost+sum.OpenCost+e.Cost > limit.Cost {
		return &store.OverError{Limit: limit, LedgerSum: sum}
	}
	return nil
}

// Forfeit closes what a process that is gone had open, as it was reserved: nobody knows what it has used.
func Forfeit(w relational.Transaction) error {
	_, err := w.Exec(`UPDATE ledger SET open = 0 WHERE open <> 0`)
	return err
}

// AddTo sets what this package keeps in the stores of a database. Executions that wait for a budget are told by deliver.
func AddTo(s *store.Stores, db relational.Database, deliver Deliver) {
	s.Ledger, s.Budgets = NewLedger(db), NewBudgets(db, deliver)
}
