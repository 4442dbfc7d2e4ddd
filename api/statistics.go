package api

// Overview tells how the executions of a workspace went, or of one of its workflows. Tests are left out, except in Counts.
type Overview struct {
	Since    int64 `json:"since" doc:"where the first bucket begins, in Unix milliseconds"`
	Until    int64 `json:"until" doc:"where the last one ends"`
	BucketMS int64 `json:"bucket_ms"`
	// Counts are of all time.
	Counts   map[string]int64 `json:"counts" doc:"all executions by status, as of now"`
	Buckets  []OverviewBucket `json:"buckets" doc:"the parts of the range, in order"`
	Failures []FailureGroup   `json:"failures" doc:"what failed in the range, by workflow, node and code; the newest first"`
	Runs     map[string][]Run `json:"runs,omitempty" doc:"the last executions of the workflows in runs_of, the newest first"`
}

// OverviewBucket is one part of the time.
type OverviewBucket struct {
	Start     int64 `json:"start"`
	Started   int64 `json:"started"`
	Succeeded int64 `json:"succeeded"`
	Failed    int64 `json:"failed" doc:"those that ended as ERROR or TIMEOUT"`
	P50MS     int64 `json:"p50_ms,omitempty" doc:"half of those that succeeded took no longer, without waiting for people; left out if none did"`
	P95MS     int64 `json:"p95_ms,omitempty"`
}

// FailureGroup are executions that failed alike.
type FailureGroup struct {
	WorkflowID   string `json:"workflow_id"`
	WorkflowName string `json:"workflow_name"`
	NodeID       string `json:"node_id,omitempty" doc:"left out if it was not a node, as when the time of an execution is over"`
	Code         string `json:"code,omitempty" doc:"left out for executions of versions that did not keep it"`
	Message      string `json:"message" doc:"of the newest one"`
	Count        int64  `json:"count"`
	ExecutionID  string `json:"execution_id" doc:"the newest one"`
	Time         int64  `json:"time" doc:"when that one failed"`
}

// Run is one execution in a strip of the last ones.
type Run struct {
	ExecutionID string `json:"execution_id"`
	Status      string `json:"status"`
	DurationMS  int64  `json:"duration_ms,omitempty"`
	CreatedAt   int64  `json:"created_at"`
}
