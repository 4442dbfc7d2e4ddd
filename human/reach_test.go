package human

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tandem/engine"
	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

// book is a [store.ContactChannels] in memory.
type book struct {
	store.ContactChannels
	list []store.ContactChannel
}

func (b *book) List(context.Context, identity.Principal) ([]store.ContactChannel, error) {
	return slices.Clone(b.list), nil
}

// reached is a desk with two media and a program, through which ann and bob have chosen to be reached.
type reachedDesk struct {
	*counter
	slack *spy
	hook  *program
	book  *book
}

func newReached(t *testing.T) *reachedDesk {
	t.Helper()
	r := &reachedDesk{slack: &spy{name: Slack}, hook: &program{spy{name: programChannel}}, book: &book{list: []store.ContactChannel{
		{Workspace: "w", Name: "hook", Channel: programChannel, Credential: "secret-1", Settings: json.RawMessage(`{"webhook_url":"https://a.example"}`)},
		{Workspace: "w", Name: "office", Channel: Email, Credential: "smtp-1", InCredential: "imap-1"},
		{Workspace: "w", Name: "team", Channel: Slack, Credential: "bot-1"},
	}}}
	r.counter = newCounter(newShelf(), func(o *Options) {
		o.Contacts = r.book
		o.Channels = append(o.Channels, r.slack, r.hook)
	})
	r.chooses(t, "ann", nil, identity.Contact{Channel: "office", Address: "mail:ann@example.com"}, identity.Contact{Channel: "team", Address: "slack:U1"})
	r.chooses(t, "bob", nil, identity.Contact{Channel: "hook"})
	return r
}

// chooses lets a user choose where questions reach them.
func (r *reachedDesk) chooses(t *testing.T, id string, roles []identity.Role, contacts ...identity.Contact) {
	t.Helper()
	u := identity.User{Workspace: "w", ID: id, Email: id + "@example.com", Roles: roles, Settings: []byte(`{"addresses":["slack:U1"]}`)}
	if id != "ann" {
		u.Settings = nil
	}
	if roles == nil {
		u.Roles = []identity.Role{identity.Approver}
	}
	if err := u.SetContacts(contacts); err != nil {
		t.Fatal(err)
	}
	r.staff.set(u)
}

