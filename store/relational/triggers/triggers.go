// Package triggers keeps deployments, registered triggers and their deliveries in the tables of the SQLite store.
//
// It knows these tables and the deployment of a workflow, and how a transaction comes about is not its concern. The SQLite store imports
// it.
package triggers

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"strings"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/store/relational"
)

// Triggers implements [store.Triggers].
type Triggers struct{ db relational.Database }

// New keeps triggers in a database.
func New(db relational.Database) *Triggers { return &Triggers{db} }

// AddTo sets what this package keeps in the stores of a database.
func AddTo(s *store.Stores, db relational.Database) { s.Triggers = New(db) }

const triggerColumns = `workspace_id, workflow_id, in_force, node_id, kind, revision, state, reason, next_due, created_at, updated_at, cursor, config`

func scanTrigger(s relational.Scanner) (t store.Trigger, err error) {
	var cursor, config []byte
	err = s.Scan(&t.Workspace, &t.WorkflowID, &t.InForce, &t.Node, &t.Kind, &t.Revision, &t.State, &t.Reason, &t.NextDue, &t.Created,
		&t.Updated, &cursor, &config)
	t.Config = relational.Raw(config)
	if len(cursor) > 0 {
		t.Cursor = cursor
	}
	return t, err
}

// Prepare implements [store.Triggers].
func (x *Triggers) Prepare(ctx context.Context, p identity.Principal, d store.Deployment) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	return x.db.Write(ctx, func(w relational.Transaction) error {
		pending, err := pendingRevision(w, workspace, d.WorkflowID)
		if err != nil {
			return err
		}
		if pending != 0 {
			return fault.Newf(fault.Conflict, "revision %d of workflow %q is being deployed; wait until that has ended", pending, d.WorkflowID)
		}
		if _, err := w.Exec(`UPDATE workflows SET deployment_status = ?, deployment_error = '', pending_revision = ? WHERE workspace_id = ? AND id = ?`,
			string(store.DeploymentPending), d.Revision, workspace, d.WorkflowID); err != nil {
			return err
		}
		if _, err := w.Exec(`DELETE FROM triggers WHERE workspace_id = ? AND workflow_id = ? AND in_force = 0`, workspace, d.WorkflowID); err != nil {
			return err
		}
		if d.By != "" {
			if _, err := w.Exec(`INSERT INTO deployers (workspace_id, workflow_id, revision, user_id) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`, workspace, d.WorkflowID, d.Revision, d.By); err != nil {
				return err
			}
		}
		for i := range d.Triggers {
			t := d.Triggers[i]
			t.State, t.InForce, t.NextDue = store.TriggerPending, false, 0
			if err := putTrigger(w, workspace, &d, &t); err != nil {
				return err
			}
		}
		return nil
	})
}

// pendingRevision is the revision of a workflow that is being deployed; zero: none.
func pendingRevision(w relational.Transaction, workspace, workflow string) (int64, error) {
	var row [1]driver.Value
	found, err := w.Row(row[:], `SELECT pending_revision FROM workflows WHERE workspace_id = ? AND id = ? AND deleted = 0`, workspace, workflow)
	if err != nil {
		return 0, err
	}
	if !found {
		return 0, store.NotFound("workflow", workflow)
	}
	return row[0].(int64), nil
}

func putTrigger(w relational.Transaction, workspace string, d *store.Deployment, t *store.Trigger) error {
	w.Grow(len(t.Config) + len(t.Cursor))
	_, err := w.Exec(`INSERT INTO triggers (`+triggerColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		workspace, d.WorkflowID, relational.Flag(t.InForce), t.Node, t.Kind, d.Revision, string(t.State), t.Reason, t.NextDue, d.Time,
		d.Time, t.Cursor, []byte(t.Config))
	return err
}

// Registered implements [store.Triggers].
func (x *Triggers) Registered(ctx context.Context, p identity.Principal, workflow, node string,
	state store.TriggerState, reason string) error {
	missing := fault.Newf(fault.NotFound, "workflow %q has no trigger %q that is being registered", workflow, node)
	return relational.ChangeOneIn(ctx, x.db, p, missing, `UPDATE triggers SET state = ?, reason = ? WHERE workflow_id = ? AND in_force = 0 AND node_id = ? AND workspace_id = ?`,
		string(state), reason, workflow, node)
}

