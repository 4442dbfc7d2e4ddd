package needs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/fault"
	"tandem/identity"
	"tandem/mcp"
	"tandem/node"
	"tandem/node/shape"
	"tandem/route"
	"tandem/store"
	"tandem/text"
	"tandem/trigger"
	"tandem/validation"
	"tandem/workflow"
)

// What a workflow needs may be made after it was saved, so that whatever is missing is a warning there. When it is deployed it has to be
// there: what runs by itself would fail where nobody looks.

// The codes of problems that are looked for here.
const (
	problemUnfitCredential = "unfit_credential"
	problemUnfitProfile    = "unfit_profile"
	problemNotDeployed     = "workflow_not_deployed"
)

// approversField is the field in which kinds that ask people have those who are asked.
const approversField = "approvers"

// maxLackingTold is how many of the problems stand in the words of the refusal; all of them are among its fields.
const maxLackingTold = 10

// Lacking refuses to deploy a definition that needs what the workspace does not have, and names all of it at once. Problems are what
// validation has found.
func (c *Checker) Lacking(ctx context.Context, p identity.Principal, def *workflow.Definition, problems []workflow.Problem) error {
	absent, err := c.Absent(ctx, p, def)
	if err != nil {
		return err
	}
	var found []workflow.Problem
	var told []text.Text
	code := fault.CredentialMissing // if that is all there is
	for _, one := range slices.Concat(problems, absent, c.unanswered(def)) {
		if !lacks(one.Code) || switchedOff(def, one.Path) {
			continue
		}
		one.Severity = workflow.SeverityError
		if one.Code == problemUnknownCredential {
			one.Code = node.ProblemCredentialMissing
		}
		if n, ok := validation.NodeIndex(one.Path); ok && n < len(def.Nodes) {
			one = one.Saying(text.Of("node %q: %s", def.Nodes[n].ID, one.Says()))
		}
		if one.Code != node.ProblemCredentialMissing {
			code = fault.Invalid
		}
		found, told = append(found, one), append(told, one.Says())
	}
	if len(found) == 0 {
		return nil
	}
	if more := len(told) - maxLackingTold; more > 0 {
		told = append(told[:maxLackingTold], text.Of("and %d more", more))
	}
	return fault.Say(code, text.Of("the workflow needs what is not there: %s", inARow(told))).With("problems", found)
}

// inARow are texts one after the other, as parts of one sentence.
func inARow(list []text.Text) text.Text {
	words := list[0]
	for _, one := range list[1:] {
		words = text.Of("%s; %s", words, one)
	}
	return words
}

// lacks says that a problem is about something that is not there.
func lacks(code string) bool {
	switch code {
	case node.ProblemCredentialMissing, problemUnknownCredential, problemUnfitCredential, problemUnfitProfile, problemUnknownProfile,
		problemUnknownServer, problemUnknownWorkflow, problemNotDeployed,
		problemUnknownTemplate, problemUnknownAgent, problemUnknownApprover:
		return true
	}
	return false
}

// switchedOff says that a path leads into a node that does no work.
func switchedOff(def *workflow.Definition, path string) bool {
	n, ok := validation.NodeIndex(path)
	return ok && n < len(def.Nodes) && gjson.GetBytes(def.Nodes[n].Configurations, "enabled").Raw == "false"
}

// notStartable finds workflows that are there and could not be started as a node would start them: they are not deployed, or have no such
// revision. Two that start each other could never be deployed if each had to be there first, so what starts this one again is let pass.
func (c *Checker) notStartable(ctx context.Context, p identity.Principal, def *workflow.Definition, warn warner) error {
	system := identity.System(p.Workspace)
	for i := range def.Nodes {
		for _, one := range c.namedIn(shape.NamesWorkflow)(&def.Nodes[i], fmt.Sprintf("nodes[%d].configurations.", i)) {
			revision := gjson.GetBytes(def.Nodes[i].Configurations, "revision")
			if one.text == def.Metadata.ID || node.Dynamic(revision) {
				continue
			}
			which := revision.String()
			if which == "" {
				which = "deployed"
			}
			_, _, wrong := c.Revisions.Request(ctx, system, one.text, which)
			switch class := fault.CodeOf(wrong).Class(); {
			case wrong == nil:
				continue
			case class == fault.ClassInternal:
				return wrong
			}
			if there, again, err := c.startsAgain(ctx, system, one.text, def.Metadata.ID); err != nil {
				return err
			} else if there && !again {
				warn(problemNotDeployed, one.path, "the workflow %q cannot be started: %s", one.text, fault.From(wrong).Message)
			}
		}
	}
	return nil
}

