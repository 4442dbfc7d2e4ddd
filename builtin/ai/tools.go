package ai

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"tandem/builtin/toolset"
	"tandem/builtin/turn"
	"tandem/builtin/values"
	"tandem/engine"
	"tandem/fault"
	"tandem/human/form"
	"tandem/llm"
	"tandem/mcp"
	"tandem/node"
	"tandem/payload"
	"tandem/text"
)

// equip gives the turn what is attached to its node: memories by their kind, tools as what they offer; and the tools that the node lists by
// itself. What a person has to decide before tools can be offered is waited for.
func (t *turns) equip(ctx context.Context, call *node.Call, cfg *turn.Config, state *turnState) (*node.Wait, error) {
	approval, err := readApproval(cfg.ToolApproval)
	if err != nil {
		return nil, err
	}
	approval.found = make([]bool, len(approval.names))
	for _, a := range call.Uses() {
		if strings.HasPrefix(a.Kind, "MEMORY.") {
			state.Memories = append(state.Memories, a.ID)
			continue
		}
		if wait, err := call.Ready(ctx, a.ID); err != nil || wait != nil {
			return wait, err
		}
		offered, err := call.Offered(ctx, a.ID)
		if err != nil {
			return nil, err
		}
		for _, o := range offered {
			if err := state.offer(approval, turnTool{Node: a.ID}, o); err != nil {
				return nil, err
			}
		}
	}
	listed, err := listedTools(cfg.Tools)
	if err != nil {
		return nil, err
	}
	if wait, err := t.equipListed(ctx, call, approval, listed, state); err != nil || wait != nil {
		return wait, err
	}
	return nil, approval.allFound(state.Tools)
}

// offer adds a tool that somebody offers.
func (t *turnState) offer(a approval, by turnTool, o node.Tool) error {
	names := append([]string{o.Name, toolName(o.Name)}, o.Also...)
	for _, name := range names {
		names = append(names, by.Node+"/"+name)
	}
	approve := a.of(names...)
	if o.Withheld {
		return nil
	}
	tool := turnTool{
		Name: toolName(o.Name), Node: by.Node, Server: by.Server, Tool: o.Name, Effect: o.Effect, Approve: approve,
		EffectBy: o.EffectBy, Effects: o.Effects, TimeoutMS: o.TimeoutMS, Acts: o.Acts, Sources: o.Sources,
	}
	if o.Approval == toolset.ApproveNever || o.Approval == toolset.ApproveAlways {
		tool.Approve = o.Approval
	}
	if len(o.Policy) > 0 {
		if err := json.Unmarshal(o.Policy, &tool.Policy); err != nil {
			return fault.Newf(fault.Internal, "the policy of the tool %q cannot be read: %w", o.Name, err)
		}
		tool.Unsaid = !a.said && o.Approval != toolset.ApproveNever
	}
	return t.addTool(tool, o.Description, o.Parameters)
}

func (t *turnState) addTool(tool turnTool, description string, parameters json.RawMessage) error {
	if other, taken := (&progress{turnState: *t}).tool(tool.Name); taken {
		return fault.Newf(fault.InvalidConfig, "%s and %s both offer a tool %q; give an attached node a tool_prefix, or list the tool once", other.origin(), tool.origin(), tool.Name).With("path", "configurations.tool_prefix")
	}
	t.Tools = append(t.Tools, tool)
	t.Request.Tools = append(t.Request.Tools, llm.Tool{Name: tool.Name, Description: description, Parameters: parameters})
	return nil
}

// origin says where a tool comes from.
func (t turnTool) origin() string {
	switch {
	case t.Node != "":
		return fmt.Sprintf("the node %q", t.Node)
	case t.Server != "":
		return fmt.Sprintf("the server %q", t.Server)
	}
	return `"tools"`
}

// oddName is what a service does not take in the name of a tool. read-only
var oddName = regexp.MustCompile(`[^a-zA-Z0-9_-]+`)

