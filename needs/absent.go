// Package needs finds what a definition needs of its workspace and the workspace does not have: people, records, credentials of a fitting
// type, workflows that can be started. A file alone cannot say that; validation says everything else. It decides nothing: when a workflow
// is saved the problems are warnings, when it is deployed they refuse it.
//
// The server imports it; nothing else does.
package needs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"tandem/agent"
	"tandem/credential"
	"tandem/fault"
	"tandem/human"
	"tandem/identity"
	"tandem/node"
	"tandem/node/shape"
	"tandem/revisions"
	"tandem/route"
	"tandem/store"
	"tandem/text"
	"tandem/workflow"
)

// The codes of problems that only a server can find: a file alone cannot say who and what is there.
const (
	problemUnknownApprover   = "unknown_approver"
	problemUnreachedApprover = "unreached_approver"
	problemUnknownWorkflow   = "unknown_workflow"
	problemUnknownServer     = "unknown_server"
	problemUnknownTemplate   = "unknown_template"
	problemUnknownProfile    = "unknown_profile"
	problemUnknownCredential = "unknown_credential"
	problemUnknownAgent      = "unknown_agent"
	problemUnknownTool       = "unknown_tool"
)

// Checker looks at definitions. All fields must be set.
type Checker struct {
	Stores   store.Stores
	Registry *node.Registry
	// Profiles are the model profiles of a workspace.
	Profiles func(ctx context.Context, p identity.Principal) ([]store.Profile, error)
	// Revisions are those that a node would start, and StartsByItself says that a kind of trigger starts executions.
	Revisions      *revisions.Cache
	StartsByItself func(kind string) bool
	// Check parses and validates a definition.
	Check func(data []byte) (*workflow.Definition, []workflow.Problem)
}

// warner reports something that is not there, at a path.
type warner func(code, path, format string, args ...any)

// Absent warns of what a definition names and the workspace does not have: approvers, the error workflow and the records of
// [Checker.mentions]. They may be made later, so that none of it is an error before the workflow is deployed ([Checker.Lacking]).
func (c *Checker) Absent(ctx context.Context, p identity.Principal, def *workflow.Definition) ([]workflow.Problem, error) {
	var problems []workflow.Problem
	warn := func(code, path, format string, args ...any) {
		problems = append(problems, workflow.Problem{Severity: workflow.SeverityWarning, Code: code,
			Path: path}.Saying(text.Formatted(format, args...)))
	}
	if id := def.Metadata.Settings.ErrorWorkflow; id != "" && id != def.Metadata.ID {
		_, err := c.Stores.Workflows.Get(ctx, p, id)
		switch {
		case errors.Is(err, store.ErrNotFound):
			warn(problemUnknownWorkflow, "metadata.settings.error_workflow", "the workflow %q does not exist, so that nothing is started when an execution fails; save it, or name another one", id)
		case err != nil:
			return nil, err
		}
	}
	if err := c.absentRecords(ctx, p, def, warn); err != nil {
		return nil, err
	}
	if err := c.idleFillings(ctx, p, def, warn); err != nil {
		return nil, err
	}
	for _, find := range []func(context.Context, identity.Principal, *workflow.Definition, warner) error{c.unfitCredentials,
		c.unfitProfiles, c.unknownTools, c.notStartable} {
		if err := find(ctx, p, def, warn); err != nil {
			return nil, err
		}
	}
	people := map[bool][]named{} // by whether they are asked in the app only
	for i := range def.Nodes {
		inApp := c.asksInApp(&def.Nodes[i])
		people[inApp] = append(people[inApp], c.namedIn(shape.NamesPerson)(&def.Nodes[i], fmt.Sprintf("nodes[%d].configurations.", i))...)
	}
	if len(people[true])+len(people[false]) == 0 {
		return problems, nil
	}
	users, err := c.Stores.Users.List(ctx, identity.System(p.Workspace))
	if err != nil {
		return nil, err
	}
	for _, inApp := range []bool{true, false} {
		for _, a := range people[inApp] {
			why, code := human.Absent(a.text, false, users), problemUnknownApprover
			if why.IsZero() && inApp {
				why, code = human.Absent(a.text, true, users), problemUnreachedApprover
			}
			if !why.IsZero() {
				warn(code, a.path, "%q cannot answer: %s", a.text, why)
			}
		}
	}
	return problems, nil
}

// asksInApp says that a node asks in the app only.
func (c *Checker) asksInApp(n *workflow.Node) bool {
	if kind, ok := c.Registry.Get(n.Kind()); !ok || kind.About.Traits.AsksIn != human.InApp {
		return false
	}
	channel := gjson.GetBytes(n.Configurations, "channel_type").Str
	return channel == "" || strings.EqualFold(channel, human.InApp)
}

// mention is a way in which nodes name a record of the workspace.
type mention struct {
	// code is that of the warning, what, without and remedy are its words: "the WHAT "id" WITHOUT; REMEDY".
	code                  string
	what, without, remedy text.Text
	// in are the records that a node names.
	in func(n *workflow.Node, at string) []named
	// missing says whether a record is not there, and of those that are, which is named most like it, if any.
	missing func(id string) (missing bool, near string, err error)
}

