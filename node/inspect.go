package node

import (
	"context"
	"encoding/json"

	"tandem/dataflow"
	"tandem/payload"
)

// maxOrigins is the most values of an input whose origins are listed.
const maxOrigins = 1000

// Inspect builds the input that a run gets, without running anything, and says where its values came from.
func (r *Revision) Inspect(job Job) (input json.RawMessage, origins []dataflow.Origin, err error) {
	if job.Run.Step != nil {
		input, err = r.inspectStep(job)
		return input, nil, err
	}
	x := &run{revision: r, job: job, node: &r.nodes[job.Run.Node], ctx: context.Background(), all: true}
	payloads, err := x.payloads()
	if err != nil {
		return nil, nil, err
	}
	d := &job.Data
	d.Lock.RLock()
	defer d.Lock.RUnlock()
	request := d.Request()
	request.StepID, request.OnUnresolved = r.Graph.Nodes[job.Run.Node].ID, r.onUnresolved
	in := dataflow.Input{Payloads: payloads, Params: x.node.params, Keyed: x.keyed(len(payloads)), Edits: job.Edits}
	if input, _, err = dataflow.BuildInput(d.Layers, in, request); err != nil {
		return nil, nil, err
	}
	lineage, err := dataflow.InputLineage(d.Layers, in, request)
	if err != nil {
		return nil, nil, err
	}
	origins = lineage.Leaves(maxOrigins)
	filling := job.Run.Cause.Filled
	if filling == nil || filling.Ref == "" {
		return input, origins, nil
	}
	value, err := job.Value(filling.Ref)
	if err != nil {
		return nil, nil, err
	}
	if input, err = lay(input, value); err != nil {
		return nil, nil, err
	}
	return input, append(origins, filledOrigins(job.Run.Activation, value)...), nil
}

// inspectStep returns what a step of a program was given.
func (r *Revision) inspectStep(job Job) (json.RawMessage, error) {
	x := &run{revision: r, job: job, node: &r.nodes[job.Owner]}
	step, err := x.readStep()
	if steps := x.node.kind.Steps; err == nil && steps != nil && steps.Shows != nil {
		shown, err := steps.Shows(step)
		if err != nil {
			return nil, err
		}
		if shown != nil {
			return payload.Encode(shown)
		}
	}
	return step.Input, err
}