// toolName makes a name that every service takes. One that is too long keeps its beginning and is told from others by a
// piece of its hash.
func toolName(name string) string {
	plain := oddName.ReplaceAllString(name, "_")
	if len(plain) <= 64 && plain == name {
		return plain
	}
	if len(plain) > 64 {
		sum := sha256.Sum256([]byte(name))
		plain = plain[:55] + "_" + hex.EncodeToString(sum[:4])
	}
	return plain
}

// approval says which calls a person decides about: by a rule for all tools, or those of the tools that are named.
type approval struct {
	mode  string
	names []string
	// found says which of the names stand for a tool that is offered.
	found []bool
	// said is false where the node leaves it open.
	said bool
}

func readApproval(raw json.RawMessage) (approval, error) {
	wrong := fault.Say(fault.InvalidConfig, text.Of(`"tool_approval" must be never, once, always or a list of names of tools`)).With("path", "configurations.tool_approval")
	switch {
	case values.IsNull(raw):
		return approval{mode: toolset.ApproveNever}, nil
	case values.Leading(raw) == '[':
		a := approval{mode: toolset.ApproveNever, said: true}
		if err := json.Unmarshal(raw, &a.names); err != nil {
			return a, wrong
		}
		return a, nil
	}
	var mode string
	if err := json.Unmarshal(raw, &mode); err != nil ||
		!slices.Contains([]string{toolset.ApproveNever, toolset.ApproveOnce, toolset.ApproveAlways}, strings.ToLower(mode)) {
		return approval{}, wrong
	}
	return approval{mode: strings.ToLower(mode), said: true}, nil
}

// of is the rule for a tool, which may be called by several names: its server's or node's, or as the model sees it.
func (a approval) of(names ...string) string {
	mode := a.mode
	for i, wanted := range a.names {
		if slices.ContainsFunc(names, func(name string) bool { return meansTool(wanted, name) }) {
			mode, a.found[i] = toolset.ApproveAlways, true
		}
	}
	return mode
}

// meansTool says that a name, or a pattern with * and ?, means a tool of a name.
func meansTool(wanted, name string) bool {
	plain := strings.NewReplacer("/", "\x00") // to a pattern, a name is one piece
	ok, err := path.Match(plain.Replace(wanted), plain.Replace(name))
	return wanted == name || ok && err == nil
}

// allFound refuses to go on where a name stands for no tool: the one who wrote it wants to be asked, and would not be.
func (a approval) allFound(offered []turnTool) error {
	for i, name := range a.names {
		if a.found[i] {
			continue
		}
		var known []string
		for _, t := range offered {
			known = append(known, t.Name)
		}
		hint := "; no tool is offered"
		if near := fault.Nearest(name, known); near != "" {
			hint = fmt.Sprintf("; did you mean %q?", near)
		} else if len(known) > 0 {
			hint = "; there are " + strings.Join(known, ", ")
		}
		return fault.Newf(fault.InvalidConfig, `"tool_approval" names %q, and no attached node offers such a tool%s`, name, hint).With("path", fmt.Sprintf("configurations.tool_approval[%d]", i))
	}
	return nil
}

// arguments are those of a call, which must be an object.
func arguments(c llm.ToolCall) (json.RawMessage, error) {
	if strings.TrimSpace(c.Arguments) == "" {
		return json.RawMessage("{}"), nil
	}
	raw := json.RawMessage(c.Arguments)
	if !json.Valid(raw) || !values.IsObject(raw) {
		return nil, fault.Newf(fault.ToolError, "the arguments of %q are not a JSON object; write them again", c.Name).With("path", "function_args")
	}
	// A person would be asked about one of two values.
	if wrong, ok := errors.AsType[*payload.Error](payload.Check(raw, payload.Door())); ok {
		return nil, fault.Newf(fault.ToolError, "the arguments of %q cannot be used: %s: %s; write them again", c.Name, wrong.Field("arguments"), wrong.Reason).With("path", "function_args")
	}
	return raw, nil
}

