// Package relational is the seam between what Tandem keeps in tables and the relational database that has them: connections that
// are read from, transactions, rows. Rooms below it have the tables of one concern each, in SQL that every database understands.
//
// Statements have question marks for their arguments (? or ?1), as SQLite does. A driver for another database translates them, and
// makes up for what that database lacks. Flags are integers, times are milliseconds.
package relational

import (
	"context"
	"database/sql/driver"
)

// Database is what a room of the store keeps its tables in. How a transaction comes about is not the room's concern.
type Database interface {
	// Read hands a connection over that is only read from.
	Read(ctx context.Context, f func(Reader) error) error
	// Write runs a function in the next transaction and returns when that is on disk. The function may run twice.
	Write(ctx context.Context, f func(Transaction) error) error
	// WriteQuietly is Write without the entries for the audit log that wait in the context.
	WriteQuietly(ctx context.Context, f func(Transaction) error) error
}

// Key is an execution as callers name it.
type Key struct{ Workspace, ID string }

// Reader is a connection that is only read from, used by one goroutine at a time.
type Reader interface {
	// Each reads the rows of a statement, one after the other, until there are none, the function returns false or the context has
	// ended. What a row holds is valid during the call; texts and bytes that were taken out of it stay as they are. The text must be
	// one of a bounded number: it stays prepared.
	Each(ctx context.Context, text string, args []any, row func(Scanner) (bool, error)) error
	// Transaction lets a function read one state of the database.
	Transaction(ctx context.Context, read func() error) error
}

// Transaction is one that goes on. An error of its methods ends it.
type Transaction interface {
	// Exec runs a statement, and Change says how many rows it has changed. Insert is for a statement that ends with RETURNING and the
	// column that numbers the rows: it says which number the new row has, and whether there is one.
	Exec(text string, args ...driver.Value) (driver.Result, error)
	Change(text string, args ...driver.Value) (int64, error)
	Insert(text string, args ...driver.Value) (number int64, added bool, err error)
	// Row reads the first row of a statement, and says whether there was one; Rows hands over each of them for the time of the call.
	Row(dest []driver.Value, text string, args ...driver.Value) (bool, error)
	Rows(columns int, each func([]driver.Value), text string, args ...driver.Value) error
	// Tables are the names of the tables that have a column, in order.
	Tables(column string) ([]string, error)
	// Grow says that the transaction writes about so many bytes besides its rows.
	Grow(bytes int)
	// Unchanged says that nothing was changed, so that nothing is entered in the audit log.
	Unchanged()
	// Execution is the number of an execution in the database, and whether there is such an execution.
	Execution(key Key) (number int64, known bool, err error)
}
