package temporal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/host/local"
	"tandem/host/sweep"
	"tandem/store"
)

// Options is what a host is made of.
type Options struct {
	// Local is what it records with. Its carrier is set here; with Rest the process runs nothing and serves requests only.
	Local local.Options
	// Client is connected to the namespace of the installation.
	Client client.Client
	// Namespace is the client's; "default" when empty.
	Namespace string
	// TaskQueue is where the workers of the installation look for work. The ids of its workflows begin with it.
	TaskQueue string
	// Part is what this process does of it all.
	Part Part
	// Gone says whether another process of the installation has gone since the last call: it may have owed wake-ups. It is for the
	// process that sweeps. Nil: that is not known.
	Gone func(context.Context) (bool, error)
	// Release names the release that this process runs. Executions go on with the release that was started last, whichever has begun
	// them. Empty: with whichever process is free.
	Release string
}

// Part is what a process does.
type Part int

// A process does everything; or it is the server of the installation, which has the limits and makes lost wake-ups again, and runs no
// nodes; or it is a worker, which runs nodes and leaves the rest to the server.
const (
	Everything Part = iota
	Server
	Worker
)

// Host drives executions on a Temporal cluster, together with the other processes of the same installation.
type Host struct {
	*local.Host
	opts   Options
	log    *slog.Logger
	worker worker.Worker
	// waking sends fresh wake-ups, late those of the sweep, which delay no others.
	waking, late waking
	// sweeping is held by who sweeps.
	sweeping sync.Mutex
	sweeper  *sweep.Sweeper
	// begun is told when somebody else has begun a round.
	begun  chan struct{}
	stop   sync.Once
	closed context.Context
	close  context.CancelFunc
	swept  sync.WaitGroup
	search searching
	failed chan error
	// steps counts the attempts that run here.
	steps atomic.Int64
}

var _ host.Host = (*Host)(nil)

// How often it is looked for what was forgotten, and how long the pause is between the looks of a round in which everything is woken.
const (
	sweepEvery = 30 * time.Second
	roundPause = 50 * time.Millisecond
)

// New starts a host, with a worker unless it rests. A server need not find Temporal; a worker waits for it as long as the context lasts.
func New(ctx context.Context, opts Options) (*Host, error) {
	h := &Host{opts: opts, log: opts.Local.Log, failed: make(chan error, 1), begun: make(chan struct{}, 1)}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	h.closed, h.close = context.WithCancel(context.WithoutCancel(ctx))
	h.waking.begin(h.closed, wakers, h.wake)
	h.late.begin(h.closed, lateWakers, h.wake)
	opts.Local.Carrier, opts.Local.AdmittedElsewhere = &h.waking, opts.Part == Worker
	var err error
	if h.Host, err = local.New(ctx, opts.Local); err != nil {
		h.waking.end(h.close)
		h.late.end(h.close)
		return nil, err
	}
	h.sweeper = sweep.New(sweep.Options{
		Executions: opts.Local.Executions, Inbox: opts.Local.Inbox, Timers: opts.Local.Timers,
		Books: h.Host, Wake: h.late.Wake, Gone: opts.Gone,
	})
	if opts.Local.Rest {
		return h, nil
	}
	if opts.Part != Server {
		if err := h.startWorker(ctx); err != nil {
			h.Close()
			return nil, err
		}
	}
	if opts.Part == Worker {
		return h, nil
	}
	if err := h.sweepFirst(ctx); err != nil {
		h.Close()
		return nil, err
	}
	h.swept.Go(h.sweep)
	return h, nil
}

// sweepFirst sweeps for the first time. Who is there is looked at before: of those that go from then on it is told, and what others have
// owed is found here.
func (h *Host) sweepFirst(ctx context.Context) error {
	if h.opts.Gone != nil {
		if _, err := h.opts.Gone(ctx); err != nil {
			return fmt.Errorf("look which processes are there: %w", err)
		}
	}
	return h.Sweep(ctx)
}

