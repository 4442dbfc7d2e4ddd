// Package mailboxtest is what every service of mailboxes must do, and what their stand-ins share: an inbox in memory. Tests import it, and
// nothing else does.
package mailboxtest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tandem/credential"
	"tandem/fault"
	"tandem/mailbox"
	"tandem/payload"
)

// Letter is a mail in an inbox. Number is its place among all changes.
type Letter struct {
	ID       string
	Raw      string
	Received time.Time
	Number   int
	Seen     bool
}

// Inbox is the mailbox of a stand-in.
type Inbox struct {
	// Asked is called, if it is set, before the inbox is asked what is new, each time.
	Asked func()

	mu      sync.Mutex
	letters []Letter
	changes int
	forgot  int
	token   string
	refused int
	marked  chan string
}

// NewInbox is an inbox that takes the token "first".
func NewInbox() *Inbox { return &Inbox{token: "first", changes: 100, marked: make(chan string, 1024)} }

// Deliver puts a mail into the inbox and returns its id.
func (i *Inbox) Deliver(raw string) string { return i.DeliverAt(raw, time.Now()) }

// DeliverAt is [Inbox.Deliver] with the time that the service says it got the mail at.
func (i *Inbox) DeliverAt(raw string, at time.Time) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.changes++
	id := fmt.Sprintf("id-%d/+=", i.changes)
	i.letters = append(i.letters, Letter{ID: id, Raw: strings.ReplaceAll(raw, "\n", "\r\n"), Received: at, Number: i.changes})
	return id
}

// Remove deletes a mail.
func (i *Inbox) Remove(id string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.changes++
	i.letters = slices.DeleteFunc(i.letters, func(l Letter) bool { return l.ID == id })
}

// Forget makes all positions so far unknown.
func (i *Inbox) Forget() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.changes++
	i.forgot = i.changes
}

// Expire lets the inbox take another token from now on.
func (i *Inbox) Expire(token string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.token = token
}

// Refusals are how many calls had a token that was not taken.
func (i *Inbox) Refusals() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.refused
}

// Marked tells of each mail that is marked as read.
func (i *Inbox) Marked() <-chan string { return i.marked }

// Mark marks a mail as read; false: there is none of the id.
func (i *Inbox) Mark(id string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	for n := range i.letters {
		if i.letters[n].ID == id {
			i.letters[n].Seen = true
			i.marked <- id
			return true
		}
	}
	return false
}

// Find returns a mail.
func (i *Inbox) Find(id string) (Letter, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, l := range i.letters {
		if l.ID == id {
			return l, true
		}
	}
	return Letter{}, false
}

// After are the mails behind a number, at most so many, and the number of the newest change. False: the number is not known any more.
func (i *Inbox) After(number, most int) (letters []Letter, newest int, more, known bool) {
	if i.Asked != nil {
		i.Asked()
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, l := range i.letters {
		if l.Number > number {
			letters = append(letters, l)
		}
	}
	if len(letters) > most {
		letters, more = letters[:most], true
	}
	return letters, i.changes, more, number >= i.forgot
}

// Admit says whether a call may pass, and answers it if not.
func (i *Inbox) Admit(w http.ResponseWriter, r *http.Request) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if r.Header.Get("Authorization") == "Bearer "+i.token {
		return true
	}
	i.refused++
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusUnauthorized)
	_, _ = fmt.Fprintf(w, `{"error":{"code":"InvalidAuthenticationToken","message":"the token %s is not taken"}}`, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	return false
}

