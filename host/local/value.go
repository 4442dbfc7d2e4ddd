package local

import (
	"encoding/json"
	"errors"

	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/node"
	"tandem/payload"
)

// Nothing goes into a journal that cannot be read again: requests with such a value are refused, and runs with such a result fail.

// readable refuses a value from outside that could not be kept. Field is what its giver calls it.
func readable(field string, value json.RawMessage, limits payload.Limits) error {
	if len(value) == 0 {
		return nil
	}
	err := payload.Check(value, limits)
	if wrong, ok := errors.AsType[*payload.Error](err); ok {
		return fault.Newf(fault.InvalidInput, "%s: %s", wrong.Field(field), wrong.Reason).With("path", wrong.Field(field))
	}
	return err
}

// valueField is what those call the value of a request who make it.
func valueField(a host.Action) string {
	switch a {
	case host.ActionSkip:
		return "output"
	case host.ActionSignal, host.ActionAnswer:
		return "input_data"
	}
	return "value"
}

// withoutValue is the fact of an accepted request whose value cannot be stored, where refusing would leave a wait without end: a parent
// learns that it gets no outputs of the child, a node that its question has no answer.
func withoutValue(r host.Request, why error) (engine.Fact, bool) {
	switch r.Action {
	case host.ActionChild:
		failed := fault.Newf(fault.OutputInvalid, "the outputs of execution %q cannot be taken: %s", r.Child, fault.From(why).Message)
		if r.Error != nil {
			failed = r.Error
		}
		return engine.ChildFinished{Child: r.Child, Status: engine.StatusError, Error: failed}, true
	case host.ActionAnswer:
		return engine.AskAnswered{Ask: r.Ask, Outcome: engine.AskCanceled}, true
	}
	return nil, false
}

// maxWrapped is how deep a value may nest that a run leaves for itself or for a person, and not as an output: it may have outputs in it.
const maxWrapped = 2 * payload.MaxDepth

// putting hands the values of a run to a row and looks at them.
type putting struct {
	turn *host.Turn
	// wrong is why a value cannot be kept at all, strict why one cannot be an output.
	wrong  error
	strict map[engine.Ref]error
}

// putting hands the values of a run to a row. What it has found out of the one before is forgotten.
func (o *owner) putting(turn *host.Turn) (*putting, node.Put) {
	if o.values == nil { // it is made once for all runs
		o.values = &putting{}
		o.put = o.values.putValue
	}
	*o.values = putting{turn: turn}
	return o.values, o.put
}

func (p *putting) putValue(value json.RawMessage, beside ...payload.Part) engine.Ref {
	ref := p.turn.PutBeside(value, beside...)
	if len(value) == 0 {
		return ref
	}
	err := payload.Check(value, payload.Limits{})
	if err == nil {
		p.turn.Vouch()
		return ref
	}
	if p.strict == nil {
		p.strict = map[engine.Ref]error{}
	}
	p.strict[ref] = err
	if err := payload.Check(value, payload.Limits{MaxDepth: maxWrapped}); err != nil && p.wrong == nil {
		p.wrong = err
	}
	return ref
}

// failure takes the place of the fact of a run if something of it cannot be kept.
func (p *putting) failure(attempt engine.Attempt, fact engine.Fact) (engine.Fact, bool) {
	wrong, outputs := p.wrong, []engine.Output(nil)
	switch f := fact.(type) {
	case engine.NodeCompleted:
		outputs = f.Outputs
	case engine.NodeFailed:
		outputs = f.Outputs
	}
	for _, o := range outputs {
		if err := p.strict[o.Ref]; err != nil && wrong == nil {
			wrong = fault.Newf(fault.OutputInvalid, "the payload of output key %q cannot be kept: %w", o.Key, err)
		}
	}
	if wrong == nil {
		return nil, false
	}
	return engine.NodeFailed{Attempt: attempt, Error: fault.Newf(fault.OutputInvalid, "the node made a value that cannot be kept: %s", wrong.Error())}, true
}
