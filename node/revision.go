package node

import (
	"encoding/json"
	"fmt"

	"tandem/dataflow"
	"tandem/expr"
	"tandem/fault"
	"tandem/workflow"
)

// Revision is a workflow revision that is ready to run: its graph, the kind of every node, and all templates, conditions
// and conversions compiled once. It is immutable and shared by all executions of the revision.
type Revision struct {
	Definition *workflow.Definition
	Graph      *workflow.Graph

	onUnresolved dataflow.Unresolved
	nodes        []readyNode
	conversions  []*conversion // by edge; nil where there is none
}

// readyNode is what running a node needs besides its data.
type readyNode struct {
	kind   Kind
	config *dataflow.Template
	params *dataflow.Template
	// syncs are the names its output_params list.
	syncs []string
	// expressions are its conditions by their source.
	expressions map[string]*expr.Program
	// outputs are the keys something is connected to.
	connected map[string]bool
}

// conversion is a connection's conversion function.
type conversion struct {
	program  *expr.Program
	language workflow.Language
}

// Prepare makes a revision ready to run with the kinds of a registry.
func Prepare(def *workflow.Definition, graph *workflow.Graph, kinds *Registry) (*Revision, error) {
	unresolved, err := dataflow.ParseUnresolved(def.Metadata.Settings.OnUnresolved)
	if err != nil {
		return nil, err
	}
	r := &Revision{
		Definition: def, Graph: graph, onUnresolved: unresolved,
		nodes: make([]readyNode, len(graph.Nodes)), conversions: make([]*conversion, len(graph.Edges)),
	}
	for i := range graph.Nodes {
		if err := r.prepareNode(i, kinds); err != nil {
			return nil, fmt.Errorf("node %q: %w", graph.Nodes[i].ID, err)
		}
	}
	for i := range graph.Edges {
		if !graph.Edges[i].Converts {
			continue
		}
		source := def.Connections[i].ConversionFunction
		c := &conversion{language: workflow.LanguageOf(source)}
		if c.language == workflow.LanguageExpression {
			if c.program, err = expr.Compile(source); err != nil {
				return nil, fmt.Errorf("connection %q: %w", graph.Edges[i].ID, err)
			}
		}
		r.conversions[i] = c
	}
	return r, nil
}

func (r *Revision) prepareNode(i int, kinds *Registry) error {
	node, def, ready := &r.Graph.Nodes[i], &r.Definition.Nodes[i], &r.nodes[i]
	kind, ok := kinds.Get(node.Kind)
	if !ok {
		return fault.Newf(fault.Unsupported, "the kind %s cannot be run by this installation", node.Kind)
	}
	ready.kind = kind
	ready.expressions = make(map[string]*expr.Program, len(node.Plan.Expressions))
	shielded := make([]string, 0, len(node.Plan.Shielded)+len(node.Plan.Expressions))
	const prefix = "configurations."
	for _, path := range node.Plan.Shielded {
		shielded = append(shielded, path[len(prefix):])
	}
	for _, e := range node.Plan.Expressions {
		program, err := expr.Compile(e.Source)
		if err != nil {
			return err
		}
		ready.expressions[e.Source] = program
		shielded = append(shielded, e.Path[len(prefix):])
	}
	var err error
	if ready.config, err = dataflow.Compile(objectOr(def.Configurations), shielded...); err != nil {
		return err
	}
	if ready.params, err = dataflow.Compile(objectOr(def.InputParams)); err != nil {
		return err
	}
	if ready.syncs, err = dataflow.ParamNames(def.OutputParams); err != nil {
		return err
	}
	ready.connected = make(map[string]bool, len(node.Out))
	for _, e := range node.Out {
		ready.connected[r.Graph.Edges[e].Key] = true
	}
	return nil
}

// Syncs returns the names that a node's output_params list.
func (r *Revision) Syncs(node int) []string { return r.nodes[node].syncs }

func objectOr(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || string(raw) == "null" {
		return json.RawMessage("{}")
	}
	return raw
}
