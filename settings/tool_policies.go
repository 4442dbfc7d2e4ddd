package settings

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"tandem/api"
	"tandem/fault"
	"tandem/identity"
	"tandem/mcp"
	"tandem/route"
	"tandem/store"
)

type (
	toolActivate struct {
		ID   string           `path:"id" maxLength:"64"`
		Body *api.MCPActivate `required:"false"`
	}
	toolPolicyInput struct {
		ID   string `path:"id" maxLength:"64"`
		Body api.MCPPolicies
	}
	toolPolicyOutput struct{ Body api.MCPPolicyList }
	acceptancesInput struct {
		ID    string `path:"id" maxLength:"64"`
		Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
	}
	acceptancesOutput struct{ Body api.MCPAcceptances }
)

// toolPolicies registers what people decide about the tools of a server.
func (s *settings) toolPolicies(op func(method, path, id, summary, description string) huma.Operation) {
	route.Handle(s.Router, op(http.MethodGet, "/{id}/policies", "list-mcp-policies", "Read the policies for the tools of a server",
		"Nothing is started or reached. The user's own, and those of the workspace."), route.Operators(), s.listPolicies)
	route.Handle(s.Router, op(http.MethodPut, "/{id}/policies", "set-mcp-policies", "Set policies for the tools of a server",
		"Those that are named are set or taken away; the others stay. A policy is about a tool as the user has accepted it: when the tool changes, it grants nothing until the change is accepted. A user's own can be stricter than an admin's ask or never, and not looser."), route.Operators(), s.setPolicies)
	route.Handle(s.Router, op(http.MethodGet, "/{id}/acceptances", "list-mcp-acceptances", "Read which changes of tools were accepted",
		"The newest first, with the difference, by whom and for whom. Admins see everybody's, others their own and those for everybody."), route.Operators(), s.listAcceptances)
}

// forEveryone says whether a request is for all users of the workspace, which only an admin may ask for.
func forEveryone(p identity.Principal, scope string, otherwise bool) (bool, error) {
	switch {
	case scope == "":
		return otherwise, nil
	case scope == "workspace" && !p.Has(identity.Admin):
		return false, fault.New(fault.Forbidden, "scope: only an admin decides for everybody; leave it out, or say user").With("path", "scope")
	}
	return scope == "workspace", nil
}

// readActivation reads the policies that a user activates a server with.
func readActivation(p identity.Principal, b *api.MCPActivate) (mcp.Activation, error) {
	if b == nil {
		return mcp.Activation{}, nil
	}
	if len(b.WorkspacePolicies) > 0 && !p.Has(identity.Admin) {
		return mcp.Activation{}, fault.New(fault.Forbidden, "workspace_policies: only an admin decides for everybody; use policies for your own").With("path", "workspace_policies")
	}
	own, err := readPolicies("policies", b.Policies)
	if err != nil {
		return mcp.Activation{}, err
	}
	everybodys, err := readPolicies("workspace_policies", b.WorkspacePolicies)
	return mcp.Activation{Policies: own, Everybodys: everybodys}, err
}

// readPolicies reads policies by the names of tools. It refuses empty ones, which would remove a policy.
func readPolicies(path string, from map[string]api.MCPToolPolicy) (map[string]store.MCPPolicy, error) {
	list := make(map[string]store.MCPPolicy, len(from))
	for _, name := range slices.Sorted(maps.Keys(from)) {
		list[name] = readPolicy(from[name])
		if list[name].Policy == "" && len(list[name].Rules) == 0 {
			return nil, api.WrongField(path+"."+name, "says nothing; give policy or rules")
		}
	}
	return list, nil
}

func readPolicy(b api.MCPToolPolicy) store.MCPPolicy {
	p := store.MCPPolicy{Policy: b.Policy, Hash: b.Hash}
	for _, r := range b.Rules {
		one := store.MCPRule{Argument: r.Argument, Pattern: r.Pattern, Under: r.Under, Absent: r.Absent, Policy: r.Policy}
		if !absent(r.Equals) {
			one.Equals = r.Equals
		}
		p.Rules = append(p.Rules, one)
	}
	return p
}

func tellPolicy(p *store.MCPPolicy, lapsed bool) *api.MCPToolPolicy {
	if p == nil {
		return nil
	}
	out := &api.MCPToolPolicy{Policy: p.Policy, Hash: p.Hash, SetBy: p.SetBy, TokenMadeBy: p.TokenMadeBy, SetTime: p.Set, Lapsed: lapsed}
	for _, r := range p.Rules {
		out.Rules = append(out.Rules, api.MCPRule{Argument: r.Argument, Equals: r.Equals, Pattern: r.Pattern, Under: r.Under,
			Absent: r.Absent, Policy: r.Policy})
	}
	return out
}

