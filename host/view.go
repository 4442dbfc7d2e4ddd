package host

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"tandem/dataflow"
	"tandem/engine"
	"tandem/fault"
	"tandem/workflow"
)

// View is an execution as people see it, derived from its rows without an engine: its status, the last state of each
// node, what it waits for. It is bounded by the size of the workflow and what is open, however long the execution is. It
// is part of snapshots, so its names are short.
type View struct {
	graph *workflow.Graph
	// began and changed, when they are set, are called for every activation that begins, and each time it changes.
	began, changed func(*ActivationView)

	Execution string        `json:"id"`
	Seq       uint64        `json:"seq"`
	Status    engine.Status `json:"st"`
	Created   int64         `json:"c"`
	Updated   int64         `json:"u"`
	Started   int64         `json:"b,omitempty"`
	Ended     int64         `json:"e,omitempty"`
	// WaitedMS is how long it has waited for people; Waiting since when it does so now.
	WaitedMS int64   `json:"w,omitempty"`
	Waiting  int64   `json:"ws,omitempty"`
	Credits  float64 `json:"cr,omitempty"`
	// Used is what was used of paid services.
	Used Usage `json:"us,omitzero"`
	// Error is why it failed and ErrorNode the activation that did. Errors are the failures of nodes, the first hundred.
	Error     *fault.Error        `json:"x,omitempty"`
	ErrorNode engine.ActivationID `json:"xn,omitempty"`
	Errors    []NodeError         `json:"xs,omitempty"`
	// Nodes are the latest activations by node id.
	Nodes map[string]*NodeView `json:"n"`
	// Sequence are node ids in the order their activations began, the last ones; SequenceCut is how many came before these. Steps
	// inside a node are not part of it.
	Sequence    []string `json:"s,omitempty"`
	SequenceCut int64    `json:"sc,omitempty"`
	// From is the node that it began at, if it did not begin at every node without an incoming connection.
	From string `json:"f,omitempty"`
	// Open are the activations that have begun and not ended, by id.
	Open map[engine.ActivationID]*ActivationView `json:"o,omitempty"`
	// Questions are what people are asked, by id.
	Questions map[engine.AskID]Asked `json:"q,omitempty"`
	// Below are the questions of executions that this one waits for, by the child that is asked in.
	Below map[string]Below `json:"bl,omitempty"`
	// Last is the node whose activation began last.
	Last string `json:"l,omitempty"`
	// Acts are what people did to it, the last ones.
	Acts []Act `json:"k,omitempty"`
	// Retries is how often something was tried again.
	Retries int64 `json:"rt,omitempty"`
}

// NodeView is what is known about a node: its activation that began last, and how many there were.
type NodeView struct {
	ActivationView
	Count int64 `json:"i,omitempty"`
	// Recent are the last activations, oldest first, when there were several.
	Recent []ActivationNote `json:"h,omitempty"`
}

// ActivationView is what is known about an activation.
type ActivationView struct {
	Node       string              `json:"m"`
	ID         engine.ActivationID `json:"a"`
	Status     engine.NodeStatus   `json:"t"`
	Generation uint32              `json:"g,omitempty"`
	Attempt    uint32              `json:"p,omitempty"`
	Retries    uint32              `json:"r,omitempty"`
	Started    int64               `json:"b,omitempty"`
	Ended      int64               `json:"e,omitempty"`
	// NextAt is when a retry is due.
	NextAt  int64           `json:"d,omitempty"`
	Error   *fault.Error    `json:"x,omitempty"`
	Outputs []engine.Output `json:"o,omitempty"`
	Detail  json.RawMessage `json:"y,omitempty"`
	Credits float64         `json:"c,omitempty"`
	// Warnings are what its runs have warned of, each once, at most [MaxWarnings].
	Warnings []dataflow.Warning `json:"wn,omitempty"`
	// Used is what it has used of paid services, its steps included.
	Used Usage `json:"u,omitzero"`
	// Row is the sequence number of the row that it was last changed by.
	Row uint64 `json:"w,omitempty"`
}

