// Package questions has the tables of what people are asked: questions, answers, links, messages, pauses.
package questions

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/store/relational"
)

// Questions implements [store.Interactions].
type Questions struct {
	db      relational.Database
	deliver Deliver
}

// Deliver puts a message into the inbox of an execution, in a transaction.
type Deliver func(w relational.Transaction, to relational.Key, item *store.InboxItem) (id int64, duplicate bool, err error)

// New are those of a database, whose answers are delivered.
func New(db relational.Database, deliver Deliver) Questions { return Questions{db, deliver} }

// interactionColumns are those of hil_interactions i, with the name that the workflow had when the execution began.
const interactionColumns = `i.workspace_id, i.id, i.workflow_id,
	coalesce((SELECT e.workflow_name FROM executions e WHERE e.workspace_id = i.workspace_id AND e.id = i.execution_id), ''),
	i.execution_id, i.root_id, i.node_id, i.activation_id, i.ask_id, i.user_id, i.interaction_type, i.channel_type, i.purpose,
	i.status, i.priority, i.request_data, i.response_data, i.approvers, i.min_approvals, i.exclude_requester, i.arguments_hash,
	i.attempt, i.credential_id, i.timeout_at, i.warning_sent, i.progress, i.next_at, i.created_at, i.updated_at, i.version, i.requesters`

func scanInteraction(s relational.Scanner) (i store.Interaction, err error) {
	var request, response, approvers, progress, requesters []byte
	if err := s.Scan(&i.Workspace, &i.ID, &i.WorkflowID, &i.WorkflowName, &i.Execution, &i.Root, &i.Node, &i.Activation, &i.Ask, &i.User,
		&i.Type, &i.Channel, &i.Purpose, &i.Status, &i.Priority, &request, &response, &approvers, &i.MinApprovals, &i.ExcludeRequester,
		&i.ArgumentsHash, &i.Attempt, &i.Credential, &i.TimeoutAt, &i.WarningSent, &progress, &i.NextAt, &i.Created, &i.Updated,
		&i.Version, &requesters); err != nil {
		return i, err
	}
	i.Request, i.Response, i.Progress = relational.Raw(request), relational.Raw(response), relational.Raw(progress)
	if i.Approvers, err = textsOf(approvers); err != nil {
		return i, err
	}
	i.Requesters, err = textsOf(requesters)
	return i, err
}

// textsOf reads a list of texts; an empty one is none.
func textsOf(raw []byte) (list []string, err error) {
	err = json.Unmarshal(raw, &list)
	if len(list) == 0 {
		list = nil
	}
	return list, err
}

// unmarshal reads JSON that may be absent: rows from before there was such a column have none.
func unmarshal(b []byte, into any) error {
	if len(b) == 0 {
		return nil
	}
	return json.Unmarshal(b, into)
}

// Get implements [store.Interactions].
func (x Questions) Get(ctx context.Context, p identity.Principal, id string) (store.Interaction, error) {
	return relational.QueryOneIn(ctx, x.db, p, store.NotFound("interaction", id), `SELECT `+interactionColumns+` FROM hil_interactions i WHERE i.workspace_id = ? AND i.id = ?`,
		scanInteraction, id)
}

// List implements [store.Interactions].
func (x Questions) List(ctx context.Context, p identity.Principal, q store.InteractionQuery) (store.InteractionPage, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return store.InteractionPage{}, err
	}
	var page store.InteractionPage
	limit, offset := q.Page.Limits()
	page.Interactions, page.Total, err = relational.List(ctx, x.db, Listing(workspace, q), limit, offset, scanInteraction)
	return page, err
}

// Listing is where a query is read from.
func Listing(workspace string, q store.InteractionQuery) relational.Listing {
	table, f := interactionsOf(workspace, q)
	return relational.Listing{Table: table, Columns: interactionColumns, Order: interactionOrder, Filter: f}
}

const interactionOrder = `i.ended, i.priority DESC, i.age, i.n`

