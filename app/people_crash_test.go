package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/client"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/host/local"
	"tandem/human"
	"tandem/identity"
	"tandem/loopback"
	"tandem/store"
	"tandem/store/sqlite"
	"tandem/store/sqlite/sqlitetest"
)

// peopleCrash is a server that is killed, with workflows that ask. Its only user is the admin.
func peopleCrash(t *testing.T, flows ...string) *crash {
	t.Helper()
	c := &crash{T: t, dir: sqlitetest.Dir(t), addr: loopback.FreeAddress(t)}
	i := openInstance(t, c.dir)
	for _, text := range flows {
		i.saveText(t, text)
	}
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	var err error
	if c.client, err = client.New(client.Options{URL: "http://" + c.addr, Token: crashToken}); err != nil {
		t.Fatal(err)
	}
	return c
}

// offline does something with the database of a server that is down.
func (c *crash) offline(do func(store.Stores)) {
	c.Helper()
	db, err := sqlite.Open(c.Context(), sqlite.Options{Dir: c.dir})
	if err != nil {
		c.Fatal(err)
	}
	do(db.Stores())
	if err := db.Close(); err != nil {
		c.Fatal(err)
	}
}

// questions waits until an execution has asked so many, answered or not, and returns them by node. One whose node was interrupted while it
// asked is asked after a moment.
func (c *crash) questions(execution string, n int) map[string]api.Interaction {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), patient)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond) // the server is another process
	defer tick.Stop()
	for {
		list, err := c.client.Interactions(ctx, client.InteractionQuery{ExecutionID: execution})
		if err == nil && len(list.Interactions) == n {
			asked := map[string]api.Interaction{}
			for _, i := range list.Interactions {
				asked[i.NodeID] = i
			}
			return asked
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			c.Fatalf("questions %+v, %v; want %d", list.Interactions, err, n)
		}
	}
}

// once checks that an execution has heard one answer to each of so many questions, and was woken by each once.
func (c *crash) once(execution string, answers int, nodes ...string) {
	c.Helper()
	c.offline(func(s store.Stores) {
		got := facts(c, s.Journal, execution)
		if got["answered"] != answers || got["refused"] != 0 {
			c.Errorf("execution %s has the facts %v", execution, got)
		}
		for _, n := range nodes {
			if got["completed "+n] != 1 {
				c.Errorf("%s was completed %d times", n, got["completed "+n])
			}
		}
		open, err := s.Interactions.List(c.Context(), identity.System("default"), store.InteractionQuery{Execution: execution, Page: store.Page{Size: 100}})
		if err != nil {
			c.Fatal(err)
		}
		if open.Total != answers {
			c.Errorf("%d questions were asked", open.Total)
		}
		for _, i := range open.Interactions {
			if i.Status == store.InteractionPending {
				c.Errorf("%s still waits: %+v", execution, i)
			}
		}
	})
}

