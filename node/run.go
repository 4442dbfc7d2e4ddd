package node

import (
	"context"
	"encoding/json"
	"math"
	"sync"
	"time"

	"tandem/dataflow"
	"tandem/engine"
	"tandem/expr"
	"tandem/fault"
	"tandem/node/printed"
	"tandem/node/rundata"
	"tandem/payload"
	"tandem/workflow"
)

// Put stores a value and returns its reference. The host passes it when it knows which row the values go into. Beside are fields of the
// value that are not in it, since it has them in common with others: the host keeps them once.
type Put func(value json.RawMessage, beside ...payload.Part) engine.Ref

// Result is how a run ended.
type Result struct {
	// Fact makes the event that records the end.
	Fact func(Put) engine.Fact
	// Traces say how placeholders were resolved, for the host's log.
	Traces []Trace
	// Warnings are what a person should know about the run although it was not an error: those of the traces, and those of the
	// kind. The host keeps them with the record of the activation.
	Warnings []dataflow.Warning
	// Input is the node's input as its kind got it.
	Input json.RawMessage
	// Settle is what it has used of its reservations, to be recorded with the fact.
	Settle []Settlement
	// After, when it is not nil, is to be called once the success is on disk.
	After func(context.Context) error
}

// Trace says how the placeholders of one part were resolved: of input_params, of configurations, or of arguments that a model wrote.
type Trace struct {
	Of string
	dataflow.ResolveTrace
}

// Run carries out one RunNode command. It never fails: an error is the outcome of the attempt.
func (r *Revision) Run(ctx context.Context, job Job) Result {
	x := r.newRun(ctx, job)
	defer r.ended(x)
	fact, err := x.do()
	if err != nil {
		fact = x.failed(err)
	}
	x.endPrinted()
	result := Result{Fact: fact, Traces: x.traces, Warnings: x.warned(), Input: x.call.Input, Settle: x.settled}
	if after := x.node.kind.After; after != nil && x.outputs != nil {
		result.After = func(ctx context.Context) (err error) {
			defer x.release()
			defer recovered(x.node.kind.About.Name, &err)
			x.ctx = ctx
			return after(ctx, &x.call, x.outputs)
		}
	}
	return result
}

// run is one run under way.
type run struct {
	revision *Revision
	job      Job
	// owner is the node that runs, or whose program made the step that does.
	owner   int
	node    *readyNode
	ctx     context.Context
	call    Call
	traces  []Trace
	begun   bool // the kind's own work has begun: an effect may have happened
	spent   bool // it has ended, and nothing refers to it any more
	opened  []func()
	chunks  printed.Chunks
	printed printed.Streams
	outputs Done // of a success
	// unready is why the configurations of a node could not be resolved before its input was filled: they may read what is missing.
	unready error
	settled []Settlement
	// declared are the fields of the output that become names of the execution's data; none: all.
	declared []string
	// traced are the warnings of the traces, warnings what the kind, its expressions and its connections have warned of.
	traced   []dataflow.Warning
	warning  sync.Mutex
	warnings []dataflow.Warning
	// readings are the fields that the configuration names and the run has looked for. held says that the last condition has held, waiting
	// that the run ends with a wait.
	readings      []reading
	held, waiting bool
	// beside are large fields of the input that are not in the call's, brought all of its fields then; all says that there are to be none
	// beside it.
	beside  []dataflow.Apart
	brought []payload.Member
	all     bool
	// left are those of them that the input also has by their source.
	left []dataflow.Apart
	// lacks says that the output must have what is beside the input, and does not have it yet.
	lacks bool
}

type factOf func(Put) engine.Fact

func (x *run) do() (factOf, error) {
	cause := x.job.Run.Cause
	if x.job.Run.Step != nil {
		return x.step()
	}
	switch cause.Kind {
	case engine.CauseError:
		x.rebuild()
		return x.settleError(cause.Error), nil
	case engine.CauseOutput:
		output, err := x.job.Value(cause.Ref)
		if err != nil {
			return nil, err
		}
		outputs, err := x.given("output", output)
		if err != nil {
			return nil, err
		}
		return x.done(outputs)
	}
	if x.node.pinned != nil {
		return x.standsIn()
	}
	if p := x.job.Prepared; p != nil && cause.Kind == engine.CauseTurn {
		return x.preparedTurn(p)
	}
	if err := x.prepare(); err != nil {
		return nil, err
	}
	if x.plan().Disabled {
		outputs, err := x.passed()
		if err != nil {
			return nil, err
		}
		return x.done(outputs)
	}
	if prepare := x.node.kind.Prepare; prepare != nil && x.job.Stand == nil && x.unready == nil {
		input, err := prepare(x.ctx, &x.call)
		if err != nil {
			return nil, err
		}
		x.call.Input = input
	}
	if fact, err := x.look(); fact != nil || err != nil {
		return fact, err
	}
	if err := checkSchema(x.node.override.input, fault.InvalidInput, "input", x.call.Input); err != nil {
		return nil, err
	}
	return x.work(cause)
}

