package mail

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/emersion/go-imap/v2"

	"tandem/builtin/action"
	"tandem/fault"
	"tandem/store"
	"tandem/text"
)

const (
	// glance is how much of each mail a search reads.
	glance = 16 << 10
	// previewSize is how many bytes of its text a search tells.
	previewSize = 200
)

// uidName names a mail without a Message-ID, by its number in the mailbox.
func uidName(validity uint32, uid imap.UID) string { return fmt.Sprintf("uid:%d:%d", validity, uid) }

// nameOf is the email_id of a mail.
func (m *Mailbox) nameOf(l *incoming, uid imap.UID) string {
	if l.mail.ID != "" {
		return l.mail.ID
	}
	return uidName(m.Validity, uid)
}

// find finds a mail by its email_id, the newest if there are several, and reads it as far as limit says. Nil: it is not in the mailbox.
func (m *Mailbox) find(id string, trust Trust, limit int64) (*incoming, Found, error) {
	uids, err := m.named(id)
	if err != nil || len(uids) == 0 {
		return nil, Found{}, err
	}
	for _, uid := range slices.Backward(uids[max(0, len(uids)-batch):]) {
		found, err := m.Fetch([]imap.UID{uid}, limit)
		if err != nil {
			return nil, Found{}, err
		}
		if len(found) == 0 {
			continue // it is gone
		}
		l, ok := readIncoming(found[0].Raw, found[0].Size, true, trust)
		if ok && (strings.HasPrefix(id, "uid:") || l.mail.ID == id) { // a search finds what has the id in it
			return l, found[0], nil
		}
	}
	return nil, Found{}, nil
}

// named are the numbers that a mail may have. One that is marked as deleted is not there any more, although older servers keep it
// for a while.
func (m *Mailbox) named(id string) ([]imap.UID, error) {
	number, ok := strings.CutPrefix(id, "uid:")
	if !ok {
		return m.Search(&imap.SearchCriteria{Header: []imap.SearchCriteriaHeaderField{{Key: "Message-Id", Value: id}},
			NotFlag: []imap.Flag{imap.FlagDeleted}})
	}
	validity, uid, err := numbers(number)
	if err != nil || validity != m.Validity {
		return nil, nil // the mailbox was numbered anew
	}
	return m.Search(&imap.SearchCriteria{UID: []imap.UIDSet{imap.UIDSetNum(uid)}, NotFlag: []imap.Flag{imap.FlagDeleted}})
}

// numbers reads what the numbers of a mailbox are valid for, and one of them.
func numbers(text string) (validity uint32, uid imap.UID, err error) {
	left, right, _ := strings.Cut(text, ":")
	v, err := strconv.ParseUint(left, 10, 32)
	if err != nil {
		return 0, 0, err
	}
	u, err := strconv.ParseUint(right, 10, 32)
	return uint32(v), imap.UID(u), err
}

// mailID is the email_id that the fields name, without the brackets that people copy along.
func (a *acting) mailID() (string, error) {
	id, err := a.headerText("email_id", a.cfg.EmailID)
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(id), "<"), ">"), err
}

// locate opens the mailbox of a mail and finds it there. Nil: it is not there. The caller closes the mailbox.
func (a *acting) locate(limit int64) (*Mailbox, *mailAccount, *incoming, Found, error) {
	id, err := a.mailID()
	if err != nil {
		return nil, nil, nil, Found{}, err
	}
	box, account, err := a.open(a.cfg.Source)
	if err != nil {
		return nil, nil, nil, Found{}, err
	}
	l, found, err := box.find(id, account.server.Trust, limit)
	if err != nil {
		box.Close()
		return nil, nil, nil, Found{}, account.hide(err)
	}
	return box, account, l, found, nil
}

func (a *acting) noMail() error {
	return fault.Newf(fault.NotFound, "there is no mail %q in the mailbox %q", a.cfg.EmailID, a.cfg.Source).With("path", "email_id")
}

// original is the mail that is answered.
func (a *acting) original() (*incoming, *mailAccount, error) {
	box, account, l, _, err := a.locate(look)
	if err != nil {
		return nil, nil, action.NotTaken(err)
	}
	box.Close()
	if l == nil {
		return nil, nil, a.noMail()
	}
	return l, account, nil
}

// mark marks a mail.
func (a *acting) mark() (actionResult, error) {
	box, account, l, found, err := a.locate(glance)
	if err != nil {
		return actionResult{}, err
	}
	defer box.Close()
	if l == nil {
		return actionResult{}, a.noMail()
	}
	for _, one := range []struct {
		wish *bool
		flag imap.Flag
	}{{a.cfg.Seen, imap.FlagSeen}, {a.cfg.Flagged, imap.FlagFlagged}} {
		switch {
		case one.wish == nil:
			continue
		case *one.wish:
			err = box.Flag([]imap.UID{found.UID}, one.flag)
		default:
			err = box.Unflag([]imap.UID{found.UID}, one.flag)
		}
		if err != nil {
			return actionResult{}, account.hide(err)
		}
	}
	return actionResult{MessageID: box.nameOf(l, found.UID)}, nil
}

// move moves a mail. One that is in the other mailbox already has been moved.
func (a *acting) move() (actionResult, error) {
	box, account, l, found, err := a.locate(glance)
	if err != nil {
		return actionResult{}, err
	}
	defer box.Close()
	if l != nil {
		return actionResult{MessageID: box.nameOf(l, found.UID)}, account.hide(box.Move(found.UID, a.cfg.Mailbox))
	}
	id, err := a.mailID()
	if err != nil {
		return actionResult{}, err
	}
	if err := box.choose(a.cfg.Mailbox); err != nil {
		return actionResult{}, account.hide(err)
	}
	if l, found, err = box.find(id, account.server.Trust, glance); err != nil {
		return actionResult{}, account.hide(err)
	}
	if l == nil {
		return actionResult{}, a.noMail()
	}
	return actionResult{MessageID: box.nameOf(l, found.UID)}, nil
}

