package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/identity"
	"tandem/node"
	"tandem/store"
)

// message is what an owner has to deal with.
type message interface{ isMessage() }

type (
	// wanted: somebody should look after the execution.
	wanted struct{}
	// delivered: there is something in the inbox.
	delivered struct{}
	timerDue  struct{ id engine.TimerID }
	// outcome: a worker has ended a run.
	outcome struct {
		attempt engine.Attempt
		result  node.Result
	}
	// overtime: an attempt's time is up.
	overtime struct {
		attempt engine.Attempt
		run     uint64
	}
)

func (wanted) isMessage()    {}
func (delivered) isMessage() {}
func (timerDue) isMessage()  {}
func (outcome) isMessage()   {}
func (overtime) isMessage()  {}

// owner is the one goroutine that appends to an execution's journal. Its fold is its own; its queue is everybody's.
type owner struct {
	host     *Host
	ref      store.Ref
	revision *node.Revision
	fold     *host.Fold
	// parent is the execution that waits for this one, if one does.
	parent  string
	status  engine.Status
	started int64
	// tail counts the rows and bytes since the last snapshot, whose size is snapshot.
	tailRows, tailBytes, snapshot int
	// startedChildren are children whose start is on disk, so that the reminder of them can go with the next row.
	startedChildren []string
	// attempts are the runs that workers have in hand, by activation.
	attempts map[engine.ActivationID]attempt
	runs     uint64 // numbers the runs

	mu    sync.Mutex
	queue []message
	wake  chan struct{}
}

type attempt struct {
	id     engine.Attempt
	cancel context.CancelFunc
	// run tells the runs of an attempt apart: one that has waited runs again under the same number of attempt.
	run uint64
}

func (h *Host) newOwner(ref store.Ref, revision *node.Revision) *owner {
	o := &owner{host: h, ref: ref, attempts: map[engine.ActivationID]attempt{}, wake: make(chan struct{}, 1)}
	if revision != nil {
		o.use(revision)
	}
	return o
}

// use pins the owner to a revision.
func (o *owner) use(revision *node.Revision) {
	o.revision = revision
	o.fold = newFold(o.host.ctx, o.host.opts.Journal, o.principal(), o.ref.Execution, revision)
}

func newFold(ctx context.Context, journal store.Journal, p identity.Principal, execution string, revision *node.Revision) *host.Fold {
	return host.NewFold(revision.Graph, scopes{revision}, nil, rowReader(ctx, journal, p, execution))
}

// rowReader reads one row of an execution's journal.
func rowReader(ctx context.Context, journal store.Journal, p identity.Principal, execution string) func(uint64) (host.Row, error) {
	return func(seq uint64) (host.Row, error) {
		for row, err := range journal.Rows(ctx, p, execution, seq-1) {
			if err != nil {
				return host.Row{}, err
			}
			return host.DecodeRow(row.Seq, row.Time, row.Body)
		}
		return host.Row{}, fault.Newf(fault.Internal, "execution %q has no row %d", execution, seq)
	}
}

// Read folds the journal of an execution as it is on disk, to look at it.
func Read(ctx context.Context, journal store.Journal, p identity.Principal, execution string, revision *node.Revision) (*host.Fold, error) {
	fold := newFold(ctx, journal, p, execution, revision)
	_, _, err := replay(ctx, journal, p, execution, fold)
	return fold, err
}

// replay folds the rows that a fold has not seen, and says how many there were.
func replay(ctx context.Context, journal store.Journal, p identity.Principal, execution string, fold *host.Fold) (rows, bytes int, err error) {
	for row, err := range journal.Rows(ctx, p, execution, fold.State().Seq()) {
		if err != nil {
			return rows, bytes, err
		}
		decoded, err := host.DecodeRow(row.Seq, row.Time, row.Body)
		if err != nil {
			return rows, bytes, err
		}
		if _, err := fold.Apply(decoded); err != nil {
			return rows, bytes, fmt.Errorf("row %d of execution %q: %w", row.Seq, execution, err)
		}
		rows, bytes = rows+1, bytes+len(row.Body)
	}
	return rows, bytes, nil
}

// scopes is a revision as a fold sees it.
type scopes struct{ *node.Revision }

// Iterations implements host.Revision.
func (s scopes) Iterations(run engine.RunNode, values map[engine.Ref]json.RawMessage, data host.Data) (host.Iterate, error) {
	of, err := s.Revision.Iterations(newJob(run, values, data))
	if err != nil {
		return nil, err
	}
	return func(state json.RawMessage, index int64) (json.RawMessage, map[string]json.RawMessage, error) {
		iteration, err := of(state, index)
		return iteration.Payload, iteration.Vars, err
	}, nil
}

// principal is Tandem itself, acting in the execution's workspace.
func (o *owner) principal() identity.Principal { return identity.System(o.ref.Workspace) }

func (o *owner) push(m message) {
	o.mu.Lock()
	o.queue = append(o.queue, m)
	o.mu.Unlock()
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

func (o *owner) waiting() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.queue) > 0
}

