package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"tandem/api"
	"tandem/fault"
)

// NodeKinds lists the kinds of nodes that the server can run.
func (c *Client) NodeKinds(ctx context.Context) (api.NodeKinds, error) {
	return get[api.NodeKinds](ctx, c, to("/node-kinds"), nil)
}

// NodeKind returns one kind, by TYPE.SUBTYPE.
func (c *Client) NodeKind(ctx context.Context, name string) (api.NodeKind, error) {
	return get[api.NodeKind](ctx, c, to("/node-kinds/%s", name), nil)
}

// NodeTemplates lists the templates of the workspace.
func (c *Client) NodeTemplates(ctx context.Context) (api.NodeTemplates, error) {
	return get[api.NodeTemplates](ctx, c, to("/node-templates"), nil)
}

// NodeTemplate returns one template.
func (c *Client) NodeTemplate(ctx context.Context, id string) (api.NodeTemplate, error) {
	return get[api.NodeTemplate](ctx, c, to("/node-templates/%s", id), nil)
}

// CreateNodeTemplate keeps a new template.
func (c *Client) CreateNodeTemplate(ctx context.Context, t api.NodeTemplate) (api.NodeTemplate, error) {
	return send[api.NodeTemplate](ctx, c, http.MethodPost, to("/node-templates"), t)
}

// UpdateNodeTemplate replaces a template.
func (c *Client) UpdateNodeTemplate(ctx context.Context, t api.NodeTemplate) (api.NodeTemplate, error) {
	return send[api.NodeTemplate](ctx, c, http.MethodPut, to("/node-templates/%s", t.ID), t)
}

// DeleteNodeTemplate removes a template.
func (c *Client) DeleteNodeTemplate(ctx context.Context, id string) error {
	return remove(ctx, c, to("/node-templates/%s", id))
}

// Me returns the user that the token belongs to.
func (c *Client) Me(ctx context.Context) (api.User, error) {
	return get[api.User](ctx, c, to("/users/me"), nil)
}

// UpdateMe changes the settings of the user that the token belongs to.
func (c *Client) UpdateMe(ctx context.Context, r api.MeRequest) (api.User, error) {
	return send[api.User](ctx, c, http.MethodPatch, to("/users/me"), r)
}

// Users lists the users of the workspace.
func (c *Client) Users(ctx context.Context) (api.Users, error) {
	return get[api.Users](ctx, c, to("/users"), nil)
}

// User returns one user.
func (c *Client) User(ctx context.Context, id string) (api.User, error) {
	return get[api.User](ctx, c, to("/users/%s", id), nil)
}

// CreateUser makes a user.
func (c *Client) CreateUser(ctx context.Context, r api.UserRequest) (api.User, error) {
	return send[api.User](ctx, c, http.MethodPost, to("/users"), r)
}

// UpdateUser changes a user.
func (c *Client) UpdateUser(ctx context.Context, id string, r api.UserRequest) (api.User, error) {
	return send[api.User](ctx, c, http.MethodPut, to("/users/%s", id), r)
}

// DeleteUser removes a user and its tokens.
func (c *Client) DeleteUser(ctx context.Context, id string) error {
	return remove(ctx, c, to("/users/%s", id))
}

// Tokens lists a user's tokens, without their secrets.
func (c *Client) Tokens(ctx context.Context, user string) (api.Tokens, error) {
	return get[api.Tokens](ctx, c, to("/users/%s/tokens", user), nil)
}

// CreateToken makes a token. Its secret is in the answer, and is never shown again.
func (c *Client) CreateToken(ctx context.Context, user string, r api.TokenRequest) (api.NewToken, error) {
	return send[api.NewToken](ctx, c, http.MethodPost, to("/users/%s/tokens", user), r)
}

// DeleteToken revokes a token.
func (c *Client) DeleteToken(ctx context.Context, user, id string) error {
	return remove(ctx, c, to("/users/%s/tokens/%s", user, id))
}

// CredentialTypes lists the types of credentials and their fields.
func (c *Client) CredentialTypes(ctx context.Context) (api.CredentialTypes, error) {
	return get[api.CredentialTypes](ctx, c, to("/credential-types"), nil)
}

// Credentials lists credentials, without their secrets.
func (c *Client) Credentials(ctx context.Context) (api.Credentials, error) {
	return get[api.Credentials](ctx, c, to("/credentials"), nil)
}

// Credential returns one credential, without its secrets.
func (c *Client) Credential(ctx context.Context, id string) (api.Credential, error) {
	return get[api.Credential](ctx, c, to("/credentials/%s", id), nil)
}

