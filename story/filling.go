package story

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"tandem/api"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/node"
)

// What is told of fillings: a step of their own, with a name in the language of the execution, and then the input that the
// node has in the end.

// speak finds out the language of the execution, if an activation is called by a name that depends on it.
func (r *Reading) speak(ctx context.Context, list ...host.ActivationView) error {
	if r.View != nil || !slices.ContainsFunc(list, func(a host.ActivationView) bool { return host.Filling(r.Graph, a.ID) }) {
		return nil
	}
	var err error
	r.View, r.Start, err = r.Journal.View(ctx)
	return err
}

// flowStep is the step that an activation is, in the flow vocabulary.
func (t *teller) flowStep(id engine.ActivationID, status string) *api.FlowStep {
	step := t.subject.step(id, status)
	if host.Filling(t.subject.journal.Graph, id) {
		step.StepName, step.StepType = node.FillingTitle().In(t.Start().Language), node.SlotKind
	}
	return step
}

// filledInputs tells the inputs of the nodes whose filling the row has ended.
func (t *teller) filledInputs(row *host.Row, commands []engine.Command) ([]api.Event, error) {
	var events []api.Event
	for _, c := range commands {
		run, ok := c.(engine.RunNode)
		if !ok || run.Cause.Filled == nil || run.Cause.Filled.Ref == "" ||
			!slices.ContainsFunc(row.Facts, func(f engine.Fact) bool { return endsFilling(f, run.Activation) }) {
			continue
		}
		input, ok, err := t.input(run.Activation, commands)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		raw, err := json.Marshal(input)
		if err != nil {
			return nil, fault.Newf(fault.Internal, "encode %s: %w", stepInput, err)
		}
		events = append(events, api.Event{
			EventType: stepInput, Data: raw, Executor: t.subject.executor(engine.StatusRunning),
			Step: t.subject.step(run.Activation, stepStatus(engine.NodeRunning, "")),
		})
	}
	return events, nil
}

// endsFilling says that a fact is the end of the filling of an activation.
func endsFilling(f engine.Fact, owner engine.ActivationID) bool {
	done, ok := f.(engine.NodeCompleted)
	return ok && strings.HasPrefix(string(done.Activation), string(owner)+"[0]/")
}
