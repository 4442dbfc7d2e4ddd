package local

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/tidwall/gjson"

	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/host/register"
	"tandem/node"
	"tandem/node/rundata"
	"tandem/payload"
	"tandem/store"
	"tandem/workflow"
)

// carryOut does what the engine wants, in its order, after the row that decided it is on disk.
func (o *owner) carryOut(commands []engine.Command) {
	for _, c := range commands {
		if o.next != nil && o.carry(o.next, c) {
			continue
		}
		switch c := c.(type) {
		case engine.RunNode:
			o.run(c)
		case engine.CancelNode:
			if a, ok := o.attempts[c.Activation]; ok && a.id == c.Attempt {
				a.cancel()
			}
		case engine.Sleep:
			if !o.rests() { // else it is on disk
				o.host.timers.setTimer(o.ref, c.Timer, c.Until)
			}
		case engine.CancelTimer:
			o.host.timers.clear(o.ref, c.Timer)
		case engine.StartChild:
			if !o.rests() { // else its reminder is on disk
				o.startChild(c)
			}
		case engine.TellChild:
			o.wakeChild(c.Child)
		case engine.Finish:
			o.finished()
			if o.errorWorkflow() != "" && fails(commands) && !o.rests() { // else its timer is on disk
				o.startErrorWorkflow()
			}
		}
	}
	o.finishBriefs()
}

// maxBriefInput is how large the input of a run may be that is done on the spot.
const maxBriefInput = 16 << 10

// run hands an attempt to a worker, or does it on the spot when that takes no longer.
func (o *owner) run(c engine.RunNode) {
	if a, ok := o.fold.State().Activation(c.Activation); !ok || a.Status != engine.NodeRunning || a.Attempt != c.Attempt.Attempt ||
		a.Generation != c.Generation {
		return // a later fact of the same row has taken it back
	}
	if o.rests() { // the next process runs it, or this one when it is told to
		o.rested = true
		o.push(withheld{c.Attempt})
		return
	}
	job, size, err := Job(o.fold, o.revision, c)
	if err != nil {
		o.push(outcome{c.Attempt, failure(c.Attempt, err), nil})
		return
	}
	limits := o.limits(c)
	said := o.equip(&job, c)
	_, suspect := o.suspects[c.Activation]
	if c.Node >= 0 && o.revision.Brief(c.Node) && limits.effect == workflow.Pure && size <= maxBriefInput && !suspect && !o.host.careful() {
		o.collectBrief(job, said)
		return
	}
	o.handOver(c, job, said)
}

// equip adds to a job what its run needs of the world, and returns where it is kept what the run says.
func (o *owner) equip(job *node.Job, c engine.RunNode) *said {
	said := &said{owner: o, attempt: c.Attempt, node: o.nodeOf(c), first: c.Cause.Kind == engine.CauseRun && c.Cause.Wake == nil}
	job.Out, job.Redact, job.Files, job.Code, job.Execution.Workspace = said, o.host.opts.Redact, o.files, o.host.opts.Code, o.ref.Workspace
	return said
}

func (o *owner) nodeOf(c engine.RunNode) string {
	if c.Node < 0 {
		return host.NodeOf(o.revision.Graph, c.Activation)
	}
	return o.revision.Graph.Nodes[c.Node].ID
}

// limits are what the workflow, or the program that made a step, says about a run.
func (o *owner) limits(c engine.RunNode) limits {
	l := limits{timeout: 420 * time.Second}
	ms := int64(0)
	if c.Node < 0 {
		l.effect, ms = c.Step.Effect, c.Step.TimeoutMS
	} else {
		plan := &o.revision.Graph.Nodes[c.Node].Plan
		l.effect, ms = plan.Effect, plan.TimeoutMS
	}
	if ms > 0 {
		l.timeout = time.Duration(ms) * time.Millisecond
	}
	return l
}

type limits struct {
	effect  workflow.Effect
	timeout time.Duration
}

// atOnce is how many attempts of the execution may run at once.
func (o *owner) atOnce() int {
	return cmp.Or(o.revision.Definition.Metadata.Settings.MaxConcurrentActivations, workflow.DefaultConcurrentActivations)
}

