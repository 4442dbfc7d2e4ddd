package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"tandem/api"
	"tandem/fault"
)

// WorkflowQuery narrows a listing. Empty fields do not narrow it; the server chooses a page and size that are zero.
type WorkflowQuery struct {
	Text             string
	Tags             []string
	DeploymentStatus string
	// Deployed keeps workflows that have a deployed revision.
	Deployed       bool
	Page, PageSize int
}

// Workflows lists workflows.
func (c *Client) Workflows(ctx context.Context, q WorkflowQuery) (api.Workflows, error) {
	v := paged(q.Page, q.PageSize)
	text(v, "q", q.Text)
	text(v, "tags", strings.Join(q.Tags, ","))
	text(v, "deployment_status", q.DeploymentStatus)
	if q.Deployed {
		v.Set("deployed", "true")
	}
	return get[api.Workflows](ctx, c, to("/workflows"), v)
}

// Workflow returns a workflow; revision 0 is the newest.
func (c *Client) Workflow(ctx context.Context, id string, revision int64) (api.Workflow, error) {
	v := url.Values{}
	number(v, "revision", revision)
	return get[api.Workflow](ctx, c, to("/workflows/%s", id), v)
}

// CreateWorkflow keeps a new workflow. The definition is JSON or, as its media type says, YAML.
func (c *Client) CreateWorkflow(ctx context.Context, definition []byte, yaml bool) (api.Saved, error) {
	return call[api.Saved](ctx, c, request{method: http.MethodPost, path: to("/workflows"), body: definition, content: mediaType(yaml)})
}

// KeepWorkflow keeps a definition under an id: as a new workflow, or as a new revision of the one that is there.
func (c *Client) KeepWorkflow(ctx context.Context, id string, definition []byte, yaml bool) (api.Saved, error) {
	saved, err := c.UpdateWorkflow(ctx, id, definition, yaml, 0)
	if fault.CodeOf(err) == fault.NotFound {
		return call[api.Saved](ctx, c, request{method: http.MethodPost, path: to("/workflows"), query: url.Values{"id": {id}},
			body: definition, content: mediaType(yaml)})
	}
	return saved, err
}

// WorkflowSource returns a workflow with the text of a revision as its author wrote it; revision 0 is the newest.
func (c *Client) WorkflowSource(ctx context.Context, id string, revision int64) (api.Workflow, error) {
	v := url.Values{"include": {"source"}}
	number(v, "revision", revision)
	return get[api.Workflow](ctx, c, to("/workflows/%s", id), v)
}

// UpdateWorkflow makes a new revision of a workflow, unless nothing has changed. With a revision other than 0 it is refused
// when that is no longer the newest.
func (c *Client) UpdateWorkflow(ctx context.Context, id string, definition []byte, yaml bool, revision int64) (api.Saved, error) {
	r := request{method: http.MethodPut, path: to("/workflows/%s", id), body: definition,
		content: mediaType(yaml), repeatable: revision == 0}
	if revision != 0 {
		r.header = http.Header{"If-Match": {strconv.Quote(strconv.FormatInt(revision, 10))}}
	}
	return call[api.Saved](ctx, c, r)
}

// DeleteWorkflow removes a workflow that has no unfinished executions.
func (c *Client) DeleteWorkflow(ctx context.Context, id string) error {
	return remove(ctx, c, to("/workflows/%s", id))
}

// CopyWorkflow makes a workflow of another one's newest revision.
func (c *Client) CopyWorkflow(ctx context.Context, id string, r api.CopyRequest) (api.Saved, error) {
	return send[api.Saved](ctx, c, http.MethodPost, to("/workflows/%s/copy", id), r)
}

// ValidateWorkflow says what is wrong with a definition. Nothing is kept.
func (c *Client) ValidateWorkflow(ctx context.Context, definition []byte, yaml bool) (api.Validation, error) {
	return call[api.Validation](ctx, c, request{method: http.MethodPost, path: to("/workflows/validate"), body: definition,
		content: mediaType(yaml), repeatable: true})
}

// TestWorkflow runs a definition, a part of it or one of its tests. It is sent once.
func (c *Client) TestWorkflow(ctx context.Context, r api.TestRequest) (api.TestResponse, error) {
	raw, err := encode(r)
	if err != nil {
		return api.TestResponse{}, err
	}
	return call[api.TestResponse](ctx, c, request{
		method: http.MethodPost, path: to("/workflows/test"), body: raw, content: "application/json",
		wait: time.Duration(r.WaitSeconds * float64(time.Second)),
	})
}

// Revisions lists the states of a workflow's definition, newest first.
func (c *Client) Revisions(ctx context.Context, id string, page, size int) (api.Revisions, error) {
	return get[api.Revisions](ctx, c, to("/workflows/%s/revisions", id), paged(page, size))
}

// Deploy makes a workflow's triggers start executions.
func (c *Client) Deploy(ctx context.Context, id string) (api.WorkflowMetadata, error) {
	return call[api.WorkflowMetadata](ctx, c, request{method: http.MethodPost, path: to("/workflows/%s/deploy", id), repeatable: true})
}

// Undeploy stops a workflow's triggers.
func (c *Client) Undeploy(ctx context.Context, id string) (api.WorkflowMetadata, error) {
	return call[api.WorkflowMetadata](ctx, c, request{method: http.MethodPost, path: to("/workflows/%s/undeploy", id), repeatable: true})
}

// Execute starts an execution. With a key a request that is sent twice starts one, and so it is repeated when the connection
// breaks; without one it is sent once.
func (c *Client) Execute(ctx context.Context, id string, r api.ExecuteRequest, key string) (api.ExecuteResponse, error) {
	raw, err := encode(r)
	if err != nil {
		return api.ExecuteResponse{}, err
	}
	q := request{
		method: http.MethodPost, path: to("/workflows/%s/execute", id), body: raw, content: "application/json",
		repeatable: key != "", wait: time.Duration(r.WaitSeconds * float64(time.Second)),
	}
	if key != "" {
		q.header = http.Header{"Idempotency-Key": {key}}
	}
	return call[api.ExecuteResponse](ctx, c, q)
}

func mediaType(yaml bool) string {
	if yaml {
		return "application/yaml"
	}
	return "application/json"
}

func paged(page, size int) url.Values {
	v := url.Values{}
	number(v, "page", int64(page))
	number(v, "page_size", int64(size))
	return v
}

// text and number add a parameter that is set.
func text(v url.Values, name, value string) {
	if value != "" {
		v.Set(name, value)
	}
}

func number(v url.Values, name string, value int64) {
	if value != 0 {
		v.Set(name, strconv.FormatInt(value, 10))
	}
}
