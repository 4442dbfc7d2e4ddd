package mail

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/google/go-cmp/cmp"

	"tandem/credential"
	"tandem/fault"
	"tandem/human"
	"tandem/outbound"
)

// passes is what the receiving server of the tests writes on top of a mail from example.com.
const passes = "Authentication-Results: mx.example.com; dkim=pass header.d=example.com\n"

// threaded is a reply to a message, as people write it.
func threaded(id, extra, body string) string {
	return extra + "From: Ann <Ann@Example.com>\nTo: replies@example.com\nSubject: Re: Pay 3 invoices?\nMessage-ID: <answer." + id + ">\nIn-Reply-To: <" + id + ">\nReferences: <" + id + ">\n\n" + body
}

func TestChannel_SendAndReply(t *testing.T) {
	t.Parallel()
	server, client := certificates(t)
	office, box := startOffice(t, securityStartTLS, server), startMailbox(t, securityTLS, server)
	s := &safe{}
	s.smtp("out", office, securityStartTLS)
	s.imap("in", box, securityTLS)
	c := testChannel(t, client)

	receipt, err := c.Send(t.Context(), request(s.account("out")))
	if err != nil {
		t.Fatal(err)
	}
	sent := receive(t, "the mail", office.mails)
	if !sent.tls || sent.login != "user@example.com" || sent.from != "bot@example.com" || !slices.Equal(sent.to, []string{"ann@example.com"}) {
		t.Errorf("sent as %+v", sent)
	}
	h, m := sent.read(t)
	for name, want := range map[string]string{
		"Message-ID": "<" + receipt.Threads[0] + ">", "Auto-Submitted": "auto-generated", "X-Tandem-Interaction": "i1",
		"Reply-To": "<replies@example.com>", "Subject": "Pay 3 invoices? [ref:Tok_en-123]",
	} {
		if got := h.get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if len(m.Threads) != 1 || !strings.HasSuffix(m.Threads[0], ".Tok_en-123@example.com") || m.Token != "Tok_en-123" || !m.Own || m.Concerns() || !m.Automatic {
		t.Errorf("threads %q, mail %+v", receipt.Threads, m)
	}
	for _, want := range []string{"They are due.\nTomorrow.", `"total": 12`, "- Approve", "2030-01-02 03:04 UTC", "https://tandem.example.com/respond/abc", "[ref:Tok_en-123]"} {
		if !strings.Contains(m.Text, want) {
			t.Errorf("the text lacks %q:\n%s", want, m.Text)
		}
	}

	l := startListening(t, c, s.account("in"), nil)
	quoted := "Yes, go ahead\n\nOn Monday Bot wrote:\n> Pay 3 invoices?\n> [ref:Tok_en-123]\n"
	// Programs refer to what the message referred to, and to the message.
	box.put(t, strings.Replace(threaded(receipt.Threads[0], passes, quoted), "References:", "References: <"+m.Threads[0]+">", 1))
	got := receive(t, "the reply", l.replies)
	want := human.Reply{
		Account: s.account("in").Account, Threads: []string{receipt.Threads[0], m.Threads[0]}, Token: "Tok_en-123", From: "ann@example.com", Mail: "ann@example.com", Name: "Ann", Verified: true,
		Text: strings.TrimSpace(quoted), Subject: "Re: Pay 3 invoices?", Dedup: "answer." + receipt.Threads[0],
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reply (-want +got):\n%s", diff)
	}
	flags := receive(t, "the flags", box.stored)
	if !slices.Contains(flags, imap.FlagSeen) || !slices.Contains(flags, doneFlag) || box.unseen(t) != 0 {
		t.Errorf("flags %v, %d unseen", flags, box.unseen(t))
	}
	l.end(t)
	if s.inUse != 0 {
		t.Errorf("%d credentials are still open", s.inUse)
	}
}

func TestChannel_Send_AgainIsTheSameMail(t *testing.T) {
	t.Parallel()
	office := startOffice(t, securityNone, nil)
	s := &safe{}
	s.smtp("out", office, securityNone)
	c := testChannel(t, nil)
	message := request(s.account("out"))
	message.Request.InCredential = ""
	var threads []string
	for i := range 2 {
		message.ReplyToken = "t" + portText(i) // each try has its own
		receipt, err := c.Send(t.Context(), message)
		if err != nil {
			t.Fatal(err)
		}
		h, _ := receive(t, "the mail", office.mails).read(t)
		if ids := messageIDs(h.get("Message-ID")); !slices.Equal(ids, receipt.Threads) {
			t.Errorf("Message-ID %v, receipt %v", ids, receipt.Threads)
		}
		threads = append(threads, receipt.Threads...)
	}
	if threads[0] != threads[1] {
		t.Errorf("sent again it is another mail: %q", threads)
	}
}

func TestChannel_Send_FollowsTheThread(t *testing.T) {
	t.Parallel()
	office := startOffice(t, securityNone, nil)
	s := &safe{}
	s.smtp("out", office, securityNone)
	s.put("in", typeIMAP, map[string]any{"host": "mail", "username": "replies@example.com", "password": "p"})
	c := testChannel(t, nil)
	message := request(s.account("out"))
	var ids []string
	for i, kind := range []string{human.KindRequest, human.KindReminder, human.KindCompleted} {
		message.ID, message.Kind = []string{"a", "b", "c"}[i], kind
		if kind == human.KindCompleted {
			message.ReplyToken, message.Link, message.Lines = "", "", []string{"Bob approved it."}
		}
		receipt, err := c.Send(t.Context(), message)
		if err != nil {
			t.Fatal(err)
		}
		h, m := receive(t, "the mail", office.mails).read(t)
		subject := "Pay 3 invoices? [ref:Tok_en-123]"
		if i > 0 {
			subject = "Re: " + subject
			if got := messageIDs(h.get("In-Reply-To")); !slices.Equal(got, ids[i-1:]) {
				t.Errorf("%s answers %v, want %v", kind, got, ids[i-1:])
			}
			want := slices.Clone(ids)
			if message.ReplyToken != "" {
				want = append(want, messageID("w1", message.ID, message.ReplyToken, "example.com"))
			}
			if got := messageIDs(h.get("References")); !slices.Equal(got, want) {
				t.Errorf("%s refers to %v, want %v", kind, got, want)
			}
		}
		if m.Subject != subject {
			t.Errorf("%s: subject %q, want %q", kind, m.Subject, subject)
		}
		if kind == human.KindCompleted && (strings.Contains(m.Text, "[ref:") || strings.Contains(m.Text, "Approve") || !strings.Contains(m.Text, "Bob approved it.")) {
			t.Errorf("a notice that wants no answer says:\n%s", m.Text)
		}
		message.Earlier = append(message.Earlier, receipt.Body)
		ids = append(ids, receipt.Threads...)
	}
}

func TestChannel_Send_Mistakes(t *testing.T) {
	t.Parallel()
	office := startOffice(t, securityNone, nil)
	s := &safe{}
	s.smtp("out", office, securityNone)
	s.put("wrong", typeSMTP, map[string]any{"host": "127.0.0.1", "port": office.port, "security": "none", "username": "user@example.com", "password": "no"})
	s.put("plain", typeSMTP, map[string]any{"host": "127.0.0.1", "port": office.port, "username": "user@example.com", "password": "secret"})
	s.put("nobody", typeSMTP, map[string]any{"host": "127.0.0.1", "port": office.port, "security": "none"})
	for name, test := range map[string]struct {
		credential string
		change     func(*human.Message)
		want       fault.Code
	}{
		"NoRecipient":     {"out", func(m *human.Message) { m.To = ""; m.Request.Settings = nil }, fault.InvalidConfig},
		"BadRecipient":    {"out", func(m *human.Message) { m.To = "ann@example.com\r\nBcc: eve@example.com" }, fault.InvalidConfig},
		"BadSender":       {"out", func(m *human.Message) { m.Request.Settings = json.RawMessage(`{"sender_email":"no address"}`) }, fault.InvalidConfig},
		"NoSender":        {"nobody", func(m *human.Message) { m.Request.Settings = nil }, fault.InvalidConfig},
		"NoCredential":    {"", nil, fault.CredentialMissing},
		"WrongPassword":   {"wrong", nil, fault.CredentialInvalid},
		"NeverInTheClear": {"plain", nil, fault.RemoteRejected}, // the server has no STARTTLS
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			message := request(s.account(test.credential))
			message.Request.InCredential = ""
			if test.change != nil {
				test.change(&message)
			}
			_, err := testChannel(t, nil).Send(t.Context(), message)
			if fault.CodeOf(err) != test.want || fault.From(err).Retryable {
				t.Errorf("Send: %v, want %s", err, test.want)
			}
		})
	}
}

