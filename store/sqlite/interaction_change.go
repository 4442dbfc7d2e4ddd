package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"slices"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/store/relational"
)

// question is what the committer has to know of an interaction to change it.
type question struct {
	n         int64
	execution string
	status    store.InteractionStatus
	version   int64
	approvers []string
}

// question finds an interaction within the transaction; nil: there is none.
func (w *writer) question(workspace, id string) (*question, error) {
	var row [5]driver.Value
	found, err := w.c.row(row[:], `SELECT n, execution_id, status, version, approvers FROM hil_interactions WHERE workspace_id = ? AND id = ?`, workspace, id)
	if err != nil || !found {
		return nil, err
	}
	q := &question{n: row[0].(int64), execution: row[1].(string), status: store.InteractionStatus(row[2].(string)), version: row[3].(int64)}
	q.approvers, err = textsOf([]byte(row[4].(string)))
	return q, err
}

// people writes what an append means to people.
func (w *writer) people(key executionKey, a *store.Append) error {
	for _, user := range a.Requesters {
		// The version counts: who answers at this moment is looked at again.
		name := quoted(user)
		for _, of := range []string{"execution_id", "root_id <> execution_id AND root_id"} { // as the indexes have them
			if _, err := w.c.exec(`UPDATE hil_interactions SET version = version + 1,
				requesters = CASE requesters WHEN '[]' THEN '[' || ? || ']' ELSE substr(requesters, 1, length(requesters) - 1) || ',' || ? || ']' END
				WHERE workspace_id = ? AND `+of+` = ? AND status = 'pending' AND instr(requesters, ?) = 0`, name, name, key.workspace, key.id, name); err != nil {
				return err
			}
		}
	}
	for i := range a.Ask {
		if err := w.ask(key, &a.Ask[i]); err != nil {
			return err
		}
	}
	for _, id := range a.Withdraw {
		if err := w.withdraw(key, id, a.Time); err != nil {
			return err
		}
	}
	for i := range a.PauseBelow {
		if err := w.pauseAgain(key, &a.PauseBelow[i]); err != nil {
			return err
		}
	}
	for i := range a.ResumeBelow {
		if err := w.resume(key, a.ResumeBelow[i].ID, &a.ResumeBelow[i]); err != nil {
			return err
		}
	}
	if a.Pause != nil {
		// One that is active was ended by whatever let the execution run until it was stopped again.
		if err := w.resumeOperator(key, &store.PauseEnd{Status: store.PauseResumed, Reason: "operator", Time: a.Pause.Paused}); err != nil {
			return err
		}
		if err := w.pause(key, a.Pause); err != nil {
			return err
		}
	}
	if a.Resume != nil {
		return w.resumeOperator(key, a.Resume)
	}
	return nil
}

// ask opens a question and its pause.
func (w *writer) ask(key executionKey, i *store.Interaction) error {
	pause, err := i.Pause()
	if err != nil {
		return err
	}
	if added, err := w.enterQuestion(key, i); err != nil || !added {
		return err
	}
	return w.pause(key, &pause)
}

// enterQuestion enters a question, unless it is there already.
func (w *writer) enterQuestion(key executionKey, i *store.Interaction) (added bool, err error) {
	approvers, err := texts(i.Approvers)
	if err != nil {
		return false, err
	}
	requesters, err := texts(i.Requesters)
	if err != nil {
		return false, err
	}
	w.logged += len(i.Request) + len(i.Progress)
	r, err := w.c.exec(`INSERT INTO hil_interactions (workspace_id, id, workflow_id, execution_id, root_id, node_id, activation_id, ask_id, user_id,
		interaction_type, channel_type, purpose, status, priority, min_approvals, exclude_requester, attempt, credential_id, timeout_at, warning_sent,
		next_at, created_at, updated_at, version, arguments_hash, approvers, request_data, response_data, progress, requesters)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?) ON CONFLICT (workspace_id, id) DO NOTHING`,
		key.workspace, i.ID, i.WorkflowID, key.id, i.Root, i.Node, i.Activation, i.Ask, i.User,
		i.Type, i.Channel, i.Purpose, int64(i.Priority), int64(i.MinApprovals), relational.Flag(i.ExcludeRequester), int64(i.Attempt), i.Credential, i.TimeoutAt, relational.Flag(i.WarningSent),
		i.NextAt, i.Created, i.Updated, i.ArgumentsHash, approvers, []byte(i.Request), []byte(i.Response), []byte(i.Progress), requesters)
	if err != nil {
		return false, err
	}
	switch added, err := r.RowsAffected(); {
	case err != nil:
		return false, &dbError{err}
	case added == 0:
		return false, nil
	}
	n, err := r.LastInsertId()
	if err != nil {
		return false, &dbError{err}
	}
	return true, w.seat(key.workspace, n, i.Approvers, false)
}

