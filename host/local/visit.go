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
	"tandem/store"
	"tandem/workflow"
)

// A host with a carrier has no owners that stay: somebody else says when an execution goes on, and in which of several processes. To record
// something about one, a process visits it: the journal is folded, or what is new in it is added to the fold that this process still has, a
// row is made as an owner makes it, and it is appended behind the last one. If another process was faster, that is a conflict: nothing was
// written, and all of it is done again on what is there now. What follows from a row is told to the carrier, as ids.

// Carrier sees to it that executions go on, in this process or in another.
type Carrier interface {
	// Wake lets [Host.Attend] be called soon for an execution. What there is to do is in the store. Package sweep repeats lost wake-ups.
	Wake(store.Ref)
	// Begin is the same for an execution whose first row was just recorded, with what follows from it.
	Begin(store.Ref, Next)
}

// Next is what is to be done for an execution.
type Next struct {
	// Seq is the last row of which this follows; 0 with Ended: whichever it was, the execution has ended.
	Seq uint64
	// Run are attempts that are to be run, Stop those that are not needed any more.
	Run  []Work
	Stop []engine.Attempt
	// Due is when the execution is to be attended to at the latest, in Unix milliseconds; 0: whenever it is woken.
	Due int64
	// All says that Run and Due are everything there is: what else runs is not needed any more. Else there may be more of before.
	All bool
	// Ended says that the execution has ended.
	Ended bool
	// AtOnce is how many of its attempts may run at once.
	AtOnce int
	// Status is that of the execution, Workflow the id of what it is an execution of.
	Status   engine.Status
	Workflow string
}

// Work is an attempt that is to be run.
type Work struct {
	Attempt engine.Attempt
	// Once says that nobody may run it a second time, Limit how long it may take.
	Once  bool
	Limit time.Duration
}

func (n *Next) due(at int64) {
	if n.Due == 0 || at < n.Due {
		n.Due = at
	}
}

// carry adds what follows from a command. It says false to one that is carried out at once.
func (o *owner) carry(n *Next, c engine.Command) bool {
	switch c := c.(type) {
	case engine.RunNode:
		if a, ok := o.fold.State().Activation(c.Activation); ok && a.Status == engine.NodeRunning &&
			a.Attempt == c.Attempt.Attempt && a.Generation == c.Generation {
			n.Run = append(n.Run, Work{c.Attempt, o.notesBegun(c), o.limits(c).timeout})
		}
	case engine.CancelNode:
		n.Stop = append(n.Stop, c.Attempt)
		return false // it may run here
	case engine.Sleep:
		n.due(c.Until)
	case engine.CancelTimer:
	default:
		return false
	}
	return true
}

// notesBegun says that an attempt is recorded as begun before it begins.
func (o *owner) notesBegun(run engine.RunNode) bool {
	return run.Cause.Kind == engine.CauseRun && o.limits(run).effect == workflow.Once && !o.revision.Repeatable(run)
}

// everything is all that is to be done, even if it was reported before.
func (o *owner) everything() Next {
	n := Next{All: true}
	for _, c := range o.fold.State().Outstanding() {
		o.carry(&n, c)
	}
	return n
}

// maxVisited is how many executions a process remembers that nobody visits.
const maxVisited = 1000

// visits are the executions that this process has folded.
type visits struct {
	mu    sync.Mutex
	all   map[store.Ref]*visited
	clock uint64
}

// visited is an execution that this process has folded. One visit runs at a time, the one that has the turn; it may wait for the disk.
type visited struct {
	turn chan struct{}
	// owner is nil if it is to be read anew.
	owner *owner
	// attempts are the runs that go on here, whichever process folds.
	attempts map[engine.ActivationID]attempt
	runs     uint64
	// ended are outcomes that are to be recorded.
	ended turns.Group[*ending]
	// users counts the visits that go on or wait, and the runs; used is when the last one ended. The lock of visits is over both.
	users int
	used  uint64
}

func (v *visits) enter(ref store.Ref) *visited {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.all == nil {
		v.all = map[store.Ref]*visited{}
	}
	one := v.all[ref]
	if one == nil {
		one = &visited{turn: make(chan struct{}, 1), attempts: map[engine.ActivationID]attempt{}}
		v.all[ref] = one
	}
	one.users++
	return one
}

