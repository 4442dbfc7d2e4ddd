package api

import "encoding/json"

// Agent is given goals and tools, and plans its own steps.
type Agent struct {
	ID          string      `json:"id" required:"false" pattern:"^([a-z0-9][a-z0-9_-]{0,62})?$" doc:"made from the name when it is left out"`
	Name        string      `json:"name,omitempty" maxLength:"200"`
	Description string      `json:"description,omitempty" maxLength:"4000" doc:"what it is for; its planner reads it"`
	LLMProfile  string      `json:"llm_profile" doc:"the profile of the model that plans"`
	MCPServers  []string    `json:"mcp_servers,omitempty" maxItems:"64" doc:"the tool servers whose tools it may use"`
	AutoExecute bool        `json:"auto_execute,omitempty" doc:"calls of low risk run without a confirmation, for users whose own setting allows it, too"`
	Policy      AgentPolicy `json:"policy,omitzero"`
	Language    string      `json:"language,omitempty" enum:"zh,en"`
	Limits      AgentLimits `json:"limits,omitzero"`
	Revision    int64       `json:"revision,omitempty" readOnly:"true"`
	CreatedBy   string      `json:"created_by,omitempty" readOnly:"true"`
	UpdatedBy   string      `json:"updated_by,omitempty" readOnly:"true"`
	TokenMadeBy string      `json:"token_made_by,omitempty" readOnly:"true" doc:"who made the token that it was last saved with, if it was somebody else than updated_by"`
	CreatedTime int64       `json:"created_time,omitempty" readOnly:"true"`
	UpdatedTime int64       `json:"updated_time,omitempty" readOnly:"true"`
}

// AgentPolicy says which calls run without a confirmation.
type AgentPolicy struct {
	AutoApprove []string `json:"auto_approve,omitempty" doc:"levels of risk: low, medium, high"`
}

// AgentLimits bound the tasks of an agent; 0 is the default.
type AgentLimits struct {
	Steps      int `json:"steps,omitempty" minimum:"0" maximum:"1000" doc:"25"`
	PlanTries  int `json:"plan_tries,omitempty" minimum:"0" maximum:"1000" doc:"3"`
	InnerCalls int `json:"inner_calls,omitempty" minimum:"0" maximum:"1000" doc:"5"`
	Failures   int `json:"failures,omitempty" minimum:"0" maximum:"1000" doc:"3"`
	// JSONTries is how often a model is asked for an answer of the right shape.
	JSONTries     int `json:"json_tries,omitempty" minimum:"0" maximum:"1000" doc:"3: answers of a model for one decision, until one has the right shape"`
	HistoryRounds int `json:"history_rounds,omitempty" minimum:"0" maximum:"1000" doc:"3: earlier tasks of the conversation that a task is told of"`
}

// Agents is a part of a listing.
type Agents struct {
	Agents     []Agent `json:"agents"`
	TotalCount int     `json:"total_count"`
	Page       int     `json:"page"`
	PageSize   int     `json:"page_size"`
}

// TaskRequest gives an agent something to do.
type TaskRequest struct {
	Question       string            `json:"question" doc:"the goal, at most 2000 characters"`
	Metadata       json.RawMessage   `json:"metadata,omitempty" doc:"object: what is known; steps read it by name"`
	Params         json.RawMessage   `json:"params,omitempty" doc:"object: the same, under its older name; metadata wins"`
	Documents      []json.RawMessage `json:"documents,omitempty" doc:"texts, or objects, that the planner is shown"`
	ConversationID string            `json:"conversation_id,omitempty" maxLength:"200" doc:"tasks with the same one know the last three of them"`
	SessionID      string            `json:"session_id,omitempty" maxLength:"200"`
	Language       string            `json:"language,omitempty" enum:"zh,en"`
	AutoExecute    *bool             `json:"auto_execute,omitempty" doc:"false: every step is confirmed, whatever agent and user allow"`
	Priority       int               `json:"priority,omitempty" minimum:"0" maximum:"5"`
	WaitSeconds    float64           `json:"wait_seconds,omitempty" minimum:"0" maximum:"60" doc:"answer when it has ended or waits for a person, after so long at the latest"`
}

