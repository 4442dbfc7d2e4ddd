package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tandem/engine"
	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

// asked opens questions with a new execution.
func asked(t *testing.T, s store.Stores, p identity.Principal, execution string, questions ...store.Interaction) {
	t.Helper()
	started(t, s, p, execution, func(a *store.Append) { a.Ask = questions })
}

func pendingOne(id string, approvers ...string) store.Interaction {
	return store.Interaction{ID: id, Status: store.InteractionPending, Priority: 1, Approvers: approvers, Request: json.RawMessage(`{}`),
		NextAt: 5000, Created: 1000, Updated: 1000}
}

func getInteraction(t *testing.T, s store.Stores, p identity.Principal, id string) store.Interaction {
	t.Helper()
	return must[store.Interaction](t)(s.Interactions.Get(t.Context(), p, id))
}

// ending completes an interaction, as a person does: with a reply, the end of the pause and the news for the execution.
func ending(i store.Interaction, response string) store.InteractionChange {
	i.Status, i.Response, i.NextAt, i.Updated = store.InteractionCompleted, json.RawMessage(`{"action":"approve"}`), 0, 2000
	return store.InteractionChange{
		Interaction: i,
		Responses:   []store.Response{{ID: response, User: "ann", Channel: "in_app", Accepted: true, ReceivedAt: 2000}},
		Resume:      &store.PauseEnd{Status: store.PauseResumed, Reason: "human_response", Data: json.RawMessage(`{"by":"ann"}`), Time: 2000},
		Deliver:     &store.InboxItem{Kind: "answer", Dedup: "ask:" + i.ID, Time: 2000, Body: []byte(response)},
	}
}

func inboxOf(t *testing.T, s store.Stores, p identity.Principal, execution string) []string {
	t.Helper()
	var all []string
	for _, item := range must[[]store.InboxItem](t)(s.Inbox.Pending(t.Context(), p, execution)) {
		all = append(all, item.Kind+":"+string(item.Body))
	}
	return all
}

// pausesOf reads pauses as text, "id reason status resumed why".
func pausesOf(t *testing.T, s store.Stores, p identity.Principal, execution string) []string {
	t.Helper()
	var all []string
	for _, w := range must[[]store.Pause](t)(s.Interactions.Pauses(t.Context(), p, execution)) {
		all = append(all, fmt.Sprintf("%s %s %s %d %s", w.ID, w.Reason, w.Status, w.Resumed, w.ResumeReason))
	}
	return all
}

