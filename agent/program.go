// Package agent is the program of a task that plans its own steps: the state machine between replies of models, answers
// of people and outcomes of tools on one side, and the steps to run next on the other.
//
// It decides and does nothing: prompts, models, tools, risks, questions and texts are the runtime's, which is asked for
// one step at a time (the Kind constants, each with an [About]) and answers with small replies. The program sees names and
// references, never values, so a task of any size has a small state; every decision and every call is an activation of
// its own, and whatever is recorded is never done again.
//
// A task is named and judged; a person is asked if its risk wants that. Then each step is planned, its arguments are
// derived, the call with exactly these arguments is judged and, where the mode or the risk wants it, confirmed; then it is
// called. A call that fails is made again, gets other arguments, or goes up the rungs: another tool, a repaired step, another
// plan for the rest. FINAL, or a limit, leads to the summary. A person who refuses cancels the whole execution.
//
// What happens when a step of the program itself does not end well:
//
//   - A planning that fails counts as a try. A name that is not found is done without.
//   - A judgement whose answer cannot be used leaves the risk unassessed: a person is asked whatever the policy.
//   - Any other decision whose answer cannot be used counts as a no: no error of parameters, no other tool, no repair.
//     Arguments that could not be derived are an error of parameters.
//   - A model that cannot be reached, a question that fails, a summary that fails, an outcome that nobody knows: the failure
//     goes outwards and the step stays, so that it alone can be tried again.
//   - A step of a task any part of which an operator skips is left out, and the next is planned. A skipped planning is
//     FINAL; a skipped confirmation of the task cancels it, since to skip is not to agree.
//
// A task that has ended well can be frozen: [Freeze] makes a workflow of its record that runs without a model.
//
// The package is pure and imports engine, workflow, dataflow and fault. The runtime of agents, the code that registers programs with an
// engine and the code that tells tasks may import it. spec.go is an agent as
// it is kept, request.go what a task is asked; vocabulary.go is the language spoken with the runtime, step_name.go the names of
// steps, program.go the life of a task, step.go that of one step, ladder.go the ways out of a failure; freeze.go makes workflows,
// freeze_trace.go finds out where values came from, freeze_value.go takes them apart.
package agent

import (
	"encoding/json"
	"slices"

	"tandem/engine"
	"tandem/fault"
	"tandem/workflow"
)

// Config is how a task is led. It stands in the event that opens the scope.
type Config struct {
	Limits Limits `json:"limits,omitzero"`
	// Auto runs what is of low risk without asking. AutoApprove names the levels that need no confirmation either.
	Auto        bool     `json:"auto,omitempty"`
	AutoApprove []Risk   `json:"auto_approve,omitempty"`
	Language    string   `json:"language,omitempty"`
	Timeouts    Timeouts `json:"timeouts,omitzero"`
	// Retries is how often a decision is tried again when something that may pass has kept it from ending; 0: 3.
	Retries int `json:"retries,omitempty"`
}

// Limits bound a task. Zero is the default.
type Limits struct {
	// Steps is how many steps are planned before it is FINAL: 25.
	Steps int `json:"steps,omitempty"`
	// PlanTries is how often the planning of one step is tried: 3.
	PlanTries int `json:"plan_tries,omitempty"`
	// InnerCalls is how often arguments are derived again within a step, and how often a person is asked for them: 5.
	InnerCalls int `json:"inner_calls,omitempty"`
	// Failures is how many fail the task: 3.
	Failures int `json:"failures,omitempty"`
	// JSONTries is how often a model is asked for an answer of the right shape, HistoryRounds how many rounds of a conversation a task is
	// told of: 3 each. They are the runtime's to keep.
	JSONTries     int `json:"json_tries,omitempty"`
	HistoryRounds int `json:"history_rounds,omitempty"`
}

// Timeouts are those of one attempt, in milliseconds; waiting for people does not count. Zero: 420 s.
type Timeouts struct {
	DecisionMS int64 `json:"decision_ms,omitempty"`
	CallMS     int64 `json:"call_ms,omitempty"`
}

const (
	defaultTimeoutMS = 420_000
	defaultRetries   = 3
	maxLimit         = 1000
	// What is kept of a failure's text: of the present one, and in the log.
	maxMessage = 2000
	maxLogged  = 500
)

// Programs are what an engine has to know to lead tasks.
func Programs() engine.Programs { return engine.Programs{Name: Program()} }

