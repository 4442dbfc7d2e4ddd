package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"

	sqlite "modernc.org/sqlite"
)

// conn is one connection used by one goroutine, without the pool of database/sql: its locks and conversions would be a
// third of the cost of a row.
type conn struct {
	raw   driver.Conn
	stmts map[string]*stmt
	// writes counts the statements that may have changed something; changed says what of that is kept at hand elsewhere.
	writes  uint64
	changed kept
}

// stmt is a prepared statement with its argument list, which is used again and again.
type stmt struct {
	exec  driver.StmtExecContext
	query driver.StmtQueryContext
	close func() error
	args  []driver.NamedValue
	// changes says what it changes that is kept at hand elsewhere.
	changes kept
}

// dbError is an error of SQLite, as opposed to a refusal of ours.
type dbError struct{ err error }

func (e *dbError) Error() string { return e.err.Error() }
func (e *dbError) Unwrap() error { return e.err }

// harmless says that SQLite refused one statement for what was in it, and undid that statement only.
func (e *dbError) harmless() bool {
	s, ok := errors.AsType[*sqlite.Error](e.err)
	if !ok {
		return false
	}
	switch s.Code() & 0xff {
	case codeTooBig, codeConstraint, codeMismatch:
		return true
	}
	return false
}

// constraint says that the row contradicts another.
func (e *dbError) constraint() bool {
	s, ok := errors.AsType[*sqlite.Error](e.err)
	return ok && s.Code()&0xff == codeConstraint
}

func openConn(path string, pragmas ...string) (*conn, error) {
	raw, err := new(sqlite.Driver).Open(dsn(path, "immediate", pragmas...))
	if err != nil {
		return nil, err
	}
	return &conn{raw: raw, stmts: map[string]*stmt{}}, nil
}

// version is a number that changes when the database does, by this connection or by another, as far as this connection has
// noticed: it does at the beginning of a transaction.
func (c *conn) version() (uint32, error) {
	control, ok := c.raw.(sqlite.FileControl)
	if !ok {
		return 0, fmt.Errorf("the driver's connection %T cannot tell whether the database has changed", c.raw)
	}
	return control.FileControlDataVersion("main")
}

// prepare returns the statement of a text. It stays prepared until the connection is closed.
func (c *conn) prepare(text string) (*stmt, error) {
	if s, ok := c.stmts[text]; ok {
		return s, nil
	}
	p, err := c.raw.Prepare(steady(text))
	if err != nil {
		return nil, &dbError{fmt.Errorf("prepare %q: %w", text, err)}
	}
	exec, ok1 := p.(driver.StmtExecContext)
	query, ok2 := p.(driver.StmtQueryContext)
	if !ok1 || !ok2 {
		return nil, &dbError{errors.Join(fmt.Errorf("the driver's statement %T lacks what is needed", p), p.Close())}
	}
	s := &stmt{exec: exec, query: query, close: p.Close, changes: changesOf(text)}
	c.stmts[text] = s
	return s, nil
}

// bind fills the argument list. Values are int64, float64, string, []byte or nil.
func (s *stmt) bind(args []driver.Value) []driver.NamedValue {
	s.args = s.args[:0]
	for i, v := range args {
		if b, ok := v.([]byte); ok && b == nil {
			v = []byte{} // nil would be NULL
		}
		s.args = append(s.args, driver.NamedValue{Ordinal: i + 1, Value: v})
	}
	return s.args
}

// exec runs a statement and returns what it did.
func (c *conn) exec(text string, args ...driver.Value) (driver.Result, error) {
	s, err := c.prepare(text)
	if err != nil {
		return nil, err
	}
	c.writes++
	c.changed |= s.changes
	r, err := s.exec.ExecContext(context.Background(), s.bind(args))
	clear(s.args) // they may be large
	if err != nil {
		return nil, &dbError{err}
	}
	return r, nil
}

// change runs a statement and returns how many rows it changed.
func (c *conn) change(text string, args ...driver.Value) (int64, error) {
	r, err := c.exec(text, args...)
	if err != nil {
		return 0, err
	}
	n, err := r.RowsAffected()
	if err != nil {
		return 0, &dbError{err}
	}
	return n, nil
}

// insert runs a statement and returns the id of the new row.
func (c *conn) insert(text string, args ...driver.Value) (int64, error) {
	r, err := c.exec(text, args...)
	if err != nil {
		return 0, err
	}
	n, err := r.LastInsertId()
	if err != nil {
		return 0, &dbError{err}
	}
	return n, nil
}

// row reads the first row of a statement into dest, whose length is that of the row, and says whether there was one.
func (c *conn) row(dest []driver.Value, text string, args ...driver.Value) (bool, error) {
	s, err := c.prepare(text)
	if err != nil {
		return false, err
	}
	rows, err := s.query.QueryContext(context.Background(), s.bind(args))
	clear(s.args)
	if err != nil {
		return false, &dbError{err}
	}
	err = rows.Next(dest)
	if closeErr := rows.Close(); closeErr != nil {
		return false, &dbError{closeErr}
	}
	switch {
	case errors.Is(err, io.EOF):
		return false, nil
	case err != nil:
		return false, &dbError{err}
	}
	return true, nil
}

// rows reads all rows of a statement, whose columns are so many, and hands each over for the time of the call.
func (c *conn) rows(columns int, each func([]driver.Value), text string, args ...driver.Value) error {
	s, err := c.prepare(text)
	if err != nil {
		return err
	}
	rows, err := s.query.QueryContext(context.Background(), s.bind(args))
	clear(s.args)
	if err != nil {
		return &dbError{err}
	}
	row := make([]driver.Value, columns)
	for {
		if err = rows.Next(row); err != nil {
			break
		}
		each(row)
	}
	if closeErr := rows.Close(); closeErr != nil {
		return &dbError{closeErr}
	}
	if !errors.Is(err, io.EOF) {
		return &dbError{err}
	}
	return nil
}

func (c *conn) close() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.close())
	}
	return errors.Join(append(errs, c.raw.Close())...)
}