func testAsk(t *testing.T, s store.Stores) {
	p := tenant(t)
	want := store.Interaction{
		Workspace: "not looked at", ID: "q1", WorkflowID: "w", Execution: "not looked at", Root: "root", Node: "n",
		Activation: "a/1", Ask: "ask-1", User: "ann",
		Type: "approval", Channel: "slack", Purpose: "human_node", Status: store.InteractionPending, Priority: 4, Request: json.RawMessage(`{"title":"t"}`),
		Approvers: []string{"user:bob", "role:editor", "user:bob"}, MinApprovals: 2, ExcludeRequester: true,
		Requesters: []string{"eve", "<dan>"}, ArgumentsHash: "h", Attempt: 3, Credential: "c",
		TimeoutAt: 9000, Progress: json.RawMessage(`{"p":1}`), NextAt: 8000, Created: 1000, Updated: 1001,
	}
	started(t, s, p, "e1", func(a *store.Append) {
		a.Create.WorkflowName = "Orders"
		a.Ask = []store.Interaction{want, {ID: "q2", Purpose: "budget"}, {ID: "q3", Purpose: "drift"},
			{ID: "q4", Purpose: "outcome_unknown"}, {ID: "q5", Purpose: "param"}}
	})
	want.Workspace, want.Execution, want.WorkflowName, want.Version = p.Workspace, "e1", "Orders", 1
	equal(t, "interaction", want, getInteraction(t, s, p, "q1"))
	equal(t, "status that was not given", store.InteractionPending, getInteraction(t, s, p, "q2").Status)
	equal(t, "pauses", []string{"q1 human active 0 ", "q2 budget active 0 ", "q3 drift active 0 ", "q4 outcome_unknown active 0 ",
		"q5 human active 0 "}, pausesOf(t, s, p, "e1"))
	first := must[[]store.Pause](t)(s.Interactions.Pauses(t.Context(), p, "e1"))[0]
	equal(t, "pause", store.Pause{ID: "q1", Execution: "e1", Node: "n", Reason: "human", Status: store.PauseActive, Paused: 1000,
		Conditions: json.RawMessage(`{"interaction_id":"q1","timeout_at":9000}`),
		Context:    json.RawMessage(`{"interaction_type":"approval","purpose":"human_node","activation_id":"a/1"}`)}, first)

	// A person who wants what it does later also wants what was asked before.
	meddled := next("e1", 1)
	meddled.Requesters = []string{"<dan>", "fay"}
	mustAppend(t, s, p, meddled)
	for id, requesters := range map[string][]string{"q1": {"eve", "<dan>", "fay"}, "q2": {"<dan>", "fay"}} {
		equal(t, "requesters of "+id, requesters, getInteraction(t, s, p, id).Requesters)
	}
	for user, mine := range map[string]int{"fay": 0, "<dan>": 0, "ann": 0, "f": 1} {
		page := must[store.InteractionPage](t)(s.Interactions.List(t.Context(), p,
			store.InteractionQuery{Approvers: []string{"user:bob"}, NotOf: user}))
		equal(t, "those that "+user+" may answer", mine, page.Total)
	}

	// Asked again it stays as it is, also when it has ended.
	ok(t, s.Interactions.Change(t.Context(), p, ending(getInteraction(t, s, p, "q1"), "r1")))
	again := next("e1", 2)
	again.Ask = []store.Interaction{{ID: "q1", Request: json.RawMessage(`"another"`), Approvers: []string{"user:eve"}}}
	mustAppend(t, s, p, again)
	got := getInteraction(t, s, p, "q1")
	equal(t, "asked again", []any{store.InteractionCompleted, want.Approvers, string(want.Request), int64(3)},
		[]any{got.Status, got.Approvers, string(got.Request), got.Version})
	mine := must[store.InteractionPage](t)(s.Interactions.List(t.Context(), p, store.InteractionQuery{Approvers: []string{"user:eve"}}))
	equal(t, "of who was named the second time", 0, mine.Total)

	// A row that is refused asks nothing.
	late := next("e1", 1)
	late.Ask, late.Withdraw, late.Pause = []store.Interaction{pendingOne("late")}, []string{"q2"},
		&store.Pause{ID: "op", Reason: "operator"}
	if err := s.Journal.Append(t.Context(), p, late); !isConflict(err) {
		t.Errorf("a late row: %v", err)
	}
	_, err := s.Interactions.Get(t.Context(), p, "late")
	wantCode(t, "asked by a row that was refused", err, fault.NotFound)
	equal(t, "withdrawn by it", store.InteractionPending, getInteraction(t, s, p, "q2").Status)
	equal(t, "pauses after it", 5, len(pausesOf(t, s, p, "e1")))

	for name, change := range map[string]func(*store.Append){
		"no id":              func(a *store.Append) { a.Ask = []store.Interaction{{}} },
		"ended at once":      func(a *store.Append) { a.Ask = []store.Interaction{{ID: "x", Status: store.InteractionCompleted}} },
		"a pause without id": func(a *store.Append) { a.Pause = &store.Pause{Reason: "operator"} },
		"not an operator's":  func(a *store.Append) { a.Pause = &store.Pause{ID: "x", Reason: "human"} },
	} {
		a := next("e1", 2)
		change(a)
		wantCode(t, name, s.Journal.Append(t.Context(), p, a), fault.Invalid)
	}
	_, err = s.Interactions.Pauses(t.Context(), p, "nowhere")
	wantCode(t, "pauses of no execution", err, fault.NotFound)
}

func testUnasked(t *testing.T, s store.Stores) {
	p, ctx := tenant(t), t.Context()
	waits := func(a *store.Append) { a.Create.Status = engine.StatusWaitingForHuman }
	started(t, s, p, "older", waits)
	started(t, s, p, "runs")
	started(t, s, p, "asks", func(a *store.Append) {
		waits(a)
		a.Ask = []store.Interaction{pendingOne("q")}
	})
	equal(t, "unasked", []store.Ref{{Workspace: p.Workspace, Execution: "older"}}, must[[]store.Ref](t)(s.Interactions.Unasked(ctx, p)))
	all := must[[]store.Ref](t)(s.Interactions.Unasked(ctx, identity.System("")))
	if !slices.Contains(all, store.Ref{Workspace: p.Workspace, Execution: "older"}) {
		t.Errorf("of all workspaces %v", all)
	}
}

