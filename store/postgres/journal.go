package postgres

import (
	"context"
	"database/sql/driver"
	"iter"

	"github.com/jackc/pgx/v5"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/store/relational"
	"tandem/store/relational/inbox"
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
	c := j.db.committer
	w := &work{key: relational.Key{Workspace: workspace, ID: rows[0].Execution}, rows: rows, entries: store.PendingEntries(ctx)}
	if looks(rows) {
		w.run = func(t *transaction) error {
			found, err := c.lookUp(t, []*work{w})
			if err != nil {
				return err
			}
			return c.append(t, w, found)
		}
	}
	return c.submit(ctx, w)
}

// asks says that people are asked or answered with a row.
func asks(a *store.Append) bool {
	return len(a.Ask) > 0 || len(a.Withdraw) > 0 || len(a.Requesters) > 0 || a.Pause != nil || a.Resume != nil ||
		len(a.PauseBelow) > 0 || len(a.ResumeBelow) > 0
}

// looks says that what comes with rows looks at records before it changes them.
func looks(rows []*store.Append) bool {
	for _, a := range rows {
		if asks(a) || a.Arrival != nil {
			return true
		}
	}
	return false
}

// looked is what appends have to know besides how far journals go.
type looked struct {
	keys map[userKey]store.IdempotencyKey
	gone map[relational.Key]bool // workflows that are deleted
	// trees are those that executions begin in, by root.
	trees map[relational.Key]*tree
}

// tree is how many executions below a root are open, and whether it was canceled.
type tree struct {
	open     int
	canceled bool
}

type userKey struct{ workspace, user, key string }

// keyOf is the idempotency key of a start.
func (w *work) keyOf() userKey {
	return userKey{w.key.Workspace, w.rows[0].Create.User, w.rows[0].Key.Key}
}

// workflow is the one that a start is of.
func (w *work) workflow() relational.Key {
	return relational.Key{Workspace: w.key.Workspace, ID: w.rows[0].Create.WorkflowID}
}

// reserve is how many numbers of executions are taken at least.
const reserve = 32

// lookUp reads what appends have to know, in one round trip; none when all of it is known.
func (c *committer) lookUp(t *transaction, appends []*work) (*looked, error) {
	found := &looked{keys: map[userKey]store.IdempotencyKey{}, gone: map[relational.Key]bool{}, trees: map[relational.Key]*tree{}}
	asked, starts, wanted := map[any]bool{}, 0, false
	once := func(what any, row func(relational.Record) (bool, error), text string, args ...driver.Value) error {
		if asked[what] {
			return nil
		}
		asked[what], wanted = true, true
		return t.look(row, text, args...)
	}
	if unknown := c.unknown(appends); len(unknown) > 0 {
		wanted = true
		c.lookForHeads(t, unknown)
	}
	for _, w := range appends {
		if w.rows[0].Create == nil {
			continue
		}
		starts++
		if w.rows[0].Key != nil {
			k := w.keyOf()
			if err := once(k, func(r relational.Record) (bool, error) {
				found.keys[k] = store.IdempotencyKey{Key: k.key, RequestHash: r[0].(string), Execution: r[1].(string),
					Created: r[2].(int64)}
				return false, nil
			}, `SELECT request_hash, execution_id, created FROM idempotency_keys WHERE workspace_id = ? AND user_id = ? AND key = ?`, k.workspace, k.user, k.key); err != nil {
				return nil, err
			}
		}
		if b := w.rows[0].Below; b != nil && c.db.shared {
			k := relational.Key{Workspace: w.key.Workspace, ID: b.Root}
			if err := once(struct{ root relational.Key }{k}, func(r relational.Record) (bool, error) {
				found.trees[k] = &tree{int(r[0].(int64)), r[1].(int64) > 0}
				return false, nil
			}, treeText, k.Workspace, k.ID, int64(b.Limit)); err != nil {
				return nil, err
			}
		}
		if k := w.workflow(); !c.tally.Alive(k) {
			if err := once(struct{ relational.Key }{k}, func(relational.Record) (bool, error) {
				found.gone[k] = true
				return false, nil
			}, `SELECT 1 FROM workflows WHERE workspace_id = ? AND id = ? AND deleted <> 0`, k.Workspace, k.ID); err != nil {
				return nil, err
			}
		}
	}
	if missing := starts - len(c.numbers); missing > 0 {
		wanted = true
		if err := t.look(func(r relational.Record) (bool, error) {
			c.numbers = append(c.numbers, r[0].(int64))
			return true, nil
		}, `SELECT nextval(pg_get_serial_sequence('executions', 'n')) FROM generate_series(1, ?)`, int64(max(missing, reserve))); err != nil {
			return nil, err
		}
	}
	if !wanted {
		return found, nil
	}
	_, err := t.flush()
	return found, err
}

