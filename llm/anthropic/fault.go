package anthropic

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

	sdk "github.com/anthropics/anthropic-sdk-go"

	"tandem/fault"
	"tandem/llm"
	"tandem/outbound"
)

// explain turns what the library says into a fault. The library's own errors hold the request, so none of them is kept.
func (p *Provider) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ended(ctx, err)
	}
	if e, ok := errors.AsType[*sdk.Error](err); ok {
		return p.answered(e)
	}
	if f, ok := errors.AsType[*fault.Error](err); ok { // of the guarded client
		return f
	}
	if slow, ok := errors.AsType[net.Error](err); ok && slow.Timeout() {
		return fault.New(fault.Timeout, "the anthropic service took too long").WithDetail(llm.Scrub(err.Error(), p.key))
	}
	syntax, isSyntax := errors.AsType[*json.SyntaxError](err)
	_, isType := errors.AsType[*json.UnmarshalTypeError](err)
	_, isNet := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), isSyntax && strings.HasPrefix(syntax.Error(), "unexpected end"):
		return fault.New(fault.NetworkError, "the anthropic service ended its answer before it was complete").WithDetail(llm.Scrub(err.Error(), p.key))
	case isNet:
		return fault.New(fault.NetworkError, "the anthropic service could not be reached, or its answer could not be read").WithDetail(llm.Scrub(err.Error(), p.key))
	case isSyntax || isType:
		return fault.New(fault.RemoteError, "the anthropic service sent something that is not an answer; check the base URL").WithDetail(llm.Scrub(err.Error(), p.key))
	}
	return fault.New(fault.RemoteError, "the answer of the anthropic service could not be read; check the base URL").WithDetail(llm.Scrub(err.Error(), p.key))
}

// ended is the fault of a call whose context has ended.
func ended(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fault.New(fault.Timeout, "the anthropic service did not answer completely in time").WithCause(context.DeadlineExceeded)
	}
	if f, ok := errors.AsType[*fault.Error](context.Cause(ctx)); ok {
		return f
	}
	return fault.New(fault.Canceled, "the call of the anthropic service was stopped").WithCause(errors.Join(ctx.Err(), err))
}

// answered is the fault of a service that answered with an error, by status or inside a stream.
func (p *Provider) answered(e *sdk.Error) error {
	var body struct {
		Error struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"error"`
	}
	_ = json.Unmarshal([]byte(e.RawJSON()), &body) // a body that is something else says nothing; the status does
	kind, message := body.Error.Type, body.Error.Message
	status := e.StatusCode
	code, remedy := classify(status, kind, message)
	text := "the anthropic service answered"
	if status >= 400 {
		text += " " + statusText(status)
	} else {
		text += " with an error"
	}
	if kind != "" {
		text += " (" + kind + ")"
	}
	if message != "" {
		text += ": " + llm.Scrub(message, p.key)
	}
	f := fault.New(code, llm.Scrub(text, p.key)+remedy).With("provider", Name)
	if status >= 400 {
		f = f.With("status_code", status)
	}
	if e.RequestID != "" {
		f = f.With("service_id", llm.Scrub(e.RequestID, p.key))
	}
	if e.Response == nil || !code.Retryable() {
		return f
	}
	if wait := outbound.RetryAfter(e.Response.Header, time.Now()); wait > 0 && status >= 400 {
		return &llm.Unavailable{Err: f, RetryAfter: wait}
	}
	return f
}

func statusText(status int) string {
	if status == 529 {
		return "529 Overloaded"
	}
	return strings.TrimSpace(strconv.Itoa(status) + " " + http.StatusText(status))
}

// classify says what an error means. Its type wins over the status: inside a stream the status is that of the stream.
func classify(status int, kind, message string) (code fault.Code, remedy string) {
	const badKey = "; check the credential and what it may do"
	switch kind {
	case "overloaded_error", "rate_limit_error":
		return fault.RateLimited, ""
	case "authentication_error", "permission_error":
		return fault.CredentialInvalid, badKey
	case "not_found_error":
		return fault.NotFound, "; check the model and the base URL"
	case "request_too_large":
		return fault.ContextTooLong, "; send less"
	case "timeout_error", "api_error":
		return fault.RemoteError, ""
	}
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return fault.CredentialInvalid, badKey
	case status == http.StatusNotFound || status == http.StatusGone:
		return fault.NotFound, "; check the model and the base URL"
	case status == http.StatusRequestEntityTooLarge:
		return fault.ContextTooLong, "; send less"
	case status == http.StatusTooManyRequests || status == 529:
		return fault.RateLimited, ""
	case status == http.StatusRequestTimeout || status == http.StatusConflict || status >= 500:
		return fault.RemoteError, ""
	case status < 400 && kind != "invalid_request_error":
		return fault.RemoteError, ""
	}
	lower := strings.ToLower(message)
	for _, sign := range []string{"prompt is too long", "exceed context limit", "context window", "too many tokens", "input is too long"} {
		if strings.Contains(lower, sign) {
			return fault.ContextTooLong, "; send less, or choose a model with a larger context"
		}
	}
	return fault.RemoteRejected, ""
}
