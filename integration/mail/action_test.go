package mail

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapserver"
	"github.com/emersion/go-imap/v2/imapserver/imapmemserver"
	"github.com/emersion/go-smtp"
	"github.com/tidwall/gjson"

	"tandem/credential"
	"tandem/fault"
	"tandem/node"
	"tandem/node/nodetest"
)

// desk is the kind that handles mail, with a real SMTP and a real IMAP server.
type desk struct {
	t      *testing.T
	office *postOffice
	box    *imapBox
	safe   *safe
	files  *nodetest.Files
	kind   node.Kind
}

func newDesk(t *testing.T, options ...officeOption) *desk {
	t.Helper()
	d := &desk{t: t, office: startOffice(t, securityNone, nil, options...), safe: &safe{}, files: &nodetest.Files{}}
	d.box = startMailbox(t, securityNone, nil, func(o *imapserver.Options, _ *imapmemserver.Server) {
		o.Caps = imap.CapSet{imap.CapIMAP4rev1: {}, imap.CapUIDPlus: {}}
	})
	d.safe.smtp("out", d.office, securityNone)
	d.safe.imap("in", d.box, securityNone)
	d.kind = act(Network{Dial: (&net.Dialer{}).DialContext}, nil)
	return d
}

func (d *desk) call(config, input string) *node.Call {
	c := nodetest.NewCall(d.t, `{"credential_id":"out","imap_credential_id":"in",`+config+`}`, input)
	c.Credential, c.Files = d.safe.open, d.files
	return c
}

func (d *desk) run(config, input string) (gjson.Result, error) {
	out, err := d.kind.Run(context.Background(), d.call(config, input))
	if err != nil {
		return gjson.Result{}, err
	}
	return gjson.ParseBytes(out.(node.Done)["result"]), nil
}

// does runs a node that has to end well.
func (d *desk) does(config string) gjson.Result {
	d.t.Helper()
	result, err := d.run(config, ``)
	if err != nil {
		d.t.Fatalf("%s: %v", config, err)
	}
	return result
}

// folder makes a mailbox with mails.
func (d *desk) folder(name string, mails ...string) {
	d.t.Helper()
	if name != "INBOX" {
		if err := d.box.user.Create(name, nil); err != nil {
			d.t.Fatal(err)
		}
	}
	for _, text := range mails {
		raw := []byte(strings.ReplaceAll(text, "\n", "\r\n"))
		if _, err := d.box.user.Append(name, bytes.NewReader(raw), &imap.AppendOptions{}); err != nil {
			d.t.Fatal(err)
		}
	}
}

// count is how many mails are in a mailbox.
func (d *desk) count(name string) uint32 {
	d.t.Helper()
	status, err := d.box.user.Status(name, &imap.StatusOptions{NumMessages: true})
	if err != nil {
		d.t.Fatal(err)
	}
	return *status.NumMessages
}

