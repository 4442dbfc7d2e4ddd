package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tandem/credential"
	"tandem/engine"
	"tandem/host"
	"tandem/host/lines"
	"tandem/host/register"
	"tandem/host/turns"
	"tandem/identity"
	"tandem/node"
	"tandem/payload"
	"tandem/store"
	"tandem/workflow"
)

// Options is what a host is made of.
type Options struct {
	// Programs are those that lead nodes besides the engine's own.
	Programs   engine.Programs
	Journal    store.Journal
	Inbox      store.Inbox
	Timers     store.Timers
	Executions store.Executions
	Blobs      store.Blobs
	Logs       store.Logs
	// Revision returns a revision that is ready to run.
	Revision func(ctx context.Context, p identity.Principal, workflow, hash string) (*node.Revision, error)
	// Child says what to start for a child: a workflow by id, of a revision that is "deployed", "latest" or a number.
	Child func(ctx context.Context, p identity.Principal, workflow, revision string) (host.StartRequest, error)
	// Credentials is what opens the credentials of a principal's workspace for its runs. May be nil.
	Credentials func(p identity.Principal) credential.Opener
	// Asked makes the record of a question to people, which is kept with the row that asks. Nil: there are no such records, nor of pauses.
	Asked func(Question) store.Interaction
	// Unasked lists executions that wait for a person and have no record of a question: they ask again when the host starts. May be nil.
	Unasked func(ctx context.Context) ([]store.Ref, error)
	// Redact takes the secrets of open credentials out of what leaves a run. May be nil.
	Redact node.Redactor
	// Code runs untrusted code of nodes and connections. May be nil.
	Code node.Interpreter
	// Workers is how many nodes run at once.
	Workers int
	// MaxRunning is how many executions run at once; more starts wait for their turn. 0: any number.
	MaxRunning int
	// Caps are how many executions of a workspace, and of each of its users, run at once; more wait for their turn. Zero: any number. It is
	// called often; call [Host.Readmit] when its results change. May be nil.
	Caps func(workspace string) (running, perUser int64)
	// MaxTasks is how many tasks of agents run at once, in all workspaces; more wait for their turn. 0: any number. Task says
	// whether the executions of a workflow are tasks; nil: there are none.
	MaxTasks int
	Task     func(workflowID string) bool
	// Initial makes the initial layer of an execution of what its parent gives it; nil: they are the same.
	Initial func(workflowID string, input json.RawMessage) (json.RawMessage, error)
	// RunAhead lets brief pure nodes run before the rows that lead to them are on disk, as long as nobody outside can tell. The
	// first row is one of these: a start is answered when it is on disk with what has run ahead of it.
	RunAhead bool
	// Idle lets the host work only on executions that it has started or taken up; requests for others are recorded. Rest lets it only
	// record. What is recorded goes on with the next host.
	Idle bool
	Rest bool
	// Carrier decides when executions go on, and the host takes nothing up by itself. Nil: this host alone drives executions.
	Carrier Carrier
	// AdmittedElsewhere says that another process enforces the limits: what may have to wait is recorded as PENDING, for [Host.Heard]
	// there.
	AdmittedElsewhere bool
	// Register notes the runs that have begun, so that the next process knows which ran if this one dies. Nil: no run is blamed for that.
	Register Register
	Log      *slog.Logger
	// Reopening is called before rows are appended to an execution that has ended, and done when they were recorded or refused. May be nil.
	Reopening func(store.Ref) (done func())
	// Recorded is called with every row that is on disk, its graph and its commands, in the order of each execution. The owner waits for
	// it. May be nil.
	Recorded func(store.Ref, *workflow.Graph, host.Row, []engine.Command)
	// Emitted is called with the output of a run, in order: text, or an object as JSON. With a carrier, a nil chunk says that the run has
	// ended. The run waits for it. May be nil.
	Emitted func(ref store.Ref, attempt engine.Attempt, chunk any)
	// Logged is told how many lines of a run were stored apart from a row. May be nil.
	Logged func(ref store.Ref, attempt engine.Attempt, lines int)
	// Late is called with what a run has used whose outcome came too late to be recorded. The owner waits for it. May be nil.
	Late func(store.Ref, []node.Settlement)
	// GivenUp is called with an execution that this process cannot go on with; the next process takes it up. May be nil.
	GivenUp func(store.Ref, error)
}

