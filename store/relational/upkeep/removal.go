package upkeep

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strings"
	"time"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/store/relational"
	"tandem/store/relational/blobnames"
)

// Bounds of one step of a removal: how many executions of a family, and how many rows of journals and logs.
const (
	maxRemovedFamily = 100
	maxRemovedRows   = 2000
)

// member is an execution of a family.
type member struct {
	n, created int64
	id, parent string
	workflow   string
}

// familyOf lists an execution with all that came of it, the deepest first. The one that was asked for is the last.
const familyOf = `WITH RECURSIVE family (id, depth) AS (SELECT id, 0 FROM executions WHERE workspace_id = ?1 AND id = ?2 UNION
		SELECT e.id, depth + 1 FROM family CROSS JOIN executions e ON e.workspace_id = ?1 AND e.parent = family.id AND e.parent <> '')
	SELECT n, e.id, parent, workflow_id, created FROM family CROSS JOIN executions e ON e.workspace_id = ?1 AND e.id = family.id ORDER BY depth DESC, n`

func scanMember(s relational.Scanner) (m member, err error) {
	return m, s.Scan(&m.n, &m.id, &m.parent, &m.workflow, &m.created)
}

// Remove implements [store.Upkeep].
func (x *Upkeep) Remove(ctx context.Context, p identity.Principal, r store.Removal) (removed store.Removed, err error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return removed, err
	}
	family, err := relational.Query(ctx, x.db, familyOf, scanMember, workspace, r.Execution)
	if err != nil {
		return removed, err
	}
	if len(family) == 0 {
		return removed, store.NotFound("execution", r.Execution)
	}
	if root := family[len(family)-1]; root.parent != "" {
		there, err := x.there(ctx, workspace, root.parent)
		if err != nil {
			return removed, err
		}
		if there {
			return removed, fault.Newf(fault.Conflict, "execution %q belongs to execution %q, which started it; remove that one, and this one goes with it", root.id, root.parent)
		}
	}
	for len(family) > 0 {
		part := family[:min(len(family), maxRemovedFamily)]
		family = family[len(part):]
		step := store.WithoutEntries(ctx)
		if len(family) == 0 {
			step = ctx // the one that was named goes now
		}
		var done store.Removed
		var scopes []int64
		err := x.write(step, func(w writing) error {
			done, scopes = store.Removed{}, nil
			for i := range part {
				if err := w.needed(workspace, &part[i]); err != nil {
					return err
				}
			}
			for i := range part {
				rows, gone, err := w.removeMember(workspace, &part[i], r)
				if err != nil {
					return err
				}
				done.Executions, done.Rows, scopes = done.Executions+1, done.Rows+rows, append(scopes, gone...)
			}
			return nil
		})
		if err != nil {
			return removed, err
		}
		x.o.Gone(scopes...)
		removed.Executions, removed.Rows = removed.Executions+done.Executions, removed.Rows+done.Rows
		for i := range part {
			removed.IDs = append(removed.IDs, part[i].id)
		}
	}
	return removed, nil
}

func (x *Upkeep) there(ctx context.Context, workspace, id string) (bool, error) {
	found, err := relational.Query(ctx, x.db, `SELECT 1 FROM executions WHERE workspace_id = ? AND id = ?`, scanInt, workspace, id)
	return len(found) > 0, err
}

// needed refuses to remove an execution that something still needs. Nothing was written yet for it.
func (w writing) needed(workspace string, m *member) error {
	var row [1]driver.Value
	for _, c := range []struct {
		text string
		args []driver.Value
		why  string
	}{
		{`SELECT status FROM executions WHERE n = ? AND final = 0`, []driver.Value{m.n}, "execution %q has not ended: it is %s; cancel it or wait"},
		{`SELECT id FROM executions WHERE workspace_id = ? AND forked_from = ? AND forked_from <> '' LIMIT 1`, []driver.Value{workspace, m.id}, "execution %q shares its past with its fork %q; remove that one first"},
		{`SELECT id FROM hil_interactions WHERE workspace_id = ? AND execution_id = ? AND status = 'pending' LIMIT 1`, []driver.Value{workspace, m.id}, "execution %q has a question that is open, %q; let it be answered or cancel it"},
		{`SELECT id FROM timers WHERE execution = ? LIMIT 1`, []driver.Value{m.n}, "execution %q has something left to do (%s); try again in a moment"},
	} {
		found, err := w.Row(row[:], c.text, c.args...)
		if err != nil {
			return err
		}
		if found {
			return fault.Newf(fault.Conflict, c.why, m.id, row[0])
		}
	}
	return nil
}

