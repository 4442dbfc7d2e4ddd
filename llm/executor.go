package llm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"tandem/fault"
)

// The limits of a call that says none.
const (
	DefaultFirstToken = 30 * time.Second
	DefaultTotal      = 300 * time.Second
)

// The names of the limits, as an error has them under "budget".
const (
	BudgetFirstToken = "first token"
	BudgetTotal      = "total"
	// BudgetCaller is a deadline that the caller's context brought along.
	BudgetCaller = "caller"
)

// windDown is how long a call that was stopped waits for its provider to close the connection. A provider that does not
// obey is left behind; whatever it says later is dropped.
const windDown = time.Second

// Options are what an executor is made of. Nothing is needed by an executor whose calls bring their provider.
type Options struct {
	// Provide finds the provider of a profile. It may read and unseal; the limits of the call hold for it too.
	Provide func(ctx context.Context, p Profile) (Provider, error)
	// Observe is called for every call, in order, from a goroutine of its own. When it is too slow events are dropped and
	// counted; when it panics the call does not notice.
	Observe func(Event)
	// Log is handed one line per stage of a call, never with a prompt or an answer in it.
	Log func(level, message string, fields map[string]any)
	// Clock measures how long stages take; nil means the real one.
	Clock func() time.Time
}

// Executor does completions, one per call. It is safe for concurrent use and needs no closing.
type Executor struct {
	provide func(context.Context, Profile) (Provider, error)
	log     func(level, message string, fields map[string]any)
	clock   func() time.Time
	// teller is nil when nobody observes.
	teller *teller
}

// NewExecutor makes an executor.
func NewExecutor(o Options) *Executor {
	if o.Provide == nil {
		o.Provide = func(_ context.Context, p Profile) (Provider, error) {
			return nil, fault.Newf(fault.Internal, "nobody provides for the profile %q", p.ID)
		}
	}
	x := &Executor{provide: o.Provide, log: o.Log, clock: o.Clock}
	if x.log == nil {
		x.log = func(string, string, map[string]any) {}
	}
	if x.clock == nil {
		x.clock = time.Now
	}
	if o.Observe != nil {
		x.teller = &teller{observe: o.Observe, log: x.log}
	}
	return x
}

// Dropped is how many events did not reach the observer since the executor was made.
func (x *Executor) Dropped() uint64 {
	if x.teller == nil {
		return 0
	}
	x.teller.mu.Lock()
	defer x.teller.mu.Unlock()
	return x.teller.dropped
}

// Call is one completion that is wanted, and on whose behalf.
type Call struct {
	// RequestID names the call in events and logs.
	RequestID   string
	ExecutionID string
	WorkflowID  string
	NodeID      string
	NodeType    string

	Profile Profile
	// Provider does it; nil: the executor asks who provides for the profile.
	Provider Provider
	// Request is what is asked. What it leaves open (model, parameters) comes from the profile.
	Request  Request
	Snapshot Snapshot

	// FirstToken and Total limit the time; zero means the default. A piece of a thought or of a tool call is a token too.
	FirstToken time.Duration
	Total      time.Duration

	// Sink is given the pieces of an answer when the request is to be streamed: in order, one at a time, and never after
	// Do has returned, which waits for a call of the sink that is under way. A slow sink slows the stream down.
	Sink func(Delta)
}

