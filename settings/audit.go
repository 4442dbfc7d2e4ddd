package settings

import (
	"bufio"
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"tandem/api"
	"tandem/fault"
	"tandem/identity"
	"tandem/payload"
	"tandem/route"
	"tandem/store"
)

// AuditFilter is the part of a request that says which entries are wanted. It is exported for the framework only.
type AuditFilter struct {
	User     string `query:"user_id" maxLength:"320" doc:"who acted"`
	Action   string `query:"action" maxLength:"100" doc:"a whole action, or, ending with a dot, all that begin with it: workflow."`
	Object   string `query:"object" maxLength:"100" doc:"the sort of what it was done to: workflow"`
	ObjectID string `query:"object_id" maxLength:"300"`
	Outcome  string `query:"outcome" enum:"done,refused"`
	Since    int64  `query:"since" minimum:"0" doc:"Unix milliseconds: at this time or later"`
	Until    int64  `query:"until" minimum:"0" doc:"Unix milliseconds: before this time"`
}

func (f AuditFilter) query() store.AuditQuery {
	return store.AuditQuery{User: f.User, Action: f.Action, Object: f.Object, ObjectID: f.ObjectID, Outcome: store.AuditOutcome(f.Outcome),
		Since: f.Since, Until: f.Until}
}

type (
	auditInput struct {
		AuditFilter
		Before   int64 `query:"before" minimum:"0" doc:"only entries with a smaller seq: next_before of the page before"`
		PageSize int   `query:"page_size" minimum:"1" maximum:"500" default:"20"`
	}
	auditOutput struct{ Body api.AuditEntries }
	auditExport struct{ AuditFilter }
	exported    struct {
		Body func(huma.Context)
	}
)

// audit registers the audit log, for admins to read.
func (s *settings) audit() {
	listed := huma.Operation{Method: http.MethodGet, Path: "/audit", OperationID: "list-audit",
		Summary: "Read the audit log, the newest first", Tags: []string{"audit"},
		Description: "Every change and every decision leaves an entry: who, by which means, what, when, from where. Entries are never changed; only retention removes old ones, and enters that it did."}
	export := huma.Operation{Method: http.MethodGet, Path: "/audit/export", OperationID: "export-audit",
		Summary: "Write the audit log out, the oldest first", Tags: []string{"audit"},
		Description: "One JSON object in each line, streamed. Who has written it out is entered, too.",
		Responses: map[string]*huma.Response{"200": {Description: "Lines of JSON, one entry each.",
			Content: map[string]*huma.MediaType{"application/jsonl": {
				Schema: &huma.Schema{Type: huma.TypeString, Description: "One AuditEntry in each line."}}}}}}
	route.Handle(s.Router, listed, route.Admins(), s.listAudit)
	route.Handle(s.Router, export, route.Admins(), s.exportAudit)
}

func (s *settings) listAudit(ctx context.Context, p identity.Principal, in *auditInput) (*auditOutput, error) {
	q := in.query()
	q.Before, q.Limit = in.Before, in.PageSize
	list, err := s.o.Stores.Audit.List(ctx, p, q)
	if err != nil {
		return nil, err
	}
	out := &auditOutput{api.AuditEntries{Entries: make([]api.AuditEntry, len(list))}}
	for i, e := range list {
		out.Body.Entries[i] = tellAudit(e)
	}
	if len(list) == in.PageSize {
		out.Body.NextBefore = list[len(list)-1].Seq
	}
	return out, nil
}

func (s *settings) exportAudit(ctx context.Context, p identity.Principal, in *auditExport) (*exported, error) {
	// An export copies the whole log: that is worth an entry, although nothing is changed.
	if err := s.Enter(ctx, s.EntryOf(ctx, p, "audit.export", "")); err != nil {
		return nil, err
	}
	return &exported{func(c huma.Context) {
		_, w := humago.Unwrap(c)
		if err := route.Unlimited(w); err != nil { // a long log takes its time
			s.Log.DebugContext(ctx, "the deadline of a connection could not be lifted", "error", err)
		}
		c.SetHeader("Content-Type", "application/jsonl")
		out := bufio.NewWriter(c.BodyWriter())
		for e, err := range s.o.Stores.Audit.All(ctx, p, in.query()) {
			var line []byte
			if err == nil {
				line, err = payload.Marshal(tellAudit(e))
			}
			if err == nil {
				_, err = out.Write(append(line, '\n'))
			}
			if err != nil { // the reader must not mistake a part for the whole
				s.Log.WarnContext(ctx, "the audit log was not written out to its end", "error", err)
				panic(http.ErrAbortHandler)
			}
		}
		if err := out.Flush(); err != nil {
			s.Log.DebugContext(ctx, "nobody took the end of the audit log", "error", fault.From(err).Message)
		}
	}}, nil
}

func tellAudit(e store.AuditEntry) api.AuditEntry {
	return api.AuditEntry{Seq: e.Seq, Time: e.Time, UserID: e.User, Means: e.Means, Address: e.Address, UserAgent: e.Agent,
		Action: e.Action, Object: e.Object, ObjectID: e.ObjectID, Outcome: string(e.Outcome), Detail: e.Detail}
}