// puts opens a question of a purpose as an execution of cid does.
func (r *reachedDesk) puts(t *testing.T, purpose, request string) store.Interaction {
	t.Helper()
	i, err := r.Media().Open(Question{
		Ref: store.Ref{Workspace: "w", Execution: "execution-" + purpose}, WorkflowID: "flow", User: "cid", Language: "en", Node: "n", Ask: engine.AskID(purpose + "#ask.1"),
		Activation: "n", Purpose: purpose, Request: json.RawMessage(request), Time: time.Now().UnixMilli(), Reach: r.Reaches(t.Context(), "w"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if i.Channel != InApp {
		t.Fatalf("it is put in %q", i.Channel)
	}
	r.shelf.put(i)
	return i
}

// Every class of question reaches those who may answer it where they have chosen, with a link to an address of their own only, and is
// answered there: by a click, by a link, by a program; who was told of it is told of its end.
func TestReach_EveryQuestion(t *testing.T) {
	t.Parallel()
	classes := map[string]struct{ request, answer string }{
		PurposeNode:           {`{"title":"May it?","approvers":["ann","bob"]}`, `{"action":"approve"}`},
		PurposeConfirm:        {`{"title":"The plan","approvers":["ann","bob"]}`, `{"confirm":true}`},
		PurposeParam:          {`{"title":"City?","schema":{"type":"object","required":["city"],"properties":{"city":{"type":"string"}}},"params":{"city":null},"approvers":["ann","bob"]}`, `{"content":{"city":"Bern"}}`},
		PurposeToolApproval:   {`{"title":"May pay be called?","arguments":{"sum":5},"approvers":["ann","bob"]}`, `{"action":"approve"}`},
		PurposeOutcomeUnknown: {`{"to":"x"}`, `{"outcome":"not_done"}`},
		PurposeBudget:         {`{"title":"More?","budget":"b","approvers":["ann","bob"]}`, `{"raise_by":5}`},
		PurposeDrift:          {`{"title":"Changed","approvers":["ann","bob"]}`, `{"accept":true}`},
		PurposeActivation:     {`{"title":"Use it?","approvers":["ann","bob"]}`, `{"accept":true}`},
	}
	for purpose, c := range classes {
		for _, by := range []string{"click", "link", "program"} {
			t.Run(purpose+"/"+by, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					r := newReached(t)
					r.Desk.o.Raise = func(context.Context, identity.Principal, string, string, float64) error { return nil }
					if purpose == PurposeOutcomeUnknown {
						r.chooses(t, "ann", []identity.Role{identity.Operator}, identity.Contact{Channel: "office", Address: "mail:ann@example.com"}, identity.Contact{Channel: "team", Address: "slack:U1"})
						r.chooses(t, "bob", []identity.Role{identity.Operator}, identity.Contact{Channel: "hook"})
					}
					i := r.puts(t, purpose, c.request)
					r.Start()
					defer r.Close()
					pass(time.Second)
					mail, slack, hook := r.mail.messages(KindRequest), r.slack.messages(KindRequest), r.hook.messages(KindRequest)
					if len(mail) != 1 || len(slack) != 1 || len(hook) != 1 {
						t.Fatalf("%d mails, %d to Slack, %d calls", len(mail), len(slack), len(hook))
					}
					if mail[0].To != "ann@example.com" || mail[0].Link == "" || mail[0].Credential != "smtp-1" || mail[0].Request.InCredential != "imap-1" || mail[0].Request.Channel != Email {
						t.Errorf("the mail is %+v", mail[0].Message)
					}
					if slack[0].To != "U1" || slack[0].Link == "" || slack[0].Credential != "bot-1" {
						t.Errorf("the message in Slack is %+v", slack[0].Message)
					}
					if hook[0].To != "bob" || hook[0].For != "user:bob" || hook[0].Link != "" || string(hook[0].Request.Settings) != `{"webhook_url":"https://a.example"}` {
						t.Errorf("the call is %+v", hook[0].Message)
					}
					wantAccounts := []store.Account{{Workspace: "w", Channel: Email, Credential: "imap-1"}, {Workspace: "w", Channel: programChannel, Credential: "secret-1"}, {Workspace: "w", Channel: Slack, Credential: "bot-1"}}
					accounts, err := r.shelf.Accounts(t.Context(), identity.System(""))
					slices.SortFunc(accounts, func(a, b store.Account) int { return strings.Compare(a.Channel, b.Channel) })
					if err != nil || !slices.Equal(accounts, wantAccounts) {
						t.Errorf("replies are looked for in %+v, %v", accounts, err)
					}
					channel, user := Slack, "ann"
					switch by {
					case "click":
						got, err := r.Receive(t.Context(), Reply{Account: store.Account{Workspace: "w", Channel: Slack, Credential: "bot-1"}, Interaction: i.ID, From: "U1", Verified: true, Answer: &Answer{Given: json.RawMessage(c.answer)}, Dedup: "click"})
						if err != nil || !got.Accepted || !got.Ended {
							t.Fatalf("the click became %+v, %v", got, err)
						}
					case "link":
						channel = InApp
						_, secret, _ := strings.Cut(mail[0].Link, "/respond/")
						if _, err := r.RespondLink(t.Context(), secret, Submission{Data: json.RawMessage(c.answer)}); err != nil {
							t.Fatal(err)
						}
					case "program":
						channel, user = programChannel, "bob"
						got, err := r.Receive(t.Context(), Reply{Account: store.Account{Workspace: "w", Channel: programChannel, Credential: "secret-1"}, Interaction: i.ID, User: "bob", Verified: true, Answer: &Answer{Given: json.RawMessage(c.answer)}, Dedup: "call"})
						if err != nil || !got.Accepted {
							t.Fatalf("the call became %+v, %v", got, err)
						}
					}
					pass(time.Second)
					replies, err := r.shelf.Responses(t.Context(), identity.System("w"), i.ID)
					if err != nil || len(replies) != 1 || replies[0].Channel != channel || replies[0].User != user || replies[0].Origin.Means.Kind == "" {
						t.Errorf("recorded is %+v, %v", replies, err)
					}
					if n := len(r.shelf.items(i.Execution)); n != 1 {
						t.Errorf("the execution is told %d times", n)
					}
					for name, s := range map[string]*spy{"mail": r.mail, "slack": r.slack, "hook": &r.hook.spy} {
						if told := s.messages(KindCompleted); len(told) != 1 || len(told[0].Earlier) != 1 {
							t.Errorf("%s is told of the end by %+v", name, told)
						}
					}
					if got := r.shelf.read(t, "w", i.ID); got.NextAt != 0 || got.Status != store.InteractionCompleted {
						t.Errorf("it is %s and due at %d", got.Status, got.NextAt)
					}
				})
			})
		}
	}
}

