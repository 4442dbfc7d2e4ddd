package server

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
func (r *reading) tellNode(n *host.NodeView, values map[engine.Ref]json.RawMessage) (api.NodeExecution, error) {
	told, err := tellActivation(r.graph, r.start.Language, &n.ActivationView, values)
	if err != nil || n.Count < 2 {
		return told, err
	}
	told.ActivationCount = n.Count
	for i := range n.Recent {
		a := &n.Recent[i]
		note := api.ActivationNote{
			ActivationID: string(a.ID), Status: string(a.Status), StartTime: a.Started, EndTime: a.Ended, Generation: int(a.Generation), Attempt: int(a.Attempt), RetryCount: int(a.Retries),
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
func (r *reading) stepsInside(activation string, all map[string]api.NodeExecution) []api.NodeExecution {
	var names []string
	for name, e := range all { // order does not matter: sorted below
		if e.InnerStep != "" && strings.HasPrefix(e.ActivationID, activation+"[") {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		x, y := r.view.Nodes[a], r.view.Nodes[b]
		return cmp.Or(cmp.Compare(x.Started, y.Started), cmp.Compare(x.Row, y.Row), cmp.Compare(a, b))
	})
	var steps []api.NodeExecution
	for _, name := range names {
		steps = append(steps, all[name])
	}
	return steps
}

// shown is the node of the workflow that something in the view goes by.
func (r *reading) shown(name string) string {
	if n := r.view.Nodes[name]; n != nil {
		name, _ = host.Shown(r.graph, n.ID)
	}
	return name
}

// sequence are the nodes in the order in which they began. Views of older versions have steps among them.
func (r *reading) sequence() []string {
	list := make([]string, 0, len(r.view.Sequence))
	for _, name := range r.view.Sequence {
		if r.shown(name) == name {
			list = append(list, name)
		}
	}
	return list
}

// failures are the failures of nodes. One that a node has failed with is told once, whatever it came from inside.
func (r *reading) failures() []api.ExecutionError {
	list := make([]api.ExecutionError, 0, len(r.view.Errors))
	for i, failed := range r.view.Errors {
		handedOn := slices.ContainsFunc(r.view.Errors[i+1:], func(o host.NodeError) bool {
			return strings.HasPrefix(string(failed.Activation), string(o.Activation)+"[") && o.Error.Code == failed.Error.Code && o.Error.Message == failed.Error.Message
		})
		if _, step := host.Shown(r.graph, failed.Activation); step == "" || !handedOn {
			list = append(list, r.tellError(failed.Error, failed.Activation, failed.Time))
		}
	}
	return list
}

// reached are the nodes that can be reached from where the execution began; nil when all can, or nobody knows.
func (r *reading) reached() []bool {
	from, ok := r.graph.Node(r.view.From)
	if !ok {
		return nil
	}
	return r.graph.Reach(from)
}
