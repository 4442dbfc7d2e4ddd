package outbound

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"time"

	"tandem/fault"
)

// NoFollow as Request.Redirects makes a redirect the answer.
const NoFollow = -1

// Request is one call. The client changes nothing of it.
type Request struct {
	Method string
	URL    *url.URL
	// Header are headers that hold no secret of a credential. On another origin only a few harmless ones go along, and
	// those named by Portable.
	Header   http.Header
	Portable []string
	Body     []byte
	// Open, when it is not nil, takes the place of Body: it opens a body of Size bytes that is sent as it is read, and is
	// called again when the call has to be written again.
	Open func() (io.ReadCloser, error)
	Size int64
	// Secret is added on the way out, on the origin it is meant for and nowhere else.
	Secret *Secret
	// Home is the address that Secret and Header are meant for, when it is not URL: a page that an earlier answer named
	// is called without them if it is elsewhere.
	Home *url.URL
	// Repeatable says that the service takes the call once however often it arrives: a connection that was closed under
	// it may be replaced by a new one. Calls that only read, PUT and DELETE always are.
	Repeatable bool
	// Redirects is how many are followed; one more is an error.
	Redirects int
	// MaxResponse, FirstByte and Timeout replace the client's own; zero keeps them.
	MaxResponse        int64
	FirstByte, Timeout time.Duration
}

// Secret is what authenticates a call.
type Secret struct {
	Header http.Header
	Query  url.Values
	// Hosts are the only hosts it may be sent to: "api.example.com", with a port if only that is meant, or
	// "*.example.com". None means every host that the call names itself.
	Hosts []string
}

// Hop is one redirect that was followed.
type Hop struct {
	Status int
	// URL is where it led.
	URL string
}

// Response is an answer whose headers are here. The caller closes its body, or reads it with ReadAll, which does.
type Response struct {
	Status int
	Header http.Header
	// URL is what answered, without what a secret added to it.
	URL  *url.URL
	Hops []Hop
	// Foreign says that redirects led to another origin, so that the secrets were left behind.
	Foreign bool
	// Body ends with an *Error when it is too large, too slow or cut off.
	Body io.ReadCloser

	fate Fate // the least that the hops before have settled
}

// ReadAll reads and closes the body.
func (r *Response) ReadAll() ([]byte, error) {
	data, err := io.ReadAll(r.Body)
	if cerr := r.Body.Close(); err == nil && cerr != nil {
		err = &Error{Fault: fault.New(fault.NetworkError, "the answer could not be read to its end").WithCause(cerr), Fate: Unknown}
	}
	return data, err
}

// Do makes a call and returns when the headers of the answer are here. An answer of any status is not an error; what is
// one is an *Error.
func (c *Client) Do(ctx context.Context, r Request) (*Response, error) {
	fill(&r.Timeout, c.options.Total)
	fill(&r.FirstByte, c.options.FirstByte)
	fill(&r.MaxResponse, c.options.MaxResponse)
	ctx, cancel := context.WithTimeoutCause(ctx, r.Timeout, errTotal)
	response, err := c.follow(ctx, r)
	if err != nil {
		cancel()
		return nil, err
	}
	b := response.Body.(*body)
	inner := b.stop
	b.stop = func() { inner(); cancel() }
	return response, nil
}

// leg is where a call is on its way from redirect to redirect.
type leg struct {
	method  string
	target  *url.URL
	header  http.Header
	open    func() (io.ReadCloser, error) // nil: no body
	size    int64
	foreign bool // it has left the origin that the secrets are for, and stays without them
	// settled is set when an earlier hop has taken the request and only its answer is fetched: that never was "not taken".
	settled bool
	hops    []Hop
}

func (l *leg) fate(f Fate) Fate {
	if f == NotTaken && l.settled {
		return Unknown
	}
	return f
}