// A user who has chosen nothing finds questions in the inbox only, and nothing is looked at for them.
func TestReach_NothingChosen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newReached(t)
		r.chooses(t, "ann", nil)
		r.chooses(t, "bob", nil)
		i := r.puts(t, PurposeConfirm, `{"approvers":["ann","bob"]}`)
		r.book.list = nil
		quiet := r.puts(t, PurposeParam, `{"approvers":["ann"]}`)
		if quiet.NextAt != 0 {
			t.Errorf("without contact channels it is due at %d", quiet.NextAt)
		}
		r.Start()
		defer r.Close()
		pass(time.Minute)
		if got := r.shelf.read(t, "w", i.ID); got.NextAt != 0 || len(outbox(t, r.shelf, i.ID)) != 0 {
			t.Errorf("it is due at %d, with %+v", got.NextAt, outbox(t, r.shelf, i.ID))
		}
		if _, err := r.Remind(t.Context(), identity.Principal{Workspace: "w", User: "cid"}, i.ID); fault.CodeOf(err) != fault.Conflict {
			t.Errorf("a reminder to nobody: %v", err)
		}
	})
}

// A message goes to an address that is in the user's record when it is sent, and nowhere else; and a reply counts only by the account that
// asked.
func TestReach_OwnAddressesOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newReached(t)
		r.chooses(t, "bob", nil, identity.Contact{Channel: "team", Address: "slack:U1"}, identity.Contact{Channel: "gone", Address: "mail:bob@example.com"}, identity.Contact{Channel: "office", Address: "mail:other@example.com"})
		i := r.puts(t, PurposeConfirm, `{"approvers":["bob"]}`)
		r.Start()
		defer r.Close()
		pass(time.Second)
		if sent := outbox(t, r.shelf, i.ID); len(sent) != 0 {
			t.Errorf("sent is %+v", sent)
		}
		for _, want := range []string{"is not one of the user's", `no contact channel \"gone\"`} {
			if !strings.Contains(r.logged(), want) {
				t.Errorf("the log does not say %q:\n%s", want, r.logged())
			}
		}
		j := r.puts(t, PurposeDrift, `{"approvers":["ann"]}`)
		r.Look()
		pass(time.Second)
		got, err := r.Receive(t.Context(), Reply{Account: store.Account{Workspace: "w", Channel: Slack, Credential: "bot-2"}, Interaction: j.ID, From: "U1", Verified: true, Answer: &Answer{Given: json.RawMessage(`{"accept":true}`)}, Dedup: "x"})
		if err != nil || got.Accepted || got.Err == nil || got.Err.Code != fault.Forbidden {
			t.Errorf("a reply by another account became %+v, %v", got, err)
		}
	})
}

