// Package auditlog has the tables of the audit log.
package auditlog

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"iter"
	"time"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/store/relational"
)

const auditColumns = `workspace_id, time, user_id, means, address, agent, action, object, object_id, outcome, detail`

// Last is what the last entry had that the next one mostly has too: how somebody came, and texts. Its zero value says nothing. Who enters
// much keeps one.
type Last struct {
	of   identity.Means
	text string
	same relational.SameTexts
}

// Enter adds an entry to the audit log.
func Enter(w relational.Transaction, e store.AuditEntry, last *Last) error {
	if e.Means != last.of {
		raw, err := json.Marshal(e.Means)
		if err != nil {
			return fault.Newf(fault.Internal, "how %q came cannot be entered in the audit log: %w", e.User, err)
		}
		if last.of, last.text = e.Means, string(raw); e.Means == (identity.Means{}) {
			last.text = ""
		}
	}
	if e.Time == 0 {
		e.Time = time.Now().UnixMilli()
	}
	same := &last.same
	_, err := w.Exec(`INSERT INTO audit (`+auditColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		same.Text(0, e.Workspace), e.Time, same.Text(1, e.User), same.Text(2, last.text), same.Text(3, e.Address), same.Text(4, e.Agent),
		same.Text(5, e.Action), same.Text(6, e.Object), e.ObjectID, same.Text(7, string(e.Outcome)), string(e.Detail))
	return err
}

func scanAudit(s relational.Scanner) (e store.AuditEntry, err error) {
	var means, detail string
	if err := s.Scan(&e.Seq, &e.Workspace, &e.Time, &e.User, &means, &e.Address, &e.Agent, &e.Action, &e.Object, &e.ObjectID,
		&e.Outcome, &detail); err != nil {
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

// Audit implements [store.Audit].
type Audit struct{ db relational.Database }

// New is that of a database.
func New(db relational.Database) Audit { return Audit{db} }

// AddTo sets what this package keeps in the stores of a database.
func AddTo(s *store.Stores, db relational.Database) { s.Audit = New(db) }

// Enter implements [store.Audit].
func (x Audit) Enter(ctx context.Context, p identity.Principal, e store.AuditEntry) error {
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
	return x.db.WriteQuietly(ctx, func(w relational.Transaction) error { return Enter(w, e, new(Last)) })
}

// The conditions of a query. That of an object has an index of its own.
const (
	auditOfObject   = ` AND object_id = ?10`
	auditConditions = `SELECT seq, ` + auditColumns + ` FROM audit WHERE workspace_id = ?1 AND seq > ?2 AND (?3 = 0 OR seq < ?3)
		AND (?4 = '' OR user_id = ?4) AND (?5 = '' OR object = ?5) AND (?6 = '' OR action = ?6 OR ?6 LIKE '%.' AND substr(action, 1, length(?6)) = ?6)
		AND (?7 = '' OR outcome = ?7) AND time >= ?8 AND (?9 = 0 OR time < ?9)`
)

// readEntries reads so many entries after and before sequence numbers.
func (x Audit) readEntries(ctx context.Context, workspace string, q store.AuditQuery, after int64, order string,
	limit int) ([]store.AuditEntry, error) {
	text, args := auditConditions, []any{workspace, after, q.Before, q.User, q.Object, q.Action, string(q.Outcome), q.Since, q.Until}
	if q.ObjectID != "" {
		text, args = text+auditOfObject, append(args, q.ObjectID)
	}
	return relational.Query(ctx, x.db, text+` ORDER BY seq `+order+` LIMIT ?`, scanAudit, append(args, limit)...)
}

// List implements [store.Audit].
func (x Audit) List(ctx context.Context, p identity.Principal, q store.AuditQuery) ([]store.AuditEntry, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return nil, err
	}
	limit, _ := store.Page{Size: q.Limit}.Limits()
	return x.readEntries(ctx, workspace, q, 0, "DESC", limit)
}

// auditPage is how many entries are read at a time for somebody who reads all.
const auditPage = 500

// All implements [store.Audit].
func (x Audit) All(ctx context.Context, p identity.Principal, q store.AuditQuery) iter.Seq2[store.AuditEntry, error] {
	return func(yield func(store.AuditEntry, error) bool) {
		workspace, err := store.Scope(p)
		for after := int64(0); err == nil; {
			var page []store.AuditEntry
			if page, err = x.readEntries(ctx, workspace, q, after, "ASC", auditPage); err != nil {
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

// Retain implements [store.Audit]. It removes the oldest entries that have been kept long enough, up to the first that has not.
func (x Audit) Retain(ctx context.Context, p identity.Principal, before int64, keep int, now int64) (removed int, err error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return 0, err
	}
	err = x.db.WriteQuietly(ctx, func(w relational.Transaction) error {
		removed = 0
		through, err := auditThrough(w, workspace, before, keep)
		if err != nil || through == 0 {
			return err
		}
		if _, err := w.Exec(`INSERT INTO audit_retained (workspace_id, through) VALUES (?1, ?2) ON CONFLICT (workspace_id) DO UPDATE SET through = max(audit_retained.through, ?2)`, workspace, through); err != nil {
			return err
		}
		number := make([]driver.Value, 1)
		if _, err := w.Row(number, `SELECT count(*) FROM audit WHERE workspace_id = ? AND seq <= ?`, workspace, through); err != nil {
			return err
		}
		n, _ := number[0].(int64)
		// The entry comes first, so that its number is above all that there were.
		if err := Enter(w, store.AuditEntry{
			Workspace: workspace, Time: now, User: p.User, Action: "audit.retain", Object: "audit", Outcome: store.AuditDone,
			Detail: store.AuditDetail(struct {
				Removed int64 `json:"removed"`
				Through int64 `json:"through"`
				Before  int64 `json:"before,omitempty"`
				Keep    int   `json:"keep,omitempty"`
			}{n, through, before, keep}),
		}, new(Last)); err != nil {
			return err
		}
		removed = int(n)
		_, err = w.Exec(`DELETE FROM audit WHERE workspace_id = ? AND seq <= ?`, workspace, through)
		return err
	})
	return removed, err
}

// auditThrough is the last entry of a workspace that is removed now; zero: none is.
func auditThrough(w relational.Transaction, workspace string, before int64, keep int) (through int64, err error) {
	number := make([]driver.Value, 1)
	first := func(text string, args ...driver.Value) (int64, error) {
		found, err := w.Row(number, text, args...)
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
	last, err := first(`SELECT max(seq) FROM (SELECT seq FROM audit WHERE workspace_id = ? AND seq <= ? ORDER BY seq LIMIT ?) AS d`, workspace, through, int64(auditRemoved))
	return last, err
}
