// Package definitions has the tables of what people define: workflows with their revisions and sources, drafts, templates of nodes,
// profiles of models.
package definitions

import (
	"bytes"
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"strings"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/store/relational"
	"tandem/workflow"
)

// Workflows implements [store.Workflows].
type Workflows struct {
	db   relational.Database
	gone func(w relational.Transaction, workspace, workflow string) error
}

// NewWorkflows are those of a database. Gone removes what belongs to a workflow that is deleted, in the transaction
// that does so.
func NewWorkflows(db relational.Database, gone func(w relational.Transaction, workspace, workflow string) error) *Workflows {
	return &Workflows{db, gone}
}

const workflowColumns = `workspace_id, id, name, description, icon_url, tags, version, parent, revision, revision_hash, deployment_status, deployment_error, deployed_revision,
	created_by, updated_by, token_made_by, created, updated, last_status, last_execution, total_runs, iif(ended_runs > 0, total_duration_ms / ended_runs, 0), total_credits, last_success`

func scanWorkflow(s relational.Scanner) (w store.Workflow, err error) {
	var tags []byte
	if err := s.Scan(&w.Workspace, &w.ID, &w.Name, &w.Description, &w.IconURL, &tags, &w.Version, &w.Parent, &w.Revision, &w.RevisionHash,
		&w.DeploymentStatus, &w.DeploymentError, &w.DeployedRevision,
		&w.CreatedBy, &w.UpdatedBy, &w.TokenMadeBy, &w.Created, &w.Updated, &w.LastStatus, &w.LastExecution, &w.Statistics.TotalRuns,
		&w.Statistics.AverageDurationMS, &w.Statistics.TotalCredits, &w.Statistics.LastSuccess); err != nil {
		return w, err
	}
	return w, json.Unmarshal(tags, &w.Tags)
}

// Save implements [store.Workflows].
func (x *Workflows) Save(ctx context.Context, p identity.Principal, s store.SaveWorkflow) (store.Workflow, bool, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return store.Workflow{}, false, err
	}
	if s.ID == "" || s.Hash == "" {
		return store.Workflow{}, false, fault.New(fault.Invalid, "save workflow: the id and the hash of the content are needed")
	}
	tags, err := relational.Texts(s.Tags)
	if err != nil {
		return store.Workflow{}, false, err
	}
	var created bool
	err = x.db.Write(ctx, func(w relational.Transaction) (err error) {
		created, err = saveWorkflow(w, workspace, p, tags, s)
		return err
	})
	if err != nil {
		return store.Workflow{}, false, err
	}
	saved, err := x.Get(ctx, p, s.ID)
	return saved, created, err
}

