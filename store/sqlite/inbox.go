package sqlite

import (
	"context"
	"database/sql/driver"

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
	key := executionKey{workspace, item.Execution}
	err = i.db.writer.inTransaction(ctx, func(w *writer) (err error) {
		id, duplicate, err = w.deliver(key, &item)
		w.unchanged = duplicate
		return err
	})
	if err != nil {
		return 0, false, err
	}
	return id, duplicate, nil
}

func (w *writer) deliver(key executionKey, item *store.InboxItem) (id int64, duplicate bool, err error) {
	h, err := w.heads.find(w.c, key)
	if err != nil {
		return 0, false, err
	}
	if h == nil {
		return 0, false, store.NotFound("execution", key.id)
	}
	var dedup driver.Value
	if item.Dedup != "" {
		dedup = item.Dedup
		var row [1]driver.Value
		duplicate, err := w.c.row(row[:], `SELECT id FROM inbox WHERE execution = ? AND dedup = ?`, h.n, dedup)
		if err != nil {
			return 0, false, err
		}
		if duplicate {
			return row[0].(int64), true, nil
		}
	}
	w.logged += len(item.Body)
	id, err = w.c.insert(`INSERT INTO inbox (workspace_id, execution, dedup, kind, time, body, taken) VALUES (?, ?, ?, ?, ?, ?, 0)`,
		key.workspace, h.n, dedup, item.Kind, item.Time, item.Body)
	return id, false, err
}

// takeInboxItem removes an item that has become a fact. Its dedup id stays, without the rest.
func (w *writer) takeInboxItem(h *head, id int64) error {
	if _, err := w.c.exec(`DELETE FROM inbox WHERE id = ? AND execution = ? AND dedup IS NULL`, id, h.n); err != nil {
		return err
	}
	_, err := w.c.exec(`UPDATE inbox SET taken = 1, body = x'' WHERE id = ? AND execution = ? AND taken = 0`, id, h.n)
	return err
}

// Pending implements [store.Inbox].
func (i inbox) Pending(ctx context.Context, p identity.Principal, execution string) ([]store.InboxItem, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return nil, err
	}
	return query(ctx, i.db, `SELECT id, coalesce(dedup, ''), kind, time, body FROM inbox
		WHERE execution = (SELECT n FROM executions WHERE workspace_id = ?1 AND id = ?2) AND taken = 0 AND workspace_id = ?1 ORDER BY id`,
		func(s scanner) (store.InboxItem, error) {
			item := store.InboxItem{Execution: execution}
			return item, s.Scan(&item.ID, &item.Dedup, &item.Kind, &item.Time, &item.Body)
		}, workspace, execution)
}

// PendingExecutions implements [store.Inbox].
func (i inbox) PendingExecutions(ctx context.Context, p identity.Principal) ([]store.Ref, error) {
	workspace, all, err := store.ScopeAll(p)
	if err != nil {
		return nil, err
	}
	scan := func(s scanner) (r store.Ref, err error) { return r, s.Scan(&r.Workspace, &r.Execution) }
	if all {
		return query(ctx, i.db, `SELECT workspace_id, id FROM executions
			WHERE n IN (SELECT execution FROM inbox WHERE taken = 0) ORDER BY n`, scan)
	}
	return query(ctx, i.db, `SELECT workspace_id, id FROM executions
		WHERE n IN (SELECT execution FROM inbox WHERE taken = 0) AND workspace_id = ? ORDER BY n`, scan, workspace)
}

type timers struct{ db *DB }

// Upcoming implements [store.Timers].
func (t timers) Upcoming(ctx context.Context, p identity.Principal, after store.Timer, limit int) ([]store.Timer, error) {
	workspace, all, err := store.ScopeAll(p)
	if err != nil || limit <= 0 {
		return nil, err
	}
	scan := func(s scanner) (t store.Timer, err error) {
		return t, s.Scan(&t.Workspace, &t.Execution, &t.ID, &t.Until)
	}
	// A timer may be set for a time before 1970; the zero Timer is before that one too.
	from := after.Until
	if after == (store.Timer{}) {
		from = -1 << 62
	}
	if all {
		return query(ctx, t.db, `SELECT workspace_id, execution_id, id, until FROM timers
			WHERE (until, workspace_id, execution_id, id) > (?, ?, ?, ?) ORDER BY until, workspace_id, execution_id, id LIMIT ?`,
			scan, from, after.Workspace, after.Execution, after.ID, limit)
	}
	return query(ctx, t.db, `SELECT workspace_id, execution_id, id, until FROM timers
		WHERE (until, execution_id, id) > (?, ?, ?) AND workspace_id = ? ORDER BY until, execution_id, id LIMIT ?`,
		scan, from, after.Execution, after.ID, workspace, limit)
}

// Clear implements [store.Timers].
func (t timers) Clear(ctx context.Context, p identity.Principal, execution string, ids ...string) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	return t.db.writer.inTransaction(ctx, func(w *writer) error {
		h, err := w.heads.find(w.c, executionKey{workspace, execution})
		if err != nil {
			return err
		}
		if h == nil {
			return store.NotFound("execution", execution)
		}
		for _, id := range ids {
			if _, err := w.c.exec(`DELETE FROM timers WHERE execution = ? AND id = ?`, h.n, id); err != nil {
				return err
			}
		}
		return nil
	})
}
