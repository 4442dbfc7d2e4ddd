package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"iter"
	"time"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

// inTransaction runs a function in the next transaction and returns when that is on disk, see [writer.commitNext]. The entries for the
// audit log that wait in the context are written in the same transaction, unless the function refuses or has changed nothing.
func (w *writer) inTransaction(ctx context.Context, run func(*writer) error) error {
	entries := store.PendingEntries(ctx)
	if len(entries) == 0 {
		return w.commitNext(ctx, run)
	}
	entered := false
	err := w.commitNext(ctx, func(w *writer) error {
		w.unchanged, entered = false, false
		if err := run(w); err != nil || w.unchanged {
			return err
		}
		for _, e := range entries {
			if err := w.enter(e.AuditEntry); err != nil {
				return err
			}
		}
		entered = true
		return nil
	})
	if err == nil && entered {
		for _, e := range entries {
			e.Written()
		}
	}
	return err
}

const auditColumns = `workspace_id, time, user_id, means, address, agent, action, object, object_id, outcome, detail`

// meansText is how somebody came, as the audit log has it. Its zero value says nothing.
type meansText struct {
	of   identity.Means
	text string
}

// enter adds an entry to the audit log.
func (w *writer) enter(e store.AuditEntry) error {
	if e.Means != w.means.of { // mostly those of the entry before
		raw, err := json.Marshal(e.Means)
		if err != nil {
			return fault.Newf(fault.Internal, "how %q came cannot be entered in the audit log: %w", e.User, err)
		}
		if w.means = (meansText{e.Means, string(raw)}); e.Means == (identity.Means{}) {
			w.means.text = ""
		}
	}
	means := w.means.text
	if e.Time == 0 {
		e.Time = time.Now().UnixMilli()
	}
	_, err := w.c.exec(`INSERT INTO audit (`+auditColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		w.entered.text(0, e.Workspace), e.Time, w.entered.text(1, e.User), w.entered.text(2, means), w.entered.text(3, e.Address), w.entered.text(4, e.Agent),
		w.entered.text(5, e.Action), w.entered.text(6, e.Object), e.ObjectID, w.entered.text(7, string(e.Outcome)), string(e.Detail))
	return err
}

func scanAudit(s scanner) (e store.AuditEntry, err error) {
	var means, detail string
	if err := s.Scan(&e.Seq, &e.Workspace, &e.Time, &e.User, &means, &e.Address, &e.Agent, &e.Action, &e.Object, &e.ObjectID, &e.Outcome, &detail); err != nil {
		return e, err
	}
	if detail != "" {
		e.Detail = json.RawMessage(detail)
	}
	if means == "" {
		return e, nil
	}
	return e, json.Unmarshal([]byte(means), &e.Means)
}

type audit struct{ db *DB }

// Enter implements [store.Audit].
func (x audit) Enter(ctx context.Context, p identity.Principal, e store.AuditEntry) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	if err := e.Check(); err != nil {
		return err
	}
	if e.Workspace = workspace; e.Outcome == "" {
		e.Outcome = store.AuditDone
	}
	return x.db.writer.commitNext(ctx, func(w *writer) error { return w.enter(e) })
}

// The conditions of a query. That of an object has an index of its own.
const (
	auditOfObject   = ` AND object_id = ?10`
	auditConditions = `SELECT seq, ` + auditColumns + ` FROM audit WHERE workspace_id = ?1 AND seq > ?2 AND (?3 = 0 OR seq < ?3)
		AND (?4 = '' OR user_id = ?4) AND (?5 = '' OR object = ?5) AND (?6 = '' OR action = ?6 OR substr(?6, -1) = '.' AND substr(action, 1, length(?6)) = ?6)
		AND (?7 = '' OR outcome = ?7) AND time >= ?8 AND (?9 = 0 OR time < ?9)`
)

// read reads so many entries after and before sequence numbers.
func (x audit) read(ctx context.Context, workspace string, q store.AuditQuery, after int64, order string, limit int) ([]store.AuditEntry, error) {
	text, args := auditConditions, []any{workspace, after, q.Before, q.User, q.Object, q.Action, string(q.Outcome), q.Since, q.Until}
	if q.ObjectID != "" {
		text, args = text+auditOfObject, append(args, q.ObjectID)
	}
	return query(ctx, x.db, text+` ORDER BY seq `+order+` LIMIT ?`, scanAudit, append(args, limit)...)
}

