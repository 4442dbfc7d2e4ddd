package mcp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"tandem/fault"
	"tandem/identity"
	"tandem/payload"
	"tandem/store"
	"tandem/text"
)

// Pinned lists the tools of a server as the user has accepted them, by name, without reaching the server.
func (p *Pool) Pinned(ctx context.Context, who identity.Principal, server string) ([]Tool, error) {
	if _, _, err := p.server(ctx, who, server); err != nil {
		return nil, err
	}
	a, err := p.activation(ctx, who, server)
	if err != nil {
		return nil, err
	}
	list := make([]Tool, 0, len(a.Tools))
	for _, name := range slices.Sorted(maps.Keys(a.Tools)) {
		t, err := ReadTool(server, a.Tools[name].Definition)
		if err != nil {
			return nil, fmt.Errorf("read the pin of tool %q of server %q: %w", name, server, err)
		}
		list = append(list, t)
	}
	return list, nil
}

// PinnedTool is one of them.
func (p *Pool) PinnedTool(ctx context.Context, who identity.Principal, server, tool string) (Tool, error) {
	a, err := p.activation(ctx, who, server)
	if err != nil {
		return Tool{}, err
	}
	pin, ok := a.Tools[tool]
	if !ok {
		return Tool{}, &Error{Kind: UnknownTool, Server: server, Tool: tool, Message: text.Of("the user has accepted no such tool")}
	}
	t, err := ReadTool(server, pin.Definition)
	if err != nil {
		return Tool{}, fmt.Errorf("read the pin of tool %q of server %q: %w", tool, server, err)
	}
	return t, nil
}

// Activation is what a person decides who begins to use a server.
type Activation struct {
	// By is that person; without one, the user, with the token that the user acts with. Execution is the one whose question was answered,
	// if it was one.
	By, Execution string
	// Policies are the user's own by tool, Everybodys those of the workspace. Whether the user may set these is for the caller to know.
	Policies, Everybodys map[string]store.MCPPolicy
}

// Activate pins the tools of a server as they are, for a user. What differs from what was pinned is recorded as accepted.
func (p *Pool) Activate(ctx context.Context, who identity.Principal, server string, decided Activation) (store.MCPActivation, error) {
	tools, err := p.Tools(ctx, who, server)
	if err != nil {
		return store.MCPActivation{}, err
	}
	now := time.Now().UnixMilli()
	by := Acceptance{By: decided.By, Execution: decided.Execution}
	if by.By == "" {
		by.By, by.TokenMadeBy = who.User, who.TokenMadeBy()
	}
	a := store.MCPActivation{Workspace: who.Workspace, Server: server, User: who.User, Tools: Pin(tools), Activated: now, AcceptedBy: by.By,
		TokenMadeBy: by.TokenMadeBy, Accepted: now}
	var kept store.MCPDecided
	before, err := p.options.Servers.Activation(ctx, who, server, who.User)
	switch {
	case err == nil:
		kept = accepting(server, Drift(before.Tools, tools), by, who.User, now)
	case !errors.Is(err, store.ErrNotFound):
		return store.MCPActivation{}, err
	}
	for _, part := range []struct {
		policies   map[string]store.MCPPolicy
		everybodys bool
		path       string
	}{{decided.Everybodys, true, "workspace_policies"}, {decided.Policies, false, "policies"}} {
		list, err := p.readyPolicies(ctx, who, server, a.Tools, part.everybodys, part.path, part.policies)
		if err != nil {
			return store.MCPActivation{}, err
		}
		kept.Policies = append(kept.Policies, list...)
	}
	return a, p.options.Servers.Activate(ctx, who, a, kept)
}

// Check compares the tools of a server with what the user has accepted.
func (p *Pool) Check(ctx context.Context, who identity.Principal, server string) ([]Change, error) {
	a, err := p.activation(ctx, who, server)
	if err != nil {
		return nil, err
	}
	tools, err := p.Tools(ctx, who, server)
	if err != nil {
		return nil, err
	}
	return Drift(a.Tools, tools), nil
}

// Acceptance says who accepts changes, and for whom.
type Acceptance struct {
	// By is the person, Execution the one whose question they answered, if it was one.
	By, Execution string
	// TokenMadeBy is who made the token that it was accepted with, if it was somebody else than By.
	TokenMadeBy string
	// Everyone says that it counts for all users of the server, as that of an admin does.
	Everyone bool
}

