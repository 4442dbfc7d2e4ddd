package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"tandem/agent"
	"tandem/api"
	"tandem/identity"
	"tandem/route"
	"tandem/store"
	"tandem/validation"
	"tandem/workflow"
)

// workflows registers the operations on workflows: reading, changing and listing their definitions and revisions.
func (s *Server) workflows() {
	op := route.Tagged("workflows")
	created := op(http.MethodPost, "/workflows", "create-workflow", "Keep a new workflow")
	created.DefaultStatus = http.StatusCreated
	created.Description = "The body is the definition itself, in JSON or YAML. Without an id one is made from the name."
	copied := op(http.MethodPost, "/workflows/{id}/copy", "copy-workflow", "Copy a workflow's newest revision")
	copied.DefaultStatus = http.StatusCreated
	changed := op(http.MethodPut, "/workflows/{id}", "update-workflow", "Keep a new revision")
	changed.Description = "Executions that run stay on their revision. With If-Match it is refused when the newest revision is another one."
	deployed := op(http.MethodPost, "/workflows/{id}/deploy", "deploy-workflow", "Deploy a workflow")
	deployed.Description = "The newest revision is put in force: deployment_status is pending while its triggers are registered, and then all of them take the place of the former ones in one step. If something cannot be run or registered here, it becomes failed, with the reason in deployment_error, and what was in force stays so."

	route.Handle(s.Router, op(http.MethodGet, "/workflows", "list-workflows", "List workflows, the last saved first"), route.Readers(), s.listWorkflows)
	route.Handle(s.Router, created, route.Editors(), s.createWorkflow)
	route.Handle(s.Router, route.ChangesNothing(op(http.MethodPost, "/workflows/validate", "validate-workflow", "Say everything that is wrong with a definition")), route.Readers(), s.validateWorkflow)
	route.Handle(s.Router, op(http.MethodGet, "/workflows/{id}", "get-workflow", "Read a workflow"), route.Readers(), noAgent(s.getWorkflow))
	route.Handle(s.Router, changed, route.Editors(), noAgent(s.updateWorkflow))
	route.Handle(s.Router, op(http.MethodDelete, "/workflows/{id}", "delete-workflow", "Delete a workflow that has no unfinished executions"), route.Editors(), noAgent(s.deleteWorkflow))
	route.Handle(s.Router, copied, route.Editors(), noAgent(s.copyWorkflow))
	route.Handle(s.Router, op(http.MethodGet, "/workflows/{id}/revisions", "list-revisions", "List a workflow's revisions, the newest first"), route.Readers(), noAgent(s.listRevisions))
	route.Handle(s.Router, deployed, route.Editors(), noAgent(s.deployWorkflow))
	route.Handle(s.Router, op(http.MethodPost, "/workflows/{id}/undeploy", "undeploy-workflow", "Take a workflow's triggers out of service"), route.Editors(), noAgent(s.undeployWorkflow))
	route.Handle(s.Router, testOperation(), route.Editors(), s.testWorkflow)
	route.Handle(s.Router, evaluateOperation(), route.Editors(), s.evaluate)
	execute := noAgent(s.executeWorkflow)
	route.Handle(s.Router, executeOperation(s.executePlainly(execute)), route.Operators(), execute)
	for _, item := range []*huma.Operation{
		s.Document().Paths[route.Prefix+"/workflows"].Post, s.Document().Paths[route.Prefix+"/workflows/validate"].Post, s.Document().Paths[route.Prefix+"/workflows/{id}"].Put,
	} {
		item.RequestBody.Content["application/json"] = &huma.MediaType{Schema: definitionSchema()}
		item.RequestBody.Content["application/yaml"].Schema.Format = ""
	}
}

// definitionSchema describes a definition for the API document; validation checks the rest.
func definitionSchema() *huma.Schema {
	return &huma.Schema{
		Type: huma.TypeObject, Description: "A workflow definition.", Required: []string{"nodes"},
		Properties: map[string]*huma.Schema{
			"metadata":    {Type: huma.TypeObject},
			"nodes":       {Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeObject}},
			"connections": {Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeObject}},
			"triggers":    {Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeString}},
			"notes":       {Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeObject}},
			"tests":       {Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeObject}},
		},
	}
}

// DefinitionBody is a request whose body is a definition.
type DefinitionBody struct {
	Language    string `query:"language" enum:"en,zh" doc:"of what is said about the definition; left out, that of Accept-Language"`
	ContentType string `header:"Content-Type" hidden:"true"`
	RawBody     []byte `contentType:"application/yaml"`
}

// MaxBodyKeys is how many names the body may have.
func (*DefinitionBody) MaxBodyKeys() int { return route.MaxDefinitionKeys }