func TestAction_Send(t *testing.T) {
	t.Parallel()
	nodetest.Conform(t, nodetest.Of(act(Network{}, nil)))
	d := newDesk(t)
	d.files.Put("abc", []byte("%PDF-1.7"))
	result := d.does(`"from":"张三 <bot@example.com>","to":["Ann Ä <ann@example.org>","bob@example.org"],"cc":"\"Doe, Jane\" <jane@example.org>, ann@example.org","bcc":["eve@example.org"],
		"reply_to":"desk@example.com","subject":"Bestellung für 李四","body_text":"Grüße\n你好","body_html":"<p>你好</p>",
		"attachments":[{"base64":"aGVsbG8=","name":"报告.txt"},{"blob":"abc","name":"a.pdf"}]`)
	sent := receive(t, "the mail", d.office.mails)
	if want := []string{"ann@example.org", "bob@example.org", "jane@example.org", "eve@example.org"}; sent.from != "bot@example.com" || !slices.Equal(sent.to, want) || sent.login != "user@example.com" {
		t.Errorf("envelope %q %q by %q", sent.from, sent.to, sent.login)
	}
	l, ok := readIncoming(sent.raw, int64(len(sent.raw)), true, Trust{})
	if !ok {
		t.Fatalf("no mail: %s", sent.raw)
	}
	if l.mail.Name != "张三" || l.mail.Subject != "Bestellung für 李四" || strings.TrimSpace(l.mail.Text) != "Grüße\n你好" || strings.TrimSpace(l.html) != "<p>你好</p>" {
		t.Errorf("%+v, HTML %q", l.mail, l.html)
	}
	if got := l.addresses("Cc"); !slices.Equal(got, []string{"jane@example.org", "ann@example.org"}) || l.header.get("Bcc") != "" || l.addresses("Reply-To")[0] != "desk@example.com" || strings.Contains(string(sent.raw), "eve@example.org") {
		t.Errorf("copies %q, blind %q, replies to %q", got, l.header.get("Bcc"), l.header.get("Reply-To"))
	}
	if len(l.files) != 2 || l.files[0].name != "报告.txt" || string(l.files[0].content()) != "hello" || l.files[1].name != "a.pdf" || string(l.files[1].content()) != "%PDF-1.7" {
		t.Errorf("files %+v", l.files)
	}
	if id := result.Get("message_id").Str; id != l.mail.ID || !strings.HasSuffix(id, "@example.com") || isOurs(id) {
		t.Errorf("Message-ID %q, told %q", l.mail.ID, id)
	}
	if result.Get("accepted.#").Int() != 4 || result.Get("rejected_recipients.#").Int() != 0 || result.Get("action").Str != "send" || !result.Get("success").Bool() {
		t.Errorf("told %s", result.Raw)
	}
	again := d.does(`"to":"ann@example.org","subject":"s","body_text":"b"`) // the address of the account; the same node
	if sent := receive(t, "the mail", d.office.mails); sent.from != "user@example.com" || again.Get("message_id").Str != result.Get("message_id").Str {
		t.Errorf("from %q, Message-ID %q", sent.from, again.Get("message_id").Str)
	}
}

// TestAction_BodyOfTheInput: the other form of a body is taken from the input only if the author has written none.
func TestAction_BodyOfTheInput(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	input := `{"to":"eve@example.org","subject":"theirs","body_text":"their text","body_html":"<p>their page</p>"}`
	for name, c := range map[string]struct{ config, text, html string }{
		"Text":   {`"to":"ann@example.org","subject":"s","body_text":"mine"`, "mine", ""},
		"HTML":   {`"to":"ann@example.org","subject":"s","body_html":"<p>mine</p>"`, "mine", "<p>mine</p>"},
		"Filled": {`"to":"ann@example.org","subject":"s"`, "their text", "<p>their page</p>"},
	} {
		if _, err := d.run(c.config, input); err != nil {
			t.Fatal(err)
		}
		sent := receive(t, "the mail", d.office.mails)
		l, _ := readIncoming(sent.raw, int64(len(sent.raw)), true, Trust{})
		if strings.TrimSpace(l.mail.Text) != c.text || strings.TrimSpace(l.html) != c.html || !slices.Equal(sent.to, []string{"ann@example.org"}) {
			t.Errorf("%s: %q, %q to %q", name, l.mail.Text, l.html, sent.to)
		}
	}
}

