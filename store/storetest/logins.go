package storetest

import (
	"context"
	"sync"
	"testing"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

// loginProbes are those of the audit log, sessions, invitations and logins, see [probes].
func loginProbes() map[string]probe {
	return map[string]probe{
		"Audit.Enter": func(ctx context.Context, s store.Stores, p identity.Principal, k known) (any, error) {
			return nil, s.Audit.Enter(ctx, p, store.AuditEntry{Workspace: k.workspace, Action: "from b"})
		},
		"Audit.List": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Audit.List(ctx, p, store.AuditQuery{Limit: 100})
		},
		"Audit.All": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			var all []store.AuditEntry
			for e, err := range s.Audit.All(ctx, p, store.AuditQuery{}) {
				if err != nil {
					return nil, err
				}
				all = append(all, e)
			}
			return all, nil
		},
		"Audit.Retain": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Audit.Retain(ctx, p, 1<<50, 0, 1)
		},
		"Sessions.Create": func(ctx context.Context, s store.Stores, p identity.Principal, k known) (any, error) {
			return nil, s.Sessions.Create(ctx, p, identity.Session{Workspace: k.workspace, ID: "intruder", User: "ann"},
				identity.HashSecret("intruder"))
		},
		"Sessions.Resolve": func(ctx context.Context, s store.Stores, p identity.Principal, k known) (any, error) {
			x, u, err := s.Sessions.Resolve(ctx, p, identity.HashSecret(secret+k.workspace), 1, 0)
			return []any{x, u}, err
		},
		"Sessions.Seen": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return nil, s.Sessions.Seen(ctx, p, "ses", 5)
		},
		"Sessions.List": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Sessions.List(ctx, p, "ann")
		},
		"Sessions.End": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return nil, s.Sessions.End(ctx, p, "ann", "ses")
		},
		"Sessions.EndAll": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Sessions.EndAll(ctx, p, "ann", "")
		},
		"Sessions.Expire": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Sessions.Expire(ctx, p, 1<<50, 1<<50)
		},
		"Invitations.Create": func(ctx context.Context, s store.Stores, p identity.Principal, k known) (any, error) {
			return nil, s.Invitations.Create(ctx, p, identity.Invitation{Workspace: k.workspace, ID: "intruder"},
				identity.HashSecret("intruder "+p.Workspace))
		},
		"Invitations.List": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Invitations.List(ctx, p)
		},
		"Invitations.Delete": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return nil, s.Invitations.Delete(ctx, p, "inv")
		},
		"Invitations.Resolve": func(ctx context.Context, s store.Stores, p identity.Principal, k known) (any, error) {
			return s.Invitations.Resolve(ctx, p, identity.HashSecret(secret+k.workspace), 1)
		},
		"Invitations.ForEmail": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Invitations.ForEmail(ctx, p, secret, 1)
		},
		"Invitations.Accept": func(ctx context.Context, s store.Stores, p identity.Principal, k known) (any, error) {
			return nil, s.Invitations.Accept(ctx, p, store.Acceptance{Invitation: "inv", Now: 1,
				User: identity.User{Workspace: k.workspace, ID: "intruder"}})
		},
		"Logins.Resolve": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			l, u, err := s.Logins.Resolve(ctx, p, secret, p.Workspace)
			return []any{l, u}, err
		},
		"Logins.Bind": func(ctx context.Context, s store.Stores, p identity.Principal, k known) (any, error) {
			return nil, s.Logins.Bind(ctx, p, identity.Login{Issuer: "i", Subject: "s", Workspace: k.workspace, User: "ann"})
		},
	}
}

// fillLogins stores one of each for a tenant, whose user is ann.
func fillLogins(t *testing.T, s store.Stores, p identity.Principal) {
	t.Helper()
	ctx := t.Context()
	ok(t, s.Audit.Enter(ctx, p, store.AuditEntry{Time: 1, Action: "x", ObjectID: secret}))
	ok(t, s.Sessions.Create(ctx, p, identity.Session{ID: "ses", User: "ann", Agent: secret, Seen: 1, Expires: 1 << 50},
		identity.HashSecret(secret+p.Workspace)))
	ok(t, s.Invitations.Create(ctx, p, identity.Invitation{ID: "inv", Email: secret, Roles: []identity.Role{identity.Viewer},
		Expires: 1 << 50}, identity.HashSecret(secret+p.Workspace)))
	ok(t, s.Logins.Bind(ctx, p, identity.Login{Issuer: secret, Subject: p.Workspace, User: "ann"}))
}

