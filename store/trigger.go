package store

import (
	"context"
	"encoding/json"

	"tandem/fault"
	"tandem/identity"
)

// TriggerState is the state of the registration of a trigger.
type TriggerState string

// The states of a registration. A pending or failed one belongs to a deployment that is not in force.
const (
	TriggerPending TriggerState = "pending"
	TriggerActive  TriggerState = "active"
	TriggerFailed  TriggerState = "failed"
)

// Trigger is the registration of one trigger node of a deployed workflow. Times are in Unix milliseconds; zero: none.
type Trigger struct {
	Workspace  string
	WorkflowID string
	Node       string
	// Kind is that of the node, such as TRIGGER.WEBHOOK.
	Kind string
	// Revision is the one whose executions it starts.
	Revision int64
	// InForce says that it starts executions. Otherwise it belongs to a deployment that is being made, or has failed.
	InForce bool
	State   TriggerState
	// Reason is why it failed.
	Reason string
	// Config is the configuration of the node as it was deployed, with what templates add. It names credentials and has no secrets.
	Config json.RawMessage
	// Cursor is how far its source has come, in the source's own form: the last scheduled time, the last message.
	Cursor []byte
	// NextDue is when the clock has to handle it next.
	NextDue int64
	Created int64
	Updated int64
}

// Deployment is a revision of a workflow with its triggers.
type Deployment struct {
	Workspace  string
	WorkflowID string
	Revision   int64
	// Hash is that of the revision.
	Hash     string
	Triggers []Trigger
	Time     int64
	// By is the user who deploys it; empty: Tandem itself. Only DeployedBy returns it.
	By string
}

// TriggerQuery narrows a listing. Empty fields do not narrow it.
type TriggerQuery struct {
	WorkflowID string
	Kind       string
	State      TriggerState
	Page       Page
}

// TriggerPage is a part of a listing, by workflow and node, and the size of the whole.
type TriggerPage struct {
	Triggers []Trigger
	Total    int
}

// Decision is what was decided about a delivery.
type Decision string

// The decisions. An accepted delivery is on disk and its execution is yet to be started; the others are final.
const (
	DeliveryAccepted Decision = "accepted"
	DeliveryStarted  Decision = "started"
	DeliveryIgnored  Decision = "ignored"
	DeliveryRefused  Decision = "refused"
	DeliveryGivenUp  Decision = "failed"
)

// TriggerDelivery is one event that has come to a trigger: a request, a scheduled time, a message.
type TriggerDelivery struct {
	Workspace  string
	ID         string
	WorkflowID string
	Node       string
	Kind       string
	Revision   int64
	// Key is the sender's id of it. A trigger accepts one delivery with a key; the next is a repetition. Empty: the sender gives none.
	Key      string
	Received int64
	Decision Decision
	// Reason is why it was ignored, refused or given up, or why it could not be started yet.
	Reason    string
	Execution string
	// Attempts is how many tries to start it have failed; NextAt is when it is tried again.
	Attempts int
	NextAt   int64
	// ReplayOf is the delivery that it repeats on request.
	ReplayOf string
	// Payload is what the trigger brings: a JSON object without secrets. A large one is kept as a blob, and only its hash and size are
	// here.
	Payload     json.RawMessage
	PayloadBlob string
	PayloadSize int64
	// Conversation is the conversation that it belongs to; empty: none.
	Conversation string
	// Answer is what a node of the execution has answered the sender, AnsweredBy the activation that did.
	Answer     json.RawMessage
	AnsweredBy string
}

// DeliveryQuery narrows a listing of deliveries. Empty fields do not narrow it.
type DeliveryQuery struct {
	WorkflowID string
	Node       string
	Kind       string
	Decisions  []Decision
	Execution  string
	Key        string
	// Conversation keeps the messages of one.
	Conversation string
	// Since and Until bound when they were received: from Since on, before Until.
	Since, Until int64
	Page         Page
}

// DeliveryPage is a part of a listing, newest first, and the size of the whole. Payloads and answers are left out.
type DeliveryPage struct {
	Deliveries []TriggerDelivery
	Total      int
}

// Arrival is a delivery that is recorded together with the first row of the execution that it starts, so that there is never one without
// the other.
type Arrival struct {
	Delivery TriggerDelivery
	// Stored says that the delivery is on disk as accepted; it becomes started.
	Stored bool
	// Cursor, unless it is nil, is how far the trigger's source has come with this delivery. It is kept with it, and only while the trigger
	// is in force with the revision of the delivery; otherwise nothing is written, and the error is a *[SupersededError].
	Cursor []byte
}

// DeliveryID is the id of the delivery.
func (a *Arrival) DeliveryID() string { return a.Delivery.ID }

// DeliveryKnownError says that a trigger has taken the delivery before. Delivery is what is known of it, without its payload.
type DeliveryKnownError struct{ Delivery TriggerDelivery }

// Error names the delivery.
func (e *DeliveryKnownError) Error() string { return e.conflict().Message }

// Unwrap makes it a conflict.
func (e *DeliveryKnownError) Unwrap() error { return e.conflict() }

func (e *DeliveryKnownError) conflict() *fault.Error {
	return fault.Newf(fault.Conflict, "delivery %q of node %q was taken before", e.Delivery.ID, e.Delivery.Node)
}

