package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/identity"
	"tandem/node"
	"tandem/store"
)

// Options is what a host is made of.
type Options struct {
	Journal    store.Journal
	Inbox      store.Inbox
	Timers     store.Timers
	Executions store.Executions
	// Revision returns a revision that is ready to run.
	Revision func(ctx context.Context, p identity.Principal, workflow, hash string) (*node.Revision, error)
	// Child says what to start for a child: a workflow by id, of a revision that is "deployed", "latest" or a number.
	Child func(ctx context.Context, p identity.Principal, workflow, revision string) (StartRequest, error)
	// Workers is how many nodes run at once.
	Workers int
	Log     *slog.Logger
	// Recorded is told of every row that is on disk, with what is to be done about it, in the order of each execution. It
	// is called by the execution's owner, which waits for it. May be nil.
	Recorded func(store.Ref, host.Row, []engine.Command)
	// GivenUp is told of an execution that this process cannot go on with: its journal is as it was, and the next process
	// takes it up. May be nil.
	GivenUp func(store.Ref, error)
}

// Host drives executions in this process.
type Host struct {
	opts    Options
	ctx     context.Context
	stop    context.CancelCauseFunc
	workers chan struct{}
	running sync.WaitGroup // owners and workers

	mu     sync.Mutex
	owners map[store.Ref]*owner
	closed bool

	timers *timers
}

// New starts a host: it takes up what was under way when the last process ended, and sets the timers that are in the
// store. It is ready when New returns.
func New(ctx context.Context, opts Options) (*Host, error) {
	if opts.Workers < 1 {
		opts.Workers = 1
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	h := &Host{opts: opts, workers: make(chan struct{}, opts.Workers), owners: map[store.Ref]*owner{}}
	h.ctx, h.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	h.timers = newTimers(h.due)
	if err := h.takeUp(ctx); err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

// takeUp brings back everything that must not wait for somebody to ask for it.
func (h *Host) takeUp(ctx context.Context) error {
	system := identity.System("")
	var after store.Timer
	for {
		list, err := h.opts.Timers.Upcoming(ctx, system, after, 1000)
		if err != nil {
			return fmt.Errorf("read timers: %w", err)
		}
		for _, t := range list {
			h.timers.set(store.Ref{Workspace: t.Workspace, Execution: t.Execution}, engine.TimerID(t.ID), t.Until)
		}
		if len(list) < 1000 {
			break
		}
		after = list[len(list)-1]
	}
	for u, err := range h.opts.Executions.Unfinished(ctx, system) {
		if err != nil {
			return fmt.Errorf("read unfinished executions: %w", err)
		}
		if u.Status == engine.StatusRunning || u.Status == engine.StatusPending {
			h.post(u.Ref, wanted{})
		}
	}
	pending, err := h.opts.Inbox.PendingExecutions(ctx, system)
	if err != nil {
		return fmt.Errorf("read the inbox: %w", err)
	}
	for _, ref := range pending {
		h.post(ref, delivered{})
	}
	return nil
}

// Close parks everything: running nodes are told to stop, what they have not finished is taken up by the next process.
// It returns when nothing of the host runs any more.
func (h *Host) Close() {
	h.mu.Lock()
	again := h.closed
	h.closed = true
	h.stop(errClosed)
	h.mu.Unlock()
	if !again {
		h.timers.close()
	}
	h.running.Wait()
}

var errClosed = errors.New("the host is closing") // read-only

// StartRequest asks for an execution.
type StartRequest struct {
	ID           string
	WorkflowID   string
	WorkflowName string
	Version      string
	Revision     int64
	RevisionHash string
	TriggerType  string
	Trigger      string
	StartFrom    string
	Initial      json.RawMessage
	TriggerData  json.RawMessage
	Language     string
	Priority     int
	Parent       string
	Depth        int
	// Outputs are the nodes whose outputs are the execution's; none means its last nodes.
	Outputs []string
}

// Start records an execution and begins it. It returns when that is on disk.
func (h *Host) Start(ctx context.Context, p identity.Principal, r StartRequest) error {
	ref := store.Ref{Workspace: p.Workspace, Execution: r.ID}
	revision, err := h.opts.Revision(ctx, p, r.WorkflowID, r.RevisionHash)
	if err != nil {
		return err
	}
	o := h.newOwner(ref, revision)
	o.parent = r.Parent
	start, err := json.Marshal(host.Start{WorkflowID: r.WorkflowID, UserID: p.User, Language: r.Language, Initial: r.Initial, Trigger: r.TriggerData, Outputs: r.Outputs})
	if err != nil {
		return fault.Newf(fault.Invalid, "inputs: %w", err)
	}
	now := time.Now().UnixMilli()
	turn := o.fold.Begin(now)
	created := engine.ExecutionCreated{
		Semantics: engine.Semantics, Execution: r.ID, Revision: revision.Graph.Hash, Trigger: r.Trigger, StartFrom: r.StartFrom,
		Depth: r.Depth, Input: turn.Put(start),
	}
	if _, err := turn.Add(created); err != nil {
		return err
	}
	commands, err := turn.Add(engine.ExecutionStarted{})
	if err != nil {
		return err
	}
	create := &store.Execution{
		ID: r.ID, WorkflowID: r.WorkflowID, WorkflowName: r.WorkflowName, WorkflowVersion: r.Version, Revision: r.Revision,
		RevisionHash: revision.Graph.Hash, Status: engine.StatusRunning, Priority: max(r.Priority, 1), Parent: r.Parent,
		TriggerType: r.TriggerType, User: p.User, Started: now, Created: now, Updated: now,
	}
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return fault.New(fault.Conflict, "the host is closing; start the execution again later")
	}
	if h.owners[ref] != nil {
		h.mu.Unlock()
		return fault.Newf(fault.Conflict, "execution %q exists already", r.ID)
	}
	h.owners[ref] = o
	h.running.Add(1)
	h.mu.Unlock()
	commands, err = o.commit(ctx, turn, commands, nil, create)
	if err != nil {
		h.mu.Lock()
		delete(h.owners, ref)
		queued := o.take()
		h.mu.Unlock()
		for _, m := range queued { // they are for the execution that is there already
			h.post(ref, m)
		}
		h.running.Done()
		return err
	}
	go func() {
		defer h.running.Done()
		o.carryOut(commands)
		o.loop()
	}()
	return nil
}

// Deliver hands something from outside to an execution. It returns when it is on disk, which is before it acts.
func (h *Host) Deliver(ctx context.Context, p identity.Principal, item store.InboxItem) error {
	_, duplicate, err := h.opts.Inbox.Deliver(ctx, p, item)
	if err != nil || duplicate {
		return err
	}
	h.post(store.Ref{Workspace: p.Workspace, Execution: item.Execution}, delivered{})
	return nil
}

// due is called by the timers.
func (h *Host) due(ref store.Ref, id engine.TimerID) { h.post(ref, timerDue{id}) }

// post puts a message into an owner's queue; an execution without an owner gets one, which reads its journal first.
func (h *Host) post(ref store.Ref, m message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return // it is on disk, and the next process begins with it
	}
	o := h.owners[ref]
	if o == nil {
		o = h.newOwner(ref, nil)
		h.owners[ref] = o
		h.running.Add(1)
		go func() {
			defer h.running.Done()
			o.load()
		}()
	}
	o.push(m)
}

// retire removes an owner that has nothing to do. It fails if something has come in meanwhile.
func (h *Host) retire(o *owner) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if o.waiting() {
		return false
	}
	delete(h.owners, o.ref)
	return true
}
