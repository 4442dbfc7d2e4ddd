package mail

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapserver"
	"github.com/emersion/go-imap/v2/imapserver/imapmemserver"
	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	"go.uber.org/goleak"

	"tandem/credential"
	"tandem/fault"
	"tandem/human"
	"tandem/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = time.Minute

// receive waits for something that has to come.
func receive[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("waited too long for %s", what)
		panic("unreachable")
	}
}

// certificates are those of a server at 127.0.0.1, and what a client needs to trust it.
func certificates(t *testing.T) (server, client *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, &tls.Config{RootCAs: roots}
}

// listen opens a port of this machine.
func listen(t *testing.T) (net.Listener, int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l, l.Addr().(*net.TCPAddr).Port
}

// mailed is a mail that an SMTP server took.
type mailed struct {
	from string
	to   []string
	raw  []byte
	// login is who logged in, tls whether the connection was protected.
	login string
	tls   bool
}

func (m mailed) read(t *testing.T) (header, Mail) {
	t.Helper()
	h, _ := splitMail(m.raw)
	parsed, err := ParseMail(m.raw, Trust{})
	if err != nil {
		t.Fatal(err)
	}
	return h, parsed
}

// postOffice is an SMTP server.
type postOffice struct {
	port  int
	mails chan mailed
	// password and token are what lets user@example.com in; refuse says what to answer to a recipient, cut to close before the last answer.
	password, token string
	refuse          func(to string) error
	cut             func(c *smtp.Conn) error
}

type officeOption func(o *postOffice, s *smtp.Server)

func startOffice(t *testing.T, security string, server *tls.Config, options ...officeOption) *postOffice {
	t.Helper()
	o := &postOffice{mails: make(chan mailed, 16), password: "secret"}
	s := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) { return &officeSession{office: o, conn: c}, nil }))
	s.Domain, s.AllowInsecureAuth = "127.0.0.1", security == securityNone
	s.ErrorLog = log.New(io.Discard, "", 0)
	if security != securityNone {
		s.TLSConfig = server
	}
	for _, option := range options {
		option(o, s)
	}
	l, port := listen(t)
	o.port = port
	if security == securityTLS {
		l = tls.NewListener(l, server)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close the SMTP server: %v", err)
		}
		_ = l.Close() // if it was closed before it began to serve
		receive(t, "the end of the SMTP server", done)
	})
	return o
}

type officeSession struct {
	office *postOffice
	conn   *smtp.Conn
	mail   mailed
}

func (s *officeSession) AuthMechanisms() []string {
	if s.office.token != "" {
		return []string{"XOAUTH2"}
	}
	return []string{sasl.Plain}
}

func (s *officeSession) Auth(mechanism string) (sasl.Server, error) {
	if mechanism == "XOAUTH2" {
		return &tokenServer{token: s.office.token, refusal: smtp.ErrAuthFailed, login: func(user string) error { s.mail.login = user; return nil }}, nil
	}
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != "user@example.com" || password != s.office.password {
			return smtp.ErrAuthFailed
		}
		s.mail.login = user
		return nil
	}), nil
}

func (s *officeSession) Mail(from string, _ *smtp.MailOptions) error {
	s.mail.from = from
	return nil
}

func (s *officeSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	if s.office.refuse != nil {
		if err := s.office.refuse(to); err != nil {
			return err
		}
	}
	s.mail.to = append(s.mail.to, to)
	return nil
}

func (s *officeSession) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.mail.raw = raw
	_, s.mail.tls = s.conn.TLSConnectionState()
	s.office.mails <- s.mail
	if s.office.cut != nil {
		return s.office.cut(s.conn)
	}
	return nil
}

func (s *officeSession) Reset()        {}
func (s *officeSession) Logout() error { return nil }

// tokenServer lets in who has a token, as the two providers do.
type tokenServer struct {
	token    string
	refusal  error
	login    func(user string) error
	rejected bool
}

