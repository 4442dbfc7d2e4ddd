package builtin

import (
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
	return node.Define(
		info("TOOL.CODE_TOOL", "Code tool", "代码工具", "Lets a model run code where it can do no harm.", "让模型在沙箱中运行代码。"),
		func(ctx context.Context, call *node.Call, cfg codeToolConfig, in toolInput) (toolOutput, error) {
			limits := codeConfig{Language: cfg.Language, Entry: "main", TimeLimitMS: cfg.TimeLimitMS, MemoryMB: cfg.MemoryMB}
			run := newTool(cfg.ToolName, func(ctx context.Context, args codeArgs) (any, error) {
				limits.Code = args.Code
				return runFunction(ctx, call, limits, args.Input)
			})
			if cfg.Code != "" {
				limits.Code = cfg.Code
				run = tool{cfg.ToolName, func(ctx context.Context, args json.RawMessage) (any, error) {
					if err := fitsParameters(cfg.Parameters, args); err != nil {
						return nil, err
					}
					return runFunction(ctx, call, limits, args)
				}}
			}
			fields := toolFields{AvailableTools: cfg.AvailableTools, ToolPrefix: cfg.ToolPrefix, FunctionArgs: cfg.FunctionArgs}
			if in.ToolName == "" {
				fields.ToolName = cfg.ToolName // there is no other
			}
			return runTool(ctx, fields, in, []tool{run})
		})
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
	if isNull(args) {
		args = json.RawMessage("{}")
	}
	if problems := check.Problems("", decode(args)); len(problems) > 0 {
		return fault.Newf(fault.ToolError, "the arguments do not fit the parameters: %s", problems[0]).With("path", "function_args")
	}
	return nil
}
