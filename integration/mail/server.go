package mail

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net"
	"net/mail"
	"net/url"
	"strconv"
	"strings"
	"time"

	"tandem/credential"
	"tandem/fault"
)

// How a connection is protected.
const (
	securityTLS      = "tls"
	securityStartTLS = "starttls"
	securityNone     = "none"
)

// commandTime is how long a mail server may take for one step.
const commandTime = time.Minute

// Server is a mail server and how one logs in to it.
type Server struct {
	Host string
	Port int
	// Security is tls, starttls or none. Nothing is ever sent in the clear unless it is none.
	Security string
	// Username and one of Password and Token log in; without a Username there is no login.
	Username, Password, Token string
	// Address is the mail address of the account; empty if that is not known.
	Address string
	Trust   Trust
}

// Network is how mail servers are reached.
type Network struct {
	// Dial connects; the guarded dialer of package outbound, in a program.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// TLS is what connections are protected with; nil: the system's roots.
	TLS *tls.Config
}

// fields are what the credentials of this package consist of, all types together.
type fields struct {
	Host        string          `json:"host"`
	Port        json.RawMessage `json:"port"`
	Security    string          `json:"security"`
	Username    string          `json:"username"`
	Password    string          `json:"password"`
	BaseURL     string          `json:"base_url"`
	AuthservID  string          `json:"authserv_id"`
	TrustSender string          `json:"trust_sender"`
	Email       string          `json:"email"`
	Token       string          `json:"token"`
}

// protocol is what differs between sending and reading.
type protocol struct {
	own               string // the type of credential that is only for it
	security          string // the default
	tls, plain        int    // the ports
	google, microsoft string // the hosts of the two providers
	vendorSecurity    string
	starttls          int
}

func smtpProtocol() protocol {
	return protocol{own: typeSMTP, security: securityStartTLS, tls: 465, starttls: 587, plain: 25,
		google: "smtp.gmail.com", microsoft: "smtp.office365.com", vendorSecurity: securityStartTLS}
}

func imapProtocol() protocol {
	return protocol{own: typeIMAP, security: securityTLS, tls: 993, starttls: 143, plain: 143,
		google: "imap.gmail.com", microsoft: "outlook.office365.com", vendorSecurity: securityTLS}
}

// server reads a credential. Its token is that of the credential.
func (p protocol) server(id string, c credential.Opened) (Server, fields, error) {
	wrong := func(text string) (Server, fields, error) {
		return Server{}, fields{}, fault.Newf(fault.CredentialInvalid, "credential %q %s", id, text)
	}
	var f fields
	if json.Unmarshal(c.Data, &f) != nil {
		return wrong("cannot be read; save it again")
	}
	s := Server{Host: f.Host, Security: cmp.Or(f.Security, p.security), Username: f.Username, Password: f.Password}
	switch c.Type {
	case p.own:
		if port := string(bytes.Trim(f.Port, `"`)); port != "" && port != "null" {
			var err error
			if s.Port, err = strconv.Atoi(port); err != nil {
				return wrong("has a port that is not a number")
			}
		}
		s.Address = addressOf(f.Username)
	case typeGoogle:
		s.Host, s.Security = p.google, p.vendorSecurity
	case typeMicrosoft:
		s.Host, s.Security = p.microsoft, p.vendorSecurity
	default:
		return wrong("is of type " + strconv.Quote(c.Type) + ", which is not one for mail; use " + p.own + ", " + typeGoogle + " or " + typeMicrosoft)
	}
	if c.Type != p.own {
		s.Password, s.Token, s.Address = "", f.Token, addressOf(f.Email)
		s.Username = s.Address
	}
	if f.BaseURL != "" {
		if err := s.redirect(f.BaseURL); err != nil {
			return wrong(err.Error())
		}
	}
	if s.Security != securityTLS && s.Security != securityStartTLS && s.Security != securityNone {
		return wrong("has a security that is not tls, starttls or none")
	}
	if s.Host == "" {
		return wrong("has no host")
	}
	if s.Port == 0 {
		s.Port = map[string]int{securityTLS: p.tls, securityStartTLS: p.starttls, securityNone: p.plain}[s.Security]
	}
	s.Trust = Trust{Server: cmp.Or(f.AuthservID, receiverOf(c.Type, s.Host)), Exact: f.AuthservID != "", Everyone: f.TrustSender == "yes"}
	return s, f, nil
}