// interactionsOf is where a listing looks and for what. What narrows it most is looked up first, in an index of its own: a
// CROSS JOIN is never turned around by the planner.
func interactionsOf(workspace string, q store.InteractionQuery) (table string, f relational.Filter) {
	pending, ended := len(q.Statuses) == 0, len(q.Statuses) == 0
	for _, s := range q.Statuses {
		pending, ended = pending || s == store.InteractionPending, ended || s != store.InteractionPending
	}
	// half says that only those that have ended are wanted, or only those that have not.
	half := pending != ended
	table = "hil_interactions i"
	switch {
	case q.Execution != "" && q.Family:
		// Below an execution that somebody started is everything that names it as its root, also what nobody waits for; below
		// another one what was started by it and by those it has started.
		table = `(SELECT n FROM hil_interactions WHERE workspace_id = ? AND root_id = ? AND root_id <> execution_id
			UNION SELECT n FROM hil_interactions WHERE workspace_id = ? AND execution_id IN (
				WITH RECURSIVE family (id) AS (SELECT id FROM executions WHERE workspace_id = ? AND id = ? UNION
					SELECT e.id FROM family CROSS JOIN executions e ON e.workspace_id = ? AND e.parent = family.id AND e.parent <> '')
				SELECT id FROM family)) d CROSS JOIN hil_interactions i ON i.n = d.n`
		f.Args = append(f.Args, workspace, q.Execution, workspace, workspace, q.Execution, workspace)
	case q.Execution != "":
		table += " INDEXED BY hil_interactions_execution" // the order of listings does not help: few are of one execution
		f.Add("i.execution_id = ?", q.Execution)
	case len(q.Approvers) > 0:
		table = "(SELECT DISTINCT interaction AS n FROM hil_approvers WHERE workspace_id = ? AND approver IN (" + relational.Marks(len(q.Approvers)) + ")"
		f.Args = append(f.Args, workspace)
		for _, a := range q.Approvers {
			f.Args = append(f.Args, a)
		}
		if half {
			table += " AND ended = ?"
			f.Args = append(f.Args, relational.Flag(ended))
		}
		table += ") d CROSS JOIN hil_interactions i ON i.n = d.n"
	}
	f.Add("i.workspace_id = ?", workspace)
	if q.Execution != "" && len(q.Approvers) > 0 {
		args := []any{workspace}
		for _, a := range q.Approvers {
			args = append(args, a)
		}
		f.Add("EXISTS (SELECT 1 FROM hil_approvers a WHERE a.workspace_id = ? AND a.approver IN ("+relational.Marks(len(q.Approvers))+") AND a.ended = i.ended AND a.interaction = i.n)", args...)
	}
	if half {
		f.Add("i.ended = ?", relational.Flag(ended))
	}
	if ended && len(q.Statuses) > 0 {
		statuses := make([]any, len(q.Statuses))
		for n, s := range q.Statuses {
			statuses[n] = string(s)
		}
		f.In("i.status", statuses)
	}
	if q.NotOf != "" {
		f.Add("NOT (i.exclude_requester <> 0 AND (i.user_id = ? OR instr(i.requesters, ?) > 0))", q.NotOf, quoted(q.NotOf))
	}
	if q.NotAnsweredBy != "" {
		f.Add(`(i.ended <> 0 OR NOT EXISTS (SELECT 1 FROM hil_responses r
			WHERE r.workspace_id = i.workspace_id AND r.interaction_id = i.id AND r.user_id = ? AND r.accepted <> 0 AND r.overruled_by = ''))`, q.NotAnsweredBy)
	}
	if q.Purpose != "" {
		f.Add("i.purpose = ?", q.Purpose)
	}
	return table, f
}

// quoted is a text as it stands in a JSON list of texts.
func quoted(text string) string {
	raw, err := json.Marshal(text)
	if err != nil { // a text is always JSON
		return text
	}
	return string(raw)
}

