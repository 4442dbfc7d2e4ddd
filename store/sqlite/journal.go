package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"iter"
	"strings"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/store/relational"
	"tandem/store/relational/inbox"
	"tandem/store/relational/logs"
	"tandem/store/relational/questions"
	"tandem/store/relational/spending"
	"tandem/store/relational/summaries"
	"tandem/store/relational/triggers"
)

type journal struct{ db *DB }

// Append implements [store.Journal].
func (j journal) Append(ctx context.Context, p identity.Principal, rows ...*store.Append) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	if err := store.CheckRows(rows); err != nil {
		return err
	}
	key := executionKey{Workspace: workspace, ID: rows[0].Execution}
	return j.db.writer.inTransaction(ctx, func(w *writer) error {
		return w.append(key, rows)
	})
}

// append is one part of a transaction. Everything that can be refused is refused before the first write.
func (w *writer) append(key executionKey, rows []*store.Append) error {
	a, order := rows[0], w.order
	h, err := w.head(key, a)
	if err != nil {
		return err
	}
	switch {
	case a.Create != nil:
		if err := w.admit(key, a, h); err != nil {
			return err
		}
		if h, err = w.create(key, rows); err != nil {
			return err
		}
		if err := w.claim(key, a); err != nil {
			return err
		}
		order = byExecution // a new execution comes behind all others there, so that those of a transaction share pages without an index
	case h == nil:
		return store.NotFound("execution", key.ID)
	case h.Seq != a.After:
		return movedOn(key.ID, a.After, h.Seq)
	case h.Seq > maxSeq-uint64(len(rows)):
		return fault.Newf(fault.TooLarge, "the journal of execution %q is full", key.ID)
	}
	for left := rows; len(left) > 0; {
		now := left[:min(len(left), maxTogether)]
		left = left[len(now):]
		if err := w.insertRows(key, h, order, now); err != nil {
			return err
		}
	}
	if err := w.tally.Change(transaction{w}, key.Workspace, h, rows); err != nil {
		return err
	}
	for _, a := range rows {
		if err := w.company(key, h, a); err != nil {
			return err
		}
	}
	return nil
}

// insertRows writes rows with one statement.
func (w *writer) insertRows(key executionKey, h *head, order *inserts, rows []*store.Append) error {
	args := w.args[:0]
	var workspace, at driver.Value = key.Workspace, rows[0].Time // each made once for all rows that share it
	for i, a := range rows {
		if i > 0 && a.Time != rows[i-1].Time {
			at = a.Time
		}
		args = append(args, place(h.N, a.After+1), workspace, at, a.Body)
		w.logged += len(a.Body)
	}
	_, err := w.c.exec(order[len(rows)-1], args...)
	clear(args) // they may be large
	w.args = args
	if err != nil {
		if e, ok := errors.AsType[*dbError](err); ok && e.constraint() {
			w.heads.Forget(key) // what was known of it is wrong
			return fault.Newf(fault.Conflict, "execution %q has a row %d or one that follows it already: somebody else has gone on with it (%v)", key.ID, rows[0].After+1, err)
		}
		return err
	}
	w.heads.Advance(key, h, rows)
	return nil
}

// maxTogether is how many rows are inserted with one statement.
const maxTogether = 16

// inserts are the statements that insert one row, two rows, and so on into a table.
type inserts [maxTogether]string

// The two orders in which rows are kept (docs/decisions/0006). That no row is in both is seen to by the heads, which know of both
// tables, and which are read again when anybody else has written to the database ([writer.alone]). FAIL, since a journal of the
// statement to undo it with is not needed: the part of the transaction that it belongs to is undone as a whole.
var (
	byExecution = insertsInto("journal")          // read-only
	byArrival   = insertsInto("journal_in_order") // read-only
)

func insertsInto(table string) *inserts {
	var list inserts
	for i := range list {
		list[i] = "INSERT OR FAIL INTO " + table + " (place, workspace_id, time, body) VALUES (?, ?, ?, ?)" + strings.Repeat(", (?, ?, ?, ?)", i)
	}
	return &list
}

// orderFor chooses the one that touches fewer pages for executions that go on: by execution it is one for each, by arrival one and one
// of the index for them all.
func orderFor(works int) *inserts {
	if works <= 2 {
		return byExecution
	}
	return byArrival
}

// maxSeq is the longest that a journal can be, and also how many executions there can be, by half: what fits into one
// integer. At a thousand rows a second that is fifty days of one execution that never ends.
const maxSeq = 1<<32 - 1

