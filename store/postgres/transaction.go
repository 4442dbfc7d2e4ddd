package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"tandem/store/relational"
)

// transaction is one that writes. It belongs to the committer. What is written waits until something is read, or until the end, and is
// then sent at once: a transaction that only writes is one round trip.
type transaction struct {
	db   *DB
	c    *committer
	ctx  context.Context
	conn *pgx.Conn

	waiting []statement
	// rows are those of journals. They wait by themselves, so that one statement takes all of them.
	rows []journalRow
	// gathered is how often that was done.
	gathered int
	// queued counts the statements and the rows that change something, sent those of them that have left.
	queued, sent int
	// ending says that the end of the transaction may have been sent.
	ending    bool
	unchanged bool
}

// statement is one that waits to be sent. Row is handed what it reads, until it has enough.
type statement struct {
	text string
	args []any
	row  func(relational.Record) (bool, error)
}

// serverError is an error of the server or of the connection to it, as opposed to a refusal of ours. The transaction is over.
type serverError struct{ err error }

func (e *serverError) Error() string { return e.err.Error() }
func (e *serverError) Unwrap() error { return e.err }

// addStatement queues a statement that is in the form of PostgreSQL. It is not counted.
func (t *transaction) addStatement(text string, args ...any) {
	t.waiting = append(t.waiting, statement{text: text, args: args})
}

// enqueue lets a statement of package relational wait.
func (t *transaction) enqueue(text string, args []driver.Value) error {
	translated, err := t.db.statements.find(text, args)
	if err != nil {
		return err
	}
	t.waiting = append(t.waiting, statement{text: translated, args: columns(args)})
	t.queued++
	return nil
}

// mark is a place in the transaction, for undo.
type mark struct{ queued, rows, gathered int }

func (t *transaction) mark() mark { return mark{t.queued, len(t.rows), t.gathered} }

// undo takes back what has been queued since a mark, and says whether it could: none of it has been sent, and no row of it is in a
// statement with others.
func (t *transaction) undo(m mark) bool {
	if t.sent > m.queued || t.gathered > m.gathered {
		return false
	}
	added := len(t.rows) - m.rows
	t.rows = t.rows[:m.rows]
	t.waiting = t.waiting[:len(t.waiting)-(t.queued-m.queued-added)]
	t.queued = m.queued
	return true
}

// look lets a statement wait that reads.
func (t *transaction) look(row func(relational.Record) (bool, error), text string, args ...driver.Value) error {
	t.gather() // what is read may be among them
	translated, err := t.db.statements.find(text, args)
	if err != nil {
		return err
	}
	t.waiting = append(t.waiting, statement{text: translated, args: columns(args), row: row})
	return nil
}

// flush sends what waits, and returns what is said of the last of it.
func (t *transaction) flush() (tag pgconn.CommandTag, err error) {
	if len(t.waiting) == 0 {
		return tag, nil
	}
	var b pgx.Batch
	for _, s := range t.waiting {
		b.Queue(s.text, s.args...)
	}
	list := t.waiting
	t.waiting, t.sent = nil, t.queued
	results := t.conn.SendBatch(t.ctx, &b)
	defer func() {
		if end := results.Close(); err == nil && end != nil {
			err = &serverError{end}
		}
	}()
	for _, s := range list {
		if s.row != nil {
			rows, err := results.Query()
			if err != nil {
				return tag, &serverError{err}
			}
			if err := takeRows(rows, s.row); err != nil {
				return tag, err
			}
			continue
		}
		if tag, err = results.Exec(); err != nil {
			return tag, &serverError{err}
		}
	}
	return tag, nil
}

// takeRows hands rows over until the function has enough. Its own errors are returned as they are, those of the server as such.
func takeRows(rows pgx.Rows, row func(relational.Record) (bool, error)) error {
	defer rows.Close()
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			return err
		}
		record := make(relational.Record, len(values))
		for i, v := range values {
			if record[i], err = plain(v); err != nil {
				return err
			}
		}
		more, err := row(record)
		if err != nil {
			return err
		}
		if !more {
			break
		}
	}
	rows.Close() // an error that comes after the rows is known then
	if err := rows.Err(); err != nil {
		return &serverError{err}
	}
	return nil
}

