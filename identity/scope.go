package identity

import (
	"slices"
	"time"
)

// Scope is what a token may be used for. A scope never gives more than the user's roles do.
type Scope string

// The scopes.
const (
	ScopeRead    Scope = "read"    // read what the user may read
	ScopeExecute Scope = "execute" // start executions and act on them
	ScopeAnswer  Scope = "answer"  // answer questions, hand them on, have them repeated
	ScopeEdit    Scope = "edit"    // change workflows, agents, profiles, templates, memories
	ScopeAdmin   Scope = "admin"   // everything, also users, tokens and credentials
)

// ScopeLogin is that of the code in a login link, which is a token that may be used for nothing else, once, and for at most [LoginLife].
const ScopeLogin Scope = "login"

// LoginLife is how long a login link is good.
const LoginLife = time.Hour

// LogsIn says that the principal came with the code of a login link.
func (p Principal) LogsIn() bool { return len(p.Scopes) == 1 && p.Scopes[0] == ScopeLogin }

// Scopes lists them.
func Scopes() []Scope {
	return []Scope{ScopeRead, ScopeExecute, ScopeAnswer, ScopeEdit, ScopeAdmin}
}

// Known says whether it is one of the scopes.
func (s Scope) Known() bool { return s == ScopeLogin || slices.Contains(Scopes(), s) }

// MayUse says whether the principal came with something that may be used for a scope.
func (p Principal) MayUse(s Scope) bool {
	return len(p.Scopes) == 0 || slices.Contains(p.Scopes, s) || slices.Contains(p.Scopes, ScopeAdmin)
}

// Narrowed is the principal with the roles that are left of its own within its scopes, for what changes something: an admin with a token
// for executions acts as an operator.
func (p Principal) Narrowed() Principal {
	if len(p.Scopes) == 0 || slices.Contains(p.Scopes, ScopeAdmin) {
		return p
	}
	var left []Role
	for _, r := range Roles() {
		within := r == Viewer || r == Editor && slices.Contains(p.Scopes, ScopeEdit) || r == Operator &&
			slices.Contains(p.Scopes, ScopeExecute) || r == Approver && slices.Contains(p.Scopes, ScopeAnswer)
		if within && slices.ContainsFunc(p.Roles, func(has Role) bool { return has.includes(r) }) {
			left = append(left, r)
		}
	}
	p.Roles = left
	return p
}

// includes says that who has the role may do what another role is for.
func (r Role) includes(other Role) bool {
	switch r {
	case Admin:
		return true
	case Editor:
		return other == Editor || other == Operator || other == Viewer
	}
	return other == r || other == Viewer
}
