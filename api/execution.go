package api

import (
	"encoding/json"
	"slices"

	"tandem/identity"
	"tandem/payload"
)

// Execution is one execution, with the latest activation of each of its nodes.
type Execution struct {
	ExecutionID     string                   `json:"execution_id"`
	WorkflowID      string                   `json:"workflow_id"`
	WorkflowName    string                   `json:"workflow_name"`
	WorkflowVersion string                   `json:"workflow_version"`
	Revision        int64                    `json:"revision"`
	Status          string                   `json:"status" enum:"NEW,PENDING,RUNNING,PAUSED,WAITING,WAITING_FOR_HUMAN,SUCCESS,ERROR,CANCELED,TIMEOUT"`
	StartTime       int64                    `json:"start_time,omitempty"`
	EndTime         int64                    `json:"end_time,omitempty"`
	DurationMS      int64                    `json:"duration_ms,omitempty" doc:"run time without waiting for people"`
	TriggerInfo     TriggerInfo              `json:"trigger_info"`
	NodeExecutions  map[string]NodeExecution `json:"node_executions"`
	// ExecutionSequence are ids of nodes of the workflow in the order they were started, repetitions included.
	ExecutionSequence []string                   `json:"execution_sequence" doc:"ids of nodes of the workflow in the order in which they began, repetitions included: all of them, unless execution_sequence_omitted says otherwise"`
	SequenceOmitted   int64                      `json:"execution_sequence_omitted,omitempty" doc:"how many of the first are left out of execution_sequence; /activations lists all"`
	CurrentNodeID     string                     `json:"current_node_id,omitempty"`
	CurrentNodeIDs    []string                   `json:"current_node_ids"`
	NextNodes         []string                   `json:"next_nodes"`
	Outputs           map[string]json.RawMessage `json:"outputs,omitempty" doc:"of the last nodes, once the execution has ended; a large one is {\"$blob\": hash, \"size\": bytes}"`
	Error             *ExecutionError            `json:"error,omitempty"`
	Errors            []ExecutionError           `json:"errors"`
	CreditsConsumed   float64                    `json:"credits_consumed"`
	TokensUsed        *TokenUsage                `json:"tokens_used,omitempty"`
	Metadata          json.RawMessage            `json:"metadata,omitempty" doc:"what it was started with, by name: initial_metadata of /context; {\"$omitted\": true, \"size\": bytes} when it is large"`
	Metrics           ExecutionMetrics           `json:"metrics" doc:"the execution in figures, as of now"`
	CreatedAt         int64                      `json:"created_at"`
	UpdatedAt         int64                      `json:"updated_at"`
	ParentExecutionID string                     `json:"parent_execution_id,omitempty"`
	ForkedFrom        string                     `json:"forked_from,omitempty"`
	Fork              *Fork                      `json:"fork,omitempty" doc:"how it came of another execution, and what was edited"`
	Priority          int                        `json:"priority"`
	Seq               uint64                     `json:"seq"`
	FullAnswer        string                     `json:"full_answer,omitempty" doc:"the text for the user: what nodes with to_user have said, in the order in which they began; what stands in an output of more than 10 MiB is left out"`
	Conversation      json.RawMessage            `json:"conversation,omitempty" doc:"what was said with models, as the last turn has left it: a list of messages"`
	Questions         []UserInputRequest         `json:"questions" doc:"what it waits for a person to answer"`
	Task              *Task                      `json:"task,omitempty" doc:"of an execution of an agent"`
	Test              *TestRun                   `json:"test,omitempty" doc:"of a test: what of the definition runs, and what was pinned"`
	Acts              []Act                      `json:"acts,omitempty" doc:"what people did to it: answers and what operators did, the last hundred, in order"`
}

// TestRun says which part of a definition a test runs.
type TestRun struct {
	Name   string   `json:"name,omitempty" doc:"that of the test in the definition"`
	Node   string   `json:"node,omitempty" doc:"the only node that runs"`
	From   string   `json:"from,omitempty" doc:"the node that it begins at"`
	Pinned []string `json:"pinned" doc:"nodes that do not run and have outputs that were given"`
	By     string   `json:"by,omitempty" doc:"who gave them"`
}

