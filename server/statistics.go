package server

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"tandem/api"
	"tandem/identity"
	"tandem/route"
	"tandem/store"
)

// statistics registers the figures about executions.
func (s *Server) statistics() {
	route.Handle(s.Router, huma.Operation{
		Method: http.MethodGet, Path: "/statistics", OperationID: "get-statistics", Summary: "Tell how executions went", Tags: []string{"executions"},
		Description: "Counts by status now; for a range what began and ended in each part of it and how long it took; what failed, grouped; the last runs of some workflows.",
	}, route.Readers(), s.getStatistics)
}

type statisticsInput struct {
	Range    string   `query:"range" enum:"hour,day,week" default:"day" doc:"the last hour in parts of 5 minutes, the last day in hours, the last week in parts of 6 hours"`
	Workflow string   `query:"workflow_id" maxLength:"128" doc:"only executions of this workflow"`
	RunsOf   []string `query:"runs_of,explode" doc:"ids of workflows whose last runs are wanted, at most 100; several, or one list with commas"`
	Runs     int      `query:"runs" minimum:"1" maximum:"50" default:"12" doc:"how many of each"`
	Failures int      `query:"failures" minimum:"0" maximum:"200" default:"20" doc:"how many groups of failures"`
}

type statisticsOutput struct{ Body api.Overview }

// maxRunsOf bounds for how many workflows the last runs are listed at once.
const maxRunsOf = 100

func (s *Server) getStatistics(ctx context.Context, p identity.Principal, in *statisticsInput) (*statisticsOutput, error) {
	ids := route.Listed(in.RunsOf)
	if len(ids) > maxRunsOf {
		return nil, api.WrongField("query.runs_of", "there are %d workflows, at most %d are told at once; ask for the others again", len(ids), maxRunsOf)
	}
	whole, part := 24*time.Hour, time.Hour
	switch in.Range {
	case "hour":
		whole, part = time.Hour, 5*time.Minute
	case "week":
		whole, part = 7*24*time.Hour, 6*time.Hour
	}
	bucket := part.Milliseconds()
	until := (s.NowMS()/bucket + 1) * bucket
	q := store.OverviewQuery{Since: until - whole.Milliseconds(), Until: until, Bucket: bucket, WorkflowID: in.Workflow,
		MaxFailures: in.Failures}
	found, err := s.o.Stores.Overviews.Overview(ctx, p, q)
	if err != nil {
		return nil, err
	}
	out := &statisticsOutput{api.Overview{
		Since: q.Since, Until: q.Until, BucketMS: bucket, Counts: make(map[string]int64, len(found.Counts)),
		Buckets: make([]api.OverviewBucket, len(found.Buckets)), Failures: make([]api.FailureGroup, len(found.Failures)),
	}}
	for status, n := range found.Counts { // order does not matter: it becomes a map
		out.Body.Counts[string(status)] = n
	}
	for i, b := range found.Buckets {
		out.Body.Buckets[i] = api.OverviewBucket{Start: b.Start, Started: b.Started, Succeeded: b.Succeeded, Failed: b.Failed,
			P50MS: b.P50, P95MS: b.P95}
	}
	for i, f := range found.Failures {
		out.Body.Failures[i] = api.FailureGroup{WorkflowID: f.WorkflowID, WorkflowName: f.WorkflowName, NodeID: f.Node, Code: f.Code,
			Message: f.Message, Count: f.Count, ExecutionID: f.Execution, Time: f.Time}
	}
	if len(ids) == 0 {
		return out, nil
	}
	runs, err := s.o.Stores.Overviews.LastRuns(ctx, p, ids, in.Runs)
	if err != nil {
		return nil, err
	}
	out.Body.Runs = make(map[string][]api.Run, len(runs))
	for id, list := range runs { // order does not matter: it becomes a map
		out.Body.Runs[id] = make([]api.Run, len(list))
		for i, e := range list {
			out.Body.Runs[id][i] = api.Run{ExecutionID: e.ID, Status: string(e.Status), DurationMS: e.DurationMS, CreatedAt: e.Created}
		}
	}
	return out, nil
}