// SupersededError says that a delivery with a cursor comes from a trigger that is no longer in force: the workflow was undeployed, or
// another revision of it was deployed. The source of the trigger in force begins at the cursor that is stored, so the event is not lost.
type SupersededError struct {
	Node     string
	Revision int64
}

// Error names the trigger.
func (e *SupersededError) Error() string { return e.conflict().Message }

// Unwrap makes it a conflict.
func (e *SupersededError) Unwrap() error { return e.conflict() }

func (e *SupersededError) conflict() *fault.Error {
	return fault.Newf(fault.Conflict, "the trigger %q of revision %d is no longer in force", e.Node, e.Revision)
}

// AnsweredError says that the sender of a delivery has been answered before, by another activation.
type AnsweredError struct{ By string }

// Error names the activation.
func (e *AnsweredError) Error() string { return e.conflict().Message }

// Unwrap makes it a conflict.
func (e *AnsweredError) Unwrap() error { return e.conflict() }

func (e *AnsweredError) conflict() *fault.Error {
	return fault.Newf(fault.Conflict, "the caller was answered by %q already; a request has one answer", e.By)
}

// Triggers keeps which revision of a workflow is deployed, the triggers that it has registered, and what has come to them.
type Triggers interface {
	// Prepare begins a deployment: the workflow is pending, and its triggers can be seen. What was deployed before stays in force.
	// [ErrConflict] while another deployment of the workflow is pending.
	Prepare(ctx context.Context, p identity.Principal, d Deployment) error
	// Registered says how far the registration of one trigger of a pending deployment is.
	Registered(ctx context.Context, p identity.Principal, workflow, node string, state TriggerState, reason string) error
	// PutInForce completes a pending deployment: its triggers take the place of those that were in force, in one step. A trigger of the
	// same node and kind keeps its cursor unless the new one brings its own. [ErrConflict] if this revision is not pending.
	PutInForce(ctx context.Context, p identity.Principal, d Deployment) error
	// Fail ends a deployment that has failed: the workflow and the triggers of the deployment get the reason, and what was deployed before
	// stays in force.
	Fail(ctx context.Context, p identity.Principal, workflow, reason string) error
	// Undeploy removes all triggers of a workflow. What was accepted stays to be started.
	Undeploy(ctx context.Context, p identity.Principal, workflow string) error
	// Preparing lists deployments that are pending, without their triggers. Tandem itself may ask for all workspaces.
	Preparing(ctx context.Context, p identity.Principal) ([]Deployment, error)

	List(ctx context.Context, p identity.Principal, q TriggerQuery) (TriggerPage, error)
	// DeployedBy lists the users who have deployed a revision of a workflow, whether it is still deployed or not, by id.
	DeployedBy(ctx context.Context, p identity.Principal, workflow string, revision int64) ([]string, error)
	// InForce lists the triggers of a workflow that start executions, by node.
	InForce(ctx context.Context, p identity.Principal, workflow string) ([]Trigger, error)
	// OfKind lists the triggers in force of a kind. Tandem itself may ask for all workspaces.
	OfKind(ctx context.Context, p identity.Principal, kind string) ([]Trigger, error)
	// Due lists triggers in force whose time has come, the earliest first, and says when the next one is due after those; zero: none is.
	// Tandem itself may ask for all workspaces.
	Due(ctx context.Context, p identity.Principal, now int64, limit int) (due []Trigger, next int64, err error)
	// Move sets the cursor and the next time of a trigger in force. It does nothing if another revision is in force by now.
	Move(ctx context.Context, p identity.Principal, t Trigger) error

	// Record keeps a delivery that starts nothing now: an accepted one, to be started later, or one that was ignored or refused. Cursor is
	// that of an [Arrival], with the same *[SupersededError]. A *[DeliveryKnownError] if the trigger has accepted one with its key; the
	// cursor is stored then as well.
	Record(ctx context.Context, p identity.Principal, d TriggerDelivery, cursor []byte) error
	// Settle changes the decision, reason, attempts and next time of an accepted delivery. [ErrConflict] if it is not accepted any more.
	Settle(ctx context.Context, p identity.Principal, d TriggerDelivery) error
	Delivery(ctx context.Context, p identity.Principal, id string) (TriggerDelivery, error)
	// DeliveryOf is the delivery that started an execution.
	DeliveryOf(ctx context.Context, p identity.Principal, execution string) (TriggerDelivery, error)
	Deliveries(ctx context.Context, p identity.Principal, q DeliveryQuery) (DeliveryPage, error)
	// DueDeliveries lists accepted deliveries that are to be started, the earliest first, and when the next one is after those. Tandem
	// itself may ask for all workspaces.
	DueDeliveries(ctx context.Context, p identity.Principal, now int64, limit int) (due []TriggerDelivery, next int64, err error)
	// Answer keeps what a node answers the sender of the delivery that started an execution. By is the activation: a repetition by it
	// changes nothing, and another activation is refused with an *[AnsweredError]. [ErrNotFound]: no delivery has started the execution.
	Answer(ctx context.Context, p identity.Principal, execution, by string, answer json.RawMessage) error
}
