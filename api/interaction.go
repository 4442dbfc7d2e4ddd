package api

import (
	"encoding/json"

	"tandem/identity"
)

// Interaction is a question to people. Times are in Unix milliseconds.
type Interaction struct {
	ID              string          `json:"id"`
	WorkflowID      string          `json:"workflow_id"`
	WorkflowName    string          `json:"workflow_name"`
	ExecutionID     string          `json:"execution_id"`
	NodeID          string          `json:"node_id"`
	ActivationID    string          `json:"activation_id"`
	UserID          string          `json:"user_id" doc:"who started the execution"`
	TokenMadeBy     string          `json:"token_made_by,omitempty" doc:"who made the token that it was started with, if it was somebody else than user_id; only of a single question"`
	InteractionType string          `json:"interaction_type" enum:"approval,input,selection,review"`
	ChannelType     string          `json:"channel_type" doc:"where it was sent besides the inbox: in_app, webhook, email, slack, discord, telegram or teams"`
	Purpose         string          `json:"purpose" enum:"human_node,confirm,param,tool_approval,outcome_unknown,budget,drift,activation"`
	Status          string          `json:"status" enum:"pending,completed,timeout,cancelled,error"`
	Priority        int             `json:"priority" doc:"1 to 5; 5 comes first"`
	Title           string          `json:"title,omitempty" doc:"of a listing: what is asked, in the language that was asked for"`
	RequestData     json.RawMessage `json:"request_data" doc:"what is asked"`
	ResponseData    json.RawMessage `json:"response_data,omitempty" doc:"what came of it"`
	Approvers       []string        `json:"approvers" doc:"who may answer: user:ID, mail:ADDRESS, role:ROLE, CHANNEL:ADDRESS, or anyone"`
	MinApprovals    int             `json:"min_approvals"`
	ArgumentsHash   string          `json:"arguments_hash,omitempty" doc:"of what is approved; sent back with the answer it makes sure that nothing else is"`
	Attempt         int             `json:"attempt"`
	TimeoutAt       int64           `json:"timeout_at,omitempty"`
	WarningSent     bool            `json:"warning_sent"`
	CreatedAt       int64           `json:"created_at"`
	UpdatedAt       int64           `json:"updated_at"`
}

// Interactions is a part of a listing: pending ones first, by priority, then age; then those that have ended, the newest first.
type Interactions struct {
	Interactions []Interaction `json:"interactions"`
	TotalCount   int           `json:"total_count"`
	Page         int           `json:"page"`
	PageSize     int           `json:"page_size"`
}

// InteractionDetail is a question with everything that was replied and sent.
type InteractionDetail struct {
	Interaction
	MayRespond  bool                    `json:"may_respond" doc:"whether the caller may answer it now"`
	WhyNot      string                  `json:"why_not,omitempty" doc:"why the caller may not"`
	Override    *InteractionOverride    `json:"override,omitempty" doc:"an admin's decision in the place of those who were asked"`
	Delegations []InteractionDelegation `json:"delegations,omitempty" doc:"answers that were handed on, in order"`
	Form        *InteractionForm        `json:"form,omitempty" doc:"what there is to fill in to answer it, in the language that was asked for"`
	Responses   []InteractionResponse   `json:"responses" doc:"in the order they came, also those that do not count"`
	Deliveries  []InteractionDelivery   `json:"deliveries" doc:"messages about it, in the order they were made"`
}

// InteractionResponse is one reply.
type InteractionResponse struct {
	ID             string          `json:"id"`
	InteractionID  string          `json:"interaction_id"`
	UserID         string          `json:"user_id,omitempty" doc:"who replied, if it is a user"`
	Address        string          `json:"address,omitempty" doc:"where it came from otherwise"`
	ChannelType    string          `json:"channel_type"`
	Raw            string          `json:"raw,omitempty" doc:"what was said"`
	ResponseData   json.RawMessage `json:"response_data,omitempty" doc:"what it was understood as"`
	ReceivedAt     int64           `json:"received_at"`
	Relevance      string          `json:"relevance,omitempty" enum:"relevant,uncertain,filtered" doc:"none for an answer by form, which is not judged"`
	Score          float64         `json:"score,omitempty"`
	Factors        json.RawMessage `json:"factors,omitempty"`
	Classification string          `json:"classification,omitempty"`
	Reasoning      string          `json:"reasoning,omitempty"`
	Accepted       bool            `json:"accepted" doc:"whether it counts"`
	OverruledBy    string          `json:"overruled_by,omitempty"`
	OverruleReason string          `json:"overrule_reason,omitempty"`
	OverruleMeans  identity.Means  `json:"overrule_means,omitzero" doc:"by which means it was overruled"`
	Means          identity.Means  `json:"means,omitzero" doc:"by which means who replied proved who they are; not there: it was recorded before means were"`
	Ground         string          `json:"ground,omitempty" enum:"override,nobody_left,reading" doc:"why it counts when who gave it was not simply asked: an admin's decision in the place of others, an admin's answer where nobody else is left to answer, or what another approver says a reply in prose means"`
	Reason         string          `json:"reason,omitempty" doc:"of an override or a reading"`
	ReadBy         string          `json:"read_by,omitempty" doc:"who says that a reply in prose is this answer"`
	ReadMeans      identity.Means  `json:"read_means,omitzero" doc:"by which means they said so"`
}

