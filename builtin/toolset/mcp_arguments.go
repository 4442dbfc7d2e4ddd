package toolset

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/builtin/values"
	"tandem/fault"
	"tandem/mcp"
	"tandem/payload"
)

// toolOf is a tool as it was accepted; one that is not among them has no schema.
func toolOf(pinned []mcp.Tool, name string) mcp.Tool {
	if n := slices.IndexFunc(pinned, func(t mcp.Tool) bool { return t.Name == name }); n >= 0 {
		return pinned[n]
	}
	return mcp.Tool{Name: name}
}

// said are the arguments that the configurations or the input write down as such.
func (s *Server) said(in Input) (json.RawMessage, error) {
	args := json.RawMessage(s.Config.FunctionArgs)
	if values.IsNull(args) {
		args = in.FunctionArgs
	}
	switch {
	case values.IsNull(args):
		return json.RawMessage("{}"), nil
	case !values.IsObject(args):
		return nil, fault.New(fault.ToolError, `"function_args" must be an object`).With("path", "function_args")
	}
	return args, nil
}

// arguments are what the tool is called with: function_args and, in a node that stands alone, the fields of its input that the tool has
// arguments for and function_args does not name. What is null and may not be is left out.
func (s *Server) arguments(ctx context.Context, in Input, t mcp.Tool) (json.RawMessage, error) {
	args, err := s.said(in)
	if err != nil || s.byModel(ctx) {
		return args, err
	}
	list := values.Members(args)
	gjson.GetBytes(t.InputSchema, "properties").ForEach(func(key, _ gjson.Result) bool {
		name := key.String()
		if s.steers(name) || slices.ContainsFunc(list, func(m values.Member) bool { return m.Key == name }) {
			return true
		}
		if value, ok := (values.Path{name}).Walk(s.Call.Input); ok && !values.IsNull(value) {
			list = append(list, values.Member{Key: name, Value: value})
		}
		return true
	})
	args = values.Object(list)
	if len(t.InputSchema) > 0 {
		args, _, _ = CheckArguments(t.InputSchema, args)
	}
	return args, nil
}

// steers says that a field of the input says which tool is called with which arguments, and is not one of them itself.
func (s *Server) steers(name string) bool {
	return name == "function_args" || name == "tool_name" && s.Config.ToolName == ""
}

// byModel says that a model wants the call: its arguments are exactly what it says, and were checked when it said so.
func (s *Server) byModel(ctx context.Context) bool {
	_, ok := ctx.Value(modelCallKey{}).(ModelCall)
	return ok || isWantedByModel(ctx)
}

// fits refuses arguments that do not fit the tool, before it is called: a node that stands alone says what it lacks, and what a model has
// written for the tool as it was is not sent to what the tool has become.
func (s *Server) fits(ctx context.Context, now mcp.Tool, args json.RawMessage) error {
	model := s.byModel(ctx)
	if model && !s.changed {
		return nil
	}
	_, missing, problem := CheckArguments(now.InputSchema, args)
	switch {
	case len(missing) > 0 && s.changed:
		problem = values.JoinTexts(problem, "missing: "+strings.Join(missing, ", "))
	case len(missing) > 0:
		return lacks(now.ID, "input_params or function_args", missing, now.InputSchema, args)
	case problem == "":
		return nil
	}
	if s.changed {
		return fault.Newf(fault.InvalidInput, "function_args: they do not fit the tool %q as it is now: %s", now.ID, problem).With("path", "function_args")
	}
	return fault.Newf(fault.InvalidInput, "the arguments do not fit the tool %q: %s", now.ID, problem).With("path", "function_args")
}

// wants is the schema of what the input may have for a tool: the arguments that function_args does not name. Nil: it is not known which
// tool, or nobody has accepted it yet, which the run says.
func (s *Server) wants(ctx context.Context) (json.RawMessage, error) {
	pinned, err := s.Pool.Pinned(ctx, s.who(), s.Config.ServerID)
	if err != nil {
		return nil, nil
	}
	var in Input
	if err := json.Unmarshal(s.Call.Input, &in); err != nil {
		return nil, nil
	}
	name, err := s.name(in, pinned)
	if err != nil {
		return nil, nil
	}
	args, err := s.said(in)
	if err != nil {
		return nil, nil
	}
	return withoutNamed(toolOf(pinned, name).InputSchema, args)
}

// withoutNamed is the schema of an object without the fields that are given.
func withoutNamed(schema, given json.RawMessage) (json.RawMessage, error) {
	var whole, properties map[string]json.RawMessage
	var required []string
	if json.Unmarshal(schema, &whole) != nil || json.Unmarshal(whole["properties"], &properties) != nil {
		return nil, nil // it names nothing
	}
	if raw := whole["required"]; len(raw) > 0 && json.Unmarshal(raw, &required) != nil {
		return nil, nil
	}
	for _, m := range values.Members(given) {
		delete(properties, m.Key)
		required = slices.DeleteFunc(required, func(name string) bool { return name == m.Key })
	}
	rest := map[string]any{"type": "object", "properties": properties, "required": append([]string{}, required...)}
	for _, name := range []string{"$defs", "definitions"} {
		if raw := whole[name]; len(raw) > 0 {
			rest[name] = raw
		}
	}
	return payload.Encode(rest)
}
