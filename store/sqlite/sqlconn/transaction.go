package sqlconn

import (
	"context"
	"database/sql/driver"
)

// Database is what a room of the store keeps its tables in. How a transaction comes about is not the room's concern.
type Database interface {
	// Read hands a connection over that is only read from.
	Read(ctx context.Context, f func(*Conn) error) error
	// Write runs a function in the next transaction and returns when that is on disk. The function may run twice.
	Write(ctx context.Context, f func(Transaction) error) error
}

// Transaction is one that goes on. An error of its methods ends it.
type Transaction interface {
	// Exec runs a statement, Change says how many rows it has changed, and Insert which id the new row has.
	Exec(text string, args ...driver.Value) (driver.Result, error)
	Change(text string, args ...driver.Value) (int64, error)
	Insert(text string, args ...driver.Value) (int64, error)
	// Row reads the first row of a statement, and says whether there was one; Rows hands over each of them for the time of the call.
	Row(dest []driver.Value, text string, args ...driver.Value) (bool, error)
	Rows(columns int, each func([]driver.Value), text string, args ...driver.Value) error
	// Grow says that the transaction writes about so many bytes besides its rows.
	Grow(bytes int)
}