func TestChannel_Send_RefusesPrivateAddresses(t *testing.T) {
	t.Parallel()
	guarded := outbound.New(outbound.Options{})
	t.Cleanup(guarded.Close)
	s := &safe{}
	s.put("out", typeSMTP, map[string]any{"host": "127.0.0.1", "port": 25, "security": "none"})
	message := request(s.account("out"))
	message.Request.InCredential = ""
	_, err := newChannel(Options{Dial: guarded.DialContext}).Send(t.Context(), message)
	if fault.CodeOf(err) != fault.BlockedAddress {
		t.Errorf("Send: %v, want %s", err, fault.BlockedAddress)
	}
}

func TestChannel_Accounts(t *testing.T) {
	t.Parallel()
	server, client := certificates(t)
	office := startOffice(t, securityTLS, server, func(o *postOffice, _ *smtpServer) { o.token = "fresh" })
	box := startMailbox(t, securityTLS, server)
	box.token = "fresh"
	allow, err := outbound.ParseAllow("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	guarded := outbound.New(outbound.Options{Allow: allow})
	t.Cleanup(guarded.Close)
	// The token that is kept is no longer good; it is renewed once for each use.
	s := &safe{}
	var calls atomic.Int32
	account := func(id string, port int) {
		data := map[string]any{"token": "stale", "email": mailboxUser, "base_url": "https://" + net.JoinHostPort("127.0.0.1", portText(port))}
		s.put(id, typeGoogle, data)
		old := s.held[id]
		old.Renew = func(ctx context.Context, refused string) (credential.Opened, error) {
			if calls.Add(1); refused != "stale" {
				return credential.Opened{}, errors.New("the token that was refused is " + refused)
			}
			data["token"] = "fresh"
			s.put(id, typeGoogle, data)
			return s.open(ctx, id, typeGoogle)
		}
		s.held[id] = old
	}
	account("out", office.port)
	account("in", box.port)
	c := newChannel(Options{Dial: guarded.DialContext, TLS: client})
	message := request(s.account("out"))
	message.Request.Settings = nil
	receipt, err := c.Send(t.Context(), message)
	if err != nil {
		t.Fatal(err)
	}
	sent := receive(t, "the mail", office.mails)
	if sent.login != mailboxUser || sent.from != mailboxUser || calls.Load() != 1 {
		t.Errorf("sent as %q by %q after %d tokens", sent.from, sent.login, calls.Load())
	}
	l := startListening(t, c, s.account("in"), nil)
	// What Google's servers write.
	box.put(t, threaded(receipt.Threads[0], "Authentication-Results: mx.google.com;\n dkim=pass header.i=@example.com header.s=20230601 header.b=abc;\n spf=pass (google.com: domain of ann@example.com designates 1.2.3.4 as permitted sender) smtp.mailfrom=ann@example.com;\n dmarc=pass (p=NONE sp=QUARANTINE dis=NONE) header.from=example.com\n", "ok"))
	if r := receive(t, "the reply", l.replies); !r.Verified || r.Mail != "ann@example.com" {
		t.Errorf("reply %+v", r)
	}
	l.end(t)
}

func TestChannel_Send_TokenRefused(t *testing.T) {
	t.Parallel()
	server, client := certificates(t)
	office := startOffice(t, securityTLS, server, func(o *postOffice, _ *smtpServer) { o.token = "good" })
	s := &safe{}
	s.put("out", typeMicrosoft, map[string]any{"token": "bad", "base_url": "https://127.0.0.1:" + portText(office.port)})
	message := request(s.account("out"))
	message.Request.InCredential = ""
	_, err := testChannel(t, client).Send(t.Context(), message)
	if fault.CodeOf(err) != fault.CredentialInvalid || strings.Contains(err.Error(), "bad") {
		t.Errorf("Send: %v, want %s without the token", err, fault.CredentialInvalid)
	}
}

func TestChannel_Listen_Idle(t *testing.T) {
	t.Parallel()
	box := startMailbox(t, securityNone, nil)
	s := &safe{}
	s.imap("in", box, securityNone)
	c := testChannel(t, nil)
	c.idle = time.Hour // only the server's word wakes it
	l := startListening(t, c, s.account("in"), nil)
	for i := range 3 {
		id := messageID("w1", "m"+portText(i), "t"+portText(i), "example.com")
		box.put(t, threaded(id, passes, "yes"))
		if r := receive(t, "a reply", l.replies); r.Token != "t"+portText(i) {
			t.Errorf("reply %d is %+v", i, r)
		}
		receive(t, "the flags", box.stored)
	}
	l.end(t)
}

func TestChannel_Listen_Polls(t *testing.T) {
	t.Parallel()
	box := startMailbox(t, securityNone, nil)
	s := &safe{}
	s.imap("in", box, securityNone)
	c := newChannel(Options{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		return &poorConn{Conn: conn}, err
	}})
	c.poll = 10 * time.Millisecond
	l := startListening(t, c, s.account("in"), nil)
	id := messageID("w1", "m1", "t1", "example.com")
	box.put(t, threaded(id, passes, "yes"))
	receive(t, "a reply", l.replies)
	if flags := receive(t, "the flags", box.stored); !slices.Equal(flags, []imap.Flag{imap.FlagSeen}) {
		t.Errorf("flags %v on a server that keeps no others", flags)
	}
	l.end(t)
}

