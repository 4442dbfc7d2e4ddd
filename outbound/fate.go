package outbound

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"tandem/fault"
	"tandem/shortage"
	"tandem/text"
)

// Fate says what is known of a call's effect on the service.
type Fate uint8

// The fates. The zero value is the careful one.
const (
	// Unknown calls were sent and not answered completely, or answered by somebody in between (502, 504).
	Unknown Fate = iota
	// NotTaken calls never reached what they were for: no connection, or a service that asks to come again later.
	NotTaken
	// Answered calls have a known outcome, good or bad.
	Answered
)

// String returns the fate in words.
func (f Fate) String() string {
	switch f {
	case NotTaken:
		return "not taken"
	case Answered:
		return "answered"
	}
	return "unknown"
}

// Error is why a call has no good answer.
type Error struct {
	Fault *fault.Error
	Fate  Fate
	// RetryAfter is when the service wants to be called again; zero when it did not say.
	RetryAfter time.Duration
}

// Error returns the code and message.
func (e *Error) Error() string { return e.Fault.Error() }

// Unwrap returns the fault.
func (e *Error) Unwrap() error { return e.Fault }

// FateOf returns the fate of a call by its error, also one that an http.Client has wrapped. An error that says nothing of
// it leaves it unknown.
func FateOf(err error) Fate {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Fate
	}
	return Unknown
}

// MaxRetryAfter bounds what a service may ask for.
const MaxRetryAfter = time.Hour

// Problem says what a status means, nil when it is good: below 400.
func (r *Response) Problem(now time.Time) *Error {
	if r.Status < 400 {
		return nil
	}
	code := fault.RemoteRejected
	var remedy text.Text
	switch {
	case r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden:
		code, remedy = fault.CredentialInvalid, text.Of("; check the credential and what it may do")
	case r.Status == http.StatusNotFound || r.Status == http.StatusGone:
		code = fault.NotFound
	case r.Status == http.StatusConflict || r.Status == http.StatusPreconditionFailed:
		code = fault.Conflict
	case r.Status == http.StatusTooManyRequests:
		code = fault.RateLimited
	case r.Status >= 500:
		code = fault.RemoteError
	}
	status := strconv.Itoa(r.Status)
	if name := http.StatusText(r.Status); name != "" {
		status += " " + name
	}
	e := &Error{Fate: Answered, Fault: fault.Newf(code, "host %q answered %s%s", r.URL.Host, status, remedy).With("status_code", r.Status)}
	switch r.Status {
	case http.StatusTooManyRequests:
		e.Fate, e.RetryAfter = NotTaken, RetryAfter(r.Header, now)
	case http.StatusServiceUnavailable:
		if r.Header.Get("Retry-After") != "" {
			e.Fate, e.RetryAfter = NotTaken, RetryAfter(r.Header, now)
		}
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		e.Fate = Unknown
	}
	if e.Fate == NotTaken {
		e.Fate = r.fate
	}
	if e.RetryAfter > 0 {
		e.Fault = e.Fault.With("retry_after_ms", e.RetryAfter.Milliseconds())
	}
	return e
}

// RetryAfter reads when a service wants to be called again: Retry-After in seconds or as a date, else the reset headers
// that services use instead. At most an hour; zero when nothing says so or the time has passed.
func RetryAfter(header http.Header, now time.Time) time.Duration {
	if text := strings.TrimSpace(header.Get("Retry-After")); text != "" {
		if d, ok := seconds(text); ok {
			return clamp(d)
		}
		if at, err := http.ParseTime(text); err == nil {
			return clamp(float64(at.Sub(now)) / float64(time.Second))
		}
	}
	if d, ok := seconds(header.Get("Retry-After-Ms")); ok {
		return clamp(d / 1000)
	}
	for _, name := range []string{"X-Ratelimit-Reset-After", "Ratelimit-Reset", "X-Ratelimit-Reset"} {
		d, ok := seconds(header.Get(name))
		if !ok {
			continue
		}
		switch { // some count from now, some tell the time
		case d > 1e12:
			d = d/1000 - float64(now.UnixMilli())/1000
		case d > 1e9:
			d -= float64(now.UnixMilli()) / 1000
		}
		return clamp(d)
	}
	return 0
}

func seconds(text string) (float64, bool) {
	d, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return d, err == nil && !math.IsNaN(d)
}

func clamp(seconds float64) time.Duration {
	return time.Duration(min(max(seconds, 0), MaxRetryAfter.Seconds()) * float64(time.Second))
}

