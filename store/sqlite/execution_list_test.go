package sqlite_test

import (
	"fmt"
	"slices"
	"testing"

	"tandem/engine"
	"tandem/fault"
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

// TestExecutions_Pages pages through executions, by numbers from both ends and from one page to the next and back, in the order in which
// they were started.
func TestExecutions_Pages(t *testing.T) {
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
		"All":        {store.ExecutionQuery{}, func(int) bool { return true }},
		"One":        {store.ExecutionQuery{Statuses: []engine.Status{engine.StatusSuccess}}, func(i int) bool { return i%20 > 1 && i%2 == 0 }},
		"Workflow":   {store.ExecutionQuery{WorkflowID: "f"}, func(int) bool { return true }},
		"WorkflowOf": {store.ExecutionQuery{WorkflowID: "f", Statuses: []engine.Status{engine.StatusError, engine.StatusTimeout}}, func(i int) bool { return i%2 == 1 }},
		"User":       {store.ExecutionQuery{User: "ann", Statuses: []engine.Status{engine.StatusError}, Until: 150}, func(i int) bool { return i < 150 && i%20 > 1 && i%2 == 1 }},
		"Since":      {store.ExecutionQuery{Since: 30}, func(i int) bool { return i >= 30 }},
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
			if len(want) == 0 {
				return
			}
			near := c.q
			near.Page.Number = 1
			for at := 7; at < len(want); at += 7 { // each page from the one before it
				near.Older = want[at-1]
				if ids, total := list(near); total != len(want) || !slices.Equal(ids, want[at:min(at+7, len(want))]) {
					t.Errorf("older than %s: %v of %d", near.Older, ids, total)
				}
			}
			near.Older, near.Page.Number = want[0], 2
			if ids, _ := list(near); !slices.Equal(ids, want[min(8, len(want)):min(15, len(want))]) {
				t.Errorf("the second page behind the newest: %v", ids)
			}
			near.Older, near.Page.Number = "", 1
			for at := len(want) - 1; at >= 7; at -= 7 { // and from the one behind it
				near.Newer = want[at]
				if ids, total := list(near); total != len(want) || !slices.Equal(ids, want[at-7:at]) {
					t.Errorf("newer than %s: %v of %d", near.Newer, ids, total)
				}
			}
		})
	}
}

// TestExecutions_PagesFromNothing refuses to count from an execution that is not there.
func TestExecutions_PagesFromNothing(t *testing.T) {
	t.Parallel()
	db := open(t)
	keepExecutions(t, db, 3)
	for _, q := range []store.ExecutionQuery{{Older: "e9"}, {Newer: "e9"}} {
		if _, err := db.Stores().Executions.List(t.Context(), identity.System("w"), q); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("%+v: %v", q, err)
		}
	}
}

// BenchmarkExecutions_Pages lists pages of 100,000 executions: the first, one in the middle and the last by their numbers, and one in the
// middle as the page that follows the one before it, and as the one before the one that follows.
func BenchmarkExecutions_Pages(b *testing.B) {
	const all = 100_000
	db := open(b)
	keepExecutions(b, db, all)
	for _, c := range []struct {
		name string
		q    store.ExecutionQuery
		in   int
	}{
		{"All", store.ExecutionQuery{}, all},
		{"OneStatus", store.ExecutionQuery{Statuses: []engine.Status{engine.StatusSuccess}}, all * 9 / 20},
		{"TwoStatuses", store.ExecutionQuery{Statuses: []engine.Status{engine.StatusSuccess, engine.StatusError}}, all * 9 / 10},
		{"Workflow", store.ExecutionQuery{WorkflowID: "f"}, all},
		{"WorkflowAndStatus", store.ExecutionQuery{WorkflowID: "f", Statuses: []engine.Status{engine.StatusSuccess}}, all * 9 / 20},
	} {
		c.q.Page.Size = 20
		run := func(name string, change func(q *store.ExecutionQuery)) {
			b.Run(c.name+"/"+name, func(b *testing.B) {
				q := c.q
				change(&q)
				for b.Loop() {
					got, err := db.Stores().Executions.List(b.Context(), identity.System("w"), q)
					if err != nil || len(got.Executions) != 20 {
						b.Fatalf("%d executions, %v", len(got.Executions), err)
					}
				}
			})
		}
		run("First", func(q *store.ExecutionQuery) {})
		run("Middle", func(q *store.ExecutionQuery) { q.Page.Number = c.in / 40 })
		run("Last", func(q *store.ExecutionQuery) { q.Page.Number = c.in / 20 })
		run("NextInTheMiddle", func(q *store.ExecutionQuery) { q.Older = fmt.Sprintf("e%d", all/2) })
		run("PreviousInTheMiddle", func(q *store.ExecutionQuery) { q.Newer = fmt.Sprintf("e%d", all/2) })
	}
}
