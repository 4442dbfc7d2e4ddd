package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"tandem/api"
)

// Profiles lists the models of the workspace.
func (c *Client) Profiles(ctx context.Context) (api.Profiles, error) {
	return get[api.Profiles](ctx, c, to("/llm/profiles"), nil)
}

// Profile returns one of them.
func (c *Client) Profile(ctx context.Context, id string) (api.Profile, error) {
	return get[api.Profile](ctx, c, to("/llm/profiles/%s", id), nil)
}

// CreateProfile keeps a new profile; without an id one is made from the name.
func (c *Client) CreateProfile(ctx context.Context, p api.Profile) (api.Profile, error) {
	return send[api.Profile](ctx, c, http.MethodPost, to("/llm/profiles"), p)
}

// UpdateProfile makes or replaces a profile.
func (c *Client) UpdateProfile(ctx context.Context, p api.Profile) (api.Profile, error) {
	return send[api.Profile](ctx, c, http.MethodPut, to("/llm/profiles/%s", p.ID), p)
}

// PutProfile makes or replaces a profile from a document as a person wrote it, so that the server reports fields it does not know.
func (c *Client) PutProfile(ctx context.Context, id string, document json.RawMessage) (api.Profile, error) {
	return send[api.Profile](ctx, c, http.MethodPut, to("/llm/profiles/%s", id), document)
}

// DeleteProfile removes a profile; with force also one that workflows name.
func (c *Client) DeleteProfile(ctx context.Context, id string, force bool) error {
	path := to("/llm/profiles/%s", id)
	if !force {
		return remove(ctx, c, path)
	}
	sent := 0
	_, err := c.sendRequest(ctx, request{method: http.MethodDelete, path: path, query: url.Values{"force": {"true"}}}, &sent)
	return err
}

// TestProfile asks a model for a few words. It is sent once, since it costs something.
func (c *Client) TestProfile(ctx context.Context, id string, r api.ProfileTestRequest) (api.ProfileTest, error) {
	return send[api.ProfileTest](ctx, c, http.MethodPost, to("/llm/profiles/%s/test", id), r)
}

// Budgets lists the budgets of profiles. The server chooses a Limit that is zero. The field Budget is not for listings.
func (c *Client) Budgets(ctx context.Context, q api.BudgetQuery) (api.Budgets, error) {
	v := url.Values{}
	text(v, "profile_id", q.ProfileID)
	text(v, "per", q.Per)
	number(v, "limit", int64(q.Limit))
	if q.Waiting {
		v.Set("waiting", "true")
	}
	return get[api.Budgets](ctx, c, to("/budgets"), v)
}

// RaiseBudget adds to a budget and wakes the nodes that wait for it. With a request id it is repeated when the connection breaks.
func (c *Client) RaiseBudget(ctx context.Context, r api.RaiseRequest) (api.Budget, error) {
	raw, err := encode(r)
	if err != nil {
		return api.Budget{}, err
	}
	return call[api.Budget](ctx, c, request{method: http.MethodPost, path: to("/budgets/raise"), body: raw, content: "application/json",
		repeatable: r.RequestID != ""})
}

// MemoryQuery narrows a listing. Empty fields do not narrow it; the server chooses a page and size that are zero.
type MemoryQuery struct {
	User, Kind, Workflow, Node, Session string
	Page, PageSize                      int
}

// Memories lists the memories of the caller; for an admin, those of all users.
func (c *Client) Memories(ctx context.Context, q MemoryQuery) (api.Memories, error) {
	v := paged(q.Page, q.PageSize)
	text(v, "user_id", q.User)
	text(v, "kind", q.Kind)
	text(v, "workflow_id", q.Workflow)
	text(v, "node_id", q.Node)
	text(v, "session_id", q.Session)
	return get[api.Memories](ctx, c, to("/memory"), v)
}

// Memory returns one of them.
func (c *Client) Memory(ctx context.Context, id string) (api.Memory, error) {
	return get[api.Memory](ctx, c, to("/memory/%s", id), nil)
}

// MemoryRecords lists what a memory keeps; an empty sort means all.
func (c *Client) MemoryRecords(ctx context.Context, id, sort string, page, size int) (api.MemoryRecords, error) {
	v := paged(page, size)
	text(v, "sort", sort)
	return get[api.MemoryRecords](ctx, c, to("/memory/%s/records", id), v)
}

// DeleteMemoryRecord removes one record.
func (c *Client) DeleteMemoryRecord(ctx context.Context, id, sort, record string) error {
	return remove(ctx, c, to("/memory/%s/records/%s/%s", id, sort, record))
}

// ForgetMemory removes a memory with everything in it.
func (c *Client) ForgetMemory(ctx context.Context, id string) error {
	return remove(ctx, c, to("/memory/%s", id))
}
