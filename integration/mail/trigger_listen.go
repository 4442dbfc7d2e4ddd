package mail

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/tidwall/gjson"

	"tandem/credential"
	"tandem/fault"
	"tandem/node"
	"tandem/payload"
	"tandem/trigger"
)

const (
	// maxMessage is how much of a mail that starts something is read, attachments included.
	maxMessage = 72 << 20
	// largeMessage is from which size on mails are read one after the other, so that many mailboxes do not fill the memory together.
	largeMessage = 4 << 20
	// longestIdle is how long one waits for news at most: servers end connections that are quiet for half an hour.
	longestIdle = 20 * time.Minute
	// dateSlack is by how much the date of a mail may be before the deployment, when messages were numbered anew and dates have to tell
	// what is new.
	dateSlack = time.Hour
)

// emailSource starts executions for mails.
type emailSource struct {
	network  Network
	services mailServices
	log      *slog.Logger
	// proofs are those that Mailgun has shown lately.
	proofs proofs
	// large has room for one mail that is large.
	large chan struct{}

	// poll is how long is waited before a server is asked; zero: as the configuration says.
	poll time.Duration
}

var _ trigger.Positioner = (*emailSource)(nil)

func newEmailSource(o Options, services mailServices) *emailSource {
	s := &emailSource{network: Network{Dial: o.Dial, TLS: o.TLS}, services: services, log: o.Log, large: make(chan struct{}, 1)}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	return s
}

// Kind implements [trigger.Source].
func (*emailSource) Kind() string { return emailKind }

// Register implements [trigger.Source]. That the mailbox can be opened is seen by Position.
func (s *emailSource) Register(ctx context.Context, t trigger.Trigger) error {
	cfg, err := node.Configuration[emailConfig](t.Config)
	if err != nil {
		return err
	}
	if cfg.Provider == providerWebhook {
		_, err := openHookSecret(ctx, t)
		return err
	}
	if cfg.Provider != providerIMAP {
		_, release, err := s.openService(ctx, t, cfg)
		if err == nil {
			release()
		}
		return err
	}
	_, release, err := s.account(ctx, t)
	if err == nil {
		release()
	}
	return err
}

// account is the server of a trigger's credential, until it is released.
func (s *emailSource) account(ctx context.Context, t trigger.Trigger) (*mailAccount, func(), error) {
	id := gjson.GetBytes(t.Config, "credential_id").String()
	if id == "" {
		return nil, nil, fault.New(fault.CredentialMissing, "credential_id: a mailbox needs a credential of the type imap, google_oauth or microsoft_oauth")
	}
	return readingAccount(ctx, t.Open, id)
}

// readingAccount opens the credential that a mailbox is read with.
func readingAccount(ctx context.Context, open credential.Opener, id string) (*mailAccount, func(), error) {
	opened, err := open(ctx, id, typeIMAP, typeGoogle, typeMicrosoft)
	if err != nil {
		return nil, nil, err
	}
	server, _, err := imapProtocol().server(id, opened)
	if err == nil && server.Username == "" {
		err = fault.Newf(fault.CredentialInvalid, "credential %q does not say whose mailbox it is; set its email", id)
	}
	if err != nil {
		opened.Release()
		return nil, nil, err
	}
	return &mailAccount{id: id, opened: opened, server: server}, opened.Release, nil
}

// mailAccount is an opened credential and the server that it is for.
type mailAccount struct {
	id     string
	opened credential.Opened
	server Server
}

// open opens a mailbox of the account. What a server says in an error is repeated without secrets: it may repeat what it was sent.
func (a *mailAccount) open(ctx context.Context, n Network, name string) (box *Mailbox, err error) {
	err = loggedIn(ctx, a.id, a.opened, &a.server, func() (err error) {
		box, err = n.OpenMailbox(ctx, a.server, name)
		return err
	})
	if err != nil {
		return nil, a.hide(err)
	}
	return box, nil
}

// hide takes the secrets of the account out of an error.
func (a *mailAccount) hide(err error) error {
	if err == nil {
		return nil
	}
	var secrets credential.Redactor
	defer secrets.Hold(a.server.Password, a.server.Token)()
	return secrets.Fault(fault.From(err))
}