// redirect points a server to another address, as base_url says it. A scheme that ends in s is TLS from the beginning, http is
// in the clear; smtp and imap keep what the credential says.
func (s *Server) redirect(base string) error {
	u, err := url.Parse(base)
	if err != nil || u.Hostname() == "" {
		return errors.New("has a base_url that cannot be used; write it like smtp://host:port")
	}
	s.Host, s.Port = u.Hostname(), 0
	if u.Port() != "" {
		if s.Port, err = strconv.Atoi(u.Port()); err != nil {
			return errors.New("has a base_url whose port is not a number")
		}
	}
	switch u.Scheme {
	case "smtps", "imaps", "https":
		s.Security = securityTLS
	case "http":
		s.Security = securityNone
	}
	return nil
}

// addressOf is a text if it is a bare mail address, and empty otherwise.
func addressOf(text string) string {
	a, err := mail.ParseAddress(text)
	if err != nil || a.Name != "" || !strings.EqualFold(a.Address, strings.Trim(strings.TrimSpace(text), "<>")) {
		return ""
	}
	return a.Address
}

// domainOf is the part of an address behind the last @, in lower case.
func domainOf(address string) string {
	return strings.ToLower(address[strings.LastIndexByte(address, '@')+1:])
}

// config is for a connection to a server.
func (n Network) config(s Server) *tls.Config {
	c := &tls.Config{}
	if n.TLS != nil {
		c = n.TLS.Clone()
	}
	c.ServerName, c.MinVersion = s.Host, max(c.MinVersion, tls.VersionTLS12)
	return c
}

// connect reaches a server, with TLS if it is to be there from the beginning. The connection is closed when the context ends;
// stop ends that.
func (n Network) connect(ctx context.Context, s Server) (conn net.Conn, stop func() bool, err error) {
	raw, err := n.Dial(ctx, "tcp", net.JoinHostPort(s.Host, strconv.Itoa(s.Port)))
	if err != nil {
		return nil, nil, networkFault(ctx, s.Host, err)
	}
	conn = raw
	stop = context.AfterFunc(ctx, func() { _ = raw.Close() })
	if s.Security != securityTLS {
		return conn, stop, nil
	}
	protected := tls.Client(raw, n.config(s))
	bounded, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	if err := protected.HandshakeContext(bounded); err != nil {
		stop()
		_ = raw.Close()
		return nil, nil, networkFault(ctx, s.Host, err)
	}
	return protected, stop, nil
}

// networkFault says why a mail server was not reached, or was lost. What the guard refused stays as it is.
func networkFault(ctx context.Context, host string, err error) error {
	if ctx.Err() != nil {
		return fault.Newf(fault.Canceled, "the connection to mail server %q was stopped", host).WithCause(context.Cause(ctx))
	}
	if known := (*fault.Error)(nil); errors.As(err, &known) {
		return known
	}
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &certificate) {
		return fault.Newf(fault.RemoteRejected, "mail server %q has a certificate that is not trusted; check the host in the credential", host).WithCause(err)
	}
	if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
		return fault.Newf(fault.Timeout, "mail server %q did not answer in time", host).WithCause(err)
	}
	return fault.Newf(fault.NetworkError, "mail server %q cannot be reached", host).WithCause(err)
}

// account says what is wrong with a server that needs a token and has none.
func (s Server) account(id string, c credential.Opened) error {
	if (c.Type == typeGoogle || c.Type == typeMicrosoft) && s.Token == "" {
		return fault.Newf(fault.CredentialInvalid, "credential %q has no token; authorize the account: tandem credentials authorize %s", id, id)
	}
	return nil
}