// testTell: what people are told is in the inbox once, makes no pause, and needs an execution of the workspace.
func testTell(t *testing.T, s store.Stores) {
	p := tenant(t)
	started(t, s, p, "e1")
	notice := pendingOne("n1", "user:ann")
	notice.Execution = "e1"
	for range 2 {
		if err := s.Interactions.Tell(t.Context(), p, notice); err != nil {
			t.Fatal(err)
		}
		notice.Request = json.RawMessage(`{"title":"another"}`) // the first stays
	}
	if i := getInteraction(t, s, p, "n1"); i.Status != store.InteractionPending || string(i.Request) != `{}` ||
		!slices.Equal(i.Approvers, []string{"user:ann"}) {
		t.Errorf("told %+v", i)
	}
	if list := listed(t, s, p, store.InteractionQuery{}); len(list) != 1 {
		t.Errorf("in the inbox: %q", list)
	}
	if pauses := pausesOf(t, s, p, "e1"); len(pauses) != 0 {
		t.Errorf("pauses %q", pauses)
	}
	notice.ID = "n2"
	wantCode(t, "an execution of another workspace", s.Interactions.Tell(t.Context(), identity.System(p.Workspace+"-other"), notice), fault.NotFound)
}

func testInteractionChange(t *testing.T, s store.Stores) {
	p, ctx := tenant(t), t.Context()
	asked(t, s, p, "e1", pendingOne("q", "user:ann"), pendingOne("other", "user:ann"))
	hash, form := identity.HashSecret(p.Workspace), identity.HashSecret(p.Workspace+"form")
	i := getInteraction(t, s, p, "q")

	// What a change may change, and what it may not.
	i.Priority, i.MinApprovals, i.Approvers, i.TimeoutAt, i.WarningSent, i.Progress, i.NextAt, i.Updated =
		5, 2, []string{"user:bob"}, 7, true, json.RawMessage(`{}`), 8, 9
	want := i
	want.Version = 2
	i.Execution, i.Ask, i.User, i.Request, i.Created, i.Purpose, i.ExcludeRequester = "x", "x", "x", json.RawMessage(`"x"`), 1, "x", true
	full := store.InteractionChange{
		Interaction: i,
		Responses: []store.Response{{ID: "r1", Address: "mail:a@b", Channel: "email", Dedup: "<1@b>", Raw: "maybe",
			Origin: store.Origin{Means: identity.Means{Kind: identity.ByChannel, Address: "mail:a@b"}, Ground: store.GroundReading,
				Reason: "so", ReadBy: "bob", ReadMeans: identity.Means{Kind: identity.ByToken, Token: "t", TokenMadeBy: "boss"}},
			Data: json.RawMessage(`{"action":"approve"}`), ReceivedAt: 3,
			Relevance: "uncertain", Score: 0.5, Factors: json.RawMessage(`{"content":0.5}`), Classification: "confirmed", Reasoning: "why", Accepted: true}},
		Links: []store.Link{{Hash: hash, Attempt: 1, Recipient: "user:ann",
			Means: identity.Means{Kind: identity.ByLink, Address: "mail:ann@b", AddressSetBy: "boss", AddressSetAt: 7}, Expires: 100,
			Created: 3}, {Hash: form, Recipient: "anyone", Reusable: true}},
		Deliveries: []store.Delivery{{ID: "m1", Kind: "ask_back", Channel: "email", Recipient: "a@b", Body: json.RawMessage(`{"x":1}`), NextAt: 3, Created: 3, Updated: 3}},
	}
	ok(t, s.Interactions.Change(ctx, p, full))
	equal(t, "after the change", want, getInteraction(t, s, p, "q"))
	response := full.Responses[0]
	response.Interaction = "q"
	equal(t, "responses", []store.Response{response}, must[[]store.Response](t)(s.Interactions.Responses(ctx, p, "q")))
	link := full.Links[0]
	link.Workspace, link.Interaction = p.Workspace, "q"
	equal(t, "link", link, must[store.Link](t)(s.Interactions.Link(ctx, identity.System(""), hash)))

	// Everything that makes a change a conflict leaves nothing of it.
	now := getInteraction(t, s, p, "q")
	before := []any{now, pausesOf(t, s, p, "e1"), inboxOf(t, s, p, "e1")}
	for name, spoil := range map[string]func(*store.InteractionChange){
		"an old version":    func(c *store.InteractionChange) { c.Interaction.Version-- },
		"a version to come": func(c *store.InteractionChange) { c.Interaction.Version++ },
		"a message that is known": func(c *store.InteractionChange) {
			c.Responses = append(c.Responses, store.Response{ID: "r9", Channel: "email", Dedup: "<1@b>"})
		},
		"a response that is known": func(c *store.InteractionChange) { c.Responses = append(c.Responses, store.Response{ID: "r1"}) },
	} {
		c := ending(now, "r-"+name)
		c.Deliveries, c.Links = []store.Delivery{{ID: "m-" + name}}, []store.Link{{Hash: identity.HashSecret(p.Workspace + name)}}
		spoil(&c)
		if err := s.Interactions.Change(ctx, p, c); !isConflict(err) {
			t.Errorf("%s: got %v, want a conflict", name, err)
		}
		_, err := s.Interactions.Link(ctx, identity.System(""), c.Links[0].Hash)
		wantCode(t, name+": link", err, fault.NotFound)
	}
	missing := ending(now, "r2")
	missing.Interaction.ID = "unknown"
	wantCode(t, "no such interaction", s.Interactions.Change(ctx, p, missing), fault.NotFound)
	for name, c := range map[string]store.InteractionChange{
		"no such response":  {Interaction: now, Overrule: &store.Overruling{Response: "none", By: "ann"}},
		"no such link":      {Interaction: now, UseLink: &identity.SecretHash{1}},
		"another's link":    {Interaction: getInteraction(t, s, p, "other"), UseLink: &hash},
		"another's message": {Interaction: getInteraction(t, s, p, "other"), Overrule: &store.Overruling{Response: "r1", By: "ann"}},
	} {
		wantCode(t, name, s.Interactions.Change(ctx, p, c), fault.NotFound)
	}
	stolen := store.InteractionChange{Interaction: getInteraction(t, s, p, "other"), Links: []store.Link{{Hash: hash}}}
	if err := s.Interactions.Change(ctx, p, stolen); !isConflict(err) {
		t.Errorf("a secret that stands for another question: %v", err)
	}
	for name, c := range map[string]store.InteractionChange{
		"no status":        {Interaction: store.Interaction{ID: "q", Version: now.Version}},
		"twice the same":   {Interaction: now, Responses: []store.Response{{ID: "a"}, {ID: "a"}}},
		"twice one dedup":  {Interaction: now, Responses: []store.Response{{ID: "a", Dedup: "d"}, {ID: "b", Dedup: "d"}}},
		"unnamed message":  {Interaction: now, Deliveries: []store.Delivery{{}}},
		"unnamed response": {Interaction: now, Responses: []store.Response{{}}},
	} {
		wantCode(t, name, s.Interactions.Change(ctx, p, c), fault.Invalid)
	}
	equal(t, "after what was refused", before, []any{getInteraction(t, s, p, "q"), pausesOf(t, s, p, "e1"), inboxOf(t, s, p, "e1")})
	equal(t, "messages after it", 1, len(must[[]store.Delivery](t)(s.Interactions.Deliveries(ctx, p, "q"))))
	equal(t, "responses after it", 1, len(must[[]store.Response](t)(s.Interactions.Responses(ctx, p, "q"))))

	// The end: reply, link, pause and inbox in one.
	end := ending(now, "r2")
	end.UseLink, end.Overrule = &hash, &store.Overruling{Response: "r1", By: "bob",
		Overruled: store.Overruled{Reason: "a quotation", Means: identity.Means{Kind: identity.ByLocal}, At: 8}}
	end.Deliver.Execution = "not looked at"
	end.Deliveries = []store.Delivery{{ID: "m1", Kind: "stays as it is"}, {ID: "m2", Kind: "completed"}}
	ok(t, s.Interactions.Change(ctx, p, end))
	equal(t, "inbox", []string{"answer:r2"}, inboxOf(t, s, p, "e1"))
	equal(t, "pauses", []string{"q human resumed 2000 human_response", "other human active 0 "}, pausesOf(t, s, p, "e1"))
	equal(t, "use of the link", int64(2000), must[store.Link](t)(s.Interactions.Link(ctx, identity.System(""), hash)).Used)
	replies := must[[]store.Response](t)(s.Interactions.Responses(ctx, p, "q"))
	equal(t, "how it was overruled", store.Overruled{Reason: "a quotation", Means: identity.Means{Kind: identity.ByLocal}, At: 8},
		replies[0].Overruling)
	equal(t, "who overruled", []any{"bob", false, "", true},
		[]any{replies[0].OverruledBy, replies[0].Accepted, replies[1].OverruledBy, replies[1].Accepted})
	sent := must[[]store.Delivery](t)(s.Interactions.Deliveries(ctx, p, "q"))
	equal(t, "messages", []string{"ask_back", "completed"}, []string{sent[0].Kind, sent[1].Kind})

	// What has ended may still be noted on, but stays ended, and a link that was used is used.
	done := getInteraction(t, s, p, "q")
	reopened := done
	reopened.Status = store.InteractionPending
	if err := s.Interactions.Change(ctx, p, store.InteractionChange{Interaction: reopened}); !isConflict(err) {
		t.Errorf("reopening: %v", err)
	}
	if err := s.Interactions.Change(ctx, p, store.InteractionChange{Interaction: done, UseLink: &hash}); !isConflict(err) {
		t.Errorf("using a link again: %v", err)
	}
	for range 2 {
		ok(t, s.Interactions.Change(ctx, p, store.InteractionChange{Interaction: done, UseLink: &form}))
		done.Version++
	}
	equal(t, "reusable link", int64(0), must[store.Link](t)(s.Interactions.Link(ctx, identity.System(""), form)).Used)
	_, err := s.Interactions.Responses(ctx, p, "unknown")
	wantCode(t, "responses to nothing", err, fault.NotFound)
}

