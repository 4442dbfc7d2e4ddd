package store

import (
	"context"
	"encoding/json"
	"iter"
	"strings"
	"sync/atomic"

	"tandem/fault"
	"tandem/identity"
)

// AuditOutcome says whether an action was done or refused.
type AuditOutcome string

// The outcomes. Refusals are recorded of logins.
const (
	AuditDone    AuditOutcome = "done"
	AuditRefused AuditOutcome = "refused"
)

// AuditEntry is one line of the audit log: who did what, when, from where. It never holds a secret.
type AuditEntry struct {
	Workspace string
	// Seq orders the entries of a database and is never used twice. The store sets it.
	Seq int64
	// Time is in Unix milliseconds.
	Time int64
	// User is who acted and Means how they proved their identity. Empty: it is not known, as with a login that was refused.
	User  string
	Means identity.Means
	// Address and Agent are where the request came from; empty for what did not come by the network.
	Address string
	Agent   string
	// Action is what was done, as OBJECT.VERB: workflow.update. Object and ObjectID name what it was done to.
	Action   string
	Object   string
	ObjectID string
	Outcome  AuditOutcome
	// Detail is a JSON object with what changed, in short; empty: there is nothing to add.
	Detail json.RawMessage
}

// MaxAuditDetail is how many bytes of detail an entry has at most.
const MaxAuditDetail = 4096

// AuditQuery says which entries are wanted. Empty fields do not narrow it.
type AuditQuery struct {
	User     string
	Object   string
	ObjectID string
	// Action is a whole action, or, when it ends with a dot, all that begin with it.
	Action  string
	Outcome AuditOutcome
	// Since and Until bound the time, in Unix milliseconds: at Since or later, before Until.
	Since, Until int64
	// Before bounds the sequence numbers from above: with that of the last entry of a page it is the next page.
	Before int64
	// Limit is 20 when zero and 500 at most; [Audit.All] ignores it.
	Limit int
}

// Audit keeps the audit log. Entries are added and read; none is ever changed, and only [Audit.Retain] removes any.
//
// Entries that belong to a change are written in the transaction of the change, see [Audited].
type Audit interface {
	// Enter adds an entry that belongs to no other change. The workspace is the principal's.
	Enter(ctx context.Context, p identity.Principal, e AuditEntry) error
	// List returns a page, the newest first.
	List(ctx context.Context, p identity.Principal, q AuditQuery) ([]AuditEntry, error)
	// All reads everything that a query finds, the oldest first, without holding it in memory.
	All(ctx context.Context, p identity.Principal, q AuditQuery) iter.Seq2[AuditEntry, error]
	// Retain removes the entries of the workspace from before a time, and the oldest so that at most keep are left (zero: any number).
	// In the same transaction it enters how many were removed, up to which, and by whose rule. It removes a bounded number at a time
	// and returns how many.
	Retain(ctx context.Context, p identity.Principal, before int64, keep int, now int64) (removed int, err error)
}

// auditKey is the key of a context under which entries wait to be written with the next change, see [Audited]. draftKey is that of the
// [AuditDraft].
type (
	auditKey struct{}
	draftKey struct{}
)

// AuditDraft is what the route knows about a request before it has changed anything: who asks, how they proved their identity, and from
// where. The code that makes the change says what it is, with [Audited].
type AuditDraft struct {
	AuditEntry
	settled atomic.Bool
}

// Settled says that an entry was written for the request, or that it changed nothing.
func (d *AuditDraft) Settled() bool { return d.settled.Load() }

// WithAuditDraft adds a draft to a context.
func WithAuditDraft(ctx context.Context, d *AuditDraft) context.Context {
	return context.WithValue(ctx, draftKey{}, d)
}

// AuditDraftOf returns the draft of a context; nil: there is none.
func AuditDraftOf(ctx context.Context) *AuditDraft {
	d, _ := ctx.Value(draftKey{}).(*AuditDraft)
	return d
}

// NothingToAudit says that what was asked for under a context was done before, or changed nothing.
func NothingToAudit(ctx context.Context) {
	if d := AuditDraftOf(ctx); d != nil {
		d.settled.Store(true)
	}
}

