package toolset

import (
	"context"
	"encoding/json"

	"tandem/human/form"
	"tandem/mcp"
	"tandem/node"
	"tandem/payload"
	"tandem/store"
	"tandem/text"
)

// Policy is what calls of a tool meet that a model is given, as a turn keeps it.
type Policy struct {
	Decision mcp.Decision `json:"decision"`
	// The rest is there where rules about arguments decide first.
	Server     string           `json:"server,omitempty"`
	Definition json.RawMessage  `json:"definition,omitempty"`
	Own        *store.MCPPolicy `json:"own,omitempty"`
	Everybodys *store.MCPPolicy `json:"everybodys,omitempty"`
}

// policyOf is what is kept of a tool's standing.
func policyOf(t mcp.Tool, s mcp.Standing) Policy {
	if !s.ByArgument {
		return Policy{Decision: s.Decision}
	}
	return Policy{Decision: s.Decision, Server: t.Server, Definition: t.Definition, Own: s.Own, Everybodys: s.Everybodys}
}

// Meets is what a call with these arguments meets.
func (p *Policy) Meets(arguments string) mcp.Decision {
	if len(p.Definition) == 0 {
		return p.Decision
	}
	t, err := mcp.ReadTool(p.Server, p.Definition)
	if err != nil {
		return mcp.Asks // what cannot be read is not clear
	}
	return mcp.Decide(t, json.RawMessage(arguments), p.Own, p.Everybodys).Decision
}

// ModelCall is how a call came about that a model wants. Only the turn itself can say so: it is not part of any data.
type ModelCall struct {
	// Approved says that a person has agreed, asks that one has to, by what the call meets.
	Approved bool
	Asks     func(mcp.Decision) bool
}

type modelCallKey struct{}

// WithModelCall tells the node that is called by whom.
func WithModelCall(ctx context.Context, c ModelCall) context.Context {
	return context.WithValue(ctx, modelCallKey{}, c)
}

// held says that a person has to be asked about the call first.
//
// A node that stands alone does what its author wrote. It asks if its approval says always, or if somebody's policy wants calls of the tool
// asked about; approval: never lifts a user's own wish, and not that of an admin.
func (s *Server) held(ctx context.Context, v mcp.Verdict) bool {
	if c, ok := ctx.Value(modelCallKey{}).(ModelCall); ok {
		return !c.Approved && c.Asks(v.Decision)
	}
	switch s.Config.Approval {
	case ApproveAlways:
		return true
	case ApproveNever:
		return v.Decision == mcp.Asks && v.From == mcp.FromWorkspace
	}
	return v.Decision == mcp.Asks
}

// askCall asks about a call with exactly these arguments.
func (s *Server) askCall(tool string, args json.RawMessage, v mcp.Verdict) (node.Outcome, error) {
	id := mcp.ToolID(s.Config.ServerID, tool)
	hash, err := ArgumentsHash(id, args)
	if err != nil {
		return nil, err
	}
	why := []text.Text{text.Of("The workflow wants to call this tool with the arguments below.")}
	if v.Decision == mcp.Asks && v.By != "" {
		why = append(why, text.Of("%s wants calls of this tool confirmed.", v.By))
	}
	asked := map[string]any{
		"interaction_type": form.Approval, "tool": id, "node_id": s.Call.NodeID, "arguments": args, "arguments_hash": hash,
		"options": []string{"approve", "reject"},
	}
	form.Say(asked, s.Call.Speaks(""), form.TitleText, text.Of("May %s be called?", id))
	form.Say(asked, s.Call.Speaks(""), form.DescriptionText, text.Paragraphs(append(why, text.As(v.Detail))...))
	request, err := payload.Encode(asked)
	if err != nil {
		return nil, err
	}
	memo, err := payload.Encode(mcpMemo{Purpose: form.PurposeToolApproval, Node: s.Call.NodeID, Server: s.Config.ServerID, Hash: hash})
	if err != nil {
		return nil, err
	}
	return node.Wait{Ask: &node.Question{Purpose: form.PurposeToolApproval, Request: request}, Memo: memo}, nil
}

// agreedTo says that a person has agreed to the call with exactly these arguments, in answer to this run's question.
func (s *Server) agreedTo(tool string, args json.RawMessage) (bool, error) {
	if s.agreed == "" {
		return false, nil
	}
	hash, err := ArgumentsHash(mcp.ToolID(s.Config.ServerID, tool), args)
	return hash == s.agreed, err
}
