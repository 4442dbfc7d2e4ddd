package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"tandem/api"
	"tandem/fault"
	"tandem/payload"
	"tandem/text"
	"tandem/validation"
)

// SetMCPServer registers or replaces the tool server in a file, YAML or JSON. Without an id it is named after the file.
func (c *Connection) SetMCPServer(ctx context.Context, file string, stdin io.Reader) (api.MCPServer, error) {
	id, document, err := readNamed(file, stdin, text.Of("a tool server"), `{id: files, transport: stdio, command: npx, args: [...]}`)
	if err != nil {
		return api.MCPServer{}, err
	}
	raw, err := json.Marshal(document)
	if err != nil {
		return api.MCPServer{}, fmt.Errorf("write the tool server %q: %w", id, err)
	}
	return c.PutMCPServerDocument(ctx, id, raw)
}

// MCPChanges returns the changes of the named tools of a server that somebody has to accept; without a name, those of all tools.
func (c *Connection) MCPChanges(ctx context.Context, server string, names []string) ([]api.MCPChange, error) {
	list, err := c.MCPTools(ctx, server)
	if err != nil {
		return nil, err
	}
	if !list.Activated {
		return nil, fault.Newf(fault.Conflict, "you do not use the tool server %q; activate it first", server)
	}
	if len(names) == 0 {
		return list.Changes, nil
	}
	var found []api.MCPChange
	for _, name := range names {
		name = strings.TrimPrefix(name, server+"/")
		at := slices.IndexFunc(list.Changes, func(c api.MCPChange) bool { return c.Tool == name })
		if at < 0 {
			return nil, fault.Newf(fault.NotFound, "the tool %q of server %q has not changed", name, server)
		}
		found = append(found, list.Changes[at])
	}
	return found, nil
}

// ReadMCPPolicies reads policies by the names of tools from a file, YAML or JSON: each is a value such as read_only, or an object with
// policy and rules.
func ReadMCPPolicies(file string, stdin io.Reader) (map[string]api.MCPToolPolicy, error) {
	data, problem := validation.ReadFile(file, stdin)
	if problem != nil {
		return nil, fault.Newf(fault.Invalid, "%s: %s", file, problem.Says())
	}
	raw, err := yamlToJSON(data)
	var document map[string]json.RawMessage
	if err == nil {
		err = json.Unmarshal(raw, &document)
	}
	if err != nil || document == nil {
		return nil, fault.Newf(fault.Invalid, "%s: policies are an object in YAML or JSON, such as {list_files: read_only}: %v", file, err)
	}
	list := make(map[string]api.MCPToolPolicy, len(document))
	for name, one := range document { // order does not matter
		p := api.MCPToolPolicy{}
		if json.Unmarshal(one, &p.Policy) != nil {
			if err := payload.ReadKnown(one, &p); err != nil {
				return nil, fault.Newf(fault.Invalid, "%s: %s: a policy is read_only, ask or never, or an object with policy and rules: %v", file, name, err)
			}
		}
		p.SetBy, p.TokenMadeBy, p.SetTime, p.Lapsed = "", "", 0, false // a file may be what "policy --json" printed
		list[name] = p
	}
	return list, nil
}
