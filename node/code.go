package node

import (
	"context"
	"encoding/json"
	"time"

	"tandem/fault"
)

// Code is a call of a function in code that nobody vouches for.
type Code struct {
	// Language is "python" or "javascript".
	Language string
	Source   string
	// Entry is the function to call; where there is none of that name, it is the last one defined.
	Entry string
	// Input is its argument.
	Input json.RawMessage
	// TimeLimit and MemoryMB are what the interpreter thinks right when they are zero.
	TimeLimit time.Duration
	MemoryMB  int
}

// CodeResult is what came of it.
type CodeResult struct {
	Value          json.RawMessage
	Stdout, Stderr string
	Duration       time.Duration
}

// Interpreter runs code where it can do no harm.
type Interpreter interface {
	// Run calls a function for a workspace. The clock of the code shows now, and its randomness follows from seed. Errors are
	// *fault.Error: code_error with the line, code_limit, output_invalid.
	Run(ctx context.Context, workspace string, now time.Time, seed string, c Code) (CodeResult, error)
}

// code runs code for the node.
func (x *run) code(ctx context.Context, c Code) (CodeResult, error) {
	if x.job.Code == nil {
		return CodeResult{}, fault.Newf(fault.Unsupported, "code in %s cannot be run by this installation", c.Language)
	}
	return x.job.Code.Run(ctx, x.job.Execution.Workspace, x.job.Now, x.job.Execution.ID+"/"+string(x.job.Run.Activation), c)
}

// converted runs a conversion function that is code. It is given the payload, and under value, data and output the whole
// payload once more wherever the payload itself has no such field.
func (x *run) converted(c *conversion, payload json.RawMessage) (json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(payload, &fields); err != nil {
		fields = map[string]json.RawMessage{} // it is no object
	}
	for _, alias := range []string{"value", "data", "output"} {
		if _, taken := fields[alias]; !taken {
			fields[alias] = payload
		}
	}
	input, err := Marshal(fields)
	if err != nil {
		return nil, err
	}
	result, err := x.code(x.ctx, Code{Language: string(c.language), Source: c.source, Input: input})
	return result.Value, err
}