// unanswered are the questions behind triggers that name nobody: the user who has started an execution is asked then, and what a trigger
// starts, nobody has started. A page for users of the workspace has somebody.
func (c *Checker) unanswered(def *workflow.Definition) (found []workflow.Problem) {
	reached := map[string]bool{}
	for i := range def.Nodes {
		if n := &def.Nodes[i]; c.StartsByItself(n.Kind()) &&
			gjson.GetBytes(n.Configurations, "access").String() != string(trigger.AccessUsers) {
			reached[n.ID] = true
		}
	}
	for grown := true; grown; {
		grown = false
		for _, c := range def.Connections {
			if reached[c.FromNode] && !reached[c.ToNode] {
				reached[c.ToNode], grown = true, true
			}
		}
	}
	for i := range def.Nodes {
		n := &def.Nodes[i]
		if kind, ok := c.Registry.Get(n.Kind()); !ok || !reached[n.ID] ||
			!slices.ContainsFunc(kind.Fields(), func(f node.Field) bool { return f.Name == approversField }) {
			continue
		}
		named := gjson.GetManyBytes(n.Configurations, approversField, "access", "recipient_emails")
		somebody := slices.ContainsFunc(named, func(v gjson.Result) bool {
			return v.String() != "" && v.Raw != "[]" && v.String() != "users"
		})
		if !somebody {
			found = append(found, workflow.Problem{Code: problemUnknownApprover,
				Path: fmt.Sprintf("nodes[%d].configurations.%s", i, approversField)}.Saying(
				text.Of("nobody is asked: what a trigger starts, nobody has started; name who is to answer")))
		}
	}
	return found
}

// startsAgain says whether a workflow is there, and whether a node of it starts another one.
func (c *Checker) startsAgain(ctx context.Context, p identity.Principal, id, other string) (there, again bool, err error) {
	w, err := c.Stores.Workflows.Get(ctx, p, id)
	if errors.Is(err, store.ErrNotFound) {
		return false, false, nil // which is told already
	}
	if err != nil {
		return false, false, err
	}
	revision, err := c.Stores.Workflows.Revision(ctx, p, id, w.Revision)
	if err != nil {
		return false, false, err
	}
	def, _ := c.Check(revision.Definition)
	return true, def != nil && slices.ContainsFunc(def.Nodes, func(n workflow.Node) bool {
		return slices.ContainsFunc(c.namedIn(shape.NamesWorkflow)(&n, ""), func(one named) bool { return one.text == other })
	}), nil
}

// unfitCredentials warns of credentials that are there and are of a type that the node cannot use.
func (c *Checker) unfitCredentials(ctx context.Context, p identity.Principal, def *workflow.Definition, warn warner) error {
	var list []store.Credential
	for i := range def.Nodes {
		n := &def.Nodes[i]
		kind, ok := c.Registry.Get(n.Kind())
		if !ok {
			continue
		}
		types := kind.About.Needs.Credential
		if of := kind.About.Needs.CredentialOf; of != nil {
			types = of(n.Configurations)
		}
		at := fmt.Sprintf("nodes[%d].configurations.", i)
		for _, one := range credentialsIn(n, at) {
			if len(types) == 0 || one.path != at+"credential_id" {
				continue
			}
			if list == nil {
				var err error
				if list, err = c.Stores.Credentials.List(ctx, identity.System(p.Workspace)); err != nil {
					return err
				}
			}
			which := slices.IndexFunc(list, func(c store.Credential) bool { return c.ID == one.text || c.Name == one.text })
			if which < 0 || slices.Contains(types, list[which].Type) {
				continue // that it is not there is told already
			}
			warn(problemUnfitCredential, one.path, "the credential %q is of the type %s, and the node needs %s; name another one", one.text, list[which].Type, strings.Join(types, " / "))
		}
	}
	return nil
}

