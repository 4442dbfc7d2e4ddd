package store

import "context"

// Fresh says that an execution has rows up to a number.
type Fresh struct {
	Ref
	Seq uint64
}

// News tells what is appended to the database, by whichever process: it is for those who follow executions that another process owns.
type News interface {
	// Listen calls back after each commit with the executions that have new rows, until the context ends, which is its error. Without a list anything may
	// have been missed: whoever follows an execution reads its journal after the last row it knows. It begins with such a call.
	Listen(ctx context.Context, told func([]Fresh)) error
}