// approve asks a person about a call. What is approved is the call as the completion wants it, which is recorded: it cannot
// change meanwhile.
func (p *progress) approve(call *node.Call) (node.Outcome, error) {
	wanted, err := p.wanted(p.about.Completion, p.about.Index)
	if err != nil {
		return nil, err
	}
	tool, _ := p.tool(wanted.Name)
	call.Detail(map[string]any{"attached_node": tool.Node, "tool_name": wanted.Name})
	if call.Wake == nil {
		args, err := arguments(wanted)
		if err != nil {
			return reply(map[string]any{"approved": true, "note": "the tool refuses it"}, engine.ApproveReply{Approved: true})
		}
		sum := sha256.Sum256(append([]byte(wanted.Name+"\x00"), args...))
		asked := map[string]any{
			"interaction_type": form.Approval, "tool": wanted.Name, "node_id": tool.Node, "arguments": args,
			"arguments_hash": hex.EncodeToString(sum[:]),
			"options":        []string{"approve", "reject"},
		}
		form.Say(asked, p.Language, form.TitleText, text.Of("May %s be called?", wanted.Name))
		form.Say(asked, p.Language, form.DescriptionText, text.Of("A model wants to call this tool with the arguments below."))
		request, err := payload.Encode(asked)
		if err != nil {
			return nil, err
		}
		return node.Wait{Ask: &node.Question{Purpose: "tool_approval", Request: request}}, nil
	}
	approved := call.Wake.Outcome == engine.AskDone && toolset.Approves(call.Wake.Payload)
	return reply(map[string]any{"approved": approved, "answer": call.Wake.Payload}, engine.ApproveReply{Approved: approved})
}

// inquire asks the attached node what became of a call whose outcome is not known.
func (t *turns) inquire(ctx context.Context, call *node.Call, s node.Step) (node.Outcome, error) {
	p, err := readProgress(s)
	if err != nil {
		return nil, err
	}
	if s.Kind != engine.StepCall {
		return nil, fault.Newf(fault.Unsupported, "nobody can be asked what became of a step of the kind %q", s.Kind)
	}
	if wanted, err := p.wanted(p.about.Completion, p.about.Index); err != nil {
		return nil, err
	} else if tool, _ := p.tool(wanted.Name); tool.Node == "" {
		return nil, fault.Newf(fault.Unsupported, "a tool server cannot be asked what became of a call of %q", wanted.Name)
	}
	return t.callTool(node.Inquiry(ctx), call, p)
}

// callTool does what the model wants done.
func (t *turns) callTool(ctx context.Context, call *node.Call, p *progress) (node.Outcome, error) {
	wanted, err := p.wanted(p.about.Completion, p.about.Index)
	if err != nil {
		return nil, err
	}
	tool, ok := p.tool(wanted.Name)
	if !ok {
		var names []string
		for _, t := range p.Tools {
			names = append(names, t.Name)
		}
		hint := ""
		if near := fault.Nearest(wanted.Name, names); near != "" {
			hint = fmt.Sprintf("; did you mean %q?", near)
		}
		return nil, fault.Newf(fault.ToolError, "there is no tool %q%s", wanted.Name, hint)
	}
	args, err := arguments(wanted)
	if err != nil {
		return nil, err
	}
	call.Detail(map[string]any{"attached_node": tool.Node, "tool_name": wanted.Name, "tool_parameters": args})
	if tool.Policy != nil {
		ctx = toolset.WithModelCall(ctx, toolset.ModelCall{Approved: tool.asked(wanted),
			Asks: func(d mcp.Decision) bool { return tool.asks(tool.effect(wanted), d) }})
	}
	outcome, err := t.do(ctx, call, tool, toolset.Input{ToolName: tool.Tool, FunctionArgs: args, CallID: wanted.ID})
	if err != nil || outcome == nil {
		return nil, err // nothing: the service was asked, and has none of it
	}
	done, ok := outcome.(node.Done)
	if !ok {
		return outcome, nil // the tool waits for something
	}
	var out toolset.Output
	if err := json.Unmarshal(done["result"], &out); err != nil {
		return nil, fault.Newf(fault.OutputInvalid, "the tool %q answered with something that cannot be read", wanted.Name)
	}
	call.Detail(map[string]any{"tool_result": out.Result})
	return reply(toolAnswer{ID: wanted.ID, Name: wanted.Name, Node: tool.Node, Arguments: args, Result: out.Result}, nil)
}
