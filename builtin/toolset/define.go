package toolset

import (
	"context"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/fault"
	"tandem/node"
	"tandem/payload"
	"tandem/workflow"
)

// Set implements the constraint of [Define].
func (f Fields) Set() Fields { return f }

// Define makes a kind of a set of tools of different classes. Tools makes them for one run; without one, for what is said of them, the call
// is nil. A node may be repeated if the tools that it makes available, or the one that it runs, may be.
func Define[C interface{ Set() Fields }](about node.About, tools func(call *node.Call, cfg C) []Tool) node.Kind {
	about.Effect, about.Keys = workflow.Once, Keys()
	k := node.Define(about, func(ctx context.Context, call *node.Call, cfg C, in Input) (Output, error) {
		return Run(ctx, call, cfg.Set(), in, tools(call, cfg))
	}, func(p *node.Planning, cfg *C) {
		all := tools(nil, *cfg)
		Plan(p, all)
		planEffect(p, all)
	})
	k.Tools = func(_ context.Context, call *node.Call) ([]node.Tool, error) {
		cfg, err := node.Configuration[C](call.Config)
		if err != nil {
			return nil, err
		}
		return Offered(cfg.Set(), tools(nil, cfg)), nil
	}
	var usual C
	if slices.ContainsFunc(tools(nil, usual), func(t Tool) bool { return t.Find != nil }) {
		k.Inquire = func(ctx context.Context, call *node.Call) (node.Outcome, error) { return inquire(ctx, call, tools) }
	}
	return Kind(k)
}

// inquire asks the service what became of the call of a tool.
func inquire[C interface{ Set() Fields }](ctx context.Context, call *node.Call,
	tools func(call *node.Call, cfg C) []Tool) (node.Outcome, error) {
	cfg, err := node.Configuration[C](call.Config)
	if err != nil {
		return nil, err
	}
	var in Input
	if err := payload.Read(call.Input, &in); err != nil {
		return nil, fault.New(fault.InvalidInput, "the input cannot be read").WithCause(err)
	}
	t, args, err := chosen(cfg.Set(), in, tools(call, cfg))
	if err != nil {
		return nil, err
	}
	if t.Find == nil {
		return nil, fault.Newf(fault.Unsupported, "the service cannot be asked what became of %s", t.Name)
	}
	value, found, err := t.Find(ctx, args)
	if err != nil || !found {
		return nil, err
	}
	out, err := Answer(t.Name, value, cfg.Set(), in)
	if err != nil {
		return nil, err
	}
	return node.Succeed(out)
}

// planEffect says that a node may be repeated whose tools, or whose one tool, may be.
func planEffect(p *node.Planning, tools []Tool) {
	available, known := p.Listed("available_tools")
	if name := p.Value("tool_name"); name.Type == gjson.String && name.Str != "" && !node.Dynamic(name) {
		available, known = []string{strings.TrimPrefix(name.Str, p.Value("tool_prefix").Str)}, !p.Dynamic("tool_prefix")
	}
	if p.Effect = workflow.Once; !known || len(available) == 0 || p.Templated() {
		return
	}
	repeatable := func(name string) bool {
		return slices.ContainsFunc(tools, func(t Tool) bool { return t.Name == name && t.Effect != workflow.Once })
	}
	if !slices.ContainsFunc(available, func(name string) bool { return !repeatable(name) }) {
		p.Effect = workflow.Idempotent
	}
}

// ForModel tells a model what is wrong with what it wants. What is wrong with the node or the service stays what it is.
func ForModel(err error) error {
	f := fault.From(err)
	if err == nil || !slices.Contains([]fault.Code{fault.InvalidInput, fault.NotFound, fault.Conflict, fault.RemoteRejected}, f.Code) {
		return err
	}
	wrong := fault.New(fault.ToolError, f.Message)
	if at, ok := f.Details["path"].(string); ok {
		wrong = wrong.With("path", "function_args."+at)
	}
	return wrong
}