// startWorker lets nodes be run here. It waits for Temporal if that cannot be reached.
func (h *Host) startWorker(ctx context.Context) error {
	for {
		err := h.tryWorker()
		if err == nil {
			return h.takeOver(ctx)
		}
		if !isAway(err) || ctx.Err() != nil {
			return err
		}
		h.log.Warn("no nodes are run here yet: Temporal cannot be reached, and is tried again", "error", err)
		select {
		case <-time.After(wakePause):
		case <-ctx.Done():
			return err
		}
	}
}

func (h *Host) tryWorker() error {
	h.worker = worker.New(h.opts.Client, h.opts.TaskQueue, h.workerOptions(h.deployment()))
	h.worker.RegisterWorkflowWithOptions(loop, workflow.RegisterOptions{Name: loopName})
	h.worker.RegisterActivityWithOptions(h.step, activity.RegisterOptions{Name: stepName})
	h.worker.RegisterActivityWithOptions(h.attend, activity.RegisterOptions{Name: attendName})
	if err := h.worker.Start(); err != nil {
		h.worker = nil
		return fmt.Errorf("start the worker: %w", err)
	}
	return nil
}

// workerOptions say how nodes are run here.
func (h *Host) workerOptions(release worker.DeploymentOptions) worker.Options {
	return worker.Options{
		MaxConcurrentActivityExecutionSize: h.places(), WorkerStopTimeout: patience,
		Identity:          h.opts.TaskQueue + "/" + strconv.FormatInt(time.Now().UnixNano(), 36),
		DeploymentOptions: release,
		// Temporal would hand a run to the worker that has just asked for it, without looking which release is the current one. So an
		// execution that always has something new would stay with the release that has begun it for as long as a worker of that lives.
		DisableEagerActivities: release.UseVersioning,
		OnFatalError:           func(err error) { h.failed <- err }, // it is called once
	}
}

// Failed is told why nothing runs here any more: Temporal has refused this worker for good, since the namespace is gone or the request
// makes no sense to it.
func (h *Host) Failed() <-chan error { return h.failed }

// patience is how long a worker that stops waits for what runs: until it is told to stop by other means.
const patience = 1000 * time.Hour

// spareActivities are places beside those for runs: what attends to executions takes no time. Temporal tells the sorts apart only when one
// is taken, so runs may take these, too.
const spareActivities = 4

// sweep makes wake-ups again that were lost with the process that owed them. It looks further when those of the look before were sent: what
// waits to be sent is never more than one look finds.
func (h *Host) sweep() {
	var err error
	for {
		pause := sweepEvery
		if err == nil && h.sweepGoes() {
			pause = roundPause
		}
		select {
		case <-h.closed.Done():
			return
		case <-time.After(pause):
		case <-h.begun:
		}
		select {
		case <-h.closed.Done():
			return
		case <-h.late.emptied():
		case <-time.After(sweepEvery): // some cannot be sent, and nobody else is to wait for them
		}
		if err = h.sweepWith(h.closed, (*sweep.Sweeper).Overdue); err != nil && h.closed.Err() == nil {
			h.log.Warn("what may have been forgotten was not looked for", "error", err)
		}
	}
}

func (h *Host) sweepGoes() bool {
	h.sweeping.Lock()
	defer h.sweeping.Unlock()
	return h.sweeper.Goes()
}

// Sweep begins to wake everything there may be something to do for. It is for the beginning, and for when anything may have been missed.
func (h *Host) Sweep(ctx context.Context) error {
	defer func() {
		select {
		case h.begun <- struct{}{}:
		default: // it is known
		}
	}()
	return h.sweepWith(ctx, (*sweep.Sweeper).All)
}

func (h *Host) sweepWith(ctx context.Context, look func(*sweep.Sweeper, context.Context) error) error {
	h.sweeping.Lock()
	defer h.sweeping.Unlock()
	return look(h.sweeper, ctx)
}

