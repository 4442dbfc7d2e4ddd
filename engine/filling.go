package engine

import (
	"encoding/json"

	"tandem/fault"
	"tandem/workflow"
)

// ProgramFilling is the program that looks for missing parts of the input of a node, before the node itself is run. It leads
// at most two steps: one that fills, in which a person may be asked, and, when that one fails, one that only asks. When its
// scope has closed the node is run with what was found: as a run like any other, so that an attempt that must not be repeated
// is recorded as begun only then.
const ProgramFilling = "filling"

// The steps of a filling, by name and by what they do.
const (
	FillingName = "filling"
	AskingName  = "asking"

	StepFill = "slot_fill"
	StepAsk  = "slot_ask"
)

// fillingTimeoutMS is how long one search for missing inputs may take; waiting for people does not count.
const fillingTimeoutMS = 360_000

// fillingRetries is how often the search is repeated after a temporary failure.
const fillingRetries = 3

// Filling says that the input of an activation was searched for missing parts.
type Filling struct {
	// Ref is the result of the filling; empty: nothing was missing, or an operator has skipped the filling.
	Ref Ref `json:"ref,omitempty"`
}

// AskConfig tells the step that asks a person why the input was not filled otherwise.
type AskConfig struct {
	Code    fault.Code `json:"code"`
	Message string     `json:"message"`
}

// filling is the program. The state of its scope says what is missing; its steps get it as their input.
type filling struct {
	Input Ref `json:"input,omitempty"`
}

func restoreFilling(data json.RawMessage) (*filling, error) {
	p := &filling{}
	if err := json.Unmarshal(data, p); err != nil {
		return nil, fault.Newf(fault.Invalid, "the state of a filling cannot be read: %w", err)
	}
	return p, nil
}

// Snapshot implements Program.
func (p *filling) Snapshot() (json.RawMessage, error) { return json.Marshal(p) }

// Fired implements Program; a filling sets no timers.
func (p *filling) Fired(*Scope, string) {}

// Start implements Program.
func (p *filling) Start(sc *Scope, o Opening) {
	p.Input = o.State
	sc.Run(Step{Name: FillingName, Kind: StepFill, Effect: workflow.Idempotent, MaxRetries: fillingRetries, TimeoutMS: fillingTimeoutMS,
		Input: p.Input})
}

// Handles implements Program. If the search fails, the filling goes on: a person can still be asked.
func (p *filling) Handles(name string, _ *fault.Error) bool { return name == FillingName }

// Ended implements Program.
func (p *filling) Ended(sc *Scope, name string, end End) {
	switch {
	case end.Status == NodeDone:
		if ref := resultRef(end.Outputs); ref != "" {
			sc.Finish(nil, ref)
		}
	case end.Status == NodeFailure && name == FillingName && end.Error != nil:
		config, err := json.Marshal(AskConfig{end.Error.Code, end.Error.Message})
		if err != nil {
			sc.Fail(fault.Newf(fault.Internal, "filling: %w", err))
			return
		}
		sc.Run(Step{Name: AskingName, Kind: StepAsk, Effect: workflow.Idempotent, MaxRetries: fillingRetries, TimeoutMS: fillingTimeoutMS,
			Input: p.Input, Config: config})
	}
}

// checkFilling refuses a filling where there is nothing more to fill.
func (s *State) checkFilling(a *activation, f ScopeOpened) error {
	switch {
	case a.node < 0 || s.graph.Nodes[a.node].Opens > 0:
		return fault.Newf(fault.Invalid, "%q takes no filling: it is a step, or runs a body", a.id)
	case a.cause.Filled != nil || a.cause.Wake != nil:
		return fault.Newf(fault.Invalid, "%q has been filled already, or has run", a.id)
	case f.Count < 0 || f.Count > 1 || f.Turns || f.Until > 0:
		return fault.Newf(fault.Invalid, "count: a filling takes place once or, when nothing is missing, not at all; not %d times", f.Count)
	}
	return nil
}

// runFilled runs an activation whose filling has ended.
func (s *State) runFilled(o *activation) {
	filled := &Filling{}
	if values := o.frame.values; len(values) > 0 {
		filled.Ref = values[0]
	}
	o.frame, o.opened = nil, false
	o.cause = Cause{Kind: CauseRun, Filled: filled}
	s.dispatch(o)
}
