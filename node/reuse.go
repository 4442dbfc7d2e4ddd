package node

import (
	"context"

	"tandem/workflow"
)

// A run and its call are large compared with what a brief node does, so they are reused for other runs.

// newRun returns a run of a job.
func (r *Revision) newRun(ctx context.Context, job Job) *run {
	owner := job.Run.Node
	if job.Run.Step != nil {
		owner = job.Owner
	}
	var x *run
	if r.reuses(owner) {
		x, _ = r.used.Get().(*run)
	}
	if x == nil {
		x = &run{}
	}
	x.revision, x.job, x.owner, x.node, x.ctx = r, job, owner, &r.nodes[owner], ctx
	return x
}

// reuses says whether the runs of a node may be reused. A kind that is brief and pure waits for nothing, so that nothing of it goes
// on after it has returned.
func (r *Revision) reuses(node int) bool {
	n := &r.nodes[node]
	return n.brief && n.kind.Run != nil && n.kind.After == nil && r.Graph.Nodes[node].Plan.Effect == workflow.Pure
}

// ended releases what a run has opened. It keeps a run that is no longer referred to, if that may be reused.
func (r *Revision) ended(x *run) {
	x.release()
	if !x.spent || x.job.Stand != nil || !r.reuses(x.owner) {
		return
	}
	c := &x.call
	*x = run{call: Call{
		Eval: c.Eval, Bind: c.Bind, Resolve: c.Resolve, Connected: c.Connected, Context: c.Context, History: c.History, Uses: c.Uses,
		Attached: c.Attached, Offered: c.Offered, Ready: c.Ready,
		Emit: c.Emit, Print: c.Print, Log: c.Log, Warn: c.Warn, look: c.look, beside: c.beside, Detail: c.Detail, Credential: c.Credential,
		Code: c.Code, Used: c.Used, Declare: c.Declare,
	}}
	r.used.Put(x)
}

// introduce fills in the call: workspace, execution, node.
func (x *run) introduce() {
	c, job, node := &x.call, &x.job, &x.revision.Graph.Nodes[x.owner]
	if c.Eval == nil {
		x.equip()
	}
	c.Workspace, c.ExecutionID, c.ActivationID, c.NodeID, c.NodeName, c.Kind = job.Execution.Workspace, job.Execution.ID,
		job.Run.Activation, node.ID, node.Name, node.Kind
	c.MaxRetries, c.TimeoutMS, c.Trigger = node.Plan.MaxRetries, node.Plan.TimeoutMS, job.Trigger
	c.WorkflowID, c.UserID, c.Requesters, c.Ancestors, c.Language = job.Execution.WorkflowID, job.Execution.UserID,
		job.Execution.Requesters, job.Execution.Ancestors, job.Execution.Language
	c.Generation, c.Attempt, c.TimedOut, c.Now = job.Run.Generation, job.Run.Attempt.Attempt, job.Run.TimedOut, job.Now
	c.Files, c.Clock = job.Files, x.clock()
	c.Config, c.Input, c.Contributions, c.Kept, c.Wake, c.Memo = nil, nil, nil, nil, nil, nil
}

// equip gives the call its functions. They do not refer to the job, so that a run that is reused has them already.
func (x *run) equip() {
	x.call = Call{
		Eval: x.eval, Bind: x.bind, Resolve: x.resolve, Connected: func(key string) bool { return x.node.connected[key] },
		Context: x.job.Data.Context, History: x.history, Uses: x.uses, Attached: x.attached,
		Offered: x.offered, Ready: x.ready, Emit: x.emit, Print: x.print, Log: x.log, Warn: x.warn, look: x.lookedFor, beside: x.besides,
		Detail: x.detail, Credential: x.credential, Code: x.code, Used: x.used, Declare: x.declare,
	}
}
