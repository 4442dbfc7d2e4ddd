package story

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"tandem/api"
	"tandem/engine"
	"tandem/host"
)

// What is told by nodes of the workflow: the work inside a node stands below it, and what failed inside is why the node failed.

// tellNode tells the latest activation of a node, and of the others the last ones.
func (r *Reading) tellNode(n *host.NodeView, values map[engine.Ref]json.RawMessage) (api.NodeExecution, error) {
	told, err := r.addressed(&n.ActivationView, values)
	if err != nil || n.Count < 2 {
		return told, err
	}
	told.ActivationCount = n.Count
	for i := range n.Recent {
		a := &n.Recent[i]
		note := api.ActivationNote{
			ActivationID: string(a.ID), Status: string(a.Status), StartTime: a.Started, EndTime: a.Ended, Generation: int(a.Generation),
			Attempt: int(a.Attempt), RetryCount: int(a.Retries),
		}
		if index, ok := host.Iteration(a.ID); ok {
			note.Iteration = &index
		}
		if a.Started > 0 && a.Ended > 0 {
			note.DurationMS = max(0, a.Ended-a.Started)
		}
		if note.Error, err = nodeErrorOf(a.Error, max(a.Ended, a.Started)); err != nil {
			return told, err
		}
		told.Activations = append(told.Activations, note)
	}
	return told, nil
}

// stepsInside are the steps of an activation, in the order in which they began.
func (r *Reading) stepsInside(activation string, all map[string]api.NodeExecution) []api.NodeExecution {
	var names []string
	for name, e := range all { // order does not matter: sorted below
		if e.InnerStep != "" && strings.HasPrefix(e.ActivationID, activation+"[") {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		x, y := r.View.Nodes[a], r.View.Nodes[b]
		return cmp.Or(cmp.Compare(x.Started, y.Started), cmp.Compare(x.Row, y.Row), cmp.Compare(a, b))
	})
	var steps []api.NodeExecution
	for _, name := range names {
		steps = append(steps, all[name])
	}
	return steps
}

// shown is the node of the workflow that something in the view goes by.
func (r *Reading) shown(name string) string {
	if n := r.View.Nodes[name]; n != nil {
		name, _ = host.Shown(r.Graph, n.ID)
	}
	return name
}

// sequence are the nodes in the order in which they began. Views of older versions have steps among them.
func (r *Reading) sequence() []string {
	list := make([]string, 0, len(r.View.Sequence))
	for _, name := range r.View.Sequence {
		if r.shown(name) == name {
			list = append(list, name)
		}
	}
	return list
}

// failures are the failures of nodes. One that a node has failed with is told once, whatever it came from inside.
func (r *Reading) failures() []api.ExecutionError {
	list := make([]api.ExecutionError, 0, len(r.View.Errors))
	for i, failed := range r.View.Errors {
		handedOn := slices.ContainsFunc(r.View.Errors[i+1:], func(o host.NodeError) bool {
			return strings.HasPrefix(string(failed.Activation), string(o.Activation)+"[") && o.Error.Code == failed.Error.Code &&
				o.Error.Message == failed.Error.Message
		})
		if _, step := host.Shown(r.Graph, failed.Activation); step == "" || !handedOn {
			list = append(list, r.tellError(failed.Error, failed.Activation, failed.Time))
		}
	}
	return list
}

// reached are the nodes that can be reached from where the execution began; nil when all can, or nobody knows.
func (r *Reading) reached() []bool {
	from, ok := r.Graph.Node(r.View.From)
	if !ok {
		return nil
	}
	return r.Graph.Reach(from)
}