// handOver hands an attempt to a worker, as soon as there is room for it.
func (o *owner) handOver(c engine.RunNode, job node.Job, said *said) {
	ctx, cancel := context.WithCancel(o.host.ctx)
	limit := o.limits(c).timeout
	o.runs++
	n := o.runs
	o.attempts[c.Activation] = attempt{id: c.Attempt, cancel: cancel, run: n}
	o.host.running.Add(1)
	first, suspect := o.suspects[c.Activation]
	run := func(t *trial) {
		defer o.host.running.Done()
		if o.host.resting.Load() {
			o.push(withheld{c.Attempt})
			return
		}
		noted := t.beginTrial(o.host.register, o.ref, c.Attempt)
		if job.Code != nil {
			job.Code = notedCode{job.Code, noted}
		}
		said.began = time.Now().UnixMilli()
		clock := time.AfterFunc(limit, func() { o.push(overtime{c.Attempt, n}) }) // waiting for a worker does not count
		result := o.revision.Run(ctx, job)
		clock.Stop()
		noted.End()
		if o.host.ctx.Err() == nil { // a host that closes leaves the attempt to the next process
			o.push(outcome{c.Attempt, result, said})
		}
	}
	dropped := func() {
		defer o.host.running.Done()
		switch {
		case o.host.ctx.Err() != nil:
		case ctx.Err() == nil:
			o.push(withheld{c.Attempt})
		default:
			o.push(outcome{c.Attempt, failure(c.Attempt, fault.New(fault.Canceled, "the attempt was stopped before it began")), said})
		}
	}
	if suspect {
		a, _ := o.fold.State().Activation(c.Activation)
		if o.host.trials.pass(ctx, &trial{first: first, window: windowOf(a.Recoveries), run: run, drop: dropped}) {
			return
		}
	}
	o.host.gate.Pass(ctx, o.ref, o.atOnce(), func() { run(&trial{over: true}) }, dropped)
}

// notedCode is an interpreter for a run in the register: the run begins when there is room for its code and the interpreter is compiled.
type notedCode struct {
	node.Interpreter
	noted register.Entry
}

// Run implements [node.Interpreter].
func (n notedCode) Run(ctx context.Context, workspace string, now time.Time, seed string, c node.Code) (node.CodeResult, error) {
	n.noted.Waits()
	defer n.noted.Begun()
	c.Begun = n.noted.Begun
	return n.Interpreter.Run(ctx, workspace, now, seed, c)
}

func failure(attempt engine.Attempt, err error) node.Result {
	return node.Result{Fact: func(node.Put) engine.Fact { return engine.NodeFailed{Attempt: attempt, Error: fault.From(err)} }}
}

// Job gathers what a run needs from a fold, and its size. The owner of the fold calls it, and adds what the run needs from outside.
func Job(fold *host.Fold, r *node.Revision, c engine.RunNode) (job node.Job, size int, err error) {
	values, err := fold.Inputs(c)
	if err != nil {
		return job, 0, err
	}
	size = values.Size()
	data, err := fold.Data(c)
	if err != nil {
		return job, 0, err
	}
	if !r.Skims(c.Node) {
		size += data.Size()
	}
	job = newJob(c, values, data)
	if c.Step != nil {
		owner, _, ok := host.Owner(r.Graph, c.Activation)
		if !ok {
			return job, 0, fault.Newf(fault.Internal, "%q is a step of no node", c.Activation)
		}
		job.Owner, job.State = owner, values.Value(host.StateRef)
	}
	scope, ok := fold.Scope(c.Activation)
	if !ok {
		return job, size, nil
	}
	job.Scope = node.ScopeData{Last: scope.Last, Results: scope.Results, Opened: scope.Opened}
	for _, f := range scope.Failures {
		raw, err := json.Marshal(f.Error.Public())
		if err != nil {
			return job, size, err
		}
		job.Scope.Errors = append(job.Scope.Errors, node.IterationError{Index: f.Index, Error: raw})
	}
	return job, size, nil
}