func saveWorkflow(w relational.Transaction, workspace string, p identity.Principal, tags string,
	s store.SaveWorkflow) (created bool, err error) {
	var row [3]driver.Value
	known, err := w.Row(row[:], `SELECT revision, revision_hash, deleted FROM workflows WHERE workspace_id = ? AND id = ?`, workspace, s.ID)
	if err != nil {
		return false, err
	}
	var number, deleted int64
	hash := ""
	if known {
		number, hash, deleted = row[0].(int64), row[1].(string), row[2].(int64)
	}
	visible := known && deleted == 0
	switch {
	case s.Expect < 0 && visible:
		return false, fault.Newf(fault.Conflict, "workflow %q exists already", s.ID)
	case s.Expect > 0 && (!visible || s.Expect != number):
		return false, fault.Newf(fault.Conflict, "workflow %q is at revision %d, not at %d; read it again", s.ID, number, s.Expect)
	}
	rewritten := false
	if hash == s.Hash {
		var added bool
		if rewritten, added, err = newSource(w, workspace, number, s); err != nil {
			return false, err
		}
		if visible && !rewritten {
			if !added {
				w.Unchanged()
			}
			return false, nil
		}
	}
	if hash != s.Hash || rewritten {
		created = true
		number++
		w.Grow(len(s.Definition))
		if _, err := w.Exec(`INSERT INTO revisions (workspace_id, workflow_id, number, hash, definition, created_by, token_made_by, created) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
			workspace, s.ID, number, s.Hash, s.Definition, p.User, p.TokenMadeBy(), s.Time); err != nil {
			return false, err
		}
		if err := saveSource(w, workspace, number, s); err != nil {
			return false, err
		}
	}
	search := strings.ToLower(s.ID + "\n" + s.Name + "\n" + s.Description)
	if !known {
		_, err = w.Exec(`INSERT INTO workflows (workspace_id, id, name, description, icon_url, tags, version, parent, search, revision, revision_hash,
			deployment_status, deployment_error, created_by, updated_by, token_made_by, created, updated, deleted, last_status, last_execution, total_runs, ended_runs, total_duration_ms, total_credits, last_success)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '', ?, ?, ?, ?, ?, 0, '', 0, 0, 0, 0, 0, 0)`,
			workspace, s.ID, s.Name, s.Description, s.IconURL, tags, s.Version, s.Parent, search, number, s.Hash,
			string(store.DeploymentDraft), p.User, p.User, p.TokenMadeBy(), s.Time, s.Time)
		return created, err
	}
	_, err = w.Exec(`UPDATE workflows SET name = ?, description = ?, icon_url = ?, tags = ?, version = ?, parent = ?, search = ?, revision = ?, revision_hash = ?,
		updated_by = ?, token_made_by = ?, updated = ?, deleted = 0 WHERE workspace_id = ? AND id = ?`,
		s.Name, s.Description, s.IconURL, tags, s.Version, s.Parent, search, number, s.Hash, p.User,
		p.TokenMadeBy(), s.Time, workspace, s.ID)
	return created, err
}

// newSource says whether the text of a definition that is the newest one already makes a revision of its own. One that has no text yet
// takes it.
func newSource(w relational.Transaction, workspace string, number int64, s store.SaveWorkflow) (rewritten, added bool, err error) {
	if len(s.Source.Text) == 0 {
		return false, false, nil
	}
	var row [1]driver.Value
	kept, err := w.Row(row[:], `SELECT source FROM revision_sources WHERE workspace_id = ? AND workflow_id = ? AND number = ?`, workspace, s.ID, number)
	if err != nil {
		return false, false, err
	}
	if !kept {
		return false, true, saveSource(w, workspace, number, s)
	}
	text, _ := row[0].([]byte)
	return s.Source.Format == string(workflow.YAML) && !bytes.Equal(text, s.Source.Text), false, nil
}

func saveSource(w relational.Transaction, workspace string, number int64, s store.SaveWorkflow) error {
	if len(s.Source.Text) == 0 {
		return nil
	}
	w.Grow(len(s.Source.Text))
	_, err := w.Exec(`INSERT INTO revision_sources (workspace_id, workflow_id, number, format, source) VALUES (?, ?, ?, ?, ?)`,
		workspace, s.ID, number, s.Source.Format, s.Source.Text)
	return err
}

// Source implements [store.Workflows].
func (x *Workflows) Source(ctx context.Context, p identity.Principal, id string, number int64) (store.Source, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return store.Source{}, err
	}
	missing := fault.Newf(fault.NotFound, "there is no revision %d of workflow %q in this workspace", number, id)
	return relational.QueryOne(ctx, x.db, missing, `SELECT coalesce(format, ''), coalesce(source, x'') FROM revisions LEFT JOIN revision_sources USING (workspace_id, workflow_id, number)
		WHERE workspace_id = ? AND workflow_id = ? AND number = ?`,
		func(s relational.Scanner) (source store.Source, err error) {
			if err = s.Scan(&source.Format, &source.Text); len(source.Text) == 0 {
				source.Text = nil
			}
			return source, err
		}, workspace, id, number)
}

// Get implements [store.Workflows].
func (x *Workflows) Get(ctx context.Context, p identity.Principal, id string) (store.Workflow, error) {
	return relational.QueryOneIn(ctx, x.db, p, store.NotFound("workflow", id), `SELECT `+workflowColumns+` FROM workflows WHERE workspace_id = ? AND id = ? AND deleted = 0`,
		scanWorkflow, id)
}

// Heading implements [store.Workflows].
func (x *Workflows) Heading(ctx context.Context, p identity.Principal, id string) (store.WorkflowHeading, error) {
	return relational.QueryOneIn(ctx, x.db, p, store.NotFound("workflow", id), `SELECT name, description, version, revision, revision_hash, deployment_status, deployed_revision, deployed_hash FROM workflows WHERE workspace_id = ? AND id = ? AND deleted = 0`,
		func(s relational.Scanner) (h store.WorkflowHeading, err error) {
			return h, s.Scan(&h.Name, &h.Description, &h.Version, &h.Revision, &h.RevisionHash, &h.DeploymentStatus,
				&h.DeployedRevision, &h.DeployedHash)
		}, id)
}

// List implements [store.Workflows].
func (x *Workflows) List(ctx context.Context, p identity.Principal, q store.WorkflowQuery) (store.WorkflowPage, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return store.WorkflowPage{}, err
	}
	var f relational.Filter
	f.Add("workspace_id = ? AND deleted = 0", workspace)
	if q.Text != "" {
		f.Add("instr(search, ?) > 0", strings.ToLower(q.Text))
	}
	if q.Name != "" {
		f.Add("name = ?", q.Name)
	}
	if q.Prefix != "" {
		f.Add("instr(id, ?) = 1", q.Prefix)
	}
	if q.NotPrefix != "" {
		f.Add("instr(id, ?) <> 1", q.NotPrefix)
	}
	if q.DeploymentStatus != "" {
		f.Add("deployment_status = ?", string(q.DeploymentStatus))
	}
	if q.Deployed {
		f.Add("deployed_revision <> 0")
	}
	for _, tag := range q.Tags {
		f.Add("EXISTS (SELECT 1 FROM json_each(tags) WHERE value = ?)", tag)
	}
	var page store.WorkflowPage
	limit, offset := q.Page.Limits()
	page.Workflows, page.Total, err = relational.List(ctx, x.db,
		relational.Listing{Table: "workflows", Columns: workflowColumns, Order: "updated DESC, id", Filter: f}, limit, offset, scanWorkflow)
	return page, err
}

const revisionColumns = `workspace_id, workflow_id, number, hash, created_by, token_made_by, created`

func scanRevisionLine(s relational.Scanner) (r store.Revision, err error) {
	return r, s.Scan(&r.Workspace, &r.WorkflowID, &r.Number, &r.Hash, &r.CreatedBy, &r.TokenMadeBy, &r.Created)
}

func scanRevision(s relational.Scanner) (r store.Revision, err error) {
	return r, s.Scan(&r.Workspace, &r.WorkflowID, &r.Number, &r.Hash, &r.CreatedBy, &r.TokenMadeBy, &r.Created, &r.Definition)
}

// Revision implements [store.Workflows].
func (x *Workflows) Revision(ctx context.Context, p identity.Principal, id string, number int64) (store.Revision, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return store.Revision{}, err
	}
	if number == 0 {
		return relational.QueryOne(ctx, x.db, store.NotFound("workflow", id), `SELECT `+revisionColumns+`, definition FROM revisions
			WHERE workspace_id = ?1 AND workflow_id = ?2 AND number = (SELECT revision FROM workflows WHERE workspace_id = ?1 AND id = ?2 AND deleted = 0)`,
			scanRevision, workspace, id)
	}
	missing := fault.Newf(fault.NotFound, "there is no revision %d of workflow %q in this workspace", number, id)
	return relational.QueryOne(ctx, x.db, missing, `SELECT `+revisionColumns+`, definition FROM revisions WHERE workspace_id = ? AND workflow_id = ? AND number = ?`,
		scanRevision, workspace, id, number)
}

// RevisionByHash implements [store.Workflows].
func (x *Workflows) RevisionByHash(ctx context.Context, p identity.Principal, id, hash string) (store.Revision, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return store.Revision{}, err
	}
	missing := fault.Newf(fault.NotFound, "there is no revision of workflow %q with hash %q in this workspace", id, hash)
	r, err := relational.QueryOne(ctx, x.db, missing, `SELECT `+revisionColumns+`, definition FROM revisions
		WHERE workspace_id = ? AND workflow_id = ? AND hash = ? ORDER BY number DESC LIMIT 1`, scanRevision, workspace, id, hash)
	if errors.Is(err, missing) {
		return relational.QueryOne(ctx, x.db, missing, `SELECT workspace_id, workflow_id, 0, hash, created_by, token_made_by, created, definition FROM drafts
			WHERE workspace_id = ? AND workflow_id = ? AND hash = ? LIMIT 1`, scanRevision, workspace, id, hash)
	}
	return r, err
}

// KeepDraft implements [store.Workflows].
func (x *Workflows) KeepDraft(ctx context.Context, p identity.Principal, d store.Draft) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	return x.db.Write(ctx, func(w relational.Transaction) error {
		w.Grow(len(d.Definition))
		_, err := w.Exec(`INSERT INTO drafts (workspace_id, execution_id, workflow_id, hash, definition, created_by, token_made_by, created) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
			workspace, d.Execution, d.WorkflowID, d.Hash, d.Definition, p.User, p.TokenMadeBy(), d.Time)
		return err
	})
}

