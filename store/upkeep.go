package store

import (
	"context"
	"time"

	"tandem/identity"
)

// Limits keeps what workspaces are limited to and how long they keep things. Package limits interprets the settings.
type Limits interface {
	// Get returns the settings of the workspace; nil: there are none.
	Get(ctx context.Context, p identity.Principal) (body []byte, err error)
	// Put replaces them.
	Put(ctx context.Context, p identity.Principal, body []byte, now int64) error
	// StartsSince counts the executions of the workspace that a person, a trigger or a fork has started since a time, in Unix
	// milliseconds, and before this process began. Removed ones are included.
	StartsSince(ctx context.Context, p identity.Principal, since int64) (int64, error)
}

// Removal asks for an execution to be removed.
type Removal struct {
	Execution string
	// Traces removes what other records keep of it as well: what the delivery that started it had brought, and the results of its changes
	// of memories. Retention leaves these to their own limits.
	Traces bool
	// Retained says that retention removes it: it is due to be entered in the audit log, see EnterRetained.
	Retained bool
	// Reason is what a delivery says about its execution from then on.
	Reason string
}

// Removed is what a removal has taken away.
type Removed struct {
	// Executions is how many: the one that was named, and those that it had started. Rows is how many rows their journals had.
	Executions, Rows int64
	// IDs are those of the executions.
	IDs []string
}

// RetentionQuery says which executions have been kept long enough.
type RetentionQuery struct {
	// Before is the time, in Unix milliseconds, before which they have ended; zero: whenever they have.
	Before int64
	// Keep is how many of those that have ended are kept, the newest; zero: any number.
	Keep int64
	// After is the cursor that the page before has returned.
	After int64
	Limit int
}

// Usage is what a workspace takes up.
type Usage struct {
	// Executions is how many there are. Journals is how many bytes their journals, snapshots and logs have, Blobs how many the large values
	// beside the database.
	Executions, Journals, Blobs int64
}

// Space is what a data directory takes up, in bytes.
type Space struct {
	// Database is the size of the database file, Free how much of that holds nothing, Log the size of the log beside it.
	Database, Free, Log int64
	// Blobs are the large values, Copies what upgrades have kept of earlier versions of the database.
	Blobs, Copies int64
	// Shrinks says that the database file can become smaller.
	Shrinks bool
}

// Upkeep removes what has been kept long enough and frees the space. It works in short steps, so that others wait only briefly, and if a
// process dies between two steps, the next process finishes the work.
type Upkeep interface {
	// Remove removes an execution that has ended, with those that it has started and all of their records. [ErrConflict] says what
	// still needs it: it has not ended, it belongs to a parent, a fork shares its past, a question is open, some work of it is left.
	// Entries for the audit log are written with the step after which the execution is not found any more.
	Remove(ctx context.Context, p identity.Principal, r Removal) (Removed, error)
	// EnterRetained enters in the audit log how many executions of the workspace were removed as Retained since the last such entry, by
	// whichever process, and returns how many. If there are none, nothing is entered. No removal is counted twice or left out.
	EnterRetained(ctx context.Context, p identity.Principal, entry func(removed int64) AuditEntry) (removed int64, err error)
	// Removable lists executions without a parent that have been kept long enough, the oldest first, and the cursor for the next page;
	// zero: there is none. Remove checks whether something still needs them.
	Removable(ctx context.Context, p identity.Principal, q RetentionQuery) (ids []string, next int64, err error)
	// Finish goes on with removals that were too large for one step, for all workspaces, and says whether there is more to do.
	Finish(ctx context.Context, p identity.Principal) (more bool, err error)
	// RetainDeliveries removes deliveries of the workspace from before a time, and the oldest so that at most keep are left (zero: any
	// number). It leaves those that are yet to be started, and those received since young: a sender may repeat them. It removes a
	// bounded number.
	RetainDeliveries(ctx context.Context, p identity.Principal, before int64, keep int64, young int64) (removed int, err error)
	// Expire removes expired records of all workspaces: invitations and tokens that expired before a time, counts of days that no limit
	// uses any more. It sums up what removed executions have spent. It removes a bounded number.
	Expire(ctx context.Context, p identity.Principal, before time.Time) (removed int, err error)
	// SweepBlobs removes large values of the workspace that nothing refers to. Values that removed records had referred to are always
	// checked, others only if they were stored before orphans (zero: not at all). Values that were stored since young stay: a record that
	// refers to them may be about to be written.
	SweepBlobs(ctx context.Context, p identity.Principal, orphans, young time.Time) (removed int, bytes int64, err error)
	// Compact overwrites what removed rows have left in the database file and its log, and frees pages until no more than a part of the
	// file is free (zero: none).
	Compact(ctx context.Context, p identity.Principal, free float64) error
	// Unclean says whether any process has removed something with its traces since the file was last overwritten like this.
	Unclean(ctx context.Context, p identity.Principal) (bool, error)
	Space(ctx context.Context, p identity.Principal) (Space, error)
	// Usage measures what the workspace takes up. It reads a lot.
	Usage(ctx context.Context, p identity.Principal) (Usage, error)
}
