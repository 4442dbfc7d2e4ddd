package human

import (
	"errors"
	"testing"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

// A program that speaks for people answers for whom it names, if they may, once, and only by the account that asked. The answer is recorded
// as one that a program gave.
func TestReceive_ProgramSpeaksForPeople(t *testing.T) {
	t.Parallel()
	c := newCounter(newShelf(), func(o *Options) { o.Channels = []Channel{&program{spy{name: programChannel}}} })
	i := ask(t, c.shelf, "a", 0, Request{TimeoutSeconds: 600, Channel: programChannel, Credential: "hook", Approvers: []string{"ann", "guest@example.org"}, MinApprovals: 2})
	call := func(credential, responder, id string) error {
		reply := Reply{
			Account: store.Account{Workspace: "w", Channel: programChannel, Credential: credential}, Interaction: i.ID, Verified: true, Dedup: credential + ":" + id, Answer: &Answer{Action: "approve"},
		}
		var err error
		if reply.User, reply.Mail, err = NamedPerson(responder); err != nil {
			t.Fatal(err)
		}
		reaction, err := c.Receive(t.Context(), reply)
		if err != nil || reaction.Err == nil {
			return err
		}
		return reaction.Err
	}
	for _, one := range []struct {
		credential, responder, id string
		code                      fault.Code
	}{
		{"hook", "bob", "1", fault.Forbidden}, {"other", "ann", "2", fault.Forbidden}, {"hook", "nobody", "3", fault.Forbidden}, {"hook", "ann", "4", ""}, {"hook", "ann", "4", ""},
		{"hook", "ann@example.com", "5", fault.Conflict}, {"hook", "guest@example.org", "6", ""}, {"hook", "ann", "7", fault.Conflict},
	} {
		if err := call(one.credential, one.responder, one.id); fault.CodeOf(err) != one.code {
			t.Errorf("%+v: %v", one, err)
		}
	}
	got := c.shelf.read(t, "w", i.ID)
	_, r := result(t, c.shelf, i.Execution)
	if got.Status != store.InteractionCompleted || len(r.Approvals) != 2 || r.Classification != Confirmed {
		t.Fatalf("it is %q with %+v", got.Status, r)
	}
	if means := r.Approvals[0].Means; means.Kind != identity.ByWebhook || means.Credential != "hook" {
		t.Errorf("the answer came by %+v", means)
	}
	if _, err := c.shelf.Get(t.Context(), identity.System("v"), i.ID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("another workspace sees it: %v", err)
	}
}

// A program names one person: by a user's id, whatever it is, or by a mail address.
func TestNamedPerson(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]string{
		"ann": {"ann", ""}, "user:Ann": {"Ann", ""}, "Ann@Example.org": {"", "ann@example.org"}, "mail:ann@example.org": {"", "ann@example.org"}, " admin ": {"admin", ""}, "Viewer": {"Viewer", ""},
		"role:admin": {}, "anyone": {}, "slack:U1": {}, "": {}, "a@": {},
	} {
		user, mail, err := NamedPerson(text)
		if user != want[0] || mail != want[1] || (err == nil) != (want != [2]string{}) || err != nil && fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%q is the user %q, the mail %q, %v; want %q", text, user, mail, err, want)
		}
	}
}