// Tell implements [store.Interactions].
func (x interactions) Tell(ctx context.Context, p identity.Principal, i store.Interaction) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	key := executionKey{workspace, i.Execution}
	return x.db.writer.inTransaction(ctx, func(w *writer) error {
		h, err := w.heads.find(w.c, key)
		if err == nil && h == nil {
			err = store.NotFound("execution", i.Execution)
		}
		if err != nil {
			return err
		}
		_, err = w.enterQuestion(key, &i)
		return err
	})
}

// seat enters who may answer a question, unseat takes them out.
func (w *writer) seat(workspace string, n int64, approvers []string, ended bool) error {
	for _, a := range approvers {
		if _, err := w.c.exec(`INSERT OR IGNORE INTO hil_approvers (workspace_id, approver, ended, interaction) VALUES (?, ?, ?, ?)`, workspace, a, relational.Flag(ended), n); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) unseat(workspace string, n int64, approvers []string, ended bool) error {
	for _, a := range approvers {
		if _, err := w.c.exec(`DELETE FROM hil_approvers WHERE workspace_id = ? AND approver = ? AND ended = ? AND interaction = ?`, workspace, a, relational.Flag(ended), n); err != nil {
			return err
		}
	}
	return nil
}

// reseat follows a change of who may answer, and of whether anybody can.
func (w *writer) reseat(workspace string, q *question, approvers []string, status store.InteractionStatus) error {
	was, is := q.status != store.InteractionPending, status != store.InteractionPending
	if was == is && slices.Equal(q.approvers, approvers) {
		return nil
	}
	if err := w.unseat(workspace, q.n, q.approvers, was); err != nil {
		return err
	}
	return w.seat(workspace, q.n, approvers, is)
}

// listenFor notes further accounts that replies to a question come in by; with its end nobody has to listen for it any more.
func (w *writer) listenFor(workspace string, q *question, accounts []store.Account, status store.InteractionStatus) error {
	if status != store.InteractionPending {
		if q.status == store.InteractionPending {
			_, err := w.c.exec(`DELETE FROM hil_accounts WHERE interaction = ?`, q.n)
			return err
		}
		return nil
	}
	for _, a := range accounts {
		if _, err := w.c.exec(`INSERT OR IGNORE INTO hil_accounts (workspace_id, channel_type, credential_id, interaction) VALUES (?, ?, ?, ?)`,
			workspace, a.Channel, a.Credential, q.n); err != nil {
			return err
		}
	}
	return nil
}

// withdraw cancels a pending question of an execution.
func (w *writer) withdraw(key executionKey, id string, at int64) error {
	q, err := w.question(key.workspace, id)
	if err != nil || q == nil || q.execution != key.id || q.status != store.InteractionPending {
		return err
	}
	if _, err := w.c.exec(`UPDATE hil_interactions SET status = ?, next_at = ?, updated_at = ?, version = version + 1 WHERE n = ?`,
		string(store.InteractionCancelled), max(at, 1), at, q.n); err != nil {
		return err
	}
	if err := w.reseat(key.workspace, q, q.approvers, store.InteractionCancelled); err != nil {
		return err
	}
	if err := w.listenFor(key.workspace, q, nil, store.InteractionCancelled); err != nil {
		return err
	}
	return w.resume(key, id, &store.PauseEnd{Status: store.PauseCanceled, Reason: "canceled", Time: at})
}

// pause begins one; one that is there stays as it is.
func (w *writer) pause(key executionKey, p *store.Pause) error {
	_, err := w.c.exec(`INSERT INTO workflow_execution_pauses (workspace_id, id, execution_id, node_id, pause_reason, resume_conditions, pause_context,
		status, paused_at, resumed_at, resume_reason, resume_data) VALUES (?, ?, ?, ?, ?, ?, ?, 'active', ?, 0, '', x'') ON CONFLICT (workspace_id, id) DO NOTHING`,
		key.workspace, p.ID, key.id, p.Node, p.Reason, []byte(p.Conditions), []byte(p.Context), p.Paused)
	return err
}

// pauseAgain begins one, or lets one that has ended go on.
func (w *writer) pauseAgain(key executionKey, p *store.Pause) error {
	if err := w.pause(key, p); err != nil {
		return err
	}
	_, err := w.c.exec(`UPDATE workflow_execution_pauses SET status = 'active', paused_at = ?, resumed_at = 0, resume_reason = '', resume_data = x''
		WHERE workspace_id = ? AND id = ? AND execution_id = ? AND status <> 'active'`, p.Paused, key.workspace, p.ID, key.id)
	return err
}

// resume ends a pause of an execution.
func (w *writer) resume(key executionKey, id string, e *store.PauseEnd) error {
	_, err := w.c.exec(`UPDATE workflow_execution_pauses SET status = ?, resumed_at = ?, resume_reason = ?, resume_data = ?
		WHERE workspace_id = ? AND id = ? AND execution_id = ? AND status = 'active'`, string(e.Status), e.Time, e.Reason, []byte(e.Data), key.workspace, id, key.id)
	return err
}

// resumeOperator ends the one that an operator began.
func (w *writer) resumeOperator(key executionKey, e *store.PauseEnd) error {
	_, err := w.c.exec(`UPDATE workflow_execution_pauses SET status = ?, resumed_at = ?, resume_reason = ?, resume_data = ?
		WHERE workspace_id = ? AND execution_id = ? AND pause_reason = 'operator' AND status = 'active'`,
		string(e.Status), e.Time, e.Reason, []byte(e.Data), key.workspace, key.id)
	return err
}

// Change implements [store.Interactions].
func (x interactions) Change(ctx context.Context, p identity.Principal, c store.InteractionChange) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	if err := c.Check(); err != nil {
		return err
	}
	approvers, err := texts(c.Interaction.Approvers)
	if err != nil {
		return err
	}
	return x.db.writer.inTransaction(ctx, func(w *writer) error {
		q, err := w.admitChange(workspace, &c)
		if err != nil {
			return err
		}
		return w.changeInteraction(workspace, q, &c, approvers)
	})
}