func TestAction_Refusals(t *testing.T) {
	t.Parallel()
	send := `"to":["%s"],"subject":"s","body_text":"b"`
	answers := map[string]error{
		"later@example.com": &smtp.SMTPError{Code: 451, Message: "later"}, "gone@example.com": &smtp.SMTPError{Code: 550, Message: "no such user"},
	}
	d := newDesk(t, refusing(answers))
	for name, c := range map[string]struct {
		config    string
		code      fault.Code
		retryable bool
	}{
		"NoRecipient":   {`"subject":"s","body_text":"b"`, fault.InvalidInput, false},
		"NobodyListed":  {`"to":[],"subject":"s","body_text":"b"`, fault.InvalidInput, false},
		"NoSubject":     {`"to":"a@example.org","body_text":"b"`, fault.InvalidInput, false},
		"NoBody":        {`"to":"a@example.org","subject":"s"`, fault.InvalidInput, false},
		"NoAddress":     {fmt.Sprintf(send, "nobody"), fault.InvalidInput, false},
		"BreakSubject":  {`"to":"a@example.org","subject":"s\nBcc: eve@example.org","body_text":"b"`, fault.InvalidInput, false},
		"BreakTo":       {`"to":["A\r\nBcc: eve@example.org <a@example.org>"],"subject":"s","body_text":"b"`, fault.InvalidInput, false},
		"BreakFrom":     {`"from":"a@example.org\n","to":"a@example.org","subject":"s","body_text":"b"`, fault.InvalidInput, false},
		"BreakReplyTo":  {`"reply_to":"a@example.org\nX: y","to":"a@example.org","subject":"s","body_text":"b"`, fault.InvalidInput, false},
		"TooLarge":      {`"to":"a@example.org","subject":"s","body_text":"b","attachments":[{"blob":"big"},{"blob":"big"}]`, fault.TooLarge, false},
		"Later":         {fmt.Sprintf(send, "later@example.com"), fault.RemoteError, true},
		"NoSuchUser":    {fmt.Sprintf(send, "gone@example.com"), fault.RemoteRejected, false},
		"NoMail":        {`"action_type":"get","email_id":"none@example.com"`, fault.NotFound, false},
		"NoMailToReply": {`"action_type":"reply","email_id":"none@example.com","body":"b"`, fault.NotFound, false},
		"NoMailbox":     {`"action_type":"search","mailbox":"Nowhere"`, fault.RemoteRejected, false},
		"BadTime":       {`"action_type":"search","since":"yesterday"`, fault.InvalidInput, false},
		"BadCursor":     {`"action_type":"search","cursor":"x"`, fault.InvalidInput, false},
		"OldCursor":     {`"action_type":"search","cursor":"999:5"`, fault.Conflict, false},
		"NothingToMark": {`"action_type":"mark","email_id":"a@b"`, fault.InvalidInput, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d.files.Put("big", make([]byte, 20<<20))
			_, err := d.run(c.config, ``)
			if f := fault.From(err); err == nil || f.Code != c.code || f.Retryable != c.retryable {
				t.Errorf("%v, retryable %v", err, f.Retryable)
			}
		})
	}
	t.Run("SomeRefused", func(t *testing.T) {
		t.Parallel()
		result := d.does(`"to":["gone@example.com","ann@example.org"],"subject":"s","body_text":"b"`)
		if result.Get("accepted.0").Str != "ann@example.org" || result.Get("rejected_recipients.0.address").Str != "gone@example.com" || !strings.Contains(result.Get("rejected_recipients.0.error").Str, "no such user") {
			t.Errorf("told %s", result.Raw)
		}
	})
	t.Run("Login", func(t *testing.T) {
		t.Parallel()
		other := newDesk(t)
		other.safe.put("out", typeSMTP, map[string]any{"host": "127.0.0.1", "port": other.office.port, "security": "none", "username": "user@example.com", "password": "canary-wrong"})
		other.safe.put("in", typeIMAP, map[string]any{"host": "127.0.0.1", "port": portText(other.box.port), "security": "none", "username": mailboxUser, "password": "canary-wrong"})
		for _, config := range []string{fmt.Sprintf(send, "ann@example.org"), `"action_type":"search"`} {
			if _, err := other.run(config, ``); fault.CodeOf(err) != fault.CredentialInvalid || strings.Contains(err.Error(), "canary") {
				t.Errorf("%v", err)
			}
		}
	})
	t.Run("NoWayToRead", func(t *testing.T) {
		t.Parallel()
		call := nodetest.NewCall(t, `{"credential_id":"out","action_type":"search"}`, ``)
		call.Credential = d.safe.open
		if _, err := d.kind.Run(t.Context(), call); fault.CodeOf(err) != fault.CredentialMissing || !strings.Contains(err.Error(), "imap_credential_id") {
			t.Errorf("%v", err)
		}
	})
}

