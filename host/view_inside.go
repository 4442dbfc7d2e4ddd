package host

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"tandem/engine"
	"tandem/fault"
	"tandem/workflow"
)

// What people see of the steps inside a node, and of a node that ran several times.

// ActivationNote is what is kept of an activation that was not the last of its node.
type ActivationNote struct {
	ID         engine.ActivationID `json:"a"`
	Status     engine.NodeStatus   `json:"t"`
	Generation uint32              `json:"g,omitempty"`
	Attempt    uint32              `json:"p,omitempty"`
	Retries    uint32              `json:"r,omitempty"`
	Started    int64               `json:"b,omitempty"`
	Ended      int64               `json:"e,omitempty"`
	Error      *fault.Error        `json:"x,omitempty"`
}

func (a *ActivationView) note() ActivationNote {
	return ActivationNote{a.ID, a.Status, a.Generation, a.Attempt, a.Retries, a.Started, a.Ended, a.Error}
}

// Below is a child that waits for people: the activation that started it, and what is asked.
type Below struct {
	Activation engine.ActivationID `json:"a"`
	Asked      json.RawMessage     `json:"q,omitempty"`
	Since      int64               `json:"t"`
}

// childWaits lets an activation wait for input as long as its child does.
func (v *View) childWaits(row *Row, f engine.ChildWaiting) {
	a := v.Open[f.Activation]
	if a == nil {
		return
	}
	status := engine.NodeRunning
	if f.Human {
		status = engine.NodeWaitingInput
		if v.Below == nil {
			v.Below = map[string]Below{}
		}
		v.Below[f.Child] = Below{f.Activation, f.Asked, row.Time}
	} else {
		delete(v.Below, f.Child)
		for _, b := range v.Below { // order does not matter: one that waits is enough
			if b.Activation == f.Activation {
				status = engine.NodeWaitingInput
			}
		}
	}
	if a.Status != status {
		a.Status, a.Row = status, row.Seq
		v.publish(a)
		v.waitsInside(a)
	}
}

// Shown returns an activation as people see it: the node of the workflow and, if the activation is a step of that node's program, the
// step. The steps of a node that is the whole workflow are shown as nodes.
func Shown(graph *workflow.Graph, id engine.ActivationID) (node, step string) {
	name := NodeOf(graph, id)
	i, isStep, ok := Owner(graph, id)
	if !ok || !isStep || graph.Nodes[i].Plan.Whole {
		return name, ""
	}
	node = graph.Nodes[i].ID
	return node, strings.TrimPrefix(name, node+".")
}

// waitsInside lets a node wait for input as long as a step of it does.
func (v *View) waitsInside(a *ActivationView) {
	if _, node := v.graph.Node(a.Node); node {
		return
	}
	scope, _ := a.ID.Split()
	id, ok := OwnerOf(scope)
	node := v.Open[id]
	if !ok || node == nil {
		return
	}
	if i, known := v.graph.Node(node.Node); known && v.graph.Nodes[i].Plan.Whole {
		return
	}
	status := engine.NodeRunning
	for _, step := range v.Open { // order does not matter: one that waits is enough
		if step.Status == engine.NodeWaitingInput && strings.HasPrefix(string(step.ID), scope+"/") {
			status = engine.NodeWaitingInput
		}
	}
	if node.Status != status {
		node.Status, node.Row = status, a.Row
		v.publish(node)
	}
}

// usualNodes is the first capacity of a sequence.
const usualNodes = 8

// follows adds to the sequence. Steps inside a node are not part of it.
func (v *View) follows(a *ActivationView) {
	if _, node := v.graph.Node(a.Node); !node {
		if _, step := Shown(v.graph, a.ID); step != "" {
			return
		}
	}
	if len(v.Sequence) >= maxSequence {
		v.Sequence = slices.Delete(v.Sequence, 0, maxSequence/2)
		v.SequenceCut += maxSequence / 2
	}
	if v.Sequence == nil {
		v.Sequence = make([]string, 0, usualNodes)
	}
	v.Sequence = append(v.Sequence, a.Node)
}

// remember notes an activation that begins, if it is not the first of its node.
func (n *NodeView) remember(a *ActivationView) {
	if n.Count == 0 {
		return
	}
	if len(n.Recent) == 0 && n.ID != "" {
		n.Recent = append(n.Recent, n.note())
	}
	if len(n.Recent) >= MaxRecent {
		n.Recent = slices.Delete(n.Recent, 0, len(n.Recent)-MaxRecent+1)
	}
	n.Recent = append(n.Recent, a.note())
}

// update brings what is remembered of an activation up to date.
func (n *NodeView) update(a *ActivationView) {
	for i := len(n.Recent) - 1; i >= 0; i-- {
		if n.Recent[i].ID == a.ID && (n.Recent[i].Generation == a.Generation || n.Recent[i].Ended == 0) {
			n.Recent[i] = a.note()
			return
		}
	}
}

// FailureInside is why an activation without an error of its own failed: what failed inside it, in this row or before.
func (v *View) FailureInside(row *Row, id engine.ActivationID) *fault.Error {
	prefix := string(id) + "["
	for i := len(row.Told) - 1; i >= 0; i-- {
		if t := &row.Told[i]; t.What == ToldNode && t.Node == engine.NodeFailure && t.Error != nil &&
			strings.HasPrefix(string(t.Activation), prefix) {
			return t.Error.Final()
		}
	}
	for i := len(v.Errors) - 1; i >= 0; i-- {
		if strings.HasPrefix(string(v.Errors[i].Activation), prefix) {
			return v.Errors[i].Error.Final()
		}
	}
	var last *NodeView
	for _, n := range v.Nodes { // order does not matter: the one that ended last is looked for
		if n.Status == engine.NodeFailure && n.Error != nil && strings.HasPrefix(string(n.ID), prefix) &&
			(last == nil || cmp.Or(cmp.Compare(n.Row, last.Row), cmp.Compare(n.ID, last.ID)) > 0) {
			last = n
		}
	}
	if last == nil {
		return nil
	}
	return last.Error.Final()
}
