package storetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

func testInteractionsDue(t *testing.T, s store.Stores) {
	p, ctx := tenant(t), t.Context()
	at := func(id string, next int64) store.Interaction {
		i := pendingOne(id)
		i.NextAt = next
		return i
	}
	asked(t, s, p, "e1", at("third", 30), at("never", 0), at("first", 10), at("later", 100), at("second", 20))
	for _, c := range []struct {
		now   int64
		limit int
		want  []string
		next  int64
	}{
		{5, 10, nil, 10}, {10, 10, []string{"first"}, 20}, {50, 10, []string{"first", "second", "third"}, 100},
		{50, 2, []string{"first", "second"}, 30}, {50, 3, []string{"first", "second", "third"}, 100},
		{500, 10, []string{"first", "second", "third", "later"}, 0}, {50, 0, nil, 10},
	} {
		due, next, err := s.Interactions.Due(ctx, p, c.now, c.limit)
		ok(t, err)
		equal(t, fmt.Sprintf("due at %d, at most %d", c.now, c.limit), []any{c.want, c.next}, []any{idsOf(due), next})
	}
	// One that is moved is due at its new time; Tandem itself sees those of all.
	i := getInteraction(t, s, p, "first")
	i.NextAt = 40
	ok(t, s.Interactions.Change(ctx, p, store.InteractionChange{Interaction: i}))
	due, _, err := s.Interactions.Due(ctx, identity.System(""), 50, 1<<20)
	ok(t, err)
	due = slices.DeleteFunc(due, func(i store.Interaction) bool { return i.Workspace != p.Workspace })
	equal(t, "due in all workspaces", []string{"second", "third", "first"}, idsOf(due))
}

func testDeliveries(t *testing.T, s store.Stores) {
	p, ctx := tenant(t), t.Context()
	q, other, done := pendingOne("q"), pendingOne("other"), pendingOne("done")
	q.Channel, q.Credential, other.Channel, other.Credential, done.Channel, done.Credential = "email", "c1", "email", "c1", "slack", "c2"
	asked(t, s, p, "e1", q, other, done, pendingOne("in_app"))
	account := store.Account{Workspace: p.Workspace, Channel: "email", Credential: "c1"}
	slack := store.Account{Workspace: p.Workspace, Channel: "slack", Credential: "c2"}
	equal(t, "accounts", []store.Account{account, slack}, must[[]store.Account](t)(s.Interactions.Accounts(ctx, p)))
	all := must[[]store.Account](t)(s.Interactions.Accounts(ctx, identity.System("")))
	if !slices.Contains(all, account) || !slices.Contains(all, slack) || !slices.IsSortedFunc(all, func(a, b store.Account) int {
		return slices.Compare([]string{a.Workspace, a.Channel, a.Credential}, []string{b.Workspace, b.Channel, b.Credential})
	}) {
		t.Errorf("accounts of all workspaces: %v", all)
	}
	ok(t, s.Interactions.Change(ctx, p, ending(getInteraction(t, s, p, "done"), "r")))
	equal(t, "accounts of what is pending", []store.Account{account}, must[[]store.Account](t)(s.Interactions.Accounts(ctx, p)))

	i := getInteraction(t, s, p, "q")
	ok(t, s.Interactions.Change(ctx, p, store.InteractionChange{Interaction: i, Deliveries: []store.Delivery{
		{ID: "m2", Kind: "reminder", Channel: "email", Recipient: "b", NextAt: 20},
		{ID: "m1", Kind: "request", Channel: "email", Recipient: "a", NextAt: 10}, {ID: "m0", Channel: "email"},
	}}))
	dueNow := func(now int64, limit int) ([]string, int64) {
		t.Helper()
		due, next, err := s.Interactions.DueDeliveries(ctx, p, now, limit)
		ok(t, err)
		var ids []string
		for _, d := range due {
			ids = append(ids, d.ID)
		}
		return ids, next
	}
	for _, c := range []struct {
		now   int64
		limit int
		want  []string
		next  int64
	}{{5, 10, []string{"m0"}, 10}, {10, 1, []string{"m0"}, 10}, {20, 10, []string{"m0", "m1", "m2"}, 0},
		{10, 10, []string{"m0", "m1"}, 20}, {10, 0, nil, 1}} {
		ids, next := dueNow(c.now, c.limit)
		equal(t, fmt.Sprintf("messages due at %d, at most %d", c.now, c.limit), []any{c.want, c.next}, []any{ids, next})
	}
	// The link is known before the message is sent, the thread after it.
	hash := identity.HashSecret(p.Workspace + "link")
	d := store.Delivery{ID: "m1", Status: store.DeliveryPending, Attempts: 1, NextAt: 15, Error: "busy", Updated: 11}
	ok(t, s.Interactions.Delivered(ctx, p, d, []store.Link{{Hash: hash, Interaction: "not looked at", Recipient: "mail:a"}}, nil))
	equal(t, "link", store.Link{Hash: hash, Workspace: p.Workspace, Interaction: "q", Recipient: "mail:a"},
		must[store.Link](t)(s.Interactions.Link(ctx, identity.System(""), hash)))
	_, err := s.Interactions.Link(ctx, p, hash)
	wantCode(t, "a link for a user", err, fault.Forbidden)
	d = store.Delivery{ID: "m1", Status: store.DeliverySent, Attempts: 2, Receipt: json.RawMessage(`{"ts":1}`), Updated: 12}
	ok(t, s.Interactions.Delivered(ctx, p, d, []store.Link{{Hash: hash}}, []string{"<m1@t>", "<m1b@t>"}))
	equal(t, "thread", "q", must[string](t)(s.Interactions.Thread(ctx, p, "email", "<m1b@t>")))
	_, err = s.Interactions.Thread(ctx, p, "slack", "<m1@t>")
	wantCode(t, "a thread of another channel", err, fault.NotFound)
	want := store.Delivery{Workspace: p.Workspace, ID: "m1", Interaction: "q", Kind: "request", Channel: "email", Recipient: "a",
		Status: store.DeliverySent, Attempts: 2,
		Receipt: json.RawMessage(`{"ts":1}`), Updated: 12}
	equal(t, "message", want, must[[]store.Delivery](t)(s.Interactions.Deliveries(ctx, p, "q"))[1])
	ids, _ := dueNow(100, 10)
	equal(t, "still to send", []string{"m0", "m2"}, ids)

	// A thread that goes on with another question belongs to that one.
	ok(t, s.Interactions.Change(ctx, p, store.InteractionChange{Interaction: getInteraction(t, s, p, "other"),
		Deliveries: []store.Delivery{{ID: "m3", Channel: "email"}}}))
	if err := s.Interactions.Delivered(ctx, p, store.Delivery{ID: "m3", Status: store.DeliverySent},
		[]store.Link{{Hash: hash}}, nil); !isConflict(err) {
		t.Errorf("a link of another question: %v", err)
	}
	ok(t, s.Interactions.Delivered(ctx, p, store.Delivery{ID: "m3", Status: store.DeliverySent}, nil, []string{"<m1@t>"}))
	equal(t, "thread of two", "other", must[string](t)(s.Interactions.Thread(ctx, p, "email", "<m1@t>")))
	wantCode(t, "no such message", s.Interactions.Delivered(ctx, p, store.Delivery{ID: "unknown", Status: store.DeliverySent}, nil, nil), fault.NotFound)
	wantCode(t, "no such status", s.Interactions.Delivered(ctx, p, store.Delivery{ID: "m3", Status: "lost"}, nil, nil), fault.Invalid)
}
