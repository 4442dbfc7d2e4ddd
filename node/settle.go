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
	"tandem/node/rundata"
	"tandem/payload"
	"tandem/shortage"
	"tandem/text"
	"tandem/workflow"
)

// verdict is the result of a connection with a conversion, before its value has a reference.
type verdict struct {
	edge  int
	live  bool
	value json.RawMessage
	// beside are fields of the value that were not changed.
	beside []payload.Part
	err    *fault.Error
}

func (v verdict) record(put Put) engine.Verdict {
	out := engine.Verdict{Edge: v.edge, Live: v.live, Error: v.err}
	if v.live {
		out.Ref = put(v.value, v.beside...)
	}
	return out
}

// done settles a success: its outputs, and the conversions of the connections that carry them.
func (x *run) done(outputs Done) (factOf, error) {
	verdicts, err := x.settle(outputs)
	if err != nil {
		return nil, err
	}
	x.spent = true
	attempt, declared, beside := x.job.Run.Attempt, x.declared, []payload.Part(nil)
	if x.handsOn() {
		outputs, beside = x.shared(outputs)
	}
	return func(put Put) engine.Fact {
		f := engine.NodeCompleted{Attempt: attempt, Declared: declared}
		f.Outputs, f.Settled = record(outputs, verdicts, put, beside...)
		return f
	}, nil
}

func record(outputs Done, verdicts []verdict, put Put, beside ...payload.Part) ([]engine.Output, []engine.Verdict) {
	outs := make([]engine.Output, 0, len(outputs))
	for key := range outputs { // order does not matter: sorted below
		outs = append(outs, engine.Output{Key: key})
	}
	slices.SortFunc(outs, func(a, b engine.Output) int { return strings.Compare(a.Key, b.Key) })
	for i, o := range outs {
		outs[i].Ref = put(outputs[o.Key], beside...)
	}
	var settled []engine.Verdict
	for _, v := range verdicts {
		settled = append(settled, v.record(put))
	}
	return outs, settled
}

// settle evaluates the conversions of the connections whose key was produced. The conversion of a connection back to a loop
// makes the result of the iteration: no node follows that could fail instead, so if it fails, this node fails, and with it the
// iteration.
func (x *run) settle(outputs Done) ([]verdict, error) {
	var verdicts []verdict
	for _, e := range x.revision.Graph.Nodes[x.owner].Out {
		edge := &x.revision.Graph.Edges[e]
		output, produced := outputs[edge.Key]
		if !edge.Converts || edge.Entry || !produced || edge.Back && x.job.InputRules == 0 {
			continue
		}
		var fields []payload.Member
		if x.handsOn() {
			fields = x.fieldsOf(payload.Members(output))
		}
		v := x.verdict(e, output, fields)
		if edge.Back && v.err != nil {
			return nil, v.err.Final()
		}
		verdicts = append(verdicts, v)
	}
	return verdicts, nil
}

// verdict converts what a connection carries: a value, or, if these are given, fields that other values have in common.
func (x *run) verdict(edge int, output json.RawMessage, fields []payload.Member) verdict {
	var apart func(json.RawMessage) (json.RawMessage, []payload.Part)
	if fields != nil {
		output, apart = x.revision.conversions[edge].function.Give(fields)
	}
	value, live, err := x.convert(edge, output)
	if err != nil {
		return verdict{edge: edge, err: fault.From(err)}
	}
	v := verdict{edge: edge, live: live, value: value}
	if live && fields != nil {
		v.value, v.beside = apart(value)
	}
	return v
}