func testInteractionRace(t *testing.T, s store.Stores) {
	p := tenant(t)
	asked(t, s, p, "e1", pendingOne("q", "user:ann"))
	read := getInteraction(t, s, p, "q")
	const many = 200
	results, begin := make([]error, many), make(chan struct{})
	var wg sync.WaitGroup
	for n := range many {
		wg.Go(func() {
			<-begin
			c := ending(read, fmt.Sprint("r", n))
			c.Deliver.Dedup = "" // what keeps it single is the interaction, not the inbox
			c.Deliveries = []store.Delivery{{ID: fmt.Sprint("m", n)}}
			results[n] = s.Interactions.Change(t.Context(), p, c)
		})
	}
	close(begin)
	wg.Wait()
	winner := -1
	for n, err := range results {
		switch {
		case err == nil && winner < 0:
			winner = n
		case err == nil:
			t.Errorf("%d and %d have both won", winner, n)
		case !isConflict(err):
			t.Errorf("%d: %v", n, err)
		}
	}
	if winner < 0 {
		t.Fatal("nobody has won")
	}
	equal(t, "inbox", []string{fmt.Sprint("answer:r", winner)}, inboxOf(t, s, p, "e1"))
	replies := must[[]store.Response](t)(s.Interactions.Responses(t.Context(), p, "q"))
	sent := must[[]store.Delivery](t)(s.Interactions.Deliveries(t.Context(), p, "q"))
	if len(replies) != 1 || replies[0].ID != fmt.Sprint("r", winner) || len(sent) != 1 || sent[0].ID != fmt.Sprint("m", winner) {
		t.Errorf("of %d there are %+v and %+v", winner, replies, sent)
	}
	equal(t, "version", int64(2), getInteraction(t, s, p, "q").Version)
}

