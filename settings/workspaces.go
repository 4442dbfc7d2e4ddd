package settings

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"tandem/api"
	"tandem/fault"
	"tandem/identity"
	"tandem/route"
	"tandem/store"
	"tandem/text"
)

// firstAdmin is the id of the admin that a new workspace has, unless another is asked for.
const firstAdmin = "admin"

// recoveryLife is how long a token for recovery is valid, in seconds.
const recoveryLife = 24 * 3600

type (
	workspaceCreate struct{ Body api.WorkspaceRequest }
	workspaceToken  struct {
		ID   string `path:"id" maxLength:"63"`
		Body api.WorkspaceTokenRequest
	}
	workspaceRename struct {
		ID   string `path:"id" maxLength:"63"`
		Body api.WorkspaceChange
	}
	workspaceDelete struct {
		ID string `path:"id" maxLength:"63"`
	}
	renamedOutput    struct{ Body api.Workspace }
	workspaceOutput  struct{ Body api.NewWorkspace }
	workspacesOutput struct{ Body api.Workspaces }
)

// workspaces registers the tenants of the installation.
func (s *settings) workspaces() {
	op := route.Tagged("users")
	listed := op(http.MethodGet, "/workspaces", "list-workspaces", "List workspaces by id")
	listed.Description = "The admins of the first workspace, who look after the installation, see all; others see their own."
	created := op(http.MethodPost, "/workspaces", "create-workspace", "Make a workspace with an admin")
	created.DefaultStatus = http.StatusCreated
	created.Description = "For the admins of the first workspace. The answer has a token of the new admin, which is shown this once. The person who makes a workspace has no access to it otherwise."
	issued := op(http.MethodPost, "/workspaces/{id}/tokens", "create-workspace-token", "Make a token of the admin of a workspace")
	issued.DefaultStatus = http.StatusCreated
	issued.Description = "The way back in when every token of a workspace is lost. It is taken from the machine of the data directory alone, and entered in the audit log of that workspace."
	route.Handle(s.Router, listed, route.Admins(), s.listWorkspaces)
	route.Handle(s.Router, created, route.Admins(), s.createWorkspace)
	renamed := op(http.MethodPatch, "/workspaces/{id}", "rename-workspace", "Give a workspace another name")
	renamed.Description = "For the admins of the first workspace, and for those of the workspace itself. Its id stays."
	deleted := op(http.MethodDelete, "/workspaces/{id}", "delete-workspace", "Delete a workspace that holds nothing any more")
	deleted.Description = "For the admins of the first workspace. It is refused while the workspace has workflows, agents, executions, credentials, tool servers or memories, or is the first one. " +
		"Its users, tokens and settings go with it; its audit log stays, and its id is never given again."
	deleted.DefaultStatus = http.StatusNoContent
	route.Handle(s.Router, issued, route.Admins(), s.createWorkspaceToken)
	route.Handle(s.Router, renamed, route.Admins(), s.renameWorkspace)
	route.Handle(s.Router, deleted, route.Admins(), s.deleteWorkspace)
}

// noWorkspace is the answer about other workspaces, whether they exist or not, to callers who do not look after the installation.
func noWorkspace() error {
	return fault.New(fault.NotFound, "there is no such workspace, or it is not yours to change")
}

// renameWorkspace gives a workspace another name. Callers who do not look after the installation learn only of their own.
func (s *settings) renameWorkspace(ctx context.Context, p identity.Principal, in *workspaceRename) (*renamedOutput, error) {
	if in.ID != p.Workspace && !s.looksAfter(p) {
		return nil, noWorkspace()
	}
	w, err := s.o.Stores.Workspaces.Get(ctx, identity.System(""), in.ID)
	if err != nil {
		return nil, err
	}
	name := strings.TrimSpace(in.Body.Name)
	if name == "" {
		return nil, api.WrongField("name", "a workspace has a name of at most %d characters", maxUserName)
	}
	ctx = route.Audited(ctx, "workspace.update", w.ID, map[string]any{"name": w.Name}, map[string]any{"name": name})
	if err := s.o.Stores.Workspaces.Rename(ctx, identity.System(""), w.ID, name); err != nil {
		return nil, err
	}
	w.Name = name
	return &renamedOutput{tellWorkspace(w)}, nil
}

