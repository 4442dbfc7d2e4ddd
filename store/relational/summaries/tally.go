package summaries

import (
	"cmp"
	"database/sql/driver"
	"errors"
	"slices"

	"tandem/engine"
	"tandem/store"
	"tandem/store/relational"
)

// Tally is what the executions of a transaction change in the books: how many executions there are of a workflow with a status,
// and the statistics of workflows. Many executions of one transaction are mostly of few workflows, so it is written once, at the
// transaction's end. It belongs to the goroutine that commits.
type Tally struct {
	moves []move
	// alive are workflows that are known not to be deleted.
	alive map[relational.Key]bool
}

// move is an execution that has begun, or that has another status.
type move struct {
	workflow relational.Key
	// from is empty for one that has begun.
	from, to engine.Status
	// test says that it is a test: it counts as an execution of its workflow and in none of its statistics.
	test bool
	// at is when the row was written, created when the execution was.
	at, created int64
	// ended, duration and credits are added to those of the workflow; success is when it ended well, zero otherwise.
	ended, duration int64
	credits         float64
	success         int64
}

// Begin begins a transaction.
func (t *Tally) Begin() { t.moves = t.moves[:0] }

// Mark is a place in the transaction.
func (t *Tally) Mark() int { return len(t.moves) }

// Rewind undoes what came since a mark.
func (t *Tally) Rewind(mark int) { t.moves = t.moves[:mark] }

// maxAlive is how many workflows are remembered not to be deleted.
const maxAlive = 1024

// Alive says that a workflow is known not to be deleted; what begins without one needs none.
func (t *Tally) Alive(workflow relational.Key) bool { return workflow.ID == "" || t.alive[workflow] }

// Live notes that a workflow is not deleted. A caller that deletes one says so with Gone.
func (t *Tally) Live(k relational.Key) {
	if t.alive == nil || len(t.alive) >= maxAlive {
		t.alive = map[relational.Key]bool{}
	}
	t.alive[k] = true
}

// Gone notes that a workflow is deleted, or may be.
func (t *Tally) Gone(workflow relational.Key) { delete(t.alive, workflow) }

// Doubt forgets which workflows are not deleted.
func (t *Tally) Doubt() { t.alive = nil }

// books are the changes of one workflow.
type books struct {
	relational.Key
	counts map[engine.Status]int64
	// counted says that there are others than tests.
	counted bool
	// begun is how many have begun; last and lastAt are of the one that began last.
	begun  int64
	last   engine.Status
	lastAt int64
	// later are changes of status in the order they came, each of an execution that is older than the one before: which of them
	// counts depends on which execution of the workflow is the newest.
	later []move

	ended, duration int64
	credits         float64
	success         int64
}

func (b *books) takeMove(m move) {
	b.counts[m.to]++
	if m.test {
		if m.from != "" {
			b.counts[m.from]--
		}
		return
	}
	b.counted = true
	if m.from == "" {
		b.begun++
		b.last, b.lastAt, b.later = m.to, m.at, nil
	} else {
		b.counts[m.from]--
		switch {
		case b.begun == 0:
			for len(b.later) > 0 && b.later[len(b.later)-1].created <= m.created {
				b.later = b.later[:len(b.later)-1]
			}
			b.later = append(b.later, m)
		case b.lastAt <= m.created:
			b.last = m.to
		}
	}
	b.ended += m.ended
	b.duration += m.duration
	b.credits += m.credits
	b.success = max(b.success, m.success)
}

// Empty says that there is nothing to write.
func (t *Tally) Empty() bool { return len(t.moves) == 0 }

