package client

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"tandem/api"
)

// AgentQuery narrows a listing. Empty fields do not narrow it; the server chooses a page and size that are zero.
type AgentQuery struct {
	Text           string
	Page, PageSize int
}

// Agents lists agents, the last saved first.
func (c *Client) Agents(ctx context.Context, q AgentQuery) (api.Agents, error) {
	v := paged(q.Page, q.PageSize)
	text(v, "q", q.Text)
	return get[api.Agents](ctx, c, to("/agents"), v)
}

// Agent returns an agent.
func (c *Client) Agent(ctx context.Context, id string) (api.Agent, error) {
	return get[api.Agent](ctx, c, to("/agents/%s", id), nil)
}

// CreateAgent keeps a new agent. Without an id one is made from its name.
func (c *Client) CreateAgent(ctx context.Context, a api.Agent) (api.Agent, error) {
	return send[api.Agent](ctx, c, http.MethodPost, to("/agents"), written(a))
}

// PutAgent makes an agent or replaces it. With a revision other than 0 it is refused when that is no longer the newest.
func (c *Client) PutAgent(ctx context.Context, a api.Agent, revision int64) (api.Agent, error) {
	raw, err := encode(written(a))
	if err != nil {
		return api.Agent{}, err
	}
	r := request{method: http.MethodPut, path: to("/agents/%s", a.ID), body: raw, content: "application/json", repeatable: revision == 0}
	if revision != 0 {
		r.header = http.Header{"If-Match": {strconv.Quote(strconv.FormatInt(revision, 10))}}
	}
	return call[api.Agent](ctx, c, r)
}

// PutAgentDocument makes or replaces an agent from a document as a person wrote it, so that the server reports fields it does not know.
func (c *Client) PutAgentDocument(ctx context.Context, id string, document json.RawMessage) (api.Agent, error) {
	return send[api.Agent](ctx, c, http.MethodPut, to("/agents/%s", id), document)
}

// written is an agent without the fields that only the server sets.
func written(a api.Agent) api.Agent {
	a.Revision, a.CreatedBy, a.UpdatedBy, a.TokenMadeBy, a.CreatedTime, a.UpdatedTime = 0, "", "", "", 0, 0
	return a
}

// DeleteAgent removes an agent that has no unfinished tasks.
func (c *Client) DeleteAgent(ctx context.Context, id string) error {
	return remove(ctx, c, to("/agents/%s", id))
}

// StartTask gives an agent something to do. With a key a request that is sent twice starts one task, and so it is repeated when
// the connection breaks; without one it is sent once.
func (c *Client) StartTask(ctx context.Context, agent string, r api.TaskRequest, key string) (api.TaskStarted, error) {
	raw, err := encode(r)
	if err != nil {
		return api.TaskStarted{}, err
	}
	q := request{
		method: http.MethodPost, path: to("/agents/%s/tasks", agent), body: raw, content: "application/json",
		repeatable: key != "", wait: time.Duration(r.WaitSeconds * float64(time.Second)),
	}
	if key != "" {
		q.header = http.Header{"Idempotency-Key": {key}}
	}
	return call[api.TaskStarted](ctx, c, q)
}

// TaskQuery narrows a listing. Empty fields do not narrow it; the server chooses a page and size that are zero.
type TaskQuery struct {
	Statuses       []string
	ConversationID string
	// Mine leaves out tasks that other users started.
	Mine           bool
	Page, PageSize int
}

// Tasks lists the tasks of an agent, the newest first. They are executions.
func (c *Client) Tasks(ctx context.Context, agent string, q TaskQuery) (api.Executions, error) {
	v := paged(q.Page, q.PageSize)
	text(v, "status", strings.Join(q.Statuses, ","))
	text(v, "conversation_id", q.ConversationID)
	if q.Mine {
		v.Set("mine", "true")
	}
	return get[api.Executions](ctx, c, to("/agents/%s/tasks", agent), v)
}
