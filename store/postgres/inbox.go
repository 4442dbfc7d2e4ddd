package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"tandem/identity"
	"tandem/store"
)

type inbox struct{ db *DB }

// Deliver implements [store.Inbox].
func (i inbox) Deliver(ctx context.Context, p identity.Principal, item store.InboxItem) (id int64, duplicate bool, err error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return 0, false, err
	}
	var dedup *string
	if item.Dedup != "" {
		dedup = &item.Dedup
	}
	err = i.db.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var n int64
		err := tx.QueryRow(ctx, `SELECT n FROM executions WHERE workspace_id = $1 AND id = $2`, workspace, item.Execution).Scan(&n)
		if errors.Is(err, pgx.ErrNoRows) {
			return notFound(item.Execution)
		}
		if err != nil {
			return fmt.Errorf("deliver to execution %q: %w", item.Execution, err)
		}
		err = tx.QueryRow(ctx, `INSERT INTO inbox (workspace_id, execution, dedup, kind, time, body, taken) VALUES ($1, $2, $3, $4, $5, $6, false)
			ON CONFLICT (execution, dedup) WHERE dedup IS NOT NULL DO NOTHING RETURNING id`,
			workspace, n, dedup, item.Kind, item.Time, bytes(item.Body)).Scan(&id)
		if errors.Is(err, pgx.ErrNoRows) { // it was there: items with a dedup id are never removed
			duplicate = true
			err = tx.QueryRow(ctx, `SELECT id FROM inbox WHERE execution = $1 AND dedup = $2`, n, dedup).Scan(&id)
		}
		if err != nil {
			return fmt.Errorf("deliver to execution %q: %w", item.Execution, err)
		}
		return nil
	})
	if err != nil {
		return 0, false, err
	}
	return id, duplicate, nil
}

// Pending implements [store.Inbox].
func (i inbox) Pending(ctx context.Context, p identity.Principal, execution string) ([]store.InboxItem, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return nil, err
	}
	return query(ctx, i.db, func(row pgx.CollectableRow) (store.InboxItem, error) {
		item := store.InboxItem{Execution: execution}
		return item, row.Scan(&item.ID, &item.Dedup, &item.Kind, &item.Time, &item.Body)
	}, `SELECT id, coalesce(dedup, ''), kind, time, body FROM inbox
		WHERE execution = (SELECT n FROM executions WHERE workspace_id = $1 AND id = $2) AND NOT taken AND workspace_id = $1 ORDER BY id`, workspace, execution)
}

// PendingExecutions implements [store.Inbox].
func (i inbox) PendingExecutions(ctx context.Context, p identity.Principal) ([]store.Ref, error) {
	workspace, all, err := store.ScopeAll(p)
	if err != nil {
		return nil, err
	}
	return query(ctx, i.db, func(row pgx.CollectableRow) (r store.Ref, err error) { return r, row.Scan(&r.Workspace, &r.Execution) },
		`SELECT workspace_id, id FROM executions WHERE n IN (SELECT execution FROM inbox WHERE NOT taken) AND ($1 OR workspace_id = $2) ORDER BY n`, all, workspace)
}

type timers struct{ db *DB }

// Upcoming implements [store.Timers].
func (t timers) Upcoming(ctx context.Context, p identity.Principal, after store.Timer, limit int) ([]store.Timer, error) {
	workspace, all, err := store.ScopeAll(p)
	if err != nil || limit <= 0 {
		return nil, err
	}
	// A timer may be set for a time before 1970; the zero Timer is before that one too.
	from := after.Until
	if after == (store.Timer{}) {
		from = -1 << 62
	}
	if !all {
		after.Workspace = workspace
	}
	return query(ctx, t.db, func(row pgx.CollectableRow) (t store.Timer, err error) {
		return t, row.Scan(&t.Workspace, &t.Execution, &t.ID, &t.Until)
	}, `SELECT workspace_id, execution_id, id, until FROM timers
		WHERE (until, workspace_id, execution_id, id) > ($1, $2, $3, $4) AND ($5 OR workspace_id = $6)
		ORDER BY until, workspace_id, execution_id, id LIMIT $7`, from, after.Workspace, after.Execution, after.ID, all, workspace, limit)
}

// Clear implements [store.Timers].
func (t timers) Clear(ctx context.Context, p identity.Principal, execution string, ids ...string) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	var known bool
	err = t.db.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, `WITH e AS (SELECT n FROM executions WHERE workspace_id = $1 AND id = $2),
		gone AS (DELETE FROM timers WHERE execution IN (SELECT n FROM e) AND id = ANY($3))
		SELECT EXISTS (SELECT 1 FROM e)`, workspace, execution, ids).Scan(&known)
	})
	switch {
	case err != nil:
		return fmt.Errorf("clear timers: %w", err)
	case !known:
		return store.ErrNotFound
	}
	return nil
}
