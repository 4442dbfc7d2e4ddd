package sqlite

import (
	"database/sql/driver"

	"tandem/store/sqlite/sqlconn"
)

// conn is the connection of the committer. It counts what may have changed something, and tells errors of SQLite from refusals of
// ours.
type conn struct {
	*sqlconn.Conn
	// writes counts the statements that may have changed something; changed says what of that is kept at hand elsewhere.
	writes  uint64
	changed kept
}

// dbError is an error of SQLite, as opposed to a refusal of ours.
type dbError struct{ err error }

func (e *dbError) Error() string { return e.err.Error() }
func (e *dbError) Unwrap() error { return e.err }

// harmless says that SQLite refused one statement for what was in it, and undid that statement only.
func (e *dbError) harmless() bool {
	switch sqlconn.Code(e.err) {
	case sqlconn.CodeTooBig, sqlconn.CodeConstraint, sqlconn.CodeMismatch:
		return true
	}
	return false
}

// constraint says that the row contradicts another.
func (e *dbError) constraint() bool { return sqlconn.Code(e.err) == sqlconn.CodeConstraint }

func openConn(path string, pragmas ...string) (*conn, error) {
	c, err := sqlconn.Open(path, pragmas...)
	if err != nil {
		return nil, err
	}
	c.Classify = func(text string) uint8 { return uint8(changesOf(text)) }
	return &conn{Conn: c}, nil
}

// exec runs a statement and returns what it did.
func (c *conn) exec(text string, args ...driver.Value) (driver.Result, error) {
	s, err := c.Prepare(text)
	if err != nil {
		return nil, &dbError{err}
	}
	c.writes++
	c.changed |= kept(s.Class)
	r, err := s.Exec(args...)
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

// insert runs a statement that ends with RETURNING a number, and returns that of the new row, if there is one.
func (c *conn) insert(text string, args ...driver.Value) (number int64, added bool, err error) {
	s, err := c.Prepare(text)
	if err != nil {
		return 0, false, &dbError{err}
	}
	c.writes++
	c.changed |= kept(s.Class)
	var row [1]driver.Value
	if added, err = c.row(row[:], text, args...); err != nil || !added {
		return 0, false, err
	}
	return row[0].(int64), true, nil
}

// row reads the first row of a statement into dest, whose length is that of the row, and says whether there was one.
func (c *conn) row(dest []driver.Value, text string, args ...driver.Value) (bool, error) {
	ok, err := c.Row(dest, text, args...)
	if err != nil {
		return false, &dbError{err}
	}
	return ok, nil
}

// rows reads all rows of a statement, whose columns are so many, and hands each over for the time of the call.
func (c *conn) rows(columns int, each func([]driver.Value), text string, args ...driver.Value) error {
	if err := c.Rows(columns, each, text, args...); err != nil {
		return &dbError{err}
	}
	return nil
}