// work does what the run is for, once its input and its configurations are there.
func (x *run) work(cause engine.Cause) (factOf, error) {
	scope := x.node.kind.Scope
	if x.job.Stand != nil && (scope == nil || cause.Kind == engine.CauseClose) {
		return x.stood(nil)
	}
	if cause.Kind == engine.CauseInquire {
		return x.inquire()
	}
	if scope != nil {
		return x.scope(scope)
	}
	if steps := x.node.kind.Steps; steps != nil {
		return x.lead(steps)
	}
	x.begun = true
	outcome, err := x.node.kind.Run(x.ctx, &x.call)
	if err != nil {
		return nil, err
	}
	return x.outcome(outcome)
}

// inquire asks the service about the run before.
func (x *run) inquire() (factOf, error) {
	return x.settles(x.node.kind.Inquire != nil, func() (Outcome, error) { return x.node.kind.Inquire(x.ctx, &x.call) })
}

// settles makes the outcome of what the service has answered.
func (x *run) settles(can bool, ask func() (Outcome, error)) (factOf, error) {
	if !can {
		return nil, fault.Newf(fault.Unsupported, "%s cannot be asked what became of a run", x.node.kind.About.Name)
	}
	outcome, err := ask()
	if err != nil {
		return nil, err
	}
	if outcome != nil {
		return x.outcome(outcome)
	}
	return nil, &Failure{Err: fault.New(fault.NetworkError, "the service has nothing of what the last attempt sent, so that it may be sent again"), NotDone: true}
}

// standsIn returns the pinned output of a node in a test. A node that is pinned with nothing must not run, so the test ends there.
func (x *run) standsIn() (factOf, error) {
	if len(x.node.pinned) == 0 {
		return nil, fault.Newf(fault.NotPinned, "%q has effects and is not pinned, so that the test ends here; give its output in \"pinned\" of the test", x.revision.Graph.Nodes[x.owner].ID)
	}
	return x.done(x.node.pinned)
}

// stood lets the [Stand] of the job do the work.
func (x *run) stood(s *Step) (factOf, error) {
	x.begun = true
	outcome, err := x.job.Stand(x.ctx, &x.call, s)
	if err != nil {
		return nil, err
	}
	if led, ok := outcome.(Led); ok && x.node.kind.Steps != nil && led.Done == nil {
		return x.led(x.node.kind.Steps, led), nil
	}
	return x.outcome(outcome)
}

// clock is the clock of the run.
func (x *run) clock() func() time.Time {
	if x.job.Clock != nil {
		return x.job.Clock
	}
	return time.Now
}

// prepare builds the node's input, then its configurations, whose text fields may read the input.
func (x *run) prepare() error {
	x.introduce()
	payloads, err := x.payloads()
	if err != nil {
		return err
	}
	for _, p := range payloads {
		x.call.Contributions = append(x.call.Contributions, Contribution{Node: p.Node, Payload: p.Value})
	}
	if err := x.build(payloads); err != nil {
		return err
	}
	return x.wake()
}

// rebuild builds the input of a node whose failure is handed on, if it can be built; if not, that is why the node failed.
func (x *run) rebuild() {
	x.introduce()
	payloads, err := x.payloads()
	if err == nil {
		err = x.build(payloads)
	}
	if err != nil {
		x.log(Debug, "the input that goes with the error cannot be made anew", map[string]any{"error": err.Error()})
	}
}

func (x *run) build(payloads []dataflow.Payload) error {
	d := &x.job.Data
	d.Lock.RLock()
	defer d.Lock.RUnlock()
	request := d.Request()
	request.StepID, request.OnUnresolved = x.call.NodeID, x.revision.onUnresolved
	var err error
	in := dataflow.Input{Payloads: payloads, Params: x.node.params, Keyed: x.keyed(len(payloads))}
	if x.owner == x.job.Run.Node { // and no node that is attached to it
		in.Edits = x.job.Edits
	}
	var trace dataflow.ResolveTrace
	x.call.Input, trace, err = dataflow.BuildInput(d.Layers, in, request)
	x.traceOf("input_params", x.node.params, trace)
	if err != nil {
		return err
	}
	if err := x.filled(); err != nil {
		return err
	}
	err = x.configure(request)
	if err != nil && x.node.looks(x.job.Run) {
		x.unready, err = err, nil
	}
	return err
}

