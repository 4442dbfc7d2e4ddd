package node

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/tidwall/gjson"

	"tandem/dataflow"
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
	// Begun is called when the code begins to run: it may have waited for an interpreter. May be nil.
	Begun func()
}

// ConversionEntry is the function of a conversion that has several, whatever their order.
const ConversionEntry = "convert"

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

// converted runs a conversion function that is code. What it returns can be kept.
func (x *run) converted(c *conversion, payload json.RawMessage) (json.RawMessage, error) {
	result, err := x.code(x.ctx, Code{Language: string(c.language), Source: c.source, Entry: ConversionEntry, Input: withAliases(payload)})
	if err != nil {
		return nil, err
	}
	if err := dataflow.CheckOutput(map[string]json.RawMessage{dataflow.DefaultKey: result.Value}); err != nil {
		return nil, err
	}
	return result.Value, nil
}

// withAliases is what a conversion function is given: the payload as it was written, and behind its own fields, under
// value, data and output, the whole payload once more wherever it has no such field itself. What is no object is found
// under these names only.
func withAliases(payload json.RawMessage) json.RawMessage {
	payload = bytes.TrimSpace(payload)
	if len(payload) == 0 {
		payload = json.RawMessage("null")
	}
	b := []byte{'{'}
	taken := map[string]bool{}
	if payload[0] == '{' {
		gjson.ParseBytes(payload).ForEach(func(key, _ gjson.Result) bool {
			taken[key.Str] = true
			return true
		})
		b = append(b, bytes.TrimSpace(payload[1:len(payload)-1])...)
	}
	for _, alias := range [...]string{"value", "data", "output"} {
		if taken[alias] {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = append(b, alias...)
		b = append(b, `":`...)
		b = append(b, payload...)
	}
	return append(b, '}')
}
