package local

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/tidwall/gjson"

	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/host/turns"
	"tandem/identity"
	"tandem/node"
	"tandem/payload"
	"tandem/store"
)

// Start implements [host.Host].
func (h *Host) Start(ctx context.Context, p identity.Principal, r host.StartRequest) (host.Started, error) {
	return h.startWith(ctx, p, r, handed{})
}

// handed are large fields of what a parent starts a child with. They are not in the request.
type handed struct {
	parts []payload.Part
	// kept are those that the parent has put where large values are kept.
	kept map[*byte]host.Blob
}

// startWith is Start for what a parent hands on.
func (h *Host) startWith(ctx context.Context, p identity.Principal, r host.StartRequest, given handed) (host.Started, error) {
	ref := store.Ref{Workspace: p.Workspace, Execution: r.ID}
	limits := payload.Door()
	if r.Depth > 0 {
		limits = payload.Limits{} // what a parent hands on was taken before
	}
	if err := readable("inputs", r.Initial, limits); err != nil {
		return host.Started{}, err
	}
	if !bytes.Equal(r.Initial, r.TriggerData) { // mostly they are the same
		if err := readable("inputs", r.TriggerData, limits); err != nil {
			return host.Started{}, err
		}
	}
	arrival, err := arrivalOf(r)
	if err != nil {
		return host.Started{}, err
	}
	revision, err := h.revisionOf(ctx, p, r)
	if err != nil {
		return host.Started{}, err
	}
	o := h.newOwner(ref, revision)
	o.parent, o.claim, o.follow = r.Parent, turns.ClaimOf(p.User, h.isTask(r.WorkflowID)), r.Follow
	data := host.Start{WorkflowID: r.WorkflowID, UserID: p.User, TokenMadeBy: p.TokenMadeBy(), Language: r.Language, Initial: r.Initial,
		Trigger: r.TriggerData, Outputs: r.Outputs, Root: r.Root, Requesters: r.Requesters, Above: r.Above, ErrorOf: r.ErrorOf,
		ExternalRequest: r.ExternalRequest, InputRules: node.InputRules, Test: r.Test}
	if len(given.parts) > 0 {
		data, o.shared = host.GivenStart(data, r.Initial, given.parts), given.kept
	}
	begin, err := host.WriteStart(data)
	if err != nil {
		return host.Started{}, fault.Newf(fault.Invalid, "inputs: %w", err)
	}
	now := time.Now().UnixMilli()
	turn := o.fold.Begin(now)
	created := engine.ExecutionCreated{
		Semantics: engine.Semantics, Execution: r.ID, Revision: revision.Graph.Hash, Trigger: r.Trigger, StartFrom: r.StartFrom,
		TimeoutMS: r.TimeoutMS, Depth: r.Depth, Input: turn.PutStart(begin),
	}
	if i, ok := revision.Graph.Node(r.StartFrom); ok {
		if created.Again, err = host.AskAgain(o.fold.State(), revision.Graph, engine.ActivationID(revision.Graph.Nodes[i].Segment), false,
			h.childGraph(ctx, p)); err != nil {
			return host.Started{}, err
		}
	}
	if len(r.Above) == 0 && len(given.parts) == 0 {
		turn.Vouch() // its inputs were looked at, and the rest of it are texts
	}
	commands, err := turn.Add(created)
	if err != nil {
		return host.Started{}, err
	}
	create := &store.Execution{
		ID: r.ID, WorkflowID: r.WorkflowID, WorkflowName: r.WorkflowName, WorkflowVersion: r.Version, Revision: r.Revision,
		RevisionHash: revision.Graph.Hash, Priority: priority(r.Priority), Parent: r.Parent,
		TriggerType: r.TriggerType, User: p.User, TokenMadeBy: p.TokenMadeBy(), Conversation: conversation(r.Initial), Created: now,
		Updated: now,
	}
	admitted := h.admission.Admit(ref, o.claim, r.Depth > 0)
	if admitted {
		if commands, err = turn.Add(engine.ExecutionStarted{}); err != nil {
			h.admission.Moved(ref, o.claim, engine.StatusError)
			return host.Started{}, err
		}
		create.Started = now
	}
	root := store.Ref{Workspace: p.Workspace, Execution: r.Root}
	var below *store.Below
	if r.Root != "" && h.opts.Carrier != nil { // several processes start what is below it
		below = &store.Below{Root: r.Root, Limit: turns.MaxFamily}
	} else if r.Root != "" {
		if err := h.families.Join(root); err != nil {
			h.admission.Moved(ref, o.claim, engine.StatusError)
			h.admitNext()
			return host.Started{}, err
		}
	}
	started, err := h.commitStart(ctx, o, row{turn: turn, commands: commands, create: create, key: key(r), arrival: arrival, below: below})
	if err != nil || started.Repeated {
		h.families.Leave(root)
		h.admission.Moved(ref, o.claim, engine.StatusError)
		h.admitNext()
		return started, err
	}
	if !admitted {
		h.admission.Wait(turns.Start{Ref: ref, Claim: o.claim, Priority: create.Priority, Created: now})
		h.admitNext()
	}
	return started, nil
}