// testWithdrawalRace lets an answer and the append that takes the question back meet, again and again.
func testWithdrawalRace(t *testing.T, s store.Stores) {
	p := tenant(t)
	const many = 40
	for n := range many {
		execution, q := fmt.Sprint("e", n), fmt.Sprint("q", n)
		asked(t, s, p, execution, pendingOne(q, "user:ann"))
		c := ending(getInteraction(t, s, p, q), "r"+q)
		var answered error
		var wg sync.WaitGroup
		wg.Go(func() { answered = s.Interactions.Change(t.Context(), p, c) })
		a := next(execution, 1)
		a.Withdraw = []string{q}
		mustAppend(t, s, p, a)
		wg.Wait()
		var want []any
		switch {
		case answered == nil:
			want = []any{store.InteractionCompleted, []string{q + " human resumed 2000 human_response"}, []string{"answer:r" + q}}
		case isConflict(answered):
			want = []any{store.InteractionCancelled, []string{q + " human canceled 1001 canceled"}, []string(nil)}
		default:
			t.Fatal(answered)
		}
		equal(t, "how it ended", want, []any{getInteraction(t, s, p, q).Status, pausesOf(t, s, p, execution), inboxOf(t, s, p, execution)})
	}
}

func testWithdraw(t *testing.T, s store.Stores) {
	p, ctx := tenant(t), t.Context()
	asked(t, s, p, "e1", pendingOne("q1", "user:ann"), pendingOne("done", "user:ann"))
	asked(t, s, p, "e2", pendingOne("foreign", "user:ann"))
	ok(t, s.Interactions.Change(ctx, p, ending(getInteraction(t, s, p, "done"), "r")))
	a := next("e1", 1)
	// What is asked and taken back by the same row was both.
	a.Ask, a.Withdraw = []store.Interaction{pendingOne("brief", "user:ann")}, []string{"q1", "done", "foreign", "unknown", "brief", "q1"}
	mustAppend(t, s, p, a)
	for id, want := range map[string][]any{
		"q1":      {store.InteractionCancelled, int64(1001), int64(1001), int64(2)},
		"brief":   {store.InteractionCancelled, int64(1001), int64(1001), int64(2)},
		"done":    {store.InteractionCompleted, int64(0), int64(2000), int64(2)},
		"foreign": {store.InteractionPending, int64(5000), int64(1000), int64(1)},
	} {
		i := getInteraction(t, s, p, id)
		equal(t, id, want, []any{i.Status, i.NextAt, i.Updated, i.Version})
	}
	equal(t, "pauses", []string{"q1 human canceled 1001 canceled", "done human resumed 2000 human_response",
		"brief human canceled 1001 canceled"}, pausesOf(t, s, p, "e1"))
	due, nextAt, err := s.Interactions.Due(ctx, p, 1001, 10)
	ok(t, err)
	equal(t, "due to be told", []string{"q1", "brief"}, idsOf(due))
	equal(t, "what comes next", int64(5000), nextAt)
	equal(t, "still to answer", []string{"foreign"}, listed(t, s, p,
		store.InteractionQuery{Approvers: []string{"user:ann"}, Statuses: []store.InteractionStatus{store.InteractionPending}}))
	if err := s.Interactions.Change(ctx, p, ending(store.Interaction{ID: "q1", Version: 1}, "late")); !isConflict(err) {
		t.Errorf("an answer that is too late: %v", err)
	}
	equal(t, "inbox", []string{"answer:r"}, inboxOf(t, s, p, "e1"))
}