func (c *Client) follow(ctx context.Context, r Request) (*Response, error) {
	l := &leg{method: r.Method, target: r.URL, header: r.Header.Clone(), open: r.Open, size: r.Size}
	if len(r.Body) > 0 && r.Open == nil {
		l.open = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(r.Body)), nil }
		l.size = int64(len(r.Body))
	}
	if err := c.begin(&r, l); err != nil {
		return nil, &Error{Fault: fault.From(err), Fate: NotTaken}
	}
	for {
		response, err := c.send(ctx, r, l)
		if err != nil {
			return nil, err
		}
		location, ok := redirect(response)
		if !ok || r.Redirects == NoFollow {
			response.fate = l.fate(NotTaken)
			return response, nil
		}
		// What is left of the body is read so that the connection can be used again, unless it is long.
		_, _ = io.CopyN(io.Discard, response.Body, 64<<10)
		_ = response.Body.Close() // the redirect is known; nothing of its body is wanted
		if len(l.hops) >= r.Redirects {
			return nil, &Error{Fault: tooManyRedirects(r.URL.Hostname(), r.Redirects), Fate: Answered}
		}
		if err := l.turn(location, response.Status, r); err != nil {
			return nil, &Error{Fault: fault.From(err), Fate: Answered}
		}
	}
}

func (c *Client) begin(r *Request, l *leg) error {
	if err := checkURL(r.URL); err != nil {
		return err
	}
	if l.header == nil {
		l.header = http.Header{}
	}
	if err := CheckHeader(l.header); err != nil {
		return err
	}
	// The transport decodes what it has asked for itself. What an author copied from a browser would arrive undecoded.
	if l.header.Get("Accept-Encoding") != "identity" {
		l.header.Del("Accept-Encoding")
	}
	if l.header.Get("User-Agent") == "" {
		l.header.Set("User-Agent", c.options.UserAgent)
	}
	if r.Home != nil && crosses(r.Home, r.URL) {
		l.foreign = true
		shed(l.header, r.Portable)
	}
	if r.Secret == nil {
		return nil
	}
	if err := CheckHeader(r.Secret.Header); err != nil {
		return fault.New(fault.CredentialInvalid, "the credential cannot be sent: a header of it has a name or value that headers cannot have").WithCause(err)
	}
	l.target = withoutSecret(r.URL, r.Secret, l.foreign)
	if !l.foreign && !r.Secret.meantFor(r.URL) {
		return fault.Newf(fault.CredentialInvalid, "the credential may not be sent to host %q; add the host to its allowed_hosts or choose another credential", r.URL.Host).With("host", r.URL.Host)
	}
	return nil
}

// turn makes the leg go where a redirect points.
func (l *leg) turn(location *url.URL, status int, r Request) error {
	if err := checkURL(location); err != nil {
		return err
	}
	become := l.method
	switch {
	case status == http.StatusSeeOther && l.method != http.MethodHead:
		become = http.MethodGet
	case (status == http.StatusMovedPermanently || status == http.StatusFound) && l.method == http.MethodPost:
		become = http.MethodGet
	}
	if become != l.method {
		l.settled = l.settled || !onlyReads(l.method)
		l.method, l.open, l.size = become, nil, 0
		for name := range l.header {
			if strings.HasPrefix(name, "Content-") {
				l.header.Del(name)
			}
		}
	}
	if !l.foreign && crosses(l.target, location) {
		l.foreign = true
		shed(l.header, r.Portable)
	}
	if r.Secret != nil {
		location = withoutSecret(location, r.Secret, l.foreign)
	}
	l.target = location
	l.hops = append(l.hops, Hop{Status: status, URL: location.String()})
	return nil
}

