package host

import (
	"encoding/json"

	"tandem/engine"
)

// Act is something that a person did to an execution: an answer, or what an operator did.
type Act struct {
	Action Action `json:"d"`
	By     string `json:"b,omitempty"`
	// TokenMadeBy is who made the token that By used, if it was somebody else. For an answer the Origin has it.
	TokenMadeBy string              `json:"m,omitempty"`
	Reason      string              `json:"r,omitempty"`
	Node        string              `json:"n,omitempty"`
	Activation  engine.ActivationID `json:"a,omitempty"`
	Ask         engine.AskID        `json:"q,omitempty"`
	// Origin is how an answer came, as it was recorded.
	Origin json.RawMessage `json:"o,omitempty"`
	Time   int64           `json:"t"`
}

// ActOf returns what somebody did, if a fact records that: a person, a call back, or the execution that started this one. The
// timeout of a question is not an act.
func ActOf(fact engine.Fact) (act Act, ok bool) {
	switch f := fact.(type) {
	case engine.ExecutionPaused:
		act = Act{Action: ActionPause, By: f.By, TokenMadeBy: f.TokenMadeBy, Reason: f.Reason}
	case engine.ExecutionResumed:
		act = Act{Action: ActionResume, By: f.By, TokenMadeBy: f.TokenMadeBy, Reason: f.Reason}
	case engine.CancelRequested:
		act = Act{Action: ActionCancel, By: f.By, TokenMadeBy: f.TokenMadeBy, Reason: f.Reason}
	case engine.NodeRetried:
		act = Act{Action: ActionRetry, By: f.By, TokenMadeBy: f.TokenMadeBy, Reason: f.Reason, Activation: f.Activation}
	case engine.NodeSkipped:
		act = Act{Action: ActionSkip, By: f.By, TokenMadeBy: f.TokenMadeBy, Reason: f.Reason, Activation: f.Activation}
	case engine.SignalReceived:
		act = Act{Action: ActionSignal, By: f.By, TokenMadeBy: f.TokenMadeBy, Node: f.Node, Activation: f.Activation}
	case engine.AskAnswered:
		act = Act{Action: ActionAnswer, By: f.By, Ask: f.Ask, Origin: f.Origin}
	}
	return act, act.By != ""
}