// Do does one completion. It returns the answer, or an error with a *fault.Error in its chain: the provider's own, timeout
// (its details name the budget and the limit), canceled when the context ended, or internal when the provider panicked.
//
// The provider always streams, also when the request is not to be streamed, because only then can it be known whether a
// model has begun to answer.
func (x *Executor) Do(ctx context.Context, c Call) (Completion, error) {
	r := &run{
		x: x, call: c, request: c.Request, began: x.clock(), done: make(chan struct{}), idle: make(chan struct{}),
		firstToken: orDefault(c.FirstToken, DefaultFirstToken), total: orDefault(c.Total, DefaultTotal),
	}
	r.request.Model = cmp.Or(r.request.Model, c.Profile.Model)
	r.request.Params = r.request.Params.Or(c.Profile.Params)
	r.request.Stream = true
	for _, m := range r.request.Messages {
		r.length += utf8.RuneCountInString(m.Content)
	}
	r.tools = make([]string, len(r.request.Tools))
	for i, t := range r.request.Tools {
		r.tools[i] = t.Name
	}
	r.stage("model call begins", nil)
	if x.teller != nil {
		x.teller.queueEvent(Event{Type: EventRequest, RequestID: c.RequestID, Asked: &Asked{
			WorkflowID: c.WorkflowID, ExecutionID: c.ExecutionID, NodeID: c.NodeID, NodeType: c.NodeType, Snapshot: c.Snapshot,
			RequestData: RequestData{r.request.Messages, r.request.Tools, c.Profile.ID, r.request.Params, c.Request.Stream},
		}})
	}
	completion, err := r.wait(ctx)
	if err != nil {
		r.tellFailed(fault.From(err))
		return Completion{}, err
	}
	r.tellCompleted(completion)
	return completion, nil
}

func orDefault(limit, otherwise time.Duration) time.Duration {
	if limit <= 0 {
		return otherwise
	}
	return limit
}

// phase is how far a call has come. It moves forward only; the goroutine that moves it to an end decides what the call returns, so
// that an answer and a limit that come at the same moment cannot both win.
type phase = int32

const (
	waiting phase = iota
	streaming
	answered
	firstTokenOver
	totalOver
	sinkPanicked
	interrupted
)

// gate is whether pieces of the answer may pass. The goroutine that takes it from open to busy owns what the sink is given.
type gate = int32

const (
	gateOpen gate = iota
	gateBusy
	// gateClosing: the call waits for the sink, which is under way.
	gateClosing
	gateShut
)

// run is one call under way. Do's goroutine owns it; the provider's goroutine touches done, completion and err (before
// done is closed), the atomic fields, and what the gate guards; timers touch phase alone.
type run struct {
	x                 *Executor
	call              Call
	request           Request
	began             time.Time
	firstToken, total time.Duration
	// length and tools are what the log says of the request.
	length int
	tools  []string

	phase  atomic.Int32
	cancel context.CancelCauseFunc
	first  *time.Timer

	done       chan struct{}
	completion Completion
	err        error

	begunAfter atomic.Int64 // nanoseconds from the start to the first token

	gate atomic.Int32
	// idle is closed when a sink returns for which the call has waited.
	idle chan struct{}
	// passing keeps pieces one after another, whatever goroutines a provider uses.
	passing sync.Mutex
	// The gate guards these; when it is shut they are Do's.
	chunks, lost int64
	panicked     *fault.Error
}

// wait runs the provider and waits for the first of its answer, a limit, and the end of the context.
func (r *run) wait(parent context.Context) (Completion, error) {
	if parent.Err() != nil {
		return Completion{}, interruption(parent)
	}
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	r.cancel = cancel
	total := time.AfterFunc(r.total, func() { r.stop(totalOver, r.overrun(BudgetTotal, r.total)) })
	defer total.Stop()
	if r.firstToken < r.total {
		r.first = time.AfterFunc(r.firstToken, func() {
			if r.phase.CompareAndSwap(waiting, firstTokenOver) {
				cancel(r.overrun(BudgetFirstToken, r.firstToken))
			}
		})
		defer r.first.Stop()
	}
	go r.perform(ctx)
	select {
	case <-r.done:
	case <-ctx.Done():
		r.settle(interrupted) // unless it is the limit or the sink that ended the context
		patience := time.NewTimer(windDown)
		defer patience.Stop()
		select {
		case <-r.done:
		case <-patience.C:
			r.x.log("WARN", "a provider did not stop when its call ended", map[string]any{
				"request_id": r.call.RequestID, "profile": r.call.Profile.ID, "provider": r.call.Profile.Provider,
			})
		}
	}
	r.shut()
	return r.outcome(parent)
}

