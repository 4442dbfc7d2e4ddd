package local

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"tandem/engine"
	"tandem/host"
	"tandem/host/turns"
	"tandem/node"
	"tandem/payload"
	"tandem/store"
)

// Run runs an attempt, unless that is not wanted any more, and returns what follows from its outcome. Was says what is known of an
// earlier try to run it. The context ends when the carrier wants it to stop, with [ErrGivenUp] when nobody waits for it any more. Tell is
// called with what is to be known of this try should the process die; until then it is taken for one that has begun.
func (h *Host) Run(ctx context.Context, ref store.Ref, at engine.Attempt, was Was, tell func(Was)) (Next, error) {
	if !h.hold() {
		return Next{}, errClosed
	}
	defer h.running.Done()
	b := &beginning{ctx: ctx, at: at, was: was}
	next, err := h.begin(ref, b, tell)
	if b.in != nil {
		defer b.in.Leave()
	}
	if err != nil || b.run == nil {
		return settled(next, err)
	}
	run := b.run
	one := h.visits.enter(ref)
	defer func() {
		run.cancel()
		one.turn <- struct{}{}
		if a, ok := one.attempts[at.Activation]; ok && a.run == run.number {
			delete(one.attempts, at.Activation)
		}
		<-one.turn
		run.said.Emit(nil) // nothing more comes of this run
		close(run.ended)
		h.visits.leave(one)
	}()
	run.said.began = time.Now().UnixMilli()
	clock := time.AfterFunc(run.limit, func() {
		if _, err := h.visit(ref, func(o *owner) error { return o.deal([]message{overtime{at, run.number}}) }); err != nil {
			h.opts.Log.Warn("that an attempt takes too long was not recorded", "execution", ref.Execution, "error", err)
			run.overran.Store(true)
		}
		run.cancel()             // the attempt may be another's by now
		h.opts.Carrier.Wake(ref) // there may be something to do
	})
	trial := time.AfterFunc(windowOf(b.deaths), func() {
		if b.in.Acquit() {
			tell(WasBegun)
		}
	})
	result := run.revision.Run(run.ctx, run.job)
	clock.Stop()
	trial.Stop()
	b.in.Leave()
	if h.Closing() {
		return Next{}, errClosed // it is lost with this process
	}
	if errors.Is(context.Cause(ctx), ErrGivenUp) {
		h.forgo(run.said, result.Settle)
		return Next{}, ErrGivenUp
	}
	if run.overran.Load() && !run.once { // one that may not be repeated says itself how it has ended
		result = outOfTime(at, result)
	}
	e := &ending{outcome: outcome{at, result, run.said}}
	for pause, began := firstReadPause, time.Now(); ; pause = min(2*pause, lastReadPause) {
		next, err = settled(h.record(ref, one, e))
		givenUp := !run.once && errors.Is(err, store.ErrUnavailable) && time.Since(began) >= endedPatience
		if givenUp {
			tell(WasStopped) // another process runs it again, and holds nothing against it
		}
		if givenUp || !h.mayPass(h.ctx, err) || !h.rest(h.ctx, pause, err) {
			if err != nil {
				h.forgo(run.said, result.Settle)
			}
			return next, err
		}
	}
}

// forgo keeps what a run has said and used whose outcome is not recorded here, once the database is there. Nobody waits for that.
func (h *Host) forgo(said *said, used []node.Settlement) {
	h.running.Add(1)
	go func() {
		defer h.running.Done()
		o := said.owner
		for pause := firstReadPause; ; pause = min(2*pause, lastReadPause) {
			_, err := h.opts.Executions.Get(h.ctx, o.principal(), o.ref.Execution)
			if h.Closing() { // the run is lost with this process
				return
			}
			if !errors.Is(err, store.ErrUnavailable) {
				break
			}
			h.rest(h.ctx, pause, err)
		}
		o.settleLate(used)
		said.flush()
	}()
}

// outOfTime is the result of a run whose time was up, which is not recorded yet. If it has failed, the timeout is the reason.
func outOfTime(at engine.Attempt, r node.Result) node.Result {
	unkept := func(json.RawMessage, ...payload.Part) engine.Ref { return "" }
	if _, failed := r.Fact(unkept).(engine.NodeFailed); failed {
		r.Fact = func(node.Put) engine.Fact { return engine.AttemptTimedOut{Attempt: at} }
	}
	return r
}

// ending is a run that has ended and whose outcome is to be recorded. Doubted says that a try before may have recorded it.
type ending struct {
	outcome
	doubted, dealt bool
	next           Next
	err            error
}

// record records how a run has ended, in one row with those that have ended here meanwhile: whose turn it is deals with all of them.
func (h *Host) record(ref store.Ref, one *visited, e *ending) (Next, error) {
	one.ended.Join(e)
	one.turn <- struct{}{}
	defer func() { <-one.turn }()
	for !e.dealt {
		h.recordGroup(ref, one)
	}
	e.dealt = false // should it be tried again
	return e.next, e.err
}

// recordGroup records what has ended, for who has the turn. All of them hear how that went, also when it panics: they try again then.
func (h *Host) recordGroup(ref store.Ref, one *visited) {
	group, next, err := one.ended.Take(maxTurn), Next{}, errors.New("the outcome was with others, of which one could not be dealt with")
	defer func() {
		for i, other := range group {
			other.dealt, other.doubted, other.next, other.err = true, true, next, err
			if i > 0 { // what follows is done once
				other.next.Run, other.next.Stop, other.next.Due, other.next.All = nil, nil, 0, false
			}
		}
	}()
	next, err = h.visitIn(ref, one, true, func(o *owner) error {
		group = append(group, one.ended.Take(maxTurn-len(group))...) // while rows are refused more of them end
		return o.dealEnded(group)
	})
}

