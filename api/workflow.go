package api

import (
	"encoding/json"
	"strings"

	"tandem/payload"
)

// Workflow is a workflow with its newest definition.
type Workflow struct {
	Metadata    WorkflowMetadata  `json:"metadata"`
	Nodes       []json.RawMessage `json:"nodes"`
	Connections []json.RawMessage `json:"connections"`
	Triggers    []string          `json:"triggers"`
	Notes       []json.RawMessage `json:"notes,omitempty" doc:"what authors wrote beside the nodes; it changes nothing in a run"`
	Tests       []json.RawMessage `json:"tests,omitempty" doc:"the tests that stand in the definition; POST /workflows/test runs one by its name"`
	// Source is set when it is requested.
	Source       string `json:"source,omitempty" doc:"with include=source: the text as its author wrote it; left out if none was kept, as of a copy or of what a program wrote"`
	SourceFormat string `json:"source_format,omitempty" enum:"yaml,json"`
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
	// Warnings are set by a deployment.
	Warnings []Problem `json:"warnings,omitempty" doc:"of a deployment: what the workflow names and the workspace does not have"`
}

// Statistics are kept as executions begin and end.
type Statistics struct {
	TotalRuns         int64   `json:"total_runs"`
	AverageDurationMS int64   `json:"average_duration_ms"`
	TotalCredits      float64 `json:"total_credits"`
	LastSuccessTime   int64   `json:"last_success_time,omitempty"`
}

// Saved is the answer to a definition that was stored.
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

// Revision is one version of a definition.
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

// TestRequest asks for a test: an execution of a definition that need not be saved, of one node or from one on, with outputs that are given
// for nodes that do not run.
type TestRequest struct {
	Definition  json.RawMessage                       `json:"definition,omitempty" doc:"the definition: an object, or a text in YAML or JSON; without it that of workflow_id is tested"`
	WorkflowID  string                                `json:"workflow_id,omitempty" maxLength:"128" doc:"the workflow that the test belongs to; by default the definition says so"`
	Revision    int64                                 `json:"revision,omitempty" minimum:"0" doc:"of workflow_id, without a definition; 0: the newest"`
	Test        string                                `json:"test,omitempty" doc:"run this test of the definition, by its name: what it runs, its data and what must come of it stand there, nothing with effects runs, and the answer says whether it has passed"`
	Node        string                                `json:"node,omitempty" doc:"run this node only"`
	From        string                                `json:"from,omitempty" doc:"begin at this node"`
	TriggerNode string                                `json:"trigger_node,omitempty" doc:"where the whole begins; by default the first trigger"`
	Inputs      json.RawMessage                       `json:"inputs,omitempty" doc:"object: the inputs of the execution, which nodes read by their names; what arrives at a node is pinned"`
	Pinned      map[string]map[string]json.RawMessage `json:"pinned,omitempty" doc:"outputs by node and output key: these nodes do not run"`
	WaitSeconds float64                               `json:"wait_seconds,omitempty" minimum:"0" maximum:"60" doc:"how long to wait for its end; with test 60 by default, and what has not ended then is canceled"`
	Language    string                                `json:"language,omitempty" enum:"zh,en"`
}

// TestResponse is the answer to a TestRequest. Passed and Differences are there when a test of the definition was run.
type TestResponse struct {
	ExecuteResponse
	Passed      *bool            `json:"passed,omitempty" doc:"of a test of the definition: nothing differs from what it expects"`
	Differences []TestDifference `json:"differences,omitempty" doc:"what is not as the test expects"`
}

// EvaluateRequest asks for the value of an expression or a text with placeholders, with the data of an execution or with data that is
// given.
type EvaluateRequest struct {
	Expression  string                                `json:"expression,omitempty" maxLength:"65536" doc:"an expression, as in a condition"`
	Template    string                                `json:"template,omitempty" maxLength:"65536" doc:"a text with placeholders, as in a configuration"`
	ExecutionID string                                `json:"execution_id,omitempty" maxLength:"200" doc:"the execution whose data is read; without it there is only what is given"`
	NodeID      string                                `json:"node_id,omitempty" maxLength:"128" doc:"the node that reads: its last run in the execution says what it was given and what there was then; if it has not run, the end of the execution is read"`
	Input       json.RawMessage                       `json:"input,omitempty" doc:"the input of the node, instead of what it was given"`
	Pinned      map[string]map[string]json.RawMessage `json:"pinned,omitempty" doc:"outputs by node and output key, instead of what these nodes put out"`
}

// EvaluateResponse is the value, or why there is none. An error in the expression is an answer, too.
type EvaluateResponse struct {
	Value json.RawMessage `json:"value,omitempty" doc:"the value; of a large one the beginning of its JSON, as a text"`
	Size  int             `json:"size,omitempty" doc:"bytes of the value as JSON"`
	Cut   bool            `json:"cut,omitempty" doc:"the value is large, and only its beginning is told"`
	Error *EvaluateError  `json:"error,omitempty"`
}

// EvaluateError is why an expression or a text has no value.
type EvaluateError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Line    int    `json:"line,omitempty" doc:"of the expression, from 1"`
	Column  int    `json:"column,omitempty" doc:"in characters, from 1"`
	Unknown string `json:"unknown,omitempty" doc:"the name in the expression that nothing is known by; some kinds bring names that exist only while they run"`
}

// TestDifference is one thing that is not as a test expects it.
type TestDifference struct {
	About    string          `json:"about" enum:"status,error_code,outputs"`
	Node     string          `json:"node,omitempty" doc:"whose outputs they are"`
	Path     string          `json:"path,omitempty" doc:"where in the outputs of the node, beginning with the output key"`
	Expected json.RawMessage `json:"expected,omitempty"`
	Got      json.RawMessage `json:"got,omitempty" doc:"absent: nothing"`
	Message  string          `json:"message,omitempty" doc:"what the values do not say"`
}

// String is the difference in one line.
func (d TestDifference) String() string {
	place := d.About
	if d.Node != "" {
		place = strings.TrimSuffix(d.Node+": "+d.Path, ": ")
	}
	if len(d.Expected) == 0 && len(d.Got) == 0 {
		return place + ": " + d.Message
	}
	got := "nothing"
	if len(d.Got) > 0 {
		got = payload.JSON(d.Got)
	}
	line := place + ": expected " + payload.JSON(d.Expected) + ", got " + got
	if d.Message != "" {
		line += " (" + d.Message + ")"
	}
	return line
}

// ExecuteResponse is the answer to an ExecuteRequest. Outputs and Error are there when the execution has ended within wait_seconds.
type ExecuteResponse struct {
	ExecutionID string                     `json:"execution_id"`
	Status      string                     `json:"status"`
	Repeated    bool                       `json:"repeated,omitempty" doc:"the idempotency key had started this execution before"`
	Outputs     map[string]json.RawMessage `json:"outputs,omitempty" doc:"a large one is {\"$blob\": hash, \"size\": bytes} and is read at /executions/{id}/values/{hash}"`
	Error       *ExecutionError            `json:"error,omitempty"`
	Warnings    []string                   `json:"warnings,omitempty" doc:"the inputs that the workflow certainly does not use"`
}