// A server is killed right after it was told to start something that asks, and while it is told an answer. Each question is asked once, and
// each answer counts once, whether its sender heard so or not.
func TestPeopleCrash_AskAndAnswer(t *testing.T) {
	t.Parallel()
	c := peopleCrash(t, askFlow("two", asks("a", ``), asks("b", ``)))
	ids := map[string]string{} // of questions, by execution and node
	look := func(execution string) {
		t.Helper()
		for node, q := range c.questions(execution, 2) {
			if was := ids[execution+" "+node]; was != "" && was != q.ID {
				t.Errorf("node %s asks %s, and did ask %s", node, q.ID, was)
			}
			ids[execution+" "+node] = q.ID
		}
	}
	var started []string
	const rounds = 6
	for n := range rounds {
		kill := c.serve()
		e, err := c.client.Execute(t.Context(), "two", api.ExecuteRequest{}, fmt.Sprint("start", n))
		if err != nil {
			t.Fatal(err)
		}
		started = append(started, e.ExecutionID)
		// What was asked before is asked under the same ids, and some of it is answered while the server dies.
		for _, id := range started[:n] {
			look(id)
		}
		var wait sync.WaitGroup
		if n > 0 {
			id := ids[started[n-1]+" a"]
			wait.Go(func() {
				_, err := c.client.Respond(t.Context(), id, api.RespondRequest{ResponseData: json.RawMessage(approved)})
				if told := (*client.Error)(nil); errors.As(err, &told) {
					t.Errorf("the answer was refused: %v", err)
				}
			})
		}
		kill()
		wait.Wait()
	}
	kill := c.serve()
	for n, id := range started {
		look(id)
		for _, node := range []string{"a", "b"} {
			// The answer to a that was given before counts; a second one does not.
			_, err := c.client.Respond(t.Context(), ids[id+" "+node], api.RespondRequest{ResponseData: json.RawMessage(approved)})
			if err != nil && (fault.CodeOf(err) != fault.Conflict || node == "b" || n == rounds-1) {
				t.Errorf("execution %d: %v", n, err)
			}
		}
		e := c.becomes(id, engine.StatusSuccess)
		for _, node := range []string{"a", "b"} {
			if got := gjson.GetBytes(e.NodeExecutions[node].OutputData["confirmed"], "interaction_id").Str; got != ids[id+" "+node] {
				t.Errorf("node %s has the answer to %q", node, got)
			}
		}
	}
	kill()
	for _, id := range started {
		c.once(id, 2, "a", "b")
	}
}

