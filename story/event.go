package story

import (
	"context"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"tandem/api"
	"tandem/dataflow"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/workflow"
)

// Vocabulary is the words in which a stream tells what happens.
type Vocabulary string

const (
	VocabularyExecution Vocabulary = "execution"
	VocabularyFlow      Vocabulary = "flow"
)

// ParseVocabulary reads the name of a vocabulary; empty is the one of executions.
func ParseVocabulary(text string) (Vocabulary, error) {
	switch v := Vocabulary(text); v {
	case "":
		return VocabularyExecution, nil
	case VocabularyExecution, VocabularyFlow:
		return v, nil
	}
	return "", api.WrongField("vocabulary", "%q is not \"execution\" or \"flow\"", text)
}

// Position is a place in a stream: behind a part of a row. Parts count from 1; the last of a row is not known beforehand, so
// behind the whole row is behind the largest number.
type Position struct {
	seq  uint64
	part int
}

const wholeRow = math.MaxInt

// ParsePosition reads "17" (behind row 17) or "17.2" (behind its second frame). Nothing is the beginning.
func ParsePosition(name, text string) (Position, error) {
	if text == "" {
		return Position{part: wholeRow}, nil
	}
	seq, part, dotted := strings.Cut(text, ".")
	p := Position{part: wholeRow}
	var err error
	if p.seq, err = strconv.ParseUint(seq, 10, 64); err == nil && dotted {
		var n uint64
		n, err = strconv.ParseUint(part, 10, 31)
		p.part = int(n)
	}
	if err != nil {
		return Position{}, api.WrongField(name, "%q is not a position in a stream; write the id of the last event, as in 17 or 17.2", text)
	}
	return p, nil
}

// before is the row that has to be known to tell what follows the position.
func (p Position) before() uint64 {
	if p.part == wholeRow || p.seq == 0 {
		return p.seq
	}
	return p.seq - 1
}

// passes says that a frame comes after the position.
func (p Position) passes(seq uint64, part int) bool {
	return seq > p.seq || seq == p.seq && part > p.part
}

// Frame is one event of a stream, encoded. It is shared by all who read it.
type Frame struct {
	// Seq and part are its id; seq is zero for output while it is made, which has none.
	Seq  uint64
	part int
	Name string
	Body []byte
}

// ID is the position of the frame in the stream, from which a reader may go on: "seq.part".
func (f *Frame) ID() string {
	return strconv.FormatUint(f.Seq, 10) + "." + strconv.Itoa(f.part)
}

// teller tells the rows of one execution in one vocabulary. What it says of a row follows from the journal up to that row,
// so it is the same whenever the row is told. It has one user at a time.
type teller struct {
	*host.Follower
	subject *subject
	words   Vocabulary
	// task is there for a task that is told in the flow vocabulary.
	task *taskWords
}

// subject is what is told about: an execution and what is known of it beside its journal.
type subject struct {
	journal host.Journal
	// name is the workflow's.
	name string
	// address tells who follows how the waits are ended; nil: they may not know.
	address addresses
	// toUser are the nodes whose output is for the user while it is made.
	toUser map[string]bool
}

// teller returns one that stands behind a row.
func (s *subject) teller(ctx context.Context, words Vocabulary, seq uint64) (*teller, error) {
	f, err := s.journal.Follow(ctx, seq, words == VocabularyFlow)
	if err != nil {
		return nil, err
	}
	t := &teller{Follower: f, subject: s, words: words}
	if node, ok := taskNode(s.journal.Graph); ok && words == VocabularyFlow {
		err = s.taskTeller(ctx, t, node)
	}
	return t, err
}

