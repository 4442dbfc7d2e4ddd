package host

import (
	"encoding/json"

	"tandem/dataflow"
	"tandem/engine"
	"tandem/fault"
	"tandem/payload"
)

// record writes a node's outcome into the layers.
func (f *Fold) record(seq uint64, fact engine.Fact, commands []engine.Command) error {
	switch fact := fact.(type) {
	case engine.NodeCompleted:
		outputs, beside, err := f.outputs(fact.Outputs)
		if err != nil {
			return err
		}
		delete(f.frames, fact.Activation)
		for _, c := range commands {
			if end, ok := c.(engine.EndNode); ok && end.Activation == fact.Activation && end.Status == engine.NodeFailure {
				return f.recordHandled(seq, fact.Activation, end.Error, joined(outputs, beside), fact.Settled)
			}
		}
		return f.recordSuccess(seq, fact, outputs, beside)
	case engine.NodeFailed:
		outputs, beside, err := f.outputs(fact.Outputs)
		if err != nil {
			return err
		}
		outputs = joined(outputs, beside)
		if fact.Handled {
			return f.recordHandled(seq, fact.Activation, fact.Error, outputs, fact.Settled)
		}
		return f.recordFailure(seq, fact.Activation, fact.Error, outputs)
	}
	return nil
}

// recordHandled writes a failure that the node handles. Its default output counts as its result where the node ends an iteration.
func (f *Fold) recordHandled(seq uint64, id engine.ActivationID, failure *fault.Error, outputs []payload.Member, settled []engine.Verdict) error {
	if err := f.recordFailure(seq, id, failure, outputs); err != nil || f.start.InputRules == 0 || len(outputs) == 0 {
		return err
	}
	return f.noteResult(f.runs[id].command(), outputs, nil, settled)
}

// outputs are the payloads by output key. Beside are fields of the payload that are kept beside it, if there is only one.
func (f *Fold) outputs(list []engine.Output) (outputs []payload.Member, beside []payload.Part, err error) {
	outputs = make([]payload.Member, 0, len(list))
	for _, o := range list {
		value, parts, err := f.fetch(o.Ref)
		if err != nil {
			return nil, nil, err
		}
		if len(list) == 1 {
			beside = parts
		} else {
			value = payload.Join(value, parts)
		}
		outputs = append(outputs, payload.Member{Key: o.Key, Value: value})
	}
	return outputs, beside, nil
}

// joined are payloads with what is kept beside the only one.
func joined(outputs []payload.Member, beside []payload.Part) []payload.Member {
	for i, o := range outputs {
		outputs[i].Value = payload.Join(o.Value, beside)
	}
	return outputs
}

// byKey returns payloads in the form that failures have: by output key, nil if there are none.
func byKey(outputs []payload.Member) map[string]json.RawMessage {
	if len(outputs) == 0 {
		return nil
	}
	keyed := make(map[string]json.RawMessage, len(outputs))
	for _, o := range outputs {
		keyed[o.Key] = o.Value
	}
	return keyed
}

func (f *Fold) recordSuccess(seq uint64, fact engine.NodeCompleted, outputs []payload.Member, beside []payload.Part) error {
	id := fact.Activation
	open, ok := f.runs[id]
	if !ok {
		return fault.Newf(fault.Internal, "row %d: %q has ended and did not run", seq, id)
	}
	run := open.command()
	delete(f.runs, id)
	if run.Node < 0 {
		return f.recordStep(seq, fact, run, joined(outputs, beside))
	}
	n := &f.graph.Nodes[run.Node]
	step := dataflow.Step{
		Seq: seq, Scope: run.Scope, Activation: string(id), NodeID: n.ID, NodeName: n.Name, ToolID: n.Kind,
		Payloads: outputs, Beside: beside, OutputParams: f.revision.Syncs(run.Node), DeclaredOutputs: fact.Declared,
	}
	if declares := f.revision.Declares(run.Node); f.start.InputRules > 0 && declares != nil {
		step.DeclaredOutputs = declares // what a template declares limits what a tool declares
	}
	if err := f.sync(step); err != nil {
		return err
	}
	return f.noteResult(run, outputs, beside, fact.Settled)
}

// recordStep writes the output of a program's step, if that is data of the execution. It does so at once: nothing else of the
// execution runs beside the one step of such a program.
func (f *Fold) recordStep(seq uint64, fact engine.NodeCompleted, run engine.RunNode, outputs []payload.Member) error {
	if run.Step == nil || run.Step.Tool == "" {
		return nil // it is for the program
	}
	return f.sync(dataflow.Step{
		Seq: seq, Activation: string(fact.Activation), NodeID: engine.TriedStep(NodeOf(f.graph, fact.Activation)), NodeName: run.Step.Tool,
		ToolID: run.Step.Tool, Payloads: outputs, DeclaredOutputs: fact.Declared,
	})
}

func (f *Fold) recordFailure(seq uint64, id engine.ActivationID, failure *fault.Error, outputs []payload.Member) error {
	open, ok := f.runs[id]
	if !ok {
		return fault.Newf(fault.Internal, "row %d: %q has failed and did not run", seq, id)
	}
	run := open.command()
	if run.Node < 0 {
		if s := run.Step; s != nil && s.Tool != "" {
			return f.layers.Fail(dataflow.Failure{
				Seq: seq, Activation: string(id), NodeID: engine.TriedStep(NodeOf(f.graph, id)), NodeName: s.Tool, ToolID: s.Tool,
				Message: failure.Message, Output: byKey(outputs),
			})
		}
		return nil
	}
	n := &f.graph.Nodes[run.Node]
	return f.layers.Fail(dataflow.Failure{
		Seq: seq, Scope: run.Scope, Activation: string(id), NodeID: n.ID, NodeName: n.Name, ToolID: n.Kind,
		Message: failure.Message, Output: byKey(outputs),
	})
}