// TestAction_Renews: an access token that has expired is replaced once, and the mail goes out.
func TestAction_Renews(t *testing.T) {
	t.Parallel()
	d := newDesk(t, func(o *postOffice, _ *smtp.Server) { o.token = "new" })
	data := func(token string) json.RawMessage {
		return json.RawMessage(fmt.Sprintf(`{"token":%q,"email":"user@example.com","base_url":"http://127.0.0.1:%d"}`, token, d.office.port))
	}
	call := d.call(`"to":"ann@example.org","subject":"s","body_text":"b"`, ``)
	renewed := 0
	call.Credential = func(_ context.Context, id string, _ ...string) (credential.Opened, error) {
		c := credential.Opened{ID: id, Type: typeGoogle, Data: data("old")}
		c.Renew = func(context.Context, string) (credential.Opened, error) {
			renewed++
			return credential.Opened{ID: id, Type: typeGoogle, Data: data("new")}, nil
		}
		return c, nil
	}
	if _, err := d.kind.Run(t.Context(), call); err != nil || renewed != 1 {
		t.Fatalf("%v, renewed %d times", err, renewed)
	}
	if sent := receive(t, "the mail", d.office.mails); sent.login != "user@example.com" {
		t.Errorf("sent by %q", sent.login)
	}
}

func TestAction_Reply(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.folder("INBOX", "From: Ann <ann@example.org>\nTo: replies@example.com, bob@example.org\nCc: jane@example.org\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\nMessage-ID: <m1@example.org>\nReferences: <m0@example.org>\n\nHello\n",
		"From: ann@example.org\nReply-To: desk@example.org\nSubject: Re: x\n\nHello\n")
	d.does(`"action_type":"reply","from":"bot@example.com","email_id":"<m1@example.org>","body":"Thanks","reply_all":true`)
	sent := receive(t, "the reply", d.office.mails)
	h, m := sent.read(t)
	if !slices.Equal(sent.to, []string{"ann@example.org", "bob@example.org", "jane@example.org"}) || m.Subject != "Re: Grüße" || strings.TrimSpace(m.Text) != "Thanks" {
		t.Errorf("to %q: %+v", sent.to, m)
	}
	if refers := messageIDs(h.get("References")); !slices.Equal(refers, []string{"m0@example.org", "m1@example.org"}) || h.get("In-Reply-To") != "<m1@example.org>" {
		t.Errorf("refers to %q, answers %q", refers, h.get("In-Reply-To"))
	}
	found := d.does(`"action_type":"search","subject":"Re: x"`)
	d.does(`"action_type":"reply","email_id":"` + found.Get("emails.0.email_id").Str + `","body":"Thanks"`) // one without a Message-ID, to the address that it names
	if sent := receive(t, "the reply", d.office.mails); !slices.Equal(sent.to, []string{"desk@example.org"}) {
		t.Errorf("to %q", sent.to)
	}
}

