package node

import (
	"context"
	"encoding/json"
	"reflect"

	"tandem/dataflow"
	"tandem/engine"
	"tandem/fault"
	"tandem/node/shape"
	"tandem/workflow"
)

// Steps is the work of a kind that a program of the engine leads: the program decides what comes next, and these functions
// do it. Each step is an activation of its own, with its own row.
type Steps struct {
	// Program is its name in the engine.
	Program string
	// Open gathers what the steps need.
	Open func(ctx context.Context, c *Call) (Led, error)
	// Step does one step. It ends with Replied, or waits. Its call has no configurations and no input of the node: what a
	// step may know is in the state and in the values that the program hands it.
	Step func(ctx context.Context, c *Call, s Step) (Outcome, error)
	// Given makes the end of a step from what a person gave instead of its work. Nil: that is the result as it is, without
	// a reply to the program.
	Given func(c *Call, s Step, output json.RawMessage) (Replied, error)
	// Inquire is [Kind.Inquire] for a step: it answers with Replied, or with nil for a step that had no effect. May be nil.
	Inquire func(ctx context.Context, c *Call, s Step) (Outcome, error)
	// Shows returns what a step got, as people see it; a nil result: what the program gave it. May be nil.
	Shows func(s Step) (any, error)
	// Close makes the node's outputs.
	Close func(ctx context.Context, c *Call, e Ending) (Done, error)
}

// Led says how a program begins.
type Led struct {
	// Done, when it is not nil, ends the node without a step; Wait puts the beginning off.
	Done Done
	Wait *Wait
	// Config is the program's own, State what every step gets.
	Config json.RawMessage
	State  json.RawMessage
}

// Step is one step, as the kind that it belongs to sees it.
type Step struct {
	Name string
	Kind string
	// Config is what the program says about it.
	Config json.RawMessage
	State  json.RawMessage
	// Input is what the program gave the step, if anything. A fork may have replaced it.
	Input json.RawMessage
	// Values are the results of other steps that the program wants read.
	Values []json.RawMessage
	// LastTry says that no retry follows a failure.
	LastTry bool
}

// Ending is what a program has left when it has ended.
type Ending struct {
	Result json.RawMessage
	State  json.RawMessage
	Values []json.RawMessage
}

// Replied is the end of a step: its result, and what the program has to know about it.
type Replied struct {
	Result json.RawMessage
	// Reply is marshalled for the program; nil: there is nothing to say.
	Reply any
	// Settle is what the step has used of what it had reserved. It is recorded with the step's end.
	Settle []Settlement
}

// Settlement is what a call has really used of what was reserved for it.
type Settlement struct {
	ID     string
	Tokens int64
	// Cost is in millionths of the currency.
	Cost int64
}

// Leader is a [Steps] with its configuration and input read.
type Leader[C, I any] struct {
	Program string
	Open    func(ctx context.Context, call *Call, cfg C, in I) (Led, error)
	Step    func(ctx context.Context, call *Call, s Step) (Outcome, error)
	Given   func(call *Call, s Step, output json.RawMessage) (Replied, error) // may be nil
	Inquire func(ctx context.Context, call *Call, s Step) (Outcome, error)    // may be nil
	Shows   func(s Step) (any, error)                                         // may be nil
	Close   func(ctx context.Context, call *Call, cfg C, e Ending) (Done, error)
}

// Lead makes a kind whose work a program leads.
func Lead[C, I any](about About, l Leader[C, I], plan ...func(p *Planning, cfg *C)) Kind {
	fields := shapeFor[C](about)
	kind := Kind{
		About:        about.described(reflect.TypeFor[I](), nil),
		ConfigSchema: shape.SchemaOfConfig[C](about.Name, fields),
		InputSchema:  SchemaOf[I](about.Name),
		config:       fields,
		plan:         planned(fields, plan),
		prompt:       fields.Prompts,
		promptInputs: shape.PromptInputs(reflect.TypeFor[I]()),
		Steps: &Steps{
			Program: l.Program,
			Open: func(ctx context.Context, call *Call) (led Led, err error) {
				defer recovered(about.Name, &err)
				cfg, err := configuration[C](fields, call.Config)
				if err != nil {
					return Led{}, err
				}
				in, err := input[I](call.Input)
				if err != nil {
					return Led{}, err
				}
				return l.Open(ctx, call, cfg, in)
			},
			Step: func(ctx context.Context, call *Call, s Step) (out Outcome, err error) {
				defer recovered(about.Name, &err)
				return l.Step(ctx, call, s)
			},
			Close: func(ctx context.Context, call *Call, e Ending) (done Done, err error) {
				defer recovered(about.Name, &err)
				cfg, err := configuration[C](fields, call.Config)
				if err != nil {
					return nil, err
				}
				return l.Close(ctx, call, cfg, e)
			},
		},
	}
	kind.Steps.Shows = l.Shows
	if l.Inquire != nil {
		kind.Steps.Inquire = func(ctx context.Context, call *Call, s Step) (out Outcome, err error) {
			defer recovered(about.Name, &err)
			return l.Inquire(ctx, call, s)
		}
	}
	if l.Given != nil {
		kind.Steps.Given = func(call *Call, s Step, output json.RawMessage) (r Replied, err error) {
			defer recovered(about.Name, &err)
			return l.Given(call, s, output)
		}
	}
	return kind
}