// delete deletes a mail. One that is not there has been deleted.
func (a *acting) delete() (actionResult, error) {
	box, account, l, found, err := a.locate(glance)
	if err != nil {
		return actionResult{}, err
	}
	defer box.Close()
	if l == nil {
		id, err := a.mailID()
		return actionResult{MessageID: id}, err
	}
	return actionResult{MessageID: box.nameOf(l, found.UID)}, account.hide(box.Delete(found.UID))
}

// get reads a mail, and keeps its attachments.
func (a *acting) get() (actionResult, error) {
	box, account, l, found, err := a.locate(maxMessage)
	if err != nil {
		return actionResult{}, err
	}
	defer box.Close()
	if l == nil {
		return actionResult{}, a.noMail()
	}
	id := box.nameOf(l, found.UID)
	all := &emailConfig{Attachments: true, Types: []string{"*"}, MaxSize: maxMessage}
	body, err := l.payload(a.ctx, all, id, found.Received, func(ctx context.Context, from io.Reader) (store.Blob, error) {
		if a.call.Files == nil {
			return store.Blob{}, fault.New(fault.Unsupported, "files cannot be kept here")
		}
		hash, size, err := a.call.Files.Keep(ctx, from)
		return store.Blob{Hash: hash, Size: size}, err
	})
	return actionResult{MessageID: id, Email: body}, account.hide(err)
}

// search lists mail, the newest first.
func (a *acting) search() (actionResult, error) {
	since, err := a.since()
	if err != nil {
		return actionResult{}, err
	}
	criteria := &imap.SearchCriteria{NotFlag: []imap.Flag{imap.FlagDeleted}}
	if !since.IsZero() {
		criteria.Since = since.AddDate(0, 0, -1) // a server compares days, by a clock of its own
	}
	if a.cfg.Unseen {
		criteria.NotFlag = append(criteria.NotFlag, imap.FlagSeen)
	}
	for _, one := range []imap.SearchCriteriaHeaderField{{Key: "From", Value: a.cfg.From}, {Key: "Subject", Value: a.cfg.Subject}} {
		if one.Value == "" {
			continue
		}
		if _, err := a.headerText(strings.ToLower(one.Key), one.Value); err != nil {
			return actionResult{}, err
		}
		criteria.Header = append(criteria.Header, one)
	}
	return a.list(criteria, since)
}

// since is from when on mail is listed.
func (a *acting) since() (time.Time, error) {
	if a.cfg.Since == "" {
		return time.Time{}, nil
	}
	for _, form := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(form, a.cfg.Since); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fault.Newf(fault.InvalidInput, "since: %q is not a time; write it like 2026-01-31 or 2026-01-31T09:00:00Z", a.cfg.Since).With("path", "since")
}

// list lists what fits, from the cursor on.
func (a *acting) list(criteria *imap.SearchCriteria, since time.Time) (out actionResult, err error) {
	name := a.cfg.Mailbox
	if name == "" {
		name = "INBOX"
	}
	box, account, err := a.open(name)
	if err != nil {
		return out, err
	}
	defer box.Close()
	if a.cfg.Cursor != "" {
		validity, next, err := numbers(a.cfg.Cursor)
		if err != nil || next < 1 {
			return out, fault.New(fault.InvalidInput, "cursor: it is not one that an earlier search gave").With("path", "cursor")
		}
		if validity != box.Validity {
			return out, fault.Newf(fault.Conflict, "cursor: the mailbox %q has been numbered anew since; search from the beginning", name).With("path", "cursor")
		}
		if next == 1 {
			return out, nil
		}
		criteria.UID = []imap.UIDSet{{imap.UIDRange{Start: 1, Stop: next - 1}}}
	}
	uids, err := box.Search(criteria)
	if err != nil {
		return out, account.hide(err)
	}
	slices.Reverse(uids)
	for chunk := range slices.Chunk(uids, batch) {
		found, err := box.Fetch(chunk, glance)
		if err != nil {
			return out, account.hide(err)
		}
		for _, f := range slices.Backward(found) {
			if !since.IsZero() && f.Received.Before(since) {
				continue
			}
			if len(out.Emails) == a.cfg.Limit {
				out.Truncated = true
				return out, nil
			}
			if l, ok := readIncoming(f.Raw, f.Size, false, account.server.Trust); ok {
				out.Emails = append(out.Emails, box.summary(l, f))
				out.NextCursor = fmt.Sprintf("%d:%d", box.Validity, f.UID)
			}
		}
	}
	out.NextCursor = ""
	return out, nil
}

// summary is a mail as a search lists it.
func (m *Mailbox) summary(l *incoming, f Found) emailSummary {
	return emailSummary{
		EmailID: m.nameOf(l, f.UID), Sender: l.mail.From, Name: l.mail.Name, To: strings.Join(l.addresses("To"), ", "), Subject: l.mail.Subject,
		Received: f.Received.UTC().Format(time.RFC3339), Preview: text.Head(oneLine(l.mail.Text), previewSize),
		Seen: slices.Contains(f.Flags, imap.FlagSeen), Flagged: slices.Contains(f.Flags, imap.FlagFlagged), Size: f.Size,
	}
}
