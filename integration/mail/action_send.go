package mail

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/mail"
	"slices"
	"strings"

	gomail "github.com/wneessen/go-mail"

	"github.com/tidwall/gjson"

	"tandem/builtin/fileref"
	"tandem/fault"
	"tandem/node"
)

const (
	// nodePrefix begins the Message-IDs of mail that nodes send. It is another one than that of questions: an answer to such a
	// mail answers no question.
	nodePrefix = "tandem-node."
	// maxAttachments is how many bytes the files of a mail may have together, which is what large providers take.
	maxAttachments = 25 << 20
	// maxReferences is how many mails of a conversation a reply refers to.
	maxReferences = 20
)

// outgoing is a mail before it is written down.
type outgoing struct {
	from, replyTo *mail.Address
	to, cc, bcc   []*mail.Address
	subject       string
	text, html    string
	files         []*fileref.Source
	// answers are the Message-IDs of the conversation, the last being that of the mail that is answered.
	answers []string
}

// broken says that a text would end a line of the header.
func broken(text string) bool { return strings.ContainsAny(text, "\r\n\x00") }

func (a *acting) headerText(field, text string) (string, error) {
	if broken(text) {
		return "", fault.Newf(fault.InvalidInput, "%s: it has a line break in it, which a header of a mail cannot have", field).With("path", field)
	}
	return text, nil
}

// address reads one address.
func (a *acting) address(field, text string) (*mail.Address, error) {
	if text == "" {
		return nil, nil
	}
	if _, err := a.headerText(field, text); err != nil {
		return nil, err
	}
	found, err := mail.ParseAddress(text)
	if err != nil {
		return nil, fault.Newf(fault.InvalidInput, "%s: %q is not a mail address", field, text).With("path", field)
	}
	return &mail.Address{Name: oneLine(found.Name), Address: found.Address}, nil
}

// addresses reads a list of addresses, or a text with commas between them.
func (a *acting) addresses(field string, raw json.RawMessage) (list []*mail.Address, err error) {
	if given := gjson.ParseBytes(raw); given.Type == gjson.String {
		if whole, err := mail.ParseAddressList(given.Str); err == nil && !broken(given.Str) {
			return a.distinct(whole), nil
		}
	}
	var texts addresses
	if len(raw) > 0 && json.Unmarshal(raw, &texts) != nil {
		return nil, fault.Newf(fault.InvalidInput, "%s: it is neither a list of mail addresses nor a text", field).With("path", field)
	}
	for _, text := range texts {
		one, err := a.address(field, text)
		if err != nil {
			return nil, err
		}
		if one != nil {
			list = append(list, one)
		}
	}
	return a.distinct(list), nil
}

// distinct leaves out addresses that are there already.
func (a *acting) distinct(list []*mail.Address) (out []*mail.Address) {
	for _, one := range list {
		if !slices.ContainsFunc(out, func(o *mail.Address) bool { return strings.EqualFold(o.Address, one.Address) }) {
			out = append(out, one)
		}
	}
	return out
}

// send sends a mail.
func (a *acting) send() (actionResult, error) {
	o, err := a.written()
	if err != nil {
		return actionResult{}, err
	}
	return a.submit(o)
}

// written is the mail that the fields say.
func (a *acting) written() (o outgoing, err error) {
	if o.subject, err = a.headerText("subject", a.cfg.Subject); err != nil {
		return o, err
	}
	for _, part := range []struct {
		field string
		raw   json.RawMessage
		into  *[]*mail.Address
	}{{"to", a.cfg.To, &o.to}, {"cc", a.cfg.CC, &o.cc}, {"bcc", a.cfg.BCC, &o.bcc}} {
		if *part.into, err = a.addresses(part.field, part.raw); err != nil {
			return o, err
		}
	}
	if len(o.to) == 0 {
		return o, fault.New(fault.InvalidInput, "to: there is nobody to write to").With("path", "to")
	}
	o.text, o.html = a.body()
	room := int64(maxAttachments)
	for i, raw := range a.cfg.Attachments {
		at := fmt.Sprintf("attachments[%d]", i)
		file, err := fileref.Open(a.ctx, a.store, a.call, raw, at, room)
		if err != nil {
			return o, err
		}
		if _, err := a.headerText(at+".name", file.Name); err != nil {
			return o, err
		}
		room -= file.Size
		o.files = append(o.files, file)
	}
	return o, nil
}

// body is the text and the HTML of a mail. An author who has written one of them has written the mail: the other one is not taken
// from the input, which may be another mail.
func (a *acting) body() (text, html string) {
	text, html = a.cfg.BodyText, a.cfg.BodyHTML
	set := func(field string) bool {
		return gjson.GetBytes(a.call.Config, field).String() != "" || gjson.GetBytes(a.call.Config, "data."+field).String() != ""
	}
	switch {
	case set("body_text") && !set("body_html"):
		html = ""
	case set("body_html") && !set("body_text"):
		text = ""
	}
	return text, html
}