// unknown are the executions of appends whose journals are not known to end anywhere, each once.
func (c *committer) unknown(appends []*work) (keys []relational.Key) {
	seen := make(map[relational.Key]bool, len(appends))
	for _, w := range appends {
		if !seen[w.key] && c.heads.Known(w.key) == nil {
			seen[w.key] = true
			keys = append(keys, w.key)
		}
	}
	return keys
}

// lookForHeads lets a statement wait that reads where journals end. Each execution is looked for by itself, in the index of their names,
// however few the server thinks there are.
func (c *committer) lookForHeads(t *transaction, keys []relational.Key) {
	workspaces, ids := make([]string, len(keys)), make([]string, len(keys))
	for i, k := range keys {
		workspaces[i], ids[i] = kept(k.Workspace), kept(k.ID)
	}
	t.addStatement(`SELECT sought_workspace, sought_id, n, (SELECT coalesce(max(seq), 0) FROM journal WHERE execution = n), `+summaries.SummaryColumns+`
		FROM unnest($1::text[], $2::text[]) AS sought (sought_workspace, sought_id)
		CROSS JOIN LATERAL (SELECT * FROM executions WHERE workspace_id = sought_workspace AND id = sought_id LIMIT 1) AS found`, workspaces, ids)
	t.waiting[len(t.waiting)-1].row = func(r relational.Record) (bool, error) {
		c.heads.Put(relational.Key{Workspace: r[0].(string), ID: r[1].(string)},
			&summaries.Head{N: r[2].(int64), Seq: uint64(r[3].(int64)), Summary: summaries.SummaryOf(r[4:])})
		return true, nil
	}
}

// append adds rows to the journal of an execution, with what comes with them. It refuses before it writes.
func (c *committer) append(t *transaction, w *work, found *looked) error {
	a, h := w.rows[0], c.heads.Known(w.key)
	switch {
	case a.Create != nil:
		var err error
		if h, err = c.create(t, w, h, found); err != nil {
			return err
		}
	case h == nil:
		return store.NotFound("execution", w.key.ID)
	case h.Seq != a.After:
		return fault.Newf(fault.Conflict, "execution %q is at row %d, not at %d: somebody else has gone on with it", w.key.ID, h.Seq, a.After)
	}
	for _, a := range w.rows {
		t.addRow(journalRow{h.N, int64(a.After + 1), w.key.Workspace, a.Time, bytes(a.Body)})
	}
	c.heads.Advance(w.key, h, w.rows)
	if err := c.tally.Change(t, w.key.Workspace, h, w.rows); err != nil {
		return err
	}
	for _, a := range w.rows {
		if err := company(t, w.key, h.N, a); err != nil {
			return err
		}
		if c.db.shared {
			if err := growTree(t, w.key.Workspace, h.N, a); err != nil {
				return err
			}
		}
	}
	return nil
}

// treeText counts the open executions below a root, up to the limit, and says whether it was canceled.
const treeText = `SELECT (SELECT count(*) FROM (SELECT 1 FROM families WHERE workspace_id = ?1 AND root = ?2 LIMIT ?3) AS f),
	(SELECT count(*) FROM canceled_roots WHERE execution = (SELECT n FROM executions WHERE workspace_id = ?1 AND id = ?2))`

// growTree notes what a row changes of the trees of executions: one begins in a tree, one has ended, one was canceled with all below it.
func growTree(t *transaction, workspace string, n int64, a *store.Append) error {
	if b := a.Below; b != nil && !a.Create.Status.Final() { // the first row may be the last
		if _, err := t.Exec(`INSERT INTO families (execution, workspace_id, root) VALUES (?, ?, ?)`, n, workspace, b.Root); err != nil {
			return err
		}
	}
	if a.CancelTree {
		if _, err := t.Exec(`INSERT INTO canceled_roots (execution) VALUES (?) ON CONFLICT DO NOTHING`, n); err != nil {
			return err
		}
	}
	if a.Change == nil || !a.Change.Status.Final() {
		return nil
	}
	if _, err := t.Exec(`DELETE FROM families WHERE execution = ?`, n); err != nil {
		return err
	}
	_, err := t.Exec(`DELETE FROM canceled_roots WHERE execution = ?`, n)
	return err
}

