package host

import (
	"context"
	"encoding/json"
	"iter"

	"tandem/engine"
	"tandem/fault"
	"tandem/identity"
)

// Host drives executions. Whatever it has answered is on disk.
type Host interface {
	// Start records an execution and begins it, or, when as many run as may, lets it wait for its turn. It returns the
	// execution's id: that of an earlier one when the idempotency key is that of an earlier one with the same hash.
	Start(ctx context.Context, p identity.Principal, r StartRequest) (Started, error)
	// Act does something to an execution and says what its status is then. What cannot be done is refused with
	// [fault.Conflict], an execution or node that is not there with [fault.NotFound]; a refusal changes nothing.
	Act(ctx context.Context, p identity.Principal, r Request) (engine.Status, error)
	// Fork starts an execution that shares another one's past up to an activation, and returns its id.
	Fork(ctx context.Context, p identity.Principal, r ForkRequest) (string, error)
}

// StartRequest asks for an execution.
type StartRequest struct {
	// ID is the new execution's.
	ID           string
	WorkflowID   string
	WorkflowName string
	Version      string
	Revision     int64
	RevisionHash string
	TriggerType  string
	// Trigger is the node that fires, StartFrom one to begin at instead, whatever its inputs.
	Trigger   string
	StartFrom string
	// Initial is an object: the initial layer of the data. TriggerData is what the trigger brings.
	Initial     json.RawMessage
	TriggerData json.RawMessage
	Language    string
	// Priority orders those that wait for their turn: 1 first, 5 last; 0 means 3.
	Priority  int
	TimeoutMS int64
	Parent    string
	// Root is the execution that somebody started and that this one came of; empty: none.
	Root  string
	Depth int
	// Outputs are the nodes whose outputs are the execution's; none means its last nodes.
	Outputs []string
	// Requesters are others than the user who want what it does: those who started, retried, skipped or edited what it came of.
	Requesters []string
	// Above are the forks of the executions that it came of.
	Above []Fork
	// Test says that it is a test, and of what; nil: it is none.
	Test *Test
	// ErrorOf is the execution whose failure it was started for, itself or what started it; empty: none.
	ErrorOf string
	// ExternalRequest is the id of the request that starts it, as its sender knows it.
	ExternalRequest string
	// Key makes starting twice with it start once; KeyHash tells a repetition from another request.
	Key, KeyHash string
	// Arrival is what has come to a trigger and is recorded together with the first row: there is never one without the other. Nil: nothing has. If it was
	// recorded before, nothing is started, and the error of the store says what it started then.
	Arrival Arrival
	// Ready is the revision, for a host that has made it so itself; nil: the host looks it up by its hash.
	Ready Revision
	// Follow, unless it is nil, is called when the first row is on disk and before anybody is told of it, so that who subscribes
	// there is told of every row. It is not called for an execution that is handed over with [Started].Ended.
	Follow func()
}

// Arrival is a delivery of a trigger, as the store of the host keeps it.
type Arrival interface {
	// DeliveryID is the id of the delivery.
	DeliveryID() string
}

// Started answers it.
type Started struct {
	Execution string
	Status    engine.Status
	// Repeated says that the key had started this execution before.
	Repeated bool
	// Ended is the execution as its rows tell it, if it has ended with its start and all of it is at hand; nil otherwise. It is the
	// caller's.
	Ended *Seen
}

// Action is something that may be done to an execution.
type Action string

// The actions. A signal wakes a node that waits for one; an answer ends a question, and comes by the inbox together with the
// end of its interaction; the end of a child comes from the host itself.
const (
	ActionPause  Action = "pause"
	ActionResume Action = "resume"
	ActionCancel Action = "cancel"
	ActionRetry  Action = "retry_node"
	ActionSkip   Action = "skip_node"
	ActionSignal Action = "signal"
	ActionAnswer Action = "answer"
	ActionChild  Action = "child_finished"
	// ActionChildWaits tells a parent that its child waits for people, or does so no longer.
	ActionChildWaits Action = "child_waiting"
	// ActionLook lets an execution look into its inbox, and answers when what it has found there is on disk.
	ActionLook Action = "look"
)

// Request is something from outside for an execution. It is also what an inbox item holds.
type Request struct {
	Execution string `json:"-"`
	Action    Action `json:"-"`
	// Dedup is the sender's id of it: a second request of the execution with the same one does nothing. Empty: none.
	Dedup string `json:"-"`
	// Single says that a second request with the same Dedup is refused with [fault.Conflict], so that its sender knows.
	Single bool   `json:"-"`
	By     string `json:"by,omitempty"`
	// TokenMadeBy is who made the token that By used, if it was somebody else. The host sets it.
	TokenMadeBy string `json:"token_made_by,omitempty"`
	// Origin is how an answer came, as it was recorded.
	Origin json.RawMessage `json:"origin,omitempty"`
	Reason string          `json:"reason,omitempty"`
	// Node is the node it is about. Activation, when it is set, is one activation of it; otherwise there must be only one
	// that it can be about.
	Node       string              `json:"node,omitempty"`
	Activation engine.ActivationID `json:"activation,omitempty"`
	Signal     string              `json:"signal,omitempty"`
	Ask        engine.AskID        `json:"ask,omitempty"`
	Outcome    engine.AskOutcome   `json:"outcome,omitempty"`
	Choice     string              `json:"choice,omitempty"`
	// Value is the payload of a signal, the output of a skipped node, or an answer.
	Value json.RawMessage `json:"value,omitempty"`

	Child  string        `json:"child,omitempty"`
	Status engine.Status `json:"status,omitempty"`
	Error  *fault.Error  `json:"error,omitempty"`
}

// ForkRequest asks for a fork.
type ForkRequest struct {
	Source string
	// ID is the new execution's.
	ID string
	// Node or Activation is where it begins: the finished work before it stays, the activation itself is done anew.
	Node       string
	Activation engine.ActivationID
	// Input is an object, if it is set: values that are edited, by name. Whatever reads those names in the fork reads them; what
	// it does not name stays as it was.
	Input json.RawMessage
	// By is who makes it, with a token that TokenMadeBy made if that is somebody else, and Reason why. A host knows both itself.
	By          string
	TokenMadeBy string
	Reason      string
}

// Source is where executions can be read: the rows of their journals, their last snapshots, their large values.
type Source interface {
	// Rows reads the rows after a sequence number, in order.
	Rows(ctx context.Context, p identity.Principal, execution string, after uint64) iter.Seq2[Row, error]
	Snapshot(ctx context.Context, p identity.Principal, execution string) (body []byte, ok bool, err error)
	Blob(ctx context.Context, p identity.Principal, b Blob) (json.RawMessage, error)
}