// readDefinition parses and validates the definition. With errors among the problems it must not be used for anything else.
func (b *DefinitionBody) readDefinition(
	check func([]byte) (*workflow.Definition, []workflow.Problem),
) (*workflow.Definition, []workflow.Problem, error) {
	if b.ContentType != "" {
		kind, _, err := mime.ParseMediaType(b.ContentType)
		if err != nil {
			return nil, nil, api.WrongField("header.Content-Type", "%q cannot be read; send application/json or application/yaml", b.ContentType)
		}
		switch kind {
		case "application/json":
			if len(b.RawBody) > 0 && !json.Valid(b.RawBody) && !strings.HasPrefix(strings.TrimSpace(string(b.RawBody)), "{") {
				return nil, nil, api.WrongField("header.Content-Type", "the body is not JSON; send YAML as application/yaml")
			}
		case "application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml", "text/plain", "application/octet-stream":
		default:
			return nil, nil, api.WrongField("header.Content-Type", "a definition cannot be %q; send application/json or application/yaml", kind)
		}
	}
	def, problems := check(b.RawBody)
	return def, problems, nil
}

type listWorkflowsInput struct {
	route.Paging
	Text   string   `query:"q" maxLength:"200" doc:"looked for in id, name and description"`
	Tags   []string `query:"tags,explode" doc:"must all be there; several, or one list with commas"`
	Status string   `query:"deployment_status" enum:"draft,pending,deployed,failed,undeployed"`
	// Deployed is not the same as the status: while a newer revision is being deployed, or could not be, the older one stays deployed.
	Deployed bool `query:"deployed" doc:"only those that have a revision in force, whatever became of a later deployment"`
}

type workflowsOutput struct{ Body api.Workflows }

func (s *Server) listWorkflows(ctx context.Context, p identity.Principal, in *listWorkflowsInput) (*workflowsOutput, error) {
	page, err := s.o.Stores.Workflows.List(ctx, p, store.WorkflowQuery{
		Text: in.Text, NotPrefix: agent.WorkflowID(""), Tags: route.Listed(in.Tags),
		DeploymentStatus: store.DeploymentStatus(in.Status), Deployed: in.Deployed, Page: in.StorePage(),
	})
	if err != nil {
		return nil, err
	}
	out := &workflowsOutput{api.Workflows{Workflows: make([]api.WorkflowMetadata, len(page.Workflows)), TotalCount: page.Total,
		Page: in.Page, PageSize: in.PageSize}}
	for i := range page.Workflows {
		out.Body.Workflows[i] = tellWorkflow(&page.Workflows[i])
	}
	return out, nil
}

type savedOutput struct {
	ETag string `header:"ETag" doc:"the revision"`
	Body api.Saved
}

type createWorkflowInput struct {
	DefinitionBody
	WorkflowID string `query:"id" maxLength:"128" doc:"the id of the workflow, if the definition says none"`
}

func (s *Server) createWorkflow(ctx context.Context, p identity.Principal, in *createWorkflowInput) (*savedOutput, error) {
	def, problems, err := s.readAll(ctx, p, &in.DefinitionBody)
	if err != nil {
		return nil, err
	}
	if def == nil || workflow.HasErrors(problems) {
		return nil, validation.Refusal(problems)
	}
	if def.Metadata.ID == "" {
		def.Metadata.ID = in.WorkflowID
	}
	return s.saveNew(ctx, p, def, problems, store.SourceOf(in.RawBody))
}

// saveNew keeps a definition under an id that is not taken: its own, or one that is made from its name.
func (s *Server) saveNew(ctx context.Context, p identity.Principal, def *workflow.Definition, problems []workflow.Problem,
	source store.Source) (*savedOutput, error) {
	if id := def.Metadata.ID; id != "" {
		if err := checkWorkflowID(id); err != nil {
			return nil, err
		}
		return s.save(ctx, p, def, problems, source, -1)
	}
	id := route.MadeID(def.Metadata.Name, "workflow")
	for n := 1; n <= route.MaxMadeIDs; n++ {
		if def.Metadata.ID = id; n > 1 {
			def.Metadata.ID += "-" + strconv.Itoa(n)
		}
		out, err := s.save(ctx, p, def, problems, source, -1)
		if err == nil || !errors.Is(err, store.ErrConflict) {
			return out, err
		}
	}
	def.Metadata.ID = id + "-" + route.RandomText()
	return s.save(ctx, p, def, problems, source, -1)
}

// ownWords returns the text of a definition if it has something that the definition does not have: another order, comments.
// A text that Tandem has written has nothing of that, and applying it changes nothing.
func ownWords(source store.Source, def *workflow.Definition) store.Source {
	if written, err := workflow.ToYAML(workflow.Encode(def)); err == nil && bytes.Equal(written, source.Text) {
		return store.Source{}
	}
	return source
}

