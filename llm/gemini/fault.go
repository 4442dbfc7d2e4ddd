package gemini

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"tandem/fault"
	"tandem/llm"
	"tandem/outbound"
)

// explain turns what went wrong into a fault. Texts of the library and of the network are for
// operators only.
func (p *Provider) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ended(ctx)
	}
	if e, ok := errors.AsType[*failure](err); ok {
		return p.answered(e)
	}
	if f, ok := errors.AsType[*fault.Error](err); ok { // of the guarded client
		return f
	}
	say := func(code fault.Code, text string) error {
		return fault.New(code, "the gemini service "+text).With("provider", Name).WithDetail(llm.Scrub(err.Error(), p.key))
	}
	slow, isNet := errors.AsType[net.Error](err)
	syntax, isSyntax := errors.AsType[*json.SyntaxError](err)
	switch {
	case isNet && slow.Timeout():
		return say(fault.Timeout, "took too long")
	case errors.Is(err, errCut), errors.Is(err, io.ErrUnexpectedEOF), isSyntax && strings.HasPrefix(syntax.Error(), "unexpected end"):
		return say(fault.NetworkError, "ended its answer before it was complete")
	case isNet:
		return say(fault.NetworkError, "could not be reached, or its answer could not be read")
	}
	return say(fault.RemoteError, "sent something that is not an answer; check the base URL")
}

// ended is the fault of a call whose context has ended.
func ended(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fault.New(fault.Timeout, "the gemini service did not answer completely in time").WithCause(context.DeadlineExceeded)
	}
	if f, ok := errors.AsType[*fault.Error](context.Cause(ctx)); ok {
		return f
	}
	return fault.New(fault.Canceled, "the call of the gemini service was stopped").WithCause(ctx.Err())
}

// answered is the fault of a service that answered with an error, by status or inside a stream.
func (p *Provider) answered(e *failure) error {
	status, message := e.Code, e.Message
	if e.httpStatus >= 400 {
		status = e.httpStatus // the body may be of somebody else
	}
	code, remedy := classify(status, e.Status, message, e.Details)
	text := "the gemini service answered"
	if status >= 400 {
		text += " " + strings.TrimSpace(strconv.Itoa(status)+" "+http.StatusText(status))
	} else {
		text += " with an error"
	}
	if message != "" {
		text += ": " + llm.Scrub(message, p.key)
	}
	f := fault.New(code, llm.Scrub(text, p.key)+remedy).With("provider", Name)
	if status >= 400 {
		f = f.With("status_code", status)
	}
	if !code.Retryable() {
		return f
	}
	wait := retryInfo(e.Details)
	if wait == 0 && e.header != nil {
		wait = outbound.RetryAfter(e.header, time.Now())
	}
	if wait > 0 {
		return &llm.Unavailable{Err: f, RetryAfter: min(wait, outbound.MaxRetryAfter)}
	}
	return f
}

// retryInfo is when the service wants to be called again, as its errors say it.
func retryInfo(details []map[string]any) time.Duration {
	for _, d := range details {
		if kind, _ := d["@type"].(string); !strings.HasSuffix(kind, "google.rpc.RetryInfo") {
			continue
		}
		text, _ := d["retryDelay"].(string)
		if wait, err := time.ParseDuration(text); err == nil && wait > 0 {
			return wait
		}
	}
	return 0
}

func classify(status int, name, message string, details []map[string]any) (code fault.Code, remedy string) {
	const badKey = "; check the credential and what it may do"
	for _, d := range details {
		if reason, _ := d["reason"].(string); strings.HasPrefix(reason, "API_KEY_") { // comes with 400
			return fault.CredentialInvalid, badKey
		}
	}
	lower := strings.ToLower(message)
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden || name == "UNAUTHENTICATED" || name == "PERMISSION_DENIED":
		return fault.CredentialInvalid, badKey
	case status == http.StatusBadRequest && (strings.Contains(lower, "api key not valid") || strings.Contains(lower, "api key expired")):
		return fault.CredentialInvalid, badKey
	case status == http.StatusNotFound || status == http.StatusGone:
		return fault.NotFound, "; check the model and the base URL"
	case status == http.StatusTooManyRequests || name == "RESOURCE_EXHAUSTED":
		return fault.RateLimited, ""
	case status == http.StatusRequestEntityTooLarge:
		return fault.ContextTooLong, "; send less"
	// 499: given up by somebody between.
	case status == http.StatusRequestTimeout || status == http.StatusConflict || status >= 499 || status < 400:
		return fault.RemoteError, ""
	}
	if strings.Contains(lower, "token") && (strings.Contains(lower, "exceeds the maximum") ||
		strings.Contains(lower, "exceeds the limit")) ||
		strings.Contains(lower, "input is too long") || strings.Contains(lower, "context window") {
		return fault.ContextTooLong, "; send less, or choose a model with a larger context"
	}
	return fault.RemoteRejected, ""
}