// poorConn hides what a server can: telling of news, and flags of one's own.
type poorConn struct{ net.Conn }

func (c *poorConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	copy(p, strings.NewReplacer("IDLE", "XDLE", `\*`, `\X`).Replace(string(p[:n])))
	return n, err
}

func TestChannel_Listen_TakesEachReplyOnce(t *testing.T) {
	t.Parallel()
	box := startMailbox(t, securityNone, nil)
	s := &safe{}
	s.imap("in", box, securityNone)
	id := messageID("w1", "m1", "t1", "example.com")
	box.put(t, threaded(id, passes, "was there before"))
	box.put(t, "From: news@example.com\nSubject: Newsletter\n\nnothing of ours")
	// Somebody has read this one on a telephone while nothing was listening.
	box.put(t, threaded(id, "X-Number: 2\n", "read by a person"), imap.FlagSeen)
	box.put(t, "From: ann@example.com\nSubject: old\nReferences: <other@example.com>\n\nan old one", imap.FlagSeen)
	old := threaded(id, "X-Number: 3\n", "too old")
	box.putRaw(t, []byte(strings.ReplaceAll(old, "\n", "\r\n")), &imap.AppendOptions{Time: time.Now().Add(-30 * 24 * time.Hour)})
	c := testChannel(t, nil)
	l := startListening(t, c, s.account("in"), nil)
	first, second := receive(t, "the first", l.replies), receive(t, "the second", l.replies)
	if first.Text != "was there before" || second.Text != "read by a person" || !first.Verified || second.Verified {
		t.Errorf("got %+v and %+v", first, second)
	}
	box.await(t, 2) // the newsletter and the old one
	l.end(t)

	// Neither the same process nor a new one takes them again; what came meanwhile is taken.
	for _, c := range []*channel{c, testChannel(t, nil)} {
		box.put(t, threaded(id, passes, "meanwhile"))
		l := startListening(t, c, s.account("in"), nil)
		if r := receive(t, "what came meanwhile", l.replies); r.Text != "meanwhile" {
			t.Errorf("taken again: %+v", r)
		}
		box.await(t, 2)
		l.end(t)
		if len(l.replies) > 0 {
			t.Errorf("taken besides: %+v", <-l.replies)
		}
	}
}

