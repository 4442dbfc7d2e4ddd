// Package identity says who acts: workspaces, users with their roles, API tokens, and the [Principal] that every call
// of a store takes.
//
// It decides nothing about what a role may do at which door; the server does. It stores nothing; package store and its
// drivers do. Everything above the engine may import it.
package identity

import (
	"slices"

	"tandem/fault"
)

// Role is what a user may do in a workspace.
type Role string

// The roles, from the most to the least.
const (
	Admin    Role = "admin"    // everything, users and credentials included
	Editor   Role = "editor"   // workflows, templates, executions
	Operator Role = "operator" // executions: start, pause, retry, cancel
	Approver Role = "approver" // answers the questions put to it
	Viewer   Role = "viewer"   // reads
)

// Principal is on whose behalf something is read or written. Every call of a store takes one, and sees the rows of its
// workspace only.
type Principal struct {
	Workspace string
	User      string
	Roles     []Role
	// Means is how the user proved to be this user; each door sets it.
	Means Means
	// Scopes are what the token may be used for that the user came with; none: for whatever the user may do.
	Scopes []Scope
	// system is Tandem itself, which recovers the executions of every workspace.
	system bool
}

// LocalUser is who acts on the machine of a data directory without a server. It is not an account that somebody made.
const LocalUser = "local"

// System is Tandem itself acting for a workspace; with an empty workspace, for all of them.
func System(workspace string) Principal {
	return Principal{Workspace: workspace, User: "system", system: true}
}

// IsSystem says that the principal is Tandem itself.
func (p Principal) IsSystem() bool { return p.system }

// InWorkspace returns the workspace that the principal acts in. A principal that acts in none is refused.
func (p Principal) InWorkspace() (string, error) {
	if p.Workspace == "" {
		return "", fault.New(fault.Forbidden, "the call names no workspace; act for one")
	}
	return p.Workspace, nil
}

// Has says whether the principal has one of the roles. Tandem itself has all.
func (p Principal) Has(roles ...Role) bool {
	return p.system || slices.ContainsFunc(roles, func(r Role) bool { return slices.Contains(p.Roles, r) })
}
