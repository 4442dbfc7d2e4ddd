// Package summaries has the tables of what listings show of executions: the summaries themselves (summaries.go, list.go), how many there
// are of each kind and the statistics of workflows (tally.go), and how far the journals go that a driver has written to lately (heads.go).
//
// How the rows of a journal are kept is not its concern: each driver does that its own way. Only drivers import it.
package summaries

import (
	"context"
	"errors"
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
	return e, s.Scan(&e.Workspace, &e.ID, &e.WorkflowID, &e.WorkflowName, &e.WorkflowVersion, &e.Revision,
		&e.RevisionHash, &e.Status, &e.Priority,
		&e.Parent, &e.ForkedFrom, &e.TriggerType, &e.User, &e.TokenMadeBy, &e.Conversation, &e.Started, &e.Ended, &e.DurationMS, &e.Credits,
		&e.Error, &e.Created, &e.Updated)
}

// To read a column costs more than most columns hold, so that a row of an execution is read as one text: all that is not a number
// with a fraction, one after the other, with a character between them that texts do not have. Should one have it all the same, the
// row has too many parts, and the columns are read one by one.
const (
	executionParts = Text + `, credits`
	// Text is what [OfText] reads.
	Text = `concat_ws(x'1f', executions.workspace_id, id, workflow_id, workflow_name, workflow_version, revision, revision_hash, status, priority,
	parent, forked_from, trigger_type, user_id, token_made_by, conversation, started, ended, duration_ms, error, created, updated)`
	partsMark = '\x1f'
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
	const parts = 21 // of Text
	var part [parts]string
	for i := range part[:parts-1] {
		at := strings.IndexByte(text, partsMark)
		if at < 0 {
			return e, ErrParts
		}
		part[i], text = text[:at], text[at+1:]
	}
	if part[parts-1] = text; strings.IndexByte(text, partsMark) >= 0 {
		return e, ErrParts
	}
	number := func(digits string) int64 {
		n, wrong := strconv.ParseInt(digits, 10, 64)
		if wrong != nil {
			err = ErrParts
		}
		return n
	}
	e = store.Execution{
		Workspace: part[0], ID: part[1], WorkflowID: part[2], WorkflowName: part[3], WorkflowVersion: part[4],
		Revision: number(part[5]), RevisionHash: part[6],
		Status: engine.Status(part[7]), Priority: int(number(part[8])), Parent: part[9], ForkedFrom: part[10],
		TriggerType: part[11], User: part[12],
		TokenMadeBy: part[13], Conversation: part[14], Started: number(part[15]), Ended: number(part[16]),
		DurationMS: number(part[17]), Credits: credits,
		Error: part[18], Created: number(part[19]), Updated: number(part[20]),
	}
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

// within bounds the numbers of executions by the time they were started: every index ends with them, so that a page, and how many there
// are, is found in any of them.
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

// FirstSince is the number of the first execution of a workspace that was started at a time or later; one behind the last if there is none.
// Executions are numbered in the order in which they were started, so that this takes a few looks instead of reading all of them.
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
