package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"tandem/fault"
	"tandem/human"
	"tandem/mcp"
	"tandem/node"
	"tandem/payload"
	"tandem/store"
	"tandem/workflow"
)

// toolPolicy is what calls of a tool meet that a model is given, as a turn keeps it.
type toolPolicy struct {
	Decision mcp.Decision `json:"decision"`
	// The rest is there where rules about arguments decide first.
	Server     string           `json:"server,omitempty"`
	Definition json.RawMessage  `json:"definition,omitempty"`
	Own        *store.MCPPolicy `json:"own,omitempty"`
	Everybodys *store.MCPPolicy `json:"everybodys,omitempty"`
}

// policyOf is what is kept of a tool's standing.
func policyOf(t mcp.Tool, s mcp.Standing) toolPolicy {
	if !s.ByArgument {
		return toolPolicy{Decision: s.Decision}
	}
	return toolPolicy{Decision: s.Decision, Server: t.Server, Definition: t.Definition, Own: s.Own, Everybodys: s.Everybodys}
}

// meets is what a call with these arguments meets.
func (p *toolPolicy) meets(arguments string) mcp.Decision {
	if len(p.Definition) == 0 {
		return p.Decision
	}
	t, err := mcp.ReadTool(p.Server, p.Definition)
	if err != nil {
		return mcp.Asks // what cannot be read is not clear
	}
	return mcp.Decide(t, json.RawMessage(arguments), p.Own, p.Everybodys).Decision
}

// asks says that a person decides about a call first: because the author of the workflow or somebody's policy wants that, or because the tool
// may destroy and the author has said nothing.
func (t turnTool) asks(e workflow.Effect, d mcp.Decision) bool {
	return t.approved(e) || d == mcp.Asks || d == mcp.Destroys && t.Unsaid
}

// modelCall is how a call came about that a model wants. Only the turn itself can say so: it is not part of any data.
type modelCall struct {
	// approved says that a person has agreed, asks that one has to, by what the call meets.
	approved bool
	asks     func(mcp.Decision) bool
}

type modelCallKey struct{}

// withModelCall tells the node that is called by whom.
func withModelCall(ctx context.Context, c modelCall) context.Context {
	return context.WithValue(ctx, modelCallKey{}, c)
}

// held says that a person has to be asked about the call first.
//
// A node that stands alone does what its author wrote. It asks if its approval says always, or if somebody's policy wants calls of the tool
// asked about; approval: never lifts a user's own wish, and not that of an admin.
func (s *toolServer) held(ctx context.Context, v mcp.Verdict) bool {
	if c, ok := ctx.Value(modelCallKey{}).(modelCall); ok {
		return !c.approved && c.asks(v.Decision)
	}
	switch s.cfg.Approval {
	case approveAlways:
		return true
	case approveNever:
		return v.Decision == mcp.Asks && v.From == mcp.FromWorkspace
	}
	return v.Decision == mcp.Asks
}

// askCall asks about a call with exactly these arguments.
func (s *toolServer) askCall(tool string, args json.RawMessage, v mcp.Verdict) (node.Outcome, error) {
	say := func(zh, en string) string { return wording(speaks(s.call, ""), zh, en) }
	id := mcp.ToolID(s.cfg.ServerID, tool)
	hash, err := argumentsHash(id, args)
	if err != nil {
		return nil, err
	}
	why := say("工作流要用下列参数调用这个工具。", "The workflow wants to call this tool with the arguments below.")
	if v.Decision == mcp.Asks && v.By != "" {
		why = joinTexts(why, fmt.Sprintf(say("%s 要求确认该工具的调用。", "%s wants calls of this tool confirmed."), v.By))
	}
	request, err := payload.Encode(map[string]any{
		"interaction_type": human.Approval, "title": fmt.Sprintf(say("是否允许调用 %s？", "May %s be called?"), id), "description": joinTexts(why, v.Detail),
		"tool": id, "node_id": s.call.NodeID, "arguments": args, "arguments_hash": hash, "options": []string{"approve", "reject"},
	})
	if err != nil {
		return nil, err
	}
	memo, err := payload.Encode(mcpMemo{Purpose: human.PurposeToolApproval, Node: s.call.NodeID, Server: s.cfg.ServerID, Hash: hash})
	if err != nil {
		return nil, err
	}
	return node.Wait{Ask: &node.Question{Purpose: human.PurposeToolApproval, Request: request}, Memo: memo}, nil
}

// agreedTo says that a person has agreed to the call with exactly these arguments, in answer to this run's question.
func (s *toolServer) agreedTo(tool string, args json.RawMessage) (bool, error) {
	if s.agreed == "" {
		return false, nil
	}
	hash, err := argumentsHash(mcp.ToolID(s.cfg.ServerID, tool), args)
	return hash == s.agreed, err
}

// fits refuses arguments that do not fit a tool whose change was accepted in this run: they were made for the tool as it was.
func (s *toolServer) fits(now mcp.Tool, args json.RawMessage) error {
	if !s.changed {
		return nil
	}
	_, missing, problem := (taskTool{InputSchema: now.InputSchema}).check(args)
	if len(missing) > 0 {
		problem = joinTexts(problem, "missing: "+strings.Join(missing, ", "))
	}
	if problem == "" {
		return nil
	}
	return fault.Newf(fault.InvalidInput, "function_args: they do not fit the tool %q as it is now: %s", now.ID, problem).With("path", "function_args")
}
