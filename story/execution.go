package story

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"

	"tandem/agent"
	"tandem/api"
	"tandem/dataflow"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/human"
	"tandem/identity"
	"tandem/node"
	"tandem/revisions"
	"tandem/store"
	"tandem/workflow"
)

// Reading is an execution that is being read. It lives as long as a request.
type Reading struct {
	lib     *Library
	p       identity.Principal
	Summary store.Execution
	Ready   *revisions.Ready
	Graph   *workflow.Graph
	Journal host.Journal
	// View and start are there after readExecution, and are not changed. Known has values that need not be read, if it is there.
	View  *host.View
	Start host.Start
	known knownValues
	// trail is what a task has done, once it was asked for.
	trail *trail
	// beyond says that something was told that changes without a row of this execution: what others do that it has started.
	beyond bool
}

// knownValues are values that are at hand. More can be added to some.
type knownValues interface {
	Value(ref engine.Ref) (json.RawMessage, bool)
}

// OpenExecution finds an execution and the revision that it is pinned to.
func (l *Library) OpenExecution(ctx context.Context, p identity.Principal, id string) (*Reading, error) {
	summary, err := l.Executions.Get(ctx, p, id)
	if err != nil {
		return nil, err
	}
	return l.openSummary(ctx, p, id, summary)
}

// openSummary is openJournal for an execution whose summary is at hand.
func (l *Library) openSummary(ctx context.Context, p identity.Principal, id string, summary store.Execution) (*Reading, error) {
	ready, err := l.Revisions.Pinned(ctx, p, summary.WorkflowID, summary.RevisionHash)
	if err != nil {
		return nil, err
	}
	r := l.reading(p, id, ready)
	r.Summary = summary
	return r, nil
}

// Begun is an execution of a revision that has just begun, with what it was started with: nothing of it was read yet.
func (l *Library) Begun(p identity.Principal, id string, ready *revisions.Ready, start host.Start) *Reading {
	r := l.reading(p, id, ready)
	r.Start = start
	return r
}

// See takes for read what somebody has seen of the execution, which is all there is.
func (r *Reading) See(seen *host.Seen) { r.View, r.known = seen.View, seen }

func (l *Library) reading(p identity.Principal, id string, ready *revisions.Ready) *Reading {
	return &Reading{lib: l, p: p, Ready: ready, Graph: ready.Graph,
		Journal: host.Journal{Source: l.Source, Principal: p, Execution: id, Graph: ready.Graph,
			Revision: ready.Fold, Programs: agent.Programs()}}
}

// ReadExecution reads an execution as people look at it.
func (l *Library) ReadExecution(ctx context.Context, p identity.Principal, id string) (r *Reading, err error) {
	known, keep := l.Hub.Finished(host.Ref{Workspace: p.Workspace, Execution: id})
	if known != nil {
		if summary, kept := known.Summary.(store.Execution); kept { // no row has come since it was read, so it is what it was
			if r, err = l.openSummary(ctx, p, id, summary); err != nil {
				return nil, err
			}
			r.View, r.Start, r.known = known.View, known.Start, known
			return r, nil
		}
		r, _, err = l.readAnew(ctx, p, id)
		return r, err
	}
	var read bool
	defer func() {
		if !read {
			keep(nil, host.Start{}, nil)
		}
	}()
	r, values, err := l.readAnew(ctx, p, id)
	if err != nil {
		return nil, err
	}
	read = true
	var summary any
	if r.Summary.Status == r.View.Status { // else one of them is of before a row that has just come
		summary = r.Summary // besides the status only what never changes of it is told
	}
	if finished := keep(r.View, r.Start, summary); r.View.Status.Final() {
		finished.Give(values)
		r.known = finished
	}
	return r, nil
}

// readAnew is readExecution for one of which nothing is kept. It returns the values in the rows that it has read, of one that has ended.
func (l *Library) readAnew(ctx context.Context, p identity.Principal, id string) (*Reading, map[engine.Ref]json.RawMessage, error) {
	summary, rows, whole, err := l.Executions.GetWithRows(ctx, p, id)
	if err != nil {
		return nil, nil, err
	}
	r, err := l.openSummary(ctx, p, id, summary)
	if err != nil {
		return nil, nil, err
	}
	values := map[engine.Ref]json.RawMessage{}
	gather := func(level int, row *host.Row) {
		for n, value := range row.Values {
			if _, large := row.Large[n]; !large && len(row.Beside[n]) == 0 && len(value) > 0 && len(values) < maxTold {
				values[host.Place{Level: level, Seq: row.Seq, N: n}.Ref()] = value
			}
		}
	}
	if !summary.Status.Final() {
		gather = func(int, *host.Row) {}
	}
	if whole {
		r.View, r.Start, err = r.Journal.ViewOf(ctx, readRows(rows), gather)
	} else {
		r.View, r.Start, err = r.Journal.ViewRows(ctx, gather)
	}
	return r, values, err
}

