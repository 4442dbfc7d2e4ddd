package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"tandem/engine"
	"tandem/fault"
	"tandem/human"
	"tandem/node"
	"tandem/payload"
	"tandem/workflow"
)

// A set of tools is what a model can be given: functions with a name and typed arguments. A node of such a kind that
// stands alone runs the one tool that its configurations or its input name. What a tool returns was made from data that
// nobody vouches for, and is bounded.

// toolFields are the configurations of every set. Approval is asked for what a model wants to do; a node that stands
// alone does what its author wrote.
type toolFields struct {
	AvailableTools []string        `json:"available_tools" doc:"The tools that are offered; without them all." zh:"提供哪些工具；省略时为全部。"`
	ToolPrefix     string          `json:"tool_prefix" doc:"What stands before the names of the tools." zh:"工具名称的前缀。"`
	Approval       string          `json:"approval" enum:"inherit|never|always" doc:"Whether a person is asked before a tool is used; inherit leaves it to the agent." zh:"使用工具前是否询问人员；inherit 由智能体决定。"`
	ToolName       string          `json:"tool_name" doc:"The tool that a node runs which stands alone." zh:"独立节点运行的工具。"`
	FunctionArgs   node.Object     `json:"function_args" doc:"The arguments of the tool, for a node that stands alone." zh:"独立节点调用工具的参数。"`
	Context        json.RawMessage `json:"context" doc:"Anything that comes back with the result." zh:"随结果一并返回的任意内容。"`
	CallID         string          `json:"call_id" doc:"A name of the call that comes back with the result." zh:"随结果一并返回的调用编号。"`
}

type toolInput struct {
	ToolName     string          `json:"tool_name,omitempty" doc:"The tool, if the configuration does not say." zh:"未配置时所用的工具。"`
	FunctionArgs json.RawMessage `json:"function_args,omitempty" doc:"Its arguments." zh:"工具的参数。"`
	Context      json.RawMessage `json:"context,omitempty" doc:"Whatever is to come back with the result." zh:"随结果返回的内容。"`
	CallID       string          `json:"call_id,omitempty" doc:"A name of the call, which comes back with the result." zh:"调用的编号，随结果返回。"`
}

// toolKeys are the output keys of sets of tools.
func toolKeys() []node.Key {
	return []node.Key{{
		Name: "result", Meaning: says("What the tool has returned, and whether it succeeded; its fields are outputs of the node as well.", "工具的返回值及是否成功；其字段也是节点的输出。"),
		Fields: append(node.ValuesOf[toolOutput](), meaning("*", "The fields of what the tool has returned.", "工具返回值的各字段。")),
	}}
}

type toolOutput struct {
	Result       json.RawMessage `json:"result" doc:"What the tool has returned." zh:"工具的返回值。"`
	Success      bool            `json:"success" doc:"Whether it did what it was asked." zh:"是否成功。"`
	ErrorMessage string          `json:"error_message" doc:"What went wrong, if anything did." zh:"出错时的说明。"`
	// ExecutionTime is in milliseconds.
	ExecutionTime int64 `json:"execution_time" doc:"How long the call took, in milliseconds." zh:"调用耗时（毫秒）。"`
	Cached        bool  `json:"cached" doc:"Whether the result of an earlier call was used." zh:"是否使用了先前调用的结果。"`
	// CallID and Context are those that the node was given, so that what follows knows which call it was.
	CallID  string          `json:"call_id,omitempty" doc:"The call_id of the input." zh:"输入的 call_id。"`
	Context json.RawMessage `json:"context,omitempty" doc:"The context of the input." zh:"输入的 context。"`
}

// of is the output with what the node was given to know the call by; what is configured wins.
func (o toolOutput) of(callID string, context json.RawMessage, in toolInput) toolOutput {
	if o.CallID = callID; callID == "" {
		o.CallID = in.CallID
	}
	if o.Context = context; isNull(context) {
		o.Context = in.Context
	}
	if isNull(o.Context) {
		o.Context = nil
	}
	return o
}