func (s *tokenServer) Next(response []byte) ([]byte, bool, error) {
	if s.rejected {
		return nil, true, s.refusal
	}
	if response == nil {
		return []byte{}, false, nil
	}
	user, rest, _ := strings.Cut(strings.TrimPrefix(string(response), "user="), "\x01")
	if rest != "auth=Bearer "+s.token+"\x01\x01" {
		s.rejected = true
		return []byte(`{"status":"401"}`), false, nil
	}
	return nil, true, s.login(user)
}

// imapBox is an IMAP server with one user.
type imapBox struct {
	port int
	user *imapmemserver.User
	// stored tells of every change of flags.
	stored chan []imap.Flag
	token  string
}

const mailboxUser = "replies@example.com"

func startMailbox(t *testing.T, security string, server *tls.Config, change ...func(*imapserver.Options, *imapmemserver.Server)) *imapBox {
	t.Helper()
	b := &imapBox{user: imapmemserver.NewUser(mailboxUser, "secret"), stored: make(chan []imap.Flag, 64)}
	if err := b.user.Create("INBOX", nil); err != nil {
		t.Fatal(err)
	}
	memory := imapmemserver.New()
	memory.AddUser(b.user)
	options := &imapserver.Options{
		NewSession: func(*imapserver.Conn) (imapserver.Session, *imapserver.GreetingData, error) {
			return &boxSession{Session: memory.NewSession(), box: b}, nil, nil
		},
		InsecureAuth: security == securityNone, Logger: log.New(io.Discard, "", 0),
	}
	if security == securityStartTLS {
		options.TLSConfig = server
	}
	for _, f := range change {
		f(options, memory)
	}
	s := imapserver.New(options)
	l, port := listen(t)
	b.port = port
	if security == securityTLS {
		l = tls.NewListener(l, server)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close the IMAP server: %v", err)
		}
		_ = l.Close() // if it was closed before it began to serve
		receive(t, "the end of the IMAP server", done)
	})
	return b
}

type boxSession struct {
	imapserver.Session
	box *imapBox
}

func (s *boxSession) Store(w *imapserver.FetchWriter, set imap.NumSet, flags *imap.StoreFlags, options *imap.StoreOptions) error {
	err := s.Session.Store(w, set, flags, options)
	s.box.stored <- flags.Flags
	return err
}

// Idle tells of news at once. That of the server in memory overlooks what came just before it began.
func (s *boxSession) Idle(w *imapserver.UpdateWriter, stop <-chan struct{}) error {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := s.Poll(w, true); err != nil {
				return err
			}
		case <-stop:
			return nil
		}
	}
}

func (s *boxSession) AuthenticateMechanisms() []string { return []string{"XOAUTH2"} }

func (s *boxSession) Authenticate(mechanism string) (sasl.Server, error) {
	if mechanism != "XOAUTH2" || s.box.token == "" {
		return nil, imapserver.ErrAuthFailed
	}
	return &tokenServer{token: s.box.token, refusal: imapserver.ErrAuthFailed, login: func(user string) error { return s.Login(user, "secret") }}, nil
}

// put delivers a mail.
func (b *imapBox) put(t *testing.T, text string, flags ...imap.Flag) {
	t.Helper()
	raw := strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n")
	b.putRaw(t, []byte(raw), &imap.AppendOptions{Flags: flags})
}

func (b *imapBox) putRaw(t *testing.T, raw []byte, options *imap.AppendOptions) {
	t.Helper()
	if _, err := b.user.Append("INBOX", bytes.NewReader(raw), options); err != nil {
		t.Fatal(err)
	}
}

// unseen counts what nobody has read.
func (b *imapBox) unseen(t *testing.T) uint32 {
	t.Helper()
	status, err := b.user.Status("INBOX", &imap.StatusOptions{NumUnseen: true})
	if err != nil {
		t.Fatal(err)
	}
	return *status.NumUnseen
}

// await waits until so many are unseen. A listener that was stopped before it heard that its flags were set sets them again.
func (b *imapBox) await(t *testing.T, unseen uint32) {
	t.Helper()
	for b.unseen(t) != unseen {
		receive(t, "a change of flags", b.stored)
	}
}