// ExecutionMetrics is an execution in figures. They are counted when it is read.
type ExecutionMetrics struct {
	DurationMS  int64          `json:"duration_ms" doc:"run time without waiting for people"`
	WaitedMS    int64          `json:"waited_ms" doc:"how long it has waited for people"`
	Nodes       map[string]int `json:"nodes" doc:"how many nodes of the workflow have each status, by their last activation"`
	Activations int64          `json:"activations" doc:"how often nodes of the workflow have begun"`
	Retries     int64          `json:"retries" doc:"how often something was tried again, also inside nodes"`
	TotalTokens int64          `json:"total_tokens"`
	Cost        float64        `json:"cost"`
}

// Act is something that a person did to an execution.
type Act struct {
	Action string `json:"action" enum:"answer,pause,resume,cancel,retry_node,skip_node,signal,fork"`
	By     string `json:"by"`
	// Means, Ground, ReadBy and InteractionID are set for an answer to a question.
	Means         identity.Means `json:"means,omitzero" doc:"by which means who answered proved who they are"`
	Ground        string         `json:"ground,omitempty" enum:"override,nobody_left,reading" doc:"why an answer counts when who gave it was not simply asked"`
	ReadBy        string         `json:"read_by,omitempty" doc:"who says that a reply in prose is this answer"`
	TokenMadeBy   string         `json:"token_made_by,omitempty" doc:"who made the token that it was done with, if it was somebody else than by"`
	Reason        string         `json:"reason,omitempty"`
	NodeID        string         `json:"node_id,omitempty"`
	ActivationID  string         `json:"activation_id,omitempty"`
	InteractionID string         `json:"interaction_id,omitempty"`
	Inherited     bool           `json:"inherited,omitempty" doc:"it was done to the execution that this one was forked from"`
	At            int64          `json:"at"`
}

// Fork says how an execution was forked from another one.
type Fork struct {
	ExecutionID  string     `json:"execution_id" doc:"the execution that it came of"`
	ActivationID string     `json:"activation_id" doc:"where it begins"`
	NodeID       string     `json:"node_id,omitempty"`
	By           string     `json:"by,omitempty" doc:"who made it; its effects are in their name"`
	TokenMadeBy  string     `json:"token_made_by,omitempty" doc:"who made the token that it was made with, if it was somebody else than by"`
	Reason       string     `json:"reason,omitempty"`
	Time         int64      `json:"time"`
	Edits        []ForkEdit `json:"edits" doc:"the values that were edited; whatever reads these names in the fork reads the edited values"`
	// Kept are the values that the question at the beginning of a fork with edits shows, and that were not edited.
	Kept    []string `json:"kept,omitempty" doc:"in the question where the fork begins: the values shown that were not edited. They are as they were before, and are not computed again from the edited ones"`
	Earlier []Fork   `json:"earlier,omitempty" doc:"the forks that the other execution came of, the last one first; their edits hold as well"`
}

// Asking returns the fork as a question shows it. A question where the fork begins also names the values that it shows unedited.
func (f *Fork) Asking(activation string, shown json.RawMessage) *Fork {
	if f == nil || len(f.Edits) == 0 || f.ActivationID != activation {
		return f
	}
	told := *f
	payload.EachField(shown, func(key, _ []byte) bool {
		name := payload.Unquote(key)
		if !slices.ContainsFunc(f.Edits, func(e ForkEdit) bool { return e.Name == name }) {
			told.Kept = append(told.Kept, name)
		}
		return true
	})
	return &told
}