// Those who want what is asked for are not told, where they may not answer.
func TestReach_NotTheRequester(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newReached(t)
		r.chooses(t, "cid", nil, identity.Contact{Channel: "office", Address: "mail:cid@example.com"})
		r.puts(t, PurposeNode, `{"title":"May it?","approvers":["role:approver"],"exclude_requester":true}`)
		r.Start()
		defer r.Close()
		pass(time.Second)
		if mail := r.mail.messages(KindRequest); len(mail) != 1 || mail[0].To != "ann@example.com" {
			t.Errorf("mails went out: %+v", mail)
		}
	})
}

// A place that somebody has chosen for later is told of a question only when it is still open then.
func TestReach_Later(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newReached(t)
		r.chooses(t, "ann", nil, identity.Contact{Channel: "team", Address: "slack:U1"}, identity.Contact{Channel: "office", Address: "mail:ann@example.com", AfterSeconds: 600})
		early := r.puts(t, PurposeConfirm, `{"approvers":["ann"]}`)
		late := r.puts(t, PurposeDrift, `{"approvers":["ann"]}`)
		r.Start()
		defer r.Close()
		pass(time.Second)
		if n, m := len(r.slack.messages(KindRequest)), len(r.mail.messages("")); n != 2 || m != 0 {
			t.Fatalf("%d messages in Slack and %d mails at once", n, m)
		}
		if _, err := r.Respond(t.Context(), identity.Principal{Workspace: "w", User: "ann"}, early.ID, Submission{Data: json.RawMessage(`{"confirm":true}`)}); err != nil {
			t.Fatal(err)
		}
		pass(11 * time.Minute)
		if mail := r.mail.messages(""); len(mail) != 1 || mail[0].Interaction.ID != late.ID {
			t.Errorf("mails after ten minutes: %d", len(mail))
		}
	})
}

// Reminders, escalation, delegation, links that are asked for and the end of the time go where people have chosen.
func TestReach_ClockAndDelegates(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newReached(t)
		r.chooses(t, "cid", nil, identity.Contact{Channel: "office", Address: "mail:cid@example.com"})
		r.staff.set(identity.User{Workspace: "w", ID: "adm", Roles: []identity.Role{identity.Admin}})
		i := r.puts(t, PurposeNode, `{"title":"May it?","approvers":["ann"],"allow_delegation":true,"reminder_seconds":300,"timeout_seconds":3600,"escalation":{"after_seconds":1200,"to":["bob"]}}`)
		r.Start()
		defer r.Close()
		pass(301 * time.Second)
		if n, m := len(r.mail.messages(KindReminder)), len(r.slack.messages(KindReminder)); n != 1 || m != 1 {
			t.Errorf("%d and %d reminders", n, m)
		}
		made, err := r.NewLink(t.Context(), identity.Principal{Workspace: "w", User: "adm", Roles: []identity.Role{identity.Admin}}, i.ID, "user:ann")
		if err != nil && fault.CodeOf(err) != fault.RateLimited {
			t.Fatal(err)
		}
		pass(2 * time.Minute)
		if made, err = r.NewLink(t.Context(), identity.Principal{Workspace: "w", User: "adm", Roles: []identity.Role{identity.Admin}}, i.ID, "user:ann"); err != nil || made.URL != "" || made.SentTo != "mail:ann@example.com" {
			t.Errorf("a link that an admin has sent: %+v, %v", made, err)
		}
		if _, err := r.Delegate(t.Context(), identity.Principal{Workspace: "w", User: "ann"}, i.ID, "", "cid", "you know it"); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		if mail := r.mail.messages(KindRequest); len(mail) != 2 || mail[1].To != "cid@example.com" || mail[1].Link == "" {
			t.Errorf("the delegate is told by %d mails", len(mail))
		}
		pass(20 * time.Minute)
		if hook := r.hook.messages(KindEscalation); len(hook) != 1 || hook[0].To != "bob" {
			t.Errorf("escalation: %+v", hook)
		}
		pass(time.Hour)
		var told []string
		for _, m := range slices.Concat(r.mail.messages(KindTimeout), r.slack.messages(KindTimeout), r.hook.messages(KindTimeout)) {
			told = append(told, m.To)
		}
		slices.Sort(told)
		if !slices.Equal(told, []string{"U1", "ann@example.com", "bob", "cid@example.com"}) {
			t.Errorf("told of the end of the time were %q", told)
		}
	})
}

