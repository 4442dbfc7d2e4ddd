package host

import (
	"encoding/json"
	"slices"
	"strings"

	"tandem/engine"
	"tandem/fault"
	"tandem/text"
	"tandem/workflow"
)

// ChildGraph returns the graph of another workflow that a node runs.
type ChildGraph func(workflow.ChildWorkflow) (*workflow.Graph, error)

// AskAgain returns the questions that are asked again before an execution of graph goes on from an activation on request: those that lie on
// every way to it and, if the data is edited, all that were or are asked without having shown the edit. It refuses with approval_required
// when one of them cannot be asked there: it stands in a body that has closed, is switched off, or is asked by another workflow.
func AskAgain(state *engine.State, graph *workflow.Graph, id engine.ActivationID, edited bool, child ChildGraph) ([]engine.ActivationID, error) {
	questions, closed := state.Questions(id)
	if len(closed) > 0 {
		return nil, fault.Say(fault.ApprovalRequired, text.Of("every way to %q leads through the question %q, which cannot be asked from there; begin with that question, or with what runs it, instead", id, strings.Join(closed, `", "`)))
	}
	asking := children{graph, child, id}
	if err := asking.before(state.ChildrenBefore(id)); err != nil {
		return nil, err
	}
	if err := asking.guard(state, id); err != nil {
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
	// Node is the node of the activation, and Value the output that was given for it; a value of more than MaxInline is shown
	// as {"$blob", "size"}, with its beginning beside it.
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

// children finds nodes of a graph that run workflows that ask people, for a request to go on with an activation.
type children struct {
	graph *workflow.Graph
	child ChildGraph
	id    engine.ActivationID
}

// before refuses to go on after nodes that run other workflows, if every way through one of those leads through a question.
func (c children) before(nodes []int) error {
	for _, n := range nodes {
		if err := c.asks(n, 0, false); err != nil {
			return err
		}
	}
	return nil
}

// asks returns an error if every way through the workflow that a node runs leads through a question, or if that is not known. With any it
// is enough that there is a question in it.
func (c children) asks(node, depth int, any bool) error {
	runs := c.graph.Nodes[node].Plan.Child
	if runs == nil || c.graph.Nodes[node].Plan.Disabled {
		return nil
	}
	name := c.graph.Nodes[node].ID
	if runs.Computed {
		return fault.Say(fault.ApprovalRequired, text.Of("%q depends on the node %q, which runs a workflow that only a run tells (%s) and that may ask people; begin with the node %q instead", c.id, name, runs.Workflow, name))
	}
	if c.child == nil || depth > engine.MaxDepth {
		return nil
	}
	inner, err := c.child(*runs)
	if err != nil {
		return fault.Newf(fault.ApprovalRequired, "%q lies behind the workflow %q, of which nobody can tell whether it asks people: %w; begin with the node %q instead", c.id, runs.Workflow, err, name)
	}
	var question string
	deeper := children{inner, c.child, c.id}
	binding := func(n int) bool {
		asks := inner.Nodes[n].Plan.Asks != "" || deeper.asks(n, depth+1, any) != nil
		if asks && question == "" {
			question = inner.Nodes[n].ID
		}
		return asks
	}
	if any {
		for n := range inner.Nodes {
			if binding(n) {
				break
			}
		}
	} else if inner.Avoidable(binding) {
		question = ""
	}
	if question == "" {
		return nil
	}
	return fault.Say(fault.ApprovalRequired, text.Of("%q depends on the workflow %q, which asks people (%q), and that cannot be asked from there; begin with the node %q, which runs it, instead", c.id, runs.Workflow, question, name))
}

// guard refuses to go on where several questions together guard the place, and at nodes that lead to a guarded place although no start of
// the workflow leads to them.
func (c children) guard(state *engine.State, id engine.ActivationID) error {
	node, ok := state.NodeOf(id)
	if !ok {
		return nil
	}
	known := map[int]bool{}
	found := c.graph.Guard(node, func(n int) bool {
		asks, ok := known[n]
		if !ok {
			asks = c.graph.Nodes[n].Plan.Asks != "" || c.asks(n, 0, false) != nil
			known[n] = asks
		}
		return asks
	})
	if len(found) == 0 {
		return nil
	}
	names := make([]string, len(found))
	for i, n := range found {
		names[i] = c.graph.Nodes[n].ID
	}
	return fault.Say(fault.ApprovalRequired, text.Of("nothing gets to %q, or from it to what they guard, without an answer to one of the questions \"%s\", which cannot be asked from there; begin with one of them, or before them, instead", id, strings.Join(names, `", "`)))
}

// AskedInside refuses to give the output of a node that runs another workflow, if there is a question in that one: the output would be
// the answer to it.
func AskedInside(graph *workflow.Graph, node int, id engine.ActivationID, child ChildGraph) error {
	return children{graph, child, id}.asks(node, 0, true)
}

// RequestedBy returns the user whose request a fact records: who retried a node, gave an output, or sent data. Other facts have none.
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