// AskedAgain is what somebody did after a question was answered, so that it is asked again.
type AskedAgain struct {
	Action string `json:"action" enum:"start,fork,retry,output" doc:"the execution began behind the question, was forked behind it, a node behind it was tried again, or a node was given its output"`
	NodeID string `json:"node_id"`
	By     string `json:"by,omitempty"`
	// TokenMadeBy is who made the token that By used.
	TokenMadeBy string          `json:"token_made_by,omitempty" doc:"who made the token that it was done with, if it was somebody else than by"`
	Output      json.RawMessage `json:"output,omitempty" doc:"what was given as the node's output; a large one is {\"$blob\": hash, \"size\": bytes}"`
	// OutputPart is the beginning of a large output.
	OutputPart string `json:"output_part,omitempty" doc:"the beginning of a large output"`
}

// ForkEdit is a value that was edited, beside what it was.
type ForkEdit struct {
	Name     string          `json:"name"`
	Original json.RawMessage `json:"original,omitempty" doc:"absent when there was none; a large one is {\"$blob\": hash, \"size\": bytes}"`
	Edited   json.RawMessage `json:"edited,omitempty" doc:"a large one is {\"$blob\": hash, \"size\": bytes}"`
	// The beginnings of large values. The whole is read under the hash.
	OriginalPart string `json:"original_part,omitempty" doc:"the beginning of a large original; the whole is read as a value of the execution"`
	EditedPart   string `json:"edited_part,omitempty" doc:"the beginning of a large edited value; the whole is read as a value of the execution"`
}

// TriggerInfo is what started an execution.
type TriggerInfo struct {
	TriggerType       string          `json:"trigger_type"`
	TriggerData       json.RawMessage `json:"trigger_data,omitempty"`
	UserID            string          `json:"user_id,omitempty"`
	TokenMadeBy       string          `json:"token_made_by,omitempty" doc:"who made the token that it was started with, if it was somebody else than user_id"`
	ExternalRequestID string          `json:"external_request_id,omitempty"`
	Timestamp         int64           `json:"timestamp"`
}

// TokenUsage counts the tokens that went to language models and came from them.
type TokenUsage struct {
	InputTokens  int64   `json:"input_tokens"`
	OutputTokens int64   `json:"output_tokens"`
	TotalTokens  int64   `json:"total_tokens"`
	CachedTokens int64   `json:"cached_tokens,omitempty"`
	Cost         float64 `json:"cost,omitempty"`
}

// NodeExecution is an activation: one visit of an execution to a node.
type NodeExecution struct {
	NodeID      string `json:"node_id"`
	NodeName    string `json:"node_name"`
	NodeType    string `json:"node_type"`
	NodeSubtype string `json:"node_subtype"`
	Status      string `json:"status" enum:"pending,running,waiting_input,completed,failed,skipped,retrying,canceled"`
	StartTime   int64  `json:"start_time,omitempty"`
	EndTime     int64  `json:"end_time,omitempty"`
	DurationMS  int64  `json:"duration_ms,omitempty"`
	// InputData is set when one activation is requested.
	InputData        json.RawMessage            `json:"input_data,omitempty"`
	Sent             json.RawMessage            `json:"sent,omitempty" doc:"when one activation is asked for whose effect is once: what it sends (method, address, body or arguments), without secrets and bounded. execution_details has it when nobody knows whether it was done"`
	OutputData       map[string]json.RawMessage `json:"output_data,omitempty" doc:"payload by output key; a large one is {\"$blob\": hash, \"size\": bytes}"`
	ExecutionDetails json.RawMessage            `json:"execution_details,omitempty"`
	WaitURL          string                     `json:"wait_url,omitempty" doc:"while the node waits for a call (wait_type webhook): the address that ends the wait, good for one call; told to those who may send signals, with a token that has the scope execute. execution_details.webhook says what the call must be like"`
	Error            *NodeError                 `json:"error,omitempty"`
	Warnings         []NodeWarning              `json:"warnings,omitempty" doc:"what a person should know of the node although it is not an error"`
	RetryCount       int                        `json:"retry_count"`
	MaxRetries       int                        `json:"max_retries"`
	CreditsConsumed  float64                    `json:"credits_consumed"`
	ActivationID     string                     `json:"activation_id"`
	Iteration        *int64                     `json:"iteration,omitempty"`
	Generation       int                        `json:"generation,omitempty" doc:"how often an operator has retried it"`
	Attempt          int                        `json:"attempt"`
	Effect           string                     `json:"effect,omitempty" enum:"pure,idempotent,once"`
	Pinned           bool                       `json:"pinned,omitempty" doc:"in a test: the node has not run, and its output is what was given for it"`
	// ActivationCount is how many activations of the node there were, and Activations the last of them, when there were several.
	ActivationCount int64            `json:"activation_count,omitempty" doc:"how many activations of the node there were, when there were several"`
	Activations     []ActivationNote `json:"activations,omitempty" doc:"the last 20 of several, oldest first; /activations lists all, with their outputs"`
	InnerStep       string           `json:"inner_step,omitempty" doc:"the step inside the node that this is, such as complete_1 or call_1_2; absent for the node itself"`
	Steps           []NodeExecution  `json:"steps,omitempty" doc:"what was done inside the node, in order: completions, calls of tools, approvals, memories, the filling of its input"`
	NextAt          int64            `json:"next_at,omitempty" doc:"when a retry is due"`
	Lineage         json.RawMessage  `json:"lineage,omitempty" doc:"where the values of the input came from; when one activation is asked for"`
	// AttachedExecutions are the activations of the nodes that are attached to this one, by node.
	AttachedExecutions map[string][]NodeExecution `json:"attached_executions,omitempty" doc:"what attached nodes have done for this one, by node"`
	TokensUsed         *TokenUsage                `json:"tokens_used,omitempty"`
}

