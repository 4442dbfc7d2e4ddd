package store

import (
	"context"

	"tandem/identity"
)

// Workspaces keeps the tenants. Tandem itself makes and lists them; others see their own.
type Workspaces interface {
	Create(ctx context.Context, p identity.Principal, w identity.Workspace) error
	Get(ctx context.Context, p identity.Principal, id string) (identity.Workspace, error)
	// List returns those that the principal may see, in order of id.
	List(ctx context.Context, p identity.Principal) ([]identity.Workspace, error)
}

// Users keeps the users of a workspace.
type Users interface {
	// Create refuses an id that is taken with [ErrConflict], and a workspace that does not exist with [ErrNotFound].
	Create(ctx context.Context, p identity.Principal, u identity.User) error
	// Update replaces everything but when it was made. One who is disabled has no sessions any more.
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
	// Resolve finds out who a secret belongs to, at a time. Only Tandem itself may ask, without a workspace: that is what
	// the answer tells. [ErrNotFound] for an unknown or expired secret and for a disabled user.
	Resolve(ctx context.Context, p identity.Principal, hash identity.SecretHash, now int64) (identity.Token, identity.User, error)
	// List returns all of a user's, or of all users when the user is empty, in order of age.
	List(ctx context.Context, p identity.Principal, user string) ([]identity.Token, error)
	// Used notes that a token was used. One that is not there is passed over.
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
}

// Credentials keeps sealed secrets.
type Credentials interface {
	// Create refuses an id or a name that is taken with [ErrConflict].
	Create(ctx context.Context, p identity.Principal, c Credential) error
	// Update replaces name, type and secret. The id and who made it stay.
	Update(ctx context.Context, p identity.Principal, c Credential) error
	Get(ctx context.Context, p identity.Principal, id string) (Credential, error)
	// List returns all, in order of name, without their secrets.
	List(ctx context.Context, p identity.Principal) ([]Credential, error)
	Delete(ctx context.Context, p identity.Principal, id string) error
}