// mentions are all the ways in which nodes name records, except for people. What is there is asked as the system: a run finds it, no matter
// who saves.
func (c *Checker) mentions(ctx context.Context, p identity.Principal, def *workflow.Definition) []mention {
	system := identity.System(p.Workspace)
	among := func(list func() ([]string, error)) func(string) (bool, string, error) {
		ids := sync.OnceValues(list)
		return func(id string) (bool, string, error) {
			known, err := ids()
			if err != nil || slices.Contains(known, id) {
				return false, "", err
			}
			return true, fault.Nearest(id, known), nil
		}
	}
	noWorkflow := func(id string) (bool, string, error) {
		_, err := c.Stores.Workflows.Get(ctx, system, id)
		if id == def.Metadata.ID || errors.Is(err, store.ErrNotFound) {
			return id != def.Metadata.ID, "", nil
		}
		return false, "", err
	}
	return []mention{
		{problemUnknownServer, text.Of("tool server"), text.Of("is not registered, so that its tools cannot be used"), text.Of("an administrator registers it with PUT /api/v1/mcp/servers/{id}"),
			c.serversIn, among(func() (ids []string, err error) {
				list, err := c.Stores.MCPServers.List(ctx, system)
				for _, one := range list {
					ids = append(ids, one.ID)
				}
				return ids, err
			})},
		{problemUnknownTemplate, text.Of("template"), text.Of("does not exist, so that no start is possible"),
			text.Of("save it, or name another one"),
			c.namedIn(shape.NamesTemplate), among(func() (ids []string, err error) {
				list, err := c.Stores.Templates.List(ctx, system)
				for _, one := range list {
					ids = append(ids, one.ID)
				}
				return ids, err
			})},
		{problemUnknownProfile, text.Of("profile"), text.Of("does not exist, so that no model can be asked"), text.Of(`make it with "tandem profiles set", or name another one`),
			c.namedIn(shape.NamesProfile), among(func() (ids []string, err error) {
				list, err := c.Profiles(ctx, system)
				for _, one := range list {
					ids = append(ids, one.ID)
				}
				return ids, err
			})},
		{problemUnknownCredential, text.Of("credential"), text.Of("does not exist, so that the node cannot sign in"), text.Of(`make it with "tandem credentials set", or name another one`),
			credentialsIn, among(func() (names []string, err error) {
				list, err := c.Stores.Credentials.List(ctx, system)
				for _, one := range list {
					names = append(names, one.Name)
				}
				for _, one := range list { // after the names, which are what people write
					names = append(names, one.ID)
				}
				return names, err
			})},
		{problemUnknownWorkflow, text.Of("workflow"), text.Of("does not exist, so that it cannot be started"),
			text.Of("save it, or name another one"),
			c.namedIn(shape.NamesWorkflow), noWorkflow},
		{problemUnknownAgent, text.Of("agent"), text.Of("does not exist, so that it cannot be asked"), text.Of(`make it with "tandem agent set", or name another one`),
			c.namedIn(shape.NamesAgent), func(id string) (bool, string, error) { return noWorkflow(agent.WorkflowID(id)) }},
	}
}

// absentRecords warns of records that nodes name and that are not there.
func (c *Checker) absentRecords(ctx context.Context, p identity.Principal, def *workflow.Definition, warn warner) error {
	for _, m := range c.mentions(ctx, p, def) {
		for i := range def.Nodes {
			for _, one := range m.in(&def.Nodes[i], fmt.Sprintf("nodes[%d].configurations.", i)) {
				missing, near, err := m.missing(one.text)
				if err != nil {
					return err
				}
				if !missing {
					continue
				}
				if !p.Has(route.Editors()...) {
					near = "" // who may not list the records is not told their names
				}
				var hint text.Text
				if near != "" {
					hint = text.Of("did you mean %q? If not, ", near)
				}
				warn(m.code, one.path, "the %s %q %s; %s%s", m.what, one.text, m.without, hint, m.remedy)
			}
		}
	}
	return nil
}

// idleFillings warns of nodes that want to be filled and name a template that does not say with what.
func (c *Checker) idleFillings(ctx context.Context, p identity.Principal, def *workflow.Definition, warn warner) error {
	for i := range def.Nodes {
		n := &def.Nodes[i]
		kind, ok := c.Registry.Get(n.Kind())
		id := gjson.GetBytes(n.Configurations, "template_id").Str
		if !ok || kind.Scope != nil || id == "" || !gjson.GetBytes(n.Configurations, "enable_filling").Bool() {
			continue
		}
		template, err := c.Stores.Templates.Get(ctx, p, id)
		if errors.Is(err, store.ErrNotFound) {
			continue // absentRecords says so
		}
		if err != nil {
			return err
		}
		if !node.Fillable(kind.InputSchema.JSON(), template.OverrideInput) {
			warn(workflow.ProblemConfig, fmt.Sprintf("nodes[%d].configurations.enable_filling", i), "%s", node.NothingToFill())
		}
	}
	return nil
}

// serversIn are the tool servers that a node names, also those whose tools it names.
func (c *Checker) serversIn(n *workflow.Node, at string) []named {
	list := c.namedIn(shape.NamesToolServer)(n, at)
	for _, tool := range c.namedIn(shape.NamesTool)(n, at) {
		if server, _, ok := strings.Cut(tool.text, "/"); ok {
			list = append(list, named{server, tool.path})
		}
	}
	return list
}

// namedIn finds the records of a sort that nodes name, as their kinds say, without those that only a run can know.
func (c *Checker) namedIn(sort node.RecordSort) func(*workflow.Node, string) []named {
	return func(n *workflow.Node, at string) (list []named) {
		kind, ok := c.Registry.Get(n.Kind())
		if !ok {
			return nil
		}
		for _, m := range kind.Mentions(n.Configurations, sort) {
			list = append(list, named{m.Text, at + m.Path})
		}
		return list
	}
}

// credentialsIn are the credentials that a node names, by id or by name.
func credentialsIn(n *workflow.Node, at string) (list []named) {
	for _, r := range credential.References(n.Configurations) {
		list = append(list, named{r.Name, at + r.Path})
	}
	return list
}

// named is a text in a configuration that names somebody or something, and where.
type named struct{ text, path string }
