package database

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"

	"tandem/fault"
	"tandem/shortage"
)

// What went wrong, in the words of a user. The words of a server are shown when they are about the statement; those about
// the connection are not, since they tell what is in the dsn.

// lost is a connection that ended before the transaction was committed: nothing was done.
func lost(err error) *fault.Error {
	f := fault.New(fault.SQLError, "the connection to the database was lost before anything was committed; nothing was done").With("committed", false).WithDetail(innermost(err))
	f.Retryable = true
	return f
}

// deadlocked is a statement that the server gave up for another; nothing was done.
func deadlocked(text string) *fault.Error {
	f := fault.Newf(fault.SQLError, "the database gave the transaction up for another one (%s); nothing was done", text).With("committed", false)
	f.Retryable = true
	return f
}

// innermost is the last error of a chain: what the system said, without what drivers add about users and addresses.
func innermost(err error) string {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			break
		}
		err = next
	}
	if err == nil {
		return ""
	}
	return err.Error()
}

// connecting explains why there is no connection. Nothing of the dsn is told, and nothing was done.
func connecting(ctx context.Context, err error) *fault.Error {
	if f := stopped(ctx); f != nil {
		return f
	}
	if f, ok := errors.AsType[*fault.Error](err); ok {
		switch f.Code {
		case fault.BlockedAddress:
			return fault.New(fault.BlockedAddress, "the database of the credential is not called: its address is not public; if that is meant, the operator allows it with --http-allow (TANDEM_HTTP_ALLOW)")
		case fault.Unsupported, fault.Canceled, fault.CredentialInvalid, fault.TooLarge, fault.ForbiddenPath, fault.NotFound:
			return f
		}
	}
	if shortage.Is(err) {
		return fault.New(fault.Shortage, "the database server could not be connected to: the machine has run out of open files or memory for now").WithDetail(innermost(err))
	}
	_, wrongCertificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, unknownAuthority := errors.AsType[x509.UnknownAuthorityError](err)
	_, wrongName := errors.AsType[x509.HostnameError](err)
	if wrongCertificate || unknownAuthority || wrongName {
		return fault.New(fault.NetworkError, "the database server has a certificate that is not accepted; check the TLS settings of the credential's dsn")
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
		return fault.New(fault.NetworkError, "the host of the credential's dsn is not known to DNS; check its spelling")
	}
	if slow, ok := errors.AsType[net.Error](err); ok && slow.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		return fault.New(fault.Timeout, "the database server could not be connected to in time")
	}
	return fault.New(fault.NetworkError, "the database server could not be reached; check the host and port of the credential's dsn, and whether it is running").WithDetail(innermost(err))
}

// stopped says why a context has ended, nil if it has not.
func stopped(ctx context.Context) *fault.Error {
	switch {
	case ctx.Err() == nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded), errors.Is(context.Cause(ctx), context.DeadlineExceeded),
		fault.CodeOf(context.Cause(ctx)) == fault.Timeout:
		return fault.New(fault.Timeout, "the database did not answer in time; nothing was committed; raise timeout or ask for less")
	}
	return fault.New(fault.Canceled, "the call of the database was stopped; nothing was committed")
}

// words is what a server said, short enough to be read.
func words(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
	if r := []rune(text); len(r) > 300 {
		return string(r[:300]) + "…"
	}
	return text
}

// said makes an error of what a server said about a statement.
func said(code fault.Code, text, remedy string) *fault.Error {
	return fault.Newf(code, "the database says: %s%s", words(text), remedy)
}

// unknownOutcome is a commit whose answer did not come.
func unknownOutcome(err error) *fault.Error {
	return fault.New(fault.OutcomeUnknown, "the connection to the database was lost while the transaction was committed; whether it was is not known").
		With("cause", string(fault.SQLError)).WithDetail(innermost(err))
}
