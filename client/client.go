// Package client is a Go client of Tandem's HTTP API. The command line uses it for everything it does with executions and
// workflows, against a server as well as against a data directory in its own process.
//
// It turns calls into requests, and answers into the shapes of package api. It opens no store and runs no workflow.
// Programs, the command line and app may import it; the server may not.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tandem/fault"
)

// Options say which server to talk to, and with which token.
type Options struct {
	// URL is where the server is: https://tandem.example.com. A path in it comes before every route.
	URL string
	// Token is an API token. Empty: none is sent.
	Token string
	// HTTP is what carries requests; nil means a client with sensible limits. It should have no Timeout, which would cut
	// streams: the client limits each request by itself.
	HTTP *http.Client
}

// Client talks to one server. It is safe for concurrent use.
type Client struct {
	base     *url.URL
	token    string
	http     *http.Client
	language string
}

const (
	prefix = "/api/v1"
	// requestTimeout is how long an answer may take, besides what the caller has asked the server to wait.
	requestTimeout = 60 * time.Second
	// maxAnswer is how large an answer may be. Large values have a route of their own and are streamed.
	maxAnswer = 64 << 20
	// maxProblem is how much of an error's body is read.
	maxProblem = 1 << 20
	// tries is how often a request that may be repeated is sent when the connection breaks.
	tries = 4
)

// New makes a client. Nothing is sent.
func New(o Options) (*Client, error) {
	base, err := url.Parse(o.URL)
	if err != nil || (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" {
		return nil, fault.Newf(fault.Invalid, "%q is not an address of a server; write it like http://127.0.0.1:8080", o.URL)
	}
	if base.RawQuery != "" || base.Fragment != "" || base.User != nil {
		return nil, fault.Newf(fault.Invalid, "the address of a server has no user, query or fragment: write it like %s://%s", base.Scheme, base.Host)
	}
	if strings.ContainsAny(o.Token, "\r\n\x00") {
		return nil, fault.New(fault.Invalid, "the token has a line break in it; copy it without")
	}
	base.Path = strings.TrimSuffix(base.Path, "/")
	c := &Client{base: base, token: o.Token, http: o.HTTP}
	if c.http == nil {
		c.http = &http.Client{Transport: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
			TLSHandshakeTimeout:    10 * time.Second,
			MaxIdleConnsPerHost:    8,
			IdleConnTimeout:        60 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
		}}
	}
	return c, nil
}

// In is a client whose server tells refusals, and all that people read, in a language where it has words. Without one it is English.
func (c *Client) In(language string) *Client {
	in := *c
	in.language = language
	return &in
}

// request is one call of the API.
type request struct {
	method string
	path   string
	query  url.Values
	header http.Header
	body   []byte
	// content is the body's media type.
	content string
	// repeatable says that sending it twice does what sending it once does.
	repeatable bool
	// wait is how long the caller has asked the server to wait.
	wait time.Duration
}

// to makes a path from a format and escaped parts.
func to(format string, parts ...string) string {
	escaped := make([]any, len(parts))
	for i, p := range parts {
		escaped[i] = url.PathEscape(p)
	}
	return prefix + fmt.Sprintf(format, escaped...)
}

// get asks for something.
func get[T any](ctx context.Context, c *Client, path string, query url.Values) (T, error) {
	return call[T](ctx, c, request{method: http.MethodGet, path: path, query: query, repeatable: true})
}

// send sends a value as JSON.
func send[T any](ctx context.Context, c *Client, method, path string, body any) (T, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		var zero T
		return zero, fmt.Errorf("write the request: %w", err)
	}
	return call[T](ctx, c, request{method: method, path: path, body: raw, content: "application/json",
		repeatable: method == http.MethodPut})
}

// remove deletes something. When a repetition finds nothing, the first request has deleted it.
func remove(ctx context.Context, c *Client, path string) error {
	sent := 0
	_, err := c.sendRequest(ctx, request{method: http.MethodDelete, path: path, repeatable: true}, &sent)
	if sent > 1 && fault.CodeOf(err) == fault.NotFound {
		return nil
	}
	return err
}