func testPauses(t *testing.T, s store.Stores) {
	p := tenant(t)
	asked(t, s, p, "e1", pendingOne("q"))
	after := uint64(0)
	do := func(pause *store.Pause, resume *store.PauseEnd) {
		t.Helper()
		after++
		a := next("e1", after)
		a.Pause, a.Resume = pause, resume
		mustAppend(t, s, p, a)
	}
	operator := func(id string, at int64) *store.Pause {
		return &store.Pause{ID: id, Execution: "not looked at", Reason: store.PauseOperator, Context: json.RawMessage(`{"by":"ann"}`), Paused: at}
	}
	resumed := func(at int64) *store.PauseEnd {
		return &store.PauseEnd{Status: store.PauseResumed, Reason: "operator", Data: json.RawMessage(`{"by":"bob"}`), Time: at}
	}
	do(nil, resumed(1)) // nothing to end
	do(operator("p1", 2), nil)
	do(nil, resumed(3))
	do(operator("p2", 4), resumed(5)) // both in one row
	do(operator("p3", 6), nil)
	do(operator("p4", 7), nil) // it ran in between
	do(operator("p1", 8), nil) // one that is there
	equal(t, "pauses", []string{"q human active 0 ", "p1 operator resumed 3 operator", "p2 operator resumed 5 operator",
		"p3 operator resumed 7 operator", "p4 operator resumed 8 operator"}, pausesOf(t, s, p, "e1"))
	do(operator("p5", 9), nil)
	do(nil, &store.PauseEnd{Status: store.PauseCanceled, Reason: "canceled", Time: 10})
	all := must[[]store.Pause](t)(s.Interactions.Pauses(t.Context(), p, "e1"))
	equal(t, "the one of the end", store.Pause{ID: "p5", Execution: "e1", Reason: "operator", Context: json.RawMessage(`{"by":"ann"}`), Status: store.PauseCanceled,
		Paused: 9, Resumed: 10, ResumeReason: "canceled"}, all[len(all)-1])
	equal(t, "who resumed", json.RawMessage(`{"by":"bob"}`), all[1].ResumeData)
}

func idsOf(list []store.Interaction) []string {
	var ids []string
	for _, i := range list {
		ids = append(ids, i.ID)
	}
	return ids
}

func listed(t *testing.T, s store.Stores, p identity.Principal, q store.InteractionQuery) []string {
	t.Helper()
	page, err := s.Interactions.List(t.Context(), p, q)
	ok(t, err)
	ids := idsOf(page.Interactions)
	if q.Page == (store.Page{}) && page.Total != len(ids) {
		t.Errorf("%+v: a total of %d and %d rows", q, page.Total, len(ids))
	}
	return ids
}

