package ai

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"tandem/builtin/toolset"
	"tandem/builtin/values"
	"tandem/fault"
	"tandem/llm"
	"tandem/mcp"
	"tandem/node"
	"tandem/payload"
)

// listedTool is a tool that a node lists by itself: one of a registered tool server, or a function that only the workflow knows.
type listedTool struct {
	llm.Tool
	// Server and Remote are the tool server and the name there, which may be a pattern; empty for a function of the workflow.
	Server, Remote string
}

// listedTools reads "tools": texts "server/tool", {name, description, parameters}, and what OpenAI's interface puts around that.
func listedTools(raw json.RawMessage) ([]listedTool, error) {
	if values.IsNull(raw) {
		return nil, nil
	}
	wrong := func(i int, why string) error {
		return fault.Newf(fault.InvalidConfig, "tools[%d] %s", i, why).With("path", fmt.Sprintf("configurations.tools[%d]", i))
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fault.New(fault.InvalidConfig, `"tools" must be a list`).With("path", "configurations.tools")
	}
	tools := make([]listedTool, len(list))
	for i, one := range list {
		t := &tools[i]
		if values.Leading(one) == '"' {
			t.Name, _ = values.Scalar(one)
		} else if problem := t.readArguments(one); problem != "" {
			return nil, wrong(i, problem)
		}
		if server, remote, ok := mcp.SplitToolID(t.Name); ok {
			t.Server, t.Remote = server, remote
			continue
		}
		if values.Leading(one) == '"' {
			return nil, wrong(i, fmt.Sprintf(`is %q; name a tool of a registered server as "server/tool", or describe a function as {name, description, parameters}`, t.Name))
		}
		if t.Name == "" || oddName.MatchString(t.Name) || len(t.Name) > 64 {
			return nil, wrong(i, fmt.Sprintf("has the name %q; a name has letters, digits, _ and -, at most 64", t.Name))
		}
		if len(t.Parameters) > 0 {
			if _, err := payload.CompileSchema(t.Parameters); err != nil {
				return nil, wrong(i, "has parameters that are not a usable JSON Schema: "+fault.From(err).Message)
			}
		}
	}
	return tools, nil
}

// readArguments reads a description of a tool and says what is wrong with it.
func (t *listedTool) readArguments(raw json.RawMessage) (problem string) {
	var outer struct {
		Type     string          `json:"type"`
		Function json.RawMessage `json:"function"`
	}
	if json.Unmarshal(raw, &outer) != nil {
		return `must be "server/tool" or {name, description, parameters}`
	}
	if !values.IsNull(outer.Function) {
		raw = outer.Function
	}
	if outer.Type != "" && outer.Type != "function" {
		return fmt.Sprintf(`has the type %q; only "function" can be offered`, outer.Type)
	}
	if json.Unmarshal(raw, &t.Tool) != nil {
		return `must be "server/tool" or {name, description, parameters}`
	}
	return ""
}

// equipListed gives the turn the tools that its node lists by itself.
func (t *turns) equipListed(ctx context.Context, call *node.Call, a approval, listed []listedTool, state *turnState) (*node.Wait, error) {
	var servers []string
	for _, l := range listed {
		if l.Server == "" {
			a.of(l.Name) // a call of it ends the turn: there is nothing to approve
			if err := state.addTool(turnTool{Name: l.Name}, l.Description, l.Parameters); err != nil {
				return nil, err
			}
		} else if !slices.Contains(servers, l.Server) {
			servers = append(servers, l.Server)
		}
	}
	for _, server := range servers {
		var wanted []listedTool
		for _, l := range listed {
			if l.Server == server {
				wanted = append(wanted, l)
			}
		}
		if wait, err := t.equipServer(ctx, call, a, server, wanted, state); err != nil || wait != nil {
			return wait, err
		}
	}
	return nil, nil
}

// listedServer is a tool server as a node uses it that lists tools of it.
func (t *turns) listedServer(call *node.Call, server string, tools []string) (*toolset.Server, error) {
	if t.tools == nil {
		return nil, fault.Newf(fault.Unsupported, "there are no tool servers here, so tools of %q cannot be used", server).With("path", "configurations.tools")
	}
	cfg := toolset.ServerConfig{ServerID: server, AvailableTools: tools}
	cfg.Defaults()
	return &toolset.Server{Pool: t.tools, Call: call, Config: &cfg}, nil
}

func (t *turns) equipServer(ctx context.Context, call *node.Call, a approval, server string, wanted []listedTool,
	state *turnState) (*node.Wait, error) {
	names := make([]string, len(wanted))
	for i, w := range wanted {
		names[i] = w.Remote
	}
	s, err := t.listedServer(call, server, names)
	if err != nil {
		return nil, err
	}
	if err := s.Settle(ctx); err != nil {
		return nil, err
	}
	if wait, err := s.Ready(ctx); err != nil || wait != nil {
		return wait, err
	}
	if err := s.Has(ctx, names); err != nil {
		return nil, err
	}
	offered, err := s.Offer(ctx)
	if err != nil {
		return nil, err
	}
	for _, o := range offered {
		for _, w := range wanted { // what the node says of a tool counts
			if w.Description != "" && o.Name == mcp.ModelName(server, w.Remote) {
				o.Description = w.Description
			}
		}
		if err := state.offer(a, turnTool{Server: server}, o); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// do runs a tool: that of an attached node, or of a tool server.
func (t *turns) do(ctx context.Context, call *node.Call, tool turnTool, in toolset.Input) (node.Outcome, error) {
	if tool.Server == "" {
		raw, err := payload.Encode(in)
		if err != nil {
			return nil, err
		}
		return call.Attached(toolset.WantedByModel(ctx), tool.Node, raw)
	}
	s, err := t.listedServer(call, tool.Server, nil)
	if err != nil {
		return nil, err
	}
	if err := s.Settle(ctx); err != nil {
		return nil, err
	}
	return s.Run(ctx, in)
}