// NodeError is the failure of a node.
type NodeError struct {
	Activation engine.ActivationID `json:"a"`
	Error      *fault.Error        `json:"e"`
	Time       int64               `json:"t"`
}

// Asked is a question that is open.
type Asked struct {
	Activation engine.ActivationID `json:"a"`
	Purpose    string              `json:"p"`
	Ref        engine.Ref          `json:"r,omitempty"`
	Since      int64               `json:"t"`
}

// What a view keeps of what has no bound of its own.
const (
	maxSequence   = 1000
	maxViewErrors = 100
	// MaxRecent is how many activations of a node are shown with it; the others are listed separately.
	MaxRecent   = 20
	maxViewActs = 100
)

// NewView returns the view of an empty journal.
func NewView(graph *workflow.Graph) *View {
	return &View{graph: graph, Status: engine.StatusNew, Nodes: map[string]*NodeView{}, Open: map[engine.ActivationID]*ActivationView{},
		Questions: map[engine.AskID]Asked{}}
}

// restore completes a view that was read.
func (v *View) restore(graph *workflow.Graph) {
	v.graph = graph
	if v.Nodes == nil {
		v.Nodes = map[string]*NodeView{}
	}
	if v.Open == nil {
		v.Open = map[engine.ActivationID]*ActivationView{}
	}
	if v.Questions == nil {
		v.Questions = map[engine.AskID]Asked{}
	}
}

// NodeOf returns the id of the node that an activation is of: the last part of its path, as the workflow writes it. A step
// that a program made is named after the node it belongs to: node.step; the steps of a node that is the whole workflow are
// what the workflow consists of, and have their own names.
func NodeOf(graph *workflow.Graph, id engine.ActivationID) string {
	scope, name := id.Split()
	if i, ok := nodeAt(graph, scope, name); ok {
		return graph.Nodes[i].ID
	}
	owner, ok := OwnerOf(scope)
	if !ok {
		return name
	}
	outer, opener := owner.Split()
	if i, ok := nodeAt(graph, outer, opener); ok && graph.Nodes[i].Plan.Whole {
		return name
	}
	return NodeOf(graph, owner) + "." + name
}

// nodeAt returns the node of the workflow that a name in a scope stands for. A program may call a step of a node by the id of
// another: what belongs to no body of the scope's owner is a step.
func nodeAt(graph *workflow.Graph, scope, name string) (int, bool) {
	i, ok := graph.Segment(name)
	if !ok || scope == "" {
		return i, ok
	}
	owner := engine.ActivationID(scope[:strings.LastIndexByte(scope, '[')])
	outer, opener := owner.Split()
	o, ok := nodeAt(graph, outer, opener)
	return i, ok && graph.Nodes[o].Opens > 0 && graph.Nodes[o].Opens == graph.Nodes[i].Body
}

// Filling says whether an activation is a step in which the input of a node is filled.
func Filling(graph *workflow.Graph, id engine.ActivationID) bool {
	scope, name := id.Split()
	if scope == "" || name != engine.FillingName && name != engine.AskingName {
		return false
	}
	_, known := nodeAt(graph, scope, name)
	return !known
}

// Owner returns the node that an activation works for: its own, or the one whose program made it a step. There is none for
// the steps of a program that is the whole execution.
func Owner(graph *workflow.Graph, id engine.ActivationID) (node int, step, ok bool) {
	for {
		scope, name := id.Split()
		if i, known := nodeAt(graph, scope, name); known {
			return i, step, true
		}
		step = true
		if id, ok = OwnerOf(scope); !ok {
			return 0, true, false
		}
	}
}

// OwnerOf returns the activation that opened a scope; the top level has none.
func OwnerOf(scope string) (engine.ActivationID, bool) {
	if scope == "" || strings.HasSuffix(scope, "[]") {
		return "", false
	}
	owner, _ := splitIteration(scope)
	return owner, true
}

// Iteration returns the number of the innermost iteration that an activation belongs to.
func Iteration(id engine.ActivationID) (int64, bool) {
	scope, _ := id.Split()
	if scope == "" || strings.HasSuffix(scope, "[]") {
		return 0, false
	}
	_, index := splitIteration(scope)
	return index, true
}

