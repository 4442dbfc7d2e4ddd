package mail

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tandem/credential"
	"tandem/fault"
	"tandem/mailbox"
	"tandem/payload"
	"tandem/trigger"
)

// firstLook is how far back a mailbox is looked at when a trigger is deployed: what is there then starts nothing, and clocks differ by
// less.
const firstLook = time.Hour

// smallMessage is how much of a mail is read beside others; a larger one is read alone.
const smallMessage = largeMessage

// mailServices are the services whose mailboxes are read by their own API, by the names that triggers have for them.
type mailServices map[string]mailbox.Service

// check is how a credential of an account is tried: by the API of a service if one of its scopes is for that, otherwise as a mail server
// is.
func (m mailServices) check(otherwise credential.Check) credential.Check {
	return func(ctx context.Context, c credential.Opened, out credential.Outside) (string, error) {
		for _, service := range m {
			if service.Credential != c.Type || !slices.ContainsFunc(scopesOf(c),
				func(scope string) bool { return strings.HasPrefix(scope, service.Scope) }) {
				continue
			}
			box, err := service.Open(c)
			if err != nil {
				return "", err
			}
			if _, err := box.Locate(ctx, "INBOX"); err != nil {
				return "", err
			}
			return "the mailbox can be read by " + service.Name, nil
		}
		return otherwise(ctx, c, out)
	}
}

// scopesOf are the scopes that a credential asks for; none: those that are usual.
func scopesOf(c credential.Opened) (list []string) {
	scopes := gjson.GetBytes(c.Data, "scopes")
	if scopes.IsArray() {
		for _, s := range scopes.Array() {
			list = append(list, s.String())
		}
		return list
	}
	return strings.Fields(scopes.String())
}

// openService opens the mailbox of a trigger's credential, until it is released.
func (s *emailSource) openService(ctx context.Context, t trigger.Trigger, cfg emailConfig) (mailbox.Box, func(), error) {
	service, known := s.services[cfg.Provider]
	if !known {
		return nil, nil, fault.Newf(fault.Unsupported, "email_provider: this program has no extension that reads mailboxes by %s; use imap", cfg.Provider)
	}
	id := gjson.GetBytes(t.Config, "credential_id").String()
	if id == "" {
		return nil, nil, fault.Newf(fault.CredentialMissing, "credential_id: a mailbox that is read by %s needs a credential of the type %s", cfg.Provider, service.Credential)
	}
	opened, err := t.Open(ctx, id, service.Credential)
	if err != nil {
		return nil, nil, err
	}
	box, err := service.Open(opened)
	if err != nil {
		opened.Release()
		return nil, nil, err
	}
	return box, opened.Release, nil
}

// serviceCursor is how far a mailbox was read by the API of a service.
type serviceCursor struct {
	// Box is whose mailbox it is: another account or folder has a cursor of its own.
	Box string `json:"box"`
	// Position is that of the service. Done are messages behind it that were looked at already.
	Position string   `json:"position"`
	Done     []string `json:"done,omitempty"`
	// Last is when the service got the newest message that was looked at, or when the mailbox was first looked at, in Unix seconds.
	Last int64 `json:"last"`
	// Sift is set while messages are gone through that were found by their time: what the service got before then is not new.
	Sift int64 `json:"sift,omitempty"`
	// Unmarked are messages that have started something and are yet to be marked as read.
	Unmarked []string `json:"unmarked,omitempty"`
}

// serviceBoxName names a folder without telling whose it is.
func serviceBoxName(provider, folder string) string {
	sum := sha256.Sum256([]byte(provider + "\x00" + folder))
	return hex.EncodeToString(sum[:8])
}

// positionService is the cursor of a mailbox whose messages so far start nothing; nil: the trigger goes on with that of the one before it.
func (s *emailSource) positionService(ctx context.Context, t trigger.Trigger, cfg emailConfig) ([]byte, error) {
	box, release, err := s.openService(ctx, t, cfg)
	if err != nil {
		return nil, err
	}
	defer release()
	folder, err := box.Locate(ctx, cfg.Mailbox)
	var c serviceCursor
	if err != nil {
		if len(t.Cursor) > 0 && fault.From(err).Retryable && payload.Read(t.Cursor, &c) == nil && c.Position != "" {
			return nil, nil // the former trigger has found the mailbox, and the new one waits for it as that does
		}
		return nil, err
	}
	name := serviceBoxName(cfg.Provider, folder)
	if len(t.Cursor) > 0 && payload.Read(t.Cursor, &c) == nil && c.Box == name {
		return nil, nil
	}
	if c, err = beginService(ctx, box, name, folder); err != nil {
		return nil, err
	}
	return payload.Encode(c)
}