// place is where a row is in the table.
func place(n int64, seq uint64) int64 { return n<<32 | int64(seq) }

// admit says whether an execution may be created.
func (w *writer) admit(key executionKey, a *store.Append, h *head) error {
	if a.Key != nil {
		var row [3]driver.Value
		used, err := w.c.row(row[:], `SELECT request_hash, execution_id, created FROM idempotency_keys WHERE workspace_id = ? AND user_id = ? AND key = ?`, key.Workspace, a.Create.User, a.Key.Key)
		if err != nil {
			return err
		}
		if used {
			k := store.IdempotencyKey{Key: a.Key.Key, RequestHash: row[0].(string), Execution: row[1].(string), Created: row[2].(int64)}
			return &store.KeyUsedError{IdempotencyKey: k, Same: k.RequestHash == a.Key.RequestHash}
		}
	}
	if a.Arrival != nil {
		if err := triggers.Admit(transaction{w}, key.Workspace, a.Arrival); err != nil {
			return err
		}
	}
	if h != nil {
		return movedOn(key.ID, a.After, h.Seq)
	}
	if err := w.roomForStart(); err != nil {
		return err
	}
	workflow := relational.Key{Workspace: key.Workspace, ID: a.Create.WorkflowID}
	if w.tally.Alive(workflow) {
		return nil
	}
	gone, err := w.c.row(make([]driver.Value, 1), `SELECT 1 FROM workflows WHERE workspace_id = ? AND id = ? AND deleted <> 0`, key.Workspace, a.Create.WorkflowID)
	switch {
	case err != nil:
	case gone:
		err = store.NotFound("workflow", a.Create.WorkflowID)
	default:
		w.tally.Live(workflow)
	}
	return err
}

func movedOn(id string, after, seq uint64) error {
	return fault.Newf(fault.Conflict, "execution %q is at row %d, not at %d: somebody else has gone on with it", id, seq, after)
}

// claim keeps the idempotency key of a start.
func (w *writer) claim(key executionKey, a *store.Append) error {
	if a.Arrival != nil {
		if err := triggers.Arrive(transaction{w}, key.Workspace, key.ID, a.Arrival); err != nil {
			return err
		}
	}
	if a.Key == nil {
		return nil
	}
	_, err := w.c.exec(`INSERT INTO idempotency_keys (workspace_id, user_id, key, request_hash, execution_id, created) VALUES (?, ?, ?, ?, ?, ?)`,
		key.Workspace, a.Create.User, a.Key.Key, a.Key.RequestHash, key.ID, a.Time)
	return err
}

