package postgres

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/jackc/pgx/v5"

	"tandem/fault"
	"tandem/store"
	"tandem/store/relational"
	"tandem/store/relational/auditlog"
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
		return m.db.readError(ctx, err)
	}
	defer c.Release()
	return m.db.readError(ctx, f(&reader{db: m.db, conn: c.Conn()}))
}

// readError tells of a read that has not worked because the database cannot be used, or because no text in it can be what was looked
// for. What else went wrong is as it is.
func (db *DB) readError(ctx context.Context, err error) error {
	switch {
	case codeOf(err) == notText:
		return fault.New(fault.Invalid, "what is looked for is not a text in UTF-8; nothing is stored under it").WithCause(err)
	case err == nil || !isAway(err):
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	if lostConnection(err) {
		db.pool.Reset() // the other connections are likely to be lost as well
	}
	return unavailable(err)
}

// Write implements [relational.Database]. The entries for the audit log that wait in the context are written in the same transaction,
// unless the function refuses or has changed nothing.
func (m tables) Write(ctx context.Context, f func(relational.Transaction) error) error {
	return m.submit(ctx, store.PendingEntries(ctx), func(t *transaction) error { return f(t) })
}

// WriteQuietly implements [relational.Database].
func (m tables) WriteQuietly(ctx context.Context, f func(relational.Transaction) error) error {
	return m.submit(ctx, nil, func(t *transaction) error { return f(t) })
}

// remove is Write for what removes executions.
func (m tables) remove(ctx context.Context, f func(upkeep.Transaction) error) error {
	return m.submit(ctx, store.PendingEntries(ctx), func(t *transaction) error { return f(t) })
}

func (m tables) submit(ctx context.Context, entries []*store.PendingEntry, run func(*transaction) error) error {
	return m.db.committer.submit(ctx, &work{run: run, entries: entries})
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

// each runs a statement and hands over its rows, until the function has enough.
func (db *DB) each(ctx context.Context, conn *pgx.Conn, text string, args []driver.Value, row func(relational.Record) (bool, error)) error {
	translated, err := db.statements.find(text, args)
	if err != nil {
		return err
	}
	rows, err := conn.Query(ctx, translated, columns(args)...)
	if err != nil {
		return &serverError{err}
	}
	return takeRows(rows, row)
}