// shut closes the gate. It waits for a sink that is under way: the sink is not called after Do has returned.
func (r *run) shut() {
	for !r.gate.CompareAndSwap(gateOpen, gateShut) {
		if r.gate.CompareAndSwap(gateBusy, gateClosing) {
			<-r.idle
			return
		}
		if r.gate.Load() == gateShut { // by a sink that panicked
			return
		}
	}
}

// perform asks the provider. It runs in a goroutine of its own, so that a provider that hangs cannot hold the call.
func (r *run) perform(ctx context.Context) {
	var completion Completion
	err := error(fault.Newf(fault.Internal, "the provider %q ended without an answer", r.call.Profile.Provider))
	defer func() {
		if p := recover(); p != nil {
			completion, err = Completion{}, crash(fmt.Sprintf("the provider %q panicked", r.call.Profile.Provider), p)
		}
		if r.settle(answered) {
			r.completion, r.err = completion, err
		} else if err == nil {
			r.stage("a late answer is dropped", nil)
		}
		close(r.done)
	}()
	provider := r.call.Provider
	if provider == nil {
		if provider, err = r.x.provide(ctx, r.call.Profile); err != nil {
			return
		}
	}
	if provider == nil {
		err = fault.Newf(fault.Internal, "the profile %q has no provider", r.call.Profile.ID)
		return
	}
	err = fault.Newf(fault.Internal, "the provider %q ended without an answer", r.call.Profile.Provider)
	completion, err = provider.Complete(ctx, r.request, r.delta)
}

// settle ends the call in a phase unless it has ended already.
func (r *run) settle(end phase) bool {
	for {
		now := r.phase.Load()
		if now != waiting && now != streaming {
			return false
		}
		if r.phase.CompareAndSwap(now, end) {
			return true
		}
	}
}

// stop ends the call and the provider's context with the reason.
func (r *run) stop(end phase, reason *fault.Error) {
	if r.settle(end) {
		r.cancel(reason)
	}
}

// outcome is what the call returns. Nothing changes any more: an end is settled, and the sink is closed.
func (r *run) outcome(parent context.Context) (Completion, error) {
	switch r.phase.Load() {
	case firstTokenOver:
		return Completion{}, r.overrun(BudgetFirstToken, r.firstToken)
	case totalOver:
		return Completion{}, r.overrun(BudgetTotal, r.total)
	case sinkPanicked:
		return Completion{}, r.panicked
	case interrupted:
		return Completion{}, interruption(parent)
	}
	if r.err == nil {
		return r.completion, nil
	}
	if parent.Err() != nil {
		// What the provider says now is how the end of the context looks from its side.
		return Completion{}, interruption(parent).WithCause(r.err)
	}
	if _, ok := errors.AsType[*fault.Error](r.err); ok {
		return Completion{}, r.err
	}
	return Completion{}, fault.Newf(fault.Internal, "the provider %q ended with an error that has no code; the operator's log has the detail", r.call.Profile.Provider).WithCause(r.err)
}

// overrun says which limit was reached.
func (r *run) overrun(budget string, limit time.Duration) *fault.Error {
	text, field := "the whole answer", "llm_timeout_seconds"
	if budget == BudgetFirstToken {
		text, field = "the first token of an answer", "first_token_timeout_seconds"
	}
	return fault.Newf(fault.Timeout, "profile %q: %s did not come within the limit %q of %s; raise %s or use a faster profile",
		r.call.Profile.ID, text, budget, limit, field).With("budget", budget).With("limit_ms", limit.Milliseconds())
}

// interruption is the end of the caller's context as an error. A reason with a code goes on as it is.
func interruption(ctx context.Context) *fault.Error {
	cause := context.Cause(ctx)
	if e, ok := errors.AsType[*fault.Error](cause); ok {
		return e
	}
	if errors.Is(cause, context.DeadlineExceeded) {
		return fault.New(fault.Timeout, "the time that the caller gave ended before the model had answered; give it more").
			With("budget", BudgetCaller).WithCause(cause)
	}
	return fault.New(fault.Canceled, "the call was canceled before the model had answered").WithCause(cause)
}