// traceOf records how the placeholders of a template were resolved, if it has any, and warnings about that.
func (x *run) traceOf(of string, t *dataflow.Template, trace dataflow.ResolveTrace) {
	for _, w := range trace.Warnings {
		if w.Placeholder != "" {
			w.Path = of + "." + w.Path
		}
		x.traced = append(x.traced, w)
	}
	if t != nil && !t.Static() {
		trace.StepID = x.call.NodeID
		x.traces = append(x.traces, Trace{of, trace})
	}
}

// resolve resolves the placeholders of a value that was made while the execution runs.
func (x *run) resolve(value json.RawMessage) (json.RawMessage, []dataflow.Origin, error) {
	out, origins, err := x.job.Data.Resolved(value)
	x.traces = append(x.traces, Trace{"arguments", dataflow.ResolveTrace{StepID: x.call.NodeID, Original: value, Resolved: out}})
	return out, origins, err
}

// keyed says whether the input also has the payloads by their source: since version 1 of the rules for nodes that join
// branches, before that for every node with several connections.
func (x *run) keyed(payloads int) bool {
	if x.job.InputRules == 0 {
		return payloads > 1
	}
	return payloads > 0 && x.node.kind.About.Traits.BySource
}

// configure resolves the configurations. The caller holds the lock.
func (x *run) configure(request dataflow.Request) (err error) {
	d := &x.job.Data
	request.Own, request.Apart = x.call.Input, x.aside(d.Apart)
	var trace dataflow.ResolveTrace
	x.call.Config, trace, err = x.node.config.Resolve(d.Layers, request)
	x.traceOf("configurations", x.node.config, trace)
	if err != nil || len(x.node.apart) == 0 {
		return err
	}
	config := map[string]json.RawMessage{}
	if err := json.Unmarshal(x.call.Config, &config); err != nil {
		return fault.Newf(fault.InvalidConfig, "the configurations cannot be read: %w", err)
	}
	for _, a := range x.node.apart {
		request.Own = a.own(x.call.Input)
		field, trace, err := a.template.Resolve(d.Layers, request)
		x.traceOf("configurations", a.template, trace)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(field, &config); err != nil {
			return fault.Newf(fault.InvalidConfig, "the configurations cannot be read: %w", err)
		}
	}
	x.call.Config, err = payload.Encode(config)
	return err
}

// payloads are what the live connections bring, or the input that a fork or a program gave instead.
func (x *run) payloads() ([]dataflow.Payload, error) {
	job := x.job
	x.beside, x.brought, x.left = nil, nil, nil // of what was built before
	if job.Run.Input != "" {
		value, err := job.Value(job.Run.Input)
		if err != nil {
			return nil, err
		}
		return []dataflow.Payload{{Value: value}}, nil
	}
	if workflow.TypeOf(x.node.kind.About.Name) == workflow.TypeTrigger && len(job.Start) > 0 {
		if job.Data.Entry != nil {
			return []dataflow.Payload{{Value: x.entry()}}, nil
		}
		return []dataflow.Payload{{Value: job.Start}}, nil
	}
	payloads := make([]dataflow.Payload, 0, len(job.Run.Inputs))
	for _, in := range job.Run.Inputs {
		edge := &x.revision.Graph.Edges[in.Edge]
		value, err := job.Value(in.Ref)
		if err != nil {
			return nil, err
		}
		if job.Data.Entry != nil && (in.Ref == "" && edge.Entry || in.Ref != "" && len(job.Run.Inputs) == 1) {
			value = x.entry()
		}
		from := x.revision.Graph.Nodes[edge.From].ID
		if fields := job.Joined[in.Ref]; fields != nil {
			value = x.joined(from, fields)
		}
		value, edits, err := x.edited(from, in.Ref, value)
		if err != nil {
			return nil, err
		}
		if in.Convert {
			converted, live, err := x.convert(in.Edge, value)
			if err != nil {
				return nil, err
			}
			if !live {
				continue
			}
			value = converted
		}
		payloads = append(payloads, dataflow.Payload{
			Node: from, Key: edge.Key, Connection: edge.ID, Converted: edge.Converts, Value: value, Edits: edits,
		})
	}
	return payloads, nil
}

// edited is what a connection brings, with its edits.
func (x *run) edited(node string, ref engine.Ref, value json.RawMessage) (json.RawMessage, []dataflow.Edit, error) {
	if ref == "" {
		ref = entryRef
	}
	if len(x.job.EditsOf[ref]) == 0 {
		return value, nil, nil
	}
	return dataflow.EditPayload(node, value, x.job.EditsOf[ref])
}

