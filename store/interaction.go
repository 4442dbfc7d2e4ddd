package store

import (
	"context"
	"encoding/json"
	"slices"

	"tandem/fault"
	"tandem/identity"
)

// InteractionStatus is the status of a question to people.
type InteractionStatus string

// The statuses. Everything but pending is final.
const (
	InteractionPending   InteractionStatus = "pending"
	InteractionCompleted InteractionStatus = "completed"
	InteractionTimeout   InteractionStatus = "timeout"
	InteractionCancelled InteractionStatus = "cancelled"
	InteractionError     InteractionStatus = "error"
)

// Interaction is a question to people. Its row alone decides how it ends: a change that ends it names the version that
// was read. Times are in Unix milliseconds; zero: none.
type Interaction struct {
	Workspace string
	ID        string
	// WorkflowID and WorkflowName are those of the execution that asks; Root is the execution at the top of the tree that
	// the asking one belongs to. WorkflowName is set by the store when it is read.
	WorkflowID   string
	WorkflowName string
	Execution    string
	Root         string
	Node         string
	Activation   string
	// Ask is the engine's id of the question.
	Ask string
	// User is who started the execution, or made the fork that it is. Requesters are the other users who requested what it
	// does: those who started, retried, skipped or edited something that led to it.
	User       string
	Requesters []string
	Type       string
	Channel    string
	Purpose    string
	Status     InteractionStatus
	// Priority orders the inbox: 5 first.
	Priority int
	// Request is what is asked, Response the result.
	Request  json.RawMessage
	Response json.RawMessage
	// Approvers are who may answer, as user:ID, mail:ADDRESS, role:ROLE or CHANNEL:ADDRESS; anyone is everybody. Listings use
	// them to find the questions for a person.
	Approvers        []string
	MinApprovals     int
	ExcludeRequester bool
	ArgumentsHash    string
	Attempt          int
	// Credential is the account that receives replies; empty: there is none to listen to.
	Credential  string
	TimeoutAt   int64
	WarningSent bool
	// Progress is what package human stores with it: delegations, reminders, escalation.
	Progress json.RawMessage
	// NextAt is when it is due: something is to be sent, or its time is up. It may be set for a question that has
	// ended, when notices of the end are to be sent.
	NextAt  int64
	Created int64
	Updated int64
	// Version counts the changes. It is set by the store.
	Version int64
}

// Excludes says whether a user may not answer because they are one of its requesters.
func (i *Interaction) Excludes(user string) bool {
	return i.ExcludeRequester && user != "" && (user == i.User || slices.Contains(i.Requesters, user))
}

// Pause returns the pause that a question opens, under its own id.
func (i *Interaction) Pause() (Pause, error) {
	reason := PauseHuman
	switch i.Purpose {
	case PauseBudget, PauseDrift, PauseOutcomeUnknown: // purposes that are reasons of their own
		reason = i.Purpose
	}
	conditions, err := json.Marshal(struct {
		Interaction string `json:"interaction_id"`
		TimeoutAt   int64  `json:"timeout_at,omitempty"`
	}{i.ID, i.TimeoutAt})
	if err != nil {
		return Pause{}, err
	}
	about, err := json.Marshal(struct {
		Type       string `json:"interaction_type,omitempty"`
		Purpose    string `json:"purpose,omitempty"`
		Activation string `json:"activation_id,omitempty"`
	}{i.Type, i.Purpose, i.Activation})
	if err != nil {
		return Pause{}, err
	}
	return Pause{ID: i.ID, Execution: i.Execution, Node: i.Node, Reason: reason, Conditions: conditions, Context: about,
		Status: PauseActive, Paused: i.Created}, nil
}

// Response is one reply to a question, whether it counts or not.
type Response struct {
	ID          string
	Interaction string
	// User is who replied, if it is a user; otherwise Address is the sender, as mail:ADDRESS or CHANNEL:ADDRESS.
	User    string
	Address string
	Channel string
	// Dedup is the medium's own id of the message: the same one is not recorded twice for a workspace and channel. Empty: none.
	Dedup string
	// Raw is what was said, Data the answer it was understood as.
	Raw        string
	Data       json.RawMessage
	ReceivedAt int64
	// Relevance is relevant, uncertain or filtered; empty for an answer by form, which was not judged.
	Relevance      string
	Score          float64
	Factors        json.RawMessage
	Classification string
	Reasoning      string
	// Accepted says that it counts.
	Accepted bool
	// Origin is how it came and on what ground it counts.
	Origin Origin
	// OverruledBy is who corrected how it was understood, Overruling the reason.
	OverruledBy string
	Overruling  Overruled
}

// The grounds on which an answer counts if its author was not simply asked.
const (
	// GroundOverride is an admin's decision in the place of those who were asked, with a reason.
	GroundOverride = "override"
	// GroundNobodyLeft is an admin's answer to a question that no one else can answer any more.
	GroundNobodyLeft = "nobody_left"
	// GroundReading is a reply in prose that another approver says is this answer.
	GroundReading = "reading"
)

