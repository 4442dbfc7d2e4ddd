package questions

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

// question is what a transaction has to know of an interaction to change it.
type question struct {
	n         int64
	execution string
	status    store.InteractionStatus
	version   int64
	approvers []string
}

// findQuestion finds an interaction within the transaction; nil: there is none.
func findQuestion(w relational.Transaction, workspace, id string) (*question, error) {
	var row [5]driver.Value
	found, err := w.Row(row[:], `SELECT n, execution_id, status, version, approvers FROM hil_interactions WHERE workspace_id = ? AND id = ?`, workspace, id)
	if err != nil || !found {
		return nil, err
	}
	q := &question{n: row[0].(int64), execution: row[1].(string), status: store.InteractionStatus(row[2].(string)), version: row[3].(int64)}
	q.approvers, err = textsOf([]byte(row[4].(string)))
	return q, err
}

// Append writes what a row of a journal asks of people, withdraws, and what it pauses and resumes.
func Append(w relational.Transaction, key relational.Key, a *store.Append) error {
	for _, user := range a.Requesters {
		// The version counts: an answer at this moment is looked at again.
		name := quoted(user)
		for _, of := range []string{"execution_id", "root_id <> execution_id AND root_id"} { // as the indexes have them
			if _, err := w.Exec(`UPDATE hil_interactions SET version = version + 1,
				requesters = CASE requesters WHEN '[]' THEN '[' || ? || ']' ELSE substr(requesters, 1, length(requesters) - 1) || ',' || ? || ']' END
				WHERE workspace_id = ? AND `+of+` = ? AND status = 'pending' AND instr(requesters, ?) = 0`, name, name, key.Workspace, key.ID, name); err != nil {
				return err
			}
		}
	}
	for i := range a.Ask {
		if err := ask(w, key, &a.Ask[i]); err != nil {
			return err
		}
	}
	for _, id := range a.Withdraw {
		if err := withdraw(w, key, id, a.Time); err != nil {
			return err
		}
	}
	for i := range a.PauseBelow {
		if err := pauseAgain(w, key, &a.PauseBelow[i]); err != nil {
			return err
		}
	}
	for i := range a.ResumeBelow {
		if err := resume(w, key, a.ResumeBelow[i].ID, &a.ResumeBelow[i]); err != nil {
			return err
		}
	}
	if a.Pause != nil {
		// One that is active was ended by whatever let the execution run until it was stopped again.
		if err := resumeOperator(w, key, &store.PauseEnd{Status: store.PauseResumed, Reason: store.ResumedByOperator,
			Time: a.Pause.Paused}); err != nil {
			return err
		}
		if err := begin(w, key, a.Pause); err != nil {
			return err
		}
	}
	if a.Resume != nil {
		return resumeOperator(w, key, a.Resume)
	}
	return nil
}

// ask opens a question and its pause.
func ask(w relational.Transaction, key relational.Key, i *store.Interaction) error {
	pause, err := i.Pause()
	if err != nil {
		return err
	}
	if added, err := enterQuestion(w, key, i); err != nil || !added {
		return err
	}
	return begin(w, key, &pause)
}

// enterQuestion enters a question, unless it is there already.
func enterQuestion(w relational.Transaction, key relational.Key, i *store.Interaction) (added bool, err error) {
	approvers, err := relational.Texts(i.Approvers)
	if err != nil {
		return false, err
	}
	requesters, err := relational.Texts(i.Requesters)
	if err != nil {
		return false, err
	}
	w.Grow(len(i.Request) + len(i.Progress))
	n, added, err := w.Insert(`INSERT INTO hil_interactions (workspace_id, id, workflow_id, execution_id, root_id, node_id, activation_id, ask_id, user_id,
		interaction_type, channel_type, purpose, status, priority, min_approvals, exclude_requester, attempt, credential_id, timeout_at, warning_sent,
		next_at, created_at, updated_at, version, arguments_hash, approvers, request_data, response_data, progress, requesters)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?) ON CONFLICT (workspace_id, id) DO NOTHING RETURNING n`,
		key.Workspace, i.ID, i.WorkflowID, key.ID, i.Root, i.Node, i.Activation, i.Ask, i.User,
		i.Type, i.Channel, i.Purpose, int64(i.Priority), int64(i.MinApprovals), relational.Flag(i.ExcludeRequester), int64(i.Attempt),
		i.Credential, i.TimeoutAt, relational.Flag(i.WarningSent),
		i.NextAt, i.Created, i.Updated, i.ArgumentsHash, approvers, []byte(i.Request), []byte(i.Response), []byte(i.Progress), requesters)
	if err != nil || !added {
		return false, err
	}
	return true, seat(w, key.Workspace, n, i.Approvers, false)
}

