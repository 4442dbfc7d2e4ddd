package node

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"tandem/dataflow"
	"tandem/fault"
	"tandem/node/handed"
	"tandem/workflow"
)

// Code is a call of a function in untrusted code.
type Code struct {
	// Language is "python" or "javascript".
	Language string
	Source   string
	// Entry is the function to call; if there is none with that name, the last one defined is called.
	Entry string
	// Input is its argument. Under the names in Aliases the function finds the whole input, unless the input has a field with that name;
	// these names are never part of what the function returns. An input that is not an object is found under these names only.
	Input   json.RawMessage
	Aliases []string
	// TimeLimit and MemoryMB are limits; zero: the default of the interpreter.
	TimeLimit time.Duration
	MemoryMB  int
	// Begun is called when the code begins to run: it may have waited for an interpreter. May be nil.
	Begun func()
	// Waiting is called with the reason when the code has to wait for its interpreter longer than usual. May be nil.
	Waiting func(why string)
	// Printed is called with what the code prints while it runs, to Stdout or Stderr, in pieces. May be nil.
	Printed func(stream, text string)
}

// FunctionLanguage finds the language of a function by its form, as for conversions. An expression is not a function. Path
// names the configuration that has it, for errors.
func FunctionLanguage(source, path string) (string, error) {
	switch l := workflow.LanguageOf(source); l {
	case workflow.LanguagePython, workflow.LanguageJavaScript:
		return string(l), nil
	}
	return "", fault.Newf(fault.InvalidConfig, "%q must be a function in Python (def or lambda) or JavaScript (=> or function)", path).With("path", "configurations."+path)
}

// ConversionEntry is the function that is called in a conversion that has several, whatever their order.
const ConversionEntry = "convert"

// CodeResult is the result of a call of [Code].
type CodeResult struct {
	Value          json.RawMessage
	Stdout, Stderr string
	Duration       time.Duration
}

// Interpreter runs untrusted code in a sandbox.
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
	c.Printed, c.Waiting = x.print, x.waits
	defer x.endLines()
	result, err := x.job.Code.Run(ctx, x.job.Execution.Workspace, x.job.Now, x.job.Execution.ID+"/"+string(x.job.Run.Activation), c)
	return result, withPrinted(err, result)
}

// maxPrintedTail is how much of what was printed an error has; all of it is in the log.
const maxPrintedTail = 4 << 10

// withPrinted adds the end of what code had printed to the error that it ended with. A conversion runs with the node that its connection
// leaves, and fails the node that it leads to, where nothing else shows what was printed.
func withPrinted(err error, result CodeResult) error {
	f := fault.From(err)
	if f == nil || f.Code != fault.CodeError && f.Code != fault.CodeLimit && f.Code != fault.OutputInvalid {
		return err
	}
	for stream, text := range map[string]string{Stdout: result.Stdout, Stderr: result.Stderr} { // order does not matter: a field each
		if text != "" {
			f = f.With(stream, strings.ToValidUTF8(text[max(0, len(text)-maxPrintedTail):], ""))
		}
	}
	return f
}

// converted runs a conversion function that is code. It makes sure that the result can be stored.
func (x *run) converted(c *conversion, payload json.RawMessage) (json.RawMessage, error) {
	result, err := x.code(x.ctx, Code{Language: string(c.language), Source: c.source, Entry: ConversionEntry,
		Input: payload, Aliases: handed.Aliases()})
	if err != nil {
		return nil, err
	}
	if err := dataflow.CheckOutput(map[string]json.RawMessage{dataflow.DefaultKey: result.Value}); err != nil {
		return nil, err
	}
	return handed.AsGiven(result.Value, payload), nil
}
