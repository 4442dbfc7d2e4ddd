package builtin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"tandem/engine"
	"tandem/fault"
	"tandem/llm"
	"tandem/mcp"
	"tandem/node"
	"tandem/payload"
)

// equip gives the turn what is attached to its node: memories by their kind, tools as what they offer. What a person has to decide
// before a node can offer anything is waited for.
func (t *turns) equip(ctx context.Context, call *node.Call, cfg *agentConfig, state *turn) (*node.Wait, error) {
	approval, err := readApproval(cfg.ToolApproval)
	if err != nil {
		return nil, err
	}
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
			approve := approval.of(o.Name, toolName(o.Name))
			if o.Approval == approveNever || o.Approval == approveAlways {
				approve = o.Approval
			}
			tool := turnTool{Name: toolName(o.Name), Node: a.ID, Tool: o.Name, Effect: o.Effect, Approve: approve, EffectBy: o.EffectBy, Effects: o.Effects, TimeoutMS: o.TimeoutMS}
			if len(o.Policy) > 0 {
				if err := json.Unmarshal(o.Policy, &tool.Policy); err != nil {
					return nil, fault.Newf(fault.Internal, "the policy of the tool %q cannot be read: %w", o.Name, err)
				}
				tool.Unsaid = isNull(cfg.ToolApproval) && o.Approval != approveNever
			}
			if err := state.add(tool, o.Description, o.Parameters); err != nil {
				return nil, err
			}
		}
	}
	for _, name := range approval.names {
		if !slices.ContainsFunc(state.Tools, func(t turnTool) bool { return t.Tool == name || t.Name == name }) {
			call.Log(node.Warn, "tool_approval names a tool that no attached node offers", map[string]any{"tool": name})
		}
	}
	declared, err := declaredTools(cfg.Tools)
	if err != nil {
		return nil, err
	}
	for _, d := range declared {
		if err := state.add(turnTool{Name: d.Name}, d.Description, d.Parameters); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func (t *turn) add(tool turnTool, description string, parameters json.RawMessage) error {
	if other, taken := (&progress{turn: *t}).tool(tool.Name); taken {
		return fault.Newf(fault.InvalidConfig, "the nodes %q and %q both offer a tool %q; give one of them a tool_prefix", other.Node, tool.Node, tool.Name).With("path", "configurations.tool_prefix")
	}
	t.Tools = append(t.Tools, tool)
	t.Request.Tools = append(t.Request.Tools, llm.Tool{Name: tool.Name, Description: description, Parameters: parameters})
	return nil
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

// Which calls of a tool a person decides about: none, those of the class once, all.
const (
	approveNever  = "never"
	approveOnce   = "once"
	approveAlways = "always"
)

// approval says which calls a person decides about: by a rule for all tools, or those of the tools that are named.
type approval struct {
	mode  string
	names []string
}

func readApproval(raw json.RawMessage) (approval, error) {
	wrong := fault.New(fault.InvalidConfig, `"tool_approval" must be never, once, always or a list of names of tools`).With("path", "configurations.tool_approval")
	switch {
	case isNull(raw):
		return approval{mode: approveNever}, nil
	case leading(raw) == '[':
		a := approval{mode: approveNever}
		if err := json.Unmarshal(raw, &a.names); err != nil {
			return a, wrong
		}
		return a, nil
	}
	var mode string
	if err := json.Unmarshal(raw, &mode); err != nil || !slices.Contains([]string{approveNever, approveOnce, approveAlways}, strings.ToLower(mode)) {
		return approval{}, wrong
	}
	return approval{mode: strings.ToLower(mode)}, nil
}

// of is the rule for a tool, which may be named as its node does or as the model sees it.
func (a approval) of(tool, seen string) string {
	if slices.Contains(a.names, tool) || slices.Contains(a.names, seen) {
		return approveAlways
	}
	return a.mode
}

// declaredTools are tools that a node lists by itself. Nothing here does them: a call of one ends the turn, and the workflow
// goes on with it.
func declaredTools(raw json.RawMessage) ([]llm.Tool, error) {
	if isNull(raw) {
		return nil, nil
	}
	wrong := func(i int, why string) error {
		return fault.Newf(fault.InvalidConfig, "tools[%d] %s", i, why).With("path", fmt.Sprintf("configurations.tools[%d]", i))
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fault.New(fault.InvalidConfig, `"tools" must be a list`).With("path", "configurations.tools")
	}
	tools := make([]llm.Tool, len(list))
	for i, one := range list {
		if err := json.Unmarshal(one, &tools[i]); err != nil {
			return nil, wrong(i, "must be {name, description, parameters}")
		}
		if tools[i].Name == "" || oddName.MatchString(tools[i].Name) || len(tools[i].Name) > 64 {
			return nil, wrong(i, fmt.Sprintf("has the name %q; a name has letters, digits, _ and -, at most 64", tools[i].Name))
		}
		if len(tools[i].Parameters) > 0 {
			if _, err := node.CompileSchema(tools[i].Parameters); err != nil {
				return nil, wrong(i, "has parameters that are no usable JSON Schema: "+fault.From(err).Message)
			}
		}
	}
	return tools, nil
}

// arguments are those of a call, which must be an object.
func arguments(c llm.ToolCall) (json.RawMessage, error) {
	if strings.TrimSpace(c.Arguments) == "" {
		return json.RawMessage("{}"), nil
	}
	raw := json.RawMessage(c.Arguments)
	if !json.Valid(raw) || !isObject(raw) {
		return nil, fault.Newf(fault.ToolError, "the arguments of %q are not a JSON object; write them again", c.Name).With("path", "function_args")
	}
	if wrong, ok := errors.AsType[*payload.Error](payload.Check(raw, payload.Limits{Unique: true})); ok { // a person would be asked about one of two values
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
		request, err := node.Marshal(map[string]any{
			"interaction_type": "approval", "title": fmt.Sprintf(p.say("是否允许调用 %s？", "May %s be called?"), wanted.Name),
			"description": p.say("模型想用下列参数调用这个工具。", "A model wants to call this tool with the arguments below."),
			"tool":        wanted.Name, "node_id": tool.Node, "arguments": args, "arguments_hash": hex.EncodeToString(sum[:]),
			"options": []string{"approve", "reject"},
		})
		if err != nil {
			return nil, err
		}
		return node.Wait{Ask: &node.Question{Purpose: "tool_approval", Request: request}}, nil
	}
	approved := call.Wake.Outcome == engine.AskDone && approves(call.Wake.Payload)
	return reply(map[string]any{"approved": approved, "answer": call.Wake.Payload}, engine.ApproveReply{Approved: approved})
}

// approves reads an answer. Only a plain yes is one: an answer that says yes in one field and something else in another is
// none.
func approves(raw json.RawMessage) bool {
	if string(raw) == "true" {
		return true
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return false
	}
	yes := false
	for name, value := range fields { // order does not matter: all are asked
		switch name {
		case "approved", "confirm":
			if string(value) != "true" {
				return false
			}
			yes = true
		case "action", "selected_option", "option":
			if text := strings.ToLower(promptText(value)); text != "approve" && text != "approved" {
				return false
			}
			yes = true
		}
	}
	return yes
}

// callTool does what the model wants done.
func (p *progress) callTool(ctx context.Context, call *node.Call) (node.Outcome, error) {
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
	input, err := node.Marshal(map[string]any{"tool_name": tool.Tool, "function_args": args, "call_id": wanted.ID})
	if err != nil {
		return nil, err
	}
	if tool.Policy != nil {
		ctx = withModelCall(ctx, modelCall{approved: tool.asked(wanted), asks: func(d mcp.Decision) bool { return tool.asks(tool.effect(wanted), d) }})
	}
	outcome, err := call.Attached(ctx, tool.Node, input)
	if err != nil {
		return nil, err
	}
	done, ok := outcome.(node.Done)
	if !ok {
		return outcome, nil // the tool waits for something
	}
	var out toolOutput
	if err := json.Unmarshal(done["result"], &out); err != nil {
		return nil, fault.Newf(fault.OutputInvalid, "the tool %q answered with something that cannot be read", wanted.Name)
	}
	call.Detail(map[string]any{"tool_result": out.Result})
	return reply(toolAnswer{ID: wanted.ID, Name: wanted.Name, Node: tool.Node, Arguments: args, Result: out.Result}, nil)
}