func newJob(run engine.RunNode, values *host.Inputs, data host.Data) node.Job {
	prepared, _ := data.Prepared.(*node.Prepared)
	id := run.Activation // the function below keeps this alone, and not the whole command
	return node.Job{
		Prepared: prepared, InputRules: data.Start.InputRules, Run: run, Now: data.Now, Edits: data.Edits, EditsOf: data.EditsOf,
		Start: data.Start.Initial, Trigger: data.Start.Trigger,
		Data: rundata.Data{
			Layers: data.Layers, Lock: data.Lock, View: data.View, Apart: data.Apart, Handed: data.Handed, Entry: data.Entry},
		Joined: data.Joined,
		Execution: node.Execution{ID: data.Execution, WorkflowID: data.Start.WorkflowID, UserID: data.Start.UserID,
			Requesters: data.Start.Requesters, Ancestors: data.Start.Ancestors, Language: data.Start.Language},
		Value: func(ref engine.Ref) (json.RawMessage, error) {
			if ref == "" {
				ref = host.EntryRef
			}
			value, ok := values.Get(ref)
			if !ok {
				return nil, fault.Newf(fault.Internal, "the run of %q was not given the value %q", id, ref)
			}
			return value, nil
		},
	}
}

// wakeChild lets a child read its inbox, which the row has written to. A child whose start waits for room reads it when it is started.
func (o *owner) wakeChild(child string) {
	if _, err := o.host.opts.Executions.Get(o.host.ctx, o.principal(), child); !errors.Is(err, store.ErrNotFound) {
		o.host.post(store.Ref{Workspace: o.ref.Workspace, Execution: child}, delivered{})
	}
}

// startChild starts another execution and says whether it exists then. Its id follows from this one, so a repeated start finds it.
func (o *owner) startChild(c engine.StartChild) bool {
	// Who waits for a child can look for room later; one that nobody waits for is started before the execution can end.
	err := o.untilRoom(o.host.ctx, !c.Spec.Detached, func() error {
		err := o.host.patiently(o.host.ctx, func() error {
			_, err := o.host.opts.Executions.Get(o.host.ctx, o.principal(), c.Child)
			return err
		})
		if err == nil || !errors.Is(err, store.ErrNotFound) {
			return err // it was started before the crash, or nobody knows
		}
		request, err := o.host.opts.Child(o.host.ctx, o.principal(), c.Spec.Workflow, c.Spec.Revision)
		if err != nil {
			return err
		}
		var given handed
		if request.Initial, given.parts, err = o.fold.ChildInput(c); err != nil {
			return err
		}
		if o.host.isTask(request.WorkflowID) { // what it is asked is taken apart
			request.Initial, given.parts = payload.Join(request.Initial, given.parts), nil
		}
		given.kept = maps.Clone(o.shared)
		request.ID, request.Depth, request.TriggerType, request.Outputs = c.Child, c.Depth, "PARENT", c.Spec.Outputs
		request.TriggerData = request.Initial
		if initial := o.host.opts.Initial; initial != nil {
			if request.Initial, err = initial(request.WorkflowID, request.TriggerData); err != nil {
				return err
			}
		}
		_, start := o.fold.Execution()
		request.Language, request.Root, request.Requesters, request.Above, request.ErrorOf =
			cmp.Or(request.Language, start.Language), cmp.Or(start.Root, o.ref.Execution), start.Requesters, start.Told(), start.ErrorOf
		if !c.Spec.Detached {
			request.Parent = o.ref.Execution
		}
		p := o.principal()
		p.User, p.Means.TokenMadeBy = start.UserID, start.TokenMadeBy
		_, err = o.host.startWith(o.host.ctx, p, request, given)
		if errors.Is(err, store.ErrConflict) {
			return nil // it was started before the crash
		}
		return err
	})
	if o.host.ctx.Err() != nil {
		return false
	}
	if passes(err) {
		o.host.timers.setUnstored(o.ref, reminder(c.Child), time.Now().Add(fullDiskPause).UnixMilli())
		return false
	}
	if err == nil {
		o.startedChildren = append(o.startedChildren, c.Child)
		return true
	}
	unstarted := host.Request{Child: c.Child, Status: engine.StatusError, Error: fault.From(err)}
	if err := o.tellExecution(o.ref.Execution, host.ActionChild, "unstarted:"+c.Child, unstarted); c.Spec.Detached && !passes(err) {
		o.startedChildren = append(o.startedChildren, c.Child) // it will not be, and nobody waits for it
	}
	return false
}