func TestChannel_Listen_ComesAgainAfterAnError(t *testing.T) {
	t.Parallel()
	box := startMailbox(t, securityNone, nil)
	s := &safe{}
	s.imap("in", box, securityNone)
	id := messageID("w1", "m1", "t1", "example.com")
	box.put(t, threaded(id, passes, "first"))
	box.put(t, threaded(id, passes, "second"))
	c := testChannel(t, nil)
	broken := errors.New("the database is away")
	l := startListening(t, c, s.account("in"), func(r human.Reply) error {
		if r.Text == "first" {
			return broken
		}
		return nil
	})
	if err := receive(t, "the end", l.ended); !errors.Is(err, broken) {
		t.Fatalf("Listen: %v, want %v", err, broken)
	}
	if n := box.unseen(t); n != 1 {
		t.Errorf("%d are unseen, want the one that was not recorded", n)
	}
	l = startListening(t, c, s.account("in"), nil)
	if r := receive(t, "the first again", l.replies); r.Text != "first" {
		t.Errorf("got %+v", r)
	}
	box.await(t, 0)
	l.end(t)
	if len(l.replies) > 0 {
		t.Errorf("%d more replies", len(l.replies))
	}
}

func TestChannel_Listen_NumberedAnew(t *testing.T) {
	t.Parallel()
	box := startMailbox(t, securityNone, nil)
	s := &safe{}
	s.imap("in", box, securityNone)
	c := testChannel(t, nil)
	id := messageID("w1", "m1", "t1", "example.com")
	for i := range 3 {
		box.put(t, threaded(id, passes, "before "+portText(i)))
	}
	l := startListening(t, c, s.account("in"), nil)
	for range 3 {
		receive(t, "a reply", l.replies)
	}
	box.await(t, 0)
	l.end(t)
	// A mailbox that was made anew counts from one again.
	if err := errors.Join(box.user.Delete("INBOX"), box.user.Create("INBOX", nil)); err != nil {
		t.Fatal(err)
	}
	box.put(t, threaded(id, passes, "after"))
	l = startListening(t, c, s.account("in"), nil)
	if r := receive(t, "the reply in the new mailbox", l.replies); r.Text != "after" {
		t.Errorf("got %+v", r)
	}
	box.await(t, 0)
	l.end(t)
}

