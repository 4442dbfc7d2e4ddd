package store

import (
	"cmp"
	"context"
	"iter"

	"tandem/fault"
	"tandem/identity"
)

// Row is one append to a journal: facts and the values they refer to, encoded by the host. The store does not interpret it.
type Row struct {
	Seq uint64
	// Time is when it was recorded, in Unix milliseconds.
	Time int64
	Body []byte
}

// Append is one row and everything that commits with it, in one transaction. The execution's workspace is the
// principal's; the Workspace and Execution fields of its parts are ignored.
type Append struct {
	Execution string
	// After is the sequence number of the last row; zero for a new execution. The row gets the next one.
	After uint64
	Time  int64
	Body  []byte
	// Create is set with the first row of an execution.
	Create *Execution
	// Key is the idempotency key of the start, with Create only. When it has been used before, nothing is written and
	// the error is a [*KeyUsedError].
	Key *IdempotencyKey
	// Arrival is the delivery of a trigger that the execution is started for, with Create only. When it has started one before, or the
	// trigger has accepted another with its key, nothing is written and the error is a [*DeliveryKnownError].
	Arrival *Arrival
	// Below is the tree that a new execution belongs to, with Create only. CancelTree stops new executions below this one until it has
	// ended. A store that several processes write to refuses a start beyond the limit ([fault.RecursionLimit]), or below a root that was
	// canceled ([fault.Canceled]); in any other store the process that writes checks that.
	Below      *Below
	CancelTree bool
	// Change is set when the summary has changed: the status, the end. It is not set for each step.
	Change *Change
	// SetTimers and ClearTimers are the timers that are set and removed. Clearing comes first; setting one that exists moves it.
	SetTimers   []Timer
	ClearTimers []string
	// TakeInbox are the inbox items that the row has made facts of. Their dedup ids stay known.
	TakeInbox []int64
	// Deliver are inbox items for other executions of the workspace: a parent gets the end of its child in the same
	// transaction. An item whose dedup id is known, or whose execution does not exist, is left out.
	Deliver []InboxItem
	// Snapshot replaces the last one.
	Snapshot *Snapshot
	// Logs are lines that nodes wrote.
	Logs []LogLine
	// OpenLedger and SettleLedger are the budget entries of calls that begin and end with this row. Opening one that
	// exists and settling one that is not open change nothing.
	OpenLedger   []LedgerEntry
	SettleLedger []Settlement
	// Ask are questions to people; one whose id exists stays as it is. Each opens a pause under its own id.
	Ask []Interaction
	// Withdraw are the ids of questions whose answers are no longer needed. One that has ended stays as it is; a pending one
	// becomes cancelled, its pause too, and is due, so that people are notified.
	Withdraw []string
	// Requesters are users who have requested something of the execution: they are added to the requesters of its pending
	// questions, and of those of the executions below it.
	Requesters []string
	// Pause and Resume are for operators. Resume names no pause: it ends the active one with reason operator, if there is
	// one, also that of the same append. A Pause ends one that is still active: an execution has one such pause at a time.
	Pause  *Pause
	Resume *PauseEnd
	// PauseBelow and ResumeBelow are the pauses of executions below that wait for people. One that begins again goes on.
	PauseBelow  []Pause
	ResumeBelow []PauseEnd
}

// Below is the root of the tree that a new execution belongs to, and how many executions below it may be open.
type Below struct {
	Root  string
	Limit int
}

// Refuse returns an error if one more execution must not begin below the root: too many are open, or the root was canceled.
func (b Below) Refuse(open int, canceled bool) error {
	switch {
	case canceled:
		return fault.Newf(fault.Canceled, "execution %q, which this one would belong to, was canceled", b.Root)
	case open >= b.Limit:
		return fault.Newf(fault.RecursionLimit, "execution %q has %d executions below it that have not ended, and more are not started; start fewer sub-workflows at once", b.Root, open)
	}
	return nil
}

// Check refuses an append that cannot be right, before a driver does anything with it.
func (a *Append) Check() error {
	switch {
	case a.Execution == "":
		return fault.New(fault.Invalid, "append: no execution named")
	case a.After == 0 && a.Create == nil:
		return fault.Newf(fault.Invalid, "append to execution %q: the first row comes with its summary", a.Execution)
	case a.After != 0 && a.Create != nil:
		return fault.Newf(fault.Invalid, "append to execution %q: only the first row comes with a summary to create", a.Execution)
	case a.Create != nil && a.Create.ID != a.Execution:
		return fault.Newf(fault.Invalid, "append to execution %q: the summary is that of %q", a.Execution, a.Create.ID)
	case a.Key != nil && (a.Create == nil || a.Key.Key == ""):
		return fault.Newf(fault.Invalid, "append to execution %q: an idempotency key belongs to a start and is not empty", a.Execution)
	case a.Below != nil && (a.Create == nil || a.Below.Root == ""):
		return fault.Newf(fault.Invalid, "append to execution %q: a tree is that of a start and has a root", a.Execution)
	case a.Arrival != nil && (a.Create == nil || a.Arrival.Delivery.ID == ""):
		return fault.Newf(fault.Invalid, "append to execution %q: a delivery belongs to a start and has an id", a.Execution)
	case a.Snapshot != nil && a.Snapshot.Seq > a.After+1:
		return fault.Newf(fault.Invalid, "append to execution %q: a snapshot of row %d cannot be taken at row %d", a.Execution, a.Snapshot.Seq, a.After+1)
	case a.Pause != nil && (a.Pause.ID == "" || a.Pause.Reason != PauseOperator):
		return fault.Newf(fault.Invalid, "append to execution %q: a pause needs an id, and is an operator's", a.Execution)
	}
	return a.checkPeople()
}

