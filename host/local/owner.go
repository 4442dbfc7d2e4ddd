package local

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"tandem/engine"
	"tandem/host"
	"tandem/host/turns"
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
	timerDue  struct {
		id engine.TimerID
		counted
	}
	// outcome: a worker has ended a run.
	outcome struct {
		attempt engine.Attempt
		result  node.Result
		said    *said
	}
	// unheard: what it asks is to be asked again, since there is no record of it.
	unheard struct{ counted }
	// admitted: there is room for an execution that has waited to begin.
	admitted struct{}
	// withheld: the process stops, and an attempt's turn had not come.
	withheld struct {
		attempt engine.Attempt
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
func (admitted) isMessage()  {}
func (unheard) isMessage()   {}
func (withheld) isMessage()  {}

// ofRun says that a message is of a run that an owner has begun.
func ofRun(m message) bool {
	switch m.(type) {
	case outcome, *outcome, withheld, overtime:
		return true
	}
	return false
}

// owner is the one goroutine that appends to an execution's journal. Its fold is its own; its queue is everybody's.
type owner struct {
	host     *Host
	ref      store.Ref
	revision *node.Revision
	fold     *host.Fold
	files    node.Files
	// values hands what runs bring to rows, by put.
	values *putting
	put    node.Put
	// parent is the execution that waits for this one, if one does.
	parent string
	// below says that it is counted for its parent, see [Host.joinParent].
	below bool
	// claim is what it takes room of while it runs.
	claim  turns.Claim
	status engine.Status
	// awaits says that it waited for people and nothing else, as of the last row: its parent is told when that changes.
	awaits bool
	// asksBelow are the children that wait for people, as of the last row.
	asksBelow map[string]engine.ActivationID
	// tail counts the rows and bytes since the last snapshot, whose size is snapshot.
	tailRows, tailBytes, snapshot int
	// startedChildren are children whose start is on disk, so that the reminder of them can go with the next row.
	startedChildren []string
	// held are rows that wait to be appended with the next one, heldBytes their size.
	held      []held
	heldBytes int
	// shared are the fields that many values have in common and that are kept, by where they are in memory.
	shared map[*byte]host.Blob
	// starting says that the first row is not on disk yet; left is what is to be done once it is.
	starting bool
	left     todo
	// follow is that of [host.StartRequest]; whole says that it was not called, since the execution has ended with its first append.
	follow func()
	whole  bool
	// stale are timers in the store that nobody waits for.
	stale []string
	// recovered are the runs that it came back with after a crash and that have not ended; nil: there is nothing to tell the line of.
	recovered map[engine.Attempt]bool
	// begunIn is, of a fork that is being made, how the activations stand in its source whose work was under way there.
	begunIn map[engine.ActivationID]engine.NodeStatus
	// suspects are the activations whose runs are to be tried, while it recovers, and whether they come first.
	suspects map[engine.ActivationID]bool
	// rested says that there may be runs which were not begun here.
	rested bool
	// attempts are the runs that workers have in hand, by activation.
	attempts map[engine.ActivationID]attempt
	runs     uint64 // numbers the runs
	// briefs are runs that are to be done on the spot.
	briefs *turns.Batches[briefRun, outcome]
	// next gathers what is to be done for who carries the execution; nil: it is done here.
	next *Next
	// closedBy is the row that has ended the execution because its record cannot be read; 0: it was not ended here.
	closedBy uint64

	mu    sync.Mutex
	queue []message
	spare []message // room for the next queue
	wake  chan struct{}
	// traced is what the row that is being made has done to the data, when that is wanted.
	traced []host.Traced
}

type attempt struct {
	id     engine.Attempt
	cancel context.CancelFunc
	// run tells the runs of an attempt apart: one that has waited runs again under the same number of attempt.
	run uint64
	// ended is closed when the run of a carried execution has ended.
	ended <-chan struct{}
}

func (h *Host) newOwner(ref store.Ref, revision *node.Revision) *owner {
	o := &owner{host: h, ref: ref, attempts: map[engine.ActivationID]attempt{}, wake: make(chan struct{}, 1)}
	o.files = store.Files{Blobs: h.opts.Blobs, Principal: o.principal()}
	if h.opts.Carrier != nil {
		o.next = &Next{}
	}
	if revision != nil {
		o.use(revision)
	}
	return o
}

// use pins the owner to a revision.
func (o *owner) use(r *node.Revision) {
	o.revision = r
	o.fold = host.NewFold(r.Graph, revision{r}, o.host.opts.Programs,
		o.loader(o.host.journal(o.principal(), o.ref.Execution, r).Loader(o.host.ctx)))
	if o.host.debug {
		o.fold.Trace(func(t host.Traced) { o.traced = append(o.traced, t) })
	}
}

// principal is Tandem itself, acting in the execution's workspace.
func (o *owner) principal() identity.Principal { return identity.System(o.ref.Workspace) }

func (o *owner) push(m message) {
	o.mu.Lock()
	o.queue = append(o.queue, m)
	o.mu.Unlock()
	o.nudge()
}

// nudge lets the owner look whether there is something to do.
func (o *owner) nudge() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// parentRef is the execution that waits for this one.
func (o *owner) parentRef() store.Ref {
	return store.Ref{Workspace: o.ref.Workspace, Execution: o.parent}
}

// putBack lets the room of messages that were dealt with be used for those that come.
func (o *owner) putBack(dealt []message) {
	clear(dealt)
	o.mu.Lock()
	o.spare = dealt[:0]
	o.mu.Unlock()
}

func (o *owner) waiting() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.queue) > 0
}

