package mail

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"

	"tandem/fault"
)

const (
	// pollTime is how often a mailbox is looked at whose server cannot tell of news.
	pollTime = 30 * time.Second
	// idleTime is how long one waits for news before looking all the same: connections die without a word.
	idleTime = 2 * time.Minute
	// maxFound is how many messages one search gives, the newest if there are more.
	maxFound = 5000
)

// Mailbox is an open mailbox. One goroutine uses it.
type Mailbox struct {
	// Validity changes when the server has numbered the messages anew. Next is the number the next message will get, zero if the
	// server does not say.
	Validity uint32
	Next     imap.UID
	// Keywords says that the server keeps flags of one's own.
	Keywords bool

	host   string
	client *imapclient.Client
	ctx    context.Context
	stop   func() bool
	news   chan struct{} // something has arrived since the last wait
	idles  bool
	poll   time.Duration
	idle   time.Duration
}

// Found is a message, or its beginning.
type Found struct {
	UID imap.UID
	// Size is that of the whole message.
	Size int64
	// Received is when the server got it.
	Received time.Time
	Flags    []imap.Flag
	Raw      []byte
}

// OpenMailbox connects, logs in and selects a mailbox. It is closed when the context ends.
func (n Network) OpenMailbox(ctx context.Context, s Server, name string) (*Mailbox, error) {
	conn, stop, err := n.connect(ctx, s)
	if err != nil {
		return nil, err
	}
	m := &Mailbox{host: s.Host, ctx: ctx, stop: stop, news: make(chan struct{}, 1), poll: pollTime, idle: idleTime}
	options := &imapclient.Options{TLSConfig: n.config(s), UnilateralDataHandler: &imapclient.UnilateralDataHandler{
		Mailbox: func(d *imapclient.UnilateralDataMailbox) {
			if d.NumMessages == nil {
				return
			}
			select {
			case m.news <- struct{}{}:
			default: // told already
			}
		},
	}}
	// Until there is a client, the connection is what a watchdog closes.
	var timedOut atomic.Bool
	watchdog := time.AfterFunc(commandTime, func() {
		timedOut.Store(true)
		_ = conn.Close()
	})
	if s.Security == securityStartTLS {
		m.client, err = imapclient.NewStartTLS(conn, options)
	} else {
		m.client = imapclient.New(conn, options)
		err = m.client.WaitGreeting()
	}
	if !watchdog.Stop() && timedOut.Load() {
		err = errTooSlow
	}
	if err != nil {
		if m.client != nil {
			m.Close()
		}
		stop()
		return nil, m.explain(err)
	}
	if err := m.login(s); err != nil {
		m.Close()
		return nil, err
	}
	if err := m.choose(name); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// choose selects a mailbox of the same account.
func (m *Mailbox) choose(name string) error {
	return m.within(commandTime, func() error {
		data, err := m.client.Select(name, nil).Wait()
		if answer := (*imap.Error)(nil); errors.As(err, &answer) {
			return fault.Newf(fault.RemoteRejected, "mail server %q cannot open the mailbox %q: %s; check its name", m.host, name, shown(answer.Text)).WithCause(err)
		}
		if err != nil {
			return err
		}
		m.Validity, m.Next = data.UIDValidity, data.UIDNext
		m.Keywords = slices.Contains(data.PermanentFlags, imap.FlagWildcard)
		caps := m.client.Caps()
		m.idles = caps.Has(imap.CapIdle) || caps.Has(imap.CapIMAP4rev2)
		return nil
	})
}

func (m *Mailbox) login(s Server) error {
	err := m.within(commandTime, func() error {
		if s.Token != "" {
			return m.client.Authenticate(&xoauth2{user: s.Username, token: s.Token})
		}
		return m.client.Login(s.Username, s.Password).Wait()
	})
	if answer := (*imap.Error)(nil); errors.As(err, &answer) && answer.Code != imap.ResponseCodeUnavailable {
		return fault.Newf(fault.CredentialInvalid, "mail server %q refuses the login: %s; check the user name and the password or token of the credential", s.Host, shown(answer.Text))
	}
	return err
}

// xoauth2 logs in with an access token.
type xoauth2 struct{ user, token string }

// Start implements sasl.Client.
func (x *xoauth2) Start() (string, []byte, error) {
	return "XOAUTH2", []byte("user=" + x.user + "\x01auth=Bearer " + x.token + "\x01\x01"), nil
}

// Next implements sasl.Client. The only challenge tells why the login is refused; an empty answer lets the server say so.
func (x *xoauth2) Next([]byte) ([]byte, error) { return []byte{}, nil }

// Close ends the connection.
func (m *Mailbox) Close() {
	m.stop()
	_ = m.client.Close() // nothing is lost with it
}

// errTooSlow is the cause when a server took too long for a step.
var errTooSlow = errors.New("the mail server did not answer in time")

// within runs commands and closes the connection when they take too long: the client itself waits for ever.
func (m *Mailbox) within(limit time.Duration, commands func() error) error {
	var timedOut atomic.Bool
	watchdog := time.AfterFunc(limit, func() {
		timedOut.Store(true)
		_ = m.client.Close()
	})
	err := commands()
	watchdog.Stop()
	if err != nil && timedOut.Load() {
		err = errTooSlow
	}
	return m.explain(err)
}

func (m *Mailbox) explain(err error) error {
	if err == nil {
		return nil
	}
	if m.ctx.Err() == nil {
		if known := (*fault.Error)(nil); errors.As(err, &known) {
			return known
		}
		if errors.Is(err, errTooSlow) {
			return fault.Newf(fault.Timeout, "mail server %q did not answer in time", m.host)
		}
		if answer := (*imap.Error)(nil); errors.As(err, &answer) {
			return fault.Newf(fault.RemoteRejected, "mail server %q refuses: %s", m.host, shown(answer.Text)).WithCause(err)
		}
	}
	return networkFault(m.ctx, m.host, err)
}

// Search lists messages in the order they came, the newest if there are too many.
func (m *Mailbox) Search(criteria *imap.SearchCriteria) ([]imap.UID, error) {
	set, err := m.search(criteria)
	return expand(set), err
}

// SearchFrom lists messages from a number on in the order they came, the oldest if there are too many. Since, unless it is zero, leaves out
// those that were received before that day.
func (m *Mailbox) SearchFrom(first imap.UID, since time.Time) ([]imap.UID, error) {
	set, err := m.search(&imap.SearchCriteria{UID: []imap.UIDSet{{imap.UIDRange{Start: first, Stop: 0}}}, Since: since})
	return expandFrom(set, first), err
}

func (m *Mailbox) search(criteria *imap.SearchCriteria) (set imap.UIDSet, err error) {
	err = m.within(commandTime, func() error {
		data, err := m.client.UIDSearch(criteria, nil).Wait()
		if err != nil {
			return err
		}
		set, _ = data.All.(imap.UIDSet)
		return nil
	})
	return set, err
}

// expandFrom lists the numbers of a set from one on, the lowest if there are too many. A server answers a range that ends in * with its
// last message even if that is before the beginning.
func expandFrom(set imap.UIDSet, first imap.UID) []imap.UID {
	var uids []imap.UID
	set = slices.Clone(set)
	slices.SortFunc(set, func(a, b imap.UIDRange) int { return cmp.Compare(min(a.Start, a.Stop), min(b.Start, b.Stop)) })
	for _, r := range set {
		low, high := max(min(r.Start, r.Stop), first, 1), max(r.Start, r.Stop)
		for uid := low; uid <= high && uid >= low && len(uids) < maxFound; uid++ {
			uids = append(uids, uid)
		}
	}
	return slices.Compact(uids)
}

// expand lists the numbers of a set, the highest if there are too many: a server could name them all in a few bytes.
func expand(set imap.UIDSet) []imap.UID {
	var uids []imap.UID
	for _, r := range slices.Backward(set) {
		low, high := min(r.Start, r.Stop), max(r.Start, r.Stop)
		for uid := high; uid >= low && uid > 0 && len(uids) < maxFound; uid-- {
			uids = append(uids, uid)
		}
	}
	slices.Sort(uids)
	return slices.Compact(uids)
}

// Fetch reads messages, each as far as limit says, without marking them. Those that are gone are left out.
func (m *Mailbox) Fetch(uids []imap.UID, limit int64) (found []Found, err error) {
	section := &imap.FetchItemBodySection{Peek: true, Partial: &imap.SectionPartial{Offset: 0, Size: limit}}
	options := &imap.FetchOptions{UID: true, RFC822Size: true, InternalDate: true, Flags: true,
		BodySection: []*imap.FetchItemBodySection{section}}
	err = m.within(5*commandTime, func() error {
		command := m.client.Fetch(imap.UIDSetNum(uids...), options)
		for message := command.Next(); message != nil; message = command.Next() {
			var f Found
			for item := message.Next(); item != nil; item = message.Next() {
				switch item := item.(type) {
				case imapclient.FetchItemDataUID:
					f.UID = item.UID
				case imapclient.FetchItemDataRFC822Size:
					f.Size = item.Size
				case imapclient.FetchItemDataInternalDate:
					f.Received = item.Time
				case imapclient.FetchItemDataFlags:
					f.Flags = item.Flags
				case imapclient.FetchItemDataBodySection:
					if item.Literal == nil {
						continue
					}
					raw, err := io.ReadAll(io.LimitReader(item.Literal, limit))
					if err != nil {
						// The client goes on reading by itself after this, so that what is left of the answer must not be read here as
						// well.
						return errors.Join(err, m.client.Close())
					}
					f.Raw = raw
				}
			}
			// A server may tell of other messages in between.
			if slices.Contains(uids, f.UID) && f.Raw != nil && !slices.ContainsFunc(found, func(o Found) bool { return o.UID == f.UID }) {
				found = append(found, f)
			}
		}
		return command.Close()
	})
	slices.SortFunc(found, func(a, b Found) int { return int(int64(a.UID) - int64(b.UID)) })
	return found, err
}

// Flag adds flags to messages.
func (m *Mailbox) Flag(uids []imap.UID, flags ...imap.Flag) error {
	return m.flag(imap.StoreFlagsAdd, uids, flags)
}

// Unflag removes flags of messages.
func (m *Mailbox) Unflag(uids []imap.UID, flags ...imap.Flag) error {
	return m.flag(imap.StoreFlagsDel, uids, flags)
}

func (m *Mailbox) flag(op imap.StoreFlagsOp, uids []imap.UID, flags []imap.Flag) error {
	return m.within(commandTime, func() error {
		return m.client.Store(imap.UIDSetNum(uids...), &imap.StoreFlags{Op: op, Silent: true, Flags: flags}, nil).Close()
	})
}

// Move moves a message to another mailbox. On a server that cannot move it is copied first, and deleted here when the copy is there.
func (m *Mailbox) Move(uid imap.UID, to string) error {
	moves := m.client.Caps().Has(imap.CapMove)
	err := m.within(commandTime, func() (err error) {
		if moves {
			_, err = m.client.Move(imap.UIDSetNum(uid), to).Wait()
		} else {
			_, err = m.client.Copy(imap.UIDSetNum(uid), to).Wait()
		}
		if answer := (*imap.Error)(nil); errors.As(err, &answer) {
			return fault.Newf(fault.RemoteRejected, "mail server %q does not move the mail to %q: %s; check the name of the mailbox", m.host, to, shown(answer.Text)).WithCause(err)
		}
		return err
	})
	if err != nil || moves {
		return err
	}
	return m.Delete(uid)
}

// Delete marks a message as deleted, and removes it for good where the server can remove a single one.
func (m *Mailbox) Delete(uid imap.UID) error {
	if err := m.Flag([]imap.UID{uid}, imap.FlagDeleted); err != nil {
		return err
	}
	if !m.removesOne() {
		return nil // the server removes it with the other deleted mails
	}
	return m.within(commandTime, func() error { return m.client.UIDExpunge(imap.UIDSetNum(uid)).Close() })
}

// removesOne says that the server can remove a single message for good, and not only all that anybody has marked.
func (m *Mailbox) removesOne() bool {
	caps := m.client.Caps()
	return caps.Has(imap.CapUIDPlus) || caps.Has(imap.CapIMAP4rev2)
}

// Sent is the name of the mailbox in which the server keeps what was sent; empty: none is known for one.
func (m *Mailbox) Sent() (name string, err error) {
	var options *imap.ListOptions
	if caps := m.client.Caps(); caps.Has(imap.CapSpecialUse) && (caps.Has(imap.CapListExtended) || caps.Has(imap.CapIMAP4rev2)) {
		options = &imap.ListOptions{ReturnSpecialUse: true}
	}
	err = m.within(commandTime, func() error {
		list, err := m.client.List("", "*", options).Collect()
		for _, one := range list {
			last := one.Mailbox
			if one.Delim != 0 {
				last = last[strings.LastIndexByte(last, byte(one.Delim))+1:]
			}
			usual := slices.ContainsFunc([]string{"Sent", "Sent Mail", "Sent Items", "Sent Messages"},
				func(usual string) bool { return strings.EqualFold(usual, last) })
			if slices.Contains(one.Attrs, imap.MailboxAttrSent) {
				name = one.Mailbox
				break
			}
			if name == "" && usual {
				name = one.Mailbox
			}
		}
		return err
	})
	return name, err
}

// Wait returns when there may be something new: the server told so, or it was quiet for long.
func (m *Mailbox) Wait() error {
	if !m.idles {
		return m.ask()
	}
	var idle *imapclient.IdleCommand
	err := m.within(commandTime, func() (err error) {
		idle, err = m.client.Idle()
		return err
	})
	if fault.CodeOf(err) == fault.RemoteRejected { // it claims to tell of news, and does not
		m.idles = false
		return m.ask()
	}
	if err != nil {
		return err
	}
	if err := m.rest(m.idle); err != nil {
		_ = idle.Close() // it ends a goroutine; the connection is gone
		return err
	}
	return m.within(commandTime, func() error { return errors.Join(idle.Close(), idle.Wait()) })
}

// ask waits for as long as is waited between two questions, and asks the server for news.
func (m *Mailbox) ask() error {
	if err := m.rest(m.poll); err != nil {
		return err
	}
	return m.within(commandTime, func() error { return m.client.Noop().Wait() })
}

// rest waits for news for at most a time.
func (m *Mailbox) rest(limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-m.news:
		return nil
	case <-timer.C:
		return nil
	case <-m.ctx.Done():
		return m.explain(m.ctx.Err())
	case <-m.client.Closed():
		return m.explain(io.ErrUnexpectedEOF)
	}
}