// lead opens the scope of a program, or closes it.
func (x *run) lead(steps *Steps) (factOf, error) {
	cause := x.job.Run.Cause
	if cause.Kind == engine.CauseClose {
		end := Ending{Result: cause.Closed.Result}
		var err error
		if cause.State != "" {
			if end.State, err = x.job.Value(cause.State); err != nil {
				return nil, err
			}
		}
		if end.Values, err = x.values(cause.Closed.Values); err != nil {
			return nil, err
		}
		outputs, err := steps.Close(x.ctx, &x.call, end)
		if err != nil {
			return nil, err
		}
		return x.outcome(outputs)
	}
	led, err := steps.Open(x.ctx, &x.call)
	if err != nil {
		return nil, err
	}
	if led.Done != nil {
		return x.outcome(led.Done)
	}
	if led.Wait != nil {
		return x.outcome(*led.Wait)
	}
	return x.led(steps, led), nil
}

// led is the event of a program that begins.
func (x *run) led(steps *Steps, led Led) factOf {
	return func(put Put) engine.Fact {
		f := engine.ScopeOpened{Attempt: x.job.Run.Attempt, Program: steps.Program, Config: led.Config, Count: 1, Discard: true}
		if led.State != nil {
			f.State = put(led.State)
		}
		return f
	}
}

// step does a step of the program that leads the node.
func (x *run) step() (factOf, error) {
	x.introduce()
	cause, s := x.job.Run.Cause, x.job.Run.Step
	if cause.Kind == engine.CauseOutput {
		return x.givenStep()
	}
	if s.Kind == engine.StepFill || s.Kind == engine.StepAsk {
		return x.fillStep()
	}
	steps := x.node.kind.Steps
	if steps == nil {
		return nil, fault.Newf(fault.Internal, "%s is led by no program and has the step %q", x.node.kind.About.Name, s.Name)
	}
	if err := x.wake(); err != nil {
		return nil, err
	}
	step, err := x.readStep()
	if err != nil {
		return nil, err
	}
	if x.job.Stand != nil {
		return x.stood(&step)
	}
	if cause.Kind == engine.CauseInquire {
		return x.settles(steps.Inquire != nil, func() (Outcome, error) { return steps.Inquire(x.ctx, &x.call, step) })
	}
	x.begun = true
	outcome, err := steps.Step(x.ctx, &x.call, step)
	if err != nil {
		return nil, err
	}
	return x.outcome(outcome)
}

// readStep is the step as its kind sees it.
func (x *run) readStep() (Step, error) {
	s := x.job.Run.Step
	step := Step{Name: s.Name, Kind: s.Kind, Config: s.Config, State: x.job.State, LastTry: x.job.Run.LastTry}
	var err error
	if step.Values, err = x.values(s.Values); err == nil && x.job.Run.Input != "" {
		step.Input, err = x.job.Value(x.job.Run.Input)
	}
	return step, err
}

// givenStep ends a step with what a person gave instead of its work, which may be nothing if they only know that it was done.
func (x *run) givenStep() (factOf, error) {
	output := json.RawMessage("null")
	if ref := x.job.Run.Cause.Ref; ref != "" {
		var err error
		if output, err = x.job.Value(ref); err != nil {
			return nil, err
		}
	}
	steps := x.node.kind.Steps
	if kind := x.job.Run.Step.Kind; steps == nil || steps.Given == nil || kind == engine.StepFill || kind == engine.StepAsk {
		return x.replied(Replied{Result: output})
	}
	step, err := x.readStep()
	if err != nil {
		return nil, err
	}
	r, err := steps.Given(&x.call, step, output)
	if err != nil {
		return nil, err
	}
	return x.replied(r)
}

