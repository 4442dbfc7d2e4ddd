package human

import (
	"context"
	"strings"

	"tandem/identity"
	"tandem/store"
)

// maxAudited is how much of each text goes into the audit log.
const maxAudited = 500

// say sets the entry of a change in the audit log, with further names and values: who has decided, by which means, and what. The rest of
// an answer is stored with the question and not in the log. When it is called twice, the last call counts.
func (s *sitting) say(action, who string, means identity.Means, pairs ...string) {
	detail := map[string]string{"execution_id": s.Execution}
	for i := 0; i+1 < len(pairs); i += 2 {
		text := pairs[i+1]
		if len(text) > maxAudited {
			text = strings.ToValidUTF8(text[:maxAudited], "") + "…"
		}
		if text != "" {
			detail[pairs[i]] = text
		}
	}
	s.audit = store.AuditEntry{
		Workspace: s.Workspace, User: strings.TrimPrefix(who, seatUser), Means: means, Action: action, Object: "interaction",
		ObjectID: s.ID, Detail: store.AuditDetail(detail),
	}
}

// audited lets the change of the question be entered in the audit log, in the same transaction.
func (s *sitting) audited(ctx context.Context) context.Context {
	if s.audit.Action == "" {
		return ctx
	}
	if s.audit.Time == 0 {
		s.audit.Time = s.now
	}
	return store.Audited(ctx, s.audit)
}
