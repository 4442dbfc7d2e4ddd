package store

import "context"

// Fresh says that an execution has rows up to a number.
type Fresh struct {
	Ref
	Seq uint64
}

// News reports what any process appends to the database. It is for readers of executions that another process owns.
type News interface {
	// Listen calls back after each commit with the executions that have new rows, until the context ends, and returns its error. Without a
	// list anything may have been missed: a reader that follows an execution reads its journal after the last row it knows. The first call
	// is of this kind.
	Listen(ctx context.Context, told func([]Fresh)) error
}

// Wire passes messages between the processes that use a database. They are not stored: a process that does not listen misses them.
type Wire interface {
	// Send sends a message on a channel, of any length.
	Send(ctx context.Context, channel, message string) error
	// Hear calls back with each message on some channels, one after the other, until the context ends, and returns its error. A call
	// without a channel says that messages may have been missed. The first call is of this kind.
	Hear(ctx context.Context, heard func(channel, message string), channels ...string) error
}

// Seal protects messages between processes from others who can read and send messages, too.
type Seal interface {
	// SealMessage makes a message unreadable, and binds it to a context.
	SealMessage(message, context []byte) []byte
	// OpenMessage opens a message that was sealed for the same context; false: it was not, or not by a process with the same key.
	OpenMessage(sealed, context []byte) (message []byte, ok bool)
}
