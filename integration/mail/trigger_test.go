package mail

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/tidwall/gjson"

	"tandem/credential"
	"tandem/fault"
	"tandem/human"
	"tandem/identity"
	"tandem/node"
	"tandem/store"
	"tandem/trigger"
	"tandem/trigger/triggertest"
)

// watched is a mailbox with a trigger on it.
type watched struct {
	*triggertest.Shelf
	box    *imapBox
	safe   *safe
	source *emailSource
	config func(revision int64) string
}

// watch makes a mailbox and a source that reads it. Nothing is deployed yet.
func watch(t *testing.T, config string) *watched {
	t.Helper()
	w := &watched{Shelf: triggertest.NewShelf(), box: startMailbox(t, securityNone, nil), safe: &safe{}, config: func(int64) string { return config }}
	w.safe.imap("in", w.box, securityNone)
	w.source = newEmailSource(Options{Dial: (&net.Dialer{}).DialContext}, nil)
	return w
}

// service is a new process on the same disk. It ends with the test.
func (w *watched) service(t *testing.T) *trigger.Service {
	t.Helper()
	service := w.Shelf.Service([]trigger.Source{w.source}, func(_ string, revision int64) []trigger.Node {
		return []trigger.Node{{ID: "mail", Kind: emailKind, Config: []byte(w.config(revision))}}
	}, func(o *trigger.Options) {
		o.Credentials = func(string) credential.Opener { return w.safe.open }
	})
	t.Cleanup(service.Close)
	return service
}

// deployed is a service with the first revision in force, which listens.
func (w *watched) deployed(t *testing.T) *trigger.Service {
	t.Helper()
	service := w.service(t)
	w.deploys(t, service, 1)
	service.Start()
	return service
}

func (w *watched) deploys(t *testing.T, service *trigger.Service, revision int64) {
	t.Helper()
	if err := service.Deploy(t.Context(), identity.System("w"), "flow", revision); err != nil {
		t.Fatal(err)
	}
}

// await waits until so many deliveries were decided.
func (w *watched) await(t *testing.T, count int) []store.TriggerDelivery {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	if !w.Await(ctx, func() bool { return len(w.All()) >= count }) {
		t.Fatalf("waited too long for %d deliveries; there are %q", count, w.Kept())
	}
	return w.All()
}

// started are the subjects of what was started, with the revision if there is more than one.
func (w *watched) started() (list []string) {
	for _, s := range w.Starts() {
		list = append(list, gjson.GetBytes(s.Payload, "subject").Str)
	}
	return list
}

// letterOf is a mail in its simplest form.
func letterOf(id, subject string, more ...string) string {
	header := append([]string{"From: Ann <ann@example.com>", "To: box@example.com", "Subject: " + subject, "Message-ID: <" + id + ">", "Date: " + time.Now().Format(time.RFC1123Z)}, more...)
	return strings.Join(header, "\n") + "\n\nHello.\n"
}