// deleteWorkspace deletes a workspace that has no records left.
func (s *settings) deleteWorkspace(ctx context.Context, p identity.Principal, in *workspaceDelete) (*struct{}, error) {
	if in.ID != p.Workspace && !s.looksAfter(p) {
		return nil, noWorkspace()
	}
	if !s.looksAfter(p) {
		return nil, fault.Newf(fault.Forbidden, "workspaces are deleted by the admins of the first workspace of the installation")
	}
	if in.ID == s.o.Workspace {
		return nil, fault.Newf(fault.Conflict, "workspace %q is the first one, whose admins look after the installation; it stays", in.ID)
	}
	w, err := s.o.Stores.Workspaces.Get(ctx, identity.System(""), in.ID)
	if err != nil {
		return nil, err
	}
	s.accounts.Lock()
	defer s.accounts.Unlock()
	ctx = route.Audited(ctx, "workspace.delete", w.ID, map[string]any{"name": w.Name}, nil)
	return nil, s.o.Stores.Workspaces.Delete(ctx, identity.System(""), w.ID, s.NowMS())
}

// looksAfter says whether somebody looks after the whole installation.
func (s *settings) looksAfter(p identity.Principal) bool {
	return s.o.Workspace != "" && p.Workspace == s.o.Workspace
}

func (s *settings) listWorkspaces(ctx context.Context, p identity.Principal, _ *struct{}) (*workspacesOutput, error) {
	if s.looksAfter(p) {
		p = identity.System("")
	}
	list, err := s.o.Stores.Workspaces.List(ctx, p)
	if err != nil {
		return nil, err
	}
	out := &workspacesOutput{api.Workspaces{Workspaces: []api.Workspace{}}}
	for _, w := range list {
		if w.Deleted == 0 {
			out.Body.Workspaces = append(out.Body.Workspaces, tellWorkspace(w))
		}
	}
	return out, nil
}

func tellWorkspace(w identity.Workspace) api.Workspace {
	return api.Workspace{ID: w.ID, Name: w.Name, CreatedTime: w.Created}
}

func (s *settings) createWorkspace(ctx context.Context, p identity.Principal, in *workspaceCreate) (*workspaceOutput, error) {
	if !s.looksAfter(p) {
		return nil, fault.Newf(fault.Forbidden, "workspaces are made by the admins of the first workspace of the installation")
	}
	w := identity.Workspace{ID: in.Body.ID, Name: strings.TrimSpace(in.Body.Name), Created: s.NowMS()}
	if err := identity.CheckWorkspace(w.ID); err != nil {
		return nil, api.WrongField("id", "%s", text.OfError(fault.From(err)))
	}
	if w.Name == "" {
		w.Name = w.ID
	}
	if len(w.Name) > maxUserName {
		return nil, api.WrongField("name", "a workspace has a name of at most %d characters", maxUserName)
	}
	admin := in.Body.Admin
	if admin.ID == "" {
		admin.ID = firstAdmin
	}
	if admin.Name == "" {
		admin.Name = admin.ID
	}
	if slices.Contains([]string{"me", "system", localUser, ".", ".."}, admin.ID) {
		return nil, api.WrongField("admin.id", "%q is kept for Tandem itself; choose another", admin.ID)
	}
	u := identity.User{Workspace: w.ID, ID: admin.ID, Created: w.Created, Updated: w.Created}
	if err := s.readUser(&u, p, api.UserRequest{Name: admin.Name, Email: admin.Email,
		Roles: []string{string(identity.Admin)}}); err != nil {
		return nil, err
	}
	s.accounts.Lock()
	defer s.accounts.Unlock()
	audited := route.Audited(ctx, "workspace.create", w.ID, nil, map[string]any{"name": w.Name, "admin": u.ID})
	if err := s.o.Stores.Workspaces.Create(audited, identity.System(""), w); err != nil {
		return nil, route.ConflictOf(err, "there is already a workspace %q, or was one; if it was not finished, tandem admin token --workspace makes a token of its admin", w.ID)
	}
	if err := s.o.Stores.Users.Create(within(ctx, p, w.ID, "user.create", u.ID, auditedUser(u)), identity.System(w.ID), u); err != nil {
		return nil, err
	}
	token, err := s.seat(ctx, p, w.ID, u.ID, "first", 0)
	if err != nil {
		return nil, err
	}
	return &workspaceOutput{api.NewWorkspace{Workspace: tellWorkspace(w), User: tellUser(u), Token: token.Token, Secret: token.Secret}}, nil
}