// Origin says how a reply came: how its author proved their identity, and on what ground it counts.
type Origin struct {
	Means identity.Means `json:"means,omitzero"`
	// Ground is one of the grounds; empty: its author was asked.
	Ground string `json:"ground,omitempty"`
	Reason string `json:"reason,omitempty"`
	// ReadBy is who says that a reply in prose is this answer, ReadMeans by which means they said so.
	ReadBy    string         `json:"read_by,omitempty"`
	ReadMeans identity.Means `json:"read_means,omitzero"`
	// Refused is why a reply was refused; empty in records of older versions, whose Reasoning says it in English.
	Refused *fault.Error `json:"refused,omitempty"`
}

// Overruled is how a reply was overruled.
type Overruled struct {
	Reason string         `json:"reason,omitempty"`
	Means  identity.Means `json:"means,omitzero"`
	At     int64          `json:"at,omitempty"`
}

// Link is what a link in a message stands for. The secret itself is not stored.
type Link struct {
	Hash        identity.SecretHash
	Workspace   string
	Interaction string
	Attempt     int
	// Recipient is whom it was made for, written like an approver; anyone for a public form.
	Recipient string
	// Reusable links are not used up: those of public forms, until the question has ended.
	Reusable bool
	// Means is how an answer by it will be recorded: where it was sent, or to whom it was shown.
	Means   identity.Means
	Expires int64
	Used    int64
	Created int64
}

// DeliveryStatus is the status of a message.
type DeliveryStatus string

// The statuses of a message.
const (
	DeliveryPending DeliveryStatus = "pending"
	DeliverySent    DeliveryStatus = "sent"
	DeliveryFailed  DeliveryStatus = "failed"
)

// Delivery is a message that is to be sent, or was sent.
type Delivery struct {
	Workspace   string
	ID          string
	Interaction string
	// Kind is what it says: request, reminder, warning, escalation, ask_back, timeout, completed, cancelled.
	Kind    string
	Channel string
	// Recipient is an address of the channel; empty: where the channel's settings say.
	Recipient string
	// Body is what the message is about besides the question.
	Body     json.RawMessage
	Status   DeliveryStatus
	Attempts int
	// NextAt is when it is tried (again), while it is pending.
	NextAt int64
	// Receipt is what the channel needs to know about the sent message, for instance to change it.
	Receipt json.RawMessage
	// Error is one line about why it was not sent.
	Error   string
	Created int64
	Updated int64
}

// Account is a credential whose account receives replies to open questions.
type Account struct {
	Workspace, Channel, Credential string
}

// InteractionChange changes an interaction, all of it or nothing.
type InteractionChange struct {
	// Interaction is the whole record as it is to be. Its Version is the one that was read: if there is a newer one nothing is
	// written and the error is [ErrConflict]. One that has ended keeps its Status. Only Status, Priority, Response, Approvers,
	// MinApprovals, TimeoutAt, WarningSent, Progress, NextAt and Updated change; all other fields stay.
	Interaction Interaction
	// Responses are added. One whose Dedup is known makes the whole change an [ErrConflict].
	Responses []Response
	// Overrule marks a response as overruled by a user; it counts no longer.
	Overrule *Overruling
	Links    []Link
	// UseLink is used up at the time Updated; one that was used before makes the whole change an [ErrConflict]. A reusable one
	// stays as it is.
	UseLink *identity.SecretHash
	// Deliveries are to be sent. One that is there already, by id, stays as it is.
	Deliveries []Delivery
	// Accounts are further accounts that receive replies, for as long as the question is pending. Accounts of other workspaces are ignored.
	Accounts []Account
	// Resume ends the pause of the question; it need not name it.
	Resume *PauseEnd
	// Deliver is for the inbox of the execution that asks; it need not name it.
	Deliver *InboxItem
}

// Check refuses a change that cannot be right, before a driver does anything with it.
func (c *InteractionChange) Check() error {
	i := &c.Interaction
	switch i.Status {
	case InteractionPending, InteractionCompleted, InteractionTimeout, InteractionCancelled, InteractionError:
	default:
		return fault.Newf(fault.Invalid, "interaction %q: there is no status %q", i.ID, i.Status)
	}
	ids, dedups := map[string]bool{}, map[[2]string]bool{}
	for n := range c.Responses {
		r := &c.Responses[n]
		dedup := [2]string{r.Channel, r.Dedup}
		if r.ID == "" || ids[r.ID] || r.Dedup != "" && dedups[dedup] {
			return fault.Newf(fault.Invalid, "interaction %q: a response needs an id, and comes once", i.ID)
		}
		ids[r.ID], dedups[dedup] = true, true
	}
	for n := range c.Deliveries {
		if c.Deliveries[n].ID == "" {
			return fault.Newf(fault.Invalid, "interaction %q: a message needs an id", i.ID)
		}
	}
	return nil
}