// leave forgets the one that was visited longest ago if there are too many.
func (v *visits) leave(one *visited) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.clock++
	one.users--
	one.used = v.clock
	if len(v.all) <= maxVisited {
		return
	}
	var oldest store.Ref
	var at uint64
	for ref, other := range v.all { // order does not matter: the oldest is looked for
		if other.users == 0 && (at == 0 || other.used < at) {
			oldest, at = ref, other.used
		}
	}
	delete(v.all, oldest)
}

// visit lets something be recorded about an execution, again and again until no other process was faster.
func (h *Host) visit(ref store.Ref, do func(*owner) error) (Next, error) {
	if !h.hold() {
		return Next{}, errClosed
	}
	defer h.running.Done()
	one := h.visits.enter(ref)
	defer h.visits.leave(one)
	one.turn <- struct{}{}
	defer func() { <-one.turn }()
	return h.visitIn(ref, one, false, do)
}

// visitIn is visit for a caller that has the turn; known says that what this process has folded is enough for a first try.
func (h *Host) visitIn(ref store.Ref, one *visited, known bool, do func(*owner) error) (Next, error) {
	for try := 1; ; try++ {
		next, err := h.tryVisit(ref, one, known, do)
		known = false
		if !errors.Is(err, errOvertaken) || h.ctx.Err() != nil {
			return next, err
		}
		if pause := min(time.Duration(try-eagerTries)*overtakenPause, firstReadPause); pause > 0 && !h.rest(h.ctx, pause, err) {
			return next, err
		}
	}
}

// How often a visit that was overtaken is made again at once, and how much longer each pause is after that.
const (
	eagerTries     = 5
	overtakenPause = 10 * time.Millisecond
)

// hold keeps the host from being closed altogether, unless that has begun.
func (h *Host) hold() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.running.Add(1)
	}
	return !h.closed
}

// errOvertaken says that another process has appended to an execution first. Nothing was written.
var errOvertaken = errors.New("another process has recorded something of the execution") // read-only

func (h *Host) tryVisit(ref store.Ref, one *visited, known bool, do func(*owner) error) (Next, error) {
	o := one.owner
	one.owner = nil // it is kept if all goes well
	var err error
	if o == nil {
		o = h.newOwner(ref, nil)
		o.attempts, o.runs = one.attempts, one.runs
		err = o.readJournal()
	} else if !known {
		err = o.readMore(o.host.journal(o.principal(), o.ref.Execution, o.revision))
	}
	o.traced = nil // what was told when it happened
	o.next = &Next{}
	if err == nil {
		err = do(o)
	}
	if err == nil {
		o.tidy()
		one.owner, one.runs = o, o.runs
		return o.told(), nil
	}
	if !host.IsUnreadable(err) {
		return Next{}, err
	}
	closed, now := o.closed(err)
	if !closed {
		return Next{}, err
	}
	o.stopAll()
	timers, failed := h.opts.Timers.Of(h.ctx, o.principal(), ref.Execution)
	if failed != nil {
		return Next{}, failed
	}
	var left []message
	for _, t := range timers { // no row will remove them
		left = append(left, timerDue{id: engine.TimerID(t.ID)})
	}
	o.forgetTimers(left, now)
	h.opts.Log.Error("execution ended: what is recorded of it cannot be read", "execution", ref.Execution, "error", err)
	return Next{Seq: o.closedBy, All: true, Ended: true}, &closedError{err}
}

// told is what is next, with how the execution stands.
func (o *owner) told() Next {
	next, state := *o.next, o.fold.State()
	next.Seq, next.Status, next.Ended = state.Seq(), state.Status(), state.Status().Final()
	next.AtOnce, next.Workflow = o.atOnce(), o.revision.Definition.Metadata.ID
	return next
}

// closedError is why an execution was ended whose record cannot be read.
type closedError struct{ why error }

// Error implements error.
func (e *closedError) Error() string { return e.why.Error() }

// Unwrap returns the reason.
func (e *closedError) Unwrap() error { return e.why }

