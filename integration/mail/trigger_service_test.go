package mail

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"tandem/credential"
	"tandem/fault"
	"tandem/identity"
	"tandem/mailbox"
	"tandem/mailbox/mailboxtest"
	"tandem/store"
	"tandem/trigger"
	"tandem/trigger/triggertest"
)

// memoryBox reads an inbox in memory.
type memoryBox struct{ *mailboxtest.Inbox }

func (b memoryBox) Locate(_ context.Context, folder string) (string, error) {
	if folder != "INBOX" {
		return "", fault.New(fault.NotFound, "there is no such folder")
	}
	return "inbox of box@example.com", nil
}

func (b memoryBox) Since(_ context.Context, _ string, from time.Time) (news mailbox.News, _ error) {
	letters, newest, _, _ := b.After(0, 1000)
	for _, l := range letters {
		if l.Received.After(from.Add(-24 * time.Hour)) { // some services count in days
			news.Messages = append(news.Messages, l.ID)
		}
	}
	news.Position = fmt.Sprint(newest)
	return news, nil
}

func (b memoryBox) News(_ context.Context, _, position string) (news mailbox.News, _ error) {
	var from int
	if _, err := fmt.Sscan(position, &from); err != nil {
		return news, err
	}
	letters, newest, more, known := b.After(from, 3)
	if !known {
		return news, mailbox.ErrLost
	}
	news.Position, news.More = fmt.Sprint(newest), more
	for _, l := range letters {
		news.Messages = append(news.Messages, l.ID)
		if more {
			news.Position = fmt.Sprint(l.Number)
		}
	}
	return news, nil
}

func (b memoryBox) Message(_ context.Context, id string, most int64) (mailbox.Message, error) {
	l, ok := b.Find(id)
	if !ok {
		return mailbox.Message{}, fault.New(fault.NotFound, "it is gone")
	}
	if int64(len(l.Raw)) > most {
		return mailbox.Message{}, fault.New(fault.TooLarge, "it is too large")
	}
	return mailbox.Message{Raw: []byte(l.Raw), Received: l.Received}, nil
}

func (b memoryBox) MarkSeen(_ context.Context, id string) error {
	if !b.Mark(id) {
		return fault.New(fault.NotFound, "it is gone")
	}
	return nil
}

// watchService makes an inbox of a service and a source that reads it. Nothing is deployed yet.
func watchService(t *testing.T) (*watched, *mailboxtest.Inbox) {
	t.Helper()
	inbox := mailboxtest.NewInbox()
	services := mailServices{providerGmail: {Name: providerGmail, Credential: typeGoogle, Scope: "api.", Open: func(credential.Opened) (mailbox.Box, error) { return memoryBox{inbox}, nil }}}
	w := &watched{Shelf: triggertest.NewShelf(), safe: &safe{}, config: func(int64) string { return `{"email_provider":"gmail_api","credential_id":"in"}` }}
	w.safe.put("in", typeGoogle, map[string]any{"token": "t"})
	w.source = newEmailSource(Options{Dial: (&net.Dialer{}).DialContext}, services)
	w.source.poll = time.Millisecond
	return w, inbox
}

// TestEmailService_Starts: mail that arrives after the deployment starts an execution each and is marked as read; older mail starts
// nothing, and what is ignored stays unread.
func TestEmailService_Starts(t *testing.T) {
	t.Parallel()
	w, inbox := watchService(t)
	inbox.Deliver(letterOf("old@example.com", "Old"))
	service := w.deployed(t)
	first := inbox.Deliver(letterOf("1@example.com", "One"))
	if id := receive(t, "the mark of the first mail", inbox.Marked()); id != first {
		t.Errorf("%s is marked", id)
	}
	away := inbox.Deliver(letterOf("2@example.com", "Away", "Auto-Submitted: auto-replied"))
	inbox.Deliver(letterOf("1@example.com", "One")) // the same mail, once more
	last := inbox.Deliver(letterOf("3@example.com", "Three"))
	for id := ""; id != last; {
		id = receive(t, "the mark of the last mail", inbox.Marked())
	}
	service.Close()
	if got := w.started(); !slices.Equal(got, []string{"One", "Three"}) {
		t.Errorf("started %q", got)
	}
	if l, _ := inbox.Find(away); l.Seen {
		t.Error("a mail that was ignored is marked as read")
	}
	if kept := strings.Join(w.Kept(), "\n"); !strings.Contains(kept, "gmail_api:"+away) {
		t.Errorf("kept are %s", kept)
	}
	if w.safe.inUse != 0 {
		t.Errorf("%d credentials are still open", w.safe.inUse)
	}
}