// Tell implements [store.Interactions].
func (x Questions) Tell(ctx context.Context, p identity.Principal, i store.Interaction) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	key := relational.Key{Workspace: workspace, ID: i.Execution}
	return x.db.Write(ctx, func(w relational.Transaction) error {
		_, known, err := w.Execution(key)
		if err == nil && !known {
			err = store.NotFound("execution", i.Execution)
		}
		if err != nil {
			return err
		}
		_, err = enterQuestion(w, key, &i)
		return err
	})
}

// seat enters who may answer a question, unseat takes them out.
func seat(w relational.Transaction, workspace string, n int64, approvers []string, ended bool) error {
	for _, a := range approvers {
		if _, err := w.Exec(`INSERT INTO hil_approvers (workspace_id, approver, ended, interaction) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`, workspace, a, relational.Flag(ended), n); err != nil {
			return err
		}
	}
	return nil
}

func unseat(w relational.Transaction, workspace string, n int64, approvers []string, ended bool) error {
	for _, a := range approvers {
		if _, err := w.Exec(`DELETE FROM hil_approvers WHERE workspace_id = ? AND approver = ? AND ended = ? AND interaction = ?`, workspace, a, relational.Flag(ended), n); err != nil {
			return err
		}
	}
	return nil
}

// reseat follows a change of who may answer, and of whether anybody can.
func reseat(w relational.Transaction, workspace string, q *question, approvers []string, status store.InteractionStatus) error {
	was, is := q.status != store.InteractionPending, status != store.InteractionPending
	if was == is && slices.Equal(q.approvers, approvers) {
		return nil
	}
	if err := unseat(w, workspace, q.n, q.approvers, was); err != nil {
		return err
	}
	return seat(w, workspace, q.n, approvers, is)
}