// Answer sends a value as JSON.
func Answer(w http.ResponseWriter, status int, value any) {
	raw, err := payload.Encode(value)
	if err != nil {
		status, raw = http.StatusInternalServerError, []byte(err.Error())
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(raw)
}

// Opened is a credential whose token can be renewed once, to "second".
func Opened(kind, address, token string) credential.Opened {
	data := func(token string) []byte { return fmt.Appendf(nil, `{"token":%q,"base_url":%q}`, token, address) }
	return credential.Opened{ID: "account", Type: kind, Data: data(token),
		Renew: func(_ context.Context, refused string) (credential.Opened, error) {
			if refused != "first" {
				return credential.Opened{}, fault.New(fault.CredentialInvalid, "it cannot be renewed")
			}
			return credential.Opened{ID: "account", Type: kind, Data: data("second")}, nil
		}}
}

// Run checks a service against its stand-in, which has its address and its inbox.
func Run(t *testing.T, service mailbox.Service, start func(t *testing.T) (address string, inbox *Inbox)) {
	open := func(t *testing.T) (mailbox.Box, string, *Inbox) {
		t.Helper()
		address, inbox := start(t)
		box, err := service.Open(Opened(service.Credential, address, "first"))
		if err != nil {
			t.Fatal(err)
		}
		folder, err := box.Locate(t.Context(), "inbox")
		if err != nil || folder == "" {
			t.Fatalf("the inbox is %q, %v", folder, err)
		}
		return box, folder, inbox
	}
	t.Run("News", func(t *testing.T) { t.Parallel(); checkNews(t, open) })
	t.Run("Lost", func(t *testing.T) { t.Parallel(); checkLost(t, open) })
	t.Run("Message", func(t *testing.T) { t.Parallel(); checkMessage(t, open) })
	t.Run("Token", func(t *testing.T) { t.Parallel(); checkToken(t, open) })
}

type opener func(t *testing.T) (mailbox.Box, string, *Inbox)

// What has come is told from a position on, page by page, in its order, and once.
func checkNews(t *testing.T, open opener) {
	ctx := t.Context()
	box, folder, inbox := open(t)
	old := inbox.Deliver("Subject: old\n\nx\n")
	since, err := box.Since(ctx, folder, time.Now().Add(-time.Hour))
	if err != nil || !slices.Equal(since.Messages, []string{old}) || since.More {
		t.Fatalf("since an hour: %+v, %v", since, err)
	}
	if none, err := box.Since(ctx, folder, time.Now().Add(time.Hour)); err != nil || len(none.Messages) != 0 {
		t.Errorf("since later: %+v, %v", none, err)
	}
	var want, got []string
	for range 120 { // several pages
		want = append(want, inbox.Deliver("Subject: new\n\nx\n"))
	}
	position := since.Position
	for pages := 0; ; pages++ {
		news, err := box.News(ctx, folder, position)
		if err != nil || pages > 50 {
			t.Fatalf("page %d: %v", pages, err)
		}
		if news.More && news.Position == position {
			t.Fatal("the position stays where it is")
		}
		got, position = append(got, news.Messages...), news.Position
		if !news.More {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the news are %q, want %q", got, want)
	}
	if again, err := box.News(ctx, folder, position); err != nil || len(again.Messages) != 0 || again.More {
		t.Errorf("after the news: %+v, %v", again, err)
	}
	if _, err := box.Locate(ctx, "No such folder"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("a folder that is not there: %v", err)
	}
}

// A position that the service has forgotten is told as such.
func checkLost(t *testing.T, open opener) {
	box, folder, inbox := open(t)
	since, err := box.Since(t.Context(), folder, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	inbox.Forget()
	if _, err := box.News(t.Context(), folder, since.Position); !errors.Is(err, mailbox.ErrLost) {
		t.Errorf("it is told as %v", err)
	}
}

// A message is read as it was sent, up to a size, and marked as read.
func checkMessage(t *testing.T, open opener) {
	ctx := t.Context()
	box, _, inbox := open(t)
	raw := "Subject: =?utf-8?q?caf=C3=A9?=\nContent-Type: text/plain; charset=utf-8\n\ncafé \xff\n" + strings.Repeat("0123456789abcdef\n", 8<<10)
	id := inbox.Deliver(raw)
	m, err := box.Message(ctx, id, 1<<20)
	if err != nil || string(m.Raw) != strings.ReplaceAll(raw, "\n", "\r\n") || time.Since(m.Received).Abs() > time.Hour {
		t.Errorf("%d bytes, received %s, %v", len(m.Raw), m.Received, err)
	}
	if _, err := box.Message(ctx, id, 1<<10); fault.CodeOf(err) != fault.TooLarge {
		t.Errorf("a message that is too large: %v", err)
	}
	if err := box.MarkSeen(ctx, id); err != nil {
		t.Error(err)
	}
	if l, _ := inbox.Find(id); !l.Seen {
		t.Error("it is not marked as read")
	}
	inbox.Remove(id)
	if _, err := box.Message(ctx, id, 1<<20); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("a message that is gone: %v", err)
	}
	if err := box.MarkSeen(ctx, id); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("marking a message that is gone: %v", err)
	}
}

// A token that is not taken is renewed once, and stands in no error.
func checkToken(t *testing.T, open opener) {
	box, _, inbox := open(t)
	inbox.Expire("second")
	if _, err := box.Locate(t.Context(), "INBOX"); err != nil || inbox.Refusals() != 1 {
		t.Errorf("with a new token: %v, after %d refusals", err, inbox.Refusals())
	}
	inbox.Expire("third")
	_, err := box.Locate(t.Context(), "INBOX")
	if fault.CodeOf(err) != fault.CredentialInvalid || strings.Contains(err.Error(), "second") {
		t.Errorf("without one: %v", err)
	}
}
