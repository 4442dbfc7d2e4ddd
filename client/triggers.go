package client

import (
	"context"
	"net/http"
	"strings"

	"tandem/api"
)

// TriggerQuery narrows a listing. Empty fields do not narrow it.
type TriggerQuery struct {
	WorkflowID string
	Kind       string
	State      string
	// NextRuns is how many of the next times are listed; zero is the server's choice.
	NextRuns       int
	Page, PageSize int
}

// Triggers lists the triggers of deployed workflows.
func (c *Client) Triggers(ctx context.Context, q TriggerQuery) (api.Triggers, error) {
	v := paged(q.Page, q.PageSize)
	text(v, "workflow_id", q.WorkflowID)
	text(v, "kind", q.Kind)
	text(v, "state", q.State)
	number(v, "next_runs", int64(q.NextRuns))
	return get[api.Triggers](ctx, c, to("/triggers"), v)
}

// DeliveryQuery narrows a listing of deliveries. Empty fields do not narrow it.
type DeliveryQuery struct {
	WorkflowID, NodeID, ExecutionID, Key string
	Decisions                            []string
	Page, PageSize                       int
}

// Deliveries lists what has come to triggers, the newest first.
func (c *Client) Deliveries(ctx context.Context, q DeliveryQuery) (api.Deliveries, error) {
	v := paged(q.Page, q.PageSize)
	text(v, "workflow_id", q.WorkflowID)
	text(v, "node_id", q.NodeID)
	text(v, "execution_id", q.ExecutionID)
	text(v, "key", q.Key)
	text(v, "decision", strings.Join(q.Decisions, ","))
	return get[api.Deliveries](ctx, c, to("/deliveries"), v)
}

// Delivery returns one delivery, with its payload.
func (c *Client) Delivery(ctx context.Context, id string) (api.Delivery, error) {
	return get[api.Delivery](ctx, c, to("/deliveries/%s", id), nil)
}

// Replay starts an execution once more for a stored delivery. Under the same key it is started once.
func (c *Client) Replay(ctx context.Context, id, key string) (api.Delivery, error) {
	r := request{method: http.MethodPost, path: to("/deliveries/%s/replay", id), repeatable: key != ""}
	if key != "" {
		r.header = http.Header{"Idempotency-Key": {key}}
	}
	return call[api.Delivery](ctx, c, r)
}