// tellRow applies the next row and returns its frames.
func (t *teller) tellRow(ctx context.Context, row *host.Row) ([]Frame, error) {
	list := changes(row, t.View(), t.subject.journal.Graph)
	var steps map[engine.ActivationID]taskStep
	if t.task != nil {
		var err error
		if steps, err = t.knownSteps(list); err != nil {
			return nil, err
		}
	}
	commands, err := t.Apply(row)
	if err != nil {
		return nil, err
	}
	var events []api.Event
	if t.task != nil {
		events, err = t.tellTask(ctx, row, list, steps, commands)
	} else {
		events, err = t.events(ctx, row, list, commands)
	}
	if err != nil {
		return nil, err
	}
	frames := make([]Frame, len(events))
	for i := range events {
		e := &events[i]
		e.ExecutionID, e.Seq, e.Part, e.Timestamp = t.subject.journal.Execution, row.Seq, i+1, row.Time
		body, err := json.Marshal(e)
		if err != nil {
			return nil, fault.Newf(fault.Internal, "encode event %d.%d of execution %q: %w", row.Seq, i+1, e.ExecutionID, err)
		}
		frames[i] = Frame{row.Seq, i + 1, e.EventType, body}
	}
	return frames, nil
}

// events tells the changes of a row, one after the other.
func (t *teller) events(ctx context.Context, row *host.Row, list []change, commands []engine.Command) ([]api.Event, error) {
	var events []api.Event
	for i := range list {
		var more []api.Event
		var err error
		if t.words == VocabularyFlow {
			more, err = t.flow(ctx, row, &list[i], commands)
		} else {
			more, err = t.execution(ctx, row, &list[i])
		}
		if err != nil {
			return nil, err
		}
		events = append(events, more...)
	}
	if t.words != VocabularyFlow {
		return events, nil
	}
	more, err := t.filledInputs(row, commands)
	return append(events, more...), err
}

// value reads what a row refers to; a large value is told by its name.
func (t *teller) value(ctx context.Context, row *host.Row, ref engine.Ref) (json.RawMessage, error) {
	if ref == "" {
		return nil, nil
	}
	value, large, err := t.Value(ctx, row, ref)
	if host.IsUnreadable(err) {
		return nil, nil // the rest of what happened can be told
	}
	if err != nil {
		return nil, err
	}
	if large != nil {
		return blobJSON(*large)
	}
	return value, nil
}

// values reads the payloads of an activation by reference.
func (t *teller) values(ctx context.Context, row *host.Row, list []engine.Output) (map[engine.Ref]json.RawMessage, error) {
	if len(list) == 0 {
		return nil, nil
	}
	values := make(map[engine.Ref]json.RawMessage, len(list))
	for _, o := range list {
		value, err := t.value(ctx, row, o.Ref)
		if err != nil {
			return nil, err
		}
		values[o.Ref] = value
	}
	return values, nil
}

// happening is what can be told of a row, before it is put into the words of a vocabulary.
type happening int

const (
	executionStarted happening = iota
	executionResumed
	executionPaused
	executionEnded
	nodeStarted
	nodeCompleted
	nodeFailed
	nodeSkipped
	nodeCanceled
	nodeRetrying
	nodeWaiting
	inputRequired
)

// change is one thing that a row changed.
type change struct {
	what happening
	// status is the execution's, after the row; reason who made it stop or go on; err why it ended.
	status engine.Status
	reason string
	err    *fault.Error
	// node is the activation as the row leaves it, or the one whose failure ended the execution.
	node host.ActivationView
	told *host.Told
	// below is the question of an execution below that the node waits for, if it is not its own.
	below *host.AskedBelow
}

// Who stops an execution or lets it go on.
const (
	reasonHuman    = "human"
	reasonOperator = "operator"
)

// changes tells what a row changes, in the order it is told: that the execution goes on, what became of its nodes, that it
// stopped or ended. View is how things stood before.
func changes(row *host.Row, view *host.View, graph *workflow.Graph) []change {
	c := &changing{row: row, view: view, graph: graph, nodes: map[engine.ActivationID]*host.ActivationView{}}
	c.scan()
	before, after := view.Status, view.Status
	var end *host.Told
	for i := range row.Told {
		if t := &row.Told[i]; t.What == host.ToldExecution {
			after, end = t.Status, t
		}
	}
	c.begin(before, after)
	for _, fact := range row.Facts {
		c.fact(fact)
	}
	for i := range row.Told {
		c.noteTold(&row.Told[i])
	}
	if end != nil {
		c.stop(end)
	}
	for i := range c.list {
		c.list[i].status = after
	}
	return c.list
}

