package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"tandem/fault"
	"tandem/store"
	"tandem/store/relational"
	"tandem/store/relational/auditlog"
	"tandem/store/relational/summaries"
	"tandem/store/relational/upkeep"
)

// tables is the database as the rooms of package relational see it.
type tables struct{ db *DB }

// Read implements [relational.Database].
func (m tables) Read(ctx context.Context, f func(relational.Reader) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	c, err := m.db.pool.Acquire(ctx)
	if err != nil {
		return relational.ReadError(ctx, err)
	}
	defer c.Release()
	return f(&reader{db: m.db, conn: c.Conn()})
}

// Write implements [relational.Database]. The entries for the audit log that wait in the context are written in the same transaction,
// unless the function refuses or has changed nothing.
func (m tables) Write(ctx context.Context, f func(relational.Transaction) error) error {
	entries := store.PendingEntries(ctx)
	if len(entries) == 0 {
		return m.WriteQuietly(ctx, f)
	}
	entered := false
	err := m.WriteQuietly(ctx, func(w relational.Transaction) error {
		entered = false
		if err := f(w); err != nil || w.(*transaction).unchanged {
			return err
		}
		entered = true
		return enter(w, entries)
	})
	if err == nil && entered {
		for _, e := range entries {
			e.Written()
		}
	}
	return err
}

// enter writes entries of the audit log.
func enter(w relational.Transaction, entries []*store.PendingEntry) error {
	var last auditlog.Last
	for _, e := range entries {
		if err := auditlog.Enter(w, e.AuditEntry, &last); err != nil {
			return err
		}
	}
	return nil
}

// remove is Write for what removes executions.
func (m tables) remove(ctx context.Context, f func(upkeep.Transaction) error) error {
	return m.Write(ctx, func(w relational.Transaction) error { return f(w.(*transaction)) })
}

// recordsLock is the advisory lock of those who write records: whoever looks at some before changing them is alone with all of them,
// as with a database that has one writer. Starts share it; what else happens to a journal goes without.
const recordsLock = 0x7265636f726473 // "records"

// Transactions that PostgreSQL ends for another's sake are run again, so many times.
const (
	maxRepeats    = 10
	serialization = "40001"
	deadlock      = "40P01"
)

// WriteQuietly implements [relational.Database].
func (m tables) WriteQuietly(ctx context.Context, f func(relational.Transaction) error) error {
	return refusal(m.db.repeat(ctx, func() error {
		return m.db.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, recordsLock); err != nil {
				return err
			}
			return f(&transaction{db: m.db, ctx: ctx, tx: tx})
		})
	}))
}