// DueQuestions and DueMessages read what is due and the first of the rest, in one statement, so that nothing comes between.
const (
	DueQuestions = `SELECT * FROM (SELECT ` + interactionColumns + ` FROM hil_interactions i
			WHERE i.next_at <> 0 AND i.next_at <= ?1 AND (?3 OR i.workspace_id = ?4) ORDER BY i.next_at, i.workspace_id, i.n LIMIT ?2 + 1) AS d
		UNION ALL SELECT * FROM (SELECT ` + interactionColumns + ` FROM hil_interactions i
			WHERE i.next_at <> 0 AND i.next_at > ?1 AND (?3 OR i.workspace_id = ?4) ORDER BY i.next_at, i.workspace_id, i.n LIMIT 1) AS d`
	DueMessages = `SELECT * FROM (SELECT ` + deliveryColumns + ` FROM hil_deliveries
			WHERE status = 'pending' AND next_at <= ?1 AND (?3 OR workspace_id = ?4) ORDER BY next_at, workspace_id, n LIMIT ?2 + 1) AS d
		UNION ALL SELECT * FROM (SELECT ` + deliveryColumns + ` FROM hil_deliveries
			WHERE status = 'pending' AND next_at > ?1 AND (?3 OR workspace_id = ?4) ORDER BY next_at, workspace_id, n LIMIT 1) AS d`
)

// dueOf runs one of them.
func dueOf[T any](ctx context.Context, db relational.Database, p identity.Principal, text string, scan func(relational.Scanner) (T, error),
	at func(T) int64, now int64, limit int) (due []T, next int64, err error) {
	workspace, all, err := store.ScopeAll(p)
	if err != nil {
		return nil, 0, err
	}
	limit = max(limit, 0)
	found, err := relational.Query(ctx, db, text, scan, now, limit, all, workspace)
	if err != nil {
		return nil, 0, err
	}
	slices.SortStableFunc(found, func(a, b T) int { return cmp.Compare(at(a), at(b)) })
	for n, one := range found {
		if n == limit || at(one) > now {
			return found[:n], max(at(one), 1), nil
		}
	}
	return found, 0, nil
}

// Due implements [store.Interactions].
func (x Questions) Due(ctx context.Context, p identity.Principal, now int64, limit int) (due []store.Interaction, next int64, err error) {
	return dueOf(ctx, x.db, p, DueQuestions, scanInteraction, func(i store.Interaction) int64 { return i.NextAt }, now, limit)
}

// DueDeliveries implements [store.Interactions].
func (x Questions) DueDeliveries(ctx context.Context, p identity.Principal, now int64,
	limit int) (due []store.Delivery, next int64, err error) {
	return dueOf(ctx, x.db, p, DueMessages, scanDelivery, func(d store.Delivery) int64 { return d.NextAt }, now, limit)
}

// of reads what belongs to an interaction, which must be there.
func of[T any](ctx context.Context, x Questions, p identity.Principal, interaction, text string,
	scan func(relational.Scanner) (T, error)) ([]T, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return nil, err
	}
	all, err := relational.Query(ctx, x.db, text, scan, workspace, interaction)
	if err != nil || len(all) > 0 {
		return all, err
	}
	_, err = relational.QueryOne(ctx, x.db, store.NotFound("interaction", interaction), `SELECT n FROM hil_interactions WHERE workspace_id = ? AND id = ?`,
		func(s relational.Scanner) (n int64, err error) { return n, s.Scan(&n) }, workspace, interaction)
	return nil, err
}

