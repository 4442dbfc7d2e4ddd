package workflow

import "tandem/workflow/dominance"

// Graph is a definition compiled for execution: indexes instead of names, every node in its body, back edges known.
// It is immutable and shared by all executions of a revision.
type Graph struct {
	// Hash identifies the revision the graph was compiled from.
	Hash string
	// TimeoutMS limits an execution's wall time; zero means no limit.
	TimeoutMS int64
	Nodes     []GraphNode
	Edges     []Edge
	// Bodies[0] is the top level; every scope node opens one of the others.
	Bodies []Body
	// Triggers are the enabled TRIGGER nodes that can start the workflow, by index.
	Triggers []int

	// flow is how one node leads to the next, for graphs in which people are asked: vertex 0 leads to where it begins, vertex n+1 is node
	// n.
	flow      *dominance.Adjacency
	byID      map[string]int
	bySegment map[string]int
}

// GraphNode is a node of a compiled graph.
type GraphNode struct {
	ID   string
	Name string
	Kind string
	// Segment is the ID escaped for use in an activation's path.
	Segment string
	// Body is the body the node belongs to and Local its place in that body's Nodes.
	Body, Local int
	// Opens is the body that the node's entry key opens; 0 for a node that is not a scope.
	Opens int
	// In are the incoming edges in definition order, without back edges; Out all outgoing ones.
	In, Out []int
	// Feeds is the first-join node into which all of the node's paths lead and lead only, or -1.
	Feeds int
	// Questions are the nodes that ask a binding question and lie on every way to this one, the first first. Some may stand
	// in a body that has closed when this node runs.
	Questions []int
	// Children are the nodes that run another workflow and lie on every way to this one.
	Children []int
	// Attached nodes take no part in the flow; the node they are attached to uses them. They are in no body's Nodes:
	// Body is 0 and Local -1.
	Attached bool
	// Uses are the attached nodes of an AI_AGENT node, in the order it names them.
	Uses []int
	// Pinned nodes do not run and have outputs that somebody gave, in a test.
	Pinned bool
	Plan   Plan
}

// Edge is a connection of a compiled graph.
type Edge struct {
	ID       string
	From, To int
	// Key is the source's output key, aliases resolved.
	Key string
	// Converts says that the connection has a conversion function, so that its verdict must be evaluated.
	Converts bool
	// Entry edges lead from a scope node into its body; Back edges from a body to its scope node.
	Entry, Back bool
	// Local is the edge's place in the Edges of the body its target belongs to; -1 for a back edge.
	Local int
}

// Body is a set of nodes that run together: the top level, or what a scope node repeats.
type Body struct {
	// Owner is the scope node, -1 for the top level.
	Owner int
	// Nodes are the members, without the members of nested bodies, in definition order.
	Nodes []int
	// Edges are those that lead to a member, entry edges included, in definition order.
	Edges []int
	// Entry are the edges from the owner into the body.
	Entry []int
	// Last are the members without an outgoing edge inside the body; their outputs are the body's result.
	Last []int
}

// Node returns the index of the node with this id.
func (g *Graph) Node(id string) (int, bool) {
	i, ok := g.byID[id]
	return i, ok
}

// Segment returns the node whose activations have this name in their path.
func (g *Graph) Segment(name string) (int, bool) {
	i, ok := g.bySegment[name]
	return i, ok
}

// Reach tells which nodes can be reached from one, itself included.
func (g *Graph) Reach(from int) []bool {
	reached := make([]bool, len(g.Nodes))
	reached[from] = true
	for stack := []int{from}; len(stack) > 0; {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, e := range g.Nodes[n].Out {
			if to := g.Edges[e].To; !reached[to] {
				reached[to] = true
				stack = append(stack, to)
			}
		}
	}
	return reached
}