// Program makes the program.
func Program() engine.Factory {
	return engine.Factory{
		New: func(setup engine.Setup) (engine.Program, error) { return newTask(setup) },
		Restore: func(setup engine.Setup, data json.RawMessage) (engine.Program, error) {
			t, err := newTask(setup)
			if err != nil {
				return nil, err
			}
			if err := json.Unmarshal(data, &t.state); err != nil {
				return nil, fault.Newf(fault.Invalid, "the state of the task cannot be read: %w", err)
			}
			return t, nil
		},
	}
}

// task is the program. Its state is what it is restored from; exactly one step of it is open at a time.
type task struct {
	config Config
	state
}

type state struct {
	Input engine.Ref `json:"input,omitempty"`
	// Doing is the kind of the step that is open.
	Doing    string     `json:"doing,omitempty"`
	FlowName engine.Ref `json:"flow_name,omitempty"`
	FlowRisk engine.Ref `json:"flow_risk,omitempty"`
	// Steps counts the places for which a tool was chosen, Failures what counts on the task, Plans the plans.
	Steps    int        `json:"steps,omitempty"`
	Failures int        `json:"failures,omitempty"`
	Plans    int        `json:"plans"`
	Outline  engine.Ref `json:"outline,omitempty"`
	Place    place      `json:"place,omitzero"`
	Step     step       `json:"step,omitzero"`
	Log      []record   `json:"log,omitempty"`
	End      End        `json:"end,omitzero"`
	Answer   engine.Ref `json:"answer,omitempty"`
	Usage    Usage      `json:"usage,omitzero"`
}

// record is an entry with the references that its values are told from.
type record struct {
	Entry
	ChoiceRef    engine.Ref `json:"choice_ref,omitempty"`
	ArgumentsRef engine.Ref `json:"arguments_ref,omitempty"`
	ResultRef    engine.Ref `json:"result_ref,omitempty"`
	GivenRef     engine.Ref `json:"given_ref,omitempty"`
}

func newTask(setup engine.Setup) (*task, error) {
	t := &task{state: state{Plans: 1}}
	c := &t.config
	if len(setup.Config) > 0 {
		if err := json.Unmarshal(setup.Config, c); err != nil {
			return nil, fault.Newf(fault.Invalid, "the configuration of the task cannot be read: %w", err)
		}
	}
	for _, l := range []struct {
		name     string
		value    *int
		standard int
	}{
		{"limits.steps", &c.Limits.Steps, 25}, {"limits.plan_tries", &c.Limits.PlanTries, 3},
		{"limits.inner_calls", &c.Limits.InnerCalls, 5}, {"limits.failures", &c.Limits.Failures, 3},
		{"retries", &c.Retries, defaultRetries},
	} {
		switch {
		case *l.value < 0 || *l.value > maxLimit:
			return nil, fault.Newf(fault.Invalid, "%s: %d is not a limit; use 1 to %d, or 0 for %d", l.name, *l.value, maxLimit, l.standard)
		case *l.value == 0:
			*l.value = l.standard
		}
	}
	for _, ms := range []*int64{&c.Timeouts.DecisionMS, &c.Timeouts.CallMS} {
		switch {
		case *ms < 0:
			return nil, fault.Newf(fault.Invalid, "timeouts: %d ms cannot be; use 0 for %d", *ms, defaultTimeoutMS)
		case *ms == 0:
			*ms = defaultTimeoutMS
		}
	}
	for _, r := range c.AutoApprove {
		if r != Low && r != Medium && r != High {
			return nil, fault.Newf(fault.Invalid, "auto_approve: %q is not a level of risk; use %s, %s or %s", r, Low, Medium, High)
		}
	}
	return t, nil
}

// Snapshot implements engine.Program.
func (t *task) Snapshot() (json.RawMessage, error) { return json.Marshal(t.state) }

// Fired implements engine.Program; a task sets no timers.
func (t *task) Fired(*engine.Scope, string) {}

// Start implements engine.Program.
func (t *task) Start(sc *engine.Scope, o engine.Opening) {
	t.Input = o.Input
	t.runStep(sc, KindFlowName, KindFlowName, 1)
}