func TestChannel_Listen_LeavesOwnMessagesAlone(t *testing.T) {
	t.Parallel()
	office, box := startOffice(t, securityNone, nil), startMailbox(t, securityNone, nil)
	s := &safe{}
	s.smtp("out", office, securityNone)
	s.imap("in", box, securityNone)
	c := testChannel(t, nil)
	receipt, err := c.Send(t.Context(), request(s.account("out")))
	if err != nil {
		t.Fatal(err)
	}
	// The question goes to the mailbox that replies are read from: somebody asks themselves.
	box.put(t, string(receive(t, "the mail", office.mails).raw))
	box.put(t, threaded(receipt.Threads[0], passes, "yes"))
	l := startListening(t, c, s.account("in"), nil)
	if r := receive(t, "the reply", l.replies); r.Text != "yes" || r.Automatic {
		t.Errorf("got %+v", r)
	}
	receive(t, "the flags", box.stored)
	l.end(t)
	if len(l.replies) > 0 || box.unseen(t) != 1 {
		t.Errorf("%d more replies, %d unseen; the question itself should stay unread", len(l.replies), box.unseen(t))
	}
}

func TestChannel_Listen_LargeReply(t *testing.T) {
	t.Parallel()
	box := startMailbox(t, securityNone, nil)
	s := &safe{}
	s.imap("in", box, securityNone)
	id := messageID("w1", "m1", "t1", "example.com")
	attachment := strings.Repeat(strings.Repeat("QUJD", 19)+"\n", 40_000) // 3 MB
	box.put(t, passes+"From: ann@example.com\nMessage-ID: <a@example.com>\nIn-Reply-To: <"+id+">\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n"+
		"Content-Type: text/plain; charset=utf-8\n\nYes.\n"+strings.Repeat("> quoted line of some length\n", 4000)+"the end\n--b\nContent-Type: application/pdf\nContent-Disposition: attachment; filename=x.pdf\nContent-Transfer-Encoding: base64\n\n"+attachment+"--b--\n")
	l := startListening(t, testChannel(t, nil), s.account("in"), nil)
	r := receive(t, "the reply", l.replies)
	if !strings.HasPrefix(r.Text, "Yes.\n> quoted") || !strings.HasSuffix(r.Text, "\nthe end") || strings.Contains(r.Text, "QUJD") {
		t.Errorf("text of %d bytes begins with %.60q", len(r.Text), r.Text)
	}
	receive(t, "the flags", box.stored)
	l.end(t)
}

