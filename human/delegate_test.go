package human

import (
	"slices"
	"testing"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

func TestDesk_Delegate(t *testing.T) {
	t.Parallel()
	b := openBureau()
	r := Request{Approvers: []string{"bob", "role:operator", "cid"}, MinApprovals: 2, AllowDelegation: true, ExcludeRequester: true}
	i := b.put(t, r)
	for to, code := range map[string]fault.Code{
		"cid": fault.InvalidInput, "mail:cid@x.org": fault.InvalidInput, "bob": fault.InvalidInput, "ann": fault.InvalidInput, "nobody": fault.InvalidInput,
		"role:viewer": fault.InvalidInput, "mail:out@side.org": fault.InvalidInput, "anyone": fault.InvalidInput, "": fault.InvalidInput,
	} {
		_, err := b.Delegate(t.Context(), b.as("bob"), i.ID, "", to, "")
		if fault.CodeOf(err) != code {
			t.Errorf("to %q: %v", to, err)
		}
	}
	_, err := b.Delegate(t.Context(), b.as("dot"), i.ID, "", "adm", "")
	wantCode(t, err, fault.Forbidden)
	after, err := b.Delegate(t.Context(), b.as("bob"), i.ID, "", "dot@x.org", "on leave")
	if err != nil || !slices.Contains(after.Approvers, "user:dot") || slices.Contains(after.Approvers, "user:bob") {
		t.Fatalf("%q (%v)", after.Approvers, err)
	}
	_, err = b.say("bob", i.ID, yes)
	wantCode(t, err, fault.Forbidden)
	_, err = b.Delegate(t.Context(), b.as("cid"), i.ID, "", "dot", "")
	wantCode(t, err, fault.InvalidInput) // dot would count twice
	_, err = b.Delegate(t.Context(), b.as("cid"), i.ID, "", "bob", "")
	wantCode(t, err, fault.InvalidInput) // bob has none any more
	after, err = b.Delegate(t.Context(), b.as("dot"), i.ID, "", "adm", "")
	if err != nil || !slices.Contains(after.Approvers, "user:adm") {
		t.Fatalf("a delegate hands it on: %q (%v)", after.Approvers, err)
	}
	b.must(t, "adm", i.ID, yes)
	_, err = b.say("dot", i.ID, yes)
	wantCode(t, err, fault.Forbidden)
	b.must(t, "cid", i.ID, yes)
	votes := b.answered(t, i).Get("value.approvals")
	if votes.Get("0.person").Str != "adm" || votes.Get("0.for").Str != "bob" || votes.Get("1.person").Str != "cid" || votes.Get("1.for").Exists() {
		t.Errorf("votes %s", votes.Raw)
	}
	r.AllowDelegation = false
	_, err = b.Delegate(t.Context(), b.as("bob"), b.put(t, r).ID, "", "dot", "")
	wantCode(t, err, fault.Forbidden)
	r.AllowDelegation = true
	voted := b.put(t, r)
	b.must(t, "bob", voted.ID, yes)
	_, err = b.Delegate(t.Context(), b.as("bob"), voted.ID, "", "dot", "")
	wantCode(t, err, fault.Conflict)
}

// A vote that was handed on is not one more.
func TestDesk_Delegate_AddsNoVote(t *testing.T) {
	t.Parallel()
	b := openBureau()
	i := b.put(t, Request{Approvers: []string{"role:approver"}, MinApprovals: 2, MinRejections: 2, AllowDelegation: true})
	if _, err := b.Delegate(t.Context(), b.as("bob"), i.ID, "", "dot", ""); err != nil {
		t.Fatal(err)
	}
	if after := b.must(t, "cid", i.ID, nay); after.Status != store.InteractionCompleted {
		t.Error("only one more could agree, and two are needed")
	}
}

// A question is an admin's, too, when the vote of who is left was handed to somebody who is gone, or may not be used.
func TestDesk_Delegate_Orphans(t *testing.T) {
	t.Parallel()
	b := openBureau()
	i := b.put(t, Request{Approvers: []string{"bob"}, AllowDelegation: true})
	if _, err := b.Delegate(t.Context(), b.as("bob"), i.ID, "", "dot", ""); err != nil {
		t.Fatal(err)
	}
	_, err := b.say("adm", i.ID, yes)
	wantCode(t, err, fault.Forbidden)
	b.staff.set(identity.User{Workspace: "ws", ID: "dot", Disabled: true})
	if i = b.must(t, "adm", i.ID, yes); i.Status != store.InteractionCompleted {
		t.Errorf("after an admin's answer: %s", i.Status)
	}
	i = b.put(t, Request{Approvers: []string{"ann", "cid"}, ExcludeRequester: true})
	b.staff.set(identity.User{Workspace: "ws", ID: "cid", Disabled: true})
	if i = b.must(t, "adm", i.ID, yes); i.Status != store.InteractionCompleted {
		t.Errorf("only the requester is left: %s", i.Status)
	}
}