type changing struct {
	row   *host.Row
	view  *host.View
	graph *workflow.Graph
	list  []change
	// nodes are the activations that the row is about, as far as it was gone through.
	nodes map[engine.ActivationID]*host.ActivationView
	// failed are the activations that the row ends with a failure, begun those that it begins, told those whose beginning
	// was told already.
	failed, begun, told map[engine.ActivationID]bool
	ran                 map[engine.ActivationID]int64
	warnings            map[engine.ActivationID][]dataflow.Warning
	details             map[engine.ActivationID]json.RawMessage
}

// scan notes what the row says about activations as a whole.
func (c *changing) scan() {
	for i := range c.row.Told {
		t := &c.row.Told[i]
		switch {
		case t.What == host.ToldNode && t.Node == engine.NodeFailure:
			note(&c.failed, t.Activation, true)
		case t.First():
			note(&c.begun, t.Activation, true)
		case t.What == host.ToldRan:
			note(&c.ran, t.Activation, t.Time)
		case t.What == host.ToldDetail:
			note(&c.details, t.Activation, t.Detail)
		case t.What == host.ToldWarnings:
			var list []dataflow.Warning
			if json.Unmarshal(t.Detail, &list) == nil { // else nothing that this version understands
				note(&c.warnings, t.Activation, list)
			}
		}
	}
}

// note writes into a map that most rows need not have.
func note[V any](m *map[engine.ActivationID]V, id engine.ActivationID, value V) {
	if *m == nil {
		*m = map[engine.ActivationID]V{}
	}
	(*m)[id] = value
}

// begin tells that the execution starts or goes on.
func (c *changing) begin(before, after engine.Status) {
	for _, fact := range c.row.Facts {
		switch fact.(type) {
		case engine.ExecutionStarted, engine.ExecutionForked:
			c.list = append(c.list, change{what: executionStarted})
			return
		}
	}
	if after != engine.StatusRunning && after != engine.StatusWaiting {
		return
	}
	switch {
	case before == engine.StatusWaitingForHuman:
		c.list = append(c.list, change{what: executionResumed, reason: reasonHuman})
	case before == engine.StatusPaused || before.Final():
		c.list = append(c.list, change{what: executionResumed, reason: reasonOperator})
	}
}

// stop tells that the execution stopped for somebody, or ended.
func (c *changing) stop(t *host.Told) {
	switch {
	case t.Status.Final():
		c.list = append(c.list, change{what: executionEnded, err: t.Error,
			node: host.ActivationView{ID: t.Activation, Node: host.NodeOf(c.graph, t.Activation)}})
	case t.Status == engine.StatusWaitingForHuman:
		c.list = append(c.list, change{what: executionPaused, reason: reasonHuman})
	case t.Status == engine.StatusPaused:
		c.list = append(c.list, change{what: executionPaused, reason: reasonOperator})
	}
}

// node is the activation as far as the row was gone through.
func (c *changing) node(id engine.ActivationID) *host.ActivationView {
	if a := c.nodes[id]; a != nil {
		return a
	}
	a := &host.ActivationView{Node: host.NodeOf(c.graph, id), ID: id}
	if open := c.view.Open[id]; open != nil {
		*a = *open
	} else if last := c.view.Nodes[a.Node]; last != nil && last.ID == id {
		*a = last.ActivationView // it had ended, and an operator ends it again
	}
	c.nodes[id] = a
	return a
}

func (c *changing) fact(fact engine.Fact) {
	switch f := fact.(type) {
	case engine.NodeStarted:
		c.node(f.Activation).Started = c.row.Time
	case engine.NodeFailed:
		c.node(f.Activation).Outputs = f.Outputs
	case engine.NodeCompleted:
		if c.begun[f.Activation] && c.view.Open[f.Activation] == nil {
			c.start(f.Activation, f.Generation) // it was done before its beginning was recorded
		}
		a := c.node(f.Activation)
		a.Outputs = f.Outputs
		if c.failed[f.Activation] {
			return
		}
		if i, ok := c.graph.Node(a.Node); ok {
			a.Credits += c.graph.Nodes[i].Plan.Credits
		}
		c.end(a, nodeCompleted, engine.NodeDone, nil, nil)
	case engine.NodeSuspended:
		c.awaitsCall(f)
	case engine.ChildWaiting:
		c.askedBelow(f)
	}
}

