package client

import (
	"context"
	"net/http"
	"net/url"

	"tandem/api"
)

// Limits returns the limits of the workspace, and how much of them is used.
func (c *Client) Limits(ctx context.Context) (api.Limits, error) {
	return get[api.Limits](ctx, c, to("/limits"), nil)
}

// PutLimits replaces the limits of the workspace.
func (c *Client) PutLimits(ctx context.Context, settings api.LimitSettings) (api.Limits, error) {
	return send[api.Limits](ctx, c, http.MethodPut, to("/limits"), settings)
}

// Tidy removes what has been kept long enough, in the whole installation, and frees the space.
func (c *Client) Tidy(ctx context.Context) (api.TidyReport, error) {
	return call[api.TidyReport](ctx, c, request{method: http.MethodPost, path: to("/limits/tidy"), repeatable: true})
}

// DeleteExecution removes an execution that has ended, with everything that is kept of it. The reason is for the audit log.
func (c *Client) DeleteExecution(ctx context.Context, id, reason string) (api.ExecutionDeleted, error) {
	q := url.Values{}
	if reason != "" {
		q.Set("reason", reason)
	}
	return call[api.ExecutionDeleted](ctx, c, request{method: http.MethodDelete, path: to("/executions/%s", id), query: q})
}