// ActivationNote is a short description of an activation that is not the last one of its node.
type ActivationNote struct {
	ActivationID string     `json:"activation_id"`
	Iteration    *int64     `json:"iteration,omitempty"`
	Status       string     `json:"status" enum:"pending,running,waiting_input,completed,failed,skipped,retrying,canceled"`
	StartTime    int64      `json:"start_time,omitempty"`
	EndTime      int64      `json:"end_time,omitempty"`
	DurationMS   int64      `json:"duration_ms,omitempty"`
	Generation   int        `json:"generation,omitempty"`
	Attempt      int        `json:"attempt"`
	RetryCount   int        `json:"retry_count"`
	Error        *NodeError `json:"error,omitempty"`
}

// NodeError is why a node failed.
type NodeError struct {
	ErrorCode    string          `json:"error_code"`
	ErrorMessage string          `json:"error_message"`
	ErrorDetails json.RawMessage `json:"error_details,omitempty"`
	IsRetryable  bool            `json:"is_retryable"`
	Timestamp    int64           `json:"timestamp"`
}

// NodeWarning is something a person should know of a node although it is not an error.
type NodeWarning struct {
	Path        string `json:"path" doc:"the part of the node that it is about, such as configurations.condition_expression"`
	Placeholder string `json:"placeholder,omitempty" doc:"as it is written, if it is about one"`
	Message     string `json:"message"`
}

// ExecutionError is why an execution failed.
type ExecutionError struct {
	ErrorCode    string `json:"error_code"`
	ErrorMessage string `json:"error_message"`
	ErrorNodeID  string `json:"error_node_id,omitempty" doc:"the node of the workflow"`
	InnerStep    string `json:"inner_step,omitempty" doc:"the step inside that node which failed, if it was one"`
	StackTrace   string `json:"stack_trace,omitempty" doc:"for operators"`
	Timestamp    int64  `json:"timestamp"`
	IsRetryable  bool   `json:"is_retryable"`
}

