package local

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/identity"
	"tandem/payload"
	"tandem/store"
	"tandem/text"
)

// request is something from outside that somebody waits for the answer of.
type request struct {
	host.Request
	reply chan<- reply // has room for one; nil: nobody waits
	// entries are what the audit log is to say about it, with the row that it leads to.
	entries []*store.PendingEntry
}

type reply struct {
	status engine.Status
	err    error
}

func (request) isMessage() {}

func (r request) answer(status engine.Status, err error) {
	if r.reply == nil {
		return
	}
	select {
	case r.reply <- reply{status, err}:
	default: // it has been answered
	}
}

// refuse answers those that will not be dealt with.
func refuse(list []message, err error) {
	for _, m := range list {
		switch m := m.(type) {
		case request:
			m.answer("", err)
		case interface{ done() }:
			m.done()
		}
	}
}

// Act implements [host.Host]. A request with a dedup id goes by the inbox: it is kept even if this process dies before it
// acts, and a second one does nothing. Others are answered when their row is on disk.
func (h *Host) Act(ctx context.Context, p identity.Principal, r host.Request) (engine.Status, error) {
	limits := payload.Door()
	if r.Action == host.ActionSignal {
		limits.MaxDepth = payload.DoorDepth
	}
	if err := readable(valueField(r.Action), r.Value, limits); err != nil {
		return "", err
	}
	e, err := h.opts.Executions.Get(ctx, p, r.Execution)
	if err != nil {
		return "", err
	}
	r.TokenMadeBy = p.TokenMadeBy()
	if r.Dedup != "" {
		body, err := json.Marshal(r)
		if err != nil {
			return "", fault.Newf(fault.Invalid, "the request cannot be kept: %w", err)
		}
		item := store.InboxItem{Execution: r.Execution, Kind: string(r.Action), Dedup: r.Dedup, Time: time.Now().UnixMilli(), Body: body}
		_, duplicate, err := h.opts.Inbox.Deliver(ctx, p, item)
		switch {
		case err == nil && (!duplicate || !r.Single): // one that is there may not have been looked at yet
			if h.opts.Carrier != nil && h.resting.Load() { // it is recorded at once, whoever runs what follows
				_, err = settled(h.visit(store.Ref{Workspace: p.Workspace, Execution: r.Execution},
					func(o *owner) error { return o.deal([]message{delivered{}}) }))
			}
			h.post(store.Ref{Workspace: p.Workspace, Execution: r.Execution}, delivered{})
		case err == nil:
			err = fault.Say(fault.Conflict, text.Of("execution %q has had this request before", r.Execution))
		}
		return e.Status, err
	}
	if h.opts.Carrier != nil {
		return h.actVisiting(ctx, store.Ref{Workspace: p.Workspace, Execution: r.Execution}, r)
	}
	answer := make(chan reply, 1)
	if !h.post(store.Ref{Workspace: p.Workspace, Execution: r.Execution}, request{r, answer, store.PendingEntries(ctx)}) {
		return "", closing()
	}
	select {
	case a := <-answer:
		if a.err != nil && h.ctx.Err() != nil {
			return a.status, closing()
		}
		return a.status, a.err
	case <-ctx.Done():
		return "", fmt.Errorf("wait for execution %q: %w", r.Execution, context.Cause(ctx))
	}
}

// Look lets an execution look into its inbox, where something was put that it does not know of. Nobody waits for it.
func (h *Host) Look(ref store.Ref) { h.post(ref, delivered{}) }

func closing() error {
	return fault.Say(fault.Conflict, text.Of("the server is stopping; try again when it is back"))
}

func (o *owner) requested(turn *host.Turn, r host.Request) (engine.Fact, error) {
	if err := readable(valueField(r.Action), r.Value, payload.Limits{}); err != nil {
		fact, taken := withoutValue(r, err)
		if !taken {
			return nil, err
		}
		return fact, nil
	}
	value := func() engine.Ref {
		if len(r.Value) == 0 {
			return ""
		}
		return turn.Put(r.Value)
	}
	switch r.Action {
	case host.ActionPause:
		return engine.ExecutionPaused{By: r.By, TokenMadeBy: r.TokenMadeBy, Reason: r.Reason}, nil
	case host.ActionResume:
		return engine.ExecutionResumed{By: r.By, TokenMadeBy: r.TokenMadeBy, Reason: r.Reason}, nil
	case host.ActionCancel:
		o.host.families.Cancel(o.ref) // at once: its children are told one after the other
		return engine.CancelRequested{By: r.By, TokenMadeBy: r.TokenMadeBy, Reason: r.Reason}, nil
	case host.ActionRetry:
		id, err := o.which(r, "retried", func(a engine.Activation) bool {
			return a.Status == engine.NodeFailure || a.Status == engine.NodeCanceled || a.Unknown
		})
		if err != nil {
			return nil, err
		}
		again, err := o.askAgain(id, false)
		return engine.NodeRetried{Activation: id, By: r.By, TokenMadeBy: r.TokenMadeBy, Reason: r.Reason, Again: again}, err
	case host.ActionSkip:
		id, err := o.which(r, "skipped", func(engine.Activation) bool { return true })
		if err != nil {
			return nil, err
		}
		if err := o.mayPassOver(id); err != nil {
			return nil, err
		}
		skipped := engine.NodeSkipped{Activation: id, By: r.By, TokenMadeBy: r.TokenMadeBy, Reason: r.Reason}
		if len(r.Value) > 0 {
			if err := o.mayDecide(id); err != nil {
				return nil, err
			}
			if skipped.Again, err = o.askAgain(id, true); err != nil {
				return nil, err
			}
			skipped.HasOutput, skipped.Output = true, value()
		}
		return skipped, nil
	case host.ActionSignal:
		if _, ok := o.revision.Graph.Node(r.Node); !ok {
			return nil, fault.Say(fault.NotFound, text.Of("node %q is not in the workflow", r.Node))
		}
		return engine.SignalReceived{Node: r.Node, Activation: r.Activation, Name: r.Signal, Ref: value(), By: r.By,
			TokenMadeBy: r.TokenMadeBy}, nil
	case host.ActionAnswer:
		return o.answered(r, value()), nil
	case host.ActionChildWaits:
		starter, _ := o.fold.State().StarterOf(r.Child)
		waits := r.Status == engine.StatusWaitingForHuman
		return engine.ChildWaiting{Child: r.Child, Activation: starter, Human: waits, Asked: r.Value}, nil
	case host.ActionChild:
		return engine.ChildFinished{Child: r.Child, Status: r.Status, Ref: value(), Error: r.Error}, nil
	}
	return nil, fault.Say(fault.Invalid, text.Of("action: %q is not known", r.Action))
}

