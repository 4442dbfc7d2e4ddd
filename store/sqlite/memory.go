package sqlite

import (
	"context"
	"database/sql/driver"

	"tandem/store/sqlite/memories"
	"tandem/store/sqlite/sqlconn"
	"tandem/store/sqlite/triggers"
)

// memoryTables is the database as memories see it.
type memoryTables struct{ db *DB }

// Read implements [memories.Database].
func (m memoryTables) Read(ctx context.Context, f func(*sqlconn.Conn) error) error {
	if err := m.db.usable(); err != nil {
		return err
	}
	return m.db.read.Use(ctx, f)
}

// Write implements [memories.Database].
func (m memoryTables) Write(ctx context.Context, f func(memories.Transaction) error) error {
	return m.db.writer.inTransaction(ctx, func(w *writer) error { return f(transaction{w}) })
}

// transaction is one of the committer, as memories see it.
type transaction struct{ w *writer }

// Exec implements [memories.Transaction].
func (t transaction) Exec(text string, args ...driver.Value) (driver.Result, error) {
	return t.w.c.exec(text, args...)
}

// Change implements [memories.Transaction].
func (t transaction) Change(text string, args ...driver.Value) (int64, error) {
	return t.w.c.change(text, args...)
}

// Insert implements [memories.Transaction].
func (t transaction) Insert(text string, args ...driver.Value) (int64, error) {
	return t.w.c.insert(text, args...)
}

// Row implements [memories.Transaction].
func (t transaction) Row(dest []driver.Value, text string, args ...driver.Value) (bool, error) {
	return t.w.c.row(dest, text, args...)
}

// Rows implements [triggers.Transaction].
func (t transaction) Rows(columns int, each func([]driver.Value), text string, args ...driver.Value) error {
	return t.w.c.rows(columns, each, text, args...)
}

// Grow implements [memories.Transaction].
func (t transaction) Grow(bytes int) { t.w.logged += bytes }

// triggerTables is the database as triggers see it.
type triggerTables struct{ memoryTables }

// Write implements [triggers.Database].
func (m triggerTables) Write(ctx context.Context, f func(triggers.Transaction) error) error {
	return m.db.writer.inTransaction(ctx, func(w *writer) error { return f(transaction{w}) })
}
