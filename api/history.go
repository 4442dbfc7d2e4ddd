package api

import "encoding/json"

// History is what happened in an execution, in order.
type History struct {
	ExecutionID     string          `json:"execution_id"`
	WorkflowID      string          `json:"workflow_id"`
	WorkflowName    string          `json:"workflow_name"`
	Status          string          `json:"status"`
	ExecutorStatus  string          `json:"executor_status" enum:"INIT,RUNNING,WAITING,SUCCESS,ERROR,CANCELLED"`
	TriggerInfo     TriggerInfo     `json:"trigger_info" doc:"who or what started it, and with what"`
	StartTime       int64           `json:"start_time,omitempty"`
	EndTime         int64           `json:"end_time,omitempty"`
	DurationMS      int64           `json:"duration_ms,omitempty" doc:"run time without waiting for people"`
	Error           *ExecutionError `json:"error,omitempty"`
	CreditsConsumed float64         `json:"credits_consumed"`
	TokensUsed      *TokenUsage     `json:"tokens_used,omitempty"`
	Fork            *Fork           `json:"fork,omitempty" doc:"how it came of another execution, and what was edited"`
	Forks           []HistoryFork   `json:"forks,omitempty" doc:"the executions that were forked from it, the newest first, at most 100; in the first part only"`
	History         []HistoryRecord `json:"history"`
	// Next is to be given as "after" for the following part; empty when there is none.
	Next string `json:"next,omitempty"`
}

// HistoryFork is an execution that was forked from the one whose history this is.
type HistoryFork struct {
	ExecutionID string `json:"execution_id"`
	By          string `json:"by" doc:"who made the fork"`
	TokenMadeBy string `json:"token_made_by,omitempty" doc:"who made the token that it was made with, if it was somebody else than by"`
	At          int64  `json:"at"`
	Status      string `json:"status"`
}

// HistoryRecord is one thing that happened: a step, or what somebody did.
type HistoryRecord struct {
	Type string       `json:"type" enum:"step,action"`
	Time int64        `json:"time" doc:"when it began or was done"`
	Step *HistoryStep `json:"step,omitempty"`
	// Action is what an operator did, or that the execution was forked.
	Action *Act `json:"action,omitempty"`
	// InheritedFrom is the execution that it happened in, if that is not this one.
	InheritedFrom string `json:"inherited_from,omitempty" doc:"the execution that this one was forked from, for what they share"`
}

// HistoryStep is one activation, in the words of executors and steps.
type HistoryStep struct {
	ID             string                     `json:"id" doc:"of the record: the activation, and after # its generation when an operator has retried it"`
	TaskID         string                     `json:"task_id"`
	ExecutorID     string                     `json:"executor_id"`
	ExecutorName   string                     `json:"executor_name"`
	ExecutorStatus string                     `json:"executor_status" enum:"INIT,RUNNING,WAITING,SUCCESS,ERROR,CANCELLED" doc:"of the execution, when the record last changed"`
	StepID         string                     `json:"step_id"`
	StepName       string                     `json:"step_name"`
	StepType       string                     `json:"step_type"`
	StepStatus     string                     `json:"step_status" enum:"INIT,RUNNING,WAITING,PARAM,SUCCESS,ERROR,CANCELLED,SKIPPED"`
	NodeID         string                     `json:"node_id"`
	InnerStep      string                     `json:"inner_step,omitempty"`
	Iteration      *int64                     `json:"iteration,omitempty"`
	Generation     int                        `json:"generation,omitempty"`
	InputData      json.RawMessage            `json:"input_data,omitempty"`
	Sent           json.RawMessage            `json:"sent,omitempty" doc:"what was sent by a node whose effect is once"`
	OutputData     map[string]json.RawMessage `json:"output_data,omitempty"`
	ExtraData      map[string]json.RawMessage `json:"extra_data,omitempty" doc:"of the last question: risk and reason with the arguments, or the parameters that were requested"`
	Details        json.RawMessage            `json:"execution_details,omitempty"`
	Error          *NodeError                 `json:"error,omitempty"`
	Attempts       int                        `json:"attempts"`
	Retries        []HistoryRetry             `json:"retries,omitempty"`
	Questions      []HistoryQuestion          `json:"questions,omitempty"`
	// Children are the executions that the step has started, with their histories as far as these are included.
	ChildIDs        []string    `json:"child_execution_ids,omitempty"`
	Children        []History   `json:"children,omitempty"`
	StartTime       int64       `json:"start_time,omitempty"`
	EndTime         int64       `json:"end_time,omitempty"`
	DurationMS      int64       `json:"duration_ms,omitempty"`
	UpdatedAt       int64       `json:"updated_at"`
	CreditsConsumed float64     `json:"credits_consumed"`
	TokensUsed      *TokenUsage `json:"tokens_used,omitempty"`
}

// HistoryRetry is a failed attempt that another one followed.
type HistoryRetry struct {
	Attempt int        `json:"attempt"`
	Error   *NodeError `json:"error,omitempty"`
	At      int64      `json:"at"`
	NextAt  int64      `json:"next_at"`
}

// HistoryQuestion is a question that a step has asked: whom, what they were shown, and what they answered.
type HistoryQuestion struct {
	InteractionID   string                  `json:"interaction_id"`
	Purpose         string                  `json:"purpose" enum:"human_node,confirm,param,tool_approval,outcome_unknown,budget,drift,activation"`
	InteractionType string                  `json:"interaction_type,omitempty" enum:"approval,input,selection,review"`
	Status          string                  `json:"status,omitempty" enum:"pending,completed,timeout,cancelled,error"`
	AskedAt         int64                   `json:"asked_at"`
	EndedAt         int64                   `json:"ended_at,omitempty"`
	TimeoutAt       int64                   `json:"timeout_at,omitempty"`
	Asked           []string                `json:"asked,omitempty" doc:"who may answer: user:ID, mail:ADDRESS, role:ROLE, CHANNEL:ADDRESS, or anyone"`
	MinApprovals    int                     `json:"min_approvals,omitempty"`
	Shown           json.RawMessage         `json:"shown,omitempty" doc:"exactly what they were shown"`
	ArgumentsHash   string                  `json:"arguments_hash,omitempty"`
	Risk            string                  `json:"risk,omitempty"`
	Outcome         json.RawMessage         `json:"outcome,omitempty" doc:"what came of it"`
	Answers         []InteractionResponse   `json:"answers,omitempty" doc:"in the order they came, also those that do not count (accepted), with who gave them, when and by which means"`
	Override        *InteractionOverride    `json:"override,omitempty"`
	Delegations     []InteractionDelegation `json:"delegations,omitempty"`
	Messages        []InteractionDelivery   `json:"messages,omitempty" doc:"what was sent about it, to whom and where"`
}