// admitChange refuses a change that is too late or cannot be, before anything is written.
func (w *writer) admitChange(workspace string, c *store.InteractionChange) (*question, error) {
	i := &c.Interaction
	q, err := w.question(workspace, i.ID)
	switch {
	case err != nil:
		return nil, err
	case q == nil:
		return nil, store.NotFound("interaction", i.ID)
	case q.version != i.Version:
		return nil, fault.Newf(fault.Conflict, "interaction %q has changed since it was read: it is %s at version %d, not %d; read it again", i.ID, q.status, q.version, i.Version)
	case q.status != store.InteractionPending && q.status != i.Status:
		return nil, fault.Newf(fault.Conflict, "interaction %q has ended as %s and stays so", i.ID, q.status)
	}
	for n := range c.Responses {
		if err := w.admitResponse(workspace, &c.Responses[n]); err != nil {
			return nil, err
		}
	}
	if o := c.Overrule; o != nil {
		found, err := w.c.row(make([]driver.Value, 1), `SELECT 1 FROM hil_responses WHERE workspace_id = ? AND id = ? AND interaction_id = ?`, workspace, o.Response, i.ID)
		if err != nil {
			return nil, err
		}
		if !found {
			return nil, store.NotFound("response", o.Response)
		}
	}
	if c.UseLink != nil {
		var row [2]driver.Value
		found, err := w.c.row(row[:], `SELECT reusable, used FROM hil_links WHERE hash = ? AND workspace_id = ? AND interaction_id = ?`, c.UseLink[:], workspace, i.ID)
		switch {
		case err != nil:
			return nil, err
		case !found:
			return nil, fault.Newf(fault.NotFound, "interaction %q has no such link", i.ID)
		case row[0].(int64) == 0 && row[1].(int64) != 0:
			return nil, fault.New(fault.Conflict, "the link was used before")
		}
	}
	if err := w.admitLinks(workspace, i.ID, c.Links); err != nil {
		return nil, err
	}
	if c.Deliver != nil {
		h, err := w.heads.find(w.c, executionKey{workspace, q.execution})
		if err == nil && h == nil {
			err = store.NotFound("execution", q.execution)
		}
		if err != nil {
			return nil, err
		}
	}
	return q, nil
}