// tellStanding adds to a tool what happens to its calls.
func tellStanding(out *api.MCPTool, t mcp.Tool, s mcp.Standing) {
	suggested := mcp.Suggest(t)
	out.Class, out.Decision, out.DecisionFrom = string(mcp.ClassOf(t)), string(s.Decision), s.From
	if s.ByArgument {
		out.Decision = "by_argument"
	}
	out.Policy, out.WorkspacePolicy = tellPolicy(s.Own, mcp.Lapsed(t, s.Own)), tellPolicy(s.Everybodys, mcp.Lapsed(t, s.Everybodys))
	out.Suggestion = api.MCPSuggestion{Policy: suggested.Policy, Reason: suggested.Reason}
}

func (s *settings) listPolicies(ctx context.Context, p identity.Principal, in *toolServerInput) (*toolPolicyOutput, error) {
	if _, err := s.toolServer(ctx, p, in.ID); err != nil {
		return nil, err
	}
	list, err := s.o.Stores.MCPServers.Policies(ctx, p, in.ID, "", p.User)
	if err != nil {
		return nil, err
	}
	mine, err := s.o.Stores.MCPServers.Activation(ctx, p, in.ID, p.User)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	out := &toolPolicyOutput{api.MCPPolicyList{Policies: map[string]api.MCPToolPolicy{}, WorkspacePolicies: map[string]api.MCPToolPolicy{}}}
	for i := range list {
		to := out.Body.Policies
		if list[i].User == "" {
			to = out.Body.WorkspacePolicies
		}
		to[list[i].Tool] = *tellPolicy(&list[i], list[i].Hash != mine.Tools[list[i].Tool].Hash)
	}
	return out, nil
}

func (s *settings) setPolicies(ctx context.Context, p identity.Principal, in *toolPolicyInput) (*toolPolicyOutput, error) {
	if _, err := s.toolServer(ctx, p, in.ID); err != nil {
		return nil, err
	}
	everybodys, err := forEveryone(p, in.Body.Scope, false)
	if err != nil {
		return nil, err
	}
	policies, err := readPolicies("policies", in.Body.Policies)
	if err != nil {
		return nil, err
	}
	for i, name := range in.Body.Remove {
		if _, set := policies[name]; set {
			return nil, api.WrongField(fmt.Sprintf("remove[%d]", i), "%q is set and taken away at once", name)
		}
		policies[name] = store.MCPPolicy{}
	}
	if len(policies) == 0 {
		return nil, api.WrongField("policies", "name at least one tool, here or in remove")
	}
	set := map[string]string{}
	for name, policy := range policies { // order does not matter: it becomes a map
		set[name] = string(policy.Policy)
	}
	ctx = route.Audited(ctx, "mcp_server.set_policies", in.ID, nil, map[string]any{"policies": set, "for_everyone": everybodys})
	if err := s.o.Tools.SetPolicies(ctx, p, in.ID, everybodys, policies); err != nil {
		return nil, toolProblem(err)
	}
	return s.listPolicies(ctx, p, &toolServerInput{in.ID})
}

func (s *settings) listAcceptances(ctx context.Context, p identity.Principal, in *acceptancesInput) (*acceptancesOutput, error) {
	if _, err := s.toolServer(ctx, p, in.ID); err != nil {
		return nil, err
	}
	whose := p.User
	if p.Has(identity.Admin) {
		whose = ""
	}
	list, err := s.o.Stores.MCPServers.Acceptances(ctx, p, in.ID, whose, in.Limit)
	if err != nil {
		return nil, err
	}
	out := &acceptancesOutput{api.MCPAcceptances{Acceptances: make([]api.MCPAcceptance, len(list))}}
	for i, a := range list {
		scope := "user"
		if a.User == "" {
			scope = "workspace"
		}
		out.Body.Acceptances[i] = api.MCPAcceptance{Tool: a.Tool, Kind: a.Kind, Summary: a.Summary,
			Difference: mcp.Difference(a.Before, a.After), Before: a.Before, After: a.After,
			Scope: scope, User: a.User, AcceptedBy: a.By, TokenMadeBy: a.TokenMadeBy, ExecutionID: a.Execution, Time: a.Accepted}
	}
	return out, nil
}