func (o *owner) takeQueue() []message {
	o.mu.Lock()
	defer o.mu.Unlock()
	list := o.queue
	if len(list) > maxTurn {
		list, o.queue = list[:maxTurn:maxTurn], list[maxTurn:]
		return list
	}
	o.queue, o.spare = o.spare, nil
	return list
}

// takeOutcomes is take if nothing has come in but outcomes.
func (o *owner) takeOutcomes() []message {
	o.mu.Lock()
	others := slices.ContainsFunc(o.queue, func(m message) bool {
		switch m.(type) {
		case outcome, *outcome:
			return false
		}
		return true
	})
	o.mu.Unlock()
	if others {
		return nil
	}
	return o.takeQueue()
}

func (o *owner) takeAll() []message {
	o.mu.Lock()
	defer o.mu.Unlock()
	list := o.queue
	o.queue = nil
	return list
}

// maxTurn bounds what goes into one row: a row that is read is in memory as a whole.
const maxTurn = 256

// load reads the journal, then goes on as the owner.
func (o *owner) load() {
	err := o.readJournal()
	o.traced = nil // what was told when it happened
	if o.rested = o.rests(); err == nil && !o.rested {
		err = o.recover()
	}
	o.host.trials.arrived(o.ref)
	if err != nil {
		o.fail(err)
		return
	}
	o.loop()
}

func (o *owner) readJournal() error {
	ctx, p := o.host.ctx, o.principal()
	var summary store.Execution
	rows, whole := []store.Row(nil), false
	var revision *node.Revision
	err := o.host.patiently(ctx, func() (err error) {
		if summary, rows, whole, err = o.host.opts.Executions.GetWithRows(ctx, p, o.ref.Execution); err != nil {
			return err
		}
		revision, err = o.host.opts.Revision(ctx, p, summary.WorkflowID, summary.RevisionHash)
		return err
	})
	if err != nil {
		return err
	}
	o.revision, o.parent, o.claim = revision, summary.Parent, turns.ClaimOf(summary.User, o.host.isTask(summary.WorkflowID))
	journal := o.host.journal(p, o.ref.Execution, revision)
	read := journal
	if whole {
		read.Source = atHand{journal.Source, o.ref.Execution, rows}
	}
	if o.fold, o.snapshot, err = read.Restore(ctx); err != nil {
		return err
	}
	if err := o.readMore(read); err != nil {
		return err
	}
	o.fold.Reload(o.loader(journal.Loader(ctx)))
	return nil
}

// readMore folds the rows that the fold has not seen.
func (o *owner) readMore(journal host.Journal) error {
	rows, bytes, err := journal.Replay(o.host.ctx, o.fold)
	if err != nil {
		return err
	}
	o.tailRows, o.tailBytes = o.tailRows+rows, o.tailBytes+bytes
	o.status, o.awaits, o.asksBelow = o.fold.State().Status(), o.fold.State().AwaitsPeople(), o.fold.State().AsksBelow()
	return nil
}

// When a snapshot is taken: on parking after a number of rows, which is larger where the snapshot is large, and in long runs when what
// follows the last one has outgrown it.
const (
	snapshotOnParking = 32
	snapshotOnRunning = 1000
	// snapshotPerRow is how many bytes of a snapshot cost what folding a row does.
	snapshotPerRow = 8 << 10
)

// snapshotDue says whether the row that is being committed comes with a snapshot.
func (o *owner) snapshotDue(commands []engine.Command) bool {
	if o.tailRows >= snapshotOnRunning && o.tailBytes >= 2*o.snapshot {
		return true
	}
	// To fold some rows more costs less than to write a large snapshot once more.
	enough := max(snapshotOnParking, min(o.snapshot/snapshotPerRow, snapshotOnRunning))
	if o.tailRows < snapshotOnParking || o.tailRows < enough && o.tailBytes < o.snapshot || len(o.attempts) > 0 ||
		o.fold.State().Status().Final() {
		return false
	}
	return !slices.ContainsFunc(commands, func(c engine.Command) bool {
		_, runs := c.(engine.RunNode)
		return runs
	})
}