// An answer that is on disk when the server dies before it acts, as if it had died in between, acts when it is back.
func TestPeopleCrash_BetweenAnswerAndResume(t *testing.T) {
	t.Parallel()
	c := peopleCrash(t, askFlow("two", asks("a", ``), asks("b", `, timeout_action: default_response, timeout_default_response: {action: reject, notes: nobody}, timeout_seconds: 60`)))
	kill := c.serve()
	me, err := c.client.Me(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e, err := c.client.Execute(t.Context(), "two", api.ExecuteRequest{}, "")
	if err != nil {
		t.Fatal(err)
	}
	c.becomes(e.ExecutionID, engine.StatusWaitingForHuman)
	ids := map[string]string{}
	for node, q := range c.questions(e.ExecutionID, 2) {
		ids[node] = q.ID
	}
	kill()
	p := identity.Principal{Workspace: "default", User: me.ID, Roles: []identity.Role{identity.Admin}}
	c.offline(func(s store.Stores) {
		desk := human.New(human.Options{Interactions: s.Interactions, Users: s.Users})
		if _, err := desk.Respond(t.Context(), p, ids["a"], human.Submission{Data: json.RawMessage(approved)}); err != nil {
			t.Fatal(err)
		}
		// The time of the other one was up while nobody was there.
		i, err := s.Interactions.Get(t.Context(), p, ids["b"])
		if err != nil {
			t.Fatal(err)
		}
		i.TimeoutAt = time.Now().Add(-time.Minute).UnixMilli()
		i.NextAt = i.TimeoutAt
		if err := s.Interactions.Change(t.Context(), identity.System("default"), store.InteractionChange{Interaction: i}); err != nil {
			t.Fatal(err)
		}
	})
	for range 2 { // the second time there is nothing left to do
		kill = c.serve()
		got := c.becomes(e.ExecutionID, engine.StatusSuccess)
		if a, b := got.NodeExecutions["a"].OutputData, got.NodeExecutions["b"].OutputData; a["approve"] == nil || gjson.GetBytes(b["reject"], "response_data.notes").Str != "nobody" || gjson.GetBytes(b["reject"], "status").Str != "timeout" {
			t.Errorf("a has %s, b has %s", a["result"], b["result"])
		}
		for node, id := range ids {
			_, err := c.client.Respond(t.Context(), id, api.RespondRequest{ResponseData: json.RawMessage(refusedIt)})
			if told := fault.From(err); fault.CodeOf(err) != fault.Conflict {
				t.Errorf("answering %s again: %v %+v", node, err, told)
			}
		}
		pauses, err := c.client.Pauses(t.Context(), e.ExecutionID)
		if err != nil {
			t.Fatal(err)
		}
		var why []string
		for _, p := range pauses.Pauses {
			why = append(why, p.NodeID+" "+p.Status+" "+p.ResumeReason)
		}
		if slices.Sort(why); !slices.Equal(why, []string{"a resumed human_response", "b resumed timeout"}) {
			t.Errorf("pauses %q", why)
		}
		kill()
	}
	c.once(e.ExecutionID, 2, "a", "b")
	c.offline(func(s store.Stores) {
		if got := facts(c, s.Journal, e.ExecutionID); got["answered "+string(engine.AskTimeout)] != 1 {
			t.Errorf("facts %v", got)
		}
	})
}

// message is a call of the webhook channel as its service sees it.
type message struct{ key, event, interaction, link, callback string }

// A server dies while a service takes a message, and nobody knows whether it did. The message is sent again; both copies lead to one
// question.
func TestPeopleCrash_WhileSending(t *testing.T) {
	t.Parallel()
	messages, hold := make(chan message, 10), make(chan struct{})
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the caller is dead
		}
		m := gjson.ParseBytes(body)
		messages <- message{r.Header.Get("Idempotency-Key"), m.Get("event").Str, m.Get("interaction.id").Str, m.Get("link").Str, m.Get("callback_url").Str}
		select {
		case <-hold:
		case <-r.Context().Done():
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	defer service.Close()
	next := func() message {
		t.Helper()
		select {
		case m := <-messages:
			return m
		case <-time.After(patient):
			t.Fatal("no message came")
		}
		return message{}
	}
	c := peopleCrash(t)
	kill := c.serve()
	me, err := c.client.Me(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	credential, err := c.client.CreateCredential(t.Context(), api.CredentialRequest{Name: "hook", Type: "webhook_secret", Data: json.RawMessage(`{"secret":"7b1f0c9e-4d-hook-of-kills"}`)})
	if err != nil {
		t.Fatal(err)
	}
	flow := askFlow("hook", asks("ask", `, approvers: ["user:`+me.ID+`"], channel_type: webhook, webhook_url: "`+service.URL+`", credential_id: `+credential.ID))
	if _, err := c.client.CreateWorkflow(t.Context(), []byte(flow), true); err != nil {
		t.Fatal(err)
	}
	e, err := c.client.Execute(t.Context(), "hook", api.ExecuteRequest{}, "")
	if err != nil {
		t.Fatal(err)
	}
	first := next()
	kill()
	close(hold)
	c.offline(func(s store.Stores) {
		sent, err := s.Interactions.Deliveries(t.Context(), identity.System("default"), first.interaction)
		if err != nil || len(sent) != 1 || sent[0].Status != store.DeliveryPending || sent[0].Attempts != 1 || sent[0].ID != first.key {
			t.Fatalf("messages %+v (%v)", sent, err)
		}
		// It would be tried again when the time of the first try is over.
		sent[0].NextAt = time.Now().UnixMilli()
		if err := s.Interactions.Delivered(t.Context(), identity.System("default"), sent[0], nil, nil); err != nil {
			t.Fatal(err)
		}
	})
	kill = c.serve()
	second := next()
	if first.event != "request" || second.event != "request" || first.interaction == "" || second.interaction != first.interaction || second.key != first.key || first.callback == "" || first.link != "" {
		t.Fatalf("first %+v, then %+v", first, second)
	}
	c.becomes(e.ExecutionID, engine.StatusWaitingForHuman)
	if q := c.questions(e.ExecutionID, 1); q["ask"].ID != first.interaction {
		t.Fatalf("asked %+v", q)
	}
	answers := func(to, action string) answer {
		// The server has another port after its restart; the rest of the address is the same.
		_, path, _ := strings.Cut(to, "/channels/")
		host, _, _ := strings.Cut(second.callback, "/channels/")
		return callback(t, host+"/channels/"+path, "7b1f0c9e-4d-hook-of-kills", time.Now(), `{"interaction_id":"`+first.interaction+`","responder":"user:`+me.ID+`","response_data":{"action":"`+action+`"}}`)
	}
	if got := answers(first.callback, "approve"); got.status != http.StatusOK {
		t.Fatalf("the answer to the first copy: %d %s", got.status, got.body)
	}
	if got := answers(second.callback, "reject"); got.status != http.StatusConflict {
		t.Errorf("the answer to the second copy: %d %s", got.status, got.body)
	}
	done := c.becomes(e.ExecutionID, engine.StatusSuccess)
	if done.NodeExecutions["ask"].OutputData["approve"] == nil {
		t.Errorf("node %+v", done.NodeExecutions["ask"])
	}
	if m := next(); m.event != "completed" || m.interaction != first.interaction {
		t.Errorf("at the end it was told %+v", m)
	}
	kill()
	c.once(e.ExecutionID, 1, "ask")
}

// agree compares what an execution waits for with the questions on record: the same, always. Looking first lets it hear what it was told
// while it was away.
func (i *Instance) agree(t *testing.T, id string) {
	t.Helper()
	ctx := t.Context()
	if _, err := i.host.Act(ctx, user, host.Request{Execution: id, Action: host.ActionLook}); err != nil {
		t.Fatalf("execution %s: %v", id, err)
	}
	e, err := i.stores.Executions.Get(ctx, user, id)
	if err != nil {
		t.Fatal(err)
	}
	ready, err := i.revision(ctx, user, e.WorkflowID, e.RevisionHash)
	if err != nil {
		t.Fatal(err)
	}
	journal := host.Journal{Source: i.source, Principal: user, Execution: id, Graph: ready.Graph, Revision: local.Revision(ready)}
	for {
		view, _, err := journal.View(ctx)
		if err != nil {
			t.Fatal(err)
		}
		page, err := i.stores.Interactions.List(ctx, user, store.InteractionQuery{Execution: id, Page: store.Page{Size: 500}})
		if err != nil {
			t.Fatal(err)
		}
		pauses, err := i.stores.Interactions.Pauses(ctx, user, id)
		if err != nil {
			t.Fatal(err)
		}
		again, _, err := journal.View(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if again.Seq != view.Seq {
			continue // it has moved on in between
		}
		var waits, asked, active, recorded []string
		for ask := range view.Questions { // order does not matter: sorted below
			waits = append(waits, host.InteractionID("default", id, ask))
		}
		for _, q := range page.Interactions {
			if recorded = append(recorded, q.ID); q.Status == store.InteractionPending {
				asked = append(asked, q.ID)
			}
		}
		stopped := 0
		for _, p := range pauses {
			switch {
			case p.Status != store.PauseActive:
			case p.Reason == store.PauseOperator:
				stopped++
			default:
				active = append(active, p.ID)
			}
		}
		for _, list := range []*[]string{&waits, &asked, &active} {
			slices.Sort(*list)
		}
		if !slices.Equal(waits, asked) || !slices.Equal(asked, active) || (view.Status == engine.StatusPaused) != (stopped == 1) {
			for row, err := range i.stores.Journal.Rows(ctx, user, id, 0) {
				t.Logf("%d %d %s %v", row.Seq, row.Time, row.Body, err)
			}
			t.Fatalf("execution %s is %s at %d and waits for %q; on record are %q of %d, and %q pauses and %d stops", id, view.Status, view.Seq, waits, asked, len(recorded), active, stopped)
		}
		return
	}
}

// Whatever people and operators do when an instance ends, and however it ends: afterwards the questions on record are those that executions
// wait for, and with enough answers everything ends.
func TestPeopleCrash_RecordsAgree(t *testing.T) {
	t.Parallel()
	const workers = 4
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	chance := rand.New(rand.NewPCG(seed, 1))
	dir, ctx := sqlitetest.Dir(t), t.Context()
	var executions []string
	for round := range often(20, 50) {
		i := openInstance(t, dir)
		if round == 0 {
			i.saveText(t, askFlow("ask", asks("a", ``), asks("b", ``), asks("c", `, min_approvals: 1`)))
		}
		for _, id := range executions {
			i.agree(t, id)
		}
		if round%3 == 0 {
			executions = append(executions, i.startText(t, "ask", `{}`))
		}
		var acts atomic.Int64
		enough := make(chan struct{})
		work, over := context.WithCancel(ctx)
		limit := int64(1 + chance.IntN(12))
		var group sync.WaitGroup
		for range workers {
			mine := rand.New(rand.NewPCG(chance.Uint64(), 2))
			group.Go(func() {
				for work.Err() == nil {
					i.anything(work, mine, executions[mine.IntN(len(executions))])
					if acts.Add(1) == limit {
						close(enough)
					}
				}
			})
		}
		<-enough
		if round%2 == 0 { // the disk goes first, in the middle of everything
			if err := i.db.Close(); err != nil {
				t.Fatal(err)
			}
		}
		err := i.Close()
		if over(); err != nil {
			t.Fatal(err)
		}
		group.Wait()
	}
	i := openInstance(t, dir)
	for _, id := range executions {
		i.finish(t, id)
		i.agree(t, id)
		if got := facts(t, i.stores.Journal, id); got["completed a"] > 1 || got["completed b"] > 1 || got["completed c"] > 1 {
			t.Errorf("facts %v", got)
		}
	}
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
}

// anything is what somebody may do. That it does not work, because it is too late or nobody is there any more, is nothing to them.
func (i *Instance) anything(ctx context.Context, chance *rand.Rand, execution string) {
	act := func(a host.Action) {
		_, _ = i.host.Act(ctx, user, host.Request{Execution: execution, Action: a, By: user.User, Node: "a"})
	}
	switch what := chance.IntN(20); {
	case what < 2:
		act(host.ActionPause)
		return
	case what < 5:
		act(host.ActionResume)
		return
	case what == 5:
		act(host.ActionCancel)
		return
	case what < 8:
		act(host.ActionRetry)
		return
	}
	page, err := i.stores.Interactions.List(ctx, user, store.InteractionQuery{Execution: execution, Statuses: []store.InteractionStatus{store.InteractionPending}, Page: store.Page{Size: 10}})
	if err != nil || len(page.Interactions) == 0 {
		return
	}
	id := page.Interactions[chance.IntN(len(page.Interactions))].ID
	if chance.IntN(8) == 0 {
		_, _ = i.desk.Cancel(ctx, user, id, "changed my mind")
		return
	}
	_, _ = i.desk.Respond(ctx, user, id, human.Submission{Data: json.RawMessage(approved)})
}

// finish lets an execution go on and answers everything that it asks, until it has ended in some way.
func (i *Instance) finish(t *testing.T, execution string) {
	t.Helper()
	events, _, stop := i.desk.Watch("default")
	defer stop()
	_, _ = i.host.Act(t.Context(), user, host.Request{Execution: execution, Action: host.ActionResume}) // it may not be stopped
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := i.Wait(ctx, user, execution)
		ended <- err
	}()
	for {
		page, err := i.stores.Interactions.List(t.Context(), user, store.InteractionQuery{Execution: execution, Statuses: []store.InteractionStatus{store.InteractionPending}, Page: store.Page{Size: 10}})
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range page.Interactions {
			_, err := i.desk.Respond(t.Context(), user, q.ID, human.Submission{Data: json.RawMessage(approved)})
			if err != nil && fault.CodeOf(err) != fault.Conflict { // what was done before the last end may close it first
				t.Fatal(err)
			}
		}
		select {
		case err := <-ended:
			if err != nil {
				t.Fatal(err)
			}
			return
		case <-events:
		}
	}
}
