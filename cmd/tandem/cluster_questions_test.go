package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"tandem/api"
	"tandem/client"
	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/store/postgres"
)

// expireFlow asks a program, and does something when nobody answers in time.
const expireFlow = `
metadata: {id: expire, name: expire, description: d}
nodes:
  - {id: begin, description: d, type: TRIGGER, subtype: MANUAL}
  - id: ask
    description: d
    type: HUMAN_IN_THE_LOOP
    subtype: IN_APP_APPROVAL
    configurations: {title: "{{begin.outputs.n}}", timeout_seconds: 3600, channel_type: webhook, webhook_url: "SERVICE/message/{{begin.outputs.n}}", credential_id: CREDENTIAL}
  - {id: post, description: d, type: ACTION, subtype: HTTP_REQUEST, configurations: {method: POST, url: "SERVICE/expired/{{begin.outputs.n}}", on_unknown: fail}}
connections:
  - {id: c1, from_node: begin, to_node: ask}
  - {id: c2, from_node: ask, to_node: post, output_key: timeout}
`

// message is what was done when a message to a person has come: what it is about and what it says. One that was sent again, as its key tells, is not another.
func (i *installation) message(t *testing.T, r *http.Request) string {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return "" // who sent it was killed
	}
	var said struct {
		Event string `json:"event"`
	}
	if err := json.Unmarshal(body, &said); err != nil {
		t.Errorf("a message is %s: %v", body, err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	key := r.Header.Get("Idempotency-Key")
	if i.told[key] {
		return ""
	}
	i.told[key] = true
	return r.URL.Path + "/" + said.Event
}

// await returns when something was done.
func (i *installation) await(path string) {
	i.t.Helper()
	for i.count(path) == 0 {
		select {
		case <-i.more:
		case <-i.t.Context().Done():
			i.t.Fatalf("%s: %v", path, context.Cause(i.t.Context()))
		}
	}
}

// runOut lets the time of a question be over.
func (i *installation) runOut(db *postgres.Member, id string) {
	i.t.Helper()
	p := identity.System("default")
	for {
		q, err := db.Stores().Interactions.Get(i.t.Context(), p, id)
		if err != nil {
			i.t.Fatal(err)
		}
		q.TimeoutAt = time.Now().Add(-time.Second).UnixMilli()
		q.NextAt = q.TimeoutAt
		err = db.Stores().Interactions.Change(i.t.Context(), p, store.InteractionChange{Interaction: q})
		if err == nil {
			return
		}
		if fault.CodeOf(err) != fault.Conflict { // else somebody has changed it meanwhile
			i.t.Fatal(err)
		}
	}
}

// testQuestions: people get each message about a question once, and a question whose time is over is ended once in the whole cluster, whichever of the servers
// is killed.
func (i *installation) testQuestions(t *testing.T) {
	i.t = t
	ctx, c := t.Context(), i.clients[1]
	kept, err := c.CreateCredential(ctx, api.CredentialRequest{Name: "hook", Type: "webhook_secret", Data: json.RawMessage(`{"secret":"a-secret-of-the-hook-4711"}`)})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("SERVICE", i.service, "CREDENTIAL", kept.ID).Replace(expireFlow)
	if _, err := c.CreateWorkflow(ctx, []byte(text), true); err != nil {
		t.Fatal(err)
	}
	db, err := postgres.Join(ctx, i.database)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const all = 3
	var executions []string
	for n := range all {
		e, err := c.Execute(ctx, "expire", api.ExecuteRequest{Inputs: json.RawMessage(fmt.Sprintf(`{"n":"q%d"}`, n))}, fmt.Sprint("expire-", n))
		if err != nil {
			t.Fatal(err)
		}
		executions = append(executions, e.ExecutionID)
	}
	for n := range all {
		i.await(fmt.Sprintf("/message/q%d/request", n))
	}
	list, err := c.Interactions(ctx, client.InteractionQuery{})
	if err != nil {
		t.Fatal(err)
	}
	questions := map[string]string{} // by their titles
	for _, q := range list.Interactions {
		questions[q.Title] = q.ID
	}
	for n, victim := range append(servers, servers[0]) {
		name := fmt.Sprint("q", n)
		if n < len(servers) {
			i.kill(victim)
			i.runOut(db, questions[name]) // the one that is left sees to it
		} else {
			i.runOut(db, questions[name])
			i.kill(victim) // it may be at it
		}
		i.await("/expired/" + name)
		i.await("/message/" + name + "/timeout")
		i.start(victim)
	}
	i.succeed(executions...)
	for n := range all {
		for _, path := range []string{"/expired/q%d", "/message/q%d/request", "/message/q%d/timeout"} {
			if path = fmt.Sprintf(path, n); i.count(path) != 1 {
				t.Errorf("%s was done %d times", path, i.count(path))
			}
		}
		if all := i.count(fmt.Sprintf("/message/q%d/", n)); all != 2 {
			t.Errorf("about question %d there are %d messages", n, all)
		}
	}
}
