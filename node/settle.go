package node

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"maps"

	"tandem/dataflow"
	"tandem/engine"
	"tandem/expr"
	"tandem/fault"
	"tandem/payload"
	"tandem/shortage"
	"tandem/workflow"
)

// verdict is what became of a connection with a conversion, before its value has a reference.
type verdict struct {
	edge  int
	live  bool
	value json.RawMessage
	err   *fault.Error
}

func (v verdict) record(put Put) engine.Verdict {
	out := engine.Verdict{Edge: v.edge, Live: v.live, Error: v.err}
	if v.live {
		out.Ref = put(v.value)
	}
	return out
}

// done settles a success: its outputs, and the conversions of the connections that carry them.
func (x *run) done(outputs Done) factOf {
	verdicts := x.settle(outputs)
	return func(put Put) engine.Fact {
		f := engine.NodeCompleted{Attempt: x.job.Run.Attempt}
		f.Outputs, f.Settled = record(outputs, verdicts, put)
		return f
	}
}

func record(outputs Done, verdicts []verdict, put Put) ([]engine.Output, []engine.Verdict) {
	outs := make([]engine.Output, 0, len(outputs))
	for key := range outputs { // order does not matter: sorted below
		outs = append(outs, engine.Output{Key: key})
	}
	slices.SortFunc(outs, func(a, b engine.Output) int { return strings.Compare(a.Key, b.Key) })
	for i, o := range outs {
		outs[i].Ref = put(outputs[o.Key])
	}
	var settled []engine.Verdict
	for _, v := range verdicts {
		settled = append(settled, v.record(put))
	}
	return outs, settled
}

// settle evaluates the conversions of the connections whose key was produced.
func (x *run) settle(outputs Done) []verdict {
	var verdicts []verdict
	for _, e := range x.revision.Graph.Nodes[x.owner].Out {
		edge := &x.revision.Graph.Edges[e]
		output, produced := outputs[edge.Key]
		if !edge.Converts || edge.Back || edge.Entry || !produced {
			continue
		}
		verdicts = append(verdicts, x.verdict(e, output))
	}
	return verdicts
}

func (x *run) verdict(edge int, output json.RawMessage) verdict {
	value, live, err := x.convert(edge, output)
	if err != nil {
		return verdict{edge: edge, err: fault.From(err)}
	}
	return verdict{edge: edge, live: live, value: value}
}

// convert runs a connection's conversion function. It may say that the connection is dead.
func (x *run) convert(edge int, output json.RawMessage) (value json.RawMessage, live bool, err error) {
	c := x.revision.conversions[edge]
	if c.program == nil {
		value, err := x.converted(c, output)
		if err != nil {
			f := fault.From(err)
			if f.Code == fault.Unsupported {
				return nil, false, fault.Newf(fault.Unsupported, "connection %q: %s", x.revision.Graph.Edges[edge].ID, f.Message)
			}
			failed := fault.Newf(fault.ConversionFailed, "connection %q: %s", x.revision.Graph.Edges[edge].ID, f.Message).WithCause(err)
			failed.Details = f.Details // the line, the kind of exception
			return nil, false, failed
		}
		var skip struct {
			Skip bool `json:"skip_execution"`
		}
		if json.Unmarshal(value, &skip) == nil && skip.Skip { // anything but an object with that field does not skip
			return nil, false, nil
		}
		return value, true, nil
	}
	decoded, err := decode(output)
	if err != nil {
		return nil, false, err
	}
	values := map[string]any{"value": decoded, "data": decoded, "output": decoded}
	if object, ok := decoded.(map[string]any); ok {
		maps.Copy(values, object)
	}
	result, err := evaluate(c.program, expr.Vars{Values: values, At: x.job.Now})
	if err != nil {
		f := fault.From(err)
		return nil, false, fault.Newf(fault.ConversionFailed, "connection %q: %s", x.revision.Graph.Edges[edge].ID, f.Message).WithCause(err)
	}
	if object, ok := result.(map[string]any); ok && object["skip_execution"] == true {
		return nil, false, nil
	}
	value, err = json.Marshal(result)
	if err != nil {
		return nil, false, fault.Newf(fault.ConversionFailed, "connection %q: the result is not JSON", x.revision.Graph.Edges[edge].ID).WithCause(err)
	}
	if err := payload.Check(value, payload.Limits{}); err != nil {
		return nil, false, fault.Newf(fault.ConversionFailed, "connection %q: the result cannot be kept: %s", x.revision.Graph.Edges[edge].ID, err.Error())
	}
	return value, true, nil
}