// PutInForce implements [store.Triggers].
func (x *Triggers) PutInForce(ctx context.Context, p identity.Principal, d store.Deployment) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	return x.db.Write(ctx, func(w relational.Transaction) error {
		pending, err := pendingRevision(w, workspace, d.WorkflowID)
		if err != nil {
			return err
		}
		if pending != d.Revision {
			return fault.Newf(fault.Conflict, "revision %d of workflow %q is not being deployed", d.Revision, d.WorkflowID)
		}
		known, err := cursors(w, workspace, d.WorkflowID)
		if err != nil {
			return err
		}
		if _, err := w.Exec(`DELETE FROM triggers WHERE workspace_id = ? AND workflow_id = ?`, workspace, d.WorkflowID); err != nil {
			return err
		}
		for i := range d.Triggers {
			t := d.Triggers[i]
			t.State, t.Reason, t.InForce = store.TriggerActive, "", true
			if t.Cursor == nil {
				t.Cursor = known[t.Kind+" "+t.Node]
			}
			if err := putTrigger(w, workspace, &d, &t); err != nil {
				return err
			}
		}
		_, err = w.Exec(`UPDATE workflows SET deployment_status = ?, deployment_error = '', deployed_revision = ?, deployed_hash = ?, pending_revision = 0
			WHERE workspace_id = ? AND id = ?`, string(store.DeploymentDeployed), d.Revision, d.Hash, workspace, d.WorkflowID)
		return err
	})
}

// cursors are those of the triggers in force, by kind and node.
func cursors(w relational.Transaction, workspace, workflow string) (map[string][]byte, error) {
	known := map[string][]byte{}
	err := w.Rows(3, func(row []driver.Value) {
		if cursor, ok := row[2].([]byte); ok && len(cursor) > 0 {
			known[row[0].(string)+" "+row[1].(string)] = append([]byte(nil), cursor...)
		}
	}, `SELECT kind, node_id, cursor FROM triggers WHERE workspace_id = ? AND workflow_id = ? AND in_force = 1`, workspace, workflow)
	return known, err
}

// Fail implements [store.Triggers].
func (x *Triggers) Fail(ctx context.Context, p identity.Principal, workflow, reason string) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	return x.db.Write(ctx, func(w relational.Transaction) error {
		if _, err := pendingRevision(w, workspace, workflow); err != nil {
			return err
		}
		if _, err := w.Exec(`UPDATE workflows SET deployment_status = ?, deployment_error = ?, pending_revision = 0 WHERE workspace_id = ? AND id = ?`,
			string(store.DeploymentFailed), reason, workspace, workflow); err != nil {
			return err
		}
		_, err := w.Exec(`UPDATE triggers SET state = ?, reason = CASE reason WHEN '' THEN ? ELSE reason END WHERE workspace_id = ? AND workflow_id = ? AND in_force = 0`,
			string(store.TriggerFailed), reason, workspace, workflow)
		return err
	})
}

// Undeploy implements [store.Triggers].
func (x *Triggers) Undeploy(ctx context.Context, p identity.Principal, workflow string) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	return x.db.Write(ctx, func(w relational.Transaction) error {
		pending, err := pendingRevision(w, workspace, workflow)
		if err != nil {
			return err
		}
		if pending != 0 {
			return fault.Newf(fault.Conflict, "revision %d of workflow %q is being deployed; wait until that has ended", pending, workflow)
		}
		if _, err := w.Exec(`UPDATE workflows SET deployment_status = ?, deployment_error = '', deployed_revision = 0, deployed_hash = '' WHERE workspace_id = ? AND id = ?`,
			string(store.DeploymentUndeployed), workspace, workflow); err != nil {
			return err
		}
		return remove(w, workspace, workflow)
	})
}

// Forget removes the triggers of a workflow that is deleted. Its deliveries stay, without the ids that senders gave them.
func Forget(w relational.Transaction, workspace, workflow string) error {
	_, err := w.Exec(`UPDATE trigger_deliveries SET dedup = '' WHERE workspace_id = ? AND workflow_id = ? AND dedup <> ''`, workspace, workflow)
	if err != nil {
		return err
	}
	return remove(w, workspace, workflow)
}

// remove takes all triggers of a workflow away.
func remove(w relational.Transaction, workspace, workflow string) error {
	_, err := w.Exec(`DELETE FROM triggers WHERE workspace_id = ? AND workflow_id = ?`, workspace, workflow)
	return err
}