// explain turns what a transport says into what a user reads. The address of a connection and the words of the system
// stay in the operator's detail.
func explain(ctx context.Context, host string, err error) *fault.Error {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f
	}
	of := func(code fault.Code, what text.Text) *fault.Error {
		return fault.Newf(code, "host %q %s", host, what).With("host", host).WithCause(err)
	}
	cause := context.Cause(ctx)
	switch {
	case cause == errTotal || cause == errFirstByte:
		return timeout(host, cause).WithCause(err)
	case errors.Is(cause, context.DeadlineExceeded):
		return timeout(host, errTotal).WithCause(err)
	case cause != nil:
		return fault.Newf(fault.Canceled, "the call of host %q was stopped", host).WithCause(err)
	case errors.Is(err, errDial):
		return timeout(host, errDial)
	case shortage.Is(err):
		return shortage.Or(err, fault.Newf(fault.NetworkError, "host %q could not be called", host).With("host", host))
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		if dns.IsNotFound {
			return of(fault.NetworkError, text.Of("is not known to DNS; check its spelling"))
		}
		return of(fault.NetworkError, text.Of("could not be looked up in DNS"))
	}
	if slow, ok := errors.AsType[net.Error](err); ok && slow.Timeout() {
		return of(fault.Timeout, text.Of("took too long to connect"))
	}
	_, wrongCertificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, unknownAuthority := errors.AsType[x509.UnknownAuthorityError](err)
	_, wrongName := errors.AsType[x509.HostnameError](err)
	_, notTLS := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case strings.Contains(err.Error(), "response headers exceeded"), strings.Contains(err.Error(), "response header list larger"):
		return of(fault.TooLarge, text.Of("sent more than %d KiB of headers", maxHeader>>10))
	case wrongCertificate || unknownAuthority || wrongName:
		return of(fault.NetworkError, text.Of("has a certificate that is not accepted"))
	case notTLS:
		return of(fault.NetworkError, text.Of("does not speak TLS; check the scheme and the port"))
	case errors.Is(err, syscall.ECONNREFUSED):
		return of(fault.NetworkError, text.Of("refused the connection"))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return of(fault.NetworkError, text.Of("closed the connection before its answer was complete"))
	}
	return of(fault.NetworkError, text.Of("could not be reached, or its answer could not be read"))
}

func timeout(host string, which error) *fault.Error {
	what := text.Of("did not answer completely in time; raise timeout or ask for less")
	switch which {
	case errDial:
		what = text.Of("could not be connected to in time")
	case errFirstByte:
		what = text.Of("did not begin to answer in time")
	}
	return fault.Newf(fault.Timeout, "host %q %s", host, what).With("host", host)
}

// body bounds what is read of an answer. It is read by one goroutine, and closed by any.
type body struct {
	from   io.ReadCloser
	limit  int64 // 0: none
	read   int64
	length int64 // as announced, -1 unknown
	host   string
	ctx    context.Context // of the call: its cause says why reading ended early
	stop   func()
}

// announced is how long a body says it is, -1 when it does not say or there is none: the answer to HEAD has only the word.
func announced(r *http.Response) int64 {
	if r.Body == http.NoBody {
		return -1
	}
	return r.ContentLength
}

// Read reads; its errors are *Error, but for io.EOF.
func (b *body) Read(p []byte) (int, error) {
	if b.limit > 0 && b.length > b.limit {
		return 0, b.tooLarge()
	}
	if b.limit > 0 && int64(len(p)) > b.limit-b.read {
		p = p[:b.limit-b.read+1] // one more than allowed tells whether there is more
	}
	n, err := b.from.Read(p)
	b.read += int64(n)
	if b.limit > 0 && b.read > b.limit {
		return max(0, n-1), b.tooLarge()
	}
	if err != nil && err != io.EOF {
		return n, &Error{Fault: explain(b.ctx, b.host, err), Fate: Unknown}
	}
	return n, err
}

func (b *body) tooLarge() error {
	b.length = math.MaxInt64 // stays so
	return &Error{
		Fault: fault.Newf(fault.TooLarge, "the answer of host %q is larger than %d bytes; ask for less, or fetch it as a file", b.host, b.limit).With("limit", b.limit),
		Fate:  Answered,
	}
}

// Close ends the call.
func (b *body) Close() error {
	err := b.from.Close()
	b.stop()
	return err
}

// decoded undoes a compression that the transport has not asked for and so has left alone.
func decoded(method string, r *http.Response) io.ReadCloser {
	coding := strings.ToLower(strings.TrimSpace(r.Header.Get("Content-Encoding")))
	if r.Uncompressed || coding != "gzip" && coding != "x-gzip" || method == http.MethodHead ||
		r.StatusCode == http.StatusPartialContent || r.Body == http.NoBody {
		return r.Body
	}
	r.Header.Del("Content-Encoding")
	r.Header.Del("Content-Length")
	r.ContentLength = -1
	return &unzipped{from: r.Body}
}

// unzipped decodes while it is read, so that nothing is read before somebody asks.
type unzipped struct {
	from io.ReadCloser
	zip  *gzip.Reader
}

func (u *unzipped) Read(p []byte) (int, error) {
	if u.zip == nil {
		zip, err := gzip.NewReader(u.from)
		if err != nil {
			return 0, err
		}
		u.zip = zip
	}
	return u.zip.Read(p)
}

func (u *unzipped) Close() error { return u.from.Close() }