// unfitProfiles warns of profiles that are there and are of another provider than that with whose models the node has its turns.
func (c *Checker) unfitProfiles(ctx context.Context, p identity.Principal, def *workflow.Definition, warn warner) error {
	var list []store.Profile
	for i := range def.Nodes {
		n := &def.Nodes[i]
		kind, ok := c.Registry.Get(n.Kind())
		if !ok || kind.About.Needs.Provider == "" {
			continue
		}
		provider := kind.About.Needs.Provider
		for _, m := range kind.Mentions(n.Configurations, shape.NamesProfile) {
			if !slices.Contains([]string{"profile_id", "llm_profile"}, shape.Snake(m.Path)) {
				continue // others may be of any provider
			}
			if list == nil {
				var err error
				if list, err = c.Profiles(ctx, identity.System(p.Workspace)); err != nil {
					return err
				}
			}
			which := slices.IndexFunc(list, func(one store.Profile) bool { return one.ID == m.Text })
			if which < 0 {
				continue // that it is not there is told already
			}
			if of := gjson.GetBytes(list[which].Body, "provider").Str; of != provider && of != scripted {
				warn(problemUnfitProfile, fmt.Sprintf("nodes[%d].configurations.%s", i, m.Path), "the profile %q is of the provider %q, and %s speaks with %q; name another one, or use AI_AGENT.LLM",
					m.Text, of, n.Kind(), provider)
			}
		}
	}
	return nil
}

// scripted is the provider whose models stand in for those of any other.
const scripted = "scripted"

// unknownTools warns of tools that a node names of a server, and that are not among those that anybody has accepted. Of a server that
// nobody uses yet nothing is known.
func (c *Checker) unknownTools(ctx context.Context, p identity.Principal, def *workflow.Definition, warn warner) error {
	accepted := map[string][]string{}
	known := func(server string) ([]string, error) {
		if names, ok := accepted[server]; ok {
			return names, nil
		}
		list, err := c.Stores.MCPServers.Activations(ctx, identity.System(p.Workspace), server, "")
		if err != nil {
			return nil, err
		}
		var names []string
		for _, a := range list {
			names = slices.AppendSeq(names, maps.Keys(a.Tools))
		}
		slices.Sort(names)
		accepted[server] = slices.Compact(names)
		return accepted[server], nil
	}
	for i := range def.Nodes {
		for _, t := range c.toolsIn(&def.Nodes[i], fmt.Sprintf("nodes[%d].configurations.", i)) {
			names, err := known(t.server)
			if err != nil {
				return err
			}
			if len(names) == 0 || slices.ContainsFunc(names, func(name string) bool {
				return t.tool == name || t.tool == mcp.ModelName(t.server, name)
			}) {
				continue
			}
			var hint text.Text
			if near := fault.Nearest(t.tool, names); near != "" && p.Has(route.Editors()...) {
				hint = text.Of("; did you mean %q?", near)
			}
			warn(problemUnknownTool, t.path, "the tool server %q has no tool %q that was accepted%s", t.server, t.tool, hint)
		}
	}
	return nil
}

// toolNamed is a tool of a server that a configuration names, and where.
type toolNamed struct{ server, tool, path string }

// toolsIn are the tools of servers that a node names.
func (c *Checker) toolsIn(n *workflow.Node, at string) (list []toolNamed) {
	for _, one := range c.namedIn(shape.NamesTool)(n, at) {
		if server, tool, ok := mcp.SplitToolID(one.text); ok && !strings.ContainsAny(tool, `*?[\`) {
			list = append(list, toolNamed{server, tool, one.path})
		}
	}
	kind, ok := c.Registry.Get(n.Kind())
	if !ok || kind.About.Needs.ToolsOf == nil {
		return list
	}
	server, tools := kind.About.Needs.ToolsOf(n.Configurations)
	for _, t := range tools {
		list = append(list, toolNamed{server, t.Text, at + t.Path})
	}
	return list
}