// save stores a definition, and returns what else the caller should know.
func (s *Server) save(ctx context.Context, p identity.Principal, def *workflow.Definition, problems []workflow.Problem,
	source store.Source, expect int64) (*savedOutput, error) {
	m := &def.Metadata
	hash, action := workflow.Hash(def), "workflow.update"
	if expect < 0 {
		action = "workflow.create"
	}
	before, err := s.auditedWorkflow(ctx, p, m.ID)
	if err != nil {
		return nil, err
	}
	audited := route.Audited(ctx, action, m.ID, before, map[string]any{"name": m.Name, "revision_hash": hash})
	w, created, err := s.o.Stores.Workflows.Save(audited, p, store.SaveWorkflow{
		ID: m.ID, Name: m.Name, Description: m.Description, IconURL: m.IconURL, Tags: m.Tags, Version: m.Version, Parent: m.ParentWorkflow,
		Hash: hash, Definition: workflow.Encode(def), Source: ownWords(source, def), Time: s.NowMS(), Expect: expect,
	})
	if err != nil {
		return nil, err
	}
	older, err := s.o.Stores.Executions.List(ctx, p, store.ExecutionQuery{
		WorkflowID: w.ID, Statuses: openStatuses(), BelowRevision: w.Revision, Page: store.Page{Size: 1},
	})
	if err != nil {
		return nil, err
	}
	out := &savedOutput{ETag: etag(w.Revision), Body: api.Saved{Workflow: tellWorkflow(&w), Created: created,
		Problems: validation.Tell(route.LanguageOf(ctx), problems, def), WaitingOnOlder: older.Total}}
	out.Body.Workflow.Settings, err = json.Marshal(m.Settings)
	return out, err
}

