package client

import (
	"context"
	"net/http"

	"tandem/api"
)

// Freeze makes a workflow of a task that has ended well.
func (c *Client) Freeze(ctx context.Context, execution string, r api.FreezeRequest) (api.Frozen, error) {
	return send[api.Frozen](ctx, c, http.MethodPost, to("/executions/%s/freeze", execution), r)
}
