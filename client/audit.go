package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"tandem/api"
)

// auditQuery is a query as the address has it.
func auditQuery(q api.AuditQuery) url.Values {
	values := url.Values{}
	// The order does not matter: each is set.
	for name, text := range map[string]string{"user_id": q.UserID, "action": q.Action, "object": q.Object, "object_id": q.ObjectID, "outcome": q.Outcome} {
		if text != "" {
			values.Set(name, text)
		}
	}
	for name, n := range map[string]int64{"since": q.Since, "until": q.Until, "before": q.Before, "page_size": int64(q.PageSize)} { // order does not matter: each is set
		if n > 0 {
			values.Set(name, strconv.FormatInt(n, 10))
		}
	}
	return values
}

// Audit returns a page of the audit log, the newest first.
func (c *Client) Audit(ctx context.Context, q api.AuditQuery) (api.AuditEntries, error) {
	return get[api.AuditEntries](ctx, c, to("/audit"), auditQuery(q))
}

// ExportAudit writes the audit log out as lines of JSON, the oldest first.
func (c *Client) ExportAudit(ctx context.Context, q api.AuditQuery, out io.Writer) error {
	q.Before, q.PageSize = 0, 0
	response, err := c.open(ctx, request{method: http.MethodGet, path: to("/audit/export"), query: auditQuery(q),
		header: http.Header{"Accept": {"*/*"}}})
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(out, response.Body); err != nil {
		return c.broken(ctx, err)
	}
	return nil
}
