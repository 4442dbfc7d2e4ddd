// Package toolset is what a model can be given: sets of tools with typed arguments, the tools of MCP servers as the user has accepted them
// (TOOL.MCP_TOOL), and when a person is asked before one is called.
//
// The families of kinds import it, and the package that puts a program together.
package toolset

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"tandem/builtin/values"
	"tandem/engine"
	"tandem/fault"
	"tandem/human/form"
	"tandem/node"
	"tandem/node/slot"
	"tandem/payload"
	"tandem/text"
	"tandem/workflow"
)

// A set of tools is what a model can be given: functions with a name and typed arguments. A node of such a kind that
// stands alone runs the one tool that its configurations or its input name. What a tool returns was made from data that
// nobody vouches for, and is bounded.

// Fields are the configurations of every set. Approval is asked for what a model wants to do; a node that stands
// alone does what its author wrote.
type Fields struct {
	AvailableTools []string        `json:"available_tools" doc:"The tools that are offered; without them all." zh:"提供哪些工具；省略时为全部。"`
	ToolPrefix     string          `json:"tool_prefix" doc:"What stands before the names of the tools." zh:"工具名称的前缀。"`
	Approval       string          `json:"approval" enum:"inherit|never|always" doc:"Whether a person is asked before a tool is used; inherit leaves it to the agent." zh:"使用工具前是否询问人员；inherit 由智能体决定。"`
	ToolName       string          `json:"tool_name" doc:"The tool that a node runs which stands alone." zh:"独立节点运行的工具。"`
	FunctionArgs   node.Object     `json:"function_args" doc:"The arguments of the tool, for a node that stands alone." zh:"独立节点调用工具的参数。"`
	Context        json.RawMessage `json:"context" doc:"Anything that comes back with the result." zh:"随结果一并返回的任意内容。"`
	CallID         string          `json:"call_id" doc:"A name of the call that comes back with the result." zh:"随结果一并返回的调用编号。"`
}

// Input is what a node of a set of tools reads when it stands alone and runs one tool.
type Input struct {
	ToolName     string          `json:"tool_name,omitempty" doc:"The tool, if the configuration does not say." zh:"未配置时所用的工具。"`
	FunctionArgs json.RawMessage `json:"function_args,omitempty" doc:"Its arguments." zh:"工具的参数。"`
	Context      json.RawMessage `json:"context,omitempty" doc:"Whatever is to come back with the result." zh:"随结果返回的内容。"`
	CallID       string          `json:"call_id,omitempty" doc:"A name of the call, which comes back with the result." zh:"调用的编号，随结果返回。"`
}

// Kind makes a kind of a set of tools: a node of it that stands alone may have to ask before it calls one, and has the fields of what the
// tool returned as its own.
func Kind(k node.Kind) node.Kind { return published(askedAlone(k)) }

// published gives a node that stands alone the fields of what its tool returned as its own.
func published(k node.Kind) node.Kind {
	k.Publishes = "result"
	return k
}

// Keys are the output keys of sets of tools.
func Keys() []node.Key {
	return []node.Key{{
		Name: "result", Meaning: node.Says("What the tool has returned, and whether it succeeded; its fields are outputs of the node as well.", "工具的返回值及是否成功；其字段也是节点的输出。"),
		Fields: append(node.ValuesOf[Output](), node.Meaning("*", "The fields of what the tool has returned.", "工具返回值的各字段。")),
	}}
}