// fail ends an execution that cannot be read, and gives up for this process one that could not be read or written now.
func (o *owner) fail(err error) {
	o.stopAll()
	defer o.back()
	closed, now := false, false
	if host.IsUnreadable(err) {
		closed, now = o.closed(err)
	}
	o.host.mu.Lock()
	o.host.remove(o.ref)
	left := o.takeAll()
	o.host.mu.Unlock()
	refuse(left, err)
	if closed {
		o.forgetTimers(left, now)
	}
	o.host.admission.Moved(o.ref, o.claim, engine.StatusError) // it no longer takes room
	o.host.admitNext()
	if errors.Is(err, context.Canceled) || errors.Is(err, errClosed) {
		return
	}
	if closed {
		o.host.opts.Log.Error("execution ended: what is recorded of it cannot be read", "execution", o.ref.Execution, "error", err)
		return
	}
	o.host.opts.Log.Error("execution given up until the next start", "execution", o.ref.Execution, "error", err)
	if o.host.opts.GivenUp != nil {
		o.host.opts.GivenUp(o.ref, err)
	}
}

// forgetTimers removes timers that have come for an execution that has been closed: no row will. That of its error workflow has come
// if the execution was closed only now, too, and stays until the workflow was started.
func (o *owner) forgetTimers(left []message, now bool) {
	var ids []string
	for _, m := range left {
		if due, ok := m.(timerDue); ok && due.id != errorTimer {
			ids = append(ids, string(due.id))
		} else if ok {
			now = true
		}
	}
	if now && o.closedStarts() {
		ids = append(ids, string(errorTimer))
	}
	if len(ids) == 0 {
		return
	}
	clear := func() error { return o.host.opts.Timers.Clear(o.host.ctx, o.principal(), o.ref.Execution, ids...) }
	if err := o.untilRoom(o.host.ctx, false, clear); err != nil {
		o.host.opts.Log.Warn("timers left behind; the next start looks at them again", "execution", o.ref.Execution, "error", err)
	}
}

// loop deals with messages until there is nothing left to do here: the execution has ended, or only waits.
func (o *owner) loop() {
	for {
		if list := o.takeQueue(); len(list) > 0 {
			if err := o.deal(list); err != nil {
				o.fail(err)
				return
			}
			if o.rested && !o.rests() { // it has been taken up since
				o.rested = false
				if err := o.recover(); err != nil {
					o.fail(err)
					return
				}
			}
			if o.recovered != nil && len(o.recovered) == 0 {
				o.recovered = nil
				o.back()
			}
			continue
		}
		if len(o.held) > 0 {
			if err := o.flush(o.host.ctx); err != nil {
				o.fail(err)
				return
			}
			continue
		}
		if len(o.attempts) == 0 {
			o.back()
			o.tidy()
			if o.host.retire(o) {
				return
			}
		}
		select {
		case <-o.wake:
		case <-o.host.ctx.Done():
			o.stopAll()
			refuse(o.takeAll(), errClosed)
			return
		}
	}
}

// tidy removes timers that no further row will remove: of children that were started after the end, and timers without effect. With a
// carrier another process may write the next row, and does not know what was started here.
func (o *owner) tidy() {
	ids := o.stale
	if o.status.Final() || o.next != nil {
		for _, child := range o.startedChildren {
			ids = append(ids, string(reminder(child)))
		}
		o.startedChildren = nil
	}
	o.stale = nil
	if len(ids) == 0 {
		return
	}
	err := o.untilRoom(o.host.ctx, false, func() error {
		return o.host.opts.Timers.Clear(o.host.ctx, o.principal(), o.ref.Execution, ids...)
	})
	if err != nil {
		o.host.opts.Log.Warn("timers left behind; the next start looks at them again", "execution", o.ref.Execution, "error", err)
	}
}

func (o *owner) stopAll() {
	for _, a := range o.attempts {
		a.cancel()
	}
}

// settleLate tells what a run has used for whose outcome it is too late.
func (o *owner) settleLate(list []node.Settlement) {
	if o.host.opts.Late != nil && len(list) > 0 {
		o.host.opts.Late(o.ref, list)
	}
}

// flushLate keeps what a run has said for whose outcome it is too late. Nil: it has said nothing.
func (o *owner) flushLate(said *said) {
	if said == nil {
		return
	}
	o.host.running.Add(1)
	go func() {
		defer o.host.running.Done()
		said.flush()
	}()
}

// todo is what is to be done after a row that is on disk.
type todo struct {
	commands []engine.Command
	afters   []outcome
}

func (o *owner) goOn(t todo) {
	o.carryOut(t.commands)
	for _, m := range t.afters {
		o.after(m)
	}
}

// now is the time of the next row. A clock that was set back does not take the journal back.
func (o *owner) now() int64 { return max(time.Now().UnixMilli(), o.fold.View().Updated) }