// beginService is the cursor behind all that a folder has.
func beginService(ctx context.Context, box mailbox.Box, name, folder string) (serviceCursor, error) {
	now := time.Now()
	news, err := box.Since(ctx, folder, now.Add(-firstLook))
	for err == nil && news.More {
		news, err = box.News(ctx, folder, news.Position)
	}
	return serviceCursor{Box: name, Position: news.Position, Last: now.Unix()}, err
}

// listenService looks for mail again and again. Each time the credential is opened anew, so that its token is a good one.
func (s *emailSource) listenService(ctx context.Context, t trigger.Trigger, cfg emailConfig, deliver trigger.Deliver) error {
	w := &serviceWatch{source: s, trigger: t, cfg: cfg, deliver: deliver}
	if len(t.Cursor) > 0 && payload.Read(t.Cursor, &w.cursor) != nil {
		w.cursor = serviceCursor{}
	}
	every := cmp.Or(s.poll, time.Duration(cfg.Poll)*time.Second)
	for {
		if err := w.round(ctx); err != nil {
			return err
		}
		t.Ready() // it changes nothing the second time
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(every):
		}
	}
}

// serviceWatch is the reading of a mailbox for a trigger.
type serviceWatch struct {
	source  *emailSource
	trigger trigger.Trigger
	cfg     emailConfig
	deliver trigger.Deliver
	cursor  serviceCursor
}

// round takes all that is new.
func (w *serviceWatch) round(ctx context.Context) error {
	box, release, err := w.source.openService(ctx, w.trigger, w.cfg)
	if err != nil {
		return err
	}
	defer release()
	folder, err := box.Locate(ctx, w.cfg.Mailbox)
	if err != nil {
		return err
	}
	// The credential leads to another mailbox than when the trigger was deployed.
	if name := serviceBoxName(w.cfg.Provider, folder); w.cursor.Box != name {
		if w.cursor, err = beginService(ctx, box, name, folder); err != nil {
			return err
		}
		return w.move(ctx)
	}
	if err := w.mark(ctx, box); err != nil {
		return err
	}
	for {
		news, err := box.News(ctx, folder, w.cursor.Position)
		if errors.Is(err, mailbox.ErrLost) {
			w.source.log.Warn("a service does not know how far a mailbox was read; what is new is told by its time", "workspace", w.trigger.Workspace, "workflow", w.trigger.WorkflowID, "node", w.trigger.Node)
			w.cursor.Sift = cmp.Or(w.cursor.Sift, w.cursor.Last)
			news, err = box.Since(ctx, folder, time.Unix(w.cursor.Sift, 0))
		}
		if err != nil {
			return err
		}
		if err := w.takeNews(ctx, box, news); err != nil || !news.More {
			return err
		}
	}
}

// takeNews handles new messages, and records that they were handled.
func (w *serviceWatch) takeNews(ctx context.Context, box mailbox.Box, news mailbox.News) error {
	for _, id := range news.Messages {
		if slices.Contains(w.cursor.Done, id) {
			continue
		}
		if err := w.one(ctx, box, id); err != nil {
			return err
		}
	}
	if news.Position == w.cursor.Position && len(w.cursor.Done) == 0 && w.cursor.Sift == 0 {
		return nil
	}
	w.cursor.Position, w.cursor.Done = news.Position, nil
	if !news.More {
		w.cursor.Sift = 0
	}
	if err := w.move(ctx); err != nil {
		return err
	}
	return w.mark(ctx, box)
}

