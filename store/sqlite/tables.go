package sqlite

import (
	"context"
	"database/sql/driver"

	"tandem/store/relational"
	"tandem/store/relational/upkeep"
)

// tables is the database as its rooms see it.
type tables struct{ db *DB }

// Read implements [relational.Database].
func (m tables) Read(ctx context.Context, f func(relational.Reader) error) error {
	if err := m.db.usable(); err != nil {
		return err
	}
	return m.db.read.Use(ctx, f)
}

// Write implements [relational.Database].
func (m tables) Write(ctx context.Context, f func(relational.Transaction) error) error {
	return m.db.writer.inTransaction(ctx, func(w *writer) error { return f(transaction{w}) })
}

// WriteQuietly implements [relational.Database].
func (m tables) WriteQuietly(ctx context.Context, f func(relational.Transaction) error) error {
	return m.db.writer.commitNext(ctx, func(w *writer) error { return f(transaction{w}) })
}

// remove is Write for what removes executions.
func (m tables) remove(ctx context.Context, f func(upkeep.Transaction) error) error {
	return m.db.writer.inTransaction(ctx, func(w *writer) error { return f(transaction{w}) })
}

// transaction is one of the committer, as the rooms of the store see it.
type transaction struct{ w *writer }

// Exec implements [relational.Transaction].
func (t transaction) Exec(text string, args ...driver.Value) (driver.Result, error) {
	return t.w.c.exec(text, args...)
}

// Change implements [relational.Transaction].
func (t transaction) Change(text string, args ...driver.Value) (int64, error) {
	return t.w.c.change(text, args...)
}

// Insert implements [relational.Transaction].
func (t transaction) Insert(text string, args ...driver.Value) (number int64, added bool, err error) {
	return t.w.c.insert(text, args...)
}

// Row implements [relational.Transaction].
func (t transaction) Row(dest []driver.Value, text string, args ...driver.Value) (bool, error) {
	return t.w.c.row(dest, text, args...)
}

// Rows implements [relational.Transaction].
func (t transaction) Rows(columns int, each func([]driver.Value), text string, args ...driver.Value) error {
	return t.w.c.rows(columns, each, text, args...)
}

// Tables implements [relational.Transaction].
func (t transaction) Tables(column string) (list []string, err error) {
	err = t.w.c.rows(1, func(row []driver.Value) { list = append(list, row[0].(string)) },
		`SELECT m.name FROM sqlite_master m JOIN pragma_table_info(m.name) c ON c.name = ? WHERE m.type = 'table' ORDER BY m.name`, column)
	return list, err
}

// Grow implements [relational.Transaction].
func (t transaction) Grow(bytes int) { t.w.logged += bytes }

// Forget implements [upkeep.Transaction].
func (t transaction) Forget(workspace, execution string) {
	t.w.heads.Forget(executionKey{Workspace: workspace, ID: execution})
}

// Removed implements [upkeep.Transaction].
func (t transaction) Removed(rows, executions int64) {
	t.w.removedRows, t.w.removedExecutions = t.w.removedRows+rows, t.w.removedExecutions+executions
}

// Execution implements [relational.Transaction].
func (t transaction) Execution(key executionKey) (int64, bool, error) {
	h, err := t.w.find(key)
	if err != nil || h == nil {
		return 0, false, err
	}
	return h.N, true, nil
}

// Unchanged implements [relational.Transaction].
func (t transaction) Unchanged() { t.w.unchanged = true }