// Accept pins what changes show, and nothing that came after somebody looked at them. It is recorded with the difference.
func (p *Pool) Accept(ctx context.Context, who identity.Principal, server string, by Acceptance,
	changes []Change) (store.MCPActivation, error) {
	pins, changes := map[string]*store.MCPPin{}, slices.Clone(changes)
	for i, c := range changes {
		pins[c.Tool] = nil
		if c.Kind == Removed {
			continue
		}
		definition, err := payload.Canonical(c.After)
		if err != nil {
			return store.MCPActivation{}, fault.Newf(fault.Invalid, "the definition of tool %q is not JSON", c.Tool).WithCause(err)
		}
		changes[i].After = definition
		pins[c.Tool] = &store.MCPPin{Definition: definition, Hash: hashOf(definition)}
	}
	now := time.Now().UnixMilli()
	whose := who.User
	if by.Everyone {
		whose = ""
	}
	return p.options.Servers.Repin(ctx, who, store.MCPRepin{Server: server, User: who.User, Everyone: by.Everyone, Tools: pins,
		AcceptedBy: by.By, TokenMadeBy: by.TokenMadeBy, Accepted: now,
		Decided: accepting(server, changes, by, whose, now)})
}

// accepting is what is kept of an acceptance: the differences, and which policies go on to hold. One does unless the tool says something
// worse of itself than before, or no longer has an argument.
func accepting(server string, changes []Change, by Acceptance, whose string, now int64) (d store.MCPDecided) {
	for _, c := range changes {
		d.Records = append(d.Records, store.MCPAcceptance{Server: server, Tool: c.Tool, User: whose,
			Kind: string(c.Kind), Summary: c.Summary,
			Before: c.Before, BeforeHash: hashOf(c.Before), After: c.After, AfterHash: hashOf(c.After), By: by.By,
			TokenMadeBy: by.TokenMadeBy, Execution: by.Execution, Accepted: now})
		if c.Kind == Changed && carries(server, c) {
			d.Carry = append(d.Carry, c.Tool)
		}
	}
	return d
}

// carries says that a policy about a tool as it was may hold for the tool as it is.
func carries(server string, c Change) bool {
	was, werr := ReadTool(server, c.Before)
	is, ierr := ReadTool(server, c.After)
	if werr != nil || ierr != nil || Unruled(is).Decision.Stricter(Unruled(was).Decision) {
		return false
	}
	now := declared(is)
	for name := range declared(was) { // order does not matter: all are asked
		if !now[name] {
			return false
		}
	}
	return true
}

// hashOf is the hash of a canonical definition; of none there is none.
func hashOf(definition json.RawMessage) string {
	if len(definition) == 0 {
		return ""
	}
	sum := sha256.Sum256(definition)
	return hex.EncodeToString(sum[:])
}

// AnsweredBy is an acceptance in answer to the question of an execution that acts for a user: for everybody if an admin has answered, for
// the user if it was the user. Nobody else can accept for a user. Before answers said who gave them, By is empty and the execution stands
// for it.
func (p *Pool) AnsweredBy(ctx context.Context, who identity.Principal, by, execution string) (Acceptance, error) {
	a := Acceptance{By: cmp.Or(by, "execution:"+execution), Execution: execution}
	if by != "" && p.options.Admin != nil {
		admin, err := p.options.Admin(ctx, who.Workspace, by)
		if err != nil {
			return a, err
		}
		a.Everyone = admin
	}
	if by == "" || by == who.User || a.Everyone {
		return a, nil
	}
	return a, fault.Newf(fault.Forbidden, "%q cannot accept for %q how a tool has changed; %q can, or an admin for everybody", by, who.User, who.User)
}

func (p *Pool) activation(ctx context.Context, who identity.Principal, server string) (store.MCPActivation, error) {
	a, err := p.options.Servers.Activation(ctx, who, server, who.User)
	if errors.Is(err, store.ErrNotFound) {
		if _, _, err := p.server(ctx, who, server); err != nil {
			return a, err // activating it would help nobody
		}
		return a, &Error{Kind: NotActivated, Server: server,
			Message: text.Of("user %q has not activated the server", who.User), cause: err}
	}
	return a, err
}
