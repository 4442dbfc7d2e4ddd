package login

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"tandem/api"
	"tandem/fault"
	"tandem/identity"
	"tandem/route"
	"tandem/store"
	"tandem/text"
)

// JoinPath is before the secret of an invitation in its link.
const JoinPath = "/join/"

// How long an invitation is good: when nothing is said, and at most. maxJoin bounds the form that accepts one.
const (
	usualInvitation = 7 * 24 * time.Hour
	maxInvitation   = 90 * 24 * time.Hour
	maxJoin         = 1 << 12
)

// Bounds of what is said about who is invited.
const (
	maxName  = 200
	maxEmail = 320
)

type (
	inviteInput     struct{ Body api.InvitationRequest }
	invitedOutput   struct{ Body api.NewInvitation }
	invitationInput struct {
		ID string `path:"id" maxLength:"128"`
	}
	invitationOutput struct{ Body api.Invitations }
)

// invitations registers invitations and the page on which one is accepted.
func (d *desk) invitations() {
	op := route.Tagged("users")
	invite := op(http.MethodPost, "/invitations", "create-invitation", "Invite somebody to the workspace")
	invite.DefaultStatus = http.StatusCreated
	invite.Description = "The link is in this answer and nowhere else; anyone who has it becomes a user with these roles, once. Where people log in at a provider of identities, the person who has the verified address is let in without the link."
	route.Handle(d.Router, invite, route.Admins(), d.invite)
	route.Handle(d.Router, op(http.MethodGet, "/invitations", "list-invitations", "List invitations, the newest first"),
		route.Admins(), d.listInvitations)
	route.Handle(d.Router, op(http.MethodDelete, "/invitations/{id}", "delete-invitation", "Take back an invitation that was not used"),
		route.Admins(), d.deleteInvitation)
	d.ToStrangers(JoinPath, "{token}", maxJoin, map[string]http.HandlerFunc{http.MethodGet: d.showInvitation,
		http.MethodPost: d.acceptInvitation})
}

func (d *desk) invite(ctx context.Context, p identity.Principal, in *inviteInput) (*invitedOutput, error) {
	i := identity.Invitation{
		Workspace: p.Workspace, ID: route.NewID("inv"), Email: strings.TrimSpace(in.Body.Email), Name: strings.TrimSpace(in.Body.Name),
		InvitedBy: p.User, TokenMadeBy: p.TokenMadeBy(), Created: d.NowMS(),
	}
	switch {
	case !strings.Contains(i.Email, "@") || len(i.Email) > maxEmail:
		return nil, api.WrongField("email", "%q is not a mail address", i.Email)
	case len(i.Name) > maxName:
		return nil, api.WrongField("name", "a name has at most %d characters", maxName)
	case in.Body.ExpiresIn < 0 || in.Body.ExpiresIn > int64(maxInvitation/time.Second):
		return nil, api.WrongField("expires_in", "an invitation is good for at most %d days", maxInvitation/(24*time.Hour))
	case len(in.Body.Roles) == 0:
		return nil, api.WrongField("roles", "name the roles that they will have; there are %s", route.RoleList(identity.Roles(), "and"))
	}
	for n, name := range in.Body.Roles {
		r := identity.Role(name)
		if !r.Known() {
			return nil, api.WrongField(fmt.Sprintf("roles[%d]", n), "there is no role %q; there are %s", name,
				route.RoleList(identity.Roles(), "and"))
		}
		if !slices.Contains(i.Roles, r) {
			i.Roles = append(i.Roles, r)
		}
	}
	life := usualInvitation
	if in.Body.ExpiresIn > 0 {
		life = time.Duration(in.Body.ExpiresIn) * time.Second
	}
	i.Expires = i.Created + life.Milliseconds()
	secret := identity.NewSecret()
	audited := route.Audited(ctx, "invitation.create", i.ID, nil,
		map[string]any{"email": i.Email, "roles": i.Roles, "expires_time": i.Expires})
	if err := d.o.Stores.Invitations.Create(audited, p, i, identity.HashSecret(secret)); err != nil {
		return nil, err
	}
	return &invitedOutput{api.NewInvitation{Invitation: tellInvitation(i), URL: d.o.PublicURL + JoinPath + secret}}, nil
}

func (d *desk) listInvitations(ctx context.Context, p identity.Principal, _ *struct{}) (*invitationOutput, error) {
	list, err := d.o.Stores.Invitations.List(ctx, p)
	if err != nil {
		return nil, err
	}
	out := &invitationOutput{api.Invitations{Invitations: make([]api.Invitation, len(list))}}
	for n, i := range list {
		out.Body.Invitations[n] = tellInvitation(i)
	}
	return out, nil
}

func (d *desk) deleteInvitation(ctx context.Context, p identity.Principal, in *invitationInput) (*route.Nothing, error) {
	return nil, d.o.Stores.Invitations.Delete(route.Audited(ctx, "invitation.delete", in.ID, nil, nil), p, in.ID)
}

// opened finds the invitation of a link.
func (d *desk) opened(r *http.Request) (identity.Invitation, error) {
	hash := identity.HashSecret(r.PathValue("token"))
	leave, err := d.Links.Enter(r.Context(), d.AddressOf(r.Context()), identity.HashSecret(JoinPath+r.PathValue("token")))
	if err != nil {
		return identity.Invitation{}, err
	}
	i, err := d.o.Stores.Invitations.Resolve(r.Context(), identity.System(""), hash, d.NowMS())
	leave(err == nil, err == nil || errors.Is(err, store.ErrNotFound))
	if err != nil {
		return i, err
	}
	return i, d.stands(r.Context(), i)
}