// ExecutionSummary is what listings show.
type ExecutionSummary struct {
	ExecutionID       string  `json:"execution_id"`
	WorkflowID        string  `json:"workflow_id"`
	WorkflowName      string  `json:"workflow_name"`
	Status            string  `json:"status" enum:"NEW,PENDING,RUNNING,PAUSED,WAITING,WAITING_FOR_HUMAN,SUCCESS,ERROR,CANCELED,TIMEOUT"`
	StartTime         int64   `json:"start_time,omitempty"`
	EndTime           int64   `json:"end_time,omitempty"`
	DurationMS        int64   `json:"duration_ms,omitempty"`
	TriggerType       string  `json:"trigger_type"`
	CreditsConsumed   float64 `json:"credits_consumed"`
	ErrorSummary      string  `json:"error_summary,omitempty"`
	Revision          int64   `json:"revision"`
	ParentExecutionID string  `json:"parent_execution_id,omitempty"`
	UserID            string  `json:"user_id,omitempty" doc:"who started it"`
	TokenMadeBy       string  `json:"token_made_by,omitempty" doc:"who made the token that it was started with, if it was somebody else than user_id"`
	ConversationID    string  `json:"conversation_id,omitempty" doc:"what it has in common with others, of tasks and chats"`
	TaskName          string  `json:"task_name,omitempty" doc:"in a listing of the tasks of an agent: what the task is called, once it has a name"`
	CreatedAt         int64   `json:"created_at"`
}

// Executions is a part of a listing, newest first.
type Executions struct {
	Executions []ExecutionSummary `json:"executions"`
	TotalCount int                `json:"total_count"`
	Page       int                `json:"page"`
	PageSize   int                `json:"page_size"`
}

// GetExecution is the answer to a request for one execution.
type GetExecution struct {
	Execution          Execution       `json:"execution"`
	WorkflowDefinition json.RawMessage `json:"workflow_definition,omitempty" doc:"the pinned revision, with include=workflow"`
	Checkpoint         *Checkpoint     `json:"checkpoint,omitempty"`
}

// Checkpoint is where an execution stands, in the words of executors and steps.
type Checkpoint struct {
	ID                  uint64 `json:"id" doc:"the sequence number of the last row"`
	TaskID              string `json:"task_id"`
	AppID               string `json:"app_id"`
	ExecutorID          string `json:"executor_id"`
	ExecutorName        string `json:"executor_name"`
	ExecutorDescription string `json:"executor_description"`
	ExecutorStatus      string `json:"executor_status" enum:"INIT,RUNNING,WAITING,SUCCESS,ERROR,CANCELLED"`
	StepID              string `json:"step_id,omitempty"`
	StepName            string `json:"step_name,omitempty"`
	StepType            string `json:"step_type,omitempty"`
	StepStatus          string `json:"step_status,omitempty" enum:"INIT,RUNNING,WAITING,PARAM,SUCCESS,ERROR,CANCELLED,SKIPPED"`
	// Data has the open question of the step and its input, as far as a person needs them to answer.
	Data         map[string]json.RawMessage `json:"data"`
	ErrorMessage *CheckpointError           `json:"error_message,omitempty"`
}

// CheckpointError is an error in the same words.
type CheckpointError struct {
	ErrMsg string         `json:"err_msg"`
	Data   map[string]any `json:"data"`
}

// Activations is a part of the activations of an execution, in the order they began.
type Activations struct {
	Activations []NodeExecution `json:"activations"`
	// Next is to be given as "after" for the following part; empty when there is none.
	Next string `json:"next,omitempty"`
}

// ActionRequest asks for something to be done with an execution.
type ActionRequest struct {
	Action       string          `json:"action" enum:"pause,resume,cancel,retry_node,fork,skip_node"`
	NodeID       string          `json:"node_id,omitempty"`
	ActivationID string          `json:"activation_id,omitempty" doc:"instead of node_id, where a node ran several times"`
	Input        json.RawMessage `json:"input,omitempty" doc:"fork: edited values by name; whatever reads these names in the fork reads them, other names stay as they were"`
	Output       json.RawMessage `json:"output,omitempty" doc:"skip_node: the node counts as completed with it"`
	Reason       string          `json:"reason,omitempty" maxLength:"1000"`
}

// ActionResponse says that it was done.
type ActionResponse struct {
	Success         bool   `json:"success"`
	Message         string `json:"message"`
	ExecutionStatus string `json:"execution_status,omitempty"`
	ExecutionID     string `json:"execution_id,omitempty" doc:"fork: the new execution"`
}