func TestAction_Mailbox(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.folder("Done")
	d.folder("INBOX", "From: ann@example.org\nTo: box@example.com\nSubject: one\nMessage-ID: <one@example.org>\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\nHello 1\n--b\nContent-Type: text/plain; name=a.txt\nContent-Disposition: attachment; filename=a.txt\n\nfile\n--b--\n",
		"From: bob@example.org\nTo: box@example.com\nSubject: two\nMessage-ID: <two@example.org>\n\nHello 2\n")
	d.does(`"action_type":"mark","email_id":"one@example.org","seen":true,"flagged":true`)
	list := d.does(`"action_type":"search"`)
	if list.Get("emails.#").Int() != 2 || list.Get("emails.0.subject").Str != "two" || list.Get("emails.0.seen").Bool() || !list.Get("emails.1.seen").Bool() || !list.Get("emails.1.flagged").Bool() || list.Get("emails.1.preview").Str != "Hello 1" {
		t.Errorf("listed %s", list.Raw)
	}
	if unseen := d.does(`"action_type":"search","unseen":true`); unseen.Get("emails.#").Int() != 1 || unseen.Get("emails.0.email_id").Str != "two@example.org" {
		t.Errorf("unseen %s", unseen.Raw)
	}
	d.does(`"action_type":"mark","email_id":"one@example.org","seen":false,"flagged":false`)
	if from := d.does(`"action_type":"search","from":"ann@example.org","since":"2020-01-31"`); from.Get("emails.#").Int() != 1 || from.Get("emails.0.seen").Bool() || from.Get("emails.0.flagged").Bool() {
		t.Errorf("from Ann %s", from.Raw)
	}
	if none := d.does(`"action_type":"search","since":"2100-01-31T00:00:00Z"`); none.Get("emails.#").Int() != 0 {
		t.Errorf("of the future %s", none.Raw)
	}
	mail := d.does(`"action_type":"get","email_id":"one@example.org"`).Get("email")
	if mail.Get("subject").Str != "one" || mail.Get("body_text").Str != "Hello 1" || mail.Get("attachments.0.name").Str != "a.txt" {
		t.Errorf("read %s", mail.Raw)
	}
	if content, _ := d.files.Content(mail.Get("attachments.0.blob").Str); strings.TrimSpace(string(content)) != "file" {
		t.Errorf("kept %q", content)
	}
	for range 2 { // a repeat finds what the first has done
		d.does(`"action_type":"move","email_id":"one@example.org","mailbox":"Done"`)
		if d.count("INBOX") != 1 || d.count("Done") != 1 {
			t.Errorf("moved: %d and %d", d.count("INBOX"), d.count("Done"))
		}
	}
	for range 2 {
		d.does(`"action_type":"delete","email_id":"one@example.org","source_mailbox":"Done"`)
		if d.count("Done") != 0 {
			t.Errorf("%d are left", d.count("Done"))
		}
	}
	if _, err := d.run(`"action_type":"move","email_id":"none@example.org","mailbox":"Done"`, ``); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("moved what is not there: %v", err)
	}
	if _, err := d.run(`"action_type":"move","email_id":"two@example.org","mailbox":"Nowhere"`, ``); fault.CodeOf(err) != fault.RemoteRejected || d.count("INBOX") != 1 {
		t.Errorf("moved to nowhere: %v", err)
	}
}

// TestAction_SearchPages: a list goes on over pages, the newest first.
func TestAction_SearchPages(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for i := range 25 {
		d.folder("INBOX", fmt.Sprintf("From: ann@example.org\nSubject: %d\nMessage-ID: <%d@example.org>\n\nx\n", i, i))
	}
	var subjects []string
	cursor := ""
	for pages := 0; pages < 3; pages++ {
		page := d.does(`"action_type":"search","limit":10,"cursor":"` + cursor + `"`)
		for _, m := range page.Get("emails").Array() {
			subjects = append(subjects, m.Get("subject").Str)
		}
		cursor = page.Get("next_cursor").Str
		if more := pages < 2; page.Get("truncated").Bool() != more || (cursor != "") != more {
			t.Errorf("page %d: %s", pages, page.Raw)
		}
	}
	if len(subjects) != 25 || subjects[0] != "24" || subjects[24] != "0" {
		t.Errorf("listed %q", subjects)
	}
}

// lost runs a node whose answer is lost at the end of the mail.
func (d *desk) lost(config string) *node.Call {
	d.t.Helper()
	call := d.call(config, ``)
	_, err := d.kind.Run(context.Background(), call)
	if failed, ok := err.(*node.Failure); !ok || !failed.Unknown || fault.CodeOf(err) != fault.OutcomeUnknown {
		d.t.Fatalf("the answer was lost: %v", err)
	}
	again := d.call(config, ``)
	again.Attempt = 2
	return again
}