// CreateCredential keeps a new credential.
func (c *Client) CreateCredential(ctx context.Context, r api.CredentialRequest) (api.Credential, error) {
	return send[api.Credential](ctx, c, http.MethodPost, to("/credentials"), r)
}

// UpdateCredential changes a credential; without data its secrets stay. Force gives it another name although something uses it by the old
// one.
func (c *Client) UpdateCredential(ctx context.Context, id string, r api.CredentialRequest, force bool) (api.Credential, error) {
	raw, err := json.Marshal(r)
	if err != nil {
		return api.Credential{}, fmt.Errorf("write the credential: %w", err)
	}
	return call[api.Credential](ctx, c, request{method: http.MethodPut, path: to("/credentials/%s", id), query: forced(force), body: raw,
		content: "application/json", repeatable: true})
}

// TestCredential tries a credential at its service.
func (c *Client) TestCredential(ctx context.Context, id string) (api.CredentialTest, error) {
	return send[api.CredentialTest](ctx, c, http.MethodPost, to("/credentials/%s/test", id), nil)
}

// CredentialUses lists what uses a credential.
func (c *Client) CredentialUses(ctx context.Context, id string) (api.CredentialUses, error) {
	return get[api.CredentialUses](ctx, c, to("/credentials/%s/uses", id), nil)
}

// AuthorizeCredential begins to authorize a credential with a browser, and says what to open.
func (c *Client) AuthorizeCredential(ctx context.Context, id string) (api.MCPAuthorization, error) {
	return send[api.MCPAuthorization](ctx, c, http.MethodPost, to("/credentials/%s/authorize", id), struct{}{})
}

// DeleteCredential removes a credential; with force also one that something uses.
func (c *Client) DeleteCredential(ctx context.Context, id string, force bool) error {
	sent := 0
	_, err := c.sendRequest(ctx, request{method: http.MethodDelete, path: to("/credentials/%s", id),
		query: forced(force), repeatable: true}, &sent)
	if sent > 1 && fault.CodeOf(err) == fault.NotFound {
		return nil // a repetition that finds nothing has done it the first time
	}
	return err
}

// forced is the query of a change that is made even if something uses what it changes.
func forced(force bool) url.Values {
	if !force {
		return nil
	}
	return url.Values{"force": {"true"}}
}

// Invitations lists invitations, the newest first.
func (c *Client) Invitations(ctx context.Context) (api.Invitations, error) {
	return get[api.Invitations](ctx, c, to("/invitations"), nil)
}

// Invite invites somebody. The link is in the answer, and is never shown again.
func (c *Client) Invite(ctx context.Context, r api.InvitationRequest) (api.NewInvitation, error) {
	return send[api.NewInvitation](ctx, c, http.MethodPost, to("/invitations"), r)
}

// DeleteInvitation withdraws an invitation that was not used.
func (c *Client) DeleteInvitation(ctx context.Context, id string) error {
	return remove(ctx, c, to("/invitations/%s", id))
}

// Sessions lists the browsers that a user has logged in with.
func (c *Client) Sessions(ctx context.Context, user string) (api.Sessions, error) {
	return get[api.Sessions](ctx, c, to("/users/%s/sessions", user), nil)
}

// EndSessions ends all sessions of a user.
func (c *Client) EndSessions(ctx context.Context, user string) error {
	return remove(ctx, c, to("/users/%s/sessions", user))
}

// Workspaces lists the workspaces that the caller may see.
func (c *Client) Workspaces(ctx context.Context) (api.Workspaces, error) {
	return get[api.Workspaces](ctx, c, to("/workspaces"), nil)
}

// CreateWorkspace makes a workspace with an admin.
func (c *Client) CreateWorkspace(ctx context.Context, r api.WorkspaceRequest) (api.NewWorkspace, error) {
	return send[api.NewWorkspace](ctx, c, http.MethodPost, to("/workspaces"), r)
}

// RenameWorkspace gives a workspace another name.
func (c *Client) RenameWorkspace(ctx context.Context, id, name string) (api.Workspace, error) {
	return send[api.Workspace](ctx, c, http.MethodPatch, to("/workspaces/%s", id), api.WorkspaceChange{Name: name})
}

// DeleteWorkspace deletes a workspace that has no workflows, executions, credentials or other records left.
func (c *Client) DeleteWorkspace(ctx context.Context, id string) error {
	return remove(ctx, c, to("/workspaces/%s", id))
}

// CreateWorkspaceToken makes a token for the admin of a workspace. The request is accepted only from the machine of the data directory.
func (c *Client) CreateWorkspaceToken(ctx context.Context, id string, r api.WorkspaceTokenRequest) (api.NewWorkspace, error) {
	return send[api.NewWorkspace](ctx, c, http.MethodPost, to("/workspaces/%s/tokens", id), r)
}
