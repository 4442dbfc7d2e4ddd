package api

import (
	"encoding/json"

	"tandem/identity"
)

// AuditEntry is one line of the audit log: who did what, when, from where.
type AuditEntry struct {
	Seq       int64          `json:"seq" doc:"orders the entries; never used twice"`
	Time      int64          `json:"time" doc:"Unix milliseconds"`
	UserID    string         `json:"user_id,omitempty" doc:"who acted; absent: nobody knows, as with a login that was refused"`
	Means     identity.Means `json:"means,omitzero" doc:"how they proved to be that user: a token and who made it, a session, a link, a channel, a command on the machine"`
	Address   string         `json:"address,omitempty" doc:"where the request came from; of IPv6 it is the network"`
	UserAgent string         `json:"user_agent,omitempty" doc:"what the program called itself"`
	Action    string         `json:"action" doc:"what was done, as object.verb: workflow.update"`
	Object    string         `json:"object,omitempty" doc:"the sort of what it was done to"`
	ObjectID  string         `json:"object_id,omitempty"`
	Outcome   string         `json:"outcome" enum:"done,refused"`
	// Detail never holds a secret.
	Detail json.RawMessage `json:"detail,omitempty" doc:"what changed, in short: before and after, or what belongs to the action; never a secret"`
}

// AuditEntries is a page of the audit log, the newest first.
type AuditEntries struct {
	Entries []AuditEntry `json:"entries"`
	// NextBefore is set when there may be more entries.
	NextBefore int64 `json:"next_before,omitempty" doc:"for the next page: before; absent: this was the last"`
}

// AuditQuery says which entries are wanted.
type AuditQuery struct {
	UserID   string
	Action   string
	Object   string
	ObjectID string
	Outcome  string
	Since    int64
	Until    int64
	Before   int64
	PageSize int
}
