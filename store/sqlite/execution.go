package sqlite

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"tandem/engine"
	"tandem/identity"
	"tandem/store"
	"tandem/store/relational"
)

type executions struct{ db *DB }

const executionColumns = `workspace_id, id, workflow_id, workflow_name, workflow_version, revision, revision_hash, status, priority,
	parent, forked_from, trigger_type, user_id, token_made_by, conversation, started, ended, duration_ms, credits, error, created, updated`

func scanExecution(s scanner) (e store.Execution, err error) {
	return e, s.Scan(&e.Workspace, &e.ID, &e.WorkflowID, &e.WorkflowName, &e.WorkflowVersion, &e.Revision, &e.RevisionHash, &e.Status, &e.Priority,
		&e.Parent, &e.ForkedFrom, &e.TriggerType, &e.User, &e.TokenMadeBy, &e.Conversation, &e.Started, &e.Ended, &e.DurationMS, &e.Credits, &e.Error, &e.Created, &e.Updated)
}

// To read a column costs more than most columns hold, so that a row of an execution is read as one text: all that is not a number
// with a fraction, one after the other, with a character between them that texts do not have. Should one have it all the same, the
// row has too many parts, and the columns are read one by one.
const (
	executionParts = executionText + `, credits`
	executionText  = `concat_ws(x'1f', executions.workspace_id, id, workflow_id, workflow_name, workflow_version, revision, revision_hash, status, priority,
	parent, forked_from, trigger_type, user_id, token_made_by, conversation, started, ended, duration_ms, error, created, updated)`
	partsMark = "\x1f"
)

var errParts = errors.New("a text has the character that stands between texts") // read-only

// scanExecutionParts is scanExecution for [executionParts]. It fails with errParts.
func scanExecutionParts(s scanner) (e store.Execution, err error) {
	var text string
	var credits float64
	if err := s.Scan(&text, &credits); err != nil {
		return e, err
	}
	return executionOfParts(text, credits)
}

func executionOfParts(text string, credits float64) (e store.Execution, err error) {
	e.Credits = credits
	var status string
	var priority int64
	left, more := text, true
	next := func(to *string) {
		if !more {
			err = errParts // there are too few
			return
		}
		*to, left, more = strings.Cut(left, partsMark)
	}
	number := func(to *int64) {
		var digits string
		if next(&digits); err == nil {
			if *to, err = strconv.ParseInt(digits, 10, 64); err != nil {
				err = errParts
			}
		}
	}
	next(&e.Workspace)
	next(&e.ID)
	next(&e.WorkflowID)
	next(&e.WorkflowName)
	next(&e.WorkflowVersion)
	number(&e.Revision)
	next(&e.RevisionHash)
	next(&status)
	number(&priority)
	next(&e.Parent)
	next(&e.ForkedFrom)
	next(&e.TriggerType)
	next(&e.User)
	next(&e.TokenMadeBy)
	next(&e.Conversation)
	number(&e.Started)
	number(&e.Ended)
	number(&e.DurationMS)
	next(&e.Error)
	number(&e.Created)
	number(&e.Updated)
	if err == nil && more {
		err = errParts
	}
	e.Status, e.Priority = engine.Status(status), int(priority)
	return e, err
}

// Get implements [store.Executions].
func (x executions) Get(ctx context.Context, p identity.Principal, id string) (store.Execution, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return store.Execution{}, err
	}
	found, err := query(ctx, x.db, `SELECT `+executionParts+` FROM executions WHERE workspace_id = ? AND id = ?`, scanExecutionParts, workspace, id)
	if errors.Is(err, errParts) {
		found, err = query(ctx, x.db, `SELECT `+executionColumns+` FROM executions WHERE workspace_id = ? AND id = ?`, scanExecution, workspace, id)
	}
	if err == nil && len(found) == 0 {
		err = store.NotFound("execution", id)
	}
	if err != nil {
		return store.Execution{}, err
	}
	return found[0], nil
}

