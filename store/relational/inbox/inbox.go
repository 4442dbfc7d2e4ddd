// Package inbox has the tables of what comes to executions: messages, timers, and the keys of the requests that have started them.
package inbox

import (
	"context"
	"database/sql/driver"

	"tandem/identity"
	"tandem/store"
	"tandem/store/relational"
)

// Inbox implements [store.Inbox].
type Inbox struct{ db relational.Database }

// New is that of a database.
func New(db relational.Database) Inbox { return Inbox{db} }

// Deliver implements [store.Inbox].
func (i Inbox) Deliver(ctx context.Context, p identity.Principal, item store.InboxItem) (id int64, duplicate bool, err error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return 0, false, err
	}
	key := relational.Key{Workspace: workspace, ID: item.Execution}
	err = i.db.Write(ctx, func(w relational.Transaction) (err error) {
		id, duplicate, err = Deliver(w, key, &item)
		if duplicate {
			w.Unchanged()
		}
		return err
	})
	if err != nil {
		return 0, false, err
	}
	return id, duplicate, nil
}

// Deliver puts a message into the inbox of an execution, which must be there. One that came before is a duplicate.
func Deliver(w relational.Transaction, key relational.Key, item *store.InboxItem) (id int64, duplicate bool, err error) {
	n, known, err := w.Execution(key)
	if err != nil {
		return 0, false, err
	}
	if !known {
		return 0, false, store.NotFound("execution", key.ID)
	}
	var dedup driver.Value
	if item.Dedup != "" {
		dedup = item.Dedup
		var row [1]driver.Value
		duplicate, err := w.Row(row[:], `SELECT id FROM inbox WHERE execution = ? AND dedup = ?`, n, dedup)
		if err != nil {
			return 0, false, err
		}
		if duplicate {
			return row[0].(int64), true, nil
		}
	}
	w.Grow(len(item.Body))
	id, _, err = w.Insert(`INSERT INTO inbox (workspace_id, execution, dedup, kind, time, body, taken) VALUES (?, ?, ?, ?, ?, ?, 0) RETURNING id`,
		key.Workspace, n, dedup, item.Kind, item.Time, item.Body)
	return id, false, err
}

// Take removes an item that has become a fact. Its dedup id stays, without the rest.
func Take(w relational.Transaction, n, id int64) error {
	if _, err := w.Exec(`DELETE FROM inbox WHERE id = ? AND execution = ? AND dedup IS NULL`, id, n); err != nil {
		return err
	}
	_, err := w.Exec(`UPDATE inbox SET taken = 1, body = x'' WHERE id = ? AND execution = ? AND taken = 0`, id, n)
	return err
}

// Pending implements [store.Inbox].
func (i Inbox) Pending(ctx context.Context, p identity.Principal, execution string) ([]store.InboxItem, error) {
	return relational.QueryIn(ctx, i.db, p, `SELECT id, coalesce(dedup, ''), kind, time, body FROM inbox
		WHERE execution = (SELECT n FROM executions WHERE workspace_id = ?1 AND id = ?2) AND taken = 0 AND workspace_id = ?1 ORDER BY id`,
		func(s relational.Scanner) (store.InboxItem, error) {
			item := store.InboxItem{Execution: execution}
			return item, s.Scan(&item.ID, &item.Dedup, &item.Kind, &item.Time, &item.Body)
		}, execution)
}

// PendingExecutions implements [store.Inbox].
func (i Inbox) PendingExecutions(ctx context.Context, p identity.Principal) ([]store.Ref, error) {
	workspace, all, err := store.ScopeAll(p)
	if err != nil {
		return nil, err
	}
	scan := func(s relational.Scanner) (r store.Ref, err error) { return r, s.Scan(&r.Workspace, &r.Execution) }
	if all {
		return relational.Query(ctx, i.db, `SELECT workspace_id, id FROM executions
			WHERE n IN (SELECT execution FROM inbox WHERE taken = 0) ORDER BY n`, scan)
	}
	return relational.Query(ctx, i.db, `SELECT workspace_id, id FROM executions
		WHERE n IN (SELECT execution FROM inbox WHERE taken = 0) AND workspace_id = ? ORDER BY n`, scan, workspace)
}

// Timers implements [store.Timers].
type Timers struct{ db relational.Database }

// NewTimers are those of a database.
func NewTimers(db relational.Database) Timers { return Timers{db} }

// Upcoming implements [store.Timers].
func (t Timers) Upcoming(ctx context.Context, p identity.Principal, after store.Timer, limit int) ([]store.Timer, error) {
	workspace, all, err := store.ScopeAll(p)
	if err != nil || limit <= 0 {
		return nil, err
	}
	// A timer may be set for a time before 1970; the zero Timer is before that one too.
	from := after.Until
	if after == (store.Timer{}) {
		from = -1 << 62
	}
	if all {
		return relational.Query(ctx, t.db, `SELECT workspace_id, execution_id, id, until FROM timers
			WHERE (until, workspace_id, execution_id, id) > (?, ?, ?, ?) ORDER BY until, workspace_id, execution_id, id LIMIT ?`,
			scanTimer, from, after.Workspace, after.Execution, after.ID, limit)
	}
	return relational.Query(ctx, t.db, `SELECT workspace_id, execution_id, id, until FROM timers
		WHERE (until, execution_id, id) > (?, ?, ?) AND workspace_id = ? ORDER BY until, execution_id, id LIMIT ?`,
		scanTimer, from, after.Execution, after.ID, workspace, limit)
}

// Of implements [store.Timers].
func (t Timers) Of(ctx context.Context, p identity.Principal, execution string) ([]store.Timer, error) {
	return relational.QueryIn(ctx, t.db, p, `SELECT workspace_id, execution_id, id, until FROM timers
		WHERE execution = (SELECT n FROM executions WHERE workspace_id = ? AND id = ?) ORDER BY until, id`, scanTimer, execution)
}

func scanTimer(s relational.Scanner) (t store.Timer, err error) {
	return t, s.Scan(&t.Workspace, &t.Execution, &t.ID, &t.Until)
}

// Clear implements [store.Timers].
func (t Timers) Clear(ctx context.Context, p identity.Principal, execution string, ids ...string) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	return t.db.Write(ctx, func(w relational.Transaction) error {
		n, known, err := w.Execution(relational.Key{Workspace: workspace, ID: execution})
		if err != nil {
			return err
		}
		if !known {
			return store.NotFound("execution", execution)
		}
		for _, id := range ids {
			if _, err := w.Exec(`DELETE FROM timers WHERE execution = ? AND id = ?`, n, id); err != nil {
				return err
			}
		}
		return nil
	})
}

// AddTo sets what this package keeps in the stores of a database.
func AddTo(s *store.Stores, db relational.Database) {
	s.Inbox, s.Timers, s.Keys = New(db), NewTimers(db), NewKeys(db)
}