// modelAsksKey marks the calls of attached nodes that a model wants: whether a person is asked about them is for the turn to say.
type modelAsksKey struct{}

// askedAlone lets a node that stands alone ask before it runs its tool, if its approval says always.
func askedAlone(k node.Kind) node.Kind {
	run := k.Run
	k.Run = func(ctx context.Context, call *node.Call) (node.Outcome, error) {
		if !strings.EqualFold(gjson.GetBytes(call.Config, "approval").Str, approveAlways) || ctx.Value(modelAsksKey{}) != nil {
			return run(ctx, call)
		}
		if call.Wake != nil {
			if call.Wake.Outcome != engine.AskDone || !approves(call.Wake.Payload) {
				return nil, fault.Newf(fault.Forbidden, "a person has refused this call of a tool of node %q", call.NodeID)
			}
			return run(ctx, call)
		}
		request, err := toolQuestion(call)
		if err != nil {
			return nil, err
		}
		return node.Wait{Ask: &node.Question{Purpose: human.PurposeToolApproval, Request: request}}, nil
	}
	return k
}

// toolQuestion is what a person is shown of the call that a node wants to make.
func toolQuestion(call *node.Call) (json.RawMessage, error) {
	given := func(name string) gjson.Result {
		if v := gjson.GetBytes(call.Config, name); v.Exists() && v.Type != gjson.Null {
			return v
		}
		return gjson.GetBytes(call.Input, name)
	}
	name, args := given("tool_name").String(), json.RawMessage("{}")
	if name == "" {
		name = call.NodeName
	}
	if v := given("function_args"); v.IsObject() {
		args = json.RawMessage(v.Raw)
	}
	hash, err := argumentsHash(name, args)
	if err != nil {
		return nil, err
	}
	say := func(zh, en string) string { return wording(speaks(call, ""), zh, en) }
	return payload.Encode(map[string]any{
		"interaction_type": human.Approval, "title": fmt.Sprintf(say("是否允许调用 %s？", "May %s be called?"), name),
		"description": say("工作流要用下列参数调用这个工具。", "The workflow wants to call this tool with the arguments below."),
		"tool":        name, "node_id": call.NodeID, "arguments": args, "arguments_hash": hash, "options": []string{"approve", "reject"},
	})
}

// maxToolResult is how many bytes of JSON a tool may return.
const maxToolResult = 64 << 10

// tool is one function. What it is called, what a model reads about it and what it does to the world are known without a
// run.
type tool struct {
	name        string
	description string
	effect      workflow.Effect
	// parameters is the schema of its arguments.
	parameters func() json.RawMessage
	run        func(ctx context.Context, args json.RawMessage) (any, error)
}

// reads and repeats are the classes of tools that may be called again.
const (
	reads   = workflow.Idempotent
	repeats = workflow.Idempotent
)

// newTool makes a tool of a function with typed arguments, which have the tags of configurations.
func newTool[A any](name string, effect workflow.Effect, description string, run func(ctx context.Context, args A) (any, error)) tool {
	return tool{name, description, effect, node.ConfigurationSchema[A](), func(ctx context.Context, raw json.RawMessage) (any, error) {
		args, err := node.Configuration[A](raw)
		if err != nil {
			f := fault.From(err)
			wrong := fault.Newf(fault.ToolError, "the arguments of %q are wrong: %s", name, f.Message)
			if at, ok := f.Details["path"].(string); ok {
				wrong = wrong.With("path", "function_args"+strings.TrimPrefix(at, "configurations"))
			}
			return nil, wrong
		}
		return run(ctx, args)
	}}
}

// offered are the tools as an agent is offered them.
func offered(cfg toolFields, tools []tool) []node.Tool {
	var list []node.Tool
	for _, t := range tools {
		if len(cfg.AvailableTools) > 0 && !slices.Contains(cfg.AvailableTools, t.name) {
			continue
		}
		list = append(list, node.Tool{
			Name: cfg.ToolPrefix + t.name, Description: t.description, Parameters: t.parameters(), Effect: t.effect, Approval: cfg.Approval,
		})
	}
	return list
}

