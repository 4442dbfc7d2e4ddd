package login

import (
	"context"
	"net/http"

	"tandem/api"
	"tandem/fault"
	"tandem/identity"
	"tandem/route"
)

type (
	sessionOutput struct {
		Cookie string `header:"Set-Cookie" doc:"the session; HttpOnly, and Secure on an encrypted connection"`
		Body   api.Session
	}
	endedOutput struct {
		Cookie string `header:"Set-Cookie"`
	}
	ownerInput struct {
		ID string `path:"id" maxLength:"128" doc:"of the user, or me"`
	}
	sessionInput struct {
		ID      string `path:"id" maxLength:"128" doc:"of the user, or me"`
		Session string `path:"session" maxLength:"128"`
	}
	sessionsOutput struct{ Body api.Sessions }
)

// sessions registers the sessions of browsers.
func (d *desk) sessions() {
	op := route.Tagged("sessions")
	login := op(http.MethodPost, "/sessions", "log-in", "Begin a session of a browser with a token")
	login.DefaultStatus = http.StatusCreated
	login.Description = "The session is in a cookie that scripts cannot read, and may be used for what the token may. It ends after 12 hours without use, after 30 days, when it is ended, when its user is disabled, and with the token. " +
		"A request with the cookie that could change something is taken from pages of this server alone."
	logout := op(http.MethodDelete, "/sessions/current", "log-out", "End the session of this browser")
	all := op(http.MethodDelete, "/users/{id}/sessions", "end-sessions", "End all sessions of a user but the one that asks")

	route.Handle(d.Router, route.Needs(login, identity.ScopeRead), route.Readers(), d.logIn)
	route.Handle(d.Router, route.Needs(logout, identity.ScopeRead), route.Readers(), d.logOut)
	route.Handle(d.Router, op(http.MethodGet, "/users/{id}/sessions", "list-sessions", "List the sessions of a user"),
		route.Readers(), d.listSessions)
	route.Handle(d.Router, route.Needs(all, identity.ScopeAdmin), route.Readers(), d.endSessions)
	route.Handle(d.Router, route.Needs(op(http.MethodDelete, "/users/{id}/sessions/{session}", "end-session", "End a session of a user"),
		identity.ScopeAdmin), route.Readers(), d.endSession)
}

func (d *desk) logIn(ctx context.Context, p identity.Principal, _ *struct{}) (*sessionOutput, error) {
	if p.Means.Kind != identity.ByToken {
		return nil, fault.New(fault.Conflict, "a session begins with a token; send one as: Authorization: Bearer TOKEN")
	}
	b, err := d.withToken(ctx, p)
	if err != nil {
		return nil, err
	}
	return &sessionOutput{d.SessionCookie(ctx, b.secret), tellSession(b.session, b.session.ID)}, nil
}

// withToken begins a session of somebody who has shown a token.
func (d *desk) withToken(ctx context.Context, p identity.Principal) (begun, error) {
	u := identity.User{Workspace: p.Workspace, ID: p.User}
	return d.begin(ctx, u, identity.Session{Method: "token", Token: p.Means.Token, TokenMadeBy: p.Means.TokenMadeBy, Scopes: p.Scopes})
}

func (d *desk) logOut(ctx context.Context, p identity.Principal, _ *struct{}) (*endedOutput, error) {
	if p.Means.Kind != identity.BySession {
		return nil, fault.New(fault.Conflict, "the request comes with no session that could be ended")
	}
	audited := route.Audited(ctx, "session.end", p.Means.Session, nil, nil)
	if err := d.o.Stores.Sessions.End(audited, p, p.User, p.Means.Session); err != nil {
		return nil, err
	}
	return &endedOutput{d.SessionCookie(ctx, "")}, nil
}

func (d *desk) listSessions(ctx context.Context, p identity.Principal, in *ownerInput) (*sessionsOutput, error) {
	user, err := d.owner(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	list, err := d.o.Stores.Sessions.List(ctx, p, user)
	if err != nil {
		return nil, err
	}
	out := &sessionsOutput{api.Sessions{Sessions: []api.Session{}}}
	now := d.NowMS()
	for _, s := range list {
		if s.Expires > now && s.Seen >= now-route.SessionIdle.Milliseconds() {
			out.Body.Sessions = append(out.Body.Sessions, tellSession(s, p.Means.Session))
		}
	}
	return out, nil
}

func (d *desk) endSession(ctx context.Context, p identity.Principal, in *sessionInput) (*route.Nothing, error) {
	user, err := d.owner(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	return nil, d.o.Stores.Sessions.End(route.Audited(ctx, "session.end", in.Session, map[string]string{"user_id": user}, nil), p, user,
		in.Session)
}

func (d *desk) endSessions(ctx context.Context, p identity.Principal, in *ownerInput) (*route.Nothing, error) {
	user, err := d.owner(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	except := ""
	if user == p.User {
		except = p.Means.Session
	}
	_, err = d.o.Stores.Sessions.EndAll(route.Audited(ctx, "session.end_all", user, nil, nil), p, user, except)
	return nil, err
}

// owner is the user whose sessions are meant. Everybody may see to their own.
func (d *desk) owner(ctx context.Context, p identity.Principal, id string) (string, error) {
	if id == "me" || id == p.User {
		return p.User, nil
	}
	if !p.Has(identity.Admin) {
		return "", fault.Newf(fault.Forbidden, "the sessions of %q are for that user and for admins", id)
	}
	u, err := d.o.Stores.Users.Get(ctx, p, id)
	return u.ID, err
}

func tellSession(s identity.Session, current string) api.Session {
	return api.Session{ID: s.ID, UserID: s.User, Method: s.Method, TokenID: s.Token, Address: s.Address, UserAgent: s.Agent,
		CreatedTime: s.Created, SeenTime: s.Seen, ExpiresTime: s.Expires, Current: s.ID == current}
}