// follow is Apply for rows that are read.
func (v *View) follow(row *Row) error {
	if row.Seq != v.Seq+1 {
		return fault.Newf(fault.Unreadable, "row %d follows row %d; the journal has a gap", row.Seq, v.Seq)
	}
	v.Apply(row)
	return nil
}

// Apply adds the next row of the journal to the view. Rows must come in order and without a gap.
func (v *View) Apply(row *Row) {
	v.Seq, v.Updated = row.Seq, row.Time
	if v.Created == 0 {
		v.Created = row.Time
	}
	failed := map[engine.ActivationID]bool(nil)
	for i := range row.Told {
		if t := &row.Told[i]; t.What == ToldNode && t.Node == engine.NodeFailure {
			if failed == nil {
				failed = map[engine.ActivationID]bool{}
			}
			failed[t.Activation] = true
		}
	}
	for i := range row.Told {
		if t := &row.Told[i]; t.What == ToldWarnings { // before the facts, which may end the activation
			v.warned(t)
		}
	}
	for _, fact := range row.Facts {
		v.fact(row, fact, failed)
	}
	for i := range row.Told {
		v.told(row, &row.Told[i])
	}
}

func (v *View) fact(row *Row, fact engine.Fact, failed map[engine.ActivationID]bool) {
	if act, ok := ActOf(fact); ok {
		if act.Time = row.Time; len(v.Acts) == maxViewActs {
			v.Acts = v.Acts[1:]
		}
		v.Acts = append(v.Acts, act)
	}
	switch f := fact.(type) {
	case engine.ExecutionCreated:
		v.Execution, v.From = f.Execution, cmp.Or(f.StartFrom, f.Trigger)
	case engine.ExecutionForked:
		v.forkedView(row)
		v.Execution = f.Execution
	case engine.ExecutionStarted:
		v.Started = row.Time
	case engine.NodeStarted:
		if a := v.Open[f.Activation]; a != nil {
			a.Started = row.Time
			v.publish(a)
		}
	case engine.NodeCompleted:
		if failed[f.Activation] { // it is a failure that the node handles
			return
		}
		v.end(row, f.Activation, engine.NodeDone, nil, f.Outputs)
	case engine.AskAnswered:
		delete(v.Questions, f.Ask)
	case engine.ChildWaiting:
		v.childWaits(row, f)
	case engine.ChildFinished:
		delete(v.Below, f.Child)
	}
}

// noted stores what a run has noted about itself: with the activation while it is open, and with the node if it is the last of that.
func (v *View) noted(t *Told) {
	note := func(a *ActivationView) {
		if t.What == ToldRan {
			a.Started = t.Time
		} else {
			a.Detail = t.Detail
		}
	}
	open, node := v.Open[t.Activation], v.Nodes[NodeOf(v.graph, t.Activation)]
	switch {
	case node != nil && node.ID == t.Activation:
		note(&node.ActivationView)
		if open != nil {
			*open = node.ActivationView
		}
		v.publish(&node.ActivationView)
	case open != nil: // another activation of the node has begun since, in a loop that does several at once
		note(open)
		v.publish(open)
	}
}

func (v *View) told(row *Row, t *Told) {
	switch t.What {
	case ToldNode:
		v.node(row, t)
	case ToldExecution:
		v.execution(row, t)
	case ToldWithdrawn:
		delete(v.Questions, t.Ask)
	case ToldUsage:
		v.used(t)
	case ToldRan, ToldDetail:
		v.noted(t)
	}
}

// MaxWarnings is how many warnings the record of an activation holds.
const MaxWarnings = 20

// Unwarned returns those warnings that the record of an activation does not have yet and has room for.
func (v *View) Unwarned(id engine.ActivationID, list []dataflow.Warning) []dataflow.Warning {
	var known []dataflow.Warning
	if a := v.Open[id]; a != nil {
		known = a.Warnings
	}
	var fresh []dataflow.Warning
	for _, w := range list {
		if len(known)+len(fresh) < MaxWarnings && !slices.Contains(known, w) && !slices.Contains(fresh, w) {
			fresh = append(fresh, w)
		}
	}
	return fresh
}