// runTool runs the tool that a node names.
func runTool(ctx context.Context, call *node.Call, cfg toolFields, in toolInput, tools []tool) (toolOutput, error) {
	name, args := cfg.ToolName, json.RawMessage(cfg.FunctionArgs)
	if name == "" {
		name = in.ToolName
	}
	if isNull(args) {
		args = in.FunctionArgs
	}
	var names []string
	for _, t := range tools {
		if len(cfg.AvailableTools) == 0 || slices.Contains(cfg.AvailableTools, t.name) {
			names = append(names, t.name)
		}
	}
	if name == "" {
		return toolOutput{}, node.Missing([]string{"tool_name"}, `no tool is named; set "tool_name" to one of %s`, strings.Join(names, ", ")).With("path", "tool_name")
	}
	plain := strings.TrimPrefix(name, cfg.ToolPrefix)
	if !slices.Contains(names, plain) {
		hint := ""
		if near := fault.Nearest(plain, names); near != "" {
			hint = "; did you mean \"" + near + "\"?"
		}
		return toolOutput{}, fault.Newf(fault.ToolError, "there is no tool %q here; there are %s%s", name, strings.Join(names, ", "), hint).With("path", "tool_name")
	}
	if !isNull(args) && !isObject(args) {
		return toolOutput{}, fault.New(fault.ToolError, `"function_args" must be an object`).With("path", "function_args")
	}
	t := tools[slices.IndexFunc(tools, func(t tool) bool { return t.name == plain })]
	if isNull(args) {
		args = json.RawMessage("{}")
	}
	if call.Detail != nil {
		call.Detail(map[string]any{"tool_name": t.name, "tool_parameters": args})
	}
	begun := time.Now()
	value, err := t.run(ctx, args)
	if err != nil {
		return toolOutput{}, err
	}
	result, err := payload.Encode(value)
	if err != nil {
		return toolOutput{}, fault.New(fault.OutputInvalid, "the tool made a result that JSON cannot hold").WithCause(err)
	}
	if len(result) > maxToolResult {
		return toolOutput{}, fault.Newf(fault.TooLarge, "the result of %q has more than %d bytes; ask for less", name, maxToolResult).With("limit", maxToolResult)
	}
	return toolOutput{Result: result, Success: true, ExecutionTime: time.Since(begun).Milliseconds()}.of(cfg.CallID, cfg.Context, in), nil
}

// fitJSON is the beginning of a text that takes at most room bytes as JSON, and whether something is missing.
func fitJSON(text string, room int) (string, bool) {
	used := 0
	for i, r := range text {
		switch {
		case r == '"' || r == '\\' || r == '\n' || r == '\r' || r == '\t':
			used += 2
		case r < 0x20 || r == 0x7f || r == '\u2028' || r == '\u2029' || r == utf8.RuneError:
			used += 6
		default:
			used += utf8.RuneLen(r)
		}
		if used > room {
			return text[:i], true
		}
	}
	return text, false
}

// planToolSet checks the names of tools that are made available. All tools of a fixed set may be repeated; one that is known only at run time may not.
func planToolSet(p *node.Planning, tools []tool) {
	var all []string
	for _, t := range tools {
		all = append(all, t.name)
	}
	if available, known := p.Listed("available_tools"); known && slices.ContainsFunc(available, func(name string) bool { return !slices.Contains(all, name) }) {
		p.Effect = workflow.Once
	}
	for i, item := range p.Items("available_tools") {
		if item.Type == gjson.String && !node.Dynamic(item) && !slices.Contains(all, item.Str) {
			p.Invalid(fmt.Sprintf("%s[%d]", p.At("available_tools"), i), "is not a tool of %s; it has %s%s", p.Kind(), strings.Join(all, ", "), p.Suggest(item.Str, all))
		}
	}
}
