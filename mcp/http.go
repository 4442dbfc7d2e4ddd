package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"

	"tandem/outbound"
	"tandem/text"
)

// wire is the RoundTripper of one connection. It stays on the server's origin, adds its headers and token, bounds answers, and follows
// requests as stdio does: which may have gone out, and what came back exactly.
type wire struct {
	next    http.RoundTripper
	server  string
	origin  *url.URL
	headers http.Header
	token   *tokenSource // nil without OAuth
	refused func(headers []string)
	secrets []string // that the server is sent
	table   *exchanges
}

// client returns an http.Client over the wire. It follows redirects within the origin only.
func (w *wire) client() *http.Client { return &http.Client{Transport: w} }

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != w.origin.Scheme || r.URL.Host != w.origin.Host {
		if r.Body != nil {
			_ = r.Body.Close() // a RoundTripper must close it; the refusal is what is told
		}
		return nil, &Error{Kind: Protocol, Server: w.server, Message: text.Of("the server leads to another host, %q; register that one if it is right", r.URL.Host)}
	}
	x, err := w.follow(r)
	if err != nil {
		return nil, err
	}
	used := ""
	var said http.Header // of a 401 that another token may help with
	for again := false; ; again = true {
		attempt := r.Clone(r.Context())
		if again && r.GetBody != nil {
			if attempt.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
		for name, values := range w.headers {
			attempt.Header[name] = values
		}
		if w.token != nil {
			if used, err = w.token.getToken(r.Context(), used); err != nil {
				if attempt.Body != nil {
					_ = attempt.Body.Close() // as above
				}
				if e, ok := errors.AsType[*Error](err); ok && said != nil {
					e.Status, e.Challenge = http.StatusUnauthorized, said.Values("WWW-Authenticate")
				}
				return nil, err
			}
			attempt.Header.Set("Authorization", "Bearer "+used)
		}
		response, err := w.send(attempt, x)
		if err != nil {
			return nil, err
		}
		if response.StatusCode == http.StatusUnauthorized && w.token != nil && !again && (r.Body == nil || r.GetBody != nil) {
			// The token is no longer good. With another one it may go.
			said = response.Header
			w.refused(said.Values("WWW-Authenticate"))
			_ = response.Body.Close() // the answer to the next try is what counts
			continue
		}
		return w.answered(response, x)
	}
}

// follow reads which request this is.
func (w *wire) follow(r *http.Request) (*exchange, error) {
	x := exchangeOf(r.Context())
	if x == nil || r.Method != http.MethodPost || r.GetBody == nil {
		return nil, nil
	}
	body, err := r.GetBody()
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(body)
	if err = errors.Join(err, body.Close()); err != nil {
		return nil, err
	}
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	// The context of a call is also that of the notice that it was given up; only the call has an id.
	if json.Unmarshal(data, &m) != nil || len(m.ID) == 0 || m.Method == "" {
		return nil, nil
	}
	w.table.addExchange(string(m.ID), x)
	return x, nil
}

func (w *wire) send(r *http.Request, x *exchange) (*http.Response, error) {
	if x == nil {
		return w.next.RoundTrip(r)
	}
	ctx := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{WroteHeaders: x.markSent})
	response, err := w.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		var told *outbound.Error
		if errors.As(err, &told) && told.Fate == outbound.Unknown {
			x.markSent()
		}
		return nil, err
	}
	x.mu.Lock()
	x.status = response.StatusCode
	switch response.StatusCode {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusTooManyRequests, http.StatusServiceUnavailable:
		x.sent = false // the server has not taken it
	}
	x.mu.Unlock()
	return response, nil
}

// answered looks at a status and at what is read of the body.
func (w *wire) answered(response *http.Response, x *exchange) (*http.Response, error) {
	switch response.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		_ = response.Body.Close() // its headers say what is needed
		said := response.Header.Values("WWW-Authenticate")
		w.refused(said)
		e := &Error{Kind: Unauthorized, Server: w.server, Status: response.StatusCode, Challenge: said,
			Message: text.Of("the server answered %d %s", response.StatusCode, http.StatusText(response.StatusCode))}
		if scopes := readChallenge(said).scopes; len(scopes) > 0 {
			e.Message = text.Of("%s and wants the scopes %q", e.Message, strings.Join(scopes, " "))
		}
		e.Message = text.Of("%s; authorize it again (tandem mcp servers authorize %s), or check its headers", e.Message, w.server)
		return nil, e
	}
	kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	response.Body = &followed{from: response.Body, events: err == nil && kind == "text/event-stream", table: w.table, x: x}
	return response, nil
}

