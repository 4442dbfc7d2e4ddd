// Package human puts questions to people and takes their answers: who is asked, what, until when; replies and what they
// mean; links, reminders, escalation, timeouts; the messages in between.
//
// The [Desk] is the service. A question begins with the append that asks it ([Desk.Open] makes its record) and ends by a
// compare-and-set on that record, in one transaction with the reply and with the inbox item that tells the execution. The
// rules (who may answer, what an answer must look like, how votes add up) are pure functions beside it. How a medium sends and
// understands messages is a [Channel]; vendors have theirs in packages of their own.
//
// The package has no HTTP routes and no node kinds: package server and package builtin import it, and so does app.
package human

import (
	"encoding/json"

	"tandem/api"
	"tandem/human/form"
	"tandem/human/lineage"
	"tandem/identity"
	"tandem/store"
)

// The types of questions.
const (
	Approval  = form.Approval
	Input     = form.Input
	Selection = form.Selection
	Review    = form.Review
)

// The purposes of questions: who asks them and what the answer is about.
const (
	PurposeNode           = form.PurposeNode
	PurposeConfirm        = form.PurposeConfirm
	PurposeParam          = form.PurposeParam
	PurposeToolApproval   = form.PurposeToolApproval
	PurposeOutcomeUnknown = form.PurposeOutcomeUnknown
	PurposeBudget         = form.PurposeBudget
	PurposeDrift          = form.PurposeDrift
	PurposeActivation     = form.PurposeActivation
)

// The channels that the desk itself knows; vendors bring others. The inbox has all questions, whatever their channel. Mail
// addresses identify people who are not users.
const (
	InApp = "in_app"
	Email = "email"
)

// What happens when no one has answered in time.
const (
	TimeoutFail     = "fail"
	TimeoutContinue = "continue"
	TimeoutDefault  = "default_response"
)

// The classifications of an answer.
const (
	Confirmed = form.Confirmed
	Rejected  = form.Rejected
	Unrelated = "unrelated"
	TimedOut  = "timeout"
	// Neither is the outcome of an option that decides nothing by itself.
	Neither = form.Neither
)

// Anyone stands for everybody among approvers: a public form.
const Anyone = "anyone"