// Register is where a host notes the runs that have begun.
type Register = register.File

// Host drives executions in this process.
type Host struct {
	opts      Options
	ctx       context.Context
	stop      context.CancelCauseFunc
	gate      *turns.Gate
	admission *turns.Admission
	line      line
	families  *turns.Families
	register  *register.Register
	trials    *trials
	running   sync.WaitGroup // owners and workers
	// debug says that the operator's log has the level DEBUG.
	debug bool
	// room is for lines of runs that are not stored yet.
	room lines.Room
	// resting says that nothing new is run, recovered or timed: it is recorded, and goes on with the next process.
	resting atomic.Bool
	// own are the executions that an idle host works on.
	own sync.Map // of store.Ref to struct{}
	// carefulUntil is when the host may do things again that are not noted in the register.
	carefulUntil time.Time

	mu     sync.Mutex
	owners map[store.Ref]*owner
	// below is how many owners there are of the children of an execution that this process has started.
	below  map[store.Ref]int
	closed bool
	// vacant gets a value when there is no owner.
	vacant chan struct{}

	timers *timers
	// briefRoom is room for brief runs that are to be done.
	briefRoom turns.Room[briefRun]
	// firing has an entry for each timer that was fired and not dealt with yet.
	firing chan struct{}
	// visits are the executions of a host with a carrier.
	visits visits
	// quarantine lets their runs begin.
	quarantine turns.Quarantine
}

var _ host.Host = (*Host)(nil)

// New starts a host, which is then ready: it has taken up what was under way when the last process ended, and has set the stored timers.
func New(ctx context.Context, opts Options) (*Host, error) {
	if opts.Workers < 1 {
		opts.Workers = 1
	}
	if opts.Carrier != nil {
		opts.RunAhead, opts.Register = false, nil
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	h := &Host{opts: opts, gate: turns.NewGate(opts.Workers), admission: turns.NewAdmission(opts.MaxRunning, opts.MaxTasks, opts.Caps),
		owners: map[store.Ref]*owner{}, below: map[store.Ref]int{}, vacant: make(chan struct{}, 1)}
	if opts.AdmittedElsewhere {
		h.admission = turns.AdmittedElsewhere()
	}
	h.debug = opts.Log.Enabled(ctx, slog.LevelDebug)
	h.families = turns.NewFamilies(turns.MaxFamily)
	h.line = line{free: opts.Workers, active: map[store.Ref]bool{}}
	h.ctx, h.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	if opts.Rest {
		opts.Register, h.opts.Register = nil, nil
	}
	var err error
	if h.register, err = register.Open(opts.Register, opts.Workers, opts.Log); err != nil {
		h.stop(err)
		return nil, err
	}
	if h.register.Unexplained() {
		h.carefulUntil = time.Now().Add(carefully)
	}
	h.trials = newTrials(h)
	h.firing = make(chan struct{}, maxFiring)
	if opts.Rest || opts.Idle || opts.Carrier != nil {
		h.timers = newTimers(h.due, nil)
	} else {
		h.timers = newTimers(h.due, h.upcoming)
	}
	h.timers.start() // only now: what is fired may set others
	if opts.Rest {
		h.quiesce()
		return h, nil
	}
	if opts.Idle || opts.Carrier != nil {
		return h, nil
	}
	if err := h.takeUp(ctx); err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

// quiesce lets nothing new run. What runs goes on.
func (h *Host) quiesce() {
	h.resting.Store(true)
	h.register.Stop()
	h.trials.shutDown()
	h.gate.ShutDown()
}

// Drain lets nothing new run and waits until what runs has ended and is on disk; it says whether that was so before the context
// ended. Meanwhile, and until the host is closed, requests are recorded; the next process goes on from them.
func (h *Host) Drain(ctx context.Context) bool {
	h.quiesce()
	for {
		h.mu.Lock()
		left := len(h.owners)
		h.mu.Unlock()
		if left == 0 {
			return true
		}
		select {
		case <-h.vacant: // it may be one of before
		case <-ctx.Done():
			return false
		case <-h.ctx.Done():
			return false
		}
	}
}

// Running is how many executions this process has in hand.
func (h *Host) Running() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.owners)
}