// convert runs a connection's conversion function. It may decide that the connection is dead.
func (x *run) convert(edge int, output json.RawMessage) (value json.RawMessage, live bool, err error) {
	c := x.revision.conversions[edge]
	if x.revision.Graph.Edges[edge].Entry {
		output = x.wholeFor(c, output)
	}
	if c.program == nil {
		value, err := x.converted(c, output)
		if err != nil {
			f := fault.From(err)
			if f.Code == fault.Unsupported {
				return nil, false, fault.Newf(fault.Unsupported, "connection %q: %s", x.revision.Graph.Edges[edge].ID, text.OfError(f))
			}
			failed := fault.Newf(fault.ConversionFailed, "connection %q: %s", x.revision.Graph.Edges[edge].ID, text.OfError(f)).WithCause(err)
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
	decoded, err := rundata.Decode(output)
	if err != nil {
		return nil, false, err
	}
	values := map[string]any{"value": decoded, "data": decoded, "output": decoded}
	if object, ok := decoded.(map[string]any); ok {
		maps.Copy(values, object)
	}
	vars := expr.Vars{Values: values, At: x.job.Now}
	result, err := rundata.Run(c.program, vars)
	if err != nil {
		f := fault.From(err)
		return nil, false, fault.Newf(fault.ConversionFailed, "connection %q: %s",
			x.revision.Graph.Edges[edge].ID, text.OfError(f)).WithCause(err)
	}
	x.reads(payload.JoinKey("connections", x.revision.Graph.Edges[edge].ID)+".conversion_function", c.program, vars.Lookup, result)
	if object, ok := result.(map[string]any); ok && object["skip_execution"] == true {
		return nil, false, nil
	}
	value, err = json.Marshal(result)
	if err != nil {
		return nil, false, fault.Newf(fault.ConversionFailed, "connection %q: the result is not JSON",
			x.revision.Graph.Edges[edge].ID).WithCause(err)
	}
	if err := payload.Check(value, payload.Limits{}); err != nil {
		return nil, false, fault.Newf(fault.ConversionFailed, "connection %q: the result cannot be kept: %s",
			x.revision.Graph.Edges[edge].ID, err.Error())
	}
	return value, true, nil
}

// wholeFor is what enters an iteration, with what stands apart from it if the conversion reads that.
func (x *run) wholeFor(c *conversion, output json.RawMessage) json.RawMessage {
	for i := range x.job.Data.Apart {
		a := &x.job.Data.Apart[i]
		if c.program != nil && rundata.Reads(c.program, a) || c.program == nil && strings.Contains(c.source, a.Name()) {
			output = a.Into(output)
		}
	}
	return output
}

// given is the output that a person gave instead of the node's own, or its author for when it fails: its result or what counts as
// that, or, for a node that has none, a payload for each key that is to be produced. Field is what the giver calls it.
func (x *run) given(field string, output json.RawMessage) (Done, error) {
	if err := payload.Check(output, payload.Limits{}); err != nil && len(output) > 0 { // checked by the API now, but older ones were not
		return nil, fault.Newf(fault.InvalidInput, "%s: what was given instead of the node's own cannot be kept: %w", field, err)
	}
	if key, ok := x.plan().MainKey(); ok {
		return Done{key: output}, nil
	}
	keys := x.plan().Keys
	var outputs Done
	if err := json.Unmarshal(output, &outputs); err != nil || len(outputs) == 0 {
		return nil, fault.Newf(fault.InvalidInput, "%s: the node produces no result; give an object with a payload for one of its keys: %s", field, strings.Join(keys, ", "))
	}
	for key := range outputs { // order does not matter: the first that is wrong is as good as another
		if !slices.Contains(keys, key) {
			return nil, fault.Newf(fault.InvalidInput, "%s: the node has no key %q; it has %s", field, key, strings.Join(keys, ", "))
		}
	}
	if len(outputs) > 1 {
		return nil, fault.Newf(fault.InvalidInput, "%s: the node goes on under one of its keys, and payloads are given for %s; keep one of them", field, strings.Join(slices.Sorted(maps.Keys(outputs)), ", "))
	}
	return outputs, nil
}

// passed is the output of a node that is switched off: its input.
func (x *run) passed() (Done, error) {
	key, ok := x.plan().MainKey()
	if !ok {
		return nil, fault.Newf(fault.InvalidConfig, "the node is switched off and has no key under which its input could be handed on; enable it, or remove it and connect what is around it").With("path", "configurations.enabled")
	}
	x.lacks = len(x.beside) > 0
	return Done{key: x.call.Input}, nil
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
	if x.job.Run.Cause.Kind == engine.CauseInquire {
		out := engine.NodeFailed{Attempt: x.job.Run.Attempt, Error: f, NotDone: told && later.NotDone}
		if told {
			out.RetryAfterMS = later.RetryAfter.Milliseconds()
		}
		return func(Put) engine.Fact { return out }
	}
	if x.begun && x.effect() == workflow.Once && (x.ctx.Err() != nil || f.Code == fault.OutcomeUnknown || told && later.Unknown) {
		// It was cut off, or does not know whether it had its effect, so it must not be retried.
		return func(Put) engine.Fact { return engine.NodeFailed{Attempt: x.job.Run.Attempt, Error: f, Unknown: true} }
	}
	if x.job.Run.Step == nil && x.plan().Asks != "" {
		f = f.With(unanswered, x.revision.Graph.Nodes[x.owner].ID)
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
// failure; otherwise the engine has recorded the failure and needs only the outputs.
func (x *run) handled(err *fault.Error, attempt bool) factOf {
	x.lacks = false
	outputs, problem := x.errorOutputs(err)
	var verdicts []verdict
	if problem == nil {
		verdicts, problem = x.settle(outputs)
	}
	if problem != nil {
		return func(Put) engine.Fact {
			return engine.NodeFailed{Attempt: x.job.Run.Attempt, Error: fault.From(problem).Final()}
		}
	}
	return func(put Put) engine.Fact {
		outs, settled := record(outputs, verdicts, put)
		if attempt {
			return engine.NodeFailed{Attempt: x.job.Run.Attempt, Error: err, Handled: true, Outputs: outs, Settled: settled}
		}
		return engine.NodeCompleted{Attempt: x.job.Run.Attempt, Outputs: outs, Settled: settled}
	}
}

// unanswered is the detail of a failure that names the question that got no answer.
const unanswered = "unanswered"

// errorOutputs are the outputs of a node that has failed and handles that. They do not count as the answer to a question that got
// none: the default goes out under the error key, and if the question was withdrawn, or the node that asks it canceled, nothing does.
func (x *run) errorOutputs(err *fault.Error) (Done, error) {
	_, open := err.Details[unanswered]
	if open = open || x.plan().Asks != ""; (open || x.plan().Child != nil) && err.Code == fault.Canceled {
		return nil, err
	}
	outputs, problem := x.errorPayload(err)
	if key, ok := x.plan().MainKey(); ok && open && problem == nil && outputs[key] != nil && key != workflow.ErrorKey {
		return Done{workflow.ErrorKey: outputs[key]}, nil
	}
	return outputs, problem
}

func (x *run) errorPayload(err *fault.Error) (Done, error) {
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
		return x.given("configurations.default_output", config.Default)
	}
	input := x.whole()
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
	if err != nil && len(x.beside) > 0 { // so that it can say what is there
		x.all = true
		if err := x.prepare(); err != nil {
			return nil, err
		}
		opening, err = scope.Open(x.ctx, &x.call)
	}
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
	if x.job.Prepared == nil {
		if err := x.share(scope); err != nil {
			return nil, err
		}
	}
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
		iteration, err := x.iteration(scope, state, index)
		if err != nil {
			return nil, err
		}
		for _, e := range x.entries() {
			if x.revision.Graph.Edges[e].Converts {
				verdicts = append(verdicts, x.verdict(e, iteration.Payload, iteration.Fields))
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

// Prepared is an open scope, prepared once for all of its turns and iterations: they differ only in their number and the
// scope's state. It is read-only.
type Prepared struct {
	call Call
	// apart is what its body reads by name.
	apart []dataflow.Apart
	// beside are large fields of its input that are not in the call's, brought all of its fields then, left those that it has by their
	// source.
	beside, left []dataflow.Apart
	brought      []payload.Member
	// turns says that a turn needs nothing else: what a filling or a preparation adds is not in the call.
	turns bool
}

// Turns says whether it is enough for the scope's turns.
func (p *Prepared) Turns() bool { return p.turns }

// Apart is what the body can read by name but does not get as input.
func (p *Prepared) Apart() []dataflow.Apart { return p.apart }

// share takes out of the input what every iteration can read but does not get as input.
func (x *run) share(scope *Scope) error {
	if scope.Share == nil || x.job.InputRules == 0 {
		return nil
	}
	path, err := scope.Share(&x.call)
	if err != nil || path == nil {
		return err
	}
	rest, apart, ok := dataflow.Without(x.call.Input, path)
	if !ok || apart.InList() && x.job.InputRules < 2 {
		return nil
	}
	x.call.Input = rest
	x.job.Data.Apart = append([]dataflow.Apart{apart}, x.job.Data.Apart...)
	x.job.Data.Handed = true
	return nil
}

// Iterations prepares the node that opened a scope once, and returns a function for the input of each iteration. Prepared is for
// the scope's turns; nil: each turn has to prepare itself.
func (r *Revision) Iterations(job Job) (func(state json.RawMessage, index int64) (Iteration, error), *Prepared, error) {
	x := &run{revision: r, job: job, owner: job.Run.Node, node: &r.nodes[job.Run.Node]}
	scope := x.node.kind.Scope
	if scope == nil {
		return nil, nil, fault.Newf(fault.Internal, "%s runs no body", x.node.kind.About.Name)
	}
	if err := x.prepare(); err != nil {
		return nil, nil, err
	}
	outer := len(x.job.Data.Apart)
	if err := x.share(scope); err != nil {
		return nil, nil, err
	}
	prepared := &Prepared{call: x.call, apart: x.job.Data.Apart[:len(x.job.Data.Apart)-outer], turns: x.node.fills == nil &&
		x.node.kind.Prepare == nil, beside: x.beside, left: x.left, brought: x.brought}
	return func(state json.RawMessage, index int64) (Iteration, error) {
		return x.iteration(scope, state, index)
	}, prepared, nil
}

// preparedTurn is a turn of a scope that was prepared when it opened.
func (x *run) preparedTurn(p *Prepared) (factOf, error) {
	x.introduce()
	x.call.Input, x.call.Config, x.call.Contributions, x.call.Kept = p.call.Input, p.call.Config, p.call.Contributions, p.call.Kept
	x.beside, x.left, x.brought = p.beside, p.left, p.brought
	if len(p.apart) > 0 {
		x.job.Data.Apart, x.job.Data.Handed = append(slices.Clone(p.apart), x.job.Data.Apart...), true
	}
	if err := x.wake(); err != nil {
		return nil, err
	}
	return x.scope(x.node.kind.Scope)
}
