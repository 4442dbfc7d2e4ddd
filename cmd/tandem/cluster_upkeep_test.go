package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"tandem/api"
	"tandem/client"
	"tandem/engine"
	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/store/postgres"
)

// escalateFlow asks a program, and after an hour somebody else as well.
const escalateFlow = `
metadata: {id: escalate, name: escalate, description: d}
nodes:
  - {id: begin, description: d, type: TRIGGER, subtype: MANUAL}
  - id: ask
    description: d
    type: HUMAN_IN_THE_LOOP
    subtype: IN_APP_APPROVAL
    configurations: {title: escalate, timeout_seconds: 86400, channel_type: webhook, webhook_url: "SERVICE/message/late", credential_id: CREDENTIAL, escalation: {after_seconds: 3600, to: ["role:operator"]}}
connections:
  - {id: c1, from_node: begin, to_node: ask}
`

// heldMessage is the message that is answered when the test says so.
const heldMessage = "/message/late/escalation"

// owner is the name of the server that owns the database.
func (i *installation) owner() string {
	i.t.Helper()
	looking, err := postgres.LookForOwners(i.t.Context(), i.database)
	if err != nil {
		i.t.Fatal(err)
	}
	defer looking.Close()
	url := ""
	for url == "" { // it has the database before it says where it is
		if url, err = looking.URL(i.t.Context()); err != nil {
			i.t.Fatal(err)
		}
	}
	for _, name := range servers {
		if url == "http://"+i.addresses[name] {
			return name
		}
	}
	i.t.Fatalf("the database is owned by %q", url)
	return ""
}

// other is the number of the other server.
func (i *installation) other(name string) int {
	if name == servers[0] {
		return 1
	}
	return 0
}

// hold is something in the database that others have to wait for. It must be let go.
type hold struct {
	i            *installation
	holds, watch *pgx.Conn
}

// connect connects to the database.
func (i *installation) connect() *pgx.Conn {
	i.t.Helper()
	conn, err := pgx.Connect(i.t.Context(), i.database)
	if err != nil {
		i.t.Fatal(err)
	}
	return conn
}

// hold locks something.
func (i *installation) hold(statement string, args ...any) *hold {
	i.t.Helper()
	h := &hold{i: i, holds: i.connect(), watch: i.connect()}
	tx, err := h.holds.Begin(i.t.Context())
	if err != nil {
		i.t.Fatal(err)
	}
	if _, err := tx.Exec(i.t.Context(), statement, args...); err != nil {
		i.t.Fatal(err)
	}
	return h
}

// held counts those who wait for it.
const held = ` FROM pg_stat_activity WHERE datname = current_database() AND $1::int = ANY(pg_blocking_pids(pid))`

// killOwner waits until the server that owns the database is in the midst of what was held, and kills it. What it was about to write is not written. It
// returns the name of the server.
func (h *hold) killOwner() string {
	h.i.t.Helper()
	ctx := h.i.t.Context()
	for waiting := 0; waiting == 0; {
		if err := h.watch.QueryRow(ctx, `SELECT count(*)`+held, h.holds.PgConn().PID()).Scan(&waiting); err != nil {
			h.i.t.Fatal(err)
		}
	}
	victim := h.i.owner()
	h.i.kill(victim)
	if _, err := h.watch.Exec(ctx, `SELECT pg_terminate_backend(pid, 10000)`+held, h.holds.PgConn().PID()); err != nil {
		h.i.t.Fatal(err)
	}
	for _, conn := range []*pgx.Conn{h.holds, h.watch} {
		if err := conn.Close(ctx); err != nil {
			h.i.t.Fatal(err)
		}
	}
	return victim
}