// Output is what such a node leaves.
type Output struct {
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
func (o Output) of(callID string, context json.RawMessage, in Input) Output {
	if o.CallID = callID; callID == "" {
		o.CallID = in.CallID
	}
	if o.Context = context; values.IsNull(context) {
		o.Context = in.Context
	}
	if values.IsNull(o.Context) {
		o.Context = nil
	}
	return o
}

type wantedKey struct{}

// WantedByModel marks the call of an attached node that a model wants: whether a person is asked about it is for the turn to say.
func WantedByModel(ctx context.Context) context.Context {
	return context.WithValue(ctx, wantedKey{}, true)
}

func isWantedByModel(ctx context.Context) bool { return ctx.Value(wantedKey{}) != nil }

// askedAlone lets a node that stands alone ask before it runs its tool, if its approval says always.
func askedAlone(k node.Kind) node.Kind {
	run := k.Run
	k.Run = func(ctx context.Context, call *node.Call) (node.Outcome, error) {
		if !strings.EqualFold(gjson.GetBytes(call.Config, "approval").Str, ApproveAlways) || isWantedByModel(ctx) {
			return run(ctx, call)
		}
		if call.Wake != nil && call.Wake.By == engine.WakeChild {
			return run(ctx, call) // what was approved has ended
		}
		if call.Wake != nil {
			if call.Wake.Outcome != engine.AskDone || !Approves(call.Wake.Payload) {
				return nil, fault.Say(fault.Forbidden, text.Of("a person has refused this call of a tool of node %q", call.NodeID))
			}
			return run(ctx, call)
		}
		request, err := toolQuestion(call)
		if err != nil {
			return nil, err
		}
		return node.Wait{Ask: &node.Question{Purpose: form.PurposeToolApproval, Request: request}}, nil
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
	hash, err := ArgumentsHash(name, args)
	if err != nil {
		return nil, err
	}
	asked := map[string]any{
		"interaction_type": form.Approval, "tool": name, "node_id": call.NodeID, "arguments": args, "arguments_hash": hash,
		"options": []string{"approve", "reject"},
	}
	form.Say(asked, call.Speaks(""), form.TitleText, text.Of("May %s be called?", name))
	form.Say(asked, call.Speaks(""), form.DescriptionText, text.Of("The workflow wants to call this tool with the arguments below."))
	return payload.Encode(asked)
}

// MaxResult is how many bytes of JSON a tool may return.
const MaxResult = 64 << 10

// Tool is one function. What it is called, what a model reads about it and what it does to the world are known without a
// run.
type Tool struct {
	Name        string
	Description string
	Effect      workflow.Effect
	// Parameters is the schema of its arguments.
	Parameters func() json.RawMessage
	Run        func(ctx context.Context, args json.RawMessage) (any, error)
	// Find, when it is set, asks the service whether a call whose answer was lost has arrived, see [node.Kind].
	Find func(ctx context.Context, args json.RawMessage) (out any, found bool, err error)
}

// Reads and repeats are the classes of tools that may be called again.
const (
	Reads   = workflow.Idempotent
	Repeats = workflow.Idempotent
)

// New makes a tool of a function with typed arguments, which have the tags of configurations.
func New[A any](name string, effect workflow.Effect, description string, run func(ctx context.Context, args A) (any, error)) Tool {
	return Tool{Name: name, Description: description, Effect: effect, Parameters: node.ConfigurationSchema[A](),
		Run: func(ctx context.Context, raw json.RawMessage) (any, error) {
			args, err := argumentsOf[A](name, raw)
			if err != nil {
				return nil, err
			}
			return run(ctx, args)
		}}
}

// Acting makes a tool that acts in a service. What the service refuses is told to the model; failed says what any other failure means for a
// tool of the class.
func Acting[A any](name string, effect workflow.Effect, description string, failed func(err error, once bool) error,
	run func(ctx context.Context, args A) (any, error)) Tool {
	return New(name, effect, description, func(ctx context.Context, args A) (any, error) {
		out, err := run(ctx, args)
		if err != nil {
			return nil, ForModel(failed(err, effect == workflow.Once))
		}
		return out, nil
	})
}

// WithFind adds to a tool how the service is asked what became of a call of it.
func WithFind[A any](t Tool, find func(ctx context.Context, args A) (out any, found bool, err error)) Tool {
	t.Find = func(ctx context.Context, raw json.RawMessage) (any, bool, error) {
		args, err := argumentsOf[A](t.Name, raw)
		if err != nil {
			return nil, false, err
		}
		return find(ctx, args)
	}
	return t
}

// argumentsOf reads the arguments of a tool.
func argumentsOf[A any](tool string, raw json.RawMessage) (A, error) {
	args, err := node.Configuration[A](raw)
	if err == nil {
		return args, nil
	}
	f := fault.From(err)
	wrong := fault.Newf(fault.ToolError, "the arguments of %q are wrong: %s", tool, f.Message)
	if at, ok := f.Details["path"].(string); ok {
		wrong = wrong.With("path", "function_args"+strings.TrimPrefix(at, "configurations"))
	}
	return args, wrong
}

// Offered are the tools as an agent is offered them.
func Offered(cfg Fields, tools []Tool) []node.Tool {
	var list []node.Tool
	for _, t := range tools {
		if len(cfg.AvailableTools) > 0 && !slices.Contains(cfg.AvailableTools, t.Name) {
			continue
		}
		list = append(list, node.Tool{
			Name: cfg.ToolPrefix + t.Name, Description: t.Description, Parameters: t.Parameters(), Effect: t.Effect, Approval: cfg.Approval,
		})
	}
	return list
}

// Run runs the tool that a node names.
func Run(ctx context.Context, call *node.Call, cfg Fields, in Input, tools []Tool) (Output, error) {
	t, args, err := Choose(ctx, call, cfg, in, tools)
	if err != nil {
		return Output{}, err
	}
	begun := time.Now()
	value, err := t.Run(ctx, args)
	if err != nil {
		return Output{}, err
	}
	out, err := Answer(t.Name, value, cfg, in)
	out.ExecutionTime = time.Since(begun).Milliseconds()
	return out, err
}

// Choose finds the tool that a node runs, and its arguments, and notes both.
func Choose(ctx context.Context, call *node.Call, cfg Fields, in Input, tools []Tool) (Tool, json.RawMessage, error) {
	t, args, err := chosen(cfg, in, tools)
	if err != nil {
		return Tool{}, nil, err
	}
	if call.Detail != nil {
		call.Detail(map[string]any{"tool_name": t.Name, "tool_parameters": args})
	}
	if missing := MissingArguments(t.Parameters(), args); len(missing) > 0 && !isWantedByModel(ctx) {
		return Tool{}, nil, lacks(t.Name, "function_args", missing, t.Parameters(), args)
	}
	return t, args, nil
}

// chosen is the tool that a node names, with its arguments.
func chosen(cfg Fields, in Input, tools []Tool) (Tool, json.RawMessage, error) {
	name, args := cfg.ToolName, json.RawMessage(cfg.FunctionArgs)
	if name == "" {
		name = in.ToolName
	}
	if values.IsNull(args) {
		args = in.FunctionArgs
	}
	var names []string
	for _, t := range tools {
		if len(cfg.AvailableTools) == 0 || slices.Contains(cfg.AvailableTools, t.Name) {
			names = append(names, t.Name)
		}
	}
	if name == "" {
		return Tool{}, nil, slot.Missing([]string{"tool_name"}, `no tool is named; set "tool_name" to one of %s`, strings.Join(names, ", ")).With("path", "tool_name")
	}
	plain := strings.TrimPrefix(name, cfg.ToolPrefix)
	if !slices.Contains(names, plain) {
		hint := ""
		if near := fault.Nearest(plain, names); near != "" {
			hint = "; did you mean \"" + near + "\"?"
		}
		return Tool{}, nil, fault.Newf(fault.ToolError, "there is no tool %q here; there are %s%s", name, strings.Join(names, ", "),
			hint).With("path", "tool_name")
	}
	if !values.IsNull(args) && !values.IsObject(args) {
		return Tool{}, nil, fault.New(fault.ToolError, `"function_args" must be an object`).With("path", "function_args")
	}
	if values.IsNull(args) {
		args = json.RawMessage("{}")
	}
	return tools[slices.IndexFunc(tools, func(t Tool) bool { return t.Name == plain })], args, nil
}

// Answer is what a node leaves whose tool has returned a value.
func Answer(name string, value any, cfg Fields, in Input) (Output, error) {
	result, err := payload.Encode(value)
	if err != nil {
		return Output{}, fault.New(fault.OutputInvalid, "the tool made a result that JSON cannot hold").WithCause(err)
	}
	if len(result) > MaxResult {
		return Output{}, fault.Newf(fault.TooLarge, "the result of %q has more than %d bytes; ask for less", name, MaxResult).With("limit", MaxResult)
	}
	return Output{Result: result, Success: true}.of(cfg.CallID, cfg.Context, in), nil
}

// FitJSON is the beginning of a text that takes at most room bytes as JSON, and whether something is missing.
func FitJSON(text string, room int) (string, bool) {
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

// Plan checks the names of tools that are made available. All tools of a fixed set may be repeated; one that is known only at run time may
// not.
func Plan(p *node.Planning, tools []Tool) {
	var all []string
	for _, t := range tools {
		all = append(all, t.Name)
	}
	if available, known := p.Listed("available_tools"); known &&
		slices.ContainsFunc(available, func(name string) bool { return !slices.Contains(all, name) }) {
		p.Effect = workflow.Once
	}
	for i, item := range p.Items("available_tools") {
		if item.Type == gjson.String && !node.Dynamic(item) && !slices.Contains(all, item.Str) {
			p.Invalid(fmt.Sprintf("%s[%d]", p.At("available_tools"), i), "is not a tool of %s; it has %s%s", p.Kind(),
				strings.Join(all, ", "), p.Suggest(item.Str, all))
		}
	}
}
