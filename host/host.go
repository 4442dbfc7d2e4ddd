package host

import (
	"context"
	"encoding/json"
	"iter"

	"tandem/engine"
	"tandem/fault"
	"tandem/identity"
)

// Host drives executions. When a call returns, its result is on disk.
type Host interface {
	// Start records an execution and begins it, or lets it wait for its turn when the limit of running executions is reached. It returns
	// the execution's id: that of an earlier one when the idempotency key is that of an earlier one with the same hash.
	Start(ctx context.Context, p identity.Principal, r StartRequest) (Started, error)
	// Act does something to an execution and returns its status then. What cannot be done is refused with
	// [fault.Conflict], an execution or node that does not exist with [fault.NotFound]; a refusal changes nothing.
	Act(ctx context.Context, p identity.Principal, r Request) (engine.Status, error)
	// Fork starts an execution that shares another one's past up to an activation, and returns its id.
	Fork(ctx context.Context, p identity.Principal, r ForkRequest) (string, error)
}

// StartRequest asks for an execution.
type StartRequest struct {
	// ID is the id of the new execution.
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
	// Root is the execution at the top of the tree that this one belongs to; empty: this one.
	Root  string
	Depth int
	// Outputs are the nodes whose outputs are the execution's; none means its last nodes.
	Outputs []string
	// Requesters are the other users who requested what it does: those who started, retried, skipped or edited what led to it.
	Requesters []string
	// Above are the forks of the executions above it.
	Above []Fork
	// Test says that it is a test, and of what; nil: it is not a test.
	Test *Test
	// ErrorOf is the execution whose failure it, or an execution above it, was started for; empty: none.
	ErrorOf string
	// ExternalRequest is the id of the request that starts it, as its sender knows it.
	ExternalRequest string
	// Key makes two starts with it start one execution; KeyHash distinguishes a repetition from another request.
	Key, KeyHash string
	// Arrival is the delivery of a trigger that is recorded together with the first row: there is never one without the other. Nil: there
	// is none. If it was recorded before, nothing is started, and the error of the store says what it started then.
	Arrival Arrival
	// Ready is the revision, if the host has prepared it before; nil: the host looks it up by its hash.
	Ready Revision
	// Follow, unless it is nil, is called when the first row is on disk and before it is published, so that a subscriber that
	// begins there gets every row. It is not called for an execution that is returned with [Started].Ended.
	Follow func()
}

// Arrival is a delivery of a trigger, as the store of the host keeps it.
type Arrival interface {
	// DeliveryID is the id of the delivery.
	DeliveryID() string
}

// Started is the result of a start.
type Started struct {
	Execution string
	Status    engine.Status
	// Repeated says that the key had started this execution before.
	Repeated bool
	// Ended is the execution as its rows describe it, if it has ended with its start and all of it is in memory; nil otherwise. The
	// caller may keep it.
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
	// ActionLook lets an execution read its inbox, and returns when what it has found there is on disk.
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
	// ID is the id of the new execution.
	ID string
	// Node or Activation is where it begins: the finished work before it stays, the activation itself runs again.
	Node       string
	Activation engine.ActivationID
	// Input is an object, if it is set: values that are edited, by name. Whatever reads those names in the fork reads them; what
	// it does not name stays as it was.
	Input json.RawMessage
	// By is who makes it, with a token that TokenMadeBy made if that is somebody else; the host sets both. Reason is why.
	By          string
	TokenMadeBy string
	Reason      string
}

// Source reads executions: the rows of their journals, their last snapshots, their large values.
type Source interface {
	// Rows reads the rows after a sequence number, in order.
	Rows(ctx context.Context, p identity.Principal, execution string, after uint64) iter.Seq2[Row, error]
	Snapshot(ctx context.Context, p identity.Principal, execution string) (body []byte, ok bool, err error)
	Blob(ctx context.Context, p identity.Principal, b Blob) (json.RawMessage, error)
}