// Handles implements engine.Program. What it does not handle stays as a failed step that can be tried again.
func (t *task) Handles(_ string, err *fault.Error) bool {
	switch t.Doing {
	case KindCall: // to go on with another tool might do twice what nobody knows to be undone
		return err.Code != fault.OutcomeUnknown
	case KindConfirmFlow, KindConfirm, KindAskParams:
		return err.Code == fault.Canceled
	case KindFlowName, KindPlan:
		return err.Code != fault.Canceled && err.Code != fault.BudgetExhausted
	case KindSummary:
		return false
	}
	return useless(err.Code)
}

// useless says that a model has answered and that nothing can be made of the answer.
func useless(code fault.Code) bool {
	return slices.Contains([]fault.Code{
		fault.OutputInvalid, fault.ValidationFailed, fault.InvalidInput, fault.ParameterMissing, fault.UnresolvedPlaceholder,
		fault.ExpressionError, fault.ConversionFailed, fault.ModelRefused, fault.ContextTooLong,
	}, code)
}

// Ended implements engine.Program.
func (t *task) Ended(sc *engine.Scope, _ string, end engine.End) {
	ref := resultRef(end.Outputs)
	t.Usage.addReply(end.Reply)
	switch t.Doing {
	case KindFlowName:
		if end.Status == engine.NodeDone {
			t.FlowName = ref
		}
		t.runStep(sc, KindFlowRisk, KindFlowRisk, 1)
	case KindFlowRisk:
		t.judgedFlow(sc, end, ref)
	case KindConfirmFlow:
		if t.confirmed(sc, end) {
			t.planNext(sc)
		} else {
			t.cancel(sc, notConfirmed)
		}
	case KindSummary:
		if end.Status == engine.NodeDone {
			t.Answer = ref
		}
		t.finish(sc)
	default:
		t.endedInStep(sc, end, ref)
	}
}

// judgedFlow asks whether the task may begin, unless its risk is low or the policy approves of it.
func (t *task) judgedFlow(sc *engine.Scope, end engine.End, ref engine.Ref) {
	reply, assessed, ok := t.judgement(sc, end)
	if !ok {
		return
	}
	t.Step = step{Risk: reply.Risk, Unassessed: !assessed}
	if end.Status == engine.NodeDone {
		t.FlowRisk = ref
	}
	if t.gated() {
		t.runStep(sc, KindConfirmFlow, KindConfirmFlow, 1)
		return
	}
	t.planNext(sc)
}

// gated says that the present risk needs a person also where steps run by themselves.
func (t *task) gated() bool {
	if t.Step.Unassessed {
		return true
	}
	switch t.Step.Gate {
	case "":
		return t.Step.Risk != Low && !slices.Contains(t.config.AutoApprove, t.Step.Risk)
	case GateOpen:
		return false
	}
	return true
}

// judgement reads a judgement of risk. A missing one, or one that says nothing, is high.
func (t *task) judgement(sc *engine.Scope, end engine.End) (reply RiskReply, assessed, ok bool) {
	if end.Status == engine.NodeDone && !t.readReply(sc, end, &reply) {
		return reply, false, false
	}
	switch reply.Risk {
	case Low, Medium, High:
		return reply, true, true
	}
	reply.Risk = High
	return reply, false, true
}

// confirmed says that a person has agreed.
func (t *task) confirmed(sc *engine.Scope, end engine.End) bool {
	var reply ConfirmReply
	return end.Status == engine.NodeDone && t.readReply(sc, end, &reply) && reply.Confirmed
}

// readReply decodes a reply; a step that a person has ended may have none. What cannot be read fails the task.
func (t *task) readReply(sc *engine.Scope, end engine.End, reply any) bool {
	if len(end.Reply) == 0 {
		return true
	}
	if err := json.Unmarshal(end.Reply, reply); err != nil {
		t.fail(sc, fault.Newf(fault.Internal, "the reply of a %s cannot be read: %w", t.Doing, err))
		return false
	}
	return true
}

// finally writes the summary.
func (t *task) finally(sc *engine.Scope, why Final) {
	t.End.Final = why
	t.Step, t.Place = step{}, place{}
	t.runStep(sc, KindSummary, KindSummary, 1)
}