// admitResponse refuses a reply that is recorded already.
func (w *writer) admitResponse(workspace string, r *store.Response) error {
	known, err := w.c.row(make([]driver.Value, 1), `SELECT 1 FROM hil_responses WHERE workspace_id = ? AND id = ?`, workspace, r.ID)
	if err == nil && !known && r.Dedup != "" {
		known, err = w.c.row(make([]driver.Value, 1), `SELECT 1 FROM hil_responses WHERE workspace_id = ? AND channel_type = ? AND dedup = ? AND dedup <> ''`, workspace, r.Channel, r.Dedup)
	}
	if err == nil && known {
		err = fault.Newf(fault.Conflict, "response %q is recorded already", r.ID)
	}
	return err
}

// admitLinks refuses a link whose secret stands for something else.
func (w *writer) admitLinks(workspace, interaction string, links []store.Link) error {
	for n := range links {
		taken, err := w.c.row(make([]driver.Value, 1), `SELECT 1 FROM hil_links WHERE hash = ? AND NOT (workspace_id = ? AND interaction_id = ?)`,
			links[n].Hash[:], workspace, interaction)
		if err != nil {
			return err
		}
		if taken {
			return fault.New(fault.Conflict, "the secret of the link is taken; make another one")
		}
	}
	return nil
}

