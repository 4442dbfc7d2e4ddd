package sqlite

import (
	"context"
	"database/sql/driver"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

type ledger struct{ db *DB }

// Open implements [store.Ledger].
func (l ledger) Open(ctx context.Context, p identity.Principal, e store.LedgerEntry) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	return l.db.writer.inTransaction(ctx, func(w *writer) error { return w.openLedger(workspace, e) })
}

func (w *writer) openLedger(workspace string, e store.LedgerEntry) error {
	_, err := w.c.exec(`INSERT OR IGNORE INTO ledger (workspace_id, id, execution_id, workflow_id, profile, day, tokens, cost, open) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1)`,
		workspace, e.ID, e.Execution, e.Workflow, e.Profile, e.Day, e.Tokens, e.Cost)
	return err
}

// Settle implements [store.Ledger].
func (l ledger) Settle(ctx context.Context, p identity.Principal, s store.Settlement) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	return l.db.writer.inTransaction(ctx, func(w *writer) error {
		found, err := w.c.row(make([]driver.Value, 1), `SELECT 1 FROM ledger WHERE workspace_id = ? AND id = ?`, workspace, s.ID)
		if err != nil {
			return err
		}
		if !found {
			return store.NotFound("ledger entry", s.ID)
		}
		open, err := w.c.row(make([]driver.Value, 1), `SELECT 1 FROM ledger WHERE workspace_id = ? AND id = ? AND open <> 0`, workspace, s.ID)
		if err != nil {
			return err
		}
		if !open {
			return fault.Newf(fault.Conflict, "ledger entry %q has been settled before", s.ID)
		}
		_, err = w.settleLedger(workspace, s)
		return err
	})
}

func (w *writer) settleLedger(workspace string, s store.Settlement) (int64, error) {
	return w.c.change(`UPDATE ledger SET tokens = ?, cost = ?, open = 0 WHERE workspace_id = ? AND id = ? AND open <> 0`, s.Tokens, s.Cost, workspace, s.ID)
}

// Sum implements [store.Ledger].
func (l ledger) Sum(ctx context.Context, p identity.Principal, q store.LedgerQuery) (store.LedgerSum, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return store.LedgerSum{}, err
	}
	text, args := sumOf(workspace, q)
	plain := make([]any, len(args))
	for i, a := range args {
		plain[i] = a
	}
	return queryOne(ctx, l.db, nil, text, func(s scanner) (sum store.LedgerSum, err error) {
		return sum, s.Scan(&sum.Tokens, &sum.Cost, &sum.OpenTokens, &sum.OpenCost, &sum.OpenCalls)
	}, plain...)
}

// Spenders implements [store.Ledger].
func (l ledger) Spenders(ctx context.Context, p identity.Principal, q store.SpenderQuery) ([]store.Spender, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return nil, err
	}
	column := "execution_id"
	if q.Workflows {
		column = "workflow_id"
	}
	return query(ctx, l.db, `SELECT `+column+`, `+sums+` FROM ledger WHERE workspace_id = ? AND profile = ? AND `+column+` <> ''
		GROUP BY `+column+` ORDER BY max(day) DESC, sum(tokens) DESC, `+column+` LIMIT ?`, func(s scanner) (x store.Spender, err error) {
		return x, s.Scan(&x.ID, &x.Tokens, &x.Cost, &x.OpenTokens, &x.OpenCost, &x.OpenCalls)
	}, workspace, q.Profile, q.Limit)
}

// sums are the columns of a sum: what was used, what is open.
const sums = `coalesce(sum(iif(open, 0, tokens)), 0), coalesce(sum(iif(open, 0, cost)), 0), coalesce(sum(iif(open, tokens, 0)), 0),
	coalesce(sum(iif(open, cost, 0)), 0), coalesce(sum(open), 0)`

// sumOf is the statement of a sum. Its text varies with what is asked for, so that each finds its index.
func sumOf(workspace string, q store.LedgerQuery) (string, []driver.Value) {
	text := `SELECT ` + sums + ` FROM ledger WHERE workspace_id = ?`
	args := []driver.Value{workspace}
	for _, by := range []struct{ column, value string }{{"execution_id", q.Execution}, {"workflow_id", q.Workflow}, {"profile", q.Profile}, {"day", q.Day}} {
		if by.value != "" {
			text += " AND " + by.column + " = ?"
			args = append(args, by.value)
		}
	}
	return text, args
}

// Reserve implements [store.Ledger]. The committer runs one at a time, so nothing comes between looking and taking.
func (l ledger) Reserve(ctx context.Context, p identity.Principal, e store.LedgerEntry, limits ...store.Limit) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	return l.db.writer.inTransaction(ctx, func(w *writer) error {
		for _, limit := range limits {
			if err := w.fits(workspace, e, limit); err != nil {
				return err
			}
		}
		return w.openLedger(workspace, e)
	})
}

// fits refuses an entry for which a limit has no room.
func (w *writer) fits(workspace string, e store.LedgerEntry, limit store.Limit) error {
	text, args := sumOf(workspace, limit.Query)
	var row [5]driver.Value
	if _, err := w.c.row(row[:], text, args...); err != nil {
		return err
	}
	sum := store.LedgerSum{
		Tokens: row[0].(int64), Cost: row[1].(int64), OpenTokens: row[2].(int64), OpenCost: row[3].(int64), OpenCalls: int(row[4].(int64)),
	}
	var raised [2]driver.Value
	if _, err := w.c.row(raised[:], `SELECT coalesce(sum(tokens), 0), coalesce(sum(cost), 0) FROM budget_raises WHERE workspace_id = ? AND budget = ?`, workspace, limit.Budget); err != nil {
		return err
	}
	if limit.Tokens > 0 {
		limit.Tokens += raised[0].(int64)
	}
	if limit.Cost > 0 {
		limit.Cost += raised[1].(int64)
	}
	if limit.Tokens > 0 && sum.Tokens+sum.OpenTokens+e.Tokens > limit.Tokens || limit.Cost > 0 && sum.Cost+sum.OpenCost+e.Cost > limit.Cost {
		return &store.OverError{Limit: limit, LedgerSum: sum}
	}
	return nil
}

// forfeit closes what a process that is gone had open, as it was reserved: nobody knows what it has used.
func (w *writer) forfeit() error {
	_, err := w.c.exec(`UPDATE ledger SET open = 0 WHERE open <> 0`)
	return err
}