// entryRef stands for what an iteration is given, which has no reference of its own.
const entryRef engine.Ref = "entry"

// wake fills in what ended the last wait of the call.
func (x *run) wake() error {
	cause := x.job.Run.Cause
	if cause.Memo != "" {
		memo, err := x.job.Value(cause.Memo)
		if err != nil {
			return err
		}
		x.call.Memo = memo
	}
	w := cause.Wake
	if w == nil {
		return nil
	}
	x.call.Wake = &Wake{By: w.By, Outcome: w.Outcome, Person: w.Person, Child: w.Child, Status: w.Status}
	if w.Error != nil {
		x.call.Wake.Error = w.Error
	}
	if w.Ref == "" {
		return nil
	}
	payload, err := x.job.Value(w.Ref)
	x.call.Wake.Payload = payload
	return err
}

// expressionAt is where an expression of the node stands.
func (x *run) expressionAt(source string) string {
	for _, known := range x.plan().Expressions {
		if known.Source == source {
			return known.Path
		}
	}
	return "configurations"
}

func (x *run) eval(source string, extra map[string]any) (any, error) {
	program := x.node.expressions[source]
	if program == nil {
		var err error
		if program, err = expr.Compile(source); err != nil {
			return nil, err
		}
	}
	data := x.job.Data
	data.Apart = x.aside(data.Apart)
	if x.node.kind.Fresh {
		data.View.AsOf = math.MaxUint64
	}
	e := &rundata.Env{Data: &data, Input: x.call.Input, Extra: extra, Time: x.job.Now, Program: program}
	v, err := rundata.Run(program, e)
	if e.Err() != nil {
		return nil, e.Err()
	}
	if err == nil {
		x.reads(x.expressionAt(source), program, e.Lookup, v)
		x.held = expr.Truth(v)
	}
	return v, err
}

// bind resolves a text whose values are kept beside it.
func (x *run) bind(text string) (dataflow.Bound, error) {
	template := x.node.bound[text]
	if template == nil {
		return dataflow.Bound{Text: []string{text}}, nil // data is never searched for placeholders
	}
	d := &x.job.Data
	d.Lock.RLock()
	defer d.Lock.RUnlock()
	request := d.Request()
	request.StepID, request.Own, request.OnUnresolved = x.call.NodeID, x.call.Input, x.revision.onUnresolved
	request.Apart = x.aside(d.Apart)
	return template.Bind(d.Layers, request)
}

func (x *run) outcome(o Outcome) (factOf, error) {
	switch o := o.(type) {
	case Done:
		if len(o) == 0 && x.chunks.Any() {
			payload, err := x.chunks.Payload()
			if err != nil {
				return nil, err
			}
			o = Done{dataflow.DefaultKey: payload}
		}
		if x.lacks = x.node.hands && len(x.beside) > 0; x.lacks && !x.shares() {
			o = x.wholeOutputs(o)
		}
		o = x.publish(o)
		if err := dataflow.CheckOutput(o); err != nil {
			return nil, err
		}
		if x.node.override.output != nil {
			output, err := dataflow.Output(o)
			if err != nil {
				return nil, err
			}
			if err := checkSchema(x.node.override.output, fault.OutputInvalid, "output", output); err != nil {
				return nil, err
			}
			x.warnUndeclared(output)
		}
		x.outputs = x.clean(o)
		fact, err := x.done(x.outputs)
		if err != nil {
			x.outputs = nil
		}
		x.speak(x.outputs)
		return fact, err
	case Wait:
		return x.suspended(o), nil
	case Replied:
		return x.replied(o)
	}
	return nil, fault.Newf(fault.Internal, "kind %s ended a run with %T", x.node.kind.About.Name, o)
}

func (x *run) suspended(w Wait) factOf {
	x.waiting = true
	input, beside := x.childInput(w.Child)
	return func(put Put) engine.Fact {
		f := engine.NodeSuspended{Attempt: x.job.Run.Attempt, Signal: w.Signal}
		if !w.Until.IsZero() {
			f.Until = w.Until.UnixMilli()
		}
		if w.Ask != nil {
			f.Ask = &engine.Question{Purpose: w.Ask.Purpose, Ref: put(w.Ask.Request), Key: w.Ask.Key}
		}
		if w.Child != nil {
			f.Child = &engine.Child{Workflow: w.Child.Workflow, Revision: w.Child.Revision, Input: put(input, beside...),
				Detached: w.Child.Detached, Outputs: w.Child.Outputs}
		}
		if w.Memo != nil {
			f.Memo = put(w.Memo)
		}
		return f
	}
}