// GetWithRows implements [store.Executions]. One statement reads both: first the execution, then its rows, which stand in two tables and
// are put in order here, since that costs less than to let the statement do so.
func (x executions) GetWithRows(ctx context.Context, p identity.Principal, id string) (e store.Execution, rows []store.Row, whole bool, err error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return store.Execution{}, nil, false, err
	}
	if err := x.db.usable(); err != nil {
		return store.Execution{}, nil, false, err
	}
	found := false
	err = x.db.read.Use(ctx, func(c relational.Reader) error {
		return c.Each(ctx, executionWithRows, []any{workspace, id, firstRows + 2}, func(s scanner) (bool, error) {
			if !found {
				found = true
				e, err = scanExecutionRow(s)
				rows = make([]store.Row, 0, usualRows)
				return err == nil, err
			}
			row, err := scanRow(s)
			rows = append(rows, row)
			return err == nil, err
		})
	})
	if errors.Is(err, errParts) {
		e, err = x.Get(ctx, p, id)
		return e, nil, false, err
	}
	if err == nil && !found {
		err = store.NotFound("execution", id)
	}
	if err != nil {
		return store.Execution{}, nil, false, err
	}
	if len(rows) > firstRows {
		return e, nil, false, nil
	}
	slices.SortFunc(rows, func(a, b store.Row) int { return cmp.Compare(a.Seq, b.Seq) })
	return e, rows, true, nil
}

// usualRows is how many rows of an execution there is room for before more is made.
const usualRows = 8

// executionWithRows reads an execution as [executionParts], and behind it its rows.
const executionWithRows = `SELECT 0, credits, ` + executionText + ` FROM executions WHERE workspace_id = ?1 AND id = ?2
	UNION ALL SELECT place, time, body FROM executions CROSS JOIN journal
	WHERE executions.workspace_id = ?1 AND id = ?2 AND place > n << 32 AND place < (n + 1) << 32 AND journal.workspace_id = ?1
	UNION ALL SELECT place, time, body FROM executions CROSS JOIN journal_in_order
	WHERE executions.workspace_id = ?1 AND id = ?2 AND place > n << 32 AND place < (n + 1) << 32 AND journal_in_order.workspace_id = ?1
	LIMIT ?3`

// scanExecutionRow is scanExecutionParts for the first row of [executionWithRows].
func scanExecutionRow(s scanner) (store.Execution, error) {
	var text string
	var credits float64
	var first int64
	if err := s.Scan(&first, &credits, &text); err != nil {
		return store.Execution{}, err
	}
	return executionOfParts(text, credits)
}

// within bounds the numbers of executions by the time they were started: every index ends with them, so that a page, and how many there are, is found
// in any of them.
func (x executions) within(ctx context.Context, f *filter, q store.ExecutionQuery) error {
	if q.Since > 0 {
		n, err := x.firstSince(ctx, q.Since)
		if err != nil {
			return err
		}
		f.addCondition("n >= ?", n)
	}
	if q.Until > 0 {
		n, err := x.firstSince(ctx, q.Until)
		if err != nil {
			return err
		}
		f.addCondition("n < ?", n)
	}
	return nil
}

// firstSince is the number of the first execution that was started at a time or later; one behind the last if there is none.
func (x executions) firstSince(ctx context.Context, at int64) (int64, error) {
	type found struct{ n, created int64 }
	scan := func(s scanner) (f found, err error) { return f, s.Scan(&f.n, &f.created) }
	last, err := query(ctx, x.db, `SELECT n, created FROM executions ORDER BY n DESC LIMIT 1`, scan)
	if err != nil || len(last) == 0 {
		return 0, err
	}
	low, high := int64(0), last[0].n+1
	for low < high {
		middle := low + (high-low)/2
		next, err := query(ctx, x.db, `SELECT n, created FROM executions WHERE n >= ? ORDER BY n LIMIT 1`, scan, middle)
		switch {
		case err != nil:
			return 0, err
		case len(next) == 0 || next[0].created >= at:
			high = middle
		default:
			low = next[0].n + 1
		}
	}
	return low, nil
}

func statusTexts(statuses []engine.Status) []any {
	texts := make([]any, len(statuses))
	for i, s := range statuses {
		texts[i] = string(s)
	}
	return texts
}

// filter is the WHERE of a listing.
type filter struct {
	conditions []string
	args       []any
}

func (f *filter) addCondition(condition string, args ...any) {
	f.conditions = append(f.conditions, condition)
	f.args = append(f.args, args...)
}

func (f *filter) in(column string, values []any) {
	f.addCondition(column+" IN (?"+strings.Repeat(", ?", len(values)-1)+")", values...)
}
