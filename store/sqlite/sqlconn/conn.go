// Package sqlconn has connections to a SQLite database: statements stay prepared, rows are read into what they are for. It does without
// the pool of database/sql, whose locks and conversions would be a third of the cost of a row.
//
// It knows no table and decides nothing about transactions. The store and its rooms import it.
package sqlconn

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"

	sqlite "modernc.org/sqlite"
)

// Conn is one connection, used by one goroutine at a time.
type Conn struct {
	// Classify says of the text of a statement what the code that opened the connection wants to know of it, as [Statement.Class]. It is
	// asked once, when the statement is prepared; nil: nothing is.
	Classify func(text string) uint8

	raw   driver.Conn
	stmts map[string]*Statement
}

// Statement is a prepared statement with its argument list, which is used again and again.
type Statement struct {
	// Class is what [Conn.Classify] has said of it.
	Class uint8

	exec  driver.StmtExecContext
	query driver.StmtQueryContext
	close func() error
	args  []driver.NamedValue
}

// Open connects to a database, with settings for the connection.
func Open(path string, pragmas ...string) (*Conn, error) {
	raw, err := new(sqlite.Driver).Open(Address(path, "immediate", pragmas...))
	if err != nil {
		return nil, err
	}
	return &Conn{raw: raw, stmts: map[string]*Statement{}}, nil
}

// Address is that of a database with settings for each connection. Transactions of writers are immediate: they wait for the lock at
// their beginning, where waiting is possible.
func Address(path, lock string, pragmas ...string) string {
	q := url.Values{"_txlock": {lock}, "_pragma": append([]string{"busy_timeout(10000)"}, pragmas...)}
	return "file:" + (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath() + "?" + q.Encode()
}

// Version is a number that changes when the database does, by this connection or by another, as far as this connection has
// noticed: it does at the beginning of a transaction.
func (c *Conn) Version() (uint32, error) {
	control, ok := c.raw.(sqlite.FileControl)
	if !ok {
		return 0, fmt.Errorf("the driver's connection %T cannot tell whether the database has changed", c.raw)
	}
	return control.FileControlDataVersion("main")
}

// Prepare returns the statement of a text. It stays prepared until the connection is closed.
func (c *Conn) Prepare(text string) (*Statement, error) {
	if s, ok := c.stmts[text]; ok {
		return s, nil
	}
	p, err := c.raw.Prepare(steady(text))
	if err != nil {
		return nil, fmt.Errorf("prepare %q: %w", text, err)
	}
	exec, ok1 := p.(driver.StmtExecContext)
	query, ok2 := p.(driver.StmtQueryContext)
	if !ok1 || !ok2 {
		return nil, errors.Join(fmt.Errorf("the driver's statement %T lacks what is needed", p), p.Close())
	}
	s := &Statement{exec: exec, query: query, close: p.Close}
	if c.Classify != nil {
		s.Class = c.Classify(text)
	}
	c.stmts[text] = s
	return s, nil
}

// bind fills the argument list. Values are int64, float64, string, []byte or nil.
func (s *Statement) bind(args []driver.Value) []driver.NamedValue {
	s.args = s.args[:0]
	for i, v := range args {
		if b, ok := v.([]byte); ok && b == nil {
			v = []byte{} // nil would be NULL
		}
		s.args = append(s.args, driver.NamedValue{Ordinal: i + 1, Value: v})
	}
	return s.args
}

// Exec runs the statement and returns what it did.
func (s *Statement) Exec(args ...driver.Value) (driver.Result, error) {
	r, err := s.exec.ExecContext(context.Background(), s.bind(args))
	clear(s.args) // they may be large
	return r, err
}

// Row reads the first row of a statement into dest, whose length is that of the row, and says whether there was one.
func (c *Conn) Row(dest []driver.Value, text string, args ...driver.Value) (bool, error) {
	s, err := c.Prepare(text)
	if err != nil {
		return false, err
	}
	rows, err := s.query.QueryContext(context.Background(), s.bind(args))
	clear(s.args)
	if err != nil {
		return false, err
	}
	err = rows.Next(dest)
	if closeErr := rows.Close(); closeErr != nil {
		return false, closeErr
	}
	switch {
	case errors.Is(err, io.EOF):
		return false, nil
	case err != nil:
		return false, err
	}
	return true, nil
}

// Rows reads all rows of a statement, whose columns are so many, and hands each over for the time of the call.
func (c *Conn) Rows(columns int, each func([]driver.Value), text string, args ...driver.Value) error {
	s, err := c.Prepare(text)
	if err != nil {
		return err
	}
	rows, err := s.query.QueryContext(context.Background(), s.bind(args))
	clear(s.args)
	if err != nil {
		return err
	}
	row := make([]driver.Value, columns)
	for {
		if err = rows.Next(row); err != nil {
			break
		}
		each(row)
	}
	if closeErr := rows.Close(); closeErr != nil {
		return closeErr
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// Close lets go of all statements and ends the connection.
func (c *Conn) Close() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.close())
	}
	return errors.Join(append(errs, c.raw.Close())...)
}

// Raw is the connection as the driver has it, for what this package does not offer.
func (c *Conn) Raw() driver.Conn { return c.raw }

// Primary result codes of SQLite.
const (
	CodePerm       = 3
	CodeReadOnly   = 8
	CodeIOError    = 10
	CodeCorrupt    = 11
	CodeFull       = 13
	CodeCantOpen   = 14
	CodeTooBig     = 18
	CodeConstraint = 19
	CodeMismatch   = 20
	CodeNotADB     = 26
)

// Code is the primary result code of an error of SQLite; zero for other errors.
func Code(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}