// company writes what comes with a row besides the summary.
func (w *writer) company(key executionKey, h *head, a *store.Append) error {
	for _, id := range a.ClearTimers {
		if _, err := w.c.exec(`DELETE FROM timers WHERE execution = ? AND id = ?`, h.N, id); err != nil {
			return err
		}
	}
	for _, t := range a.SetTimers {
		if _, err := w.c.exec(`INSERT OR REPLACE INTO timers (execution, id, workspace_id, execution_id, until) VALUES (?, ?, ?, ?, ?)`,
			h.N, t.ID, key.Workspace, key.ID, t.Until); err != nil {
			return err
		}
	}
	for _, id := range a.TakeInbox {
		if err := inbox.Take(transaction{w}, h.N, id); err != nil {
			return err
		}
	}
	for i := range a.Deliver {
		item := &a.Deliver[i]
		if _, _, err := inbox.Deliver(transaction{w}, executionKey{Workspace: key.Workspace, ID: item.Execution}, item); err != nil &&
			!errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	if s := a.Snapshot; s != nil {
		w.logged += len(s.Body)
		if _, err := w.c.exec(`INSERT OR REPLACE INTO snapshots (execution, workspace_id, seq, body) VALUES (?, ?, ?, ?)`,
			h.N, key.Workspace, int64(s.Seq), s.Body); err != nil {
			return err
		}
	}
	if len(a.Logs) > 0 {
		if err := logs.Append(transaction{w}, key.Workspace, h.N, a.Logs); err != nil {
			return err
		}
	}
	for _, e := range a.OpenLedger {
		if err := spending.Enter(transaction{w}, key.Workspace, e); err != nil {
			return err
		}
	}
	for _, s := range a.SettleLedger {
		if _, err := spending.Close(transaction{w}, key.Workspace, s); err != nil {
			return err
		}
	}
	if len(a.Ask) > 0 || len(a.Withdraw) > 0 || len(a.Requesters) > 0 || a.Pause != nil || a.Resume != nil ||
		len(a.PauseBelow) > 0 || len(a.ResumeBelow) > 0 {
		return questions.Append(transaction{w}, key, a)
	}
	return nil
}

// head returns the head of the execution that an append is for. That of a new one is not looked for: making its summary finds out.
func (w *writer) head(key executionKey, a *store.Append) (*head, error) {
	if a.Create != nil {
		return w.heads.Known(key), nil
	}
	return w.find(key)
}

// create writes the summary of a new execution and counts the run.
func (w *writer) create(key executionKey, rows []*store.Append) (*head, error) {
	r, err := w.c.exec(summaries.InsertText+summaries.OrNothing, summaries.InsertArgs(nil, &w.same, key.Workspace, rows)...)
	if err != nil {
		return nil, err
	}
	made, err := r.RowsAffected()
	if err != nil {
		return nil, &dbError{err}
	}
	if made == 0 {
		h, err := w.find(key)
		if err != nil || h == nil {
			return nil, cmp.Or(err, summaries.ErrNoSummary)
		}
		return nil, movedOn(key.ID, 0, h.Seq)
	}
	n, err := r.LastInsertId()
	if err != nil {
		return nil, &dbError{err}
	}
	h := w.heads.Create(key, n)
	w.tally.Begun(h, key.Workspace, rows[0].Create, rows[0].Time)
	return h, nil
}

// What is read in pages holds no connection while the caller works. Pages of a journal grow from a few rows, which is all
// that most reads want, and stay small enough for large rows.
const (
	firstRows = 32
	maxRows   = 256
)

// Rows implements [store.Journal].
func (j journal) Rows(ctx context.Context, p identity.Principal, execution string, after uint64) iter.Seq2[store.Row, error] {
	return func(yield func(store.Row, error) bool) {
		workspace, err := store.Scope(p)
		if err != nil {
			yield(store.Row{}, err)
			return
		}
		for limit := firstRows; ; limit = min(limit*2, maxRows) {
			page, err := query(ctx, j.db, `SELECT place, time, body FROM journal
				WHERE place > (SELECT n << 32 | ?3 FROM executions WHERE workspace_id = ?1 AND id = ?2)
				AND place < (SELECT (n + 1) << 32 FROM executions WHERE workspace_id = ?1 AND id = ?2) AND workspace_id = ?1
				UNION ALL SELECT place, time, body FROM journal_in_order
				WHERE place > (SELECT n << 32 | ?3 FROM executions WHERE workspace_id = ?1 AND id = ?2)
				AND place < (SELECT (n + 1) << 32 FROM executions WHERE workspace_id = ?1 AND id = ?2) AND workspace_id = ?1
				ORDER BY place LIMIT ?4`, scanRow, workspace, execution, int64(min(after, maxSeq)), limit)
			if err != nil {
				yield(store.Row{}, err)
				return
			}
			for _, row := range page {
				if !yield(row, nil) {
					return
				}
				after = row.Seq
			}
			if len(page) < limit {
				return
			}
		}
	}
}

func scanRow(s scanner) (store.Row, error) {
	if v, ok := s.(relational.Record); ok && len(v) == 3 { // without a place on the heap for each
		place, ok1 := v[0].(int64)
		time, ok2 := v[1].(int64)
		body, ok3 := v[2].([]byte)
		if ok1 && ok2 && ok3 {
			return store.Row{Seq: uint64(place) & maxSeq, Time: time, Body: body}, nil
		}
	}
	return scanAnyRow(s)
}

// scanAnyRow is scanRow for columns of any types.
func scanAnyRow(s scanner) (r store.Row, err error) {
	var place int64
	err = s.Scan(&place, &r.Time, &r.Body)
	r.Seq = uint64(place) & maxSeq
	return r, err
}

// LastSnapshot implements [store.Journal].
func (j journal) LastSnapshot(ctx context.Context, p identity.Principal, execution string) (store.Snapshot, bool, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return store.Snapshot{}, false, err
	}
	all, err := query(ctx, j.db, `SELECT seq, body FROM snapshots
		WHERE execution = (SELECT n FROM executions WHERE workspace_id = ?1 AND id = ?2) AND workspace_id = ?1`,
		func(s scanner) (snap store.Snapshot, err error) { return snap, s.Scan(&snap.Seq, &snap.Body) }, workspace, execution)
	if err != nil || len(all) == 0 {
		return store.Snapshot{}, false, err
	}
	return all[0], true, nil
}