func (o *owner) take() []message {
	o.mu.Lock()
	defer o.mu.Unlock()
	list := o.queue
	o.queue = nil
	return list
}

// load reads the journal, then goes on as the owner.
func (o *owner) load() {
	if err := o.read(); err != nil {
		o.fail(err)
		return
	}
	if err := o.recover(); err != nil {
		o.fail(err)
		return
	}
	o.loop()
}

// recover takes up what the process before had in hand: what runs according to the journal runs nowhere.
func (o *owner) recover() error {
	lost := slices.ContainsFunc(o.fold.State().Outstanding(), func(c engine.Command) bool {
		_, ok := c.(engine.RunNode)
		return ok
	})
	if !lost {
		return nil
	}
	turn := o.fold.Begin(time.Now().UnixMilli())
	commands, err := turn.Add(engine.ExecutionRecovered{})
	if err != nil {
		return err
	}
	if commands, err = o.commit(o.host.ctx, turn, commands, nil, nil); err != nil {
		return err
	}
	o.carryOut(commands)
	return nil
}

func (o *owner) read() error {
	ctx, p := o.host.ctx, o.principal()
	summary, err := o.host.opts.Executions.Get(ctx, p, o.ref.Execution)
	if err != nil {
		return err
	}
	revision, err := o.host.opts.Revision(ctx, p, summary.WorkflowID, summary.RevisionHash)
	if err != nil {
		return err
	}
	o.use(revision)
	o.started, o.parent = summary.Started, summary.Parent
	if err := o.restore(); err != nil {
		return err
	}
	if o.tailRows, o.tailBytes, err = replay(ctx, o.host.opts.Journal, p, o.ref.Execution, o.fold); err != nil {
		return err
	}
	o.status = o.fold.State().Status()
	return nil
}

// restore begins with the last snapshot, if there is one. One that cannot be used is passed over: the journal is the
// truth.
func (o *owner) restore() error {
	snap, ok, err := o.host.opts.Journal.LastSnapshot(o.host.ctx, o.principal(), o.ref.Execution)
	if err != nil || !ok {
		return err
	}
	fold, err := host.RestoreFold(o.revision.Graph, scopes{o.revision}, nil, rowReader(o.host.ctx, o.host.opts.Journal, o.principal(), o.ref.Execution), snap.Body)
	if err != nil {
		o.host.opts.Log.Warn("snapshot passed over", "execution", o.ref.Execution, "seq", snap.Seq, "error", err)
		return nil
	}
	o.fold, o.snapshot = fold, len(snap.Body)
	return nil
}

// When a snapshot is taken: on parking after a number of rows, and in long runs when what follows the last one has
// outgrown it.
const (
	snapshotOnParking = 32
	snapshotOnRunning = 1000
)

// snapshotDue says whether the row that is being committed comes with a snapshot.
func (o *owner) snapshotDue(commands []engine.Command) bool {
	if o.tailRows >= snapshotOnRunning && o.tailBytes >= 2*o.snapshot {
		return true
	}
	if o.tailRows < snapshotOnParking || len(o.attempts) > 0 || o.fold.State().Status().Final() {
		return false
	}
	return !slices.ContainsFunc(commands, func(c engine.Command) bool {
		_, runs := c.(engine.RunNode)
		return runs
	})
}

// fail gives an execution up for this process: its journal is as it was, and the next process takes it up.
func (o *owner) fail(err error) {
	o.stopAll()
	o.host.mu.Lock()
	delete(o.host.owners, o.ref)
	o.host.mu.Unlock()
	if errors.Is(err, context.Canceled) || errors.Is(err, errClosed) {
		return
	}
	o.host.opts.Log.Error("execution given up until the next start", "execution", o.ref.Execution, "error", err)
	if o.host.opts.GivenUp != nil {
		o.host.opts.GivenUp(o.ref, err)
	}
}

// loop deals with messages until there is nothing left to do here: the execution has ended, or only waits.
func (o *owner) loop() {
	for {
		if list := o.take(); len(list) > 0 {
			if err := o.deal(list); err != nil {
				o.fail(err)
				return
			}
			continue
		}
		if len(o.attempts) == 0 && o.host.retire(o) {
			return
		}
		select {
		case <-o.wake:
		case <-o.host.ctx.Done():
			o.stopAll()
			return
		}
	}
}

func (o *owner) stopAll() {
	for _, a := range o.attempts {
		a.cancel()
	}
}

