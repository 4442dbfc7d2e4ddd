package host

import (
	"encoding/json"
	"slices"
	"strings"

	"tandem/engine"
	"tandem/fault"
	"tandem/workflow"
)

// ChildGraph returns the graph of another workflow that a node runs.
type ChildGraph func(workflow.ChildWorkflow) (*workflow.Graph, error)

// AskAgain returns the questions that are asked again before an execution of graph goes on from an activation at somebody's
// wish: those that lie on every way to it and, if the data is edited with it, all that were or are asked without having
// shown the edit. It refuses with approval_required when one of them cannot be asked there: it stands in a body that has closed,
// is switched off, or is asked by another workflow.
func AskAgain(state *engine.State, graph *workflow.Graph, id engine.ActivationID, edited bool, child ChildGraph) ([]engine.ActivationID, error) {
	questions, closed := state.Questions(id)
	if len(closed) > 0 {
		return nil, fault.Newf(fault.ApprovalRequired, "every way to %q leads through the question %q, which cannot be asked from there; begin with that question, or with what runs it, instead", id, strings.Join(closed, `", "`))
	}
	if err := askedByChildren(graph, state.ChildrenBefore(id), id, child, 0); err != nil {
		return nil, err
	}
	if edited {
		for _, q := range state.Asked() {
			if q != id && !slices.Contains(questions, q) {
				questions = append(questions, q)
			}
		}
	}
	return questions, nil
}

// AskedAgain is why a question is asked again, with the values.
type AskedAgain struct {
	engine.AgainCause
	// Node is the node of the activation, and Value the output that was given for it; a value of more than MaxInline is told as
	// {"$blob", "size"}, with its beginning beside it.
	Node  string
	Value json.RawMessage
	Part  string
}

// AskedAgain returns why a question is asked again; none for one that is asked for the first time.
func (f *Fold) AskedAgain(question engine.ActivationID) ([]AskedAgain, error) {
	var list []AskedAgain
	for _, cause := range f.state.AskedAgain(question) {
		one := AskedAgain{AgainCause: cause, Node: NodeOf(f.graph, cause.Activation)}
		value, err := f.Value(cause.Output)
		if err != nil {
			return nil, err
		}
		one.Value, one.Part = shown(value), partOf(value)
		list = append(list, one)
	}
	return list, nil
}

// askedByChildren refuses to go on behind a node that runs another workflow, if every way through that one leads through a
// question.
func askedByChildren(graph *workflow.Graph, nodes []int, id engine.ActivationID, child ChildGraph, depth int) error {
	if child == nil || depth > engine.MaxDepth {
		return nil
	}
	for _, n := range nodes {
		runs := graph.Nodes[n].Plan.Child
		inner, err := child(*runs)
		if err != nil {
			return fault.Newf(fault.ApprovalRequired, "%q lies behind the workflow %q, of which nobody can tell whether it asks people: %w; begin with the node %q instead", id, runs.Workflow, err, graph.Nodes[n].ID)
		}
		asked, children := inner.Through()
		if len(asked) > 0 {
			return fault.Newf(fault.ApprovalRequired, "every way to %q leads through the question %q of the workflow %q, which cannot be asked from there; begin with the node %q, which runs it, instead", id, inner.Nodes[asked[0]].ID, runs.Workflow, graph.Nodes[n].ID)
		}
		if err := askedByChildren(inner, children, id, child, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// AskedInside refuses to give the output of a node that runs another workflow, if every way through that one leads through a question:
// it would be the answer to it.
func AskedInside(graph *workflow.Graph, node int, id engine.ActivationID, child ChildGraph) error {
	if graph.Nodes[node].Plan.Child == nil {
		return nil
	}
	return askedByChildren(graph, []int{node}, id, child, 0)
}

// RequestedBy returns the user whose request a fact records: who retried a node, gave an output, or sent data. It is empty for facts that nobody
// has requested.
func RequestedBy(fact engine.Fact) string {
	switch fact := fact.(type) {
	case engine.NodeRetried:
		return fact.By
	case engine.NodeSkipped:
		if fact.HasOutput {
			return fact.By
		}
	case engine.SignalReceived:
		if fact.Ref != "" {
			return fact.By
		}
	case engine.AskAnswered:
		if fact.Choice == engine.ChoiceDone && fact.Ref != "" {
			return fact.By
		}
	}
	return ""
}