// readRows are rows of a journal as they are read from their stored form.
func readRows(stored []store.Row) iter.Seq2[host.Row, error] {
	return func(yield func(host.Row, error) bool) {
		for _, row := range stored {
			if !yield(host.ReadRow(row.Seq, row.Time, row.Body), nil) {
				return
			}
		}
	}
}

// maxTold is how many values are gathered while an execution is read, in the hope that they are wanted.
const maxTold = 100

// outputRefs are the references of all outputs.
func outputRefs(list []host.ActivationView) []engine.Ref {
	var refs []engine.Ref
	for i := range list {
		for _, o := range list[i].Outputs {
			if o.Ref != "" {
				refs = append(refs, o.Ref)
			}
		}
	}
	return refs
}

// tellActivation tells an activation with its outputs, as far as their values are given. Language is that of the execution.
func tellActivation(graph *workflow.Graph, language string, a *host.ActivationView,
	values map[engine.Ref]json.RawMessage) (api.NodeExecution, error) {
	e := api.NodeExecution{
		NodeName: a.Node, Status: string(a.Status), StartTime: a.Started, EndTime: a.Ended, ExecutionDetails: a.Detail,
		RetryCount: int(a.Retries), CreditsConsumed: a.Credits, TokensUsed: tokensOf(a.Used), ActivationID: string(a.ID),
		Generation: int(a.Generation), Attempt: int(a.Attempt), NextAt: a.NextAt,
	}
	for _, w := range a.Warnings {
		e.Warnings = append(e.Warnings, api.NodeWarning(w))
	}
	if e.NodeID = a.Node; a.ID != "" {
		e.NodeID, e.InnerStep = host.Shown(graph, a.ID)
	}
	if a.Started > 0 && a.Ended > 0 {
		e.DurationMS = max(0, a.Ended-a.Started)
	}
	if index, ok := host.Iteration(a.ID); ok {
		e.Iteration = &index
	}
	if len(a.Outputs) > 0 {
		e.OutputData = outputsByKey(a.Outputs, values)
	}
	if i, ok := graph.Node(a.Node); ok { // otherwise it is a step that a program made
		n := &graph.Nodes[i]
		e.NodeName, e.Effect, e.MaxRetries, e.Pinned = n.Name, string(n.Plan.Effect), n.Plan.MaxRetries, n.Pinned
		e.NodeType, e.NodeSubtype, _ = strings.Cut(n.Kind, ".")
	} else if host.Filling(graph, a.ID) {
		e.NodeName, e.Effect = node.FillingTitle().In(language), string(workflow.Idempotent)
		e.NodeType, e.NodeSubtype, _ = strings.Cut(node.SlotKind, ".")
	} else if i, step, ok := host.Owner(graph, a.ID); ok && step && graph.Nodes[i].Plan.Whole {
		tellTaskStep(a, language, &e)
	} else if ok && step {
		tellStep(graph, i, language, a, &e)
	}
	var err error
	if e.ExecutionDetails, err = flowDetails(graph, a, e.ExecutionDetails); err != nil {
		return e, err
	}
	if e.NodeType == agent.ToolType && e.InnerStep == "" {
		e.ExecutionDetails = toolDetails(e.ExecutionDetails, e.OutputData["result"])
	}
	e.Error, err = nodeErrorOf(a.Error, max(a.Ended, a.Started))
	return e, err
}

func outputsByKey(list []engine.Output, values map[engine.Ref]json.RawMessage) map[string]json.RawMessage {
	outputs := make(map[string]json.RawMessage, len(list))
	for _, o := range list {
		value := values[o.Ref]
		if len(value) == 0 {
			value = json.RawMessage("null")
		}
		outputs[o.Key] = value
	}
	return outputs
}