// Responses implements [store.Interactions].
func (x Questions) Responses(ctx context.Context, p identity.Principal, interaction string) ([]store.Response, error) {
	return of(ctx, x, p, interaction, `SELECT id, interaction_id, user_id, address, channel_type, dedup, raw, response_data, received_at, relevance, score, factors,
		classification, reasoning, accepted, overruled_by, origin, overruling FROM hil_responses WHERE workspace_id = ? AND interaction_id = ? ORDER BY n`,
		func(s relational.Scanner) (r store.Response, err error) {
			var data, factors, origin, overruling []byte
			err = s.Scan(&r.ID, &r.Interaction, &r.User, &r.Address, &r.Channel, &r.Dedup, &r.Raw, &data, &r.ReceivedAt,
				&r.Relevance, &r.Score, &factors,
				&r.Classification, &r.Reasoning, &r.Accepted, &r.OverruledBy, &origin, &overruling)
			r.Data, r.Factors = relational.Raw(data), relational.Raw(factors)
			return r, cmp.Or(err, unmarshal(origin, &r.Origin), unmarshal(overruling, &r.Overruling))
		})
}

const deliveryColumns = `workspace_id, id, interaction_id, kind, channel_type, recipient, body, status, attempts, next_at, receipt, error, created_at, updated_at`

func scanDelivery(s relational.Scanner) (d store.Delivery, err error) {
	var body, receipt []byte
	err = s.Scan(&d.Workspace, &d.ID, &d.Interaction, &d.Kind, &d.Channel, &d.Recipient, &body, &d.Status, &d.Attempts, &d.NextAt, &receipt,
		&d.Error, &d.Created, &d.Updated)
	d.Body, d.Receipt = relational.Raw(body), relational.Raw(receipt)
	return d, err
}

// Deliveries implements [store.Interactions].
func (x Questions) Deliveries(ctx context.Context, p identity.Principal, interaction string) ([]store.Delivery, error) {
	return of(ctx, x, p, interaction, `SELECT `+deliveryColumns+` FROM hil_deliveries WHERE workspace_id = ? AND interaction_id = ? ORDER BY n`, scanDelivery)
}

// Link implements [store.Interactions].
func (x Questions) Link(ctx context.Context, p identity.Principal, hash identity.SecretHash) (store.Link, error) {
	if err := store.RequireSystem(p); err != nil {
		return store.Link{}, err
	}
	return relational.QueryOne(ctx, x.db, fault.New(fault.NotFound, "the link is unknown"),
		`SELECT workspace_id, interaction_id, attempt, recipient, reusable, expires, used, created, origin FROM hil_links WHERE hash = ?1 AND (?2 = '' OR workspace_id = ?2)`,
		func(s relational.Scanner) (store.Link, error) {
			l := store.Link{Hash: hash}
			var origin []byte
			if err := s.Scan(&l.Workspace, &l.Interaction, &l.Attempt, &l.Recipient, &l.Reusable, &l.Expires, &l.Used,
				&l.Created, &origin); err != nil {
				return l, err
			}
			return l, unmarshal(origin, &l.Means)
		}, hash[:], p.Workspace)
}

// Thread implements [store.Interactions].
func (x Questions) Thread(ctx context.Context, p identity.Principal, channel, thread string) (string, error) {
	return relational.QueryOneIn(ctx, x.db, p, store.NotFound("thread", thread), `SELECT interaction_id FROM hil_threads WHERE workspace_id = ? AND channel_type = ? AND thread = ?`,
		func(s relational.Scanner) (id string, err error) { return id, s.Scan(&id) }, channel, thread)
}

// Accounts implements [store.Interactions]. It goes from one account to the next, however many questions each has.
func (x Questions) Accounts(ctx context.Context, p identity.Principal) ([]store.Account, error) {
	workspace, all, err := store.ScopeAll(p)
	if err != nil {
		return nil, err
	}
	var accounts []store.Account
	for last := (store.Account{Workspace: workspace}); ; {
		found, err := relational.Query(ctx, x.db, nextAccount, func(s relational.Scanner) (a store.Account, err error) {
			return a, s.Scan(&a.Workspace, &a.Channel, &a.Credential)
		}, last.Workspace, last.Channel, last.Credential)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return accounts, nil
		}
		last = slices.MinFunc(found, func(a, b store.Account) int {
			return cmp.Or(cmp.Compare(a.Workspace, b.Workspace), cmp.Compare(a.Channel, b.Channel), cmp.Compare(a.Credential, b.Credential))
		})
		if !all && last.Workspace != workspace {
			return accounts, nil
		}
		accounts = append(accounts, last)
	}
}