// awaitsCall tells that a node begins to wait for a call. Other waits are not told: what they wait for is in the workflow.
func (c *changing) awaitsCall(f engine.NodeSuspended) {
	detail, ok := c.details[f.Activation]
	if !ok {
		return
	}
	if c.begun[f.Activation] && c.view.Open[f.Activation] == nil {
		c.start(f.Activation, f.Generation) // it waits before its beginning was recorded
	}
	a := *c.node(f.Activation)
	a.Detail = detail
	if _, awaits := AwaitedCall(c.graph, &a); awaits {
		c.list = append(c.list, change{what: nodeWaiting, node: a})
	}
}

// askedBelow tells that a child asks: its node waits for the answers.
func (c *changing) askedBelow(f engine.ChildWaiting) {
	if f.Activation == "" || c.view.Open[f.Activation] == nil {
		return
	}
	a := c.node(f.Activation)
	if a.Status = engine.NodeRunning; !f.Human {
		return
	}
	a.Status = engine.NodeWaitingInput
	var asked []host.AskedBelow
	if len(f.Asked) > 0 && json.Unmarshal(f.Asked, &asked) != nil {
		return // nothing that this version understands; the status says that somebody is asked
	}
	for i := range asked {
		told := &host.Told{What: host.ToldNode, Activation: f.Activation, Generation: a.Generation,
			Node: engine.NodeWaitingInput, Purpose: asked[i].Purpose}
		c.list = append(c.list, change{what: inputRequired, node: *a, told: told, below: &asked[i]})
	}
}

func (c *changing) noteTold(t *host.Told) {
	if t.What != host.ToldNode {
		return
	}
	switch t.Node {
	case engine.NodeRunning:
		if t.First() && !c.told[t.Activation] {
			c.start(t.Activation, t.Generation)
		}
	case engine.NodeFailure:
		err := t.Error
		if err == nil {
			err = c.view.FailureInside(c.row, t.Activation)
		}
		c.end(c.node(t.Activation), nodeFailed, t.Node, err, t)
	case engine.NodeSkip:
		c.end(c.node(t.Activation), nodeSkipped, t.Node, t.Error, t)
	case engine.NodeCanceled:
		c.end(c.node(t.Activation), nodeCanceled, t.Node, t.Error, t)
	case engine.NodeRetrying:
		a := c.node(t.Activation)
		a.Status, a.Error, a.NextAt = t.Node, t.Error, t.Time
		a.Retries++
		c.list = append(c.list, change{what: nodeRetrying, node: *a, err: t.Error, told: t})
	case engine.NodeWaitingInput:
		a := c.node(t.Activation)
		a.Status, a.Error, a.NextAt = t.Node, nil, 0
		c.list = append(c.list, change{what: inputRequired, node: *a, told: t})
	}
}

// start tells that an activation begins, or begins anew.
func (c *changing) start(id engine.ActivationID, generation uint32) {
	note(&c.told, id, true)
	a := &host.ActivationView{Node: host.NodeOf(c.graph, id), ID: id, Status: engine.NodeRunning, Generation: generation,
		Attempt: 1, Started: c.row.Time}
	c.nodes[id] = a
	c.list = append(c.list, change{what: nodeStarted, node: *a})
}

// end tells that an activation has ended.
func (c *changing) end(a *host.ActivationView, what happening, status engine.NodeStatus, err *fault.Error, t *host.Told) {
	a.Status, a.Error, a.Ended, a.NextAt = status, err, c.row.Time, 0
	if at, ok := c.ran[a.ID]; ok {
		a.Started = at
	}
	if detail, ok := c.details[a.ID]; ok {
		a.Detail = detail
	}
	if list, ok := c.warnings[a.ID]; ok {
		a.Warnings = list
	}
	if t != nil {
		a.Generation = t.Generation
	}
	c.list = append(c.list, change{what: what, node: *a, err: err, told: t})
}