// tellError tells why an execution or a node of it failed. What only operators may know is for them.
func (r *Reading) tellError(f *fault.Error, activation engine.ActivationID, at int64) api.ExecutionError {
	e := executionErrorOf(r.Graph, f, activation, at)
	if seesDetail(r.p) {
		e.StackTrace = f.Detail
	}
	return *e
}

// seesDetail says whether somebody may see what only operators may know. Whatever else a reading shows is for all readers of the
// workspace alike: answers are kept by this ([host.Reader]).
func seesDetail(p identity.Principal) bool { return p.Has(identity.Admin, identity.Operator) }

// Failure is why the execution failed; nil if it did not.
func (r *Reading) Failure() *api.ExecutionError {
	if r.View.Error == nil {
		return nil
	}
	e := r.tellError(r.View.Error, r.View.ErrorNode, r.View.Ended)
	return &e
}

func (r *Reading) outputsOf(names []string, values map[engine.Ref]json.RawMessage) (map[string]json.RawMessage, error) {
	outputs := make(map[string]json.RawMessage, len(names))
	for _, id := range names {
		output, err := dataflow.Output(outputsByKey(r.View.Nodes[id].Outputs, values))
		if err != nil && r.View.Error != nil && r.View.Error.Code == fault.Unreadable {
			continue // shown without it: that is why the execution was ended
		}
		if err != nil {
			return nil, err
		}
		outputs[id] = output
	}
	return outputs, nil
}

// outputNodes are the nodes whose outputs are the execution's: those its start names, else the last ones.
func (r *Reading) outputNodes() []string {
	names := r.Start.Outputs
	if len(names) == 0 {
		for _, n := range r.Graph.Bodies[0].Last {
			names = append(names, r.Graph.Nodes[n].ID)
		}
	}
	var done []string
	for _, id := range names {
		if n := r.View.Nodes[id]; n != nil && n.Status == engine.NodeDone {
			done = append(done, id)
		}
	}
	return done
}

// tellExecution describes the execution in the shape of the API.
func (r *Reading) tellExecution(ctx context.Context) (*api.Execution, error) {
	v, sum := r.View, &r.Summary
	e := &api.Execution{
		ExecutionID: sum.ID, WorkflowID: sum.WorkflowID, WorkflowName: sum.WorkflowName, WorkflowVersion: sum.WorkflowVersion,
		Revision: sum.Revision, Status: string(v.Status),
		StartTime: v.Started, EndTime: v.Ended, DurationMS: v.DurationMS(r.lib.now()), TriggerInfo: r.trigger(),
		ExecutionSequence: r.sequence(), SequenceOmitted: v.SequenceCut, Error: r.Failure(), Errors: r.failures(),
		CreditsConsumed: v.Credits, CreatedAt: sum.Created, UpdatedAt: v.Updated,
		ParentExecutionID: sum.Parent, ForkedFrom: sum.ForkedFrom, Fork: human.ForkOf(r.Start.Told()), Priority: sum.Priority, Seq: v.Seq,
		TokensUsed: tokensOf(v.Used),
	}
	if t := r.Start.Test; t != nil {
		e.Test = &api.TestRun{Name: t.Name, Node: t.Node, From: t.From, Pinned: append([]string{}, t.Pinned...), By: t.By}
	}
	e.CurrentNodeIDs, e.NextNodes = r.current(), r.next()
	if !v.Status.Final() {
		e.CurrentNodeID = r.shown(v.Last)
	}
	values, err := r.values(ctx, r.told())
	if err != nil {
		return nil, err
	}
	if err := r.tellNodes(ctx, e, values); err != nil {
		return nil, err
	}
	if v.Status.Final() {
		if e.Outputs, err = r.outputsOf(r.outputNodes(), values); err != nil {
			return nil, err
		}
	}
	if e.Questions, err = r.questions(ctx, values); err != nil {
		return nil, err
	}
	if e.Acts, err = r.acts(); err != nil {
		return nil, err
	}
	if e.Task, err = r.task(ctx, e, values); err != nil {
		return nil, err
	}
	if err := r.tasksBelow(ctx, e); err != nil {
		return nil, err
	}
	e.Metadata, e.Metrics = r.metadata(), r.metrics(e)
	return e, nameQuestions(e)
}

// told are the values that the nodes and questions of an execution are told with.
func (r *Reading) told() []engine.Ref {
	v := r.View
	refs := make([]engine.Ref, 0, len(v.Nodes)+len(v.Questions))
	for _, n := range v.Nodes { // order does not matter: the reader sorts them
		for _, o := range n.Outputs {
			if o.Ref != "" {
				refs = append(refs, o.Ref)
			}
		}
	}
	for _, q := range v.Questions { // order does not matter: the reader sorts them
		if q.Ref != "" {
			refs = append(refs, q.Ref)
		}
	}
	return refs
}

