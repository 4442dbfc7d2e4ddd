package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/fault"
	"tandem/human"
	"tandem/identity"
	"tandem/node"
	"tandem/store"
	"tandem/workflow"
)

// The codes of problems that only a server can find: a file alone cannot say who and what is there.
const (
	problemUnknownApprover = "unknown_approver"
	problemUnknownWorkflow = "unknown_workflow"
	problemUnknownServer   = "unknown_server"
)

// humanType is the type of the nodes that ask people.
const humanType = "HUMAN_IN_THE_LOOP"

// absent warns of what a definition names and the workspace does not have: approvers, tool servers and the error workflow. They may be made later,
// so that none of it is an error.
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
	if err := s.absentServers(ctx, p, def, warn); err != nil {
		return nil, err
	}
	if err := s.idleFillings(ctx, p, def, warn); err != nil {
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

// absentServers warns of tool servers that nodes name and nobody has registered.
func (s *Server) absentServers(ctx context.Context, p identity.Principal, def *workflow.Definition, warn func(code, path, format string, args ...any)) error {
	var ids []string
	listed := false
	for i := range def.Nodes {
		n := &def.Nodes[i]
		for _, named := range serversIn(n, fmt.Sprintf("nodes[%d].configurations.", i)) {
			if !listed {
				list, err := s.o.Stores.MCPServers.List(ctx, p)
				if err != nil {
					return err
				}
				for _, one := range list {
					ids = append(ids, one.ID)
				}
				listed = true
			}
			if !slices.Contains(ids, named.text) {
				hint := fault.Nearest(named.text, ids)
				if hint != "" {
					hint = fmt.Sprintf("did you mean %q? If not, ", hint)
				}
				warn(problemUnknownServer, named.path, "the tool server %q is not registered, so that its tools cannot be used; %san administrator registers it with PUT /api/v1/mcp/servers/{id}", named.text, hint)
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
			continue // a start says so
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