// testRetention: the server that removes old executions is killed in the midst of it. The other one goes on, removes nothing that has to stay, and each
// removal is in the audit log once.
func (i *installation) testRetention(t *testing.T) {
	i.t = t
	ctx := t.Context()
	made, err := i.clients[1].CreateWorkspace(ctx, api.WorkspaceRequest{ID: "archive", Admin: api.WorkspaceAdmin{ID: "archivist"}})
	if err != nil {
		t.Fatal(err)
	}
	db, err := postgres.Join(ctx, i.database)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	stores, p := db.Stores(), identity.System("archive")
	old := time.Now().AddDate(0, 0, -30).UnixMilli()
	add := func(e store.Execution) {
		t.Helper()
		e.Updated, e.Priority, e.WorkflowID = e.Created, 3, "w"
		if e.Status == engine.StatusSuccess {
			e.Ended = e.Created
		}
		if err := stores.Journal.Append(ctx, p, &store.Append{Execution: e.ID, Time: e.Created, Body: []byte("{}"), Create: &e}); err != nil {
			t.Fatal(err)
		}
	}
	const all, middle = 130, 60
	for n := range all {
		add(store.Execution{ID: fmt.Sprint("old-", n), Created: old, Status: engine.StatusSuccess})
	}
	add(store.Execution{ID: "fork", Created: old, Status: engine.StatusWaiting, ForkedFrom: "old-5"})
	add(store.Execution{ID: "child", Created: old, Status: engine.StatusSuccess, Parent: "fork"})
	add(store.Execution{ID: "young", Created: time.Now().UnixMilli(), Status: engine.StatusSuccess})
	owner := i.owner()
	c, err := client.New(client.Options{URL: "http://" + i.addresses[servers[i.other(owner)]], Token: made.Secret})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.PutLimits(ctx, api.LimitSettings{Retention: api.RetentionSettings{Executions: api.Retained{Days: 10}}}); err != nil {
		t.Fatal(err)
	}
	h := i.hold(`SELECT FROM executions WHERE workspace_id = 'archive' AND id = $1 FOR UPDATE`, fmt.Sprint("old-", middle))
	tidied := make(chan error, 1)
	tidy := func() error {
		_, err := i.clients[i.other(owner)].Tidy(ctx)
		return err
	}
	go func() { tidied <- tidy() }() // it ends with the request
	if victim := h.killOwner(); victim != owner {
		t.Errorf("%s owned the database, and %s was killed", owner, victim)
	}
	if err := <-tidied; err == nil {
		t.Error("a server that was killed says that all was removed")
	}
	for there := true; there; { // the server that is left goes on by itself
		_, err := stores.Executions.Get(ctx, p, fmt.Sprint("old-", all-1))
		there = err == nil
	}
	if err := tidy(); err != nil { // when that is through
		t.Error(err)
	}
	i.start(owner)
	for n := range all {
		id := fmt.Sprint("old-", n)
		if _, err := stores.Executions.Get(ctx, p, id); (err == nil) != (n == 5) || err != nil && fault.CodeOf(err) != fault.NotFound {
			t.Errorf("%s: %v", id, err)
		}
	}
	for _, id := range []string{"fork", "child", "young"} {
		if _, err := stores.Executions.Get(ctx, p, id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	entries, err := c.Audit(ctx, api.AuditQuery{Action: "execution.retain"})
	if err != nil {
		t.Fatal(err)
	}
	entered := 0
	for _, e := range entries.Entries {
		var detail struct{ Removed, Days int }
		if err := json.Unmarshal(e.Detail, &detail); err != nil || detail.Days != 10 {
			t.Errorf("the audit log says %s, %v", e.Detail, err)
		}
		entered += detail.Removed
	}
	if entered != all-1 {
		t.Errorf("%d executions were removed, and by the audit log %d", all-1, entered)
	}
}

// testEscalation: a question goes to somebody else as well once, and they get one message, although the server that sees to it is killed before that is
// recorded, and the next one while it sends the message.
func (i *installation) testEscalation(t *testing.T) {
	i.t = t
	ctx, c := t.Context(), i.clients[1]
	kept, err := c.CreateCredential(ctx, api.CredentialRequest{Name: "late hook", Type: "webhook_secret", Data: json.RawMessage(`{"secret":"a-secret-of-the-hook-4712"}`)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateWorkflow(ctx, []byte(strings.NewReplacer("SERVICE", i.service, "CREDENTIAL", kept.ID).Replace(escalateFlow)), true); err != nil {
		t.Fatal(err)
	}
	e, err := c.Execute(ctx, "escalate", api.ExecuteRequest{}, "escalate")
	if err != nil {
		t.Fatal(err)
	}
	i.await("/message/late/request")
	list, err := c.Interactions(ctx, client.InteractionQuery{ExecutionID: e.ExecutionID})
	if err != nil || len(list.Interactions) != 1 {
		t.Fatalf("asked are %+v, %v", list, err)
	}
	id := list.Interactions[0].ID
	conn := i.connect()
	defer conn.Close(ctx)
	change := func(statement string) {
		t.Helper()
		if done, err := conn.Exec(ctx, statement, id); err != nil || done.RowsAffected() != 1 {
			t.Fatalf("%s: %s, %v", statement, done, err)
		}
	}
	h := i.hold(`LOCK TABLE hil_deliveries IN SHARE MODE`)
	change(`UPDATE hil_interactions SET created_at = created_at - 4000000, next_at = 1, version = version + 1 WHERE id = $1`)
	if _, err := c.Execute(ctx, "kid", api.ExecuteRequest{Inputs: json.RawMessage(`{"n":"look"}`)}, "look"); err != nil { // so that the server looks at its questions
		t.Fatal(err)
	}
	first := h.killOwner()
	<-i.slow // the other one sends the message
	i.start(first)
	second := i.owner()
	i.kill(second)
	if second == first {
		t.Errorf("%s owns the database though it was killed", first)
	}
	i.release <- struct{}{}
	change(`UPDATE hil_deliveries SET next_at = 1 WHERE interaction_id = $1 AND kind = 'escalation' AND status = 'pending'`) // the time of who sends it is over
	i.start(second)
	for sent := false; !sent; {
		detail, err := i.clients[i.other(second)].Interaction(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		sent = len(detail.Deliveries) == 2 && detail.Deliveries[1].Status == "sent"
	}
	if n := i.count(heldMessage); n != 1 {
		t.Errorf("the message was sent %d times", n)
	}
	if n := i.count("/message/late/"); n != 2 {
		t.Errorf("%d messages were sent", n)
	}
	if _, err := i.clients[i.other(second)].Respond(ctx, id, api.RespondRequest{ResponseData: json.RawMessage(`{"action":"approve"}`)}); err != nil {
		t.Fatal(err)
	}
	i.succeed(e.ExecutionID)
}