// followed is a body whose answers are kept as they pass. Events are bounded by the SDK, one by one; other bodies here.
type followed struct {
	from   io.ReadCloser
	events bool
	table  *exchanges
	x      *exchange // whose request the body answers; nil for others
	size   int
	kept   []byte // the whole body, or the line of an event that is not complete
	data   []byte // of an event, so far
	big    bool   // the line is too large to be one that counts
}

// Read implements io.Reader.
func (f *followed) Read(p []byte) (int, error) {
	n, err := f.from.Read(p)
	if !f.events {
		if f.size += n; f.size > maxMessage {
			if f.x != nil {
				f.x.mu.Lock()
				f.x.tooLarge = true
				f.x.mu.Unlock()
			}
			return 0, &Error{Kind: TooLarge, Message: text.Of("the answer has more than %d bytes", maxMessage)}
		}
		f.kept = append(f.kept, p[:n]...)
		if err == io.EOF {
			f.message(f.kept)
		}
		return n, err
	}
	for rest := p[:n]; len(rest) > 0; {
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		rest = after
		if len(f.kept)+len(f.data)+len(line) > maxMessage {
			f.big, f.kept = true, nil
			if f.x != nil {
				f.x.mu.Lock()
				f.x.tooLarge = true
				f.x.mu.Unlock()
			}
		} else if !f.big {
			f.kept = append(f.kept, line...)
		}
		if whole {
			f.line()
		}
	}
	if err == io.EOF {
		f.line()
		f.line()
	}
	return n, err
}

// line takes the line that is complete. An empty one ends an event.
func (f *followed) line() {
	line := bytes.TrimRight(f.kept, "\r")
	f.kept = f.kept[:0]
	if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
		if len(f.data) > 0 {
			f.data = append(f.data, '\n')
		}
		f.data = append(f.data, bytes.TrimSpace(data)...)
	}
	if len(line) == 0 {
		if !f.big {
			f.message(f.data)
		}
		f.data, f.big = nil, false
	}
}

// message notes the answer to a request that is followed.
func (f *followed) message(data []byte) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Result json.RawMessage `json:"result"`
	}
	if len(data) == 0 || json.Unmarshal(data, &m) != nil || len(m.ID) == 0 || m.Method != "" {
		return
	}
	if x := f.table.getExchange(string(m.ID)); x != nil {
		x.answer(bytes.Clone(m.Result))
	}
}

// Close implements io.Closer.
func (f *followed) Close() error { return f.from.Close() }

// newWire prepares the way to a server.
func newWire(ctx context.Context, p *Pool, who principal, table *exchanges) (*wire, func(), error) {
	s := who.server
	if p.options.HTTP == nil {
		return nil, nil, errors.New("no HTTP client is configured")
	}
	origin, err := url.Parse(s.URL)
	if err != nil {
		return nil, nil, err
	}
	values, release, err := p.resolve(ctx, who, s.Headers)
	if err != nil {
		return nil, nil, err
	}
	w := &wire{next: p.options.HTTP.Transport, server: s.ID, origin: origin, headers: http.Header{},
		secrets: secretsOf(values, s.Headers), table: table,
		refused: func(headers []string) { p.refused(who, headers) }}
	if w.next == nil {
		w.next = http.DefaultTransport
	}
	for name, value := range values {
		if strings.ContainsAny(value, "\r\n\x00") {
			release()
			return nil, nil, fmt.Errorf("the credential for header %q holds a line break", name)
		}
		w.headers.Set(name, value)
	}
	if s.Credential != "" {
		if p.options.Grants == nil {
			release()
			return nil, nil, errors.New("no place for tokens is configured")
		}
		w.token = p.token(who)
	}
	return w, release, nil
}