// cancel ends the execution: a person does not want it, or has not given what it lacks. The call that would have been next is recorded as
// canceled.
func (t *task) cancel(sc *engine.Scope, why string) {
	if t.End.Failed {
		return
	}
	t.End.Canceled = true
	if t.Step.ID == "" {
		t.finish(sc)
		sc.Abandon(fault.New(fault.Canceled, "the task "+why))
		return
	}
	t.noteStep(record{Entry: Entry{Status: Refused}})
	t.finish(sc)
	sc.Abandon(fault.Newf(fault.Canceled, "%s (%s) %s", t.Step.ID, t.Step.Tool, why), t.Step.callName(t.Step.Calls+1))
}

// Why a task is canceled.
const (
	notConfirmed = "was not confirmed"
	notGiven     = "lacks parameters, and nobody has given them"
)

// fail fails the task for good.
func (t *task) fail(sc *engine.Scope, err *fault.Error) {
	t.End.Failed = true
	t.finish(sc)
	sc.Fail(err.Final())
}

// finish hands the result on.
func (t *task) finish(sc *engine.Scope) {
	t.Doing = ""
	end, values := t.End, gathering{}
	end.Steps, end.Failures, end.Usage = t.Steps, t.Failures, t.Usage
	for i := range t.Plans {
		end.PlanIDs = append(end.PlanIDs, PlanID(i+1))
	}
	end.FlowName, end.FlowRisk, end.Answer = values.addRef(t.FlowName), values.addRef(t.FlowRisk), values.addRef(t.Answer)
	end.Log = t.entries(&values)
	result, err := json.Marshal(end)
	if err != nil {
		sc.Fail(fault.Newf(fault.Internal, "agent: %w", err))
		return
	}
	sc.Finish(result, values...)
}

// runStep runs a step of the program that may read everything so far.
func (t *task) runStep(sc *engine.Scope, kind, name string, try int) {
	t.Doing = kind
	s, values := &t.Step, gathering{}
	about := About{
		Step: s.ID, Number: t.Place.Number, Try: try, PlanID: PlanID(t.Plans), Tool: s.Tool, Rung: s.Rung,
		Choice: values.addRef(s.Choice), Arguments: values.addRef(s.Arguments), Judged: values.addRef(s.Judged),
		Risk: s.Risk, Unassessed: s.Unassessed,
		Class: s.Failure.Class, Code: s.Failure.Code, Message: s.Failure.Message,
		Missing: values.addRef(s.Missing), Given: values.addRef(s.Given),
		FlowName: values.addRef(t.FlowName), FlowRisk: values.addRef(t.FlowRisk), Outline: values.addRef(t.Outline),
		Final: t.End.Final, Failures: t.Failures, Auto: t.config.Auto, Language: t.config.Language,
	}
	if s.agreed() {
		about.Confirmed, about.Confirmation = true, values.addRef(s.Confirmation)
	}
	about.Log = t.entries(&values)
	config, err := json.Marshal(about)
	if err != nil {
		t.fail(sc, fault.Newf(fault.Internal, "agent: %w", err))
		return
	}
	out := engine.Step{
		Name: name, Kind: kind, Effect: workflow.Idempotent, MaxRetries: t.config.Retries, TimeoutMS: t.config.Timeouts.DecisionMS,
		Input: t.Input, Config: config, Values: values,
	}
	switch kind {
	case KindCall:
		out.Effect, out.OnUnknown, out.Input, out.TimeoutMS, out.MaxRetries = s.Effect, s.OnUnknown,
			s.Arguments, t.config.Timeouts.CallMS, 0
		out.Tool = s.Tool
		if s.Effect == workflow.Once && s.OnUnknown == workflow.OnUnknownRetry {
			out.MaxRetries = 1 // without one the engine does not repeat what nobody knows the outcome of
		}
	case KindConfirm:
		out.Input = s.Arguments
	}
	sc.Run(out)
}

// entries is the log, with the numbers of its values.
func (t *task) entries(values *gathering) []Entry {
	var list []Entry
	for _, r := range t.Log {
		e := r.Entry
		e.Choice, e.Arguments, e.Result = values.addRef(r.ChoiceRef), values.addRef(r.ArgumentsRef), values.addRef(r.ResultRef)
		e.Given = values.addRef(r.GivenRef)
		list = append(list, e)
	}
	return list
}

// gathering collects references and numbers them, each once.
type gathering []engine.Ref

func (g *gathering) addRef(ref engine.Ref) Value {
	if ref == "" {
		return 0
	}
	if i := slices.Index(*g, ref); i >= 0 {
		return Value(i + 1)
	}
	*g = append(*g, ref)
	return Value(len(*g))
}
