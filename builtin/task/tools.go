package task

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"tandem/builtin/toolset"
	"tandem/builtin/values"
	"tandem/fault"
	"tandem/mcp"
	"tandem/node"
	"tandem/text"
	"tandem/workflow"
)

// taskTool is a tool that a task may use, as its user has accepted it.
type taskTool struct {
	ID           string          `json:"id"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"input_schema"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	Effect       workflow.Effect `json:"effect"`
	// Destructive and ReadOnly are the server's word for what the tool does. Of an unclassed tool it says nothing, and it counts as
	// destructive.
	Destructive bool `json:"destructive,omitempty"`
	ReadOnly    bool `json:"read_only,omitempty"`
	Unclassed   bool `json:"unclassed,omitempty"`
	// Forbidden says why the tool is never called, if a policy says so.
	Forbidden string `json:"forbidden,omitempty"`
}

// served are the tools of one server, or why there are none.
type served struct {
	tools    []mcp.Tool
	changes  []mcp.Change
	standing map[string]mcp.Standing
	err      error
}

// gather finds the tools of the servers that the user has activated and that answer. What the user has not accepted is not shown to
// the model: a tool that has changed is shown as it was (its calls wait until somebody accepts the difference), a new one not at all.
func (t *tasks) gather(ctx context.Context, call *node.Call, servers []string, state *taskState) error {
	found := make([]served, len(servers))
	var wg sync.WaitGroup
	for i, id := range servers {
		wg.Go(func() {
			s := &found[i]
			if s.changes, s.err = t.tools.Check(ctx, toolset.Caller(call), id); s.err == nil {
				s.tools, s.err = t.tools.Pinned(ctx, toolset.Caller(call), id)
			}
			if s.err == nil {
				s.standing, s.err = t.tools.Standings(ctx, toolset.Caller(call), id, s.tools)
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return fault.New(fault.Canceled, "the attempt was stopped while its tool servers were asked").WithCause(context.Cause(ctx))
	}
	size, left := 0, 0
	for i, s := range found {
		if s.err != nil {
			if err := state.without(call, servers[i], s.err); err != nil {
				return err
			}
			continue
		}
		for _, tool := range s.tools {
			accepted, ok := knownTool(call, tool, s.changes)
			if !ok {
				continue
			}
			if st := s.standing[tool.Name]; st.Decision == mcp.Refused && !st.ByArgument {
				accepted.Forbidden = mcp.NotAllowedBy(tool.Server, tool.Name, st.Verdict).Message.String()
			}
			if size += len(accepted.InputSchema) + len(accepted.OutputSchema); size > maxToolSchemas || len(state.Tools) >= maxTaskTools {
				left++
				continue
			}
			state.Tools = append(state.Tools, accepted)
		}
	}
	if left > 0 {
		call.Log(node.Warn, "the task has more tools than it can be told of; the last were left out", map[string]any{"left_out": left, "kept": len(state.Tools)})
	}
	return nil
}

// without notes that the tools of a server are not there.
func (s *taskState) without(call *node.Call, server string, err error) error {
	e, ok := errors.AsType[*mcp.Error](err)
	if !ok {
		return err
	}
	switch e.Kind {
	case mcp.NotActivated:
		s.Inactive = append(s.Inactive, server)
	case mcp.UnknownServer:
		s.Unregistered = append(s.Unregistered, server)
	default:
		s.Unreachable = append(s.Unreachable, server)
	}
	call.Log(node.Warn, "the tools of a server are left out of the task", map[string]any{"server_id": server, "error": e.Fault().Message})
	return nil
}

// knownTool is a tool as a model is told of it, unless its server has it no longer.
func knownTool(call *node.Call, t mcp.Tool, changes []mcp.Change) (taskTool, bool) {
	if i := slices.IndexFunc(changes, func(c mcp.Change) bool { return c.Tool == t.Name }); i >= 0 {
		call.Log(node.Warn, "a tool is not what the user has accepted", map[string]any{"tool": t.ID, "difference": changes[i].Summary})
		if changes[i].Kind == mcp.Removed {
			return taskTool{}, false
		}
	}
	return toldTool(t), true
}

// toldTool is a tool as a model is told of it.
func toldTool(t mcp.Tool) taskTool {
	class := mcp.ClassOf(t)
	tool := taskTool{
		ID: t.ID, Description: text.Fit(strings.TrimSpace(t.Description), maxToolDescription),
		InputSchema: t.InputSchema, Effect: mcp.Effect(t),
		Destructive: class == mcp.Destructive, ReadOnly: class == mcp.ReadOnly, Unclassed: class == mcp.Unclassed,
	}
	if len(t.OutputSchema) <= maxOutputSchema {
		tool.OutputSchema = t.OutputSchema
	}
	return tool
}

// renew lets a step that is about a tool see it as its user has accepted it since the task began: arguments for the tool as it was would be
// refused. What the task began the call as, its effect, stays.
func (t *tasks) renew(ctx context.Context, call *node.Call, p *taskStep) error {
	at := slices.IndexFunc(p.Tools, func(one taskTool) bool { return one.ID == p.about.Tool })
	server, name, ok := mcp.SplitToolID(p.about.Tool)
	if at < 0 || !ok {
		return nil
	}
	now, err := t.tools.PinnedTool(ctx, toolset.Caller(call), server, name)
	if _, known := errors.AsType[*mcp.Error](err); known {
		return nil // the call says so
	}
	if err != nil {
		return err
	}
	is := toldTool(now)
	is.Effect, is.Forbidden = p.Tools[at].Effect, p.Tools[at].Forbidden
	p.Tools[at] = is
	return nil
}

// weigh finds out what the call that is judged meets, whatever a model says of it.
func (t *tasks) weigh(ctx context.Context, call *node.Call, p *taskStep) error {
	server, name, ok := mcp.SplitToolID(p.about.Tool)
	if !ok {
		return nil
	}
	v, err := t.tools.Verdict(ctx, toolset.Caller(call), server, name, p.arguments())
	if _, known := errors.AsType[*mcp.Error](err); known { // there is no such tool for the user any more, which the call will say
		v, err = mcp.Verdict{Decision: mcp.Destroys, From: mcp.FromNobody}, nil
	}
	p.verdict = v
	return err
}

// effectOf is the effect of a tool as a definition has it. What says nothing that can be read says nothing: it runs once.
func effectOf(definition json.RawMessage) workflow.Effect {
	var t struct {
		Annotations mcp.Annotations `json:"annotations"`
	}
	if json.Unmarshal(definition, &t) != nil {
		return workflow.Once
	}
	return mcp.Effect(mcp.Tool{Annotations: t.Annotations})
}

// properties are the schemas of the tool's parameters.
func (t taskTool) properties() []values.Member {
	if r := gjson.GetBytes(t.InputSchema, "properties"); r.IsObject() {
		return values.Members(json.RawMessage(r.Raw))
	}
	return nil
}

// parameters are the names of the tool's parameters, a star after those that are required.
func (t taskTool) parameters() string {
	required := map[string]bool{}
	for _, name := range gjson.GetBytes(t.InputSchema, "required").Array() {
		required[name.String()] = true
	}
	var names []string
	gjson.GetBytes(t.InputSchema, "properties").ForEach(func(name, _ gjson.Result) bool {
		one := name.String()
		if required[one] {
			one += "*"
		}
		names = append(names, one)
		return true
	})
	return strings.Join(names, ", ")
}

// form is the schema of some of the tool's parameters, for a form.
func (t taskTool) form(names []string) json.RawMessage {
	properties := gjson.GetBytes(t.InputSchema, "properties")
	var list []values.Member
	for _, name := range names {
		part := json.RawMessage(`{}`)
		properties.ForEach(func(key, value gjson.Result) bool {
			if key.String() == name {
				part = json.RawMessage(value.Raw)
			}
			return key.String() != name
		})
		list = append(list, values.Member{Key: name, Value: part})
	}
	fields := []values.Member{values.Field("type", "object"), {Key: "properties", Value: values.Object(list)}}
	for _, defs := range []string{"$defs", "definitions"} { // parts may refer to them
		if d := gjson.GetBytes(t.InputSchema, strings.ReplaceAll(defs, "$", `\$`)); d.IsObject() {
			fields = append(fields, values.Member{Key: defs, Value: json.RawMessage(d.Raw)})
		}
	}
	return values.Object(fields)
}
