package mail

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/textproto"
	"slices"
	"strings"
	"time"

	"github.com/wneessen/go-mail/smtp"

	"tandem/fault"
)

const (
	// sendTime is how long the sending of one mail may take.
	sendTime = 3 * time.Minute
	// maxAnswers is how much a server may say while one mail is sent.
	maxAnswers = 1 << 20
	// maxSaid is how much of what a server says is repeated.
	maxSaid = 200
)

// Envelope is who sends a mail and to whom, whatever its headers say.
type Envelope struct {
	From string
	To   []string
}

// Refusal is a recipient that the server does not take.
type Refusal struct {
	Address string
	Err     *fault.Error
}

// Submit hands a mail to a server. It is an error if no recipient is taken; those that were refused beside others are returned.
// A connection that is lost after the whole mail was written is [fault.OutcomeUnknown].
func (n Network) Submit(ctx context.Context, s Server, e Envelope, message []byte) (refused []Refusal, err error) {
	if ctx.Err() != nil {
		return nil, networkFault(ctx, s.Host, ctx.Err())
	}
	for _, address := range append([]string{e.From}, e.To...) {
		if strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '<' || r == '>' }) ||
			!strings.Contains(address, "@") {
			return nil, fault.Newf(fault.InvalidInput, "%q is not a mail address", address)
		}
	}
	if len(e.To) == 0 {
		return nil, fault.New(fault.InvalidInput, "a mail needs a recipient")
	}
	c, closed, err := n.session(ctx, s)
	if err != nil {
		return nil, err
	}
	defer closed()
	answer := func(step string, err error) error { return answerFault(ctx, s.Host, step, err) }
	if err := c.Mail("<" + e.From + ">"); err != nil {
		return nil, answer("the sender", err)
	}
	for _, to := range e.To {
		err := c.Rcpt("<" + to + ">")
		if err == nil {
			continue
		}
		said := &textproto.Error{}
		if !errors.As(err, &said) || said.Code == 421 { // 421: the server leaves
			return nil, answer("a recipient", err)
		}
		refused = append(refused, Refusal{Address: to, Err: fault.From(answer("recipient "+to, err))})
	}
	if len(refused) == len(e.To) {
		return refused, refused[worst(refused)].Err
	}
	w, err := c.Data()
	if err != nil {
		return refused, answer("the mail", err)
	}
	if _, err := w.Write(message); err != nil {
		return refused, answer("the mail", err)
	}
	if err := w.Close(); err != nil {
		if said := (*textproto.Error)(nil); errors.As(err, &said) {
			return refused, answer("the mail", err)
		}
		return refused, fault.Newf(fault.OutcomeUnknown, "mail server %q did not say whether it took the mail", s.Host).WithCause(err)
	}
	_ = c.Quit() // the mail is with the server already
	return refused, nil
}

// worst is the refusal to report when all were refused: one that is worth another try, if there is one.
func worst(refused []Refusal) int {
	return max(0, slices.IndexFunc(refused, func(r Refusal) bool { return r.Err.Retryable }))
}

// session connects and logs in.
func (n Network) session(ctx context.Context, s Server) (c *smtp.Client, closed func(), err error) {
	bounded := n
	bounded.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := n.Dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &shortConn{Conn: conn, left: maxAnswers}, nil
	}
	conn, stop, err := bounded.connect(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	closed = func() {
		stop()
		_ = conn.Close()
	}
	deadline := time.Now().Add(sendTime)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	fail := func(step string, err error) (*smtp.Client, func(), error) {
		closed()
		return nil, nil, answerFault(ctx, s.Host, step, err)
	}
	if err := conn.SetDeadline(deadline); err != nil {
		return fail("the connection", err)
	}
	c, err = smtp.NewClient(conn, s.Host)
	if err != nil {
		return fail("the connection", err)
	}
	if err := c.Hello(literalOf(conn.LocalAddr())); err != nil {
		return fail("the greeting", err)
	}
	if s.Security == securityStartTLS {
		if offered, _ := c.Extension("STARTTLS"); !offered {
			closed()
			return nil, nil, fault.Newf(fault.RemoteRejected, "mail server %q does not offer STARTTLS; set security in the credential to tls, or to none if that network can be trusted", s.Host)
		}
		if err := c.StartTLS(n.config(s)); err != nil {
			return fail("STARTTLS", err)
		}
	}
	if s.Username == "" {
		return c, closed, nil
	}
	_, protected := c.TLSConnectionState()
	_, offered := c.Extension("AUTH")
	auth, err := loginWith(s, strings.Fields(offered), protected)
	if err != nil {
		closed()
		return nil, nil, err
	}
	if err := c.Auth(auth); err != nil {
		closed()
		return nil, nil, loginFault(ctx, s.Host, err)
	}
	return c, closed, nil
}