func testInteractionList(t *testing.T, s store.Stores) {
	p, ctx := tenant(t), t.Context()
	one := func(id string, priority int, created int64, approvers ...string) store.Interaction {
		i := pendingOne(id, approvers...)
		i.Priority, i.Created, i.Purpose, i.User = priority, created, "human_node", "ann"
		return i
	}
	own, budget := one("own", 1, 30, "user:ann", "user:bob"), one("budget", 1, 40, "role:admin")
	own.ExcludeRequester, budget.Purpose = true, "budget"
	asked(t, s, p, "e1", one("low", 1, 10, "user:ann"), one("urgent", 5, 20, "role:editor", "user:ann"), own, budget)
	asked(t, s, p, "e2", one("old-done", 1, 1, "user:ann"), one("new-done", 1, 2, "user:ann", "role:editor"),
		one("urgent-done", 5, 0, "user:bob"), one("twin", 1, 10, "anyone"))
	for _, id := range []string{"old-done", "new-done", "urgent-done"} {
		c := ending(getInteraction(t, s, p, id), "r-"+id)
		if id == "urgent-done" {
			c.Interaction.Status = store.InteractionTimeout
		}
		ok(t, s.Interactions.Change(ctx, p, c))
	}
	pending, completed := store.InteractionPending, store.InteractionCompleted
	all := []string{"urgent", "low", "twin", "own", "budget", "urgent-done", "new-done", "old-done"}
	for name, c := range map[string]struct {
		query store.InteractionQuery
		want  []string
	}{
		"all":       {store.InteractionQuery{}, all},
		"pending":   {store.InteractionQuery{Statuses: []store.InteractionStatus{pending}}, all[:5]},
		"completed": {store.InteractionQuery{Statuses: []store.InteractionStatus{completed}}, all[6:]},
		"pending and completed": {store.InteractionQuery{Statuses: []store.InteractionStatus{pending, completed}},
			slices.Concat(all[:5], all[6:])},
		"ended": {store.InteractionQuery{Statuses: []store.InteractionStatus{completed, store.InteractionTimeout}},
			all[5:]},
		"mine":                   {store.InteractionQuery{Approvers: []string{"user:ann", "role:editor"}}, []string{"urgent", "low", "own", "new-done", "old-done"}},
		"mine and anyone's":      {store.InteractionQuery{Approvers: []string{"user:nobody", "anyone"}}, []string{"twin"}},
		"mine, pending":          {store.InteractionQuery{Approvers: []string{"user:ann", "role:editor"}, Statuses: []store.InteractionStatus{pending}}, []string{"urgent", "low", "own"}},
		"mine, completed":        {store.InteractionQuery{Approvers: []string{"role:editor"}, Statuses: []store.InteractionStatus{completed}}, []string{"new-done"}},
		"mine without my own":    {store.InteractionQuery{Approvers: []string{"user:ann"}, NotOf: "ann", Statuses: []store.InteractionStatus{pending}}, []string{"urgent", "low"}},
		"another's without mine": {store.InteractionQuery{Approvers: []string{"user:bob"}, NotOf: "bob", Statuses: []store.InteractionStatus{pending}}, []string{"own"}},
		"of an execution":        {store.InteractionQuery{Execution: "e2"}, []string{"twin", "urgent-done", "new-done", "old-done"}},
		"mine of an execution": {store.InteractionQuery{Execution: "e2", Approvers: []string{"user:ann", "role:editor"}},
			[]string{"new-done", "old-done"}},
		"by purpose": {store.InteractionQuery{Purpose: "budget"}, []string{"budget"}},
		"nobody's":   {store.InteractionQuery{Approvers: []string{"user:eve"}}, nil},
	} {
		equal(t, name, c.want, listed(t, s, p, c.query))
	}
	for n := range 3 {
		q := store.InteractionQuery{Approvers: []string{"user:ann", "role:editor"}, Page: store.Page{Number: n + 1, Size: 2}}
		want := []string{"urgent", "low", "own", "new-done", "old-done"}[n*2 : min(n*2+2, 5)]
		page := must[store.InteractionPage](t)(s.Interactions.List(ctx, p, q))
		equal(t, "page", []any{want, 5}, []any{idsOf(page.Interactions), page.Total})
	}
	// A person who has answered waits for the others; an answer that was overruled does not count.
	for n, one := range []store.Response{{ID: "v1", User: "ann", Accepted: true, ReceivedAt: 5},
		{ID: "v2", User: "ann", Accepted: true, OverruledBy: "bob", ReceivedAt: 5}, {ID: "v3", User: "ann", ReceivedAt: 5}} {
		ok(t, s.Interactions.Change(ctx, p, store.InteractionChange{Interaction: getInteraction(t, s, p,
			[]string{"urgent", "own", "low"}[n]), Responses: []store.Response{one}}))
	}
	mine := store.InteractionQuery{Approvers: []string{"user:ann"}, Statuses: []store.InteractionStatus{pending}}
	equal(t, "mine, answered too", []string{"urgent", "low", "own"}, listed(t, s, p, mine))
	mine.NotAnsweredBy = "ann"
	equal(t, "mine, to be answered", []string{"low", "own"}, listed(t, s, p, mine))
	equal(t, "answered by another", []string{"urgent"}, listed(t, s, p,
		store.InteractionQuery{Approvers: []string{"role:editor"}, Statuses: []store.InteractionStatus{pending}, NotAnsweredBy: "eve"}))
	equal(t, "ended", []string{"new-done", "old-done"}, listed(t, s, p,
		store.InteractionQuery{Approvers: []string{"user:ann"}, Statuses: []store.InteractionStatus{completed}, NotAnsweredBy: "ann"}))
	// Whose it is follows a change: delegation, escalation.
	c := getInteraction(t, s, p, "low")
	c.Approvers = []string{"user:bob", "role:editor"}
	ok(t, s.Interactions.Change(ctx, p, store.InteractionChange{Interaction: c}))
	equal(t, "whose it was", []string{"urgent", "own"}, listed(t, s, p, store.InteractionQuery{Approvers: []string{"user:ann"}, Statuses: []store.InteractionStatus{pending}}))
	equal(t, "whose it is", []string{"low", "own"}, listed(t, s, p, store.InteractionQuery{Approvers: []string{"user:bob"}, Statuses: []store.InteractionStatus{pending}}))
}

