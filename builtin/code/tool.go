package code

import (
	"cmp"
	"context"
	"encoding/json"

	"tandem/builtin/toolset"
	"tandem/builtin/values"
	"tandem/node"
	"tandem/workflow"
)

type codeToolConfig struct {
	AvailableTools []string `json:"available_tools" doc:"The tools that are offered; without them all." zh:"提供哪些工具；省略时为全部。"`
	toolset.Single
	Language    string      `json:"language" enum:"python|javascript" doc:"The language of the code." zh:"代码语言。"`
	Code        node.Source `json:"code" doc:"The function that the tool runs; without it the model writes the code." zh:"工具运行的函数；省略时由模型编写代码。"`
	Parameters  node.Object `json:"parameters" doc:"The JSON Schema of the arguments of a fixed function." zh:"参数的模式：固定函数参数的 JSON Schema。"`
	TimeLimitMS int64       `json:"time_limit_ms" range:"10..120000" doc:"How long it may run, in milliseconds." zh:"运行时间上限（毫秒）。"`
	MemoryMB    int64       `json:"memory_mb" range:"16..1024" doc:"How much memory it may use, in megabytes." zh:"内存上限（MB）。"`
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
		node.About{
			Name: "TOOL.CODE_TOOL", Title: node.Says("Code tool", "代码工具"),
			Traits:      workflow.Traits{Code: workflow.CodeNamed},
			Description: node.Says("Lets a model run code where it can do no harm.", "让模型在沙箱中运行代码。"),
			Effect:      workflow.Idempotent,
			Keys:        toolset.Keys(),
			Examples: []node.Example{
				{
					Shows:  node.Says("Offers a function of your own.", "提供自定义的函数。"),
					Config: `{"language": "javascript", "tool_name": "add_tax", "description": "Adds tax to a price.", "code": "function main(args) { return {gross: args.net * 1.2} }", "parameters": {"type": "object", "properties": {"net": {"type": "number"}}}}`,
					Input:  `{"function_args": {"net": 100}}`,
					Output: `{"result": {"result": {"result": {"gross": 120}, "stdout": "", "stderr": "", "duration_ms": "…"}, "success": true, "error_message": "", "execution_time": "…", "cached": false, "stdout": "", "stderr": "", "duration_ms": "…"}}`,
				},
			},
		},
		func(ctx context.Context, call *node.Call, cfg codeToolConfig, in toolset.Input) (toolset.Output, error) {
			return toolset.Run(ctx, call, cfg.fields(in), in, []toolset.Tool{cfg.tool(call)})
		}, planCodeTool)
	k.Tools = func(_ context.Context, call *node.Call) ([]node.Tool, error) {
		cfg, err := node.Configuration[codeToolConfig](call.Config)
		if err != nil {
			return nil, err
		}
		return toolset.Offered(cfg.fields(toolset.Input{}), []toolset.Tool{cfg.tool(call)}), nil
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
	room := max(0, toolset.MaxResult-frame-len(out.Result))
	var cut, cutToo bool
	out.Stderr, cut = toolset.FitJSON(out.Stderr, room/2)
	out.Stdout, cutToo = toolset.FitJSON(out.Stdout, room-room/2)
	if (cut || cutToo) && call.Log != nil {
		call.Log(node.Warn, "what the code printed was cut", map[string]any{"limit": toolset.MaxResult})
	}
	return out, nil
}

func (c *codeToolConfig) fields(in toolset.Input) toolset.Fields {
	f := c.Single.Fields(in)
	f.AvailableTools = c.AvailableTools
	return f
}

// tool is the one tool: the function that is fixed, or whatever the model writes.
func (c *codeToolConfig) tool(call *node.Call) toolset.Tool {
	limits := codeConfig{Language: c.Language, Entry: "main", TimeLimitMS: c.TimeLimitMS, MemoryMB: c.MemoryMB}
	if c.Code == "" {
		text := "Runs " + c.Language + " code without network or files. Define a function main(input) that returns the result; input is what is given as input."
		return toolset.New(c.ToolName, toolset.Reads, cmp.Or(c.Description, text), func(ctx context.Context, args codeArgs) (any, error) {
			limits.Code = node.Source(args.Code)
			return runForModel(ctx, call, limits, args.Input)
		})
	}
	limits.Code = node.Source(c.Code)
	parameters := func() json.RawMessage {
		if values.IsNull(json.RawMessage(c.Parameters)) {
			return toolset.OpenParameters()
		}
		return json.RawMessage(c.Parameters)
	}
	return toolset.Tool{Name: c.ToolName, Description: c.Description, Effect: toolset.Reads, Parameters: parameters,
		Run: func(ctx context.Context, args json.RawMessage) (any, error) {
			if values.IsNull(args) {
				args = json.RawMessage("{}") // a call without arguments
			}
			if err := toolset.Fits(json.RawMessage(c.Parameters), args); err != nil {
				return nil, err
			}
			return runForModel(ctx, call, limits, args)
		}}
}

// planCodeTool: parameters are those of a fixed function.
func planCodeTool(p *node.Planning, _ *codeToolConfig) {
	if p.Has("parameters") && !p.Has("code") && !p.Templated() {
		p.Warn(workflow.ProblemConfig, p.At("parameters"), "parameters does nothing without code: a model that writes the code gives it an input of its own; set code, or remove parameters")
	}
}
