package store

import (
	"context"

	"tandem/identity"
)

// Workspaces keeps the tenants. Tandem itself makes and lists them; others see their own.
type Workspaces interface {
	Create(ctx context.Context, p identity.Principal, w identity.Workspace) error
	Get(ctx context.Context, p identity.Principal, id string) (identity.Workspace, error)
	// List returns those that the principal may see, in order of id; for Tandem itself also deleted ones.
	List(ctx context.Context, p identity.Principal) ([]identity.Workspace, error)
	// Rename gives one another name. Only Tandem itself may, as for Delete.
	Rename(ctx context.Context, p identity.Principal, id, name string) error
	// Delete removes a workspace that has no records left, with its users, tokens and settings. [ErrConflict] says what it still holds:
	// workflows, executions, credentials, tool servers or memories. Its audit log stays, and its id is never given again.
	Delete(ctx context.Context, p identity.Principal, id string, now int64) error
}

// Users keeps the users of a workspace.
type Users interface {
	// Create refuses an id that is taken with [ErrConflict], and a workspace that does not exist with [ErrNotFound].
	Create(ctx context.Context, p identity.Principal, u identity.User) error
	// Update replaces everything but the time it was made. The sessions of a user who is disabled end.
	Update(ctx context.Context, p identity.Principal, u identity.User) error
	Get(ctx context.Context, p identity.Principal, id string) (identity.User, error)
	// List returns all, in order of id.
	List(ctx context.Context, p identity.Principal) ([]identity.User, error)
	// Delete removes a user with its tokens, sessions and logins.
	Delete(ctx context.Context, p identity.Principal, id string) error
}

// Tokens keeps the hashes of API tokens.
type Tokens interface {
	// Create keeps a token of an existing user.
	Create(ctx context.Context, p identity.Principal, t identity.Token, hash identity.SecretHash) error
	// Resolve finds the user that a secret belongs to, at a time. Only Tandem itself may ask, without a workspace, which
	// the answer names. [ErrNotFound] for an unknown or expired secret and for a disabled user.
	Resolve(ctx context.Context, p identity.Principal, hash identity.SecretHash, now int64) (identity.Token, identity.User, error)
	// List returns all tokens of a user, or of all users when the user is empty, in order of age.
	List(ctx context.Context, p identity.Principal, user string) ([]identity.Token, error)
	// Used records that a token was used. A token that does not exist is ignored.
	Used(ctx context.Context, p identity.Principal, id string, at int64) error
	Delete(ctx context.Context, p identity.Principal, id string) error
}

// Credential is a secret of a workspace, sealed: only package credential can open it.
type Credential struct {
	Workspace string
	ID        string
	Name      string
	Type      string
	// Sealed is left out of listings.
	Sealed    []byte
	CreatedBy string
	// TokenMadeBy is who made the token that it was made with, if it was somebody else than CreatedBy.
	TokenMadeBy string
	Created     int64
	Updated     int64
	// Problem says why the credential cannot be used until a person authorizes it again; empty: it can. It holds no secret.
	Problem string
	// Version counts the changes. Drivers set it.
	Version int64
}

// Credentials keeps sealed secrets.
type Credentials interface {
	// Create refuses an id or a name that is taken with [ErrConflict]. A name that is the id of another credential is taken, too, so that a
	// text never means two of them.
	Create(ctx context.Context, p identity.Principal, c Credential) error
	// Update replaces name, type, secret and problem, and ends a lease. The id and who made it stay.
	Update(ctx context.Context, p identity.Principal, c Credential) error
	// Swap replaces secret, problem and the time of the last change of a credential that was not changed since it was read. If its
	// version is another one now, the error is [ErrConflict].
	Swap(ctx context.Context, p identity.Principal, c Credential) error
	// Lease gives one holder the right to renew the tokens of a credential until a time, in milliseconds, and says whether it has it: not
	// while another holder's lease lasts. A time that is not after now gives the holder's lease back. It changes no version.
	Lease(ctx context.Context, p identity.Principal, id, holder string, now, until int64) (bool, error)
	Get(ctx context.Context, p identity.Principal, id string) (Credential, error)
	// Find returns the credential with an id or, if there is none, with a name.
	Find(ctx context.Context, p identity.Principal, name string) (Credential, error)
	// List returns all of the workspace, in order of name, without their secrets; for Tandem itself those of all workspaces.
	List(ctx context.Context, p identity.Principal) ([]Credential, error)
	Delete(ctx context.Context, p identity.Principal, id string) error
}