// stands says why an invitation is not good any more though nobody has used it: the one who invited may not invite any more.
func (d *desk) stands(ctx context.Context, i identity.Invitation) error {
	if i.InvitedBy == identity.LocalUser { // on the machine itself
		return nil
	}
	u, err := d.o.Stores.Users.Get(ctx, identity.System(i.Workspace), i.InvitedBy)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if err != nil || u.Disabled || !slices.Contains(u.Roles, identity.Admin) {
		return fault.Newf(fault.NotFound, "%q, who has invited, is no longer an admin here; ask another admin for an invitation", i.InvitedBy)
	}
	return nil
}

// showInvitation asks whether somebody wants to join. Looking at it uses nothing up: programs that look after mail open links.
func (d *desk) showInvitation(w http.ResponseWriter, r *http.Request) {
	i, err := d.opened(r)
	if err != nil {
		d.closed(w, r, err)
		return
	}
	d.page(w, r, http.StatusOK, func(say func(text.Text) string) pageContent {
		return pageContent{
			Heading: say(text.Of("Join Tandem")),
			Lines: []string{
				say(text.Of("%s invites you (%s) to the workspace %s.", i.InvitedBy, i.Email, i.Workspace)),
			},
			Action: r.URL.Path, Button: say(text.Of("Join")),
		}
	})
}

// acceptInvitation makes the user, a token and a session.
func (d *desk) acceptInvitation(w http.ResponseWriter, r *http.Request) {
	// It logs the browser in, so a page of another site must not be able to send it.
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		d.closed(w, r, fault.New(fault.Forbidden, "a page of another site may not ask for this").WithCause(err))
		return
	}
	i, err := d.opened(r)
	if err != nil {
		d.closed(w, r, err)
		return
	}
	ctx := r.Context()
	secret := identity.NewSecret()
	hash := identity.HashSecret(secret)
	u, err := d.accept(ctx, i, func(a *store.Acceptance) {
		a.TokenHash = &hash
		a.Token = identity.Token{Workspace: i.Workspace, ID: route.NewID("tok"), User: a.User.ID, Name: "invitation",
			MadeBy: a.User.ID, Created: a.Now}
	})
	if err != nil {
		d.closed(w, r, err)
		return
	}
	b, err := d.begin(ctx, u, identity.Session{Method: "invitation"})
	if err != nil {
		d.closed(w, r, err)
		return
	}
	d.SetSession(w, r, b.secret)
	d.page(w, r, http.StatusOK, func(say func(text.Text) string) pageContent {
		return pageContent{
			Heading: say(text.Of("Welcome")),
			Lines: []string{
				say(text.Of("You are the user %s of the workspace %s now, and this browser is logged in.", u.ID, i.Workspace)),
				say(text.Of("Your token for the command line and for programs, shown this once:")),
			},
			Secret: secret,
		}
	})
}

// accept uses an invitation up. The id of the user is made from the address.
func (d *desk) accept(ctx context.Context, i identity.Invitation, complete func(*store.Acceptance)) (identity.User, error) {
	system, now := identity.System(i.Workspace), d.NowMS()
	local, _, _ := strings.Cut(i.Email, "@")
	id, err := route.FreeID(route.MadeID(local, "user"), func(id string) error {
		if slices.Contains([]string{"me", "system", identity.LocalUser}, id) {
			return nil // they are taken
		}
		_, err := d.o.Stores.Users.Get(ctx, system, id)
		return err
	})
	if err != nil {
		return identity.User{}, err
	}
	u := identity.User{Workspace: i.Workspace, ID: id, Name: i.Name, Email: i.Email, Roles: i.Roles, Created: now, Updated: now}
	if u.Name == "" {
		u.Name = local
	}
	// An answer from the address is theirs, so it is on record who has entered it.
	if err := u.SetAddressOrigins(map[string]identity.AddressOrigin{"mail:" + strings.ToLower(i.Email): {By: i.InvitedBy,
		TokenMadeBy: i.TokenMadeBy, At: i.Created}}); err != nil {
		return u, err
	}
	a := store.Acceptance{Invitation: i.ID, Now: now, User: u}
	complete(&a)
	entry := d.EntryOf(ctx, identity.Principal{Workspace: i.Workspace, User: id, Means: identity.Means{Kind: identity.ByLink}},
		"invitation.accept", i.ID)
	entry.Detail = store.AuditDetail(map[string]any{"user_id": id, "email": i.Email, "roles": i.Roles, "invited_by": i.InvitedBy})
	return u, d.o.Stores.Invitations.Accept(store.Audited(ctx, entry), system, a)
}

// closed says why there is nothing to join.
func (d *desk) closed(w http.ResponseWriter, r *http.Request, err error) {
	told := d.Problem(r.Context(), identity.Principal{}, err)
	if fault.CodeOf(err) == fault.NotFound {
		d.o.Notice(w, r, told.Status, text.Of("This invitation is not good any more"), text.Of("It was used, has expired, or never existed. Ask the person who invited you for another one."))
		return
	}
	d.o.Notice(w, r, told.Status, text.Of("You cannot join right now"), text.As(told.Detail))
}

func tellInvitation(i identity.Invitation) api.Invitation {
	out := api.Invitation{ID: i.ID, Email: i.Email, Name: i.Name, InvitedBy: i.InvitedBy, TokenMadeBy: i.TokenMadeBy,
		CreatedTime: i.Created, ExpiresTime: i.Expires, AcceptedTime: i.Accepted, UserID: i.User}
	for _, r := range i.Roles {
		out.Roles = append(out.Roles, string(r))
	}
	return out
}