// rests says that nothing of an execution is run here: it is recorded only.
func (o *owner) rests() bool {
	h := o.host
	if h.resting.Load() || !h.opts.Idle {
		return h.resting.Load()
	}
	_, own := h.own.Load(o.ref)
	return !own
}

// Own lists the executions that an idle host works on, or has.
func (h *Host) Own() (refs []store.Ref) {
	h.own.Range(func(ref, _ any) bool {
		refs = append(refs, ref.(store.Ref))
		return true
	})
	return refs
}

// careful says that everything is noted before it is done: the process before died of something that was not.
func (h *Host) careful() bool {
	return !h.carefulUntil.IsZero() && time.Now().Before(h.carefulUntil)
}

// remove takes an owner out. The lock is the caller's.
func (h *Host) remove(ref store.Ref) {
	if o := h.owners[ref]; o != nil && o.below {
		h.leaveParent(o)
	}
	delete(h.owners, ref)
	if len(h.owners) == 0 {
		select {
		case h.vacant <- struct{}{}:
		default: // it is known
		}
	}
}

// takeUp brings back everything that must not wait for somebody to ask for it.
func (h *Host) takeUp(ctx context.Context) error {
	system := identity.System("")
	if err := h.remind(ctx, system); err != nil {
		return err
	}
	var suspects, others []store.Ref
	for u, err := range h.opts.Executions.Unfinished(ctx, system, store.Unfinished{}) {
		if err != nil {
			return fmt.Errorf("read unfinished executions: %w", err)
		}
		c := turns.ClaimOf(u.User, h.isTask(u.WorkflowID))
		switch {
		case u.Status == engine.StatusRunning:
			h.admission.Moved(u.Ref, c, u.Status)
			if h.register.Leaves(u.Ref) {
				suspects = append(suspects, u.Ref)
			} else {
				others = append(others, u.Ref)
			}
		case u.Status == engine.StatusPending && h.admission.Holds(c.Task):
			h.admission.Wait(turns.Start{Ref: u.Ref, Claim: c, Priority: u.Priority, Created: u.Created})
		case u.Status == engine.StatusPending:
			h.post(u.Ref, admitted{})
		}
	}
	h.register.KeepOnly(suspects)
	h.trials.beginTrials(suspects)
	for _, ref := range slices.Concat(suspects, others) {
		h.comeBack(ref)
	}
	h.admitNext()
	pending, err := h.opts.Inbox.PendingExecutions(ctx, system)
	if err != nil {
		return fmt.Errorf("read the inbox: %w", err)
	}
	for _, ref := range pending {
		h.post(ref, delivered{})
	}
	if h.opts.Unasked != nil {
		h.running.Go(h.askUnasked)
	}
	return nil
}

// isTask says whether the executions of a workflow are tasks.
func (h *Host) isTask(workflowID string) bool { return h.opts.Task != nil && h.opts.Task(workflowID) }

// Close parks everything: running nodes are told to stop, and the next process takes them up. It returns when nothing of the host runs.
func (h *Host) Close() {
	h.mu.Lock()
	again := h.closed
	h.closed = true
	if !again {
		h.register.Stop()
	}
	h.stop(errClosed)
	h.mu.Unlock()
	if !again {
		h.timers.close()
	}
	h.running.Wait()
}

var errClosed = errors.New("the host is closing") // read-only

// Fork implements [host.Host].
func (h *Host) Fork(ctx context.Context, p identity.Principal, r host.ForkRequest) (string, error) {
	if err := readable("input", r.Input, payload.Door()); err != nil {
		return "", err
	}
	source, err := h.opts.Executions.Get(ctx, p, r.Source)
	if err != nil {
		return "", err
	}
	revision, err := h.opts.Revision(ctx, p, source.WorkflowID, source.RevisionHash)
	if err != nil {
		return "", err
	}
	r.By, r.TokenMadeBy = p.User, p.TokenMadeBy()
	journal := h.journal(p, r.Source, revision)
	now := time.Now().UnixMilli()
	fold, turn, commands, err := journal.Fork(ctx, r, now)
	if err != nil {
		return "", err
	}
	o := h.newOwner(store.Ref{Workspace: p.Workspace, Execution: r.ID}, revision)
	o.fold, o.claim = fold, turns.ClaimOf(p.User, h.isTask(source.WorkflowID))
	if o.begunIn, err = begunIn(ctx, journal, commands); err != nil {
		return "", err
	}
	fold.Reload(o.loader(h.journal(o.principal(), r.ID, revision).Loader(h.ctx)))
	create := &store.Execution{
		ID: r.ID, WorkflowID: source.WorkflowID, WorkflowName: source.WorkflowName, WorkflowVersion: source.WorkflowVersion,
		Revision: source.Revision, RevisionHash: source.RevisionHash, Priority: source.Priority, ForkedFrom: r.Source,
		TriggerType: forkTrigger(source), User: p.User, TokenMadeBy: p.TokenMadeBy(), Conversation: source.Conversation, Started: now,
		Created: now, Updated: now,
	}
	started, err := h.commitStart(ctx, o, row{turn: turn, commands: commands, create: create})
	return started.Execution, err
}

