package builtin

import (
	"cmp"
	"context"
	"encoding/json"

	"tandem/fault"
	"tandem/node"
)

type codeToolConfig struct {
	AvailableTools []string        `json:"available_tools"`
	ToolPrefix     string          `json:"tool_prefix"`
	Approval       string          `json:"approval" enum:"inherit|never|always"`
	FunctionArgs   node.Object     `json:"function_args"`
	Context        json.RawMessage `json:"context"`
	CallID         string          `json:"call_id"`
	Language       string          `json:"language" enum:"python|javascript"`
	ToolName       string          `json:"tool_name"`
	Description    string          `json:"description"`
	Code           string          `json:"code"`
	Parameters     node.Object     `json:"parameters"`
	TimeLimitMS    int64           `json:"time_limit_ms" range:"10..120000"`
	MemoryMB       int64           `json:"memory_mb" range:"16..1024"`
}

func (c *codeToolConfig) Defaults() {
	c.Approval, c.Language, c.ToolName, c.TimeLimitMS, c.MemoryMB = "inherit", "python", "code_run", 10_000, 128
}

// codeArgs are what a model says when it writes the code itself.
type codeArgs struct {
	Code  string          `json:"code" required:"true"`
	Input json.RawMessage `json:"input"`
}

// codeTool gives a model code: a function that the author has fixed, or one that the model writes.
func codeTool() node.Kind {
	k := node.Define(
		info("TOOL.CODE_TOOL", "Code tool", "代码工具", "Lets a model run code where it can do no harm.", "让模型在沙箱中运行代码。"),
		func(ctx context.Context, call *node.Call, cfg codeToolConfig, in toolInput) (toolOutput, error) {
			fields := cfg.fields()
			if in.ToolName == "" {
				fields.ToolName = cfg.ToolName // there is no other
			}
			return runTool(ctx, call, fields, in, []tool{cfg.tool(call)})
		})
	k.Tools = func(_ context.Context, call *node.Call) ([]node.Tool, error) {
		cfg, err := node.Configuration[codeToolConfig](call.Config)
		if err != nil {
			return nil, err
		}
		return offered(cfg.fields(), []tool{cfg.tool(call)}), nil
	}
	return k
}

// runForModel is runFunction with as much of what was printed as a tool may return beside the result.
func runForModel(ctx context.Context, call *node.Call, cfg codeConfig, in json.RawMessage) (codeOutput, error) {
	out, err := runFunction(ctx, call, cfg, in)
	if err != nil {
		return codeOutput{}, err
	}
	const frame = 256 // the names of the fields and what else is around the three texts
	room := max(0, maxToolResult-frame-len(out.Result))
	var cut, cutToo bool
	out.Stderr, cut = fitJSON(out.Stderr, room/2)
	out.Stdout, cutToo = fitJSON(out.Stdout, room-room/2)
	if (cut || cutToo) && call.Log != nil {
		call.Log(node.Warn, "what the code printed was cut", map[string]any{"limit": maxToolResult})
	}
	return out, nil
}

func (c *codeToolConfig) fields() toolFields {
	return toolFields{AvailableTools: c.AvailableTools, ToolPrefix: c.ToolPrefix, Approval: c.Approval, FunctionArgs: c.FunctionArgs, Context: c.Context, CallID: c.CallID}
}

// tool is the one tool: the function that is fixed, or whatever the model writes.
func (c *codeToolConfig) tool(call *node.Call) tool {
	limits := codeConfig{Language: c.Language, Entry: "main", TimeLimitMS: c.TimeLimitMS, MemoryMB: c.MemoryMB}
	if c.Code == "" {
		text := "Runs " + c.Language + " code without network or files. Define a function main(input) that returns the result; input is what is given as input."
		return newTool(c.ToolName, reads, cmp.Or(c.Description, text), func(ctx context.Context, args codeArgs) (any, error) {
			limits.Code = node.Source(args.Code)
			return runForModel(ctx, call, limits, args.Input)
		})
	}
	limits.Code = node.Source(c.Code)
	parameters := func() json.RawMessage {
		if isNull(json.RawMessage(c.Parameters)) {
			return json.RawMessage(`{"type":"object"}`)
		}
		return json.RawMessage(c.Parameters)
	}
	return tool{c.ToolName, c.Description, reads, parameters, func(ctx context.Context, args json.RawMessage) (any, error) {
		if isNull(args) {
			args = json.RawMessage("{}") // a call without arguments
		}
		if err := fitsParameters(c.Parameters, args); err != nil {
			return nil, err
		}
		return runForModel(ctx, call, limits, args)
	}}
}

// fitsParameters checks arguments against the schema of a fixed function.
func fitsParameters(schema node.Object, args json.RawMessage) error {
	if isNull(json.RawMessage(schema)) {
		return nil
	}
	check, err := node.CompileSchema(json.RawMessage(schema))
	if err != nil {
		return fault.Newf(fault.InvalidConfig, `"parameters" is no usable JSON Schema: %w`, err).With("path", "configurations.parameters")
	}
	if problems := check.Problems("", decode(args)); len(problems) > 0 {
		return fault.Newf(fault.ToolError, "the arguments do not fit the parameters: %s", problems[0]).With("path", "function_args")
	}
	return nil
}