func testInteractionFamily(t *testing.T, s store.Stores) {
	p := tenant(t)
	for _, e := range []struct{ id, parent, root string }{
		{"root", "", "root"}, {"child", "root", "root"}, {"grandchild", "child", "root"}, {"detached", "", "root"},
		{"stranger", "", "stranger"},
	} {
		q := pendingOne("q-" + e.id)
		q.Root = e.root
		started(t, s, p, e.id, func(a *store.Append) { a.Create.Parent, a.Ask = e.parent, []store.Interaction{q} })
	}
	for id, want := range map[string][]string{
		"root": {"q-root", "q-child", "q-grandchild", "q-detached"}, "child": {"q-child", "q-grandchild"}, "grandchild": {"q-grandchild"},
		"stranger": {"q-stranger"}, "unknown": nil,
	} {
		equal(t, "family of "+id, want, listed(t, s, p, store.InteractionQuery{Execution: id, Family: true}))
	}
	equal(t, "without family", []string{"q-root"}, listed(t, s, p, store.InteractionQuery{Execution: "root"}))
}

// testInteractionIsolation lets two tenants use the same ids for everything.
func testInteractionIsolation(t *testing.T, s store.Stores) {
	ctx := t.Context()
	a, b := tenant(t), tenant(t)
	for _, p := range []identity.Principal{a, b} {
		asked(t, s, p, "e1", pendingOne("q", "user:ann"))
		c := store.InteractionChange{
			Interaction: getInteraction(t, s, p, "q"), Responses: []store.Response{{ID: "r", Channel: "email",
				Dedup: "d", Raw: p.Workspace}},
			Deliveries: []store.Delivery{{ID: "m", Channel: "email", Recipient: p.Workspace}},
		}
		ok(t, s.Interactions.Change(ctx, p, c))
		ok(t, s.Interactions.Delivered(ctx, p, store.Delivery{ID: "m", Status: store.DeliverySent}, nil, []string{"th"}))
	}
	hash := identity.HashSecret(a.Workspace)
	ok(t, s.Interactions.Change(ctx, a, store.InteractionChange{Interaction: getInteraction(t, s, a, "q"),
		Links: []store.Link{{Hash: hash}}}))
	before := getInteraction(t, s, a, "q")

	i := getInteraction(t, s, b, "q")
	if err := s.Interactions.Change(ctx, b, store.InteractionChange{Interaction: i, UseLink: &hash}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("using the link of another tenant: %v", err)
	}
	ok(t, s.Interactions.Change(ctx, b, ending(i, "end")))
	w := next("e1", 1)
	w.Withdraw, w.Pause = []string{"q"}, &store.Pause{ID: "q2", Reason: store.PauseOperator}
	mustAppend(t, s, b, w)
	if diff := cmp.Diff(before, getInteraction(t, s, a, "q")); diff != "" {
		t.Errorf("what one tenant does is seen by another (-want +got):\n%s", diff)
	}
	equal(t, "inbox of the other", []string(nil), inboxOf(t, s, a, "e1"))
	equal(t, "pauses of the other", []string{"q human active 0 "}, pausesOf(t, s, a, "e1"))
	equal(t, "link", int64(0), must[store.Link](t)(s.Interactions.Link(ctx, identity.System(a.Workspace), hash)).Used)
	_, err := s.Interactions.Link(ctx, identity.System(b.Workspace), hash)
	wantCode(t, "the link of another tenant", err, fault.NotFound)
	equal(t, "replies", a.Workspace, must[[]store.Response](t)(s.Interactions.Responses(ctx, a, "q"))[0].Raw)
}