// Preparing implements [store.Triggers].
func (x *Triggers) Preparing(ctx context.Context, p identity.Principal) ([]store.Deployment, error) {
	workspace, all, err := store.ScopeAll(p)
	if err != nil {
		return nil, err
	}
	return relational.Query(ctx, x.db, `SELECT w.workspace_id, w.id, w.pending_revision, r.hash FROM workflows w CROSS JOIN revisions r
		ON r.workspace_id = w.workspace_id AND r.workflow_id = w.id AND r.number = w.pending_revision
		WHERE w.pending_revision <> 0 AND (? OR w.workspace_id = ?) ORDER BY w.workspace_id, w.id`,
		func(s relational.Scanner) (d store.Deployment, err error) {
			return d, s.Scan(&d.Workspace, &d.WorkflowID, &d.Revision, &d.Hash)
		}, all, workspace)
}

// List implements [store.Triggers].
func (x *Triggers) List(ctx context.Context, p identity.Principal, q store.TriggerQuery) (store.TriggerPage, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return store.TriggerPage{}, err
	}
	var f relational.Filter
	f.Add("workspace_id = ?", workspace)
	if q.WorkflowID != "" {
		f.Add("workflow_id = ?", q.WorkflowID)
	}
	if q.Kind != "" {
		f.Add("kind = ?", q.Kind)
	}
	if q.State != "" {
		f.Add("state = ?", string(q.State))
	}
	var page store.TriggerPage
	limit, offset := q.Page.Limits()
	page.Triggers, page.Total, err = relational.List(ctx, x.db,
		relational.Listing{Table: "triggers", Columns: triggerColumns, Order: "workflow_id, node_id, in_force DESC", Filter: f}, limit,
		offset, scanTrigger)
	return page, err
}

// DeployedBy implements [store.Triggers].
func (x *Triggers) DeployedBy(ctx context.Context, p identity.Principal, workflow string, revision int64) ([]string, error) {
	return relational.QueryIn(ctx, x.db, p, `SELECT user_id FROM deployers WHERE workspace_id = ? AND workflow_id = ? AND revision = ? ORDER BY user_id`,
		func(s relational.Scanner) (user string, err error) { return user, s.Scan(&user) }, workflow, revision)
}

// InForce implements [store.Triggers].
func (x *Triggers) InForce(ctx context.Context, p identity.Principal, workflow string) ([]store.Trigger, error) {
	return relational.QueryIn(ctx, x.db, p, `SELECT `+triggerColumns+` FROM triggers WHERE workspace_id = ? AND workflow_id = ? AND in_force = 1 ORDER BY node_id`, scanTrigger, workflow)
}

// OfKind implements [store.Triggers].
func (x *Triggers) OfKind(ctx context.Context, p identity.Principal, kind string) ([]store.Trigger, error) {
	workspace, all, err := store.ScopeAll(p)
	if err != nil {
		return nil, err
	}
	return relational.Query(ctx, x.db, `SELECT `+triggerColumns+` FROM triggers INDEXED BY triggers_kind WHERE in_force = 1 AND kind = ? AND (? OR workspace_id = ?) ORDER BY workspace_id, workflow_id, node_id`,
		scanTrigger, kind, all, workspace)
}

// Due implements [store.Triggers].
func (x *Triggers) Due(ctx context.Context, p identity.Principal, now int64, limit int) ([]store.Trigger, int64, error) {
	workspace, all, err := store.ScopeAll(p)
	if err != nil {
		return nil, 0, err
	}
	// One more than is wanted says when the next is due, whether its time has come or not.
	found, err := relational.Query(ctx, x.db, `SELECT `+triggerColumns+` FROM triggers INDEXED BY triggers_due
		WHERE next_due <> 0 AND in_force = 1 AND next_due <= ? AND (? OR workspace_id = ?) ORDER BY next_due, workspace_id LIMIT ?`, scanTrigger, now, all, workspace, limit)
	if err != nil || len(found) == limit {
		return found, now, err
	}
	next, err := relational.Query(ctx, x.db, `SELECT next_due FROM triggers INDEXED BY triggers_due WHERE next_due <> 0 AND in_force = 1 AND next_due > ? AND (? OR workspace_id = ?)
		ORDER BY next_due LIMIT 1`, relational.ScanInt, now, all, workspace)
	if err != nil || len(next) == 0 {
		return found, 0, err
	}
	return found, int64(next[0]), nil
}

