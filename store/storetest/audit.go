package storetest

import (
	"encoding/json"
	"fmt"
	"testing"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

// entries are the entries of a workspace in short, the oldest first.
func entries(t *testing.T, s store.Stores, p identity.Principal, q store.AuditQuery) []string {
	t.Helper()
	all := []string{}
	for e, err := range s.Audit.All(t.Context(), p, q) {
		ok(t, err)
		all = append(all, fmt.Sprintf("%s %s %s", e.User, e.Action, e.ObjectID))
	}
	return all
}

// testAuditWithChange: an entry is on disk if and only if the change is.
func testAuditWithChange(t *testing.T, s store.Stores) {
	p, ctx := tenant(t), t.Context()
	ok(t, s.Workspaces.Create(ctx, identity.System(""), identity.Workspace{ID: p.Workspace}))
	draft := func() *store.AuditDraft {
		return &store.AuditDraft{AuditEntry: store.AuditEntry{Workspace: p.Workspace, Time: 7, User: "ann",
			Means: identity.Means{Kind: identity.ByToken, Token: "tok"}, Address: "192.0.2.1", Agent: "curl"}}
	}
	d := draft()
	in := store.Audited(store.WithAuditDraft(ctx, d), store.AuditEntry{Action: "user.create", Object: "user", ObjectID: "bob",
		Detail: store.AuditChange(nil, map[string]string{"name": "Bob"})})
	user := identity.User{ID: "bob", Name: "Bob", Roles: []identity.Role{identity.Viewer}}
	ok(t, s.Users.Create(in, p, user))
	equal(t, "settled", true, d.Settled())
	ok(t, s.Users.Update(in, p, user)) // the same entry is not written twice
	got := must[[]store.AuditEntry](t)(s.Audit.List(ctx, p, store.AuditQuery{}))
	equal(t, "entries", 1, len(got))
	if len(got) != 1 {
		return
	}
	if got[0].Seq == 0 {
		t.Error("the entry has no number")
	}
	got[0].Seq = 0
	equal(t, "entry", store.AuditEntry{
		Workspace: p.Workspace, Time: 7, User: "ann", Means: identity.Means{Kind: identity.ByToken, Token: "tok"}, Address: "192.0.2.1", Agent: "curl",
		Action: "user.create", Object: "user", ObjectID: "bob", Outcome: store.AuditDone, Detail: json.RawMessage(`{"after":{"name":"Bob"}}`),
	}, got[0])

	// What is refused leaves no entry, also where it is found out only after the statement.
	for what, refused := range map[string]error{
		"a user twice":          s.Users.Create(store.Audited(store.WithAuditDraft(ctx, draft()), store.AuditEntry{Action: "x"}), p, user),
		"an unknown credential": s.Credentials.Delete(store.Audited(store.WithAuditDraft(ctx, draft()), store.AuditEntry{Action: "x"}), p, "nothing"),
		"an unknown user":       s.Users.Update(store.Audited(store.WithAuditDraft(ctx, draft()), store.AuditEntry{Action: "x"}), p, identity.User{ID: "nobody"}),
	} { // order does not matter: none leaves anything
		if refused == nil {
			t.Errorf("%s was not refused", what)
		}
	}
	equal(t, "after refusals", []string{"ann user.create bob"}, entries(t, s, p, store.AuditQuery{}))

	// A row of a journal, and entries that come from elsewhere, commit alike.
	in = store.Audited(store.WithAuditDraft(ctx, draft()), store.AuditEntry{Action: "execution.start", Object: "execution", ObjectID: "e1"})
	ok(t, s.Journal.Append(in, p, first("e1")))
	in = store.WithEntries(ctx, store.PendingEntries(store.Audited(ctx,
		store.AuditEntry{Workspace: p.Workspace, Time: 9, User: "eve", Action: "execution.pause", Object: "execution", ObjectID: "e1"})))
	wantCode(t, "a row too late", s.Journal.Append(in, p, next("e1", 9)), fault.Conflict)
	ok(t, s.Journal.Append(in, p, next("e1", 1)))
	ok(t, s.Journal.Append(store.WithoutEntries(store.Audited(ctx, store.AuditEntry{Action: "x"})), p, next("e1", 2)))
	equal(t, "with rows", []string{"ann user.create bob", "ann execution.start e1", "eve execution.pause e1"},
		entries(t, s, p, store.AuditQuery{}))

	for _, duplicate := range []bool{false, true} {
		in = store.Audited(store.WithAuditDraft(ctx, draft()),
			store.AuditEntry{Action: "execution.signal", Object: "execution", ObjectID: "e1"})
		_, known, err := s.Inbox.Deliver(in, p, store.InboxItem{Execution: "e1", Kind: "signal", Dedup: "d", Time: 1})
		ok(t, err)
		equal(t, "a delivery that was made before", duplicate, known)
	}
	equal(t, "what was delivered twice", []string{"ann execution.signal e1"},
		entries(t, s, p, store.AuditQuery{Action: "execution.signal"}))
	wantCode(t, "an entry without an action", s.Audit.Enter(ctx, p, store.AuditEntry{}), fault.Invalid)
}

func testAuditQuery(t *testing.T, s store.Stores) {
	p, ctx := tenant(t), t.Context()
	for i := range 30 {
		e := store.AuditEntry{Time: int64(100 + i), User: []string{"ann", "bob"}[i%2],
			Action: []string{"workflow.update", "workflow.deploy", "login.refuse"}[i%3], Object: "workflow",
			ObjectID: fmt.Sprintf("w%d", i%5)}
		if i%3 == 2 {
			e.Outcome, e.Object = store.AuditRefused, "login"
		}
		ok(t, s.Audit.Enter(ctx, p, e))
	}
	count := func(q store.AuditQuery) int {
		n := 0
		for e, err := range s.Audit.All(ctx, p, q) {
			ok(t, err)
			if e.Outcome == "" {
				t.Error("an entry without an outcome")
			}
			n++
		}
		q.Limit = 500
		equal(t, "listed", n, len(must[[]store.AuditEntry](t)(s.Audit.List(ctx, p, q))))
		return n
	}
	for _, c := range []struct {
		q    store.AuditQuery
		want int
	}{
		{store.AuditQuery{}, 30},
		{store.AuditQuery{User: "ann"}, 15},
		{store.AuditQuery{Action: "workflow.update"}, 10},
		{store.AuditQuery{Action: "workflow."}, 20},
		{store.AuditQuery{Action: "workflow"}, 0},
		{store.AuditQuery{Object: "login"}, 10},
		{store.AuditQuery{ObjectID: "w3"}, 6},
		{store.AuditQuery{ObjectID: "w3", User: "ann"}, 3},
		{store.AuditQuery{Outcome: store.AuditRefused}, 10},
		{store.AuditQuery{Since: 110, Until: 120}, 10},
	} {
		if got := count(c.q); got != c.want {
			t.Errorf("%+v: %d entries, want %d", c.q, got, c.want)
		}
	}
	equal(t, "usual page", store.DefaultPageSize, len(must[[]store.AuditEntry](t)(s.Audit.List(ctx, p, store.AuditQuery{}))))
	// Pages follow each other, also while entries are added.
	var times []int64
	for q := (store.AuditQuery{Limit: 7}); ; {
		page := must[[]store.AuditEntry](t)(s.Audit.List(ctx, p, q))
		if len(page) == 0 {
			break
		}
		for _, e := range page {
			times = append(times, e.Time)
		}
		q.Before = page[len(page)-1].Seq
		ok(t, s.Audit.Enter(ctx, p, store.AuditEntry{Time: 1000, Action: "later"}))
	}
	for i, at := range times {
		if at != int64(129-i) {
			t.Fatalf("entry %d of the pages is of %d; want the newest first, without gaps: %v", i, at, times)
		}
	}
	equal(t, "in all", 30, len(times))
	equal(t, "of another workspace", 0, len(must[[]store.AuditEntry](t)(s.Audit.List(ctx, tenant(t), store.AuditQuery{}))))
}

func testAuditRetention(t *testing.T, s store.Stores) {
	p, other, ctx := tenant(t), tenant(t), t.Context()
	for i := range 10 {
		ok(t, s.Audit.Enter(ctx, p, store.AuditEntry{Time: int64(100 + i), Action: "x", ObjectID: fmt.Sprint(i)}))
		ok(t, s.Audit.Enter(ctx, other, store.AuditEntry{Time: int64(100 + i), Action: "y"}))
	}
	equal(t, "nothing is old", 0, must[int](t)(s.Audit.Retain(ctx, p, 100, 0, 500)))
	equal(t, "no rule", 0, must[int](t)(s.Audit.Retain(ctx, p, 0, 0, 500)))
	equal(t, "by age", 3, must[int](t)(s.Audit.Retain(ctx, p, 103, 0, 500)))
	equal(t, "by count", 4, must[int](t)(s.Audit.Retain(ctx, p, 0, 5, 501)))
	equal(t, "by count, once more", 0, must[int](t)(s.Audit.Retain(ctx, p, 0, 5, 501)))
	got := entries(t, s, p, store.AuditQuery{})
	equal(t, "what is left, and that something was removed",
		[]string{" x 7", " x 8", " x 9", "ann audit.retain ", "ann audit.retain "}, got)
	told := must[[]store.AuditEntry](t)(s.Audit.List(ctx, p, store.AuditQuery{Action: "audit.retain"}))
	var detail struct{ Removed, Before, Keep int }
	ok(t, json.Unmarshal(told[1].Detail, &detail))
	equal(t, "detail", struct{ Removed, Before, Keep int }{3, 103, 0}, detail)
	equal(t, "another workspace", 10, len(entries(t, s, other, store.AuditQuery{})))
	equal(t, "all but the entry about it", 10, must[int](t)(s.Audit.Retain(ctx, other, 0, 1, 503)))
	equal(t, "and no more", 0, must[int](t)(s.Audit.Retain(ctx, other, 0, 1, 504)))
	last := must[[]store.AuditEntry](t)(s.Audit.List(ctx, p, store.AuditQuery{}))[0].Seq
	equal(t, "everything", 5, must[int](t)(s.Audit.Retain(ctx, p, 10_000, 0, 502)))
	if left := must[[]store.AuditEntry](t)(s.Audit.List(ctx, p, store.AuditQuery{})); len(left) != 1 || left[0].Seq <= last {
		t.Errorf("after everything was removed there is %+v; want the entry about it alone, with a number above %d", left, last)
	}
}