// removeMember removes one execution, and returns how many rows its journal had and the memories that went with it. Of one with a long
// journal the rest goes with [Upkeep.Finish]; nobody finds it any more.
func (w writing) removeMember(workspace string, m *member, r store.Removal) (rows int64, scopes []int64, err error) {
	there, err := w.Row(make([]driver.Value, 1), `SELECT 1 FROM executions WHERE n = ? AND workspace_id = ? AND id = ?`, m.n, workspace, m.id)
	if err != nil {
		return 0, nil, err
	}
	if !there {
		return 0, nil, store.NotFound("execution", m.id)
	}
	doubts := blobnames.Names{}
	if err := w.removeQuestions(workspace, m.id, doubts); err != nil {
		return 0, nil, err
	}
	if err := w.removeMentions(workspace, m, r, doubts); err != nil {
		return 0, nil, err
	}
	if scopes, err = w.x.o.RemoveMemories(w, workspace, m.id, r.Traces); err != nil {
		return 0, nil, err
	}
	if err := w.doubt(workspace, doubts); err != nil {
		return 0, nil, err
	}
	if _, err := w.Exec(`DELETE FROM drafts WHERE workspace_id = ? AND execution_id = ?`, workspace, m.id); err != nil {
		return 0, nil, err
	}
	if _, err := w.Exec(`INSERT INTO execution_counts (workspace_id, workflow_id, status, count) VALUES (?, ?, (SELECT status FROM executions WHERE n = ?), -1)
		ON CONFLICT (workspace_id, workflow_id, status) DO UPDATE SET count = execution_counts.count - 1`, workspace, m.workflow, m.n); err != nil {
		return 0, nil, err
	}
	if r.Retained {
		if _, err := w.Exec(`INSERT INTO upkeep_due (what, since) VALUES (?1, ?2) ON CONFLICT (what) DO UPDATE SET since = ?2`,
			dueEntries(workspace)+m.id, time.Now().UnixMilli()); err != nil {
			return 0, nil, err
		}
	}
	if m.parent == "" {
		if err := w.countRemoved(workspace, m.created); err != nil {
			return 0, nil, err
		}
	}
	// It belongs to nobody from here on, so that nobody finds it; its number is not used again before all of it has gone.
	if _, err := w.Exec(`UPDATE executions SET workspace_id = '', id = 'removed/' || n, parent = '', forked_from = '', conversation = '', workflow_id = '', workflow_name = '', error = '', user_id = '' WHERE n = ?`, m.n); err != nil {
		return 0, nil, err
	}
	w.Forget(workspace, m.id)
	rows, _, err = w.removeRows(m.n)
	return rows, scopes, err
}

// removeQuestions removes what people were asked by an execution, with their answers, links, messages and pauses.
func (w writing) removeQuestions(workspace, id string, doubts blobnames.Names) error {
	type question struct {
		n  int64
		id string
	}
	var list []question
	if err := w.Rows(5, func(row []driver.Value) {
		list = append(list, question{row[0].(int64), row[1].(string)})
		doubts.Find(row[2:]...)
	}, `SELECT n, id, request_data, response_data, progress FROM hil_interactions WHERE workspace_id = ? AND execution_id = ?`, workspace, id); err != nil {
		return err
	}
	for _, q := range list {
		for _, table := range []string{"hil_responses", "hil_deliveries"} {
			columns := map[string]string{"hil_responses": "raw, response_data", "hil_deliveries": "body, receipt"}[table]
			if err := w.Rows(2, func(row []driver.Value) { doubts.Find(row...) }, `SELECT `+columns+` FROM `+table+` WHERE workspace_id = ? AND interaction_id = ?`, workspace, q.id); err != nil {
				return err
			}
		}
		for _, table := range []string{"hil_responses", "hil_deliveries", "hil_links", "hil_threads"} {
			if _, err := w.Exec(`DELETE FROM `+table+` WHERE workspace_id = ? AND interaction_id = ?`, workspace, q.id); err != nil {
				return err
			}
		}
		if _, err := w.Exec(`DELETE FROM hil_approvers WHERE interaction = ?`, q.n); err != nil {
			return err
		}
		if _, err := w.Exec(`DELETE FROM hil_interactions WHERE n = ?`, q.n); err != nil {
			return err
		}
	}
	_, err := w.Exec(`DELETE FROM workflow_execution_pauses WHERE workspace_id = ? AND execution_id = ?`, workspace, id)
	return err
}