// emailCursor is how far a mailbox was read.
type emailCursor struct {
	// Box is whose mailbox it is: another account or folder has a cursor of its own.
	Box string `json:"box"`
	// Validity and Next are by which numbers messages go, and the first that was not looked at.
	Validity uint32   `json:"validity"`
	Next     imap.UID `json:"next"`
	// Began is when the mailbox was first looked at, Last when the server got the newest message that was looked at, in Unix seconds.
	Began int64 `json:"began"`
	Last  int64 `json:"last"`
	// Sift is set while a mailbox is gone through whose messages were numbered anew: what the server got before then is not new.
	Sift *int64 `json:"sift,omitempty"`
	// Unmarked are messages that have started something and are yet to be marked as read.
	Unmarked []imap.UID `json:"unmarked,omitempty"`
}

func (c emailCursor) encode() ([]byte, error) {
	raw, err := payload.Encode(c)
	return raw, err
}

// boxName names a mailbox of an account without telling whose it is.
func boxName(s Server, mailbox string) string {
	sum := sha256.Sum256([]byte(strings.ToLower(s.Username) + "\x00" + mailbox))
	return hex.EncodeToString(sum[:8])
}

// cursorOf reads the cursor of a trigger; false: there is none for this mailbox.
func cursorOf(raw []byte, box string) (c emailCursor, ok bool) {
	return c, len(raw) > 0 && payload.Read(raw, &c) == nil && c.Box == box
}

// beginning is the cursor of a mailbox whose messages so far start nothing.
func beginning(box *Mailbox, name string) (emailCursor, error) {
	c := emailCursor{Box: name, Validity: box.Validity, Began: time.Now().Unix()}
	var err error
	if c.Next, err = behindAll(box); err != nil {
		return c, err
	}
	if c.Next > 1 {
		newest, err := box.Fetch([]imap.UID{c.Next - 1}, 1)
		if err != nil {
			return c, err
		}
		for _, f := range newest {
			c.Last = f.Received.Unix()
		}
	}
	return c, nil
}

// behindAll is the number that the next message gets.
func behindAll(box *Mailbox) (imap.UID, error) {
	if box.Next > 0 {
		return box.Next, nil
	}
	uids, err := box.Search(&imap.SearchCriteria{}) // the server does not say it
	if err != nil || len(uids) == 0 {
		return 1, err
	}
	return slices.Max(uids) + 1, nil
}

// Position implements [trigger.Positioner]: a trigger begins with the mail that arrives after this moment, unless the one before it reads
// the same mailbox.
func (s *emailSource) Position(ctx context.Context, t trigger.Trigger) ([]byte, error) {
	cfg, err := node.Configuration[emailConfig](t.Config)
	if err != nil || cfg.Provider == providerWebhook {
		return nil, err
	}
	if cfg.Provider != providerIMAP {
		return s.positionService(ctx, t, cfg)
	}
	account, release, err := s.account(ctx, t)
	if err != nil {
		return nil, err
	}
	defer release()
	name := boxName(account.server, cfg.Mailbox)
	_, goesOn := cursorOf(t.Cursor, name)
	box, err := account.open(ctx, s.network, cfg.Mailbox)
	if goesOn && err != nil && fault.From(err).Retryable {
		return nil, nil // the former trigger has found the mailbox, and the new one waits for it as that does
	}
	if err != nil {
		return nil, err
	}
	defer box.Close()
	if goesOn {
		return nil, nil
	}
	c, err := beginning(box, name)
	if err != nil {
		return nil, account.hide(err)
	}
	return c.encode()
}