// TestEmail_Starts: mail that arrives after the deployment starts an execution each, with what it brings; older mail does not.
func TestEmail_Starts(t *testing.T) {
	t.Parallel()
	w := watch(t, `{"credential_id":"in","attachment_types":["pdf","image/*"],"max_attachment_size":2048}`)
	w.box.put(t, letterOf("old@example.com", "Old"))
	w.deployed(t)
	w.box.put(t, `From: =?gb2312?B?1cXI/Q==?= <Ann@Example.com>
To: Box <box@example.com>, other@example.com
Cc: "Third, The" <third@example.com>
Subject: =?utf-8?Q?Invoice_=E2=82=AC7?=
Message-ID: <m1@example.com>
References: <root@example.com> <parent@example.com>
In-Reply-To: <parent@example.com>
Received: one
Received: two
Date: Mon, 16 Nov 2026 10:00:00 +0100
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=outer

--outer
Content-Type: multipart/alternative; boundary=inner

--inner
Content-Type: text/plain; charset=gbk
Content-Transfer-Encoding: base64

1tDOxDogNyBldXJvcy4=
--inner
Content-Type: text/html; charset=utf-8
Content-Transfer-Encoding: quoted-printable

<p>7 =E2=82=AC <b>now</b></p>
--inner--
--outer
Content-Type: application/pdf; name="a.pdf"
Content-Disposition: attachment; filename="../../etc/inv\oice.PDF"

%PDF-1.4
--outer
Content-Type: application/octet-stream
Content-Disposition: attachment; filename*=gb2312''%B7%A2%C6%B1.exe
Content-Transfer-Encoding: base64

AAAA
--outer
Content-Type: image/png
Content-ID: <logo>
Content-Transfer-Encoding: base64

`+strings.Repeat("iVBORw0KGgoAAAANSUhEUgAA", 200)+`
--outer--
`)
	w.await(t, 1)
	starts := w.Starts()
	if len(starts) != 1 {
		t.Fatalf("started %d: %q", len(starts), w.Kept())
	}
	got := gjson.ParseBytes(starts[0].Payload)
	for path, want := range map[string]string{
		"email_id": "m1@example.com", "sender": "ann@example.com", "sender_name": "张三", "sender_verified": "false", "recipient": "box@example.com, other@example.com", "cc": "third@example.com",
		"subject": "Invoice €7", "body_text": "中文: 7 euros.", "body_html": "<p>7 € <b>now</b></p>", "thread_id": "root@example.com", "truncated": "false",
		"email_headers.received": `["one","two"]`, "email_headers.subject": "Invoice €7",
		"attachments.#": "3", "attachments.0.name": "oice.PDF", "attachments.0.content_type": "application/pdf", "attachments.0.size": "8", "attachments.0.skipped": "",
		"attachments.1.name": "发票.exe", "attachments.1.skipped": "its type is not among attachment_types", "attachments.1.blob": "",
		"attachments.2.name": "file.png", "attachments.2.skipped": "it has 3600 bytes, more than the 2048 of max_attachment_size",
	} {
		if value := strings.TrimSpace(got.Get(path).String()); value != want {
			t.Errorf("%s is %q, want %q", path, value, want)
		}
	}
	if at, err := time.Parse(time.RFC3339, got.Get("received_date").Str); err != nil || time.Since(at) > time.Hour {
		t.Errorf("received %q", got.Get("received_date"))
	}
	content, _, err := w.Get(t.Context(), identity.System("w"), got.Get("attachments.0.blob").Str)
	if err != nil {
		t.Fatal(err)
	}
	stored := make([]byte, 20)
	if n, _ := content.Read(stored); string(stored[:n]) != "%PDF-1.4" {
		t.Errorf("stored %q", stored[:n])
	}
	// It is marked as read once it is stored; the older one is left as it was.
	w.box.await(t, 1)
	// The same mail again is the same mail, and another one is another.
	w.box.put(t, letterOf("m1@example.com", "Copy"))
	w.box.put(t, letterOf("m2@example.com", "Second"))
	w.await(t, 2)
	if got := w.started(); !slices.Equal(got, []string{"Invoice €7", "Second"}) {
		t.Errorf("started %q", got)
	}
}

// TestEmail_NotMarked leaves mail unread if that is wanted, and leaves attachments out.
func TestEmail_NotMarked(t *testing.T) {
	t.Parallel()
	w := watch(t, `{"credential_id":"in","mark_seen":false,"process_attachments":false}`)
	w.deployed(t)
	w.box.put(t, "From: a@example.com\nSubject: One\nContent-Type: application/pdf; name=a.pdf\n\nx\n")
	w.await(t, 1)
	w.box.put(t, letterOf("2@example.com", "Two"))
	w.await(t, 2)
	if got := gjson.GetBytes(w.Starts()[0].Payload, "attachments").Raw; got != "[]" {
		t.Errorf("attachments %s", got)
	}
	if len(w.box.stored) != 0 || w.box.unseen(t) != 2 {
		t.Errorf("%d are unread, want 2", w.box.unseen(t))
	}
}

// TestEmail_Restarts lets mail arrive while nothing runs, and while processes come and go: each starts one execution.
func TestEmail_Restarts(t *testing.T) {
	t.Parallel()
	w := watch(t, `{"credential_id":"in"}`)
	first := w.service(t)
	w.deploys(t, first, 1) // and it dies before it listens
	first.Close()
	var want []string
	for round := range 5 {
		for n := range 7 {
			subject := fmt.Sprint("m", round, "-", n)
			want = append(want, subject)
			w.box.put(t, letterOf(subject+"@example.com", subject))
		}
		service := w.service(t)
		service.Start()
		// It ends somewhere in the middle, and the next one goes on.
		w.await(t, 7*round+3)
		service.Close()
	}
	last := w.service(t)
	last.Start()
	w.await(t, len(want))
	if got := w.started(); !slices.Equal(got, want) {
		t.Errorf("started %q, want %q", got, want)
	}
	w.box.await(t, 0)
	if len(w.Kept()) != len(want) {
		t.Errorf("kept %q", w.Kept())
	}
}

