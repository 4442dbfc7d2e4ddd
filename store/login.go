package store

import (
	"context"

	"tandem/identity"
)

// Sessions keeps the browsers that users have logged in with, by the hash of their secret. A session ends when it is ended, when it
// was not used for some time, when it expires, with its user, and with the token that it began with.
type Sessions interface {
	// Create keeps a session of an existing user who is not disabled.
	Create(ctx context.Context, p identity.Principal, s identity.Session, hash identity.SecretHash) error
	// Resolve finds the session of a secret, at a time. Only Tandem itself may ask, without a workspace. A session that was last seen
	// before Idle has ended. [ErrNotFound] for one that has ended, for a disabled user and for a token that was deleted or has expired.
	Resolve(ctx context.Context, p identity.Principal, hash identity.SecretHash, now, idle int64) (identity.Session, identity.User, error)
	// Seen records that a session was used.
	Seen(ctx context.Context, p identity.Principal, id string, at int64) error
	// List returns the sessions of a user, the newest first.
	List(ctx context.Context, p identity.Principal, user string) ([]identity.Session, error)
	// End ends one session of a user.
	End(ctx context.Context, p identity.Principal, user, id string) error
	// EndAll ends all sessions of a user except one; an empty id excepts none. It returns how many.
	EndAll(ctx context.Context, p identity.Principal, user, except string) (int, error)
	// Expire removes the sessions of all workspaces that have expired. Only Tandem itself may ask.
	Expire(ctx context.Context, p identity.Principal, now, idle int64) (int, error)
}

// Invitations keeps invitations, by the hash of the secret in their links.
type Invitations interface {
	Create(ctx context.Context, p identity.Principal, i identity.Invitation, hash identity.SecretHash) error
	// List returns all, the newest first.
	List(ctx context.Context, p identity.Principal) ([]identity.Invitation, error)
	// Delete withdraws an invitation that was not used; one that was used stays, and is an [ErrConflict].
	Delete(ctx context.Context, p identity.Principal, id string) error
	// Resolve finds an invitation that is open at a time. Only Tandem itself may ask, without a workspace.
	Resolve(ctx context.Context, p identity.Principal, hash identity.SecretHash, now int64) (identity.Invitation, error)
	// ForEmail finds those to an address that are open at a time, the oldest first. Only Tandem itself may ask, without a workspace.
	ForEmail(ctx context.Context, p identity.Principal, email string, now int64) ([]identity.Invitation, error)
	// Accept uses up an invitation and makes its user, in one transaction. One that is not open is an [ErrNotFound]: of two uses at
	// the same moment one succeeds. The roles are those of the invitation.
	Accept(ctx context.Context, p identity.Principal, a Acceptance) error
}

// Acceptance is the use of an invitation.
type Acceptance struct {
	Invitation string
	Now        int64
	// User is the new user.
	User identity.User
	// Token is made for the user when TokenHash is set; Login is kept when it is not nil.
	Token     identity.Token
	TokenHash *identity.SecretHash
	Login     *identity.Login
}

// Logins keeps which user belongs to an account at a provider of identities.
type Logins interface {
	// Resolve finds a user by the provider's id. Only Tandem itself may ask, without a workspace.
	Resolve(ctx context.Context, p identity.Principal, issuer, subject string) (identity.Login, identity.User, error)
	// Bind connects an account to a user. One that is bound already is an [ErrConflict].
	Bind(ctx context.Context, p identity.Principal, l identity.Login) error
}