// TaskStarted is the answer to a TaskRequest.
type TaskStarted struct {
	TaskID         string `json:"task_id" doc:"the id of the execution"`
	ExecutionID    string `json:"execution_id"`
	AgentID        string `json:"agent_id"`
	ConversationID string `json:"conversation_id"`
	Status         string `json:"status"`
	Repeated       bool   `json:"repeated,omitempty" doc:"the idempotency key had started this task before"`
	// Answer and Error are there when the task has ended within wait_seconds.
	Answer string          `json:"answer,omitempty"`
	Error  *ExecutionError `json:"error,omitempty"`
}

// Task is what an execution of an agent has besides the fields of an execution.
type Task struct {
	AgentID        string            `json:"agent_id,omitempty" doc:"empty for an agent that a node describes by itself"`
	ConversationID string            `json:"conversation_id,omitempty"`
	SessionID      string            `json:"session_id,omitempty"`
	Question       string            `json:"question"`
	Language       string            `json:"language"`
	Documents      []json.RawMessage `json:"documents,omitempty"`
	FlowName       string            `json:"flow_name,omitempty"`
	FlowRisk       *TaskRisk         `json:"flow_risk,omitempty"`
	PlanID         string            `json:"plan_id,omitempty"`
	StepCount      int               `json:"step_count"`
	FailureCount   int               `json:"failure_count"`
	FullAnswer     string            `json:"full_answer,omitempty"`
	Reasoning      string            `json:"reasoning,omitempty"`
	Facts          []string          `json:"facts"`
	FilledSlots    json.RawMessage   `json:"filled_slots,omitempty" doc:"what people have filled in, by step"`
	Steps          []TaskStep        `json:"steps"`
}

// TaskRisk is how risky a task or a call was judged to be.
type TaskRisk struct {
	Risk   string `json:"risk" enum:"low,medium,high"`
	Reason string `json:"reason"`
}

// TaskStep is a step of a task, as its last call left it.
type TaskStep struct {
	StepID      string          `json:"step_id"`
	Tool        string          `json:"tool"`
	Description string          `json:"description,omitempty" doc:"why"`
	Status      string          `json:"status" enum:"INIT,WAITING,PARAM,RUNNING,SUCCESS,ERROR,CANCELLED,SKIPPED"`
	PlanID      string          `json:"plan_id,omitempty"`
	Rung        string          `json:"rung,omitempty" enum:"alternative,repair,replan" doc:"how it came to be; absent: planned"`
	Arguments   json.RawMessage `json:"arguments,omitempty"`
	Result      json.RawMessage `json:"result,omitempty"`
	Risk        *TaskRisk       `json:"risk,omitempty"`
	Error       string          `json:"error,omitempty"`
}

// Frozen is a workflow that was made from a task.
type Frozen struct {
	WorkflowID string          `json:"workflow_id"`
	Definition json.RawMessage `json:"definition"`
	Untraced   []Untraced      `json:"untraced" doc:"values that stand in the workflow as they were, since nobody knows where they came from"`
}

// Untraced is a value in a frozen workflow whose origin is not known.
type Untraced struct {
	StepID string          `json:"step_id"`
	Path   string          `json:"path"`
	Value  json.RawMessage `json:"value"`
	Reason string          `json:"reason"`
}

// FreezeRequest says how the workflow is named and whether it is kept.
type FreezeRequest struct {
	ID   string `json:"id,omitempty" doc:"of the workflow; made from the task's name when it is left out"`
	Name string `json:"name,omitempty" maxLength:"200"`
	// DryRun shows the workflow and keeps nothing.
	DryRun bool `json:"dry_run,omitempty"`
}
