package node

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"time"

	"github.com/tidwall/gjson"

	"tandem/dataflow"
	"tandem/fault"
	"tandem/workflow"
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
	return withoutAliases(result.Value, payload), nil
}

// aliases are the names under which a conversion function finds the whole payload.
func aliases() []string { return []string{"value", "data", "output"} }

// withAliases is what a conversion function is given: the payload as it was written, and behind its own fields, under
// value, data and output, the whole payload once more wherever it has no such field itself. What is no object is found
// under these names only.
func withAliases(payload json.RawMessage) json.RawMessage {
	payload = payloadOrNull(payload)
	b := []byte{'{'}
	if payload[0] == '{' {
		b = append(b, bytes.TrimSpace(payload[1:len(payload)-1])...)
	}
	for _, alias := range added(payload) {
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

func payloadOrNull(payload json.RawMessage) json.RawMessage {
	if payload = bytes.TrimSpace(payload); len(payload) == 0 {
		return json.RawMessage("null")
	}
	return payload
}

// added are the aliases that a payload is given: those that it has no field of its own for.
func added(payload json.RawMessage) []string {
	own := fieldsOf(payload)
	return slices.DeleteFunc(aliases(), func(alias string) bool { return own[alias].Exists() })
}

// fieldsOf are the fields of an object; of anything else there are none.
func fieldsOf(payload json.RawMessage) map[string]gjson.Result {
	fields := map[string]gjson.Result{}
	if payload[0] == '{' {
		gjson.ParseBytes(payload).ForEach(func(key, value gjson.Result) bool {
			fields[key.Str] = value
			return true
		})
	}
	return fields
}

// withoutAliases is what a conversion function hands on. One that returns its input, whole or as a copy with changes, has not
// made the aliases in it: they are taken out again. A result has that form if every alias that was added still stands for the
// payload; where that is a single one, which somebody may mean, if it also has every field of the payload. What is returned
// unchanged is the payload itself. What is no object has no other place than its aliases, and keeps them in what is changed.
func withoutAliases(result, payload json.RawMessage) json.RawMessage {
	payload = payloadOrNull(payload)
	names := added(payload)
	if len(names) == 0 || len(result) == 0 || result[0] != '{' {
		return result
	}
	made, own := fieldsOf(result), fieldsOf(payload)
	for _, alias := range names {
		if !made[alias].Exists() {
			return result
		}
	}
	changed := len(made) != len(own)+len(names)
	for name, value := range own { // order does not matter: every field is looked at
		field, kept := made[name]
		if !kept && len(names) == 1 {
			return result
		}
		changed = changed || !kept || !sameJSON(field.Raw, value.Raw)
	}
	for _, alias := range names {
		if !sameJSON(made[alias].Raw, string(payload)) {
			return result
		}
	}
	if !changed {
		return payload
	}
	if payload[0] != '{' {
		return result
	}
	out := []byte{'{'}
	gjson.ParseBytes(result).ForEach(func(key, value gjson.Result) bool {
		if slices.Contains(names, key.Str) {
			return true
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(out, key.Raw...), ':')
		out = append(out, value.Raw...)
		return true
	})
	return append(out, '}')
}

// sameJSON says that two values are equal, as far as every language can tell: 1 and 1.0 are, and so are whole numbers that
// differ where a floating point number has no digits left.
func sameJSON(a, b string) bool {
	if a == b {
		return true
	}
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}