// PendingEntry is an entry that is written with the next change.
type PendingEntry struct {
	AuditEntry
	draft   *AuditDraft
	written atomic.Bool
}

// Written says that the entry is on disk. A driver calls it once the transaction is.
func (e *PendingEntry) Written() {
	e.written.Store(true)
	if e.draft != nil {
		e.draft.settled.Store(true)
	}
}

// Audited returns a context whose next change of a store writes an entry, in the same transaction: either both are on disk or neither is.
// The entry says what is changed; who asked and from where comes from the draft, if there is one, and from the entry otherwise. A change
// that is refused writes nothing.
func Audited(ctx context.Context, e AuditEntry) context.Context {
	d := AuditDraftOf(ctx)
	if d != nil {
		e = d.complete(e)
	}
	if e.Outcome == "" {
		e.Outcome = AuditDone
	}
	return context.WithValue(ctx, auditKey{}, []*PendingEntry{{AuditEntry: e, draft: d}})
}

// complete adds what the draft has. A user whom the entry names counts: a link and a channel know people whom the route does not.
func (d *AuditDraft) complete(e AuditEntry) AuditEntry {
	if e.User == "" && e.Means == (identity.Means{}) {
		e.User, e.Means = d.User, d.Means
	}
	if e.Workspace == "" {
		e.Workspace = d.Workspace
	}
	if e.Time == 0 {
		e.Time = d.Time
	}
	e.Address, e.Agent = d.Address, d.Agent
	return e
}

// PendingEntries returns the entries that the next change under a context writes. Those that were written are left out.
func PendingEntries(ctx context.Context) (pending []*PendingEntry) {
	all, _ := ctx.Value(auditKey{}).([]*PendingEntry)
	for _, e := range all {
		if !e.written.Load() {
			pending = append(pending, e)
		}
	}
	return pending
}

// WithEntries is a context whose next change writes the entries, which come from the context of a request. It is for work that is done
// for a request elsewhere.
func WithEntries(ctx context.Context, entries []*PendingEntry) context.Context {
	if len(entries) == 0 {
		return ctx
	}
	return context.WithValue(ctx, auditKey{}, entries)
}

// WithoutEntries is a context whose changes write no entry. It is for preparations of the change that the entry is about.
func WithoutEntries(ctx context.Context) context.Context {
	if len(PendingEntries(ctx)) == 0 {
		return ctx
	}
	return context.WithValue(ctx, auditKey{}, []*PendingEntry(nil))
}

// AuditedBy returns a context whose next change is entered in the audit log as that of a principal who did not use a route of the API. The
// action begins with the object.
func AuditedBy(ctx context.Context, p identity.Principal, action, id string, after any) context.Context {
	object, _, _ := strings.Cut(action, ".")
	return Audited(ctx, AuditEntry{Workspace: p.Workspace, User: p.User, Means: p.Means, Action: action, Object: object, ObjectID: id,
		Detail: AuditChange(nil, after)})
}

// AuditChange is the detail of a change: what it was before and after, in short. Either may be nil.
func AuditChange(before, after any) json.RawMessage {
	return AuditDetail(struct {
		Before any `json:"before,omitempty"`
		After  any `json:"after,omitempty"`
	}{before, after})
}

// AuditDetail is the detail of an entry. If it is too long, it is left out, and the entry says so.
func AuditDetail(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	switch {
	case err != nil:
		return json.RawMessage(`{"left_out":"it cannot be written as JSON"}`)
	case len(raw) > MaxAuditDetail:
		return json.RawMessage(`{"left_out":"it is too long"}`)
	case string(raw) == "{}" || string(raw) == "null":
		return nil
	}
	return raw
}

// Check refuses an entry that lacks a required field.
func (e *AuditEntry) Check() error {
	switch {
	case e.Action == "":
		return fault.New(fault.Invalid, "an entry of the audit log needs an action")
	case len(e.Detail) > MaxAuditDetail:
		return fault.Newf(fault.Invalid, "the detail of %s has more than %d bytes", e.Action, MaxAuditDetail)
	}
	return nil
}
