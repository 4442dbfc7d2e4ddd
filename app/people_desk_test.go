package app

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tandem/engine"
	"tandem/fault"
	"tandem/human"
	"tandem/identity"
	"tandem/store"
	"tandem/store/sqlite"
	"tandem/store/sqlite/sqlitetest"
)

// counterTop is a desk on a real database in which one execution has asked something.
type counterTop struct {
	dir    string
	db     *sqlite.DB
	stores store.Stores
	desk   *human.Desk
	woken  atomic.Int64
}

func (c *counterTop) open(t *testing.T) {
	t.Helper()
	var err error
	if c.db, err = sqlite.Open(t.Context(), sqlite.Options{Dir: c.dir}); err != nil {
		t.Fatal(err)
	}
	c.stores = c.db.Stores()
	c.desk = c.another()
}

// another is the desk of another process on the same database.
func (c *counterTop) another() *human.Desk {
	return human.New(human.Options{
		Interactions: c.stores.Interactions, Users: c.stores.Users, PublicURL: "https://tandem.example", Wake: func(store.Ref) { c.woken.Add(1) },
	})
}

// restart is what is left after the process was replaced.
func (c *counterTop) restart(t *testing.T) {
	t.Helper()
	if err := c.db.Close(); err != nil {
		t.Fatal(err)
	}
	c.open(t)
}