// given is the output that a person gave instead of the node's own: its result or what counts as that, or, for a node that
// has none, a payload for each key that is to be produced.
func (x *run) given(output json.RawMessage) (Done, error) {
	if err := payload.Check(output, payload.Limits{}); err != nil && len(output) > 0 { // the door was strict: it may be older
		return nil, fault.Newf(fault.InvalidInput, "output: what was given instead of the node's own cannot be kept: %w", err)
	}
	keys := x.plan().Keys
	if keys == nil || slices.Contains(keys, dataflow.DefaultKey) {
		return Done{dataflow.DefaultKey: output}, nil
	}
	if key, ok := x.plan().KeyAliases[dataflow.DefaultKey]; ok {
		return Done{key: output}, nil
	}
	var outputs Done
	if err := json.Unmarshal(output, &outputs); err != nil || len(outputs) == 0 {
		return nil, fault.Newf(fault.InvalidInput, "output: the node produces no result; give an object with a payload for one of its keys: %s", strings.Join(keys, ", "))
	}
	for key := range outputs { // order does not matter: the first that is wrong is as good as another
		if !slices.Contains(keys, key) {
			return nil, fault.Newf(fault.InvalidInput, "output: the node has no key %q; it has %s", key, strings.Join(keys, ", "))
		}
	}
	return outputs, nil
}

// failed is the event of a failure. When it is the last try of a node that handles its errors, the verdicts come with
// it.
func (x *run) failed(err error) factOf {
	f := fault.From(err)
	if f.Code == fault.Internal && x.effect() != workflow.Once && shortage.Is(err) {
		f = shortage.Or(err, fault.New(fault.Internal, "the node could not do its work"))
	}
	if x.guarded() {
		f = x.job.Redact.Fault(f)
	}
	if x.ctx.Err() != nil && fault.CodeOf(err) == fault.Internal {
		f = fault.New(fault.Canceled, "the attempt was stopped").WithCause(err)
	}
	later, told := errors.AsType[*Failure](err)
	if x.begun && x.effect() == workflow.Once && (x.ctx.Err() != nil || f.Code == fault.OutcomeUnknown || told && later.Unknown) {
		// It was cut off, or does not know: whether it had its effect is not for a retry to find out.
		return func(Put) engine.Fact { return engine.NodeFailed{Attempt: x.job.Run.Attempt, Error: f, Unknown: true} }
	}
	if x.job.Run.Step == nil && handles(x.plan().OnError) && (x.job.Run.LastTry || !f.Retryable) {
		return x.handled(f, true)
	}
	out := engine.NodeFailed{Attempt: x.job.Run.Attempt, Error: f}
	if told {
		out.RetryAfterMS = later.RetryAfter.Milliseconds()
	}
	return func(Put) engine.Fact { return out }
}

func (x *run) plan() *workflow.Plan { return &x.revision.Graph.Nodes[x.owner].Plan }

func handles(o workflow.OnError) bool {
	return o == workflow.OnErrorContinue || o == workflow.OnErrorDefault
}

// settleError settles the connections of a node that has failed and handles that.
func (x *run) settleError(err *fault.Error) factOf { return x.handled(err, false) }

// handled makes the error, or the configured default, the node's output. As the end of an attempt it is part of the
// failure; otherwise the engine knows of the failure and wants only the outputs.
func (x *run) handled(err *fault.Error, attempt bool) factOf {
	outputs, problem := x.errorOutputs(err)
	if problem != nil {
		return func(Put) engine.Fact {
			return engine.NodeFailed{Attempt: x.job.Run.Attempt, Error: fault.From(problem).Final()}
		}
	}
	verdicts := x.settle(outputs)
	return func(put Put) engine.Fact {
		outs, settled := record(outputs, verdicts, put)
		if attempt {
			return engine.NodeFailed{Attempt: x.job.Run.Attempt, Error: err, Handled: true, Outputs: outs, Settled: settled}
		}
		return engine.NodeCompleted{Attempt: x.job.Run.Attempt, Outputs: outs, Settled: settled}
	}
}

func (x *run) errorOutputs(err *fault.Error) (Done, error) {
	if x.plan().OnError == workflow.OnErrorDefault {
		var config struct {
			Default json.RawMessage `json:"default_output"`
		}
		if len(x.call.Config) > 0 {
			if err := json.Unmarshal(x.call.Config, &config); err != nil {
				return nil, fault.Newf(fault.InvalidConfig, "configurations cannot be read: %w", err)
			}
		}
		if config.Default == nil {
			if err := json.Unmarshal(objectOr(x.revision.Definition.Nodes[x.owner].Configurations), &config); err != nil {
				return nil, fault.Newf(fault.InvalidConfig, "configurations cannot be read: %w", err)
			}
		}
		if config.Default == nil {
			config.Default = json.RawMessage("null")
		}
		return Done{dataflow.DefaultKey: config.Default}, nil
	}
	input := x.call.Input
	if input == nil {
		input = json.RawMessage("null")
	}
	payload, merr := json.Marshal(map[string]any{
		"error_code": err.Code, "error_message": err.Message, "error_details": err.Details, "is_retryable": err.Retryable,
		"success": false, "input": input,
	})
	if merr != nil {
		return nil, fault.Newf(fault.Internal, "the error cannot be handed on: %w", merr)
	}
	return Done{workflow.ErrorKey: payload}, nil
}