// TestEmail_Refused keeps trying what cannot be stored: nothing is marked as read before, and nothing is lost.
func TestEmail_Refused(t *testing.T) {
	t.Parallel()
	w := watch(t, `{"credential_id":"in"}`)
	refused := make(chan struct{}, 16)
	w.RefuseStarts(func(trigger.Start) error {
		refused <- struct{}{}
		return &store.SupersededError{Node: "mail", Revision: 1}
	})
	service := w.deployed(t)
	w.box.put(t, letterOf("1@example.com", "One"))
	receive(t, "a start that is refused", refused)
	if w.box.unseen(t) != 1 || len(w.All()) != 0 {
		t.Errorf("%d are unread, and kept are %q", w.box.unseen(t), w.Kept())
	}
	w.RefuseStarts(nil)
	w.await(t, 1)
	w.box.await(t, 0)
	service.Close()
}

// TestEmail_Renumbered gives all messages new numbers: what was taken is known by its id and its date, and what has come meanwhile starts.
func TestEmail_Renumbered(t *testing.T) {
	t.Parallel()
	w := watch(t, `{"credential_id":"in"}`)
	day := func(n int) time.Time { return time.Now().AddDate(0, 0, n) }
	at := func(id, subject string, received, sent time.Time, lines ...string) {
		t.Helper()
		header := append([]string{"From: ann@example.com", "Subject: " + subject, "Date: " + sent.Format(time.RFC1123Z)}, lines...)
		if id != "" {
			header = append(header, "Message-ID: <"+id+">")
		}
		w.box.putRaw(t, []byte(strings.Join(header, "\r\n")+"\r\n\r\nHello.\r\n"), &imap.AppendOptions{Time: received})
	}
	at("old@example.com", "Old", day(-3), day(-3))
	at("late@example.com", "Old too", day(0).Add(-time.Minute), day(0).Add(-time.Minute))
	service := w.deployed(t)
	at("a@example.com", "A", day(0), day(0))
	at("", "No id", day(0), day(0))
	at("dull@example.com", "Dull", day(0), day(0), "Auto-Submitted: auto-replied")
	w.await(t, 3)
	w.box.await(t, 3) // the two older ones, and the one that is ignored
	service.Close()

	// The server is set up anew. Some messages keep the time at which they came, others get a new one.
	if err := w.box.user.Delete("INBOX"); err != nil {
		t.Fatal(err)
	}
	if err := w.box.user.Create("INBOX", nil); err != nil {
		t.Fatal(err)
	}
	moment := day(0)
	at("old@example.com", "Old", moment, day(-3))
	at("late@example.com", "Old too", day(0).Add(-time.Minute), day(0).Add(-time.Minute))
	at("b@example.com", "B", moment.Add(time.Second), moment)
	at("a@example.com", "A", moment, moment)
	again := w.service(t)
	again.Start()
	w.await(t, 4)
	at("c@example.com", "C", moment, moment)
	w.await(t, 5)
	if got := w.started(); !slices.Equal(got, []string{"A", "No id", "B", "C"}) {
		t.Errorf("started %q; kept %q", got, w.Kept())
	}
	// Afterwards the mailbox is read by its new numbers, from where it was.
	w.sifted(t, 6)
}

// sifted waits until a mailbox was gone through that was numbered anew.
func (w *watched) sifted(t *testing.T, next imap.UID) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	if !w.Await(ctx, func() bool {
		c, ok := cursorOf([]byte(w.Cursor("w", "flow", "mail")), boxName(Server{Username: mailboxUser}, "INBOX"))
		return ok && c.Validity == 2 && c.Sift == nil && c.Next == next
	}) {
		t.Fatalf("the cursor is %s", w.Cursor("w", "flow", "mail"))
	}
}

