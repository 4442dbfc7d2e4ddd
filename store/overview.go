package store

import (
	"context"

	"tandem/engine"
	"tandem/identity"
)

// OverviewQuery says which executions an overview is of: those of a workspace, or of one of its workflows.
type OverviewQuery struct {
	// Since and Until bound the time, in Unix milliseconds; Until is left out of it. Bucket is how long one part of it is.
	Since, Until, Bucket int64
	WorkflowID           string
	// MaxFailures bounds how many groups of failures there are.
	MaxFailures int
}

// Overview has figures about executions. Tests are left out, except from Counts.
type Overview struct {
	// Counts are all executions by status, as of now.
	Counts  map[engine.Status]int64
	Buckets []OverviewBucket
	// Failures are groups of executions that failed in that time, the one that failed last first.
	Failures []FailureGroup
}

// OverviewBucket is one part of the time.
type OverviewBucket struct {
	Start int64
	// Started is how many began in it; Succeeded and Failed how many ended so.
	Started, Succeeded, Failed int64
	// P50 and P95 are how long half, and 95 of 100, of those that succeeded took at most, without waiting for people, in milliseconds.
	P50, P95 int64
}

// FailureGroup are executions that failed for the same reason: the workflow, the node and the code of the error.
type FailureGroup struct {
	WorkflowID   string
	WorkflowName string
	Node         string
	Code         string
	Count        int64
	// Execution is the one that began last; Message and Time are of its failure.
	Execution string
	Message   string
	Time      int64
}

// Overviews has figures about the executions of a workspace. The cost depends on how many there were in the requested time.
type Overviews interface {
	Overview(ctx context.Context, p identity.Principal, q OverviewQuery) (Overview, error)
	// LastRuns are the last executions of each workflow, the newest first, tests left out.
	LastRuns(ctx context.Context, p identity.Principal, workflows []string, n int) (map[string][]Execution, error)
}