// Request is what is asked: the request_data of an interaction. Questions that other parts ask (a budget, a parameter) fill in what
// they have; what they have besides stays in the record.
type Request struct {
	Type        string `json:"interaction_type,omitempty"`
	Channel     string `json:"channel_type,omitempty"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	// Texts are what Tandem itself says in the question, so that it can be shown in the language of each reader. What an author,
	// a model or a tool has written is not among them. It is empty in questions of older versions.
	Texts form.Texts `json:"texts,omitempty"`
	// Content is what the question is about, as the node was given it.
	Content json.RawMessage `json:"content,omitempty"`
	// Fork says that the execution is a fork, of what, by whom, and what was edited.
	Fork *api.Fork `json:"fork,omitempty"`
	// Again says why the question is asked again, if it is.
	Again []api.AskedAgain `json:"again,omitempty"`
	// Begun is set if the work in question was under way in another execution.
	Begun *lineage.Begun `json:"begun_in,omitempty"`
	// Options are those of an approval or a selection.
	Options       []Option `json:"options,omitempty"`
	AllowMultiple bool     `json:"allow_multiple,omitempty"`
	Fields        []Field  `json:"input_fields,omitempty"`
	// Schema is a JSON schema of the answer, instead of Fields or for questions of other purposes.
	Schema json.RawMessage `json:"schema,omitempty"`
	Review *ReviewRules    `json:"review,omitempty"`

	// Approvers are users, mail addresses, roles (role:NAME or a role's bare name) and addresses of channels (slack:U1). Empty:
	// the user who started the execution.
	Approvers        []string `json:"approvers,omitempty"`
	MinApprovals     int      `json:"min_approvals,omitempty"`
	MinRejections    int      `json:"min_rejections,omitempty"`
	ExcludeRequester bool     `json:"exclude_requester,omitempty"`
	AllowDelegation  bool     `json:"allow_delegation,omitempty"`
	// Advisory questions may be passed over: an operator who goes on after one need not have it asked again.
	Advisory        bool        `json:"advisory,omitempty"`
	Escalation      *Escalation `json:"escalation,omitempty"`
	ReminderSeconds int64       `json:"reminder_seconds,omitempty"`
	Risk            string      `json:"risk,omitempty"`
	// Arguments are what is approved, if it is something particular: an answer counts for these only.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Priority  int             `json:"priority,omitempty"`

	TimeoutSeconds  int64           `json:"timeout_seconds,omitempty"`
	TimeoutAction   string          `json:"timeout_action,omitempty"`
	TimeoutResponse json.RawMessage `json:"timeout_default_response,omitempty"`

	// UnrelatedAction is ignore or route: what becomes of a reply that has nothing to do with the question.
	UnrelatedAction string `json:"unrelated_action,omitempty"`
	// AnalysisModel is the profile that judges free text; empty: rules do.
	AnalysisModel  string `json:"ai_analysis_model,omitempty"`
	AnalysisPrompt string `json:"response_analysis_prompt,omitempty"`

	// Access is users, link or public: who may fill in a form.
	Access string `json:"access,omitempty"`
	// Language is the language of the execution, zh or en.
	Language    string `json:"language,omitempty"`
	UserMention string `json:"user_mention,omitempty"`
	// Credential is the one that messages are sent with, InCredential the one that replies are read with, if it is another.
	Credential   string `json:"credential_id,omitempty"`
	InCredential string `json:"in_credential_id,omitempty"`
	// Settings are the channel's own: recipient_emails, channel, chat_id, webhook_url…
	Settings json.RawMessage `json:"settings,omitempty"`
}

// Option, Field and ReviewRules are parts of what is asked; package form has their rules.
type (
	Option      = form.Option
	Field       = form.Field
	ReviewRules = form.Rules
)

// Escalation asks others as well after a time.
type Escalation struct {
	AfterSeconds int64    `json:"after_seconds"`
	To           []string `json:"to"`
}

// Answer is what a person answers: the response_data of an interaction. For questions of other purposes than human_node it is
// Given, as it came.
type Answer struct {
	Action string                     `json:"action,omitempty"`
	Fields map[string]json.RawMessage `json:"field_values,omitempty"`
	Chosen []string                   `json:"selected_values,omitempty"`
	// Scores are by criterion: a boolean, a number or a letter.
	Scores map[string]json.RawMessage `json:"scores,omitempty"`
	// Evidence is by criterion, where a review wants it.
	Evidence map[string]string `json:"evidence,omitempty"`
	Notes    string            `json:"notes,omitempty"`
	UserID   string            `json:"user_id,omitempty"`
	// Timestamp is RFC 3339 in UTC.
	Timestamp string `json:"timestamp,omitempty"`
	// Came is recorded with the answer; what the answer itself says about it is ignored.
	Came

	Given json.RawMessage `json:"-"`
}

// Came says how an answer came: how its author proved their identity, and on what ground it counts if they were not simply asked.
type Came struct {
	Means identity.Means `json:"means,omitzero"`
	// Ground is override, nobody_left or reading; empty: its author was asked. Reason is the reason of an override or a reading.
	Ground string `json:"ground,omitempty"`
	Reason string `json:"reason,omitempty"`
	// ReadBy is who says that a reply in prose is this answer.
	ReadBy string `json:"read_by,omitempty"`
}

func came(o store.Origin) Came {
	return Came{Means: o.Means, Ground: o.Ground, Reason: o.Reason, ReadBy: o.ReadBy}
}

// Result is what an execution learns of a question of a node: the value of the wake.
type Result struct {
	Status         string          `json:"status" doc:"How the question has ended: completed, timeout or cancelled." zh:"问题如何结束：completed、timeout 或 cancelled。"` // completed, timeout, cancelled
	ResponseType   string          `json:"response_type" doc:"What was asked for: approval, input, selection or review." zh:"询问的类型：approval、input、selection 或 review。"`
	ResponseData   json.RawMessage `json:"response_data" doc:"The answer that counts, and who gave it by which means." zh:"生效的答复，以及答复人和途径。"`
	InteractionID  string          `json:"interaction_id" doc:"The question in the inbox." zh:"收件箱中的问题编号。"`
	Responder      string          `json:"responder,omitempty" doc:"Who has answered." zh:"答复人。"`
	Approvals      []Vote          `json:"approvals" doc:"What everybody has said." zh:"所有人的答复。"`
	Classification string          `json:"ai_classification,omitempty" doc:"What the answer means: confirmed, rejected or unrelated." zh:"答复的含义：confirmed、rejected 或 unrelated。"`
	// Options are the values that were chosen, each of which is an output key.
	Options      []string `json:"options,omitempty" doc:"The options that were chosen." zh:"所选的选项。"`
	UserResponse string   `json:"user_response,omitempty" doc:"The answer in their own words." zh:"答复原文。"`
	// Average, Passed, Reviews and Disagreement are those of a review.
	Average      *float64 `json:"average,omitempty" doc:"The mean of the scores." zh:"平均分。"`
	Passed       *bool    `json:"passed,omitempty" doc:"Whether the review has passed." zh:"评审是否通过。"`
	Disagreement bool     `json:"disagreement,omitempty" doc:"Whether the reviewers disagree." zh:"评审人是否意见不一。"`
	Reviews      []Vote   `json:"reviews,omitempty" doc:"What each reviewer has said." zh:"各评审人的意见。"`
	// ArgumentsHash is what was approved, if something particular was.
	ArgumentsHash string `json:"arguments_hash,omitempty" doc:"What was approved, if it was something particular." zh:"批准的具体内容（若有）的摘要值。"`
}

// Vote is what one person said.
type Vote struct {
	// Person is a user's id or an address.
	Person string `json:"person"`
	// For is whose vote it is, when it was delegated.
	For string `json:"for,omitempty"`
	// DelegatedBy is who handed the vote on, if an admin did so in place of its owner.
	DelegatedBy string          `json:"delegated_by,omitempty"`
	Outcome     string          `json:"outcome"`
	Data        json.RawMessage `json:"data,omitempty"`
	Channel     string          `json:"channel,omitempty"`
	At          string          `json:"at"`
	Came
}
