package store

import (
	"context"
	"encoding/json"

	"tandem/fault"
	"tandem/identity"
)

// ContactChannel is an account of the installation through which the people of a workspace can let questions reach them: the mail account
// of the office, the bot in Slack. Admins make them; users choose among them.
type ContactChannel struct {
	Workspace string
	// Name is the name by which users choose it.
	Name string
	// Channel is the medium, a channel_type.
	Channel string
	// Credential is what messages are sent with, InCredential what replies are read with if that is another one. Both are ids.
	Credential   string
	InCredential string
	// Settings are the channel's own, such as webhook_url; empty: none.
	Settings  json.RawMessage
	CreatedBy string
	Created   int64
	Updated   int64
}

// ContactChannels keeps contact channels.
type ContactChannels interface {
	// Put makes one or replaces the one of its name, which keeps who made it and when.
	Put(ctx context.Context, p identity.Principal, c ContactChannel) error
	Get(ctx context.Context, p identity.Principal, name string) (ContactChannel, error)
	// List returns all of the workspace, in order of name.
	List(ctx context.Context, p identity.Principal) ([]ContactChannel, error)
	Delete(ctx context.Context, p identity.Principal, name string) error
}

// AddressProof is a code that was sent to an address that a user claims.
type AddressProof struct {
	Workspace string
	User      string
	// Address is written like an approver: mail:ADDRESS, slack:U1.
	Address string
	// Contact is the name of the contact channel that the code went through.
	Contact string
	// Hash is the hash of the code, which itself is not stored.
	Hash identity.SecretHash
	// Tries counts how often a code was tried.
	Tries   int
	Created int64
	Expires int64
}

// AddressProofs keeps proofs. They are removed with their user.
type AddressProofs interface {
	// Begin keeps a proof of an existing user; an earlier one of the same address is replaced. Proofs of the user that were begun
	// before Since are removed; if Most others are left, the error is [fault.RateLimited].
	Begin(ctx context.Context, p identity.Principal, proof AddressProof, limit ProofLimit) error
	// List returns those of a user, in order of address.
	List(ctx context.Context, p identity.Principal, user string) ([]AddressProof, error)
	// Try counts a try and returns the proof with it.
	Try(ctx context.Context, p identity.Principal, user, address string) (AddressProof, error)
	// Delete ends a proof. A proof that does not exist is ignored.
	Delete(ctx context.Context, p identity.Principal, user, address string) error
}

// ProofLimit bounds how many addresses a user can have codes sent to: at most Most since a time.
type ProofLimit struct {
	Most  int
	Since int64
}

// Exceeded is the error for a user who has requested codes for too many addresses, the first of them at a time.
func (l ProofLimit) Exceeded(first int64) error {
	return fault.Newf(fault.RateLimited, "codes were sent to %d addresses of yours lately; wait a little, or ask an admin to enter the address", l.Most).With("retry_after_ms", max(first-l.Since, 1000))
}