// ann makes a workspace with a user.
func ann(t *testing.T, s store.Stores) (identity.Principal, identity.User) {
	t.Helper()
	p := tenant(t)
	u := identity.User{Workspace: p.Workspace, ID: "ann", Name: "Ann", Roles: []identity.Role{identity.Admin}}
	ok(t, s.Workspaces.Create(t.Context(), identity.System(""), identity.Workspace{ID: p.Workspace}))
	ok(t, s.Users.Create(t.Context(), p, u))
	return p, u
}

func testTokenUse(t *testing.T, s store.Stores) {
	p, _ := ann(t, s)
	ctx, secret := t.Context(), identity.NewSecret()
	token := identity.Token{Workspace: p.Workspace, ID: "t1", User: "ann",
		Scopes: []identity.Scope{identity.ScopeRead, identity.ScopeExecute}}
	ok(t, s.Tokens.Create(ctx, p, token, identity.HashSecret(secret)))
	wantCode(t, "an unknown scope", s.Tokens.Create(ctx, p, identity.Token{ID: "t2", User: "ann", Scopes: []identity.Scope{"fly"}},
		identity.HashSecret("x")), fault.Invalid)
	got, _, err := s.Tokens.Resolve(ctx, identity.System(""), identity.HashSecret(secret), 1)
	ok(t, err)
	equal(t, "resolved", token, got)
	ok(t, s.Tokens.Used(ctx, p, "t1", 50))
	ok(t, s.Tokens.Used(ctx, p, "t1", 40))
	ok(t, s.Tokens.Used(ctx, p, "nothing", 40))
	token.LastUsed = 50
	equal(t, "listed", []identity.Token{token}, must[[]identity.Token](t)(s.Tokens.List(ctx, p, "ann")))
	// A token of the same id that comes later was not used.
	ok(t, s.Tokens.Delete(ctx, p, "t1"))
	ok(t, s.Tokens.Create(ctx, p, token, identity.HashSecret(secret)))
	equal(t, "used before", int64(0), must[[]identity.Token](t)(s.Tokens.List(ctx, p, ""))[0].LastUsed)
}