// deal makes one row of what has come in, appends it, and acts on it.
func (o *owner) deal(list []message) error {
	turn := o.fold.Begin(time.Now().UnixMilli())
	var commands []engine.Command
	var inbox []int64
	// add applies a fact. What cannot follow any more (a late outcome, a timer that was removed, an action too late) is
	// refused; a defect is an error.
	add := func(fact engine.Fact) (refused *fault.Error, err error) {
		more, err := turn.Add(fact)
		if err != nil {
			switch fault.CodeOf(err) {
			case fault.Conflict, fault.NotFound, fault.Invalid:
				o.host.opts.Log.Debug("fact refused", "execution", o.ref.Execution, "fact", fmt.Sprintf("%T", fact), "error", err)
				return fault.From(err), nil
			}
			return nil, err
		}
		commands = append(commands, more...)
		return nil, nil
	}
	for _, m := range list {
		var err error
		switch m := m.(type) {
		case timerDue:
			if child, ok := reminded(m.id); ok {
				if err := o.startAgain(child); err != nil {
					return err
				}
				continue
			}
			_, err = add(engine.TimerFired{Timer: m.id})
		case overtime:
			if a, ok := o.attempts[m.attempt.Activation]; ok && a.run == m.run {
				_, err = add(engine.AttemptTimedOut{Attempt: m.attempt})
			}
		case outcome:
			if a, ok := o.attempts[m.attempt.Activation]; ok && a.id == m.attempt {
				a.cancel()
				delete(o.attempts, m.attempt.Activation)
			}
			kept := len(turn.Row().Values)
			var refused *fault.Error
			if refused, err = add(m.result.Fact(turn.Put)); refused != nil {
				turn.Row().Values = turn.Row().Values[:kept] // nobody refers to them
			}
		case delivered:
			inbox, err = o.readInbox(turn, add, inbox)
		}
		if err != nil {
			return err
		}
	}
	if len(turn.Row().Facts) == 0 {
		return nil
	}
	commands, err := o.commit(o.host.ctx, turn, commands, inbox, nil)
	if err != nil {
		return err
	}
	o.carryOut(commands)
	return nil
}

// The kinds of inbox items that this host understands.
const (
	ItemPause  = "pause"
	ItemResume = "resume"
	ItemCancel = "cancel"
	ItemRetry  = "retry_node"
	ItemSkip   = "skip_node"
	ItemSignal = "signal"
	ItemAnswer = "answer"
	ItemChild  = "child_finished"
)

// Item is the body of an inbox item.
type Item struct {
	By         string              `json:"by,omitempty"`
	Node       string              `json:"node,omitempty"`
	Activation engine.ActivationID `json:"activation,omitempty"`
	Signal     string              `json:"signal,omitempty"`
	Ask        engine.AskID        `json:"ask,omitempty"`
	Outcome    engine.AskOutcome   `json:"outcome,omitempty"`
	Choice     string              `json:"choice,omitempty"`
	Child      string              `json:"child,omitempty"`
	Status     engine.Status       `json:"status,omitempty"`
	Error      *fault.Error        `json:"error,omitempty"`
	// Value is the payload, output or answer.
	Value json.RawMessage `json:"value,omitempty"`
}

func (o *owner) readInbox(turn *host.Turn, add func(engine.Fact) (*fault.Error, error), taken []int64) ([]int64, error) {
	items, err := o.host.opts.Inbox.Pending(o.host.ctx, o.principal(), o.ref.Execution)
	if err != nil {
		return taken, err
	}
	for _, item := range items {
		if slices.Contains(taken, item.ID) {
			continue // two messages told of it
		}
		fact, err := requested(turn, item)
		refused := fault.From(err)
		if err == nil {
			if refused, err = add(fact); err != nil {
				return taken, err
			}
		}
		if refused != nil {
			if _, err := add(engine.RequestRefused{Request: item.Kind, Error: refused}); err != nil {
				return taken, err
			}
		}
		taken = append(taken, item.ID)
	}
	return taken, nil
}

// requested makes a fact of an inbox item.
func requested(turn *host.Turn, item store.InboxItem) (engine.Fact, error) {
	var body Item
	if err := json.Unmarshal(item.Body, &body); err != nil {
		return nil, fmt.Errorf("read inbox item %d: %w", item.ID, err)
	}
	value := func() engine.Ref {
		if len(body.Value) == 0 {
			return ""
		}
		return turn.Put(body.Value)
	}
	switch item.Kind {
	case ItemPause:
		return engine.ExecutionPaused{By: body.By}, nil
	case ItemResume:
		return engine.ExecutionResumed{By: body.By}, nil
	case ItemCancel:
		return engine.CancelRequested{By: body.By}, nil
	case ItemRetry:
		return engine.NodeRetried{Activation: body.Activation, By: body.By}, nil
	case ItemSkip:
		return engine.NodeSkipped{Activation: body.Activation, HasOutput: len(body.Value) > 0, Output: value(), By: body.By}, nil
	case ItemSignal:
		return engine.SignalReceived{Node: body.Node, Activation: body.Activation, Name: body.Signal, Ref: value()}, nil
	case ItemAnswer:
		return engine.AskAnswered{Ask: body.Ask, Outcome: body.Outcome, Choice: body.Choice, Ref: value()}, nil
	case ItemChild:
		return engine.ChildFinished{Child: body.Child, Status: body.Status, Ref: value(), Error: body.Error}, nil
	}
	return nil, fault.Newf(fault.Unsupported, "inbox item %d is of kind %q", item.ID, item.Kind)
}
