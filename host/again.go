package host

import (
	"slices"
	"strings"

	"tandem/engine"
	"tandem/fault"
	"tandem/workflow"
)

// ChildGraph returns the graph of another workflow that a node runs.
type ChildGraph func(workflow.ChildWorkflow) (*workflow.Graph, error)

// AskAgain returns the questions that are asked again before an execution of graph goes on from an activation at somebody's
// wish: those that lie on every way to it and, if the data is edited with it, all that were answered without having shown
// the edit. It refuses with approval_required when one of them cannot be asked there: it stands in a body that has closed,
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
		for _, q := range state.Answered() {
			if q != id && !slices.Contains(questions, q) {
				questions = append(questions, q)
			}
		}
	}
	return questions, nil
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
