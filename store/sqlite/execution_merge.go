package sqlite

import (
	"context"
	"errors"
	"slices"
	"strings"

	"tandem/store"
	"tandem/store/sqlite/sqlconn"
)

// mergeable says that a query is for several statuses and for nothing else that the index of statuses does not have.
func mergeable(q *store.ExecutionQuery) bool {
	return len(q.Statuses) > 1 && q.WorkflowID == "" && q.Parent == "" && q.User == "" && q.Conversation == "" && q.ForkedFrom == "" && q.BelowRevision == 0
}

// listMerged is [executions.List] for what is mergeable.
func (x executions) listMerged(ctx context.Context, workspace string, q store.ExecutionQuery) (page store.ExecutionPage, err error) {
	var f filter
	f.addCondition("workspace_id = ?", workspace)
	if err := x.within(ctx, &f, q); err != nil {
		return page, err
	}
	statuses, counted := distinct(statusTexts(q.Statuses)), f
	counted.conditions, counted.args = slices.Clone(f.conditions), slices.Clone(f.args)
	counted.in("status", statuses)
	count := "SELECT coalesce(sum(count), 0) FROM execution_counts WHERE "
	if q.Since > 0 || q.Until > 0 {
		count = "SELECT count(*) FROM executions INDEXED BY executions_status WHERE "
	}
	count += strings.Join(counted.conditions, " AND ")
	page.Executions, page.Total, err = merged(ctx, x.db, executionParts, statuses, f, q.Page, scanExecutionParts, count, counted.args)
	if errors.Is(err, errParts) {
		page.Executions, page.Total, err = merged(ctx, x.db, executionColumns, statuses, f, q.Page, scanExecution, count, counted.args)
	}
	return page, err
}

// merged reads a page of executions with several statuses. Each status has its executions in order in the index, so they are gone through side by side, from the
// end that is nearer, and nothing is read of those that are passed over. One index for all would have them in no order, and the table would be read for each.
// Conditions are those of the page besides the statuses.
func merged[T any](ctx context.Context, db *DB, columns string, statuses []any, f filter, p store.Page, scan func(scanner) (T, error), count string, countArgs []any) (page []T, total int, err error) {
	if err := db.usable(); err != nil {
		return nil, 0, err
	}
	limit, offset := p.Limits()
	one := "SELECT n FROM executions INDEXED BY executions_status WHERE " + strings.Join(f.conditions, " AND ") + " AND status = ?"
	all := one + strings.Repeat(" UNION ALL "+one, len(statuses)-1)
	var args []any
	for _, status := range statuses {
		args = append(append(args, f.args...), status)
	}
	err = db.read.Use(ctx, func(c *sqlconn.Conn) error {
		return c.Transaction(ctx, func() error {
			counts, err := sqlconn.All(ctx, c, count, scanInt, countArgs)
			if err != nil {
				return err
			}
			total = counts[0]
			room := min(limit, total-offset)
			if room <= 0 {
				return nil
			}
			order, pass := " ORDER BY n DESC", offset
			if behind := total - offset - room; behind < offset {
				order, pass = " ORDER BY n", behind
			}
			page, err = sqlconn.Into(ctx, c, "SELECT "+columns+" FROM executions WHERE n IN (SELECT n FROM ("+all+order+" LIMIT ? OFFSET ?)) ORDER BY n DESC", scan, append(args, room, pass), make([]T, 0, room))
			return err
		})
	})
	return page, total, err
}

// distinct are statuses as they are bound, each once.
func distinct(statuses []any) []any {
	var list []any
	for _, s := range statuses {
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}
