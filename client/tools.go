package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"tandem/api"
)

// toolPatience is how much longer an answer may take that needs a tool server: the tool server may have to be started first.
const toolPatience = time.Minute

// MCPServers lists the tool servers of the workspace.
func (c *Client) MCPServers(ctx context.Context) (api.MCPServers, error) {
	return get[api.MCPServers](ctx, c, to("/mcp/servers"), nil)
}

// MCPServer returns one of them.
func (c *Client) MCPServer(ctx context.Context, id string) (api.MCPServer, error) {
	return get[api.MCPServer](ctx, c, to("/mcp/servers/%s", id), nil)
}

// CreateMCPServer registers a tool server; without an id one is made from the name. Nothing is started.
func (c *Client) CreateMCPServer(ctx context.Context, s api.MCPServer) (api.MCPServer, error) {
	return send[api.MCPServer](ctx, c, http.MethodPost, to("/mcp/servers"), s)
}

// PutMCPServer makes or replaces a tool server. Nothing is started.
func (c *Client) PutMCPServer(ctx context.Context, s api.MCPServer) (api.MCPServer, error) {
	return send[api.MCPServer](ctx, c, http.MethodPut, to("/mcp/servers/%s", s.ID), s)
}

// PutMCPServerDocument is PutMCPServer with a document as a person wrote it, so that the server reports fields it does not know.
func (c *Client) PutMCPServerDocument(ctx context.Context, id string, document json.RawMessage) (api.MCPServer, error) {
	return send[api.MCPServer](ctx, c, http.MethodPut, to("/mcp/servers/%s", id), document)
}

// DeleteMCPServer removes a tool server, with its activations and connections.
func (c *Client) DeleteMCPServer(ctx context.Context, id string) error {
	return remove(ctx, c, to("/mcp/servers/%s", id))
}

// MCPTools lists the tools of a server, which is started or reached for it.
func (c *Client) MCPTools(ctx context.Context, id string) (api.MCPTools, error) {
	return call[api.MCPTools](ctx, c, request{method: http.MethodGet, path: to("/mcp/servers/%s/tools", id),
		repeatable: true, wait: toolPatience})
}

// ActivateMCPServer lets the caller use a tool server: its tools are pinned as they are now, with policies for them.
func (c *Client) ActivateMCPServer(ctx context.Context, id string, with api.MCPActivate) (api.MCPTools, error) {
	return sendPatiently(ctx, c, http.MethodPost, to("/mcp/servers/%s/activate", id), with)
}

// sendPatiently sends a document, and gives the server time to start or reach a tool server for the answer.
func sendPatiently(ctx context.Context, c *Client, method, path string, document any) (api.MCPTools, error) {
	raw, err := json.Marshal(document)
	if err != nil {
		return api.MCPTools{}, err
	}
	return call[api.MCPTools](ctx, c, request{method: method, path: path, body: raw, content: "application/json", wait: toolPatience})
}

// MCPPolicies returns the policies for the tools of a server: the user's own, and those of the workspace.
func (c *Client) MCPPolicies(ctx context.Context, id string) (api.MCPPolicyList, error) {
	return get[api.MCPPolicyList](ctx, c, to("/mcp/servers/%s/policies", id), nil)
}

// SetMCPPolicies sets policies, or takes them away.
func (c *Client) SetMCPPolicies(ctx context.Context, id string, p api.MCPPolicies) (api.MCPPolicyList, error) {
	return send[api.MCPPolicyList](ctx, c, http.MethodPut, to("/mcp/servers/%s/policies", id), p)
}

// MCPAcceptances returns the changes of a server's tools that were accepted, the newest first.
func (c *Client) MCPAcceptances(ctx context.Context, id string) (api.MCPAcceptances, error) {
	return get[api.MCPAcceptances](ctx, c, to("/mcp/servers/%s/acceptances", id), nil)
}

// DeactivateMCPServer ends the caller's use of a tool server.
func (c *Client) DeactivateMCPServer(ctx context.Context, id string) error {
	return remove(ctx, c, to("/mcp/servers/%s/activate", id))
}

// AcceptMCPChanges accepts changes of tools as they were shown. Scope is for whom: "user" or "workspace"; without one, an admin accepts for
// everybody and others for themselves.
func (c *Client) AcceptMCPChanges(ctx context.Context, id, scope string, changes []api.MCPChange) (api.MCPTools, error) {
	r := api.MCPAccept{Scope: scope, Changes: make([]api.MCPAcceptedChange, len(changes))}
	for i, change := range changes {
		r.Changes[i] = api.MCPAcceptedChange{Tool: change.Tool, After: change.After}
	}
	return sendPatiently(ctx, c, http.MethodPost, to("/mcp/servers/%s/accept", id), r)
}

// AuthorizeMCPServer begins an authorization, and returns where a person has to go.
func (c *Client) AuthorizeMCPServer(ctx context.Context, id string) (api.MCPAuthorization, error) {
	return call[api.MCPAuthorization](ctx, c, request{method: http.MethodPost,
		path: to("/mcp/servers/%s/authorize", id), wait: toolPatience})
}

// RestartMCPServer ends connections to a tool server; the next use makes new ones.
func (c *Client) RestartMCPServer(ctx context.Context, id string) error {
	sent := 0
	_, err := c.sendRequest(ctx, request{method: http.MethodPost, path: to("/mcp/servers/%s/restart", id), repeatable: true}, &sent)
	return err
}