// removeMentions removes what other records say of an execution, or lets them say that it has gone.
func (w writing) removeMentions(workspace string, m *member, r store.Removal, doubts blobnames.Names) error {
	reason := r.Reason
	if r.Traces {
		if err := w.Rows(3, func(row []driver.Value) { doubts.Find(row...) }, `SELECT payload, answer, payload_blob FROM trigger_deliveries WHERE workspace_id = ? AND execution_id = ? AND execution_id <> ''`, workspace, m.id); err != nil {
			return err
		}
		if _, err := w.Exec(`UPDATE trigger_deliveries SET payload = x'', answer = x'', answered_by = '', payload_blob = '', payload_size = 0 WHERE workspace_id = ? AND execution_id = ? AND execution_id <> ''`, workspace, m.id); err != nil {
			return err
		}
	}
	if r.Traces {
		if _, err := w.Exec(`INSERT INTO upkeep_due (what, since) VALUES (?1, ?2) ON CONFLICT (what) DO UPDATE SET since = ?2`, dueCompact, time.Now().UnixMilli()); err != nil {
			return err
		}
	}
	for _, s := range []struct {
		text string
		args []driver.Value
	}{
		{`UPDATE trigger_deliveries SET reason = ? WHERE workspace_id = ? AND execution_id = ? AND execution_id <> ''`, []driver.Value{reason, workspace, m.id}},
		// A key was claimed at the moment at which its execution was made, and there is an index of that.
		{`DELETE FROM idempotency_keys WHERE created = ? AND workspace_id = ? AND execution_id = ?`, []driver.Value{m.created, workspace, m.id}},
		{`DELETE FROM budget_waits WHERE workspace_id = ? AND execution_id = ?`, []driver.Value{workspace, m.id}},
		{`DELETE FROM budget_raises WHERE workspace_id = ?1 AND (budget LIKE '%/execution/' || ?2 OR budget LIKE '%/execution\_cost/' || ?2 ESCAPE '\')`, []driver.Value{workspace, m.id}},
		// What it has spent still counts for its workflow, its profile and its day.
		{`INSERT INTO ledger (workspace_id, id, execution_id, workflow_id, profile, day, tokens, cost, open)
			SELECT workspace_id, 'removed/' || profile || '/' || workflow_id || '/' || day, '', workflow_id, profile, day, sum(tokens), sum(cost), 0
			FROM ledger WHERE workspace_id = ? AND execution_id = ? GROUP BY workspace_id, workflow_id, profile, day
			ON CONFLICT (workspace_id, id) DO UPDATE SET tokens = ledger.tokens + excluded.tokens, cost = ledger.cost + excluded.cost`, []driver.Value{workspace, m.id}},
		{`DELETE FROM ledger WHERE workspace_id = ? AND execution_id = ?`, []driver.Value{workspace, m.id}},
	} {
		if _, err := w.Exec(s.text, s.args...); err != nil {
			return err
		}
	}
	return nil
}

// countRemoved keeps the count of the executions that were started on a day, for the quotas.
func (w writing) countRemoved(workspace string, created int64) error {
	epoch := int64(0)
	if created >= w.x.o.Born {
		epoch = w.x.o.Epoch // this process has counted it
	}
	_, err := w.Exec(`INSERT INTO removed_starts (workspace_id, day, epoch, count) VALUES (?, ?, ?, 1) ON CONFLICT (workspace_id, day, epoch) DO UPDATE SET count = removed_starts.count + 1`,
		workspace, time.UnixMilli(created).UTC().Format(time.DateOnly), epoch)
	return err
}

// doubt notes large values that something named which has gone.
func (w writing) doubt(workspace string, names blobnames.Names) error {
	for name := range names { // order does not matter: each is a row of its own
		if _, err := w.Exec(`INSERT INTO blob_doubts (workspace_id, hash) VALUES (?, ?) ON CONFLICT (workspace_id, hash) DO NOTHING`, workspace, name); err != nil {
			return err
		}
	}
	return nil
}