func onlyReads(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// send makes one round trip.
func (c *Client) send(ctx context.Context, r Request, l *leg) (*Response, error) {
	host := l.target.Hostname()
	ctx, stop := context.WithCancelCause(ctx)
	request := &http.Request{Method: l.method, URL: l.target, Header: l.header.Clone(), Host: l.target.Host, Proto: "HTTP/1.1",
		ProtoMajor: 1, ProtoMinor: 1}
	if r.Secret != nil && !l.foreign {
		maps.Copy(request.Header, r.Secret.Header)
		request.URL = withQuery(l.target, r.Secret.Query)
	}
	request.URL = cleanQuery(request.URL)
	if !r.Repeatable {
		hideKeys(request.Header)
	}
	if l.open != nil && l.size > 0 {
		content, err := l.open()
		if err != nil {
			defer stop(nil)
			return nil, &Error{Fault: fault.From(err), Fate: l.fate(NotTaken)}
		}
		request.Body, request.ContentLength, request.GetBody = content, l.size, l.open
	}
	response, fate, err := c.roundTrip(ctx, stop, request, r.FirstByte)
	if err != nil {
		defer stop(nil)
		f := explain(ctx, host, err)
		if l.settled && fate == NotTaken && !f.Retryable {
			fate = Answered // by the hop before; that the next one is refused does not make it less so
		}
		return nil, &Error{Fault: f, Fate: l.fate(fate)}
	}
	limited := &body{from: decoded(l.method, response), limit: r.MaxResponse, length: announced(response), host: host,
		ctx: ctx, stop: func() { stop(nil) }}
	return &Response{Status: response.StatusCode, Header: response.Header, URL: l.target, Hops: l.hops, Foreign: l.foreign, Body: limited},
		nil
}

// hideKeys keeps the transport from believing that a call may be made again because one of these headers is there; it
// looks for them under these names alone, and names of headers mean the same in small letters. Without them it makes a POST
// again only if nothing of it was written to the connection before.
func hideKeys(header http.Header) {
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		if values, ok := header[name]; ok {
			delete(header, name)
			header[strings.ToLower(name)] = values
		}
	}
}

// redirect says where an answer points, if it is one that does.
func redirect(r *Response) (*url.URL, bool) {
	switch r.Status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil, false
	}
	location := r.Header.Get("Location")
	if location == "" {
		return nil, false
	}
	u, err := r.URL.Parse(location)
	if err != nil {
		return nil, false // nowhere to go: the redirect itself is the answer
	}
	if u.Fragment == "" {
		u.Fragment = r.URL.Fragment
	}
	return u, true
}

// crosses says that a secret meant for one address must not go to another: the host or the port differs, or the way there
// would no longer be encrypted. Only the step up from plain HTTP on the usual ports stays at home.
func crosses(from, to *url.URL) bool {
	if plainHost(from.Hostname()) != plainHost(to.Hostname()) {
		return true
	}
	if from.Scheme == to.Scheme {
		return portOf(from) != portOf(to)
	}
	return !(from.Scheme == "http" && to.Scheme == "https" && portOf(from) == "80" && portOf(to) == "443")
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// shed leaves only the headers that say nothing about who is calling. A list of what is harmless cannot forget a secret.
func shed(header http.Header, portable []string) {
	for name := range header {
		switch name {
		case "Accept", "Accept-Encoding", "Accept-Language", "Cache-Control", "Content-Type", "Content-Language", "Content-Encoding",
			"Content-Length", "Range", "User-Agent", "If-Modified-Since", "If-None-Match":
			continue
		}
		if !slices.ContainsFunc(portable, func(p string) bool { return textproto.CanonicalMIMEHeaderKey(p) == name }) {
			delete(header, name)
		}
	}
}

// meantFor says whether a secret may be sent to an address.
func (s *Secret) meantFor(u *url.URL) bool {
	if len(s.Hosts) == 0 {
		return true
	}
	return slices.ContainsFunc(s.Hosts, func(allowed string) bool {
		allowed = strings.ToLower(strings.TrimSpace(allowed))
		if h, port, ok := strings.Cut(allowed, ":"); ok && !strings.Contains(port, ":") {
			if port != portOf(u) {
				return false
			}
			allowed = h
		}
		allowed = strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(allowed, "["), "]"), ".")
		host := plainHost(u.Hostname())
		if suffix, ok := strings.CutPrefix(allowed, "*."); ok {
			return strings.HasSuffix(host, "."+suffix)
		}
		return host == allowed
	})
}