// TestAction_Inquire: a mail whose answer was lost is found by its Message-ID among what was sent. One that is not there is sent again only if the server is
// known to keep all that it sends.
func TestAction_Inquire(t *testing.T) {
	t.Parallel()
	var d *desk
	keeps := true // the server puts what it sends into Sent, and then the connection breaks
	d = newDesk(t, func(o *postOffice, _ *smtp.Server) {
		o.cut = func(c *smtp.Conn) error {
			sent := <-o.mails
			if keeps {
				d.sentTo("Sent Items", sent.raw)
			}
			return c.Conn().Close()
		}
	})
	d.folder("Sent Items")
	const config = `"to":"ann@example.org","cc":"bob@example.org","subject":"s","body_text":"b"`
	call := d.lost(config)
	out, err := d.kind.Inquire(t.Context(), call)
	if err != nil || out == nil {
		t.Fatalf("the mail went out: %v, %v", out, err)
	}
	result := gjson.ParseBytes(out.(node.Done)["result"])
	if !result.Get("success").Bool() || result.Get("accepted.#").Int() != 2 || !strings.HasPrefix(result.Get("message_id").Str, "tandem-node.") {
		t.Errorf("found %s", result.Raw)
	}
	other := d.call(config, ``)
	other.ActivationID = "another"
	if out, err := d.kind.Inquire(t.Context(), other); out != nil || fault.CodeOf(err) != fault.Unsupported {
		t.Errorf("that it is not there proves nothing here: %v, %v", out, err)
	}
	other = d.call(config+`,"sent_mailbox":"Sent Items"`, ``)
	other.ActivationID = "another"
	if out, err := d.kind.Inquire(t.Context(), other); out != nil || err != nil {
		t.Errorf("all that is sent is kept there, and it is not: %v, %v", out, err)
	}
	keeps = false
	d.folder("INBOX", "From: ann@example.org\nSubject: x\nMessage-ID: <m1@example.org>\n\nx\n")
	reply := d.call(`"action_type":"reply","email_id":"m1@example.org","body":"b","sent_mailbox":"Sent Items"`, ``)
	reply.ActivationID = "reply"
	if out, err := d.kind.Inquire(t.Context(), reply); out != nil || err != nil {
		t.Errorf("a reply that did not go out: %v, %v", out, err)
	}
	blind := nodetest.NewCall(t, `{"credential_id":"out",`+config+`}`, ``)
	blind.Credential = d.safe.open
	if _, err := d.kind.Inquire(t.Context(), blind); fault.CodeOf(err) != fault.Unsupported || !strings.Contains(err.Error(), result.Get("message_id").Str) {
		t.Errorf("nobody can look: %v", err)
	}
	if _, err := d.kind.Inquire(t.Context(), d.call(`"action_type":"delete","email_id":"x"`, ``)); fault.CodeOf(err) != fault.Unsupported {
		t.Errorf("what may be repeated is not asked about: %v", err)
	}
}

// sentTo puts a mail that was sent into a mailbox.
func (d *desk) sentTo(name string, raw []byte) {
	if _, err := d.box.user.Append(name, bytes.NewReader(raw), &imap.AppendOptions{}); err != nil {
		d.t.Error(err)
	}
}

// TestAction_OlderServer: a server that can neither move a mail nor remove a single one leaves what others have marked.
func TestAction_OlderServer(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.box = startMailbox(t, securityNone, nil)
	d.safe.imap("in", d.box, securityNone)
	d.folder("Done")
	d.folder("INBOX", "From: a@example.org\nSubject: one\nMessage-ID: <one@example.org>\n\nx\n", "From: a@example.org\nSubject: two\nMessage-ID: <two@example.org>\n\nx\n")
	d.does(`"action_type":"delete","email_id":"one@example.org"`)
	for range 2 {
		d.does(`"action_type":"move","email_id":"two@example.org","mailbox":"Done"`)
	}
	if list := d.does(`"action_type":"search"`); list.Get("emails.#").Int() != 0 {
		t.Errorf("what is marked as deleted is listed: %s", list.Raw)
	}
	if d.count("INBOX") != 2 || d.count("Done") != 1 {
		t.Errorf("%d are left, and %d were moved", d.count("INBOX"), d.count("Done"))
	}
}