// Overruling marks a response as overruled.
type Overruling struct {
	Response string
	By       string
	Overruled
}

// InteractionQuery narrows a listing. Empty fields do not narrow it.
type InteractionQuery struct {
	Statuses []InteractionStatus
	// Approvers keeps those that one of these may answer.
	Approvers []string
	// NotOf leaves out those that exclude their requester, if it is this user.
	NotOf string
	// NotAnsweredBy leaves out those that this user has answered already while others still have to.
	NotAnsweredBy string
	// Execution keeps the questions of an execution; with Family also those of the executions below it. If the execution was
	// itself started by another one, detached executions below it are left out.
	Execution string
	Family    bool
	Purpose   string
	Page      Page
}

// InteractionPage is a part of a listing: pending ones first, then by priority (5 first), then age (the oldest pending first; of
// those that have ended the newest first). Total is the size of the whole.
type InteractionPage struct {
	Interactions []Interaction
	Total        int
}

// PauseStatus is the status of a pause.
type PauseStatus string

// The statuses of a pause.
const (
	PauseActive   PauseStatus = "active"
	PauseResumed  PauseStatus = "resumed"
	PauseCanceled PauseStatus = "canceled"
)

// The reasons of pauses.
const (
	PauseHuman          = "human"
	PauseOperator       = "operator"
	PauseBudget         = "budget"
	PauseDrift          = "drift"
	PauseOutcomeUnknown = "outcome_unknown"
)

// The reasons for which pauses end.
const (
	ResumedByAnswer   = "human_response"
	ResumedByTimeout  = "timeout"
	ResumedByOperator = "operator"
	ResumedByEnd      = "canceled"
)

// Pause is a time in which an execution, or a part of it, waits for a person or was stopped by an operator.
type Pause struct {
	ID         string
	Execution  string
	Node       string
	Reason     string
	Conditions json.RawMessage
	Context    json.RawMessage
	Status     PauseStatus
	Paused     int64
	Resumed    int64
	// ResumeReason is one of the reasons above; empty while it lasts.
	ResumeReason string
	ResumeData   json.RawMessage
}

// PauseEnd ends a pause. A pause that is not active stays as it is.
type PauseEnd struct {
	ID     string
	Status PauseStatus
	Reason string
	Data   json.RawMessage
	Time   int64
}

// Interactions keeps questions to people, what was replied, what is to be sent, and the pauses they make. Appends to the
// journal open and withdraw them.
type Interactions interface {
	Get(ctx context.Context, p identity.Principal, id string) (Interaction, error)
	List(ctx context.Context, p identity.Principal, q InteractionQuery) (InteractionPage, error)
	// Tell stores a notice: a question that no execution waits for, whose answer says that it was seen. It makes no pause. A
	// notice with the same id stays as it is.
	Tell(ctx context.Context, p identity.Principal, i Interaction) error
	// Change replaces an interaction, see [InteractionChange].
	Change(ctx context.Context, p identity.Principal, c InteractionChange) error
	// Due returns interactions that are due by a time, the longest due first. Tandem itself asks for all workspaces.
	// Next is when the first of the others is due; zero: none is.
	Due(ctx context.Context, p identity.Principal, now int64, limit int) (due []Interaction, next int64, err error)
	// Responses lists the replies to a question, in the order they came.
	Responses(ctx context.Context, p identity.Principal, interaction string) ([]Response, error)
	// Link finds a link by the hash of its secret, used and expired ones too. Only Tandem itself may ask, without a
	// workspace, which the answer names.
	Link(ctx context.Context, p identity.Principal, hash identity.SecretHash) (Link, error)
	// DueDeliveries is [Interactions.Due] for messages.
	DueDeliveries(ctx context.Context, p identity.Principal, now int64, limit int) (due []Delivery, next int64, err error)
	// Deliveries lists the messages of a question, in the order they were made.
	Deliveries(ctx context.Context, p identity.Principal, interaction string) ([]Delivery, error)
	// Delivered stores the result of a message (Status, Attempts, NextAt, Receipt, Error, Updated), the links in it before it
	// is sent, and the threads by which replies to it are recognised.
	Delivered(ctx context.Context, p identity.Principal, d Delivery, links []Link, threads []string) error
	// Thread finds the question that a thread of a channel belongs to.
	Thread(ctx context.Context, p identity.Principal, channel, thread string) (string, error)
	// Accounts lists the accounts that receive replies to pending questions; for Tandem itself those of all workspaces.
	Accounts(ctx context.Context, p identity.Principal) ([]Account, error)
	// Unasked lists executions that wait for a person although they have no pending question: those of an older version that did
	// not store questions. Tandem itself asks for all workspaces.
	Unasked(ctx context.Context, p identity.Principal) ([]Ref, error)
	// Pauses lists the pauses of an execution, in the order they began.
	Pauses(ctx context.Context, p identity.Principal, execution string) ([]Pause, error)
}