// withQuery adds to the query of an address; the rest of it stays as it is.
func withQuery(u *url.URL, values url.Values) *url.URL {
	if len(values) == 0 {
		return u
	}
	out := *u
	if out.RawQuery != "" {
		out.RawQuery += "&"
	}
	out.RawQuery += values.Encode()
	return &out
}

// cleanQuery escapes what may not stand in a request line; authors and services write spaces and letters of all scripts.
func cleanQuery(u *url.URL) *url.URL {
	const hex = "0123456789ABCDEF"
	bad := func(b byte) bool { return b <= 0x20 || b >= 0x7f || b == '"' || b == '<' || b == '>' }
	var b strings.Builder
	for i := range len(u.RawQuery) {
		if c := u.RawQuery[i]; bad(c) {
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		} else {
			b.WriteByte(c)
		}
	}
	if b.Len() == len(u.RawQuery) {
		return u
	}
	out := *u
	out.RawQuery = b.String()
	return &out
}

// withoutSecret takes the secret's query parameters out of an address: they are added anew where they belong. On a
// foreign host a parameter of another name that holds the secret goes too, since services echo what they were sent.
func withoutSecret(u *url.URL, s *Secret, foreign bool) *url.URL {
	if u.RawQuery == "" || len(s.Query) == 0 && !foreign {
		return u
	}
	var kept []string
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if n, err := url.QueryUnescape(name); err == nil {
			name = n
		}
		if v, err := url.QueryUnescape(value); err == nil {
			value = v
		}
		if _, ours := s.Query[name]; ours || foreign && s.in(value) {
			continue
		}
		kept = append(kept, pair)
	}
	out := *u
	out.RawQuery = strings.Join(kept, "&")
	return &out
}

func (s *Secret) in(text string) bool {
	for _, list := range [2]map[string][]string{s.Header, s.Query} {
		for _, values := range list {
			for _, value := range values {
				_, bare, ok := strings.Cut(value, " ") // "Bearer x": x alone is as good
				if value != "" && strings.Contains(text, value) || ok && bare != "" && strings.Contains(text, bare) {
					return true
				}
			}
		}
	}
	return false
}

// CheckHeader refuses headers that would end early or take another's place, and those that are the client's business.
func CheckHeader(header http.Header) error {
	for _, name := range slices.Sorted(maps.Keys(header)) {
		if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !tokenRune(r) }) {
			return fault.Newf(fault.InvalidInput, "%q is not the name of a header", name)
		}
		switch textproto.CanonicalMIMEHeaderKey(name) {
		case "Host", "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive", "Upgrade", "Te", "Trailer",
			"Proxy-Authorization", "Proxy-Connection":
			return fault.Newf(fault.InvalidInput, "the header %q is set by the client itself; leave it out", name)
		}
		for _, value := range header[name] {
			if strings.ContainsFunc(value, func(r rune) bool { return r < 0x20 && r != '\t' || r == 0x7f }) {
				return fault.Newf(fault.InvalidInput, "the value of header %q has a line break or another control character in it", name)
			}
		}
	}
	return nil
}

func tokenRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r < 0x80 && strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

func tooManyRedirects(host string, limit int) *fault.Error {
	if limit == 0 {
		return fault.Newf(fault.RemoteRejected, "host %q answers with a redirect, and none is to be followed", host)
	}
	return fault.Newf(fault.RemoteRejected, "host %q leads to more than %d redirects; raise the limit or call the address they lead to", host, limit)
}

// Sentinels of what ran out. They are causes of contexts and never reach a caller by themselves.
var (
	errDial      = errors.New("connecting took too long")
	errFirstByte = errors.New("no answer began in time")
	errTotal     = errors.New("the call took too long")
)