// warned stores warnings with their activation.
func (v *View) warned(t *Told) {
	a := v.Open[t.Activation]
	var list []dataflow.Warning
	if a == nil || json.Unmarshal(t.Detail, &list) != nil {
		return // nothing that this version understands
	}
	a.Warnings = slices.Concat(a.Warnings, v.Unwarned(t.Activation, list))
	v.publish(a)
}

// Usage is what was used of paid services.
type Usage struct {
	InputTokens  int64   `json:"input_tokens,omitempty"`
	OutputTokens int64   `json:"output_tokens,omitempty"`
	CachedTokens int64   `json:"cached_tokens,omitempty"`
	Credits      float64 `json:"credits,omitempty"`
}

func (u *Usage) add(v Usage) {
	u.InputTokens += v.InputTokens
	u.OutputTokens += v.OutputTokens
	u.CachedTokens += v.CachedTokens
	u.Credits += v.Credits
}

// used counts what a run has used for its activation, for those whose steps it is part of, and for the execution.
func (v *View) used(t *Told) {
	var u Usage
	if json.Unmarshal(t.Detail, &u) != nil {
		return // nothing that this version understands
	}
	v.Used.add(u)
	v.Credits += u.Credits
	for id, ok := t.Activation, true; ok; {
		scope, name := id.Split()
		a := v.Open[id]
		if n := v.Nodes[NodeOf(v.graph, id)]; a == nil && n != nil && n.ID == id {
			a = &n.ActivationView // it ends with this row
		}
		if a != nil {
			a.Used.add(u)
			a.Credits += u.Credits
			v.publish(a)
		}
		if _, node := nodeAt(v.graph, scope, name); node {
			return // a loop is not charged for what runs in it
		}
		id, ok = OwnerOf(scope)
	}
}

func (v *View) node(row *Row, t *Told) {
	switch t.Node {
	case engine.NodeSkip, engine.NodeCanceled, engine.NodeFailure:
		v.end(row, t.Activation, t.Node, t.Error, handedOn(row, t))
		return
	}
	if t.Node == engine.NodeRetrying && v.retries(t.Activation, t.Time) {
		return // a fork waits for what its source has waited for
	}
	a := v.Open[t.Activation]
	if a == nil || t.First() {
		again := a != nil && a.Generation == t.Generation // a fork begins what its source had begun
		a = &ActivationView{Node: NodeOf(v.graph, t.Activation), ID: t.Activation, Started: row.Time}
		v.Open[t.Activation] = a
		v.begin(a, again)
	}
	a.Status, a.Generation, a.Error, a.NextAt, a.Row = t.Node, t.Generation, t.Error, 0, row.Seq
	a.Attempt = max(a.Attempt, t.Attempt, 1)
	switch t.Node {
	case engine.NodeRetrying:
		a.NextAt = t.Time
		a.Retries++
		v.Retries++
	case engine.NodeWaitingInput:
		v.Questions[t.Ask] = Asked{Activation: t.Activation, Purpose: t.Purpose, Ref: t.Ref, Since: row.Time}
	}
	v.publish(a)
	v.waitsInside(a)
}

// retries says whether an activation is known to wait for this retry.
func (v *View) retries(id engine.ActivationID, until int64) bool {
	a := v.Open[id]
	return a != nil && a.Status == engine.NodeRetrying && a.NextAt == until
}

// begin notes that an activation has begun, or begins again and was counted before.
func (v *View) begin(a *ActivationView, again bool) {
	n := v.Nodes[a.Node]
	if n == nil {
		n = &NodeView{}
		v.Nodes[a.Node] = n
	}
	if !again {
		v.follows(a)
		n.remember(a)
		n.Count++
	}
	v.Last = a.Node
	n.ActivationView = *a
	if v.began != nil {
		v.began(a)
	}
}

// publish copies what is known about an activation to its node, if it is the one that began last.
func (v *View) publish(a *ActivationView) {
	if v.changed != nil {
		v.changed(a)
	}
	n := v.Nodes[a.Node]
	if n == nil {
		return
	}
	n.update(a)
	if n.ID == a.ID {
		n.ActivationView = *a
	}
}