// Settle writes the tally of a transaction.
func (t *Tally) Settle(w relational.Transaction) error {
	if len(t.moves) == 0 {
		return nil
	}
	var list []*books // of few workflows; in the order they came
	for _, m := range t.moves {
		i := slices.IndexFunc(list, func(b *books) bool { return b.Key == m.workflow })
		if i < 0 {
			i = len(list)
			list = append(list, &books{Key: m.workflow, counts: map[engine.Status]int64{}})
		}
		list[i].takeMove(m)
	}
	for _, b := range list {
		for status, n := range b.counts { // order does not matter: one row per status
			if n == 0 {
				continue
			}
			if _, err := w.Exec(`INSERT INTO execution_counts (workspace_id, workflow_id, status, count) VALUES (?, ?, ?, ?)
				ON CONFLICT (workspace_id, workflow_id, status) DO UPDATE SET count = execution_counts.count + excluded.count`, b.Workspace, b.ID, string(status), n); err != nil {
				return err
			}
		}
		if b.ID == "" || !b.counted {
			continue
		}
		if _, err := w.Exec(`UPDATE workflows SET total_runs = total_runs + ?1, last_status = iif(?1 > 0, ?2, last_status), last_execution = iif(?1 > 0, ?3, last_execution),
			ended_runs = ended_runs + ?4, total_duration_ms = total_duration_ms + ?5, total_credits = total_credits + ?6, last_success = max(last_success, ?7)
			WHERE workspace_id = ?8 AND id = ?9`,
			b.begun, string(b.last), b.lastAt, b.ended, b.duration, b.credits, b.success, b.Workspace, b.ID); err != nil {
			return err
		}
		for _, m := range b.later {
			if _, err := w.Exec(`UPDATE workflows SET last_status = ? WHERE workspace_id = ? AND id = ? AND last_execution <= ?`,
				string(m.to), b.Workspace, b.ID, m.created); err != nil {
				return err
			}
		}
	}
	return nil
}

// Summary is what has to be known of an execution to change its summary.
type Summary struct {
	// Known says that the rest is there.
	Known    bool
	workflow string
	status   engine.Status
	duration int64
	credits  float64
	created  int64
	test     bool
}

// SummaryColumns are what [SummaryOf] reads.
const SummaryColumns = `workflow_id, status, duration_ms, credits, created, trigger_type`

// SummaryOf is a summary as it was read.
func SummaryOf(row []driver.Value) Summary {
	return Summary{true, row[0].(string), engine.Status(row[1].(string)), row[2].(int64), row[3].(float64), row[4].(int64),
		row[5].(string) == store.TriggerTest}
}

// ErrNoSummary is a defect: a journal without a summary.
var ErrNoSummary = errors.New("an execution has a journal and no summary") // read-only

// readTally looks the summary of an execution up if it is not at hand.
func (h *Head) readTally(w relational.Transaction) error {
	if h.Summary.Known {
		return nil
	}
	var row [6]driver.Value
	found, err := w.Row(row[:], `SELECT `+SummaryColumns+` FROM executions WHERE n = ?`, h.N)
	if err != nil || !found {
		return cmp.Or(err, ErrNoSummary)
	}
	h.Summary = SummaryOf(row[:])
	return nil
}

// LastChange is the row that says how the summary is to look after all of them; nil if none does.
func LastChange(rows []*store.Append) *store.Append {
	for _, a := range slices.Backward(rows) {
		if a.Change != nil {
			return a
		}
	}
	return nil
}

// Change writes what rows change of a summary, and keeps the statistics of the workflow. A summary that was created with them has
// it already.
func (t *Tally) Change(w relational.Transaction, workspace string, h *Head, rows []*store.Append) error {
	last := LastChange(rows)
	if last == nil {
		return nil
	}
	if err := h.readTally(w); err != nil {
		return err
	}
	if c := last.Change; rows[0].Create == nil {
		if _, err := w.Exec(`UPDATE executions SET status = ?, final = ?, started = ?, ended = ?, duration_ms = ?, credits = ?, error = ?, error_code = ?, error_node = ?, updated = ? WHERE n = ?`,
			string(c.Status), relational.Flag(c.Status.Final()), c.Started, c.Ended, c.DurationMS, c.Credits, c.Error, c.ErrorCode,
			c.ErrorNode, last.Time, h.N); err != nil {
			return err
		}
	}
	for _, a := range rows {
		if a.Change != nil {
			t.moves = append(t.moves, h.Summary.change(workspace, a.Change, a.Time))
		}
	}
	return nil
}