// settled takes an execution that was ended, because it cannot be read, for one that has ended.
func settled(n Next, err error) (Next, error) {
	if _, ok := errors.AsType[*closedError](err); ok {
		return n, nil
	}
	return n, err
}

// Attend sees to all that there is to do for an execution: what is in its inbox, what is due, children that are yet to be started, a
// beginning that has been waited for, and runs of which the carrier knows that they were lost. It returns everything that is to be done
// then.
func (h *Host) Attend(ref store.Ref, lost ...engine.Attempt) (Next, error) {
	return settled(h.visit(ref, func(o *owner) error {
		list := make([]message, 0, len(lost)+4)
		for _, at := range lost {
			list = append(list, lostRun{at, WasBegun})
		}
		timers, err := h.opts.Timers.Of(h.ctx, o.principal(), ref.Execution)
		if err != nil {
			return err
		}
		now := o.now()
		for _, t := range timers {
			id := engine.TimerID(t.ID)
			if _, child := reminded(id); child || id == errorTimer || t.Until <= now {
				list = append(list, timerDue{id: id})
			}
		}
		if o.fold.State().Status() == engine.StatusPending && h.admission.Placed(ref, o.claim) {
			list = append(list, admitted{})
		}
		for part := range slices.Chunk(append(list, delivered{}), maxTurn) {
			if err := o.deal(part); err != nil {
				return err
			}
		}
		*o.next = o.everything()
		if status := o.fold.State().Status(); status.Final() { // it may have ended while its turn came
			h.admission.Moved(ref, o.claim, status)
			h.admitNext()
		}
		return nil
	}))
}

// lostRun is a run that has ended with its process, or that the carrier has given up.
type lostRun struct {
	attempt engine.Attempt
	was     Was
}

// begins is an attempt that begins now and must not begin again.
type begins struct {
	attempt  engine.Attempt
	inquires bool
}

func (lostRun) isMessage() {}
func (begins) isMessage()  {}

// lost deals with a run that was lost.
func (d *dealing) lost(m lostRun) error {
	fact := engine.ExecutionRecovered{Known: true, Lost: []engine.Attempt{m.attempt}, Alone: m.was == WasAlone}
	if m.was != WasStopped { // which counts for nothing
		fact.Begun = []engine.ActivationID{m.attempt.Activation}
	}
	_, err := d.addFact(fact)
	return err
}

// begins records that an attempt begins. One that has begun before was lost: nobody knows how it has ended.
func (d *dealing) begins(m begins) error {
	refused, err := d.addFact(engine.NodeStarted{Attempt: m.attempt, Inquires: m.inquires})
	if refused != nil {
		return d.lost(lostRun{m.attempt, WasBegun})
	}
	return err
}

// actVisiting is [Host.Act] of a request that somebody waits for the answer of.
func (h *Host) actVisiting(ctx context.Context, ref store.Ref, r host.Request) (engine.Status, error) {
	var answer chan reply
	next, err := h.visit(ref, func(o *owner) error {
		answer = make(chan reply, 1)
		return o.deal([]message{request{r, answer, store.PendingEntries(ctx)}})
	})
	if err != nil && h.Closing() {
		return "", closing()
	}
	if err != nil {
		return "", err
	}
	if len(next.Run)+len(next.Stop) > 0 || next.Due > 0 || next.Ended {
		h.opts.Carrier.Wake(ref)
	}
	a := <-answer
	return a.status, a.err
}

// carryStart hands an execution over whose first row is on disk.
func (h *Host) carryStart(o *owner, status engine.Status) host.Started {
	h.mu.Lock()
	h.remove(o.ref)
	h.mu.Unlock()
	h.running.Done()
	left := o.left
	o.left = todo{}
	o.goOn(left)
	o.tidy()
	one := h.visits.enter(o.ref)
	defer h.visits.leave(one)
	one.turn <- struct{}{}
	defer func() { <-one.turn }()
	if one.owner == nil {
		one.owner, o.attempts = o, one.attempts
	}
	h.opts.Carrier.Begin(o.ref, o.told())
	return host.Started{Execution: o.ref.Execution, Status: status}
}
