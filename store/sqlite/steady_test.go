package sqlite_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"tandem/engine"
	"tandem/identity"
	"tandem/store"
	"tandem/store/sqlite"
)

// Statements are prepared once, whatever is bound to them: SQLite would prepare many of them anew every time otherwise.
func TestStatements_StayPrepared(t *testing.T) {
	t.Parallel()
	db := open(t)
	s, p, system := db.Stores(), identity.System("one"), identity.System("")
	ctx := t.Context()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(s.Workspaces.Create(ctx, system, identity.Workspace{ID: "one", Name: "one", Created: 1}))
	check(s.Users.Create(ctx, p, identity.User{Workspace: "one", ID: "ann", Name: "Ann", Roles: []identity.Role{identity.Admin}}))
	_, _, err := s.Workflows.Save(ctx, p, store.SaveWorkflow{ID: "flow", Name: "flow", Hash: "h", Definition: json.RawMessage(`{}`), Time: 1})
	check(err)
	for n := range 5 {
		id := fmt.Sprintf("e%d", n)
		secret := identity.HashSecret(id)
		check(s.Tokens.Create(ctx, p, identity.Token{Workspace: "one", ID: id, User: "ann"}, secret))
		_, _, err := s.Tokens.Resolve(ctx, system, secret, int64(n))
		check(err)
		check(s.Journal.Append(ctx, p, &store.Append{Execution: id, Time: 1, Body: []byte("{}"), Create: &store.Execution{ID: id, WorkflowID: "flow", Status: engine.StatusRunning}}))
		check(s.Journal.Append(ctx, p, &store.Append{Execution: id, After: 1, Time: 2, Body: []byte("{}"), Change: &store.Change{Status: engine.StatusSuccess}}))
		for _, err := range s.Journal.Rows(ctx, p, id, 0) {
			check(err)
		}
		_, _, err = s.Journal.LastSnapshot(ctx, p, id)
		check(err)
		_, _, _, err = s.Executions.GetWithRows(ctx, p, id)
		check(err)
		_, err = s.Executions.Get(ctx, p, id)
		check(err)
		_, err = s.Executions.List(ctx, p, store.ExecutionQuery{WorkflowID: "flow", Statuses: []engine.Status{engine.StatusSuccess}, Page: store.Page{Size: n + 1}})
		check(err)
		_, err = s.Workflows.Get(ctx, p, "flow")
		check(err)
		_, err = s.Workflows.Revision(ctx, p, "flow", 0)
		check(err)
		_, err = s.Workflows.RevisionByHash(ctx, p, "flow", "h")
		check(err)
		_, err = s.Inbox.Pending(ctx, p, id)
		check(err)
		_, err = s.Logs.Lines(ctx, p, store.LogQuery{Execution: id})
		check(err)
		for _, err := range s.Executions.Unfinished(ctx, system, store.Unfinished{}) {
			check(err)
		}
		_, err = s.Timers.Upcoming(ctx, system, store.Timer{}, n+1)
		check(err)
	}
	seen := 0
	for text, again := range sqlite.Prepared(t, db) {
		if seen++; again != 0 {
			t.Errorf("prepared %d times more: %s", again, text)
		}
	}
	if seen < 20 {
		t.Errorf("%d statements were seen; the test does not see them all", seen)
	}
}
