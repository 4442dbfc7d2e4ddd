// Package mail is the channel by which questions go to people as mails and come back as replies, the trigger that mail starts workflows by,
// and the kinds that send and handle mail: SMTP out, IMAP in. Gmail and Outlook are reached by the same protocols, with an app password or
// with the access token of an account.
//
// [Channel] makes the channel. [Network.Submit] and [Network.OpenMailbox] are mail without questions, and [ParseMail] reads one. What a
// reply means is not decided here: package human does that. The program that puts channels and kinds together imports the package; nothing
// else does.
//
// A reply counts as verified when the receiving server says in its topmost Authentication-Results that DKIM or SPF passed for the domain in
// From, and not that DMARC failed. The server is the one whose name belongs to the same organisation as the host of the IMAP credential, or
// the authserv_id of that credential. Without such a word a sender is not believed, unless the credential says trust_sender.
package mail

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/mail"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/emersion/go-imap/v2"

	"tandem/credential"
	"tandem/fault"
	"tandem/human"
	"tandem/store"
)

const (
	// look is how much of each message is read to see whether it is a reply.
	look = 64 << 10
	// batch is how many messages are read at once.
	batch = 20
	// longest is how old a mail can be that answers an open question: no question is open for longer than a week.
	longest = 8 * 24 * time.Hour
	// doneFlag marks replies that were taken, where the server keeps such marks. People read the mailbox too, so that a mail has been seen
	// does not mean that it was taken.
	doneFlag imap.Flag = "$TandemTaken"
)

// Options are what the channel and the trigger need.
type Options struct {
	// Dial reaches mail servers: the guarded dialer of package outbound.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// TLS is what connections are protected with; nil: the system's roots.
	TLS *tls.Config
	Log *slog.Logger
}

// channel is the channel. It remembers how far mailboxes were read, for as long as the process runs.
type channel struct {
	network Network
	log     *slog.Logger

	mu    sync.Mutex
	marks map[store.Account]*mark

	// poll and idle are how long is waited for news; zero: as mailboxes do.
	poll, idle time.Duration
}

// mark is how far a mailbox was read. Its owner is the one Listen of the account.
type mark struct {
	validity uint32
	// read is the highest number that was looked at.
	read imap.UID
	// again are messages that could not be recorded, unflagged those whose flags could not be set.
	again     []imap.UID
	unflagged []imap.UID
}

var _ human.Listener = (*channel)(nil)

// Channel makes the channel "email".
func Channel(o Options) human.Channel { return newChannel(o) }

func newChannel(o Options) *channel {
	c := &channel{network: Network{Dial: o.Dial, TLS: o.TLS}, log: o.Log, marks: map[store.Account]*mark{}}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Name implements [human.Channel].
func (c *channel) Name() string { return human.Email }

// settings are those of a question that goes by mail.
type settings struct {
	Recipients addresses `json:"recipient_emails"`
	Sender     string    `json:"sender_email"`
	Priority   string    `json:"priority_level"`
}

// addresses are written as a list, or as one text with commas.
type addresses []string

// UnmarshalJSON reads both forms.
func (a *addresses) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		*a = nil
		for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ';' || r == '，' || r == '；' }) {
			if part = strings.TrimSpace(part); part != "" {
				*a = append(*a, part)
			}
		}
		return nil
	}
	return json.Unmarshal(raw, (*[]string)(a))
}

// Send implements [human.Channel].
func (c *channel) Send(ctx context.Context, m human.Message) (human.Receipt, error) {
	l, id, err := c.letter(ctx, m)
	if err != nil {
		return human.Receipt{}, err
	}
	opened, err := m.Open(ctx, id, typeSMTP, typeGoogle, typeMicrosoft)
	if err != nil {
		return human.Receipt{}, err
	}
	defer opened.Release()
	server, _, err := smtpProtocol().server(id, opened)
	if err != nil {
		return human.Receipt{}, err
	}
	if l.from == nil {
		if l.from, err = sender(server.Address); err != nil {
			return human.Receipt{}, err
		}
	}
	if opened.Type != typeSMTP {
		l.read = true
		server.Username = cmp.Or(server.Username, l.from.Address) // whose token it is
	}
	if l.replyTo == nil {
		l.replyTo = l.from
	}
	raw, sent, err := l.compose()
	if err != nil {
		return human.Receipt{}, err
	}
	envelope := Envelope{From: l.from.Address}
	for _, to := range l.to {
		envelope.To = append(envelope.To, to.Address)
	}
	err = loggedIn(ctx, id, opened, &server, func() error {
		refused, err := c.network.Submit(ctx, server, envelope, raw)
		for _, r := range refused {
			if err == nil {
				c.log.Warn("a recipient of a mail was refused", "workspace", m.Workspace, "interaction", m.Interaction.ID,
					"recipient", r.Address, "error", r.Err)
			}
		}
		return err
	})
	if fault.CodeOf(err) == fault.OutcomeUnknown {
		// The same mail again is the same mail: it has the same id.
		err = fault.Newf(fault.NetworkError, "mail server %q was lost at the end of the mail", server.Host).WithCause(err)
	}
	if err != nil {
		return human.Receipt{}, err
	}
	body, err := json.Marshal(sent)
	if err != nil {
		return human.Receipt{}, fault.New(fault.Internal, "the receipt of a mail could not be written").WithCause(err)
	}
	return human.Receipt{Body: body, Threads: []string{sent.ID}}, nil
}