// create makes the summary of a new execution.
func (c *committer) create(t *transaction, w *work, h *summaries.Head, found *looked) (*summaries.Head, error) {
	a, workspace := w.rows[0], w.key.Workspace
	// The key comes first: repeating a start is an answer, not a conflict.
	if a.Key != nil {
		if used, ok := found.keys[w.keyOf()]; ok {
			return nil, &store.KeyUsedError{IdempotencyKey: used, Same: used.RequestHash == a.Key.RequestHash}
		}
	}
	if a.Arrival != nil {
		if err := triggers.Admit(t, workspace, a.Arrival); err != nil {
			return nil, err
		}
	}
	if h != nil {
		return nil, movedOn(w)
	}
	if k := w.workflow(); found.gone[k] {
		return nil, store.NotFound("workflow", k.ID)
	} else if !c.tally.Alive(k) {
		c.tally.Live(k)
	}
	if b := a.Below; b != nil && c.db.shared {
		in := found.trees[relational.Key{Workspace: workspace, ID: b.Root}]
		if err := b.Refuse(in.open, in.canceled); err != nil {
			return nil, err
		}
		if !a.Create.Status.Final() {
			in.open++
		}
	}
	n := c.numbers[0]
	c.numbers = c.numbers[1:]
	// The end of the transaction may be sent with it: only an error keeps the rest from being committed when the execution is there.
	if _, err := t.Exec(summaries.InsertText, summaries.InsertArgs(n, &c.same, workspace, w.rows)...); err != nil {
		return nil, err
	}
	h = c.heads.Create(w.key, n)
	c.tally.Begun(h, workspace, a.Create, a.Time)
	if a.Arrival != nil {
		if err := triggers.Arrive(t, workspace, w.key.ID, a.Arrival); err != nil {
			return nil, err
		}
	}
	if a.Key == nil {
		return h, nil
	}
	found.keys[w.keyOf()] = store.IdempotencyKey{Key: a.Key.Key, RequestHash: a.Key.RequestHash, Execution: w.key.ID, Created: a.Time}
	_, err := t.Exec(`INSERT INTO idempotency_keys (workspace_id, user_id, key, request_hash, execution_id, created) VALUES (?, ?, ?, ?, ?, ?)`,
		workspace, a.Create.User, a.Key.Key, a.Key.RequestHash, w.key.ID, a.Time)
	return h, err
}

// company writes what comes with a row besides the summary. Nothing of it reads, so that it is sent with the row; what asks people is the
// exception.
func company(t *transaction, key relational.Key, n int64, a *store.Append) error {
	for _, id := range a.ClearTimers {
		if _, err := t.Exec(`DELETE FROM timers WHERE execution = ? AND id = ?`, n, id); err != nil {
			return err
		}
	}
	for _, timer := range a.SetTimers {
		if _, err := t.Exec(`INSERT INTO timers (execution, id, workspace_id, execution_id, until) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (execution, id) DO UPDATE SET until = excluded.until`, n, timer.ID, key.Workspace, key.ID, timer.Until); err != nil {
			return err
		}
	}
	for _, id := range a.TakeInbox {
		if err := inbox.Take(t, n, id); err != nil {
			return err
		}
	}
	for i := range a.Deliver {
		if err := deliver(t, key.Workspace, &a.Deliver[i]); err != nil {
			return err
		}
	}
	if s := a.Snapshot; s != nil {
		if _, err := t.Exec(`INSERT INTO snapshots (execution, workspace_id, seq, body) VALUES (?, ?, ?, ?)
			ON CONFLICT (execution) DO UPDATE SET seq = excluded.seq, body = excluded.body`, n, key.Workspace, int64(s.Seq), bytes(s.Body)); err != nil {
			return err
		}
	}
	for i := range a.Logs {
		if err := keepLine(t, key.Workspace, n, &a.Logs[i]); err != nil {
			return err
		}
	}
	for _, e := range a.OpenLedger {
		if err := spending.Enter(t, key.Workspace, e); err != nil {
			return err
		}
	}
	for _, s := range a.SettleLedger {
		if _, err := t.Exec(`UPDATE ledger SET tokens = ?, cost = ?, open = 0 WHERE workspace_id = ? AND id = ? AND open <> 0`, s.Tokens, s.Cost, key.Workspace, s.ID); err != nil {
			return err
		}
	}
	if asks(a) {
		return questions.Append(t, key, a)
	}
	return nil
}