// Unasked implements [store.Interactions].
func (x Questions) Unasked(ctx context.Context, p identity.Principal) ([]store.Ref, error) {
	workspace, all, err := store.ScopeAll(p)
	if err != nil {
		return nil, err
	}
	const unasked = `SELECT workspace_id, id FROM executions e WHERE final = 0 AND status = 'WAITING_FOR_HUMAN'
		AND NOT EXISTS (SELECT 1 FROM hil_interactions i WHERE i.workspace_id = e.workspace_id AND i.execution_id = e.id AND i.status = 'pending')`
	scan := func(s relational.Scanner) (r store.Ref, err error) { return r, s.Scan(&r.Workspace, &r.Execution) }
	if all {
		return relational.Query(ctx, x.db, unasked+` ORDER BY n`, scan)
	}
	return relational.Query(ctx, x.db, unasked+` AND workspace_id = ? ORDER BY n`, scan, workspace)
}

// nextAccount finds the account that follows one, as the first of three: of its channel, of its workspace, of the others. One
// comparison of all three columns would read through all rows of the account that it begins with.
const nextAccount = `SELECT * FROM (` + accountWhere + accountSame + `) AS d
	UNION ALL SELECT * FROM (` + accountWhere + accountChannel + `) AS d
	UNION ALL SELECT * FROM (` + accountWhere + accountWorkspace + `) AS d
	UNION ALL SELECT * FROM (` + chosenWhere + accountSame + `) AS d
	UNION ALL SELECT * FROM (` + chosenWhere + accountChannel + `) AS d
	UNION ALL SELECT * FROM (` + chosenWhere + accountWorkspace + `) AS d`

// The accounts of the questions themselves, and those that the people who are asked have chosen.
const (
	accountWhere     = `SELECT workspace_id, channel_type, credential_id FROM hil_interactions WHERE status = 'pending' AND credential_id <> ''`
	chosenWhere      = `SELECT workspace_id, channel_type, credential_id FROM hil_accounts WHERE credential_id <> ''`
	accountSame      = ` AND workspace_id = ?1 AND channel_type = ?2 AND credential_id > ?3` + accountFirst
	accountChannel   = ` AND workspace_id = ?1 AND channel_type > ?2` + accountFirst
	accountWorkspace = ` AND workspace_id > ?1` + accountFirst
	accountFirst     = ` ORDER BY workspace_id, channel_type, credential_id LIMIT 1`
)

// Pauses implements [store.Interactions].
func (x Questions) Pauses(ctx context.Context, p identity.Principal, execution string) ([]store.Pause, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return nil, err
	}
	all, err := relational.Query(ctx, x.db, `SELECT id, execution_id, node_id, pause_reason, resume_conditions, pause_context, status, paused_at, resumed_at, resume_reason, resume_data
		FROM workflow_execution_pauses WHERE workspace_id = ? AND execution_id = ? ORDER BY n`,
		func(s relational.Scanner) (w store.Pause, err error) {
			var conditions, about, data []byte
			err = s.Scan(&w.ID, &w.Execution, &w.Node, &w.Reason, &conditions, &about, &w.Status, &w.Paused,
				&w.Resumed, &w.ResumeReason, &data)
			w.Conditions, w.Context, w.ResumeData = relational.Raw(conditions), relational.Raw(about), relational.Raw(data)
			return w, err
		}, workspace, execution)
	if err != nil || len(all) > 0 {
		return all, err
	}
	_, err = relational.QueryOne(ctx, x.db, store.NotFound("execution", execution), `SELECT 1 FROM executions WHERE workspace_id = ? AND id = ?`, relational.ScanInt, workspace, execution)
	return nil, err
}
