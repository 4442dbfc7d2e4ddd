// Package outbound is the only way out of the process over HTTP.
//
// A [Client] connects to public addresses and to what the operator has allowed, and to nothing else. The address is
// checked when it is connected to, after DNS and on every redirect, so neither a name that changes its answer nor a
// service that redirects gets around it. The client bounds time and size, keeps secrets on the host they are meant for,
// and says of every call that went wrong whether the service can have taken it ([Fate]).
//
// [Client.Do] makes one call. Libraries that want an *http.Client get [Client.HTTPClient], behind the same guard.
//
// The package knows nothing of nodes, credentials or vendors. Everything that speaks HTTP to the outside imports it, and
// nothing that does so may have a transport of its own.
package outbound

import (
	"context"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"sync/atomic"
	"time"

	"tandem/fault"
)

// What a client does when its options do not say.
const (
	DefaultMaxResponse = 10 << 20
	DefaultDial        = 10 * time.Second
	DefaultTLS         = 10 * time.Second
	DefaultFirstByte   = 2 * time.Minute
	DefaultTotal       = 7 * time.Minute
	DefaultUserAgent   = "tandem"
)

// maxHeader is how many bytes of headers an answer may have.
const maxHeader = 256 << 10

// Options are a client's limits and seams. Zero values mean the defaults above.
type Options struct {
	// Allow is what may be reached although it is not public.
	Allow AllowList
	// MaxResponse is how many bytes the body of an answer may have, after decompression.
	MaxResponse int64
	// Dial bounds DNS and connecting, TLS the handshake, FirstByte the time until an answer begins, Total everything from
	// DNS to the last byte of the body, redirects included.
	Dial, TLS, FirstByte, Total time.Duration
	UserAgent                   string

	// Resolver and DialAddress are for tests: who answers for names, and what connects to an address that has passed the
	// check. Nil means the system's.
	Resolver    Resolver
	DialAddress func(ctx context.Context, address netip.AddrPort) (net.Conn, error)
}

// Resolver looks names up; *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Client makes guarded calls. It pools connections, so one client serves the whole process. It is safe for concurrent
// use.
type Client struct {
	options   Options
	transport *http.Transport
}

// New makes a client.
func New(o Options) *Client {
	fill(&o.MaxResponse, DefaultMaxResponse)
	fill(&o.Dial, DefaultDial)
	fill(&o.TLS, DefaultTLS)
	fill(&o.FirstByte, DefaultFirstByte)
	fill(&o.Total, DefaultTotal)
	if o.UserAgent == "" {
		o.UserAgent = DefaultUserAgent
	}
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	c := &Client{options: o}
	if o.DialAddress == nil {
		// It gets addresses, never names, so it has nothing to look up.
		d := &net.Dialer{KeepAlive: 30 * time.Second}
		c.options.DialAddress = func(ctx context.Context, address netip.AddrPort) (net.Conn, error) {
			return d.DialContext(ctx, "tcp", address.String())
		}
	}
	c.transport = &http.Transport{
		Proxy:                  nil, // a proxy of the environment would connect where the guard cannot look
		DialContext:            c.dial,
		TLSHandshakeTimeout:    o.TLS,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           256,
		MaxIdleConnsPerHost:    16,
		IdleConnTimeout:        90 * time.Second,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: maxHeader,
	}
	return c
}

func fill[T int64 | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// Close closes the connections that no call uses.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// HTTPClient returns a plain client behind the guard, for libraries. Its calls are bounded like those of [Client.Do]. On
// another origin a redirect carries only the headers that [Client.Do] would let it carry.
func (c *Client) HTTPClient() *http.Client {
	return &http.Client{Transport: c.RoundTripper(c.options.MaxResponse), Timeout: c.options.Total, CheckRedirect: checkRedirect}
}

// RoundTripper returns the guarded transport for a caller that bounds time itself: streams live longer than calls. Bodies
// end with too_large after maxResponse bytes; 0 means no bound.
func (c *Client) RoundTripper(maxResponse int64) http.RoundTripper {
	return &guarded{client: c, limit: maxResponse}
}

// guarded is a RoundTripper that checks addresses before they are dialled, so that refusals read well, and bounds bodies.
type guarded struct {
	client *Client
	limit  int64
}

// RoundTrip makes one round trip. Its errors are *Error.
func (g *guarded) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := checkURL(request.URL); err != nil {
		if request.Body != nil {
			_ = request.Body.Close() // a RoundTripper must close it; the refusal is what is told
		}
		return nil, &Error{Fault: fault.From(err), Fate: NotTaken}
	}
	ctx, stop := context.WithCancelCause(request.Context())
	response, fate, err := g.client.roundTrip(ctx, stop, request, g.client.options.FirstByte)
	if err != nil {
		defer stop(nil)
		return nil, &Error{Fault: explain(ctx, request.URL.Hostname(), err), Fate: fate}
	}
	b := &body{from: response.Body, limit: g.limit, length: announced(response), host: request.URL.Hostname(),
		ctx: ctx, stop: func() { stop(nil) }}
	if w, ok := response.Body.(interface{ Write([]byte) (int, error) }); ok { // a connection that was upgraded
		response.Body = struct {
			*body
			writer
		}{b, w}
		return response, nil
	}
	response.Body = b
	return response, nil
}

// roundTrip sends a request and waits for the headers of its answer, but not longer than first. Fate is that of a failure.
func (c *Client) roundTrip(ctx context.Context, stop context.CancelCauseFunc, request *http.Request,
	first time.Duration) (*http.Response, Fate, error) {
	var wrote atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { wrote.Store(true) }})
	timer := time.AfterFunc(first, func() { stop(errFirstByte) })
	defer timer.Stop()
	response, err := c.transport.RoundTrip(request.WithContext(ctx))
	if err != nil && !wrote.Load() {
		return nil, NotTaken, err
	}
	return response, Unknown, err
}

type writer interface{ Write([]byte) (int, error) }

// maxPlainRedirects is how many redirects a plain client follows.
const maxPlainRedirects = 10

// checkRedirect is the policy of plain clients. What leaves the first origin stays without secrets, also when it comes
// back: a foreign host chose the address.
func checkRedirect(request *http.Request, via []*http.Request) error {
	if len(via) > maxPlainRedirects {
		return &Error{Fault: tooManyRedirects(via[0].URL.Hostname(), maxPlainRedirects), Fate: Answered}
	}
	if err := checkURL(request.URL); err != nil {
		return &Error{Fault: fault.From(err), Fate: Answered}
	}
	request.Header.Del("Referer") // it would tell the query of the address before
	for i := range via {
		next := request
		if i+1 < len(via) {
			next = via[i+1]
		}
		if crosses(via[i].URL, next.URL) {
			shed(request.Header, nil)
			return nil
		}
	}
	return nil
}