// safe holds credentials and counts how many are open.
type safe struct {
	mu    sync.Mutex
	held  map[string]credential.Opened
	inUse int
}

func (s *safe) put(id, kind string, data map[string]any) {
	raw, err := json.Marshal(data)
	if err != nil {
		panic(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		s.held = map[string]credential.Opened{}
	}
	s.held[id] = credential.Opened{Type: kind, Data: raw}
}

func (s *safe) account(id string) human.Account {
	return human.Account{Account: store.Account{Workspace: "w1", Channel: human.Email, Credential: id}, Open: s.open}
}

func (s *safe) open(_ context.Context, id string, types ...string) (credential.Opened, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.held[id]
	if !ok {
		return credential.Opened{}, fault.Newf(fault.CredentialMissing, "there is no credential %q", id)
	}
	for _, typ := range types {
		if typ == c.Type {
			s.inUse++
			return c.OnRelease(func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.inUse--
			}), nil
		}
	}
	return credential.Opened{}, fault.Newf(fault.CredentialInvalid, "credential %q has type %q", id, c.Type)
}

func (s *safe) smtp(id string, o *postOffice, security string) {
	s.put(id, typeSMTP, map[string]any{"host": "127.0.0.1", "port": o.port, "security": security, "username": "user@example.com", "password": o.password})
}

func (s *safe) imap(id string, b *imapBox, security string) {
	s.put(id, typeIMAP, map[string]any{
		"host": "127.0.0.1", "port": strconv.Itoa(b.port), "security": security, "username": mailboxUser, "password": "secret", "authserv_id": "mx.example.com",
	})
}

// testChannel connects to this machine.
func testChannel(t *testing.T, client *tls.Config) *channel {
	t.Helper()
	return newChannel(Options{Dial: (&net.Dialer{}).DialContext, TLS: client})
}

// request is a question as the desk sends it.
func request(a human.Account) human.Message {
	return human.Message{
		Account: a, ID: "m1", Kind: human.KindRequest, To: "ann@example.com", Link: "https://tandem.example.com/respond/abc", ReplyToken: "Tok_en-123",
		Interaction: store.Interaction{Workspace: "w1", ID: "i1", WorkflowName: "Payments", TimeoutAt: time.Date(2030, 1, 2, 3, 4, 0, 0, time.UTC).UnixMilli()},
		Request: human.Request{
			Title: "Pay 3 invoices?", Description: "They are due.\nTomorrow.", Language: "en", Options: []human.Option{{Value: "approve", Label: "Approve"}, {Value: "reject", Label: "Reject"}},
			Content: json.RawMessage(`{"total":12}`), Credential: a.Credential, InCredential: "in", Settings: json.RawMessage(`{"recipient_emails":["ann@example.com"],"sender_email":"Bot <bot@example.com>"}`),
		},
	}
}

// listening is a Listen that runs.
type listening struct {
	replies chan human.Reply
	ended   chan error
	stop    context.CancelFunc
}

// startListening reads a mailbox until the test ends. Handle may refuse a reply; nil takes all.
func startListening(t *testing.T, c *channel, a human.Account, handle func(human.Reply) error) *listening {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	l := &listening{replies: make(chan human.Reply, 64), ended: make(chan error, 1), stop: stop}
	go func() {
		l.ended <- c.Listen(ctx, a, func(_ context.Context, r human.Reply) (human.Reaction, error) {
			l.replies <- r
			if handle != nil {
				return human.Reaction{}, handle(r)
			}
			return human.Reaction{}, nil
		})
	}()
	t.Cleanup(stop)
	return l
}

// end stops it and waits for it.
func (l *listening) end(t *testing.T) {
	t.Helper()
	l.stop()
	if err := receive(t, "the end of Listen", l.ended); !errors.Is(err, context.Canceled) {
		t.Errorf("Listen ended with %v, want the end of the context", err)
	}
}

// smtpServer is the server's own type, for options.
type smtpServer = smtp.Server

func portText(n int) string { return strconv.Itoa(n) }