// DropDraft implements [store.Workflows].
func (x *Workflows) DropDraft(ctx context.Context, p identity.Principal, execution string) error {
	return relational.ChangeOneIn(ctx, x.db, p, store.NotFound("draft", execution), `DELETE FROM drafts WHERE execution_id = ? AND workspace_id = ?`, execution)
}

// Revisions implements [store.Workflows].
func (x *Workflows) Revisions(ctx context.Context, p identity.Principal, id string, page store.Page) (store.RevisionPage, error) {
	if _, err := x.Get(ctx, p, id); err != nil {
		return store.RevisionPage{}, err
	}
	var f relational.Filter
	f.Add("workspace_id = ? AND workflow_id = ?", p.Workspace, id)
	var out store.RevisionPage
	var err error
	limit, offset := page.Limits()
	out.Revisions, out.Total, err = relational.List(ctx, x.db,
		relational.Listing{Table: "revisions", Columns: revisionColumns, Order: "number DESC", Filter: f}, limit, offset, scanRevisionLine)
	return out, err
}

// Delete implements [store.Workflows].
func (x *Workflows) Delete(ctx context.Context, p identity.Principal, id string, at int64) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	return x.db.Write(ctx, func(w relational.Transaction) error {
		found, err := w.Row(make([]driver.Value, 1), `SELECT 1 FROM workflows WHERE workspace_id = ? AND id = ? AND deleted = 0`, workspace, id)
		if err != nil {
			return err
		}
		if !found {
			return store.NotFound("workflow", id)
		}
		var row [1]driver.Value
		// By status, of which few are unfinished, not by workflow, of which there may be a million that are finished.
		if _, err := w.Row(row[:], `SELECT count(*) FROM executions WHERE workspace_id = ? AND +workflow_id = ?
			AND status IN ('NEW', 'PENDING', 'RUNNING', 'PAUSED', 'WAITING', 'WAITING_FOR_HUMAN')`, workspace, id); err != nil {
			return err
		}
		if n := row[0].(int64); n > 0 {
			return fault.Newf(fault.Conflict, "workflow %q has %d unfinished executions; cancel them or wait", id, n)
		}
		// Anyone who makes a workflow with this id again makes another one: what senders have called their requests to this one means
		// nothing to that.
		if _, err := w.Exec(`DELETE FROM idempotency_keys WHERE workspace_id = ?
			AND EXISTS (SELECT 1 FROM executions e WHERE e.workspace_id = idempotency_keys.workspace_id AND e.id = idempotency_keys.execution_id AND e.workflow_id = ?)`, workspace, id); err != nil {
			return err
		}
		if err := x.gone(w, workspace, id); err != nil {
			return err
		}
		_, err = w.Exec(`UPDATE workflows SET deleted = ?, deployment_status = ?, deployment_error = '', deployed_revision = 0, deployed_hash = '', pending_revision = 0 WHERE workspace_id = ? AND id = ?`,
			max(at, 1), string(store.DeploymentUndeployed), workspace, id)
		return err
	})
}

