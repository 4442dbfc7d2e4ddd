package server

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
	"tandem/route"
	"tandem/store"
	"tandem/workflow"
)

// The codes of problems that only a server can find: a file alone cannot say who and what is there.
const (
	problemUnknownApprover   = "unknown_approver"
	problemUnknownWorkflow   = "unknown_workflow"
	problemUnknownServer     = "unknown_server"
	problemUnknownTemplate   = "unknown_template"
	problemUnknownProfile    = "unknown_profile"
	problemUnknownCredential = "unknown_credential"
	problemUnknownAgent      = "unknown_agent"
)

// humanType is the type of the nodes that ask people.
const humanType = "HUMAN_IN_THE_LOOP"

// absent warns of what a definition names and the workspace does not have: approvers, the error workflow and the records of [Server.mentions]. They may be made later,
// so that none of it is an error before the workflow is deployed ([Server.lacking]).
func (s *Server) absent(ctx context.Context, p identity.Principal, def *workflow.Definition) ([]workflow.Problem, error) {
	var problems []workflow.Problem
	warn := func(code, path, format string, args ...any) {
		problems = append(problems, workflow.Problem{Severity: workflow.SeverityWarning, Code: code, Path: path, Message: fmt.Sprintf(format, args...)})
	}
	if id := def.Metadata.Settings.ErrorWorkflow; id != "" && id != def.Metadata.ID {
		_, err := s.o.Stores.Workflows.Get(ctx, p, id)
		switch {
		case errors.Is(err, store.ErrNotFound):
			warn(problemUnknownWorkflow, "metadata.settings.error_workflow", "the workflow %q does not exist, so that nothing is started when an execution fails; save it, or name another one", id)
		case err != nil:
			return nil, err
		}
	}
	if err := s.absentRecords(ctx, p, def, warn); err != nil {
		return nil, err
	}
	if err := s.idleFillings(ctx, p, def, warn); err != nil {
		return nil, err
	}
	if err := s.unfitCredentials(ctx, p, def, warn); err != nil {
		return nil, err
	}
	var people []named
	for i := range def.Nodes {
		if n := &def.Nodes[i]; n.Type == humanType {
			people = append(people, namedIn(n, fmt.Sprintf("nodes[%d].configurations.", i), "approvers", "reviewers", "escalation.to")...)
		}
	}
	if len(people) == 0 {
		return problems, nil
	}
	users, err := s.o.Stores.Users.List(ctx, identity.System(p.Workspace))
	if err != nil {
		return nil, err
	}
	for _, a := range people {
		if why := human.Absent(a.text, users); why != "" {
			warn(problemUnknownApprover, a.path, "%q cannot answer: %s", a.text, why)
		}
	}
	return problems, nil
}

// mention is a way in which nodes name a record of the workspace.
type mention struct {
	// code is that of the warning, what, without and remedy are its words: "the WHAT "id" WITHOUT; REMEDY".
	code, what, without, remedy string
	// in are the records that a node names.
	in func(n *workflow.Node, at string) []named
	// missing says whether a record is not there, and of those that are, which is named most like it, if any.
	missing func(id string) (missing bool, near string, err error)
}

// mentions are all the ways in which nodes name records, except for people. What is there is asked as the system: a run finds it whoever saves.
func (s *Server) mentions(ctx context.Context, p identity.Principal, def *workflow.Definition) []mention {
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
		_, err := s.o.Stores.Workflows.Get(ctx, system, id)
		if id == def.Metadata.ID || errors.Is(err, store.ErrNotFound) {
			return id != def.Metadata.ID, "", nil
		}
		return false, "", err
	}
	return []mention{
		{problemUnknownServer, "tool server", "is not registered, so that its tools cannot be used", "an administrator registers it with PUT /api/v1/mcp/servers/{id}",
			serversIn, among(func() (ids []string, err error) {
				list, err := s.o.Stores.MCPServers.List(ctx, system)
				for _, one := range list {
					ids = append(ids, one.ID)
				}
				return ids, err
			})},
		{problemUnknownTemplate, "template", "does not exist, so that no start is possible", "save it, or name another one",
			namedAs("template_id"), among(func() (ids []string, err error) {
				list, err := s.o.Stores.Templates.List(ctx, system)
				for _, one := range list {
					ids = append(ids, one.ID)
				}
				return ids, err
			})},
		{problemUnknownProfile, "profile", "does not exist, so that no model can be asked", `make it with "tandem profiles set", or name another one`,
			profilesIn, among(func() (ids []string, err error) {
				list, err := s.o.Models.Profiles(ctx, system)
				for _, one := range list {
					ids = append(ids, one.ID)
				}
				return ids, err
			})},
		{problemUnknownCredential, "credential", "does not exist, so that the node cannot sign in", `make it with "tandem credentials set", or name another one`,
			credentialsIn, among(func() (names []string, err error) {
				list, err := s.o.Stores.Credentials.List(ctx, system)
				for _, one := range list {
					names = append(names, one.Name)
				}
				for _, one := range list { // after the names, which are what people write
					names = append(names, one.ID)
				}
				return names, err
			})},
		{problemUnknownWorkflow, "workflow", "does not exist, so that it cannot be started", "save it, or name another one",
			namedBy("FLOW.SUB_WORKFLOW", "workflow_id"), noWorkflow},
		{problemUnknownAgent, "agent", "does not exist, so that it cannot be asked", `make it with "tandem agent set", or name another one`,
			namedBy("AI_AGENT.MCP_AGENT", "agent_id"), func(id string) (bool, string, error) { return noWorkflow(agent.WorkflowID(id)) }},
	}
}