// TestEmail_RenumberedOldOnly: a mailbox that was numbered anew and has only old messages starts nothing, neither at once nor later.
func TestEmail_RenumberedOldOnly(t *testing.T) {
	t.Parallel()
	w := watch(t, `{"credential_id":"in"}`)
	old := &imap.AppendOptions{Time: time.Now().AddDate(0, -1, 0)}
	w.box.putRaw(t, []byte("From: a@example.com\r\nSubject: Old\r\n\r\n"), &imap.AppendOptions{Time: time.Now()})
	w.deployed(t).Close()
	if err := errors.Join(w.box.user.Delete("INBOX"), w.box.user.Create("INBOX", nil)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		w.box.putRaw(t, []byte("From: a@example.com\r\nSubject: Old\r\n\r\n"), old)
	}
	w.service(t).Start()
	w.sifted(t, 4)
	w.box.put(t, letterOf("new@example.com", "New"))
	w.await(t, 1)
	w.box.put(t, letterOf("newer@example.com", "Newer"))
	w.await(t, 2)
	if got := w.started(); !slices.Equal(got, []string{"New", "Newer"}) {
		t.Errorf("started %q", got)
	}
}

// TestEmail_SetBack goes on with a server that counts its messages from the beginning again and does not say so.
func TestEmail_SetBack(t *testing.T) {
	t.Parallel()
	w := watch(t, `{"credential_id":"in"}`)
	service := w.deployed(t)
	for n := range 3 {
		w.box.put(t, letterOf(fmt.Sprint(n, "@example.com"), fmt.Sprint(n)))
	}
	w.await(t, 3)
	service.Close()
	w.box = startMailbox(t, securityNone, nil) // its numbers have the same validity as those before
	w.safe.imap("in", w.box, securityNone)
	w.box.put(t, letterOf("2@example.com", "2"))
	w.service(t).Start()
	w.box.put(t, letterOf("new@example.com", "New"))
	w.await(t, 4)
	if got := w.started(); !slices.Equal(got, []string{"0", "1", "2", "New"}) {
		t.Errorf("started %q", got)
	}
}

// TestEmail_RedeployWithoutServer: what was deployed before can be deployed anew while the mail server is away; what is new cannot.
func TestEmail_RedeployWithoutServer(t *testing.T) {
	t.Parallel()
	w := watch(t, "")
	w.config = func(revision int64) string {
		return map[int64]string{1: `{"credential_id":"in"}`, 2: `{"credential_id":"in","subject_keywords":["x"]}`, 3: `{"credential_id":"in","mailbox":"Other"}`}[revision]
	}
	service := w.service(t)
	w.deploys(t, service, 1)
	w.source.network.Dial = func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("connection refused")
	}
	w.deploys(t, service, 2)
	if err := service.Deploy(t.Context(), identity.System("w"), "flow", 3); fault.CodeOf(err) != fault.NetworkError {
		t.Errorf("another mailbox: %v", err)
	}
}

