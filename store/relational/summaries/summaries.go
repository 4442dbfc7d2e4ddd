// Package summaries has the tables of what listings show of executions: the summaries themselves (summaries.go, list.go), how many there are
// of each kind and the statistics of workflows (tally.go), and how far the journals go that a driver has written to lately (heads.go).
//
// How the rows of a journal are kept is not its concern: each driver does that its own way. Only drivers import it.
package summaries

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"strings"

	"tandem/engine"
	"tandem/identity"
	"tandem/store"
	"tandem/store/relational"
)

// Executions implements [store.Executions], except for what reads journals.
type Executions struct{ db relational.Database }

// New are those of a database.
func New(db relational.Database) *Executions { return &Executions{db} }

const executionColumns = `workspace_id, id, workflow_id, workflow_name, workflow_version, revision, revision_hash, status, priority,
	parent, forked_from, trigger_type, user_id, token_made_by, conversation, started, ended, duration_ms, credits, error, created, updated`

func scanExecution(s relational.Scanner) (e store.Execution, err error) {
	return e, s.Scan(&e.Workspace, &e.ID, &e.WorkflowID, &e.WorkflowName, &e.WorkflowVersion, &e.Revision, &e.RevisionHash, &e.Status, &e.Priority,
		&e.Parent, &e.ForkedFrom, &e.TriggerType, &e.User, &e.TokenMadeBy, &e.Conversation, &e.Started, &e.Ended, &e.DurationMS, &e.Credits, &e.Error, &e.Created, &e.Updated)
}

// To read a column costs more than most columns hold, so that a row of an execution is read as one text: all that is not a number
// with a fraction, one after the other, with a character between them that texts do not have. Should one have it all the same, the
// row has too many parts, and the columns are read one by one.
const (
	executionParts = Text + `, credits`
	// Text is what [OfText] reads.
	Text = `concat_ws(x'1f', executions.workspace_id, id, workflow_id, workflow_name, workflow_version, revision, revision_hash, status, priority,
	parent, forked_from, trigger_type, user_id, token_made_by, conversation, started, ended, duration_ms, error, created, updated)`
	partsMark = "\x1f"
)

// ErrParts says that an execution cannot be read as one text.
var ErrParts = errors.New("a text has the character that stands between texts") // read-only

// scanExecutionParts is scanExecution for [executionParts]. It fails with ErrParts.
func scanExecutionParts(s relational.Scanner) (e store.Execution, err error) {
	var text string
	var credits float64
	if err := s.Scan(&text, &credits); err != nil {
		return e, err
	}
	return OfText(text, credits)
}

// OfText is the execution that was read as one text. It fails with [ErrParts].
func OfText(text string, credits float64) (e store.Execution, err error) {
	e.Credits = credits
	var status string
	var priority int64
	left, more := text, true
	next := func(to *string) {
		if !more {
			err = ErrParts // there are too few
			return
		}
		*to, left, more = strings.Cut(left, partsMark)
	}
	number := func(to *int64) {
		var digits string
		if next(&digits); err == nil {
			if *to, err = strconv.ParseInt(digits, 10, 64); err != nil {
				err = ErrParts
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
		err = ErrParts
	}
	e.Status, e.Priority = engine.Status(status), int(priority)
	return e, err
}

// Get implements [store.Executions].
func (x *Executions) Get(ctx context.Context, p identity.Principal, id string) (store.Execution, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return store.Execution{}, err
	}
	found, err := relational.Query(ctx, x.db, `SELECT `+executionParts+` FROM executions WHERE workspace_id = ? AND id = ?`, scanExecutionParts, workspace, id)
	if errors.Is(err, ErrParts) {
		found, err = relational.Query(ctx, x.db, `SELECT `+executionColumns+` FROM executions WHERE workspace_id = ? AND id = ?`, scanExecution, workspace, id)
	}
	if err == nil && len(found) == 0 {
		err = store.NotFound("execution", id)
	}
	if err != nil {
		return store.Execution{}, err
	}
	return found[0], nil
}

// within bounds the numbers of executions by the time they were started: every index ends with them, so that a page, and how many there are, is found
// in any of them.
func (x *Executions) within(ctx context.Context, f *relational.Filter, workspace string, q *store.ExecutionQuery) error {
	if q.Since > 0 {
		n, err := x.FirstSince(ctx, workspace, q.Since)
		if err != nil {
			return err
		}
		f.Add("n >= ?", n)
	}
	if q.Until > 0 {
		n, err := x.FirstSince(ctx, workspace, q.Until)
		if err != nil {
			return err
		}
		f.Add("n < ?", n)
	}
	return nil
}

// FirstSince is the number of the first execution of a workspace that was started at a time or later; one behind the last if there is none. Executions are numbered in
// the order in which they were started, so that this takes a few looks instead of reading all of them.
func (x *Executions) FirstSince(ctx context.Context, workspace string, at int64) (int64, error) {
	type found struct{ n, created int64 }
	scan := func(s relational.Scanner) (f found, err error) { return f, s.Scan(&f.n, &f.created) }
	last, err := relational.Query(ctx, x.db, `SELECT n, created FROM executions INDEXED BY executions_listing WHERE workspace_id = ? ORDER BY n DESC LIMIT 1`, scan, workspace)
	if err != nil || len(last) == 0 {
		return 0, err
	}
	low, high := int64(0), last[0].n+1
	for low < high {
		middle := low + (high-low)/2
		next, err := relational.Query(ctx, x.db, `SELECT n, created FROM executions INDEXED BY executions_listing WHERE workspace_id = ? AND n >= ? ORDER BY n LIMIT 1`, scan, workspace, middle)
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

// maxPage is how many are read at once, so that no connection is held while the caller works.
const maxPage = 1024

// Unfinished implements [store.Executions].
func (x *Executions) Unfinished(ctx context.Context, p identity.Principal) iter.Seq2[store.Unfinished, error] {
	return func(yield func(store.Unfinished, error) bool) {
		workspace, all, err := store.ScopeAll(p)
		if err != nil {
			yield(store.Unfinished{}, err)
			return
		}
		type numbered struct {
			store.Unfinished
			n int64
		}
		scan := func(s relational.Scanner) (u numbered, err error) {
			return u, s.Scan(&u.Workspace, &u.Execution, &u.WorkflowID, &u.Status, &u.Priority, &u.Created, &u.User, &u.n)
		}
		// One priority after the other, so that each page begins where the one before has ended: the index is of
		// (priority, n). The plus signs keep the planner from taking another one.
		const page = `SELECT workspace_id, id, workflow_id, status, priority, created, user_id, n FROM executions WHERE final = 0 AND priority = ?1 AND n > ?2 AND (?3 OR +workspace_id = ?4) ORDER BY n LIMIT ?5`
		const next = `SELECT min(priority) FROM executions WHERE final = 0 AND priority > ?`
		for priority := int64(-1 << 62); ; {
			following, err := relational.QueryOne(ctx, x.db, nil, next, func(s relational.Scanner) (p *int64, err error) { return p, s.Scan(&p) }, priority)
			if err != nil {
				yield(store.Unfinished{}, err)
				return
			}
			if following == nil {
				return
			}
			priority = *following
			for n, more := int64(0), true; more; {
				found, err := relational.Query(ctx, x.db, page, scan, priority, n, all, workspace, maxPage)
				if err != nil {
					yield(store.Unfinished{}, err)
					return
				}
				for _, u := range found {
					if !yield(u.Unfinished, nil) {
						return
					}
					n = u.n
				}
				more = len(found) == maxPage
			}
		}
	}
}