// call sends a request and reads the answer as a T.
func call[T any](ctx context.Context, c *Client, r request) (T, error) {
	var answer T
	sent := 0
	raw, err := c.sendRequest(ctx, r, &sent)
	if err != nil {
		return answer, err
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return answer, fault.Newf(fault.RemoteError, "%s answered %s %s with something that is not an answer of Tandem: %w", c.base, r.method, r.path, err)
	}
	return answer, nil
}

// sendRequest sends a request, again when the connection breaks and it may be repeated, and returns the body of a success. It
// counts how often it has sent it.
func (c *Client) sendRequest(ctx context.Context, r request, sent *int) ([]byte, error) {
	for wait := 100 * time.Millisecond; ; wait *= 2 {
		*sent++
		raw, err := c.once(ctx, r)
		var broken *brokenError
		if err == nil || !errors.As(err, &broken) || !r.repeatable || *sent >= tries || ctx.Err() != nil {
			return raw, err
		}
		if err := pause(ctx, jitter(wait)); err != nil {
			return nil, err
		}
	}
}

// once sends a request once.
func (c *Client) once(ctx context.Context, r request) ([]byte, error) {
	bounded, cancel := context.WithTimeout(ctx, requestTimeout+r.wait)
	defer cancel()
	response, err := c.open(bounded, r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return nil, c.broken(ctx, err)
	}
	if len(raw) > maxAnswer {
		return nil, fault.Newf(fault.TooLarge, "the answer of %s has more than %d MiB; ask for less at once", r.path, maxAnswer>>20)
	}
	return raw, nil
}

// open sends a request and returns the response of a success, whose body the caller closes.
func (c *Client) open(ctx context.Context, r request) (*http.Response, error) {
	address := *c.base
	// Path and RawPath: parts of a path may have slashes, which must stay escaped.
	unescaped, err := url.PathUnescape(r.path)
	if err != nil {
		return nil, fault.Newf(fault.Invalid, "path %q: %w", r.path, err)
	}
	address.RawPath = address.EscapedPath() + r.path
	address.Path += unescaped
	address.RawQuery = r.query.Encode()
	var body io.Reader
	if r.body != nil {
		body = bytes.NewReader(r.body)
	}
	q, err := http.NewRequestWithContext(ctx, r.method, address.String(), body)
	if err != nil {
		return nil, fmt.Errorf("make a request to %q: %w", c.base, err)
	}
	for name, values := range r.header {
		q.Header[name] = values
	}
	if r.content != "" {
		q.Header.Set("Content-Type", r.content)
	}
	if q.Header.Get("Accept") == "" {
		q.Header.Set("Accept", "application/json, application/problem+json")
	}
	q.Header.Set("User-Agent", "tandem-client")
	if c.language != "" {
		q.Header.Set("Accept-Language", c.language)
	}
	if c.token != "" {
		q.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.http.Do(q)
	if err != nil {
		return nil, c.broken(ctx, err)
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		defer response.Body.Close()
		return nil, problem(response)
	}
	return response, nil
}

// brokenError is a connection that could not be made, or that broke: it is not known whether the request was carried out.
type brokenError struct{ err *fault.Error }

func (e *brokenError) Error() string { return e.err.Message }
func (e *brokenError) Unwrap() error { return e.err }

// broken makes the error for a connection that failed. When the caller's context has ended, it returns the error of the context.
func (c *Client) broken(ctx context.Context, err error) error {
	var refusal *url.Error
	if errors.As(err, &refusal) {
		err = refusal.Err // the address is in our message
	}
	switch {
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		return context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		return fault.Newf(fault.Timeout, "%s did not answer in time: %w", c.base, err)
	}
	return &brokenError{fault.Newf(fault.NetworkError, "cannot reach a server at %s: %w; is it running there, and is the address right?", c.base, err)}
}

// jitter spreads repetitions over half to all of a time, so that many clients do not come back at once.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// pause waits, unless the context ends first.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
