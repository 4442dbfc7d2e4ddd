package storetest

import (
	"context"
	"testing"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

// reachProbes are those of contact channels and of codes for addresses, see [probes].
func reachProbes() map[string]probe {
	return map[string]probe{
		"Contacts.Put": func(ctx context.Context, s store.Stores, p identity.Principal, k known) (any, error) {
			return nil, s.Contacts.Put(ctx, p, store.ContactChannel{Workspace: k.workspace, Name: "office",
				Channel: "email", Credential: "intruder"})
		},
		"Contacts.Get": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Contacts.Get(ctx, p, "office")
		},
		"Contacts.List": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Contacts.List(ctx, p)
		},
		"Contacts.Delete": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return nil, s.Contacts.Delete(ctx, p, "office")
		},
		"Proofs.Begin": func(ctx context.Context, s store.Stores, p identity.Principal, k known) (any, error) {
			return nil, s.Proofs.Begin(ctx, p, store.AddressProof{Workspace: k.workspace, User: "ann", Address: secret,
				Contact: "intruder"}, store.ProofLimit{Most: 9})
		},
		"Proofs.List": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Proofs.List(ctx, p, "ann")
		},
		"Proofs.Try": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			got, err := s.Proofs.Try(ctx, p, "ann", "mail:ann")
			return got, err
		},
		"Proofs.Delete": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return nil, s.Proofs.Delete(ctx, p, "ann", "mail:ann")
		},
	}
}

// fillReach stores one of each for a tenant, whose user is ann.
func fillReach(t *testing.T, s store.Stores, p identity.Principal) {
	t.Helper()
	ok(t, s.Contacts.Put(t.Context(), p, store.ContactChannel{Name: "office", Channel: "email", Credential: secret, CreatedBy: secret}))
	ok(t, s.Proofs.Begin(t.Context(), p, store.AddressProof{User: "ann", Address: "mail:ann", Contact: secret, Expires: 1 << 50},
		store.ProofLimit{Most: 9}))
}

func testContacts(t *testing.T, s store.Stores) {
	p, _ := ann(t, s)
	ctx := t.Context()
	mail := store.ContactChannel{Workspace: p.Workspace, Name: "office", Channel: "email", Credential: "c1", InCredential: "c2",
		CreatedBy: "ann", Created: 1, Updated: 1}
	hook := store.ContactChannel{Workspace: p.Workspace, Name: "hook", Channel: "webhook", Credential: "c3",
		Settings: []byte(`{"webhook_url":"https://a.example"}`), CreatedBy: "ann", Created: 2, Updated: 2}
	ok(t, s.Contacts.Put(ctx, p, mail))
	ok(t, s.Contacts.Put(ctx, p, hook))
	wantCode(t, "without a name", s.Contacts.Put(ctx, p, store.ContactChannel{Channel: "email"}), fault.Invalid)
	equal(t, "listed", []store.ContactChannel{hook, mail}, must[[]store.ContactChannel](t)(s.Contacts.List(ctx, p)))
	// One that is replaced keeps who made it.
	ok(t, s.Contacts.Put(ctx, p, store.ContactChannel{Name: "office", Channel: "slack", Credential: "c4",
		CreatedBy: "bob", Created: 9, Updated: 9}))
	mail.Channel, mail.Credential, mail.InCredential, mail.Updated = "slack", "c4", "", 9
	equal(t, "replaced", mail, must[store.ContactChannel](t)(s.Contacts.Get(ctx, p, "office")))
	ok(t, s.Contacts.Delete(ctx, p, "office"))
	wantCode(t, "twice", s.Contacts.Delete(ctx, p, "office"), fault.NotFound)
	_, err := s.Contacts.Get(ctx, p, "office")
	wantCode(t, "gone", err, fault.NotFound)
}

