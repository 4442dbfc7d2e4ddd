package human

import (
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

// secretOf is the secret of a link's address.
func secretOf(t testing.TB, url string) string {
	t.Helper()
	secret, ok := strings.CutPrefix(url, "https://tandem.example/respond/")
	if !ok || len(secret) < 43 {
		t.Fatalf("the address is %q", url)
	}
	return secret
}

func (b *bureau) link(t testing.TB, who, id, recipient string) string {
	t.Helper()
	made, err := b.NewLink(t.Context(), b.as(who), id, recipient)
	if err != nil {
		t.Fatal(err)
	}
	return secretOf(t, made.URL)
}

// sent is the secret of a link as a message to an address carries it.
func (b *bureau) sent(t testing.TB, id, recipient, address string) string {
	t.Helper()
	i := b.shelf.read(t, "ws", id)
	r, err := ReadRequest(i)
	if err != nil {
		t.Fatal(err)
	}
	secret, link, ok := linkFor(i, r, recipient, identity.Means{Kind: identity.ByLink, Address: address}, time.UnixMilli(now()))
	if !ok {
		t.Fatalf("no link for %s", recipient)
	}
	b.shelf.mu.Lock()
	defer b.shelf.mu.Unlock()
	b.shelf.links[link.Hash] = link
	return secret
}

// state opens a link.
func (b *bureau) state(t testing.TB, secret string) LinkView {
	t.Helper()
	view, err := b.ViewLink(t.Context(), secret)
	if err != nil {
		t.Fatal(err)
	}
	return view
}

func TestLink_SingleUse(t *testing.T) {
	t.Parallel()
	b := openBureau()
	i := b.put(t, Request{Title: "Pay?", Approvers: []string{"bob", "cid"}, MinApprovals: 2})
	secret := b.link(t, "bob", i.ID, "bob")
	for hash := range b.shelf.links {
		if hash != identity.HashSecret(secret) || strings.Contains(secret, string(hash[:])) {
			t.Error("a secret is kept as something else than its hash")
		}
	}
	if view := b.state(t, secret); view.State != LinkOpen || view.Request.Title != "Pay?" || view.Link.Recipient != "user:bob" {
		t.Errorf("%+v", view)
	}
	if _, err := b.RespondLink(t.Context(), secret, Submission{Data: json.RawMessage(`{}`)}); fault.CodeOf(err) != fault.InvalidInput {
		t.Errorf("a wrong answer: %v", err)
	}
	after, err := b.RespondLink(t.Context(), secret, Submission{Data: json.RawMessage(yes)})
	if err != nil || after.Status != store.InteractionPending || b.shelf.responses[0].User != "bob" {
		t.Fatalf("%+v (%v)", after, err)
	}
	if view := b.state(t, secret); view.State != LinkUsed {
		t.Errorf("state %s", view.State)
	}
	_, err = b.RespondLink(t.Context(), secret, Submission{Data: json.RawMessage(yes)})
	wantCode(t, err, fault.Conflict)
	// A second link is not a second vote.
	_, err = b.RespondLink(t.Context(), b.sent(t, i.ID, "user:bob", "mail:bob@x.org"), Submission{Data: json.RawMessage(yes)})
	wantCode(t, err, fault.Conflict)
	other := b.link(t, "cid", i.ID, "cid")
	b.must(t, "cid", i.ID, yes)
	if view := b.state(t, other); view.State != LinkEnded || view.Interaction.Status != store.InteractionCompleted {
		t.Errorf("%+v", view)
	}
	_, err = b.RespondLink(t.Context(), other, Submission{Data: json.RawMessage(yes)})
	if e := wantCode(t, err, fault.Conflict); e.Details["status"] != "completed" {
		t.Errorf("%+v", e.Details)
	}
	if logged := b.logged(); strings.Contains(logged, secret) || strings.Contains(logged, other) || !strings.Contains(logged, "refused") {
		t.Errorf("the log:\n%s", logged)
	}
}

func TestLink_UsedByManyAtOnce(t *testing.T) {
	t.Parallel()
	b := openBureau()
	i := b.put(t, Request{Approvers: []string{"bob", "cid"}, MinApprovals: 2})
	secret := b.link(t, "bob", i.ID, "bob")
	desks := []*Desk{b.Desk, New(b.o)}
	var took atomic.Int64
	var all sync.WaitGroup
	for n := range 50 {
		all.Go(func() {
			if _, err := desks[n%2].RespondLink(t.Context(), secret, Submission{Data: json.RawMessage(yes)}); err == nil {
				took.Add(1)
			} else if fault.CodeOf(err) != fault.Conflict {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if took.Load() != 1 || len(b.shelf.responses) != 1 {
		t.Errorf("%d of 50 were taken, %d are recorded", took.Load(), len(b.shelf.responses))
	}
}

func TestLink_Refused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := openBureau()
		i := b.put(t, Request{Title: "secret plan", Approvers: []string{"role:approver", "dot", "mail:out@side.org"}, TimeoutSeconds: 600})
		// Forged.
		for _, forged := range []string{"", "x", identity.NewSecret()} {
			if _, err := b.ViewLink(t.Context(), forged); fault.CodeOf(err) != fault.NotFound {
				t.Errorf("%q: %v", forged, err)
			}
			if _, err := b.RespondLink(t.Context(), forged, Submission{Data: json.RawMessage(yes)}); fault.CodeOf(err) != fault.NotFound {
				t.Errorf("%q: %v", forged, err)
			}
		}
		refused := func(secret, state string, code fault.Code) {
			t.Helper()
			view := b.state(t, secret)
			if view.State != state || state == LinkExpired && (view.Request.Title != "" || view.Interaction.Request != nil) {
				t.Errorf("%+v, want %s", view, state)
			}
			_, err := b.RespondLink(t.Context(), secret, Submission{Data: json.RawMessage(yes)})
			wantCode(t, err, code)
		}
		bob, dot, out := b.link(t, "bob", i.ID, "bob"), b.link(t, "dot", i.ID, "dot"), b.sent(t, i.ID, "mail:out@side.org", "mail:out@side.org")
		// Those who lost what they were asked for.
		b.staff.set(identity.User{Workspace: "ws", ID: "bob", Roles: []identity.Role{identity.Viewer}})
		refused(bob, LinkExpired, fault.Forbidden)
		b.staff.set(identity.User{Workspace: "ws", ID: "dot", Disabled: true})
		refused(dot, LinkExpired, fault.Forbidden)
		// Of another attempt.
		moved := b.shelf.read(t, "ws", i.ID)
		moved.Attempt++
		b.shelf.put(moved)
		refused(out, LinkExpired, fault.Conflict)
		moved.Attempt--
		b.shelf.put(moved)
		if view := b.state(t, out); view.State != LinkOpen {
			t.Errorf("state %s", view.State)
		}
		// Expired by itself.
		early := b.shelf.links[identity.HashSecret(out)]
		early.Expires = now() + 1000
		b.shelf.links[early.Hash] = early
		time.Sleep(time.Second)
		refused(out, LinkExpired, fault.Conflict)
		early.Expires = 0
		b.shelf.links[early.Hash] = early
		time.Sleep(600 * time.Second)
		refused(out, LinkEnded, fault.Conflict)
		if len(b.shelf.responses) != 0 {
			t.Errorf("%d replies", len(b.shelf.responses))
		}
	})
}

func TestLink_ForAnyone(t *testing.T) {
	t.Parallel()
	b := openBureau()
	public, linked := b.put(t, Request{Access: "public", Approvers: []string{"bob"}}), b.put(t, Request{Access: "link", Approvers: []string{"bob"}})
	for _, i := range []store.Interaction{public, linked} {
		_, err := b.NewLink(t.Context(), b.as("dot"), i.ID, Anyone)
		wantCode(t, err, fault.Forbidden)
		_, err = b.NewLink(t.Context(), b.as("ann"), i.ID, "bob")
		wantCode(t, err, fault.InvalidInput)
	}
	open, single := b.link(t, "ann", public.ID, Anyone), b.link(t, "ann", linked.ID, Anyone)
	if !b.state(t, open).Link.Reusable || b.state(t, single).Link.Reusable {
		t.Error("only those of public forms are not used up")
	}
	_, err := b.say("dot", linked.ID, yes)
	wantCode(t, err, fault.Forbidden) // the link is what lets everybody in
	for n, secret := range []string{open, single} {
		after, err := b.RespondLink(t.Context(), secret, Submission{Data: json.RawMessage(yes)})
		if err != nil || after.Status != store.InteractionCompleted || !strings.HasPrefix(b.shelf.responses[n].Address, "link:") {
			t.Errorf("%+v (%v)", after, err)
		}
		_, err = b.RespondLink(t.Context(), secret, Submission{Data: json.RawMessage(yes)})
		wantCode(t, err, fault.Conflict)
	}
}

// Who is too late is told how it ended; votes of a question that was taken back have not ended it.
func TestRespond_TooLateSaysHowItEnded(t *testing.T) {
	t.Parallel()
	b := openBureau()
	done := b.put(t, Request{Approvers: []string{"bob", "cid"}})
	b.must(t, "bob", done.ID, `{"action":"reject"}`)
	late := b.put(t, Request{Approvers: []string{"bob", "cid"}, MinApprovals: 2})
	b.must(t, "bob", late.ID, `{"action":"approve"}`)
	if _, err := b.Cancel(t.Context(), b.as("adm"), late.ID, "enough"); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{done.ID: `it has ended with completed, answered by "bob" with "reject"`, late.ID: "it has ended with cancelled"} {
		_, err := b.say("cid", id, `{"action":"approve"}`)
		if fault.CodeOf(err) != fault.Conflict || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%v does not end with %q", err, want)
		}
	}
}

// A link answers in somebody's name, so it is not handed to others.
func TestLink_NotInTheNameOfOthers(t *testing.T) {
	t.Parallel()
	b := openBureau()
	i := b.put(t, Request{Approvers: []string{"bob", "role:approver", "ann"}, ExcludeRequester: true})
	for _, c := range []struct {
		who, recipient string
		code           fault.Code
	}{
		{"ann", "bob", fault.Forbidden}, {"cid", "bob", fault.Forbidden}, {"ann", "ann", fault.InvalidInput}, {"adm", "ann", fault.InvalidInput}, {"adm", "dot", fault.InvalidInput},
		{"adm", "role:approver", fault.InvalidInput}, {"adm", "mail:out@side.org", fault.InvalidInput}, {"adm", Anyone, fault.InvalidInput}, {"adm", "", fault.InvalidInput},
	} {
		_, err := b.NewLink(t.Context(), b.as(c.who), i.ID, c.recipient)
		if fault.CodeOf(err) != c.code {
			t.Errorf("%s for %q: %v, want %s", c.who, c.recipient, err, c.code)
		}
		if strings.Contains(err.Error(), "for you") { // it is about the recipient
			t.Errorf("%s for %q is told %q", c.who, c.recipient, err)
		}
	}
	_, err := b.NewLink(t.Context(), b.as("adm"), i.ID, "dot")
	if want := "name one of those who are asked: user:bob, role:approver, user:ann"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v does not say %q", err, want)
	}
	bare := openBureau(func(o *Options) { o.PublicURL = "" })
	_, err = bare.NewLink(t.Context(), bare.as("bob"), bare.put(t, Request{Approvers: []string{"bob"}}).ID, "bob")
	wantCode(t, err, fault.Unsupported)
}

// A link is for one person, so the name of a role means the user who is called that.
func TestLink_UserNamedLikeARole(t *testing.T) {
	t.Parallel()
	b := openBureau()
	b.staff.set(identity.User{Workspace: "ws", ID: "admin", Roles: []identity.Role{identity.Admin}})
	i := b.put(t, Request{Approvers: []string{"user:admin", "bob"}, AllowDelegation: true})
	if view := b.state(t, b.link(t, "admin", i.ID, "admin")); view.Link.Recipient != "user:admin" {
		t.Errorf("the link is for %q", view.Link.Recipient)
	}
	if _, err := b.NewLink(t.Context(), b.as("admin"), i.ID, "operator"); fault.CodeOf(err) != fault.InvalidInput || !strings.Contains(err.Error(), "name a user as user:ID") {
		t.Errorf("a role that is not a user: %v", err)
	}
}