// which finds the activation that a request is about.
func (o *owner) which(r host.Request, verb string, fits func(engine.Activation) bool) (engine.ActivationID, error) {
	if r.Activation != "" {
		return r.Activation, nil
	}
	index, ok := o.revision.Graph.Node(r.Node)
	if !ok {
		return "", fault.Say(fault.NotFound, text.Of("node_id: node %q is not in the workflow", r.Node))
	}
	var ids []string
	for _, a := range o.fold.State().Activations() {
		if a.Node == index && fits(a) {
			ids = append(ids, string(a.ID))
		}
	}
	if r.Action == host.ActionRetry {
		ids = o.failedSteps(index, ids)
	}
	if len(ids) > 1 {
		slices.Sort(ids)
		return "", fault.Say(fault.Conflict, text.Of("several activations of node %q can be %s; name one as activation_id: %s", r.Node, verb, strings.Join(ids[:min(len(ids), 5)], ", ")))
	}
	if len(ids) == 1 {
		return engine.ActivationID(ids[0]), nil
	}
	return engine.ActivationID(o.revision.Graph.Nodes[index].Segment), nil // the engine says why it cannot be
}

// failedSteps puts, in the place of the activations of a node whose program leads steps, the steps that failed or whose outcome is
// unknown: those are what is tried again, and what went well before them is not repeated.
func (o *owner) failedSteps(node int, ids []string) []string {
	var steps []string
	for _, a := range o.fold.State().Activations() {
		if a.Status != engine.NodeFailure && !a.Unknown {
			continue
		}
		if i, step, ok := host.Owner(o.revision.Graph, a.ID); ok && step && i == node {
			steps = append(steps, string(a.ID))
			ids = slices.DeleteFunc(ids, func(id string) bool { return strings.HasPrefix(string(a.ID), id+"[") })
		}
	}
	return append(ids, steps...)
}

// answered is the answer to a question. If it gives an output for an unknown outcome, questions that have not shown that are asked again.
func (o *owner) answered(r host.Request, value engine.Ref) engine.Fact {
	fact := engine.AskAnswered{Ask: r.Ask, Outcome: r.Outcome, Choice: r.Choice, Ref: value, By: r.By, Origin: r.Origin}
	if r.Choice == engine.ChoiceDone && value != "" {
		for _, a := range o.fold.State().Activations() {
			if a.Ask != r.Ask || !a.Unknown {
				continue
			}
			if a.Node < 0 { // the step is not repeated: what people agreed to has been done
				fact.Again = o.fold.State().Asked()
				continue
			}
			err := o.mayDecide(a.ID)
			if err == nil {
				fact.Again, err = o.askAgain(a.ID, true)
			}
			if err != nil { // the answer is on record and cannot be refused any more; nothing goes on by it
				fact.Choice, fact.Again = engine.ChoiceStop, nil
			}
		}
	}
	return fact
}

// mayDecide refuses to let an operator give the output of a question: that would be its answer.
func (o *owner) mayDecide(id engine.ActivationID) error {
	a, ok := o.fold.State().Activation(id)
	if !ok || a.Node < 0 {
		return nil // of what cannot be skipped the engine says why; programs take no output for an agreement
	}
	if o.revision.Graph.Nodes[a.Node].Plan.Asks == "" {
		return host.AskedInside(o.revision.Graph, a.Node, id, o.host.childGraph(o.host.ctx, o.principal()))
	}
	return fault.Say(fault.ApprovalRequired, text.Of("output: %q asks people, and only they answer; skip it without an output, or answer it as one of those who are asked", id))
}

func (o *owner) askAgain(id engine.ActivationID, edited bool) ([]engine.ActivationID, error) {
	return host.AskAgain(o.fold.State(), o.revision.Graph, id, edited, o.host.childGraph(o.host.ctx, o.principal()))
}

// mayPassOver refuses to skip a question whose place goes on without it: that of an execution which another one waits for, and one in
// a body that runs once, behind which the flow goes on.
func (o *owner) mayPassOver(id engine.ActivationID) error {
	graph := o.revision.Graph
	a, ok := o.fold.State().Activation(id)
	if !ok || a.Node < 0 || graph.Nodes[a.Node].Plan.Asks == "" {
		return nil
	}
	if o.parent == "" && !graph.LeftOpen(a.Node) {
		return nil
	}
	return fault.Say(fault.ApprovalRequired, text.Of("%q asks people, and what comes after it would go on without their answer; answer it as one of those who are asked, or cancel the execution", id))
}