// handedOn is the output of a node that has failed and handles its failure.
func handedOn(row *Row, t *Told) []engine.Output {
	if t.Node != engine.NodeFailure {
		return nil
	}
	for _, fact := range row.Facts {
		switch f := fact.(type) {
		case engine.NodeFailed:
			if f.Activation == t.Activation {
				return f.Outputs
			}
		case engine.NodeCompleted:
			if f.Activation == t.Activation {
				return f.Outputs
			}
		}
	}
	return nil
}

func (v *View) end(row *Row, id engine.ActivationID, status engine.NodeStatus, err *fault.Error, outputs []engine.Output) {
	a, inside := v.Open[id], false
	if a == nil {
		a = &ActivationView{Node: NodeOf(v.graph, id), ID: id}
		if n := v.Nodes[a.Node]; n != nil && n.ID == id {
			*a = n.ActivationView // it was ended before, and an operator has ended it again
		} else {
			if n == nil {
				n = &NodeView{}
				v.Nodes[a.Node] = n
			}
			n.remember(a)
			n.Count++
			n.ActivationView = *a
			if v.began != nil {
				v.began(a)
			}
		}
	}
	delete(v.Open, id)
	maps.DeleteFunc(v.Below, func(_ string, b Below) bool { return b.Activation == id })
	if status == engine.NodeFailure && err == nil {
		err, inside = v.FailureInside(row, id), true
	}
	a.Status, a.Ended, a.Error, a.NextAt, a.Row = status, row.Time, err, 0, row.Seq
	if outputs != nil {
		a.Outputs = outputs
	}
	switch status {
	case engine.NodeDone:
		if i, ok := v.graph.Node(a.Node); ok {
			a.Credits += v.graph.Nodes[i].Plan.Credits
			v.Credits += v.graph.Nodes[i].Plan.Credits
		}
	case engine.NodeFailure:
		if err != nil && !inside && len(v.Errors) < maxViewErrors {
			v.Errors = append(v.Errors, NodeError{id, err, row.Time})
		}
	}
	v.publish(a)
}

func (v *View) execution(row *Row, t *Told) {
	if v.Ended != 0 && !t.Status.Final() {
		v.WaitedMS += max(0, row.Time-v.Ended) // for the person who lets it go on
	}
	if waits(v.Status) && !waits(t.Status) && v.Waiting != 0 {
		v.WaitedMS += max(0, row.Time-v.Waiting)
		v.Waiting = 0
	}
	if waits(t.Status) && v.Waiting == 0 {
		v.Waiting = row.Time
	}
	v.Status = t.Status
	v.Error, v.ErrorNode, v.Ended = t.Error, t.Activation, 0
	if t.Status.Final() {
		v.Ended = row.Time
	}
}

// knows says whether a command was shown before: after a crash the engine asks again for what is in force.
func (v *View) knows(c engine.Command) bool {
	switch c := c.(type) {
	case engine.Ask:
		_, asked := v.Questions[c.Ask]
		return asked
	case engine.Sleep:
		a := v.Open[c.Activation]
		return c.Purpose == engine.TimerRetry && a != nil && a.Status == engine.NodeRetrying && a.NextAt == c.Until
	}
	return false
}

// waits says whether an execution with this status waits for a person.
func waits(s engine.Status) bool {
	return s == engine.StatusWaitingForHuman || s == engine.StatusPaused
}

// DurationMS is the run time as of now, in Unix milliseconds, without waiting for people.
func (v *View) DurationMS(now int64) int64 {
	if v.Started == 0 {
		return 0
	}
	waited := v.WaitedFor(now)
	if v.Ended != 0 {
		now = v.Ended
	}
	return max(0, now-v.Started-waited)
}

// WaitedFor is how long it has waited for people, in milliseconds.
func (v *View) WaitedFor(now int64) int64 {
	if v.Ended == 0 && v.Waiting != 0 {
		return v.WaitedMS + max(0, now-v.Waiting)
	}
	return v.WaitedMS
}
