package code

import (
	"context"
	"encoding/json"
	"time"

	"tandem/builtin/values"
	"tandem/fault"
	"tandem/node"
	"tandem/node/handed"
	"tandem/payload"
	"tandem/workflow"
)

type codeConfig struct {
	Code        node.Source `json:"code" required:"true" doc:"The program: a function that is given the input and returns the result." zh:"程序：以输入为参数并返回结果的函数。"`
	Language    string      `json:"language" enum:"python|javascript" doc:"The language of the program." zh:"程序语言。"`
	Entry       string      `json:"entry" blank:"true" doc:"The name of the function that is called." zh:"被调用的函数名。"`
	TimeLimitMS int64       `json:"time_limit_ms" range:"10..120000" doc:"How long it may run, in milliseconds." zh:"运行时间上限（毫秒）。"`
	MemoryMB    int64       `json:"memory_mb" range:"16..1024" doc:"How much memory it may use, in megabytes." zh:"内存上限（MB）。"`
}

func (c *codeConfig) Defaults() {
	c.Language, c.Entry, c.TimeLimitMS, c.MemoryMB = "python", "main", 10_000, 128
}

type codeOutput struct {
	Result json.RawMessage `json:"result" doc:"What the function has returned." zh:"函数的返回值。"`
	Stdout string          `json:"stdout" doc:"What it has printed." zh:"标准输出。"`
	Stderr string          `json:"stderr" doc:"What it has printed as errors." zh:"标准错误输出。"`
	// DurationMS is the time the code took.
	DurationMS int64 `json:"duration_ms" doc:"How long it ran, in milliseconds." zh:"运行时间（毫秒）。"`
}

// runCode runs a function in the sandbox. The whole input is its argument.
func runCode() node.Kind {
	k := node.Define(
		node.About{
			Name: "ACTION.RUN_CODE", Title: node.Says("Run code", "运行代码"),
			Traits:      workflow.Traits{Code: workflow.CodeNamed},
			Description: node.Says("Runs a Python or JavaScript function where it can do no harm.", "在沙箱中运行 Python 或 JavaScript 函数。"),
			Effect:      workflow.Pure,
			Keys:        []node.Key{{Name: "result", Meaning: node.Says("What the function has returned as result, and what it has printed.", "函数返回值 result 及其打印内容。")}},
			Inputs:      []node.Value{node.Meaning("*", "The argument of the function.", "函数的参数。")},
			Examples: []node.Example{
				{
					Shows:  node.Says("Adds value added tax.", "计算含税金额。"),
					Config: `{"language": "javascript", "code": "function main(input) { return {gross: input.net * 1.2} }"}`,
					Input:  `{"net": 100}`,
					Output: `{"result": {"result": {"gross": 120}, "stdout": "", "stderr": "", "duration_ms": "…"}}`,
				},
			},
		},
		func(ctx context.Context, call *node.Call, cfg codeConfig, in json.RawMessage) (codeOutput, error) {
			return runFunction(ctx, call, cfg, in)
		})
	k.Needs = func(config json.RawMessage) *payload.Reads {
		cfg, err := node.Configuration[codeConfig](config)
		if err != nil {
			return nil
		}
		return handed.CodeReads(cfg.Language, string(cfg.Code))
	}
	return k
}

func runFunction(ctx context.Context, call *node.Call, cfg codeConfig, in json.RawMessage) (codeOutput, error) {
	result, err := call.Code(ctx, node.Code{
		Language: cfg.Language, Source: string(cfg.Code), Entry: cfg.Entry, Input: in,
		TimeLimit: time.Duration(cfg.TimeLimitMS) * time.Millisecond, MemoryMB: int(cfg.MemoryMB),
	})
	if err != nil {
		return codeOutput{}, withPrinted(err, result.Stdout, result.Stderr)
	}
	return codeOutput{Result: result.Value, Stdout: result.Stdout, Stderr: result.Stderr, DurationMS: result.Duration.Milliseconds()}, nil
}

// maxPrintedTail is how much of what was printed an error has; all of it is in the log of the node.
const maxPrintedTail = 4 << 10

// withPrinted adds the end of what code or a process had printed to the error that it ended with.
func withPrinted(err error, stdout, stderr string) error {
	f := fault.From(err)
	if f.Code != fault.CodeError && f.Code != fault.CodeLimit && f.Code != fault.OutputInvalid {
		return err
	}
	for stream, text := range map[string]string{node.Stdout: stdout, node.Stderr: stderr} { // order does not matter: a field each
		if text != "" {
			f = f.With(stream, values.Readable([]byte(text[max(0, len(text)-maxPrintedTail):]), maxPrintedTail))
		}
	}
	return f
}
