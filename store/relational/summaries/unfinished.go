package summaries

import (
	"context"
	"iter"

	"tandem/engine"
	"tandem/identity"
	"tandem/store"
	"tandem/store/relational"
)

// A page of what is unfinished begins where the one before has ended: the index is of (status, priority, n). The plus sign keeps the
// planner from taking another one.
const (
	unfinishedPage = `SELECT workspace_id, id, workflow_id, status, priority, created, user_id, n FROM executions
		WHERE final = 0 AND status = ?1 AND priority = ?2 AND n > ?3 AND (?4 OR +workspace_id = ?5) ORDER BY n LIMIT ?6`
	unfinishedPriority = `SELECT min(priority) FROM executions WHERE final = 0 AND status = ? AND priority > ?`
)

// Unfinished implements [store.Executions].
func (x *Executions) Unfinished(ctx context.Context, p identity.Principal, after store.Unfinished) iter.Seq2[store.Unfinished, error] {
	return func(yield func(store.Unfinished, error) bool) {
		workspace, all, err := store.ScopeAll(p)
		if err != nil {
			yield(store.Unfinished{}, err)
			return
		}
		statuses := []engine.Status{engine.StatusRunning, engine.StatusPending}
		if after.Status == engine.StatusPending {
			statuses = statuses[1:]
		}
		for _, status := range statuses {
			priority := int64(-1 << 62)
			if after.Place > 0 && after.Status == status {
				priority = int64(after.Priority)
				if !x.unfinished(ctx, yield, []any{string(status), priority, after.Place, all, workspace, maxPage}) {
					return
				}
			}
			for {
				following, err := relational.QueryOne(ctx, x.db, nil, unfinishedPriority,
					func(s relational.Scanner) (p *int64, err error) { return p, s.Scan(&p) }, string(status), priority)
				if err != nil {
					yield(store.Unfinished{}, err)
					return
				}
				if following == nil {
					break
				}
				priority = *following
				if !x.unfinished(ctx, yield, []any{string(status), priority, int64(0), all, workspace, maxPage}) {
					return
				}
			}
		}
	}
}

// unfinished runs through those of a status and a priority. The third of the arguments is the number that the next page begins behind.
func (x *Executions) unfinished(ctx context.Context, yield func(store.Unfinished, error) bool, args []any) bool {
	scan := func(s relational.Scanner) (u store.Unfinished, err error) {
		return u, s.Scan(&u.Workspace, &u.Execution, &u.WorkflowID, &u.Status, &u.Priority, &u.Created, &u.User, &u.Place)
	}
	for {
		found, err := relational.Query(ctx, x.db, unfinishedPage, scan, args...)
		if err != nil {
			yield(store.Unfinished{}, err)
			return false
		}
		for _, u := range found {
			if !yield(u, nil) {
				return false
			}
			args[2] = u.Place
		}
		if len(found) < maxPage {
			return true
		}
	}
}