// HeardNothing looks at all that may have changed while nothing was heard of what other processes record.
func (h *Host) HeardNothing(ctx context.Context) error {
	if err := h.Host.HeardNothing(ctx); err != nil {
		return err
	}
	return h.Sweep(ctx)
}

func (h *Host) workflowID(ref store.Ref) string {
	return h.opts.TaskQueue + "/" + ref.Workspace + "/" + ref.Execution
}

// Drain lets nothing new run here and waits for what runs.
func (h *Host) Drain(ctx context.Context) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.stopWorker()
	}()
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

func (h *Host) stopWorker() {
	if h.worker != nil {
		h.stop.Do(h.worker.Stop)
	}
}

// Close stops everything here. What runs is lost, and goes on in other processes.
func (h *Host) Close() {
	h.Host.Close()
	h.stopWorker()
	h.waking.end(h.close)
	h.late.end(h.close)
	h.swept.Wait()
}

// attend is the activity that sees to all there is to do for an execution.
func (h *Host) attend(_ context.Context, e execution, lost []string) (answer, error) {
	var attempts []engine.Attempt
	for _, id := range lost {
		at, err := attemptOf(id)
		if err != nil {
			return answer{}, err
		}
		attempts = append(attempts, at)
	}
	next, err := h.Attend(e.ref(), attempts...)
	if errors.Is(err, store.ErrNotFound) {
		return answer{Ended: true}, nil // it was deleted
	}
	return h.answerOf(next), err
}

// step is the activity that runs an attempt. Of a try before nothing is known but what it has told; if that is nothing, it may have begun.
func (h *Host) step(ctx context.Context, e execution, id string) (answer, error) {
	at, err := attemptOf(id)
	if err != nil {
		return answer{}, err
	}
	was := local.WasNothing
	if activity.HasHeartbeatDetails(ctx) {
		if err := activity.GetHeartbeatDetails(ctx, &was); err != nil {
			return answer{}, err
		}
	} else if activity.GetInfo(ctx).Attempt > 1 {
		was = local.WasBegun
	}
	h.steps.Add(1)
	defer h.steps.Add(-1)
	ctx, stop := context.WithCancelCause(context.WithoutCancel(ctx)) // the SDK would end it when the server cannot be reached for a while
	defer stop(nil)
	r := &beating{
		host: h, ref: e.ref(), at: at, token: activity.GetInfo(ctx).TaskToken, stop: stop, ended: make(chan struct{}), is: local.WasBegun,
	}
	r.beats.Go(func() { r.beat(ctx) })
	next, err := h.Run(ctx, e.ref(), at, was, func(is local.Was) { r.reportRun(ctx, is) })
	close(r.ended)
	r.beats.Wait()
	if err != nil && h.closed.Err() == nil && h.Closing() {
		r.reportRun(ctx, local.WasStopped)
	}
	if errors.Is(err, store.ErrNotFound) {
		return answer{Ended: true}, nil // it was deleted
	}
	return h.answerOf(next), err
}

// beating is an attempt that runs here, and what is to be known of it should the process die. It goes on while Temporal cannot be
// reached: its outcome counts unless it was given up meanwhile.
type beating struct {
	host  *Host
	ref   store.Ref
	at    engine.Attempt
	token []byte
	stop  context.CancelCauseFunc
	ended chan struct{}
	mu    sync.Mutex // one is told at a time
	is    local.Was
	beats sync.WaitGroup
	looks atomic.Bool // somebody does
}

// How often Temporal hears of a run, and how long it is tried to tell it.
const (
	beatEvery   = 2 * time.Second
	beatTimeout = 5 * time.Second
)

// reportRun has Temporal know how the run stands, and hears whether it is still wanted. That it cannot be told keeps nobody from going on.
func (r *beating) reportRun(ctx context.Context, is local.Was) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.is = is
	r.send(ctx)
}