// scope carries out the part of a scope kind that is wanted: opening, a turn, or the close.
func (x *run) scope(scope *Scope) (factOf, error) {
	cause := x.job.Run.Cause
	var state json.RawMessage
	if cause.State != "" {
		var err error
		if state, err = x.job.Value(cause.State); err != nil {
			return nil, err
		}
	}
	switch cause.Kind {
	case engine.CauseTurn:
		return x.turn(scope, state)
	case engine.CauseClose:
		closing := Closing{Closed: *cause.Closed, State: state, Results: x.job.Scope.Results, Errors: x.job.Scope.Errors}
		if !x.job.Scope.Opened.IsZero() {
			closing.Elapsed = x.clock()().Sub(x.job.Scope.Opened)
		}
		outputs, err := scope.Close(x.ctx, &x.call, closing)
		if err != nil {
			return nil, err
		}
		return x.outcome(outputs)
	}
	opening, err := scope.Open(x.ctx, &x.call)
	if err != nil {
		return nil, err
	}
	if opening.Done != nil {
		return x.outcome(opening.Done)
	}
	turns := opening.Turns || x.entryConverts()
	return func(put Put) engine.Fact {
		f := engine.ScopeOpened{
			Attempt: x.job.Run.Attempt, Count: opening.Count, Concurrency: opening.Concurrency, KeepGoing: opening.KeepGoing,
			Turns: turns, Discard: opening.Discard, Until: unixMilli(opening.Deadline),
		}
		if opening.State != nil {
			f.State = put(opening.State)
		}
		return f
	}, nil
}

// turn asks the kind whether the next iteration begins, if it wants to be asked, and converts what enters it.
func (x *run) turn(scope *Scope, state json.RawMessage) (factOf, error) {
	index := x.job.Run.Cause.Index
	advance := Advance{Open: true}
	if scope.Turn != nil {
		var err error
		turn := Turn{Index: index, State: state, Last: x.job.Scope.Last, Results: x.job.Scope.Results}
		if advance, err = scope.Turn(x.ctx, &x.call, turn); err != nil {
			return nil, err
		}
	}
	if advance.Wait != nil {
		return x.suspended(*advance.Wait), nil
	}
	if advance.State != nil {
		state = advance.State
	}
	var verdicts []verdict
	if advance.Open && x.entryConverts() {
		iteration, err := scope.Iteration(&x.call, state, index)
		if err != nil {
			return nil, err
		}
		for _, e := range x.entries() {
			if x.revision.Graph.Edges[e].Converts {
				verdicts = append(verdicts, x.verdict(e, iteration.Payload))
			}
		}
	}
	return func(put Put) engine.Fact {
		f := engine.ScopeAdvanced{Attempt: x.job.Run.Attempt, Open: advance.Open}
		if advance.State != nil {
			f.State = put(advance.State)
		}
		for _, v := range verdicts {
			f.Entry = append(f.Entry, v.record(put))
		}
		return f
	}, nil
}

func (x *run) entries() []int {
	return x.revision.Graph.Bodies[x.revision.Graph.Nodes[x.job.Run.Node].Opens].Entry
}

func (x *run) entryConverts() bool {
	return slices.ContainsFunc(x.entries(), func(e int) bool { return x.revision.Graph.Edges[e].Converts })
}

func unixMilli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// Iterations prepares the node that opened a scope once, and returns what tells its iterations apart.
func (r *Revision) Iterations(job Job) (func(state json.RawMessage, index int64) (Iteration, error), error) {
	x := &run{revision: r, job: job, owner: job.Run.Node, node: &r.nodes[job.Run.Node]}
	scope := x.node.kind.Scope
	if scope == nil {
		return nil, fault.Newf(fault.Internal, "%s runs no body", x.node.kind.Info.Name)
	}
	if err := x.prepare(); err != nil {
		return nil, err
	}
	return func(state json.RawMessage, index int64) (Iteration, error) {
		return scope.Iteration(&x.call, state, index)
	}, nil
}