// Listen implements [trigger.Listener]. Of mail that is handed in there is nothing to be looked for.
func (s *emailSource) Listen(ctx context.Context, t trigger.Trigger, deliver trigger.Deliver) error {
	cfg, err := node.Configuration[emailConfig](t.Config)
	if err != nil {
		return err
	}
	if cfg.Provider == providerWebhook {
		t.Ready()
		<-ctx.Done()
		return ctx.Err()
	}
	if cfg.Provider != providerIMAP {
		return s.listenService(ctx, t, cfg, deliver)
	}
	account, release, err := s.account(ctx, t)
	if err != nil {
		return err
	}
	defer release()
	box, err := account.open(ctx, s.network, cfg.Mailbox)
	if err != nil {
		return err
	}
	defer box.Close()
	box.poll, box.idle = s.intervals(cfg)
	w := &mailWatch{source: s, trigger: t, cfg: cfg, box: box, trust: account.server.Trust, deliver: deliver}
	if err := w.begin(ctx, boxName(account.server, cfg.Mailbox)); err != nil {
		return account.hide(err)
	}
	t.Ready()
	for err == nil {
		if err = w.look(ctx); err == nil {
			err = box.Wait()
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return account.hide(err)
}

// intervals are how long is waited for news: of a server that is asked, and of one that tells of them.
func (s *emailSource) intervals(cfg emailConfig) (poll, idle time.Duration) {
	every := time.Duration(cfg.Poll) * time.Second
	return cmp.Or(s.poll, every), min(every, longestIdle)
}

// mailWatch is one connection's reading of a mailbox for a trigger.
type mailWatch struct {
	source  *emailSource
	trigger trigger.Trigger
	cfg     emailConfig
	box     *Mailbox
	trust   Trust
	deliver trigger.Deliver
	cursor  emailCursor
	// behind is the number behind all messages that were there when a mailbox that was numbered anew was opened.
	behind imap.UID
}

// begin finds out where to go on.
func (w *mailWatch) begin(ctx context.Context, name string) error {
	c, ok := cursorOf(w.trigger.Cursor, name)
	switch {
	case !ok: // the credential leads to another mailbox than when the trigger was deployed
		fresh, err := beginning(w.box, name)
		if err != nil {
			return err
		}
		w.cursor = fresh
		return w.move(ctx)
	// The latter of a server that was set back and does not say so.
	case c.Validity != w.box.Validity, w.box.Next > 0 && w.box.Next < c.Next:
		w.source.log.Warn("the messages of a mailbox were numbered anew; what is new is told by their dates and ids", "workspace", w.trigger.Workspace, "workflow", w.trigger.WorkflowID, "node", w.trigger.Node)
		last := c.Last
		if c.Sift != nil { // again, before the former numbers were gone through
			last = *c.Sift
		}
		c.Validity, c.Next, c.Sift, c.Unmarked = w.box.Validity, 1, &last, nil
	}
	w.cursor = c
	if c.Sift != nil {
		var err error
		if w.behind, err = behindAll(w.box); err != nil {
			return err
		}
	}
	return w.mark(ctx)
}

// move keeps the cursor without an event.
func (w *mailWatch) move(ctx context.Context) error {
	raw, err := w.cursor.encode()
	if err != nil {
		return err
	}
	return w.trigger.Move(ctx, raw)
}

// look takes what is new, in the order it came.
func (w *mailWatch) look(ctx context.Context) error {
	for {
		var since time.Time
		if w.cursor.Sift != nil && *w.cursor.Sift > 0 {
			since = time.Unix(*w.cursor.Sift, 0).Add(-24 * time.Hour) // a server counts days where it is
		}
		uids, err := w.box.SearchFrom(w.cursor.Next, since)
		if err != nil {
			return err
		}
		if len(uids) == 0 {
			break
		}
		for chunk := range slices.Chunk(uids, batch) {
			if err := w.takeMessages(ctx, chunk); err != nil {
				return err
			}
		}
	}
	if w.cursor.Sift == nil {
		return nil
	}
	// What is left of the messages that were there is older than the search went.
	w.cursor.Sift, w.cursor.Next = nil, max(w.cursor.Next, w.behind)
	return w.move(ctx)
}

// takeMessages handles some messages. Those that are gone are left out.
func (w *mailWatch) takeMessages(ctx context.Context, uids []imap.UID) error {
	found, err := w.box.Fetch(uids, look)
	if err != nil {
		return err
	}
	for _, f := range found {
		if err := w.one(ctx, f); err != nil {
			return errors.Join(err, w.mark(ctx))
		}
	}
	w.cursor.Next = max(w.cursor.Next, slices.Max(uids)+1)
	return w.mark(ctx)
}

// one takes a message: its event is on disk together with the cursor behind it, or nothing is.
func (w *mailWatch) one(ctx context.Context, f Found) error {
	if f.Received.IsZero() { // the server does not say it
		f.Received = time.Now()
	}
	next := w.cursor
	next.Next, next.Last = f.UID+1, max(next.Last, f.Received.Unix())
	if next.Sift != nil && f.Received.Unix() < *next.Sift {
		w.cursor = next
		return nil
	}
	e, known, err := w.event(ctx, f)
	if err != nil {
		return err
	}
	if known {
		w.cursor = next
		return nil
	}
	if e.Ignored == "" && w.cfg.MarkSeen {
		next.Unmarked = append(slices.Clone(next.Unmarked), f.UID)
	}
	raw, err := next.encode()
	if err != nil {
		return err
	}
	if err := w.deliver(ctx, e, raw); err != nil {
		return err
	}
	w.cursor = next
	return nil
}

// event makes an event of a message. Known says that it is not new, although it has a new number. A message that cannot be read starts
// nothing, and does not keep those behind it from being read.
func (w *mailWatch) event(ctx context.Context, f Found) (e trigger.Event, known bool, err error) {
	name := uidName(w.box.Validity, f.UID)
	defer func() {
		if p := recover(); p != nil {
			w.source.log.Error("a mail could not be read", "workspace", w.trigger.Workspace, "workflow", w.trigger.WorkflowID, "node",
				w.trigger.Node, "uid", f.UID, "panic", fmt.Sprint(p))
			e, known, err = trigger.Event{Key: name, Ignored: "it cannot be read"}, false, nil
		}
	}()
	l, ok := readIncoming(f.Raw, f.Size, f.Size <= int64(len(f.Raw)), w.trust)
	if !ok {
		return trigger.Event{Key: name, Ignored: "it is not a mail: it has no header"}, false, nil
	}
	if sent := l.sent(); w.cursor.Sift != nil && !sent.IsZero() && sent.Before(time.Unix(w.cursor.Began, 0).Add(-dateSlack)) {
		return trigger.Event{}, true, nil
	}
	// Ignored mail is known by its number alone: the same mail may come once more in a way that counts.
	if why := w.cfg.unwanted(l); why != "" {
		return trigger.Event{Key: name, Ignored: why}, false, nil
	}
	if !l.whole {
		if f.Size > largeMessage {
			select {
			case w.source.large <- struct{}{}:
				defer func() { <-w.source.large }()
			case <-ctx.Done():
				return trigger.Event{}, false, ctx.Err()
			}
		}
		whole, err := w.box.Fetch([]imap.UID{f.UID}, maxMessage)
		if err != nil {
			return trigger.Event{}, false, err
		}
		if len(whole) == 0 { // it was removed in between
			return trigger.Event{}, true, nil
		}
		if l, ok = readIncoming(whole[0].Raw, whole[0].Size, true, w.trust); !ok {
			return trigger.Event{Key: name, Ignored: "it is not a mail: it has no header"}, false, nil
		}
		if why := w.cfg.unwanted(l); why != "" {
			return trigger.Event{Key: name, Ignored: why}, false, nil
		}
	}
	id := l.mail.ID
	if id == "" {
		id = name
	}
	raw, err := l.payload(ctx, &w.cfg, id, f.Received, w.trigger.KeepFile)
	return trigger.Event{Key: l.key(), Payload: raw}, false, err
}

// mark marks messages as read that have started something, and keeps that it is done. A server that refuses it is not asked again.
func (w *mailWatch) mark(ctx context.Context) error {
	if len(w.cursor.Unmarked) == 0 {
		return nil
	}
	err := w.box.Flag(w.cursor.Unmarked, imap.FlagSeen)
	if err != nil && fault.CodeOf(err) != fault.RemoteRejected {
		return err
	}
	if err != nil {
		w.source.log.Warn("the mail server does not mark mails as read", "workspace", w.trigger.Workspace, "workflow", w.trigger.WorkflowID,
			"node", w.trigger.Node, "error", err)
	}
	w.cursor.Unmarked = nil
	return w.move(ctx)
}
