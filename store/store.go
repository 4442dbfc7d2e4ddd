// Package store is the seam between Tandem and its database: small interfaces, the plain records they exchange, and the
// errors they answer with.
//
// Every row belongs to a workspace and every call says for whom it is made: a [identity.Principal] sees and changes the
// rows of its own workspace only, and an id of another workspace is as unknown as one that never existed. Only Tandem
// itself, without a workspace, sees all of them, and only in the calls that say so. Roles are not checked here: the
// routes decide what a user may do.
//
// The package holds no SQL and opens nothing: store/sqlite and store/postgres do, and store/storetest says what they
// must have in common. Hosts, the server and the commands import store; the engine does not.
package store

import (
	"errors"

	"tandem/fault"
	"tandem/identity"
	"tandem/text"
)

// What stores answer with. These two are recognised by their code, so errors.Is(err, ErrNotFound) is true of every
// not_found error, whatever its words.
var (
	ErrNotFound = fault.New(fault.NotFound, "there is no such record in this workspace")
	ErrConflict = fault.New(fault.Conflict, "the record has changed in the meantime; read it again")
)

// NotFound is [ErrNotFound] about a record, with what it is and its id. What it is has words in every language, so it is a text in quotes
// where this is called: the test of the catalogues reads it there.
func NotFound(what, id string) error {
	return fault.Newf(fault.NotFound, "there is no %s %q in this workspace", text.Formatted(what), id)
}

// Conditions of the database. They stand in the chain of an error whose words are for the operator.
var (
	// ErrFull: there is no room. Nothing was written and nothing is lost: the same call succeeds once there is.
	ErrFull = errors.New("the disk is full")
	// ErrUnavailable: the database cannot be reached, or does not take anything now. Nothing was written and nothing is lost: the same call
	// succeeds once it can be used.
	ErrUnavailable = errors.New("the database cannot be used now")
	// ErrBroken: a write to the disk has failed, or the database is no longer ours. Memory and disk may differ, so the store refuses
	// every call; a restart recovers from what is on disk.
	ErrBroken = errors.New("the store has stopped")
	// ErrSuperseded: another process has opened the same database since, and owns it now. Nothing is written any more.
	ErrSuperseded = errors.New("another process has taken over the database")
)

// InUse is the name of the fact that marks the refusal of a database which another process has open.
const InUse = "in_use"

// Waits says whether an error is a temporary condition of the database: a caller that has to write something keeps it and tries again.
func Waits(err error) bool { return errors.Is(err, ErrFull) || errors.Is(err, ErrUnavailable) }

// Stores are all stores of one database. A driver that has only some leaves the rest nil.
type Stores struct {
	Journal      Journal
	Inbox        Inbox
	Timers       Timers
	Executions   Executions
	Overviews    Overviews
	Logs         Logs
	Ledger       Ledger
	Keys         IdempotencyKeys
	Workflows    Workflows
	Templates    Templates
	Blobs        Blobs
	Workspaces   Workspaces
	Users        Users
	Tokens       Tokens
	Credentials  Credentials
	Memories     Memories
	Profiles     Profiles
	Budgets      Budgets
	Interactions Interactions
	MCPServers   MCPServers
	Audit        Audit
	Sessions     Sessions
	Invitations  Invitations
	Logins       Logins
	Triggers     Triggers
	Contacts     ContactChannels
	Proofs       AddressProofs
	Limits       Limits
	Upkeep       Upkeep
}

// Scope returns the workspace a call is for. Drivers begin every call that names a record with it.
func Scope(p identity.Principal) (string, error) { return p.InWorkspace() }

// ScopeAll is [Scope] for the calls in which Tandem itself may look at all workspaces: all is true, and the workspace
// empty, for a system principal without one.
func ScopeAll(p identity.Principal) (workspace string, all bool, err error) {
	if p.Workspace == "" && p.IsSystem() {
		return "", true, nil
	}
	workspace, err = Scope(p)
	return workspace, false, err
}

// RequireSystem refuses everybody but Tandem itself.
func RequireSystem(p identity.Principal) error {
	if !p.IsSystem() {
		return fault.New(fault.Forbidden, "only the server itself may do this")
	}
	return nil
}

// Page sizes of listings.
const (
	DefaultPageSize = 20
	MaxPageSize     = 500
)

// Page says which part of a listing is wanted. Listings have a total order, so that pages of a listing that does not
// change never overlap and leave nothing out.
type Page struct {
	// Number counts from 1; zero is 1.
	Number int
	// Size is 20 when zero and 500 at most.
	Size int
}

// Limits returns what to take and what to pass over.
func (p Page) Limits() (limit, offset int) {
	limit = p.Size
	if limit <= 0 {
		limit = DefaultPageSize
	}
	limit = min(limit, MaxPageSize)
	if p.Number <= 1 {
		return limit, 0
	}
	return limit, (min(p.Number, 1<<30/limit) - 1) * limit
}