// checkPeople checks what people are asked, and the pauses for them.
func (a *Append) checkPeople() error {
	for n := range a.PauseBelow {
		if a.PauseBelow[n].ID == "" || a.PauseBelow[n].Reason != PauseHuman {
			return fault.Newf(fault.Invalid, "append to execution %q: a pause that an execution below makes needs an id, and is for people", a.Execution)
		}
	}
	for n := range a.Ask {
		if i := &a.Ask[n]; i.ID == "" || i.Status != InteractionPending && i.Status != "" {
			return fault.Newf(fault.Invalid, "append to execution %q: a question needs an id and begins as pending, not as %q", a.Execution, i.Status)
		}
	}
	return nil
}

// CheckRows is [Append.Check] for rows that are appended together.
func CheckRows(rows []*Append) error {
	if len(rows) == 0 {
		return fault.New(fault.Invalid, "append: no row given")
	}
	for i, a := range rows {
		if err := a.Check(); err != nil {
			return err
		}
		if i > 0 && (a.Execution != rows[0].Execution || a.After != rows[i-1].After+1) {
			return fault.Newf(fault.Invalid, "append to execution %q: rows that are appended together follow each other", rows[0].Execution)
		}
	}
	return nil
}

// Timer is a durable timer of an execution.
type Timer struct {
	Workspace string
	Execution string
	ID        string
	// Until is in Unix milliseconds.
	Until int64
}

// Compare orders timers by time, then by workspace, execution and id.
func (t Timer) Compare(other Timer) int {
	return cmp.Or(cmp.Compare(t.Until, other.Until), cmp.Compare(t.Workspace, other.Workspace), cmp.Compare(t.Execution, other.Execution),
		cmp.Compare(t.ID, other.ID))
}

// Snapshot is an execution's state as of a row.
type Snapshot struct {
	Seq  uint64
	Body []byte
}

// Journal has the rows of executions: everything else about them follows from these.
type Journal interface {
	// Append adds a row, or several of one execution that follow each other, all or none. It returns when they are on disk,
	// or when it is certain that they will not be: a context that ends in between does not end the wait. [ErrConflict]
	// means that the journal has other rows: another process owns the execution, or has owned it.
	Append(ctx context.Context, p identity.Principal, rows ...*Append) error
	// Rows reads the rows after a sequence number, in order. The loop may call the store. An execution without rows, or
	// of another workspace, has none.
	Rows(ctx context.Context, p identity.Principal, execution string, after uint64) iter.Seq2[Row, error]
	// LastSnapshot returns the newest snapshot, if there is one.
	LastSnapshot(ctx context.Context, p identity.Principal, execution string) (Snapshot, bool, error)
}

// InboxItem is something from outside for an execution: an answer, a signal, an operator's action. It is kept until a
// row has made a fact of it.
type InboxItem struct {
	ID        int64
	Execution string
	// Dedup is the sender's id of it: a second item of the same execution with the same one is not stored, also after
	// the first was taken. Empty: none.
	Dedup string
	Kind  string
	Time  int64
	Body  []byte
}

// Inbox is where everything from outside waits for the owner of an execution.
type Inbox interface {
	// Deliver stores an item and returns when it is on disk. It says whether an item with the same dedup id was there,
	// and then returns the id of that one. [ErrNotFound]: there is no such execution.
	Deliver(ctx context.Context, p identity.Principal, item InboxItem) (id int64, duplicate bool, err error)
	// Pending lists the items that no row has taken yet, oldest first.
	Pending(ctx context.Context, p identity.Principal, execution string) ([]InboxItem, error)
	// PendingExecutions lists the executions that have such items, which a starting process looks at first. Tandem
	// itself may ask for all workspaces.
	PendingExecutions(ctx context.Context, p identity.Principal) ([]Ref, error)
}

// Ref names an execution.
type Ref struct {
	Workspace string
	Execution string
}

// Timers is the index of all timers of a workspace, or, for Tandem itself, of all.
type Timers interface {
	// Upcoming lists timers in order of time, then workspace, execution and id, after the given one (the zero Timer: from
	// the first). It returns at most limit of them.
	Upcoming(ctx context.Context, p identity.Principal, after Timer, limit int) ([]Timer, error)
	// Of lists the timers of an execution in order of time, then id; none if there is no such execution.
	Of(ctx context.Context, p identity.Principal, execution string) ([]Timer, error)
	// Clear removes timers of an execution that no row will remove: those that nothing waits for. A timer that does not
	// exist is ignored. [ErrNotFound]: there is no such execution.
	Clear(ctx context.Context, p identity.Principal, execution string, ids ...string) error
}