// TestEmailService_Restarts lets mail arrive while nothing runs, while processes come and go, and while starts are refused: each starts one
// execution.
func TestEmailService_Restarts(t *testing.T) {
	t.Parallel()
	w, inbox := watchService(t)
	first := w.service(t)
	w.deploys(t, first, 1) // and it dies before it listens
	first.Close()
	var want []string
	for round := range 5 {
		for n := range 7 {
			subject := fmt.Sprint("m", round, "-", n)
			want = append(want, subject)
			inbox.Deliver(letterOf(subject+"@example.com", subject))
		}
		service := w.service(t)
		service.Start()
		w.await(t, 7*round+3)
		if round == 3 { // the service forgets, too
			inbox.Forget()
		}
		service.Close()
	}
	refused := make(chan struct{}, 64)
	w.RefuseStarts(func(trigger.Start) error {
		select {
		case refused <- struct{}{}:
		default:
		}
		return &store.SupersededError{Node: "mail", Revision: 1}
	})
	late := inbox.Deliver(letterOf("late@example.com", "late"))
	last := w.service(t)
	last.Start()
	receive(t, "a start that is refused", refused)
	if l, _ := inbox.Find(late); l.Seen {
		t.Error("a mail that was not stored is marked as read")
	}
	w.RefuseStarts(nil)
	want = append(want, "late")
	w.await(t, len(want))
	if got := w.started(); !slices.Equal(got, want) {
		t.Errorf("started %q, want %q", got, want)
	}
	if len(w.Kept()) != len(want) {
		t.Errorf("kept %q", w.Kept())
	}
}

// TestEmailService_Forgotten: when the service does not know any more how far the mailbox was read, what has come since is found by its
// time, and nothing that was there before starts.
func TestEmailService_Forgotten(t *testing.T) {
	t.Parallel()
	w, inbox := watchService(t)
	inbox.DeliverAt(letterOf("old@example.com", "Old"), time.Now().Add(-time.Minute))
	service := w.deployed(t)
	first := inbox.Deliver(letterOf("1@example.com", "One"))
	receive(t, "the mark of the first mail", inbox.Marked())
	service.Close()
	inbox.Remove(first)
	inbox.DeliverAt(letterOf("0@example.com", "Late"), time.Now().Add(-time.Minute)) // the service says that it had it before
	inbox.Deliver(letterOf("2@example.com", "Two"))
	inbox.Forget()
	again := w.service(t)
	again.Start()
	receive(t, "the mark of the second mail", inbox.Marked())
	again.Close()
	if got := w.started(); !slices.Equal(got, []string{"One", "Two"}) {
		t.Errorf("started %q", got)
	}
}

// TestEmailService_Deploy: what cannot be read is not deployed, and the error says why.
func TestEmailService_Deploy(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]struct {
		code fault.Code
		says string
	}{
		`{"email_provider":"outlook_api","credential_id":"in"}`:                       {fault.Unsupported, "use imap"},
		`{"email_provider":"gmail_api"}`:                                              {fault.CredentialMissing, "google_oauth"},
		`{"email_provider":"gmail_api","credential_id":"none"}`:                       {fault.CredentialMissing, "none"},
		`{"email_provider":"gmail_api","credential_id":"in","mailbox":"No such one"}`: {fault.NotFound, "no such folder"},
	} {
		w, _ := watchService(t)
		w.config = func(int64) string { return config }
		service := w.service(t)
		err := service.Deploy(t.Context(), identity.System("w"), "flow", 1)
		if fault.CodeOf(err) != want.code || !strings.Contains(err.Error(), want.says) {
			t.Errorf("%s: %v", config, err)
		}
		service.Close()
	}
}

// TestEmailService_Check: a credential whose scopes are for the API is tried there, any other as a mail server is.
func TestEmailService_Check(t *testing.T) {
	t.Parallel()
	w, _ := watchService(t)
	check := w.source.services.check(func(context.Context, credential.Opened, credential.Outside) (string, error) {
		return "a mail server", nil
	})
	for data, want := range map[string]string{
		`{"token":"t","scopes":["openid","api.read"]}`: "the mailbox can be read by gmail_api", `{"token":"t","scopes":"openid api.read"}`: "the mailbox can be read by gmail_api",
		`{"token":"t"}`: "a mail server", `{"token":"t","scopes":["mail"]}`: "a mail server",
	} {
		if found, err := check(t.Context(), credential.Opened{Type: typeGoogle, Data: []byte(data)}, credential.Outside{}); found != want || err != nil {
			t.Errorf("%s: %q, %v", data, found, err)
		}
	}
}