func testSessions(t *testing.T, s store.Stores) {
	p, u := ann(t, s)
	ctx, system := t.Context(), identity.System("")
	session := func(id string) identity.Session {
		return identity.Session{Workspace: p.Workspace, ID: id, User: "ann", Method: "token", Token: "tok", TokenMadeBy: "boss",
			Scopes: []identity.Scope{identity.ScopeRead}, Address: "192.0.2.1", Agent: "browser", Created: 100, Seen: 100, Expires: 1000}
	}
	hash := func(id string) identity.SecretHash { return identity.HashSecret(p.Workspace + id) }
	is := func(id string, now, idle int64) bool {
		got, user, err := s.Sessions.Resolve(ctx, system, hash(id), now, idle)
		if err != nil {
			wantCode(t, "an ended session", err, fault.NotFound)
			return false
		}
		return got.ID == id && user.ID == "ann"
	}
	ok(t, s.Tokens.Create(ctx, p, identity.Token{Workspace: p.Workspace, ID: "tok", User: "ann", Name: "browser", Created: 1,
		Expires: 2000}, identity.HashSecret(p.Workspace+"tok")))
	for _, id := range []string{"a", "b", "c"} {
		ok(t, s.Sessions.Create(ctx, p, session(id), hash(id)))
	}
	for id, token := range map[string]string{"of-gone": "gone", "of-brief": "brief"} { // order does not matter: each has its own
		ok(t, s.Tokens.Create(ctx, p, identity.Token{Workspace: p.Workspace, ID: token, User: "ann", Name: token, Created: 1, Expires: 600},
			identity.HashSecret(p.Workspace+token)))
		of := session(id)
		of.Token = token
		ok(t, s.Sessions.Create(ctx, p, of, hash(id)))
		equal(t, "while its token lasts", true, is(id, 599, 50))
	}
	equal(t, "after its token has expired", false, is("of-brief", 600, 50))
	ok(t, s.Tokens.Delete(ctx, p, "gone"))
	equal(t, "after its token was deleted", false, is("of-gone", 599, 50))
	for _, id := range []string{"of-gone", "of-brief"} {
		ok(t, s.Sessions.End(ctx, p, "ann", id))
	}
	got, _, err := s.Sessions.Resolve(ctx, system, hash("a"), 500, 50)
	ok(t, err)
	equal(t, "resolved", session("a"), got)
	_, _, err = s.Sessions.Resolve(ctx, p, hash("a"), 500, 50)
	wantCode(t, "resolved by a user", err, fault.Forbidden)
	wantCode(t, "twice", s.Sessions.Create(ctx, p, session("a"), identity.HashSecret("z")), fault.Conflict)
	wantCode(t, "of nobody", s.Sessions.Create(ctx, p, identity.Session{ID: "n", User: "bob"}, hash("n")), fault.NotFound)
	equal(t, "expired", false, is("a", 1000, 50))
	equal(t, "idle", false, is("a", 500, 101))
	ok(t, s.Sessions.Seen(ctx, p, "a", 400))
	equal(t, "seen", true, is("a", 500, 101))
	equal(t, "others were not seen", false, is("b", 500, 101))
	ok(t, s.Sessions.End(ctx, p, "ann", "a"))
	equal(t, "ended", false, is("a", 500, 50))
	wantCode(t, "ended twice", s.Sessions.End(ctx, p, "ann", "a"), fault.NotFound)
	ok(t, s.Sessions.Create(ctx, p, session("a"), hash("a")))
	equal(t, "all but one", 2, must[int](t)(s.Sessions.EndAll(ctx, p, "ann", "b")))
	equal(t, "left", []identity.Session{session("b")}, must[[]identity.Session](t)(s.Sessions.List(ctx, p, "ann")))
	u.Disabled = true
	ok(t, s.Users.Update(ctx, p, u))
	equal(t, "of a disabled user", 0, len(must[[]identity.Session](t)(s.Sessions.List(ctx, p, "ann"))))
	wantCode(t, "login of a disabled user", s.Sessions.Create(ctx, p, session("d"), hash("d")), fault.NotFound)
	u.Disabled = false
	ok(t, s.Users.Update(ctx, p, u))
	equal(t, "does not come back", false, is("b", 500, 50))
	ok(t, s.Sessions.Create(ctx, p, session("e"), hash("e")))
	must[int](t)(s.Sessions.Expire(ctx, system, 1000, 0))
	equal(t, "removed", 0, len(must[[]identity.Session](t)(s.Sessions.List(ctx, p, "ann"))))
	ok(t, s.Sessions.Create(ctx, p, session("f"), hash("f")))
	ok(t, s.Users.Delete(ctx, p, "ann"))
	equal(t, "of a removed user", false, is("f", 500, 50))
}