// Move implements [store.Triggers].
func (x *Triggers) Move(ctx context.Context, p identity.Principal, t store.Trigger) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	return x.db.Write(ctx, func(w relational.Transaction) error {
		_, err := w.Exec(`UPDATE triggers SET cursor = ?, next_due = ?, updated_at = ? WHERE workspace_id = ? AND workflow_id = ? AND in_force = 1 AND node_id = ? AND revision = ?`,
			t.Cursor, t.NextDue, t.Updated, workspace, t.WorkflowID, t.Node, t.Revision)
		return err
	})
}

const deliveryColumns = `workspace_id, id, workflow_id, node_id, kind, revision, dedup, received_at, decision, reason, execution_id, attempts, next_at, replay_of, answered_by, payload_blob, payload_size, conversation`

func scanDeliveryLine(s relational.Scanner) (d store.TriggerDelivery, err error) {
	return d, s.Scan(&d.Workspace, &d.ID, &d.WorkflowID, &d.Node, &d.Kind, &d.Revision, &d.Key, &d.Received, &d.Decision, &d.Reason,
		&d.Execution, &d.Attempts, &d.NextAt,
		&d.ReplayOf, &d.AnsweredBy, &d.PayloadBlob, &d.PayloadSize, &d.Conversation)
}

func scanDelivery(s relational.Scanner) (d store.TriggerDelivery, err error) {
	var answer, payload []byte
	err = s.Scan(&d.Workspace, &d.ID, &d.WorkflowID, &d.Node, &d.Kind, &d.Revision, &d.Key, &d.Received, &d.Decision, &d.Reason,
		&d.Execution, &d.Attempts, &d.NextAt,
		&d.ReplayOf, &d.AnsweredBy, &d.PayloadBlob, &d.PayloadSize, &d.Conversation, &answer, &payload)
	d.Answer, d.Payload = relational.Raw(answer), relational.Raw(payload)
	return d, err
}

// Record implements [store.Triggers].
func (x *Triggers) Record(ctx context.Context, p identity.Principal, d store.TriggerDelivery, cursor []byte) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	if d.ID == "" || d.Decision == "" || d.Decision == store.DeliveryStarted {
		return fault.New(fault.Invalid, "a delivery that starts nothing needs an id and a decision")
	}
	var known error // what the transaction has to say and still be kept
	err = x.db.Write(ctx, func(w relational.Transaction) error {
		if err := checkInForce(w, workspace, &d, cursor); err != nil {
			return err
		}
		found, err := knownDelivery(w, workspace, &d)
		if err != nil {
			return err
		}
		known = nil
		if found != nil {
			known = &store.DeliveryKnownError{Delivery: *found}
		} else if err := insertDelivery(w, workspace, &d); err != nil {
			return err
		}
		return moveCursor(w, workspace, &d, cursor)
	})
	if err == nil {
		err = known
	}
	return err
}

// knownDelivery is the delivery that a trigger has taken with the key of another; nil: none.
func knownDelivery(w relational.Transaction, workspace string, d *store.TriggerDelivery) (*store.TriggerDelivery, error) {
	if d.Key == "" {
		return nil, nil
	}
	return deliveryWhere(w, `workflow_id = ? AND node_id = ? AND dedup = ? AND dedup <> '' AND workspace_id = ?`, d.WorkflowID, d.Node, d.Key, workspace)
}

func deliveryWhere(w relational.Transaction, condition string, args ...driver.Value) (*store.TriggerDelivery, error) {
	row := make(relational.Record, 18)
	found, err := w.Row(row, `SELECT `+deliveryColumns+` FROM trigger_deliveries WHERE `+condition, args...)
	if err != nil || !found {
		return nil, err
	}
	d, err := scanDeliveryLine(row)
	return &d, err
}

