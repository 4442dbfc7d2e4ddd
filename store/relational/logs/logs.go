// Package logs has the tables of what executions say while they run.
package logs

import (
	"context"
	"database/sql/driver"

	"tandem/identity"
	"tandem/store"
	"tandem/store/relational"
)

// Logs implements [store.Logs].
type Logs struct{ db relational.Database }

// New are those of a database.
func New(db relational.Database) Logs { return Logs{db} }

// AddTo sets what this package keeps in the stores of a database.
func AddTo(s *store.Stores, db relational.Database) { s.Logs = New(db) }

// Write implements [store.Logs].
func (l Logs) Write(ctx context.Context, p identity.Principal, execution string, lines []store.LogLine) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	key := relational.Key{Workspace: workspace, ID: execution}
	return l.db.Write(ctx, func(w relational.Transaction) error {
		n, known, err := w.Execution(key)
		if err != nil {
			return err
		}
		if !known {
			return store.NotFound("execution", execution)
		}
		return Append(w, workspace, n, lines)
	})
}

// Append keeps lines of the execution that has a number, as long as their activation has room, and counts the rest.
func Append(w relational.Transaction, workspace string, n int64, lines []store.LogLine) error {
	type count struct{ kept, dropped int64 }
	counts := map[string]*count{}
	var order []string
	for i := range lines {
		line := &lines[i]
		c := counts[line.Activation]
		if c == nil {
			c = &count{}
			var row [2]driver.Value
			found, err := w.Row(row[:], `SELECT kept, dropped FROM log_counts WHERE execution = ? AND activation = ?`, n, line.Activation)
			if err != nil {
				return err
			}
			if found {
				*c = count{row[0].(int64), row[1].(int64)}
			}
			counts[line.Activation] = c
			order = append(order, line.Activation)
		}
		if c.kept >= store.MaxLogLines {
			c.dropped++
			continue
		}
		c.kept++
		w.Grow(len(line.Message) + len(line.Context))
		if _, err := w.Exec(`INSERT INTO logs (workspace_id, execution, activation, node_id, time, level, message, context) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
			workspace, n, line.Activation, line.NodeID, line.Time, int64(line.Level), line.Message, []byte(line.Context)); err != nil {
			return err
		}
	}
	for _, activation := range order {
		c := counts[activation]
		if _, err := w.Exec(`INSERT INTO log_counts (execution, activation, workspace_id, kept, dropped) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (execution, activation) DO UPDATE SET kept = excluded.kept, dropped = excluded.dropped`,
			n, activation, workspace, c.kept, c.dropped); err != nil {
			return err
		}
	}
	return nil
}

// Lines implements [store.Logs].
func (l Logs) Lines(ctx context.Context, p identity.Principal, q store.LogQuery) (store.LogPage, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return store.LogPage{}, err
	}
	level := store.Level(-1 << 31)
	if q.MinLevel != nil {
		level = *q.MinLevel
	}
	limit := q.Size()
	lines, err := relational.Query(ctx, l.db, `SELECT id, activation, node_id, time, level, message, context FROM logs
		WHERE execution = (SELECT n FROM executions WHERE workspace_id = ?1 AND id = ?2) AND workspace_id = ?1
		AND id > ?3 AND level >= ?4 AND (?5 = '' OR activation = ?5) AND (?6 = '' OR node_id = ?6) ORDER BY id LIMIT ?7`,
		func(s relational.Scanner) (line store.LogLine, err error) {
			var context []byte
			err = s.Scan(&line.ID, &line.Activation, &line.NodeID, &line.Time, &line.Level, &line.Message, &context)
			if len(context) > 0 {
				line.Context = context
			}
			return line, err
		}, workspace, q.Execution, q.After, int64(level), q.Activation, q.NodeID, limit+1)
	if err != nil {
		return store.LogPage{}, err
	}
	page := store.LogPage{Lines: lines, More: len(lines) > limit}
	page.Lines = lines[:min(len(lines), limit)]
	page.Dropped, err = relational.QueryOne(ctx, l.db, nil, `SELECT coalesce(sum(dropped), 0) FROM log_counts
		WHERE execution = (SELECT n FROM executions WHERE workspace_id = ?1 AND id = ?2) AND workspace_id = ?1 AND (?3 = '' OR activation = ?3)`,
		func(s relational.Scanner) (n int64, err error) { return n, s.Scan(&n) }, workspace, q.Execution, q.Activation)
	return page, err
}