func testInvitations(t *testing.T, s store.Stores) {
	p, _ := ann(t, s)
	ctx, system := t.Context(), identity.System("")
	mail := p.Workspace + "@example.com"
	i := identity.Invitation{Workspace: p.Workspace, ID: "i1", Email: mail, Name: "Bob", Roles: []identity.Role{identity.Operator},
		InvitedBy: "ann", TokenMadeBy: "boss", Created: 10, Expires: 100}
	ok(t, s.Invitations.Create(ctx, p, i, identity.HashSecret(mail)))
	wantCode(t, "twice", s.Invitations.Create(ctx, p, i, identity.HashSecret("x")), fault.Conflict)
	wantCode(t, "unknown role", s.Invitations.Create(ctx, p, identity.Invitation{ID: "i2", Roles: []identity.Role{"king"}}, identity.HashSecret("y")), fault.Invalid)
	equal(t, "open", i, must[identity.Invitation](t)(s.Invitations.Resolve(ctx, system, identity.HashSecret(mail), 99)))
	equal(t, "by mail", []identity.Invitation{i}, must[[]identity.Invitation](t)(s.Invitations.ForEmail(ctx, system, "WS"+mail[2:], 99)))
	_, err := s.Invitations.Resolve(ctx, system, identity.HashSecret(mail), 100)
	wantCode(t, "expired", err, fault.NotFound)
	equal(t, "expired, by mail", 0, len(must[[]identity.Invitation](t)(s.Invitations.ForEmail(ctx, system, mail, 100))))
	_, err = s.Invitations.Resolve(ctx, p, identity.HashSecret(mail), 50)
	wantCode(t, "resolved by a user", err, fault.Forbidden)

	accept := func(user string) error {
		hash := identity.HashSecret(mail + user)
		return s.Invitations.Accept(ctx, p, store.Acceptance{
			Invitation: "i1", Now: 50, User: identity.User{ID: user, Name: "Bob", Email: mail, Roles: []identity.Role{identity.Admin}},
			Token: identity.Token{ID: "tok-" + user, User: user}, TokenHash: &hash,
			Login: &identity.Login{Issuer: "issuer", Subject: mail + user, User: user},
		})
	}
	wantCode(t, "for an id that is taken", accept("ann"), fault.Conflict)
	// Of many at once one succeeds.
	var all sync.WaitGroup
	errs := make([]error, 8)
	for n := range errs {
		all.Go(func() { errs[n] = accept([]string{"u0", "u1", "u2", "u3", "u4", "u5", "u6", "u7"}[n]) })
	}
	all.Wait()
	done := 0
	for _, err := range errs {
		if err == nil {
			done++
		} else {
			wantCode(t, "an invitation that was used", err, fault.NotFound)
		}
	}
	equal(t, "users that came of it", 1, done)
	users := must[[]identity.User](t)(s.Users.List(ctx, p))
	equal(t, "users", 2, len(users))
	bob := users[1]
	equal(t, "roles are those of the invitation", []identity.Role{identity.Operator}, bob.Roles)
	token, _, err := s.Tokens.Resolve(ctx, system, identity.HashSecret(mail+bob.ID), 60)
	ok(t, err)
	equal(t, "token", bob.ID, token.User)
	_, known, err := s.Logins.Resolve(ctx, system, "issuer", mail+bob.ID)
	ok(t, err)
	equal(t, "login", bob.ID, known.ID)
	i.Accepted, i.User = 50, bob.ID
	equal(t, "listed", []identity.Invitation{i}, must[[]identity.Invitation](t)(s.Invitations.List(ctx, p)))
	wantCode(t, "taken back after it was used", s.Invitations.Delete(ctx, p, "i1"), fault.Conflict)
	ok(t, s.Invitations.Create(ctx, p, identity.Invitation{ID: "i3", Expires: 100}, identity.HashSecret(mail+"3")))
	ok(t, s.Invitations.Delete(ctx, p, "i3"))
	wantCode(t, "taken back twice", s.Invitations.Delete(ctx, p, "i3"), fault.NotFound)
}

func testLogins(t *testing.T, s store.Stores) {
	p, _ := ann(t, s)
	ctx, system := t.Context(), identity.System("")
	l := identity.Login{Issuer: "https://issuer.example", Subject: p.Workspace, Workspace: p.Workspace, User: "ann", Created: 5}
	ok(t, s.Logins.Bind(ctx, p, l))
	wantCode(t, "twice", s.Logins.Bind(ctx, p, l), fault.Conflict)
	wantCode(t, "of nobody", s.Logins.Bind(ctx, p, identity.Login{Issuer: "i", Subject: "s", User: "bob"}), fault.NotFound)
	got, u, err := s.Logins.Resolve(ctx, system, l.Issuer, l.Subject)
	ok(t, err)
	equal(t, "login", l, got)
	equal(t, "user", "ann", u.ID)
	_, _, err = s.Logins.Resolve(ctx, system, "https://another.example", l.Subject)
	wantCode(t, "the same subject elsewhere", err, fault.NotFound)
	_, _, err = s.Logins.Resolve(ctx, p, l.Issuer, l.Subject)
	wantCode(t, "resolved by a user", err, fault.Forbidden)
	ok(t, s.Users.Delete(ctx, p, "ann"))
	_, _, err = s.Logins.Resolve(ctx, system, l.Issuer, l.Subject)
	wantCode(t, "of a removed user", err, fault.NotFound)
}