// send tells how it stands. The lock is the caller's.
func (r *beating) send(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), beatTimeout)
	defer cancel()
	err := r.host.opts.Client.RecordActivityHeartbeat(ctx, r.token, r.is)
	_, canceled := errors.AsType[*sdk.CanceledError](err)
	_, unknown := errors.AsType[*serviceerror.NotFound](err)
	switch {
	case canceled:
		r.stop(nil)
	case unknown: // it was given up, or its workflow has ended
		r.stop(local.ErrGivenUp)
	case err != nil:
		r.host.log.Debug("how a run stands could not be told", "error", err)
	}
}

// beat tells Temporal again and again that the run goes on.
func (r *beating) beat(ctx context.Context) {
	clock := time.NewTicker(beatEvery)
	defer clock.Stop()
	for {
		select {
		case <-clock.C:
			r.mu.Lock()
			r.send(ctx)
			r.mu.Unlock()
			if r.host.packed() && r.looks.CompareAndSwap(false, true) {
				r.beats.Go(r.look) // it may wait for the database, and beats wait for nothing
			}
		case <-r.ended:
			return
		}
	}
}

// look sees to the execution of this run, which is stopped if it is not wanted any more. It is for when attempts take all places of this
// worker: what attends to executions waits for one of them then, and would wait for the very runs that it has to stop.
func (r *beating) look() {
	defer r.looks.Store(false)
	next, err := r.host.Attend(r.ref)
	switch {
	case err != nil:
		r.host.log.Debug("an execution could not be attended to while it runs", "execution", r.ref.Execution, "error", err)
	case !slices.ContainsFunc(next.Run, func(w local.Work) bool { return w.Attempt == r.at }):
		r.stop(nil)
	}
}

// packed says that attempts take all places of this worker.
func (h *Host) packed() bool { return h.steps.Load() >= int64(h.places()) }

// places is how many activities run here at once.
func (h *Host) places() int { return max(h.opts.Local.Workers, 1) + spareActivities }

func (e execution) ref() store.Ref { return store.Ref{Workspace: e.Workspace, Execution: e.ID} }

// Temporal takes no answer above 2 MB. One that would name more than mostNamed attempts names the first fewNamed of them, which is more
// than a loop lets run at once, and has the loop ask again after a while. All answers of one history together have room in it then.
const (
	mostNamed = 10_000
	fewNamed  = maxRuns + maxRuns/5
	askAgain  = 10 * time.Second
)

// answerOf tells the loop what is next.
func (h *Host) answerOf(n local.Next) answer {
	if len(n.Run)+len(n.Stop) > mostNamed {
		n.Run, n.Stop, n.All = n.Run[:min(len(n.Run), fewNamed)], n.Stop[:min(len(n.Stop), fewNamed)], false
		if again := time.Now().Add(askAgain).UnixMilli(); n.Due == 0 || again < n.Due {
			n.Due = again
		}
	}
	a := answer{Seq: n.Seq, Due: n.Due, Ended: n.Ended, AtOnce: n.AtOnce, All: n.All}
	if h.searches(h.closed) {
		a.Status, a.Workflow = string(n.Status), n.Workflow
	}
	for _, w := range n.Run {
		a.Run = append(a.Run, work{idOf(w.Attempt), w.Once, w.Limit.Milliseconds()})
	}
	for _, at := range n.Stop {
		a.Stop = append(a.Stop, idOf(at))
	}
	return a
}

// idOf names an attempt: its activation, its generation and its number.
func idOf(at engine.Attempt) string {
	return fmt.Sprintf("%s@%d.%d", at.Activation, at.Generation, at.Attempt)
}

func attemptOf(id string) (at engine.Attempt, err error) {
	i := strings.LastIndexByte(id, '@')
	if i < 0 {
		return at, fault.Newf(fault.Internal, "%q is not the id of an attempt", id)
	}
	at.Activation = engine.ActivationID(id[:i])
	if _, err := fmt.Sscanf(id[i:], "@%d.%d", &at.Generation, &at.Attempt); err != nil {
		return at, fault.Newf(fault.Internal, "%q is not the id of an attempt: %w", id, err)
	}
	return at, nil
}
