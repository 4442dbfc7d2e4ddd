package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

// The user that a new installation has, and the id of the token that its operator configures.
const (
	firstUser       = "admin"
	configuredToken = "tok_configured"
)

// maxToken bounds a configured token; [identity.Weakness] says which are too weak.
const maxToken = 1 << 10

// Bootstrap makes sure that somebody can log in. The first start makes the workspace, its first user, who is an admin, and
// a token, which is returned: it is not stored, so it must be shown.
//
// A configured token works instead, for as long as it is configured: one that an earlier start was configured with is
// revoked. When no admin is left with a token, a new one is made.
func (i *Instance) Bootstrap(ctx context.Context, configured string) (secret string, err error) {
	if err := i.ensureWorkspace(ctx); err != nil {
		return "", err
	}
	if configured != "" {
		return "", i.useToken(ctx, configured)
	}
	p := identity.System(defaultWorkspace)
	if err := i.dropConfigured(ctx, p); err != nil && !errors.Is(err, store.ErrNotFound) {
		return "", err
	}
	open, err := i.hasDoor(ctx, p)
	if err != nil || open {
		return "", err
	}
	if err := i.ensureAdmin(ctx, p); err != nil {
		return "", err
	}
	secret = identity.NewSecret()
	t := identity.Token{Workspace: defaultWorkspace, ID: newTokenID(), User: firstUser, Name: "first start", MadeBy: firstUser,
		Created: time.Now().UnixMilli()}
	return secret, i.issue(ctx, p, t, identity.HashSecret(secret))
}

// LoginCode makes the code of a link that logs the first user in once, within an hour. Its hash is kept.
func (i *Instance) LoginCode(ctx context.Context) (string, error) {
	secret, now := identity.NewSecret(), time.Now()
	t := identity.Token{Workspace: defaultWorkspace, ID: newTokenID(), User: firstUser, Name: "login link", MadeBy: firstUser,
		Scopes: []identity.Scope{identity.ScopeLogin}, Created: now.UnixMilli(), Expires: now.Add(identity.LoginLife).UnixMilli()}
	return secret, i.issue(ctx, identity.System(defaultWorkspace), t, identity.HashSecret(secret))
}

// useToken makes the configured token the one of the first user.
func (i *Instance) useToken(ctx context.Context, secret string) error {
	if len(secret) > maxToken || strings.ContainsFunc(secret, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fault.Newf(fault.Invalid, "the token (--token, TANDEM_TOKEN) must be %d to %d letters, digits and signs without spaces; %s", identity.MinChosenSecret, maxToken, identity.ChooseSecret())
	}
	if why := identity.Weakness(secret); !why.IsZero() {
		return fault.Newf(fault.Invalid, "the token (--token, TANDEM_TOKEN) %s, so it can be guessed; %s", why, identity.ChooseSecret())
	}
	p, hash := identity.System(defaultWorkspace), identity.HashSecret(secret)
	if err := i.ensureAdmin(ctx, p); err != nil {
		return err
	}
	t, _, err := i.stores.Tokens.Resolve(ctx, identity.System(""), hash, time.Now().UnixMilli())
	switch {
	case err == nil && t.Workspace == defaultWorkspace && t.User == firstUser:
		if t.ID == configuredToken {
			return nil
		}
		err := i.dropConfigured(ctx, p) // the token was made otherwise, and stays
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		return err
	case err == nil:
		return fault.Newf(fault.Conflict, "the configured token is that of user %q; configure another", t.User)
	case !errors.Is(err, store.ErrNotFound):
		return err
	}
	if err := i.dropConfigured(ctx, p); err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	t = identity.Token{Workspace: defaultWorkspace, ID: configuredToken, User: firstUser, Name: "configured by the operator",
		MadeBy: firstUser, Created: time.Now().UnixMilli()}
	if err := i.issue(ctx, p, t, hash); err != nil {
		return fmt.Errorf("keep the configured token: %w", err)
	}
	return nil
}

// issue stores a token that the operator has configured.
func (i *Instance) issue(ctx context.Context, p identity.Principal, t identity.Token, hash identity.SecretHash) error {
	return i.stores.Tokens.Create(store.AuditedBy(ctx, Local(), "token.create", t.ID, map[string]any{"user_id": t.User, "name": t.Name}), p,
		t, hash)
}

// dropConfigured revokes the token that an earlier start was configured with.
func (i *Instance) dropConfigured(ctx context.Context, p identity.Principal) error {
	return i.stores.Tokens.Delete(store.AuditedBy(ctx, Local(), "token.delete", configuredToken, map[string]any{"user_id": firstUser}), p,
		configuredToken)
}

func (i *Instance) ensureWorkspace(ctx context.Context) error {
	_, err := i.stores.Workspaces.Get(ctx, identity.System(defaultWorkspace), defaultWorkspace)
	if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return i.stores.Workspaces.Create(ctx, identity.System(""),
		identity.Workspace{ID: defaultWorkspace, Name: "Default", Created: time.Now().UnixMilli()})
}

// ensureAdmin makes the first user, or makes it an admin again: the operator who starts the process has decided so.
func (i *Instance) ensureAdmin(ctx context.Context, p identity.Principal) error {
	now := time.Now().UnixMilli()
	u, err := i.stores.Users.Get(ctx, p, firstUser)
	if errors.Is(err, store.ErrNotFound) {
		audited := store.AuditedBy(ctx, Local(), "user.create", firstUser, map[string]any{"roles": []identity.Role{identity.Admin}})
		return i.stores.Users.Create(audited, p, identity.User{Workspace: defaultWorkspace, ID: firstUser, Name: "Admin",
			Roles: []identity.Role{identity.Admin}, Created: now, Updated: now})
	}
	if err != nil || !u.Disabled && slices.Contains(u.Roles, identity.Admin) {
		return err
	}
	if !slices.Contains(u.Roles, identity.Admin) {
		u.Roles = append(u.Roles, identity.Admin)
	}
	u.Disabled, u.Updated = false, now
	return i.stores.Users.Update(store.AuditedBy(ctx, Local(), "user.update", u.ID, map[string]any{"roles": u.Roles, "enabled": true}), p,
		u)
}

// hasDoor says whether some admin has a token to log in with.
func (i *Instance) hasDoor(ctx context.Context, p identity.Principal) (bool, error) {
	users, err := i.stores.Users.List(ctx, p)
	if err != nil {
		return false, err
	}
	tokens, err := i.stores.Tokens.List(ctx, p, "")
	if err != nil {
		return false, err
	}
	now := time.Now().UnixMilli()
	return slices.ContainsFunc(tokens, func(t identity.Token) bool {
		return (t.Expires == 0 || t.Expires > now) && !slices.Contains(t.Scopes, identity.ScopeLogin) &&
			slices.ContainsFunc(users, func(u identity.User) bool {
				return u.ID == t.User && !u.Disabled && slices.Contains(u.Roles, identity.Admin)
			})
	}), nil
}
