package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/human"
	"tandem/identity"
	"tandem/store"
	"tandem/workflow"
)

// The codes of problems that only a server can find: a file alone cannot say who and what is there.
const (
	problemUnknownApprover = "unknown_approver"
	problemUnknownWorkflow = "unknown_workflow"
)

// humanType is the type of the nodes that ask people.
const humanType = "HUMAN_IN_THE_LOOP"

// absent warns of what a definition names and the workspace does not have: approvers and the error workflow. They may be made later,
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
	var named []namedApprover
	for i := range def.Nodes {
		if n := &def.Nodes[i]; n.Type == humanType {
			named = append(named, approversIn(n, fmt.Sprintf("nodes[%d].configurations.", i))...)
		}
	}
	if len(named) == 0 {
		return problems, nil
	}
	users, err := s.o.Stores.Users.List(ctx, identity.System(p.Workspace))
	if err != nil {
		return nil, err
	}
	for _, a := range named {
		if why := human.Absent(a.text, users); why != "" {
			warn(problemUnknownApprover, a.path, "%q cannot answer: %s", a.text, why)
		}
	}
	return problems, nil
}

// namedApprover is somebody who is named in a configuration, and where.
type namedApprover struct{ text, path string }

// approversIn are those whom a node names to be asked, without those that only a run can know.
func approversIn(n *workflow.Node, at string) (list []namedApprover) {
	add := func(v gjson.Result, path string) {
		if v.Type == gjson.String && !strings.Contains(v.Str, "{{") && !strings.Contains(v.Str, "${") {
			list = append(list, namedApprover{v.Str, path})
		}
	}
	for _, name := range []string{"approvers", "reviewers", "escalation.to"} {
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