// submit writes a mail down and hands it to the server.
func (a *acting) submit(o outgoing) (actionResult, error) {
	account, err := a.opened()
	if err != nil {
		return actionResult{}, err
	}
	id, err := a.signed(&o, account)
	if err != nil {
		return actionResult{}, err
	}
	raw, err := a.compose(o, id)
	if err != nil {
		return actionResult{}, err
	}
	envelope := Envelope{From: o.from.Address}
	for _, to := range a.distinct(slices.Concat(o.to, o.cc, o.bcc)) {
		envelope.To = append(envelope.To, to.Address)
	}
	var refused []Refusal
	err = loggedIn(a.ctx, account.id, account.opened, &account.server, func() (err error) {
		refused, err = a.network.Submit(a.ctx, account.server, envelope, raw)
		return err
	})
	if err != nil {
		return actionResult{}, notSent(account.hide(err), id)
	}
	out := actionResult{MessageID: id}
	for _, r := range refused {
		out.Rejected = append(out.Rejected, rejected{r.Address, fault.From(account.hide(r.Err)).Message})
	}
	for _, to := range envelope.To {
		if !slices.ContainsFunc(refused, func(r Refusal) bool { return r.Address == to }) {
			out.Accepted = append(out.Accepted, to)
		}
	}
	return out, nil
}

// notSent tells the runtime what a failure means: a mail that the server did not say it took may have gone out, and any other has not.
func notSent(err error, id string) error {
	f := fault.From(err)
	unknown := f.Code == fault.OutcomeUnknown
	if unknown {
		f = naming(f, id)
	}
	return &node.Failure{Err: f, Unknown: unknown}
}

// naming is an error about a mail of which nobody knows whether it went out, with its Message-ID: a person looks for the mail by it.
func naming(err error, id string) *fault.Error {
	f := fault.From(err).With("message_id", id)
	f.Message += "; the Message-ID of the mail is " + id
	return f
}

// signed says who a mail is from, and what its Message-ID is: the same in every attempt.
func (a *acting) signed(o *outgoing, account *mailAccount) (id string, err error) {
	if o.from, err = a.address("from", a.cfg.From); err != nil {
		return "", err
	}
	if o.from == nil {
		if account.server.Address == "" {
			return "", fault.Newf(fault.InvalidInput, "from: credential %q does not tell the address of its account; say who the mail is from", account.id).With("path", "from")
		}
		o.from = &mail.Address{Address: account.server.Address}
	}
	if o.replyTo, err = a.address("reply_to", a.cfg.ReplyTo); err != nil {
		return "", err
	}
	if account.opened.Type != typeSMTP {
		account.server.Username = cmp.Or(account.server.Username, o.from.Address) // whose token it is
	}
	sum := sha256.Sum256([]byte(a.call.Workspace + "\x00" + a.key))
	return nodePrefix + hex.EncodeToString(sum[:12]) + "@" + domainOf(o.from.Address), nil
}

// compose writes a mail down.
func (a *acting) compose(o outgoing, id string) ([]byte, error) {
	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	msg.FromMailAddress(o.from)
	msg.ToMailAddress(o.to...)
	if len(o.cc) > 0 {
		msg.CcMailAddress(o.cc...)
	}
	if o.replyTo != nil {
		msg.ReplyToMailAddress(o.replyTo)
	}
	msg.Subject(o.subject)
	msg.SetMessageIDWithValue(id)
	msg.SetDateWithValue(a.call.Now)
	if n := len(o.answers); n > 0 {
		var references []string
		for _, one := range o.answers {
			references = append(references, "<"+one+">")
		}
		msg.SetGenHeaderPreformatted(gomail.HeaderInReplyTo, references[n-1])
		msg.SetGenHeaderPreformatted(gomail.HeaderReferences, strings.Join(references, "\r\n "))
	}
	switch {
	case o.text != "" && o.html != "":
		msg.SetBodyString(gomail.TypeTextPlain, o.text)
		msg.AddAlternativeString(gomail.TypeTextHTML, o.html)
	case o.html != "":
		msg.SetBodyString(gomail.TypeTextHTML, o.html)
	default:
		msg.SetBodyString(gomail.TypeTextPlain, o.text)
	}
	for _, file := range o.files {
		if err := attach(msg, file); err != nil {
			return nil, err
		}
	}
	var out bytes.Buffer
	if _, err := msg.WriteTo(&out); err != nil {
		return nil, fault.New(fault.InvalidInput, "the mail cannot be written").WithCause(err)
	}
	return out.Bytes(), nil
}

