package sqlite_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"github.com/pressly/goose/v3"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

// TestMigrate_KeysBelongToWhoStarted opens a database from before each user had keys of their own. A key is found by who started its
// execution, and by nobody else; tokens and replies from then say nothing of who made them and how they came.
func TestMigrate_KeysBelongToWhoStarted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	old, err := sql.Open("sqlite", filepath.Join(dir, "tandem.db"))
	check(t, err)
	p, err := goose.NewProvider(goose.DialectSQLite3, old, os.DirFS("migrations"), goose.WithDisableGlobalRegistry(true))
	check(t, err)
	_, err = p.UpTo(t.Context(), 8)
	check(t, err)
	for _, text := range []string{
		`INSERT INTO workspaces VALUES ('ws', 'ws', 1)`,
		`INSERT INTO users (workspace_id, id, name, email, roles, settings, disabled, created, updated) VALUES ('ws', 'ann', 'Ann', '', '["admin"]', x'', 0, 1, 1)`,
		`INSERT INTO tokens (hash, workspace_id, id, user_id, name, created, expires) VALUES (x'01', 'ws', 'tok', 'ann', 'laptop', 1, 0)`,
		`INSERT INTO executions (workspace_id, id, workflow_id, workflow_name, workflow_version, revision, revision_hash, status, final, priority, parent, forked_from,
			trigger_type, user_id, started, ended, duration_ms, credits, error, created, updated) VALUES ('ws', 'e1', '', '', '', 1, '', 'SUCCESS', 1, 3, '', '', 'API', 'ann', 1, 2, 1, 0, '', 1, 2)`,
		`INSERT INTO idempotency_keys VALUES ('ws', 'k', 'h', 'e1', 5), ('ws', 'lost', 'h', 'gone', 5)`,
		`INSERT INTO hil_interactions (workspace_id, id, workflow_id, execution_id, root_id, node_id, activation_id, ask_id, user_id, interaction_type, channel_type, purpose, status, priority,
			min_approvals, exclude_requester, attempt, credential_id, timeout_at, warning_sent, next_at, created_at, updated_at, version, arguments_hash, approvers, request_data, response_data, progress)
			VALUES ('ws', 'q', '', 'e1', 'e1', 'n', 'n', 'n', 'ann', 'approval', 'in_app', 'human_node', 'completed', 1, 1, 0, 1, '', 0, 0, 0, 1, 1, 1, '', '[]', x'7b7d', x'', x'')`,
		`INSERT INTO hil_responses (workspace_id, id, interaction_id, user_id, address, channel_type, dedup, raw, response_data, received_at, relevance, score, factors, classification, reasoning, accepted, overruled_by)
			VALUES ('ws', 'r', 'q', 'ann', '', 'in_app', '', '', x'', 1, '', 0, x'', '', '', 1, '')`,
		`INSERT INTO hil_links (hash, workspace_id, interaction_id, attempt, recipient, reusable, expires, used, created) VALUES (x'02', 'ws', 'q', 1, 'user:ann', 0, 0, 0, 1)`,
	} {
		_, err := old.ExecContext(t.Context(), text)
		check(t, err)
	}
	check(t, old.Close())

	s := openDir(t, dir).Stores()
	found, err := s.Keys.Find(t.Context(), ann(), "k")
	if want := (store.IdempotencyKey{Key: "k", RequestHash: "h", Execution: "e1", Created: 5}); err != nil || found != want {
		t.Errorf("ann's key is %+v: %v", found, err)
	}
	for _, p := range []identity.Principal{{Workspace: "ws", User: "bob"}, {Workspace: "ws", User: ""}} {
		if _, err := s.Keys.Find(t.Context(), p, "k"); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("user %q finds ann's key: %v", p.User, err)
		}
	}
	tokens, err := s.Tokens.List(t.Context(), ann(), "")
	if err != nil || len(tokens) != 1 || tokens[0].MadeBy != "" {
		t.Errorf("tokens %+v: %v", tokens, err)
	}
	replies, err := s.Interactions.Responses(t.Context(), ann(), "q")
	if err != nil || len(replies) != 1 || replies[0].Origin != (store.Origin{}) {
		t.Errorf("replies %+v: %v", replies, err)
	}
	if gone, err := s.Keys.Expire(t.Context(), identity.System(""), 6); err != nil || gone != 2 {
		t.Errorf("%d keys expired: %v", gone, err) // that of an execution that is gone too
	}
}