func openCounterTop(t *testing.T, users int) *counterTop {
	t.Helper()
	c := &counterTop{dir: sqlitetest.Dir(t)}
	c.open(t)
	t.Cleanup(func() {
		if err := c.db.Close(); err != nil {
			t.Error(err)
		}
	})
	system := identity.System("ws")
	if err := c.stores.Workspaces.Create(t.Context(), identity.System(""), identity.Workspace{ID: "ws", Name: "ws"}); err != nil {
		t.Fatal(err)
	}
	for n := range users {
		id := fmt.Sprint("u", n)
		if err := c.stores.Users.Create(t.Context(), system, identity.User{Workspace: "ws", ID: id, Email: id + "@x.org", Roles: []identity.Role{identity.Approver}}); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// ask asks a question in an execution of its own.
func (c *counterTop) ask(t *testing.T, execution string, r human.Request) store.Interaction {
	t.Helper()
	raw, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now().UnixMilli()
	i, err := human.Media(nil).Open(human.Question{Ref: store.Ref{Workspace: "ws", Execution: execution}, User: "u0", Node: "n", Ask: "n#ask.1", Activation: "n", Request: raw, Time: at})
	if err != nil {
		t.Fatal(err)
	}
	err = c.stores.Journal.Append(t.Context(), identity.System("ws"), &store.Append{
		Execution: execution, Time: at, Body: []byte("row"), Ask: []store.Interaction{i},
		Create: &store.Execution{ID: execution, Status: engine.StatusWaitingForHuman, Priority: 3, TriggerType: "MANUAL", User: "u0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func (c *counterTop) inbox(t *testing.T, execution string) []store.InboxItem {
	t.Helper()
	items, err := c.stores.Inbox.Pending(t.Context(), identity.System("ws"), execution)
	if err != nil {
		t.Fatal(err)
	}
	return items
}

func byUser(n int) identity.Principal {
	return identity.Principal{Workspace: "ws", User: fmt.Sprint("u", n), Roles: []identity.Role{identity.Approver}}
}

// The record decides who is first, also between processes, and only one of them tells the execution.
func TestPeopleDesk_ManyAtOnce(t *testing.T) {
	t.Parallel()
	const many = 200
	c := openCounterTop(t, many)
	one, all := c.ask(t, "one", human.Request{Approvers: []string{"approver"}}), c.ask(t, "all", human.Request{Approvers: []string{"role:approver"}, MinApprovals: many})
	desks := []*human.Desk{c.desk, c.another()}
	var won, late atomic.Int64
	var wait sync.WaitGroup
	for n := range many {
		wait.Go(func() {
			_, err := desks[n%2].Respond(context.Background(), byUser(n), one.ID, human.Submission{Data: json.RawMessage(`{"action":"approve"}`)})
			switch {
			case err == nil:
				won.Add(1)
			case fault.CodeOf(err) == fault.Conflict && fault.From(err).Details["status"] == "completed":
				late.Add(1)
			default:
				t.Error(err)
			}
			if _, err := desks[0].Respond(context.Background(), byUser(n), all.ID, human.Submission{Data: json.RawMessage(`{"action":"approve"}`)}); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if won.Load() != 1 || late.Load() != many-1 || len(c.inbox(t, "one")) != 1 {
		t.Errorf("%d won and %d were late; the execution is told %d times", won.Load(), late.Load(), len(c.inbox(t, "one")))
	}
	items := c.inbox(t, "all")
	if len(items) != 1 || c.woken.Load() != 2 {
		t.Fatalf("told %d times, woken %d times", len(items), c.woken.Load())
	}
	people := []string{}
	for _, vote := range gjson.GetBytes(items[0].Body, "value.approvals.#.person").Array() {
		people = append(people, vote.Str)
	}
	slices.Sort(people)
	if people = slices.Compact(people); len(people) != many {
		t.Errorf("%d people have voted", len(people))
	}
	responses, err := c.stores.Interactions.Responses(t.Context(), identity.System("ws"), all.ID)
	if err != nil || len(responses) != many {
		t.Errorf("%d replies (%v)", len(responses), err)
	}
}

// Links and half a quorum survive the process, and delegation, dedup and overruling are on disk.
func TestPeopleDesk_SurvivesARestart(t *testing.T) {
	t.Parallel()
	c := openCounterTop(t, 5)
	ctx := t.Context()
	yes := human.Submission{Data: json.RawMessage(`{"action":"approve"}`)}
	i := c.ask(t, "e", human.Request{
		Channel: human.Email, Credential: "box", Approvers: []string{"u1", "u2", "mail:out@side.org"}, MinApprovals: 3, AllowDelegation: true, Arguments: json.RawMessage(`{"sum":5}`),
	})
	made, err := c.desk.NewLink(ctx, byUser(1), i.ID, "u1")
	if err != nil {
		t.Fatal(err)
	}
	secret := made.URL[strings.LastIndexByte(made.URL, '/')+1:]
	if _, err := c.desk.Delegate(ctx, byUser(2), i.ID, "", "u3", "away"); err != nil {
		t.Fatal(err)
	}
	reply := human.Reply{
		Account: store.Account{Workspace: "ws", Channel: human.Email, Credential: "box"}, Interaction: i.ID, From: "Out@side.org", Verified: true, Answer: &human.Answer{Action: "approve"}, Dedup: "<m1>",
	}
	if got, err := c.desk.Receive(ctx, reply); err != nil || !got.Accepted {
		t.Fatalf("%+v (%v)", got, err)
	}
	c.restart(t)
	if got, err := c.desk.Receive(ctx, reply); err != nil || !got.Accepted || got.Ended {
		t.Errorf("the same mail again: %+v (%v)", got, err)
	}
	if view, err := c.desk.ViewLink(ctx, secret); err != nil || view.State != human.LinkOpen || view.Interaction.ID != i.ID {
		t.Errorf("%+v (%v)", view, err)
	}
	if _, err := c.desk.RespondLink(ctx, secret, human.Submission{Data: yes.Data, ArgumentsHash: "other"}); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("other arguments: %v", err)
	}
	if _, err := c.desk.RespondLink(ctx, secret, human.Submission{Data: yes.Data, ArgumentsHash: i.ArgumentsHash}); err != nil {
		t.Error(err)
	}
	if _, err := c.desk.RespondLink(ctx, secret, yes); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("the link again: %v", err)
	}
	if _, err := c.desk.Respond(ctx, byUser(2), i.ID, yes); fault.CodeOf(err) != fault.Forbidden {
		t.Errorf("who has delegated: %v", err)
	}
	c.restart(t)
	after, err := c.desk.Respond(ctx, byUser(3), i.ID, yes)
	if err != nil || after.Status != store.InteractionCompleted {
		t.Fatalf("%+v (%v)", after, err)
	}
	items := c.inbox(t, "e")
	if len(items) != 1 || gjson.GetBytes(items[0].Body, "value.approvals.#").Int() != 3 || gjson.GetBytes(items[0].Body, "value.approvals.2.for").Str != "u2" {
		t.Errorf("told %+v", items)
	}
	pauses, err := c.stores.Interactions.Pauses(ctx, identity.System("ws"), "e")
	if err != nil || len(pauses) != 1 || pauses[0].Status != store.PauseResumed || pauses[0].ResumeReason != "human_response" {
		t.Errorf("%+v (%v)", pauses, err)
	}
	stored, err := c.stores.Interactions.Get(ctx, identity.System("ws"), i.ID)
	if err != nil || stored.Version != after.Version || stored.NextAt == 0 || string(stored.Response) != string(after.Response) {
		t.Errorf("stored %+v, returned %+v (%v)", stored, after, err)
	}
}

// A user's role counts as it is stored when they answer.
func TestPeopleDesk_RoleTakenMeanwhile(t *testing.T) {
	t.Parallel()
	c := openCounterTop(t, 2)
	i := c.ask(t, "e", human.Request{Approvers: []string{"role:approver"}})
	u, err := c.stores.Users.Get(t.Context(), identity.System("ws"), "u1")
	if err != nil {
		t.Fatal(err)
	}
	u.Roles = []identity.Role{identity.Viewer}
	if err := c.stores.Users.Update(t.Context(), identity.System("ws"), u); err != nil {
		t.Fatal(err)
	}
	_, err = c.desk.Respond(t.Context(), byUser(1), i.ID, human.Submission{Data: json.RawMessage(`{"action":"approve"}`)})
	if fault.CodeOf(err) != fault.Forbidden || len(c.inbox(t, "e")) != 0 {
		t.Errorf("%v", err)
	}
}