// auditedWorkflow is how the audit log describes a stored workflow; nil: there is none.
func (s *Server) auditedWorkflow(ctx context.Context, p identity.Principal, id string) (any, error) {
	w, err := s.o.Stores.Workflows.Get(ctx, p, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return map[string]any{"name": w.Name, "revision": w.Revision, "revision_hash": w.RevisionHash}, err
}

func etag(revision int64) string { return `"` + strconv.FormatInt(revision, 10) + `"` }

type validationOutput struct{ Body api.Validation }

func (s *Server) validateWorkflow(ctx context.Context, p identity.Principal, in *DefinitionBody) (*validationOutput, error) {
	def, problems, err := s.readAll(ctx, p, in)
	if err != nil {
		return nil, err
	}
	return &validationOutput{api.Validation{Valid: def != nil && !workflow.HasErrors(problems),
		Problems: validation.Tell(route.LanguageOf(ctx), problems, def)}}, nil
}

// WorkflowPath names a workflow.
type WorkflowPath struct {
	ID string `path:"id" maxLength:"128"`
}

func (w WorkflowPath) named() string { return w.ID }

type getWorkflowInput struct {
	WorkflowPath
	Revision int64    `query:"revision" minimum:"1" doc:"left out, it is the newest"`
	Include  []string `query:"include,explode" enum:"source" doc:"source: the text as its author wrote it, with its comments"`
}

type workflowOutput struct {
	ETag string `header:"ETag" doc:"the revision"`
	Body api.Workflow
}

func (s *Server) getWorkflow(ctx context.Context, p identity.Principal, in *getWorkflowInput) (*workflowOutput, error) {
	w, err := s.o.Stores.Workflows.Get(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	number := in.Revision
	if number == 0 {
		number = w.Revision // both belong together, even if somebody saves meanwhile
	}
	revision, err := s.o.Stores.Workflows.Revision(ctx, p, in.ID, number)
	if err != nil {
		return nil, err
	}
	out, err := tellDefinition(&w, &revision)
	if err != nil {
		return nil, err
	}
	if slices.Contains(in.Include, "source") {
		source, err := s.o.Stores.Workflows.Source(ctx, p, in.ID, revision.Number)
		if err != nil {
			return nil, err
		}
		out.Source, out.SourceFormat = string(source.Text), source.Format
	}
	return &workflowOutput{ETag: etag(revision.Number), Body: *out}, nil
}

type updateWorkflowInput struct {
	WorkflowPath
	DefinitionBody
	IfMatch string `header:"If-Match" doc:"the revision that the change was made from"`
}

func (s *Server) updateWorkflow(ctx context.Context, p identity.Principal, in *updateWorkflowInput) (*savedOutput, error) {
	expect, err := expectedRevision(in.IfMatch)
	if err != nil {
		return nil, err
	}
	if _, err := s.o.Stores.Workflows.Get(ctx, p, in.ID); err != nil {
		return nil, err
	}
	def, problems, err := s.readAll(ctx, p, &in.DefinitionBody)
	if err != nil {
		return nil, err
	}
	if def == nil || workflow.HasErrors(problems) {
		return nil, validation.Refusal(problems)
	}
	if id := def.Metadata.ID; id != "" && id != in.ID {
		return nil, api.WrongField("metadata.id", "the definition is of workflow %q and the address names %q; make them agree, or leave the id out", id, in.ID)
	}
	def.Metadata.ID = in.ID
	return s.save(ctx, p, def, problems, store.SourceOf(in.RawBody), expect)
}

// expectedRevision is the revision that the author has seen, 0 for any.
func expectedRevision(match string) (int64, error) {
	text := strings.Trim(strings.TrimPrefix(strings.TrimSpace(match), "W/"), `"`)
	if text == "" || text == "*" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return 0, api.WrongField("header.If-Match", "%q is not a revision; send its number", match)
	}
	return n, nil
}

func (s *Server) deleteWorkflow(ctx context.Context, p identity.Principal, in *WorkflowPath) (*struct{}, error) {
	before, err := s.auditedWorkflow(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	if err := s.o.Stores.Workflows.Delete(route.Audited(ctx, "workflow.delete", in.ID, before, nil), p, in.ID, s.NowMS()); err != nil {
		return nil, err
	}
	s.o.Triggers.Changed(p.Workspace, in.ID)
	return nil, nil
}

type copyWorkflowInput struct {
	WorkflowPath
	Body *api.CopyRequest
}

func (s *Server) copyWorkflow(ctx context.Context, p identity.Principal, in *copyWorkflowInput) (*savedOutput, error) {
	source, err := s.o.Stores.Workflows.Get(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	revision, err := s.o.Stores.Workflows.Revision(ctx, p, in.ID, source.Revision)
	if err != nil {
		return nil, err
	}
	def, problems := s.o.Check(revision.Definition)
	if def == nil || workflow.HasErrors(problems) {
		return nil, validation.Refusal(problems)
	}
	if problems, err = s.checkAll(ctx, p, revision.Definition, def, problems); err != nil {
		return nil, err
	}
	want := api.CopyRequest{}
	if in.Body != nil {
		want = *in.Body
	}
	m := &def.Metadata
	m.ID, m.ParentWorkflow = want.ID, in.ID
	if m.Name += " (copy)"; want.Name != "" {
		m.Name = want.Name
	}
	return s.saveNew(ctx, p, def, problems, store.Source{})
}

type listRevisionsInput struct {
	WorkflowPath
	route.Paging
}

type revisionsOutput struct{ Body api.Revisions }

func (s *Server) listRevisions(ctx context.Context, p identity.Principal, in *listRevisionsInput) (*revisionsOutput, error) {
	if _, err := s.o.Stores.Workflows.Get(ctx, p, in.ID); err != nil {
		return nil, err
	}
	page, err := s.o.Stores.Workflows.Revisions(ctx, p, in.ID, in.StorePage())
	if err != nil {
		return nil, err
	}
	out := &revisionsOutput{api.Revisions{Revisions: make([]api.Revision, len(page.Revisions)), TotalCount: page.Total, Page: in.Page,
		PageSize: in.PageSize}}
	for i, r := range page.Revisions {
		out.Body.Revisions[i] = api.Revision{Revision: r.Number, RevisionHash: r.Hash, CreatedBy: r.CreatedBy,
			TokenMadeBy: r.TokenMadeBy, CreatedTime: r.Created}
	}
	return out, nil
}

// readAll reads the definition of a request, and finds everything that is wrong with it in this workspace.
func (s *Server) readAll(ctx context.Context, p identity.Principal, b *DefinitionBody) (*workflow.Definition, []workflow.Problem, error) {
	def, problems, err := b.readDefinition(s.o.Check)
	if err != nil {
		return nil, nil, err
	}
	problems, err = s.checkAll(ctx, p, b.RawBody, def, problems)
	return def, problems, err
}

// checkAll finds everything that is wrong with a definition in this workspace, with its places in the text that it was read from.
func (s *Server) checkAll(ctx context.Context, p identity.Principal, data []byte, def *workflow.Definition,
	problems []workflow.Problem) ([]workflow.Problem, error) {
	if def == nil || workflow.HasErrors(problems) {
		return problems, nil
	}
	found, err := s.needs.Absent(ctx, p, def)
	if err != nil || len(found) == 0 {
		return problems, err
	}
	if source, _ := workflow.Parse(data, workflow.Options{Kinds: s.o.Kinds}); source != nil {
		source.Locate(found)
	}
	return slices.Concat(problems, found), nil
}