// tellNodes tells the nodes of an execution: those that were visited, with the steps inside them, and those that may still be.
func (r *Reading) tellNodes(ctx context.Context, e *api.Execution, values map[engine.Ref]json.RawMessage) (err error) {
	all := make(map[string]api.NodeExecution, max(len(r.View.Nodes), len(r.Graph.Nodes))) // with the steps inside nodes
	inside := false
	for id, n := range r.View.Nodes { // order does not matter: one entry per node
		told, err := r.tellNode(n, values)
		if err != nil {
			return err
		}
		all[id], inside = told, inside || told.InnerStep != "" || strings.Contains(told.ActivationID, "[")
	}
	if e.Conversation, err = r.conversation(ctx, all); err != nil {
		return err
	}
	if e.FullAnswer, err = r.fullAnswer(ctx, all); err != nil {
		return err
	}
	if e.NodeExecutions = all; inside {
		e.NodeExecutions = make(map[string]api.NodeExecution, len(r.Graph.Nodes))
		for id, n := range all { // order does not matter: one entry per node
			if n.InnerStep == "" {
				n.AttachedExecutions, n.Steps = attachedExecutions(id, all), r.stepsInside(n.ActivationID, all)
				e.NodeExecutions[id] = n
			}
		}
	}
	reached := r.reached()
	for i := range r.Graph.Nodes {
		n := &r.Graph.Nodes[i]
		if _, begun := e.NodeExecutions[n.ID]; begun || n.Attached || reached != nil && !reached[i] {
			continue
		}
		pending, err := tellActivation(r.Graph, r.Start.Language, &host.ActivationView{Node: n.ID, Status: engine.NodePending}, nil)
		if err != nil {
			return err
		}
		e.NodeExecutions[n.ID] = pending
	}
	return nil
}

func (r *Reading) trigger() api.TriggerInfo {
	t := api.TriggerInfo{TriggerType: r.Summary.TriggerType, UserID: r.Summary.User, TokenMadeBy: r.Summary.TokenMadeBy,
		Timestamp: r.Summary.Created, TriggerData: r.Start.Trigger, ExternalRequestID: r.Start.ExternalRequest}
	if len(t.TriggerData) > host.MaxInline {
		t.TriggerData = host.Omitted(len(t.TriggerData)) // the context has it
	}
	return t
}

// current are the nodes that have begun and not ended, in the order of the workflow.
func (r *Reading) current() []string {
	nodes := make([]string, 0, len(r.View.Open))
	for _, a := range r.View.Open { // order does not matter: sorted below
		if node, _ := host.Shown(r.Graph, a.ID); !slices.Contains(nodes, node) {
			nodes = append(nodes, node)
		}
	}
	r.inOrder(nodes)
	return nodes
}

// next are the successors of what runs that have not begun, in the order of the workflow.
func (r *Reading) next() []string {
	next := []string{}
	for _, a := range r.View.Open { // order does not matter: sorted below
		i, ok := r.Graph.Node(a.Node)
		if !ok {
			continue
		}
		for _, edge := range r.Graph.Nodes[i].Out {
			to := &r.Graph.Nodes[r.Graph.Edges[edge].To]
			if !r.Graph.Edges[edge].Back && !r.begun(a, to) && !slices.Contains(next, to.ID) {
				next = append(next, to.ID)
			}
		}
	}
	r.inOrder(next)
	return next
}

// begun says whether a successor of an activation has begun. In a loop it may have done so in an earlier iteration, which
// does not count; of iterations that run side by side only the one that began last is known.
func (r *Reading) begun(a *host.ActivationView, to *workflow.GraphNode) bool {
	last := r.View.Nodes[to.ID]
	if last == nil {
		return false
	}
	index, inside := host.Iteration(a.ID)
	of, ok := host.Iteration(last.ID)
	return !inside || !ok || of >= index
}

func (r *Reading) inOrder(nodes []string) {
	slices.SortFunc(nodes, func(a, b string) int {
		i, _ := r.Graph.Node(a)
		j, _ := r.Graph.Node(b)
		return cmp.Or(cmp.Compare(i, j), cmp.Compare(a, b))
	})
}