func TestChannel_Listen_Mistakes(t *testing.T) {
	t.Parallel()
	server, client := certificates(t)
	box := startMailbox(t, securityStartTLS, server)
	s := &safe{}
	s.imap("in", box, securityStartTLS)
	s.put("wrong", typeIMAP, map[string]any{"host": "127.0.0.1", "port": box.port, "security": "starttls", "username": mailboxUser, "password": "no"})
	s.put("clear", typeIMAP, map[string]any{"host": "127.0.0.1", "port": box.port, "security": "none", "username": mailboxUser, "password": "secret"})
	s.put("whose", typeGoogle, map[string]any{"token": "t"})
	s.put("out", typeSMTP, map[string]any{"host": "127.0.0.1"})
	none := func(context.Context, human.Reply) (human.Reaction, error) { return human.Reaction{}, nil }
	for id, want := range map[string]fault.Code{"wrong": fault.CredentialInvalid, "whose": fault.CredentialInvalid, "clear": fault.CredentialInvalid} {
		if err := testChannel(t, client).Listen(t.Context(), s.account(id), none); fault.CodeOf(err) != want {
			t.Errorf("%s: %v, want %s", id, err, want)
		}
	}
	if err := testChannel(t, nil).Listen(t.Context(), s.account("in"), none); fault.CodeOf(err) != fault.RemoteRejected {
		t.Errorf("a certificate that nobody vouches for: %v", err)
	}
	// With a credential that is only for sending there is nothing to read.
	l := startListening(t, testChannel(t, nil), s.account("out"), nil)
	l.end(t)
	l = startListening(t, testChannel(t, client), s.account("in"), nil)
	box.put(t, threaded(messageID("w1", "m1", "t1", "example.com"), passes, "yes"))
	receive(t, "a reply over STARTTLS", l.replies)
	receive(t, "the flags", box.stored)
	l.end(t)
}

func TestChannel_Listen_ServerGoesAway(t *testing.T) {
	t.Parallel()
	box := startMailbox(t, securityNone, nil)
	s := &safe{}
	s.imap("in", box, securityNone)
	var conn net.Conn
	connected := make(chan struct{})
	c := newChannel(Options{Dial: func(ctx context.Context, network, address string) (_ net.Conn, err error) {
		conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
		close(connected)
		return conn, err
	}})
	l := startListening(t, c, s.account("in"), nil)
	receive(t, "the connection", connected)
	box.put(t, threaded(messageID("w1", "m1", "t1", "example.com"), passes, "yes"))
	receive(t, "a reply", l.replies)
	receive(t, "the flags", box.stored)
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, "the end of Listen", l.ended); fault.CodeOf(err) != fault.NetworkError {
		t.Errorf("Listen: %v, want %s", err, fault.NetworkError)
	}
}
