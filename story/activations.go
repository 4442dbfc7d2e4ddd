package story

import (
	"context"
	"encoding/json"
	"strconv"

	"tandem/api"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
)

// Activations tells activations in the order in which they began: those of a node, or of all when it is empty.
func (r *Reading) Activations(ctx context.Context, node string, after, limit int) (api.Activations, error) {
	list, more, err := r.Journal.Activations(ctx, node, after, limit)
	if err != nil {
		return api.Activations{}, err
	}
	if _, known := r.Graph.Node(node); node != "" && !known && len(list) == 0 {
		return api.Activations{}, fault.Newf(fault.NotFound, "the workflow of execution %q has no node %q", r.Summary.ID, node)
	}
	told, err := r.tellActivations(ctx, list)
	if err != nil {
		return api.Activations{}, err
	}
	out := api.Activations{Activations: told}
	if more {
		out.Next = strconv.Itoa(after + len(list))
	}
	return out, nil
}

// tellActivations tells activations with their outputs; calls of tools go by the names of the tools.
func (r *Reading) tellActivations(ctx context.Context, list []host.ActivationView) ([]api.NodeExecution, error) {
	if err := r.speak(ctx, list...); err != nil {
		return nil, err
	}
	values, err := r.values(ctx, outputRefs(list))
	if err != nil {
		return nil, err
	}
	told := make([]api.NodeExecution, len(list))
	for i := range list {
		if told[i], err = r.addressed(&list[i], values); err != nil {
			return nil, err
		}
	}
	return told, r.nameCalls(ctx, told)
}

// Activation tells one activation with its input, where that came from, and what was sent.
func (r *Reading) Activation(ctx context.Context, id engine.ActivationID) (api.NodeExecution, error) {
	record, found, err := r.Journal.Activation(ctx, id)
	if err != nil {
		return api.NodeExecution{}, err
	}
	if !found {
		return api.NodeExecution{}, fault.Newf(fault.NotFound, "execution %q has no activation %q", r.Summary.ID, id)
	}
	told, err := r.tellActivations(ctx, []host.ActivationView{record.ActivationView})
	if err != nil {
		return api.NodeExecution{}, err
	}
	out := told[0]
	out.Sent = record.Sent
	out.InputData, out.Lineage = host.ShownInput(record.ID, record.Input), record.Origins
	return out, nil
}

// Context tells the data of the execution: that of a scope that is open, or of the top level when it is empty.
func (r *Reading) Context(ctx context.Context, scope string) (api.Context, error) {
	fold, err := r.Journal.Fold(ctx)
	if err != nil {
		return api.Context{}, err
	}
	if scope != "" {
		if _, _, _, open := fold.State().ScopeState(scope); !open {
			return api.Context{}, fault.Newf(fault.NotFound, "execution %q has no open scope %q; the data of an iteration that has ended is part of the scope around it", r.Summary.ID, scope)
		}
	}
	c, err := fold.Context(scope)
	if err != nil {
		return api.Context{}, err
	}
	out := api.Context{
		PlanID: c.PlanID, InitialMetadata: c.InitialMetadata, RuntimeMetadata: c.RuntimeMetadata,
		StepResults: make(map[string]api.StepResult, len(c.StepResults)),
		Merged:      c.Merged, Variables: c.Variables,
	}
	if task, ok := taskNode(r.Graph); ok {
		out.PlanID = trailOf(fold.View(), task, func(*host.ActivationView) json.RawMessage { return nil }).planID()
	}
	for id, step := range c.StepResults { // order does not matter: one entry per node
		out.StepResults[id] = api.StepResult{
			StepID: step.StepID, StepName: step.StepName, ToolID: step.ToolID, Output: step.Output, IsSuccess: step.IsSuccess,
			ErrorMessage: step.ErrorMessage,
		}
	}
	return out, nil
}