// loginWith chooses how to log in. In the clear what does not show the password comes first.
func loginWith(s Server, offered []string, protected bool) (smtp.Auth, error) {
	if s.Token != "" {
		return smtp.XOAuth2Auth(s.Username, s.Token), nil
	}
	ways := []string{"PLAIN", "LOGIN", "SCRAM-SHA-256", "CRAM-MD5"}
	if !protected {
		ways = []string{"SCRAM-SHA-256", "CRAM-MD5", "PLAIN", "LOGIN"}
	}
	for _, way := range ways {
		if !slices.ContainsFunc(offered, func(o string) bool { return strings.EqualFold(o, way) }) {
			continue
		}
		switch way {
		case "PLAIN":
			return smtp.PlainAuth("", s.Username, s.Password, s.Host, !protected), nil
		case "LOGIN":
			return smtp.LoginAuth(s.Username, s.Password, s.Host, !protected), nil
		case "SCRAM-SHA-256":
			return smtp.ScramSHA256Auth(s.Username, s.Password), nil
		default:
			return smtp.CRAMMD5Auth(s.Username, s.Password), nil
		}
	}
	return nil, fault.Newf(fault.RemoteRejected, "mail server %q offers no way to log in with a password; leave username and password out of the credential if it wants none, or use an OAuth account", s.Host)
}

// literalOf is how a client without a name of its own introduces itself.
func literalOf(a net.Addr) string {
	tcp, ok := a.(*net.TCPAddr)
	switch {
	case !ok:
		return "localhost"
	case tcp.IP.To4() != nil:
		return "[" + tcp.IP.String() + "]"
	default:
		return "[IPv6:" + tcp.IP.String() + "]"
	}
}

// loginFault tells a refused login from a server that cannot say just now.
func loginFault(ctx context.Context, host string, err error) error {
	said := &textproto.Error{}
	if errors.As(err, &said) && said.Code >= 500 {
		return fault.Newf(fault.CredentialInvalid, "mail server %q refuses the login: %s; check the user name and the password or token of the credential", host, shown(said.Msg)).WithCause(err)
	}
	return answerFault(ctx, host, "the login", err)
}

// answerFault turns what a server answered into an error: 4xx may pass, 5xx will not.
func answerFault(ctx context.Context, host, step string, err error) error {
	said := &textproto.Error{}
	if !errors.As(err, &said) {
		if certificate := (*tls.CertificateVerificationError)(nil); errors.As(err, &certificate) || !errors.Is(err, io.ErrShortBuffer) {
			return networkFault(ctx, host, err)
		}
		return fault.Newf(fault.RemoteRejected, "mail server %q says more than %d bytes", host, maxAnswers)
	}
	code := fault.RemoteRejected
	switch {
	case said.Code == 530:
		code = fault.CredentialInvalid
	case said.Code == 552, said.Code == 523:
		code = fault.TooLarge
	case said.Code >= 400 && said.Code < 500:
		code = fault.RemoteError
	}
	return fault.Newf(code, "mail server %q refuses %s: %d %s", host, step, said.Code, shown(said.Msg)).WithCause(err)
}

// shown is what a server said, on one line and short.
func shown(text string) string {
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "?"), func(r rune) bool { return r <= ' ' || r == 0x7f }), " ")
	if len(text) > maxSaid {
		text = strings.ToValidUTF8(text[:maxSaid], "") + "…"
	}
	return text
}

// shortConn is a connection that does not read on for ever: lines of answers have no limit of their own.
type shortConn struct {
	net.Conn
	left int64
}

// Read implements io.Reader.
func (c *shortConn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, io.ErrShortBuffer
	}
	n, err := c.Conn.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}