// crash is a panic as an error. Only operators see the value and the stack.
func crash(what string, p any) *fault.Error {
	return fault.New(fault.Internal, what+"; the operator's log has the detail").WithDetail(fmt.Sprintf("%v\n%s", p, debug.Stack()))
}

// delta takes a piece of the answer from the provider.
func (r *run) delta(d Delta) {
	if d.Text == "" && d.Reasoning == "" && d.ToolCall == nil {
		return // keeps a connection alive and is not a token
	}
	if r.phase.Load() == waiting && r.phase.CompareAndSwap(waiting, streaming) {
		if r.first != nil {
			r.first.Stop()
		}
		r.begin()
	}
	if r.call.Request.Stream {
		r.pass(d)
	}
}

// begin notes the first token.
func (r *run) begin() {
	r.begunAfter.Store(int64(r.x.clock().Sub(r.began)))
	r.stage("model call streams", nil)
}

// pass hands a piece on, unless the call has ended.
func (r *run) pass(d Delta) {
	r.passing.Lock()
	defer r.passing.Unlock()
	if !r.gate.CompareAndSwap(gateOpen, gateBusy) {
		return
	}
	defer r.passed()
	if t := r.x.teller; t != nil {
		chunk := &Chunk{Index: r.chunks, Text: d.Text, Reasoning: d.Reasoning}
		if d.ToolCall != nil {
			piece := *d.ToolCall // the provider may use its own again
			chunk.ToolCall = &piece
		}
		if !t.queueEvent(Event{Type: EventChunk, RequestID: r.call.RequestID, Chunk: chunk}) {
			r.lost++
		}
	}
	r.chunks++
	if r.call.Sink != nil {
		r.call.Sink(d)
	}
}

// passed opens the gate again, deferred by pass. A sink that has panicked ends the call and gets no more.
func (r *run) passed() {
	next := gateOpen
	if p := recover(); p != nil {
		next = gateShut
		r.panicked = crash("the sink of a model call panicked", p)
		r.stop(sinkPanicked, r.panicked)
	}
	if !r.gate.CompareAndSwap(gateBusy, next) {
		r.gate.Store(gateShut)
		close(r.idle)
	}
}

func (r *run) tellCompleted(c Completion) {
	fields := map[string]any{
		"finish_reason": c.Finish, "input_tokens": c.Usage.InputTokens, "output_tokens": c.Usage.OutputTokens,
		"first_token_ms": time.Duration(r.begunAfter.Load()).Milliseconds(), "chunks": r.chunks, "chunks_dropped": r.lost,
	}
	r.stage("model call completed", fields)
	if t := r.x.teller; t != nil {
		t.queueEvent(Event{Type: EventCompleted, RequestID: r.call.RequestID, Answered: &Answered{
			Result:         Result{c.Message.Content, c.Usage, c.Finish, c.Message.ToolCalls},
			UpdatedContext: []Message{c.Message},
		}})
	}
}

// tellFailed logs the code alone: services like to repeat in their messages what they were asked.
func (r *run) tellFailed(err *fault.Error) {
	fields := map[string]any{"error_code": err.Code}
	for _, fact := range []string{"budget", "limit_ms"} {
		if v, ok := err.Details[fact]; ok && err.Code == fault.Timeout {
			fields[fact] = v
		}
	}
	r.stage("model call failed", fields)
	if t := r.x.teller; t != nil {
		t.queueEvent(Event{Type: EventFailed, RequestID: r.call.RequestID, Failed: &Failed{err.Public()}})
	}
}

// stage writes the line of a stage.
func (r *run) stage(message string, more map[string]any) {
	fields := map[string]any{
		"request_id": r.call.RequestID, "profile": r.call.Profile.ID, "model": r.request.Model, "prompt_length": r.length,
		"tools": r.tools, "duration_ms": r.x.clock().Sub(r.began).Milliseconds(),
	}
	for k, v := range more {
		fields[k] = v
	}
	if r.call.ExecutionID != "" {
		fields["execution_id"], fields["node_id"] = r.call.ExecutionID, r.call.NodeID
	}
	r.x.log("DEBUG", message, fields)
}