func (x *run) values(refs []engine.Ref) ([]json.RawMessage, error) {
	list := make([]json.RawMessage, len(refs))
	for i, ref := range refs {
		var err error
		if list[i], err = x.job.Value(ref); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// replied is the event of a step that has succeeded.
func (x *run) replied(r Replied) (factOf, error) {
	x.settled = r.Settle // also when the result cannot be kept: it was paid for
	var reply json.RawMessage
	if r.Reply != nil {
		raw, err := json.Marshal(r.Reply)
		if err != nil {
			return nil, fault.New(fault.OutputInvalid, "the step made a reply that JSON cannot hold").WithCause(err)
		}
		reply = raw
	}
	outputs := Done{dataflow.DefaultKey: r.Result}
	if err := dataflow.CheckOutput(outputs); err != nil {
		return nil, err
	}
	outputs = x.clean(outputs)
	return func(put Put) engine.Fact {
		f := engine.NodeCompleted{Attempt: x.job.Run.Attempt, Reply: reply, Declared: x.declared}
		f.Outputs, _ = record(outputs, nil, put)
		return f
	}, nil
}

// effect is the effect of the run: a step has its own.
func (x *run) effect() workflow.Effect {
	if s := x.job.Run.Step; s != nil {
		return s.Effect
	}
	return x.plan().Effect
}

// uses lists the attached nodes.
func (x *run) uses() []Use {
	var list []Use
	for _, i := range x.revision.Graph.Nodes[x.owner].Uses {
		list = append(list, Use{x.revision.Graph.Nodes[i].ID, x.revision.Graph.Nodes[i].Kind})
	}
	return list
}

// attached runs a node that is attached to this one within this run. It sees the data that this one sees.
func (x *run) attached(ctx context.Context, id string, input json.RawMessage) (Outcome, error) {
	inner, err := x.inner(ctx, id, input)
	if err != nil {
		return nil, err
	}
	kind := inner.node.kind
	do := kind.Run
	if ctx.Value(inquiryKey{}) != nil {
		do = kind.Inquire
	}
	if do == nil {
		return nil, fault.Newf(fault.Unsupported, "node %q (%s) cannot be used by another node, or not be asked what became of a run", id, kind.About.Name)
	}
	if err := inner.wake(); err != nil {
		return nil, err
	}
	if err := checkSchema(inner.node.override.input, fault.InvalidInput, "input", inner.call.Input); err != nil {
		return nil, err
	}
	return do(ctx, &inner.call)
}

type inquiryKey struct{}

// Inquiry marks a use of an attached node that asks about an earlier use, see [Kind.Inquire].
func Inquiry(ctx context.Context) context.Context { return context.WithValue(ctx, inquiryKey{}, true) }

// offered lists the tools of a node that is attached to this one.
func (x *run) offered(ctx context.Context, id string) ([]Tool, error) {
	inner, err := x.inner(ctx, id, json.RawMessage("{}"))
	if err != nil {
		return nil, err
	}
	kind := inner.node.kind
	if kind.Tools == nil {
		return nil, fault.Newf(fault.Unsupported, "node %q (%s) offers no tools to a model", id, kind.About.Name)
	}
	return kind.Tools(ctx, &inner.call)
}

// ready returns what has to be waited for before an attached node can say what it offers.
func (x *run) ready(ctx context.Context, id string) (*Wait, error) {
	inner, err := x.inner(ctx, id, json.RawMessage("{}"))
	if err != nil || inner.node.kind.Ready == nil {
		return nil, err
	}
	if err := inner.wake(); err != nil {
		return nil, err
	}
	return inner.node.kind.Ready(ctx, &inner.call)
}

// inner is a run of an attached node within this one.
func (x *run) inner(ctx context.Context, id string, input json.RawMessage) (*run, error) {
	i, ok := x.revision.Graph.Node(id)
	if !ok {
		return nil, fault.Newf(fault.NotFound, "there is no node %q to use", id)
	}
	inner := &run{revision: x.revision, job: x.job, owner: i, node: &x.revision.nodes[i], ctx: ctx}
	inner.introduce()
	inner.call.Credential = x.credential // what it opens stays secret until this run ends
	return inner, inner.build([]dataflow.Payload{{Value: input}})
}