// InsertText makes a summary, and OrNothing after it lets it do nothing when the execution has one. Its arguments are those of
// [InsertArgs].
const InsertText = `INSERT INTO executions (n, workspace_id, id, workflow_id, workflow_name, workflow_version, revision, revision_hash,
	status, final, priority, parent, forked_from, trigger_type, user_id, token_made_by, conversation, started, ended, duration_ms, credits, error, error_code, error_node, created, updated)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// OrNothing is what follows [InsertText] where it is asked afterwards whether a summary was made.
const OrNothing = ` ON CONFLICT (workspace_id, id) DO NOTHING`

// InsertArgs are the arguments of [InsertText]. What the rows that come with the first one change of the summary is written at once. The
// number is nil where the database gives it.
func InsertArgs(number driver.Value, same *relational.SameTexts, workspace string, rows []*store.Append) []driver.Value {
	e, at := rows[0].Create, rows[0].Time
	now := store.Change{Status: e.Status, Started: e.Started, Ended: e.Ended, DurationMS: e.DurationMS, Credits: e.Credits, Error: e.Error}
	updated := at
	if last := LastChange(rows); last != nil {
		now, updated = *last.Change, last.Time
	}
	return []driver.Value{
		number, same.Text(0, workspace), e.ID, same.Text(1, e.WorkflowID), same.Text(2, e.WorkflowName), same.Text(3, e.WorkflowVersion),
		e.Revision, same.Text(4, e.RevisionHash),
		same.Text(5, string(now.Status)), relational.Flag(now.Status.Final()), int64(e.Priority), e.Parent, e.ForkedFrom,
		same.Text(6, e.TriggerType), same.Text(7, e.User), e.TokenMadeBy, e.Conversation,
		now.Started, now.Ended, now.DurationMS, now.Credits, now.Error, now.ErrorCode, now.ErrorNode, at, updated,
	}
}

// Begun counts an execution whose summary was made, and remembers it as it was before the rows that come with the first one.
func (t *Tally) Begun(h *Head, workspace string, e *store.Execution, at int64) {
	h.Summary = Summary{true, e.WorkflowID, e.Status, e.DurationMS, e.Credits, at, e.TriggerType == store.TriggerTest}
	m := move{workflow: relational.Key{Workspace: workspace, ID: e.WorkflowID}, to: e.Status, at: at, created: at, test: h.Summary.test}
	if e.Status.Final() {
		m.countEnd(e.Status, e.DurationMS, e.Credits, e.Ended)
	}
	t.moves = append(t.moves, m)
}

// change brings what is known of a summary to where a row says it is.
func (s *Summary) change(workspace string, c *store.Change, at int64) move {
	m := move{workflow: relational.Key{Workspace: workspace, ID: s.workflow}, from: s.status, to: c.Status, at: at,
		created: s.created, test: s.test}
	// What was counted at an earlier end is taken back, so that a revived execution counts once.
	if s.status.Final() {
		m.ended, m.duration, m.credits = -1, -s.duration, -s.credits
	}
	if c.Status.Final() {
		m.countEnd(c.Status, c.DurationMS, c.Credits, c.Ended)
	}
	s.status, s.duration, s.credits = c.Status, c.DurationMS, c.Credits
	return m
}

// countEnd counts an execution that has ended.
func (m *move) countEnd(status engine.Status, duration int64, credits float64, at int64) {
	m.ended++
	m.duration += duration
	m.credits += credits
	if status == engine.StatusSuccess {
		m.success = at
	}
}
