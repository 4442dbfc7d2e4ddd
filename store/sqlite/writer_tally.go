package sqlite

import (
	"cmp"
	"database/sql/driver"
	"slices"

	"tandem/engine"
	"tandem/store"
	"tandem/store/relational"
)

// tally is what the executions of a transaction change in the books: how many executions there are of a workflow with a status,
// and the statistics of workflows. Many executions of one transaction are mostly of few workflows, so it is written once, at the
// transaction's end. It belongs to the committer.
type tally struct {
	moves []move
	// alive are workflows that are known not to be deleted. Whoever deletes one forgets it.
	alive map[workflowKey]bool
}

type workflowKey struct{ workspace, id string }

// move is an execution that has begun, or that has another status.
type move struct {
	workflow workflowKey
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

func (t *tally) beginBatch() {
	t.moves = t.moves[:0]
}

func (t *tally) mark() int       { return len(t.moves) }
func (t *tally) rewind(mark int) { t.moves = t.moves[:mark] }

// maxAlive is how many workflows are remembered not to be deleted.
const maxAlive = 1024

// live notes that a workflow is not deleted.
func (t *tally) live(k workflowKey) {
	if t.alive == nil || len(t.alive) >= maxAlive {
		t.alive = map[workflowKey]bool{}
	}
	t.alive[k] = true
}

// books are the changes of one workflow.
type books struct {
	workflowKey
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

// settle writes the tally of a transaction.
func (w *writer) settle() error {
	if len(w.tally.moves) == 0 {
		return nil
	}
	var list []*books // of few workflows; in the order they came
	for _, m := range w.tally.moves {
		i := slices.IndexFunc(list, func(b *books) bool { return b.workflowKey == m.workflow })
		if i < 0 {
			i = len(list)
			list = append(list, &books{workflowKey: m.workflow, counts: map[engine.Status]int64{}})
		}
		list[i].takeMove(m)
	}
	changed := w.c.changed
	defer func() { w.c.changed = changed }() // statistics are nothing that anybody keeps at hand
	for _, b := range list {
		for status, n := range b.counts { // order does not matter: one row per status
			if n == 0 {
				continue
			}
			if _, err := w.c.exec(`INSERT INTO execution_counts (workspace_id, workflow_id, status, count) VALUES (?, ?, ?, ?)
				ON CONFLICT (workspace_id, workflow_id, status) DO UPDATE SET count = count + excluded.count`, b.workspace, b.id, string(status), n); err != nil {
				return err
			}
		}
		if b.id == "" || !b.counted {
			continue
		}
		if _, err := w.c.exec(`UPDATE workflows SET total_runs = total_runs + ?1, last_status = iif(?1 > 0, ?2, last_status), last_execution = iif(?1 > 0, ?3, last_execution),
			ended_runs = ended_runs + ?4, total_duration_ms = total_duration_ms + ?5, total_credits = total_credits + ?6, last_success = max(last_success, ?7)
			WHERE workspace_id = ?8 AND id = ?9`,
			b.begun, string(b.last), b.lastAt, b.ended, b.duration, b.credits, b.success, b.workspace, b.id); err != nil {
			return err
		}
		for _, m := range b.later {
			if _, err := w.c.exec(`UPDATE workflows SET last_status = ? WHERE workspace_id = ? AND id = ? AND last_execution <= ?`,
				string(m.to), b.workspace, b.id, m.created); err != nil {
				return err
			}
		}
	}
	return nil
}

// summary is what the committer has to know of an execution to change its summary.
type summary struct {
	// known says that the rest is there.
	known    bool
	workflow string
	status   engine.Status
	duration int64
	credits  float64
	created  int64
	test     bool
}

// summaryOf returns the summary of an execution, which is read if it is not at hand.
func (w *writer) summaryOf(h *head) (*summary, error) {
	if h.summary.known {
		return &h.summary, nil
	}
	var row [6]driver.Value
	found, err := w.c.row(row[:], `SELECT workflow_id, status, duration_ms, credits, created, trigger_type FROM executions WHERE n = ?`, h.n)
	if err != nil || !found {
		return nil, cmp.Or(err, errNoSummary)
	}
	h.summary = summary{true, row[0].(string), engine.Status(row[1].(string)), row[2].(int64), row[3].(float64), row[4].(int64), row[5].(string) == store.TriggerTest}
	return &h.summary, nil
}

// change writes what rows change of a summary, and keeps the statistics of the workflow. A summary that was created with them has
// it already.
func (w *writer) change(workspace string, h *head, rows []*store.Append) error {
	last := lastChange(rows)
	if last == nil {
		return nil
	}
	old, err := w.summaryOf(h)
	if err != nil {
		return err
	}
	if c := last.Change; rows[0].Create == nil {
		if _, err := w.c.exec(`UPDATE executions SET status = ?, final = ?, started = ?, ended = ?, duration_ms = ?, credits = ?, error = ?, error_code = ?, error_node = ?, updated = ? WHERE n = ?`,
			string(c.Status), relational.Flag(c.Status.Final()), c.Started, c.Ended, c.DurationMS, c.Credits, c.Error, c.ErrorCode, c.ErrorNode, last.Time, h.n); err != nil {
			return err
		}
	}
	for _, a := range rows {
		if a.Change != nil {
			w.tally.moves = append(w.tally.moves, old.change(workspace, a.Change, a.Time))
		}
	}
	return nil
}

// change brings what is known of a summary to where a row says it is.
func (s *summary) change(workspace string, c *store.Change, at int64) move {
	m := move{workflow: workflowKey{workspace, s.workflow}, from: s.status, to: c.Status, at: at, created: s.created, test: s.test}
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
