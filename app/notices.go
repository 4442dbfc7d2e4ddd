package app

import (
	"context"
	"encoding/json"

	"tandem/builtin/notify"
	"tandem/engine"
	"tandem/human"
	"tandem/identity"
	"tandem/payload"
	"tandem/store"
)

// noticeSeconds is how long a notice stays in the inbox.
const noticeSeconds = 7 * 24 * 3600

// putNotice puts a notice into the inbox: a question that no execution waits for; its answer says that it was seen. Its id follows from
// the delivery, so that it is there once.
func (i *Instance) putNotice(ctx context.Context, n notify.Notice) (string, error) {
	request := map[string]any{
		"interaction_type": human.Approval, "title": n.Title, "description": n.Message, "options": []map[string]string{{"value": "ok"}},
		"timeout_seconds": noticeSeconds,
	}
	if content := n.Content; !payload.IsNull(content) && string(content) != "{}" {
		request["content"] = content
	}
	if n.To != "" {
		request["approvers"] = []string{n.To}
	}
	raw, err := json.Marshal(request)
	if err != nil {
		return "", err
	}
	c := n.Call
	record, err := i.parts.Media().Open(human.Question{
		Ref: store.Ref{Workspace: c.Workspace, Execution: c.ExecutionID}, WorkflowID: c.WorkflowID, User: c.UserID,
		Requesters: c.Requesters, Language: c.Language, Node: c.NodeID,
		Ask: engine.AskID(c.ActivationID) + "#notice", Activation: c.ActivationID, Attempt: int(c.Attempt), Purpose: human.PurposeNode,
		Request: raw, Time: n.At.UnixMilli(),
	})
	if err != nil {
		return "", err
	}
	if err := i.stores.Interactions.Tell(ctx, identity.System(c.Workspace), record); err != nil {
		return "", err
	}
	i.desk.Recorded(c.Workspace, record.ID)
	return record.ID, nil
}