// InputRequest answers a question, or is a signal to a node that waits for one.
type InputRequest struct {
	ExecutionID   string          `json:"execution_id,omitempty"`
	NodeID        string          `json:"node_id" required:"false" doc:"may be left out for a task, whose steps (step_1) are nodes here"`
	ActivationID  string          `json:"activation_id,omitempty"`
	InteractionID string          `json:"interaction_id,omitempty"`
	InputData     json.RawMessage `json:"input_data,omitempty"`
}

// UserInputRequest is an open question.
type UserInputRequest struct {
	InteractionID   string          `json:"interaction_id"`
	ExecutionID     string          `json:"execution_id,omitempty" doc:"the execution below that asks, when it is not this one"`
	NodeID          string          `json:"node_id,omitempty"`
	ActivationID    string          `json:"activation_id,omitempty"`
	Purpose         string          `json:"purpose" enum:"human_node,confirm,param,tool_approval,outcome_unknown,budget,drift,activation"`
	InteractionType string          `json:"interaction_type" enum:"approval,input,selection,review"`
	Title           string          `json:"title,omitempty"`
	Description     string          `json:"description,omitempty"`
	Schema          json.RawMessage `json:"schema,omitempty"`
	Options         json.RawMessage `json:"options,omitempty"`
	AllowMultiple   bool            `json:"allow_multiple,omitempty"`
	InputFields     json.RawMessage `json:"input_fields,omitempty"`
	Review          json.RawMessage `json:"review,omitempty"`
	Content         json.RawMessage `json:"content,omitempty"`
	Fork            *Fork           `json:"fork,omitempty" doc:"that the execution is a fork, of what, by whom, and what was edited"`
	Risk            string          `json:"risk,omitempty"`
	Reason          string          `json:"reason,omitempty" doc:"why the risk was found to be what it is"`
	Warning         string          `json:"warning,omitempty" doc:"what is said with a question of high risk"`
	Params          json.RawMessage `json:"params,omitempty" doc:"the parameters that are requested, null where they are not known"`
	Arguments       json.RawMessage `json:"arguments,omitempty"`
	TimeoutAt       int64           `json:"timeout_at,omitempty"`
}

// Context is the data of an execution: its three layers.
type Context struct {
	PlanID          string                     `json:"plan_id,omitempty"`
	InitialMetadata map[string]json.RawMessage `json:"initial_metadata"`
	RuntimeMetadata map[string]json.RawMessage `json:"runtime_metadata"`
	StepResults     map[string]StepResult      `json:"step_results"`
	Merged          map[string]json.RawMessage `json:"merged" doc:"runtime over initial"`
	Variables       map[string]json.RawMessage `json:"variables,omitempty" doc:"those of the open iterations, with a scope"`
}

// StepResult is the output of a node as later nodes read it.
type StepResult struct {
	StepID       string          `json:"step_id"`
	StepName     string          `json:"step_name"`
	ToolID       string          `json:"tool_id"`
	Output       json.RawMessage `json:"output"`
	IsSuccess    bool            `json:"is_success"`
	ErrorMessage string          `json:"error_message,omitempty"`
}

// LogEntry is a line that a node wrote.
type LogEntry struct {
	ID           int64           `json:"id"`
	Timestamp    int64           `json:"timestamp"`
	Level        string          `json:"level" enum:"DEBUG,INFO,WARN,ERROR"`
	Message      string          `json:"message"`
	NodeID       string          `json:"node_id,omitempty" doc:"the node of the workflow"`
	InnerStep    string          `json:"inner_step,omitempty" doc:"the step inside that node which the line is about, if it is one"`
	ActivationID string          `json:"activation_id,omitempty"`
	Context      json.RawMessage `json:"context,omitempty"`
}

// Logs is lines in the order they were stored.
type Logs struct {
	Lines []LogEntry `json:"lines"`
	// Next is to be given as "after" for the lines that follow; zero when there are none yet.
	Next    int64 `json:"next,omitempty"`
	Dropped int64 `json:"dropped,omitempty" doc:"lines that were counted and not kept"`
}