// letter reads what the settings say, and by which credential the mail goes.
func (c *channel) letter(ctx context.Context, m human.Message) (letter, string, error) {
	var s settings
	if len(m.Request.Settings) > 0 {
		if err := json.Unmarshal(m.Request.Settings, &s); err != nil {
			return letter{}, "", fault.New(fault.InvalidConfig, "the settings for mail cannot be read: recipient_emails is a list of addresses, sender_email and priority_level are texts").WithCause(err)
		}
	}
	if m.To != "" {
		s.Recipients = addresses{m.To}
	}
	l := letter{message: m, priority: s.Priority, now: time.Now()}
	for _, text := range s.Recipients {
		a, err := mail.ParseAddress(text)
		if err != nil {
			return letter{}, "", fault.Newf(fault.InvalidConfig, "%q is not a mail address; check the recipients", text)
		}
		if !slices.ContainsFunc(l.to, func(o *mail.Address) bool { return strings.EqualFold(o.Address, a.Address) }) {
			l.to = append(l.to, &mail.Address{Name: oneLine(a.Name), Address: a.Address})
		}
	}
	if len(l.to) == 0 {
		return letter{}, "", fault.New(fault.InvalidConfig, "nobody is named to send the mail to; set recipient_emails")
	}
	var err error
	if s.Sender != "" {
		if l.from, err = sender(s.Sender); err != nil {
			return letter{}, "", err
		}
	}
	id := cmp.Or(m.Request.Credential, m.Credential)
	if id == "" {
		return letter{}, "", fault.New(fault.CredentialMissing, "no credential is named to send mail with; set credential_id to one of type smtp, google_oauth or microsoft_oauth")
	}
	if in := m.Request.InCredential; in != "" && in != id {
		l.read = true
		opened, err := m.Open(ctx, in, typeIMAP, typeGoogle, typeMicrosoft)
		if err != nil {
			return letter{}, "", err
		}
		defer opened.Release()
		server, _, err := imapProtocol().server(in, opened)
		if err != nil {
			return letter{}, "", err
		}
		if server.Address != "" {
			l.replyTo = &mail.Address{Address: server.Address}
		}
	}
	return l, id, nil
}

func sender(text string) (*mail.Address, error) {
	a, err := mail.ParseAddress(text)
	if err != nil {
		return nil, fault.Newf(fault.InvalidConfig, "%q is not an address to send mail from; set sender_email", text)
	}
	return &mail.Address{Name: oneLine(a.Name), Address: a.Address}, nil
}

// loggedIn does something with a server, and once more with a new token if the one it had is refused.
func loggedIn(ctx context.Context, id string, opened credential.Opened, s *Server, do func() error) error {
	if err := s.account(id, opened); err != nil {
		return err
	}
	err := do()
	if fault.CodeOf(err) != fault.CredentialInvalid || s.Token == "" || opened.Renew == nil {
		return err
	}
	again, rerr := opened.Renew(ctx, s.Token)
	if rerr != nil {
		return rerr
	}
	defer again.Release()
	var f fields
	if json.Unmarshal(again.Data, &f) != nil || f.Token == "" {
		return err
	}
	s.Token = f.Token
	return do()
}

