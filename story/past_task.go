package story

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/tidwall/gjson"

	"tandem/agent"
	"tandem/dataflow"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/identity"
	"tandem/text"
)

// TaskName is what a task was called when it began; empty: it has no name yet, is no longer kept, or its record cannot be read.
func (l *Library) TaskName(ctx context.Context, p identity.Principal, execution string) (string, error) {
	r, err := l.OpenExecution(ctx, p, execution)
	if code := fault.CodeOf(err); err != nil && (code == fault.NotFound || code == fault.Unreadable) {
		return "", nil // it stays in the listing, without a name
	}
	if err != nil {
		return "", err
	}
	t, ok, err := r.readTrail(ctx)
	if err != nil || !ok {
		return "", err
	}
	named, err := r.resultOf(ctx, t.flow[agent.KindFlowName])
	return gjson.GetBytes(named, "flow_name").String(), err
}

// PastTask is what a task that has ended well has done.
func (r *Reading) PastTask(ctx context.Context) (agent.Past, error) {
	id := r.Summary.ID
	t, ok, err := r.readTrail(ctx)
	switch {
	case err != nil:
		return agent.Past{}, err
	case !ok:
		return agent.Past{}, fault.Say(fault.Invalid, text.Of("execution %q is not a task of an agent; what it ran is a workflow already: copy that", id))
	case r.View.Status != engine.StatusSuccess:
		return agent.Past{}, fault.Say(fault.Conflict, text.Of("task %q is %s; only one that has ended with %s can become a workflow", id, r.View.Status, engine.StatusSuccess))
	}
	past := agent.Past{Execution: id, Workflow: r.Summary.WorkflowID, Initial: r.Start.Initial,
		Question: gjson.GetBytes(r.Start.Initial, "question").String()}
	name, err := r.resultOf(ctx, t.flow[agent.KindFlowName])
	if err != nil {
		return past, err
	}
	past.Name = gjson.GetBytes(name, "flow_name").String()
	for _, step := range t.steps {
		if step.call == nil || step.call.Status != engine.NodeDone {
			continue
		}
		call, err := r.pastCall(ctx, t, step)
		if err != nil {
			return past, err
		}
		past.Calls = append(past.Calls, call)
	}
	return past, nil
}

// pastCall tells a call with how its arguments came about.
func (r *Reading) pastCall(ctx context.Context, t *trail, step *trailStep) (agent.PastCall, error) {
	call := agent.PastCall{Step: step.id, Activation: step.call.Node, Tool: step.tool}
	why, err := r.resultOf(ctx, step.choice)
	if err != nil {
		return call, err
	}
	call.Why = gjson.GetBytes(why, "description").String()
	if call.Result, err = r.resultOf(ctx, step.call); err != nil {
		return call, err
	}
	// What it was called with is what it says itself: somebody may have put another input in the place of the arguments.
	if args := gjson.GetBytes(step.call.Detail, "tool_parameters"); args.IsObject() {
		call.Arguments = json.RawMessage(args.Raw)
	} else if call.Arguments, err = r.resultOf(ctx, step.arguments); err != nil {
		return call, err
	}
	for _, a := range step.given {
		given, err := r.resultOf(ctx, a)
		if err != nil {
			return call, err
		}
		call.Given = append(call.Given, given)
	}
	call.Drafts, err = r.drafts(t, step)
	return call, err
}

// drafts are the arguments of a step as they were derived, the last first.
func (r *Reading) drafts(t *trail, step *trailStep) ([]agent.Draft, error) {
	task, _ := taskNode(r.Graph)
	var list []agent.Draft
	for _, a := range begunInOrder(r.View, task) {
		_, name := a.ID.Split()
		kind := agent.PartOf(name).Kind
		if t.of[name] != step || kind != agent.KindParams && kind != agent.KindFill || a.Status != engine.NodeDone || len(a.Detail) == 0 {
			continue
		}
		var noted struct {
			Template json.RawMessage   `json:"template"`
			Lineage  []dataflow.Origin `json:"lineage"`
		}
		if err := json.Unmarshal(a.Detail, &noted); err != nil {
			return nil, fault.Newf(fault.Internal, "what is noted about %q cannot be read: %w", name, err)
		}
		list = append(list, agent.Draft{Template: noted.Template, Lineage: noted.Lineage, Filled: kind == agent.KindFill})
	}
	slices.Reverse(list)
	return list, nil
}

// resultOf is what an activation has left, however large; nothing of none.
func (r *Reading) resultOf(ctx context.Context, a *host.ActivationView) (json.RawMessage, error) {
	if a == nil {
		return nil, nil
	}
	ref := resultRefOf(a)
	if ref == "" {
		return nil, nil
	}
	value, large, err := r.Journal.Value(ctx, r.Start, ref)
	if err == nil && large != nil {
		value, err = r.Journal.Source.Blob(ctx, r.p, *large)
	}
	return value, err
}