func testProofs(t *testing.T, s store.Stores) {
	p, _ := ann(t, s)
	ctx := t.Context()
	limit := store.ProofLimit{Most: 2, Since: 100}
	one := store.AddressProof{Workspace: p.Workspace, User: "ann", Address: "mail:a", Contact: "office",
		Hash: identity.HashSecret("1"), Created: 200, Expires: 300}
	two := one
	two.Address = "mail:b"
	ok(t, s.Proofs.Begin(ctx, p, one, limit))
	ok(t, s.Proofs.Begin(ctx, p, two, limit))
	three := one
	three.Address = "mail:c"
	err := s.Proofs.Begin(ctx, p, three, limit)
	wantCode(t, "a third", err, fault.RateLimited)
	if fault.From(err).Details["retry_after_ms"] == nil {
		t.Error("it does not say how long to wait")
	}
	wantCode(t, "of nobody", s.Proofs.Begin(ctx, p, store.AddressProof{User: "bob", Address: "mail:a"}, limit), fault.NotFound)
	// Tries are counted, also of those who come at once; another code begins anew.
	one.Tries = 1
	equal(t, "tried", one, must[store.AddressProof](t)(s.Proofs.Try(ctx, p, "ann", "mail:a")))
	one.Tries = 2
	equal(t, "tried again", one, must[store.AddressProof](t)(s.Proofs.Try(ctx, p, "ann", "mail:a")))
	one.Tries, one.Hash = 0, identity.HashSecret("2")
	ok(t, s.Proofs.Begin(ctx, p, one, limit))
	equal(t, "listed", []store.AddressProof{one, two}, must[[]store.AddressProof](t)(s.Proofs.List(ctx, p, "ann")))
	_, err = s.Proofs.Try(ctx, p, "ann", "mail:c")
	wantCode(t, "unknown", err, fault.NotFound)
	ok(t, s.Proofs.Delete(ctx, p, "ann", "mail:a"))
	ok(t, s.Proofs.Delete(ctx, p, "ann", "mail:a"))
	// What is old does not count, and goes; and so does everything with its user.
	ok(t, s.Proofs.Begin(ctx, p, three, store.ProofLimit{Most: 1, Since: 201}))
	equal(t, "the old ones are gone", []store.AddressProof{three}, must[[]store.AddressProof](t)(s.Proofs.List(ctx, p, "ann")))
	ok(t, s.Users.Delete(ctx, p, "ann"))
	ok(t, s.Users.Create(ctx, p, identity.User{ID: "ann", Roles: []identity.Role{identity.Viewer}}))
	equal(t, "those of another ann", 0, len(must[[]store.AddressProof](t)(s.Proofs.List(ctx, p, "ann"))))
}

// testChosenAccounts holds a driver to the accounts that people have chosen: they are listened to while a question is pending.
func testChosenAccounts(t *testing.T, s store.Stores) {
	p, ctx := tenant(t), t.Context()
	asked(t, s, p, "e1", pendingOne("q"), pendingOne("w"))
	mail := store.Account{Workspace: p.Workspace, Channel: "email", Credential: "c1"}
	slack := store.Account{Workspace: p.Workspace, Channel: "slack", Credential: "c2"}
	for _, id := range []string{"q", "w"} {
		ok(t, s.Interactions.Change(ctx, p, store.InteractionChange{Interaction: getInteraction(t, s, p, id),
			Accounts: []store.Account{slack, mail}}))
		ok(t, s.Interactions.Change(ctx, p, store.InteractionChange{Interaction: getInteraction(t, s, p, id),
			Accounts: []store.Account{mail}}))
	}
	equal(t, "accounts", []store.Account{mail, slack}, must[[]store.Account](t)(s.Interactions.Accounts(ctx, p)))
	ok(t, s.Interactions.Change(ctx, p, ending(getInteraction(t, s, p, "q"), "r")))
	equal(t, "of what is pending", []store.Account{mail, slack}, must[[]store.Account](t)(s.Interactions.Accounts(ctx, p)))
	ok(t, s.Interactions.Change(ctx, p, ending(getInteraction(t, s, p, "w"), "r2")))
	equal(t, "of nothing", 0, len(must[[]store.Account](t)(s.Interactions.Accounts(ctx, p))))
}
