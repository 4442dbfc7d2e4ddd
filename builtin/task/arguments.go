package task

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/agent"
	"tandem/builtin/models"
	"tandem/builtin/toolset"
	"tandem/builtin/values"
	"tandem/dataflow"
	"tandem/fault"
	"tandem/llm"
	"tandem/node"
	"tandem/text"
)

// shapeArguments is the shape of arguments that a model derives. It is not the tool's schema: where that wants a number, a
// placeholder is a text. What the placeholders become is held against the tool's schema.
const shapeArguments = `{"type":"object","required":["arguments"],"properties":{"arguments":{"type":"object"}}}`

// written are arguments as a model wrote them, and what they have become.
type written struct {
	template json.RawMessage
	resolved json.RawMessage
	lineage  []dataflow.Origin
	// missing are required arguments that nobody has told.
	missing []string
}

// params derives arguments for the chosen tool.
func (t *tasks) params(ctx context.Context, call *node.Call, p *taskStep) (node.Outcome, error) {
	return t.derive(ctx, call, p, p.promptFor(p.Kind))
}

// fill merges what a person has given into the arguments. A model is asked only where that is more than putting one over the other: the
// person has written something in words, or the result does not fit. What the person has given by name stays as it was given, whatever
// the model makes of the rest.
func (t *tasks) fill(ctx context.Context, call *node.Call, p *taskStep) (node.Outcome, error) {
	given, _ := readGivenParams(p.value(p.about.Given))
	var fields []values.Member
	if values.IsObject(given.Content) {
		for _, m := range values.Members(given.Content) {
			if !values.IsNull(m.Value) { // what a form leaves open changes nothing
				fields = append(fields, m)
			}
		}
	}
	merged := values.Object(values.Overlay(values.Members(p.arguments()), fields...))
	tool, ok := p.tool(p.about.Tool)
	if !ok {
		return nil, fault.Newf(fault.NotFound, "there is no tool %q", p.about.Tool).Final()
	}
	if strings.TrimSpace(given.Description) == "" {
		if fixed, missing, problem := toolset.CheckArguments(tool.InputSchema, merged); len(missing) == 0 && problem == "" {
			call.Detail(map[string]any{"template": merged, "lineage": []dataflow.Origin{}})
			return stepDone(fixed, nil, llm.Usage{})
		}
	}
	return t.derive(ctx, call, p, p.tellFill(merged, given), fields...)
}

// derive asks the model for arguments of the chosen tool; tell is what it knows, given what is not the model's to say.
func (t *tasks) derive(ctx context.Context, call *node.Call, p *taskStep, tell string, given ...values.Member) (node.Outcome, error) {
	tool, ok := p.tool(p.about.Tool)
	if !ok {
		return nil, fault.Newf(fault.NotFound, "there is no tool %q", p.about.Tool).Final()
	}
	a := models.Asking{Most: p.Tries}
	if err := models.ReadMemo(call, &a); err != nil {
		return nil, err
	}
	var out written
	messages := []llm.Message{{Role: llm.System, Content: p.system(p.Kind)}, {Role: llm.User, Content: tell}}
	fit, err := a.Ask(ctx, t.models, call, p.Profile, p.Language, messages,
		&llm.Schema{Name: p.Kind, JSON: json.RawMessage(shapeArguments)}, func(raw json.RawMessage) (problem string, err error) {
			out, problem, err = p.readArguments(call, tool, raw, given...)
			return problem, err
		})
	switch {
	case err != nil:
		return models.WaitWith(err, a)
	case fit:
		call.Detail(map[string]any{"template": out.template, "lineage": out.lineage})
		return stepDone(out.resolved, agent.ArgumentsReply{Missing: out.missing}, a.Usage)
	case a.Over():
		return nil, fault.Newf(fault.InvalidInput, "the model's arguments for %q cannot be used: %s", tool.ID,
			a.Problem()).With("tries", len(a.Tries)).Final()
	}
	return models.Again(call, a)
}

// readArguments reads arguments that a model wrote: {"arguments": …}, or the arguments by themselves. Placeholders become what they
// stand for. What was given by a person is put over them: it is data, in which nothing is looked up.
func (p *taskStep) readArguments(call *node.Call, tool taskTool, raw json.RawMessage,
	given ...values.Member) (out written, problem string, err error) {
	if !values.IsObject(raw) {
		return out, p.say(text.Of("a JSON object was expected")), nil
	}
	out.template = bareArguments(tool, raw)
	if !values.IsObject(out.template) {
		return out, p.say(text.Of("arguments must be an object")), nil
	}
	resolved, lineage, err := call.Resolve(out.template)
	if err != nil {
		if wrong := fault.From(err); wrong.Code.Class() != fault.ClassInternal {
			return out, wrong.Message, nil
		}
		return out, "", err
	}
	if len(given) > 0 {
		out.template, resolved = values.Object(values.Overlay(values.Members(out.template), given...)),
			values.Object(values.Overlay(values.Members(resolved), given...))
		lineage = slices.DeleteFunc(lineage, func(o dataflow.Origin) bool {
			name, _, _ := strings.Cut(o.Path, ".")
			return slices.ContainsFunc(given, func(m values.Member) bool { return m.Key == name })
		})
	}
	fixed, missing, problem := toolset.CheckArguments(tool.InputSchema, resolved)
	if problem != "" {
		return out, p.say(text.Of("the arguments do not fit the tool's schema: %s", problem)), nil
	}
	out.resolved, out.lineage, out.missing = fixed, lineage, missing
	return out, "", nil
}

// bareArguments takes arguments out of what a model has put around them. A tool that has a parameter of that name itself gets
// what is within only if it is there once more.
func bareArguments(tool taskTool, raw json.RawMessage) json.RawMessage {
	inner := gjson.GetBytes(raw, "arguments")
	if !inner.Exists() || gjson.GetBytes(tool.InputSchema, "properties.arguments").Exists() && !inner.Get("arguments").Exists() {
		return raw
	}
	return json.RawMessage(inner.Raw)
}