// conversation is what an execution says that it has in common with others.
func conversation(initial json.RawMessage) string {
	if id := gjson.GetBytes(initial, "conversation_id"); id.Type == gjson.String {
		return id.Str
	}
	return ""
}

func priority(p int) int {
	if p == 0 {
		return 3
	}
	return min(max(p, 1), 5)
}

func key(r host.StartRequest) *store.IdempotencyKey {
	if r.Key == "" {
		return nil
	}
	return &store.IdempotencyKey{Key: r.Key, RequestHash: r.KeyHash}
}

// arrivalOf is the delivery that a request records; nil: none.
func arrivalOf(r host.StartRequest) (*store.Arrival, error) {
	if r.Arrival == nil {
		return nil, nil
	}
	arrival, ok := r.Arrival.(*store.Arrival)
	if !ok {
		return nil, fault.Newf(fault.Internal, "delivery %q cannot be recorded by this host: it is a %T", r.Arrival.DeliveryID(), r.Arrival)
	}
	return arrival, nil
}

// revisionOf is the revision that a request starts: the one that it brings, or else the one that its hash names.
func (h *Host) revisionOf(ctx context.Context, p identity.Principal, r host.StartRequest) (*node.Revision, error) {
	if ready, ok := r.Ready.(revision); ok {
		return ready.Revision, nil
	}
	return h.opts.Revision(ctx, p, r.WorkflowID, r.RevisionHash)
}

// commitStart commits the first row of an execution, with what follows at once, and hands the rest to its owner.
func (h *Host) commitStart(ctx context.Context, o *owner, first row) (host.Started, error) {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return host.Started{}, closing()
	}
	if h.owners[o.ref] != nil {
		h.mu.Unlock()
		return host.Started{}, fault.Newf(fault.Conflict, "execution %q exists already", o.ref.Execution)
	}
	h.owners[o.ref] = o
	h.joinParent(o)
	if h.opts.Idle {
		h.own.Store(o.ref, struct{}{})
	}
	h.running.Add(1)
	h.mu.Unlock()
	first.entries = store.PendingEntries(ctx)
	status, broken, err := o.start(ctx, first)
	if err != nil {
		h.mu.Lock()
		h.remove(o.ref)
		queued := o.takeAll()
		h.mu.Unlock()
		for _, m := range queued { // they are for the execution that is there already
			if ofRun(m) {
				continue // it is about a run of this execution, which was not started
			}
			if !h.post(o.ref, m) {
				refuse([]message{m}, errClosed)
			}
		}
		h.running.Done()
		if used := (*store.KeyUsedError)(nil); errors.As(err, &used) && used.Same {
			return h.repeated(ctx, o.principal(), used.Execution)
		}
		if h.ctx.Err() != nil && errors.Is(err, context.Canceled) {
			err = closing()
		}
		return host.Started{}, err
	}
	if h.opts.Carrier != nil {
		return h.carryStart(o, status), nil
	}
	if broken == nil && o.over() {
		o.back()
		o.tidy()
		if h.retire(o) {
			h.running.Done()
			started := host.Started{Execution: o.ref.Execution, Status: status}
			if o.whole {
				started.Ended = o.fold.Seen()
			}
			return started, nil
		}
	}
	go func() {
		defer h.running.Done()
		if broken != nil {
			o.fail(broken)
			return
		}
		left := o.left
		o.left = todo{}
		o.goOn(left)
		o.loop()
	}()
	return host.Started{Execution: o.ref.Execution, Status: status}, nil
}

// repeated answers a start whose idempotency key has started an execution before.
func (h *Host) repeated(ctx context.Context, p identity.Principal, execution string) (host.Started, error) {
	e, err := h.opts.Executions.Get(ctx, p, execution)
	return host.Started{Execution: execution, Status: e.Status, Repeated: true}, err
}
