package rundata

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"

	"tandem/dataflow"
	"tandem/expr"
	"tandem/fault"
	"tandem/payload"
)

// Env is the data that the expressions of one run read: names the kind adds, the node's input and its fields, the
// variables of the scopes around it, and the layers. What is read is decoded once.
type Env struct {
	Data  *Data
	Input json.RawMessage
	// Extra are names that the kind adds.
	Extra map[string]any
	// Time is the start of the activation.
	Time    time.Time
	Program *expr.Program

	inputs   map[string]any // the input, decoded on first use
	decoded  bool
	context  *dataflow.Context
	looked   map[string]any // what was read, by name
	firstErr error
	missing  string // the name that nothing was found by
}

// RootNames are the names that every expression can read, besides those of its data.
func RootNames() []string {
	return []string{"data", "env", "execution", "initial", "input", "runtime", "steps", "trigger", "workflow"}
}

// Err is the first error that reading has met: that of the data, not of the expression.
func (e *Env) Err() error { return e.firstErr }

// Now implements [expr.Env].
func (e *Env) Now() time.Time { return e.Time }

// Names implements [expr.Env].
func (e *Env) Names() []string {
	names := RootNames()
	for name := range e.Extra { // order does not matter: sorted below
		names = append(names, name)
	}
	for name := range e.fields() { // order does not matter: sorted below
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (e *Env) fields() map[string]any {
	if !e.decoded {
		e.decoded = true
		input := e.Input
		for i := range e.Data.Apart {
			if a := &e.Data.Apart[i]; Reads(e.Program, a) {
				input = a.Into(input)
			}
		}
		value, err := Decode(input)
		if err != nil {
			e.firstErr = err
		}
		e.inputs, _ = value.(map[string]any)
	}
	return e.inputs
}

// Reads says that an expression reads what stands apart from the input, or all of the input.
func Reads(program *expr.Program, a *dataflow.Apart) bool {
	return slices.ContainsFunc(program.Paths(), func(path []string) bool {
		switch path[0] {
		case "input":
			return a.Touches(path[1:])
		case "data", "value", "output": // the field of that name, or all of it
			return a.Touches(path) || a.Touches(path[1:])
		}
		return a.Touches(path)
	})
}

// Lookup returns what an expression reads by a name; it is looked for once.
func (e *Env) Lookup(name string) (any, bool) {
	if v, ok := e.looked[name]; ok {
		return v, true
	}
	v, ok := e.find(name)
	if ok {
		if e.looked == nil {
			e.looked = map[string]any{}
		}
		e.looked[name] = v
	} else if !strings.HasPrefix(name, "{{") {
		e.missing = name
	}
	return v, ok
}

func (e *Env) find(name string) (any, bool) {
	if v, ok := e.Extra[name]; ok {
		return v, true
	}
	for i, inner := range e.Program.Placeholders() {
		if name == expr.PlaceholderName(i) {
			return e.placeholder(inner)
		}
	}
	if v, ok := e.fields()[name]; ok && !isRoot(name) {
		return v, true
	}
	switch name {
	case "input", "data":
		return e.inputs, true
	case "runtime", "initial", "steps":
		return e.layer(name)
	}
	return e.readPath(name)
}

// isRoot says that a name always means the same in a condition, whatever fields the input has: anyone who sends the input must not
// decide what a condition looks at. A field of such a name is read as input.NAME.
func isRoot(name string) bool {
	switch name {
	case "input", "runtime", "initial", "steps", "trigger", "execution", "workflow", "env":
		return true
	}
	return false
}

// readPath asks the layers for a name by itself: a scope's variable, trigger, execution, workflow, env.
func (e *Env) readPath(path string) (any, bool) {
	raw, source, ok, err := e.Data.Lookup(path)
	if err != nil || !ok {
		return nil, false
	}
	switch source.Layer {
	case dataflow.LayerScope, dataflow.LayerTrigger, dataflow.LayerExecution, dataflow.LayerEnv:
	default:
		return nil, false // other names are written runtime.x, initial.x or steps.a.x
	}
	return e.value(raw)
}

func (e *Env) placeholder(inner string) (any, bool) {
	template, err := dataflow.CompileText("{{" + inner + "}}")
	if err != nil {
		e.firstErr = err
		return nil, false
	}
	raw, err := e.Data.Resolve(template, e.Input)
	if err != nil {
		e.firstErr = err
		return nil, false
	}
	return e.value(raw)
}

func (e *Env) layer(name string) (any, bool) {
	if e.context == nil {
		c, err := e.Data.Context()
		if err != nil {
			e.firstErr = err
			return nil, false
		}
		e.context = &c
	}
	switch name {
	case "runtime":
		return e.object(e.context.RuntimeMetadata)
	case "initial":
		return e.object(e.context.InitialMetadata)
	}
	steps := make(map[string]any, len(e.context.StepResults))
	for id, result := range e.context.StepResults { // order does not matter: one entry per node
		v, ok := e.value(result.Output)
		if !ok {
			return nil, false
		}
		steps[id] = v
		if result.StepName != "" {
			steps[result.StepName] = v
		}
	}
	return steps, true
}

func (e *Env) object(fields map[string]json.RawMessage) (any, bool) {
	out := make(map[string]any, len(fields))
	for name, raw := range fields { // order does not matter: one entry per name
		v, ok := e.value(raw)
		if !ok {
			return nil, false
		}
		out[name] = v
	}
	return out, true
}

func (e *Env) value(raw json.RawMessage) (any, bool) {
	v, err := Decode(raw)
	if err != nil {
		e.firstErr = err
		return nil, false
	}
	return v, true
}

// Decode reads a value with its numbers as they are written.
func Decode(raw json.RawMessage) (any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	v, err := payload.Decode(raw)
	if err != nil {
		return nil, fault.Newf(fault.InvalidInput, "a value cannot be read: %w", err)
	}
	return v, nil
}

// Evaluate evaluates an expression as a node does that stands where the data is read from and has this input. Unknown is the name that
// nothing is known by, if that is the error.
func Evaluate(source string, data Data, input json.RawMessage, now time.Time) (v any, unknown string, err error) {
	program, err := expr.Compile(source)
	if err != nil {
		return nil, "", err
	}
	e := &Env{Data: &data, Input: input, Time: now, Program: program}
	v, err = Run(program, e)
	return v, e.missing, cmp.Or(e.firstErr, err)
}

// Run runs a program within the limits of time and size.
func Run(program *expr.Program, e expr.Env) (any, error) {
	start := time.Now()
	return program.Eval(e, expr.Limits{Expired: func() bool { return time.Since(start) > expr.MaxTime }})
}

// asksForAbsence finds expressions whose author has thought of a field that is not there. read-only
var asksForAbsence = regexp.MustCompile(`\?\?|\?\.|\bnull\b|\bundefined\b|\bhas\s*\(`)

// AsksForAbsence says that the author of an expression has thought of a field that is not there, so that there is nothing to warn of.
func AsksForAbsence(source string) bool { return asksForAbsence.MatchString(source) }