// Listen implements [human.Listener]. Only replies to messages of ours are handled and marked as seen; all other mail is left as it is.
func (c *channel) Listen(ctx context.Context, a human.Account, handle human.Handle) error {
	opened, err := a.Open(ctx, a.Credential, typeIMAP, typeGoogle, typeMicrosoft, typeSMTP)
	if err != nil {
		return err
	}
	if opened.Type == typeSMTP {
		// Nothing can be read with it: its questions are answered by their links.
		opened.Release()
		<-ctx.Done()
		return ctx.Err()
	}
	defer opened.Release()
	server, _, err := imapProtocol().server(a.Credential, opened)
	if err != nil {
		return err
	}
	if server.Username == "" {
		return fault.Newf(fault.CredentialInvalid, "credential %q does not say whose mailbox it is; set its email", a.Credential)
	}
	var box *Mailbox
	err = loggedIn(ctx, a.Credential, opened, &server, func() (err error) {
		box, err = c.network.OpenMailbox(ctx, server, "INBOX")
		return err
	})
	if err != nil {
		return err
	}
	defer box.Close()
	box.poll, box.idle = cmp.Or(c.poll, box.poll), cmp.Or(c.idle, box.idle)
	r := &round{channel: c, account: a.Account, trust: server.Trust, box: box, mark: c.markOf(a.Account, box.Validity), handle: handle}
	for err == nil {
		if err = r.look(ctx); err == nil {
			err = box.Wait()
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// markOf is how far a mailbox was read; nothing of it when its messages are numbered anew.
func (c *channel) markOf(a store.Account, validity uint32) *mark {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.marks[a]
	if m == nil || m.validity != validity {
		m = &mark{validity: validity}
		c.marks[a] = m
	}
	return m
}

// round is one connection's reading of a mailbox.
type round struct {
	channel *channel
	account store.Account
	trust   Trust
	box     *Mailbox
	mark    *mark
	handle  human.Handle
}

// look takes what is new. Messages that could not be recorded come again with the next connection.
func (r *round) look(ctx context.Context) error {
	if err := r.flag(); err != nil {
		return err
	}
	uids, err := r.box.Search(r.criteria())
	if err != nil {
		return err
	}
	// A server answers a range that ends in * with its last message even if that is older.
	uids = slices.DeleteFunc(uids, func(uid imap.UID) bool { return uid <= r.mark.read })
	again := r.mark.again
	uids = slices.Concat(again, uids)
	var failed []error
	for chunk := range slices.Chunk(uids, batch) {
		found, err := r.box.Fetch(chunk, look)
		if err != nil {
			return err
		}
		for _, f := range found {
			err := r.takeReply(ctx, f)
			if err != nil && ctx.Err() != nil {
				return err
			}
			r.mark.again = slices.DeleteFunc(slices.Clone(r.mark.again), func(uid imap.UID) bool { return uid == f.UID })
			if err != nil {
				r.mark.again = append(r.mark.again, f.UID)
				failed = append(failed, err)
			}
			r.mark.read = max(r.mark.read, f.UID)
		}
		// Those that are gone do not come again.
		r.mark.again = slices.DeleteFunc(r.mark.again, func(uid imap.UID) bool {
			return slices.Contains(chunk, uid) && !slices.ContainsFunc(found, func(f Found) bool { return f.UID == uid })
		})
		r.mark.read = max(r.mark.read, slices.Max(chunk))
	}
	if r.box.Next > 0 {
		r.mark.read = max(r.mark.read, r.box.Next-1)
	}
	return errors.Join(errors.Join(failed...), r.flag())
}

// criteria find what may be a reply. In a mailbox that was not read before that is what nobody has seen, and what refers to a message of
// ours and was not taken; afterwards all that is new.
func (r *round) criteria() *imap.SearchCriteria {
	criteria := &imap.SearchCriteria{Since: time.Now().Add(-longest)}
	if r.box.Keywords {
		criteria.NotFlag = []imap.Flag{doneFlag}
	}
	unseen := imap.SearchCriteria{NotFlag: []imap.Flag{imap.FlagSeen}}
	switch {
	case r.mark.read > 0:
		criteria.UID = []imap.UIDSet{{imap.UIDRange{Start: r.mark.read + 1, Stop: 0}}}
	case r.box.Keywords:
		refers := func(name string) imap.SearchCriteria {
			return imap.SearchCriteria{Header: []imap.SearchCriteriaHeaderField{{Key: name, Value: "<" + idPrefix}}}
		}
		criteria.Or = [][2]imap.SearchCriteria{{unseen, {Or: [][2]imap.SearchCriteria{{refers("In-Reply-To"), refers("References")}}}}}
	default:
		criteria.NotFlag = unseen.NotFlag
	}
	return criteria
}

// takeReply looks at a message, and hands it on if it is a reply to one of ours.
func (r *round) takeReply(ctx context.Context, f Found) error {
	m, err := ParseMail(f.Raw, r.trust)
	if err == nil && !m.Own && f.Size > int64(len(f.Raw)) && (m.Concerns() || m.Answers) {
		var whole []Found
		if whole, err = r.box.Fetch([]imap.UID{f.UID}, maxMail); err != nil {
			return err
		}
		if len(whole) == 0 {
			return nil // it is gone
		}
		m, err = ParseMail(whole[0].Raw, r.trust)
	}
	if err != nil {
		r.channel.log.Warn("a message could not be read and is passed over", "workspace", r.account.Workspace, "credential",
			r.account.Credential, "uid", f.UID, "error", err)
		return nil
	}
	if !m.Concerns() {
		return nil
	}
	reply := human.Reply{
		Account: r.account, Threads: m.Threads, Token: m.Token, From: m.From, Name: m.Name, Verified: m.Verified && !m.Automatic,
		Text: m.Text, Subject: m.Subject, Automatic: m.Automatic, Dedup: m.ID,
	}
	if reply.Verified {
		reply.Mail = m.From
	}
	if reply.Dedup == "" {
		sum := sha256.Sum256(f.Raw)
		reply.Dedup = "sha256:" + hex.EncodeToString(sum[:])
	}
	if _, err := r.handle(ctx, reply); err != nil {
		return err
	}
	r.mark.unflagged = append(r.mark.unflagged, f.UID)
	return nil
}

// flag marks what was taken.
func (r *round) flag() error {
	if len(r.mark.unflagged) == 0 {
		return nil
	}
	flags := []imap.Flag{imap.FlagSeen}
	if r.box.Keywords {
		flags = append(flags, doneFlag)
	}
	if err := r.box.Flag(r.mark.unflagged, flags...); err != nil {
		return err
	}
	r.mark.unflagged = nil
	return nil
}