// deliver puts a message into the inbox of another execution. One that came before, or for an execution that is not there, is passed over.
func deliver(t *transaction, workspace string, item *store.InboxItem) error {
	var dedup driver.Value
	if item.Dedup != "" {
		dedup = item.Dedup
	}
	_, err := t.Exec(`INSERT INTO inbox (workspace_id, execution, dedup, kind, time, body, taken)
		SELECT ?1, n, ?3, ?4, ?5, ?6, 0 FROM executions WHERE workspace_id = ?1 AND id = ?2
		ON CONFLICT (execution, dedup) WHERE dedup IS NOT NULL DO NOTHING`, workspace, item.Execution, dedup, item.Kind, item.Time, bytes(item.Body))
	return err
}

// keepLine keeps a line when its activation has room, and counts it either way.
func keepLine(t *transaction, workspace string, n int64, line *store.LogLine) error {
	_, err := t.Exec(`WITH c AS (
			INSERT INTO log_counts AS old (execution, activation, workspace_id, kept, dropped) VALUES (?2, ?3, ?1, 1, 0)
			ON CONFLICT (execution, activation) DO UPDATE SET
				kept = old.kept + CASE WHEN old.kept < ?9 THEN 1 ELSE 0 END,
				dropped = old.dropped + CASE WHEN old.kept < ?9 THEN 0 ELSE 1 END
			RETURNING dropped)
		INSERT INTO logs (workspace_id, execution, activation, node_id, time, level, message, context)
		SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8 FROM c WHERE dropped = 0`,
		workspace, n, line.Activation, line.NodeID, line.Time, int64(line.Level), line.Message, bytes(line.Context),
		int64(store.MaxLogLines))
	return err
}

// bytes is never NULL.
func bytes(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// pageSize is how many rows are read at once, so that a connection is not held while the caller works.
const pageSize = 500

// Rows implements [store.Journal].
func (j journal) Rows(ctx context.Context, p identity.Principal, execution string, after uint64) iter.Seq2[store.Row, error] {
	return func(yield func(store.Row, error) bool) {
		workspace, err := store.Scope(p)
		if err != nil {
			yield(store.Row{}, err)
			return
		}
		for {
			page, err := query(ctx, j.db,
				func(row pgx.CollectableRow) (r store.Row, err error) { return r, row.Scan(&r.Seq, &r.Time, &r.Body) },
				`SELECT seq, time, body FROM journal WHERE execution = (SELECT n FROM executions WHERE workspace_id = $1 AND id = $2)
				AND seq > $3 AND workspace_id = $1 ORDER BY seq LIMIT $4`, workspace, execution, int64(min(after, 1<<62)), pageSize)
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
			if len(page) < pageSize {
				return
			}
		}
	}
}

// query reads all rows.
func query[T any](ctx context.Context, db *DB, scan pgx.RowToFunc[T], text string, args ...any) ([]T, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	rows, err := db.pool.Query(ctx, text, args...)
	if err != nil {
		return nil, db.readError(ctx, relational.ReadError(ctx, &serverError{err}))
	}
	all, err := pgx.AppendRows[T, []T](nil, rows, scan)
	if err != nil {
		return nil, db.readError(ctx, relational.ReadError(ctx, &serverError{err}))
	}
	return all, nil
}

// LastSnapshot implements [store.Journal].
func (j journal) LastSnapshot(ctx context.Context, p identity.Principal, execution string) (store.Snapshot, bool, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return store.Snapshot{}, false, err
	}
	all, err := query(ctx, j.db, func(row pgx.CollectableRow) (s store.Snapshot, err error) { return s, row.Scan(&s.Seq, &s.Body) },
		`SELECT seq, body FROM snapshots WHERE execution = (SELECT n FROM executions WHERE workspace_id = $1 AND id = $2) AND workspace_id = $1`, workspace, execution)
	if err != nil || len(all) == 0 {
		return store.Snapshot{}, false, err
	}
	return all[0], true, nil
}