// TestEmail_Redeploy: another revision goes on where the former was; one that reads another mailbox begins there.
func TestEmail_Redeploy(t *testing.T) {
	t.Parallel()
	w := watch(t, "")
	w.config = func(revision int64) string {
		return map[int64]string{1: `{"credential_id":"in"}`, 2: `{"credential_id":"in","subject_keywords":["urgent"]}`, 3: `{"credential_id":"in","mailbox":"Orders"}`}[revision]
	}
	if err := w.box.user.Create("Orders", nil); err != nil {
		t.Fatal(err)
	}
	order := func(id, subject string) {
		t.Helper()
		if _, err := w.box.user.Append("Orders", strings.NewReader(strings.ReplaceAll(letterOf(id, subject), "\n", "\r\n")), &imap.AppendOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	order("0@o", "Old order")
	service := w.deployed(t)
	w.box.put(t, letterOf("1@example.com", "One"))
	w.await(t, 1)
	service.Close()
	w.box.put(t, letterOf("2@example.com", "Two, urgent"))
	w.box.put(t, letterOf("3@example.com", "Three"))
	service = w.service(t)
	w.deploys(t, service, 2)
	service.Start()
	w.await(t, 3)
	w.deploys(t, service, 3)
	order("1@o", "An order")
	w.await(t, 4)
	w.box.put(t, letterOf("4@example.com", "Four"))
	order("2@o", "Another order")
	w.await(t, 5)
	var got []string
	for _, s := range w.Starts() {
		got = append(got, fmt.Sprint(s.Revision, " ", gjson.GetBytes(s.Payload, "subject").Str))
	}
	if want := []string{"1 One", "2 Two, urgent", "3 An order", "3 Another order"}; !slices.Equal(got, want) {
		t.Errorf("started %q, want %q", got, want)
	}
}

// TestEmail_Deploy refuses what could not be listened for, with the reason and without secrets.
func TestEmail_Deploy(t *testing.T) {
	t.Parallel()
	w := watch(t, "")
	w.safe.put("wrong", typeIMAP, map[string]any{"host": "127.0.0.1", "port": strconv.Itoa(w.box.port), "security": securityNone, "username": mailboxUser, "password": "canary-password"})
	w.safe.put("smtp", typeSMTP, map[string]any{"host": "127.0.0.1"})
	w.safe.put("nowhere", typeIMAP, map[string]any{"host": "127.0.0.1", "port": "1", "security": securityNone, "username": "u", "password": "p"})
	for config, want := range map[string]struct {
		code fault.Code
		says string
	}{
		`{}`:                                             {fault.CredentialMissing, "credential_id"},
		`{"credential_id":"none"}`:                       {fault.CredentialMissing, `"none"`},
		`{"credential_id":"smtp"}`:                       {fault.CredentialInvalid, `"smtp"`},
		`{"credential_id":"wrong"}`:                      {fault.CredentialInvalid, "refuses the login"},
		`{"credential_id":"nowhere"}`:                    {fault.NetworkError, "cannot be reached"},
		`{"credential_id":"in","mailbox":"Nothing"}`:     {fault.RemoteRejected, `cannot open the mailbox "Nothing"`},
		`{"credential_id":"in","polling_interval":1}`:    {fault.InvalidConfig, "polling_interval"},
		`{"credential_id":"in","email_provider":"pop3"}`: {fault.InvalidConfig, "email_provider"},
	} {
		w.config = func(int64) string { return config }
		err := w.service(t).Deploy(t.Context(), identity.System("w"), "flow", 1)
		if fault.CodeOf(err) != want.code || !strings.Contains(err.Error(), want.says) || strings.Contains(fmt.Sprintf("%+v", err), "canary") {
			t.Errorf("%s: %v, want %s and %q", config, err, want.code, want.says)
		}
	}
	if w.safe.inUse != 0 {
		t.Errorf("%d credentials are still open", w.safe.inUse)
	}
}

// TestEmail_Shared lets the trigger and the channel to people read one mailbox: a reply to a question is the channel's, everything else is
// the trigger's.
func TestEmail_Shared(t *testing.T) {
	t.Parallel()
	w := watch(t, `{"credential_id":"in"}`)
	question := messageID("w1", "m1", "", "example.com")
	token := "abcdefghijklmnopqrstuvwx23"
	for _, lines := range [][]string{
		{"In-Reply-To: <" + question + ">"},                                   // a reply
		{"References: <x@y> <" + messageID("w1", "m1", token, "e.com") + ">"}, // one whose program keeps the references alone
	} {
		w.box.put(t, letterOf("before@example.com", "Re: Pay?", lines...))
	}
	c := testChannel(t, nil)
	l := startListening(t, c, w.safe.account("in"), nil)
	w.deployed(t)
	w.box.put(t, letterOf("r1@example.com", "Re: Pay?", "In-Reply-To: <"+question+">"))
	w.box.put(t, letterOf("r2@example.com", "Re: Pay? [ref:"+token+"]"))  // and one that keeps the subject alone
	w.box.put(t, letterOf("ticket@example.com", "Ticket [ref:TICKET-7]")) // which is not ours
	w.box.put(t, "From: bot@example.com\nMessage-ID: <"+question+">\nX-Tandem-Interaction: i1\nAuto-Submitted: auto-generated\nSubject: Pay?\n\nPay?\n")
	w.box.put(t, letterOf("plain@example.com", "Plain"))
	w.await(t, 5)
	if got := w.started(); !slices.Equal(got, []string{"Ticket [ref:TICKET-7]", "Plain"}) {
		t.Errorf("the trigger started %q", got)
	}
	var why []string
	for _, d := range w.All() {
		if d.Decision == store.DeliveryIgnored {
			why = append(why, d.Reason)
		}
	}
	if answers := "it answers a question of Tandem; the mail channel takes it"; !slices.Equal(why, []string{answers, answers, "it is a message of Tandem itself"}) {
		t.Errorf("ignored: %q", why)
	}
	heard := map[string]bool{}
	for range 4 {
		var r human.Reply = receive(t, "a reply", l.replies)
		heard[r.Dedup] = true
	}
	if !heard["r1@example.com"] || !heard["r2@example.com"] || heard["plain@example.com"] {
		t.Errorf("the channel heard %v", heard)
	}
	l.end(t)
}

// TestEmail_Filters looks at what starts something.
func TestEmail_Filters(t *testing.T) {
	t.Parallel()
	plain := letterOf("1@example.com", "Invoice 7 for June", "Cc: boss@corp.example", "X-Team: Billing Berlin", "List-Id: <news.example.com>", "Precedence: list")
	genuine := "Authentication-Results: mx.example.com; dkim=pass header.d=example.com\n" + plain
	attached := "From: ann@example.com\nSubject: s\nContent-Type: application/pdf; name=a.pdf\n\nx"
	for name, test := range map[string]struct {
		config, mail, why string
	}{
		"None":            {`{}`, plain, ""},
		"Keyword":         {`{"subject_keywords":["x","INVOICE"]}`, plain, ""},
		"NoKeyword":       {`{"subject_keywords":["order"]}`, plain, "its subject has none of subject_keywords"},
		"Address":         {`{"sender_whitelist":["Ann@Example.com"]}`, plain, ""},
		"Domain":          {`{"sender_whitelist":["example.com"]}`, plain, ""},
		"AtDomain":        {`{"sender_whitelist":["@example.com"]}`, plain, ""},
		"Pattern":         {`{"sender_whitelist":["*@*.com"]}`, plain, ""},
		"OtherDomain":     {`{"sender_whitelist":["ample.com","le.com","bob@example.com","@sub.example.com"]}`, plain, "its sender is not in sender_whitelist"},
		"NoSender":        {`{"sender_whitelist":["example.com"]}`, "Subject: x\n\nx", "its sender is not in sender_whitelist"},
		"TwoSenders":      {`{"sender_whitelist":["example.com"]}`, "From: a@example.com, b@evil.org\nSubject: x\n\nx", "its sender is not in sender_whitelist"},
		"Unverified":      {`{"verified_senders_only":true}`, plain, "the receiving server does not vouch for its sender, and verified_senders_only is set"},
		"Verified":        {`{"verified_senders_only":true}`, genuine, ""},
		"From":            {`{"filter_criteria":{"from":["bob","ANN"]}}`, plain, ""},
		"NotFrom":         {`{"filter_criteria":{"from":"bob"}}`, plain, "it does not fit filter_criteria.from"},
		"To":              {`{"filter_criteria":{"to":"boss@corp"}}`, plain, ""},
		"NotTo":           {`{"filter_criteria":{"to":"sales@"}}`, plain, "it does not fit filter_criteria.to"},
		"Subject":         {`{"filter_criteria":{"subject":"for june"}}`, plain, ""},
		"NotSubject":      {`{"filter_criteria":{"subject":"july"}}`, plain, "it does not fit filter_criteria.subject"},
		"Body":            {`{"filter_criteria":{"body":"hello"}}`, plain, ""},
		"NotBody":         {`{"filter_criteria":{"body":"bye"}}`, plain, "it does not fit filter_criteria.body"},
		"Header":          {`{"filter_criteria":{"headers":{"x-team":["Paris","berlin"]}}}`, plain, ""},
		"NotHeader":       {`{"filter_criteria":{"headers":{"X-Other":"a"}}}`, plain, "it does not fit filter_criteria.headers.X-Other"},
		"Attachments":     {`{"filter_criteria":{"has_attachments":true}}`, attached, ""},
		"NoAttachments":   {`{"filter_criteria":{"has_attachments":true}}`, plain, "it does not fit filter_criteria.has_attachments"},
		"WithAttachments": {`{"filter_criteria":{"has_attachments":false}}`, attached, "it does not fit filter_criteria.has_attachments"},
		"AutoReplied":     {`{}`, "Auto-Submitted: auto-replied\n" + plain, "it is an automatic reply"},
		"Vacation":        {`{}`, "X-Autoreply: yes\n" + plain, "it is an automatic reply"},
		"OutOfOffice":     {`{}`, letterOf("2@x", "Automatic reply: Away", "Auto-Submitted: auto-generated", "In-Reply-To: <q@x>"), "it is an automatic reply"},
		"Bounce":          {`{}`, "From: mailer-daemon@example.com\nSubject: x\n\nx", "it is an automatic reply"},
		"Report":          {`{}`, "From: a@example.com\nSubject: x\nContent-Type: multipart/report; boundary=b\n\n--b\n\nx\n--b--", "it is an automatic reply"},
		"NullSender":      {`{}`, "Return-Path: <>\n" + plain, "it is an automatic reply"},
		"Invoice":         {`{}`, "Auto-Submitted: auto-generated\nX-Auto-Response-Suppress: All\nPrecedence: bulk\n" + plain, ""}, // which a program sends by itself
		"ReadThis":        {`{}`, letterOf("3@x", "Read: the new book"), ""},
	} {
		cfg, err := node.Configuration[emailConfig]([]byte(test.config))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		l, ok := readIncoming([]byte(strings.ReplaceAll(test.mail, "\n", "\r\n")), 0, true, Trust{Server: "mx.example.com", Exact: true})
		if !ok {
			t.Errorf("%s: it is not a mail", name)
			continue
		}
		if why := cfg.unwanted(l); why != test.why {
			t.Errorf("%s: %q, want %q", name, why, test.why)
		}
	}
}

// TestEmail_Large reads a mail that is larger than what decides, and one that is larger than what is read at all.
func TestEmail_Large(t *testing.T) {
	t.Parallel()
	w := watch(t, `{"credential_id":"in","attachment_types":["*"],"max_attachment_size":8388608}`)
	w.deployed(t)
	line := strings.Repeat("A", 76) + "\r\n"
	w.box.putRaw(t, []byte("From: a@example.com\r\nMessage-ID: <big@x>\r\nSubject: Big\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Disposition: attachment; filename=a.bin\r\nContent-Type: application/octet-stream\r\nContent-Transfer-Encoding: base64\r\n\r\n"+
		strings.Repeat(line, 5<<20/78)+"--b\r\n\r\nThe text comes last.\r\n--b--\r\n"), &imap.AppendOptions{})
	w.await(t, 1)
	got := gjson.ParseBytes(w.Starts()[0].Payload)
	if got.Get("body_text").Str != "The text comes last." || got.Get("attachments.0.size").Int() != int64(5<<20/78*57) || got.Get("truncated").Bool() {
		t.Errorf("text %q, attachments %s, truncated %s", got.Get("body_text").Str, got.Get("attachments"), got.Get("truncated"))
	}
	// What was cut off says so, and is not stored by halves.
	whole := "From: a@example.com\r\nSubject: Cut\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nHi.\r\n--b\r\nContent-Disposition: attachment; filename=a.pdf\r\n\r\nhalf"
	l, _ := readIncoming([]byte(whole), int64(len(whole))+100, true, Trust{})
	cfg := w.cfg(t)
	raw, err := l.payload(t.Context(), &cfg, "id", time.Now(), nil)
	if err != nil || !gjson.GetBytes(raw, "truncated").Bool() || !strings.Contains(gjson.GetBytes(raw, "attachments.0.skipped").Str, "ends in the middle of it") {
		t.Errorf("%s, %v", raw, err)
	}
}

func (w *watched) cfg(t *testing.T) emailConfig {
	t.Helper()
	cfg, err := node.Configuration[emailConfig]([]byte(w.config(1)))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// TestEmail_Hostile reads mails that are made to hurt: each is an event with bounded content, and those behind it are read.
func TestEmail_Hostile(t *testing.T) {
	t.Parallel()
	w := watch(t, `{"credential_id":"in","attachment_types":["*"]}`)
	w.deployed(t)
	nested := "From: a@example.com\r\nSubject: Nested\r\n"
	for n := range 60 {
		nested += fmt.Sprintf("Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n", n, n)
	}
	many := "From: a@example.com\r\nSubject: Many\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n" + strings.Repeat("--b\r\nContent-Disposition: attachment; filename=x.txt\r\n\r\nx\r\n", 3000)
	hostile := []string{
		nested, many,
		"From: a@example.com\r\nSubject: Names\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Disposition: attachment; filename=\"..\\\\..\\\\a/../..\"\r\n\r\nx\r\n--b\r\nContent-Disposition: attachment; filename=\"a\x00b\x1b[31m\nc.txt\"\r\n\r\nx\r\n--b\r\nContent-Disposition: attachment; filename=\"" + strings.Repeat("n", 5000) + ".pdf\"\r\n\r\nx\r\n--b\r\nContent-Disposition: attachment; filename=CON\r\n\r\nx\r\n--b--",
		"From: a@example.com\r\nSubject: =?utf-8?B?/////w==?= =?nonsense?Q?=FF?=\r\nContent-Type: text/plain; charset=utf-16\r\nContent-Transfer-Encoding: base64\r\n\r\n!!!!\xff\xfe",
		"From: a@example.com\r\nSubject: Headers\r\n" + strings.Repeat("X-A: "+strings.Repeat("v", 900)+"\r\n", 500) + "\r\nx",
		"From: a@example.com\r\nSubject: No boundary\r\nContent-Type: multipart/mixed\r\n\r\nx",
		"From: a@example.com\r\nSubject: HTML\r\nContent-Type: text/html\r\n\r\n" + strings.Repeat("<div>", 50000) + "deep",
		"From: a@example.com\r\nSubject: Text\r\n\r\n" + strings.Repeat("x", 1<<20),
	}
	for _, raw := range hostile {
		w.box.putRaw(t, []byte(raw), &imap.AppendOptions{})
	}
	w.box.putRaw(t, []byte("no header at all"), &imap.AppendOptions{})
	w.box.put(t, letterOf("fine@example.com", "Fine"))
	w.await(t, len(hostile)+2)
	starts := w.Starts()
	if len(starts) != len(hostile)+1 || gjson.GetBytes(starts[len(starts)-1].Payload, "subject").Str != "Fine" {
		t.Fatalf("started %q; kept %q", w.started(), w.Kept())
	}
	for _, s := range starts {
		got := gjson.ParseBytes(s.Payload)
		if len(s.Payload) > 2<<20 || got.Get("attachments.#").Int() > maxParts || len(got.Get("body_text").Str) > maxText {
			t.Errorf("%s brings %d bytes, %d attachments", got.Get("subject"), len(s.Payload), got.Get("attachments.#").Int())
		}
		for _, a := range got.Get("attachments").Array() {
			if name := a.Get("name").Str; name == "" || len(name) > 255 || strings.ContainsAny(name, "/\\\x00\x1b\n") || strings.Trim(name, ".") == "" {
				t.Errorf("%s has an attachment %q", got.Get("subject"), name)
			}
		}
	}
	for at, subject := range map[int]string{1: "Many", 7: "Text"} { // order does not matter
		if got := gjson.ParseBytes(starts[at].Payload); got.Get("subject").Str != subject || !got.Get("truncated").Bool() {
			t.Errorf("%s: truncated is %s", got.Get("subject"), got.Get("truncated"))
		}
	}
}

// TestEmail_Names reads the ways in which names of attachments are written.
func TestEmail_Names(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		`attachment; filename="a b.pdf"`:                                              "a b.pdf",
		`attachment; filename==?utf-8?B?5Y+R56WoLnBkZg==?=`:                           "发票.pdf",
		`attachment; filename="=?gbk?B?t6LGsS5wZGY=?="`:                               "发票.pdf",
		`attachment; filename*=utf-8''%E5%8F%91%E7%A5%A8.pdf`:                         "发票.pdf",
		`attachment; filename*=gb2312'zh'%B7%A2%C6%B1.pdf`:                            "发票.pdf",
		`attachment; filename*0*=gb2312''%B7%A2; filename*1*=%C6%B1; filename*2=.pdf`: "发票.pdf",
		`attachment; filename*0="very "; filename*1="long.pdf"`:                       "very long.pdf",
		`attachment; filename=a b.pdf; size=7`:                                        "a b.pdf",
		"attachment; filename=\"\xb7\xa2\xc6\xb1.pdf\"":                               "发票.pdf",
		`attachment`: "", `attachment; filename=`: "",
	} {
		if got := fileName(header{{"Content-Disposition", value}}); got != want {
			t.Errorf("%s is %q, want %q", value, got, want)
		}
	}
}

// TestEmail_ManyAtOnce takes the oldest first of a mailbox that holds more than one search gives.
func TestEmail_ManyAtOnce(t *testing.T) {
	t.Parallel()
	set := imap.UIDSet{{Start: 4, Stop: 1 << 31}, {Start: 1, Stop: 2}}
	uids := expandFrom(set, 2)
	if len(uids) != maxFound || uids[0] != 2 || uids[1] != 4 || !slices.IsSorted(uids) {
		t.Errorf("%d numbers from %v on", len(uids), uids[:3])
	}
	if uids := expandFrom(imap.UIDSet{{Start: 7, Stop: 7}}, 8); len(uids) != 0 {
		t.Errorf("older ones are %v", uids)
	}
	if uids := expandFrom(imap.UIDSet{{Start: 1<<32 - 2, Stop: 1<<32 - 1}}, 1); len(uids) != 2 {
		t.Errorf("the last ones are %v", uids)
	}
}