// listenFor notes further accounts that replies to a question come in by; with its end nobody has to listen for it any more.
func listenFor(w relational.Transaction, workspace string, q *question, accounts []store.Account, status store.InteractionStatus) error {
	if status != store.InteractionPending {
		if q.status == store.InteractionPending {
			_, err := w.Exec(`DELETE FROM hil_accounts WHERE interaction = ?`, q.n)
			return err
		}
		return nil
	}
	for _, a := range accounts {
		if _, err := w.Exec(`INSERT INTO hil_accounts (workspace_id, channel_type, credential_id, interaction) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			workspace, a.Channel, a.Credential, q.n); err != nil {
			return err
		}
	}
	return nil
}

// withdraw cancels a pending question of an execution.
func withdraw(w relational.Transaction, key relational.Key, id string, at int64) error {
	q, err := findQuestion(w, key.Workspace, id)
	if err != nil || q == nil || q.execution != key.ID || q.status != store.InteractionPending {
		return err
	}
	if _, err := w.Exec(`UPDATE hil_interactions SET status = ?, next_at = ?, updated_at = ?, version = version + 1 WHERE n = ?`,
		string(store.InteractionCancelled), max(at, 1), at, q.n); err != nil {
		return err
	}
	if err := reseat(w, key.Workspace, q, q.approvers, store.InteractionCancelled); err != nil {
		return err
	}
	if err := listenFor(w, key.Workspace, q, nil, store.InteractionCancelled); err != nil {
		return err
	}
	return resume(w, key, id, &store.PauseEnd{Status: store.PauseCanceled, Reason: store.ResumedByEnd, Time: at})
}

// begin begins a pause; one that is there stays as it is.
func begin(w relational.Transaction, key relational.Key, p *store.Pause) error {
	_, err := w.Exec(`INSERT INTO workflow_execution_pauses (workspace_id, id, execution_id, node_id, pause_reason, resume_conditions, pause_context,
		status, paused_at, resumed_at, resume_reason, resume_data) VALUES (?, ?, ?, ?, ?, ?, ?, 'active', ?, 0, '', x'') ON CONFLICT (workspace_id, id) DO NOTHING`,
		key.Workspace, p.ID, key.ID, p.Node, p.Reason, []byte(p.Conditions), []byte(p.Context), p.Paused)
	return err
}

// pauseAgain begins one, or lets one that has ended go on.
func pauseAgain(w relational.Transaction, key relational.Key, p *store.Pause) error {
	if err := begin(w, key, p); err != nil {
		return err
	}
	_, err := w.Exec(`UPDATE workflow_execution_pauses SET status = 'active', paused_at = ?, resumed_at = 0, resume_reason = '', resume_data = x''
		WHERE workspace_id = ? AND id = ? AND execution_id = ? AND status <> 'active'`, p.Paused, key.Workspace, p.ID, key.ID)
	return err
}

// resume ends a pause of an execution.
func resume(w relational.Transaction, key relational.Key, id string, e *store.PauseEnd) error {
	_, err := w.Exec(`UPDATE workflow_execution_pauses SET status = ?, resumed_at = ?, resume_reason = ?, resume_data = ?
		WHERE workspace_id = ? AND id = ? AND execution_id = ? AND status = 'active'`, string(e.Status), e.Time, e.Reason, []byte(e.Data), key.Workspace, id, key.ID)
	return err
}

// resumeOperator ends the one that an operator began.
func resumeOperator(w relational.Transaction, key relational.Key, e *store.PauseEnd) error {
	_, err := w.Exec(`UPDATE workflow_execution_pauses SET status = ?, resumed_at = ?, resume_reason = ?, resume_data = ?
		WHERE workspace_id = ? AND execution_id = ? AND pause_reason = 'operator' AND status = 'active'`,
		string(e.Status), e.Time, e.Reason, []byte(e.Data), key.Workspace, key.ID)
	return err
}

// Change implements [store.Interactions].
func (x Questions) Change(ctx context.Context, p identity.Principal, c store.InteractionChange) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	if err := c.Check(); err != nil {
		return err
	}
	approvers, err := relational.Texts(c.Interaction.Approvers)
	if err != nil {
		return err
	}
	return x.db.Write(ctx, func(w relational.Transaction) error {
		q, err := admitChange(w, workspace, &c)
		if err != nil {
			return err
		}
		return x.changeInteraction(w, workspace, q, &c, approvers)
	})
}

// admitChange refuses a change that is too late or cannot be, before anything is written.
func admitChange(w relational.Transaction, workspace string, c *store.InteractionChange) (*question, error) {
	i := &c.Interaction
	q, err := findQuestion(w, workspace, i.ID)
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
		if err := admitResponse(w, workspace, &c.Responses[n]); err != nil {
			return nil, err
		}
	}
	if o := c.Overrule; o != nil {
		found, err := w.Row(make([]driver.Value, 1), `SELECT 1 FROM hil_responses WHERE workspace_id = ? AND id = ? AND interaction_id = ?`, workspace, o.Response, i.ID)
		if err != nil {
			return nil, err
		}
		if !found {
			return nil, store.NotFound("response", o.Response)
		}
	}
	if c.UseLink != nil {
		var row [2]driver.Value
		found, err := w.Row(row[:], `SELECT reusable, used FROM hil_links WHERE hash = ? AND workspace_id = ? AND interaction_id = ?`, c.UseLink[:], workspace, i.ID)
		switch {
		case err != nil:
			return nil, err
		case !found:
			return nil, fault.Newf(fault.NotFound, "interaction %q has no such link", i.ID)
		case row[0].(int64) == 0 && row[1].(int64) != 0:
			return nil, fault.New(fault.Conflict, "the link was used before")
		}
	}
	if err := admitLinks(w, workspace, i.ID, c.Links); err != nil {
		return nil, err
	}
	if c.Deliver != nil {
		_, known, err := w.Execution(relational.Key{Workspace: workspace, ID: q.execution})
		if err == nil && !known {
			err = store.NotFound("execution", q.execution)
		}
		if err != nil {
			return nil, err
		}
	}
	return q, nil
}

// admitResponse refuses a reply that is recorded already.
func admitResponse(w relational.Transaction, workspace string, r *store.Response) error {
	known, err := w.Row(make([]driver.Value, 1), `SELECT 1 FROM hil_responses WHERE workspace_id = ? AND id = ?`, workspace, r.ID)
	if err == nil && !known && r.Dedup != "" {
		known, err = w.Row(make([]driver.Value, 1), `SELECT 1 FROM hil_responses WHERE workspace_id = ? AND channel_type = ? AND dedup = ? AND dedup <> ''`, workspace, r.Channel, r.Dedup)
	}
	if err == nil && known {
		err = fault.Newf(fault.Conflict, "response %q is recorded already", r.ID)
	}
	return err
}

// admitLinks refuses a link whose secret stands for something else.
func admitLinks(w relational.Transaction, workspace, interaction string, links []store.Link) error {
	for n := range links {
		taken, err := w.Row(make([]driver.Value, 1), `SELECT 1 FROM hil_links WHERE hash = ? AND NOT (workspace_id = ? AND interaction_id = ?)`,
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
func (x Questions) changeInteraction(w relational.Transaction, workspace string, q *question,
	c *store.InteractionChange, approvers string) error {
	i, key := &c.Interaction, relational.Key{Workspace: workspace, ID: q.execution}
	w.Grow(len(i.Response) + len(i.Progress))
	if _, err := w.Exec(`UPDATE hil_interactions SET status = ?, priority = ?, min_approvals = ?, timeout_at = ?, warning_sent = ?, next_at = ?,
		updated_at = ?, approvers = ?, response_data = ?, progress = ?, version = version + 1 WHERE n = ?`,
		string(i.Status), int64(i.Priority), int64(i.MinApprovals), i.TimeoutAt, relational.Flag(i.WarningSent), i.NextAt,
		i.Updated, approvers, []byte(i.Response), []byte(i.Progress), q.n); err != nil {
		return err
	}
	if err := reseat(w, workspace, q, i.Approvers, i.Status); err != nil {
		return err
	}
	if err := listenFor(w, workspace, q, c.Accounts, i.Status); err != nil {
		return err
	}
	if o := c.Overrule; o != nil {
		overruling, err := json.Marshal(o.Overruled)
		if err != nil {
			return err
		}
		if _, err := w.Exec(`UPDATE hil_responses SET accepted = 0, overruled_by = ?, overruling = ? WHERE workspace_id = ? AND id = ? AND interaction_id = ?`, o.By, overruling, workspace, o.Response, i.ID); err != nil {
			return err
		}
	}
	for n := range c.Responses {
		if err := respond(w, workspace, i.ID, &c.Responses[n]); err != nil {
			return err
		}
	}
	if c.UseLink != nil {
		if _, err := w.Exec(`UPDATE hil_links SET used = ? WHERE hash = ? AND reusable = 0`, max(i.Updated, 1), c.UseLink[:]); err != nil {
			return err
		}
	}
	if err := link(w, workspace, i.ID, c.Links); err != nil {
		return err
	}
	for n := range c.Deliveries {
		if err := send(w, workspace, i.ID, &c.Deliveries[n]); err != nil {
			return err
		}
	}
	if c.Resume != nil {
		if err := resume(w, key, i.ID, c.Resume); err != nil {
			return err
		}
	}
	if c.Deliver != nil {
		if _, _, err := x.deliver(w, key, c.Deliver); err != nil {
			return err
		}
	}
	return nil
}

func respond(w relational.Transaction, workspace, interaction string, r *store.Response) error {
	w.Grow(len(r.Raw) + len(r.Data))
	origin, err := json.Marshal(r.Origin)
	if err != nil {
		return err
	}
	_, err = w.Exec(`INSERT INTO hil_responses (workspace_id, id, interaction_id, user_id, address, channel_type, dedup, raw, response_data, received_at,
		relevance, score, factors, classification, reasoning, accepted, overruled_by, origin) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		workspace, r.ID, interaction, r.User, r.Address, r.Channel, r.Dedup, r.Raw, []byte(r.Data), r.ReceivedAt,
		r.Relevance, r.Score, []byte(r.Factors), r.Classification, r.Reasoning, relational.Flag(r.Accepted), r.OverruledBy, origin)
	return err
}

func link(w relational.Transaction, workspace, interaction string, links []store.Link) error {
	for n := range links {
		l := &links[n]
		origin, err := json.Marshal(l.Means)
		if err != nil {
			return err
		}
		if _, err := w.Exec(`INSERT INTO hil_links (hash, workspace_id, interaction_id, attempt, recipient, reusable, expires, used, created, origin)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (hash) DO NOTHING`,
			l.Hash[:], workspace, interaction, int64(l.Attempt), l.Recipient, relational.Flag(l.Reusable), l.Expires, l.Used,
			l.Created, origin); err != nil {
			return err
		}
	}
	return nil
}

func send(w relational.Transaction, workspace, interaction string, d *store.Delivery) error {
	status := d.Status
	if status == "" {
		status = store.DeliveryPending
	}
	w.Grow(len(d.Body))
	_, err := w.Exec(`INSERT INTO hil_deliveries (workspace_id, id, interaction_id, kind, channel_type, recipient, status, attempts, next_at, error,
		created_at, updated_at, body, receipt) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (workspace_id, id) DO NOTHING`,
		workspace, d.ID, interaction, d.Kind, d.Channel, d.Recipient, string(status), int64(d.Attempts), d.NextAt, d.Error,
		d.Created, d.Updated, []byte(d.Body), []byte(d.Receipt))
	return err
}

// Delivered implements [store.Interactions].
func (x Questions) Delivered(ctx context.Context, p identity.Principal, d store.Delivery, links []store.Link, threads []string) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	switch d.Status {
	case store.DeliveryPending, store.DeliverySent, store.DeliveryFailed:
	default:
		return fault.Newf(fault.Invalid, "message %q: there is no status %q", d.ID, d.Status)
	}
	return x.db.Write(ctx, func(w relational.Transaction) error {
		var row [3]driver.Value
		found, err := w.Row(row[:], `SELECT n, interaction_id, channel_type FROM hil_deliveries WHERE workspace_id = ? AND id = ?`, workspace, d.ID)
		if err != nil {
			return err
		}
		if !found {
			return store.NotFound("message", d.ID)
		}
		interaction, channel := row[1].(string), row[2].(string)
		if err := admitLinks(w, workspace, interaction, links); err != nil {
			return err
		}
		if _, err := w.Exec(`UPDATE hil_deliveries SET status = ?, attempts = ?, next_at = ?, receipt = ?, error = ?, updated_at = ? WHERE n = ?`,
			string(d.Status), int64(d.Attempts), d.NextAt, []byte(d.Receipt), d.Error, d.Updated, row[0]); err != nil {
			return err
		}
		if err := link(w, workspace, interaction, links); err != nil {
			return err
		}
		for _, thread := range threads {
			if _, err := w.Exec(`INSERT INTO hil_threads (workspace_id, channel_type, thread, interaction_id) VALUES (?, ?, ?, ?)
				ON CONFLICT (workspace_id, channel_type, thread) DO UPDATE SET interaction_id = excluded.interaction_id`,
				workspace, channel, thread, interaction); err != nil {
				return err
			}
		}
		return nil
	})
}
