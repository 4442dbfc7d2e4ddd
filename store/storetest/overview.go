package storetest

import (
	"context"
	"fmt"
	"testing"

	"tandem/engine"
	"tandem/identity"
	"tandem/store"
)

// testOverview tells how executions went.
func testOverview(t *testing.T, s store.Stores) {
	p := tenant(t)
	run := func(id, workflow, trigger string, at, ended, took int64, status engine.Status, node string) {
		t.Helper()
		started(t, s, p, id, func(a *store.Append) {
			a.Time, a.Create.WorkflowID, a.Create.WorkflowName, a.Create.TriggerType = at, workflow, "Name of "+workflow, trigger
		})
		if ended == 0 {
			return
		}
		a := next(id, 1)
		a.Time, a.Change = ended, &store.Change{Status: status, Started: at, Ended: ended, DurationMS: took}
		if status == engine.StatusError {
			a.Change.Error, a.Change.ErrorCode, a.Change.ErrorNode = "why "+id, "timeout", node
		}
		mustAppend(t, s, p, a)
	}
	run("before", "w", "CRON", 900, 950, 50, engine.StatusSuccess, "")
	run("across", "w", "CRON", 990, 1010, 20, engine.StatusSuccess, "")
	for i := range int64(20) {
		run(fmt.Sprint("good", i), "w", "CRON", 1010+i, 1050+i, 10*(i+1), engine.StatusSuccess, "")
	}
	run("bad1", "w", "CRON", 1100, 1110, 1, engine.StatusError, "send")
	run("bad2", "w", "CRON", 1120, 1130, 1, engine.StatusError, "send")
	run("bad3", "v", "CRON", 1140, 1150, 1, engine.StatusError, "")
	run("test", "w", store.TriggerTest, 1150, 1160, 1, engine.StatusError, "send")
	run("runs", "w", "CRON", 1170, 0, 0, "", "")
	run("after", "w", "CRON", 1200, 1210, 1, engine.StatusSuccess, "")

	q := store.OverviewQuery{Since: 1000, Until: 1200, Bucket: 100, MaxFailures: 9}
	got := must[store.Overview](t)(s.Overviews.Overview(t.Context(), p, q))
	equal(t, "counts", map[engine.Status]int64{engine.StatusSuccess: 23, engine.StatusError: 4, engine.StatusRunning: 1}, got.Counts)
	equal(t, "buckets", []store.OverviewBucket{{Start: 1000, Started: 20, Succeeded: 21, P50: 100, P95: 190},
		{Start: 1100, Started: 4, Failed: 3}}, got.Buckets)
	send := store.FailureGroup{WorkflowID: "w", WorkflowName: "Name of w", Node: "send", Code: "timeout", Count: 2, Execution: "bad2",
		Message: "why bad2", Time: 1130}
	equal(t, "failures", []store.FailureGroup{{WorkflowID: "v", WorkflowName: "Name of v", Code: "timeout", Count: 1, Execution: "bad3",
		Message: "why bad3", Time: 1150}, send}, got.Failures)
	q.WorkflowID, q.MaxFailures = "w", 1
	one := must[store.Overview](t)(s.Overviews.Overview(t.Context(), p, q))
	equal(t, "of one workflow", []any{int64(3), int64(3), []store.FailureGroup{send}},
		[]any{one.Counts[engine.StatusError], one.Buckets[1].Started, one.Failures})

	runs := must[map[string][]store.Execution](t)(s.Overviews.LastRuns(t.Context(), p, []string{"w", "none"}, 3))
	equal(t, "runs", map[string][]store.Execution{"none": nil, "w": {
		{ID: "after", WorkflowID: "w", Status: engine.StatusSuccess, DurationMS: 1, Created: 1200},
		{ID: "runs", WorkflowID: "w", Status: engine.StatusRunning, Created: 1170},
		{ID: "bad2", WorkflowID: "w", Status: engine.StatusError, DurationMS: 1, Created: 1120}}}, runs)

	for name, c := range map[string]struct {
		q     store.ExecutionQuery
		total int
	}{
		"since":               {store.ExecutionQuery{Since: 1100}, 6},
		"until":               {store.ExecutionQuery{Until: 1010}, 2},
		"between":             {store.ExecutionQuery{Since: 1010, Until: 1100}, 20},
		"failed since":        {store.ExecutionQuery{Since: 1120, Statuses: []engine.Status{engine.StatusError}}, 3},
		"of a workflow":       {store.ExecutionQuery{Since: 1120, WorkflowID: "w", Statuses: []engine.Status{engine.StatusError, engine.StatusRunning}}, 3},
		"after everything":    {store.ExecutionQuery{Since: 5000}, 0},
		"workflow and status": {store.ExecutionQuery{WorkflowID: "v", Statuses: []engine.Status{engine.StatusError}}, 1},
		"of a user":           {store.ExecutionQuery{User: "ann", Since: 1200}, 1},
		"of nobody":           {store.ExecutionQuery{User: "bob"}, 0},
	} {
		page := must[store.ExecutionPage](t)(s.Executions.List(t.Context(), p, c.q))
		equal(t, name, []int{c.total, min(c.total, 20)}, []int{page.Total, len(page.Executions)})
	}
}

func overviewProbes() map[string]probe {
	return map[string]probe{
		"Workflows.Source": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Workflows.Source(ctx, p, "w", 1)
		},
		"Workflows.KeepDraft": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return nil, s.Workflows.KeepDraft(ctx, p, store.Draft{WorkflowID: "w", Execution: "from b", Hash: "b",
				Definition: []byte("from b")})
		},
		"Workflows.DropDraft": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return nil, s.Workflows.DropDraft(ctx, p, "e1")
		},
		"Overviews.Overview": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Overviews.Overview(ctx, p, store.OverviewQuery{Until: 1 << 40, Bucket: 1 << 38, MaxFailures: 9})
		},
		"Overviews.LastRuns": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Overviews.LastRuns(ctx, p, []string{"w"}, 9)
		},
	}
}