// removeRows removes what is kept under the number of an execution, as much of it as one step may, and the execution itself once nothing is
// left. It returns how many rows of its journal have gone, and whether all has.
func (w writing) removeRows(n int64) (rows int64, all bool, err error) {
	names := map[string]blobnames.Names{}
	note := func(row []driver.Value) {
		workspace, _ := row[0].(string)
		if names[workspace] == nil {
			names[workspace] = blobnames.Names{}
		}
		names[workspace].Find(row[1:]...)
	}
	left := int64(maxRemovedRows)
	for _, j := range w.x.o.Journals {
		if err := w.Rows(2, note, `SELECT workspace_id, body FROM `+j.Table+` WHERE `+j.Some, j.Args(n, left)...); err != nil {
			return 0, false, err
		}
		gone, err := w.Change(`DELETE FROM `+j.Table+` WHERE `+j.Some, j.Args(n, left)...)
		if err != nil {
			return 0, false, err
		}
		rows, left = rows+gone, left-gone
	}
	w.Removed(rows, 0)
	for _, s := range []struct{ table, key, columns string }{
		{"logs", "id", "message, context"},
		{"inbox", "id", "body, kind"},
	} {
		some := s.key + ` IN (SELECT ` + s.key + ` FROM ` + s.table + ` WHERE execution = ? ORDER BY ` + s.key + ` LIMIT ?)`
		if err := w.Rows(3, note, `SELECT workspace_id, `+s.columns+` FROM `+s.table+` WHERE `+some, n, left); err != nil {
			return rows, false, err
		}
		gone, err := w.Change(`DELETE FROM `+s.table+` WHERE `+some, n, left)
		if err != nil {
			return rows, false, err
		}
		left -= gone
	}
	if err := w.Rows(2, note, `SELECT workspace_id, body FROM snapshots WHERE execution = ?`, n); err != nil {
		return rows, false, err
	}
	for workspace, found := range names { // order does not matter: each is a workspace of its own
		if err := w.doubt(workspace, found); err != nil {
			return rows, false, err
		}
	}
	for _, table := range []string{"snapshots", "timers", "log_counts"} {
		if _, err := w.Exec(`DELETE FROM `+table+` WHERE execution = ?`, n); err != nil {
			return rows, false, err
		}
	}
	if left == 0 {
		return rows, false, nil // there may be more
	}
	gone, err := w.Change(`DELETE FROM executions WHERE n = ?`, n)
	w.Removed(0, gone)
	return rows, true, err
}

// Finish implements [store.Upkeep].
func (x *Upkeep) Finish(ctx context.Context, p identity.Principal) (more bool, err error) {
	if err := store.RequireSystem(p); err != nil {
		return false, err
	}
	begun, err := relational.Query(ctx, x.db, `SELECT n FROM executions WHERE workspace_id = '' ORDER BY n LIMIT 1`, scanInt)
	if err != nil || len(begun) == 0 {
		return false, err
	}
	err = x.write(ctx, func(w writing) error {
		_, _, err := w.removeRows(begun[0])
		return err
	})
	return true, err
}

// dueEntries begins what is due for each execution that retention has removed: it is to be entered in the audit log. No other workspace's
// begins like this.
func dueEntries(workspace string) string {
	return fmt.Sprintf("retained/%d/%s/", len(workspace), workspace)
}

// EnterRetained implements [store.Upkeep].
func (x *Upkeep) EnterRetained(ctx context.Context, p identity.Principal, entry func(removed int64) store.AuditEntry) (int64, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return 0, err
	}
	from := dueEntries(workspace)
	before := strings.TrimSuffix(from, "/") + "0" // which comes after the slash
	removed, err := queryOne(ctx, x, `SELECT count(*) FROM upkeep_due WHERE what >= ? AND what < ?`, scanInt, from, before)
	if err != nil || removed == 0 {
		return 0, err
	}
	e := entry(removed)
	e.Workspace = workspace
	err = x.write(store.Audited(ctx, e), func(w writing) error {
		entered, err := w.Change(`DELETE FROM upkeep_due WHERE what >= ? AND what < ?`, from, before)
		if err == nil && entered != removed {
			err = fault.Newf(fault.Conflict, "%d executions were removed, and then %d; try again", removed, entered)
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	return removed, nil
}

// Removable implements [store.Upkeep].
func (x *Upkeep) Removable(ctx context.Context, p identity.Principal, q store.RetentionQuery) (ids []string, next int64, err error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return nil, 0, err
	}
	number := scanInt
	over := int64(0) // those up to this one are more than are kept
	if q.Keep > 0 {
		found, err := relational.Query(ctx, x.db, `SELECT n FROM executions INDEXED BY executions_listing WHERE workspace_id = ? AND final = 1 AND parent = '' ORDER BY n DESC LIMIT 1 OFFSET ?`, number, workspace, q.Keep)
		if err != nil {
			return nil, 0, err
		}
		if len(found) > 0 {
			over = found[0]
		}
	}
	until := over
	if q.Before > 0 {
		young, err := x.o.FirstSince(ctx, workspace, q.Before)
		if err != nil {
			return nil, 0, err
		}
		until = max(until, young)
	}
	type old struct {
		n  int64
		id string
	}
	found, err := relational.Query(ctx, x.db, `SELECT n, id FROM executions INDEXED BY executions_listing
		WHERE workspace_id = ?1 AND n > ?2 AND n <= ?3 AND final = 1 AND parent = '' AND (n <= ?4 OR ended < ?5) ORDER BY n LIMIT ?6`,
		func(s relational.Scanner) (o old, err error) { return o, s.Scan(&o.n, &o.id) }, workspace, q.After, until, over, q.Before, q.Limit)
	if err != nil {
		return nil, 0, err
	}
	for _, o := range found {
		ids = append(ids, o.id)
	}
	if len(found) == q.Limit {
		next = found[len(found)-1].n
	}
	return ids, next, nil
}

// RetainDeliveries implements [store.Upkeep].
func (x *Upkeep) RetainDeliveries(ctx context.Context, p identity.Principal, before, keep, young int64) (removed int, err error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return 0, err
	}
	const decided = ` AND decision <> 'accepted' AND received_at < ?`
	err = x.write(ctx, func(w writing) error {
		removed = 0
		over := int64(0)
		if keep > 0 {
			var row [1]driver.Value
			found, err := w.Row(row[:], `SELECT n FROM trigger_deliveries WHERE workspace_id = ? ORDER BY n DESC LIMIT 1 OFFSET ?`, workspace, keep)
			if err != nil {
				return err
			}
			if found {
				over = row[0].(int64)
			}
		}
		doubts := blobnames.Names{}
		var list []driver.Value
		if err := w.Rows(4, func(row []driver.Value) {
			list = append(list, row[0])
			doubts.Find(row[1:]...)
		}, `SELECT n, payload, answer, payload_blob FROM trigger_deliveries WHERE workspace_id = ?`+decided+` AND (n <= ? OR received_at < ?) ORDER BY n LIMIT ?`,
			workspace, young, over, before, int64(maxRemovedFamily)); err != nil {
			return err
		}
		for _, n := range list {
			if _, err := w.Exec(`DELETE FROM trigger_deliveries WHERE n = ?`, n); err != nil {
				return err
			}
		}
		removed = len(list)
		if removed == 0 {
			w.Unchanged()
		}
		return w.doubt(workspace, doubts)
	})
	return removed, err
}