// forkTrigger is the trigger type of a fork: that of a test is a test.
func forkTrigger(source store.Execution) string {
	if source.TriggerType == store.TriggerTest {
		return store.TriggerTest
	}
	return "FORK"
}

// Readmit starts what waits for room that there is now: how many may run has changed.
func (h *Host) Readmit() { h.admitNext() }

// admitNext starts those that waited for room.
func (h *Host) admitNext() {
	if h.resting.Load() {
		return // they are on disk as PENDING
	}
	for ref, ok := h.admission.Next(); ok; ref, ok = h.admission.Next() {
		h.post(ref, admitted{})
	}
}

func (h *Host) journal(p identity.Principal, execution string, r *node.Revision) host.Journal {
	return host.Journal{Source: patientSource{NewSource(h.opts.Journal, h.opts.Blobs), h}, Principal: p, Execution: execution,
		Graph: r.Graph, Revision: revision{r}, Programs: h.opts.Programs, Child: h.childGraph(h.ctx, p)}
}

// childGraph reads the graphs of workflows that nodes run.
func (h *Host) childGraph(ctx context.Context, p identity.Principal) host.ChildGraph {
	if h.opts.Child == nil {
		return nil
	}
	return func(c workflow.ChildWorkflow) (*workflow.Graph, error) {
		request, err := h.opts.Child(ctx, p, c.Workflow, c.Revision)
		if err != nil {
			return nil, err
		}
		revision, err := h.opts.Revision(ctx, p, request.WorkflowID, request.RevisionHash)
		if err != nil {
			return nil, err
		}
		return revision.Graph, nil
	}
}

// deliver hands something to an execution by its inbox. It returns when it is on disk, which is before it acts.
func (h *Host) deliver(ctx context.Context, p identity.Principal, item store.InboxItem) error {
	_, duplicate, err := h.opts.Inbox.Deliver(ctx, p, item)
	if err != nil || duplicate {
		return err
	}
	h.post(store.Ref{Workspace: p.Workspace, Execution: item.Execution}, delivered{})
	return nil
}

// post puts a message into an owner's queue; an execution without an owner gets one, which reads its journal first. A host that is closed
// takes none. A carrier needs no message, since it finds what there is to do in the store.
func (h *Host) post(ref store.Ref, m message) bool {
	if h.opts.Carrier != nil {
		if _, ok := m.(admitted); ok {
			h.admitVisiting(ref)
		} else {
			h.opts.Carrier.Wake(ref)
		}
		dealtWith([]message{m})
		return true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
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
	return true
}

// retire removes an owner that has nothing to do. It fails if something has come in meanwhile, and while a child that was started here
// runs.
func (h *Host) retire(o *owner) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if o.waiting() || h.below[o.ref] > 0 {
		return false
	}
	h.remove(o.ref)
	return true
}

// joinParent counts an owner for the execution that waits for its own. The lock is the caller's.
func (h *Host) joinParent(o *owner) {
	if o.parent != "" {
		o.below = true
		h.below[o.parentRef()]++
	}
}

// leaveParent notes that the owner of a child is gone, so that the owner of its parent may go, too. The caller has the lock.
func (h *Host) leaveParent(o *owner) {
	o.below = false
	parent := o.parentRef()
	if h.below[parent]--; h.below[parent] > 0 {
		return
	}
	delete(h.below, parent)
	if p := h.owners[parent]; p != nil {
		p.nudge()
	}
}