// List implements [store.Audit].
func (x audit) List(ctx context.Context, p identity.Principal, q store.AuditQuery) ([]store.AuditEntry, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return nil, err
	}
	limit, _ := store.Page{Size: q.Limit}.Limits()
	return x.read(ctx, workspace, q, 0, "DESC", limit)
}

// auditPage is how many entries are read at a time for somebody who reads all.
const auditPage = 500

// All implements [store.Audit].
func (x audit) All(ctx context.Context, p identity.Principal, q store.AuditQuery) iter.Seq2[store.AuditEntry, error] {
	return func(yield func(store.AuditEntry, error) bool) {
		workspace, err := store.Scope(p)
		for after := int64(0); err == nil; {
			var page []store.AuditEntry
			if page, err = x.read(ctx, workspace, q, after, "ASC", auditPage); err != nil {
				break
			}
			for _, e := range page {
				if !yield(e, nil) {
					return
				}
				after = e.Seq
			}
			if len(page) < auditPage {
				return
			}
		}
		yield(store.AuditEntry{}, err)
	}
}

// auditRemoved is how many entries are removed in one transaction.
const auditRemoved = 2000

// Retain implements [store.Audit]. It removes from the oldest on, as far as all of them have had their time.
func (x audit) Retain(ctx context.Context, p identity.Principal, before int64, keep int, now int64) (removed int, err error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return 0, err
	}
	err = x.db.writer.commitNext(ctx, func(w *writer) error {
		removed = 0
		through, err := w.auditThrough(workspace, before, keep)
		if err != nil || through == 0 {
			return err
		}
		if _, err := w.c.exec(`INSERT INTO audit_retained (workspace_id, through) VALUES (?1, ?2) ON CONFLICT (workspace_id) DO UPDATE SET through = max(through, ?2)`, workspace, through); err != nil {
			return err
		}
		number := make([]driver.Value, 1)
		if _, err := w.c.row(number, `SELECT count(*) FROM audit WHERE workspace_id = ? AND seq <= ?`, workspace, through); err != nil {
			return err
		}
		n, _ := number[0].(int64)
		// The entry comes first, so that its number is above all that there were.
		if err := w.enter(store.AuditEntry{
			Workspace: workspace, Time: now, User: p.User, Action: "audit.retain", Object: "audit", Outcome: store.AuditDone,
			Detail: store.AuditDetail(struct {
				Removed int64 `json:"removed"`
				Through int64 `json:"through"`
				Before  int64 `json:"before,omitempty"`
				Keep    int   `json:"keep,omitempty"`
			}{n, through, before, keep}),
		}); err != nil {
			return err
		}
		removed = int(n)
		_, err = w.c.exec(`DELETE FROM audit WHERE workspace_id = ? AND seq <= ?`, workspace, through)
		return err
	})
	return removed, err
}

// auditThrough is the last entry of a workspace that is removed now; zero: none is.
func (w *writer) auditThrough(workspace string, before int64, keep int) (through int64, err error) {
	number := make([]driver.Value, 1)
	first := func(text string, args ...driver.Value) (int64, error) {
		found, err := w.c.row(number, text, args...)
		n, _ := number[0].(int64)
		if err != nil || !found {
			n = 0
		}
		return n, err
	}
	newest, err := first(`SELECT seq FROM audit WHERE workspace_id = ? ORDER BY seq DESC LIMIT 1`, workspace)
	if err != nil || newest == 0 {
		return 0, err
	}
	if before > 0 {
		young, err := first(`SELECT seq FROM audit WHERE workspace_id = ? AND time >= ? ORDER BY seq LIMIT 1`, workspace, before)
		if err != nil {
			return 0, err
		}
		if through = newest; young > 0 {
			through = young - 1
		}
	}
	if keep > 0 {
		over, err := first(`SELECT seq FROM audit WHERE workspace_id = ? ORDER BY seq DESC LIMIT 1 OFFSET ?`, workspace, int64(keep))
		if err == nil && over > 0 { // the entry that says so is one of those that are kept: otherwise there would be one too many for ever
			over, err = first(`SELECT seq FROM audit WHERE workspace_id = ? ORDER BY seq DESC LIMIT 1 OFFSET ?`, workspace, int64(keep-1))
		}
		if err != nil {
			return 0, err
		}
		through = max(through, over)
	}
	// What is removed at once is bounded, and something must be there to remove.
	last, err := first(`SELECT max(seq) FROM (SELECT seq FROM audit WHERE workspace_id = ? AND seq <= ? ORDER BY seq LIMIT ?)`, workspace, through, int64(auditRemoved))
	return last, err
}