// Expire implements [store.Upkeep].
func (x *Upkeep) Expire(ctx context.Context, p identity.Principal, before time.Time) (removed int, err error) {
	if err := store.RequireSystem(p); err != nil {
		return 0, err
	}
	at, day := before.UnixMilli(), before.UTC().Format(time.DateOnly)
	err = x.write(ctx, func(w writing) error {
		removed = 0
		for _, s := range []struct {
			text string
			args []driver.Value
		}{
			{`DELETE FROM invitations WHERE expires < ? AND accepted = 0`, []driver.Value{at}},
			{`DELETE FROM tokens WHERE expires > 0 AND expires < ?`, []driver.Value{at}},
			{`DELETE FROM token_uses WHERE NOT EXISTS (SELECT 1 FROM tokens t WHERE t.workspace_id = token_uses.workspace_id AND t.id = token_uses.token_id)`, nil},
			{`DELETE FROM removed_starts WHERE day < ?`, []driver.Value{day}},
			{`DELETE FROM execution_counts WHERE count = 0`, nil},
			{`DELETE FROM drafts WHERE created < ? AND NOT EXISTS (SELECT 1 FROM executions e WHERE e.workspace_id = drafts.workspace_id AND e.id = drafts.execution_id)`, []driver.Value{at}},
			{`DELETE FROM budget_raises WHERE created < ? AND (budget LIKE '%/day/%' OR budget LIKE '%/day\_cost/%' ESCAPE '\')`, []driver.Value{at}},
		} {
			gone, err := w.Change(s.text, s.args...)
			if err != nil {
				return err
			}
			removed += int(gone)
		}
		gone, err := w.sumUpLedger(day)
		removed += int(gone)
		return err
	})
	return removed, err
}

// sumUpLedger puts what removed executions have spent on days that no budget looks at any more into one entry for each workflow and
// profile.
func (w writing) sumUpLedger(before string) (int64, error) {
	const old = ` FROM ledger WHERE execution_id = '' AND day <> '' AND day < ? AND id LIKE 'removed/%'`
	if _, err := w.Exec(`INSERT INTO ledger (workspace_id, id, execution_id, workflow_id, profile, day, tokens, cost, open)
		SELECT workspace_id, 'removed/' || profile || '/' || workflow_id, '', workflow_id, profile, '', sum(tokens), sum(cost), 0`+old+` GROUP BY workspace_id, workflow_id, profile
		ON CONFLICT (workspace_id, id) DO UPDATE SET tokens = ledger.tokens + excluded.tokens, cost = ledger.cost + excluded.cost`, before); err != nil {
		return 0, err
	}
	return w.Change(`DELETE`+old, before)
}
