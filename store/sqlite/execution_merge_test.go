package sqlite_test

import (
	"fmt"
	"slices"
	"testing"

	"tandem/engine"
	"tandem/identity"
	"tandem/store"
	"tandem/store/sqlite"
)

// keepExecutions writes executions of some statuses in turn, each created at its number.
func keepExecutions(t testing.TB, db *sqlite.DB, n int) {
	t.Helper()
	statement := fmt.Sprintf(`INSERT INTO executions (workspace_id, id, workflow_id, workflow_name, workflow_version, revision, revision_hash, status, final, priority, parent, forked_from, trigger_type, user_id, started, ended, duration_ms, credits, error, created, updated)
		WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < %d)
		SELECT 'w', 'e' || i, 'f', 'f', '1.0', 1, 'h', CASE i %% 20 WHEN 0 THEN 'CANCELED' WHEN 1 THEN 'TIMEOUT' ELSE CASE i %% 2 WHEN 0 THEN 'SUCCESS' ELSE 'ERROR' END END, 1, 0, '', '', 'API', 'ann', i, i, 0, 0, '', i, i FROM c`, n)
	if err := db.Exec(t.Context(), nil, "INSERT INTO workspaces (workspace_id, name, created) VALUES ('w', 'w', 1)", statement, "INSERT INTO execution_counts SELECT workspace_id, workflow_id, status, count(*) FROM executions GROUP BY 1, 2, 3"); err != nil {
		t.Fatal(err)
	}
}

// TestExecutions_SeveralStatuses pages through executions of several statuses, from both ends, in the order in which they were started.
func TestExecutions_SeveralStatuses(t *testing.T) {
	t.Parallel()
	db := open(t)
	keepExecutions(t, db, 203)
	list := func(q store.ExecutionQuery) (ids []string, total int) {
		page, err := db.Stores().Executions.List(t.Context(), identity.System("w"), q)
		if err != nil {
			t.Fatal(err)
		}
		for i := range page.Executions {
			ids = append(ids, page.Executions[i].ID)
		}
		return ids, page.Total
	}
	for name, c := range map[string]struct {
		q     store.ExecutionQuery
		wants func(i int) bool
	}{
		"Two":        {store.ExecutionQuery{Statuses: []engine.Status{engine.StatusSuccess, engine.StatusError}}, func(i int) bool { return i%20 > 1 }},
		"OneTwice":   {store.ExecutionQuery{Statuses: []engine.Status{engine.StatusTimeout, engine.StatusTimeout}}, func(i int) bool { return i%20 == 1 }},
		"Rare":       {store.ExecutionQuery{Statuses: []engine.Status{engine.StatusTimeout, engine.StatusCanceled, engine.StatusRunning}}, func(i int) bool { return i%20 < 2 }},
		"SinceUntil": {store.ExecutionQuery{Statuses: []engine.Status{engine.StatusSuccess, engine.StatusCanceled}, Since: 20, Until: 101}, func(i int) bool { return i >= 20 && i < 101 && i%2 == 0 }},
		"Nothing":    {store.ExecutionQuery{Statuses: []engine.Status{engine.StatusNew, engine.StatusPaused}}, func(int) bool { return false }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var want, got []string
			for i := 203; i > 0; i-- {
				if c.wants(i) {
					want = append(want, fmt.Sprintf("e%d", i))
				}
			}
			c.q.Page.Size = 7
			for c.q.Page.Number = 1; ; c.q.Page.Number++ {
				ids, total := list(c.q)
				if total != len(want) {
					t.Fatalf("%d in all, want %d", total, len(want))
				}
				if len(ids) == 0 {
					break
				}
				got = append(got, ids...)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
		})
	}
}

// BenchmarkExecutions_Pages lists pages of 100,000 executions: the first, one in the middle and the last.
func BenchmarkExecutions_Pages(b *testing.B) {
	db := open(b)
	keepExecutions(b, db, 100_000)
	for _, c := range []struct {
		name     string
		statuses []engine.Status
	}{{"OneStatus", []engine.Status{engine.StatusSuccess}}, {"TwoStatuses", []engine.Status{engine.StatusSuccess, engine.StatusError}}} {
		for _, page := range []int{1, 2_250 / (3 - len(c.statuses)), 4_500 / (3 - len(c.statuses))} {
			b.Run(fmt.Sprintf("%s/%d", c.name, page), func(b *testing.B) {
				for b.Loop() {
					got, err := db.Stores().Executions.List(b.Context(), identity.System("w"), store.ExecutionQuery{Statuses: c.statuses, Page: store.Page{Size: 20, Number: page}})
					if err != nil || len(got.Executions) != 20 {
						b.Fatalf("%d executions, %v", len(got.Executions), err)
					}
				}
			})
		}
	}
}