// repeat runs a transaction again as long as PostgreSQL ends it for another's sake, with growing pauses.
func (db *DB) repeat(ctx context.Context, run func() error) (err error) {
	for n := range maxRepeats {
		err = run()
		e, ok := errors.AsType[*pgconn.PgError](err)
		if !ok || e.Code != serialization && e.Code != deadlock {
			return err
		}
		select {
		case <-time.After(time.Duration(n+1) * 5 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return err
}

// Classes of errors that say that a record itself was refused: what it holds, that it contradicts another, or that it is larger than
// an index takes.
const (
	classData      = "22"
	classIntegrity = "23"
	classLimit     = "54"
)

// refusal puts an error about what a record holds into words.
func refusal(err error) error {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && len(e.Code) == 5 && slices.Contains([]string{classData, classIntegrity, classLimit}, e.Code[:2]) {
		return fault.New(fault.Invalid, "the database does not take this record; it may be too large").WithCause(err)
	}
	return err
}

// reader is a connection that is only read from.
type reader struct {
	db   *DB
	conn *pgx.Conn
}

// Each implements [relational.Reader].
func (r *reader) Each(ctx context.Context, text string, args []any, row func(relational.Scanner) (bool, error)) error {
	values := make([]driver.Value, len(args))
	for i, a := range args {
		if b, ok := a.(bool); ok { // a condition, not a flag
			values[i] = b
			continue
		}
		one, err := relational.Values([]any{a})
		if err != nil {
			return relational.ReadError(ctx, fmt.Errorf("argument %d: %w", i+1, err))
		}
		values[i] = one[0]
	}
	var scan error
	err := r.db.each(ctx, r.conn, text, values, func(record relational.Record) (bool, error) {
		more, err := row(record)
		scan = err
		return more, err
	})
	if err != nil && scan == nil {
		return relational.ReadError(ctx, err)
	}
	return err
}

// Transaction implements [relational.Reader].
func (r *reader) Transaction(ctx context.Context, read func() error) error {
	tx, err := r.conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return relational.ReadError(ctx, err)
	}
	err = read()
	if end := tx.Rollback(context.WithoutCancel(ctx)); err == nil && end != nil {
		err = relational.ReadError(ctx, end)
	}
	return err
}

// querier is a connection or a transaction.
type querier interface {
	Query(ctx context.Context, text string, args ...any) (pgx.Rows, error)
}

// each runs a statement and hands over its rows, until the function has enough.
func (db *DB) each(ctx context.Context, q querier, text string, args []driver.Value, row func(relational.Record) (bool, error)) error {
	translated, err := db.statements.find(text, args)
	if err != nil {
		return err
	}
	rows, err := q.Query(ctx, translated, columns(args)...)
	if err != nil {
		return err
	}
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
	return rows.Err()
}

// transaction is one that writes records. It belongs to one call.
type transaction struct {
	db        *DB
	ctx       context.Context
	tx        pgx.Tx
	tally     summaries.Tally
	unchanged bool
}

// affected is how many rows a statement has changed.
type affected int64

// LastInsertId implements [driver.Result].
func (a affected) LastInsertId() (int64, error) {
	return 0, errors.New("PostgreSQL tells the number of a new row with RETURNING")
}

// RowsAffected implements [driver.Result].
func (a affected) RowsAffected() (int64, error) { return int64(a), nil }

// Exec implements [relational.Transaction].
func (t *transaction) Exec(text string, args ...driver.Value) (driver.Result, error) {
	n, err := t.Change(text, args...)
	return affected(n), err
}

// Change implements [relational.Transaction].
func (t *transaction) Change(text string, args ...driver.Value) (int64, error) {
	translated, err := t.db.statements.find(text, args)
	if err != nil {
		return 0, err
	}
	tag, err := t.tx.Exec(t.ctx, translated, columns(args)...)
	return tag.RowsAffected(), err
}

// Insert implements [relational.Transaction].
func (t *transaction) Insert(text string, args ...driver.Value) (number int64, added bool, err error) {
	var row [1]driver.Value
	if added, err = t.Row(row[:], text, args...); err != nil || !added {
		return 0, false, err
	}
	return row[0].(int64), true, nil
}

// Row implements [relational.Transaction].
func (t *transaction) Row(dest []driver.Value, text string, args ...driver.Value) (found bool, err error) {
	err = t.db.each(t.ctx, t.tx, text, args, func(r relational.Record) (bool, error) {
		found = true
		copy(dest, r)
		return false, nil
	})
	return found, err
}

// Rows implements [relational.Transaction].
func (t *transaction) Rows(columns int, each func([]driver.Value), text string, args ...driver.Value) error {
	return t.db.each(t.ctx, t.tx, text, args, func(r relational.Record) (bool, error) {
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
func (t *transaction) Forget(string, string) {}

// Removed implements [upkeep.Transaction]. Nothing counts them here.
func (t *transaction) Removed(int64, int64) {}

// Execution implements [relational.Transaction].
func (t *transaction) Execution(key relational.Key) (number int64, known bool, err error) {
	var row [1]driver.Value
	if known, err = t.Row(row[:], `SELECT n FROM executions WHERE workspace_id = ? AND id = ?`, key.Workspace, key.ID); err != nil || !known {
		return 0, false, err
	}
	return row[0].(int64), true, nil
}