// one takes a message: its event is on disk together with the cursor behind it, or nothing is.
func (w *serviceWatch) one(ctx context.Context, box mailbox.Box, id string) error {
	name := w.cfg.Provider + ":" + id
	m, err := w.readMessage(ctx, box, id)
	switch fault.CodeOf(err) {
	case fault.NotFound: // it was removed in between
		return nil
	case fault.TooLarge:
		return w.hand(ctx, w.behind(id, time.Time{}), trigger.Event{Key: name,
			Ignored: fmt.Sprintf("it has more than %d bytes", maxMessage)})
	}
	if err != nil {
		return err
	}
	if m.Received.IsZero() {
		m.Received = time.Now()
	}
	next := w.behind(id, m.Received)
	if next.Sift > 0 && m.Received.Unix() < next.Sift {
		w.cursor = next
		return nil
	}
	e, err := w.event(ctx, name, m)
	if err != nil {
		return err
	}
	if e.Ignored == "" && w.cfg.MarkSeen {
		next.Unmarked = append(slices.Clone(next.Unmarked), id)
	}
	return w.hand(ctx, next, e)
}

// behind is the cursor behind a message.
func (w *serviceWatch) behind(id string, received time.Time) serviceCursor {
	next := w.cursor
	next.Done = append(slices.Clone(next.Done), id)
	if !received.IsZero() {
		next.Last = max(next.Last, received.Unix())
	}
	return next
}

// hand hands an event over, with the cursor behind it.
func (w *serviceWatch) hand(ctx context.Context, next serviceCursor, e trigger.Event) error {
	raw, err := payload.Encode(next)
	if err != nil {
		return err
	}
	if err := w.deliver(ctx, e, raw); err != nil {
		return err
	}
	w.cursor = next
	return nil
}

// readMessage reads a message, a large one while no other large one is read.
func (w *serviceWatch) readMessage(ctx context.Context, box mailbox.Box, id string) (mailbox.Message, error) {
	m, err := box.Message(ctx, id, smallMessage)
	if fault.CodeOf(err) != fault.TooLarge {
		return m, err
	}
	select {
	case w.source.large <- struct{}{}:
		defer func() { <-w.source.large }()
	case <-ctx.Done():
		return m, ctx.Err()
	}
	return box.Message(ctx, id, maxMessage)
}

// event makes an event of a message. One that cannot be read starts nothing, and does not keep those behind it from being read.
func (w *serviceWatch) event(ctx context.Context, name string, m mailbox.Message) (e trigger.Event, err error) {
	defer func() {
		if p := recover(); p != nil {
			w.source.log.Error("a mail could not be read", "workspace", w.trigger.Workspace, "workflow", w.trigger.WorkflowID, "node",
				w.trigger.Node, "message", name, "panic", fmt.Sprint(p))
			e, err = trigger.Event{Key: name, Ignored: "it cannot be read"}, nil
		}
	}()
	l, ok := readIncoming(m.Raw, int64(len(m.Raw)), true, Trust{Server: receiverOf(w.source.services[w.cfg.Provider].Credential, "")})
	if !ok {
		return trigger.Event{Key: name, Ignored: "it is not a mail: it has no header"}, nil
	}
	if why := w.cfg.unwanted(l); why != "" {
		return trigger.Event{Key: name, Ignored: why}, nil
	}
	body, err := l.payload(ctx, &w.cfg, cmp.Or(l.mail.ID, name), m.Received, w.trigger.KeepFile)
	return trigger.Event{Key: l.key(), Payload: body}, err
}

// move keeps the cursor without an event.
func (w *serviceWatch) move(ctx context.Context) error {
	raw, err := payload.Encode(w.cursor)
	if err != nil {
		return err
	}
	return w.trigger.Move(ctx, raw)
}

// mark marks messages as read that have started something, and keeps that it is done. A service that refuses it is not asked again.
func (w *serviceWatch) mark(ctx context.Context, box mailbox.Box) error {
	if len(w.cursor.Unmarked) == 0 {
		return nil
	}
	for _, id := range w.cursor.Unmarked {
		err := box.MarkSeen(ctx, id)
		if err == nil || fault.CodeOf(err) == fault.NotFound {
			continue
		}
		if fault.From(err).Retryable {
			return err
		}
		w.source.log.Warn("the service does not mark mails as read", "workspace", w.trigger.Workspace, "workflow", w.trigger.WorkflowID,
			"node", w.trigger.Node, "error", err)
	}
	w.cursor.Unmarked = nil
	return w.move(ctx)
}
