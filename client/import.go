package client

import (
	"context"
	"net/http"

	"tandem/api"
)

// Import makes workflows of files of other systems.
func (c *Client) Import(ctx context.Context, r api.ImportRequest) (api.ImportReport, error) {
	return send[api.ImportReport](ctx, c, http.MethodPost, to("/import"), r)
}
