package route

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"tandem/identity"
	"tandem/store"
	"tandem/text"
)

// changesNothing marks an operation that is not a GET and changes nothing all the same.
const changesNothing = "x-changes-nothing"

// ChangesNothing says of an operation that is not a GET that it changes nothing, so that it leaves no entry in the audit log. What other
// requests it leads to leave their own.
func ChangesNothing(op huma.Operation) huma.Operation {
	if op.Extensions == nil {
		op.Extensions = map[string]any{}
	}
	op.Extensions[changesNothing] = true
	return op
}

// Audits says whether a successful call of an operation leaves an entry in the audit log: every one that is not a GET does, unless it is
// marked with [ChangesNothing].
func Audits(op *huma.Operation) bool {
	switch op.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	}
	nothing, _ := op.Extensions[changesNothing].(bool)
	return !nothing
}

// actionOf makes the name of an action from the id of an operation: create-user is user.create.
func actionOf(operation string) string {
	verb, object, ok := strings.Cut(operation, "-")
	if !ok {
		return operation
	}
	return strings.ReplaceAll(object, "-", "_") + "." + verb
}

// drafted begins the entry of a request: who asks and from where, and what the operation says by itself about what is done.
func (s *Router) drafted(ctx context.Context, p identity.Principal, op *huma.Operation, objectID string) context.Context {
	if !Audits(op) {
		return ctx
	}
	return store.WithAuditDraft(ctx, &store.AuditDraft{AuditEntry: s.EntryOf(ctx, p, actionOf(op.OperationID), objectID)})
}

// maxAgent is how many bytes of what a program says it is called are kept.
const maxAgent = 200

// origin is an entry that knows when and from where.
func (s *Router) origin(ctx context.Context) store.AuditEntry {
	e := store.AuditEntry{Time: s.NowMS()}
	if v := visitOf(ctx); v != nil {
		if e.Address = clientAddress(v.request, s.o.Proxies); e.Address == v.request.RemoteAddr {
			e.Address = "" // it is not an address: a caller in this process, or beside it
		}
		e.Agent = text.Head(strings.ToValidUTF8(v.request.UserAgent(), ""), maxAgent)
	}
	return e
}

// WithOrigin lets what is done under a context be entered with when and from where it was asked for. It is for pages without a token: who
// acts is for them to find out.
func (s *Router) WithOrigin(ctx context.Context) context.Context {
	return store.WithAuditDraft(ctx, &store.AuditDraft{AuditEntry: s.origin(ctx)})
}

// EntryOf is the entry of what somebody does under a context, for those that belong to no change.
func (s *Router) EntryOf(ctx context.Context, p identity.Principal, action, id string) store.AuditEntry {
	e := s.origin(ctx)
	e.Workspace, e.User, e.Means, e.Action, e.ObjectID = p.Workspace, p.User, p.Means, action, id
	e.Object, _, _ = strings.Cut(action, ".")
	return e
}

// Settle enters what was done under a context, if the handler has not: in a transaction of its own, before the caller is answered.
func (s *Router) Settle(ctx context.Context) error {
	d := store.AuditDraftOf(ctx)
	if d == nil || d.Settled() {
		return nil
	}
	return s.Enter(ctx, d.AuditEntry)
}

// Enter adds an entry that belongs to no change of a store.
func (s *Router) Enter(ctx context.Context, e store.AuditEntry) error {
	return s.o.Audit.Enter(ctx, identity.System(e.Workspace), e)
}

// Audited returns a context whose next change of a store is entered in the audit log, see [store.Audited]. Action is OBJECT.VERB. Before
// and after say what it was and what it is, in short and without secrets; either may be nil.
func Audited(ctx context.Context, action, id string, before, after any) context.Context {
	object, _, _ := strings.Cut(action, ".")
	return store.Audited(ctx, store.AuditEntry{Action: action, Object: object, ObjectID: id, Detail: store.AuditChange(before, after)})
}
