package summaries

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"tandem/identity"
	"tandem/store"
	"tandem/store/relational"
)

// List implements [store.Executions].
func (x *Executions) List(ctx context.Context, p identity.Principal, q store.ExecutionQuery) (page store.ExecutionPage, err error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return page, err
	}
	l, err := x.listing(ctx, workspace, &q)
	if err != nil {
		return page, err
	}
	if _, offset := l.page.Limits(); offset == 0 && l.from == 0 {
		page, err = x.firstPage(ctx, l)
	} else {
		page.Executions, page.Total, err = readListing(ctx, x.db, l, executionParts, scanExecutionParts)
	}
	if errors.Is(err, ErrParts) {
		page.Executions, page.Total, err = readListing(ctx, x.db, l, executionColumns, scanExecution)
	}
	return page, err
}

// listing says how a page of executions is found, and how all of them are counted.
type listing struct {
	relational.Filter
	// table names the index, where the planner might take another one. Statuses are gone through in it side by side; a single one is a
	// condition.
	table    string
	statuses []any
	// counted is what counts them: what is known of the counts, or the table itself.
	counted   string
	countedIn relational.Filter
	// from is the number that the page is counted from, back or forth; zero is the newest.
	from  int
	newer bool
	page  store.Page
}

func (x *Executions) listing(ctx context.Context, workspace string, q *store.ExecutionQuery) (*listing, error) {
	l := &listing{page: q.Page, newer: q.Newer != ""}
	l.Add("workspace_id = ?", workspace)
	if err := x.within(ctx, &l.Filter, workspace, q); err != nil {
		return nil, err
	}
	l.narrowBy(q)
	// How many there are of a workflow with a status is known; what else a query asks for is counted.
	known := len(l.Conditions) == 1
	status, err := x.choose(ctx, l, workspace, q)
	if err != nil {
		return nil, err
	}
	l.countedIn = relational.Filter{Conditions: slices.Clone(l.Conditions), Args: slices.Clone(l.Args)}
	if len(l.statuses) > 0 {
		l.countedIn.In("status", l.statuses)
	} else if len(q.Statuses) > 0 {
		l.In(status, statusTexts(q.Statuses))
		l.countedIn.In(status, statusTexts(q.Statuses))
	}
	l.counted = "SELECT count(*) FROM " + l.table
	if known {
		l.counted = "SELECT coalesce(sum(count), 0) FROM execution_counts"
	}
	if id := cmp.Or(q.Older, q.Newer); id != "" {
		if l.from, err = relational.QueryOne(ctx, x.db, store.NotFound("execution", id), `SELECT n FROM executions WHERE workspace_id = ? AND id = ?`, relational.ScanInt, workspace, id); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// narrowBy adds what a query asks for besides a workflow, statuses and times.
func (l *listing) narrowBy(q *store.ExecutionQuery) {
	if q.Parent != "" {
		l.Add("parent = ? AND parent <> ''", q.Parent)
	}
	if q.User != "" {
		l.Add("user_id = ?", q.User)
	}
	if q.Conversation != "" {
		l.Add("conversation = ? AND conversation <> ''", q.Conversation)
	}
	if q.ForkedFrom != "" {
		l.Add("forked_from = ? AND forked_from <> ''", q.ForkedFrom)
	}
	if q.BelowRevision != 0 {
		l.Add("revision < ?", q.BelowRevision)
	}
}

// choose names the index that the executions are read from, adds the condition of the workflow, and says how that of the statuses is
// written. One index has the executions of each status in order, but those of several in none; so these are gone through side by side, and
// nothing is read of those that are passed over. With a workflow or a user, few executions are found by their status; and the plus sign
// keeps the planner from the index of the one that more executions have.
func (x *Executions) choose(ctx context.Context, l *listing, workspace string, q *store.ExecutionQuery) (status string, err error) {
	const byStatus = "executions INDEXED BY executions_status"
	l.table, status = "executions", "status"
	if q.WorkflowID != "" {
		l.Add("workflow_id = ?", q.WorkflowID)
	}
	if len(q.Statuses) == 0 || q.Parent != "" || q.Conversation != "" || q.ForkedFrom != "" {
		return status, nil
	}
	if q.WorkflowID == "" && q.User == "" && q.BelowRevision == 0 {
		l.table = byStatus
		if all := distinct(statusTexts(q.Statuses)); len(all) > 1 {
			l.statuses = all
		}
		return status, nil
	}
	var f relational.Filter
	f.Add("workspace_id = ?", workspace)
	f.In("status", statusTexts(q.Statuses))
	counts, err := relational.Query(ctx, x.db, `SELECT coalesce(sum(count), 0) FROM execution_counts WHERE `+strings.Join(f.Conditions, " AND ")+`
		UNION ALL SELECT coalesce(sum(count), 0) FROM execution_counts WHERE workspace_id = ? AND (? = '' OR workflow_id = ?)`, relational.ScanInt, append(f.Args, workspace, q.WorkflowID, q.WorkflowID)...)
	const few = 8 // of so many one
	switch {
	case err != nil:
	case q.WorkflowID != "" && counts[0] > counts[1]:
		status = "+status"
	case q.WorkflowID != "" || counts[0]*few < counts[1]:
		l.table = byStatus
	}
	return status, err
}

// pageOf is a statement for a page, with what is bound to it but how many it has and how many are passed over. Side is a condition besides.
func (l *listing) pageOf(columns, order, side string, from ...any) (statement string, args []any) {
	end := " FROM " + l.table + " WHERE " + strings.Join(l.Conditions, " AND ") + side
	bound := append(slices.Clone(l.Args), from...)
	if len(l.statuses) == 0 {
		return "SELECT " + columns + end + order + " LIMIT ? OFFSET ?", bound
	}
	one := "SELECT n" + end + " AND status = ?"
	for _, status := range l.statuses {
		args = append(append(args, bound...), status)
	}
	return "SELECT " + columns + " FROM executions WHERE n IN (" + one + strings.Repeat(" UNION ALL "+one,
		len(l.statuses)-1) + order + " LIMIT ? OFFSET ?)" + order, args
}

// readListing reads a page and counts the whole in one transaction, so that they agree. A page that is counted from an execution is found
// there; one that is counted from the newest is found from the end that is nearer.
func readListing[T any](ctx context.Context, db relational.Database, l *listing, columns string,
	scan func(relational.Scanner) (T, error)) (page []T, total int, err error) {
	const forth, back = " ORDER BY n", " ORDER BY n DESC"
	limit, offset := l.page.Limits()
	order, side := back, ""
	var from []any
	switch {
	case l.newer:
		order, side, from = forth, " AND n > ?", []any{l.from}
	case l.from > 0:
		side, from = " AND n < ?", []any{l.from}
	}
	err = db.Read(ctx, func(c relational.Reader) error {
		return c.Transaction(ctx, func() error {
			counts, err := relational.All(ctx, c, l.counted+" WHERE "+strings.Join(l.countedIn.Conditions, " AND "),
				relational.ScanInt, l.countedIn.Args)
			if err != nil {
				return err
			}
			total = counts[0]
			room := min(limit, total-offset)
			if room <= 0 {
				return nil
			}
			if behind := total - offset - room; l.from == 0 && behind < offset {
				order, limit, offset = forth, room, behind
			}
			statement, args := l.pageOf(columns, order, side, from...)
			page, err = relational.Into(ctx, c, statement, scan, append(args, limit, offset), make([]T, 0, room))
			if order == forth {
				slices.Reverse(page)
			}
			return err
		})
	})
	return page, total, err
}

// firstPage is readListing for the page that is asked for most. One statement reads both: first how many there are, as a text, and then the
// page.
func (x *Executions) firstPage(ctx context.Context, l *listing) (page store.ExecutionPage, err error) {
	limit, _ := l.page.Limits()
	rest, args := l.pageOf(executionParts, " ORDER BY n DESC", "")
	statement := "SELECT CAST((" + l.counted + " WHERE " + strings.Join(l.countedIn.Conditions,
		" AND ") + ") AS TEXT), 0.0 UNION ALL SELECT * FROM (" + rest + ") AS page"
	args = append(append(slices.Clone(l.countedIn.Args), args...), limit, 0)
	counted := false
	err = x.db.Read(ctx, func(c relational.Reader) error {
		return c.Each(ctx, statement, args, func(s relational.Scanner) (bool, error) {
			if counted {
				e, err := scanExecutionParts(s)
				page.Executions = append(page.Executions, e)
				return err == nil, err
			}
			counted = true
			var total string
			var none float64
			if err := s.Scan(&total, &none); err != nil {
				return false, err
			}
			if page.Total, err = strconv.Atoi(total); err != nil {
				return false, err
			}
			page.Executions = make([]store.Execution, 0, min(limit, page.Total))
			return page.Total > 0, nil
		})
	})
	return page, err
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