// absentRecords warns of records that nodes name and that are not there.
func (s *Server) absentRecords(ctx context.Context, p identity.Principal, def *workflow.Definition, warn func(code, path, format string, args ...any)) error {
	for _, m := range s.mentions(ctx, p, def) {
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
				if near != "" {
					near = fmt.Sprintf("did you mean %q? If not, ", near)
				}
				warn(m.code, one.path, "the %s %q %s; %s%s", m.what, one.text, m.without, near, m.remedy)
			}
		}
	}
	return nil
}

// idleFillings warns of nodes that want to be filled and name a template that does not say with what.
func (s *Server) idleFillings(ctx context.Context, p identity.Principal, def *workflow.Definition, warn func(code, path, format string, args ...any)) error {
	for i := range def.Nodes {
		n := &def.Nodes[i]
		kind, ok := s.o.Registry.Get(n.Kind())
		id := gjson.GetBytes(n.Configurations, "template_id").Str
		if !ok || kind.Scope != nil || id == "" || !gjson.GetBytes(n.Configurations, "enable_filling").Bool() {
			continue
		}
		template, err := s.o.Stores.Templates.Get(ctx, p, id)
		if errors.Is(err, store.ErrNotFound) {
			continue // absentRecords says so
		}
		if err != nil {
			return err
		}
		if !node.Fillable(kind.InputSchema.JSON(), template.OverrideInput) {
			warn(workflow.ProblemConfig, fmt.Sprintf("nodes[%d].configurations.enable_filling", i), "%s", node.NothingToFill)
		}
	}
	return nil
}

// serversIn are the tool servers that a node names, without those that only a run can know.
func serversIn(n *workflow.Node, at string) (list []named) {
	switch n.Kind() {
	case "TOOL.MCP_TOOL":
		list = namedIn(n, at, "server_id")
	case "AI_AGENT.MCP_AGENT":
		list = namedIn(n, at, "mcp_servers")
	}
	if n.Type == "AI_AGENT" { // tools of its own are named as server/tool
		for _, tool := range namedIn(n, at, "tools") {
			if server, _, ok := strings.Cut(tool.text, "/"); ok {
				list = append(list, named{server, tool.path})
			}
		}
	}
	return list
}

// namedAs finds what any node names in a field.
func namedAs(field string) func(*workflow.Node, string) []named {
	return func(n *workflow.Node, at string) []named { return namedIn(n, at, field) }
}

// namedBy finds what nodes of a kind name in a field.
func namedBy(kind, field string) func(*workflow.Node, string) []named {
	return func(n *workflow.Node, at string) []named {
		if n.Kind() != kind {
			return nil
		}
		return namedIn(n, at, field)
	}
}

// credentialsIn are the credentials that a node names, by id or by name.
func credentialsIn(n *workflow.Node, at string) (list []named) {
	for _, r := range credential.References(n.Configurations) {
		list = append(list, named{r.Name, at + r.Path})
	}
	return list
}

// profilesIn are the profiles of models that a node names.
func profilesIn(n *workflow.Node, at string) []named {
	return namedIn(n, at, "llm_profile", "profile_id", "fallback_profiles", "filling_profile", "vision_profile", "embedding_profile", "ai_analysis_model")
}

// named is a text in a configuration that names somebody or something, and where.
type named struct{ text, path string }

// namedIn are the texts that a configuration has under names, alone or in a list, without those that only a run can know.
func namedIn(n *workflow.Node, at string, names ...string) (list []named) {
	add := func(v gjson.Result, path string) {
		if v.Type == gjson.String && !strings.Contains(v.Str, "{{") && !strings.Contains(v.Str, "${") {
			list = append(list, named{v.Str, path})
		}
	}
	for _, name := range names {
		v := gjson.GetBytes(n.Configurations, name)
		add(v, at+name)
		if v.IsArray() {
			for i, item := range v.Array() {
				add(item, fmt.Sprintf("%s%s[%d]", at, name, i))
			}
		}
	}
	return list
}

// readAll reads the definition of a request with everything that is wrong with it here.
func (s *Server) readAll(ctx context.Context, p identity.Principal, b *DefinitionBody) (*workflow.Definition, []workflow.Problem, error) {
	def, problems, err := b.read(s.o.Check)
	if err != nil {
		return nil, nil, err
	}
	problems, err = s.checkAll(ctx, p, b.RawBody, def, problems)
	return def, problems, err
}

// checkAll is everything that is wrong with a definition here, with its places in the text that it was read from.
func (s *Server) checkAll(ctx context.Context, p identity.Principal, data []byte, def *workflow.Definition, problems []workflow.Problem) ([]workflow.Problem, error) {
	if def == nil || workflow.HasErrors(problems) {
		return problems, nil
	}
	found, err := s.absent(ctx, p, def)
	if err != nil || len(found) == 0 {
		return problems, err
	}
	if source, _ := workflow.Parse(data, workflow.Options{Kinds: s.o.Kinds}); source != nil {
		source.Locate(found)
	}
	return slices.Concat(problems, found), nil
}
