package credential

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"tandem/fault"
	"tandem/text"
)

// Outside is how a check reaches services: behind the guard of the program.
type Outside struct {
	HTTP *http.Client
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Check tries a credential by a call of its own service that changes nothing, and says in words what it found: whose account it is. An
// error says what is wrong and what to do about it; one with the code [fault.Unsupported] says that this one cannot be tried, and why.
type Check func(ctx context.Context, c Opened, out Outside) (found string, err error)

// Trial is what came of a check.
type Trial struct {
	// OK says that the service takes the credential. Tried is false when it could not be asked at all; Detail says why.
	OK    bool
	Tried bool
	// Detail says what was found, or what is wrong and what to do about it. It holds no secret.
	Detail string
	// Code is that of the error, if there was one.
	Code fault.Code
}

// trialTime is how long a check may take.
const trialTime = 30 * time.Second

// Try checks an opened credential of the type. Its secrets are taken out of what is said.
func (t Type) Try(ctx context.Context, c Opened, out Outside, r *Redactor) Trial {
	if t.Check == nil {
		why := "the extension that brings the type does not say how a credential of it can be tried"
		if !t.Untried.IsZero() {
			why = t.Untried.In(text.English)
		}
		return Trial{Detail: why, Code: fault.Unsupported}
	}
	ctx, cancel := context.WithTimeout(ctx, trialTime)
	defer cancel()
	found, err := t.tried(ctx, c, out)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fault.Newf(fault.Timeout, "the service did not answer within %s", trialTime).WithCause(err)
	}
	return TrialOf(found, err, r)
}

// tried runs the check; one that breaks down says so instead of ending the program.
func (t Type) tried(ctx context.Context, c Opened, out Outside) (found string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.Newf(fault.Internal, "the check of the type %q broke down; the operator's log has the detail", t.Name).WithDetail(fmt.Sprintf("%v\n%s", p, debug.Stack()))
		}
	}()
	return t.Check(ctx, c, out)
}

// TrialOf tells what a check has found, or its error.
func TrialOf(found string, err error, r *Redactor) Trial {
	if err == nil {
		return Trial{OK: true, Tried: true, Detail: r.Text(found)}
	}
	e := fault.From(err)
	if e.Code == fault.Unsupported {
		return Trial{Detail: r.Text(e.Message), Code: e.Code}
	}
	detail := e.Message
	switch e.Code {
	case fault.NetworkError, fault.Timeout:
		detail += "; check the address in the credential, and whether this server can reach it"
	}
	return Trial{Tried: true, Detail: r.Text(detail), Code: e.Code}
}

// maxTold is how much of an answer is read by [Ask].
const maxTold = 1 << 20

// Ask makes a call of a check and reads the answer into a value, unless that is nil. Service is what the errors call it; secret is what the
// credential calls what the service wants to see.
func Ask(ctx context.Context, client *http.Client, service, secret string, r *http.Request, into any) error {
	r.Header.Set("Accept", "application/json")
	still := *client // a secret is for the host that the credential names, and for no other
	still.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := still.Do(r.WithContext(ctx))
	if err != nil {
		if known, ok := errors.AsType[*fault.Error](err); ok {
			return known
		}
		return fault.Newf(fault.NetworkError, "%s cannot be reached at %q", service, r.URL.Host)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxTold))
	if err != nil {
		return fault.Newf(fault.NetworkError, "the answer of %s was lost", service)
	}
	switch status := response.StatusCode; {
	case status == http.StatusUnauthorized:
		return fault.Newf(fault.CredentialInvalid, "%s does not take the %s (%d): it is wrong, was withdrawn or has expired; enter a new one", service, secret, status)
	case status == http.StatusForbidden:
		return fault.Newf(fault.CredentialInvalid, "%s knows the %s and does not let it do this (%d); give it more rights, or enter another one", service, secret, status)
	case status == http.StatusNotFound:
		return fault.Newf(fault.RemoteRejected, "there is nothing of %s at %q (%d); check the address in the credential", service, r.URL.Host, status)
	case status == http.StatusTooManyRequests:
		return fault.Newf(fault.RateLimited, "%s asks to slow down (%d); try again later", service, status)
	case status >= 500:
		return fault.Newf(fault.RemoteError, "%s has a problem of its own (%d); try again later", service, status)
	case status < 200 || status > 299:
		return fault.Newf(fault.RemoteRejected, "%s answered %d; check the address in the credential", service, status)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fault.Newf(fault.RemoteRejected, "what is at %q does not answer like %s; check the address in the credential", r.URL.Host, service)
	}
	return nil
}

// AskGet is [Ask] for an address, with headers in pairs of name and value. Base is what the credential says, if it says anything.
func AskGet(ctx context.Context, client *http.Client, service, secret, base, usual, path string, into any, headers ...string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(cmp.Or(base, usual), "/")+path, bytes.NewReader(nil))
	if err != nil || r.URL.Host == "" {
		return fault.New(fault.CredentialInvalid, "the address in the credential cannot be used; write it like https://host")
	}
	for n := 0; n+1 < len(headers); n += 2 {
		r.Header.Set(headers[n], headers[n+1])
	}
	return Ask(ctx, client, service, secret, r, into)
}