// InteractionOverride is an admin's decision in the place of those who were asked.
type InteractionOverride struct {
	By     string         `json:"by"`
	Reason string         `json:"reason"`
	Means  identity.Means `json:"means,omitzero"`
	At     int64          `json:"at"`
}

// InteractionDelegation is an answer that was handed on.
type InteractionDelegation struct {
	From  string         `json:"from" doc:"whose answer it was"`
	To    string         `json:"to" doc:"who answers in their place"`
	By    string         `json:"by,omitempty" doc:"the admin who handed it on, if it was not from"`
	Note  string         `json:"note,omitempty" doc:"what was said with it; of an admin the reason"`
	Means identity.Means `json:"means,omitzero" doc:"by which means it was handed on"`
	At    int64          `json:"at"`
}

// InteractionDelivery is one message about a question.
type InteractionDelivery struct {
	ID          string `json:"id"`
	Kind        string `json:"kind" enum:"request,reminder,warning,escalation,ask_back,timeout,completed,cancelled"`
	ChannelType string `json:"channel_type"`
	Recipient   string `json:"recipient,omitempty"`
	Status      string `json:"status" enum:"pending,sent,failed"`
	Attempts    int    `json:"attempts"`
	NextAt      int64  `json:"next_at,omitempty" doc:"when it is tried again"`
	Error       string `json:"error,omitempty"`
	CreatedAt   int64  `json:"created_at"`
	UpdatedAt   int64  `json:"updated_at"`
}

// RespondRequest answers a question.
type RespondRequest struct {
	ResponseData  json.RawMessage `json:"response_data" doc:"for questions of a node {action | field_values | selected_values | scores, evidence; notes?}; for the others as POST /executions/{id}/input takes it"`
	ArgumentsHash string          `json:"arguments_hash,omitempty" maxLength:"128" doc:"the arguments_hash of what was looked at; another one is refused"`
}

// DelegateRequest hands a vote to somebody else.
type DelegateRequest struct {
	To   string `json:"to" minLength:"1" maxLength:"320" doc:"a user, or an address like those of approvers"`
	Note string `json:"note,omitempty" maxLength:"4000"`
	From string `json:"from,omitempty" maxLength:"320" doc:"whose answer it is, if it is not the caller's: for admins, and with a note that says why"`
}

// CancelInteractionRequest withdraws a question.
type CancelInteractionRequest struct {
	Reason string `json:"reason,omitempty" maxLength:"4000"`
}

// LinkRequest asks for a link to the response page.
type LinkRequest struct {
	Recipient string `json:"recipient" minLength:"1" maxLength:"320" doc:"one of the approvers, or anyone where the form is open to all who have a link"`
}

// Link opens the response page, for one answer.
type Link struct {
	URL       string `json:"url,omitempty" doc:"anyone who has it answers for the recipient; it is shown once, and to nobody else"`
	ExpiresAt int64  `json:"expires_at,omitempty"`
	SentTo    string `json:"sent_to,omitempty" doc:"the recipient's address that it is sent to, when it was asked for by an admin; it is not shown then"`
}

// OverrideRequest decides a question in the place of those who are asked.
type OverrideRequest struct {
	ResponseData  json.RawMessage `json:"response_data" doc:"as an answer has it"`
	ArgumentsHash string          `json:"arguments_hash,omitempty" maxLength:"128" doc:"the arguments_hash of what was looked at; another one is refused"`
	Reason        string          `json:"reason" minLength:"1" maxLength:"4000" doc:"why, for those who were asked"`
}

// OverruleRequest corrects how a reply was understood.
type OverruleRequest struct {
	ResponseData json.RawMessage `json:"response_data,omitempty" doc:"what the reply means; left out: it does not count"`
	Reason       string          `json:"reason" minLength:"1" maxLength:"4000"`
}

// InteractionEvent is what the stream of questions tells: one that is new or has changed.
type InteractionEvent struct {
	Interaction Interaction `json:"interaction"`
	MayRespond  bool        `json:"may_respond"`
	Answered    bool        `json:"answered,omitempty" doc:"the reader has answered already, and others still have to"`
}

// InteractionSnapshot is what the stream begins with: everything that waits for the reader.
type InteractionSnapshot struct {
	Interactions []Interaction `json:"interactions"`
	TotalCount   int           `json:"total_count" doc:"more than are listed when there are very many"`
}

// Pause is a time in which an execution, or a part of it, waits for a person or was stopped by an operator.
type Pause struct {
	ID               string          `json:"id"`
	ExecutionID      string          `json:"execution_id"`
	NodeID           string          `json:"node_id,omitempty"`
	PauseReason      string          `json:"pause_reason" enum:"human,operator,budget,drift,outcome_unknown"`
	ResumeConditions json.RawMessage `json:"resume_conditions,omitempty"`
	PauseContext     json.RawMessage `json:"pause_context,omitempty"`
	Status           string          `json:"status" enum:"active,resumed,canceled"`
	PausedAt         int64           `json:"paused_at"`
	ResumedAt        int64           `json:"resumed_at,omitempty"`
	ResumeReason     string          `json:"resume_reason,omitempty" enum:"human_response,timeout,operator,canceled"`
	ResumeData       json.RawMessage `json:"resume_data,omitempty"`
}

// Pauses are those of an execution, in the order they began.
type Pauses struct {
	Pauses []Pause `json:"pauses"`
}