// tellParent is the inbox item with which a parent learns of its child's end. It is committed with the end.
func (o *owner) tellParent(end engine.Finish, row *host.Row) (store.InboxItem, error) {
	outputs, err := o.fold.Outputs()
	if err != nil {
		return store.InboxItem{}, err
	}
	value, err := json.Marshal(outputs)
	if err != nil {
		return store.InboxItem{}, fmt.Errorf("outputs of execution %q: %w", o.ref.Execution, err)
	}
	body, err := json.Marshal(host.Request{Child: o.ref.Execution, Status: end.Status, Error: end.Error, Value: value})
	if err != nil {
		return store.InboxItem{}, fmt.Errorf("end of execution %q: %w", o.ref.Execution, err)
	}
	return store.InboxItem{
		Execution: o.parent, Kind: string(host.ActionChild), Dedup: fmt.Sprintf("ended:%s:%d", o.ref.Execution, row.Seq), Time: row.Time, Body: body,
	}, nil
}

// tellParentWaits is the inbox item that tells a parent that its child waits for people, or goes on. It is committed with the row.
func (o *owner) tellParentWaits(awaits bool, row *host.Row, asked []store.Interaction) (store.InboxItem, error) {
	r := host.Request{Child: o.ref.Execution, Status: engine.StatusRunning}
	if awaits {
		r.Status = engine.StatusWaitingForHuman
		value, err := o.askedBelow(row, asked)
		if err != nil {
			return store.InboxItem{}, err
		}
		r.Value = value
	}
	body, err := json.Marshal(r)
	if err != nil {
		return store.InboxItem{}, fmt.Errorf("questions of execution %q: %w", o.ref.Execution, err)
	}
	return store.InboxItem{
		Execution: o.parent, Kind: string(host.ActionChildWaits), Dedup: fmt.Sprintf("waits:%s:%d", o.ref.Execution, row.Seq), Time: row.Time,
		Body: body,
	}, nil
}

// askedBelow are the questions that a parent learns of: those of this row, of this execution or of those below it.
func (o *owner) askedBelow(row *host.Row, asked []store.Interaction) (json.RawMessage, error) {
	list := []host.AskedBelow{}
	for i := range asked {
		list = append(list, host.AskedBelow{Interaction: asked[i].ID, Execution: o.ref.Execution, Node: asked[i].Node,
			Purpose: asked[i].Purpose, Type: asked[i].Type, Title: gjson.GetBytes(asked[i].Request, "title").Str})
	}
	for _, f := range row.Facts {
		if below, ok := f.(engine.ChildWaiting); ok && below.Human && len(below.Asked) > 0 {
			var more []host.AskedBelow
			if err := json.Unmarshal(below.Asked, &more); err != nil {
				return nil, fault.Newf(fault.Unreadable, "what the child %q asks cannot be read: %w", below.Child, err)
			}
			list = append(list, more...)
		}
	}
	return json.Marshal(list)
}

// tellExecution puts something into the inbox of an execution of the same workspace. That it was not is in the log.
func (o *owner) tellExecution(execution string, kind host.Action, dedup string, item host.Request) error {
	body, err := json.Marshal(item)
	if err != nil {
		o.host.opts.Log.Error("inbox item lost", "execution", execution, "kind", kind, "error", err)
		return err
	}
	in := store.InboxItem{Execution: execution, Kind: string(kind), Dedup: dedup, Time: time.Now().UnixMilli(), Body: body}
	if err = o.untilRoom(o.host.ctx, false, func() error { return o.host.deliver(o.host.ctx, o.principal(), in) }); err != nil {
		o.host.opts.Log.Error("inbox item not delivered", "execution", execution, "kind", kind, "error", err)
	}
	return err
}

// childAction is what a parent's wish is to its child.
func childAction(a engine.ChildAction) host.Action {
	switch a {
	case engine.ChildPause:
		return host.ActionPause
	case engine.ChildResume:
		return host.ActionResume
	}
	return host.ActionCancel
}

func (o *owner) finished() {
	if o.parent != "" {
		o.host.post(o.parentRef(), delivered{})
	}
}