// Templates implements [store.Templates].
type Templates struct{ db relational.Database }

// NewTemplates are those of a database.
func NewTemplates(db relational.Database) Templates { return Templates{db} }

const templateColumns = `workspace_id, id, kind, name, known_params, override_input, override_output, created, updated`

func scanTemplate(s relational.Scanner) (t store.Template, err error) {
	var known, in, out []byte
	err = s.Scan(&t.Workspace, &t.ID, &t.Kind, &t.Name, &known, &in, &out, &t.Created, &t.Updated)
	t.KnownParams, t.OverrideInput, t.OverrideOutput = known, in, out
	for _, raw := range []*json.RawMessage{&t.KnownParams, &t.OverrideInput, &t.OverrideOutput} {
		if len(*raw) == 0 {
			*raw = nil
		}
	}
	return t, err
}

// Put implements [store.Templates].
func (x Templates) Put(ctx context.Context, p identity.Principal, t store.Template) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	if t.ID == "" || t.Kind == "" {
		return fault.New(fault.Invalid, "a template needs an id and a kind")
	}
	return x.db.Write(ctx, func(w relational.Transaction) error {
		_, err := w.Exec(`INSERT INTO templates (`+templateColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (workspace_id, id) DO UPDATE SET kind = excluded.kind, name = excluded.name, known_params = excluded.known_params,
			override_input = excluded.override_input, override_output = excluded.override_output, updated = excluded.updated`,
			workspace, t.ID, t.Kind, t.Name, []byte(t.KnownParams), []byte(t.OverrideInput), []byte(t.OverrideOutput), t.Created, t.Updated)
		return err
	})
}

// Get implements [store.Templates].
func (x Templates) Get(ctx context.Context, p identity.Principal, id string) (store.Template, error) {
	return relational.QueryOneIn(ctx, x.db, p, store.NotFound("template", id), `SELECT `+templateColumns+` FROM templates WHERE workspace_id = ? AND id = ?`, scanTemplate, id)
}

// List implements [store.Templates].
func (x Templates) List(ctx context.Context, p identity.Principal) ([]store.Template, error) {
	return relational.QueryIn(ctx, x.db, p, `SELECT `+templateColumns+` FROM templates WHERE workspace_id = ? ORDER BY id`, scanTemplate)
}

// Delete implements [store.Templates].
func (x Templates) Delete(ctx context.Context, p identity.Principal, id string) error {
	return relational.ChangeOneIn(ctx, x.db, p, store.NotFound("template", id), `DELETE FROM templates WHERE id = ? AND workspace_id = ?`, id)
}
