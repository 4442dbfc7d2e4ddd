package builtin

import (
	"context"
	"encoding/json"
	"time"

	"tandem/node"
)

type codeConfig struct {
	Code        string `json:"code" required:"true"`
	Language    string `json:"language" enum:"python|javascript"`
	Entry       string `json:"entry"`
	TimeLimitMS int64  `json:"time_limit_ms" range:"10..120000"`
	MemoryMB    int64  `json:"memory_mb" range:"16..1024"`
}

func (c *codeConfig) Defaults() {
	c.Language, c.Entry, c.TimeLimitMS, c.MemoryMB = "python", "main", 10_000, 128
}

type codeOutput struct {
	Result json.RawMessage `json:"result"`
	Stdout string          `json:"stdout"`
	Stderr string          `json:"stderr"`
	// DurationMS is the time the code took.
	DurationMS int64 `json:"duration_ms"`
}

// runCode runs a function in the sandbox. The whole input is its argument.
func runCode() node.Kind {
	return node.Define(
		info("ACTION.RUN_CODE", "Run code", "运行代码", "Runs a Python or JavaScript function where it can do no harm.", "在沙箱中运行 Python 或 JavaScript 函数。"),
		func(ctx context.Context, call *node.Call, cfg codeConfig, in json.RawMessage) (codeOutput, error) {
			return runFunction(ctx, call, cfg, in)
		})
}

func runFunction(ctx context.Context, call *node.Call, cfg codeConfig, in json.RawMessage) (codeOutput, error) {
	result, err := call.Code(ctx, node.Code{
		Language: cfg.Language, Source: cfg.Code, Entry: cfg.Entry, Input: in,
		TimeLimit: time.Duration(cfg.TimeLimitMS) * time.Millisecond, MemoryMB: int(cfg.MemoryMB),
	})
	if err != nil {
		return codeOutput{}, err
	}
	return codeOutput{Result: result.Value, Stdout: result.Stdout, Stderr: result.Stderr, DurationMS: result.Duration.Milliseconds()}, nil
}