// Prose is taken where a question is asked with yes or no; who is not understood is asked back by the same way.
func TestReach_Prose(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ purpose, text, want string }{
		{PurposeConfirm, "No, do not send it.", `{"confirm":false}`}, {PurposeConfirm, "Yes, approved.", `{"confirm":true}`},
		{PurposeDrift, "No, do not send it.", `{"accept":false}`}, {PurposeActivation, "Yes, approved.", `{"accept":true}`},
		{PurposeToolApproval, "No, do not send it.", "reject"}, {PurposeBudget, "Yes, approved.", ""},
	} {
		t.Run(c.purpose+" "+c.text, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newReached(t)
				purpose, want := c.purpose, c.want
				i := r.puts(t, purpose, `{"title":"May it?","description":"Send the offer to the customer","budget":"b","approvers":["ann"]}`)
				r.Start()
				defer r.Close()
				pass(time.Second)
				say := func(text string) Reaction {
					got, err := r.Receive(t.Context(), Reply{Account: store.Account{Workspace: "w", Channel: Email, Credential: "imap-1"}, Interaction: i.ID, From: "ann@example.com", Verified: true, Text: text, Dedup: text})
					if err != nil {
						t.Fatal(err)
					}
					pass(time.Second)
					return got
				}
				if got := say("Hm, which one?"); got.Accepted || !got.AskedBack {
					t.Errorf("a question became %+v", got)
				}
				if back := r.mail.messages(KindAskBack); len(back) != 1 || back[0].To != "ann@example.com" || back[0].Credential != "smtp-1" || back[0].Link == "" || len(back[0].Earlier) != 1 {
					t.Errorf("asked back with %+v", back)
				}
				got := say(c.text)
				if got.Accepted != (want != "") {
					t.Errorf("it became %+v", got)
				}
				if body := string(r.shelf.read(t, "w", i.ID).Response); !strings.Contains(body, want) {
					t.Errorf("the answer is %s", body)
				}
			})
		})
	}
}

func TestMedia_ContactAddress(t *testing.T) {
	t.Parallel()
	m := MediaOf(&program{spy{name: programChannel}})
	m[Slack] = Traits{Person: func(a string) string {
		if !strings.HasPrefix(a, "U") {
			return "write your member id"
		}
		return ""
	}}
	m[Email] = Traits{}
	for _, one := range []struct{ channel, in, want string }{
		{Slack, "U1", "slack:U1"}, {Slack, "slack:U1", "slack:U1"}, {Slack, "#general", ""}, {Slack, "", ""},
		{Email, "Ann@Example.com", "mail:ann@example.com"}, {Email, "mail:ann@example.com", "mail:ann@example.com"}, {Email, "email:ann@example.com", "mail:ann@example.com"}, {Email, "nobody", ""},
		{Email, "user:ann", ""}, {programChannel, "bob", ""},
	} {
		got, err := m.ContactAddress(one.channel, one.in)
		if got != one.want || (err == nil) != (one.want != "") {
			t.Errorf("%s %q is %q, %v", one.channel, one.in, got, err)
		}
	}
	if got, err := m.ContactAddress(programChannel, ""); err != nil || got != "" {
		t.Errorf("a program knows people by %q, %v", got, err)
	}
}