// seat makes a token for an admin of another workspace.
func (s *settings) seat(ctx context.Context, p identity.Principal, workspace, user, name string, life int64) (api.NewToken, error) {
	t := identity.Token{Workspace: workspace, ID: route.NewID("tok"), User: user, Name: name, MadeBy: p.User, Created: s.NowMS()}
	if life > 0 {
		t.Expires = t.Created + life*1000
	}
	secret := identity.NewSecret()
	err := s.o.Stores.Tokens.Create(within(ctx, p, workspace, "token.create", t.ID, auditedToken(t)), identity.System(workspace),
		t, identity.HashSecret(secret))
	return api.NewToken{Token: tellToken(t), Secret: secret}, err
}

// within returns a context whose next change is entered in the audit log of another workspace, as that of the user who is named.
func within(ctx context.Context, p identity.Principal, workspace, action, id string, after any) context.Context {
	object, _, _ := strings.Cut(action, ".")
	return store.Audited(ctx, store.AuditEntry{Workspace: workspace, User: p.User, Means: p.Means, Action: action, Object: object,
		ObjectID: id, Detail: store.AuditChange(nil, after)})
}

// createWorkspaceToken lets the owner of the machine into a workspace again.
func (s *settings) createWorkspaceToken(ctx context.Context, p identity.Principal, in *workspaceToken) (*workspaceOutput, error) {
	if !s.looksAfter(p) || p.Means.Kind != identity.ByLocal {
		return nil, fault.Newf(fault.Forbidden, "a token of another workspace is made on the machine of the data directory alone, with tandem admin token --workspace")
	}
	if in.Body.ExpiresIn > maxTokenLife {
		return nil, api.WrongField("expires_in", "%d seconds are more than a century; leave it out for a token that is good for a day", in.Body.ExpiresIn)
	}
	other := identity.System(in.ID)
	w, err := s.o.Stores.Workspaces.Get(ctx, identity.System(""), in.ID)
	if err != nil {
		return nil, err
	}
	s.accounts.Lock()
	defer s.accounts.Unlock()
	u, err := s.o.Stores.Users.Get(ctx, other, firstAdmin)
	now := s.NowMS()
	switch {
	case errors.Is(err, store.ErrNotFound):
		u = identity.User{Workspace: in.ID, ID: firstAdmin, Name: "Admin",
			Roles: []identity.Role{identity.Admin}, Created: now, Updated: now}
		err = s.o.Stores.Users.Create(within(ctx, p, in.ID, "user.create", u.ID, auditedUser(u)), other, u)
	case err == nil && (u.Disabled || !slices.Contains(u.Roles, identity.Admin)):
		if !slices.Contains(u.Roles, identity.Admin) {
			u.Roles = append(u.Roles, identity.Admin)
		}
		u.Disabled, u.Updated = false, now
		err = s.o.Stores.Users.Update(within(ctx, p, in.ID, "user.update", u.ID, auditedUser(u)), other, u)
	}
	if err != nil {
		return nil, err
	}
	life := in.Body.ExpiresIn
	if life == 0 {
		life = recoveryLife
	}
	token, err := s.seat(ctx, p, in.ID, u.ID, "recovery", life)
	if err != nil {
		return nil, err
	}
	return &workspaceOutput{api.NewWorkspace{Workspace: tellWorkspace(w), User: tellUser(u), Token: token.Token, Secret: token.Secret}}, nil
}
