package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"tandem/api"
	"tandem/fault"
)

// ExecutionQuery narrows a listing. Empty fields do not narrow it; the server chooses a page and size that are zero.
type ExecutionQuery struct {
	WorkflowID     string
	Statuses       []string
	Page, PageSize int
}

// Executions lists executions, newest first.
func (c *Client) Executions(ctx context.Context, q ExecutionQuery) (api.Executions, error) {
	v := paged(q.Page, q.PageSize)
	text(v, "workflow_id", q.WorkflowID)
	text(v, "status", strings.Join(q.Statuses, ","))
	return get[api.Executions](ctx, c, to("/executions"), v)
}

// Execution returns an execution.
func (c *Client) Execution(ctx context.Context, id string) (api.Execution, error) {
	answer, err := get[api.GetExecution](ctx, c, to("/executions/%s", id), nil)
	return answer.Execution, err
}

// ExecutionWithWorkflow returns an execution with the definition it is pinned to.
func (c *Client) ExecutionWithWorkflow(ctx context.Context, id string) (api.GetExecution, error) {
	return get[api.GetExecution](ctx, c, to("/executions/%s", id), url.Values{"include": {"workflow"}})
}

// ActivationQuery narrows a listing of activations. After is the Next of the part before.
type ActivationQuery struct {
	NodeID string
	After  string
	Limit  int
}

// Activations lists activations in the order they began.
func (c *Client) Activations(ctx context.Context, execution string, q ActivationQuery) (api.Activations, error) {
	v := url.Values{}
	text(v, "node_id", q.NodeID)
	text(v, "after", q.After)
	number(v, "limit", int64(q.Limit))
	return get[api.Activations](ctx, c, to("/executions/%s/activations", execution), v)
}

// Activation returns one activation with its input and where that came from.
func (c *Client) Activation(ctx context.Context, execution, activation string) (api.NodeExecution, error) {
	return get[api.NodeExecution](ctx, c, to("/executions/%s/activations/%s", execution, activation), nil)
}

// HistoryQuery says which part of a history is wanted. After is the Next of the part before.
type HistoryQuery struct {
	After string
	Limit int
}

// History returns what happened in an execution, in order, and who decided it.
func (c *Client) History(ctx context.Context, execution string, q HistoryQuery) (api.History, error) {
	v := url.Values{}
	text(v, "after", q.After)
	number(v, "limit", int64(q.Limit))
	return get[api.History](ctx, c, to("/executions/%s/history", execution), v)
}

// Context returns the data of an execution, as nodes of a scope see it; the empty scope is the outermost.
func (c *Client) Context(ctx context.Context, execution, scope string) (api.Context, error) {
	v := url.Values{}
	text(v, "scope", scope)
	return get[api.Context](ctx, c, to("/executions/%s/context", execution), v)
}

// LogQuery narrows the lines that are read. After is the Next of the part before.
type LogQuery struct {
	Level        string
	NodeID       string
	ActivationID string
	After        int64
	Limit        int
}

// Logs returns lines that nodes wrote, in the order they were stored.
func (c *Client) Logs(ctx context.Context, execution string, q LogQuery) (api.Logs, error) {
	v := url.Values{}
	text(v, "level", q.Level)
	text(v, "node_id", q.NodeID)
	text(v, "activation_id", q.ActivationID)
	number(v, "after", q.After)
	number(v, "limit", int64(q.Limit))
	return get[api.Logs](ctx, c, to("/executions/%s/logs", execution), v)
}

// Value opens a large value, which stands in outputs as {"$blob": hash, "size": bytes}. The caller closes it. It has no limit
// of time or size but those of ctx.
func (c *Client) Value(ctx context.Context, execution, hash string) (io.ReadCloser, error) {
	response, err := c.open(ctx, request{
		method: http.MethodGet, path: to("/executions/%s/values/%s", execution, hash), header: http.Header{"Accept": {"*/*"}},
	})
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}

// WholeOutputs replaces references to large outputs of an execution by the outputs, for people who read them. An output that does not
// fit into an answer stays a reference.
func (c *Client) WholeOutputs(ctx context.Context, e *api.Execution) error {
	room := int64(maxAnswer)
	for _, id := range slices.Sorted(maps.Keys(e.Outputs)) {
		var name struct {
			Hash string `json:"$blob"`
			Size int64  `json:"size"`
		}
		if json.Unmarshal(e.Outputs[id], &name) != nil || name.Hash == "" || name.Size > room {
			continue
		}
		content, err := c.Value(ctx, e.ExecutionID, name.Hash)
		if fault.CodeOf(err) == fault.NotFound { // an output that only looks like a reference
			continue
		}
		if err != nil {
			return err
		}
		whole, err := io.ReadAll(io.LimitReader(content, room))
		if err = errors.Join(err, content.Close()); err != nil {
			return fmt.Errorf("read the output of %q: %w", id, err)
		}
		if int64(len(whole)) == name.Size && json.Valid(whole) {
			e.Outputs[id] = whole
			room -= name.Size
		}
	}
	return nil
}

// Act does something with an execution.
func (c *Client) Act(ctx context.Context, execution string, r api.ActionRequest) (api.ActionResponse, error) {
	return send[api.ActionResponse](ctx, c, http.MethodPost, to("/executions/%s/actions", execution), r)
}

// Input answers a question of an execution, or signals a node of it that waits for one.
func (c *Client) Input(ctx context.Context, execution string, r api.InputRequest) (api.ActionResponse, error) {
	return send[api.ActionResponse](ctx, c, http.MethodPost, to("/executions/%s/input", execution), r)
}

func encode(v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("write the request: %w", err)
	}
	return raw, nil
}