func insertDelivery(w relational.Transaction, workspace string, d *store.TriggerDelivery) error {
	w.Grow(len(d.Payload) + 512)
	_, err := w.Exec(`INSERT INTO trigger_deliveries (`+deliveryColumns+`, answer, payload) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		workspace, d.ID, d.WorkflowID, d.Node, d.Kind, d.Revision, d.Key, d.Received, string(d.Decision), d.Reason,
		d.Execution, int64(d.Attempts), d.NextAt,
		d.ReplayOf, d.AnsweredBy, d.PayloadBlob, d.PayloadSize, d.Conversation, []byte(d.Answer), []byte(d.Payload))
	return err
}

// checkInForce refuses a delivery with a cursor if its trigger is not in force with the same revision any more.
func checkInForce(w relational.Transaction, workspace string, d *store.TriggerDelivery, cursor []byte) error {
	if cursor == nil {
		return nil
	}
	var row [1]driver.Value
	found, err := w.Row(row[:], `SELECT revision FROM triggers WHERE workspace_id = ? AND workflow_id = ? AND in_force = 1 AND node_id = ? AND kind = ?`, workspace, d.WorkflowID, d.Node, d.Kind)
	if err != nil {
		return err
	}
	if !found || row[0].(int64) != d.Revision {
		return &store.SupersededError{Node: d.Node, Revision: d.Revision}
	}
	return nil
}

func moveCursor(w relational.Transaction, workspace string, d *store.TriggerDelivery, cursor []byte) error {
	if cursor == nil {
		return nil
	}
	_, err := w.Exec(`UPDATE triggers SET cursor = ?, updated_at = ? WHERE workspace_id = ? AND workflow_id = ? AND in_force = 1 AND node_id = ? AND kind = ?`,
		cursor, d.Received, workspace, d.WorkflowID, d.Node, d.Kind)
	return err
}

// Admit refuses the start for a delivery that has started something before, or whose trigger is no longer in force.
func Admit(w relational.Transaction, workspace string, a *store.Arrival) error {
	d := &a.Delivery
	if err := checkInForce(w, workspace, d, a.Cursor); err != nil {
		return err
	}
	if a.Stored {
		stored, err := deliveryWhere(w, `id = ? AND workspace_id = ?`, d.ID, workspace)
		switch {
		case err != nil:
			return err
		case stored == nil:
			return store.NotFound("delivery", d.ID)
		case stored.Decision != store.DeliveryAccepted:
			return &store.DeliveryKnownError{Delivery: *stored}
		}
		return nil
	}
	known, err := knownDelivery(w, workspace, d)
	if err == nil && known != nil {
		err = &store.DeliveryKnownError{Delivery: *known}
	}
	return err
}

// Arrive records the delivery that an execution is started for.
func Arrive(w relational.Transaction, workspace, execution string, a *store.Arrival) error {
	d := a.Delivery
	d.Decision, d.Reason, d.Execution, d.NextAt = store.DeliveryStarted, "", execution, 0
	if a.Stored {
		if _, err := w.Exec(`UPDATE trigger_deliveries SET decision = ?, reason = '', execution_id = ?, next_at = 0 WHERE workspace_id = ? AND id = ?`,
			string(d.Decision), execution, workspace, d.ID); err != nil {
			return err
		}
	} else if err := insertDelivery(w, workspace, &d); err != nil {
		return err
	}
	return moveCursor(w, workspace, &d, a.Cursor)
}

// Settle implements [store.Triggers].
func (x *Triggers) Settle(ctx context.Context, p identity.Principal, d store.TriggerDelivery) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	return x.db.Write(ctx, func(w relational.Transaction) error {
		stored, err := deliveryWhere(w, `id = ? AND workspace_id = ?`, d.ID, workspace)
		switch {
		case err != nil:
			return err
		case stored == nil:
			return store.NotFound("delivery", d.ID)
		case stored.Decision != store.DeliveryAccepted:
			return fault.Newf(fault.Conflict, "delivery %q is %s and stays so", d.ID, stored.Decision)
		}
		_, err = w.Exec(`UPDATE trigger_deliveries SET decision = ?, reason = ?, attempts = ?, next_at = ? WHERE workspace_id = ? AND id = ?`,
			string(d.Decision), d.Reason, int64(d.Attempts), d.NextAt, workspace, d.ID)
		return err
	})
}

// Delivery implements [store.Triggers].
func (x *Triggers) Delivery(ctx context.Context, p identity.Principal, id string) (store.TriggerDelivery, error) {
	return relational.QueryOneIn(ctx, x.db, p, store.NotFound("delivery", id), `SELECT `+deliveryColumns+`, answer, payload FROM trigger_deliveries WHERE workspace_id = ? AND id = ?`, scanDelivery, id)
}

// DeliveryOf implements [store.Triggers].
func (x *Triggers) DeliveryOf(ctx context.Context, p identity.Principal, execution string) (store.TriggerDelivery, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return store.TriggerDelivery{}, err
	}
	missing := fault.Newf(fault.NotFound, "no delivery of this workspace has started execution %q", execution)
	return relational.QueryOne(ctx, x.db, missing, `SELECT `+deliveryColumns+`, answer, payload FROM trigger_deliveries WHERE workspace_id = ? AND execution_id = ? AND execution_id <> ''`,
		scanDelivery, workspace, execution)
}

// Deliveries implements [store.Triggers].
func (x *Triggers) Deliveries(ctx context.Context, p identity.Principal, q store.DeliveryQuery) (store.DeliveryPage, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return store.DeliveryPage{}, err
	}
	var f relational.Filter
	f.Add("workspace_id = ?", workspace)
	for _, c := range []struct{ column, value string }{{"workflow_id", q.WorkflowID}, {"node_id", q.Node}, {"kind", q.Kind},
		{"execution_id", q.Execution}, {"dedup", q.Key}, {"conversation", q.Conversation}} {
		if c.value != "" {
			f.Add(c.column+" = ? AND "+c.column+" <> ''", c.value)
		}
	}
	if len(q.Decisions) > 0 {
		values := make([]any, len(q.Decisions))
		for i, d := range q.Decisions {
			values[i] = string(d)
		}
		f.Add("decision IN (?"+strings.Repeat(", ?", len(values)-1)+")", values...)
	}
	if q.Since > 0 {
		f.Add("received_at >= ?", q.Since)
	}
	if q.Until > 0 {
		f.Add("received_at < ?", q.Until)
	}
	var page store.DeliveryPage
	limit, offset := q.Page.Limits()
	page.Deliveries, page.Total, err = relational.List(ctx, x.db,
		relational.Listing{Table: "trigger_deliveries", Columns: deliveryColumns, Order: "n DESC", Filter: f},
		limit, offset, scanDeliveryLine)
	return page, err
}

// DueDeliveries implements [store.Triggers].
func (x *Triggers) DueDeliveries(ctx context.Context, p identity.Principal, now int64, limit int) ([]store.TriggerDelivery, int64, error) {
	workspace, all, err := store.ScopeAll(p)
	if err != nil {
		return nil, 0, err
	}
	found, err := relational.Query(ctx, x.db, `SELECT `+deliveryColumns+`, answer, payload FROM trigger_deliveries INDEXED BY trigger_deliveries_open
		WHERE decision = 'accepted' AND next_at <= ? AND (? OR workspace_id = ?) ORDER BY next_at, n LIMIT ?`, scanDelivery, now, all, workspace, limit)
	if err != nil || len(found) == limit {
		return found, now, err
	}
	next, err := relational.Query(ctx, x.db, `SELECT next_at FROM trigger_deliveries INDEXED BY trigger_deliveries_open WHERE decision = 'accepted' AND next_at > ? AND (? OR workspace_id = ?)
		ORDER BY next_at LIMIT 1`, relational.ScanInt, now, all, workspace)
	if err != nil || len(next) == 0 {
		return found, 0, err
	}
	return found, int64(next[0]), nil
}

// Answer implements [store.Triggers].
func (x *Triggers) Answer(ctx context.Context, p identity.Principal, execution, by string, answer json.RawMessage) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	if by == "" || len(answer) == 0 {
		return fault.New(fault.Invalid, "an answer needs the activation that gives it, and a body")
	}
	return x.db.Write(ctx, func(w relational.Transaction) error {
		d, err := deliveryWhere(w, `execution_id = ? AND execution_id <> '' AND workspace_id = ?`, execution, workspace)
		switch {
		case err != nil:
			return err
		case d == nil:
			return fault.Newf(fault.NotFound, "no delivery of this workspace has started execution %q", execution)
		case d.AnsweredBy == by:
			return nil
		case d.AnsweredBy != "":
			return &store.AnsweredError{By: d.AnsweredBy}
		}
		w.Grow(len(answer))
		_, err = w.Exec(`UPDATE trigger_deliveries SET answer = ?, answered_by = ? WHERE workspace_id = ? AND id = ?`, []byte(answer), by, workspace, d.ID)
		return err
	})
}
