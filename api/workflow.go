package api

import "encoding/json"

// Workflow is a workflow with its newest definition.
type Workflow struct {
	Metadata    WorkflowMetadata  `json:"metadata"`
	Nodes       []json.RawMessage `json:"nodes"`
	Connections []json.RawMessage `json:"connections"`
	Triggers    []string          `json:"triggers"`
}

// WorkflowMetadata is what is known about a workflow beside its nodes.
type WorkflowMetadata struct {
	ID                  string          `json:"id"`
	Name                string          `json:"name"`
	IconURL             string          `json:"icon_url,omitempty"`
	Description         string          `json:"description,omitempty"`
	DeploymentStatus    string          `json:"deployment_status" enum:"draft,pending,deployed,failed,undeployed"`
	DeploymentError     string          `json:"deployment_error,omitempty"`
	DeployedRevision    int64           `json:"deployed_revision,omitempty" doc:"the revision that is in force; older than the newest one until that is deployed"`
	LastExecutionStatus string          `json:"last_execution_status,omitempty"`
	LastExecutionTime   int64           `json:"last_execution_time,omitempty"`
	Tags                []string        `json:"tags"`
	CreatedTime         int64           `json:"created_time"`
	UpdatedTime         int64           `json:"updated_time"`
	ParentWorkflow      string          `json:"parent_workflow,omitempty"`
	Statistics          Statistics      `json:"statistics"`
	Version             string          `json:"version"`
	CreatedBy           string          `json:"created_by"`
	UpdatedBy           string          `json:"updated_by,omitempty"`
	TokenMadeBy         string          `json:"token_made_by,omitempty" doc:"who made the token that it was last saved with, if it was somebody else than updated_by"`
	Settings            json.RawMessage `json:"settings,omitempty"`
	Revision            int64           `json:"revision"`
	RevisionHash        string          `json:"revision_hash"`
	// Warnings are told by a deployment.
	Warnings []Problem `json:"warnings,omitempty" doc:"of a deployment: what the workflow names and the workspace does not have"`
}

// Statistics are kept as executions begin and end.
type Statistics struct {
	TotalRuns         int64   `json:"total_runs"`
	AverageDurationMS int64   `json:"average_duration_ms"`
	TotalCredits      float64 `json:"total_credits"`
	LastSuccessTime   int64   `json:"last_success_time,omitempty"`
}

// Saved answers a definition that was kept.
type Saved struct {
	Workflow WorkflowMetadata `json:"workflow"`
	// Created says that a new revision was made; the same content makes none.
	Created  bool      `json:"created"`
	Problems []Problem `json:"problems"`
	// WaitingOnOlder are unfinished executions that stay on older revisions.
	WaitingOnOlder int `json:"waiting_on_older"`
}

// Problem is something wrong with a definition.
type Problem struct {
	Code     string `json:"code"`
	Severity string `json:"severity" enum:"error,warning"`
	Message  string `json:"message"`
	Path     string `json:"path,omitempty"`
	Node     string `json:"node,omitempty"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
}

// Validation is what is wrong with a definition.
type Validation struct {
	Valid    bool      `json:"valid"`
	Problems []Problem `json:"problems"`
}

// Workflows is a part of a listing.
type Workflows struct {
	Workflows  []WorkflowMetadata `json:"workflows"`
	TotalCount int                `json:"total_count"`
	Page       int                `json:"page"`
	PageSize   int                `json:"page_size"`
}

// Revision is one state of a definition.
type Revision struct {
	Revision     int64  `json:"revision"`
	RevisionHash string `json:"revision_hash"`
	CreatedBy    string `json:"created_by"`
	TokenMadeBy  string `json:"token_made_by,omitempty" doc:"who made the token that it was saved with, if it was somebody else than created_by"`
	CreatedTime  int64  `json:"created_time"`
}

// Revisions is a part of a workflow's past, newest first.
type Revisions struct {
	Revisions  []Revision `json:"revisions"`
	TotalCount int        `json:"total_count"`
	Page       int        `json:"page"`
	PageSize   int        `json:"page_size"`
}

// CopyRequest asks for a copy of a workflow.
type CopyRequest struct {
	ID   string `json:"id,omitempty" doc:"id of the copy; one is made when it is empty"`
	Name string `json:"name,omitempty"`
}

// ExecuteRequest asks for an execution.
type ExecuteRequest struct {
	Inputs        json.RawMessage `json:"inputs,omitempty" doc:"object: the inputs"`
	TriggerNode   string          `json:"trigger_node,omitempty"`
	StartFromNode string          `json:"start_from_node,omitempty"`
	// WaitSeconds is how long the answer may wait for the end.
	WaitSeconds    float64 `json:"wait_seconds,omitempty" minimum:"0" maximum:"60"`
	Revision       int64   `json:"revision,omitempty" minimum:"0" doc:"0: the newest"`
	Priority       int     `json:"priority,omitempty" minimum:"0" maximum:"5" doc:"1 first, 5 last; 0 means 3"`
	Language       string  `json:"language,omitempty" enum:"zh,en"`
	TimeoutSeconds float64 `json:"timeout_seconds,omitempty" minimum:"0"`
}

// ExecuteResponse answers it. Outputs and Error are there when the execution has ended within wait_seconds.
type ExecuteResponse struct {
	ExecutionID string                     `json:"execution_id"`
	Status      string                     `json:"status"`
	Repeated    bool                       `json:"repeated,omitempty" doc:"the idempotency key had started this execution before"`
	Outputs     map[string]json.RawMessage `json:"outputs,omitempty"`
	Error       *ExecutionError            `json:"error,omitempty"`
	Warnings    []string                   `json:"warnings,omitempty" doc:"the inputs that the workflow certainly does not use"`
}