// dealEnded makes one row of outcomes.
func (o *owner) dealEnded(group []*ending) error {
	list, before, doubted := make([]message, len(group)), o.fold.State().Seq(), false
	for i, e := range group {
		list[i], doubted = e.outcome, doubted || e.doubted
	}
	if err := o.deal(list); err != nil {
		for _, e := range group {
			e.said.lines.TakeBack(&o.host.room)
		}
		return err
	}
	// A try before may have been recorded, or the answer to an append was lost: then nobody was told what follows.
	if doubted || o.fold.State().Seq() == before {
		*o.next = o.everything()
	}
	return nil
}

// ErrGivenUp ends the context of a run that the carrier has given up. No outcome of it is recorded: it is run again, or not needed.
var ErrGivenUp = errors.New("the run was given up") // read-only

// beginning is an attempt that is to begin. In says that it may, deaths in how many deaths it was; waits says that others have to be
// waited for first. Behind ends with an earlier run of the same activation here, which has to be waited for; nil: there is none.
type beginning struct {
	ctx    context.Context
	at     engine.Attempt
	was    Was
	in     *turns.Entrance
	deaths uint32
	waits  bool
	behind <-chan struct{}
	run    *visitedRun
}

// begin lets an attempt begin here when its turn has come.
func (h *Host) begin(ref store.Ref, b *beginning, tell func(Was)) (next Next, err error) {
	for {
		next, err = h.visit(ref, func(o *owner) error { return o.beginHere(b) })
		if err != nil && !h.Closing() {
			tell(WasNothing)
		}
		if err != nil || !b.waits && b.behind == nil {
			return next, err
		}
		if b.behind != nil { // the one before has begun, and would die with this process
			select {
			case <-b.behind:
				continue
			case <-b.ctx.Done():
				return Next{}, nil // it is not wanted any more
			case <-h.ctx.Done():
				return Next{}, errClosed
			}
		}
		tell(WasNothing)
		ctx, stop := context.WithCancel(b.ctx)
		release := context.AfterFunc(h.ctx, stop)
		b.in = h.quarantine.Await(ctx, b.deaths, windowOf(b.deaths))
		release()
		stop()
		if h.Closing() {
			return Next{}, errClosed
		}
		if b.deaths > 0 {
			tell(WasAlone)
		} else {
			tell(WasBegun)
		}
	}
}

// Closing says that the host was closed: what runs is told to stop.
func (h *Host) Closing() bool { return h.ctx.Err() != nil }

// Was is what is known of an earlier try to run an attempt.
type Was int

// There was none that has begun; there was one that has begun; there was one in its trial, in which nothing else begins; there was one that
// was stopped in order.
const (
	WasNothing Was = iota
	WasBegun
	WasAlone
	WasStopped
)

// visitedRun is an attempt that runs in this process.
type visitedRun struct {
	revision *node.Revision
	job      node.Job
	said     *said
	limit    time.Duration
	once     bool
	number   uint64
	// overran says that its time was up, and that this could not be recorded.
	overran atomic.Bool
	ctx     context.Context
	cancel  context.CancelFunc
	// ended is closed when it has ended and its outcome is recorded.
	ended chan struct{}
}

// beginHere gathers what an attempt needs. Without a run it is not to be run, and the next step is told instead, or it has to wait.
func (o *owner) beginHere(b *beginning) error {
	b.run, b.waits, b.behind = nil, false, nil
	at := b.at
	run, ok := o.wants(at)
	if ok && b.was != WasNothing {
		ok = false
		if err := o.deal([]message{lostRun{at, b.was}}); err != nil {
			return err
		}
	}
	if a, here := o.attempts[at.Activation]; ok && here {
		if a.id != at {
			a.cancel() // nobody waits for it any more
		}
		b.behind = a.ended // a carrier that has lost sight of a run asks for it again
		return nil
	}
	if ok && b.in == nil {
		a, _ := o.fold.State().Activation(at.Activation)
		b.deaths = a.Recoveries
		if b.in, ok = o.host.quarantine.Enter(b.deaths); !ok {
			b.waits = true
			return nil
		}
	}
	if ok && o.notesBegun(run) {
		owner, _, _ := host.Owner(o.revision.Graph, run.Activation)
		if err := o.deal([]message{begins{at, o.revision.Inquires(run, owner)}}); err != nil {
			return err
		}
		a, _ := o.fold.State().Activation(at.Activation)
		ok = a.Status == engine.NodeRunning && a.Started && a.Attempt == at.Attempt
	}
	if !ok {
		*o.next = o.everything()
		return nil
	}
	job, _, err := Job(o.fold, o.revision, run)
	if err != nil {
		return o.deal([]message{outcome{at, failure(at, err), nil}})
	}
	said := o.equip(&job, run)
	o.runs++
	r := &visitedRun{
		revision: o.revision, job: job, said: said, limit: o.limits(run).timeout, once: o.notesBegun(run), number: o.runs,
		ended: make(chan struct{}),
	}
	r.ctx, r.cancel = context.WithCancel(b.ctx)
	stop := context.AfterFunc(o.host.ctx, r.cancel)
	cancel := r.cancel
	r.cancel = func() { stop(); cancel() }
	o.attempts[at.Activation] = attempt{id: at, cancel: cancel, run: r.number, ended: r.ended}
	b.run = r
	return nil
}

// wants returns the run of an attempt that is outstanding.
func (o *owner) wants(at engine.Attempt) (engine.RunNode, bool) {
	for _, c := range o.fold.State().Outstanding() {
		if run, ok := c.(engine.RunNode); ok && run.Attempt == at {
			return run, true
		}
	}
	return engine.RunNode{}, false
}
