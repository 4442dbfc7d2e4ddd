package notify

import (
	"encoding/json"
	"strconv"

	"tandem/engine"
	"tandem/fault"
	"tandem/workflow"
)

// programName is what the engine calls the program that leads deliveries.
const programName = "deliveries"

// Programs are what an engine has to know to lead notifications.
func Programs() engine.Programs {
	return engine.Programs{programName: engine.Factory{
		New: func(setup engine.Setup) (engine.Program, error) { return newProgram(setup) },
		Restore: func(setup engine.Setup, data json.RawMessage) (engine.Program, error) {
			p, err := newProgram(setup)
			if err != nil {
				return nil, err
			}
			if err := json.Unmarshal(data, &p.state); err != nil {
				return nil, fault.Newf(fault.Invalid, "the state of a notification cannot be read: %w", err)
			}
			return p, nil
		},
	}}
}

// programConfig are the deliveries that a notification consists of.
type programConfig struct {
	Deliveries []delivery `json:"deliveries"`
}

// delivery is one step: what repeating it means, and how often and how long it is tried.
type delivery struct {
	Effect     workflow.Effect    `json:"effect"`
	MaxRetries int                `json:"max_retries,omitempty"`
	TimeoutMS  int64              `json:"timeout_ms,omitempty"`
	OnUnknown  workflow.OnUnknown `json:"on_unknown,omitempty"`
}

// outcome is how a delivery ended.
type outcome struct {
	N     int    `json:"n"`
	OK    bool   `json:"ok"`
	ID    string `json:"id,omitempty"`
	Error string `json:"error,omitempty"`
}

// program makes all deliveries at the same time, each as a step of its own: one that fails, is tried again or needs a decision of a person
// does not keep the others waiting, and what is recorded is never done again.
type program struct {
	config programConfig
	state  struct {
		Ended []outcome `json:"ended,omitempty"`
	}
}

func newProgram(setup engine.Setup) (*program, error) {
	p := &program{}
	if err := json.Unmarshal(setup.Config, &p.config); err != nil {
		return nil, fault.Newf(fault.Invalid, "the deliveries of a notification cannot be read: %w", err)
	}
	return p, nil
}

// stepName is the name of a delivery.
func stepName(n int) string { return "delivery_" + strconv.Itoa(n+1) }

// Start implements [engine.Program].
func (p *program) Start(sc *engine.Scope, _ engine.Opening) {
	for n, d := range p.config.Deliveries {
		config, err := json.Marshal(n)
		if err != nil {
			sc.Fail(fault.Newf(fault.Internal, "a delivery cannot be numbered: %w", err))
			return
		}
		sc.Run(engine.Step{Name: stepName(n), Kind: "deliver", Effect: d.Effect, MaxRetries: d.MaxRetries, TimeoutMS: d.TimeoutMS,
			OnUnknown: d.OnUnknown, Config: config})
	}
}

// Handles implements [engine.Program]. A delivery that failed stands in the result.
func (p *program) Handles(string, *fault.Error) bool { return true }

// Ended implements [engine.Program].
func (p *program) Ended(sc *engine.Scope, name string, end engine.End) {
	for n := range p.config.Deliveries {
		if stepName(n) != name {
			continue
		}
		o := outcome{N: n, OK: end.Status == engine.NodeDone}
		if o.OK && len(end.Reply) > 0 {
			if err := json.Unmarshal(end.Reply, &o.ID); err != nil {
				sc.Fail(fault.Newf(fault.Internal, "what a delivery replied cannot be read: %w", err))
				return
			}
		}
		if end.Error != nil {
			o.Error = string(end.Error.Code) + ": " + end.Error.Message
		}
		p.state.Ended = append(p.state.Ended, o)
	}
	result, err := json.Marshal(p.state.Ended)
	if err != nil {
		sc.Fail(fault.Newf(fault.Internal, "the deliveries cannot be told: %w", err))
		return
	}
	sc.Finish(result)
}

// Fired implements [engine.Program]; there are no timers.
func (p *program) Fired(*engine.Scope, string) {}

// Snapshot implements [engine.Program].
func (p *program) Snapshot() (json.RawMessage, error) { return json.Marshal(p.state) }