// changeInteraction writes a change that was admitted.
func (w *writer) changeInteraction(workspace string, q *question, c *store.InteractionChange, approvers string) error {
	i, key := &c.Interaction, executionKey{workspace, q.execution}
	w.logged += len(i.Response) + len(i.Progress)
	if _, err := w.c.exec(`UPDATE hil_interactions SET status = ?, priority = ?, min_approvals = ?, timeout_at = ?, warning_sent = ?, next_at = ?,
		updated_at = ?, approvers = ?, response_data = ?, progress = ?, version = version + 1 WHERE n = ?`,
		string(i.Status), int64(i.Priority), int64(i.MinApprovals), i.TimeoutAt, relational.Flag(i.WarningSent), i.NextAt,
		i.Updated, approvers, []byte(i.Response), []byte(i.Progress), q.n); err != nil {
		return err
	}
	if err := w.reseat(workspace, q, i.Approvers, i.Status); err != nil {
		return err
	}
	if err := w.listenFor(workspace, q, c.Accounts, i.Status); err != nil {
		return err
	}
	if o := c.Overrule; o != nil {
		overruling, err := json.Marshal(o.Overruled)
		if err != nil {
			return err
		}
		if _, err := w.c.exec(`UPDATE hil_responses SET accepted = 0, overruled_by = ?, overruling = ? WHERE workspace_id = ? AND id = ? AND interaction_id = ?`, o.By, overruling, workspace, o.Response, i.ID); err != nil {
			return err
		}
	}
	for n := range c.Responses {
		if err := w.respond(workspace, i.ID, &c.Responses[n]); err != nil {
			return err
		}
	}
	if c.UseLink != nil {
		if _, err := w.c.exec(`UPDATE hil_links SET used = ? WHERE hash = ? AND reusable = 0`, max(i.Updated, 1), c.UseLink[:]); err != nil {
			return err
		}
	}
	if err := w.link(workspace, i.ID, c.Links); err != nil {
		return err
	}
	for n := range c.Deliveries {
		if err := w.send(workspace, i.ID, &c.Deliveries[n]); err != nil {
			return err
		}
	}
	if c.Resume != nil {
		if err := w.resume(key, i.ID, c.Resume); err != nil {
			return err
		}
	}
	if c.Deliver != nil {
		if _, _, err := w.deliver(key, c.Deliver); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) respond(workspace, interaction string, r *store.Response) error {
	w.logged += len(r.Raw) + len(r.Data)
	origin, err := json.Marshal(r.Origin)
	if err != nil {
		return err
	}
	_, err = w.c.exec(`INSERT INTO hil_responses (workspace_id, id, interaction_id, user_id, address, channel_type, dedup, raw, response_data, received_at,
		relevance, score, factors, classification, reasoning, accepted, overruled_by, origin) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		workspace, r.ID, interaction, r.User, r.Address, r.Channel, r.Dedup, r.Raw, []byte(r.Data), r.ReceivedAt,
		r.Relevance, r.Score, []byte(r.Factors), r.Classification, r.Reasoning, relational.Flag(r.Accepted), r.OverruledBy, origin)
	return err
}

func (w *writer) link(workspace, interaction string, links []store.Link) error {
	for n := range links {
		l := &links[n]
		origin, err := json.Marshal(l.Means)
		if err != nil {
			return err
		}
		if _, err := w.c.exec(`INSERT INTO hil_links (hash, workspace_id, interaction_id, attempt, recipient, reusable, expires, used, created, origin)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (hash) DO NOTHING`,
			l.Hash[:], workspace, interaction, int64(l.Attempt), l.Recipient, relational.Flag(l.Reusable), l.Expires, l.Used, l.Created, origin); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) send(workspace, interaction string, d *store.Delivery) error {
	status := d.Status
	if status == "" {
		status = store.DeliveryPending
	}
	w.logged += len(d.Body)
	_, err := w.c.exec(`INSERT INTO hil_deliveries (workspace_id, id, interaction_id, kind, channel_type, recipient, status, attempts, next_at, error,
		created_at, updated_at, body, receipt) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (workspace_id, id) DO NOTHING`,
		workspace, d.ID, interaction, d.Kind, d.Channel, d.Recipient, string(status), int64(d.Attempts), d.NextAt, d.Error,
		d.Created, d.Updated, []byte(d.Body), []byte(d.Receipt))
	return err
}

// Delivered implements [store.Interactions].
func (x interactions) Delivered(ctx context.Context, p identity.Principal, d store.Delivery, links []store.Link, threads []string) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	switch d.Status {
	case store.DeliveryPending, store.DeliverySent, store.DeliveryFailed:
	default:
		return fault.Newf(fault.Invalid, "message %q: there is no status %q", d.ID, d.Status)
	}
	return x.db.writer.inTransaction(ctx, func(w *writer) error {
		var row [3]driver.Value
		found, err := w.c.row(row[:], `SELECT n, interaction_id, channel_type FROM hil_deliveries WHERE workspace_id = ? AND id = ?`, workspace, d.ID)
		if err != nil {
			return err
		}
		if !found {
			return store.NotFound("message", d.ID)
		}
		interaction, channel := row[1].(string), row[2].(string)
		if err := w.admitLinks(workspace, interaction, links); err != nil {
			return err
		}
		if _, err := w.c.exec(`UPDATE hil_deliveries SET status = ?, attempts = ?, next_at = ?, receipt = ?, error = ?, updated_at = ? WHERE n = ?`,
			string(d.Status), int64(d.Attempts), d.NextAt, []byte(d.Receipt), d.Error, d.Updated, row[0]); err != nil {
			return err
		}
		if err := w.link(workspace, interaction, links); err != nil {
			return err
		}
		for _, thread := range threads {
			if _, err := w.c.exec(`INSERT OR REPLACE INTO hil_threads (workspace_id, channel_type, thread, interaction_id) VALUES (?, ?, ?, ?)`,
				workspace, channel, thread, interaction); err != nil {
				return err
			}
		}
		return nil
	})
}