// attach puts a file into a mail.
func attach(msg *gomail.Msg, file *fileref.Source) error {
	content, err := file.Open()
	if err != nil {
		return err
	}
	defer content.Close()
	if err := msg.AttachReader(file.Name, content, gomail.WithFileContentType(gomail.ContentType(file.ContentType))); err != nil {
		return fault.Newf(fault.InvalidInput, "the file %q cannot be attached", file.Name).WithCause(err)
	}
	return nil
}

// reply answers a mail.
func (a *acting) reply() (actionResult, error) {
	o, err := a.answer()
	if err != nil {
		return actionResult{}, err
	}
	return a.submit(o)
}

// answer is the mail that answers another.
func (a *acting) answer() (o outgoing, err error) {
	l, account, err := a.original()
	if err != nil {
		return o, err
	}
	o.to = a.listed(l, "Reply-To")
	if len(o.to) == 0 {
		o.to = a.listed(l, "From")
	}
	if len(o.to) == 0 {
		return o, fault.Newf(fault.InvalidInput, "the mail %q does not say who it is from, so nobody can be answered", a.cfg.EmailID).With("path", "email_id")
	}
	if a.cfg.ReplyAll {
		own := []string{account.server.Address, account.server.Username, addressOf(a.cfg.From)}
		o.cc = slices.DeleteFunc(a.distinct(slices.Concat(a.listed(l, "To"), a.listed(l, "Cc"))), func(one *mail.Address) bool {
			same := func(other string) bool { return strings.EqualFold(other, one.Address) }
			return slices.ContainsFunc(own, same) || slices.ContainsFunc(o.to, func(to *mail.Address) bool { return same(to.Address) })
		})
	}
	o.text, o.subject = a.cfg.Body, oneLine(l.mail.Subject)
	if !strings.HasPrefix(strings.ToLower(o.subject), "re:") {
		o.subject = "Re: " + o.subject
	}
	if l.mail.ID != "" {
		o.answers = append(messageIDs(strings.Join(l.header.all("References"), " ")), l.mail.ID)
		if n := len(o.answers); n > maxReferences {
			o.answers = slices.Concat(o.answers[:1], o.answers[n-maxReferences+1:])
		}
	}
	return o, nil
}

// listed are the addresses in a field of a mail.
func (a *acting) listed(l *incoming, field string) (list []*mail.Address) {
	parser := mail.AddressParser{WordDecoder: wordDecoder()}
	for _, value := range l.header.all(field) {
		found, err := parser.ParseList(value)
		if err != nil {
			continue // nobody can be written to who is not named properly
		}
		for _, one := range found {
			list = append(list, &mail.Address{Name: oneLine(one.Name), Address: one.Address})
		}
	}
	return a.distinct(list)
}

// inquire looks for a mail whose outcome is not known where the server keeps what it has sent. That it is there says that it went
// out. That it is not there says the opposite only of a server that is known to keep all that it sends.
func (a *acting) inquire() (out actionResult, found bool, err error) {
	account, err := a.opened()
	if err != nil {
		return out, false, err
	}
	id, err := a.signed(&outgoing{}, account)
	if err != nil {
		return out, false, err
	}
	if out, found, err = a.lookFor(id, account); err != nil {
		return out, false, naming(err, id)
	}
	return out, found, nil
}

// lookFor looks for a mail among what was sent.
func (a *acting) lookFor(id string, account *mailAccount) (out actionResult, found bool, err error) {
	if a.cfg.IMAP == "" && account.opened.Type == typeSMTP {
		return out, false, fault.New(fault.Unsupported, "without imap_credential_id nobody can look whether the mail went out")
	}
	box, reader, err := a.open("INBOX")
	if err != nil {
		return out, false, err
	}
	defer box.Close()
	name := a.cfg.SentMailbox
	if name == "" {
		if name, err = box.Sent(); err != nil {
			return out, false, reader.hide(err)
		}
	}
	if name == "" {
		return out, false, fault.New(fault.Unsupported, "the mail server has no mailbox for sent mail, so nobody can look whether the mail went out; set sent_mailbox if it has one")
	}
	if err := box.choose(name); err != nil {
		return out, false, reader.hide(err)
	}
	l, _, err := box.find(id, reader.server.Trust, look)
	if err != nil {
		return out, false, reader.hide(err)
	}
	if l == nil && a.cfg.SentMailbox == "" && account.opened.Type == typeSMTP {
		return out, false, fault.Newf(fault.Unsupported, "the mail is not in %q, and whether the server keeps all sent mail there is not known; set sent_mailbox if it does", name)
	}
	if l == nil {
		return out, false, nil
	}
	for _, field := range []string{"To", "Cc"} {
		out.Accepted = append(out.Accepted, l.addresses(field)...)
	}
	out.MessageID = id
	return out, true, nil
}