// result is what is known of a statement that has not been sent: nothing.
type result struct{}

// LastInsertId implements [driver.Result].
func (result) LastInsertId() (int64, error) {
	return 0, errors.New("PostgreSQL tells the number of a new row with RETURNING")
}

// RowsAffected implements [driver.Result].
func (result) RowsAffected() (int64, error) {
	return 0, errors.New("the statement has not been sent yet; Change tells how many rows it has changed")
}

// Exec implements [relational.Transaction].
func (t *transaction) Exec(text string, args ...driver.Value) (driver.Result, error) {
	return result{}, t.enqueue(text, args)
}

// Change implements [relational.Transaction].
func (t *transaction) Change(text string, args ...driver.Value) (int64, error) {
	t.gather()
	if err := t.enqueue(text, args); err != nil {
		return 0, err
	}
	tag, err := t.flush()
	return tag.RowsAffected(), err
}

// Insert implements [relational.Transaction].
func (t *transaction) Insert(text string, args ...driver.Value) (number int64, added bool, err error) {
	t.gather()
	if err := t.enqueue(text, args); err != nil {
		return 0, false, err
	}
	t.waiting[len(t.waiting)-1].row = func(r relational.Record) (bool, error) {
		var ok bool
		if number, ok = r[0].(int64); !ok {
			return false, fmt.Errorf("a row was numbered with a %T", r[0])
		}
		added = true
		return false, nil
	}
	_, err = t.flush()
	return number, added, err
}

// queryRows sends the queued statements and one that reads.
func (t *transaction) queryRows(text string, args []driver.Value, row func(relational.Record) (bool, error)) error {
	if err := t.look(row, text, args...); err != nil {
		return err
	}
	_, err := t.flush()
	return err
}

// Row implements [relational.Transaction].
func (t *transaction) Row(dest []driver.Value, text string, args ...driver.Value) (found bool, err error) {
	err = t.queryRows(text, args, func(r relational.Record) (bool, error) {
		found = true
		copy(dest, r)
		return false, nil
	})
	return found, err
}

// Rows implements [relational.Transaction].
func (t *transaction) Rows(columns int, each func([]driver.Value), text string, args ...driver.Value) error {
	return t.queryRows(text, args, func(r relational.Record) (bool, error) {
		each(r[:columns])
		return true, nil
	})
}

// Tables implements [relational.Transaction].
func (t *transaction) Tables(column string) (list []string, err error) {
	err = t.Rows(1, func(row []driver.Value) { list = append(list, row[0].(string)) },
		`SELECT table_name::text FROM information_schema.columns WHERE table_schema = current_schema() AND column_name = ? ORDER BY 1`, column)
	return list, err
}

// Grow implements [relational.Transaction]. The log of the server is its own concern.
func (t *transaction) Grow(int) {}

// Unchanged implements [relational.Transaction].
func (t *transaction) Unchanged() { t.unchanged = true }

// Forget implements [upkeep.Transaction].
func (t *transaction) Forget(workspace, execution string) {
	t.c.heads.Forget(relational.Key{Workspace: workspace, ID: execution})
}

// Removed implements [upkeep.Transaction]. Nothing counts them here.
func (t *transaction) Removed(int64, int64) {}

// Execution implements [relational.Transaction].
func (t *transaction) Execution(key relational.Key) (number int64, known bool, err error) {
	if h := t.c.heads.Known(key); h != nil {
		return h.N, true, nil
	}
	var row [1]driver.Value
	if known, err = t.Row(row[:], `SELECT n FROM executions WHERE workspace_id = ? AND id = ?`, key.Workspace, key.ID); err != nil || !known {
		return 0, false, err
	}
	return row[0].(int64), true, nil
}
