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

// Code is a call of a function in code that nobody vouches for.
type Code struct {
	// Language is "python" or "javascript".
	Language string
	Source   string
	// Entry is the function to call; where there is none of that name, it is the last one defined.
	Entry string
	// Input is its argument. Under the names of Aliases the function finds the whole of it wherever it has no such field; they are never part of
	// what the function returns. What is not an object is found under these names only.
	Input   json.RawMessage
	Aliases []string
	// TimeLimit and MemoryMB are what the interpreter thinks right when they are zero.
	TimeLimit time.Duration
	MemoryMB  int
	// Begun is called when the code begins to run: it may have waited for an interpreter. May be nil.
	Begun func()
	// Waiting is told that the code has to wait for its interpreter longer than usual, and why. May be nil.
	Waiting func(why string)
	// Printed is told what the code prints while it runs, to Stdout or Stderr, in pieces. May be nil.
	Printed func(stream, text string)
}

// FunctionLanguage is the language of a function that is given without saying which: as for conversions, its form tells it. An
// expression is not a function. Path is the configuration that it stands in.
func FunctionLanguage(source, path string) (string, error) {
	switch l := workflow.LanguageOf(source); l {
	case workflow.LanguagePython, workflow.LanguageJavaScript:
		return string(l), nil
	}
	return "", fault.Newf(fault.InvalidConfig, "%q must be a function in Python (def or lambda) or JavaScript (=> or function)", path).With("path", "configurations."+path)
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
	c.Printed, c.Waiting = x.print, x.waits
	defer x.endLines()
	result, err := x.job.Code.Run(ctx, x.job.Execution.Workspace, x.job.Now, x.job.Execution.ID+"/"+string(x.job.Run.Activation), c)
	return result, withPrinted(err, result)
}

// maxPrintedTail is how much of what was printed an error has; all of it is in the log.
const maxPrintedTail = 4 << 10

// withPrinted adds the end of what code had printed to the error that it ended with. A conversion runs with the node that it leads from, and fails the one
// that it leads to, where nothing else tells what it said.
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

// converted runs a conversion function that is code. What it returns can be kept.
func (x *run) converted(c *conversion, payload json.RawMessage) (json.RawMessage, error) {
	result, err := x.code(x.ctx, Code{Language: string(c.language), Source: c.source, Entry: ConversionEntry, Input: payload, Aliases: handed.Aliases()})
	if err != nil {
		return nil, err
	}
	if err := dataflow.CheckOutput(map[string]json.RawMessage{dataflow.DefaultKey: result.Value}); err != nil {
		return nil, err
	}
	return handed.AsGiven(result.Value, payload), nil
}
